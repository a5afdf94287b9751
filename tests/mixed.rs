//! Values of single precision among others: the bits that `f32` gives, on grids and over meshes, and in sweeps.

use crate::common::lowered;
use std::collections::BTreeMap;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Handle, Precision, Stencil};
use stencilc_compiler::source::Source;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::made::{Perturbed, triangles};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::{MeshProblem, Request as MeshRequest, alone};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::test::interpreted;
use stencilc_runtime::{Array, Data};

/// Cells whose numbers are of all magnitudes, some of them such as are no normal numbers of single precision.
const CELLS: usize = 40_000;

fn numbers(seed: u64) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let special = [0.0, -0.0, 1e-45, -3e-39, f32::MIN_POSITIVE, f32::MAX, -1.0, 1.0 / 3.0];
    let mut number = || match rng.usize(0..8) {
        0 => special[rng.usize(0..special.len())],
        1 => f32::from_bits(rng.u32(0..0x7f80_0000) | rng.u32(0..2) << 31),
        _ => rng.f32() * 4.0 - 2.0,
    };
    (0..CELLS).map(|_| number()).collect()
}

fn problem(stencil: &Stencil, grid: Grid, arrays: &[(&str, &[f32])]) -> Problem {
    let array = |&(name, numbers): &(&str, &[f32])| {
        let shape = vec![grid.nk, grid.nj, grid.ni];
        (name.to_owned(), Array { shape, data: Data::F32(numbers.to_vec()) })
    };
    Problem::new(Request {
        stencil,
        precision: Precision::F64,
        contract: true,
        grid: Some(grid),
        adjacency: None,
        arrays: arrays.iter().map(array).collect(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Nothing,
    })
    .unwrap()
}

/// An output as the numbers of single precision that it holds.
fn output(problem: &Problem, name: &str) -> Vec<f32> {
    let field = problem.stencil.field_named(name).unwrap();
    match interpreted(problem).unwrap().outputs.swap_remove(field.index()).unwrap() {
        Data::F32(numbers) => numbers,
        other => panic!("{other:?}"),
    }
}

/// One function of two numbers, as a stencil and in Rust.
type Operation = (&'static str, fn(f32, f32) -> f32);

const OPERATIONS: &[Operation] = &[
    ("a + b", |a, b| a + b),
    ("a - b", |a, b| a - b),
    ("a * b", |a, b| a * b),
    ("a / b", |a, b| a / b),
    ("a * b + a", |a, b| a * b + a),
    ("0.1 * a - b / 3", |a, b| 0.1 * a - b / 3.0),
    ("sqrt(abs(a)) * b", |a, b| a.abs().sqrt() * b),
    ("max(a, 0.3) + min(b, a)", |a, b| (if a > 0.3 { a } else { 0.3 }) + (if b < a { b } else { a })),
    ("if a < 0.7 { -a } else { b * b }", |a, b| if a < 0.7 { -a } else { b * b }),
    ("(a + 2) ** 3", |a, _| (a + 2.0) * (a + 2.0) * (a + 2.0)),
];

#[test]
fn operations_of_single_precision_are_those_of_the_processor() {
    let (a, b) = (numbers(1), numbers(2));
    for (text, of) in OPERATIONS {
        let text = format!("type vp = f32\nstencil s {{ in a, b: vp; out r: vp; r = {text} }}");
        let stencil = &lowered("mixed", &text)[0];
        let result = output(&problem(stencil, Grid::rows(CELLS, 1, 1), &[("a", &a), ("b", &b)]), "r");
        for (cell, result) in result.iter().enumerate() {
            let expected = of(a[cell], b[cell]);
            let alike = result.to_bits() == expected.to_bits() || result.is_nan() && expected.is_nan();
            assert!(alike, "{text}: {result:e}, not {expected:e}, of {:e} and {:e}", a[cell], b[cell]);
        }
    }
}

/// A type can be said of a `let`, of a parameter, and by converting.
#[test]
fn a_type_is_said_in_several_ways() {
    let a = numbers(3);
    let text = "stencil s { in a: f32; param p: f32 = 0.1; out x, y, z: f32
        let b: f32 = a
        let c = f32(a) * 0.1
        x = b * 0.1
        y = c
        z = b * p
    }";
    let problem = problem(&lowered("mixed", text)[0], Grid::rows(CELLS, 1, 1), &[("a", &a)]);
    let expected: Vec<u32> = a.iter().map(|a| (a * 0.1).to_bits()).collect();
    for name in ["x", "y", "z"] {
        let result: Vec<u32> = output(&problem, name).iter().map(|own| own.to_bits()).collect();
        assert_eq!(result, expected, "{name}");
    }
}

#[test]
fn sweeps_carry_numbers_of_single_precision() {
    const GRID: Grid = Grid::rows(20, 10, 9);
    let draw = |seed| numbers(seed).into_iter().filter(|own| own.abs() > 0.1 && own.abs() < 2.0).take(1800);
    let (a, d): (Vec<f32>, Vec<f32>) = (draw(4).collect(), draw(5).collect());
    // Said of each value, and found out from what it is made of.
    for typed in [": vp", ""] {
        sweeps_as_said(typed, &a, &d, GRID);
    }
}

fn sweeps_as_said(typed: &str, a: &[f32], d: &[f32], grid: Grid) {
    let text = "type vp = f32
    stencil solve { in a, d: vp; out x: vp
        sweep k up {
            let m: vp = if k == 0 { 1 / (a + 3) } else { 1 / (a + 3 - a * cp[k-1]) }
            let cp: vp = 0.3 * m
            let dp: vp = if k == 0 { d * m } else { (d - a * dp[k-1]) * m }
        }
        sweep k down { x = if k == nk-1 { dp } else { dp - cp * x[k+1] } }
    }";
    let text = text.replace(": vp =", &format!("{typed} ="));
    let result = output(&problem(&lowered("mixed", &text)[0], grid, &[("a", a), ("d", d)]), "x");
    let columns = grid.ni * grid.nj;
    for column in 0..columns {
        let at = |k: usize| k * columns + column;
        let (mut cp, mut dp) = (vec![0.0f32; grid.nk], vec![0.0f32; grid.nk]);
        for k in 0..grid.nk {
            let (a, d) = (a[at(k)], d[at(k)]);
            let m = if k == 0 { 1.0 / (a + 3.0) } else { 1.0 / (a + 3.0 - a * cp[k - 1]) };
            cp[k] = 0.3 * m;
            dp[k] = if k == 0 { d * m } else { (d - a * dp[k - 1]) * m };
        }
        let mut x = dp[grid.nk - 1];
        for k in (0..grid.nk).rev() {
            x = if k == grid.nk - 1 { dp[k] } else { dp[k] - cp[k] * x };
            assert_eq!(result[at(k)].to_bits(), x.to_bits(), "column {column}, level {k}");
        }
    }
}

/// What a sum over a map adds of numbers of single precision, and what of others.
#[test]
fn over_a_mesh_the_same_holds() {
    let text = "type vp = f32
    mesh tri { set node, edge, cell; map cell.nodes -> node[3] }
    stencil s over tri.cell { in u: vp on node; in w on node; out narrow: vp; out wide
        narrow = sum(n in nodes) { 0.1 * u[n] }
        wide = sum(n in nodes) { u[n] * w[n] }
    }";
    let lowered = stencilc_compiler::check(&Source::new("mixed.stn", text));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let program = alone(&lowered.mesh_stencils[0]);
    let mesh = triangles(8, 6, Perturbed::default()).unwrap();
    let nodes = mesh.sets.iter().find(|set| set.name == "node").unwrap().size;
    let map = mesh.maps.iter().find(|map| map.name == "nodes").unwrap();
    let triples: Vec<[usize; 3]> = map.table.chunks(3).map(|own| [0, 1, 2].map(|slot| own[slot] as usize)).collect();
    let u: Vec<f32> = numbers(6).into_iter().filter(|own| own.abs() > 0.1 && own.abs() < 2.0).take(nodes).collect();
    let w: Vec<f64> = u.iter().map(|u| f64::from(*u) * 0.7 + 0.1).collect();
    let array = |data| Array { shape: vec![nodes], data };
    let problem = MeshProblem::new(MeshRequest {
        program: &program,
        precision: Precision::F64,
        contract: false,
        mesh,
        levels: None,
        arrays: BTreeMap::from([
            ("u".to_owned(), array(Data::F32(u.clone()))),
            ("w".to_owned(), array(Data::F64(w.clone()))),
        ]),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Nothing,
    })
    .unwrap();
    let interpreter = Interpreter::new(problem);
    let mut driver = Driver::new(&interpreter).given().unwrap();
    driver.finish().unwrap();
    for (id, data) in driver.results().unwrap() {
        let data = data.unwrap();
        for (cell, &[a, b, c]) in triples.iter().enumerate() {
            let expected = match program.program.variables[id].name.as_str() {
                "narrow" => f64::from(0.1 * u[a] + 0.1 * u[b] + 0.1 * u[c]),
                _ => [a, b, c].map(|n| f64::from(u[n]) * w[n]).into_iter().reduce(|sum, own| sum + own).unwrap(),
            };
            assert_eq!(data.get(cell), expected, "cell {cell}");
        }
    }
}

/// A value of a sweep that is made of written numbers alone is `real`, whatever else there is.
#[test]
fn numbers_that_are_written_make_no_single_precision_by_themselves() {
    let text = "type vp = f32
    stencil s { in a: vp; out r; sweep k up { let n = if k == 0 { 0.1 } else { n[k-1] * 1.1 } }; r = n + 0 * real(a) }";
    let a = vec![1.0f32; 3];
    let problem = problem(&lowered("mixed", text)[0], Grid::rows(1, 1, 3), &[("a", &a)]);
    let field = problem.stencil.field_named("r").unwrap();
    let Data::F64(numbers) = interpreted(&problem).unwrap().outputs.swap_remove(field.index()).unwrap() else {
        panic!()
    };
    assert_eq!(numbers, [0.1, 0.1 * 1.1, 0.1 * 1.1 * 1.1]);
}
