//! Numbers that several places of a row share, once.
//!
//! The edges of a quadrilateral have eight ends, which are four nodes. A target has a row of these, its *entries*, and for each place and
//! path a few bits, which say at which entry the path ends.

use super::rows::row;
use super::writer::Writer;
use crate::ir::{Path, Relation};
use crate::kernel::build::{Computing, Term};
use crate::kernel::{ArrayId, Binary, Element, Meaning, MeshData, MeshTable, Type, ValueId};

/// More than these are not chosen from.
const MOST: usize = 8;

/// The shape of entries and of the words that name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dictionary {
    /// How many a target has.
    pub entries: usize,
    /// How many paths end at each place.
    pub paths: usize,
    /// How many places there are.
    pub places: usize,
}

impl Dictionary {
    /// Those of a row, if they are less to read than what they stand for.
    pub fn of_row(entries: usize, paths: usize, places: usize) -> Option<Self> {
        let own = Self { entries, paths, places };
        let fits = (1..=MOST).contains(&entries) && own.place_bits() <= 32;
        (fits && entries + own.words() < paths * places).then_some(own)
    }

    /// The bits that name an entry.
    pub fn bits(self) -> usize {
        self.entries.next_power_of_two().trailing_zeros() as usize
    }

    fn place_bits(self) -> usize {
        self.paths * self.bits()
    }

    /// How many places a word has.
    pub fn places_of_word(self) -> usize {
        (32 / self.place_bits().max(1)).min(self.places).max(1)
    }

    /// How many words a target has.
    pub fn words(self) -> usize {
        self.places.div_ceil(self.places_of_word())
    }

    /// Whether a target's bits are one half word.
    pub fn is_short(self) -> bool {
        self.places * self.place_bits() <= 16
    }

    /// Which word and which of its bits name the entry where a path ends.
    pub fn at(self, place: usize, path: usize) -> (usize, usize) {
        (place / self.places_of_word(), place % self.places_of_word() * self.place_bits() + path * self.bits())
    }
}

/// The dictionary of a thread's target, read.
pub struct Read {
    shape: Dictionary,
    paths: Vec<Path>,
    entries: ArrayId,
    /// The words that name them.
    codes: ArrayId,
}

impl Read {
    /// Reads the entries of paths, all of which end in one set.
    pub fn new(writer: &mut Writer, shape: Dictionary, group: usize, paths: Vec<Path>, item: ValueId) -> Self {
        let (mesh, from) = (&writer.task.stencil.mesh, writer.task.stencil.set());
        let set = &mesh.sets[mesh.end(from, &paths[0])].name;
        let entries =
            writer.table(&format!("{set}_dictionary"), MeshData::Table(group, MeshTable::Dictionary(paths.clone())));
        let (wish, table) = (format!("{set}_codes"), MeshData::Table(group, MeshTable::Codes(paths.clone())));
        let codes = if shape.is_short() {
            let codes = writer.array(&wish, Type::one(Element::U16), false, Meaning::Mesh(table));
            let code = writer.own.term(codes.at(item).to(Type::I32));
            writer.own.list(&format!("{wish}_here"), Type::I32, vec![code])
        } else {
            let codes = writer.table(&wish, table);
            row(writer, codes, shape.words(), item)
        };
        let entries = row(writer, entries, shape.entries, item);
        Self { shape, paths, entries, codes }
    }

    /// Says where the paths of a place lead, which is the counter of an unrolled loop.
    pub fn step(&self, writer: &mut Writer, place: ValueId) {
        let shape = self.shape;
        let (word, within) = match (shape.words(), shape.places_of_word()) {
            (1, _) => (0.into(), place),
            (_, of_word) => (place.over(of_word), writer.own.term(place.rem(of_word))),
        };
        let word = writer.own.term(self.codes.at(word).to(Type::U32));
        for (number, path) in self.paths.iter().enumerate() {
            let before = shape.place_bits().times(within).plus(number * shape.bits()).to(Type::U32);
            let entry = word.by(Binary::ShiftRight, before).by(Binary::BitAnd, (1 << shape.bits()) - 1);
            let entry = writer.own.name("chosen", entry);
            let end = chosen(self.entries, entry, 0..shape.entries);
            let end = writer.own.name(&writer.end_name(path), end);
            writer.set_index(path.hops(), end);
        }
    }
}

/// One of some numbers of an array: bit after bit, from the highest.
fn chosen(array: ArrayId, which: ValueId, from: std::ops::Range<usize>) -> Term {
    if from.len() == 1 {
        return array.at(from.start);
    }
    let half = from.len().next_power_of_two() / 2;
    let low = chosen(array, which, from.start..from.start + half);
    let high = chosen(array, which, from.start + half..from.end);
    which.by(Binary::BitAnd, half).is(Relation::Ne, 0).picks(high, low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Operation;
    use crate::kernel::build::Builder;

    #[test]
    fn a_dictionary_is_taken_where_it_is_less() {
        let shape = |entries, paths, places| {
            Dictionary::of_row(entries, paths, places).map(|own| (own.bits(), own.words(), own.is_short()))
        };
        assert_eq!(shape(4, 2, 4), Some((2, 1, true)));
        assert_eq!(shape(3, 2, 3), Some((2, 1, true)));
        assert_eq!(shape(8, 4, 6), Some((3, 3, false)));
        assert_eq!(shape(8, 2, 4), None);
        assert_eq!(shape(9, 4, 8), None);
        assert_eq!(shape(0, 2, 4), None);
    }

    /// Whichever bits are 0, the entry that is chosen is the one of that number.
    #[test]
    fn each_number_chooses_its_entry() {
        for count in 1..=MOST {
            let mut own = Builder::new("own", 32, "");
            let entries = own.input("e", Type::I32);
            let which = own.number("w", Type::I32);
            let chosen = own.term(chosen(entries, which, 0..count));
            for number in 0..count {
                let mut at = chosen;
                while let Operation::Choose(condition, high, low) = own.kernel().values[at].operation {
                    let Operation::Compare(Relation::Ne, bit, _) = own.kernel().values[condition].operation else {
                        panic!()
                    };
                    let Operation::Binary(Binary::BitAnd, _, bit) = own.kernel().values[bit].operation else {
                        panic!()
                    };
                    let Operation::Int(bit) = own.kernel().values[bit].operation else { panic!() };
                    at = if number as i64 & bit != 0 { high } else { low };
                }
                let Operation::Load(_, index) = own.kernel().values[at].operation else { panic!() };
                assert_eq!(own.kernel().values[index].operation, Operation::Int(number as i64), "of {count}");
            }
        }
    }

    #[test]
    fn every_place_has_bits_of_its_own() {
        for (entries, paths, places) in [(4, 2, 4), (8, 4, 6), (5, 3, 7), (2, 1, 8)] {
            let own = Dictionary { entries, paths, places };
            let mut taken = std::collections::BTreeSet::new();
            for place in 0..places {
                for path in 0..paths {
                    let (word, first) = own.at(place, path);
                    assert!(word < own.words() && first + own.bits() <= 32, "{own:?}");
                    for bit in first..first + own.bits() {
                        assert!(taken.insert((word, bit)), "{own:?}");
                    }
                }
            }
        }
    }
}
