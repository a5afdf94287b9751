//! What the user wrote, before anything is known about its meaning.
//!
//! Expressions live in one arena, operands first, and no node owns another: dropping or walking a chain of 100,000 terms
//! needs no stack.

use crate::diagnostic::Diagnostic;
use crate::ir::Stored;
use crate::ir::program::GridAxis;
use crate::source::Span;
use crate::text::FreeText;
use std::collections::{BTreeMap, BTreeSet};

/// A handle of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(u32);

impl ExprId {
    /// The expression's number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A file.
#[derive(Debug, Default)]
pub struct File {
    /// The documentation at its head.
    pub doc: String,
    /// What it declares, in order.
    pub items: Vec<Item>,
    /// The names that it has for types.
    pub types: BTreeMap<String, Stored>,
    /// Those of these names that are the type of something.
    pub types_used: BTreeSet<String>,
    /// Whether its text names single precision anywhere.
    pub names_single: bool,
    /// What the call says of its types: `--type vp=f32`; nothing if they are what the text says.
    pub given_types: String,
    /// Where calls are computed, by these.
    pub wheres: BTreeMap<ExprId, Where>,
    /// Its expressions.
    pub exprs: Exprs,
    /// Where what it imports begins in the text, if it imports something: the stencils, functions, constants, parameters and meshes of
    /// other files stand among the items.
    pub imported_from: Option<u32>,
    /// What looks wrong about the text, although it can be read.
    pub warnings: Vec<Diagnostic>,
}

impl File {
    /// Its stencils and programs, in order.
    pub fn stencils(&self) -> impl Iterator<Item = &Stencil> + Clone {
        self.items.iter().filter_map(|item| match item {
            Item::Stencil(own) | Item::Program(own) => Some(own),
            Item::Function(_) | Item::Constant(_) | Item::Param(_) | Item::Test(_) | Item::Mesh(_) => None,
            Item::Import(_) | Item::Type(_) => None,
        })
    }

    /// The paths of what is imported, in order.
    pub fn imports(&self) -> impl Iterator<Item = &Name> {
        self.items.iter().filter_map(|item| if let Item::Import(path) = item { Some(path) } else { None })
    }
}

/// The expressions of a file.
#[derive(Debug, Default)]
pub struct Exprs {
    nodes: Vec<(Expr, Span)>,
}

impl Exprs {
    /// Appends an expression whose operands are already there.
    pub fn add(&mut self, expr: Expr, span: Span) -> ExprId {
        self.nodes.push((expr, span));
        ExprId(self.nodes.len() as u32 - 1)
    }

    /// An expression's place.
    pub fn span(&self, id: ExprId) -> Span {
        self.nodes[id.0 as usize].1
    }
}

impl std::ops::IndexMut<ExprId> for Exprs {
    fn index_mut(&mut self, id: ExprId) -> &mut Expr {
        &mut self.nodes[id.0 as usize].0
    }
}

impl std::ops::Index<ExprId> for Exprs {
    type Output = Expr;
    fn index(&self, id: ExprId) -> &Expr {
        &self.nodes[id.0 as usize].0
    }
}

/// A name and its place.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// What a file declares.
#[derive(Debug)]
pub enum Item {
    /// A stencil.
    Stencil(Stencil),
    /// A program.
    Program(Stencil),
    /// A function.
    Function(Function),
    /// A constant.
    Constant(Constant),
    /// Parameters.
    Param(Params),
    /// A name for a type.
    Type(TypeName),
    /// A test.
    Test(Test),
    /// A mesh.
    Mesh(Mesh),
    /// The path of a file whose items stand among these.
    Import(Name),
}

/// `type vp = f32`
#[derive(Clone, Debug)]
pub struct TypeName {
    /// The name.
    pub name: Name,
    /// What it is.
    pub stored: Stored,
}

/// A stencil, or a program: calls of stencils, in time.
#[derive(Debug)]
pub struct Stencil {
    /// Its documentation.
    pub doc: String,
    /// Its name.
    pub name: Name,
    /// `over mesh.set`; of a program, `over mesh`.
    pub over: Option<Trail>,
    /// What stands between its braces.
    pub statements: Vec<Statement>,
}

/// Names with points between them: `airfoil.edge`.
#[derive(Clone, Debug)]
pub struct Trail {
    /// The names; at least one.
    pub names: Vec<Name>,
    /// All of them.
    pub span: Span,
}

/// `mesh airfoil { ... }`
#[derive(Debug)]
pub struct Mesh {
    /// Its documentation.
    pub doc: String,
    /// Its name.
    pub name: Name,
    /// What stands between its braces.
    pub parts: Vec<MeshPart>,
}

/// What stands in a mesh.
#[derive(Debug)]
pub enum MeshPart {
    /// `set node, edge`
    Set(Vec<Name>),
    /// `map edge.nodes -> node[2]`
    Map(MeshMap),
    /// `zone lateral, interior on edge`
    Zones(Vec<Name>, Name),
    /// `levels k`
    Levels(Name),
}

/// `map vertex.edges -> edge[6] missing skip`
#[derive(Debug)]
pub struct MeshMap {
    /// Its documentation.
    pub doc: String,
    /// Whose elements it leads from.
    pub from: Name,
    /// Its name.
    pub name: Name,
    /// Where it leads.
    pub to: Name,
    /// How many elements it leads to; 1 if it is not said.
    pub arity: Option<(ExprId, Span)>,
    /// What holes mean.
    pub missing: Option<MapHoles>,
}

/// What a hole of a map means.
#[derive(Debug)]
pub enum MapHoles {
    /// `missing skip`
    Skip,
    /// `missing value(x)`
    Value(ExprId),
}

/// A statement of a stencil or program.
#[derive(Debug)]
pub enum Statement {
    /// Fields.
    Field(Fields),
    /// Parameters.
    Param(Params),
    /// A constant.
    Constant(Constant),
    /// A function.
    Function(Function),
    /// A value at every cell.
    Let(Let),
    /// A value to show.
    Print(Print),
    /// An assignment.
    Assign(Assign),
    /// Numbers made of all elements.
    Reduce(Reduce),
    /// A vertical recurrence.
    Sweep(Sweep),
    /// Statements that are repeated.
    Repeat(Repeat),
    /// What reads beyond the edges mean.
    Boundary(Boundary),
    /// `sums by level`: sums are added in that order.
    SumsByLevel(Span),
    /// Which part of an axis is computed.
    Within(Within),
    /// Which elements of the set are computed.
    Zones(Zones),
}

/// `levels 1..nk`, `level nk-1`, or along i or j `i 2..ni-2`, `j 0`
#[derive(Debug)]
pub struct Within {
    /// Along which axis.
    pub axis: GridAxis,
    /// The first, or the only one.
    pub first: ExprId,
    /// The one after the last.
    pub end: Option<ExprId>,
    /// Where that stands.
    pub span: Span,
    /// How it is written, from where `span` begins.
    pub text: FreeText,
}

impl Within {
    /// How it is written, in one line.
    pub fn line(&self) -> String {
        in_one_line(self.text.as_told())
    }

    /// How a part of it is written, in one line.
    pub fn line_of(&self, part: Span) -> String {
        let from = |at: u32| at.saturating_sub(self.span.start) as usize;
        in_one_line(self.text.as_told().get(from(part.start)..from(part.end)).unwrap_or_default())
    }
}

/// Without comments, each blank once.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(line, _)| line));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// `zones nudging, interior`
#[derive(Debug)]
pub struct Zones {
    /// The zones, in any order.
    pub names: Vec<Name>,
    /// Where that stands.
    pub span: Span,
}

/// `on nudging, interior, levels 3..nk`, `on i 0..3, levels 1..nk`
#[derive(Debug)]
pub struct Where {
    /// The zones; all elements if none is named.
    pub zones: Vec<Name>,
    /// What is said of axes, at most once of each.
    pub within: Vec<Within>,
    /// The whole of it.
    pub span: Span,
}

/// `in a, b: f32 on (k) = 0..1`
#[derive(Debug)]
pub struct Fields {
    /// Documentation.
    pub doc: String,
    /// `in`, `out`, `inout` or `inc`.
    pub role: Name,
    /// What a mesh calls the field, if that is said: `in x as middle`.
    pub original: Option<Name>,
    /// The fields.
    pub names: Vec<Name>,
    /// `: f32`
    pub typed: Option<Typed>,
    /// `on (i, j)`
    pub place: Option<PlaceOn>,
    /// `= 0.5..1.5`
    pub drawn: Option<(ExprId, ExprId)>,
}

/// `: real[4]`, or `: vp` of a file with `type vp = f32`
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    /// `real`, `f32`, `f64`, `int` or `bool`.
    pub stored: Stored,
    /// Whether the file has a name for it: that says how one computes with it, too.
    pub is_named: bool,
    /// Where that stands.
    pub span: Span,
    /// `[4]`
    pub parts: Option<(ExprId, Span)>,
}

/// Where a field lives.
#[derive(Clone, Debug)]
pub enum PlaceOn {
    /// `on (i, j, k+1)`: the axes as written, without blanks.
    Axes(Vec<Name>, Span),
    /// `on cell.edges, no k`: the names, and what is said of levels.
    Mesh(Trail, Option<Along>),
}

/// What the place of a field on a set says of levels.
#[derive(Clone, Debug)]
pub enum Along {
    /// `no k`: the name of what there is none of.
    No(Name),
    /// `k+1`, without blanks.
    Axis(Name),
}

/// `param dt: real = 10`
#[derive(Debug)]
pub struct Params {
    /// Documentation.
    pub doc: String,
    /// The parameters.
    pub names: Vec<Name>,
    /// `: real`
    pub typed: Option<Typed>,
    /// `= 10`
    pub default: Option<ExprId>,
}

/// `const c: f32 = 1.4`
#[derive(Debug)]
pub struct Constant {
    /// Its name.
    pub name: Name,
    /// `: f32`
    pub typed: Option<Typed>,
    /// Its value.
    pub value: ExprId,
}

/// `fn f(a, b) = a + b`
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// What it takes.
    pub params: Vec<Name>,
    /// What it returns.
    pub body: Block,
}

/// `{ let s = a + b; s / 2 }`, or a single expression.
#[derive(Clone, Debug)]
pub struct Block {
    /// Names of its own.
    pub lets: Vec<Let>,
    /// Its value.
    pub value: ExprId,
}

/// `let a, b = ...`, `let g on edge = ...`
#[derive(Clone, Debug)]
pub struct Let {
    /// The names.
    pub names: Vec<Name>,
    /// `: f32`
    pub typed: Option<Typed>,
    /// `on edge`
    pub place: Option<PlaceOn>,
    /// The value.
    pub value: ExprId,
}

/// `print("label", ...)`
#[derive(Debug)]
pub struct Print {
    /// What stands before its values: the text in quotes, or the expression as it is written.
    pub label: String,
    /// The value.
    pub value: ExprId,
    /// The whole statement.
    pub span: Span,
}

/// `res = ...`
#[derive(Debug)]
pub struct Assign {
    /// What is assigned.
    pub targets: Vec<Target>,
    /// `=`, `+=` or `-=`.
    pub op: Name,
    /// The value.
    pub value: ExprId,
}

/// `reduce change: sum`
#[derive(Debug)]
pub struct Reduce {
    /// Documentation.
    pub doc: String,
    /// The numbers.
    pub names: Vec<Name>,
    /// `sum`, `min` or `max`.
    pub op: Name,
    /// Its first line.
    pub span: Span,
}

/// `repeat steps as step { ... }`
#[derive(Debug)]
pub struct Repeat {
    /// How often.
    pub times: ExprId,
    /// What each turn calls its number.
    pub counter: Option<Name>,
    /// What stands between the braces.
    pub statements: Vec<Statement>,
    /// Its first line.
    pub span: Span,
}

/// `boundary phi { i: periodic, j low: value(0) }`
#[derive(Debug)]
pub struct Boundary {
    /// Of which fields; of all if there are none.
    pub names: Vec<Name>,
    /// What is said of the edges.
    pub rules: Vec<EdgeRule>,
    /// Its first line.
    pub span: Span,
}

/// `j low: value(0)`
#[derive(Debug)]
pub struct EdgeRule {
    /// `i`, `j` or `k`.
    pub axis: Name,
    /// `low` or `high`; both if it is not said.
    pub side: Option<Name>,
    /// `periodic`, `value`, `copy`, `mirror`, `-mirror` or `halo`.
    pub kind: Name,
    /// What stands in the parentheses of `value`.
    pub value: Option<ExprId>,
    /// The whole of it.
    pub span: Span,
}

/// What is assigned.
#[derive(Debug)]
pub struct Target {
    /// The field.
    pub name: Name,
    /// `[cells.0]`: what stands between the brackets, and the whole of it.
    pub index: Option<(Vec<ExprId>, Span)>,
}

/// `test "title" { ... }`
#[derive(Debug)]
pub struct Test {
    /// What stands between the quotes; the place includes them.
    pub title: Name,
    /// The whole of it.
    pub span: Span,
    /// What stands between its braces.
    pub parts: Vec<TestPart>,
}

/// What stands in a test.
#[derive(Debug)]
pub enum TestPart {
    /// `grid(12, 10, 6)`: the numbers, and the place of it all.
    Grid(Vec<ExprId>, Span),
    /// `mesh triangles(8, 6)`: what is made, how large, and the place of it all.
    Made(Name, Vec<ExprId>, Span),
    /// `zone cell = if i < 12 { 0 } else { 1 }`: the set, the number of the zone of each element, and the place of it all.
    Zone(Name, ExprId, Span),
    /// `levels(3)`: how many levels the elements of a mesh have.
    Depth(ExprId, Span),
    /// The stencil that is tested.
    TestedCall(TestedCall),
    /// A value at every cell.
    Let(Let),
    /// `expect abs(res) < 1e-12`: what has to be true, and the place of it all.
    Expect(ExprId, Span),
}

/// `laplap { phi = 2*i + 3*j }`
#[derive(Debug)]
pub struct TestedCall {
    /// The stencil.
    pub name: Name,
    /// Its inputs and parameters.
    pub values: Vec<Assign>,
}

/// `sweep k up { ... }`
#[derive(Debug)]
pub struct Sweep {
    /// `k`
    pub axis: Name,
    /// `up` or `down`.
    pub direction: crate::ir::Direction,
    /// What stands between its braces.
    pub statements: Vec<Statement>,
    /// Its first line.
    pub span: Span,
}

/// An expression.
#[derive(Debug)]
pub enum Expr {
    /// `0.5`
    Real(f64),
    /// `3`, perhaps more than 32 bits hold.
    Int(i64),
    /// `true`
    Truth(bool),
    /// `phi`
    Name(String),
    /// `-a`, `!a`
    Prefix(Prefix, ExprId),
    /// `a + b`
    Infix(Infix, ExprId, ExprId),
    /// `a[i-1, j]`
    Index(ExprId, Vec<ExprId>),
    /// `level nk - 1`, which stands in brackets alone.
    Level(ExprId),
    /// `v.0` or `cells.nodes`
    Component(ExprId, Name),
    /// `f(a, n = 2)`
    Call(Name, Vec<Argument>),
    /// `if a { b } else if c { d } else { e }`
    Choose(Vec<(ExprId, Block)>, Box<Block>),
    /// `sum(n in 1..=3) { ... }`
    Fold(Name, Vec<Binder>, Box<Block>),
    /// `[a, b, c]`
    Vector(Vec<ExprId>),
    /// `(a)`
    Group(ExprId),
    /// `{ let s = a + b; s / 2 }`
    Block(Box<Block>),
}

/// An argument of a call.
#[derive(Debug)]
pub struct Argument {
    /// `n =`
    pub name: Option<Name>,
    /// The value.
    pub value: ExprId,
}

/// `n in 1..=3`
#[derive(Debug)]
pub struct Binder {
    /// The name.
    pub name: Name,
    /// What it runs over.
    pub range: Range,
}

/// What a binder runs over.
#[derive(Debug)]
pub enum Range {
    /// Both ends included.
    Numbers(ExprId, ExprId),
    /// Maps of a mesh, one after the other: `edges.cells`.
    Map(Trail),
}

/// An operator before its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// `-`
    Negate,
    /// `!`
    Not,
}

/// An operator between its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infix {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `<` and its like.
    Compare(crate::ir::Relation),
    /// `+` and its like.
    Arithmetic(crate::ir::Binary),
    /// `**`
    Power,
}
