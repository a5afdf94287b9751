//! Arrays of Python's that a stencil on a grid is called with: whose each is, whether it suits, what is lacking, and the call that computes on
//! them.

use crate::bound::{Bind, BoundCall, locked, on_device};
use crate::declared::Subject;
use crate::error::{apart, caught, wrong};
use crate::how::How;
use crate::view::{View, shape_text};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex};
use stencilc_compiler::ir::program::Variable;
use stencilc_compiler::ir::{Precision, Role, Stored};
use stencilc_runtime::job::{Arrays, Job, Lacking};
use stencilc_runtime::problem::element_of;
use stencilc_runtime::{Device, Element, Error};

/// What an array is lent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    /// It is read and then written.
    Update,
}

/// An array of a field.
struct Given {
    name: String,
    view: View,
    how: Use,
}

/// What decides which kernel a call takes: how it is computed, parameters, and how arrays lie.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    how: String,
    settings: Vec<(String, String)>,
    arrays: Vec<Lies>,
}

/// How an array lies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lies {
    name: String,
    how: Use,
    element: Element,
    device: Option<usize>,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

/// Calls that were made before, for arrays that lie in the same way; and what was lacking of arrays that did.
#[derive(Default)]
pub struct Pool {
    calls: Mutex<Vec<(Key, Bind)>>,
    lacking: Mutex<Vec<(Key, Vec<Lacking>)>>,
}

/// How many of each are kept.
const KEPT: usize = 8;

/// Arrays and parameters that a stencil is called with.
#[pyclass(module = "stencilc._core")]
pub struct Lending {
    subject: Py<Subject>,
    how: Py<How>,
    given: Vec<Given>,
    settings: Vec<(String, String)>,
    /// The arrays, and what keeps those that were handed over.
    kept: Vec<Py<PyAny>>,
    precision: Option<Precision>,
    #[pyo3(get)]
    device: Option<usize>,
    #[pyo3(get)]
    stream: Option<usize>,
}

/// Takes arrays and parameters by their names.
#[pyfunction]
pub fn lend(own: &Bound<'_, Subject>, given: &Bound<'_, PyDict>, how: Py<How>) -> PyResult<Lending> {
    let py = own.py();
    caught(py, || {
        let subject = own.get();
        let mut lending = Lending::nothing(own, how);
        for (name, value) in given {
            let name: String = name.extract()?;
            match (
                subject.of.fields().find(|(own, _)| own.name == name),
                subject.of.params().find(|own| own.name == name),
            ) {
                (Some((field, role)), _) => lending.take(py, field, role, &value)?,
                (None, Some(param)) => lending.settings.push((name, subject.setting(param, &value)?)),
                (None, None) => return Err(subject.unknown(py, &name)),
            }
        }
        lending.settings.sort();
        lending.settle(py)?;
        Ok(lending)
    })
}

impl Lending {
    fn nothing(own: &Bound<'_, Subject>, how: Py<How>) -> Self {
        Self {
            subject: own.clone().unbind(),
            how,
            given: Vec::new(),
            settings: Vec::new(),
            kept: Vec::new(),
            precision: None,
            device: None,
            stream: None,
        }
    }

    /// What is known of a call before there are numbers: names, shapes and types of the arrays that are read, and parameters.
    ///
    /// # Errors
    /// There is no field or parameter of a name, a type is none of ours, or they do not suit each other.
    pub fn of_shapes(
        own: &Bound<'_, Subject>,
        shapes: &[(String, Vec<usize>, String)],
        params: &Bound<'_, PyDict>,
        how: Py<How>,
    ) -> PyResult<Self> {
        let (py, subject) = (own.py(), own.get());
        // Where the arrays are going to be nobody knows yet.
        let device = match how.bind(py).get().device {
            Some(Device::Cuda(number)) => Some(number),
            Some(Device::Cpu | Device::Emulate | Device::Native) | None => None,
        };
        let mut lending = Self::nothing(own, how);
        for (name, shape, dtype) in shapes {
            let element = [Element::F64, Element::F32, Element::I32, Element::Bool];
            let element = element.into_iter().find(|own| self::dtype(*own) == dtype).ok_or_else(|| dtype.clone());
            // No number is looked at.
            let view = View::new(py, name, 0, element, shape.clone(), None, true, device)?;
            lending.given.push(Given { name: name.clone(), view, how: Use::Read });
        }
        for (name, value) in params {
            let name: String = name.extract()?;
            let param = subject.of.params().find(|own| own.name == name).ok_or_else(|| subject.unknown(py, &name))?;
            lending.settings.push((name, subject.setting(param, &value)?));
        }
        lending.settings.sort();
        lending.settle(py)?;
        Ok(lending)
    }

    /// Parameters that were given, by their names.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    fn take(&mut self, py: Python<'_>, field: &Variable, role: Role, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = &field.name;
        if value.is_none() && role.is_written() {
            // As if it was not given.
            return Ok(());
        }
        if let Ok(pair) = value.cast::<PyTuple>() {
            if role != Role::InOut || pair.len() != 2 {
                let help = "a pair of arrays is for an `inout` field: what is read, and what is written";
                return Err(wrong(
                    py,
                    format!("`{name}` is given a tuple, and is an `{}` field", role_text(role)),
                    help,
                ));
            }
            self.add(py, name, Use::Read, &pair.get_item(0)?)?;
            let written = pair.get_item(1)?;
            return if written.is_none() { Ok(()) } else { self.add(py, name, Use::Write, &written) };
        }
        let how = match role {
            Role::InOut => Use::Update,
            role if role.is_written() => Use::Write,
            _ => Use::Read,
        };
        self.add(py, name, how, value)
    }

    fn add(&mut self, py: Python<'_>, name: &str, how: Use, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut view = View::of(name, array)?;
        if how != Use::Read && view.is_read_only {
            let help = match how {
                Use::Update => {
                    format!("give two: {name}=({name}, new), of which the first is read and the second written")
                }
                Use::Read | Use::Write => "give one that may be written; or none, and a new one is made".to_owned(),
            };
            return Err(wrong(py, format!("`{name}` is written, and its array is read-only"), help));
        }
        self.stream = self.stream.or(view.stream);
        self.kept.push(array.clone().unbind());
        if let Some(kept) = view.take_kept() {
            self.kept.push(Py::new(py, Keeper { _kept: kept })?.into_any());
        }
        self.given.push(Given { name: name.to_owned(), view, how });
        Ok(())
    }

    /// Finds out the precision and the device, on which all agree.
    fn settle(&mut self, py: Python<'_>) -> PyResult<()> {
        let subject = self.subject.bind(py).get();
        let how = self.how.bind(py).get();
        if let Some(stencil) = &subject.stencil {
            // In the order of the text, so that messages and kernels do not depend on that of the call.
            self.given.sort_by_key(|own| stencil.field_named(&own.name));
        }
        let place = |device: Option<usize>| {
            device.map_or("in the host's memory".to_owned(), |number| format!("on cuda:{number}"))
        };
        if let Some(first) = self.given.first() {
            self.device = first.view.device;
            if let Some(other) = self.given.iter().find(|own| own.view.device != first.view.device) {
                let (one, two) = (place(first.view.device), place(other.view.device));
                let message = format!("`{}` is {one}, and `{}` {two}", first.name, other.name);
                return Err(wrong(
                    py,
                    message,
                    "bring them to one place: cupy.asarray, torch's `.to(device)`, jax.device_put",
                ));
            }
            let name = &first.name;
            match (how.device, self.device) {
                (Some(Device::Cuda(own)), None) => {
                    return Err(wrong(
                        py,
                        format!("cuda:{own} is to compute, and `{name}` is in the host's memory"),
                        "bring it there: cupy.asarray(...), or torch's `.to(\"cuda\")`",
                    ));
                }
                (Some(Device::Cuda(own)), Some(there)) if own != there => {
                    return Err(wrong(py, format!("cuda:{own} is to compute, and `{name}` is on cuda:{there}"), ""));
                }
                (Some(device @ (Device::Cpu | Device::Emulate | Device::Native)), Some(there)) => {
                    let help = "bring it to the host, or leave out the device: arrays are computed where they are";
                    return Err(wrong(py, format!("{device} is to compute, and `{name}` is on cuda:{there}"), help));
                }
                _ => {}
            }
        }
        let stored = |name: &str| subject.of.fields().find(|(own, _)| own.name == name).map(|(own, _)| own.stored);
        let mut first: Option<(&str, Precision)> = None;
        for Given { name, view, .. } in &self.given {
            let Some(stored) = stored(name) else { continue };
            let precision = match (stored, view.element) {
                (Stored::Real, Element::F64) => Precision::F64,
                (Stored::Real, Element::F32) => Precision::F32,
                _ => {
                    // What is stored in one way, whatever the precision; or what no precision makes right.
                    let expected = element_of(stored, how.precision.unwrap_or(Precision::F64));
                    if expected != view.element {
                        let wanted = if stored == Stored::Real {
                            "float64 or float32".to_owned()
                        } else {
                            dtype(expected).to_owned()
                        };
                        let message = format!("`{name}` is an array of {}, and holds {wanted}", dtype(view.element));
                        let help = format!("`{name}.astype(\"{}\")` converts it", dtype(expected));
                        return Err(wrong(py, message, help));
                    }
                    continue;
                }
            };
            match first {
                None => first = Some((name, precision)),
                Some((_, own)) if own == precision => {}
                Some((other, own)) => {
                    let [one, two] = [own, precision].map(|own| dtype(element_of(Stored::Real, own)));
                    let message = format!("`{other}` is an array of {one}, and `{name}` of {two}");
                    return Err(wrong(
                        py,
                        message,
                        "fields of type `real` have one precision, which their arrays decide: convert one of them",
                    ));
                }
            }
        }
        let found = first.map(|(name, own)| (name.to_owned(), own));
        if let (Some((name, own)), Some(wanted)) = (&found, how.precision)
            && *own != wanted
        {
            let message = format!(
                "`{name}` is an array of {}, and {} is asked for",
                dtype(element_of(Stored::Real, *own)),
                wanted.name()
            );
            return Err(wrong(py, message, "leave out the precision: arrays decide it"));
        }
        self.precision = found.map(|(_, own)| own).or(how.precision);
        Ok(())
    }

    fn key(&self, py: Python<'_>) -> Key {
        let arrays = self.given.iter().map(|Given { name, view, how }| Lies {
            name: name.clone(),
            how: *how,
            element: view.element,
            device: view.device,
            shape: view.shape.clone(),
            strides: view.strides.clone(),
        });
        Key { how: self.how.bind(py).get().key(), settings: self.settings.clone(), arrays: arrays.collect() }
    }

    /// What is computed, without arrays.
    pub fn job(&self, py: Python<'_>) -> Job {
        let (subject, how) = (self.subject.bind(py).get(), self.how.bind(py).get());
        let job = how.of(Job::of(subject.of.clone()).standing_in(&subject.source), self.precision);
        let device = match (self.device, how.device) {
            (Some(number), _) => Device::Cuda(number),
            (None, given) => given.unwrap_or(Device::Cpu),
        };
        self.settings.iter().fold(job.device(device), |job, (name, value)| job.set(name, value))
    }

    /// The arrays, lent.
    ///
    /// # Safety
    /// What is in `kept` outlives what they are lent to, or its work.
    unsafe fn arrays(&self) -> Result<Arrays<'static>, Error> {
        for Given { name, view, how } in &self.given {
            if *how != Use::Write {
                // SAFETY: the caller's.
                unsafe { view.lent(name, false) }?.check_truths(&format!("the array of `{name}`"))?;
            }
        }
        // SAFETY: the caller's.
        unsafe { self.places() }
    }

    /// The same, without a look at any number.
    ///
    /// # Safety
    /// The same, if numbers are looked at afterwards.
    unsafe fn places(&self) -> Result<Arrays<'static>, Error> {
        let mut arrays = Arrays::default();
        for Given { name, view, how } in &self.given {
            // SAFETY: the caller's. That nobody writes or reads them meanwhile is what documents ask of users, as NumPy does.
            let lent = unsafe { view.lent(name, *how != Use::Read) }?;
            arrays = match how {
                Use::Read => arrays.read(name, lent),
                Use::Write => arrays.write(name, lent),
                Use::Update => arrays.update(name, lent),
            };
        }
        Ok(arrays)
    }

    /// The call, made or taken from those that were made before.
    fn call(&self, py: Python<'_>, key: &Key) -> PyResult<Bind> {
        let pool = &self.subject.bind(py).get().pool;
        let known = {
            let mut calls = locked(&pool.calls);
            let at = calls.iter().position(|(own, _)| own == key);
            at.map(|at| calls.swap_remove(at).1)
        };
        // What is asked of it has to be known before others use Python.
        let job = if known.is_none() { Some(self.job(py)) } else { None };
        let is_on_gpu = self.device.is_some();
        let (source, untuned) = (Arc::clone(&self.subject.bind(py).get().source), self.how.bind(py).get().untuned);
        apart(py, || {
            on_device(is_on_gpu, || {
                // SAFETY: a bound call has what is in `kept`, and another one is run while this is there.
                let arrays = unsafe { self.arrays() }?;
                Bind::of(known, move || job.ok_or_else(nothing_to_call), arrays, &source, untuned)
            })
        })
    }
}

/// A call that was made before needs no job.
fn nothing_to_call() -> Error {
    Error::check("there is nothing to call")
}

#[pymethods]
impl Lending {
    /// The outputs that are not given: names, shapes and types.
    pub fn lacking(&self, py: Python<'_>) -> PyResult<Vec<(String, Vec<usize>, &'static str)>> {
        caught(py, || {
            let subject = self.subject.bind(py).get();
            let key = self.key(py);
            let known = locked(&subject.pool.lacking).iter().find(|(own, _)| *own == key).map(|(_, own)| own.clone());
            let lacking = match known {
                Some(lacking) => lacking,
                None => {
                    self.are_there(py)?;
                    let job = self.job(py);
                    let lacking = apart(py, || {
                        // SAFETY: their shapes alone are looked at.
                        let arrays = unsafe { self.places() }?;
                        job.lacking(&arrays)
                    })?;
                    let mut all = locked(&subject.pool.lacking);
                    if all.len() >= KEPT {
                        all.remove(0);
                    }
                    all.push((key, lacking.clone()));
                    lacking
                }
            };
            // Where all arrays are planes, so are the new ones.
            let is_flat = !self.given.is_empty() && self.given.iter().all(|own| own.view.shape.len() <= 2);
            Ok(lacking
                .into_iter()
                .map(|Lacking { name, mut shape, element }| {
                    if is_flat && shape.len() == 3 && shape[0] == 1 {
                        shape.remove(0);
                    }
                    (name, shape, dtype(element))
                })
                .collect())
        })
    }

    /// Takes an output that was made.
    fn write(&mut self, py: Python<'_>, name: &str, array: &Bound<'_, PyAny>, is_own: bool) -> PyResult<()> {
        let mut view = View::of(name, array)?;
        // A library whose arrays nobody writes lets its new ones be written once.
        view.is_read_only &= !is_own;
        if view.is_read_only {
            return Err(wrong(py, format!("`{name}` is written, and the array that was made for it is read-only"), ""));
        }
        self.kept.push(array.clone().unbind());
        if let Some(kept) = view.take_kept() {
            self.kept.push(Py::new(py, Keeper { _kept: kept })?.into_any());
        }
        self.given.push(Given { name: name.to_owned(), view, how: Use::Write });
        Ok(())
    }

    /// Computes once.
    fn run(&mut self, py: Python<'_>, stream: usize, waits: bool) -> PyResult<()> {
        caught(py, || {
            let key = self.key(py);
            let mut bind = self.call(py, &key)?;
            let is_on_gpu = self.device.is_some();
            let bind = apart(py, move || {
                // The arrays' library uses and frees them in the order of the stream that it has told.
                on_device(is_on_gpu, || bind.run(stream, waits, is_on_gpu)).map(|()| bind)
            })?;
            let mut calls = locked(&self.subject.bind(py).get().pool.calls);
            if calls.len() >= KEPT {
                calls.remove(0);
            }
            calls.push((key, bind));
            Ok(())
        })
    }

    /// A call that keeps the arrays. `outputs` is what it returns, `current` says the stream if none is given.
    fn bind(
        &mut self,
        py: Python<'_>,
        outputs: Py<PyAny>,
        current: Option<Py<PyAny>>,
        waits: bool,
    ) -> PyResult<BoundCall> {
        caught(py, || {
            let call = Mutex::new(self.call(py, &self.key(py))?);
            Ok(BoundCall {
                call,
                is_on_gpu: self.device.is_some(),
                waits,
                outputs,
                current,
                stream: self.stream.unwrap_or(0),
                _kept: std::mem::take(&mut self.kept),
            })
        })
    }
}

impl Lending {
    /// Inputs that are missing.
    fn are_there(&self, py: Python<'_>) -> PyResult<()> {
        let subject = self.subject.bind(py).get();
        let is_given = |name: &str| self.given.iter().any(|own| own.name == name && own.how != Use::Write);
        let missing: Vec<String> = subject
            .of
            .fields()
            .filter(|(own, role)| role.is_read() && !is_given(&own.name))
            .map(|(own, _)| format!("`{}`", own.name))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let given: Vec<String> =
            self.given.iter().map(|own| format!("{} {}", own.name, shape_text(py, &own.view.shape))).collect();
        let help = if given.is_empty() {
            "give an array for each, by its name".to_owned()
        } else {
            format!("given are {}", given.join(", "))
        };
        let are = if missing.len() == 1 { "an input is" } else { "inputs are" };
        Err(wrong(py, format!("{are} missing of stencil `{}`: {}", subject.of.name(), missing.join(", ")), help))
    }
}

/// Keeps the memory of an array that was handed over.
#[pyclass(frozen, module = "stencilc._core")]
struct Keeper {
    _kept: crate::dlpack::Kept,
}

/// The type as NumPy calls it.
pub fn dtype(element: Element) -> &'static str {
    match element {
        Element::F32 => "float32",
        Element::F64 => "float64",
        Element::I32 => "int32",
        Element::Bool => "bool",
    }
}

/// `in`, `out`, `inout`.
fn role_text(role: Role) -> &'static str {
    match role {
        Role::Out => "out",
        Role::InOut => "inout",
        Role::In | Role::Carried | Role::Inc | Role::Reduce => "in",
    }
}
