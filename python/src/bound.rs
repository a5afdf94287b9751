//! Calls that are bound to their arrays: what computes again and again, from any thread and in any stream.

use crate::error::apart;
use crate::stream::handle_of;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};
use stencilc_compiler::source::Source;
use stencilc_runtime::Error;
use stencilc_runtime::cuda::keeping_current;
use stencilc_runtime::job::{Arrays, Call, Job};

/// A stencil that is bound to arrays.
#[pyclass(frozen, name = "Bound", module = "stencilc._core")]
pub struct BoundCall {
    pub call: Mutex<Bind>,
    pub is_on_gpu: bool,
    pub waits: bool,
    pub outputs: Py<PyAny>,
    pub current: Option<Py<PyAny>>,
    pub stream: usize,
    /// What the call works on. It comes after the call, which is dropped first.
    pub _kept: Vec<Py<PyAny>>,
}

/// A call, and the stream of its last run on a GPU.
pub struct Bind {
    pub call: Call<'static>,
    pub last: Option<usize>,
    /// What there is to note of the kernel.
    pub notes: Vec<String>,
}

impl Bind {
    /// A call on these arrays: one that was made before, for arrays that lie alike; or a new one, whose kernel is what was tuned for it if
    /// there is such a one.
    ///
    /// # Errors
    /// Those of [`Job::call`].
    pub fn of(
        known: Option<Self>,
        job: impl FnOnce() -> Result<Job, Error>,
        arrays: Arrays<'static>,
        source: &Source,
        untuned: bool,
    ) -> Result<Self, Error> {
        if let Some(mut bind) = known {
            bind.call.lend(arrays)?;
            return Ok(bind);
        }
        let mut notes = Vec::new();
        let call = job()?.call_by(arrays, |sought| {
            if untuned {
                return None;
            }
            let (found, noted) = stencilc::texts::tuned_kernel(source, sought);
            notes = noted;
            found
        })?;
        Ok(Self { call, last: None, notes })
    }

    /// Computes once in a stream, which is that of the arrays' library or the caller's, who says in which order arrays are used; they are
    /// there meanwhile.
    pub fn run(&mut self, stream: usize, waits: bool, is_on_gpu: bool) -> Result<(), Error> {
        if self.call.updates() && self.last.is_some_and(|last| last != stream) {
            // What is copied aside has one place, which may still be in use.
            self.call.wait()?;
        }
        // SAFETY: the stream is one of the GPU's primary context, as all that Python's libraries make are; whoever gave it answers for
        // the order, as the document says.
        unsafe { self.call.run_in(std::ptr::with_exposed_provenance_mut(stream)) }?;
        self.last = is_on_gpu.then_some(stream);
        if waits { self.call.wait() } else { Ok(()) }
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        if self.last.is_some() {
            // Its kernel is unloaded, and arrays may be freed, once nothing runs. Who would be told of an error is gone.
            let _ = keeping_current(|| self.call.wait());
        }
    }
}

#[pymethods]
impl BoundCall {
    /// Computes once, in a stream.
    #[pyo3(signature = (*, stream = None))]
    fn __call__(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let stream = match (stream, &self.current) {
            (Some(stream), _) => handle_of(stream)?,
            (None, Some(current)) if self.is_on_gpu => current.bind(py).call0()?.extract()?,
            (None, _) => self.stream,
        };
        let (is_on_gpu, waits) = (self.is_on_gpu, self.waits);
        apart(py, || {
            let mut bind = self.call.lock().map_err(|_| {
                Error::check("a mistake in stencilc has ended this call before").help("bind the arrays again")
            })?;
            on_device(is_on_gpu, || bind.run(stream, waits, is_on_gpu))
        })?;
        Ok(self.outputs.clone_ref(py))
    }

    /// Waits until all that was started is done.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let is_on_gpu = self.is_on_gpu;
        apart(py, || on_device(is_on_gpu, || locked(&self.call).call.wait()))
    }

    /// What there is to note, such as that what was tuned is taken.
    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let notes = locked(&self.call).notes.clone();
        let in_python = py.import("stencilc._errors")?.getattr("noted")?;
        notes.into_iter().map(|own| in_python.call1((own,))?.extract()).collect()
    }

    /// What it returns.
    #[getter]
    fn outputs(&self, py: Python<'_>) -> Py<PyAny> {
        self.outputs.clone_ref(py)
    }

    /// The cells that are computed, along k, j and i.
    #[getter]
    fn region<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let bind = locked(&self.call);
        let region = bind.call.region();
        let slices = [&region.k, &region.j, &region.i];
        PyTuple::new(py, slices.map(|own| PySlice::new(py, own.start as isize, own.end as isize, 1)))
    }
}

/// Does something on the host or a GPU, which leaves other libraries of CUDA's as they are.
pub fn on_device<T>(is_on_gpu: bool, work: impl FnOnce() -> T) -> T {
    if is_on_gpu { keeping_current(work) } else { work() }
}

/// The lock of what holds no half-done change.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
