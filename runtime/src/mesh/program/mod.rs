//! Programs over meshes: on the CPU, and on machines.
//!
//! A [`Driver`](crate::driver::Driver) does what a program says ([`MeshScript`]). What it asks to be computed, a
//! [`Backend`](crate::driver::Backend) computes: the interpreter ([`cpu`]), which is the meaning, or kernels ([`kernels`]).

pub mod cpu;
mod fold;
pub mod kernels;
mod live;
pub mod measure;
mod model;
mod moving;
mod numbers;
mod outline;
pub mod parts;
mod pieces;
mod request;
mod script;
mod tables;
pub mod test;
mod unwritten;
pub mod ways;
mod written;

use super::{Bound, Mesh};
use crate::array::{Data, Element};
use crate::interpreter::mesh::len;
use crate::problem::element_of;
use crate::{Error, Result};
use live::Step;
use numbers::Scope;
use std::collections::BTreeMap;
use std::ops::Range;
use stencilc_compiler::analysis::levels::{Known, computed};
use stencilc_compiler::analysis::moving::{There, check_said};
use stencilc_compiler::ir::called;
use stencilc_compiler::ir::mesh::MeshProgram;
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{
    Body, FieldId, Handle, Levels, MeshStencil, Node, Place, Precision, Role, Stencil, VariableId, Verify,
};
use stencilc_compiler::mesh::Chain;
use stencilc_compiler::plan::prepare;

pub use model::Binding;
pub use outline::{Outline, is_internal};
pub use request::Request;
pub use script::MeshScript;
pub use unwritten::Unwritten;

/// A program over a mesh and the numbers to compute with, all checked.
#[derive(Clone, Debug)]
pub struct MeshProblem {
    /// The program; its stencils are contracted and folded.
    pub program: MeshProgram,
    /// What it does, and which variables nobody looks at after that.
    pub(crate) steps: Vec<Step>,
    /// Calls that one kernel can compute. Their numbers come after those of the program's stencils.
    pub chains: Vec<Chain>,
    /// What `real` is.
    pub precision: Precision,
    /// How many levels there are; 1 of a mesh without.
    pub levels: usize,
    /// The mesh as it was given, with the fields that came with it.
    pub mesh: Mesh,
    /// Its sets and maps, as the program declares them.
    pub bound: Bound,
    /// A value for each parameter of the program's numbers.
    pub params: Vec<Value>,
    /// What declared variables hold before the first step.
    pub initial: BTreeMap<VariableId, Data>,
    /// Names of inputs that were drawn at random.
    pub drawn: Vec<String>,
    /// Names of inputs that came with the mesh.
    pub came_along: Vec<String>,
}

impl MeshProblem {
    /// The stencils of a call, which have fields and parameters in common: one, or those of a chain.
    pub fn stages(&self, number: usize) -> &[MeshStencil] {
        match number.checked_sub(self.program.stencils.len()) {
            Some(chain) => &self.chains[chain].stages,
            None => std::slice::from_ref(&self.program.stencils[number]),
        }
    }

    /// The chain that a call stands for.
    pub(crate) fn chain(&self, call: &Call) -> &Chain {
        &self.chains[call.stencil - self.program.stencils.len()]
    }

    /// Whether a field of a call has no array, since it goes from one stencil of a chain to another.
    pub fn is_internal(&self, number: usize, field: FieldId) -> bool {
        let chain = number.checked_sub(self.program.stencils.len());
        chain.is_some_and(|chain| self.chains[chain].internal.contains(&field))
    }

    /// Whether a call computes a field without an array: one that goes from one stencil of a chain to another, and begins there.
    pub(crate) fn is_passed_on(&self, call: &Call, field: FieldId) -> bool {
        let begins = match self.stages(call.stencil)[0].stencil.fields[field].role {
            Role::Out => true,
            Role::Inc => call.fields[field.index()].read.is_none(),
            Role::In | Role::InOut | Role::Carried | Role::Reduce => false,
        };
        begins && self.is_internal(call.stencil, field)
    }

    /// The levels that a call computes.
    ///
    /// # Errors
    /// There are none.
    pub fn computed(&self, number: usize, params: &[Value]) -> Result<Range<usize>> {
        computed_by(self.stages(number), self.precision, self.levels, params)
    }

    /// The same problem with another program, which has the same declared variables and numbers, by the same handles.
    pub(crate) fn with_program(self, program: &MeshProgram, contract: bool) -> Self {
        let Outline { program, steps, chains, .. } = Outline::new(program, self.precision, contract);
        Self { program, steps, chains, ..self }
    }

    /// How often each outermost loop is run; nothing where that depends on numbers that are computed on the way.
    pub fn times(&self) -> Vec<Option<i64>> {
        let loops =
            self.steps.iter().filter_map(|step| if let Step::Repeat { times, .. } = step { Some(times) } else { None });
        loops.map(|times| self.known_times(times)).collect()
    }

    /// How often a loop is run; nothing where that depends on numbers that are computed on the way.
    fn known_times(&self, times: &Body) -> Option<i64> {
        let scope =
            Scope { program: &self.program, precision: self.precision, levels: self.levels, params: &self.params };
        match scope.reads(times).is_empty().then(|| scope.value(times, &mut |_| Ok(Value::Int(0)))) {
            Some(Ok(Value::Int(times))) => Some(i64::from(times)),
            _ => None,
        }
    }

    /// The same problem, whose outermost loops are run so often.
    pub fn with_times(mut self, times: i32) -> Self {
        let count = |own: &Body| {
            let mut body = Body::new();
            body.add(Node::Int(times), stencilc_compiler::ir::Kind::Int, own.span_of(own.root()));
            body
        };
        for step in &mut self.steps {
            if let Step::Repeat { times, .. } = step {
                *times = count(times);
            }
        }
        self
    }

    /// How many numbers a variable's array has, and the lengths of its axes.
    pub fn len(&self, variable: VariableId) -> usize {
        len(self.program.program.variables[variable].place, &self.bound, self.levels)
    }

    /// The lengths of the axes of a variable's array, slowest first: levels, elements, slots, parts.
    pub fn shape(&self, variable: VariableId) -> Vec<usize> {
        shape(self.program.program.variables[variable].place, &self.bound, self.levels)
    }

    /// The type of the elements of a variable's array.
    pub fn element(&self, variable: VariableId) -> Element {
        element_of(self.program.program.variables[variable].stored, self.precision)
    }

    /// A fresh array for a variable: NaN, 0 or false.
    pub fn fresh(&self, variable: VariableId) -> Data {
        Data::fresh(self.element(variable), self.len(variable))
    }

    /// Its declared variables that are written.
    pub fn outputs(&self) -> impl Iterator<Item = VariableId> {
        let variables = self.program.program.variables.iter();
        variables.filter(|(_, own)| own.role.is_some_and(Role::is_written)).map(|(id, _)| id)
    }

    /// Whether a variable is a single number.
    pub fn is_number(&self, variable: VariableId) -> bool {
        self.program.numbers.contains(&variable)
    }
}

/// The lengths of the axes of a field's array, slowest first: levels, elements, slots, parts.
pub fn shape(place: Place, mesh: &Bound, levels: usize) -> Vec<usize> {
    let mut shape = Vec::new();
    if place.levels != Levels::None {
        shape.push(place.levels.count(levels));
    }
    if let Some(home) = place.home {
        shape.push(mesh.size(home.set));
        if home.map.is_some() {
            shape.push((home.width / home.parts) as usize);
        }
        if home.parts > 1 {
            shape.push(home.parts as usize);
        }
    }
    shape
}

/// The levels that the stencils of a call compute of so many.
pub(crate) fn computed_by(
    stages: &[MeshStencil],
    precision: Precision,
    levels: usize,
    params: &[Value],
) -> Result<Range<usize>> {
    if !stages[0].mesh.levels {
        return Ok(0..1);
    }
    // All stencils of a chain compute all levels: of those behind the first only what they read there may be wrong.
    let first = computed(&stages[0].stencil, precision, levels, params)?;
    for own in &stages[1..] {
        let known = Known::new(&own.stencil, precision, levels, params);
        check_said(&own.stencil, (&known, true), first.clone(), There::default())?;
    }
    Ok(first)
}

/// A stencil as a program that calls it once.
pub fn alone(stencil: &MeshStencil) -> MeshProgram {
    called_once(stencil, false)
}

/// A stencil as a program that calls it once; what it adds to is left out, and starts from 0.
pub fn alone_from_zero(stencil: &MeshStencil) -> MeshProgram {
    called_once(stencil, true)
}

fn called_once(stencil: &MeshStencil, from_zero: bool) -> MeshProgram {
    let (program, numbers) = called::once(&stencil.stencil, from_zero);
    MeshProgram { program, stencils: vec![stencil.clone()], mesh: stencil.mesh.clone(), numbers, sizes: Vec::new() }
}

/// A stencil with its multiply-adds formed and its constants folded, without what it prints: that is computed by stencils of its own
/// ([`MeshProgram::with_prints`]).
pub fn prepared(stencil: &MeshStencil, precision: Precision, contract: bool) -> MeshStencil {
    let silent = Stencil { prints: Vec::new(), ..stencil.stencil.clone() };
    stencil.with(prepare(&silent, precision, contract)).verified("preparing")
}

/// What is wrong with a program, as an error.
fn wrong(message: String) -> Error {
    Error::input(message)
}
