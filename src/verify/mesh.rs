//! `stencilc verify` of stencils over meshes: every strategy, layout and order against the interpreter.

use super::Args;
use super::bench::Bench;
use super::outcome::Totals;
use crate::args::mesh::MeshArgs;
use crate::drawn::DrawnOver;
use crate::input::Input;
use crate::terminal::Progress;
use serde::Serialize;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{MeshStencil, Precision};
use stencilc_compiler::mesh::{Kernel, MeshChoices, VectorLayout};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::build::Build;
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::emulate::{Emulator, Order, Settings};
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::mesh::program::kernels::{Kernels, Reader, Renumbered};
use stencilc_runtime::mesh::program::measure::{self, Expected, Verdict};
use stencilc_runtime::mesh::program::ways::Variant;
use stencilc_runtime::nvrtc::Kind;
use stencilc_runtime::{Fault, Result};

/// Threads of a block: few, so that a small mesh has several.
pub const THREADS: u32 = 64;

/// A stencil on a mesh in one precision, and what came of all its kernels.
#[derive(Serialize)]
pub struct Case {
    file: String,
    stencil: String,
    mesh: String,
    precision: Precision,
    /// Whether what is added to starts from 0, and not from what was there.
    from_zero: bool,
    seed: u64,
    /// Why nothing can be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    combinations: Vec<Combination>,
}

/// One way to compute it.
#[derive(Serialize)]
struct Combination {
    #[serde(flatten)]
    variant: Variant,
    #[serde(flatten)]
    outcome: Outcome,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "status")]
pub enum Outcome {
    /// Every bit is that of the interpreter.
    Equal,
    /// A strategy that adds in no order has other bits: within what any order of the additions may come to.
    Within {
        /// At most 1.
        share: f64,
    },
    /// There was nothing to run it on.
    Compiled,
    /// There was nothing to compile it by.
    Skipped,
    /// The strategy cannot compute it.
    Refused { reason: String },
    /// It is wrong.
    Failed { what: String },
}

/// The orders that are verified if none is named: as it is, one that ties neighbours together, and one that does not.
pub const ORDERS: [&str; 3] = ["none", "hilbert", "random"];

/// How many kernels a stencil is compared by, in one precision.
pub fn count(args: &Args, stencil: &MeshStencil) -> usize {
    let own = &args.over;
    let each =
        own.strategies_for(stencil).len() * own.layouts(&VectorLayout::ALL).len() * own.threads(&[THREADS]).len();
    each * own.orders(&ORDERS).len() * starts(stencil).len()
}

/// Whether what is added to starts from 0: both ways, if anything is added to.
pub fn starts(stencil: &MeshStencil) -> &'static [bool] {
    if stencil.incremented().next().is_some() { &[false, true] } else { &[false] }
}

/// Verifies every kernel of a stencil on a mesh.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device.
pub fn verify(
    args: &Args,
    bench: &Bench,
    progress: &Progress,
    (input, stencil): (&Input, &MeshStencil),
    precision: Precision,
    from_zero: bool,
) -> Result<Case> {
    let own = &args.over;
    let problem = DrawnOver {
        program: &measure::program(stencil, from_zero),
        precision,
        contract: args.launch.code.contract,
        over: own,
        levels: args.levels,
        set: &args.set,
        seed: args.seed,
    };
    let problem = problem.problem()?;
    let mut case = Case {
        file: input.source.name.clone(),
        stencil: stencil.stencil.name.clone(),
        mesh: own.mesh.as_ref().map(|path| path.display().to_string()).unwrap_or_default(),
        precision,
        from_zero,
        seed: args.seed,
        error: None,
        combinations: Vec::new(),
    };
    let expected = match measure::expected(&problem) {
        Ok(expected) => expected,
        Err(error) if error.fault == Fault::Check => {
            case.error = Some(error.to_string());
            return Ok(case);
        }
        Err(error) => return Err(error),
    };
    let reference = OfStencil { problem: Arc::new(problem), expected };
    for (order, renumbered) in ordered(own, &reference.problem)? {
        for strategy in own.strategies_for(stencil) {
            for layout in own.layouts(&VectorLayout::ALL) {
                for threads in own.threads(&[THREADS]) {
                    let choices = MeshChoices {
                        strategy,
                        layout,
                        block: threads.block,
                        blocks_at_once: threads.at_once,
                        ..MeshChoices::default()
                    };
                    let outcome = bench.try_on_mesh(&reference, &renumbered, choices)?;
                    case.combinations.push(Combination { variant: Variant::new(choices, order), outcome });
                    progress.advance(1);
                }
            }
        }
    }
    Ok(case)
}

/// What kernels are compared with.
pub trait Reference {
    /// What is computed.
    fn problem(&self) -> &Arc<MeshProblem>;

    /// What comes of kernels.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    fn compared<M: Build>(&self, kernels: &Kernels<M>, choices: MeshChoices) -> Result<Outcome>;

    /// The kernels, where these are known before anything is computed.
    ///
    /// # Errors
    /// The strategy cannot compute it.
    fn kernels(&self, renumbered: &Renumbered, choices: &MeshChoices) -> Result<Option<Vec<Kernel>>>;
}

/// A stencil, and what the interpreter makes of it.
struct OfStencil {
    problem: Arc<MeshProblem>,
    expected: Expected,
}

impl Reference for OfStencil {
    fn problem(&self) -> &Arc<MeshProblem> {
        &self.problem
    }

    fn compared<M: Build>(&self, kernels: &Kernels<M>, choices: MeshChoices) -> Result<Outcome> {
        Ok(match measure::verify(&self.problem, kernels, &self.expected)? {
            Verdict::Equal => Outcome::Equal,
            Verdict::Differs { what } => Outcome::Failed { what },
            Verdict::Within { share } if choices.strategy.is_ordered() => Outcome::Failed {
                what: format!("it adds in order, and is off by {share:.2} of what any order may come to"),
            },
            Verdict::Within { share } => Outcome::Within { share },
        })
    }

    fn kernels(&self, renumbered: &Renumbered, choices: &MeshChoices) -> Result<Option<Vec<Kernel>>> {
        renumbered.kernels(&self.problem, measure::only_call(&self.problem)?, choices).map(Some)
    }
}

impl Bench {
    /// What comes of one way to compute something.
    ///
    /// # Errors
    /// There is no memory, or the device fails.
    pub fn try_on_mesh(
        &self,
        of: &impl Reference,
        renumbered: &Rc<Renumbered>,
        choices: MeshChoices,
    ) -> Result<Outcome> {
        match self.outcome(of, renumbered, choices) {
            Err(error) if error.fault == Fault::Input => Ok(Outcome::Refused { reason: error.message }),
            Err(error) if error.fault == Fault::Check => Ok(Outcome::Failed { what: error.message }),
            outcome => outcome,
        }
    }

    fn outcome(&self, of: &impl Reference, renumbered: &Rc<Renumbered>, choices: MeshChoices) -> Result<Outcome> {
        if let Some(gpu) = &self.gpu {
            let (problem, renumbered) = (Arc::clone(of.problem()), Rc::clone(renumbered));
            return of.compared(&Kernels::new(problem, Arc::clone(gpu), choices, renumbered), choices);
        }
        // What NVRTC does not take has failed, wherever else it runs.
        let by_nvrtc = self.by_nvrtc();
        let Some(compiler) = &self.emulator else {
            let Some(kernels) = of.kernels(renumbered, &choices)?.filter(|_| self.has_nvrtc) else {
                return Ok(Outcome::Skipped);
            };
            kernels.iter().try_for_each(|kernel| by_nvrtc(&kernel.code.name, &cuda::text(&kernel.code)?))?;
            return Ok(Outcome::Compiled);
        };
        let mut all = Outcome::Equal;
        for order in Order::ALL {
            let settings = Settings { optimise: 2, ..Settings::default() };
            let machine = Arc::new(Emulator::new(compiler.clone(), settings).in_order(order));
            let (problem, renumbered) = (Arc::clone(of.problem()), Rc::clone(renumbered));
            let kernels = Kernels::new(problem, machine, choices, renumbered).read_by(Rc::clone(&by_nvrtc));
            all = match (all, of.compared(&kernels, choices)?) {
                (_, Outcome::Failed { what }) => {
                    return Ok(Outcome::Failed { what: format!("threads in {order} order: {what}") });
                }
                (Outcome::Within { share: a }, Outcome::Within { share: b }) => Outcome::Within { share: a.max(b) },
                (Outcome::Within { share }, _) => Outcome::Within { share },
                (_, own) => own,
            };
        }
        Ok(all)
    }

    /// Compiles texts by NVRTC, if there is one.
    fn by_nvrtc(&self) -> Rc<Reader> {
        let arch = self.has_nvrtc.then(|| self.arch.clone());
        Rc::new(move |name, text| match &arch {
            Some(arch) => compile_cached(text, &format!("{name}.cu"), arch, Kind::Cubin).map(|_| ()),
            None => Ok(()),
        })
    }
}

/// The orders that are asked for, each with its name. Without coordinates there is another one that ties neighbours together.
///
/// # Errors
/// The mesh lacks what an order needs that was named.
pub fn ordered(own: &MeshArgs, problem: &MeshProblem) -> Result<Vec<(&'static str, Rc<Renumbered>)>> {
    let mut all = Vec::new();
    for name in own.orders(&ORDERS) {
        let ordered = match own.ordering(problem, name) {
            Err(_) if !own.has_order() && name == "hilbert" => own.ordering(problem, "rcm")?,
            ordered => ordered?,
        };
        all.push((ordered.name, Rc::new(Renumbered::new(problem, &ordered.ordering)?)));
    }
    Ok(all)
}

impl Case {
    /// What came of its kernels.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.combinations.iter().map(|combination| &combination.outcome)
    }

    /// `res_calc f64 on airfoil.npz: 24 equal`, and what failed.
    pub fn text(&self, args: &Args) -> String {
        let Case { file, stencil, precision, mesh, seed, .. } = self;
        let mut totals = Totals::default();
        totals.add_of_meshes(self.outcomes(), self.error.is_some());
        let start = if self.from_zero { ", from zero" } else { "" };
        let mut text = format!("{stencil} {} on {mesh}{start}: {totals}\n", precision.name());
        if let Some(error) = &self.error {
            text.push_str(&format!("  {error}\n"));
        }
        for Combination { variant, outcome } in &self.combinations {
            let Outcome::Failed { what } = outcome else { continue };
            let Variant { strategy, vectors, order, .. } = variant;
            text.push_str(&format!("  {strategy}, {vectors}, order {order}: {what}\n"));
            let again = format!(
                "stencilc verify {} --stencil {stencil} --mesh {} --precision {} {} --seed {seed}",
                ShellWord::path(file),
                ShellWord::path(mesh),
                precision.name(),
                variant.words()
            );
            text.push_str(&format!("    again: {again}{}\n", args.beside()));
        }
        text
    }
}
