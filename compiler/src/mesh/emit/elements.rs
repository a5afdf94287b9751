//! Elements: their numbers, and where hops lead from them.

use super::Emitter;
use crate::ir::mesh::Missing;
use crate::ir::{Hop, Path, SetId};
use crate::mesh::{PieceTable, What};

impl Emitter<'_> {
    /// Says which element hops lead to.
    pub fn set_index(&mut self, hops: &[Hop], name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.raw.insert(hops.to_vec(), name.to_owned());
            scope.index.insert(hops.to_vec(), name.to_owned());
        }
    }

    /// Says which element hops lead to, if any.
    pub fn set_raw(&mut self, hops: &[Hop], name: &str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.raw.insert(hops.to_vec(), name.to_owned());
        }
    }

    /// The name of the thread's own element of a set, the same at every call. A set may be called like something of ours.
    pub fn element_of(&mut self, set: SetId) -> String {
        let wish = &self.subject.stencil.mesh.sets[set].name;
        self.elements.entry(set).or_insert_with(|| self.names.fresh(wish)).clone()
    }

    /// A thread an element of a set: the lines that find it, and its name.
    pub fn thread_of(&mut self, set: SetId) -> String {
        let element = self.element_of(set);
        let n = self.size(set);
        self.line(format!("const int {element} = blockIdx.x * {} + threadIdx.x;", self.choices.block));
        self.line(format!("if ({element} >= {n}) {}", self.leave()));
        element
    }

    /// How many elements a set has.
    pub fn size(&mut self, set: SetId) -> String {
        let wish = format!("n_{}", self.subject.stencil.mesh.sets[set].name);
        self.parameter(&wish, "int", What::Size(set))
    }

    /// Whether hops may end at a hole.
    pub fn can_miss(&self, hops: &[Hop]) -> bool {
        hops.iter().any(|hop| self.subject.stencil.mesh.maps[hop.map].missing != Missing::Never)
    }

    /// The number of the element where hops lead; -1 from a hole.
    pub fn raw(&mut self, hops: &[Hop]) -> String {
        if let Some(known) = self.find(|scope| scope.raw.get(hops)) {
            return known.clone();
        }
        let Some((last, before)) = hops.split_last() else { return self.element() };
        // Where the way begins comes first, hop by hop, as far as it is not known.
        let is_known = |end: &usize| self.find(|scope| scope.index.get(&hops[..*end])).is_some();
        let known = (1..hops.len()).rev().find(is_known).unwrap_or(0);
        for end in known + 1..hops.len() {
            self.index(&hops[..end]);
        }
        let mesh = &self.subject.stencil.mesh;
        let (arity, map_name) = (mesh.maps[last.map].arity, mesh.full_name(last.map).replace('.', "_"));
        let (map, from) = match self.in_piece.clone() {
            Some(place) if before.is_empty() => {
                let table = What::Piece(PieceTable::Rows(last.map));
                (self.parameter(&format!("{map_name}_in_pieces"), "const int*", table), place)
            }
            _ => (self.parameter(&map_name, "const int*", What::Map(last.map)), self.index(before)),
        };
        let at = match (arity, last.slot) {
            (1, _) => from.clone(),
            (_, 0) => format!("{arity} * {from}"),
            (_, slot) => format!("{arity} * {from} + {slot}"),
        };
        let text = match self.can_miss(before) {
            false => format!("{map}[{at}]"),
            true => {
                let raw = self.raw(before);
                format!("{raw} < 0 ? -1 : {map}[{at}]")
            }
        };
        let name = self.names.fresh(&self.hops_name(hops));
        self.line(format!("const int {name} = {text};"));
        self.set_raw(hops, &name);
        name
    }

    /// The number of the element at hand, in pieces: where nothing is read of it, nobody needs it.
    fn element(&mut self) -> String {
        // A fault of ours that no compiler would let pass.
        let Some(place) = self.in_piece.clone() else { return "no_element_is_known_here".to_owned() };
        let stencil = self.subject.stencil;
        let elements = self.parameter("elements", "const int*", What::Piece(PieceTable::Elements));
        let name = self.names.fresh(&stencil.mesh.sets[stencil.set()].name);
        self.line(format!("const int {name} = {elements}[{place}];"));
        self.set_index(&[], &name);
        name
    }

    /// The number of the element where hops lead; that of some element from a hole.
    pub fn index(&mut self, hops: &[Hop]) -> String {
        if let Some(known) = self.find(|scope| scope.index.get(hops)) {
            return known.clone();
        }
        let raw = self.raw(hops);
        if !self.can_miss(hops) {
            self.set_index(hops, &raw);
            return raw;
        }
        let name = self.names.fresh(&format!("{}_or_0", self.hops_name(hops)));
        self.line(format!("const int {name} = {raw} < 0 ? 0 : {raw};"));
        if let Some(scope) = self.scopes.last_mut() {
            scope.index.insert(hops.to_vec(), name.clone());
        }
        name
    }

    /// A name for the element where a path ends.
    pub fn end_of(&mut self, path: &Path) -> String {
        let wish = self.hops_name(path.hops());
        self.names.fresh(&wish)
    }

    /// `cells_0`, for names.
    pub fn hops_name(&self, hops: &[Hop]) -> String {
        let mesh = &self.subject.stencil.mesh;
        let names = hops.iter().map(|hop| match &mesh.maps[hop.map] {
            map if map.arity == 1 => map.name.clone(),
            map => format!("{}_{}", map.name, hop.slot),
        });
        names.collect::<Vec<_>>().join("_")
    }
}
