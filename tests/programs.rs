//! Programs that come along, against what others compute.

use crate::common::simulation::{Simulation, cells};
use std::path::Path;
use stencilc_compiler::grid::Grid;
use stencilc_runtime::npy;

/// The square of figure 2 in F. Hoerold and T. Liniger, "Abstracted and low-level GPU programming comparison", ETH Zurich
/// 2023, after 1,024 steps. `tests/data/square.py` made the numbers.
#[test]
fn a_square_diffuses_as_numpy_says() {
    let grid = Grid::rows(64, 64, 1);
    let is_inside = |at: f64| (16.0..48.0).contains(&at);
    let square = cells(grid, |i, j, _| f64::from(u8::from(is_inside(i) && is_inside(j))));
    let expected = npy::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/square.npy")).unwrap().data;
    // NumPy fuses no multiplication and addition.
    let simulation = Simulation {
        program: "diffusion4",
        grid,
        arrays: vec![("phi", square)],
        settings: vec![("steps", 1024.0)],
        contract: false,
    };
    let found = &simulation.run()["phi"];
    let differing = (0..expected.len()).find(|&cell| found.bits(cell) != expected.bits(cell));
    assert_eq!((differing, found.len()), (None, expected.len()));
}

/// What random numbers are drawn from for the inputs of a program, by their order.
fn ranges(program: &str) -> Vec<Option<(f64, f64)>> {
    let stencils = "stencil near { in a = 1..2; in n: int = 3..5; out b; b = n*a }\n\
                    stencil far { in a = 7..8; out b; b = a }\n\
                    stencil any { in a; out b; b = a }\n";
    let lowered =
        stencilc_compiler::check(&stencilc_compiler::source::Source::new("p.stn", format!("{stencils}{program}")));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    lowered.programs[0].variables.iter().filter(|(_, own)| own.role.is_some()).map(|(_, own)| own.range).collect()
}

#[test]
fn an_input_is_drawn_from_the_range_of_what_it_is_passed_to() {
    let (near, far) = (Some((1.0, 2.0)), Some((7.0, 8.0)));
    assert_eq!(ranges("program p { in a; in n: int; out b; b = near(a, n) }"), [near, Some((3.0, 5.0)), None]);
    // The first with a range, in the order of the calls; what the program says itself goes before.
    assert_eq!(ranges("program p { inout a; a = any(a); a = far(a) }"), [None], "what is computed was not given");
    assert_eq!(ranges("program p { in a; out b; b = any(a); b = far(a) }"), [far, None]);
    assert_eq!(ranges("program p { in a = 4..5; out b; b = far(a) }"), [Some((4.0, 5.0)), None]);
    assert_eq!(
        ranges("program p { in a; in n: int; out b; b = far(a); b = near(a, n) }"),
        [far, Some((3.0, 5.0)), None]
    );
    // Under other names, and in loops, where only the first turn gets what was given.
    assert_eq!(ranges("program p { in a; out b; let c = a; let d = c; b = far(d) }"), [far, None]);
    assert_eq!(ranges("program p { inout a, u; repeat 2 { let old = u; u = any(a); a = far(old) } }"), [None, far]);
}
