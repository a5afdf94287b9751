//! Fields: where they have values, how these are stored, and what a stencil does with them.

use super::{Home, Kind};
use crate::named::named;
use crate::precision::Precision;
use crate::source::Span;
use crate::text::FreeText;
use serde::Serialize;

named! {
    /// How a field is stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Stored {
        /// As the chosen precision.
        Real = "real";
        /// Single precision.
        F32 = "f32";
        /// Double precision.
        F64 = "f64";
        /// 32-bit integers.
        Int = "int";
        /// Truth values, a byte each.
        Bool = "bool";
    }

    /// What a stencil does with a field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// Read only.
        In = "in";
        /// Written only.
        Out = "out";
        /// Read (the value before) and written.
        InOut = "inout";
        /// No array of the user's: a value of a [`Sweep`](super::Sweep) on every level.
        Carried = "carried";
        /// On a mesh: what is there before is added to.
        Inc = "inc";
        /// On a mesh: one number, made of all elements.
        Reduce = "reduce";
    }
}

/// Which axes a field has. Horizontal axes come together: an unstructured grid has no `i` of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Place {
    /// One value a column, or one for all columns.
    pub horizontal: bool,
    /// Along k.
    pub levels: Levels,
    /// On a mesh: which elements are its columns.
    #[serde(skip)]
    pub home: Option<Home>,
}

impl Place {
    /// Of a number at every cell.
    pub const CELLS: Self = Self { horizontal: true, levels: Levels::Full, home: None };
    /// Of a single number.
    pub const NOWHERE: Self = Self { horizontal: false, levels: Levels::None, home: None };
}

/// A field's extent along k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// One value for all levels.
    None,
    /// nk levels.
    Full,
    /// nk + 1 interfaces: index k is the interface above level k.
    Interfaces,
}

/// A field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// What the stencil does with it.
    pub role: Role,
    /// Which axes it has.
    pub place: Place,
    /// How it is stored.
    pub stored: Stored,
    /// Whether one computes with its numbers in single precision, whatever `real` is.
    pub is_single: bool,
    /// What random test data is drawn from: low included, high not.
    pub range: Option<(f64, f64)>,
    /// Where it is declared.
    pub span: Span,
}

impl Stored {
    /// What a read of it is.
    pub fn kind(self) -> Kind {
        match self {
            Stored::Real | Stored::F32 | Stored::F64 => Kind::Real,
            Stored::Int => Kind::Int,
            Stored::Bool => Kind::Bool,
        }
    }

    /// What the language calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Stored::Real, Stored::F32, Stored::F64, Stored::Int, Stored::Bool];
        all.into_iter().find(|own| own.name() == name)
    }

    /// How a value of a kind is stored that is no field of the user's.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Real => Stored::Real,
            Kind::Int => Stored::Int,
            Kind::Bool => Stored::Bool,
        }
    }

    /// Bytes of one value.
    pub fn bytes(self, precision: Precision) -> usize {
        match self {
            Stored::Real => precision.bytes(),
            Stored::F64 => 8,
            Stored::F32 | Stored::Int => 4,
            Stored::Bool => 1,
        }
    }
}

impl Levels {
    /// How many values there are for a grid of `nk` levels.
    pub fn count(self, nk: usize) -> usize {
        match self {
            Levels::None => 1,
            Levels::Full => nk,
            Levels::Interfaces => nk + 1,
        }
    }
}

impl Role {
    /// Whether the stencil is given it.
    pub fn is_read(self) -> bool {
        matches!(self, Role::In | Role::InOut | Role::Inc)
    }

    /// Whether the stencil writes it.
    pub fn is_written(self) -> bool {
        matches!(self, Role::Out | Role::InOut | Role::Inc | Role::Reduce)
    }
}
