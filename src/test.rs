//! `stencilc test`: runs the tests that stand in stencil files, on grids and over meshes.

use crate::args;
use crate::audience::Audience;
use crate::input::{self, Input};
use crate::terminal;
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;
use std::path::PathBuf;
use stencilc_compiler::diagnostic::Diagnostic;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{MeshTest, Precision, Program, Test};
use stencilc_compiler::source::{Source, Span};
use stencilc_runtime::mesh::program::test as over_mesh;
use stencilc_runtime::mesh::{self, Mesh};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::test::{Failure, First, Options, Report, interpreted, interpreted_program, run};
use stencilc_runtime::{Error, Result};

/// The longest part of an expectation that is written beside its value.
const SHORT: usize = 40;

/// Arguments of `test`.
#[derive(clap::Args)]
#[command(after_help = "A test stands in the file beside its stencil:\n\n    \
    test \"a linear field has no Laplacian\" {\n        \
        laplap { phi = 2*i + 3*j }\n        \
        expect abs(res) < 1e-12\n    }\n\n\
    Over a mesh it says which, or --mesh does:\n\n    \
    test \"a still fluid stays still\" {\n        \
        mesh triangles(8, 6)\n        \
        flux { u = position.0 }\n        \
        expect rate == 0\n    }\n\n\
    Examples:\n  \
    stencilc test smooth.stn\n  \
    stencilc test stencils/*.stn --filter linear --precision f32\n  \
    stencilc test flow.stn --mesh wing.npz")]
pub struct Args {
    /// Stencil files, or names of stencils that come along
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// Only tests with these words in their title
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
    /// The mesh of tests over meshes that name none
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    mesh: Option<PathBuf>,
    /// What `real` is
    #[arg(long, value_name = "P", value_parser = args::precision(), default_value = Precision::default().name())]
    precision: Precision,
}

/// One test, and what came of it.
#[derive(Serialize)]
struct Case {
    file: String,
    title: String,
    stencil: String,
    line: usize,
    column: usize,
    precision: Precision,
    #[serde(flatten)]
    on: On,
    status: Status,
    /// What the stencil computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
    /// Why it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    failures: Vec<Failed>,
}

/// What a test runs on.
#[derive(Serialize)]
#[serde(untagged)]
enum On {
    Grid {
        grid: Grid,
    },
    Mesh {
        /// How it was made, or the file; nothing where none was given.
        mesh: Option<String>,
        levels: usize,
    },
}

/// A test, by what it runs on.
#[derive(Clone, Copy)]
enum Any<'a> {
    OnGrid(&'a Test),
    OverMesh(&'a MeshTest),
}

impl Any<'_> {
    fn title(&self) -> &str {
        match self {
            Any::OnGrid(test) => &test.title,
            Any::OverMesh(test) => &test.title,
        }
    }

    fn span(&self) -> Span {
        match self {
            Any::OnGrid(test) => test.span,
            Any::OverMesh(test) => test.span,
        }
    }

    /// What is tested, and where the test names it.
    fn subject(&self) -> (&str, Span) {
        match self {
            Any::OnGrid(test) => (&test.stencil, test.stencil_span),
            Any::OverMesh(test) => (&test.subject, test.subject_span),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Passed,
    Failed,
}

/// An expectation that does not hold.
#[derive(Serialize)]
struct Failed {
    expectation: String,
    line: usize,
    column: usize,
    /// On how many cells it was looked at, and on how many of them it is false.
    cells: usize,
    failed: usize,
    /// The first of these; nothing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Cell>,
    values: Vec<Part>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Cell {
    OfGrid {
        i: usize,
        j: usize,
        k: usize,
    },
    OfMesh {
        set: String,
        element: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        k: Option<usize>,
    },
}

/// A part of an expectation, and its value at the first cell.
#[derive(Serialize)]
struct Part {
    text: String,
    value: String,
}

/// Runs tests.
///
/// # Errors
/// One fails, there is none, or something is wrong with a file.
pub fn test(args: &Args, json: bool) -> Result<()> {
    let inputs = args.files.iter().map(|file| input::load(file)).collect::<Result<Vec<Input>>>()?;
    tested(args, &inputs, None, &mut Audience::of_stdout(json))
}

/// Runs the tests of texts that were read: all that are asked for, or of these those of one stencil or program.
///
/// # Errors
/// As [`test`].
pub fn tested(args: &Args, inputs: &[Input], of: Option<&str>, audience: &mut Audience) -> Result<()> {
    let chosen = choose(args, inputs, of)?;
    let mesh = given_mesh(args, &chosen)?;
    let mut cases = Vec::new();
    for (input, test) in chosen {
        let (case, diagnostics) = run_one(args, input, test, mesh.as_ref())?;
        let word = if case.status == Status::Passed { "passed" } else { "failed" };
        audience.text(|| format!("{word}  {}: {}\n", case.stencil, case.title))?;
        terminal::diagnostics(&diagnostics, &input.source);
        cases.push(case);
    }
    let failed = cases.iter().filter(|case| case.status == Status::Failed).count();
    let passed = cases.len() - failed;
    audience.data(|| json!({ "tests": cases, "totals": { "passed": passed, "failed": failed } }))?;
    let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    audience.text(|| format!("in all: {passed} passed{failures}\n"))?;
    match failed {
        0 => Ok(()),
        failed => Err(Error::check(format!("{failed} of {} failed", terminal::count(cases.len(), "test")))),
    }
}

/// The mesh of the call, which some test runs over.
fn given_mesh(args: &Args, chosen: &[(&Input, Any)]) -> Result<Option<Mesh>> {
    let Some(path) = &args.mesh else { return Ok(None) };
    let takes_it = |test: &Any| matches!(test, Any::OverMesh(own) if own.made.is_none());
    if !chosen.iter().any(|(_, test)| takes_it(test)) {
        let over_meshes = chosen.iter().any(|(_, test)| matches!(test, Any::OverMesh(_)));
        let error = Error::call("no test runs over the mesh of --mesh");
        return Err(error.help(if over_meshes {
            "each names a mesh of its own; leave --mesh out, or leave `mesh ...` out of a test"
        } else {
            "they run on grids; leave --mesh out"
        }));
    }
    mesh::load(path).map(Some)
}

/// The tests that are asked for, of a stencil or program if one is named, in the order of the text: at least one.
fn choose<'a>(args: &Args, inputs: &'a [Input], of: Option<&str>) -> Result<Vec<(&'a Input, Any<'a>)>> {
    let mut all: Vec<(&Input, Any)> = Vec::new();
    for input in inputs {
        let mut own: Vec<Any> = input.tests.iter().map(Any::OnGrid).collect();
        own.extend(input.mesh_tests.iter().map(Any::OverMesh));
        own.sort_by_key(|test| test.span().start);
        let is_of = |test: &Any| of.is_none_or(|name| test.subject().0 == name);
        all.extend(own.into_iter().filter(is_of).map(|test| (input, test)));
    }
    if all.is_empty() {
        let of = of.map_or(String::new(), |name| format!("of `{name}` "));
        return Err(Error::input(format!("there is no test {of}in `{}`", args.files.join("`, `"))).help(
            "write one beside the stencil: `test \"...\" { laplap { phi = 2*i }; expect abs(res) < 1e-12 }`; \
             `stencilc test --help` shows more",
        ));
    }
    for input in inputs.iter().filter(|input| input.tests.is_empty() && input.mesh_tests.is_empty()) {
        terminal::note(&format!("there is no test in `{}`", input.source.name));
    }
    let Some(words) = &args.filter else { return Ok(all) };
    let contains = |test: &Any| test.title().to_lowercase().contains(&words.to_lowercase());
    let chosen: Vec<_> = all.iter().copied().filter(|(_, test)| contains(test)).collect();
    if chosen.is_empty() {
        let titles: Vec<String> = all.iter().map(|(_, test)| format!("\"{}\"", test.title())).collect();
        return Err(
            Error::call(format!("no test has `{words}` in its title")).help(format!("there are {}", titles.join(", ")))
        );
    }
    Ok(chosen)
}

/// Runs a test; gives what came of it, and what there is to show.
fn run_one(args: &Args, input: &Input, test: Any, mesh: Option<&Mesh>) -> Result<(Case, Vec<Diagnostic>)> {
    let source = &input.source;
    let (line, column) = source.position(test.span().start);
    let (subject, subject_span) = test.subject();
    let on = match test {
        Any::OnGrid(own) => On::Grid { grid: own.grid },
        Any::OverMesh(own) => On::Mesh {
            mesh: own.made.as_ref().map(ToString::to_string).or_else(|| mesh.map(|mesh| mesh.origin.clone())),
            levels: own.levels,
        },
    };
    let mut case = Case {
        file: source.name.clone(),
        title: test.title().to_owned(),
        stencil: subject.to_owned(),
        line,
        column,
        precision: args.precision,
        on,
        status: Status::Failed,
        region: None,
        error: None,
        failures: Vec::new(),
    };
    let ran = match test {
        Any::OnGrid(own) => on_grid(args, input, own)?.map(|Report { region, failures }| (Some(region), failures)),
        Any::OverMesh(own) => on_mesh(args, input, own, mesh)?.map(|own| (None, own.failures)),
    };
    let diagnostics = match ran {
        Ok((region, failures)) => {
            case.region = region;
            case.failures = failures.iter().map(|failure| failed(failure, source)).collect();
            failures.iter().map(|failure| told(failure, test.title(), source)).collect()
        }
        Err(error) => {
            let mut diagnostic = Diagnostic::error(subject_span, format!("\"{}\": {}", test.title(), error.message));
            diagnostic.help.extend(error.help.clone());
            case.error = Some(error.message);
            vec![diagnostic.label("cannot be run")]
        }
    };
    if diagnostics.is_empty() {
        case.status = Status::Passed;
    }
    Ok((case, diagnostics))
}

/// Runs a test on a grid; inside, why it could not be run.
fn on_grid(args: &Args, input: &Input, test: &Test) -> Result<Result<Report>> {
    let program = input.programs.iter().find(|program| program.name == test.stencil);
    let facade = program.map(Program::facade);
    let stencil = match &facade {
        Some(facade) => facade,
        None => input.stencil(Some(&test.stencil))?,
    };
    let compute = |problem: &mut Problem| match program {
        Some(program) => interpreted_program(program, problem, true),
        None => interpreted(problem),
    };
    let options = Options { precision: args.precision, contract: true, compute: &compute };
    Ok(run(stencil, test, &options))
}

/// Runs a test over a mesh; inside, why it could not be run.
fn on_mesh(args: &Args, input: &Input, test: &MeshTest, mesh: Option<&Mesh>) -> Result<Result<over_mesh::Report>> {
    let is_program = input.mesh_programs.iter().any(|own| own.program.name == test.subject);
    let name = Some(test.subject.as_str());
    let (program, stencil) = if is_program { (name, None) } else { (None, name) };
    let Some(program) = input.over_mesh(program, stencil)? else {
        return Err(Error::check(format!("`{}` runs over no mesh", test.subject)));
    };
    let mesh = match (&test.made, mesh) {
        (Some(made), _) => over_mesh::mesh_of(made),
        (None, Some(mesh)) => Ok(mesh.clone()),
        (None, None) => Err(Error::call(format!("it names no mesh, and `{}` runs over one", test.subject))
            .help("name one in the test, as in `mesh triangles(8, 6)`, or give a file: --mesh FILE")),
    };
    Ok(mesh.and_then(|mesh| over_mesh::run(&program, test, mesh, args.precision)))
}

/// A failure as a message with the values where they are written.
fn told(failure: &Failure, title: &str, source: &Source) -> Diagnostic {
    let Failure { span, cells, failed, first, .. } = failure;
    if *cells == 0 {
        let found = Diagnostic::error(*span, format!("\"{title}\": this is looked at on no {}", what(first)));
        let found = found.label("what it reads was not computed, wherever it starts");
        return found.help(match first {
            First::Cell(_) => "give a larger grid, as in `grid(24, 20, 6)`",
            First::Element { .. } => "give a larger mesh, or more levels, as in `levels(8)`",
        });
    }
    let all = terminal::count(*cells, what(first));
    let what = format!("\"{title}\": {failed} of {all} {} not as expected", are(*failed));
    let place = match first {
        First::Cell([i, j, k]) => format!("i={i}, j={j}, k={k}"),
        First::Element { set, element, level: None } => format!("{set} {element}"),
        First::Element { set, element, level: Some(level) } => format!("{set} {element}, k={level}"),
    };
    let mut diagnostic = Diagnostic::error(*span, what).label(format!("false first at {place}"));
    for (span, value) in once(failure, source) {
        // What is short is easier to read when it stands beside its value.
        let text = source.slice(span);
        let is_short = text.len() <= SHORT && !text.contains('\n');
        diagnostic = diagnostic.note(span, if is_short { format!("{text} = {value}") } else { format!("= {value}") });
    }
    diagnostic
}

/// On what an expectation is looked at.
fn what(first: &First) -> &'static str {
    match first {
        First::Cell(_) => "cell",
        First::Element { .. } => "element",
    }
}

fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// The values, each text once.
fn once(failure: &Failure, source: &Source) -> Vec<(Span, String)> {
    let mut seen = HashSet::new();
    failure.values.iter().filter(|(span, _)| seen.insert(source.slice(*span))).cloned().collect()
}

/// The same as JSON.
fn failed(failure: &Failure, source: &Source) -> Failed {
    let (line, column) = source.position(failure.span.start);
    let first = match failure.first.clone() {
        First::Cell([i, j, k]) => Cell::OfGrid { i, j, k },
        First::Element { set, element, level } => Cell::OfMesh { set, element, k: level },
    };
    let part = |(span, value)| Part { text: source.slice(span).to_owned(), value };
    Failed {
        expectation: source.slice(failure.span).trim_start_matches("expect").trim_start().to_owned(),
        line,
        column,
        cells: failure.cells,
        failed: failure.failed,
        first: (failure.failed > 0).then_some(first),
        values: once(failure, source).into_iter().map(part).collect(),
    }
}
