//! `stencilc profile` with programs that write what Nsight Compute writes: kernels run on the emulator, which has no counters.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use stencilc_runtime::profile::metrics::METRICS;

const PROFILE: &str = "profile laplap --device emulate --grid 37x11x4 --runs 2 --storage regular --access idxvar,tile";

/// Tells a version, as Nsight Compute does, and reads its options; then it launches the program (`launch`), notes the call
/// in the file `calls`, and does what the test wants, with a table at hand of which every counter is 1000.
const NCU: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
    echo 'NVIDIA (R) Nsight Compute Command Line Profiler'
    echo 'Copyright (c) 2018-2025 NVIDIA Corporation'
    echo 'Version 2025.3.1.0 (build 36398880) (public-release)'
    exit 0
fi
while true; do
    case "$1" in
        --csv) shift ;;
        --metrics) metrics=$2; shift 2 ;;
        --kernel-name) kernel=$2; shift 2 ;;
        --log-file) log=$2; shift 2 ;;
        --page|--print-units|--clock-control|--cache-control|--launch-count) shift 2 ;;
        --*) echo "==ERROR== unrecognised option '$1'" >&2; exit 1 ;;
        *) break ;;
    esac
done
echo "$metrics $*" >> calls
program="$*"
launch() { echo "==PROF== Connected to process 7 ($1)" > "$log"; $program; }
table() {
    echo '==PROF== Disconnected from process 7' >> "$log"
    names='"ID","Process ID","Kernel Name"'; units='"","",""'; values='"0","7","'$kernel'(const double *, double *)"'
    for metric in $(echo "$metrics" | tr , ' '); do
        case $metric in
            dram__bytes*) unit=byte ;; *pct*) unit=% ;; *time*) unit=ns ;; *per_cycle*) unit=inst/cycle ;; *) unit= ;;
        esac
        names="$names,\"$metric\""; units="$units,\"$unit\""; values="$values,\"${1:-1,000}\""
    done
    printf '%s\n%s\n%s\n' "$names" "$units" "$values" >> "$log"
}
"#;

/// A folder with a program `ncu` that does this.
fn folder(does: &str) -> Folder {
    let folder = Folder::new();
    let path = folder.path("ncu");
    fs::write(&path, format!("{NCU}{does}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn calls(folder: &Folder) -> Vec<String> {
    let calls = fs::read_to_string(folder.path("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

/// What a call says where nothing can be counted.
fn refused(does: &str, options: &str, status: i32) -> String {
    let folder = folder(does);
    let output = folder.run(&format!("{PROFILE} --ncu ./ncu {options}"));
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    said
}

#[test]
fn counters_stand_beside_times() {
    let folder = folder("launch && table");
    let call = format!("{PROFILE} --ncu ./ncu -o profiles.jsonl");
    let report = folder.json(&format!("{call} --json"));
    assert_eq!(report["profiler"]["version"], "2025.3.1.0 (build 36398880) (public-release)");
    assert_eq!(report["totals"]["counted"], 2);
    let profiles = report["cases"][0]["profiles"].as_array().unwrap();
    for profile in profiles {
        assert!(profile["row"]["outcome"]["median_us"].as_f64().unwrap() > 0.0);
        assert_eq!(profile["row"]["outcome"]["result"], "equal");
        let counters = profile["counters"].as_object().unwrap();
        assert_eq!(counters.len(), METRICS.len());
        assert!(counters.values().all(|counter| counter["value"] == 1000.0), "{counters:?}");
        let unit = |name: &str| counters[name]["unit"].as_str().unwrap();
        assert_eq!((unit("dram_read"), unit("l1_hits"), unit("load_sectors")), ("bytes", "percent", "sectors"));
    }
    // What was launched is the kernel: this program has done it. Each is counted once.
    let launched = calls(&folder);
    assert_eq!(launched.len(), 2);
    for name in ["idxvar", "tile"] {
        let own: Vec<&String> = launched.iter().filter(|call| call.contains(&format!("--access {name}"))).collect();
        assert_eq!(own.len(), 1, "{launched:?}");
        assert!(own[0].contains("/stencilc run laplap --stencil laplap --seed 0 --device emulate"), "{launched:?}");
        assert!(own[0].contains("--grid 37x11x4"), "{launched:?}");
    }
    let rows = fs::read_to_string(folder.path("profiles.jsonl")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(profiles.iter().all(|profile| rows.contains(profile)));
    // Again, what is there is not counted; 33 x 7 x 4 cells of 32 bytes a sector, or of a byte.
    let again = folder.done(&call);
    assert_eq!(calls(&folder).len(), 2);
    assert!(again.contains("in all: 2 counted, 2 of the profiles were in profiles.jsonl before"), "{again}");
    assert!(again.contains("1000.0%  34.63  34.63  1.08    1.08  16.00    1.08  regular idxvar 64x2x1"), "{again}");
}

#[test]
fn what_is_launched_has_the_same_stencil_and_parameters() {
    let folder = folder("launch && table");
    let options = "--device emulate --runs 1 --storage regular --access idxvar --ncu ./ncu";
    folder.done(&format!("profile weigh.stn --grid 9x6x3 {options} --set first=-2 --seed 7"));
    folder.done(&format!("profile two.stn --stencil two --grid 9x6x3 {options} --precision both"));
    let calls = calls(&folder);
    assert_eq!(calls.len(), 3);
    assert!(calls[0].ends_with("--set first=-2") && calls[0].contains("--seed 7"), "{calls:?}");
    assert!(calls[1].contains("--stencil two") && calls[1].contains("--precision f32"), "{calls:?}");
}

#[test]
fn a_grid_from_a_file_is_launched_too() {
    let folder = folder("launch && table");
    folder.done("grid make quadtree --size 16x16 -o quad.npz");
    let options = "--device emulate --runs 1 --storage compressed --access idxvar --ncu ./ncu --json";
    let report = folder.json(&format!("profile laplap --grid quad.npz --levels 3 {options}"));
    assert_eq!(report["totals"]["counted"], 1);
    assert!(calls(&folder)[0].contains("--grid quad.npz --levels 3"));
}

#[test]
fn each_kernel_of_a_program_is_counted() {
    let folder = folder("launch && table");
    let call = "profile diffusion4 --device emulate --grid 64x48x2 --runs 2 --times 6 --ncu ./ncu";
    // The usual plan is one kernel; a kernel a call has one that fills halos besides.
    let usual = folder.json(&format!("{call} --json"));
    assert_eq!(usual["totals"]["failed"], 0);
    let separate = folder.json(&format!("{call} --fuse separate --json"));
    let case = &separate["cases"][0];
    assert_eq!((&case["program"], &case["place"]), (&Value::from("diffusion4"), &Value::from("64x48x2")));
    assert!(case["us"].as_f64().unwrap() > 0.0);
    assert!(case["way"].as_str().unwrap().starts_with("--fuse separate"), "{case}");
    let kernels = case["kernels"].as_array().unwrap();
    let names: Vec<&str> = kernels.iter().map(|own| own["kernel"].as_str().unwrap()).collect();
    assert_eq!(separate["totals"]["counted"], names.len());
    assert!(names.len() > 1, "{names:?}");
    for own in kernels {
        assert_eq!(own["counters"].as_object().unwrap().len(), METRICS.len());
        assert_eq!(own["counters"]["dram_read"]["value"], 1000.0);
    }
    // Each launch is one of `run` with the same plan, on the same numbers.
    let launched = calls(&folder);
    assert_eq!(launched.len(), usual["totals"]["counted"].as_u64().unwrap() as usize + names.len());
    let last = launched.last().unwrap();
    for words in [
        "run diffusion4 --program diffusion4 --draw --seed 0 --untuned",
        "--fuse separate",
        "--no-graph",
        "--grid 64x48x2",
    ] {
        assert!(last.contains(words), "{last}");
    }
    let told = folder.done(&format!("{call} --fuse separate"));
    for name in names {
        assert!(told.lines().any(|line| line.ends_with(name) && line.starts_with("1.00")), "{told}");
    }
}

#[test]
fn kernels_that_are_not_launched_are_told() {
    let none = r#"echo '==WARNING== No kernels were profiled.' > "$log""#;
    let call = "profile diffusion4 --device emulate --grid 64x48x2 --times 6 --fuse separate --ncu ./ncu";
    let folder = folder(&format!("if [ -f once ]; then {none}; else touch once; launch && table; fi"));
    let report = folder.json(&format!("{call} --json"));
    let kernels = report["cases"][0]["kernels"].as_array().unwrap();
    let launched: Vec<bool> = kernels.iter().map(|own| own["launched"].as_bool().unwrap()).collect();
    assert!(launched[0] && launched.len() > 1 && launched[1..].iter().all(|own| !own), "{launched:?}");
    assert_eq!((&report["totals"]["counted"], &report["totals"]["failed"]), (&Value::from(1), &Value::from(0)));
    fs::remove_file(folder.path("once")).unwrap();
    let told = folder.done(call);
    let name = kernels[1]["kernel"].as_str().unwrap();
    assert!(told.contains(&format!("not launched: {name}\n")), "{told}");
    // Where none is, something else is wrong.
    let output = folder.run(call);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&format!("saw no launch on a GPU of `{}`, ", kernels[0]["kernel"].as_str().unwrap())),
        "{said}"
    );
}

#[test]
fn each_kernel_over_a_mesh_is_counted() {
    let folder = folder("launch && table");
    folder.done("mesh make airfoil --size 24x12 -o mesh.npz");
    let call = "profile airfoil --mesh mesh.npz --device emulate --runs 2 --ncu ./ncu --json";
    let program = folder.json(&format!("{call} --program airfoil_flow --set steps=1 --times 2"));
    let case = &program["cases"][0];
    assert_eq!((&case["program"], &case["place"]), (&Value::from("airfoil_flow"), &Value::from("mesh.npz")));
    let kernels = case["kernels"].as_array().unwrap();
    let counted = kernels.iter().filter(|own| own["counters"]["duration"]["value"] == 1000.0).count();
    assert!(kernels.len() > 2 && counted == kernels.len(), "{case}");
    let before = calls(&folder).len();
    assert_eq!(before, kernels.len());
    let stencil = folder.json(&format!("{call} --stencil res_calc --strategy two-step --threads 64"));
    let case = &stencil["cases"][0];
    assert_eq!(case["stencil"], "res_calc");
    // One kernel writes what is added, and one adds.
    assert_eq!(case["kernels"].as_array().unwrap().len(), 2);
    let launched = &calls(&folder)[before];
    for words in ["--stencil res_calc", "--strategy two-step", "--threads 64", "--mesh mesh.npz"] {
        assert!(launched.contains(words), "{launched}");
    }
}

#[test]
fn wrong_calls_of_profile_for_programs_and_over_meshes() {
    let folder = folder("launch && table");
    folder.done("mesh make airfoil --size 24x12 -o mesh.npz");
    for (call, said) in [
        (
            "diffusion4 --grid 64x48x2 -o rows.jsonl",
            "--output is for kernels of stencils, and `diffusion4` is a program",
        ),
        ("diffusion4 --grid 64x48x2 --access idxvar,tile --storage regular", "these options name 2"),
        ("diffusion4 --grid 64x48x2 --blocks 64x2x1,32x4x1", "these options name 2"),
        ("diffusion4 --grid 64x48x2 --program difusion4", "did you mean `diffusion4`?"),
        ("laplap --grid 64x48x2 --fuse merged", "--fuse is for programs, and `laplap` is a stencil"),
        ("laplap --grid 64x48x2 --mesh mesh.npz", "--mesh is for stencils over a mesh"),
        ("airfoil --program airfoil_flow", "which file holds it?"),
        ("airfoil --program airfoil_flow --mesh mesh.npz --grid 64x48x2", "--grid is for grids"),
        ("airfoil --program airfoil_flow --mesh mesh.npz --strategy owner,tiled", "--strategy"),
        ("airfoil --program airfoil_flow --mesh mesh.npz --precision both", "in one precision at once"),
        ("airfoil --program airfoil_flow --mesh mesh.npz --fuse streamed", "--fuse streamed is for grids"),
    ] {
        let output = folder.run(&format!("profile {call} --device emulate --ncu ./ncu"));
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{call}\n{told}");
        assert!(told.contains(said), "{call}\n{told}");
    }
    assert_eq!(calls(&folder).len(), 0);
    // What one kernel lacks is told of it, and the others are counted.
    let folder = self::folder("if [ -f once ]; then exit 3; fi; touch once; launch && table");
    let output = folder.run("profile diffusion4 --device emulate --grid 64x48x2 --times 6 --fuse separate --ncu ./ncu");
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("FAILED  "), "{}", text(&output.stdout));
}

#[test]
fn a_counter_that_is_missing_leaves_the_others() {
    let folder = folder(
        r#"case $metrics in *dram__throughput*) echo "==ERROR== Failed to find metric dram__throughput" >> "$log"; exit 1 ;; esac
        launch && table"#,
    );
    let report = folder.json(&format!("{PROFILE} --ncu ./ncu --json"));
    let counters = &report["cases"][0]["profiles"][0]["counters"];
    assert_eq!(
        (&counters["dram_share"]["value"], &counters["dram_read"]["value"]),
        (&Value::Null, &Value::from(1000.0))
    );
    // It is asked for once, not again with every kernel.
    assert_eq!(calls(&folder).len(), 3);
}

#[test]
fn why_nothing_is_counted_is_told() {
    // Nobody may read counters: no kernel is tried after the first.
    let permission =
        r#"launch; echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' >> "$log"; exit 1"#;
    let said = refused(permission, "", 1);
    assert!(
        said.contains("this user may not read") && said.contains("NVreg_RestrictProfilingToAdminUsers=0"),
        "{said}"
    );
    for (does, reason) in [
        (
            r#"launch; echo '==WARNING== No kernels were profiled.' >> "$log""#,
            "saw no launch of `laplap_kernel` on a GPU",
        ),
        ("launch && table n/a", "every counter is n/a"),
        (r#"echo '==ERROR== LibraryNotLoaded' >> "$log"; exit 9"#, "Nsight Compute: LibraryNotLoaded"),
        (
            r#"echo 'error: the GPU is gone' >&2; echo '==ERROR== The application returned an error code (1).' >> "$log"; exit 1"#,
            "could not be launched: error: the GPU is gone",
        ),
        ("echo 'Segmentation fault' >&2; exit 139", "has failed (exit status: 139): Segmentation fault"),
        ("exit 3", "has failed (exit status: 3): it said nothing"),
    ] {
        let said = refused(does, "", 3);
        assert!(said.contains(reason) && said.contains("FAILED"), "{said}");
        assert!(said.contains("2 of 2 kernels failed"), "{said}");
    }
    let unknown = r#"launch; table; sed -i s/byte/furlong/ "$log""#;
    assert!(refused(unknown, "", 1).contains("in `furlong`"));
}

#[test]
fn one_that_does_not_end_is_ended() {
    let said = refused("exec sleep 100", "--timeout 1", 3);
    assert!(said.contains("has not ended within 1 s"), "{said}");
}

#[test]
fn what_was_counted_stays_if_the_rest_fails() {
    let folder = folder("if [ -f once ]; then exit 3; fi; touch once; launch && table");
    let output = folder.run(&format!("{PROFILE} --ncu ./ncu -o profiles.jsonl"));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("in all: 1 counted, 1 failed"), "{}", text(&output.stdout));
    assert_eq!(fs::read_to_string(folder.path("profiles.jsonl")).unwrap().lines().count(), 1);
}

#[test]
fn wrong_calls_of_profile() {
    let folder = folder("launch && table");
    for (options, status, said) in [
        ("--ncu nowhere", 1, "`nowhere`, which --ncu names, is not there"),
        ("--ncu /bin/true", 1, "`/bin/true`, which --ncu names, does not tell a version, as Nsight Compute does"),
        ("--ncu ./ncu --device cpu", 2, "the interpreter has no hardware counters"),
        ("--ncu ./ncu --timeout 0", 2, "0"),
        ("--ncu ./ncu --blocks many", 2, "shapes are usual"),
        ("--ncu ./ncu -o text.npy", 1, "holds something else"),
    ] {
        let call = format!("profile laplap --grid 9x6x3 --device emulate {options}");
        let call = if options.contains("cpu") { call.replacen("--device emulate", "", 1) } else { call };
        let output = folder.run(&call);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{call}\n{told}");
        assert!(told.contains(said), "{call}\n{told}");
    }
    let mut command = folder.command("profile laplap --device emulate");
    let output = command.env("STENCILC_NCU", "/nowhere/ncu").output().unwrap();
    assert!(text(&output.stderr).contains("`/nowhere/ncu`, which the variable STENCILC_NCU names, is not there"));
    // On a machine without a GPU.
    let output = folder.run("profile laplap --ncu ./ncu");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing can be counted: "), "{}", text(&output.stderr));
}
