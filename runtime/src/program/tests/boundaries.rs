//! Boundaries against padding by hand, on every storage.

use super::*;

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

pub(super) fn text(rules: [[&str; 2]; 3]) -> String {
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
            let block = if own.walks() { [32, 2, 1] } else { [8, 2, 2] };
            let choices = Choices { precision, contract: false, block, ..own };
            let found = emulated(&problem, &choices).unwrap_or_else(|error| panic!("{choices:?}: {error}"));
            same(&found, &expected, &format!("{rules:?} {choices:?}"));
        }
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
