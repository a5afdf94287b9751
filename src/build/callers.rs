//! What `build` writes beside a kernel, its launcher and its header: the launcher for the CPU, and the module for Fortran.

use super::library;
use crate::kernel::parameters;
use crate::terminal;
use std::collections::BTreeMap;
use stencilc_compiler::cuda::{self, Built, Fortran};
use stencilc_compiler::plan::Plan;
use stencilc_runtime::emulate::{self, Compiler, check_fortran};
use stencilc_runtime::job::Subject;
use stencilc_runtime::{Error, Result};

/// Options of `build` that are about who calls the kernel.
#[derive(clap::Args)]
pub struct CallersArgs {
    /// Write NAME.f90, too: a module that calls the launcher on arrays of Fortran's, and sections of such
    #[arg(long, conflicts_with = "emit")]
    pub fortran: bool,
    /// Write NAME.cpp, too: the same launcher for the CPU, to be linked instead of NAME.cu where there is no GPU
    #[arg(long, conflicts_with = "emit")]
    pub host: bool,
}

/// A file that is about to be written.
pub struct File {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl CallersArgs {
    /// Whether one is given.
    pub fn is_given(&self) -> bool {
        self.fortran || self.host
    }

    /// The options, as they are written.
    pub fn words(&self) -> String {
        let words = [(self.fortran, " --fortran"), (self.host, " --host")];
        words.iter().filter(|(is_given, _)| *is_given).map(|(_, word)| *word).collect()
    }

    /// Refuses them for what has no launcher, and shows who runs that instead.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse(&self, file: &str, subject: &Subject, why: &str) -> Result<()> {
        if !self.is_given() {
            return Ok(());
        }
        let name = subject.name();
        let lines = if self.fortran { library::in_fortran(file, subject) } else { library::in_c(file, subject) };
        Err(Error::call(format!("`{name}` {why}, and `build` makes no launcher of it that others could call"))
            .help(format!("leave out{}, or name a stencil on a grid, --stencil NAME; {lines}", self.words())))
    }

    /// The files, each of which a compiler has taken, where there is one; and what is told of that.
    ///
    /// # Errors
    /// The plan has no such launchers, or a compiler refuses one.
    pub fn files(&self, plan: &Plan, built: &Built) -> Result<(Vec<File>, String)> {
        let (mut files, mut told) = (Vec::new(), String::new());
        let name = &plan.stencil.name;
        if self.host {
            let text = cuda::on_cpu(plan, &self.words())?;
            let is_compiled = match Compiler::find() {
                Ok(compiler) => {
                    let host = emulate::Host { stem: name, header: &built.header, source: &text };
                    compiler.check_on_cpu(&host)?;
                    true
                }
                Err(_) => false,
            };
            told.push_str(if is_compiled { "; so was that for the CPU" } else { "; that for the CPU was not" });
            files.push(File { name: format!("{name}.cpp"), text });
        }
        if self.fortran {
            let Fortran { text, module, renamed } = cuda::fortran(plan, built, &defaults(plan)?, &self.words())?;
            for own in renamed {
                terminal::note(&format!(
                    "in Fortran, the {} `{}` is called `{}`: capitals and small letters are the same there, names are short, and \
                     some mean something",
                    own.what, own.from, own.to
                ));
            }
            told.push_str(&match check_fortran(name, &text)? {
                Some(version) => format!("; the module {module} was compiled by {version}"),
                None => format!("; the module {module} was not compiled: there is no gfortran"),
            });
            files.push(File { name: format!("{name}.f90"), text });
        }
        Ok((files, told))
    }
}

/// The values of parameters that have one.
fn defaults(plan: &Plan) -> Result<BTreeMap<String, stencilc_compiler::ir::scalar::Value>> {
    let (stencil, choices) = (&plan.stencil, &plan.choices);
    let (values, drawn) = parameters(stencil, choices.precision, choices.contract, BTreeMap::new(), true)?;
    let named = stencil.params.iter().map(|(_, own)| own.name.clone()).zip(values);
    Ok(named.filter(|(name, _)| !drawn.contains(name)).collect())
}
