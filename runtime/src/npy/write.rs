//! Writing: in C order and little-endian, as NumPy itself does on most machines.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use npyz::{DType, WriteOptions, WriterBuilder};

use super::CHUNK;
use super::header::count;
use crate::array::{Array, Data, Element};
use crate::error::{Error, Result};
use crate::files;

/// Writes `array` to the file at `path`, in C order and little-endian, all of it or nothing.
///
/// # Errors
///
/// Those of [`files::write_atomic`]; the shape does not fit the number of elements.
pub fn save(path: &Path, array: &Array) -> Result<()> {
    if count(&lengths(array))? != array.data.len() {
        return Err(Error::input(format!(
            "cannot write `{}`: an array of shape {:?} cannot hold {} elements",
            path.display(),
            array.shape,
            array.data.len()
        )));
    }
    files::write_atomic(path, |out| write(out, array))
}

/// Lengths of the axes, as the format has them.
fn lengths(array: &Array) -> Vec<u64> {
    array.shape.iter().map(|&length| length as u64).collect()
}

/// Writes the bytes that [`save`] puts into a file; the shape has to fit the numbers.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, array: &Array) -> io::Result<()> {
    write_head(out, array.data.element(), &array.shape)?;
    write_data(out, &array.data)
}

/// Writes what precedes the numbers of an array.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_head(out: &mut dyn Write, element: Element, shape: &[usize]) -> io::Result<()> {
    let name = match element {
        Element::F32 => "<f4",
        Element::F64 => "<f8",
        Element::I32 => "<i4",
        Element::Bool => "|b1",
    };
    write_header(out, name, &shape.iter().map(|&length| length as u64).collect::<Vec<_>>())
}

/// Writes numbers as those of an array, or some of them.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_data(out: &mut dyn Write, data: &Data) -> io::Result<()> {
    match data {
        Data::F32(values) => write_numbers(out, values, f32::to_le_bytes),
        Data::F64(values) => write_numbers(out, values, f64::to_le_bytes),
        Data::I32(values) => write_numbers(out, values, i32::to_le_bytes),
        Data::Bool(values) => write_numbers(out, values, |value| [u8::from(value != 0)]),
    }
}

/// Writes what precedes the numbers.
fn write_header(out: &mut dyn Write, element: &str, shape: &[u64]) -> io::Result<()> {
    let element = element.parse().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    WriteOptions::new_header_only().dtype(DType::Plain(element)).shape(shape).writer(out).write_header_only()?;
    Ok(())
}

/// Writes numbers one after another.
fn write_numbers<const BYTES: usize, T: Copy>(
    out: &mut dyn Write,
    values: &[T],
    encode: impl Fn(T) -> [u8; BYTES],
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(values.len().min(CHUNK) * BYTES);
    for chunk in values.chunks(CHUNK) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|&value| encode(value)));
        out.write_all(&bytes)?;
    }
    Ok(())
}
