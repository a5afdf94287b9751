//! Hierarchical colouring: blocks of elements keep what they lead to in shared memory. Threads of a block add to it colour
//! after colour, and blocks of one colour, which share no target, write it back at the same time.
//!
//! After A. Sulyok and others, "Locality Optimized Unstructured Mesh Algorithms on GPUs", 2019, section 2.2.

use super::Mesh;
use super::colour::{Colouring, greedy};
use super::lists::{self, Cut, Lists, NOWHERE};
use super::slots::{Slot, common_source};
use crate::error::Result;
use rayon::prelude::*;
use serde::Serialize;

/// A set's elements in blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Where blocks begin, and at last where all end: block `b` has the elements with the numbers
    /// `starts[b]..starts[b + 1]`, and they stand at these places of [`Blocks::elements`].
    pub starts: Vec<u32>,
    /// Elements of each block, by their colour in the block, and of one colour in the order of their numbers.
    pub elements: Vec<u32>,
    /// The colour of each, in this order.
    pub thread_colours: Vec<u16>,
    /// How many colours each block has.
    pub colours: Vec<u16>,
    /// The sets that elements lead to. Elements are in the order of [`Blocks::elements`].
    pub lists: Vec<Lists>,
    /// The colours of blocks.
    pub blocks: Colouring,
}

/// What blocks come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// How many blocks there are.
    pub blocks: usize,
    /// Colours of blocks.
    pub block_colours: usize,
    /// Colours of threads, in the block that has the most.
    pub most_thread_colours: usize,
    /// Colours of threads, on average.
    pub mean_thread_colours: f64,
    /// What lists come to, set by set.
    pub lists: Vec<lists::Statistics>,
}

impl Blocks {
    /// Cuts the elements of a set into blocks and colours them. No two threads of a colour, and no two blocks, share a target
    /// through the slots that `increments` go through; what is only read needs no colours, and has lists as well.
    ///
    /// # Errors
    /// The slots are of elements of several sets, the cuts are none of the set, or a block is too large for local numbers.
    pub fn new(mesh: &Mesh, increments: &[Slot], reads: &[Slot], cut: Cut) -> Result<Self> {
        let slots = [increments, reads].concat();
        let set = &mesh.sets[common_source(mesh, &slots)?];
        let starts = cut.starts(set.size)?;
        let in_order: Vec<u32> = (0..set.size as u32).collect();
        let incremented = Lists::new(mesh, increments, &starts, &in_order)?;
        let block = |number: usize| thread_colours(&incremented, number, starts[number]..starts[number + 1]);
        let colourings: Vec<Colouring> = (0..starts.len() - 1).into_par_iter().map(block).collect();
        let (mut elements, mut thread_colours) = (Vec::with_capacity(set.size), Vec::with_capacity(set.size));
        for (colouring, &start) in colourings.iter().zip(&starts) {
            elements.extend(colouring.elements.iter().map(|&element| start + element));
            thread_colours.extend(colouring.elements.iter().map(|&element| colouring.colours[element as usize] as u16));
        }
        let lists = Lists::new(mesh, &slots, &starts, &elements)?;
        let colours = colourings.iter().map(|colouring| colouring.count() as u16).collect();
        let blocks = block_colours(mesh, &incremented, starts.len() - 1);
        Ok(Self { starts, elements, thread_colours, colours, lists, blocks })
    }

    /// How many blocks there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of shared memory of the largest block, if it keeps so many for each entry of each of its lists.
    pub fn shared_memory(&self, bytes: &[usize]) -> usize {
        let of = |block: usize| self.lists.iter().zip(bytes).map(|(lists, bytes)| lists.of(block).len() * bytes).sum();
        (0..self.count()).map(of).max().unwrap_or(0)
    }

    /// What they come to.
    pub fn statistics(&self, mesh: &Mesh) -> Statistics {
        let sum: usize = self.colours.iter().map(|&colours| usize::from(colours)).sum();
        Statistics {
            blocks: self.count(),
            block_colours: self.blocks.count(),
            most_thread_colours: self.colours.iter().max().map_or(0, |&most| usize::from(most)),
            mean_thread_colours: sum as f64 / self.count().max(1) as f64,
            lists: self.lists.iter().map(|lists| lists.statistics(mesh)).collect(),
        }
    }
}

/// Where each of some lists begins, and the last ends, if they stand one behind the other.
fn firsts(lengths: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut firsts = vec![0];
    firsts.extend(lengths.scan(0, |end, length| {
        *end += length as u32;
        Some(*end)
    }));
    firsts
}

/// Colours the elements of a block, by the local numbers of what they increment.
fn thread_colours(incremented: &[Lists], block: usize, elements: std::ops::Range<u32>) -> Colouring {
    let firsts = firsts(incremented.iter().map(|lists| lists.of(block).len()));
    let start = elements.start as usize;
    Colouring::of(greedy(elements.len(), firsts[incremented.len()] as usize, |element, found| {
        for (lists, first) in incremented.iter().zip(&firsts) {
            let locals = (0..lists.slots.len()).map(|slot| lists.local(start + element, slot));
            found.extend(locals.filter(|&local| local != NOWHERE).map(|local| first + u32::from(local)));
        }
    }))
}

/// Colours blocks by what they increment.
fn block_colours(mesh: &Mesh, incremented: &[Lists], blocks: usize) -> Colouring {
    let firsts = firsts(incremented.iter().map(|lists| mesh.sets[lists.set].size));
    Colouring::of(greedy(blocks, firsts[incremented.len()] as usize, |block, found| {
        for (lists, first) in incremented.iter().zip(&firsts) {
            found.extend(lists.of(block).iter().map(|target| first + target));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::colour::conflict;
    use crate::mesh::sample;

    /// Every slot of a set, divided at random into those of increments and those that are read.
    fn each_sample(check: impl Fn(u64, &Mesh, &[Slot], &[Slot], Cut)) {
        for seed in 0..300 {
            let mesh = sample::random(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            let from = mesh.maps[0].from;
            let of_set = (0..mesh.maps.len()).filter(|&map| mesh.maps[map].from == from);
            let mut slots: Vec<Slot> = of_set.flat_map(|map| Slot::all(&mesh, map)).collect();
            random.shuffle(&mut slots);
            let (increments, reads) = slots.split_at(random.usize(0..=slots.len()));
            let size = mesh.sets[from].size as u32;
            let mut starts: Vec<u32> = (0..random.usize(0..9)).map(|_| random.u32(0..=size)).chain([0, size]).collect();
            starts.sort_unstable();
            let cut = if random.bool() { Cut::At(&starts) } else { Cut::Every(random.usize(1..40)) };
            check(seed, &mesh, increments, reads, cut);
        }
    }

    #[test]
    fn threads_and_blocks_of_one_colour_share_no_target() {
        each_sample(|seed, mesh, increments, reads, cut| {
            let blocks = Blocks::new(mesh, increments, reads, cut).unwrap();
            let mut block_of = vec![0; blocks.elements.len()];
            for block in 0..blocks.count() {
                let range = blocks.starts[block] as usize..blocks.starts[block + 1] as usize;
                let elements = &blocks.elements[range.clone()];
                let mut sorted = elements.to_vec();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(range.start as u32..range.end as u32), "seed {seed}");
                elements.iter().for_each(|&element| block_of[element as usize] = block as u32);
                let keys: Vec<(u16, u32)> =
                    range.map(|place| (blocks.thread_colours[place], blocks.elements[place])).collect();
                assert!(keys.is_sorted(), "seed {seed}");
                assert_eq!(keys.last().map_or(0, |(colour, _)| colour + 1), blocks.colours[block], "seed {seed}");
            }
            if increments.is_empty() {
                assert!(blocks.thread_colours.iter().all(|&colour| colour == 0), "seed {seed}");
                return;
            }
            // All of a block, as if its threads were of one colour; then each colour of each block.
            let mut by_thread = vec![0; blocks.elements.len()];
            for (&element, &colour) in blocks.elements.iter().zip(&blocks.thread_colours) {
                by_thread[element as usize] = block_of[element as usize] * 1000 + u32::from(colour);
            }
            assert_eq!(conflict(mesh, increments, &by_thread).unwrap(), None, "seed {seed}");
            let by_block: Vec<u32> = block_of.iter().map(|&block| blocks.blocks.colours[block as usize]).collect();
            let targets = |element: usize| {
                increments.iter().filter_map(move |slot| Some((mesh.maps[slot.map].to, slot.target(mesh, element)?)))
            };
            let mut seen = std::collections::HashMap::new();
            for (element, &colour) in by_block.iter().enumerate() {
                for target in targets(element) {
                    let block = block_of[element];
                    assert_eq!(*seen.entry((colour, target)).or_insert(block), block, "seed {seed}");
                }
            }
        });
    }

    #[test]
    fn local_numbers_lead_where_maps_lead() {
        each_sample(|seed, mesh, increments, reads, cut| {
            let blocks = Blocks::new(mesh, increments, reads, cut).unwrap();
            assert_eq!(
                blocks.lists.iter().map(|lists| lists.slots.len()).sum::<usize>(),
                increments.len() + reads.len()
            );
            for lists in &blocks.lists {
                for block in 0..blocks.count() {
                    let list = lists.of(block);
                    assert!(list.is_sorted_by(|a, b| a < b), "seed {seed}");
                    let mut used = vec![false; list.len()];
                    for place in blocks.starts[block] as usize..blocks.starts[block + 1] as usize {
                        for (number, slot) in lists.slots.iter().enumerate() {
                            assert_eq!(mesh.maps[slot.map].to, lists.set);
                            let local = lists.local(place, number);
                            let target = (local != NOWHERE).then(|| list[usize::from(local)]);
                            assert_eq!(target, slot.target(mesh, blocks.elements[place] as usize), "seed {seed}");
                            target.iter().for_each(|_| used[usize::from(local)] = true);
                        }
                    }
                    assert!(used.iter().all(|&used| used), "seed {seed}");
                }
                let is_shared = lists.is_shared(mesh.sets[lists.set].size);
                for (entry, target) in lists.targets.iter().enumerate() {
                    let others = lists.targets.iter().filter(|&other| other == target).count();
                    assert_eq!(is_shared[entry], others > 1, "seed {seed}");
                }
            }
        });
    }

    #[test]
    fn squares_in_rows_come_to() {
        // Upright edges of a row of 64 squares, 63 of them, are a chain of cells; nodes are of one edge each.
        let mesh = sample::quads(64, 1);
        let blocks = Blocks::new(&mesh, &Slot::all(&mesh, 1), &Slot::all(&mesh, 0), Cut::Every(21)).unwrap();
        let statistics = blocks.statistics(&mesh);
        assert_eq!((statistics.blocks, statistics.block_colours), (3, 2));
        assert_eq!((statistics.most_thread_colours, statistics.mean_thread_colours), (2, 2.0));
        let [cells, nodes] = &statistics.lists[..] else { panic!("two sets") };
        let lists = |set: &str, uses, entries, longest| lists::Statistics {
            set: set.to_owned(),
            uses,
            entries,
            reuse: uses as f64 / entries as f64,
            longest,
        };
        assert_eq!(cells, &lists("cell", 126, 66, 22));
        assert_eq!(nodes, &lists("node", 126, 126, 42));
        assert_eq!(blocks.shared_memory(&[32, 16]), 22 * 32 + 42 * 16);
    }
}
