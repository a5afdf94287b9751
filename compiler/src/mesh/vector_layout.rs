//! How the numbers of a field lie in memory: which of them stand together.

use crate::gpu::AT_ONCE;
use crate::ir::{Home, Levels, Place, Precision, Stored};
use crate::named::named;

named! {
    /// How the parts of vectors lie, and the levels of elements.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum VectorLayout {
        /// Element after element, each with all its parts: an array of structures.
        Aos = "aos", "an element's parts together";
        /// Part after part, each of all elements: a structure of arrays.
        Soa = "soa", "each part by itself";
        /// As many parts as 16 bytes hold together, each such group of all elements.
        #[default]
        Pairs = "pairs", "as many parts together as 16 bytes hold";
        /// The same, but the levels of an element follow each other: column after column, and not level after level.
        Columns = "columns", "as pairs, but an element's levels follow each other, where there are levels";
    }
}

impl VectorLayout {
    /// How many parts of a field stand together.
    pub fn together(self, home: Home, stored: Stored, precision: Precision) -> usize {
        let width = home.width as usize;
        match self {
            VectorLayout::Aos => width,
            VectorLayout::Soa => 1,
            VectorLayout::Pairs | VectorLayout::Columns => {
                let most = (AT_ONCE / stored.bytes(precision)).max(1);
                (1..=most).rev().find(|count| width.is_multiple_of(*count)).unwrap_or(1)
            }
        }
    }

    /// Whether the levels of an element follow each other.
    pub fn is_by_column(self) -> bool {
        self == VectorLayout::Columns
    }

    /// How the parts that stand together stand in the array of a field with a home, over so many elements and levels.
    pub fn chunks(self, place: Place, together: usize, [elements, levels]: [usize; 2]) -> Chunks {
        let groups = place.home.map_or(1, |home| home.width as usize / together);
        let levels = if place.levels == Levels::None { 1 } else { place.levels.count(levels) };
        Chunks { groups, elements, levels, is_by_column: self.is_by_column() }
    }
}

/// The parts of a field that stand together, in the order in which they follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    /// How many an element has on a level.
    groups: usize,
    elements: usize,
    levels: usize,
    is_by_column: bool,
}

impl Chunks {
    /// The number of a chunk, by its level, group and element.
    pub fn number(self, [level, group, element]: [usize; 3]) -> usize {
        match self.is_by_column {
            true => (group * self.elements + element) * self.levels + level,
            false => (level * self.groups + group) * self.elements + element,
        }
    }

    /// The level, group and element of a chunk.
    pub fn of_number(self, number: usize) -> [usize; 3] {
        let Self { groups, elements, levels, .. } = self;
        match self.is_by_column {
            true => [number % levels, number / levels / elements, number / levels % elements],
            false => [number / elements / groups, number / elements % groups, number % elements],
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_chunks_come_back() {
        for is_by_column in [false, true] {
            let all = Chunks { groups: 3, elements: 5, levels: 4, is_by_column };
            for number in 0..60 {
                assert_eq!(all.number(all.of_number(number)), number);
            }
            let apart = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(|step| all.number(step));
            assert_eq!(apart, if is_by_column { [1, 20, 4] } else { [15, 5, 1] });
        }
    }
}
