//! The mesh that a test names, and its levels.

use super::super::{Found, Lowering};
use super::mesh::Subject;
use super::{MOST_CELLS, Tests};
use crate::analysis::LEVELS;
use crate::ast::{self, TestPart};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::{Made, MadeKind};

/// The levels of a test that does not say how many.
const DEPTH: usize = 6;

impl<'a> Tests<'a> {
    /// The mesh that the test names; nothing inside if it names none.
    pub(super) fn made(&mut self, test: &'a ast::Test, subject: &Subject) -> Found<Option<Made>> {
        let mut own = None;
        for part in &test.parts {
            match part {
                TestPart::Grid(_, span) => {
                    let found = wrong(*span, format!("`{}` runs over a mesh", subject.name()), "this is a grid");
                    return self.report(found.help("say over which mesh: `mesh triangles(8, 6)`"));
                }
                TestPart::Made(name, sizes, span) => match own.replace((name, sizes, *span)) {
                    None => {}
                    Some((_, _, first)) => {
                        let found = wrong(*span, "this test has two meshes", "a second one").note(first, "the first");
                        return self.report(found.help("write a test for each"));
                    }
                },
                TestPart::Depth(..) | TestPart::Zone(..) | TestPart::TestedCall(_) => {}
                TestPart::Let(_) | TestPart::Expect(..) => {}
            }
        }
        let Some((name, sizes, span)) = own else { return Some(None) };
        let Some(kind) = MadeKind::ALL.into_iter().find(|kind| kind.name() == name.text) else {
            let kinds = MadeKind::ALL.map(MadeKind::name);
            let found = Diagnostic::error(name.span, format!("no mesh is made that is called `{}`", name.text));
            return self.report(found.meant(guess(&name.text, kinds), |found| {
                found
                    .label(format!("there are {}", kinds.join(", ")))
                    .help("a test that names no mesh runs over that of the call: `stencilc test FILE --mesh MESH.npz`")
            }));
        };
        let mut lowering = Lowering::new(self.globals, "", "");
        let numbers: Vec<Found<usize>> = sizes.iter().map(|&size| lowering.size_of_mesh(size)).collect();
        self.told.take(&mut lowering);
        let numbers = numbers.into_iter().collect::<Option<Vec<usize>>>()?;
        let wanted = kind.sizes();
        if numbers.len() != wanted.len() {
            let found = Diagnostic::error(span, format!("`{}` takes {} numbers", kind.name(), wanted.len()));
            return self.report(found.label(format!("{} given", numbers.len())).help(wanted.join(", ")));
        }
        if let Some(at) = (0..numbers.len()).find(|&at| numbers[at] == 0 && !kind.may_be_zero(at)) {
            let found =
                Diagnostic::error(self.globals.file.exprs.span(sizes[at]), "a mesh has at least one cell each way");
            return self.report(found.label(format!("no {}", wanted[at])));
        }
        let made = Made { kind, sizes: numbers };
        if made.cells().is_none_or(|cells| cells > MOST_CELLS) {
            let found = Diagnostic::error(span, format!("the mesh {made} is too large for a test"));
            let found = found.label(format!("at most {MOST_CELLS} cells"));
            return self.report(found.help("a small mesh shows the same, and sooner"));
        }
        Some(Some(made))
    }

    /// How many levels there are.
    pub(super) fn levels(&mut self, test: &'a ast::Test, subject: &Subject) -> Found<usize> {
        let mesh = subject.mesh();
        let mut own = test
            .parts
            .iter()
            .filter_map(|part| if let TestPart::Depth(number, span) = part { Some((*number, *span)) } else { None });
        let Some((number, span)) = own.next() else { return Some(if mesh.levels { DEPTH } else { 1 }) };
        if let Some((_, again)) = own.next() {
            return self.report(wrong(again, "levels are given twice", "again here").note(span, "first here"));
        }
        if !mesh.levels {
            let found = wrong(span, format!("the mesh `{}` has no levels", mesh.name), "leave this out");
            return self.report(found.note(mesh.span, "it does not say `levels k`"));
        }
        let mut lowering = Lowering::new(self.globals, "", "");
        let levels = lowering.extent(number);
        self.told.take(&mut lowering);
        match levels? {
            levels if levels <= LEVELS => Some(levels),
            levels => self.report(wrong(span, format!("{levels} levels are too many"), format!("at most {LEVELS}"))),
        }
    }

    /// Refuses what is said of a mesh in a test on a grid.
    pub(super) fn refuse_mesh(&mut self, test: &ast::Test, name: &str) {
        for part in &test.parts {
            let (span, help) = match part {
                TestPart::Made(.., span) => (*span, "give the extents of the grid: `grid(12, 10, 6)`"),
                TestPart::Zone(.., span) => (*span, "a grid has no zones: leave this out"),
                TestPart::Depth(_, span) => (*span, "levels are the third number of a grid: `grid(12, 10, 6)`"),
                TestPart::Grid(..) | TestPart::TestedCall(_) | TestPart::Let(_) | TestPart::Expect(..) => continue,
            };
            let found = wrong(span, format!("`{name}` runs on a grid"), "this is said of a mesh");
            self.told.diagnostics.push(found.help(help));
        }
    }
}

impl Lowering<'_> {
    /// How large a made mesh is, one way.
    fn size_of_mesh(&mut self, expr: ast::ExprId) -> Found<usize> {
        let span = self.span(expr);
        let size = self.whole_constant(expr)?;
        match usize::try_from(size) {
            Ok(size) => Some(size),
            Err(_) => self.report(Diagnostic::error(span, "a mesh is no smaller than nothing").label(size.to_string())),
        }
    }
}
