//! The reader of `.npy` files against files that NumPy wrote (`numpy_files.py`), and against thousands of damaged ones.

use serde_json::Value;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use stencilc_runtime::npy::read;
use stencilc_runtime::{Array, Data, Element};

/// Allocates as usual, and keeps the most bytes that this thread held at once.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // Memory that is asked for while a thread ends is not counted.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promises are those that the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes held at once while `work` ran, beyond those held before.
fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = work();
    (result, (MOST.get() - before) as usize)
}

fn cases() -> Value {
    serde_json::from_str(include_str!("data/numpy_files.json")).unwrap()
}

fn bytes(case: &Value) -> Vec<u8> {
    let hex = case["file"].as_str().unwrap().as_bytes();
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    hex.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn read_bytes(bytes: &[u8]) -> stencilc_runtime::Result<Array> {
    read(&mut &bytes[..], bytes.len() as u64)
}

/// The bits of all numbers.
fn bits(data: &Data) -> Vec<u64> {
    match data {
        Data::F32(values) => values.iter().map(|value| value.to_bits().into()).collect(),
        Data::F64(values) => values.iter().map(|value| value.to_bits()).collect(),
        Data::I32(values) => values.iter().map(|&value| (value as u32).into()).collect(),
        Data::Bool(values) => values.iter().map(|&value| value.into()).collect(),
    }
}

#[test]
fn what_numpy_writes_is_read() {
    for case in cases()["read"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let array = read_bytes(&bytes(case)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let shape: Vec<u64> = array.shape.iter().map(|&length| length as u64).collect();
        assert_eq!(serde_json::to_value(shape).unwrap(), case["shape"], "{name}");
        let element = match array.data.element() {
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I32 => "i32",
            Element::Bool => "bool",
        };
        assert_eq!(element, case["element"], "{name}");
        let expected: Vec<u64> =
            case["bits"].as_array().unwrap().iter().map(|number| number.as_str().unwrap().parse().unwrap()).collect();
        assert_eq!(bits(&array.data), expected, "{name}");
    }
}

#[test]
fn what_no_field_can_hold_is_refused() {
    for case in cases()["refused"].as_array().unwrap() {
        let error = read_bytes(&bytes(case)).expect_err(case["name"].as_str().unwrap());
        assert!(error.message.contains(case["says"].as_str().unwrap()), "{}: {error}", case["name"]);
        assert!(error.help.is_some(), "{error}");
    }
}

/// A reader of its own, small and slow: what a file holds if it is one that fields can be given, or else nothing.
mod reference {
    use super::BTreeMap;

    /// A Python literal, as far as headers have them.
    #[derive(Debug)]
    enum Literal {
        Text(String),
        Truth(bool),
        Number(i128),
        Tuple(Vec<Literal>),
    }

    struct Scanner<'a>(&'a [u8]);

    impl Scanner<'_> {
        fn skip(&mut self, blanks: &[u8]) {
            while self.0.first().is_some_and(|byte| blanks.contains(byte)) {
                self.0 = &self.0[1..];
            }
        }

        fn take(&mut self, byte: u8) -> Option<()> {
            self.skip(b" \t\n\r\x0c");
            self.0 = self.0.strip_prefix(&[byte])?;
            self.skip(b" \t\n\r\x0c");
            Some(())
        }

        fn literal(&mut self) -> Option<Literal> {
            match *self.0.first()? {
                quote @ (b'\'' | b'"') => {
                    let end = self.0[1..].iter().position(|&byte| byte == quote)?;
                    let text = std::str::from_utf8(&self.0[1..1 + end]).ok()?.to_owned();
                    self.0 = &self.0[end + 2..];
                    Some(Literal::Text(text))
                }
                b'(' => {
                    self.take(b'(')?;
                    let (mut parts, mut commas) = (Vec::new(), 0);
                    while self.take(b')').is_none() {
                        if parts.len() != commas {
                            return None;
                        }
                        parts.push(self.literal()?);
                        commas += usize::from(self.take(b',').is_some());
                    }
                    // Parentheses around one number without a comma are only that.
                    (parts.is_empty() || commas > 0).then_some(Literal::Tuple(parts))
                }
                _ => {
                    let end = self.0.iter().position(|byte| !b"+-_".contains(byte) && !byte.is_ascii_alphanumeric())?;
                    let word = std::str::from_utf8(&self.0[..end]).ok()?;
                    self.0 = &self.0[end..];
                    match word {
                        "True" => Some(Literal::Truth(true)),
                        "False" => Some(Literal::Truth(false)),
                        word => number(word).map(Literal::Number),
                    }
                }
            }
        }
    }

    fn number(word: &str) -> Option<i128> {
        let (sign, digits) = match word.as_bytes().first()? {
            b'-' => (-1, &word[1..]),
            b'+' => (1, &word[1..]),
            _ => (1, word),
        };
        let digits = digits.strip_suffix('L').unwrap_or(digits);
        let (radix, digits) = match digits.get(..2) {
            Some("0x" | "0X") => (16, &digits[2..]),
            Some("0o" | "0O") => (8, &digits[2..]),
            Some("0b" | "0B") => (2, &digits[2..]),
            _ => (10, digits),
        };
        if digits.contains(['+', '-']) {
            return None;
        }
        i128::from_str_radix(&digits.replace('_', ""), radix).ok().map(|number| sign * number)
    }

    /// Shape, type and bits.
    pub type Held = (Vec<usize>, &'static str, Vec<u64>);

    pub fn held(bytes: &[u8]) -> Option<Held> {
        let rest = bytes.strip_prefix(b"\x93NUMPY")?;
        let (length, rest) = match rest.get(..2)? {
            [1, 0] => (usize::from(u16::from_le_bytes(*rest.get(2..)?.first_chunk()?)), &rest[4..]),
            [2 | 3, 0] => (u32::from_le_bytes(*rest.get(2..)?.first_chunk()?) as usize, &rest[6..]),
            _ => return None,
        };
        let (header, numbers) = rest.split_at_checked(length)?;
        let mut scanner = Scanner(header);
        let mut entries = BTreeMap::new();
        scanner.take(b'{')?;
        let mut ended = false;
        while scanner.take(b'}').is_none() {
            let Literal::Text(key) = scanner.literal()? else { return None };
            scanner.take(b':')?;
            if ended || entries.insert(key, scanner.literal()?).is_some() {
                return None;
            }
            ended = scanner.take(b',').is_none();
        }
        if !scanner.0.is_empty() || entries.len() != 3 {
            return None;
        }
        let (Literal::Text(descr), Literal::Truth(fortran), Literal::Tuple(shape)) =
            (entries.get("descr")?, entries.get("fortran_order")?, entries.get("shape")?)
        else {
            return None;
        };
        let mut lengths = Vec::new();
        for length in shape {
            let Literal::Number(length) = length else { return None };
            lengths.push(usize::try_from(*length).ok()?);
        }
        let count = lengths.iter().try_fold(1usize, |count, &length| count.checked_mul(length))?;
        let (order, kind) = descr.split_at_checked(1)?;
        let size: usize = kind.get(1..)?.parse().ok()?;
        if ![1, 2, 4, 8].contains(&size) || numbers.len() != count.checked_mul(size)? || order == "|" && size > 1 {
            return None;
        }
        let mut all = Vec::new();
        let mut element = "";
        for place in 0..count {
            let mut index = place;
            if *fortran {
                // The place of this element in a file whose first axis is the fastest.
                let (mut left, mut stride) = (place, count);
                index = 0;
                let mut strides = vec![1; lengths.len()];
                for axis in 1..lengths.len() {
                    strides[axis] = strides[axis - 1] * lengths[axis - 1];
                }
                for (axis, &length) in lengths.iter().enumerate() {
                    stride /= length;
                    index += left / stride * strides[axis];
                    left %= stride;
                }
            }
            let mut raw = numbers[index * size..(index + 1) * size].to_vec();
            if order == ">" {
                raw.reverse();
            }
            let unsigned = raw.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
            let signed = (unsigned << (64 - 8 * size)) as i64 >> (64 - 8 * size);
            let (name, value) = convert(kind, unsigned, signed)?;
            element = name;
            all.push(value);
        }
        if count == 0 {
            element = convert(kind, 0, 0)?.0;
        }
        matches!(order, "<" | ">" | "|").then_some((lengths, element, all))
    }

    fn convert(kind: &str, unsigned: u64, signed: i64) -> Option<(&'static str, u64)> {
        let narrow = |fits: bool| fits.then_some(("int", unsigned & 0xffff_ffff));
        match kind {
            "b1" => Some(("bool", u64::from(unsigned != 0))),
            "f4" => Some(("f32", unsigned)),
            "f8" => Some(("f64", unsigned)),
            "f2" => {
                // What `numpy_files.json` checks bit by bit is checked here by size and sign only.
                let exponent = (unsigned >> 10 & 31) as i32;
                let fraction = (unsigned & 1023) as f64;
                let size = match exponent {
                    31 if fraction == 0.0 => f64::INFINITY,
                    31 => f64::NAN,
                    0 => fraction / 1024.0 * 2f64.powi(-14),
                    _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
                };
                Some(("f32", ((if unsigned & 0x8000 == 0 { size } else { -size }) as f32).to_bits().into()))
            }
            "i1" | "i2" | "i4" | "i8" => i32::try_from(signed).ok().map(|value| ("int", u64::from(value as u32))),
            "u1" | "u2" | "u4" | "u8" => narrow(unsigned <= i32::MAX as u64),
            _ => None,
        }
    }
}

/// A sequence of numbers that only its start decides (Marsaglia's xorshift64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// What a header may say, and what is nearly that.
const WORDS: &[&str] = &[
    "True",
    "False",
    "'<f8'",
    "'>f4'",
    "'|b1'",
    "'<i8'",
    "'|u1'",
    "'=f8'",
    "'f8'",
    "'<f2'",
    "'|O'",
    "(",
    ")",
    "()",
    "(1,)",
    ",",
    "1152921504606846976",
    "18446744073709551616",
    "-1",
    "0",
    "2",
    "24",
    "0x2",
    "1_0",
    "2L",
    "2.0",
    "1e9",
    "None",
    "{",
    "}",
    "[",
    "]",
    "'",
    "\"",
    "\\",
    ":",
    "\n",
    " ",
    "descr",
    "shape",
    "'shape'",
    "fortran_order",
    "b'",
    "#",
];

/// Damages a file in one of many ways; `other` is another file.
fn damage(file: &mut Vec<u8>, other: &[u8], draws: &mut Draws) {
    let at = draws.below(file.len());
    // Most of the interesting bytes are in the first part of the header.
    let early = draws.below(file.len().min(80));
    match draws.below(14) {
        0 => file[at] ^= 1 << draws.below(8),
        1 => file[early] ^= 1 << draws.below(8),
        2 => file.truncate(at),
        3 => file.extend_from_slice(&other[draws.below(other.len())..]),
        4 => {
            file.truncate(at);
            file.extend_from_slice(&other[draws.below(other.len())..]);
        }
        5 => file.insert(early, draws.below(256) as u8),
        6 => {
            file.remove(early);
        }
        // The numbers stay where they are.
        7 | 8 => {
            let word = WORDS[draws.below(WORDS.len())].as_bytes();
            let start = 10 + draws.below(70);
            let end = (start + word.len()).min(file.len());
            if start < end {
                file[start..end].copy_from_slice(&word[..end - start]);
            }
        }
        // Another order, kind or shape of as many bytes, which may be read.
        9 => replace(file, "False,", "True, "),
        10 => replace(
            file,
            ["'<", "'>", "'|", "'f", "i", "u"][draws.below(6)],
            ["'<", "'>", "'|", "'i", "u", "f"][draws.below(6)],
        ),
        11 => replace(
            file,
            ["2, 3, 4", "(5, 3)", "(1,)", ", 4)"][draws.below(4)],
            ["3, 4, 2", "(15, )", "(01,)", ",4, )"][draws.below(4)],
        ),
        12 => {
            // Behind the header there are only numbers.
            let number = file.len() - 1 - draws.below(file.len().min(24));
            file[number] = draws.below(256) as u8;
        }
        // A digit for a digit: other shapes, types and versions.
        _ => {
            let digits: Vec<usize> = (0..file.len().min(120)).filter(|&at| file[at].is_ascii_digit()).collect();
            if !digits.is_empty() {
                file[digits[draws.below(digits.len())]] = b'0' + draws.below(10) as u8;
            }
        }
    }
}

/// Replaces the first `old` by `new`, as far as it goes, if it is there.
fn replace(file: &mut [u8], old: &str, new: &str) {
    if let Some(at) = file.windows(old.len()).position(|window| window == old.as_bytes()) {
        let length = old.len().min(new.len());
        file[at..at + length].copy_from_slice(&new.as_bytes()[..length]);
    }
}

#[test]
fn damaged_files_are_refused_or_read_right() {
    const ROUNDS: usize = 10_000;
    let cases = cases();
    let files: Vec<Vec<u8>> =
        ["read", "refused"].iter().flat_map(|what| cases[what].as_array().unwrap()).map(bytes).collect();
    let mut draws = Draws(0x5eed);
    let (mut accepted, mut most) = (0, 0);
    for round in 0..ROUNDS {
        let mut file = files[draws.below(files.len())].clone();
        for _ in 0..1 + draws.below(3) {
            if !file.is_empty() {
                damage(&mut file, &files[draws.below(files.len())], &mut draws);
            }
        }
        let (result, held) = most_held(|| read_bytes(&file));
        most = most.max(held);
        // Conversion makes at most four bytes of one, and Fortran order copies once; the rest is the header's.
        assert!(held <= (64 << 10) + 16 * file.len(), "round {round}: {held} bytes for a file of {}", file.len());
        let expected = reference::held(&file);
        let read = result.as_ref().ok().map(|array| {
            let bits = (0..array.data.len()).map(|index| array.data.bits(index)).collect();
            (array.shape.clone(), array.data.element().name(), bits)
        });
        let expected = expected.map(|(shape, element, bits)| (shape, element, one_nan(element, bits)));
        assert_eq!(read, expected, "round {round}: {}\n{:?}", file.escape_ascii(), result.err());
        accepted += usize::from(read.is_some());
    }
    println!("{accepted} of {ROUNDS} damaged files are read, with at most {most} bytes of memory");
    assert!((ROUNDS / 20..ROUNDS / 2).contains(&accepted), "{accepted} are read: the damage is too great or too small");
}

/// The same bits for every NaN, as `Data::bits` has it.
fn one_nan(element: &str, bits: Vec<u64>) -> Vec<u64> {
    let same = |bits: u64| match element {
        "f32" if f32::from_bits(bits as u32).is_nan() => u64::from(f32::NAN.to_bits()),
        "f64" if f64::from_bits(bits).is_nan() => f64::NAN.to_bits(),
        _ => bits,
    };
    bits.into_iter().map(same).collect()
}

#[test]
fn a_header_that_claims_too_much_takes_no_memory() {
    for shape in ["(1152921504606846976,)", "(0, 1152921504606846976)", "(1073741824, 1073741824)", "(1000000000,)"] {
        let header = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': {shape}, }}");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        let (result, held) = most_held(|| read_bytes(&file));
        assert!(held < 64 << 10, "{shape}: {held} bytes");
        assert_eq!(result.is_ok(), shape.starts_with("(0,"), "{shape}: {result:?}");
    }
    // A length of the header of four billion.
    let (result, held) = most_held(|| read_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'"));
    assert!(held < 64 << 10 && result.is_err(), "{held} bytes");
}
