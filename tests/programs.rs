//! Programs that come along, against what others compute.

use std::collections::BTreeMap;
use std::path::Path;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::source::Source;
use stencilc_runtime::problem::Request;
use stencilc_runtime::program::cpu::Interpreter;
use stencilc_runtime::program::{ProgramProblem, results, started};
use stencilc_runtime::{Array, Data, npy};

/// What the interpreter makes of a program that comes along, by the name of each output.
fn run(
    name: &str,
    grid: Grid,
    arrays: BTreeMap<String, Array>,
    settings: &[(&str, String)],
    contract: bool,
) -> BTreeMap<String, Data> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("stencils").join(name).with_extension("stn");
    let lowered = stencilc_compiler::check(&Source::new(name, std::fs::read_to_string(path).unwrap()));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let program = &lowered.programs[0];
    let facade = program.facade();
    let request = Request {
        stencil: &facade,
        precision: Precision::F64,
        contract,
        grid: Some(grid),
        adjacency: None,
        arrays,
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        seed: 0,
        cast: false,
        draw_all: false,
    };
    let problem = ProgramProblem::new(program, request).unwrap();
    let backend = Interpreter::new(&problem);
    let mut driver = started(&problem, &backend).unwrap();
    driver.run(None, &mut |_, _| Ok(())).unwrap();
    let outputs = results(&problem, &driver).unwrap();
    let names = facade.fields.iter().map(|(_, field)| field.name.clone());
    names.zip(outputs).filter_map(|(name, data)| Some((name, data?))).collect()
}

fn array(shape: [usize; 3], numbers: Vec<f64>) -> Array {
    Array { shape: shape.to_vec(), data: Data::F64(numbers) }
}

/// The square of figure 2 in F. Hoerold and T. Liniger, "Abstracted and low-level GPU programming comparison", ETH Zurich
/// 2023, after 1,024 steps. `tests/data/square.py` made the numbers.
#[test]
fn a_square_diffuses_as_numpy_says() {
    let n = 64;
    let is_inside = |at: usize| (n / 4..3 * n / 4).contains(&at);
    let square = (0..n * n).map(|cell| f64::from(u8::from(is_inside(cell % n) && is_inside(cell / n)))).collect();
    let given = BTreeMap::from([("phi".to_owned(), array([1, n, n], square))]);
    let expected = npy::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/square.npy")).unwrap().data;
    let found = &run("diffusion4", Grid::rows(n, n, 1), given, &[("steps", "1024".into())], false)["phi"];
    // NumPy fuses no multiplication and addition.
    let differing = (0..n * n).find(|&cell| found.bits(cell) != expected.bits(cell));
    assert_eq!((differing, found.len()), (None, expected.len()));
}

/// On a domain of one wave the exact solution is `exp(-k**4 t) * cos(k x)`. With the time step that stability allows, which goes
/// with the fourth power of the width, the error goes with the square of the width.
#[test]
fn diffusion_converges_in_second_order() {
    let error = |n: usize| {
        let (k, dx) = (2.0 * std::f64::consts::PI, 1.0 / n as f64);
        let alpha = 1.0 / 64.0;
        let dt = alpha * dx.powi(4);
        // The same time for all: until the wave is down to about a third.
        let steps = (1.0 / k.powi(4) / dt).round();
        let wave: Vec<f64> = (0..4 * n).map(|cell| (k * dx * (cell % n) as f64).cos()).collect();
        let given = BTreeMap::from([("phi".to_owned(), array([1, 4, n], wave.clone()))]);
        let settings = [("steps", format!("{steps}")), ("alpha", format!("{alpha}"))];
        let Data::F64(found) = &run("diffusion4", Grid::rows(n, 4, 1), given, &settings, true)["phi"] else {
            panic!("not f64")
        };
        let exact = (-k.powi(4) * dt * steps).exp();
        found.iter().zip(&wave).map(|(found, start)| (found - exact * start).abs()).fold(0.0, f64::max)
    };
    let [coarse, middle, fine] = [12, 24, 48].map(error);
    let orders = [(coarse / middle).log2(), (middle / fine).log2()];
    assert!(orders.iter().all(|order| (1.9..2.1).contains(order)), "{orders:?}: {coarse} {middle} {fine}");
}
