//! The library as other programs call it: stencils and programs on grids and over meshes, by the interpreter and by kernels.

use crate::common::stencils;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, called};
use stencilc_compiler::mesh::MeshChoices;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Source;
use stencilc_runtime::checkpoint;
use stencilc_runtime::grid::in_rows;
use stencilc_runtime::interpreter::interpret;
use stencilc_runtime::job::{Domain, Job, Run, Subject};
use stencilc_runtime::mesh::made::airfoil;
use stencilc_runtime::mesh::order::{Cuts, Ordering};
use stencilc_runtime::mesh::{Field, Mesh};
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
    let cells = Domain::Cells { adjacency: Arc::new(in_rows("square", 9, 7).unwrap()), levels: Some(3) };
    let job = Job::new(&source(text), None).unwrap().drawing(Drawing::Inputs).seed(4);
    let found = [Domain::Rows(rows), cells].map(|domain| {
        [Device::Cpu, Device::Emulate].map(|device| {
            let mut run = job.clone().on(domain.clone()).device(device).start().unwrap();
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
        told(run().get("b")),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn arrays_have_as_many_numbers_as_their_shapes_say() {
    let one = "stencil one { in a; out b; b = a }";
    let job = |device| Job::new(&source(one), None).unwrap().on(Domain::Rows(Grid::rows(3, 2, 1))).device(device);
    let mesh = "mesh plane { set cell }\nstencil one over plane.cell { in a; out b; b = a }";
    let over_mesh = |device| {
        let domain = Domain::Mesh { mesh: airfoil(3, 2).unwrap(), levels: None };
        Job::new(&source(mesh), None).unwrap().on(domain).device(device)
    };
    for device in [Device::Cpu, Device::Emulate] {
        for (job, shape) in [(job(device), vec![1, 2, 3]), (over_mesh(device), vec![6])] {
            let array = |len| Array { shape: shape.clone(), data: Data::F64(vec![1.0; len]) };
            for wrong in [0, 5, 7] {
                let expected = format!("the array of `a` of shape {shape:?} has 6 numbers, and there are {wrong}");
                assert_eq!(told(job.clone().array("a", array(wrong)).start()), expected);
                let mut run = job.clone().array("a", array(6)).start().unwrap();
                assert_eq!(told(run.put("a", &array(wrong))), expected);
            }
        }
    }
    let text = "stencil one { in a: bool; out b; b = if a { 1.0 } else { 0.0 } }";
    let job = Job::new(&source(text), None).unwrap().on(Domain::Rows(Grid::rows(3, 1, 1))).device(Device::Cpu);
    let mask = Array { shape: vec![1, 1, 3], data: Data::Bool(vec![0, 255, 1]) };
    assert_eq!(
        told(job.array("a", mask).start()),
        "the array of `a` holds 255 as its truth value 1\n  a truth value is 0 or 1: convert a mask by `value != 0`"
    );
    let cells = Domain::Cells { adjacency: Arc::new(in_rows("square", 4, 3).unwrap()), levels: Some(2) };
    let wide = Array { shape: vec![usize::MAX, 2], data: Data::F64(Vec::new()) };
    let job = Job::new(&source(one), None).unwrap().on(cells).array("a", wide);
    assert!(told(job.start()).ends_with("has more numbers than fit, and there are 0"));
    let most = Array::new([usize::MAX, 2], vec![true]).unwrap_err();
    assert_eq!(
        format!("{most:?}"),
        format!("an array of shape [{}, 2] has more numbers than fit, and there are 1", usize::MAX)
    );
}

/// What is told of a fault, and the fault.
type Fault<'a, T> = (&'a str, &'a dyn Fn(&mut T));

/// A mesh with a fault.
fn wrong(fault: impl Fn(&mut Mesh)) -> Mesh {
    let mut mesh = airfoil(3, 2).unwrap();
    fault(&mut mesh);
    mesh
}

#[test]
fn meshes_and_orderings_are_checked() {
    let text = "mesh plane { set edge, cell; map edge.cells -> cell[2] }
        stencil mean over plane.edge { in a on cell; out b; b = 0.5 * (a[cells.0] + a[cells.1]) }";
    let job = |mesh| {
        let job = Job::new(&source(text), None).unwrap().on(Domain::Mesh { mesh, levels: None });
        job.drawing(Drawing::Inputs).device(Device::Cpu)
    };
    let map = |mesh: &Mesh| {
        let edges = mesh.set_named("edge").unwrap();
        mesh.maps.iter().position(|map| map.from == edges && map.name == "cells").unwrap()
    };
    let faults: [Fault<Mesh>; 6] = [
        ("`edge.cells` has ", &|mesh| {
            let map = map(mesh);
            mesh.maps[map].table.pop();
        }),
        ("`edge.cells` leads from edge 0, slot 0, to cell 1000", &|mesh| {
            let map = map(mesh);
            mesh.maps[map].table[0] = 1000;
        }),
        ("`edge.cells` leads from edge 0, slot 0, to cell -5", &|mesh| {
            let map = map(mesh);
            mesh.maps[map].table[0] = -5;
        }),
        ("the map `cells` is of set 9", &|mesh| {
            let map = map(mesh);
            mesh.maps[map].to = 9;
        }),
        ("the field `a` is of set 9", &|mesh| {
            mesh.fields.push(Field { name: "a".into(), set: 9, map: None, parts: 1, data: Data::F64(vec![]) });
        }),
        ("field `a` on `cell` has 1 numbers, and needs 6", &|mesh| {
            let set = mesh.set_named("cell").unwrap();
            mesh.fields.push(Field { name: "a".into(), set, map: None, parts: 1, data: Data::F64(vec![1.0]) });
        }),
    ];
    for (expected, fault) in faults {
        let told = told(job(wrong(fault)).start());
        assert!(told.starts_with(expected), "{told}");
    }
    let mesh = airfoil(3, 2).unwrap();
    let kept = Ordering::kept(&mesh);
    let cell = mesh.set_named("cell").unwrap();
    let faults: [Fault<Ordering>; 5] = [
        ("the ordering has 0 orders", &|own| own.orders.clear()),
        ("the order of `cell` does not hold each", &|own| own.orders[cell].fill(0)),
        ("the order of `cell` does not hold each", &|own| own.orders[cell][0] = 6),
        ("the blocks of the ordering", &|own| own.cuts = Some(Cuts { set: cell, starts: vec![0, 4, 2, 6] })),
        ("the blocks of the ordering", &|own| own.cuts = Some(Cuts { set: 99, starts: vec![0, 6] })),
    ];
    for (expected, fault) in faults {
        let mut own = kept.clone();
        fault(&mut own);
        let job = job(mesh.clone()).device(Device::Emulate).over_mesh(MeshChoices::default(), Some(own));
        let told = told(job.start());
        assert!(told.starts_with(expected), "{told}");
    }
    assert!(job(mesh.clone()).device(Device::Emulate).over_mesh(MeshChoices::default(), Some(kept)).start().is_ok());
}

#[test]
fn outputs_of_a_run_that_goes_on_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("done.npz");
    let job = || {
        let job = Job::new(&source("stencil one { in a; out b; b = a }"), None).unwrap();
        job.on(Domain::Rows(Grid::rows(3, 2, 1))).drawing(Drawing::Inputs).device(Device::Cpu)
    };
    let mut run = job().start().unwrap();
    assert!(run.get("b").is_err());
    run.finish().unwrap();
    run.save(&path).unwrap();
    let resumed = job().resume(checkpoint::load(&path).unwrap()).start().unwrap();
    assert_eq!(bits(&resumed.get("b").unwrap().data), bits(&run.get("b").unwrap().data));
}

#[test]
fn programs_without_calls_run_on_every_device() {
    let text = "program turn { inout a, b; in c on (i, j); out d on (i, j); param n: int
        let e = a
        a = b
        b = e
        d = c
        repeat 0 { a = half(a) }
        repeat n { let f = a; a = b; b = f }
    }
    stencil half { in x; out y; y = 0.5*x[i-1] }";
    let cells = Domain::Cells { adjacency: Arc::new(in_rows("square", 4, 3).unwrap()), levels: Some(2) };
    for (domain, storage) in [(Domain::Rows(Grid::rows(4, 3, 2)), "regular"), (cells, "compressed")] {
        for turns in [0, 1, 2] {
            let job = Job::new(&source(text), None).unwrap().on(domain.clone()).drawing(Drawing::Inputs).seed(3);
            let job = job.set("n", turns).choices(Choices { storage: storage.to_owned(), ..Choices::default() });
            let [cpu, emulated] = [Device::Cpu, Device::Emulate].map(|device| {
                let mut run = job.clone().device(device).start().unwrap();
                let before = ["a", "b", "c"].map(|name| bits(&run.get(name).unwrap().data));
                run.finish().unwrap();
                let after = ["a", "b", "d"].map(|name| bits(&run.get(name).unwrap().data));
                let [a, b, c] = before;
                let expected = if turns == 1 { [a, b, c] } else { [b, a, c] };
                assert_eq!(after, expected, "{turns} on {device}");
                after
            });
            assert_eq!(cpu, emulated);
        }
    }
}

#[test]
fn runs_are_saved_and_go_on_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("way.npz");
    let mesh = airfoil(12, 6).unwrap();
    let on_grid = "program wave { inout u, v; param n: int = 9\n boundary { i: periodic, j: periodic }\n repeat n { u, v = move(u, v) } }\n\
                   stencil move { in u, v; out a, b; b = v + 0.1*(u[i-1] + u[i+1] + u[j-1] + u[j+1] - 4*u); a = u + 0.1*v }";
    let over_mesh = "mesh plane { set edge, cell; map edge.cells -> cell[2] }\n\
                     stencil flux over plane.edge { in u on cell; inc change on cell; change[cells.0] += 0.1*u[cells.1] }\n\
                     program wave over plane { inout u on cell; param n: int = 9; repeat n { u = flux(u, u) } }";
    let rows = || Domain::Rows(Grid::rows(16, 12, 3));
    for (text, domain) in [(on_grid, rows()), (over_mesh, Domain::Mesh { mesh, levels: None })] {
        let job = |device| {
            let job = Job::new(&source(text), None).unwrap().on(domain.clone());
            job.drawing(Drawing::Inputs).seed(8).device(device)
        };
        let mut whole = job(Device::Cpu).start().unwrap();
        whole.finish().unwrap();
        let mut half = job(Device::Cpu).start().unwrap();
        assert_eq!(half.step(4).unwrap(), 4);
        half.save(&path).unwrap();
        let checkpoint = stencilc_runtime::checkpoint::load(&path).unwrap();
        let ready = job(Device::Emulate).resume(checkpoint.clone()).ready().unwrap();
        assert_eq!((ready.before(), ready.total().unwrap()), (4, 9));
        let mut rest = ready.start().unwrap();
        assert_eq!(rest.step(u64::MAX).unwrap(), 5);
        assert_eq!(rest.get("u").unwrap(), whole.get("u").unwrap());

        let array = whole.get("u").unwrap();
        let refused = |job: Job| job.ready().map(drop).unwrap_err().to_string();
        let given = refused(job(Device::Cpu).array("u", array).resume(checkpoint.clone()));
        assert_eq!(given, "`u` is given, and the checkpoint has all fields\n  help: leave out one of the two");
        let other = refused(job(Device::Cpu).set("n", 3).resume(checkpoint.clone()));
        assert_eq!(
            other,
            "the checkpoint is after 4 steps, and the program has 3\n  help: give it more steps, or an earlier checkpoint"
        );
        let changed = Job::new(&source(&format!("// new\n{text}")), None).unwrap().on(domain.clone());
        assert!(refused(changed.resume(checkpoint)).starts_with("the text of the program has changed"));
    }
}
