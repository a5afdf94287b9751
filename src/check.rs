//! `stencilc check`: looks for errors.

use crate::message::Message;
use crate::{input, terminal};
use serde::Serialize;
use std::path::Path;
use stencilc_compiler::diagnostic::Severity;
use stencilc_compiler::ir::Mesh;
use stencilc_compiler::lower::{Library, Lowered};
use stencilc_runtime::{Error, Result};

/// Arguments of `check`.
#[derive(clap::Args)]
pub struct Args {
    /// Stencil files, or names of stencils that come along
    #[arg(value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    files: Vec<String>,
    /// Take warnings for errors
    #[arg(long)]
    strict: bool,
}

/// What came of a file, as JSON.
#[derive(Serialize)]
struct Checked {
    file: String,
    stencils: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<String>,
    /// What runs over meshes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    meshes: Vec<OverMesh>,
    /// Titles of tests.
    tests: Vec<String>,
    /// What a file without stencils has for those that import it.
    #[serde(flatten)]
    library: Own,
    /// The files that it imports, but for those that come along.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    imports: Vec<String>,
    diagnostics: Vec<Message>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    errors: usize,
    #[serde(skip)]
    warnings: usize,
}

/// What a file has for those that import it.
#[derive(Default, Serialize)]
struct Own {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    constants: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<String>,
}

/// Stencils and programs over a mesh.
#[derive(Serialize)]
struct OverMesh {
    name: String,
    stencils: Vec<String>,
    programs: Vec<String>,
}

/// Checks files.
///
/// # Errors
/// One has an error.
pub fn check(args: &Args, json: bool) -> Result<()> {
    let checked: Vec<Checked> = args.files.iter().map(|file| check_file(file, args.strict)).collect();
    if json {
        terminal::json(&checked)?;
    } else {
        terminal::print(&checked.iter().map(line).collect::<String>())?;
    }
    let broken: Vec<&str> = checked.iter().filter(|file| file.errors > 0).map(|file| file.file.as_str()).collect();
    match broken.as_slice() {
        [] => Ok(()),
        [file] => Err(Error::input(format!("`{file}` cannot be used"))),
        files => Err(Error::input(format!("{} of {} files cannot be used", files.len(), checked.len()))),
    }
}

fn check_file(file: &str, strict: bool) -> Checked {
    let source = match input::open(file) {
        Ok(source) => source,
        Err(error) => {
            terminal::error(&error);
            return Checked {
                file: file.to_owned(),
                stencils: Vec::new(),
                programs: Vec::new(),
                meshes: Vec::new(),
                tests: Vec::new(),
                library: Own::default(),
                imports: Vec::new(),
                diagnostics: Vec::new(),
                error: Some(error.message),
                errors: 1,
                warnings: 0,
            };
        }
    };
    let lowered = stencilc_compiler::check(&source);
    let meshes = lowered.meshes.iter().map(|mesh| over_mesh(mesh, &lowered)).collect();
    let Lowered { stencils, programs, tests, mesh_tests, library, mut diagnostics, .. } = lowered;
    let Library { functions, constants, params: parameters, .. } = library;
    if strict {
        diagnostics.iter_mut().for_each(|found| found.severity = Severity::Error);
    }
    terminal::diagnostics(&diagnostics, &source);
    let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
    let imports = source.files().skip(1).map(|file| source.file_name(file.start as u32).to_owned());
    Checked {
        imports: imports.filter(|name| Path::new(name).is_file()).collect(),
        file: file.to_owned(),
        stencils: stencils.into_iter().map(|stencil| stencil.name).collect(),
        programs: programs.into_iter().map(|program| program.name).collect(),
        meshes,
        tests: tests.into_iter().map(|own| own.title).chain(mesh_tests.into_iter().map(|own| own.title)).collect(),
        library: Own { functions, constants, parameters },
        errors,
        warnings: diagnostics.len() - errors,
        diagnostics: diagnostics.iter().map(|diagnostic| Message::new(diagnostic, &source)).collect(),
        error: None,
    }
}

fn over_mesh(mesh: &Mesh, lowered: &Lowered) -> OverMesh {
    let stencils = lowered.mesh_stencils.iter().filter(|own| own.mesh.name == mesh.name);
    let programs = lowered.mesh_programs.iter().filter(|own| own.mesh.name == mesh.name);
    OverMesh {
        name: mesh.name.clone(),
        stencils: stencils.map(|own| own.stencil.name.clone()).collect(),
        programs: programs.map(|own| own.program.name.clone()).collect(),
    }
}

/// `stencils/laplap.stn: 1 stencil (laplap)`, `stencils/airfoil.stn: 5 stencils (...) and 1 program (...) over the mesh airfoil`
fn line(checked: &Checked) -> String {
    let Checked { file, stencils, programs, meshes, tests, library, errors, warnings, error, .. } = checked;
    let listed = |names: &[String], what| format!("{} ({})", terminal::count(names.len(), what), names.join(", "));
    let mut said = match (error, errors) {
        (Some(_), _) => "not read".to_owned(),
        (None, 0) => {
            let mut parts = Vec::new();
            if !stencils.is_empty() {
                parts.push(listed(stencils, "stencil"));
            }
            if !programs.is_empty() {
                parts.push(listed(programs, "program"));
            }
            for mesh in meshes {
                let kinds = [(&mesh.stencils, "stencil"), (&mesh.programs, "program")];
                let own: Vec<String> = kinds
                    .iter()
                    .filter(|(names, _)| !names.is_empty())
                    .map(|(names, what)| listed(names, what))
                    .collect();
                if !own.is_empty() {
                    parts.push(format!("{} over the mesh {}", own.join(" and "), mesh.name));
                }
            }
            let kinds = [
                (&library.functions, "function"),
                (&library.constants, "constant"),
                (&library.parameters, "parameter"),
            ];
            parts.extend(kinds.iter().filter(|(names, _)| !names.is_empty()).map(|(names, what)| listed(names, what)));
            parts.join(", ")
        }
        (None, &errors) => terminal::count(errors, "error"),
    };
    if error.is_none() && *errors == 0 && !tests.is_empty() {
        said.push_str(&format!(", {}", terminal::count(tests.len(), "test")));
    }
    if *warnings > 0 {
        said.push_str(&format!(", {}", terminal::count(*warnings, "warning")));
    }
    format!("{file}: {said}\n")
}
