//! Files that results are written to.

use crate::terminal;
use std::path::{Path, PathBuf};
use stencilc_runtime::bench::log::Log;
use stencilc_runtime::{Error, Result, files};

/// Whether what `option` writes, files that end with `ending`, can be written to `path`; the file, links resolved.
///
/// # Errors
/// It cannot, or its name says another kind of file.
pub fn check(option: &str, path: &Path, ending: &str) -> Result<Option<PathBuf>> {
    if path.extension().is_some_and(|own| own != ending) {
        return Err(Error::call(format!(
            "{option} writes .{ending}, and `{}` says another kind of file",
            path.display()
        ))
        .help(format!("call it `{}`", path.with_extension(ending).display())));
    }
    files::check_writable(path)
}

/// Tells that a file's last row was not whole.
pub fn tell_dropped<R>(log: Option<&Log<R>>) {
    if let Some(dropped) = log.map(|log| log.dropped).filter(|&dropped| dropped > 0) {
        terminal::note(&format!("the last row of the file was not written whole: its {dropped} bytes were dropped"));
    }
}
