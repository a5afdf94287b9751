//! Some hundred texts that mean harm, each taken as far as kernels: none may take the compiler down, point outside of itself, or
//! become code by its comments.

use rayon::prelude::*;
use std::process::Command;
use stencilc_testing::attack::texts::{Case, originals};
use stencilc_testing::attack::verdict::{Outcome, attack};

/// How many texts there are.
const TEXTS: u64 = 400;

/// So many failures are shown.
const SHOWN: usize = 20;

/// Names a number of texts, and the seed of the first.
const VARIABLE: &str = "STENCILC_ATTACKS";

/// Tells this test, in a process of its own, which seeds are its own: the first, and one past the last.
const CHILD: &str = "STENCILC_ATTACKS_OWN";

/// Texts of one process.
const TOGETHER: u64 = 50;

/// Attacks with one text after the other, and says on standard output what becomes of each.
fn work(first: u64, end: u64) {
    let originals = originals();
    for seed in first..end {
        println!("\nattack {seed}");
        match attack(&Case::new(&originals, seed)) {
            Ok(Outcome::Refused) => println!("refused"),
            Ok(Outcome::Made(_)) => println!("made"),
            Err(why) => println!("failed {}", why.escape_debug()),
        }
    }
}

/// What became of the texts of some seeds: how many were refused, of how many kernels were made, and what failed. A process that a
/// text takes down says which it was; the next goes on behind it.
fn outcomes(mut first: u64, end: u64) -> (u64, u64, Vec<String>) {
    let (mut refused, mut made, mut failed) = (0, 0, Vec::new());
    while first < end {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "attacks::texts::no_text_does_harm", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{first},{end}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let mut last = None;
        for line in said.lines() {
            match (line, line.split_once(' ')) {
                ("refused", _) => refused += 1,
                ("made", _) => made += 1,
                (_, Some(("attack", seed))) => last = seed.parse::<u64>().ok(),
                (_, Some(("failed", why))) => failed.push(format!("seed {}: {why}", last.unwrap_or(first))),
                _ => {}
            }
        }
        if output.status.success() {
            break;
        }
        let seed = last.expect("a process says what it begins with");
        let told = String::from_utf8_lossy(&output.stderr);
        let told = told.lines().find(|line| line.contains("overflowed")).unwrap_or("its process ended");
        failed.push(format!("seed {seed}: {told} ({})", output.status));
        first = seed + 1;
    }
    (refused, made, failed)
}

#[test]
fn no_text_does_harm() {
    let numbers = |name: &str| -> Vec<u64> {
        let given = std::env::var(name).unwrap_or_default();
        given.split(',').filter_map(|number| number.trim().parse().ok()).collect()
    };
    if let [first, end] = numbers(CHILD)[..] {
        return work(first, end);
    }
    let given = numbers(VARIABLE);
    let (texts, first) = (given.first().copied().unwrap_or(TEXTS), given.get(1).copied().unwrap_or(0));
    let starts: Vec<u64> = (first..first + texts).step_by(TOGETHER as usize).collect();
    let one = |&start: &u64| outcomes(start, (start + TOGETHER).min(first + texts));
    let all: Vec<_> = starts.par_iter().map(one).collect();
    let refused: u64 = all.iter().map(|(refused, ..)| refused).sum();
    let made: u64 = all.iter().map(|(_, made, _)| made).sum();
    let failed: Vec<String> = all.into_iter().flat_map(|(.., failed)| failed).collect();
    println!("{refused} of {texts} refused, {made} made, {} failed", failed.len());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("attacks");
    let originals = originals();
    if !failed.is_empty() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("failed.txt"), failed.join("\n")).unwrap();
    }
    for seed in failed.iter().filter_map(|told| told.strip_prefix("seed ")?.split(':').next()?.parse().ok()) {
        std::fs::write(folder.join(format!("{seed}.stn")), Case::new(&originals, seed).text).unwrap();
    }
    assert!(
        failed.is_empty(),
        "{} failed; their texts are in {}, and {VARIABLE}=1,SEED repeats one:\n{}",
        failed.len(),
        folder.display(),
        failed[..failed.len().min(SHOWN)].join("\n")
    );
    // Enough of both, or the attack shows nothing.
    assert!(texts < TEXTS || (refused > texts / 8 && made > texts / 4), "{refused} refused, {made} made");
}
