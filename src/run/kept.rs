//! Checkpoints of a run: where it goes on from, and what is kept on the way.

use super::Args;
use super::together::Together;
use crate::output;
use std::cell::Cell;
use std::time::{Duration, Instant};
use stencilc_runtime::checkpoint::{self, Checkpoint};
use stencilc_runtime::files::{Kind, Pattern};
use stencilc_runtime::job::Run;
use stencilc_runtime::rows::Part;
use stencilc_runtime::{Error, Result};

/// Without `--every`, a checkpoint is written so often, and at the end.
const CHECKPOINT: Duration = Duration::from_secs(60);

/// What `--checkpoint` names.
pub struct Kept {
    pattern: Option<Pattern>,
    every: Option<u64>,
    saved: Cell<Instant>,
}

impl Kept {
    /// Tells that it will be written.
    ///
    /// # Errors
    /// It cannot be written there.
    pub fn new(args: &Args) -> Result<Self> {
        let own = &args.of_program;
        if let Some(path) = &own.checkpoint {
            output::check_each("--checkpoint", path, "npz", Kind::Checkpoint)?;
        }
        let pattern = own.checkpoint.as_deref().map(Pattern::new);
        Ok(Self { pattern, every: own.every, saved: Cell::new(Instant::now()) })
    }

    /// Keeps what a program holds on its way, if it is time for that: with every output, or every minute, as the process that writes sees it.
    ///
    /// # Errors
    /// It cannot be written, or a kernel has failed.
    pub fn after(&self, run: &Run, others: &Together) -> Result<()> {
        let is_due = match (&self.pattern, self.every) {
            (None, _) => false,
            (_, Some(every)) => run.done().is_multiple_of(every),
            (_, None) => others.decided(self.saved.get().elapsed() > CHECKPOINT)?,
        };
        if !is_due {
            return Ok(());
        }
        self.saved.set(Instant::now());
        self.keep(run)
    }

    /// Keeps what a program holds.
    ///
    /// # Errors
    /// It cannot be written, or a kernel has failed.
    pub fn keep(&self, run: &Run) -> Result<()> {
        self.pattern.as_ref().map_or(Ok(()), |pattern| run.save(&pattern.at(run.done())))
    }
}

/// The checkpoint that a call goes on from, if there is one.
///
/// # Errors
/// It cannot be read, or something else is given that it has.
pub fn resumed(args: &Args, is_over_mesh: bool, others: &Together) -> Result<Option<Checkpoint>> {
    let Some(path) = &args.of_program.resume else { return Ok(None) };
    let ignored = match (args.inputs.first(), args.draw.as_deref()) {
        (Some(pair), _) => format!("--in {}=...", pair.name()),
        // Without names it draws what is missing, and that is nothing.
        (None, Some([name, ..])) => format!("--draw={name}"),
        (None, _) => {
            let part = others.ranks().map(|own| Part { number: own.rank(), parts: own.ranks() });
            let checkpoint = checkpoint::load_rows(path, part)?;
            return checkpoint.suits(is_over_mesh).map(|()| Some(checkpoint));
        }
    };
    Err(Error::call(format!("{ignored} would be ignored: --resume has all fields")).help("leave out one of the two"))
}
