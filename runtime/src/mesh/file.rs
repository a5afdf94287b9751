//! Files of meshes: which format a file has is seen from how it begins.

use super::{Field, Mesh, gmsh, npz, op2};
use crate::error::{Error, Result};
use crate::files;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
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
    files::reads(files::Kind::Mesh, path)?;
    let file = BufReader::with_capacity(1 << 20, files::open(path, files::Links::Follow).map_err(failed)?);
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let mesh = read(file, &ending);
    mesh.map(|mesh| Mesh { origin: shown.to_string(), ..mesh }).map_err(|Error { fault, message, help }| Error {
        fault,
        message: format!("cannot read `{shown}`: {message}"),
        help,
    })
}

/// Reads a mesh from the bytes of a file; how its name ends (`npz`, `dat`) decides where they do not tell.
///
/// # Errors
/// As [`load`], but messages do not name the file.
pub fn read(mut file: impl BufRead + Seek, ending: &str) -> Result<Mesh> {
    let failed = |error: io::Error| Error::input(error.to_string());
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut beginning = Vec::new();
    file.by_ref().take(BEGINNING).read_to_end(&mut beginning).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mesh = match beginning.as_slice() {
        [] => return Err(Error::input("it is empty").help("write it again")),
        begin if begin.starts_with(b"PK") || ending == "npz" => npz::read(file)?,
        begin if begin.starts_with(gmsh::MAGIC) => gmsh::read(file, length)?,
        begin if op2::is_header(begin) || ending == "dat" => op2::read(file)?,
        _ => return Err(Error::input("it is a mesh of no known format").help(FORMATS)),
    };
    mesh.check()?;
    Ok(mesh)
}

/// Writes a mesh to the file at `path`, an `.npz` file, all of it or nothing. The same mesh makes the same bytes.
///
/// # Errors
/// The path says another kind of file; those of [`files::write_atomic`].
pub fn save(mesh: &Mesh, path: &Path) -> Result<()> {
    check_ending(path)?;
    npz::save(mesh, path)
}

/// Writes the bytes that [`save`] puts into a file.
///
/// # Errors
/// Those of `out`.
pub fn write(mesh: &Mesh, out: &mut dyn Write) -> io::Result<()> {
    npz::write(mesh, out)
}

/// Writes fields of a mesh, which need not be among its own, to the file at `path`: a `.vtu` file with the mesh itself, for
/// ParaView, or a `.npz` file of the fields alone, called as in a mesh: `q on cell`.
///
/// # Errors
/// The path says another kind of file; those of [`super::write_vtu`] and [`files::write_atomic`].
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

/// Tells that `option` will write a mesh to the file at `path`; before a long computation starts.
///
/// # Errors
/// The path says another kind of file; those of [`files::will_write`].
pub fn will_save(option: &str, path: &Path) -> Result<()> {
    check_ending(path)?;
    files::will_write(files::Kind::Mesh, option, path)
}

fn check_ending(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
        return Ok(());
    }
    Err(Error::call(format!("a mesh is written as a .npz file, and `{}` says another kind of file", path.display()))
        .help(format!("call it `{}`", path.with_extension("npz").display())))
}
