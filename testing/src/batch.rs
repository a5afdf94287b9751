//! Many cases after each other, by one process: what a worker of `random-programs` does.

use crate::case::{Case, Failure, Outcome, Ready};
use crate::device::{Compared, Device};
use crate::shrink::shrink;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use std::path::Path;
use std::time::{Duration, Instant};
use stencilc_runtime::{Error, Result};

/// The longest that a failing program is made smaller.
const SHRINKING: Duration = Duration::from_secs(60);

/// What became of many cases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Programs that were written.
    pub programs: u64,
    /// Programs on which interpreter and evaluator agree.
    pub agreed: u64,
    /// Kernels that equal the interpreter.
    pub kernels: u64,
    /// Values of outputs that were compared between kernels and the interpreter.
    pub cells: u64,
    /// Of the interpreter's values of outputs, how many are finite numbers, in hundredths, summed over the programs.
    pub finite: u64,
    /// Programs of which both say that no cell can be computed.
    pub nothing: u64,
    /// Programs for which the choices make no sense.
    pub refused: u64,
    /// Programs that the checker rejected.
    pub rejected: u64,
    /// Programs that failed, those that were rejected among them.
    pub failures: u64,
    /// Seconds of all workers together: writing programs, interpreter and evaluator, device.
    pub seconds: [f64; 3],
}

impl AddAssign<&Tally> for Tally {
    fn add_assign(&mut self, other: &Tally) {
        let Tally { programs, agreed, kernels, cells, finite, nothing, refused, rejected, failures, seconds } = other;
        self.programs += programs;
        self.agreed += agreed;
        self.kernels += kernels;
        self.cells += cells;
        self.finite += finite;
        self.nothing += nothing;
        self.refused += refused;
        self.rejected += rejected;
        self.failures += failures;
        for (own, more) in self.seconds.iter_mut().zip(seconds) {
            *own += more;
        }
    }
}

/// Computes the cases of some seeds in every way. What fails is made small and written to a folder.
///
/// # Errors
/// The device itself fails, or the folder cannot be written.
pub fn run(seeds: std::ops::Range<u64>, device: &Device, failures: &Path) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut ready: Vec<Ready> = Vec::new();
    let mut failed: Vec<(Case, Failure)> = Vec::new();
    for seed in seeds {
        let start = Instant::now();
        let case = Case::new(seed);
        tally.programs += 1;
        tally.seconds[0] += start.elapsed().as_secs_f64();
        let start = Instant::now();
        match case.clone().prepare() {
            Outcome::Ready(own) => {
                tally.agreed += 1;
                tally.finite += finite(&own);
                ready.push(*own);
            }
            Outcome::Nothing => tally.nothing += 1,
            Outcome::Refused(_) => tally.refused += 1,
            Outcome::Failed(failure) => failed.push((case, failure)),
        }
        tally.seconds[1] += start.elapsed().as_secs_f64();
    }
    let start = Instant::now();
    let compared = device.compare(&ready)?;
    tally.seconds[2] += start.elapsed().as_secs_f64();
    for (compared, ready) in compared.into_iter().zip(ready) {
        match compared {
            Compared::Equal(cells) => {
                tally.kernels += u64::from(!matches!(device, Device::None));
                tally.cells += cells as u64;
            }
            Compared::Failed(failure) => failed.push((ready.case, failure)),
        }
    }
    for (case, failure) in failed {
        tally.failures += 1;
        tally.rejected += u64::from(matches!(failure, Failure::Rejected(_)));
        let seed = case.seed;
        let program = Case::program(seed);
        write(failures, &format!("seed{seed}"), &case, &failure)?;
        let (small, failure) = shrink(case, program, failure, device, Instant::now() + SHRINKING)?;
        write(failures, &format!("seed{seed}_small"), &small, &failure)?;
    }
    Ok(tally)
}

fn finite(ready: &Ready) -> u64 {
    let all = || ready.expected.outputs.iter().flatten();
    let count: usize = all().map(|data| data.len()).sum();
    let finite: usize = all().map(|data| (0..data.len()).filter(|&at| data.get(at).is_finite()).count()).sum();
    (100 * finite / count.max(1)) as u64
}

/// Writes a failing program, headed by what failed and the command that shows it again.
///
/// # Errors
/// The folder cannot be written.
pub fn write(folder: &Path, name: &str, case: &Case, failure: &Failure) -> Result<()> {
    let file = folder.join(format!("{name}.stn"));
    let mut text = format!("// {}\n", case.command(&format!("{name}.stn")));
    for line in failure.to_string().lines() {
        text += &format!("// {line}\n");
    }
    text += &case.text;
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text));
    written.map_err(|error| Error::input(format!("{} cannot be written: {error}", file.display())))
}
