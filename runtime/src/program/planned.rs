//! The kernels of a program before there is a machine: a plan and a text for each, and the layout that its fields have together.

use super::ProgramProblem;
use super::fill::{self, Fill};
use super::parts::exchange;
use super::plan::{PlanKind, ProgramPlan, walking};
use crate::error::{Error, Result};
use crate::pack::Packing;
use crate::problem::element_of;
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::access::{self, Access};
use stencilc_compiler::analysis::extents;
use stencilc_compiler::cuda;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{Stencil, VariableId};
use stencilc_compiler::kernel;
use stencilc_compiler::plan::{self, Choices, KnownGrid, Plan, Target};
use stencilc_compiler::program::{Stage, Staged};
use stencilc_compiler::source::Source;
use stencilc_compiler::step::planes::{self, Queue};
use stencilc_compiler::step::stream::{self, Shape, Strip};
use stencilc_compiler::step::{self, Edge, Rows, StepTask, resident, tiled};
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::fields::{FieldSlot, Fields};
use stencilc_compiler::storage::sharing::Sharing;
use stencilc_compiler::storage::{Columns, Layout};

/// A text to compile.
pub struct Text {
    /// The name of the kernel in it.
    pub name: String,
    /// CUDA C++.
    pub text: String,
}

/// The names of kernels, each once.
pub fn names(texts: Vec<Text>) -> Vec<String> {
    let mut known = BTreeSet::new();
    texts.into_iter().map(|own| own.name).filter(|name| known.insert(name.clone())).collect()
}

/// The kernels of a program: a text for each of its stages, and where its fields lie.
pub struct Planned {
    /// The program, fused as the plan says.
    pub problem: Arc<ProgramProblem>,
    pub(super) stages: Vec<StageKernel>,
    pub(super) layout: Arc<Layout>,
    /// The kernels that fill halos, each once.
    pub(super) fills: Vec<Fill>,
    /// The kernels that exchange rows with neighbours, each once.
    pub(super) exchanges: Vec<Fill>,
    /// Whether launches of loops are recorded.
    pub(super) graph: bool,
}

/// The kernel of a stage.
pub(super) enum StageKernel {
    /// A thread a cell, or for several.
    Cells(Box<Plan>, cuda::Kernel),
    /// Warps that walk down rows, or blocks that compute tiles.
    Rows(Box<step::Kernel>),
}

impl StageKernel {
    fn text(&self) -> Text {
        match self {
            StageKernel::Cells(_, kernel) => Text { name: kernel.name.to_string(), text: kernel.text.clone() },
            StageKernel::Rows(kernel) => Text { name: kernel.name.to_string(), text: kernel.text.clone() },
        }
    }
}

impl Planned {
    /// Plans a kernel for each stage.
    ///
    /// # Errors
    /// A choice makes no sense for one of them.
    pub fn new(problem: &ProgramProblem, plan: &ProgramPlan) -> Result<Self> {
        let choices = &plan.choices;
        if choices.fields != Fields::Soa {
            return Err(Error::call("the fields of a program lie each by itself").help("leave out --fields"));
        }
        if choices.checked {
            return Err(
                Error::call("--checked is for single stencils").help("run the stencil that is wrong: --stencil NAME")
            );
        }
        let problem = plan.fused(problem)?;
        let staged = &problem.staged;
        let by_rows = staged.stages.iter().any(|stage| stage.wraps);
        if by_rows && (!choices.has_rows() || problem.adjacency.is_some()) {
            let kind = plan.kind.name();
            let (why, help) = match choices.fastest {
                Fastest::Levels => ("where levels are fastest there are none", "--fastest columns"),
                Fastest::Columns => ("cells of tables stand in none", "--storage regular"),
            };
            return Err(Error::call(format!("--fuse {kind} works on rows, and {why}"))
                .help(format!("give {help}, or --fuse recomputed")));
        }
        let layouts = Planner::new(&problem, choices);
        let mut stages = Vec::new();
        for stage in &staged.stages {
            stages.push(match stage.wraps && stage.stencil.sweeps.is_empty() {
                _ if stage.region.cells() == 0 => layouts.cells(&copying()?, &staged.inner())?,
                false => layouts.cells(&stage.stencil, &stage.region)?,
                true => layouts.rows(stage, plan)?,
            });
        }
        let layout = layouts.layout(&stages)?;
        let needing = staged.program.variables.iter().filter(|(id, _)| staged.needs_halo(*id));
        let mut fills: Vec<Fill> = Vec::new();
        for fill in needing.map(|(id, _)| Fill::of(staged, id)) {
            if !fills.contains(&fill) {
                fills.push(fill);
            }
        }
        let exchanges = exchange::fills(staged);
        Ok(Self { stages, layout, fills, exchanges, graph: plan.graph, problem: Arc::new(problem) })
    }

    /// How a thread computes cells of a stage, if it does.
    pub(super) fn cells_of(&self, stage: usize) -> Option<&Plan> {
        match &self.stages[stage] {
            StageKernel::Cells(plan, _) => Some(plan),
            StageKernel::Rows(_) => None,
        }
    }

    /// Where the cells of a variable are.
    pub(super) fn packing(&self, variable: VariableId) -> Packing<'_> {
        let staged = &self.problem.staged;
        let own = &staged.program.variables[variable];
        let element = element_of(own.stored, staged.precision);
        let slot = FieldSlot { group: 0, number: 0, fields: 1 };
        Packing::new(&self.layout, staged.grid, own.place, element, Fields::Soa, slot)
    }

    /// The texts to compile.
    ///
    /// # Errors
    /// A template is broken, which is a fault of the compiler.
    pub fn texts(&self) -> Result<Vec<Text>> {
        let kernels = self.stages.iter().map(|stage| Ok(stage.text()));
        let fills = self.fills.iter();
        let fills = fills.map(|&own| Ok(Text { name: fill::name(own), text: cuda::text(&fill::code(own))? }));
        let exchanges = self.exchanges.iter();
        let exchanges =
            exchanges.map(|&own| Ok(Text { name: exchange::name(own), text: cuda::text(&exchange::code(own))? }));
        kernels.chain(fills).chain(exchanges).collect()
    }

    /// The kernels in the kernel IR. None says how it is made again: `stencilc build` makes all of them at once.
    ///
    /// # Errors
    /// A kernel keeps values of sweeps on every level, and how many there are is not known.
    pub fn codes(&self) -> Result<Vec<kernel::Kernel>> {
        let kernels = self.stages.iter().map(|stage| match stage {
            StageKernel::Cells(plan, _) => Ok(kernel::Kernel { made: None, ..cuda::lower(plan)? }),
            StageKernel::Rows(kernel) => Ok(kernel.code.clone()),
        });
        let fills = self.fills.iter().map(|&own| Ok(fill::code(own)));
        kernels.chain(fills).chain(self.exchanges.iter().map(|&own| Ok(exchange::code(own)))).collect()
    }
}

/// A stencil that any cell can compute.
fn copying() -> Result<Stencil> {
    let lowered = stencilc_compiler::check(&Source::new("copy", "stencil copy { in a; out b; b = a }"));
    lowered.stencils.into_iter().next().ok_or_else(|| Error::check("no stencil to copy with"))
}

/// The cells that the kernel of a stage is made for. On some parts of a grid a call computes nothing: there its kernel copies, and nobody
/// launches it.
fn planned_region(staged: &Staged, stage: &Stage) -> Region {
    if stage.region.cells() == 0 { staged.inner() } else { stage.region.clone() }
}

/// Plans stages of one program, whose fields have one layout.
struct Planner<'a> {
    problem: &'a ProgramProblem,
    choices: Choices,
    sharing: Sharing,
}

impl<'a> Planner<'a> {
    fn new(problem: &'a ProgramProblem, choices: &Choices) -> Self {
        let staged = &problem.staged;
        let mut choices = choices.clone();
        // Rows start aligned where all stages compute the same columns.
        let regions: Vec<Region> = staged.stages.iter().map(|stage| planned_region(staged, stage)).collect();
        let computed = regions.iter().map(|region| region.column_numbers(staged.grid).into()).collect();
        let mut regions = regions.iter().map(|region| (&region.i, &region.j, &region.cells));
        let first = regions.next();
        if regions.any(|own| Some(own) != first) {
            choices.share = vec![staged.program.name.clone()];
        }
        let smallest = staged.stages.iter().map(|stage| stage.stencil.smallest(staged.precision)).min().unwrap_or(8);
        // What no stage reads lies in the same layout.
        let highest = staged.program.variables.iter().map(|(_, own)| own.place.levels.count(staged.grid.nk));
        let levels = highest.fold(staged.grid.nk, usize::max);
        Self { problem, choices, sharing: Sharing { computed, smallest, levels } }
    }

    fn plan(&self, stencil: &Stencil, region: &Region) -> Result<Plan> {
        let target = Target {
            grid: self.problem.staged.grid,
            adjacency: self.problem.adjacency.as_deref(),
            region,
            levels_known: true,
            sharing: Some(&self.sharing),
            layouts: None,
        };
        let mut choices = self.choices.clone();
        if !choices.suits(stencil) {
            // Sweeps need whole columns, whatever suits the other calls.
            choices.block = Choices::usual_block(&choices.access);
            choices = choices.suiting(stencil);
        }
        Ok(plan::plan(stencil, &choices, Some(target))?)
    }

    fn cells(&self, stencil: &Stencil, region: &Region) -> Result<StageKernel> {
        let plan = self.plan(stencil, region)?;
        let kernel = cuda::print(&plan)?;
        Ok(StageKernel::Cells(Box::new(plan), kernel))
    }

    fn rows(&self, stage: &Stage, plan: &ProgramPlan) -> Result<StageKernel> {
        let staged = &self.problem.staged;
        let layout = self.in_rows()?;
        let Columns::Rows { row } = layout.columns else {
            return Err(Error::check("rows of cells that stand in none"));
        };
        let Grid { ni, nj, nk, .. } = staged.domain;
        // Warps walk down the rows of the arrays.
        let stencil = staged.without_halo(&stage.stencil);
        let subject = StepTask {
            stencil: &stencil,
            precision: staged.precision,
            extents: [ni, nj, nk],
            rows: Rows { first: 0, row, plane: layout.stride(layout.strides.level) },
            edges: [Edge::Periodic; 2],
        };
        // Where extents do not divide, strips overlap.
        let shape = plan.shape;
        let other = Shape { strip: Strip::Overlapping, lane: 16, ..shape };
        let kernel = match plan.kind {
            PlanKind::Resident if !stage.carry.is_empty() => {
                let shapes = resident::shapes(&subject, &stage.carry, &shape.gpu);
                let Some(&own) = shapes.get(plan.resident) else {
                    let ways = match shapes.len() {
                        0 => "finds no room in registers".to_owned(),
                        ways => format!(
                            "has {ways} ways to lie in registers, and the one with number {} is none",
                            plan.resident
                        ),
                    };
                    return Err(Error::call(format!("--fuse resident: a plane of {ni}x{nj} cells {ways}")).help(
                        "rows are multiples of 128 cells in f32, and of 64 in f64; ways are counted from 0; \
                         --fuse streamed has no such limits",
                    ));
                };
                resident::resident(&subject, &stage.carry, own)?
            }
            PlanKind::Persistent if !stage.carry.is_empty() => stream::persistent(&subject, &stage.carry, &shape)
                .or_else(|_| stream::persistent(&subject, &stage.carry, &other))?,
            PlanKind::Tiled => {
                let own = plan.tile.or_else(|| tiled::shapes(&subject, &shape.gpu).first().copied());
                tiled::tiled(&subject, &own.unwrap_or(tiled::Shape::SMALLEST))?
            }
            PlanKind::Walked => {
                let own = walking(&self.choices);
                let queue = access::find(&own.access).ok().and_then(Access::queue).unwrap_or(Queue::Output);
                let reads_levels = extents::extents(&stencil);
                let edge =
                    if (reads_levels.low.k, reads_levels.high.k) == (0, 0) { Edge::Open } else { Edge::Periodic };
                let request = planes::Request::of(&subject, queue, 0..nk, edge)?;
                planes::planes(&subject, &planes::Request { math: own.math, ..request }, &own.walk(shape.gpu))?
            }
            PlanKind::Separate | PlanKind::Merged | PlanKind::Recomputed => {
                return Err(Error::check("a plan that fills halos has no rows to walk down"));
            }
            PlanKind::Streamed | PlanKind::Resident | PlanKind::Persistent => {
                stream::stream(&subject, &shape).or_else(|_| stream::stream(&subject, &other))?
            }
        };
        Ok(StageKernel::Rows(Box::new(kernel)))
    }

    /// The layout where all that is said is that cells stand in rows.
    fn in_rows(&self) -> Result<Arc<Layout>> {
        self.bare(Choices { precision: self.choices.precision, ..Choices::default() })
    }

    /// The layout where no stage says more of it than these choices do.
    fn bare(&self, choices: Choices) -> Result<Arc<Layout>> {
        let own = Self { problem: self.problem, choices, sharing: self.sharing.clone() };
        let plan = own.plan(&copying()?, &self.problem.staged.inner())?;
        Ok(Arc::clone(&known_grid(&plan)?.layout))
    }

    /// The layout of all stages.
    fn layout(&self, stages: &[StageKernel]) -> Result<Arc<Layout>> {
        let mut found: Option<Arc<Layout>> = None;
        for stage in stages {
            let own = match stage {
                StageKernel::Cells(plan, _) => Arc::clone(&known_grid(plan)?.layout),
                StageKernel::Rows(_) => self.in_rows()?,
            };
            if found.as_ref().is_some_and(|known| !known.places_cells_like(&own)) {
                return Err(Error::check("the stages of a program have different layouts"));
            }
            found.get_or_insert(own);
        }
        // What only gives fields other names has no stages.
        found.map_or_else(|| self.bare(self.choices.clone()), Ok)
    }
}

/// The grid that a kernel of a program is made for.
///
/// # Errors
/// It is for any grid, which is a fault of the compiler.
pub(super) fn known_grid(plan: &Plan) -> Result<&KnownGrid> {
    plan.known_grid.as_ref().ok_or_else(|| Error::check("a kernel for any grid has no layout"))
}
