//! Sweeps over meshes: wherever the numbers of levels to come wait, kernels compute what the interpreter does.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::mesh::{MeshChoices, Threads, VectorLayout};
use stencilc_compiler::source::Source;
use stencilc_runtime::emulate::{Compiler, Emulator, Settings};
use stencilc_runtime::mesh::made::{Division, icosahedral};
use stencilc_runtime::mesh::order::Ordering;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{difference, results};
use stencilc_runtime::mesh::program::{MeshProblem, Request};

/// `many` takes so many numbers on a level that those of few levels find room in registers; `few` carries all levels; `pairs` takes
/// vectors, and whole numbers.
const TEXT: &str = "mesh ico {
    set edge, cell
    map edge.cells -> cell[2]
    map cell.edges -> edge[3]
    levels k
}
stencil many over ico.cell {
    in a, b, c, d = 1..2
    in w on edge
    out x, y
    let r = d + sum(e in edges) { w[e] }
    sweep k up {
        let m  = if k == 0 { 1 / b } else { 1 / (b - 0.1 * a * cp[k-1]) }
        let cp = c * m
        let dp = if k == 0 { r * m } else { (r - a[k-1] * dp[k-1]) * m }
    }
    sweep k down { x = if k == nk-1 { dp } else { dp - cp * x[k+1] } }
    sweep k down { y = if k == nk-1 { r } else { r + y[k+1] * a[k+1] * b - c[k+1] } }
}
stencil few over ico.cell {
    in a, b
    out x
    sweep k up { let s = if k == 0 { a } else { a + b * s[k-1] } }
    sweep k down { x = if k == nk-1 { s } else { s - b * x[k+1] } }
}
stencil pairs over ico.edge {
    in q: real[4] on cell
    in n: int on cell
    inout t
    sweep k down {
        t = if k == nk-1 { q[cells.0].1 } else { t[k+1] + q[cells.0].3 * q[cells.1].0 + q[cells.1].2 - n[cells.1] }
    }
}
program all over ico {
    in a, b, c, d on cell = 1..2
    in q: real[4] on cell
    in n: int on cell
    inout t on edge
    out x, y, z on cell
    t = pairs(q, n, t)
    x, y = many(a, b, c, d, t)
    z = few(x, b)
}
";

#[test]
fn numbers_wait_for_their_levels() {
    let mesh = icosahedral(Division { root: 1, bisections: 1 }, 1.0).unwrap();
    let lowered = stencilc_compiler::check(&Source::new("sweeps.stn", TEXT));
    assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
    let machine = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    // Fewer levels than come at once, as many, and some more.
    for (levels, precision) in [(3, Precision::F64), (8, Precision::F32), (8, Precision::F64), (19, Precision::F64)] {
        let problem = MeshProblem::new(Request {
            program: &lowered.mesh_programs[0],
            precision,
            contract: true,
            mesh: mesh.clone(),
            levels: Some(levels),
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 1,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        })
        .unwrap();
        let problem = Arc::new(problem);
        let expected = results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap();
        for (layout, block) in VectorLayout::ALL.into_iter().flat_map(|layout| [(layout, 128), (layout, 512)]) {
            let threads = Threads { block, ..Threads::default() };
            let choices = MeshChoices { layout, threads, ..MeshChoices::default() };
            let placed = Rc::new(Renumbered::new(&problem, &Ordering::kept(&mesh)).unwrap());
            if layout == VectorLayout::Soa && (levels, precision) == (8, Precision::F64) {
                // Of large blocks, they do not find room in the shared memory that every GPU has.
                let texts = placed.texts(&problem, &choices).unwrap();
                assert_eq!(texts.iter().any(|own| own.text.contains("w_edges_0_ring + k")), block == 128, "{block}");
            }
            let kernels = Kernels::new(Arc::clone(&problem), Arc::clone(&machine), choices, placed);
            let found = results(&problem, &kernels).unwrap();
            assert_eq!(difference(&expected, &found), None, "{levels} levels, {precision:?}, {layout:?}, {block}");
        }
    }
}
