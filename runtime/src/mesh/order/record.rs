//! What a file tells of the ordering that its mesh has.

use super::Ordering;
use crate::array::Data;
use crate::mesh::{Field, Mesh};

/// The field of the numbers that elements had before the first ordering.
pub const NUMBER: &str = "user_number";

/// The field of the blocks that an ordering made, in the set that led.
pub const BLOCK: &str = "block_number";

impl Ordering {
    /// The mesh with the new numbers, and with fields that tell the ordering: for each set [`NUMBER`], which stays as it is
    /// where it is there from an ordering before, and [`BLOCK`] if there are blocks.
    pub fn recorded(&self, mesh: &Mesh) -> Mesh {
        let mut new = self.renumbered(mesh);
        new.fields.retain(|field| field.name != BLOCK);
        let mut add = |name: &str, set: usize, numbers: Vec<i32>| {
            new.fields.push(Field { name: name.to_owned(), set, map: None, parts: 1, data: Data::I32(numbers) });
        };
        for (set, order) in self.orders.iter().enumerate() {
            if mesh.field_on(NUMBER, set, None).is_none() {
                add(NUMBER, set, order.iter().map(|&old| old as i32).collect());
            }
        }
        if let Some(cuts) = &self.cuts {
            let blocks = (0..).zip(cuts.starts.windows(2));
            add(BLOCK, cuts.set, blocks.flat_map(|(block, ends)| (ends[0]..ends[1]).map(move |_| block)).collect());
        }
        new
    }
}

/// Where the blocks begin that the field [`BLOCK`] tells, and at last where all end; none if a set has no such field, or if
/// its elements were put in another order since.
pub fn recorded_cuts(mesh: &Mesh, set: usize) -> Option<Vec<u32>> {
    match mesh.field_on(BLOCK, set, None) {
        Some(Field { parts: 1, data: Data::I32(blocks), .. }) if blocks.is_sorted() => {
            let mut starts = vec![0];
            starts.extend(blocks.chunk_by(|a, b| a == b).scan(0, |end, block| {
                *end += block.len() as u32;
                Some(*end)
            }));
            Some(starts)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::order::{Options, find};
    use crate::mesh::sample;

    #[test]
    fn numbers_lead_back_to_the_first_mesh() {
        let mesh = sample::quads(20, 10);
        let options = Options { block: 32, ..Options::new(2) };
        let by = |name: &str, mesh: &Mesh| find(name).unwrap().ordering(mesh, &options).unwrap();
        let random = by("random", &mesh).recorded(&mesh);
        let metis = by("metis", &random);
        let twice = metis.recorded(&random);
        for set in 0..3 {
            let Some(Field { data: Data::I32(numbers), .. }) = twice.field_on(NUMBER, set, None) else {
                panic!("{set}")
            };
            let user = by("random", &mesh).then(&metis);
            assert!(numbers.iter().map(|&number| number as u32).eq(user.orders[set].iter().copied()));
        }
        assert_eq!(recorded_cuts(&twice, 2), metis.cuts.map(|cuts| cuts.starts));
        assert_eq!(recorded_cuts(&twice, 1), None);
        // What another ordering leaves of the blocks is none.
        let hilbert = by("hilbert", &twice).recorded(&twice);
        assert_eq!(hilbert.fields.len(), random.fields.len());
        assert_eq!(recorded_cuts(&hilbert, 2), None);
        assert_eq!(recorded_cuts(&by("random", &twice).renumbered(&twice), 2), None);
    }
}
