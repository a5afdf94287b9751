//! Reverse Cuthill-McKee: neighbours get near numbers.

use super::graph::Graph;
use super::levels::Levels;
use super::{Method, Options, Ordering};
use crate::error::Result;
use crate::mesh::Mesh;

/// E. Cuthill and J. McKee, "Reducing the Bandwidth of Sparse Symmetric Matrices", 1969; reversed as A. George found,
/// "Computer Implementation of the Finite Element Method", 1971.
///
/// The crate `sprs` has it as well, and looks at all elements for each component: this takes no longer for many.
pub struct ReverseCuthillMckee;

impl Method for ReverseCuthillMckee {
    fn name(&self) -> &'static str {
        "rcm"
    }

    fn summary(&self) -> &'static str {
        "reverse Cuthill-McKee: level after level from an element at the rim, so that neighbours have near numbers"
    }

    fn ordering(&self, mesh: &Mesh, options: &Options) -> Result<Ordering> {
        Ordering::led(mesh, options.lead, order(&Graph::of(mesh, options.lead)?))
    }
}

/// The order of a graph's elements, component after component.
pub fn order(graph: &Graph) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.len());
    let mut numbered = vec![false; graph.len()];
    Levels::new(graph).components(|levels, component| {
        let start = order.len();
        let (root, _) = levels.peripheral(component);
        numbered[root as usize] = true;
        order.push(root);
        let mut at = start;
        while let Some(&element) = order.get(at) {
            let first = order.len();
            for &other in graph.of_element(element) {
                if !std::mem::replace(&mut numbered[other as usize], true) {
                    order.push(other);
                }
            }
            order[first..].sort_unstable_by_key(|&other| (graph.degree(other), other));
            at += 1;
        }
        order[start..].reverse();
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::order::inverse;
    use crate::mesh::sample;

    #[test]
    fn a_shuffled_path_is_put_straight() {
        // 4 - 0 - 3 - 1 - 2
        let path = [4, 0, 3, 1, 2_u32];
        let graph = Graph::build(5, |element, found| {
            let at = path.iter().position(|&other| other as usize == element).unwrap();
            found.extend(path.get(at.wrapping_sub(1)).into_iter().chain(path.get(at + 1)));
        });
        assert_eq!(order(&graph), [4, 0, 3, 1, 2]);
    }

    #[test]
    fn a_rectangle_is_hardly_wider_than_its_short_side() {
        let mesh = sample::quads(40, 7);
        let graph = Graph::of(&mesh, 2).unwrap();
        let numbers = &inverse(&order(&graph));
        let far = |element: u32| {
            let others = graph.of_element(element).iter();
            others.map(move |&other| numbers[other as usize].abs_diff(numbers[element as usize])).max().unwrap()
        };
        assert_eq!((0..graph.len() as u32).map(far).max(), Some(8));
    }

    #[test]
    fn many_components_take_no_longer() {
        // Each would cost a look at all if anything were cleared between two.
        let graph =
            Graph::build(1_000_000, |element, found| found.extend((element % 4 < 2).then_some(element as u32 ^ 1)));
        assert_eq!(order(&graph).len(), 1_000_000);
    }
}
