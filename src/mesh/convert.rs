//! `stencilc mesh convert`: a mesh in another file.

use crate::terminal;
use clap::ValueHint;
use serde_json::json;
use std::path::PathBuf;
use stencilc_runtime::mesh::{self, Mesh};
use stencilc_runtime::{Error, Result, files};

/// Arguments of `mesh convert`.
#[derive(clap::Args)]
pub struct Args {
    /// The file of a mesh
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The file to write: .npz, or .vtu for ParaView
    #[arg(short, long = "out", value_name = "FILE")]
    out: PathBuf,
}

/// Reads a mesh and writes it.
///
/// # Errors
/// The file holds no mesh, or it cannot be written.
pub fn convert(args: &Args, json: bool) -> Result<()> {
    let is_vtu = match args.out.extension().map(|ending| ending.to_ascii_lowercase()) {
        Some(ending) if ending == "vtu" => true,
        Some(ending) if ending == "npz" => false,
        Some(_) | None => {
            return Err(Error::call(format!(
                "a mesh is written as a .npz or a .vtu file, and `{}` says another kind of file",
                args.out.display()
            ))
            .help(format!("call it `{}`", args.out.with_extension("npz").display())));
        }
    };
    files::will_write(files::Kind::Mesh, "--out", &args.out)?;
    let mesh = mesh::load(&args.file)?;
    let left_out = if is_vtu { write_vtu(&mesh, &args.out)? } else { mesh::save(&mesh, &args.out).map(|()| vec![])? };
    if json {
        return terminal::json(&json!({ "files": [&args.out], "left_out": left_out }));
    }
    if !left_out.is_empty() {
        terminal::note(&format!("a .vtu file has no place for {}", left_out.join(", ")));
    }
    terminal::print(&format!("wrote {}\n", args.out.display()))
}

/// Writes all fields that a .vtu file has a place for; gives the others.
fn write_vtu(mesh: &Mesh, path: &std::path::Path) -> Result<Vec<String>> {
    let (fields, others): (Vec<_>, Vec<_>) = mesh.fields.iter().partition(|field| mesh::has_place_in_vtu(mesh, field));
    mesh::write_vtu(mesh, &fields, path)?;
    Ok(others.into_iter().map(|field| format!("`{}`", mesh.field_place(field))).collect())
}
