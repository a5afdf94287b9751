//! Every kernel on a real GPU against the interpreter, where there is one.

use crate::common::{combinations_for, lowered, problem, stencils};
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::cuda::{Gpu, availability};
use stencilc_runtime::verify::{OfStencil, Tools, Verdict, expect, verify};

#[test]
fn every_combination_equals_the_interpreter() {
    if availability().is_err() {
        println!("skipped: no GPU");
        return;
    }
    let tools = Tools::on_gpu(Arc::new(Gpu::open(0).unwrap()));
    let mut texts = stencils();
    texts.push(("constructs".into(), include_str!("constructs.stn").into()));
    // What only a GPU showed.
    texts.push(("three_whole_numbers".into(), include_str!("../testing/found/three_whole_numbers.stn").into()));
    texts.push(("zero_or_less".into(), include_str!("../testing/found/zero_or_less.stn").into()));
    texts.push(("minus_zero_or_one".into(), include_str!("../testing/found/minus_zero_or_one.stn").into()));
    texts.push(("not_negative".into(), include_str!("../testing/found/not_negative.stn").into()));
    texts.push(("not_a_number".into(), include_str!("../testing/found/not_a_number.stn").into()));
    texts.push(("whole_by_zero".into(), include_str!("../testing/found/whole_by_zero.stn").into()));
    texts.push(("equal_by_zero".into(), include_str!("../testing/found/equal_by_zero.stn").into()));
    texts.push(("sign_of_nan".into(), include_str!("../testing/found/sign_of_nan.stn").into()));
    let mut kernels = 0;
    for (name, text) in texts {
        for stencil in lowered(&name, &text) {
            for precision in [Precision::F64, Precision::F32] {
                for grid in [Grid::rows(37, 29, 9), Grid::rows(131, 70, 20)] {
                    let problem = problem(&stencil, precision, grid, &[]);
                    let expected = expect(&problem, &|_| {}).unwrap();
                    for choices in combinations_for(&stencil) {
                        for (block, wide) in [([64, 2, 2], false), ([32, 1, 4], true)] {
                            let choices = Choices { precision, block, wide, ..choices.clone() };
                            let subject = OfStencil { problem: &problem, expected: &expected };
                            let own = std::slice::from_ref(&choices);
                            let verdict = verify(&subject, own, &tools, &|_| {}).unwrap().remove(0);
                            assert!(matches!(verdict, Verdict::Equal { .. }), "{name} {choices:?} {grid}: {verdict:?}");
                            kernels += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{kernels} kernels equal the interpreter");
}
