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
