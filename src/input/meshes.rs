//! Which program or stencil over a mesh is meant, and what commands that know grids alone say of it.

use super::{Input, OF_PROGRAMS};
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::ir::{MeshProgram, MeshStencil};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::mesh::program::alone;
use stencilc_runtime::{Error, Result};

impl Input {
    /// The program over a mesh that is meant, or a stencil over one as a program; nothing if what is meant runs over a grid.
    ///
    /// # Errors
    /// There are several.
    pub fn over_mesh(&self, program: Option<&str>, stencil: Option<&str>) -> Result<Option<MeshProgram>> {
        let file = &self.source.name;
        let (programs, stencils) = (self.mesh_programs(), self.mesh_stencils());
        let of_stencil = |name: &str| self.mesh_stencils.iter().find(|own| own.stencil.name == name).map(alone);
        let on_grids = !self.programs.is_empty() || !self.stencils.is_empty();
        match (program, stencil) {
            (Some(name), _) => Ok(self.mesh_program(name)?.cloned()),
            (None, Some(name)) => match of_stencil(name) {
                None if self.stencils.is_empty() => Err(self.no_stencil(name)),
                found => Ok(found),
            },
            (None, None) => match (programs.as_slice(), stencils.as_slice()) {
                ([only], _) if self.programs.is_empty() => Ok(self.mesh_program(only)?.cloned()),
                ([], [only]) if !on_grids => Ok(of_stencil(only)),
                ([], _) if on_grids || stencils.is_empty() => Ok(None),
                ([], _) if self.only_own(&self.mesh_stencils, |own| &own.stencil).is_some() => {
                    Ok(self.only_own(&self.mesh_stencils, |own| &own.stencil).map(alone))
                }
                ([], _) => {
                    Err(Error::call(format!("`{file}` has {} stencils: {}", stencils.len(), stencils.join(", ")))
                        .help(format!("choose one: --stencil {}", stencils[0])))
                }
                _ => Err(Error::call(format!("`{file}` has several programs; over meshes: {}", programs.join(", ")))
                    .help(format!("choose one: --program {}, or a stencil: --stencil NAME", programs[0]))),
            },
        }
    }

    /// The program over a mesh of a name; nothing if the file has others, which run over a grid.
    ///
    /// # Errors
    /// There is none.
    pub fn mesh_program(&self, name: &str) -> Result<Option<&MeshProgram>> {
        let found = self.mesh_programs.iter().find(|own| own.program.name == name);
        match found {
            None if self.programs.is_empty() && !self.mesh_programs.is_empty() => {
                Err(unknown(&self.source.name, "program", name, &self.mesh_programs()))
            }
            found => Ok(found),
        }
    }

    /// The stencil over a mesh that is meant; nothing if what is meant runs over a grid.
    ///
    /// # Errors
    /// There are several.
    pub fn mesh_stencil(&self, name: Option<&str>) -> Result<Option<&MeshStencil>> {
        let (file, names) = (&self.source.name, self.mesh_stencils());
        match (name, self.mesh_stencils.as_slice()) {
            (Some(name), all) => match all.iter().find(|own| own.stencil.name == name) {
                None if self.stencils.is_empty() && !all.is_empty() => Err(self.no_stencil(name)),
                found => Ok(found),
            },
            (None, []) => Ok(None),
            (None, _) if !self.stencils.is_empty() => Ok(None),
            (None, [only]) => Ok(Some(only)),
            (None, all) if self.only_own(all, |own| &own.stencil).is_some() => {
                Ok(self.only_own(all, |own| &own.stencil))
            }
            (None, _) => Err(Error::call(format!("`{file}` has {} stencils: {}", names.len(), names.join(", ")))
                .help(format!("choose one: --stencil {}", names[0]))),
        }
    }

    /// Refuses what runs over a mesh, for commands that know grids alone: the program or stencil called `name`, or a file
    /// that has nothing else.
    ///
    /// # Errors
    /// What is meant runs over a mesh.
    pub fn refuse_meshes(&self, name: Option<&str>) -> Result<()> {
        let of_programs = self.mesh_programs.iter().map(|own| (&own.program.name, &own.mesh.name));
        let mut all = of_programs.chain(self.mesh_stencils.iter().map(|own| (&own.stencil.name, &own.mesh.name)));
        let found = match name {
            Some(name) => all.find(|(own, _)| *own == name),
            None if self.stencils.is_empty() => all.next(),
            None => None,
        };
        let Some((name, mesh)) = found else { return Ok(()) };
        Err(Error::call(format!("`{name}` runs over the mesh `{mesh}`, and this command is for grids")).help(format!(
            "what runs over a mesh is for {OF_PROGRAMS}: `stencilc run {} --mesh FILE`",
            ShellWord::path(&self.source.name)
        )))
    }

    /// That the file, which has none on grids, has no stencil called `name`.
    fn no_stencil(&self, name: &str) -> Error {
        let (file, stencils) = (&self.source.name, self.mesh_stencils());
        match self.mesh_programs().contains(&name) {
            true => super::is_program(name, file, &stencils.join(", ")),
            false => unknown(file, "stencil", name, &stencils),
        }
    }

    fn mesh_programs(&self) -> Vec<&str> {
        self.mesh_programs.iter().map(|own| own.program.name.as_str()).collect()
    }

    fn mesh_stencils(&self) -> Vec<&str> {
        self.mesh_stencils.iter().map(|own| own.stencil.name.as_str()).collect()
    }
}

/// That a file over a mesh has no program or stencil called `name`.
fn unknown(file: &str, what: &str, name: &str, names: &[&str]) -> Error {
    let error = Error::call(format!("`{file}` has no {what} `{name}`"));
    match guess(name, names.iter().copied()) {
        Some(guess) => error.help(format!("did you mean `{guess}`?")),
        None if names.is_empty() => error.help("it has stencils alone: --stencil NAME"),
        None => error.help(format!("it has {}", names.join(", "))),
    }
}
