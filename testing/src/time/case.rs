//! One case: a program in time on a grid, computed by the evaluator, by the interpreter, fused in every way, and by kernels.

use super::evaluate::{Arrays, Evaluation, Refused};
use super::generate::{self, Kind};
use super::shrink;
use super::tree::{Action, Number, Stored, Timed, Within};
use crate::graph::Graph;
use crate::subject::{self, Failure, Many, Outcome};
use std::collections::BTreeMap;
use stencilc_compiler::diagnostic;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program, VariableId};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Fuse, Fusing};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_runtime::problem::Request;
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan, usual_shape};
use stencilc_runtime::verify::parts::InParts;
use stencilc_runtime::verify::program::Reference;
use stencilc_runtime::verify::{Library, Tools, Verdict, verify_by};
use stencilc_runtime::{Data, Result, moving};

/// A program and what it is computed on.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it comes from.
    pub seed: u64,
    /// The program.
    pub timed: Timed,
    /// Cells along i, j and k.
    pub extents: [usize; 3],
    /// What links cells, if they stand in no rows; then `extents` says how many there are along i.
    pub graph: Option<Graph>,
    /// What `real` is.
    pub precision: Precision,
    /// How kernels compute it.
    pub plan: ProgramPlan,
}

/// Whether a loop is run no time.
fn runs_no_time(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Repeat(times, inner) => matches!(times, Number::Whole(0)) || runs_no_time(inner),
        Action::Call { .. } | Action::Rename { .. } | Action::Let(..) => false,
    })
}

/// Calls `change` with what each call says of where it is computed.
fn each_place(actions: &mut [Action], change: &mut dyn FnMut(&mut Vec<Within>)) {
    for action in actions {
        match action {
            Action::Call { within, .. } => change(within),
            Action::Repeat(_, inner) => each_place(inner, change),
            Action::Rename { .. } | Action::Let(..) => {}
        }
    }
}

/// A case that interpreter and evaluator agree on.
pub struct Ready {
    case: Case,
    /// What the interpreter computes.
    reference: Reference,
    /// Whether fusing makes fewer stages.
    is_fused: bool,
}

/// How a program is fused here: what the interpreter can compute.
pub fn fusings() -> impl Iterator<Item = Fusing> {
    [Fuse::Nothing, Fuse::Pointwise, Fuse::Everything]
        .into_iter()
        .flat_map(|fuse| [1, 2, 3].map(|times| Fusing { fuse, times, wraps: false, whole: false }))
}

/// The plans that are tried.
pub fn plans(precision: Precision) -> Vec<ProgramPlan> {
    let plan = |kind, steps, storage: &str| ProgramPlan {
        kind,
        steps,
        choices: Choices {
            storage: storage.to_owned(),
            precision,
            contract: false,
            block: [8, 2, 1],
            ..Choices::default()
        },
        shape: usual_shape(steps, precision),
        tile: None,
        resident: 0,
        graph: true,
    };
    let by_levels = |plan: ProgramPlan| {
        let choices = Choices { fastest: Fastest::Levels, ..plan.choices };
        ProgramPlan { choices, ..plan }
    };
    let of_patches = |plan: ProgramPlan| {
        let access = "patches".to_owned();
        let choices = Choices { block: Choices::usual_block(&access), access, ..plan.choices };
        ProgramPlan { choices, ..plan }
    };
    let by = |access: &str, plan: ProgramPlan| {
        let choices = Choices { access: access.to_owned(), block: [32, 2, 1], ..plan.choices }.with("height", [2]);
        ProgramPlan { choices, ..plan }
    };
    vec![
        plan(PlanKind::Separate, 1, "regular"),
        plan(PlanKind::Merged, 1, "compressed"),
        plan(PlanKind::Recomputed, 1, "uncompressed"),
        plan(PlanKind::Recomputed, 2, "regular"),
        plan(PlanKind::Streamed, 1, "regular"),
        plan(PlanKind::Streamed, 3, "regular"),
        plan(PlanKind::Tiled, 1, "regular"),
        plan(PlanKind::Tiled, 2, "regular"),
        plan(PlanKind::Persistent, 1, "regular"),
        plan(PlanKind::Resident, 1, "regular"),
        by_levels(plan(PlanKind::Merged, 1, "regular")),
        by_levels(plan(PlanKind::Recomputed, 1, "uncompressed")),
        of_patches(by_levels(plan(PlanKind::Merged, 1, "uncompressed"))),
        by("swic", plan(PlanKind::Walked, 1, "regular")),
        by("queue", plan(PlanKind::Walked, 1, "regular")),
        by("swic", plan(PlanKind::Merged, 1, "regular")),
        plan(PlanKind::Separate, 1, "uncompressed"),
    ]
}

impl Case {
    fn grid(&self) -> Grid {
        let [ni, nj, nk] = self.extents;
        if self.graph.is_some() { Grid::cells(ni, nk) } else { Grid::rows(ni, nj, nk) }
    }

    /// The same on cells that stand in no rows, whose neighbours depend on the seed: nothing lies beyond an edge along i and j there.
    fn on_a_graph(mut self) -> Self {
        for boundary in &mut self.timed.boundaries {
            (boundary.rules[0], boundary.rules[1]) = ([None; 2], [None; 2]);
        }
        self.timed.boundaries.retain(|own| own.rules.iter().flatten().any(Option::is_some));
        // Such cells have no i and no j.
        each_place(&mut self.timed.actions, &mut |within| within.retain(|own| own.axis == 2));
        let graph = Graph::new(self.seed);
        self.linked(graph)
    }

    /// The same on the cells of a graph.
    pub fn linked(self, graph: Graph) -> Self {
        let extents = [graph.adjacency().cells(), 1, self.extents[2]];
        Self { extents, graph: Some(graph), ..self }
    }

    /// In how many parts it is computed, too, if it can be cut.
    fn parts(&self, problem: &ProgramProblem) -> Option<usize> {
        let parts = 2 + (self.seed % 3) as usize;
        (self.graph.is_none() && problem.staged.rows_of_parts(parts).is_ok()).then_some(parts)
    }

    /// The program as the compiler reads it.
    fn program(&self) -> std::result::Result<Program, String> {
        let source = Source::new("random.stn", self.timed.to_string());
        let lowered = stencilc_compiler::check(&source);
        match lowered.is_ok() {
            true => lowered.programs.into_iter().next().ok_or_else(|| "no program".to_owned()),
            false => Err(diagnostic::render(&lowered.diagnostics, &source, false)),
        }
    }

    fn problem(&self, program: &Program) -> Result<ProgramProblem> {
        let facade = program.facade();
        ProgramProblem::new(
            program,
            Request {
                stencil: &facade,
                precision: self.precision,
                contract: false,
                grid: Some(self.grid()),
                adjacency: self.graph.as_ref().map(Graph::adjacency),
                arrays: BTreeMap::new(),
                settings: BTreeMap::new(),
                seed: self.seed,
                cast: stencilc_runtime::Cast::Exact,
                drawing: stencilc_runtime::Drawing::Inputs,
            },
        )
    }
}

impl subject::Case for Case {
    const NAME: &'static str = "programs";
    type Ready = Ready;

    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5bd1_e995);
        let mut pick = |from: &[usize]| from[rng.usize(0..from.len())];
        let kind = if pick(&[0, 1, 2]) == 0 { Kind::Circles } else { Kind::Any };
        let is_graph = kind == Kind::Any && pick(&[0, 1, 2]) == 0;
        let timed = generate::timed(seed, kind);
        let any = [pick(&[4, 5, 7, 8, 9, 12]), pick(&[4, 5, 6, 8]), pick(&[2, 3, 4, 6])];
        // Whole rows of warps, now and then.
        let extents = if kind == Kind::Circles && pick(&[0, 1, 2]) > 0 { [128, pick(&[8, 12, 16]), 2] } else { any };
        let precision = if pick(&[0, 1]) == 0 { Precision::F32 } else { Precision::F64 };
        let mut plans = plans(precision);
        // Most of the last ones refuse what is no circle.
        let plan = match kind {
            Kind::Circles => pick(&[4, 5, 6, 7, 8, 9, 9, 13, 14]),
            Kind::Any if is_graph => pick(&[1, 2, 11, 12, 12, 16]),
            Kind::Any => pick(&[0, 1, 2, 3, 6, 10, 11, 12, 15]),
        };
        let own = Self { seed, timed, extents, graph: None, precision, plan: plans.remove(plan) };
        if is_graph { own.on_a_graph() } else { own }
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn text(&self) -> String {
        let (grid, precision, seed) = (self.grid(), self.precision.name(), self.seed);
        let graph = self.graph.as_ref().map_or(String::new(), |graph| format!("// {graph}\n"));
        let choices = format!("--grid {grid} --precision {precision} --contract off --seed {seed}; {}", self.plan);
        format!("// {choices}\n{graph}{}", self.timed)
    }

    /// Also fused in every way.
    fn prepare(&self) -> Result<Outcome<Ready>> {
        let params = self.timed.params.iter().map(|param| param.default).collect();
        let ground = (self.extents, self.graph.as_ref().map(Graph::adjacency));
        let evaluation = Evaluation::new(&self.timed, ground, self.precision == Precision::F32, params);
        let problem = match self.program().map(|program| self.problem(&program)) {
            // What calls ask of one number may be too much on a grid of few levels.
            Ok(Err(error)) if moving::is_impossible(&error) || moving::is_no_level(&error) => {
                return Ok(Outcome::Nothing);
            }
            other => other.and_then(|problem| problem.map_err(|error| error.message)),
        };
        let (evaluation, problem) = match (evaluation, problem) {
            (Ok(evaluation), Ok(problem)) => (evaluation, problem),
            (Err(_), Err(_)) => return Ok(Outcome::Nothing),
            // What is called in a loop that is run no time is judged as it would be if it were run once.
            (Ok(_), Err(_)) if runs_no_time(&self.timed.actions) => return Ok(Outcome::Nothing),
            (Ok(_), Err(message)) => return Ok(Outcome::Failed(Failure::Rejected(message))),
            (Err(Refused(message)), Ok(_)) => return Ok(Outcome::Failed(Failure::Accepted(message))),
        };
        let reference = match Reference::new(problem, &|_| {}) {
            Ok(reference) => reference,
            Err(error) => return Ok(Outcome::Failed(Failure::Value(error.message))),
        };
        let outer: Vec<VariableId> = reference.problem.staged.program.outer().collect();
        let mut arrays = Arrays::new();
        for (own, &id) in outer.iter().enumerate() {
            arrays.insert(own, doubles(reference.problem.held_before(id)?));
        }
        let found = evaluation.run(arrays);
        let expected: Vec<Option<Data>> = reference
            .outputs
            .iter()
            .enumerate()
            .map(|(own, like)| Some(data(&found[&own], like.as_ref()?, self.timed.variables[own].shape.stored)))
            .collect();
        if let Some(mismatch) = reference.mismatches(&expected).first() {
            let message = mismatch.to_string().replace(" instead of ", " by the evaluator, by the interpreter ");
            return Ok(Outcome::Failed(Failure::Value(message)));
        }
        let stages = reference.problem.staged.stages.len();
        let mut saved = 0;
        for fusing in fusings() {
            let staged = reference.problem.staged.fused(fusing);
            saved = saved.max(stages.saturating_sub(staged.stages.len()));
            let problem = ProgramProblem { staged, ..ProgramProblem::clone(&reference.problem) };
            let wrong = match Reference::new(problem, &|_| {}) {
                Ok(fused) => reference.mismatches(&fused.outputs).first().map(ToString::to_string),
                Err(error) => Some(error.message),
            };
            if let Some(wrong) = wrong {
                let message = format!("{:?}, {} times: {wrong}", fusing.fuse, fusing.times);
                return Ok(Outcome::Failed(Failure::Fused(message)));
            }
        }
        if let Some(parts) = self.parts(&reference.problem)
            && let Some(wrong) = (InParts { reference: &reference, parts }).interpreted()?
        {
            return Ok(Outcome::Failed(Failure::Fused(wrong)));
        }
        Ok(Outcome::Ready(Ready { case: self.clone(), reference, is_fused: saved > 0 }))
    }

    fn compare(ready: &[Ready], tools: &Tools) -> Result<Vec<Verdict>> {
        let ways: Vec<_> = ready.iter().map(|own| own.case.plan.clone()).enumerate().collect();
        // Parts have kernels of the whole, too.
        let library = Library::new(tools);
        let mut verdicts =
            verify_by(&Many(ready.iter().map(|own| &own.reference).collect()), &ways, &library, &|_| {})?;
        for ((_, plan), verdict) in ways.iter().zip(&mut verdicts) {
            // Some ways are there for every program.
            if let Verdict::Refused { reason } = verdict
                && plan.steps == 1
                && matches!(plan.kind, PlanKind::Separate | PlanKind::Merged | PlanKind::Recomputed)
                && !plan.choices.walks()
            {
                let damage = vec![format!("refused: {reason}")];
                *verdict = Verdict::Failed { order: None, mismatches: Vec::new(), damage };
            }
        }
        let cut: Vec<(usize, InParts)> = ready
            .iter()
            .enumerate()
            .filter_map(|(number, own)| {
                let is_equal = matches!(verdicts[number], Verdict::Equal { .. }) && own.case.plan.suits_parts();
                let parts = own.case.parts(&own.reference.problem).filter(|_| is_equal)?;
                Some((number, InParts { reference: &own.reference, parts }))
            })
            .collect();
        let ways: Vec<_> =
            cut.iter().enumerate().map(|(way, (number, _))| (way, ready[*number].case.plan.clone())).collect();
        let in_parts = verify_by(&Many(cut.iter().map(|(_, own)| own).collect()), &ways, &library, &|_| {})?;
        for ((number, _), verdict) in cut.iter().zip(in_parts) {
            // Fused, it may look further than a part has rows.
            if !matches!(verdict, Verdict::Equal { .. } | Verdict::Refused { .. }) {
                verdicts[*number] = verdict;
            }
        }
        Ok(verdicts)
    }

    fn has(ready: &Ready) -> Vec<String> {
        let (mut columns, mut levels) = (false, false);
        each_place(&mut ready.case.timed.actions.clone(), &mut |within| {
            columns |= within.iter().any(|own| own.axis < 2);
            levels |= within.iter().any(|own| own.axis == 2);
        });
        let has = [
            ("calls on some columns", columns),
            ("calls on some levels", levels),
            ("cells in no rows", ready.case.graph.is_some()),
            ("stages that are fused", ready.is_fused),
            ("parts", ready.case.parts(&ready.reference.problem).is_some()),
            ("levels by their numbers", ready.case.timed.to_string().contains("[level ")),
            ("sweeps", ready.case.timed.stencils.iter().any(|own| !own.sweeps.is_empty())),
            ("boundaries", !ready.case.timed.boundaries.is_empty()),
            ("loops", ready.case.timed.actions.iter().any(|own| matches!(own, Action::Repeat(..)))),
        ];
        has.into_iter().filter(|own| own.1).map(|own| own.0.to_owned()).collect()
    }

    fn way(ready: &Ready) -> String {
        ready.case.plan.kind.name().to_owned()
    }

    fn smaller(&self) -> Vec<Self> {
        shrink::smaller(self)
    }
}

fn doubles(data: &Data) -> Vec<f64> {
    (0..data.len()).map(|at| data.get(at)).collect()
}

/// Numbers as an array like another.
fn data(numbers: &[f64], like: &Data, stored: Stored) -> Data {
    match like {
        Data::F32(_) => Data::F32(numbers.iter().map(|&x| x as f32).collect()),
        Data::F64(_) => Data::F64(numbers.to_vec()),
        Data::I32(_) => Data::I32(numbers.iter().map(|&x| x as i32).collect()),
        Data::Bool(_) => Data::Bool(numbers.iter().map(|&x| u8::from(stored == Stored::Int && x != 0.0)).collect()),
    }
}
