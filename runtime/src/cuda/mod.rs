//! The GPU, through the CUDA driver: memory with guard bytes, kernels, launches, times.
//!
//! The driver is opened at run time, so that this program starts on any machine. cudarc panics where there is no
//! driver, and on a call that an old driver does not have; `driver` therefore looks first, and everything else here
//! goes through it.
//!
//! All work of a GPU is in one order, that of the calls: everything uses one stream, the default one if nobody gives another.

mod buffer;
mod context;
mod driver;
mod graph;
mod kernel;
pub mod nccl;
mod peers;
mod stream;
#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUjit_option, CUresult};

pub use buffer::Buffer;
pub use context::keeping_current;
pub use driver::{DeviceInfo, availability, devices, driver_version};
pub use graph::Graph;
pub use kernel::{Kernel, Module};
pub use stream::Stream;

use crate::lent::Lent;
use crate::machine::{Arg, GUARD, Guards, Launch, Machine, PATTERN};
use crate::ranks::{About, Freight, Memory, Ranks, through_hosts};
use crate::{Error, Result};
use buffer::in_bytes;
use context::{Context, Event};
use driver::{
    attribute, cuLaunchKernelEx, cuMemAlloc_v2, cuMemGetInfo_v2, cuMemcpyDtoDAsync_v2, cuMemsetD8Async,
    cuModuleLoadDataEx, describe, device, split_version,
};
use kernel::{Limits, Loaded, Packed, check_extents, check_image, launch_attributes, launch_config, parameters, spell};
use nccl::Communicator;

/// An open GPU. Buffers, modules and kernels may outlive it.
pub struct Gpu {
    /// Seconds that opening took: the driver's start, and the context, which is most of it.
    pub startup_seconds: f64,
    ordinal: usize,
    context: Arc<Context>,
    info: DeviceInfo,
    limits: Limits,
    l2_bytes: u32,
    multiprocessors: u32,
    threads_at_once: u32,
}

impl Gpu {
    /// Opens the GPU with a number.
    ///
    /// # Errors
    ///
    /// When there is no usable driver, no GPU of this number, or when it is not to be had.
    pub fn open(ordinal: usize) -> Result<Self> {
        let start = Instant::now();
        let device = device(ordinal)?;
        let get = |which| attribute(device, which);
        let limits = Limits {
            grid: [
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            block: [
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
        };
        let l2_bytes = get(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
        let multiprocessors = get(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let threads_at_once = get(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
        let info = describe(ordinal, device)?;
        let context = Arc::new(Context::open(device)?);
        context.bind()?;
        let startup_seconds = start.elapsed().as_secs_f64();
        Ok(Self { startup_seconds, ordinal, context, info, limits, l2_bytes, multiprocessors, threads_at_once })
    }

    /// The GPU's name: `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Its number among the GPUs of this machine.
    pub fn number(&self) -> usize {
        self.ordinal
    }

    /// Opens the GPUs with the next numbers, so that there are so many with this one.
    ///
    /// # Errors
    /// There are fewer, or one cannot be opened.
    pub fn beside(&self, parts: usize) -> Result<Vec<Arc<Gpu>>> {
        let others = (1..parts).map(|next| Ok(Arc::new(Gpu::open(self.ordinal + next)?)));
        others.collect::<Result<_>>().map_err(|error| {
            error.help(format!("{parts} GPUs are asked for, from cuda:{} on: --gpus says how many", self.ordinal))
        })
    }

    /// The architecture to compile for: `sm_90`.
    pub fn arch(&self) -> String {
        self.info.arch.clone()
    }

    /// The CUDA version that the driver is for: (13, 0).
    pub fn driver_version(&self) -> (i32, i32) {
        split_version(self.context.driver.version)
    }

    /// Bytes of the second-level cache.
    pub fn l2_bytes(&self) -> usize {
        self.l2_bytes as usize
    }

    /// How many multiprocessors there are.
    pub fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// The most threads that a multiprocessor works on at once.
    pub fn threads_at_once(&self) -> u32 {
        self.threads_at_once
    }

    /// Bytes of memory: free, and in all.
    ///
    /// # Errors
    ///
    /// When the driver does not tell, as after a kernel has failed.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.context.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current, and the sizes go into integers that are there.
        self.context.succeed(unsafe { cuMemGetInfo_v2(&mut free, &mut total) }, "tell its free memory")?;
        Ok((free, total))
    }

    /// Reserves `length` bytes of memory between guards, each byte set to `fill`.
    ///
    /// # Errors
    ///
    /// When so much is not free.
    pub fn allocate(&self, length: usize, fill: u8) -> Result<Buffer> {
        let buffer = self.reserve(length)?;
        self.fill(&buffer, fill)?;
        Ok(buffer)
    }

    /// Copies bytes to the GPU's memory, between guards.
    ///
    /// # Errors
    ///
    /// When so much is not free.
    pub fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.reserve(bytes.len())?;
        self.write(&buffer, bytes)?;
        Ok(buffer)
    }

    /// Memory between guards, its content whatever it was.
    fn reserve(&self, length: usize) -> Result<Buffer> {
        self.context.bind()?;
        let mut base = 0;
        let answer = match length.checked_add(2 * GUARD) {
            // SAFETY: the context is current, and the address goes into an integer that is there.
            Some(total) => unsafe { cuMemAlloc_v2(&mut base, total) },
            None => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
        };
        if answer == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let (free, total) = self.memory()?;
            return Err(Error::input(format!(
                "the GPU's memory does not suffice: {} more are asked for, and of {} there are {} free",
                in_bytes(length),
                in_bytes(total),
                in_bytes(free)
            ))
            .help("choose a smaller grid, or store fields as f32"));
        }
        self.context.succeed(answer, "reserve memory")?;
        let buffer = Buffer { context: Arc::clone(&self.context), base, length };
        let guard = PATTERN.repeat(GUARD / PATTERN.len());
        buffer.put(buffer.base, &guard)?;
        buffer.put(buffer.pointer(length), &guard)?;
        Ok(buffer)
    }

    /// Writes a buffer anew; its guards stay as they are.
    ///
    /// # Errors
    ///
    /// When there are not as many bytes as the buffer has, or when a kernel launched before has failed.
    pub fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        if bytes.len() != buffer.length {
            let (given, length) = (bytes.len(), buffer.length);
            return Err(Error::call(format!("{given} bytes cannot be written to a buffer of {length}")));
        }
        buffer.context.bind()?;
        buffer.put(buffer.pointer(0), bytes)
    }

    /// Copies the bytes of a buffer to another, on the GPU; the guards of both stay as they are. Returns before it is done.
    ///
    /// # Errors
    ///
    /// When the lengths differ, or when a kernel launched before has failed.
    pub fn copy(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        if from.length != to.length {
            let (given, length) = (from.length, to.length);
            return Err(Error::call(format!("{given} bytes cannot be copied to a buffer of {length}")));
        }
        to.context.bind()?;
        if from.length == 0 {
            return Ok(());
        }
        let stream = to.context.stream.load(Ordering::Relaxed);
        // SAFETY: the context is current, both buffers have that many bytes, and the stream is the context's.
        let answer = unsafe { cuMemcpyDtoDAsync_v2(to.pointer(0), from.pointer(0), from.length, stream) };
        to.context.succeed(answer, "copy memory")
    }

    /// Sets every byte of a buffer; its guards stay as they are. Returns before it is done.
    ///
    /// # Errors
    ///
    /// When a kernel launched before has failed.
    pub fn fill(&self, buffer: &Buffer, byte: u8) -> Result<()> {
        if buffer.length == 0 {
            return Ok(());
        }
        buffer.context.bind()?;
        let stream = buffer.context.own();
        // SAFETY: the context is current, the buffer has that many bytes, and the stream is the one that work goes into.
        let answer = unsafe { cuMemsetD8Async(buffer.pointer(0), byte, buffer.length, stream) };
        buffer.context.succeed(answer, "fill memory")
    }

    /// Waits for the work on a buffer and copies its bytes back, and says whether its guards are as they were.
    ///
    /// # Errors
    ///
    /// When a kernel has failed, or when this machine's memory does not suffice.
    pub fn download(&self, buffer: &Buffer) -> Result<(Vec<u8>, Guards)> {
        buffer.context.bind()?;
        let bytes = buffer.get(buffer.pointer(0), buffer.length)?;
        let before = buffer.get(buffer.base, GUARD)?;
        let after = buffer.get(buffer.pointer(buffer.length), GUARD)?;
        Ok((bytes, Guards::compare(&before, &after)))
    }

    /// Loads an image: PTX text or a cubin.
    ///
    /// # Errors
    ///
    /// When it is not such an image, or is for another architecture or a newer driver.
    pub fn load(&self, image: &[u8]) -> Result<Module> {
        let image = check_image(image)?;
        self.context.bind()?;
        let mut log = vec![0u8; 8 << 10];
        let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The driver takes the size in the place of an address.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len() - 1)];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; the image is whole, text with a zero byte at its end; there are two options,
        // and the log has the room that they announce.
        let answer = unsafe {
            cuModuleLoadDataEx(&mut handle, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        self.context.succeed(answer, "load the kernels").map_err(|mut error| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            for line in String::from_utf8_lossy(&log[..end]).lines().filter(|line| !line.trim().is_empty()).take(12) {
                error.message.push_str(&format!("\n    {line}"));
            }
            let (major, minor) = self.driver_version();
            error.help(format!(
                "they have to be compiled for {}, by an NVRTC that is not newer than the driver's CUDA {major}.{minor}; \
                 `stencilc doctor` compares the two",
                self.info.arch
            ))
        })?;
        Ok(Module { inner: Arc::new(Loaded { context: Arc::clone(&self.context), handle }) })
    }

    /// Lets all further work go into a stream of the caller's, as the driver calls it (`CUstream`, which is CUDA's `cudaStream_t`):
    /// in the order of whatever else is in it, and without waiting for other streams.
    ///
    /// # Safety
    ///
    /// The stream is one of this GPU's primary context, and is there as long as this, its buffers, kernels and graphs.
    pub unsafe fn use_stream(&self, stream: *mut c_void) {
        self.context.set_own(stream.cast());
    }

    /// The stream that all work goes into.
    pub fn used_stream(&self) -> *mut c_void {
        self.context.stream.load(Ordering::Relaxed).cast()
    }

    /// Copies an array that is lent to a buffer, as it lies, with what is between its elements. Returns before it is done.
    ///
    /// # Errors
    ///
    /// When the buffer has less room, or when a kernel launched before has failed.
    ///
    /// # Safety
    ///
    /// The stream is one of this GPU's primary context; the array is one of this GPU's memory, and there until it is done.
    pub(crate) unsafe fn copy_lent(&self, stream: *mut c_void, from: &Lent, to: &Buffer) -> Result<()> {
        let bytes = from.extent().map_or(usize::MAX, |own| own * from.element.bytes());
        if bytes > to.length {
            return Err(Error::call(format!("{bytes} bytes cannot be copied to a buffer of {}", to.length)));
        }
        if bytes == 0 {
            return Ok(());
        }
        self.context.bind()?;
        // SAFETY: the context is current, the buffer has room for as many bytes, and the array and the stream are the caller's concern.
        let answer = unsafe { cuMemcpyDtoDAsync_v2(to.pointer(0), from.address, bytes, stream.cast()) };
        self.context.succeed(answer, "copy memory")
    }

    /// Copies bytes of this GPU's memory to another place there, in a stream of the caller's. Returns before it is done.
    ///
    /// # Errors
    ///
    /// When a kernel launched before has failed.
    ///
    /// # Safety
    ///
    /// The stream is one of this GPU's primary context; both places are in this GPU's memory, of so many bytes, and there until it is done.
    pub unsafe fn copy_in(&self, stream: *mut c_void, from: u64, to: u64, bytes: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the context is current, and the places and the stream are the caller's concern.
        let answer = unsafe { cuMemcpyDtoDAsync_v2(to, from, bytes, stream.cast()) };
        self.context.succeed(answer, "copy memory")
    }

    /// Starts a kernel and returns at once. A failure while it runs is reported by a later call, with its name.
    ///
    /// # Errors
    ///
    /// When the grid or the block is more than the GPU or the kernel takes, or when the arguments are not those of
    /// the kernel. (Drivers before CUDA 12.4 do not tell what those are.)
    pub fn launch(&self, kernel: &Kernel, launch: &Launch, args: &[Arg]) -> Result<()> {
        let stream = kernel.module.context.stream.load(Ordering::Relaxed);
        // SAFETY: the stream is the one that work goes into.
        unsafe { self.launch_in(stream.cast(), kernel, launch, args) }
    }

    /// The same in a stream of the caller's.
    ///
    /// # Errors
    ///
    /// As [`Gpu::launch`].
    ///
    /// # Safety
    ///
    /// The stream is one of this GPU's primary context.
    pub unsafe fn launch_in(&self, stream: *mut c_void, kernel: &Kernel, launch: &Launch, args: &[Arg]) -> Result<()> {
        let Launch { grid, block, cluster, cooperative, .. } = *launch;
        check_extents(&self.limits, &kernel.name, kernel.registers, kernel.max_threads, grid, block)?;
        let mut packed = Packed::new(args);
        if let Some(known) = &kernel.parameters
            && let parameters = known.get_or_init(|| parameters(kernel.handle, args.len()))
            && *parameters != packed.places
        {
            let (name, takes, given) = (&kernel.name, spell(parameters), spell(&packed.places));
            return Err(Error::call(format!("kernel {name} takes arguments of {takes} bytes and is given {given}")));
        }

        // These three mark, in a list of addresses, the arguments, their size and the list's end.
        const END: *mut c_void = std::ptr::null_mut();
        const ARGUMENTS: *mut c_void = std::ptr::without_provenance_mut(1);
        const SIZE: *mut c_void = std::ptr::without_provenance_mut(2);
        let mut size = packed.bytes.len();
        let mut extra = [ARGUMENTS, packed.bytes.as_mut_ptr().cast(), SIZE, std::ptr::from_mut(&mut size).cast(), END];

        let context = &kernel.module.context;
        context.bind()?;
        context.started(&kernel.name);
        kernel.allow(launch)?;
        let mut attributes = launch_attributes(cluster, cooperative);
        let config = launch_config(launch, &mut attributes, stream.cast());
        // SAFETY: the context is current and the kernel's module is loaded. The arguments come with their size, so the
        // driver does not read beyond them, and it copies them and the attributes before it returns; the stream is the
        // caller's concern.
        let answer = unsafe { cuLaunchKernelEx(&config, kernel.handle, std::ptr::null_mut(), extra.as_mut_ptr()) };
        context.succeed(answer, &format!("start kernel {}", kernel.name))
    }

    /// Waits until all work has ended.
    ///
    /// # Errors
    ///
    /// When a kernel has failed; the message names it, or those that it may have been.
    pub fn synchronize(&self) -> Result<()> {
        self.context.synchronize()
    }

    /// Microseconds that the GPU took for what a closure started.
    ///
    /// # Errors
    ///
    /// Those of the closure, and when a kernel has failed.
    pub fn time(&self, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
        let times = self.time_each(1, |_| work())?;
        Ok(times.into_iter().sum())
    }

    /// Microseconds that the GPU took for what each call of a closure started, one after the other without waiting in
    /// between; the closure is told how many came before.
    ///
    /// The clock ticks about twice a microsecond. Where the GPU is quicker than this thread starts its work, the time
    /// includes the waiting.
    ///
    /// # Errors
    ///
    /// Those of the closure, and when a kernel has failed.
    pub fn time_each(&self, runs: usize, mut launch: impl FnMut(usize) -> Result<()>) -> Result<Vec<f64>> {
        // All are made beforehand, as that takes time.
        let event = || Event::new(&self.context);
        let events: Vec<(Event, Event)> = (0..runs).map(|_| Ok((event()?, event()?))).collect::<Result<_>>()?;
        for (run, (start, end)) in events.iter().enumerate() {
            start.record()?;
            launch(run)?;
            end.record()?;
        }
        self.synchronize()?;
        events.iter().map(|(start, end)| start.microseconds_to(end)).collect()
    }
}

impl Machine for Gpu {
    type Buffer = Buffer;
    type Kernel = Kernel;

    fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        Gpu::upload(self, bytes)
    }

    fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        Gpu::write(self, buffer, bytes)
    }

    fn copy(&self, from: &Buffer, to: &Buffer) -> Result<()> {
        Gpu::copy(self, from, to)
    }

    fn download(&self, buffer: &Buffer) -> Result<(Vec<u8>, Guards)> {
        Gpu::download(self, buffer)
    }

    fn address(&self, buffer: &Buffer, offset_bytes: usize) -> u64 {
        buffer.pointer(offset_bytes)
    }

    fn look_at(&self, other: &Gpu) -> Result<()> {
        Gpu::look_at(self, other)
    }

    fn reach(&self, ranks: &Ranks) -> Result<()> {
        Communicator::reach(self, ranks)
    }

    fn records_swaps(&self, ranks: &Ranks) -> bool {
        ranks.between_gpus(|known| known.is_some())
    }

    fn swap(
        &self,
        ranks: &Ranks,
        about: About,
        sent: &[Freight<Memory<Buffer>>],
        rooms: &[Freight<Memory<Buffer>>],
    ) -> Result<()> {
        ranks.between_gpus(|known| match known {
            Some(communicator) => communicator.swap(self, sent, rooms),
            None => through_hosts(self, ranks, about, sent, rooms),
        })
    }

    fn record_together(gpus: &[&Gpu], work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        gpus.split_first().map(|(first, others)| Gpu::record_on(first, others, work)).transpose()
    }

    fn replay_together(gpus: &[&Gpu], graph: &Graph) -> Result<()> {
        let Some((first, others)) = gpus.split_first() else { return Ok(()) };
        others.iter().try_for_each(|other| first.wait_for(other))?;
        first.replay(graph)?;
        others.iter().try_for_each(|other| other.wait_for(first))
    }

    fn wait(&self) -> Result<()> {
        self.synchronize()
    }

    fn launch(&self, kernel: &Kernel, launch: &Launch, args: &[Arg]) -> Result<()> {
        Gpu::launch(self, kernel, launch, args)
    }

    fn blocks_at_once(&self, kernel: &Kernel, launch: &Launch) -> Result<Option<u32>> {
        let cluster: u32 = launch.cluster.iter().product();
        if cluster > 1 {
            return Ok(Some(kernel.clusters_at_once(launch)?.saturating_mul(cluster)));
        }
        let each = kernel.blocks_at_once(launch.block.iter().product(), launch.shared)?;
        Ok(Some(each.saturating_mul(self.multiprocessors)))
    }

    type Recording = Graph;

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Graph>> {
        Gpu::record(self, work).map(Some)
    }

    fn replay(&self, graph: &Graph) -> Result<()> {
        Gpu::replay(self, graph)
    }

    fn time_each(&self, runs: usize, launch: impl FnMut(usize) -> Result<()>) -> Result<Vec<f64>> {
        Gpu::time_each(self, runs, launch)
    }
}
