//! Programs: calls of stencils, in time.
//!
//! # Meaning
//!
//! A [`Variable`] is a field of a program: a declared one, or one that a `let` made. [`Action`]s run in order. A [`Call`]
//! computes the outputs of a stencil from the variables' values before, and gives them to variables, all at once: a call
//! is a pure function. What a call does not compute keeps the variable's value before; a new one has none there.
//!
//! **Where.** A variable has [`Edges`]: what a read beyond the array means, by axis and side. Reads of a call look at the
//! values that these give, however far the stencil reaches through its definitions; its definitions themselves are
//! computed beyond the edge by their own formula. A call computes the cells for which each read finds a value: inside
//! the array, or beyond an edge that has a rule, and where a call computed one if the variable has values on some cells
//! only; and that lie within the bounds of its stencil ([`Stencil::within`]). Along an axis where any variable of a call has a rule, every cell
//! within them is computed; a call that cannot is wrong.
//!
//! **Numbers.** Parameters, and definitions made of them, stand in [`Program::numbers`], a stencil without fields. Bodies
//! of a program are evaluated there. What changes on the way, as the number of a turn does, is a variable on no axis, for which a field
//! of that stencil stands.

use super::{Arena, Body, Field, FieldId, Levels, Place, Role, Stencil, Stored, VariableId};
use crate::named::named;
use crate::source::Span;
use crate::text::FreeText;
use std::collections::BTreeSet;
use std::fmt;

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// The file that it was read from; empty if it is not known.
    pub file: FreeText,
    /// Its parameters and the numbers made of them: a stencil that has nothing else.
    pub numbers: Stencil,
    /// The stencils that it calls, each once, as they were lowered.
    pub stencils: Vec<Stencil>,
    /// Its fields: those declared, then those made on the way.
    pub variables: Arena<VariableId, Variable>,
    /// On a grid: the variables that the fields of `numbers` stand for, which are numbers that turns of loops change. Over a
    /// mesh, [`MeshProgram::numbers`](super::MeshProgram::numbers) says which these are.
    pub changing: Vec<VariableId>,
    /// What it does.
    pub actions: Vec<Action>,
}

/// A field of a program.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The user's name.
    pub name: String,
    /// What a mesh calls it whose field it takes, if not the same.
    pub original: Option<String>,
    /// Its documentation.
    pub doc: FreeText,
    /// What it is to whoever runs the program; nothing if a `let` made it.
    pub role: Option<Role>,
    /// Whether it holds what a print shows: nobody reads it but who looks.
    pub is_shown: bool,
    /// Which axes it has.
    pub place: Place,
    /// How it is stored.
    pub stored: Stored,
    /// What random test data is drawn from: low included, high not.
    pub range: Option<(f64, f64)>,
    /// What reads beyond its edges mean.
    pub edges: Edges,
    /// Where it is declared.
    pub span: Span,
}

named! {
    /// An axis of a grid.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum GridAxis {
        /// The first horizontal axis.
        I = "i";
        /// The second horizontal axis.
        J = "j";
        /// Levels.
        K = "k";
    }

    /// An end of an axis.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Side {
        /// Before the first cell.
        Low = "low";
        /// After the last.
        High = "high";
    }
}

/// What reads beyond the edges of a field mean.
#[derive(Clone, Debug, Default)]
pub struct Edges {
    rules: [[EdgeRule; 2]; 3],
    /// Which of them the text says; elsewhere there is a halo.
    said: [[bool; 2]; 3],
}

/// What a read beyond an edge means. With n cells, index -1 means:
#[derive(Clone, Debug, Default)]
pub enum EdgeRule {
    /// Nothing: there is nothing outside, and cells that would read there are not computed.
    #[default]
    Halo,
    /// Cell n-1: the axis is a circle.
    Periodic,
    /// Cell 0, as does -2.
    Copy,
    /// Cell 0, and -2 means 1: mirrored about the face.
    Mirror,
    /// The same with the other sign, so that the value on the face is 0: as the part of a velocity that points into a wall.
    /// Negation is exact, and of 0 it is -0; a whole number wraps. A field of truth values has no sign, and no such edge.
    OddMirror,
    /// A number.
    Value(Body),
}

/// What a program does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Computes a stencil.
    Call(Call),
    /// Gives a variable the value of another.
    Rename(Rename),
    /// Does something several times.
    Repeat(Repeat),
    /// Gives a number a value.
    Number(Assignment),
}

/// `rms = sqrt(change / n)`
#[derive(Clone, Debug)]
pub struct Assignment {
    /// A variable on no axis.
    pub to: VariableId,
    /// Its value, made of numbers.
    pub value: Body,
}

/// A call of a stencil.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which of [`Program::stencils`].
    pub stencil: usize,
    /// By the stencil's fields: what is read, and what is written.
    pub fields: Vec<FieldBinding>,
    /// By the stencil's parameters: their values; nothing where the default holds.
    pub params: Vec<Option<Body>>,
    /// Where it is written.
    pub span: Span,
}

/// What a field of a called stencil stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldBinding {
    /// What it reads.
    pub read: Option<VariableId>,
    /// What it writes.
    pub written: Option<VariableId>,
}

/// `before = u`
#[derive(Clone, Copy, Debug)]
pub struct Rename {
    /// Whose value.
    pub from: VariableId,
    /// What gets it.
    pub to: VariableId,
}

/// `repeat steps as step { ... }`
#[derive(Clone, Debug)]
pub struct Repeat {
    /// How often: a whole number.
    pub times: Body,
    /// The number that counts the turns, from 0.
    pub counter: Option<VariableId>,
    /// What is repeated.
    pub actions: Vec<Action>,
    /// Its first line.
    pub span: Span,
}

impl GridAxis {
    /// Those along which columns stand.
    pub const ACROSS: [GridAxis; 2] = [GridAxis::I, GridAxis::J];

    /// Both ends of all of them.
    pub fn ends() -> impl Iterator<Item = (GridAxis, Side)> {
        GridAxis::ALL.into_iter().flat_map(|axis| Side::BOTH.map(|side| (axis, side)))
    }

    /// Whether a field on `place` has it.
    pub fn is_of(self, place: Place) -> bool {
        match self {
            GridAxis::I | GridAxis::J => place.horizontal,
            GridAxis::K => place.levels != Levels::None,
        }
    }
}

impl Side {
    /// Both of them.
    pub const BOTH: [Side; 2] = Side::ALL;

    /// The one across.
    pub fn other(self) -> Self {
        match self {
            Side::Low => Side::High,
            Side::High => Side::Low,
        }
    }
}

impl Edges {
    /// The rule of a side.
    pub fn rule(&self, axis: GridAxis, side: Side) -> &EdgeRule {
        &self.rules[axis as usize][side as usize]
    }

    /// Says the rule of a side.
    pub fn set(&mut self, axis: GridAxis, side: Side, rule: EdgeRule) {
        self.rules[axis as usize][side as usize] = rule;
        self.said[axis as usize][side as usize] = true;
    }

    /// Whether the text says what lies beyond a side, be it nothing.
    pub fn is_said(&self, axis: GridAxis, side: Side) -> bool {
        self.said[axis as usize][side as usize]
    }

    /// Whether there is something beyond a side.
    pub fn has(&self, axis: GridAxis, side: Side) -> bool {
        !matches!(self.rule(axis, side), EdgeRule::Halo)
    }
}

impl EdgeRule {
    /// The language's word for it.
    pub fn name(&self) -> &'static str {
        match self {
            EdgeRule::Halo => "halo",
            EdgeRule::Periodic => "periodic",
            EdgeRule::Copy => "copy",
            EdgeRule::Mirror => "mirror",
            EdgeRule::OddMirror => "-mirror",
            EdgeRule::Value(_) => "value",
        }
    }
}

impl Variable {
    /// Whether somebody may look at it after any step: what it holds outlives the turn of a loop that made it.
    pub fn is_looked_at(&self) -> bool {
        self.role.is_some() || self.is_shown
    }

    /// It as a field.
    pub fn field(&self, role: Role) -> Field {
        let Variable { name, doc, place, stored, range, span, .. } = self.clone();
        Field { name, doc, role, place, stored, is_single: false, range, span }
    }
}

impl Call {
    /// The variables that it reads, by the stencil's fields.
    pub fn reads(&self) -> impl Iterator<Item = VariableId> {
        self.fields.iter().filter_map(|binding| binding.read)
    }

    /// The variables that it writes, by the stencil's fields.
    pub fn writes(&self) -> impl Iterator<Item = VariableId> {
        self.fields.iter().filter_map(|binding| binding.written)
    }
}

impl Program {
    /// Whether a variable that is not declared gets its first values from a call: by the `let` that names it.
    pub fn begins(&self, variable: VariableId, call: &Call) -> bool {
        /// The span of the first call that writes a variable; nothing inside if something else gives it values before.
        fn first(actions: &[Action], variable: VariableId) -> Option<Option<Span>> {
            actions.iter().find_map(|action| match action {
                Action::Call(own) => own.writes().any(|id| id == variable).then_some(Some(own.span)),
                Action::Rename(own) => (own.to == variable).then_some(None),
                Action::Number(own) => (own.to == variable).then_some(None),
                Action::Repeat(own) => first(&own.actions, variable),
            })
        }
        first(&self.actions, variable) == Some(Some(call.span))
    }

    /// The declared variable called `name`.
    pub fn declared(&self, name: &str) -> Option<VariableId> {
        self.variables.iter().find(|(_, own)| own.role.is_some() && own.name == name).map(|(id, _)| id)
    }

    /// The fields of `numbers` that a body reads, be it through definitions.
    pub fn numbers_in(&self, body: &Body) -> BTreeSet<FieldId> {
        let mut read = BTreeSet::new();
        let (mut waiting, mut seen) = (vec![body], BTreeSet::new());
        while let Some(body) = waiting.pop() {
            read.extend(body.reads().map(|(field, _)| field));
            waiting
                .extend(body.uses().filter(|(def, _)| seen.insert(*def)).map(|(def, _)| &self.numbers.defs[def].body));
        }
        read
    }

    /// Every call, in the order of the text.
    pub fn calls(&self) -> Vec<&Call> {
        let mut calls = Vec::new();
        let mut waiting: Vec<&Action> = self.actions.iter().rev().collect();
        while let Some(action) = waiting.pop() {
            match action {
                Action::Call(call) => calls.push(call),
                Action::Rename(_) | Action::Number(_) => {}
                Action::Repeat(repeat) => waiting.extend(repeat.actions.iter().rev()),
            }
        }
        calls
    }
}

impl fmt::Display for GridAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a program says, as `build --emit ir` shows it.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {}", self.name)?;
        for (_, param) in self.numbers.params.iter() {
            writeln!(f, "  param {}: {}", param.name, param.kind.name())?;
        }
        for (_, variable) in self.variables.iter() {
            let role = variable.role.map_or("let", Role::name);
            write!(f, "  {role} {}: {}{}", variable.name, variable.stored.kind().name(), variable.place)?;
            for (axis, side) in GridAxis::ends().filter(|&(axis, side)| variable.edges.has(axis, side)) {
                write!(f, ", {axis} {}: {}", side.name(), variable.edges.rule(axis, side).name())?;
            }
            writeln!(f)?;
        }
        self.write_actions(f, &self.actions, 1)
    }
}

impl Program {
    fn write_actions(&self, f: &mut fmt::Formatter<'_>, actions: &[Action], depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        let name = |id: VariableId| self.variables[id].name.as_str();
        for action in actions {
            match action {
                Action::Call(call) => {
                    let outputs: Vec<&str> = call.writes().map(name).collect();
                    let inputs: Vec<&str> = call.reads().map(name).collect();
                    let stencil = &self.stencils[call.stencil].name;
                    writeln!(f, "{indent}{} = {stencil}({})", outputs.join(", "), inputs.join(", "))?;
                }
                Action::Rename(rename) => writeln!(f, "{indent}{} = {}", name(rename.to), name(rename.from))?,
                Action::Number(number) => writeln!(f, "{indent}{} = a number", name(number.to))?,
                Action::Repeat(repeat) => {
                    match repeat.counter {
                        Some(counter) => writeln!(f, "{indent}repeat as {}", name(counter))?,
                        None => writeln!(f, "{indent}repeat")?,
                    }
                    self.write_actions(f, &repeat.actions, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}
