//! What this machine has of all that stencils can be compiled, run and looked into with, and how to get the rest.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde::Serialize;

use crate::cuda::nccl::Nccl;
use crate::ranks::mpi;
use crate::{Error, cache, cuda, emulate, nvrtc, threads};

/// How long a tool may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is there and fits.
    Good,
    /// It is not there, or cannot be used.
    Missing,
    /// It is there, but does not fit the rest.
    Old,
}

/// One thing that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked for.
    pub what: &'static str,
    /// How it stands.
    pub state: State,
    /// Version and place, or what is wrong.
    pub detail: String,
    /// What mends it, where something is to be mended.
    pub remedy: Option<String>,
}

impl Finding {
    fn good(what: &'static str, detail: impl Into<String>) -> Self {
        Self { what, state: State::Good, detail: detail.into(), remedy: None }
    }

    fn missing(what: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what, state: State::Missing, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn failed(what: &'static str, error: Error) -> Self {
        Self { what, state: State::Missing, detail: error.message, remedy: error.help }
    }
}

/// Looks for everything. It never fails, and takes seconds at most: what does not answer is missing.
pub fn examine() -> Vec<Finding> {
    let mut findings = gpus();
    findings.push(run_time_compiler());
    findings.push(host_compiler());
    findings.extend(TOOLS.iter().map(Tool::examine));
    findings.push(several_processes());
    findings.push(between_gpus());
    findings.push(kernel_cache());
    findings
}

/// The driver and each GPU.
fn gpus() -> Vec<Finding> {
    let what = "CUDA driver";
    match cuda::availability().and_then(|count| Ok((count, cuda::driver_version()?))) {
        Ok((count, (major, minor))) => {
            let mut findings = vec![Finding::good(what, format!("for CUDA {major}.{minor}, GPUs: {count}"))];
            findings.extend(cuda::devices().into_iter().map(|gpu| {
                let gigabytes = gpu.memory as f64 / 1e9;
                let detail = format!("{}: {}, {}, {gigabytes:.0} GB", gpu.ordinal, gpu.name, gpu.arch);
                match nvrtc::find().and_then(|nvrtc| nvrtc.check_arch(&gpu.arch)) {
                    Err(error) if nvrtc::find().is_ok() => {
                        let detail = format!("{detail}; {}", error.message);
                        Finding { what: "GPU", state: State::Old, detail, remedy: error.help }
                    }
                    Ok(()) | Err(_) => Finding::good("GPU", detail),
                }
            }));
            findings
        }
        Err(error) => vec![Finding::failed(what, error)],
    }
}

/// NVRTC, and whether the driver takes what it makes.
fn run_time_compiler() -> Finding {
    let what = "NVRTC";
    let nvrtc = match nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(error) => return Finding::failed(what, error),
    };
    let (major, minor) = nvrtc.version;
    let detail = format!("{major}.{minor}, {}", nvrtc.path.display());
    match cuda::driver_version() {
        Ok(driver) if driver < nvrtc.version => Finding {
            what,
            state: State::Old,
            detail: format!("{detail}; it is newer than the driver, which is for CUDA {}.{}", driver.0, driver.1),
            remedy: Some(format!(
                "update the driver, or `pip install {}` and let {} name it",
                nvrtc::package(Some(driver)),
                nvrtc::VARIABLE
            )),
        },
        Ok(_) | Err(_) => Finding::good(what, detail),
    }
}

/// The C++ compiler, which the emulator needs.
fn host_compiler() -> Finding {
    let what = "C++ compiler";
    match emulate::Compiler::find() {
        Ok(compiler) => Finding::good(what, format!("{}, {}", compiler.version, compiler.program.display())),
        Err(error) => Finding::failed(what, error),
    }
}

/// MPI, by which several processes compute one program.
fn several_processes() -> Finding {
    let what = "MPI";
    match mpi::Compiler::find() {
        Ok(found) => Finding::good(what, format!("{}, {}", found.library(), found.program.display())),
        Err(error) => Finding {
            remedy: error.help.map(|help| format!("only for several processes: {help}")),
            ..Finding::missing(what, error.message, "")
        },
    }
}

/// NCCL, by which GPUs of several processes send each other what they need.
fn between_gpus() -> Finding {
    let what = "NCCL";
    match Nccl::find() {
        Ok(nccl) => {
            let [major, minor, patch] = nccl.numbers();
            Finding::good(what, format!("{major}.{minor}.{patch}, {}", nccl.place.display()))
        }
        Err(error) => Finding {
            remedy: error.help.map(|help| format!("only for GPUs of several processes: {help}")),
            ..Finding::missing(what, error.message, "")
        },
    }
}

/// The cache of kernels.
fn kernel_cache() -> Finding {
    let what = "kernel cache";
    match cache::usage() {
        Some(cache::Usage { path, refused: Some(Error { message, help, .. }), .. }) => {
            let detail = format!("{} is not used: {message}; kernels are compiled every time", path.display());
            Finding { what, state: State::Missing, detail, remedy: help }
        }
        Some(cache::Usage { path, entries, bytes, refused: None }) => {
            let megabytes = bytes as f64 / 1e6;
            Finding::good(what, format!("{}, entries: {entries}, {megabytes:.1} MB", path.display()))
        }
        None => Finding::missing(
            what,
            "turned off, or no folder for it: kernels are compiled every time",
            format!("unset {}, or set STENCILC_HOME to a folder", cache::VARIABLE),
        ),
    }
}

/// A program that is looked for.
struct Tool {
    what: &'static str,
    /// Its names; the first that answers is taken.
    names: &'static [&'static str],
    /// What stands in the line that tells the version.
    marker: &'static str,
    remedy: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool {
        what: "nvcc",
        names: &["nvcc"],
        marker: "release",
        remedy: "not needed to run stencils; a CUDA toolkit brings it (CUDA_HOME names one elsewhere)",
    },
    Tool {
        what: "Nsight Compute",
        names: &["ncu"],
        marker: "Version",
        remedy: "only for profiles: `apt install nsight-compute`, or a CUDA toolkit",
    },
    Tool {
        what: "compute-sanitizer",
        names: &["compute-sanitizer"],
        marker: "Version",
        remedy: "only for checks of memory accesses: a CUDA toolkit brings it",
    },
];

impl Tool {
    fn examine(&self) -> Finding {
        let mut silent = None;
        for path in self.names.iter().flat_map(|name| places(name)) {
            match version_line(&path, self.marker, PATIENCE) {
                Some(line) => return Finding::good(self.what, format!("{line}, {}", path.display())),
                None => silent = silent.or(Some(path)),
            }
        }
        let detail = match silent {
            Some(path) => format!("{} does not tell its version", path.display()),
            None => "not found".to_owned(),
        };
        Finding::missing(self.what, detail, self.remedy)
    }
}

/// The first file of a name on `PATH`, or else in a CUDA toolkit.
pub(crate) fn places(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkits = nvrtc::toolkits().into_iter().map(|toolkit| toolkit.join("bin"));
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).chain(toolkits);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The file that a program's name or path stands for, and the first line that it says of its version. `None` where there is
/// none, or where it does not answer in time.
pub(crate) fn program(name: &str) -> Option<(PathBuf, String)> {
    let path = if name.contains('/') { Some(PathBuf::from(name)) } else { places(name) }?;
    let version = version_line(&path, "", PATIENCE)?;
    Some((path, version))
}

/// What a program says of its version, in the line that has the marker or else in the first. `None` where it does not answer in
/// time.
pub(crate) fn version(program: &Path, marker: &str) -> Option<String> {
    version_line(program, marker, PATIENCE)
}

/// The line of `--version` that has the marker, or else the first. `None` when the program cannot be run, says
/// nothing, or takes longer than `patience`.
fn version_line(program: &Path, marker: &str, patience: Duration) -> Option<String> {
    /// More than any program says of its version; one that talks without end is not listened to.
    const LENGTH: u64 = 64 << 10;
    let mut command = Command::new(program);
    let command = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take();
    let (send, receive) = mpsc::channel();
    // A thread of its own, left to itself in the worst case: a process that the program has started may keep the pipe
    // open for ever.
    let reader = threads::spawn("reader", 256 << 10, move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(LENGTH).read_to_end(&mut bytes));
        // Nobody listens any more once the time is up.
        let _ = send.send(read.map(|_| bytes));
    });
    let bytes = reader.ok().and_then(|_| receive.recv_timeout(patience).ok()).flatten();
    // It has ended, or is to. Both fail only where there is nothing left to end.
    let _ = child.kill();
    let _ = child.wait();

    let text = bytes?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let line = std::iter::once(first).chain(lines).find(|line| line.contains(marker)).unwrap_or(first);
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// What a script answers that knows its folder, and whether it has left a file called `done` there.
    fn answer(script: &str, marker: &str, patience: Duration) -> (Option<String>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tool");
        let script = script.replace("DONE", &folder.path().join("done").display().to_string());
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let line = version_line(&path, marker, patience);
        (line, folder.path().join("done").exists())
    }

    #[test]
    fn everything_is_examined() {
        let findings = examine();
        for what in
            ["CUDA driver", "NVRTC", "C++ compiler", "nvcc", "Nsight Compute", "compute-sanitizer", "kernel cache"]
        {
            let finding = findings.iter().find(|finding| finding.what == what);
            let finding = finding.unwrap_or_else(|| panic!("{what} is not looked for"));
            assert!(finding.state == State::Good || finding.remedy.is_some(), "{finding:?}");
        }
        let json = serde_json::to_value(&findings[0]).unwrap();
        assert!(json["state"] == "good" || json["state"] == "missing", "{json}");
    }

    #[test]
    fn versions_are_told_by_their_line() {
        let said = |script: &str, marker: &str| answer(script, marker, Duration::MAX).0;
        assert_eq!(said("echo; echo a copyright; echo Version 3", "Version").as_deref(), Some("Version 3"));
        assert_eq!(said("echo g++ 12; echo more", "").as_deref(), Some("g++ 12"));
        assert_eq!(said("echo only", "Version").as_deref(), Some("only"));
        assert_eq!(said("exit 1", ""), None);
        assert_eq!(version_line(Path::new("/nowhere/tool"), "", PATIENCE), None);
    }

    #[test]
    fn tools_that_hang_are_left() {
        let wait = "sleep 600; touch DONE";
        for script in [wait.to_owned(), format!("({wait}) & exit 0"), format!("exec >&-; {wait}"), "yes".to_owned()] {
            let (_, has_ended) = answer(&script, "", Duration::from_millis(500));
            assert!(!has_ended, "{script}: it was waited for");
        }
    }
}
