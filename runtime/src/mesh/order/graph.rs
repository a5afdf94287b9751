//! The graph of a set: which of its elements are used together.

use crate::error::Result;
use crate::mesh::inverse::Inverse;
use crate::mesh::slots::Slot;
use crate::mesh::{HOLE, Mesh};
use rayon::prelude::*;
use serde::Serialize;

/// Elements that are worked on at a time by one thread.
const CHUNK: usize = 4096;

/// Neighbours of the elements of a set: mutual, each once, never the element itself, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where the neighbours of each element begin, and at last where all end.
    pub offsets: Vec<usize>,
    /// Their numbers.
    pub neighbours: Vec<u32>,
}

/// How far apart the numbers of neighbours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bandwidth {
    /// At most.
    pub max: usize,
    /// On average.
    pub mean: f64,
}

/// A reason for elements to be neighbours.
enum Tie {
    /// A map of the set to itself: from an element to where it leads. With its inverse.
    Own(usize, Inverse),
    /// A map of any set to this one: between the targets of a row. With its inverse.
    Into(usize, Inverse),
    /// A map of this set: between elements that lead to the same target. With its inverse.
    Shared(usize, Inverse),
}

impl Graph {
    /// The graph of a set. Elements are neighbours if one leads to the other, or an element of another set leads to both.
    /// Where that ties less than half of the elements, also if both lead to the same element of another set, by the map
    /// whose targets are shared least, then by the next.
    ///
    /// # Errors
    /// A map is too large for its inverse.
    pub fn of(mesh: &Mesh, set: usize) -> Result<Self> {
        let inverse = |map: usize| Inverse::new(mesh, &Slot::all(mesh, map), None);
        let maps = || (0..mesh.maps.len()).filter(|&map| mesh.maps[map].arity > 0);
        let (mut ties, mut sharing) = (Vec::new(), Vec::new());
        for map in maps().filter(|&map| mesh.maps[map].to == set) {
            let own = mesh.maps[map].from == set;
            if own || mesh.maps[map].arity > 1 {
                let inverse = inverse(map)?;
                ties.push(if own { Tie::Own(map, inverse) } else { Tie::Into(map, inverse) });
            }
        }
        for map in maps().filter(|&map| mesh.maps[map].from == set && mesh.maps[map].to != set) {
            let inverse = inverse(map)?;
            sharing.push((inverse.degrees().mean, map, inverse));
        }
        // The last is taken first; of two that are shared as much, the earlier map.
        sharing.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let mut graph = Self::tied(mesh, set, &ties);
        while graph.tied_elements() * 2 < graph.len() {
            let Some((_, map, inverse)) = sharing.pop() else { break };
            ties.push(Tie::Shared(map, inverse));
            graph = Self::tied(mesh, set, &ties);
        }
        Ok(graph)
    }

    fn tied(mesh: &Mesh, set: usize, ties: &[Tie]) -> Self {
        Self::build(mesh.sets[set].size, |element, found| {
            for tie in ties {
                match tie {
                    Tie::Own(map, inverse) => {
                        let targets = mesh.maps[*map].row(element).iter().filter(|&&target| target != HOLE);
                        found.extend(targets.map(|&target| target as u32));
                        found.extend(inverse.of(element).iter().map(|&entry| inverse.element(entry) as u32));
                    }
                    Tie::Into(map, inverse) => {
                        for &entry in inverse.of(element) {
                            let row = mesh.maps[*map].row(inverse.element(entry));
                            found.extend(row.iter().filter(|&&other| other != HOLE).map(|&other| other as u32));
                        }
                    }
                    Tie::Shared(map, inverse) => {
                        for &target in mesh.maps[*map].row(element).iter().filter(|&&target| target != HOLE) {
                            let sharers = inverse.of(target as usize).iter();
                            found.extend(sharers.map(|&entry| inverse.element(entry) as u32));
                        }
                    }
                }
            }
        })
    }

    /// The graph of `size` elements; `find` puts the neighbours of one into the list, in any order, any number of times.
    pub fn build(size: usize, find: impl Fn(usize, &mut Vec<u32>) + Sync) -> Self {
        let chunk = |start: usize| {
            let (mut ends, mut all, mut found) = (Vec::with_capacity(CHUNK), Vec::new(), Vec::new());
            for element in start..size.min(start + CHUNK) {
                found.clear();
                find(element, &mut found);
                found.sort_unstable();
                found.dedup();
                all.extend(found.iter().filter(|&&other| other as usize != element));
                ends.push(all.len());
            }
            (ends, all)
        };
        let chunks: Vec<(Vec<usize>, Vec<u32>)> =
            (0..size.div_ceil(CHUNK)).into_par_iter().map(|n| chunk(n * CHUNK)).collect();
        let mut graph = Self { offsets: Vec::with_capacity(size + 1), neighbours: Vec::new() };
        graph.offsets.push(0);
        graph.neighbours.reserve_exact(chunks.iter().map(|(_, all)| all.len()).sum());
        for (ends, all) in chunks {
            let before = graph.neighbours.len();
            graph.offsets.extend(ends.iter().map(|end| before + end));
            graph.neighbours.extend(all);
        }
        graph
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The neighbours of an element.
    pub fn of_element(&self, element: u32) -> &[u32] {
        &self.neighbours[self.offsets[element as usize]..self.offsets[element as usize + 1]]
    }

    /// How many neighbours an element has.
    pub fn degree(&self, element: u32) -> usize {
        self.offsets[element as usize + 1] - self.offsets[element as usize]
    }

    /// How many elements have neighbours.
    fn tied_elements(&self) -> usize {
        self.offsets.windows(2).filter(|ends| ends[0] < ends[1]).count()
    }

    /// How far apart the numbers of neighbours are; 0 where there are none.
    pub fn bandwidth(&self) -> Bandwidth {
        let far = |element: u32| self.of_element(element).iter().map(move |&other| other.abs_diff(element) as usize);
        let elements = || (0..self.len() as u32).into_par_iter();
        let sum: usize = elements().map(|element| far(element).sum::<usize>()).sum();
        Bandwidth {
            max: elements().map(|element| far(element).max().unwrap_or(0)).max().unwrap_or(0),
            mean: sum as f64 / self.neighbours.len().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::sample;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_are_mutual_and_as_said() {
        for seed in 0..200 {
            let mesh = sample::random(seed);
            for set in 0..mesh.sets.len() {
                let graph = Graph::of(&mesh, set).unwrap();
                let mut expected = vec![BTreeSet::new(); mesh.sets[set].size];
                let mut tie = |a: i32, b: i32| {
                    if a != HOLE && b != HOLE && a != b {
                        expected[a as usize].insert(b as u32);
                        expected[b as usize].insert(a as u32);
                    }
                };
                for map in mesh.maps.iter().filter(|map| map.to == set) {
                    for element in 0..mesh.sets[map.from].size {
                        for &a in map.row(element) {
                            if map.from == set {
                                tie(element as i32, a);
                            } else {
                                map.row(element).iter().for_each(|&b| tie(a, b));
                            }
                        }
                    }
                }
                let neighbours: Vec<BTreeSet<u32>> = (0..graph.len() as u32)
                    .map(|element| graph.of_element(element).iter().copied().collect())
                    .collect();
                assert_eq!(graph.neighbours.len(), neighbours.iter().map(BTreeSet::len).sum::<usize>());
                let enough = expected.iter().filter(|others| !others.is_empty()).count() * 2 >= expected.len();
                match enough {
                    true => assert_eq!(neighbours, expected, "seed {seed}, set {set}"),
                    false => {
                        for (element, others) in neighbours.iter().enumerate() {
                            assert!(others.is_superset(&expected[element]), "seed {seed}, set {set}");
                            assert!(others.iter().all(|&other| neighbours[other as usize].contains(&(element as u32))));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn cells_are_tied_by_edges_or_by_nodes() {
        let mut mesh = sample::quads(3, 3);
        assert_eq!(Graph::of(&mesh, 2).unwrap().of_element(4), [1, 3, 5, 7]);
        assert_eq!(Graph::of(&mesh, 2).unwrap().bandwidth(), Bandwidth { max: 3, mean: 2.0 });
        // Without the map from edges to cells.
        mesh.maps.remove(1);
        assert_eq!(Graph::of(&mesh, 2).unwrap().of_element(4), [0, 1, 2, 3, 5, 6, 7, 8]);
    }

    #[test]
    fn nothing_has_no_bandwidth() {
        let graph = Graph::build(0, |_, _| {});
        assert!(graph.is_empty());
        assert_eq!(graph.bandwidth(), Bandwidth::default());
    }
}
