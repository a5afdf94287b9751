//! `stencilc build --program`: the kernels of a program's plan.

use crate::common::folder::Folder;
use std::fs;

#[test]
fn each_plan_of_a_program_shows_its_kernels_and_how_to_make_them_again() {
    let folder = Folder::new();
    let plans = [
        ("separate", 2),
        ("merged", 2),
        ("recomputed", 2),
        ("streamed", 1),
        ("tiled", 1),
        ("persistent", 1),
        ("resident", 1),
    ];
    for (plan, count) in plans {
        let call = format!("build heat --program heat_periodic --grid 128x24x3 --fuse {plan}");
        let cuda = folder.done(&format!("{call} --emit cuda"));
        assert_eq!(cuda.matches("extern \"C\" __global__").count(), count, "{plan}: {cuda}");
        let made = cuda.lines().find_map(|line| line.strip_prefix(" * Made by stencilc ")).unwrap();
        assert!(made.starts_with("build heat --program heat_periodic --fuse "), "{made}");
        assert_eq!(folder.done(&format!("{made} --emit cuda")), cuda, "{made}");
        let kernels = folder.done(&format!("{call} --emit kernel"));
        assert_eq!(kernels.lines().filter(|line| line.starts_with("kernel ")).count(), count, "{plan}: {kernels}");
    }
}

#[test]
fn kernels_over_a_mesh_say_how_to_make_them_again() {
    let folder = Folder::new();
    let cuda =
        folder.done("build airfoil --stencil res_calc --strategy atomic --precision f32 --contract off --emit cuda");
    let made = cuda.lines().find_map(|line| line.strip_prefix(" * Made by stencilc ")).unwrap();
    assert_eq!(folder.done(&format!("{made} --emit cuda")), cuda, "{made}");
}

#[test]
fn what_is_explained_of_a_program_over_a_mesh_is_what_build_makes() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    for options in
        ["", "--fuse separate --strategy atomic", "--mesh m.npz --strategy tiled --fuse separate --order none"]
    {
        let told = folder.json(&format!("explain airfoil --program airfoil_flow {options} --json"));
        let kernels = |call: &serde_json::Value| call["kernels"].as_array().unwrap().clone();
        let kernels: Vec<_> = told["calls"].as_array().unwrap().iter().flat_map(kernels).collect();
        let made = told["made"].as_str().unwrap().trim_start_matches("Made by stencilc ").to_owned();
        let cuda = folder.done(&format!("{made} --emit cuda"));
        assert_eq!(cuda.matches("extern \"C\" __global__").count(), kernels.len(), "{options}: {cuda}");
        assert!(cuda.contains(told["made"].as_str().unwrap()), "{options}");
        for kernel in &kernels {
            assert!(cuda.contains(&format!("{}(", kernel["name"].as_str().unwrap())), "{options}: {kernel}");
            assert_eq!(options.contains("--mesh"), kernel["on_mesh"].is_object(), "{options}: {kernel}");
        }
    }
}

#[test]
fn kernels_of_one_name_are_files_of_their_own() {
    let folder = Folder::new();
    let twice = "stencil smooth { in a; out b; b = 0.5 * (a[i-1] + a[i+1]) }
program twice { inout u = 0..1
boundary { i: periodic }
repeat 2 { let v = smooth(u)
u = smooth(v) } }";
    fs::write(folder.path("twice.stn"), twice).unwrap();
    let said = folder.done("build twice.stn --program twice --grid 16x8x2 --fuse separate -o made --json");
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    let files: Vec<&str> = told["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert_eq!(files.len(), told["kernels"].as_array().unwrap().len());
    assert!(files.iter().any(|file| file.ends_with("smooth_kernel-2.cu")), "{files:?}");
    for (number, file) in files.iter().enumerate() {
        assert!(folder.path(file).is_file() && !files[..number].contains(file), "{files:?}");
    }
}

#[test]
fn wrong_calls_say_what_to_give() {
    let folder = Folder::new();
    for (call, fragment) in [
        ("build heat --program heat_periodic", "give it: --grid NIxNJxNK"),
        ("build heat --program heat_perodic --grid 8x8x8", "did you mean `heat_periodic`?"),
        ("build heat --stencil conduct --fuse merged", "add --program NAME"),
        ("build heat --program heat_walls --grid 128x24x3 --fuse resident", "not periodic"),
        ("build heat --program heat_periodic --grid 128x24x3 --fuse merged --resident 1", "add --fuse resident"),
        ("build heat --program heat_periodic --grid 128x24x3 --mesh a.npz", "--mesh is for stencils over a mesh"),
        ("build heat --program heat_periodic --grid 128x24x3 --emit cubin", "--emit ptx shows them all"),
        ("build airfoil --program airfoil_flow --grid 8x8x8", "mesh"),
    ] {
        let said = folder.refused(call);
        assert!(said.contains(fragment), "{call}: {said}");
    }
}
