//! Programs that several processes compute, as `mpirun` starts them.

use crate::common::folder::{Folder, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use stencilc_runtime::{Array, npy};

/// How `mpirun` starts more processes than there are cores, if there is one.
fn mpirun() -> Option<Vec<&'static str>> {
    let version = Command::new("mpirun").arg("--version").output().ok()?;
    let has_compiler = Command::new("mpicc").arg("--version").output().is_ok();
    let is_open_mpi = text(&version.stdout).contains("Open MPI");
    has_compiler.then(|| if is_open_mpi { vec!["--oversubscribe"] } else { vec![] })
}

/// Calls of `mpirun`; nothing where there is none, which is told.
struct Processes<'a> {
    folder: &'a Folder,
    options: Vec<&'static str>,
}

impl<'a> Processes<'a> {
    fn new(folder: &'a Folder) -> Option<Self> {
        let options = mpirun();
        if options.is_none() {
            println!("skipped: no mpirun with mpicc (apt-get install openmpi-bin libopenmpi-dev)");
        }
        Some(Self { folder, options: options? })
    }

    /// Calls of the program, each in so many processes.
    fn command(&self, calls: &[(usize, &str)]) -> Command {
        let mut all = Command::new("mpirun");
        all.args(&self.options).stdin(Stdio::null());
        for (number, (count, line)) in calls.iter().enumerate() {
            let own = self.folder.command(line);
            if number > 0 {
                all.arg(":");
            }
            all.args(["-n", &count.to_string()]).arg(own.get_program()).args(own.get_args());
            all.current_dir(own.get_current_dir().unwrap());
            own.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
                all.env(name, value);
            });
        }
        all.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        all
    }

    fn done(&self, count: usize, line: &str) -> String {
        let output = self.command(&[(count, line)]).output().unwrap();
        assert!(output.status.success(), "{count} processes: stencilc {line}\n{}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What all say, which have to fail: the lines that are ours.
    fn refused(&self, calls: &[(usize, &str)]) -> String {
        told(&self.command(calls).output().unwrap())
    }
}

fn told(output: &Output) -> String {
    assert!(!output.status.success(), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    let ours = |line: &&str| line.starts_with("error: ") || line.starts_with("help: ");
    said.lines().filter(ours).map(|line| format!("{line}\n")).collect()
}

const HEAT: &str = "run heat --program heat_walls --grid 24x17x3 --draw --set steps=12";

#[test]
fn processes_leave_the_bytes_of_one() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    let said = folder.done(&format!("{HEAT} --device cpu --out t=one.npy --plot t=one.png"));
    let [one, picture] = ["one.npy", "one.png"].map(|name| fs::read(folder.path(name)).unwrap());
    for (count, how) in [(2, "cpu"), (5, "cpu"), (3, "emulate"), (2, "native --fuse recomputed"), (1, "cpu")] {
        let run = format!("{HEAT} --device {how} --out t=all.npy --plot t=all.png");
        let own = processes.done(count, &run);
        assert_eq!(fs::read(folder.path("all.npy")).unwrap(), one, "{count} on {how}");
        assert_eq!(fs::read(folder.path("all.png")).unwrap(), picture, "{count} on {how}");
        assert_eq!(own.lines().last(), said.lines().last(), "it is said once, and the same");
        assert_eq!(own.contains(&format!("{count} processes")), count > 1, "{own}");
    }
    // What two began three go on with, and one ends.
    let way = "run heat --program heat_walls --device cpu --resume way_5.npz";
    processes.done(2, &format!("{HEAT} --device cpu --every 5 --checkpoint way_{{step}}.npz"));
    processes.done(3, &format!("{way} --set steps=10 --checkpoint end.npz"));
    folder.done("run heat --program heat_walls --device native --resume end.npz --set steps=12 --out t=resumed.npy");
    assert_eq!(fs::read(folder.path("resumed.npy")).unwrap(), one);
    let all: serde_json::Value =
        serde_json::from_str(&processes.done(2, &format!("{HEAT} --device cpu --json"))).unwrap();
    assert_eq!(all["processes"], 2);
}

/// Fields of all places, some of which files give, in either order of axes and of another type; one says which levels are read.
const LEVELS: &str = "
    stencil spread {
        in a; in s on (i, j); in c on (k); in w on (i, j, k+1); in n: int; out r
        r = 0.5 * a + 0.25 * (a[j-1] + a[j+1]) * s + c * w[k+1] + 0.1 * a[k + n]
    }
    program levels {
        inout a; in s on (i, j); in c on (k); in w on (i, j, k+1); in n: int; out r
        boundary { j: copy }
        repeat 6 { a = spread(a, s, c, w, n) }
        r = spread(a, s, c, w, n)
    }
";

/// An array in the order of Fortran, as NumPy writes it.
fn fortran(shape: [usize; 3], number: impl Fn(usize) -> f32) -> Vec<u8> {
    let [nk, nj, ni] = shape;
    let header = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': ({nk}, {nj}, {ni}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for at in 0..nk * nj * ni {
        let (k, j, i) = (at % nk, at / nk % nj, at / nk / nj);
        bytes.extend(number((k * nj + j) * ni + i).to_le_bytes());
    }
    bytes
}

#[test]
fn each_process_reads_and_writes_its_rows() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    fs::write(folder.path("levels.stn"), LEVELS).unwrap();
    fs::write(folder.path("a.npy"), fortran([3, 13, 4], |at| (at as f32).sin())).unwrap();
    let s = Array::new(vec![13, 4], (0..52).map(|at| f64::from(at).cos()).collect::<Vec<_>>()).unwrap();
    npy::save(&folder.path("s.npy"), &s).unwrap();
    let run = "run levels.stn --grid 4x13x3 --in a=a.npy --in s=s.npy --draw --seed 4 --every 2";
    let names = |of: &str| ["a_2", "a_4", "a_6", "r"].map(|name| folder.path(&format!("{of}_{name}.npy")));
    let call = |of: &str, device: &str| {
        format!("{run} --device {device} --out a={of}_a_{{step}}.npy --out r={of}_r.npy --checkpoint {of}.npz")
    };
    let of_fields = |said: &str| -> Vec<String> {
        said.lines().filter(|line| line.contains("  min  ")).map(str::to_owned).collect()
    };
    let said = folder.done(&call("one", "cpu"));
    assert_eq!(of_fields(&said).len(), 2);
    let read = |of: &str| names(of).map(|path| fs::read(path).unwrap());
    for (count, device) in [(2, "cpu"), (5, "cpu"), (3, "emulate"), (4, "native")] {
        let own = processes.done(count, &call("all", device));
        assert!(read("all") == read("one"), "{count} on {device}");
        assert_eq!(of_fields(&own), of_fields(&said), "{count} on {device}");
        let [one, all] = ["one.npz", "all.npz"].map(|name| fs::read(folder.path(name)).unwrap());
        assert!(one == all, "{count} on {device}");
    }
    // What files had these names before is replaced, with the permissions that it had, and nothing is left aside.
    let path = folder.path("all_r.npy");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    processes.done(3, &call("all", "cpu"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let left = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!left.into_iter().any(|name| name.ends_with(".part")));
    let data = run.replace(" --every 2", "") + " --device cpu --json";
    let facts: serde_json::Value = serde_json::from_str(&processes.done(3, &data)).unwrap();
    let alone = folder.json(&data);
    assert_eq!(facts["outputs"], alone["outputs"]);
}

/// What is wrong with numbers that one process reads alone is told by it, and where they are in all of the array.
#[test]
fn what_is_wrong_with_rows_is_told() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    let numbers = |row: usize, number: f64| {
        let mut all = vec![0.5; 3 * 17 * 24];
        all[(17 + row) * 24 + 7] = number;
        Array::new(vec![3, 17, 24], all).unwrap()
    };
    let run = "run heat --program heat_walls --grid 24x17x3 --set steps=2 --device cpu";
    for (name, row, number) in [("one", 3, 0.25), ("other", 15, 0.75), ("large", 15, 1e39)] {
        npy::save(&folder.path(&format!("{name}.npy")), &numbers(row, number)).unwrap();
    }
    let [one, other] = ["one", "other"].map(|name| format!("{run} --in t={name}.npy --set wall=1"));
    let refused = |calls: &[(usize, &str)], part: &str| {
        let said = processes.refused(calls);
        assert!(said.contains(part) && said.matches("error: ").count() == 1, "{said}");
    };
    refused(&[(1, &one), (1, &other)], "rank 1 has other numbers in `t` than rank 0, and all compute one program");
    refused(&[(2, &one), (1, &other)], "rank 2 has other numbers in `t` than rank ");
    let large = format!("{run} --in t=large.npy --set wall=1 --precision f32 --cast");
    refused(&[(2, &large)], "error: on rank 1 of 2: `t` holds 1e39 at [1, 15, 7], and single precision ends at 3.4e38");
    // What all of them find is said as where one computes.
    for wrong in
        ["--in t=none.npy", "--in t=one.npy --precision f32", "--in t=one.npy --grid 24x16x3", "--in q=one.npy"]
    {
        let call = format!("{run} {wrong} --set wall=1").replacen(
            " --grid 24x17x3",
            if wrong.contains("--grid") { "" } else { " --grid 24x17x3" },
            1,
        );
        let alone = told(&folder.run(&call));
        assert_eq!(processes.refused(&[(3, &call)]), alone);
    }
    refused(&[(3, &format!("{one} --out t=/dev/full"))], "no space is left");
    refused(&[(3, &format!("{one} --out t=nowhere/t.npy"))], "the directory `nowhere` does not exist");
}

#[test]
fn processes_leave_the_bytes_of_one_over_a_mesh() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    folder.done("mesh make airfoil --size 24x12 -o airfoil.npz");
    let run = "run airfoil --mesh airfoil.npz --set steps=4 --every 2";
    let said = folder.done(&format!("{run} --device cpu --out q=one.npy --vtu one.vtu"));
    let one = ["one.npy", "one.vtu"].map(|name| fs::read(folder.path(name)).unwrap());
    for (count, how) in [(3, "cpu"), (2, "emulate --order random"), (4, "native --vectors soa --fuse separate")] {
        let own = processes.done(count, &format!("{run} --device {how} --out q=all.npy --vtu all.vtu"));
        assert!(["all.npy", "all.vtu"].map(|name| fs::read(folder.path(name)).unwrap()) == one, "{count} on {how}");
        let numbers =
            |said: &str| said.lines().filter(|line| line.contains("rms")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(numbers(&own), numbers(&said), "reductions are those of one: {own}");
    }
}

/// What is wrong is said once, by whoever finds it, and ends all of them.
#[test]
fn one_that_cannot_go_on_ends_all() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    let heat = format!("{HEAT} --device cpu");
    let seed = format!("{heat} --seed 1");
    let grid = heat.replace("24x17x3", "24x18x3");
    let full = format!("{heat} --every 2 --out t=/dev/full");
    let calls: [&[(usize, &str)]; 9] = [
        &[(2, "run laplap --grid 9x9x3 --device cpu")],
        &[(20, &heat)],
        &[(2, &format!("{heat} --gpus 2"))],
        &[(2, "run het --grid 9x9x3")],
        &[(1, &heat), (1, "run het --grid 9x9x3")],
        &[(1, &heat), (1, &seed)],
        &[(1, &heat), (1, &grid)],
        &[(2, &heat), (1, &heat.replace("--device cpu", "--device native"))],
        &[(3, &full)],
    ];
    let said: Vec<String> = calls.iter().map(|calls| processes.refused(calls)).collect();
    insta::assert_snapshot!(said.join("\n"));
}

/// Processes that `mpirun` has started without an MPI that fits it.
#[test]
fn what_is_missing_of_mpi_is_told() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    let heat = format!("{HEAT} --device cpu --out t=all.npy");
    let said = |compiler: &str| {
        let mut command = processes.command(&[(2, &heat)]);
        told(&command.env("MPICC", compiler).output().unwrap())
    };
    fs::write(folder.path("mpicc"), "#!/bin/sh\necho an old one\ntest $# = 1").unwrap();
    fs::set_permissions(folder.path("mpicc"), fs::Permissions::from_mode(0o755)).unwrap();
    let all = [said("nothing"), said("./mpicc")].map(|all| all.lines().next().unwrap().to_owned());
    assert!(
        all[0].contains("together, and `nothing`, which the variable MPICC names, is no compiler for MPI"),
        "{all:?}"
    );
    assert!(all[1].contains("together, and `./mpicc` does not compile what ranks need of MPI"), "{all:?}");
    // Each by itself, as it may be meant.
    let mut alone = processes.command(&[(2, &heat)]);
    let output = alone.env("STENCILC_MPI", "off").output().unwrap();
    assert!(output.status.success() && !text(&output.stdout).contains("processes"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).matches("heat_walls on cpu").count(), 2);
}

/// The processes that one has started, and those that these have.
fn started_by(process: u32) -> Vec<u32> {
    let own = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let own: Vec<u32> = own.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    own.iter().copied().chain(own.iter().copied().flat_map(started_by)).collect()
}

#[test]
fn one_that_is_killed_ends_all_and_nothing_is_lost() {
    let folder = Folder::new();
    let Some(processes) = Processes::new(&folder) else { return };
    let long = HEAT.replace("steps=12", "steps=1000000000");
    let mut mpirun = processes.command(&[(3, &format!("{long} --device cpu --every 1 --checkpoint way.npz"))]);
    let mut mpirun = mpirun.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !folder.path("way.npz").exists() && mpirun.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let is_ours =
        |process: &u32| fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == "stencilc");
    let ours: Vec<u32> = started_by(mpirun.id()).into_iter().filter(is_ours).collect();
    assert_eq!(ours.len(), 3);
    assert!(Command::new("kill").args(["-9", &ours[1].to_string()]).status().unwrap().success());
    assert!(!mpirun.wait().unwrap().success());
    // It goes on from there, however far that is.
    let resumed = "run heat --program heat_walls --device cpu --resume way.npz --out t=t.npy --set";
    let said = folder.refused(&format!("{resumed} steps=0"));
    let done = said.split("the checkpoint is after ").nth(1).and_then(|said| said.split(' ').next());
    let done: u64 = done.and_then(|done| done.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    folder.done(&format!("{resumed} steps={}", done + 1));
}
