//! Checkpoints that fit, and those that do not.

use super::*;
use crate::program::ProgramProblem;
use crate::program::cpu::Interpreter;
use crate::program::results;
use crate::program::tests::{problem, program};
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::program::{Fuse, Fusing};

/// A program on a grid of 4 x 3 x 2, and its checkpoint at the beginning.
fn saved(text: &str) -> (ProgramProblem, Checkpoint) {
    let problem = problem(&program(text), Grid::rows(4, 3, 2), Precision::F64, &[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("way.npz");
    let backend = Interpreter::new(problem.clone());
    let driver = Driver::new(&backend).given().unwrap();
    Checkpoint::of(&driver, &About::new(&problem, &OfText::default(), false)).unwrap().save(&path).unwrap();
    let found = load(&path).unwrap();
    assert!(goes_on(&problem, &found));
    (problem, found)
}

fn goes_on(problem: &ProgramProblem, found: &Checkpoint) -> bool {
    let backend = Interpreter::new(problem.clone());
    let is_restored = found.restore(&mut Driver::new(&backend)).is_ok();
    let is_checked = found.check(&About::new(problem, &OfText::default(), false), problem).is_ok();
    // What does not fit its place is found out when it is put there.
    assert!(is_checked || !is_restored);
    is_restored
}

#[test]
fn a_field_that_a_checkpoint_lacks_is_not_made_up() {
    let (problem, mut found) =
        saved("program own { inout a; in c; a = one(a, c) }\n stencil one { in a, c; out b; b = a + c }");
    found.about.values.pop();
    assert!(!goes_on(&problem, &found));
}

/// Whoever comes second to an array is looked at as whoever comes first: buffers have no lengths to those who compute.
#[test]
fn an_array_fits_all_that_hold_it() {
    let text = |declared: &str| {
        format!(
            "program own {{ inout a; {declared}; a = one(a, z) }}
             stencil one {{ in a; {declared}; out b; b = a + if z > 0 {{ 1.0 }} else {{ 0.0 }} }}"
        )
    };
    for declared in ["in z on (k)", "in z on (i,j)", "in z: int", "in z on (i,j,k+1)", "in z"] {
        let (problem, found) = saved(&text(declared));
        for name in found.arrays.keys() {
            let mut one = found.clone();
            one.about.values.iter_mut().for_each(|held| held.array.clone_from(name));
            assert_eq!(goes_on(&problem, &one), declared == "in z", "{declared}: all hold {name}");
        }
        let mut twice = found.clone();
        twice.about.values.push(found.about.values[0].clone());
        assert!(!goes_on(&problem, &twice), "{declared}");
    }
}

const LOOPS: &str = "program own {
        inout a; param n: int = 3; param m: int = 2
        boundary { i: periodic }
        a = one(a); a = two(a)
        repeat n { a = one(a) }
        a = two(a)
        repeat m { a = two(a) }
        a = one(a)
    }
    stencil one { in a; out b; b = 0.5*(a[i-1] + a[i+1]) }
    stencil two { in a; out b; b = a*(1 - a) }";

#[test]
fn a_position_is_one_where_a_program_can_be() {
    let (problem, found) = saved(LOOPS);
    let (end, most) = (problem.staged.program.actions.len(), usize::MAX);
    let good = [(0, 0), (2, 0), (2, 1), (2, 3), (4, 2), (end, 0)];
    let bad = [(0, 1), (1, 0), (1, most), (2, 4), (2, most), (3, 0), (4, 3), (end, 1), (end + 1, 0), (most, most)];
    for (position, is_good) in good.map(|own| (own, true)).into_iter().chain(bad.map(|own| (own, false))) {
        let mut found = found.clone();
        found.about.position = Position { step: position.0, time: position.1 };
        assert_eq!(goes_on(&problem, &found), is_good, "{position:?}");
    }
}

/// Plans join calls, so that their steps are others.
#[test]
fn another_plan_goes_on_where_one_stopped() {
    let plain = problem(&program(LOOPS), Grid::rows(4, 3, 2), Precision::F64, &[]).unwrap();
    let fusing = Fusing { fuse: Fuse::Pointwise, times: 1, wraps: false, whole: false };
    let fused = ProgramProblem { staged: plain.staged.fused(fusing), ..plain.clone() };
    assert_ne!(fused.staged.steps.len(), plain.staged.steps.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("way.npz");
    let about = About::new(&plain, &OfText::default(), false);
    let whole = |problem: &ProgramProblem, driver: &Driver<&Interpreter>| results(problem, driver).unwrap();
    for (from, to) in [(&plain, &fused), (&fused, &plain), (&fused, &fused)] {
        let (before, after) = (Interpreter::new(from.clone()), Interpreter::new(to.clone()));
        let mut driver = Driver::new(&before).given().unwrap();
        let mut ways = Vec::new();
        driver
            .run(None, &mut |driver, _| {
                Checkpoint::of(driver, &about)?.save(&path)?;
                ways.push(load(&path)?);
                Ok(())
            })
            .unwrap();
        let expected = whole(from, &driver);
        Checkpoint::of(&driver, &about).unwrap().save(&path).unwrap();
        ways.push(load(&path).unwrap());
        assert_eq!(ways.len(), 6);
        for (n, way) in ways.iter().enumerate() {
            way.check(&about, &plain).unwrap();
            let mut driver = Driver::new(&after);
            way.restore(&mut driver).unwrap();
            assert_eq!(driver.done(), (n + 1).min(5) as u64);
            driver.finish().unwrap();
            let same =
                whole(to, &driver).iter().flatten().zip(expected.iter().flatten()).all(|(own, other)| own == other);
            assert!(same, "from way {n}");
        }
    }
}
