//! `--type NAME=TYPE`: what a type of the file is, by the call.

use crate::common::folder::Folder;
use std::fs;

const LIBRARY: &str = "type wp = real\nfn twice(a: broken) = a\n";

const TEXT: &str = "\
import \"parts/types.stn\"
type vp = f32
stencil mixed { in a: vp; in w: wp; out r: vp; out q; let c: vp = a * w; r = c * 0.1; q = a * w }
";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("parts")).unwrap();
    fs::write(folder.path("mixed.stn"), TEXT).unwrap();
    fs::write(folder.path("parts/types.stn"), LIBRARY.lines().next().unwrap()).unwrap();
    folder
}

#[test]
fn a_call_says_what_a_type_is() {
    let folder = folder();
    let own = folder.done("build mixed.stn --emit ir");
    assert!(own.contains("in a: f32") && own.contains("f32(a * w)") && own.contains("in w: real"), "{own}");
    let wide = folder.done("build mixed.stn --emit ir --type vp=real");
    assert!(wide.contains("in a: real") && !wide.contains("f32"), "{wide}");
    let stored = folder.done("build mixed.stn --emit ir --type vp=real --type wp=f32");
    assert!(stored.contains("in a: real") && stored.contains("in w: f32"), "{stored}");
    // What is made says how to make it again.
    let kernel = folder.done("build mixed.stn --emit cuda --type vp=real");
    assert!(kernel.contains("stencilc build mixed.stn --type vp=real --access"), "{kernel}");
    folder.done("verify mixed.stn --grid 40x8x2 --device emulate --type wp=f32");
    folder.done("verify mixed.stn --grid 40x8x2 --device emulate");
}

#[test]
fn what_a_call_says_wrongly_is_told() {
    let folder = folder();
    insta::assert_snapshot!(folder.transcript(&[
        "check mixed.stn --type vpp=f32",
        "check mixed.stn --type vp=f64",
        "check mixed.stn --type vp=double",
        "check mixed.stn --type vp",
        "check mixed.stn --type vp=f32 --type vp=real",
        "check two.stn --type vp=f32",
        "list storages --type vp=f32",
    ]));
    // A place is told in the text as it is read.
    fs::write(folder.path("parts/types.stn"), LIBRARY).unwrap();
    let told = folder.transcript(&["check mixed.stn --type vp=real"]);
    assert!(told.contains("parts/types.stn:2:"), "{told}");
}

/// A test computes with fields and parameters as the stencil does, on grids and over meshes.
#[test]
fn tests_compute_as_stencils_do() {
    let folder = Folder::new();
    let text = "type vp = f32
mesh tri { set node, cell; map cell.nodes -> node[3] }
stencil s { in u: vp; param p: f32; out x; out y: vp; x = u * 0.1; y = p * u }
stencil m over tri.cell { in u: vp on node; param p: f32; out x; x = p * u[nodes.1] * 0.1 }
test \"on a grid\" { grid(4, 4, 2)
    s { u = 0.1 * i; p = 0.3 }
    expect x == u * 0.1 && y == p * u && real(p) == real(f32(0.3)) && real(y * 0.1) == real(f32(y) * 0.1)
}
test \"over a mesh\" { mesh triangles(3, 2)
    m { u = 0.1 * i; p = 0.3 }
    expect x == p * u[nodes.1] * 0.1
}
";
    fs::write(folder.path("own.stn"), text).unwrap();
    for precision in ["f64", "f32"] {
        folder.done(&format!("test own.stn --precision {precision}"));
    }
}

/// What goes on from a checkpoint has the types that it was made with.
#[test]
fn checkpoints_know_the_types_of_the_call() {
    let folder = Folder::new();
    let text = "type vp = f32
program p { inout a: vp; param steps: int = 3; repeat steps { a = s(a) } }
stencil s { in a: vp; out b: vp; b = 0.9 * a }
";
    fs::write(folder.path("typed.stn"), text).unwrap();
    let run = "run typed.stn --grid 4x3x2 --device cpu";
    folder.done(&format!("{run} --draw --checkpoint half.npz"));
    folder.done(&format!("{run} --draw --checkpoint whole.npz --type vp=real"));
    folder.done(&format!("{run} --resume whole.npz --set steps=5 --type vp=real"));
    let told = folder.refused(&format!("{run} --resume half.npz --set steps=5 --type vp=real"));
    assert!(told.contains("in the checkpoint the type `vp` is f32, and here it is real"), "{told}");
    assert!(told.contains("give the same: --type vp=f32"), "{told}");
    let told = folder.refused(&format!("{run} --resume whole.npz --set steps=5"));
    assert!(told.contains("give the same: --type vp=real"), "{told}");
    // What has changed otherwise is another text.
    fs::write(folder.path("typed.stn"), text.replace("0.9", "0.8")).unwrap();
    let told = folder.refused(&format!("{run} --resume half.npz --set steps=5 --type vp=real"));
    assert!(told.contains("the text of the program has changed"), "{told}");
}

/// A file may have types alone, for others.
#[test]
fn types_are_imported() {
    let folder = Folder::new();
    fs::write(folder.path("types.stn"), "type vp = f32\n").unwrap();
    let text = "import \"types.stn\"\nstencil s { in a: vp; out b; b = a }\n";
    fs::write(folder.path("own.stn"), text).unwrap();
    folder.done("check --strict types.stn own.stn");
}
