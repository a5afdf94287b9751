//! What `build` writes was compiled, or it says that it was not.

use crate::common::folder::{Folder, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn build_says_who_compiled_what_it_writes() {
    let folder = Folder::new();
    let said = folder.done("build laplap -o made");
    let told = "laplap.h; kernel compiled by the C++ compiler alone, as for the emulator, header and launcher by the C++ compiler";
    assert!(said.contains(told), "{said}");
    for call in ["build laplap -o made --json", "build laplap --emit cuda -o made --json"] {
        let said = folder.json(call);
        assert_eq!((&said["compiled"], &said["host_compiled"]), (&"c++".into(), &"c++".into()), "{call}");
    }
    let over = "build airfoil --stencil res_calc -o made";
    assert!(folder.done(over).contains(".cu, compiled by the C++ compiler alone"));
    assert_eq!(folder.json(&format!("{over} --json"))["compiled"], "c++");
    let without = |line: &str| folder.command(line).env("CXX", "no-such-compiler").output().unwrap();
    let output = without("build laplap -o made");
    assert!(text(&output.stdout).contains("laplap.h; kernel not compiled, header and launcher not compiled"));
    assert!(text(&output.stderr).contains("what is written was not compiled"));
    let output = without("build laplap -o made --json");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said["compiled"].is_null() && said.get("compiled").is_some(), "{said}");
}

#[test]
fn what_no_compiler_takes_is_not_written() {
    let folder = Folder::new();
    let compiler = folder.path("refuses");
    // It takes what is asked of any compiler, and no kernels.
    let script = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo refuses 1.0; exit 0; fi\n\
        case \"$*\" in *nothing.cpp*) exec c++ \"$@\";; esac\necho no >&2\nexit 1\n";
    fs::write(&compiler, script).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    for call in ["build laplap", "build laplap --emit cuda", "build airfoil --stencil res_calc"] {
        let output = folder.command(&format!("{call} -o made")).env("CXX", &compiler).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{call}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("does not compile the kernels"), "{call}");
        let written = fs::read_dir(folder.path("made")).map_or(0, Iterator::count);
        assert_eq!(written, 0, "{call}");
    }
}
