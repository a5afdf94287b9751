//! One case: a stencil over a mesh, computed by the evaluator and by the interpreter.

use super::evaluate::{Evaluation, Results};
use super::generate;
use super::tree::{Missing, Stencil, Write};
use std::collections::BTreeMap;
use stencilc_compiler::diagnostic;
use stencilc_compiler::ir::{MeshProgram, Precision};
use stencilc_compiler::source::Source;
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::{MeshProblem, Request, alone};
use stencilc_runtime::mesh::{Map, Mesh, Set};
use stencilc_runtime::{Data, Result};

/// A stencil and what it is computed on.
pub struct Case {
    /// Where it comes from.
    pub seed: u64,
    stencil: Stencil,
    precision: Precision,
}

/// What became of a case.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Both agree.
    Equal,
    /// No level can be computed, and both say so; or it is beyond what the compiler takes.
    Nothing,
    /// Something is wrong.
    Failed(String),
}

impl Case {
    /// The case of a seed.
    pub fn new(seed: u64) -> Self {
        let precision = if seed.is_multiple_of(2) { Precision::F64 } else { Precision::F32 };
        Self { seed, stencil: generate::stencil(seed), precision }
    }

    /// What of the language it has: holes that are skipped or have a value, levels, increments, reductions, outputs.
    pub fn has(&self) -> impl Iterator<Item = &'static str> {
        let Stencil { mesh, writes, lets, .. } = &self.stencil;
        let holes = |missing: fn(&Missing) -> bool| {
            mesh.maps.iter().any(|map| missing(&map.missing) && map.table.contains(&super::tree::HOLE))
        };
        let write = |of: fn(&Write) -> bool| writes.iter().any(|(write, _)| of(write));
        [
            ("skipped holes", holes(|own| *own == Missing::Skip)),
            ("holes with a value", holes(|own| matches!(own, Missing::Value(_)))),
            ("levels", mesh.levels.is_some()),
            ("lets", !lets.is_empty()),
            ("outputs", write(|own| matches!(own, Write::Out(_)))),
            ("increments", write(|own| matches!(own, Write::Inc(..)))),
            ("reductions", write(|own| matches!(own, Write::Reduce(..)))),
        ]
        .into_iter()
        .filter_map(|(name, has)| has.then_some(name))
    }

    fn mesh(&self) -> Mesh {
        given(&self.stencil.mesh)
    }

    /// The stencil as it is written.
    pub fn text(&self) -> String {
        self.stencil.to_string()
    }

    /// What is computed, by drawn numbers.
    pub fn request<'p>(&self, program: &'p MeshProgram, contract: bool) -> Request<'p> {
        Request {
            program,
            precision: self.precision,
            contract,
            mesh: self.mesh(),
            levels: self.stencil.mesh.levels,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: self.seed,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Inputs,
        }
    }

    /// Computes it by evaluator and interpreter.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn compute(&self) -> Result<Outcome> {
        let source = Source::new("random.stn", self.text());
        let lowered = stencilc_compiler::check(&source);
        let Some(program) = lowered.mesh_stencils.first().filter(|_| lowered.is_ok()).map(alone) else {
            let message = diagnostic::render(&lowered.diagnostics, &source, false);
            // Constants that overflow are errors, and so is what grows too large.
            let limits = ["this whole number does not fit 32 bits", "operations when written out"];
            return Ok(match limits.iter().any(|limit| message.contains(limit)) {
                true => Outcome::Nothing,
                false => Outcome::Failed(message),
            });
        };
        let problem = MeshProblem::new(self.request(&program, false))?;
        let initial = |name: String| {
            let mut all = problem.program.program.variables.iter();
            let data = all.find(|(_, own)| own.name == name).and_then(|(id, _)| problem.initial.get(&id));
            data.map(doubles).unwrap_or_default()
        };
        let inputs: Vec<Vec<f64>> = (0..self.stencil.inputs.len()).map(|n| initial(format!("f{n}"))).collect();
        let sums = (0..self.stencil.sums.len()).map(|n| initial(format!("a{n}"))).collect();
        let evaluation = Evaluation::new(&self.stencil, self.precision == Precision::F32, &inputs, &[]);
        let outputs = self.stencil.writes.iter().map(|(write, _)| evaluation.fresh(write)).collect();
        let expected = evaluation.run(sums, outputs);
        let interpreter = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&interpreter).given()?;
        match (driver.finish(), expected) {
            (Err(_), None) => Ok(Outcome::Nothing),
            (Err(error), Some(_)) => Ok(Outcome::Failed(format!("{error}\n{}", self.stencil))),
            (Ok(()), None) => Ok(Outcome::Failed(format!("accepted without a level to compute\n{}", self.stencil))),
            (Ok(()), Some(expected)) => {
                let mut found = BTreeMap::new();
                for (id, data) in driver.results()? {
                    let data = data.as_ref().map(doubles).unwrap_or_default();
                    found.insert(problem.program.program.variables[id].name.clone(), data);
                }
                Ok(match self.difference(&found, &expected) {
                    None => Outcome::Equal,
                    Some(wrong) => Outcome::Failed(format!("{wrong}\n{}\n{:?}", self.stencil, self.stencil.mesh)),
                })
            }
        }
    }

    /// Where both differ first.
    fn difference(&self, found: &BTreeMap<String, Vec<f64>>, expected: &Results) -> Option<String> {
        let writes = expected.writes.iter().zip(&self.stencil.writes).enumerate();
        let outputs = writes.filter(|(_, (_, (write, _)))| !matches!(write, Write::Inc(..)));
        let outputs = outputs.map(|(number, (all, _))| (format!("w{number}"), all));
        let sums = expected.sums.iter().enumerate().map(|(number, all)| (format!("a{number}"), all));
        for (name, all) in outputs.chain(sums) {
            let own = &found[&name];
            if own.len() != all.len() {
                return Some(format!("{name}: {} numbers instead of {}", own.len(), all.len()));
            }
            let differ = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
            if let Some(at) = own.iter().zip(all).position(differ) {
                return Some(format!("{name}[{at}]: {:?} by the evaluator, by the interpreter {:?}", all[at], own[at]));
            }
        }
        None
    }
}

/// A mesh as it would come from a file.
pub(super) fn given(own: &super::tree::Mesh) -> Mesh {
    let sets = own.sets.iter().enumerate().map(|(set, &size)| Set { name: format!("s{set}"), size });
    let maps = own.maps.iter().enumerate().map(|(number, map)| Map {
        name: format!("m{number}"),
        from: map.from,
        to: map.to,
        arity: map.arity,
        table: map.table.clone(),
    });
    Mesh { origin: "a random mesh".to_owned(), sets: sets.collect(), maps: maps.collect(), fields: Vec::new() }
}

pub(super) fn doubles(data: &Data) -> Vec<f64> {
    (0..data.len()).map(|at| data.get(at)).collect()
}
