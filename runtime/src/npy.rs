//! Arrays in NumPy's `.npy` files.
//!
//! The format is NumPy's NEP 1: a magic string, a version, the length of the header, the header (a
//! Python dictionary with the type, the order and the shape), the numbers. A file is not believed
//! before it is checked: its header against the format, then its length against the header, and
//! only then is memory asked for.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::path::Path;

use npyz::{DType, Endianness, TypeChar, TypeStr, WriteOptions, WriterBuilder};
use py_literal::Value;

use crate::array::{Array, Data};
use crate::error::{Error, Result};
use crate::files;

/// What every file begins with; two bytes of version follow.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header in bytes, which is also NumPy's limit (`max_header_size`).
const MAX_HEADER: usize = 10_000;

/// The deepest nesting of a header: the parser recurses, and an ordinary header needs two.
const MAX_NESTING: usize = 32;

/// The most axes, which is also NumPy's limit (`NPY_MAXDIMS`).
const MAX_AXES: usize = 64;

/// How many numbers are converted at once.
const CHUNK: usize = 1 << 16;

/// Reads the array in the file at `path`, in C order whatever the order of the file.
///
/// Both byte orders are read. `f4`, `f8`, `i4` and `bool` keep their type; `i1`, `i2`, `u1` and `u2`
/// become 32-bit integers, which hold all their values.
///
/// # Errors
///
/// There is no such file; it is no `.npy` file, is shorter or longer than its header says, or holds
/// numbers of another type; there is not enough memory. Messages name the file.
pub fn load(path: &Path) -> Result<Array> {
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
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    read(&mut BufReader::new(file), length)
        .map_err(|error| Error { message: format!("cannot read `{shown}`: {}", error.message), ..error })
}

/// Writes `array` to the file at `path`, in C order and little-endian, all of it or nothing.
///
/// # Errors
///
/// Those of [`files::write_atomic`]; the shape does not fit the number of elements.
pub fn save(path: &Path, array: &Array) -> Result<()> {
    let shape: Vec<u64> = array.shape.iter().map(|&length| length as u64).collect();
    if count(&shape)? != array.data.len() {
        return Err(Error::input(format!(
            "cannot write `{}`: an array of shape {:?} cannot hold {} elements",
            path.display(),
            array.shape,
            array.data.len()
        )));
    }
    files::write_atomic(path, |out| match &array.data {
        Data::F32(values) => {
            write_header(out, "<f4", &shape)?;
            write_numbers(out, values, f32::to_le_bytes)
        }
        Data::F64(values) => {
            write_header(out, "<f8", &shape)?;
            write_numbers(out, values, f64::to_le_bytes)
        }
        Data::I32(values) => {
            write_header(out, "<i4", &shape)?;
            write_numbers(out, values, i32::to_le_bytes)
        }
        Data::Bool(values) => {
            write_header(out, "|b1", &shape)?;
            write_numbers(out, values, |value| [u8::from(value != 0)])
        }
    })
}

/// The error of a file that does not exist, with the files there that may have been meant.
fn missing(path: &Path) -> Error {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        Some(_) | None => Path::new("."),
    };
    let error = Error::input(format!("cannot read `{}`: there is no such file", path.display()));
    let Ok(entries) = fs::read_dir(directory) else {
        return error.help(format!("there is no directory `{}` either", directory.display()));
    };
    let wanted = stem(path);
    let mut names: Vec<(usize, String)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|found| found.extension().is_some_and(|extension| extension == "npy"))
        .map(|found| {
            let likeness = shared(&wanted, &stem(&found));
            let name = directory.join(found.file_name().unwrap_or_default());
            (likeness, format!("`{}`", name.display()))
        })
        .collect();
    names.sort_by_key(|(likeness, name)| (Reverse(*likeness), name.clone()));
    match names.first() {
        None => {
            error.help(format!("there are no .npy files in `{}`; write one with `numpy.save`", directory.display()))
        }
        // Half the letters in place is close enough for a guess.
        Some((likeness, name)) if 2 * likeness > wanted.len() => error.help(format!("did you mean {name}?")),
        Some(_) => {
            let more = if names.len() > 5 { ", ..." } else { "" };
            let shown: Vec<&str> = names.iter().take(5).map(|(_, name)| name.as_str()).collect();
            error.help(format!("what is there: {}{more}", shown.join(", ")))
        }
    }
}

/// The characters of a file's name without its ending, in lower case.
fn stem(path: &Path) -> Vec<char> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.to_lowercase().chars().collect()
}

/// How many characters two names share at their beginnings and ends: one slip between them costs
/// at most the characters that it touches.
fn shared(a: &[char], b: &[char]) -> usize {
    let same = |(a, b): &(&char, &char)| a == b;
    let front = a.iter().zip(b).take_while(same).count();
    let back = a[front..].iter().rev().zip(b[front..].iter().rev()).take_while(same).count();
    front + back
}

/// What the header of a file says.
struct Header {
    /// The type of the numbers, with their byte order.
    element: TypeStr,
    /// Whether the first axis is the fastest.
    fortran: bool,
    /// Lengths of the axes in index order.
    shape: Vec<u64>,
}

/// Reads an array from a file of `length` bytes.
fn read(file: &mut impl Read, length: u64) -> Result<Array> {
    let (header, start) = read_header(file, length)?;
    let left = length - start;
    let element = &header.element;
    let data = match (element.type_char(), element.size_field()) {
        (TypeChar::Float, 4) => Data::F32(numbers(file, &header, left, f32::from_le_bytes)?),
        (TypeChar::Float, 8) => Data::F64(numbers(file, &header, left, f64::from_le_bytes)?),
        (TypeChar::Int, 4) => Data::I32(numbers(file, &header, left, i32::from_le_bytes)?),
        (TypeChar::Int, 2) => Data::I32(numbers(file, &header, left, |bytes| i32::from(i16::from_le_bytes(bytes)))?),
        (TypeChar::Int, 1) => Data::I32(numbers(file, &header, left, |bytes| i32::from(i8::from_le_bytes(bytes)))?),
        (TypeChar::Uint, 2) => Data::I32(numbers(file, &header, left, |bytes| i32::from(u16::from_le_bytes(bytes)))?),
        (TypeChar::Uint, 1) => Data::I32(numbers(file, &header, left, |[byte]| i32::from(byte))?),
        // NumPy takes any byte but 0 for true.
        (TypeChar::Bool, 1) => Data::Bool(numbers(file, &header, left, |[byte]| u8::from(byte != 0))?),
        _ => return Err(unsupported(element)),
    };
    let shape = header.shape.iter().map(|&length| length as usize).collect();
    Ok(Array { shape, data })
}

/// Reads and checks the header; gives it with the offset of the first number in bytes.
fn read_header(file: &mut impl Read, length: u64) -> Result<(Header, u64)> {
    let mut first = Vec::new();
    file.take(12).read_to_end(&mut first).map_err(broken)?;
    if !first.starts_with(MAGIC) {
        let mut beginning = first;
        file.take(20).read_to_end(&mut beginning).map_err(broken)?;
        return Err(no_npy(&beginning));
    }
    let &[_, _, _, _, _, _, major, minor, a, b, c, d] = first.as_slice() else {
        return Err(damaged("it ends within its header"));
    };
    // Version 1 has two bytes of length, of which the other two are already text.
    let (start, text_length, mut text) = match (major, minor) {
        (1, 0) => (10, usize::from(u16::from_le_bytes([a, b])), vec![c, d]),
        (2 | 3, 0) => (12, u32::from_le_bytes([a, b, c, d]) as usize, vec![]),
        _ => {
            return Err(Error::input(format!("version {major}.{minor} of the .npy format is not known"))
                .help("write it again with `numpy.save`, or check that the file is intact"));
        }
    };
    if text_length > MAX_HEADER {
        return Err(damaged(&format!("its header claims to be {text_length} bytes long")));
    }
    let rest = text_length.saturating_sub(text.len());
    file.take(rest as u64).read_to_end(&mut text).map_err(broken)?;
    // A header of version 1 shorter than two bytes has none of the braces that are looked for next.
    if text.len() < text_length {
        return Err(damaged("it ends within its header"));
    }
    let start = start + text_length as u64;
    if start > length {
        return Err(damaged("it ends within its header"));
    }
    Ok((parse_header(&text)?, start))
}

/// Understands the text of a header.
fn parse_header(text: &[u8]) -> Result<Header> {
    let not_understood = || damaged("its header is not a dictionary of type, order and shape");
    let text = std::str::from_utf8(text).map_err(|_| not_understood())?;
    if nesting(text) > MAX_NESTING {
        return Err(not_understood());
    }
    let Ok(Value::Dict(entries)) = text.trim_end().parse() else {
        return Err(not_understood());
    };
    let entry = |name: &str| {
        let mut values = entries.iter().filter(|(key, _)| match key {
            Value::String(key) => key == name,
            _ => false,
        });
        values.next().map(|(_, value)| value)
    };
    let (Some(element), Some(&Value::Boolean(fortran)), Some(Value::Tuple(shape))) =
        (entry("descr"), entry("fortran_order"), entry("shape"))
    else {
        return Err(not_understood());
    };
    let Value::String(element) = element else {
        return Err(Error::input("it holds a structured array (records with named fields)")
            .help("save one field of it: `numpy.save(name, array['field'])`"));
    };
    let element = element.parse().map_err(|_| {
        Error::input(format!("its numbers have the unknown type `{}`", shortened(element)))
            .help("convert them before saving: `array.astype('float64')`")
    })?;
    let shape = shape
        .iter()
        .map(|axis| match axis {
            Value::Integer(length) => u64::try_from(length).map_err(|_| {
                let length = shortened(&length.to_string());
                damaged(&format!("its header says that an axis has {length} elements"))
            }),
            _ => Err(not_understood()),
        })
        .collect::<Result<_>>()?;
    Ok(Header { element, fortran, shape })
}

/// A text from a file, cut to what a message can show.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 40;
    let more = if text.chars().count() > SHOWN { "..." } else { "" };
    let shown: String = text.chars().take(SHOWN).collect();
    format!("{}{more}", shown.escape_debug())
}

/// How deep the brackets of a text are nested at most.
fn nesting(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut deepest = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// The number of elements of an array, if there can be such an array.
fn count(shape: &[u64]) -> Result<usize> {
    if shape.len() > MAX_AXES {
        return Err(Error::input(format!("the array has {} axes, but NumPy allows {MAX_AXES}", shape.len())));
    }
    shape
        .iter()
        .try_fold(1_u64, |count, &length| count.checked_mul(length))
        .filter(|count| isize::try_from(count.saturating_mul(8)).is_ok())
        .and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| damaged(&format!("no memory could hold an array of shape {shape:?}")))
}

/// Reads the numbers of a file, of which `left` bytes are left, into C order; `decode` takes them
/// little-endian.
fn numbers<const BYTES: usize, T: Copy>(
    file: &mut impl Read,
    header: &Header,
    left: u64,
    decode: impl Fn([u8; BYTES]) -> T,
) -> Result<Vec<T>> {
    let count = count(&header.shape)?;
    // No overflow: `count` is at most an eighth of what can be addressed.
    let expected = (count * BYTES) as u64;
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
    let mut values = reserve(count)?;
    let mut bytes = vec![0; count.min(CHUNK) * BYTES];
    while values.len() < count {
        let chunk = &mut bytes[..(count - values.len()).min(CHUNK) * BYTES];
        file.read_exact(chunk).map_err(broken)?;
        for number in chunk.as_chunks_mut().0 {
            if header.element.endianness() == Endianness::Big {
                number.reverse();
            }
            values.push(decode(*number));
        }
    }
    if header.fortran { c_ordered(&values, &header.shape) } else { Ok(values) }
}

/// Room for `count` numbers.
fn reserve<T>(count: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(count).map_err(|_| {
        let gigabytes = (count * size_of::<T>()) as f64 / 1e9;
        Error::input(format!("there is not enough memory for the array: it takes {gigabytes:.1} GB"))
            .help("cut the array into smaller ones, or use a machine with more memory")
    })?;
    Ok(room)
}

/// Fortran-ordered numbers, whose first axis is the fastest, in C order.
fn c_ordered<T: Copy>(values: &[T], shape: &[u64]) -> Result<Vec<T>> {
    // Also keeps an axis of length 0 from being walked beside a long one.
    if values.is_empty() || shape.len() < 2 {
        return Ok(values.to_vec());
    }
    let mut stride = 1;
    let mut axes = Vec::new();
    for &length in shape {
        axes.push((length as usize, stride));
        stride *= length as usize;
    }
    let mut ordered = reserve(values.len())?;
    gather(values, 0, &axes, &mut ordered);
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

/// The error of a file whose content cannot be right.
fn damaged(what: &str) -> Error {
    Error::input(what).help("the file is damaged or was not written to its end; write it again")
}

/// The error of a file that could not be read although it is there.
fn broken(error: io::Error) -> Error {
    Error::input(error.to_string())
}

/// The error of numbers that no field can have.
fn unsupported(element: &TypeStr) -> Error {
    let bits = element.size_field().saturating_mul(8);
    let (what, help) = match element.type_char() {
        TypeChar::Int => {
            (format!("{bits}-bit integers"), "convert them if 32 bits hold them all: `array.astype('int32')`")
        }
        TypeChar::Uint => {
            (format!("{bits}-bit unsigned integers"), "convert them if 31 bits hold them all: `array.astype('int32')`")
        }
        TypeChar::Float if element.size_field() < 4 => {
            (format!("{bits}-bit reals"), "convert them before saving: `array.astype('float32')`")
        }
        TypeChar::Float => (format!("{bits}-bit reals"), "convert them before saving: `array.astype('float64')`"),
        TypeChar::Complex => ("complex numbers".to_owned(), "save two arrays: `array.real` and `array.imag`"),
        TypeChar::ByteStr | TypeChar::UnicodeStr => {
            ("text, not numbers".to_owned(), "convert it before saving: `array.astype('float64')`")
        }
        TypeChar::TimeDelta | TypeChar::DateTime => (
            "times".to_owned(),
            "convert them to numbers before saving: `(array - array[0]) / numpy.timedelta64(1, 's')`",
        ),
        TypeChar::Object => ("Python objects".to_owned(), "convert them before saving: `array.astype('float64')`"),
        _ => ("raw bytes".to_owned(), "convert them before saving: `array.view('float64')`"),
    };
    Error::input(format!("it holds {what} (`{element}`), but fields are `f4`, `f8`, `i4` or `bool`")).help(help)
}

/// The error of another kind of file, told from how it begins.
fn no_npy(beginning: &[u8]) -> Error {
    let npz = "take the array out: `numpy.save('name.npy', numpy.load('archive.npz')['name'])`";
    let convert = "read it in Python and write the array with `numpy.save`";
    let (what, help) = match beginning {
        [] => ("it is empty".to_owned(), "write it again"),
        [b'P', b'K', ..] => ("it is not a .npy file but a zip archive, as .npz files are".to_owned(), npz),
        [0x1f, 0x8b, ..] => ("it is not a .npy file but compressed (gzip)".to_owned(), "unpack it with `gunzip`"),
        [0x89, b'H', b'D', b'F', ..] => ("it is not a .npy file but HDF5 or NetCDF-4".to_owned(), convert),
        [b'C', b'D', b'F', ..] => ("it is not a .npy file but NetCDF".to_owned(), convert),
        _ => match std::str::from_utf8(beginning) {
            Ok(text) if !text.contains(|c: char| c.is_control() && !c.is_whitespace()) => (
                format!("it is not a .npy file but text: \"{}\"", text.escape_debug()),
                "read it with `numpy.loadtxt` and write the array with `numpy.save`",
            ),
            _ => {
                let bytes: Vec<String> = beginning.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                (format!("it is not a .npy file: it begins with the bytes {}", bytes.join(" ")), convert)
            }
        },
    };
    Error::input(what).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of version 1 with this header and these numbers.
    fn file(header: &str, numbers: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(numbers);
        bytes
    }

    fn typed(element: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': {shape}, }}\n");
        file(&header, numbers)
    }

    fn read_bytes(bytes: &[u8]) -> Result<Array> {
        read(&mut &bytes[..], bytes.len() as u64)
    }

    fn refused(bytes: &[u8], expected: &str) {
        match read_bytes(bytes) {
            Ok(array) => panic!("read {array:?} where \"{expected}\" was expected"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(expected), "\"{text}\" lacks \"{expected}\"");
            }
        }
    }

    #[test]
    fn arrays_survive_a_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        for (shape, data) in [
            (vec![1, 2, 2], Data::F32(vec![1.5, -0.0, f32::INFINITY, 1e-40])),
            (vec![2, 2], Data::F64(vec![0.1, f64::MIN, 5e-324, -1.0])),
            (vec![3], Data::I32(vec![i32::MIN, 0, i32::MAX])),
            (vec![2, 1], Data::Bool(vec![0, 1])),
            (vec![], Data::F64(vec![7.0])),
            (vec![0, 5], Data::F32(vec![])),
            (vec![CHUNK + 1], Data::I32((0..=CHUNK as i32).collect())),
        ] {
            let array = Array { shape, data };
            save(&path, &array).unwrap();
            assert_eq!(load(&path).unwrap(), array);
        }
    }

    #[test]
    fn saved_bytes_are_those_of_numpy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        let array = Array { shape: vec![1, 2], data: Data::Bool(vec![1, 0]) };
        save(&path, &array).unwrap();
        let bytes = fs::read(&path).unwrap();
        // The numbers are aligned to 64 bytes, so that the file can be mapped into memory.
        assert_eq!(bytes.len(), 128 + 2);
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '|b1'"));
        assert!(bytes.ends_with(b" \n\x01\x00"));
    }

    #[test]
    fn a_shape_that_does_not_fit_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let array = Array { shape: vec![2, 3], data: Data::I32(vec![1]) };
        let error = save(&directory.path().join("a.npy"), &array).unwrap_err();
        assert!(error.message.contains("[2, 3]"), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn every_width_and_byte_order_is_read() {
        let ints = |values: &[i32]| Data::I32(values.to_vec());
        for (element, bytes, expected) in [
            ("<i4", &[1, 0, 0, 0x80][..], ints(&[i32::MIN + 1])),
            (">i4", &[0x80, 0, 0, 1], ints(&[i32::MIN + 1])),
            ("<i2", &[0xfe, 0xff], ints(&[-2])),
            (">i2", &[0xff, 0xfe], ints(&[-2])),
            ("<u2", &[0xfe, 0xff], ints(&[0xfffe])),
            (">u2", &[0xff, 0xfe], ints(&[0xfffe])),
            ("|i1", &[0xfe], ints(&[-2])),
            ("|u1", &[0xfe], ints(&[0xfe])),
            ("|b1", &[2], Data::Bool(vec![1])),
            ("<f4", &[0, 0, 0xc0, 0x3f], Data::F32(vec![1.5])),
            (">f4", &[0x3f, 0xc0, 0, 0], Data::F32(vec![1.5])),
            (">f8", &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Data::F64(vec![1.5])),
        ] {
            let array = read_bytes(&typed(element, "(1,)", bytes)).unwrap();
            assert_eq!(array.data, expected, "{element}");
            assert_eq!(array.shape, [1]);
        }
    }

    #[test]
    fn fortran_order_becomes_c_order() {
        // Element (k, j, i) of shape (2, 3, 4) holds 100 k + 10 j + i.
        let mut stored = Vec::new();
        for (i, j, k) in (0..4).flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| (i, j, k)))) {
            stored.push(100 * k + 10 * j + i);
        }
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}";
        let array = read_bytes(&file(header, &stored)).unwrap();
        assert_eq!(array.shape, [2, 3, 4]);
        let Data::I32(values) = array.data else {
            panic!("bytes are widened");
        };
        for (n, value) in values.iter().enumerate() {
            assert_eq!(*value as usize, 100 * (n / 12) + 10 * (n / 4 % 3) + n % 4);
        }
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (1099511627776, 0)}";
        assert!(read_bytes(&file(header, &[])).unwrap().data.is_empty());
    }

    #[test]
    fn other_types_are_refused_with_advice() {
        for (element, expected) in [
            ("<i8", ".astype('int32')"),
            ("<u4", ".astype('int32')"),
            ("<u8", ".astype('int32')"),
            ("<f2", ".astype('float32')"),
            ("<f16", ".astype('float64')"),
            ("<c16", "array.real"),
            ("<U5", "text"),
            ("|S5", "text"),
            ("|O", "Python objects"),
            ("|V8", "raw bytes"),
            ("<M8[s]", "times"),
            ("hello", "unknown type"),
        ] {
            refused(&typed(element, "(1,)", &[0; 16]), expected);
        }
        let header = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}";
        refused(&file(header, &[0; 4]), "array['field']");
    }

    #[test]
    fn impossible_shapes_are_refused_without_allocating() {
        refused(&typed("<f8", "(-1,)", &[0; 8]), "-1 elements");
        refused(&typed("<f8", "(4294967296, 4294967296)", &[]), "no memory");
        refused(&typed("<f8", "(99999999999999999999,)", &[]), "elements");
        refused(&typed("<f8", "(100000000000, 1000000)", &[]), "cut short");
        refused(&typed("<f8", "(2.5,)", &[0; 8]), "header");
        refused(&typed("<f8", "3", &[0; 24]), "header");
        refused(&typed("|u1", &format!("({})", "1,".repeat(65)), &[0]), "65 axes");
        refused(&typed("<f8", &"(".repeat(5000), &[]), "header");
    }

    #[test]
    fn lengths_that_do_not_match_are_refused() {
        refused(&typed("<f8", "(2,)", &[0; 15]), "cut short");
        refused(&typed("<f8", "(2,)", &[0; 17]), "something follows");
        refused(&typed("<f8", "(2,)", &[])[..40], "within its header");
        refused(&MAGIC[..6], "within its header");
        refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "4294967295 bytes");
        refused(b"\x93NUMPY\x04\x00\x10\x00{}          ", "version 4.0");
    }

    #[test]
    fn other_files_are_recognised() {
        refused(b"", "is empty");
        refused(b"PK\x03\x04 and more of it that follows", "numpy.load");
        refused(b"1.0, 2.0\n3.0", r#"text: "1.0, 2.0\n3.0"#);
        refused(b"\x89HDF\r\n\x1a\n", "HDF5");
        refused(&[0xff, 0xfe, 0x00, 0x01], "ff fe 00 01");
    }

    #[test]
    fn a_missing_file_is_guessed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let help = |name: &str| load(&at(name)).unwrap_err().help.unwrap();
        assert!(help("a.npy").contains("no .npy files"));
        for name in ["pressure", "u", "v", "w", "theta", "rho"] {
            fs::write(at(&format!("{name}.npy")), b"").unwrap();
        }
        for slip in ["presure.npy", "Pressure.npy", "pressure", "prexsure.npy"] {
            assert!(help(slip).contains("did you mean"), "{slip}");
            assert!(help(slip).contains("pressure.npy`?"), "{slip}");
        }
        let listed = help("salinity.npy");
        assert_eq!(listed.matches(".npy`").count(), 5, "{listed}");
        assert!(help("none/a.npy").contains("no directory"));
        let error = load(directory.path()).unwrap_err().to_string();
        assert!(error.contains("a directory"), "{error}");
        let error = load(&at("u.npy")).unwrap_err().to_string();
        assert!(error.contains("u.npy`: it is empty"), "{error}");
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let intact = typed("<i4", "(2, 3)", &[1; 24]);
        read_bytes(&intact).unwrap();
        let Data::I32(random) =
            crate::random::fill(crate::array::Element::I32, 400_000, 0.0, f64::from(i32::MAX), 1, "damage")
        else {
            panic!("asked for int");
        };
        for draws in random.as_chunks::<8>().0 {
            let [kind, at, value, others @ ..] = draws.map(|draw| draw as usize);
            let mut bytes = intact.clone();
            match kind % 4 {
                0 => bytes.truncate(at % bytes.len()),
                1 => bytes.insert(at % bytes.len(), value as u8),
                // Characters that mean something in a header do more than random ones.
                2 => {
                    let meaningful = b"'\"\\{}()[],:-+0123456789eEjJxXoObBuUN_ \n<>|TF";
                    let length = bytes.len();
                    for at in others {
                        bytes[at % length] = meaningful[(at / length + value) % meaningful.len()];
                    }
                }
                _ => {
                    let length = bytes.len();
                    bytes[at % length] = value as u8;
                }
            }
            // Either result will do, as long as it is one.
            drop(read_bytes(&bytes));
        }
    }
}
