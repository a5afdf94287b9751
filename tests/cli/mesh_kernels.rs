//! Kernels of stencils over meshes, on the emulator: whatever the strategy, layout and order, what comes out is what the interpreter
//! computes. Where additions have an order, that is every bit.

use super::folder::Folder;
use std::collections::BTreeSet;
use std::fs;

/// Stencils whose increments are awkward: mirrored differences that are divided by, holes, elements that lead to one place twice,
/// composed maps, fields of other types, levels, and what is added to at the element itself.
const AWKWARD: &str = "
mesh sphere {
    set vertex, edge, cell
    map edge.cells     -> cell[2]
    map edge.vertices  -> vertex[2]
    map cell.edges     -> edge[3]
    map cell.vertices  -> vertex[3]
    map vertex.edges   -> edge[6] missing skip
    map vertex.cells   -> cell[6] missing skip
    levels k
}

/// Nearly the same from either end, but not quite: signs of what is divided by, and of zeros.
stencil ends over sphere.edge {
    in  a on cell = -2..2
    in  b: f32 on cell, no k
    in  w
    inc total on cell
    inc count: int on cell
    let d = a[cells.0] - a[cells.1]
    let e = abs(a[cells.0] * b[cells.1]) + 0.5
    total[cells.0] += d / (d * d + e) + copysign(w, d) - min(a[cells.0], a[cells.1])
    count[cells.0] += 1
    total[cells.1] -= d / (d * d + e) - copysign(w, d) + max(a[cells.0], a[cells.1])
    count[cells.1] += if a[cells.0] > a[cells.1] { 2 } else { 3 }
}

/// Three slots, holes on the way back, the element itself, and a field in single precision.
stencil corners over sphere.cell {
    in  a on vertex
    in  m on cell
    inc f: f32 on vertex
    inc own on cell
    let c = (a[vertices.0] + a[vertices.1] + a[vertices.2]) / 3
    f[vertices.0] += c - a[vertices.0]
    f[vertices.1] += (c - a[vertices.1]) * m
    f[vertices.2] += if k == 0 { c } else { m[edges.0.cells.1, k-1] }
    own += 2 * c
}

/// Through holes, along composed maps, and back to where it came from.
stencil around over sphere.vertex {
    in  u on edge
    in  weight on vertex.edges, no k
    in  q: real[3] on cell
    out mean, widest
    inc out_there: real[3] on cell
    reduce all: sum
    reduce least: min
    reduce most: max
    let first = if present(edges.0) { u[edges.0] } else { 1 }
    mean = sum(e in edges) { weight[e] * u[e] } / sum(e in edges) { 1 }
    widest = max(e in edges) { u[e] } - min(c in cells) { q[c].1 }
    out_there[cells.0] += if present(cells.0) { q[cells.0] * 2 } else { [0, 0, 0] }
    out_there[cells.5] += [first, 1, -first]
    all += first
    least = first - sum(e in edges) { weight[e] }
    most = first * 2
}
";

/// What is added to one node by so many that no block of threads can keep it.
const HUB: &str = "
mesh fan { set node, cell; map cell.nodes -> node[3] }
stencil hub over fan.cell { in a; inc total on node; total[nodes.0] += a; total[nodes.1] += 2 * a * a }
";

/// So many triangles around a node, as Gmsh writes them.
fn fan(triangles: usize) -> String {
    let mut text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n1 0 0 0\n", triangles + 1);
    for n in 0..triangles {
        let angle = std::f64::consts::TAU * n as f64 / triangles as f64;
        text.push_str(&format!("{} {} {} 0\n", n + 2, angle.cos(), angle.sin()));
    }
    text.push_str(&format!("$EndNodes\n$Elements\n{triangles}\n"));
    for n in 0..triangles {
        text.push_str(&format!("{} 2 2 0 0 1 {} {}\n", n + 1, n + 2, (n + 1) % triangles + 2));
    }
    text.push_str("$EndElements\n");
    text
}

fn measured(folder: &Folder, call: &str) -> BTreeSet<(String, String)> {
    let told = folder.json(call);
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    told["rows"].as_array().unwrap().iter().map(|row| (text(row, "strategy"), text(row, "verdict"))).collect()
}

#[test]
fn strategies_that_keep_the_order_keep_the_bits() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x10 -o airfoil.npz");
    folder.done("mesh make icosahedral --size R2B1 -o sphere.npz");
    fs::write(folder.path("awkward.stn"), AWKWARD).unwrap();
    let calls = [
        ("airfoil --stencil res_calc --mesh airfoil.npz", true),
        ("airfoil --stencil bres_calc --mesh airfoil.npz", false),
        ("airfoil --stencil update --mesh airfoil.npz", false),
        ("awkward.stn --stencil ends --mesh sphere.npz --mesh-levels 3", false),
        ("awkward.stn --stencil corners --mesh sphere.npz --mesh-levels 3", false),
        ("awkward.stn --stencil around --mesh sphere.npz --mesh-levels 2", false),
    ];
    for (call, has_other_bits) in calls {
        for precision in ["f32", "f64"] {
            for more in ["", "--from-zero"] {
                let call = format!(
                    "bench {call} --precision {precision} {more} --device emulate --runs 1 --orders none,random --threads 64 --json"
                );
                let verdicts = measured(&folder, &call);
                for strategy in ["owner", "two-step", "tiled"] {
                    // Whole and real numbers do not go through one array.
                    if strategy == "two-step" && call.contains("--stencil ends") {
                        continue;
                    }
                    let own: Vec<&str> = verdicts
                        .iter()
                        .filter(|(name, _)| name == strategy)
                        .map(|(_, verdict)| verdict.as_str())
                        .collect();
                    assert_eq!(own, ["equal"], "{call}: {strategy}");
                }
                // The others add in another order, which has to make a difference somewhere, or nothing is told apart.
                let other_bits = verdicts.iter().any(|(_, verdict)| verdict == "within");
                assert!(other_bits || !has_other_bits, "{call}: {verdicts:?}");
            }
        }
    }
}

#[test]
fn what_no_strategy_can_do_is_told() {
    let folder = Folder::new();
    folder.done("mesh make icosahedral --size R1B1 -o sphere.npz");
    fs::write(folder.path("awkward.stn"), AWKWARD).unwrap();
    fs::write(folder.path("hub.stn"), HUB).unwrap();
    fs::write(folder.path("hub.msh"), fan(30_000)).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "bench awkward.stn --stencil corners --mesh sphere.npz --mesh-levels 2 --device emulate --strategies atomic --runs 1",
        "bench hub.stn --mesh hub.msh --device emulate --strategies tiled --runs 1",
        "bench awkward.stn --stencil ends --mesh sphere.npz --mesh-levels 2 --device emulate --orders best --runs 1",
        "bench awkward.stn --stencil ends --mesh sphere.npz --mesh-levels 2 --device emulate --lead wing --runs 1",
        "bench awkward.stn --stencil ends --mesh sphere.npz --mesh-levels 2 --device emulate --threads 128y2 --runs 1",
        "bench awkward.stn --stencil ends --device emulate --runs 1",
        "bench awkward.stn --mesh sphere.npz --device emulate --runs 1",
        "run airfoil --stencil res_calc --mesh sphere.npz --device emulate",
    ]));
}

#[test]
fn a_flow_is_the_same_by_kernels() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x10 -o airfoil.npz");
    let run = |more: &str, out: &str| {
        folder.done(&format!("run airfoil --mesh airfoil.npz --set steps=4 --out q={out} {more}"));
        fs::read(folder.path(out)).unwrap()
    };
    let expected = run("--device cpu", "cpu.npy");
    for more in [
        "--strategy owner",
        "--strategy two-step --vectors soa",
        "--strategy owner --order hilbert --vectors aos",
        "--strategy tiled --threads 64",
        "--strategy tiled --order metis --vectors aos",
    ] {
        assert!(run(&format!("--device emulate {more}"), "own.npy") == expected, "{more}");
    }
    // Colours add in an order of their own, the same every time.
    let other = run("--device emulate --strategy hierarchical-colouring --order metis --lead edge", "other.npy");
    assert!(other != expected);
    assert!(run("--device emulate --strategy hierarchical-colouring --order metis --lead edge", "other.npy") == other);
}
