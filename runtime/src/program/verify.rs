//! Plans of a program against the interpreter, bit for bit.

use super::cpu::Interpreter;
use super::kernels::{Kernels, Planned, Text};
use super::plan::ProgramPlan;
use super::{ProgramProblem, results};
use crate::array::Data;
use crate::cache::compile_cached;
use crate::cuda::Gpu;
use crate::driver::Driver;
use crate::emulate::{self, Compiler, Emulator, Order, Settings, Source};
use crate::error::{Fault, Result};
use crate::machine::Machine;
use crate::nvrtc::{Compiled, Kind};
use crate::verify::{Mismatch, Verdict, check_worth, compare};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Kernels of one library of the emulator: few, so that all cores have some to compile.
const TOGETHER: usize = 8;

/// What the interpreter leaves of a program.
pub struct Reference {
    /// The program.
    pub problem: Arc<ProgramProblem>,
    /// What its outputs hold, by field of the facade.
    pub outputs: Vec<Option<Data>>,
}

impl Reference {
    /// What the interpreter computes.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(problem: ProgramProblem) -> Result<Self> {
        let problem = Arc::new(problem);
        let outputs = {
            let backend = Interpreter::new(problem.clone());
            let mut driver = Driver::new(&backend).given()?;
            driver.finish()?;
            results(&problem, &driver)?
        };
        Ok(Self { problem, outputs })
    }

    /// Whether a comparison with it proves something.
    ///
    /// # Errors
    /// Too many values are not finite, or an output is the same everywhere.
    pub fn check_worth(&self) -> Result<()> {
        let outer = &self.problem.outer;
        for ((_, field), data) in outer.stencil.fields.iter().zip(&self.outputs) {
            if let Some(data) = data {
                check_worth(outer, &field.name, field.place, data)?;
            }
        }
        Ok(())
    }

    /// Where results differ from it, field by field.
    pub fn mismatches(&self, found: &[Option<Data>]) -> Vec<Mismatch> {
        let outer = &self.problem.outer;
        let fields = outer.stencil.fields.iter().zip(&self.outputs).zip(found);
        let mismatches = fields.filter_map(|(((_, field), expected), found)| {
            compare(outer, &field.name, expected.as_ref()?, found.as_ref()?)
        });
        mismatches.collect()
    }

    fn cells(&self) -> usize {
        self.outputs.iter().flatten().map(Data::len).sum()
    }
}

/// What compiles kernels, and what they run on.
pub struct Tools<'a> {
    /// The architecture that NVRTC compiles for, where there is one.
    pub arch: Option<&'a str>,
    /// A GPU, if they run on one.
    pub gpu: Option<&'a Arc<Gpu>>,
    /// The compiler of the emulator, if they run there.
    pub emulator: Option<&'a Compiler>,
}

/// Texts of many plans, each once.
#[derive(Default)]
struct Texts {
    texts: Vec<Text>,
    known: BTreeMap<(String, String), usize>,
}

impl Texts {
    fn add(&mut self, text: Text) -> usize {
        let next = self.texts.len();
        let place = *self.known.entry((text.name.clone(), text.text.clone())).or_insert(next);
        if place == next {
            self.texts.push(text);
        }
        place
    }
}

/// What comes of each plan, in their order; nothing where kernels are neither compiled nor run. `progress` is told how many
/// plans are done.
///
/// # Errors
/// The machine or a compiler cannot be used. What a kernel does wrong is no error.
pub fn verify(
    reference: &Reference,
    plans: &[ProgramPlan],
    tools: &Tools,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Option<Verdict>>> {
    let plan = |plan| Planned::new(&reference.problem, plan).map(Arc::new);
    let planned: Vec<Result<Arc<Planned>>> = plans.par_iter().map(plan).collect();
    let mut texts = Texts::default();
    let mut of_plans: Vec<Vec<usize>> = Vec::with_capacity(planned.len());
    for planned in &planned {
        of_plans.push(match planned {
            Ok(planned) => planned.texts()?.into_iter().map(|text| texts.add(text)).collect(),
            Err(_) => Vec::new(),
        });
    }
    let kernels = Loadable::new(&texts.texts, tools)?;
    let judge = |(planned, texts): (&Result<Arc<Planned>>, &Vec<usize>)| {
        let verdict = match planned {
            Err(error) => Ok(Some(Verdict::Refused { reason: error.message.clone() })),
            Ok(planned) => kernels.judge(planned, texts, reference, tools),
        };
        progress(1);
        verdict
    };
    let work = planned.iter().zip(&of_plans);
    // One GPU does one thing at a time.
    match tools.gpu {
        Some(_) => work.map(judge).collect(),
        None => work.collect::<Vec<_>>().into_par_iter().map(judge).collect(),
    }
}

/// What compilers make of texts.
struct Loadable<'a> {
    texts: &'a [Text],
    /// By NVRTC, if there is one; or what it says.
    compiled: Vec<Option<std::result::Result<Compiled, String>>>,
    /// By the compiler of the emulator.
    emulated: Vec<Option<std::result::Result<emulate::Kernel, String>>>,
}

impl<'a> Loadable<'a> {
    fn new(texts: &'a [Text], tools: &Tools) -> Result<Self> {
        let by_nvrtc = |text: &Text| match tools.arch {
            None => Ok(None),
            Some(arch) => {
                let built = compile_cached(&text.text, &format!("{}.cu", text.name), arch, Kind::Cubin);
                faulty(built.map(|built| built.compiled)).map(Some)
            }
        };
        let compiled: Vec<_> = texts.par_iter().map(by_nvrtc).collect::<Result<_>>()?;
        let emulated = match tools.emulator {
            None => texts.iter().map(|_| None).collect(),
            Some(compiler) => {
                let chunks: Vec<Vec<_>> =
                    texts.par_chunks(TOGETHER).map(|texts| emulated(texts, compiler)).collect::<Result<_>>()?;
                chunks.into_iter().flatten().map(Some).collect()
            }
        };
        Ok(Self { texts, compiled, emulated })
    }

    /// Runs a plan's kernels, which are those of some texts, on what there is.
    fn judge(
        &self,
        planned: &Arc<Planned>,
        texts: &[usize],
        reference: &Reference,
        tools: &Tools,
    ) -> Result<Option<Verdict>> {
        let wrong = |message: &str| Ok(Some(damaged(None, message)));
        if let Some(message) = texts.iter().find_map(|&text| self.compiled[text].as_ref()?.as_ref().err()) {
            return wrong(message);
        }
        if let Some(gpu) = tools.gpu {
            let mut loaded = Vec::new();
            for &text in texts {
                if let Some(Ok(compiled)) = &self.compiled[text] {
                    loaded.push(gpu.load(&compiled.image)?.kernel(&self.texts[text].name)?);
                }
            }
            return judge(gpu, planned, loaded, reference, None).map(Some);
        }
        if tools.emulator.is_some() {
            if let Some(message) = texts.iter().find_map(|&text| self.emulated[text].as_ref()?.as_ref().err()) {
                return wrong(message);
            }
            let kernel = |&text: &usize| self.emulated[text].as_ref().and_then(|own| own.as_ref().ok()).cloned();
            let mut verdict = None;
            for order in Order::ALL {
                let loaded = texts.iter().filter_map(kernel).collect();
                verdict = Some(judge(
                    &Arc::new(Emulator::default().in_order(order)),
                    planned,
                    loaded,
                    reference,
                    Some(order),
                )?);
                if matches!(verdict, Some(Verdict::Failed { .. })) {
                    break;
                }
            }
            return Ok(verdict);
        }
        Ok(tools.arch.map(|_| Verdict::Compiled))
    }
}

/// A text that a compiler does not take is what was looked for; a compiler that does not work is an error.
fn faulty<T>(made: Result<T>) -> Result<std::result::Result<T, String>> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(error) if error.fault == Fault::Check => Ok(Err(error.message)),
        Err(error) => Err(error),
    }
}

fn emulated(texts: &[Text], compiler: &Compiler) -> Result<Vec<std::result::Result<emulate::Kernel, String>>> {
    let settings = Settings { optimise: 1, ..Settings::default() };
    let sources: Vec<Source> = texts.iter().map(|text| Source { name: &text.name, text: &text.text }).collect();
    match faulty(compiler.build(&sources, &settings))? {
        Ok(kernels) => Ok(kernels.into_iter().map(Ok).collect()),
        Err(message) if texts.len() == 1 => Ok(vec![Err(message)]),
        // One that does not compile is no reason to know nothing of the others.
        Err(_) => {
            let alone = texts.iter().map(|text| emulated(std::slice::from_ref(text), compiler));
            Ok(alone.collect::<Result<Vec<_>>>()?.concat())
        }
    }
}

fn damaged(order: Option<Order>, message: &str) -> Verdict {
    Verdict::Failed { order, mismatches: Vec::new(), damage: vec![message.to_owned()] }
}

/// Runs the kernels of a plan on a machine, and compares every cell with the interpreter.
fn judge<M: Machine>(
    machine: &Arc<M>,
    planned: &Arc<Planned>,
    loaded: Vec<M::Kernel>,
    reference: &Reference,
    order: Option<Order>,
) -> Result<Verdict> {
    match judged(machine, planned, loaded, reference) {
        Ok((mismatches, damage)) if mismatches.is_empty() && damage.is_empty() => {
            Ok(Verdict::Equal { cells: reference.cells() })
        }
        Ok((mismatches, damage)) => Ok(Verdict::Failed { order, mismatches, damage }),
        Err(error) if error.fault == Fault::Check => Ok(damaged(order, &error.message)),
        Err(error) => Err(error),
    }
}

fn judged<M: Machine>(
    machine: &Arc<M>,
    planned: &Arc<Planned>,
    loaded: Vec<M::Kernel>,
    reference: &Reference,
) -> Result<(Vec<Mismatch>, Vec<String>)> {
    let backend = Kernels::new(Arc::clone(machine), Arc::clone(planned), loaded)?.watched();
    let mut driver = Driver::new(&backend).given()?;
    driver.finish()?;
    let mismatches = reference.mismatches(&results(&planned.problem, &driver)?);
    let mut damage: Vec<String> = backend.damage()?.into_iter().collect();
    // All that is held is looked at, inputs and names that the program made among it.
    for (variable, _) in driver.bound() {
        let data = driver.get(variable)?;
        let own = &planned.problem.staged.program.variables[variable];
        if own.role.is_some_and(|role| !role.is_written())
            && let Some(data) = data
        {
            let before = planned.problem.held_before(variable)?;
            if (0..data.len()).any(|at| data.bits(at) != before.bits(at)) {
                damage.push(format!("`{}`: an input was overwritten", own.name));
            }
        }
    }
    Ok((mismatches, damage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::program::measure::candidates;
    use crate::program::plan::PlanKind;
    use crate::program::tests::{problem, program};
    use stencilc_compiler::grid::Grid;
    use stencilc_compiler::ir::Precision;
    use stencilc_compiler::plan::Choices;

    const WAVE: &str = "
        program wave { inout a; in c; boundary { i: copy }; repeat 3 { let b = push(a, c); a = push(b, c) } }
        stencil push { in a, c; out b; b = 0.5*a[i-1] + c*a[i+1] }
    ";

    #[test]
    fn a_compiler_that_does_not_work_is_no_finding() {
        assert!(faulty::<()>(Err(Error::input("the disk is full"))).is_err());
        assert_eq!(faulty::<()>(Err(Error::check("no such type"))).unwrap(), Err("no such type".to_owned()));
    }

    #[test]
    fn one_bit_is_found() {
        let problem = problem(&program(WAVE), Grid::rows(7, 3, 2), Precision::F64, &[]).unwrap();
        let compiler = Compiler::find().unwrap();
        let tools = Tools { arch: None, gpu: None, emulator: Some(&compiler) };
        let choices = Choices { contract: false, ..Choices::default() };
        let plans = candidates(&[PlanKind::Separate, PlanKind::Merged, PlanKind::Streamed], &[1], &[choices], true);
        let mut reference = Reference::new(problem.with_times(5)).unwrap();
        reference.check_worth().unwrap();
        let verdicts = verify(&reference, &plans, &tools, &|_| {}).unwrap();
        let equal = |verdict: &&Option<Verdict>| matches!(verdict, Some(Verdict::Equal { cells: 42 }));
        // An axis that is no circle is not streamed.
        assert_eq!(verdicts.iter().filter(equal).count(), 2, "{verdicts:?}");
        assert!(verdicts[2..].iter().all(|verdict| matches!(verdict, Some(Verdict::Refused { .. }))));

        let Some(Data::F64(numbers)) = &mut reference.outputs[0] else { panic!("no numbers") };
        numbers[40] = f64::from_bits(numbers[40].to_bits() ^ 1);
        let verdicts = verify(&reference, &plans[..2], &tools, &|_| {}).unwrap();
        for verdict in verdicts {
            let Some(Verdict::Failed { mismatches, damage, .. }) = verdict else { panic!("{verdict:?}") };
            assert_eq!((mismatches.len(), mismatches[0].cells, damage.len()), (1, 1, 0));
            assert!(mismatches[0].to_string().starts_with("`a` differs on 1 cell, first at i=5, j=2, k=1: "));
        }
    }

    #[test]
    fn what_is_the_same_everywhere_proves_nothing() {
        let flat = "program flat { inout a; repeat 2 { a = one(a) } }\n stencil one { in a; out b; b = 0*a + 1 }";
        let problem = problem(&program(flat), Grid::rows(3, 3, 2), Precision::F64, &[]).unwrap();
        let said = Reference::new(problem).unwrap().check_worth().unwrap_err().message;
        assert!(said.contains("values of `a` are the same"), "{said}");
    }
}
