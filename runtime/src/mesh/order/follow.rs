//! How the other sets follow the one that leads.

use super::renumber::inverse;
use crate::error::Result;
use crate::mesh::inverse::Inverse;
use crate::mesh::slots::Slot;
use crate::mesh::{HOLE, Mesh};
use rayon::prelude::*;

/// How many of the elements that one is tied to decide where it stands: after these, its old number does.
const DECISIVE: usize = 4;

/// What elements are sorted by: the least places of those that they are tied to.
type Key = [u32; DECISIVE];

/// Orders of all sets: the set `lead` has `order`. The others are placed round by round, first those that a map ties to
/// `lead`, then those tied to them, and so on: an element stands by the first elements, of the sets of the round before, that
/// it is tied to, whichever way maps lead. Elements that are tied to none stand last, and sets that are tied to none keep
/// their order.
///
/// # Errors
/// A map is too large for its inverse.
pub fn following(mesh: &Mesh, lead: usize, order: Vec<u32>) -> Result<Vec<Vec<u32>>> {
    let mut orders: Vec<Option<Vec<u32>>> = vec![None; mesh.sets.len()];
    // For each set that has been placed, the place of each old number, on a scale that is the same for all sets.
    let mut places: Vec<Option<Vec<u32>>> = vec![None; mesh.sets.len()];
    places[lead] = Some(scaled(&order));
    orders[lead] = Some(order);
    loop {
        let mut round = Vec::new();
        for set in (0..mesh.sets.len()).filter(|&set| orders[set].is_none()) {
            let keys = keys(mesh, set, &places)?;
            round.extend(keys.map(|keys| (set, sorted(&keys))));
        }
        if round.is_empty() {
            break;
        }
        for (set, order) in round {
            places[set] = Some(scaled(&order));
            orders[set] = Some(order);
        }
    }
    let kept = |set: usize| (0..mesh.sets[set].size as u32).collect();
    Ok(orders.into_iter().enumerate().map(|(set, order)| order.unwrap_or_else(|| kept(set))).collect())
}

/// What the elements of a set are sorted by, if maps tie it to sets that have places.
fn keys(mesh: &Mesh, set: usize, places: &[Option<Vec<u32>>]) -> Result<Option<Vec<Key>>> {
    let mut keys: Option<Vec<Key>> = None;
    for (number, map) in mesh.maps.iter().enumerate() {
        let fresh = || vec![[u32::MAX; DECISIVE]; mesh.sets[set].size];
        if let (true, Some(places)) = (map.from == set, &places[map.to]) {
            let keys = keys.get_or_insert_with(fresh);
            keys.par_iter_mut().with_min_len(1024).enumerate().for_each(|(element, key)| {
                let targets = map.row(element).iter().filter(|&&target| target != HOLE);
                targets.for_each(|&target| insert(key, places[target as usize]));
            });
        }
        if let (true, Some(places)) = (map.to == set, &places[map.from]) {
            let inverse = Inverse::new(mesh, &Slot::all(mesh, number), None)?;
            let keys = keys.get_or_insert_with(fresh);
            keys.par_iter_mut().with_min_len(1024).enumerate().for_each(|(target, key)| {
                inverse.of(target).iter().for_each(|&entry| insert(key, places[inverse.element(entry)]));
            });
        }
    }
    Ok(keys)
}

/// Puts a place among the least ones, unless it is there.
fn insert(key: &mut Key, place: u32) {
    let at = key.iter().position(|&other| place <= other);
    if let Some(at) = at.filter(|&at| key[at] != place) {
        key[at..].rotate_right(1);
        key[at] = place;
    }
}

fn sorted(keys: &[Key]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.par_sort_unstable_by_key(|&old| (keys[old as usize], old));
    order
}

/// The place of each old number, as a share of all.
fn scaled(order: &[u32]) -> Vec<u32> {
    let len = order.len().max(1) as u64;
    let mut places = inverse(order);
    places.par_iter_mut().for_each(|place| *place = ((u64::from(*place) << 32) / len) as u32);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Map, Set, sample};

    #[test]
    fn elements_stand_by_the_first_that_they_are_tied_to() {
        // Cells from last to first: so do edges and nodes stand.
        let mesh = sample::quads(3, 2);
        let orders = following(&mesh, 2, vec![5, 4, 3, 2, 1, 0]).unwrap();
        let edges: Vec<[u32; 2]> = orders[1]
            .iter()
            .map(|&edge| {
                let mut cells = [0, 1].map(|slot| 5 - mesh.maps[1].row(edge as usize)[slot] as u32);
                cells.sort_unstable();
                cells
            })
            .collect();
        assert_eq!(edges, [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]);
        // The nodes of the last cell come first: the corner of its own only behind those that it shares with the next cells.
        assert_eq!(orders[0][..4], [6, 10, 7, 11]);
    }

    #[test]
    fn sets_follow_sets_that_follow() {
        // a <- b <- c, and d is tied to none.
        let set = |name: &str, size| Set { name: name.to_owned(), size };
        let map = |from, to, table: &[i32]| Map { name: String::new(), from, to, arity: 1, table: table.to_vec() };
        let mesh = Mesh {
            sets: vec![set("a", 3), set("b", 4), set("c", 3), set("d", 2)],
            maps: vec![map(1, 0, &[0, 1, HOLE, 2]), map(2, 1, &[3, 2, 0])],
            ..Mesh::default()
        };
        let orders = following(&mesh, 0, vec![2, 1, 0]).unwrap();
        assert_eq!(orders, [vec![2, 1, 0], vec![3, 1, 0, 2], vec![0, 2, 1], vec![0, 1]]);
        // The other way round.
        let orders = following(&mesh, 2, vec![2, 1, 0]).unwrap();
        assert_eq!(orders, [vec![0, 2, 1], vec![0, 2, 3, 1], vec![2, 1, 0], vec![0, 1]]);
    }
}
