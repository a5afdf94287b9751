//! Checkpoints of a run: where it goes on from, and what is kept on the way.

use super::Args;
use crate::output;
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};
use stencilc_runtime::checkpoint::{self, About, Checkpoint};
use stencilc_runtime::driver::{Backend, Driver, Script};
use stencilc_runtime::files::{Kind, Pattern};
use stencilc_runtime::{Drawing, Error, Result};

/// Without `--every`, a checkpoint is written so often, and at the end.
const CHECKPOINT: Duration = Duration::from_secs(60);

/// What `--resume` and `--checkpoint` name.
pub struct Kept<'a> {
    args: &'a Args,
    resumed: Option<Checkpoint>,
    saved: RefCell<Instant>,
}

impl<'a> Kept<'a> {
    /// Reads the checkpoint that a call goes on from, if there is one.
    ///
    /// # Errors
    /// It cannot be read, something else is given that it has, or the next one cannot be written where it should be.
    pub fn new(args: &'a Args, is_over_mesh: bool) -> Result<Self> {
        let own = &args.of_program;
        if let Some(path) = &own.checkpoint {
            output::check_each("--checkpoint", path, "npz", Kind::Checkpoint)?;
        }
        let ignored = |what: String| {
            Err(Error::call(format!("{what} would be ignored: --resume has all fields"))
                .help("leave out one of the two"))
        };
        match (&own.resume, args.inputs.first(), args.draw.as_deref()) {
            (Some(_), Some(pair), _) => return ignored(format!("--in {}=...", pair.name())),
            // Without names it draws what is missing, and that is nothing.
            (Some(_), _, Some([name, ..])) => return ignored(format!("--draw={name}")),
            _ => {}
        }
        let resumed = own.resume.as_deref().map(checkpoint::load).transpose()?;
        if let Some(about) = resumed.as_ref().map(|own| &own.about).filter(|own| own.mesh.is_some() != is_over_mesh) {
            let [there, here] = if is_over_mesh { ["on a grid", "over a mesh"] } else { ["over a mesh", "on a grid"] };
            let what = format!("the checkpoint is of `{}`, which runs {there}, and this runs {here}", about.program);
            return Err(Error::input(what).help("resume the same program"));
        }
        Ok(Self { args, resumed, saved: RefCell::new(Instant::now()) })
    }

    /// The checkpoint that it goes on from.
    pub fn resumed(&self) -> Option<&Checkpoint> {
        self.resumed.as_ref()
    }

    /// What is drawn at random. All that a program holds comes from the checkpoint; what is drawn has only the right shape.
    pub fn drawing(&self, is_program: bool) -> Drawing {
        if self.resumed.is_some() { Drawing::Inputs } else { self.args.drawing(is_program) }
    }

    /// How many steps were done before, once it is sure that the checkpoint is of this.
    ///
    /// # Errors
    /// It is of something else.
    pub fn before(&self, about: &About, script: &dyn Script) -> Result<u64> {
        let Some(resumed) = &self.resumed else { return Ok(0) };
        resumed.check(about, script)?;
        resumed.done(script)
    }

    /// A program at its beginning, or where the checkpoint was.
    ///
    /// # Errors
    /// There is not enough memory, or the checkpoint does not fit.
    pub fn driver<B: Backend>(&self, backend: B) -> Result<Driver<B>> {
        let Some(resumed) = &self.resumed else { return Driver::new(backend).given() };
        let mut driver = Driver::new(backend);
        resumed.restore(&mut driver)?;
        Ok(driver)
    }

    /// Keeps what a program holds on its way, if it is time for that: with every output, or every minute.
    ///
    /// # Errors
    /// It cannot be written, or a kernel has failed.
    pub fn after<B: Backend>(&self, about: &About, driver: &Driver<B>) -> Result<()> {
        let is_due = match self.args.of_program.every {
            Some(every) => driver.done().is_multiple_of(every),
            None => self.saved.borrow().elapsed() > CHECKPOINT,
        };
        if !is_due {
            return Ok(());
        }
        self.saved.replace(Instant::now());
        self.keep(about, driver)
    }

    /// Keeps what a program holds.
    ///
    /// # Errors
    /// It cannot be written, or a kernel has failed.
    pub fn keep<B: Backend>(&self, about: &About, driver: &Driver<B>) -> Result<()> {
        match &self.args.of_program.checkpoint {
            Some(path) => checkpoint::save(Path::new(&Pattern::new(path).at(driver.done())), about, driver),
            None => Ok(()),
        }
    }
}
