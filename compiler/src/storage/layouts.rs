//! Layouts that were made before: many kernels of one problem have few layouts between them, and making one takes longer
//! than all the rest of a plan.

use super::{Layout, LayoutRequest, Storage, Strides, patches};
use crate::ir::Path;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The layouts of one grid, one region and the stencils that share them. Each is made once, by who needs it first.
#[derive(Debug, Default)]
pub struct Layouts(Mutex<HashMap<Key, Arc<OnceLock<Arc<Layout>>>>>);

/// All that a layout depends on, but for grid, region and sharing.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    storage: &'static str,
    strides: Strides,
    levels: usize,
    relations: Vec<Path>,
    inner_only: bool,
    order: &'static str,
    run_width: u32,
    short_last: bool,
    smallest: usize,
    patches: Option<patches::Wanted>,
}

impl Layouts {
    /// How a storage lays out its grid.
    pub fn of(&self, storage: &dyn Storage, request: &LayoutRequest) -> Arc<Layout> {
        // All are named, so that a new part of what a layout is made for is thought of here.
        let LayoutRequest {
            topology: _,
            levels,
            region: _,
            sharing: _,
            relations,
            inner_only,
            order,
            run_width,
            short_last,
            smallest,
            patches,
        } = *request;
        let relations = relations.to_vec();
        let (storage_name, order, strides) = (storage.name(), order.name(), storage.strides());
        let key = Key {
            storage: storage_name,
            strides,
            levels,
            relations,
            inner_only,
            order,
            run_width,
            short_last,
            smallest,
            patches: patches.cloned(),
        };
        // Whoever waits for a layout keeps nobody from another one.
        let slot = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        Arc::clone(slot.get_or_init(|| Arc::new(request.layout(storage))))
    }
}
