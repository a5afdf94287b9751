//! `find_package(stencilc)` in CMake: libraries of stencils for C, C++ and Fortran, which are built again where a text has changed.

use super::{done, is_there, output};
use crate::common::folder::{Folder, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A folder with the package, and its path; nothing if there is no CMake.
fn package() -> Option<(Folder, String)> {
    if !is_there("cmake", "cmake") || !is_there("gfortran", "gfortran") {
        return None;
    }
    let folder = Folder::new();
    let said = folder.done("cmake");
    let at = said.trim_end().to_owned();
    assert!(Path::new(&at).join("stencilcConfig.cmake").is_file(), "{at}");
    Some((folder, format!("-Dstencilc_DIR={at}")))
}

/// Configures and builds the project of a folder.
fn built(folder: &Path, package: &str) -> String {
    done(folder, "cmake", &["-S", ".", "-B", "build", package]) + &done(folder, "cmake", &["--build", "build"])
}

const PROJECT: &str = r#"cmake_minimum_required(VERSION 3.19)
project(callers LANGUAGES C CXX Fortran)
find_package(stencilc 0.1 REQUIRED)
stencilc_add_library(double "a folder/double.stn" OPTIONS --precision f64)
stencilc_add_library(laplap laplap)
add_executable(from_c main.c)
target_link_libraries(from_c PRIVATE double)
add_executable(from_fortran main.f90)
target_link_libraries(from_fortran PRIVATE double laplap)
"#;

const C: &str = r#"#include "twice.h"
#include <stdio.h>
#include <string.h>
int main(void)
{
    double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {0};
    twice_args args;
    int status;
    memset(&args, 0, sizeof args);
    args.a = a;
    args.b = b;
    args.ni = 3;
    args.nj = 2;
    args.nk = 1;
    args.row = 3;
    args.plane = 6;
    status = twice_launch(&args, NULL);
    printf("%d %g %s\n", status, b[5], twice_message(status));
    args.ni = 0;
    printf("%s\n", twice_message(twice_in_queue(&args, NULL)));
    return 0;
}
"#;

const FORTRAN: &str = "program main
  use twice_stencil, only: twice
  use laplap_stencil, only: laplap
  implicit none
  double precision :: a(9, 8, 2), b(9, 8, 2)
  a = 1.5d0
  b = 0
  call twice(a, b)
  print '(f5.2)', b(9, 8, 2)
  call laplap(a, b)
  print '(f5.2)', b(5, 4, 1)
end program
";

#[test]
fn libraries_are_built_again_where_a_text_has_changed() {
    let Some((folder, package)) = package() else { return };
    let at = folder.path("project");
    fs::create_dir_all(at.join("a folder")).unwrap();
    let stencil = "import \"factor.stn\"\nstencil twice { in a; out b; b = factor * a }\n";
    for (name, text) in [
        ("CMakeLists.txt", PROJECT),
        ("main.c", C),
        ("main.f90", FORTRAN),
        ("a folder/double.stn", stencil),
        ("a folder/factor.stn", "const factor = 2\n"),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    built(&at, &package);
    let ran = |program: &str| done(&at, &format!("./build/{program}"), &[]);
    let said = ran("from_c");
    assert!(said.starts_with("0 12 no error\nnothing can be computed: the grid has too few"), "{said}");
    assert_eq!(ran("from_fortran"), " 3.00\n 0.00\n");
    // Nothing is built where nothing has changed.
    assert!(!built(&at, &package).contains("stencilc build"));
    // What is imported counts, too. CMake looks at times of whole seconds on some file systems.
    let change = |name: &str, text: &str| {
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
        fs::write(at.join(name), text).unwrap();
        fs::File::options().write(true).open(at.join(name)).unwrap().set_modified(later).unwrap();
    };
    change("a folder/factor.stn", "const factor = 5\n");
    built(&at, &package);
    assert!(ran("from_c").starts_with("0 30 "), "{}", ran("from_c"));
    change("a folder/double.stn", "stencil twice { in a; out b; b = 3 * a }\n");
    built(&at, &package);
    assert!(ran("from_c").starts_with("0 18 "), "{}", ran("from_c"));
    assert_eq!(ran("from_fortran"), " 4.50\n 0.00\n");
}

#[test]
fn what_cannot_be_built_is_told_by_cmake() {
    let Some((folder, package)) = package() else { return };
    fs::write(folder.path("one.stn"), "stencil one { in a; out b; b = a }").unwrap();
    for (number, (languages, call, because)) in [
        ("CXX", "t no-such.stn", "there is no file"),
        ("CXX", "t broken.stn", "unknown name"),
        ("CXX", "t two.stn", "has several stencils, or none on a grid"),
        ("CXX", "t two.stn STENCIL three", "has no stencil `three` on a grid"),
        ("CXX", "t airfoil", "has several stencils, or none on a grid"),
        ("CXX", "t no_such_stencil", "no stencil of that name comes along"),
        ("C", "t one.stn", "needs the language CXX"),
        ("CXX", "t one.stn DEVICE cuda", "needs the language CUDA"),
        ("CXX", "t one.stn DEVICE gpu", "DEVICE is cuda or cpu, not `gpu`"),
        ("CXX", "t one.stn --access zloop", "is none of STENCIL, DEVICE and OPTIONS"),
        ("CXX", "t one.stn OPTIONS --host", "says --host by itself"),
    ]
    .into_iter()
    .enumerate()
    {
        let at = folder.path(&format!("project{number}"));
        fs::create_dir(&at).unwrap();
        for name in ["one.stn", "two.stn", "broken.stn"] {
            fs::copy(folder.path(name), at.join(name)).unwrap();
        }
        let project = format!(
            "cmake_minimum_required(VERSION 3.19)\nproject(p LANGUAGES {languages})\nfind_package(stencilc REQUIRED)\nstencilc_add_library({call})\n"
        );
        fs::write(at.join("CMakeLists.txt"), project).unwrap();
        let output = output(&at, "cmake", &["-S", ".", "-B", "build", &package]);
        let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!output.status.success() && said.contains(because), "{call}\n{said}");
    }
}

#[test]
fn the_package_is_written_where_it_is_asked_for() {
    let folder = Folder::new();
    let said = folder.done("cmake -o cmake");
    assert_eq!(said.trim_end(), folder.path("cmake").canonicalize().unwrap().to_str().unwrap());
    let version = fs::read_to_string(folder.path("cmake/stencilcConfigVersion.cmake")).unwrap();
    assert!(version.contains(&format!("set(PACKAGE_VERSION \"{}\")", env!("CARGO_PKG_VERSION"))));
    assert!(folder.json("cmake -o cmake --json")["folder"].as_str().unwrap().ends_with("/cmake"));
    assert!(folder.refused("cmake -o text.npy").contains("is a file"));
    assert!(folder.refused("cmake --type x=f32").contains("reads none"));
    // CMake executes what is in the folder that is kept, so that others may not write there.
    let kept = PathBuf::from(folder.done("cmake").trim_end());
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o777)).unwrap();
    let told = folder.refused("cmake");
    assert!(told.contains(kept.to_str().unwrap()), "{told}");
}

#[test]
fn the_examples_are_built_and_run() {
    let Some((folder, package)) = package() else { return };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let (build, examples) = (folder.path("build"), examples.to_str().unwrap().to_owned());
    let build = build.to_str().unwrap();
    done(&folder.path("."), "cmake", &["-S", &examples, "-B", build, &package]);
    done(&folder.path("."), "cmake", &["--build", build]);
    for (program, cells) in [("laplap_cpp", "0 of 216601 cells differ"), ("laplap_fortran", "0 of 229900 cells differ")]
    {
        let said = done(&folder.path("build"), &format!("./{program}"), &[]);
        assert!(said.starts_with(cells), "{program}: {said}");
    }
}
