//! Files that results are written to.

use crate::terminal;
use std::path::Path;
use stencilc_runtime::bench::log::Log;
use stencilc_runtime::files::{self, Kind, Pattern};
use stencilc_runtime::{Error, Result};

/// Tells that `option` will write `path`, a file that ends with `ending`.
///
/// # Errors
/// It cannot be written there ([`files::will_write`]), or its name says another kind of file.
pub fn check(option: &str, path: &Path, ending: &str, kind: Kind) -> Result<()> {
    check_ending(option, path, ending)?;
    files::will_write(kind, option, path)
}

/// As [`check`], of a program's file for each of some steps, where the number of a step stands in its name.
///
/// # Errors
/// Those of [`check`].
pub fn check_each(option: &str, pattern: &Path, ending: &str, kind: Kind) -> Result<()> {
    check_ending(option, &Pattern::new(pattern).at(0), ending)?;
    files::will_write_each(kind, option, pattern)
}

fn check_ending(option: &str, path: &Path, ending: &str) -> Result<()> {
    if path.extension().is_some_and(|own| own != ending) {
        return Err(Error::call(format!(
            "{option} writes .{ending}, and `{}` says another kind of file",
            path.display()
        ))
        .help(format!("call it `{}`", path.with_extension(ending).display())));
    }
    Ok(())
}

/// Tells that a file's last row was not whole.
pub fn tell_dropped<R>(log: Option<&Log<R>>) {
    if let Some(dropped) = log.map(|log| log.dropped).filter(|&dropped| dropped > 0) {
        terminal::note(&format!("the last row of the file was not written whole: its {dropped} bytes were dropped"));
    }
}
