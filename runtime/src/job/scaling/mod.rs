//! How a program scales: what a step takes on one device, on two, on four and so on, as a [`Run`](super::Run) in parts computes it.
//!
//! ```text
//! how many -> weak: a grid of as many times the rows; strong: the grid or mesh that is given
//!          -> cut: what parts bring from each other -> truth: are the first steps the interpreter's? -> timed: its steps, and those of a share
//! ```
//!
//! Time is the host's: from when nothing is under way until all devices are done. So devices that wait for each other, and whatever the host
//! does for them, are in it.

mod cut;
#[cfg(test)]
mod tests;
mod truth;

use super::{Domain, Job, Ready};
use crate::bench::rows::Method;
use crate::bench::statistics::Statistics;
use crate::build::Build;
use crate::clock::{Clock, Watch};
use crate::device::Platform;
use crate::error::{Error, Result};
use crate::job::Checked;
use crate::measure::Progress;
use crate::program::ProgramProblem;
use crate::program::plan::{ProgramPlan, has_clusters};
use cut::Cutting;
use serde::Serialize;
use stencilc_compiler::grid::Grid;

/// What is measured.
pub struct Asked {
    /// What is computed, and how each device computes its part.
    pub job: Job,
    /// On how many devices at most.
    pub devices: usize,
    /// Steps of each outermost loop in one measurement.
    pub times: usize,
    /// How many measurements there are, and whether the first steps are compared with the interpreter.
    pub method: Method,
    /// Whether the plan of a program on a grid was left open: then one device by itself may have a better one, which is measured, too.
    pub is_open: bool,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Scaled {
    /// The plan by which each device computes its part of a grid; nothing of the interpreter, and over meshes.
    pub plan: Option<String>,
    /// What one device takes by the plan that it would have by itself, where that is another.
    pub alone: Option<Alone>,
    /// As many rows along j for each as the grid has; nothing over a mesh, which is as large as it is.
    pub weak: Option<Vec<Point>>,
    /// The grid or the mesh in all.
    pub strong: Vec<Point>,
}

/// One device with a plan of its own.
#[derive(Debug, Serialize)]
pub struct Alone {
    /// The plan.
    pub plan: String,
    /// Microseconds of a step.
    pub us_a_step: Statistics,
}

/// What some devices take.
#[derive(Debug, Serialize)]
pub struct Point {
    /// How many.
    pub gpus: usize,
    /// The grid, of all of them.
    pub grid: Option<String>,
    /// The fewest and the most rows of a part, or elements of all sets that one owns.
    pub parts: [usize; 2],
    /// Microseconds of a step.
    pub us_a_step: Statistics,
    /// What one device takes beside it, a device: 1 is what nothing is lost of.
    pub efficiency: f64,
    /// What parts bring from each other; nothing of one.
    pub brought: Option<Brought>,
    /// What one device takes for the largest part by itself; nothing of one, or where that is no program that can be computed.
    pub share: Option<Statistics>,
    /// Microseconds of a step beyond that: what is not hidden of bringing, meeting and waiting.
    pub not_hidden_us: Option<f64>,
}

/// What parts bring from each other in a step, at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Brought {
    /// How often.
    pub exchanges: f64,
    /// The bytes that come to a part.
    pub bytes_to_a_part: f64,
    /// Those of them that come from one other; nothing over a mesh.
    pub bytes_over_a_link: Option<f64>,
    /// Over a mesh: the bytes that the others tell the first part of reductions.
    pub bytes_folded: f64,
}

/// A program whose scaling is measured on a device, and those beside it.
pub struct Scaling<'a> {
    platform: &'a Platform,
    asked: Asked,
    /// The program on the grid or mesh that is given.
    whole: Ready,
    /// How many devices, one after the other.
    counts: Vec<usize>,
}

impl<'a> Scaling<'a> {
    /// Checks all that can be refused before anything is measured.
    ///
    /// # Errors
    /// Those of [`Job::ready`]; there are fewer devices, it is not cut into so many parts, or there is nothing to measure.
    pub fn new(asked: Asked, platform: &'a Platform) -> Result<Self> {
        let mut whole = asked.job.clone().ready()?;
        if let Checked::Grid(problem) = &whole.checked {
            problem.has_kernels()?;
            let is_cpu = matches!(platform, Platform::Emulator(own) if own.is_cpu());
            let plan = whole.plan_of_parts(problem, is_cpu);
            whole.plan(plan);
        }
        if let Platform::Gpu(first) = platform {
            first.beside(asked.devices)?;
        }
        let counts = counts(asked.devices);
        let own = Self { platform, asked, whole, counts };
        // As many as are asked for first: that is what is told.
        for &devices in own.counts.iter().rev().filter(|devices| **devices > 1) {
            own.cut(&own.whole, devices)?;
        }
        Ok(own)
    }

    /// How many things are measured, each of which is told as one step of progress.
    pub fn steps(&self) -> usize {
        let more = self.counts.len() - 1;
        // Of weak and of strong scaling one device is the same, and so is the share of weak scaling.
        1 + 2 * more + if self.grid().is_some() { more } else { 0 } + usize::from(self.usual_alone().is_some())
    }

    /// Measures all.
    ///
    /// # Errors
    /// What is computed differs from the interpreter; a device fails, or has too little memory.
    pub fn measure(&self, progress: &Progress) -> Result<Scaled> {
        let timed = |ready: &Ready, devices: usize| {
            let statistics = self.timed(ready, devices);
            progress(1);
            statistics
        };
        // The largest first: it is what there may be no memory for.
        let weak = self.grid().map(|grid| {
            let larger = self.counts.iter().rev().filter(|devices| **devices > 1);
            larger.map(|&devices| self.larger(grid, devices, &timed)).collect::<Result<Vec<_>>>()
        });
        let weak = weak.transpose()?;
        let truth = self.truth(&self.whole)?;
        self.compare(&self.whole, 1, truth.as_ref())?;
        let one = timed(&self.whole, 1)?;
        let mut strong = Vec::new();
        for &devices in &self.counts[1..] {
            self.compare(&self.whole, devices, truth.as_ref())?;
            let cutting = self.cut(&self.whole, devices)?;
            let us = timed(&self.whole, devices)?;
            let share = self.share(&cutting).map(|share| timed(&share, 1)).transpose()?;
            strong.push(point(devices, self.grid(), &cutting, (us, devices as f64), (one, share)));
        }
        let mut alone = None;
        if let Some(plan) = self.usual_alone() {
            let (mut ready, name) = (self.whole.clone(), plan.to_string());
            ready.plan(plan);
            self.compare(&ready, 1, truth.as_ref())?;
            alone = Some(Alone { plan: name, us_a_step: timed(&ready, 1)? });
        }
        let first = || Point {
            gpus: 1,
            grid: self.grid().map(|grid| grid.to_string()),
            parts: [self.size(); 2],
            us_a_step: one,
            efficiency: 1.0,
            brought: None,
            share: None,
            not_hidden_us: None,
        };
        let weak = weak.map(|larger| {
            let points = larger
                .into_iter()
                .rev()
                .map(|(devices, grid, cutting, us)| point(devices, Some(grid), &cutting, (us, 1.0), (one, Some(one))));
            std::iter::once(first()).chain(points).collect()
        });
        strong.insert(0, first());
        Ok(Scaled { plan: self.plan(), alone, weak, strong })
    }

    /// A grid with as many rows for each device as the one that is given.
    fn larger(
        &self,
        grid: Grid,
        devices: usize,
        timed: &dyn Fn(&Ready, usize) -> Result<Statistics>,
    ) -> Result<(usize, Grid, Cutting, Statistics)> {
        let grid = Grid { nj: grid.nj * devices, ..grid };
        let ready = self.on(grid)?;
        let cutting = self.cut(&ready, devices)?;
        self.compare(&ready, devices, self.truth(&ready)?.as_ref())?;
        Ok((devices, grid, cutting, timed(&ready, devices)?))
    }

    /// The same program on another grid, computed alike.
    fn on(&self, grid: Grid) -> Result<Ready> {
        let mut ready = self.asked.job.clone().on(Domain::Rows(grid)).ready()?;
        ready.how = self.whole.how.clone();
        Ok(ready)
    }

    /// The grid that is given, if it is one.
    fn grid(&self) -> Option<Grid> {
        match &self.whole.checked {
            Checked::Grid(problem) => Some(problem.outer.grid),
            Checked::Mesh(_) => None,
        }
    }

    /// The rows of the grid, or the elements of all sets of the mesh.
    fn size(&self) -> usize {
        match &self.whole.checked {
            Checked::Grid(problem) => problem.outer.grid.nj,
            Checked::Mesh(problem) => problem.program.mesh.sets.handles().map(|set| problem.bound.size(set)).sum(),
        }
    }

    /// The plan of parts, by name.
    fn plan(&self) -> Option<String> {
        let plan = self.whole.how.plan.as_ref().filter(|_| !matches!(self.platform, Platform::Cpu));
        plan.map(ToString::to_string)
    }

    /// The plan that one GPU takes if nobody chooses, where that is another than that of parts, and nobody has chosen.
    fn usual_alone(&self) -> Option<ProgramPlan> {
        // How fast kernels are that are emulated says nothing.
        let Platform::Gpu(gpu) = self.platform else { return None };
        let Checked::Grid(problem) = &self.whole.checked else { return None };
        let own = self.whole.how.plan.as_ref().filter(|_| self.asked.is_open)?;
        better_alone(problem, own, &gpu.arch())
    }

    /// A job on so many devices, whose outermost loops are run so often.
    fn repeated(ready: &Ready, devices: usize, times: usize) -> Ready {
        let mut own = ready.clone();
        own.checked = ready.checked.with_times(times);
        own.devices(devices);
        own
    }

    /// Microseconds of a step.
    fn timed(&self, ready: &Ready, devices: usize) -> Result<Statistics> {
        let mut run = Self::repeated(ready, devices, self.asked.times).start_on(self.platform.clone())?;
        // What is done once is no part of it: memory is made, and launches of a loop are recorded.
        run.finish()?;
        let mut times = Vec::new();
        for _ in 0..self.asked.method.runs {
            run.begin_again()?;
            run.wait()?;
            let (before, watch) = (run.done(), Watch::start());
            run.finish()?;
            let microseconds = watch.now().as_secs_f64() * 1e6;
            times.push(microseconds / (run.done() - before).max(1) as f64);
        }
        Statistics::of(&times).ok_or_else(|| Error::check("no time was taken"))
    }
}

/// What is known of some devices, by their time and by how many of them do the work of one; beside what one takes, and what it takes for the
/// largest part by itself.
fn point(
    gpus: usize,
    grid: Option<Grid>,
    cutting: &Cutting,
    (us_a_step, share_work): (Statistics, f64),
    (one, share): (Statistics, Option<Statistics>),
) -> Point {
    Point {
        gpus,
        grid: grid.map(|grid| grid.to_string()),
        parts: cutting.parts,
        us_a_step,
        efficiency: one.median_us / (share_work * us_a_step.median_us),
        brought: Some(cutting.brought),
        share,
        not_hidden_us: share.map(|share| us_a_step.median_us - share.median_us),
    }
}

/// The usual plan of one device, where that is another than one of parts.
fn better_alone(problem: &ProgramProblem, own: &ProgramPlan, arch: &str) -> Option<ProgramPlan> {
    let usual = ProgramPlan { graph: own.graph, ..ProgramPlan::usual(problem, &own.choices, has_clusters(arch)) };
    (usual.to_string() != own.to_string()).then_some(usual)
}

/// One device, and twice as many as long as that is less than all; and all.
fn counts(most: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1_usize), |devices| devices.checked_mul(2));
    doubled.take_while(|devices| *devices < most).chain([most]).collect()
}
