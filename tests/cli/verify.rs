//! `stencilc verify` of programs: what is tried, what is said, how it ends.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;

/// A stencil and two programs, of which one sets a field to a number.
const BOTH: &str = "
    program steps { inout a; in c on (i, j); param n: int = 3; boundary { i: periodic, j: periodic }
        repeat n { let b = blur(a); a = scaled(b, c) } }
    program flat { out a; in c on (i, j); a = same(c) }
    stencil blur { in a; out b; b = 0.5*a[i-1] + 0.25*(a[j+2] + a[j-1]) }
    stencil scaled { in b; in c on (i, j); out a; a = c * b }
    stencil same { in c on (i, j); out a; a = 0*c + 1 }
";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("both.stn"), BOTH).unwrap();
    folder
}

/// The statuses of the plans of each case, with the plans that have them.
fn statuses(case: &Value) -> Vec<(&str, &str)> {
    let plans = case["plans"].as_array().unwrap().iter();
    plans.map(|plan| (plan["plan"].as_str().unwrap(), plan["status"].as_str().unwrap())).collect()
}

#[test]
fn every_plan_of_a_program_is_compared() {
    let folder = folder();
    let call = "verify both.stn --program steps --precision f32 --grid 128x8x2 --steps 1,3 --json";
    let report = folder.json(&format!("{call} --device emulate"));
    let case = &report["programs"][0];
    assert_eq!(
        (&report["cases"], &case["program"], &case["times"]),
        (&Value::Array(vec![]), &"steps".into(), &7.into())
    );
    let statuses = statuses(case);
    assert!(statuses.iter().all(|(_, status)| *status == "equal"), "{statuses:?}");
    let of = |fuse: &str| statuses.iter().filter(|(plan, _)| plan.starts_with(&format!("--fuse {fuse} "))).count();
    let found = ["separate", "merged", "recomputed", "streamed", "tiled", "persistent", "resident"].map(of);
    // Each storage and strategy; all shapes of rows.
    assert!(found[0] >= 12 && found[1..].iter().all(|&plans| plans > 1), "{found:?}");
    assert_eq!(report["totals"]["equal"], statuses.len());
    // Both stages of 16x8x2 cells.
    assert_eq!(case["plans"][0]["cells"], 128 * 8 * 2);
    // Without a device nothing is compared, and that is said.
    let skipped = folder.json(&format!("{call} --device cpu --fuse merged"));
    assert_eq!((&skipped["totals"]["skipped"], &skipped["totals"]["equal"]), (&4.into(), &0.into()));
}

#[test]
fn plans_that_are_refused_are_counted_with_reasons() {
    let folder = folder();
    let call = "verify both.stn --program steps --precision f64 --grid 9x8x2 --device emulate --steps 2,3 --times 5";
    let report = folder.json(&format!("{call} --fuse resident,recomputed,persistent --json"));
    let case = &report["programs"][0];
    let refused = case["refused"].as_array().unwrap();
    assert_eq!((refused.len(), &refused[0]["plans"]), (1, &6.into()), "{refused:?}");
    assert!(refused[0]["reason"].as_str().unwrap().contains("a plane of 9x8 cells finds no room"), "{refused:?}");
    assert!(statuses(case).iter().all(|(_, status)| *status == "equal"));
    // Where all are refused, nothing is known of the program.
    let refused = folder.run(&format!("{call} --fuse resident"));
    assert_eq!(refused.status.code(), Some(3));
    assert!(text(&refused.stderr).contains("nothing was compared: 6 combinations, all refused"));
    let said = text(&refused.stdout);
    assert!(said.contains("steps f64 9x8x2, 5 times: 6 refused\nrefused 6: --fuse resident"), "{said}");
    // Of a program that is named, all reasons are told; of all that a file has, how many there are.
    let fewer = call.replace("--steps 2,3", "--steps 2");
    let named = folder.run(&format!("{fewer} --storage regular --access idxvar"));
    assert!(text(&named.stdout).contains("\nrefused 6: --fuse resident"), "{}", text(&named.stdout));
    let all = folder.run(&format!("{} --storage regular --access idxvar", fewer.replace("--program steps ", "")));
    assert!(
        text(&all.stdout).contains(" refused") && !text(&all.stdout).contains("\nrefused"),
        "{}",
        text(&all.stdout)
    );
}

#[test]
fn a_file_with_stencils_and_programs_is_verified_as_a_whole() {
    let folder = folder();
    let call = "verify both.stn --storage regular --access idxvar --precision f64 --grid 7x6x2 --device emulate";
    let output = folder.run(&format!("{call} --fuse separate"));
    // What is the same everywhere proves nothing.
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
    let only = folder.json(&format!("{call} --stencil blur --json"));
    assert_eq!((only["cases"].as_array().unwrap().len(), &only["programs"]), (1, &Value::Array(vec![])));
}

#[test]
fn wrong_calls_of_verify() {
    insta::assert_snapshot!(folder().transcript(&[
        "verify both.stn --program step",
        "verify two.stn --program one",
        "verify both.stn --program steps --stencil blur",
        "verify two.stn --fuse merged",
        "verify both.stn --program steps --fuse fast",
        "verify both.stn --program steps --steps 17",
        "verify both.stn --stencil steps",
        "verify both.stn --program steps --fuse recomputed --steps 4",
        "verify both.stn --program steps --fuse streamed --storage compressed",
        "verify both.stn --stencil blur --access tile --storage compressed --precision f64 --grid 9x8x2 --device emulate",
        "verify both.stn --program steps --times 0",
        "verify both.stn --program steps --grid 1x1x1 --device emulate",
        "verify both.stn --program steps --set m=3 --device emulate",
    ]));
}

#[test]
fn calls_whose_results_nobody_reads_do_no_harm() {
    let folder = folder();
    let dead = BOTH.replace("let b = blur(a);", "let nobody = scaled(a, c); let b = blur(a);");
    fs::write(folder.path("dead.stn"), dead).unwrap();
    let call = "verify dead.stn --program steps --precision f64 --grid 128x8x2 --device emulate --storage regular \
                --access idxvar --steps 1,2 --json";
    let report = folder.json(call);
    let statuses = statuses(&report["programs"][0]);
    for fuse in ["separate", "merged", "recomputed", "streamed", "tiled", "persistent", "resident"] {
        assert!(statuses.iter().any(|(plan, _)| plan.starts_with(&format!("--fuse {fuse} "))), "{fuse}: {statuses:?}");
    }
    assert!(statuses.iter().all(|(_, status)| *status == "equal"), "{statuses:?}");
}

/// Programs that are cut into parts are compared with what the interpreter leaves of the whole.
#[test]
fn parts_are_compared_with_the_whole() {
    let folder = folder();
    let call = "verify both.stn --precision f64 --grid 32x11x2 --fuse separate,merged,streamed --steps 1 --times 3 --gpus 3 --device emulate";
    let report = folder.json(&format!("{call} --program steps --json"));
    let case = &report["programs"][0];
    assert_eq!((&case["gpus"], &report["totals"]["failed"]), (&3.into(), &0.into()));
    let statuses = statuses(case);
    let equal = |fuse: &str| {
        statuses
            .iter()
            .filter(|(plan, status)| plan.starts_with(&format!("--fuse {fuse} ")) && *status == "equal")
            .count()
    };
    assert!(equal("separate") >= 12 && equal("merged") > 1 && equal("streamed") == 0, "{statuses:?}");
    assert!(!case["refused"].as_array().unwrap().is_empty(), "{case}");
    // Stencils are left out, and a program in more parts than it has rows is refused, which is told.
    let told = folder.run(&format!("{call} --storage regular --access naive"));
    let said = text(&told.stdout);
    assert!(said.contains("steps f64 32x11x2, 3 times, in 3 parts: ") && !said.contains("blur f64"), "{said}");
    let thin = folder.run(&call.replace("--gpus 3", "--gpus 11 --program steps"));
    assert!(text(&thin.stdout).contains("rows"), "{}", text(&thin.stdout));
    let wrong = folder.refused("verify both.stn --stencil blur --gpus 2 --device emulate");
    assert!(wrong.contains("--gpus is for programs, and there is none to verify"), "{wrong}");
}

#[test]
fn parts_of_a_mesh_are_compared_with_the_whole() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o airfoil.npz");
    let call = "verify airfoil --mesh airfoil.npz --precision f64 --times 1 --order none,random --gpus 2 --device emulate --json";
    let report = folder.json(call);
    let case = &report["programs_over_meshes"][0];
    let statuses: Vec<&str> =
        case["combinations"].as_array().unwrap().iter().map(|own| own["status"].as_str().unwrap()).collect();
    assert_eq!(case["gpus"], 2);
    assert!(statuses.len() > 8 && statuses.iter().all(|own| *own == "equal"), "{statuses:?}");
}
