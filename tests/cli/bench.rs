//! `stencilc bench`, on the emulator and the interpreter: everything but that times mean something.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use stencilc_compiler::plan::variants;

/// Few launches on a small grid; what is measured of which kernels is the test's.
const BENCH: &str = "bench laplap --device emulate --grid 37x11x4 --runs 3";

/// The rows of a file, which has to be whole.
fn rows(folder: &Folder, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.path(name)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn keys(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

/// A call of which nobody reads what it says.
fn quiet(folder: &Folder, call: &str) -> Command {
    let mut command = folder.command(call);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn every_variant_is_measured_and_compared() {
    let folder = Folder::new();
    let report = folder.json(&format!("{BENCH} --blocks usual --json -o rows.jsonl --csv rows.csv"));
    let expected: BTreeSet<String> = variants().filter(|own| own.is_plain()).map(|own| own.words()).collect();
    let fastest = report["cases"][0]["fastest"].as_array().unwrap();
    let options: BTreeSet<String> =
        fastest.iter().map(|row| row["kernel"]["options"].as_str().unwrap().to_owned()).collect();
    assert_eq!(options, expected);
    assert_eq!(report["totals"]["measured"], expected.len());
    assert_eq!(report["machine"]["device"], "emulate");
    for row in fastest {
        let outcome = &row["outcome"];
        let mut times: Vec<f64> =
            outcome["times_us"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        // Of three times, by hand.
        let [a, b, c] = times[..] else { panic!("{times:?}") };
        let close = |name: &str, number: f64| (outcome[name].as_f64().unwrap() - number).abs() <= 1e-9 * number;
        assert!(close("minimum_us", a) && close("median_us", b), "{outcome:#}");
        assert!(close("lower_quartile_us", (a + b) / 2.0) && close("upper_quartile_us", (b + c) / 2.0), "{outcome:#}");
        // 33 x 7 x 4 cells, a value of 8 bytes read and one written.
        assert!(close("gb_per_s", 33.0 * 7.0 * 4.0 * 16.0 / (b * 1e3)), "{outcome:#}");
        assert!(close("of_limit", outcome["limit"]["median_us"].as_f64().unwrap() / b), "{outcome:#}");
        assert_eq!(outcome["result"], "equal");
    }
    // The file, the table and what is printed are the same rows.
    assert_eq!(keys(&rows(&folder, "rows.jsonl")), keys(fastest));
    let mut reader = csv::Reader::from_path(folder.path("rows.csv")).unwrap();
    let column = reader.headers().unwrap().iter().position(|name| name == "outcome.median_us").unwrap();
    let medians: BTreeSet<String> = reader.records().map(|record| record.unwrap()[column].to_owned()).collect();
    assert_eq!(medians, fastest.iter().map(|row| row["outcome"]["median_us"].to_string()).collect());
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let folder = Folder::new();
    let call = format!("{BENCH} --storage regular --access idxvar,zloop-sliced --blocks 32x1x1,64x1x1");
    folder.done(&format!("{call} --slices 2,4 -o rows.jsonl"));
    let first = fs::read(folder.path("rows.jsonl")).unwrap();
    // idxvar does not slice.
    assert_eq!(rows(&folder, "rows.jsonl").len(), 2 + 2 * 2);
    let said = folder.done(&format!("{call} --slices 4,2 -o rows.jsonl"));
    assert!(said.contains("in all: 6 measured, 6 of the rows were in rows.jsonl before"), "{said}");
    assert!(fs::read(folder.path("rows.jsonl")).unwrap() == first);
    // What differs in anything is.
    for more in ["--runs 4", "--hot", "--no-verify", "--seed 1", "--precision f32", "--grid 36x11x4"] {
        folder.done(&format!("{} -o rows.jsonl", with(&call, more)));
    }
    assert_eq!(keys(&rows(&folder, "rows.jsonl")).len(), 6 + 6 * 4);
}

/// A call with an option in the place of the one that it had.
fn with(call: &str, option: &str) -> String {
    let name = option.split_whitespace().next().unwrap();
    let mut words: Vec<&str> = call.split_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == name) {
        words.drain(at..at + 2);
    }
    format!("{} {option} --slices 8", words.join(" "))
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_stopped() {
    let folder = Folder::new();
    // Several layouts, each with several kernels, and every result compared.
    let call = "bench laplap --device emulate --grid 37x11x4 --runs 200 --storage regular,compressed \
                --access naive,idxvar --layout row-major,z-curve --blocks 32x1x1,64x1x1,32x2x1,32x1x4";
    let sweep = format!("{call} -o rows.jsonl");
    // Undisturbed, elsewhere; its compiled kernels are there for all that follow.
    folder.done(&format!("{call} -o undisturbed.jsonl"));
    let expected = keys(&rows(&folder, "undisturbed.jsonl"));
    assert_eq!(expected.len(), 3 * 2 * 4);
    let text = || fs::read(folder.path("rows.jsonl")).unwrap_or_default();
    let whole = |text: &[u8]| text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    // What is on disk, row by row: it only grows.
    let mut kept: Vec<u8> = Vec::new();
    for round in 0..8_usize {
        let mut child = quiet(&folder, &sweep).spawn().unwrap();
        // Before it has begun, while it goes on, or within the next rows.
        let more = round % 3;
        while child.try_wait().unwrap().is_none() && more > 0 && text().len() <= kept.len() + (more - 1) * 4000 {
            std::thread::sleep(Duration::from_millis(3));
        }
        std::thread::sleep(Duration::from_millis([3, 41, 97, 11, 67, 5, 151, 23][round]));
        let _ = child.kill();
        child.wait().unwrap();
        let mut text = text();
        assert!(text.starts_with(&kept), "round {round}: a row that was there is another now");
        // A kill seldom meets a row that is being written: one is left as if it had.
        let last = whole(&text[..whole(&text).saturating_sub(1)]);
        if round % 2 == 1 && last > kept.len() {
            text.truncate(last + (round * 499) % (text.len() - last));
            fs::write(folder.path("rows.jsonl"), &text).unwrap();
        }
        kept = text[..whole(&text)].to_vec();
    }
    let count = kept.iter().filter(|&&byte| byte == b'\n').count();
    assert!((3..24).contains(&count), "it was not killed in the middle: {count} rows");
    let said = folder.done(&sweep);
    assert!(said.contains("in all: 24 measured"), "{said}");
    assert!(text().starts_with(&kept));
    let rows = rows(&folder, "rows.jsonl");
    assert_eq!((rows.len(), keys(&rows)), (expected.len(), expected));
}

#[test]
fn a_full_disk_ends_a_sweep_which_goes_on_later() {
    let folder = Folder::new();
    let grids: Vec<String> = (3..15).map(|levels| format!("9x6x{levels}")).collect();
    let call = format!("bench laplap --device cpu --runs 5 --grid {} -o rows.jsonl", grids.join(","));
    // A file of at most 8 KiB: the write that reaches its end fails in the middle of a row.
    let program = format!("ulimit -f 16; exec {} {call}", env!("CARGO_BIN_EXE_stencilc"));
    let mut command = folder.command("");
    let output = Command::new("sh").args(["-c", &program]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cannot write `rows.jsonl`"), "{}", text(&output.stderr));
    let before = fs::read(folder.path("rows.jsonl")).unwrap();
    assert_eq!(before.len(), 8 << 10);
    // Rows are of any length: once in a thousand times one ends there.
    let is_cut = before.last() != Some(&b'\n');
    let output = command.args(call.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr).contains("was not written whole"), is_cut, "{}", text(&output.stderr));
    let whole = before.iter().rposition(|&byte| byte == b'\n').unwrap();
    assert!(fs::read(folder.path("rows.jsonl")).unwrap().starts_with(&before[..=whole]));
    let rows = rows(&folder, "rows.jsonl");
    assert_eq!((rows.len(), keys(&rows).len()), (12, 12));
}

#[test]
fn two_sweeps_do_not_mix() {
    let folder = Folder::new();
    let call = format!("{BENCH} --storage regular --access idxvar --blocks usual -o rows.jsonl");
    let log = stencilc_runtime::bench::rows::Log::open(&folder.path("rows.jsonl")).unwrap();
    let output = folder.run(&call);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("another `stencilc bench` writes to `rows.jsonl`"));
    drop(log);
    let children: Vec<_> = (0..4).map(|_| quiet(&folder, &call).spawn().unwrap()).collect();
    let codes: Vec<i32> = children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    // Who came too late is told so, and has written nothing.
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 1].contains(code)), "{codes:?}");
    assert_eq!(rows(&folder, "rows.jsonl").len(), 1);
}

#[test]
fn without_a_gpu_the_interpreter_is_measured() {
    let folder = Folder::new();
    let output = folder.run("bench two.stn --stencil two --grid 21x13x4,9x6x3 --precision both --runs 2 -o rows.jsonl");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("no kernel is measured: "), "{}", text(&output.stderr));
    let rows = rows(&folder, "rows.jsonl");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["kernel"]["options"] == "interpreter" && row["machine"]["device"] == "cpu"));
    assert!(rows.iter().all(|row| row["outcome"]["limit"].is_null()));
}

#[test]
fn grids_of_any_cells_are_measured() {
    let folder = Folder::new();
    folder.done("grid make quadtree --size 12x10 --depth 2 --refine circle -o quad.npz");
    let call = "bench laplap --device emulate --grid quad.npz --levels 3 --runs 1 --blocks usual --access idxvar";
    let report = folder.json(&format!("{call} --layout row-major,z-curve --json"));
    assert_eq!(report["totals"]["measured"], 4);
    // Regular storage is for rows.
    assert_eq!(report["totals"]["refused"], 1);
    let case = &report["cases"][0];
    assert_eq!(case["subject"]["grid"], "quad.npz x 3");
    assert!(case["subject"]["neighbours"].is_string());
    let said = folder.done(call);
    assert!(said.contains("left out 1: regular storage is for grids in rows"), "{said}");
}

#[test]
fn wrong_calls_of_bench() {
    let folder = Folder::new();
    for (call, status, part) in [
        ("bench laplap --blocks many", 2, "shapes are usual, few, thesis, all"),
        ("bench laplap --grid 9x6x3 --levels 3 --device cpu", 2, "--levels is for grids that a file holds"),
        ("bench laplap --grid 3x3x3 --device cpu", 1, "laplap"),
        ("bench laplap --runs 0", 2, "0"),
        ("bench two.stn --device cpu", 2, "choose one: --stencil one, or --stencil two"),
        ("bench laplap --device cpu --grid 9x6x3 -o phi.npy", 1, "holds something else: line 1"),
        ("bench laplap --device cpu --grid 9x6x3 -o .", 1, "it is not a file"),
        ("bench laplap --device cpu --grid 9x6x3 --csv rows.txt", 2, "--csv writes .csv"),
        ("bench roots.stn --device cpu --grid 9x6x3", 3, "or give --no-verify"),
    ] {
        let before = fs::read(folder.path("phi.npy")).unwrap();
        let output = folder.run(call);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(part), "{call}: {:?} {said}", output.status);
        assert!(fs::read(folder.path("phi.npy")).unwrap() == before);
    }
    folder.done("bench roots.stn --device cpu --grid 9x6x3 --no-verify");
}
