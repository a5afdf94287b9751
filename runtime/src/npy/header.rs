//! The header of a file: which numbers follow, in which order, and how many.

use std::io::Read;

use npyz::TypeStr;
use py_literal::Value;

use super::MAGIC;
use super::refusal::{broken, damaged, not_npy};
use crate::error::{Error, Result};

/// The longest header in bytes, which is also NumPy's limit (`max_header_size`).
const MAX_HEADER: usize = 10_000;

/// The deepest nesting of a header: the parser tries again at every level, so its time grows with a power of the depth. An
/// ordinary header needs two, one of records in records five.
const MAX_NESTING: usize = 6;

/// The most axes, which is also NumPy's limit (`NPY_MAXDIMS`).
const MAX_AXES: usize = 64;

/// What the header of a file says.
#[derive(Clone)]
pub(super) struct Header {
    /// The type of the numbers, with their byte order.
    pub(super) element: TypeStr,
    /// Whether the first axis is the fastest.
    pub(super) fortran: bool,
    /// Lengths of the axes in index order.
    pub(super) shape: Vec<u64>,
}

/// Reads and checks the header; gives it with the offset of the first number in bytes.
pub(super) fn read_header(file: &mut impl Read, length: u64) -> Result<(Header, u64)> {
    let mut first = Vec::new();
    file.take(12).read_to_end(&mut first).map_err(broken)?;
    if !first.starts_with(MAGIC) {
        let mut beginning = first;
        file.take(20).read_to_end(&mut beginning).map_err(broken)?;
        return Err(not_npy(&beginning));
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
    let Ok(Value::Dict(entries)) = plain(text).trim_matches(' ').parse() else {
        return Err(not_understood());
    };
    // Three entries in all, so none of those that are looked for can be there twice.
    if entries.len() != 3 {
        return Err(not_understood());
    }
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

/// The header in one line, and without the `L` that Python 2 put behind long integers: `(10L, 20L)`.
fn plain(text: &str) -> String {
    let mut after_digit = false;
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'L' if after_digit => {}
            '\n' | '\r' | '\t' | '\x0c' => plain.push(' '),
            _ => plain.push(character),
        }
        after_digit = character.is_ascii_digit();
    }
    plain
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
pub(super) fn count(shape: &[u64]) -> Result<usize> {
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
