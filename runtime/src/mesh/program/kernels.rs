//! Kernels on a machine, as what computes the calls of a program over a mesh.
//!
//! Elements may have other numbers there than the user's: arrays are put in order on their way. Arrays that nobody looks at
//! any more are used again.

use super::driver::{Backend, Given, single};
use super::tables::Leading;
use super::{MeshProblem, fold};
use crate::array::Data;
use crate::machine::{Arg, Launch, Machine};
use crate::mesh::order::Ordering;
use crate::mesh::{Bound, Mesh};
use crate::problem::element_of;
use crate::{Element, Error, Result};
use rayon::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;
use stencilc_compiler::device::with_operations;
use stencilc_compiler::ir::mesh::{Fold, How};
use stencilc_compiler::ir::program::Call;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{
    FieldId, Handle, Kind, Levels, MapId, MeshStencil, Path, Place, Precision, Role, SetId, Stored, VariableId,
};
use stencilc_compiler::mesh::{self as printed, Choices, Degrees, Items, Kernel, Parameter, Subject, Table, What};

/// Makes a kernel of a text.
pub type Load<'a, M> = dyn Fn(&str, &str) -> Result<<M as Machine>::Kernel> + 'a;

/// Computes on a machine.
pub struct Kernels<'a, M: Machine> {
    problem: &'a MeshProblem,
    machine: &'a M,
    choices: Choices,
    load: &'a Load<'a, M>,
    placed: Rc<Placed>,
    maps: RefCell<HashMap<MapId, Rc<M::Buffer>>>,
    numbers: RefCell<HashMap<SetId, Rc<M::Buffer>>>,
    pool: Rc<Pool<M>>,
    calls: RefCell<HashMap<Key, Rc<Prepared<M>>>>,
    folds: RefCell<HashMap<&'static str, Rc<M::Kernel>>>,
    zero: RefCell<Option<Rc<M::Kernel>>>,
}

/// Who leads to which targets: from which set, along which paths.
type Led = (SetId, Vec<Path>, Rc<Leading>);

/// A mesh whose elements stand in some order on machines.
pub struct Placed {
    /// The sets and maps, with the machine's numbers.
    bound: Bound,
    /// By set: the user's number of each element.
    users: Vec<Vec<u32>>,
    /// By set: the number of each element of the user's.
    news: Vec<Vec<u32>>,
    /// What is known of increments.
    leading: RefCell<Vec<Led>>,
}

impl Placed {
    /// The elements of a problem's mesh in some order.
    ///
    /// # Errors
    /// The order is not one of the mesh.
    pub fn new(problem: &MeshProblem, ordering: &Ordering) -> Result<Self> {
        let renumbered = ordering.renumbered(&Mesh { fields: Vec::new(), ..problem.mesh.clone() });
        let declared = &problem.program.mesh;
        let bound = Bound::new(declared, &renumbered)?;
        let users = declared.sets.iter().map(|(_, set)| {
            problem.mesh.set_named(&set.name).map(|number| ordering.orders[number].clone()).unwrap_or_default()
        });
        let users: Vec<Vec<u32>> = users.collect();
        let news = users.iter().map(|users| crate::mesh::order::inverse(users)).collect();
        Ok(Self { bound, users, news, leading: RefCell::default() })
    }

    /// Who leads along paths from the elements of a set.
    fn leading(&self, from: SetId, to: SetId, paths: &[Path]) -> Result<Rc<Leading>> {
        if let Some((.., known)) = self.leading.borrow().iter().find(|(set, own, _)| *set == from && own == paths) {
            return Ok(Rc::clone(known));
        }
        let own = Rc::new(Leading::new(&self.bound, from, to, paths, &self.users[from.index()])?);
        self.leading.borrow_mut().push((from, paths.to_vec(), Rc::clone(&own)));
        Ok(own)
    }
}

/// What kernels of a call depend on: the stencil, the levels, and which increments start from 0.
type Key = (usize, Range<usize>, Vec<bool>);

/// The kernels of a call.
struct Prepared<M: Machine> {
    kernels: Vec<Ready<M>>,
}

/// A kernel and its tables.
struct Ready<M: Machine> {
    printed: Kernel,
    kernel: M::Kernel,
    tables: Vec<(Parameter, M::Buffer)>,
    /// How many items there are; of colours, the items of each.
    items: Vec<Range<usize>>,
}

/// Buffers that nobody uses, by their length.
struct Pool<M: Machine> {
    free: RefCell<BTreeMap<usize, Vec<M::Buffer>>>,
}

/// An array on a machine.
pub struct Array<M: Machine> {
    buffer: Option<M::Buffer>,
    bytes: usize,
    element: Element,
    pool: Rc<Pool<M>>,
}

impl<M: Machine> Drop for Array<M> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.free.borrow_mut().entry(self.bytes).or_default().push(buffer);
        }
    }
}

impl<M: Machine> Array<M> {
    fn buffer(&self) -> Result<&M::Buffer> {
        self.buffer.as_ref().ok_or_else(|| Error::check("an array was used after its end"))
    }
}

impl<'a, M: Machine> Kernels<'a, M> {
    /// For a problem whose elements stand in some order on the machine.
    pub fn new(
        problem: &'a MeshProblem,
        machine: &'a M,
        choices: Choices,
        placed: Rc<Placed>,
        load: &'a Load<'a, M>,
    ) -> Self {
        Self {
            problem,
            machine,
            choices,
            load,
            placed,
            maps: RefCell::default(),
            numbers: RefCell::default(),
            pool: Rc::new(Pool { free: RefCell::default() }),
            calls: RefCell::default(),
            folds: RefCell::default(),
            zero: RefCell::default(),
        }
    }

    fn array(&self, element: Element, len: usize) -> Result<Array<M>> {
        // Kernels count in 32 bits.
        narrow(len)?;
        // Some bytes more, so that an empty array has an address.
        let bytes = (len * element.bytes()).next_multiple_of(16).max(16);
        let free = self.pool.free.borrow_mut().get_mut(&bytes).and_then(Vec::pop);
        let buffer = match free {
            Some(buffer) => buffer,
            None => self.machine.upload(&vec![0; bytes])?,
        };
        Ok(Array { buffer: Some(buffer), bytes, element, pool: Rc::clone(&self.pool) })
    }

    /// How many numbers the array of a field has.
    fn len(&self, place: Place) -> usize {
        crate::interpreter::mesh::len(place, &self.placed.bound, self.problem.levels)
    }

    /// The bytes of a field's array on the machine, of its numbers in the user's order.
    fn packed(&self, place: Place, stored: Stored, data: &Data) -> Vec<u8> {
        match data {
            Data::F32(all) => bytemuck::cast_slice(&self.moved(place, stored, all, true)).to_vec(),
            Data::F64(all) => bytemuck::cast_slice(&self.moved(place, stored, all, true)).to_vec(),
            Data::I32(all) => bytemuck::cast_slice(&self.moved(place, stored, all, true)).to_vec(),
            Data::Bool(all) => self.moved(place, stored, all, true),
        }
    }

    /// The numbers of a field in the user's order, of the bytes of its array on the machine.
    fn unpacked(&self, place: Place, stored: Stored, element: Element, bytes: &[u8]) -> Data {
        match element {
            Element::F32 => {
                Data::F32(self.moved(place, stored, &bytemuck::pod_collect_to_vec::<u8, f32>(bytes), false))
            }
            Element::F64 => {
                Data::F64(self.moved(place, stored, &bytemuck::pod_collect_to_vec::<u8, f64>(bytes), false))
            }
            Element::I32 => {
                Data::I32(self.moved(place, stored, &bytemuck::pod_collect_to_vec::<u8, i32>(bytes), false))
            }
            Element::Bool => Data::Bool(self.moved(place, stored, bytes, false)),
        }
    }

    /// Numbers from the user's order to the machine's, or back.
    fn moved<T: Copy + Default + Send + Sync>(&self, place: Place, stored: Stored, from: &[T], there: bool) -> Vec<T> {
        let Some(home) = place.home else { return from.to_vec() };
        let (width, n) = (home.width as usize, self.placed.bound.size(home.set));
        let together = self.choices.layout.together(home, stored, self.problem.precision);
        let groups = width / together;
        let (users, news) = (&self.placed.users[home.set.index()], &self.placed.news[home.set.index()]);
        let mut to = vec![T::default(); self.len(place)];
        if n > 0 && there {
            // There: group after group, element after element.
            to.par_chunks_mut(together).with_min_len(4096).enumerate().for_each(|(chunk, to)| {
                let (group, new) = (chunk / n, chunk % n);
                let first = (group / groups * n + users[new] as usize) * width + group % groups * together;
                to.copy_from_slice(&from[first..first + together]);
            });
        } else if n > 0 {
            // Here: level after level, element after element.
            to.par_chunks_mut(width).with_min_len(4096).enumerate().for_each(|(chunk, to)| {
                let (level, new) = (chunk / n, news[chunk % n] as usize);
                for (group, to) in to.chunks_mut(together).enumerate() {
                    let first = ((level * groups + group) * n + new) * together;
                    to.copy_from_slice(&from[first..first + together]);
                }
            });
        }
        to
    }

    /// The kernels of a call.
    fn prepared(&self, key: &Key) -> Result<Rc<Prepared<M>>> {
        if let Some(known) = self.calls.borrow().get(key) {
            return Ok(Rc::clone(known));
        }
        let (number, computed, from_zero) = key;
        let stencil = &self.problem.program.stencils[*number];
        let set = stencil.set();
        let failed = RefCell::new(None);
        let leading_along = |paths: &[Path]| {
            let to = paths.first().map_or(set, |path| stencil.mesh.end(set, path));
            self.placed.leading(set, to, paths)
        };
        let subject = Subject {
            stencil,
            precision: self.problem.precision,
            levels: self.problem.levels,
            computed,
            from_zero: &|field: FieldId| from_zero[field.index()],
            degrees: &|paths| match leading_along(paths) {
                Ok(leading) => leading.degrees(),
                Err(error) => {
                    failed.replace(Some(error));
                    Degrees { mean: 0.0, max: 0, share: 0.0 }
                }
            },
        };
        let printed = printed::kernels(&subject, &self.choices)?;
        if let Some(error) = failed.take() {
            return Err(error);
        }
        let mut groups = Vec::new();
        for group in &printed.groups {
            groups.push(leading_along(&group.paths)?);
        }
        let mut kernels = Vec::new();
        for own in printed.kernels {
            kernels.push(self.ready(own, &groups)?);
        }
        let prepared = Rc::new(Prepared { kernels });
        self.calls.borrow_mut().insert(key.clone(), Rc::clone(&prepared));
        Ok(prepared)
    }

    fn ready(&self, printed: Kernel, groups: &[Rc<Leading>]) -> Result<Ready<M>> {
        let items = match &printed.items {
            Items::Set(set) => one(self.placed.bound.size(*set)),
            Items::Targets(group) => one(groups[*group].targets()),
            Items::Colours(group) => {
                let colours = groups[*group].colours()?;
                colours.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize).collect()
            }
        };
        let is_sparse = matches!(printed.items, Items::Targets(_));
        let has_offsets = printed.parameters.iter().any(|own| matches!(own.what, What::Table(_, Table::Offsets)));
        let mut tables = Vec::new();
        for parameter in &printed.parameters {
            if let What::Table(group, table) = &parameter.what {
                let numbers = groups[*group].table(table, &self.placed.bound, is_sparse, !has_offsets)?;
                tables.push((parameter.clone(), self.upload_numbers(&numbers)?));
            }
        }
        let kernel = (self.load)(&printed.name, &printed.text)?;
        Ok(Ready { printed, kernel, tables, items })
    }

    fn upload_numbers(&self, numbers: &[i32]) -> Result<M::Buffer> {
        let mut bytes = bytemuck::cast_slice(numbers).to_vec();
        bytes.resize(bytes.len().next_multiple_of(16).max(16), 0xff);
        self.machine.upload(&bytes)
    }

    fn map(&self, map: MapId) -> Result<Rc<M::Buffer>> {
        if let Some(known) = self.maps.borrow().get(&map) {
            return Ok(Rc::clone(known));
        }
        let buffer = Rc::new(self.upload_numbers(self.placed.bound.map(map).0)?);
        self.maps.borrow_mut().insert(map, Rc::clone(&buffer));
        Ok(buffer)
    }

    fn users_of(&self, set: SetId) -> Result<Rc<M::Buffer>> {
        if let Some(known) = self.numbers.borrow().get(&set) {
            return Ok(Rc::clone(known));
        }
        let numbers: Vec<i32> = self.placed.users[set.index()].iter().map(|&user| user as i32).collect();
        let buffer = Rc::new(self.upload_numbers(&numbers)?);
        self.numbers.borrow_mut().insert(set, Rc::clone(&buffer));
        Ok(buffer)
    }

    /// Sets an array to zeros.
    fn clear(&self, array: &Array<M>) -> Result<()> {
        if self.zero.borrow().is_none() {
            self.zero.replace(Some(Rc::new((self.load)("set_to_zero", ZERO)?)));
        }
        let zero = self.zero.borrow();
        let Some(kernel) = zero.as_ref() else { return Ok(()) };
        let n = array.bytes / 16;
        let launch = Launch::new([n.div_ceil(256) as u32, 1, 1], [256, 1, 1]);
        let args = [Arg::Pointer(self.machine.address(array.buffer()?, 0)), Arg::I32(narrow(n)?)];
        self.machine.launch(kernel, &launch, &args)
    }

    /// What numbers come to, neighbours made one pairwise.
    fn folded(&self, fold: Fold, leaves: Rc<Array<M>>, mut n: usize) -> Result<Rc<Array<M>>> {
        let precision = self.problem.precision;
        if !self.folds.borrow().contains_key(fold.name()) {
            let text = with_operations(&fold::text(fold, precision));
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
    fn launch(&self, stencil: &MeshStencil, ready: &Ready<M>, arrays: &Arrays<M>, params: &[Value]) -> Result<()> {
        let levels = arrays.computed.len();
        for items in &ready.items {
            if items.is_empty() {
                continue;
            }
            let mut args = Vec::new();
            // Kept until the launch.
            let mut held = Vec::new();
            for parameter in &ready.printed.parameters {
                let address = |buffer: &M::Buffer| Arg::Pointer(self.machine.address(buffer, 0));
                args.push(match &parameter.what {
                    What::Input(field) => address(arrays.given(*field)?.buffer()?),
                    What::Output(field) => address(arrays.output(*field)?.buffer()?),
                    What::Param(param) => match (params[param.index()], self.problem.precision) {
                        (Value::Real(x), Precision::F32) => Arg::F32(x as f32),
                        (Value::Real(x), Precision::F64) => Arg::F64(x),
                        (Value::Int(x), _) => Arg::I32(x),
                        (Value::Bool(x), _) => Arg::U8(x.into()),
                    },
                    What::Map(map) => {
                        let map = self.map(*map)?;
                        let arg = address(&map);
                        held.push(map);
                        arg
                    }
                    What::Size(set) => Arg::I32(narrow(self.placed.bound.size(*set))?),
                    What::Items => Arg::I32(narrow(items.len())?),
                    What::First => Arg::I32(narrow(items.start)?),
                    What::Table(..) => {
                        let table = ready.tables.iter().find(|(own, _)| own.what == parameter.what);
                        address(table.map(|(_, buffer)| buffer).ok_or_else(|| Error::check("a table is missing"))?)
                    }
                    What::Leaves(store) => {
                        let leaves = arrays.leaves.iter().find(|(own, _)| own == store).map(|(_, leaves)| leaves);
                        address(leaves.ok_or_else(|| Error::check("a fold has no array"))?.buffer()?)
                    }
                    What::Users => {
                        let users = self.users_of(stencil.set())?;
                        let arg = address(&users);
                        held.push(users);
                        arg
                    }
                    What::Between(group) => {
                        let own = arrays.between.iter().find(|(own, _)| own == group).map(|(_, array)| array);
                        address(own.ok_or_else(|| Error::check("what goes between two steps has no array"))?.buffer()?)
                    }
                });
            }
            let block = ready.printed.block;
            let blocks = narrow(items.len().div_ceil(block as usize))? as u32;
            let launch = Launch::new([blocks, levels as u32, 1], [block, 1, 1]);
            self.machine.launch(&ready.kernel, &launch, &args)?;
        }
        Ok(())
    }
}

/// Sets an array to zeros.
const ZERO: &str = r#"extern "C" __global__ void __launch_bounds__(256)
set_to_zero(int4* __restrict__ to, const int n)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) to[i] = make_int4(0, 0, 0, 0);
}
"#;

fn one(items: usize) -> Vec<Range<usize>> {
    std::iter::once(0..items).collect()
}

fn narrow(n: usize) -> Result<i32> {
    i32::try_from(n).map_err(|_| Error::input("the mesh is too large for indices of 32 bits"))
}

/// The bytes of an array, filled up as arrays on machines are.
fn padded(data: &Data) -> Vec<u8> {
    let mut bytes = match data {
        Data::F32(all) => bytemuck::cast_slice(all).to_vec(),
        Data::F64(all) => bytemuck::cast_slice(all).to_vec(),
        Data::I32(all) => bytemuck::cast_slice(all).to_vec(),
        Data::Bool(all) => all.clone(),
    };
    bytes.resize(bytes.len().next_multiple_of(16).max(16), 0);
    bytes
}

/// The arrays of a call.
struct Arrays<M: Machine> {
    computed: Range<usize>,
    given: Given<Array<M>>,
    outputs: Given<Array<M>>,
    /// By store: the numbers that are to be folded.
    leaves: Vec<(usize, Rc<Array<M>>)>,
    /// By group: what elements add, between two steps.
    between: Vec<(usize, Array<M>)>,
}

/// A call that can be computed, once or several times.
struct Opened<M: Machine> {
    /// Which stencil.
    number: usize,
    prepared: Rc<Prepared<M>>,
    arrays: Arrays<M>,
    /// Fields that are set to zero before.
    cleared: Vec<FieldId>,
    /// How many numbers are folded.
    leaves: usize,
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

impl<M: Machine> Backend for Kernels<'_, M> {
    type Array = Array<M>;

    fn upload(&self, variable: VariableId, data: &Data) -> Result<Array<M>> {
        let own = &self.problem.program.program.variables[variable];
        let array = self.array(data.element(), data.len())?;
        let mut bytes = self.packed(own.place, own.stored, data);
        bytes.resize(array.bytes, 0);
        self.machine.write(array.buffer()?, &bytes)?;
        Ok(array)
    }

    fn download(&self, variable: VariableId, array: &Array<M>) -> Result<Data> {
        let own = &self.problem.program.program.variables[variable];
        let bytes = self.intact(array, &own.name)?;
        let len = self.len(own.place) * array.element.bytes();
        Ok(self.unpacked(own.place, own.stored, array.element, &bytes[..len]))
    }

    fn number(&self, array: &Array<M>) -> Result<Value> {
        let bytes = self.intact(array, "a number")?;
        Ok(match array.element {
            Element::F32 => Value::Real(f64::from(bytemuck::pod_read_unaligned::<f32>(&bytes[..4]))),
            Element::F64 => Value::Real(bytemuck::pod_read_unaligned(&bytes[..8])),
            Element::I32 => Value::Int(bytemuck::pod_read_unaligned(&bytes[..4])),
            Element::Bool => Value::Bool(bytes[0] != 0),
        })
    }

    fn call(&self, call: &Call, params: &[Value], given: Given<Array<M>>) -> Result<Given<Array<M>>> {
        let opened = self.open(call, params, given)?;
        self.run(&opened, params)
    }
}

impl<M: Machine> Kernels<'_, M> {
    /// What a call works on.
    fn open(&self, call: &Call, params: &[Value], mut given: Given<Array<M>>) -> Result<Opened<M>> {
        let stencil = &self.problem.program.stencils[call.stencil];
        let computed = self.problem.computed(call.stencil, params)?;
        let fields = &stencil.stencil.fields;
        let from_zero: Vec<bool> =
            fields.iter().map(|(id, own)| own.role == Role::Inc && given[id.index()].is_none()).collect();
        let prepared = self.prepared(&(call.stencil, computed.clone(), from_zero.clone()))?;
        let precision = self.problem.precision;
        let (mut outputs, mut cleared): (Given<Array<M>>, _) = (Vec::new(), Vec::new());
        for (id, own) in fields.iter() {
            let element = element_of(own.stored, precision);
            let in_place = prepared.kernels.iter().any(|ready| ready.printed.in_place.contains(&id));
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
                    None => {
                        let fresh = self.array(element, self.len(own.place))?;
                        if in_place || !is_whole {
                            cleared.push(id);
                        }
                        Some(Rc::new(fresh))
                    }
                },
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
        let leaves = self.placed.bound.size(stencil.set()) * computed.len();
        let mut arrays = Arrays { computed, given, outputs, leaves: Vec::new(), between: Vec::new() };
        for (number, (store, write)) in stencil.stores().enumerate() {
            if matches!(write.how, How::Reduce(_)) {
                let element = element_of(fields[store.field].stored, precision);
                arrays.leaves.push((number, Rc::new(self.array(element, leaves)?)));
            }
        }
        for ready in &prepared.kernels {
            for parameter in &ready.printed.parameters {
                if let What::Between(group) = parameter.what
                    && arrays.between.iter().all(|(own, _)| *own != group)
                {
                    let (values, kind) = printed::Group::between(stencil, group);
                    let element = match (kind, precision) {
                        (Kind::Int, _) => Element::I32,
                        (Kind::Bool, _) => Element::Bool,
                        (Kind::Real, Precision::F32) => Element::F32,
                        (Kind::Real, Precision::F64) => Element::F64,
                    };
                    arrays.between.push((group, self.array(element, leaves * values)?));
                }
            }
        }
        Ok(Opened { number: call.stencil, prepared, arrays, cleared, leaves })
    }

    /// Launches the kernels of a call.
    fn run(&self, opened: &Opened<M>, params: &[Value]) -> Result<Given<Array<M>>> {
        let Opened { number, prepared, arrays, cleared, leaves } = opened;
        let stencil = &self.problem.program.stencils[*number];
        for field in cleared {
            self.clear(arrays.output(*field)?)?;
        }
        for ready in &prepared.kernels {
            self.launch(stencil, ready, arrays, params)?;
        }
        let mut outputs = arrays.outputs.clone();
        for (number, array) in &arrays.leaves {
            let field = stencil.stencil.stores[*number].field;
            if let How::Reduce(fold) = stencil.writes[*number].how {
                outputs[field.index()] = Some(self.folded(fold, Rc::clone(array), *leaves)?);
            }
        }
        Ok(outputs)
    }

    /// What comes out of a call, and then microseconds that it takes, so many times.
    ///
    /// # Errors
    /// There is not enough memory, or a kernel has failed.
    pub fn timed(
        &self,
        call: &Call,
        params: &[Value],
        given: Given<Array<M>>,
        runs: usize,
        results: &mut dyn FnMut(&Given<Array<M>>) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let opened = self.open(call, params, given)?;
        results(&self.run(&opened, params)?)?;
        self.machine.time_each(runs, |_| self.run(&opened, params).map(|_| ()))
    }
}

impl<M: Machine> Kernels<'_, M> {
    /// The bytes of an array, around which nothing was overwritten.
    fn intact(&self, array: &Array<M>, name: &str) -> Result<Vec<u8>> {
        let (bytes, guards) = self.machine.download(array.buffer()?)?;
        if guards.intact() {
            return Ok(bytes);
        }
        Err(Error::check(format!("`{name}`: a kernel wrote beside its array: {guards}")))
    }
}
