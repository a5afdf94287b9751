//! `stencilc tune`, and what `run` and `build` make of it, on the emulator: everything but that times mean something.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

/// Few kernels on a small grid.
const TUNE: &str = "tune laplap --device emulate --grid 37x11x4 --runs 3 --storage regular --access zloop,naive \
                    --blocks usual --budget 1000000";

const RUN: &str = "run laplap --device emulate --grid 37x11x4 --json";

/// The files of what was tuned.
fn files(folder: &Folder) -> Vec<PathBuf> {
    let Ok(gpus) = fs::read_dir(folder.path("home/tuned")) else { return Vec::new() };
    let files = gpus.flat_map(|gpu| fs::read_dir(gpu.unwrap().path()).unwrap().map(|file| file.unwrap().path()));
    files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

/// What a call says on both streams, and whether it succeeded.
fn said(folder: &Folder, call: &str) -> (String, bool) {
    let output = folder.run(call);
    (text(&output.stdout) + &text(&output.stderr), output.status.success())
}

#[test]
fn what_was_tuned_is_taken_and_said() {
    let folder = Folder::new();
    let report = folder.json(&format!("{TUNE} --json"));
    let case = &report["cases"][0];
    // The two that are asked for, and what one has without.
    assert_eq!((case["among"].as_u64(), case["tried"].as_u64(), &case["complete"]), (Some(3), Some(3), &true.into()));
    let winner = &case["fastest"][0];
    assert_eq!(winner["outcome"]["result"], "equal");
    let options = winner["kernel"]["options"].as_str().unwrap();
    assert_eq!(files(&folder), [PathBuf::from(case["kept"].as_str().unwrap())]);

    let choices = |call: &str| -> Value {
        let output = folder.run(call);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let is_said = text(&output.stderr).contains(&format!("tuned for emulator and 37x11x4: {options}"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let is_taken = report["choices"] == winner["kernel"]["choices"];
        assert_eq!(is_said, is_taken, "{call}: {}", text(&output.stderr));
        report["choices"].clone()
    };
    let tuned = choices(RUN);
    assert_eq!(tuned, winner["kernel"]["choices"]);
    // A similar grid takes it, too; what is watched and rounded is still the call's.
    assert_eq!(choices(&RUN.replace("37x11x4", "40x12x4")), tuned);
    let watched = folder.json(&format!("{RUN} --contract off --index 64"));
    assert_eq!((&watched["choices"]["access"], &watched["choices"]["contract"]), (&tuned["access"], &false.into()));
    assert!(
        said(&folder, &format!("{RUN} --contract off --index 64")).0.contains("--contract off --index 64 (--untuned")
    );
    // Whoever chooses a kernel gets it, and so does another grid, precision or device, or another text.
    for other in [
        format!("{RUN} --untuned"),
        format!("{RUN} --access idxvar"),
        format!("{RUN} --block 64x2x1"),
        format!("{RUN} --precision f32"),
        RUN.replace("37x11x4", "90x11x4"),
        RUN.replace("--device emulate", "--device cpu"),
    ] {
        assert_eq!(choices(&other)["access"], "idxvar", "{other}");
    }
    let laplap = include_str!("../../stencils/laplap.stn");
    fs::write(folder.path("own.stn"), laplap).unwrap();
    assert_eq!(choices(&RUN.replace("laplap", "own.stn")), tuned);
    fs::write(folder.path("own.stn"), format!("{laplap}\n// changed\n")).unwrap();
    assert_eq!(choices(&RUN.replace("laplap", "own.stn"))["access"], "idxvar");
}

#[test]
fn kernels_for_other_machines_are_built_as_they_were_tuned() {
    let folder = Folder::new();
    folder.done(&TUNE.replace("zloop,naive", "zloop"));
    let made = |call: &str| {
        let (said, is_done) = said(&folder, &format!("{call} --emit cuda"));
        assert!(is_done, "{said}");
        (
            said.contains("tuned for NVIDIA H200 and 37x11x4"),
            said.contains("--access zloop"),
            said.contains("none of these is in this machine"),
        )
    };
    let build = "build laplap --grid 37x11x4";
    // The emulator is no GPU.
    assert_eq!(made(build), (false, false, false));
    let text = fs::read_to_string(&files(&folder)[0]).unwrap();
    let home = folder.path("home/tuned");
    for (gpu, access) in [("NVIDIA_H200", "zloop"), ("NVIDIA_H100", "naive")] {
        let name = gpu.replace('_', " ");
        let mut kept: Value = serde_json::from_str(&text).unwrap();
        (kept["gpu"], kept["arch"]) = (name.into(), "sm_90".into());
        let choices = &mut kept["entries"][0]["choices"];
        (choices["access"], choices["block"]) = (access.into(), serde_json::json!([64, 1, 1]));
        fs::create_dir(home.join(gpu)).unwrap();
        fs::write(home.join(gpu).join(files(&folder)[0].file_name().unwrap()), kept.to_string()).unwrap();
        // Of two models none is taken, if this machine has neither.
        let expected = if access == "zloop" { (true, true, false) } else { (false, false, true) };
        assert_eq!(made(build), expected);
    }
    fs::remove_dir_all(home.join("NVIDIA_H100")).unwrap();
    assert_eq!(made(build), (true, true, false));
    for other in ["--untuned", "--access naive", "--arch sm_80"] {
        assert_eq!(made(&format!("{build} {other}")), (false, false, false), "{other}");
    }
    assert_eq!(made("build laplap"), (false, false, false));
    // What is kept beside the source does not depend on what was tuned where.
    folder.done("snapshot laplap --grid 37x11x4 -o kept");
    assert!(!said(&folder, "snapshot laplap --grid 37x11x4 -o kept").0.contains("tuned"));
}

#[test]
fn two_that_tune_at_once_lose_nothing() {
    let folder = Folder::new();
    let grids = ["37x11x4", "90x11x4", "200x11x4", "500x11x4"];
    let quiet = |call: String| folder.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let running: Vec<_> = grids.iter().map(|grid| quiet(TUNE.replace("37x11x4", grid))).collect();
    running.into_iter().for_each(|mut running| assert!(running.wait().unwrap().success()));
    for grid in grids {
        let (said, is_done) = said(&folder, &RUN.replace("37x11x4", grid));
        assert!(is_done && said.contains(&format!("tuned for emulator and {grid}: ")), "{said}");
    }
    assert_eq!(files(&folder).len(), 1);
}

#[test]
fn a_tuner_that_is_killed_leaves_what_was_there() {
    let folder = Folder::new();
    folder.done(TUNE);
    let before = fs::read(&files(&folder)[0]).unwrap();
    for delay in [5, 40, 160, 400] {
        let mut command = folder.command(&TUNE.replace("37x11x4", "90x11x4"));
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        running.kill().unwrap();
        running.wait().unwrap();
        let (said, is_done) = said(&folder, RUN);
        assert!(is_done && said.contains("tuned for emulator and 37x11x4: "), "{said}");
    }
    assert!(fs::read(&files(&folder)[0]).unwrap().starts_with(&before[..40]));
}

#[test]
fn what_was_tuned_may_be_damaged() {
    let folder = Folder::new();
    folder.done(TUNE);
    let file = files(&folder).remove(0);
    let whole = fs::read_to_string(&file).unwrap();
    let usual = folder.json(&format!("{RUN} --untuned"))["choices"].clone();
    for wrong in [&whole[..whole.len() / 3], "", "no JSON", &whole.replace("stencilc tuned", "another")] {
        fs::write(&file, wrong).unwrap();
        let output = folder.run(RUN);
        assert!(
            output.status.success() && text(&output.stderr).contains("what was tuned is not taken: "),
            "{output:?}"
        );
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["choices"], usual);
        let (said, is_done) = said(&folder, TUNE);
        assert!(!is_done && said.contains("delete it, and tune again"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), wrong);
    }
    // One that never ends, if one begins to read it.
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert!(said(&folder, RUN).0.contains("is no file") && said(&folder, TUNE).0.contains("is no file"));
    fs::remove_file(&file).unwrap();
    // One that chooses what does not exist here.
    fs::write(&file, whole.replace("\"access\": \"", "\"access\": \"better-")).unwrap();
    let (said, is_done) = said(&folder, RUN);
    assert!(is_done && said.contains("what was tuned is not taken: there is no access strategy"), "{said}");
}

#[test]
fn calls_that_cannot_be_tuned_are_told() {
    let folder = Folder::new();
    let calls = [
        "tune laplap --device cpu",
        "tune laplap --device emulate --grid 3x3x3",
        "tune laplap --device emulate --budget soon",
        "tune laplap --device emulate --budget=-1",
        "tune laplap --device emulate --grid 37x11x4 --budget 0",
        "tune laplap --device emulate --grid 37x11x4 --storage regular --access warp",
        "tune nothing.stn",
        "tune broken.stn --device emulate",
        "tune roots.stn --device emulate --grid 4x4x4",
    ];
    // What is printed on stdout has times.
    let entry = |call: &str| {
        let output = folder.run(call);
        format!("$ stencilc {call}\n{}=> {}\n\n", text(&output.stderr), output.status.code().unwrap_or(-1))
    };
    insta::assert_snapshot!("tune_wrong", calls.map(entry).concat());
    let (unchecked, is_done) =
        said(&folder, "tune roots.stn --device emulate --grid 4x4x4 --access naive --blocks usual --no-verify");
    assert!(is_done && unchecked.contains("remembered in"), "{unchecked}");
    fs::remove_dir_all(folder.path("home/tuned")).unwrap();
    assert!(files(&folder).is_empty());
    // Nothing is kept of what is not to be, is special, or has no place.
    for special in ["--checked", "--contract off", "--math device", "--index 64", "--hot", "--share laplap"] {
        let (said, is_done) = said(&folder, &format!("{TUNE} {special}"));
        assert!(is_done && said.contains(&format!("it is for calls with {special}").replace(" laplap", "")), "{said}");
    }
    assert!(files(&folder).is_empty());
    // That there is no place is told before the search.
    fs::write(folder.path("file"), "").unwrap();
    let output = folder.command(TUNE).env("STENCILC_TUNED", folder.path("file")).output().unwrap();
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("cannot keep what was tuned in"), "{output:?}");
    assert!(!folder.done(&format!("{TUNE} --forget")).contains("remembered"));
    let mut command = folder.command(TUNE);
    let output = command.env("STENCILC_TUNED", "off").output().unwrap();
    assert!(text(&output.stderr).contains("give --forget"), "{output:?}");
    assert!(folder.command(TUNE).env("STENCILC_TUNED", folder.path("elsewhere")).status().unwrap().success());
    assert!(files(&folder).is_empty() && folder.path("elsewhere/emulator").is_dir());
}

#[test]
fn a_machine_without_room_is_no_property_of_kernels() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    // A compiler that finds the disk full, or is ended by the machine.
    for (name, does) in [
        ("full", "echo 'ld: final link failed: No space left on device' >&2; exit 1"),
        ("killed", "echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1"),
    ] {
        let path = folder.path(name);
        let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && {{ echo compiler 1; exit 0; }}\n{does}\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (variable, value, why) in [
        ("CXX", folder.path("full"), "the disk is full"),
        ("CXX", folder.path("killed"), "not enough memory"),
        ("TMPDIR", folder.path("nowhere"), "nothing can be written to the folder for temporary files"),
    ] {
        for call in ["tune", "bench", "verify"] {
            let mut command = folder.command(&format!("{call} laplap --grid 12x12x4 --device emulate"));
            let output = command.env(variable, &value).env("STENCILC_CACHE", "off").output().unwrap();
            let said = text(&output.stderr);
            let is_told = said.contains(why) && !said.contains("no kernel was found") && !said.contains("report it");
            assert!(output.status.code() == Some(1) && is_told, "{call}, {variable}: {said}");
        }
    }
}

#[test]
fn over_a_mesh_a_kernel_that_does_not_compile_leaves_the_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x12 -o mesh.npz");
    let path = folder.path("picky");
    let script = "#!/bin/sh
[ \"$1\" = --version ] && { echo picky 1; exit 0; }
for word in \"$@\"; do
    case $word in *.cpp) grep -q res_calc_tiled \"$word\" && { echo 'too much of it' >&2; exit 1; } ;; esac
done
exec c++ \"$@\"
";
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    for call in ["tune --budget 1000000", "bench"] {
        let line = format!(
            "{call} airfoil --stencil res_calc --mesh mesh.npz --device emulate --strategy owner,tiled --runs 2"
        );
        let output = folder.command(&line).env("CXX", &path).env("STENCILC_CACHE", "off").output().unwrap();
        let (told, said) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(told.contains("owner") && told.contains("equal"), "{told}");
        assert!(said.contains("error: --strategy tiled") && said.contains("too much of it"), "{said}");
        assert!(said.contains(" failed"), "{said}");
    }
}
