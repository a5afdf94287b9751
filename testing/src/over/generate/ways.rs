//! Ways from element to element, through maps and their slots.

use super::super::tree::{Missing, Way};
use super::{Style, Writer};

impl Writer {
    /// A way of a few steps from a set.
    pub(super) fn any_way(&mut self, from: usize) -> Way {
        let (mut way, mut set) = (Way::default(), from);
        for _ in 0..self.rng.usize(0..3) {
            match self.hop(set) {
                Some(hop) => {
                    way.hops.push(hop);
                    set = self.stencil.mesh.maps[hop.0].to;
                }
                None => break,
            }
        }
        way
    }

    pub(super) fn hop(&mut self, from: usize) -> Option<(usize, usize)> {
        let maps = self.stencil.mesh.maps.iter().enumerate();
        let own: Vec<(usize, usize)> =
            maps.filter(|(_, map)| map.from == from).map(|(number, map)| (number, map.arity)).collect();
        let (map, arity) = *own.get(self.rng.usize(0..own.len().max(1)))?;
        Some((map, self.rng.usize(0..arity)))
    }

    /// A way that leads to a set, from the element or from a counter.
    pub(super) fn way_to(&mut self, set: usize) -> Option<Way> {
        if self.style == Style::Own && set == self.stencil.over && !self.one_in(12) {
            return Some(Way::default());
        }
        for _ in 0..6 {
            let counter = match self.counters.is_empty() || self.one_in(4) {
                true => None,
                false => Some(self.counters[self.rng.usize(0..self.counters.len())].0),
            };
            let from = self.end(&Way { counter, hops: Vec::new() });
            let way = Way { counter, ..self.any_way(from) };
            if self.end(&way) == set {
                return Some(way);
            }
        }
        None
    }

    /// A way that ends with a slot of a map: of a counter over it, or one more step.
    pub(super) fn way_through(&mut self, set: usize, map: usize) -> Option<Way> {
        let over = self.counters.iter().find(|(_, hops)| hops.last().is_some_and(|(own, _)| *own == map));
        if let Some(&(counter, _)) = over
            && self.rng.bool()
        {
            return Some(Way { counter: Some(counter), hops: Vec::new() });
        }
        let mut way = self.way_to(set)?;
        way.hops.push((map, self.rng.usize(0..self.stencil.mesh.maps[map].arity)));
        Some(way)
    }

    /// A way of one step that leads to a set, if there is one.
    pub(super) fn way_by_hop(&mut self, set: usize) -> Way {
        let over = self.stencil.over;
        let all = self.stencil.mesh.maps.iter().enumerate().filter(|(_, map)| (map.from, map.to) == (over, set));
        let all: Vec<(usize, usize)> =
            all.flat_map(|(number, map)| (0..map.arity).map(move |slot| (number, slot))).collect();
        Way { counter: None, hops: all.get(self.rng.usize(0..all.len().max(1))).copied().into_iter().collect() }
    }

    /// The set where a way leads.
    pub(super) fn end(&self, way: &Way) -> usize {
        self.whole(way).last().map_or(self.stencil.over, |(map, _)| self.stencil.mesh.maps[*map].to)
    }

    /// A way with its counter written out.
    pub(super) fn whole(&self, way: &Way) -> Vec<(usize, usize)> {
        let counter = |counter| self.counters.iter().rev().find(|(own, _)| *own == counter).map(|(_, hops)| hops);
        way.counter.and_then(counter).into_iter().flatten().chain(&way.hops).copied().collect()
    }

    /// Whether a way may lead through a hole that is left out, as far as is known.
    pub(super) fn is_doubtful(&self, way: &Way) -> bool {
        let hops = self.whole(way);
        (1..=hops.len()).any(|end| {
            let is_known = self.known.iter().any(|known| known.hops.starts_with(&hops[..end]));
            self.stencil.mesh.maps[hops[end - 1].0].missing == Missing::Skip && !is_known
        })
    }
}
