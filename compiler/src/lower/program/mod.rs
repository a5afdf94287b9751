//! Programs: fields, numbers, and calls of stencils in time.

mod boundary;
mod call;
mod edges;
mod mesh;
mod place;
mod ranges;

use super::scope::{Binding, Symbol};
use super::{Found, Lowering};
use crate::ast::{self, Expr, ExprId, Statement};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::program::{Action, Edges, Rename, Repeat, Variable};
use crate::ir::{Body, Field, Kind, Place, Program, Role, Stencil, Stored, VariableId};
use crate::lower::mesh::Declared;
use crate::lower::report::has_error;
use crate::source::Span;
use crate::text::FreeText;
use boundary::Boundaries;
use std::collections::{BTreeMap, BTreeSet};

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
    /// What a `let` gives other names to.
    renamed: BTreeMap<VariableId, VariableId>,
    /// The names that are assigned anywhere, by what is no `let`.
    assigned_names: BTreeSet<&'a str>,
    /// The numbers that count turns.
    counters: BTreeSet<VariableId>,
    /// Loops around this place.
    depth: usize,
    calls: usize,
}

impl<'a> Lowering<'a> {
    /// A program; what is wrong with it is reported.
    pub(super) fn program(
        &mut self,
        program: &'a ast::Stencil,
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
            renamed: BTreeMap::new(),
            assigned_names: assigned_names(&program.statements),
            counters: BTreeSet::new(),
            depth: 0,
            calls: 0,
        };
        programmer.collect(&program.statements);
        let actions = programmer.statements(&program.statements);
        programmer.program.actions = actions;
        programmer.finish(program);
        let mut ir = programmer.program;
        ranges::take(&mut ir);
        ir.numbers = self.stencil.clone();
        if !self.is_over_mesh() {
            ir.changing = self.numbers.clone();
        }
        ir
    }
}

impl<'a> Programmer<'_, 'a> {
    fn report<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        self.lowering.report(diagnostic)
    }

    fn tell(&mut self, diagnostic: Diagnostic) {
        self.lowering.tell(diagnostic);
    }

    fn span(&self, expr: ExprId) -> Span {
        self.lowering.span(expr)
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
                let found = Diagnostic::error(boundary.span, "a boundary is about the edges of a grid");
                self.tell(found.label("in a program over a mesh").help(
                    "a mesh has its boundary in its maps: a set of its own for the elements there, as `bedge`, or holes: \
                     `missing skip`, `missing value(x)`",
                ));
            }
            // Were collected before.
            Statement::Boundary(_) if outermost => {}
            Statement::Boundary(boundary) => self.belongs_outside(boundary.span, "what lies beyond the edges is said"),
            Statement::Print(print) => {
                let found = wrong(print.span, "a `print` stands in a stencil", "in a program");
                self.tell(found.help("print the value in the stencil that computes it"));
            }
            Statement::Sweep(sweep) => self.belongs_into_a_stencil(sweep.span, "sweep"),
            Statement::Reduce(reduce) => self.belongs_into_a_stencil(reduce.span, "reduce"),
            Statement::SumsByLevel(span) => self.belongs_into_a_stencil(*span, "sums by level"),
            Statement::Within(ast::Within { span, .. }) | Statement::Zones(ast::Zones { span, .. }) => {
                let found = wrong(*span, "where something is computed is said of a call, or in a stencil", "of what?");
                let place = if self.lowering.is_over_mesh() { "interior" } else { "i 2..ni - 2" };
                self.tell(found.help(format!("behind a call: `h = step(h) on {place}, levels 1..nk`")));
            }
        }
    }

    fn belongs_into_a_stencil(&mut self, at: Span, what: &str) {
        let found = wrong(at, format!("a `{what}` stands in a stencil"), "in a program");
        self.tell(found.help("write a stencil with it, and call that"));
    }

    fn belongs_outside(&mut self, at: Span, what: &str) {
        self.tell(wrong(at, format!("{what} at the head of the program"), "inside a `repeat`"));
    }

    /// `in phi`
    fn declare(&mut self, fields: &'a ast::Fields) {
        let Some(declared) = self.lowering.declared(fields, true) else {
            return self.lowering.define_broken(&fields.names);
        };
        let Field { doc, role, place, stored, range, .. } = declared;
        for name in &fields.names {
            let variable = new_variable(name, place, stored);
            let original = fields.original.as_ref().map(|own| own.text.clone());
            let id = self.add(name, Variable { doc: doc.clone(), role: Some(role), original, range, ..variable });
            self.valued.extend(id.filter(|_| role.is_read()));
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
        if self.lowering.refuse_said(binding, "in a program").is_none() {
            return self.lowering.define_broken(&binding.names);
        }
        if let Some(called) = self.stencil_call(binding.value, binding.names.len()) {
            let Some((stencil, call)) = called else { return self.lowering.define_broken(&binding.names) };
            let results = binding.names.iter().zip(call::outputs(stencil));
            let targets =
                results.map(|(name, own)| self.add(name, new_variable(name, own.place, own.stored))).collect();
            return actions.extend(self.take(stencil, call, targets));
        }
        if self.is_no_place(binding.value) {
            return self.lowering.define_broken(&binding.names);
        }
        let [name] = binding.names.as_slice() else {
            let place = binding.names.first().map_or(Span::default(), |name| name.span);
            let found = Diagnostic::error(place, "several names at once take the results of a call of a stencil");
            self.tell(found.label("this is no such call").help("write one `let` for each name"));
            return self.lowering.define_broken(&binding.names);
        };
        if !self.lowering.is_over_mesh() && self.let_number(name, binding.value, actions) {
            return;
        }
        if let Some(from) = self.field_with_value(binding.value) {
            let Some(from) = from else { return self.lowering.define(name, Binding::Broken) };
            // Another name of what never changes is that itself. On a grid it may have edges of its own.
            let stays = self.program.variables[from].role == Some(Role::In) && !self.is_number(from);
            if stays && self.lowering.is_over_mesh() && !self.assigned_names.contains(name.text.as_str()) {
                return self.lowering.define(name, Binding::Variable(from));
            }
            let Variable { place, stored, .. } = self.program.variables[from];
            if let Some(to) = self.add(name, new_variable(name, place, stored)) {
                self.valued.insert(to);
                self.renamed.insert(to, from);
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
        if assign.targets.is_empty() {
            // The results of a stencil that nobody knows, as in `.. = stp(..)`, may be any field's.
            let written = self.program.variables.iter().filter(|(_, own)| own.role.is_none_or(Role::is_written));
            let written: Vec<VariableId> = written.map(|(id, _)| id).collect();
            self.assigned.extend(&written);
            self.valued.extend(written);
        }
        if assign.op.text != "=" {
            let found = wrong(assign.op.span, "a field is given a new value with `=`", "a program does not add");
            return self.tell(found.help("add in a stencil, and assign what it returns"));
        }
        let indexed = assign.targets.iter().find_map(|target| Some((&target.name.text, target.index.as_ref()?)));
        if let Some((name, (parts, at))) = indexed {
            if let Some(found) = self.lowering.assigned_on_level(name, parts, *at) {
                return self.tell(found);
            }
            let found = Diagnostic::error(*at, "a field is assigned as a whole").label("leave this out");
            let help = "a call computes all cells; what differs from cell to cell is the stencil's business";
            return self.tell(found.help(help));
        }
        self.name_reductions(assign);
        let targets: Vec<Found<VariableId>> = assign.targets.iter().map(|target| self.target(&target.name)).collect();
        for (n, ast::Target { name, .. }) in assign.targets.iter().enumerate() {
            if let Some(before) = assign.targets[..n].iter().find(|own| own.name.text == name.text) {
                let found = wrong(name.span, format!("`{}` is assigned twice", name.text), "again here");
                return self.tell(found.note(before.name.span, "first here"));
            }
        }
        if let Some(called) = self.stencil_call(assign.value, assign.targets.len()) {
            let Some((stencil, call)) = called else { return };
            let written = targets.into_iter().zip(&assign.targets).zip(call::outputs(stencil));
            let fits = |((to, target), own): ((Found<VariableId>, &ast::Target), &Field)| {
                self.check_fits(to?, Held::field(stencil, own), target.name.span)
            };
            let targets = written.map(fits).collect();
            return actions.extend(self.take(stencil, call, targets));
        }
        if self.is_no_place(assign.value) {
            return;
        }
        let (&[to], [target]) = (targets.as_slice(), assign.targets.as_slice()) else {
            let at = assign.targets.first().map_or(assign.op.span, |target| target.name.span);
            let found = Diagnostic::error(at, "several fields at once take the results of a call of a stencil");
            return self.tell(found.label("this is no such call"));
        };
        let number_on_grid = to.filter(|&to| !self.lowering.is_over_mesh() && self.is_number(to));
        if let Some(to) = number_on_grid {
            return self.assign_number(to, assign.value, actions);
        }
        if let Some(from) = self.field_with_value(assign.value) {
            let (Some(from), Some(to)) = (from, to) else { return };
            let held = Held::variable(&self.program.variables[from]);
            if self.check_fits(to, held, target.name.span).is_some() {
                self.valued.insert(to);
                actions.push(Action::Rename(Rename { from, to }));
            }
            return;
        }
        if let Some(to) = to.filter(|&to| self.is_number(to)) {
            return self.assign_number(to, assign.value, actions);
        }
        let example = self.stencils.first().map_or("step", |stencil| stencil.name.as_str());
        let message = "a field is given what a stencil computes, or another field's value";
        let found = wrong(self.span(assign.value), message, "neither a call of a stencil nor a field");
        self.tell(found.help(format!("compute in a stencil, and call it: `{} = {example}(...)`", target.name.text)));
    }

    /// A field that may be assigned.
    fn target(&mut self, name: &'a ast::Name) -> Found<VariableId> {
        let found = self.lowering.scope.find(&name.text).cloned();
        let Some(Symbol { span, what, binding, .. }) = found else {
            let found = Diagnostic::error(name.span, format!("`{}` is no field of this program", name.text));
            let found = found.meant(self.guess(&name.text), |found| found.label("not declared"));
            let help = format!("name a new field with `let {0} = ...`, or declare it with `out {0}`", name.text);
            return self.report(found.help(help));
        };
        match binding {
            Binding::Variable(id) if self.program.variables[id].role == Some(Role::In) => {
                let found = Diagnostic::error(name.span, format!("`{}` is an input: it cannot be assigned", name.text));
                let found = found.label("assigned here").note(span, "declared as `in` here");
                self.report(found.help("declare it as `inout`"))
            }
            Binding::Variable(id) if self.counters.contains(&id) => {
                let message = format!("`{}` counts the turns of a loop: it cannot be assigned", name.text);
                let found = wrong(name.span, message, "assigned here").note(span, "counts from 0 here");
                self.report(found.help(format!("name another number: `let next = {} + 1`", name.text)))
            }
            Binding::Variable(id) => Some(id),
            Binding::Broken => None,
            _ => {
                let found = wrong(name.span, format!("{what} `{}` cannot be assigned", name.text), "not a field");
                self.report(found.note(span, "defined here"))
            }
        }
    }

    /// The field that a name was probably meant to be.
    fn guess(&self, name: &str) -> Option<&str> {
        guess(name, self.program.variables.iter().map(|(_, own)| own.name.as_str()))
    }

    fn count_as_assigned(&mut self, name: &ast::Name) {
        if let Some(Binding::Variable(id)) = self.lowering.scope.binding(&name.text) {
            self.assigned.insert(*id);
        }
    }

    /// `repeat steps as step { ... }`
    fn repeat(&mut self, repeat: &'a ast::Repeat, actions: &mut Vec<Action>) {
        if self.depth >= LOOPS {
            self.tell(Diagnostic::error(repeat.span, format!("more than {LOOPS} loops inside each other")));
            // What is in it is not looked at, and may assign any.
            self.assigned.extend(self.program.variables.iter().map(|(id, _)| id));
            return;
        }
        let times = self.times(repeat);
        let (before, mark) = (self.valued.clone(), self.lowering.scope.mark());
        let counter = repeat.counter.as_ref().and_then(|name| self.counter(name));
        self.depth += 1;
        let inner = self.statements(&repeat.statements);
        self.depth -= 1;
        if inner.is_empty() && !self.has_failed() {
            // A call of a stencil that is wrong itself is none.
            let found = wrong(repeat.span, "this loop does nothing", "no call in it").that_may_follow();
            self.tell(found.help("call a stencil in it, as in `phi = step(phi)`"));
        }
        self.lowering.warn_unused_since(mark, "the field");
        self.lowering.scope.forget(mark);
        // Nobody knows whether there was a single step.
        self.valued = before;
        if let Some(times) = times {
            actions.push(Action::Repeat(Repeat { times, counter, actions: inner, span: repeat.span }));
        }
    }

    /// How often a loop is run.
    fn times(&mut self, repeat: &ast::Repeat) -> Found<Body> {
        let times = self.number(repeat.times, Some(Kind::Int), "repeat")?;
        if self.lowering.is_over_mesh() || !self.changes(&times) {
            return Some(times);
        }
        let at = self.span(repeat.times);
        let found =
            wrong(at, "how often a loop is run is known before a program on a grid begins", "changes with turns");
        self.report(found.help("pass the number to the stencil, which can leave alone what it is to leave alone"))
    }

    /// The number of a turn.
    fn counter(&mut self, name: &'a ast::Name) -> Found<VariableId> {
        let id = self.add(name, new_variable(name, Place::NOWHERE, Stored::Int))?;
        self.valued.insert(id);
        self.counters.insert(id);
        Some(id)
    }

    /// A number: a body of parameters, constants, and numbers made of them.
    fn number(&mut self, expr: ExprId, kind: Option<Kind>, what: &str) -> Found<Body> {
        let body = match kind {
            Some(kind) => self.lowering.body_as(expr, kind, what)?,
            None => self.lowering.body(|own| own.scalar(expr))?,
        };
        self.check_numbers(expr);
        self.check_known(&body)?;
        Some(body)
    }

    /// Reports `k`: a program stands at no level.
    fn check_numbers(&mut self, expr: ExprId) {
        let mut names = super::test::parts::names(self.lowering.file, expr).into_iter();
        if let Some((_, span)) = names.find(|(name, _)| *name == "k") {
            let found = wrong(span, "a program computes numbers, which have no level", "`k` means nothing here");
            self.tell(found.help("`nk` is the number of levels; what depends on the level is computed in a stencil"));
        }
    }

    /// The field that an expression names, if it is a name of one.
    fn field_named(&mut self, expr: ExprId) -> Option<Found<VariableId>> {
        let Expr::Name(name) = &self.lowering.file.exprs[self.lowering.ungrouped(expr)] else { return None };
        match self.lowering.scope.binding(name).cloned()? {
            Binding::Variable(id) => {
                self.lowering.scope.use_name(name);
                Some(Some(id))
            }
            // What is wrong with it was told where it was made.
            Binding::Broken => Some(None),
            _ => None,
        }
    }

    /// The same, where the field is read.
    fn field_with_value(&mut self, expr: ExprId) -> Option<Found<VariableId>> {
        let named = self.field_named(expr)?;
        Some(named.and_then(|id| self.with_value(id, self.span(expr))))
    }

    /// A field that has a value where it is read.
    fn with_value(&mut self, id: VariableId, at: Span) -> Found<VariableId> {
        if self.valued.contains(&id) {
            return Some(id);
        }
        let Variable { name, span, .. } = self.program.variables[id].clone();
        let is_assigned = self.assigned.contains(&id);
        let label =
            if is_assigned { "assigned in a loop, which may run zero times" } else { "read before it is assigned" };
        let found = wrong(at, format!("`{name}` may have no value here"), label).note(span, "declared here");
        self.report(found.help(match self.is_number(id) {
            true => format!("assign it before; a number that is given is a parameter: `param {name}`"),
            false => format!("declare it as `inout {name}`, or assign it before"),
        }))
    }

    /// A variable, if it can hold something.
    fn check_fits(&mut self, id: VariableId, other: Held, at: Span) -> Found<VariableId> {
        let own = Held::variable(&self.program.variables[id]);
        self.check_same(own, other, at, "these do not fit").map(|()| id)
    }

    /// Reports two of which one cannot hold the values of the other.
    fn check_same(&mut self, own: Held, other: Held, at: Span, label: &str) -> Found<()> {
        let (name, what) = (&own.what, &other.what);
        let differs = if own.place != other.place {
            format!("{name} is{}, {what} is{}", self.axes(own.place), self.axes(other.place))
        } else if own.stored != other.stored {
            format!("{name} is stored as {}, {what} as {}", own.stored.name(), other.stored.name())
        } else {
            return Some(());
        };
        self.report(wrong(at, differs, label).note(own.span, "declared here").note(other.span, "and here"))
    }

    fn has_failed(&self) -> bool {
        has_error(&self.lowering.reports.diagnostics)
    }

    /// What can be told once the whole program is known.
    fn finish(&mut self, program: &'a ast::Stencil) {
        self.report_unknown_boundaries();
        self.read_edge_values();
        let mut has_output = false;
        for (id, Variable { name, role, span, .. }) in self.program.variables.clone().iter() {
            if !role.is_some_and(Role::is_written) {
                continue;
            }
            has_output = true;
            if !self.assigned.contains(&id) {
                let found = wrong(*span, format!("the output `{name}` is never assigned"), "declared here");
                self.tell(found.help(format!("assign what a call returns: `{name} = stencil(...)`")));
            }
            self.lowering.scope.assigned.insert(name.clone(), *span);
        }
        if !has_output && !self.has_failed() {
            let found = Diagnostic::error(program.name.span, format!("program `{}` has no output", program.name.text));
            self.tell(found.label("computes nothing").help("declare one with `inout phi` or `out res`, and assign it"));
        }
        self.lowering.warn_unused();
    }

    /// ` on (i, j)`, in words that also name all axes.
    fn axes(&self, place: Place) -> String {
        let Some(over) = &self.lowering.over else {
            let text = place.to_string();
            return if text.is_empty() { " on (i, j, k)".to_owned() } else { text };
        };
        let text = over.declared.mesh.place(place);
        match place.home {
            Some(home) if home.parts > 1 => format!(" a vector of {}{text}", home.parts),
            Some(_) | None => text,
        }
    }
}

/// What holds a value, for messages: a variable, or a field of a stencil.
struct Held {
    what: String,
    place: Place,
    stored: Stored,
    span: Span,
}

impl Held {
    fn variable(own: &Variable) -> Self {
        Self { what: format!("`{}`", own.name), place: own.place, stored: own.stored, span: own.span }
    }

    fn field(stencil: &Stencil, own: &Field) -> Self {
        let what = format!("`{}` of `{}`", own.name, stencil.name);
        Self { what, place: own.place, stored: own.stored, span: own.span }
    }
}

fn new_variable(name: &ast::Name, place: Place, stored: Stored) -> Variable {
    Variable {
        name: name.text.clone(),
        original: None,
        doc: FreeText::default(),
        role: None,
        is_shown: false,
        place,
        stored,
        range: None,
        edges: Edges::default(),
        span: name.span,
    }
}

/// The names that statements, and those inside of them, assign.
fn assigned_names(statements: &[Statement]) -> BTreeSet<&str> {
    let (mut names, mut open): (_, Vec<&Statement>) = (BTreeSet::new(), statements.iter().collect());
    while let Some(statement) = open.pop() {
        match statement {
            Statement::Assign(assign) => names.extend(assign.targets.iter().map(|target| target.name.text.as_str())),
            Statement::Repeat(repeat) => open.extend(&repeat.statements),
            Statement::Sweep(sweep) => open.extend(&sweep.statements),
            Statement::Field(_) | Statement::Param(_) | Statement::Constant(_) | Statement::Function(_) => {}
            Statement::Let(_) | Statement::Print(_) | Statement::Boundary(_) | Statement::Reduce(_) => {}
            Statement::SumsByLevel(_) | Statement::Within(_) | Statement::Zones(_) => {}
        }
    }
    names
}
