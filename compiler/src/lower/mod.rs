//! From the syntax tree to the IR: names are resolved, kinds checked, functions and sums written out.
//!
//! Errors do not stop it: what is wrong is reported, the rest goes on, and what depends on something already reported
//! stays silent.

mod arithmetic;
mod assign;
mod block;
mod body;
mod call;
mod constant;
mod declare;
mod expression;
mod file;
mod index;
mod kind;
mod mesh;
mod moved;
mod name;
mod program;
mod report;
mod rounding;
mod said;
mod scope;
mod stencil;
mod sweep;
mod test;
mod unknown;
mod unused;
mod value;
mod within;

use crate::ast;
use crate::ir::program::GridAxis;
use crate::ir::{self, Body, ParamId, Stencil};
use crate::source::Span;
use crate::text::FreeText;
pub use file::{Library, Lowered, lower};
use scope::Scope;
use std::collections::HashMap;

/// The longest chain of functions that call each other.
const CALLS: usize = 100;

/// Lowers one stencil.
#[derive(Clone)]
struct Lowering<'a> {
    file: &'a ast::File,
    globals: &'a scope::Globals<'a>,
    scope: Scope<'a>,
    stencil: Stencil,
    /// The bodies under construction; the last is being written.
    bodies: Vec<rounding::Writing>,
    size: body::Size,
    /// The functions being called, innermost last.
    calls: Vec<call::Call>,
    constants: constant::Constants,
    /// The parameters declared so far, by the place of their name; nothing of those that are wrong.
    params: HashMap<Span, Option<ParamId>>,
    /// The mesh over which it runs.
    over: Option<mesh::Over<'a>>,
    /// In a program over a mesh: the numbers that change, by the fields that stand for them.
    numbers: Vec<ir::VariableId>,
    /// In a program over a mesh: the parameters that stand for sizes of sets.
    sizes: Vec<(ParamId, ir::SetId)>,
    /// Reductions, and where they are declared.
    reductions: Vec<(ir::FieldId, &'a ast::Reduce)>,
    /// Where it is said that sums are added level by level.
    sums_by_level: Option<Span>,
    /// Of which axes it is said which part is computed, and where.
    within_said: Vec<(GridAxis, Span)>,
    /// Whether `ni` and `nj` have a meaning: in bounds of what is computed.
    counts_columns: bool,
    /// Where it is said which zones are computed.
    zones_said: Option<Span>,
    /// Where it asks for zones outside of functions, and for which.
    zones_asked: Vec<(Span, Vec<u8>)>,
    /// Whether a single level is computed.
    has_one_level: bool,
    /// What is known of vertical recurrences.
    sweeps: sweep::Sweeps,
    /// In a test: what the names of coordinates stand for.
    coordinates: Option<test::Coordinates>,
    reports: report::Reports,
}

/// A value under construction: nothing if an error was reported.
type Found<T> = Option<T>;

impl<'a> Lowering<'a> {
    fn new(globals: &'a scope::Globals<'a>, name: &str, doc: &str) -> Self {
        Self {
            file: globals.file,
            globals,
            scope: Scope::default(),
            stencil: Stencil { name: name.to_owned(), doc: FreeText::new(doc), ..Stencil::default() },
            bodies: Vec::new(),
            size: body::Size::default(),
            calls: Vec::new(),
            constants: constant::Constants::default(),
            params: HashMap::new(),
            over: None,
            numbers: Vec::new(),
            sizes: Vec::new(),
            reductions: Vec::new(),
            sums_by_level: None,
            within_said: Vec::new(),
            counts_columns: false,
            zones_said: None,
            zones_asked: Vec::new(),
            has_one_level: false,
            sweeps: sweep::Sweeps::default(),
            coordinates: None,
            reports: report::Reports::default(),
        }
    }

    /// Where an expression stands.
    fn span(&self, expr: ast::ExprId) -> Span {
        self.file.exprs.span(expr)
    }
}

/// Statements, and those inside of them.
fn flat(statements: &[ast::Statement]) -> impl Iterator<Item = &ast::Statement> {
    statements.iter().flat_map(|statement| {
        let inner = match statement {
            ast::Statement::Sweep(sweep) => &sweep.statements[..],
            ast::Statement::Repeat(repeat) => &repeat.statements[..],
            ast::Statement::Field(_) | ast::Statement::Param(_) | ast::Statement::Constant(_) => &[],
            ast::Statement::Function(_) | ast::Statement::Let(_) | ast::Statement::Print(_) => &[],
            ast::Statement::Assign(_) | ast::Statement::Boundary(_) | ast::Statement::Reduce(_) => &[],
            ast::Statement::SumsByLevel(_) | ast::Statement::Within(_) | ast::Statement::Zones(_) => &[],
        };
        std::iter::once(statement).chain(inner)
    })
}

/// The assignments among statements, and those inside of them.
fn assignments(statements: &[ast::Statement]) -> impl Iterator<Item = &ast::Assign> {
    flat(statements)
        .filter_map(|statement| if let ast::Statement::Assign(assign) = statement { Some(assign) } else { None })
}
