//! Names and what they stand for. No name hides another.

use super::Lowering;
use super::value::Bound;
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::{FieldId, ParamId, Path, Stored, VariableId};
use crate::names;
use crate::source::Span;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// Names that mean something everywhere.
pub const TAKEN: &[&str] = &["i", "j", "k", "ni", "nj", "nk", "pi"];

pub use crate::foreign::FUNCTIONS;

/// The statement that shows values.
pub const PRINT: &str = "print";

/// The most names that all guesses of a file together look at.
const GUESSES: usize = 200_000;

/// What a name of a stencil stands for.
#[derive(Clone)]
pub enum Binding<'a> {
    /// A field.
    Field(FieldId),
    /// A field of a program.
    Variable(VariableId),
    /// A parameter.
    Param(ParamId),
    /// A constant.
    Constant(&'a ast::Constant),
    /// A function.
    Function(&'a ast::Function),
    /// A `let`, an argument, the counter of a sum.
    Value(Bound),
    /// The counter of a sum over a map: where it leads.
    Slot(Path),
    /// Something that was reported already.
    Broken,
}

/// What a name of the file stands for.
#[derive(Clone, Copy)]
pub enum Global<'a> {
    /// A parameter: which of the names of the declaration.
    Param(&'a ast::Params, usize),
    /// A constant.
    Constant(&'a ast::Constant),
    /// A function.
    Function(&'a ast::Function),
    /// A stencil, which is no value.
    Stencil,
    /// A program, which is none either.
    Program,
    /// A mesh, which is none either.
    Mesh,
    /// A type, into which numbers are converted.
    Type(Stored),
}

/// The names of a file.
pub struct Globals<'a> {
    /// The file.
    pub file: &'a ast::File,
    names: HashMap<&'a str, (Global<'a>, Span)>,
    /// How many names guesses may still look at.
    guesses: Cell<usize>,
}

impl<'a> Globals<'a> {
    /// The names that `file` declares; a name that stands for two things is reported.
    pub fn collect(file: &'a ast::File, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let mut globals = Self { file, names: HashMap::new(), guesses: Cell::new(GUESSES) };
        let mut add = |name: &'a ast::Name, global| {
            if let (Global::Type(_), Some(_)) = (&global, Stored::named(&name.text)) {
                let found = Diagnostic::error(name.span, format!("the name `{}` is taken: it is a type", name.text));
                diagnostics.push(found.label("choose another name"));
            } else if let Some(taken) = taken(name) {
                diagnostics.push(taken);
            } else if let Some((_, before)) = globals.names.get(name.text.as_str()) {
                diagnostics.push(twice(name, *before));
            } else {
                globals.names.insert(&name.text, (global, name.span));
            }
        };
        for item in &file.items {
            match item {
                ast::Item::Stencil(stencil) => add(&stencil.name, Global::Stencil),
                ast::Item::Program(program) => add(&program.name, Global::Program),
                ast::Item::Function(function) => add(&function.name, Global::Function(function)),
                ast::Item::Constant(constant) => add(&constant.name, Global::Constant(constant)),
                ast::Item::Param(params) => {
                    params.names.iter().enumerate().for_each(|(n, name)| add(name, Global::Param(params, n)));
                }
                ast::Item::Mesh(mesh) => add(&mesh.name, Global::Mesh),
                ast::Item::Type(own) => add(&own.name, Global::Type(own.stored)),
                ast::Item::Test(_) | ast::Item::Import(_) => {}
            }
        }
        let mut stems: HashMap<String, &ast::Name> = HashMap::new();
        for item in &file.items {
            let ast::Item::Stencil(ast::Stencil { name, .. }) = item else { continue };
            let before = *stems.entry(names::stem(&name.text)).or_insert(name);
            if before.text != name.text {
                let message = format!("the kernels of `{}` and `{}` would have the same name", before.text, name.text);
                diagnostics.push(
                    wrong(name.span, message, "too much like the other")
                        .note(before.span, "which is here")
                        .help("C and C++ keep names that begin with `_`, or hold `__`, for themselves: choose another"),
                );
            }
        }
        globals
    }

    /// The file's meaning of a name.
    pub fn find(&self, name: &str) -> Option<Global<'a>> {
        self.names.get(name).map(|(global, _)| *global)
    }

    /// Whether a guess may look at all names of the file and so many others. In a large file, guesses beyond the first
    /// ones would cost seconds.
    pub fn may_guess(&self, others: usize) -> bool {
        let left = self.guesses.get().checked_sub(self.names.len() + others);
        self.guesses.set(left.unwrap_or(0));
        left.is_some()
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().copied()
    }

    /// Warns of functions, constants and parameters that no stencil uses.
    pub fn report_unused(&self, used: &HashSet<String>, diagnostics: &mut Vec<Diagnostic>) {
        for (name, (global, span)) in &self.names {
            let what = match global {
                Global::Param(..) => "the parameter",
                Global::Constant(_) => "the constant",
                Global::Function(_) => "the function",
                Global::Type(_) => "the type",
                Global::Stencil | Global::Program | Global::Mesh => continue,
            };
            if !used.contains(*name) {
                diagnostics.push(Diagnostic::unused(*span, what, name));
            }
        }
    }
}

fn taken(name: &ast::Name) -> Option<Diagnostic> {
    let text = name.text.as_str();
    let why = match text {
        PRINT => "it shows values",
        _ if TAKEN.contains(&text) => "it means the same everywhere",
        _ if FUNCTIONS.contains(&text) => "it is a function of the language",
        _ => return None,
    };
    Some(Diagnostic::error(name.span, format!("the name `{text}` is taken: {why}")).label("choose another name"))
}

fn twice(name: &ast::Name, before: Span) -> Diagnostic {
    wrong(name.span, format!("`{}` is defined twice", name.text), "defined again here")
        .note(before, "defined here first")
        .help("no name hides another: choose a different one")
}

/// A name of a stencil.
#[derive(Clone)]
pub struct Symbol<'a> {
    /// The name.
    pub name: String,
    /// Where it is defined.
    pub span: Span,
    /// What it is called in messages.
    pub what: &'static str,
    /// What it stands for.
    pub binding: Binding<'a>,
}

/// The names that are visible at a place.
#[derive(Clone, Default)]
pub struct Scope<'a> {
    symbols: Vec<Symbol<'a>>,
    /// Where in `symbols` each name stands, innermost last.
    places: HashMap<String, Vec<usize>>,
    /// Symbols from here on belong to the functions being called and blocks being written.
    locals: usize,
    /// Of the stencil's own symbols, those before this one are visible.
    horizon: usize,
    used: HashSet<usize>,
    /// Names of the file that were used.
    pub used_globals: HashSet<String>,
    /// Where each output is assigned.
    pub assigned: HashMap<String, Span>,
}

impl<'a> Scope<'a> {
    fn is_visible(&self, place: usize) -> bool {
        place < self.horizon || place >= self.locals
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name)?.iter().copied().find(|&place| self.is_visible(place))
    }

    /// What a visible name of the stencil stands for.
    pub fn find(&self, name: &str) -> Option<&Symbol<'a>> {
        self.place(name).map(|place| &self.symbols[place])
    }

    /// The same without its place.
    pub fn binding(&self, name: &str) -> Option<&Binding<'a>> {
        self.find(name).map(|symbol| &symbol.binding)
    }

    /// What a visible name of the stencil stands for; remembers that it was used.
    pub fn use_name(&mut self, name: &str) -> Option<Symbol<'a>> {
        let place = self.place(name)?;
        self.used.insert(place);
        Some(self.symbols[place].clone())
    }

    /// Remembers that a name of the file was used.
    pub fn use_global(&mut self, name: &str) {
        self.used_globals.insert(name.to_owned());
    }

    /// The position of a symbol, which is what a function defined there can see.
    pub fn position(&self, name: &str) -> usize {
        self.places.get(name).and_then(|places| places.first().copied()).unwrap_or(0)
    }

    /// How many symbols there are, to come back to after a block.
    pub fn mark(&self) -> usize {
        self.symbols.len()
    }

    /// Forgets the symbols of a block.
    pub fn forget(&mut self, mark: usize) {
        self.truncate(mark);
        self.locals = self.locals.min(mark);
        self.horizon = self.horizon.min(mark);
    }

    fn truncate(&mut self, length: usize) {
        for symbol in self.symbols.drain(length.min(self.symbols.len())..) {
            if let Some(places) = self.places.get_mut(&symbol.name) {
                places.pop();
            }
        }
    }

    fn add(&mut self, symbol: Symbol<'a>) {
        self.places.entry(symbol.name.clone()).or_default().push(self.symbols.len());
        let outermost = self.horizon == self.symbols.len() && self.locals == self.symbols.len();
        self.symbols.push(symbol);
        if outermost {
            self.horizon += 1;
            self.locals += 1;
        }
    }

    /// Names that were never used, from `mark` on.
    fn unused_from(&self, mark: usize) -> impl Iterator<Item = &Symbol<'a>> {
        let own = self.symbols.iter().enumerate().skip(mark);
        // What is wrong with a name was told already.
        own.filter(|(index, symbol)| !self.used.contains(index) && !matches!(symbol.binding, Binding::Broken))
            .map(|(_, symbol)| symbol)
    }

    /// The stencil's own names that were never used; outputs are there to be assigned.
    pub fn unused(&self) -> Vec<Symbol<'a>> {
        self.unused_from(0).filter(|symbol| !self.assigned.contains_key(&symbol.name)).cloned().collect()
    }

    /// Names of the block or function being written, from `mark` on, that were never used; each is told once.
    pub fn unused_since(&mut self, mark: usize) -> Vec<Symbol<'a>> {
        let unused = self.unused_from(mark).cloned().collect();
        // The places are used again by the next block's names.
        self.used.retain(|&index| index < mark);
        unused
    }

    /// The visible names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.symbols.iter().enumerate();
        all.filter(|(place, _)| self.is_visible(*place)).map(|(_, symbol)| symbol.name.as_str())
    }
}

impl<'a> Lowering<'a> {
    /// Does something in a function that sees the first `horizon` symbols of the stencil and nothing of its caller's own.
    pub(super) fn within<T>(&mut self, horizon: usize, then: impl FnOnce(&mut Self) -> T) -> T {
        let outside = (self.scope.locals, self.scope.horizon);
        (self.scope.locals, self.scope.horizon) = (self.scope.symbols.len(), horizon);
        let value = then(self);
        self.scope.truncate(self.scope.locals);
        (self.scope.locals, self.scope.horizon) = outside;
        value
    }

    /// Gives a name a meaning, unless it has one.
    pub(super) fn define(&mut self, name: &ast::Name, binding: Binding<'a>) {
        let before = self.scope.find(&name.text).map(|symbol| symbol.span);
        let global = self.globals.names.get(name.text.as_str());
        let global = global
            .filter(|(global, _)| !matches!(global, Global::Stencil | Global::Program | Global::Mesh))
            .map(|(_, span)| *span);
        let binding = match (taken(name), before.or(global)) {
            (Some(taken), _) => {
                // The name exists all the same, so that its uses are not reported too.
                self.report_alone(taken).unwrap_or(Binding::Broken)
            }
            (None, Some(before)) => return self.report_alone(twice(name, before)).unwrap_or_default(),
            (None, None) => binding,
        };
        let what = match binding {
            Binding::Field(_) | Binding::Variable(_) => "the field",
            Binding::Param(_) => "the parameter",
            Binding::Constant(_) => "the constant",
            Binding::Function(_) => "the function",
            Binding::Value(_) | Binding::Slot(_) | Binding::Broken => "the value",
        };
        self.scope.add(Symbol { name: name.text.clone(), span: name.span, what, binding });
    }
}
