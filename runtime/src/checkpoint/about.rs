//! What a checkpoint is of, and whether a program can go on from it.

use super::damaged;
use crate::bench::hash;
use crate::driver::Position;
use crate::error::{Error, Result};
use crate::mesh::program::MeshProblem;
use crate::program::ProgramProblem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::program::{Action, EdgeRule, GridAxis, Side};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, Node, Param, Precision, Program};
use stencilc_compiler::source::Source;

/// What the format calls itself. In the first version, positions were counted in the steps of a plan, so that another went on
/// elsewhere.
pub(super) const FORMAT: &str = "stencilc checkpoint 2";

/// What a checkpoint is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub(super) format: String,
    /// The program's name.
    pub program: String,
    /// The text that it stands in.
    #[serde(flatten)]
    pub text: OfText,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds were formed.
    pub contract: bool,
    /// The extents of the arrays, on a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Grid>,
    /// Over a mesh: which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<OnMesh>,
    /// The values of parameters, as text.
    pub params: BTreeMap<String, String>,
    /// How far the program is, in the actions of its text.
    pub position: Position,
    /// How often outermost loops were run; of grids this follows from the position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// How often the loop is run in all that it is in, where that is not known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repeats: Option<usize>,
    /// Which variable holds which array.
    pub(super) values: Vec<Held>,
    /// The same of numbers, each of which is an array without axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) numbers: Vec<Held>,
}

/// A text, as a checkpoint knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfText {
    /// A hash of it.
    #[serde(rename = "source")]
    pub hash: String,
    /// A hash of it without what its names for types are, if it has some: a call may say others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub untyped: String,
    /// What these names are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, String>,
}

impl OfText {
    /// Of a text that a program stands in.
    pub fn of(source: &Source) -> Self {
        let hash_of = |text: &str| hash(&[text.as_bytes()]);
        let (types, untyped) = source.types().map(|(types, text)| (types, hash_of(&text))).unwrap_or_default();
        Self { hash: hash_of(&source.text), untyped, types }
    }

    /// A name for a type that is another one in a text that is the same otherwise.
    fn differing<'a>(&'a self, other: &'a Self) -> Option<(&'a String, &'a String, &'a String)> {
        if self.untyped.is_empty() || self.untyped != other.untyped {
            return None;
        }
        let mut both = self.types.iter().filter_map(|(name, own)| Some((name, own, other.types.get(name)?)));
        both.find(|(_, own, other)| own != other)
    }
}

/// A mesh, as a checkpoint knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnMesh {
    /// A hash of the sizes of its sets and of its maps.
    pub hash: String,
    /// How many levels there are.
    pub levels: usize,
}

/// A variable, and the array that it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Held {
    pub variable: usize,
    pub array: String,
}

impl About {
    /// Of a program on its grid. `text` is that which it stands in.
    pub fn new(problem: &ProgramProblem, text: &OfText, contract: bool) -> Self {
        let outer = &problem.outer;
        let params = outer.stencil.params.iter().map(|(_, param)| param).zip(&outer.params);
        let own = Self::of(&problem.staged.program.name, text, problem.staged.precision, contract, params);
        Self { grid: Some(problem.staged.domain), ..own }
    }

    /// Of a program over its mesh. `text` is that which it stands in.
    pub fn over_mesh(problem: &MeshProblem, text: &OfText, contract: bool) -> Self {
        let program = &problem.program.program;
        let params = program.numbers.params.iter().map(|(_, param)| param).zip(&problem.params);
        let own = Self::of(&program.name, text, problem.precision, contract, params);
        Self { mesh: Some(OnMesh { hash: problem.bound.hash(), levels: problem.levels }), ..own }
    }

    fn of<'a>(
        program: &str,
        text: &OfText,
        precision: Precision,
        contract: bool,
        params: impl Iterator<Item = (&'a Param, &'a Value)>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            program: program.to_owned(),
            text: text.clone(),
            precision,
            contract,
            grid: None,
            mesh: None,
            params: params.map(|(param, value)| (param.name.clone(), format!("{value:?}"))).collect(),
            position: Position::default(),
            done: None,
            repeats: None,
            values: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Whether a program that is this can go on where the checkpoint was.
    ///
    /// # Errors
    /// The checkpoint is of something else.
    pub(super) fn check(&self, given: &Self, program: &Program) -> Result<()> {
        let other = |what: &str, own: &dyn std::fmt::Display, given: &dyn std::fmt::Display, help: &str| {
            Err(Error::input(format!("the checkpoint is of {what} {own}, this is {given}")).help(help))
        };
        if self.program != given.program {
            return other("program", &self.program, &given.program, "resume the same program");
        }
        if let Some((name, before, now)) = self.text.differing(&given.text) {
            let what = format!("in the checkpoint the type `{name}` is {before}, and here it is {now}");
            return Err(Error::input(what).help(format!("give the same: --type {name}={before}")));
        }
        if self.text.hash != given.text.hash {
            return Err(Error::input("the text of the program has changed since the checkpoint")
                .help("start anew; or begin with the fields of the checkpoint: they are NumPy arrays in it"));
        }
        if self.precision != given.precision {
            return other("precision", &self.precision.name(), &given.precision.name(), "give the same --precision");
        }
        match (self.grid, given.grid) {
            (Some(own), Some(given)) if own != given => {
                return other("grid", &own, &given, "give the same --grid, or none");
            }
            (own, given) if own.is_some() != given.is_some() => return Err(damaged()),
            _ => {}
        }
        match (&self.mesh, &given.mesh) {
            (Some(own), Some(given)) if own.levels != given.levels => {
                let (own, given) = (format!("{} levels", own.levels), format!("{} levels", given.levels));
                return other("a mesh with", &own, &given, "give the same --levels");
            }
            (Some(own), Some(given)) if own.hash != given.hash => {
                return Err(Error::input("the checkpoint is of another mesh").help("give the same --mesh"));
            }
            (own, given) if own.is_some() != given.is_some() => return Err(damaged()),
            _ => {}
        }
        if self.contract != given.contract {
            return Err(Error::input("the checkpoint was made with another --contract").help("give the same"));
        }
        let counts = only_counts(program, self.position.step);
        for (name, value) in &given.params {
            let before = self.params.get(name);
            if before != Some(value) && !counts.contains(name) {
                return Err(Error::input(format!("the checkpoint has another value of the parameter `{name}`"))
                    .help("only numbers of steps may change"));
            }
        }
        Ok(())
    }
}

/// The parameters that say how often an outermost loop is run that is not done before `step`, and nothing else.
fn only_counts(program: &Program, step: usize) -> Vec<String> {
    fn params(program: &Program, body: &Body, found: &mut Vec<String>) {
        for (_, node) in body.iter() {
            match node {
                Node::Param(param) => found.push(program.numbers.params[*param].name.clone()),
                Node::Use { def, .. } => params(program, &program.numbers.defs[*def].body, found),
                _ => {}
            }
        }
    }
    fn visit(program: &Program, actions: &[Action], others: &mut Vec<String>) {
        for action in actions {
            match action {
                Action::Call(call) => call.params.iter().flatten().for_each(|body| params(program, body, others)),
                Action::Rename(_) => {}
                Action::Number(number) => params(program, &number.value, others),
                Action::Repeat(repeat) => {
                    params(program, &repeat.times, others);
                    visit(program, &repeat.actions, others);
                }
            }
        }
    }
    let (mut counts, mut others) = (Vec::new(), Vec::new());
    for (n, action) in program.own_actions().into_iter().enumerate() {
        match action {
            Action::Repeat(repeat) if n >= step => {
                params(program, &repeat.times, &mut counts);
                visit(program, &repeat.actions, &mut others);
            }
            Action::Call(_) | Action::Rename(_) | Action::Repeat(_) | Action::Number(_) => {
                visit(program, std::slice::from_ref(action), &mut others);
            }
        }
    }
    for (_, variable) in program.variables.iter() {
        for axis in GridAxis::ALL {
            for side in Side::BOTH {
                if let EdgeRule::Value(body) = variable.edges.rule(axis, side) {
                    params(program, body, &mut others);
                }
            }
        }
    }
    counts.retain(|name| !others.contains(name));
    counts
}
