//! `libstencilc`: stencils for programs in C, C++, Fortran and whatever calls C, compiled when these run. What users see is
//! `include/stencilc.h`, which is made of this crate.
//!
//! ```text
//! handles    what handles stand for: numbers, so that none leads anywhere by itself
//! status     what goes wrong, panics and forks
//! stencil    stencils and programs of texts, and how they are to be computed
//! declared   their fields and parameters
//! mesh       meshes, of files and of arrays
//! array      arrays of somebody's     call   stencils that are bound to them
//! run        programs, and what runs over meshes: with arrays of their own
//! text       texts from C            words  messages in words of C
//! ```

mod array;
mod call;
mod declared;
mod handles;
mod mesh;
mod run;
mod status;
mod stencil;
mod text;
mod words;

pub use array::StencilcArray;
pub use call::StencilcCall;
pub use declared::{StencilcField, StencilcParameter};
pub use mesh::StencilcMesh;
pub use run::StencilcRun;
pub use status::StencilcStatus;
pub use stencil::StencilcStencil;
use stencilc_runtime::memory::Allocator;

/// Memory that cannot be had ends the process with a message and a status, not with a signal.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator { end: command_line::out_of_memory };
