//! Kernels of tiles equal the interpreter, and need few registers.

use super::{DIFFUSION, GRIDS, repeated, stencils};
use crate::common::lowered;
use crate::common::step::Fixture;
use rayon::prelude::*;
use stencilc_compiler::gpu::Gpu;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::step::tiled::{Shape, shapes, tiled};
use stencilc_compiler::step::{Edge, Kernel, StepTask};
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::nvrtc::{self, Kind};

/// All shapes on a stencil, on both precisions.
fn check(stencil: &Stencil, extents: [usize; 3], padding: [usize; 3], edges: [Edge; 2]) {
    let shapes = [
        Shape::default(),
        // Tiles that do not divide, threads with more rows than others, one row a thread.
        Shape { tile: [32, 7], threads: 64, rows: 3 },
        Shape { tile: [21, 8], threads: 96, rows: 1 },
        Shape { tile: [64, 5], threads: 32, rows: 16 },
    ];
    for precision in [Precision::F32, Precision::F64] {
        let fixture = Fixture { edges, ..Fixture::new(stencil, precision, extents, padding) };
        let kernels = shapes.map(|shape| tiled(&fixture.subject(), &shape).unwrap());
        fixture.check(&kernels, &[(1, fixture.expected(&fixture.inputs))]);
    }
}

#[test]
fn tiles_equal_the_interpreter() {
    let stencils = stencils();
    let cases: Vec<_> = stencils.iter().flat_map(|stencil| GRIDS.map(|grid| (stencil, grid))).collect();
    cases.into_par_iter().for_each(|(stencil, (extents, padding, edges))| check(stencil, extents, padding, edges));
}

/// Values that share memory with those before them, replace them, are computed together, and come from arrays far away.
const REPEATED: &str = "
    fn spread(a, c) = a + c * (a[i-1] + a[i+1] - 2*a)
    stencil pair {
        in u, v, c
        in few: f32
        in flag: bool
        in m on (i, j)
        out p, q; out seen: bool
        let r = u * v
        let u1 = spread(u, c) - r * m
        let v1 = spread(v, c) + r
        let r1 = u1 * v1
        let near = flag && u1 > v1
        let u2 = (if near[j+1] { spread(u1, c) } else { u1 * few }) - r1
        let v2 = spread(v1, c) + r1 * few[j-1]
        p = u2[i+2] - v2[j-2]
        q = u2 * v2
        seen = near[i-1, j-1]
    }
    stencil chain {
        in a
        in n: int
        out b; out m: int
        let a1 = a[i-1] + a[i+1] + a
        let n1 = n[j-1] * 3 + n
        let a2 = a1[j-1] + a1[j+1] * (if n1 > n { 0.5 } else { 0.25 })
        let n2 = n1[i-1] - n1
        let a3 = a2[i-1, j-1] + a2
        b = a3[i+1] + a3[j+1]
        m = n2[j+1] + n2[i+3]
    }";

#[test]
fn values_follow_each_other_in_shared_memory() {
    let stencils = lowered("repeated", REPEATED);
    let cases: Vec<_> = stencils.iter().flat_map(|stencil| GRIDS.map(|grid| (stencil, grid))).collect();
    cases.into_par_iter().for_each(|(stencil, (extents, padding, edges))| check(stencil, extents, padding, edges));
}

#[test]
fn several_steps_are_one_tile() {
    for (times, extents) in [(1, [128, 20, 2]), (2, [128, 20, 2]), (3, [150, 31, 1]), (4, [100, 33, 2])] {
        check(&repeated(DIFFUSION, times), extents, [0, 0, 0], [Edge::Periodic; 2]);
    }
    check(&repeated(DIFFUSION, 4), [64, 48, 1], [2, 2, 0], [Edge::Open; 2]);
}

/// Ten filters in a row are ten loops, and two arrays in shared memory.
#[test]
fn a_chain_needs_two_tiles() {
    let filter = "fn step(a) { sum(p in -1..=1, q in -1..=1) { a[i+p, j+q] } / 9 }";
    let stencil = repeated(filter, 10);
    check(&stencil, [70, 40, 1], [0, 0, 0], [Edge::Periodic; 2]);
    let fixture = Fixture::new(&stencil, Precision::F64, [512, 512, 1], [0, 0, 0]);
    let kernel = tiled(&fixture.subject(), &Shape::default()).unwrap();
    // Rows and columns that are looked at, ten on each side; columns are loaded four at a time.
    let tile = |around: usize| (64 + 24) * (32 + 2 * around) * 8;
    assert_eq!(kernel.launch.shared as usize, tile(10) + tile(9), "{}", kernel.text);
    assert_eq!(kernel.text.matches("__syncthreads").count(), 10, "{}", kernel.text);
    assert!(registers(&kernel).is_none_or(|registers| registers <= 64), "{}", kernel.text);
}

/// The registers of a kernel that spills nothing; nothing if there is no NVRTC.
fn registers(kernel: &Kernel) -> Option<u32> {
    nvrtc::locate().ok()?;
    let compiled = compile_cached(&kernel.text, "step.cu", "sm_90", Kind::Cubin).unwrap().compiled;
    let resources = &compiled.resources[0];
    assert_eq!(resources.spill_loads + resources.spill_stores + resources.stack, 0, "{}", kernel.text);
    Some(resources.registers)
}

#[test]
fn what_has_no_room_is_refused() {
    let stencil = repeated(DIFFUSION, 4);
    let fixture = Fixture::new(&stencil, Precision::F64, [512, 512, 1], [0, 0, 0]);
    let refused = |shape: Shape| tiled(&fixture.subject(), &shape).unwrap_err().message;
    let shape = Shape::default();
    assert!(refused(Shape { tile: [256, 128], ..shape }).contains("bytes of shared memory, and 232448 have room"));
    assert!(refused(Shape { tile: [0, 8], ..shape }).contains("tiles of 0x8 cells"));
    assert!(refused(Shape { threads: 48, ..shape }).contains("48 threads are no whole warps"));
    assert!(refused(Shape { rows: 17, ..shape }).contains("17 rows a thread"));
}

/// Every shape of the list can be had, and nothing is spilled in those that should be fastest.
#[test]
fn tiles_need_few_registers() {
    for times in [1, 2, 4] {
        let stencil = repeated(DIFFUSION, times);
        for precision in [Precision::F32, Precision::F64] {
            let fixture = Fixture::new(&stencil, precision, [512, 512, 1], [0, 0, 0]);
            let subject = StepTask { extents: [512, 512, 64], ..fixture.subject() };
            let all = shapes(&subject, &Gpu::SM_90);
            assert!(all.len() > 20, "{}", all.len());
            let kernels: Vec<Kernel> = all.iter().map(|shape| tiled(&subject, shape).unwrap()).collect();
            for (shape, kernel) in all.iter().zip(&kernels).take(4) {
                let Some(registers) = registers(kernel) else { continue };
                println!("{times} steps, {precision:?}, {shape:?}: {registers} registers");
                assert!(registers <= 64, "{registers} registers\n{}", kernel.text);
            }
        }
    }
}
