//! How the numbers of a field lie in memory: which of them stand together.

use crate::ir::{Home, Levels, Place, Precision, Stored};
use crate::named::named;

named! {
    /// How vectors lie.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum VectorLayout {
        /// Element after element, each with all its parts: an array of structures.
        Aos = "aos", "an element's parts together";
        /// Part after part, each of all elements: a structure of arrays.
        Soa = "soa", "each part by itself";
        /// As many parts as 16 bytes hold together, each such group of all elements.
        #[default]
        Pairs = "pairs", "as many parts together as 16 bytes hold";
    }
}

impl VectorLayout {
    /// How many parts of a field stand together.
    pub fn together(self, home: Home, stored: Stored, precision: Precision) -> usize {
        let width = home.width as usize;
        match self {
            VectorLayout::Aos => width,
            VectorLayout::Soa => 1,
            VectorLayout::Pairs => {
                let most = (16 / stored.bytes(precision)).max(1);
                (1..=most).rev().find(|count| width.is_multiple_of(*count)).unwrap_or(1)
            }
        }
    }

    /// Where a number of an element is, in elements of the array: level after level, group after group, element after
    /// element, part after part.
    pub fn index(self, place: Place, stored: Stored, precision: Precision, elements: usize, at: [usize; 3]) -> usize {
        let [level, element, part] = at;
        let Some(home) = place.home else { return level };
        let together = self.together(home, stored, precision);
        let level = if place.levels == Levels::None { 0 } else { level };
        let groups = home.width as usize / together;
        ((level * groups + part / together) * elements + element) * together + part % together
    }
}

/// How many of the parts that stand together one instruction moves: those that begin at a multiple of their size.
pub fn at_once(together: usize, stored: Stored, precision: Precision) -> usize {
    let most = match stored.bytes(precision) {
        8 => 2,
        4 => 4,
        _ => 1,
    };
    (1..=most).rev().find(|count: &usize| count.is_power_of_two() && together.is_multiple_of(*count)).unwrap_or(1)
}
