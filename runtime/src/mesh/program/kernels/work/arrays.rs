//! The arrays and tables that a kernel looks at, and where.

use super::super::super::tables::InverseMap;
use super::View;
use super::count::{PIECE, Threads};
use std::sync::Arc;
use stencilc_compiler::analysis::footprint::Footprint;
use stencilc_compiler::ir::mesh::How;
use stencilc_compiler::ir::{FieldId, Hop, Kind, Levels, MapId, Path};
use stencilc_compiler::kernel::{Meaning, MeshData, MeshTable, PieceTable};
use stencilc_compiler::mesh::{Cut, Group, Items, Kernel};

/// Where a thread looks at an array.
pub(super) enum At {
    /// Where hops lead from the elements that it visits.
    Hops(Vec<Vec<Hop>>),
    /// At its own target.
    Target,
    /// At the entries of its target.
    Entries,
}

/// An array that a kernel looks at.
pub(super) struct Looked {
    pub at: At,
    /// Bytes that stand together, and how often that is.
    pub chunk: usize,
    pub groups: usize,
    /// Reading is one, writing is one.
    pub passes: usize,
    /// Whether it is data that blocks may use again.
    pub is_data: bool,
}

impl View<'_> {
    /// The stores of what is written at the stencil's own elements.
    pub(super) fn own_stores(&self) -> Vec<usize> {
        let stores = self.stencil.stores().enumerate();
        stores.filter(|(_, (_, write))| !matches!(write.how, How::Add(_))).map(|(number, _)| number).collect()
    }

    /// Bytes of a field's array.
    pub(super) fn bytes(&self, field: FieldId) -> usize {
        let own = &self.stencil.stencil.fields[field];
        crate::interpreter::mesh::len(own.place, &self.renumbered.bound, self.problem.levels)
            * own.stored.bytes(self.problem.precision)
    }

    /// How the numbers of an element of a field stand for a kernel: bytes together, and how often.
    fn chunk(&self, kernel: &Kernel, field: FieldId, parts: Option<usize>) -> (usize, usize) {
        let (own, precision) = (&self.stencil.stencil.fields[field], self.problem.precision);
        let Some(home) = own.place.home else { return (0, 0) };
        let together = self.choices.layout.together(home, own.stored, precision);
        let groups = home.width as usize / together;
        let groups = parts.map_or(groups, |parts| parts.div_ceil(together).min(groups));
        let bytes = together * own.stored.bytes(precision);
        let levels = self.key.1.len();
        let is_by_column = self.choices.layout.is_by_column() && own.place.levels != Levels::None && levels > 1;
        match kernel.threads_of_column {
            // Other levels of what a block has one of stand between.
            None if is_by_column => (bytes.max(PIECE.min(bytes * levels)), groups),
            Some(_) if is_by_column => (bytes * levels, groups),
            _ => (bytes, groups),
        }
    }

    /// The arrays that a kernel looks at.
    pub(super) fn arrays(
        &self,
        kernel: &Kernel,
        footprint: &Footprint,
        group: Option<usize>,
        between: Option<usize>,
        gathers: bool,
    ) -> Vec<Looked> {
        // Levels of an element that stand together for the kernel.
        let column = if kernel.threads_of_column.is_some() { self.key.1.len() } else { 1 };
        let mut all = Vec::new();
        let takes = |wanted: Meaning| kernel.code.meanings().any(|own| *own == wanted);
        for (id, _) in self.stencil.stencil.fields.iter() {
            let reads = footprint.reads.iter().filter(|((field, _), _)| *field == id);
            let (hops, parts): (Vec<Vec<Hop>>, Vec<usize>) =
                reads.map(|((_, hops), parts)| (hops.clone(), parts.len())).unzip();
            if let Some(&parts) = parts.iter().max() {
                let (chunk, groups) = self.chunk(kernel, id, Some(parts));
                all.push(Looked { at: At::Hops(hops), chunk, groups, passes: 1, is_data: true });
            }
        }
        if let Some(number) = between {
            let (values, kind) = Group::between(self.stencil, number);
            let bytes = if kind == Kind::Real { self.problem.precision.bytes() } else { 4 };
            let paths = self.groups[number].paths.len();
            let (at, chunk) = match gathers {
                true => (At::Entries, values / paths * bytes * column),
                false => (At::Hops(vec![Vec::new()]), values * bytes * column),
            };
            all.push(Looked { at, chunk, groups: 1, passes: 1, is_data: gathers });
        }
        let mut written: Vec<(FieldId, At, usize)> = Vec::new();
        match group {
            Some(number) if gathers => {
                for field in self.groups[number].fields() {
                    let passes = if kernel.in_place.contains(&field) { 2 } else { 1 };
                    written.push((field, At::Target, passes));
                }
            }
            Some(number) if between.is_none() => {
                for field in self.groups[number].fields() {
                    let adds = self.groups[number].adds.iter().filter(|add| add.field == field);
                    let mut paths: Vec<Vec<Hop>> =
                        adds.map(|add| self.groups[number].paths[add.path].hops().to_vec()).collect();
                    paths.dedup();
                    written.push((field, At::Hops(paths), 2));
                }
            }
            Some(_) => {}
            None => {
                for store in self.own_stores() {
                    let own = &self.stencil.stencil.stores[store];
                    match self.stencil.writes[store].how {
                        // A vector is stored part by part.
                        How::Assign if written.iter().any(|(field, ..)| *field == own.field) => {}
                        How::Assign => written.push((own.field, At::Hops(vec![Vec::new()]), 1)),
                        // Written by the user's numbers, and read again.
                        How::Reduce(_) => {
                            let chunk = self.problem.precision.bytes() * column;
                            let at = || At::Hops(vec![Vec::new()]);
                            all.push(Looked { at: at(), chunk, groups: 1, passes: 2, is_data: false });
                            all.push(Looked { at: at(), chunk: 4, groups: 1, passes: 1, is_data: false });
                        }
                        How::Add(_) => {}
                    }
                }
            }
        }
        for (field, at, passes) in written {
            let (chunk, groups) = self.chunk(kernel, field, None);
            all.push(Looked { at, chunk, groups, passes, is_data: true });
        }
        // Rows of maps, where the elements before them are.
        let adds = group.filter(|_| !gathers && between.is_none()).map(|number| &self.groups[number].paths);
        let adds = adds.into_iter().flatten().map(Path::hops);
        let mut rows: Vec<(MapId, Vec<Hop>)> = Vec::new();
        for way in footprint.ways().chain(adds) {
            for (before, hop) in way.iter().enumerate() {
                let row = (hop.map, way[..before].to_vec());
                // Pieces have those of their elements in tables of their own.
                let in_pieces = before == 0 && takes(Meaning::Mesh(MeshData::Piece(PieceTable::Rows(hop.map))));
                if takes(Meaning::Mesh(MeshData::Map(hop.map))) && !in_pieces && !rows.contains(&row) {
                    rows.push(row);
                }
            }
        }
        for (map, before) in rows {
            let chunk = 4 * self.stencil.mesh.maps[map].arity as usize;
            all.push(Looked { at: At::Hops(vec![before]), chunk, groups: 1, passes: 1, is_data: false });
        }
        all
    }

    /// Bytes of the tables that a kernel takes.
    pub(super) fn tables(&self, kernel: &Kernel, groups: &[Arc<InverseMap>], threads: &Threads) -> usize {
        let has = |wanted: MeshTable| {
            kernel.code.meanings().any(|own| matches!(own, Meaning::Mesh(MeshData::Table(_, own)) if *own == wanted))
        };
        let rows = |inverse: &InverseMap| match matches!(
            kernel.items,
            Items::Targets(_) | Items::Pieces { cut: Cut::Tiles { is_sparse: true, .. }, .. }
        ) {
            true => inverse.targets(),
            false => inverse.all_targets(),
        };
        let numbers = kernel.code.meanings().map(|own| match own {
            Meaning::Mesh(MeshData::Table(group, MeshTable::Targets)) => groups[*group].targets(),
            Meaning::Mesh(MeshData::Table(group, MeshTable::Offsets)) => rows(&groups[*group]) + 1,
            Meaning::Mesh(MeshData::Table(_, MeshTable::Coloured)) => self.size(self.stencil.set()),
            Meaning::Mesh(MeshData::Table(group, MeshTable::Entries | MeshTable::Others | MeshTable::Leaf(_)))
                if has(MeshTable::Offsets) =>
            {
                groups[*group].count()
            }
            Meaning::Mesh(MeshData::Table(group, MeshTable::Entries | MeshTable::Others | MeshTable::Leaf(_))) => {
                rows(&groups[*group]) * groups[*group].degrees().max
            }
            Meaning::Mesh(MeshData::Table(group, MeshTable::Dictionary(paths))) => {
                rows(&groups[*group]) * groups[*group].shape(&self.renumbered.bound, paths).entries
            }
            Meaning::Mesh(MeshData::Table(group, MeshTable::Codes(paths))) => {
                let shape = groups[*group].shape(&self.renumbered.bound, paths);
                (rows(&groups[*group]) * shape.words()).div_ceil(if shape.is_short() { 2 } else { 1 })
            }
            Meaning::Mesh(MeshData::Piece(table)) => match threads {
                Threads::Pieces(pieces, _) => {
                    pieces.table(*table, &self.renumbered.bound, !has(MeshTable::Offsets)).len()
                }
                Threads::Elements | Threads::Coloured(_) | Threads::Targets(..) => 0,
            },
            _ => 0,
        });
        4 * numbers.sum::<usize>()
    }

    pub(super) fn map_bytes(&self, kernel: &Kernel) -> usize {
        let of = |own: &Meaning| {
            if let Meaning::Mesh(MeshData::Map(map)) = own { 4 * self.renumbered.bound.map(*map).0.len() } else { 0 }
        };
        kernel.code.meanings().map(of).sum()
    }
}
