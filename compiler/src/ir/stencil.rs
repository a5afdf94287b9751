//! Stencils: fields, parameters, definitions, sweeps and stores.

use super::{Arena, Body, DefId, Field, FieldId, Kind, Node, ParamId, Print, Relation, Role, SetId, Sweep, SweepId};
use crate::ir::mesh::Zones;
use crate::ir::program::GridAxis;
use crate::precision::Precision;
use crate::source::Span;
use crate::text::FreeText;

/// A number given at run time.
#[derive(Clone, Debug)]
pub struct Param {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// What it is.
    pub kind: Kind,
    /// Whether it is rounded to single precision, whatever `real` is.
    pub is_single: bool,
    /// Its value if none is given: a body without reads.
    pub default: Option<Body>,
    /// Where it is declared.
    pub span: Span,
}

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A `let`.
    Let,
    /// A function's argument.
    Argument,
    /// A function's result.
    Result,
    /// A constant: its body reads nothing, no parameter and no level.
    Constant,
    /// The base of a power.
    Base,
}

/// A value at every cell, with a name.
#[derive(Clone, Debug)]
pub struct Def {
    /// The user's name, or the function's and argument's.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Over a mesh, the set at whose elements it has a value; the stencil's own if nothing is said.
    pub over: Option<SetId>,
    /// Its value.
    pub body: Body,
}

/// What an output is assigned.
#[derive(Clone, Debug)]
pub struct Store {
    /// An `out`, `inout` or carried field.
    pub field: FieldId,
    /// Its value.
    pub body: Body,
    /// The sweep that it belongs to; those of none come after all sweeps.
    pub sweep: Option<SweepId>,
}

/// What a call computes of a stencil of the file: `step(...) on interior, levels low..nk`.
#[derive(Clone, Debug)]
pub struct Part {
    /// The name of the stencil.
    pub of: String,
    /// Where, as the call says it: `interior, levels low..nk`.
    pub place: FreeText,
}

/// Where what is computed begins or ends along an axis: `levels low..nk` is two of them.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Along which axis.
    pub axis: GridAxis,
    /// Which end it is.
    pub is: Bounding,
    /// The number, made of parameters, numbers, and how many cells there are.
    pub body: Body,
    /// As it is written: `low`.
    pub text: FreeText,
    /// All that is written of that axis: `levels low..nk`.
    pub span: Span,
}

/// What a bound is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounding {
    /// The only one that is computed.
    Only,
    /// The first.
    First,
    /// The one after the last.
    End,
}

impl Bounding {
    /// How a place along the axis compares with the bound, if it is computed.
    pub fn relation(self) -> Relation {
        match self {
            Bounding::Only => Relation::Eq,
            Bounding::First => Relation::Ge,
            Bounding::End => Relation::Lt,
        }
    }

    /// Whether a place is on the right side of a bound.
    pub fn holds(self, place: i64, bound: i64) -> bool {
        match self {
            Bounding::Only => place == bound,
            Bounding::First => place >= bound,
            Bounding::End => place < bound,
        }
    }
}

/// One stencil.
#[derive(Clone, Debug, Default)]
pub struct Stencil {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// The file that it was read from, for those who want to make a kernel again; empty if it is not known.
    pub file: FreeText,
    /// What the call said of the file's types: `--type vp=f32`; nothing if they are what the file says.
    pub types: String,
    /// The stencil of the file of which this one computes a part, where a call says so.
    pub part: Option<Part>,
    /// Fields in the order declared.
    pub fields: Arena<FieldId, Field>,
    /// Parameters that are used, in the order declared.
    pub params: Arena<ParamId, Param>,
    /// Definitions, each before its users.
    pub defs: Arena<DefId, Def>,
    /// In the order in which they are done.
    pub sweeps: Arena<SweepId, Sweep>,
    /// One for each output, in the order of assignment, and at most one for each carried field.
    pub stores: Vec<Store>,
    /// Those of carried fields that no output needs, once [`needed`](super::needed) has told them apart: prints may need them.
    pub spare: Vec<Store>,
    /// Values to show, in the order written; they take no part in what the stencil computes.
    pub prints: Vec<Print>,
    /// What is computed along each axis, of what can be: all that lies within these bounds.
    pub within: Vec<Bound>,
    /// Over a mesh, the zones of its set whose elements are computed; all if nothing is said.
    pub zones: Option<Zones>,
}

impl Stencil {
    /// Every body that takes part in the computation: definitions first, then outputs.
    pub fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.defs.iter().map(|(_, def)| &def.body).chain(self.outputs())
    }

    /// Whether it calls a function that devices' own round differently.
    pub fn is_inexact(&self) -> bool {
        let mut nodes = self.bodies().flat_map(Body::iter);
        nodes.any(|(_, node)| matches!(node, Node::Call(function, _) if function.is_inexact()))
    }

    /// What messages call it: `step`, or `step on interior, levels low..nk` where a call computes a part of it.
    pub fn told(&self) -> String {
        match &self.part {
            None => self.name.clone(),
            Some(part) => format!("{} on {}", part.of, part.place.as_told()),
        }
    }

    /// The name that the file has for it, or for what it is a part of.
    pub fn whole_name(&self) -> &str {
        self.part.as_ref().map_or(&self.name, |part| &part.of)
    }

    /// What it says of where it is computed along an axis.
    pub fn bounds(&self, axis: GridAxis) -> impl Iterator<Item = &Bound> {
        self.within.iter().filter(move |bound| bound.axis == axis)
    }

    /// Whether it says which part of an axis is computed.
    pub fn says(&self, axis: GridAxis) -> bool {
        self.bounds(axis).next().is_some()
    }

    /// The fields that have arrays of the user's.
    pub fn own_fields(&self) -> impl Iterator<Item = (FieldId, &Field)> {
        self.fields.iter().filter(|(_, field)| field.role != Role::Carried)
    }

    /// Bytes of its smallest elements; 8 if it has no fields.
    pub fn smallest(&self, precision: Precision) -> usize {
        self.own_fields().map(|(_, field)| field.stored.bytes(precision)).min().unwrap_or(8)
    }

    /// How many levels its highest field has on a grid of `nk`.
    pub fn highest(&self, nk: usize) -> usize {
        self.own_fields().map(|(_, field)| field.place.levels.count(nk)).fold(nk, usize::max)
    }

    /// The field called `name`.
    pub fn field_named(&self, name: &str) -> Option<FieldId> {
        self.own_fields().find(|(_, field)| field.name == name).map(|(id, _)| id)
    }

    /// The same stencil with every body rewritten.
    pub fn map_bodies(&self, mut map: impl FnMut(&Body) -> Body) -> Stencil {
        let mut stencil = self.clone();
        for def in stencil.defs.values_mut() {
            def.body = map(&def.body);
        }
        for store in stencil.stores.iter_mut().chain(&mut stencil.spare) {
            store.body = map(&store.body);
        }
        for print in &mut stencil.prints {
            print.body = map(&print.body);
        }
        for bound in &mut stencil.within {
            bound.body = map(&bound.body);
        }
        for param in stencil.params.values_mut() {
            param.default = param.default.as_ref().map(&mut map);
        }
        stencil
    }
}
