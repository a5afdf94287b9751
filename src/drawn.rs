//! Problems whose fields are drawn at random: what `verify`, `bench` and `profile` compute.

use crate::args::{self, Chosen, Pair};
use crate::input::Input;
use std::collections::BTreeMap;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_runtime::Result;
use stencilc_runtime::problem::{Problem, Request};

/// What such a problem is made of.
pub struct Drawn<'a> {
    /// The stencil, as it was lowered.
    pub stencil: &'a Stencil,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// The grid.
    pub grid: &'a Chosen,
    /// Files whose stencils have the same layout.
    pub share: &'a [String],
    /// Parameters that have a value.
    pub set: &'a [Pair],
    /// Of the random numbers.
    pub seed: u64,
}

impl Drawn<'_> {
    /// The problem; `input` is the stencil's file.
    ///
    /// # Errors
    /// The grid is too small, or a parameter or a file does not fit.
    pub fn problem(&self, input: &Input) -> Result<Problem> {
        let mut problem = Problem::new(Request {
            stencil: self.stencil,
            precision: self.precision,
            contract: self.contract,
            grid: self.grid.grid,
            adjacency: self.grid.adjacency.clone(),
            arrays: BTreeMap::new(),
            settings: args::by_name(self.set, "--set")?,
            seed: self.seed,
            cast: false,
            draw_all: true,
        })?;
        if let Some(stencils) = input.sharing(self.share)? {
            problem.share(&stencils, self.contract);
        }
        Ok(problem)
    }
}
