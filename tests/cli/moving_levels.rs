//! Levels that are data: what numbers may say, and what is computed.

use crate::common::folder::Folder;
use std::fs;
use stencilc_runtime::{Array, Data, npy};

const TEXT: &str = "\
mesh tri {
    set edge, cell
    map cell.edges -> edge[3] missing skip
    map edge.cells -> cell[2] missing skip
    levels k
}
stencil moved over tri.cell {
    in  t
    in  h on cell, k+1
    in  off: int = -9..9
    in  other: int on cell.edges, no k
    in  u on edge
    out r
    r = t[k + off] + (if k > 0 { h[k + off + 1] } else { 0 }) + sum(e in edges) { u[e, k + other[e]] }
}
program p over tri {
    in    off: int on cell
    in    other: int on cell.edges, no k = -3..4
    in    u on edge
    in    h on cell, k+1
    inout t on cell
    let down = off
    repeat 3 { t = moved(t, h, down, other, u) on levels 1..nk - 1 }
}
";

const CELLS: usize = 30;

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("moved.stn"), TEXT).unwrap();
    folder.done("mesh make triangles --size 5x3 -o tri.npz");
    let write = |name: &str, shape: Vec<usize>, numbers: Vec<i32>| {
        npy::save(&folder.path(name), &Array { shape, data: Data::I32(numbers) }).unwrap();
    };
    let of = |number: &dyn Fn(usize, usize) -> i32| -> Vec<i32> {
        (0..4)
            .flat_map(|level| (0..CELLS).map(move |cell| (level, cell)))
            .map(|(level, cell)| number(level, cell))
            .collect()
    };
    write("fine.npy", vec![4, CELLS], of(&|level, cell| ((cell + level) % 4) as i32 - level as i32));
    write("low.npy", vec![4, CELLS], of(&|level, cell| if (level, cell) == (2, 17) { -3 } else { 0 }));
    write("rim.npy", vec![4, CELLS], of(&|level, cell| if (level, cell) == (3, 5) { 7 } else { 0 }));
    write("slots.npy", vec![CELLS, 3], vec![0; CELLS * 3]);
    write("far.npy", vec![CELLS, 3], (0..CELLS * 3).map(|at| i32::from(at == 31)).collect());
    folder
}

#[test]
fn levels_that_there_are_not_are_told() {
    let folder = folder();
    let run = "run moved.stn --mesh tri.npz --levels 4 --device cpu --draw=t,h,u";
    insta::assert_snapshot!(folder.transcript(&[
        &format!("{run} --stencil moved --in off=fine.npy --in other=slots.npy"),
        &format!("{run} --stencil moved --in off=low.npy --in other=slots.npy"),
        &format!("{run} --stencil moved --in off=fine.npy --in other=far.npy"),
        &format!("{run} --stencil moved --in off=rim.npy --in other=slots.npy"),
        "explain moved.stn --stencil moved",
    ]));
    // The program leaves that level out.
    folder.done(&format!("{run} --program p --in off=rim.npy --in other=slots.npy"));
}

#[test]
fn kernels_read_what_the_interpreter_reads() {
    let folder = folder();
    folder.done("verify moved.stn --mesh tri.npz --levels 4 --device emulate --stencil moved");
    folder.done("verify moved.stn --mesh tri.npz --levels 4 --device emulate --program p --precision f32");
}
