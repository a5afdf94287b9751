//! A stencil that is called on arrays which belong to somebody else: nothing is copied, where kernels compute.

use super::{Job, Subject};
use crate::array::Data;
use crate::build::Build;
use crate::cuda::{self, Gpu};
use crate::device::{Device, Platform};
use crate::drawing::Drawing;
use crate::emulate::{self, Emulator};
use crate::error::{Error, Result};
use crate::execute::plain_argument;
use crate::interpreter::{self, interpret};
use crate::lent::{Lent, Memory};
use crate::machine::{Arg, Launch, Machine};
use crate::problem::{element_of, extents, params};
use std::ffi::c_void;
use std::sync::Arc;
use stencilc_compiler::analysis;
use stencilc_compiler::cuda::print;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::program::{Action, Program};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Field, Handle, Levels, Precision, Role, Stencil};
use stencilc_compiler::kernel::Meaning;
use stencilc_compiler::plan::{Choices, KnownGrid, plan, prepare};
use stencilc_compiler::storage::fastest::Fastest;
use stencilc_compiler::storage::fields::Fields;
use stencilc_compiler::storage::{Columns, Layout, Placement};

/// Arrays that a stencil is called on, by the names of its fields.
#[derive(Debug, Default)]
pub struct Arrays<'a> {
    reads: Vec<(String, Lent<'a>)>,
    writes: Vec<(String, Lent<'a>)>,
}

impl<'a> Arrays<'a> {
    /// The same, and one that is read.
    #[must_use]
    pub fn read(mut self, name: &str, array: Lent<'a>) -> Self {
        self.reads.push((name.to_owned(), array));
        self
    }

    /// The same, and one that is written: where the stencil computes, and not beyond. An `inout` field has two arrays: what it held
    /// before is read from the other.
    #[must_use]
    pub fn write(mut self, name: &str, array: Lent<'a>) -> Self {
        self.writes.push((name.to_owned(), array));
        self
    }
}

/// A stencil, ready to be computed on arrays, as often as one likes.
pub struct Call<'a> {
    stencil: Stencil,
    precision: Precision,
    grid: Grid,
    region: Region,
    params: Vec<Value>,
    /// By field.
    reads: Vec<Option<Lent<'a>>>,
    writes: Vec<Option<Lent<'a>>>,
    how: How,
}

/// What computes.
enum How {
    Interpreter,
    Emulator(Arc<Emulator>, Ready<emulate::Kernel>),
    Gpu(Arc<Gpu>, Ready<cuda::Kernel>),
}

/// A kernel, and how it is launched.
struct Ready<K> {
    kernel: K,
    launch: Launch,
    arguments: Vec<Arg>,
}

/// How elements lie, of all fields alike.
#[derive(Clone, Copy, Debug)]
struct Apart {
    fastest: Fastest,
    /// Elements from a level to the next; where levels are fastest, from a column to the next.
    outer: usize,
    /// Columns from a row to the next.
    row: usize,
}

impl Job {
    /// Binds a stencil to arrays that belong to somebody else, and makes its kernel, which works on these where they are: on a GPU
    /// in its memory, on the emulator in that of the host. The interpreter computes on copies of its own.
    ///
    /// Elements along i follow each other, or the levels of a column do; how far rows are apart, and levels, or columns, is the caller's
    /// affair, but the same for all. A field on levels alone is dense.
    ///
    /// ```
    /// use stencilc_compiler::source::Source;
    /// use stencilc_runtime::{Device, Lent, job::{Arrays, Job}};
    ///
    /// let job = Job::new(&Source::new("mean.stn", "stencil mean { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }"), None)?;
    /// let (a, mut b) = ([1.0, 2.0, 4.0, 8.0], [0.0; 4]);
    /// let arrays = Arrays::default().read("a", Lent::read(&a, &[1, 1, 4])?).write("b", Lent::write(&mut b, &[1, 1, 4])?);
    /// job.device(Device::Cpu).call(arrays)?.run()?;
    /// assert_eq!(b, [0.0, 2.5, 5.0, 0.0]);
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Names that do not exist, arrays that are missing, have another shape or type than their fields, lie in other memory than the
    /// device's, are not to be written, overlap, or lie in another way than kernels can read; parameters without a value; a device that is
    /// not there. A program, and what runs over a mesh, holds its arrays by itself: [`Job::start`].
    pub fn call<'a>(self, arrays: Arrays<'a>) -> Result<Call<'a>> {
        let stencil = match &self.subject {
            Subject::Grid(program) => only_stencil(program),
            Subject::Mesh(_) => None,
        };
        let stencil = stencil.ok_or_else(|| {
            Error::call(format!("`{}` is no stencil on a grid, and holds its arrays by itself", self.subject.name()))
                .help("start it: `Job::start`")
        })?;
        let choices = match self.device {
            Some(Device::Native) => self.how.choices.clone().on_cpu(self.how.open).0,
            _ => self.how.choices.clone(),
        };
        let choices = choices.suiting(stencil);
        let (precision, contract) = (choices.precision, choices.contract);
        let stencil = prepare(stencil, precision, contract);
        let Arrays { reads, writes } = arrays;
        let reads = by_field(&stencil, reads, false)?;
        let writes = by_field(&stencil, writes, true)?;
        let lent = |name: &str| {
            let field = stencil.field_named(name)?.index();
            reads[field].as_ref().or(writes[field].as_ref()).map(|own| &own.shape[..])
        };
        let given = match self.domain {
            None => None,
            Some(super::Domain::Rows(grid)) => Some(grid),
            Some(super::Domain::Cells { .. } | super::Domain::Mesh { .. }) => {
                return Err(Error::call("arrays are lent on grids whose columns stand in rows")
                    .help("on cells and meshes, start the stencil: `Job::start` holds its arrays by itself"));
            }
        };
        let grid = extents::find(&stencil, given, &lent)?;
        let params = params(&stencil, precision, grid, &self.settings, 0, &Drawing::Nothing, &mut Vec::new())?;
        let region = analysis::region(&stencil, precision, grid, None, &params)?;
        let device = Device::choose(self.device).0;
        let all = || {
            let named = stencil.fields.iter();
            named.flat_map(|(id, own)| {
                [&reads, &writes].map(|all| all[id.index()].as_ref()).into_iter().flatten().map(move |lent| (own, lent))
            })
        };
        for (field, lent) in all() {
            check(field, lent, precision, grid, device)?;
        }
        let apart = apart(grid, &all().collect::<Vec<_>>())?;
        for (place, written) in writes.iter().enumerate().filter_map(|(place, own)| Some((place, own.as_ref()?))) {
            let name = &stencil.fields.iter().nth(place).map(|(_, own)| own.name.clone()).unwrap_or_default();
            if !is_nested(written) {
                return Err(Error::call(format!(
                    "elements of the array that `{name}` is written to lie on each other"
                ))
                .help("its strides are smaller than what they pass over"));
            }
            let other = all().find(|(_, other)| !std::ptr::eq(*other, written) && overlap(written, other));
            if let Some((other, _)) = other {
                return Err(Error::call(format!(
                    "the array that `{name}` is written to overlaps that of `{}`",
                    other.name
                ))
                .help("neighbours are read that would have changed already: write to another array"));
            }
        }
        let chosen = Chosen { stencil: &stencil, choices: &choices, grid, region: &region, apart, params: &params };
        let how = match super::opened(device, self.stream)? {
            Platform::Cpu => How::Interpreter,
            Platform::Emulator(emulator) => {
                let ready = chosen.ready(&*emulator, &reads, &writes)?;
                How::Emulator(emulator, ready)
            }
            Platform::Gpu(gpu) => {
                let ready = chosen.ready(&*gpu, &reads, &writes)?;
                How::Gpu(gpu, ready)
            }
        };
        Ok(Call { stencil, precision, grid, region, params, reads, writes, how })
    }
}

impl Call<'_> {
    /// Computes the stencil, and waits for it.
    ///
    /// # Errors
    /// There is not enough memory, or the kernel has failed.
    pub fn run(&mut self) -> Result<()> {
        match &self.how {
            How::Interpreter => self.interpreted(),
            How::Emulator(emulator, ready) => emulator.launch(&ready.kernel, &ready.launch, &ready.arguments),
            How::Gpu(gpu, ready) => {
                gpu.launch(&ready.kernel, &ready.launch, &ready.arguments)?;
                gpu.synchronize()
            }
        }
    }

    /// Starts the stencil in a stream of the caller's (`CUstream`, which is `cudaStream_t`; the null pointer is the default one), and
    /// returns at once. On the CPU it is computed when this returns.
    ///
    /// # Safety
    /// The stream is one of the primary context of this GPU. Nobody reads what is written, or writes what is read, before the work
    /// in it is done; and the arrays are there as long.
    ///
    /// # Errors
    /// There is not enough memory, or the kernel cannot be started. What fails later is told by later calls.
    pub unsafe fn run_in(&mut self, stream: *mut c_void) -> Result<()> {
        match &self.how {
            // SAFETY: the caller's.
            How::Gpu(gpu, ready) => unsafe { gpu.launch_in(stream, &ready.kernel, &ready.launch, &ready.arguments) },
            How::Interpreter | How::Emulator(..) => self.run(),
        }
    }

    /// The cells that are computed.
    pub fn region(&self) -> &Region {
        &self.region
    }

    fn interpreted(&self) -> Result<()> {
        let copied = |all: &[Option<Lent>]| all.iter().map(|own| own.as_ref().map(Lent::copied)).collect::<Vec<_>>();
        let (inputs, mut outputs): (Vec<Option<Data>>, Vec<Option<Data>>) = (copied(&self.reads), copied(&self.writes));
        let inputs: Vec<Option<&Data>> = inputs.iter().map(Option::as_ref).collect();
        let job = interpreter::Job {
            stencil: &self.stencil,
            precision: self.precision,
            grid: self.grid,
            adjacency: None,
            region: &self.region,
            params: &self.params,
            inputs: &inputs,
        };
        interpret(&job, &mut outputs, &|_| {})?;
        for (((_, field), lent), data) in self.stencil.fields.iter().zip(&self.writes).zip(&outputs) {
            if let (Some(lent), Some(data)) = (lent, data) {
                lent.put(data, self.region.numbers(self.grid, field.place));
            }
        }
        Ok(())
    }
}

/// The stencil that a program calls, if that is all that it does.
fn only_stencil(program: &Program) -> Option<&Stencil> {
    match program.actions.as_slice() {
        [Action::Call(call)] => program.stencils.get(call.stencil),
        _ => None,
    }
}

/// Arrays by field, of those that are read or of those that are written.
fn by_field<'a>(stencil: &Stencil, given: Vec<(String, Lent<'a>)>, is_written: bool) -> Result<Vec<Option<Lent<'a>>>> {
    let is_own = |field: &Field| match field.role {
        Role::Carried | Role::Inc | Role::Reduce => false,
        Role::In | Role::Out | Role::InOut if is_written => field.role.is_written(),
        Role::In | Role::Out | Role::InOut => field.role.is_read(),
    };
    let (doing, kind) = if is_written { ("written", "output") } else { ("read", "input") };
    let names: Vec<&str> =
        stencil.fields.iter().filter(|(_, own)| is_own(own)).map(|(_, own)| own.name.as_str()).collect();
    let mut all: Vec<Option<Lent>> = stencil.fields.iter().map(|_| None).collect();
    for (name, lent) in given {
        let id = stencil.field_named(&name).filter(|id| is_own(&stencil.fields[*id])).ok_or_else(|| {
            let error = Error::call(format!("stencil `{}` has no {kind} `{name}`", stencil.name));
            match guess(&name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("what is {doing}: {}", names.join(", "))),
            }
        })?;
        if is_written && !lent.is_writable {
            return Err(Error::call(format!("`{name}` is written, and its array may only be read"))
                .help("lend it by `Lent::write`"));
        }
        if all[id.index()].replace(lent).is_some() {
            return Err(Error::call(format!("two arrays are lent for what is {doing} of `{name}`")));
        }
    }
    let missing = stencil.fields.iter().filter(|(id, own)| is_own(own) && all[id.index()].is_none());
    let missing: Vec<String> = missing.map(|(_, own)| format!("`{}`", own.name)).collect();
    match missing.is_empty() {
        true => Ok(all),
        false => Err(Error::call(format!("no array is lent for what is {doing}: {}", missing.join(", ")))),
    }
}

/// Whether an array is one of a field: its shape, its type, and the memory where it lies.
fn check(field: &Field, lent: &Lent, precision: Precision, grid: Grid, device: Device) -> Result<()> {
    let (name, element) = (&field.name, element_of(field.stored, precision));
    if lent.element != element {
        let (own, given) = (element.name(), lent.element.name());
        return Err(Error::call(format!("`{name}` is an array of {own}, not of {given}")));
    }
    let shape = grid.shape(field.place);
    let is_one_level = field.place.levels == Levels::Full && shape.first() == Some(&1) && lent.shape == shape[1..];
    if lent.shape != shape && !is_one_level {
        return Err(Error::call(format!("`{name}` has the shape {shape:?}, not {:?}", lent.shape)));
    }
    if !lent.address.is_multiple_of(element.bytes() as u64) {
        return Err(Error::call(format!("the array of `{name}` does not begin at a multiple of its elements' size")));
    }
    match (device, lent.memory) {
        (Device::Cuda(_), Memory::Host) => {
            Err(Error::call(format!("the array of `{name}` is in the host's memory, and {device} computes"))
                .help("lend one of the GPU's memory, or `Job::start`, which brings arrays there"))
        }
        (Device::Cpu | Device::Emulate | Device::Native, Memory::Device) => {
            Err(Error::call(format!("the array of `{name}` is in a GPU's memory, and {device} computes")))
        }
        (Device::Cuda(_), Memory::Device) | (Device::Cpu | Device::Emulate | Device::Native, Memory::Host) => Ok(()),
    }
}

/// Lengths and strides along levels, j and i; of an axis that an array lacks, there is one.
fn axes(field: &Field, lent: &Lent) -> [(usize, usize); 3] {
    let mut own = lent.shape.iter().copied().zip(lent.strides.iter().copied()).rev();
    let mut next = |is_there: bool| if is_there { own.next().unwrap_or((1, 0)) } else { (1, 0) };
    let (i, j) = (next(field.place.horizontal), next(field.place.horizontal));
    [next(field.place.levels != Levels::None), j, i]
}

/// A distance that is the same for all arrays: what lies so far apart, whose it was first, and how far.
struct Known<'a> {
    what: &'static str,
    first: Option<(&'a str, usize)>,
}

impl<'a> Known<'a> {
    fn of(what: &'static str) -> Self {
        Self { what, first: None }
    }

    /// Takes the distance of an array.
    fn is(&mut self, name: &'a str, distance: usize) -> Result<()> {
        let (first, own) = *self.first.get_or_insert((name, distance));
        if own == distance {
            return Ok(());
        }
        let what = self.what;
        Err(Error::call(format!("{what} of `{name}` are {distance} elements apart, those of `{first}` {own}"))
            .help("a kernel knows one distance for all its arrays; `Job::start` copies what lies in another way"))
    }

    fn or(&self, usual: usize) -> usize {
        self.first.map_or(usual, |(_, distance)| distance)
    }
}

/// How elements lie, of all arrays alike.
fn apart(grid: Grid, all: &[(&Field, &Lent)]) -> Result<Apart> {
    let has_columns = |field: &Field| field.place.horizontal && field.place.levels != Levels::None;
    // Of an axis with one element, a stride says nothing.
    let is_by_levels = |(field, lent): &(&Field, &Lent)| {
        let [k, j, i] = axes(field, lent);
        has_columns(field) && k.0 > 1 && k.1 == 1 && (i.0 > 1 || j.0 > 1) && (i.0 <= 1 || i.1 > 1)
    };
    let by_levels = all.iter().find(|own| is_by_levels(own)).map(|(field, _)| &field.name);
    let fastest = if by_levels.is_some() { Fastest::Levels } else { Fastest::Columns };
    let [mut rows, mut levels, mut columns] = ["rows", "levels", "columns"].map(Known::of);
    for (field, lent) in all {
        let [k, j, i] = axes(field, lent);
        let name = &field.name;
        let is_by_column = has_columns(field) && fastest == Fastest::Levels;
        let (dense, axis) = if field.place.horizontal && !is_by_column { ("i", i) } else { ("k", k) };
        if axis.0 > 1 && axis.1 != 1 {
            let others = by_levels.filter(|_| is_by_column).map(|own| format!(", as those of `{own}` do"));
            let why =
                format!("elements of `{name}` do not follow each other along {dense}{}", others.unwrap_or_default());
            return Err(Error::call(why)
                .help("kernels read neighbouring elements together; `Job::start` copies what lies in another way"));
        }
        if is_by_column {
            // A grid of one column a row has no other distance between columns.
            let column = if i.0 > 1 || j.0 <= 1 { i.1 } else { j.1 };
            if i.0 > 1 || j.0 > 1 {
                columns.is(name, column)?;
            }
            if i.0 > 1 && j.0 > 1 {
                if !j.1.is_multiple_of(column) {
                    let why =
                        format!("rows of `{name}` are {} elements apart, no multiple of the {column} of columns", j.1);
                    return Err(Error::call(why).help("`Job::start` copies what lies in another way"));
                }
                rows.is(name, j.1 / column)?;
            }
        } else if field.place.horizontal {
            if k.0 > 1 {
                levels.is(name, k.1)?;
            }
            if j.0 > 1 {
                rows.is(name, j.1)?;
            }
        }
    }
    let row = rows.or(if fastest == Fastest::Levels && grid.ni == 1 { 1 } else { grid.ni });
    let outer = match fastest {
        Fastest::Levels => columns.or(grid.nk + 1),
        Fastest::Columns => levels.or(row.saturating_mul(grid.nj)),
    };
    Ok(Apart { fastest, outer, row })
}

/// Whether no two elements of an array lie in one place.
fn is_nested(lent: &Lent) -> bool {
    let mut axes: Vec<(usize, usize)> =
        lent.strides.iter().copied().zip(lent.shape.iter().copied()).filter(|(_, length)| *length > 1).collect();
    axes.sort_unstable();
    let mut reach = 0usize;
    axes.into_iter().all(|(stride, length)| {
        let is_beyond = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(length - 1));
        is_beyond
    })
}

/// Whether two arrays have an element in one place. Parts of one array may lie between each other and have none.
fn overlap(a: &Lent, b: &Lent) -> bool {
    let bytes = |own: &Lent| own.extent().unwrap_or(usize::MAX) as u128 * own.element.bytes() as u128;
    let [from, other] = [a, b].map(|own| u128::from(own.address));
    if a.memory != b.memory || from >= other + bytes(b) || other >= from + bytes(a) {
        return false;
    }
    let between = i128::from(b.address) - i128::from(a.address);
    let each = a.element.bytes() as i128;
    let is_alike = a.element == b.element && a.strides == b.strides && between % each == 0 && is_nested(b);
    // Of others it would be long to say: nobody needs them.
    if !is_alike {
        return true;
    }
    // A place of each with the distance between: along each axis so many strides as they have elements, at most.
    let mut axes: Vec<[i128; 3]> = (0..a.strides.len())
        .map(|axis| [a.strides[axis], a.shape[axis] - 1, b.shape[axis] - 1].map(|own| own as i128))
        .filter(|[_, own, other]| own + other > 0)
        .collect();
    axes.sort_unstable();
    reaches(&axes, between / each)
}

/// Whether a sum of strides, each at most so often added, or taken away, comes to a distance. Those of the last axis are the largest.
fn reaches(axes: &[[i128; 3]], distance: i128) -> bool {
    let Some((&[stride, most, least], others)) = axes.split_last() else { return distance == 0 };
    let rest: i128 = others.iter().map(|[stride, own, other]| stride * own.max(other)).sum();
    let (from, to) = ((distance - rest).div_euclid(stride), (distance + rest).div_euclid(stride) + 1);
    (from.max(-least)..=to.min(most)).any(|times| reaches(others, distance - times * stride))
}

/// What a kernel is made for.
struct Chosen<'a> {
    stencil: &'a Stencil,
    choices: &'a Choices,
    grid: Grid,
    region: &'a Region,
    apart: Apart,
    params: &'a [Value],
}

impl Chosen<'_> {
    /// Makes the kernel, which is one for any grid.
    fn ready<M: Build>(
        &self,
        machine: &M,
        reads: &[Option<Lent>],
        writes: &[Option<Lent>],
    ) -> Result<Ready<M::Kernel>> {
        let &Self { stencil, choices, grid, region, apart, params } = self;
        if choices.storage != Choices::default().storage || choices.fields != Fields::Soa || choices.checked {
            return Err(Error::call(
                "arrays that are lent are plain arrays in rows: no other storage computes on them",
            )
            .help("leave storage, fields and checks as they are, or `Job::start`, which packs its arrays"));
        }
        if choices.walks() {
            let access = &choices.access;
            return Err(Error::call(format!(
                "`{access}` access copies rows that are aligned, as those that are lent need not be"
            ))
            .help("give another access, or take `Job::start`, which packs its arrays"));
        }
        let Apart { fastest, outer, row } = apart;
        if fastest != choices.fastest && choices.fastest != Fastest::default() {
            return Err(Error::call("levels of the arrays that are lent do not follow each other")
                .help("leave the fastest axis as it is: a kernel takes that of its arrays"));
        }
        let places = row.saturating_mul(grid.nj);
        let far = |count: usize, apart: usize| (count as u128 + 2).saturating_mul(apart as u128);
        let last = match fastest {
            // Rows may lie farther apart than levels do.
            Fastest::Columns => far(grid.nk, outer).saturating_add(far(grid.nj, row)).saturating_add(far(grid.ni, 1)),
            Fastest::Levels => far(places, outer),
        };
        let choices = Choices { fastest, wide: choices.wide || last > i32::MAX as u128, ..choices.clone() };
        let mut plan = plan(stencil, &choices, None)?;
        let columns = [region.i.len(), region.j.len()];
        if let Some(axis) = (0..2).find(|&axis| columns[axis] < plan.tile.columns[axis] as usize) {
            let (least, own) = (plan.tile.columns[axis], columns[axis]);
            return Err(Error::call(format!(
                "a thread computes {least} columns along {}, and there are {own}",
                ["i", "j"][axis]
            ))
            .help("give a larger grid, or another strategy"));
        }
        let known = KnownGrid {
            grid,
            adjacency: None,
            region: region.clone(),
            levels_known: true,
            layout: Arc::new(Layout {
                columns: Columns::Rows { row },
                places,
                strides: plan.storage.strides(),
                lead: region.i.start,
                placement: Placement::Aligned,
                sizes: vec![outer, row],
                tables: Vec::new(),
            }),
        };
        // A thread that sweeps keeps values of all levels, and has to know how many there are.
        if !stencil.sweeps.is_empty() {
            plan.known_grid = Some(known.clone());
        }
        let kernel = print(&plan)?;
        let loaded = machine.build(&kernel.name, &kernel.text)?;
        let pointer = |all: &[Option<Lent>], field: usize| all[field].as_ref().map(|own| Arg::Pointer(own.address));
        let arguments = kernel.parameters.iter().map(|parameter| match parameter.meaning {
            Meaning::Input(field) => pointer(reads, field.index()),
            Meaning::Output(field) => pointer(writes, field.index()),
            _ => plain_argument(&plan, &known, params, &parameter.meaning),
        });
        let arguments: Option<Vec<Arg>> = arguments.collect();
        let arguments =
            arguments.ok_or_else(|| Error::check(format!("kernel {} takes what is not lent", kernel.name)))?;
        let launch = Launch::of(&plan, &known, machine, &loaded)?;
        Ok(Ready { kernel: loaded, launch, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: usize, shape: &[usize], strides: &[usize]) -> Lent<'static> {
        // SAFETY: nothing is read or written there.
        unsafe { Lent::at(Memory::Host, 8 * first as u64, crate::Element::F64, shape, strides, true) }.unwrap()
    }

    /// Against all pairs of elements.
    #[test]
    fn arrays_overlap_if_an_element_is_in_both() {
        let places = |first: usize, shape: &[usize; 3], strides: &[usize; 3]| {
            let mut all = Vec::new();
            for k in 0..shape[0] {
                for j in 0..shape[1] {
                    all.extend((0..shape[2]).map(|i| first + k * strides[0] + j * strides[1] + i * strides[2]));
                }
            }
            all
        };
        let (mut apart, mut together) = (0, 0);
        for strides in [[20, 5, 1], [21, 7, 1], [4, 16, 1], [1, 3, 12]] {
            for (a, b) in [([3, 2, 2], [2, 3, 3]), ([2, 4, 1], [3, 1, 3]), ([1, 1, 3], [3, 3, 2])] {
                for first in 0..90 {
                    let [one, other] = [part(40, &a, &strides), part(first, &b, &strides)];
                    let known = places(40, &a, &strides);
                    let expected = places(first, &b, &strides).iter().any(|place| known.contains(place));
                    if is_nested(&other) {
                        assert_eq!(overlap(&one, &other), expected, "{strides:?} {a:?} {b:?} {first}");
                        *if expected { &mut together } else { &mut apart } += 1;
                    }
                }
            }
        }
        assert!(apart > 100 && together > 100, "{apart} {together}");
    }

    #[test]
    fn elements_that_lie_on_each_other_are_found() {
        for (shape, strides, is_nested) in [
            (vec![2, 3, 4], vec![12, 4, 1], true),
            (vec![2, 3, 4], vec![11, 4, 1], false),
            (vec![2, 3, 4], vec![4, 8, 1], true),
            (vec![1, 3, 4], vec![0, 4, 1], true),
            (vec![2, 3, 4], vec![0, 4, 1], false),
            (vec![4], vec![0], false),
        ] {
            assert_eq!(super::is_nested(&part(0, &shape, &strides)), is_nested, "{shape:?} {strides:?}");
        }
    }
}
