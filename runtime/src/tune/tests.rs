//! Tests of the search, on times that were measured on a GPU; of the database; and of both together, on the emulator.

use super::database::{Database, EMULATOR, Entry, Hit, Wanted};
use super::kernels::{are_beside, kind_of, kinds};
use super::search::{Found, Space, Trial, Tried, search};
use super::*;
use crate::array::Data;
use crate::bench::Case;
use crate::bench::rows::{MachineFacts, Subject};
use crate::bench::statistics::Statistics;
use crate::bench::sweep::Sweep;
use crate::bench::tests::{METHOD, case, emulator, subject};
use crate::clock::Budget;
use crate::clock::tests::{Counted, Ticking};
use crate::error::Result;
use crate::measure::Asked;
use std::collections::BTreeMap;
use std::time::Duration;
use stencilc_compiler::analysis::cost::cost;
use stencilc_compiler::check;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::estimate::estimate;
use stencilc_compiler::plan::{Choices, plan, prepare};
use stencilc_compiler::source::Source;

/// Every kernel of regular storage with the thesis's blocks, eight stencils on two grids each: microseconds on an NVIDIA
/// H200, driver 580, NVRTC 13.0, medians of 20. A time that is missing was not measured. `stencilc bench STENCIL --storage
/// regular --grid GRID --blocks thesis --slices 2,4,8 --tiles 2x1,2x2,2x4,4x2,4x4,1x4` measures them.
const SWEEPS: &str = include_str!("sweeps.csv");

/// One stencil on one grid.
struct Recorded {
    name: String,
    stencil: Stencil,
    grid: Grid,
    kernels: Vec<Choices>,
    times: Vec<f64>,
}

fn recorded() -> Vec<Recorded> {
    let mut reader = ::csv::Reader::from_reader(SWEEPS.as_bytes());
    let header = reader.headers().unwrap().clone();
    let numbers = |text: &str| -> Vec<u32> { text.split('x').map(|number| number.parse().unwrap()).collect() };
    let mut all: BTreeMap<String, Recorded> = BTreeMap::new();
    for line in reader.records().map(|line| line.unwrap()) {
        let (stencil, name) = (&line[0], format!("{} {}", &line[0], &line[1]));
        let recorded = all.entry(name.clone()).or_insert_with(|| {
            let path = format!("{}/../stencils/{stencil}.stn", env!("CARGO_MANIFEST_DIR"));
            let lowered = check(&Source::new(stencil, std::fs::read_to_string(path).unwrap()));
            let stencil = prepare(&lowered.stencils[0], Precision::F64, true);
            let extents: Vec<usize> = line[1].split('x').map(|extent| extent.parse().unwrap()).collect();
            let grid = Grid::rows(extents[0], extents[1], extents[2]);
            Recorded { name, stencil, grid, kernels: Vec::new(), times: Vec::new() }
        });
        for (block, time) in header.iter().zip(&line).skip(5).filter(|(_, time)| !time.is_empty()) {
            let usual = Choices { access: line[2].to_owned(), ..Choices::default() };
            let mut choices = Choices { block: numbers(block).try_into().unwrap(), ..usual };
            for (knob, setting) in [("slice", &line[3]), ("tile", &line[4])].into_iter().filter(|own| !own.1.is_empty())
            {
                choices = choices.with(knob, numbers(setting));
            }
            recorded.kernels.push(choices);
            recorded.times.push(time.parse().unwrap());
        }
    }
    all.into_values().collect()
}

/// What kernels may take by the model.
fn estimates(recorded: &Recorded, kernels: &[&Choices]) -> Vec<Option<f64>> {
    let Recorded { stencil, grid, .. } = recorded;
    let memory = cost(stencil, Precision::F64).bytes as f64;
    let bytes = |own: &&Choices| {
        let estimate = estimate(&plan(stencil, own, None).ok()?, grid.nk, memory, 0.0);
        Some(estimate.bytes(grid.ni * grid.nj * grid.nk, Some(132 * 2048)))
    };
    kernels.iter().map(bytes).collect()
}

/// Times from the record, of which each costs a second.
struct Replay<'a> {
    recorded: &'a Recorded,
    clock: &'a Counted,
}

impl Trial for Replay<'_> {
    fn times(&mut self, batch: &[usize], enough: f64, _: Option<Budget>) -> Result<Vec<Tried>> {
        self.clock.advance(batch.len());
        // What is slow is told roughly.
        let rough = |time: f64| if time > enough { time * 1.2 } else { time };
        Ok(batch.iter().map(|&kernel| Tried::Took(rough(self.recorded.times[kernel]))).collect())
    }

    fn exact(&mut self, kernel: usize) -> Result<std::result::Result<Statistics, String>> {
        Ok(Ok(Statistics::of(&[self.recorded.times[kernel]]).unwrap()))
    }
}

/// What is found among the kernels, of which the first is the usual one, if so many others may be measured; and how many were.
fn replayed(recorded: &Recorded, most: u64) -> (Found, usize) {
    let (kernels, clock) = (&recorded.kernels, Counted::default());
    let names: Vec<String> = kernels.iter().map(kind_of).collect();
    let (kinds, kind_of) = kinds(kernels, &names, |leaders| estimates(recorded, leaders));
    let beside = &|one: usize, other: usize| are_beside(&kernels[one], &kernels[other]);
    let budget = Budget::new(&clock, Duration::from_secs(most));
    let space = Space { usual: 0, is_asked: &|_| true, kinds, kind_of, beside, hopeless: 1.2, together: 16, budget };
    let found = search(space, &mut Replay { recorded, clock: &clock }).unwrap();
    (found, clock.seconds())
}

#[test]
fn a_search_finds_what_a_sweep_finds() {
    let (mut measured, mut all) = (0, 0);
    let recorded = recorded();
    assert_eq!(recorded.len(), 16);
    for recorded in &recorded {
        let (found, measured_here) = replayed(recorded, u64::MAX);
        let (winner, time) = (found.fastest[0].0, found.fastest[0].1.median_us);
        let best = recorded.times.iter().copied().fold(f64::INFINITY, f64::min);
        let Recorded { name, kernels, .. } = recorded;
        println!("{name}: {:.3}, {} of {}, {} hopeless", time / best, found.tried, kernels.len(), found.hopeless);
        assert!(time <= 1.03 * best, "{name}: {} {time} instead of {best}", kernels[winner].words());
        assert!(found.is_complete() && found.tried == measured_here && found.times.is_sorted_by(|a, b| a.1 <= b.1));
        // Whatever was found, it is no slower than what one has without.
        assert!(time <= recorded.times[0] && found.fastest.iter().any(|(kernel, _)| *kernel == 0));
        measured += found.tried;
        all += kernels.len();
    }
    // It is worth it only if it measures far fewer.
    assert!(measured * 4 < all, "{measured} of {all}");
}

/// Layouts that are slower take no time from the one that is not.
#[test]
fn layouts_that_lose_come_last() {
    for mut recorded in recorded() {
        let best = recorded.times.iter().copied().fold(f64::INFINITY, f64::min);
        for (layout, slower) in [("row-major", 1.3), ("z-curve", 1.5), ("hilbert", 1.4)] {
            let of_rows = |(own, _): &(&Choices, &f64)| own.storage == "regular" && own.access != "tile";
            let slow = recorded.kernels.iter().zip(&recorded.times).filter(of_rows).map(|(own, time)| {
                (Choices { storage: "compressed".to_owned(), layout: layout.to_owned(), ..own.clone() }, time * slower)
            });
            let (kernels, times): (Vec<Choices>, Vec<f64>) = slow.unzip();
            // In front, where they would come first if nothing said otherwise.
            recorded.kernels.splice(0..0, kernels);
            recorded.times.splice(0..0, times);
        }
        let (found, _) = replayed(&recorded, 130);
        let Recorded { name, kernels, .. } = &recorded;
        println!("{name}: {} of {}, {} hopeless", found.tried, kernels.len(), found.hopeless);
        assert!(found.times[0].1 <= 1.03 * best, "{name}: {}", kernels[found.times[0].0].words());
    }
}

/// The half of the kernels that the model puts in front holds one that is nearly the fastest, and faster ones than the other
/// half. It is no more than that: what spills to memory when a tile is large, say, it does not know.
#[test]
fn what_the_model_puts_in_front_is_worth_trying_first() {
    let (mut before, mut after) = (0.0, 0.0);
    for recorded in recorded() {
        let best = recorded.times.iter().copied().fold(f64::INFINITY, f64::min);
        let kernels: Vec<&Choices> = recorded.kernels.iter().collect();
        let estimates = estimates(&recorded, &kernels);
        let pairs = estimates.iter().zip(&recorded.times).map(|(own, time)| (own.unwrap(), time / best));
        let mut pairs: Vec<(f64, f64)> = pairs.collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, second) = pairs.split_at(pairs.len() / 2);
        let fastest = |half: &[(f64, f64)]| half.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        println!("{}: {:.2} before {:.2}", recorded.name, fastest(first), fastest(second));
        assert!(fastest(first) < 1.1, "{}", recorded.name);
        before += fastest(first) / 16.0;
        after += fastest(second) / 16.0;
    }
    assert!(before * 1.05 < after, "{before} {after}");
}

#[test]
fn a_search_ends_in_time_with_what_it_has() {
    let mut recorded = recorded().remove(0);
    for most in [0, 1, 20, 40] {
        let (found, _) = replayed(&recorded, most as u64);
        assert!(!found.is_complete() && (1..most + 16 + 2).contains(&found.tried), "{most}: {}", found.tried);
        assert!(!found.fastest.is_empty() && found.left > 0);
    }
    // One that is alone, and of no usual block, is found too.
    let (kernel, time) = (recorded.kernels.remove(3), recorded.times.remove(3));
    (recorded.kernels, recorded.times) = (vec![kernel], vec![time]);
    let (found, _) = replayed(&recorded, 100);
    assert_eq!((found.times.clone(), found.tried, found.is_complete()), (vec![(0, time)], 1, true));
}

/// What is tuned among kernels, of which the second is the usual one; `change` makes another case of it.
fn tuned_on(time: Duration, among: &[Choices], change: impl FnOnce(&mut Case)) -> (Tuned, Subject, MachineFacts) {
    let platform = emulator();
    let mut case = case(&platform, METHOD);
    change(&mut case);
    let (subject, machine) = (subject(&case), platform.facts());
    let clock = Ticking::default();
    let budget = Budget::new(&clock, time);
    let sweep = Sweep { platform: &platform, machine: &machine, case: &case, subject: &subject, method: METHOD };
    let tuner = Tuner { sweep, budget };
    let tuned = tuner.run(among, Asked { usual: 1, is_asked: &|_| true }, &|_| ()).unwrap();
    (tuned, subject, machine)
}

fn tuned(time: Duration, among: &[Choices]) -> (Tuned, Subject, MachineFacts) {
    tuned_on(time, among, |_| {})
}

/// Whatever differs from the interpreter is told, and never chosen.
#[test]
fn kernels_that_are_wrong_are_told() {
    let (Tuned { swept, found }, ..) = tuned_on(Duration::MAX, &some_kernels(), |case| {
        let expected = case.expected.as_mut().unwrap();
        for output in expected.outputs.iter_mut().flatten() {
            let Data::F64(numbers) = output else { panic!("{output:?}") };
            numbers.iter_mut().for_each(|number| *number += 1.0);
        }
    });
    assert!(found.fastest.is_empty() && swept.fastest().is_empty(), "{:?}", found.fastest);
    assert!(found.tried >= 4 && swept.failed().count() == found.tried, "{found:?}");
    for (_, reason) in swept.failed() {
        assert!(reason.contains("differs in"), "{reason}");
    }
}

fn some_kernels() -> Vec<Choices> {
    let kernel = |access: &str, storage: &str, block| Choices {
        access: access.to_owned(),
        storage: storage.to_owned(),
        block,
        ..Choices::default()
    };
    let mut kernels = vec![kernel("warp", "regular", [64, 2, 1])];
    for block in [[32, 4, 1], [64, 2, 1], [64, 1, 2], [16, 8, 1]] {
        kernels.extend([kernel("idxvar", "regular", block), kernel("zloop", "compressed", block)]);
    }
    kernels
}

#[test]
fn kernels_are_tuned_and_compared() {
    let among = some_kernels();
    let (tuned, subject, machine) = tuned(Duration::MAX, &among);
    let Tuned { swept, found } = &tuned;
    // A strategy that makes no sense for its storage is refused, all else measured.
    assert_eq!((swept.refused.len(), swept.failed().count()), (1, 0), "{swept:?}");
    assert!(found.is_complete() && found.tried >= 4 && found.times.len() == found.tried);
    let winner = swept.fastest()[0];
    let measured = winner.measured().unwrap();
    assert_eq!((measured.result.as_str(), measured.times_us.len()), ("equal", METHOD.runs));
    let entry = Entry::of_row(&subject, &machine, winner, among.len(), found.tried).unwrap();
    assert!(among.contains(&entry.choices) && entry.options == entry.choices.words());
}

#[test]
fn without_time_the_usual_kernel_is_measured() {
    let kernels = some_kernels();
    let (tuned, ..) = tuned(Duration::ZERO, &kernels);
    assert_eq!((tuned.found.tried, tuned.swept.rows.len()), (1, 1));
    assert!(!tuned.found.is_complete() && tuned.swept.fastest()[0].kernel.options == kernels[1].words());
}

#[test]
fn the_search_ends_with_its_budget() {
    // Who looks at the clock finds a second gone: each kernel costs one to compile.
    let among = some_kernels();
    let (tuned, ..) = tuned(Duration::from_secs(4), &among);
    assert!(!tuned.found.is_complete() && tuned.found.tried < among.len(), "{:?}", tuned.found);
}

fn entry(stencil: &str, extents: Grid, neighbours: Option<&str>, block: u32) -> Entry {
    let choices = Choices { block: [block, 1, 1], ..Choices::default() };
    Entry {
        stencil: stencil.to_owned(),
        precision: Precision::F64,
        grid: extents.to_string(),
        extents,
        neighbours: neighbours.map(str::to_owned),
        options: choices.words(),
        choices,
        plan: None,
        median_us: 70.1,
        of_limit: Some(0.9),
        among: 420,
        tried: 80,
        date: "2026-11-22T00:00:00Z".to_owned(),
        driver: Some("13.0".to_owned()),
        compiler: None,
        stencilc: "0.1.0".to_owned(),
    }
}

const SOURCE: &str = "0123456789abcdef0123456789abcdef";

fn wanted(extents: Grid) -> Wanted<'static> {
    Wanted { source: SOURCE, stencil: "mean", precision: Precision::F64, extents, neighbours: None }
}

#[test]
fn what_is_kept_is_found_for_the_same_and_for_similar_grids() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().join("not/there/yet"));
    let big = Grid::rows(512, 512, 64);
    assert_eq!(database.find("NVIDIA H200", &wanted(big)).unwrap(), None);
    assert_eq!(database.find_for("sm_90", &wanted(big)).unwrap(), []);
    let keep = |gpu: &str, entry: Entry| database.keep(gpu, Some("sm_90"), SOURCE, entry).unwrap();
    keep("NVIDIA H200", entry("mean", big, None, 32));
    keep("NVIDIA H200", entry("mean", Grid::rows(256, 300, 64), None, 64));
    // The same again takes the place of what was there.
    let path = keep("NVIDIA H200", entry("mean", big, None, 128));
    assert_eq!(std::fs::read_to_string(&path).unwrap().matches("\"stencil\"").count(), 2);
    let find = |extents: Grid| {
        let hit = database.find("NVIDIA H200", &wanted(extents)).unwrap();
        hit.map(|Hit { entry, gpu }| (entry.choices.block[0], gpu))
    };
    let is = |block: u32| Some((block, "NVIDIA H200".to_owned()));
    assert_eq!(find(big), is(128));
    assert_eq!(find(Grid::rows(500, 400, 80)), is(128));
    assert_eq!(find(Grid::rows(256, 256, 64)), is(64));
    assert_eq!(find(Grid::rows(128, 200, 64)), is(64));
    assert_eq!(find(Grid::rows(100, 300, 64)), None);
    assert_eq!(find(Grid::rows(512, 512, 1)), None);
    // Nothing of another precision, stencil, source, GPU, or kind of grid.
    let none = |gpu: &str, wanted: Wanted| assert_eq!(database.find(gpu, &wanted).unwrap(), None);
    none("NVIDIA H100", wanted(big));
    none("NVIDIA H200", Wanted { precision: Precision::F32, ..wanted(big) });
    none("NVIDIA H200", Wanted { stencil: "other", ..wanted(big) });
    none("NVIDIA H200", Wanted { source: "ffff456789abcdef0123456789abcdef", ..wanted(big) });
    none("NVIDIA H200", Wanted { neighbours: Some("a"), ..wanted(big) });
    // Of a grid without rows only the very same will do.
    let cells = Grid::cells(1000, 64);
    keep("NVIDIA H200", entry("mean", cells, Some("a"), 256));
    let of_cells = |neighbours| Wanted { neighbours: Some(neighbours), ..wanted(cells) };
    none("NVIDIA H200", of_cells("b"));
    assert_eq!(database.find("NVIDIA H200", &of_cells("a")).unwrap().unwrap().entry.choices.block[0], 256);
    // For an architecture there may be several GPUs.
    keep("NVIDIA H100", entry("mean", big, None, 512));
    let hits = |arch: &str| {
        let hits = database.find_for(arch, &wanted(big)).unwrap();
        hits.into_iter().map(|hit| (hit.gpu, hit.entry.choices.block[0])).collect::<Vec<_>>()
    };
    assert_eq!(hits("sm_90"), [("NVIDIA H100".to_owned(), 512), ("NVIDIA H200".to_owned(), 128)]);
    assert_eq!(hits("sm_80"), []);
}

#[test]
fn what_is_damaged_is_told_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().to_owned());
    let grid = Grid::rows(5, 4, 3);
    let path = database.keep(EMULATOR, None, SOURCE, entry("mean", grid, None, 32)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let other = text.replace("stencilc tuned 1", "stencilc tuned 0");
    for wrong in [&text[..text.len() / 2], "", "[]", &text.replace("idxvar", "\u{0}"), &other] {
        std::fs::write(&path, wrong).unwrap();
        let found = database.find(EMULATOR, &wanted(grid));
        let kept = database.keep(EMULATOR, None, SOURCE, entry("mean", grid, None, 64));
        for error in [found.unwrap_err(), kept.unwrap_err()] {
            assert!(error.message.contains("mean-0123456789abcdef.json") && error.help.is_some(), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), wrong);
    }
}

#[test]
fn what_else_is_in_the_folder_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().to_owned());
    let grid = Grid::rows(5, 4, 3);
    let damaged = database.keep("A damaged GPU", Some("sm_90"), SOURCE, entry("mean", grid, None, 32)).unwrap();
    std::fs::write(damaged, "{").unwrap();
    std::fs::write(folder.path().join("README"), "Tuned for us.").unwrap();
    assert!(database.find_for("sm_90", &wanted(grid)).unwrap_err().message.contains("is damaged"));
    database.keep("NVIDIA H200", Some("sm_90"), SOURCE, entry("mean", grid, None, 64)).unwrap();
    let hits = database.find_for("sm_90", &wanted(grid)).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.gpu.as_str()).collect::<Vec<_>>(), ["NVIDIA H200"]);
}

#[test]
fn two_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().to_owned());
    let (writers, each) = (8, 12);
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let database = &database;
            scope.spawn(move || {
                for number in 1..=each {
                    let extents = Grid::rows(4096 * writer + 4096, 8, number);
                    database.keep(EMULATOR, None, SOURCE, entry("mean", extents, None, 32)).unwrap();
                    // Readers find whole files, whatever others do.
                    assert!(database.find(EMULATOR, &wanted(extents)).unwrap().is_some());
                }
            });
        }
    });
    for (writer, number) in (0..writers).flat_map(|writer| (1..=each).map(move |number| (writer, number))) {
        let extents = Grid::rows(4096 * writer + 4096, 8, number);
        assert_eq!(database.find(EMULATOR, &wanted(extents)).unwrap().unwrap().entry.extents, extents);
    }
}
