//! `stencilc tune` of programs, and what `run` makes of it, on the emulator: everything but that times mean something.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;

/// Few plans on a small grid.
const TUNE: &str = "tune diffusion4 --device emulate --grid 32x8x2 --runs 2 --times 4 --steps 1,2 --budget 1000000";
const FEW: &str = "--fuse merged,recomputed,resident";

const RUN: &str = "run diffusion4 --device emulate --grid 32x8x2 --draw --set steps=5";

/// What `run` says of what was tuned; nothing if it took the usual plan.
fn taken(folder: &Folder, call: &str) -> Option<String> {
    let output = folder.run(call);
    assert!(output.status.success(), "{call}: {}", text(&output.stderr));
    let said = text(&output.stderr);
    said.lines().find(|line| line.contains("tuned")).map(str::to_owned)
}

#[test]
fn the_plan_that_was_tuned_is_taken_and_said() {
    let folder = Folder::new();
    let report = folder.json(&format!("{TUNE} {FEW} --json"));
    let case = &report["cases"][0];
    // Two strategies merged, and by one and two steps, and what one has without; no plane of this grid lies in registers.
    assert_eq!((&case["complete"], &case["failed"]), (&true.into(), &Value::Array(vec![])));
    let tried = case["tried"].as_u64().unwrap() + case["hopeless"].as_u64().unwrap();
    assert_eq!((tried, case["among"].as_u64()), (7, Some(13)), "{case}");
    let plan = case["fastest"][0]["plan"].as_str().unwrap();
    let kept = fs::read_to_string(case["kept"].as_str().unwrap()).unwrap();
    assert!(kept.contains(plan) && kept.contains("\"stencil\": \"diffusion4\""), "{kept}");

    let said = taken(&folder, RUN).expect("it is taken");
    assert_eq!(said, format!("note: tuned for emulator and 32x8x2: {plan} (--untuned takes the usual plan)"));
    assert!(taken(&folder, &RUN.replace("32x8x2", "36x8x2")).is_some());
    // It leaves the interpreter's bits.
    folder.done(&format!("{RUN} --out phi=tuned.npy"));
    folder.done(&format!("{} --out phi=cpu.npy", RUN.replace("emulate", "cpu")));
    assert_eq!(fs::read(folder.path("tuned.npy")).unwrap(), fs::read(folder.path("cpu.npy")).unwrap());
    // Whoever chooses a plan gets it, and so does another grid, precision or device, or another text.
    for other in [
        format!("{RUN} --untuned"),
        format!("{RUN} --fuse separate"),
        format!("{RUN} --access idxvar"),
        format!("{RUN} --precision f32"),
        RUN.replace("32x8x2", "128x8x2"),
        RUN.replace("emulate", "cpu"),
    ] {
        assert_eq!(taken(&folder, &other), None, "{other}");
    }
    fs::write(folder.path("own.stn"), format!("{}// changed\n", include_str!("../../stencils/diffusion4.stn")))
        .unwrap();
    assert_eq!(taken(&folder, &RUN.replace("diffusion4", "own.stn")), None);
    // What nobody knows any more keeps nobody from computing.
    let path = case["kept"].as_str().unwrap();
    fs::write(path, kept.replace(plan, "--fuse merged --by magic")).unwrap();
    assert!(
        taken(&folder, RUN).is_some_and(|said| said.contains("what was tuned is not taken: this program has no plan"))
    );
    fs::write(path, &kept[..kept.len() / 2]).unwrap();
    assert!(taken(&folder, RUN).is_some_and(|said| said.contains("is damaged")));
}

#[test]
fn without_a_budget_the_usual_plan_is_measured_and_what_a_longer_one_takes_is_said() {
    let folder = Folder::new();
    let (usual, is_done) = {
        let output = folder.run(&TUNE.replace("--budget 1000000", "--budget 0"));
        (text(&output.stdout), output.status.success())
    };
    assert!(is_done && usual.contains("tried 1 of "), "{usual}");
    assert!(usual.contains("the fastest: --fuse streamed --steps 3"), "{usual}");
    assert!(usual.contains("more at least were worth a try: --budget "), "{usual}");
}

#[test]
fn wrong_calls_about_programs() {
    let folder = Folder::new();
    fs::write(
        folder.path("flat.stn"),
        "program flat { inout a; repeat 2 { a = one(a) } }\nstencil one { in a; out b; b = 0*a + 1 }\n\
         stencil two { in a; out b; b = 2*a }\n",
    )
    .unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "tune diffusion4 --device cpu",
        "tune diffusion4 --program diffusion --device emulate",
        "tune diffusion4 --device emulate --fuse fast",
        "tune laplap --device emulate --fuse merged",
        "tune flat.stn --device emulate --grid 4x4x2 --fuse merged",
        "tune diffusion4 --device emulate --grid 6x1x1 --fuse merged",
        "tune diffusion4 --device emulate --grid 9x8x2 --fuse resident",
        "explain flat.stn",
        "explain flat.stn --stencil flat",
        "build flat.stn",
        "build diffusion4 --stencil diffusion4",
        "grid info missing.npz --stencil flat",
    ]));
    let explained = folder.run("explain diffusion4");
    assert!(explained.status.success());
    let note = "without --program, `explain` is about a stencil: this is `diffuse`; for the program, give --program diffusion4";
    assert!(text(&explained.stderr).contains(note), "{}", text(&explained.stderr));
}
