//! Lists of what groups of elements lead to: what a block of threads keeps in shared memory.

use super::Mesh;
use super::slots::{Slot, common_source};
use crate::error::{Error, Result};
use rayon::prelude::*;
use serde::Serialize;

/// The local number of a hole.
pub const NOWHERE: u16 = u16::MAX;

/// How a set is cut into blocks of elements, or of targets, with consecutive numbers.
#[derive(Clone, Copy, Debug)]
pub enum Cut<'a> {
    /// Into blocks of this size; the last may be smaller.
    Every(usize),
    /// Where blocks begin, and at last where all end: those of an [`super::order::Ordering`] by partition.
    At(&'a [u32]),
}

impl Cut<'_> {
    /// Where blocks begin, of a set of this size, and at last where all end.
    ///
    /// # Errors
    /// A size is 0 or above 65535, or the cuts do not go from 0 to the size of the set.
    pub fn starts(&self, size: usize) -> Result<Vec<u32>> {
        let starts: Vec<u32> = match *self {
            Cut::Every(0) => return Err(Error::call("a block of no elements")),
            Cut::Every(block) => (0..size).step_by(block).chain([size]).map(|start| start as u32).collect(),
            Cut::At(starts) => starts.to_vec(),
        };
        let ends = (starts.first().copied(), starts.last().map(|&end| end as usize));
        if ends != (Some(0), Some(size)) || !starts.is_sorted() {
            return Err(Error::call(format!("the cuts of a set of {size} elements do not go from 0 to {size}")));
        }
        match starts.windows(2).map(|ends| ends[1] - ends[0]).find(|&block| block >= u32::from(NOWHERE)) {
            None => Ok(starts),
            Some(block) => Err(Error::call(format!("a block of {block} elements is too large for numbers of 16 bits"))),
        }
    }
}

/// The distinct elements of a set that groups of elements lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists {
    /// The number of the set.
    pub set: usize,
    /// The slots that lead to it, each once.
    pub slots: Vec<Slot>,
    /// Where the list of each group begins, and at last where all end.
    pub offsets: Vec<u32>,
    /// The lists, each in the order of the numbers in the set.
    pub targets: Vec<u32>,
    /// For each element of each group and each slot, the place in the group's list where it leads, or [`NOWHERE`].
    pub local: Vec<u16>,
}

/// What lists come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The name of the set.
    pub set: String,
    /// How often elements lead there.
    pub uses: usize,
    /// How many entries lists have.
    pub entries: usize,
    /// Uses of an entry: how often what is loaded once is read.
    pub reuse: f64,
    /// Entries of the longest list.
    pub longest: usize,
}

impl Lists {
    /// Lists for groups of elements, one for each set that slots lead to, in the order in which slots name them. Group `g`
    /// has the elements `elements[starts[g]..starts[g + 1]]`.
    ///
    /// # Errors
    /// The slots are of elements of several sets, or a group leads to more than 65535 elements.
    pub fn new(mesh: &Mesh, slots: &[Slot], starts: &[u32], elements: &[u32]) -> Result<Vec<Self>> {
        let mut by_set: Vec<(usize, Vec<Slot>)> = Vec::new();
        if !slots.is_empty() {
            common_source(mesh, slots)?;
        }
        for &slot in slots {
            let to = mesh.maps[slot.map].to;
            match by_set.iter_mut().find(|(set, _)| *set == to) {
                Some((_, slots)) if slots.contains(&slot) => {}
                Some((_, slots)) => slots.push(slot),
                None => by_set.push((to, vec![slot])),
            }
        }
        by_set.into_iter().map(|(set, slots)| Self::of_set(mesh, set, slots, starts, elements)).collect()
    }

    fn of_set(mesh: &Mesh, set: usize, slots: Vec<Slot>, starts: &[u32], elements: &[u32]) -> Result<Self> {
        let group = |ends: &[u32]| {
            let elements = &elements[ends[0] as usize..ends[1] as usize];
            let targets = || {
                elements.iter().flat_map(|&element| slots.iter().map(move |slot| slot.target(mesh, element as usize)))
            };
            let mut list: Vec<u32> = targets().flatten().collect();
            list.sort_unstable();
            list.dedup();
            let place = |target| list.binary_search(&target).map_or(NOWHERE, |place| place as u16);
            let local: Vec<u16> = targets().map(|target| target.map_or(NOWHERE, place)).collect();
            (list, local)
        };
        let groups: Vec<(Vec<u32>, Vec<u16>)> = starts.par_windows(2).map(group).collect();
        if let Some((list, _)) = groups.iter().find(|(list, _)| list.len() > usize::from(NOWHERE)) {
            let (name, many) = (&mesh.sets[set].name, list.len());
            return Err(Error::call(format!(
                "a block leads to {many} elements of `{name}`: at most 65535 have local numbers"
            ))
            .help("take smaller blocks"));
        }
        let mut lists = Self { set, slots, offsets: vec![0], targets: Vec::new(), local: Vec::new() };
        for (list, local) in groups {
            lists.targets.extend(list);
            lists.local.extend(local);
            lists.offsets.push(lists.targets.len() as u32);
        }
        Ok(lists)
    }

    /// The list of a group.
    pub fn of(&self, group: usize) -> &[u32] {
        &self.targets[self.offsets[group] as usize..self.offsets[group + 1] as usize]
    }

    /// Where an element leads: `place` is its place among the elements of all groups, `slot` that among [`Lists::slots`].
    pub fn local(&self, place: usize, slot: usize) -> u16 {
        self.local[place * self.slots.len() + slot]
    }

    /// For each entry, whether the list of another group has the same element of the set, which has `size`.
    pub fn is_shared(&self, size: usize) -> Vec<bool> {
        let mut lists = vec![0_u32; size];
        self.targets.iter().for_each(|&target| lists[target as usize] += 1);
        self.targets.iter().map(|&target| lists[target as usize] > 1).collect()
    }

    /// Entries of the longest list.
    pub fn longest(&self) -> usize {
        self.offsets.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0)
    }

    /// What they come to; nothing is reused where there is nothing.
    pub fn statistics(&self, mesh: &Mesh) -> Statistics {
        let uses = self.local.iter().filter(|&&local| local != NOWHERE).count();
        Statistics {
            set: mesh.sets[self.set].name.clone(),
            uses,
            entries: self.targets.len(),
            reuse: uses as f64 / self.targets.len().max(1) as f64,
            longest: self.longest(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Map, Set};

    #[test]
    fn cuts_are_checked() {
        assert_eq!(Cut::Every(3).starts(7).unwrap(), [0, 3, 6, 7]);
        assert_eq!(Cut::Every(3).starts(6).unwrap(), [0, 3, 6]);
        assert_eq!(Cut::Every(3).starts(0).unwrap(), [0]);
        assert_eq!(Cut::At(&[0, 2, 2, 7]).starts(7).unwrap(), [0, 2, 2, 7]);
        let fails = |cut: Cut, size| cut.starts(size).unwrap_err().message;
        assert_eq!(fails(Cut::Every(0), 7), "a block of no elements");
        assert_eq!(fails(Cut::Every(70_000), 70_000), "a block of 70000 elements is too large for numbers of 16 bits");
        for starts in [&[][..], &[1, 7], &[0, 6], &[0, 5, 4, 7]] {
            assert_eq!(fails(Cut::At(starts), 7), "the cuts of a set of 7 elements do not go from 0 to 7");
        }
    }

    #[test]
    fn a_list_too_long_is_refused() {
        let set = |name: &str, size| Set { name: name.to_owned(), size };
        let map = Map { name: "m".to_owned(), from: 0, to: 1, arity: 2, table: (0..80_000).collect() };
        let mesh = Mesh { sets: vec![set("a", 40_000), set("b", 80_000)], maps: vec![map], ..Mesh::default() };
        let elements: Vec<u32> = (0..40_000).collect();
        let lists = |starts: &[u32]| Lists::new(&mesh, &Slot::all(&mesh, 0), starts, &elements);
        let message =
            "a block leads to 80000 elements of `b`: at most 65535 have local numbers\n  help: take smaller blocks";
        assert_eq!(lists(&[0, 40_000]).unwrap_err().to_string(), message);
        assert_eq!(lists(&[0, 20_000, 40_000]).unwrap()[0].of(1)[..2], [40_000, 40_001]);
    }
}
