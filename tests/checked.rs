//! Checked kernels: silent on every kernel that is right, and a message with stencil, field, cell and offset for each way
//! in which an index can be wrong.

use std::sync::Arc;

use crate::common::{combinations_for, lowered, problem, stencils, verify_emulated};
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{Choices, Plan};
use stencilc_compiler::storage::Layout;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_runtime::cuda::{Gpu, availability};
use stencilc_runtime::emulate::{Compiler, Emulator, Settings, Source};
use stencilc_runtime::execute::{Repeat, execute};
use stencilc_runtime::nvrtc::{self, Kind};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::verify::{Verdict, expect, plan_for};

const GRID: Grid = Grid::rows(19, 13, 6);

/// What stands to the right of `&&` and `||` is worked out before it is known whether it is needed.
const GUARDED: &str = "
    stencil both { in a; out b; let d = a[k-1] - a; b = if k > 0 && d > 0 && d[i+1] > 0 { d } else { a } }
    stencil either { in a; out b; let d = a[k+1] - a; b = if k == nk - 1 || d > 0 || d[j+1] > 0 { a } else { d } }";

#[test]
fn right_kernels_report_nothing() {
    let compiler = Compiler::find().unwrap();
    let how = Settings { optimise: 0, strict: true, ..Settings::default() };
    let mut texts = stencils();
    texts.push(("constructs".into(), include_str!("constructs.stn").into()));
    texts.push(("guarded".into(), GUARDED.into()));
    for (name, text) in texts {
        for stencil in lowered(&name, &text) {
            let problem = problem(&stencil, Precision::F64, Grid { nk: 9, ..GRID }, &[]);
            let expected = expect(&problem, &|_| {}).unwrap();
            // Kernels with levels fastest cannot be checked, nor those that copy whole planes.
            let by_plane =
                combinations_for(&stencil).filter(|choices| choices.fastest == Fastest::Columns && !choices.walks());
            let choices: Vec<Choices> = by_plane.map(|choices| Choices { checked: true, ..choices }).collect();
            for verdict in verify_emulated(&problem, &expected, &choices, &compiler, &how).unwrap() {
                assert!(matches!(verdict, Verdict::Equal { .. }), "{}: {verdict:?}", stencil.name);
            }
        }
    }
}

/// Breaks a plan.
type Fault = fn(&mut Plan);

fn layout(plan: &mut Plan) -> &mut Layout {
    Arc::make_mut(&mut plan.known_grid.as_mut().unwrap().layout)
}

/// Ways to break a plan of a storage, and what a checked kernel says of each.
const FAULTS: &[(&str, Fault, &str)] = &[
    (
        "regular",
        |plan| plan.known_grid.as_mut().unwrap().region.i.start = 0,
        "stencil `s`: kernel s_kernel reads `a[i-1]` wrongly: at cell (i=0, j=0, k=1) its index leads to element ",
    ),
    (
        "regular",
        |plan| plan.known_grid.as_mut().unwrap().region.k.start = 0,
        "stencil `s`: kernel s_kernel reads `a[k-1]` wrongly: at cell (i=1, j=0, k=0) its index leads to element ",
    ),
    ("regular", |plan| layout(plan).sizes[1] += 1, "` wrongly: at "),
    (
        "compressed",
        |plan| layout(plan).tables[1].iter_mut().for_each(|offset| *offset += 1),
        "stencil `s`: kernel s_kernel reads `a[i-1]` wrongly: at cell (i=1, j=0, k=1) its index leads to element ",
    ),
    (
        "compressed",
        |plan| layout(plan).tables[1].iter_mut().for_each(|offset| *offset = -1_000_000),
        "outside the array",
    ),
    (
        "compressed",
        |plan| layout(plan).tables[0].iter_mut().for_each(|pattern| *pattern = 1_000_000),
        "stencil `s`: kernel s_kernel reads entry 1000000 of the storage's table `table`, which has ",
    ),
];

/// A broken plan for a small stencil: reads to the left and below, at a level that is not the first.
fn broken(storage: &str, fault: Fault) -> (Problem, Plan) {
    let text = "stencil s { in a; out b; b = a[i-1] + a[k-1] + a }";
    let problem = problem(&lowered("s.stn", text)[0], Precision::F64, GRID, &[]);
    let choices = Choices { checked: true, storage: storage.into(), ..Choices::default() };
    let mut plan = plan_for(&problem, &choices).unwrap();
    fault(&mut plan);
    (problem, plan)
}

#[test]
fn the_emulator_tells_each_fault() {
    let compiler = Compiler::find().unwrap();
    for (storage, fault, told) in FAULTS {
        let (problem, plan) = broken(storage, *fault);
        let kernel = cuda::print(&plan).unwrap();
        let loaded = compiler.build(&[Source::from(&kernel)], &Settings::default()).unwrap().remove(0);
        let execution = execute(&Emulator::default(), &plan, &kernel, &loaded, &problem, Repeat::usual(1)).unwrap();
        let damage = execution.damage.first().cloned().unwrap_or_default();
        assert!(damage.contains(told), "{storage}: {damage}");
    }
}

#[test]
fn a_gpu_tells_each_fault() {
    if availability().is_err() {
        println!("skipped: no GPU");
        return;
    }
    let gpu = Gpu::open(0).unwrap();
    for (storage, fault, _) in FAULTS {
        let (problem, plan) = broken(storage, *fault);
        let kernel = cuda::print(&plan).unwrap();
        let compiled = nvrtc::compile(&kernel.text, "s.cu", &gpu.arch(), Kind::Cubin).unwrap();
        let loaded = gpu.load(&compiled.image).unwrap().kernel(&kernel.name).unwrap();
        let execution = execute(&gpu, &plan, &kernel, &loaded, &problem, Repeat::usual(1)).unwrap();
        // Which thread comes first, and which of the faults it then meets, is the GPU's choice.
        let damage = execution.damage.first().cloned().unwrap_or_default();
        assert!(damage.contains("stencil `s`: kernel s_kernel "), "{storage}: {damage}");
    }
}
