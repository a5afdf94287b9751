//! `stencilc grid make`, and `--grid` with a file.

use super::read;
use crate::common::folder::{Folder, text};
use std::fs;

/// Files of arrays by their names.
fn grid(folder: &Folder, name: &str) -> stencilc_compiler::grid::Adjacency {
    stencilc_runtime::grid::load(&folder.path(name)).unwrap()
}

#[test]
fn grids_are_made_and_run_on() {
    let folder = Folder::new();
    let said = folder.done("grid make quadtree --size 12x10 --depth 2 --refine circle -o quad.npz");
    let cells = grid(&folder, "quad.npz").cells();
    assert!(said.contains(&format!("wrote quad.npz: {cells} cells")) && said.contains("divided 2 times"), "{said}");
    let run = "run laplap --grid quad.npz --levels 3 --device cpu --out res=res.npy --plot res=res.png";
    let said = folder.done(run);
    assert!(said.contains(&format!("grid {cells} cells x 3, computed")), "{said}");
    let (shape, numbers) = read(&folder.path("res.npy"));
    assert_eq!(shape, [3, cells as u64]);
    let computed = numbers.iter().filter(|number| !number.is_nan()).count();
    assert!(computed > 0 && computed < numbers.len() && computed % 3 == 0, "{computed}");
    assert!(fs::read(folder.path("res.png")).unwrap().starts_with(b"\x89PNG"));
    // Levels follow from an array.
    fs::rename(folder.path("res.npy"), folder.path("phi.npy")).unwrap();
    let said = folder.done("run laplap --grid quad.npz --device cpu --in phi=phi.npy");
    assert!(said.contains("cells x 3,"), "{said}");
}

#[test]
fn an_emulated_grid_computes_what_rows_do() {
    let folder = Folder::new();
    folder.done("grid make emulated --size 9x6 -o rows.npz");
    // phi.npy has 9x6x3 cells.
    let (_, numbers) = read(&folder.path("phi.npy"));
    let array = stencilc_runtime::Array { shape: vec![3, 54], data: stencilc_runtime::Data::F64(numbers) };
    stencilc_runtime::npy::save(&folder.path("cells.npy"), &array).unwrap();
    folder.done("run laplap --in phi=phi.npy --out res=a.npy --device cpu");
    folder.done("run laplap --in phi=cells.npy --grid rows.npz --out res=b.npy --device cpu");
    let bits = |name: &str| read(&folder.path(name)).1.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
    assert_eq!(bits("a.npy"), bits("b.npy"));
}

#[test]
fn prints_are_shown_at_cells() {
    let folder = Folder::new();
    folder.done("grid make emulated --size 4x3 -o rows.npz");
    fs::write(folder.path("own.stn"), "stencil own { in a; out b; let d = a[i+1] - a[i+1]; print(d); b = d }").unwrap();
    let run = "run own.stn --grid rows.npz --levels 2 --device cpu";
    let said = folder.done(&format!("{run} --at 5,1 --at 7"));
    assert!(said.contains("at 5,1  0.0") && said.contains("at 7,0  not computed here"), "{said}");
    assert!(folder.done(run).contains("at 5,1  0.0"));
    for (at, part) in [("12,0", "cells count from 0,0 to 11,1"), ("0,2", "lies outside"), ("0,0,0", "as in 17,5")] {
        let said = folder.run(&format!("{run} --at {at}"));
        assert_eq!(said.status.code(), Some(2));
        assert!(text(&said.stderr).contains(part), "{}", text(&said.stderr));
    }
}

#[test]
fn wrong_calls_of_grids() {
    let folder = Folder::new();
    folder.done("grid make emulated --size 3x3 -o small.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "run laplap --grid none.npz --levels 2 --device cpu",
        "run laplap --grid small.npz --device cpu",
        "run laplap --grid small.npz --levels 2 --device cpu",
        "run laplap --grid small.npz --levels 0 --device cpu",
        "run laplap --grid small.npz --in phi=phi.npy --device cpu",
        "run laplap --grid 9x9x2 --levels 2 --device cpu",
        "build laplap --grid small.npz --storage compressed",
        "explain laplap --grid small.npz",
        "grid make quadtree --size 4 -o quad.npz",
        "grid make quadtree --size 4x4 -o quad.npy",
        "grid make quadtree --size 4x4 --refine rim -o quad.npz",
        "grid make quadtree --size 4x4 --refine none.npy -o quad.npz",
        "grid make quadtree --size 90000x90000 -o quad.npz",
        "grid make quadtree --size 4x4 --depth 13 -o quad.npz",
        "grid make emulated --size 4x4 -o none/rows.npz",
    ]));
}
