//! Level structures: elements of a graph by their distance from one.

use super::graph::Graph;

/// Makes level structures of a graph without clearing anything between two.
pub struct Levels<'a> {
    graph: &'a Graph,
    /// For each element, the last structure that it is in.
    stamps: Vec<u32>,
    stamp: u32,
}

/// The elements that can be reached from one, by their distance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Level after level, in the order in which they are reached.
    pub elements: Vec<u32>,
    /// Where levels begin, and at last where all end.
    pub starts: Vec<usize>,
}

impl Structure {
    /// How many levels there are.
    pub fn depth(&self) -> usize {
        self.starts.len() - 1
    }

    /// The elements of a level.
    pub fn level(&self, level: usize) -> &[u32] {
        &self.elements[self.starts[level]..self.starts[level + 1]]
    }

    /// The size of the largest level.
    pub fn width(&self) -> usize {
        self.starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
    }
}

impl<'a> Levels<'a> {
    /// For level structures of a graph.
    pub fn new(graph: &'a Graph) -> Self {
        Self { graph, stamps: vec![0; graph.len()], stamp: 0 }
    }

    /// The level structure of an element.
    pub fn from(&mut self, root: u32) -> Structure {
        self.stamp += 1;
        self.stamps[root as usize] = self.stamp;
        let (mut elements, mut starts) = (vec![root], vec![0]);
        loop {
            let (start, end) = (starts[starts.len() - 1], elements.len());
            if start == end {
                return Structure { elements, starts };
            }
            starts.push(end);
            for at in start..end {
                for &other in self.graph.of_element(elements[at]) {
                    if self.stamps[other as usize] != self.stamp {
                        self.stamps[other as usize] = self.stamp;
                        elements.push(other);
                    }
                }
            }
        }
    }

    /// An element far from others of its component, and its level structure: the pseudo-peripheral node of A. George and
    /// J. Liu, "An Implementation of a Pseudoperipheral Node Finder", ACM TOMS 5 (1979). `component` is the level structure
    /// of any of its elements.
    pub fn peripheral(&mut self, component: &Structure) -> (u32, Structure) {
        let mut root = self.of_least_degree(&component.elements);
        let mut structure = self.from(root);
        loop {
            let far = self.of_least_degree(structure.level(structure.depth() - 1));
            let next = self.from(far);
            if next.depth() <= structure.depth() {
                return (root, structure);
            }
            (root, structure) = (far, next);
        }
    }

    /// The element of fewest neighbours; of several, that of the lowest number.
    pub fn of_least_degree(&self, elements: &[u32]) -> u32 {
        let least = elements.iter().min_by_key(|&&element| (self.graph.degree(element), element));
        *least.expect("a level has elements")
    }

    /// For each number of neighbours that elements have, fewest first, the element of the lowest number.
    pub fn of_each_degree(&self, elements: &[u32]) -> Vec<u32> {
        let mut least: std::collections::BTreeMap<usize, u32> = std::collections::BTreeMap::new();
        for &element in elements {
            let entry = least.entry(self.graph.degree(element)).or_insert(element);
            *entry = element.min(*entry);
        }
        least.into_values().collect()
    }

    /// Does something with each component of the graph, in the order of their lowest numbers: it gets the level structure
    /// of the element with that number.
    pub fn components(&mut self, mut each: impl FnMut(&mut Self, &Structure)) {
        let mut seen = vec![false; self.graph.len()];
        for element in 0..self.graph.len() as u32 {
            if !seen[element as usize] {
                let component = self.from(element);
                component.elements.iter().for_each(|&element| seen[element as usize] = true);
                each(self, &component);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of five, an element alone, and a pair.
    fn graph() -> Graph {
        let edges = [(0, 3), (3, 1), (1, 7), (7, 2), (5, 6)];
        Graph::build(8, |element, found| {
            for (a, b) in edges {
                found.extend((a as usize == element).then_some(b));
                found.extend((b as usize == element).then_some(a));
            }
        })
    }

    #[test]
    fn levels_are_distances() {
        let graph = graph();
        let mut levels = Levels::new(&graph);
        let structure = levels.from(3);
        assert_eq!(structure, Structure { elements: vec![3, 0, 1, 7, 2], starts: vec![0, 1, 3, 4, 5] });
        assert_eq!((structure.depth(), structure.width(), structure.level(1)), (4, 2, &[0, 1][..]));
        let (end, structure) = levels.peripheral(&structure);
        assert_eq!((end, structure.depth()), (0, 5));
        assert_eq!(levels.of_each_degree(&[7, 3, 4, 2, 0]), [4, 0, 3]);
    }

    #[test]
    fn components_come_by_their_lowest_number() {
        let graph = graph();
        let mut found = Vec::new();
        Levels::new(&graph).components(|_, component| found.push(component.elements.clone()));
        assert_eq!(found, [vec![0, 3, 1, 7, 2], vec![4], vec![5, 6]]);
    }
}
