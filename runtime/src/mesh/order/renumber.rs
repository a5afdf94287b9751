//! From the user's numbers to new ones and back.

use super::Ordering;
use crate::array::Data;
use crate::error::{Error, Result};
use crate::mesh::{Field, HOLE, Map, Mesh};
use rayon::prelude::*;

/// The new number of each old one.
pub fn inverse(order: &[u32]) -> Vec<u32> {
    let mut numbers = vec![0; order.len()];
    (0..).zip(order).for_each(|(new, &old)| numbers[old as usize] = new);
    numbers
}

impl Ordering {
    /// The mesh with the new numbers: sets, maps and fields.
    pub fn renumbered(&self, mesh: &Mesh) -> Mesh {
        let numbers = self.inverses();
        let maps = mesh.maps.iter().map(|map| {
            let new = |&target: &i32| if target == HOLE { HOLE } else { numbers[map.to][target as usize] as i32 };
            let table = rows(&map.table, &self.orders[map.from], map.arity);
            Map { table: table.par_iter().map(new).collect(), name: map.name.clone(), ..*map }
        });
        let fields = mesh.fields.iter().map(|field| {
            let each = field.map.map_or(1, |map| mesh.maps[map].arity) * field.parts;
            let data = picked(&field.data, &self.orders[field.set], each);
            Field { name: field.name.clone(), data, ..*field }
        });
        Mesh { origin: mesh.origin.clone(), sets: mesh.sets.clone(), maps: maps.collect(), fields: fields.collect() }
    }

    /// `data` of the elements of a set in the user's numbers, for the renumbered mesh: `each` numbers an element.
    ///
    /// # Errors
    /// There are more or fewer numbers.
    pub fn to_new(&self, set: usize, data: &Data, each: usize) -> Result<Data> {
        check(self.orders[set].len(), data, each)?;
        Ok(picked(data, &self.orders[set], each))
    }

    /// `data` of the elements of a set of the renumbered mesh, in the user's numbers.
    ///
    /// # Errors
    /// There are more or fewer than `each` numbers an element.
    pub fn to_user(&self, set: usize, data: &Data, each: usize) -> Result<Data> {
        check(self.orders[set].len(), data, each)?;
        Ok(picked(data, &inverse(&self.orders[set]), each))
    }

    /// This ordering and then another, of the renumbered mesh, as one. Its blocks are those of the other.
    pub fn then(&self, next: &Ordering) -> Ordering {
        let pairs = self.orders.iter().zip(&next.orders);
        Ordering { orders: pairs.map(|(first, next)| rows(first, next, 1)).collect(), cuts: next.cuts.clone() }
    }
}

fn check(size: usize, data: &Data, each: usize) -> Result<()> {
    match data.len() == size * each {
        true => Ok(()),
        false => Err(Error::input(format!("there are {} numbers for {size} elements of {each} each", data.len()))),
    }
}

fn picked(data: &Data, order: &[u32], each: usize) -> Data {
    match data {
        Data::F32(v) => Data::F32(rows(v, order, each)),
        Data::F64(v) => Data::F64(rows(v, order, each)),
        Data::I32(v) => Data::I32(rows(v, order, each)),
        Data::Bool(v) => Data::Bool(rows(v, order, each)),
    }
}

/// The rows with these numbers, in this order.
fn rows<T: Copy + Default + Send + Sync>(from: &[T], order: &[u32], width: usize) -> Vec<T> {
    let mut to = vec![T::default(); order.len() * width];
    if width > 0 {
        to.par_chunks_mut(width).with_min_len(1024).zip(order).for_each(|(row, &old)| {
            row.copy_from_slice(&from[old as usize * width..][..width]);
        });
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::order::{Method, Options, random::Random};
    use crate::mesh::sample;

    fn shuffling(mesh: &Mesh, seed: u64) -> Ordering {
        Random.ordering(mesh, &Options { seed, ..Options::new(0) }).unwrap()
    }

    #[test]
    fn renumbering_keeps_what_the_mesh_says() {
        for seed in 0..200 {
            let mesh = sample::random(seed);
            let ordering = shuffling(&mesh, seed);
            let new = ordering.renumbered(&mesh);
            assert_eq!((&new.sets, new.maps.len(), new.fields.len()), (&mesh.sets, mesh.maps.len(), mesh.fields.len()));
            for (map, old) in new.maps.iter().zip(&mesh.maps) {
                for (element, &was) in ordering.orders[map.from].iter().enumerate() {
                    let user = |&target: &i32| {
                        if target == HOLE { HOLE } else { ordering.orders[map.to][target as usize] as i32 }
                    };
                    assert!(map.row(element).iter().map(user).eq(old.row(was as usize).iter().copied()), "seed {seed}");
                }
            }
            for (field, old) in new.fields.iter().zip(&mesh.fields) {
                let each = field.map.map_or(1, |map| mesh.maps[map].arity) * field.parts;
                for (element, &was) in ordering.orders[field.set].iter().enumerate() {
                    for part in 0..each {
                        assert_eq!(
                            field.data.get(element * each + part),
                            old.data.get(was as usize * each + part),
                            "seed {seed}"
                        );
                    }
                }
                assert_eq!(ordering.to_user(field.set, &field.data, each).unwrap(), old.data);
                assert_eq!(ordering.to_new(field.set, &old.data, each).unwrap(), field.data);
                let error = ordering.to_user(field.set, &Data::I32(vec![0; 3]), 7).unwrap_err();
                assert_eq!(
                    error.message,
                    format!("there are 3 numbers for {} elements of 7 each", mesh.sets[field.set].size)
                );
            }
        }
    }

    #[test]
    fn orderings_follow_one_another() {
        for seed in 0..50 {
            let mesh = sample::random(seed);
            let (first, next) = (shuffling(&mesh, seed), shuffling(&mesh, seed + 1000));
            assert_eq!(first.then(&next).renumbered(&mesh), next.renumbered(&first.renumbered(&mesh)));
            let back = Ordering { orders: first.inverses(), cuts: None };
            assert_eq!(first.then(&back), Ordering::kept(&mesh));
        }
    }
}
