//! Levels that are said by their numbers: which there are, and what is computed.

use crate::common::folder::Folder;
use std::fs;
use stencilc_runtime::{Array, Data, npy};

const TEXT: &str = "\
stencil leveled {
    in  p
    in  w on (i, j, k+1)
    in  v on (k)
    in  base: int on (i, j) = -3..9
    in  lift: int = -3..9
    param low: int = 2
    out surface on (i, j)
    out depth, moved
    let above = w - w[level nk]
    surface = p[level nk - 1] + w[i+1, level nk] * v[level 0] - p[i-1, level base[i-1] + 1]
    depth = above[k+1] + p[j+1, level low] + (if k > 0 { above[k-1] } else { v[level 1] })
    moved = p[i+1, level lift] - (p[level base])[k+1] * (w[level 1])[i-1, k-1] + p[k+1][level lift[k-1] - 1]
}
stencil swept {
    in    p
    in    base: int = -3..9
    inout t
    out   r
    let before = t
    sweep k down { let a = p[level 0] + (if k < nk - 1 { 0.5 * a[k+1] } else { p[level base] }) }
    r = a - before[level nk - 1]
    t = a
}
stencil far {
    in  w on (i, j, k+1)
    param low: int = 0
    out r
    print(\"top\", w[level 0] - w[level nk])
    print(\"far\", w[level 70])
    r = w[level low] + (if nk > 70 { w[level 70] } else { 0 })
}
stencil below { in p; in n: int; out r; r = p[level n + 1] }
stencil laplace { in t; out r; r = t[i-1] + t[i+1] + t[j-1] + t[j+1] - 4 * t }
stencil curved { in t; out r; r = t[k-1] + t[k+1] - 2 * t }
stencil anomaly { in t; out r; r = t - t[i+1, level 0] + 0.5 * t[level nk - 1] }
stencil deep { in t; param d: int; out r; r = t - t[level d] }
program p {
    in    n: int on (i, j)
    inout t
    param low: int = 1
    boundary { i: periodic, j: copy }
    boundary t { k: copy }
    repeat 3 {
        let c = curved(t)
        let l = laplace(c)
        t = anomaly(l) on levels 1..nk - 1
        t = deep(t, low)
        let b = picked(t, n)
        t = spread(b, t)
    }
}
stencil picked { in t; in n: int on (i, j); out b on (i, j); b = t[level n] }
stencil spread { in b on (i, j); in t; out r; r = 0.9 * t + 0.1 * b }
program narrow { inout t; let c = curved(t); t = anomaly(c) }
program turns { inout t; repeat 3 as d { t = deep(t, d) } }
";

const MESH: &str = "\
mesh tri {
    set edge, cell
    map cell.edges -> edge[3] missing skip
    map edge.cells -> cell[2] missing skip
    levels k
}
stencil leveled over tri.cell {
    in  theta
    in  u on edge
    in  w on cell, k+1
    in  top: int on cell, no k = -9..9
    out surface on cell, no k
    out r
    let above = w - w[level 0]
    surface = theta[level nk - 1] + w[level nk] + w[level top + 1]
    r = above[k+1] + sum(e in edges) { u[e, level 0] * u[e, level nk - 1] - theta[level top] }
}
stencil rest over tri.cell { in r; in s on cell, no k; out t; t = r - r[level 0] + s }
program p over tri {
    in    top: int on cell, no k
    in    u on edge
    in    w on cell, k+1
    inout t on cell
    repeat 3 {
        let s, r = leveled(t, u, w, top)
        t = rest(r, s) on levels 1..nk
    }
}
stencil far over tri.cell { in w on cell, k+1; out r; r = w[level 9] }
";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("levels.stn"), TEXT).unwrap();
    fs::write(folder.path("mesh.stn"), MESH).unwrap();
    folder.done("grid make quadtree --size 4x3 -o tree.npz");
    folder.done("mesh make triangles --size 5x3 -o tri.npz");
    let save = |name: &str, shape: &[usize], numbers: Vec<i32>| {
        npy::save(&folder.path(name), &Array { shape: shape.to_vec(), data: Data::I32(numbers) }).unwrap();
    };
    save("deep.npy", &[4, 5, 6], (0..120).map(|at| if at == 77 { 3 } else { 1 }).collect());
    save("fine.npy", &[4, 5, 6], (0..120).map(|at| at % 4 - 1).collect());
    save("plane.npy", &[5, 6], (0..30).map(|at| if at == 8 { -1 } else { at % 4 }).collect());
    save("tops.npy", &[30], (0..30).map(|at| if at == 17 { 4 } else { at % 4 }).collect());
    folder
}

/// A level that is not there is told, and nothing is computed; what rules it out is heard.
#[test]
fn levels_that_there_are_not_are_told() {
    let folder = folder();
    let run = "run levels.stn --device cpu --grid 6x5x4 --draw";
    insta::assert_snapshot!(folder.transcript(&[
        &format!("{run} --stencil far"),
        &format!("{run} --stencil far --set low=5"),
        &format!("{run} --stencil far --set low=-1"),
        "build levels.stn --stencil far --grid 6x5x71 -o there",
        "build levels.stn --stencil leveled --grid 6x5x2 -o out",
        &format!("{run}=p --stencil below --in n=fine.npy"),
        &format!("{run}=p --stencil below --in n=deep.npy"),
        &format!("{run} --program narrow"),
        &format!("{run} --program turns"),
        &format!("{run}=t --program p --in n=plane.npy"),
        &format!("{run} --program p --set low=4"),
        "run mesh.stn --mesh tri.npz --levels 4 --device cpu --draw --stencil far",
        "run mesh.stn --mesh tri.npz --levels 4 --device cpu --draw=theta,u,w --stencil leveled --in top=tops.npy",
    ]));
    let explained = folder.done("explain levels.stn --stencil leveled --grid 6x5x4");
    assert!(explained.contains("values, on levels that are data too, on one level of all too"), "{explained}");
    let explained = folder.done("explain mesh.stn --stencil leveled");
    assert!(explained.contains("[edges.0] on one level of all"), "{explained}");
    let refused = folder.transcript(&["verify levels.stn --stencil far --grid 6x5x4 --access queue --device emulate"]);
    assert!(refused.contains("reads `w` on one level of all"), "{refused}");
}

/// The examples of the reference do what their tests say.
#[test]
fn the_examples_of_the_reference_are_right() {
    let text = include_str!("../../docs/language.md");
    let section = text.split("\n## Levels by their numbers\n").nth(1).unwrap();
    let folder = folder();
    for (number, ground) in [(1, "--grid 9x5x6"), (3, "--mesh tri.npz --levels 6")] {
        let example = section.split("```").nth(number).unwrap();
        fs::write(folder.path("example.stn"), example).unwrap();
        folder.done("test example.stn");
        folder.done("test example.stn --precision f32");
        folder.done(&format!("verify example.stn {ground} --device emulate"));
    }
}

/// A test may read such a level of what was computed there, and of nothing else.
#[test]
fn tests_read_levels_that_were_computed() {
    let folder = Folder::new();
    let text = "stencil up { in a; out b; b = a[k-1] }
        test \"there\" { grid(3, 2, 5); up { a = k }; expect b[level 2] == 1 && b[i+1, level nk - 1] == 3 && a[level 0] == 0 }
        test \"not there\" { grid(3, 2, 5); up { a = k }; expect b[level 0] == b[level 0] }
        test \"beyond\" { grid(3, 2, 5); up { a = k }; expect a[level 5] == 5 }";
    fs::write(folder.path("up.stn"), text).unwrap();
    insta::assert_snapshot!(folder.transcript(&["test up.stn"]));
}

/// Kernels of every storage and strategy, where there is one.
#[test]
fn kernels_read_what_the_interpreter_reads() {
    let folder = folder();
    for stencil in ["leveled", "swept"] {
        for grid in ["6x5x4", "tree.npz --levels 4"] {
            folder.done(&format!("verify levels.stn --stencil {stencil} --grid {grid} --device emulate"));
        }
        folder.done(&format!(
            "verify levels.stn --stencil {stencil} --grid 6x5x4 --device emulate --checked --fields all --precision f32"
        ));
    }
    folder.done("verify mesh.stn --mesh tri.npz --levels 4 --device emulate --stencil leveled");
}

#[test]
fn programs_read_what_is_whole() {
    let folder = folder();
    folder.done("verify levels.stn --program p --grid 6x5x4 --device emulate");
    folder.done("verify levels.stn --program p --grid 6x5x4 --device emulate --gpus 2 --precision f32");
    folder.done("verify levels.stn --program p --grid 6x5x4 --device native --precision f32");
    folder.done("verify mesh.stn --mesh tri.npz --levels 4 --device emulate --program p --precision f32");
    folder.done("verify mesh.stn --mesh tri.npz --levels 4 --device emulate --program p --gpus 2");
}

/// Launchers for any grid, in C, with modules for Fortran.
#[test]
fn launchers_are_built() {
    let folder = folder();
    folder.done("build levels.stn --stencil leveled --fortran -o any");
    folder.done("build levels.stn --stencil leveled --grid 6x5x4 -o one");
    let ir = folder.done("build levels.stn --stencil leveled --emit ir");
    for text in ["p.level(nk - 1)", "w[i+1].level(nk)", "p[i-1].level(base[i-1] + 1)", "p[j+1].level(low)"] {
        assert!(ir.contains(text), "{ir}");
    }
    let launcher = fs::read_to_string(folder.path("any/leveled.cu")).unwrap();
    let computed = launcher.split("bool leveled_computed").nth(1).unwrap();
    assert!(computed.split("\n}").next().unwrap().contains("low"), "{launcher}");
}
