//! How long the kernels of one stencil take, and whether what comes out is what the interpreter computes.

use super::cpu::Interpreter;
use super::kernels::Kernels;
use super::live::Step;
use super::{MeshProblem, MeshScript, alone, alone_from_zero};
use crate::array::Data;
use crate::bench::statistics::Statistics;
use crate::build::Build;
use crate::driver::{Backend, Driver, Position};
use crate::interpreter::mesh::{MeshJob, interpret_mesh};
use crate::machine::{Arg, Launch};
use crate::{Error, Result};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::mesh::How;
use stencilc_compiler::ir::program::{Action, Call};
use stencilc_compiler::ir::{FieldId, Handle, MapId, MeshProgram, MeshStencil, Node, Path, Precision, Role};
use stencilc_compiler::kernel::machine::copy_all;

/// What a stencil computes, by the interpreter.
pub struct Expected {
    /// By field.
    outputs: Vec<Option<Data>>,
    /// By field: of each number that is added to, the sum of what is added without signs, and how often something is.
    sums: Vec<Vec<f64>>,
    /// By field: how many values are added to a number, at most.
    degrees: Vec<f64>,
}

/// How what came out compares.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Every bit is that of the interpreter.
    Equal,
    /// Added in another order: the largest difference, in units of the rounding of a sum of the absolute values.
    Within {
        /// At most 1 is what any order of the additions could make of it.
        share: f64,
    },
    /// It is wrong.
    Differs {
        /// Where, and what is there.
        what: String,
    },
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Microseconds of all launches.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// How what came out compares with the interpreter.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A stencil that is measured by itself: a problem whose program calls it once.
///
/// # Errors
/// The program is another.
pub fn only_call(problem: &MeshProblem) -> Result<&Call> {
    match problem.program.program.actions.as_slice() {
        [Action::Call(call)] => Ok(call),
        _ => {
            Err(Error::call("a program of several calls is measured stencil by stencil")
                .help("choose one: --stencil NAME"))
        }
    }
}

/// What the outputs of a program are, by their names.
pub type Results = Vec<(String, Data)>;

/// Runs a program.
///
/// # Errors
/// There is not enough memory, or a kernel has failed.
pub fn results<B: Backend>(problem: &MeshProblem, backend: B) -> Result<Results> {
    let mut driver = Driver::new(backend).given()?;
    driver.finish()?;
    named(problem, &driver)
}

fn named<B: Backend>(problem: &MeshProblem, driver: &Driver<B>) -> Result<Results> {
    let name = |id| problem.program.program.variables[id].name.clone();
    Ok(driver.results()?.into_iter().filter_map(|(id, data)| Some((name(id), data?))).collect())
}

/// The first number whose bits differ; any NaN equals any NaN.
pub fn difference(expected: &Results, found: &Results) -> Option<String> {
    expected.iter().zip(found).find_map(|((name, expected), (_, found))| {
        let at = (0..expected.len()).find(|&at| expected.bits(at) != found.bits(at))?;
        Some(format!("{name}[{at}] is {:?}, the interpreter has {:?}", found.get(at), expected.get(at)))
    })
}

/// The program that is measured.
pub fn program(stencil: &MeshStencil, from_zero: bool) -> MeshProgram {
    if from_zero { alone_from_zero(stencil) } else { alone(stencil) }
}

/// Bytes that have to move: each field once, one that is added to twice, and the maps that are looked through; of those, the bytes of
/// the maps. This is how Sulyok, Balogh, Reguly and Mudalige count ("Locality Optimized Unstructured Mesh Algorithms on GPUs", 2019).
/// Of a program they are those of a step.
pub fn bytes(problem: &MeshProblem) -> [usize; 2] {
    let each = calls(problem).into_iter().map(|(call, times)| (bytes_of(problem, &call), times));
    let [all, maps] = each.fold([0.0, 0.0], |[all, maps], ([data, own], times)| {
        [all + (data + own) as f64 * times, maps + own as f64 * times]
    });
    [all as usize, maps as usize]
}

/// The calls of a step, and how often each is made: of a step of the outermost loops, or of the whole program if there is none.
pub(super) fn calls(problem: &MeshProblem) -> Vec<(Call, f64)> {
    fn add(steps: &[Step], times: f64, all: &mut Vec<(Call, f64)>) {
        for step in steps {
            match step {
                Step::Call { call, .. } => all.push((call.clone(), times)),
                Step::Chain { apart, .. } => add(apart, times, all),
                Step::Repeat { times: own, steps } => {
                    // What is only known on the way counts once.
                    let own = if let Node::Int(own) = own[own.root()] { f64::from(own.max(0)) } else { 1.0 };
                    add(steps, times * own, all);
                }
                Step::Rename { .. } | Step::Number { .. } => {}
            }
        }
    }
    let mut all = Vec::new();
    let loops: Vec<&[Step]> = problem
        .steps
        .iter()
        .filter_map(|step| if let Step::Repeat { steps, .. } = step { Some(&steps[..]) } else { None })
        .collect();
    match loops.len() {
        0 => add(&problem.steps, 1.0, &mut all),
        number => loops.into_iter().for_each(|steps| add(steps, 1.0 / number as f64, &mut all)),
    }
    all
}

/// Bytes of the fields of a call, and of its maps.
fn bytes_of(problem: &MeshProblem, call: &Call) -> [usize; 2] {
    let stencil = &problem.program.stencils[call.stencil];
    let mut data = 0;
    for (id, field) in stencil.stencil.fields.iter() {
        let len = crate::interpreter::mesh::len(field.place, &problem.bound, problem.levels);
        let bytes = len * field.stored.bytes(problem.precision);
        let binding = call.fields[id.index()];
        data += bytes * (usize::from(binding.read.is_some()) + usize::from(binding.written.is_some()));
    }
    let mut maps: BTreeSet<MapId> = BTreeSet::new();
    let mut look = |path: &Path| maps.extend(path.hops().iter().map(|hop| hop.map));
    for body in stencil.stencil.bodies() {
        for (_, node) in body.iter() {
            if let Node::Read { path, .. } | Node::Use { path, .. } | Node::Present { path } = node {
                look(path);
            }
        }
    }
    for write in &stencil.writes {
        if let How::Add(path) = &write.how {
            look(path);
        }
    }
    let maps: usize = maps.iter().map(|&map| problem.bound.map(map).0.len() * 4).sum();
    [data, maps]
}

/// What the interpreter computes.
///
/// # Errors
/// An array is missing.
pub fn expected(problem: &MeshProblem) -> Result<Expected> {
    let call = only_call(problem)?;
    let stencil = &problem.program.stencils[call.stencil];
    let computed = problem.computed(call.stencil, &problem.params)?;
    let mut outputs: Vec<Option<Data>> = Vec::new();
    let mut inputs: Vec<Option<&Data>> = Vec::new();
    for (id, field) in stencil.stencil.fields.iter() {
        let binding = call.fields[id.index()];
        inputs.push(binding.read.and_then(|read| problem.initial.get(&read)));
        let len = crate::interpreter::mesh::len(field.place, &problem.bound, problem.levels);
        let element = crate::problem::element_of(field.stored, problem.precision);
        outputs.push(match field.role {
            Role::In | Role::Carried => None,
            Role::Inc if binding.read.is_none() => Some(super::cpu::zero(element, len)),
            Role::Inc | Role::InOut => inputs[id.index()].cloned(),
            Role::Out | Role::Reduce => Some(Data::fresh(element, len)),
        });
    }
    let mut sums: Vec<Vec<f64>> = outputs.iter().map(|data| vec![0.0; data.as_ref().map_or(0, Data::len)]).collect();
    for ((id, field), sums) in stencil.stencil.fields.iter().zip(&mut sums) {
        if field.role == Role::Inc
            && let Some(before) = &outputs[id.index()]
        {
            sums.iter_mut().enumerate().for_each(|(index, sum)| *sum = before.get(index).abs());
        }
    }
    let job = MeshJob {
        stencil,
        precision: problem.precision,
        mesh: &problem.bound,
        levels: problem.levels,
        computed: &computed,
        params: &problem.params,
        inputs: &inputs,
    };
    interpret_mesh(&job, &mut outputs, Some(&mut sums), &|_| {})?;
    let fields = stencil.stencil.fields.iter();
    let degrees = fields.map(|(id, own)| if own.role == Role::Inc { degree(problem, stencil, id) } else { 1.0 });
    Ok(Expected { outputs, sums, degrees: degrees.collect() })
}

/// Steps of a program that are compared with the interpreter: not a multiple of how buffers rotate.
const COMPARED: i32 = 7;

/// What kernels are compared with.
pub enum Reference {
    /// What a stencil by itself computes.
    Stencil(Expected),
    /// What some steps of a program leave.
    Program(Arc<MeshProblem>, Results),
}

impl Reference {
    /// What the interpreter makes of a problem.
    ///
    /// # Errors
    /// There is not enough memory, or every number of an output of a program is NaN, so that nothing would be known.
    pub fn new(problem: &Arc<MeshProblem>) -> Result<Self> {
        if only_call(problem).is_ok() {
            return expected(problem).map(Reference::Stencil);
        }
        let few = Arc::new(MeshProblem::clone(problem).with_times(COMPARED));
        let expected = results(&few, Interpreter::new(Arc::clone(&few)))?;
        match expected.iter().find(|(_, data)| is_nothing(data)) {
            None => Ok(Reference::Program(few, expected)),
            Some((name, _)) => Err(Error::check(format!("every number of `{name}` is NaN, so nothing is known"))
                .help("give the mesh fields, or declare ranges")),
        }
    }

    /// Computes with kernels, compares, and takes times: of a stencil, or of a step of a program.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    pub fn measured<M: Build>(&self, problem: &MeshProblem, kernels: &Kernels<M>, runs: usize) -> Result<Measured> {
        let (few, expected) = match self {
            Reference::Stencil(expected) => return measure(problem, kernels, expected, runs),
            Reference::Program(few, expected) => (few, expected),
        };
        let script = Arc::new(MeshScript::new(few, &|chain| kernels.merges(chain)));
        let mut driver = Driver::of(script, kernels).given()?;
        driver.finish()?;
        let difference = difference(expected, &named(few, &driver)?);
        drop(driver);
        let mut driver = Driver::new(kernels).given()?;
        driver.finish()?;
        let steps = driver.done().max(1) as f64;
        let mut times = Vec::new();
        for _ in 0..runs {
            // From the beginning, with what it was given: it may have left nothing of that.
            driver.position = Position::default();
            driver = driver.given()?;
            driver.wait()?;
            times.extend(kernels.machine().time_each(1, |_| driver.finish())?);
        }
        let each: Vec<f64> = times.iter().map(|time| time / steps).collect();
        let statistics = Statistics::of(&each).ok_or_else(|| Error::check("no time was taken"))?;
        let verdict = difference.map_or(Verdict::Equal, |what| Verdict::Differs { what });
        Ok(Measured { statistics, verdict })
    }
}

/// Whether there are numbers, and none of them is one.
pub fn is_nothing(data: &Data) -> bool {
    let is_real = matches!(data, Data::F32(_) | Data::F64(_));
    is_real && !data.is_empty() && (0..data.len()).all(|at| data.get(at).is_nan())
}

/// Computes a stencil, compares it with the interpreter, and takes times.
///
/// # Errors
/// There is not enough memory, or a kernel has failed.
pub fn measure<M: Build>(
    problem: &MeshProblem,
    kernels: &Kernels<M>,
    expected: &Expected,
    runs: usize,
) -> Result<Measured> {
    only_call(problem)?;
    let mut driver = Driver::new(kernels).given()?;
    let opened = driver.open(0, 1)?;
    driver.compute(&opened)?;
    let again = opened.clone();
    driver.close(opened);
    let verdict = judged(problem, &driver, expected)?;
    let times = kernels.machine().time_each(runs, |_| driver.compute(&again))?;
    let statistics = Statistics::of(&times).ok_or_else(|| Error::check("no time was taken"))?;
    Ok(Measured { statistics, verdict })
}

/// Computes a stencil, and compares it with the interpreter.
///
/// # Errors
/// There is not enough memory, or a kernel has failed.
pub fn verify<M: Build>(problem: &MeshProblem, kernels: &Kernels<M>, expected: &Expected) -> Result<Verdict> {
    only_call(problem)?;
    let mut driver = Driver::new(kernels).given()?;
    driver.finish()?;
    judged(problem, &driver, expected)
}

/// How what came out compares.
fn judged<B: Backend>(problem: &MeshProblem, driver: &Driver<B>, expected: &Expected) -> Result<Verdict> {
    let call = only_call(problem)?;
    let stencil = &problem.program.stencils[call.stencil];
    let mut verdict = Verdict::Equal;
    for ((id, field), binding) in stencil.stencil.fields.iter().zip(&call.fields) {
        let (Some(written), Some(wanted)) = (binding.written, &expected.outputs[id.index()]) else { continue };
        let found = driver.get(written)?;
        let found = found.ok_or_else(|| Error::check(format!("`{}` was not computed", field.name)))?;
        let own = compared(
            &field.name,
            [wanted, &found],
            problem.precision,
            &expected.sums[id.index()],
            expected.degrees[id.index()],
        );
        verdict = worse(verdict, own);
    }
    Ok(verdict)
}

/// How many values are added to a number of a field, at most, and what was there.
fn degree(problem: &MeshProblem, stencil: &MeshStencil, field: FieldId) -> f64 {
    let Some(home) = stencil.stencil.fields[field].place.home else { return 1.0 };
    let mut counts = vec![0u32; problem.bound.size(home.set)];
    for (_, write) in stencil.stores().filter(|(store, write)| store.field == field && write.part == 0) {
        let How::Add(path) = &write.how else { continue };
        for element in 0..problem.bound.size(stencil.set()) {
            if let Ok(to) = usize::try_from(problem.bound.walk(element as i32, path.hops())) {
                counts[to] += 1;
            }
        }
    }
    f64::from(counts.into_iter().max().unwrap_or(0)) + 1.0
}

/// How numbers compare that are rounded when they are added: what is stored in more bits is still added in the program's precision.
fn compared(name: &str, [wanted, found]: [&Data; 2], precision: Precision, sums: &[f64], degree: f64) -> Verdict {
    let mut share = 0.0_f64;
    let is_single = precision == Precision::F32 || matches!(wanted, Data::F32(_));
    let eps = if is_single { f64::from(f32::EPSILON) } else { f64::EPSILON };
    for index in 0..wanted.len() {
        if wanted.bits(index) == found.bits(index) {
            continue;
        }
        let (a, b) = (wanted.get(index), found.get(index));
        // Zeros of two signs.
        if a == b {
            share = share.max(f64::MIN_POSITIVE);
            continue;
        }
        let bound = degree * eps * sums.get(index).copied().unwrap_or(0.0);
        let own = (a - b).abs() / bound;
        // What is no number is never within a bound.
        if own > 1.0 || own.is_nan() {
            return Verdict::Differs { what: format!("{name}[{index}] is {b:?}, the interpreter has {a:?}") };
        }
        share = share.max(own);
    }
    if share == 0.0 { Verdict::Equal } else { Verdict::Within { share } }
}

fn worse(a: Verdict, b: Verdict) -> Verdict {
    match (&a, &b) {
        (Verdict::Differs { .. }, _) | (_, Verdict::Equal) => a,
        (_, Verdict::Differs { .. }) | (Verdict::Equal, _) => b,
        (Verdict::Within { share: x }, Verdict::Within { share: y }) => {
            if x > y {
                a
            } else {
                b
            }
        }
    }
}

/// Gigabytes a second of copying 1 GiB (or less, on the emulator), read and written.
///
/// # Errors
/// There is not enough memory.
pub fn copy_rate<M: Build>(machine: &M, bytes: usize, runs: usize) -> Result<f64> {
    let kernel = copy_all(COPYING[0]);
    let kernel = machine.build(&kernel.name, &cuda::text(&kernel)?)?;
    let from = machine.upload(&vec![1; bytes])?;
    let to = machine.upload(&vec![0; bytes])?;
    let n = i32::try_from(bytes / 16).map_err(|_| Error::check("so much is not copied"))?;
    let args = [Arg::Pointer(machine.address(&from, 0)), Arg::Pointer(machine.address(&to, 0)), Arg::I32(n)];
    let [threads, blocks] = COPYING;
    let launch = Launch::new([blocks, 1, 1], [threads, 1, 1]);
    let times = machine.time_each(runs, |_| machine.launch(&kernel, &launch, &args))?;
    let statistics = Statistics::of(&times).ok_or_else(|| Error::check("no time was taken"))?;
    Ok(2.0 * bytes as f64 / statistics.median_us / 1e3)
}

/// Threads of a block of [`copy_rate`]'s kernel, and how many blocks there are: 16 for each multiprocessor of an H200.
const COPYING: [u32; 2] = [512, 132 * 16];
