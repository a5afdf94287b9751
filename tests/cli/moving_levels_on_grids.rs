//! Levels that are data, on grids: what numbers may say, and what is computed.

use crate::common::folder::Folder;
use std::fs;
use stencilc_runtime::{Array, Data, npy};

const TEXT: &str = "\
stencil moved {
    in  t
    in  h on (i, j, k+1)
    in  w on (k)
    in  n: int = -9..9
    in  m: int on (i, j)
    in  l: int on (k)
    out r
    let far = t[i+1, k + n[i+1] - 1]
    r = (if k > 1 { far[i-1] - far } else { 0 }) + h[k + n + 1] * w[k + m] + t[j-1, k + l]
}
stencil swept {
    in  t
    in  n: int = -9..9
    in  m: int on (i, j)
    out r
    sweep k down { let a = t[k + n] + (if k < nk - 1 { 0.5 * a[k+1] } else { t[k + m] }) }
    r = a - t[k + m]
}
stencil laplace { in t; out r; r = t[i-1] + t[i+1] + t[j-1] + t[j+1] - 4 * t }
stencil upwind { in t; in n: int; out r; r = t[k + n] - t[i-1, k + n[i-1]] }
program p {
    in    n: int
    inout t
    boundary { i: periodic, j: copy }
    repeat 3 {
        let l = laplace(t)
        t = upwind(l, n) on levels 1..nk - 1
    }
}
program below {
    in    n: int
    inout t
    boundary t { k: mirror }
    boundary n { k: -mirror }
    t = upwind(t, n)
}
";

const EXTENTS: [usize; 3] = [4, 5, 6];

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("moved.stn"), TEXT).unwrap();
    folder.done("grid make quadtree --size 4x3 -o tree.npz");
    let [nk, nj, ni] = EXTENTS;
    let write = |name: &str, shape: &[usize], number: &dyn Fn(usize, usize, usize) -> i32| {
        let lengths = match *shape {
            [nk] => [nk, 1, 1],
            [nj, ni] => [1, nj, ni],
            [nk, nj, ni] => [nk, nj, ni],
            _ => unreachable!("fields have no other axes"),
        };
        let numbers = (0..lengths.iter().product::<usize>())
            .map(|at| number(at % lengths[2], at / lengths[2] % lengths[1], at / lengths[2] / lengths[1]));
        npy::save(&folder.path(name), &Array { shape: shape.to_vec(), data: Data::I32(numbers.collect()) }).unwrap();
    };
    let level = |i: usize, j: usize, k: usize| ((i + 2 * j + 3 * k) % 3 + 1) as i32 - k as i32;
    write("fine.npy", &[nk, nj, ni], &level);
    write("low.npy", &[nk, nj, ni], &|i, j, k| if (i, j, k) == (4, 3, 2) { -2 } else { level(i, j, k) });
    // No cell of the first column is looked at on the first two levels but by `h`.
    write("rim.npy", &[nk, nj, ni], &|i, j, k| if (i, j, k) == (0, 2, 1) { -2 } else { level(i, j, k) });
    write("corner.npy", &[nk, nj, ni], &|i, j, k| if (i, j, k) == (5, 0, 3) { 100 } else { level(i, j, k) });
    write("zeros.npy", &[nj, ni], &|_, _, _| 0);
    write("plane.npy", &[nj, ni], &|i, j, _| i32::from((i, j) == (1, 4)));
    write("none.npy", &[nk], &|_, _, _| 0);
    write("line.npy", &[nk], &|_, _, k| if k == 3 { i32::MAX } else { 0 });
    write("ends.npy", &[nk, nj, ni], &|i, _, k| if i == 3 && (k == 0 || k == 3) { 77 } else { 0 });
    write("wrap.npy", &[nk, nj, ni], &|i, j, k| if (i, j, k) == (5, 4, 2) { 3 } else { 0 });
    folder
}

/// A number that leads nowhere is told with where it stands, unless nobody looks at it.
#[test]
fn levels_that_there_are_not_are_told() {
    let folder = folder();
    let run = "run moved.stn --device cpu --draw=t";
    let (others, fine) = ("--draw=t,h,w --in m=zeros.npy --in l=none.npy", "--in n=fine.npy");
    insta::assert_snapshot!(folder.transcript(&[
        &format!("run moved.stn --device cpu --stencil moved {others} --in n=low.npy"),
        &format!("run moved.stn --device cpu --stencil moved --draw=t,h,w {fine} --in m=plane.npy --in l=none.npy"),
        &format!("run moved.stn --device cpu --stencil moved --draw=t,h,w {fine} --in m=zeros.npy --in l=line.npy"),
        &format!("run moved.stn --device cpu --stencil moved {others} --in n=rim.npy"),
        &format!("{run} --stencil swept {fine} --in m=plane.npy"),
        &format!("{run} --program p --in n=wrap.npy"),
        &format!("{run} --program below {fine}"),
    ]));
    // What nobody looks at: a corner of the grid, and levels that the program leaves out.
    folder.done(&format!("run moved.stn --device cpu --stencil moved {others} --in n=corner.npy"));
    folder.done(&format!("{run} --program p --in n=low.npy"));
    folder.done(&format!("{run} --program p --in n=ends.npy"));
    let explained = folder.done("explain moved.stn --stencil moved --grid 6x5x4");
    let counts = |what: &str| explained.matches(what).count();
    assert_eq!((counts("values, on levels that are data too"), counts("1 value, on levels that are data too")), (1, 2));
}

/// The example of the reference does what its test says.
#[test]
fn the_example_of_the_reference_is_right() {
    let text = include_str!("../../docs/language.md");
    let section = text.split("\n## Levels that are data\n").nth(1).unwrap();
    let folder = Folder::new();
    fs::write(folder.path("example.stn"), section.split("```").nth(1).unwrap()).unwrap();
    folder.done("test example.stn");
    folder.done("test example.stn --precision f32");
    folder.done("verify example.stn --grid 9x5x6 --device emulate");
}

/// Kernels of every storage and strategy, where there is one.
#[test]
fn kernels_read_what_the_interpreter_reads() {
    let folder = folder();
    for stencil in ["moved", "swept"] {
        folder.done(&format!("verify moved.stn --stencil {stencil} --grid 6x5x4 --device emulate"));
        folder.done(&format!("verify moved.stn --stencil {stencil} --grid tree.npz --levels 4 --device emulate"));
        folder.done(&format!(
            "verify moved.stn --stencil {stencil} --grid 6x5x4 --device emulate --checked --fields all --precision f32"
        ));
    }
}

#[test]
fn programs_read_what_is_whole() {
    let folder = folder();
    folder.done("verify moved.stn --program p --grid 6x5x4 --device emulate");
    folder.done("verify moved.stn --program p --grid 6x5x4 --device emulate --gpus 2 --precision f32");
    folder.done("verify moved.stn --program p --grid 6x5x4 --device native --precision f32");
}
