//! Every kernel under AddressSanitizer and UndefinedBehaviorSanitizer: the emulator compiles it with both, in a process of
//! its own that has AddressSanitizer's library loaded first. And planted faults, which they must find.

use crate::common::device::{cases, kernel, launch, run};
use crate::common::{combinations_for, lowered, problem, stencils, verify_emulated};
use crate::meshes::levels::{look_below_the_last_level, look_through_holes_into_nothing};
use std::path::PathBuf;
use std::process::{Command, Output};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::cache::library_cached;
use stencilc_runtime::emulate::{Compiler, Emulator, Order, Settings, Source};
use stencilc_runtime::verify::{Tools, Verdict, expect};
use stencilc_testing::batch::Subject;

/// The variable that tells the child what to run.
const TASK: &str = "STENCILC_SANITISED";

const SETTINGS: Settings = Settings { optimise: 0, sanitise: true, strict: false, native: false, ucontext: false };

/// Kernels with a fault: what to call them, what they do, and what is then said.
const FAULTS: [(&str, &str, &str); 7] = [
    ("before", "b[x] = a[x - 1];", "AddressSanitizer: use-after-poison"),
    ("after", "b[x] = a[x + 897];", "AddressSanitizer: use-after-poison"),
    (
        "shared",
        "STENCILC_SHARED(float, t, [128]); t[x] = 0; const float* p = t; b[x] = p[x + 1];",
        "AddressSanitizer: use-after-poison",
    ),
    (
        "stack",
        "float t[4]; for (int i = 0; i < 4; ++i) t[i] = a[i]; const float* volatile p = t; b[x] = p[x / 31];",
        "AddressSanitizer: stack",
    ),
    ("index", "STENCILC_SHARED(float, t, [128]); t[x] = 0; b[x] = t[x + 1];", "runtime error: index 128 out of bounds"),
    ("shift", "b[x] = float(1 << (x + 8));", "runtime error: shift exponent"),
    ("overflow", "b[x] = float(x + 2147483600);", "runtime error: signed integer overflow"),
];

const BELOW: &str = "
stencil below {
    in  a on (i, j, k)
    in  c on (k)
    out w on (i, j, k+1)
    levels 1..nk + 1
    let mean = if k < nk { a + c } else { 0 }
    w = if k < nk { mean * a[i+1] + mean[k-1] } else { a[k-1, i-1] - c[k-1] }
}
stencil far {
    in  a on (i, j, k)
    out w on (i, j, k+1)
    levels 0..nk + 1
    let below = if k < nk - 1 { a[k+1] * a[i+1, k+1] } else if k < nk { a } else { 1 }
    let above = if k > 1 { a[k-2] } else { 2 }
    w = below + above
}
";

/// This program again, with AddressSanitizer before everything else. `None` where there is none.
fn child(task: &str) -> Option<Output> {
    let compiler = Compiler::find().unwrap();
    let name = if compiler.version.contains("clang") { "libclang_rt.asan-x86_64.so" } else { "libasan.so" };
    let asked = Command::new(&compiler.program).arg(format!("-print-file-name={name}")).output().unwrap();
    let library = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
    // A compiler that does not know the library says its name again.
    if !library.is_absolute() || !library.exists() {
        println!("skipped: no AddressSanitizer");
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "sanitised::runs_in_a_process_of_its_own", "--nocapture"]);
    command.env(TASK, task).env("LD_PRELOAD", library);
    // What Rust and its libraries leave to the end of the process is no leak of a kernel.
    command.env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=1");
    command.env("UBSAN_OPTIONS", "print_stacktrace=1");
    Some(command.output().unwrap())
}

fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn succeeds(task: &str) {
    let Some(output) = child(task) else { return };
    assert!(output.status.success() && said(&output).contains("nothing was found"), "{}", said(&output));
}

#[test]
fn nothing_is_found_in_stencils() {
    succeeds("stencils");
}

#[test]
fn nothing_is_found_in_constructs() {
    succeeds("constructs");
}

#[test]
fn nothing_is_found_in_operations() {
    succeeds("operations");
}

#[test]
fn nothing_is_found_behind_holes() {
    succeeds("holes");
}

/// On the last interface there is no level of what is read beside it.
#[test]
fn nothing_is_found_below_the_last_level() {
    succeeds("below");
}

#[test]
fn nothing_is_found_in_random_programs() {
    succeeds("random");
}

#[test]
fn planted_faults_are_found() {
    for (name, _, message) in FAULTS {
        let Some(output) = child(name) else { return };
        assert!(!output.status.success(), "{name} was not found");
        assert!(said(&output).contains(message), "{name}\n{}", said(&output));
    }
}

#[test]
#[ignore = "the other tests start it, with the sanitizers loaded"]
fn runs_in_a_process_of_its_own() {
    let Ok(task) = std::env::var(TASK) else { return };
    match task.as_str() {
        "stencils" => stencils().iter().for_each(|(name, text)| check(name, text)),
        "constructs" => check("constructs", include_str!("constructs.stn")),
        "operations" => check_operations(),
        "holes" => look_through_holes_into_nothing(SETTINGS),
        "below" => {
            look_below_the_last_level(SETTINGS);
            check("below", BELOW);
        }
        "random" => check_random_programs(),
        fault => run_fault(fault),
    }
    println!("nothing was found");
}

/// Kernels of every stencil of a text, of which one precision is enough: it changes types and no addresses.
fn check(name: &str, text: &str) {
    let compiler = Compiler::find().unwrap();
    for stencil in lowered(name, text) {
        let problem = problem(&stencil, Precision::F32, Grid::rows(21, 17, 10), &[]);
        let expected = expect(&problem, &|_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
        let block = |choices: &Choices| if choices.walks() { [32, 2, 1] } else { [8, 2, 3] };
        let choices = combinations_for(&stencil)
            .map(|choices| Choices { block: block(&choices), ..choices }.with("slice", [4]).with("height", [2]));
        let choices: Vec<_> = choices.map(|choices| Choices { precision: Precision::F32, ..choices }).collect();
        for verdict in verify_emulated(&problem, &expected, &choices, &compiler, &SETTINGS).unwrap() {
            assert!(matches!(verdict, Verdict::Equal { .. }), "{name}: {verdict:?}");
        }
    }
}

fn check_operations() {
    let named = cases();
    let sources: Vec<Source> = named.iter().map(|case| Source { name: case.name, text: kernel(case.name) }).collect();
    let built = library_cached(&Compiler::find().unwrap(), &sources, &SETTINGS).unwrap();
    for (case, kernel) in cases().iter().zip(&built) {
        for order in Order::ALL {
            run(&Emulator::default().in_order(order), kernel, &case.launch)
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
    }
}

fn check_random_programs() {
    let tools = Tools::emulated(&Compiler::find().unwrap(), SETTINGS);
    for (subject, seeds) in [(Subject::Stencils, 15_000_000..15_000_040), (Subject::Meshes, 15_100_000..15_100_024)] {
        let tally = subject.run(seeds, &tools).unwrap();
        assert!(tally.failures == 0 && tally.kernels > 0, "{:?}", tally.failed);
    }
}

fn run_fault(fault: &str) {
    let (_, body, _) = FAULTS.into_iter().find(|(name, ..)| *name == fault).unwrap();
    let signature = "extern \"C\" __global__ void planted(const float* a, float* b, unsigned* state)";
    let text = format!("{signature}\n{{\nconst int x = threadIdx.x;\n{body}\n}}\n");
    let source = Source { name: "planted", text: &text };
    let built = library_cached(&Compiler::find().unwrap(), &[source], &SETTINGS).unwrap();
    run(&Emulator::default(), &built[0], &launch(1, 128)).unwrap();
}
