//! Kernels: the images and modules that hold them, their arguments, and what a launch may ask for.

use std::borrow::Cow;
use std::ffi::CString;
use std::sync::{Arc, OnceLock};
use stencilc_compiler::gpu;

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute as FunctionAttribute, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUmodule, CUresult, CUstream,
};

use super::context::Context;
use super::driver::{
    cuFuncGetAttribute, cuFuncSetAttribute, cuModuleGetFunction, cuModuleUnload,
    cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveClusters,
};
use crate::machine::{Arg, Launch};
use crate::{Error, Result};

/// Kernels in the GPU's memory, unloaded with the last of them.
pub struct Module {
    pub(super) inner: Arc<Loaded>,
}

pub(super) struct Loaded {
    pub(super) context: Arc<Context>,
    pub(super) handle: CUmodule,
}

// SAFETY: the handle is the driver's, whose calls may come from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: no kernel of the module is left. A failure to unload has no remedy.
            let _ = unsafe { cuModuleUnload(self.handle) };
        }
    }
}

impl Module {
    /// The kernel with a name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let context = &self.inner.context;
        context.bind()?;
        let c_name = CString::new(name).map_err(|_| Error::call("a kernel's name contains a zero byte"))?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current, the module loaded, and the name ends with a zero byte.
        let answer = unsafe { cuModuleGetFunction(&mut handle, self.inner.handle, c_name.as_ptr()) };
        context.succeed(answer, &format!("find kernel {name}"))?;
        let get = |attribute| {
            let mut value = 0;
            // SAFETY: the kernel is the driver's, and the number goes into an integer that is there.
            let answer = unsafe { cuFuncGetAttribute(&mut value, attribute, handle) };
            context.succeed(answer, &format!("describe kernel {name}")).map(|()| u32::try_from(value).unwrap_or(0))
        };
        Ok(Kernel {
            name: name.into(),
            registers: get(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local: get(FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            max_threads: get(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            static_shared: get(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            parameters: context.driver.tells_parameters.then(OnceLock::new),
            handle,
            module: Arc::clone(&self.inner),
        })
    }
}

/// A kernel that can be launched.
pub struct Kernel {
    /// Its name.
    pub name: Arc<str>,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread: what registers have no room for.
    pub local: u32,
    /// The most threads that a block of it may have.
    pub max_threads: u32,
    /// Bytes of shared memory that a block has without asking.
    static_shared: u32,
    /// Where its parameters are, if the driver tells: asked at the first launch.
    pub(super) parameters: Option<OnceLock<Vec<Place>>>,
    pub(super) handle: CUfunction,
    pub(super) module: Arc<Loaded>,
}

// SAFETY: the handle is the driver's, whose calls may come from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// Bytes of shared memory, static and dynamic, that a block may have without the kernel having been told of more.
const USUAL_SHARED: u32 = gpu::SHARED as u32;

/// Blocks of a cluster that every GPU takes that knows clusters.
const USUAL_CLUSTER: u32 = 8;

impl Kernel {
    /// How many blocks of so many threads, with so much dynamic shared memory, a multiprocessor works on at once.
    ///
    /// # Errors
    ///
    /// When the driver does not tell, as after a kernel has failed.
    pub fn blocks_at_once(&self, threads: u32, shared: u32) -> Result<u32> {
        let context = &self.module.context;
        context.bind()?;
        self.allow_shared(shared)?;
        let mut blocks = 0;
        let (threads, shared) = (threads.cast_signed(), shared as usize);
        // SAFETY: the kernel is the driver's, and the number goes into an integer that is there.
        let answer = unsafe { cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.handle, threads, shared) };
        context.succeed(answer, &format!("tell the occupancy of kernel {}", self.name))?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// How many clusters of a launch the GPU works on at once.
    ///
    /// # Errors
    ///
    /// When the driver does not tell, as after a kernel has failed.
    pub(super) fn clusters_at_once(&self, launch: &Launch) -> Result<u32> {
        let context = &self.module.context;
        context.bind()?;
        self.allow(launch)?;
        // Whether all are there is what is asked.
        let mut attributes = launch_attributes(launch.cluster, false);
        let config = launch_config(launch, &mut attributes, std::ptr::null_mut());
        let mut clusters = 0;
        // SAFETY: the kernel is the driver's, the attributes outlive the call, and the number goes into an integer that is
        // there.
        let answer = unsafe { cuOccupancyMaxActiveClusters(&mut clusters, self.handle, &config) };
        context.succeed(answer, &format!("tell how many clusters of kernel {} there are at once", self.name))?;
        Ok(u32::try_from(clusters).unwrap_or(0))
    }

    /// Lets blocks and clusters of the kernel be as large as a launch has them.
    pub(super) fn allow(&self, launch: &Launch) -> Result<()> {
        self.allow_shared(launch.shared)?;
        self.allow_cluster(launch.cluster.iter().product())
    }

    /// Lets clusters of the kernel have more blocks than every GPU takes.
    fn allow_cluster(&self, blocks: u32) -> Result<()> {
        if blocks <= USUAL_CLUSTER {
            return Ok(());
        }
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        // SAFETY: the kernel is the driver's, and its module is loaded.
        let answer = unsafe { cuFuncSetAttribute(self.handle, attribute, 1) };
        self.module.context.succeed(answer, &format!("give kernel {} clusters of {blocks} blocks", self.name))
    }

    /// Lets blocks of the kernel have so much dynamic shared memory.
    fn allow_shared(&self, bytes: u32) -> Result<()> {
        // What it has beside that counts, too.
        if bytes.saturating_add(self.static_shared) <= USUAL_SHARED {
            return Ok(());
        }
        let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the kernel is the driver's, and its module is loaded.
        let answer = unsafe { cuFuncSetAttribute(self.handle, attribute, bytes.cast_signed()) };
        self.module.context.succeed(answer, &format!("give kernel {} {bytes} bytes of shared memory", self.name))
    }
}

/// What a launch asks for beside its extents.
pub(super) fn launch_attributes([x, y, z]: [u32; 3], cooperative: bool) -> Vec<CUlaunchAttribute> {
    let attribute = |id, value| CUlaunchAttribute { id, pad: [0; 4], value };
    let mut attributes = Vec::new();
    if [x, y, z] != [1; 3] {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.clusterDim.x = x;
        value.clusterDim.y = y;
        value.clusterDim.z = z;
        attributes.push(attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
    }
    if cooperative {
        let mut value = CUlaunchAttributeValue { pad: [0; 64] };
        value.cooperative = 1;
        attributes.push(attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
    }
    attributes
}

/// A launch as the driver takes it. The attributes have to outlive it.
pub(super) fn launch_config(launch: &Launch, attributes: &mut [CUlaunchAttribute], stream: CUstream) -> CUlaunchConfig {
    let Launch { grid, block, shared, .. } = *launch;
    CUlaunchConfig {
        gridDimX: grid[0],
        gridDimY: grid[1],
        gridDimZ: grid[2],
        blockDimX: block[0],
        blockDimY: block[1],
        blockDimZ: block[2],
        sharedMemBytes: shared,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    }
}

/// Where a parameter is among all: its first byte, and how many.
pub(super) type Place = (usize, usize);

/// The first `count` parameters of a kernel, from a driver that tells them. Asking for one more, to see that there is none,
/// would be an error that memory checkers report.
pub(super) fn parameters(kernel: CUfunction, count: usize) -> Vec<Place> {
    let mut places = Vec::new();
    for index in 0..count {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the kernel is the driver's, and both numbers go into integers that are there.
        let answer = unsafe { sys::cuFuncGetParamInfo(kernel, index, &mut offset, &mut size) };
        if answer != CUresult::CUDA_SUCCESS {
            break;
        }
        places.push((offset, size));
    }
    places
}

/// Arguments as the driver takes them: one after the other, each at a multiple of its own size.
pub(super) struct Packed {
    pub(super) bytes: Vec<u8>,
    pub(super) places: Vec<Place>,
}

impl Packed {
    pub(super) fn new(args: &[Arg]) -> Self {
        let mut packed = Self { bytes: Vec::with_capacity(8 * args.len()), places: Vec::with_capacity(args.len()) };
        for arg in args {
            match *arg {
                Arg::Pointer(value) => packed.push(&value.to_ne_bytes()),
                Arg::F32(value) => packed.push(&value.to_ne_bytes()),
                Arg::F64(value) => packed.push(&value.to_ne_bytes()),
                Arg::I32(value) => packed.push(&value.to_ne_bytes()),
                Arg::I64(value) => packed.push(&value.to_ne_bytes()),
                Arg::U8(value) => packed.push(&[value]),
            }
        }
        packed
    }

    fn push(&mut self, bytes: &[u8]) {
        let offset = self.bytes.len().next_multiple_of(bytes.len());
        self.bytes.resize(offset, 0);
        self.bytes.extend_from_slice(bytes);
        self.places.push((offset, bytes.len()));
    }
}

/// The sizes of parameters, for a message.
pub(super) fn spell(places: &[Place]) -> String {
    match places {
        [] => "no".to_owned(),
        places => places.iter().map(|(_, size)| size.to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// What a launch may ask for along x, y and z.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

/// Whether a launch of a kernel is within the limits of the GPU and of the kernel.
pub(super) fn check_extents(
    limits: &Limits,
    kernel: &str,
    registers: u32,
    max_threads: u32,
    grid: [u32; 3],
    block: [u32; 3],
) -> Result<()> {
    let spell = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    if grid.contains(&0) || block.contains(&0) {
        let (grid, block) = (spell(grid), spell(block));
        return Err(Error::call(format!("kernel {kernel} cannot be started on {grid} blocks of {block} threads")));
    }
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let (threads, most) = (block[axis], limits.block[axis]);
        if threads > most {
            let block = spell(block);
            return Err(Error::input(format!(
                "a block of {block} has {threads} threads along {name}, and {most} is the most"
            ))
            .help(format!("choose a --block of at most {most} along {name}")));
        }
    }
    let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
    if threads > u64::from(max_threads) {
        return Err(Error::input(format!(
            "a block of {} has {threads} threads, and kernel {kernel}, which takes {registers} registers a thread, \
             can have {max_threads}",
            spell(block)
        ))
        .help("choose a smaller --block, such as 32x8"));
    }
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let (blocks, most) = (grid[axis], limits.grid[axis]);
        if blocks > most {
            return Err(Error::input(format!(
                "kernel {kernel} needs {blocks} blocks of {} along {name}, and {most} is the most",
                spell(block)
            ))
            .help(format!("choose a --block with more threads along {name}")));
        }
    }
    Ok(())
}

/// An image as the driver can take it. The driver is not told the length, so what was cut short must not reach it.
pub(super) fn check_image(image: &[u8]) -> Result<Cow<'_, [u8]>> {
    let broken = || Error::input("the kernels' image is neither PTX text nor a whole cubin");
    if image.starts_with(b"\x7fELF") {
        return if is_whole_elf(image) { Ok(Cow::Borrowed(image)) } else { Err(broken()) };
    }
    let text = image.strip_suffix(b"\0").unwrap_or(image);
    if text.contains(&0) || !text.windows(8).any(|word| word == b".version") {
        return Err(broken());
    }
    Ok(if text.len() < image.len() { Cow::Borrowed(image) } else { Cow::Owned([image, b"\0"].concat()) })
}

/// Whether the tables and the sections of a 64-bit ELF file lie within it.
fn is_whole_elf(image: &[u8]) -> bool {
    const NO_BITS: u32 = 8;
    let half = |at: usize| image.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
    let word = |at: usize| image.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let long = |at: usize| {
        let bytes = image.get(at..)?.first_chunk()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let within = |offset: usize, length: usize| offset.checked_add(length).filter(|&end| end <= image.len());
    let check = || {
        let (segments, sections) = (long(0x20)?, long(0x28)?);
        within(segments, usize::from(half(0x36)?) * usize::from(half(0x38)?))?;
        let (size, count) = (usize::from(half(0x3a)?), usize::from(half(0x3c)?));
        within(sections, size * count)?;
        for section in (0..count).map(|index| sections + index * size) {
            if word(section.checked_add(0x04)?)? != NO_BITS {
                within(long(section.checked_add(0x18)?)?, long(section.checked_add(0x20)?)?)?;
            }
        }
        Some(())
    };
    check().is_some()
}
