//! Reading: the numbers of a file, in C order and as one of the four types that fields have.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

use npyz::{Endianness, TypeChar};

use super::CHUNK;
use super::header::{Header, count, read_header};
use super::missing::missing;
use super::refusal::{broken, damaged, too_large, unsupported};
use crate::array::{Array, Data};
use crate::error::{Error, Result};
use crate::files;
use crate::memory;
use stencilc_compiler::text::in_python;

/// What takes memory, for messages.
const NUMBERS: &str = "the numbers of the array";

/// Reads the array in the file at `path`, in C order whatever the order of the file.
///
/// Both byte orders are read. `f4`, `f8`, `i4` and `bool` keep their type, `f2` becomes `f4`, and the
/// other integers become 32-bit ones, if those hold every value.
///
/// # Errors
///
/// There is no such file; it is no `.npy` file, is shorter or longer than its header says, or holds
/// numbers of another type or too large for theirs; there is not enough memory. Messages name the file.
pub fn load(path: &Path) -> Result<Array> {
    let (file, length) = opened(path)?;
    read(&mut BufReader::new(file), length).map_err(|error| about(path, error))
}

/// Opens the file of an array, and says how many bytes it has.
pub(super) fn opened(path: &Path) -> Result<(File, u64)> {
    let shown = path.display();
    let failed = |error: io::Error| Error::input(format!("cannot read `{shown}`: {error}"));
    let found = fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(path),
        _ => failed(error),
    })?;
    if !found.is_file() {
        let what = if found.is_dir() { "a directory" } else { "a device or a pipe" };
        return Err(Error::input(format!("cannot read `{shown}`: it is {what}, not a file")).help("name a .npy file"));
    }
    files::reads(files::Kind::Array, path)?;
    let file = files::open(path, files::Links::Follow).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    Ok((file, length))
}

/// What is wrong with the array in a file.
pub(super) fn about(path: &Path, Error { fault, message, help }: Error) -> Error {
    Error {
        fault,
        message: format!("cannot read `{}`: {message}", path.display()),
        help: help.map(|help| help.replace("'FILE'", &format!("'{}'", in_python(&path.to_string_lossy())))),
    }
}

/// Reads an array from the `length` bytes of a file.
///
/// # Errors
///
/// As [`load`], but messages do not name the file.
pub fn read(file: &mut impl Read, length: u64) -> Result<Array> {
    let (header, start) = read_header(file, length)?;
    let data = decoded(file, &header, length - start)?;
    let shape = header.shape.iter().map(|&length| length as usize).collect();
    Ok(Array { shape, data })
}

/// The numbers that follow a header, of which `left` bytes are left.
pub(super) fn decoded(file: &mut impl Read, header: &Header, left: u64) -> Result<Data> {
    let element = &header.element;
    Ok(match (element.type_char(), element.size_field()) {
        (TypeChar::Float, 2) => Data::F32(numbers(file, header, left, |bytes| Ok(half(u16::from_le_bytes(bytes))))?),
        (TypeChar::Float, 4) => Data::F32(numbers(file, header, left, |bytes| Ok(f32::from_le_bytes(bytes)))?),
        (TypeChar::Float, 8) => Data::F64(numbers(file, header, left, |bytes| Ok(f64::from_le_bytes(bytes)))?),
        (TypeChar::Int, 1) => Data::I32(numbers(file, header, left, |bytes| Ok(i8::from_le_bytes(bytes).into()))?),
        (TypeChar::Int, 2) => Data::I32(numbers(file, header, left, |bytes| Ok(i16::from_le_bytes(bytes).into()))?),
        (TypeChar::Int, 4) => Data::I32(numbers(file, header, left, |bytes| Ok(i32::from_le_bytes(bytes)))?),
        (TypeChar::Int, 8) => Data::I32(numbers(file, header, left, |bytes| narrow(i64::from_le_bytes(bytes)))?),
        (TypeChar::Uint, 1) => Data::I32(numbers(file, header, left, |[byte]| Ok(byte.into()))?),
        (TypeChar::Uint, 2) => Data::I32(numbers(file, header, left, |bytes| Ok(u16::from_le_bytes(bytes).into()))?),
        (TypeChar::Uint, 4) => Data::I32(numbers(file, header, left, |bytes| narrow(u32::from_le_bytes(bytes)))?),
        (TypeChar::Uint, 8) => Data::I32(numbers(file, header, left, |bytes| narrow(u64::from_le_bytes(bytes)))?),
        // NumPy takes any byte but 0 for true.
        (TypeChar::Bool, 1) => Data::Bool(numbers(file, header, left, |[byte]| Ok(u8::from(byte != 0)))?),
        _ => return Err(unsupported(element)),
    })
}

/// How many numbers a file of `length` bytes holds, as its header says.
///
/// # Errors
///
/// It has no header, or no memory could hold as many.
pub(crate) fn read_count(file: &mut impl Read, length: u64) -> Result<usize> {
    let (header, _) = read_header(file, length)?;
    count(&header.shape)
}

/// Whole numbers of a file, whatever their type.
pub(crate) struct Whole {
    /// Lengths of the axes, slowest first.
    pub shape: Vec<usize>,
    /// The numbers, in C order.
    pub numbers: Vec<i64>,
    /// What -1 becomes in their type: itself, or the largest number of an unsigned one.
    pub minus_one: i64,
}

/// Reads whole numbers of any type from the `length` bytes of a file.
///
/// # Errors
///
/// As [`read`]; and the numbers are no whole ones.
pub(crate) fn read_whole(file: &mut impl Read, length: u64) -> Result<Whole> {
    let (header, start) = read_header(file, length)?;
    let left = length - start;
    let element = &header.element;
    let (numbers, minus_one) = match (element.type_char(), element.size_field()) {
        (TypeChar::Int, 1) => (numbers(file, &header, left, |bytes| Ok(i8::from_le_bytes(bytes).into()))?, -1),
        (TypeChar::Int, 2) => (numbers(file, &header, left, |bytes| Ok(i16::from_le_bytes(bytes).into()))?, -1),
        (TypeChar::Int, 4) => (numbers(file, &header, left, |bytes| Ok(i32::from_le_bytes(bytes).into()))?, -1),
        (TypeChar::Int, 8) => (numbers(file, &header, left, |bytes| Ok(i64::from_le_bytes(bytes)))?, -1),
        (TypeChar::Uint, 1) => (numbers(file, &header, left, |[byte]| Ok(byte.into()))?, u8::MAX.into()),
        (TypeChar::Uint, 2) => {
            (numbers(file, &header, left, |bytes| Ok(u16::from_le_bytes(bytes).into()))?, u16::MAX.into())
        }
        (TypeChar::Uint, 4) => {
            (numbers(file, &header, left, |bytes| Ok(u32::from_le_bytes(bytes).into()))?, u32::MAX.into())
        }
        // Beyond the largest signed number nothing but the largest of all is meant.
        (TypeChar::Uint, 8) => (
            numbers(file, &header, left, |bytes| match u64::from_le_bytes(bytes) {
                u64::MAX => Ok(i64::MAX),
                number => i64::try_from(number).map_err(|_| number.to_string()),
            })?,
            i64::MAX,
        ),
        _ => {
            return Err(Error::input(format!("its numbers are of type `{element}`, and whole ones are needed"))
                .help("convert them before saving: `array.astype('int32')`"));
        }
    };
    let shape = header.shape.iter().map(|&length| length as usize).collect();
    Ok(Whole { shape, numbers, minus_one })
}

/// A number of 16 bits, which single precision holds exactly: a sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f32 {
    let fraction = f32::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2_f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        exponent => (1024.0 + fraction) * 2_f32.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// A whole number as one of 32 bits; itself where it is too large.
fn narrow<T: Copy + Display + TryInto<i32>>(value: T) -> std::result::Result<i32, String> {
    value.try_into().map_err(|_| value.to_string())
}

/// Reads the numbers of a file, of which `left` bytes are left, into C order; `decode` takes them
/// little-endian, and gives back as text what its type cannot hold.
fn numbers<const BYTES: usize, T: Copy>(
    file: &mut impl Read,
    header: &Header,
    left: u64,
    decode: impl Fn([u8; BYTES]) -> std::result::Result<T, String>,
) -> Result<Vec<T>> {
    let count = check_length(header, left, BYTES)?;
    let mut values = memory::list(count, NUMBERS)?;
    let mut bytes = vec![0; count.min(CHUNK) * BYTES];
    while values.len() < count {
        let chunk = &mut bytes[..(count - values.len()).min(CHUNK) * BYTES];
        file.read_exact(chunk).map_err(broken)?;
        for number in chunk.as_chunks_mut().0 {
            if header.element.endianness() == Endianness::Big {
                number.reverse();
            }
            values.push(decode(*number).map_err(|value| too_large(&value, &header.element))?);
        }
    }
    if header.fortran { c_ordered(values, &header.shape) } else { Ok(values) }
}

/// How many numbers follow a header, of so many bytes each, of which as many as they need are left.
pub(super) fn check_length(header: &Header, left: u64, bytes: usize) -> Result<usize> {
    let count = count(&header.shape)?;
    // No overflow: `count` is at most an eighth of what can be addressed.
    let expected = (count * bytes) as u64;
    if left != expected {
        let what = format!(
            "{left} bytes of numbers, but shape {:?} of type `{}` needs {expected}",
            header.shape, header.element
        );
        return Err(if left < expected {
            damaged(&format!("it is cut short: it holds {what}"))
        } else {
            damaged(&format!("something follows the array: it holds {what}"))
        });
    }
    Ok(count)
}

/// Fortran-ordered numbers, whose first axis is the fastest, in C order.
fn c_ordered<T: Copy>(values: Vec<T>, shape: &[u64]) -> Result<Vec<T>> {
    // Also keeps an axis of length 0 from being walked beside a long one.
    if values.is_empty() || shape.len() < 2 {
        return Ok(values);
    }
    let mut stride = 1;
    let mut axes = Vec::new();
    for &length in shape {
        axes.push((length as usize, stride));
        stride *= length as usize;
    }
    let mut ordered = memory::list(values.len(), NUMBERS)?;
    gather(&values, 0, &axes, &mut ordered);
    Ok(ordered)
}

/// Appends the elements under `axes`, pairs of length and stride of which the last is the fastest,
/// from `offset` on.
fn gather<T: Copy>(values: &[T], offset: usize, axes: &[(usize, usize)], out: &mut Vec<T>) {
    match axes {
        [] => out.push(values[offset]),
        [(length, stride)] => out.extend((0..*length).map(|n| values[offset + n * stride])),
        [(length, stride), inner @ ..] => {
            for n in 0..*length {
                gather(values, offset + n * stride, inner, out);
            }
        }
    }
}
