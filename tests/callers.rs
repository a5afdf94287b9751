//! Callers of built stencils, and of the library: Fortran, C, C++, CMake. None of them needs a GPU, since the launcher for the CPU is
//! linked.

mod cmake;
mod fortran;
mod library;
mod misuse;
mod runs;

use std::path::Path;
use std::process::{Command, Output};

/// What a command says and how it ends, in a folder.
fn output(folder: &Path, program: &str, words: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).env("LC_ALL", "C");
    command.output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// What a command prints that has to succeed.
fn done(folder: &Path, program: &str, words: &[&str]) -> String {
    let output = output(folder, program, words);
    let [out, err] = [&output.stdout, &output.stderr].map(|own| String::from_utf8_lossy(own).into_owned());
    assert!(output.status.success(), "{program} {}\n{out}\n{err}", words.join(" "));
    out
}

/// Whether a program is there; if not, that is told as `./test` counts it.
fn is_there(program: &str, package: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: no {program} (apt-get install {package})");
    }
    is_there
}

/// How what is made for the CPU has to be compiled.
const EXACT: [&str; 5] = ["-std=c++17", "-O2", "-ffp-contract=off", "-frounding-math", "-fno-tree-slp-vectorize"];

/// Compiles the launcher of a stencil for the CPU, and its module.
fn compile_module(folder: &Path, name: &str, options: &[&str]) {
    let (launcher, module) = (format!("{name}.cpp"), format!("{name}.f90"));
    let object = format!("{name}_launcher.o");
    done(
        folder,
        "g++",
        &[
            &EXACT[..],
            &["-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused", "-c", &launcher, "-o", &object],
        ]
        .concat(),
    );
    let object = format!("{name}_module.o");
    let strict =
        ["-std=f2018", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fcheck=all", "-c", &module, "-o", &object];
    done(folder, "gfortran", &[&strict[..], options].concat());
}

/// Compiles a program that uses the module of a stencil.
fn link(folder: &Path, name: &str, main: &str, options: &[&str]) {
    let objects = [format!("{name}_module.o"), format!("{name}_launcher.o")];
    let words = ["-O1", "-g", "-fcheck=all", main, &objects[0], &objects[1], "-lstdc++", "-lm", "-o", "caller"];
    done(folder, "gfortran", &[options, &words].concat());
}
