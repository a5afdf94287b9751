//! Programs that run: their fields are where they compute, and are copied in and out.

use crate::bound::locked;
use crate::declared::Subject;
use crate::error::{apart, caught, raised, wrong};
use crate::how::How;
use crate::lending::dtype;
use crate::place::domain_of;
use crate::view::View;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use stencilc_compiler::ir::{Precision, Stored};
use stencilc_runtime::device::Platform;
use stencilc_runtime::job::{Elsewhere, Job, Ready};
use stencilc_runtime::ranks::mpi;
use stencilc_runtime::{Array, Data, Device, Element, checkpoint};

/// A program, or a stencil as one, that was started.
#[pyclass(frozen, module = "stencilc._core")]
pub struct Run {
    run: Elsewhere,
    #[pyo3(get)]
    outputs: Vec<String>,
    #[pyo3(get)]
    device: String,
    /// What there is to note, such as that what was tuned is taken.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Which of the processes that compute it together this one is, and how many there are.
    #[pyo3(get)]
    rank: usize,
    #[pyo3(get)]
    ranks: usize,
}

/// Checks all that it is given, compiles what is needed, and brings the fields to the device.
#[pyfunction]
pub fn start(
    py: Python<'_>,
    own: &Subject,
    domain: Option<&Bound<'_, PyAny>>,
    given: &Bound<'_, PyDict>,
    how: &How,
    resumed: Option<PathBuf>,
) -> PyResult<Run> {
    caught(py, || {
        let mut job = Job::of(own.of.clone()).standing_in(&own.source);
        let mut first: Option<(String, Precision)> = None;
        for (name, value) in given {
            let name: String = name.extract()?;
            match (own.of.fields().find(|(own, _)| own.name == name), own.of.params().find(|own| own.name == name)) {
                (Some((field, _)), _) => {
                    let array = copied(py, &name, &value)?;
                    let precision = match (field.stored, array.data.element()) {
                        (Stored::Real, Element::F64) => Some(Precision::F64),
                        (Stored::Real, Element::F32) => Some(Precision::F32),
                        _ => None,
                    };
                    first = first.or(precision.map(|own| (name.clone(), own)));
                    if let (Some(own), Some((other, known))) = (precision, &first)
                        && own != *known
                        && how.precision.is_none()
                    {
                        let message = format!("`{other}` and `{name}` are arrays of different precision");
                        let help = "fields of type `real` have one, which their arrays decide: convert one of them";
                        return Err(wrong(py, message, help));
                    }
                    job = job.array(&name, array);
                }
                (None, Some(param)) => job = job.set(&name, own.setting(param, &value)?),
                (None, None) => return Err(own.unknown(py, &name)),
            }
        }
        job = how.of(job, first.map(|(_, own)| own));
        if let Some(domain) = domain_of(py, domain, how.levels)? {
            job = job.on(domain);
        }
        let ranks = if how.processes { apart(py, mpi::shared)? } else { None };
        let [rank, count] = ranks.as_ref().map_or([0, 1], |own| [own.rank(), own.ranks()]);
        let device = Device::choose(how.device).0;
        let here = ranks.as_ref().map_or(Ok(device), |own| own.device(device)).map_err(|error| raised(py, &error))?;
        job = ranks.into_iter().fold(job, Job::ranks);
        job = job.device(device);
        let (source, untuned) = (Arc::clone(&own.source), how.untuned);
        let notes = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&notes);
        let choose = move |ready: &mut Ready, platform: &Platform| {
            if !untuned {
                *locked(&noted) = stencilc::texts::take_tuned(&source, ready, platform)?;
            }
            Ok(())
        };
        let (run, outputs) = apart(py, || {
            let job = match resumed {
                Some(path) => job.resume(checkpoint::load(&path)?),
                None => job,
            };
            let run = job.start_elsewhere_by(choose)?;
            let outputs = run.ask(|run| Ok(run.outputs()))?;
            Ok((run, outputs))
        })?;
        let notes = std::mem::take(&mut *locked(&notes));
        Ok(Run { run, outputs, device: here.to_string(), notes, rank, ranks: count })
    })
}

/// A copy of an array of the host.
pub fn copied(py: Python<'_>, name: &str, array: &Bound<'_, PyAny>) -> PyResult<Array> {
    let view = View::of(name, array)?;
    // SAFETY: the array is there until this returns, and is read meanwhile.
    let lent = unsafe { view.lent(name, false) };
    lent.and_then(|lent| lent.to_array()).map_err(|error| raised(py, &error))
}

#[pymethods]
impl Run {
    /// Goes on by so many steps, or fewer at the end, and returns how many there were.
    fn step(&self, py: Python<'_>, times: u64) -> PyResult<u64> {
        let mut done = 0;
        while done < times {
            let left = times - done;
            // One launch after the other, so that Ctrl-C is heard.
            match apart(py, || self.run.ask(move |run| run.advance(left)))? {
                Some(more) => done += more,
                None => return Ok(done),
            }
            py.check_signals()?;
        }
        // What stands behind the last loop is done with its last step.
        apart(py, || self.run.ask(|run| run.settle()))?;
        Ok(done)
    }

    /// How many steps were done.
    fn done(&self, py: Python<'_>) -> PyResult<u64> {
        apart(py, || self.run.ask(|run| Ok(run.done())))
    }

    /// How many there are in all, as far as that is known.
    fn total(&self, py: Python<'_>) -> PyResult<u64> {
        apart(py, || self.run.ask(|run| run.total()))
    }

    /// Waits until all is computed.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        apart(py, || self.run.ask(|run| run.wait()))
    }

    /// What a field holds, copied.
    fn get(&self, py: Python<'_>, name: String) -> PyResult<Held> {
        let Array { shape, data } = apart(py, || self.run.ask(move |run| run.get(&name)))?;
        Ok(Held { shape, data })
    }

    /// Gives a field other numbers.
    fn put(&self, py: Python<'_>, name: String, array: &Bound<'_, PyAny>) -> PyResult<()> {
        caught(py, || {
            let array = copied(py, &name, array)?;
            apart(py, || self.run.ask(move |run| run.put(&name, &array)))
        })
    }

    /// A picture of a level of what a field holds, as a PNG file's bytes; written to a file, too, if one is given.
    #[pyo3(signature = (name, level, path))]
    fn plot<'py>(
        &self,
        py: Python<'py>,
        name: String,
        level: Option<usize>,
        path: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // All of several processes bring together what is drawn.
        let path = path.filter(|_| self.rank == 0);
        let png = apart(py, || self.run.ask(move |run| stencilc::pictures::png(run, &name, level, path.as_deref())))?;
        Ok(PyBytes::new(py, &png))
    }

    /// Keeps all that it holds in a file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        apart(py, || self.run.ask(move |run| run.save(&path)))
    }
}

/// Numbers that were handed out. NumPy looks at them where they are.
#[pyclass(frozen, module = "stencilc._core")]
pub struct Held {
    shape: Vec<usize>,
    data: Data,
}

impl Held {
    /// Numbers of a shape.
    pub fn new(shape: Vec<usize>, data: Data) -> Self {
        Self { shape, data }
    }
}

#[pymethods]
impl Held {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (address, typestr) = match &self.data {
            Data::F32(own) => (own.as_ptr().expose_provenance(), "<f4"),
            Data::F64(own) => (own.as_ptr().expose_provenance(), "<f8"),
            Data::I32(own) => (own.as_ptr().expose_provenance(), "<i4"),
            Data::Bool(own) => (own.as_ptr().expose_provenance(), "|b1"),
        };
        let told = PyDict::new(py);
        told.set_item("version", 3)?;
        told.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        told.set_item("typestr", typestr)?;
        // Nobody else has them, so they may be written; of what nobody has, the address says nothing.
        told.set_item("data", (if self.data.is_empty() { 0 } else { address }, false))?;
        Ok(told)
    }

    #[getter]
    fn dtype(&self) -> &'static str {
        dtype(self.data.element())
    }
}
