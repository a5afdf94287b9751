//! Tests of what is measured and kept. Kernels run on the emulator.

use super::rows::MachineFacts;
use super::rows::{FORMAT, Log, csv};
use super::sweep::{Sweep, Swept};
use super::*;
use crate::execute::Rotation;
use crate::nvrtc::{self, Kind};
use crate::problem::Request;
use crate::{Device, Fault};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use stencilc_compiler::check;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::variants;
use stencilc_compiler::source::Source as Text;

pub(crate) const METHOD: Method = Method { runs: 3, warmups: 1, hot: false, verify: true };

const TEXT: &str = "stencil mean { in a; in w on (k); out b; b = w * (a[i-1] + a[i+1]) }";

pub(crate) fn emulator() -> Platform {
    Device::Emulate.open(0).unwrap()
}

pub(crate) fn case(platform: &Platform, method: Method) -> Case {
    let lowered = check(&Text::new("mean", TEXT));
    let problem = Problem::new(Request {
        stencil: &lowered.stencils[0],
        precision: Precision::F64,
        contract: true,
        grid: Some(Grid::rows(9, 5, 3)),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: crate::Cast::Exact,
        drawing: crate::Drawing::Everything,
    });
    Case::new(problem.unwrap(), platform, method).unwrap()
}

pub(crate) fn subject(case: &Case) -> Subject {
    case.subject("mean.stn", TEXT, "9x5x3".to_owned(), 1)
}

/// A row with numbers that take many digits.
fn row(number: usize) -> Row {
    let case = case(&Platform::Cpu, METHOD);
    let facts = KernelFacts { options: format!("--access \"a, {number}\""), ..KernelFacts::interpreter(&case) };
    let mut row = Row::new(&subject(&case), &Platform::Cpu.facts(), facts, METHOD);
    row.date = date();
    row.outcome = match number % 3 {
        0 => Outcome::Failed { reason: "a line\nof \"its own\", ö".to_owned() },
        _ => Outcome::Measured(measured(&case, &[0.1 + number as f64 / 3.0, 1e-7, 1e300 / 7.0]).unwrap()),
    };
    row
}

fn reopened(path: &Path, keys: &[&str]) -> (usize, Vec<bool>) {
    let log = Log::open(path).unwrap();
    (log.dropped, keys.iter().map(|key| log.get(key).is_some()).collect())
}

#[test]
fn a_file_that_was_cut_off_anywhere_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let rows: Vec<Row> = (0..3).map(row).collect();
    let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    let mut log = Log::open(&path).unwrap();
    let mut ends = vec![0];
    for row in &rows {
        log.append(row).unwrap();
        ends.push(path.metadata().unwrap().len() as usize);
    }
    drop(log);
    let whole = std::fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let complete = ends[1..].iter().filter(|&&end| end <= length).count();
        let (dropped, found) = reopened(&path, &keys);
        assert_eq!((dropped, path.metadata().unwrap().len() as usize), (length - ends[complete], ends[complete]));
        assert_eq!(found, [complete > 0, complete > 1, complete > 2], "{length} bytes");
        // What is added comes back as it was, behind what was there.
        let mut log = Log::open(&path).unwrap();
        rows[complete..].iter().for_each(|row| log.append(row).unwrap());
        drop(log);
        assert!(std::fs::read(&path).unwrap() == whole, "{length} bytes");
    }
    let log = Log::open(&path).unwrap();
    rows.iter().for_each(|row| assert_eq!(log.get(&row.key), Some(row)));
}

#[test]
fn rows_without_the_stencil_are_read() {
    let row = row(1);
    let line = serde_json::to_string(&row).unwrap() + "\n";
    let text = serde_json::to_string(TEXT).unwrap();
    let older = line.replace(&format!("\"text\":{text},"), "");
    assert!(older.len() < line.len());
    let (rows, dropped) = log::parse::<Row>(older.as_bytes()).unwrap();
    let subject = Subject { text: None, ..row.subject.clone() };
    assert_eq!((rows, dropped), (vec![Row { subject, ..row }], 0));
}

#[test]
fn lines_are_counted_as_editors_do() {
    let line = serde_json::to_string(&row(1)).unwrap() + "\n";
    for (text, number) in
        [("a\n".to_owned(), 1), (format!("{line}\n\n{{}}\n"), 4), (format!("{line}{line}x"), 3), ("x".to_owned(), 1)]
    {
        let error = log::parse::<Row>(text.as_bytes()).unwrap_err();
        assert!(error.starts_with(&format!("line {number} is no row")), "{error}");
    }
}

#[test]
fn one_process_writes_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let first = Log::open(&path).unwrap();
    let error = Log::open(&path).unwrap_err();
    assert!(error.fault == Fault::Input && error.message.contains("another"), "{error}");
    drop(first);
    Log::open(&path).unwrap();
}

#[test]
fn what_is_no_file_of_rows_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let line = format!("{}\n", serde_json::to_string(&row(1)).unwrap());
    let older = line.replace(FORMAT, "stencilc bench 0");
    let damaged = format!("{line}{}{line}", line.replace("median_us", "mediaan_us"));
    let cut = format!("{}{line}", &line[..line.len() / 2]);
    for text in ["a line\n", "no line", "{\"format\":\"another\"", "\u{0}", "{}\n", "\n\n{", &older, &damaged, &cut] {
        let is_prefix = "{\"format\":\"stencilc bench".starts_with(text.trim_start_matches('\n'));
        std::fs::write(&path, text).unwrap();
        assert_eq!(Log::open(&path).is_err(), !is_prefix, "{text:?}");
        assert!(is_prefix || std::fs::read(&path).unwrap() == text.as_bytes(), "{text:?}");
    }
    for path in [folder.path(), Path::new("/dev/null"), Path::new("/nowhere/rows.jsonl")] {
        assert!(Log::open(path).is_err(), "{}", path.display());
    }
}

#[test]
fn a_key_is_of_all_that_times_depend_on() {
    let case = case(&Platform::Cpu, METHOD);
    let (subject, machine) = (subject(&case), Platform::Cpu.facts());
    let facts = KernelFacts::interpreter(&case);
    let key = |subject: Subject, machine: MachineFacts, facts: KernelFacts, method: Method| {
        Row::new(&subject, &machine, facts, method).key
    };
    let own = || key(subject.clone(), machine.clone(), facts.clone(), METHOD);
    // Not of the name of the file, nor of what is only known once a kernel is compiled.
    let compiled = KernelFacts { occupancy: Some(Occupancy { blocks: 2, part: 0.5 }), ..facts.clone() };
    assert_eq!(key(subject.clone(), machine.clone(), compiled, METHOD), own());
    let renamed = Subject { file: "other.stn".to_owned(), ..subject.clone() };
    assert_eq!(key(renamed, machine.clone(), facts.clone(), METHOD), own());
    // Nor of whether the text itself is there, beside its hash: rows of older files lack it.
    let older = Subject { text: None, ..subject.clone() };
    assert!(subject.text.is_some() && key(older, machine.clone(), facts.clone(), METHOD) == own());
    let other = || "other".to_owned();
    let subjects = [
        Subject { source: other(), ..subject.clone() },
        Subject { stencil: other(), ..subject.clone() },
        Subject { precision: Precision::F32, ..subject.clone() },
        Subject { extents: Grid::rows(9, 5, 4), ..subject.clone() },
        Subject { neighbours: Some(other()), ..subject.clone() },
        Subject { parameters: BTreeMap::from([(other(), other())]), ..subject.clone() },
        Subject { seed: 2, ..subject.clone() },
    ];
    let machines = [
        MachineFacts { name: other(), ..machine.clone() },
        MachineFacts { driver: Some(other()), ..machine.clone() },
        MachineFacts { compiler: Some(other()), ..machine.clone() },
    ];
    let kernels =
        [KernelFacts { options: other(), ..facts.clone() }, KernelFacts { plan: Some(other()), ..facts.clone() }];
    let methods = [
        Method { runs: 4, ..METHOD },
        Method { warmups: 2, ..METHOD },
        Method { hot: true, ..METHOD },
        Method { verify: false, ..METHOD },
    ];
    let mut keys = BTreeSet::from([own()]);
    keys.extend(subjects.map(|subject| key(subject, machine.clone(), facts.clone(), METHOD)));
    keys.extend(machines.map(|machine| key(subject.clone(), machine, facts.clone(), METHOD)));
    keys.extend(kernels.map(|facts| key(subject.clone(), machine.clone(), facts, METHOD)));
    keys.extend(methods.map(|method| key(subject.clone(), machine.clone(), facts.clone(), method)));
    assert_eq!(keys.len(), 1 + 7 + 3 + 2 + 4);
}

#[test]
fn a_table_holds_every_number_of_the_rows() {
    let rows: Vec<Row> = (0..4).map(row).collect();
    let mut text = Vec::new();
    csv(&rows, &mut text).unwrap();
    let mut reader = ::csv::Reader::from_reader(&text[..]);
    let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let records: Vec<::csv::StringRecord> = reader.records().map(|record| record.unwrap()).collect();
    assert_eq!(records.len(), rows.len());
    for (record, row) in records.iter().zip(&rows) {
        let cell = |name: &str| record.get(columns.iter().position(|column| column == name).unwrap()).unwrap();
        assert_eq!((cell("key"), cell("kernel.options")), (row.key.as_str(), row.kernel.options.as_str()));
        assert_eq!(cell("subject.extents.ni"), "9");
        match &row.outcome {
            Outcome::Failed { reason } => {
                assert_eq!((cell("outcome.reason"), cell("outcome.median_us")), (reason.as_str(), ""));
            }
            Outcome::Measured(measured) => {
                assert_eq!(cell("outcome.median_us").parse(), Ok(measured.statistics.median_us));
                let times: Vec<f64> = cell("outcome.times_us").split(' ').map(|time| time.parse().unwrap()).collect();
                assert_eq!(times, measured.times_us);
            }
        }
    }
}

#[test]
fn sets_are_as_many_as_the_cache_asks_for() {
    let rotation = Rotation { least: 3, bytes: 1000, room: 5000 };
    for (bytes, sets) in [(1000, 3), (300, 4), (10, 100), (0, 512), (1, 512), (1700, 2), (5001, 1)] {
        assert_eq!(rotation.sets(bytes), sets, "{bytes} bytes");
    }
    assert_eq!(Rotation::SAME.sets(12), 1);
}

#[test]
fn a_sweep_measures_what_is_missing() {
    let platform = emulator();
    let case = case(&platform, METHOD);
    let (subject, machine) = (subject(&case), platform.facts());
    let sweep = Sweep { platform: &platform, machine: &machine, case: &case, subject: &subject, method: METHOD };
    let mut choices: Vec<Choices> = variants().filter(|own| own.is_plain() && own.storage != "compressed").collect();
    choices.push(Choices { access: "warp".into(), ..Choices::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let run = |choices: &[Choices]| -> Swept {
        let steps = std::sync::atomic::AtomicUsize::new(0);
        let count = |more: usize| {
            _ = steps.fetch_add(more, std::sync::atomic::Ordering::Relaxed);
        };
        let swept = sweep.run(choices, &mut Some(Log::open(&path).unwrap()), &count).unwrap();
        assert_eq!(steps.into_inner(), choices.len() * super::sweep::STEPS);
        swept
    };
    let first = run(&choices[..3]);
    assert_eq!((first.rows.len(), first.found, first.refused.len()), (3, 0, 0));
    let all = run(&choices);
    assert_eq!((all.rows.len(), all.found), (choices.len() - 1, 3));
    assert_eq!(all.refused.values().sum::<usize>(), 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), choices.len() - 1);
    assert!(first.rows.iter().all(|row| all.rows.contains(row)));
    let medians: Vec<f64> = all.fastest().iter().map(|row| row.measured().unwrap().statistics.median_us).collect();
    assert!(medians.len() == all.rows.len() && medians.is_sorted());
    for row in &all.rows {
        let measured = row.measured().unwrap();
        assert_eq!((measured.result.as_str(), measured.times_us.len(), measured.sets), ("equal", 3, 2));
        // a is read and b written; w, on (k), is small, but the copy reads it.
        assert_eq!(row.kernel.compulsory_bytes, 16);
        let limit = measured.limit.as_ref().unwrap();
        assert_eq!((limit.reads, limit.writes, limit.bytes), (2, 1, 8 * (2 * 9 * 5 * 3 + 3)));
        let has_tables = row.kernel.choices.as_ref().unwrap().storage == "uncompressed";
        assert_eq!(row.kernel.least_bytes > 16.0, has_tables);
    }
}

#[test]
fn a_kernel_that_is_wrong_has_no_times() {
    let platform = emulator();
    let case = case(&platform, METHOD);
    let (subject, machine) = (subject(&case), platform.facts());
    // One after the other on the same fields: a wrong one comes behind a right one, and must not find its results there.
    let mut stages = Stages::default();
    let mut outcome = |from: &str, to: &str| {
        let mut candidate = Candidate::new(&case, &Choices::default()).unwrap();
        let kernel = candidate.kernel.as_mut().unwrap();
        assert_eq!(kernel.text.matches(from).count(), 1, "{}", kernel.text);
        kernel.text = kernel.text.replace(from, to);
        let mut row = Row::new(&subject, &machine, candidate.facts.clone(), METHOD);
        candidate.compile(&platform)?;
        candidate.measure(&platform, &case, &mut stages, &mut row)?;
        Ok(row.outcome)
    };
    for (to, reason) in [
        ("if (i != 3 || j != 2 || k != 1) b[c] =", "`b` differs in 1 cells, first at i=3, j=2, k=1: "),
        ("if (i == 3 && j == 2 && k == 1) *(double*)&a[c] = 0; b[c] =", "`a`: an input was overwritten"),
        ("b[-1] = 0; b[c] =", "padding was overwritten"),
        ("if (k < 0) b[c] =", "`b` differs in 105 cells"),
    ] {
        for _ in 0..2 {
            let right = outcome("b[c] =", "b[c] =").unwrap();
            assert!(matches!(&right, Outcome::Measured(measured) if measured.result == "equal"), "{right:?}");
        }
        let wrong = outcome("b[c] =", to).unwrap();
        assert!(matches!(&wrong, Outcome::Failed { reason: own } if own.contains(reason)), "{to}: {wrong:?}");
    }
    let broken: Result<Outcome> = outcome("b[c] =", "b[c] = nothing +");
    assert_eq!(broken.unwrap_err().fault, Fault::Check);
}

#[test]
fn the_copy_needs_few_registers_and_sixteen_bytes_move_at_once() {
    let Ok(nvrtc) = nvrtc::find() else { return println!("skipped: no NVRTC") };
    let data = crate::Data::F64(vec![0.0; 1 << 10]);
    let streams = Streams { reads: vec![&data; 3], writes: vec![&data; 2] };
    for per_thread in [1, 4] {
        let text = streams.text(Some(per_thread)).unwrap();
        let compiled = nvrtc.compile(&text, "copy.cu", "sm_90", Kind::Cubin).unwrap();
        let [resources] = &compiled.resources[..] else { panic!("one kernel") };
        assert_eq!((resources.spill_stores, resources.stack), (0, 0));
        assert!(resources.registers <= 64, "{resources:?}");
        let ptx = nvrtc.compile(&text, "copy.cu", "sm_90", Kind::Ptx).unwrap().image;
        let ptx = String::from_utf8_lossy(&ptx);
        let count = |start: &str| ptx.lines().filter(|line| line.contains(start)).count();
        assert_eq!(count("ld.global"), 3 * per_thread, "{ptx}");
        assert_eq!((count("v4"), count("st.global.v4")), (5 * per_thread, 2 * per_thread), "{ptx}");
    }
    let ptx = nvrtc.compile(&crate::same::text().unwrap(), "same.cu", "sm_90", Kind::Ptx).unwrap().image;
    let ptx = String::from_utf8_lossy(&ptx);
    // The loop may be unrolled.
    let wide = ptx.lines().filter(|line| line.contains("ld.global") && line.contains("v4")).count();
    assert!(wide >= 2 && wide % 2 == 0, "{ptx}");
}
