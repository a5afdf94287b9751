//! Hardware counters of kernels, read by NVIDIA's Nsight Compute (`ncu`). It starts a program of ours that launches the kernel,
//! launches it as often again as there are passes to count in, and writes a table.

pub mod metrics;
pub mod report;

use crate::bench::log::Record;
use crate::bench::rows::Row;
use crate::doctor;
use crate::error::{Error, Result};
use crate::files::Scratch;
use metrics::{Counters, METRICS, Metric};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The variable that names the program.
pub const VARIABLE: &str = "STENCILC_NCU";

/// Where packages put it, a folder a version.
const PACKAGES: &str = "/opt/nvidia/nsight-compute";

/// How to come by it.
const REMEDY: &str = "it is part of NVIDIA's CUDA toolkit, and a package by itself: `apt install nsight-compute` where NVIDIA's \
                      repository is known, or developer.nvidia.com/nsight-compute; --ncu PATH or the variable STENCILC_NCU names one";

/// How often it is looked whether the program has ended.
const GLANCE: Duration = Duration::from_millis(20);

/// How long a program that is told to end may take to do so: it ends what it has started.
const GRACE: Duration = Duration::from_secs(3);

/// The most that is read of what it says.
const LENGTH: u64 = 16 << 20;

/// A kernel that was counted in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: String,
    /// A hash of all that it depends on.
    pub key: String,
    /// The kernel and its times, which were taken without the profiler.
    pub row: Row,
    /// The version of Nsight Compute.
    pub profiler: String,
    /// What was counted in one launch.
    pub counters: Counters,
}

/// What every profile begins with. A new meaning of what is in it takes a new number.
pub const FORMAT: &str = "stencilc profile 1";

impl Record for Profile {
    const FORMAT: &'static str = FORMAT;

    fn format(&self) -> &str {
        &self.format
    }

    fn key(&self) -> &str {
        &self.key
    }
}

impl Profile {
    /// The key of a kernel's profile.
    pub fn key_of(row: &Row, ncu: &Ncu) -> String {
        let metrics = METRICS.map(|metric| metric.ncu).join(",");
        crate::bench::hash(&[FORMAT.as_bytes(), row.key.as_bytes(), ncu.version.as_bytes(), metrics.as_bytes()])
    }

    /// A profile of a kernel.
    pub fn new(row: Row, ncu: &Ncu, counters: Counters) -> Self {
        let key = Self::key_of(&row, ncu);
        Self { format: FORMAT.to_owned(), key, row, profiler: ncu.version.clone(), counters }
    }
}

/// Nsight Compute's command line.
#[derive(Clone, Debug, Serialize)]
pub struct Ncu {
    /// The program's file.
    pub program: PathBuf,
    /// What it says of its version.
    pub version: String,
}

/// A program that launches a kernel.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// Its file.
    pub program: PathBuf,
    /// What it is given.
    pub arguments: Vec<String>,
    /// The kernel's name.
    pub kernel: String,
}

/// What a program said, and how it ended.
struct Said {
    status: ExitStatus,
    /// What it wrote to the file that it was given.
    log: String,
    /// What it, and the program that it started, said besides.
    besides: String,
}

impl Ncu {
    /// Finds it: at the path given, where the variable says, on `PATH`, in a CUDA toolkit, or where packages put it.
    ///
    /// # Errors
    /// There is none, or it does not tell its version.
    pub fn find(given: Option<&Path>) -> Result<Self> {
        let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let (path, origin) = match (given, variable) {
            (Some(path), _) => (Some(path.to_owned()), ", which --ncu names,"),
            (None, Some(path)) => (Some(path), ", which the variable STENCILC_NCU names,"),
            (None, None) => (doctor::places("ncu").or_else(packaged), ""),
        };
        let Some(path) = path else {
            return Err(Error::input(
                "there is no Nsight Compute (`ncu`) on this machine, which reads hardware counters",
            )
            .help(REMEDY));
        };
        // A name alone is looked for on `PATH`.
        let is_name = path.components().count() == 1 && !path.is_file();
        let path = if is_name { path.to_str().and_then(doctor::places).unwrap_or(path) } else { path };
        let version = doctor::version(&path, "Version").filter(|line| line.contains("Version"));
        let version = version.ok_or_else(|| {
            let shown = path.display();
            let what = if path.is_file() { "does not tell a version, as Nsight Compute does" } else { "is not there" };
            Error::input(format!("`{shown}`{origin} {what}")).help(REMEDY)
        })?;
        let version = version.strip_prefix("Version").unwrap_or(&version).trim().to_owned();
        Ok(Self { program: path, version })
    }

    /// What is counted in the first launch of a kernel, with caches emptied before each pass; nothing if there was no launch.
    /// `metrics` are those to count; one that this GPU or this version lacks is taken out of them.
    ///
    /// # Errors
    /// Counters may not be read, which is the machine's fault; or this kernel's could not be, which is a check that failed.
    pub fn count(
        &self,
        launcher: &Launcher,
        metrics: &mut Vec<Metric>,
        patience: Duration,
    ) -> Result<Option<Counters>> {
        loop {
            let said = self.run(launcher, metrics, patience)?;
            if let Some(counters) = report::counters(&said.log, &launcher.kernel)? {
                return match counters.values().any(|counter| counter.value.is_some()) {
                    true => Ok(Some(counters)),
                    false => Err(Error::check("Nsight Compute has counted nothing: every counter is n/a")),
                };
            }
            // One that is lacking keeps all others from being counted.
            let all = format!("{}\n{}", said.log, said.besides);
            let errors = report::errors(&all);
            let known = |metric: &Metric| {
                let base = metric.ncu.split('.').next().unwrap_or_default();
                !errors.iter().any(|error| error.contains(base))
            };
            let left: Vec<Metric> = metrics.iter().copied().filter(known).collect();
            if left.is_empty() || left.len() == metrics.len() {
                return refusal(&said, &errors).map_or(Ok(None), Err);
            }
            *metrics = left;
        }
    }

    fn run(&self, launcher: &Launcher, metrics: &[Metric], patience: Duration) -> Result<Said> {
        let cannot = |error: std::io::Error| Error::input(format!("{} cannot be run: {error}", self.program.display()));
        let folder = Scratch::new()?;
        let (log, besides) = (folder.path().join("log"), folder.path().join("besides"));
        let names: Vec<&str> = metrics.iter().map(|metric| metric.ncu).collect();
        let output = File::create(&besides).map_err(cannot)?;
        let mut command = Command::new(&self.program);
        command.args(["--csv", "--page", "raw", "--print-units", "base", "--metrics", &names.join(",")]);
        // Nobody else's clocks are changed; the time is not taken from here.
        command.args(["--clock-control", "none", "--cache-control", "all"]);
        command.args(["--kernel-name", &launcher.kernel, "--launch-count", "1", "--log-file"]).arg(&log);
        command.arg(&launcher.program).args(&launcher.arguments);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.stderr(output.try_clone().map_err(cannot)?).stdout(output);
        let mut child = command.spawn().map_err(cannot)?;
        let status = ended(&mut child, patience).map_err(cannot)?;
        let Some(status) = status else {
            let seconds = patience.as_secs();
            return Err(Error::check(format!("Nsight Compute has not ended within {seconds} s"))
                .help("--timeout gives it longer; a smaller --grid takes less"));
        };
        Ok(Said { status, log: text(&log), besides: text(&besides) })
    }
}

/// Waits for a program to end, so long; one that does not is ended.
fn ended(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let wait = |child: &mut Child, patience: Duration| {
        let start = Instant::now();
        loop {
            match child.try_wait()? {
                None if start.elapsed() < patience => std::thread::sleep(GLANCE),
                status => return Ok::<_, std::io::Error>(status),
            }
        }
    };
    if let Some(status) = wait(child, patience)? {
        return Ok(Some(status));
    }
    // Asked to end, it takes with it what it has started.
    if let Ok(id) = i32::try_from(child.id()) {
        // SAFETY: the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(id, libc::SIGTERM) };
    }
    if wait(child, GRACE)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(None)
}

/// What stands in a file, if it is there.
fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LENGTH).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

/// The newest that packages have brought.
fn packaged() -> Option<PathBuf> {
    let versions = std::fs::read_dir(PACKAGES).ok()?.flatten().map(|version| version.path().join("ncu"));
    let number = |path: &PathBuf| -> Vec<u32> {
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        name.split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    versions.filter(|path| path.is_file()).max_by_key(number)
}

/// Why there is no table, if anything is wrong: where the kernel was not launched, nothing is.
fn refusal(said: &Said, errors: &[&str]) -> Option<Error> {
    if errors.iter().any(|error| error.contains("ERR_NVGPUCTRPERM")) {
        return Some(Error::input("this user may not read the GPU's hardware counters (ERR_NVGPUCTRPERM)").help(
            "an administrator can run this call as root, or let everybody: `options nvidia \
             NVreg_RestrictProfilingToAdminUsers=0` in a file of /etc/modprobe.d, and restart; a container needs \
             --cap-add=SYS_ADMIN",
        ));
    }
    // What the program that was started said, without what came before.
    let last = || said.besides.lines().map(str::trim).rfind(|line| line.starts_with("error: "));
    let application = || errors.iter().any(|error| error.contains("application returned an error"));
    if let Some(error) = last().filter(|_| application()) {
        return Some(Error::check(format!("under Nsight Compute the kernel could not be launched: {error}")));
    }
    if !errors.is_empty() {
        let error = Error::check(format!("Nsight Compute: {}", errors.join("; ")));
        return Some(error.help("if another profiler reads this GPU's counters, wait for it to end"));
    }
    if said.log.contains("No kernels were profiled") || said.status.success() {
        return None;
    }
    let lines = said.log.lines().chain(said.besides.lines()).map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.take(4).collect();
    let words = if lines.is_empty() { "it said nothing".to_owned() } else { lines.join("; ") };
    Some(Error::check(format!("Nsight Compute has failed ({}): {words}", said.status)))
}
