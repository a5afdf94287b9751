//! Which buffers a program on its way asks for, and whether loops that are recorded leave the same bits.

use super::cpu::Interpreter;
use super::tests::{fusible, problem, program, same};
use super::*;
use crate::driver::recorder::Recorder;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::program::{Fuse, Fusing};

#[test]
fn buffers_rotate() {
    for (text, grid) in fusible() {
        let problem = problem(&program(&text), grid, Precision::F64, &[("n", "3")]).unwrap();
        let longer = problem.with_times(30);
        let loads = |problem: &ProgramProblem| {
            let backend = Recorder::new(Interpreter::new(problem.clone()), false);
            Driver::new(&backend).given().unwrap().finish().unwrap();
            backend.loads.get()
        };
        assert_eq!(loads(&problem), loads(&longer), "{text}");
    }
}

/// Loops that are one launch are not recorded, nor are those around them.
#[test]
fn loops_of_one_launch_are_not_recorded() {
    let text = "
        program nested {
            inout a, q; param n: int = 40
            boundary { i: periodic, j: periodic }
            repeat n { repeat 5 { a = blur(a) }; q = mix(q, a); repeat 6 { q = blur(q) } }
        }
        stencil blur { in a; out b; b = 0.25*(a[i-1] + a[i+1] + a[j-1] + a[j+1]) }
        stencil mix { in q, a; out r; r = 0.5*q + 0.5*a }
    ";
    let problem = problem(&program(text), Grid::rows(8, 8, 2), Precision::F64, &[]).unwrap();
    let stages = [false, true].map(|whole| {
        let fusing = Fusing { fuse: Fuse::Everything, times: 1, wraps: false, whole };
        let own = ProgramProblem { staged: problem.staged.fused(fusing), ..problem.clone() };
        let backend = Recorder::new(Interpreter::new(own.clone()), true);
        Driver::new(&backend).given().unwrap().finish().unwrap();
        backend.computed.get()
    });
    // Three launches each time, or recordings.
    assert_eq!(stages[1], 3 * 40);
    assert!(stages[0] < 12 * 40, "{stages:?}");
}

/// Loops that are recorded leave the same bits, whenever one looks.
#[test]
fn recorded_loops_equal_others() {
    for (text, grid) in fusible() {
        let original = problem(&program(&text), grid, Precision::F64, &[]).unwrap().with_times(300);
        for times in [1, 3] {
            let fusing = Fusing { fuse: Fuse::Everything, times, wraps: false, whole: false };
            let problem = ProgramProblem { staged: original.staged.fused(fusing), ..original.clone() };
            for every in [None, Some(50), Some(7)] {
                let [plain, recorded] = [false, true].map(|records| {
                    let backend = Recorder::new(Interpreter::new(problem.clone()), records);
                    let mut driver = Driver::new(&backend).given().unwrap();
                    let mut seen = Vec::new();
                    let mut done = 0;
                    driver
                        .run(every, &mut |driver, times| {
                            done += times;
                            if every.is_some_and(|every| done % every == 0) {
                                seen.extend(results(&problem, driver)?);
                            }
                            Ok(())
                        })
                        .unwrap();
                    assert_eq!(done, 300 * problem.staged.steps.iter().filter(|step| step.times() > 0).count() as u64);
                    seen.extend(results(&problem, &driver).unwrap());
                    (seen, backend.computed.get())
                });
                same(&recorded.0, &plain.0, &format!("{text} {times} {every:?}"));
                let (all, asked) = (plain.1, recorded.1);
                // Where steps are left over, buffers may not come back.
                let has_rest = every == Some(7) || every.is_some() && times > 1;
                assert!(has_rest || 2 * asked < all, "{text} {times} {every:?}: {asked} of {all}");
            }
        }
    }
}
