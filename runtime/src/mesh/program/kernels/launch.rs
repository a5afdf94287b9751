//! Calls: the arrays that one works on, and the launches of its kernels.

use super::super::driver::{Given, single};
use super::super::fold;
use super::arrays::{Array, padded};
use super::prepare::{Prepared, Ready};
use super::{Kernels, narrow};
use crate::array::Data;
use crate::machine::{Arg, Launch, Machine};
use crate::problem::element_of;
use crate::{Element, Error, Result};
use std::ops::Range;
use std::rc::Rc;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::mesh::{Fold, How};
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{FieldId, Handle, Kind, Levels, Precision, Role};
use stencilc_compiler::kernel::machine::set_to_zero;
use stencilc_compiler::kernel::{Meaning, MeshData};
use stencilc_compiler::mesh::{self as printed, Items};

/// Threads of a block that sets an array to zeros.
const CLEARING: u32 = 256;

/// The arrays of a call.
struct Arrays<M: Machine> {
    computed: Range<usize>,
    given: Given<Array<M>>,
    outputs: Given<Array<M>>,
    leaves: Vec<Leaves<M>>,
    /// By group: what elements add, between two steps.
    between: Vec<(usize, Array<M>)>,
}

/// Numbers that are to be folded.
struct Leaves<M: Machine> {
    field: FieldId,
    fold: Fold,
    count: usize,
    numbers: Rc<Array<M>>,
}

/// A call that can be computed, once or several times.
pub(super) struct Opened<M: Machine> {
    prepared: Rc<Prepared<M>>,
    arrays: Arrays<M>,
    /// Fields that are set to zero before.
    cleared: Vec<FieldId>,
}

impl<M: Machine> Arrays<M> {
    fn given(&self, field: FieldId) -> Result<&Array<M>> {
        let own = self.given[field.index()].as_deref();
        own.ok_or_else(|| Error::call(format!("field {} has no array", field.index())))
    }

    fn output(&self, field: FieldId) -> Result<&Array<M>> {
        let own = self.outputs[field.index()].as_deref();
        own.ok_or_else(|| Error::check(format!("output {} has no array", field.index())))
    }
}

impl<M: Machine> Kernels<'_, M> {
    /// What a call works on.
    pub(super) fn open(&self, call: &Call, params: &[Value], mut given: Given<Array<M>>) -> Result<Opened<M>> {
        let stages = self.problem.stages(call.stencil);
        let computed = self.problem.computed(call.stencil, params)?;
        // Those of all stages.
        let fields = &stages[0].stencil.fields;
        let from_zero: Vec<bool> =
            fields.iter().map(|(id, own)| own.role == Role::Inc && given[id.index()].is_none()).collect();
        let prepared = self.prepared(&(call.stencil, computed.clone(), from_zero.clone()))?;
        let precision = self.problem.precision;
        let (mut outputs, mut cleared): (Given<Array<M>>, _) = (Vec::new(), Vec::new());
        for (id, own) in fields.iter() {
            let element = element_of(own.stored, precision);
            let in_place = prepared.kernels.iter().any(|ready| ready.lowered.in_place.contains(&id));
            // Levels that are not computed keep what was there.
            let is_whole =
                own.place.levels == Levels::None || computed.len() == own.place.levels.count(self.problem.levels);
            outputs.push(match own.role {
                Role::In | Role::Carried | Role::Reduce => None,
                Role::Inc => match given[id.index()].take() {
                    Some(before) => Some(match Rc::try_unwrap(before) {
                        Ok(mine) => Rc::new(mine),
                        Err(shared) => {
                            let copy = self.array(element, self.len(own.place))?;
                            self.machine.copy(shared.buffer()?, copy.buffer()?)?;
                            Rc::new(copy)
                        }
                    }),
                    None if self.problem.is_internal(call.stencil, id) => None,
                    None => {
                        let fresh = self.array(element, self.len(own.place))?;
                        if in_place || !is_whole {
                            cleared.push(id);
                        }
                        Some(Rc::new(fresh))
                    }
                },
                Role::Out if self.problem.is_internal(call.stencil, id) => None,
                Role::Out | Role::InOut => {
                    let fresh = self.array(element, self.len(own.place))?;
                    match &given[id.index()] {
                        _ if is_whole => {}
                        Some(before) => self.machine.copy(before.buffer()?, fresh.buffer()?)?,
                        None => {
                            let nothing = Data::fresh(element, self.len(own.place));
                            self.machine.write(fresh.buffer()?, &padded(&nothing))?;
                        }
                    }
                    Some(Rc::new(fresh))
                }
            });
        }
        let mut arrays = Arrays { computed, given, outputs, leaves: Vec::new(), between: Vec::new() };
        for stencil in stages {
            let count = self.renumbered.bound.size(stencil.set()) * arrays.computed.len();
            for (store, write) in stencil.stores() {
                if let How::Reduce(fold) = write.how {
                    let element = element_of(fields[store.field].stored, precision);
                    let numbers = Rc::new(self.array(element, count)?);
                    arrays.leaves.push(Leaves { field: store.field, fold, count, numbers });
                }
            }
        }
        for ready in &prepared.kernels {
            for meaning in ready.lowered.code.meanings() {
                if let &Meaning::Mesh(MeshData::Between(group)) = meaning
                    && arrays.between.iter().all(|(own, _)| *own != group)
                {
                    let (stencil, levels) = (&stages[0], arrays.computed.len());
                    let (values, kind) = printed::Group::between(stencil, group);
                    let element = match (kind, precision) {
                        (Kind::Int, _) => Element::I32,
                        (Kind::Bool, _) => Element::Bool,
                        (Kind::Real, Precision::F32) => Element::F32,
                        (Kind::Real, Precision::F64) => Element::F64,
                    };
                    let count = self.renumbered.bound.size(stencil.set()) * levels * values;
                    arrays.between.push((group, self.array(element, count)?));
                }
            }
        }
        Ok(Opened { prepared, arrays, cleared })
    }

    /// Launches the kernels of a call.
    pub(super) fn run(&self, opened: &Opened<M>, params: &[Value]) -> Result<Given<Array<M>>> {
        let Opened { prepared, arrays, cleared } = opened;
        for field in cleared {
            self.clear(arrays.output(*field)?)?;
        }
        for ready in &prepared.kernels {
            self.launch(ready, arrays, params)?;
        }
        let mut outputs = arrays.outputs.clone();
        for Leaves { field, fold, count, numbers } in &arrays.leaves {
            outputs[field.index()] = Some(self.folded(*fold, Rc::clone(numbers), *count)?);
        }
        Ok(outputs)
    }

    /// Sets an array to zeros.
    fn clear(&self, array: &Array<M>) -> Result<()> {
        if self.zero.borrow().is_none() {
            let zero = set_to_zero(CLEARING);
            self.zero.replace(Some(Rc::new((self.load)(&zero.name, &cuda::text(&zero)?)?)));
        }
        let zero = self.zero.borrow();
        let Some(kernel) = zero.as_ref() else { return Ok(()) };
        let n = array.bytes / 16;
        let launch = Launch::new([n.div_ceil(CLEARING as usize) as u32, 1, 1], [CLEARING, 1, 1]);
        let args = [Arg::Pointer(self.machine.address(array.buffer()?, 0)), Arg::I32(narrow(n)?)];
        self.machine.launch(kernel, &launch, &args)
    }

    /// What numbers come to, neighbours made one pairwise.
    fn folded(&self, fold: Fold, leaves: Rc<Array<M>>, mut n: usize) -> Result<Rc<Array<M>>> {
        let precision = self.problem.precision;
        if !self.folds.borrow().contains_key(fold.name()) {
            let text = fold::text(fold, precision)?;
            let kernel = Rc::new((self.load)(&fold::name(fold, precision), &text)?);
            self.folds.borrow_mut().insert(fold.name(), kernel);
        }
        let kernel = self.folds.borrow().get(fold.name()).map(Rc::clone);
        let Some(kernel) = kernel else { return Ok(leaves) };
        let mut from = leaves;
        if n == 0 {
            let nothing = self.array(from.element, 1)?;
            self.machine
                .write(nothing.buffer()?, &padded(&single(from.element, Value::Real(fold.empty(Kind::Real)))))?;
            return Ok(Rc::new(nothing));
        }
        // At least once, so that the result has an array of its own.
        loop {
            let blocks = n.div_ceil(fold::NUMBERS);
            let to = self.array(from.element, blocks)?;
            let address = |array: &Array<M>| Ok::<_, Error>(Arg::Pointer(self.machine.address(array.buffer()?, 0)));
            let launch = Launch::new([narrow(blocks)? as u32, 1, 1], [fold::BLOCK, 1, 1]);
            self.machine.launch(&kernel, &launch, &[address(&from)?, address(&to)?, Arg::I32(narrow(n)?)])?;
            (from, n) = (Rc::new(to), blocks);
            if n == 1 {
                return Ok(from);
            }
        }
    }

    /// Launches a kernel.
    fn launch(&self, ready: &Ready<M>, arrays: &Arrays<M>, params: &[Value]) -> Result<()> {
        let levels = arrays.computed.len();
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
                    Meaning::Input(field) => address(arrays.given(*field)?.buffer()?),
                    Meaning::Output(field) => address(arrays.output(*field)?.buffer()?),
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
                    Meaning::Mesh(MeshData::Items) => Arg::I32(narrow(items.len())?),
                    Meaning::Mesh(MeshData::First) => Arg::I32(narrow(items.start)?),
                    Meaning::Mesh(MeshData::Table(..) | MeshData::Piece(_)) => {
                        let table = ready.tables.iter().find(|(own, _)| own == meaning);
                        address(table.map(|(_, buffer)| buffer).ok_or_else(|| Error::check("a table is missing"))?)
                    }
                    Meaning::Mesh(MeshData::Leaves(field)) => {
                        let leaves = arrays.leaves.iter().find(|own| own.field == *field);
                        address(leaves.ok_or_else(|| Error::check("a fold has no array"))?.numbers.buffer()?)
                    }
                    Meaning::Mesh(MeshData::Users(set)) => {
                        let users = self.users_of(*set)?;
                        let arg = address(&users);
                        held.push(users);
                        arg
                    }
                    Meaning::Mesh(MeshData::Between(group)) => {
                        let own = arrays.between.iter().find(|(own, _)| own == group).map(|(_, array)| array);
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
            let (blocks, shared) = match ready.lowered.items {
                Items::Pieces { shared, .. } => (items.len(), shared),
                Items::Set(_) | Items::Targets(_) | Items::Colours(_) => {
                    (items.len().div_ceil(block as usize * ready.lowered.each), 0)
                }
            };
            let grid = [narrow(blocks)? as u32, levels as u32, 1];
            let launch = Launch { shared: narrow(shared)? as u32, ..Launch::new(grid, [block, 1, 1]) };
            self.machine.launch(&ready.kernel, &launch, &args)?;
        }
        Ok(())
    }
}
