//! Where an array of somebody's has its numbers. Nothing is copied: `__cuda_array_interface__` or `__array_interface__` are asked, which
//! are the quickest to answer, or else `__dlpack__`.

use crate::dlpack::{self, Kept};
use crate::error::wrong;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use stencilc_runtime::lent::Memory;
use stencilc_runtime::{Element, Error, Lent};

/// An array of somebody's.
pub struct View {
    address: u64,
    pub element: Element,
    pub shape: Vec<usize>,
    /// Elements from one to the next along each axis.
    pub strides: Vec<isize>,
    pub is_read_only: bool,
    /// The GPU in whose memory it is.
    pub device: Option<usize>,
    /// The stream that its library works in, if it says so.
    pub stream: Option<usize>,
    kept: Option<Kept>,
}

impl View {
    /// An array of a field.
    ///
    /// # Errors
    /// The object is no array; its elements are of a type that no field has.
    pub fn of(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        // Some libraries answer with an error where the attribute is there for others.
        if let Some(told) = asked(name, array, "__cuda_array_interface__")? {
            let view = Self::of_interface(name, &told).and_then(|mut view| {
                view.device = Some(dlpack::device(array)?.flatten().unwrap_or(0));
                let stream = told.get_item("stream")?.filter(|own| !own.is_none());
                view.stream = stream.map(|own| own.extract()).transpose()?;
                Ok(view)
            });
            return view.map_err(|error| refused(name, py, error));
        }
        if let Some(told) = asked(name, array, "__array_interface__")? {
            return Self::of_interface(name, &told).map_err(|error| refused(name, py, error));
        }
        if array.hasattr("__dlpack__")? {
            return dlpack::taken(name, array).map_err(|error| refused(name, py, error));
        }
        let kind = array.get_type().name()?;
        let help = "give an array, such as `numpy.asarray(...)`: of NumPy, CuPy, torch, jax, or one that has \
                    `__array_interface__`, `__cuda_array_interface__` or `__dlpack__`";
        Err(wrong(py, format!("`{name}` is a field, and its {kind} is no array"), help))
    }

    fn of_interface(name: &str, told: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = told.py();
        let item = |key: &str| -> PyResult<Bound<'_, PyAny>> {
            told.get_item(key)?.ok_or_else(|| wrong(py, format!("the array of `{name}` does not say its `{key}`"), ""))
        };
        let shape: Vec<usize> = item("shape")?.extract()?;
        let typestr: String = item("typestr")?.extract()?;
        let (address, is_read_only): (u64, bool) = item("data")?.extract()?;
        let element = match typestr.as_str() {
            "<f8" => Ok(Element::F64),
            "<f4" => Ok(Element::F32),
            "<i4" => Ok(Element::I32),
            "|b1" => Ok(Element::Bool),
            other => Err(name_of_type(other)),
        };
        let bytes = element.as_ref().map_or(1, |own| own.bytes()) as isize;
        let strides = told.get_item("strides")?.filter(|own| !own.is_none());
        let strides: Option<Vec<isize>> = strides.map(|own| own.extract()).transpose()?;
        if element.is_ok() && strides.iter().flatten().any(|own| own % bytes != 0) {
            let message = format!("elements of the array of `{name}` lie between each other");
            return Err(wrong(
                py,
                message,
                "it seems to be a part of records: `numpy.ascontiguousarray(...)` copies it",
            ));
        }
        let strides = strides.map(|own| own.into_iter().map(|own| own / bytes).collect());
        Self::new(py, name, address, element, shape, strides, is_read_only, None)
    }

    /// An array at an address. Without strides it is one of C.
    ///
    /// # Errors
    /// No field has its type.
    #[expect(clippy::too_many_arguments, reason = "each is what an array is described by")]
    pub fn new(
        py: Python<'_>,
        name: &str,
        address: u64,
        element: Result<Element, String>,
        shape: Vec<usize>,
        strides: Option<Vec<isize>>,
        is_read_only: bool,
        device: Option<usize>,
    ) -> PyResult<Self> {
        let element = element.map_err(|own| {
            let help = match own.as_str() {
                "int64" | "int16" | "int8" | "uint8" | "uint16" | "uint32" | "uint64" => {
                    "fields hold float64, float32, int32 or bool: `array.astype(\"int32\")` or `array.astype(float)` converts it"
                }
                own if own.starts_with("big-endian") => "`array.astype(array.dtype.newbyteorder(\"=\"))` converts it",
                _ => "fields hold float64, float32, int32 or bool: `array.astype(\"float32\")` or `array.astype(float)` converts it",
            };
            wrong(py, format!("the array of `{name}` holds {own}, which no field does"), help)
        })?;
        let in_order = || {
            let mut strides = vec![1_isize; shape.len()];
            for axis in (1..shape.len()).rev() {
                strides[axis - 1] = strides[axis].saturating_mul(shape[axis] as isize);
            }
            strides
        };
        let strides = strides.unwrap_or_else(in_order);
        Ok(Self { address, element, shape, strides, is_read_only, device, stream: None, kept: None })
    }

    /// The same, with what keeps its memory.
    pub fn keeping(self, kept: Kept) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// What keeps its memory beside the array itself.
    pub fn take_kept(&mut self) -> Option<Kept> {
        self.kept.take()
    }

    /// The array, lent.
    ///
    /// # Safety
    /// The array, and what it [keeps](Self::take_kept), are there as long as the lifetime that is chosen; and nobody else writes it
    /// meanwhile, or reads it where it is lent to be written.
    ///
    /// # Errors
    /// Elements lie backwards, or more of them than fit.
    pub unsafe fn lent<'a>(&self, name: &str, is_writable: bool) -> Result<Lent<'a>, Error> {
        let strides: Option<Vec<usize>> = self.strides.iter().map(|own| usize::try_from(*own).ok()).collect();
        let strides = strides.ok_or_else(|| {
            Error::call(format!("an axis of the array of `{name}` runs backwards"))
                .help("`numpy.ascontiguousarray(...)`, or that of its library, copies it")
        })?;
        let memory = if self.device.is_some() { Memory::Device } else { Memory::Host };
        // SAFETY: the library of the array has told of it, and the caller sees to the rest. Truth values are looked at by whoever reads.
        unsafe { Lent::at(memory, self.address, self.element, &self.shape, &strides, is_writable) }
    }
}

/// That the library of an array says something else than it should, or an error of our own.
fn refused(name: &str, py: Python<'_>, error: PyErr) -> PyErr {
    let is_of_library = error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    match is_of_library {
        true => wrong(py, format!("the array of `{name}` does not tell where its numbers are: {error}"), ""),
        false => error,
    }
}

/// What an array tells of itself under a name.
fn asked<'py>(name: &str, array: &Bound<'py, PyAny>, what: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    match array.getattr_opt(what) {
        Ok(told) => Ok(told.and_then(|told| told.cast_into::<PyDict>().ok())),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyAttributeError>(array.py()) => Ok(None),
        Err(error) => {
            let said = error.to_string();
            let help = if said.contains("grad") { "`array.detach()` has none" } else { "" };
            Err(wrong(array.py(), format!("the array of `{name}` is not handed over by its library: {said}"), help))
        }
    }
}

/// `<i8` as NumPy calls it.
fn name_of_type(typestr: &str) -> String {
    let mut letters = typestr.chars();
    let (order, kind, rest) = (letters.next().unwrap_or('|'), letters.next().unwrap_or('?'), letters.as_str());
    let bits = rest.parse::<usize>().map_or_else(|_| rest.to_owned(), |bytes| (8 * bytes).to_string());
    let name = match kind {
        'f' => "float",
        'i' => "int",
        'u' => "uint",
        'c' => "complex",
        'O' => return "objects".to_owned(),
        'V' => return "records".to_owned(),
        'U' | 'S' => return "texts".to_owned(),
        'M' | 'm' => return "times".to_owned(),
        _ => "type ",
    };
    format!("{}{name}{bits}", if order == '>' { "big-endian " } else { "" })
}

/// A shape as Python writes it.
pub fn shape_text(py: Python<'_>, shape: &[usize]) -> String {
    PyTuple::new(py, shape).map_or_else(|_| format!("{shape:?}"), |shape| shape.to_string())
}
