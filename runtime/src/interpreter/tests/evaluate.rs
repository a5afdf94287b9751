//! An evaluation of stencils cell by cell, straight from the definition of the IR, and what writes stencils for it.

use super::*;

/// Writes a body.
#[derive(Default)]
pub(super) struct Writer(pub(super) Body);

impl Writer {
    pub(super) fn add(&mut self, node: Node, kind: Kind) -> NodeId {
        let start = self.0.len();
        self.0.add(node, kind, Span::new(start, start + 1))
    }
    pub(super) fn real(&mut self, x: f64) -> NodeId {
        self.add(Node::Real(x), Kind::Real)
    }
    pub(super) fn read(&mut self, field: FieldId, [i, j, k]: [i32; 3]) -> NodeId {
        self.add(Node::Read { field, path: Path::from_offset(Offset { i, j, k }), part: 0, by: None }, Kind::Real)
    }
    pub(super) fn used(&mut self, def: DefId, [i, j, k]: [i32; 3]) -> NodeId {
        self.add(Node::Use { def, path: Path::from_offset(Offset { i, j, k }) }, Kind::Real)
    }
    pub(super) fn binary(&mut self, op: Binary, a: NodeId, b: NodeId) -> NodeId {
        let kind = self.0.kind_of(a);
        self.add(Node::Binary(op, a, b), kind)
    }
    pub(super) fn choose(&mut self, condition: NodeId, yes: NodeId, no: NodeId) -> NodeId {
        let kind = self.0.kind_of(yes);
        self.add(Node::Choose { condition, yes, no }, kind)
    }
    /// `level + by` compared with `to`.
    pub(super) fn level(&mut self, relation: Relation, to: Node) -> NodeId {
        let (level, to) = (self.add(Node::Level, Kind::Int), self.add(to, Kind::Int));
        self.add(Node::Compare(relation, level, to), Kind::Bool)
    }
}

pub(super) fn body(write: impl FnOnce(&mut Writer)) -> Body {
    let mut writer = Writer::default();
    write(&mut writer);
    writer.0
}

pub(super) fn field(stencil: &mut Stencil, role: Role, place: Place, stored: Stored) -> FieldId {
    let name = format!("f{}", stencil.fields.len());
    stencil.fields.add(Field {
        name,
        doc: Default::default(),
        role,
        place,
        stored,
        is_single: false,
        range: None,
        span: Span::default(),
    })
}

pub(super) fn param(kind: Kind) -> Param {
    Param { name: String::new(), doc: Default::default(), kind, is_single: false, default: None, span: Span::default() }
}

pub(super) fn define(stencil: &mut Stencil, write: impl FnOnce(&mut Writer)) -> DefId {
    let name = format!("d{}", stencil.defs.len());
    stencil.defs.add(Def { name, origin: Origin::Let, over: None, body: body(write) })
}

pub(super) fn store(stencil: &mut Stencil, field: FieldId, write: impl FnOnce(&mut Writer)) {
    stencil.stores.push(Store { field, body: body(write), sweep: None });
}

/// Deterministic numbers (xorshift64*).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n as u64) as usize
    }
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
    pub(super) fn real(&mut self) -> f64 {
        let special = [0.0, -0.0, f64::NAN, f64::INFINITY, 1.0, -2.5];
        if self.below(8) == 0 { self.pick(&special) } else { self.below(1 << 30) as f64 / 7e7 - 7.0 }
    }
    pub(super) fn data(&mut self, stencil: &Stencil, grid: Grid, precision: Precision, id: FieldId) -> Data {
        let field = &stencil.fields[id];
        let len = grid.shape(field.place).iter().product();
        let single = field.stored.bytes(precision) == 4;
        match field.stored.kind() {
            Kind::Real if single => Data::F32((0..len).map(|_| self.real() as f32).collect()),
            Kind::Real => Data::F64((0..len).map(|_| self.real()).collect()),
            Kind::Int => Data::I32((0..len).map(|_| self.below(13) as i32 - 6).collect()),
            Kind::Bool => Data::Bool((0..len).map(|_| self.below(2) as u8).collect()),
        }
    }
}

/// The value of a body at a cell, straight from the definition of the IR.
pub(super) fn evaluate(job: &Job, body: &Body, node: NodeId, at: [i64; 3]) -> Value {
    let operand = |node| evaluate(job, body, node, at);
    let moved = |path: &Path| match job.adjacency {
        None => {
            let by = path.offset();
            [at[0] + i64::from(by.i), at[1] + i64::from(by.j), at[2] + i64::from(by.k)]
        }
        Some(adjacency) => {
            let mut cell = at[0];
            for step in path.units() {
                cell =
                    usize::try_from(cell).ok().and_then(|cell| adjacency.step(cell, step)).map_or(-1, |to| to as i64);
            }
            [cell, 0, at[2] + i64::from(path.levels())]
        }
    };
    match &body[node] {
        Node::Param(param) => job.params[param.index()].rounded(job.precision),
        Node::Level => Value::Int(at[2] as i32),
        Node::Count(GridAxis::K) => Value::Int(job.grid.nk as i32),
        Node::Read { field, path, .. } => {
            let [i, j, k] = moved(path);
            let Field { place, stored, .. } = job.stencil.fields[*field];
            let Grid { ni, nj, nk, .. } = job.grid;
            let mut index = 0;
            if place.levels != Levels::None {
                assert!((0..place.levels.count(nk) as i64).contains(&k), "a level outside the grid is read");
                index = k as usize;
            }
            if place.horizontal {
                assert!((0..ni as i64).contains(&i) && (0..nj as i64).contains(&j), "a read outside the grid");
                index = (index * nj + j as usize) * ni + i as usize;
            }
            let x = job.inputs[field.index()].unwrap().get(index);
            match stored.kind() {
                Kind::Real => Value::Real(x).rounded(job.precision),
                Kind::Int => Value::Int(x as i32),
                Kind::Bool => Value::Bool(x != 0.0),
            }
        }
        Node::Use { def, path } => {
            let body = &job.stencil.defs[*def].body;
            evaluate(job, body, body.root(), moved(path))
        }
        Node::Choose { condition, yes, no } => operand(if operand(*condition).truth() { *yes } else { *no }),
        Node::And(a, b) => Value::Bool(operand(*a).truth() && operand(*b).truth()),
        Node::Or(a, b) => Value::Bool(operand(*a).truth() || operand(*b).truth()),
        node => {
            let operands: Vec<Value> = node.operands().into_iter().map(operand).collect();
            apply(job.precision, node, &operands).unwrap()
        }
    }
}

/// Computes `stencil` on random data, by rows and cell by cell; false if the grid has no region.
pub(super) fn same(stencil: &Stencil, precision: Precision, grid: Grid, params: &[Value], seed: u64) -> bool {
    same_on(stencil, precision, grid, None, params, seed)
}

pub(super) fn same_on(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    adjacency: Option<&Adjacency>,
    params: &[Value],
    seed: u64,
) -> bool {
    let Ok(region) = analysis::region(stencil, precision, grid, adjacency, params) else { return false };
    let mut random = Random(seed);
    let arrays: Vec<Data> = stencil.fields.handles().map(|id| random.data(stencil, grid, precision, id)).collect();
    let inputs: Vec<Option<&Data>> =
        stencil.fields.iter().map(|(id, field)| field.role.is_read().then_some(&arrays[id.index()])).collect();
    let job = Job { stencil, precision, grid, adjacency, region: &region, params, inputs: &inputs };
    let mut outputs: Vec<Option<Data>> = arrays.iter().cloned().map(Some).collect();
    let rows = std::sync::atomic::AtomicUsize::new(0);
    interpret(&job, &mut outputs, &|n| {
        rows.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(rows.into_inner(), region.j.len() * region.k.len());
    let mut expected = arrays.clone();
    for Store { field, body, .. } in &stencil.stores {
        let place = stencil.fields[*field].place;
        let columns = region.column_numbers(grid);
        let columns = &columns[..if place.horizontal { columns.len() } else { 1 }];
        for k in if place.levels == Levels::None { region.k.start..region.k.start + 1 } else { region.k.clone() } {
            for column in columns.iter().map(|&column| column as usize) {
                let level = if place.levels == Levels::None { 0 } else { k };
                let index = if place.horizontal { level * grid.columns() + column } else { level };
                let (i, j) = (column % grid.ni, column / grid.ni);
                let value = evaluate(&job, body, body.root(), [i as i64, j as i64, k as i64]);
                match &mut expected[field.index()] {
                    Data::F32(data) => data[index] = value.real() as f32,
                    Data::F64(data) => data[index] = value.real(),
                    Data::I32(data) => data[index] = value.int(),
                    Data::Bool(data) => data[index] = value.truth().into(),
                }
            }
        }
    }
    for (id, field) in stencil.fields.iter() {
        let (found, expected) = (outputs[id.index()].as_ref().unwrap(), &expected[id.index()]);
        for index in 0..expected.len() {
            let (a, b) = (found.get(index), expected.get(index));
            assert!(found.bits(index) == expected.bits(index), "{}[{index}]: {a} instead of {b}", field.name);
        }
    }
    true
}
