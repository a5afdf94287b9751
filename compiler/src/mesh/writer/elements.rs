//! Elements: their numbers, and where hops lead from them.

use super::Writer;
use crate::ir::mesh::{Missing, Zones};
use crate::ir::{Hop, Path, Relation, SetId};
use crate::kernel::build::Computing;
use crate::kernel::{MeshData, PieceTable, Type, ValueId};
use crate::mesh::Items;

/// The elements of some zones.
pub struct OwnRange<'a> {
    /// The name of their set.
    pub name: &'a str,
    /// How many there are.
    pub n: ValueId,
    /// The number of the first.
    pub first: ValueId,
    /// What threads go through.
    pub items: Items,
}

impl<'a> Writer<'a> {
    /// Says which element hops lead to.
    pub fn set_index(&mut self, hops: &[Hop], element: ValueId) {
        self.scope().raw.insert(hops.to_vec(), element);
        self.scope().index.insert(hops.to_vec(), element);
    }

    /// A thread an element of a set: its number.
    pub fn thread_of(&mut self, set: SetId) -> ValueId {
        let n = self.size(set);
        let wish = &self.task.stencil.mesh.sets[set].name;
        self.item_below(wish, n)
    }

    /// A thread an element of the stencil's own set, of those that it computes: its number, and what the threads go through.
    pub fn thread_of_own(&mut self) -> (ValueId, Items) {
        let Some(own) = self.own_range() else {
            let set = self.task.stencil.set();
            return (self.thread_of(set), Items::Set(set, None));
        };
        let item = self.item_below("item", own.n);
        (self.own.name(own.name, own.first.plus(item)), own.items)
    }

    /// The elements of the stencil's own set that it computes, if they are those of some zones.
    pub fn own_range(&mut self) -> Option<OwnRange<'a>> {
        let (set, zones) = (self.task.stencil.set(), self.task.stencil.stencil.zones?);
        let n = self.count("items", MeshData::Items);
        let first = self.count("first", MeshData::First);
        let name = &self.task.stencil.mesh.sets[set].name;
        Some(OwnRange { name, n, first, items: Items::Set(set, Some(zones)) })
    }

    /// Whether the element where hops lead is in one of some zones of its set: its number tells.
    pub fn in_zone(&mut self, zones: Zones, hops: &[Hop]) -> ValueId {
        let set = self.task.stencil.end(hops);
        let own = &self.task.stencil.mesh.sets[set];
        let element = self.index(hops);
        let first_of = |writer: &mut Self, zone: u8| {
            let wish = format!("{}_of_{}", own.name, own.zones[usize::from(zone)].name);
            writer.count(&wish, MeshData::Zone(set, zone))
        };
        let mut truths = Vec::new();
        if zones.first > 0 {
            let first = first_of(self, zones.first);
            truths.push(self.own.term(element.is(Relation::Ge, first)));
        }
        if usize::from(zones.last) + 1 < own.zones.len() {
            let end = first_of(self, zones.last + 1);
            truths.push(self.own.term(element.is(Relation::Lt, end)));
        }
        match self.own.all(truths) {
            Some(truth) => truth,
            None => self.own.truth(true),
        }
    }

    /// How many elements a set has.
    pub fn size(&mut self, set: SetId) -> ValueId {
        let wish = format!("n_{}", self.task.stencil.mesh.sets[set].name);
        self.count(&wish, MeshData::Size(set))
    }

    /// Whether hops may end at a hole.
    pub fn can_miss(&self, hops: &[Hop]) -> bool {
        hops.iter().any(|hop| self.task.stencil.mesh.maps[hop.map].missing != Missing::Never)
    }

    /// Whether there is an element where hops lead, if there may be none.
    pub fn presence(&mut self, hops: &[Hop], raw: ValueId) -> Option<ValueId> {
        self.can_miss(hops).then(|| self.own.term(raw.is(Relation::Ge, 0)))
    }

    /// The number of the element where hops lead; -1 from a hole.
    pub fn raw(&mut self, hops: &[Hop]) -> ValueId {
        if let Some(known) = self.find(|scope| scope.raw.get(hops)) {
            return known;
        }
        let Some((last, before)) = hops.split_last() else { return self.element() };
        // Where the way begins comes first, hop by hop, as far as it is not known.
        let is_known = |end: &usize| self.find(|scope| scope.index.get(&hops[..*end])).is_some();
        let known = (1..hops.len()).rev().find(is_known).unwrap_or(0);
        for end in known + 1..hops.len() {
            self.index(&hops[..end]);
        }
        let mesh = &self.task.stencil.mesh;
        let (arity, map_name) = (mesh.maps[last.map].arity, mesh.full_name(last.map).replace('.', "_"));
        let (map, from) = match self.in_piece {
            Some(place) if before.is_empty() => {
                let rows = MeshData::Piece(PieceTable::Rows(last.map));
                (self.table(&format!("{map_name}_in_pieces"), rows), place)
            }
            _ => (self.table(&map_name, MeshData::Map(last.map)), self.index(before)),
        };
        let mut raw = map.at(arity.times(from).plus(last.slot));
        if self.can_miss(before) {
            raw = self.raw(before).less(0).picks(-1, raw);
        }
        let raw = self.own.name(&self.hops_name(hops), raw);
        self.scope().raw.insert(hops.to_vec(), raw);
        raw
    }

    /// The number of the element at hand, in pieces: where nothing is read of it, nobody needs it.
    fn element(&mut self) -> ValueId {
        let Some(place) = self.in_piece else {
            // A fault of ours, which neither the IR's rules nor a compiler let pass: a variable that is nowhere declared.
            let name = self.own.declared("no_element_is_known_here");
            let nowhere = self.own.undeclared(name, Type::I32);
            return self.own.get(nowhere);
        };
        let stencil = self.task.stencil;
        let elements = self.table("elements", MeshData::Piece(PieceTable::Elements));
        let element = self.own.name(&stencil.mesh.sets[stencil.set()].name, elements.at(place));
        self.set_index(&[], element);
        element
    }

    /// The number of the element where hops lead; that of some element from a hole.
    pub fn index(&mut self, hops: &[Hop]) -> ValueId {
        if let Some(known) = self.find(|scope| scope.index.get(hops)) {
            return known;
        }
        let raw = self.raw(hops);
        if !self.can_miss(hops) {
            self.set_index(hops, raw);
            return raw;
        }
        let index = self.own.name(&format!("{}_or_0", self.hops_name(hops)), raw.less(0).picks(0, raw));
        self.scope().index.insert(hops.to_vec(), index);
        index
    }

    /// A name for the element where a path ends.
    pub fn end_name(&self, path: &Path) -> String {
        self.hops_name(path.hops())
    }

    /// `cells_0`, for names.
    pub fn hops_name(&self, hops: &[Hop]) -> String {
        let mesh = &self.task.stencil.mesh;
        let names = hops.iter().map(|hop| match &mesh.maps[hop.map] {
            map if map.arity == 1 => map.name.clone(),
            map => format!("{}_{}", map.name, hop.slot),
        });
        names.collect::<Vec<_>>().join("_")
    }
}
