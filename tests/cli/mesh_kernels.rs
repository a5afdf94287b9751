//! Kernels of stencils over meshes, on the emulator: whatever the strategy, layout and order, what comes out is what the interpreter
//! computes. Where additions have an order, that is every bit.

use crate::common::folder::Folder;
use std::collections::BTreeSet;
use std::fs;
use stencilc_runtime::mesh::{Map, Mesh, Set, save};

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

/// Fields that are added to in different orders of slots.
stencil crossed over sphere.edge {
    in  a on cell = -2..2
    inc mass, heat on cell
    let d = a[cells.0] - a[cells.1]
    mass[cells.0] += d
    mass[cells.1] -= d
    heat[cells.1] -= d * d
    heat[cells.0] += d * abs(d)
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

/// Sets that are called like what kernels have names for, and fields that are called like words of C++ and CUDA.
const NAMES: &str = "
mesh parcels {
    set item, place, side
    map side.places -> place[2]
    map place.items -> item[2]
}

stencil far over parcels.side {
    in  float, threadIdx, double2: real[2] on place
    in  int4
    in  make_double2: f32
    inc double: real[2] on place
    inc is_usual: f32[2] on place
    param while = 0.5
    let f = (float[places.0] - float[places.1]) / (threadIdx[places.0] * threadIdx[places.1] + while)
    double[places.0] += f * make_double2
    double[places.1] -= f * make_double2
    is_usual[places.0] += double2[places.0] / int4
    is_usual[places.1] += double2[places.1] / int4
}

stencil near over parcels.place {
    in  auto
    inc operator: real[2] on item
    operator[items.0] += [auto, 1 / auto]
    operator[items.1] -= [auto, 1 / auto]
}
";

/// A ring of places, each between two items, with sides to those some way on.
fn parcels(places: usize) -> Mesh {
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    let row = |n: usize, by: usize| [(n % places) as i32, ((n * by + 1) % places) as i32];
    let map = |name: &str, from, to, size: usize, by| {
        let table = (0..size).flat_map(|n| row(n, by)).collect();
        Map { name: name.to_owned(), from, to, arity: 2, table }
    };
    Mesh {
        origin: "parcels".to_owned(),
        sets: vec![set("item", places), set("place", places), set("side", 3 * places)],
        maps: vec![map("places", 2, 1, 3 * places, 7), map("items", 1, 0, places, 1)],
        fields: Vec::new(),
    }
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
        ("awkward.stn --stencil ends --mesh sphere.npz --levels 3", false),
        ("awkward.stn --stencil crossed --mesh sphere.npz --levels 2", false),
        ("awkward.stn --stencil corners --mesh sphere.npz --levels 3", false),
        ("awkward.stn --stencil around --mesh sphere.npz --levels 2", false),
    ];
    for (call, has_other_bits) in calls {
        let call = format!("verify {call} --device emulate --strategy all --order none,random --threads 64 --json");
        let told = folder.json(&call);
        let cases = told["meshes"].as_array().unwrap();
        let mut kinds = BTreeSet::new();
        for case in cases {
            let kind = (case["precision"].as_str().unwrap(), case["from_zero"].as_bool().unwrap());
            assert!(kinds.insert(kind), "{call}: {kind:?}");
            let all = case["combinations"].as_array().unwrap();
            let statuses: BTreeSet<(&str, &str)> =
                all.iter().map(|own| (own["strategy"].as_str().unwrap(), own["status"].as_str().unwrap())).collect();
            for strategy in ["owner", "two-step", "tiled"] {
                // Whole and real numbers do not go through one array.
                if strategy == "two-step" && call.contains("--stencil ends") {
                    continue;
                }
                let own: Vec<&str> = statuses.iter().filter(|(name, _)| *name == strategy).map(|own| own.1).collect();
                assert_eq!(own, ["equal"], "{call}: {strategy}");
            }
            // The others add in another order, which has to make a difference somewhere, or nothing is told apart.
            let other_bits = statuses.iter().any(|(_, status)| *status == "within");
            assert!(other_bits || !has_other_bits, "{call}: {statuses:?}");
        }
        assert!(kinds.contains(&("f32", false)) && kinds.contains(&("f64", false)), "{call}: {kinds:?}");
    }
}

#[test]
fn names_are_those_of_users_whatever_kernels_call_theirs() {
    let folder = Folder::new();
    fs::write(folder.path("names.stn"), NAMES).unwrap();
    save(&parcels(150), &folder.path("parcels.npz")).unwrap();
    for (stencil, precision) in [("far", "f64"), ("far", "f32"), ("near", "f64")] {
        let call = format!(
            "bench names.stn --stencil {stencil} --mesh parcels.npz --precision {precision} --device emulate --runs 1 --order none,random --threads 64 --json"
        );
        // No atomic operation rounds to what `is_usual` is stored as.
        let all = ["owner", "two-step", "tiled", "hierarchical-colouring", "global-colouring", "atomic"];
        let own = if (stencil, precision) == ("far", "f64") { &all[..5] } else { &all[..] };
        let verdicts = measured(&folder, &format!("{call} --vectors all --strategy {}", own.join(",")));
        let keeps_order = |strategy: &str| all[..3].contains(&strategy);
        for strategy in own {
            let found: Vec<&str> =
                verdicts.iter().filter(|(name, _)| name == strategy).map(|(_, verdict)| verdict.as_str()).collect();
            let is_right = !found.is_empty() && found.iter().all(|verdict| *verdict == "equal" || *verdict == "within");
            assert!(is_right && (!keeps_order(strategy) || found == ["equal"]), "{call}: {strategy} is {found:?}");
        }
    }
}

/// Slots in one order, and then in another.
const CROSSED: &str = "
mesh ring {
    set edge, cell
    map edge.cells -> cell[2]
}
stencil crossed over ring.edge {
    in  a on cell
    inc mass, heat on cell
    mass[cells.0] += a[cells.1]
    mass[cells.1] -= a[cells.0]
    heat[cells.1] -= a[cells.1]
    heat[cells.0] += a[cells.0]
}
";

#[test]
fn what_no_strategy_can_do_is_told() {
    let folder = Folder::new();
    folder.done("mesh make icosahedral --size R1B1 -o sphere.npz");
    fs::write(folder.path("awkward.stn"), AWKWARD).unwrap();
    fs::write(folder.path("hub.stn"), HUB).unwrap();
    fs::write(folder.path("hub.msh"), fan(30_000)).unwrap();
    fs::write(folder.path("crossed.stn"), CROSSED).unwrap();
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    // The second edge leads from a cell to itself.
    let table = vec![0, 1, 2, 2, 1, 2];
    let mesh = Mesh {
        origin: "loop.npz".to_owned(),
        sets: vec![set("edge", 3), set("cell", 3)],
        maps: vec![Map { name: "cells".to_owned(), from: 0, to: 1, arity: 2, table }],
        fields: Vec::new(),
    };
    save(&mesh, &folder.path("loop.npz")).unwrap();
    let text = folder.transcript(&[
        "bench awkward.stn --stencil corners --mesh sphere.npz --levels 2 --device emulate --strategy atomic --runs 1",
        "bench hub.stn --mesh hub.msh --device emulate --strategy tiled --runs 1",
        "run crossed.stn --mesh loop.npz --device emulate",
        "build crossed.stn -o out",
        "verify crossed.stn --mesh loop.npz --device emulate --precision f64 --strategy owner,global-colouring --vectors aos --order none",
        "bench awkward.stn --stencil ends --mesh sphere.npz --levels 2 --device emulate --order best --runs 1",
        "bench awkward.stn --stencil ends --mesh sphere.npz --levels 2 --device emulate --lead wing --runs 1",
        "bench awkward.stn --stencil ends --mesh sphere.npz --levels 2 --device emulate --threads 128y2 --runs 1",
        "bench awkward.stn --stencil ends --device emulate --runs 1",
        "bench awkward.stn --mesh sphere.npz --device emulate --runs 1",
        "run airfoil --stencil res_calc --mesh sphere.npz --device emulate",
    ]);
    // Which compiler there is differs.
    let is_steady = |line: &&str| !line.contains("compiled by");
    insta::assert_snapshot!(text.lines().filter(is_steady).collect::<Vec<_>>().join("\n"));
}

#[test]
fn bench_says_what_strategies_come_to() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 60x30 -o airfoil.npz");
    folder.done("mesh reorder airfoil.npz --method random --set cell -o random.npz");
    let call = "bench airfoil --stencil res_calc --mesh random.npz --device emulate --runs 1 --vectors aos";
    let told = folder.json(&format!("{call} --order none,auto --json"));
    let rows = told["rows"].as_array().unwrap();
    let row = |strategy: &str, order: &str| {
        let is_it = |row: &&serde_json::Value| row["strategy"] == strategy && row["order"] == order;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{strategy}, {order}: {told}"))
    };
    for strategy in ["owner", "atomic"] {
        let reuse = |order: &str| row(strategy, order)["reuse"].as_f64().unwrap();
        assert!(reuse("none") < 1.3 && reuse("hilbert") > 3.0, "{strategy}: {told}");
    }
    let colours = row("global-colouring", "hilbert");
    assert!(colours["colours"].as_u64().unwrap() >= 4 && colours["reuse"].as_f64().unwrap() < 1.2, "{told}");
    // Two maps with two slots for each edge, and two of its cells' about four edges.
    assert_eq!(row("atomic", "none")["table_bytes"].as_f64(), Some(3540.0 * 16.0 / 1800.0));
    assert_eq!(row("atomic", "none")["colours"], serde_json::Value::Null);
    assert!(told["why_order"].as_str().unwrap().contains("there are coordinates"), "{told}");
    // Columns are there where they say something.
    let text = folder.done(&format!("{call} --strategy owner"));
    let head: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(head, ["strategy", "vectors", "us", "reuse", "tables", "result"], "{text}");
    let text = folder.done(&format!("{call} --strategy owner,global-colouring --order none,rcm"));
    let head: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(head, ["strategy", "vectors", "order", "us", "reuse", "colours", "tables", "result"], "{text}");
}

#[test]
fn the_order_is_chosen_where_none_is_named() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 60x30 -o airfoil.npz");
    folder.done("mesh reorder airfoil.npz --method random --set cell -o random.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "run airfoil --stencil start --mesh airfoil.npz --device emulate",
        "run airfoil --stencil start --mesh random.npz --device emulate",
        "run airfoil --stencil start --mesh random.npz --device emulate --order none",
        "run airfoil --stencil start --mesh random.npz --device emulate --order rcm,none",
        "run airfoil --stencil start --mesh random.npz --device emulate --strategy all",
        "run laplap --grid 8x8x8 --order rcm",
        "bench laplap --grid 8x8x8 --from-zero",
        "bench airfoil --stencil start --mesh random.npz --grid 8x8x8",
    ]));
    assert_eq!(folder.json("run airfoil --mesh airfoil.npz --set steps=1 --json")["order"], serde_json::Value::Null);
    let told = folder.json("run airfoil --mesh random.npz --set steps=1 --device emulate --json");
    assert_eq!(told["order"]["method"], "hilbert", "{told}");
}

#[test]
fn tune_ranks_by_a_model_and_measures_what_may_be_fast() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 60x30 -o airfoil.npz");
    folder.done("mesh reorder airfoil.npz --method random --set cell -o random.npz");
    let call = "tune airfoil --stencil res_calc --mesh random.npz";
    insta::assert_snapshot!(folder.transcript(&[
        &format!("{call} --device cpu --vectors pairs,soa --order none,hilbert"),
        &format!("{call} --device cpu --grid 8x8x8"),
        "tune airfoil --mesh random.npz --device cpu",
        "tune airfoil --stencil res_calc --device cpu",
        "tune laplap --device cpu --vectors aos",
    ]));
    let told = folder.json(&format!(
        "{call} --device emulate --runs 1 --json --strategy owner --vectors pairs --order none,hilbert"
    ));
    let rows = told["rows"].as_array().unwrap();
    let measured: Vec<_> = rows.iter().filter(|row| !row["measured"].is_null()).collect();
    // The best two have other threads, too.
    assert!(measured.iter().any(|row| row["threads"] == 256), "{told}");
    let fastest = told["fastest"].as_str().unwrap();
    assert_eq!(told["rows"][0]["options"], fastest);
    folder.done(&format!("run airfoil --mesh random.npz --set steps=1 --device emulate {fastest}"));
}

#[test]
fn the_model_knows_what_a_cache_cannot_hold() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 600x300 -o airfoil.npz");
    let call = "tune airfoil --stencil res_calc --mesh airfoil.npz --device cpu --json";
    let told = folder.json(&format!("{call} --order none,random --vectors aos,soa"));
    let row = |strategy: &str, order: &str, vectors: &str| {
        let rows = told["rows"].as_array().unwrap().iter();
        let mut own =
            rows.filter(|row| row["strategy"] == strategy && row["order"] == order && row["vectors"] == vectors);
        own.next().unwrap()["memory_bytes"].as_f64().unwrap()
    };
    // What a cell has, each number once, and res twice; the four edges of a cell come with tables of 34 bytes.
    let (cells, nodes) = (180_000.0, 180_600.0);
    let least = cells * (32.0 + 8.0 + 2.0 * 32.0 + 34.0) + nodes * 16.0;
    let owner = row("owner", "none", "aos");
    assert!((1.0..1.15).contains(&(owner / least)), "{owner} and {least}");
    // At random each cell's neighbours come by themselves, and part by part in more pieces.
    let [together, apart] = ["aos", "soa"].map(|vectors| row("owner", "random", vectors));
    assert!(together > 2.0 * owner && apart > 2.0 * together, "{owner}, {together}, {apart}");
    assert!(row("two-step", "none", "aos") > 2.0 * owner);
    // Each colour comes by most of the cells.
    assert!(row("global-colouring", "none", "aos") > 1.8 * row("atomic", "none", "aos"));
}

#[test]
fn numbers_are_told_and_those_that_have_none() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o airfoil.npz");
    let text = "
mesh m { set node, edge, cell; map edge.cells -> cell[2] }
stencil step over m.cell { in q; reduce dt: min; dt = q }
program p over m {
    in q on cell
    out least: real on ()
    out never: real on ()
    param steps: int = 0
    dt = step(q)
    least = dt * 2
    repeat steps { never = size(cell) * dt }
}
";
    fs::write(folder.path("numbers.stn"), text.replace("; ", "\n")).unwrap();
    let text = folder.transcript(&[
        "run numbers.stn --mesh airfoil.npz --draw --device cpu",
        "run numbers.stn --mesh airfoil.npz --draw --device cpu --set steps=1",
        "run numbers.stn --mesh airfoil.npz --draw --device cpu --set stops=1",
        "run numbers.stn --mesh airfoil.npz --draw --device cpu --set n=1",
    ]);
    // How fast steps are differs.
    let steady: Vec<&str> = text.lines().map(|line| line.split(" steps a second").next().unwrap_or(line)).collect();
    let steady: Vec<&str> = steady.iter().map(|line| line.split(", 1 step,").next().unwrap_or(line)).collect();
    insta::assert_snapshot!(steady.join("\n"));
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
    let texts = || -> Vec<String> {
        run("--device emulate --texts texts", "own.npy");
        let files = fs::read_dir(folder.path("texts")).unwrap();
        let mut names: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap().replace(".cu", "")).collect();
        names.sort();
        names
    };
    assert_eq!(texts(), ["adt_calc", "fold_sum_f64", "res_calc_bres_calc_update", "start"]);
    for more in [
        "--strategy owner",
        "--fuse separate",
        "--no-graph",
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

/// A program whose numbers steer it: what goes on from a checkpoint needs them, too.
const STEERED: &str = "
mesh plane { set edge; set cell; map edge.cells -> cell[2] }
stencil flux over plane.edge {
    in a on cell
    inc res on cell
    let f = 0.25*(a[cells.1] - a[cells.0])
    res[cells.0] += f
    res[cells.1] += -f
}
stencil update over plane.cell { in a, res, still; param dt: real; out b; b = a + dt*res*still }
stencil total over plane.cell { in a; reduce t: sum; t += a*a }
program steered over plane {
    inout a on cell
    in still on cell
    out t: real on ()
    param n: int = 6
    param m: int = 3
    let first = total(a)
    t = 0
    repeat n {
        let res = flux(a)
        a = update(a, res, still, dt = 1/(1 + t/first))
        t = total(a)
    }
    let all = total(a)
    repeat m { a = update(a, a, still, dt = all/first/1000); t = t + 1 }
}
";

#[test]
fn runs_over_meshes_go_on_from_checkpoints_with_the_same_bits() {
    let folder = Folder::new();
    fs::write(folder.path("steered.stn"), STEERED).unwrap();
    fs::write(folder.path("other.stn"), STEERED.replace("1000", "2000")).unwrap();
    folder.done("mesh make airfoil --size 12x5 -o m.npz");
    folder.done("mesh make airfoil --size 12x6 -o other.npz");
    let run = "run steered.stn --mesh m.npz";
    folder.done(&format!("{run} --draw --device cpu --out a=whole.npy"));
    let whole = fs::read(folder.path("whole.npy")).unwrap();
    folder.done(&format!("{run} --draw --device cpu --every 1 --checkpoint way_{{step}}.npz"));
    for (step, device) in [(1, "cpu"), (4, "emulate"), (6, "cpu"), (7, "emulate"), (9, "cpu")] {
        let on = format!("{run} --resume way_{step}.npz --device {device} --out a=end.npy --json");
        let report = folder.json(&on);
        assert_eq!(fs::read(folder.path("end.npy")).unwrap(), whole, "from step {step} on {device}");
        assert_eq!((&report["resumed_after"], &report["drawn"]), (&step.into(), &serde_json::json!([])));
    }
    // A loop that a checkpoint is in goes on to the number that is asked for now.
    folder.done(&format!("{run} --draw --device cpu --set n=8 --out a=longer.npy"));
    let longer = fs::read(folder.path("longer.npy")).unwrap();
    for (step, device) in [(4, "cpu"), (6, "emulate")] {
        folder.done(&format!("{run} --resume way_{step}.npz --set n=8 --device {device} --out a=end.npy"));
        assert_eq!(fs::read(folder.path("end.npy")).unwrap(), longer, "from step {step} on {device}");
    }
    let said = folder.done(&format!("{run} --resume way_7.npz --device cpu"));
    assert!(said.contains(", 2 steps after the 7 of the checkpoint, "), "{said}");
    insta::assert_snapshot!(folder.transcript(&[
        &format!("{run} --resume way_7.npz --device cpu --set n=5"),
        &format!("{run} --resume way_7.npz --in a=whole.npy"),
        &format!("{run} --resume way_7.npz --draw=still"),
        &format!("{run} --resume way_7.npz --precision f32"),
        &format!("{run} --resume nowhere.npz"),
        &format!("{run} --resume m.npz"),
        "run steered.stn --mesh other.npz --resume way_7.npz",
        "run other.stn --mesh m.npz --resume way_7.npz",
        "run steered.stn --mesh m.npz --stencil total --draw --checkpoint no.npz",
        "run diffusion4 --resume way_7.npz",
    ]));
}

#[test]
fn what_was_tuned_over_a_mesh_is_taken_where_nothing_is_asked_for() {
    let folder = Folder::new();
    fs::write(folder.path("steered.stn"), STEERED).unwrap();
    folder.done("mesh make airfoil --size 12x5 -o m.npz");
    folder.done("mesh make airfoil --size 12x6 -o other.npz");
    let on = "steered.stn --stencil flux --mesh m.npz --device emulate";
    let report = folder.json(&format!("tune {on} --budget 2 --json"));
    let options = report["fastest_in_order"].as_str().unwrap();
    assert!(fs::read_to_string(report["kept"].as_str().unwrap()).unwrap().contains(options), "{report}");
    let told = |call: &str| {
        let output = folder.run(call);
        assert!(output.status.success());
        let notes = String::from_utf8(output.stderr).unwrap();
        notes.lines().find(|line| line.contains("tuned for")).map(str::to_owned)
    };
    let out = "--draw --out res=res.npy";
    let taken = told(&format!("run {on} {out}"));
    let expected = format!("note: tuned for emulator and m.npz: {options} (--untuned takes the usual way)");
    assert_eq!(taken.as_deref(), Some(expected.as_str()));
    let tuned = fs::read(folder.path("res.npy")).unwrap();
    for other in [
        format!("run {on} {out} --untuned"),
        format!("run {on} {out} --strategy owner"),
        format!("run {on} {out} --order none"),
        format!("run steered.stn --stencil flux --mesh m.npz --device cpu {out}"),
    ] {
        assert_eq!(told(&other), None, "{other}");
        assert_eq!(fs::read(folder.path("res.npy")).unwrap(), tuned, "{other}");
    }
    assert_eq!(told(&format!("run {} --draw", on.replace("m.npz", "other.npz"))), None);
    assert_eq!(told(&format!("run {on} --draw --precision f32")), None);
    // What was asked for, or is to be forgotten, is not what is taken elsewhere.
    for more in ["--strategy owner", "--forget"] {
        assert_eq!(
            folder.json(&format!("tune {on} --budget 1 --json {more}"))["kept"],
            serde_json::Value::Null,
            "{more}"
        );
    }
}

#[test]
fn programs_over_meshes_are_measured_and_tuned() {
    let folder = Folder::new();
    fs::write(folder.path("steered.stn"), STEERED).unwrap();
    folder.done("mesh make airfoil --size 12x5 -o m.npz");
    let on = "steered.stn --program steered --mesh m.npz --device emulate";
    let report = folder.json(&format!("bench {on} --runs 1 --times 3 --vectors aos --order none --json"));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(report["program"], "steered");
    assert!(rows.len() >= 3 && rows.iter().all(|row| row["verdict"] == "equal"), "{report}");
    assert!(rows.iter().any(|row| row["fuse"] == "separate"), "{report}");
    let report = folder.json(&format!("tune {on} --runs 1 --times 3 --budget 2 --json"));
    let options = report["fastest"].as_str().unwrap();
    assert_eq!(report["fastest_in_order"], options);
    assert!(fs::read_to_string(report["kept"].as_str().unwrap()).unwrap().contains(options), "{report}");
    let told = |more: &str| {
        let output = folder.run(&format!("run {on} --draw --out a=a.npy {more}"));
        assert!(output.status.success());
        let is_told = String::from_utf8(output.stderr).unwrap().contains(&format!("m.npz: {options} (--untuned"));
        (is_told, fs::read(folder.path("a.npy")).unwrap())
    };
    let (is_told, tuned) = told("");
    assert!(is_told);
    for more in ["--untuned", "--fuse separate", "--order none"] {
        assert_eq!(told(more), (false, tuned.clone()), "{more}");
    }
    assert_eq!(
        folder.json(&format!("tune {on} --runs 1 --budget 0 --fuse separate --json"))["kept"],
        serde_json::Value::Null
    );
}
