//! Tests: what they give and expect becomes stencils (see [`ir::Test`]), so kinds, messages and meaning are those of the
//! language.

mod made;
mod mesh;
pub(super) mod parts;
mod subject;

use super::declare::new_field;
use super::file::Told;
use super::mesh::Over;
use super::report::has_error;
use super::scope::{Binding, Global, Globals, Symbol};
use super::{Found, Lowering};
use crate::analysis::values::values;
use crate::ast::{self, TestPart};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::grid::Grid;
use crate::ir::mesh::{How, Write};
use crate::ir::{
    self, Body, COORDINATES, Expectation, Field, FieldId, Kind, Levels, MeshTest, Node, Place, Role, Stencil, Store,
    Stored, Test, Verify,
};
use crate::source::Span;
pub use mesh::Subject as OverMesh;
use std::collections::{BTreeMap, HashSet};
use subject::name_of;

/// The grid of a test that names none.
const GRID: Grid = Grid::rows(12, 10, 6);

/// The most cells of a test's grid: every test runs whenever the file is tested.
const MOST_CELLS: u128 = 1 << 20;

/// The most tests of a file.
const TESTS: usize = 1_000;

/// The most expectations of one test.
const EXPECTATIONS: usize = 100;

/// What the names of coordinates and extents stand for in a test.
#[derive(Clone)]
pub enum Coordinates {
    /// Of a cell of a grid: the fields of i and j.
    Cell { fields: [FieldId; 2], grid: Grid },
    /// Of an element of a mesh: the fields of its number, and of how many there are.
    Element { fields: [FieldId; 2] },
}

/// A test, by what it runs on.
pub enum Tested {
    /// On a grid.
    OnGrid(Box<Test>),
    /// Over a mesh.
    OverMesh(Box<MeshTest>),
}

/// Lowers the tests of a file.
pub struct Tests<'a> {
    globals: &'a Globals<'a>,
    /// The stencils that are right; of programs that are right what is given to them and taken from them.
    stencils: &'a [Stencil],
    /// The same of what runs over meshes.
    over_meshes: &'a [OverMesh<'a>],
    titles: BTreeMap<&'a str, Span>,
    /// How many tests were looked at.
    count: usize,
    told: &'a mut Told,
}

/// A test taken apart.
struct Outline<'a> {
    /// Before the stencil: made of coordinates and parameters alone.
    before: Vec<&'a ast::Let>,
    subject: &'a ast::TestedCall,
    /// After it, in order.
    after: Vec<&'a TestPart>,
}

impl<'a> Tests<'a> {
    pub fn new(
        globals: &'a Globals<'a>,
        stencils: &'a [Stencil],
        over_meshes: &'a [OverMesh<'a>],
        told: &'a mut Told,
    ) -> Self {
        Self { globals, stencils, over_meshes, titles: BTreeMap::new(), count: 0, told }
    }

    fn report<T>(&mut self, diagnostic: Diagnostic) -> Found<T> {
        self.told.diagnostics.push(diagnostic);
        None
    }

    /// Whether the tests that follow are not looked at.
    pub fn is_lost(&self) -> bool {
        self.count > TESTS
    }

    /// A test, unless something is wrong with it.
    pub fn test(&mut self, test: &'a ast::Test) -> Option<Tested> {
        self.count += 1;
        if self.is_lost() {
            let found = wrong(test.title.span, format!("a file has at most {TESTS} tests"), "one too many");
            return self.report(found.help("a test may expect several things: write an `expect` for each"));
        }
        let before = self.told.diagnostics.len();
        self.title(&test.title);
        let outline = self.outline(test)?;
        let subjects = self.over_meshes;
        if let Some(subject) = subjects.iter().find(|own| own.name() == outline.subject.name.text) {
            return self.over_mesh(test, &outline, subject).map(|own| Tested::OverMesh(Box::new(own)));
        }
        let grid = self.grid(test);
        let stencil = self.find(&outline.subject.name)?;
        self.refuse_mesh(test, &stencil.name);
        let grid = grid?;

        let mut inputs = self.builder(grid, &test.title.text);
        inputs.give(&outline, stencil);
        let inputs = self.finished(inputs);

        let mut checks = self.builder(grid, &test.title.text);
        let expectations = checks.check(&outline, stencil);
        let checks = self.finished(checks);
        self.warn_unused(&outline, &inputs.1, &checks.1);

        if has_error(&self.told.diagnostics[before..]) {
            return None;
        }
        let too_many = |own: &&Stencil| values(own, "this test", test.title.span);
        if let Some(found) = [&inputs.0, &checks.0].iter().find_map(too_many) {
            return self.report(found.help("expect less at once: a file may have several tests"));
        }
        let (inputs, checks) = (inputs.0.verified("lowering"), checks.0.verified("lowering"));
        Some(Tested::OnGrid(Box::new(Test {
            title: test.title.text.clone(),
            span: test.title.span,
            stencil: stencil.name.clone(),
            stencil_span: outline.subject.name.span,
            grid,
            inputs,
            checks,
            expectations,
        })))
    }

    fn title(&mut self, title: &'a ast::Name) {
        if title.text.is_empty() {
            let found = Diagnostic::error(title.span, "this test has no title");
            self.told.diagnostics.push(found.label("say what it is about"));
        } else if let Some(before) = self.titles.insert(&title.text, title.span) {
            let found = Diagnostic::error(title.span, format!("two tests are called \"{}\"", title.text));
            let found = found.label("called so again here").note(before, "called so here first");
            self.told.diagnostics.push(found.help("give each a title of its own, so that one can tell them apart"));
        }
    }

    /// The extents that the test gives, or the usual ones.
    fn grid(&mut self, test: &'a ast::Test) -> Option<Grid> {
        let mut grids = test
            .parts
            .iter()
            .filter_map(|part| if let TestPart::Grid(extents, span) = part { Some((extents, *span)) } else { None });
        let Some((extents, span)) = grids.next() else { return Some(GRID) };
        if let Some((_, again)) = grids.next() {
            let found = wrong(again, "this test has two grids", "a second one").note(span, "the first");
            return self.report(found.help("write a test for each"));
        }
        let mut lowering = Lowering::new(self.globals, "", "");
        let extents: Vec<Found<usize>> = extents.iter().map(|&extent| lowering.extent(extent)).collect();
        self.told.take(&mut lowering);
        let extents = extents.into_iter().collect::<Option<Vec<usize>>>()?;
        let (ni, nj, nk) = match extents.as_slice() {
            [ni, nj, nk] => (*ni, *nj, *nk),
            // As with --grid: two numbers are a grid of one level.
            [ni, nj] => (*ni, *nj, 1),
            _ => {
                let found = Diagnostic::error(span, "a grid is three numbers of cells along i, j and k");
                let found = found.label(format!("{} given", extents.len()));
                return self.report(found.help("write it as in `grid(12, 10, 6)`; the halo is included"));
            }
        };
        if ni as u128 * nj as u128 * nk as u128 > MOST_CELLS || nk > crate::analysis::LEVELS {
            let found = Diagnostic::error(span, format!("the grid {ni}x{nj}x{nk} is too large for a test"));
            let found = found.label(format!("at most {MOST_CELLS} cells"));
            return self.report(found.help("a small grid shows the same, and sooner"));
        }
        Some(Grid::rows(ni, nj, nk))
    }

    /// The one stencil, what stands before and what stands after it.
    fn outline(&mut self, test: &'a ast::Test) -> Option<Outline<'a>> {
        let (mut subject, mut before, mut after) = (None::<&'a ast::TestedCall>, Vec::new(), Vec::new());
        let mut expects = 0;
        for part in &test.parts {
            match (part, subject) {
                (TestPart::Grid(..) | TestPart::Made(..) | TestPart::Depth(..) | TestPart::Zone(..), _) => {}
                (TestPart::Let(binding), None) => before.push(binding),
                (TestPart::Let(_), Some(_)) => after.push(part),
                (TestPart::TestedCall(own), None) => subject = Some(own),
                (TestPart::TestedCall(own), Some(first)) => {
                    let found = wrong(own.name.span, "this test runs two stencils", "a second one");
                    return self.report(found.note(first.name.span, "the first").help("write a test for each"));
                }
                (TestPart::Expect(_, span), Some(_)) if expects == EXPECTATIONS => {
                    let message = format!("this test has more than {EXPECTATIONS} expectations");
                    let found = wrong(*span, message, "one too many");
                    return self.report(found.help("write several tests, each about one thing"));
                }
                (TestPart::Expect(..), Some(_)) => {
                    expects += 1;
                    after.push(part);
                }
                (TestPart::Expect(_, span), None) => {
                    let found = Diagnostic::error(*span, "nothing was computed yet");
                    let found = found.label("an `expect` stands after the stencil that it is about");
                    let help = "first the stencil and its inputs, as in `laplap { phi = 2*i }`, then `expect`";
                    return self.report(found.help(help));
                }
            }
        }
        let Some(subject) = subject else {
            let found = wrong(test.title.span, "this test runs no stencil", "tests nothing");
            return self.report(found.help("name one and give its inputs, as in `laplap { phi = 2*i + 3*j }`"));
        };
        if expects == 0 {
            let found = Diagnostic::error(test.title.span, "this test expects nothing").label("cannot fail");
            let help = "say what has to be true on every computed cell, as in `expect abs(res) < 1e-12`";
            return self.report(found.help(help));
        }
        Some(Outline { before, subject, after })
    }

    /// The stencil that a test names; nothing, without a word, if that stencil itself has errors.
    fn find(&mut self, name: &ast::Name) -> Option<&'a Stencil> {
        if let Some(stencil) = self.stencils.iter().find(|stencil| stencil.name == name.text) {
            return Some(stencil);
        }
        let declared = self.globals.file.stencils();
        if declared.clone().any(|own| own.name.text == name.text) {
            // What is wrong with it was told.
            return None;
        }
        let names: Vec<&str> = declared.map(|own| own.name.text.as_str()).collect();
        let other = match self.globals.find(&name.text) {
            Some(Global::Function(_)) => Some("a function"),
            Some(Global::Constant(_)) => Some("a constant"),
            Some(Global::Mesh) => Some("a mesh"),
            Some(Global::Type(_)) => Some("a type"),
            Some(Global::Param(..) | Global::Stencil | Global::Program) | None => None,
        };
        let diagnostic = Diagnostic::error(name.span, format!("unknown stencil `{}`", name.text));
        let list = names.join(", ");
        self.report(match (other, guess(&name.text, names)) {
            (Some(what), _) => diagnostic.label(format!("this is {what}; a test runs a stencil of this file")),
            (None, Some(guess)) => diagnostic.label(format!("did you mean `{guess}`?")),
            (None, None) => diagnostic.label("not in this file").help(format!(
                "a test runs a stencil of its file; here are {}",
                if list.is_empty() { "none" } else { &list }
            )),
        })
    }

    /// What writes down one of a test's own stencils.
    fn builder(&self, grid: Grid, title: &str) -> Lowering<'a> {
        let mut lowering = Lowering::new(self.globals, title, "");
        let place = Place { levels: Levels::None, ..Place::CELLS };
        let field = |name| new_field(name, Role::In, place, Stored::Int, Span::default());
        let fields = COORDINATES.map(|name| lowering.stencil.fields.add(field(name)));
        lowering.coordinates = Some(Coordinates::Cell { fields, grid });
        lowering
    }

    /// What was written down, and the places of names that it does not use.
    fn finished(&mut self, mut lowering: Lowering<'a>) -> (Stencil, HashSet<Span>) {
        self.told.take(&mut lowering);
        let unused = lowering.scope.unused().into_iter().map(|Symbol { span, .. }| span).collect();
        (lowering.stencil, unused)
    }

    /// Warns of lets that neither an input nor an expectation uses.
    fn warn_unused(&mut self, outline: &Outline<'a>, inputs: &HashSet<Span>, checks: &HashSet<Span>) {
        let before = outline.before.iter().flat_map(|binding| &binding.names);
        let after = outline.after.iter().flat_map(|part| match part {
            TestPart::Let(binding) => &binding.names[..],
            TestPart::Expect(..) | TestPart::Grid(..) | TestPart::Made(..) => &[],
            TestPart::Depth(..) | TestPart::Zone(..) | TestPart::TestedCall(_) => &[],
        });
        let unused = before.filter(|name| inputs.contains(&name.span)).chain(after);
        for name in unused.filter(|name| checks.contains(&name.span)) {
            self.told.diagnostics.push(Diagnostic::unused(name.span, "the value", &name.text));
        }
    }
}

impl<'a> Lowering<'a> {
    /// In a test: a coordinate of the cell, or an extent of the grid.
    ///
    /// Functions and constants are the file's, so they see of these only what a stencil sees.
    pub(super) fn coordinate(&mut self, name: &str, span: Span) -> Option<Found<super::value::Nodes>> {
        let read = |field: &FieldId| Node::Read { field: *field, path: ir::Path::default(), part: 0, by: None };
        let whole = |extent: usize| Node::Int(i32::try_from(extent).unwrap_or(i32::MAX));
        let own = self.calls.is_empty() && self.constants.open.is_empty();
        let node = match self.coordinates.as_ref()? {
            Coordinates::Cell { fields: [i, j], grid } => match name {
                "nk" if self.constants.open.is_empty() => whole(grid.nk),
                "i" if own => read(i),
                "j" if own => read(j),
                "ni" if own => whole(grid.ni),
                "nj" if own => whole(grid.nj),
                _ => return None,
            },
            // Levels are those of any stencil over a mesh.
            Coordinates::Element { fields: [i, ni] } => match name {
                "i" if own => read(i),
                "ni" if own => read(ni),
                _ => return None,
            },
        };
        Some(self.one(node, Kind::Int, span))
    }

    /// An extent of a grid.
    fn extent(&mut self, expr: ast::ExprId) -> Found<usize> {
        let span = self.span(expr);
        let extent = self.whole_constant(expr)?;
        match usize::try_from(extent) {
            Ok(extent) if extent > 0 => Some(extent),
            _ => self.report(Diagnostic::error(span, "every extent of a grid is at least 1").label(extent.to_string())),
        }
    }

    /// Adds an output.
    fn add_output(&mut self, field: Field, body: Body) -> FieldId {
        let field = self.stencil.fields.add(field);
        self.stencil.stores.push(Store { field, body, sweep: None });
        if let Some(over) = &mut self.over {
            over.writes.push(Write { part: 0, how: How::Assign });
        }
        field
    }

    /// Adds an output on every cell, or on every element of the set.
    fn add_value(&mut self, name: &str, body: Body) -> FieldId {
        let place = self.over.as_ref().map_or(Place::CELLS, Over::place);
        self.add_output(new_field(name, Role::Out, place, Stored::of(body.kind()), Span::default()), body)
    }

    /// The stencil that computes what the test expects.
    fn check(&mut self, outline: &Outline<'a>, stencil: &Stencil) -> Vec<Expectation> {
        self.declare_params_of(stencil);
        for (_, own) in stencil.own_fields() {
            // Afterwards everything can be read.
            let id = self.stencil.fields.add(Field { role: Role::In, range: None, ..own.clone() });
            self.define(&name_of(&own.name, own.span), Binding::Field(id));
        }
        outline.before.iter().for_each(|binding| self.define_let(binding));
        let mut expectations = Vec::new();
        for part in &outline.after {
            match part {
                TestPart::Let(binding) => self.define_let(binding),
                TestPart::Expect(truth, span) => {
                    expectations.extend(self.expectation(*truth, *span, expectations.len()));
                }
                TestPart::Grid(..) | TestPart::Made(..) | TestPart::Depth(..) | TestPart::Zone(..) => {}
                TestPart::TestedCall(_) => {}
            }
        }
        self.check_params(stencil);
        expectations
    }

    fn expectation(&mut self, expr: ast::ExprId, span: Span, number: usize) -> Found<Expectation> {
        let needed = "an `expect` takes a truth value";
        let truth = self.body(|own| {
            let node = own.scalar(expr)?;
            own.truth(node, own.span(expr), needed, "abs(res) < 1e-12")
        })?;
        let truth = self.add_value(&format!("expectation {number}"), truth);
        let mut parts = Vec::new();
        for part in parts::worth_a_look(self, expr) {
            // A part may mean nothing by itself, as a sum's counter outside of the sum.
            let told = self.reports.diagnostics.len();
            let body = self.body(|own| own.scalar(part));
            self.reports.diagnostics.truncate(told);
            if let Some(body) = body {
                let field = self.add_value(&format!("expectation {number}, part {}", parts.len()), body);
                parts.push((self.span(part), field));
            }
        }
        Some(Expectation { span, truth, parts })
    }
}
