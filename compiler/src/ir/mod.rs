//! The intermediate representation: what a stencil means.
//!
//! # Meaning
//!
//! A [`Stencil`] computes its outputs on a set of cells, each cell by itself: nothing that it writes is read by it. The
//! value of a cell is that of a [`Body`], evaluated *at* the cell.
//!
//! **Bodies.** A body is one written expression: [`Node`]s in operand-first order, so that every pass is a loop; the last
//! node is the value. Nodes have a [`Kind`] and a span beside them. Evaluation has no effects, so order is free, except
//! for laziness: the branch of [`Node::Choose`] that is not chosen is not evaluated, nor is the right side of
//! [`Node::And`] and [`Node::Or`] where the left side decides. That matters for one thing only: which levels are read.
//!
//! **Definitions.** A [`Def`] is a body with a name: a `let`, a function's argument or result, a constant, the base of a
//! power. [`Node::Use`] means its value *at the cell where the path leads*: its reads, its `k` and its guards move along.
//! A definition is evaluated where it is used; one that nobody uses is not evaluated. Definitions come before their
//! users. Fused multiply-adds never cross a body, so a value is the same bits however often, and wherever, it is computed.
//!
//! **Paths.** A read or use looks along a [`Path`]: horizontal steps in walking order and a shift of levels. The path of a
//! read inside a definition used at a path is the use's path followed by the read's.
//!
//! **Where.** Outputs are computed on the columns for which every horizontal read, in whatever branch, lies inside the
//! grid, times the levels for which every level read that counts does (`analysis::levels`). No read outside the grid is
//! ever evaluated. Cells not computed keep what was there.
//!
//! **Sweeps.** A stencil with sweeps is computed on every level, and in [`phases`]: sweep after sweep, and then the stores
//! that belong to none. A [`Sweep`] does its stores level by level, in its direction; otherwise cells are computed each by
//! itself, as ever. What is read of a value of a sweep at an earlier level of it, or anywhere after it, is in a field of
//! [`Role::Carried`], which the sweep stores. Such a field is read at the column itself only.
//!
//! **Prints.** A [`Print`] is a value to show at chosen cells. It is no part of the computation: its reads do not count, and
//! no kernel of the stencil holds it. [`Stencil::of_print`] is a stencil of its own, which computes nothing else.
//!
//! **Numbers.** `Real` is f32 or f64, chosen after lowering ([`Precision`]); `Int` is 32 bits and wraps; `Bool`. Fields say
//! how they are stored ([`Stored`]): a read converts to the kind's type, a write rounds to nearest even. What each
//! operation means, to the last bit, is [`scalar`]. `Int` becomes `Real` only by an explicit [`Node::ToReal`].
//!
//! **Meshes.** What a stencil over the elements of a mesh is, beyond this, [`mesh`] says. Paths then have [`Hop`]s instead
//! of steps.

pub mod arena;
pub mod called;
mod contract;
mod display;
mod fold;
mod function;
mod invariant;
pub mod mesh;
pub mod operation;
mod path;
mod print;
pub mod program;
pub mod scalar;
mod shown;
mod split;
mod sweep;
mod test;
mod verify;
mod walk;

use crate::named::named;
pub use crate::precision::Precision;
use crate::source::Span;
use crate::text::FreeText;
pub use arena::{Arena, Handle};
pub use contract::{contract, contract_body};
pub(crate) use fold::fold_body;
pub use fold::{Constants, fold};
pub use function::Function;
pub use invariant::{share_invariants, varies_across, varying};
pub use mesh::{Home, Mesh, MeshProgram, MeshStencil};
pub use path::{Axis, Hop, Offset, Path, Step};
pub use print::Print;
pub use program::Program;
use serde::Serialize;
pub use shown::ShownPrint;
pub use split::split;
use std::collections::BTreeSet;
pub use sweep::{Direction, Phase, Sweep, needed, phases, reads_of_sweeps};
pub use test::{COORDINATES, Expectation, Made, MadeKind, MeshCheck, MeshTest, OF_ELEMENT, Test};
pub use verify::{Stages, Verify};
pub use walk::{known_defs, known_nodes};

arena::handles! {
    /// A field of a stencil.
    FieldId
    /// A parameter of a stencil.
    ParamId
    /// A definition of a stencil.
    DefId
    /// A sweep of a stencil.
    SweepId
    /// A node of a body.
    NodeId
    /// A field of a program.
    VariableId
    /// A set of a mesh.
    SetId
    /// A map of a mesh.
    MapId
}

named! {
    /// What one computes with.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        /// A floating-point number of the chosen [`Precision`].
        Real = "real";
        /// A 32-bit integer.
        Int = "int";
        /// A truth value.
        Bool = "bool";
    }

    /// How a field is stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Stored {
        /// As the chosen precision.
        Real = "real";
        /// Single precision.
        F32 = "f32";
        /// Double precision.
        F64 = "f64";
        /// 32-bit integers.
        Int = "int";
        /// Truth values, a byte each.
        Bool = "bool";
    }

    /// What a stencil does with a field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// Read only.
        In = "in";
        /// Written only.
        Out = "out";
        /// Read (the value before) and written.
        InOut = "inout";
        /// No array of the user's: a value of a [`Sweep`] on every level.
        Carried = "carried";
        /// On a mesh: what is there before is added to.
        Inc = "inc";
        /// On a mesh: one number, made of all elements.
        Reduce = "reduce";
    }
}

/// Which axes a field has. Horizontal axes come together: an unstructured grid has no `i` of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Place {
    /// One value a column, or one for all columns.
    pub horizontal: bool,
    /// Along k.
    pub levels: Levels,
    /// On a mesh: which elements are its columns.
    #[serde(skip)]
    pub home: Option<Home>,
}

impl Place {
    /// Of a number at every cell.
    pub const CELLS: Self = Self { horizontal: true, levels: Levels::Full, home: None };
    /// Of a single number.
    pub const NOWHERE: Self = Self { horizontal: false, levels: Levels::None, home: None };
}

/// A field's extent along k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// One value for all levels.
    None,
    /// nk levels.
    Full,
    /// nk + 1 interfaces: index k is the interface above level k.
    Interfaces,
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// What the stencil does with it.
    pub role: Role,
    /// Which axes it has.
    pub place: Place,
    /// How it is stored.
    pub stored: Stored,
    /// What random test data is drawn from: low included, high not.
    pub range: Option<(f64, f64)>,
    /// Where it is declared.
    pub span: Span,
}

/// A number given at run time.
#[derive(Clone, Debug)]
pub struct Param {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// What it is.
    pub kind: Kind,
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
    /// Its value.
    pub body: Body,
}

/// One written expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    nodes: Vec<Node>,
    kinds: Vec<Kind>,
    spans: Vec<Span>,
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

/// One stencil.
#[derive(Clone, Debug, Default)]
pub struct Stencil {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// The file that it was read from, for those who want to make a kernel again; empty if it is not known.
    pub file: FreeText,
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
    /// Those of carried fields that no output needs, once [`needed`] has told them apart: prints may need them.
    pub spare: Vec<Store>,
    /// Values to show, in the order written; they take no part in what the stencil computes.
    pub prints: Vec<Print>,
}

named! {
    /// An operation on two numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Binary {
        /// `a + b`
        Add = "+";
        /// `a - b`
        Sub = "-";
        /// `a * b`
        Mul = "*";
        /// `a / b`, of reals only.
        Div = "/";
        /// `a % b`, with the sign of b.
        Rem = "%";
    }

    /// A comparison of two numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Relation {
        /// `a < b`
        Lt = "<";
        /// `a <= b`
        Le = "<=";
        /// `a > b`
        Gt = ">";
        /// `a >= b`
        Ge = ">=";
        /// `a == b`
        Eq = "==";
        /// `a != b`
        Ne = "!=";
    }
}

/// A step of an expression. Operands are earlier nodes of the same body.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A real number, not yet rounded to the precision.
    Real(f64),
    /// A whole number.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A parameter.
    Param(ParamId),
    /// `k`, the level of the cell where the body is evaluated.
    Level,
    /// `nk`, the number of levels.
    LevelCount,
    /// A field where the path leads.
    Read {
        /// An `in` or `inout` field.
        field: FieldId,
        /// From the cell where the body is evaluated.
        path: Path,
        /// Which of its numbers there: 0 of a field that has one. Of a field on a map, slot after slot.
        part: u32,
    },
    /// Whether a path through a mesh leads to an element; false where it meets a hole.
    Present {
        /// From the element where the body is evaluated.
        path: Path,
    },
    /// A definition's value where the path leads.
    Use {
        /// An earlier definition.
        def: DefId,
        /// From the cell where the body is evaluated.
        path: Path,
    },
    /// A whole number as a real one.
    ToReal(NodeId),
    /// A real number rounded to single precision (`const c: f32`).
    ToSingle(NodeId),
    /// `-a`
    Negate(NodeId),
    /// `!a`
    Not(NodeId),
    /// An operation on two numbers of one kind.
    Binary(Binary, NodeId, NodeId),
    /// A comparison of two values of one kind.
    Compare(Relation, NodeId, NodeId),
    /// `a && b`; b counts only where a is true.
    And(NodeId, NodeId),
    /// `a || b`; b counts only where a is false.
    Or(NodeId, NodeId),
    /// A function of as many operands as it takes.
    Call(Function, Vec<NodeId>),
    /// One of two branches.
    Choose {
        /// Which.
        condition: NodeId,
        /// If it is true.
        yes: NodeId,
        /// If it is false.
        no: NodeId,
    },
}

impl Stored {
    /// What a read of it is.
    pub fn kind(self) -> Kind {
        match self {
            Stored::Real | Stored::F32 | Stored::F64 => Kind::Real,
            Stored::Int => Kind::Int,
            Stored::Bool => Kind::Bool,
        }
    }

    /// What the language calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Stored::Real, Stored::F32, Stored::F64, Stored::Int, Stored::Bool];
        all.into_iter().find(|own| own.name() == name)
    }

    /// How a value of a kind is stored that is no field of the user's.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Real => Stored::Real,
            Kind::Int => Stored::Int,
            Kind::Bool => Stored::Bool,
        }
    }

    /// Bytes of one value.
    pub fn bytes(self, precision: Precision) -> usize {
        match self {
            Stored::Real => precision.bytes(),
            Stored::F64 => 8,
            Stored::F32 | Stored::Int => 4,
            Stored::Bool => 1,
        }
    }
}

impl Levels {
    /// How many values there are for a grid of `nk` levels.
    pub fn count(self, nk: usize) -> usize {
        match self {
            Levels::None => 1,
            Levels::Full => nk,
            Levels::Interfaces => nk + 1,
        }
    }
}

impl Role {
    /// Whether the stencil is given it.
    pub fn is_read(self) -> bool {
        matches!(self, Role::In | Role::InOut | Role::Inc)
    }

    /// Whether the stencil writes it.
    pub fn is_written(self) -> bool {
        matches!(self, Role::Out | Role::InOut | Role::Inc | Role::Reduce)
    }
}

impl Node {
    /// A literal.
    pub fn literal(value: scalar::Value) -> Node {
        match value {
            scalar::Value::Real(x) => Node::Real(x),
            scalar::Value::Int(x) => Node::Int(x),
            scalar::Value::Bool(x) => Node::Bool(x),
        }
    }

    /// The operands, in order.
    pub fn operands(&self) -> Vec<NodeId> {
        match self {
            Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::LevelCount => {
                Vec::new()
            }
            Node::Read { .. } | Node::Present { .. } | Node::Use { .. } => Vec::new(),
            Node::ToReal(a) | Node::ToSingle(a) | Node::Negate(a) | Node::Not(a) => vec![*a],
            Node::Binary(_, a, b) | Node::Compare(_, a, b) | Node::And(a, b) | Node::Or(a, b) => vec![*a, *b],
            Node::Call(_, operands) => operands.clone(),
            Node::Choose { condition, yes, no } => vec![*condition, *yes, *no],
        }
    }

    /// The same node with other operands.
    pub fn map_operands(&self, mut map: impl FnMut(NodeId) -> NodeId) -> Node {
        let mut node = self.clone();
        match &mut node {
            Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::LevelCount => {}
            Node::Read { .. } | Node::Present { .. } | Node::Use { .. } => {}
            Node::ToReal(a) | Node::ToSingle(a) | Node::Negate(a) | Node::Not(a) => *a = map(*a),
            Node::Binary(_, a, b) | Node::Compare(_, a, b) | Node::And(a, b) | Node::Or(a, b) => {
                (*a, *b) = (map(*a), map(*b));
            }
            Node::Call(_, operands) => operands.iter_mut().for_each(|a| *a = map(*a)),
            Node::Choose { condition, yes, no } => {
                (*condition, *yes, *no) = (map(*condition), map(*yes), map(*no));
            }
        }
        node
    }
}

impl Body {
    /// An empty body, which is not valid until it has a node.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a node.
    pub fn add(&mut self, node: Node, kind: Kind, span: Span) -> NodeId {
        self.nodes.push(node);
        self.kinds.push(kind);
        self.spans.push(span);
        NodeId::new(self.nodes.len() - 1)
    }

    /// The node whose value is the body's.
    pub fn root(&self) -> NodeId {
        NodeId::new(self.nodes.len() - 1)
    }

    /// What the body's value is.
    pub fn kind(&self) -> Kind {
        self.kind_of(self.root())
    }

    /// What a node's value is.
    pub fn kind_of(&self, node: NodeId) -> Kind {
        self.kinds[node.index()]
    }

    /// Where a node is written.
    pub fn span_of(&self, node: NodeId) -> Span {
        self.spans[node.index()]
    }

    /// The nodes in operand-first order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId::new(index), node))
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The body without nodes that its value does not need.
    pub fn pruned(&self) -> Body {
        self.rooted(self.root())
    }

    /// The body whose value is that of `root`, without nodes that it does not need.
    pub fn rooted(&self, root: NodeId) -> Body {
        // Only what is needed is looked at: of a body that holds a long vector, each part is taken by itself.
        let mut waiting = BTreeSet::from([root]);
        let mut needed = Vec::new();
        while let Some(id) = waiting.pop_last() {
            waiting.extend(self[id].operands());
            needed.push(id);
        }
        needed.reverse();
        let renamed = |operand: NodeId| needed.binary_search(&operand).map_or(operand, NodeId::new);
        let mut body = Body::new();
        for &id in &needed {
            body.add(self[id].map_operands(renamed), self.kind_of(id), self.span_of(id));
        }
        body
    }

    /// The literal that the body is, if it is one.
    pub fn literal(&self) -> Option<&Node> {
        match self.nodes.last() {
            Some(node @ (Node::Real(_) | Node::Int(_) | Node::Bool(_))) => Some(node),
            _ => None,
        }
    }
}

impl std::ops::Index<NodeId> for Body {
    type Output = Node;
    fn index(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }
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

    /// The fields that have arrays of the user's.
    pub fn own_fields(&self) -> impl Iterator<Item = (FieldId, &Field)> {
        self.fields.iter().filter(|(_, field)| field.role != Role::Carried)
    }

    /// Bytes of its smallest elements; 8 if it has no fields.
    pub fn smallest(&self, precision: Precision) -> usize {
        self.own_fields().map(|(_, field)| field.stored.bytes(precision)).min().unwrap_or(8)
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
        for param in stencil.params.values_mut() {
            param.default = param.default.as_ref().map(&mut map);
        }
        stencil
    }
}
