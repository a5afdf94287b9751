//! Arrays that are handed over by DLPack: an open layout in memory, which NumPy, PyTorch, JAX, CuPy and others speak. Structures and
//! numbers are those of its header `dlpack.h`, versions 0.8 and 1.x.

use crate::error::wrong;
use crate::view::View;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};
use stencilc_runtime::Element;

/// `DLTensor`.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    axes: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: Tensor,
}

const NAME: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// The flag that an array may not be written.
const READ_ONLY: u64 = 1;

/// Keeps the memory of an array that was handed over.
pub enum Kept {
    /// As DLPack before version 1 does.
    Old(*mut c_void),
    /// As it does since.
    New(*mut c_void),
}

// SAFETY: whoever made the structure allows any thread to free it; those of Python take the GIL.
unsafe impl Send for Kept {}
// SAFETY: nothing is done with it but that.
unsafe impl Sync for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        match *self {
            Kept::Old(managed) => {
                let managed = managed.cast::<Managed>();
                // SAFETY: the structure was handed over, and nobody else frees it; it is freed once.
                unsafe { (*managed).deleter.into_iter().for_each(|deleter| deleter(managed)) }
            }
            Kept::New(managed) => {
                let managed = managed.cast::<Versioned>();
                // SAFETY: as above.
                unsafe { (*managed).deleter.into_iter().for_each(|deleter| deleter(managed)) }
            }
        }
    }
}

/// The devices of DLPack: those of the host, among them what a GPU can reach; and CUDA's.
const HOST: [i32; 2] = [1, 3];
const CUDA: [i32; 2] = [2, 13];

/// Where an array is, by its own word: a GPU's number, or the host.
pub fn device(array: &Bound<'_, PyAny>) -> PyResult<Option<Option<usize>>> {
    let Some(told) = array.getattr_opt("__dlpack_device__")? else { return Ok(None) };
    let (kind, number): (i32, i32) = told.call0()?.extract()?;
    Ok(match kind {
        kind if HOST.contains(&kind) => Some(None),
        kind if CUDA.contains(&kind) => Some(Some(usize::try_from(number).unwrap_or(0))),
        _ => None,
    })
}

/// Takes over an array. Nothing is copied.
///
/// # Errors
/// It is on a device that is neither the host nor a GPU of CUDA, or its elements are none of ours; or its library does not hand it over.
pub fn taken(name: &str, array: &Bound<'_, PyAny>) -> PyResult<View> {
    let py = array.py();
    let asked = PyDict::new(py);
    asked.set_item("max_version", (1, 0))?;
    if device(array)?.flatten().is_some() {
        // Whatever writes it is done before the default stream goes on.
        asked.set_item("stream", 1)?;
    }
    let capsule = match array.call_method("__dlpack__", (), Some(&asked)) {
        // Libraries from before version 1 do not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            asked.del_item("max_version")?;
            array.call_method("__dlpack__", (), Some(&asked))
        }
        done => done,
    };
    let capsule = capsule.map_err(|error| {
        // Some say on many lines where they come from.
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default();
        wrong(py, format!("the array of `{name}` is not handed over by its library: {first}"), advice(&said))
    })?;
    let pointer = capsule.as_ptr();
    let is_valid = |name: &CStr| {
        // SAFETY: any object may be asked.
        unsafe { ffi::PyCapsule_IsValid(pointer, name.as_ptr()) == 1 }
    };
    let (kept, tensor, is_read_only) = if is_valid(VERSIONED) {
        // SAFETY: a capsule of this name holds a pointer to this structure. Once it is renamed, the structure is ours to free.
        unsafe {
            let managed = ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr());
            ffi::PyCapsule_SetName(pointer, USED_VERSIONED.as_ptr());
            let own = managed.cast::<Versioned>();
            if (*own).version[0] != 1 {
                drop(Kept::New(managed));
                return Err(wrong(py, format!("the array of `{name}` is handed over by a DLPack after version 1"), ""));
            }
            (Kept::New(managed), std::ptr::addr_of!((*own).tensor), (*own).flags & READ_ONLY != 0)
        }
    } else if is_valid(NAME) {
        // SAFETY: as above.
        unsafe {
            let managed = ffi::PyCapsule_GetPointer(pointer, NAME.as_ptr());
            ffi::PyCapsule_SetName(pointer, USED.as_ptr());
            (Kept::Old(managed), std::ptr::addr_of!((*managed.cast::<Managed>()).tensor), false)
        }
    } else {
        return Err(wrong(py, format!("what `__dlpack__` of the array of `{name}` gives is no capsule of DLPack"), ""));
    };
    // SAFETY: the structure is there as long as `kept`.
    let tensor = unsafe { &*tensor };
    let device = match tensor.device {
        [kind, _] if HOST.contains(&kind) => None,
        [kind, number] if CUDA.contains(&kind) => Some(usize::try_from(number).unwrap_or(0)),
        [kind, _] => {
            return Err(wrong(
                py,
                format!("the array of `{name}` is on a device that is none of CUDA's, nor the host ({kind} of DLPack)"),
                "bring it to the host or to a GPU of NVIDIA's",
            ));
        }
    };
    let element = match (tensor.code, tensor.bits, tensor.lanes) {
        (2, 64, 1) => Ok(Element::F64),
        (2, 32, 1) => Ok(Element::F32),
        (0, 32, 1) => Ok(Element::I32),
        (6, 8, 1) => Ok(Element::Bool),
        (code, bits, _) => {
            let kind = ["int", "uint", "float", "opaque", "bfloat", "complex", "bool"];
            Err(format!("{}{bits}", kind.get(usize::from(code)).unwrap_or(&"type")))
        }
    };
    let axes = usize::try_from(tensor.axes).unwrap_or(0);
    let numbers = |first: *const i64| -> Vec<i64> {
        // SAFETY: where the pointer is one, there are as many numbers as axes.
        if first.is_null() || axes == 0 {
            Vec::new()
        } else {
            unsafe { std::slice::from_raw_parts(first, axes) }.to_vec()
        }
    };
    let shape: Vec<usize> = numbers(tensor.shape).into_iter().map(|own| usize::try_from(own).unwrap_or(0)).collect();
    let strides: Vec<isize> = numbers(tensor.strides).into_iter().map(|own| own as isize).collect();
    let address = (tensor.data as u64).wrapping_add(tensor.byte_offset);
    View::new(py, name, address, element, shape, (!strides.is_empty()).then_some(strides), is_read_only, device)
        .map(|view| view.keeping(kept))
}

/// What mends that a library does not hand over an array.
fn advice(said: &str) -> &'static str {
    match said {
        said if said.contains("grad") => "an array that gradients are asked of is handed over by `array.detach()`",
        said if said.contains("Tracer") || said.contains("tracer") => {
            "inside of `jax.jit` there are no numbers: call what `stencil.jax` gives"
        }
        _ => "",
    }
}
