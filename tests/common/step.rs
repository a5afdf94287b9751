//! Step kernels on the emulator, against the interpreter on arrays that are made periodic by padding.

use std::collections::BTreeMap;
use stencilc_compiler::analysis::extents::extents;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{FieldId, Handle, Kind, Levels, Place, Precision, Stencil};
use stencilc_compiler::kernel::{Meaning, StepData};
use stencilc_compiler::plan::prepare;
use stencilc_compiler::step::{Carry, Edge, Kernel, Rows, StepTask, planes};
use stencilc_runtime::Data;
use stencilc_runtime::cache::library_cached;
use stencilc_runtime::emulate::{Compiler, Emulator, Kernel as Loaded, Order, Settings, Source};
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::machine::{Arg, Launch, Machine};
use stencilc_runtime::problem::{Problem, Request, element_of};

/// A stencil on a periodic grid, with numbers.
pub struct Fixture {
    /// The stencil, prepared.
    pub stencil: Stencil,
    pub precision: Precision,
    pub extents: [usize; 3],
    pub rows: Rows,
    /// By field: what is read, and what outputs hold before.
    pub inputs: Vec<Option<Data>>,
    pub before: Vec<Option<Data>>,
    pub params: Vec<Value>,
    pub edges: [Edge; 2],
    /// What lies beyond the first and the last level.
    pub edge_k: Edge,
}

impl Fixture {
    /// Random numbers for a stencil. `padding` is what arrays have before the first cell, after each row and each plane.
    pub fn new(stencil: &Stencil, precision: Precision, extents: [usize; 3], padding: [usize; 3]) -> Self {
        let [ni, nj, nk] = extents;
        // Random numbers are drawn by the field's name, for any grid that the stencil fits into.
        let request = Request {
            stencil,
            precision,
            contract: true,
            grid: Some(Grid::rows(ni + 64, nj + 64, nk + 16)),
            adjacency: None,
            arrays: BTreeMap::new(),
            settings: BTreeMap::new(),
            seed: 7,
            cast: stencilc_runtime::Cast::Exact,
            drawing: stencilc_runtime::Drawing::Everything,
        };
        let problem = Problem::new(request).unwrap();
        let stencil = prepare(stencil, precision, true);
        let own = |data: &Option<Data>, id: FieldId| {
            let len = count(stencil.fields[id].place, extents);
            data.as_ref().map(|data| data.pick(0..len))
        };
        let handles: Vec<FieldId> = stencil.fields.handles().collect();
        let inputs = problem.inputs.iter().zip(&handles).map(|(data, &id)| own(data, id)).collect();
        let before = problem.outputs.iter().zip(&handles).map(|(data, &id)| own(data, id)).collect();
        let row = ni + padding[1];
        let rows = Rows { first: padding[0], row, plane: row * nj + padding[2] };
        let edges = [Edge::Periodic; 2];
        let params = problem.params;
        Self { stencil, precision, extents, rows, inputs, before, params, edges, edge_k: Edge::Open }
    }

    pub fn subject(&self) -> StepTask<'_> {
        let Self { stencil, precision, extents, rows, edges, .. } = self;
        StepTask { stencil, precision: *precision, extents: *extents, rows: *rows, edges: *edges }
    }

    /// The levels that are computed, of a grid with what lies beyond its edges.
    fn levels(&self, grid: Grid) -> std::ops::Range<usize> {
        stencilc_compiler::analysis::region(&self.stencil, self.precision, grid, None, &self.params).unwrap().k
    }

    /// What a kernel that walks along k is asked for.
    pub fn request(&self, queue: planes::Queue) -> planes::Request {
        let [ni, nj, nk] = self.extents;
        let computed = match self.edge_k {
            Edge::Periodic => 0..nk,
            Edge::Open => self.levels(Grid::rows(ni + 64, nj + 64, nk)),
        };
        planes::Request::of(&self.subject(), queue, computed, self.edge_k).unwrap()
    }

    /// What the interpreter computes from these inputs, on every cell.
    pub fn expected(&self, inputs: &[Option<Data>]) -> Vec<Option<Data>> {
        let [ni, nj, nk] = self.extents;
        let reach = extents(&self.stencil);
        let (left, right) = (-reach.low.i as usize, reach.high.i as usize);
        let (top, bottom) = (-reach.low.j as usize, reach.high.j as usize);
        let [below, above] = match self.edge_k {
            Edge::Periodic => {
                let high = self.levels(Grid::rows(ni + 64, nj + 64, nk + 16));
                [high.start, nk + 16 - high.end]
            }
            Edge::Open => [0; 2],
        };
        let grid = Grid::rows(ni + left + right, nj + top + bottom, nk + below + above);
        let wrapped = |place: Place| -> Vec<usize> {
            let levels = (0..place.levels.count(grid.nk)).map(|k| match self.edge_k {
                Edge::Periodic if place.levels != Levels::None => (k + nk * below - below) % nk,
                Edge::Periodic | Edge::Open => k,
            });
            if !place.horizontal {
                return levels.collect();
            }
            let cells = levels.flat_map(|k| (0..grid.nj).flat_map(move |j| (0..grid.ni).map(move |i| [i, j, k])));
            let at = |[i, j, k]: [usize; 3]| (k * nj + (j + nj * top - top) % nj) * ni + (i + ni * left - left) % ni;
            cells.map(at).collect()
        };
        let fields = || self.stencil.fields.iter().map(|(_, field)| field);
        let padded: Vec<Option<Data>> = inputs
            .iter()
            .zip(fields())
            .map(|(data, field)| data.as_ref().map(|data| data.pick(wrapped(field.place).into_iter())))
            .collect();
        let mut outputs: Vec<Option<Data>> = fields()
            .map(|field| {
                let len = grid.shape(field.place).iter().product();
                field.role.is_written().then(|| Data::fresh(element_of(field.stored, self.precision), len))
            })
            .collect();
        let region =
            stencilc_compiler::analysis::region(&self.stencil, self.precision, grid, None, &self.params).unwrap();
        assert_eq!((region.i.len(), region.j.len()), (ni, nj));
        let levels = region.k.clone();
        assert!(self.edge_k == Edge::Open || levels == (below..below + nk));
        let inputs: Vec<Option<&Data>> = padded.iter().map(Option::as_ref).collect();
        let job = stencilc_runtime::interpreter::Job {
            stencil: &self.stencil,
            precision: self.precision,
            grid,
            adjacency: None,
            region: &region,
            params: &self.params,
            inputs: &inputs,
        };
        interpret(&job, &mut outputs, &|_| {}).unwrap();
        let cut = |data: Data, place: Place| {
            let cells = self.cells(place);
            let below = if place.levels == Levels::None { 0 } else { below };
            data.pick(cells.into_iter().map(|[i, j, k]| ((k + below) * grid.nj + j + top) * grid.ni + i + left))
        };
        // What lies beyond an open edge is not as on the other side, and then the cell is not computed.
        let [is_open_i, is_open_j] = self.edges.map(|edge| edge == Edge::Open);
        let is_left = |has_levels: bool, [i, j, k]: [usize; 3]| {
            has_levels && !levels.contains(&(k + below))
                || is_open_i && (i < left || i + right >= ni)
                || is_open_j && (j < top || j + bottom >= nj)
        };
        let outputs = outputs.into_iter().zip(&self.before).zip(fields());
        let outputs = outputs.map(|((data, before), field)| {
            let mut data = cut(data?, field.place);
            let cells = self.cells(field.place);
            let has_levels = field.place.levels != Levels::None;
            let left = cells.into_iter().map(|cell| is_left(has_levels, cell)).collect::<Vec<bool>>();
            keep_data(&mut data, before.as_ref()?, |index| !left[index]);
            Some(data)
        });
        outputs.collect()
    }

    /// What the interpreter computes in several steps.
    pub fn after(&self, carry: &[Carry], steps: usize) -> Vec<Option<Data>> {
        let mut inputs = self.inputs.clone();
        let mut outputs: Vec<Option<Data>> = self.before.clone();
        for &(to, from) in carry {
            outputs[to.index()] = inputs[from.index()].clone();
        }
        for _ in 0..steps {
            outputs = self.expected(&inputs);
            for &(to, from) in carry {
                inputs[from.index()] = outputs[to.index()].clone();
            }
        }
        outputs
    }

    /// Every cell of a field that a kernel writes.
    fn cells(&self, place: Place) -> Vec<[usize; 3]> {
        let [ni, nj, nk] = self.extents;
        // The interface below the last level is nobody's.
        let levels = if place.levels == Levels::None { 1 } else { nk };
        (0..levels).flat_map(|k| (0..nj).flat_map(move |j| (0..ni).map(move |i| [i, j, k]))).collect()
    }

    /// An array as kernels see it; what is no cell is told by its number.
    fn packed(&self, data: &Data, place: Place) -> Data {
        let [ni, nj, _] = self.extents;
        if !place.horizontal {
            return data.clone();
        }
        let Rows { first, row, plane } = self.rows;
        let planes = data.len() / (ni * nj);
        let len = first + planes * plane + 5;
        let at = |index: usize| first + index / (ni * nj) * plane + index / ni % nj * row + index % ni;
        let mut packed = data.pick((0..len).map(|index| index * 31 % data.len()));
        match (&mut packed, data) {
            (Data::F32(to), Data::F32(from)) => from.iter().enumerate().for_each(|(index, &x)| to[at(index)] = x),
            (Data::F64(to), Data::F64(from)) => from.iter().enumerate().for_each(|(index, &x)| to[at(index)] = x),
            (Data::I32(to), Data::I32(from)) => from.iter().enumerate().for_each(|(index, &x)| to[at(index)] = x),
            (Data::Bool(to), Data::Bool(from)) => from.iter().enumerate().for_each(|(index, &x)| to[at(index)] = x),
            _ => unreachable!(),
        }
        packed
    }

    /// Runs kernels in every order of threads and compares each byte of their outputs with what is expected after so many
    /// steps.
    pub fn check(&self, kernels: &[Kernel], expected: &[(i32, Vec<Option<Data>>)]) {
        let settings = Settings { strict: true, ..Settings::default() };
        let sources = kernels.iter().map(|kernel| Source { name: &kernel.name, text: &kernel.text });
        let sources: Vec<Source> = sources.collect();
        let loaded = library_cached(&Compiler::find().unwrap(), &sources, &settings);
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{}", kernels[0].text));
        for (kernel, loaded) in kernels.iter().zip(&loaded) {
            expected.iter().for_each(|(steps, expected)| self.check_loaded(kernel, loaded, expected, *steps));
        }
    }

    fn check_loaded(&self, kernel: &Kernel, loaded: &Loaded, expected: &[Option<Data>], steps: i32) {
        let l = kernel.launch;
        let launch =
            Launch { grid: l.grid, block: l.block, cluster: l.cluster, shared: l.shared, cooperative: l.cooperative };
        for order in Order::ALL {
            let machine = Emulator::default().in_order(order);
            let place = |id: FieldId| self.stencil.fields[id].place;
            let mut buffers = Vec::new();
            let (mut args, mut spare) = (Vec::new(), Vec::new());
            for parameter in &kernel.parameters {
                match parameter.meaning.clone() {
                    Meaning::Input(id) => {
                        let data = self.packed(self.inputs[id.index()].as_ref().unwrap(), place(id));
                        let buffer = machine.upload(&bytes(&data)).unwrap();
                        args.push(Arg::Pointer(machine.address(&buffer, 0)));
                        buffers.push((id, data.clone(), data, buffer));
                    }
                    Meaning::Output(id) => {
                        let before = self.before[id.index()].as_ref().unwrap();
                        let data = self.packed(before, place(id));
                        let mut after = before.clone();
                        let computed = expected[id.index()].as_ref().unwrap();
                        replace(&mut after, computed);
                        let after = self.packed_over(&data, &after, place(id));
                        let buffer = machine.upload(&bytes(&data)).unwrap();
                        args.push(Arg::Pointer(machine.address(&buffer, 0)));
                        buffers.push((id, data, after, buffer));
                    }
                    Meaning::Step(StepData::Spare(id)) => {
                        let data = self.packed(self.before[id.index()].as_ref().unwrap(), place(id));
                        let buffer = machine.upload(&bytes(&data)).unwrap();
                        args.push(Arg::Pointer(machine.address(&buffer, 0)));
                        spare.push(buffer);
                    }
                    Meaning::Step(data @ (StepData::Barrier | StepData::Flags(_))) => {
                        let count = if let StepData::Flags(count) = data { count } else { 1 };
                        let buffer = machine.upload(&vec![0; 4 * count]).unwrap();
                        args.push(Arg::Pointer(machine.address(&buffer, 0)));
                        spare.push(buffer);
                    }
                    Meaning::Step(StepData::Count) => args.push(Arg::I32(steps)),
                    Meaning::Param(id) => args.push(match (self.stencil.params[id].kind, self.precision) {
                        (Kind::Real, Precision::F32) => Arg::F32(self.params[id.index()].real() as f32),
                        (Kind::Real, Precision::F64) => Arg::F64(self.params[id.index()].real()),
                        (Kind::Int, _) => Arg::I32(self.params[id.index()].int()),
                        (Kind::Bool, _) => Arg::U8(u8::from(self.params[id.index()].truth())),
                    }),
                    meaning => unreachable!("{meaning:?} of a kernel of whole steps"),
                }
            }
            machine
                .launch(loaded, &launch, &args)
                .unwrap_or_else(|error| panic!("{}: {error}\n{}", self.stencil.name, kernel.text));
            for buffer in &spare {
                let (_, guards) = machine.download(buffer).unwrap();
                assert!(guards.before.is_none() && guards.after.is_none(), "{}", kernel.text);
            }
            for (id, _, after, buffer) in buffers {
                let (found, guards) = machine.download(&buffer).unwrap();
                let name = &self.stencil.fields[id].name;
                assert!(guards.before.is_none() && guards.after.is_none(), "{name}: guards\n{}", kernel.text);
                let found = from_bytes(&found, &after);
                for index in 0..after.len() {
                    if found.bits(index) != after.bits(index) {
                        let Rows { first, row, plane } = self.rows;
                        let at = index.saturating_sub(first);
                        let cell = [at % plane % row, at % plane / row, at / plane];
                        let (found, after) = (found.get(index), after.get(index));
                        panic!(
                            "`{name}` of {} {:?} {:?} {order} at {cell:?}: {found}, not {after}\n{}",
                            self.stencil.name, self.precision, self.extents, kernel.text
                        );
                    }
                }
            }
        }
    }

    fn packed_over(&self, before: &Data, data: &Data, place: Place) -> Data {
        let mut packed = self.packed(data, place);
        // What is no cell stays as it was.
        let [ni, nj, _] = self.extents;
        let Rows { first, row, plane } = self.rows;
        let planes = data.len() / (ni * nj);
        let is_cell = |index: usize| {
            index >= first && {
                let at = index - first;
                at / plane < planes && at % plane % row < ni && at % plane / row < nj
            }
        };
        keep_data(&mut packed, before, is_cell);
        packed
    }
}

/// Leaves in `data` what was before, except where it is new.
fn keep_data(data: &mut Data, before: &Data, is_new: impl Fn(usize) -> bool) {
    match (data, before) {
        (Data::F32(to), Data::F32(from)) => keep(to, from, is_new),
        (Data::F64(to), Data::F64(from)) => keep(to, from, is_new),
        (Data::I32(to), Data::I32(from)) => keep(to, from, is_new),
        (Data::Bool(to), Data::Bool(from)) => keep(to, from, is_new),
        _ => unreachable!(),
    }
}

fn keep<T: Copy>(to: &mut [T], from: &[T], is_new: impl Fn(usize) -> bool) {
    (0..to.len()).filter(|&index| !is_new(index)).for_each(|index| to[index] = from[index]);
}

/// Puts what was computed over what was there.
fn replace(data: &mut Data, computed: &Data) {
    match (data, computed) {
        (Data::F32(to), Data::F32(from)) => to[..from.len()].copy_from_slice(from),
        (Data::F64(to), Data::F64(from)) => to[..from.len()].copy_from_slice(from),
        (Data::I32(to), Data::I32(from)) => to[..from.len()].copy_from_slice(from),
        (Data::Bool(to), Data::Bool(from)) => to[..from.len()].copy_from_slice(from),
        _ => unreachable!(),
    }
}

fn count(place: Place, [ni, nj, nk]: [usize; 3]) -> usize {
    place.levels.count(nk) * if place.horizontal { ni * nj } else { 1 }
}

fn bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::F32(v) => bytemuck::cast_slice(v).to_vec(),
        Data::F64(v) => bytemuck::cast_slice(v).to_vec(),
        Data::I32(v) => bytemuck::cast_slice(v).to_vec(),
        Data::Bool(v) => v.clone(),
    }
}

fn from_bytes(bytes: &[u8], like: &Data) -> Data {
    match like {
        Data::F32(_) => Data::F32(bytemuck::pod_collect_to_vec(bytes)),
        Data::F64(_) => Data::F64(bytemuck::pod_collect_to_vec(bytes)),
        Data::I32(_) => Data::I32(bytemuck::pod_collect_to_vec(bytes)),
        Data::Bool(_) => Data::Bool(bytes.to_vec()),
    }
}
