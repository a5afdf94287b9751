//! The stencils that come along, computed by loops written by hand from their formulas.
//!
//! [`check`] compares with plain arithmetic. How far rounding may take the two apart is not guessed: a reference computes
//! with [`Number`]s, which carry a bound of their error. [`check_bits`] compares every bit. Both assert which cells are
//! computed, and that all others keep what was there.

use std::collections::HashMap;
use std::ops::{Add, Div, Mul, Sub};
use std::path::Path;
use stencilc_compiler::analysis;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{self, Handle, Node, Precision, Stored, scalar::Value};
use stencilc_compiler::lower::lower;
use stencilc_compiler::parse::parse;
use stencilc_compiler::source::Source;
use stencilc_runtime::interpreter::{Job, interpret};
use stencilc_runtime::{Data, Element, random};

/// No length is a multiple of another, or of the length of a vector.
const GRIDS: [Grid; 2] = [Grid::rows(13, 11, 11), Grid::rows(37, 29, 9)];

/// Cells not computed at the low and high ends of i, j and k.
type Halo = [(usize, usize); 3];

/// A stencil's inputs and outputs.
struct Run {
    precision: Precision,
    grid: Grid,
    params: HashMap<String, f64>,
    inputs: HashMap<String, Data>,
    outputs: Vec<(String, Data)>,
}

/// Runs a stencil on random inputs; parameters that are not given have their defaults.
fn run(name: &str, given: &[(&str, Value)], precision: Precision, grid: Grid) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("stencils").join(name).with_extension("stn");
    let source = Source::new(name, std::fs::read_to_string(path).expect("the stencil comes along"));
    let lowered = lower(&parse(&source).expect("it parses"), &source.name);
    assert!(lowered.diagnostics.is_empty(), "{:?}", lowered.diagnostics);
    let stencil = ir::fold(&ir::contract(&lowered.stencils[0]), precision);

    let params: Vec<Value> = stencil.params.iter().map(|(_, param)| value(param, given).rounded(precision)).collect();
    let region = analysis::region(&stencil, precision, grid, None, &params).expect("the grid is large enough");
    let mut inputs = Vec::new();
    let mut outputs = Vec::new();
    for (_, field) in stencil.fields.iter() {
        let len = grid.shape(field.place).iter().product();
        let (low, high) = field.range.unwrap_or((-1.0, 1.0));
        let element = element(field.stored, precision);
        inputs.push(field.role.is_read().then(|| random::fill(element, len, low, high, 1, &field.name)));
        outputs.push(field.role.is_written().then(|| Data::fresh(element, len)));
    }
    let job = Job {
        stencil: &stencil,
        precision,
        grid,
        adjacency: None,
        region: &region,
        params: &params,
        inputs: &inputs.iter().map(Option::as_ref).collect::<Vec<_>>(),
    };
    interpret(&job, &mut outputs, &|_| {}).expect("the arrays fit");

    let names = || stencil.fields.iter().map(|(_, field)| field.name.clone());
    let present = |arrays: Vec<Option<Data>>| names().zip(arrays).filter_map(|(name, data)| Some((name, data?)));
    Run {
        precision,
        grid,
        params: stencil.params.iter().map(|(id, param)| (param.name.clone(), params[id.index()].real())).collect(),
        inputs: present(inputs).collect(),
        outputs: present(outputs).collect(),
    }
}

fn value(param: &ir::Param, given: &[(&str, Value)]) -> Value {
    if let Some((_, value)) = given.iter().find(|(name, _)| *name == param.name) {
        return *value;
    }
    match param.default.as_ref().and_then(ir::Body::literal) {
        Some(Node::Real(x)) => Value::Real(*x),
        Some(Node::Int(x)) => Value::Int(*x),
        other => panic!("`{}` is not given, and its default is {other:?}", param.name),
    }
}

fn element(stored: Stored, precision: Precision) -> Element {
    match (stored, precision) {
        (Stored::Real, Precision::F64) | (Stored::F64, _) => Element::F64,
        (Stored::Real, Precision::F32) | (Stored::F32, _) => Element::F32,
        (Stored::Int, _) => Element::I32,
        (Stored::Bool, _) => Element::Bool,
    }
}

/// Computes every cell by `reference` and hands it, with what the interpreter computed, to `compare`.
fn compare<T, const N: usize>(
    run: &Run,
    halo: Halo,
    reference: impl Fn(&Cell) -> [T; N],
    compare: impl Fn(T, f64) -> Result<(), String>,
) {
    let Grid { ni, nj, nk, .. } = run.grid;
    let computed = |at: usize, n: usize, (low, high): (usize, usize)| (low..n - high).contains(&at);
    assert_eq!(run.outputs.len(), N);
    for k in 0..nk {
        for j in 0..nj {
            for i in 0..ni {
                let got = run.outputs.iter().map(|(name, data)| (name, data.get((k * nj + j) * ni + i)));
                let place = format!("at ({i}, {j}, {k}) of {} in {}", run.grid, run.precision.name());
                if !(computed(i, ni, halo[0]) && computed(j, nj, halo[1]) && computed(k, nk, halo[2])) {
                    got.for_each(|(name, got)| assert!(got.is_nan(), "{name} {place} is in the halo, but {got}"));
                    continue;
                }
                for ((name, got), expected) in got.zip(reference(&Cell { run, i, j, k })) {
                    compare(expected, got).unwrap_or_else(|why| panic!("{name} {place} {why}"));
                }
            }
        }
    }
}

/// Compares a stencil with plain arithmetic, on all grids and in both precisions.
fn check<const N: usize>(name: &str, given: &[(&str, Value)], halo: Halo, reference: impl Fn(&Cell) -> [Number; N]) {
    for (precision, unit) in [(Precision::F64, f64::EPSILON / 2.0), (Precision::F32, f64::from(f32::EPSILON) / 2.0)] {
        for grid in GRIDS {
            let run = run(name, given, precision, grid);
            compare(&run, halo, &reference, |expected, got| {
                // Twice, since in double precision the reference rounds as well.
                let allowed = 2.0 * unit * expected.error;
                let off = (got - expected.value).abs();
                let near = allowed.is_finite() && off <= allowed;
                near.then_some(())
                    .ok_or_else(|| format!("is {got}, {off:e} off {}; {allowed:e} are allowed", expected.value))
            });
        }
    }
}

/// Compares a stencil with arithmetic in which fused multiply-adds stand where the language puts them.
fn check_bits(name: &str, halo: Halo, single: impl Fn(&Cell) -> f32, double: impl Fn(&Cell) -> f64) {
    for grid in GRIDS {
        let same = |expected: f64, got: f64| {
            let same = got.to_bits() == expected.to_bits();
            same.then_some(()).ok_or_else(|| format!("is {got:e}, not {expected:e}"))
        };
        compare(&run(name, &[], Precision::F64, grid), halo, |cell| [double(cell)], same);
        compare(&run(name, &[], Precision::F32, grid), halo, |cell| [f64::from(single(cell))], same);
    }
}

/// A cell, from which a reference looks around.
struct Cell<'a> {
    run: &'a Run,
    i: usize,
    j: usize,
    k: usize,
}

impl Cell<'_> {
    /// What a field holds at an offset along i, j and k.
    fn field<T: Scalar>(&self, name: &str) -> impl Fn(i32, i32, i32) -> T {
        let (data, Grid { ni, nj, nk, .. }) = (&self.run.inputs[name], self.run.grid);
        let along = |at: usize, offset: i32, n: usize| {
            at.checked_add_signed(offset as isize).filter(|&at| at < n).expect("a reference stays inside the grid")
        };
        move |i, j, k| {
            T::exact(data.get((along(self.k, k, nk) * nj + along(self.j, j, nj)) * ni + along(self.i, i, ni)))
        }
    }

    fn param(&self, name: &str) -> Number {
        Number::exact(self.run.params[name])
    }
}

/// What a reference computes with.
trait Scalar: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// A number that it holds exactly.
    fn exact(x: f64) -> Self;
}

impl Scalar for f32 {
    fn exact(x: f64) -> Self {
        x as f32
    }
}

impl Scalar for f64 {
    fn exact(x: f64) -> Self {
        x
    }
}

/// A number and how far rounding may put it off, to first order and in units of the relative error of one operation: the
/// running error analysis of N. J. Higham, "Accuracy and Stability of Numerical Algorithms", section 3.3. A fused
/// multiply-add rounds once instead of twice, so the bound covers it.
#[derive(Clone, Copy)]
struct Number {
    value: f64,
    error: f64,
}

impl Number {
    /// The result of an operation whose operands' errors amount to `error`.
    fn rounded(value: f64, error: f64) -> Self {
        Self { value, error: error + value.abs() }
    }

    fn abs(self) -> Self {
        Self { value: self.value.abs(), ..self }
    }

    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        Self::rounded(root, self.error / (2.0 * root))
    }

    /// The result of one of the language's own functions, which is off by up to two units in the last place: four times as
    /// much as an operation may be.
    fn approximate(value: f64, error: f64) -> Self {
        Self { value, error: error + 4.0 * value.abs() }
    }

    fn exp(self) -> Self {
        Self::approximate(self.value.exp(), self.value.exp() * self.error)
    }

    fn log(self) -> Self {
        Self::approximate(self.value.ln(), self.error / self.value.abs())
    }

    /// For a positive base.
    fn pow(self, exponent: Self) -> Self {
        let power = self.value.powf(exponent.value);
        let error = exponent.value.abs() * self.error / self.value + self.value.ln().abs() * exponent.error;
        Self::approximate(power, power * error)
    }
}

impl Scalar for Number {
    fn exact(value: f64) -> Self {
        Self { value, error: 0.0 }
    }
}

/// A number of the formula, which is rounded unless single precision holds it.
impl From<f64> for Number {
    fn from(x: f64) -> Self {
        if f64::from(x as f32) == x { Self::exact(x) } else { Self::rounded(x, 0.0) }
    }
}

impl Add for Number {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::rounded(self.value + other.value, self.error + other.error)
    }
}

impl Sub for Number {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::rounded(self.value - other.value, self.error + other.error)
    }
}

impl Mul for Number {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let error = self.value.abs() * other.error + self.error * other.value.abs();
        Self::rounded(self.value * other.value, error)
    }
}

impl Div for Number {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let ratio = self.value / other.value;
        Self::rounded(ratio, (self.error + ratio.abs() * other.error) / other.value.abs())
    }
}

/// Arithmetic between the numbers of a formula and those of a field.
macro_rules! mixed {
    ($($operator:ident $function:ident)*) => { $(
        impl $operator<Number> for f64 {
            type Output = Number;
            fn $function(self, other: Number) -> Number {
                Number::from(self).$function(other)
            }
        }

        impl $operator<f64> for Number {
            type Output = Number;
            fn $function(self, other: f64) -> Number {
                self.$function(Number::from(other))
            }
        }
    )* };
}
mixed! { Add add Sub sub Mul mul Div div }

#[test]
fn laplap() {
    check("laplap", &[], [(2, 2), (2, 2), (0, 0)], |cell| {
        let phi = cell.field::<Number>("phi");
        let lap = |i, j| 4.0 * phi(i, j, 0) - phi(i - 1, j, 0) - phi(i + 1, j, 0) - phi(i, j - 1, 0) - phi(i, j + 1, 0);
        [4.0 * lap(0, 0) - lap(-1, 0) - lap(1, 0) - lap(0, -1) - lap(0, 1)]
    });
}

#[test]
fn hdiff() {
    check("hdiff", &[], [(2, 2), (2, 2), (0, 0)], |cell| {
        let (phi, coeff) = (cell.field::<Number>("phi"), cell.field::<Number>("coeff"));
        let lap = |i, j| 4.0 * phi(i, j, 0) - phi(i - 1, j, 0) - phi(i + 1, j, 0) - phi(i, j - 1, 0) - phi(i, j + 1, 0);
        // Where rounding decides the sign of a flux, dropping it or not is within the flux's own error.
        let limited = |flux: Number, gradient: Number| Number {
            value: if flux.value * gradient.value > 0.0 { 0.0 } else { flux.value },
            error: flux.error,
        };
        let fx = |i| limited(lap(i + 1, 0) - lap(i, 0), phi(i + 1, 0, 0) - phi(i, 0, 0));
        let fy = |j| limited(lap(0, j + 1) - lap(0, j), phi(0, j + 1, 0) - phi(0, j, 0));
        [phi(0, 0, 0) - coeff(0, 0, 0) * (fx(0) - fx(-1) + fy(0) - fy(-1))]
    });
}

fn fastwaves(cell: &Cell) -> [Number; 2] {
    let field = |name| cell.field::<Number>(name);
    let (ppuv, wgtfac, hhl, rho) = (field("ppuv"), field("wgtfac"), field("hhl"), field("rho"));
    let at_interface = |i, j, k| wgtfac(i, j, k) * ppuv(i, j, k) + (1.0 - wgtfac(i, j, k)) * ppuv(i, j, k - 1);
    let vertical = |i, j| at_interface(i, j, 1) - at_interface(i, j, 0);

    let gradient = |i, j| {
        let along_level = ppuv(i, j, 0) - ppuv(0, 0, 0);
        if (cell.k as f64) < cell.param("flat_limit").value {
            return along_level;
        }
        let lower = (hhl(0, 0, 1) + hhl(0, 0, 0)) - (hhl(i, j, 1) + hhl(i, j, 0));
        let thickness = (hhl(0, 0, 1) - hhl(0, 0, 0)) + (hhl(i, j, 1) - hhl(i, j, 0));
        along_level + (vertical(i, j) + vertical(0, 0)) * 0.5 * lower / thickness
    };
    let here = |name| field(name)(0, 0, 0);
    let acceleration = |i, j, metric| gradient(i, j) * metric / (0.5 * (rho(i, j, 0) + rho(0, 0, 0)));
    let (along_i, along_j) = (acceleration(1, 0, here("fx")), acceleration(0, 1, cell.param("edadlat")));
    [
        here("u_pos") + (here("u_tens") - along_i) * cell.param("dt"),
        here("v_pos") + (here("v_tens") - along_j) * cell.param("dt"),
    ]
}

#[test]
fn fastwaves_over_terrain() {
    check("fastwaves", &[("flat_limit", Value::Int(0))], [(0, 1), (0, 1), (1, 1)], fastwaves);
}

#[test]
fn fastwaves_partly_flat() {
    check("fastwaves", &[("flat_limit", Value::Int(4))], [(0, 1), (0, 1), (0, 1)], fastwaves);
}

#[test]
fn fastwaves_flat() {
    // By default the first eleven levels are flat, and no grid here has more.
    check("fastwaves", &[], [(0, 1), (0, 1), (0, 0)], fastwaves);
}

#[test]
fn heat27() {
    check("heat27", &[], [(1, 1), (1, 1), (1, 1)], |cell| {
        let t = cell.field::<Number>("t");
        let (alpha, dt, dx) = (cell.param("alpha"), cell.param("dt"), cell.param("dx"));
        let mut laplacian = -64.0 / 15.0 * t(0, 0, 0);
        for i in -1..=1 {
            for j in -1..=1 {
                for k in -1..=1 {
                    let weight = match i32::abs(i) + i32::abs(j) + i32::abs(k) {
                        0 => continue,
                        1 => 7.0 / 15.0,
                        2 => 1.0 / 10.0,
                        _ => 1.0 / 30.0,
                    };
                    laplacian = laplacian + weight * t(i, j, k);
                }
            }
        }
        [t(0, 0, 0) + alpha * dt / (dx * dx) * laplacian]
    });
}

#[test]
fn advection5() {
    check("advection5", &[], [(3, 3), (3, 3), (0, 0)], |cell| {
        let (phi, u, v) = (cell.field::<Number>("phi"), cell.field::<Number>("u"), cell.field::<Number>("v"));
        // Each through the face before cell n.
        let flux = |wind: Number, at: &dyn Fn(i32) -> Number, n: i32| {
            let centred = 37.0 * (at(n) + at(n - 1)) - 8.0 * (at(n + 1) + at(n - 2)) + (at(n + 2) + at(n - 3));
            let damping = 10.0 * (at(n) - at(n - 1)) - 5.0 * (at(n + 1) - at(n - 2)) + (at(n + 2) - at(n - 3));
            wind / 60.0 * centred - wind.abs() / 60.0 * damping
        };
        let along_i = |n| phi(n, 0, 0);
        let along_j = |n| phi(0, n, 0);
        let fx = |n| flux(u(n, 0, 0), &along_i, n);
        let fy = |n| flux(v(0, n, 0), &along_j, n);
        let divergence = (fx(1) - fx(0)) / cell.param("dx") + (fy(1) - fy(0)) / cell.param("dy");
        [phi(0, 0, 0) - cell.param("dt") * divergence]
    });
}

#[test]
fn gray_scott() {
    check("gray_scott", &[], [(1, 1), (1, 1), (0, 0)], |cell| {
        let (u, v) = (cell.field::<Number>("u"), cell.field::<Number>("v"));
        let (dt, dx, feed, kill) = (cell.param("dt"), cell.param("dx"), cell.param("feed"), cell.param("kill"));
        let laplacian = |a: &dyn Fn(i32, i32, i32) -> Number| {
            (a(-1, 0, 0) + a(1, 0, 0) + a(0, -1, 0) + a(0, 1, 0) - 4.0 * a(0, 0, 0)) / (dx * dx)
        };
        let (spread_u, spread_v) =
            (cell.param("diffusion_u") * laplacian(&u), cell.param("diffusion_v") * laplacian(&v));
        let (u, v) = (u(0, 0, 0), v(0, 0, 0));
        [u + dt * (spread_u - u * (v * v) + feed * (1.0 - u)), v + dt * (spread_v + u * (v * v) - (feed + kill) * v)]
    });
}

#[test]
fn acoustic8() {
    check("acoustic8", &[], [(4, 4), (4, 4), (4, 4)], |cell| {
        let (u, before, c) = (cell.field::<Number>("u"), cell.field::<Number>("before"), cell.field::<Number>("c"));
        let courant = c(0, 0, 0) * cell.param("dt") / cell.param("dx");
        let weights = [(1, 8.0 / 5.0), (2, -1.0 / 5.0), (3, 8.0 / 315.0), (4, -1.0 / 560.0)];
        let mut laplacian = 3.0 * (-205.0 / 72.0) * u(0, 0, 0);
        for (n, weight) in weights {
            laplacian = laplacian + weight * (u(-n, 0, 0) + u(n, 0, 0));
            laplacian = laplacian + weight * (u(0, -n, 0) + u(0, n, 0));
            laplacian = laplacian + weight * (u(0, 0, -n) + u(0, 0, n));
        }
        [2.0 * u(0, 0, 0) - before(0, 0, 0) + courant * courant * laplacian]
    });
}

/// Axis by axis and term by term, in no particular order of levels.
#[test]
fn grad_div() {
    check("grad_div", &[], [(3, 3), (3, 3), (3, 3)], |cell| {
        let fields = ["ux", "uy", "uz"].map(|name| cell.field::<Number>(name));
        let weights = [(1, 3.0 / 2.0, 270.0), (2, -3.0 / 20.0, -27.0), (3, 1.0 / 90.0, 2.0)];
        let at = |axis: usize, n: i32| [0, 1, 2].map(|own| if own == axis { n } else { 0 });
        [0, 1, 2].map(|axis: usize| {
            let u = |other: usize, at: [i32; 3]| fields[other](at[0], at[1], at[2]);
            let mut sum = 4.0 * (-49.0 / 18.0) * u(axis, [0; 3]);
            for (n, second, mixed) in weights {
                for along in 0..3 {
                    let times = if along == axis { 2.0 } else { 1.0 };
                    sum = sum + second * (times * (u(axis, at(along, n)) + u(axis, at(along, -n))));
                    if along == axis {
                        continue;
                    }
                    let corner = |a: i32, b: i32| {
                        let mut place = at(axis, a * n);
                        place[along] = b * n;
                        u(along, place)
                    };
                    let mixed_difference = corner(1, 1) - corner(1, -1) - corner(-1, 1) + corner(-1, -1);
                    sum = sum + mixed / 720.0 * mixed_difference;
                }
            }
            cell.param("scale") * sum
        })
    });
}

#[test]
fn heat() {
    check("heat", &[], [(1, 1), (1, 1), (0, 0)], |cell| {
        let t = cell.field::<Number>("t");
        let (kappa, dt, dx) = (cell.param("kappa"), cell.param("dt"), cell.param("dx"));
        let flow = |di, dj| (t(di, dj, 0) - t(0, 0, 0)) / dx;
        [t(0, 0, 0) + kappa * dt * (flow(1, 0) + flow(-1, 0) + flow(0, 1) + flow(0, -1)) / dx]
    });
}

#[test]
fn shallow_water() {
    check("shallow_water", &[], [(1, 1), (1, 1), (0, 0)], |cell| {
        let [u, v, h] = ["u", "v", "h"].map(|name| {
            let field = cell.field::<Number>(name);
            move |i: i32, j: i32| field(i, j, 0)
        });
        let (dt, dx, g, f) = (cell.param("dt"), cell.param("dx"), cell.param("g"), cell.param("f"));
        let through_west = |i: i32, j: i32| u(i, j) * (h(i, j) + h(i - 1, j)) * 0.5;
        let through_south = |i: i32, j: i32| v(i, j) * (h(i, j) + h(i, j - 1)) * 0.5;
        let vorticity = |i: i32, j: i32| {
            let spin = (v(i, j) - v(i - 1, j)) / dx - (u(i, j) - u(i, j - 1)) / dx;
            (f + spin) / (0.25 * (h(i, j) + h(i - 1, j) + h(i, j - 1) + h(i - 1, j - 1)))
        };
        let head = |i: i32, j: i32| {
            let (west, east, south, north) = (u(i, j), u(i + 1, j), v(i, j), v(i, j + 1));
            g * h(i, j) + 0.5 * (0.5 * (west * west + east * east) + 0.5 * (south * south + north * north))
        };
        // At the southern and the northern corner of the western face, and likewise of the southern one.
        let along_i = |j: i32| vorticity(0, j) * 0.5 * (through_south(-1, j) + through_south(0, j));
        let along_j = |i: i32| vorticity(i, 0) * 0.5 * (through_west(i, -1) + through_west(i, 0));
        let begun = |name: &str| cell.field::<Number>(name)(0, 0, 0);
        let divergence = (through_west(1, 0) - through_west(0, 0) + through_south(0, 1) - through_south(0, 0)) / dx;
        [
            begun("u0") + dt * (0.5 * (along_i(0) + along_i(1)) - (head(0, 0) - head(-1, 0)) / dx),
            begun("v0") - dt * (0.5 * (along_j(0) + along_j(1)) + (head(0, 0) - head(0, -1)) / dx),
            begun("h0") - dt * divergence,
        ]
    });
}

#[test]
fn terrain_slope() {
    check("terrain_slope", &[], [(1, 1), (1, 1), (0, 0)], |cell| {
        let z = cell.field::<Number>("height");
        let east = z(1, -1, 0) + 2.0 * z(1, 0, 0) + z(1, 1, 0);
        let west = z(-1, -1, 0) + 2.0 * z(-1, 0, 0) + z(-1, 1, 0);
        let north = z(-1, 1, 0) + 2.0 * z(0, 1, 0) + z(1, 1, 0);
        let south = z(-1, -1, 0) + 2.0 * z(0, -1, 0) + z(1, -1, 0);
        let dzdx = (east - west) / (8.0 * cell.param("dx"));
        let dzdy = (north - south) / (8.0 * cell.param("dy"));
        [(dzdx * dzdx + dzdy * dzdy).sqrt()]
    });
}

#[test]
fn frontal() {
    check("frontal", &[], [(1, 1), (1, 1), (0, 0)], |cell| {
        let [t, p, rh] = ["t", "p", "rh"].map(|name| cell.field::<Number>(name));
        let equivalent = |i, j| {
            let (t, p, rh) = (t(i, j, 0), p(i, j, 0), rh(i, j, 0));
            let e = rh * 6.112 * (17.67 * (t - 273.15) / (t - 29.65)).exp();
            let r = 622.0 * e / (p - e);
            let t_l = Number::from(2840.0) / (3.5 * t.log() - e.log() - 4.805) + 55.0;
            let dry = t * (Number::from(1000.0) / p).pow(0.2854 * (1.0 - 0.28e-3 * r));
            dry * ((Number::from(3.376) / t_l - 0.00254) * r * (1.0 + 0.81e-3 * r)).exp()
        };
        let along_i = (equivalent(1, 0) - equivalent(-1, 0)) / (2.0 * cell.param("dx"));
        let along_j = (equivalent(0, 1) - equivalent(0, -1)) / (2.0 * cell.param("dy"));
        [equivalent(0, 0), (along_i * along_i + along_j * along_j).sqrt()]
    });
}

/// Of `4*a - west - east - south - north` the first difference is fused.
macro_rules! laplacian {
    ($real:ty, $a:expr, $i:expr, $j:expr) => {
        (4.0 as $real).mul_add($a($i, $j), -$a($i - 1, $j)) - $a($i + 1, $j) - $a($i, $j - 1) - $a($i, $j + 1)
    };
}

#[test]
fn laplap_bits() {
    macro_rules! reference {
        ($real:ty) => {
            |cell: &Cell| {
                let field = cell.field::<$real>("phi");
                let phi = |i, j| field(i, j, 0);
                let lap = |i: i32, j: i32| laplacian!($real, phi, i, j);
                laplacian!($real, lap, 0, 0)
            }
        };
    }
    check_bits("laplap", [(2, 2), (2, 2), (0, 0)], reference!(f32), reference!(f64));
}

#[test]
fn hdiff_bits() {
    macro_rules! reference {
        ($real:ty) => {
            |cell: &Cell| {
                let (field, coeff) = (cell.field::<$real>("phi"), cell.field::<$real>("coeff"));
                let phi = |i, j| field(i, j, 0);
                let lap = |i: i32, j: i32| laplacian!($real, phi, i, j);
                let limited = |flux: $real, gradient: $real| if flux * gradient > 0.0 { 0.0 } else { flux };
                let fx = |i: i32| limited(lap(i + 1, 0) - lap(i, 0), phi(i + 1, 0) - phi(i, 0));
                let fy = |j: i32| limited(lap(0, j + 1) - lap(0, j), phi(0, j + 1) - phi(0, j));
                (-coeff(0, 0, 0)).mul_add(fx(0) - fx(-1) + fy(0) - fy(-1), phi(0, 0))
            }
        };
    }
    check_bits("hdiff", [(2, 2), (2, 2), (0, 0)], reference!(f32), reference!(f64));
}
