//! Kernels of whole steps as they read: names, comments and loops, without the prelude.

use stencilc_compiler::ir::{Precision, Role, Stencil};
use stencilc_compiler::plan::prepare;
use stencilc_compiler::source::Source;
use stencilc_compiler::step::resident::{self, resident};
use stencilc_compiler::step::stream::{self, persistent, stream};
use stencilc_compiler::step::tiled::{self, tiled};
use stencilc_compiler::step::{Carry, Edge, Kernel, Rows, StepTask};

const STENCIL: &str = "stencil smooth { in a; out b
let sides = a[i-1] + a[i+1]
b = a - 0.25 * (sides[j-1] + sides[j+1]) }";

fn stencil() -> Stencil {
    let lowered = stencilc_compiler::check(&Source::new("smooth.stn", STENCIL));
    prepare(&lowered.stencils[0], Precision::F64, true)
}

fn subject(stencil: &Stencil, edge: Edge) -> StepTask<'_> {
    StepTask {
        stencil,
        precision: Precision::F64,
        extents: [256, 20, 2],
        rows: Rows { first: 0, row: 256, plane: 5120 },
        edges: [edge; 2],
    }
}

/// What is written becomes what is read.
fn carry(stencil: &Stencil) -> Vec<Carry> {
    let of = |role: Role| stencil.fields.iter().filter(move |(_, field)| field.role == role).map(|(id, _)| id);
    of(Role::Out).zip(of(Role::In)).collect()
}

/// The text from the kernel's first line on.
fn read(kernel: &Kernel) -> &str {
    let begin = kernel.text.find("extern \"C\" __global__").unwrap();
    &kernel.text[begin..]
}

#[test]
fn a_kernel_of_tiles_reads_as_what_it_does() {
    let stencil = stencil();
    let shape = tiled::Shape { tile: [32, 7], threads: 64, rows: 3 };
    let kernel = tiled(&subject(&stencil, Edge::Open), &shape).unwrap();
    assert_eq!((kernel.launch.grid, kernel.launch.shared), ([48, 1, 1], 5760));
    insta::assert_snapshot!(read(&kernel));
}

#[test]
fn a_streamed_kernel_reads_as_what_it_does() {
    let stencil = stencil();
    let shape = stream::Shape { lane: 16, block: 64, rows: Some(5), ahead: 1, ..stream::Shape::default() };
    insta::assert_snapshot!(read(&stream(&subject(&stencil, Edge::Open), &shape).unwrap()));
}

#[test]
fn a_persistent_kernel_reads_as_what_it_does() {
    let stencil = stencil();
    let shape = stream::Shape { lane: 16, block: 64, rows: Some(5), ahead: 1, ..stream::Shape::default() };
    let kernel = persistent(&subject(&stencil, Edge::Periodic), &carry(&stencil), &shape).unwrap();
    assert!(kernel.launch.cooperative);
    insta::assert_snapshot!(read(&kernel));
}

#[test]
fn a_resident_kernel_reads_as_what_it_does() {
    let stencil = stencil();
    let shape = resident::Shape { rows: 5, warps: 2, blocks: 2, early: true };
    let kernel = resident(&subject(&stencil, Edge::Periodic), &carry(&stencil), shape).unwrap();
    assert_eq!((kernel.launch.grid, kernel.launch.cluster), ([4, 1, 1], [2, 1, 1]));
    insta::assert_snapshot!(read(&kernel));
}
