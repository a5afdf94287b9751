//! One case: a program in time on a grid, computed by the evaluator, by the interpreter, fused in every way, and by kernels.

use super::evaluate::{Arrays, Evaluation, Refused};
use super::generate::{self, Kind};
use super::tree::{Action, Number, Stored, Timed};
use crate::device::Device;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::diagnostic;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Program, VariableId};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Fuse, Fusing};
use stencilc_compiler::source::Source;
use stencilc_runtime::emulate::Settings;
use stencilc_runtime::problem::Request;
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::plan::{PlanKind, ProgramPlan, usual_shape};
use stencilc_runtime::verify::program::Reference;
use stencilc_runtime::verify::{Tools, Verdict, verify};
use stencilc_runtime::{Data, Result};

/// A program and what it is computed on.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it comes from.
    pub seed: u64,
    /// The program.
    pub timed: Timed,
    /// Cells along i, j and k.
    pub extents: [usize; 3],
    /// What `real` is.
    pub precision: Precision,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A program with a meaning is refused: what the compiler says.
    Refused(String),
    /// A program without one is not: what the evaluator says.
    Accepted(String),
    /// Interpreter and evaluator differ: where.
    Value(String),
    /// What is fused differs from what is not: how, and where.
    Fused(String),
    /// A plan's kernels differ from the interpreter: which, and where.
    Plan(String),
}

impl Failure {
    /// Whether another failure is of the same kind; of two refusals, for the same reason, whatever the names and numbers.
    pub fn is_like(&self, other: &Failure) -> bool {
        let reason = |message: &str| -> String {
            let line = message.lines().find(|line| line.starts_with("error")).unwrap_or(message);
            line.chars().filter(|own| !own.is_ascii_digit()).collect()
        };
        match (self, other) {
            (Failure::Refused(own), Failure::Refused(other)) => reason(own) == reason(other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Whether a loop is run no time.
fn runs_no_time(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Repeat(times, inner) => matches!(times, Number::Whole(0)) || runs_no_time(inner),
        Action::Call { .. } | Action::Rename { .. } | Action::Let(..) => false,
    })
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused(message) => write!(f, "the compiler refuses it: {message}"),
            Failure::Accepted(message) => write!(f, "the compiler accepts it, the evaluator does not: {message}"),
            Failure::Value(message) => write!(f, "interpreter and evaluator differ: {message}"),
            Failure::Fused(message) => write!(f, "fusing changes bits: {message}"),
            Failure::Plan(message) => write!(f, "a plan is wrong: {message}"),
        }
    }
}

/// What became of a case.
pub enum Outcome {
    /// All agree. How many stages fusing saved at most.
    Equal {
        /// What the interpreter computes.
        reference: Box<Reference>,
        /// The most stages that fusing saves.
        saved: usize,
    },
    /// Both say that it has no meaning on this grid.
    Nothing,
    /// Something is wrong.
    Failed(Failure),
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
    ]
}

impl Case {
    /// The case of a seed.
    pub fn new(seed: u64, kind: Kind) -> Self {
        let timed = generate::timed(seed, kind);
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5bd1_e995);
        let mut pick = |from: &[usize]| from[rng.usize(0..from.len())];
        let any = [pick(&[4, 5, 7, 8, 9, 12]), pick(&[4, 5, 6, 8]), pick(&[2, 3, 4, 6])];
        // Whole rows of warps, now and then.
        let extents = if kind == Kind::Circles && pick(&[0, 1, 2]) > 0 { [128, pick(&[8, 12, 16]), 2] } else { any };
        let precision = if pick(&[0, 1]) == 0 { Precision::F32 } else { Precision::F64 };
        Self { seed, timed, extents, precision }
    }

    fn grid(&self) -> Grid {
        let [ni, nj, nk] = self.extents;
        Grid::rows(ni, nj, nk)
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
                adjacency: None,
                arrays: BTreeMap::new(),
                settings: BTreeMap::new(),
                seed: self.seed,
                cast: stencilc_runtime::Cast::Exact,
                drawing: stencilc_runtime::Drawing::Inputs,
            },
        )
    }

    /// Computes it by evaluator and interpreter, and fused.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn compute(&self) -> Result<Outcome> {
        let params = self.timed.params.iter().map(|param| param.default).collect();
        let evaluation = Evaluation::new(&self.timed, self.extents, self.precision == Precision::F32, params);
        let problem = self.program().and_then(|program| self.problem(&program).map_err(|error| error.message));
        let (evaluation, problem) = match (evaluation, problem) {
            (Ok(evaluation), Ok(problem)) => (evaluation, problem),
            (Err(_), Err(_)) => return Ok(Outcome::Nothing),
            // What is called in a loop that is run no time is judged as it would be if it were run once.
            (Ok(_), Err(_)) if runs_no_time(&self.timed.actions) => return Ok(Outcome::Nothing),
            (Ok(_), Err(message)) => return Ok(Outcome::Failed(Failure::Refused(message))),
            (Err(Refused(message)), Ok(_)) => return Ok(Outcome::Failed(Failure::Accepted(message))),
        };
        let reference = match Reference::new(problem) {
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
            let wrong = match Reference::new(ProgramProblem { staged, ..ProgramProblem::clone(&reference.problem) }) {
                Ok(fused) => reference.mismatches(&fused.outputs).first().map(ToString::to_string),
                Err(error) => Some(error.message),
            };
            if let Some(wrong) = wrong {
                let message = format!("{:?}, {} times: {wrong}", fusing.fuse, fusing.times);
                return Ok(Outcome::Failed(Failure::Fused(message)));
            }
        }
        Ok(Outcome::Equal { reference: Box::new(reference), saved })
    }

    /// How it fails, if it does.
    ///
    /// # Errors
    /// The device itself fails.
    pub fn failure(&self, device: &Device) -> Result<Option<Failure>> {
        match self.compute()? {
            Outcome::Failed(failure) => Ok(Some(failure)),
            Outcome::Equal { reference, .. } => Ok(self.compare(&reference, device)?.err()),
            Outcome::Nothing => Ok(None),
        }
    }

    /// Computes it by every plan on a device: those that can, or what is wrong.
    ///
    /// # Errors
    /// The device itself fails.
    pub fn compare(
        &self,
        reference: &Reference,
        device: &Device,
    ) -> Result<std::result::Result<Vec<PlanKind>, Failure>> {
        let plans = plans(self.precision);
        let tools = match device {
            Device::None => return Ok(Ok(Vec::new())),
            Device::Emulator(compiler) => Tools::emulated(compiler, Settings { optimise: 1, ..Settings::default() }),
            Device::Gpu(gpu) => Tools::on_gpu(Arc::clone(gpu)),
        };
        let verdicts = verify(reference, &plans, &tools, &|_| {})?;
        let mut equal = Vec::new();
        for (plan, verdict) in plans.iter().zip(verdicts) {
            let needed =
                matches!((plan.kind, plan.steps), (PlanKind::Separate | PlanKind::Merged | PlanKind::Recomputed, 1));
            match verdict {
                Verdict::Equal { .. } => equal.push(plan.kind),
                Verdict::Refused { .. } if !needed => {}
                verdict => return Ok(Err(Failure::Plan(format!("{plan}: {verdict:?}")))),
            }
        }
        Ok(Ok(equal))
    }

    /// The text, headed by what it is computed on.
    pub fn text(&self) -> String {
        format!(
            "// --grid {} --precision {} --contract off --seed {}\n{}",
            self.grid(),
            self.precision.name(),
            self.seed,
            self.timed
        )
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
