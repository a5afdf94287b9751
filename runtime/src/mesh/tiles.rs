//! Tiles: blocks of targets that take their increments from shared memory.
//!
//! A block of threads owns consecutive targets. It computes every element that leads to one of them, once, and keeps what the
//! element adds, one value for each slot, in shared memory. Then each target adds its own in the user's order, so that results
//! have the bits of the CPU. Elements at the rim are computed by every tile that they lead into.
//!
//! What elements read through maps may be kept in shared memory as well: a block loads the lists of [`Tiles::reads`], thread
//! `t` the entries `t`, `t + threads`, ..., and an element finds what it reads by its local numbers. On devices with large
//! caches, reads without lists are the faster ones.

use super::Mesh;
use super::inverse::Inverse;
use super::lists::{self, Cut, Lists};
use super::slots::{Slot, common_source, common_target};
use crate::error::{Error, Result};
use rayon::prelude::*;
use serde::Serialize;

/// A set of targets in tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Where tiles begin, and at last where all end: tile `t` owns the targets with the numbers `starts[t]..starts[t + 1]`.
    pub starts: Vec<u32>,
    /// Where the elements of each tile begin, and at last where all end.
    pub offsets: Vec<u32>,
    /// The elements of each tile, in the order of their numbers. Those that lead to no target are in none.
    pub elements: Vec<u32>,
    /// For each target what leads to it, in the order in which increments are added.
    pub inverse: Inverse,
    /// For each entry of the inverse, the place of the element among those of the tile, times the number of slots, plus the
    /// place of the slot.
    pub local: Vec<u16>,
    /// What elements read. They are in the order of [`Tiles::elements`].
    pub reads: Vec<Lists>,
}

/// What tiles come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// How many tiles there are.
    pub tiles: usize,
    /// How many elements lead to a target.
    pub elements: usize,
    /// How often elements are computed, all together.
    pub computed: usize,
    /// Elements that are computed more than once.
    pub repeated: usize,
    /// Elements of the tile that has the most.
    pub most_elements: usize,
    /// Entries of the target that has the most.
    pub most_entries: usize,
    /// What the lists of what is read come to, set by set.
    pub reads: Vec<lists::Statistics>,
}

impl Tiles {
    /// Cuts the set that `increments` lead to into tiles, and makes lists of what their elements read through `reads`.
    /// `users[element]` is the number that the user knows an element by, if not its own.
    ///
    /// # Errors
    /// The slots are of elements of several sets, increments lead to several, the cuts are none of the set, or a tile is too
    /// large for local numbers.
    pub fn new(mesh: &Mesh, increments: &[Slot], reads: &[Slot], cut: Cut, users: Option<&[u32]>) -> Result<Self> {
        let set = &mesh.sets[common_target(mesh, increments)?];
        common_source(mesh, &[increments, reads].concat())?;
        let starts = cut.starts(set.size)?;
        let inverse = Inverse::new(mesh, increments, users)?;

        let tile = |ends: &[u32]| {
            let range = inverse.offsets[ends[0] as usize] as usize..inverse.offsets[ends[1] as usize] as usize;
            let entries = &inverse.entries[range];
            let mut elements: Vec<u32> = entries.iter().map(|&entry| inverse.element(entry) as u32).collect();
            elements.sort_unstable();
            elements.dedup();
            // Cut off where there are too many elements, which is looked at below.
            let local = |&entry: &u32| {
                let place = elements.partition_point(|&element| (element as usize) < inverse.element(entry));
                (place * inverse.slots + inverse.slot(entry)) as u16
            };
            let local: Vec<u16> = entries.iter().map(local).collect();
            (elements, local)
        };
        let parts: Vec<(Vec<u32>, Vec<u16>)> = starts.par_windows(2).map(tile).collect();
        let (mut offsets, mut elements, mut local) = (vec![0], Vec::new(), Vec::with_capacity(inverse.entries.len()));
        for (of_tile, of_entries) in parts {
            if of_tile.len() * inverse.slots > 1 << 16 {
                let (many, name) = (of_tile.len(), &set.name);
                let message =
                    format!("{many} elements of {} slots lead to the `{name}` elements of a tile", inverse.slots);
                return Err(Error::call(format!("{message}: more than numbers of 16 bits")).help("take smaller tiles"));
            }
            elements.extend(of_tile);
            local.extend(of_entries);
            offsets.push(elements.len() as u32);
        }
        let reads = Lists::new(mesh, reads, &offsets, &elements)?;
        Ok(Self { starts, offsets, elements, inverse, local, reads })
    }

    /// How many tiles there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The elements of a tile.
    pub fn of(&self, tile: usize) -> &[u32] {
        &self.elements[self.offsets[tile] as usize..self.offsets[tile + 1] as usize]
    }

    /// Bytes of shared memory of the largest tile, if it keeps so many for each of its elements and for each entry of each of
    /// the lists of what they read.
    pub fn shared_memory(&self, bytes_of_element: usize, bytes_of_reads: &[usize]) -> usize {
        let of = |tile: usize| {
            let reads = self.reads.iter().zip(bytes_of_reads).map(|(lists, bytes)| lists.of(tile).len() * bytes);
            self.of(tile).len() * bytes_of_element + reads.sum::<usize>()
        };
        (0..self.count()).map(of).max().unwrap_or(0)
    }

    /// What they come to.
    pub fn statistics(&self, mesh: &Mesh) -> Statistics {
        let mut times: Vec<u32> = self.elements.clone();
        times.par_sort_unstable();
        let times = || times.chunk_by(|a, b| a == b).map(<[u32]>::len);
        Statistics {
            tiles: self.count(),
            elements: times().count(),
            computed: self.elements.len(),
            repeated: times().filter(|&times| times > 1).count(),
            most_elements: (0..self.count()).map(|tile| self.of(tile).len()).max().unwrap_or(0),
            most_entries: self.inverse.degrees().max,
            reads: self.reads.iter().map(|lists| lists.statistics(mesh)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::lists::NOWHERE;
    use crate::mesh::{Map, Set, sample};

    #[test]
    fn targets_find_their_elements() {
        let mut tiles_in_all = 0;
        for seed in 0..300 {
            let mesh = sample::random(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            let (from, to) = (mesh.maps[0].from, mesh.maps[0].to);
            let (increments, reads): (Vec<usize>, Vec<usize>) = (0..mesh.maps.len())
                .filter(|&map| mesh.maps[map].from == from)
                .partition(|&map| mesh.maps[map].to == to);
            let [increments, reads] = [increments, reads].map(|maps| {
                let mut slots: Vec<Slot> = maps.into_iter().flat_map(|map| Slot::all(&mesh, map)).collect();
                random.shuffle(&mut slots);
                slots
            });
            let mut users: Vec<u32> = (0..mesh.sets[from].size as u32).collect();
            random.shuffle(&mut users);
            let tiles = Tiles::new(&mesh, &increments, &reads, Cut::Every(random.usize(1..20)), Some(&users)).unwrap();
            tiles_in_all += tiles.count();
            let mut times = vec![0; mesh.sets[from].size];
            for tile in 0..tiles.count() {
                let elements = tiles.of(tile);
                assert!(elements.is_sorted_by(|a, b| a < b), "seed {seed}");
                elements.iter().for_each(|&element| times[element as usize] += 1);
                let mut used = vec![false; elements.len()];
                for target in tiles.starts[tile] as usize..tiles.starts[tile + 1] as usize {
                    let range = tiles.inverse.offsets[target] as usize..tiles.inverse.offsets[target + 1] as usize;
                    for (&entry, &local) in tiles.inverse.entries[range.clone()].iter().zip(&tiles.local[range]) {
                        let (place, slot) =
                            (usize::from(local) / increments.len(), usize::from(local) % increments.len());
                        assert_eq!(entry as usize, elements[place] as usize * increments.len() + slot, "seed {seed}");
                        assert_eq!(
                            increments[slot].target(&mesh, elements[place] as usize),
                            Some(target as u32),
                            "seed {seed}"
                        );
                        used[place] = true;
                    }
                }
                assert!(used.iter().all(|&used| used), "seed {seed}");
            }
            for lists in &tiles.reads {
                for tile in 0..tiles.count() {
                    for place in tiles.offsets[tile] as usize..tiles.offsets[tile + 1] as usize {
                        for (number, slot) in lists.slots.iter().enumerate() {
                            let local = lists.local(place, number);
                            let target = (local != NOWHERE).then(|| lists.of(tile)[usize::from(local)]);
                            assert_eq!(target, slot.target(&mesh, tiles.elements[place] as usize), "seed {seed}");
                        }
                    }
                }
            }
            let statistics = tiles.statistics(&mesh);
            assert_eq!(statistics.computed, times.iter().sum::<usize>());
            assert_eq!(statistics.repeated, times.iter().filter(|&&times| times > 1).count());
            assert_eq!(statistics.elements, times.iter().filter(|&&times| times > 0).count());
        }
        assert!(tiles_in_all > 500, "{tiles_in_all}");
    }

    #[test]
    fn edges_between_tiles_are_computed_twice() {
        // Four rows of eight cells, a tile each: 7 edges in each row, and 8 between any two.
        let mesh = sample::quads(8, 4);
        let tiles = Tiles::new(&mesh, &Slot::all(&mesh, 1), &Slot::all(&mesh, 0), Cut::Every(8), None).unwrap();
        let statistics = tiles.statistics(&mesh);
        assert_eq!((statistics.tiles, statistics.elements, statistics.repeated), (4, 28 + 24, 24));
        assert_eq!((statistics.computed, statistics.most_elements, statistics.most_entries), (28 + 48, 23, 4));
        assert_eq!(statistics.reads[0].longest, 18);
        assert_eq!(tiles.shared_memory(32, &[16]), 23 * 32 + 18 * 16);
    }

    #[test]
    fn a_tile_too_large_is_refused() {
        let set = |name: &str, size| Set { name: name.to_owned(), size };
        let map = Map { name: "m".to_owned(), from: 0, to: 1, arity: 2, table: (0..80_000).collect() };
        let mesh = Mesh { sets: vec![set("a", 40_000), set("b", 80_000)], maps: vec![map], ..Mesh::default() };
        let tiles = |size| Tiles::new(&mesh, &Slot::all(&mesh, 0), &[], Cut::Every(size), None);
        assert_eq!(tiles(65_534).map(|tiles| tiles.count()).unwrap(), 2);
        let map = Map { name: "m".to_owned(), from: 0, to: 1, arity: 2, table: vec![0; 80_000] };
        let mesh = Mesh { maps: vec![map], ..mesh.clone() };
        let error = Tiles::new(&mesh, &Slot::all(&mesh, 0), &[], Cut::Every(1), None).unwrap_err();
        let message = "40000 elements of 2 slots lead to the `b` elements of a tile: more than numbers of 16 bits";
        assert_eq!(error.to_string(), format!("{message}\n  help: take smaller tiles"));
    }
}
