//! Programs: fields, numbers, and calls of stencils in time.

mod boundary;
mod call;
mod edges;
mod mesh;

use super::scope::{Binding, Symbol};
use super::{Found, Lowering};
use crate::ast::{self, Expr, ExprId, Statement};
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::program::{Action, Edges, Rename, Repeat, Variable};
use crate::ir::{Body, Kind, Program, Role, Stencil, Stored, VariableId};
use crate::lower::mesh::Declared;
use crate::source::Span;
use crate::text::FreeText;
use boundary::Boundaries;
use std::collections::BTreeSet;

/// The most calls of a program.
const CALLS: usize = 1_000;

/// The deepest nesting of loops.
const LOOPS: usize = 20;

/// Lowers one program. Names, numbers and diagnostics are those of a [`Lowering`], whose stencil holds the numbers.
struct Programmer<'l, 'a> {
    lowering: &'l mut Lowering<'a>,
    /// The stencils that are right.
    stencils: &'a [Stencil],
    program: Program,
    boundaries: Boundaries<'a>,
    /// Variables that have a value here, whatever numbers of steps are.
    valued: BTreeSet<VariableId>,
    /// Variables that are given a value somewhere.
    assigned: BTreeSet<VariableId>,
    /// Loops around this place.
    depth: usize,
    calls: usize,
}

impl<'a> Lowering<'a> {
    /// A program; what is wrong with it is reported.
    pub(super) fn program(
        &mut self,
        program: &'a ast::Program,
        stencils: &'a [Stencil],
        meshes: &'a [Declared],
    ) -> Program {
        let ir = Program { name: program.name.text.clone(), doc: FreeText::new(&program.doc), ..Program::default() };
        if let Some(over) = &program.over {
            let Some(over) = self.over_mesh(meshes, over) else { return ir };
            self.over = Some(over);
        }
        let mut programmer = Programmer {
            lowering: self,
            stencils,
            program: ir,
            boundaries: Boundaries::default(),
            valued: BTreeSet::new(),
            assigned: BTreeSet::new(),
            depth: 0,
            calls: 0,
        };
        programmer.collect(&program.statements);
        let actions = programmer.statements(&program.statements);
        programmer.program.actions = actions;
        programmer.finish(program);
        let mut ir = programmer.program;
        ir.numbers = self.stencil.clone();
        ir
    }
}

impl<'a> Programmer<'_, 'a> {
    fn report<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        self.lowering.report(diagnostic)
    }

    fn span(&self, expr: ExprId) -> Span {
        self.lowering.file.exprs.span(expr)
    }

    fn statements(&mut self, statements: &'a [Statement]) -> Vec<Action> {
        let mut actions = Vec::new();
        for statement in statements {
            if self.lowering.is_given_up() {
                break;
            }
            self.statement(statement, &mut actions);
        }
        actions
    }

    fn statement(&mut self, statement: &'a Statement, actions: &mut Vec<Action>) {
        let outermost = self.depth == 0;
        match statement {
            Statement::Field(fields) if outermost => self.declare(fields),
            Statement::Field(fields) => self.belongs_outside(fields.role.span, "a field is declared"),
            Statement::Param(params) if outermost => self.lowering.declare_params(params),
            Statement::Param(params) => {
                let at = params.names.first().map_or(Span::default(), |name| name.span);
                self.belongs_outside(at, "a parameter is declared");
            }
            Statement::Constant(constant) => self.lowering.define(&constant.name, Binding::Constant(constant)),
            Statement::Function(function) => self.lowering.define(&function.name, Binding::Function(function)),
            Statement::Let(binding) => self.binding(binding, actions),
            Statement::Assign(assign) => self.assign(assign, actions),
            Statement::Repeat(repeat) => self.repeat(repeat, actions),
            Statement::Boundary(boundary) if self.lowering.is_over_mesh() => {
                self.report::<()>(
                    Diagnostic::error(boundary.span, "a boundary is about the edges of a grid")
                        .label("in a program over a mesh")
                        .help(
                            "a mesh has its boundary in its maps: a set of its own for the elements there, as `bedge`, or \
                             holes: `missing skip`, `missing value(x)`",
                        ),
                );
            }
            // Were collected before.
            Statement::Boundary(_) if outermost => {}
            Statement::Boundary(boundary) => self.belongs_outside(boundary.span, "what lies beyond the edges is said"),
            Statement::Print(print) => {
                self.report::<()>(
                    Diagnostic::error(print.span, "a `print` stands in a stencil")
                        .label("in a program")
                        .help("print the value in the stencil that computes it"),
                );
            }
            Statement::Sweep(sweep) => self.belongs_into_a_stencil(sweep.span, "sweep"),
            Statement::Reduce(reduce) => self.belongs_into_a_stencil(reduce.span, "reduce"),
        }
    }

    fn belongs_into_a_stencil(&mut self, at: Span, what: &str) {
        let found = Diagnostic::error(at, format!("a `{what}` stands in a stencil"));
        self.report::<()>(found.label("in a program").help("write a stencil with it, and call that"));
    }

    fn belongs_outside(&mut self, at: Span, what: &str) {
        self.report::<()>(
            Diagnostic::error(at, format!("{what} at the head of the program")).label("inside a `repeat`"),
        );
    }

    /// `in phi`
    fn declare(&mut self, fields: &'a ast::Fields) {
        let role = match fields.role.text.as_str() {
            "in" => Role::In,
            "out" => Role::Out,
            "inout" => Role::InOut,
            _ => {
                self.report::<()>(
                    Diagnostic::error(fields.role.span, "an `inc` adds to the cells of a mesh")
                        .label("a program has `in`, `out` and `inout`"),
                );
                return fields.names.iter().for_each(|name| self.lowering.define(name, Binding::Broken));
            }
        };
        let lowering = &mut *self.lowering;
        let stored = fields.typed.as_ref().map_or(Some(Stored::Real), |typed| lowering.stored(typed));
        let place = lowering.place(fields);
        let place = place.and_then(|place| self.check_place(role, place, fields));
        let (Some(stored), Some(place)) = (stored, place) else {
            return fields.names.iter().for_each(|name| self.lowering.define(name, Binding::Broken));
        };
        let range = fields.drawn.and_then(|(low, high)| self.lowering.range(low, high, role, stored));
        for name in &fields.names {
            let doc = FreeText::new(&fields.doc);
            let variable = Variable {
                name: name.text.clone(),
                doc,
                role: Some(role),
                place,
                stored,
                range,
                edges: Edges::default(),
                span: name.span,
            };
            if let Some(id) = self.add(name, variable)
                && role.is_read()
            {
                self.valued.insert(id);
            }
        }
    }

    /// Adds a field of the program, with the edges that are said of its name.
    fn add(&mut self, name: &'a ast::Name, mut variable: Variable) -> Found<VariableId> {
        if self.lowering.scope.find(&name.text).is_some() {
            self.count_as_assigned(name);
            self.lowering.define(name, Binding::Broken);
            return None;
        }
        variable.edges = self.edges_of(&variable);
        let id = self.program.variables.add(variable);
        self.lowering.define(name, Binding::Variable(id));
        self.add_number(id);
        Some(id)
    }

    /// `let y = stencil(x)`, `let before = u`, `let half = dt / 2`
    fn binding(&mut self, binding: &'a ast::Let, actions: &mut Vec<Action>) {
        if let Some((stencil, arguments, span)) = self.stencil_call(binding.value) {
            let Some((number, stencil)) = stencil else {
                return binding.names.iter().for_each(|name| self.lowering.define(name, Binding::Broken));
            };
            let results = self.results(stencil, binding.names.len(), span);
            let call = self.call((number, stencil), arguments, span);
            let Some(results) = results else {
                return binding.names.iter().for_each(|name| self.lowering.define(name, Binding::Broken));
            };
            let mut targets = Vec::new();
            for (name, &(place, stored)) in binding.names.iter().zip(&results) {
                targets.push(self.add(name, new_variable(name, place, stored)));
            }
            return self.take(call, targets, actions);
        }
        let [name] = binding.names.as_slice() else {
            let place = binding.names.first().map_or(Span::default(), |name| name.span);
            self.report::<()>(
                Diagnostic::error(place, "several names at once take the results of a call of a stencil")
                    .label("this is no such call")
                    .help("write one `let` for each name"),
            );
            return binding.names.iter().for_each(|name| self.lowering.define(name, Binding::Broken));
        };
        if let Some(from) = self.field_named(binding.value) {
            let from = from.and_then(|from| self.with_value(from, self.span(binding.value)));
            let Some(from) = from else { return self.lowering.define(name, Binding::Broken) };
            let Variable { place, stored, .. } = self.program.variables[from];
            if let Some(to) = self.add(name, new_variable(name, place, stored)) {
                self.valued.insert(to);
                actions.push(Action::Rename(Rename { from, to }));
            }
            return;
        }
        if self.let_number(name, binding.value, actions) {
            return;
        }
        self.lowering.define_let(binding);
        self.check_numbers(binding.value);
    }

    /// `y = stencil(x)`, `before = u`
    fn assign(&mut self, assign: &'a ast::Assign, actions: &mut Vec<Action>) {
        // That nobody assigns them would be told on top of what is wrong here.
        for target in &assign.targets {
            self.count_as_assigned(&target.name);
        }
        if assign.op.text != "=" {
            self.report::<()>(
                Diagnostic::error(assign.op.span, "a field is given a new value with `=`")
                    .label("a program does not add")
                    .help("add in a stencil, and assign what it returns"),
            );
            return;
        }
        if let Some(index) = assign.targets.iter().find_map(|target| target.index.as_ref().map(|(_, at)| *at)) {
            self.report::<()>(
                Diagnostic::error(index, "a field is assigned as a whole")
                    .label("leave this out")
                    .help("a call computes all cells; what differs from cell to cell is the stencil's business"),
            );
            return;
        }
        self.name_reductions(assign);
        let targets: Vec<Found<VariableId>> = assign.targets.iter().map(|target| self.target(&target.name)).collect();
        for (n, target) in assign.targets.iter().enumerate() {
            if let Some(before) = assign.targets[..n].iter().find(|own| own.name.text == target.name.text) {
                let found = Diagnostic::error(target.name.span, format!("`{}` is assigned twice", target.name.text));
                self.report::<()>(found.label("again here").note(before.name.span, "first here"));
                return;
            }
        }
        if let Some((stencil, arguments, span)) = self.stencil_call(assign.value) {
            let Some((number, stencil)) = stencil else { return };
            let results = self.results(stencil, assign.targets.len(), span);
            let call = self.call((number, stencil), arguments, span);
            let Some(results) = results else { return };
            let mut fitting = Vec::new();
            let names = stencil.fields.iter().filter(|(_, field)| field.role.is_written());
            for ((target, written), ((place, stored), (_, field))) in
                targets.into_iter().zip(&assign.targets).zip(results.into_iter().zip(names))
            {
                let what = format!("`{}` of `{}`", field.name, stencil.name);
                fitting
                    .push(target.and_then(|id| self.fits(id, (place, stored), written.name.span, &what, field.span)));
            }
            return self.take(call, fitting, actions);
        }
        let (&[to], [target]) = (targets.as_slice(), assign.targets.as_slice()) else {
            let at = assign.targets.first().map_or(assign.op.span, |target| target.name.span);
            self.report::<()>(
                Diagnostic::error(at, "several fields at once take the results of a call of a stencil")
                    .label("this is no such call"),
            );
            return;
        };
        if let Some(from) = self.field_named(assign.value) {
            let from = from.and_then(|from| self.with_value(from, self.span(assign.value)));
            let (Some(from), Some(to)) = (from, to) else { return };
            let Variable { place, stored, span, .. } = self.program.variables[from];
            let what = format!("`{}`", self.program.variables[from].name);
            if self.fits(to, (place, stored), target.name.span, &what, span).is_some() {
                self.valued.insert(to);
                actions.push(Action::Rename(Rename { from, to }));
            }
            return;
        }
        if let Some(to) = to.filter(|&to| self.is_number(to)) {
            return self.assign_number(to, assign.value, actions);
        }
        let span = self.span(assign.value);
        let example = self.stencils.first().map_or("step", |stencil| stencil.name.as_str());
        self.report::<()>(
            Diagnostic::error(span, "a field is given what a stencil computes, or another field's value")
                .label("neither a call of a stencil nor a field")
                .help(format!("compute in a stencil, and call it: `{} = {example}(...)`", target.name.text)),
        );
    }

    /// A field that may be assigned.
    fn target(&mut self, name: &'a ast::Name) -> Found<VariableId> {
        let found = self.lowering.scope.find(&name.text).cloned();
        let Some(Symbol { span, what, binding, .. }) = found else {
            let known = self.program.variables.iter().map(|(_, own)| own.name.as_str());
            let guess = crate::diagnostic::guess(&name.text, known);
            let label = guess.map_or("not declared".to_owned(), |guess| format!("did you mean `{guess}`?"));
            let found = Diagnostic::error(name.span, format!("`{}` is no field of this program", name.text));
            return self.report(
                found
                    .label(label)
                    .help(format!("name a new field with `let {0} = ...`, or declare it with `out {0}`", name.text)),
            );
        };
        match binding {
            Binding::Variable(id) if self.program.variables[id].role == Some(Role::In) => self.report(
                Diagnostic::error(name.span, format!("`{}` is an input: it cannot be assigned", name.text))
                    .label("assigned here")
                    .note(span, "declared as `in` here")
                    .help("declare it as `inout`"),
            ),
            Binding::Variable(id) => Some(id),
            Binding::Broken => None,
            _ => self.report(
                Diagnostic::error(name.span, format!("{what} `{}` cannot be assigned", name.text))
                    .label("not a field")
                    .note(span, "defined here"),
            ),
        }
    }

    fn count_as_assigned(&mut self, name: &ast::Name) {
        if let Some(Binding::Variable(id)) = self.lowering.scope.find(&name.text).map(|symbol| &symbol.binding) {
            self.assigned.insert(*id);
        }
    }

    /// `repeat steps { ... }`
    fn repeat(&mut self, repeat: &'a ast::Repeat, actions: &mut Vec<Action>) {
        if self.depth >= LOOPS {
            self.report::<()>(Diagnostic::error(repeat.span, format!("more than {LOOPS} loops inside each other")));
            // What is in it is not looked at, and may assign any.
            self.assigned.extend(self.program.variables.iter().map(|(id, _)| id));
            return;
        }
        let times = self.number(repeat.times, Some(Kind::Int), "repeat");
        let (before, mark) = (self.valued.clone(), self.lowering.scope.mark());
        self.depth += 1;
        let inner = self.statements(&repeat.statements);
        self.depth -= 1;
        if inner.is_empty() && !self.has_failed() {
            self.report::<()>(
                Diagnostic::error(repeat.span, "this loop does nothing")
                    .label("no call in it")
                    .help("call a stencil in it, as in `phi = step(phi)`"),
            );
        }
        for (name, span) in self.lowering.scope.unused_since(mark) {
            self.lowering.diagnostics.push(Diagnostic::unused(span, "the field", &name));
        }
        self.lowering.scope.forget(mark);
        // Nobody knows whether there was a single step.
        self.valued = before;
        if let Some(times) = times {
            actions.push(Action::Repeat(Repeat { times, actions: inner, span: repeat.span }));
        }
    }

    /// A number: a body of parameters, constants, and numbers made of them.
    fn number(&mut self, expr: ExprId, kind: Option<Kind>, what: &str) -> Found<Body> {
        let span = self.span(expr);
        self.lowering.bodies.push(Body::new());
        let mut value = self.lowering.scalar(expr);
        if let Some(kind) = kind {
            value = value.and_then(|value| self.lowering.convert(value, kind, span, what));
        }
        let body = self.lowering.bodies.pop().unwrap_or_default();
        let body = body.rooted(value?);
        self.check_numbers(expr);
        self.check_known(&body)?;
        Some(body)
    }

    /// Reports `k`: a program stands at no level.
    fn check_numbers(&mut self, expr: ExprId) {
        let mut names = super::test::parts::names(self.lowering.file, expr).into_iter();
        if let Some((_, span)) = names.find(|(name, _)| *name == "k") {
            self.report::<()>(
                Diagnostic::error(span, "a program computes numbers, which have no level")
                    .label("`k` means nothing here")
                    .help("`nk` is the number of levels; what depends on the level is computed in a stencil"),
            );
        }
    }

    /// The field that an expression names, if it is a name of one.
    fn field_named(&mut self, expr: ExprId) -> Option<Found<VariableId>> {
        let mut expr = expr;
        while let Expr::Group(inner) = &self.lowering.file.exprs[expr] {
            expr = *inner;
        }
        let Expr::Name(name) = &self.lowering.file.exprs[expr] else { return None };
        match self.lowering.scope.find(name).map(|symbol| symbol.binding.clone())? {
            Binding::Variable(id) => {
                self.lowering.scope.use_name(name);
                Some(Some(id))
            }
            // What is wrong with it was told where it was made.
            Binding::Broken => Some(None),
            _ => None,
        }
    }

    /// A field that has a value where it is read.
    fn with_value(&mut self, id: VariableId, at: Span) -> Found<VariableId> {
        if self.valued.contains(&id) {
            return Some(id);
        }
        let Variable { name, span, .. } = self.program.variables[id].clone();
        let is_assigned = self.assigned.contains(&id);
        let found = Diagnostic::error(at, format!("`{name}` may have no value here"))
            .label(if is_assigned {
                "assigned in a loop, which may run zero times"
            } else {
                "read before it is assigned"
            })
            .note(span, "declared here");
        self.report(if self.is_number(id) {
            found.help(format!("assign it before; a number that is given is a parameter: `param {name}`"))
        } else {
            found.help(format!("declare it as `inout {name}`, or assign it before"))
        })
    }

    /// Whether a variable can hold what a call returns.
    fn fits(
        &mut self,
        id: VariableId,
        (place, stored): (crate::ir::Place, Stored),
        at: Span,
        what: &str,
        declared: Span,
    ) -> Found<VariableId> {
        let own = &self.program.variables[id];
        let (name, span) = (own.name.clone(), own.span);
        let differs = if own.place != place {
            format!("`{name}` is{}, {what} is{}", self.axes(own.place), self.axes(place))
        } else if own.stored != stored {
            format!("`{name}` is stored as {}, {what} as {}", own.stored.name(), stored.name())
        } else {
            return Some(id);
        };
        self.report(
            Diagnostic::error(at, differs)
                .label("these do not fit")
                .note(span, "declared here")
                .note(declared, "and here"),
        )
    }

    fn has_failed(&self) -> bool {
        self.lowering.diagnostics.iter().any(|found| found.severity == Severity::Error)
    }

    /// What can be told once the whole program is known.
    fn finish(&mut self, program: &'a ast::Program) {
        self.report_unknown_boundaries();
        self.read_edge_values();
        let declared: Vec<(VariableId, Variable)> =
            self.program.variables.iter().map(|(id, v)| (id, v.clone())).collect();
        let mut has_output = false;
        for (id, Variable { name, role, span, .. }) in declared {
            if !role.is_some_and(Role::is_written) {
                continue;
            }
            has_output = true;
            if !self.assigned.contains(&id) {
                self.report::<()>(
                    Diagnostic::error(span, format!("the output `{name}` is never assigned"))
                        .label("declared here")
                        .help(format!("assign what a call returns: `{name} = stencil(...)`")),
                );
            }
            self.lowering.scope.assigned.insert(name, span);
        }
        if !has_output && !self.has_failed() {
            self.report::<()>(
                Diagnostic::error(program.name.span, format!("program `{}` has no output", program.name.text))
                    .label("computes nothing")
                    .help("declare one with `inout phi` or `out res`, and assign it"),
            );
        }
        for Symbol { name, span, what, .. } in self.lowering.scope.unused() {
            self.lowering.diagnostics.push(Diagnostic::unused(span, what, &name));
        }
    }
}

fn new_variable(name: &ast::Name, place: crate::ir::Place, stored: Stored) -> Variable {
    let (doc, role, range, edges) = (FreeText::default(), None, None, Edges::default());
    Variable { name: name.text.clone(), doc, role, place, stored, range, edges, span: name.span }
}

impl Programmer<'_, '_> {
    /// ` on (i, j)`, in words that also name all axes.
    fn axes(&self, place: crate::ir::Place) -> String {
        if let Some(over) = &self.lowering.over {
            let text = over.declared.mesh.place(place);
            return match place.home {
                Some(home) if home.parts > 1 => format!(" a vector of {}{text}", home.parts),
                Some(_) | None => text,
            };
        }
        let text = place.to_string();
        if text.is_empty() { " on (i, j, k)".to_owned() } else { text }
    }
}
