//! Maps the other way round: for each target, who leads to it.

use super::Mesh;
use super::slots::{Slot, common_source, common_target};
use crate::error::{Error, Result};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// For each target, the elements and slots that lead to it, in the order in which increments are added: that of the
/// elements' numbers as the user has them, and within an element that in which the slots are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inverse {
    /// How many slots there are.
    pub slots: usize,
    /// Where the entries of each target begin, and at last where all end.
    pub offsets: Vec<u32>,
    /// An element's number times [`Inverse::slots`] plus the place of the slot among those given.
    pub entries: Vec<u32>,
}

/// An inverse of fixed width, which costs no offsets and makes holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// Entries of a target: as many as the target of most has.
    pub width: usize,
    /// Target after target; [`super::HOLE`] behind the last.
    pub entries: Vec<i32>,
}

/// How many entries targets have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Degrees {
    /// The fewest.
    pub min: usize,
    /// On average.
    pub mean: f64,
    /// The most.
    pub max: usize,
}

impl Inverse {
    /// The inverse of some slots, which may be of several maps; each is given once for each increment that goes through it.
    /// `users[element]` is the number that the user knows an element by, if not its own: the order of its set in
    /// [`super::order::Ordering`].
    ///
    /// # Errors
    /// The slots lead from or to several sets, or are too many for 32 bits.
    pub fn new(mesh: &Mesh, slots: &[Slot], users: Option<&[u32]>) -> Result<Self> {
        let (from, to) = (&mesh.sets[common_source(mesh, slots)?], &mesh.sets[common_target(mesh, slots)?]);
        // Entries are also kept as signed numbers, in rectangles.
        if from.size.saturating_mul(slots.len()) > i32::MAX as usize {
            let message = format!("{} elements of `{}` times {} slots", from.size, from.name, slots.len());
            return Err(Error::input(format!("{message} are too many for entries of 32 bits")));
        }
        let counts: Vec<AtomicU32> = (0..to.size).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        let each = |at: &(dyn Fn(u32, u32) + Sync)| {
            (0..from.size).into_par_iter().for_each(|element| {
                for (place, slot) in slots.iter().enumerate() {
                    if let Some(target) = slot.target(mesh, element) {
                        at(target, (element * slots.len() + place) as u32);
                    }
                }
            });
        };
        each(&|target, _| {
            counts[target as usize].fetch_add(1, Relaxed);
        });
        let mut offsets = Vec::with_capacity(to.size + 1);
        let mut end = 0;
        offsets.push(end);
        for count in &counts {
            // From here on where the next entry goes.
            end += count.swap(end, Relaxed);
            offsets.push(end);
        }
        let entries: Vec<AtomicU32> = (0..end).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        each(&|target, entry| {
            let place = counts[target as usize].fetch_add(1, Relaxed);
            entries[place as usize].store(entry, Relaxed);
        });
        let mut inverse =
            Self { slots: slots.len(), offsets, entries: entries.into_iter().map(AtomicU32::into_inner).collect() };
        inverse.sort(users);
        Ok(inverse)
    }

    /// Threads fill in entries as they come; this puts them in their order.
    fn sort(&mut self, users: Option<&[u32]>) {
        let slots = self.slots as u32;
        let key = |&entry: &u32| match users {
            None => (0, entry),
            Some(users) => (users[(entry / slots) as usize], entry),
        };
        let mut lists = Vec::with_capacity(self.offsets.len() - 1);
        let mut rest = &mut self.entries[..];
        for ends in self.offsets.windows(2) {
            let (list, behind) = rest.split_at_mut((ends[1] - ends[0]) as usize);
            lists.push(list);
            rest = behind;
        }
        lists.into_par_iter().with_min_len(1024).for_each(|list| list.sort_unstable_by_key(key));
    }

    /// How many targets there are.
    pub fn targets(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The entries of a target.
    pub fn of(&self, target: usize) -> &[u32] {
        &self.entries[self.offsets[target] as usize..self.offsets[target + 1] as usize]
    }

    /// The element of an entry.
    pub fn element(&self, entry: u32) -> usize {
        entry as usize / self.slots
    }

    /// The place of an entry's slot among those given.
    pub fn slot(&self, entry: u32) -> usize {
        entry as usize % self.slots
    }

    /// How many entries targets have; zeros where there are no targets.
    pub fn degrees(&self) -> Degrees {
        let degrees = || self.offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
        Degrees {
            min: degrees().min().unwrap_or(0),
            mean: self.entries.len() as f64 / self.targets().max(1) as f64,
            max: degrees().max().unwrap_or(0),
        }
    }

    /// The same with as many entries for each target.
    pub fn rectangle(&self) -> Rectangle {
        let width = self.degrees().max;
        let mut entries = vec![super::HOLE; width * self.targets()];
        if width > 0 {
            entries.par_chunks_mut(width).enumerate().for_each(|(target, row)| {
                row.iter_mut().zip(self.of(target)).for_each(|(to, &entry)| *to = entry as i32);
            });
        }
        Rectangle { width, entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{HOLE, sample};

    /// What the documentation says, in the simplest words.
    fn expected(mesh: &Mesh, slots: &[Slot], users: &[u32]) -> Vec<Vec<(usize, usize)>> {
        let mut lists = vec![Vec::new(); mesh.sets[mesh.maps[slots[0].map].to].size];
        let mut elements: Vec<usize> = (0..users.len()).collect();
        elements.sort_by_key(|&element| users[element]);
        for element in elements {
            for (place, slot) in slots.iter().enumerate() {
                let map = &mesh.maps[slot.map];
                if map.row(element)[slot.slot] != HOLE {
                    lists[map.row(element)[slot.slot] as usize].push((element, place));
                }
            }
        }
        lists
    }

    #[test]
    fn entries_come_in_the_users_order() {
        let mut holes = 0;
        for seed in 0..200 {
            let mesh = sample::random(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            for (number, map) in mesh.maps.iter().enumerate() {
                let mut slots = Slot::all(&mesh, number);
                random.shuffle(&mut slots);
                slots.truncate(random.usize(1..=slots.len()));
                let mut users: Vec<u32> = (0..mesh.sets[map.from].size as u32).collect();
                random.shuffle(&mut users);
                let inverse = Inverse::new(&mesh, &slots, Some(&users)).unwrap();
                let lists: Vec<Vec<(usize, usize)>> = (0..inverse.targets())
                    .map(|target| {
                        inverse.of(target).iter().map(|&entry| (inverse.element(entry), inverse.slot(entry))).collect()
                    })
                    .collect();
                assert_eq!(lists, expected(&mesh, &slots, &users), "seed {seed}, map {number}");
                users.sort_unstable();
                assert_eq!(
                    Inverse::new(&mesh, &slots, Some(&users)).unwrap(),
                    Inverse::new(&mesh, &slots, None).unwrap()
                );

                let (rectangle, degrees) = (inverse.rectangle(), inverse.degrees());
                assert_eq!((rectangle.width, rectangle.entries.len()), (degrees.max, degrees.max * inverse.targets()));
                assert_eq!(degrees.min, lists.iter().map(Vec::len).min().unwrap_or(0));
                holes += rectangle.entries.iter().filter(|&&entry| entry == HOLE).count();
                let filled: Vec<u32> =
                    rectangle.entries.iter().filter(|&&entry| entry != HOLE).map(|&entry| entry as u32).collect();
                assert_eq!(filled, inverse.entries);
            }
        }
        assert!(holes > 1000, "{holes}");
    }

    #[test]
    fn slots_of_several_sets_are_refused() {
        let mesh = sample::quads(2, 2);
        let slot = |set: &str, map: &str| {
            let set = mesh.set_named(set).unwrap();
            Slot { map: mesh.map_named(set, map).unwrap(), slot: 0 }
        };
        let fails = |slots: &[Slot]| Inverse::new(&mesh, slots, None).unwrap_err().message;
        assert_eq!(fails(&[]), "no slot of a map is given");
        assert_eq!(
            fails(&[slot("edge", "cells"), slot("cell", "nodes")]),
            "the maps `edge.cells` and `cell.nodes` are not of one set"
        );
        assert_eq!(
            fails(&[slot("edge", "cells"), slot("edge", "nodes")]),
            "the maps `edge.cells` and `edge.nodes` do not lead to one set"
        );
        assert_eq!(fails(&[Slot { map: 0, slot: 9 }]), "made of 2 x 2 squares has no slot 9 of map 0");
    }
}
