//! One layout for several stencils: the same places for all of them, and kernels that compute what each alone computes.

use crate::common::{check_variants, lowered, problem, verify_emulated};
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::{Choices, Plan, variants};
use stencilc_compiler::storage::{Columns, Placement};
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::grid::{Quadtree, Refinement};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::verify::{Verdict, expect, plan_for};

/// `here`, `near` and `far` compute fewer and fewer columns; those of `left` and `across` are among neither's.
const DYCORE: &str = "
    stencil near { in a; in m: bool on (i, j); out b; b = if m { a[i-1] + a[i+1] } else { a[j-1] + a[j+1] } }
    stencil far { in a; out b; let d = 4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]; b = d[i-1] + d[i+1] + d[j-1] + d[j+1] }
    stencil here { in a; in w on (k); out b; out top on (k); b = a * w; top = 2*w }
    stencil left { in a; out b; out w on (k); b = a[i-3] * a[i+1, j+1]; w = 1.5*k }
    stencil across {
        in a: f32; in m: bool on (i, j); inout b; out n: int on (i, j)
        b = a[j-3] + b
        n = if m[j+1] { 1 } else { 2 }
    }";

/// A problem of each stencil, with the layout that they share.
fn problems(stencils: &[Stencil], new: impl Fn(&Stencil) -> Problem) -> Vec<Problem> {
    let mut problems: Vec<Problem> = stencils.iter().map(new).collect();
    problems.iter_mut().for_each(|problem| problem.share(stencils, true));
    problems
}

fn on_rows(stencils: &[Stencil]) -> Vec<Problem> {
    problems(stencils, |stencil| problem(stencil, Precision::F64, Grid::rows(37, 29, 5), &[]))
}

fn on_cells(stencils: &[Stencil]) -> Vec<Problem> {
    let quadtree = Quadtree { ni: 12, nj: 9, depth: 2, refinement: Refinement::Noise { seed: 4 } };
    let adjacency = Arc::new(quadtree.adjacency("noise").unwrap().0);
    problems(stencils, |stencil| {
        Problem::new(Request {
            stencil,
            precision: Precision::F64,
            contract: true,
            grid: Some(Grid::cells(adjacency.cells(), 3)),
            adjacency: Some(Arc::clone(&adjacency)),
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 2,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Everything,
        })
        .unwrap()
    })
}

fn places(plan: &Plan) -> &[u32] {
    match &plan.known_grid.as_ref().unwrap().layout.columns {
        Columns::Places(places) => places,
        Columns::Rows { .. } => panic!("cells in any order"),
    }
}

#[test]
fn every_stencil_has_the_same_places() {
    let stencils = lowered("dycore", DYCORE);
    for (problems, run_width) in [(on_rows(&stencils), 8), (on_cells(&stencils), 32)] {
        let with_tables = variants().filter(|choices| choices.storage != "regular" && choices.access == "naive");
        for (number, choices) in with_tables.enumerate() {
            let choices = Choices { run_width, short_last: number % 2 == 0, ..choices };
            let plans = problems.iter().filter_map(|problem| plan_for(problem, &choices).ok());
            let plans: Vec<Plan> = plans.collect();
            assert!(plans.len() >= 3, "some stencils have no paths to follow step by step");
            let layout = |plan: &Plan| plan.known_grid.as_ref().unwrap().layout.clone();
            for plan in &plans {
                let (own, first) = (layout(plan), layout(&plans[0]));
                assert_eq!(places(plan), places(&plans[0]), "{} {}", plan.stencil.name, choices.words());
                assert_eq!((own.places, own.lead), (first.places, first.lead));
                let is_right = match plan.stencil.name.as_str() {
                    "far" => own.placement == Placement::Aligned,
                    "here" | "near" => matches!(own.placement, Placement::From(first) if first < own.lead),
                    _ => own.placement == Placement::Listed,
                };
                assert!(is_right, "{}: {:?} of {:?}", plan.stencil.name, own.placement, own.lead);
            }
        }
    }
}

#[test]
fn regular_rows_have_the_same_distances() {
    let stencils = lowered("dycore", DYCORE);
    let distances = |problem: &Problem| {
        let layout = plan_for(problem, &Choices::default()).unwrap().known_grid.unwrap().layout;
        layout.sizes.clone()
    };
    let shared: Vec<_> = on_rows(&stencils).iter().map(distances).collect();
    assert!(shared.windows(2).all(|pair| pair[0] == pair[1]), "{shared:?}");
    // Alone, those that have smaller elements are padded more.
    let alone = |stencil: &Stencil| distances(&problem(stencil, Precision::F64, Grid::rows(37, 29, 5), &[]));
    assert_ne!(alone(&stencils[0]), alone(&stencils[1]));
}

#[test]
fn kernels_compute_what_each_alone_computes() {
    let stencils = lowered("dycore", DYCORE);
    for (offset, problems) in [on_rows(&stencils), on_cells(&stencils)].iter().enumerate() {
        for problem in problems {
            let equal = check_variants(problem, |number| number % 2 == offset);
            assert!(equal >= variants().count() / 6, "{}: {equal}", problem.stencil.name);
        }
    }
}

#[test]
fn checked_kernels_find_nothing() {
    let stencils = lowered("dycore", DYCORE);
    let how = Settings { strict: true, ..Settings::default() };
    for problem in on_rows(&stencils).iter().chain(&on_cells(&stencils)) {
        let all = variants().filter(|choices| choices.storage != "regular" && choices.layout == "hilbert");
        let choices: Vec<Choices> = all.map(|choices| Choices { checked: true, ..choices }).step_by(5).collect();
        let expected = expect(problem, &|_| {}).unwrap();
        let verdicts = verify_emulated(problem, &expected, &choices, &Compiler::find().unwrap(), &how).unwrap();
        for (choices, verdict) in choices.iter().zip(&verdicts) {
            let is_right = matches!(verdict, Verdict::Equal { cells: 1.. } | Verdict::Refused { .. });
            assert!(is_right, "{} {}: {verdict:?}", problem.stencil.name, choices.words());
        }
        assert!(verdicts.iter().any(|verdict| matches!(verdict, Verdict::Equal { .. })));
    }
}
