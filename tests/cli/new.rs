//! `stencilc new`.

use crate::common::folder::Folder;
use std::fs;

#[test]
fn a_new_file_is_right_and_passes_its_tests() {
    let folder = Folder::new();
    fs::create_dir(folder.path("models")).unwrap();
    // The names that the file uses itself are fine, too.
    for (name, file) in [
        ("smooth", "smooth.stn"),
        ("mine.stn", "mine.stn"),
        ("models/laplacian", "models/laplacian.stn"),
        ("field", "field.stn"),
        ("double", "double.stn"),
    ] {
        assert!(folder.done(&format!("new {name}")).starts_with(&format!("wrote {file}\n")));
        assert!(folder.done(&format!("test {file}")).ends_with("in all: 2 passed\n"));
        folder.done(&format!("check {file} --strict"));
        folder.done(&format!("run {file} --grid 9x6x3 --device cpu"));
        folder.done(&format!("verify {file} --grid 9x6x3 --device cpu"));
    }
    assert_eq!(folder.json("new other --json")["files"], serde_json::json!(["other.stn"]));
}

#[test]
fn nothing_is_overwritten_and_names_are_checked() {
    let folder = Folder::new();
    let before = fs::read(folder.path("two.stn")).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "new two",
        "new folder",
        "new in",
        "new sqrt",
        "new nk",
        "new my-smoother",
        "new 2nd",
        "new smooth.txt",
        "new ?",
        "new models/",
        "new models/smooth",
        "new laplap",
        "new",
    ]));
    assert_eq!(fs::read(folder.path("two.stn")).unwrap(), before);
}
