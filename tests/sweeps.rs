//! Vertical recurrences: what they compute, against loops written by hand.

use crate::common::lowered;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_compiler::ir::{Handle, Place, Precision, Stencil};
use stencilc_runtime::interpreter::{Choice, cover};
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::test::interpreted;
use stencilc_runtime::{Array, Data};

/// A tridiagonal system in each column, by the Thomas algorithm.
const THOMAS: &str = "stencil solve {
    in a = -0.5..0.5
    in b = 3.0..4.0
    in c = -0.5..0.5
    in d
    out x
    sweep k up {
        let m  = if k == 0 { 1 / b } else { 1 / (b - a * cp[k-1]) }
        let cp = c * m
        let dp = if k == 0 { d * m } else { (d - a * dp[k-1]) * m }
    }
    sweep k down { x = if k == nk-1 { dp } else { dp - cp * x[k+1] } }
}";

const GRID: Grid = Grid::rows(5, 4, 9);

fn request(stencil: &Stencil) -> Request<'_> {
    Request {
        stencil,
        precision: Precision::F64,
        contract: false,
        grid: Some(GRID),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 1,
        cast: stencilc_runtime::Cast::Exact,
        drawing: stencilc_runtime::Drawing::Everything,
    }
}

/// The only stencil of a text, with everything drawn at random.
fn problem(text: &str) -> Problem {
    Problem::new(request(&lowered("own", text)[0])).unwrap()
}

/// The output called `name`.
fn output(problem: &Problem, name: &str) -> Data {
    let field = problem.stencil.field_named(name).unwrap();
    interpreted(problem).unwrap().outputs[field.index()].clone().unwrap()
}

fn input<'a>(problem: &'a Problem, name: &str) -> &'a Data {
    problem.inputs[problem.stencil.field_named(name).unwrap().index()].as_ref().unwrap()
}

/// The numbers of the cells of a column, level 0 first.
fn column(grid: Grid, column: usize) -> Vec<usize> {
    (0..grid.nk).map(|k| k * grid.columns() + column).collect()
}

#[test]
fn the_thomas_algorithm_is_that_of_a_loop_to_the_last_bit() {
    for precision in [Precision::F64, Precision::F32] {
        let stencil = &lowered("own", THOMAS)[0];
        let problem = Problem::new(Request { precision, ..request(stencil) }).unwrap();
        let x = output(&problem, "x");
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| input(&problem, name));
        // Every operation of single precision is one of double precision, rounded: it has more than twice the digits.
        let rounded = |value: f64| if precision == Precision::F32 { f64::from(value as f32) } else { value };
        for column in (0..GRID.columns()).map(|number| column(GRID, number)) {
            let (mut cp, mut dp) = (Vec::new(), Vec::new());
            for (k, &cell) in column.iter().enumerate() {
                let before = |values: &[f64]| if k == 0 { 0.0 } else { rounded(a.get(cell) * values[k - 1]) };
                let m = rounded(1.0 / rounded(b.get(cell) - before(&cp)));
                cp.push(rounded(c.get(cell) * m));
                dp.push(rounded(rounded(d.get(cell) - before(&dp)) * m));
            }
            let mut next = 0.0;
            for (k, &cell) in column.iter().enumerate().rev() {
                next = if k == GRID.nk - 1 { dp[k] } else { rounded(dp[k] - rounded(cp[k] * next)) };
                assert_eq!(x.get(cell).to_bits(), next.to_bits(), "{precision:?} level {k}");
            }
        }
    }
}

/// Of interfaces there is one more than of levels, and sweeps that say so go through it, too.
#[test]
fn sweeps_through_interfaces_are_those_of_a_loop() {
    let problem = problem(
        "stencil s {
            in a; in w on (i, j, k+1)
            out x, y on (i, j, k+1)
            levels 0..nk + 1
            sweep k up { let up = if k == 0 { w } else { 0.5 * up[k-1] - a[k-1] } }
            sweep k down { x = if k == nk { up } else { a - 0.25 * x[k+1] } }
            y = if k < nk { up[k+1] } else { 7 }
        }",
    );
    assert_eq!(problem.region.k, 0..GRID.nk + 1);
    let ([a, w], [x, y]) =
        (["a", "w"].map(|name| input(&problem, name)), ["x", "y"].map(|name| output(&problem, name)));
    for first in 0..GRID.columns() {
        let cell = |k: usize| k * GRID.columns() + first;
        let mut up = vec![w.get(first)];
        (0..GRID.nk).for_each(|k| up.push(0.5 * up[k] - a.get(cell(k))));
        let mut below = up[GRID.nk];
        assert_eq!([x.get(cell(GRID.nk)), y.get(cell(GRID.nk))], [below, 7.0]);
        for k in (0..GRID.nk).rev() {
            below = a.get(cell(k)) - 0.25 * below;
            assert_eq!([x.get(cell(k)), y.get(cell(k))], [below, up[k + 1]], "interface {k}");
        }
    }
}

#[test]
fn the_solution_solves_the_system() {
    let problem = problem(THOMAS);
    let x = output(&problem, "x");
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| input(&problem, name));
    for column in (0..GRID.columns()).map(|number| column(GRID, number)) {
        for (k, &cell) in column.iter().enumerate() {
            let at = |level: Option<&usize>| level.map_or(0.0, |&cell| x.get(cell));
            let below = at(k.checked_sub(1).and_then(|k| column.get(k)));
            let sum = a.get(cell) * below + b.get(cell) * x.get(cell) + c.get(cell) * at(column.get(k + 1));
            assert!((sum - d.get(cell)).abs() < 1e-15 * 20.0, "level {k}: {sum} and {}", d.get(cell));
        }
    }
}

/// Names that are read above their definition are what they turn out to be: whole numbers, truth values, vectors.
#[test]
fn what_a_name_is_follows_from_its_definition() {
    let problem = problem(
        "stencil s {
            in a; in n0: int; in on: bool
            out n: int; out any: bool; out v, w, mixed, named
            sweep k up {
                let after = if k == 0 { 0 } else { mark[k-1] }
                let mark = k % 3
                n = if k == 0 { n0 } else { n[k-1] + after }
                any = first(on, k == 0 || any[k-1])
                let pair = if k == 0 { [a, 1] } else { [pair[k-1].0 * a, 2 * pair[k-1].1] }
                v = pair.0
                w = pair.1
                mixed = if k == 0 { 1 } else { mixed[k-1] / 2 }
                let same = a
                named = if k < 2 { 0 } else { same[k-1] + same[k-2] }
            }
        }
        fn first(x, y) = x && y",
    );
    let [a, start, on] = ["a", "n0", "on"].map(|name| input(&problem, name));
    let [n, any, v, w, mixed, named] = ["n", "any", "v", "w", "mixed", "named"].map(|name| output(&problem, name));
    for column in (0..GRID.columns()).map(|number| column(GRID, number)) {
        let (mut count, mut all, mut product) = (start.get(column[0]), true, 1.0);
        for (k, &cell) in column.iter().enumerate() {
            count += if k == 0 { 0.0 } else { ((k - 1) % 3) as f64 };
            all &= on.get(cell) != 0.0;
            product *= a.get(cell);
            assert_eq!((n.get(cell), any.get(cell)), (count, f64::from(all)));
            assert_eq!((v.get(cell), w.get(cell), mixed.get(cell)), (product, (1 << k) as f64, 0.5_f64.powi(k as i32)));
            let own = if k < 2 { 0.0 } else { a.get(column[k - 1]) + a.get(column[k - 2]) };
            assert_eq!(named.get(cell), own);
        }
    }
}

/// A stored number has the precision of its field, also for the sweep that stores it.
#[test]
fn an_output_is_read_as_it_is_stored() {
    let problem = problem(
        "stencil s { in a; out x: f32; out y
            sweep k up { x = if k == 0 { a } else { x[k-1] / 3 + a } }
            y = x
        }",
    );
    let (a, x, y) = (input(&problem, "a"), output(&problem, "x"), output(&problem, "y"));
    for column in (0..GRID.columns()).map(|number| column(GRID, number)) {
        let mut own = 0.0_f64;
        for &cell in &column {
            own = f64::from((if cell == column[0] { a.get(cell) } else { own / 3.0 + a.get(cell) }) as f32);
            assert_eq!((x.get(cell), y.get(cell)), (own, own));
        }
    }
}

/// What an `inout` holds is its value before, also in a sweep that assigns it.
#[test]
fn an_inout_is_read_as_it_was() {
    let problem = problem(
        "stencil s { inout t; out r
            let before = t
            sweep k down {
                let next = if k == nk-1 { t } else { t + 2 * next[k+1] - before[k+1] }
                t = next
            }
            r = t
        }",
    );
    let (before, t, r) = (input(&problem, "t"), output(&problem, "t"), output(&problem, "r"));
    assert_eq!(&r, before);
    for column in (0..GRID.columns()).map(|number| column(GRID, number)) {
        let mut own = f64::NAN;
        for (k, &cell) in column.iter().enumerate().rev() {
            let old = before.get(cell);
            own = if k == GRID.nk - 1 { old } else { old + 2.0 * own - before.get(column[k + 1]) };
            assert_eq!(t.get(cell), own);
        }
    }
}

/// Sweeps after sweeps, horizontal neighbours of what is no value of a sweep, and stores beside them.
#[test]
fn values_of_a_sweep_are_read_after_it_at_any_level() {
    let problem = problem(
        "stencil s { in a; out r, q
            let lap = a[i-1] + a[i+1]
            sweep k up { let total = if k == 0 { lap } else { total[k-1] + lap } }
            let twice = 2 * total
            sweep k up {
                let late = if k < nk - 2 { twice[k+2] } else { 0 }
                q = if k == 0 { late } else { q[k-1] + late }
            }
            r = if k > 0 { twice[k-1] - q } else { lap[k] }
        }",
    );
    assert_eq!(problem.region.k, 0..GRID.nk);
    let (a, r, q) = (input(&problem, "a"), output(&problem, "r"), output(&problem, "q"));
    let inner = (0..GRID.columns()).filter(|number| (1..GRID.ni - 1).contains(&(number % GRID.ni)));
    for column in inner.map(|number| column(GRID, number)) {
        let lap = |k: usize| a.get(column[k] - 1) + a.get(column[k] + 1);
        let (mut total, mut sum) = (0.0, 0.0);
        let twice: Vec<f64> = (0..GRID.nk)
            .map(|k| {
                total = if k == 0 { lap(k) } else { total + lap(k) };
                2.0 * total
            })
            .collect();
        for (k, &cell) in column.iter().enumerate() {
            let late = twice.get(k + 2).copied().unwrap_or(0.0);
            sum = if k == 0 { late } else { sum + late };
            assert_eq!(q.get(cell), sum);
            assert_eq!(r.get(cell), if k > 0 { twice[k - 1] - sum } else { lap(k) });
        }
    }
    assert!(r.get(0).is_nan() || r.get(0) != a.get(0), "the halo is left alone");
}

/// A grid whose columns stand in no rows has the same levels.
#[test]
fn columns_without_rows_are_swept_alike() {
    let text = THOMAS.replace("in d", "in e; let d = e[i-1] - e[j+1]");
    let stencil = &lowered("own", &text)[0];
    let rows = Problem::new(request(stencil)).unwrap();
    let (ni, nj) = (GRID.ni as i32, GRID.nj as i32);
    let to = |by: [i32; 2]| {
        let cells = (0..nj).flat_map(|j| (0..ni).map(move |i| [i + by[0], j + by[1]]));
        cells.map(|[i, j]| if (0..ni).contains(&i) && (0..nj).contains(&j) { j * ni + i } else { -1 }).collect()
    };
    let adjacency = Adjacency::new("plane", [[-1, 0], [1, 0], [0, -1], [0, 1]].map(to), None).unwrap();
    let grid = Some(Grid::cells(GRID.columns(), GRID.nk));
    let cells = Problem::new(Request { grid, adjacency: Some(Arc::new(adjacency)), ..request(stencil) }).unwrap();
    assert_eq!(rows.inputs, cells.inputs);
    let (x, y) = (output(&rows, "x"), output(&cells, "x"));
    for number in rows.region.numbers(rows.grid, rows.stencil.fields[rows.stencil.field_named("x").unwrap()].place) {
        assert_eq!(x.bits(number), y.bits(number));
    }
}

#[test]
fn choices_are_counted_on_every_level_once() {
    let problem = problem(
        "stencil s { in a; out n: int
            sweep k up { let above = if a > 0 { 1 } else { 0 }; n = if k == 0 { above } else { n[k-1] + above } }
        }",
    );
    let inputs = problem.inputs();
    let choices = cover(&problem.job(&inputs)).unwrap().choices;
    let [Choice { taken, not_taken, .. }] = choices[..] else { panic!("{choices:?}") };
    let positive = (0..GRID.columns() * GRID.nk).filter(|&cell| input(&problem, "a").get(cell) > 0.0).count() as u64;
    assert_eq!((taken, taken + not_taken), (positive, (GRID.columns() * GRID.nk) as u64));
}

/// Which levels a parameter guards is known when it is.
#[test]
fn a_sweep_goes_through_every_level() {
    let text = "stencil s { in a; out b; param n: int; sweep k up { b = if k < n { a } else { b[k-2] + a } } }";
    let stencil = &lowered("own", text)[0];
    let with = |n: &str| {
        let settings = BTreeMap::from([("n".to_owned(), n.to_owned())]);
        Problem::new(Request { settings, ..request(stencil) }).map(|problem| problem.region.k)
    };
    assert_eq!(with("2").unwrap(), 0..GRID.nk);
    let refusal = with("1").unwrap_err();
    assert!(refusal.message.contains("all of the 9 levels: `b[k-2]` would leave the grid at k = 1"), "{refusal:?}");
}

/// What no output needs is not computed, and its reads do not count; a print needs it all the same.
#[test]
fn values_for_nobody_are_left_out() {
    let text = "stencil s { in a; out b
        sweep k up { let lost = if k == 0 { a[i-1] } else { lost[k-1] + a[i-1] } }
        print(lost)
        b = a
    }";
    let problem = problem(text);
    assert_eq!(problem.region.i, 0..GRID.ni);
    assert!(problem.stencil.stores.iter().all(|store| store.sweep.is_none()));
    let (print, _) = problem.stencil.of_print(0, Place::CELLS).unwrap();
    assert_eq!(print.stores.len(), 2);
}

/// Stencils for kernels: values of several levels before, of all levels, of kinds, in one loop and in several.
const KERNELS: &str = "
    stencil far { in a; out r, s
        sweep k up { let f = if k < 3 { a } else { f[k-2] * 0.5 - f[k-3] / 3 + a }; let g = if k < 6 { f } else { g[k-6] - f[k-1] } }
        sweep k up { r = if k == 0 { g } else { r[k-1] / 3 + f + (if k > 2 { g[k-2] } else { 0 }) } }
        s = if a > 0 && k > 0 { f[k-1] } else { r }
    }
    stencil kinds { in a; in w on (k); in flat on (i, j); out n: int; out any: bool; out x: f32; inout t
        sweep k down {
            let own = if a > 0 { 1 } else { 2 }
            n = if k == nk-1 { own } else { (n[k+1] * 5 + own) % 7 }
            any = if k == nk-1 { a > 0.5 } else { any[k+1] && a < 0.9 || a > 0.5 }
            x = if k == nk-1 { flat } else { x[k+1] * w / 3 + (if any { a[i-1] } else { a[j+1] }) }
        }
        t = if n > 3 { t[i+1] * x } else { t }
    }
    stencil back { in a; out low, high
        let lap = a[i-1] - 2*a + a[j+1]
        sweep k up { let m = if k == 0 { lap } else { (if m[k-1] > lap { m[k-1] } else { lap }) } }
        sweep k down { let d = if k == nk-1 { m } else { d[k+1] + (if lap > 0 { m[k+1] } else { m }) } }
        let both = m - 2*d
        low = if k == 0 { both } else { both[k-1] }
        high = if lap < 0 && k < nk-1 { both[k+1] } else { d }
    }
    stencil alone { in a; out r
        sweep k up { let n = if k == 0 { 1 } else { n[k-1] * 3 } }
        sweep k down { let back = if k == nk-1 { n } else { back[k+1] - n } }
        r = a * back
    }
    stencil through_interfaces { in a; in w on (i, j, k+1); out x, y on (i, j, k+1)
        levels 0..nk + 1
        sweep k up { let up = if k == 0 { w } else { 0.5 * up[k-1] - a[k-1] * w[i-1] } }
        sweep k down { x = if k == nk { up } else { up - 0.25 * x[k+1] + a } }
        y = x + (if k < nk { up[k+1] } else { 7 }) + (if k > 1 && k < nk { up[k-2] + a[k-1] } else { 0 })
    }";

#[test]
fn every_kernel_equals_the_interpreter() {
    let all = format!("{KERNELS}\n{THOMAS}");
    for (number, stencil) in lowered("kernels", &all).iter().enumerate() {
        for (half, precision) in [Precision::F64, Precision::F32].into_iter().enumerate() {
            for grid in [Grid::rows(23, 17, 9), Grid::rows(6, 5, 1)] {
                let problem = crate::common::problem(stencil, precision, grid, &[]);
                let equal = crate::common::check_variants(&problem, |variant| variant % 2 == (half + number) % 2);
                assert!(equal >= 6, "{} on {grid}: {equal}", stencil.name);
            }
        }
    }
}

#[test]
fn every_kernel_equals_the_interpreter_on_cells() {
    let (ni, nj) = (13, 11);
    let to = |by: [i32; 2]| {
        let cells = (0..nj).flat_map(|j| (0..ni).map(move |i| [i + by[0], j + by[1]]));
        cells.map(|[i, j]| if (0..ni).contains(&i) && (0..nj).contains(&j) { j * ni + i } else { -1 }).collect()
    };
    let adjacency = Arc::new(Adjacency::new("plane", [[-1, 0], [1, 0], [0, -1], [0, 1]].map(to), None).unwrap());
    let grid = Some(Grid::cells((ni * nj) as usize, 7));
    for stencil in &lowered("kernels", KERNELS) {
        let problem =
            Problem::new(Request { grid, adjacency: Some(Arc::clone(&adjacency)), contract: true, ..request(stencil) });
        let equal = crate::common::check_variants(&problem.unwrap(), |variant| variant % 2 == 0);
        assert!(equal >= 8, "{}: {equal}", stencil.name);
    }
}

/// The error of a step of `stencils/implicit_diffusion.stn` on a column of depth 1, where the exact answer is a cosine.
fn diffusion_error(levels: usize) -> f64 {
    let text = include_str!("../stencils/implicit_diffusion.stn");
    let (dz, kappa, dt) = (1.0 / levels as f64, 0.7, 0.3);
    let exact = |k: usize| (std::f64::consts::PI * (k as f64 + 0.5) * dz).cos();
    let grows = 1.0 + dt * kappa * std::f64::consts::PI.powi(2);
    let array = |shape: Vec<usize>, values: Vec<f64>| Array { shape, data: Data::F64(values) };
    let cells = vec![levels, 1, 1];
    let arrays = BTreeMap::from([
        ("t".to_owned(), array(cells.clone(), (0..levels).map(|k| grows * exact(k)).collect())),
        ("dz".to_owned(), array(cells, vec![dz; levels])),
        ("kappa".to_owned(), array(vec![levels + 1, 1, 1], vec![kappa; levels + 1])),
    ]);
    let settings = BTreeMap::from([("dt".to_owned(), dt.to_string())]);
    let stencil = &lowered("implicit_diffusion", text)[0];
    let problem = Problem::new(Request { grid: None, arrays, settings, ..request(stencil) }).unwrap();
    let found = output(&problem, "t_next");
    (0..levels).map(|k| (found.get(k) - exact(k)).abs()).fold(0.0, f64::max)
}

#[test]
fn implicit_diffusion_is_of_second_order() {
    let errors = [16, 32, 64, 128, 256].map(diffusion_error);
    assert!(errors[0] < 1e-2, "{errors:?}");
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((order - 2.0).abs() < 0.02, "order {order}: {errors:?}");
    }
}
