//! The shared memory of a block of threads: arrays one behind the other.

use super::emit::Emitter;
use crate::diagnostic::Refusal;

/// Bytes that every GPU gives to a block, without being asked.
pub const USUAL: usize = 48 << 10;

/// Bytes that one gives to a block that asks: a Hopper's. Where there are fewer, the launch fails and says so.
pub const MOST: usize = 227 << 10;

/// What a block keeps there.
#[derive(Default)]
pub struct Shared {
    arrays: Vec<Array>,
}

struct Array {
    name: String,
    c_type: &'static str,
    /// Bytes of all of it.
    bytes: usize,
}

impl Shared {
    /// Adds an array of so many numbers of a type.
    pub fn array(&mut self, name: &str, c_type: &'static str, len: usize) {
        self.arrays.push(Array { name: name.to_owned(), c_type, bytes: bytes(c_type, len) });
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.arrays.iter().map(|own| own.bytes).sum()
    }

    /// Declares them, in lines before the line with a number.
    pub fn declare(&self, emitter: &mut Emitter, before: usize) {
        let after = emitter.lines.split_off(before);
        let memory = emitter.names.internal("shared");
        emitter.line(format!("STENCILC_DYNAMIC_SHARED(unsigned char, {memory});"));
        let mut offset = 0;
        for Array { name, c_type, bytes } in &self.arrays {
            let place = if offset == 0 { memory.clone() } else { format!("{memory} + {offset}") };
            emitter.line(format!("{c_type}* const {name} = reinterpret_cast<{c_type}*>({place});"));
            offset += bytes;
        }
        emitter.lines.extend(after);
    }
}

/// Bytes of an array, up to where the next one may begin.
pub fn bytes(c_type: &str, len: usize) -> usize {
    let each = match c_type {
        "double" => 8,
        "float" | "int" => 4,
        _ => 1,
    };
    (len.max(1) * each).next_multiple_of(16)
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
    fits(USUAL).or_else(|| fits(MOST)).ok_or_else(|| {
        let needed = match sizes.last() {
            Some((_, Some(bytes))) => format!("{bytes} bytes of shared memory"),
            _ => "local numbers of more than 16 bits".to_owned(),
        };
        Refusal::new(format!("what is added together by {strategy} takes {needed}, even in the smallest pieces"))
            .help(format!("a block has {MOST} bytes at most; choose another strategy, as --strategy owner"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_halved_until_they_fit() {
        let size = |each: usize| fitting(128, &|size| Some(size * each), "tiled").ok();
        assert_eq!([1, 384, 385, 1000, USUAL].map(size), [128, 128, 64, 32, 1].map(Some));
        // More than is usual, where the smallest take that.
        assert_eq!(size(USUAL + 1), Some(4));
        assert_eq!(size(MOST), Some(1));
        assert_eq!(size(MOST + 1), None);
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
        assert_eq!([bytes("double", 3), bytes("int", 4), bytes("unsigned char", 17)], [32, 16, 32]);
        assert_eq!(bytes("float", 0), 16);
    }
}
