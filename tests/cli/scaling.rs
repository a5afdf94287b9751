//! `stencilc bench --gpus`, on the emulator and the interpreter: everything but that times mean something.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Looks at the points of a case by themselves: what one takes is a share of what some do.
fn check(points: &Value, is_weak: bool) {
    let points = points.as_array().unwrap();
    let median = |point: &Value| number(&point["us_a_step"]["median_us"]);
    let one = median(&points[0]);
    let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * a.abs().max(b.abs()), "{a} {b}");
    for point in points {
        let shares = if is_weak { 1.0 } else { number(&point["gpus"]) };
        close(number(&point["efficiency"]), one / (shares * median(point)));
        if point["gpus"] == 1 {
            assert!(point["brought"].is_null() && point["share"].is_null() && point["not_hidden_us"].is_null());
        } else {
            close(number(&point["not_hidden_us"]), median(point) - number(&point["share"]["median_us"]));
        }
    }
}

#[test]
fn programs_on_grids_scale_weakly_and_strongly() {
    let folder = Folder::new();
    let bench = "bench diffusion4 --grid 24x16x3,20x18x2 --precision both --times 4 --runs 2 --gpus 3 --json";
    for device in
        ["cpu", "emulate --fuse separate --no-graph", "native --storage uncompressed --access naive --blocks 8x2x1"]
    {
        let report = folder.json(&format!("{bench} --device {device}"));
        let cases = report["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 4);
        for case in cases {
            check(&case["weak"], true);
            check(&case["strong"], false);
        }
        let case = &cases[0];
        assert_eq!([&case["program"], &case["precision"], &case["grid"]], ["diffusion4", "f32", "24x16x3"]);
        assert_eq!((&case["times"], &case["method"]["runs"]), (&4.into(), &2.into()));
        let plan = case["plan"].as_str();
        let expected = match device.split_once(' ') {
            None => None,
            Some(("emulate", _)) => Some("--fuse separate --storage regular --access idxvar --block 64x2x1 --no-graph"),
            Some(_) => Some("--fuse merged --storage uncompressed --access naive --block 8x2x1"),
        };
        assert_eq!(plan, expected);
        let all = |points: &Value, what: &str| -> Vec<Value> {
            points.as_array().unwrap().iter().map(|point| point[what].clone()).collect()
        };
        assert_eq!(all(&case["weak"], "gpus"), [1, 2, 3]);
        assert_eq!(all(&case["weak"], "grid"), ["24x16x3", "24x32x3", "24x48x3"]);
        assert_eq!(all(&case["strong"], "grid"), ["24x16x3"; 3]);
        assert_eq!(case["strong"][2]["parts"], serde_json::json!([5, 6]));
        // Two rows from each side, of 24 x 3 numbers of 4 bytes: of two parts in a circle, both from the same.
        let row = 24 * 3 * 4;
        for (n, link) in [(1, 4 * row), (2, 2 * row)] {
            let brought = &case["strong"][n]["brought"];
            assert_eq!(number(&brought["exchanges"]), 1.0);
            assert_eq!(number(&brought["bytes_to_a_part"]), f64::from(4 * row));
            assert_eq!(number(&brought["bytes_over_a_link"]), f64::from(link));
        }
        // What `explain` counts is what is told.
        let explained =
            folder.json("explain diffusion4 --program diffusion4 --precision f32 --grid 24x16x3 --gpus 3 --json");
        assert_eq!(explained["parts"]["bytes"], 4 * row);
    }
    let said = folder.done("bench diffusion4 --grid 24x16x3 --times 4 --runs 1 --gpus 2 --device cpu --no-verify");
    let heads: Vec<&str> = said.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(
        heads[0].starts_with("diffusion4 f64 24x16x3 on ") && heads[0].ends_with("; 1 measurement of 4 steps each"),
        "{said}"
    );
    assert!(said.contains("weak, as many rows for each as one has:\n") && said.contains("strong, the same in all:\n"));
    assert!(
        said.contains("GPUs  rows  us a step") && said.contains("B over a link  share alone  not hidden"),
        "{said}"
    );
}

#[test]
fn programs_over_meshes_scale_strongly() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x12 -o airfoil.npz");
    let bench = "bench airfoil --program airfoil_flow --mesh airfoil.npz --times 2 --runs 2 --gpus 2";
    for device in ["cpu", "emulate --strategy tiled --order random", "native --fuse separate"] {
        let report = folder.json(&format!("{bench} --device {device} --json"));
        let case = &report["cases"][0];
        assert_eq!([&case["program"], &case["mesh"]], ["airfoil_flow", "airfoil.npz"]);
        assert!(case["weak"].is_null() && case["strong"][0]["grid"].is_null());
        check(&case["strong"], false);
        assert_eq!(
            case["order"]["method"].as_str(),
            match device.split_once(' ') {
                None => None,
                Some(("emulate", _)) => Some("random"),
                Some(_) => case["order"]["method"].as_str().filter(|method| *method != "random"),
            }
        );
        let brought = &case["strong"][1]["brought"];
        assert!(number(&brought["bytes_to_a_part"]) > 0.0 && number(&brought["bytes_folded"]) > 0.0, "{brought}");
        assert!(brought["bytes_over_a_link"].is_null());
    }
    let said = folder.done(&format!("{bench} --device cpu"));
    assert!(said.contains("weak: not measured, since a mesh is as large as its file says\n"), "{said}");
    assert!(said.contains("GPUs  ") && said.contains("B to a part"), "{said}");
}

#[test]
fn what_cannot_scale_is_told() {
    let folder = Folder::new();
    folder.done("mesh make icosahedral --size R2B1 -o sphere.npz");
    folder.done("grid make quadtree --size 12x10 --depth 2 --refine circle -o quad.npz");
    let open =
        "program open { inout a; repeat 3 { a = mean(a) } }\nstencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }";
    fs::write(folder.path("open.stn"), open).unwrap();
    let heat = "bench heat --program heat_walls --times 2 --runs 1 --device cpu --grid 24x9x3";
    let sphere = "bench icosahedral --mesh sphere.npz --levels 2 --device cpu --gpus 2";
    for (call, status, part) in [
        (format!("{heat} --gpus 1"), 2, "1 is not in 2..=1024"),
        (format!("{heat} --gpus many"), 2, "invalid value 'many' for '--gpus <N>'"),
        (
            format!("{heat} --gpus 10"),
            1,
            "9 rows are too few for 10 parts: program `heat_walls` looks at 1 beyond an edge",
        ),
        (format!("{heat} --gpus 2 --fuse merged,separate"), 2, "--gpus measures one plan, and --fuse names 2"),
        (format!("{heat} --gpus 2 --steps 1,2"), 2, "--gpus measures one plan, and --steps names 2"),
        (
            format!("{heat} --gpus 2 --storage regular,uncompressed"),
            2,
            "--gpus measures one kernel, and the options name ",
        ),
        (format!("{heat} --gpus 2 --access naive --blocks few"), 2, "name one storage, one strategy and one block"),
        (format!("{heat} --gpus 2 --top 3"), 2, "--top makes no difference here: --gpus measures one plan"),
        (format!("{heat} --gpus 2 --hot"), 2, "--hot makes no difference here"),
        (format!("{heat} --gpus 2 -o rows.jsonl"), 2, "--output is for kernels of stencils"),
        (format!("{heat} --gpus 2 --csv rows.csv"), 2, "--csv is for kernels of stencils"),
        (
            "bench open.stn --program open --device cpu --grid quad.npz --gpus 2".to_owned(),
            1,
            "is on a grid whose cells stand in no rows, and parts are rows",
        ),
        (
            "bench heat --program heat_periodic --times 2 --device emulate --grid 128x16x3 --gpus 2 --fuse streamed"
                .to_owned(),
            1,
            "fetches what lies beyond an edge by itself, from one grid",
        ),
        (
            "bench laplap --grid 24x9x3 --device cpu --gpus 2".to_owned(),
            2,
            "--gpus is for programs, and `laplap` is a stencil",
        ),
        (format!("{sphere} --stencil gradient"), 2, "--gpus is for programs, and `gradient` is a stencil"),
        (format!("{sphere} --program diffusion --texts kernels"), 2, "--gpus measures one way"),
        (format!("{sphere} --program diffusion --fuse streamed"), 2, "--fuse streamed"),
        (
            format!("{sphere} --program diffusion --blocks few"),
            2,
            "--blocks is for grids, and `diffusion` runs over a mesh",
        ),
        (format!("{sphere} --program diffusion").replace("--gpus 2", "--gpus 1000"), 1, "1000"),
        (format!("{sphere} --program diffusion").replace("cpu", "emulate --strategy owner,tiled"), 2, "--strategy"),
    ] {
        let output = folder.run(&call);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(part), "{call}: {:?} {said}", output.status);
    }
}
