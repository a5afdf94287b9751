//! `stencilc run` of a program: output on the way, checkpoints, kills, plans, and wrong calls.

use crate::common::folder::{Folder, text};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

const RUN: &str = "run diffusion4 --grid 24x16x2 --draw --device cpu";

/// A simulation that takes a while.
const SLOW: &str = "run diffusion4 --grid 96x96x4 --draw --device cpu --set steps=4000";

#[test]
fn outputs_are_written_on_the_way() {
    let folder = Folder::new();
    let said = folder
        .done(&format!("{RUN} --set steps=10 --every 4 --out phi=phi_{{step:03}}.npy --plot phi=phi_{{step}}.png"));
    assert!(said.contains("10 steps"), "{said}");
    for name in ["phi_000.npy", "phi_004.npy", "phi_008.npy", "phi_010.npy", "phi_0.png", "phi_8.png", "phi_10.png"] {
        assert!(folder.path(name).is_file(), "{name}");
    }
    // What is there after four steps is what four steps alone leave.
    folder.done(&format!("{RUN} --set steps=4 --out phi=four.npy"));
    assert_eq!(fs::read(folder.path("phi_004.npy")).unwrap(), fs::read(folder.path("four.npy")).unwrap());
}

#[test]
fn a_run_that_is_killed_goes_on_with_the_same_bits() {
    let folder = Folder::new();
    folder.done(&format!("{SLOW} --out phi=whole.npy"));
    let whole = fs::read(folder.path("whole.npy")).unwrap();
    let mut stopped = 0;
    for wait in [5, 40, 150] {
        let line = format!("{SLOW} --every 50 --checkpoint way.npz --out phi=on.npy");
        let mut child = folder.command(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Once there is a checkpoint, whenever.
        while !folder.path("way.npz").is_file() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(wait));
        stopped += usize::from(child.kill().is_ok());
        child.wait().unwrap();
        folder.done(&format!("{SLOW} --resume way.npz --out phi=resumed.npy"));
        assert_eq!(fs::read(folder.path("resumed.npy")).unwrap(), whole, "killed after {wait} ms");
        fs::remove_file(folder.path("way.npz")).unwrap();
        // Nothing is left of what was being written.
        let names = fs::read_dir(folder.path(".")).unwrap().map(|file| file.unwrap().file_name());
        let strays: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".tmp")).collect();
        assert!(strays.len() <= 1, "{strays:?}");
    }
    assert!(stopped > 0);
}

#[test]
fn every_plan_leaves_the_same_bytes() {
    let folder = Folder::new();
    let run = "run diffusion4 --grid 128x8x2 --draw --set steps=7";
    folder.done(&format!("{run} --device cpu --out phi=cpu.npy"));
    let expected = fs::read(folder.path("cpu.npy")).unwrap();
    for plan in [
        "",
        "--fuse separate --storage compressed",
        "--fuse merged",
        "--fuse recomputed --steps 2",
        "--fuse streamed --steps 3",
        "--fuse tiled",
        "--fuse tiled --steps 3",
        "--fuse persistent",
        "--fuse resident --resident 1",
    ] {
        folder.done(&format!("{run} --device emulate {plan} --out phi=kernel.npy"));
        assert_eq!(fs::read(folder.path("kernel.npy")).unwrap(), expected, "{plan}");
    }
}

#[test]
fn parts_leave_the_bytes_of_the_whole() {
    let folder = Folder::new();
    let run = "run heat --program heat_walls --grid 24x17x3 --draw --set steps=12";
    folder.done(&format!("{run} --device cpu --out t=whole.npy"));
    let whole = fs::read(folder.path("whole.npy")).unwrap();
    for how in ["cpu --gpus 2", "cpu --gpus 5", "emulate --gpus 3", "native --gpus 2 --fuse recomputed", "cpu --gpus 1"]
    {
        folder.done(&format!("{run} --device {how} --out t=parts.npy"));
        assert_eq!(fs::read(folder.path("parts.npy")).unwrap(), whole, "{how}");
    }
    // What two parts began three go on with.
    folder.done("run heat --program heat_walls --grid 24x17x3 --draw --set steps=12 --device cpu --gpus 2 --every 5 --checkpoint way_{step}.npz");
    folder.done(&format!("{run} --device cpu --gpus 3 --resume way_5.npz --out t=resumed.npy").replace(" --draw", ""));
    assert_eq!(fs::read(folder.path("resumed.npy")).unwrap(), whole);
}

#[test]
fn what_cannot_be_cut_is_told() {
    let folder = Folder::new();
    let heat = "run heat --program heat_walls --draw --set steps=2";
    folder.done("mesh make icosahedral --size R2B0 -o sphere.npz");
    insta::assert_snapshot!(folder.transcript(&[
        &format!("{heat} --grid 24x4x3 --device cpu --gpus 5"),
        &format!("{heat} --grid 24x9x3 --device cpu --gpus 0"),
        &format!("{heat} --grid 24x9x3 --device cpu --gpus many"),
        "run heat --program heat_periodic --grid 128x16x3 --draw --set steps=2 --device emulate --gpus 2 --fuse streamed",
        "run laplap --grid 24x9x3 --device cpu --gpus 2",
        "run icosahedral --program diffusion --mesh sphere.npz --levels 2 --draw --set dt=1 --set steps=1 --device cpu --gpus 121",
        "run icosahedral --stencil gradient --mesh sphere.npz --levels 2 --device cpu --gpus 2",
    ]));
}

#[test]
fn an_animation_has_a_frame_at_the_start_on_the_way_and_at_the_end() {
    let folder = Folder::new();
    let animate = "--animate phi=phi.png --level 1";
    folder.done(&format!("{RUN} --set steps=10 --every 4 {animate} --fps 5 --checkpoint way.npz"));
    assert_eq!(folder.frames("phi.png"), (4, 5), "after 0, 4, 8 and 10 steps");
    folder.done(&format!("{RUN} --set steps=8 --every 4 {animate}"));
    assert_eq!(folder.frames("phi.png"), (3, 10), "the end is no frame of its own");
    folder.done(&format!("{RUN} --set steps=0 --every 4 {animate}"));
    assert_eq!(folder.frames("phi.png"), (1, 10));
    folder.done(&format!("{RUN} --set steps=18 --every 4 {animate} --resume way.npz"));
    assert_eq!(folder.frames("phi.png"), (3, 10), "after 12, 16 and 18 steps: what is left after a checkpoint");
    folder.done(&format!("run diffusion4 --grid 128x8x2 --draw --device emulate --set steps=10 --every 4 {animate}"));
    assert_eq!(folder.frames("phi.png"), (4, 10), "by a kernel that computes several steps");
}

#[test]
fn cells_that_stand_in_no_rows_are_animated_at_their_places() {
    let folder = Folder::new();
    folder.done("grid make quadtree --size 12x10 --depth 2 --refine circle -o quad.npz");
    let text = "program fade { inout a; param n: int = 4; repeat n { a = faded(a) } }\n\
                stencil faded { in a; out b; b = 0.5*a[i-1] + 0.25*a[j+1] }\n";
    fs::write(folder.path("fade.stn"), text).unwrap();
    folder.done("run fade.stn --draw --grid quad.npz --levels 2 --device cpu --every 2 --animate a=a.png");
    assert_eq!(folder.frames("a.png"), (3, 10));
}

#[test]
fn wrong_animations() {
    let folder = Folder::new();
    let animate = |more: &str| format!("{RUN} {more}");
    let lines = [
        "run laplap --grid 8x8x1 --device cpu --animate res=res.png".to_owned(),
        "run laplap --grid 8x8x1 --device cpu --gif res=res.gif".to_owned(),
        animate("--animate phi=phi.png"),
        animate("--every 5 --animate phi=phi.gif"),
        animate("--every 5 --animate phi=phi_{step}.png"),
        animate("--every 5 --animate psi=psi.png"),
        animate("--every 5 --animate phi=phi.png --plot phi=phi.png"),
        animate("--every 5 --animate phi=phi.png --level 2"),
        animate("--every 5 --animate phi=nowhere/phi.png"),
        animate("--every 5 --animate phi=phi.png --fps 0"),
        animate("--every 5 --fps 20"),
        animate("--every 1 --animate phi=phi.png --set steps=2000000000"),
    ];
    insta::assert_snapshot!(folder.transcript(&lines.each_ref().map(String::as_str)));
    assert!(!folder.path("phi.png").exists());
}

#[test]
fn wrong_calls_of_programs() {
    let folder = Folder::new();
    fs::write(
        folder.path("walls.stn"),
        "program walls { inout a; param n: int = 3; boundary { i: copy }; repeat n { a = blur(a) } }\n\
         stencil blur { in a; out b; b = 0.5*a[i-1] + 0.5*a[i+1] }\n",
    )
    .unwrap();
    folder.done(&format!("{RUN} --set steps=3 --checkpoint way.npz"));
    fs::write(folder.path("torn.npz"), &fs::read(folder.path("way.npz")).unwrap()[..500]).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "run laplap --grid 8x8x1 --every 3",
        "run laplap --grid 8x8x1 --fuse merged",
        "run diffusion4 --program smooth --grid 8x8x1",
        "run laplap --program smooth --grid 8x8x1",
        "run diffusion4 --grid 8x8x1 --draw --set stepz=3",
        "run diffusion4 --grid 8x8x1 --draw --set steps=-1 --device cpu",
        "run diffusion4 --grid 8x1x1 --draw --device cpu",
        "run diffusion4 --grid 8x8x1 --draw --device cpu --at 1,1,0",
        "run diffusion4 --grid 8x8x1 --runs 3",
        "run diffusion4 --grid 8x8x1 --every 0",
        "run diffusion4 --grid 8x8x1 --every 2 --out phi=phi_{stp}.npy",
        "run diffusion4 --resume way.npz --in phi=phi.npy",
        "run diffusion4 --grid 8x8x1 --checkpoint way.zip",
        "run diffusion4 --grid 8x8x1 --resume nowhere.npz",
        "run diffusion4 --grid 8x8x1 --resume torn.npz",
        "run diffusion4 --grid 8x8x1 --resume phi.npy",
        "run diffusion4 --resume way.npz --precision f32 --device cpu",
        "run diffusion4 --grid 24x16x3 --resume way.npz --device cpu",
        "run diffusion4 --resume way.npz --set alpha=0.01 --device cpu",
        "run diffusion4 --resume way.npz --set steps=2 --device cpu",
        "run walls.stn --resume way.npz --device cpu",
        "run walls.stn --grid 8x8x1 --draw --device emulate --fuse streamed",
        "run walls.stn --grid 8x8x1 --draw --device emulate --fuse tiled",
        "run walls.stn --grid 8x8x1 --draw --device emulate --fuse recomputed --steps 2",
        "run walls.stn --grid 8x8x1 --draw --device emulate --fuse resident",
        "run walls.stn --grid 8x8x1 --draw --device emulate --fuse merged --steps 2",
        "run diffusion4 --grid 8x8x1 --draw --device emulate --fuse streamed --storage compressed",
        "run diffusion4 --grid 60x8x1 --draw --device emulate --fuse resident",
        "run diffusion4 --grid 8x8x1 --draw --device emulate --fuse fast",
        "run diffusion4 --grid 8x8x1 --draw --device emulate --fields aos",
    ]));
    let output = folder.run("run diffusion4 --resume way.npz --set steps=5 --device cpu --json");
    let report: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!((&report["steps"]["total"], &report["steps"]["done"]), (&5.into(), &2.into()));
}

/// What they conserve and how fast their waves are, their own tests say.
#[test]
fn the_examples_flow_as_they_should() {
    let folder = Folder::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let others = [("taylor_green/navier_stokes_19p", 4), ("taylor_green/grad_div_19p", 5), ("waves/tilted_rock", 6)];
    for (name, tests) in [("taylor_green/navier_stokes", 3)].into_iter().chain(others) {
        let tested = folder.run(&format!("test {examples}/{name}.stn"));
        assert!(text(&tested.stdout).ends_with(&format!("in all: {tests} passed\n")), "{}", text(&tested.stderr));
    }
    let path = format!("{examples}/taylor_green/navier_stokes.stn");
    let plans = "--fuse merged --steps 1 --times 2 --access tile --storage regular --grid 9x8x10";
    let verified = folder.run(&format!("verify {path} --program navier_stokes {plans}"));
    let said = text(&verified.stdout);
    assert!(said.contains("in all: 2 equal"), "{said}{}", text(&verified.stderr));
    let plans = "--fuse walked --times 2 --precision f32 --grid 9x8x10";
    let verified = folder.run(&format!("verify {path} --program navier_stokes {plans}"));
    let said = text(&verified.stdout);
    assert!(said.ends_with("in all: 11 equal\n"), "{said}{}", text(&verified.stderr));
}

/// The head of what `explain` says: how a program is cut, and what its parts bring.
#[test]
fn what_parts_bring_is_told() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x12 -o airfoil.npz");
    folder.done("mesh make icosahedral --size R2B1 -o sphere.npz");
    let calls = [
        "explain diffusion4 --program diffusion4 --grid 64x61x8 --gpus 4",
        "explain shallow_water --program shallow_water --grid 32x30x1 --gpus 2 --precision f32",
        "explain heat --program heat_periodic --grid 24x9x3 --gpus 3 --fuse recomputed --steps 2",
        "explain airfoil --program airfoil_flow --mesh airfoil.npz --gpus 3",
        "explain icosahedral --program diffusion --mesh sphere.npz --levels 4 --gpus 2",
    ];
    let head = |call: &&str| {
        let said = folder.done(call);
        let lines = said.lines().skip_while(|line| !line.starts_with("in ") || !line.contains(" parts of "));
        let part: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        format!("$ stencilc {call}\n{}\n", part.join("\n"))
    };
    let told: Vec<String> = calls.iter().map(head).collect();
    let wrong = folder.transcript(&[
        "explain heat --program heat_walls --grid 24x3x3 --gpus 4",
        "explain heat --program heat_walls --grid 24x9x3 --gpus 1",
        "explain heat --stencil heat --grid 24x9x3 --gpus 2",
        "explain airfoil --program airfoil_flow --gpus 2",
    ]);
    insta::assert_snapshot!(format!("{}\n{wrong}", told.join("\n")));
    let facts = folder.json(&format!("{} --json", calls[0]));
    let parts = &facts["parts"];
    assert_eq!([&parts["number"], &parts["least"], &parts["most"], &parts["exchanges"]], [4, 15, 16, 1]);
    // Two rows of 64 columns and eight levels from each side.
    assert_eq!(parts["bytes"], 2 * 2 * 64 * 8 * 8);
}
