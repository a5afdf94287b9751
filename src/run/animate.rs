//! `stencilc run --animate`: what a program makes of a level of a field, as an animated picture.
//!
//! The colours of the first frame depend on the numbers of the last, so the numbers of all frames are kept until the end.

use super::outputs::Held;
use super::picture::{Look, Shown};
use super::{Declared, PICTURE, Steps, targets};
use crate::args::{self, Pair};
use crate::terminal::Progress;
use std::cell::RefCell;
use std::path::PathBuf;
use stencilc_runtime::plot::Picture;
use stencilc_runtime::plot::animation::save_animation;
use stencilc_runtime::{Error, Result};

/// The most memory that the frames of all animations take, in bytes.
const MEMORY: u64 = 1 << 30;

/// Options of animations.
#[derive(clap::Args)]
pub struct AnimateArgs {
    /// Of a program: where to draw one level of an output as an animated .png file, a frame at the start, if it has a value there, at
    /// each --every and at the end, all in one scale of colours; written when the run ends
    #[arg(long, value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--animate phi=phi.png"))]
    animate: Vec<Pair>,
    /// Frames of an animation in a second
    #[arg(long, value_name = "N", default_value_t = 10, requires = "animate", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub fps: u16,
}

impl AnimateArgs {
    /// Whether something is to be animated.
    pub fn is_given(&self) -> bool {
        !self.animate.is_empty()
    }

    /// The outputs to animate, each with its file.
    ///
    /// # Errors
    /// There is no such output, a file cannot be written or is another one of the call, or nobody says how often a frame is taken.
    pub(super) fn targets(&self, every: Option<u64>, declared: &Declared) -> Result<Vec<(String, PathBuf)>> {
        if self.is_given() && every.is_none() {
            return Err(Error::call("--animate needs --every, which says after how many steps there is a frame")
                .help("add it: --every 10"));
        }
        if let Some(pair) = self.animate.iter().find(|pair| pair.value().contains("{step")) {
            return Err(Error::call(format!("--animate {pair}: an animation is one file for all steps"))
                .help("leave out {step}; --plot writes a picture for each"));
        }
        targets(&self.animate, "--animate", declared, PICTURE, Steps::None)
    }
}

/// A level of a field at several times.
pub struct Animation {
    look: Look,
    path: PathBuf,
    /// Frames, each with its step.
    frames: RefCell<Vec<(u64, Shown)>>,
}

impl Animation {
    /// The field that is shown.
    pub fn field(&self) -> &str {
        &self.look.field
    }

    /// Without a frame.
    pub fn new(look: Look, path: PathBuf) -> Self {
        Self { look, path, frames: RefCell::default() }
    }

    /// Takes a frame of what it holds, if it has a value; of a step the last.
    ///
    /// # Errors
    /// Nobody says where cells lie, or those of `held`.
    pub fn take(&self, held: &Held, step: u64) -> Result<()> {
        let Some(array) = held(&self.look.field)? else { return Ok(()) };
        let mut shown = self.look.shown(&array.data)?;
        shown.title += &format!(", step {step}");
        let mut frames = self.frames.borrow_mut();
        frames.pop_if(|(last, _)| *last == step);
        frames.push((step, shown));
        Ok(())
    }
}

/// The most frames that one of them has.
pub fn frames(animations: &[Animation]) -> u64 {
    animations.iter().map(|own| own.frames.borrow().len() as u64).max().unwrap_or(0)
}

/// Refuses animations that would take more than [`MEMORY`], with so many frames in `steps`.
///
/// # Errors
/// They would.
pub fn check_room(animations: &[Animation], steps: u64, frames: u64) -> Result<()> {
    let points: usize = animations.iter().map(|own| own.look.points).sum();
    if points == 0 { Ok(()) } else { check_memory((points * size_of::<f64>()) as u64, steps, frames) }
}

/// Refuses so many frames in `steps`, of which one takes `bytes`, if they take more than [`MEMORY`].
fn check_memory(bytes: u64, steps: u64, frames: u64) -> Result<()> {
    if bytes.saturating_mul(frames) <= MEMORY {
        return Ok(());
    }
    let gib = bytes as f64 * frames as f64 / MEMORY as f64;
    let error =
        Error::call(format!("{frames} frames of --animate would take {gib:.1} GiB of memory, and 1 GiB is the most"));
    // Beside those on the way there is one at the start.
    Err(match (MEMORY / bytes).saturating_sub(1) {
        0 => error.help("draw pictures on the way instead: --plot NAME=picture_{step}.png"),
        most => error.help(format!("take {most} at most beside the first: --every {}", steps.div_ceil(most))),
    })
}

/// Draws all frames.
///
/// # Errors
/// They cannot be written.
pub fn save(animations: &[Animation], per_second: u16) -> Result<()> {
    let frames = animations.iter().map(|own| own.frames.borrow().len()).sum();
    let progress = Progress::new(frames, "drawing");
    for animation in animations {
        let frames = animation.frames.borrow();
        let pictures: Vec<Picture> = frames.iter().map(|(_, shown)| shown.picture()).collect();
        save_animation(&animation.path, &pictures, per_second, &|| progress.advance(1))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MEMORY, check_memory};

    #[test]
    fn what_takes_too_much_memory_is_refused_with_what_would_not() {
        let help = |bytes, steps, frames| check_memory(bytes, steps, frames).err().and_then(|error| error.help);
        assert_eq!(help(MEMORY / 11, 100, 11), None);
        assert_eq!(help(MEMORY / 11, 100, 12).as_deref(), Some("take 10 at most beside the first: --every 10"));
        assert!(help(MEMORY / 11, 100, 100_u64.div_ceil(10) + 1).is_none(), "what was said is right");
        let too_large = help(MEMORY / 2 + 1, 1, 2).unwrap();
        assert!(too_large.contains("--plot"), "{too_large}");
        assert!(help(u64::MAX, u64::MAX, u64::MAX).is_some());
    }
}
