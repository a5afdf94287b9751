//! Stencils within programs that jax compiles: XLA calls a handler, which finds the stencil by what was [declared](declare) of it when the
//! program was traced. The handler runs on XLA's threads, and nothing in it needs Python.
//!
//! ```text
//! api        XLA's interface, as its header has it
//! handler    what XLA calls
//! ```

mod api;
mod handler;

use crate::bound::{Bind, locked, on_device};
use crate::declared::Subject;
use crate::error::caught;
use crate::how::How;
use crate::lending::Lending;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use stencilc_compiler::source::Source;
use stencilc_runtime::job::{Arrays, Job};
use stencilc_runtime::lent::Memory;
use stencilc_runtime::{Device, Element, Error, Lent};

/// A stencil that programs of XLA's call.
struct Declared {
    source: Arc<Source>,
    job: Job,
    /// The device that was asked for.
    device: Option<Device>,
    untuned: bool,
    /// Fields that are read and that are written, in the order in which arrays are given.
    reads: Vec<String>,
    writes: Vec<String>,
    /// Calls that were made before, for arrays of such shapes on a device.
    calls: Mutex<Vec<(Key, Bind)>>,
}

/// What decides which call is taken.
type Key = (Device, Vec<(Element, Vec<usize>)>);

/// How many are kept: of a stencil each.
const KEPT: usize = 16;

/// All that were declared, by keys that are the same in every process: compiled programs are kept in files, and come back in others.
static ALL: Mutex<BTreeMap<String, Arc<Declared>>> = Mutex::new(BTreeMap::new());

impl Declared {
    /// Computes on arrays: those that are read, then those that are written, which hold already what is there where nothing is computed.
    ///
    /// # Safety
    /// The arrays are there, and nobody else writes them, until the work in the stream is done, which is one of the device's primary
    /// context.
    ///
    /// # Errors
    /// Those of [`Job::call`], and that the kernel has failed.
    unsafe fn run(&self, device: Device, stream: usize, arrays: &[(Element, Vec<usize>, u64)]) -> Result<(), Error> {
        let memory = if let Device::Cuda(_) = device { Memory::Device } else { Memory::Host };
        let is_on_gpu = memory == Memory::Device;
        let mut lent = Arrays::default();
        let names = self.reads.iter().map(|own| (own, false)).chain(self.writes.iter().map(|own| (own, true)));
        for ((name, is_written), (element, shape, address)) in names.zip(arrays) {
            let mut strides = vec![1; shape.len()];
            for axis in (1..shape.len()).rev() {
                strides[axis - 1] = strides[axis] * shape[axis].max(1);
            }
            // SAFETY: the caller's.
            let own = unsafe { Lent::at(memory, *address, *element, shape, &strides, is_written) }?;
            lent = if is_written {
                lent.write(name, own)
            } else {
                own.check_truths(&format!("the array of `{name}`"))?;
                lent.read(name, own)
            };
        }
        let key = (device, arrays.iter().map(|(element, shape, _)| (*element, shape.clone())).collect());
        let known = {
            let mut calls = locked(&self.calls);
            let at = calls.iter().position(|(own, _)| *own == key);
            at.map(|at| calls.remove(at).1)
        };
        let job = || Ok(self.job.clone().device(device));
        let bind = on_device(is_on_gpu, || {
            let mut bind = Bind::of(known, job, lent, &self.source, self.untuned)?;
            bind.run(stream, false, is_on_gpu).map(|()| bind)
        })?;
        let mut calls = locked(&self.calls);
        calls.push((key, bind));
        let old = if calls.len() > KEPT { Some(calls.remove(0)) } else { None };
        drop(calls);
        // It waits for its last run, if it is on a GPU: others need not.
        drop(old);
        Ok(())
    }
}

/// What a program that is traced is told: a key, by which the handler finds the stencil; and outputs, by names, shapes and types.
type Told = (String, Vec<(String, Vec<usize>, &'static str)>);

/// Declares that a program is going to call a stencil, with arrays of which names, shapes and types are known, and with parameters.
#[pyfunction]
pub fn declare(
    own: &Bound<'_, Subject>,
    shapes: Vec<(String, Vec<usize>, String)>,
    params: &Bound<'_, PyDict>,
    how: Py<How>,
) -> PyResult<Told> {
    let py = own.py();
    caught(py, || {
        let subject = own.get();
        let lending = Lending::of_shapes(own, &shapes, params, how.clone_ref(py))?;
        let outputs = lending.lacking(py)?;
        let job = lending.job(py);
        let how = how.bind(py).get();
        let mut hash = blake3::Hasher::new();
        // A text of each, and how long it is, so that no two together are as two others.
        let types: Vec<&str> = outputs.iter().map(|(_, _, dtype)| *dtype).collect();
        let settings = format!("{:?} {types:?}", lending.settings());
        for own in [env!("CARGO_PKG_VERSION"), &subject.source.text, subject.of.name(), &how.key(), &settings] {
            hash.update(&(own.len() as u64).to_le_bytes()).update(own.as_bytes());
        }
        let key = format!("{} {}", subject.of.name(), hash.finalize().to_hex());
        let named = |is_own: fn(stencilc_compiler::ir::Role) -> bool| {
            let fields = subject.of.fields().filter(|(_, role)| is_own(*role));
            fields.map(|(field, _)| field.name.clone()).collect()
        };
        let declared = || Declared {
            source: Arc::clone(&subject.source),
            job,
            device: how.device,
            untuned: how.untuned,
            reads: named(|role| role.is_read()),
            writes: named(|role| role.is_written()),
            calls: Mutex::default(),
        };
        locked(&ALL).entry(key.clone()).or_insert_with(|| Arc::new(declared()));
        Ok((key, outputs))
    })
}

/// What XLA calls, for `jax.ffi.register_ffi_target`: on the platform "cpu" or "CUDA".
#[pyfunction]
pub fn capsule<'py>(py: Python<'py>, platform: &str) -> PyResult<Bound<'py, PyCapsule>> {
    let own = match platform {
        "CUDA" => handler::on_gpu as *mut c_void,
        _ => handler::on_host as *mut c_void,
    };
    let pointer = NonNull::new(own).ok_or_else(|| crate::error::wrong(py, "there is no handler", ""))?;
    // SAFETY: whoever takes the capsule by this name takes it for a function of XLA's, and it is one, as long as the process lives.
    unsafe { PyCapsule::new_with_pointer(py, pointer, c"xla._CUSTOM_CALL_TARGET") }
}
