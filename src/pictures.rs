//! Pictures of what runs hold, for callers that have them in memory.

use crate::run::picture::{Look, SIDE};
use std::path::Path;
use stencilc_runtime::job::{Checked, Run};
use stencilc_runtime::{Error, Result, files, plot};

/// A level of what a field of a run holds now, as `stencilc run --plot` draws it: the bytes of a PNG file, which is written if a path is
/// given. Over a mesh the name may be that of a part of a vector, `q.1`. Without a level it is the middle one.
///
/// # Errors
/// There is no such field or level, it has no value yet, or nobody knows where its elements are; the file cannot be written.
pub fn png(run: &Run, name: &str, level: Option<usize>, path: Option<&Path>) -> Result<Vec<u8>> {
    let field = match run.checked() {
        Checked::Grid(_) => name,
        Checked::Mesh(_) => name.split_once('.').map_or(name, |(field, _)| field),
    };
    let array = run.get(field)?;
    if array.shape.is_empty() {
        return Err(Error::call(format!("`{name}` cannot be drawn: it is one number"))
            .help("only fields on columns can; write the numbers with --out"));
    }
    let look = Look::new(run.checked(), name, level, SIDE)?;
    let png = plot::png(&look.shown(&array.data)?.picture())?;
    if let Some(path) = path {
        files::write_atomic(path, |out| out.write_all(&png))?;
    }
    Ok(png)
}
