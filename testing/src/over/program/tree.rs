//! A program over a mesh, as data, and as text. Names are numbers, so that parts can be cut out.

use crate::over::tree::{Field, Mesh, Stencil, Stored, Write, declared, zones};
use std::fmt;

/// A program and the stencils that it calls, `s0`, `s1`, ..., which all have the same mesh.
#[derive(Clone, Debug)]
pub struct Program {
    pub mesh: Mesh,
    pub stencils: Vec<Stencil>,
    /// `v0`, `v1`, ...: declared ones, and those that actions make.
    pub variables: Vec<Variable>,
    /// Defaults of parameters `q0`, `q1`, ..., and whether they are whole.
    pub params: Vec<(f64, bool)>,
    pub actions: Vec<Action>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Where it lives; a number lives nowhere.
    pub field: Option<Field>,
    /// How it is declared, if it is.
    pub role: Option<Role>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    In,
    Out,
    InOut,
}

/// A number of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    Real(f64),
    Int(i32),
    Param(usize),
    /// A variable.
    Of(usize),
    /// How many elements a set has.
    Size(usize),
    Binary(char, Box<Number>, Box<Number>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// What comes of it is what the stencil adds to, then what it writes.
    Call {
        stencil: usize,
        inputs: Vec<usize>,
        /// What is added to; from 0 where it is left out.
        sums: Vec<Option<usize>>,
        params: Vec<Number>,
        targets: Vec<usize>,
        /// Whether the targets are new.
        fresh: bool,
        place: Place,
    },
    Rename {
        from: usize,
        to: usize,
        fresh: bool,
    },
    Number {
        to: usize,
        value: Number,
        fresh: bool,
    },
    Repeat(Number, Vec<Action>),
}

/// What a call computes of its stencil.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The first zone and the last.
    pub zones: Option<(u8, u8)>,
    /// The first level, and where they end; or one alone.
    pub levels: Option<(Number, Option<End>)>,
}

/// Where levels end.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// So far from the end of all of them.
    All(i64),
    At(Number),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Vec::new();
        if let Some((first, last)) = self.zones {
            all.push(zones(first, last));
        }
        match &self.levels {
            None => {}
            Some((only, None)) => all.push(format!("level {only}")),
            Some((first, Some(End::All(by)))) => all.push(format!("levels {first}..nk + {by}")),
            Some((first, Some(End::At(end)))) => all.push(format!("levels {first}..{end}")),
        }
        if all.is_empty() { Ok(()) } else { write!(f, " on {}", all.join(", ")) }
    }
}

/// What a call of a stencil gives, in order; of numbers nothing.
pub fn results(stencil: &Stencil) -> Vec<Option<Field>> {
    let written = stencil.writes.iter().filter_map(|(write, _)| match write {
        Write::Out(field) => Some(Some(field.clone())),
        Write::Inc(..) => None,
        Write::Reduce(..) => Some(None),
    });
    stencil.sums.iter().cloned().map(Some).chain(written).collect()
}

/// Variables that are given a value somewhere.
fn assigned(actions: &[Action], found: &mut Vec<usize>) {
    for action in actions {
        match action {
            Action::Call { targets, .. } => found.extend(targets),
            Action::Rename { to, .. } | Action::Number { to, .. } => found.push(*to),
            Action::Repeat(_, inner) => assigned(inner, found),
        }
    }
}

impl Program {
    /// What is declared to be written and never is, is only read, or not declared.
    pub fn declared_as_used(mut self) -> Self {
        let mut found = Vec::new();
        assigned(&self.actions, &mut found);
        for (n, variable) in self.variables.iter_mut().enumerate() {
            if !found.contains(&n) && matches!(variable.role, Some(Role::Out | Role::InOut)) {
                variable.role = variable.field.as_ref().map(|_| Role::In);
            }
        }
        self
    }

    /// Whether anything comes out.
    pub fn has_output(&self) -> bool {
        self.variables.iter().any(|own| matches!(own.role, Some(Role::Out | Role::InOut)))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Real(x) => write!(f, "{x:?}"),
            Number::Int(x) => write!(f, "{x}"),
            Number::Param(n) => write!(f, "q{n}"),
            Number::Of(n) => write!(f, "v{n}"),
            Number::Size(set) => write!(f, "size(s{set})"),
            Number::Binary(op, a, b) => write!(f, "({a} {op} {b})"),
        }
    }
}

fn print(actions: &[Action], deep: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let indent = "    ".repeat(deep);
    let word = |fresh: bool| if fresh { "let " } else { "" };
    for action in actions {
        match action {
            Action::Call { stencil, inputs, sums, params, targets, fresh, place } => {
                let names = |all: &[usize]| all.iter().map(|n| format!("v{n}")).collect::<Vec<_>>();
                let mut given = names(inputs);
                given.extend(params.iter().enumerate().map(|(n, value)| format!("p{n} = {value}")));
                let sums = sums.iter().enumerate();
                given.extend(sums.filter_map(|(n, own)| own.map(|own| format!("a{n} = v{own}"))));
                let targets = names(targets).join(", ");
                writeln!(f, "{indent}{}{targets} = s{stencil}({}){place}", word(*fresh), given.join(", "))?;
            }
            Action::Rename { from, to, fresh } => writeln!(f, "{indent}{}v{to} = v{from}", word(*fresh))?,
            Action::Number { to, value, fresh } => writeln!(f, "{indent}{}v{to} = {value}", word(*fresh))?,
            Action::Repeat(times, inner) => {
                writeln!(f, "{indent}repeat {times} {{")?;
                print(inner, deep + 1, f)?;
                writeln!(f, "{indent}}}")?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mesh)?;
        self.stencils.iter().enumerate().try_for_each(|(n, stencil)| stencil.print(&format!("s{n}"), f))?;
        writeln!(f, "program own over m {{")?;
        for (n, variable) in self.variables.iter().enumerate() {
            let Some(role) = variable.role else { continue };
            let role = match role {
                Role::In => "in",
                Role::Out => "out",
                Role::InOut => "inout",
            };
            let place = variable.field.as_ref().map_or("real on ()".to_owned(), |field| declared(&self.mesh, field));
            // What may say which levels are read leads up and down.
            let is_whole = variable.field.as_ref().is_some_and(|field| field.stored == Stored::Int);
            let range = if role == "in" && is_whole { " = -3..4" } else { "" };
            writeln!(f, "    {role} v{n}: {place}{range}")?;
        }
        for (n, (default, is_whole)) in self.params.iter().enumerate() {
            match is_whole {
                true => writeln!(f, "    param q{n}: int = {default:.0}")?,
                false => writeln!(f, "    param q{n}: real = {default:?}")?,
            }
        }
        print(&self.actions, 1, f)?;
        writeln!(f, "}}")
    }
}
