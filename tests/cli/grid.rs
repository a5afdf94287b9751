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

/// A program without boundaries.
const SMOOTH: &str = "program smooth { inout a; repeat 3 { a = step(a) } }
stencil step { in a; out b; b = a + 0.1 * (a[i+1] + a[i-1] + a[j+1] + a[j-1] - 4 * a) }";

#[test]
fn where_nothing_is_chosen_tables_say_where_neighbours_are() {
    let folder = Folder::new();
    folder.done("grid make quadtree --size 6x6 --depth 1 -o quad.npz");
    fs::write(folder.path("smooth.stn"), SMOOTH).unwrap();
    fs::write(
        folder.path("up.stn"),
        "stencil up { in a; out b; sweep k up { b = if k == 0 { a } else { a[i+1] + b[k-1] } } }",
    )
    .unwrap();
    for (file, options, told) in [
        ("laplap", "--levels 40", "patches access, uncompressed"),
        ("laplap", "--levels 3", "idxvar access, uncompressed"),
        ("fastwaves", "--levels 40", "idxvar access, uncompressed"),
        ("laplap", "--levels 40 --access zloop", "zloop access, uncompressed"),
        ("laplap", "--levels 40 --layout hilbert", "idxvar access, uncompressed"),
        ("laplap", "--levels 40 --checked", "idxvar access, uncompressed"),
        ("laplap", "--levels 40 --storage compressed", "idxvar access, compressed"),
        ("up.stn", "--levels 40", "zloop access, uncompressed"),
    ] {
        let call = format!("run {file} --grid quad.npz {options} --device emulate --draw");
        let said = folder.done(&call);
        assert!(said.contains(told), "{call}: {said}");
    }
    let said = folder.run("run laplap --grid quad.npz --levels 40 --storage regular --device emulate --draw");
    assert!(text(&said.stderr).contains("regular storage is for grids in rows"), "{}", text(&said.stderr));
    // How many levels there are an array may tell.
    folder.done("run laplap --grid quad.npz --levels 40 --device cpu --draw --seed 3 --out res=phi.npy --cast");
    let said = folder.done("run laplap --grid quad.npz --device emulate --in phi=phi.npy");
    assert!(said.contains("patches access"), "{said}");

    let run = "run smooth.stn --grid quad.npz --levels 40 --draw --untuned";
    folder.done(&format!("{run} --device cpu --out a=cpu.npy"));
    folder.done(&format!("{run} --device emulate --out a=emulated.npy"));
    assert_eq!(fs::read(folder.path("cpu.npy")).unwrap(), fs::read(folder.path("emulated.npy")).unwrap());
    let plan = folder.done("build smooth.stn --program smooth --grid quad.npz --levels 40 --emit plan");
    assert!(plan.starts_with("--fuse merged --storage uncompressed --access patches"), "{plan}");
    let plan = folder.done("build laplap --grid quad.npz --levels 40 --emit plan");
    assert!(plan.contains("patch "), "{plan}");
    let said = folder.done("explain smooth.stn --program smooth --grid quad.npz --levels 40");
    assert!(said.contains("--access patches"), "{said}");
}

#[test]
fn plans_on_cells_are_searched_among_tables() {
    let folder = Folder::new();
    folder.done("grid make quadtree --size 6x6 --depth 1 -o quad.npz");
    fs::write(folder.path("smooth.stn"), SMOOTH).unwrap();
    let options = "smooth.stn --grid quad.npz --levels 40 --device emulate --runs 1 --times 3 --fuse merged";
    let report = folder.json(&format!("tune {options} --budget 1000000 --json"));
    let case = &report["cases"][0];
    let tried = case["tried"].as_u64().unwrap() + case["hopeless"].as_u64().unwrap();
    // Three, and the usual one, whose registers nobody bounds.
    assert_eq!((&case["complete"], case["among"].as_u64(), tried), (&true.into(), Some(4), 4), "{case}");
    let report = folder.json(&format!("bench {options} --json"));
    let plans = report["cases"][0]["plans"].as_array().unwrap().iter();
    let mut plans: Vec<&str> = plans.map(|own| own["plan"].as_str().unwrap()).collect();
    plans.sort_unstable();
    let start = "--fuse merged --storage uncompressed --access";
    let expected =
        ["idxvar --block 64x2x1", "idxvar --block 64x2x1 --fastest levels", "patches --block 32x4x1 --fastest levels"];
    assert_eq!(plans, expected.map(|own| format!("{start} {own}")));
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
