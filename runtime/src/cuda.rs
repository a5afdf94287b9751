//! The GPU, through the CUDA driver: memory with guard bytes, kernels, launches, times.
//!
//! The driver is opened at run time, so that this program starts on any machine. cudarc panics where there is no
//! driver, and on a call that an old driver does not have; `driver` therefore looks first, and everything else here
//! goes through it.
//!
//! All work of a GPU is in one order, that of the calls: everything uses the default stream.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUdeviceptr, CUevent, CUevent_flags, CUfunction,
    CUfunction_attribute as FunctionAttribute, CUjit_option, CUmodule, CUresult,
};
use serde::Serialize;

use crate::{Error, Result};

/// Bytes of guard before and after the bytes of a [`Buffer`].
pub const GUARD: usize = 256;

/// What guards are filled with, repeated: as f32 and as f64 not a number, but neither the one that the GPU makes nor
/// the integer -1, so that a stray read shows in the results and a stray write in the guard.
const PATTERN: [u8; 4] = [0xc3, 0xa5, 0xfd, 0xff];

/// The oldest driver that is used, as the CUDA version that it announces: 12.0.
const OLDEST: c_int = 12_000;

/// Imports calls of the driver, and lists them for `driver` to look for.
macro_rules! driver_calls {
    ($($call:ident),* $(,)?) => {
        use cudarc::driver::sys::{$($call),*};
        const CALLS: &[&str] = &[$(stringify!($call)),*];
    };
}

driver_calls! {
    cuCtxSetCurrent,
    cuCtxSynchronize,
    cuDeviceGet,
    cuDeviceGetAttribute,
    cuDeviceGetCount,
    cuDeviceGetName,
    cuDevicePrimaryCtxRelease_v2,
    cuDevicePrimaryCtxRetain,
    cuDeviceTotalMem_v2,
    cuDriverGetVersion,
    cuEventCreate,
    cuEventDestroy_v2,
    cuEventRecord,
    cuFuncGetAttribute,
    cuGetErrorName,
    cuGetErrorString,
    cuInit,
    cuLaunchKernel,
    cuMemAlloc_v2,
    cuMemFree_v2,
    cuMemGetInfo_v2,
    cuMemcpyDtoH_v2,
    cuMemcpyHtoD_v2,
    cuMemsetD8_v2,
    cuModuleGetFunction,
    cuModuleLoadDataEx,
    cuModuleUnload,
}

/// Milliseconds between two events. cudarc imports the successor only, which drivers before 12.8 do not have.
type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// A driver that was found to have every call, and initialised.
struct Driver {
    /// The CUDA version that it announces: 13000 for 13.0.
    version: c_int,
    elapsed: ElapsedTime,
    /// Whether it tells the parameters of a kernel, as drivers from CUDA 12.4 do.
    tells_parameters: bool,
}

/// The driver; the answer is that of the first call.
fn driver() -> Result<&'static Driver> {
    static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
    DRIVER.get_or_init(open_driver).as_ref().map_err(Error::clone)
}

fn open_driver() -> Result<Driver> {
    let install = "install NVIDIA's driver, version 525 or newer; in a container, start it with the GPUs (--gpus all)";
    // SAFETY: opening runs the initialisers of the system's libcuda.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::input("there is no CUDA driver library (libcuda.so.1) on this machine").help(install));
    }
    // SAFETY: it is there, so this does not panic.
    let library = unsafe { sys::culib() };
    let too_old = |what: String| {
        Error::input(format!("the CUDA driver is too old: {what}"))
            .help("install NVIDIA's driver, version 525 or newer")
    };
    for call in CALLS {
        // SAFETY: the address is only looked up, not used.
        if unsafe { library.get::<*const c_void>(*call) }.is_err() {
            return Err(too_old(format!("it lacks {call}")));
        }
    }
    // SAFETY: that is the call's type in `cuda.h`.
    let elapsed = unsafe { library.get::<ElapsedTime>("cuEventElapsedTime") };
    let elapsed = *elapsed.map_err(|_| too_old("it lacks cuEventElapsedTime".to_owned()))?;

    // SAFETY: as for the other calls.
    let tells_parameters = unsafe { library.get::<*const c_void>("cuFuncGetParamInfo") }.is_ok();

    let mut version = 0;
    // SAFETY: the version goes into an integer that is there; this call needs no initialisation.
    started(unsafe { cuDriverGetVersion(&mut version) })?;
    if version < OLDEST {
        let (major, minor) = split_version(version);
        return Err(too_old(format!("it is for CUDA {major}.{minor}, and 12.0 is the oldest that will do")));
    }
    // SAFETY: 0 is the only flag that there is.
    started(unsafe { cuInit(0) })?;
    Ok(Driver { version, elapsed, tells_parameters })
}

/// An error unless the driver's first calls succeeded; they fail where it is there but of no use.
fn started(answer: CUresult) -> Result<()> {
    match answer {
        CUresult::CUDA_ERROR_NO_DEVICE => Err(Error::input("there is a CUDA driver but no GPU on this machine")
            .help("check `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES")),
        CUresult::CUDA_ERROR_STUB_LIBRARY => {
            Err(Error::input("the libcuda.so that is found is the toolkit's stand-in for linking, not a driver")
                .help("take the toolkit's folder `stubs` out of LD_LIBRARY_PATH, or install NVIDIA's driver"))
        }
        CUresult::CUDA_SUCCESS => Ok(()),
        answer => Err(Error::input(format!("the CUDA driver does not start: {}", words(answer)))
            .help("check `nvidia-smi`; after an update of the driver, restart the machine")),
    }
}

/// 13000 as (13, 0).
fn split_version(version: c_int) -> (i32, i32) {
    (version / 1000, version % 1000 / 10)
}

/// The driver's words for an answer.
fn words(answer: CUresult) -> String {
    let text = |call: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = std::ptr::null();
        // SAFETY: the driver writes the address of a constant of its own, or null.
        let known = unsafe { call(answer, &mut text) } == CUresult::CUDA_SUCCESS && !text.is_null();
        // SAFETY: a text that is not null ends with a zero byte and is never freed.
        known.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    match (text(cuGetErrorString), text(cuGetErrorName)) {
        (Some(text), Some(name)) => format!("{text} ({name})"),
        _ => format!("error {}", answer as u32),
    }
}

/// An error unless a call succeeded; `doing` is what was asked of the GPU.
fn succeed(answer: CUresult, doing: &str) -> Result<()> {
    match answer {
        CUresult::CUDA_SUCCESS => Ok(()),
        answer => Err(Error::input(format!("the GPU cannot {doing}: {}", words(answer)))),
    }
}

/// The CUDA version that the driver is for: (13, 0).
///
/// # Errors
///
/// When there is no driver or none that can be used.
pub fn driver_version() -> Result<(i32, i32)> {
    Ok(split_version(driver()?.version))
}

/// How many GPUs there are.
///
/// # Errors
///
/// When there is no driver or none that can be used, or no GPU.
pub fn availability() -> Result<usize> {
    driver()?;
    let mut count = 0;
    // SAFETY: the driver is initialised, and the number goes into an integer that is there.
    succeed(unsafe { cuDeviceGetCount(&mut count) }, "be counted")?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::input("there is no GPU on this machine").help("check the variable CUDA_VISIBLE_DEVICES")),
    }
}

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// Its number, from 0.
    pub ordinal: usize,
    /// Its name: `NVIDIA H200`.
    pub name: String,
    /// Its architecture: `sm_90`.
    pub arch: String,
    /// Bytes of its memory.
    pub memory: u64,
}

/// The GPUs of this machine, without opening any. There may be none, and [`availability`] says why.
pub fn devices() -> Vec<DeviceInfo> {
    let count = availability().unwrap_or(0);
    (0..count).filter_map(|ordinal| describe(ordinal, device(ordinal).ok()?).ok()).collect()
}

/// The driver's handle of a GPU.
fn device(ordinal: usize) -> Result<CUdevice> {
    let count = availability()?;
    let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < count).ok_or_else(|| {
        Error::call(format!("there is no GPU number {ordinal}: this machine has {count}")).help("they count from 0")
    })?;
    let mut device = 0;
    // SAFETY: the driver is initialised, and the handle goes into an integer that is there.
    succeed(unsafe { cuDeviceGet(&mut device, number) }, "be found")?;
    Ok(device)
}

fn describe(ordinal: usize, device: CUdevice) -> Result<DeviceInfo> {
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the driver writes at most 255 letters and a zero byte into the array of 256.
    succeed(unsafe { cuDeviceGetName(name.as_mut_ptr(), 255, device) }, "tell its name")?;
    // SAFETY: the array's last byte is zero still, so the text ends within it.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let mut memory = 0;
    // SAFETY: the size goes into an integer that is there.
    succeed(unsafe { cuDeviceTotalMem_v2(&mut memory, device) }, "tell its memory")?;
    let major = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceInfo { ordinal, name, arch: format!("sm_{major}{minor}"), memory: memory as u64 })
}

fn attribute(device: CUdevice, attribute: Attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the number goes into an integer that is there.
    succeed(unsafe { cuDeviceGetAttribute(&mut value, attribute, device) }, "describe itself")?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// The primary context of a GPU, released with the last thing that needs it.
struct Context {
    handle: CUcontext,
    device: CUdevice,
    driver: &'static Driver,
    /// The kernels launched since the last time that all were known to have ended well. The driver reports a kernel's
    /// failure at some later call, which can then say whose it may be.
    running: Mutex<Vec<Arc<str>>>,
}

// SAFETY: the driver's calls may come from any thread, as long as the context is current there; `bind` sees to it.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn open(device: CUdevice) -> Result<Self> {
        let driver = driver()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the device is the driver's, and the handle goes into a pointer that is there.
        succeed(unsafe { cuDevicePrimaryCtxRetain(&mut handle, device) }, "be opened").map_err(|error| {
            error.help("another program may have it for itself or fill its memory: see `nvidia-smi`")
        })?;
        Ok(Self { handle, device, driver, running: Mutex::default() })
    }

    /// Makes the context that of this thread, as every call that concerns it needs.
    fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained until `self` is dropped.
        succeed(unsafe { cuCtxSetCurrent(self.handle) }, "be used from this thread")
    }

    fn running(&self) -> MutexGuard<'_, Vec<Arc<str>>> {
        // A list of names is fit for use whatever became of the thread that held it.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`succeed`], but the failure of a kernel is told as such, and with its name.
    fn succeed(&self, answer: CUresult, doing: &str) -> Result<()> {
        let by_kernel = matches!(
            answer,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
                | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
                | CUresult::CUDA_ERROR_ASSERT
                | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
                | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUresult::CUDA_ERROR_INVALID_PC
                | CUresult::CUDA_ERROR_LAUNCH_FAILED
        );
        if !by_kernel {
            return succeed(answer, doing);
        }
        let who = match &self.running()[..] {
            [] => "a kernel".to_owned(),
            [one] => format!("kernel {one}"),
            many => format!("one of the kernels {}", many.join(", ")),
        };
        Err(Error::check(format!("{who} failed on the GPU: {}", words(answer)))
            .help("`compute-sanitizer` before the same command shows where"))
    }

    /// Waits until all work has ended.
    fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the context is current.
        self.succeed(unsafe { cuCtxSynchronize() }, "finish its work")?;
        self.running().clear();
        Ok(())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing that needs it is left. A failure to release has no remedy.
        let _ = unsafe { cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// What a launch may ask for along x, y and z.
#[derive(Clone, Copy, Debug)]
struct Limits {
    grid: [u32; 3],
    block: [u32; 3],
}

/// An open GPU. Buffers, modules and kernels may outlive it.
pub struct Gpu {
    /// Seconds that opening took: the driver's start, and the context, which is most of it.
    pub startup_seconds: f64,
    context: Arc<Context>,
    info: DeviceInfo,
    limits: Limits,
    l2_bytes: u32,
    multiprocessors: u32,
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
        let info = describe(ordinal, device)?;
        let context = Arc::new(Context::open(device)?);
        context.bind()?;
        let startup_seconds = start.elapsed().as_secs_f64();
        Ok(Self { startup_seconds, context, info, limits, l2_bytes, multiprocessors })
    }

    /// The GPU's name: `NVIDIA H200`.
    pub fn name(&self) -> &str {
        &self.info.name
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
        // SAFETY: the context is current, and the buffer has that many bytes.
        let answer = unsafe { cuMemsetD8_v2(buffer.pointer(0), byte, buffer.length) };
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

    /// Starts a kernel and returns at once. A failure while it runs is reported by a later call, with its name.
    ///
    /// # Errors
    ///
    /// When the grid or the block is more than the GPU or the kernel takes, or when the arguments are not those of
    /// the kernel. (Drivers before CUDA 12.4 do not tell what those are.)
    pub fn launch(&self, kernel: &Kernel, grid: [u32; 3], block: [u32; 3], args: &[Arg]) -> Result<()> {
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
        {
            let mut running = context.running();
            if !running.iter().any(|name| Arc::ptr_eq(name, &kernel.name)) {
                running.push(Arc::clone(&kernel.name));
            }
        }
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // SAFETY: the context is current and the kernel's module is loaded. The arguments come with their size, so the
        // driver does not read beyond them, and it copies them before it returns.
        let answer = unsafe {
            let stream = std::ptr::null_mut();
            cuLaunchKernel(kernel.handle, gx, gy, gz, bx, by, bz, 0, stream, std::ptr::null_mut(), extra.as_mut_ptr())
        };
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

/// A size in the unit that suits it.
fn in_bytes(bytes: usize) -> String {
    let bytes = bytes as f64;
    match bytes {
        _ if bytes >= 1e9 => format!("{:.2} GB", bytes / 1e9),
        _ if bytes >= 1e6 => format!("{:.2} MB", bytes / 1e6),
        _ => format!("{bytes} bytes"),
    }
}

/// Memory of the GPU: raw bytes between guards that show a stray write. Freed when dropped.
pub struct Buffer {
    context: Arc<Context>,
    /// Where the guard before the bytes begins. The driver's addresses are multiples of 256.
    base: CUdeviceptr,
    length: usize,
}

impl Buffer {
    /// How many bytes there are, guards aside.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address of a byte. That of the first is a multiple of 256.
    pub fn pointer(&self, offset_bytes: usize) -> u64 {
        self.base.wrapping_add((GUARD as u64).wrapping_add(offset_bytes as u64))
    }

    /// Copies bytes to an address within the buffer, guards included; the context has to be current.
    fn put(&self, address: CUdeviceptr, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the callers keep within the buffer, and the driver has read the bytes when it returns.
        let answer = unsafe { cuMemcpyHtoD_v2(address, bytes.as_ptr().cast(), bytes.len()) };
        self.context.succeed(answer, "be written to")
    }

    /// Copies bytes from an address within the buffer, guards included; the context has to be current.
    fn get(&self, address: CUdeviceptr, length: usize) -> Result<Vec<u8>> {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| {
            Error::input(format!("this machine's memory does not suffice for {} from the GPU", in_bytes(length)))
                .help("choose a smaller grid, or store fields as f32")
        })?;
        if length > 0 {
            // SAFETY: the callers keep within the buffer, and the list has the room.
            let answer = unsafe { cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, length) };
            self.context.succeed(answer, "be read from")?;
            // SAFETY: the driver has written all of them.
            unsafe { bytes.set_len(length) };
        }
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: the memory was reserved here and is not used again. A failure to free has no remedy.
            let _ = unsafe { cuMemFree_v2(self.base) };
        }
    }
}

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

    fn compare(before: &[u8], after: &[u8]) -> Self {
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

/// Kernels in the GPU's memory, unloaded with the last of them.
pub struct Module {
    inner: Arc<Loaded>,
}

struct Loaded {
    context: Arc<Context>,
    handle: CUmodule,
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
            max_threads: get(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
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
    /// The most threads that a block of it may have.
    pub max_threads: u32,
    /// Where its parameters are, if the driver tells: asked at the first launch.
    parameters: Option<OnceLock<Vec<Place>>>,
    handle: CUfunction,
    module: Arc<Loaded>,
}

// SAFETY: the handle is the driver's, whose calls may come from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// Where a parameter is among all: its first byte, and how many.
type Place = (usize, usize);

/// The first `count` parameters of a kernel, from a driver that tells them. Asking for one more, to see that there is none,
/// would be an error that memory checkers report.
fn parameters(kernel: CUfunction, count: usize) -> Vec<Place> {
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

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// An address, from [`Buffer::pointer`].
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

/// Arguments as the driver takes them: one after the other, each at a multiple of its own size.
struct Packed {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

impl Packed {
    fn new(args: &[Arg]) -> Self {
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
fn spell(places: &[Place]) -> String {
    match places {
        [] => "no".to_owned(),
        places => places.iter().map(|(_, size)| size.to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// Whether a launch of a kernel is within the limits of the GPU and of the kernel.
fn check_extents(
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
fn check_image(image: &[u8]) -> Result<Cow<'_, [u8]>> {
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

/// A mark in the GPU's work that knows when it was passed.
struct Event<'a> {
    context: &'a Context,
    handle: CUevent,
}

impl<'a> Event<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current, and the handle goes into a pointer that is there.
        let answer = unsafe { cuEventCreate(&mut handle, CUevent_flags::CU_EVENT_DEFAULT as c_uint) };
        context.succeed(answer, "make an event")?;
        Ok(Self { context, handle })
    }

    fn record(&self) -> Result<()> {
        self.context.bind()?;
        // SAFETY: the context is current, the event its own, and the null pointer its default stream.
        self.context.succeed(unsafe { cuEventRecord(self.handle, std::ptr::null_mut()) }, "record an event")
    }

    /// Microseconds between two events that have both been passed.
    fn microseconds_to(&self, later: &Self) -> Result<f64> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are the context's, and the time goes into a number that is there.
        let answer = unsafe { (self.context.driver.elapsed)(&mut milliseconds, self.handle, later.handle) };
        self.context.succeed(answer, "tell the time between events")?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: the event is not used again. A failure to free has no remedy.
        let _ = unsafe { cuEventDestroy_v2(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fault;
    use crate::nvrtc::{self, Kind};

    /// The first GPU of this machine; tests on it are skipped where there is none.
    fn gpu() -> Option<Gpu> {
        Gpu::open(0).inspect_err(|_| println!("skipped: no GPU")).ok()
    }

    /// The kernels of a source, or `None` where there is no compiler.
    fn load(gpu: &Gpu, source: &str, kind: Kind) -> Option<Module> {
        if nvrtc::find().is_err() {
            println!("skipped: no NVRTC");
            return None;
        }
        let compiled = nvrtc::compile(source, "test.cu", &gpu.arch(), kind).unwrap();
        Some(gpu.load(&compiled.image).unwrap())
    }

    const LIMITS: Limits = Limits { grid: [i32::MAX as u32, 65_535, 65_535], block: [1024, 1024, 64] };

    #[test]
    fn a_missing_gpu_is_an_error() {
        let count = match availability() {
            Ok(count) => count,
            Err(error) => {
                assert!(error.help.is_some(), "{error}");
                0
            }
        };
        assert_eq!(devices().len(), count);
        for ordinal in [count, usize::MAX] {
            let Err(error) = Gpu::open(ordinal) else { panic!("GPU {ordinal} of {count} was opened") };
            assert!(count == 0 || error.message.contains(&format!("this machine has {count}")), "{error}");
        }
    }

    #[test]
    fn bytes_come_back_and_guards_are_watched() {
        let Some(gpu) = gpu() else { return };
        for length in [0, 1, 4095, 1 << 20] {
            let bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let buffer = gpu.upload(&bytes).unwrap();
            assert_eq!(buffer.pointer(0) % 256, 0);
            assert_eq!(gpu.download(&buffer).unwrap(), (bytes, Guards { before: None, after: None }));
            gpu.fill(&buffer, 7).unwrap();
            assert_eq!(gpu.download(&buffer).unwrap().0, vec![7; length]);
            assert!(gpu.write(&buffer, &vec![0; length + 1]).is_err());
        }
        let Err(error) = gpu.allocate(1 << 50, 0) else { panic!("a petabyte was reserved") };
        assert!(error.message.contains("does not suffice") && error.help.is_some(), "{error}");
        assert!(gpu.allocate(usize::MAX, 0).is_err());
        let (free, total) = gpu.memory().unwrap();
        assert!(0 < free && free <= total);
    }

    #[test]
    fn kernels_run_and_take_their_arguments() {
        let Some(gpu) = gpu() else { return };
        let source = r#"extern "C" __global__ void store(bool b, double* a, float f, long long l, int i, double d) {
            a[threadIdx.x] = double(threadIdx.x) + b + f + l + i + d;
        }"#;
        for kind in [Kind::Cubin, Kind::Ptx] {
            let Some(module) = load(&gpu, source, kind) else { return };
            let kernel = module.kernel("store").unwrap();
            let buffer = gpu.allocate(8 * 64, 0).unwrap();
            let args = [
                Arg::U8(1),
                Arg::Pointer(buffer.pointer(0)),
                Arg::F32(0.5),
                Arg::I64(1 << 40),
                Arg::I32(-3),
                Arg::F64(0.25),
            ];
            gpu.launch(&kernel, [1, 1, 1], [64, 1, 1], &args).unwrap();
            let (bytes, guards) = gpu.download(&buffer).unwrap();
            assert!(guards.intact());
            let last = f64::from_ne_bytes(*bytes.last_chunk().unwrap());
            assert_eq!(last, 63.0 + 1.0 + 0.5 + (1u64 << 40) as f64 - 3.0 + 0.25);

            if gpu.driver_version() >= (12, 4) {
                let error = gpu.launch(&kernel, [1, 1, 1], [64, 1, 1], &args[..5]).unwrap_err();
                assert!(error.message.contains("is given 1, 8, 4, 8, 4"), "{error}");
            }
            assert!(gpu.launch(&kernel, [1, 1, 1], [2048, 1, 1], &args).is_err());
            assert!(module.kernel("other").is_err());
            assert!(gpu.load(b"\x7fELF").is_err());
            // The kernel keeps what it needs.
            drop(module);
            let times = gpu.time_each(10, |_| gpu.launch(&kernel, [1, 1, 1], [64, 1, 1], &args)).unwrap();
            assert!(times.len() == 10 && times.iter().all(|&time| time > 0.0 && time < 1e5), "{times:?}");
            assert!(gpu.time(|| Ok(())).unwrap() < 1e5);
        }
    }

    #[test]
    fn a_stray_write_shows_in_the_guard() {
        let Some(gpu) = gpu() else { return };
        let source = r#"extern "C" __global__ void stray(float* a, int at) { a[at] = 0.0f; }"#;
        let Some(module) = load(&gpu, source, Kind::Cubin) else { return };
        let kernel = module.kernel("stray").unwrap();
        for (at, guards) in
            [(-2, Guards { before: Some(5), after: None }), (16, Guards { before: None, after: Some(1) })]
        {
            let buffer = gpu.allocate(64, 0).unwrap();
            let args = [Arg::Pointer(buffer.pointer(0)), Arg::I32(at)];
            gpu.launch(&kernel, [1, 1, 1], [1, 1, 1], &args).unwrap();
            assert_eq!(gpu.download(&buffer).unwrap().1, guards);
        }
    }

    #[test]
    #[ignore = "a failed kernel ends the GPU's use in this process: run it alone, with --ignored"]
    fn a_failed_kernel_is_named() {
        let Some(gpu) = gpu() else { return };
        let source = r#"extern "C" __global__ void stray(float* a, int at) { a[at] = 0.0f; }"#;
        let Some(module) = load(&gpu, source, Kind::Cubin) else { return };
        let kernel = module.kernel("stray").unwrap();
        gpu.launch(&kernel, [1, 1, 1], [1, 1, 1], &[Arg::Pointer(0), Arg::I32(99_999)]).unwrap();
        for _ in 0..2 {
            let error = gpu.synchronize().unwrap_err();
            assert!(error.fault == Fault::Check && error.message.starts_with("kernel stray failed"), "{error}");
        }
        assert!(gpu.upload(&[0]).is_err_and(|error| error.message.contains("kernel stray")));
    }

    #[test]
    fn guards_tell_the_nearest_byte() {
        let guard = PATTERN.repeat(GUARD / PATTERN.len());
        let overwritten = |places: &[usize]| {
            let mut guard = guard.clone();
            places.iter().for_each(|&place| guard[place] = 0);
            guard
        };
        assert!(Guards::compare(&guard, &guard).intact());
        let guards = Guards::compare(&overwritten(&[3, 250]), &overwritten(&[7, 100]));
        assert_eq!(guards, Guards { before: Some(6), after: Some(8) });
        assert!(guards.to_string().contains("6 before the first and 8 after the last"));
        assert!(f32::from_le_bytes(PATTERN).is_nan());
        assert!(f64::from_le_bytes([PATTERN, PATTERN].concat().try_into().unwrap()).is_nan());
    }

    #[test]
    fn arguments_are_aligned() {
        let packed = Packed::new(&[Arg::U8(1), Arg::F64(2.0), Arg::I32(3), Arg::U8(4), Arg::F32(5.0), Arg::Pointer(6)]);
        assert_eq!(packed.places, [(0, 1), (8, 8), (16, 4), (20, 1), (24, 4), (32, 8)]);
        assert_eq!(packed.bytes.len(), 40);
        assert_eq!(Packed::new(&[]).bytes.len(), 0);
    }

    #[test]
    fn launches_beyond_the_limits_are_refused() {
        let check = |max_threads, grid, block| check_extents(&LIMITS, "lap", 96, max_threads, grid, block);
        assert!(check(1024, [1, 65_535, 1], [32, 32, 1]).is_ok());
        let message = |max_threads, grid, block| check(max_threads, grid, block).unwrap_err().to_string();
        assert!(message(640, [1, 1, 1], [32, 32, 1]).contains("can have 640"));
        assert!(message(1024, [1, 1, 1], [1, 1, 65]).contains("65 threads along z"));
        assert!(message(1024, [1, 1, 1], [u32::MAX; 3]).contains("along x"));
        assert!(message(1024, [1, 65_536, 1], [32, 1, 1]).contains("more threads along y"));
        assert_eq!(check(1024, [0, 1, 1], [32, 1, 1]).unwrap_err().fault, Fault::Call);
    }

    #[test]
    fn images_cut_short_do_not_reach_the_driver() {
        assert!(check_image(b"").is_err());
        assert!(check_image(b"\x7fELF").is_err());
        assert!(check_image(b"text").is_err());
        assert!(check_image(b".version 9.0\0 and more").is_err());
        assert_eq!(check_image(b".version 9.0").unwrap(), b".version 9.0\0".as_slice());
        assert_eq!(check_image(b".version 9.0\0").unwrap(), b".version 9.0\0".as_slice());

        let Ok(nvrtc) = nvrtc::find() else { return println!("skipped: no NVRTC") };
        let source = r#"extern "C" __global__ void k(float* a) { __shared__ float t[32]; a[1] = t[threadIdx.x]; }"#;
        let image = nvrtc.compile(source, "k.cu", "sm_90", Kind::Cubin).unwrap().image;
        assert!(check_image(&image).is_ok());
        for length in 4..image.len() {
            assert!(check_image(&image[..length]).is_err(), "{length} of {}", image.len());
        }
    }
}
