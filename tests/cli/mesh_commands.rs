//! `verify`, `explain` and `build` of stencils over meshes.

use crate::common::folder::Folder;
use serde_json::{Value, json};
use std::fs;

fn meshes() -> Folder {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x10 -o airfoil.npz");
    folder.done("mesh make icosahedral --size R1B1 -o sphere.npz");
    folder.done("mesh make triangles --size 4x3 -o flat.npz");
    fs::write(
        folder.path("plain.stn"),
        "mesh m { set edge, cell
map edge.cells -> cell[2]
}
/// Cells add to themselves alone.
stencil grow over m.cell { in q
inc total
total += 2 * q
}
/// Whole and real numbers.
stencil kinds over m.edge { in q on cell
inc total on cell
inc count: int on cell
total[cells.0] += q[cells.1]
count[cells.1] += 1
}
",
    )
    .unwrap();
    folder
}

#[test]
fn every_strategy_is_compared_with_the_interpreter() {
    let folder = meshes();
    let text = folder.transcript(&[
        "verify airfoil --stencil res_calc --mesh airfoil.npz --device emulate --precision f64 --vectors aos",
        "verify plain.stn --mesh airfoil.npz --device emulate --precision f32 --order auto --vectors pairs",
        "verify airfoil --stencil update --mesh airfoil.npz --device emulate --precision f32 --order none --threads 32,64x2",
        "verify flood --stencil advance --mesh flat.npz --device emulate --precision f64 --strategy owner --vectors soa --order none",
        "verify airfoil --program airfoil_flow --mesh airfoil.npz --device emulate --precision f64 --times 2 --vectors pairs --order none,random",
        "verify airfoil --program airfoil_flow --mesh airfoil.npz --device emulate --precision f32 --times 1 --fuse merged --vectors aos --order none",
        "verify airfoil --program airfoil_flow --mesh airfoil.npz --device emulate --fuse tiled",
        "verify airfoil --program airfoil_flow --mesh airfoil.npz --device emulate --strategy atomic",
        "verify airfoil --program airfoil_flwo --mesh airfoil.npz --device emulate",
        "verify airfoil --mesh sphere.npz --device emulate",
        "verify airfoil --device emulate",
        "verify airfoil --stencil res_clac --mesh airfoil.npz --device emulate",
        "verify airfoil --mesh airfoil.npz --grid 8x8x8 --device emulate",
        "verify laplap --mesh airfoil.npz --device emulate",
        "verify laplap --levels 3 --device emulate",
        "verify plain.stn --stencil grow --mesh airfoil.npz --device cpu",
    ]);
    // Which compiler there is differs.
    let is_steady = |line: &&str| !line.contains("compiled by");
    insta::assert_snapshot!(text.lines().filter(is_steady).collect::<Vec<_>>().join("\n"));
    let told = folder.json(
        "verify plain.stn --stencil kinds --mesh airfoil.npz --device emulate --precision f64 --vectors pairs --json",
    );
    let case = &told["meshes"][1];
    assert_eq!((&case["stencil"], &case["from_zero"]), (&json!("kinds"), &json!(true)));
    let rows = case["combinations"].as_array().unwrap();
    let status = |strategy: &str| -> Vec<&Value> {
        rows.iter().filter(|row| row["strategy"] == strategy).map(|row| &row["status"]).collect()
    };
    assert_eq!(status("owner"), vec!["equal"; 3]);
    // They do not go through one array.
    assert_eq!(status("two-step"), vec!["refused"; 3]);
    assert_eq!(told["totals"]["failed"], 0);
}

#[test]
fn what_is_written_where_is_explained() {
    let folder = meshes();
    insta::assert_snapshot!(folder.transcript(&[
        "explain airfoil --stencil res_calc",
        "explain airfoil --stencil res_calc --mesh airfoil.npz --vectors aos",
        "explain airfoil --stencil update",
        "explain plain.stn --stencil kinds",
        "explain plain.stn --stencil grow",
        "explain icosahedral --stencil divergence",
        "explain airfoil",
        "explain airfoil --stencil res_calc --grid 8x8x8",
        "explain laplap --mesh airfoil.npz",
        "explain laplap --levels 8",
    ]));
    let told = folder.json("explain airfoil --stencil res_calc --mesh airfoil.npz --json");
    let of = |strategy: &str| {
        let rows = told["strategies"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == strategy).unwrap()["figures"].clone()
    };
    // Each of 456 edges is computed by both of its cells.
    assert_eq!(of("owner")["flops"].as_f64(), of("atomic")["flops"].as_f64().map(|flops| 2.0 * flops));
    let edges = folder.json("mesh info airfoil.npz --json")["sets"]["edge"].as_f64().unwrap();
    assert_eq!(of("atomic")["atomics"], json!(8.0 * edges));
    assert_eq!(of("owner")["atomics"], json!(0.0));
}

#[test]
fn kernels_over_meshes_are_built() {
    let folder = meshes();
    insta::assert_snapshot!(folder.transcript(&[
        "build airfoil --stencil res_calc -o made",
        "build airfoil --stencil res_calc --strategy two-step --vectors aos -o made",
        "build airfoil --stencil bres_calc --mesh airfoil.npz -o made",
        "build plain.stn --stencil grow --emit cuda",
        "build airfoil --stencil res_calc --emit ir",
        "build airfoil --stencil update --emit ir",
        "build airfoil --stencil res_calc --strategy tiled",
        "build airfoil --stencil res_calc --strategy tiled --mesh airfoil.npz -o made",
        "build plain.stn --stencil grow --emit plan",
        "build plain.stn --stencil grow --emit cubin",
        "build plain.stn --stencil kinds --strategy two-step",
        "build plain.stn --stencil grow --strategy owner,atomic",
        "build icosahedral --stencil divergence",
        "build icosahedral --stencil divergence --levels 5 -o made --json",
        "build plain.stn --stencil grow --grid 8x8x8",
        "build laplap --mesh airfoil.npz",
        "build laplap --levels 5",
    ]));
    let text = fs::read_to_string(folder.path("made/res_calc_gathered.cu")).unwrap();
    assert!(text.contains("res_calc_gathered("), "{text}");
}
