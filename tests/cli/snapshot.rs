//! `stencilc snapshot`.

use crate::common::folder::{Folder, text};
use std::collections::BTreeMap;
use std::fs;

const FILE: &str = "/// Half of it.\nstencil half { in a; out b; b = a / 2 }\n\
                    stencil shift { in a; out b; b = a[i+1] }\n";

/// Every file below `code`, with its text.
fn kept(folder: &Folder) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(folder.path("code.snap")) else { return BTreeMap::new() };
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
    };
    entries.map(file).collect()
}

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("code.stn"), FILE).unwrap();
    folder
}

fn names(folder: &Folder) -> Vec<String> {
    kept(folder).into_keys().collect()
}

#[test]
fn what_was_accepted_is_what_build_makes() {
    let folder = folder();
    folder.done("snapshot code.stn");
    assert!(kept(&folder).is_empty(), "looking writes nothing");
    folder.done("snapshot code.stn --accept");
    folder.done("snapshot code.stn --check");
    folder.done("build code.stn --stencil half -o made");
    let kept = kept(&folder);
    for ending in ["cu", "h"] {
        let built = fs::read_to_string(folder.path(&format!("made/half.{ending}"))).unwrap();
        assert_eq!(kept[&format!("half-regular-idxvar-f64.{ending}")], built);
    }
    // From wherever it is looked at, the code is the same.
    folder.done(&format!("snapshot {} --check", folder.path("code.stn").display()));
    let place = folder.path("").display().to_string();
    assert!(kept.values().all(|text| !text.contains(&place)));
}

#[test]
fn kernels_come_and_go() {
    let folder = folder();
    folder.done("snapshot code.stn --accept --stencil half --access zloop --precision f32 --block 32x4x1");
    let one = ["half-regular-zloop-f32-block-32x4x1.cu", "half-regular-zloop-f32-block-32x4x1.h", "kernels.txt"];
    assert_eq!(names(&folder), one);
    // Options of a kernel that is not there yet: nothing of it was accepted.
    let more = "snapshot code.stn --stencil shift --grid 9x6x3";
    assert_eq!(folder.run(&format!("{more} --check")).status.code(), Some(3));
    assert_eq!(names(&folder), one);
    folder.done(&format!("{more} --accept"));
    folder.done(&format!("{more} --check"));
    folder.done("snapshot code.stn --check");
    assert_eq!(names(&folder).len(), 5);
    // A comment of the user's stays; a kernel without a stencil goes.
    let list = kept(&folder)["kernels.txt"].clone();
    assert_eq!(list.lines().count(), 3, "{list}");
    fs::write(folder.path("code.snap/kernels.txt"), list.replace("--stencil half", "# mine\n--stencil half")).unwrap();
    fs::write(folder.path("code.snap/own.h"), "// Written by hand.\n").unwrap();
    folder.done("snapshot code.stn --check");
    fs::write(folder.path("code.stn"), FILE.replace("stencil shift", "stencil moved")).unwrap();
    let said = text(&folder.run("snapshot code.stn --check").stdout);
    assert!(said.contains("stale    code.snap/shift-regular-idxvar-f64-grid-9x6x3.cu"), "{said}");
    folder.done("snapshot code.stn --accept");
    assert_eq!(names(&folder), [&one[..], &["own.h"]].concat());
    assert!(kept(&folder)["kernels.txt"].contains("# mine\n--stencil half --access zloop"));
    // What no line is about is nobody's any more, and stays.
    fs::write(folder.path("code.snap/kernels.txt"), "").unwrap();
    folder.done("snapshot code.stn --accept");
    assert_eq!(names(&folder), [&one[..], &["own.h"]].concat());
}

#[test]
fn files_that_it_has_not_made_stay() {
    let folder = folder();
    let at = |name: &str| folder.path("mine").join(name);
    folder.done("build code.stn --stencil half -o mine");
    fs::write(at("solver.cu"), "// my own code, guarded by STENCILC_half_H\n").unwrap();
    folder.done("snapshot code.stn -o mine --accept");
    // A file of the name that a kernel has had, but by hand.
    fs::write(at("shift-regular-idxvar-f64.cu"), "// Made by stencilc build, and then by me. STENCILC_\n").unwrap();
    fs::write(folder.path("code.stn"), "stencil half { in a; out b; b = a / 2 }\n").unwrap();
    folder.done("snapshot code.stn -o mine --accept");
    for name in ["solver.cu", "half.cu", "half.h", "shift-regular-idxvar-f64.cu"] {
        assert!(at(name).exists(), "{name}");
    }
    assert!(!at("shift-regular-idxvar-f64.h").exists());
    // A file that has become a link is not removed, nor what it leads to.
    fs::write(folder.path("code.stn"), "stencil other { in a; out b; b = a / 2 }\n").unwrap();
    fs::rename(at("half-regular-idxvar-f64.h"), at("kept")).unwrap();
    std::os::unix::fs::symlink("kept", at("half-regular-idxvar-f64.h")).unwrap();
    assert_eq!(folder.run("snapshot code.stn -o mine --accept").status.code(), Some(1));
    assert!(at("half-regular-idxvar-f64.cu").exists() && at("kept").exists());
}

#[test]
fn a_folder_that_comes_along_leads_nowhere_else() {
    let folder = folder();
    folder.done("snapshot code.stn --stencil half --accept");
    let at = |name: &str| folder.path("code.snap").join(name);
    let code = at("half-regular-idxvar-f64.cu");
    fs::write(folder.path("secret.txt"), "a secret\n").unwrap();
    let refused = |why: &str| {
        let output = folder.run("snapshot code.stn");
        let (shown, said) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.code() == Some(1) && said.contains(why) && !shown.contains("secret"), "{shown}{said}");
    };
    for target in ["../secret.txt", "/dev/zero"] {
        fs::remove_file(&code).unwrap();
        std::os::unix::fs::symlink(target, &code).unwrap();
        refused("it is a link, not a file");
    }
    fs::remove_file(&code).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&code).status().unwrap().success());
    refused("it is a device or a pipe, not a file");
    fs::remove_file(&code).unwrap();
    fs::File::create(&code).unwrap().set_len(1 << 30).unwrap();
    refused("it has more than");
    fs::remove_file(&code).unwrap();
    for (line, why) in [
        ("--stencil half --grid ../secret.npz --levels 2", "that the source alone makes"),
        ("--stencil half --grid 9x6x3 --share ../secret.txt", "that the source alone makes"),
        ("--stencil ../../secret", "is no stencil's name"),
        ("--stencil 'half", "a quote does not end"),
    ] {
        fs::write(at("kernels.txt"), line).unwrap();
        refused(why);
    }
    // The folder itself.
    fs::rename(folder.path("code.snap"), folder.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.path("code.snap")).unwrap();
    refused("`code.snap` is a link");
}

#[test]
fn options_that_make_no_difference_are_refused() {
    let folder = folder();
    for options in ["--tile 2x2", "--access zloop-sliced --tile 2x2", "--run-width 8"] {
        for command in ["snapshot", "snapshot --accept", "build", "build --emit plan"] {
            let output = folder.run(&format!("{command} code.stn --stencil half {options}"));
            let said = text(&output.stderr);
            assert!(output.status.code() == Some(1) && said.contains("makes no difference here"), "{command}: {said}");
        }
    }
    assert!(!folder.path("code.snap").exists());
}

#[test]
fn changes_are_shown_and_fail() {
    let folder = folder();
    let call = "snapshot code.stn --stencil half --accept";
    let mut transcript = folder.transcript(&["snapshot code.stn --stencil half", call, "snapshot code.stn --check"]);
    fs::write(folder.path("code.stn"), FILE.replace("a / 2", "a / 4")).unwrap();
    fs::remove_file(folder.path("code.snap/half-regular-idxvar-f64.h")).unwrap();
    transcript += &folder.transcript(&[
        "snapshot code.stn",
        "snapshot code.stn --check",
        "snapshot code.stn --accept",
        "snapshot code.stn --check",
        "snapshot code.stn --stencil hlf",
    ]);
    fs::write(folder.path("code.snap/kernels.txt"), "\n--stencil half --acess zloop\n").unwrap();
    transcript += &folder.transcript(&[
        "snapshot code.stn",
        "snapshot code.stn --check --accept",
        "snapshot broken.stn",
        "snapshot code.stn --accept -o two.stn",
    ]);
    insta::assert_snapshot!(transcript);
    let report = folder.json("snapshot two.stn --json");
    assert_eq!((&report[0]["file"], &report[0]["change"]), (&"two.snap/kernels.txt".into(), &"new".into()));
}

const PROGRAM: &str = "stencil smooth { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }
program twice { inout u = 0..1
boundary { i: periodic }
repeat 2 { let v = smooth(u)
u = smooth(v) } }
";

#[test]
fn programs_are_kept_as_build_makes_them() {
    let folder = Folder::new();
    fs::write(folder.path("code.stn"), PROGRAM).unwrap();
    folder.done("snapshot code.stn --program twice --grid 16x8x2 --fuse separate --accept");
    folder.done("snapshot code.stn --check");
    let all = kept(&folder);
    let (name, text) = all.last_key_value().unwrap();
    assert!(name.starts_with("twice-separate-") && name.ends_with(".cu") && all.len() == 2, "{:?}", all.keys());
    let built = folder.done("build code.stn --program twice --grid 16x8x2 --fuse separate --emit cuda");
    assert_eq!(*text, built);
    // The usual plan is said by its name, and the stencil has a line of its own.
    folder.done("snapshot code.stn --program twice --grid 16x8x2 --accept");
    folder.done("snapshot code.stn --stencil smooth --accept");
    let list = kept(&folder)["kernels.txt"].clone();
    assert_eq!(list.lines().skip(1).filter(|line| line.starts_with("--program twice --fuse ")).count(), 2, "{list}");
    fs::write(folder.path("code.stn"), PROGRAM.replace("0.5", "0.25")).unwrap();
    let said = text_of(&folder, "snapshot code.stn --check");
    assert_eq!(said.matches("changed  ").count(), 3, "{said}");
    fs::write(folder.path("code.stn"), PROGRAM.split("program").next().unwrap()).unwrap();
    folder.done("snapshot code.stn --accept");
    assert!(kept(&folder).keys().all(|name| !name.starts_with("twice")));
}

/// What a call shows.
fn text_of(folder: &Folder, call: &str) -> String {
    text(&folder.run(call).stdout)
}

#[test]
fn what_runs_over_a_mesh_is_kept_with_and_without_one() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    fs::copy("stencils/airfoil.stn", folder.path("code.stn")).unwrap();
    folder.done("snapshot code.stn --accept");
    folder.done("snapshot code.stn --check");
    let usual = names(&folder);
    for file in ["res_calc-f64-owner-pairs-threads-128.cu", "airfoil_flow-f64-owner-pairs-threads-128.cu"] {
        assert!(usual.iter().any(|name| name == file), "{usual:?}");
    }
    let built = folder.done("build code.stn --program airfoil_flow --emit cuda");
    assert_eq!(kept(&folder)["airfoil_flow-f64-owner-pairs-threads-128.cu"], built);
    // A mesh by itself asks for nothing more.
    folder.done("snapshot code.stn --mesh m.npz --check");
    fs::create_dir(folder.path("other")).unwrap();
    fs::rename(folder.path("m.npz"), folder.path("other/m.npz")).unwrap();
    folder.done("snapshot code.stn --stencil res_calc --strategy tiled --mesh other/m.npz --accept");
    folder.done("snapshot code.stn --check --mesh other/m.npz");
    assert_eq!(names(&folder).len(), usual.len() + 1);
    // Nothing is read that the call does not name.
    for call in ["snapshot code.stn --check", "snapshot code.stn --check --mesh code.stn"] {
        let said = folder.refused(call);
        assert!(said.contains("is for the mesh `m.npz`") && said.contains("say where it is: --mesh m.npz"), "{said}");
    }
    fs::write(folder.path("code.snap/kernels.txt"), "--stencil res_calc --mesh ../m.npz\n").unwrap();
    assert!(folder.refused("snapshot code.stn --mesh other/m.npz").contains("that the source alone makes"));
}

#[test]
fn options_of_the_other_kind_are_refused() {
    let folder = folder();
    for (call, fragment) in [
        (
            "snapshot airfoil -o s --stencil res_calc --access zloop",
            "--access is for grids, and `res_calc` runs over a mesh",
        ),
        ("snapshot airfoil -o s --program airfoil_flow --grid 8x8x8", "--grid is for grids"),
        ("snapshot airfoil -o s --program airfoil_flo", "did you mean `airfoil_flow`?"),
        ("snapshot airfoil -o s --stencil res_calc --strategy tiled", "give it: --mesh FILE"),
        ("snapshot code.stn --stencil half --strategy atomic", "--strategy is for stencils over a mesh"),
        ("snapshot code.stn --stencil half --fuse merged", "add --program NAME"),
        ("snapshot heat -o s --program heat_periodic", "give it: --grid NIxNJxNK"),
        ("snapshot heat -o s --program heat_perodic", "did you mean `heat_periodic`?"),
        ("snapshot heat -o s --program heat_periodic --grid other.npz --levels 3", "that the source alone makes"),
    ] {
        let said = folder.refused(call);
        assert!(said.contains(fragment), "{call}: {said}");
    }
}
