//! Stencils: their statements, and what can be told when all of them are known.

use super::report::has_error;
use super::said::reads_where_data_says;
use super::scope::{Binding, Symbol};
use super::value::Bound;
use super::{Found, Lowering, assignments, flat, mesh, value};
use crate::analysis;
use crate::ast::{self, Statement, Within};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::program::GridAxis;
use crate::ir::{self, Body, Field, Levels, Origin, Place, Role, Verify};
use crate::source::Span;

/// The most prints of one stencil: each is a computation of its own.
const PRINTS: usize = 100;

impl<'a> Lowering<'a> {
    pub(super) fn stencil(&mut self, stencil: &'a ast::Stencil, meshes: &'a [mesh::Declared]) {
        if let Some(over) = &stencil.over {
            let Some(over) = self.over_set(meshes, over) else { return };
            self.over = Some(over);
        }
        let mut prints = flat(&stencil.statements)
            .filter_map(|statement| if let Statement::Print(print) = statement { Some(print.span) } else { None });
        if let Some(place) = prints.nth(PRINTS) {
            let found = wrong(place, format!("a stencil has at most {PRINTS} prints"), "one too many");
            self.tell(found.help("keep those that you look at"));
        }
        self.has_one_level = stencil
            .statements
            .iter()
            .any(|own| matches!(own, Statement::Within(Within { axis: GridAxis::K, end: None, .. })));
        for statement in &stencil.statements {
            if self.is_given_up() {
                return;
            }
            self.refuse_place(statement);
            match statement {
                Statement::Field(fields) => self.declare_fields(fields),
                Statement::Param(params) => self.declare_params(params),
                Statement::Constant(constant) => self.define(&constant.name, Binding::Constant(constant)),
                Statement::Function(function) => self.define(&function.name, Binding::Function(function)),
                Statement::Let(binding) if self.lets_an_output(binding, &stencil.statements) => {}
                Statement::Let(binding) => self.define_let(binding),
                Statement::Print(print) => self.print(print),
                Statement::Assign(assign) => self.assign(assign),
                Statement::Sweep(sweep) => self.sweep(sweep),
                Statement::Reduce(reduce) => self.declare_reductions(reduce),
                Statement::SumsByLevel(span) => self.declare_order(*span),
                Statement::Within(within) => self.declare_within(within),
                Statement::Zones(zones) => self.declare_zones(zones),
                Statement::Repeat(ast::Repeat { span, .. }) | Statement::Boundary(ast::Boundary { span, .. }) => {
                    let found = Diagnostic::error(*span, "this belongs into a `program`").label("in a stencil");
                    // What is assigned in it would seem never to be.
                    return self
                        .tell(found.help("a program calls stencils, repeats calls, and says what lies beyond edges"));
                }
            }
        }
        self.finish(stencil);
    }

    /// Reports `on ...` behind what a stencil computes.
    pub(super) fn refuse_place(&mut self, statement: &Statement) {
        let (Statement::Let(ast::Let { value, .. }) | Statement::Assign(ast::Assign { value, .. })) = statement else {
            return;
        };
        let Some(place) = self.file.wheres.get(value) else { return };
        let found = wrong(place.span, "where something is computed is said of a call in a program", "in a stencil");
        let what = if self.is_over_mesh() { "`zones ...`" } else { "`i ...`, `j ...`" };
        self.tell(found.help(format!(
            "all that a stencil writes is computed in the same place: {what} and `levels ...` stand on lines of their own"
        )));
    }

    /// Reports a `let` that was to assign an output, which no other statement assigns.
    pub(super) fn lets_an_output(&mut self, binding: &ast::Let, among: &[Statement]) -> bool {
        let [name] = binding.names.as_slice() else { return false };
        let Some(field) = self.field_at(&name.text) else { return false };
        let Field { span: declared, role, .. } = self.stencil.fields[field];
        let is_assigned = |assign: &ast::Assign| assign.targets.iter().any(|target| target.name.text == name.text);
        if !role.is_written() || assignments(among).any(is_assigned) {
            return false;
        }
        // That it is not assigned would be the same error again.
        self.scope.assigned.entry(name.text.clone()).or_insert(name.span);
        let found = Diagnostic::error(name.span, format!("`{}` is an output: it is assigned without `let`", name.text));
        self.tell(found.label(format!("write `{} = ...`", name.text)).note(declared, "declared here"));
        true
    }

    /// `let a = ...` inside a stencil or block.
    pub(super) fn define_let(&mut self, binding: &'a ast::Let) {
        let [name] = binding.names.as_slice() else {
            let place = binding.names.first().map_or(Span::default(), |name| name.span);
            let found = Diagnostic::error(place, "several names at once take the results of a call in a `program`");
            self.tell(found.help("write one `let` for each name"));
            return self.define_broken(&binding.names);
        };
        let bound = match &binding.place {
            None => self.bind_let(binding, name),
            Some(place) => self.bind_on(binding, name, place),
        };
        self.sweep_defines(&name.text, bound.as_ref());
        self.define(name, bound.map_or(Binding::Broken, Binding::Value));
    }

    /// The value of a `let`, which is of the type that it says.
    pub(super) fn bind_let(&mut self, binding: &'a ast::Let, name: &ast::Name) -> Found<Bound> {
        let Some(typed) = binding.typed else { return self.bind(binding.value, &name.text, Origin::Let) };
        if let Some((_, parts)) = typed.parts {
            let found = wrong(parts, "the value of a `let` says how many parts it has", "leave this out");
            return self.report(found);
        }
        self.check_computed(typed.stored, typed.span)?;
        let span = self.span(binding.value);
        self.bind_as(Some(typed.stored), &name.text, span, Origin::Let, |own| own.value(binding.value))
    }

    /// `print(...)`
    pub(super) fn print(&mut self, print: &'a ast::Print) {
        if let Some(body) = self.body(|own| own.scalar(print.value)) {
            let moves = |body: &Body, defs: &[bool]| body.any(defs, |_| false) || reads_where_data_says(body);
            let defs = self.stencil.of_defs(|body, defs| moves(body, defs));
            if moves(&body, &defs) {
                let found =
                    Diagnostic::error(print.span, "a `print` shows nothing that is read on a level that is data");
                let found = found.label("whether there is that level is asked of outputs alone");
                return self.tell(found.help("assign it to an output, and look at that"));
            }
            self.show(print.label.clone(), print.span, body);
        }
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = &Field> {
        self.stencil.fields.iter().map(|(_, field)| field).filter(|field| field.role.is_written())
    }

    /// An output on fewer axes may depend on nothing that varies along the others.
    pub(super) fn check_axes(&mut self, body: &Body, field: &Field, place: Span) {
        if field.place == Place::CELLS {
            return;
        }
        let missing = match (field.place, value::varies(&self.stencil, body)) {
            (Place { horizontal: false, .. }, (true, _)) => "the horizontal axes",
            (Place { levels: Levels::None, .. }, (_, true)) if !self.has_one_level => "k",
            _ => return,
        };
        let message = format!("`{}` is{}, but its value varies along {missing}", field.name, field.place);
        let found = wrong(place, message, format!("varies along {missing}")).note(field.span, "declared here");
        self.tell(found.help(match missing {
            "k" if self.coordinates.is_none() => {
                "it is made of what has no levels, or of one level: `a[level nk - 1]` reads one, and `level nk - 1` by itself says \
                 that the stencil computes no other"
            }
            _ => "a field on fewer axes is made of fields and names without the others only",
        }));
    }

    /// What can be told once the whole stencil is known.
    fn finish(&mut self, stencil: &ast::Stencil) {
        let is_assigned = |field: &&Field| self.scope.assigned.contains_key(&field.name);
        let unassigned: Vec<Field> = self.outputs().filter(|field| !is_assigned(field)).cloned().collect();
        for Field { name, span, role, .. } in unassigned {
            let add = match role {
                Role::Inc => format!("add `{name}[...] += ...`"),
                Role::Reduce => format!("add `{name} += ...` of a sum, `{name} = ...` of a `min` or `max`"),
                Role::In | Role::Carried | Role::Out | Role::InOut => format!("add `{name} = ...`"),
            };
            self.tell(wrong(span, format!("the output `{name}` is never assigned"), "declared here").help(add));
        }
        // An assignment to what is not declared was told already.
        if self.outputs().next().is_none() && assignments(&stencil.statements).next().is_none() {
            let found = Diagnostic::error(stencil.name.span, format!("stencil `{}` has no output", stencil.name.text));
            let found = found.label("computes nothing");
            self.tell(found.help("declare one with `out res` and assign it with `res = ...`"));
        }
        if has_error(&self.reports.diagnostics) {
            return;
        }
        self.warn_unused();
        self.finish_zones();
        if !self.finish_within() || !self.order_sums() || !self.finish_sweeps() {
            return;
        }
        // Before anything follows the definitions, wherever they are looked at.
        let what = format!("stencil `{}`", self.stencil.name);
        if let Some(found) = analysis::values::values(&self.stencil, &what, stencil.name.span) {
            self.tell(found.help("split the stencil in two, and store what is between them"));
        }
    }

    /// `sums by level`
    fn declare_order(&mut self, span: Span) {
        if self.is_over_mesh() {
            let found =
                Diagnostic::error(span, "sums by level are for stencils on grids").label("in a stencil over a mesh");
            return self.tell(found.help("leave it out: what a mesh's elements add has the order of the text"));
        }
        if let Some(before) = self.sums_by_level.replace(span) {
            let found = wrong(span, "this is said twice", "said again").note(before, "said here");
            self.tell(found.help("leave one of them out"));
        }
    }

    /// Puts sums in order by level, where the text says so. Returns whether all is well.
    fn order_sums(&mut self) -> bool {
        let Some(span) = self.sums_by_level else { return true };
        if !self.stencil.sweeps.is_empty() {
            let found =
                wrong(span, "sums by level are for stencils without sweeps", "and this one sweeps over the levels");
            self.tell(found.help("a sweep has its own order of levels: leave this out"));
            return false;
        }
        match ir::by_level(&self.stencil) {
            None => {
                let most = ir::MOST_TERMS;
                let found = wrong(span, format!("a sum of more than {most} terms cannot be put in order"), "by level");
                self.tell(found.help("name parts of it by `let`: what has a name is one term"));
                false
            }
            Some((ordered, has_sums)) => {
                if !has_sums {
                    let found = Diagnostic::warning(span, "nothing changes: no sum reads several levels");
                    self.warn(found.label("say this of sums that read `a[k-1]` and `a[k+1]`").help("leave it out"));
                }
                self.stencil = ordered.verified("sums by level");
                true
            }
        }
    }

    /// Warns of names that nothing uses.
    pub(super) fn warn_unused(&mut self) {
        for Symbol { name, span, what, .. } in self.scope.unused() {
            self.warn(Diagnostic::unused(span, what, &name));
        }
    }

    /// Makes names known of which something else was wrong, so that their uses are not reported too.
    pub(super) fn define_broken(&mut self, names: &'a [ast::Name]) {
        names.iter().for_each(|name| self.define(name, Binding::Broken));
    }
}
