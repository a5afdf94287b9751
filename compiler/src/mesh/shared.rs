//! The shared memory of a block of threads: arrays one behind the other.

use super::writer::Writer;
use crate::diagnostic::Refusal;
use crate::gpu::{MOST_SHARED, SHARED};
use crate::kernel::build::Computing;
use crate::kernel::{ArrayId, Axis, Coordinate, Meaning, MeshData, PieceTable, Type, ValueId};

/// What a block keeps there.
#[derive(Default)]
pub struct Shared {
    memory: Option<ArrayId>,
    bytes: usize,
}

impl Shared {
    /// Adds an array of so many numbers of a type.
    pub fn array(&mut self, writer: &mut Writer, wish: &str, element: Type, count: usize) -> ArrayId {
        let memory = *self.memory.get_or_insert_with(|| writer.own.dynamic("shared", 0));
        let first = self.bytes;
        self.bytes += bytes(element, count);
        writer.own.grow(memory, self.bytes);
        writer.own.part(wish, memory, element, (first, count))
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The thread of a block, and the four ends of its piece's ranges, as the table of pieces has them. Pieces that are launched by colour are
/// counted from the first one of the launch.
pub fn piece(writer: &mut Writer, [table, name]: [&str; 2], by_colour: bool) -> (ValueId, [ValueId; 4]) {
    let ranges = writer.array(table, Type::WIDEST, false, Meaning::Mesh(MeshData::Piece(PieceTable::Ranges)));
    let first = by_colour.then(|| writer.count("first", MeshData::First));
    let [thread, block] = [Coordinate::Thread, Coordinate::Block].map(|own| writer.own.coordinate(own, Axis::X));
    let thread = writer.own.name("thread", thread);
    let number = first.map_or(block.into(), |first| first.plus(block));
    let range = writer.own.name(name, ranges.at(number));
    (thread, [0, 1, 2, 3].map(|lane| writer.own.lane(range, lane)))
}

/// Bytes of an array, up to where the next one may begin.
pub fn bytes(element: Type, count: usize) -> usize {
    (count.max(1) * element.bytes()).next_multiple_of(16)
}

/// How large pieces are, of `most` at most, so that what a block keeps fits into shared memory: halves of halves, until they take
/// no more than is usual; if the smallest do not either, the largest that a block may ask for.
///
/// # Errors
/// None does.
pub fn fitting(most: usize, bytes: &dyn Fn(usize) -> Option<usize>, strategy: &str) -> Result<usize, Refusal> {
    let sizes: Vec<(usize, Option<usize>)> =
        std::iter::successors(Some(most.max(1)), |&size| (size > 1).then_some(size / 2))
            .map(|size| (size, bytes(size)))
            .collect();
    let fits = |bound: usize| sizes.iter().find(|(_, own)| own.is_some_and(|own| own <= bound)).map(|(size, _)| *size);
    fits(SHARED).or_else(|| fits(MOST_SHARED)).ok_or_else(|| {
        let needed = match sizes.last() {
            Some((_, Some(bytes))) => format!("{bytes} bytes of shared memory"),
            _ => "local numbers of more than 16 bits".to_owned(),
        };
        Refusal::new(format!("what is added together by {strategy} takes {needed}, even in the smallest pieces"))
            .help(format!("a block has {MOST_SHARED} bytes at most; choose another strategy, as --strategy owner"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Element;

    #[test]
    fn pieces_are_halved_until_they_fit() {
        let size = |each: usize| fitting(128, &|size| Some(size * each), "tiled").ok();
        assert_eq!([1, 384, 385, 1000, SHARED].map(size), [128, 128, 64, 32, 1].map(Some));
        // More than is usual, where the smallest take that.
        assert_eq!(size(SHARED + 1), Some(4));
        assert_eq!(size(MOST_SHARED), Some(1));
        assert_eq!(size(MOST_SHARED + 1), None);
        // Numbers of 16 bits bound large pieces before memory does.
        assert_eq!(fitting(128, &|size| (size < 10).then_some(1), "tiled"), Ok(8));
        assert_eq!(fitting(0, &|_| Some(0), "tiled"), Ok(1));
        let refusal = fitting(128, &|_| None, "tiled").unwrap_err();
        assert_eq!(
            refusal.message,
            "what is added together by tiled takes local numbers of more than 16 bits, even in the smallest pieces"
        );
    }

    #[test]
    fn arrays_begin_at_sixteen_bytes() {
        assert_eq!([bytes(Type::one(Element::F64), 3), bytes(Type::I32, 4), bytes(Type::U8, 17)], [32, 16, 32]);
        assert_eq!(bytes(Type::one(Element::F32), 0), 16);
    }
}
