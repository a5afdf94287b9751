//! Many cases after each other, by one process: what a worker of `random-programs` does.

use crate::case::{Case, Failure, Outcome, Ready};
use crate::device::{Compared, Device};
use crate::shrink::shrink;
use crate::time::generate::Kind;
use crate::{over, time};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Range};
use std::path::Path;
use std::time::{Duration, Instant};
use stencilc_runtime::{Error, Result};

/// The longest that a failing program is made smaller.
const SHRINKING: Duration = Duration::from_secs(60);

/// What random programs are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// Stencils on grids, each by one kernel.
    Stencils,
    /// Programs on grids, by kernels of every plan.
    Programs,
    /// Those of them whose planes are circles, as most plans want them.
    Circles,
    /// Stencils over meshes, by kernels of some strategy.
    Meshes,
    /// Programs over meshes, calls that share a kernel among them.
    MeshPrograms,
}

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

/// What became of a case that is compared by itself.
#[derive(Default)]
struct Came {
    agreed: bool,
    /// Kernels, or plans of a program, that equal the interpreter.
    kernels: usize,
    /// What is wrong, and the text of a small case that has it.
    failed: Option<(String, String)>,
}

/// Computes the cases of some seeds in every way. What fails is made small and written to a folder.
///
/// # Errors
/// The device itself fails, or the folder cannot be written.
pub fn run(subject: Subject, seeds: Range<u64>, device: &Device, failures: &Path) -> Result<Tally> {
    let one: fn(u64, &Device) -> Result<Came> = match subject {
        Subject::Stencils => return stencils(seeds, device, failures),
        Subject::Programs => |seed, device| program(&time::case::Case::new(seed, Kind::Any), device),
        Subject::Circles => |seed, device| program(&time::case::Case::new(seed, Kind::Circles), device),
        Subject::Meshes => mesh,
        Subject::MeshPrograms => mesh_program,
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let start = Instant::now();
        let came = one(seed, device)?;
        tally.programs += 1;
        tally.agreed += u64::from(came.agreed);
        tally.nothing += u64::from(!came.agreed && came.failed.is_none());
        tally.kernels += came.kernels as u64;
        tally.seconds[2] += start.elapsed().as_secs_f64();
        if let Some((message, text)) = came.failed {
            tally.failures += 1;
            put(failures, &format!("seed{seed}"), &message, &text)?;
        }
    }
    Ok(tally)
}

fn program(case: &time::case::Case, device: &Device) -> Result<Came> {
    let failure_of = |case: &time::case::Case| case.failure(device);
    Ok(match case.compute()? {
        time::case::Outcome::Nothing => Came::default(),
        time::case::Outcome::Equal { reference, .. } => match case.compare(&reference, device)? {
            Ok(plans) => Came { agreed: true, kernels: plans.len(), failed: None },
            Err(failure) => {
                let (small, failure) =
                    time::shrink::shrink(case.clone(), failure, Instant::now() + SHRINKING, &failure_of)?;
                Came { agreed: true, kernels: 0, failed: Some((failure.to_string(), small.text())) }
            }
        },
        time::case::Outcome::Failed(failure) => {
            let (small, failure) =
                time::shrink::shrink(case.clone(), failure, Instant::now() + SHRINKING, &failure_of)?;
            Came { failed: Some((failure.to_string(), small.text())), ..Came::default() }
        }
    })
}

fn mesh(seed: u64, device: &Device) -> Result<Came> {
    let case = over::case::Case::new(seed);
    let mut came = Came::default();
    for outcome in [case.compute()?, case.compute_by_kernels(device)?] {
        match outcome {
            over::case::Outcome::Equal if came.agreed => came.kernels = 1,
            over::case::Outcome::Equal => came.agreed = true,
            over::case::Outcome::Nothing if came.agreed => {}
            over::case::Outcome::Nothing => break,
            over::case::Outcome::Failed(message) => {
                came.failed = Some((message, case.text()));
                break;
            }
        }
    }
    Ok(came)
}

fn mesh_program(seed: u64, device: &Device) -> Result<Came> {
    let case = over::program::case::Case::new(seed);
    let small = |message: String, by: Option<&Device>| -> Result<Came> {
        let small = case.shrunk(by, Instant::now() + SHRINKING)?;
        let outcome = match by {
            Some(device) => small.compute_by_kernels(device)?.0,
            None => small.compute()?,
        };
        let message = if let over::case::Outcome::Failed(own) = outcome { own } else { message };
        Ok(Came { agreed: by.is_some(), kernels: 0, failed: Some((message, small.text())) })
    };
    match case.compute()? {
        over::case::Outcome::Equal => {}
        over::case::Outcome::Nothing => return Ok(Came::default()),
        over::case::Outcome::Failed(message) => return small(message, None),
    }
    Ok(match case.compute_by_kernels(device)?.0 {
        over::case::Outcome::Failed(message) => return small(message, Some(device)),
        outcome => Came { agreed: true, kernels: usize::from(outcome == over::case::Outcome::Equal), failed: None },
    })
}

/// Writes down the program over which a process ended.
///
/// # Errors
/// The folder cannot be written.
pub fn crashed(subject: Subject, seed: u64, failures: &Path) -> Result<()> {
    let (name, message) = (format!("seed{seed}_crash"), "the process that ran it ended");
    let text = match subject {
        Subject::Stencils => return write(failures, &name, &Case::new(seed), &Failure::Kernel(message.into())),
        Subject::Programs => time::case::Case::new(seed, Kind::Any).text(),
        Subject::Circles => time::case::Case::new(seed, Kind::Circles).text(),
        Subject::Meshes => over::case::Case::new(seed).text(),
        Subject::MeshPrograms => over::program::case::Case::new(seed).text(),
    };
    put(failures, &name, message, &text)
}

/// Stencils, many of whose kernels are compiled together.
fn stencils(seeds: Range<u64>, device: &Device, failures: &Path) -> Result<Tally> {
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
fn write(folder: &Path, name: &str, case: &Case, failure: &Failure) -> Result<()> {
    let message = format!("{}\n{failure}", case.command(&format!("{name}.stn")));
    put(folder, name, &message, &case.text)
}

/// Writes a text, headed by what is said of it.
fn put(folder: &Path, name: &str, message: &str, program: &str) -> Result<()> {
    let file = folder.join(format!("{name}.stn"));
    let mut text = String::new();
    for line in message.lines() {
        text += &format!("// {line}\n");
    }
    text += program;
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text));
    written.map_err(|error| Error::input(format!("{} cannot be written: {error}", file.display())))
}
