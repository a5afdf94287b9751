//! Arrays in the user's order: C-ordered, i fastest, halo included.

use crate::error::{Error, Result};
use stencilc_compiler::ir::scalar::Value;

/// The numbers of an array, in one of the four types that fields are stored as.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// Truth values, one byte each: 0 or 1.
    Bool(Vec<u8>),
}

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// 32-bit integers.
    I32,
    /// Truth values.
    Bool,
}

impl Element {
    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::F32 | Element::I32 => 4,
            Element::Bool => 1,
        }
    }

    /// The name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I32 => "int",
            Element::Bool => "bool",
        }
    }
}

/// An array in the user's order: C-ordered, so the last axis is the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Lengths of the axes, slowest first: (nk, nj, ni), (nj, ni) or (nk).
    pub shape: Vec<usize>,
    /// The numbers; as many as the product of the shape.
    pub data: Data,
}

impl Array {
    /// An array of this shape, whose numbers are in C's order.
    ///
    /// ```
    /// use stencilc_runtime::Array;
    ///
    /// let plane = Array::new([2, 3], vec![0.0, 0.1, 0.2, 1.0, 1.1, 1.2])?;
    /// assert_eq!(plane.data.get(5), 1.2);
    /// let error = Array::new([2, 3], vec![1, 2, 3]).unwrap_err();
    /// assert_eq!(error.message, "an array of shape [2, 3] has 6 numbers, and there are 3");
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// There are more numbers than the shape says, or fewer; or a truth value is neither 0 nor 1.
    pub fn new(shape: impl Into<Vec<usize>>, data: impl Into<Data>) -> Result<Self> {
        let array = Self { shape: shape.into(), data: data.into() };
        array.check("an array").map(|()| array)
    }

    /// Whether it has as many numbers as its shape says, and truth values that are some; `name` is what the message calls it.
    ///
    /// # Errors
    /// It has more or fewer, or a truth value is neither 0 nor 1.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let Self { shape, data } = self;
        let expected = shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length));
        if expected == Some(data.len()) {
            return data.check_truths(name);
        }
        let expected = expected.map_or("more numbers than fit".to_owned(), |expected| format!("{expected} numbers"));
        Err(Error::call(format!("{name} of shape {shape:?} has {expected}, and there are {}", data.len())))
    }
}

macro_rules! from_numbers {
    ($($own:ty => $kind:ident),*) => {
        $(impl From<Vec<$own>> for Data {
            fn from(numbers: Vec<$own>) -> Self {
                Data::$kind(numbers)
            }
        })*
    };
}

from_numbers!(f32 => F32, f64 => F64, i32 => I32);

impl From<Vec<bool>> for Data {
    fn from(values: Vec<bool>) -> Self {
        Data::Bool(values.into_iter().map(u8::from).collect())
    }
}

impl Data {
    /// An array of one number.
    pub fn single(element: Element, value: Value) -> Self {
        match element {
            Element::F32 => Data::F32(vec![value.real() as f32]),
            Element::F64 => Data::F64(vec![value.real()]),
            Element::I32 => Data::I32(vec![value.int()]),
            Element::Bool => Data::Bool(vec![value.truth().into()]),
        }
    }

    /// The bytes of its numbers, as this machine has them.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Data::F32(all) => bytemuck::cast_slice(all),
            Data::F64(all) => bytemuck::cast_slice(all),
            Data::I32(all) => bytemuck::cast_slice(all),
            Data::Bool(all) => all,
        }
    }

    /// The numbers of some bytes.
    ///
    /// # Errors
    /// They are no whole numbers of the type, or hold other truth values than 0 and 1.
    pub(crate) fn of_bytes(element: Element, bytes: &[u8]) -> Result<Self> {
        if !bytes.len().is_multiple_of(element.bytes()) {
            return Err(Error::check(format!("{} bytes are no numbers of type {}", bytes.len(), element.name())));
        }
        let own = match element {
            Element::F32 => Data::F32(bytemuck::pod_collect_to_vec(bytes)),
            Element::F64 => Data::F64(bytemuck::pod_collect_to_vec(bytes)),
            Element::I32 => Data::I32(bytemuck::pod_collect_to_vec(bytes)),
            Element::Bool => Data::Bool(bytes.to_vec()),
        };
        own.check_truths("what another rank sends").map(|()| own)
    }

    /// Copies runs of so many numbers to another array of the same type: each from a place here to a place there.
    pub(crate) fn copy_runs(&self, to: &mut Data, count: usize, runs: impl Iterator<Item = [usize; 2]>) {
        fn each<T: Copy>(from: &[T], to: &mut [T], count: usize, runs: impl Iterator<Item = [usize; 2]>) {
            runs.for_each(|[first, place]| to[place..place + count].copy_from_slice(&from[first..first + count]));
        }
        match (self, to) {
            (Data::F32(from), Data::F32(to)) => each(from, to, count, runs),
            (Data::F64(from), Data::F64(to)) => each(from, to, count, runs),
            (Data::I32(from), Data::I32(to)) => each(from, to, count, runs),
            (Data::Bool(from), Data::Bool(to)) => each(from, to, count, runs),
            // Whoever calls has both of one type.
            (Data::F32(_) | Data::F64(_) | Data::I32(_) | Data::Bool(_), _) => {}
        }
    }

    /// Whether truth values are 0 or 1: kernels compute with no other.
    ///
    /// # Errors
    /// One is not.
    pub(crate) fn check_truths(&self, name: &str) -> Result<()> {
        let Data::Bool(values) = self else { return Ok(()) };
        match values.iter().position(|&value| value > 1) {
            None => Ok(()),
            Some(at) => Err(Error::call(format!("{name} holds {} as its truth value {at}", values[at]))
                .help("a truth value is 0 or 1: convert a mask by `value != 0`")),
        }
    }

    /// Some of the numbers, those of a range that is there.
    pub fn part(&self, range: std::ops::Range<usize>) -> Data {
        match self {
            Data::F32(all) => Data::F32(all[range].to_vec()),
            Data::F64(all) => Data::F64(all[range].to_vec()),
            Data::I32(all) => Data::I32(all[range].to_vec()),
            Data::Bool(all) => Data::Bool(all[range].to_vec()),
        }
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        match self {
            Data::F32(_) => Element::F32,
            Data::F64(_) => Element::F64,
            Data::I32(_) => Element::I32,
            Data::Bool(_) => Element::Bool,
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match self {
            Data::F32(v) => v.len(),
            Data::F64(v) => v.len(),
            Data::I32(v) => v.len(),
            Data::Bool(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at `index` as a double, which holds every type exactly.
    pub fn get(&self, index: usize) -> f64 {
        match self {
            Data::F32(v) => f64::from(v[index]),
            Data::F64(v) => v[index],
            Data::I32(v) => f64::from(v[index]),
            Data::Bool(v) => f64::from(v[index]),
        }
    }

    /// The element at `index` as a value of the language.
    pub fn value(&self, index: usize) -> Value {
        match self {
            Data::F32(_) | Data::F64(_) => Value::Real(self.get(index)),
            Data::I32(v) => Value::Int(v[index]),
            Data::Bool(v) => Value::Bool(v[index] != 0),
        }
    }

    /// The bits of the element at `index`; every NaN has the same, since any NaN equals any NaN.
    pub fn bits(&self, index: usize) -> u64 {
        match self {
            Data::F32(v) if v[index].is_nan() => u64::from(f32::NAN.to_bits()),
            Data::F64(v) if v[index].is_nan() => f64::NAN.to_bits(),
            Data::F32(v) => u64::from(v[index].to_bits()),
            Data::F64(v) => v[index].to_bits(),
            Data::I32(v) => u64::from(v[index] as u32),
            Data::Bool(v) => u64::from(v[index]),
        }
    }

    /// How many numbers of its type an element is away from one of another array of the same type: units in the last
    /// place. NaN is beyond all others.
    pub fn distance(&self, other: &Data, index: usize) -> u64 {
        let (own, other_bits) = (self.bits(index), other.bits(index));
        let is_nan = self.get(index).is_nan() || other.get(index).is_nan();
        // Real numbers are in the order of their bits, apart from the sign.
        let place = |bits: u64| match self {
            Data::F32(_) if bits >> 31 == 1 => -i128::from(bits & 0x7fff_ffff),
            Data::F64(_) if bits >> 63 == 1 => -i128::from(bits & !(1 << 63)),
            Data::I32(_) => i128::from(bits as u32 as i32),
            Data::F32(_) | Data::F64(_) | Data::Bool(_) => i128::from(bits),
        };
        match own == other_bits {
            true => 0,
            false if is_nan => u64::MAX,
            false => u64::try_from(place(own).abs_diff(place(other_bits))).unwrap_or(u64::MAX).max(1),
        }
    }

    /// `len` elements of a fresh output: NaN, 0 or false.
    pub fn fresh(element: Element, len: usize) -> Self {
        match element {
            Element::F32 => Data::F32(vec![f32::NAN; len]),
            Element::F64 => Data::F64(vec![f64::NAN; len]),
            Element::I32 => Data::I32(vec![0; len]),
            Element::Bool => Data::Bool(vec![0; len]),
        }
    }

    /// An array of zeros, for which the system need not write anything.
    pub(crate) fn zeros(element: Element, len: usize) -> Self {
        match element {
            Element::F32 => Data::F32(vec![0.0; len]),
            Element::F64 => Data::F64(vec![0.0; len]),
            Element::I32 => Data::I32(vec![0; len]),
            Element::Bool => Data::Bool(vec![0; len]),
        }
    }

    /// The elements with these numbers, in this order.
    pub fn pick(&self, numbers: impl Iterator<Item = usize>) -> Self {
        match self {
            Data::F32(v) => Data::F32(numbers.map(|number| v[number]).collect()),
            Data::F64(v) => Data::F64(numbers.map(|number| v[number]).collect()),
            Data::I32(v) => Data::I32(numbers.map(|number| v[number]).collect()),
            Data::Bool(v) => Data::Bool(numbers.map(|number| v[number]).collect()),
        }
    }

    /// Fresh elements, as of an output, `len` of them, and in them those of `self` at the places with these numbers.
    pub fn spread(&self, len: usize, numbers: impl Iterator<Item = usize>) -> Self {
        fn put<T: Copy>(to: &mut [T], from: &[T], numbers: impl Iterator<Item = usize>) {
            numbers.zip(from).for_each(|(number, &element)| to[number] = element);
        }
        let mut all = Data::fresh(self.element(), len);
        match (&mut all, self) {
            (Data::F32(to), Data::F32(from)) => put(to, from, numbers),
            (Data::F64(to), Data::F64(from)) => put(to, from, numbers),
            (Data::I32(to), Data::I32(from)) => put(to, from, numbers),
            (Data::Bool(to), Data::Bool(from)) => put(to, from, numbers),
            (Data::F32(_) | Data::F64(_) | Data::I32(_) | Data::Bool(_), _) => {}
        }
        all
    }

    /// Replaces the elements from `start` on by those of another array of the same type.
    pub fn replace(&mut self, start: usize, by: &Data) {
        let range = start..start + by.len();
        match (self, by) {
            (Data::F32(to), Data::F32(from)) => to[range].copy_from_slice(from),
            (Data::F64(to), Data::F64(from)) => to[range].copy_from_slice(from),
            (Data::I32(to), Data::I32(from)) => to[range].copy_from_slice(from),
            (Data::Bool(to), Data::Bool(from)) => to[range].copy_from_slice(from),
            (Data::F32(_) | Data::F64(_) | Data::I32(_) | Data::Bool(_), _) => {}
        }
    }

    /// The element at `index` as it is written in the language, so that reading it gives it back.
    pub fn text(&self, index: usize) -> String {
        match self {
            Data::F32(v) => format!("{:?}", v[index]),
            Data::F64(v) => format!("{:?}", v[index]),
            Data::I32(v) => v[index].to_string(),
            Data::Bool(v) => (v[index] != 0).to_string(),
        }
    }
}
