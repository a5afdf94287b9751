//! Zones of a mesh: stencils and calls that compute some elements, questions for them, and sweeps over levels beside them.

use crate::common::folder::Folder;
use std::fs;
use stencilc_runtime::Data;
use stencilc_runtime::mesh::{self, Field, ZONE};

const TEXT: &str = "\
mesh tri {
    set edge, cell
    map edge.cells -> cell[2] missing skip
    map cell.edges -> edge[3] missing skip
    zone lateral, nudging, interior on cell
    zone rim, inner on edge
    levels k
}

stencil nudged over tri.cell {
    inout t
    in    driver
    zones lateral, nudging
    t = if in_zone(lateral) { driver } else { 0.5 * (t + driver) }
}

stencil spread over tri.edge {
    in  u
    inc s on cell
    zone inner
    s[cells.0] += if present(cells.0) { u } else { 0 }
    s[cells.1] -= u
}

stencil total over tri.cell {
    in t
    reduce sum_t: sum
    reduce least: min
    sum_t += t
    least = t
}

/// An implicit solve along the columns, of what flows in through the edges.
stencil solve over tri.cell {
    in  a
    in  b = 2..3
    in  u on edge
    out x
    let d = a + sum(e in edges) { u[e] }
    sweep k up {
        let m  = if k == 0 { 1 / b } else { 1 / (b - 0.1 * a * cp[k-1]) }
        let cp = 0.3 * m
        let dp = if k == 0 { d * m } else { (d - 0.1 * a * dp[k-1]) * m }
    }
    sweep k down { x = if k == nk - 1 { dp } else { dp - cp * x[k+1] } }
}

program area over tri {
    in    driver on cell
    in    u on edge
    inout t on cell
    inout s on cell
    out   w, least: real on ()
    param low: int = 1
    repeat 3 {
        t = nudged(t, driver)
        t = solve(t, driver, u) on interior
        s = spread(u, s = s)
        w, least = total(t) on nudging, interior, levels low..nk
    }
}

test \"the rim is what drives it, and the rest is left alone\" {
    mesh triangles(4, 3)
    levels(2)
    zone cell = if i < 5 { 0 } else if i < 10 { 1 } else { 2 }
    zone edge = 1
    let before = 3.0 * i
    nudged { t = before; driver = 7 }
    expect t == if in_zone(lateral) { 7 } else if in_zone(nudging) { 0.5 * (before + 7) } else { before }
}
test \"a column by itself\" {
    mesh triangles(2, 2)
    levels(5)
    zone cell = 0
    zone edge = 1
    solve { a = 0; b = 2; u = 0 }
    expect x == 0
}
test \"what is not computed is not looked at\" {
    mesh triangles(4, 3)
    levels(2)
    zone cell = i % 3
    zone edge = 0
    inner { t = i }
    expect r == 2 * i && in_zone(interior)
}
stencil inner over tri.cell { in t; out r; zone interior; r = 2 * t }
";

/// A folder with the text and a mesh of two squares by five, whose zones stand in no order.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("area.stn"), TEXT).unwrap();
    folder.done("mesh make triangles --size 6x5 -o plain.npz");
    let mut mesh = mesh::load(&folder.path("plain.npz")).unwrap();
    for (name, zones) in [("cell", 3), ("edge", 2)] {
        let set = mesh.set_named(name).unwrap();
        let data = Data::I32((0..mesh.sets[set].size as i32).map(|element| element * 7 % 5 % zones).collect());
        mesh.fields.push(Field { name: ZONE.to_owned(), set, map: None, parts: 1, data });
    }
    mesh::save(&mesh, &folder.path("tri.npz")).unwrap();
    folder
}

#[test]
fn zones_are_computed_alone() {
    let folder = folder();
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict area.stn",
        "test area.stn",
        "run area.stn --mesh plain.npz --levels 4 --draw --device cpu",
        "build area.stn --stencil inner --emit cuda --mesh tri.npz --levels 4",
        "build area.stn --stencil solve --emit cuda --mesh tri.npz --levels 4 --vectors soa",
        "build area.stn --stencil nudged --emit ir",
    ]));
}

#[test]
fn every_kernel_computes_the_zones_that_are_said() {
    let folder = folder();
    folder.done("verify area.stn --mesh tri.npz --levels 5 --device emulate");
}

#[test]
fn numbers_of_zones_are_looked_at() {
    let folder = folder();
    let mut mesh = mesh::load(&folder.path("tri.npz")).unwrap();
    let number = mesh.fields.iter().position(|field| field.name == ZONE).unwrap();
    for (data, told) in [
        (Data::I32(vec![3; 60]), "`zone on cell` of wrong.npz is 3 at element 0, and there is no such zone"),
        (Data::I32(vec![-1; 60]), "`zone on cell` of wrong.npz is -1 at element 0, and there is no such zone"),
        (Data::F64(vec![1.0; 60]), "`zone on cell` of wrong.npz is no whole number for each element"),
    ] {
        mesh.fields[number].data = data;
        mesh::save(&mesh, &folder.path("wrong.npz")).unwrap();
        let found = folder.refused("run area.stn --stencil inner --mesh wrong.npz --levels 2 --draw --device cpu");
        assert!(found.contains(told) && found.contains("the zones are 0 lateral, 1 nudging, 2 interior"), "{found}");
    }
}

/// Zones of neighbours, and of elements of other sets.
const NEIGHBOURS: &str = "\
mesh tri {
    set edge, cell
    map edge.cells -> cell[2] missing skip
    map cell.edges -> edge[3] missing value(0)
    zone lateral, nudging, interior on cell
    zone rim, inner on edge
    levels k
}
stencil border over tri.edge {
    in  t on cell
    out f
    zones inner
    f = if present(cells.0) && in_zone(lateral)[cells.0] { t[cells.0] } else { -1 }
}
stencil around over tri.cell {
    in  u on edge
    out r
    let own on edge = if in_zone(inner) { u } else { 0 }
    let first = if in_zone(rim)[edges.0] { 100 } else { 0 }
    r = first + sum(e in edges) { if in_zone(rim)[e] { 10 * u[e] } else { own[e] } }
}
stencil beside over tri.cell {
    in  t
    out r
    zones nudging
    r = if present(edges.1.cells.0) && in_zone(interior, lateral)[edges.1.cells.0] { t[edges.1.cells.0] } else { 2 * t }
}
program both over tri {
    in  u on edge
    out r, s on cell
    out f on edge
    r = around(u)
    s = beside(r)
    f = border(r)
}
test \"all edges are of the rim\" {
    mesh triangles(4, 3)
    levels(2)
    zone cell = if i < 7 { 0 } else { 2 }
    zone edge = 0
    around { u = 1 }
    let edges_that_are = sum(e in edges) { if present(e) { 10 } else { 0 } }
    expect r == edges_that_are + (if present(edges.0) { 100 } else { 0 })
}
test \"cells on one side\" {
    mesh triangles(4, 3)
    levels(2)
    zone cell = if i < 7 { 0 } else { 2 }
    zone edge = 1
    border { t = i }
    expect f == -1 || f < 7
}
";

#[test]
fn zones_of_neighbours_are_asked_for() {
    let folder = folder();
    fs::write(folder.path("beside.stn"), NEIGHBOURS).unwrap();
    folder.done("check --strict beside.stn");
    folder.done("test beside.stn");
    folder.done("verify beside.stn --mesh tri.npz --levels 3 --device emulate");
    folder.done("verify beside.stn --program both --mesh tri.npz --levels 3 --device emulate");
    let run = "run beside.stn --program both --mesh tri.npz --levels 3 --draw --device cpu";
    folder.done(&format!("{run} --out s=one.npy"));
    folder.done(&format!("{run} --gpus 2 --out s=two.npy"));
    let [one, two] = ["one.npy", "two.npy"].map(|name| fs::read(folder.path(name)).unwrap());
    assert_eq!(one, two);
}

/// Variables that begin as nothing, of which calls compute some levels and zones, and others read more.
const UNWRITTEN: &str = "\
mesh area {
    set vertex, edge, cell
    map edge.cells -> cell[2] missing skip
    map cell.edges -> edge[3] missing skip
    zone lateral, nudging, interior on cell
    levels k
}
stencil twice over area.cell { in a; out b; b = 2 * a }
stencil count over area.cell { in a; out n: int; n = if a > 0 { 1 } else { 2 } }
stencil slope over area.edge {
    in b on cell
    out g
    g = if present(cells.0) && present(cells.1) { b[cells.0] - b[cells.1] } else { 0 }
}
stencil where_asked over area.cell { in b; in n: int; out c; c = if n > 0 { b } else { 0 } }
stencil inside over area.cell { in b; out c; zones interior; c = b }
stencil below over area.cell { in b; out c; c = if k > 0 { b[k-1] } else { 0 } }
stencil solved over area.cell { in a; out w on cell, k+1; sweep k up { w = if k > 0 { w[k-1] + a } else { 0 } } }
stencil depths over area.cell { in w on cell, k+1; out d; d = w[k+1] - w }

program reads_what_is_not_there over area {
    in a on cell
    out g on edge
    out c, d on cell
    let b = twice(a) on interior
    let n = count(a) on nudging, levels 1..nk
    g = slope(b)
    c = where_asked(b, n)
    let w = solved(a)
    d = depths(w)
}
program turns over area {
    in a on cell
    out c on cell
    let b = twice(a) on levels 1..nk
    repeat 3 {
        c = inside(b) on levels 1..nk
        b = twice(c) on levels 1..nk
    }
}
program reads_what_is_there over area {
    inout a on cell
    out c, d on cell
    let b = twice(a) on interior
    c = inside(b)
    let e = twice(a) on lateral
    e = twice(a) on nudging, interior
    let n = count(a)
    d = where_asked(e, n)
    let f = twice(a) on levels 0..nk - 1
    d = below(f)
    repeat 2 { a = twice(a) on interior }
}
program given over area {
    inout a on cell
    out c on cell
    a = twice(a) on levels 1..nk
    c = twice(a)
}
program never over area {
    in a on cell
    out c on cell
    param n: int = 0
    let b = twice(a) on levels 1..nk
    c = twice(a)
    repeat n { c = twice(b) }
}
program once over area {
    in a on cell
    out c on cell
    param n: int = 1
    let b = twice(a)
    repeat n {
        c = twice(b)
        let d = twice(c) on interior
        b = d
    }
}
";

#[test]
fn what_no_call_has_computed_is_told_where_it_is_read() {
    let folder = Folder::new();
    fs::write(folder.path("area.stn"), UNWRITTEN).unwrap();
    folder.done("mesh make limited --size R2B2 --within 30 --lateral 1 --nudging 1 -o area.npz");
    let told = |program: &str| {
        let call = format!("run area.stn --program {program} --mesh area.npz --levels 4 --draw --device cpu");
        let text = folder.transcript(&[&call]);
        assert!(text.contains("=> 0"), "{text}");
        let notes = text.lines().filter_map(|line| line.strip_prefix("note: `"));
        notes.map(|note| note.split(';').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let program = "which no call of program `reads_what_is_not_there` has computed before: there it is";
    assert_eq!(
        told("reads_what_is_not_there"),
        [
            format!("slope` reads `b` on level 0 of cell 100, for edge 2, {program} NaN"),
            format!("where_asked` reads `n` on level 0 of cell 0, {program} 0"),
            format!("depths` reads `w` on interface 4 of cell 0, {program} NaN"),
        ]
    );
    let [note] = &told("turns")[..] else { panic!() };
    assert!(note.contains("twice on levels 1..nk` reads `c` on level 1 of cell 4, which no call"), "{note}");
    for right in ["reads_what_is_there", "given", "never", "once"] {
        assert_eq!(told(right), Vec::<String>::new(), "{right}");
    }
}
