//! Programs, and what runs over meshes, called from C, C++ and Fortran by `libstencilc`: the bits are those of the interpreter.

use super::library::{all_is_told, compiled, library, ran};
use super::{done, is_there};
use crate::common::folder::Folder;
use std::path::{Path, PathBuf};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

const SPREAD: &str = "2 of 100 steps: at most 24\n4 of 100 steps: at most 17.5\n100 of 100 steps: at most 8\n8.0000 8.0000\n\
    `heat` is no number, or has no value yet\nhelp: fields are arrays: stencilc_run_get\n";

#[test]
fn the_example_runs_in_c_and_in_cpp() {
    for compiler in [&["gcc", "-std=c99"][..], &["g++", "-x", "c++", "-std=c++17"]] {
        assert_eq!(ran(&root("examples/c/program.c"), compiler, &tempfile::tempdir().unwrap()), SPREAD, "{compiler:?}");
    }
}

/// What a program in Fortran prints that uses the module of the library; nothing if there is no gfortran.
fn ran_in_fortran(source: &str) -> Option<String> {
    if !is_there("gfortran", "gfortran") {
        return None;
    }
    let (folder, library) = (tempfile::tempdir().unwrap(), library());
    let [module, source] = ["c/fortran/stencilc.f90", source].map(root);
    let (link, rpath) = (format!("-L{}", library.display()), format!("-Wl,-rpath,{}", library.display()));
    let strict = ["-std=f2018", "-Wall", "-Wextra", "-Werror", "-fcheck=bounds,mem,pointer"];
    let words = [module.to_str().unwrap(), source.to_str().unwrap(), &link, "-lstencilc", &rpath, "-o", "caller"];
    done(folder.path(), "gfortran", &[&strict[..], &words].concat());
    Some(done(folder.path(), "./caller", &[]))
}

#[test]
fn the_example_runs_in_fortran() {
    let expected =
        "100 of 300 steps:  57.88\n   8.0000   8.0000 T\n2 `heat` has the shape [8], and the array for it [4]\n";
    assert!(ran_in_fortran("examples/fortran/program.f90").is_none_or(|said| said == expected));
}

#[test]
fn arrays_of_fortran_are_given_and_got() {
    let expected = "2 `n` has the shape [2\n1 `c` has the shape (1)\n2 program `p` has no field `d`\n";
    let said = ran_in_fortran("tests/callers/library/arrays.f90");
    assert!(said.as_ref().is_none_or(|said| said == expected), "{said:?}");
}

#[test]
fn a_forked_process_waits_for_nobody() {
    let said = ran(&root("tests/callers/library/forked.c"), &["gcc", "-std=gnu99"], &tempfile::tempdir().unwrap());
    assert_eq!(said, "all was told\n");
}

/// Each device and any number of parts leaves the same bits, those of the command line.
#[test]
fn every_device_leaves_the_same_bits() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x12 -o airfoil.npz");
    folder.done("run airfoil --program airfoil_flow --mesh airfoil.npz --set steps=6 --device cpu --out q=q.npy");
    let own = tempfile::tempdir().unwrap();
    compiled(&root("tests/callers/library/runs.c"), &["gcc", "-std=c99"], &own);
    let mesh = folder.path("airfoil.npz");
    let found = [("cpu", "1"), ("native", "1"), ("emulate", "1"), ("emulate", "2"), ("cpu", "3")]
        .map(|(device, parts)| done(own.path(), "./caller", &[mesh.to_str().unwrap(), device, parts]));
    assert!(found.iter().all(|own| *own == found[0]), "{found:?}");
    // What the program in C prints of bytes.
    let numbers =
        npyz::NpyFile::new(&std::fs::read(folder.path("q.npy")).unwrap()[..]).unwrap().into_vec::<f64>().unwrap();
    let bytes = numbers.iter().flat_map(|number| number.to_ne_bytes());
    let sum = bytes
        .fold(14_695_981_039_346_656_037, |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(1_099_511_628_211));
    assert!(found[0].starts_with(&format!("flow {sum:016x} ")), "{sum:016x} {}", found[0]);
}

/// Calls that are wrong: what is called, its status, and how its message begins.
const WRONG: &[(&str, &str, &str)] = &[
    ("stencilc_mesh_read(\"no_such_mesh.npz\", &mesh)", "INPUT", "there is no file `no_such_mesh.npz`"),
    ("stencilc_mesh_read(NULL, &mesh)", "CALL", "the name of the file is a null pointer"),
    ("stencilc_mesh_make(NULL, 2, 0, &mesh)", "CALL", "2 arrays are said to be there"),
    ("stencilc_mesh_make(parts, 0, 0, &mesh)", "INPUT", "no array is given, of which a mesh would be made"),
    ("stencilc_mesh_make(parts, 2, 0, NULL)", "CALL", "the place for the handle is a null pointer"),
    ("stencilc_mesh_make(parts, 2, 2, &mesh)", "CALL", "elements are counted from 2"),
    ("stencilc_mesh_make(parts, 1, 0, &mesh)", "INPUT", "nothing says how many cells there are"),
    ("stencilc_mesh_make(far, 2, 0, &mesh)", "INPUT", "`edge.cells` leads from edge 2, slot 1, to cell 5"),
    ("stencilc_mesh_make(small, 2, 0, &mesh)", "INPUT", "`edge.cells` leads from edge 3, slot 1, to cell 4"),
    ("stencilc_mesh_make(&unnamed, 1, 0, &mesh)", "INPUT", "the name of the array `cells` does not say what it is"),
    ("stencilc_mesh_make(&real, 1, 0, &mesh)", "INPUT", "`edge.cells -> cell` holds f64"),
    (
        "stencilc_mesh_size(ring, \"cells\", &elements)",
        "CALL",
        "the mesh has no set `cells`\\nhelp: did you mean `cell`?",
    ),
    ("stencilc_mesh_size(ring, \"cell\", NULL)", "CALL", "the place for the number is a null pointer"),
    (
        "stencilc_mesh_free((StencilcMesh*)spread)",
        "CALL",
        "the handle is one of a stencil, and one of a mesh is needed",
    ),
    ("stencilc_set_devices(spread, 0)", "CALL", "0 devices compute nothing"),
    (
        "stencilc_set_devices(spread, (size_t)-1)",
        "CALL",
        "nobody has 18446744073709551615 devices\\nhelp: give 1 to 1024",
    ),
    ("stencilc_set_options(spread, \"--access tile\")", "CALL", "options choose kernels on grids"),
    ("stencilc_set_real(spread, \"m\", 1)", "CALL", "program `spread` has no parameter `m`"),
    (
        "stencilc_bind(spread, &numbers, 1, &call)",
        "CALL",
        "`spread` is no stencil on a grid, and holds its arrays by itself",
    ),
    ("stencilc_run_begin(NULL, ring, &numbers, 1, &another)", "CALL", "the handle is null"),
    ("stencilc_run_begin(spread, NULL, &numbers, 1, &another)", "CALL", "`spread` runs over a mesh"),
    ("stencilc_run_begin(cool, ring, &plane, 1, &another)", "CALL", "`cool` runs on a grid"),
    ("stencilc_run_begin(cool, NULL, &plane, 1, &another)", "CALL", "the parameter `n` has no value"),
    (
        "stencilc_run_begin(spread, ring, NULL, 0, &another)",
        "CALL",
        "the input `heat` is not given, and `the mesh in memory` has no such field\\nhelp: give it: an array called `heat`",
    ),
    ("stencilc_run_begin(spread, ring, &numbers, 1, NULL)", "CALL", "the place for the handle is a null pointer"),
    ("stencilc_run_begin(spread, ring, &elsewhere, 1, &another)", "CALL", "program `spread` has no field `heet`"),
    ("stencilc_run_begin(spread, ring, &longer, 1, &another)", "INPUT", "`heat`"),
    ("stencilc_run_begin(spread, ring, twice, 2, &another)", "CALL", "there are two arrays called `heat`"),
    (
        "stencilc_run_begin(spread, ring, &huge, 1, &another)",
        "INPUT",
        "a copy of an array of shape [1125899906842624] takes",
    ),
    (
        "stencilc_run_begin(spread, ring, &repeated, 1, &another)",
        "INPUT",
        "a copy of an array of shape [4611686018427387904, ",
    ),
    ("stencilc_run_begin(spread, ring, &beside, 1, &another)", "CALL", "an array of f64 does not begin at a multiple"),
    ("stencilc_run_get(run, &beside)", "CALL", "an array of f64 does not begin at a multiple"),
    ("stencilc_run_put(run, &beside)", "CALL", "an array of f64 does not begin at a multiple"),
    ("stencilc_mesh_make(off, 1, 0, &mesh)", "CALL", "an array of int does not begin at a multiple"),
    ("stencilc_run_begin(spread, ring, &there, 1, &another)", "CALL", "`heat` is on cuda:0"),
    ("stencilc_run_begin(spread, ring, &empty, 1, &another)", "CALL", "the array of `heat` is a null pointer"),
    (
        "stencilc_run_resume(spread, ring, \"no_such_file.npz\", &another)",
        "INPUT",
        "cannot read the checkpoint `no_such_file.npz`",
    ),
    ("stencilc_run_step(NULL, 1, NULL)", "CALL", "the handle is null"),
    (
        "stencilc_run_step((StencilcRun*)ring, 1, NULL)",
        "CALL",
        "the handle is one of a mesh, and one of a run is needed",
    ),
    ("stencilc_run_progress(run, &done, NULL)", "CALL", "the place for the steps is a null pointer"),
    ("stencilc_run_get(run, NULL)", "CALL", "the array is a null pointer"),
    ("stencilc_run_get(run, &elsewhere)", "CALL", "`spread` has no field `heet`"),
    ("stencilc_run_get(run, &longer)", "CALL", "`heat` has the shape [5], and the array for it [6]"),
    ("stencilc_run_get(run, &single)", "CALL", "`heat` holds f64, and the array for it f32"),
    ("stencilc_run_get(run, &there)", "CALL", "the array for `heat` is in a GPU's memory"),
    ("stencilc_run_put(run, &longer)", "CALL", "`heat` has the shape [5], not [6]"),
    ("stencilc_run_put(run, &there)", "CALL", "`heat` is on cuda:0"),
    ("stencilc_run_number(run, \"heat\", &value)", "CALL", "`heat` is no number"),
    ("stencilc_run_number(run, \"top\", NULL)", "CALL", "the place for the number is a null pointer"),
    ("stencilc_run_number(run, NULL, &value)", "CALL", "the name of the number is a null pointer"),
    ("stencilc_run_save(run, \"/no/such/folder/x.npz\")", "INPUT", "cannot write"),
];

#[test]
fn wrong_calls_are_told() {
    all_is_told(include_str!("library/wrong_runs.c"), WRONG);
}
