//! `stencilc mesh`.

use crate::common::folder::Folder;
use serde_json::json;
use std::fs;
use stencilc_runtime::mesh::load;

#[test]
fn meshes_are_made() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.transcript(&[
        "mesh make airfoil --size 12x6 -o airfoil.npz",
        "mesh make icosahedral --size R2B1 --radius 6371229 -o sphere.npz",
        "mesh make limited --size R2B2 --within 30 --centre 10,50 --lateral 1 --nudging 2 -o area.npz",
        "mesh make triangles --size 5x4 --perturb 0.2 --seed 3 -o triangles.npz",
        "mesh make hexahedra --size 4x3x2 -o box.npz",
        "mesh make hexahedra --size 4x3x2 -o box.npz --json",
    ]));
    assert_eq!(
        folder.json("mesh make airfoil --size 120x60 -o made.npz --json"),
        json!({"files": ["made.npz"], "sets": {"node": 7320, "edge": 14_280, "bedge": 240, "cell": 7200}})
    );
    assert_eq!(load(&folder.path("made.npz")).unwrap().sets[3].size, 7200);
    // The same call writes the same bytes, and another seed others.
    let bytes = |line: &str| {
        folder.done(&format!("mesh make triangles --size 5x4 --perturb 0.2 -o again.npz {line}"));
        fs::read(folder.path("again.npz")).unwrap()
    };
    assert!(bytes("--seed 3") == fs::read(folder.path("triangles.npz")).unwrap());
    assert!(bytes("--seed 4") != bytes("--seed 3"));
}

#[test]
fn wrong_calls_of_meshes() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.transcript(&[
        "mesh make airfoil --size 2x6 -o a.npz",
        "mesh make airfoil --size 12 -o a.npz",
        "mesh make airfoil --size 12x6 -o a.npy",
        "mesh make airfoil --size 12x6 -o none/a.npz",
        "mesh make airfoil --size 90000x90000 -o a.npz",
        "mesh make icosahedral --size 2B4 -o a.npz",
        "mesh make icosahedral --size R2B4 --radius -1 -o a.npz",
        "mesh make icosahedral --size R2B40 -o a.npz",
        "mesh make limited --size R2B2 -o a.npz",
        "mesh make limited --size R2B2 --within 300 -o a.npz",
        "mesh make limited --size R2B2 --within 179 -o a.npz",
        "mesh make limited --size R2B2 --within 1 --centre 3,50 -o a.npz",
        "mesh make limited --size R2B2 --within 30 --centre 50 -o a.npz",
        "mesh make limited --size R2B2 --within 30 --centre 10,95 -o a.npz",
        "mesh make limited --size R2B2 --within 30 --lateral 0 -o a.npz",
        "mesh make limited --size R2B2 --within 30 -o a.npz",
        "mesh make triangles --size 3x3 --perturb 0.5 -o a.npz",
        "mesh make hexahedra --size 3x3 -o a.npz",
        "mesh make tetrahedra --size 3x3 -o a.npz",
        "mesh",
    ]));
}

#[test]
fn what_meshes_consist_of() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o airfoil.npz");
    folder.done("mesh make icosahedral --size R1B1 -o sphere.npz");
    folder.done("mesh make limited --size R1B2 --within 50 --lateral 1 --nudging 1 -o area.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "mesh info airfoil.npz --picture airfoil.png",
        "mesh info sphere.npz --picture sphere.png --cells vertex.cells",
        "mesh info sphere.npz --picture sphere.png --cells vertex.edge",
        "mesh info area.npz --picture area.png",
        "mesh info sphere.npz --picture sphere.svg",
        "mesh info sphere.npz --cells vertex.cells",
        "mesh info none.npz",
        "mesh info phi.npy",
        "mesh info two.stn",
    ]));
    for name in ["airfoil.png", "sphere.png", "area.png"] {
        assert!(fs::read(folder.path(name)).unwrap().starts_with(b"\x89PNG"));
    }
    let said = folder.json("mesh info airfoil.npz --json");
    assert_eq!(said["sets"], json!({"node": 84, "edge": 132, "bedge": 24, "cell": 72}));
    assert_eq!(
        said["maps"][1],
        json!({
            "name": "edge.cells", "to": "cell", "slots": 2, "holes": 0, "repeated": 0, "unused": 0,
            "uses": {"mean": 264.0 / 72.0, "most": 4},
            // 66 edges beside cells of one ring, six of which close it; 60 between two rings.
            "row": {"mean": (66.0 + 6.0 * 11.0 + 60.0 * 12.0) / 132.0, "most": 12},
            "shared": said["maps"][1]["shared"],
        })
    );
    assert_eq!(said["fields"][1]["range"], json!([1.0, 2.0]));
}

#[test]
fn files_that_hold_no_mesh() {
    let folder = Folder::new();
    let given = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/grid_120x60.dat");
    let text = fs::read_to_string(given).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // One node of one cell is none.
    let mut wrong = lines.clone();
    wrong[7382 + 500] = "1 2 7381 3";
    fs::write(folder.path("node.dat"), wrong.join("\n")).unwrap();
    fs::write(folder.path("short.dat"), lines[..9000].join("\n")).unwrap();
    fs::write(folder.path("broken.dat"), &text[..text.len() / 2 + 3]).unwrap();
    fs::write(folder.path("empty.npz"), "").unwrap();
    fs::write(folder.path("text.npz"), "no archive").unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "mesh info node.dat",
        "mesh info short.dat",
        "mesh info broken.dat",
        "mesh info empty.npz",
        "mesh info text.npz",
        "mesh info folder.stn",
    ]));
}

#[test]
fn meshes_are_reordered() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 60x30 -o airfoil.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "mesh reorder airfoil.npz --method random --seed 1 --set cell -o random.npz",
        "mesh reorder random.npz --method hilbert --set cell -o hilbert.npz",
        "mesh reorder random.npz --method rcm --set edge --block 128 -o rcm.npz",
    ]));
    // Partitions go by random numbers that not all C libraries have.
    let said = folder.json("mesh reorder random.npz --method metis --set cell --block 64 -o metis.npz --json");
    let reuse = |when: &str| said[when]["reuse"][4]["mean"].as_f64().unwrap();
    assert!(reuse("before") < 1.1 && reuse("after") > 2.8, "{said}");
    // The numbers that the user knows, through both orderings, lead back to the places of the first mesh.
    let [first, last] = ["airfoil.npz", "metis.npz"].map(|name| load(&folder.path(name)).unwrap());
    let node = first.set_named("node").unwrap();
    let numbers = last.field_on("user_number", node, None).unwrap();
    let [old, new] = [&first, &last].map(|mesh| mesh.field_on("x", node, None).unwrap());
    for number in 0..first.sets[node].size {
        let user = numbers.data.get(number) as usize;
        assert_eq!(
            [0, 1].map(|part| new.data.get(2 * number + part)),
            [0, 1].map(|part| old.data.get(2 * user + part))
        );
    }
    let said = folder.json("mesh reorder random.npz --method gps --set cell -o gps.npz --json");
    assert_eq!((&said["files"], &said["method"], &said["block"]), (&json!(["gps.npz"]), &json!("gps"), &json!(256)));
    assert_eq!(said["before"]["reuse"][1]["map"], json!("edge.cells"));
    assert!(said["after"]["bandwidth"]["max"].as_u64() <= Some(62), "{said}");
    assert!(said["before"]["bandwidth"]["max"].as_u64() > Some(1000), "{said}");
}

#[test]
fn wrong_orders_of_meshes() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o airfoil.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "mesh reorder airfoil.npz --method hilbrt --set cell -o a.npz",
        "mesh reorder airfoil.npz --method rcm --set cells -o a.npz",
        "mesh reorder airfoil.npz --method rcm --set vortex -o a.npz",
        "mesh reorder airfoil.npz --method rcm -o a.npz",
        "mesh reorder airfoil.npz --method rcm --set cell",
        "mesh reorder airfoil.npz --method rcm --set cell -o a.dat",
        "mesh reorder airfoil.npz --method hilbert --coordinates y --set cell -o a.npz",
        "mesh reorder airfoil.npz --method hilbert --coordinates bound --set cell -o a.npz",
        "mesh reorder airfoil.npz --method metis --block 0 --set cell -o a.npz",
        "mesh reorder none.npz --method rcm --set cell -o a.npz",
    ]));
    assert!(!folder.path("a.npz").exists());
}

#[test]
fn meshes_are_converted() {
    let folder = Folder::new();
    folder.done("mesh make icosahedral --size R1B1 -o sphere.npz");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/grid_120x60.dat"), folder.path("new_grid.dat")).unwrap();
    let square = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mesh_files/square_4_binary.msh");
    fs::copy(square, folder.path("square.msh")).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "mesh convert new_grid.dat -o airfoil.npz",
        "mesh convert airfoil.npz -o airfoil.vtu",
        "mesh convert sphere.npz -o sphere.vtu",
        "mesh convert sphere.npz -o sphere.vtu --json",
        "mesh convert sphere.npz -o sphere.vtk",
        "mesh convert none.npz -o sphere.vtu",
        "mesh convert square.msh -o square.npz",
        "mesh info square.npz",
    ]));
    let [given, converted] = ["new_grid.dat", "airfoil.npz"].map(|name| load(&folder.path(name)).unwrap());
    assert_eq!((given.maps, given.fields), (converted.maps, converted.fields));
    let bytes = fs::read(folder.path("airfoil.vtu")).unwrap();
    let head = String::from_utf8_lossy(&bytes[..200]).into_owned();
    assert!(head.contains("NumberOfPoints=\"7381\" NumberOfCells=\"7480\""), "cells and border: {head}");
}
