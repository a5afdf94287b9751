//! Random programs of every subject, each computed by the interpreter, by a second evaluator and by kernels.

use rayon::prelude::*;
use stencilc_compiler::access::ACCESSES;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::mesh::STRATEGIES;
use stencilc_compiler::parse::parse;
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::STORAGES;
use stencilc_compiler::storage::fastest::FASTEST;
use stencilc_compiler::storage::fields::FIELDS;
use stencilc_compiler::storage::neighbors::NEIGHBORS;
use stencilc_compiler::storage::order::ORDERS;
use stencilc_runtime::Result;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::verify::Tools;
use stencilc_testing::batch::{Subject, Tally, compute};
use stencilc_testing::case::Case;
use stencilc_testing::constructs::Constructs;
use stencilc_testing::generate::FUNCTIONS;

/// How many programs there are of each subject: 3,000 together. `random-programs` computes as many as one likes.
const STENCILS: u64 = 1800;
const PROGRAMS: u64 = 600;
const MESHES: u64 = 600;

/// Programs whose kernels are compiled together.
const BATCH: u64 = 50;

fn emulator() -> Tools {
    let compiler = Compiler::find().expect("a C++ compiler is needed: install g++");
    // What an earlier run compiled is not compiled again.
    Tools { keeps: true, ..Tools::emulated(&compiler, Settings::default()) }
}

fn without_failures(total: Tally) -> Tally {
    let Tally { programs, agreed, kernels, nothing, refused, failures, has, ways, failed, .. } = &total;
    println!(
        "{programs} programs, {agreed} agree, {kernels} by kernels, {nothing} compute nothing, {refused} refused: {has:?}, {ways:?}"
    );
    let texts: Vec<&str> = failed.iter().map(|(_, text)| text.as_str()).collect();
    assert!(*failures == 0, "{failures} failed:\n{}", texts.join("\n"));
    total
}

/// Computes so many programs of a subject on all processors.
fn computed(subject: Subject, programs: u64) -> Tally {
    let tools = emulator();
    let batches = (0..programs / BATCH).into_par_iter();
    let tallies = batches.map(|batch| subject.run(batch * BATCH..(batch + 1) * BATCH, &tools));
    let tallies: Result<Vec<Tally>> = tallies.collect();
    without_failures(tallies.expect("the emulator works").into_iter().fold(Tally::default(), Tally::and))
}

#[test]
fn stencils_are_the_same_in_every_way() {
    let total = computed(Subject::Stencils, STENCILS);
    assert!(total.kernels > STENCILS * 90 / 100 && total.refused == 0);
    // Every storage, strategy and knob comes up.
    let often = |what: &str, name: &str| {
        let count = total.has.get(&format!("{what} {name}")).copied().unwrap_or(0);
        assert!(count > STENCILS / 50, "{what} {name}: {count}");
    };
    STORAGES.iter().for_each(|own| often("storage", own.name()));
    ACCESSES.iter().for_each(|own| often("access", own.name()));
    ORDERS.iter().for_each(|own| often("layout", own.name()));
    NEIGHBORS.iter().for_each(|own| often("neighbors", own.name()));
    FIELDS.iter().for_each(|own| often("fields", own.name()));
    FASTEST.iter().for_each(|own| often("fastest", own.name()));
    [
        ("grid", "of cells"),
        ("constant", "true"),
        ("precision", "f32"),
        ("precision", "f64"),
        ("contract", "false"),
        ("wide", "true"),
    ]
    .into_iter()
    .for_each(|(what, name)| often(what, name));
}

#[test]
fn programs_are_the_same_in_every_way() {
    let Tally { agreed, kernels, has, ways, .. } = computed(Subject::Programs, PROGRAMS);
    assert!(agreed > PROGRAMS * 2 / 3 && kernels > PROGRAMS / 2);
    assert!(has.len() == 9 && has.values().all(|&count| count > PROGRAMS / 12), "{has:?}");
    for plan in PlanKind::ALL {
        assert!(ways.get(plan.name()).is_some_and(|&count| count > PROGRAMS / 100), "{}: {ways:?}", plan.name());
    }
}

#[test]
fn programs_over_meshes_are_the_same_in_every_way() {
    let Tally { agreed, kernels, has, ways, .. } = computed(Subject::Meshes, MESHES);
    assert!(agreed > MESHES * 9 / 10 && kernels > MESHES * 2 / 3);
    assert!(has.len() == 27 && has.values().all(|&count| count > MESHES / 20), "{has:?}");
    for strategy in STRATEGIES {
        assert!(ways.get(strategy.name()).is_some_and(|&count| count > MESHES / 100), "{}: {ways:?}", strategy.name());
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
                let case = Case { choices, ..case.clone() };
                let has_tables = case.choices.storage != "regular";
                cases.extend(has_tables.then(|| case.clone().on_a_graph()));
                cases.push(case);
            }
        }
    }
    let tools = emulator();
    let batches: Vec<&[Case]> = cases.chunks(BATCH as usize).collect();
    let tallies: Result<Vec<Tally>> = batches.into_par_iter().map(|some| compute(some.to_vec(), &tools)).collect();
    let tallies = tallies.expect("the emulator works");
    let total = without_failures(tallies.into_iter().fold(Tally::default(), Tally::and));
    assert!(total.kernels as usize >= 2 * 2 * variants().filter(Choices::is_plain).count());
}

#[test]
fn every_construct_of_the_language_is_written() {
    let mut constructs = Constructs::default();
    for seed in 0..1000 {
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
    "sums by level",
    "levels",
    "level",
    "part of i",
    "part of j",
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
    "ni",
    "nj",
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
    "a[level n]",
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
