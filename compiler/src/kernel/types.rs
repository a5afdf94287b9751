//! The types of values.

use crate::ir::{Kind, Precision, Stored};

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A real number of single precision.
    F32,
    /// A real number of double precision.
    F64,
    /// A whole number of 32 bits.
    I32,
    /// A whole number of 64 bits.
    I64,
    /// A whole number of 32 bits without a sign: what is shifted, masked and divided as bits are.
    U32,
    /// A barrier in shared memory, which routines alone read and write.
    Barrier,
    /// A whole number of 16 bits without a sign, of memory alone.
    U16,
    /// A byte of memory. Nothing is computed with it but whether two are the same.
    U8,
    /// A truth value. It has no place in global memory.
    Bool,
}

/// The type of a value: one number, or several that memory holds side by side and an access moves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// What each number is.
    pub element: Element,
    /// How many there are: a power of two.
    pub lanes: u8,
}

impl Type {
    /// One number.
    pub const fn one(element: Element) -> Self {
        Self { element, lanes: 1 }
    }

    /// A truth value.
    pub const BOOL: Type = Type::one(Element::Bool);
    /// A whole number of 32 bits.
    pub const I32: Type = Type::one(Element::I32);
    /// A whole number of 64 bits.
    pub const I64: Type = Type::one(Element::I64);
    /// A barrier in shared memory.
    pub const BARRIER: Type = Type::one(Element::Barrier);
    /// A whole number of 32 bits without a sign.
    pub const U32: Type = Type::one(Element::U32);
    /// Four whole numbers of 32 bits: the widest access that there is, 16 bytes.
    pub const WIDEST: Type = Type { element: Element::I32, lanes: 4 };

    /// Whether it is one whole number that is computed with.
    pub fn is_whole(self) -> bool {
        self == Type::I32 || self == Type::I64
    }

    /// A byte of memory.
    pub const U8: Type = Type::one(Element::U8);

    /// What a field's values are in memory.
    pub fn stored(stored: Stored, precision: Precision) -> Self {
        match stored {
            Stored::F32 => Type::one(Element::F32),
            Stored::F64 => Type::one(Element::F64),
            Stored::Real => Type::real(precision),
            Stored::Int => Type::I32,
            Stored::Bool => Type::U8,
        }
    }

    /// What a value of a kind is computed in.
    pub fn computing(kind: Kind, precision: Precision) -> Self {
        match kind {
            Kind::Real => Type::real(precision),
            Kind::Int => Type::I32,
            Kind::Bool => Type::BOOL,
        }
    }

    /// A real number of a precision.
    pub fn real(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Type::one(Element::F32),
            Precision::F64 => Type::one(Element::F64),
        }
    }

    /// Whether it is one real number.
    pub fn is_real(self) -> bool {
        self == Type::one(Element::F32) || self == Type::one(Element::F64)
    }

    /// The precision of a real number.
    pub fn precision(self) -> Precision {
        if self.element == Element::F32 { Precision::F32 } else { Precision::F64 }
    }

    /// Registers of a thread that a value takes.
    pub fn registers(self) -> usize {
        self.bytes().div_ceil(4)
    }

    /// The bytes of a value in memory.
    pub fn bytes(self) -> usize {
        let one = match self.element {
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F64 | Element::I64 | Element::Barrier => 8,
            Element::U16 => 2,
            Element::U8 | Element::Bool => 1,
        };
        one * usize::from(self.lanes)
    }
}
