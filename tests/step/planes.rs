//! Kernels that walk along k equal the interpreter, and need few registers.

use super::{CLOSED, GRIDS, OPEN, stencils};
use crate::common::lowered;
use crate::common::step::Fixture;
use rayon::prelude::*;
use stencilc_compiler::gpu::Gpu;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::prepare;
use stencilc_compiler::step::Edge;
use stencilc_compiler::step::planes::{Queue, Request, Shape, planes, waits};
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::nvrtc::{self, Kind};

/// All shapes and queues on a stencil, on both precisions.
fn check(stencil: &Stencil, extents: [usize; 3], padding: [usize; 3], edges: [Edge; 2], edge_k: Edge) {
    let few = Gpu { registers: 64 * 24, ..Gpu::SM_90 };
    let shapes = [
        Shape { rows: Some(4), block: [32, 2], ..Shape::default() },
        // Tiles that do not divide, a row a thread, parts of some planes.
        Shape { rows: Some(3), block: [64, 1], stages: 2, planes: Some(3), ..Shape::default() },
        Shape { rows: Some(1), block: [32, 3], stages: 4, planes: Some(2), ..Shape::default() },
        // Registers have room for few rows, and planes have to wait in shared memory.
        Shape { block: [32, 2], gpu: few, ..Shape::default() },
    ];
    for precision in [Precision::F32, Precision::F64] {
        let fixture = Fixture { edges, edge_k, ..Fixture::new(stencil, precision, extents, padding) };
        let each = [Queue::Output, Queue::Input].into_iter().flat_map(|queue| shapes.map(|shape| (queue, shape)));
        let kernels = each.map(|(queue, shape)| planes(&fixture.subject(), &fixture.request(queue), &shape).unwrap());
        let kernels: Vec<_> = kernels.collect();
        fixture.check(&kernels, &[(1, fixture.expected(&fixture.inputs))]);
    }
}

/// Stencils whose planes do not depend on each other are walked through as well.
#[test]
fn walks_through_planes_alone_equal_the_interpreter() {
    let stencils = stencils();
    // Open and periodic edges, what no power of two divides, and fewer cells than are looked at.
    let grids = [GRIDS[1], GRIDS[2], GRIDS[4]];
    let cases: Vec<_> = stencils.iter().flat_map(|stencil| grids.map(|grid| (stencil, grid))).collect();
    cases.into_par_iter().for_each(|(stencil, (extents, padding, edges))| {
        check(stencil, extents, padding, edges, Edge::Open);
    });
}

/// Sums in order and not, with and without diagonals, products of them, far up and down, up or down alone, fields at the cell alone;
/// and planes that are kept at the cell, of which several outputs look at rows beside it.
const WALKED: &str = "
fn along_i(a, n) = a[i+n] - a[i-n]
fn along_j(a, n) = a[j+n] - a[j-n]
fn along_k(a, n) = a[k+n] - a[k-n]
stencil cross {
    sums by level
    in u, v
    in w on (i, j)
    param c = 0.25
    out p, q
    let d = along_i(v, 1) + along_j(v, 2)
    p = c * (u[k-2] + u[k+2] - 2*u) + along_k(d, 1) + u[i-1] + w * u[j+1]
    q = along_k(along_i(u, 1), 1) * 0.5 + along_k(along_j(u, 1), 2) - v
}
stencil products {
    sums by level
    in u, v; in rho
    inout t
    let a = along_k(u, 1) + along_k(u, 2) * 0.125
    let b = along_k(along_i(v, 1), 1) + along_j(v, 1)
    t = t + a * b / (1 + rho*rho) + rho[k-1]
}
stencil up { in a; out b; b = a[k+1] + 2*a[k+3] }
stencil down { in a; out b; b = a[k-2, i+1] * a[k-1] }
stencil beside { in a; out b, c; b = a[j+1] - a[k-1]; c = a[j+2] + a[k-1] }
stencil unsorted { in a, c; out b; out n: int; b = a[k+1] - a[k-1, j-1] * c[k-2] + a[i+1]; n = if c > a[k+1] { 1 } else { 0 } }
";

/// Conditions on levels, fields on half levels and on one plane, other types; values that are kept and read no level; an output on no
/// levels of a stencil that does not compute the first one.
const OF_LEVELS: &str = "
stencil levels {
    in a
    in h on (i, j, k+1)
    in w on (k)
    in g on (i, j)
    in flag: bool
    in few: f32
    out r; out s on (i, j)
    let d = a[k+1, i-1] - a
    let e = g[i-1] * h[k+1, j+1] + w[k] * k
    r = if k > 0 { d[k-1] * w[k-1] + e } else { d + h[k+1] } + (if flag[k+1, j-1] { few[k+1, i+1] } else { few })
    s = g[j+1] - 2 * g
}
stencil kept {
    in g on (i, j)
    in a
    out r; out s on (i, j)
    let inverse = 1 / g
    let rest = inverse[k-2] * inverse + k
    r = rest + a[k-1]
    s = g * g
}
";

#[test]
fn walks_equal_the_interpreter() {
    let mut cases = Vec::new();
    for stencil in lowered("walked", WALKED) {
        cases.push((stencil.clone(), [70, 11, 8], [0, 2, 3], CLOSED, Edge::Periodic));
        cases.push((stencil.clone(), [64, 8, 12], [0, 0, 0], CLOSED, Edge::Open));
        cases.push((stencil.clone(), [72, 13, 9], [0, 0, 8], OPEN, Edge::Periodic));
        cases.push((stencil, [5, 3, 4], [1, 0, 0], CLOSED, Edge::Periodic));
    }
    for stencil in lowered("levels", OF_LEVELS) {
        cases.push((stencil.clone(), [70, 11, 8], [0, 2, 3], CLOSED, Edge::Open));
        cases.push((stencil, [64, 16, 5], [0, 0, 8], OPEN, Edge::Open));
    }
    cases.into_par_iter().for_each(|(stencil, extents, padding, edges, edge_k)| {
        check(&stencil, extents, padding, edges, edge_k);
    });
}

/// Compiles a walk, and sees that all that a thread holds is in registers.
fn finds_room(stencil: &Stencil, precision: Precision, shape: Shape) {
    let fixture = Fixture { edge_k: Edge::Periodic, ..Fixture::new(stencil, precision, [256, 64, 64], [0; 3]) };
    let kernel = planes(&fixture.subject(), &fixture.request(Queue::Output), &shape).unwrap();
    let compiled = compile_cached(&kernel.text, "step.cu", "sm_90", Kind::Cubin).unwrap().compiled;
    let resources = &compiled.resources[0];
    assert_eq!(resources.spill_loads + resources.spill_stores + resources.stack, 0, "{shape:?} {}", kernel.text);
}

/// The operator of 55 points has 18 sums on their way, of which a thread holds those of its rows.
#[test]
fn outputs_that_wait_find_room_in_registers() {
    if nvrtc::locate().is_err() {
        println!("skipped: no NVRTC");
        return;
    }
    let text = include_str!("../../stencils/grad_div.stn");
    let stencil = lowered("grad_div", text).into_iter().find(|own| own.name == "grad_div6").unwrap();
    let shapes = [
        (Precision::F32, Shape::default()),
        (Precision::F32, Shape { rows: Some(8), block: [64, 4], ..Shape::default() }),
        (Precision::F64, Shape { block: [64, 4], ..Shape::default() }),
        (Precision::F64, Shape { rows: Some(4), block: [64, 4], ..Shape::default() }),
        (Precision::F64, Shape::default()),
    ];
    for (precision, shape) in shapes {
        let waits = waits(&prepare(&stencil, precision, true), precision, Queue::Output).unwrap();
        assert_eq!((waits.values, waits.planes), (18, 0));
        finds_room(&stencil, precision, shape);
    }
}

/// Of a fluid much is computed at the cell from derivatives: those that are of its own plane wait for none, planes do.
#[test]
fn planes_wait_where_registers_have_no_room() {
    if nvrtc::locate().is_err() {
        println!("skipped: no NVRTC");
        return;
    }
    // The second stage reads and writes the most fields.
    let stages = lowered("fluid", include_str!("../../examples/taylor_green/navier_stokes.stn"));
    for stencil in stages.into_iter().filter(|own| own.name == "stage2") {
        let waits = waits(&prepare(&stencil, Precision::F32, true), Precision::F32, Queue::Output).unwrap();
        assert_eq!(waits.planes, 3, "{waits:?}");
        for block in [[128, 4], [64, 8], [64, 4], [128, 2]] {
            finds_room(&stencil, Precision::F32, Shape { block, ..Shape::default() });
        }
        finds_room(&stencil, Precision::F64, Shape { block: [32, 8], ..Shape::default() });
    }
}

#[test]
fn what_has_no_room_or_makes_no_sense_is_refused() {
    let stencil = lowered("walked", WALKED).into_iter().find(|own| own.name == "cross").unwrap();
    let fixture = Fixture::new(&stencil, Precision::F64, [512, 512, 16], [0; 3]);
    let request = fixture.request(Queue::Output);
    let refused = |shape: Shape| planes(&fixture.subject(), &request, &shape).unwrap_err().message;
    let shape = Shape::default();
    assert!(refused(Shape { rows: Some(16), block: [256, 4], ..shape }).contains("and 232448 have room"));
    assert!(refused(Shape { block: [1024, 1], ..shape }).contains("planes of 1024x1 cells take "), "the fewest rows");
    assert!(refused(Shape { rows: Some(17), ..shape }).contains("17 rows a thread, and 1 to 16 are possible"));
    assert!(refused(Shape { stages: 1, ..shape }).contains("1 planes at once, and 2 to 8 are possible"));
    assert!(refused(Shape { block: [48, 2], ..shape }).contains("48 threads along i are no whole warps"));
    let nothing = Request { computed: [0..512, 0..512, 3..3], ..request.clone() };
    let refusal = planes(&fixture.subject(), &nothing, &shape).unwrap_err();
    assert!(refusal.message.contains("no cell is computed"), "{}", refusal.message);
}
