//! `stencilc test`: runs the tests that stand in stencil files.

use crate::args;
use crate::input::{self, Input};
use crate::terminal;
use serde::Serialize;
use serde_json::json;
use std::collections::HashSet;
use stencilc_compiler::diagnostic::Diagnostic;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{Precision, Program, Test};
use stencilc_compiler::source::{Source, Span};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::test::{Failure, Options, Report, interpreted, interpreted_program, run};
use stencilc_runtime::{Error, Result};

/// The longest part of an expectation that is written beside its value.
const SHORT: usize = 40;

/// Arguments of `test`.
#[derive(clap::Args)]
#[command(after_help = "A test stands in the file beside its stencil:\n\n    \
    test \"a linear field has no Laplacian\" {\n        \
        laplap { phi = 2*i + 3*j }\n        \
        expect abs(res) < 1e-12\n    }\n\n\
    Examples:\n  \
    stencilc test smooth.stn\n  \
    stencilc test stencils/*.stn --filter linear --precision f32")]
pub struct Args {
    /// Stencil files, or names of stencils that come along
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// Only tests with these words in their title
    #[arg(long, value_name = "WORDS")]
    filter: Option<String>,
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
    grid: Grid,
    status: Status,
    /// What the stencil computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
    /// Why it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    failures: Vec<Failed>,
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
struct Cell {
    i: usize,
    j: usize,
    k: usize,
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
    let chosen = choose(args, &inputs)?;
    let mut cases = Vec::new();
    for (input, test) in chosen {
        let (case, diagnostics) = run_one(args, input, test)?;
        if !json {
            let word = if case.status == Status::Passed { "passed" } else { "failed" };
            terminal::print(&format!("{word}  {}: {}\n", case.stencil, case.title))?;
        }
        terminal::diagnostics(&diagnostics, &input.source);
        cases.push(case);
    }
    let failed = cases.iter().filter(|case| case.status == Status::Failed).count();
    let passed = cases.len() - failed;
    if json {
        terminal::json(&json!({ "tests": cases, "totals": { "passed": passed, "failed": failed } }))?;
    } else {
        let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        terminal::print(&format!("in all: {passed} passed{failures}\n"))?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(Error::check(format!("{failed} of {} failed", terminal::count(cases.len(), "test")))),
    }
}

/// The tests that are asked for: at least one.
fn choose<'a>(args: &Args, inputs: &'a [Input]) -> Result<Vec<(&'a Input, &'a Test)>> {
    let all: Vec<(&Input, &Test)> =
        inputs.iter().flat_map(|input| input.tests.iter().map(move |test| (input, test))).collect();
    if all.is_empty() {
        inputs.iter().try_for_each(|input| input.refuse_meshes(None))?;
        return Err(Error::input(format!("there is no test in `{}`", args.files.join("`, `"))).help(
            "write one beside the stencil: `test \"...\" { laplap { phi = 2*i }; expect abs(res) < 1e-12 }`; \
             `stencilc test --help` shows more",
        ));
    }
    for input in inputs.iter().filter(|input| input.tests.is_empty()) {
        terminal::note(&format!("there is no test in `{}`", input.source.name));
    }
    let Some(words) = &args.filter else { return Ok(all) };
    let contains = |test: &Test| test.title.to_lowercase().contains(&words.to_lowercase());
    let chosen: Vec<_> = all.iter().copied().filter(|(_, test)| contains(test)).collect();
    if chosen.is_empty() {
        let titles: Vec<String> = all.iter().map(|(_, test)| format!("\"{}\"", test.title)).collect();
        return Err(
            Error::call(format!("no test has `{words}` in its title")).help(format!("there are {}", titles.join(", ")))
        );
    }
    Ok(chosen)
}

/// Runs a test; gives what came of it, and what there is to show.
fn run_one(args: &Args, input: &Input, test: &Test) -> Result<(Case, Vec<Diagnostic>)> {
    let source = &input.source;
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
    let (line, column) = source.position(test.span.start);
    let mut case = Case {
        file: source.name.clone(),
        title: test.title.clone(),
        stencil: test.stencil.clone(),
        line,
        column,
        precision: args.precision,
        grid: test.grid,
        status: Status::Failed,
        region: None,
        error: None,
        failures: Vec::new(),
    };
    let diagnostics = match run(stencil, test, &options) {
        Ok(Report { region, failures }) => {
            case.region = Some(region);
            case.failures = failures.iter().map(|failure| failed(failure, source)).collect();
            failures.iter().map(|failure| told(failure, test, source)).collect()
        }
        Err(error) => {
            let mut diagnostic = Diagnostic::error(test.stencil_span, format!("\"{}\": {}", test.title, error.message));
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

/// A failure as a message with the values where they are written.
fn told(failure: &Failure, test: &Test, source: &Source) -> Diagnostic {
    let Failure { span, cells, failed, first: [i, j, k], .. } = failure;
    let title = &test.title;
    if *cells == 0 {
        return Diagnostic::error(*span, format!("\"{title}\": this is looked at on no cell"))
            .label("its offsets lead out of what was computed, wherever they start")
            .help("give a larger grid, as in `grid(24, 20, 6)`");
    }
    let what = format!("\"{title}\": {failed} of {} {} not as expected", terminal::count(*cells, "cell"), are(*failed));
    let mut diagnostic = Diagnostic::error(*span, what).label(format!("false first at i={i}, j={j}, k={k}"));
    for (span, value) in once(failure, source) {
        // What is short is easier to read when it stands beside its value.
        let text = source.slice(span);
        let is_short = text.len() <= SHORT && !text.contains('\n');
        diagnostic = diagnostic.note(span, if is_short { format!("{text} = {value}") } else { format!("= {value}") });
    }
    diagnostic
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
    let [i, j, k] = failure.first;
    let part = |(span, value)| Part { text: source.slice(span).to_owned(), value };
    Failed {
        expectation: source.slice(failure.span).trim_start_matches("expect").trim_start().to_owned(),
        line,
        column,
        cells: failure.cells,
        failed: failure.failed,
        first: (failure.failed > 0).then_some(Cell { i, j, k }),
        values: once(failure, source).into_iter().map(part).collect(),
    }
}
