//! Kernels of many stencils, compiled together, and each compared with the interpreter.

use crate::case::Ready;
use stencilc_compiler::cuda::Kernel;
use stencilc_compiler::plan::Plan;
use stencilc_runtime::cache::library_cached;
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::{Compiler, Emulator, Order, Settings, Source};
use stencilc_runtime::nvrtc::{compile_together, name_among};
use stencilc_runtime::verify::{Tools, Verdict, judge, plan_for};
use stencilc_runtime::{Fault, Result};

/// A stencil and the kernel that was made of it.
struct Made<'a> {
    ready: &'a Ready,
    plan: Plan,
    kernel: Kernel,
}

/// Makes kernels, compiles all of them into one library and runs each. The answers are in the order of the stencils.
///
/// # Errors
/// The device itself fails.
pub fn compare(ready: &[Ready], tools: &Tools) -> Result<Vec<Verdict>> {
    let (mut made, mut verdicts) = (Vec::new(), Vec::new());
    for own in ready {
        let plan = match plan_for(&own.problem, &own.case.choices) {
            Ok(plan) => plan,
            Err(error) => {
                verdicts.push(Verdict::Refused { reason: error.message });
                continue;
            }
        };
        verdicts.push(match stencilc_compiler::cuda::print(&plan) {
            Ok(kernel) => {
                made.push(Made { ready: own, plan, kernel });
                Verdict::Skipped
            }
            Err(refusal) => failed(refusal.message),
        });
    }
    let run = match (&tools.gpu, &tools.emulator) {
        (Some(gpu), _) => on_gpu(gpu, &made)?,
        (None, Some((compiler, settings))) => emulate(compiler, settings, tools.keeps, &made)?,
        (None, None) => return Ok(verdicts),
    };
    let waiting = verdicts.iter_mut().filter(|verdict| **verdict == Verdict::Skipped);
    waiting.zip(run).for_each(|(verdict, own)| *verdict = own);
    Ok(verdicts)
}

fn failed(message: String) -> Verdict {
    Verdict::Failed { order: None, mismatches: Vec::new(), damage: vec![message] }
}

fn emulate(compiler: &Compiler, settings: &Settings, keeps: bool, made: &[Made]) -> Result<Vec<Verdict>> {
    let sources: Vec<Source> = made.iter().map(|own| Source::from(&own.kernel)).collect();
    let library = match keeps {
        true => library_cached(compiler, &sources, settings),
        false => compiler.build(&sources, settings),
    };
    let kernels = match library {
        Ok(kernels) => kernels,
        Err(error) if error.fault == Fault::Check => {
            return halved(made, error.message, &|part| emulate(compiler, settings, keeps, part));
        }
        Err(error) => return Err(error),
    };
    let judged = made.iter().zip(&kernels).map(|(Made { ready, plan, kernel }, loaded)| {
        // Kernels without barriers do the same in every order, if they are right; each is tried at times.
        let order = Order::ALL[ready.case.seed as usize % Order::ALL.len()];
        judge(&Emulator::default().in_order(order), plan, kernel, loaded, &ready.problem, &ready.expected)
    });
    judged.collect()
}

fn on_gpu(gpu: &Gpu, made: &[Made]) -> Result<Vec<Verdict>> {
    let sources: Vec<Source> = made.iter().map(|own| Source::from(&own.kernel)).collect();
    let image = match compile_together(&sources, &gpu.arch()) {
        Ok(image) => image,
        Err(error) if error.fault == Fault::Check => return halved(made, error.message, &|part| on_gpu(gpu, part)),
        Err(error) => return Err(error),
    };
    let module = gpu.load(&image)?;
    let judged = made.iter().enumerate().map(|(number, Made { ready, plan, kernel })| {
        judge(gpu, plan, kernel, &module.kernel(&name_among(number))?, &ready.problem, &ready.expected)
    });
    judged.collect()
}

/// Finds out which of several kernels do not compile.
fn halved(made: &[Made], message: String, run: &dyn Fn(&[Made]) -> Result<Vec<Verdict>>) -> Result<Vec<Verdict>> {
    if made.len() < 2 {
        return Ok(made.iter().map(|_| failed(message.clone())).collect());
    }
    let (left, right) = made.split_at(made.len() / 2);
    Ok([run(left)?, run(right)?].concat())
}
