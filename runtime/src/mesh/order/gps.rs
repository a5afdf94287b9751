//! Gibbs-Poole-Stockmeyer: level after level as by Cuthill-McKee, of a level structure that is narrower than any rooted one.

use super::graph::Graph;
use super::levels::{Levels, Structure};
use super::{Method, Options, Ordering};
use crate::error::Result;
use crate::mesh::Mesh;

/// N. Gibbs, W. Poole and P. Stockmeyer, "An Algorithm for Reducing the Bandwidth and Profile of a Sparse Matrix", SIAM
/// Journal on Numerical Analysis 13 (1976).
///
/// Of the last level, where the paper tries every element as the other end, one of each degree is tried, as in J. Lewis,
/// "Implementation of the Gibbs-Poole-Stockmeyer and Gibbs-King Algorithms", ACM TOMS 8 (1982): a mesh of millions has
/// thousands there. Of an order and its reverse, which have the same bandwidth, the one of the smaller profile is taken.
pub struct GibbsPooleStockmeyer;

impl Method for GibbsPooleStockmeyer {
    fn name(&self) -> &'static str {
        "gps"
    }

    fn summary(&self) -> &'static str {
        "Gibbs-Poole-Stockmeyer: as rcm, with levels counted from both ends, so that they are smaller"
    }

    fn ordering(&self, mesh: &Mesh, options: &Options) -> Result<Ordering> {
        Ordering::led(mesh, options.lead, order(&Graph::of(mesh, options.lead)?))
    }
}

/// The order of a graph's elements, component after component.
pub fn order(graph: &Graph) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.len());
    let mut places = Places::new(graph);
    let mut numbers = vec![NONE; graph.len()];
    Levels::new(graph).components(|levels, component| {
        let start = order.len();
        let (from_v, from_u) = diameter(levels, component);
        let by_level = places.narrow(&from_v, &from_u);
        number(graph, by_level, &places.levels, &mut numbers, &mut order);
        let (forwards, backwards) = profiles(graph, &order[start..], &numbers);
        if backwards < forwards {
            order[start..].reverse();
        }
    });
    order
}

/// What stands for a level or number that is not known yet.
const NONE: u32 = u32::MAX;

/// The level structures of two ends of a diameter, or nearly one: both have as many levels.
fn diameter(levels: &mut Levels, component: &Structure) -> (Structure, Structure) {
    let mut from_v = levels.from(levels.of_least_degree(&component.elements));
    'longer: loop {
        let mut narrowest: Option<Structure> = None;
        for u in levels.of_each_degree(from_v.level(from_v.depth() - 1)) {
            let from_u = levels.from(u);
            if from_u.depth() > from_v.depth() {
                from_v = from_u;
                continue 'longer;
            }
            if narrowest.as_ref().is_none_or(|other| from_u.width() < other.width()) {
                narrowest = Some(from_u);
            }
        }
        return (from_v, narrowest.expect("a level has elements"));
    }
}

/// Where elements stand, in structures from both ends and in the one that is made of them. Levels are counted from `v`.
struct Places<'a> {
    graph: &'a Graph,
    from_v: Vec<u32>,
    from_u: Vec<u32>,
    levels: Vec<u32>,
    /// Which elements are in a part already, of those that had no level.
    seen: Vec<bool>,
}

impl<'a> Places<'a> {
    fn new(graph: &'a Graph) -> Self {
        let none = || vec![NONE; graph.len()];
        Self { graph, from_v: none(), from_u: none(), levels: none(), seen: vec![false; graph.len()] }
    }

    /// Puts every element of a component into the level that one of the structures gives it, so that neighbours are in the
    /// same or in adjacent levels, and these are small. Returns the elements of each level, counted from the end of fewer
    /// neighbours, which comes first.
    fn narrow(&mut self, from_v: &Structure, from_u: &Structure) -> Vec<Vec<u32>> {
        let depth = from_v.depth();
        for level in 0..depth {
            from_v.level(level).iter().for_each(|&w| self.from_v[w as usize] = level as u32);
            from_u.level(level).iter().for_each(|&w| self.from_u[w as usize] = (depth - 1 - level) as u32);
        }
        let mut sizes = vec![0; depth];
        // Where both agree, there it is.
        for &w in &from_v.elements {
            if self.from_v[w as usize] == self.from_u[w as usize] {
                self.put(w, self.from_v[w as usize], &mut sizes);
            }
        }
        let is_v_narrower = from_v.width() <= from_u.width();
        let mut added = vec![0; depth];
        for part in self.open_parts(&from_v.elements) {
            let mut largest = |level_of: &[u32]| {
                part.iter().for_each(|&w| added[level_of[w as usize] as usize] += 1);
                let level = |&w: &u32| level_of[w as usize] as usize;
                let largest = part.iter().map(|w| sizes[level(w)] + added[level(w)]).max();
                part.iter().for_each(|w| added[level(w)] = 0);
                largest
            };
            let (by_v, by_u) = (largest(&self.from_v), largest(&self.from_u));
            let is_by_v = by_v < by_u || by_v == by_u && is_v_narrower;
            for w in part {
                let level = if is_by_v { self.from_v[w as usize] } else { self.from_u[w as usize] };
                self.put(w, level, &mut sizes);
            }
        }
        let (v, u) = (from_v.elements[0], from_u.elements[0]);
        let is_turned = self.graph.degree(u) < self.graph.degree(v);
        let mut by_level: Vec<Vec<u32>> = sizes.iter().map(|&size| Vec::with_capacity(size)).collect();
        // The end stands first in its own structure, so that it does in its level.
        for &w in if is_turned { &from_u.elements } else { &from_v.elements } {
            let level = &mut self.levels[w as usize];
            *level = if is_turned { depth as u32 - 1 - *level } else { *level };
            by_level[*level as usize].push(w);
        }
        by_level
    }

    fn put(&mut self, element: u32, level: u32, sizes: &mut [usize]) {
        self.levels[element as usize] = level;
        sizes[level as usize] += 1;
    }

    /// The connected parts of the elements that have no level yet, the largest first.
    fn open_parts(&mut self, elements: &[u32]) -> Vec<Vec<u32>> {
        let levels = &self.levels;
        let is_open = |w: u32| levels[w as usize] == NONE;
        let mut parts = Vec::new();
        for &element in elements.iter().filter(|&&element| is_open(element)) {
            if std::mem::replace(&mut self.seen[element as usize], true) {
                continue;
            }
            let mut part = vec![element];
            let mut at = 0;
            while let Some(&w) = part.get(at) {
                for &other in self.graph.of_element(w).iter().filter(|&&other| is_open(other)) {
                    if !std::mem::replace(&mut self.seen[other as usize], true) {
                        part.push(other);
                    }
                }
                at += 1;
            }
            parts.push(part);
        }
        parts.sort_by_key(|part: &Vec<u32>| std::cmp::Reverse(part.len()));
        parts
    }
}

/// Numbers a component level by level: first the neighbours of what the level before has, in its order, then those of what
/// the level itself has, and where there are none, the element of fewest neighbours.
fn number(graph: &Graph, by_level: Vec<Vec<u32>>, levels: &[u32], numbers: &mut [u32], order: &mut Vec<u32>) {
    let key = |&w: &u32| (graph.degree(w), w);
    let mut start = order.len();
    for (level, mut elements) in by_level.into_iter().enumerate() {
        let end = order.len();
        let put = |w: u32, numbers: &mut [u32], order: &mut Vec<u32>| {
            numbers[w as usize] = order.len() as u32;
            order.push(w);
        };
        if level == 0 {
            put(elements[0], numbers, order);
        }
        elements.sort_unstable_by_key(key);
        let mut rest = elements.into_iter();
        let mut at = start;
        loop {
            while let Some(&w) = order.get(at) {
                let first = order.len();
                for &other in graph.of_element(w) {
                    if levels[other as usize] == level as u32 && numbers[other as usize] == NONE {
                        put(other, numbers, order);
                    }
                }
                order[first..].sort_unstable_by_key(key);
                (first..order.len()).for_each(|number| numbers[order[number] as usize] = number as u32);
                at += 1;
            }
            match rest.find(|&w| numbers[w as usize] == NONE) {
                Some(w) => put(w, numbers, order),
                None => break,
            }
        }
        start = end;
    }
}

/// The profile of an order of a component, and of its reverse: for each element, how far before it the first of its
/// neighbours stands, summed.
fn profiles(graph: &Graph, order: &[u32], numbers: &[u32]) -> (u64, u64) {
    let mut profiles = (0, 0);
    for &w in order {
        let number = numbers[w as usize];
        let (first, last) = graph.of_element(w).iter().fold((number, number), |(first, last), &other| {
            (first.min(numbers[other as usize]), last.max(numbers[other as usize]))
        });
        profiles.0 += u64::from(number - first);
        profiles.1 += u64::from(last - number);
    }
    profiles
}

#[cfg(test)]
mod tests {
    use super::super::rcm;
    use super::*;
    use crate::mesh::order::inverse;

    /// A connected graph or not, sparse, of random edges between elements that are near on a ring.
    fn random(seed: u64) -> Graph {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = random.u32(1..200);
        let mut names: Vec<u32> = (0..size).collect();
        random.shuffle(&mut names);
        let edges: Vec<(u32, u32)> = (0..random.u32(0..3 * size))
            .map(|_| {
                let a = random.u32(0..size);
                (names[a as usize], names[((a + random.u32(0..6)) % size) as usize])
            })
            .collect();
        Graph::build(size as usize, |element, found| {
            for &(a, b) in &edges {
                found.extend((a as usize == element).then_some(b));
                found.extend((b as usize == element).then_some(a));
            }
        })
    }

    fn bandwidth(graph: &Graph, order: &[u32]) -> u32 {
        let numbers = &inverse(order);
        let far = |w: u32| {
            graph.of_element(w).iter().map(move |&other| numbers[other as usize].abs_diff(numbers[w as usize]))
        };
        (0..graph.len() as u32).flat_map(far).max().unwrap_or(0)
    }

    #[test]
    fn levels_are_a_structure_and_no_wider_than_the_ends() {
        let mut chosen = 0;
        for seed in 0..500 {
            let graph = random(seed);
            let mut places = Places::new(&graph);
            Levels::new(&graph).components(|levels, component| {
                let (from_v, from_u) = diameter(levels, component);
                assert_eq!(from_v.depth(), from_u.depth());
                let by_level = places.narrow(&from_v, &from_u);
                assert_eq!(by_level.iter().map(Vec::len).sum::<usize>(), component.elements.len());
                let end = by_level[0][0];
                assert!(end == from_v.elements[0] || end == from_u.elements[0], "seed {seed}");
                let width = by_level.iter().map(Vec::len).max().unwrap();
                chosen += usize::from(width < from_v.width().min(from_u.width()));
                for &w in &component.elements {
                    let level = |w: u32| places.levels[w as usize];
                    let others = graph.of_element(w).iter();
                    assert!(others.copied().all(|other| level(w).abs_diff(level(other)) <= 1), "seed {seed}");
                }
            });
        }
        assert!(chosen > 100, "{chosen}");
    }

    #[test]
    fn bands_are_narrower_than_by_rcm() {
        let (mut gps, mut reverse, mut better) = (0, 0, 0);
        for seed in 0..500 {
            let graph = random(seed);
            let order = order(&graph);
            assert!(inverse(&inverse(&order)) == order, "seed {seed}");
            let (own, other) = (bandwidth(&graph, &order), bandwidth(&graph, &rcm::order(&graph)));
            gps += own;
            reverse += other;
            better += usize::from(own < other);
        }
        assert!(f64::from(gps) < 0.95 * f64::from(reverse), "{gps} {reverse}");
        assert!(better > 150, "{better}");
    }

    #[test]
    fn profiles_count_both_ways() {
        // 0 - 1 - 2 and 0 - 3: each stands 1, 1 and 3 behind, and 3, 1, 0 and 0 before.
        let edges = [[1, 3].as_slice(), &[0, 2], &[1], &[0]];
        let graph = Graph::build(4, |element, found| found.extend(edges[element]));
        assert_eq!(profiles(&graph, &[0, 1, 2, 3], &[0, 1, 2, 3]), (5, 4));
    }
}
