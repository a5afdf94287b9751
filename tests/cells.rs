//! Grids whose columns stand in no rows: every stencil, computed by the interpreter and cell by cell; what is computed;
//! shapes of arrays.

mod walk;

use crate::common::verify_emulated;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_compiler::ir::{self, Handle, Levels, Path, Precision, Stencil};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_runtime::emulate::{Compiler, Settings};
use stencilc_runtime::grid::{Quadtree, Refinement, in_rows};
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::verify::{Verdict, expect};
use stencilc_runtime::{Array, Data, Error, random};
use stencilc_testing::graph::{Graph, Shape};
use walk::{Walker, paths, walk};

/// ni x nj cells in rows.
fn plane(ni: usize, nj: usize) -> Adjacency {
    in_rows("plane", ni, nj).unwrap()
}

/// Cells whose neighbours are any others; few lack one.
fn anywhere(cells: usize, seed: u64) -> Adjacency {
    let list = |name: &str| {
        let Data::I32(numbers) = random::fill(stencilc_runtime::Element::I32, cells, 0.0, cells as f64, seed, name)
        else {
            panic!("whole numbers are drawn")
        };
        let missing = random::fill(stencilc_runtime::Element::F64, cells, 0.0, 1.0, seed, &format!("{name} missing"));
        let holed = numbers.iter().enumerate().map(|(cell, &to)| if missing.get(cell) < 0.005 { -1 } else { to });
        holed.collect::<Vec<i32>>()
    };
    Adjacency::new("anywhere", ["left", "right", "top", "bottom"].map(list), None).unwrap()
}

/// What is asked for, with everything drawn at random.
fn request<'a>(stencil: &'a Stencil, adjacency: &Arc<Adjacency>, nk: usize) -> Request<'a> {
    Request {
        stencil,
        precision: Precision::F64,
        contract: true,
        grid: Some(Grid::cells(adjacency.cells(), nk)),
        adjacency: Some(Arc::clone(adjacency)),
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 3,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Everything,
    }
}

/// Stencils of which one computes something on a single row, and one in a single column.
const LINES: &str = "
    stencil along { in a; in weight on (k); out r; let d = a[i+1] - a; let u = 2*weight; r = d - d[i-1] * u[i+30, j-1] }
    stencil across { in a; in m: bool on (i, j); out r; let d = a[j+2] - a; r = if m[j-1] { d } else { d[j-1] } }";

/// Every stencil that comes along, and every construct.
fn every() -> Vec<Stencil> {
    let constructs = format!("{}{LINES}", include_str!("constructs.stn"));
    let along = crate::common::stencils().into_iter().flat_map(|(name, text)| crate::common::lowered(&name, &text));
    // The recursion here knows no sweeps; `sweeps.rs` looks at those.
    along.chain(crate::common::lowered("constructs", &constructs)).filter(|stencil| stencil.sweeps.is_empty()).collect()
}

/// Computes a stencil and compares every element with the recursion; returns how many cells of a level are computed.
fn compare(stencil: &Stencil, precision: Precision, adjacency: &Arc<Adjacency>) -> usize {
    // As it was written, apart from the fused multiply-adds.
    let written = ir::contract(stencil);
    let mut found = HashMap::new();
    let all: BTreeSet<Path> =
        written.stores.iter().flat_map(|store| paths(&written, &store.body, &mut found)).collect();
    let expected: Vec<u32> = (0..adjacency.cells())
        .filter(|&cell| all.iter().all(|path| walk(adjacency, cell, path).is_some()))
        .map(|cell| cell as u32)
        .collect();
    let problem = match Problem::new(Request { precision, ..request(stencil, adjacency, 11) }) {
        Ok(problem) => problem,
        Err(error) => {
            assert!(expected.is_empty(), "{error}");
            assert!(error.message.contains("can compute none of the"), "{error}");
            return 0;
        }
    };
    let region = &problem.region;
    assert_eq!(region.column_numbers(problem.grid), expected, "{} on {}", stencil.name, adjacency.name.as_told());
    let mut outputs = problem.outputs.clone();
    let inputs = problem.inputs();
    interpret(&problem.job(&inputs), &mut outputs, &|_| ()).unwrap();
    let mut walker = Walker {
        stencil: &written,
        precision,
        grid: adjacency,
        nk: problem.grid.nk,
        params: &problem.params,
        inputs: &problem.inputs,
        found: HashMap::new(),
    };
    for store in &written.stores {
        let field = &written.fields[store.field];
        let before = problem.outputs[store.field.index()].as_ref().unwrap();
        let after = outputs[store.field.index()].as_ref().unwrap();
        let mut compared = vec![false; before.len()];
        for k in if field.place.levels == Levels::None { region.k.start..region.k.start + 1 } else { region.k.clone() }
        {
            for &cell in if field.place.horizontal { &expected[..] } else { &expected[..1] } {
                let level = if field.place.levels == Levels::None { 0 } else { k };
                let at = if field.place.horizontal { level * adjacency.cells() + cell as usize } else { level };
                let value = walker.value(&store.body, store.body.root(), Some(cell as usize), k as i64);
                let value = match after {
                    Data::F32(_) => Data::F32(vec![value.real() as f32]),
                    Data::F64(_) => Data::F64(vec![value.real()]),
                    Data::I32(_) => Data::I32(vec![value.int()]),
                    Data::Bool(_) => Data::Bool(vec![value.truth().into()]),
                };
                let (name, grid, own) = (&field.name, adjacency.name.as_told(), after.get(at));
                assert!(
                    value.bits(0) == after.bits(at),
                    "{} {name} on {grid}, cell {cell}, k {k}: {own}, not {}",
                    stencil.name,
                    value.get(0)
                );
                compared[at] = true;
            }
        }
        // What is not computed is as it was.
        assert!((0..before.len()).all(|at| compared[at] || before.bits(at) == after.bits(at)), "{}", field.name);
    }
    expected.len()
}

#[test]
fn every_kernel_equals_the_interpreter() {
    let grids = [plane(23, 19), anywhere(300, 1)].map(Arc::new);
    every().par_iter().enumerate().for_each(|(at, stencil)| {
        for (grid, adjacency) in grids.iter().enumerate() {
            for precision in [Precision::F32, Precision::F64] {
                let Ok(problem) = Problem::new(Request { precision, ..request(stencil, adjacency, 9) }) else {
                    continue;
                };
                // In all every variant comes up many times.
                let turn = at + 3 * grid + usize::from(precision == Precision::F32);
                let equal = crate::common::check_variants(&problem, |number| number % 7 == turn % 7);
                assert!(equal > 10, "{} on {}: {equal}", stencil.name, adjacency.name.as_told());
            }
        }
    });
}

fn tree(ni: usize, nj: usize, depth: u32, refinement: Refinement) -> Adjacency {
    Quadtree { ni, nj, depth, refinement }.adjacency("quadtree").unwrap().0
}

/// A torus of ni x nj cells, some of whose neighbours are any others.
fn twisted(ni: usize, nj: usize, twists: usize, seed: u64) -> Adjacency {
    Arc::unwrap_or_clone(Graph { shape: Shape::Torus, ni, nj, twists, shuffled: false, seed }.adjacency())
}

/// Kernels of patches of so many columns.
fn of_patches(precision: Precision, patch: [u32; 2], block: [u32; 3]) -> Choices {
    let (access, storage) = ("patches".to_owned(), "uncompressed".to_owned());
    let own = Choices { access, storage, fastest: Fastest::Levels, precision, block, ..Choices::default() };
    own.with("patch", patch)
}

/// Right of bottom is where right leads, and bottom of right elsewhere: such a column is in no patch of a stencil that goes both ways,
/// even if one of them needs no path of its own.
#[test]
fn patches_tell_ways_apart_that_others_need_not() {
    let (right, bottom) = (vec![2, 2, -1, -1], vec![1, -1, 3, -1]);
    let corner = Arc::new(Adjacency::new("corner", [vec![-1; 4], right, vec![-1; 4], bottom], None).unwrap());
    let text = "stencil s { in a; out r; let d = 2*a[i+1]; let e = 3*a[j+1]; r = a[i+1] + d[j+1] - e[i+1] }";
    let stencil = crate::common::lowered("corner", text).remove(0);
    let problem = Problem::new(request(&stencil, &corner, 4)).unwrap();
    assert_eq!(problem.region.column_numbers(problem.grid), [0]);
    let expected = expect(&problem, &|_| {}).unwrap();
    let (compiler, how) = (Compiler::find().unwrap(), Settings { strict: true, ..Settings::default() });
    let all = [[1, 1], [2, 2]].map(|patch| of_patches(Precision::F64, patch, [32, 2, 1]));
    for verdict in verify_emulated(&problem, &expected, &all, &compiler, &how).unwrap() {
        assert!(matches!(verdict, Verdict::Equal { cells: 1.. }), "{verdict:?}");
    }
}

/// Where some columns are in patches and others in none, and where all or none are.
#[test]
fn patches_equal_the_interpreter() {
    let circle = tree(9, 8, 2, Refinement::Circle);
    let tori = [[17, 12], [1, 1], [1, 6], [2, 5], [3, 9], [4, 7]].map(|[ni, nj]| twisted(ni, nj, 0, 0));
    let grids: Vec<Adjacency> = [circle, twisted(17, 12, 5, 1), twisted(5, 4, 3, 2)].into_iter().chain(tori).collect();
    let (compiler, how) = (Compiler::find().unwrap(), Settings { strict: true, ..Settings::default() });
    every().par_iter().enumerate().for_each(|(at, stencil)| {
        let mut equal = 0;
        for (grid, adjacency) in grids.iter().cloned().map(Arc::new).enumerate() {
            // Of the small ones each second.
            if grid > 1 && (at + grid).is_multiple_of(2) {
                continue;
            }
            let precision = if (at + grid / 2).is_multiple_of(2) { Precision::F32 } else { Precision::F64 };
            let Ok(problem) = Problem::new(Request { precision, ..request(stencil, &adjacency, 12) }) else { continue };
            // Of few cells all outputs may be the same, which proves nothing.
            let Ok(expected) = expect(&problem, &|_| {}) else { continue };
            let shapes = [[2, 2], [4, 1], [1, 1], [1, 4]].into_iter().zip([[2], [1], [4], [2]]);
            let shapes = shapes.zip([[32, 4, 1], [8, 3, 2], [64, 1, 1], [1, 1, 1]]);
            let of_shape = |((patch, lane), block)| of_patches(precision, patch, block).with("lane", lane);
            let all: Vec<Choices> = shapes.map(of_shape).collect();
            for (choices, verdict) in
                all.iter().zip(verify_emulated(&problem, &expected, &all, &compiler, &how).unwrap())
            {
                let is_equal = matches!(verdict, Verdict::Equal { cells: 1.. });
                assert!(is_equal, "{} {} on grid {grid}: {verdict:?}", stencil.name, choices.words());
                equal += 1;
            }
        }
        assert!(equal >= 8, "{}: {equal}", stencil.name);
    });
}

#[test]
fn every_stencil_is_what_a_walk_from_cell_to_cell_says() {
    let trees = [tree(9, 8, 2, Refinement::Circle), tree(6, 7, 3, Refinement::Noise { seed: 1 })];
    let planes = [plane(40, 1), plane(1, 30), plane(5, 4), plane(13, 12)];
    let all = planes.into_iter().chain(trees).chain([anywhere(400, 1), anywhere(900, 2)]).map(Arc::new);
    for (turn, adjacency) in all.enumerate() {
        let mut computed = 0;
        // Each stencil in one precision here and in the other there, on grids of each sort.
        for (number, stencil) in every().iter().enumerate() {
            let precision = [Precision::F32, Precision::F64][(turn + number) % 2];
            computed += usize::from(compare(stencil, precision, &adjacency) > 0);
        }
        assert!(computed > 0, "nothing on {} cells", adjacency.cells());
        let is_large = adjacency.cells() >= 100;
        assert!(!is_large || computed >= every().len() - 2, "{computed} on {}", adjacency.name.as_told());
    }
}

#[test]
fn i_steps_are_walked_before_j_steps() {
    // Of cell 0: the bottom of its left is 3, the left of its bottom is 4.
    let neighbours = [vec![1, -1, 4, -1, -1], vec![-1; 5], vec![-1; 5], vec![2, 3, -1, -1, -1]];
    let adjacency = Arc::new(Adjacency::new("five", neighbours, None).unwrap());
    let phi = || Array { shape: vec![1, 5], data: Data::F64(vec![0.0, 10.0, 20.0, 30.0, 40.0]) };
    let computed = |text: &str| {
        let stencil = crate::common::lowered("own", text).remove(0);
        let arrays = BTreeMap::from([("phi".to_owned(), phi())]);
        let problem = Problem::new(Request {
            arrays,
            drawing: stencilc_runtime::Drawing::Inputs,
            ..request(&stencil, &adjacency, 1)
        })
        .unwrap();
        let mut outputs = problem.outputs.clone();
        interpret(&problem.job(&problem.inputs()), &mut outputs, &|_| ()).unwrap();
        let res = outputs.remove(1).unwrap();
        (0..5).map(|cell| res.get(cell)).collect::<Vec<f64>>()
    };
    let none = f64::NAN;
    let bits = |values: Vec<f64>| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
    let check = |text: &str, first: f64| {
        let expected = vec![first, none, none, none, none];
        assert_eq!(bits(computed(text)), bits(expected), "{text}");
    };
    check("stencil s { in phi; out res; res = phi[i-1, j+1] }", 30.0);
    check("stencil s { in phi; out res; res = phi[j+1, i-1] }", 30.0);
    // A path to a let is walked before the paths within.
    check("stencil s { in phi; out res; let left = phi[i-1] + 1; res = left[j+1] }", 41.0);
    check("stencil s { in phi; out res; let below = phi[j+1] + 1; res = below[i-1] }", 31.0);
    // The same where a let is but another name for what lies at a path.
    check("stencil s { in phi; out res; let left = phi[i-1]; res = left[j+1] }", 40.0);
    check("stencil s { in phi; out res; let d = phi + 1; let left = d[i-1]; res = left[j+1] }", 41.0);
    check("stencil s { in phi; out res; let d = phi + 1; let below = d[j+1]; res = 2 * below[i-1] }", 62.0);
}

/// What is said of arrays of some shapes, on a grid of 12 cells.
fn refused(text: &str, arrays: &[(&str, &[usize])], levels: Option<usize>) -> Error {
    let adjacency = Arc::new(plane(4, 3));
    let stencil = crate::common::lowered("own", text).remove(0);
    let array = |shape: &[usize]| Array { shape: shape.to_vec(), data: Data::F64(vec![1.0; shape.iter().product()]) };
    let arrays = arrays.iter().map(|&(name, shape)| (name.to_owned(), array(shape))).collect();
    let grid = levels.map(|nk| Grid::cells(12, nk));
    Problem::new(Request { arrays, grid, ..request(&stencil, &adjacency, 1) }).unwrap_err()
}

#[test]
fn arrays_of_other_shapes_are_refused_with_the_shape_expected() {
    let text = "stencil s { in phi; in area on (i, j); in hhl on (i, j, k+1); in w on (k); out res
                res = phi[i+1] * area + hhl * w }";
    let told = |arrays: &[(&str, &[usize])], levels: Option<usize>| {
        let error = refused(text, arrays, levels);
        format!("{}; {}", error.message, error.help.unwrap_or_default())
    };
    let check = |found: String, parts: &[&str]| {
        parts.iter().for_each(|part| assert!(found.contains(part), "{found}"));
    };
    check(told(&[], None), &["how many levels the grid `plane` has is not known", "--levels N", "--in phi=phi.npy"]);
    check(told(&[("phi", &[5, 13])], None), &["`phi` has the shape (5, 13)", "has 12 cells", "(nk, 12) is expected"]);
    check(told(&[("phi", &[12, 5])], None), &["(12, 5)", "other order", "`array.T`"]);
    check(told(&[("phi", &[5, 3, 4])], None), &["(5, 3, 4)", "`array.reshape(-1, 12)`"]);
    check(told(&[("area", &[3, 4])], Some(2)), &["(3, 4)", "(12) is expected", "`array.reshape(12)`"]);
    check(
        told(&[("phi", &[5, 12]), ("hhl", &[5, 12])], None),
        &["needs 6 levels, its array has 5", "`phi` has 5 levels"],
    );
    check(told(&[("phi", &[5, 12])], Some(4)), &["`phi` has 5 levels, the given grid has 4"]);
    check(told(&[("hhl", &[0, 12])], None), &["(0, 12)", "(nk + 1, 12)"]);
    check(told(&[("hhl", &[1, 12])], None), &["no cells"]);
    check(told(&[("w", &[3, 1])], None), &["(nk) is expected"]);
    check(told(&[("phi", &[])], None), &["has the shape ()"]);
}

#[test]
fn levels_follow_from_arrays() {
    let text = "stencil s { in phi; in hhl on (i, j, k+1); out res; res = phi * hhl }";
    let stencil = crate::common::lowered("own", text).remove(0);
    let adjacency = Arc::new(plane(4, 3));
    let levels = |name: &str, shape: &[usize]| {
        let data = Data::F64(vec![1.0; shape.iter().product()]);
        let arrays = BTreeMap::from([(name.to_owned(), Array { shape: shape.to_vec(), data })]);
        Problem::new(Request { arrays, grid: None, ..request(&stencil, &adjacency, 1) }).unwrap().grid
    };
    assert_eq!(levels("phi", &[7, 12]), Grid::cells(12, 7));
    assert_eq!(levels("phi", &[12]), Grid::cells(12, 1));
    assert_eq!(levels("hhl", &[7, 12]), Grid::cells(12, 6));
    let flat = crate::common::lowered("own", "stencil s { in a on (i, j); out b on (i, j); b = a[i+1] }").remove(0);
    assert_eq!(Problem::new(Request { grid: None, ..request(&flat, &adjacency, 1) }).unwrap().grid, Grid::cells(12, 1));
}
