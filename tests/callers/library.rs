//! `libstencilc`: stencils that C and C++ compile when they run. Its header is taken as C99 and as C++17, and every wrong call is an error
//! with a message.

use super::done;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The folder where the library lies, which is built if it is not there yet, in the profile of the tests.
pub fn library() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With Python's module, which is built anyway: what both need is compiled once then, with the features that tests have it with.
    let packages = ["build", "--quiet", "-p", "stencilc-c", "-p", "stencilc-python"];
    let output = Command::new(cargo).current_dir(root).args(packages).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // This executable is in the folder `deps` beside it.
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    for name in ["libstencilc.so", "libstencilc.a"] {
        assert!(folder.join(name).is_file(), "{}", folder.join(name).display());
    }
    folder
}

/// What a program in C or C++ prints, which uses the library.
pub fn ran(source: &Path, compiler: &[&str], folder: &TempDir) -> String {
    compiled(source, compiler, folder);
    done(folder.path(), "./caller", &[])
}

/// Compiles a program in C or C++ that uses the library, as `caller`.
pub fn compiled(source: &Path, compiler: &[&str], folder: &TempDir) {
    let library = library();
    let [include, beside] = ["c/include", "tests/callers/library"]
        .map(|folder| format!("-I{}", Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).display()));
    let link = format!("-L{}", library.display());
    let rpath = format!("-Wl,-rpath,{}", library.display());
    let strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-missing-field-initializers"];
    let words = [&include, &beside, source.to_str().unwrap(), &link, "-lstencilc", &rpath, "-o", "caller"];
    done(folder.path(), compiler[0], &[&compiler[1..], &strict, &words].concat());
}

/// Ends with a program that makes these calls, each of which is wrong, and finds the status and the beginning of the message that each should
/// have; `text` has a line for them.
pub fn all_is_told(text: &str, wrong: &[(&str, &str, &str)]) {
    let mut checks = String::new();
    for (call, status, message) in wrong {
        let message = message.replace('"', "\\\"");
        checks += &format!("    check({call}, STENCILC_STATUS_{status}, \"{message}\", __LINE__);\n");
    }
    assert!(text.contains("    /* CHECKS */\n"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.c");
    std::fs::write(&file, text.replace("    /* CHECKS */\n", &checks)).unwrap();
    assert_eq!(ran(&file, &["gcc", "-std=c99"], &folder), "all was told\n");
}

#[test]
fn the_example_computes_in_c_and_in_cpp() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/c/library.c");
    let expected = "smooth\n  in height\n  out smoothed\ncells 1 to 8 along i: 8 0 8\n\
        stencil `smooth` has no parameter `alfa`\nhelp: did you mean `alpha`?\n";
    for compiler in [&["gcc", "-std=c99"][..], &["gcc", "-std=c17"], &["g++", "-x", "c++", "-std=c++17"]] {
        assert_eq!(ran(&source, compiler, &tempfile::tempdir().unwrap()), expected, "{compiler:?}");
    }
}

/// Calls that are wrong: what is called, its status, and how its message begins.
const WRONG: &[(&str, &str, &str)] = &[
    ("stencilc_compile(NULL, \"x\", NULL, &other)", "CALL", "the source is a null pointer"),
    ("stencilc_compile(\"stencil s { in a; out b; b = c }\", \"x\", NULL, &other)", "INPUT", "error: unknown name `c`"),
    ("stencilc_compile(\"\\xff\", \"x\", NULL, &other)", "INPUT", "the source is no text in UTF-8"),
    ("stencilc_compile(two, \"x\", NULL, &other)", "CALL", "`x` has several stencils and programs: one, two"),
    ("stencilc_compile(two, \"x\", \"three\", &other)", "CALL", "`x` has no stencil or program `three`"),
    ("stencilc_compile(two, \"x\", \"one\", NULL)", "CALL", "the place for the handle is a null pointer"),
    ("stencilc_load(\"no_such_stencil\", NULL, &other)", "INPUT", "there is no file `no_such_stencil`"),
    ("stencilc_load(\"airfoil\", \"res_calk\", &other)", "CALL", "`airfoil` has no stencil or program `res_calk`"),
    ("stencilc_load(NULL, NULL, &other)", "CALL", "the name of the file is a null pointer"),
    ("stencilc_set_real(NULL, \"alpha\", 1)", "CALL", "the handle is null"),
    (
        "stencilc_set_real((StencilcStencil*)&other, \"alpha\", 1)",
        "CALL",
        "the handle is none of a stencil that is there",
    ),
    ("stencilc_set_real((StencilcStencil*)call, \"alpha\", 1)", "CALL", "the handle is one of a call"),
    ("stencilc_set_real(stencil, NULL, 1)", "CALL", "the name of the parameter is a null pointer"),
    ("stencilc_set_real(stencil, \"alpha\", 1.0 / zero)", "CALL", "inf is no value for the parameter `alpha`"),
    ("stencilc_set_int(stencil, \"alpha\", 1)", "CALL", "the parameter `alpha` is real"),
    ("stencilc_set_bool(stencil, \"beta\", 1)", "CALL", "stencil `s` has no parameter `beta`"),
    ("stencilc_set_precision(stencil, STENCILC_I32)", "CALL", "3 is no precision"),
    ("stencilc_set_device(stencil, \"gpu\")", "CALL", "there is no device `gpu`"),
    ("stencilc_set_device(stencil, \"cuda:99999999999\")", "CALL", "there is no device `cuda:99999999999`"),
    ("stencilc_set_options(stencil, \"--axess tile\")", "CALL", "unexpected argument '--axess'"),
    ("stencilc_field(stencil, 9, &field)", "CALL", "there is no field 9: there are 2"),
    ("stencilc_field(stencil, 0, NULL)", "CALL", "the place for the field is a null pointer"),
    ("stencilc_field(stencil, 0, &unsized_field)", "CALL", "the `size` of a StencilcField is 0"),
    ("stencilc_parameter(stencil, 9, &parameter)", "CALL", "there is no parameter 9"),
    ("stencilc_bind(stencil, NULL, 2, &another)", "CALL", "2 arrays are said to be there"),
    ("stencilc_bind(stencil, arrays, 1, &another)", "CALL", "no array is lent for what is written: `b`"),
    ("stencilc_bind(stencil, arrays, 2, NULL)", "CALL", "the place for the handle is a null pointer"),
    ("stencilc_bind(stencil, changed(CHANGED_SIZE), 2, &another)", "CALL", "the `size` of a StencilcArray is 8"),
    ("stencilc_bind(stencil, changed(CHANGED_NAME), 2, &another)", "CALL", "stencil `s` has no field `c`"),
    ("stencilc_bind(stencil, changed(CHANGED_NO_NAME), 2, &another)", "CALL", "the name of array 1 is a null pointer"),
    ("stencilc_bind(stencil, changed(CHANGED_DATA), 2, &another)", "CALL", "the array of `b` is a null pointer"),
    ("stencilc_bind(stencil, changed(CHANGED_ELEMENT), 2, &another)", "CALL", "the elements of `b` have the type 77"),
    ("stencilc_bind(stencil, changed(CHANGED_SINGLE), 2, &another)", "CALL", "`b` is an array of f64, not of f32"),
    ("stencilc_bind(stencil, changed(CHANGED_USE), 2, &another)", "CALL", "`b` is lent for 9, which is no use"),
    ("stencilc_bind(stencil, changed(CHANGED_UPDATE), 2, &another)", "CALL", "`b` is not read and written"),
    ("stencilc_bind(stencil, changed(CHANGED_READ), 2, &another)", "CALL", "stencil `s` has no input `b`"),
    ("stencilc_bind(stencil, changed(CHANGED_AXES), 2, &another)", "CALL", "the array of `b` is said to have 5 axes"),
    (
        "stencilc_bind(stencil, changed(CHANGED_SHAPE), 2, &another)",
        "CALL",
        "the array of `b` has the shape [2, -7, 9]",
    ),
    (
        "stencilc_bind(stencil, changed(CHANGED_STRIDES), 2, &another)",
        "CALL",
        "the array of `b` has the strides [63, -9, 1]",
    ),
    (
        "stencilc_bind(stencil, changed(CHANGED_OVERLAP), 2, &another)",
        "CALL",
        "the array that `b` is written to overlaps that of `a`",
    ),
    (
        "stencilc_bind(stencil, changed(CHANGED_DEVICE), 2, &another)",
        "CALL",
        "`a` is in the host's memory, and `b` on cuda:0",
    ),
    (
        "stencilc_bind(stencil, changed(CHANGED_NOWHERE), 2, &another)",
        "CALL",
        "the array of `b` is said to lie on device -7",
    ),
    ("stencilc_lend(call, changed(CHANGED_ROWS), 2)", "CALL", "levels of `b` are 70 elements apart, those of `a` 63"),
    ("stencilc_bind(valueless, arrays, 2, &another)", "CALL", "the parameter `alpha` has no value"),
    ("stencilc_lend(NULL, arrays, 2)", "CALL", "the handle is null"),
    ("stencilc_run(NULL)", "CALL", "the handle is null"),
    ("stencilc_run((StencilcCall*)stencil)", "CALL", "the handle is one of a stencil"),
    ("stencilc_region(call, NULL, NULL)", "CALL", "the place for the cells is a null pointer"),
    ("stencilc_free((StencilcStencil*)call)", "CALL", "the handle is one of a call"),
    ("stencilc_free_call((StencilcCall*)stencil)", "CALL", "the handle is one of a stencil"),
];

#[test]
fn wrong_calls_are_told() {
    all_is_told(include_str!("library/wrong.c"), WRONG);
}

#[test]
fn every_device_changes_arrays_in_place() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/callers/library/ways.c");
    let expected: String = ["cpu", "native", "emulate"]
        .iter()
        .flat_map(|device| [0, 1].map(|which| format!("{device} {which}: 0 wrong\n")))
        .collect();
    assert_eq!(ran(&source, &["gcc", "-std=c99", "-ffp-contract=off"], &tempfile::tempdir().unwrap()), expected);
}

/// Any thread may use the library, and a call that was freed while it runs ends well.
#[test]
fn threads_share_calls() {
    let source = include_str!("library/threads.cpp");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.cpp");
    std::fs::write(&file, source).unwrap();
    assert_eq!(ran(&file, &["g++", "-std=c++17", "-pthread"], &folder), "all are right\n");
}
