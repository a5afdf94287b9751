//! `naive`: every use computes, or looks up, its address again.

use super::{Access, Neighbourhood};
use crate::kernel::ValueId;
use crate::kernel::build::Builder;

/// One thread a cell; nothing is remembered.
pub struct Naive;

impl Access for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn summary(&self) -> &'static str {
        "a thread a cell; every use computes its address again"
    }

    fn distances(&self, _: &mut Builder, _: &Neighbourhood) -> Option<Vec<ValueId>> {
        None
    }
}
