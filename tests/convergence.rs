//! Programs that come along, against exact solutions: the order in which the error goes down is measured on three grids, and
//! what a scheme conserves is conserved but for rounding.

use crate::common::simulation::{Simulation, cells, distance};
use std::f64::consts::PI;
use std::ops::Range;
use stencilc_compiler::grid::Grid;

/// Asserts that the error goes down with a power of the width that lies in a band, from each grid to the next.
fn check_order(about: &str, cells: [usize; 3], band: Range<f64>, error: impl Fn(usize) -> f64) {
    let errors = cells.map(error);
    let order = |n: usize| (errors[n] / errors[n + 1]).ln() / (cells[n + 1] as f64 / cells[n] as f64).ln();
    let orders = [order(0), order(1)];
    assert!(orders.iter().all(|order| band.contains(order)), "{about}: orders {orders:?}, errors {errors:?}");
}

fn total(numbers: &[f64]) -> f64 {
    numbers.iter().sum()
}

/// On a domain of one wave the exact solution is `exp(-k**4 t) * cos(k x)`. With the time step that stability allows, which
/// goes with the fourth power of the width, the error goes with the square of the width.
#[test]
fn diffusion_of_fourth_order_converges_in_second() {
    check_order("diffusion4", [12, 24, 48], 1.9..2.1, |n| {
        let grid = Grid::rows(n, 4, 1);
        let (k, dx) = (2.0 * PI, 1.0 / n as f64);
        let alpha = 1.0 / 64.0;
        let dt = alpha * dx.powi(4);
        // The same time for all: until the wave is down to about a third.
        let steps = (1.0 / k.powi(4) / dt).round();
        let wave = |i: f64| (k * dx * i).cos();
        let found = Simulation {
            program: "diffusion4",
            grid,
            arrays: vec![("phi", cells(grid, |i, _, _| wave(i)))],
            settings: vec![("steps", steps), ("alpha", alpha)],
            contract: true,
        };
        let exact = (-k.powi(4) * dt * steps).exp();
        distance(&found.output("phi"), &cells(grid, |i, _, _| exact * wave(i)))
    });
}

/// Waves on a periodic cube: the derivatives of each are known.
#[test]
fn gradients_of_divergences_converge_in_sixth_order() {
    type Waves = [fn([f64; 3], [f64; 3]) -> f64; 3];
    const GIVEN: Waves = [|s, c| s[0] * c[1] * s[2], |s, c| c[0] * s[1] * c[2], |s, _| s[0] * s[1] * s[2]];
    // By the square of the wave number.
    const EXACT: Waves = [
        |s, c| -4.0 * s[0] * c[1] * s[2] - s[0] * c[1] * c[2] + c[0] * s[1] * c[2],
        |s, c| -c[0] * s[1] * s[2] - 4.0 * c[0] * s[1] * c[2] + s[0] * c[1] * c[2],
        |s, c| c[0] * c[1] * c[2] - c[0] * c[1] * s[2] - 4.0 * s[0] * s[1] * s[2],
    ];
    for (axis, output) in ["vx", "vy", "vz"].into_iter().enumerate() {
        check_order(output, [16, 24, 36], 5.8..6.1, |n| {
            let (grid, width) = (Grid::rows(n, n, n), 2.0 * PI / n as f64);
            let wave = |of: fn([f64; 3], [f64; 3]) -> f64| {
                cells(grid, |i, j, k| {
                    let at = [i, j, k].map(|index| index * width);
                    of(at.map(f64::sin), at.map(f64::cos))
                })
            };
            let found = Simulation {
                program: "grad_div",
                grid,
                arrays: ["ux", "uy", "uz"].into_iter().zip(GIVEN.map(wave)).collect(),
                settings: vec![("scale", 1.0 / (width * width))],
                contract: true,
            };
            distance(&found.output(output), &wave(EXACT[axis]))
        });
    }
}

/// How many cells the side of a square of 1 has, where the first one's centre lies, and a solution of the heat equation on it,
/// which is given x, y and a time.
struct Plate {
    program: &'static str,
    /// Cells beyond `n` widths of a cell.
    more: isize,
    first: f64,
    solution: fn(f64, f64, f64) -> f64,
}

/// Waves that fade by their wavelength, on what stays: `m` and `n` half waves along x and y.
fn fading(m: f64, n: f64, time: f64) -> f64 {
    (-PI * PI * (m * m + n * n) * time).exp()
}

const PLATES: [Plate; 4] = [
    Plate {
        program: "heat_periodic",
        more: 0,
        first: 0.0,
        solution: |x, y, time| {
            fading(2.0, 2.0, time) * (2.0 * PI * x).cos() * (2.0 * PI * y).sin()
                + fading(2.0, 0.0, time) * (2.0 * PI * x).sin()
        },
    },
    Plate {
        program: "heat_walls",
        more: -1,
        first: 1.0,
        solution: |x, y, time| {
            20.0 + fading(1.0, 1.0, time) * (PI * x).sin() * (PI * y).sin()
                + fading(2.0, 1.0, time) * (2.0 * PI * x).sin() * (PI * y).sin()
        },
    },
    Plate {
        program: "heat_insulated",
        more: 0,
        first: 0.5,
        solution: |x, y, time| {
            20.0 + fading(1.0, 1.0, time) * (PI * x).cos() * (PI * y).cos()
                + fading(0.0, 2.0, time) * (2.0 * PI * y).cos()
        },
    },
    Plate {
        program: "heat_rim",
        more: 1,
        first: 0.0,
        solution: |x, y, time| {
            20.0 + 3.0 * x - 2.0 * y + fading(1.0, 2.0, time) * (PI * x).sin() * (2.0 * PI * y).sin()
        },
    },
];

/// With a time step in proportion to the square of the width.
#[test]
fn heat_converges_in_second_order_with_every_boundary() {
    for Plate { program, more, first, solution } in PLATES {
        check_order(program, [8, 16, 32], 1.9..2.1, |n| {
            let side = n.strict_add_signed(more);
            let (grid, dx) = (Grid::rows(side, side, 1), 1.0 / n as f64);
            let at = |time: f64| cells(grid, |i, j, _| solution((i + first) * dx, (j + first) * dx, time));
            let (time, dt) = (0.05, 0.2 * dx * dx);
            let found = Simulation {
                program,
                grid,
                arrays: vec![("t", at(0.0))],
                settings: vec![("steps", (time / dt).round()), ("kappa", 1.0), ("dt", dt), ("dx", dx)],
                contract: true,
            };
            distance(&found.output("t"), &at(time))
        });
    }
}

/// Rough numbers, the same each time.
fn rough(grid: Grid) -> Vec<f64> {
    cells(grid, |i, j, k| (12.9898 * i + 78.233 * j + 37.719 * k).sin())
}

#[test]
fn heat_stays_where_no_edge_lets_it_pass() {
    let grid = Grid::rows(13, 11, 2);
    let start: Vec<f64> = rough(grid).iter().map(|own| 20.0 + 10.0 * own).collect();
    let end = |program| {
        let steps = 200.0;
        let settings = vec![("steps", steps), ("kappa", 1.0), ("dt", 0.2), ("dx", 1.0)];
        Simulation { program, grid, arrays: vec![("t", start.clone())], settings, contract: true }.output("t")
    };
    // Each step rounds each cell a few times.
    let rounding = 200.0 * 4.0 * f64::EPSILON * total(&start);
    for program in ["heat_periodic", "heat_insulated"] {
        let end = end(program);
        assert!((total(&end) - total(&start)).abs() < rounding, "{program}: {} to {}", total(&start), total(&end));
        assert!(distance(&end, &start) > 5.0, "{program}");
    }
    // Kept at 20 degrees, the walls take what differs from that.
    let walls = end("heat_walls");
    assert!(distance(&walls, &vec![20.0; walls.len()]) < distance(&start, &vec![20.0; walls.len()]) / 100.0);
}

/// A standing wave of `half_waves` along one axis of a box of length 1, with a speed of sound of 1, until a time.
fn standing_wave(axis: usize, n: usize, half_waves: f64, time: f64, steps: f64) -> f64 {
    let mut extents = [4; 3];
    extents[axis] = n;
    let grid = Grid::rows(extents[0], extents[1], extents[2]);
    let k = PI * half_waves;
    let (dt, dx) = (time / steps, 1.0 / n as f64);
    let at = |time: f64| cells(grid, |i, j, l| (k * ([i, j, l][axis] + 0.5) * dx).cos() * (k * time).cos());
    let found = Simulation {
        program: "rigid_box",
        grid,
        arrays: vec![("u", at(0.0)), ("before", at(-dt)), ("c", vec![1.0; at(0.0).len()])],
        settings: vec![("steps", steps), ("dt", dt), ("dx", dx)],
        contract: true,
    };
    distance(&found.output("u"), &at(time))
}

#[test]
fn sound_converges_in_second_order_in_time() {
    for axis in 0..3 {
        // So fine in space that the error of time is left.
        check_order("rigid_box, time", [40, 80, 160], 1.95..2.05, |steps| {
            standing_wave(axis, 24, 1.0, 0.4, steps as f64)
        });
    }
}

#[test]
fn sound_converges_in_eighth_order_in_space() {
    for axis in 0..3 {
        // Time steps go with the fourth power of the width, so that the error of time goes with the eighth, too.
        check_order("rigid_box, space", [16, 24, 36], 7.7..8.3, |n| {
            standing_wave(axis, n, 3.0, 0.1, n.pow(4) as f64 / 256.0)
        });
    }
}

/// Shallow water on a square of a side: depth 1000 m, `g` of 10 and thus waves of 100 m/s, some steps until a time.
struct Water {
    n: [usize; 2],
    dx: f64,
    time: f64,
    steps: f64,
}

const CORIOLIS: f64 = 1e-4;

impl Water {
    /// The end of what begins with u, v and h, which are given x and y.
    fn end(&self, start: [Vec<f64>; 3]) -> [Vec<f64>; 3] {
        let [u, v, h] = start;
        let dt = self.time / self.steps;
        let settings = vec![("steps", self.steps), ("dt", dt), ("dx", self.dx), ("g", 10.0), ("f", CORIOLIS)];
        let arrays = vec![("u", u), ("v", v), ("h", h)];
        let mut outputs =
            Simulation { program: "shallow_water", grid: self.grid(), arrays, settings, contract: true }.run();
        ["u", "v", "h"].map(|name| match outputs.remove(name) {
            Some(stencilc_runtime::Data::F64(numbers)) => numbers,
            other => panic!("{other:?}"),
        })
    }

    fn grid(&self) -> Grid {
        Grid::rows(self.n[0], self.n[1], 1)
    }

    /// u, v and h where the grid has them: on faces towards i-1 and j-1, and at centres.
    fn staggered(&self, fields: [&dyn Fn(f64, f64) -> f64; 3]) -> [Vec<f64>; 3] {
        let [u, v, h] = fields;
        let places: [(_, [f64; 2]); 3] = [(u, [0.0, 0.5]), (v, [0.5, 0.0]), (h, [0.5, 0.5])];
        places.map(|(field, [x, y])| cells(self.grid(), |i, j, _| field((i + x) * self.dx, (j + y) * self.dx)))
    }
}

/// A Poincaré wave, which goes along the diagonal, with the frequency `sqrt(f**2 + g*H*(k**2 + l**2))`. It is so low that the
/// equations are linear to seven digits.
#[test]
fn waves_on_shallow_water_converge_in_second_order() {
    let side = 6e6;
    let (k, l) = (2.0 * PI / side, 2.0 * PI / side);
    let (g, depth, f) = (10.0, 1000.0, CORIOLIS);
    let frequency = (f * f + g * depth * (k * k + l * l)).sqrt();
    let height = 1e-4;
    let per_height = g * height / (frequency * frequency - f * f);
    let phase = |x: f64, y: f64, time: f64| k * x + l * y - frequency * time;
    for field in 0..3 {
        check_order(["u", "v", "h"][field], [16, 32, 64], 1.9..2.1, |n| {
            let water = Water { n: [n, n], dx: side / n as f64, time: 30_000.0, steps: n as f64 };
            let at = |time: f64| {
                let u = |x, y| {
                    let phase = phase(x, y, time);
                    per_height * (frequency * k * phase.cos() - f * l * phase.sin())
                };
                let v = |x, y| {
                    let phase = phase(x, y, time);
                    per_height * (frequency * l * phase.cos() + f * k * phase.sin())
                };
                water.staggered([&u, &v, &|x, y| depth + height * phase(x, y, time).cos()])
            };
            distance(&water.end(at(0.0))[field], &at(water.time)[field])
        });
    }
}

/// Currents of 20 m/s to and fro, in balance with the slope of the surface: the full equations leave them as they are.
#[test]
fn currents_in_balance_converge_in_second_order() {
    let side = 1e6;
    let (g, depth, f, speed) = (10.0, 1000.0, CORIOLIS, 20.0);
    let wave = 2.0 * PI / side;
    let current = |x: f64| speed * (wave * x).sin();
    // So that f * current is g times the slope.
    let surface = |x: f64| f * speed / (g * wave) * (wave * x).cos();
    for (along_i, field) in [(false, 1), (false, 2), (true, 0), (true, 2)] {
        check_order("a current", [16, 32, 64], 1.9..2.1, |n| {
            let extents = if along_i { [4, n] } else { [n, 4] };
            let water = Water { n: extents, dx: side / n as f64, time: 4_000.0, steps: n as f64 };
            let start = if along_i {
                water.staggered([&|_, y| current(y), &|_, _| 0.0, &|_, y| depth + surface(y)])
            } else {
                water.staggered([&|_, _| 0.0, &|x, _| current(x), &|x, _| depth - surface(x)])
            };
            distance(&water.end(start.clone())[field], &start[field])
        });
    }
}

/// Eddies that are far from any balance.
fn eddies(water: &Water) -> [Vec<f64>; 3] {
    let turn = 2.0 * PI / (water.n[0] as f64 * water.dx);
    water.staggered([
        &|x, y| 15.0 * (turn * x).sin() * (2.0 * turn * y).cos(),
        &|x, y| 20.0 * (2.0 * turn * x + turn * y).cos(),
        &|x, y| 1000.0 + 80.0 * (turn * x).cos() * (turn * y).sin(),
    ])
}

#[test]
fn shallow_water_keeps_its_volume() {
    let water = Water { n: [24, 24], dx: 1e4, time: 10_000.0, steps: 250.0 };
    let start = eddies(&water);
    let end = water.end(start.clone());
    let (before, after) = (total(&start[2]), total(&end[2]));
    // A step rounds each depth three times.
    let rounding = water.steps * 3.0 * f64::EPSILON;
    assert!((after / before - 1.0).abs() < rounding, "{before} to {after}");
    assert!(distance(&end[2], &start[2]) > 20.0);
}

/// The differences in space conserve the energy, so what is lost goes with the error of time alone, the third power of its step.
#[test]
fn shallow_water_loses_energy_in_time_steps_alone() {
    let energy = |water: &Water, [u, v, h]: &[Vec<f64>; 3]| -> f64 {
        let [ni, nj] = water.n;
        let at = |own: &[f64], i: usize, j: usize| own[j % nj * ni + i % ni];
        let kinetic = |i, j| {
            let mean = |own: &[f64], di, dj| (at(own, i, j).powi(2) + at(own, i + di, j + dj).powi(2)) / 2.0;
            at(h, i, j) * (mean(u, 1, 0) + mean(v, 0, 1)) / 2.0
        };
        // Against water that is level.
        let potential = |i, j| 10.0 * (at(h, i, j) - 1000.0).powi(2) / 2.0;
        (0..ni * nj).map(|cell| kinetic(cell % ni, cell / ni) + potential(cell % ni, cell / ni)).sum()
    };
    check_order("energy", [400, 800, 1600], 2.8..3.2, |steps| {
        let water = Water { n: [16, 16], dx: 1e4, time: 8_000.0, steps: steps as f64 };
        let start = eddies(&water);
        let end = water.end(start.clone());
        (energy(&water, &end) / energy(&water, &start) - 1.0).abs()
    });
}

/// Concentrations of Gray-Scott after some steps.
fn reacted(grid: Grid, u: &[f64], v: &[f64], settings: &[(&'static str, f64)]) -> [Vec<f64>; 2] {
    let arrays = vec![("u", u.to_vec()), ("v", v.to_vec())];
    let simulation = Simulation { program: "patterns", grid, arrays, settings: settings.to_vec(), contract: true };
    ["u", "v"].map(|name| simulation.output(name))
}

#[test]
fn patterns_do_not_know_where_they_are() {
    let grid = Grid::rows(24, 20, 1);
    let (ni, nj) = (grid.ni, grid.nj);
    let blob = cells(grid, |i, j, _| {
        f64::from(u8::from((i - 9.0).abs() + (j - 7.0).abs() < 5.0)) * (0.2 + 0.01 * (i + 2.0 * j))
    });
    let u: Vec<f64> = blob.iter().map(|own| 1.0 - 2.0 * own).collect();
    let moved = |from: &[f64], to: &dyn Fn(usize, usize) -> (usize, usize)| {
        let mut moved = vec![0.0; from.len()];
        for (cell, own) in from.iter().enumerate() {
            let (i, j) = to(cell % ni, cell / ni);
            moved[j * ni + i] = *own;
        }
        moved
    };
    let steps = [("steps", 300.0)];
    let plain = reacted(grid, &u, &blob, &steps);
    assert!(plain[1].iter().copied().fold(0.0, f64::max) > 0.1, "something is left to look at");
    // Around the periodic plane, and mirrored along i, to the last bit: of a sum, `a[i-1] + a[i+1]` comes first.
    let around = |i: usize, j: usize| ((i + 17) % ni, (j + 15) % nj);
    let mirrored = |i: usize, j: usize| (ni - 1 - i, j);
    for to in [&around as &dyn Fn(usize, usize) -> (usize, usize), &mirrored] {
        let found = reacted(grid, &moved(&u, to), &moved(&blob, to), &steps);
        for (found, plain) in found.iter().zip(&plain) {
            assert_eq!(*found, moved(plain, to));
        }
    }
}

#[test]
fn a_reaction_makes_nothing_of_nothing() {
    let grid = Grid::rows(12, 10, 1);
    let (u, v) = (rough(grid).iter().map(|own| 0.6 + 0.3 * own).collect::<Vec<_>>(), vec![0.2; 120]);
    // Without what comes in and leaves, U and V together stay as much as they were.
    let closed = [("steps", 100.0), ("feed", 0.0), ("kill", 0.0)];
    let [end_u, end_v] = reacted(grid, &u, &v, &closed);
    let (before, after) = (total(&u) + total(&v), total(&end_u) + total(&end_v));
    assert!((after / before - 1.0).abs() < 100.0 * 8.0 * f64::EPSILON, "{before} to {after}");
    assert!((total(&end_v) - total(&v)).abs() > 1.0);
    // U alone, as much as fits in, stays to the last bit.
    assert_eq!(reacted(grid, &[1.0; 120], &[0.0; 120], &[("steps", 100.0)]), [vec![1.0; 120], vec![0.0; 120]]);
}
