//! The share that a part computes, as a program by itself: what one device would do that had nothing else.

use super::{Cut, Known};
use crate::driver::Script;
use crate::error::Result;
use crate::mesh::program::{MeshProblem, MeshScript};
use stencilc_compiler::mesh::Chain;

impl Cut {
    /// The program over the mesh of a part, with the numbers that its elements are given. What it computes at elements of others may be wrong, and
    /// so is what comes of it: it serves to know how long it takes.
    ///
    /// # Errors
    /// An array is missing.
    pub fn share(&self, part: usize, merges: &dyn Fn(&Chain) -> bool) -> Result<MeshProblem> {
        let known = Known::new(MeshScript::new(&self.whole, merges), self.clone());
        let given = known.script.initial()?;
        let initial = given.into_iter().map(|(id, data)| (id, known.own_of(id, part, data).into_owned())).collect();
        Ok(MeshProblem { initial, ..MeshProblem::clone(&self.parts[part].problem) })
    }

    /// The part that owns the most elements.
    pub fn largest(&self) -> usize {
        (0..self.parts.len()).max_by_key(|&part| self.parts[part].owned()).unwrap_or(0)
    }
}
