//! Plans of programs: which calls become one, and which kernels compute them.

use super::ProgramProblem;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use stencilc_compiler::access::{self, Access};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Fuse, Fusing, Staged, Step};
use stencilc_compiler::step::stream::{Shape, Strip};
use stencilc_compiler::step::tiled;

/// How a program is computed.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramPlan {
    /// Which calls become one.
    pub kind: PlanKind,
    /// Steps of a loop that one kernel computes.
    pub steps: usize,
    /// How cells are stored and reached, where a thread computes one.
    pub choices: Choices,
    /// How rows are streamed, where a warp walks down them.
    pub shape: Shape,
    /// How planes are cut into tiles, where a block computes one; if not given, as should be fastest.
    pub tile: Option<tiled::Shape>,
    /// How a plane lies in registers, where it stays there: which of the shapes that it can have.
    pub resident: usize,
    /// Whether a loop's launches are recorded and started many at once, as a CUDA graph.
    pub graph: bool,
}

/// Which calls become one, and what lies beyond edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanKind {
    /// A kernel a call, and kernels that fill halos.
    Separate,
    /// Calls that read no neighbour of each other's results share a kernel.
    Merged,
    /// One kernel a step, where that is possible: values beside a cell are computed again. Halos are filled.
    Recomputed,
    /// The same, but warps walk down rows and keep values in registers; edges are fetched from the other end, so there is no
    /// halo.
    Streamed,
    /// The same, but blocks compute tiles and keep values in shared memory.
    Tiled,
    /// The same, but blocks walk along k through a periodic box, with planes in shared memory. Calls that read a neighbour of
    /// each other's results stay apart.
    Walked,
    /// A whole loop in one launch: blocks stream step after step, and wait for each other between two.
    Persistent,
    /// A whole loop in one launch: each plane stays in the registers of a cluster of blocks, which send each other their edges.
    Resident,
}

impl PlanKind {
    /// All of them, in the order that lists show.
    pub const ALL: [PlanKind; 8] = [
        PlanKind::Separate,
        PlanKind::Merged,
        PlanKind::Recomputed,
        PlanKind::Streamed,
        PlanKind::Tiled,
        PlanKind::Walked,
        PlanKind::Persistent,
        PlanKind::Resident,
    ];

    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            PlanKind::Separate => "separate",
            PlanKind::Merged => "merged",
            PlanKind::Recomputed => "recomputed",
            PlanKind::Streamed => "streamed",
            PlanKind::Tiled => "tiled",
            PlanKind::Walked => "walked",
            PlanKind::Persistent => "persistent",
            PlanKind::Resident => "resident",
        }
    }

    /// One line about it.
    pub fn summary(self) -> &'static str {
        match self {
            PlanKind::Separate => "a kernel a call, and one that fills halos",
            PlanKind::Merged => "calls that read no neighbour of each other share a kernel",
            PlanKind::Recomputed => {
                "a kernel for all calls of a step, which computes again what it needs beside a cell"
            }
            PlanKind::Streamed => {
                "a kernel for all calls of a step, or of several, whose warps walk down rows of a periodic plane"
            }
            PlanKind::Tiled => {
                "a kernel for all calls of a step, or of several, whose blocks compute tiles of a periodic plane"
            }
            PlanKind::Walked => {
                "calls as in merged, by kernels whose blocks walk along k through planes of a periodic box"
            }
            PlanKind::Persistent => "a kernel for a whole loop, whose blocks stream step after step",
            PlanKind::Resident => "a kernel for a whole loop, which holds each plane in registers",
        }
    }
}

impl fmt::Display for ProgramPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--fuse {}", self.kind.name())?;
        if self.steps > 1 {
            write!(f, " --steps {}", self.steps)?;
        }
        match self.kind {
            PlanKind::Streamed | PlanKind::Persistent => write!(f, " {}", shape_text(&self.shape)),
            PlanKind::Tiled => match &self.tile {
                Some(tiled::Shape { tile: [i, j], threads, rows }) => {
                    write!(f, " --tile {i}x{j} --rows {rows} --warps {}", threads / 32)
                }
                None => Ok(()),
            },
            PlanKind::Resident => write!(f, " --resident {}", self.resident),
            PlanKind::Walked => {
                let own = walking(&self.choices);
                let [x, y, _] = own.block;
                write!(f, " --access {} --block {x}x{y}{}", own.access, own.particulars())
            }
            PlanKind::Separate | PlanKind::Merged | PlanKind::Recomputed => {
                let [x, y, z] = self.choices.block;
                write!(f, " --storage {} --access {} --block {x}x{y}x{z}", self.choices.storage, self.choices.access)?;
                f.write_str(&self.choices.particulars())
            }
        }?;
        // Whole loops are one launch anyway.
        if self.graph || matches!(self.kind, PlanKind::Persistent | PlanKind::Resident) {
            return Ok(());
        }
        f.write_str(" --no-graph")
    }
}

/// Choices whose strategy lets blocks walk along k: the ones given, or else `swic` as it usually is.
pub fn walking(choices: &Choices) -> Choices {
    let walks = |own: &&'static dyn Access| own.queue().is_some();
    let usual = || access::ACCESSES.iter().find(|own| walks(own)).map_or("", |own| own.name());
    match access::find(&choices.access) {
        Ok(own) if walks(&own) => choices.clone(),
        Ok(_) | Err(_) => {
            Choices { access: usual().to_owned(), block: Choices::usual_block(usual()), ..choices.clone() }
        }
    }
}

/// `--lane 16 --ahead 2 --strip overlapping`
fn shape_text(shape: &Shape) -> String {
    let strip = match shape.strip {
        Strip::Overlapping => "overlapping",
        Strip::Aligned => "aligned",
    };
    let rows = shape.rows.map_or(String::new(), |rows| format!(" --rows {rows}"));
    format!("--lane {} --ahead {} --strip {strip}{rows} --warps {}", shape.lane, shape.ahead, shape.block / 32)
}

impl ProgramPlan {
    /// The plan that is taken if nobody chooses: the first of those that can be made, in the order in which they are fast. Only
    /// some GPUs have clusters.
    pub fn usual(problem: &ProgramProblem, choices: &Choices, has_clusters: bool) -> Self {
        let plan = |kind, steps| Self {
            kind,
            steps,
            choices: choices.clone(),
            shape: usual_shape(steps, choices.precision),
            tile: None,
            resident: 0,
            graph: true,
        };
        let steps = match choices.precision {
            Precision::F32 => 4,
            Precision::F64 => 3,
        };
        let merged = plan(PlanKind::Merged, 1);
        if !choices.has_rows() || choices.is_for_cpu() {
            return merged;
        }
        let resident = has_clusters.then(|| plan(PlanKind::Resident, 1));
        let rows = [plan(PlanKind::Streamed, steps), plan(PlanKind::Streamed, 1)];
        resident.into_iter().chain(rows).find(|plan| plan.check(problem).is_ok()).unwrap_or(merged)
    }

    /// The plan that is taken on several devices if nobody chooses: they bring each other's rows between two kernels.
    pub fn of_parts(choices: Choices) -> Self {
        let shape = usual_shape(1, choices.precision);
        Self { kind: PlanKind::Merged, steps: 1, choices, shape, tile: None, resident: 0, graph: true }
    }

    /// Whether kernels of the plan compute a part of a grid, with what lies beyond its edges beside it.
    pub fn suits_parts(&self) -> bool {
        matches!(self.kind, PlanKind::Separate | PlanKind::Merged | PlanKind::Recomputed)
    }

    /// Whether the plan can be made for a problem.
    ///
    /// # Errors
    /// It cannot, and why.
    pub fn check(&self, problem: &ProgramProblem) -> Result<()> {
        super::planned::Planned::new(problem, self).map(|_| ())
    }

    /// The program as the plan computes it.
    ///
    /// # Errors
    /// It cannot be fused like that.
    pub fn fused(&self, problem: &ProgramProblem) -> Result<ProgramProblem> {
        let (fuse, wraps) = match self.kind {
            PlanKind::Separate => (Fuse::Nothing, false),
            PlanKind::Merged => (Fuse::Pointwise, false),
            PlanKind::Recomputed => (Fuse::Everything, false),
            PlanKind::Walked => (Fuse::Pointwise, true),
            PlanKind::Streamed | PlanKind::Tiled | PlanKind::Persistent | PlanKind::Resident => {
                (Fuse::Everything, true)
            }
        };
        let whole = matches!(self.kind, PlanKind::Persistent | PlanKind::Resident);
        if self.steps > 1 && !matches!(self.kind, PlanKind::Recomputed | PlanKind::Streamed | PlanKind::Tiled) {
            return Err(Error::call(format!(
                "--steps {} is for kernels of several steps, and --fuse {} makes none",
                self.steps,
                self.kind.name()
            ))
            .help("give --fuse streamed, --fuse tiled or --fuse recomputed"));
        }
        let mut own = problem.clone();
        // A stage a call is what there is.
        if self.kind != PlanKind::Separate {
            own.staged = problem.staged.fused(Fusing { fuse, times: self.steps, wraps, whole });
        }
        if self.steps > 1 && !own.staged.steps.iter().any(is_wide) {
            return Err(Error::call(format!(
                "--steps {}: no loop of program `{}` becomes one kernel",
                self.steps, own.staged.program.name
            ))
            .help(match self.kind {
                PlanKind::Recomputed => "give --steps 1: several steps become one where all calls of a loop do",
                _ => "several steps become one where all calls of a loop do: --fuse recomputed, or on periodic axes --fuse streamed and --fuse tiled",
            }));
        }
        if whole && !own.staged.steps.iter().any(is_one) {
            return Err(Error::call(format!(
                "--fuse {}: no loop of program `{}` is one kernel whose outputs are its inputs",
                self.kind.name(),
                own.staged.program.name
            ))
            .help("--fuse streamed launches a kernel a step"));
        }
        if let (true, Some(stage)) = (wraps, own.staged.stages.iter().find(|stage| stage.changes)) {
            return Err(Error::call(format!(
                "--fuse {}: its kernels have all numbers in them, and what is passed to `{}` changes with each turn of a loop",
                self.kind.name(),
                stage.stencil.told()
            ))
            .help("--fuse recomputed, merged and separate pass numbers to each launch"));
        }
        if wraps {
            check_circles(&own.staged, self.kind)?;
        }
        Ok(own)
    }
}

/// Whether GPUs of an architecture have clusters of blocks: those since sm_90.
pub fn has_clusters(arch: &str) -> bool {
    let number = arch.trim_start_matches(|c: char| !c.is_ascii_digit());
    number.trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().is_ok_and(|number| number >= 90)
}

/// A stage that wraps reads circles alone.
fn check_circles(staged: &Staged, kind: PlanKind) -> Result<()> {
    let fuse = kind.name();
    for stage in &staged.stages {
        let reaches = stencilc_compiler::analysis::extents::reaches(&stage.stencil);
        for (field, variable) in stage.reads() {
            let Some(reach) = reaches[stencilc_compiler::ir::Handle::index(field)] else { continue };
            let own = &staged.program.variables[variable];
            let edges = &staged.edges[stencilc_compiler::ir::Handle::index(variable)];
            let beside = [
                (GridAxis::I, reach.low.i, reach.high.i),
                (GridAxis::J, reach.low.j, reach.high.j),
                (GridAxis::K, reach.low.k, reach.high.k),
            ];
            // Kernels of planes that know nothing of each other say so themselves.
            let axes = if kind == PlanKind::Walked { 3 } else { 2 };
            for (axis, low, high) in beside.into_iter().take(axes) {
                if (low, high) != (0, 0) && axis.is_of(own.place) && !edges.is_circle(axis) {
                    return Err(Error::call(format!(
                        "--fuse {fuse} fetches what lies beyond an edge from the other end, and `{}` is not periodic along `{axis}`",
                        own.name
                    ))
                    .help("--fuse recomputed and --fuse merged fill halos, by any rule"));
                }
            }
        }
        if !stage.is_whole {
            return Err(Error::call(format!(
                "--fuse {fuse} computes every cell, and `{}` computes some alone",
                stage.stencil.told()
            ))
            .help("--fuse recomputed and --fuse merged compute any region"));
        }
    }
    Ok(())
}

fn is_wide(step: &Step) -> bool {
    match step {
        Step::Repeat(own) => own.unrolled.is_some() || own.turns.iter().flatten().any(is_wide),
        Step::Stage(_) | Step::Rename(..) | Step::Number(..) => false,
    }
}

fn is_one(step: &Step) -> bool {
    match step {
        Step::Repeat(own) => own.whole.is_some() || own.turns.iter().flatten().any(is_one),
        Step::Stage(_) | Step::Rename(..) | Step::Number(..) => false,
    }
}

/// The shape that is fastest for so many steps at once where nobody has measured.
pub fn usual_shape(steps: usize, precision: Precision) -> Shape {
    match (steps, precision) {
        (1, Precision::F32) => Shape { strip: Strip::Aligned, lane: 16, ahead: 4, ..Shape::default() },
        (1, Precision::F64) => Shape { strip: Strip::Aligned, lane: 32, ..Shape::default() },
        _ => Shape { lane: 16, ..Shape::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::has_clusters;

    #[test]
    fn hopper_and_later_have_clusters() {
        assert_eq!(["sm_70", "sm_90", "sm_90a", "sm_120"].map(has_clusters), [false, true, true, true]);
    }
}
