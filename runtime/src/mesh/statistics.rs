//! What a mesh comes to: how often elements are used, and how far apart those lie that are used together.

use super::{Field, HOLE, Map, Mesh};
use serde::Serialize;

/// What a map comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfMap {
    /// Its name: `edge.nodes`.
    pub name: String,
    /// The set where it leads.
    pub to: String,
    /// Its slots.
    pub slots: usize,
    /// Slots that lead nowhere.
    pub holes: usize,
    /// Rows that lead to one element more than once.
    pub repeated: usize,
    /// Elements that it does not lead to.
    pub unused: usize,
    /// How often it leads to an element, on average, and at most.
    pub uses: Spread,
    /// How far apart the numbers are of the elements where a row leads: the largest less the smallest.
    pub row: Spread,
    /// How far apart the numbers are of the elements that lead to the same one.
    pub shared: Spread,
}

/// A number on average, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// On average.
    pub mean: f64,
    /// At most.
    pub most: usize,
}

impl Spread {
    fn of(numbers: impl Iterator<Item = usize>) -> Self {
        let (count, sum, most) = numbers
            .fold((0_usize, 0_usize, 0), |(count, sum, most), number| (count + 1, sum + number, most.max(number)));
        Self { mean: if count == 0 { 0.0 } else { sum as f64 / count as f64 }, most }
    }
}

/// What a field comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfField {
    /// Its name and what it is on: `x on node`.
    pub name: String,
    /// The type of its numbers.
    pub element: &'static str,
    /// How many numbers there are each time.
    pub parts: usize,
    /// The least and the greatest finite number.
    pub range: Option<[f64; 2]>,
    /// Numbers that are not finite.
    pub not_finite: usize,
}

impl OfMap {
    /// Looks at a map.
    pub fn new(mesh: &Mesh, map: &Map) -> Self {
        let targets = mesh.sets[map.to].size;
        let (mut uses, mut ends) = (vec![0_usize; targets], vec![(usize::MAX, 0_usize); targets]);
        let mut repeated = 0;
        let mut spreads = Vec::new();
        for element in 0..mesh.sets[map.from].size {
            let row = map.row(element);
            let (mut low, mut high, mut twice) = (i32::MAX, HOLE, false);
            for (slot, &to) in row.iter().enumerate().filter(|(_, to)| **to != HOLE) {
                (low, high) = (low.min(to), high.max(to));
                twice |= row[..slot].contains(&to);
                uses[to as usize] += 1;
                let (first, last) = &mut ends[to as usize];
                (*first, *last) = ((*first).min(element), (*last).max(element));
            }
            repeated += usize::from(twice);
            if high != HOLE && map.arity > 1 {
                spreads.push((high - low) as usize);
            }
        }
        Self {
            name: mesh.full_name(map),
            to: mesh.sets[map.to].name.clone(),
            slots: map.arity,
            holes: map.holes(),
            repeated,
            unused: uses.iter().filter(|&&count| count == 0).count(),
            uses: Spread::of(uses.iter().copied()),
            row: Spread::of(spreads.into_iter()),
            shared: Spread::of(ends.iter().filter(|(first, last)| first <= last).map(|(first, last)| last - first)),
        }
    }
}

impl OfField {
    /// Looks at a field.
    pub fn new(mesh: &Mesh, field: &Field) -> Self {
        let numbers = || (0..field.data.len()).map(|at| field.data.get(at));
        let finite = || numbers().filter(|number| number.is_finite());
        let range = finite().fold(None, |range: Option<[f64; 2]>, number| {
            let [low, high] = range.unwrap_or([number; 2]);
            Some([low.min(number), high.max(number)])
        });
        Self {
            name: mesh.field_place(field),
            element: field.data.element().name(),
            parts: field.parts,
            range,
            not_finite: field.data.len() - finite().count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Data;

    #[test]
    fn a_map_by_hand() {
        let mut mesh = Mesh::default();
        let (edge, node) = (mesh.add_set("edge", 4), mesh.add_set("node", 6));
        mesh.add_map(edge, "nodes", node, 3, vec![0, 5, -1, 1, 1, 2, -1, -1, -1, 5, 4, 1]);
        mesh.add_field("w", edge, 2, Data::F64(vec![1.0, f64::NAN, -2.0, 0.0, 3.0, f64::INFINITY, 0.0, 0.0]));
        let found = OfMap::new(&mesh, &mesh.maps[0]);
        // Node 1 is used three times, by edges 1 and 3; node 5 by edges 0 and 3; node 3 by none.
        let expected = OfMap {
            name: "edge.nodes".to_owned(),
            to: "node".to_owned(),
            slots: 3,
            holes: 4,
            repeated: 1,
            unused: 1,
            uses: Spread { mean: 8.0 / 6.0, most: 3 },
            row: Spread { mean: (5.0 + 1.0 + 4.0) / 3.0, most: 5 },
            shared: Spread { mean: (0.0 + 2.0 + 0.0 + 0.0 + 3.0) / 5.0, most: 3 },
        };
        assert_eq!(found, expected);
        let field = OfField::new(&mesh, &mesh.fields[0]);
        assert_eq!((field.range, field.not_finite), (Some([-2.0, 3.0]), 2));
        // Nothing has no spread.
        let (none, to) = (mesh.add_set("none", 0), mesh.add_set("to", 0));
        mesh.add_map(none, "to", to, 2, vec![]);
        let found = OfMap::new(&mesh, &mesh.maps[1]);
        assert_eq!((found.uses, found.row, found.shared), (Spread::default(), Spread::default(), Spread::default()));
    }
}
