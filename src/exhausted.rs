//! The end of the program where there is no memory left: a message and a status, as of every other error.

use crate::terminal;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stencilc_runtime::error::Fault;
use stencilc_runtime::memory::{Exhausted, HELP, Size};

/// Whether JSON was asked for.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Whatever happens, there is going to be JSON on stdout.
pub fn promise_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Ends the program. Nothing here takes memory. Files that are being written keep their unfinished names, as when the program
/// is killed.
pub fn end(wanted: Exhausted) -> ! {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    // Of several threads the first one ends them all.
    while IS_TOLD.swap(true, Ordering::Relaxed) {
        std::thread::sleep(Duration::from_secs(1));
    }
    let status = Fault::Input.status();
    let message = message(wanted);
    if IS_JSON.load(Ordering::Relaxed) && !terminal::has_json() {
        json(&message, status).put(libc::STDOUT_FILENO);
    }
    let mut lines = Short::new();
    // What is too long is cut.
    let _ = write!(lines, "error: {}\nhelp: {HELP}\n", message.text());
    lines.put(libc::STDERR_FILENO);
    // SAFETY: it ends the program at once.
    unsafe { libc::_exit(status.into()) }
}

fn message(Exhausted { bytes, there }: Exhausted) -> Short {
    let mut text = Short::new();
    let size = Size(bytes as u128);
    let _ = write!(text, "there is not enough memory: {size} more are needed at once");
    if let Some(there) = there {
        let _ = write!(text, ", and {there}");
    }
    text
}

/// The same failure as [`crate::message::Failure`] says it. Neither message nor help has a character that JSON writes in another way.
fn json(message: &Short, status: u8) -> Short {
    let mut text = Short::new();
    let message = message.text();
    let _ = write!(
        text,
        r#"{{
  "error": {{
    "status": {status},
    "message": "{message}",
    "help": "{HELP}",
    "diagnostics": []
  }}
}}
"#
    );
    text
}

/// A text that takes no memory but its own; what is longer is cut.
struct Short {
    bytes: [u8; 512],
    length: usize,
}

impl Short {
    fn new() -> Self {
        Self { bytes: [0; 512], length: 0 }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// Writes it to a stream, as far as that takes it.
    fn put(&self, stream: i32) {
        // SAFETY: there are as many bytes.
        unsafe { libc::write(stream, self.bytes.as_ptr().cast(), self.length) };
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Failure;
    use stencilc_runtime::Error;
    use stencilc_runtime::memory::{Available, Limit};

    #[test]
    fn the_end_is_told_as_other_errors_are() {
        for by in [Limit::Machine, Limit::Addresses, Limit::Data, Limit::Group] {
            let there = Some(Available { bytes: u64::MAX, by });
            let message = message(Exhausted { bytes: usize::MAX, there });
            let error = Error::input(message.text()).help(HELP);
            let usual = serde_json::to_string_pretty(&Failure::new(&error, Vec::new())).unwrap();
            assert_eq!(json(&message, 1).text(), usual + "\n", "nothing is cut, and nothing is escaped");
        }
    }
}
