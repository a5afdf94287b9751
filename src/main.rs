//! The program: the command line of the library beside it.

use std::process::ExitCode;
use stencilc_runtime::memory::Allocator;

/// Memory that cannot be had ends the program with a message and a status, not with a signal.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator { end: stencilc::out_of_memory };

fn main() -> ExitCode {
    ExitCode::from(stencilc::run(std::env::args_os()))
}
