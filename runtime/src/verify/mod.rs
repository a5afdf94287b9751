//! Verification: what kernels leave against what the interpreter leaves, bit for bit.
//!
//! ```text
//! stencil, program, mesh: what is verified (Subject): what the interpreter leaves of it, and how a way to compute it runs
//! mod: ways -> kernels -> runs on what there is, in every order of threads -> verdicts
//! tools: what compiles kernels and what they run on -> library: texts -> kernels, each text once, on all cores
//! compare: where arrays differ, and whether a comparison proves something
//! ```

mod compare;
mod library;
pub mod mesh;
pub mod mesh_parts;
pub mod parts;
pub mod program;
pub mod stencil;
mod tools;

pub use compare::Mismatch;
pub use library::Library;
pub use stencil::{Expected, OfStencil, compare, expect, judge, plan_among, plan_for, verdict};
pub use tools::Tools;

use crate::array::Data;
use crate::build::Build;
use crate::cuda::Gpu;
use crate::driver::{Backend, Driver};
use crate::emulate::{Emulator, Order, Source};
use crate::error::{Error, Fault, Result};
use crate::mesh::program::kernels::Maker;
use rayon::prelude::*;
use serde::Serialize;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::{Role, VariableId};

/// What came of one way to compute something.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Verdict {
    /// Equal, to the last bit.
    Equal {
        /// Numbers that were compared.
        cells: usize,
    },
    /// Added in another order than the interpreter's, by a strategy that keeps none.
    Within {
        /// The largest difference, as a share of what any order of the additions could come to: at most 1.
        share: f64,
    },
    /// Not equal, as is to be expected of a device's own functions.
    Different {
        /// Cells that were compared.
        cells: usize,
        /// How many of them differ.
        differing: usize,
        /// The largest difference in units in the last place: how many numbers further on in the order of all numbers.
        /// NaN is beyond all others.
        units: u64,
    },
    /// Compiled by NVRTC, but there is no GPU to run it.
    Compiled,
    /// There is nothing to compile it by.
    Skipped,
    /// The combination makes no sense.
    Refused {
        /// Why.
        reason: String,
    },
    /// Something differs or was damaged.
    Failed {
        /// On the emulator: the order of threads in which it happened.
        #[serde(skip_serializing_if = "Option::is_none")]
        order: Option<Order>,
        /// Values that differ.
        mismatches: Vec<Mismatch>,
        /// Bytes that should not have been written, or why it did not run.
        damage: Vec<String>,
    },
}

impl Verdict {
    /// What came of so many numbers that were compared.
    pub(crate) fn of(cells: usize, mismatches: Vec<Mismatch>, damage: Vec<String>) -> Self {
        match mismatches.is_empty() && damage.is_empty() {
            true => Verdict::Equal { cells },
            false => Verdict::Failed { order: None, mismatches, damage },
        }
    }

    /// The same, and what was found damaged beside what is compared.
    pub(crate) fn with_damage(self, own: Vec<String>) -> Self {
        match self {
            Verdict::Failed { order, mismatches, damage } => {
                Verdict::Failed { order, mismatches, damage: [damage, own].concat() }
            }
            verdict if own.is_empty() => verdict,
            _ => Verdict::of(0, Vec::new(), own),
        }
    }

    /// What came of something that could not be done. That the machine does not allow it says nothing about it.
    fn of_failure(error: Error) -> Result<Self> {
        match error.fault {
            Fault::Check => Ok(Verdict::of(0, Vec::new(), vec![error.message])),
            Fault::Input | Fault::Machine | Fault::Call => Err(error),
        }
    }
}

/// A machine, and what makes kernels for it.
pub struct Site<M: Build> {
    /// The machine.
    pub machine: Arc<M>,
    /// Makes a kernel of its name and its text.
    pub maker: Rc<Maker<M>>,
}

/// The machines that something is run on.
pub struct Sites<M: Build> {
    /// Where all is computed that is not cut into parts.
    pub first: Site<M>,
    /// Others, for parts.
    pub others: Vec<Site<M>>,
}

impl<M: Build> Sites<M> {
    fn one(machine: Arc<M>, maker: Rc<Maker<M>>) -> Self {
        Self { first: Site { machine, maker }, others: Vec::new() }
    }

    /// Where a part is computed: each has a machine of its own, as long as there are others.
    pub fn of_part(&self, number: usize) -> &Site<M> {
        match number % (self.others.len() + 1) {
            0 => &self.first,
            other => &self.others[other - 1],
        }
    }
}

/// What is verified, which knows what the interpreter leaves of it.
pub trait Subject: Sync {
    /// One of the ways to compute it.
    type Way: Sync;
    /// A way, planned.
    type Planned: Send + Sync;

    /// Plans a way.
    ///
    /// # Errors
    /// It makes no sense for this subject.
    fn plan(&self, way: &Self::Way) -> Result<Self::Planned>;

    /// The texts of its kernels, as far as they are known before anything is computed.
    fn texts<'a>(&self, planned: &'a Self::Planned) -> Vec<Source<'a>>;

    /// Runs it, and compares all that it leaves: results, inputs, and what lies around them.
    ///
    /// # Errors
    /// A machine fails, or a kernel does.
    fn run<M: Build>(&self, planned: &Self::Planned, sites: &Sites<M>) -> Result<Verdict>;
}

/// What comes of each way, in their order. `progress` is told how many are done.
///
/// # Errors
/// The machine or a compiler cannot be used. What a kernel does wrong is no error.
pub fn verify<S: Subject>(
    subject: &S,
    ways: &[S::Way],
    tools: &Tools,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Verdict>> {
    verify_by(subject, ways, &Library::new(tools), progress)
}

/// As [`verify`], with kernels that may be known already.
///
/// # Errors
/// As [`verify`].
pub fn verify_by<S: Subject>(
    subject: &S,
    ways: &[S::Way],
    library: &Arc<Library>,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Verdict>> {
    let planned: Vec<Result<S::Planned>> = ways.par_iter().map(|way| subject.plan(way)).collect();
    library.add(planned.iter().flatten().flat_map(|planned| subject.texts(planned)))?;
    let judge = |planned: &Result<S::Planned>| {
        let verdict = match planned {
            Ok(planned) => judged(subject, planned, library).or_else(Verdict::of_failure),
            Err(error) => match error.fault {
                Fault::Input | Fault::Call => Ok(Verdict::Refused { reason: error.message.clone() }),
                Fault::Check | Fault::Machine => Verdict::of_failure(error.clone()),
            },
        };
        progress(1);
        verdict
    };
    // One GPU does one thing at a time.
    match library.tools().gpu {
        Some(_) => planned.iter().map(judge).collect(),
        None => planned.par_iter().map(judge).collect(),
    }
}

/// Runs a way on what there is.
fn judged<S: Subject>(subject: &S, planned: &S::Planned, library: &Arc<Library>) -> Result<Verdict> {
    let (tools, texts) = (library.tools(), subject.texts(planned));
    // What one compiler does not take has failed, wherever else it runs.
    texts.iter().try_for_each(|text| library.check(text.name, text.text))?;
    if let Some(gpu) = &tools.gpu {
        let site = |gpu: &Arc<Gpu>| {
            let (library, own) = (Arc::clone(library), Arc::clone(gpu));
            let maker: Rc<Maker<Gpu>> = Rc::new(move |name, text| library.on_gpu(&own, name, text));
            Site { machine: Arc::clone(gpu), maker }
        };
        return subject.run(planned, &Sites { first: site(gpu), others: tools.others.iter().map(site).collect() });
    }
    let Some((compiler, settings)) = &tools.emulator else {
        // What is known only when something is computed was not compiled.
        let is_compiled = tools.arch.is_some() && !texts.is_empty();
        return Ok(if is_compiled { Verdict::Compiled } else { Verdict::Skipped });
    };
    let library = Arc::clone(library);
    let maker: Rc<Maker<Emulator>> = Rc::new(move |name, text| library.emulated(name, text));
    if settings.native {
        let emulator = Arc::new(Emulator::new(compiler.clone(), settings.clone()));
        return subject.run(planned, &Sites::one(emulator, maker)).or_else(Verdict::of_failure);
    }
    let mut all = Verdict::Skipped;
    for order in Order::ALL {
        let emulator = Arc::new(Emulator::default().in_order(order));
        let own = subject.run(planned, &Sites::one(emulator, Rc::clone(&maker))).or_else(Verdict::of_failure)?;
        all = match (all, own) {
            (_, Verdict::Failed { mismatches, damage, .. }) => {
                return Ok(Verdict::Failed { order: Some(order), mismatches, damage });
            }
            (Verdict::Within { share: a }, Verdict::Within { share: b }) => Verdict::Within { share: a.max(b) },
            (Verdict::Within { share }, _) => Verdict::Within { share },
            (_, own) => own,
        };
    }
    Ok(all)
}

/// The inputs of a program that do not hold any more what they held `before`.
fn overwritten<'a, B: Backend>(
    driver: &Driver<B>,
    before: impl Fn(VariableId) -> Result<&'a Data>,
) -> Result<Vec<String>> {
    let mut damage = Vec::new();
    // All that is held is looked at, names that the program made among it.
    for (variable, _) in driver.bound() {
        let (data, script) = (driver.get(variable)?, driver.script());
        let own = &script.program().variables[variable];
        if own.role == Some(Role::In)
            && let Some(data) = data
        {
            let before = before(variable)?;
            if (0..data.len()).any(|at| data.bits(at) != before.bits(at)) {
                damage.push(format!("`{}`: an input was overwritten", own.name));
            }
        }
    }
    Ok(damage)
}
