//! Names that mean nothing where they stand, and what may have been meant.

use super::report::DIAGNOSTICS;
use super::scope::FUNCTIONS;
use super::{Found, Lowering};
use crate::ast::{self, Item, Name, Statement};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::foreign;
use crate::source::Span;

/// What is visible is listed if it is no more than this.
const LISTED: usize = 8;

impl Lowering<'_> {
    /// Reports a name that means nothing, with a guess. The place of the call does not matter.
    pub(super) fn unknown<T>(&mut self, name: &str, span: Span, what: &str) -> Found<T> {
        let found = Diagnostic::error(span, format!("unknown {what} `{name}`"));
        // Beyond what will be shown, guesses cost time and help nobody.
        if self.reports.diagnostics.len() > DIAGNOSTICS {
            return self.report_alone(found);
        }
        let is_function = what == "function";
        if is_function && self.calls.last().is_some_and(|call| call.name == name) {
            let found = wrong(span, format!("the function `{name}` calls itself"), "not possible");
            let found = found.help("functions are written out where they are called; a `sum` repeats a term");
            return self.report_alone(found);
        }
        if !self.globals.may_guess(self.scope.mark()) {
            return self.report_alone(found);
        }
        let candidates: Vec<&str> = self.scope.names().chain(self.globals.names()).collect();
        let functions = FUNCTIONS.iter().copied().filter(|_| is_function);
        let near = guess(name, candidates.iter().copied().chain(functions));
        // Of short names, nearly every other is near.
        let same = ["k", "nk", "pi"].into_iter().chain(near).find(|near| near.eq_ignore_ascii_case(name));
        let near = same.or(near);
        let is_near = near.is_some_and(|_| name.len() > 3 || same.is_some());
        let meant = if is_function { foreign::function(name) } else { foreign::constant(name) };
        let operator = foreign::operator(name).filter(|_| is_function && guess(name, candidates).is_none());
        let elsewhere = self.elsewhere(name);
        let found = match (meant, elsewhere) {
            (Some(meant), _) => found.label(format!("did you mean `{meant}`?")),
            _ if operator.is_some() => found.label("not defined here").help_if(operator),
            _ if is_near => found.label(format!("did you mean `{}`?", near.unwrap_or(""))),
            (None, Some((at, found_what))) => self.out_of_sight(name, at, found_what, found),
            (None, None) => found.meant(near, |found| match is_function {
                _ if FUNCTIONS.contains(&name) => {
                    found.label(format!("a function of the language: call it, as in `{name}(a)`"))
                }
                true => found.label("not defined here").help(foreign::functions()),
                false => found.label("not defined here").help(self.visible()),
            }),
        };
        self.report_alone(found)
    }

    /// What can be read here, unless that is too much.
    fn visible(&self) -> String {
        let is_readable = |&name: &&str| self.field_at(name).is_none_or(|id| self.stencil.fields[id].role.is_read());
        let visible: Vec<&str> = self.scope.names().filter(is_readable).collect();
        if visible.is_empty() || visible.len() > LISTED {
            return "fields are declared with `in`, values are named with `let`".to_owned();
        }
        let list = visible.join("`, `");
        format!("what is known here: `{list}`; a field is declared with `in`, a value named with `let`")
    }

    /// The place in a stencil where a name is defined that cannot be seen, and what it is.
    fn elsewhere(&self, name: &str) -> Option<(Span, &'static str)> {
        // Inside a stencil, only its own names matter; a function of the file may be meant for any.
        let is_own = |own: &&ast::Stencil| self.stencil.name.is_empty() || own.name.text == self.stencil.name;
        self.file.stencils().filter(is_own).flat_map(|own| super::flat(&own.statements)).find_map(|statement| {
            let (names, what): (Vec<&Name>, _) = match statement {
                Statement::Field(fields) => (fields.names.iter().collect(), "a field"),
                Statement::Param(params) => (params.names.iter().collect(), "a parameter"),
                Statement::Constant(constant) => (vec![&constant.name], "a constant"),
                Statement::Function(function) => (vec![&function.name], "a function"),
                Statement::Let(binding) => (binding.names.iter().collect(), "a value"),
                Statement::Print(_) | Statement::Assign(_) | Statement::Sweep(_) => return None,
                Statement::Repeat(_) | Statement::Boundary(_) | Statement::Reduce(_) => return None,
                Statement::SumsByLevel(_) | Statement::Within(_) | Statement::Zones(_) => return None,
            };
            names.iter().find(|own| own.text == name).map(|own| (own.span, what))
        })
    }

    /// Whether a place lies in a function, constant or parameter of the file.
    fn is_at_file_level(&self, place: Span) -> bool {
        let start = |item: &Item| match item {
            Item::Param(params) => params.names.first().map_or(0, |name| name.span.start),
            Item::Stencil(ast::Stencil { name, .. }) | Item::Program(ast::Stencil { name, .. }) => name.span.start,
            Item::Function(ast::Function { name, .. }) | Item::Constant(ast::Constant { name, .. }) => name.span.start,
            Item::Test(ast::Test { title: name, .. }) | Item::Mesh(ast::Mesh { name, .. }) => name.span.start,
            Item::Import(path) => path.span.start,
            Item::Type(own) => own.name.span.start,
        };
        let before = self.file.items.iter().rfind(|item| start(item) <= place.start);
        matches!(before, Some(Item::Function(_) | Item::Constant(_) | Item::Param(_)))
    }

    /// A name that is defined, but later, or in a stencil that a function of the file does not see.
    fn out_of_sight(&self, name: &str, at: Span, what: &str, found: Diagnostic) -> Diagnostic {
        if self.is_at_file_level(found.label.span) {
            let help = match what {
                "a parameter" => "declare it at file level, beside what uses it, or pass it as an argument",
                "a constant" => "write it at file level, beside what uses it",
                "a function" => "write both functions at file level, or both in the stencil",
                _ => "a function sees its arguments and what stands at file level: pass it as an argument",
            };
            return found.label("not visible at file level").note(at, format!("{what} of the stencil")).help(help);
        }
        if at.start < found.label.span.start {
            return found
                .label("used in its own definition")
                .note(at, "defined here")
                .help("a name means one value and never changes: give the new value a name of its own");
        }
        found
            .label("used before it is defined")
            .note(at, "defined here")
            .help(format!("put the line that defines `{name}` above this one"))
    }
}
