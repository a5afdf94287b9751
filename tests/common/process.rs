//! The program as a process of its own, in a folder that has all it looks for.

use std::path::Path;
use std::process::{Command, Stdio};

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_stencilc");

/// A script of a shell in a folder, which is also home; without NVRTC and GPUs. What hangs ends with status 124 after so many
/// seconds.
pub fn shell(folder: &Path, seconds: u64, script: &str) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after", "1", &seconds.to_string(), "sh", "-c", script, "sh"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("STENCILC_HOME", folder.join("home"))
        .env("STENCILC_NVRTC", "nowhere")
        .env("CUDA_VISIBLE_DEVICES", "");
    command
}
