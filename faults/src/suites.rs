//! Runs test executables, and watches for the first test that fails.

use crate::Failure;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Suites that compile texts, look at messages, or compare texts with those of before: they come last, so that the table
/// tells what executing alone catches.
const LATER: [&str; 6] = ["nvrtc", "cli", "explain", "corpus", "diagnostics", "snapshots"];

/// What the table says of a fault that no suite catches.
pub const NOTHING: &str = "nothing";

/// Whether a suite is one of those.
pub fn looks_at_texts(suite: &str) -> bool {
    LATER.contains(&suite)
}

/// Tests of one subject: a module of the integration tests, or all units of a crate.
#[derive(Serialize, Deserialize)]
pub struct Suite {
    /// What the table calls it.
    pub name: String,
    /// The file.
    pub executable: PathBuf,
    /// Which of its tests; all of them if none are named.
    pub tests: Vec<String>,
    /// The folder that it expects to run in.
    pub folder: PathBuf,
    /// How long it takes with no fault awake.
    pub seconds: f64,
}

/// What became of a fault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// A test failed.
    Failed {
        /// Of this suite.
        suite: String,
        /// The first that did.
        test: String,
    },
    /// A suite ended without saying why, such as by a signal.
    Ended {
        /// Which.
        suite: String,
    },
    /// A suite took far longer than without the fault.
    Endless {
        /// Which.
        suite: String,
    },
    /// Everything passed.
    Missed {
        /// Whether any test came by the fault.
        reached: bool,
    },
}

impl Outcome {
    /// The suite that caught it.
    pub fn suite(&self) -> &str {
        match self {
            Outcome::Failed { suite, .. } | Outcome::Ended { suite } | Outcome::Endless { suite } => suite,
            Outcome::Missed { .. } => NOTHING,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Failed { suite, test } => write!(f, "{suite}: `{test}`"),
            Outcome::Ended { suite } => write!(f, "{suite}: ends at once"),
            Outcome::Endless { suite } => write!(f, "{suite}: does not end"),
            Outcome::Missed { reached: true } => write!(f, "**nothing**, though tests come by it"),
            Outcome::Missed { reached: false } => write!(f, "**nothing**: no test comes by it"),
        }
    }
}

/// How a run ended.
enum End {
    Passed,
    Failed(String),
    Died,
    Late,
}

impl Suite {
    /// What executes comes first, and of that what is quick.
    pub fn order(&self, other: &Suite) -> Ordering {
        let later = |suite: &Suite| LATER.iter().position(|name| *name == suite.name);
        later(self).cmp(&later(other)).then(self.seconds.total_cmp(&other.seconds))
    }

    /// Runs it with no fault awake, when it must pass.
    pub fn time(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let end = self.run(None, Duration::from_secs(3600))?;
        self.seconds = start.elapsed().as_secs_f64();
        match end {
            End::Passed => Ok(()),
            End::Failed(test) => Err(format!("{}: {test} fails without any fault", self.name).into()),
            End::Died | End::Late => Err(format!("{} ends at once without any fault", self.name).into()),
        }
    }

    fn run(&self, fault: Option<(u32, &Path)>, most: Duration) -> Result<End, Failure> {
        let mut command = Command::new(&self.executable);
        if !self.tests.is_empty() {
            command.arg("--exact").args(&self.tests);
        }
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A snapshot that differs is to fail, and to leave nothing behind. They are found from where the lock file is.
        let root = self.folder.ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap_or(&self.folder);
        command.env("INSTA_WORKSPACE_ROOT", root).env("INSTA_UPDATE", "no").env("RUST_BACKTRACE", "0");
        if let Some((number, scratch)) = fault {
            command.env("STENCILC_FAULT", number.to_string());
            command.env("STENCILC_FAULT_REACHED", scratch.join("reached")).env("TMPDIR", scratch);
            // Kernels that a faulty compiler made stay out of the user's cache.
            command.env("STENCILC_HOME", scratch.join("home"));
        }
        watch(command.spawn()?, Instant::now() + most)
    }
}

/// Reads what tests say until one fails.
fn watch(mut child: Child, until: Instant) -> Result<End, Failure> {
    let Some(output) = child.stdout.take() else { return Ok(End::Died) };
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        // Whoever listened may have gone: then there is nothing more to say.
        BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });
    let end = loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(test) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
                    break End::Failed(test.trim_end_matches(" - should panic").to_owned());
                }
            }
            Err(RecvTimeoutError::Timeout) => break End::Late,
            Err(RecvTimeoutError::Disconnected) => break if child.wait()?.success() { End::Passed } else { End::Died },
        }
    };
    // It may have ended by itself meanwhile.
    let _ = child.kill();
    child.wait()?;
    drop(lines);
    drop(reader);
    Ok(end)
}

/// Runs the suites with a fault awake until one fails.
pub fn try_one(number: u32, suites: &[Suite], work: &Path) -> Result<Outcome, Failure> {
    let scratch = work.join(format!("scratch-{number}"));
    std::fs::create_dir_all(scratch.join("home"))?;
    if let Some(nvrtc) = nvrtc().filter(|nvrtc| nvrtc.exists()) {
        // It is there already where an earlier run was interrupted.
        let _ = std::os::unix::fs::symlink(nvrtc, scratch.join("home/nvrtc"));
    }
    let mut outcome = None;
    for suite in suites {
        let most = Duration::from_secs_f64(60.0 + 10.0 * suite.seconds);
        let suite_name = suite.name.clone();
        outcome = match suite.run(Some((number, &scratch)), most)? {
            End::Passed => continue,
            End::Failed(test) => Some(Outcome::Failed { suite: suite_name, test }),
            End::Died => Some(Outcome::Ended { suite: suite_name }),
            End::Late => Some(Outcome::Endless { suite: suite_name }),
        };
        break;
    }
    let outcome = outcome.unwrap_or_else(|| Outcome::Missed { reached: scratch.join("reached").exists() });
    // A compiler that is still writing there may keep the folder: it is emptied with `target`.
    let _ = std::fs::remove_dir_all(&scratch);
    Ok(outcome)
}

/// Where `./test` puts NVRTC.
fn nvrtc() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = variable("STENCILC_HOME")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("stencilc")))
        .or_else(|| Some(variable("HOME")?.join(".cache/stencilc")));
    home.map(|home| home.join("nvrtc"))
}
