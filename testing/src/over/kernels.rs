//! One case by kernels on the emulator, of a strategy that keeps the order of what is added, in some layout and order of
//! elements: every bit has to be the interpreter's.

use super::case::{Case, Outcome};
use std::cell::RefCell;
use std::rc::Rc;
use stencilc_compiler::mesh::{Choices, Layout, Strategy};
use stencilc_compiler::source::Source;
use stencilc_runtime::emulate::{self, Compiler, Emulator, Settings};
use stencilc_runtime::mesh::order::{self, Options};
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::driver::{Backend, Driver};
use stencilc_runtime::mesh::program::kernels::{Kernels, Placed};
use stencilc_runtime::mesh::program::{MeshProblem, alone, alone_from_zero};
use stencilc_runtime::{Data, Error, Fault, Result};

impl Case {
    /// Computes it by the interpreter and by kernels.
    ///
    /// # Errors
    /// There is not enough memory, or no C++ compiler.
    pub fn compute_by_kernels(&self, compiler: &Compiler) -> Result<Outcome> {
        let lowered = stencilc_compiler::check(&Source::new("random.stn", self.text()));
        // Choices that have nothing to do with each other, and with what the stencil is.
        let draw = |n: usize| (fastrand::Rng::with_seed(self.seed ^ 0x6d65_7368).u64(..) >> (8 * n)) as usize;
        let program = if draw(0).is_multiple_of(2) { alone } else { alone_from_zero };
        let Some(program) = lowered.mesh_stencils.first().filter(|_| lowered.is_ok()).map(program) else {
            return Ok(Outcome::Nothing);
        };
        let problem = MeshProblem::new(self.request(&program, true))?;
        let interpreter = Interpreter::new(&problem);
        let Ok(expected) = run(&problem, &interpreter) else { return Ok(Outcome::Nothing) };
        let choices = Choices {
            strategy: [Strategy::Owner, Strategy::Owner, Strategy::TwoStep][draw(1) % 3],
            layout: Layout::ALL[draw(2) % 3],
            block: 32,
            blocks_at_once: 0,
        };
        let method = if draw(3).is_multiple_of(2) { "random" } else { "none" };
        let ordering = order::find(method)?.ordering(&problem.mesh, &Options::new(0))?;
        let texts = RefCell::new(String::new());
        let load = |name: &str, text: &str| {
            texts.borrow_mut().push_str(text);
            let source = emulate::Source { name, text };
            let image = compiler.compile(&[source], &Settings { optimise: 0, ..Settings::default() })?;
            let mut loaded = emulate::load(&image, &[source])?;
            loaded.pop().ok_or_else(|| Error::check(format!("`{name}` is not in what was compiled")))
        };
        let machine = Emulator::default();
        let kernels = Kernels::new(&problem, &machine, choices, Rc::new(Placed::new(&problem, &ordering)?), &load);
        let found = match run(&problem, &kernels) {
            Ok(found) => found,
            // What a strategy cannot do, it says.
            Err(error) if error.fault == Fault::Input && error.message.contains("added") => {
                return Ok(Outcome::Nothing);
            }
            Err(error) => return Ok(Outcome::Failed(format!("{error}\n{choices:?}\n{}", self.text()))),
        };
        for ((name, expected), (_, found)) in expected.iter().zip(&found) {
            if let Some(at) = (0..expected.len()).find(|&at| expected.bits(at) != found.bits(at)) {
                let (a, b) = (expected.get(at), found.get(at));
                let wrong = format!("{name}[{at}]: {a:?} by the interpreter, by kernels {b:?}");
                return Ok(Outcome::Failed(format!(
                    "{wrong}\n{choices:?}, {method}\n{}\n{}",
                    self.text(),
                    texts.borrow()
                )));
            }
        }
        Ok(Outcome::Equal)
    }
}

/// What the outputs are, by their names.
fn run<B: Backend>(problem: &MeshProblem, backend: &B) -> Result<Vec<(String, Data)>> {
    let mut driver = Driver::new(problem, backend)?;
    driver.run(&mut |_, _| Ok(()))?;
    let name = |id| problem.program.program.variables[id].name.clone();
    Ok(driver.results()?.into_iter().filter_map(|(id, data)| Some((name(id), data?))).collect())
}
