//! What a file declares, one thing after the other.

use super::report::{abridge, has_error};
use super::{Lowering, scope, test, unused};
use crate::analysis;
use crate::ast;
use crate::depth;
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::{self, Stencil, Verify};
use crate::source::Span;
use crate::text::FreeText;
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
    /// The tests over meshes without errors.
    pub mesh_tests: Vec<ir::MeshTest>,
    /// What a file has for those that import it, if it has neither stencils nor tests itself.
    pub library: Library,
    /// What there is to tell, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Names of what a file has beside stencils.
#[derive(Debug, Default)]
pub struct Library {
    /// Its functions.
    pub functions: Vec<String>,
    /// Its constants.
    pub constants: Vec<String>,
    /// Its parameters.
    pub params: Vec<String>,
    /// Its meshes.
    pub meshes: Vec<String>,
    /// Its names for types.
    pub types: Vec<String>,
}

impl Library {
    /// What `file` has; nothing if it has stencils, programs or tests of its own.
    fn of(file: &ast::File) -> Self {
        let mut library = Self::default();
        let is_own = |span: Span| file.imported_from.is_none_or(|from| span.start < from);
        let mut add = |to: fn(&mut Self) -> &mut Vec<String>, name: &ast::Name| {
            if is_own(name.span) {
                to(&mut library).push(name.text.clone());
            }
        };
        for item in &file.items {
            match item {
                ast::Item::Stencil(own) | ast::Item::Program(own) if is_own(own.name.span) => return Self::default(),
                ast::Item::Test(_) => return Self::default(),
                ast::Item::Function(own) => add(|own| &mut own.functions, &own.name),
                ast::Item::Constant(own) => add(|own| &mut own.constants, &own.name),
                ast::Item::Param(own) => own.names.iter().for_each(|name| add(|own| &mut own.params, name)),
                ast::Item::Mesh(own) => add(|own| &mut own.meshes, &own.name),
                ast::Item::Type(own) => add(|own| &mut own.types, &own.name),
                ast::Item::Stencil(_) | ast::Item::Program(_) | ast::Item::Import(_) => {}
            }
        }
        library
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        let all = [&self.functions, &self.constants, &self.params, &self.meshes, &self.types];
        all.iter().all(|names| names.is_empty())
    }
}

impl Lowered {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        !has_error(&self.diagnostics)
    }

    /// Adds a stencil, unless something is wrong with it.
    fn add_stencil(&mut self, mut builder: Lowering, name: &str, told: &mut Told) {
        let found = &mut builder.reports.diagnostics;
        if !has_error(found) {
            found.append(&mut analysis::sweeps::unguarded(&builder.stencil));
        }
        if !has_error(found) {
            found.append(&mut analysis::guards::guards(&builder.stencil));
            found.append(&mut analysis::numbers::numbers(&builder.stencil, ir::Precision::F64));
        }
        if !told.take(&mut builder) {
            return;
        }
        builder.stencil.file = FreeText::new(name);
        builder.stencil.types = builder.file.given_types.clone();
        match builder.over {
            Some(over) => self.mesh_stencils.push(over.stencil(builder.stencil).verified("lowering")),
            None => self.stencils.push(builder.stencil.verified("lowering")),
        }
    }

    /// Adds a program, unless something is wrong with it.
    fn add_program(&mut self, mut builder: Lowering, ir: ir::Program, told: &mut Told) {
        if !told.take(&mut builder) {
            return;
        }
        let Some(over) = builder.over else { return self.programs.push(ir.verified("lowering")) };
        let own = ir::MeshProgram {
            stencils: over.called(&ir, &self.mesh_stencils),
            program: ir,
            mesh: over.declared.mesh.clone(),
            numbers: builder.numbers,
            sizes: builder.sizes,
        };
        self.mesh_programs.push(own.verified("lowering"));
    }

    /// Adds what there is to tell: in the order of the text, each once, and not too much of it.
    fn tell(&mut self, told: Told, globals: &scope::Globals) {
        self.diagnostics = told.diagnostics;
        let (mut wrong, unread) = unused::look(globals, &told.used);
        self.diagnostics.append(&mut wrong);
        self.library = Library::of(globals.file);
        // What a library has is there for others.
        if self.library.is_empty() {
            globals.report_unused(&told.used, &mut self.diagnostics);
        }
        // What a file uses of another is its own business.
        let is_imported = |span: Span| globals.file.imported_from.is_some_and(|from| span.start >= from);
        let is_unused = |found: &Diagnostic| found.severity == Severity::Warning && found.may_follow;
        self.diagnostics.retain(|found| !(is_unused(found) && is_imported(found.label.span)));
        if self.is_ok() && self.stencils.is_empty() && self.mesh_stencils.is_empty() && self.library.is_empty() {
            let found = Diagnostic::error(Span::default(), "this file has no stencil");
            self.diagnostics.push(found.help("write one: `stencil copy { in a; out b; b = a }`"));
        }
        if self.diagnostics.iter().any(|found| found.severity == Severity::Error && !found.may_follow) {
            self.diagnostics.retain(|found| !found.may_follow);
        }
        // An error inside a function shows once, however often the function is called.
        let mut seen = HashSet::new();
        self.diagnostics.retain(|found| seen.insert((found.label.span, found.message.clone())));
        self.diagnostics.sort_by_key(|found| found.label.span.start);
        abridge(&mut self.diagnostics);
        // However much else there is to tell.
        self.diagnostics.extend(unread);
    }
}

/// What there is to tell of a file, and which of its names are used.
#[derive(Default)]
pub struct Told {
    /// What there is to tell.
    pub diagnostics: Vec<Diagnostic>,
    /// The functions, constants, parameters and types of the file that something uses.
    pub used: HashSet<String>,
}

impl Told {
    /// Takes these from what was lowered, and returns whether nothing is wrong with it.
    pub fn take(&mut self, lowering: &mut Lowering) -> bool {
        let is_right = !has_error(&lowering.reports.diagnostics);
        self.diagnostics.append(&mut lowering.reports.diagnostics);
        self.used.extend(std::mem::take(&mut lowering.scope.used_globals));
        is_right
    }
}

/// The stencils of the file called `name`.
pub fn lower(file: &ast::File, name: &str) -> Lowered {
    let broken = |told| Lowered { diagnostics: vec![told], ..Lowered::default() };
    depth::on_own_stack(|| lowered(file, name)).unwrap_or_else(broken)
}

fn lowered(file: &ast::File, name: &str) -> Lowered {
    let mut lowered = Lowered { doc: file.doc.clone(), ..Lowered::default() };
    let used = file.types_used.iter().cloned().collect();
    let mut told = Told { diagnostics: file.warnings.clone(), used };
    let globals = scope::Globals::collect(file, &mut told.diagnostics);
    let mut reader = Lowering::new(&globals, "", "");
    let meshes = reader.meshes();
    told.take(&mut reader);
    lowered.meshes = meshes.iter().map(|own| own.mesh.clone()).collect();
    for item in &file.items {
        if let ast::Item::Stencil(stencil) = item {
            let mut builder = Lowering::new(&globals, &stencil.name.text, &stencil.doc);
            builder.stencil(stencil, &meshes);
            lowered.add_stencil(builder, name, &mut told);
        }
    }
    // Programs and tests are made of the stencils.
    let stencils = lowered.stencils.clone();
    let mut inner: HashMap<String, Vec<Stencil>> = HashMap::new();
    for own in &lowered.mesh_stencils {
        inner.entry(own.mesh.name.clone()).or_default().push(own.stencil.clone());
    }
    for item in &file.items {
        let ast::Item::Program(program) = item else { continue };
        let mut builder = Lowering::new(&globals, &program.name.text, &program.doc);
        let over = program.over.as_ref().and_then(|over| over.names.first());
        let called = over.map_or(Some(&stencils), |mesh| inner.get(&mesh.text)).map_or(&[][..], Vec::as_slice);
        let ir = builder.program(program, called, &meshes);
        lowered.add_program(builder, ir::Program { file: FreeText::new(name), ..ir }, &mut told);
    }
    let subjects: Vec<Stencil> = stencils.into_iter().chain(lowered.programs.iter().map(ir::Program::facade)).collect();
    let of_stencils = lowered.mesh_stencils.iter().filter_map(|own| test::OverMesh::of_stencil(own, &meshes));
    let of_programs = lowered.mesh_programs.iter().filter_map(|own| test::OverMesh::of_program(own, &meshes));
    let over_meshes: Vec<test::OverMesh> = of_stencils.chain(of_programs).collect();
    let mut tests = test::Tests::new(&globals, &subjects, &over_meshes, &mut told);
    for item in &file.items {
        if let ast::Item::Test(test) = item {
            match tests.test(test) {
                Some(test::Tested::OnGrid(own)) => lowered.tests.push(*own),
                Some(test::Tested::OverMesh(own)) => lowered.mesh_tests.push(*own),
                None => {}
            }
        }
        if tests.is_lost() {
            break;
        }
    }
    lowered.tell(told, &globals);
    lowered
}
