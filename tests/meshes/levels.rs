//! Levels of a mesh that a call does not compute.

use std::collections::BTreeMap;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::source::Source;
use stencilc_runtime::mesh::made::{Division, icosahedral};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::driver::Driver;
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::{Array, Data};

const LEVELS: usize = 4;

const TEXT: &str = "mesh sphere { set cell; levels k }
stencil copy over sphere.cell { in a; out b; b = a }
stencil shift over sphere.cell { in a; out b; b = a[k-1] }
stencil blend over sphere.cell { in a; inc b; b += a[k-1] }
program p over sphere {
    inout a on cell
    out b, c, d, f on cell
    b = copy(a)
    c = copy(b)
    repeat 2 { b = shift(b) }
    let e = shift(a)
    c = copy(e)
    d = copy(a)
    d = blend(e, d)
    repeat 2 { f = blend(a) }
    a = shift(a)
}
";

/// What is computed there, and `let`s, have no old values; what is declared keeps them.
#[test]
fn levels_that_are_not_computed_keep_what_was_there() {
    let mesh = icosahedral(Division { root: 1, bisections: 0 }, 1.0).unwrap();
    let lowered = stencilc_compiler::check(&Source::new("levels.stn", TEXT));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let program = &lowered.mesh_programs[0];
    let cells = 20;
    let numbers = (0..LEVELS * cells).map(|at| (at / cells) as f64).collect();
    let array = Array { shape: vec![LEVELS, cells], data: Data::F64(numbers) };
    let problem = MeshProblem::new(Request {
        program,
        precision: Precision::F64,
        contract: true,
        mesh,
        levels: None,
        arrays: BTreeMap::from([("a".to_owned(), array)]),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Inputs,
    })
    .unwrap();
    let interpreter = Interpreter::new(&problem);
    let mut driver = Driver::new(&problem, &interpreter).unwrap();
    driver.run(&mut |_, _| Ok(())).unwrap();
    let results = driver.results().unwrap().into_iter().map(|(id, data)| {
        let data = data.unwrap();
        let column: Vec<f64> = (0..LEVELS).map(|level| data.get(level * cells + 7)).collect();
        (program.program.variables[id].name.as_str(), column)
    });
    let results: BTreeMap<&str, Vec<f64>> = results.collect();
    assert_eq!(results["a"], [0.0, 0.0, 1.0, 2.0]);
    assert_eq!(results["b"], [0.0, 0.0, 0.0, 1.0]);
    assert!(results["c"][0].is_nan() && results["c"][1..] == [0.0, 1.0, 2.0]);
    // Time and again from 0, on all levels.
    assert_eq!(results["f"], [0.0, 0.0, 1.0, 2.0]);
    // NaN below is not looked at by the last level alone.
    assert!(results["d"][0] == 0.0 && results["d"][1].is_nan() && results["d"][2..] == [2.0, 4.0]);
}
