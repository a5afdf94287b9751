//! What increments look at.

use super::MeshTask;
use super::group::Group;
use crate::ir::{Body, FieldId, Hop, Levels, Node, Path};
use std::collections::HashSet;

/// What the increments of a group look at.
#[derive(Default)]
pub struct Footprint {
    /// Numbers of fields, and where.
    pub reads: Vec<(FieldId, Path, u32)>,
    /// The same on levels that are data.
    pub moved: Vec<(FieldId, Path, u32)>,
    /// Whether there is an element along hops.
    pub present: Vec<Vec<Hop>>,
}

impl Footprint {
    /// Of the increments of a group.
    pub fn new(task: &MeshTask, group: &Group) -> Self {
        let stencil = &task.stencil.stencil;
        let (mut footprint, mut seen, mut read_before) = (Self::default(), HashSet::new(), HashSet::new());
        let mut waiting: Vec<(&Body, Path)> =
            group.adds.iter().map(|add| (&stencil.stores[add.store].body, Path::default())).collect();
        while let Some((body, at)) = waiting.pop() {
            for (_, node) in body.iter() {
                match node {
                    Node::Read { field, path, part, by: Some(_) } if stencil.fields[*field].place.horizontal => {
                        footprint.moved.push((*field, at.then(path), *part));
                    }
                    Node::Read { field, path, part, by: None } if stencil.fields[*field].place.horizontal => {
                        let path = at.then(path);
                        // What has no levels is the same on all of them.
                        let is_alike = stencil.fields[*field].place.levels == Levels::None;
                        let read = (*field, if is_alike { path.without_levels() } else { path }, *part);
                        if read_before.insert(read.clone()) {
                            footprint.reads.push(read);
                        }
                    }
                    Node::Present { path } => footprint.present.push(at.then(path).hops().to_vec()),
                    // The element's own number tells.
                    Node::InZone(_) => footprint.present.push(at.hops().to_vec()),
                    Node::Use { def, path } => {
                        let at = at.then(path);
                        if seen.insert((*def, at.clone())) {
                            waiting.push((&stencil.defs[*def].body, at));
                        }
                    }
                    _ => {}
                }
            }
        }
        footprint
    }
}
