//! The tables that kernels of increments take, made of a mesh.

use super::pieces::Pieces;
use crate::mesh::colour::{Colouring, colour};
use crate::mesh::inverse::Inverse;
use crate::mesh::slots::Slot;
use crate::mesh::{Bound, HOLE, Map, Mesh, Set};
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use stencilc_compiler::ir::Path;
use stencilc_compiler::kernel::MeshTable;
use stencilc_compiler::mesh::{Cut, Degrees, Dictionary, Group};

/// Who leads to which target, along the paths of a group.
pub struct InverseMap {
    /// A mesh of one map: from an element along each path.
    mesh: Mesh,
    /// The first element, where those of some zones alone lead anywhere; its number in `mesh` is 0.
    first: usize,
    paths: Vec<Path>,
    inverse: Inverse,
}

impl InverseMap {
    /// Those who add lead along the paths of a group to its targets. `users` are the user's numbers of the elements of their set, in whose
    /// order things are added.
    ///
    /// # Errors
    /// There are too many.
    pub fn new(bound: &Bound, group: &Group, users: &[u32]) -> Result<Self> {
        let Group { from, target, paths, .. } = group;
        let Range { start: first, end } = bound.range(*from, group.zones);
        let (elements, arity) = (end - first, paths.len());
        let mut table = vec![HOLE; elements * arity];
        table.par_chunks_mut(arity).enumerate().for_each(|(element, row)| {
            for (to, path) in row.iter_mut().zip(paths) {
                *to = bound.walk((first + element) as i32, path.hops());
            }
        });
        let set = |name: &str, size| Set { name: name.to_owned(), size };
        let mesh = Mesh {
            origin: "increments".to_owned(),
            sets: vec![set("elements", elements), set("targets", bound.size(*target))],
            maps: vec![Map { name: "paths".to_owned(), from: 0, to: 1, arity, table }],
            fields: Vec::new(),
        };
        let inverse = Inverse::new(&mesh, &Slot::all(&mesh, 0), Some(&users[first..end]))?;
        Ok(Self { mesh, first, paths: paths.to_vec(), inverse })
    }

    /// How many elements lead to a target.
    pub fn degrees(&self) -> Degrees {
        let degrees = self.inverse.degrees();
        let led_to = self.led_to().len();
        let share = led_to as f64 / self.inverse.targets().max(1) as f64;
        Degrees { mean: self.inverse.entries.len() as f64 / led_to.max(1) as f64, max: degrees.max, share }
    }

    /// The targets to which any element leads.
    pub(super) fn led_to(&self) -> Vec<i32> {
        (0..self.inverse.targets()).filter(|&target| !self.inverse.of(target).is_empty()).map(|n| n as i32).collect()
    }

    /// How many targets a kernel has that takes those to which any element leads.
    pub fn targets(&self) -> usize {
        self.led_to().len()
    }

    /// How many targets there are, whether any element leads to them or not.
    pub fn all_targets(&self) -> usize {
        self.inverse.targets()
    }

    /// Whether any element leads to one target along several paths.
    pub fn repeats(&self) -> bool {
        let repeats = |target: usize| {
            let entries = self.inverse.of(target);
            entries.windows(2).any(|two| self.inverse.element(two[0]) == self.inverse.element(two[1]))
        };
        (0..self.inverse.targets()).into_par_iter().any(repeats)
    }

    /// How many elements lead to a target, along any path, added up over all targets.
    pub fn count(&self) -> usize {
        self.inverse.entries.len()
    }

    /// Who leads to a target: an element's number times the number of paths, plus the number of the path.
    pub fn entries(&self, target: usize) -> impl Iterator<Item = u32> {
        self.inverse.of(target).iter().map(|&entry| self.entry(entry))
    }

    /// The element of an entry of the inverse.
    fn element(&self, entry: u32) -> usize {
        self.first + self.inverse.element(entry)
    }

    /// An entry of the inverse, by the element's own number.
    fn entry(&self, entry: u32) -> u32 {
        (self.first * self.paths.len()) as u32 + entry
    }

    /// Those who lead somewhere, in pieces, as `cut` says; where an ordering has parts of what is cut, each by itself.
    ///
    /// # Errors
    /// Those of [`Pieces::new`].
    pub(super) fn pieces(&self, cut: Cut, users: &[u32], parts: Option<&[u32]>) -> Result<Pieces> {
        let size = self.mesh.sets[0].size;
        let users = &users[self.first..self.first + size];
        // Parts of elements are those of all of their set, of which these are some.
        let own: Vec<u32>;
        let parts = match (parts, cut) {
            (Some(parts), Cut::Blocks { .. }) => {
                let (first, end) = (self.first as u32, (self.first + size) as u32);
                own = parts.iter().map(|start| (*start).clamp(first, end) - first).collect();
                Some(own.as_slice())
            }
            (parts, _) => parts,
        };
        Ok(Pieces::new(&self.mesh, cut, users, parts)?.counted_from(self.first as u32))
    }

    /// The elements that lead to a target, each as often as it does.
    pub fn elements(&self, target: usize) -> impl Iterator<Item = usize> {
        self.inverse.of(target).iter().map(|&entry| self.element(entry))
    }

    /// Elements by colours: no two of one lead to the same target.
    ///
    /// # Errors
    /// There are too many.
    pub fn colours(&self) -> Result<Colouring> {
        let mut colouring = colour(&self.mesh, &Slot::all(&self.mesh, 0))?;
        colouring.elements.iter_mut().for_each(|element| *element += self.first as u32);
        Ok(colouring)
    }

    /// A table. Kernels that are sparse have rows of the targets to which any element leads.
    ///
    /// # Errors
    /// It does not fit 32 bits.
    pub fn table(&self, table: &MeshTable, bound: &Bound, is_sparse: bool, in_rows: bool) -> Result<Vec<i32>> {
        let narrow =
            |n: usize| i32::try_from(n).map_err(|_| Error::input("the mesh is too large for tables of 32 bits"));
        let rows = || self.rows(is_sparse);
        Ok(match table {
            MeshTable::Targets => self.led_to(),
            MeshTable::Coloured => self.colours()?.elements.iter().map(|&element| element as i32).collect(),
            MeshTable::Offsets => {
                let mut offsets = Vec::new();
                for target in self.rows(is_sparse) {
                    offsets.push(narrow(self.inverse.offsets[target] as usize)?);
                }
                offsets.push(narrow(self.inverse.entries.len())?);
                offsets
            }
            MeshTable::Entries => self.each(is_sparse, in_rows, |entry| self.entry(entry) as i32),
            MeshTable::Others => self.each(is_sparse, in_rows, |entry| {
                let (element, place) = (self.element(entry), self.inverse.slot(entry));
                let other = bound.walk(element as i32, self.paths[1 - place].hops());
                if place == 0 { other } else { -2 - other }
            }),
            MeshTable::Dictionary(paths) => {
                let width = self.distinct_ends(bound, paths);
                let mut table = vec![HOLE; rows().len() * width];
                table.par_chunks_mut(width.max(1)).zip(rows()).for_each(|(row, target)| {
                    let entries = self.distinct_ends_of(bound, paths, target);
                    // Entries that nobody takes are looked up, too.
                    let last = entries.last().copied().unwrap_or(0);
                    row.iter_mut()
                        .zip(entries.into_iter().chain(std::iter::repeat(last)))
                        .for_each(|(to, entry)| *to = entry);
                });
                table
            }
            MeshTable::Codes(paths) => {
                let shape = self.shape(bound, paths);
                let mut table = vec![0; rows().len() * shape.words()];
                table.par_chunks_mut(shape.words().max(1)).zip(rows()).for_each(|(row, target)| {
                    let entries = self.distinct_ends_of(bound, paths, target);
                    for (place, &entry) in self.inverse.of(target).iter().enumerate() {
                        for (number, path) in paths.iter().enumerate() {
                            let end = bound.walk(self.element(entry) as i32, path.hops());
                            let entry = entries.iter().position(|&entry| entry == end).unwrap_or(0);
                            let (word, bit) = shape.at(place, number);
                            row[word] |= ((entry as u32) << bit) as i32;
                        }
                    }
                });
                // Half words lie two and two.
                let pair = |pair: &[i32]| pair[0] | pair.get(1).unwrap_or(&0) << 16;
                if shape.is_short() { table.chunks(2).map(pair).collect() } else { table }
            }
            MeshTable::Leaf(path) => {
                self.each(is_sparse, in_rows, |entry| bound.walk(self.element(entry) as i32, path.hops()))
            }
        })
    }

    /// How many different elements a target's lead on to along paths, at most.
    pub fn distinct_ends(&self, bound: &Bound, paths: &[Path]) -> usize {
        let targets = (0..self.inverse.targets()).into_par_iter();
        targets.map(|target| self.distinct_ends_of(bound, paths, target).len()).max().unwrap_or(0)
    }

    /// The shape of entries for paths, and of the words that name them.
    pub fn shape(&self, bound: &Bound, paths: &[Path]) -> Dictionary {
        Dictionary { entries: self.distinct_ends(bound, paths), paths: paths.len(), places: self.inverse.degrees().max }
    }

    /// The different elements to which paths lead from those of a target, as they come.
    fn distinct_ends_of(&self, bound: &Bound, paths: &[Path], target: usize) -> Vec<i32> {
        let mut entries = Vec::new();
        for &entry in self.inverse.of(target) {
            for path in paths {
                let end = bound.walk(self.element(entry) as i32, path.hops());
                if !entries.contains(&end) {
                    entries.push(end);
                }
            }
        }
        entries
    }

    /// The targets that have rows. Of those that no element leads to, offsets have nothing.
    fn rows(&self, is_sparse: bool) -> Vec<usize> {
        let all = 0..self.inverse.targets();
        all.filter(|&target| !is_sparse || !self.inverse.of(target).is_empty()).collect()
    }

    /// Something of each entry: in rows of equal length, or one after the other.
    fn each(&self, is_sparse: bool, in_rows: bool, value: impl Fn(u32) -> i32 + Sync) -> Vec<i32> {
        if !in_rows {
            return self.inverse.entries.par_iter().map(|&entry| value(entry)).collect();
        }
        let (rows, width) = (self.rows(is_sparse), self.inverse.degrees().max);
        let mut table = vec![HOLE; rows.len() * width];
        table.par_chunks_mut(width.max(1)).zip(&rows).for_each(|(row, &target)| {
            row.iter_mut().zip(self.inverse.of(target)).for_each(|(to, &entry)| *to = value(entry));
        });
        table
    }
}
