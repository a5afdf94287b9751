//! The library as other programs call it: stencils and programs on grids and over meshes, by the interpreter and by kernels.

use crate::common::stencils;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, called};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Source;
use stencilc_runtime::grid::in_rows;
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::job::{Domain, Job, Run, Subject};
use stencilc_runtime::mesh::made::airfoil;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::{Array, Cast, Data, Device, Drawing, Error};

/// A text that is on no file.
fn source(text: &str) -> Source {
    Source::new("own.stn", text)
}

fn bits(data: &Data) -> Vec<u64> {
    (0..data.len()).map(|at| data.bits(at)).collect()
}

/// A stencil by itself and as a program that calls it once leave the same, on the cells that are not computed, too.
#[test]
fn stencils_as_programs_leave_the_same_bits() {
    let grid = Grid::rows(14, 13, 9);
    let mut compared = 0;
    for (name, text) in stencils() {
        let lowered = stencilc_compiler::check(&Source::new(&name, &text));
        for stencil in &lowered.stencils {
            let request = Request {
                stencil,
                precision: Precision::F64,
                contract: true,
                grid: Some(grid),
                adjacency: None,
                arrays: BTreeMap::new(),
                settings: BTreeMap::new(),
                seed: 5,
                cast: Cast::Exact,
                drawing: Drawing::Inputs,
            };
            // Some have parameters without a value.
            let Ok(mut problem) = Problem::new(request) else { continue };
            let mut expected = std::mem::take(&mut problem.outputs);
            interpret(&problem.job(&problem.inputs()), &mut expected, &|_| {}).unwrap();
            let job = Job::of(Subject::Grid(called::once(stencil, false).0)).on(Domain::Rows(grid)).seed(5);
            for device in [Device::Cpu, Device::Emulate] {
                let mut run = job.clone().drawing(Drawing::Inputs).device(device).start().unwrap();
                run.finish().unwrap();
                for ((_, field), expected) in problem.stencil.fields.iter().zip(&expected) {
                    let Some(expected) = expected else { continue };
                    let found = run.get(&field.name).unwrap();
                    assert_eq!(found.shape, grid.shape(field.place), "{} {device}: {}", stencil.name, field.name);
                    assert_eq!(bits(&found.data), bits(expected), "{} {device}: {}", stencil.name, field.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 30, "{compared} fields were compared");
}

const WAVE: &str = "
    program wave {
        inout u, v; param n: int = 10
        boundary { i: periodic, j: periodic }
        repeat n { u, v = move(u, v) }
    }
    stencil move { in u, v; out a, b; b = v + 0.1 * (u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4*u); a = u + 0.1 * v }
";

/// A run of the program above.
fn wave(device: Device) -> Run {
    let job = Job::new(&source(WAVE), None).unwrap().on(Domain::Rows(Grid::rows(8, 6, 2)));
    job.drawing(Drawing::Inputs).seed(2).device(device).start().unwrap()
}

#[test]
fn a_run_goes_on_step_by_step() {
    let mut whole = wave(Device::Cpu);
    whole.finish().unwrap();
    let mut run = wave(Device::Emulate);
    assert_eq!((run.total().unwrap(), run.done()), (10, 0));
    assert_eq!(
        [run.step(3).unwrap(), run.step(0).unwrap(), run.step(100).unwrap(), run.step(1).unwrap()],
        [3, 0, 7, 0]
    );
    run.finish().unwrap();
    assert_eq!(run.done(), 10);
    for name in ["u", "v"] {
        assert_eq!(bits(&run.get(name).unwrap().data), bits(&whole.get(name).unwrap().data), "{name}");
    }
}

/// What a run holds can be handed to another.
#[test]
fn fields_can_be_put() {
    let (mut whole, mut first, mut second) = (wave(Device::Cpu), wave(Device::Cpu), wave(Device::Emulate));
    whole.finish().unwrap();
    first.step(4).unwrap();
    second.step(4).unwrap();
    second.put("u", &Array { shape: vec![2, 6, 8], data: Data::F64(vec![0.0; 96]) }).unwrap();
    for name in ["u", "v"] {
        second.put(name, &first.get(name).unwrap()).unwrap();
    }
    second.finish().unwrap();
    assert_eq!(bits(&second.get("u").unwrap().data), bits(&whole.get("u").unwrap().data));
}

#[test]
fn programs_over_meshes_run_on_every_device() {
    let text = "
        mesh plane { set edge, cell; map edge.cells -> cell[2] }
        stencil flux over plane.edge {
            in heat on cell; inc change on cell
            let f = 0.1 * (heat[cells.1] - heat[cells.0])
            change[cells.0] += f
            change[cells.1] -= f
        }
        stencil heat_of_all over plane.cell { in heat; reduce total: sum; total += heat }
        program spread over plane {
            inout heat on cell
            out total: real on ()
            param n: int
            repeat n { heat = flux(heat, heat) }
            total = heat_of_all(heat)
        }
    ";
    let job = Job::new(&source(text), None).unwrap().on(Domain::Mesh { mesh: airfoil(12, 6).unwrap(), levels: None });
    let job = job.set("n", 7).drawing(Drawing::Inputs).precision(Precision::F32);
    let [cpu, emulated] = [Device::Cpu, Device::Emulate].map(|device| {
        let mut run = job.clone().device(device).start().unwrap();
        assert_eq!(run.step(5).unwrap(), 5);
        assert!(run.number("total").is_err());
        run.finish().unwrap();
        let heat = run.get("heat").unwrap();
        assert_eq!((run.done(), heat.shape.as_slice()), (7, [72].as_slice()));
        (run.number("total").unwrap().to_bits(), bits(&heat.data))
    });
    assert_eq!(cpu, emulated);
}

#[test]
fn stencils_run_on_grids_of_cells() {
    let text = "stencil laplacian { in a; out b; b = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a }";
    let rows = Grid::rows(9, 7, 3);
    let cells = Domain::Cells { adjacency: Arc::new(in_rows("square", 9, 7).unwrap()), levels: 3 };
    let job = Job::new(&source(text), None).unwrap().drawing(Drawing::Inputs).seed(4);
    let found = [Domain::Rows(rows), cells].map(|domain| {
        [Device::Cpu, Device::Emulate].map(|device| {
            let storage = if matches!(domain, Domain::Rows(_)) { "regular" } else { "compressed" };
            let job = job.clone().choices(Choices { storage: storage.to_owned(), ..Choices::default() });
            let mut run = job.on(domain.clone()).device(device).start().unwrap();
            run.finish().unwrap();
            let b = run.get("b").unwrap();
            (b.shape, bits(&b.data))
        })
    });
    assert_eq!(found[0][0], found[0][1]);
    assert_eq!(found[1][0], found[1][1]);
    assert_eq!(found[1][0].0, [3, 63]);
    // The same cells by another name: those inside have the same neighbours.
    let inside = (0..3).flat_map(|k| (1..6).flat_map(move |j| (1..8).map(move |i| (k * 7 + j) * 9 + i)));
    let mut compared = 0;
    for at in inside {
        assert_eq!(found[0][0].1[at], found[1][0].1[at], "{at}");
        compared += 1;
    }
    assert_eq!(compared, 105);
}

/// What a call is told that cannot be.
fn told<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "nothing".to_owned(),
        Err(Error { message, help: Some(help), .. }) => format!("{message}\n  {help}"),
        Err(error) => error.message,
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let two = "stencil one { in a; out b; b = a }\nstencil two { in a; out b; b = a[i-1] }";
    let one = |name| Job::new(&source(two), Some(name)).map(|job| job.device(Device::Cpu));
    let ready = || one("one").unwrap().on(Domain::Rows(Grid::rows(3, 2, 1))).drawing(Drawing::Inputs);
    let run = || ready().start().unwrap();
    let mesh = Domain::Mesh { mesh: airfoil(4, 2).unwrap(), levels: None };
    let sum = || {
        let text = "mesh plane { set cell }\nstencil all over plane.cell { in a; reduce total: sum; total += a }";
        let job = Job::new(&source(text), None).unwrap().on(mesh.clone()).drawing(Drawing::Inputs);
        job.device(Device::Cpu).start().unwrap()
    };
    let numbers = |shape: Vec<usize>| Array { data: Data::F32(vec![0.0; shape.iter().product()]), shape };
    let all = [
        told(Job::new(&source("stencil one { in a; out b; b = c }"), None)),
        told(Job::new(&source("fn half(x) = 0.5 * x"), None)),
        told(Job::new(&source(two), None)),
        told(one("tow")),
        told(one("three")),
        told(one("one").unwrap().start()),
        told(one("one").unwrap().on(mesh.clone()).start()),
        told(ready().set("dt", 0.5).start()),
        told(ready().array("c", numbers(vec![1])).start()),
        told(ready().array("a", numbers(vec![1, 3])).start()),
        told(run().get("c")),
        told(run().number("b")),
        told(sum().put("total", &numbers(vec![]))),
        told(run().put("b", &numbers(vec![3]))),
        told(run().put("b", &numbers(vec![1, 2, 3]))),
    ];
    insta::assert_snapshot!(all.join("\n"));
}
