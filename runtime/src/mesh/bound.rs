//! A mesh of a file, as a mesh of stencils declares it.

use super::zone::{self, Zoned};
use super::{HOLE, Map, Mesh};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::ir::mesh::{Missing, Zones};
use stencilc_compiler::ir::{Handle, Hop, MapId, Mesh as Declared, SetId};

/// The sets and maps that a mesh of stencils declares.
#[derive(Clone, Debug)]
pub struct Bound {
    sizes: Vec<usize>,
    maps: Vec<(Arc<[i32]>, usize)>,
    /// By set, its zones; nothing of a set that has none.
    zones: Vec<Option<Zoned>>,
}

impl Bound {
    /// Finds what `declared` names in `mesh`, whose indices are checked.
    ///
    /// # Errors
    /// A set or map is missing, leads elsewhere, has another number of slots, or has holes and must not.
    pub fn new(declared: &Declared, mesh: &Mesh) -> Result<Self> {
        let (mut sizes, mut zones) = (Vec::new(), Vec::new());
        for (_, set) in declared.sets.iter() {
            let found = mesh.set_named(&set.name).ok_or_else(|| {
                let names: Vec<&str> = mesh.sets.iter().map(|set| set.name.as_str()).collect();
                let what =
                    format!("{} has no set `{}`, which the mesh `{}` declares", mesh.origin, set.name, declared.name);
                Error::input(what).help(match guess(&set.name, names.iter().copied()) {
                    Some(guess) => format!("did you mean `{guess}`?"),
                    None => format!("its sets are {}", names.join(", ")),
                })
            })?;
            sizes.push(mesh.sets[found].size);
            zones.push(zone::of_set(declared, set, mesh, found)?);
        }
        let maps = declared.maps.handles().map(|map| find(declared, map, mesh)).collect::<Result<_>>()?;
        Ok(Self { sizes, maps, zones })
    }

    /// A hash of the sizes of the sets and of the maps.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        self.sizes.iter().for_each(|&size| _ = hasher.update(&(size as u64).to_le_bytes()));
        for (table, arity) in &self.maps {
            hasher.update(&(*arity as u64).to_le_bytes()).update(bytemuck::cast_slice(table));
        }
        self.zones.iter().flatten().for_each(|own| _ = hasher.update(&own.of));
        hasher.finalize().to_hex().to_string()
    }

    /// How many elements a set has.
    pub fn size(&self, set: SetId) -> usize {
        self.sizes[set.index()]
    }

    /// The zone of an element, by its number; 0 in a set without zones.
    pub fn zone(&self, set: SetId, element: usize) -> u8 {
        self.zones[set.index()].as_ref().map_or(0, |own| own.of[element])
    }

    /// The elements of some zones of a set, or of all; they follow each other in a mesh that is in order of its zones.
    pub fn range(&self, set: SetId, zones: Option<Zones>) -> Range<usize> {
        match (zones, &self.zones[set.index()]) {
            (Some(Zones { first, last }), Some(own)) => {
                own.starts[usize::from(first)]..own.starts[usize::from(last) + 1]
            }
            (None, _) | (_, None) => 0..self.size(set),
        }
    }

    /// The table of a map, and how many slots it has.
    pub fn map(&self, map: MapId) -> (&[i32], usize) {
        let (table, arity) = &self.maps[map.index()];
        (table, *arity)
    }

    /// Where a slot of a map leads, from an element; [`HOLE`] from a hole.
    pub fn hop(&self, element: i32, hop: Hop) -> i32 {
        let (table, arity) = self.map(hop.map);
        usize::try_from(element).map_or(HOLE, |element| table[element * arity + hop.slot as usize])
    }

    /// Where hops lead, from an element.
    pub fn walk(&self, element: i32, hops: &[Hop]) -> i32 {
        hops.iter().fold(element, |element, &hop| self.hop(element, hop))
    }
}

fn find(declared: &Declared, id: MapId, mesh: &Mesh) -> Result<(Arc<[i32]>, usize)> {
    let map = &declared.maps[id];
    let (name, to) = (declared.full_name(id), &declared.sets[map.to].name);
    let set = mesh.set_named(&declared.sets[map.from].name);
    let Some(found) = set.and_then(|set| mesh.map_named(set, &map.name)).map(|found| &mesh.maps[found]) else {
        let names: Vec<String> = mesh.maps.iter().map(|map| mesh.full_name(map)).collect();
        let what = format!("{} has no map `{name}`, which the mesh `{}` declares", mesh.origin, declared.name);
        // What leads from the same set to the same one is likelier than what is written alike.
        let is_alike = |other: &&Map| {
            let ends = |from: usize, to: usize| (&mesh.sets[from].name, &mesh.sets[to].name);
            ends(other.from, other.to) == (&declared.sets[map.from].name, to) && other.arity == map.arity as usize
        };
        let alike: Vec<&Map> = mesh.maps.iter().filter(is_alike).collect();
        let near = match alike.as_slice() {
            [only] => Some(mesh.full_name(only)),
            _ => guess(&name, names.iter().map(String::as_str)).map(str::to_owned),
        };
        return Err(Error::input(what).help(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it has no maps".to_owned(),
            None => format!("its maps are {}", names.join(", ")),
        }));
    };
    if mesh.sets[found.to].name != *to {
        return Err(Error::input(format!(
            "the map `{name}` of {} leads to `{}`; the mesh `{}` says `{to}`",
            mesh.origin, mesh.sets[found.to].name, declared.name
        ))
        .help(format!("declare it as `map {name} -> {}[{}]`", mesh.sets[found.to].name, found.arity)));
    }
    if found.arity != map.arity as usize {
        return Err(Error::input(format!(
            "the map `{name}` of {} has {} slots; the mesh `{}` says {}",
            mesh.origin, found.arity, declared.name, map.arity
        ))
        .help(format!("declare it as `map {name} -> {to}[{}]`", found.arity)));
    }
    if map.missing == Missing::Never
        && let Some(hole) = found.table.iter().position(|&to| to == HOLE)
    {
        let (row, slot) = (hole / found.arity, hole % found.arity);
        let many = found.holes();
        return Err(Error::input(format!(
            "the map `{name}` of {} has {many} hole{}, and the mesh `{}` does not say what they mean: the first is row {row}, slot {slot}",
            mesh.origin,
            if many == 1 { "" } else { "s" },
            declared.name
        ))
        .help(format!(
            "declare it as `map {name} -> {to}[{0}] missing skip` to leave holes out of sums, or `missing value(0)` to read a number \
             through them",
            found.arity
        )));
    }
    Ok((found.table.as_slice().into(), found.arity))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencilc_compiler::source::Source;

    /// Two triangles with an edge between them, and the edges around.
    fn mesh() -> Mesh {
        let mut mesh = Mesh { origin: "two.npz".to_owned(), ..Mesh::default() };
        let (node, edge, cell) = (mesh.add_set("node", 4), mesh.add_set("edge", 5), mesh.add_set("cell", 2));
        mesh.add_map(edge, "nodes", node, 2, vec![0, 1, 1, 2, 2, 0, 2, 3, 3, 1]);
        mesh.add_map(edge, "cells", cell, 2, vec![0, HOLE, 0, 1, 0, HOLE, 1, HOLE, 1, HOLE]);
        mesh.add_map(cell, "nodes", node, 3, vec![0, 1, 2, 1, 3, 2]);
        mesh
    }

    /// What is said of a mesh that is declared so.
    fn said(parts: &str) -> String {
        let text = format!("mesh two {{ {parts} }}\nstencil s over two.cell {{ in a; out b; b = a }}\n");
        let lowered = stencilc_compiler::check(&Source::new("two.stn", text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        match Bound::new(&lowered.meshes[0], &mesh()) {
            Ok(_) => String::new(),
            Err(error) => format!("{}\n{}", error.message, error.help.unwrap_or_default()),
        }
    }

    #[test]
    fn what_the_file_has_may_be_declared_in_part() {
        for parts in [
            "set cell",
            "set cell, node; map cell.nodes -> node[3]",
            "set cell, node, edge; map edge.cells -> cell[2] missing skip; map edge.nodes -> node[2]",
            "set cell, edge; map edge.cells -> cell[2] missing value(0)",
        ] {
            assert_eq!(said(parts), "", "{parts}");
        }
    }

    #[test]
    fn what_the_file_has_not_is_told() {
        for (parts, wanted) in [
            ("set cell, nodes", "two.npz has no set `nodes`, which the mesh `two` declares\ndid you mean `node`?"),
            (
                "set cell, vertex",
                "two.npz has no set `vertex`, which the mesh `two` declares\nits sets are node, edge, cell",
            ),
            (
                "set cell, node; map cell.node -> node[3]",
                "two.npz has no map `cell.node`, which the mesh `two` declares\ndid you mean `cell.nodes`?",
            ),
            (
                "set cell, edge; map cell.neighbours -> edge[3]",
                "two.npz has no map `cell.neighbours`, which the mesh `two` declares\nits maps are edge.nodes, edge.cells, cell.nodes",
            ),
            // One that leads to the same set, rather than one that is written alike.
            (
                "set cell, edge; map edge.nodex -> cell[2] missing skip",
                "two.npz has no map `edge.nodex`, which the mesh `two` declares\ndid you mean `edge.cells`?",
            ),
            (
                "set cell, node; map cell.nodes -> node[4]",
                "the map `cell.nodes` of two.npz has 3 slots; the mesh `two` says 4\ndeclare it as `map cell.nodes -> node[3]`",
            ),
            (
                "set cell, node; map cell.nodes -> cell[3]",
                "the map `cell.nodes` of two.npz leads to `node`; the mesh `two` says `cell`\n\
                 declare it as `map cell.nodes -> node[3]`",
            ),
            (
                "set cell, edge; map edge.cells -> cell[2]",
                "the map `edge.cells` of two.npz has 4 holes, and the mesh `two` does not say what they mean: the first is \
                 row 0, slot 1\ndeclare it as `map edge.cells -> cell[2] missing skip` to leave holes out of sums, or \
                 `missing value(0)` to read a number through them",
            ),
        ] {
            assert_eq!(said(parts), wanted, "{parts}");
        }
    }
}
