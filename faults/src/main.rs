//! Faults made by hand, and whether the tests catch them.
//!
//! A test suite that passes says little until it is known to fail. `catalogue.toml` holds faults of the kinds that
//! compilers really have, each a small change of one place. To build the project once a fault would take hours, so
//! [`tree`] makes one copy of it in which all of them sleep behind a number, as mutant schemata (R. H. Untch, A. J. Offutt,
//! M. J. Harrold, "Mutation analysis using mutant schemata", ISSTA 1993), and builds its tests once. [`suites`] then runs
//! these with one fault awake after the other until a test fails.
//!
//! ```text
//! cargo run -p stencilc-faults              all of them: a table on stdout, progress on stderr
//! cargo run -p stencilc-faults -- 7 12      these two again
//! ```

mod catalogue;
mod rewrite;
mod suites;
mod tree;

use catalogue::{Catalogue, Fault};
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use suites::{Outcome, Suite};

/// Anything that keeps the tool from going on.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Puts faults into a copy of the project, and tells which test catches each.
#[derive(Parser)]
struct Call {
    /// Numbers of faults; all of the catalogue unless some are given.
    faults: Vec<u32>,
    /// How many faults are tried at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Only these suites, such as `emulated`; all of them unless some are given.
    #[arg(long)]
    suite: Vec<String>,
    /// Takes the tests as they were built before, for a second run or on another machine.
    #[arg(long)]
    built: bool,
    /// Prints the table of what is known, and tries nothing.
    #[arg(long)]
    table: bool,
}

/// What became of a fault, with its change, so that an answer about another change is told from this one's.
#[derive(Clone, Serialize, Deserialize)]
struct Answer {
    change: (String, String),
    outcome: Outcome,
}

type Answers = BTreeMap<u32, Answer>;

fn main() -> Result<(), Failure> {
    let call = Call::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let catalogue = Catalogue::read(&root)?;
    if let Some(unknown) = call.faults.iter().find(|&&number| catalogue.find(number).is_none()) {
        return Err(format!("the catalogue has no fault {unknown}").into());
    }
    let work = root.join("target/faults");
    let file = work.join("answers.json");
    let known: Answers =
        std::fs::read(&file).map_or_else(|_| Ok(Answers::new()), |text| serde_json::from_slice(&text))?;
    let known = Mutex::new(known);
    if !call.table {
        let wanted = |fault: &&Fault| call.faults.is_empty() || call.faults.contains(&fault.number);
        let wanted: Vec<&Fault> = catalogue.faults.iter().filter(wanted).collect();
        try_all(&root, &work, &catalogue, &wanted, &call, &|fault, outcome| {
            let mut known = known.lock().map_err(|_| "another thread failed")?;
            known.insert(fault.number, Answer { change: change(fault), outcome });
            std::fs::write(&file, serde_json::to_vec_pretty(&*known)?)?;
            Ok(())
        })?;
    }
    print(&catalogue, &known.into_inner()?);
    Ok(())
}

fn change(fault: &Fault) -> (String, String) {
    (fault.find.clone(), fault.replace.clone())
}

fn try_all(
    root: &Path,
    work: &Path,
    catalogue: &Catalogue,
    wanted: &[&Fault],
    call: &Call,
    tell: &(dyn Fn(&Fault, Outcome) -> Result<(), Failure> + Sync),
) -> Result<(), Failure> {
    let list = work.join("suites.json");
    let mut suites: Vec<Suite> = if call.built {
        serde_json::from_slice(&std::fs::read(list)?)?
    } else {
        let built = tree::make(root, work, catalogue)?.build()?;
        std::fs::write(list, serde_json::to_vec_pretty(&built)?)?;
        built
    };
    suites.retain(|suite| call.suite.is_empty() || call.suite.contains(&suite.name));
    // One that fails by itself, as where something is missing on this machine, says nothing about faults.
    suites.retain_mut(|suite| match suite.time() {
        Ok(()) => {
            eprintln!("{}: passes in {:.1} s", suite.name, suite.seconds);
            true
        }
        Err(why) => {
            eprintln!("{why}: it is left out");
            false
        }
    });
    suites.sort_by(Suite::order);
    let try_one = |fault: &Fault, suites: &[Suite]| -> Result<(), Failure> {
        let outcome = suites::try_one(fault.number, suites, work)?;
        eprintln!("{}: {}: {outcome}", fault.number, fault.what);
        tell(fault, outcome)
    };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let one_after_the_other = || -> Result<(), Failure> {
            while let Some(fault) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                try_one(fault, &suites)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..call.jobs.max(1)).map(|_| scope.spawn(one_after_the_other)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread failed")?)
    })
}

/// The tables of `docs/trust.md`.
fn print(catalogue: &Catalogue, answers: &Answers) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    // A bar would end the cell.
    let cell = |text: &str| text.replace('|', "\\|");
    println!("| | what is wrong | where | caught by |\n|---|---|---|---|");
    for fault in &catalogue.faults {
        let answer = answers.get(&fault.number).filter(|answer| answer.change == change(fault));
        let outcome = answer.map_or("not tried".to_owned(), |answer| answer.outcome.to_string());
        *counts.entry(answer.map_or("not tried", |answer| answer.outcome.suite())).or_default() += 1;
        let note = fault.note.as_ref().map(|note| format!(". {note}")).unwrap_or_default();
        println!("| {} | {} | `{}` | {} |", fault.number, cell(&fault.what), fault.file, cell(&(outcome + &note)));
    }
    println!("\n| caught by | faults |\n|---|---|");
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(suite, count)| (std::cmp::Reverse(*count), *suite));
    for (suite, count) in &counts {
        println!("| {suite} | {count} |");
    }
    let of = |is: &dyn Fn(&str) -> bool| counts.iter().filter(|(suite, _)| is(suite)).map(|(_, n)| n).sum::<usize>();
    let missed = of(&|suite| [suites::NOTHING, "not tried"].contains(&suite));
    let texts = of(&suites::looks_at_texts);
    let all = catalogue.faults.len();
    println!("\nOf {all} faults {} are caught, {} by tests that compute.", all - missed, all - missed - texts);
}
