//! How long the kernels of one stencil take, and whether what comes out is what the interpreter computes.

use super::kernels::Kernels;
use super::live::Step;
use super::{MeshProblem, MeshScript, alone, alone_from_zero};
use crate::array::Data;
use crate::bench::limit::{self, Streams};
use crate::bench::statistics::Statistics;
use crate::build::Build;
use crate::driver::{Backend, Driver, Position};
use crate::execute::{Repeat, Rotation};
use crate::machine::{Arg, Launch};
use crate::verify::mesh::Expected;
use crate::verify::{Mismatch, Verdict};
use crate::{Error, Result};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::sync::Arc;
use stencilc_compiler::cuda;
use stencilc_compiler::gpu::Gpu;
use stencilc_compiler::ir::mesh::How;
use stencilc_compiler::ir::program::{Action, Call};
use stencilc_compiler::ir::{Handle, MapId, MeshProgram, MeshStencil, Node, Path};
use stencilc_compiler::kernel::machine::copy_all;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Microseconds of all launches.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// How what came out compares with the interpreter.
    #[serde(flatten, serialize_with = "in_a_row")]
    pub verdict: Verdict,
}

/// A verdict as rows of measurements have it: `verdict`, and how far off it is.
fn in_a_row<S: Serializer>(verdict: &Verdict, to: S) -> std::result::Result<S::Ok, S::Error> {
    let mut row = to.serialize_map(None)?;
    match verdict {
        Verdict::Within { share } => {
            row.serialize_entry("verdict", "within")?;
            row.serialize_entry("share", share)?;
        }
        verdict => match wrong(verdict) {
            None => row.serialize_entry("verdict", "equal")?,
            Some(what) => {
                row.serialize_entry("verdict", "differs")?;
                row.serialize_entry("what", &what)?;
            }
        },
    }
    row.end()
}

/// What is wrong with what was measured, in a line, if anything is.
pub fn wrong(verdict: &Verdict) -> Option<String> {
    let Verdict::Failed { mismatches, damage, .. } = verdict else { return None };
    let differ = mismatches.iter().map(|Mismatch { field, cell, expected, found, .. }| {
        format!("{field} is {found:?} at {cell}, the interpreter has {expected:?}")
    });
    Some(differ.chain(damage.iter().cloned()).collect::<Vec<_>>().join("; "))
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
                Step::Repeat { times: own, steps, .. } => {
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

/// Steps of a program that are compared with the interpreter: not a multiple of how buffers rotate.
pub(crate) const COMPARED: i32 = 7;

/// What kernels are compared with: what the interpreter leaves of a stencil by itself, or of some steps of a program.
pub struct Reference {
    problem: Arc<MeshProblem>,
    expected: Expected,
}

impl Reference {
    /// What the interpreter makes of a problem.
    ///
    /// # Errors
    /// There is not enough memory, or every number of an output of a program is NaN, so that nothing would be known.
    pub fn new(problem: &Arc<MeshProblem>) -> Result<Self> {
        if only_call(problem).is_ok() {
            return Ok(Self { expected: Expected::new(problem)?, problem: Arc::clone(problem) });
        }
        let few = Arc::new(MeshProblem::clone(problem).with_times(COMPARED));
        let expected = Expected::new(&few)?;
        expected.check_worth(&few)?;
        Ok(Self { problem: few, expected })
    }

    /// Computes with kernels, compares, and takes times: of a stencil, or of a step of a program.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    pub fn measured<M: Build>(&self, problem: &MeshProblem, kernels: &Kernels<M>, runs: usize) -> Result<Measured> {
        let Self { problem: few, expected } = self;
        if only_call(problem).is_ok() {
            return measure(problem, kernels, expected, runs);
        }
        let script = Arc::new(MeshScript::new(few, &|chain| kernels.merges(chain)));
        let mut driver = Driver::of(script, kernels).given()?;
        driver.finish()?;
        // Programs are computed by strategies alone that add in order.
        let verdict = expected.judged(few, &driver, true)?;
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
        Ok(Measured { statistics, verdict })
    }
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
    let verdict = expected.judged(problem, &driver, false)?;
    let times = kernels.machine().time_each(runs, |_| driver.compute(&again))?;
    let statistics = Statistics::of(&times).ok_or_else(|| Error::check("no time was taken"))?;
    Ok(Measured { statistics, verdict })
}

/// Gigabytes a second of copying so many bytes, read and written.
///
/// # Errors
/// There is not enough memory.
pub fn copy_rate<M: Build>(machine: &M, bytes: usize, runs: usize) -> Result<f64> {
    if machine.is_cpu() {
        let (from, to) = (Data::F64(vec![1.0; bytes / 8]), Data::F64(vec![0.0; bytes / 8]));
        let streams = Streams { reads: vec![&from], writes: vec![&to] };
        let repeat = Repeat { warmups: 1, runs, rotation: Rotation::SAME };
        let limit = limit::measure(machine, &streams, repeat)?;
        return limit.map(|own| own.gb_per_s).ok_or_else(|| Error::check("so much is not copied"));
    }
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
const COPYING: [u32; 2] = [512, Gpu::SM_90.processors * 16];
