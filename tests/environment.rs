//! The program where something that it may take for granted is missing: folders, variables, streams, memory, a terminal.
//! It ends with a status of its own, never by a panic or a signal, and leaves whole files or none.
#![cfg(target_os = "linux")]

use crate::common::process::{self, PROGRAM};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// One call of each kind.
const CALLS: &[&str] = &[
    "check laplap",
    "build laplap -o made",
    "build laplap --emit plan",
    "run laplap --grid 12x12x4 --device cpu --out res=res.npy --plot res=res.png",
    "verify laplap --grid 12x12x4 --device cpu --precision f32 --access idxvar",
    "bench laplap --grid 12x12x4 --device cpu --runs 2 -o rows.jsonl --csv rows.csv",
    "list stencils",
    "list devices",
    "doctor",
];

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// In `folder`, through a shell: `stencilc` in the script is the program. What hangs ends with status 124.
fn shell(folder: &Path, script: &str) -> Output {
    process::shell(folder, 30, &format!("stencilc() {{ {PROGRAM} \"$@\"; }}; {script}")).output().unwrap()
}

/// What the program says; it ends by itself.
#[track_caller]
fn ends(folder: &Path, script: &str) -> String {
    let output = shell(folder, script);
    let said = text(&output);
    let ended = output.status.code().is_some_and(|status| status <= 3);
    assert!(ended && !said.contains("panicked"), "{script}: {:?}\n{said}", output.status);
    said
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_call_ends_wherever_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for call in CALLS {
        for around in [
            "env -u HOME -u XDG_CACHE_HOME -u STENCILC_HOME CALL",
            "env -u STENCILC_HOME XDG_CACHE_HOME=relative CALL",
            "env -u STENCILC_HOME XDG_CACHE_HOME= CALL",
            "env STENCILC_HOME=$PWD/file CALL",
            "env STENCILC_HOME=/proc/nowhere CALL",
            "env TMPDIR=/nowhere CALL",
            "env -i CALL",
            "env TERM=none LANG=xx_XX.nothing COLUMNS=0 RAYON_NUM_THREADS=some CALL",
            "CALL <&-",
            "CALL >&-",
            "CALL 2>&-",
            "CALL <&- >&- 2>&-",
            "CALL | head -c 1 >&2",
            "CALL 2>&1 >/dev/null | head -c 1",
            "ulimit -n 5; CALL",
            "ulimit -f 0; CALL",
            "ulimit -v 60000; CALL",
            "ulimit -v 400000; CALL",
            "mkdir gone; cd gone; rmdir ../gone; CALL",
        ] {
            ends(folder.path(), &around.replace("CALL", &format!("{PROGRAM} {call}")));
        }
    }
    assert!(names(folder.path()).iter().all(|name| !name.ends_with(".part")), "{:?}", names(folder.path()));
}

#[test]
fn names_may_be_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let stencil = "stencil copy { in a; out b; b = a }";
    fs::write(at("it's \"a\" file.stn"), stencil).unwrap();
    let run = |file: &OsStr, out: &OsStr| {
        let mut command = Command::new(PROGRAM);
        command.arg("run").arg(file).args(["--grid", "3x3x1", "--device", "cpu", "--out"]).arg(out);
        command.current_dir(folder.path()).output().unwrap()
    };
    let output = run("it's \"a\" file.stn".as_ref(), "b=ö 'b'.npy".as_ref());
    assert!(output.status.success() && at("ö 'b'.npy").exists(), "{}", text(&output));
    // Names that are no Unicode are refused by name, not by a panic.
    for output in [
        run(OsStr::from_bytes(b"\xff.stn"), "b=b.npy".as_ref()),
        run("it's \"a\" file.stn".as_ref(), OsStr::from_bytes(b"b=\xff.npy")),
    ] {
        assert!(output.status.code() == Some(2) && text(&output).contains("UTF-8"), "{}", text(&output));
    }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = "stencilc run laplap --grid 64x64x8 --device cpu --out res=res.npy";
    fs::write(folder.path().join("res.npy"), "old").unwrap();
    // Files of at most 4 KiB or so: the limit stands for a disk that is full.
    let said = ends(folder.path(), &format!("ulimit -f 8; {run}"));
    assert!(said.contains("cannot write `res.npy`: it is larger than files may be"), "{said}");
    assert_eq!(fs::read(folder.path().join("res.npy")).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["res.npy"], "nothing is left aside");
    let said = ends(folder.path(), "stencilc run laplap --grid 64x64x8 --device cpu --out res=/dev/full");
    assert!(said.contains("no space is left"), "{said}");
    // The cache is not worth an error.
    let said = ends(folder.path(), "ulimit -f 0; stencilc build laplap --emit plan");
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn outputs_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = "stencilc run laplap --grid 12x12x4 --device cpu";
    let is_whole = |path: PathBuf| stencilc_runtime::npy::load(&path).unwrap().shape == [4, 12, 12];

    // A pipe takes the bytes as they come.
    let output = shell(folder.path(), &format!("{run} --out res=/dev/stdout | head -c 6"));
    assert_eq!(output.stdout, b"\x93NUMPY");
    ends(folder.path(), &format!("mkfifo pipe; cat pipe > through.npy & {run} --out res=pipe; wait"));
    assert!(is_whole(at("through.npy")));
    // A file that holds what is printed, too, would hold neither.
    for script in [format!("{run} --out res=/dev/stdout > mixed"), format!("{run} --out res=mixed.npy > mixed.npy")] {
        let said = ends(folder.path(), &script);
        assert!(said.contains("this program's own output goes to that file"), "{script}: {said}");
    }

    // Two outputs in one pipe would be one behind the other, and nobody could tell them apart.
    fs::write(at("two.stn"), "stencil two { in a; out b, c; b = a; c = 2*a }\n").unwrap();
    let two = "stencilc run two.stn --grid 4x4x2 --device cpu";
    for script in
        [format!("{two} --out b=/dev/stdout --out c=/dev/stdout | cat"), format!("{two} --out b=pipe --out c=./pipe")]
    {
        let said = ends(folder.path(), &script);
        assert!(said.contains("which is written already"), "{script}: {said}");
    }
    let said = ends(folder.path(), &format!("{two} --out b=/dev/null --out c=/dev/null"));
    assert!(!said.contains("error"), "{said}");

    // A file may be an input, too: it is read before it is written.
    ends(folder.path(), &format!("{run} --out res=res.npy"));
    let before = fs::read(at("res.npy")).unwrap();
    ends(folder.path(), "stencilc run laplap --device cpu --in phi=res.npy --out res=res.npy");
    assert!(is_whole(at("res.npy")) && fs::read(at("res.npy")).unwrap() != before);

    // A link stays one.
    std::os::unix::fs::symlink("res.npy", at("link.npy")).unwrap();
    ends(folder.path(), &format!("{run} --seed 3 --out res=link.npy"));
    assert!(at("link.npy").is_symlink() && is_whole(at("res.npy")));

    // Two names of one file are one file.
    std::os::unix::fs::symlink(".", at("here")).unwrap();
    let said = ends(
        folder.path(),
        "stencilc run gray_scott --stencil gray_scott --grid 9x9x1 --device cpu --out u_next=a.npy --out v_next=here/a.npy",
    );
    assert!(said.contains("`here/a.npy`, which is written already") && !at("a.npy").exists(), "{said}");
    let said = ends(folder.path(), &format!("{run} --out res=both --plot res=./both"));
    assert!(said.contains("which is written already"), "{said}");

    // Places that take no files.
    for (path, words) in [
        ("here", "it is a directory"),
        ("nowhere/res.npy", "mkdir -p nowhere"),
        ("res.npy/res.npy", "is not a directory"),
        ("/sys/res.npy", "not writable"),
    ] {
        let said = ends(folder.path(), &format!("{run} --out res={path}"));
        assert!(said.contains(words), "{path}: {said}");
    }
}

#[test]
fn whoever_is_ended_leaves_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("res.npy");
    let run = || {
        let mut command = Command::new(PROGRAM);
        command.args("run laplap --grid 160x160x40 --device cpu --out res=res.npy".split(' '));
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let start = Instant::now();
    assert!(run().wait().unwrap().success());
    let usual = start.elapsed();
    let mut unfinished = 0;
    for round in 0..30 {
        let mut child = run();
        std::thread::sleep(usual * round / 30);
        // `kill -9` and Ctrl-C in turn.
        let signal = if round % 2 == 0 { "-KILL" } else { "-INT" };
        let killed = Command::new("sh").args(["-c", &format!("kill {signal} {}", child.id())]).output().unwrap();
        let status = child.wait().unwrap();
        unfinished += u32::from(killed.status.success() && !status.success());
        let array = stencilc_runtime::npy::load(&path).unwrap();
        assert_eq!(array.shape, [40, 160, 160], "half a file");
        // Who could catch the signal has removed what was unfinished.
        let own = format!("-{}-", child.id());
        let left = names(folder.path()).iter().any(|name| name.contains(&own));
        assert!(!left || signal == "-KILL", "{:?}", names(folder.path()));
    }
    // The first have not begun.
    assert!(unfinished > 0, "none was ended in the middle");
    // What the others left aside goes with the next file that is written here.
    assert!(run().wait().unwrap().success());
    assert_eq!(names(folder.path()), ["res.npy"]);
}

/// A call that waits for its compiler, which tells that it has been started and then waits for ever; and the folder that both have
/// for temporary files.
fn waiting(folder: &Path) -> (std::process::Child, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let (compiler, temporary) = (folder.join("compiler"), folder.join("temporary"));
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && { echo compiler 1; exit 0; }\necho > \"$TMPDIR/own\"\n\
                  echo > \"$FOLDER/started\"\nexec cat \"$FOLDER/never\"\n";
    fs::write(&compiler, script).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(&temporary).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("never")).status().unwrap().success());
    // Whoever runs the tests may ignore signals, as `nohup` does, and a child would go on so.
    let mut command = Command::new("env");
    command.args(["--default-signal", PROGRAM]);
    command.args("run laplap --grid 12x12x4 --device emulate".split(' ')).current_dir(folder);
    command.env("CXX", &compiler).env("FOLDER", folder).env("TMPDIR", &temporary).env("STENCILC_CACHE", "off");
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !folder.join("started").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    (child, temporary)
}

/// Sends a signal, and gives the one that has ended the process.
fn ended_by(child: &mut std::process::Child, signal: &str) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;
    assert!(Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status().unwrap().success());
    child.wait().unwrap().signal()
}

/// Lets the compiler, which has outlived the call, end.
fn release(folder: &Path) {
    drop(fs::File::options().write(true).open(folder.join("never")).unwrap());
}

#[test]
fn a_signal_leaves_no_temporary_folder() {
    for (name, number) in [("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, temporary) = waiting(folder.path());
        let made = names(&temporary);
        assert!(
            made.len() == 1 && temporary.join(&made[0]).join("own").exists(),
            "the compiler's own files go along: {made:?}"
        );
        assert_eq!(ended_by(&mut child, name), Some(number));
        release(folder.path());
        assert!(names(&temporary).is_empty(), "{name}: {:?}", names(&temporary));
    }
}

#[test]
fn what_could_not_be_removed_goes_with_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, temporary) = waiting(folder.path());
    let run = || {
        let call =
            "export TMPDIR=$PWD/temporary STENCILC_CACHE=off; stencilc run laplap --grid 12x12x4 --device emulate";
        ends(folder.path(), call);
    };
    // As long as somebody is at work there, it stays.
    run();
    assert_eq!(names(&temporary).len(), 1);
    assert_eq!(ended_by(&mut child, "KILL"), Some(9));
    assert_eq!(names(&temporary).len(), 1, "nobody could remove it");
    run();
    assert!(names(&temporary).is_empty(), "{:?}", names(&temporary));
    release(folder.path());
}
