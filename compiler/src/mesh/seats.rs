//! Numbers that several places of a row share, once.
//!
//! The edges of a quadrilateral have eight ends, which are four nodes. A target has a row of these, its *seats*, and for each place and
//! path a few bits, which say at which seat the path ends.

use super::emit::Emitter;
use super::rows::row;
use super::{Table, What};
use crate::ir::Path;

/// More than these are not chosen from.
const MOST: usize = 8;

/// The shape of seats and of the words that name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seats {
    /// How many a target has.
    pub seats: usize,
    /// How many paths end at each place.
    pub paths: usize,
    /// How many places there are.
    pub places: usize,
}

impl Seats {
    /// Those of a row, if they are less to read than what they stand for.
    pub fn of_row(seats: usize, paths: usize, places: usize) -> Option<Self> {
        let own = Self { seats, paths, places };
        let fits = (1..=MOST).contains(&seats) && own.place_bits() <= 32;
        (fits && seats + own.words() < paths * places).then_some(own)
    }

    /// The bits that name a seat.
    pub fn bits(self) -> usize {
        self.seats.next_power_of_two().trailing_zeros() as usize
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

    /// Which word and which of its bits name the seat where a path ends.
    pub fn at(self, place: usize, path: usize) -> (usize, usize) {
        (place / self.places_of_word(), place % self.places_of_word() * self.place_bits() + path * self.bits())
    }
}

/// Seats of a thread's target, read.
pub struct Read {
    shape: Seats,
    paths: Vec<Path>,
    /// The array of seats, and that of words.
    names: [String; 2],
}

impl Read {
    /// Reads the seats of paths.
    pub fn new(emitter: &mut Emitter, shape: Seats, group: usize, paths: Vec<Path>, item: &str, set: &str) -> Self {
        let seats =
            emitter.parameter(&format!("{set}_seats"), "const int*", What::Table(group, Table::Seats(paths.clone())));
        let c_type = if shape.is_short() { "const unsigned short*" } else { "const int*" };
        let codes = emitter.parameter(&format!("{set}_codes"), c_type, What::Table(group, Table::Codes(paths.clone())));
        let codes = if shape.is_short() {
            let name = emitter.names.fresh(&format!("{codes}_here"));
            emitter.line(format!("const unsigned {name}[1] = {{{codes}[{item}]}};"));
            name
        } else {
            row(emitter, &codes, shape.words(), item)
        };
        let seats = row(emitter, &seats, shape.seats, item);
        Self { shape, paths, names: [seats, codes] }
    }

    /// Says where the paths of a place lead, which is a variable of an unrolled loop.
    pub fn step(&self, emitter: &mut Emitter, place: &str) {
        let (shape, [seats, codes]) = (self.shape, &self.names);
        let of_word = shape.places_of_word();
        let word = if shape.words() == 1 { format!("{codes}[0]") } else { format!("{codes}[{place} / {of_word}]") };
        for (number, path) in self.paths.iter().enumerate() {
            let within = if shape.words() == 1 { place.to_owned() } else { format!("({place} % {of_word})") };
            let shift = match number * shape.bits() {
                0 => format!("{} * {within}", shape.place_bits()),
                by => format!("({} * {within} + {by})", shape.place_bits()),
            };
            let wish = emitter.names.fresh("seat");
            let mask = (1u32 << shape.bits()) - 1;
            emitter.line(format!("const unsigned {wish} = unsigned({word}) >> {shift} & {mask};"));
            let text = chosen(seats, &wish, 0..shape.seats);
            let name = emitter.end_of(path);
            emitter.line(format!("const int {name} = {text};"));
            emitter.set_index(path.hops(), &name);
        }
    }
}

/// The text of one of some numbers of an array: bit after bit, from the highest.
fn chosen(array: &str, which: &str, from: std::ops::Range<usize>) -> String {
    if from.len() == 1 {
        return format!("{array}[{}]", from.start);
    }
    let half = from.len().next_power_of_two() / 2;
    let side = |from: std::ops::Range<usize>| match from.len() {
        1 => chosen(array, which, from),
        _ => format!("({})", chosen(array, which, from)),
    };
    let (low, high) = (side(from.start..from.start + half), side(from.start + half..from.end));
    format!("{which} & {half} ? {high} : {low}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_taken_where_they_are_less() {
        let shape = |seats, paths, places| {
            Seats::of_row(seats, paths, places).map(|own| (own.bits(), own.words(), own.is_short()))
        };
        assert_eq!(shape(4, 2, 4), Some((2, 1, true)));
        assert_eq!(shape(3, 2, 3), Some((2, 1, true)));
        assert_eq!(shape(8, 4, 6), Some((3, 3, false)));
        assert_eq!(shape(8, 2, 4), None);
        assert_eq!(shape(9, 4, 8), None);
        assert_eq!(shape(0, 2, 4), None);
    }

    #[test]
    fn every_place_has_bits_of_its_own() {
        for (seats, paths, places) in [(4, 2, 4), (8, 4, 6), (5, 3, 7), (2, 1, 8)] {
            let own = Seats { seats, paths, places };
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

    #[test]
    fn a_seat_is_chosen_bit_by_bit() {
        assert_eq!(chosen("s", "n", 0..4), "n & 2 ? (n & 1 ? s[3] : s[2]) : (n & 1 ? s[1] : s[0])");
        assert_eq!(chosen("s", "n", 0..3), "n & 2 ? s[2] : (n & 1 ? s[1] : s[0])");
        assert_eq!(chosen("s", "n", 0..1), "s[0]");
    }
}
