//! How fast anything is nobody can test; everything else is.

use super::truth::Truth;
use super::*;
use crate::array::Data;
use crate::device::Device;
use crate::drawing::Drawing;
use crate::emulate::{Compiler, Emulator, Settings};
use crate::mesh::made::airfoil;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Source;

const AROUND: &str = "
    stencil spread { in a; out b; b = 0.5 * a + 0.25 * (a[j-2] + a[i+1]) }
    program around { inout heat; boundary { i: periodic; j: periodic }; repeat 9 { heat = spread(heat) } }
";

/// Rows are looked at on both sides, and there is nothing beyond the first and the last.
const WALLS: &str = "
    stencil spread { in a; out b; b = 0.5 * a + 0.25 * (a[j-1] + a[j+1]) }
    program walls { inout heat; boundary { j: copy }; repeat 9 { heat = spread(heat) } }
";

const OVER: &str = "
    mesh plane { set edge, cell; map edge.cells -> cell[2] }
    stencil flux over plane.edge {
        in heat on cell; inc change on cell
        let f = 0.1 * (heat[cells.1] - heat[cells.0])
        change[cells.0] += f
        change[cells.1] -= f
    }
    program spread over plane { inout heat on cell; param n: int = 40; repeat n { heat = flux(heat, heat) } }
";

fn asked(text: &str, name: &str, domain: Domain, devices: usize) -> Asked {
    let job = Job::new(&Source::new("scaling.stn", text), Some(name)).unwrap().on(domain);
    let method = Method { runs: 2, warmups: 1, hot: true, verify: true };
    Asked { job: job.drawing(Drawing::Everything), devices, times: 3, method, is_open: true }
}

#[test]
fn one_is_doubled_up_to_all() {
    assert_eq!(counts(2), [1, 2]);
    assert_eq!(counts(3), [1, 2, 3]);
    assert_eq!(counts(8), [1, 2, 4, 8]);
    assert_eq!(counts(11), [1, 2, 4, 8, 11]);
}

/// What a program in parts brings is known by hand: rows of 6 x 2 numbers of 8 bytes.
#[test]
fn grids_grow_or_are_shared_and_bring_what_they_look_at() {
    let emulator = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    for platform in [Platform::Cpu, Platform::Emulator(emulator)] {
        let row = 6.0 * 2.0 * 8.0;
        for (text, name, of_two, of_three) in [
            // Two rows from before; of two parts in a circle, the other.
            (AROUND, "around", [2.0, 2.0], [2.0, 2.0]),
            // Who has a neighbour on one side brings one row, and who has two brings two.
            (WALLS, "walls", [1.0, 1.0], [2.0, 1.0]),
        ] {
            let scaling = Scaling::new(asked(text, name, Domain::Rows(Grid::rows(6, 12, 2)), 3), &platform).unwrap();
            let told = AtomicUsize::new(0);
            let tell = |steps| {
                told.fetch_add(steps, Ordering::Relaxed);
            };
            let scaled = scaling.measure(&tell).unwrap();
            assert_eq!(told.into_inner(), scaling.steps());
            assert_eq!(scaled.plan.is_some(), !matches!(platform, Platform::Cpu));
            let weak = scaled.weak.unwrap();
            for (points, grids, shares) in
                [(&weak, ["6x12x2", "6x24x2", "6x36x2"], [1.0; 3]), (&scaled.strong, ["6x12x2"; 3], [1.0, 2.0, 3.0])]
            {
                let first = &points[0];
                assert!(first.brought.is_none() && first.share.is_none() && first.efficiency == 1.0);
                for ((own, gpus), (grid, share)) in points.iter().zip([1, 2, 3]).zip(grids.into_iter().zip(shares)) {
                    assert_eq!((own.gpus, own.grid.as_deref()), (gpus, Some(grid)));
                    let median = own.us_a_step.median_us;
                    assert_eq!(own.efficiency, first.us_a_step.median_us / (share * median));
                    assert_eq!(own.not_hidden_us, own.share.map(|share| median - share.median_us));
                    assert_eq!(own.share.is_some(), gpus > 1);
                }
                for (point, [part, link]) in points[1..].iter().zip([of_two, of_three]) {
                    let Brought { exchanges, bytes_to_a_part, bytes_over_a_link, bytes_folded } =
                        point.brought.unwrap();
                    assert_eq!((exchanges, bytes_folded), (1.0, 0.0));
                    assert_eq!([bytes_to_a_part, bytes_over_a_link.unwrap()], [part * row, link * row], "{name}");
                }
            }
            assert_eq!(scaled.strong.iter().map(|own| own.parts).collect::<Vec<_>>(), [[12; 2], [6; 2], [4; 2]]);
        }
    }
}

#[test]
fn meshes_do_not_grow() {
    let domain = || Domain::Mesh { mesh: airfoil(12, 6).unwrap(), levels: None };
    let emulator = Arc::new(Emulator::new(Compiler::find().unwrap(), Settings::default()));
    for platform in [Platform::Cpu, Platform::Emulator(emulator)] {
        let scaling = Scaling::new(asked(OVER, "spread", domain(), 2), &platform).unwrap();
        let scaled = scaling.measure(&|_| {}).unwrap();
        assert!(scaled.weak.is_none() && scaled.plan.is_none());
        let [one, two] = &scaled.strong[..] else { panic!("{scaled:?}") };
        assert_eq!(two.parts.iter().sum::<usize>(), one.parts[0]);
        let brought = two.brought.unwrap();
        assert!(two.share.is_some() && brought.bytes_to_a_part > 0.0 && brought.exchanges == 1.0, "{brought:?}");
    }
}

#[test]
fn what_differs_has_no_time() {
    let scaling = Scaling::new(asked(AROUND, "around", Domain::Rows(Grid::rows(6, 12, 2)), 2), &Platform::Cpu);
    let scaling = scaling.unwrap();
    let Some(Truth { times, outputs: truth::Outputs::OnGrid(mut reference) }) = scaling.truth(&scaling.whole).unwrap()
    else {
        panic!("there is a truth")
    };
    let compared = |reference| {
        let truth = Truth { times, outputs: truth::Outputs::OnGrid(reference) };
        scaling.compare(&scaling.whole, 2, Some(&truth)).map_err(|error| error.message)
    };
    let Some(Data::F64(numbers)) = &mut reference.outputs[0] else { panic!("no numbers") };
    numbers[40] = f64::from_bits(numbers[40].to_bits() ^ 1);
    let said = compared(reference).unwrap_err();
    assert!(said.starts_with("on 2 devices: `heat` differs on 1 cell, first at i=4, j=6, k=0: "), "{said}");
    let right = scaling.truth(&scaling.whole).unwrap();
    scaling.compare(&scaling.whole, 2, right.as_ref()).unwrap();
}

#[test]
fn what_cannot_be_cut_is_refused_before_anything_is_measured() {
    let of = |text, name, nj, devices| {
        let asked = asked(text, name, Domain::Rows(Grid::rows(6, nj, 2)), devices);
        Scaling::new(asked, &Platform::Cpu).map(|_| ()).unwrap_err().message
    };
    assert!(of(AROUND, "around", 7, 4).contains("7 rows are too few for 4 parts"));
    let nothing = "program same { inout a, b; let c = a\n a = b\n b = c }\nstencil s { in a; out b; b = a }";
    assert!(of(nothing, "same", 12, 2).contains("calls nothing"));
}

/// One device takes a periodic plane in rows by a plan that parts cannot have.
#[test]
fn one_device_may_have_a_better_plan() {
    let alone = |text, name, grid| {
        let ready = asked(text, name, Domain::Rows(grid), 2).job.device(Device::Cpu).ready().unwrap();
        let Checked::Grid(problem) = ready.checked else { panic!("a grid") };
        better_alone(&problem, &ProgramPlan::of_parts(Choices::default()), "sm_80").map(|own| own.to_string())
    };
    assert!(alone(AROUND, "around", Grid::rows(128, 12, 2)).unwrap().starts_with("--fuse streamed"));
    assert_eq!(alone(WALLS, "walls", Grid::rows(128, 12, 2)), None);
}
