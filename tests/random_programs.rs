//! A thousand random programs, each computed by the interpreter, by the second evaluator and by its kernel.

use std::sync::Mutex;
use std::time::{Duration, Instant};
use stencilc_compiler::access::ACCESSES;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::parse::parse;
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::STORAGES;
use stencilc_compiler::storage::fields::FIELDS;
use stencilc_compiler::storage::neighbors::NEIGHBORS;
use stencilc_compiler::storage::order::ORDERS;
use stencilc_runtime::emulate::Compiler;
use stencilc_testing::case::{Case, Failure, Outcome, Ready};
use stencilc_testing::constructs::Constructs;
use stencilc_testing::device::{Compared, Device, knobs};
use stencilc_testing::generate::FUNCTIONS;
use stencilc_testing::shrink::{failure_of, shrink};

const PROGRAMS: u64 = 1000;
/// Kernels of one library.
const BATCH: u64 = 50;

/// What became of many cases.
#[derive(Default)]
struct Tally {
    equal: usize,
    cells: usize,
    nothing: usize,
    refused: usize,
    failed: Vec<String>,
    cases: Vec<Case>,
}

impl Tally {
    fn fail(&mut self, case: &Case, failure: &Failure) {
        self.failed.push(format!("{failure}\n{}\n{}", case.command("random.stn"), case.text));
    }

    /// Computes cases in every way.
    fn add(&mut self, device: &Device, cases: Vec<Case>) {
        let mut ready: Vec<Ready> = Vec::new();
        for case in cases {
            self.cases.push(case.clone());
            match case.clone().prepare() {
                Outcome::Ready(own) => ready.push(*own),
                Outcome::Nothing => self.nothing += 1,
                Outcome::Refused(_) => self.refused += 1,
                Outcome::Failed(failure) => self.fail(&case, &failure),
            }
        }
        for (compared, ready) in device.compare(&ready).expect("the emulator works").iter().zip(&ready) {
            match compared {
                Compared::Equal(cells) => {
                    self.equal += 1;
                    self.cells += cells;
                }
                Compared::Failed(failure) => self.fail(&ready.case, failure),
            }
        }
    }
}

/// Computes batches of cases on all processors.
fn computed(batches: Vec<Vec<Case>>) -> Tally {
    let device = Device::Emulator(Compiler::find().expect("a C++ compiler is needed: install g++"));
    let (waiting, total) = (Mutex::new(batches), Mutex::new(Tally::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(batch) = waiting.lock().unwrap().pop() else { return };
                    let mut own = Tally::default();
                    own.add(&device, batch);
                    let mut total = total.lock().unwrap();
                    total.equal += own.equal;
                    total.cells += own.cells;
                    total.nothing += own.nothing;
                    total.refused += own.refused;
                    total.failed.extend(own.failed);
                    total.cases.extend(own.cases);
                }
            });
        }
    });
    let total = total.into_inner().unwrap();
    assert!(total.failed.is_empty(), "{} failed:\n{}", total.failed.len(), total.failed.join("\n"));
    total
}

#[test]
fn a_thousand_programs_are_the_same_in_every_way() {
    let batches = (0..PROGRAMS / BATCH).map(|batch| (batch * BATCH..(batch + 1) * BATCH).map(Case::new).collect());
    let total = computed(batches.collect());
    println!("{} equal ({} cells), {} compute nothing", total.equal, total.cells, total.nothing);
    assert!(total.equal > 950, "only {} of {PROGRAMS} were compared", total.equal);
    assert_eq!(total.refused, 0);
    // Every storage, strategy and knob comes up.
    let knobs = knobs(total.cases.iter());
    let named = |what: &str, name: &str| knobs.get(&format!("{what} {name}")).copied().unwrap_or(0);
    assert!(STORAGES.iter().all(|storage| named("storage", storage.name()) > 20), "{knobs:?}");
    assert!(ACCESSES.iter().all(|access| named("access", access.name()) > 20), "{knobs:?}");
    assert!(ORDERS.iter().all(|order| named("layout", order.name()) > 20), "{knobs:?}");
    assert!(NEIGHBORS.iter().all(|own| named("neighbors", own.name()) > 20), "{knobs:?}");
    assert!(FIELDS.iter().all(|fields| named("fields", fields.name()) > 20), "{knobs:?}");
    for (what, name) in
        [("constant", "true"), ("precision", "f32"), ("precision", "f64"), ("contract", "false"), ("wide", "true")]
    {
        assert!(named(what, name) > 20, "{knobs:?}");
    }
}

#[test]
fn what_was_found_once_stays_mended() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("testing/found");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "stn") {
            continue;
        }
        let case = Case::of_text(cases.len() as u64, std::fs::read_to_string(path).unwrap());
        for precision in [Precision::F32, Precision::F64] {
            for variant in variants().filter(Choices::is_plain) {
                let Choices { storage, access, .. } = variant;
                let choices = Choices { storage, access, precision, ..case.choices.clone() };
                cases.push(Case { choices, ..case.clone() });
            }
        }
    }
    let total = computed(vec![cases]);
    assert!(total.equal >= 2 * 2 * variants().filter(Choices::is_plain).count());
}

#[test]
fn a_failing_program_is_made_small() {
    // The second evaluator gets one function wrong.
    let failing = (0..500).map(|seed| Case { faulty: true, ..Case::new(seed) }).find_map(|case| {
        let failure = failure_of(&case, &Device::None).expect("nothing to fail")?;
        (Case::program(case.seed).size() > 40).then_some((case, failure))
    });
    let (case, failure) = failing.expect("some program of some size uses the function");
    assert!(matches!(failure, Failure::Value(_)), "{failure}");
    let deadline = Instant::now() + Duration::from_secs(60);
    let program = Case::program(case.seed);
    let (small, failure) = shrink(case, program, failure, &Device::None, deadline).expect("nothing to fail");
    println!("{failure}\n{}\n{}", small.command("small.stn"), small.text);
    assert!(matches!(failure, Failure::Value(_)), "{failure}");
    // An output and an assignment of the function, and what it needs.
    assert!(small.text.contains("ceil("), "{}", small.text);
    assert!(small.text.lines().count() <= 7 && small.text.len() < 120, "{}", small.text);
    assert!(failure_of(&small, &Device::None).expect("nothing to fail").is_some_and(|own| own.is_like(&failure)));
}

#[test]
fn every_construct_of_the_language_is_written() {
    let mut constructs = Constructs::default();
    for seed in 0..PROGRAMS {
        let text = Case::program(seed).to_string();
        constructs.add(&parse(&Source::new("random.stn", text)).expect("what is generated parses"));
    }
    let of_functions = FUNCTIONS.iter().map(|(name, _)| format!("{name}(...)"));
    let expected = CONSTRUCTS.iter().map(|name| name.to_string()).chain(of_functions);
    let missing: Vec<String> =
        expected.filter(|name| constructs.counts.get(name).is_none_or(|&count| count < 3)).collect();
    assert!(missing.is_empty(), "hardly ever written: {missing:?}\n{constructs:#?}");
}

/// Every construct that the language has, by the names that [`Constructs`] gives them; its functions are counted too.
const CONSTRUCTS: &[&str] = &[
    "in",
    "out",
    "inout",
    "fields in a list",
    "range",
    "field: not said",
    "field: real",
    "field: f32",
    "field: f64",
    "field: int",
    "field: bool",
    "on everything",
    "on (i, j, k)",
    "on (i, j)",
    "on (k)",
    "on (i, j, k+1)",
    "on (k+1)",
    "param of the file",
    "param of the stencil",
    "param with a default",
    "param without a default",
    "param: not said",
    "param: real",
    "param: int",
    "param: bool",
    "const of the file",
    "const of the stencil",
    "const: not said",
    "const: real",
    "const: f32",
    "const: f64",
    "const: int",
    "const: bool",
    "fn of the file",
    "fn of the stencil",
    "call of a function",
    "let",
    "let in a block",
    "block",
    "real number",
    "whole number",
    "truth value",
    "name",
    "k",
    "nk",
    "pi",
    "-a",
    "!a",
    "**",
    "** of a negative",
    "*",
    "/",
    "%",
    "+",
    "-",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "&&",
    "||",
    "a[i+1]",
    "a[j+1]",
    "a[k+1]",
    "a[i+n]",
    "v[n]",
    "v.0",
    "vector",
    "dot(...)",
    "if",
    "else if",
    "sum of a counter",
    "sum of several counters",
    "min of a counter",
    "min of several counters",
    "max of a counter",
    "max of several counters",
];
