//! Ends of an increment that is made one of two: the thread's own element, and the other one.
//!
//! Its stencil is over a mesh that has three maps more than that of the file. No table of a mesh holds them: a kernel knows where they
//! lead as it walks.

use crate::ir::mesh::{Map, Missing};
use crate::ir::{Hop, Mesh, SetId};
use crate::text::FreeText;

/// The maps that a mesh has beyond those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// To the thread's own element.
    pub own: Hop,
    /// To the other one.
    pub other: Hop,
    /// Through a hole, unless the own one stands at the second of two places.
    pub second: Hop,
}

impl Ends {
    /// A mesh with them, from the elements of a set to those of the set that both ends are of.
    pub fn added_to(mesh: &Mesh, from: SetId, to: SetId) -> (Mesh, Ends) {
        let mut mesh = mesh.clone();
        let mut add = |name: &str, to: SetId, missing: Missing| {
            let (name, doc, span) = (name.to_owned(), FreeText::default(), mesh.span);
            Hop { map: mesh.maps.add(Map { name, doc, from, to, arity: 1, missing, span }), slot: 0 }
        };
        let own = add("own", to, Missing::Never);
        let other = add("other", to, Missing::Never);
        let second = add("second", from, Missing::Skip);
        (mesh, Ends { own, other, second })
    }

    /// Whether hops begin with one of them.
    pub fn begin(self, hops: &[Hop]) -> bool {
        hops.first().is_some_and(|first| [self.own, self.other, self.second].contains(first))
    }
}
