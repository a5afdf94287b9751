//! What XLA calls: the arrays of a call become those of a stencil. No panic leaves it.

use super::api::{Array, Call, Code, Frame, Refusal};
use super::{ALL, Declared};
use crate::bound::{locked, on_device};
use crate::error::begin;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use stencilc_compiler::text::shown;
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::{Device, Element, Error, Fault};

/// Computes in the host's memory, and is done when it returns.
///
/// # Safety
/// XLA calls it.
pub unsafe extern "C" fn on_host(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { handled(frame, false) }
}

/// Starts the kernel in the stream that XLA names.
///
/// # Safety
/// XLA calls it.
pub unsafe extern "C" fn on_gpu(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { handled(frame, true) }
}

/// # Safety
/// XLA calls it.
unsafe fn handled(frame: *mut Frame, is_on_gpu: bool) -> *mut c_void {
    // SAFETY: the caller's.
    let call = unsafe { Call::of(frame) };
    let done = catch_unwind(AssertUnwindSafe(|| {
        if call.answered()? {
            return Ok(());
        }
        call.check()?;
        computed(&call, is_on_gpu)
    }));
    let refusal = match done {
        Ok(Ok(())) => return std::ptr::null_mut(),
        Ok(Err(refusal)) => refusal,
        Err(panic) => {
            let said = panic.downcast_ref::<&str>().copied();
            let said =
                said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("nothing is known of it");
            Refusal::new(Code::Internal, shown(&format!("a mistake in stencilc, which is worth a report: {said}")))
        }
    };
    // Where not even errors can be made, XLA takes nothing that this answers for true: it asks for the version first.
    call.error(&refusal)
}

fn computed(call: &Call, is_on_gpu: bool) -> Result<(), Refusal> {
    let wrong = |message: &str| Refusal::new(Code::InvalidArgument, message);
    if !call.executes() {
        return Err(wrong("stencilc has nothing to prepare: it is registered to execute alone"));
    }
    begin().map_err(refused)?;
    let key = call.attribute("stencil").ok_or_else(|| wrong("it is not said which stencil is to be computed"))?;
    let declared: Arc<Declared> = locked(&ALL).get(key).cloned().ok_or_else(|| {
        let name = shown(key.split(' ').next().unwrap_or_default());
        wrong(&format!(
            "this process knows nothing of the stencil `{name}`, which the compiled program calls\n  help: trace the \
             program here, too: it is not enough to bring what was compiled elsewhere"
        ))
    })?;
    let device = place(call, &declared, is_on_gpu)?;
    let stream = if is_on_gpu { call.stream()? } else { 0 };
    let (mut args, rets) = call.arrays()?;
    // What is written comes in, too, since it holds something already where nothing is computed.
    let (reads, writes) = (declared.reads.len(), declared.writes.len());
    if args.len() != reads + writes || rets.len() != writes {
        let (args, rets) = (args.len(), rets.len());
        let message =
            format!("{args} arrays come in and {rets} go out, and there are to be {} and {writes}", reads + writes);
        return Err(wrong(&message));
    }
    let before = args.split_off(reads);
    // It goes out where it came in, unless XLA puts it elsewhere, as into a slice of what a loop makes.
    for (at, (before, after)) in before.iter().zip(&rets).enumerate() {
        if before.dtype != after.dtype || before.shape != after.shape {
            let message = format!("jaxlib gives `{}` another type or shape than it was given", declared.writes[at]);
            return Err(Refusal::new(Code::Internal, message));
        }
        if before.address != after.address && !is_empty(after) {
            // SAFETY: both are XLA's arrays, of one type and shape.
            unsafe { moved(device, stream, element_of(&declared.writes[at], before)?, before, after) }?;
        }
    }
    let names = declared.reads.iter().chain(&declared.writes);
    let arrays = names
        .zip(args.into_iter().chain(rets))
        .map(|(name, own)| Ok((element_of(name, &own)?, own.shape, own.address)));
    let arrays = arrays.collect::<Result<Vec<_>, Refusal>>()?;
    // SAFETY: XLA keeps arrays as long as the call, or the work in its stream, needs them, and has nobody else use them meanwhile.
    unsafe { declared.run(device, stream, &arrays) }.map_err(refused)
}

/// Copies what an array holds to another, in the order of the stream.
///
/// # Safety
/// Both are there, of one type and shape, until the work in the stream is done.
unsafe fn moved(device: Device, stream: usize, element: Element, from: &Array, to: &Array) -> Result<(), Refusal> {
    let bytes = from.shape.iter().product::<usize>() * element.bytes();
    if let Device::Cuda(number) = device {
        let stream = std::ptr::with_exposed_provenance_mut(stream);
        let copied = on_device(true, || {
            let gpu = Gpu::open(number)?;
            // SAFETY: the caller's.
            unsafe { gpu.copy_in(stream, from.address, to.address, bytes) }
        });
        return copied.map_err(refused);
    }
    let [from, to] = [from, to].map(|own| own.address as usize);
    // SAFETY: the caller's.
    unsafe {
        std::ptr::copy(std::ptr::with_exposed_provenance::<u8>(from), std::ptr::with_exposed_provenance_mut(to), bytes);
    }
    Ok(())
}

/// Where it is computed: where the arrays are.
fn place(call: &Call, declared: &Declared, is_on_gpu: bool) -> Result<Device, Refusal> {
    let place = if is_on_gpu { Device::Cuda(call.device()?) } else { Device::Cpu };
    match declared.device {
        None => Ok(place),
        Some(own) if own == place => Ok(own),
        Some(own @ (Device::Native | Device::Emulate)) if !is_on_gpu => Ok(own),
        Some(own) => {
            let there = if is_on_gpu { format!("on {place}") } else { "in the host's memory".to_owned() };
            let message = format!(
                "{own} is to compute, and the arrays are {there}\n  help: leave out the device: arrays are computed where they are"
            );
            Err(Refusal::new(Code::InvalidArgument, message))
        }
    }
}

fn is_empty(own: &Array) -> bool {
    own.shape.contains(&0)
}

/// The type of the numbers of a field's array, as XLA says it.
fn element_of(name: &str, own: &Array) -> Result<Element, Refusal> {
    match own.dtype {
        1 => Ok(Element::Bool),
        4 => Ok(Element::I32),
        11 => Ok(Element::F32),
        12 => Ok(Element::F64),
        other => {
            let message = format!("the array of `{name}` holds numbers of type {other} of XLA's, which no field does");
            Err(Refusal::new(Code::InvalidArgument, message))
        }
    }
}

fn refused(Error { fault, message, help }: Error) -> Refusal {
    let code = match fault {
        Fault::Input | Fault::Call => Code::InvalidArgument,
        Fault::Machine => Code::FailedPrecondition,
        Fault::Check => Code::Internal,
    };
    let help = help.map_or(String::new(), |own| format!("\n  help: {}", shown(&own)));
    Refusal::new(code, format!("{}{help}", shown(&message)))
}
