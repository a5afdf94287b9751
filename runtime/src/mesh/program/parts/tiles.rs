//! Reductions over parts: what lies together in a part is folded there, before the parts meet.
//!
//! Numbers become one pairwise, in the user's order, so [`FOLDED_TILE`] numbers from a multiple of it on become one, whatever else there is. Of
//! such a *tile* that one part has whole it tells the total alone, of any other each part tells the numbers that it has. Of both one array
//! is made of all parts: the totals of all tiles, and behind them the numbers of those that no part has whole. Once these have their totals, too,
//! the fold goes on with the totals as it would with numbers.

use std::ops::Range;
use stencilc_compiler::kernel::machine::FOLDED_TILE;

/// By part, of each element that it owns: how many come before it among all, and among those of the part.
pub type Ranks = Vec<Vec<[u32; 2]>>;

/// The tiles of numbers that are folded over parts.
pub struct Tiles {
    /// How many there are.
    pub count: usize,
    /// Numbers of the array of all parts.
    pub len: usize,
    /// Of tiles that no part has whole: which one it is, and where its numbers start in the array of all parts.
    pub mixed: Vec<[i32; 2]>,
    /// What each part tells.
    pub parts: Vec<Told>,
}

/// What a part tells: the totals of tiles that it has whole, and the numbers that it has of others.
#[derive(Default)]
pub struct Told {
    /// Of each total: its place in what is told, and where its numbers start among those of the part.
    pub totals: Vec<[i32; 2]>,
    /// Of each number: its place in what is told, and which one it is among those of the part.
    pub numbers: Vec<[i32; 2]>,
    /// Where each goes in the array of all parts, and its place in what is told.
    pub to: Vec<[i32; 2]>,
}

impl Told {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.to.len()
    }
}

impl Tiles {
    /// Of parts that have these elements, with so many numbers each.
    pub fn new(ranks: &Ranks, levels: usize) -> Self {
        let elements = ranks.iter().map(Vec::len).sum();
        let mut owners = vec![[0; 2]; elements];
        for (part, own) in ranks.iter().enumerate() {
            own.iter().for_each(|&[rank, among]| owners[rank as usize] = [part, among as usize]);
        }
        let (numbers, mut all) = (elements * levels, Vec::new());
        for first in (0..numbers).step_by(FOLDED_TILE) {
            all.push(first..numbers.min(first + FOLDED_TILE));
        }
        let elements_of = |tile: &Range<usize>| &owners[tile.start / levels..=(tile.end - 1) / levels];
        // The last one, which may be shorter, is made as those that are mixed, where it is known what there is.
        let is_whole = |tile: &Range<usize>| {
            let own = elements_of(tile);
            tile.len() == FOLDED_TILE && own.iter().all(|[part, _]| *part == own[0][0])
        };
        let mut told: Vec<Told> = ranks.iter().map(|_| Told::default()).collect();
        let among = |number: usize| (owners[number / levels][1] * levels + number % levels) as i32;
        let (whole, rest): (Vec<_>, Vec<_>) = (0..).zip(&all).partition(|(_, tile)| is_whole(tile));
        for (tile, numbers) in whole {
            let own = &mut told[elements_of(numbers)[0][0]];
            let place = own.to.len() as i32;
            own.totals.push([place, among(numbers.start)]);
            own.to.push([tile, place]);
        }
        let (mut mixed, mut len) = (Vec::new(), all.len());
        for (tile, numbers) in rest {
            mixed.push([tile, len as i32]);
            for number in numbers.clone() {
                let own = &mut told[owners[number / levels][0]];
                let place = own.to.len() as i32;
                own.numbers.push([place, among(number)]);
                own.to.push([len as i32, place]);
                len += 1;
            }
        }
        Self { count: all.len(), len, mixed, parts: told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each number goes one way, once.
    #[test]
    fn every_number_is_told_once() {
        for (elements, levels, run) in
            [(1000, 1, 300), (1000, 3, 7), (100, 64, 1), (640, 1, 64), (63, 1, 63), (0, 5, 1)]
        {
            let mut ranks: Ranks = vec![Vec::new(); 3];
            for rank in 0..elements {
                let own = &mut ranks[rank as usize / run % 3];
                // Of each part some numbers are of elements that others own.
                own.push([rank, own.len() as u32 + u32::from(rank as usize >= run) * 5]);
            }
            let tiles = Tiles::new(&ranks, levels);
            let numbers = elements as usize * levels;
            assert_eq!(tiles.count, numbers.div_ceil(FOLDED_TILE));
            assert!(tiles.len <= tiles.count + numbers);
            let mut told = vec![0; tiles.len];
            let mut read = 0;
            for (own, ranks) in tiles.parts.iter().zip(&ranks) {
                own.to.iter().for_each(|&[to, _]| told[to as usize] += 1);
                assert_eq!(own.count(), own.totals.len() + own.numbers.len());
                let places = own.totals.iter().chain(&own.numbers).map(|[place, _]| *place);
                assert!(places.eq(0..own.count() as i32));
                let has = |number: usize| ranks.iter().any(|[_, among]| *among as usize == number / levels);
                for &[_, first] in &own.totals {
                    assert!((first as usize..first as usize + FOLDED_TILE).all(has));
                    read += FOLDED_TILE;
                }
                assert!(own.numbers.iter().all(|[_, number]| has(*number as usize)));
                read += own.numbers.len();
            }
            assert_eq!(read, numbers);
            tiles.mixed.iter().for_each(|&[tile, _]| told[tile as usize] += 1);
            assert!(told.iter().all(|&times| times == 1), "{elements} elements, {levels} levels, {run}: {told:?}");
            let starts = tiles.mixed.iter().map(|[_, first]| *first as usize);
            assert!(starts.eq((tiles.count..tiles.len).step_by(FOLDED_TILE)));
        }
    }
}
