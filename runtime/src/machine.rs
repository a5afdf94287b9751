//! What runs kernels: a GPU, or the emulator. Everything that runs one is written against [`Machine`], once.

use crate::Result;
use crate::ranks::{About, Freight, Memory, Ranks, through_hosts};
use std::fmt;
use stencilc_compiler::plan::{KnownGrid, Plan};

/// A machine that kernels run on: it has memory of its own, takes kernels, and tells how long they took.
pub trait Machine {
    /// Memory of the machine between guards, freed when dropped.
    type Buffer;
    /// A kernel that can be launched.
    type Kernel;

    /// Copies bytes to the machine's memory, between guards.
    ///
    /// # Errors
    /// When so much is not free.
    fn upload(&self, bytes: &[u8]) -> Result<Self::Buffer>;

    /// Writes a buffer anew, once the work on it has ended; its guards stay as they are.
    ///
    /// # Errors
    /// When there are not as many bytes as the buffer has, or when a kernel has failed.
    fn write(&self, buffer: &Self::Buffer, bytes: &[u8]) -> Result<()>;

    /// Copies the bytes of a buffer to another of the same length; the guards of both stay as they are.
    ///
    /// # Errors
    /// When the lengths differ, or when a kernel has failed.
    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()>;

    /// Waits for the work on a buffer and copies its bytes back, and says whether its guards are as they were.
    ///
    /// # Errors
    /// When a kernel has failed, or when there is not enough memory.
    fn download(&self, buffer: &Self::Buffer) -> Result<(Vec<u8>, Guards)>;

    /// The address of a byte of a buffer, as kernels see it. That of the first is a multiple of 256.
    fn address(&self, buffer: &Self::Buffer, offset_bytes: usize) -> u64;

    /// Starts a kernel.
    ///
    /// # Errors
    /// When the machine cannot run so many threads, or when the arguments are not those of the kernel. A failure of the kernel
    /// itself may be reported by a later call.
    fn launch(&self, kernel: &Self::Kernel, launch: &Launch, args: &[Arg]) -> Result<()>;

    /// How many blocks of a kernel can be there at once; nothing if there is no limit.
    ///
    /// # Errors
    /// The machine does not tell.
    fn blocks_at_once(&self, _: &Self::Kernel, _: &Launch) -> Result<Option<u32>> {
        Ok(None)
    }

    /// Launches and copies that were recorded.
    type Recording;

    /// Records the launches and copies of a closure, which are not done: `replay` does them, as often as one likes. Nothing, and
    /// the closure is not called, if the machine cannot.
    ///
    /// # Errors
    /// Those of the closure, and when it does what cannot be recorded, such as reserving memory.
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>>;

    /// Starts what was recorded. The buffers have to be there still.
    ///
    /// # Errors
    /// When a kernel launched before has failed.
    fn replay(&self, recording: &Self::Recording) -> Result<()>;

    /// Lets kernels of this machine look at the memory of another of its kind.
    ///
    /// # Errors
    /// There is no way between them.
    fn look_at(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    /// Makes ready to send memory to machines of other ranks. All ranks do so.
    ///
    /// # Errors
    /// There should be a way between them, and it fails.
    fn reach(&self, _: &Ranks) -> Result<()> {
        Ok(())
    }

    /// Whether what it sends to other ranks can be recorded.
    fn records_swaps(&self, _: &Ranks) -> bool {
        false
    }

    /// Sends memory to other ranks, and fills memory with what comes of them, in the order of launches. All ranks do so.
    ///
    /// # Errors
    /// As [`Ranks::swap`]; a kernel has failed.
    fn swap(
        &self,
        ranks: &Ranks,
        about: About,
        sent: &[Freight<Memory<Self::Buffer>>],
        rooms: &[Freight<Memory<Self::Buffer>>],
    ) -> Result<()> {
        through_hosts(self, ranks, about, sent, rooms)
    }

    /// As [`Machine::record`], of several machines of a kind.
    ///
    /// # Errors
    /// As there.
    fn record_together(_: &[&Self], _: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        Ok(None)
    }

    /// Starts what was recorded of several, each after what it was asked before and before what it is asked later.
    ///
    /// # Errors
    /// As [`Machine::replay`].
    fn replay_together(machines: &[&Self], recording: &Self::Recording) -> Result<()> {
        machines.first().map_or(Ok(()), |first| first.replay(recording))
    }

    /// Waits until all that was launched is done.
    ///
    /// # Errors
    /// When a kernel has failed.
    fn wait(&self) -> Result<()>;

    /// Microseconds that each of several launches took; the closure is told how many came before.
    ///
    /// # Errors
    /// Those of the closure, and when a kernel has failed.
    fn time_each(&self, runs: usize, launch: impl FnMut(usize) -> Result<()>) -> Result<Vec<f64>>;
}

/// How a kernel is launched. Extents are along x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster; they are there at once.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Whether all blocks are there at once, and can wait for each other.
    pub cooperative: bool,
}

impl Launch {
    /// A launch without clusters, dynamic shared memory, or cooperation.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, cluster: [1; 3], shared: 0, cooperative: false }
    }

    /// The launch of a plan's kernel on a machine: of blocks that stay, no more than there is room for at once.
    ///
    /// # Errors
    /// There are more blocks than a launch can have, or the machine does not tell its room.
    pub fn of<M: Machine>(plan: &Plan, known_grid: &KnownGrid, machine: &M, kernel: &M::Kernel) -> Result<Self> {
        let mut launch = Self { shared: plan.shared(), ..Self::new(plan.launch(known_grid)?, plan.choices.block) };
        if plan.blocks_stay()
            && let Some(room) = machine.blocks_at_once(kernel, &launch)?
        {
            launch.grid[0] = launch.grid[0].min(room.max(1));
        }
        Ok(launch)
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// An address, from [`Machine::address`].
    Pointer(u64),
    /// `float`.
    F32(f32),
    /// `double`.
    F64(f64),
    /// `int`.
    I32(i32),
    /// `long long`.
    I64(i64),
    /// `unsigned char` or `bool`.
    U8(u8),
}

/// Bytes of guard before and after the bytes of a buffer.
pub const GUARD: usize = 256;

/// What guards are filled with, repeated: as f32 and as f64 not a number, but neither the one that the GPU makes nor
/// the integer -1, so that a stray read shows in the results and a stray write in the guard.
pub(crate) const PATTERN: [u8; 4] = [0xc3, 0xa5, 0xfd, 0xff];

/// What has become of the guards of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// How far before the first byte the nearest overwritten byte is: 1 is right before it.
    pub before: Option<usize>,
    /// How far after the last byte the nearest overwritten byte is: 1 is right after it.
    pub after: Option<usize>,
}

impl Guards {
    /// Whether no byte was overwritten.
    pub fn intact(self) -> bool {
        self == Self { before: None, after: None }
    }

    pub(crate) fn compare(before: &[u8], after: &[u8]) -> Self {
        let overwritten = |guard: &[u8]| -> Vec<bool> {
            guard.iter().zip(PATTERN.iter().cycle()).map(|(byte, original)| byte != original).collect()
        };
        let nearest = |place: Option<usize>| place.map(|place| place + 1);
        Self {
            before: nearest(overwritten(before).into_iter().rev().position(|wrong| wrong)),
            after: nearest(overwritten(after).into_iter().position(|wrong| wrong)),
        }
    }
}

impl fmt::Display for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.before, self.after) {
            (None, None) => f.write_str("guard bytes intact"),
            (Some(before), None) => write!(f, "guard byte {before} before the first element overwritten"),
            (None, Some(after)) => write!(f, "guard byte {after} after the last element overwritten"),
            (Some(before), Some(after)) => {
                write!(f, "guard bytes {before} before the first and {after} after the last element overwritten")
            }
        }
    }
}
