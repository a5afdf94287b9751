use super::cpu::Interpreter;
use super::kernels::{Kernels, Planned, Text};
use super::plan::{PlanKind, ProgramPlan, usual_shape};
use super::*;
use crate::cache::library_cached;
use crate::checkpoint;
use crate::emulate::{Compiler, Emulator, Settings, Source as Kernel};
use crate::grid::in_rows;
use crate::random;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::{Choices, variants};
use stencilc_compiler::program::{Fuse, Fusing};
use stencilc_compiler::source::Source;
use stencilc_compiler::storage::fields::Fields;

pub(crate) fn program(text: &str) -> Program {
    let lowered = stencilc_compiler::check(&Source::new("own", text));
    assert!(lowered.is_ok(), "{text}: {:?}", lowered.diagnostics);
    lowered.programs.into_iter().next().unwrap()
}

pub(crate) fn problem(
    program: &Program,
    grid: Grid,
    precision: Precision,
    settings: &[(&str, &str)],
) -> Result<ProgramProblem> {
    let facade = program.facade();
    let settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    ProgramProblem::new(
        program,
        Request {
            stencil: &facade,
            precision,
            contract: false,
            grid: Some(grid),
            adjacency: None,
            arrays: BTreeMap::new(),
            settings,
            seed: 0,
            cast: crate::Cast::Exact,
            drawing: crate::Drawing::Inputs,
        },
    )
}

/// What the interpreter makes of it.
pub(crate) fn interpreted(problem: &ProgramProblem) -> Vec<Option<Data>> {
    let backend = Interpreter::new(problem.clone());
    let mut driver = Driver::new(&backend).given().unwrap();
    driver.finish().unwrap();
    results(problem, &driver).unwrap()
}

/// What kernels make of it on the emulator.
pub(crate) fn emulated(problem: &ProgramProblem, choices: &Choices) -> Result<Vec<Option<Data>>> {
    let plan = ProgramPlan {
        kind: PlanKind::Separate,
        steps: 1,
        choices: choices.clone(),
        shape: usual_shape(1, choices.precision),
        tile: None,
        resident: 0,
        graph: true,
    };
    planned(problem, &plan)
}

/// What the kernels of a plan make of it on the emulator.
fn planned(problem: &ProgramProblem, plan: &ProgramPlan) -> Result<Vec<Option<Data>>> {
    let planned = Planned::new(problem, plan)?;
    let compiler = Compiler::find()?;
    let mut loaded = Vec::new();
    // Two stages may call the same stencil, so each text is a library of its own.
    for Text { name, text } in planned.texts().unwrap() {
        let settings = Settings { strict: true, ..Settings::default() };
        loaded.extend(library_cached(&compiler, &[Kernel { name: &name, text: &text }], &settings)?);
    }
    let fused = planned.problem.clone();
    let mut driver = Driver::new(Kernels::new(Arc::new(Emulator::default()), planned, loaded)?).given()?;
    driver.finish()?;
    results(&fused, &driver)
}

/// Asserts that arrays are the same to the last bit.
pub(crate) fn same(a: &[Option<Data>], b: &[Option<Data>], about: &str) {
    for (a, b) in a.iter().zip(b) {
        match (a, b) {
            (Some(a), Some(b)) => {
                let differing = (0..a.len()).find(|&n| a.bits(n) != b.bits(n));
                assert_eq!((differing, a.len()), (None, b.len()), "{about}");
            }
            (a, b) => assert_eq!(a.is_some(), b.is_some(), "{about}"),
        }
    }
}

/// A plane of numbers, padded as the rules say, one axis after the other: as `numpy.pad` does it, with the modes `wrap`,
/// `edge`, `symmetric` and `constant`.
struct Padded {
    numbers: BTreeMap<[i64; 3], f64>,
}

const WIDTH: i64 = 4;

impl Padded {
    /// `rules` are those of i, j and k, low and high.
    fn new(data: &[f64], n: [i64; 3], rules: [[&str; 2]; 3], value: f64) -> Self {
        let mut numbers = BTreeMap::new();
        for (at, &x) in data.iter().enumerate() {
            let at = at as i64;
            numbers.insert([at % n[0], at / n[0] % n[1], at / n[0] / n[1]], x);
        }
        // The last one padded wins: i.
        for axis in [2, 1, 0] {
            // Each line along the axis is padded once, from its first cell.
            let first: Vec<[i64; 3]> = numbers.keys().copied().filter(|cell| cell[axis] == 0).collect();
            for cell in first {
                let line: Vec<f64> = (0..n[axis]).map(|at| numbers[&replaced(cell, axis, at)]).collect();
                for by in 1..=WIDTH {
                    for (side, at) in [(0, -by), (1, n[axis] - 1 + by)] {
                        let len = line.len() as i64;
                        let near = |by: i64| line[if side == 0 { by } else { len - 1 - by } as usize];
                        let x = match rules[axis][side] {
                            "periodic" if side == 0 => line[(len - 1 - (by - 1) % len) as usize],
                            "periodic" => line[((by - 1) % len) as usize],
                            "copy" => near(0),
                            "mirror" if by <= len => near(by - 1),
                            "-mirror" if by <= len => -near(by - 1),
                            "value" => value,
                            _ => continue,
                        };
                        numbers.insert(replaced(cell, axis, at), x);
                    }
                }
            }
        }
        Self { numbers }
    }

    fn at(&self, cell: [i64; 3]) -> Option<f64> {
        self.numbers.get(&cell).copied()
    }
}

fn replaced(mut cell: [i64; 3], axis: usize, at: i64) -> [i64; 3] {
    cell[axis] = at;
    cell
}

const EXTENTS: [i64; 3] = [5, 4, 4];

/// Reads far, through a name, and along levels behind a guard.
const STEP: &str = "
    stencil step {
        in a
        out b
        let d = a[i-1] - 0.5*a[i+2] + a[j-2]
        b = 0.25*d[j+1] + 0.125*d[i-1] + (if k > 1 { a[k-1] } else { 0.5*a[j+3] }) - 0.0625*a[i+1, j-1, k+1]
    }
";

/// The same by hand, of padded numbers; nothing where something is missing.
fn step(a: &Padded, [i, j, k]: [i64; 3]) -> Option<f64> {
    let d = |i: i64, j: i64| Some(a.at([i - 1, j, k])? - 0.5 * a.at([i + 2, j, k])? + a.at([i, j - 2, k])?);
    let level = if k > 1 { a.at([i, j, k - 1])? } else { 0.5 * a.at([i, j + 3, k])? };
    // Both branches' horizontal reads count.
    a.at([i, j + 3, k])?;
    Some(0.25 * d(i, j + 1)? + 0.125 * d(i - 1, j)? + level - 0.0625 * a.at([i + 1, j - 1, k + 1])?)
}

fn by_hand(start: &[f64], rules: [[&str; 2]; 3], steps: usize) -> Vec<f64> {
    let mut a = start.to_vec();
    for _ in 0..steps {
        let padded = Padded::new(&a, EXTENTS, rules, 0.75);
        for (n, x) in a.iter_mut().enumerate() {
            let n = n as i64;
            let cell = [n % EXTENTS[0], n / EXTENTS[0] % EXTENTS[1], n / EXTENTS[0] / EXTENTS[1]];
            *x = step(&padded, cell).unwrap_or(*x);
        }
    }
    a
}

fn text(rules: [[&str; 2]; 3]) -> String {
    let rule = |rule: &str| if rule == "value" { "value(x)".to_owned() } else { rule.to_owned() };
    let mut said = Vec::new();
    for (axis, [low, high]) in ["i", "j", "k"].into_iter().zip(rules) {
        if low == high {
            said.push(format!("{axis}: {}", rule(low)));
        } else {
            said.push(format!("{axis} low: {}, {axis} high: {}", rule(low), rule(high)));
        }
    }
    format!(
        "program own {{ inout a; param n: int = 2; param x = 0.75; boundary a {{ {} }}; repeat n {{ a = step(a) }} }}{STEP}",
        said.join(", ")
    )
}

const RULES: [&str; 6] = ["periodic", "value", "copy", "mirror", "-mirror", "halo"];

/// Every rule along every axis, and different ones on two sides.
fn combinations() -> Vec<[[&'static str; 2]; 3]> {
    let mut all = Vec::new();
    for i in RULES {
        for j in RULES {
            for k in RULES {
                all.push([[i; 2], [j; 2], [k; 2]]);
            }
        }
    }
    for low in &RULES[1..] {
        for high in &RULES[1..] {
            all.push([[low, high], [high, low], ["halo", low]]);
        }
    }
    all
}

/// Whether there is a cell left to compute: 4 cells with a reach of 3 and more, and nothing outside.
fn computes(rules: [[&str; 2]; 3]) -> bool {
    let numbers = vec![0.0; EXTENTS.iter().product::<i64>() as usize];
    let padded = Padded::new(&numbers, EXTENTS, rules, 0.75);
    let [ni, nj, nk] = EXTENTS;
    (0..nk).any(|k| (0..nj).any(|j| (0..ni).any(|i| step(&padded, [i, j, k]).is_some())))
}

#[test]
fn boundaries_mean_what_padding_by_hand_means() {
    let grid = Grid::rows(5, 4, 4);
    let mut computed = 0;
    for rules in combinations() {
        let found = problem(&program(&text(rules)), grid, Precision::F64, &[]);
        if !computes(rules) {
            assert!(found.is_err(), "{rules:?}");
            continue;
        }
        computed += 1;
        let problem = found.unwrap_or_else(|error| panic!("{rules:?}: {error}"));
        let start = problem.held_before(VariableId::new(0)).unwrap().clone();
        let Data::F64(start) = start else { panic!("not f64") };
        let expected = vec![Some(Data::F64(by_hand(&start, rules, 2)))];
        same(&interpreted(&problem), &expected, &format!("{rules:?}"));
    }
    assert!(computed > 50, "{computed}");
}

#[test]
fn kernels_equal_the_interpreter_on_every_storage() {
    let grid = Grid::rows(5, 4, 4);
    let rules = [
        [["periodic"; 2], ["periodic"; 2], ["copy"; 2]],
        [["value"; 2], ["mirror"; 2], ["periodic"; 2]],
        [["copy", "value"], ["mirror", "copy"], ["halo", "mirror"]],
        [["-mirror"; 2], ["value"; 2], ["-mirror", "copy"]],
        [["-mirror", "value"], ["-mirror"; 2], ["-mirror", "value"]],
        [["mirror", "-mirror"], ["periodic"; 2], ["-mirror"; 2]],
    ];
    for (n, rules) in rules.into_iter().enumerate() {
        let precision = [Precision::F64, Precision::F32][n % 2];
        let problem = problem(&program(&text(rules)), grid, precision, &[("n", "3")]).unwrap();
        let expected = interpreted(&problem);
        let variants = variants().filter(|own| own.fields == Fields::Soa).skip(n).step_by(5);
        for own in variants {
            let choices = Choices { precision, contract: false, block: [8, 2, 2], ..own };
            let found = emulated(&problem, &choices).unwrap_or_else(|error| panic!("{choices:?}: {error}"));
            same(&found, &expected, &format!("{rules:?} {choices:?}"));
        }
    }
}

/// Names that are made on the way, renamed, and partly computed.
const NAMES: &str = "
    program waves {
        inout u, v
        out energy
        in c on (i, j)
        param n: int = 5

        boundary u { i: periodic }

        repeat n {
            let before = u
            u = push(u, v, c)
            v = speed(u, before)
            energy = square(v)
        }
    }
    stencil push { in u, v; in c on (i, j); out new; new = 2*u - v + c*(u[i-1] + u[i+1] - 2*u) + 0.1*v[j+1] }
    stencil speed { in new, old; out v; v = 0.5*new - 0.25*old }
    stencil square { in v; out e; e = v * v }
";

#[test]
fn what_a_call_does_not_compute_keeps_its_value() {
    let (ni, nj, nk) = (6, 5, 2);
    let problem = problem(&program(NAMES), Grid::rows(ni, nj, nk), Precision::F64, &[]).unwrap();
    let numbers = |name: &str, len: usize| match random::fill(crate::Element::F64, len, -1.0, 1.0, 0, name) {
        Data::F64(numbers) => numbers,
        other => panic!("{other:?}"),
    };
    let len = ni * nj * nk;
    let (mut u, mut v, c) = (numbers("u", len), numbers("v", len), numbers("c", ni * nj));
    let mut energy = vec![f64::NAN; len];
    for _ in 0..5 {
        let (before, old_v) = (u.clone(), v.clone());
        for n in 0..len {
            let (i, j) = (n % ni, n / ni % nj);
            if j + 1 < nj {
                let at = |by: isize| before[n - i + (i as isize + by).rem_euclid(ni as isize) as usize];
                u[n] = 2.0 * at(0) - old_v[n] + c[n % (ni * nj)] * (at(-1) + at(1) - 2.0 * at(0)) + 0.1 * old_v[n + ni];
            }
        }
        for n in 0..len {
            v[n] = 0.5 * u[n] - 0.25 * before[n];
            energy[n] = v[n] * v[n];
        }
    }
    let expected = vec![Some(Data::F64(u)), Some(Data::F64(v)), Some(Data::F64(energy)), None];
    let found = interpreted(&problem);
    same(&found, &expected, "by hand");
    let choices = Choices { contract: false, block: [8, 2, 1], ..Choices::default() };
    for storage in ["regular", "compressed"] {
        let choices = Choices { storage: storage.to_owned(), ..choices.clone() };
        same(&emulated(&problem, &choices).unwrap(), &found, storage);
    }
}

/// Calls that sweep need columns, whatever is chosen for the others.
#[test]
fn calls_that_sweep_are_computed_beside_others() {
    let text = "
        program own {
            inout x; param n: int = 3
            boundary { i: periodic, j: copy }
            repeat n { x = solve(x); x = blur(x) }
        }
        stencil solve { in x; out y; sweep k up { let s = if k == 0 { x } else { 0.5*s[k-1] + x } }
            sweep k down { y = if k == nk-1 { s } else { 0.25*y[k+1] + s } } }
        stencil blur { in a; out b; b = 0.5*a[i-1] + 0.25*a[j+1] }
    ";
    let problem = problem(&program(text), Grid::rows(7, 5, 4), Precision::F64, &[]).unwrap();
    let expected = interpreted(&problem);
    for storage in ["regular", "compressed"] {
        let choices = Choices { storage: storage.to_owned(), contract: false, ..Choices::default() };
        same(&emulated(&problem, &choices).unwrap(), &expected, storage);
    }
}

/// The last interface is computed by no call.
#[test]
fn the_last_interface_keeps_its_value() {
    let text = "
        program own {
            inout h on (i, j, k+1)
            inout w on (k+1)
            inout other on (i, j, k+1)
            param n: int = 2
            boundary { i: periodic, k: copy }
            repeat n { h = up(h, w); w = more(w); other = h; h = up(h, w) }
        }
        stencil up { in h on (i, j, k+1); in w on (k+1); out q on (i, j, k+1); q = 0.5*h[k+1] + w*h[i-1] }
        stencil more { in w on (k+1); out q on (k+1); q = w + 0.25 }
    ";
    let (ni, nj, nk) = (5, 2, 3);
    for n in 1..6 {
        let problem =
            problem(&program(text), Grid::rows(ni, nj, nk), Precision::F64, &[("n", &n.to_string())]).unwrap();
        let numbers = |variable: usize| match problem.held_before(VariableId::new(variable)).unwrap() {
            Data::F64(numbers) => numbers.clone(),
            other => panic!("{other:?}"),
        };
        let [mut h, mut w, mut other] = [0, 1, 2].map(numbers);
        let up = |h: &[f64], w: &[f64]| {
            let mut q = h.to_vec();
            for (k, w) in w.iter().enumerate().take(nk) {
                for column in 0..ni * nj {
                    let at = k * ni * nj + column;
                    let left = if column % ni == 0 { at + ni - 1 } else { at - 1 };
                    q[at] = 0.5 * h[at + ni * nj] + w * h[left];
                }
            }
            q
        };
        for _ in 0..n {
            h = up(&h, &w);
            w[..nk].iter_mut().for_each(|w| *w += 0.25);
            other.clone_from(&h);
            h = up(&h, &w);
        }
        let expected = [h, w, other].map(|numbers| Some(Data::F64(numbers)));
        same(&interpreted(&problem), &expected, &format!("{n} times"));
        let choices = Choices { contract: false, block: [8, 2, 1], ..Choices::default() };
        for kind in [PlanKind::Separate, PlanKind::Merged, PlanKind::Recomputed] {
            let shape = usual_shape(1, Precision::F64);
            let choices = choices.clone();
            let plan = ProgramPlan { kind, steps: 1, choices, shape, resident: 0, tile: None, graph: true };
            same(&planned(&problem, &plan).unwrap(), &expected, &format!("{n} times, {plan}"));
        }
    }
}

#[test]
fn a_program_goes_on_from_a_checkpoint_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("waves.npz");
    let problem = problem(&program(NAMES), Grid::rows(6, 5, 2), Precision::F64, &[]).unwrap();
    let whole = interpreted(&problem);
    let about = checkpoint::About::new(&problem, "hash", false);
    for stop in 1..5 {
        let backend = Interpreter::new(problem.clone());
        let mut driver = Driver::new(&backend).given().unwrap();
        let mut times = 0;
        let stopped = driver.run(None, &mut |driver, _| {
            times += 1;
            if times < stop {
                return Ok(());
            }
            checkpoint::save(&path, &about, driver)?;
            Err(Error::check("killed"))
        });
        assert_eq!(stopped.unwrap_err().message, "killed");
        let read = checkpoint::load(&path).unwrap();
        read.check(&about, &problem).unwrap();
        let mut driver = Driver::new(&backend);
        read.restore(&mut driver).unwrap();
        driver.finish().unwrap();
        same(&results(&problem, &driver).unwrap(), &whole, &format!("stopped after {stop}"));
    }
}

/// A problem on a grid of cells that happen to stand in rows.
fn on_cells(text: &str, ni: usize, nj: usize, nk: usize) -> Result<ProgramProblem> {
    let program = program(text);
    let facade = program.facade();
    let request = Request {
        stencil: &facade,
        precision: Precision::F64,
        contract: false,
        grid: Some(Grid::cells(ni * nj, nk)),
        adjacency: Some(Arc::new(in_rows("plane", ni, nj)?)),
        arrays: BTreeMap::new(),
        settings: BTreeMap::new(),
        seed: 0,
        cast: crate::Cast::Exact,
        drawing: crate::Drawing::Inputs,
    };
    ProgramProblem::new(&program, request)
}

#[test]
fn cells_that_stand_in_no_rows_have_edges_along_k_alone() {
    let rules = [["halo"; 2], ["halo"; 2], ["mirror", "copy"]];
    let (ni, nj, nk) = (7, 6, 4);
    let cells = on_cells(&text(rules), ni, nj, nk).unwrap();
    let rows = problem(&program(&text(rules)), Grid::rows(ni, nj, nk), Precision::F64, &[]).unwrap();
    let expected = interpreted(&rows);
    same(&interpreted(&cells), &expected, "cells");
    let choices = Choices { storage: "uncompressed".to_owned(), contract: false, ..Choices::default() };
    same(&emulated(&cells, &choices).unwrap(), &expected, "kernels on cells");
    let periodic = on_cells(&text([["periodic"; 2], ["halo"; 2], ["halo"; 2]]), ni, nj, nk);
    assert!(periodic.unwrap_err().message.contains("its cells stand in no rows"));
}

/// Programs that can be fused in part or as a whole, each with a grid.
pub(crate) fn fusible() -> Vec<(String, Grid)> {
    let diffusion = "
        program own {
            inout phi; param n: int = 7; param alpha = 1/32
            boundary { i: periodic, j: periodic }
            repeat n { let lap = laplacian(phi); let bi = laplacian(lap); phi = euler(phi, bi, alpha) }
        }
        stencil laplacian { in a; out l; l = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a }
        stencil euler { in a, b; param c; out new; new = a - c*b }
    ";
    let closed = "
        program own {
            inout phi; out lap; in w on (i, j); param n: int = 5
            repeat n { lap = laplacian(phi); let flux = times(lap, w); phi = add(phi, flux) }
        }
        stencil laplacian { in a; out l; l = a[i-1] + a[i+1] - 2*a }
        stencil times { in l; in w on (i, j); out f; f = w * l }
        stencil add { in a, f; out new; new = a + 0.1 * f }
    ";
    let leapfrog = "
        program own {
            inout u, before; in c; param n: int = 6
            boundary u, c { i: periodic, j: periodic }
            repeat n { let next = wave(u, before, c); before = u; u = next }
        }
        stencil wave { in u, b, c; out n; n = 2*u - b + 0.1*c*(u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4*u) }
    ";
    let single = "
        program own {
            inout a: f32; param n: int = 5
            boundary { i: periodic, j: periodic }
            repeat n { a = blur(a) }
        }
        stencil blur { in a: f32; out b: f32; b = 0.3*a[i-1] + 0.4*a[i+1] + 0.2*a[j-2] + 0.1*a[i+1, j+1] }
    ";
    let inner = "
        program own {
            inout a; in q; param n: int = 3
            boundary a { i: periodic, j: copy }
            let b = blur(a)
            repeat n { a = blur(a); repeat 4 { a = scaled(a, b) }; a = scaled(a, q) }
            a = blur(a)
        }
        stencil blur { in a; out b; b = 0.5*a[i-1] + 0.25*a[i+1] + 0.125*a[j-1] }
        stencil scaled { in a, b; out c; c = 0.5*a + 0.25*b }
    ";
    // Calls that compute some cells alone, of variables that others compute on all.
    let rims = "
        program own {
            inout a, b, last; param n: int = 4
            repeat n { a = half(a); a = drift(a, b); last = a; b = half(b) }
        }
        stencil half { in g; out h; h = 0.5*g }
        stencil drift { in a, b; out c; c = a + b[i-1] }
    ";
    let wide_rims = "
        program own {
            inout a; out c; param n: int = 4
            repeat n { a = half(a); let d = blur(a); c = blur(d); a = blur(a) }
        }
        stencil half { in g; out h; h = 0.5*g }
        stencil blur { in a; out b; b = a[i-1] + 0.25*a[j+1] }
    ";
    // Reads one side alone, so that strips overlap on that side alone.
    let upwind = "
        program own {
            inout a, b
            param n: int = 4
            boundary { i: periodic, j: periodic }
            repeat n { b, a = upwind(a, b) }
        }
        stencil upwind { in a, b; out c, d; c = 0.5*a + 0.25*b[i+1]; d = a }
    ";
    // Levels keep their numbers where something lies beyond the last.
    let layers = "
        program own {
            inout a
            in w on (k+1)
            param n: int = 4
            boundary { i: periodic, j: periodic, k: copy }
            repeat n { a = layered(a, w) }
        }
        stencil layered {
            in a
            in w on (k+1)
            out b
            b = (if k < nk - 1 { w[k+1] } else { 0.5*k }) * a[i-1] + 0.125*w
        }
    ";
    // Wide enough for whole lanes of 16 bytes.
    let grid = Grid::rows(128, 8, 3);
    let mut all: Vec<(String, Grid)> = [diffusion, closed, leapfrog, single, inner, rims, wide_rims, upwind, layers]
        .map(|text| (text.to_owned(), grid))
        .to_vec();
    all.push((NAMES.to_owned(), Grid::rows(6, 5, 2)));
    for rules in [[["periodic"; 2], ["periodic"; 2], ["copy"; 2]], [["mirror"; 2], ["periodic"; 2], ["halo"; 2]]] {
        all.push((text(rules), Grid::rows(8, 8, 4)));
    }
    all
}

#[test]
fn fusing_changes_no_bit() {
    let mut fewer = 0;
    for (text, grid) in fusible() {
        for precision in [Precision::F32, Precision::F64] {
            let problem = problem(&program(&text), grid, precision, &[]).unwrap();
            let expected = interpreted(&problem);
            for fuse in [Fuse::Nothing, Fuse::Pointwise, Fuse::Everything] {
                for times in [1, 2, 3] {
                    let staged = problem.staged.fused(Fusing { fuse, times, wraps: false, whole: false });
                    fewer += usize::from(staged.stages.len() < problem.staged.stages.len());
                    let fused = ProgramProblem { staged, ..problem.clone() };
                    same(&interpreted(&fused), &expected, &format!("{text} {fuse:?} {times}"));
                }
            }
        }
    }
    assert!(fewer > 20, "{fewer}");
}

#[test]
fn every_plan_equals_the_interpreter() {
    let (mut streamed, mut tiled, mut whole) = (0, 0, [0; 2]);
    for (text, grid) in fusible() {
        for precision in [Precision::F32, Precision::F64] {
            let problem = problem(&program(&text), grid, precision, &[]).unwrap();
            let expected = interpreted(&problem);
            for (kind, steps) in [
                (PlanKind::Merged, 1),
                (PlanKind::Recomputed, 1),
                (PlanKind::Recomputed, 2),
                (PlanKind::Streamed, 1),
                (PlanKind::Streamed, 3),
                (PlanKind::Tiled, 1),
                (PlanKind::Tiled, 3),
                (PlanKind::Persistent, 1),
                (PlanKind::Resident, 1),
            ] {
                let choices = Choices { precision, block: [8, 2, 1], ..Choices::default() };
                let plan = ProgramPlan {
                    kind,
                    steps,
                    choices,
                    shape: usual_shape(steps, precision),
                    tile: None,
                    resident: 0,
                    graph: true,
                };
                match planned(&problem, &plan) {
                    Ok(found) => {
                        streamed += usize::from(kind == PlanKind::Streamed);
                        tiled += usize::from(kind == PlanKind::Tiled);
                        whole[usize::from(kind == PlanKind::Resident)] +=
                            usize::from(matches!(kind, PlanKind::Persistent | PlanKind::Resident));
                        same(&found, &expected, &format!("{text} {plan}"));
                    }
                    Err(error) => {
                        let may_fail = !matches!(kind, PlanKind::Merged | PlanKind::Recomputed);
                        assert!(steps > 1 || may_fail, "{text} {plan}: {error}");
                    }
                }
            }
        }
    }
    assert!(streamed >= 12 && tiled == streamed && whole[0] >= 4 && whole[1] >= 2, "{streamed} {tiled} {whole:?}");
}
