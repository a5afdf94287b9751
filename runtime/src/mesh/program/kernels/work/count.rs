//! What blocks and windows of threads look at, counted.

use super::super::super::pieces::Pieces;
use super::super::super::tables::InverseMap;
use super::View;
use super::arrays::{At, Looked};
use crate::mesh::{Bound, HOLE};
use rayon::prelude::*;
use std::ops::Range;
use stencilc_compiler::mesh::Kernel;

/// Bytes that come from memory together.
pub(super) const PIECE: usize = 64;

/// Bytes of a cache that is not the largest there is.
const CACHE: usize = 32 << 20;

/// Blocks, and windows, that are looked at.
const BLOCKS: usize = 1024;
const WINDOWS: usize = 6;

/// What a kernel's threads are.
pub(super) enum Threads<'a> {
    /// Elements, by their numbers.
    Elements,
    /// Elements, colour by colour.
    Coloured(Vec<u32>),
    /// Targets, which visit the elements that lead to them; those alone to which any leads, if they are listed.
    Targets(&'a InverseMap, Option<Vec<i32>>),
    /// No single threads but blocks of them, for pieces; of tiles the targets to which any element leads, if they are listed.
    Pieces(&'a Pieces, Option<Vec<i32>>),
}

impl Threads<'_> {
    /// Whether targets gather, so that nothing is added anywhere else.
    pub fn gather(&self) -> bool {
        match self {
            Threads::Targets(..) => true,
            Threads::Pieces(pieces, _) => matches!(pieces, Pieces::Tiles(_)),
            Threads::Elements | Threads::Coloured(_) => false,
        }
    }

    /// How many elements are computed by so many of them, which are all.
    pub fn visits(&self, items: usize) -> usize {
        match self {
            Threads::Targets(inverse, _) => inverse.count(),
            Threads::Pieces(pieces, _) => match pieces {
                Pieces::Tiles(tiles) => tiles.elements.len(),
                Pieces::Blocks(blocks) => blocks.elements.len(),
            },
            Threads::Elements | Threads::Coloured(_) => items,
        }
    }

    fn target(&self, item: usize) -> usize {
        match self {
            Threads::Targets(_, Some(led_to)) | Threads::Pieces(_, Some(led_to)) => led_to[item] as usize,
            Threads::Elements | Threads::Coloured(_) | Threads::Targets(_, None) | Threads::Pieces(_, None) => item,
        }
    }

    /// The places of an array that one of them looks at, at the end of a list: each once, but for pieces, once for each element.
    fn places(&self, bound: &Bound, at: &At, item: usize, found: &mut Vec<i32>) {
        match at {
            At::Target => match self {
                Threads::Pieces(pieces, _) => {
                    if let Pieces::Tiles(tiles) = pieces {
                        let own = tiles.starts[item]..tiles.starts[item + 1];
                        found.extend(own.map(|target| self.target(target as usize) as i32));
                    }
                }
                Threads::Elements | Threads::Coloured(_) | Threads::Targets(..) => found.push(self.target(item) as i32),
            },
            At::Entries => {
                if let Threads::Targets(inverse, _) = self {
                    found.extend(inverse.entries(self.target(item)).map(|entry| entry as i32));
                }
            }
            At::Hops(all) => {
                let mut visit = |first: usize, element: usize| {
                    for hops in all {
                        let to = bound.walk(element as i32, hops);
                        if to != HOLE && !found[first..].contains(&to) {
                            found.push(to);
                        }
                    }
                    found.len()
                };
                match self {
                    Threads::Elements => {
                        visit(0, item);
                    }
                    Threads::Coloured(elements) => {
                        visit(0, elements[item] as usize);
                    }
                    Threads::Targets(inverse, _) => {
                        inverse.elements(self.target(item)).for_each(|element| {
                            visit(0, element);
                        });
                    }
                    Threads::Pieces(pieces, _) => {
                        let mut first = 0;
                        for &element in elements_of(pieces, item) {
                            first = visit(first, element as usize);
                        }
                    }
                }
            }
        }
    }
}

/// The elements of a piece, by its place among those that are launched.
fn elements_of(pieces: &Pieces, item: usize) -> &[u32] {
    match pieces {
        Pieces::Tiles(tiles) => &tiles.elements[tiles.offsets[item] as usize..tiles.offsets[item + 1] as usize],
        Pieces::Blocks(blocks) => {
            let block = blocks.blocks.elements[item] as usize;
            &blocks.elements[blocks.starts[block] as usize..blocks.starts[block + 1] as usize]
        }
    }
}

impl View<'_> {
    /// Bytes that blocks look at through maps: for each thread, and once a block.
    pub(super) fn reuse(
        &self,
        kernel: &Kernel,
        threads: &Threads,
        arrays: &[Looked],
        ranges: &[Range<usize>],
    ) -> (f64, f64) {
        let block = match threads {
            Threads::Pieces(..) => 1,
            _ => (self.choices.threads.block as usize).div_ceil(kernel.threads_of_column.unwrap_or(1)),
        };
        let blocks = spread(ranges, block, BLOCKS);
        let is_through = |own: &Looked| match (&own.at, threads) {
            (At::Target, _) => false,
            (At::Entries, _) | (At::Hops(_), Threads::Targets(..)) => true,
            (At::Hops(all), Threads::Elements | Threads::Coloured(_) | Threads::Pieces(..)) => {
                all.iter().any(|hops| !hops.is_empty())
            }
        };
        let of = |own: &Looked| {
            let bytes = (own.chunk * own.groups) as f64;
            let bound = &self.renumbered.bound;
            let count = |block: &Range<usize>| {
                let mut found = Vec::new();
                let mut own_found = Vec::new();
                for item in block.clone() {
                    own_found.clear();
                    threads.places(bound, &own.at, item, &mut own_found);
                    found.append(&mut own_found);
                }
                let used = found.len();
                found.sort_unstable();
                found.dedup();
                [used, found.len()]
            };
            let add = |a: [usize; 2], b: [usize; 2]| [a[0] + b[0], a[1] + b[1]];
            let [used, loaded] = blocks.par_iter().map(count).reduce(Default::default, add);
            [used as f64 * bytes, loaded as f64 * bytes]
        };
        let through = arrays.iter().filter(|own| own.is_data && is_through(own));
        through.map(of).fold((0.0, 0.0), |sum, [used, loaded]| (sum.0 + used, sum.1 + loaded))
    }

    /// Bytes from and to memory, but for tables.
    pub(super) fn memory(&self, threads: &Threads, arrays: &[Looked], ranges: &[Range<usize>]) -> f64 {
        let items: usize = ranges.iter().map(Range::len).sum();
        let visits = (threads.visits(items) as f64 / items.max(1) as f64).max(1.0);
        let most = arrays.iter().map(|own| {
            let places = if let At::Hops(all) = &own.at { all.len() } else { 1 };
            places as f64 * visits * (own.groups * own.chunk.max(PIECE)) as f64
        });
        let window = (CACHE as f64 / most.sum::<f64>().max(1.0)).max(1024.0 / visits) as usize;
        let windows = spread(ranges, window, WINDOWS);
        let looked_at: usize = windows.iter().map(Range::len).sum();
        let scale = items as f64 / looked_at.max(1) as f64;
        let of = |own: &Looked| {
            let bound = &self.renumbered.bound;
            let count = |window: &Range<usize>| {
                let (mut pieces, mut found, mut count) = (Vec::new(), Vec::new(), 0_usize);
                for item in window.clone() {
                    found.clear();
                    threads.places(bound, &own.at, item, &mut found);
                    for &place in &found {
                        let first = place as usize * own.chunk;
                        for piece in first / PIECE..=(first + own.chunk.max(1) - 1) / PIECE {
                            if piece / 64 >= pieces.len() {
                                pieces.resize(piece / 64 + 1, 0_u64);
                            }
                            count += usize::from(pieces[piece / 64] & 1 << (piece % 64) == 0);
                            pieces[piece / 64] |= 1 << (piece % 64);
                        }
                    }
                }
                count
            };
            let pieces: usize = windows.par_iter().map(count).sum();
            (pieces * PIECE * own.groups * own.passes) as f64
        };
        arrays.iter().map(of).sum::<f64>() * scale
    }
}

/// Some of the stretches of a length that ranges are cut into, spread evenly; all, if there are no more.
fn spread(ranges: &[Range<usize>], length: usize, most: usize) -> Vec<Range<usize>> {
    let length = length.max(1);
    let cuts = |range: &Range<usize>| range.len().div_ceil(length);
    let all: usize = ranges.iter().map(cuts).sum();
    let wanted = all.min(most);
    let mut picked = Vec::with_capacity(wanted);
    let (mut before, mut next) = (0, 0);
    for range in ranges {
        while next < wanted && next * all / wanted < before + cuts(range) {
            let first = range.start + (next * all / wanted - before) * length;
            picked.push(first..range.end.min(first + length));
            next += 1;
        }
        before += cuts(range);
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn stretches_are_spread_evenly() {
        assert_eq!(spread(&[0..10, 10..10, 10..14], 4, 9), [0..4, 4..8, 8..10, 10..14]);
        assert_eq!(spread(std::slice::from_ref(&(0..100)), 10, 3), [0..10, 30..40, 60..70]);
        assert_eq!(spread(&[], 10, 3), []);
    }
}
