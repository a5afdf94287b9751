//! `stencilc mesh`.

use super::folder::Folder;
use serde_json::json;
use std::fs;
use stencilc_runtime::mesh::load;

#[test]
fn meshes_are_made() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.transcript(&[
        "mesh make airfoil --size 12x6 -o airfoil.npz",
        "mesh make icosahedral --size R2B1 --radius 6371229 -o sphere.npz",
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
        "mesh make triangles --size 3x3 --perturb 0.5 -o a.npz",
        "mesh make hexahedra --size 3x3 -o a.npz",
        "mesh make tetrahedra --size 3x3 -o a.npz",
        "mesh",
    ]));
}
