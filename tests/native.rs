//! Kernels on the CPU at speed: every bit is the interpreter's, and a fluid that turns for long enough to be compared with what is known
//! of it.

use crate::common::{lowered, problem, stencils, verify_emulated};
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::check;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::mesh::{MeshChoices, VectorLayout};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::source::Source;
use stencilc_runtime::emulate::{Compiler, Emulator, Settings};
use stencilc_runtime::job::{Domain, Job};
use stencilc_runtime::mesh::made::airfoil;
use stencilc_runtime::mesh::order::Ordering;
use stencilc_runtime::mesh::program::cpu::Interpreter;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered};
use stencilc_runtime::mesh::program::measure::{difference, results};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::verify::{Tools, Verdict, expect};
use stencilc_runtime::{Array, Data, Device};
use stencilc_testing::batch::Subject;

/// Every stencil that comes along, as it usually is on a CPU, in rows of doubles and by tables of singles; rows are long enough for
/// vectors.
#[test]
fn every_stencil_has_the_bits_of_the_interpreter() {
    let compiler = Compiler::find().unwrap();
    for (name, text) in stencils() {
        for stencil in lowered(&name, &text) {
            for (precision, storage) in [(Precision::F64, "regular"), (Precision::F32, "uncompressed")] {
                let problem = problem(&stencil, precision, Grid::rows(75, 21, 9), &[]);
                let expected = expect(&problem, &|_| {}).unwrap();
                let (choices, _) = Choices { precision, ..Choices::default() }.on_cpu(Open::Kernel);
                let choices = Choices { storage: storage.into(), ..choices.suiting(&stencil) };
                let verdicts = verify_emulated(
                    &problem,
                    &expected,
                    std::slice::from_ref(&choices),
                    &compiler,
                    &Settings::native(),
                );
                let is_equal = matches!(verdicts.as_deref(), Ok([Verdict::Equal { .. }]));
                assert!(is_equal, "{}: {}: {verdicts:?}", stencil.name, choices.words());
            }
        }
    }
}

/// Compilers make `0.0 - double(n)` to `-double(n)`, which is -0 where n is 0, if they see both.
#[test]
fn nothing_less_a_whole_number_is_no_minus_zero() {
    const TEXT: &str = "
        const none: real = [3., 3., 0.0]
        stencil z {
            in n: int = -2..2; in a = -1..1; out b; out c; out d
            b = 0.0 - n
            c = none[2] - n % 2
            d = (if k > 1 { 0 } else { a }) - n
        }
    ";
    let compiler = Compiler::find().unwrap();
    for precision in [Precision::F32, Precision::F64] {
        let problem = problem(&lowered("z", TEXT)[0], precision, Grid::rows(75, 21, 9), &[]);
        let expected = expect(&problem, &|_| {}).unwrap();
        let (choices, _) = Choices { precision, ..Choices::default() }.on_cpu(Open::Kernel);
        let verdicts =
            verify_emulated(&problem, &expected, std::slice::from_ref(&choices), &compiler, &Settings::native());
        assert!(matches!(verdicts.as_deref(), Ok([Verdict::Equal { .. }])), "{verdicts:?}");
    }
}

/// Flows over meshes, whose kernels ask in functions of their own which thread they are, try divisions twice, and fold more numbers
/// than one block does.
#[test]
fn programs_over_meshes_have_the_bits_of_the_interpreter() {
    let machine = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::native()));
    let lowered = check(&Source::new("airfoil.stn", include_str!("../stencils/airfoil.stn")));
    for (around, precision) in [(12, Precision::F32), (75, Precision::F64)] {
        let mesh = airfoil(around, 32).unwrap();
        let problem = MeshProblem::new(Request {
            program: &lowered.mesh_programs[0],
            precision,
            contract: true,
            mesh: mesh.clone(),
            levels: None,
            arrays: BTreeMap::new(),
            settings: BTreeMap::from([("steps".into(), "3".into())]),
            seed: 1,
            cast: stencilc_runtime::Cast::Rounded,
            drawing: stencilc_runtime::Drawing::Inputs,
        });
        let problem = Arc::new(problem.unwrap());
        let expected = results(&problem, Interpreter::new(Arc::clone(&problem))).unwrap();
        for layout in VectorLayout::ALL {
            let choices = MeshChoices { layout, ..MeshChoices::default() };
            let placed = Rc::new(Renumbered::new(&problem, &Ordering::kept(&mesh)).unwrap());
            let found = results(&problem, Kernels::new(Arc::clone(&problem), Arc::clone(&machine), choices, placed));
            assert_eq!(difference(&expected, &found.unwrap()), None, "{around} {precision:?} {layout:?}");
        }
    }
}

/// Whatever waits for others, adds atomically, or is for a GPU alone, too.
#[test]
fn random_programs_have_the_bits_of_the_interpreter() {
    let tools = Tools { keeps: true, ..Tools::emulated(&Compiler::find().unwrap(), Settings::native()) };
    for subject in [Subject::Stencils, Subject::Programs, Subject::Meshes] {
        let tally = subject.run(500_000..500_040, &tools).unwrap();
        let failed: Vec<&str> = tally.failed.iter().map(|(_, text)| text.as_str()).collect();
        assert!(tally.failures == 0 && tally.kernels > 20, "{} kernels:\n{}", tally.kernels, failed.join("\n"));
    }
}

/// The Taylor-Green vortex at a Reynolds number of 1600, on 64^3 cells, a tenth as fast as sound. Vorticity dissipates as the series of
/// G. I. Taylor and A. E. Green, "Mechanism of the production of small eddies from large ones", Proceedings of the Royal Society A 158
/// (1937), says, which is for small times; and energy goes by as much.
#[test]
fn a_vortex_decays_as_taylor_and_green_say() {
    const CELLS: usize = 64;
    const STEPS: [usize; 3] = [160, 80, 80];
    let (spacing, dt, viscosity, sound) = (TAU / CELLS as f64, 1.0 / 160.0, 1.0 / 1600.0, 10.0);
    let field = |of: &dyn Fn([f64; 3]) -> f64| {
        let at = |cell: usize| [cell % CELLS, cell / CELLS % CELLS, cell / CELLS / CELLS].map(|n| n as f64 * spacing);
        let numbers = (0..CELLS.pow(3)).map(|cell| of(at(cell)) as f32).collect();
        Array { shape: vec![CELLS; 3], data: Data::F32(numbers) }
    };
    let pressure = |[x, y, z]: [f64; 3]| ((2.0 * x).cos() + (2.0 * y).cos()) * ((2.0 * z).cos() + 2.0) / 16.0;
    let text = include_str!("../examples/taylor_green/navier_stokes.stn");
    let job = Job::new(&Source::new("navier_stokes.stn", text), Some("navier_stokes")).unwrap();
    let job = job.precision(Precision::F32).on(Domain::Rows(Grid::rows(CELLS, CELLS, CELLS))).device(Device::Native);
    let job = job.array("ux", field(&|[x, y, z]| x.sin() * y.cos() * z.cos()));
    let job = job.array("uy", field(&|[x, y, z]| -x.cos() * y.sin() * z.cos()));
    let job = job.array("uz", field(&|_| 0.0));
    let job = job.array("lnrho", field(&|at| (pressure(at) / (sound * sound)).ln_1p()));
    let steps = STEPS.iter().sum::<usize>();
    let job = job.set("steps", steps).set("dt", dt).set("dx", spacing).set("nu", viscosity).set("cs", sound);
    let mut run = job.start().unwrap();
    let (mut time, mut found) = (0.0, Vec::new());
    for steps in STEPS {
        run.step(steps as u64).unwrap();
        time += steps as f64 * dt;
        let fields = ["ux", "uy", "uz", "lnrho"].map(|name| match run.get(name).unwrap().data {
            Data::F32(numbers) => numbers,
            other => panic!("{other:?}"),
        });
        found.push((time, energy(&fields, sound), 2.0 * viscosity * enstrophy(&fields, CELLS, spacing)));
    }
    for &(time, _, dissipation) in &found {
        let exact = 0.75 * viscosity * series(time, 1.0 / viscosity);
        assert!((dissipation / exact - 1.0).abs() < 0.01, "at {time}: {dissipation} instead of {exact}");
    }
    // By Simpson's rule.
    let [(from, before, first), (_, _, middle), (to, after, last)] = found[..] else { panic!("{found:?}") };
    let (lost, expected) = (before - after, (to - from) * (first + 4.0 * middle + last) / 6.0);
    assert!((lost / expected - 1.0).abs() < 0.01, "{lost} is lost, and {expected} dissipates");
}

/// How fast energy dissipates, by how fast it does at first.
fn series(time: f64, reynolds: f64) -> f64 {
    let (t, r) = (time, reynolds);
    1.0 - 6.0 * t / r + (5.0 / 48.0 + 18.0 / (r * r)) * t.powi(2) - (5.0 / 3.0 + 36.0 / (r * r)) * t.powi(3) / r
        + (50.0 / (99.0 * 64.0) + 1835.0 / (9.0 * 16.0 * r * r) + 54.0 / r.powi(4)) * t.powi(4)
        - (361.0 / (44.0 * 32.0) + 761.0 / (12.0 * r * r) + 324.0 / (5.0 * r.powi(4))) * t.powi(5) / r
}

/// A cell's share of energy, that of motion and that of a gas of one temperature which is pressed together.
fn energy(fields: &[Vec<f32>; 4], sound: f64) -> f64 {
    let [ux, uy, uz, lnrho] = fields;
    let of = |cell: usize| {
        let speed: f64 = [ux, uy, uz].iter().map(|own| f64::from(own[cell]).powi(2)).sum();
        let ln = f64::from(lnrho[cell]);
        ln.exp() * speed / 2.0 + sound * sound * (ln.exp() * (ln - 1.0) + 1.0)
    };
    (0..ux.len()).map(of).sum::<f64>() / ux.len() as f64
}

/// A cell's share of half the square of vorticity, by derivatives of sixth order.
fn enstrophy(fields: &[Vec<f32>; 4], n: usize, spacing: f64) -> f64 {
    let derivative = |field: &[f32], cell: usize, axis: u32| -> f64 {
        let apart = n.pow(axis);
        let own = cell / apart % n;
        let at = |by: usize| f64::from(field[cell - own * apart + (own + by) % n * apart]);
        let sum: f64 =
            [(1, 45.0), (2, -9.0), (3, 1.0)].iter().map(|&(by, weight)| weight * (at(by) - at(n - by))).sum();
        sum / (60.0 * spacing)
    };
    let [ux, uy, uz, lnrho] = fields;
    let of = |cell: usize| {
        let d = |field: &[f32], axis| derivative(field, cell, axis);
        let vorticity = [d(uz, 1) - d(uy, 2), d(ux, 2) - d(uz, 0), d(uy, 0) - d(ux, 1)];
        f64::from(lnrho[cell]).exp() * vorticity.iter().map(|own| own * own).sum::<f64>() / 2.0
    };
    (0..ux.len()).map(of).sum::<f64>() / ux.len() as f64
}
