//! What is made once for all calls that are alike: kernels, and the tables that they take.

use super::super::pieces::Pieces;
use super::super::tables::InverseMap;
use super::{Constant, Kernels};
use crate::build::Build;
use crate::machine::Machine;
use crate::{Error, Result};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::mesh::Zones;
use stencilc_compiler::ir::{MapId, SetId};
use stencilc_compiler::kernel::{Meaning, MeshData, MeshTable};
use stencilc_compiler::mesh::{Items, Kernel};

/// What kernels of a call depend on: the stencil or chain, the levels, and which increments start from 0.
pub(super) type Key = (usize, Range<usize>, Vec<bool>);

/// The kernels of a call.
pub(super) struct Prepared<M: Machine> {
    pub(super) kernels: Vec<Ready<M>>,
}

/// A kernel and its tables.
pub(super) struct Ready<M: Machine> {
    pub(super) lowered: Kernel,
    pub(super) kernel: M::Kernel,
    pub(super) tables: Vec<(Meaning, Rc<M::Buffer>)>,
    /// The items of each launch.
    pub(super) items: Vec<Range<usize>>,
}

impl<M: Build> Kernels<M> {
    /// The kernels of a call.
    pub(super) fn prepared(&self, key: &Key) -> Result<Rc<Prepared<M>>> {
        if let Some(known) = self.calls.borrow().get(key) {
            return Ok(Rc::clone(known));
        }
        let (printed, groups) = self.renumbered.printed(&self.problem, key, &self.choices)?;
        let mut kernels = Vec::new();
        for own in printed.kernels {
            let pieces = match own.items {
                Items::Pieces { group, cut, .. } => self.renumbered.pieces(&printed.groups[group], cut)?,
                Items::Set(..) | Items::Targets(_) | Items::Colours(_) => None,
            };
            kernels.push(self.ready(own, &groups, pieces.as_deref())?);
        }
        let prepared = Rc::new(Prepared { kernels });
        self.calls.borrow_mut().insert(key.clone(), Rc::clone(&prepared));
        Ok(prepared)
    }

    fn ready(&self, lowered: Kernel, groups: &[Arc<InverseMap>], pieces: Option<&Pieces>) -> Result<Ready<M>> {
        let has = |group: usize, table: MeshTable| {
            let wanted = Meaning::Mesh(MeshData::Table(group, table));
            lowered.code.meanings().any(|own| *own == wanted)
        };
        let pieces = || pieces.ok_or_else(|| Error::check("a kernel of pieces has none"));
        let items = match &lowered.items {
            Items::Set(set, zones) => one(self.renumbered.bound.range(*set, *zones)),
            Items::Targets(group) => one(0..groups[*group].targets()),
            Items::Colours(group) => {
                let colours = groups[*group].colours()?;
                colours.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).collect()
            }
            Items::Pieces { .. } => pieces()?.launches(),
        };
        let mut tables = Vec::new();
        for meaning in lowered.code.meanings() {
            let numbers = if let Meaning::Mesh(MeshData::Table(group, table)) = meaning {
                // Who knows which targets are led to has rows for those alone.
                let (is_sparse, in_rows) = (has(*group, MeshTable::Targets), !has(*group, MeshTable::Offsets));
                groups[*group].table(table, &self.renumbered.bound, is_sparse, in_rows)?
            } else if let &Meaning::Mesh(MeshData::Piece(table)) = meaning {
                let group = if let Items::Pieces { group, .. } = lowered.items { group } else { 0 };
                pieces()?.table(table, &self.renumbered.bound, !has(group, MeshTable::Offsets))
            } else {
                continue;
            };
            tables.push((meaning.clone(), self.upload_numbers("a table", &numbers)?));
        }
        let kernel = self.build(&lowered.code.name, &cuda::text(&lowered.code)?)?;
        Ok(Ready { lowered, kernel, tables, items })
    }

    /// Numbers that no kernel writes; `what` they are.
    pub(super) fn upload_numbers(&self, what: &str, numbers: &[i32]) -> Result<Rc<M::Buffer>> {
        let mut bytes = bytemuck::cast_slice(numbers).to_vec();
        bytes.resize(bytes.len().next_multiple_of(16).max(16), 0xff);
        let buffer = Rc::new(self.machine.upload(&bytes)?);
        if let Some(constants) = &self.constants {
            constants.borrow_mut().push(Constant { what: what.to_owned(), buffer: Rc::clone(&buffer), bytes });
        }
        Ok(buffer)
    }

    pub(super) fn map(&self, map: MapId) -> Result<Rc<M::Buffer>> {
        if let Some(known) = self.maps.borrow().get(&map) {
            return Ok(Rc::clone(known));
        }
        let what = format!("the map `{}`", self.problem.program.mesh.maps[map].name);
        let buffer = self.upload_numbers(&what, self.renumbered.bound.map(map).0)?;
        self.maps.borrow_mut().insert(map, Rc::clone(&buffer));
        Ok(buffer)
    }

    pub(super) fn users_of(&self, set: SetId, zones: Option<Zones>) -> Result<Rc<M::Buffer>> {
        if let Some(known) = self.numbers.borrow().get(&(set, zones)) {
            return Ok(Rc::clone(known));
        }
        let buffer = self.upload_numbers("the user's numbers of elements", &self.renumbered.users_of(set, zones))?;
        self.numbers.borrow_mut().insert((set, zones), Rc::clone(&buffer));
        Ok(buffer)
    }
}

fn one(items: Range<usize>) -> Vec<Range<usize>> {
    std::iter::once(items).collect()
}
