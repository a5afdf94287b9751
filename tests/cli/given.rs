//! What is given to compute with: which numbers are taken, whichever way they come, and what is drawn where none are given.

use crate::common::folder::{Folder, text};
use std::fs;
use stencilc_runtime::mesh::{Field, Map, Mesh, Set, save};
use stencilc_runtime::{Array, Data, npy};

/// A mesh of three cells in a row, with fields on them.
fn line(folder: &Folder, file: &str, fields: &[(&str, usize, Data)]) {
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    let ends = Map { name: "cells".to_owned(), from: 0, to: 1, arity: 2, table: vec![0, 1, 1, 2] };
    let fields = fields.iter().map(|(name, set, data)| {
        let size = [2, 3][*set];
        Field { name: (*name).to_owned(), set: *set, map: None, parts: data.len() / size, data: data.clone() }
    });
    let mesh = Mesh {
        origin: file.to_owned(),
        sets: vec![set("edge", 2), set("cell", 3)],
        maps: vec![ends],
        fields: fields.collect(),
    };
    save(&mesh, &folder.path(file)).unwrap();
}

/// What a call says on stderr, and its exit status.
fn said(folder: &Folder, call: &str) -> (String, i32) {
    let output = folder.run(call);
    (text(&output.stderr), output.status.code().unwrap_or(-1))
}

#[track_caller]
fn refused(folder: &Folder, call: &str, status: i32, parts: &[&str]) {
    let (said, found) = said(folder, call);
    assert_eq!(found, status, "{call}: {said}");
    for part in parts {
        assert!(said.contains(part), "{call}: {said}");
    }
}

#[test]
fn fields_of_a_mesh_are_judged_as_arrays_are() {
    let folder = Folder::new();
    let mut taken = 0;
    let given = [
        Data::F64(vec![0.75, 2.0, 3.0]),
        Data::F64(vec![1.0, 3e9, 0.0]),
        Data::F64(vec![0.0, 1.0, f64::NAN]),
        Data::F64(vec![0.0, 1e39, 1.0]),
        Data::F32(vec![0.5, f32::INFINITY, 1.0]),
        Data::I32(vec![7, 1, 0]),
        Data::Bool(vec![1, 0, 1]),
    ];
    line(&folder, "bare.npz", &[]);
    for data in given {
        line(&folder, "full.npz", &[("a", 1, data.clone())]);
        npy::save(&folder.path("a.npy"), &Array { shape: vec![3], data: data.clone() }).unwrap();
        for kind in ["real", "f32", "f64", "int", "bool"] {
            let stencil = format!("stencil copy over line.cell {{ in a: {kind}; out b: {kind}; b = a }}");
            let text = format!(
                "mesh line {{ set cell }}\n{stencil}\nprogram p over line {{ in a: {kind} on cell; out b: {kind} on cell; b = copy(a) }}\n"
            );
            fs::write(folder.path("copy.stn"), text).unwrap();
            for precision in ["f64", "f32"] {
                for more in ["", " --cast", " --stencil copy", " --stencil copy --cast"] {
                    let call = format!("run copy.stn --device cpu --precision {precision}{more} --out b=b.npy --mesh");
                    let along = said(&folder, &format!("{call} full.npz"));
                    let file = fs::read(folder.path("b.npy")).ok();
                    let array = said(&folder, &format!("{call} bare.npz --in a=a.npy"));
                    let about = format!("{data:?} as {kind}, {precision}{more}");
                    assert_eq!((along.0.replace("`full.npz`", "the array"), along.1), array, "{about}");
                    assert!(array.1 == 0 || array.1 == 1 && array.0.starts_with("error: `a` "), "{about}: {}", array.0);
                    assert_eq!(file, fs::read(folder.path("b.npy")).ok(), "{about}");
                    taken += usize::from(array.1 == 0);
                    _ = fs::remove_file(folder.path("b.npy"));
                }
            }
        }
    }
    assert!((100..200).contains(&taken), "{taken} of 280 are taken");
}

#[test]
fn what_measures_rounds_fields_of_a_mesh_and_changes_no_others() {
    let folder = Folder::new();
    let text = "mesh line { set cell }\nstencil s over line.cell { in a; in n: int; out b; b = a * n }\n";
    fs::write(folder.path("s.stn"), text).unwrap();
    let numbers = || Data::F64(vec![0.1, 0.2, 0.3]);
    line(&folder, "right.npz", &[("a", 1, numbers()), ("n", 1, Data::I32(vec![1, 2, 3]))]);
    line(&folder, "wrong.npz", &[("a", 1, numbers()), ("n", 1, numbers())]);
    line(&folder, "large.npz", &[("a", 1, Data::F64(vec![0.1, 1e39, 0.3]))]);
    let bench = "bench s.stn --device emulate --precision f32 --runs 1 --mesh";
    folder.done(&format!("{bench} right.npz"));
    refused(&folder, &format!("{bench} wrong.npz"), 1, &["`n` is stored as int, `wrong.npz` holds f64"]);
    refused(&folder, &format!("{bench} large.npz"), 1, &["`a` holds 1e39 at [1]", "single precision ends at 3.4e38"]);
}

#[test]
fn a_field_of_a_mesh_that_cannot_be_taken_is_no_reason_to_draw_one() {
    let folder = Folder::new();
    let numbers = |count: usize| Data::F64((0..count).map(|number| number as f64).collect());
    line(&folder, "line.npz", &[("a", 1, numbers(3)), ("v", 1, numbers(6)), ("e", 0, numbers(2))]);
    for (field, said) in [
        (
            "a",
            "error: `a` is real on cell with levels, in line.npz it is real on cell without\nhelp: declare it as it is there: `a on cell, no k`",
        ),
        ("v: real[2]", "error: `v` is real[2] on cell with levels, in line.npz it is real[2] on cell without"),
        ("v: real[3], no k", "error: `v` is real[3] on cell, no k, in line.npz it is real[2] on cell"),
        ("e", "error: `e` is real on cell, in line.npz it is real on edge"),
        ("e on (k)", "error: `e` is real on (k), in line.npz it is real on edge"),
    ] {
        let (name, rest) = field.split_at(1);
        let declared = if rest.is_empty() { "a".replace('a', name) } else { field.replace(", no k", " on cell, no k") };
        let value = if field.contains('[') { format!("{name}.0") } else { name.to_owned() };
        let stencil = format!("stencil s over line.cell {{ in {declared}; out b; b = {value} + k }}");
        fs::write(folder.path("s.stn"), format!("mesh line {{ set edge, cell; levels k }}\n{stencil}\n")).unwrap();
        for call in ["run s.stn --device cpu", "bench s.stn --device cpu", "verify s.stn --device cpu"] {
            refused(&folder, &format!("{call} --levels 2 --mesh line.npz"), 1, &[said]);
        }
        // Who names it gets random numbers all the same.
        let told = folder.json(&format!("run s.stn --device cpu --levels 2 --mesh line.npz --draw={name} --json"));
        assert_eq!(told["drawn"], serde_json::json!([name]));
    }
}

#[test]
fn nothing_is_drawn_beside_what_is_given() {
    let folder = Folder::new();
    let drawn = |call: &str| folder.json(&format!("run {call} --device cpu --json"))["drawn"].clone();
    // `column` reads `a` and `h`.
    assert_eq!(drawn("column.stn --grid 9x6x3"), serde_json::json!(["a", "h"]));
    assert_eq!(drawn("column.stn --in a=phi.npy --draw"), serde_json::json!(["h"]));
    assert_eq!(drawn("column.stn --in a=phi.npy --draw=h"), serde_json::json!(["h"]));
    assert_eq!(drawn("column.stn --grid 9x6x3 --draw=h,a"), serde_json::json!(["a", "h"]));
    assert_eq!(drawn("diffusion4 --grid 8x8x1 --draw"), serde_json::json!(["phi"]));
    fs::write(folder.path("flow.stn"), FLOW).unwrap();
    line(&folder, "bare.npz", &[]);
    line(&folder, "half.npz", &[("a", 1, Data::F64(vec![1.0; 3]))]);
    assert_eq!(drawn("flow.stn --stencil flow --mesh half.npz"), serde_json::json!(["c"]));
    assert_eq!(drawn("flow.stn --mesh half.npz --draw=c"), serde_json::json!(["c"]));
    let told = folder.json("run flow.stn --mesh half.npz --draw --device cpu --json");
    assert_eq!((&told["of_the_mesh"], &told["drawn"]), (&serde_json::json!(["a"]), &serde_json::json!(["c"])));
    npy::save(&folder.path("a.npy"), &Array { shape: vec![3], data: Data::F64(vec![1.0; 3]) }).unwrap();
    folder.done("run diffusion4 --grid 8x8x1 --draw --set steps=1 --checkpoint way.npz --device cpu");
    insta::assert_snapshot!(folder.transcript(&[
        "run column.stn --in a=phi.npy --device cpu",
        "run column.stn --in a=phi.npy --draw=a --device cpu",
        "run column.stn --in a=phi.npy --draw=hh --device cpu",
        "run column.stn --grid 9x6x3 --draw=a --device cpu",
        "run diffusion4 --grid 8x8x1 --device cpu",
        "run gray_scott --grid 8x8x1 --device cpu",
        "run gray_scott --in u=phi.npy --device cpu",
        "run flow.stn --mesh bare.npz --device cpu",
        "run flow.stn --mesh half.npz --device cpu",
        "run flow.stn --stencil flow --mesh bare.npz --in a=a.npy --device cpu",
        "run flow.stn --mesh half.npz --draw=b --device cpu",
        "run diffusion4 --resume way.npz --draw=phi --device cpu",
    ]));
}

const FLOW: &str = "mesh line { set cell }
stencil flow over line.cell { in a, c; out b; b = a + c }
program both over line { in a, c on cell; out b on cell; b = flow(a, c) }
";

#[test]
fn a_cast_loses_precision_and_no_numbers() {
    let folder = Folder::new();
    fs::write(folder.path("whole.stn"), "stencil whole { in a: int; out b: int; b = a }").unwrap();
    fs::write(folder.path("truth.stn"), "stencil truth { in a: bool; out b: bool; b = a }").unwrap();
    for (number, stencil) in [
        (f64::NAN, "whole.stn"),
        (f64::INFINITY, "whole.stn"),
        (3e9, "whole.stn"),
        (f64::NAN, "truth.stn"),
        (1e39, "laplap --precision f32"),
    ] {
        let mut numbers = vec![1.0; 162];
        numbers[60] = number;
        npy::save(&folder.path("a.npy"), &Array { shape: vec![3, 6, 9], data: Data::F64(numbers) }).unwrap();
        let name = if stencil.contains("laplap") { "phi" } else { "a" };
        let call = format!("run {stencil} --device cpu --in {name}=a.npy --cast");
        refused(&folder, &call, 1, &[&format!("error: `{name}` holds {number:?} at [1, 0, 6], and ")]);
    }
    let numbers = (0..162).map(|number| f64::from(number) + 0.75).collect();
    npy::save(&folder.path("a.npy"), &Array { shape: vec![3, 6, 9], data: Data::F64(numbers) }).unwrap();
    folder.done("run whole.stn --device cpu --in a=a.npy --cast --out b=b.npy");
    assert_eq!(npy::load(&folder.path("b.npy")).unwrap().data, Data::I32((0..162).collect()));
}

#[test]
fn numbers_are_finite_and_fit_the_precision() {
    let folder = Folder::new();
    fs::write(folder.path("far.stn"), "stencil far { in a = 1e39..1e40; out b; b = a }").unwrap();
    fs::write(folder.path("none.stn"), "stencil none { in a: int = 0.25..0.75; out b: int; b = a }").unwrap();
    let tiny = "stencil s { in a; param p: real; out b; b = p*a }\n\
                program tiny { inout a; param x = 1e-60; a = s(a, x) }\n";
    fs::write(folder.path("tiny.stn"), tiny).unwrap();
    let set = "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --set";
    insta::assert_snapshot!(folder.transcript(&[
        "run far.stn --grid 4x4x1 --device cpu --precision f32",
        "verify far.stn --grid 4x4x1 --device cpu --precision f32",
        "run none.stn --grid 4x4x1 --device cpu",
        &format!("{set} feed=nan"),
        &format!("{set} feed=-inf"),
        &format!("{set} feed=1e999"),
        &format!("{set} feed=1e39 --precision f32"),
        &format!("{set} feed=1e-60 --precision f32"),
        "run weigh.stn --device cpu --grid 9x6x3 --set first=3e9",
        "run diffusion4 --device cpu --grid 8x8x1 --draw --set alpha=nan",
        "run tiny.stn --device cpu --grid 4x4x1 --draw --precision f32",
    ]));
    folder.done("run far.stn --grid 4x4x1 --device cpu");
}

#[test]
fn what_is_made_can_be_computed_with() {
    let folder = Folder::new();
    for (radius, field) in [("1e308", "inf"), ("1e155", "inf"), ("1e-170", "0.0"), ("1e-155", "e-31")] {
        let call = format!("mesh make icosahedral --size R1B0 --radius {radius} -o m.npz");
        refused(&folder, &call, 2, &["of this mesh would be ", field, "give a mesh of another size"]);
        assert!(!folder.path("m.npz").exists());
    }
    for radius in ["1e-150", "6371229", "1e153"] {
        folder.done(&format!("mesh make icosahedral --size R1B0 --radius {radius} -o m.npz"));
        assert!(!folder.done("mesh info m.npz").contains("inf"));
    }
    let nothing = Array { shape: vec![2, 2], data: Data::F64(vec![f64::NAN; 4]) };
    npy::save(&folder.path("nan.npy"), &nothing).unwrap();
    let call = "grid make quadtree --size 4x4 --refine nan.npy -o quad.npz";
    refused(&folder, call, 1, &["holds nothing but NaN and infinities"]);
}

#[test]
fn what_was_meant_is_guessed() {
    let folder = Folder::new();
    line(&folder, "line.npz", &[]);
    fs::write(folder.path("smag.stn"), "stencil smag { in a; param p; param n: int; out r; r = p * n * a }\n").unwrap();
    let mesh = "mesh line { set cell }\nstencil copy over line.cell { in a; out b; b = a }\n";
    fs::write(folder.path("copy.stn"), mesh).unwrap();
    let run = "--device cpu --grid 4x3x2";
    refused(&folder, &format!("run smg.stn {run}"), 1, &["no file `smg.stn`", "did you mean `smag.stn`?"]);
    refused(&folder, &format!("run smag.stn {run} --set n=1 --set p=1/3"), 2, &["give 0.3333333333333333"]);
    refused(&folder, &format!("run smag.stn {run} --set p=1 --set n=6/3"), 2, &["give 2"]);
    refused(&folder, &format!("run smag.stn {run} --set p=1 --set n=1/3"), 2, &["give a whole number"]);
    refused(&folder, &format!("run smag.stn {run} --set n=1 --set p=1/0"), 2, &["give a number such as 0.5"]);
    refused(&folder, "run copy.stn --mesh line.npz --device cpu --plot c=b.png", 2, &["it has a, b"]);
    refused(
        &folder,
        "run diffusion4 --draw --grid 8x8x1 --device cpu --out phi=x{stp}.npy",
        2,
        &["did you mean `{step}`?"],
    );
}

#[test]
fn a_block_that_is_suggested_fits() {
    let folder = Folder::new();
    let lets: String =
        (0..40).map(|n| format!("let x{} = x{n} + x{n}[i+1] + x{n}[j+1] + x{n}[i-1]\n", n + 1)).collect();
    let far = format!("stencil far {{\nin a\nout r\nlet x0 = a\n{lets}r = x40\n}}\n");
    fs::write(folder.path("far.stn"), far).unwrap();
    let build = "build far.stn --emit plan --storage compressed --access shared";
    refused(&folder, build, 1, &["a block of 32x1x8 threads would share", "--block 4x1x8; or", "--access idxvar"]);
    refused(&folder, &format!("{build} --block 8x2x8"), 1, &["--block 4x1x8; or"]);
    assert_eq!(said(&folder, &format!("{build} --block 4x1x8")).1, 0);
}
