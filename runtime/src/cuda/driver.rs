//! Opening the CUDA driver: the calls that it has to have, its answers as errors, and the GPUs that it knows.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute as Attribute, CUevent, CUresult};
use serde::Serialize;

use crate::{Error, Result};

/// The oldest driver that is used, as the CUDA version that it announces: 12.0.
const OLDEST: c_int = 12_000;

/// Imports calls of the driver for this module's files, and lists them for `driver` to look for.
macro_rules! driver_calls {
    ($($call:ident),* $(,)?) => {
        pub(super) use cudarc::driver::sys::{$($call),*};
        const CALLS: &[&str] = &[$(stringify!($call)),*];
    };
}

driver_calls! {
    cuCtxGetCurrent,
    cuCtxSetCurrent,
    cuCtxEnablePeerAccess,
    cuCtxSynchronize,
    cuDeviceCanAccessPeer,
    cuDeviceGet,
    cuDeviceGetAttribute,
    cuDeviceGetCount,
    cuDeviceGetName,
    cuDeviceGetUuid_v2,
    cuDevicePrimaryCtxRelease_v2,
    cuDevicePrimaryCtxRetain,
    cuDeviceTotalMem_v2,
    cuEventCreate,
    cuEventDestroy_v2,
    cuEventRecord,
    cuFuncGetAttribute,
    cuFuncSetAttribute,
    cuGetErrorName,
    cuGetErrorString,
    cuGraphDestroy,
    cuGraphExecDestroy,
    cuGraphInstantiateWithFlags,
    cuGraphLaunch,
    cuInit,
    cuLaunchKernelEx,
    cuMemAlloc_v2,
    cuMemFree_v2,
    cuMemGetInfo_v2,
    cuMemcpyDtoDAsync_v2,
    cuMemcpyDtoH_v2,
    cuMemcpyHtoD_v2,
    cuMemsetD8Async,
    cuModuleGetFunction,
    cuModuleLoadDataEx,
    cuModuleUnload,
    cuOccupancyMaxActiveBlocksPerMultiprocessor,
    cuOccupancyMaxActiveClusters,
    cuStreamBeginCapture_v2,
    cuStreamCreate,
    cuStreamDestroy_v2,
    cuStreamEndCapture,
    cuStreamSynchronize,
    cuStreamWaitEvent,
}

/// Milliseconds between two events. cudarc imports the successor only, which drivers before 12.8 do not have.
pub(super) type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// A driver that was found to have every call, and initialised.
pub(super) struct Driver {
    /// The CUDA version that it announces: 13000 for 13.0.
    pub(super) version: c_int,
    pub(super) elapsed: ElapsedTime,
    /// Whether it tells the parameters of a kernel, as drivers from CUDA 12.4 do.
    pub(super) tells_parameters: bool,
}

/// The driver; the answer is that of the first call.
pub(super) fn driver() -> Result<&'static Driver> {
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
    // The version comes first, for it says more than which of the calls is not there.
    // SAFETY: that is the call's type in `cuda.h`.
    let tell = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> CUresult>("cuDriverGetVersion") };
    let tell = tell.map_err(|_| too_old("it does not tell its version".to_owned()))?;
    let mut version = 0;
    // SAFETY: the version goes into an integer that is there; this call needs no initialisation.
    let told = unsafe { tell(&mut version) };
    if told == CUresult::CUDA_SUCCESS && version < OLDEST {
        let (major, minor) = split_version(version);
        return Err(too_old(format!("it is for CUDA {major}.{minor}, and 12.0 is the oldest that will do")));
    }
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
    started(told)?;
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
pub(super) fn split_version(version: c_int) -> (i32, i32) {
    (version / 1000, version % 1000 / 10)
}

/// The driver's words for an answer.
pub(super) fn words(answer: CUresult) -> String {
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
pub(super) fn succeed(answer: CUresult, doing: &str) -> Result<()> {
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
pub(super) fn device(ordinal: usize) -> Result<CUdevice> {
    let count = availability()?;
    let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < count).ok_or_else(|| {
        Error::call(format!("there is no GPU number {ordinal}: this machine has {count}")).help("they count from 0")
    })?;
    let mut device = 0;
    // SAFETY: the driver is initialised, and the handle goes into an integer that is there.
    succeed(unsafe { cuDeviceGet(&mut device, number) }, "be found")?;
    Ok(device)
}

/// What tells a GPU from any other.
pub(super) type DeviceUuid = [u8; 16];

/// That of a GPU.
pub(super) fn uuid(device: CUdevice) -> Result<DeviceUuid> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the device is the driver's, and the answer goes where there is room for it.
    succeed(unsafe { cuDeviceGetUuid_v2(&mut uuid, device) }, "say which GPU it is")?;
    Ok(uuid.bytes.map(|byte| byte as u8))
}

pub(super) fn describe(ordinal: usize, device: CUdevice) -> Result<DeviceInfo> {
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

pub(super) fn attribute(device: CUdevice, attribute: Attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the number goes into an integer that is there.
    succeed(unsafe { cuDeviceGetAttribute(&mut value, attribute, device) }, "describe itself")?;
    Ok(u32::try_from(value).unwrap_or(0))
}
