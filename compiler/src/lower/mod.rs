//! From the syntax tree to the IR: names are resolved, kinds checked, functions and sums written out.
//!
//! Errors do not stop it: what is wrong is reported, the rest goes on, and what depends on something already reported
//! stays silent.

mod arithmetic;
mod block;
mod call;
mod constant;
mod declare;
mod expression;
mod index;
mod kind;
mod mesh;
mod name;
mod program;
mod scope;
mod sweep;
mod test;
mod unknown;
mod unused;
mod value;

use crate::analysis;
use crate::ast;
use crate::depth;
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::scalar::Value;
use crate::ir::{self, Body, Def, DefId, Handle, Node, NodeId, Origin, ParamId, Path, Stencil, Verify};
use crate::source::Span;
use crate::text::FreeText;
use scope::{Binding, Scope, Symbol};
use std::collections::{HashMap, HashSet};

/// What lowering made of a file.
#[derive(Debug, Default)]
pub struct Lowered {
    /// The documentation at the file's head.
    pub doc: String,
    /// The stencils without errors.
    pub stencils: Vec<Stencil>,
    /// The stencils over meshes without errors.
    pub mesh_stencils: Vec<ir::MeshStencil>,
    /// The programs over meshes without errors.
    pub mesh_programs: Vec<ir::MeshProgram>,
    /// The meshes.
    pub meshes: Vec<ir::Mesh>,
    /// The programs without errors.
    pub programs: Vec<ir::Program>,
    /// The tests without errors.
    pub tests: Vec<ir::Test>,
    /// What there is to tell, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Lowered {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
    }
}

/// The stencils of the file called `name`.
pub fn lower(file: &ast::File, name: &str) -> Lowered {
    let broken = |told| Lowered { diagnostics: vec![told], ..Lowered::default() };
    depth::on_own_stack(|| lowered(file, name)).unwrap_or_else(broken)
}

fn lowered(file: &ast::File, name: &str) -> Lowered {
    let mut lowered = Lowered { doc: file.doc.clone(), diagnostics: file.warnings.clone(), ..Lowered::default() };
    let globals = scope::Globals::collect(file, &mut lowered.diagnostics);
    let mut used = HashMap::new();
    let mut reader = Lowering::new(file, &globals, "", "");
    let meshes = reader.meshes();
    used.extend(reader.scope.used_globals());
    lowered.diagnostics.append(&mut reader.diagnostics);
    for item in &file.items {
        match item {
            ast::Item::Stencil(stencil) => {
                let before = lowered.diagnostics.len();
                let mut builder = Lowering::new(file, &globals, &stencil.name.text, &stencil.doc);
                builder.stencil(stencil, &meshes);
                lowered.diagnostics.append(&mut builder.diagnostics);
                used.extend(builder.scope.used_globals());
                let is_right = |told: &[Diagnostic]| told.iter().all(|found| found.severity == Severity::Warning);
                if is_right(&lowered.diagnostics[before..]) {
                    lowered.diagnostics.append(&mut analysis::sweeps::unguarded(&builder.stencil));
                }
                if is_right(&lowered.diagnostics[before..]) {
                    lowered.diagnostics.append(&mut analysis::guards::guards(&builder.stencil));
                    lowered.diagnostics.append(&mut analysis::numbers::numbers(&builder.stencil, ir::Precision::F64));
                }
                if is_right(&lowered.diagnostics[before..]) {
                    builder.stencil.file = FreeText::new(name);
                    match builder.over {
                        Some(over) => lowered.mesh_stencils.push(over.stencil(builder.stencil).verified("lowering")),
                        None => lowered.stencils.push(builder.stencil.verified("lowering")),
                    }
                }
            }
            // Were read before.
            ast::Item::Mesh(_) => {}
            ast::Item::Function(_) | ast::Item::Constant(_) | ast::Item::Param(_) => {}
            // These are made of the stencils.
            ast::Item::Program(_) | ast::Item::Test(_) => {}
        }
    }
    let stencils = std::mem::take(&mut lowered.stencils);
    let mut inner: HashMap<&str, Vec<Stencil>> = HashMap::new();
    for own in &lowered.mesh_stencils {
        inner.entry(&own.mesh.name).or_default().push(own.stencil.clone());
    }
    let nothing = Vec::new();
    lowered.meshes = meshes.iter().map(|own| own.mesh.clone()).collect();
    for item in &file.items {
        let ast::Item::Program(program) = item else { continue };
        let mut builder = Lowering::new(file, &globals, &program.name.text, &program.doc);
        let over = program.over.as_ref().and_then(|over| over.names.first()).map(|name| name.text.as_str());
        let called = over.map_or(&stencils, |mesh| inner.get(mesh).unwrap_or(&nothing));
        let ir = builder.program(program, called, &meshes);
        used.extend(builder.scope.used_globals());
        if builder.diagnostics.iter().all(|found| found.severity == Severity::Warning) {
            let ir = ir::Program { file: FreeText::new(name), ..ir };
            match builder.over {
                Some(over) => {
                    let own = ir::MeshProgram {
                        stencils: over.called(&ir, &lowered.mesh_stencils),
                        program: ir,
                        mesh: over.declared.mesh.clone(),
                        numbers: builder.numbers,
                        sizes: builder.sizes,
                    };
                    lowered.mesh_programs.push(own.verified("lowering"));
                }
                None => lowered.programs.push(ir.verified("lowering")),
            }
        }
        lowered.diagnostics.append(&mut builder.diagnostics);
    }
    let facades = lowered.programs.iter().map(ir::Program::facade);
    let subjects: Vec<Stencil> = stencils.iter().cloned().chain(facades).collect();
    lowered.stencils = stencils;
    let mut tests = test::Tests::new(file, &globals, &subjects);
    for item in &file.items {
        if let ast::Item::Test(test) = item {
            lowered.tests.extend(tests.test(test));
        }
        if tests.is_lost() {
            break;
        }
    }
    used.extend(tests.used);
    lowered.diagnostics.append(&mut tests.diagnostics);
    let (mut wrong, unread) = unused::look(file, &globals, &used);
    lowered.diagnostics.append(&mut wrong);
    globals.report_unused(&used, &mut lowered.diagnostics);
    if lowered.is_ok() && lowered.stencils.is_empty() && lowered.mesh_stencils.is_empty() {
        lowered.diagnostics.push(
            Diagnostic::error(Span::default(), "this file has no stencil")
                .help("write one: `stencil copy { in a; out b; b = a }`"),
        );
    }
    if !lowered.is_ok() {
        lowered.diagnostics.retain(|found| !found.may_follow);
    }
    // An error inside a function shows once, however often the function is called.
    let mut seen = std::collections::HashSet::new();
    lowered.diagnostics.retain(|found| seen.insert((found.label.span, found.message.clone())));
    lowered.diagnostics.sort_by_key(|found| found.label.span.start);
    abridge(&mut lowered.diagnostics);
    // However much else there is to tell.
    lowered.diagnostics.extend(unread);
    lowered
}

/// The whole number or truth value that a node is.
fn literal(node: &Node) -> Option<Value> {
    match node {
        Node::Int(x) => Some(Value::Int(*x)),
        Node::Bool(x) => Some(Value::Bool(*x)),
        _ => None,
    }
}

/// The most diagnostics of a file; more are of no help.
const DIAGNOSTICS: usize = 30;
/// With so many, the rest of a stencil is not looked at.
const GIVEN_UP: usize = 1_000;

fn abridge(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() <= DIAGNOSTICS {
        return;
    }
    // Errors first: a file must not look right because its warnings came first.
    diagnostics.sort_by_key(|found| (found.severity == Severity::Warning, found.label.span.start));
    let more = diagnostics.len() - DIAGNOSTICS;
    let last = diagnostics.split_off(DIAGNOSTICS);
    let place = last.first().map_or(Span::default(), |first| first.label.span);
    let severity = diagnostics[0].severity;
    // Where a stencil was given up, nobody knows how many there are.
    let more = if more < GIVEN_UP - DIAGNOSTICS { more.to_string() } else { "many".to_owned() };
    let mut rest = Diagnostic::warning(place, format!("{more} more like these are not shown"));
    rest.severity = severity;
    diagnostics.push(rest.label("the next one"));
}

/// The most operations of one expression; what the C++ compilers can digest.
const BODY_NODES: usize = 20_000;
/// The most operations of one stencil, with its functions and sums written out.
const STENCIL_NODES: usize = 1_000_000;
/// The longest chain of functions that call each other.
const CALLS: usize = 100;
/// The most prints of one stencil: each is a computation of its own.
const PRINTS: usize = 100;
/// How many calls an error inside functions shows.
const CALLS_SHOWN: usize = 3;
/// The longest chain of definitions that use each other.
const CHAIN: u32 = 1_000;

/// Lowers one stencil.
#[derive(Clone)]
struct Lowering<'a> {
    file: &'a ast::File,
    globals: &'a scope::Globals<'a>,
    scope: Scope<'a>,
    stencil: Stencil,
    /// The bodies under construction; the last is being written.
    bodies: Vec<Body>,
    /// The functions being called, innermost last.
    calls: Vec<call::Call>,
    /// The constants being computed, innermost last.
    constants: Vec<String>,
    /// The constants computed so far, by the place of their name.
    constant_values: HashMap<Span, Option<value::Bound>>,
    /// Whether what is being written must be constant: how many constants are being computed.
    constant_depth: usize,
    /// How long the chain of definitions below each definition is.
    chains: Vec<u32>,
    /// The value of each definition that is a constant, in each way of computing.
    known: constant::Known,
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
    /// What is known of vertical recurrences.
    sweeps: sweep::Sweeps,
    /// What constants are worth in double precision.
    folded: ir::Constants,
    /// Operations so far.
    nodes: usize,
    /// Whether it was told that there are too many.
    exceeded: bool,
    /// How many expressions are nested around the one at hand, those that name the functions and constants at hand included.
    nested: usize,
    /// In a test: what the names of coordinates stand for.
    coordinates: Option<test::Coordinates>,
    /// Whether an error was reported that other numbers would not have brought: an index, a limit.
    depends_on_numbers: bool,
    diagnostics: Vec<Diagnostic>,
    /// How many of these are errors of expressions and statements.
    errors: usize,
    /// Whether nothing is told, since it is told elsewhere.
    is_silent: bool,
    /// What was told where: an error inside a function is told once, however often the function is called.
    told: HashSet<(Span, String)>,
}

/// Statements, and those inside of them.
fn flat(statements: &[ast::Statement]) -> impl Iterator<Item = &ast::Statement> {
    statements.iter().flat_map(|statement| {
        let inner = match statement {
            ast::Statement::Sweep(sweep) => &sweep.statements[..],
            ast::Statement::Repeat(repeat) => &repeat.statements[..],
            ast::Statement::Field(_)
            | ast::Statement::Param(_)
            | ast::Statement::Constant(_)
            | ast::Statement::Function(_)
            | ast::Statement::Let(_)
            | ast::Statement::Print(_)
            | ast::Statement::Assign(_)
            | ast::Statement::Boundary(_)
            | ast::Statement::Reduce(_) => &[],
        };
        std::iter::once(statement).chain(inner)
    })
}

/// A value under construction: nothing if an error was reported.
type Found<T> = Option<T>;

impl<'a> Lowering<'a> {
    fn new(file: &'a ast::File, globals: &'a scope::Globals<'a>, name: &str, doc: &str) -> Self {
        Self {
            file,
            globals,
            scope: Scope::default(),
            stencil: Stencil { name: name.to_owned(), doc: FreeText::new(doc), ..Stencil::default() },
            bodies: Vec::new(),
            calls: Vec::new(),
            constants: Vec::new(),
            constant_values: HashMap::new(),
            constant_depth: 0,
            chains: Vec::new(),
            known: constant::Known::default(),
            params: HashMap::new(),
            over: None,
            numbers: Vec::new(),
            sizes: Vec::new(),
            reductions: Vec::new(),
            sweeps: sweep::Sweeps::default(),
            folded: ir::Constants::default(),
            nodes: 0,
            exceeded: false,
            nested: 0,
            told: HashSet::new(),
            errors: 0,
            is_silent: false,
            coordinates: None,
            depends_on_numbers: false,
            diagnostics: Vec::new(),
        }
    }

    /// Reports what is wrong here: in a function, with the calls that led to it.
    fn report<T>(&mut self, mut diagnostic: Diagnostic) -> Found<T> {
        for call in self.calls.iter().rev().filter(|call| call.span.end > 0).take(CALLS_SHOWN) {
            diagnostic = diagnostic.note(call.span, call.description());
        }
        self.report_alone(diagnostic)
    }

    /// Reports what is wrong with these numbers, and might be right with others.
    fn report_number<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        self.depends_on_numbers = true;
        self.report(diagnostic)
    }

    /// Reports what is wrong wherever a function is called from.
    fn report_alone<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        if !self.is_silent && self.told.insert((diagnostic.label.span, diagnostic.message.clone())) {
            self.diagnostics.push(diagnostic);
            self.errors += 1;
        }
        None
    }

    /// Warns of something: once, however often it is written out.
    fn warn(&mut self, diagnostic: Diagnostic) {
        if !self.is_silent && self.told.insert((diagnostic.label.span, diagnostic.message.clone())) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether so much is wrong that the rest is not looked at. Of warnings there may be any number: what is right is never left out.
    fn is_given_up(&self) -> bool {
        self.errors >= GIVEN_UP
    }

    /// Whether nothing that follows could be told, or become part of the body being written.
    fn is_lost(&self) -> bool {
        let is_full = || self.bodies.last().is_some_and(|body| body.len() >= BODY_NODES) || self.nodes > STENCIL_NODES;
        self.is_given_up() || self.exceeded && is_full()
    }

    fn stencil(&mut self, stencil: &'a ast::Stencil, meshes: &'a [mesh::Declared]) {
        if let Some(over) = &stencil.over {
            let Some(over) = self.over_set(meshes, over) else { return };
            self.over = Some(over);
        }
        let mut prints = flat(&stencil.statements).filter_map(|statement| match statement {
            ast::Statement::Print(print) => Some(print.span),
            ast::Statement::Field(_)
            | ast::Statement::Param(_)
            | ast::Statement::Constant(_)
            | ast::Statement::Function(_)
            | ast::Statement::Let(_)
            | ast::Statement::Assign(_)
            | ast::Statement::Sweep(_)
            | ast::Statement::Repeat(_)
            | ast::Statement::Boundary(_)
            | ast::Statement::Reduce(_) => None,
        });
        if let Some(place) = prints.nth(PRINTS) {
            self.report::<()>(
                Diagnostic::error(place, format!("a stencil has at most {PRINTS} prints"))
                    .label("one too many")
                    .help("keep those that you look at"),
            );
        }
        for statement in &stencil.statements {
            if self.is_given_up() {
                return;
            }
            match statement {
                ast::Statement::Field(fields) => self.declare_fields(fields),
                ast::Statement::Param(params) => self.declare_params(params),
                ast::Statement::Constant(constant) => {
                    self.define(&constant.name, Binding::Constant(constant));
                }
                ast::Statement::Function(function) => {
                    self.define(&function.name, Binding::Function(function));
                }
                ast::Statement::Let(binding) if self.lets_an_output(binding, &stencil.statements) => {}
                ast::Statement::Let(binding) => self.define_let(binding),
                ast::Statement::Print(print) => self.print(print),
                ast::Statement::Assign(assign) => self.assign(assign),
                ast::Statement::Sweep(sweep) if self.is_over_mesh() => {
                    self.report::<()>(
                        Diagnostic::error(sweep.span, "there are no sweeps over the levels of a mesh")
                            .label("in a stencil over a mesh")
                            .help("a grid stencil has them"),
                    );
                    return;
                }
                ast::Statement::Sweep(sweep) => self.sweep(sweep),
                ast::Statement::Reduce(reduce) => self.declare_reductions(reduce),
                ast::Statement::Repeat(ast::Repeat { span, .. })
                | ast::Statement::Boundary(ast::Boundary { span, .. }) => {
                    self.report::<()>(
                        Diagnostic::error(*span, "this belongs into a `program`")
                            .label("in a stencil")
                            .help("a program calls stencils, repeats calls, and says what lies beyond edges"),
                    );
                    // What is assigned in it would seem never to be.
                    return;
                }
            }
        }
        self.finish(stencil);
    }

    /// Reports a `let` that was to assign an output, which no other statement assigns.
    fn lets_an_output(&mut self, binding: &ast::Let, among: &[ast::Statement]) -> bool {
        let [name] = binding.names.as_slice() else { return false };
        let Some(Binding::Field(field)) = self.scope.find(&name.text).map(|symbol| &symbol.binding) else {
            return false;
        };
        let (declared, role) = (self.stencil.fields[*field].span, self.stencil.fields[*field].role);
        if !role.is_written() {
            return false;
        }
        let is_assigned = flat(among).any(|statement| match statement {
            ast::Statement::Assign(assign) => assign.targets.iter().any(|target| target.name.text == name.text),
            ast::Statement::Field(_)
            | ast::Statement::Param(_)
            | ast::Statement::Constant(_)
            | ast::Statement::Function(_)
            | ast::Statement::Let(_)
            | ast::Statement::Print(_)
            | ast::Statement::Sweep(_)
            | ast::Statement::Repeat(_)
            | ast::Statement::Boundary(_)
            | ast::Statement::Reduce(_) => false,
        });
        if is_assigned {
            return false;
        }
        // That it is not assigned would be the same error again.
        self.scope.assigned.entry(name.text.clone()).or_insert(name.span);
        self.report::<()>(
            Diagnostic::error(name.span, format!("`{}` is an output: it is assigned without `let`", name.text))
                .label(format!("write `{} = ...`", name.text))
                .note(declared, "declared here"),
        );
        true
    }

    /// `let a = ...` inside a stencil or block.
    fn define_let(&mut self, binding: &'a ast::Let) {
        let [name] = binding.names.as_slice() else {
            let place = binding.names.first().map_or(Span::default(), |name| name.span);
            self.report::<()>(
                Diagnostic::error(place, "several names at once take the results of a call in a `program`")
                    .help("write one `let` for each name"),
            );
            binding.names.iter().for_each(|name| self.define(name, Binding::Broken));
            return;
        };
        let bound = self.bind(binding.value, &name.text, Origin::Let);
        self.sweep_defines(&name.text, bound.as_ref());
        self.define(name, bound.map_or(Binding::Broken, Binding::Value));
    }

    fn assign(&mut self, assign: &'a ast::Assign) {
        let [target] = assign.targets.as_slice() else {
            let place = assign.targets.first().map_or(Span::default(), |target| target.name.span);
            let last = assign.targets.last().map_or(place, |target| target.name.span);
            self.report::<()>(
                Diagnostic::error(place.to(last), "outputs are assigned one by one")
                    .label("several at once")
                    .help("as in `b = ...; c = ...`"),
            );
            // That they are not assigned would be the same error again.
            let names = assign.targets.iter().map(|target| (target.name.text.clone(), target.name.span));
            self.scope.assigned.extend(names);
            return;
        };
        if self.is_over_mesh() {
            return self.mesh_assign(assign, target);
        }
        let name = &target.name;
        let field = match self.scope.find(&name.text).map(|symbol| &symbol.binding) {
            Some(Binding::Field(field)) => Some(*field),
            _ => None,
        };
        let declared_output = field.is_some_and(|field| self.stencil.fields[field].role.is_written());
        if declared_output && (target.index.is_some() || assign.op.text != "=") {
            // It was meant to be assigned: that it is not would be the same error again.
            self.scope.assigned.insert(name.text.clone(), name.span);
        }
        if let Some((_, index)) = target.index {
            self.report::<()>(
                Diagnostic::error(index, "an output is assigned at the cell itself").label("leave this out").help(
                    format!(
                        "write `{} = ...`: the formula holds on every cell, and nobody writes the cell's indices; an offset \
                         belongs to what is read, with the opposite sign",
                        name.text
                    ),
                ),
            );
            return;
        }
        let is_broken = |found: &Symbol| matches!(found.binding, Binding::Broken);
        if assign.op.text != "=" && self.scope.find(&name.text).is_some_and(is_broken) {
            return;
        }
        if assign.op.text != "=" {
            let is_read = field.is_some_and(|field| self.stencil.fields[field].role.is_read());
            let found = Diagnostic::error(assign.op.span, "an output is assigned with `=`, and once");
            self.report::<()>(if is_read {
                found
                    .label(format!("write `{0} = {0} {1} ...`", name.text, assign.op.text.trim_end_matches('=')))
                    .help("the value that is read is the one before")
            } else {
                found
                    .label(format!("write `{} = ...`", name.text))
                    .help("collect the sum in a `let`, and assign that: nobody adds to an output")
            });
            return;
        }
        let Some(field) = field else {
            let outputs: Vec<String> = self.outputs().map(|field| field.name.clone()).collect();
            let guess = crate::diagnostic::guess(&name.text, outputs.iter().map(String::as_str));
            let found = self.scope.find(&name.text);
            if found.is_some_and(|symbol| matches!(symbol.binding, Binding::Broken)) {
                self.scope.assigned.insert(name.text.clone(), name.span);
                return;
            }
            let known = found.map(|symbol| (symbol.what, symbol.span));
            if let Some((what, span)) = known {
                self.report::<()>(
                    Diagnostic::error(name.span, format!("{what} `{}` cannot be assigned again", name.text))
                        .label("assigned here")
                        .note(span, "defined here")
                        .help("a name means one value: give the new one a name of its own, with `let`"),
                );
                return;
            }
            let label = match guess {
                Some(guess) => format!("did you mean `{guess}`?"),
                None => "not declared".to_owned(),
            };
            if let Some(guess) = guess {
                // That it is never assigned would be the same error again.
                self.scope.assigned.insert(guess.to_owned(), name.span);
            }
            self.report::<()>(
                Diagnostic::error(name.span, format!("`{}` is no output of this stencil", name.text))
                    .label(label)
                    .help(format!("declare it with `out {0}`, or name a value with `let {0} = ...`", name.text)),
            );
            self.define(name, Binding::Broken);
            return;
        };
        let declared = self.stencil.fields[field].clone();
        if !declared.role.is_written() {
            self.report::<()>(
                Diagnostic::error(name.span, format!("`{}` is an input: it cannot be assigned", name.text))
                    .label("assigned here")
                    .note(declared.span, "declared as `in` here")
                    .help("declare it as `inout` to read the value before and write a new one"),
            );
            return;
        }
        if let Some(before) = self.scope.assigned.get(&name.text) {
            let before = *before;
            self.report::<()>(
                Diagnostic::error(name.span, format!("`{}` is assigned twice", name.text))
                    .label("assigned again here")
                    .note(before, "assigned here first")
                    .help("collect the value in a `let`, or choose it with `if`, and assign it once"),
            );
            return;
        }
        self.scope.assigned.insert(name.text.clone(), name.span);
        self.bodies.push(Body::new());
        let value = self.scalar(assign.value).and_then(|value| {
            self.convert(value, declared.stored.kind(), self.file.exprs.span(assign.value), &declared.name)
        });
        let body = self.bodies.pop().unwrap_or_default();
        if let Some(value) = value {
            let body = body.rooted(value);
            self.check_axes(&body, &declared, self.file.exprs.span(assign.value));
            self.store(field, body);
        }
    }

    /// `print(...)`
    fn print(&mut self, print: &'a ast::Print) {
        if self.is_over_mesh() {
            self.report::<()>(
                Diagnostic::error(print.span, "a `print` shows values at a cell of a grid")
                    .label("in a stencil over a mesh")
                    .help("make the value an output, and write it to a file: `--out name=name.npy`"),
            );
            return;
        }
        self.bodies.push(Body::new());
        let value = self.scalar(print.value);
        let body = self.bodies.pop().unwrap_or_default();
        if let Some(value) = value {
            self.show(print.label.clone(), print.span, body.rooted(value));
        }
    }

    fn outputs(&self) -> impl Iterator<Item = &ir::Field> {
        self.stencil.fields.iter().map(|(_, field)| field).filter(|field| field.role.is_written())
    }

    /// An output on fewer axes may depend on nothing that varies along the others.
    fn check_axes(&mut self, body: &Body, field: &ir::Field, place: Span) {
        let full = ir::Place { horizontal: true, levels: ir::Levels::Full, home: None };
        if field.place == full {
            return;
        }
        let varies = value::varies(&self.stencil, body);
        let missing = match (field.place, varies) {
            (ir::Place { horizontal: false, .. }, (true, _)) => "the horizontal axes",
            (ir::Place { levels: ir::Levels::None, .. }, (_, true)) => "k",
            _ => return,
        };
        self.report::<()>(
            Diagnostic::error(
                place,
                format!("`{}` is{}, but its value varies along {missing}", field.name, field.place),
            )
            .label(format!("varies along {missing}"))
            .note(field.span, "declared here")
            .help("a field on fewer axes is made of fields and names without the others only"),
        );
    }

    /// What can be told once the whole stencil is known.
    fn finish(&mut self, stencil: &ast::Stencil) {
        let unassigned: Vec<(String, Span, ir::Role)> = self
            .outputs()
            .filter(|field| !self.scope.assigned.contains_key(&field.name))
            .map(|field| (field.name.clone(), field.span, field.role))
            .collect();
        for (name, span, role) in unassigned {
            let add = match role {
                ir::Role::Inc => format!("add `{name}[...] += ...`"),
                ir::Role::Reduce => format!("add `{name} += ...` of a sum, `{name} = ...` of a `min` or `max`"),
                ir::Role::In | ir::Role::Carried | ir::Role::Out | ir::Role::InOut => format!("add `{name} = ...`"),
            };
            self.report::<()>(
                Diagnostic::error(span, format!("the output `{name}` is never assigned"))
                    .label("declared here")
                    .help(add),
            );
        }
        // An assignment to what is not declared was told already.
        let assigns = flat(&stencil.statements).any(|statement| matches!(statement, ast::Statement::Assign(_)));
        if self.outputs().next().is_none() && !assigns {
            self.report::<()>(
                Diagnostic::error(stencil.name.span, format!("stencil `{}` has no output", stencil.name.text))
                    .label("computes nothing")
                    .help("declare one with `out res` and assign it with `res = ...`"),
            );
        }
        let broken = self.diagnostics.iter().any(|found| found.severity == Severity::Error);
        if broken {
            return;
        }
        for Symbol { name, span, what, .. } in self.scope.unused() {
            self.diagnostics.push(Diagnostic::unused(span, what, &name));
        }
        // Before anything follows the definitions, wherever they are looked at.
        let what = format!("stencil `{}`", self.stencil.name);
        if let Some(found) = analysis::values::values(&self.stencil, &what, stencil.name.span) {
            self.diagnostics.push(found.help("split the stencil in two, and store what is between them"));
        }
    }

    /// Writes a body, and makes it a definition unless it is a mere name or number.
    fn bind(&mut self, expr: ast::ExprId, name: &str, origin: Origin) -> Found<value::Bound> {
        // On a mesh, a field that lives elsewhere may be passed on by its name.
        if self.is_over_mesh()
            && let ast::Expr::Name(text) = &self.file.exprs[expr]
            && self.scope.find(text).is_some()
            && text != "k"
        {
            return self.resolve(text, self.file.exprs.span(expr));
        }
        self.bodies.push(Body::new());
        let value = self.value(expr);
        let body = self.bodies.pop().unwrap_or_default();
        value?.map(|node| self.bind_body(body.rooted(node), name, origin)).collected()
    }

    fn bind_body(&mut self, body: Body, name: &str, origin: Origin) -> Found<value::Alias> {
        if let (1, Some((_, node))) = (body.len(), body.iter().next()) {
            match node {
                Node::Int(x) => return Some(value::Alias::Int(*x)),
                Node::Param(param) => return Some(value::Alias::Param(*param)),
                Node::Read { field, path, part } if !self.is_carried(*field) => {
                    return Some(value::Alias::Field(*field, path.clone(), *part));
                }
                Node::Use { def, path } => {
                    let used = &mut self.stencil.defs[*def];
                    // A result that is named at once bears the name that the user gave it.
                    if origin == Origin::Let && used.origin == Origin::Result && path.is_here() {
                        used.name = name.to_owned();
                        used.origin = Origin::Let;
                    }
                    return Some(value::Alias::Def(*def, path.clone()));
                }
                _ => {}
            }
        }
        Some(value::Alias::Def(self.add_def(body, name, origin)?, Path::default()))
    }

    fn add_def(&mut self, body: Body, name: &str, origin: Origin) -> Found<DefId> {
        let origin = if self.constant_depth == 0 {
            origin
        } else {
            self.check_constant(&body, body.span_of(body.root()))?;
            Origin::Constant
        };
        let below = body.iter().filter_map(|(_, node)| match node {
            Node::Use { def, .. } => Some(self.chains[def.index()] + 1),
            _ => None,
        });
        let chain = below.max().unwrap_or(0);
        if chain > CHAIN {
            let place = body.span_of(body.root());
            return self.report(Diagnostic::error(
                place,
                format!("a chain of more than {CHAIN} names, each made of the one before"),
            ));
        }
        self.chains.push(chain);
        self.tie(&body);
        self.known.add(&body, origin);
        Some(self.stencil.defs.add(Def { name: name.to_owned(), origin, body }))
    }

    /// Adds a node to the body being written.
    fn node(&mut self, node: Node, kind: ir::Kind, span: Span) -> Found<NodeId> {
        self.nodes += 1;
        let body = self.bodies.last_mut()?;
        // Whole constants are computed at once, since they may be offsets; they are the same in every precision.
        let operands: Option<Vec<_>> = node.operands().iter().map(|&operand| literal(&body[operand])).collect();
        let node = match operands.and_then(|operands| ir::scalar::apply(ir::Precision::F64, &node, &operands)) {
            Some(Value::Int(x)) => Node::Int(x),
            Some(Value::Bool(x)) => Node::Bool(x),
            Some(Value::Real(_)) | None => node,
        };
        if body.len() < BODY_NODES && self.nodes <= STENCIL_NODES {
            return Some(body.add(node, kind, span));
        }
        let limit = if body.len() >= BODY_NODES { BODY_NODES } else { STENCIL_NODES };
        self.too_many(limit, span)
    }

    /// Reports that what is written out comes to too much. Told once; every later node fails silently.
    fn too_many<T>(&mut self, limit: usize, span: Span) -> Found<T> {
        if std::mem::replace(&mut self.exceeded, true) {
            self.depends_on_numbers = true;
            return None;
        }
        self.report_number(
            Diagnostic::error(span, format!("this comes to more than {limit} operations when written out"))
                .help("name parts of it with `let`, or make the sums smaller"),
        )
    }
}
