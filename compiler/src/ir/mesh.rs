//! Meshes: what a stencil over the elements of a set means, beyond what any stencil does.
//!
//! # Meaning
//!
//! A [`Mesh`] has sets of elements, and maps: from each element of one set through some slots to elements of another. A slot
//! of a map with [`Missing`] may be a hole.
//!
//! A [`MeshStencil`] runs over the elements of one set, each by itself. It holds a [`Stencil`], whose definitions live at the
//! elements of that set, and whose paths have hops: a read looks at the element where they lead, in the set where the field is
//! at home ([`Home`]); a use of a definition leads back to the stencil's own set. What is read through a hole is never looked
//! at: the value hides behind a [`Node::Present`](super::Node::Present).
//!
//! **Writes.** Each store of the stencil has a [`Write`] beside it. An assigned field lives on the stencil's own set, and each
//! part of it is assigned once. An increment adds to the element where its path leads; to one element, the values come in the
//! order of the elements' numbers, and of one element in the order of the stores, each rounded to the type as which
//! the field is stored. An increment through a hole is dropped. A reduction folds the values of all elements, and all levels, of the set:
//! neighbours pairwise, element 2n with 2n+1, then pairs, and so on; of a number that is left over, the last, nothing changes.
//!
//! **Zones.** Each element of a set with [`Zone`]s is in one of them. A stencil of some zones ([`Stencil::zones`]) is computed for their
//! elements alone: nothing else is written, added or folded, and where it assigns, other elements keep what was there.
//!
//! **Levels.** With levels, everything holds for each of them; those that are computed are those of the stencil
//! (`analysis::levels`). Reductions go over levels of one element before the next element.

use super::{
    Arena, Direction, Field, FieldId, Handle, Hop, Kind, Levels, MapId, Path, Phase, Place, Program, Role, SetId,
    Stencil, Store, VariableId, phases,
};
use crate::named::named;
use crate::source::Span;
use crate::text::FreeText;

/// A mesh, as a file of stencils declares it.
#[derive(Clone, Debug, Default)]
pub struct Mesh {
    /// The user's name.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// Its sets.
    pub sets: Arena<SetId, Set>,
    /// Its maps.
    pub maps: Arena<MapId, Map>,
    /// Whether its elements have levels.
    pub levels: bool,
    /// Where it is declared.
    pub span: Span,
}

/// A set of elements.
#[derive(Clone, Debug)]
pub struct Set {
    /// The user's name.
    pub name: String,
    /// Its zones, of which each element is in one, in the order in which they follow each other; none if it has none.
    pub zones: Vec<Zone>,
    /// Where it is declared.
    pub span: Span,
}

/// A part of a set.
#[derive(Clone, Debug)]
pub struct Zone {
    /// The user's name.
    pub name: String,
    /// Where it is declared.
    pub span: Span,
}

/// Zones of a set that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Zones {
    /// The number of the first.
    pub first: u8,
    /// That of the last.
    pub last: u8,
}

impl Zones {
    /// Whether a zone is one of them.
    pub fn contain(self, zone: u8) -> bool {
        (self.first..=self.last).contains(&zone)
    }
}

/// A map from the elements of a set to those of another.
#[derive(Clone, Debug)]
pub struct Map {
    /// The user's name, without that of the set.
    pub name: String,
    /// Its documentation.
    pub doc: FreeText,
    /// Whose elements it leads from.
    pub from: SetId,
    /// Where it leads.
    pub to: SetId,
    /// How many elements it leads to from each.
    pub arity: u32,
    /// Whether there may be holes, and what they mean.
    pub missing: Missing,
    /// Where it is declared.
    pub span: Span,
}

/// What holes of a map mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There are none.
    Never,
    /// They are left out of reductions, and read by nobody.
    Skip,
    /// What is read through them is a number.
    Value,
}

/// Where on a mesh a field lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    /// On the elements of which set.
    pub set: SetId,
    /// Each time once for each slot of a map of that set.
    pub map: Option<MapId>,
    /// How many numbers there are each time: the parts of a vector.
    pub parts: u32,
    /// How many numbers an element has: `parts`, times the slots of the map.
    pub width: u32,
}

/// A stencil over the elements of a set.
#[derive(Clone, Debug, Default)]
pub struct MeshStencil {
    /// Fields, parameters, definitions and the values that are stored.
    pub stencil: Stencil,
    /// The mesh.
    pub mesh: Mesh,
    /// Over the elements of which set it runs; there is one unless something is wrong.
    pub over: Option<SetId>,
    /// What is done with the value of each store.
    pub writes: Vec<Write>,
}

/// What is done with a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Write {
    /// Which of the field's numbers.
    pub part: u32,
    /// What is done.
    pub how: How,
}

/// What is done with a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum How {
    /// It becomes that of the element at hand.
    #[default]
    Assign,
    /// It is added to that of the element where the path leads.
    Add(Path),
    /// It is made one with those of all other elements.
    Reduce(Fold),
}

named! {
    /// How many numbers become one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Fold {
        /// Their sum.
        Sum = "sum";
        /// The smallest.
        Min = "min";
        /// The largest.
        Max = "max";
    }
}

/// A program over a mesh.
///
/// It is a [`Program`] whose numbers may change: a variable on no axis is a number, which reductions and
/// assignments ([`Action::Number`](super::program::Action::Number)) give a value.
#[derive(Clone, Debug, Default)]
pub struct MeshProgram {
    /// Variables and what is done with them. Its stencils are those of `stencils`.
    pub program: Program,
    /// The stencils that it calls.
    pub stencils: Vec<MeshStencil>,
    /// The mesh.
    pub mesh: Mesh,
    /// The variables that the fields of `program.numbers` stand for.
    pub numbers: Vec<VariableId>,
    /// The sets whose sizes are parameters of `program.numbers`, which have no names of the user's.
    pub sizes: Vec<(super::ParamId, SetId)>,
}

impl Mesh {
    /// The set called `name`.
    pub fn set_named(&self, name: &str) -> Option<SetId> {
        self.sets.iter().find(|(_, set)| set.name == name).map(|(id, _)| id)
    }

    /// The map of `set` called `name`.
    pub fn map_named(&self, set: SetId, name: &str) -> Option<MapId> {
        self.maps.iter().find(|(_, map)| map.from == set && map.name == name).map(|(id, _)| id)
    }

    /// A map's name with that of its set: `edge.nodes`.
    pub fn full_name(&self, map: MapId) -> String {
        let own = &self.maps[map];
        format!("{}.{}", self.sets[own.from].name, own.name)
    }

    /// The names of some zones of a set: `nudging, interior`.
    pub fn zone_names(&self, set: SetId, zones: Zones) -> String {
        let own = self.sets[set].zones.iter().zip(0..).filter(|(_, number)| zones.contain(*number));
        own.map(|(zone, _)| zone.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// A path as it is written: `[cells.0, k-1]`; nothing for the element itself.
    pub fn written(&self, path: &Path) -> String {
        let hops: Vec<String> = path.hops().iter().map(|hop| self.hop(hop.map, hop.slot)).collect();
        path.written((!hops.is_empty()).then(|| hops.join(".")).into_iter())
    }

    /// `cells.0`, or `cell` of a map with one slot.
    fn hop(&self, map: MapId, slot: u32) -> String {
        let own = &self.maps[map];
        if own.arity == 1 { own.name.clone() } else { format!("{}.{slot}", own.name) }
    }

    /// The set where a path from `set` leads.
    pub fn end(&self, set: SetId, path: &Path) -> SetId {
        path.hops().last().map_or(set, |hop| self.maps[hop.map].to)
    }

    /// A place, as it is written: ` on cell, no k`.
    pub fn place(&self, place: Place) -> String {
        let Some(home) = place.home else {
            return match place.levels {
                Levels::None => " on ()".to_owned(),
                Levels::Full => " on (k)".to_owned(),
                Levels::Interfaces => " on (k+1)".to_owned(),
            };
        };
        let mut text = format!(" on {}", self.sets[home.set].name);
        if let Some(map) = home.map {
            text = format!(" on {}", self.full_name(map));
        }
        match place.levels {
            Levels::None if self.levels => text.push_str(", no k"),
            Levels::Interfaces => text.push_str(", k+1"),
            Levels::None | Levels::Full => {}
        }
        text
    }
}

impl MeshStencil {
    /// The set over whose elements it runs.
    pub fn set(&self) -> SetId {
        self.over.unwrap_or(SetId::new(0))
    }

    /// The set where hops from its own elements lead.
    pub fn end(&self, hops: &[Hop]) -> SetId {
        hops.last().map_or(self.set(), |hop| self.mesh.maps[hop.map].to)
    }

    /// Stores and what is done with them.
    pub fn stores(&self) -> impl Iterator<Item = (&super::Store, &Write)> {
        self.stencil.stores.iter().zip(&self.writes)
    }

    /// The fields that are incremented.
    pub fn incremented(&self) -> impl Iterator<Item = FieldId> {
        self.stencil.fields.iter().filter(|(_, field)| field.role == Role::Inc).map(|(id, _)| id)
    }

    /// The same with another stencil inside: one whose bodies were rewritten, store by store. Of what sweeps carry, stores may be left out.
    pub fn with(&self, stencil: Stencil) -> MeshStencil {
        if stencil.stores.len() == self.stencil.stores.len() {
            return MeshStencil { stencil, ..self.clone() };
        }
        let is_carried = |fields: &Arena<FieldId, Field>, store: &Store| fields[store.field].role == Role::Carried;
        let own = self.stores().filter(|(store, _)| !is_carried(&self.stencil.fields, store));
        let mut own = own.map(|(_, write)| write.clone());
        let write = |store: &Store| match is_carried(&stencil.fields, store) {
            true => Write::default(),
            false => own.next().unwrap_or_default(),
        };
        let writes = stencil.stores.iter().map(write).collect();
        MeshStencil { stencil, mesh: self.mesh.clone(), over: self.over, writes }
    }

    /// The phases in which it is computed: [`super::phases`].
    pub fn phases(&self) -> Vec<(Option<Direction>, MeshStencil)> {
        let phases = phases(&self.stencil).into_iter();
        phases.map(|Phase { direction, stencil }| (direction, self.of_stores(stencil))).collect()
    }

    /// A part of it, with some of its stores.
    pub fn of_stores(&self, stencil: Stencil) -> MeshStencil {
        // Each number is assigned once, and the parts of a field come in order, so the field and its sweep tell stores apart.
        let mut left: Vec<(&Store, &Write)> = self.stores().collect();
        let mut write = |store: &Store| {
            let at = left.iter().position(|(own, _)| (own.field, own.sweep) == (store.field, store.sweep));
            at.map(|at| left.remove(at).1.clone()).unwrap_or_default()
        };
        let writes = stencil.stores.iter().map(&mut write).collect();
        MeshStencil { stencil, mesh: self.mesh.clone(), over: self.over, writes }
    }
}

impl Fold {
    /// What nothing comes to.
    pub fn empty(self, kind: Kind) -> f64 {
        match (self, kind) {
            (Fold::Sum, _) => 0.0,
            (Fold::Min, Kind::Real | Kind::Bool) => f64::INFINITY,
            (Fold::Max, Kind::Real | Kind::Bool) => f64::NEG_INFINITY,
            (Fold::Min, Kind::Int) => f64::from(i32::MAX),
            (Fold::Max, Kind::Int) => f64::from(i32::MIN),
        }
    }
}
