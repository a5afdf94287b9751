//! Whole stencils against plain loops, and random ones against an evaluation cell by cell.

mod evaluate;
mod random;

use super::*;
use crate::grid::in_rows;
use evaluate::*;
use stencilc_compiler::analysis;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::scalar::apply;
use stencilc_compiler::ir::{
    Binary, Body, Def, DefId, Function, Node, NodeId, Offset, Origin, Param, ParamId, Path, Relation, Role, Store,
    Stored,
};

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
fn plane(ni: usize, nj: usize) -> Adjacency {
    in_rows("plane", ni, nj).unwrap()
}

/// The job of a stencil without parameters on a grid in rows.
fn on_rows<'a>(
    stencil: &'a Stencil,
    precision: Precision,
    grid: Grid,
    region: &'a Region,
    inputs: &'a [Option<&'a Data>],
) -> Job<'a> {
    Job { stencil, precision, grid, adjacency: None, region, params: &[], inputs }
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
            let job = on_rows(&stencil, precision, grid, &region, &inputs);
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
    let job = on_rows(&stencil, Precision::F64, grid, &region, &inputs);
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
            .map(|id| Random(8).data(&stencil, Grid::rows(ni, nj, nk), Precision::F64, id))
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
        let rows = computed(Grid::rows(ni, nj, nk), None);
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
        let (last, two) = (w.level(Relation::Lt, Node::Count(GridAxis::K)), w.level(Relation::Lt, Node::Int(2)));
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
            let a = w.add(Node::Read { field: input, path, part: 0, by: None }, stored.kind());
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
        let number = w.add(Node::Read { field: b, path: Path::default(), part: 0, by: None }, Kind::Int);
        let number = w.add(Node::ToReal(number), Kind::Real);
        w.add(Node::Call(Function::Fma, vec![west, number, east]), Kind::Real);
    });
    store(&mut s, b, |w| {
        w.add(
            Node::Read { field: b, path: Path::from_offset(Offset { i: 0, j: -1, k: 0 }), part: 0, by: None },
            Kind::Int,
        );
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
    let job = on_rows(&stencil, Precision::F64, grid, &region, &inputs);
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
        let job = on_rows(&stencil, Precision::F64, grid, &region, &inputs);
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
    let job = on_rows(&s, Precision::F64, grid, &region, &inputs);
    let shared = Shared::new(&job).unwrap();
    assert_eq!(Program::new(&shared, &plan(&shared, 0)).slots, [2, 0, 0]);
}
