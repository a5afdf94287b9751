//! Which part of i and j is computed: said by stencils, and by calls.

use crate::common::folder::Folder;
use std::fs;

const GRID: &str = "\
/// What is not at an edge, but for the first rows.
stencil inner { in a; out b; param wide: int = 2; i wide..ni - wide; j 3..nj - 1; b = a[i-1] + a[j+1] }
stencil row { inout a; j nj - 1; level 0; a = a + 1 }
stencil beside { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) + k }
stencil total { in a; out b; sweep k up { b = if k == 0 { a } else { b[k-1] + a } } }

/// Strips at walls, and all else, in a loop.
program walls {
    inout a
    out   b
    param wide: int = 2
    param steps: int = 3
    boundary { i: periodic, j: mirror }
    repeat steps {
        a = beside(a) on i 0..wide, levels 1..nk
        a = beside(a) on i wide..ni, j 2..nj - 1
        a = beside(a) on i wide..ni, j 2..nj - 1
        let whole = total(a) on j 0..nj - 2
        a = beside(whole) on j 0..2
    }
    b = beside(a) on j 0..4
    b = beside(a) on j 4..nj
    b = beside(b)
}

test \"what is left out stays as it is\" {
    grid(9, 8, 3)
    let before = i + 10 * j
    inner { a = before; wide = 3 }
    expect b == 2 * before + 9
}
test \"a corner\" {
    grid(9, 8, 3)
    corner { a = 1 }
    expect a == (if i < 2 && j >= nj - 3 && k > 0 { 2 } else { 1 })
}
program corner { inout a; a = twice(a) on i 0..2, j nj - 3..nj, levels 1..nk }
stencil twice { in a; out b; b = 2 * a }
";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("own.stn"), GRID).unwrap();
    folder
}

#[test]
fn parts_that_are_said_are_computed() {
    let folder = folder();
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict own.stn",
        "test own.stn",
        "run own.stn --stencil inner --grid 9x8x3 --draw --device cpu",
        "run own.stn --stencil inner --grid 9x8x3 --draw --device cpu --set wide=4",
        "run own.stn --stencil inner --grid 9x8x3 --draw --device cpu --set wide=5",
        "run own.stn --stencil inner --grid 9x8x3 --draw --device cpu --set wide=12",
        "run own.stn --stencil row --grid 9x8x3 --draw --device cpu",
        "build own.stn --stencil inner --emit ir",
        "build own.stn --stencil inner --grid 9x8x3 --emit cuda",
        "build own.stn --stencil inner --storage compressed --emit cuda",
        "explain own.stn --program walls --grid 9x8x4",
    ]));
    let told = folder.done("explain own.stn --stencil inner --grid 12x12x3");
    assert!(told.contains("of these columns alone: `i wide..ni - wide`, line 2"), "{told}");
    folder.done("grid make quadtree --size 8x8 -o cells.npz");
    let told = folder.refused("run own.stn --stencil inner --grid cells.npz --levels 3 --draw --device cpu");
    assert!(told.contains("the cells of this grid stand in no rows: none has an i"), "{told}");
}

/// By every kernel, and every plan of a program; and in parts.
#[test]
fn every_kernel_computes_the_part_that_is_said() {
    let folder = folder();
    folder.done("verify own.stn --device emulate --grid 17x9x5 --precision f64");
    folder.done("run own.stn --program walls --grid 17x12x4 --draw --device cpu --out b=one.npy");
    folder.done("run own.stn --program walls --grid 17x12x4 --draw --device cpu --gpus 3 --out b=three.npy");
    let [one, three] = ["one.npy", "three.npy"].map(|name| fs::read(folder.path(name)).unwrap());
    assert_eq!(one, three);
}

/// What is said is computed whole, or not at all.
#[test]
fn less_than_is_said_is_refused() {
    let folder = Folder::new();
    let own = "\
stencil below { in a; out b; levels 0..nk; b = a[k-1] }
stencil above { in a; out b on (i, j, k+1); param low: int = 0; levels low..nk + 1; b = a[k-1] + (if k < nk { a } else { 0 }) }
stencil left { in a; out b; i 0..ni - 1; b = a[i-1] }
stencil both { in a; out b; j nj - 3..nj; b = a[j+2] }
stencil before { in a; out b; b = a[i-1] + a[k+1] }
stencil after { in a; out b; b = a[i-2] }
program twice { in a; out b; let c = before(a); b = after(c) on i 2..ni }
program upper { in a; out b; b = before(a) on i 1..ni, levels 1..nk }
program around { in a; out b; boundary a { i: periodic, k: copy }; b = before(a) on i 0..ni, levels 1..nk }
program looped { inout a; repeat 3 { a = before(a) on i 1..ni, levels 0..nk - 1 } }
program wider { inout a; repeat 3 { let b = before(a) on i 1..ni; a = after(b) on i 1..ni } }
";
    fs::write(folder.path("own.stn"), own).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict own.stn",
        "run own.stn --stencil below --grid 9x8x3 --draw --device cpu",
        "explain own.stn --stencil below --grid 9x8x3",
        "run own.stn --stencil above --grid 9x8x3 --draw --device cpu",
        "run own.stn --stencil above --grid 9x8x3 --draw --device cpu --set low=1",
        "run own.stn --stencil left --grid 9x8x3 --draw --device cpu",
        "run own.stn --stencil both --grid 9x8x3 --draw --device cpu",
        "run own.stn --program twice --grid 9x8x3 --draw --device cpu",
        "run own.stn --program upper --grid 9x8x3 --draw --device cpu",
        "run own.stn --program around --grid 9x8x3 --draw --device cpu",
        "run own.stn --program wider --grid 9x8x3 --draw --device cpu",
    ]));
    folder.done("run own.stn --program looped --grid 9x8x3 --draw --device cpu");
    let mesh = "\
mesh columns { set cell; levels k }
stencil below over columns.cell { in a on cell, k; out b on cell, k; levels 0..nk; b = a[k-1] }
program part over columns { in a on cell, k; out b on cell, k; b = moved(a) on levels 0..2 }
stencil moved over columns.cell { in a on cell, k; out b on cell, k; b = a[k-1] }
";
    fs::write(folder.path("mesh.stn"), mesh).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "mesh make icosahedral --size R1B0 -o mesh.npz",
        "run mesh.stn --stencil below --mesh mesh.npz --levels 4 --draw --device cpu",
        "run mesh.stn --program part --mesh mesh.npz --levels 4 --draw --device cpu",
    ]));
}

/// A launch has threads for the part alone.
#[test]
fn a_launch_costs_what_is_in_it() {
    let folder = folder();
    let text = folder.done("build own.stn --stencil row --grid 512x512x64 --emit plan");
    assert!(text.contains("j 511..512, k 0..1"), "{text}");
}

#[test]
fn the_example_of_the_document_does_what_it_says() {
    let text = include_str!("../../docs/language.md");
    let example = text.split("```").find(|block| block.contains("program cool {")).unwrap();
    let folder = Folder::new();
    fs::write(folder.path("cool.stn"), example).unwrap();
    let told = folder.done("test cool.stn");
    assert!(told.contains("passed  cooled_in_a_corner: each call leaves all else as it is"), "{told}");
    let told = folder.refused("run cool.stn --program cool --grid 8x6x4 --draw --device cpu --set wall=9");
    assert!(
        told.contains("`cooled on i 0..wall, levels low..nk` ends before i = 9, which is `wall`, and there are 8"),
        "{told}"
    );
    folder.done("verify cool.stn --program cool --grid 16x9x4 --device emulate");
}
