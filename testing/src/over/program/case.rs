//! One case: a program over a mesh, by the evaluator, by the interpreter, and by kernels.

use super::evaluate::{self, Arrays};
use super::tree::Program;
use super::{generate, shrink};
use crate::device::Device;
use crate::over::case::{Outcome, doubles, given};
use crate::over::kernels::{emulator, kept_in, make_extreme};
use fastrand::Rng;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use stencilc_compiler::diagnostic;
use stencilc_compiler::ir::{MeshProgram, Precision};
use stencilc_compiler::mesh::{MeshChoices, STRATEGIES, VectorLayout};
use stencilc_compiler::source::Source;
use stencilc_runtime::build::Build;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::order::{self, Options};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{difference, results};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::{Fault, Result};

/// A program and what it is computed on.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it comes from.
    pub seed: u64,
    program: Program,
    precision: Precision,
}

/// What of a program is larger than the compiler takes, or is known to be wrong before it runs.
const LIMITS: [&str; 3] =
    ["this whole number does not fit 32 bits", "operations when written out", "operations when all"];

impl Case {
    /// The case of a seed.
    pub fn new(seed: u64) -> Self {
        let precision = if seed.is_multiple_of(2) { Precision::F64 } else { Precision::F32 };
        Self { seed, program: generate::program(seed), precision }
    }

    /// The program as it is written.
    pub fn text(&self) -> String {
        self.program.to_string()
    }

    fn lowered(&self) -> std::result::Result<MeshProgram, String> {
        let source = Source::new("random.stn", self.text());
        let lowered = stencilc_compiler::check(&source);
        match lowered.is_ok() {
            true => lowered.mesh_programs.into_iter().next().ok_or_else(|| "no program".to_owned()),
            false => Err(diagnostic::render(&lowered.diagnostics, &source, false)),
        }
    }

    fn problem(&self, program: &MeshProgram, contract: bool) -> Result<MeshProblem> {
        MeshProblem::new(Request {
            program,
            precision: self.precision,
            contract,
            mesh: given(&self.program.mesh),
            levels: self.program.mesh.levels,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: self.seed,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        })
    }

    /// Computes it by evaluator and interpreter.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn compute(&self) -> Result<Outcome> {
        let lowered = match self.lowered() {
            Ok(lowered) => lowered,
            Err(message) if LIMITS.iter().any(|limit| message.contains(limit)) => return Ok(Outcome::Nothing),
            Err(message) => return Ok(Outcome::Failed(format!("refused: {message}"))),
        };
        let problem = self.problem(&lowered, false)?;
        let mut arrays = Arrays::new();
        for (id, own) in problem.program.program.variables.iter() {
            let number = own.name.strip_prefix('v').and_then(|number| number.parse().ok());
            if let (Some(number), Some(data)) = (number, problem.initial.get(&id)) {
                arrays.insert(number, doubles(data));
            }
        }
        let expected = evaluate::run(&self.program, self.precision == Precision::F32, arrays);
        let interpreter = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&interpreter).given()?;
        let expected = match (driver.finish(), expected) {
            (Err(_), None) => return Ok(Outcome::Nothing),
            (Err(error), Some(_)) => return Ok(Outcome::Failed(format!("not computed: {error}"))),
            (Ok(()), None) => return Ok(Outcome::Failed("accepted: without a level to compute".to_owned())),
            (Ok(()), Some(expected)) => expected,
        };
        for (id, data) in driver.results()? {
            let name = &problem.program.program.variables[id].name;
            let number: usize = name.strip_prefix('v').and_then(|own| own.parse().ok()).unwrap_or_default();
            let (own, all) = (data.as_ref().map(doubles).unwrap_or_default(), &expected[&number]);
            let differ = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
            let wrong = if own.len() == all.len() { own.iter().zip(all).position(differ) } else { Some(0) };
            if let Some(at) = wrong {
                let [all, own] = [all, &own].map(|all| all.get(at));
                let message = format!("differs: {name}[{at}]: {all:?} by the evaluator, by the interpreter {own:?}");
                return Ok(Outcome::Failed(message));
            }
        }
        Ok(Outcome::Equal)
    }

    /// Computes it by the interpreter and by kernels, of a strategy that adds in order. Returns how many chains there were, too.
    ///
    /// # Errors
    /// There is not enough memory, or no compiler.
    pub fn compute_by_kernels(&self, device: &Device) -> Result<(Outcome, usize)> {
        match device {
            Device::None => Ok((Outcome::Nothing, 0)),
            Device::Emulator(compiler) => self.compute_on(emulator(compiler)),
            Device::Gpu(gpu) => self.compute_on(Arc::clone(gpu)),
        }
    }

    fn compute_on<M: Build>(&self, machine: Arc<M>) -> Result<(Outcome, usize)> {
        let Ok(lowered) = self.lowered() else { return Ok((Outcome::Nothing, 0)) };
        let mut rng = Rng::with_seed(self.seed ^ 0x6b65_726e);
        let mut problem = self.problem(&lowered, rng.bool())?;
        if rng.bool() {
            make_extreme(&mut problem, &mut rng);
        }
        let problem = Arc::new(problem);
        let chains = problem.chains.len();
        let Ok(expected) = results(&problem, Interpreter::new(Arc::clone(&problem))) else {
            return Ok((Outcome::Nothing, chains));
        };
        let ordered: Vec<_> = STRATEGIES.iter().filter(|own| own.is_ordered()).collect();
        let strategy =
            if rng.usize(0..5) < 3 { MeshChoices::default().strategy } else { *ordered[rng.usize(0..ordered.len())] };
        let layout = VectorLayout::ALL[rng.usize(0..3)];
        let choices = MeshChoices { strategy, layout, block: [4, 32][rng.usize(0..2)], ..MeshChoices::default() };
        let method = ["random", "none"][rng.usize(0..2)];
        let lead = rng.usize(0..problem.mesh.sets.len());
        let ordering = order::find(method)?.ordering(&problem.mesh, &Options::new(lead))?;
        let renumbered = Rc::new(Renumbered::new(&problem, &ordering)?);
        let texts = Rc::<RefCell<String>>::default();
        let kernels = Kernels::new(Arc::clone(&problem), machine, choices, renumbered).read_by(kept_in(&texts));
        let wrong = match results(&problem, &kernels) {
            Ok(found) => difference(&expected, &found).map(|wrong| format!("kernels differ: {wrong}")),
            // What a strategy cannot do, it says.
            Err(error)
                if error.fault == Fault::Input
                    && ["holds whole numbers", "lead to one place", "is added"]
                        .iter()
                        .any(|own| error.message.contains(own)) =>
            {
                return Ok((Outcome::Nothing, chains));
            }
            Err(error) => Some(format!("kernels fail: {error}")),
        };
        let failed = |wrong| Outcome::Failed(format!("{wrong}\n{choices:?}, {method}\n{}", texts.borrow()));
        Ok((wrong.map_or(Outcome::Equal, failed), chains))
    }

    /// A smaller case that fails in the same way: `by` kernels, or by evaluator and interpreter.
    ///
    /// # Errors
    /// Those of computing it.
    pub fn shrunk(&self, by: Option<&Device>, deadline: Instant) -> Result<Case> {
        let outcome = |own: &Case| match by {
            Some(device) => own.compute_by_kernels(device).map(|(outcome, _)| outcome),
            None => own.compute(),
        };
        let like = |outcome: &Outcome| match outcome {
            Outcome::Failed(message) => {
                let line = message.lines().next().unwrap_or_default();
                // Of refusals, the same words.
                let length = if line.starts_with("refused") { 60 } else { 12 };
                Some(line.chars().filter(|own| !own.is_ascii_digit()).take(length).collect::<String>())
            }
            Outcome::Equal | Outcome::Nothing => None,
        };
        let own = like(&outcome(self)?);
        let of = |program: &Program| Case { program: program.clone(), ..self.clone() };
        let program =
            shrink::shrink(
                self.program.clone(),
                deadline,
                &|own_program| Ok(like(&outcome(&of(own_program))?) == own),
            )?;
        Ok(of(&program))
    }

    /// What of the language it has.
    pub fn has(&self) -> impl Iterator<Item = &'static str> {
        let text = self.text();
        [
            ("loops", "    repeat "),
            ("increments", "] += "),
            ("sums that go on", ", a0 = v"),
            ("reductions", "    reduce "),
            ("numbers that are passed on", "p0 = v"),
            ("sums over maps", "(sum(c"),
            ("levels", "levels k"),
            ("other levels", ", k"),
            ("fields that are given new numbers", "    inout "),
        ]
        .into_iter()
        .filter_map(move |(what, word)| text.contains(word).then_some(what))
    }
}
