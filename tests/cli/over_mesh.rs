//! Stencils and programs over meshes.

use crate::common::folder::{Folder, text};
use std::path::Path;

/// The mesh that comes along.
fn given() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/grid_120x60.dat").display().to_string()
}

/// The root of the mean square of the last changes after so many steps: the answers of the original program.
const KNOWN: [(u32, &str); 4] =
    [(100, "4.25406e-04"), (200, "1.79346e-04"), (500, "3.94607e-05"), (1000, "1.87631e-06")];

/// What `run` prints of the airfoil every hundred steps.
fn told_every_hundred(steps: u32) -> Vec<(u32, String)> {
    let line = format!("run airfoil --mesh {} --set steps={steps} --every 100 --device cpu", given());
    let said = Folder::new().done(&line);
    let told = said.lines().filter_map(|line| {
        let (step, value) = line.trim().split_once("  rms ")?;
        Some((step.parse().ok()?, value.to_owned()))
    });
    told.collect()
}

#[test]
fn the_airfoil_gives_its_known_answer() {
    let (step, rms) = KNOWN[0];
    assert_eq!(told_every_hundred(100), [(step, rms.to_owned())]);
}

#[test]
#[ignore = "takes ten seconds"]
fn the_airfoil_gives_its_known_answers_up_to_the_end() {
    let told = told_every_hundred(1000);
    assert_eq!(told.len(), 10);
    for (step, rms) in KNOWN {
        assert!(told.contains(&(step, rms.to_owned())), "{step} {rms}: {told:?}");
    }
}

const BOTH: &str = "mesh line { set point, edge; map edge.ends -> point[2] }
stencil slope over line.edge { in a on point; out b; b = a[ends.1] - a[ends.0] }
stencil copy { in a; out b; b = a }
program twice over line { in a on point; out b on edge; b = slope(a) }
program again { in a; out b; b = copy(a) }
";

#[test]
fn what_runs_over_meshes_is_told_apart() {
    let folder = Folder::new();
    std::fs::write(folder.path("both.stn"), BOTH).unwrap();
    let tested = format!("{BOTH}test \"it is steep\" {{ slope {{ a = 1 }}; expect b == 0 }}\n");
    std::fs::write(folder.path("tested.stn"), tested).unwrap();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "check airfoil both.stn",
        "check both.stn --json",
        "check tested.stn",
        // Commands that need a mesh, or are about grids alone.
        "explain airfoil",
        "build airfoil -o .",
        "verify airfoil",
        "bench airfoil --device cpu",
        "tune airfoil",
        "profile airfoil",
        "snapshot airfoil -o snap",
        "test airfoil",
        "grid info airfoil",
        "explain both.stn --stencil slope",
        "verify both.stn --program twice",
        "build both.stn --stencil slope",
        // Which of them is meant.
        "run airfoil --device cpu",
        "run airfoil --mesh m.npz --program airfoilflow --device cpu",
        "run airfoil --mesh m.npz --stencil updat --device cpu",
        "run airfoil --mesh m.npz --grid 9x9x9 --device cpu",
        "run airfoil --mesh m.npz --access tile --device cpu",
        "run airfoil --mesh m.npz --checked --device cpu",
        "run airfoil --mesh m.npz --runs 3 --device cpu",
        "run airfoil --mesh m.npz --lead wing --device cpu",
        "run airfoil --mesh m.npz --fuse tiled --device cpu",
        "run airfoil --mesh m.npz --fuse merged --strategy tiled --device cpu",
        "run airfoil --mesh m.npz --stencil update --every 3 --device cpu",
        "run laplap --grid 9x9x9 --texts texts --device cpu",
        "run both.stn --device cpu",
        "run both.stn --program again --mesh m.npz --device cpu",
        "run both.stn --program twice --mesh m.npz --device cpu",
    ]));
}

#[test]
fn fields_are_written_with_their_mesh() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    folder.done("mesh make icosahedral --size R1B1 -o sphere.npz");
    let levels = "mesh s { set vertex, cell; map cell.vertices -> vertex[3]; levels k }
stencil mean over s.cell { in a on vertex; out b; out once on cell, no k; b = a[vertices.0] + k; once = 1 }
";
    std::fs::write(folder.path("levels.stn"), levels.replace("; ", "\n")).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "run airfoil --mesh m.npz --device cpu --stencil adt_calc --vtu a.vtu --out adt=a.npy",
        "run airfoil --mesh m.npz --device cpu --stencil res_calc --out res=b.vtu --vtu b.vtu",
        "run levels.stn --mesh sphere.npz --device cpu --levels 3 --out once=c.vtu --out b=c.vtu",
        "run icosahedral --stencil gradient --mesh sphere.npz --device cpu --levels 2 --vtu d.vtu",
        // What has no place.
        "run airfoil --mesh m.npz --device cpu --set steps=1 --out rms=r.vtu",
        "run airfoil --mesh m.npz --device cpu --set steps=1 --out rms=r.npy",
        "run airfoil --mesh m.npz --device cpu --set steps=1 --out q=q.vtk",
        "run airfoil --mesh m.npz --device cpu --set steps=1 --vtu q.npy",
        "run airfoil --mesh m.npz --device cpu --set steps=1 --vtu q",
        "run airfoil --mesh m.npz --device cpu --stencil adt_calc --out adt=a.npy --out adt=a.npy",
        "run laplap --grid 9x9x9 --device cpu --vtu q.vtu",
        "run laplap --grid 9x9x9 --device cpu --out res=q.vtu",
    ]));
    let names = |file: &str| -> Vec<String> {
        let bytes = std::fs::read(folder.path(file)).unwrap();
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        let arrays =
            whole.lines().filter_map(|line| line.split_once("Name=\"")?.1.split('"').next().map(str::to_owned));
        arrays.filter(|name| !["connectivity", "offsets", "types"].contains(&name.as_str())).collect()
    };
    assert_eq!(names("a.vtu"), ["adt", "x"]);
    assert_eq!(names("b.vtu"), ["res", "x"]);
    assert_eq!(names("c.vtu"), ["once", "b_0", "b_1", "b_2", "x"]);
    folder.done("run airfoil --mesh m.npz --device cpu --set steps=4 --every 2 --vtu flow{step:03}.vtu");
    assert_eq!([names("flow002.vtu"), names("flow004.vtu")], [["q", "x"], ["q", "x"]]);
}

#[test]
fn meshes_are_listed() {
    let output = Folder::new().run("list stencils");
    let said = text(&output.stdout);
    let line = said.lines().find(|line| line.starts_with("airfoil")).unwrap_or_default();
    assert!(line.contains("Inviscid flow around an airfoil"), "{said}");
}

#[test]
fn numbers_that_are_none_are_told_as_such() {
    let folder = Folder::new();
    let text = "mesh m { set cell, node; map cell.nodes -> node[4] }
stencil total over m.cell { in a; reduce t: sum; t += sqrt(a) }
program roots over m { in a on cell; out t on (); out never on (); param n: int = 0; t = total(a); repeat n { never = total(a) } }
";
    std::fs::write(folder.path("roots.stn"), text).unwrap();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    let call = "run roots.stn --mesh m.npz --device cpu --draw";
    let said = folder.done(call);
    assert!(said.contains("t = NaN\n") && said.contains("never never got a value\n"), "{said}");
    // JSON has no word for either.
    assert!(folder.json(&format!("{call} --json"))["numbers"]["t"].is_null());
}

/// Outputs, numbers, pictures and checkpoints of several devices are those of one.
#[test]
fn parts_leave_the_bytes_of_the_whole() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x10 -o airfoil.npz");
    let run = "run airfoil --mesh airfoil.npz --set steps=6";
    let told = |line: &str| -> Vec<String> {
        let said = folder.done(line);
        said.lines().filter(|line| line.contains("rms")).map(str::to_owned).collect()
    };
    let whole = told(&format!("{run} --every 2 --device cpu --out q=whole.npy --plot q.0=whole.png"));
    assert!(whole.len() > 3, "{whole:?}");
    let read = |name: &str| std::fs::read(folder.path(name)).unwrap();
    let (numbers, picture) = (read("whole.npy"), read("whole.png"));
    for how in [
        "cpu --gpus 2",
        "cpu --gpus 7",
        "emulate --gpus 3",
        "native --gpus 2 --order metis --lead cell --strategy tiled",
        "native --gpus 4 --order random --vectors soa --fuse separate",
        "cpu --gpus 1",
    ] {
        let line = format!("{run} --every 2 --device {how} --out q=parts.npy --plot q.0=parts.png");
        assert_eq!(told(&line), whole, "{how}");
        assert!(read("parts.npy") == numbers && read("parts.png") == picture, "{how}");
    }
    // What two parts began three go on with.
    folder.done(&format!("{run} --device cpu --gpus 2 --every 4 --checkpoint way_{{step}}.npz"));
    folder.done(&format!("{run} --device cpu --gpus 3 --resume way_4.npz --out q=resumed.npy"));
    assert!(read("resumed.npy") == numbers);
    // What is merged is told, and which kernels there are.
    let said = folder.json(&format!("{run} --device emulate --gpus 2 --texts kernels --json"));
    assert_eq!(said["one_kernel"], serde_json::json!([["res_calc", "bres_calc", "update"]]));
    assert!(folder.path("kernels/bring_f64.cu").exists());
}
