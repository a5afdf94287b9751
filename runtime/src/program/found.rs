//! Small programs that were computed wrongly once. Random ones found them.

use super::ProgramProblem;
use super::tests::{emulated, interpreted, problem, program, same};
use crate::array::Data;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Fuse, Fusing};

/// A row of four cells, and what each field holds in the end, given what they hold before.
struct Found {
    text: &'static str,
    then: fn(&[[f64; 4]]) -> Vec<[f64; 4]>,
}

const NAN: f64 = f64::NAN;

const FOUND: [Found; 6] = [
    // What a call reads need not lie around the cell.
    Found {
        text: "program own { inout a; let b = left(a); a = right(b) }
               stencil left { in a; out b; b = a[i-1] }
               stencil right { in a; out b; b = a[i+2] }",
        then: |given| vec![[given[0][1], given[0][2], given[0][2], given[0][3]]],
    },
    // What nobody computes of a new name is nothing, though a buffer is used again.
    Found {
        text: "program own { inout a; out c; c = same(a); c = same(c); let b = left(c); a = b }
               stencil left { in a; out b; b = a[i-1] }
               stencil same { in a; out b; b = a }",
        then: |given| {
            let [a, _] = given else { return Vec::new() };
            vec![[NAN, a[0], a[1], a[2]], *a]
        },
    },
    // A name that a loop makes is new each time, whatever it was in the end.
    Found {
        text: "program own { in a; out c; repeat 2 { let b = left(a); c = b; b = a } }
               stencil left { in a; out b; b = a[i-1] }",
        then: |given| {
            let [a, _] = given else { return Vec::new() };
            vec![*a, [NAN, a[0], a[1], a[2]]]
        },
    },
    // A name that changes before calls become one, and that they give a value.
    Found {
        text: "program own { inout a, b; in c; b = c; b, a = both(b) }
               stencil both { in a; out b, c; b = 2*a; c = 3*a }",
        then: |given| {
            let c = given[2];
            vec![c.map(|x| 3.0 * x), c.map(|x| 2.0 * x), c]
        },
    },
    // One value by two rules in one call.
    Found {
        text: "program own {
                   inout a, b
                   boundary a { i: copy }
                   boundary b { i: value(7.5) }
                   b = a
                   a = across(a, b)
               }
               stencil across { in a, b; out c; c = a[i+1] - b[i-1] }",
        then: |given| {
            let a = given[0];
            vec![[a[1] - 7.5, a[2] - a[0], a[3] - a[1], a[3] - a[2]], a]
        },
    },
    // Beyond the edge that a value reaches there is something, though it does not reach the other one.
    Found {
        text: "program own { in a; out c; boundary { i low: copy }; let b = around(a); c = left(b) }
               stencil around { in a; out b; b = a[i-1] + a[i+1] }
               stencil left { in a; out b; b = a[i-1] }",
        then: |given| {
            let [a, _] = given else { return Vec::new() };
            let b = [a[0] + a[1], a[0] + a[2], a[1] + a[3]];
            vec![*a, [b[0], b[0], b[1], b[2]]]
        },
    },
];

#[test]
fn what_was_wrong_once_stays_mended() {
    for Found { text, then } in FOUND {
        let problem = problem(&program(text), Grid::rows(4, 1, 1), Precision::F64, &[]).unwrap();
        let outer: Vec<_> = problem.staged.program.outer().collect();
        let given = outer.iter().map(|&variable| match problem.held_before(variable).unwrap() {
            Data::F64(numbers) => <[f64; 4]>::try_from(numbers.as_slice()).unwrap(),
            other => panic!("{other:?}"),
        });
        let given: Vec<[f64; 4]> = given.collect();
        let expected: Vec<Option<Data>> = then(&given).iter().map(|row| Some(Data::F64(row.to_vec()))).collect();
        let written = |found: Vec<Option<Data>>| -> Vec<Option<Data>> {
            found.into_iter().zip(&given).map(|(own, given)| own.or(Some(Data::F64(given.to_vec())))).collect()
        };
        same(&written(interpreted(&problem)), &expected, text);
        for fuse in [Fuse::Nothing, Fuse::Pointwise, Fuse::Everything] {
            let staged = problem.staged.fused(Fusing { fuse, times: 2, wraps: false, whole: false });
            let fused = ProgramProblem { staged, ..problem.clone() };
            same(&written(interpreted(&fused)), &expected, &format!("{fuse:?} {text}"));
        }
        let choices = Choices { contract: false, block: [8, 1, 1], ..Choices::default() };
        same(&written(emulated(&problem, &choices).unwrap()), &expected, &format!("kernels {text}"));
    }
}
