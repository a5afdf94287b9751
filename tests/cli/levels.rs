//! Which levels are computed: `levels`, `level`, and the interfaces of levels, on grids and over meshes.

use crate::common::folder::Folder;
use std::fs;
use stencilc_runtime::Data;
use stencilc_runtime::mesh::{self, Field, ZONE};

const GRID: &str = "\
param first: int = 1

/// What lies between levels, on all of their interfaces.
stencil halves {
    in  t
    out half on (i, j, k+1)
    levels 0..nk + 1
    half = if k == 0 { t } else if k == nk { t[k-1] } else { 0.5 * (t[k-1] + t) }
}

stencil thickness { in z on (i, j, k+1); out d; d = z[k+1] - z }

stencil lowest { in t; out s on (i, j); level nk - 1; s = 2 * t }

stencil some { inout t; levels first..nk - 1; t = t[k-1] + 1 }

/// Two calls that compute other levels, and one that computes all.
program column {
    inout t
    out   s on (i, j)
    out   d
    t = some(t)
    let half = halves(t)
    d = thickness(half)
    s = lowest(d)
}

test \"interfaces are all computed\" {
    grid(4, 3, 5)
    halves { t = k }
    expect half == (if k == 0 { 0 } else if k == nk { k - 1 } else { k - 0.5 })
}
test \"one level is that one\" {
    grid(4, 3, 5)
    lowest { t = k + i }
    expect s == 2 * (4 + i)
}
test \"calls compute levels of their own\" {
    grid(4, 3, 6)
    let before = i + 10 * k
    last { t = before; first = 2 }
    // Levels 2 to 4 are those above them and 1; level 5 is as it was.
    expect s == (i + 21) + (i + 31) + (i + 50)
}
program last {
    inout t
    out   s on (i, j)
    t = some(t)
    s = fourth(t)
}
stencil fourth { in t; out s on (i, j); level 4; s = t[k-1] + t + t[k+1] }
";

const MESH: &str = "\
mesh tri {
    set cell, edge
    map edge.cells -> cell[2]
    levels k
}

/// The speed through interfaces, 0 at the highest and at the lowest.
stencil vertical over tri.cell {
    in  div
    out w on cell, k+1
    levels 0..nk + 1
    w = if k == 0 || k == nk { 0 } else { div[k-1] - div }
}

stencil between over tri.edge {
    in  w on cell, k+1
    inc gain on cell, k+1
    levels 1..nk
    gain[cells.0] += w[cells.1]
    gain[cells.1] += w[cells.0]
}

stencil ground over tri.cell {
    in  w on cell, k+1
    in  profile on (k+1)
    out s on cell, no k
    level nk - 1
    s = w[k+1] + profile[k+1]
}

program column over tri {
    in  div on cell
    in  profile on (k+1)
    out w, gain on cell, k+1
    out s on cell, no k
    w = vertical(div)
    gain = between(w)
    s = ground(w, profile)
}

test \"interfaces of a mesh\" {
    mesh triangles(3, 2)
    levels(4)
    vertical { div = 7 * k }
    expect w == (if k == 0 || k == nk { 0 } else { -7 })
}
test \"what is given on interfaces\" {
    mesh triangles(3, 2)
    levels(4)
    let height = 100 - 10 * k
    ground { w = height; profile = 2 * k }
    expect s == 60 + 8
}
";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("grid.stn"), GRID).unwrap();
    fs::write(folder.path("mesh.stn"), MESH).unwrap();
    folder.done("mesh make triangles --size 6x5 -o tri.npz");
    folder
}

#[test]
fn levels_that_are_said_are_computed() {
    let folder = folder();
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict grid.stn mesh.stn",
        "test grid.stn mesh.stn",
        "run grid.stn --stencil halves --grid 5x4x3 --draw --device cpu",
        "run grid.stn --stencil some --grid 5x4x7 --draw --device cpu --set first=3",
        "run grid.stn --stencil some --grid 5x4x7 --draw --device cpu --set first=6",
        "run mesh.stn --mesh tri.npz --levels 4 --draw --device cpu",
        "build grid.stn --stencil some --emit ir",
    ]));
    // Launchers for any grid look at the last interface where it may be computed.
    for (stencil, last) in [("halves", "nk + 1"), ("some", "nk")] {
        let text = folder.done(&format!("build grid.stn --stencil {stencil} --emit cuda"));
        assert!(text.contains(&format!("while (k_end < {last} && ")), "{text}");
    }
    let told = folder.done("explain grid.stn --stencil some --grid 8x8x9");
    assert!(told.contains("of these levels alone: `levels first..nk - 1`"), "{told}");
}

#[test]
fn every_kernel_computes_the_levels_that_are_said() {
    let folder = folder();
    folder.done("verify grid.stn --device emulate --grid 13x6x7 --precision f64");
    folder.done("verify mesh.stn --mesh tri.npz --levels 6 --device emulate");
}

#[test]
fn arrays_on_interfaces_have_one_level_more() {
    let folder = folder();
    let run = "run mesh.stn --stencil ground --mesh tri.npz --device cpu";
    folder.done("run mesh.stn --stencil vertical --mesh tri.npz --levels 4 --draw --device cpu --out w=w.npy");
    // How many levels there are follows from the interfaces.
    let told = folder.done(&format!("{run} --in w=w.npy --draw=profile --plot w=w.png --plot s=s.png"));
    assert!(told.contains("levels: 4"), "{told}");
    let told = folder.refused(&format!("{run} --in w=w.npy --draw=profile --levels 5"));
    assert!(told.contains("`w` has 5 interfaces, of 4 levels, the call says 5"), "{told}");
    folder.done("run mesh.stn --stencil vertical --mesh tri.npz --levels 4 --draw --device cpu --out w=w.vtu");
    let told = fs::read_to_string(folder.path("w.vtu")).unwrap();
    assert!(told.contains("\"w_4\"") && !told.contains("\"w_5\""));
}

/// Sweeps through interfaces, the last one too: downwards, upwards, and read on all of them after that.
const SWEEPS: &str = "\
stencil hydrostatic {
    in weight = 0..1
    param top = 100.0
    out p on (i, j, k+1)
    levels 0..nk + 1
    sweep k up { p = if k == 0 { top } else { p[k-1] + weight[k-1] } }
}
stencil implicit {
    in a
    in w on (i, j, k+1)
    out x on (i, j, k+1)
    out y: f32 on (i, j, k+1)
    levels 0..nk + 1
    sweep k up { let up = if k == 0 { w } else { 0.5 * up[k-1] - a[k-1] * w[i-1] } }
    sweep k down { x = if k == nk { up } else { up - 0.25 * x[k+1] + a } }
    print(\"before\", up)
    y = x + (if k < nk { up[k+1] } else { 7 }) + (if k > 1 { up[k-2] } else { 0 })
}
program column {
    in weight, a
    out x on (i, j, k+1)
    out y: f32 on (i, j, k+1)
    boundary { i: periodic }
    let p = hydrostatic(weight)
    x, y = implicit(a, p)
}
test \"the ground bears all\" {
    grid(4, 3, 5)
    hydrostatic { weight = 2; top = 1 }
    expect p == 1 + 2 * k
}
";
const SWEEPS_OVER_A_MESH: &str = "\
mesh area { set cell, edge; map edge.cells -> cell[2] missing value(0); levels k }
stencil hydrostatic over area.cell {
    in weight = 0..1
    param top = 100.0
    out p on cell, k+1
    levels 0..nk + 1
    sweep k up { p = if k == 0 { top } else { p[k-1] + weight[k-1] } }
}
stencil implicit over area.edge {
    in a on cell
    in p on cell, k+1
    out x on edge, k+1
    out y: f32 on edge, k+1
    levels 0..nk + 1
    sweep k up { let up = if k == 0 { p[cells.0] } else { 0.5 * up[k-1] - a[cells.1, k-1] * p[cells.0] } }
    sweep k down { x = if k == nk { up } else { up - 0.25 * x[k+1] + a[cells.0] } }
    print(\"before\", up)
    y = x + (if k < nk { up[k+1] } else { 7 }) + (if k > 1 { up[k-2] } else { 0 })
}
program column over area {
    in weight, a on cell
    out x on edge, k+1
    out y: f32 on edge, k+1
    let p = hydrostatic(weight)
    x, y = implicit(a, p)
}
test \"the ground bears all\" {
    mesh triangles(3, 2)
    levels(4)
    hydrostatic { weight = 2; top = 1 }
    expect p == 1 + 2 * k
}
";

#[test]
fn sweeps_go_through_interfaces() {
    let folder = folder();
    fs::write(folder.path("swept.stn"), SWEEPS).unwrap();
    fs::write(folder.path("swept_mesh.stn"), SWEEPS_OVER_A_MESH).unwrap();
    folder.done("check --strict swept.stn swept_mesh.stn");
    folder.done("test swept.stn swept_mesh.stn");
    for subject in ["--stencil hydrostatic", "--stencil implicit", "--program column"] {
        folder.done(&format!("verify swept.stn {subject} --device emulate --grid 13x6x9"));
        folder.done(&format!("verify swept.stn {subject} --device native --grid 13x6x9"));
        folder.done(&format!("verify swept_mesh.stn {subject} --mesh tri.npz --levels 9 --device emulate"));
    }
    // In parts, and for callers with any grid.
    for (file, subject) in [("swept.stn", "--grid 17x12x4"), ("swept_mesh.stn", "--mesh tri.npz --levels 4")] {
        for gpus in [1, 3] {
            folder.done(&format!(
                "run {file} --program column {subject} --draw --device cpu --gpus {gpus} --out x=x{gpus}.npy"
            ));
        }
        let [one, three] = [1, 3].map(|gpus| fs::read(folder.path(&format!("x{gpus}.npy"))).unwrap());
        assert_eq!(one, three, "{file}");
    }
    // What a print shows of a sweep needs all interfaces, too.
    let prints = [("swept.stn --grid 5x4x3", "3,2,1"), ("swept_mesh.stn --mesh tri.npz --levels 3", "7,1")];
    for (call, at) in prints {
        for subject in ["--stencil implicit", "--program column"] {
            let shown = ["cpu", "emulate"].map(|device| {
                let text = folder.done(&format!("run {call} {subject} --draw --device {device} --at {at}"));
                let line = text.lines().find(|line| line.contains("before")).map(str::to_owned);
                line.unwrap_or_else(|| panic!("{text}"))
            });
            assert!(shown[0] == shown[1] && !shown[0].contains("not computed"), "{shown:?}");
        }
    }
    let text = folder.done("build swept.stn --stencil hydrostatic --emit cuda");
    assert!(text.contains("k_first > 0 || k_end < nk + 1"), "{text}");
}

/// What is told of the last interface, if anything looks at it.
const LAST: &str = "\
stencil ends { in w; out p on (i, j, k+1); levels 0..nk + 1; p = if k == nk { 1000 + w[k-1] } else { w } }
program ended { in w; out p on (i, j, k+1); out f; p = ends(w); f = halved(w) }
program last { in w; out p on (i, j, k+1); p = ends(w) on level nk }
stencil halved { in w; out f; f = 0.5 * w }
stencil summed {
    in a; out p on (i, j, k+1)
    levels 0..nk + 1
    sweep k up { p = if k > 0 { p[k-1] + a[k-1] } else { 0 } }
    print(\"level\", k)
}
test \"of a stencil\" { grid(2, 3, 4); ends { w = 2 }; expect p == 2 }
test \"of a program\" { grid(2, 3, 4); ended { w = 2 }; expect p == 2; expect f == 1 }
test \"of its last level\" { grid(2, 3, 4); last { w = 2 }; expect p == 2 }
";

const LAST_OVER: &str = "\
mesh m { set cell; levels k }
stencil ends over m.cell { in w; out p on cell, k+1; levels 0..nk + 1; p = if k == nk { 1000 + w[k-1] } else { w } }
program ended over m { in w on cell; out p on cell, k+1; out f on cell; p = ends(w); f = halved(w) }
stencil halved over m.cell { in w; out f; f = 0.5 * w }
test \"of a stencil\" { mesh triangles(3, 2); levels(4); ends { w = 2 }; expect p == 2 }
test \"of a program\" { mesh triangles(3, 2); levels(4); ended { w = 2 }; expect p == 2; expect f == 1 }
";

#[test]
fn the_last_interface_is_looked_at() {
    let folder = folder();
    fs::write(folder.path("last.stn"), LAST).unwrap();
    fs::write(folder.path("last_over.stn"), LAST_OVER).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "test last.stn",
        "test last_over.stn",
        "run last.stn --program ended --grid 4x3x4 --draw --device cpu",
        "run last.stn --program last --grid 4x3x4 --draw --device cpu",
        "run last.stn --stencil summed --grid 2x1x3 --draw --device cpu --at 0,0,2",
        "explain last.stn --stencil ends --grid 3x2x4",
    ]));
    folder.done("verify last.stn --program last --grid 4x3x3 --device native");
}

/// Calls of which a number of the program says where their levels begin or end.
const BOUNDS: &str = "\
program cool {
    inout t
    param low: int = 2
    param high: int = 3
    t = cooled(t) on levels low + 1..nk
    t = cooled(t) on level high
}
stencil cooled { in t; out next; next = t - 1 }
";

const BOUNDS_OVER: &str = "\
mesh tri {
    set cell
    zone rim, inner on cell
    levels k
}
stencil cooled over tri.cell { in t; out next; next = t - 1 }
stencil falling over tri.cell { out w on cell, k+1; w = 1.0 * k }
program cool over tri {
    inout t on cell
    out   w on cell, k+1
    param high: int = 3
    t = cooled(t) on inner, levels 0..high
    w = falling() on levels 1..high + 1
}
/// Level by level.
program steps over tri {
    inout t on cell
    repeat nk as level { t = cooled(t) on rim, level level }
}
";

#[test]
fn bounds_that_are_no_levels_are_told() {
    let folder = folder();
    fs::write(folder.path("cool.stn"), BOUNDS).unwrap();
    fs::write(folder.path("over.stn"), BOUNDS_OVER).unwrap();
    let mut mesh = mesh::load(&folder.path("tri.npz")).unwrap();
    let set = mesh.set_named("cell").unwrap();
    let data = Data::I32((0..mesh.sets[set].size as i32).map(|cell| i32::from(cell > 20)).collect());
    mesh.fields.push(Field { name: ZONE.to_owned(), set, map: None, parts: 1, data });
    mesh::save(&mesh, &folder.path("tri.npz")).unwrap();
    let grid = "run cool.stn --grid 4x4x6 --draw --device cpu";
    let over = "run over.stn --mesh tri.npz --levels 5 --draw --device cpu";
    insta::assert_snapshot!(folder.transcript(&[
        grid,
        &format!("{grid} --set low=5"),
        &format!("{grid} --set low=6"),
        &format!("{grid} --set low=-3"),
        &format!("{grid} --set high=6"),
        "run cool.stn --grid 4x4x3 --draw --device cpu",
        "explain cool.stn --program cool --grid 4x4x6",
        &format!("{over} --program cool"),
        &format!("{over} --program cool --set high=5"),
        &format!("{over} --program cool --set high=6"),
        &format!("{over} --program cool --set high=-1"),
        "verify over.stn --program steps --mesh tri.npz --levels 5 --device emulate",
        "explain over.stn --program steps --mesh tri.npz --levels 5",
    ]));
    folder.done("verify over.stn --program steps --mesh tri.npz --levels 5 --device emulate --times 5");
    // A loop over all levels computes each; the last words of its line say how fast that went.
    let told = folder.done(&format!("{over} --program steps"));
    assert!(told.contains("of 105 computed"), "{told}");
    // Kernels of a device say the same.
    let told =
        folder.refused("run over.stn --mesh tri.npz --levels 5 --draw --program cool --set high=7 --device emulate");
    assert!(told.contains("ends before level 7, which is `high`, and there are 5 levels"), "{told}");
}
