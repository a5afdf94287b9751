//! Walks: along the nodes of a body, along definitions, and from outputs to all that they need.

use super::{Body, DefId, FieldId, Handle, Node, NodeId, Path, Stencil};
use std::collections::BTreeSet;

impl Body {
    /// What is read, and where, by each node that reads.
    pub fn reads(&self) -> impl Iterator<Item = (FieldId, &Path)> {
        self.iter().filter_map(|(_, node)| match node {
            Node::Read { field, path, .. } => Some((*field, path)),
            _ => None,
        })
    }

    /// Which definitions are used, and where, by each node that uses one.
    pub fn uses(&self) -> impl Iterator<Item = (DefId, &Path)> {
        self.iter().filter_map(|(_, node)| node.used())
    }

    /// Whether any node is such, or uses a definition that is.
    pub fn any(&self, defs: &[bool], is: impl Fn(&Node) -> bool) -> bool {
        self.iter().any(|(_, node)| is(node) || node.used().is_some_and(|(def, _)| defs[def.index()]))
    }

    /// How many operands each node is.
    pub fn times_used(&self) -> Vec<usize> {
        let mut times = vec![0; self.len()];
        for operand in self.iter().flat_map(|(_, node)| node.operands()) {
            times[operand.index()] += 1;
        }
        times
    }

    /// Of each node what `of` makes of it, given what it made of those before.
    pub fn of_nodes<T>(&self, mut of: impl FnMut(NodeId, &Node, &[T]) -> T) -> Vec<T> {
        let mut made = Vec::with_capacity(self.len());
        for (id, node) in self.iter() {
            let own = of(id, node, &made);
            made.push(own);
        }
        made
    }

    /// The same body with other nodes, of the same kinds and operands.
    pub fn map_nodes(&self, map: impl FnMut(&Node) -> Node) -> Body {
        Body { nodes: self.nodes.iter().map(map).collect(), kinds: self.kinds.clone(), spans: self.spans.clone() }
    }
}

/// An operand, and this truth value of it.
pub type Condition = (NodeId, bool);

impl Node {
    /// The operands, in order, each with the condition that alone lets it be evaluated, if there is one.
    pub fn guarded_operands(&self) -> Vec<(NodeId, Option<Condition>)> {
        let mut operands: Vec<_> = self.operands().into_iter().map(|operand| (operand, None)).collect();
        match (self, operands.as_mut_slice()) {
            (Node::And(a, _), [_, (_, right)]) => *right = Some((*a, true)),
            (Node::Or(a, _), [_, (_, right)]) => *right = Some((*a, false)),
            (Node::Choose { condition, .. }, [_, (_, yes), (_, no)]) => {
                (*yes, *no) = (Some((*condition, true)), Some((*condition, false)));
            }
            _ => {}
        }
        operands
    }

    /// The definition that it uses, and where.
    pub fn used(&self) -> Option<(DefId, &Path)> {
        match self {
            Node::Use { def, path } => Some((*def, path)),
            _ => None,
        }
    }
}

impl Stencil {
    /// What its outputs, and what it carries, are assigned.
    pub fn outputs(&self) -> impl Iterator<Item = &Body> {
        self.stores.iter().map(|store| &store.body)
    }

    /// Of each definition what `of` makes of its body, given what it made of those before.
    pub fn of_defs<T>(&self, mut of: impl FnMut(&Body, &[T]) -> T) -> Vec<T> {
        let mut made = Vec::with_capacity(self.defs.len());
        for (_, def) in self.defs.iter() {
            let own = of(&def.body, &made);
            made.push(own);
        }
        made
    }

    /// Looks at some outputs, `here`, and at each definition that they need, wherever it is used: `then` says where a path from
    /// a place leads. Users come before what they use.
    pub fn at_places<'a, P: Ord>(
        &'a self,
        outputs: impl IntoIterator<Item = &'a Body>,
        here: P,
        then: impl Fn(&P, &Path) -> P,
        mut look: impl FnMut(Option<DefId>, &'a Body, &P),
    ) {
        let mut waiting: BTreeSet<(DefId, P)> = BTreeSet::new();
        for body in outputs {
            look(None, body, &here);
            waiting.extend(body.uses().map(|(def, path)| (def, then(&here, path))));
        }
        while let Some((def, place)) = waiting.pop_last() {
            let body = &self.defs[def].body;
            look(Some(def), body, &place);
            waiting.extend(body.uses().map(|(def, path)| (def, then(&place, path))));
        }
    }

    /// Looks at its outputs, `here`, and once at each definition that they need: `join` makes one of two places where it is used.
    pub fn at_joined_places<P: Copy>(
        &self,
        here: P,
        then: impl Fn(P, &Path) -> P,
        join: impl Fn(P, P) -> P,
        mut look: impl FnMut(&Body, P),
    ) {
        let mut places: Vec<Option<P>> = vec![None; self.defs.len()];
        let mut visit = |body: &Body, at: P, places: &mut [Option<P>]| {
            look(body, at);
            for (def, path) in body.uses() {
                let (known, next) = (&mut places[def.index()], then(at, path));
                *known = Some(known.map_or(next, |known| join(known, next)));
            }
        };
        self.outputs().for_each(|body| visit(body, here, &mut places));
        for (id, def) in self.defs.iter().rev() {
            if let Some(at) = places[id.index()] {
                visit(&def.body, at, &mut places);
            }
        }
    }
}

/// Which definitions are made of `k`, `nk`, numbers and parameters alone.
pub fn known_defs(stencil: &Stencil) -> Vec<bool> {
    stencil.of_defs(|body, known| known_nodes(body, known).last().copied().unwrap_or(false))
}

/// Which nodes of a body are made of `k`, `nk`, numbers and parameters alone.
pub fn known_nodes(body: &Body, known_defs: &[bool]) -> Vec<bool> {
    body.of_nodes(|_, node, known| match node {
        Node::Read { .. } | Node::Present { .. } | Node::InZone(_) => false,
        Node::Use { def, .. } => known_defs[def.index()],
        _ => node.operands().iter().all(|operand| known[operand.index()]),
    })
}
