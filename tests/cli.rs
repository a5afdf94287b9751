//! The command line: the real program, its messages and its exit status.

mod bench;
mod build_program;
mod compiled;
mod completions;
mod counted;
mod files;
mod given;
mod grid;
mod grid_info;
mod import;
mod levels;
mod levels_by_number;
mod mesh;
mod mesh_commands;
mod mesh_kernels;
mod mesh_places;
mod moving_levels;
mod moving_levels_on_grids;
mod new;
mod over_mesh;
mod parts_of_axes;
mod picture;
mod print;
mod processes;
mod profile;
mod program;
mod report;
mod scaling;
mod share;
mod snapshot;
mod terminal;
mod test;
mod test_mesh;
mod tune;
mod tune_program;
mod types;
mod verbs;
mod verify;
mod zones;

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use stencilc_compiler::access::ACCESSES;
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::storage::STORAGES;

fn read(path: &Path) -> (Vec<u64>, Vec<f64>) {
    let file = npyz::NpyFile::new(fs::File::open(path).unwrap()).unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

#[test]
fn arrays_go_in_and_come_out() {
    let folder = Folder::new();
    let said = folder.done("run laplap --in phi=phi.npy --out res=res.npy --plot res=res.png --device cpu");
    assert!(said.contains("grid 9x6x3, computed i 2..7, j 2..4, k 0..3"), "{said}");
    let (shape, numbers) = read(&folder.path("res.npy"));
    assert_eq!(shape, [3, 6, 9]);
    for (cell, number) in numbers.into_iter().enumerate() {
        let (i, j) = (cell % 9, cell / 9 % 6);
        if (2..7).contains(&i) && (2..4).contains(&j) {
            assert_eq!(number, 24.0, "i={i}, j={j}");
        } else {
            assert!(number.is_nan(), "i={i}, j={j}");
        }
    }
    assert!(fs::read(folder.path("res.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn numbers_convert_only_when_told() {
    let folder = Folder::new();
    folder.done("run laplap --in phi=single.npy --device cpu");
    folder.done("run laplap --in phi=phi.npy --device cpu --precision f32 --cast");
    let refused = folder.run("run laplap --in phi=phi.npy --device cpu --precision f32");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn wrong_inputs() {
    let transcript = Folder::new().transcript(&[
        "check broken.stn",
        "check nothing.stn",
        "check laplap.stn",
        "check latin.stn",
        "check folder.stn",
        "check wide.stn",
        "check unused.stn",
        "check unused.stn --strict",
        "run broken.stn --grid 9x6x3",
        "run laplap --device cpu --grid 4x9x3",
        "run laplap --device cpu --grid 99999999999x99999999999x9",
        "run laplap --device cpu --in phi=nothing.npy",
        "run laplap --device cpu --in phi=text.npy",
        "run laplap --device cpu --in phi=long.npy",
        "run laplap --device cpu --in phi=line.npy",
        "run laplap --device cpu --in phi=phi.npy --precision f32",
        "run laplap --device cpu --in phi=phi.npy --grid 9x6x4",
        "run laplap --device cpu --in phi=fortran.npy",
        "run laplap --device cpu --in phi=fortran.npy --grid 9x6x3",
        "run hdiff --device cpu --in phi=phi.npy --in coeff=turned.npy",
        "run large.stn --device cpu --grid 9x6x3 --precision f32 --in a=nothing.npy",
        "run hdiff --device cpu --in phi=phi.npy --in coeff=smaller.npy",
        "run laplap --device cpu --in phi=phi.npy --out res=nowhere/res.npy",
        "run column.stn --device cpu --in a=phi.npy --in h=phi.npy",
        "run laplap --device cpu --in phi=phi.npy --out res=phi.npy",
        "run laplap --device cpu --in phi=phi.npy --plot res=folder.stn",
        "build laplap --emit ptx",
        "build laplap --emit cubin -o made",
    ]);
    insta::assert_snapshot!(transcript);
}

#[test]
fn wrong_calls() {
    let transcript = Folder::new().transcript(&[
        "run laplap --device cpu",
        "run two.stn --device cpu --grid 9x6x3",
        "run two.stn --device cpu --grid 9x6x3 --stencil tow",
        "run laplap --device cpu --grid 9",
        "run laplap --device cpu --grid 9x0x3",
        "run laplap --device cpu --grid 9x6x99999999999999999999",
        "run laplap --device cpu --grid 9x6x3 --block 0x1x1",
        "run laplap --device cpu --grid 9x6x3 --block 64",
        "run laplap --device cpu --grid 9x6x3 --slice 0",
        "run laplap --device gpu --grid 9x6x3",
        "run laplap --device cpu --in phi.npy",
        "run laplap --device cpu --in phy=phi.npy",
        "run laplap --device cpu --in phi=phi.npy --in phi=single.npy",
        "run laplap --device cpu --in phi=phi.npy --out ress=res.npy",
        "run laplap --device cpu --in phi=phi.npy --out phi=res.npy",
        "run laplap --device cpu --in phi=phi.npy --out res=",
        "run laplap --device cpu --in phi=phi.npy --plot res=res.png --level 3",
        "run laplap --device cpu --in phi=phi.npy --level 1",
        "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --set fed=1",
        "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --set feed=much",
        "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --set feed=1 --set feed=2",
        "run weigh.stn --device cpu --grid 9x6x3",
        "run weigh.stn --device cpu --grid 9x6x3 --set first=1 --plot w=w.png",
        "build weigh.stn --grid 9x6x3",
        "build laplap --set dt=1",
        "build laplap -o broken.stn",
        "check",
        "list",
        "rnu",
        "compile laplap.stn",
        "laplap.stn",
        "stencl laplap",
        "chek laplap",
        "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --param feed=1",
        "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --set feed=1e999",
        "run laplap --device cpu --grid -9x6x3",
        "run laplap --device cpu --dtype single",
        "run laplap --device cpu --grid 9x6x3 --seed one",
        "build laplap --output made",
        "grid make hex",
    ]);
    insta::assert_snapshot!(transcript);
}

#[test]
fn names_are_guessed_from_what_there_is() {
    let folder = Folder::new();
    for (line, status, guess) in [
        ("check lablap", 1, "help: did you mean `laplap`? There are acoustic8, "),
        ("build laplap --access idxvr", 2, "tip: a similar value exists: 'idxvar'"),
        ("build laplap --storage compresed", 2, "tip: a similar value exists: 'compressed'"),
    ] {
        let output = folder.run(line);
        assert_eq!(output.status.code(), Some(status), "{line}");
        assert!(text(&output.stderr).contains(guess), "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn too_large_for_this_machine() {
    let output = Folder::new().run("run laplap --device cpu --grid 100000x100000x1000");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("the fields of grid 100000x100000x1000 take 149011.6 GiB"), "{said}");
}

#[test]
fn a_gpu_that_is_not_there() {
    let folder = Folder::new();
    let output = folder.run("run laplap --grid 9x6x3 --device cuda");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(text(&output.stderr).starts_with("error: "));
    // Without being told, the CPU takes over, and says so.
    let output = folder.run("run laplap --grid 9x6x3");
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("note: running on the cpu: "));
}

#[test]
fn options_that_change_nothing_are_told() {
    let folder = Folder::new();
    let said = |call: &str| {
        let output = folder.run(call);
        assert!(output.status.success(), "{call}: {}", text(&output.stderr));
        text(&output.stderr).to_owned()
    };
    let idle = "note: the cpu launches no kernels, so nothing changes by ";
    let of_stencil = said("run laplap --grid 9x6x3 --device cpu --access shared --block 8x2x2 --precision f32");
    assert!(of_stencil.contains(&format!("{idle}--access, --block: --device native launches them")), "{of_stencil}");
    let own = "run diffusion4 --grid 12x10x2 --draw --device cpu";
    let of_program = said(&format!("{own} --fuse merged --no-graph"));
    assert!(of_program.contains(&format!("{idle}--fuse, --no-graph: ")), "{of_program}");
    let steps = "note: --steps 3 is how many steps one kernel computes; how often `diffusion4` repeats them, its parameter `steps` says: \
                 --set steps=3";
    assert!(said(&format!("{own} --steps 3")).contains(steps));
    // Who says both means both.
    assert!(!said(&format!("{own} --steps 3 --set steps=6")).contains(steps));
    assert!(!said(own).contains("note: the cpu launches"));
    for kernel in ["run laplap --grid 9x6x3 --device emulate --access naive", "run laplap --grid 9x6x3 --device cpu"] {
        assert!(!said(kernel).contains("nothing changes"), "{kernel}");
    }
}

#[test]
fn numbers_where_a_stencil_should_be() {
    let folder = Folder::new();
    assert!(folder.run("grid make quadtree --size 8x8 --depth 1 -o quad.npz").status.success());
    let output = folder.run("grid info quad.npz");
    let said = text(&output.stderr);
    assert!(said.contains("`quad.npz` is a file of numbers, and a stencil is needed here"), "{said}");
    assert!(said.contains("a grid is given with --grid quad.npz"), "{said}");
}

#[test]
fn nothing_is_written_if_something_cannot_be() {
    let folder = Folder::new();
    let output = folder.run(
        "run gray_scott --stencil gray_scott --device cpu --grid 9x6x3 --out u_next=u.npy --out v_next=nowhere/v.npy",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path("u.npy").exists());
}

#[test]
fn random_inputs_are_told_and_repeat() {
    let folder = Folder::new();
    let output = folder.run("run laplap --device cpu --grid 9x6x3 --seed 7 --out res=a.npy");
    assert!(text(&output.stderr).contains("note: drawn at random, with seed 7: phi"));
    folder.done("run laplap --device cpu --grid 9x6x3 --seed 7 --out res=b.npy --runs 2");
    folder.done("run laplap --device cpu --grid 9x6x3 --seed 8 --out res=c.npy");
    let read = |name| fs::read(folder.path(name)).unwrap();
    assert!(read("a.npy") == read("b.npy") && read("a.npy") != read("c.npy"));
}

#[test]
fn builds_without_a_gpu_or_nvrtc() {
    let folder = Folder::new();
    let said = folder.done("build two.stn --stencil two --storage compressed --grid 9x6x3 -o made/here");
    assert!(said.contains("wrote made/here/two.cu, made/here/two.h"), "{said}");
    assert!(fs::read_to_string(folder.path("made/here/two.cu")).unwrap().contains("__global__"));
    assert!(fs::read_to_string(folder.path("made/here/two.h")).unwrap().contains("two"));
    // Which levels are computed depends on a parameter that has to be given for one grid, and only then.
    folder.done("build weigh.stn");
    folder.done("build weigh.stn --grid 9x6x3 --set first=1");
}

/// How many kernels `verify` tries of one stencil in one precision.
fn combinations() -> usize {
    variants().filter(Choices::is_plain).count()
}

#[test]
fn choices_reach_the_plan() {
    let folder = Folder::new();
    let line = "build laplap --emit plan --json --access zloop-sliced --storage compressed --precision f32 \
                --block 32x4x1 --slice 4 --contract off --index 64 --math device --neighbors chasing \
                --layout z-curve --run-width 8 --short-runs last --fields aosoa --table constant --grid 21x13x4";
    let choices = serde_json::json!({
        "access": "zloop-sliced", "storage": "compressed", "fastest": "columns", "neighbors": "chasing", "layout": "z-curve",
        "run_width": 8, "short_last": true, "fields": "aosoa", "constant": true, "precision": "f32", "contract": false,
        "block": [32, 4, 1], "slice": 4, "wide": true, "checked": false,
        "math": "device",
    });
    assert_eq!(folder.json(line)["choices"], choices);
    // Files of other versions have settings of other strategies' knobs, and what is not known yet.
    let mut other = choices;
    other["tile"] = serde_json::json!([4, 2]);
    other["later"] = serde_json::json!("something");
    other.as_object_mut().unwrap().remove("fastest");
    let read: Choices = serde_json::from_value(other).unwrap();
    let words = read.words();
    assert!(words.contains(" --slice 4 ") && !words.contains("tile") && !words.contains("fastest"), "{words}");
    let mut wrong = serde_json::to_value(&read).unwrap();
    assert!(wrong["tile"] == serde_json::json!([4, 2]) && wrong.get("later").is_none(), "{wrong}");
    for slice in [serde_json::json!([]), serde_json::json!("8"), serde_json::json!(-1)] {
        wrong["slice"] = slice;
        let refusal = serde_json::from_value::<Choices>(wrong.clone()).unwrap_err().to_string();
        assert!(refusal.contains("`slice` has to be N"), "{refusal}");
    }
}

#[test]
fn options_that_make_no_difference_are_refused() {
    let folder = Folder::new();
    for call in
        ["build laplap", "run laplap --grid 9x9x3 --device cpu", "verify laplap --access idxvar --storage regular"]
    {
        for (option, remedy) in [
            ("--slice 4", "--access zloop-sliced"),
            ("--tile 2x2", "--access tile"),
            ("--run-width 4", "--storage compressed"),
        ] {
            let output = folder.run(&format!("{call} {option}"));
            let (said, name) = (text(&output.stderr), option.split(' ').next().unwrap());
            assert_eq!(output.status.code(), Some(1), "{call} {option}");
            assert!(
                said.contains(&format!("{name} makes no difference here")) && said.contains(remedy),
                "{call}: {said}"
            );
        }
    }
    for call in [
        "build laplap --emit ast --stencil laplap",
        "build laplap --emit ast --precision f32",
        "build laplap --emit ir --access naive",
        "build airfoil --stencil res_calc --emit ir --strategy atomic",
    ] {
        let output = folder.run(call);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{call}: {said}");
        assert!(said.contains("makes no difference for --emit"), "{call}: {said}");
    }
    folder.done("build laplap --emit ir --stencil laplap --precision f32 --contract off");
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    let output = folder.run("run airfoil --mesh m.npz --set steps=1 --device cpu --texts kernels");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("the cpu launches none"), "{said}");
    assert!(!folder.path("kernels").exists());
    // What is of programs, of another plan, or of another method.
    folder.done("mesh make triangles --size 4x4 -o t.npz");
    for (call, said) in [
        ("bench laplap --grid 9x9x3 --device cpu --times 3", "--times is for programs"),
        ("verify laplap --grid 9x9x3 --device cpu --times 3", "--times is for programs"),
        ("run laplap --grid 9x9x3 --device cpu --no-graph", "--no-graph is for programs"),
        (
            "run diffusion4 --grid 16x16x2 --draw --set steps=2 --device emulate --fuse merged --resident 1",
            "--resident",
        ),
        ("run diffusion4 --grid 16x16x2 --draw --set steps=2 --device cpu --every 2", "nothing is"),
        ("mesh reorder t.npz --method rcm --set cell --seed 3 -o r.npz", "--seed makes no difference"),
        (
            "mesh reorder t.npz --method rcm --set cell --coordinates nosuch -o r.npz",
            "--coordinates makes no difference",
        ),
        ("grid make quadtree --size 4x4 --seed 3 -o g.npz", "--seed makes no difference"),
    ] {
        let output = folder.run(call);
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains(said), "{call}: {told}");
    }
    // One of several kernels is enough.
    folder.done("verify laplap --access idxvar,zloop-sliced --slice 4 --storage regular --grid 9x9x8 --device emulate");
}

#[test]
fn every_step_can_be_seen() {
    let folder = Folder::new();
    for (step, word) in [("ast", "File {"), ("ir", "stencil laplap {"), ("plan", "left2"), ("cuda", "__global__")] {
        let said = folder.done(&format!("build laplap --emit {step}"));
        assert!(said.contains(word), "{step}: {said}");
        let value = folder.json(&format!("build laplap --emit {step} --json"));
        assert!(value.is_object(), "{step}");
        folder.done(&format!("build laplap --emit {step} -o made"));
    }
    assert!(folder.path("made/laplap.ir").exists() && folder.path("made/laplap.cu").exists());
}

#[test]
fn lists_are_read_off_the_registries() {
    let folder = Folder::new();
    let names = |what: &str| -> Vec<String> {
        let value = folder.json(&format!("list {what} --json"));
        value.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("accesses"), ACCESSES.iter().map(|access| access.name()).collect::<Vec<_>>());
    assert_eq!(names("storages"), STORAGES.iter().map(|storage| storage.name()).collect::<Vec<_>>());
    assert_eq!(names("devices")[0], "cpu");
    let stencils = names("stencils");
    assert!(stencils.iter().any(|name| name == "laplap"), "{stencils:?}");
    for name in stencils {
        folder.done(&format!("check {name} --strict"));
    }
}

#[test]
fn json_says_what_the_text_says() {
    let folder = Folder::new();
    let run = folder.json("run laplap --device cpu --in phi=phi.npy --json");
    assert_eq!(run["outputs"][0]["name"], "res");
    assert_eq!((&run["outputs"][0]["min"], &run["outputs"][0]["nan"]), (&Value::from(24.0), &Value::from(0)));
    assert!(run["timings"]["compute"].as_f64().unwrap() >= 0.0);
    assert_eq!(run["drawn"], Value::Array(Vec::new()));

    let build = folder.json("build laplap --json -o made");
    assert_eq!(build["cost"]["bytes"], 16);

    let output = folder.run("check broken.stn nothing.stn unused.stn --json");
    assert_eq!(output.status.code(), Some(1));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&checked[0]["diagnostics"][0]["line"], &checked[0]["diagnostics"][0]["column"]),
        (&1.into(), &41.into())
    );
    assert!(checked[1]["error"].is_string());
    assert_eq!(checked[2]["diagnostics"][0]["severity"], "warning");

    let verify = folder.json("verify laplap --json --precision f32 --grid 9x6x3 --device cpu");
    assert_eq!(verify["totals"]["skipped"], combinations());
    assert!(folder.json("doctor --json").is_array());
}

#[test]
fn errors_are_json_too() {
    let folder = Folder::new();
    for (line, status) in [
        ("check nothing.stn --json --strict --jason", 2),
        ("build broken.stn --json", 1),
        ("build broken.stn --json --emit ast", 0),
        ("run broken.stn --json --grid 9x6x3", 1),
        ("run laplap --json --device cpu", 2),
        ("run laplap --json --device cpu --grid 9", 2),
        ("verify broken.stn --json", 1),
        ("list nothing --json", 2),
    ] {
        let output = folder.run(line);
        assert_eq!(output.status.code(), Some(status), "{line}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"));
        if status != 0 {
            assert_eq!(said["error"]["status"], status, "{line}");
            assert!(said["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{line}");
            // Messages go to stderr as ever.
            assert!(text(&output.stderr).contains("error"), "{line}");
        }
    }
    let output = folder.run("run broken.stn --json --grid 9x6x3");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let told = &said["error"]["diagnostics"][0];
    assert_eq!((&told["file"], &told["line"], &told["column"]), (&"broken.stn".into(), &1.into(), &41.into()));
    assert_eq!((&told["message"], &told["label"]), (&"unknown name `phj`".into(), &"did you mean `phi`?".into()));
    // Help is no error, and no JSON.
    assert!(text(&folder.run("run --help --json").stdout).starts_with("Compute a stencil"));
}

#[test]
fn what_was_taken_is_told() {
    let folder = Folder::new();
    let output = folder.run("run laplap --device cpu --in phi=plane.npy");
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("has the shape (18, 9): taken as one level, (1, 18, 9)"));
    let output = folder.run("run large.stn --device cpu --precision f32 --grid 9x6x3");
    assert!(text(&output.stderr).contains("too large for single precision"), "{}", text(&output.stderr));
    assert!(!text(&folder.run("run large.stn --device cpu --grid 9x6x3").stderr).contains("precision"));
    fs::write(folder.path("laplap.stn"), "stencil mine { in a; out b; b = a }").unwrap();
    let output = folder.run("check laplap");
    assert!(text(&output.stdout).contains("(laplap)"));
    assert!(text(&output.stderr).contains("`laplap.stn` names the file in this folder"));
    assert!(folder.done("check laplap.stn").contains("(mine)"));
}

#[test]
#[cfg(unix)]
fn what_is_no_file_is_not_read() {
    let folder = Folder::new();
    assert!(Command::new("mkfifo").arg(folder.path("pipe.stn")).status().unwrap().success());
    for (file, why) in [
        ("pipe.stn", "is a pipe or a device"),
        ("/dev/zero", "is a pipe or a device"),
        ("/dev/stderr", "is a pipe or a device"),
        (".", "is a directory"),
    ] {
        let output = folder.run(&format!("check {file}"));
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(why), "{file}: {}", text(&output.stderr));
    }
}

#[test]
fn kernels_run_on_the_emulator() {
    let folder = Folder::with_own_cache();
    folder.done("run gray_scott --stencil gray_scott --device cpu --grid 21x13x4 --out u_next=interpreted.npy");
    for more in ["", " --storage compressed --access zloop --precision f64"] {
        let line = format!(
            "run gray_scott --stencil gray_scott --device emulate --grid 21x13x4 --out u_next=emulated.npy{more}"
        );
        assert!(folder.done(&line).contains("gray_scott on emulate ("));
        assert!(fs::read(folder.path("interpreted.npy")).unwrap() == fs::read(folder.path("emulated.npy")).unwrap());
    }
    let line = "run laplap --device emulate --grid 21x13x4 --runs 3 --json";
    assert_eq!(folder.json(line)["timings"]["compile_cached"], false);
    let timings = &folder.json(line)["timings"];
    assert_eq!(timings["compile_cached"], true);
    assert!(timings["kernel_median_us"].as_f64().unwrap() > 0.0 && timings.get("kernel_gb_per_s").is_none());
    let said = folder.done("run laplap --device emulate --grid 21x13x4 --timings");
    assert!(said.contains("ms, read from the cache") && said.contains("kernel, median"), "{said}");

    let combinations = combinations();
    for device in ["", " --device emulate"] {
        let output = folder.run(&format!("verify two.stn --grid 21x13x4{device}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("in three orders of threads"), "{}", text(&output.stderr));
        assert!(text(&output.stdout).ends_with(&format!("in all: {} equal\n", 4 * combinations)));
    }
    let verify = folder.json("verify laplap --json --grid 21x13x4 --precision f32");
    assert_eq!((&verify["device"], &verify["totals"]["equal"]), (&"emulate".into(), &combinations.into()));
}

#[test]
fn without_a_cpp_compiler_nothing_is_emulated() {
    let folder = Folder::new();
    let run = |line: &str| folder.command(line).env("CXX", "nowhere/c++ -O2").output().unwrap();
    let output = run("run laplap --device emulate --grid 21x13x4");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("error: `nowhere/c++`, which the variable CXX names"));
    assert!(text(&output.stderr).contains("apt install g++"));
    let output = run("verify laplap --grid 21x13x4");
    assert!(output.status.success() && text(&output.stdout).ends_with(" skipped\n"), "{}", text(&output.stdout));
    let output =
        folder.command("run laplap --device emulate --grid 21x13x4").env("TMPDIR", "nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("TMPDIR names another"), "{}", text(&output.stderr));
    // What is there but compiles nothing, and options that a compiler does not know.
    for given in ["/bin/echo", "false", "env nowhere/c++", "g++ -fno-such-option"] {
        let output = folder.command("run laplap --device native --grid 21x13x4").env("CXX", given).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let told = text(&output.stderr);
        assert!(told.contains(&format!("`{given}`, which the variable CXX says, compiles no C++: ")), "{told}");
        assert!(told.contains("without the variable it is c++") && !told.contains("mistake"), "{told}");
    }
}

#[test]
fn verify_says_what_it_could_not_do() {
    let folder = Folder::new();
    let output = folder.run("verify two.stn --access idxvar --grid 9x6x3 --device cpu");
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("note: kernels are neither compiled nor run: "));
    assert!(text(&output.stdout).ends_with(&format!("in all: {} skipped\n", 4 * STORAGES.len())));
    // A comparison that would prove nothing is a failure.
    let output = folder.run("verify roots.stn --grid 9x6x3 --device cpu");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("are not finite"));
    let output = folder.run("verify laplap --grid 4x6x3 --device cpu");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("smaller than stencil `laplap`"));
}

/// More than a pipe holds, so that the program notices that nobody reads.
const LONG: &str = "build fastwaves --emit ast";

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    let mut child = folder.command(LONG).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));

    let mut child = folder.command("check broken.stn").stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told() {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Folder::new().command(LONG).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error: cannot write the results to stdout"));
}
