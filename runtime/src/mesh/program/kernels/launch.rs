//! Calls: the arrays that one works on, and the launches of its kernels.

use super::super::fold::{self, Folds};
use super::arrays::{Array, padded};
use super::prepare::{Prepared, Ready};
use super::{Kernels, narrow};
use crate::array::Data;
use crate::build::Build;
use crate::driver::Arrays;
use crate::machine::{Arg, Launch, Machine};
use crate::problem::element_of;
use crate::{Element, Error, Result};
use std::ops::Range;
use std::rc::Rc;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::mesh::{Fold, How, Zones};
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Field, FieldId, Handle, Kind, Levels, MeshStencil, Precision, Role};
use stencilc_compiler::kernel::machine::set_to_zero;
use stencilc_compiler::kernel::{Meaning, MeshData};
use stencilc_compiler::mesh::{self as printed, Items};

/// Threads of a block that sets an array to zeros.
const CLEARING: u32 = 256;

/// What a call works on.
struct Work<'a, M: Machine> {
    computed: Range<usize>,
    reads: &'a [(FieldId, &'a Array<M>)],
    writes: &'a [(FieldId, &'a Array<M>)],
    leaves: Vec<Leaves<M>>,
    /// By group: what elements add, between two steps.
    between: Vec<(usize, Array<M>)>,
}

/// Numbers that are to be folded.
pub(super) struct Leaves<M: Machine> {
    pub(super) field: FieldId,
    fold: Fold,
    count: usize,
    pub(super) numbers: Array<M>,
}

impl<M: Machine> Work<'_, M> {
    fn given(&self, field: FieldId) -> Result<&Array<M>> {
        let own = self.reads.iter().find(|(own, _)| *own == field).map(|(_, array)| *array);
        own.ok_or_else(|| Error::check(format!("field {} has no array", field.index())))
    }

    fn output(&self, field: FieldId) -> Result<&Array<M>> {
        let own = self.writes.iter().find(|(own, _)| *own == field).map(|(_, array)| *array);
        own.ok_or_else(|| Error::check(format!("output {} has no array", field.index())))
    }
}

impl<M: Build> Kernels<M> {
    /// Computes a call: launches its kernels.
    pub(super) fn call(&self, call: &Call, params: &[Value], arrays: Arrays<Array<M>>) -> Result<()> {
        // What the call before has left is folded, and its arrays are free: so a loop takes no others later than at first.
        self.left.iter().for_each(|left| left.borrow_mut().clear());
        let stages = self.problem.stages(call.stencil);
        let computed = self.problem.computed(call.stencil, params)?;
        // Those of all stages.
        let fields = &stages[0].stencil.fields;
        let is_zero = |id: FieldId, own: &Field| own.role == Role::Inc && call.fields[id.index()].read.is_none();
        let from_zero: Vec<bool> = fields.iter().map(|(id, own)| is_zero(id, own)).collect();
        let prepared = self.prepared(&(call.stencil, computed.clone(), from_zero))?;
        let Arrays { reads, writes } = arrays;
        let unseen = self.unseen(call, arrays)?;
        let writes = [writes, &unseen.iter().map(|(field, array)| (*field, array)).collect::<Vec<_>>()].concat();
        let mut work = Work { computed, reads, writes: &writes, leaves: Vec::new(), between: Vec::new() };
        for stencil in stages {
            let own = self.renumbered.bound.range(stencil.set(), stencil.stencil.zones);
            let count = own.len() * work.computed.len();
            for (store, write) in stencil.stores() {
                if let How::Reduce(fold) = write.how {
                    let element = element_of(fields[store.field].stored, self.problem.precision);
                    let numbers = self.array(element, count)?;
                    work.leaves.push(Leaves { field: store.field, fold, count, numbers });
                }
            }
        }
        self.add_between(&prepared, &stages[0], &mut work)?;
        for (field, array) in &writes {
            let own = &fields[*field];
            let in_place = prepared.kernels.iter().any(|ready| ready.lowered.in_place.contains(field));
            let levels = own.place.levels;
            let is_whole = levels == Levels::None || work.computed.len() == levels.count(self.problem.levels);
            if is_zero(*field, own) && (in_place || !is_whole) {
                self.clear(array)?;
            }
        }
        for ready in &prepared.kernels {
            self.launch(ready, &work, params)?;
        }
        if let Some(left) = &self.left {
            left.replace(work.leaves);
            return Ok(());
        }
        for Leaves { field, fold, count, numbers } in &work.leaves {
            self.fold(*fold, numbers, *count, work.output(*field)?)?;
        }
        Ok(())
    }

    /// Arrays for what a call computes and nobody looks at.
    fn unseen(&self, call: &Call, Arrays { reads, writes }: Arrays<Array<M>>) -> Result<Vec<(FieldId, Array<M>)>> {
        let mut unseen = Vec::new();
        for (id, own) in self.problem.stages(call.stencil)[0].stencil.fields.iter() {
            let is_known = writes.iter().any(|(field, _)| *field == id) || self.problem.is_passed_on(call, id);
            if !own.role.is_written() || is_known {
                continue;
            }
            let array = self.array(element_of(own.stored, self.problem.precision), self.len(own.place))?;
            // What is added to it is added to what there is, and what changes in place is there.
            if let Some((_, before)) = reads.iter().find(|(field, _)| *field == id) {
                self.machine.copy(before.buffer()?, array.buffer()?)?;
            }
            unseen.push((id, array));
        }
        Ok(unseen)
    }

    /// Arrays for what goes between two steps.
    fn add_between(&self, prepared: &Prepared<M>, stencil: &MeshStencil, work: &mut Work<M>) -> Result<()> {
        for ready in &prepared.kernels {
            for meaning in ready.lowered.code.meanings() {
                if let &Meaning::Mesh(MeshData::Between(group)) = meaning
                    && work.between.iter().all(|(own, _)| *own != group)
                {
                    let (values, kind) = printed::Group::between(stencil, group);
                    let element = match (kind, self.problem.precision) {
                        (Kind::Int, _) => Element::I32,
                        (Kind::Bool, _) => Element::Bool,
                        (Kind::Real, Precision::F32) => Element::F32,
                        (Kind::Real, Precision::F64) => Element::F64,
                    };
                    let count = self.renumbered.bound.size(stencil.set()) * work.computed.len() * values;
                    work.between.push((group, self.array(element, count)?));
                }
            }
        }
        Ok(())
    }

    /// Sets an array to zeros.
    fn clear(&self, array: &Array<M>) -> Result<()> {
        if self.zero.borrow().is_none() {
            let zero = set_to_zero(CLEARING);
            self.zero.replace(Some(Rc::new(self.build(&zero.name, &cuda::text(&zero)?)?)));
        }
        let zero = self.zero.borrow();
        let Some(kernel) = zero.as_ref() else { return Ok(()) };
        let n = array.bytes / 16;
        let launch = Launch::new([n.div_ceil(CLEARING as usize) as u32, 1, 1], [CLEARING, 1, 1]);
        let args = [Arg::Pointer(self.machine.address(array.buffer()?, 0)), Arg::I32(narrow(n)?)];
        self.machine.launch(kernel, &launch, &args)
    }

    /// What numbers come to, neighbours made one pairwise.
    pub(super) fn fold(&self, fold: Fold, leaves: &Array<M>, mut n: usize, result: &Array<M>) -> Result<()> {
        let folds = if self.machine.is_cpu() { Folds::Turns } else { Folds::Blocks };
        let kernel = self.folder(folds, fold)?;
        if n == 0 {
            let nothing = Data::single(leaves.element, Value::Real(fold.empty(Kind::Real)));
            return self.machine.write(result.buffer()?, &padded(&nothing));
        }
        let mut before: Option<Array<M>> = None;
        // At least once, so that the result has an array of its own.
        loop {
            let blocks = n.div_ceil(fold::NUMBERS);
            let to = if blocks > 1 { Some(self.array(leaves.element, blocks)?) } else { None };
            let address = |array: &Array<M>| Ok::<_, Error>(Arg::Pointer(self.machine.address(array.buffer()?, 0)));
            let launch = Launch::new([narrow(blocks)? as u32, 1, 1], [folds.threads(), 1, 1]);
            let (from, into) = (before.as_ref().unwrap_or(leaves), to.as_ref().unwrap_or(result));
            self.machine.launch(&kernel, &launch, &[address(from)?, address(into)?, Arg::I32(narrow(n)?)])?;
            if blocks == 1 {
                return Ok(());
            }
            (before, n) = (to, blocks);
        }
    }

    /// The kernel that folds.
    pub(super) fn folder(&self, folds: Folds, fold: Fold) -> Result<Rc<M::Kernel>> {
        if let Some(known) = self.folds.borrow().get(&(folds, fold.name())) {
            return Ok(Rc::clone(known));
        }
        let precision = self.problem.precision;
        let text = fold::text(folds, fold, precision)?;
        let kernel = Rc::new(self.build(&fold::name(folds, fold, precision), &text)?);
        self.folds.borrow_mut().insert((folds, fold.name()), Rc::clone(&kernel));
        Ok(kernel)
    }

    /// Launches a kernel.
    fn launch(&self, ready: &Ready<M>, work: &Work<M>, params: &[Value]) -> Result<()> {
        let column = ready.lowered.threads_of_column;
        let levels = if column.is_some() { 1 } else { work.computed.len().div_ceil(ready.lowered.slice) };
        for items in &ready.items {
            if items.is_empty() {
                continue;
            }
            let mut args = Vec::new();
            // Kept until the launch.
            let mut held = Vec::new();
            for meaning in ready.lowered.code.meanings() {
                let address = |buffer: &M::Buffer| Arg::Pointer(self.machine.address(buffer, 0));
                args.push(match meaning {
                    Meaning::Input(field) => address(work.given(*field)?.buffer()?),
                    Meaning::Output(field) => address(work.output(*field)?.buffer()?),
                    Meaning::Param(param) => match (params[param.index()], self.problem.precision) {
                        (Value::Real(x), Precision::F32) => Arg::F32(x as f32),
                        (Value::Real(x), Precision::F64) => Arg::F64(x),
                        (Value::Int(x), _) => Arg::I32(x),
                        (Value::Bool(x), _) => Arg::U8(x.into()),
                    },
                    Meaning::Mesh(MeshData::Map(map)) => {
                        let map = self.map(*map)?;
                        let arg = address(&map);
                        held.push(map);
                        arg
                    }
                    Meaning::Mesh(MeshData::Size(set)) => Arg::I32(narrow(self.renumbered.bound.size(*set))?),
                    Meaning::Mesh(MeshData::Zone(set, zone)) => {
                        let first = self.renumbered.bound.range(*set, Some(Zones { first: *zone, last: *zone })).start;
                        Arg::I32(narrow(first)?)
                    }
                    Meaning::Mesh(MeshData::Items) => Arg::I32(narrow(items.len())?),
                    Meaning::Mesh(MeshData::First) => Arg::I32(narrow(items.start)?),
                    Meaning::Mesh(MeshData::Table(..) | MeshData::Piece(_)) => {
                        let table = ready.tables.iter().find(|(own, _)| own == meaning);
                        address(table.map(|(_, buffer)| &**buffer).ok_or_else(|| Error::check("a table is missing"))?)
                    }
                    Meaning::Mesh(MeshData::Leaves(field)) => {
                        let leaves = work.leaves.iter().find(|own| own.field == *field);
                        address(leaves.ok_or_else(|| Error::check("a fold has no array"))?.numbers.buffer()?)
                    }
                    Meaning::Mesh(MeshData::Users(set, zones)) => {
                        let users = self.users_of(*set, *zones)?;
                        let arg = address(&users);
                        held.push(users);
                        arg
                    }
                    Meaning::Mesh(MeshData::Between(group)) => {
                        let own = work.between.iter().find(|(own, _)| own == group).map(|(_, array)| array);
                        address(own.ok_or_else(|| Error::check("what goes between two steps has no array"))?.buffer()?)
                    }
                    Meaning::Documented
                    | Meaning::Table(_)
                    | Meaning::Report
                    | Meaning::Columns
                    | Meaning::Size(_)
                    | Meaning::Step(_) => {
                        return Err(Error::check("a kernel over a mesh takes what only grids have"));
                    }
                });
            }
            let block = ready.lowered.code.threads;
            let each = ready.lowered.items_of_thread;
            let blocks = match ready.lowered.items {
                Items::Pieces { .. } => items.len(),
                Items::Set(..) | Items::Targets(_) | Items::Colours(_) => {
                    // Threads count in 32 bits, those of the last block that have nothing to do among them.
                    let threads = items.len().div_ceil(each) * column.unwrap_or(1);
                    narrow(threads.next_multiple_of(block as usize))?;
                    threads.div_ceil(block as usize)
                }
            };
            let grid = [narrow(blocks)? as u32, levels as u32, 1];
            let shared = narrow(ready.lowered.code.dynamic_bytes())?;
            let launch = Launch { shared: shared as u32, ..Launch::new(grid, [block, 1, 1]) };
            self.machine.launch(&ready.kernel, &launch, &args)?;
        }
        Ok(())
    }
}
