//! Levels of a mesh: those that a call does not compute, and increments on each.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::mesh::{MeshChoices, STRATEGIES, VectorLayout};
use stencilc_compiler::source::Source;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::emulate::{Compiler, Emulator, Settings};
use stencilc_runtime::mesh::made::{Division, icosahedral};
use stencilc_runtime::mesh::order::Ordering;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{difference, program, results};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::mesh::{Map, Mesh, Set};
use stencilc_runtime::{Array, Data};

const LEVELS: usize = 4;

const TEXT: &str = "mesh sphere { set cell; levels k }
stencil copy over sphere.cell { in a; out b; b = a }
stencil shift over sphere.cell { in a; out b; b = a[k-1] }
stencil blend over sphere.cell { in a; inc b; b += a[k-1] }
program p over sphere {
    inout a on cell
    out b, c, d, f, g on cell
    b = copy(a)
    c = copy(b)
    repeat 2 { b = shift(b) }
    let e = shift(a)
    c = copy(e)
    d = copy(a)
    d = blend(e, d)
    repeat 2 { f = blend(a) }
    let h = copy(a)
    h = shift(h)
    g = copy(h)
    a = shift(a)
}
";

/// What a `let` makes has no old values; what is declared keeps them, and so does what is given others.
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
    let interpreter = Interpreter::new(problem.clone());
    let mut driver = Driver::new(&interpreter).given().unwrap();
    driver.finish().unwrap();
    let results = driver.results().unwrap().into_iter().map(|(id, data)| {
        let data = data.unwrap();
        let column: Vec<f64> = (0..LEVELS).map(|level| data.get(level * cells + 7)).collect();
        (program.program.variables[id].name.as_str(), column)
    });
    let results: BTreeMap<&str, Vec<f64>> = results.collect();
    assert_eq!(results["a"], [0.0, 0.0, 1.0, 2.0]);
    assert_eq!(results["b"], [0.0, 0.0, 0.0, 1.0]);
    assert!(results["c"][0].is_nan() && results["c"][1..] == [0.0, 1.0, 2.0]);
    assert_eq!(results["g"], [0.0, 0.0, 1.0, 2.0]);
    // Time and again from 0, on all levels.
    assert_eq!(results["f"], [0.0, 0.0, 1.0, 2.0]);
    // NaN below is not looked at by the last level alone.
    assert!(results["d"][0] == 0.0 && results["d"][1].is_nan() && results["d"][2..] == [2.0, 4.0]);
}

/// Each edge adds to both of its cells, to one more than to the other; some edges lack a cell.
const FLOWS: &str = "mesh ring {
    set edge, cell
    map edge.cells -> cell[2] missing skip
    levels k
}
stencil flows over ring.edge {
    in  q: real[4]
    inc r: real[4] on cell
    r[cells.0] += q
    r[cells.1] += 3*q
}
program first over ring {
    in  q: real[4] on edge
    out r: real[4] on cell
    r = flows(q)
}
";

/// As many edges as cells, of which some lack one.
fn ring(cells: i32) -> Mesh {
    let next = |cell: i32| if cell % 7 == 3 { -1 } else { (cell + 1) % cells };
    let table = (0..cells).flat_map(|cell| if cell % 2 == 0 { [cell, next(cell)] } else { [next(cell), cell] });
    let set = |name: &str| Set { name: name.to_owned(), size: cells as usize };
    let cells_of = Map { name: "cells".to_owned(), from: 0, to: 1, arity: 2, table: table.collect() };
    Mesh { origin: "a ring".to_owned(), sets: vec![set("edge"), set("cell")], maps: vec![cells_of], fields: vec![] }
}

/// Numbers are whole, so that their sums are exact in any order.
#[test]
fn every_strategy_adds_on_every_level_and_past_holes() {
    let cells = 40;
    let mesh = ring(cells);
    let lowered = stencilc_compiler::check(&Source::new("flows.stn", FLOWS));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let numbers = (0..LEVELS * cells as usize * 4).map(|at| (at % 97) as f64).collect();
    let array = Array { shape: vec![LEVELS, cells as usize, 4], data: Data::F64(numbers) };
    let problem = MeshProblem::new(Request {
        program: &lowered.mesh_programs[0],
        precision: Precision::F64,
        contract: true,
        mesh: mesh.clone(),
        levels: None,
        arrays: BTreeMap::from([("q".to_owned(), array)]),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Inputs,
    })
    .unwrap();
    let problem = Arc::new(problem);
    let expected = results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap();
    let machine = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    for layout in VectorLayout::ALL {
        for &strategy in STRATEGIES {
            let choices = MeshChoices { strategy, layout, ..MeshChoices::default() };
            let placed = Rc::new(Renumbered::new(&problem, &Ordering::kept(&mesh)).unwrap());
            let kernels = Kernels::new(Arc::clone(&problem), Arc::clone(&machine), choices, placed);
            let found = results(&problem, &kernels).unwrap();
            assert_eq!(difference(&expected, &found), None, "{} {layout:?}", strategy.name());
        }
    }
}

/// Reads of all kinds, beside each other on levels and not; values on each level, on none, in parts, and folded.
const KINDS: &str = "mesh ring {
    set edge, cell
    map edge.cells -> cell[2] missing skip
    levels k
}
stencil kinds over ring.edge {
    in  q on cell
    in  p: real[2] on cell
    in  w on edge, no k
    in  n: int on edge
    out r on edge
    out s: real[2] on edge
    out t on edge, no k
    out m: int on edge
    reduce total: sum
    let near = sum(c in cells) { q[c] * w + p[c].1 }
    let above = if k > 0 { n[k-1] } else { 7 }
    r = near / (2 + w) + above
    s = [near - n, if k + 1 < nk { n[k+1] } else { 0 }]
    t = 2*w
    m = n + above
    total += near
}
stencil after over ring.edge {
    in  r on edge
    in  s: real[2] on edge
    param total
    out u on edge
    u = r * s.1 + (if k > 0 { s.0[k-1] } else { 1 }) + total
}
stencil deeper over ring.edge {
    in  r on edge
    in  q on cell
    out v on edge
    v = r[k-2] + sum(c in cells) { q[c] }
}
program all over ring {
    in  q on cell
    in  p: real[2] on cell
    in  w on edge, no k
    in  n: int on edge
    out u, r on edge
    out s: real[2] on edge
    out t on edge, no k
    out m: int on edge
    out total on ()
    r, s, t, m, total = kinds(q, p, w, n)
    u = after(r, s, total)
}
/// Begins two levels above the lowest.
program below over ring {
    in  q on cell
    in  r on edge
    out v on edge
    v = deeper(r, q)
}
";

const LONE: &str = "mesh lone {
    set edge, wall
    map edge.wall -> wall[1] missing skip
    levels k
}
";

/// Through a hole kernels look at the first element, all levels of it: also where there is no element, and where many levels are together.
pub fn look_through_holes_into_nothing(settings: Settings) {
    let text = "stencil beside over lone.edge {
        in  a on edge
        in  q on wall
        in  p: real[4] on wall
        out r on edge
        r = sum(w in wall) { q[w] + p[w].3 } + a
    }";
    same_without_walls(text, settings);
}

/// Whoever goes on to the last interface looks at levels that are not there, and drops what was seen.
pub fn look_below_the_last_level(settings: Settings) {
    let text = "stencil below over lone.edge {
        in  a on edge
        in  b: real[2] on edge
        out w on edge, k+1
        levels 1..nk + 1
        let mean = if k < nk { a + b.1 } else { 0 }
        w = if k < nk { mean * a + mean[k-1] } else { a[k-1] - b[k-1].0 }
    }";
    same_without_walls(text, settings);
}

/// Kernels leave what the interpreter leaves, where five edges have no walls. That nothing is read beyond arrays, sanitizers tell, if they
/// watch.
fn same_without_walls(text: &str, settings: Settings) {
    let lowered = stencilc_compiler::check(&Source::new("lone.stn", format!("{LONE}{text}")));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    let wall = Map { name: "wall".to_owned(), from: 0, to: 1, arity: 1, table: vec![-1; 5] };
    let sets = vec![set("edge", 5), set("wall", 0)];
    let mesh = Mesh { origin: "edges without walls".to_owned(), sets, maps: vec![wall], fields: vec![] };
    let program = program(&lowered.mesh_stencils[0], false);
    let machine = Arc::new(Emulator::new(Compiler::find().unwrap(), settings));
    for precision in [Precision::F32, Precision::F64] {
        let problem = Arc::new(
            MeshProblem::new(Request {
                program: &program,
                precision,
                contract: true,
                mesh: mesh.clone(),
                levels: Some(400),
                arrays: BTreeMap::new(),
                settings: BTreeMap::new(),
                seed: 3,
                cast: stencilc_runtime::Cast::Exact,
                drawing: stencilc_runtime::Drawing::Everything,
            })
            .unwrap(),
        );
        let expected = results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap();
        for layout in VectorLayout::ALL {
            let choices = MeshChoices { layout, ..MeshChoices::usual(true) };
            let placed = Rc::new(Renumbered::new(&problem, &Ordering::kept(&mesh)).unwrap());
            let kernels = Kernels::new(Arc::clone(&problem), Arc::clone(&machine), choices, placed);
            let found = results(&problem, &kernels).unwrap();
            assert_eq!(difference(&expected, &found), None, "{layout:?}, {precision:?}");
        }
    }
}

#[test]
fn what_holes_into_nothing_show_is_used_by_nobody() {
    look_through_holes_into_nothing(Settings::default());
}

#[test]
fn what_lies_below_the_last_level_is_used_by_nobody() {
    look_below_the_last_level(Settings::default());
}

/// A thread has one level, two or four, by how many there are and how many bytes a number has.
#[test]
fn columns_are_what_levels_are() {
    let mesh = ring(10);
    let lowered = stencilc_compiler::check(&Source::new("kinds.stn", KINDS));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let machine = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    let [all, below] = [0, 1].map(|number| &lowered.mesh_programs[number]);
    let programs =
        [1, 2, 3, 4, 6].map(|levels| (all, levels)).into_iter().chain([3, 4, 8, 12].map(|levels| (below, levels)));
    for (program, levels, precision) in
        programs.flat_map(|(own, levels)| [Precision::F32, Precision::F64].map(|precision| (own, levels, precision)))
    {
        let problem = MeshProblem::new(Request {
            program,
            precision,
            contract: true,
            mesh: mesh.clone(),
            levels: Some(levels),
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 3,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Everything,
        })
        .unwrap();
        let problem = Arc::new(problem);
        let expected = results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap();
        let choices = MeshChoices::usual(true);
        assert!(choices.layout.is_by_column());
        let placed = Rc::new(Renumbered::new(&problem, &Ordering::kept(&mesh)).unwrap());
        let kernels = Kernels::new(Arc::clone(&problem), Arc::clone(&machine), choices, placed);
        let found = results(&problem, &kernels).unwrap();
        assert_eq!(difference(&expected, &found), None, "{}, {levels} levels, {precision:?}", program.program.name);
    }
}
