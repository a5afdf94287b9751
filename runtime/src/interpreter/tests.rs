//! Whole stencils against plain loops, and random ones against an evaluation cell by cell.

use super::*;
use stencilc_compiler::analysis;
use stencilc_compiler::ir::scalar::apply;
use stencilc_compiler::ir::{
    Binary, Body, Def, DefId, Function, Node, NodeId, Offset, Origin, Param, ParamId, Path, Relation, Role, Store,
    Stored,
};

/// Writes a body.
#[derive(Default)]
struct Writer(Body);

impl Writer {
    fn add(&mut self, node: Node, kind: Kind) -> NodeId {
        let start = self.0.len();
        self.0.add(node, kind, Span::new(start, start + 1))
    }
    fn real(&mut self, x: f64) -> NodeId {
        self.add(Node::Real(x), Kind::Real)
    }
    fn read(&mut self, field: FieldId, [i, j, k]: [i32; 3]) -> NodeId {
        self.add(Node::Read { field, path: Path::from_offset(Offset { i, j, k }), part: 0 }, Kind::Real)
    }
    fn used(&mut self, def: DefId, [i, j, k]: [i32; 3]) -> NodeId {
        self.add(Node::Use { def, path: Path::from_offset(Offset { i, j, k }) }, Kind::Real)
    }
    fn binary(&mut self, op: Binary, a: NodeId, b: NodeId) -> NodeId {
        let kind = self.0.kind_of(a);
        self.add(Node::Binary(op, a, b), kind)
    }
    fn choose(&mut self, condition: NodeId, yes: NodeId, no: NodeId) -> NodeId {
        let kind = self.0.kind_of(yes);
        self.add(Node::Choose { condition, yes, no }, kind)
    }
    /// `level + by` compared with `to`.
    fn level(&mut self, relation: Relation, to: Node) -> NodeId {
        let (level, to) = (self.add(Node::Level, Kind::Int), self.add(to, Kind::Int));
        self.add(Node::Compare(relation, level, to), Kind::Bool)
    }
}

fn body(write: impl FnOnce(&mut Writer)) -> Body {
    let mut writer = Writer::default();
    write(&mut writer);
    writer.0
}

fn field(stencil: &mut Stencil, role: Role, place: Place, stored: Stored) -> FieldId {
    let name = format!("f{}", stencil.fields.len());
    stencil.fields.add(Field { name, doc: Default::default(), role, place, stored, range: None, span: Span::default() })
}

fn define(stencil: &mut Stencil, write: impl FnOnce(&mut Writer)) -> DefId {
    let name = format!("d{}", stencil.defs.len());
    stencil.defs.add(Def { name, origin: Origin::Let, body: body(write) })
}

fn store(stencil: &mut Stencil, field: FieldId, write: impl FnOnce(&mut Writer)) {
    stencil.stores.push(Store { field, body: body(write), sweep: None });
}

/// Deterministic numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n as u64) as usize
    }
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
    fn real(&mut self) -> f64 {
        let special = [0.0, -0.0, f64::NAN, f64::INFINITY, 1.0, -2.5];
        if self.below(8) == 0 { self.pick(&special) } else { self.below(1 << 30) as f64 / 7e7 - 7.0 }
    }
    fn data(&mut self, stencil: &Stencil, grid: Grid, precision: Precision, id: FieldId) -> Data {
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
fn evaluate(job: &Job, body: &Body, node: NodeId, at: [i64; 3]) -> Value {
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
        Node::LevelCount => Value::Int(job.grid.nk as i32),
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
fn same(stencil: &Stencil, precision: Precision, grid: Grid, params: &[Value], seed: u64) -> bool {
    same_on(stencil, precision, grid, None, params, seed)
}

fn same_on(
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

/// `4*a - a[i-1] - a[i+1] - a[j-1] - a[j+1]`, contracted.
fn laplacian(of: impl Fn(&mut Writer, [i32; 3]) -> NodeId) -> impl FnOnce(&mut Writer) {
    move |writer| {
        let (four, a, west) = (writer.real(4.0), of(writer, [0; 3]), of(writer, [-1, 0, 0]));
        let west = writer.add(Node::Negate(west), Kind::Real);
        let mut sum = writer.add(Node::Call(Function::Fma, vec![four, a, west]), Kind::Real);
        for offset in [[1, 0, 0], [0, -1, 0], [0, 1, 0]] {
            let a = of(writer, offset);
            sum = writer.binary(Binary::Sub, sum, a);
        }
    }
}

fn laplap() -> Stencil {
    let mut s = Stencil::default();
    let phi = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let res = field(&mut s, Role::Out, Place::CELLS, Stored::Real);
    let lap = define(&mut s, laplacian(|w, at| w.read(phi, at)));
    // An argument, as a function's would be: a mere alias.
    let argument = define(&mut s, |w| {
        w.used(lap, [0; 3]);
    });
    store(&mut s, res, laplacian(|w, at| w.used(argument, at)));
    s
}

fn hdiff() -> Stencil {
    let mut s = Stencil::default();
    let phi = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let coeff = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let res = field(&mut s, Role::Out, Place::CELLS, Stored::Real);
    let lap = define(&mut s, laplacian(|w, at| w.read(phi, at)));
    let fluxes = [[1, 0, 0], [0, 1, 0]].map(|next| {
        let flux = define(&mut s, |w| {
            let (a, b) = (w.used(lap, next), w.used(lap, [0; 3]));
            w.binary(Binary::Sub, a, b);
        });
        let gradient = define(&mut s, |w| {
            let (a, b) = (w.read(phi, next), w.read(phi, [0; 3]));
            w.binary(Binary::Sub, a, b);
        });
        define(&mut s, |w| {
            let (flux, gradient, zero) = (w.used(flux, [0; 3]), w.used(gradient, [0; 3]), w.real(0.0));
            let product = w.binary(Binary::Mul, flux, gradient);
            let condition = w.add(Node::Compare(Relation::Gt, product, zero), Kind::Bool);
            w.choose(condition, zero, flux);
        })
    });
    store(&mut s, res, |w| {
        let (phi, coeff) = (w.read(phi, [0; 3]), w.read(coeff, [0; 3]));
        let (a, b) = (w.used(fluxes[0], [0; 3]), w.used(fluxes[0], [-1, 0, 0]));
        let (c, d) = (w.used(fluxes[1], [0; 3]), w.used(fluxes[1], [0, -1, 0]));
        let sum = w.binary(Binary::Sub, a, b);
        let sum = w.binary(Binary::Add, sum, c);
        let sum = w.binary(Binary::Sub, sum, d);
        let minus = w.add(Node::Negate(coeff), Kind::Real);
        w.add(Node::Call(Function::Fma, vec![minus, sum, phi]), Kind::Real);
    });
    s
}

/// `n` times the mean of nine neighbours.
fn smooth(n: usize) -> Stencil {
    let mut s = Stencil::default();
    let phi = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let res = field(&mut s, Role::Out, Place::CELLS, Stored::Real);
    let mut last = None;
    for _ in 0..n {
        let before = last;
        last = Some(define(&mut s, |w| {
            let mut sum = None;
            for at in (-1..=1).flat_map(|j| (-1..=1).map(move |i| [i, j, 0])) {
                let a = match before {
                    Some(def) => w.used(def, at),
                    None => w.read(phi, at),
                };
                sum = Some(sum.map_or(a, |sum| w.binary(Binary::Add, sum, a)));
            }
            let nine = w.real(9.0);
            w.binary(Binary::Div, sum.unwrap(), nine);
        }));
    }
    store(&mut s, res, |w| {
        w.used(last.unwrap(), [0; 3]);
    });
    s
}

/// Cells whose neighbours are any others, or, once in `rare`, none.
fn anywhere(random: &mut Random, cells: usize, rare: usize) -> Adjacency {
    let list = |random: &mut Random| {
        let neighbour = |_| if random.below(rare) == 0 { -1 } else { random.below(cells) as i32 };
        (0..cells).map(neighbour).collect::<Vec<i32>>()
    };
    let lists = [(); 4].map(|()| list(random));
    Adjacency::new("anywhere", lists, None).unwrap()
}

/// ni x nj cells in rows, as an adjacency.
fn plane(ni: i32, nj: i32) -> Adjacency {
    let to = |[i, j]: [i32; 2]| {
        let ends = (0..ni * nj).map(|cell| [cell % ni + i, cell / ni + j]);
        let inside = |&[i, j]: &[i32; 2]| (0..ni).contains(&i) && (0..nj).contains(&j);
        ends.map(|end| if inside(&end) { end[1] * ni + end[0] } else { -1 }).collect::<Vec<i32>>()
    };
    Adjacency::new("plane", [[-1, 0], [1, 0], [0, -1], [0, 1]].map(to), None).unwrap()
}

#[test]
#[ignore = "takes seconds and asserts nothing: prints times on 512x512x64"]
fn times() {
    let grid = Grid::rows(512, 512, 64);
    for (name, stencil) in [("laplap", laplap()), ("hdiff", hdiff()), ("smooth 10", smooth(10))] {
        for precision in [Precision::F64, Precision::F32] {
            let region = analysis::region(&stencil, precision, grid, None, &[]).unwrap();
            let arrays: Vec<Data> =
                stencil.fields.handles().map(|id| Random(9).data(&stencil, grid, precision, id)).collect();
            let inputs: Vec<Option<&Data>> = arrays.iter().map(Some).collect();
            let job = Job {
                stencil: &stencil,
                precision,
                grid,
                adjacency: None,
                region: &region,
                params: &[],
                inputs: &inputs,
            };
            let mut outputs: Vec<Option<Data>> = arrays.iter().cloned().map(Some).collect();
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let start = std::time::Instant::now();
                interpret(&job, &mut outputs, &|_| ()).unwrap();
                best = best.min(start.elapsed().as_secs_f64());
            }
            let start = std::time::Instant::now();
            let shared = Shared::new(&job).unwrap();
            Program::new(&shared, &plan(&shared, 3));
            let setup = start.elapsed().as_secs_f64();
            println!("{name} {precision:?}: {:.1} ms, program {:.3} ms", best * 1e3, setup * 1e3);
        }
    }
}

#[test]
fn the_bilaplacian_is_a_plain_loop() {
    let stencil = laplap();
    let grid = Grid::rows(11, 9, 2);
    let phi = Random(3).data(&stencil, grid, Precision::F64, FieldId::new(0));
    let region = analysis::region(&stencil, Precision::F64, grid, None, &[]).unwrap();
    let inputs = [Some(&phi), None];
    let job = Job {
        stencil: &stencil,
        precision: Precision::F64,
        grid,
        adjacency: None,
        region: &region,
        params: &[],
        inputs: &inputs,
    };
    let mut outputs = [None, Some(Data::F64(vec![42.0; 11 * 9 * 2]))];
    interpret(&job, &mut outputs, &|_| ()).unwrap();
    let laplacian = |a: &dyn Fn(usize) -> f64, c: usize| {
        let west = 4.0f64.mul_add(a(c), -a(c - 1));
        west - a(c + 1) - a(c - 11) - a(c + 11)
    };
    for c in 0..11 * 9 * 2 {
        let (i, j) = (c % 11, c / 11 % 9);
        let inside = (2..9).contains(&i) && (2..7).contains(&j);
        let expected = if inside { laplacian(&|c| laplacian(&|c| phi.get(c), c), c) } else { 42.0 };
        let found = outputs[1].as_ref().unwrap().get(c);
        assert!(
            found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(),
            "{c}: {found}, {expected}"
        );
    }
}

#[test]
fn common_stencils_on_grids_of_many_shapes() {
    for stencil in [laplap(), hdiff(), smooth(2)] {
        for precision in [Precision::F32, Precision::F64] {
            // One chunk; chunks and their borders; several strips; a single column.
            for (ni, nj, nk) in [(13, 37, 2), (1500, 6, 1), (7, 200, 1), (5, 5, 3)] {
                assert!(same(&stencil, precision, Grid::rows(ni, nj, nk), &[], 5));
            }
        }
    }
}

#[test]
fn common_stencils_on_cells_that_stand_in_no_rows() {
    let mut random = Random(77);
    for stencil in [laplap(), hdiff(), smooth(2)] {
        for precision in [Precision::F32, Precision::F64] {
            for adjacency in [plane(9, 8), anywhere(&mut random, 600, 60)] {
                let grid = Grid::cells(adjacency.cells(), 3);
                assert!(same_on(&stencil, precision, grid, Some(&adjacency), &[], 6));
            }
        }
    }
}

#[test]
fn paths_through_mere_names_are_walked_in_their_order() {
    let mut s = Stencil::default();
    let a = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let [read, used] = [(); 2].map(|()| field(&mut s, Role::Out, Place::CELLS, Stored::Real));
    let double = define(&mut s, |w| {
        let here = w.read(a, [0; 3]);
        w.binary(Binary::Add, here, here);
    });
    let left = define(&mut s, |w| {
        w.used(double, [-1, 0, 0]);
    });
    let above = define(&mut s, |w| {
        w.read(a, [0, -1, 0]);
    });
    store(&mut s, used, |w| {
        w.used(left, [0, 1, 0]);
    });
    store(&mut s, read, |w| {
        w.used(above, [1, 0, 0]);
    });
    let adjacency = anywhere(&mut Random(41), 200, 9);
    assert!(same_on(&s, Precision::F64, Grid::cells(200, 2), Some(&adjacency), &[], 7));
}

#[test]
fn an_adjacency_of_rows_means_what_rows_mean() {
    let (ni, nj, nk) = (12, 10, 2);
    let adjacency = plane(ni, nj);
    for stencil in [laplap(), hdiff(), smooth(2)] {
        let arrays: Vec<Data> = stencil
            .fields
            .handles()
            .map(|id| Random(8).data(&stencil, Grid::rows(ni as usize, nj as usize, nk), Precision::F64, id))
            .collect();
        let inputs: Vec<Option<&Data>> = arrays.iter().map(Some).collect();
        let computed = |grid: Grid, adjacency: Option<&Adjacency>| {
            let region = analysis::region(&stencil, Precision::F64, grid, adjacency, &[]).unwrap();
            let (precision, inputs) = (Precision::F64, &inputs[..]);
            let job = Job { stencil: &stencil, precision, grid, adjacency, region: &region, params: &[], inputs };
            let mut outputs: Vec<Option<Data>> = arrays.iter().cloned().map(Some).collect();
            interpret(&job, &mut outputs, &|_| ()).unwrap();
            let Coverage { choices } = cover(&job).unwrap();
            let bits = outputs.iter().flatten().map(|data| (0..data.len()).map(|at| data.bits(at)).collect());
            (region.column_numbers(grid), bits.collect::<Vec<Vec<u64>>>(), choices)
        };
        let rows = computed(Grid::rows(ni as usize, nj as usize, nk), None);
        let cells = computed(Grid::cells(adjacency.cells(), nk), Some(&adjacency));
        assert_eq!((&rows.0, &rows.1), (&cells.0, &cells.1));
        // Rows also count the corners of windows, where no output looks.
        for (rows, cells) in rows.2.iter().zip(&cells.2) {
            assert!(cells.taken <= rows.taken && cells.not_taken <= rows.not_taken);
            assert_eq!((cells.taken > 0, cells.not_taken > 0), (rows.taken > 0, rows.not_taken > 0));
        }
    }
}

#[test]
fn an_adjacency_that_does_not_fit_is_refused() {
    let (stencil, adjacency) = (smooth(1), plane(4, 4));
    let grid = Grid::cells(16, 1);
    let region = analysis::region(&stencil, Precision::F64, grid, Some(&adjacency), &[]).unwrap();
    let data = Data::F64(vec![0.0; 16]);
    let inputs = [Some(&data), None];
    for other in [None, Some(&plane(5, 4))] {
        let (stencil, precision) = (&stencil, Precision::F64);
        let job = Job { stencil, precision, grid, adjacency: other, region: &region, params: &[], inputs: &inputs };
        assert!(interpret(&job, &mut [None, Some(data.clone())], &|_| ()).is_err());
    }
}

#[test]
fn unread_levels_do_not_count() {
    let mut s = Stencil::default();
    let a = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let interfaces = field(&mut s, Role::In, Place { levels: Levels::Interfaces, ..Place::CELLS }, Stored::Real);
    let [guarded, by_param, sum] = [(); 3].map(|()| field(&mut s, Role::Out, Place::CELLS, Stored::Real));
    let limit = s.params.add(param(Kind::Int));
    let guard = define(&mut s, |w| {
        let positive = w.level(Relation::Gt, Node::Int(0));
        let (below, here) = (w.read(a, [1, 0, -1]), w.read(a, [0; 3]));
        w.choose(positive, below, here);
    });
    store(&mut s, guarded, |w| {
        let (last, two) = (w.level(Relation::Lt, Node::LevelCount), w.level(Relation::Lt, Node::Int(2)));
        let (next, here) = (w.used(guard, [-1, 2, 1]), w.used(guard, [0; 3]));
        let guard = w.add(Node::And(last, two), Kind::Bool);
        w.choose(guard, next, here);
    });
    store(&mut s, by_param, |w| {
        let flat = w.level(Relation::Ge, Node::Param(limit));
        let (far, here) = (w.read(a, [0, 0, -3]), w.read(a, [0; 3]));
        // `flat && a[k-3] > a`: the right side counts only where the left lets it.
        let greater = w.add(Node::Compare(Relation::Gt, far, here), Kind::Bool);
        let both = w.add(Node::And(flat, greater), Kind::Bool);
        w.choose(both, far, here);
    });
    store(&mut s, sum, |w| {
        let (above, below) = (w.read(interfaces, [0; 3]), w.read(interfaces, [0, 0, 1]));
        w.binary(Binary::Sub, above, below);
    });
    let grid = Grid::rows(9, 8, 7);
    for limit in 3..9 {
        assert!(same(&s, Precision::F64, grid, &[Value::Int(limit)], 11));
        assert_eq!(analysis::region(&s, Precision::F64, grid, None, &[Value::Int(limit)]).unwrap().k, 0..7);
    }
}

#[test]
fn outputs_may_lack_axes() {
    let mut s = Stencil::default();
    let flat = Place { horizontal: true, levels: Levels::None, home: None };
    let column = Place { horizontal: false, levels: Levels::Full, home: None };
    let number = Place::NOWHERE;
    for (place, stored) in [(flat, Stored::F32), (column, Stored::F64), (number, Stored::Int), (column, Stored::Bool)] {
        let (input, output) = (field(&mut s, Role::In, place, stored), field(&mut s, Role::Out, place, stored));
        let up = i32::from(place.levels == Levels::Full);
        let double = define(&mut s, |w| {
            let path = Path::levels_only(up);
            let a = w.add(Node::Read { field: input, path, part: 0 }, stored.kind());
            let unequal = w.add(Node::Compare(Relation::Ne, a, a), Kind::Bool);
            let twice = if stored == Stored::Bool { unequal } else { w.binary(Binary::Add, a, a) };
            w.choose(unequal, a, twice);
        });
        store(&mut s, output, |w| {
            w.add(Node::Use { def: double, path: Path::default() }, stored.kind());
        });
    }
    for (precision, nj) in [(Precision::F32, 5), (Precision::F64, 90)] {
        assert!(same(&s, precision, Grid::rows(700, nj, 3), &[], 17));
    }
}

#[test]
fn an_inout_field_is_read_as_it_was() {
    let mut s = Stencil::default();
    let a = field(&mut s, Role::InOut, Place::CELLS, Stored::F32);
    let b = field(&mut s, Role::InOut, Place::CELLS, Stored::Int);
    store(&mut s, a, |w| {
        let (west, east) = (w.read(a, [-1, 0, 0]), w.read(a, [1, 0, 0]));
        let number = w.add(Node::Read { field: b, path: Path::default(), part: 0 }, Kind::Int);
        let number = w.add(Node::ToReal(number), Kind::Real);
        w.add(Node::Call(Function::Fma, vec![west, number, east]), Kind::Real);
    });
    store(&mut s, b, |w| {
        w.add(Node::Read { field: b, path: Path::from_offset(Offset { i: 0, j: -1, k: 0 }), part: 0 }, Kind::Int);
    });
    for precision in [Precision::F32, Precision::F64] {
        assert!(same(&s, precision, Grid::rows(20, 40, 2), &[], 23));
    }
}

#[test]
fn open_conditions_are_counted() {
    let (stencil, grid) = (hdiff(), Grid::rows(600, 50, 2));
    let region = analysis::region(&stencil, Precision::F64, grid, None, &[]).unwrap();
    let data: Vec<Data> =
        stencil.fields.handles().map(|id| Random(1).data(&stencil, grid, Precision::F64, id)).collect();
    let inputs: Vec<Option<&Data>> = data.iter().map(Some).collect();
    let job = Job {
        stencil: &stencil,
        precision: Precision::F64,
        grid,
        adjacency: None,
        region: &region,
        params: &[],
        inputs: &inputs,
    };
    let found = cover(&job).unwrap();
    // The limited fluxes are wanted at the cell and at its left, or upper, neighbour.
    for (def, [left, up], choice) in [(3, [1, 0], found.choices[0]), (6, [0, 1], found.choices[1])] {
        let body = &stencil.defs[DefId::new(def)].body;
        let (condition, mut counts) = (NodeId::new(body.len() - 2), [0, 0]);
        for k in region.k.clone() {
            for j in region.j.start - up..region.j.end {
                for i in region.i.start - left..region.i.end {
                    let value = evaluate(&job, body, condition, [i as i64, j as i64, k as i64]);
                    counts[usize::from(value.truth())] += 1;
                }
            }
        }
        assert_eq!([choice.not_taken, choice.taken], counts);
        assert_eq!(choice.span, body.span_of(body.root()));
    }
    assert_eq!(found.choices.len(), 2);
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let (stencil, grid) = (smooth(1), Grid::rows(4, 4, 1));
    let region = analysis::region(&stencil, Precision::F64, grid, None, &[]).unwrap();
    let (good, short, whole) = (Data::F64(vec![0.0; 16]), Data::F64(vec![0.0; 15]), Data::I32(vec![0; 16]));
    let refused = |input, output: Option<&Data>| {
        let inputs = [input, None];
        let job = Job {
            stencil: &stencil,
            precision: Precision::F64,
            grid,
            adjacency: None,
            region: &region,
            params: &[],
            inputs: &inputs,
        };
        interpret(&job, &mut [None, output.cloned()], &|_| ()).is_err()
    };
    assert!(!refused(Some(&good), Some(&good)));
    for bad in [None, Some(&short), Some(&whole)] {
        assert!(refused(bad, Some(&good)) && refused(Some(&good), bad));
    }
}

#[test]
fn a_long_body_needs_few_rows() {
    let mut s = Stencil::default();
    let a = field(&mut s, Role::In, Place::CELLS, Stored::Real);
    let res = field(&mut s, Role::Out, Place::CELLS, Stored::Real);
    store(&mut s, res, |w| {
        let mut sum = w.read(a, [0; 3]);
        for n in 0..5000 {
            let term = w.read(a, [n % 3, n % 2, 0]);
            sum = w.binary(Binary::Add, sum, term);
        }
    });
    let grid = Grid::rows(5, 5, 1);
    let data = Random(1).data(&s, grid, Precision::F64, a);
    let region = analysis::region(&s, Precision::F64, grid, None, &[]).unwrap();
    let inputs = [Some(&data), None];
    let job = Job {
        stencil: &s,
        precision: Precision::F64,
        grid,
        adjacency: None,
        region: &region,
        params: &[],
        inputs: &inputs,
    };
    let shared = Shared::new(&job).unwrap();
    assert_eq!(Program::new(&shared, &plan(&shared, 0)).slots, [2, 0, 0]);
}

fn param(kind: Kind) -> Param {
    Param { name: String::new(), doc: Default::default(), kind, default: None, span: Span::default() }
}

/// A path of a few steps, along the axes that there are.
fn random_path(random: &mut Random, place: Place) -> Path {
    let levels = if place.levels == Levels::None { 0 } else { random.pick(&[0, 0, 0, -1, 1]) };
    let mut path = Path::levels_only(levels);
    for _ in 0..if place.horizontal { random.below(3) } else { 0 } {
        let (i, j) = random.pick(&[(1, 0), (-1, 0), (0, 1), (0, -1)]);
        path = path.then(&Path::from_offset(Offset { i, j, k: 0 }));
    }
    path
}

/// A random body: nodes on earlier nodes of fitting kinds.
fn random_body(random: &mut Random, s: &Stencil) -> Body {
    use Kind::{Bool, Int, Real};
    let mut w = Writer::default();
    w.real(random.real());
    w.add(Node::Int(random.below(5) as i32 - 1), Int);
    w.add(Node::Bool(random.below(2) == 0), Bool);
    let mut uses = 0;
    for _ in 0..6 + random.below(14) {
        // Recent nodes, so that much of the body counts.
        let of = |random: &mut Random, kind: Kind| {
            let all: Vec<NodeId> = w.0.iter().map(|(id, _)| id).filter(|&id| w.0.kind_of(id) == kind).collect();
            all[all.len() - 1 - random.below(all.len().min(3))]
        };
        let (kind, number) = (random.pick(&[Real, Int, Bool]), random.pick(&[Real, Int]));
        let (a, b) = (of(random, kind), of(random, kind));
        let (x, y) = (of(random, number), of(random, number));
        let (r, n, c, d) = (of(random, Real), of(random, Int), of(random, Bool), of(random, Bool));
        let relations = [Relation::Lt, Relation::Le, Relation::Gt, Relation::Ge, Relation::Eq, Relation::Ne];
        let (node, kind) = match random.below(16) {
            0 => [
                (Node::Level, Int),
                (Node::LevelCount, Int),
                (Node::Param(ParamId::new(0)), Real),
                (Node::Param(ParamId::new(1)), Int),
                (Node::Param(ParamId::new(2)), Bool),
            ][random.below(5)]
            .clone(),
            1 | 2 => {
                let inputs: Vec<FieldId> = s.fields.handles().collect();
                let field = random.pick(&inputs);
                let Field { place, stored, .. } = s.fields[field];
                (Node::Read { field, path: random_path(random, place), part: 0 }, stored.kind())
            }
            3 | 4 if !s.defs.is_empty() && uses < 2 => {
                uses += 1;
                let def = DefId::new(random.below(s.defs.len()));
                (Node::Use { def, path: random_path(random, Place::CELLS) }, s.defs[def].body.kind())
            }
            3..=5 => (Node::Compare(random.pick(&relations), a, b), Bool),
            6 => [(Node::ToReal(n), Real), (Node::ToSingle(r), Real), (Node::Not(c), Bool)][random.below(3)].clone(),
            7 => (Node::Negate(x), number),
            8 => [(Node::And(c, d), Bool), (Node::Or(c, d), Bool)][random.below(2)].clone(),
            9 | 10 => (Node::Choose { condition: c, yes: a, no: b }, kind),
            11 => (Node::Call(Function::Fma, vec![r, r, r]), Real),
            12 if number == Int => {
                let function = random.pick(&[Function::Min, Function::Max, Function::Abs, Function::Sign]);
                let operands = if matches!(function, Function::Min | Function::Max) { vec![x, y] } else { vec![x] };
                (Node::Call(function, operands), Int)
            }
            12 => {
                let binary = [Function::Min, Function::Max, Function::CopySign, Function::Pow, Function::Atan2];
                let function = random.pick(&binary);
                (Node::Call(function, vec![x, y]), Real)
            }
            13 => {
                let exact = [Function::Abs, Function::Sqrt, Function::Floor, Function::Ceil, Function::Sign];
                let own = [Function::Exp, Function::Log, Function::Sin, Function::Cos, Function::Tan];
                let others = [Function::Atan, Function::Tanh, Function::Cbrt];
                (Node::Call(random.pick(&[&exact[..], &own, &others].concat()), vec![r]), Real)
            }
            14 if number == Real => (Node::Binary(Binary::Div, x, y), Real),
            _ => (Node::Binary(random.pick(&[Binary::Add, Binary::Sub, Binary::Mul, Binary::Rem]), x, y), number),
        };
        w.add(node, kind);
    }
    w.0
}

#[test]
fn random_stencils_mean_what_the_ir_says() {
    let (mut computed, mut on_cells) = (0, 0);
    for seed in 1..400 {
        let mut random = Random(seed);
        let mut s = Stencil::default();
        for kind in [Kind::Real, Kind::Int, Kind::Bool] {
            s.params.add(param(kind));
        }
        for _ in 0..5 {
            let place = Place {
                horizontal: random.below(4) > 0,
                levels: random.pick(&[Levels::Full, Levels::Full, Levels::Interfaces, Levels::None]),
                home: None,
            };
            let stored = random.pick(&[Stored::Real, Stored::F32, Stored::F64, Stored::Int, Stored::Bool]);
            field(&mut s, Role::In, place, stored);
        }
        for _ in 0..random.below(6) {
            let body = random_body(&mut random, &s);
            s.defs.add(Def { name: String::new(), origin: Origin::Let, body });
        }
        let bodies = [(); 2].map(|()| random_body(&mut random, &s));
        for body in bodies {
            let stored = match body.kind() {
                Kind::Real => random.pick(&[Stored::F32, Stored::F64, Stored::Real]),
                Kind::Int => Stored::Int,
                Kind::Bool => Stored::Bool,
            };
            let field = field(&mut s, Role::Out, Place::CELLS, stored);
            s.stores.push(Store { field, body, sweep: None });
        }
        let precision = random.pick(&[Precision::F32, Precision::F64]);
        let params = [Value::Real(random.real()), Value::Int(random.below(5) as i32), Value::Bool(seed % 2 == 0)];
        computed += usize::from(same(&s, precision, Grid::rows(21, 20, 5), &params, seed));
        let adjacency = if seed % 4 == 0 { plane(11, 9) } else { anywhere(&mut random, 90, 9) };
        let grid = Grid::cells(adjacency.cells(), 5);
        on_cells += usize::from(same_on(&s, precision, grid, Some(&adjacency), &params, seed));
    }
    assert!(computed > 100 && on_cells > 100, "only {computed} and {on_cells} of the stencils have a region");
}
