//! Programs in parts: the bits of the whole, whatever lies beyond its edges.

use super::Rank;
use crate::driver::Driver;
use crate::emulate::{Compiler, Emulator, Settings};
use crate::program::kernels::Kernels;
use crate::program::plan::{PlanKind, ProgramPlan};
use crate::program::planned::Planned;
use crate::program::results;
use crate::program::tests::{problem, program};
use crate::ranks::threads::together;
use crate::verify::parts::InParts;
use crate::verify::program::Reference;
use crate::verify::{Tools, Verdict, verify};
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::storage::fastest::Fastest;

/// Rules of all kinds, corners, levels beyond edges, fields that are read by different rules, regions that shrink, values of interfaces,
/// fields without rows or without levels, and a call in a place.
const TEXTS: [&str; 6] = [
    "program around { inout a; in c on (k); boundary { i: periodic; j: periodic; k: copy }; repeat 5 { a = nine(a, c) } }
     stencil nine { in a; in c on (k); out b
        b = c * a + 0.1 * (a[i-1, j-1] + a[i+1, j-2] + a[j+1, k+1] + a[i-1, j+1, k-1]) }",
    "program walls { inout a, b; boundary a { i: mirror; j: -mirror }; boundary b { i: value(2.5); j: copy }
        repeat 4 { let c = cross(a); b = cross(b); a = both(c, b) } }
     stencil cross { in a; out b; b = 0.25 * (a[i-1] + a[i+1] + a[j-1] + a[j+1]) }
     stencil both { in a, b; out c; c = 0.5 * (a + b) }",
    "program open { in a; out d; let b = lap(a); let c = lap(b); d = lap(c) }
     stencil lap { in a; out b; b = a[j-1] + a[j+1] - 2 * a[i+1] }",
    "program leaning { inout a; in s on (i, j); boundary { j: periodic }; repeat 7 { a = up(a, s) } }
     stencil up { in a; in s on (i, j); out b; b = a - 0.5 * (a - a[j-2]) * s[j-1] }",
    "program columns { inout w on (i, j, k+1); inout t; boundary { j: copy }; repeat 3 { w = lift(t, w); t = fall(w, t) } }
     stencil lift { in t; in w on (i, j, k+1); out v on (i, j, k+1); levels 1..nk; v = w[j+1] + t - t[k-1] }
     stencil fall { in w on (i, j, k+1); in t; out n
        sweep k up { let s = if k > 0 { 0.5 * s[k-1] + w[j-1] } else { w }; n = t + s } }",
    "program slabs { inout a; param n: int = 1; boundary { i: copy; j: mirror }
        repeat 2 { a = smooth(a) on levels n..nk; a = shift(a) } }
     stencil smooth { in a; out b; b = 0.5 * a + 0.25 * (a[j-3] + a[j+1]) }
     stencil shift { in a; out b; b = a[i+1] }",
];

fn references(grid: Grid) -> impl Iterator<Item = (&'static str, Reference)> {
    TEXTS.into_iter().map(move |text| {
        let problem =
            problem(&program(text), grid, Precision::F64, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        let reference = Reference::new(problem, &|_| {}).unwrap();
        reference.check_worth().unwrap();
        (text, reference)
    })
}

#[test]
fn interpreted_parts_are_the_whole() {
    for (text, reference) in references(Grid::rows(7, 17, 3)) {
        for parts in 2..=5 {
            let found = InParts { reference: &reference, parts }.interpreted().unwrap();
            assert_eq!(found, None, "{text}");
        }
    }
}

#[test]
fn kernels_of_parts_are_the_whole() {
    let tools = Tools::emulated(&Compiler::find().unwrap(), Settings::default());
    let own = Choices { contract: false, block: [8, 2, 1], ..Choices::default() };
    let plan = |kind, storage: &str, fastest| {
        let choices = Choices { storage: storage.to_owned(), fastest, ..own.clone() };
        ProgramPlan { kind, ..ProgramPlan::of_parts(choices) }
    };
    let plans = [
        plan(PlanKind::Separate, "regular", Fastest::Columns),
        plan(PlanKind::Merged, "uncompressed", Fastest::Columns),
        plan(PlanKind::Recomputed, "regular", Fastest::Levels),
        ProgramPlan { steps: 2, ..plan(PlanKind::Recomputed, "regular", Fastest::Columns) },
    ];
    let mut equal = 0;
    for (text, reference) in references(Grid::rows(9, 19, 4)) {
        for parts in [2, 3] {
            let verdicts = verify(&InParts { reference: &reference, parts }, &plans, &tools, &|_| {}).unwrap();
            for (plan, verdict) in plans.iter().zip(&verdicts) {
                match verdict {
                    Verdict::Equal { .. } => equal += 1,
                    // Not every loop becomes one kernel of two steps; and they look further than a part has rows.
                    Verdict::Refused { reason } if plan.steps == 2 => assert!(reason.contains("--steps 2"), "{reason}"),
                    verdict => panic!("{plan}, {parts} parts: {verdict:?} of {text}"),
                }
            }
        }
    }
    assert!(equal >= 36, "{equal} are equal");
}

/// Parts that meet as bytes, whatever lies beyond the edges and wherever kernels have their cells.
#[test]
fn kernels_of_ranks_are_the_whole() {
    let emulator = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    let plan = |kind, storage: &str, fastest| {
        let own = Choices { contract: false, block: [8, 2, 1], ..Choices::default() };
        ProgramPlan { kind, ..ProgramPlan::of_parts(Choices { storage: storage.to_owned(), fastest, ..own }) }
    };
    let plans = [
        plan(PlanKind::Separate, "regular", Fastest::Columns),
        plan(PlanKind::Merged, "uncompressed", Fastest::Levels),
    ];
    for (n, (text, reference)) in references(Grid::rows(9, 19, 4)).enumerate() {
        let (cut, plan) = super::Cut::fused(&reference.problem, &plans[n % plans.len()], 2 + n % 2).unwrap();
        let found = together(cut.parts().len(), |ranks| {
            let planned = Planned::new(&cut.parts()[ranks.rank()], &plan)?;
            let kernels = Kernels::built(Arc::clone(&emulator), planned)?.watched();
            let mut driver = Driver::new(Rank::new(cut.clone(), kernels, ranks)?).given()?;
            driver.finish()?;
            results(&reference.problem, &driver)
        });
        for found in found.unwrap() {
            assert_eq!(reference.mismatches(&found).first().map(ToString::to_string), None, "{text}");
        }
    }
}

#[test]
fn parts_have_as_many_rows_as_are_looked_at() {
    let (_, reference) = references(Grid::rows(6, 17, 4)).last().unwrap();
    let said = InParts { reference: &reference, parts: 6 }.interpreted().unwrap_err();
    assert!(
        said.message.contains("17 rows are too few for 6 parts: program `slabs` looks at 3 beyond an edge"),
        "{said}"
    );
    assert!(said.help.is_some_and(|help| help.contains("--gpus 5")));
}

/// Each part has a field without rows for itself.
#[test]
fn fields_without_rows_are_those_of_parts_that_compute_them() {
    let text = "program m { inout u; inout d on (k); repeat 3 { u, d = f(u, d) } }
        stencil f { inout u; inout d on (k); u = 0.5 * u[j-4]; d = d * 2 }";
    let grid = Grid::rows(6, 20, 2);
    let whole = problem(&program(text), grid, Precision::F64, &[]).unwrap();
    let reference = Reference::new(whole, &|_| {}).unwrap();
    let said = InParts { reference: &reference, parts: 5 }.interpreted().unwrap_err();
    assert!(said.message.contains("none of them in part 1 of 5, and gives `d`"), "{said}");
    assert_eq!(InParts { reference: &reference, parts: 2 }.interpreted().unwrap(), None);
}

/// What prints look at is not looked at where nothing is shown.
#[test]
fn prints_need_no_rows() {
    let text = "program m { inout a; repeat 3 { a = f(a) } }\n stencil f { in a; out b; print(a[j-4]); b = 0.5*a }";
    let whole = problem(&program(text), Grid::rows(5, 6, 2), Precision::F64, &[]).unwrap();
    let reference = Reference::new(whole, &|_| {}).unwrap();
    assert_eq!(InParts { reference: &reference, parts: 3 }.interpreted().unwrap(), None);
}

#[test]
fn kernels_that_fetch_edges_by_themselves_are_refused() {
    let (_, reference) = references(Grid::rows(128, 12, 2)).next().unwrap();
    let whole = ProgramPlan { kind: PlanKind::Walked, ..ProgramPlan::of_parts(Choices::default()) };
    let said = super::Cut::fused(&reference.problem, &whole, 2).err().unwrap();
    assert!(said.message.contains("--fuse walked") || said.message.contains("from one grid"), "{said}");
}
