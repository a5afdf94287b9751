//! The limit: how fast this machine copies as many fields as the stencil has. No kernel that passes every field once is
//! faster, whatever it computes, unless the caches keep some of it.

use super::statistics::Statistics;
use crate::array::Data;
use crate::build::Build;
use crate::error::Result;
use crate::execute::{Repeat, Rotation};
use crate::machine::{Arg, Launch, Machine};
use crate::pack::data_bytes;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use stencilc_compiler::analysis::extents::demand;
use stencilc_compiler::cuda;
use stencilc_compiler::gpu::AT_ONCE;
use stencilc_compiler::ir::Handle;
use stencilc_compiler::kernel::machine::{copy_streams, copy_streams_in_rows};

/// Accesses of each stream that a thread makes.
const PER_THREAD: [usize; 3] = [1, 2, 4];

/// Threads of a block.
const BLOCKS: [u32; 4] = [128, 256, 512, 1024];

/// Accesses of each stream that a thread makes which has a row of them.
const ROWS: [u32; 3] = [512, 4096, 32768];

/// The name of the copy's kernel.
pub const KERNEL: &str = "copy";

/// How fast a copy is, in the launch shape that suits this machine best.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Streams that are read: fields, each with as many bytes as on the grid.
    pub reads: usize,
    /// Streams that are written.
    pub writes: usize,
    /// Bytes of all streams.
    pub bytes: usize,
    /// Accesses of each stream that a thread makes; 0 of one that has a row of them.
    pub per_thread: usize,
    /// Threads of a block.
    pub block: u32,
    /// Times of a launch.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// 10^9 bytes a second, by the median.
    pub gb_per_s: f64,
}

/// What the copy moves.
pub struct Streams<'a> {
    /// What is read.
    pub reads: Vec<&'a Data>,
    /// What is written over.
    pub writes: Vec<&'a Data>,
}

impl<'a> Streams<'a> {
    /// The fields of a problem: those that are read, and those that are written. One that is both counts twice.
    pub fn of(problem: &'a Problem) -> Self {
        let read = demand(&problem.stencil).reads;
        let fields = || problem.stencil.fields.handles();
        let reads = fields().filter(|field| read.contains_key(field));
        Self {
            reads: reads.filter_map(|field| problem.inputs[field.index()].as_ref()).collect(),
            writes: fields().filter_map(|field| problem.outputs[field.index()].as_ref()).collect(),
        }
    }

    fn bytes(&self) -> usize {
        self.reads.iter().chain(&self.writes).map(|data| data_bytes(data).len()).sum()
    }

    /// The copy as CUDA C++: what is written is every bit of what is read, combined, so that nothing can be left out.
    pub(super) fn text(&self, per_thread: Option<usize>) -> Result<String> {
        let accesses = |data: &&Data| data_bytes(data).len().div_ceil(AT_ONCE);
        let counts = |streams: &[&Data]| -> Vec<usize> { streams.iter().map(accesses).collect() };
        let ([.., threads], reads, writes) = (BLOCKS, counts(&self.reads), counts(&self.writes));
        let kernel = match per_thread {
            Some(per_thread) => copy_streams(KERNEL, &reads, &writes, threads, per_thread),
            None => copy_streams_in_rows(KERNEL, &reads, &writes),
        };
        Ok(cuda::text(&kernel)?)
    }
}

/// Measures the copy of `streams`. Nothing where there is nothing to move.
///
/// # Errors
/// It cannot be compiled or launched, or there is not enough memory.
pub fn measure<M: Build>(machine: &M, streams: &Streams, repeat: Repeat) -> Result<Option<Limit>> {
    let bytes = streams.bytes();
    let Copy { sets, buffers, .. } = Copy::new(machine, streams, repeat.rotation)?;
    let most = buffers.iter().flatten().map(|(_, accesses)| *accesses).max().unwrap_or(0);
    let mut best: Option<Limit> = None;
    // Rows count elements of four bytes.
    if machine.is_cpu() && i32::try_from(most * AT_ONCE / 4).is_err() {
        return Ok(None);
    }
    let (shares, lengths): (&[Option<usize>], &[u32]) =
        if machine.is_cpu() { (&[None], &ROWS) } else { (&PER_THREAD.map(Some), &BLOCKS) };
    for &per_thread in shares {
        let kernel = machine.build(KERNEL, &streams.text(per_thread)?)?;
        for &length in lengths {
            let block = if per_thread.is_none() { 1 } else { length };
            let accesses = per_thread.unwrap_or(1) * length as usize;
            let Ok(blocks) = u32::try_from(most.div_ceil(accesses)) else { continue };
            if blocks == 0 {
                continue;
            }
            let launch = Launch::new([blocks, 1, 1], [block, 1, 1]);
            let arguments: Vec<Vec<Arg>> = buffers
                .iter()
                .map(|set| set.iter().map(|(buffer, _)| Arg::Pointer(machine.address(buffer, 0))).collect())
                .collect();
            let start = |run: usize| machine.launch(&kernel, &launch, &arguments[run % sets]);
            (0..repeat.warmups).try_for_each(start)?;
            let times = machine.time_each(repeat.runs, |run| start(repeat.warmups + run))?;
            let Some(statistics) = Statistics::of(&times) else { continue };
            if best.as_ref().is_none_or(|best| statistics.median_us < best.statistics.median_us) {
                best = Some(Limit {
                    reads: streams.reads.len(),
                    writes: streams.writes.len(),
                    bytes,
                    per_thread: per_thread.unwrap_or(0),
                    block,
                    statistics,
                    gb_per_s: bytes as f64 / (statistics.median_us * 1e3),
                });
            }
        }
    }
    Ok(best)
}

/// The streams on a machine: sets of buffers, each with the number of accesses that it takes.
struct Copy<M: Machine> {
    sets: usize,
    buffers: Vec<Vec<(M::Buffer, usize)>>,
}

impl<M: Machine> Copy<M> {
    fn new(machine: &M, streams: &Streams, rotation: Rotation) -> Result<Self> {
        let sets = rotation.sets(streams.bytes());
        let mut buffers: Vec<Vec<(M::Buffer, usize)>> = (0..sets).map(|_| Vec::new()).collect();
        for data in streams.reads.iter().chain(&streams.writes) {
            let mut bytes = data_bytes(data).to_vec();
            bytes.resize(bytes.len().next_multiple_of(AT_ONCE), 0);
            for set in &mut buffers {
                set.push((machine.upload(&bytes)?, bytes.len() / AT_ONCE));
            }
        }
        Ok(Self { sets, buffers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::{Compiler, Emulator, Settings};

    /// Streams of unequal lengths, not all of whole accesses.
    #[test]
    fn every_byte_is_copied_and_no_more() {
        let (a, b) = (Data::F64((0..203).map(f64::from).collect()), Data::I32((0..77).map(|x| x * 3 + 1).collect()));
        let (c, d) = (Data::F64(vec![0.0; 203]), Data::Bool(vec![0; 5]));
        let streams = Streams { reads: vec![&a, &b], writes: vec![&c, &d] };
        let emulator = Emulator::new(Compiler::find().unwrap(), Settings::default());
        for per_thread in PER_THREAD.map(Some).into_iter().chain([None]) {
            let kernel = emulator.build(KERNEL, &streams.text(per_thread).unwrap()).unwrap();
            let Copy { buffers, .. } = Copy::new(&emulator, &streams, Rotation::SAME).unwrap();
            let arguments: Vec<Arg> =
                buffers[0].iter().map(|(buffer, _)| Arg::Pointer(emulator.address(buffer, 0))).collect();
            let launch = match per_thread {
                Some(per_thread) => Launch::new([102u32.div_ceil(per_thread as u32 * 32), 1, 1], [32, 1, 1]),
                None => Launch::new([5, 1, 1], [1, 1, 1]),
            };
            emulator.launch(&kernel, &launch, &arguments).unwrap();
            let mut expected = data_bytes(&a).to_vec();
            expected.resize(102 * AT_ONCE, 0);
            expected.iter_mut().zip(data_bytes(&b)).for_each(|(byte, other)| *byte ^= other);
            for (at, length) in [(2, 102 * AT_ONCE), (3, AT_ONCE)] {
                let (bytes, guards) = emulator.download(&buffers[0][at].0).unwrap();
                assert!(guards.intact() && bytes == expected[..length], "stream {at}, {per_thread:?} each");
            }
        }
    }
}
