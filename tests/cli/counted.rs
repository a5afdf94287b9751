//! `repeat n as step`: programs whose turns have numbers, on grids and over meshes.

use crate::common::folder::Folder;
use std::fs;

const COUNTED: &str = "\
param dt = 0.3
program forced {
    inout a
    param n: int = 3
    boundary { i: periodic, j: periodic }
    repeat n as step {
        let t = dt * step
        a = force(a, t, step)
        repeat 2 as inner { a = mix(a, inner + 2*step) }
        a = smooth(a)
    }
}
program flat {
    inout a
    boundary { i: periodic, j: periodic }
    a = force(a, dt * 0, 0)
    a = mix(a, 0)
    a = mix(a, 1)
    a = smooth(a)
    a = force(a, dt * 1, 1)
    a = mix(a, 2)
    a = mix(a, 3)
    a = smooth(a)
    a = force(a, dt * 2, 2)
    a = mix(a, 4)
    a = mix(a, 5)
    a = smooth(a)
}
stencil force { in a; param t; param step: int; out b; b = if step == 1 { a - sin(t) } else { a + cos(t) } }
stencil mix { in a; param n: int; out b; b = a[i-1] + n / 8 * a }
stencil smooth { in a; out b; b = (a[i-1] + a[i+1] + a[j-1] + a[j+1]) / 4 }
test \"turns are counted from 0\" { forced { a = 0; n = 0 }; expect a == 0 }
";

const LEVELS: &str = "\
program first { inout a; repeat 4 as step { a = up(a, step) } }
stencil up { in a; param step: int; out b; b = if step == 0 { a } else { a[k-1] } }
";

const OVER_MESH: &str = "\
mesh tri { set cell, edge; map edge.cells -> cell[2] }
program rising over tri {
    inout q on cell
    param n: int = 4
    repeat n as step {
        let weight = (1 + step)**2
        q = add(q, weight)
        repeat step as inner { q = add(q, 100 * inner) }
    }
}
stencil add over tri.cell { in q; param w; out r; r = q + w }
test \"squares and what turns add\" {
    mesh triangles(4, 3)
    let before = i
    rising { q = before }
    expect q == before + 1 + 4 + 9 + 16 + 100 + 100 + 200
}
";

fn folder() -> Folder {
    let folder = Folder::new();
    for (name, text) in [("counted.stn", COUNTED), ("levels.stn", LEVELS), ("mesh.stn", OVER_MESH)] {
        fs::write(folder.path(name), text).unwrap();
    }
    folder
}

#[test]
fn turns_with_numbers_are_what_they_are_written_out() {
    let folder = folder();
    let run = "run counted.stn --grid 128x8x2 --draw";
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    folder.done(&format!("{run} --device cpu --program flat --out a=flat.npy"));
    let expected = read("flat.npy");
    for plan in
        ["--device cpu", "--device emulate", "--device emulate --fuse separate", "--device emulate --fuse recomputed"]
    {
        folder.done(&format!("{run} --program forced {plan} --out a=forced.npy"));
        assert!(read("forced.npy") == expected, "{plan}");
    }
    folder.done("verify counted.stn --program forced --grid 24x8x2 --device emulate");
}

#[test]
fn a_turn_goes_on_with_its_number() {
    let folder = folder();
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    folder.done("mesh make triangles --size 6x5 -o tri.npz");
    let runs = [
        "run counted.stn --program forced --grid 16x8x2 --draw --out a=way.npy",
        "run mesh.stn --mesh tri.npz --draw --out q=way.npy",
    ];
    for run in runs {
        for device in ["cpu", "emulate"] {
            let run = format!("{run} --device {device}");
            folder.done(&format!("{run} --set n=9"));
            let whole = read("way.npy");
            folder.done(&format!("{run} --set n=4 --checkpoint at.npz"));
            folder.done(&format!("{run} --set n=9 --resume at.npz"));
            assert!(read("way.npy") == whole, "{run}");
        }
    }
}

#[test]
fn what_counts_is_refused_where_it_cannot_be() {
    let folder = folder();
    insta::assert_snapshot!(folder.transcript(&[
        "check --strict counted.stn levels.stn mesh.stn",
        "test counted.stn mesh.stn",
        "run counted.stn --program forced --grid 128x8x2 --draw --device emulate --fuse streamed",
        "run counted.stn --program forced --grid 128x8x2 --draw --device emulate --fuse recomputed --steps 2",
        "run levels.stn --grid 8x8x4 --draw --device cpu",
        "build counted.stn --program forced --grid 16x8x2 --emit ir",
    ]));
    folder.done("explain counted.stn --program forced --grid 16x8x2");
    folder.done("bench counted.stn --program forced --grid 16x8x2 --device emulate --runs 1");
}
