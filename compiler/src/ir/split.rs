//! Makes several bodies of one that C++ compilers would find too deep, or whose text would be too long.
//!
//! A part with a name of its own is the same bits: fused multiply-adds are formed before.

use super::{Arena, Body, Def, DefId, Handle, Kind, Node, NodeId, Origin, Path, Stencil, Store};
use crate::depth;

/// What several nodes of a body look at is written once if it has more operations than this. A text holds it once for each,
/// and what is in it once for each of these: twice as much at every step.
const SHARED: usize = 500;

/// `stencil` with bodies that are nested no deeper than [`depth::BODY`]; but truths may be that are made of truths.
pub fn split(stencil: &Stencil) -> Stencil {
    let mut all = stencil.bodies().chain(stencil.spare.iter().map(|store| &store.body));
    if !all.any(is_large) && !stencil.prints.iter().any(|print| is_large(&print.body)) {
        return stencil.clone();
    }
    let mut splitter = Splitter { defs: Arena::new(), renamed: Vec::new() };
    for (_, def) in stencil.defs.iter() {
        let body = splitter.split(&def.body);
        let renamed = splitter.defs.add(Def { body, ..def.clone() });
        splitter.renamed.push(renamed);
    }
    let stored = |splitter: &mut Splitter, stores: &[Store]| {
        stores.iter().map(|store| Store { body: splitter.split(&store.body), ..store.clone() }).collect()
    };
    let mut new = stencil.clone();
    new.stores = stored(&mut splitter, &stencil.stores);
    new.spare = stored(&mut splitter, &stencil.spare);
    for print in &mut new.prints {
        print.body = splitter.split(&print.body);
    }
    for param in new.params.values_mut() {
        param.default = param.default.as_ref().map(|body| splitter.split(body));
    }
    new.defs = splitter.defs;
    new
}

/// How deep a node is nested with operands of these depths, and how much its text holds of operands that hold so much.
#[derive(Clone, Copy)]
struct Extent {
    depth: usize,
    length: usize,
}

impl Extent {
    const LEAF: Extent = Extent { depth: 1, length: 1 };

    fn of(node: &Node, known: &[Extent]) -> Extent {
        node.operands().iter().map(|operand| known[operand.index()]).fold(Extent::LEAF, |all, operand| Extent {
            depth: all.depth.max(operand.depth + 1),
            length: all.length.saturating_add(operand.length),
        })
    }
}

/// Whether a body has a part that has to stand alone.
fn is_large(body: &Body) -> bool {
    let (uses, mut extents) = (uses(body), Vec::with_capacity(body.len()));
    for (id, node) in body.iter() {
        let extent = Extent::of(node, &extents);
        if stands_alone(extent, uses[id.index()]) {
            return true;
        }
        extents.push(extent);
    }
    false
}

fn stands_alone(extent: Extent, uses: usize) -> bool {
    extent.depth >= depth::BODY || uses > 1 && extent.length > SHARED
}

/// How many operands each node is.
fn uses(body: &Body) -> Vec<usize> {
    let mut uses = vec![0; body.len()];
    for operand in body.iter().flat_map(|(_, node)| node.operands()) {
        uses[operand.index()] += 1;
    }
    uses
}

/// Collects the definitions of the new stencil.
struct Splitter {
    defs: Arena<DefId, Def>,
    /// By the definitions of the old stencil.
    renamed: Vec<DefId>,
}

impl Splitter {
    fn split(&mut self, body: &Body) -> Body {
        let uses = uses(body);
        let mut written = Body::new();
        let mut renamed: Vec<NodeId> = Vec::with_capacity(body.len());
        let mut extents: Vec<Extent> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let (kind, span) = (body.kind_of(id), body.span_of(id));
            let mut own = node.map_operands(|operand| renamed[operand.index()]);
            if let Node::Use { def, .. } = &mut own {
                *def = self.renamed[def.index()];
            }
            let mut extent = Extent::of(node, &extents);
            let mut new = written.add(own, kind, span);
            // Of `a && b` more may be known than of a name that stands for it: which levels count as read.
            let is_judged = matches!(node, Node::And(..) | Node::Or(..) | Node::Not(_)) && kind == Kind::Bool;
            if id != body.root() && !is_judged && stands_alone(extent, uses[id.index()]) {
                let part = Def { name: "part".to_owned(), origin: Origin::Let, body: written.rooted(new) };
                let def = self.defs.add(part);
                new = written.add(Node::Use { def, path: Path::default() }, kind, span);
                extent = Extent::LEAF;
            }
            renamed.push(new);
            extents.push(extent);
        }
        written.pruned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Precision, verify};
    use crate::plan::prepare;
    use crate::source::Source;

    fn prepared(value: &str) -> Stencil {
        let text = format!("stencil s {{ in a; in b; out r\nr = {value} }}");
        let lowered = crate::check(&Source::new("s", &text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        prepare(&lowered.stencils[0], Precision::F64, true)
    }

    fn deepest(stencil: &Stencil) -> usize {
        let depth = |body: &Body| {
            let mut extents = Vec::new();
            body.iter().for_each(|(_, node)| extents.push(Extent::of(node, &extents)));
            extents.last().map_or(0, |extent| extent.depth)
        };
        stencil.bodies().map(depth).max().unwrap_or(0)
    }

    #[test]
    fn a_deep_sum_is_several_that_go_on_from_each_other() {
        let split = prepared("sum(n in 1..=1000) { a[i+n] * b }");
        assert_eq!(verify(&split), Ok(()));
        assert_eq!(deepest(&split), depth::BODY);
        assert_eq!(split.defs.len(), 5);
        assert_eq!(prepared("sum(n in 1..=190) { a[i+n] * b }").defs.len(), 0);
    }

    /// Each `dot` looks at the one within twice, so the text of all would be 2^40 long.
    #[test]
    fn what_is_looked_at_twice_is_written_once() {
        let doubled = (0..40).fold("a".to_owned(), |inner, _| format!("dot({inner} * [b, 2], [1, b])"));
        let split = prepared(&doubled);
        assert_eq!(verify(&split), Ok(()));
        let longest = split.bodies().map(|body| {
            let mut extents = Vec::new();
            body.iter().for_each(|(_, node)| extents.push(Extent::of(node, &extents)));
            extents.last().map_or(0, |extent| extent.length)
        });
        assert!(longest.max().is_some_and(|length| length < 10 * SHARED));
    }
}
