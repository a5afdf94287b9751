//! Problems whose fields are drawn at random: what `verify`, `bench` and `profile` compute.

use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::args::{self, Chosen, Pair};
use crate::input::Input;
use std::collections::BTreeMap;
use stencilc_compiler::ir::{MeshProgram, Precision, Stencil};
use stencilc_runtime::mesh::program::{MeshProblem, Request as MeshRequest};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::{Cast, Drawing, Error, Result, mesh};

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
            cast: Cast::Exact,
            drawing: Drawing::Everything,
        })?;
        if let Some(stencils) = input.sharing(self.share)? {
            problem.share(&stencils, self.contract);
        }
        Ok(problem)
    }
}

/// The options about stencils that also make sense over meshes.
const OVER_MESHES: [&str; 16] = [
    "file",
    "files",
    "stencil",
    "precision",
    "levels",
    "set",
    "seed",
    "device",
    "contract",
    "json",
    "mesh",
    "strategy",
    "vectors",
    "order",
    "lead",
    "threads",
];

/// A problem over a mesh whose fields come with the mesh, or are drawn at random.
pub struct DrawnOver<'a> {
    /// The program, as it was lowered; of a stencil, one that calls it once.
    pub program: &'a MeshProgram,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// The mesh.
    pub over: &'a MeshArgs,
    /// How many levels there are, if the mesh has any.
    pub levels: Option<usize>,
    /// Parameters that have a value.
    pub set: &'a [Pair],
    /// Of the random numbers.
    pub seed: u64,
}

impl DrawnOver<'_> {
    /// The problem.
    ///
    /// # Errors
    /// There is no mesh, or it is another than the program's; or a parameter does not fit.
    pub fn problem(&self) -> Result<MeshProblem> {
        let path = self.over.file(&self.program.program.name, &self.program.mesh.name)?;
        MeshProblem::new(MeshRequest {
            program: self.program,
            precision: self.precision,
            contract: self.contract,
            mesh: mesh::load(path)?,
            levels: self.levels,
            arrays: BTreeMap::new(),
            settings: args::by_name(self.set, "--set")?,
            seed: self.seed,
            cast: Cast::Rounded,
            drawing: Drawing::Everything,
        })
    }
}

/// Whether an option was given that is about grids; `others` are options of the command itself.
pub fn is_of_grids(names: &Names, others: &[&str]) -> bool {
    names.beside(&[OVER_MESHES.as_slice(), others].concat()).is_some()
}

/// Refuses options that are about grids, of a command that is about a stencil over a mesh; `others` are options of the command itself.
///
/// # Errors
/// One was given.
pub fn refuse_of_grids(names: &Names, others: &[&str], stencil: &str) -> Result<()> {
    match names.beside(&[OVER_MESHES.as_slice(), others].concat()) {
        Some(option) => {
            let error = Error::call(format!("{option} is for grids, and `{stencil}` runs over a mesh"));
            Err(error.help(match option.as_str() {
                "--plot" | "--animate" => "--vtu FILE writes all outputs with the mesh, for ParaView",
                _ => "leave it out",
            }))
        }
        None => Ok(()),
    }
}
