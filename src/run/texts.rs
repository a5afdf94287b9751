//! `stencilc run --texts`: the texts of the kernels that are launched over a mesh.

use crate::build::{refuse_file, write};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use stencilc_runtime::{Result, files};

/// The texts of kernels, in a folder if one is given.
pub struct Texts {
    folder: Option<PathBuf>,
    /// Names that are taken, and by which texts.
    names: RefCell<BTreeMap<String, String>>,
}

impl Texts {
    /// Tells of the folder that they are written into, before anything is computed: which kernels there are comes out later.
    ///
    /// # Errors
    /// It is a file, or nothing can be written there.
    pub fn new(folder: Option<&Path>) -> Result<Self> {
        if let Some(folder) = folder {
            refuse_file("--texts", folder)?;
            files::will_write_into(files::Kind::Code, "--texts", folder, "cu")?;
        }
        Ok(Self { folder: folder.map(Path::to_owned), names: RefCell::default() })
    }

    /// Writes a text under a name of its own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, name: &str, text: &str) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let mut names = self.names.borrow_mut();
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut all = std::iter::once(name.to_owned()).chain(numbered);
        let Some(free) = all.find(|name| names.get(name).is_none_or(|own| own == text)) else { return Ok(()) };
        if names.insert(free.clone(), text.to_owned()).is_none() {
            write(&folder.join(format!("{free}.cu")), text.as_bytes())?;
        }
        Ok(())
    }
}
