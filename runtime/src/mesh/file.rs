//! Files of meshes: which format a file has is seen from how it begins.

use super::{Field, Mesh, gmsh, npz, op2};
use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// How many bytes tell a format.
const BEGINNING: u64 = 256;

const FORMATS: &str =
    "meshes are .npz files, Gmsh's .msh, and text as of OP2's airfoil (.dat); `stencilc mesh make` writes some";

/// Reads the mesh in the file at `path`: NumPy's `.npz`, Gmsh's `.msh`, or the text of OP2's airfoil. Everything is checked.
///
/// # Errors
/// There is no such file, it is damaged or of no known format, or what it holds is no mesh. Messages name the file.
pub fn load(path: &Path) -> Result<Mesh> {
    let shown = path.display();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => Error::input(format!("there is no file `{shown}`")).help(FORMATS),
        _ => Error::input(format!("cannot read `{shown}`: {error}")),
    };
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        let what = if found.is_dir() { "a directory" } else { "a device or a pipe" };
        return Err(Error::input(format!("cannot read `{shown}`: it is {what}, not a file")).help(FORMATS));
    }
    let mut file = File::open(path).map_err(failed)?;
    let mut beginning = Vec::new();
    file.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let file = BufReader::with_capacity(1 << 20, file);
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let read = match beginning.as_slice() {
        [] => Err(Error::input("it is empty").help("write it again")),
        begin if begin.starts_with(b"PK") || ending == "npz" => npz::read(file),
        begin if begin.starts_with(gmsh::MAGIC) => gmsh::read(file),
        begin if op2::is_header(begin) || ending == "dat" => op2::read(file),
        _ => Err(Error::input("it is a mesh of no known format").help(FORMATS)),
    };
    let mesh = read.and_then(|mesh| mesh.check().map(|()| mesh));
    mesh.map(|mesh| Mesh { origin: shown.to_string(), ..mesh }).map_err(|Error { fault, message, help }| Error {
        fault,
        message: format!("cannot read `{shown}`: {message}"),
        help,
    })
}

/// Writes a mesh to the file at `path`, an `.npz` file, all of it or nothing. The same mesh makes the same bytes.
///
/// # Errors
/// The path says another kind of file; those of [`crate::files::write_atomic`].
pub fn save(mesh: &Mesh, path: &Path) -> Result<()> {
    check_ending(path)?;
    npz::save(mesh, path)
}

/// Writes fields of a mesh, which need not be among its own, to the file at `path`: a `.vtu` file with the mesh itself, for
/// ParaView, or a `.npz` file of the fields alone, called as in a mesh: `q on cell`.
///
/// # Errors
/// The path says another kind of file; those of [`super::write_vtu`] and [`crate::files::write_atomic`].
pub fn save_fields(mesh: &Mesh, fields: &[&Field], path: &Path) -> Result<()> {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "vtu" => super::write_vtu(mesh, fields, path),
        "npz" => npz::save_fields(mesh, fields, path),
        _ => Err(Error::call(format!(
            "fields of a mesh are written as .vtu or .npz files, and `{}` says another kind of file",
            path.display()
        ))
        .help(format!("call it `{}`", path.with_extension("vtu").display()))),
    }
}

/// Whether a mesh can be written to a file of this name; asked before a long computation starts.
///
/// # Errors
/// The path says another kind of file; those of [`crate::files::check_writable`].
pub fn check_writable(path: &Path) -> Result<()> {
    check_ending(path)?;
    crate::files::check_writable(path).map(|_| ())
}

fn check_ending(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
        return Ok(());
    }
    Err(Error::call(format!("a mesh is written as a .npz file, and `{}` says another kind of file", path.display()))
        .help(format!("call it `{}`", path.with_extension("npz").display())))
}
