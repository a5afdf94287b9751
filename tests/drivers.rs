//! Drivers and compilers that are old, broken or of another kind: made here by the C++ compiler, and each answered with
//! what is wrong and what to do.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compiles a library of this folder.
fn library(source: &str, options: &[&str], target: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let mut command = Command::new("c++");
    command.args(["-shared", "-fPIC", "-O0", "-w", "-o"]).arg(target).args(options).arg(source);
    let output = command.output().expect("these tests need a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    /// A machine with a driver and an NVRTC, each made with options of the C++ compiler.
    fn new(driver: &[&str], nvrtc: &[&str]) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        library("fake_libcuda.cpp", driver, &machine.path("libcuda.so"));
        library("fake_libnvrtc.cpp", nvrtc, &machine.path("libnvrtc.so.13"));
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a call says, results and messages; it ends by itself, never by a panic or a signal.
    fn says(&self, line: &str, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after", "1", "30", env!("CARGO_BIN_EXE_stencilc")])
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env("STENCILC_NVRTC", self.path("libnvrtc.so.13"))
            .env("STENCILC_HOME", self.path("home"))
            .env("STENCILC_CACHE", "off")
            .env_remove("CUDA_VISIBLE_DEVICES")
            .envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let ended = output.status.code().is_some_and(|status| status <= 3);
        assert!(ended && !said.contains("panicked"), "{line} {variables:?}: {:?}\n{said}", output.status);
        said
    }
}

/// A run on the GPU that is not there.
const RUN: &str = "run laplap --grid 12x12x4 --device cuda";

#[track_caller]
fn expect(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "\"{word}\" is missing in:\n{said}");
    }
}

#[test]
fn drivers_that_are_too_old() {
    for (driver, version, words) in [
        (&["-DBARE"][..], "11040", "it is for CUDA 11.4, and 12.0 is the oldest"),
        (&[], "11080", "it is for CUDA 11.8, and 12.0 is the oldest"),
        (&["-DBARE"], "12000", "it lacks cu"),
        (&["-DWITHOUT_LAUNCH"], "13000", "it lacks cuLaunchKernelEx"),
        (&["-DBARE", "-DcuDriverGetVersion=another"], "13000", "it does not tell its version"),
    ] {
        let machine = Machine::new(driver, &[]);
        for line in [RUN, "doctor"] {
            let said = machine.says(line, &[("FAKE_VERSION", version)]);
            expect(&said, &["the CUDA driver is too old", words, "install NVIDIA's driver, version 525 or newer"]);
        }
        // Unless a GPU is asked for, the CPU does it.
        expect(&machine.says("run laplap --grid 12x12x4", &[("FAKE_VERSION", version)]), &["on the cpu", words]);
    }
}

#[test]
fn drivers_that_do_not_work() {
    let machine = Machine::new(&[], &[]);
    for (variables, words) in [
        (("FAKE_INIT", "100"), &["there is a CUDA driver but no GPU", "nvidia-smi"][..]),
        (("FAKE_INIT", "34"), &["stand-in for linking", "stubs"]),
        (("FAKE_INIT", "999"), &["does not start: words of the driver (CUDA_ERROR_OF_A_TEST)", "restart"]),
        (("FAKE_INIT", "803"), &["does not start", "restart"]),
        (("FAKE_COUNT", "0"), &["there is no GPU on this machine", "CUDA_VISIBLE_DEVICES"]),
        (("FAKE_COUNT", "-1"), &["there is no GPU on this machine"]),
    ] {
        for line in [RUN, "doctor", "list devices"] {
            expect(&machine.says(line, &[variables]), &words[..1]);
        }
        expect(&machine.says(RUN, &[variables]), words);
    }
    // In prohibited mode, or when another program has it: the GPU is seen, and not to be had.
    let said = machine.says(RUN, &[("FAKE_RETAIN", "46")]);
    expect(&said, &["error: ", "cannot be opened", "another program may have it", "nvidia-smi"]);
    expect(&machine.says(RUN, &[("FAKE_ALLOC", "2")]), &["the GPU's memory does not suffice", "choose a smaller grid"]);
    expect(&machine.says("doctor", &[]), &["a GPU that is not there, sm_90"]);
    expect(&machine.says("run laplap --grid 12x12x4 --device cuda:7", &[]), &["there is no GPU number 7"]);
}

#[test]
fn a_library_that_is_no_driver() {
    let machine = Machine::new(&[], &[]);
    // Under the other name, too, so that a driver of this machine is not found behind it.
    for name in ["libcuda.so", "libcuda.so.1"] {
        std::fs::write(machine.path(name), "no library").unwrap();
    }
    expect(&machine.says(RUN, &[]), &["there is no CUDA driver library", "install NVIDIA's driver"]);
}

#[test]
fn compilers_of_other_versions() {
    let machine = Machine::new(&[], &[]);
    let build = "build laplap -o made --emit ptx";
    for (variables, words) in [
        (("FAKE_NVRTC_VERSION", "5"), &["cannot be used: it does not tell its version", "nvidia-cuda-nvrtc"][..]),
        (("FAKE_NVRTC_ARCH", "50"), &["does not compile for sm_90", "it knows sm_50"]),
        (("FAKE_NVRTC_COMPILE", "1"), &["not enough memory to compile"]),
        (("FAKE_NVRTC_COMPILE", "7"), &["lacks libnvrtc-builtins.so.13.0"]),
        (("FAKE_NVRTC_COMPILE", "99"), &["failed on laplap.cu with status 99"]),
    ] {
        expect(&machine.says(build, &[variables]), words);
    }
    let newer = [("FAKE_VERSION", "12020"), ("FAKE_NVRTC_MAJOR", "14")];
    expect(&machine.says("doctor", &newer), &["newer than the driver, which is for CUDA 12.2", "nvrtc-cu12==12.2.*"]);

    let old = Machine::new(&[], &["-DBARE"]);
    for line in [build, "doctor"] {
        expect(&old.says(line, &[]), &["cannot be used", "it lacks nvrtcGetNumSupportedArchs", "nvidia-cuda-nvrtc"]);
    }
    std::fs::write(old.path("libnvrtc.so.13"), "no library").unwrap();
    expect(&old.says(build, &[]), &["cannot be used", "libnvrtc.so.13: "]);
}
