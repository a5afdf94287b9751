//! How several fields lie in memory: each in an array of its own, or those of a kind together.

use crate::kernel::build::{Builder, Computing};
use crate::kernel::{Function, ValueId};
use crate::named::named;
use serde::{Deserialize, Serialize};

named! {
    /// How fields of the same type, on the same axes, lie in memory. Others always have arrays of their own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Fields {
        /// Struct of arrays: each field has its own.
        #[default]
        Soa = "soa", "struct of arrays: an array a field";
        /// Array of structs: all fields of a cell together.
        Aos = "aos", "array of structs: all fields of a cell together";
        /// Array of structs of arrays: all fields of a block of cells together, each field's values of the block in a row.
        Aosoa = "aosoa", "array of structs of arrays: all fields of 32 cells together";
    }
}

/// Every way, in the order that lists show.
pub const FIELDS: [Fields; 3] = Fields::ALL;

/// Cells of a block in an array of structs of arrays: a warp.
pub const BLOCK: usize = 32;

impl Fields {
    /// Where a field's element lies, in elements from the beginning of its group.
    pub fn index(self, slot: FieldSlot, element: usize) -> usize {
        match self {
            Fields::Soa => element,
            Fields::Aos => element * slot.fields + slot.number,
            Fields::Aosoa => (element - element % BLOCK) * slot.fields + slot.number * BLOCK + element % BLOCK,
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

    /// The index of a field's element, from the pointer to its first, by its number among those of its own.
    pub fn element(self, own: &mut Builder, slot: FieldSlot, number: ValueId) -> ValueId {
        let kind = own.kind(number);
        match (self, slot.fields) {
            (_, 1) | (Fields::Soa, _) => number,
            (Fields::Aos, count) => own.term(count.times(number)),
            (Fields::Aosoa, count) => own.call(Function::Interleaved(count as u32), vec![number], kind),
        }
    }
}

/// A field's slot in the group of those that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSlot {
    /// Which group.
    pub group: usize,
    /// Its number among the group's fields.
    pub number: usize,
    /// How many fields the group has.
    pub fields: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_elements_share_a_place() {
        for fields in FIELDS {
            let length = fields.length(3, 70);
            let mut seen = vec![false; length];
            let slots = if fields == Fields::Soa { 1 } else { 3 };
            for number in 0..slots {
                for element in 0..70 {
                    let at = fields.index(FieldSlot { group: 0, number, fields: 3 }, element);
                    assert!(!std::mem::replace(&mut seen[at], true), "{} {number} {element}", fields.name());
                }
            }
        }
    }
}
