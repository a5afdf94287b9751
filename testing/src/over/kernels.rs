//! One case by kernels, of some strategy, in some layout and order of elements: where the strategy keeps the order
//! of what is added, every bit has to be the interpreter's; where not, sums have to be as near as another order can make them.

use super::case::{Case, Outcome};
use crate::device::Device;
use fastrand::Rng;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::mesh::{Additions, MeshChoices, STRATEGIES, Strategy, VectorLayout};
use stencilc_compiler::source::Source;
use stencilc_runtime::build::Build;
use stencilc_runtime::emulate::{Compiler, Emulator, Settings};
use stencilc_runtime::mesh::order::{self, Options};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Reader, Renumbered};
use stencilc_runtime::mesh::program::measure::{self, Results, results};
use stencilc_runtime::mesh::program::{MeshProblem, alone, alone_from_zero};
use stencilc_runtime::verify::mesh::Expected;
use stencilc_runtime::{Data, Fault, Result};

impl Case {
    /// Computes it by the interpreter and by kernels.
    ///
    /// # Errors
    /// There is not enough memory, or no compiler.
    pub fn compute_by_kernels(&self, device: &Device) -> Result<Outcome> {
        match device {
            Device::None => Ok(Outcome::Nothing),
            Device::Emulator(compiler) => self.compute_on(emulator(compiler)),
            Device::Gpu(gpu) => self.compute_on(Arc::clone(gpu)),
        }
    }

    fn compute_on<M: Build>(&self, machine: Arc<M>) -> Result<Outcome> {
        let lowered = stencilc_compiler::check(&Source::new("random.stn", self.text()));
        // Choices that have nothing to do with each other, and with what the stencil is.
        let draw = |n: usize| (Rng::with_seed(self.seed ^ 0x6d65_7368).u64(..) >> (8 * n)) as usize;
        let program = if draw(0).is_multiple_of(2) { alone } else { alone_from_zero };
        let Some(program) = lowered.mesh_stencils.first().filter(|_| lowered.is_ok()).map(program) else {
            return Ok(Outcome::Nothing);
        };
        let mut problem = MeshProblem::new(self.request(&program, true))?;
        let choices = MeshChoices {
            strategy: STRATEGIES[draw(1) % STRATEGIES.len()],
            layout: VectorLayout::ALL[draw(2) % 3],
            // Meshes are small, and tiles and blocks are to be several.
            block: [4, 32][draw(4) % 2],
            ..MeshChoices::default()
        };
        // Without an order, what is no number has no bound.
        if choices.strategy.is_ordered() && draw(6).is_multiple_of(2) {
            make_extreme(&mut problem, &mut Rng::with_seed(self.seed));
        }
        let problem = Arc::new(problem);
        let Ok(expected) = results(&problem, Interpreter::new(Arc::clone(&problem))) else {
            return Ok(Outcome::Nothing);
        };
        let method = ["random", "none", "metis"][draw(3) % 3];
        let lead = draw(5) % problem.mesh.sets.len();
        let ordering = order::find(method)?.ordering(&problem.mesh, &Options { block: 6, ..Options::new(lead) })?;
        let texts = Rc::<RefCell<String>>::default();
        let renumbered = Rc::new(Renumbered::new(&problem, &ordering)?);
        let kernels = Kernels::new(Arc::clone(&problem), machine, choices, renumbered).read_by(kept_in(&texts));
        let wrong = match difference(&problem, &kernels, choices.strategy, &expected) {
            Ok(wrong) => wrong,
            // What a strategy cannot do, it says.
            Err(error)
                if error.fault == Fault::Input
                    && ["holds whole numbers", "lead to one place", "atomic", "is added"]
                        .iter()
                        .any(|own| error.message.contains(own)) =>
            {
                return Ok(Outcome::Nothing);
            }
            Err(error) => return Ok(Outcome::Failed(format!("{error}\n{choices:?}\n{}", self.text()))),
        };
        if let Some(wrong) = wrong {
            let texts = texts.borrow();
            return Ok(Outcome::Failed(format!("{wrong}\n{choices:?}, {method}\n{}\n{texts}", self.text())));
        }
        Ok(Outcome::Equal)
    }
}

/// Makes some numbers of a problem such as divisions and sums have to take care of.
pub(super) fn make_extreme(problem: &mut MeshProblem, rng: &mut Rng) {
    for data in problem.initial.values_mut() {
        for index in 0..data.len() {
            let number = [0.0, -0.0, 1e-300, -1e300, 1e-38, 1e30, f64::INFINITY, f64::NAN][rng.usize(0..8)];
            match data {
                _ if rng.usize(0..6) > 0 => {}
                Data::F64(all) => all[index] = number,
                Data::F32(all) => all[index] = number as f32,
                Data::I32(_) | Data::Bool(_) => {}
            }
        }
    }
}

/// An emulator whose kernels nobody needs again.
pub(super) fn emulator(compiler: &Compiler) -> Arc<Emulator> {
    Arc::new(Emulator::new(compiler.clone(), Settings { optimise: 0, ..Settings::default() }).uncached())
}

/// Keeps the texts of kernels.
pub(super) fn kept_in(texts: &Rc<RefCell<String>>) -> Rc<Reader> {
    let texts = Rc::clone(texts);
    Rc::new(move |_, text| {
        texts.borrow_mut().push_str(text);
        Ok(())
    })
}

/// How kernels differ from what the interpreter computes, if they do more than they may.
fn difference<M: Build>(
    problem: &Arc<MeshProblem>,
    kernels: &Kernels<M>,
    strategy: &'static dyn Strategy,
    expected: &Results,
) -> Result<Option<String>> {
    let found = results(problem, kernels)?;
    if strategy.is_ordered() {
        return Ok(measure::difference(expected, &found));
    }
    // Another order of the additions, but the same each time, unless the hardware adds as things come.
    if strategy.additions() != Additions::AsTheyCome
        && let Some(wrong) = measure::difference(&found, &results(problem, kernels)?)
    {
        return Ok(Some(format!("run again: {wrong}")));
    }
    let measured = measure::measure(problem, kernels, &Expected::new(problem)?, 1)?;
    Ok(measure::wrong(&measured.verdict))
}
