//! How several fields lie in memory: each in an array of its own, or those of a kind together.

use crate::names::Names;
use serde::{Deserialize, Serialize};

/// How fields of the same type, on the same axes, lie in memory. Others always have arrays of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fields {
    /// Struct of arrays: each field has its own.
    #[default]
    Soa,
    /// Array of structs: all fields of a cell together.
    Aos,
    /// Array of structs of arrays: all fields of a block of cells together, each field's values of the block in a row.
    Aosoa,
}

/// Every way, in the order that lists show.
pub const FIELDS: [Fields; 3] = [Fields::Soa, Fields::Aos, Fields::Aosoa];

/// Cells of a block in an array of structs of arrays: a warp.
pub const BLOCK: usize = 32;

impl Fields {
    /// `soa`, `aos` or `aosoa`.
    pub fn name(self) -> &'static str {
        match self {
            Fields::Soa => "soa",
            Fields::Aos => "aos",
            Fields::Aosoa => "aosoa",
        }
    }

    /// One line about it.
    pub fn summary(self) -> &'static str {
        match self {
            Fields::Soa => "struct of arrays: an array a field",
            Fields::Aos => "array of structs: all fields of a cell together",
            Fields::Aosoa => "array of structs of arrays: all fields of 32 cells together",
        }
    }

    /// Where a field's element lies, in elements from the beginning of its group.
    pub fn index(self, seat: Seat, element: usize) -> usize {
        match self {
            Fields::Soa => element,
            Fields::Aos => element * seat.fields + seat.number,
            Fields::Aosoa => (element - element % BLOCK) * seat.fields + seat.number * BLOCK + element % BLOCK,
        }
    }

    /// Elements of a group whose fields have this many each.
    pub fn length(self, fields: usize, elements: usize) -> usize {
        match self {
            Fields::Soa => elements,
            Fields::Aos => elements * fields,
            Fields::Aosoa => elements.next_multiple_of(BLOCK) * fields,
        }
    }

    /// The index of a field's element, from the pointer to its first: a C++ text.
    pub fn text(self, names: &Names, seat: Seat, index: &str) -> String {
        match (self, seat.fields) {
            (_, 1) | (Fields::Soa, _) => index.to_owned(),
            (Fields::Aos, n) if is_word(index) => format!("{n} * {index}"),
            (Fields::Aos, n) => format!("{n} * ({index})"),
            (Fields::Aosoa, n) => format!("interleaved<{n}, {}>({index})", names.index_type()),
        }
    }
}

/// The function that [`Fields::Aosoa`] calls: C++.
pub const HELPER: &str = "\
/* The index of element i of an array that shares blocks of 32 with N - 1 others. */
template <int N, class Index> static __device__ __forceinline__ Index interleaved(Index i)
{
    return (i & ~Index(31)) * N + (i & 31);
}";

/// A field's seat in the group of those that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Which group.
    pub group: usize,
    /// Its number among the group's fields.
    pub number: usize,
    /// How many fields the group has.
    pub fields: usize,
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_elements_share_a_place() {
        for fields in FIELDS {
            let length = fields.length(3, 70);
            let mut seen = vec![false; length];
            let seats = if fields == Fields::Soa { 1 } else { 3 };
            for number in 0..seats {
                for element in 0..70 {
                    let at = fields.index(Seat { group: 0, number, fields: 3 }, element);
                    assert!(!std::mem::replace(&mut seen[at], true), "{} {number} {element}", fields.name());
                }
            }
        }
    }
}
