//! The order that the mesh has.

use super::{Method, Options, Ordering};
use crate::error::Result;
use crate::mesh::Mesh;

/// Every element keeps its number.
pub struct Kept;

impl Method for Kept {
    fn name(&self) -> &'static str {
        "none"
    }

    fn summary(&self) -> &'static str {
        "every element keeps its number"
    }

    fn ordering(&self, mesh: &Mesh, _: &Options) -> Result<Ordering> {
        Ok(Ordering::kept(mesh))
    }
}
