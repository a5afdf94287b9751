//! Kernels and numbers made wrong by hand: verification must tell each from right ones. A comparison that cannot fail
//! proves nothing.

use crate::common::{lowered, problem};
use stencilc_compiler::cuda;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::Data;
use stencilc_runtime::emulate::{Compiler, Emulator, Settings, Source};
use stencilc_runtime::problem::Problem;
use stencilc_runtime::verify::{Mismatch, Verdict, compare, expect, judge, plan_for};

const GRID: Grid = Grid::rows(19, 7, 3);
const TWO: &str = "stencil two { in a; out first, second; first = a[i-1] + a[i+1]; second = 2 * a }";

fn two() -> Problem {
    problem(&lowered("two", TWO)[0], Precision::F64, GRID, &[])
}

/// What verification says of the kernel of `two` with `right` replaced by `wrong`.
fn verdict(storage: &str, right: &str, wrong: &str) -> Verdict {
    let problem = two();
    let expected = expect(&problem, &|_| {}).unwrap();
    let plan = plan_for(&problem, &Choices { storage: storage.into(), ..Choices::default() }).unwrap();
    let mut kernel = cuda::print(&plan).unwrap();
    assert_eq!(kernel.text.matches(right).count(), 1, "{right} in\n{}", kernel.text);
    kernel.text = kernel.text.replace(right, wrong);
    let compiler = Compiler::find().unwrap();
    let loaded = compiler.build(&[Source::from(&kernel)], &Settings::default()).unwrap().remove(0);
    judge(&Emulator::default(), &plan, &kernel, &loaded, &problem, &expected).unwrap()
}

/// The same with a statement before the last of the kernel.
fn with(statement: &str) -> Verdict {
    verdict("regular", "second[c] = ", &format!("{statement}\n    second[c] = "))
}

fn failed(verdict: Verdict) -> (Vec<Mismatch>, String) {
    match verdict {
        Verdict::Failed { mismatches, damage, .. } => (mismatches, damage.join("; ")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_right_kernel_is_equal() {
    assert!(matches!(with(""), Verdict::Equal { cells } if cells == 2 * 17 * 7 * 3));
}

#[test]
fn one_bit_of_one_cell_of_the_second_output_is_told() {
    let off = "second[c] = (i == 5 && j == 3 && k == 1 ? 1.0 + 2.220446049250313e-16 : 1.0) *";
    let (mismatches, damage) = failed(verdict("regular", "second[c] =", off));
    assert_eq!((mismatches.len(), damage.as_str()), (1, ""));
    let Mismatch { field, cell, cells, .. } = &mismatches[0];
    assert_eq!((field.as_str(), cell.as_str(), *cells), ("second", "i=5, j=3, k=1", 1));
}

#[test]
fn a_cell_that_is_not_written_is_told() {
    let (mismatches, _) = failed(verdict("regular", "first[c] =", "if (i != 18 - 1) first[c] ="));
    assert_eq!((mismatches[0].field.as_str(), mismatches[0].cells), ("first", 7 * 3));
}

#[test]
fn a_cell_of_the_halo_that_is_written_is_told() {
    let (mismatches, _) = failed(with("if (i == 1) first[c - 1] = 1.0;"));
    assert_eq!((mismatches[0].cell.as_str(), mismatches[0].cells), ("i=0, j=0, k=0", 7 * 3));
}

#[test]
fn bytes_that_belong_to_no_cell_are_looked_at() {
    // A row has 19 cells and room for 32.
    let (mismatches, damage) = failed(with("if (i == 1 && j == 2 && k == 1) first[c + 24] = 0.0;"));
    assert!(mismatches.is_empty() && damage.contains("`first`: padding was overwritten"), "{damage}");
    // 120 bytes stand before the first cell, and a guard before them.
    let (mismatches, damage) = failed(with("reinterpret_cast<char*>(first)[-140] = 0;"));
    assert!(mismatches.is_empty() && damage.contains("`first`: guard bytes were overwritten"), "{damage}");
}

#[test]
fn inputs_and_tables_that_are_written_are_told() {
    // Nobody reads a corner of the halo.
    let (_, damage) = failed(with("if (i == 1 && j == 0 && k == 0) const_cast<double*>(a)[-1] = 0.0;"));
    assert!(damage.contains("guard") || damage.contains("`a`: an input was overwritten"), "{damage}");
    let (_, damage) = failed(with("if (i == 17 && j == 6 && k == 2) const_cast<double*>(a)[c] = 9.0;"));
    assert!(damage.contains("`a`: an input was overwritten"), "{damage}");
    let wrong = "if (cell == cell_first) const_cast<int*>(pattern)[0] = 9;\n    second[c] =";
    let (mismatches, damage) = failed(verdict("compressed", "second[c] =", wrong));
    assert!(mismatches.is_empty() && damage == "the storage's table 0 was overwritten", "{damage}");
}

#[test]
fn zeros_of_different_sign_differ_and_nan_equals_nan_alone() {
    let problem = two();
    let cells = GRID.columns() * GRID.nk;
    let differ = |expected: f64, found: f64| {
        let (expected, found) = (vec![expected; cells], vec![found; cells]);
        let single = |values: &[f64]| Data::F32(values.iter().map(|&x| x as f32).collect());
        let in_single = compare(&problem, "first", &single(&expected), &single(&found));
        let in_double = compare(&problem, "first", &Data::F64(expected), &Data::F64(found));
        assert_eq!(in_single.is_some(), in_double.is_some());
        in_double.is_some()
    };
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 0x8000_0000_0000_0001);
    assert!(!differ(1.0, 1.0) && !differ(f64::NAN, other_nan));
    assert!(differ(0.0, -0.0) && differ(-0.0, 0.0));
    assert!(differ(f64::NAN, 1.0) && differ(1.0, f64::NAN) && differ(f64::INFINITY, f64::NAN));
}

#[test]
fn what_would_prove_nothing_is_refused() {
    let refused = |text: &str| {
        let problem = problem(&lowered("text", text)[0], Precision::F64, GRID, &[]);
        expect(&problem, &|_| {}).unwrap_err().message
    };
    assert!(refused("stencil same { in a; out b; b = if a > 2 { a } else { 1 } }").contains("are the same"));
    assert!(refused("stencil nan { in a; out b; b = sqrt(a - 1.5) }").contains("are not finite"));
}

#[test]
fn a_branch_that_was_never_taken_is_named() {
    let text = "stencil one_sided { in a; out b; b = if a > 2 { a } else { 2 * a } }";
    let expected = expect(&problem(&lowered("text", text)[0], Precision::F64, GRID, &[]), &|_| {}).unwrap();
    let sides: Vec<bool> = expected.untaken.iter().map(|(_, side)| *side).collect();
    assert_eq!(sides, [true]);
    let text = text.replace('>', "<");
    let expected = expect(&problem(&lowered("text", &text)[0], Precision::F64, GRID, &[]), &|_| {}).unwrap();
    let sides: Vec<bool> = expected.untaken.iter().map(|(_, side)| *side).collect();
    assert_eq!(sides, [false]);
}
