//! The operators of a dynamical core that come along, against NumPy, to the last bit.

use crate::common::process::PROGRAM;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn operators_have_the_bits_of_numpy() {
    // Arithmetic of several precisions follows other rules before NumPy 2.
    let has_numpy = Command::new("python3")
        .args(["-c", "import sys, numpy; sys.exit(int(numpy.__version__.split('.')[0]) < 2)"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_numpy {
        println!("not run: there is no NumPy of version 2 or later");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/dynamical_core.py");
    let run = Command::new("python3").arg("-B").arg(script).arg(PROGRAM).output().unwrap();
    let [told, wrong] = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(run.status.success(), "{told}\n{wrong}");
    // On two meshes, in three precisions.
    assert_eq!(told.matches("ppm_fluxes flux: equal").count(), 6, "{told}");
}
