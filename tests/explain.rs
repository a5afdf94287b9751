//! `stencilc explain`: every number against a count by hand, or by another way.

use crate::common::{lowered, problem, stencils};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::process::{Command, Stdio};
use stencilc_compiler::analysis::extents::demand;
use stencilc_compiler::analysis::levels::{self, Known};
use stencilc_compiler::analysis::reached::{Class, classes};
use stencilc_compiler::analysis::reuse::{Evaluation, evaluate};
use stencilc_compiler::analysis::traffic::traffic;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Handle, Levels, Path, Precision, Stencil};
use stencilc_compiler::plan::path_classes::Walker;
use stencilc_compiler::plan::schedule::schedule;
use stencilc_runtime::problem::Problem;

/// A guard that is off by one, and one that is right.
const VERTICAL: &str = "\
/// The difference to the level above, and what is left of the one below.
stencil vertical {
    in  phi
    out res
    param last: int = 60
    let above = if k >= 0 { phi[k-1] } else { phi }
    let below = if k < nk-1 && k < last { phi[k+1] } else { phi }
    res = 2*phi - above - below
}
";

/// Fields on fewer axes, and one on interfaces.
const PLACES: &str = "\
stencil places {
    in  phi
    in  area   on (i, j)
    in  weight on (k)
    in  hhl: f32 on (i, j, k+1)
    out res
    out column: f32 on (i, j)
    let flux = phi * weight
    res = (flux[i+1] - flux[i-1]) / (hhl[k+1] - hhl) + sqrt(area[j+1])
    column = area * area[i-1]
}
";

/// Runs the program on a file of this text, or on a stencil that comes along, without GPU and NVRTC.
fn explain(text: &str, options: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut file = text.to_owned();
    if text.contains('\n') {
        file = "it.stn".to_owned();
        std::fs::write(folder.path().join(&file), text).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_stencilc"))
        .args(["explain", &file])
        .args(options.split_whitespace())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .env("STENCILC_HOME", folder.path().join("home"))
        .env("STENCILC_NVRTC", "nowhere")
        .env("CUDA_VISIBLE_DEVICES", "")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn told(text: &str, options: &str) -> String {
    let (status, stdout, stderr) = explain(text, options);
    assert_eq!(status, 0, "{stderr}");
    stdout
}

fn data(text: &str, options: &str) -> Value {
    serde_json::from_str(&told(text, &format!("{options} --json"))).unwrap()
}

#[test]
fn texts() {
    insta::assert_snapshot!("hdiff", told("hdiff", "--gpu h200"));
    insta::assert_snapshot!("fastwaves", told("fastwaves", "--precision f32 --bandwidth 900 --flops 14000"));
    insta::assert_snapshot!("vertical", told(VERTICAL, "--grid 64x64x80 --gpu a100"));
    insta::assert_snapshot!("places", told(PLACES, "--grid 20x10x5"));
}

#[test]
fn hdiff_by_hand() {
    let said = data("hdiff", "--gpu h200");
    // Each flux needs the Laplacian twice, and is itself named twice in `limited`; four fluxes: 16 Laplacians of 5 reads.
    // Four gradients of 2 reads, phi and coeff at the cell.
    let work = &said["work"][0];
    assert_eq!(work["levels"], json!([{ "start": 0, "end": 64 }]));
    assert_eq!(work["reads_anew"], 16 * 5 + 4 * 2 + 2);
    assert_eq!(work["reads_written"], 5 * 5 + 4 * 2 + 2);
    // The diamond of 13, and coeff.
    assert_eq!(work["reads"], 13 + 1);
    // Laplacians at 5 places; flux, gradient, fx at 2, and for fy again.
    assert_eq!(work["values"], 5 + 2 * (2 + 2 + 2));
    assert_eq!(work["values_anew"], 16 + 2 * (4 + 2 + 2));
    // A Laplacian is an fma and 3 sums; a flux and a gradient a difference each, `limited` a product; the result 3 sums
    // and an fma.
    assert_eq!(work["flops"], 5 * (2 + 3) + 4 + 4 + 4 + (3 + 2));
    assert_eq!(work["flops_anew"], 16 * (2 + 3) + 8 + 4 + 4 + (3 + 2));
    let operations = &work["operations"];
    assert_eq!(operations["additions"], 5 * 3 + 4 + 4 + 3);
    assert_eq!(operations["multiplications"], 4);
    assert_eq!(operations["fused multiply-adds"], 5 + 1);
    assert_eq!(operations["comparisons"], 4);
    assert_eq!(operations["choices by data"], 4);
    assert_eq!(operations["divisions"], 0);
    assert_eq!(said["values"][0], json!({ "name": "lap", "origin": "let", "offsets": 5, "anew": 16 }));

    // phi without what no diamond touches: two rows of 508 and two of 510 at the top and bottom, 508 of 512.
    let cells = 508.0 * 508.0 * 64.0;
    let touched = (2.0 * (508.0 + 510.0) + 508.0 * 512.0) * 64.0;
    assert_eq!(said["cells"], 508 * 508 * 64);
    assert_eq!(said["fields"][0]["read_bytes_per_cell"], touched * 8.0 / cells);
    let bytes = touched * 8.0 + 2.0 * 8.0 * cells;
    assert_eq!(said["bytes_per_cell"], bytes / cells);
    assert_eq!(said["intensity"], 42.0 * cells / bytes);
    // 4.8 TB/s, and 34 Tflop/s where every instruction is an fma: 26 sums, 4 products, 6 fmas.
    let bound = &said["bounds"][0];
    assert_eq!(bound["memory_us"], bytes / 4800.0 * 1e-3);
    assert_eq!(bound["arithmetic_us"], 2.0 * 36.0 * cells / 34_000.0 * 1e-3);
    assert_eq!((bound["bound_us"].clone(), bound["binding"].clone()), (bound["memory_us"].clone(), json!("memory")));
}

#[test]
fn levels_by_hand() {
    let (status, stdout, _) = explain(VERTICAL, "--grid 8x8x80 --gpu h200 --json");
    assert_eq!(status, 0);
    let said: Value = serde_json::from_str(&stdout).unwrap();
    let levels = |first: usize, end: usize| json!([{ "start": first, "end": end }]);
    assert_eq!(said["region"]["k"], json!({ "start": 1, "end": 80 }));
    // The guard of line 6 lets level 0 read level -1; that of line 7 is right, so nothing is lost at the bottom.
    let left_out = said["levels"]["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 1);
    assert_eq!(
        left_out[0],
        json!({
            "levels": levels(0, 1), "field": "phi", "shift": -1, "lines": [6],
            "guards": [{ "text": "k >= 0", "lines": [6], "holds": true }],
        })
    );
    let below = &said["levels"]["reads"][1];
    assert_eq!((&below["shift"], &below["levels"]), (&json!(1), &levels(0, 60)));
    assert_eq!(below["guards"][0]["text"], "k < nk-1 && k < last");
    // From level 60 on one read less.
    let work = |n: usize| (said["work"][n]["levels"].clone(), said["work"][n]["reads"].clone());
    assert_eq!(work(0), (levels(1, 60), json!(3)));
    assert_eq!(work(1), (levels(60, 80), json!(2)));
    // Every value of phi is read: 80 levels for 79 that are written.
    assert_eq!(said["bytes_per_cell"], (80.0 + 79.0) * 8.0 / 79.0);

    // Another value of the parameter leads to other levels.
    assert_eq!(data(VERTICAL, "--grid 8x8x80 --set last=9")["levels"]["reads"][1]["levels"], levels(0, 9));
    // Where nothing is computed, the reasons are told all the same.
    let (status, stdout, stderr) = explain(VERTICAL, "--grid 8x8x1");
    assert_eq!(status, 1);
    assert!(stdout.contains("level 0 is left out: `phi[k-1]`, line 6,"), "{stdout}");
    let reason = "can compute none of the 1 levels: `phi[k-1]` would leave the grid at k = 0";
    assert!(stderr.contains(reason), "{stderr}");
}

#[test]
fn fields_on_fewer_axes_by_hand() {
    let said = data(PLACES, "--grid 20x10x5 --gpu l4");
    // i 1..19, j 0..9; levels: all.
    let (columns, cells) = (18 * 9, 18 * 9 * 5);
    assert_eq!(said["cells"], cells);
    let bytes = |number: usize| {
        let field = &said["fields"][number];
        let total = |key: &str| (field[key].as_f64().unwrap() * f64::from(cells)).round();
        (total("read_bytes_per_cell"), total("written_bytes_per_cell"))
    };
    // phi at i-1 and i+1; weight once a level; six interfaces in f32; area at j+1, the cell itself and i-1.
    assert_eq!(bytes(0), (20.0 * 9.0 * 5.0 * 8.0, 0.0));
    assert_eq!(bytes(1), ((f64::from(columns) + 18.0 + 9.0) * 8.0, 0.0));
    assert_eq!(bytes(2), (5.0 * 8.0, 0.0));
    assert_eq!(bytes(3), (f64::from(columns) * 6.0 * 4.0, 0.0));
    assert_eq!(bytes(4), (0.0, f64::from(cells) * 8.0));
    assert_eq!(bytes(5), (0.0, f64::from(columns) * 4.0));
    // Two products for the fluxes, two differences, a division, a sum, a root; the product for the column.
    assert_eq!(said["work"][0]["flops"], 2 + 2 + 1 + 1 + 1 + 1);
    // phi twice; weight, the same at every column, once; hhl twice; area three times.
    assert_eq!(said["work"][0]["reads"], 2 + 1 + 2 + 3);
}

/// The neighbours of `laplap` are 12; its five Laplacians read 25 times, five of them at the cell itself.
#[test]
fn lookups_by_hand() {
    let said = data("laplap", "--grid 64x64x20 --slice 4");
    let lookups = |storage: &str, access: &str| {
        let all = said["lookups"].as_array().unwrap();
        let found = all.iter().find(|kernel| kernel["storage"] == storage && kernel["access"] == access).unwrap();
        let number = |key: &str| found[key].as_f64().unwrap();
        (number("levels"), number("index_variables"), number("lookups"), number("table_loads"))
    };
    assert_eq!(lookups("regular", "naive"), (1.0, 0.0, 20.0, 0.0));
    assert_eq!(lookups("regular", "idxvar"), (1.0, 12.0, 12.0, 0.0));
    // A pattern and an entry of the table at each use; once a cell; once a column of 20 levels; once for 4 levels.
    assert_eq!(lookups("compressed", "naive"), (1.0, 0.0, 20.0, 40.0));
    assert_eq!(lookups("compressed", "idxvar"), (1.0, 13.0, 12.0, 13.0));
    assert_eq!(lookups("compressed", "zloop"), (20.0, 13.0, 12.0 / 20.0, 13.0 / 20.0));
    assert_eq!(lookups("compressed", "zloop-sliced"), (4.0, 13.0, 12.0 / 4.0, 13.0 / 4.0));
    assert_eq!(said["lookups"][0]["registers"], Value::Null);
}

#[test]
fn wrong_calls_are_answered() {
    for (options, status, words) in [
        ("--gpu l40", 2, "tip: a similar value exists: 'l40s'"),
        ("--bandwidth 900", 2, "--bandwidth and --flops are given alone"),
        ("--flops=-1 --bandwidth 9", 2, "a number above 0 is needed"),
        ("--grid 4x4x4", 1, "the grid 4x4x4 is smaller than stencil `hdiff`"),
        ("--grid 9999999999x9999999999x9", 1, "more than any machine holds"),
        ("--set last=3", 2, "stencil `hdiff` has no parameter `last`"),
        ("--registers", 1, "NVRTC"),
    ] {
        let (found, _, stderr) = explain("hdiff", options);
        assert_eq!(found, status, "{options}: {stderr}");
        assert!(stderr.contains(words), "{options}: {stderr}");
    }
}

/// Every stencil of the project and of the tests, with values for its parameters.
fn problems(nk: usize) -> Vec<Problem> {
    let mut texts = stencils();
    texts.extend([VERTICAL, PLACES, include_str!("constructs.stn")].map(|text| ("test".into(), text.into())));
    let all = texts.iter().flat_map(|(name, text)| lowered(name, text));
    all.map(|stencil| problem(&stencil, Precision::F64, Grid::rows(24, 20, nk), &[])).collect()
}

fn levels_of(stencil: &Stencil, problem: &Problem, nk: usize) -> Vec<Class> {
    classes(stencil, &Known::new(stencil, problem.precision, nk, &problem.params), nk)
}

#[test]
fn levels_without_a_read_outside_are_those_computed() {
    let mut refused = 0;
    for problem in problems(12) {
        let stencil = &problem.stencil;
        for nk in 1..=12 {
            let mut good = vec![false; nk];
            for class in levels_of(stencil, &problem, nk) {
                let reads = class.level_reads(stencil);
                for level in class.levels.iter().cloned().flatten() {
                    good[level] = reads.iter().all(|read| {
                        let count = stencil.fields[read.field].place.levels.count(nk) as i64;
                        (0..count).contains(&(level as i64 + i64::from(read.shift)))
                    });
                }
            }
            let found: Vec<usize> = (0..nk).filter(|&level| good[level]).collect();
            match levels::computed(stencil, problem.precision, nk, &problem.params) {
                Ok(range) => assert_eq!(found, range.collect::<Vec<_>>(), "{}, {nk} levels", stencil.name),
                Err(_) => {
                    refused += 1;
                    let gap = found.windows(2).any(|pair| pair[1] != pair[0] + 1);
                    assert!(found.is_empty() || gap, "{}, {nk} levels: {found:?}", stencil.name);
                }
            }
        }
    }
    assert!(refused > 0, "some stencils need more levels");
}

#[test]
fn values_are_those_of_the_schedule() {
    for problem in problems(64) {
        let stencil = &problem.stencil;
        let mut found = BTreeSet::new();
        for class in levels_of(stencil, &problem, 64) {
            for (def, offsets) in evaluate(stencil, &class.reached).values {
                found.extend(offsets.into_keys().map(|offset| (def, Path::from_offset(offset))));
            }
        }
        let scheduled: BTreeSet<_> =
            schedule(stencil, &mut Walker::rows(), &[Path::default()]).unwrap().values.into_keys().collect();
        assert!(found.is_subset(&scheduled), "{}", stencil.name);
        // What no level reaches, a parameter decided.
        if stencil.params.is_empty() {
            assert_eq!(found, scheduled, "{}", stencil.name);
        }
    }
}

/// Without guards each cell reads at every offset: mark what that touches, and count.
#[test]
fn touched_values_are_those_that_cells_touch() {
    let mut compared = 0;
    for problem in problems(11) {
        let (stencil, region, grid) = (&problem.stencil, &problem.region, problem.grid);
        let levels = levels_of(stencil, &problem, grid.nk);
        let evaluations: Vec<Evaluation> = levels.iter().map(|class| evaluate(stencil, &class.reached)).collect();
        let evaluated: Vec<_> = levels.iter().zip(&evaluations).collect();
        let demand = demand(stencil);
        let all: usize = demand.reads.values().map(BTreeSet::len).sum();
        if levels.len() != 1 || evaluations[0].distinct_reads() != all {
            continue;
        }
        for touched in traffic(stencil, problem.precision, grid, region, &evaluated) {
            let place = stencil.fields[touched.field].place;
            let mut marked = HashSet::new();
            for offset in demand.reads.get(&touched.field).into_iter().flatten() {
                let moved = |range: &std::ops::Range<usize>, by: i32, has_axis: bool| {
                    let first = if has_axis { range.start as i64 + i64::from(by) } else { 0 };
                    first..first + if has_axis { range.len() as i64 } else { 1 }
                };
                for k in moved(&region.k, offset.k, place.levels != Levels::None) {
                    for j in moved(&region.j, offset.j, place.horizontal) {
                        marked.extend(moved(&region.i, offset.i, place.horizontal).map(|i| (i, j, k)));
                    }
                }
            }
            assert_eq!(touched.read, marked.len() as u64, "{}, field {}", stencil.name, touched.field.index());
            compared += marked.len();
        }
    }
    assert!(compared > 1000);
}

#[test]
fn what_has_no_room_is_refused_in_its_row() {
    let lets: String =
        (0..40).map(|n| format!("let x{} = x{n} + x{n}[i+1] + x{n}[j+1] + x{n}[i-1]\n", n + 1)).collect();
    let far = format!("stencil far {{\nin a\nout r\nlet x0 = a\n{lets}r = x40\n}}\n");
    let text = told(&far, "--grid 128x128x4");
    // What is more than anybody counts is not told as a number.
    assert!(text.contains("over 2e19") && !text.contains("18446744073709551615"), "{text}");
    let refused: Vec<&str> = text.lines().filter(|line| line.contains("refused")).collect();
    assert!(refused.len() >= 2 && refused.iter().all(|line| line.contains("shared")), "{text}");
    assert!(text.lines().any(|line| line.contains("idxvar") && !line.contains("refused")), "{text}");
    let kernels = data(&far, "--grid 128x128x4")["lookups"].as_array().unwrap().clone();
    for kernel in &kernels {
        assert_eq!(kernel["refused"].is_string(), kernel["access"] == "shared", "{kernel}");
        assert_eq!(kernel["lookups"].is_null(), kernel["access"] == "shared", "{kernel}");
    }
}

#[test]
fn the_kernels_of_a_program_are_told_with_what_they_compute_and_take() {
    for (plan, count) in [("separate", 2), ("recomputed", 2), ("streamed", 1), ("resident", 1)] {
        let call = format!("--program heat_periodic --grid 128x24x3 --fuse {plan}");
        let told = data("heat", &call);
        let kernels = told["kernels"].as_array().unwrap();
        assert_eq!(kernels.len(), count, "{plan}");
        let first = &kernels[0];
        assert!(first["formulas"][0].as_str().unwrap().starts_with("next = t + kappa"), "{first}");
        // A value of each cell is read, and one is written.
        assert_eq!(first["memory_bytes"], 2 * 8 * 128 * 24 * 3, "{plan}");
        assert_eq!((&first["table_loads"], &first["arguments"][0]["means"]), (&json!(0), &json!("`t`, which is read")));
        let made = told["made"].as_str().unwrap();
        assert!(
            made.starts_with(&format!("Made by stencilc build heat --program heat_periodic --fuse {plan}")),
            "{made}"
        );
        assert!(self::told("heat", &call).ends_with(&format!("{made}\n")), "{plan}");
    }
}

#[test]
fn wrong_calls_about_programs_say_what_to_give() {
    for (call, fragment) in [
        ("--program heat_periodic", "give it: --grid NIxNJxNK"),
        ("--program heat_perodic --grid 8x8x8", "did you mean `heat_periodic`?"),
        ("--stencil conduct --fuse merged", "add --program NAME"),
        ("--program heat_walls --grid 128x24x3 --fuse resident", "not periodic"),
        ("--program heat_periodic --grid 128x24x3 --gpu h200", "name the stencil"),
        ("--program heat_periodic --grid 128x24x3 --mesh a.npz", "--mesh is for stencils over a mesh"),
    ] {
        let (status, _, stderr) = explain("heat", call);
        assert!(status != 0 && stderr.contains(fragment), "{call}: {stderr}");
    }
}

/// A difference along i, which is read, computed and written once.
const DIFFERENCE: &str = "stencil difference { in a; out b; b = a[i+1] - a }
";

#[test]
fn what_kernels_do_by_hand() {
    let told = data(DIFFERENCE, "--grid 16x16x4");
    let cost = |storage: &str, access: &str| {
        let all = told["lookups"].as_array().unwrap();
        all.iter().find(|own| own["storage"] == storage && own["access"] == access).unwrap()["cost"].clone()
    };
    let once = cost("regular", "idxvar");
    assert_eq!(once["thread"]["global"], json!({ "read": 16, "written": 8 }));
    assert_eq!(
        (&once["thread"]["real"], &once["thread"]["slow"], &once["thread"]["lookups"]),
        (&json!(1), &json!(0), &json!(0))
    );
    // A pattern of one byte and an entry of four.
    let looked_up = cost("compressed", "idxvar");
    assert_eq!((&looked_up["thread"]["lookups"], &looked_up["unknown_loops"]), (&json!(2), &json!(0)));
    // A thread goes through a column: what it does each level stands in a loop whose length no grid has told yet.
    let column = cost("regular", "zloop");
    assert_eq!(
        (&column["turn"]["global"], &column["unknown_loops"]),
        (&json!({ "read": 16, "written": 8 }), &json!(1))
    );
    let text = self::told(DIFFERENCE, "--grid 16x16x4");
    assert!(text.contains("kernels as written, for any grid") && text.contains("16/turn"), "{text}");
}

#[test]
fn the_kernels_of_a_program_are_counted_by_argument() {
    let told = data("heat", "--program heat_periodic --grid 128x24x3 --fuse separate");
    let kernel = &told["kernels"][0];
    // Four neighbours and the cell itself; what is written, once.
    assert_eq!(kernel["cost"]["thread"]["global"], json!({ "read": 5 * 8, "written": 8 }), "{kernel}");
    assert_eq!(kernel["arguments"][0]["bytes"][0], json!({ "read": 5 * 8, "written": 0 }), "{kernel}");
    assert!(kernel["cost"]["registers_at_least"].as_u64().unwrap() > 0);
}

/// Two calls over a mesh that one kernel can compute, and one by itself.
const CHAIN: &str = "mesh line {
    set point, edge
    map edge.ends -> point[2]
}

stencil slope over line.edge {
    in  a on point
    out s
    s = a[ends.1] - a[ends.0]
}

stencil spread over line.edge {
    in  s
    inc d on point
    d[ends.0] += s
    d[ends.1] -= s
}

stencil move over line.point {
    in  a
    in  d
    out b
    b = a + 0.1 * d
}

/// Diffusion.
program diffuse over line {
    inout a on point
    repeat 3 {
        let s = slope(a)
        let d = spread(s)
        a = move(a, d)
    }
}
";

#[test]
fn the_kernels_of_a_program_over_a_mesh_are_told_with_what_they_compute_and_take() {
    let told = data(CHAIN, "--program diffuse");
    let calls = told["calls"].as_array().unwrap();
    let names = |call: &Value| {
        call["stencils"].as_array().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(calls.iter().map(names).collect::<Vec<_>>(), ["\"slope\"", "\"spread\" \"move\""]);
    assert_eq!((&calls[1]["is_chain"], &calls[1]["internal"]), (&json!(true), &json!(["d"])));
    let slope = &calls[0]["kernels"][0];
    assert_eq!(slope["formulas"], json!(["s = a[ends.1] - a[ends.0]"]));
    // Two entries of the map, and what stands there; a difference.
    assert_eq!(slope["cost"]["thread"]["global"], json!({ "read": 2 * 4 + 2 * 8, "written": 8 }), "{slope}");
    assert_eq!(slope["cost"]["thread"]["real"], 1, "{slope}");
    let means: Vec<&str> =
        slope["arguments"].as_array().unwrap().iter().map(|own| own["means"].as_str().unwrap()).collect();
    assert!(means.contains(&"`a`, which is read") && means.contains(&"the map `ends`"), "{means:?}");
    // How many edges lead to a point is not known: each is a turn.
    let chain = &calls[1]["kernels"][0]["cost"];
    assert!(chain["unknown_loops"] == 1 && chain["turn"]["lookups"].as_u64().unwrap() > 0, "{chain}");
    let made = told["made"].as_str().unwrap();
    assert!(
        made.starts_with("Made by stencilc build it.stn --program diffuse --precision f64 --strategy owner"),
        "{made}"
    );
    let apart = data(CHAIN, "--program diffuse --fuse separate");
    assert_eq!(apart["calls"].as_array().unwrap().len(), 3);
    assert!(apart["made"].as_str().unwrap().contains(" --fuse separate "), "{apart}");
    let text = self::told(CHAIN, "--program diffuse");
    for part in ["-- spread, then move: one kernel, in which d stay in registers", "with --mesh FILE", made] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (call, fragment) in [
        ("--program difuse", "did you mean `diffuse`?"),
        ("--program diffuse --grid 8x8x8", "--grid is for grids, and `diffuse` runs over a mesh"),
        ("--program diffuse --fuse streamed", "--fuse streamed is for grids"),
        ("--program diffuse --fuse merged --strategy atomic", "take --strategy owner"),
        ("--program diffuse --strategy tiled", "give it: --mesh FILE"),
        ("--program diffuse --levels 3", "has no levels"),
    ] {
        let (status, _, stderr) = explain(CHAIN, call);
        assert!(status != 0 && stderr.contains(fragment), "{call}: {stderr}");
    }
}
