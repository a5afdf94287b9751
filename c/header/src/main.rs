//! Prints what cbindgen makes of the sources of libstencilc: its header.

use std::error::Error;
use std::io::Write;
use std::path::Path;

/// The sources, in the order in which they are read best; others have nothing for C, or come behind.
const FIRST: [&str; 7] =
    ["status.rs", "stencil.rs", "declared.rs", "array.rs", "call.rs", "mesh.rs", "run.rs"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml"))?;
    let mut sources = Vec::new();
    for file in std::fs::read_dir(root.join("src"))? {
        sources.push(file?.path());
    }
    let place = |path: &Path| FIRST.iter().position(|name| path.ends_with(name)).unwrap_or(FIRST.len());
    sources.retain(|path| !path.ends_with("lib.rs"));
    sources.sort_by_key(|path| (place(path), path.clone()));
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |all, file| all.with_src(file));
    let mut made = Vec::new();
    builder.generate()?.write(&mut made);
    // What Rust calls safety is for the caller to see to.
    let made = String::from_utf8(made)?.replace(" * # Safety\n", " * What the caller sees to:\n");
    Ok(std::io::stdout().write_all(made.as_bytes())?)
}
