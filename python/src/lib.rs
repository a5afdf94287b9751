//! The extension module of the Python package `stencilc`: what Python cannot do by itself, or not fast enough. What users see is made of
//! it in `python/package/stencilc/`.
//!
//! ```text
//! declared   texts: what they declare, explain and become      how      options of `using`
//! view       where arrays have their numbers                   dlpack   those that are handed over by DLPack
//! lending    arrays that stencils are called with              bound    calls that are bound, in streams (stream)
//! program    programs that run                                 place    grids and meshes
//! xla        stencils within programs that jax compiles
//! error      what goes wrong, panics and forks
//! ```

mod bound;
mod came;
mod declared;
mod dlpack;
mod error;
mod how;
mod lending;
mod place;
mod program;
mod stream;
mod view;
mod xla;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use stencilc_runtime::memory::Allocator;
use stencilc_runtime::{Device, cuda, nvrtc};

/// Memory that cannot be had ends the process with a message and a status, not with a signal.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator { end: stencilc::out_of_memory };

/// The command line: does what the words of a call say, and returns the status.
#[pyfunction]
fn command_line(py: Python<'_>, words: Vec<OsString>) -> u8 {
    // Python only notes an interrupt, and looks at it when it is asked next; a program ends at once. So does it where nobody reads on.
    // SAFETY: the usual actions have no handlers that could run.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    py.detach(|| stencilc::run(words))
}

/// The names of the stencils that come along.
#[pyfunction]
fn along() -> Vec<String> {
    stencilc::texts::along()
}

/// Looks for NVRTC in a folder, too.
#[pyfunction]
fn look_in(folder: PathBuf) {
    nvrtc::look_in(folder);
}

/// Where a program computes if nothing is said: the first GPU, or else the CPU, and why.
#[pyfunction]
fn device() -> (String, Option<String>) {
    let (device, why) = Device::choose(None);
    (device.to_string(), why.map(|own| own.message))
}

/// How many GPUs there are.
#[pyfunction]
fn gpus() -> usize {
    cuda::availability().unwrap_or(0)
}

/// A mistake, for the tests of what becomes of one.
#[pyfunction]
fn mistaken(py: Python<'_>, is_apart: bool) -> PyResult<()> {
    let panicked = "a test asked for it";
    match is_apart {
        true => error::apart(py, || panic!("{panicked}")),
        false => error::caught(py, || panic!("{panicked}")),
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::watch_forks();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<declared::Text>()?;
    module.add_class::<declared::Subject>()?;
    module.add_class::<how::How>()?;
    module.add_class::<lending::Lending>()?;
    module.add_class::<bound::BoundCall>()?;
    module.add_class::<program::Run>()?;
    module.add_class::<program::Held>()?;
    module.add_class::<place::Mesh>()?;
    module.add_class::<place::Cells>()?;
    module.add_function(wrap_pyfunction!(declared::open, module)?)?;
    module.add_function(wrap_pyfunction!(declared::in_memory, module)?)?;
    module.add_function(wrap_pyfunction!(lending::lend, module)?)?;
    module.add_function(wrap_pyfunction!(came::verify, module)?)?;
    module.add_function(wrap_pyfunction!(came::tune, module)?)?;
    module.add_function(wrap_pyfunction!(came::test, module)?)?;
    module.add_function(wrap_pyfunction!(came::test_all, module)?)?;
    module.add_function(wrap_pyfunction!(program::start, module)?)?;
    module.add_function(wrap_pyfunction!(place::read_mesh, module)?)?;
    module.add_function(wrap_pyfunction!(place::make_mesh, module)?)?;
    module.add_function(wrap_pyfunction!(place::read_cells, module)?)?;
    module.add_function(wrap_pyfunction!(xla::declare, module)?)?;
    module.add_function(wrap_pyfunction!(xla::capsule, module)?)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)?;
    module.add_function(wrap_pyfunction!(along, module)?)?;
    module.add_function(wrap_pyfunction!(look_in, module)?)?;
    module.add_function(wrap_pyfunction!(device, module)?)?;
    module.add_function(wrap_pyfunction!(gpus, module)?)?;
    module.add_function(wrap_pyfunction!(mistaken, module)?)
}
