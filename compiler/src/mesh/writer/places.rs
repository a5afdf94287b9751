//! Definitions that are looked at in many places: a loop goes through these where their texts, one after the other, would be too many.
//!
//! A body is written out: what it uses stands there once for each place that it is looked at in. Of a sum over elements that is itself
//! looked at along many ways, this comes to more than compilers get through in minutes. So beyond so many nodes a definition is
//! written once, in a loop over its places, and its values are kept in memory of the thread.

use super::{Scope, Writer};
use crate::ir::{Body, DefId, Handle, Kind, Path};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{Step, Type, Unroll, ValueId};
use std::collections::HashSet;

/// The most nodes that a body is written out to, with those of all definitions that it uses, at each place: no stencil that comes along needs as
/// many, and compilers take a second for them.
pub const WRITTEN_OUT: usize = 1_000;

/// So many definitions are looked at more closely before one is chosen: of most all that could be chosen are fewer.
const CANDIDATES: usize = 8;

/// What a body needs that is not known yet: how many nodes, and of each definition the places.
struct Needs {
    nodes: usize,
    places: Vec<Vec<Path>>,
}

/// A definition, and places on one level from which it is looked at.
struct Repeated {
    def: DefId,
    levels: i32,
    places: Vec<Path>,
}

impl Writer<'_> {
    /// Computes what a body uses in so many places that it would be too long, by loops over these.
    pub(super) fn go_through_places(&mut self, body: &Body, at: &Path) {
        // What depends on which of two elements the own one is, or on the level before, is known only where it stands.
        if self.ends.is_some() || self.sweeping.is_some() {
            return;
        }
        while let Some(repeated) = self.most_repeated(body, at) {
            self.go_through(&repeated);
        }
    }

    /// The definition of which a loop saves the most, if a body is too long.
    fn most_repeated(&self, body: &Body, at: &Path) -> Option<Repeated> {
        let needs = self.needs(body, at, usize::MAX);
        if needs.nodes <= WRITTEN_OUT {
            return None;
        }
        let mut best: Option<(usize, Repeated)> = None;
        for (def, levels, places) in self.candidates(&needs) {
            let most = needs.nodes / 2;
            let nodes = self.needs(&self.task.stencil.stencil.defs[def].body, &Path::levels_only(levels), most).nodes;
            let saved = nodes * (places.len() - 1);
            // Within a loop there may be others, which end since each has half as many nodes at most.
            let is_worth = nodes <= most && 8 * saved >= WRITTEN_OUT;
            if is_worth && best.as_ref().is_none_or(|(most, _)| saved > *most) {
                best = Some((saved, Repeated { def, levels, places }));
            }
        }
        best.map(|(_, repeated)| repeated)
    }

    /// The definitions of which loops could save the most, with places on one level, at least two of them.
    fn candidates(&self, needs: &Needs) -> Vec<(DefId, i32, Vec<Path>)> {
        let (mut nodes, mut all) = (Vec::<usize>::new(), Vec::new());
        for (def, own) in self.task.stencil.stencil.defs.iter() {
            let used = own.body.uses().map(|(def, _)| nodes[def.index()]);
            let own_nodes = used.fold(own.body.len(), usize::saturating_add);
            nodes.push(own_nodes);
            // Truths are not kept in memory.
            let is_kept = own.body.kind_of(own.body.root()) != Kind::Bool;
            let places = &needs.places[def.index()];
            let Some(first) = places.first().filter(|_| is_kept) else { continue };
            let places = places.iter().filter(|place| place.levels() == first.levels()).cloned();
            let places: Vec<Path> = places.collect();
            if places.len() > 1 {
                all.push((own_nodes.saturating_mul(places.len() - 1), (def, first.levels(), places)));
            }
        }
        all.sort_by_key(|(saved, _)| std::cmp::Reverse(*saved));
        all.into_iter().take(CANDIDATES).map(|(_, own)| own).collect()
    }

    /// What a body needs where `at` leads; nothing more is looked at beyond so many nodes.
    fn needs(&self, body: &Body, at: &Path, most: usize) -> Needs {
        let defs = &self.task.stencil.stencil.defs;
        let mut needs = Needs { nodes: body.len(), places: vec![Vec::new(); defs.len()] };
        let (mut seen, mut waiting) = (HashSet::new(), vec![(body, at.clone())]);
        while let Some((body, at)) = waiting.pop() {
            for (def, path) in body.uses() {
                let key = (def, at.then(path));
                let is_known = self.find(|scope| scope.values.get(&key)).is_some();
                if is_known || needs.nodes > most || !seen.insert(key.clone()) {
                    continue;
                }
                let own = &defs[def].body;
                needs.nodes += own.len();
                needs.places[def.index()].push(key.1.clone());
                waiting.push((own, key.1));
            }
        }
        needs
    }

    /// Computes a definition in all its places, by one loop.
    fn go_through(&mut self, Repeated { def, levels, places }: &Repeated) {
        let own = &self.task.stencil.stencil.defs[*def];
        let kind = self.computing(own.body.kind_of(own.body.root()));
        let elements: Vec<ValueId> = places.iter().map(|at| self.raw(at.hops())).collect();
        let count = self.own.int(places.len() as i64);
        let elements = self.own.list(&format!("places_of_{}", own.name), Type::I32, elements);
        let values = self.own.local(&format!("{}_at_places", own.name), kind, places.len());
        let (first, step) = (self.own.int(0), Step::By(self.own.int(1)));
        self.each("n", (first, count, step), Unroll::Times(1), |writer, n| {
            // What is known along ways from the thread's own element says nothing of those from another.
            let around = std::mem::replace(&mut writer.scopes, vec![Scope::default()]);
            let in_piece = writer.in_piece.take();
            let place = writer.own.name("place", elements.at(n));
            let element = writer.own.name("place_or_0", place.less(0).picks(0, place));
            writer.set_index(&[], element);
            let value = writer.body(&own.body, &Path::levels_only(*levels));
            writer.own.store(values, n, value);
            (writer.scopes, writer.in_piece) = (around, in_piece);
        });
        for (n, at) in places.iter().enumerate() {
            let value = self.own.load(values, n);
            self.name_value(*def, at.clone(), value);
        }
    }
}
