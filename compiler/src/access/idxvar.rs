//! `idxvar`: all indices first, in variables.

use super::{Access, Neighbourhood};
use crate::kernel::ValueId;
use crate::kernel::build::Builder;

/// One thread a cell; each neighbour's index is computed once.
pub struct IdxVar;

impl Access for IdxVar {
    fn name(&self) -> &'static str {
        "idxvar"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; every neighbour's index once, in a variable"
    }

    fn distances(&self, own: &mut Builder, neighbourhood: &Neighbourhood) -> Option<Vec<ValueId>> {
        Some(neighbourhood.hop_distances(own, false))
    }

    fn has_index_variables(&self) -> bool {
        true
    }
}
