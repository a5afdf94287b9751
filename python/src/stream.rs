//! Streams of CUDA's, as Python's libraries hand them out.

use crate::error::wrong;
use pyo3::prelude::*;

/// The handle of a stream: a number, a stream of CuPy's or torch's, or what has `__cuda_stream__`.
///
/// # Errors
/// It is none of these.
pub fn handle_of(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    if let Ok(handle) = stream.extract::<usize>() {
        return Ok(handle);
    }
    if let Some(told) = stream.getattr_opt("__cuda_stream__")? {
        // The protocol has a method; some had an attribute before.
        let told = if told.is_callable() { told.call0()? } else { told };
        return told.extract::<(usize, usize)>().map(|(_, handle)| handle);
    }
    for name in ["ptr", "cuda_stream", "handle"] {
        if let Some(handle) = stream.getattr_opt(name)?
            && let Ok(handle) = handle.extract::<usize>()
        {
            return Ok(handle);
        }
    }
    let kind = stream.get_type().name()?;
    let help = "give a stream of CuPy or torch, what has `__cuda_stream__`, or the handle as a number";
    Err(wrong(stream.py(), format!("a {kind} is no stream"), help))
}
