//! Cuts sums where levels change, so that what a level gives can be added as soon as it is there.
//!
//! A sum is a chain: each link adds a term to what stands before it. If its terms do not all read the same highest level, each link
//! becomes a definition; but not if values are late ([`Timing`]) and it reads no level below the cell's, whose planes are still there then.
//! Walking along k, a link then computes on the level that its term reads, and what it comes to waits in a register for the next level: the output queue of O. Anjum, G. de Gonzalo Simon, M. Hidayetoglu and W. Hwu, "An Efficient GPU
//! Implementation Technique for Higher-Order 3D Stencils" (2019). A definition rounds nothing, so no bit changes.

use super::flow::Timing;
use crate::ir::{Arena, Binary, Body, Def, DefId, Function, Handle, Kind, Levels, Node, NodeId, Origin, Path, Stencil};
use std::collections::{BTreeMap, BTreeSet};

/// The stencil with its sums over several levels cut, and which definitions are links.
pub fn cut(stencil: &Stencil, timing: Timing) -> (Stencil, BTreeSet<DefId>) {
    let links = BTreeSet::new();
    let mut own = Cutter { old: stencil, timing, made: Arena::new(), highest: Vec::new(), renamed: Vec::new(), links };
    for (_, def) in stencil.defs.iter() {
        let highest = own.highest_in(&def.body).last().copied().flatten();
        let body = own.body(&def.body, &def.name);
        let renamed = own.made.add(Def { body, ..def.clone() });
        own.highest.push(highest);
        own.renamed.push(renamed);
    }
    let mut cut = stencil.clone();
    for store in &mut cut.stores {
        store.body = own.body(&store.body, &stencil.fields[store.field].name);
    }
    // Nobody asks a kernel of whole steps for what else there is.
    cut.spare.clear();
    cut.prints.clear();
    cut.defs = own.made;
    (cut, own.links)
}

/// The highest level that something reads, from the cell's; nothing of what reads none.
type Highest = Option<i32>;

struct Cutter<'a> {
    old: &'a Stencil,
    timing: Timing,
    made: Arena<DefId, Def>,
    /// By definitions of the old stencil.
    highest: Vec<Highest>,
    renamed: Vec<DefId>,
    links: BTreeSet<DefId>,
}

/// What a link adds to, if a node is one.
fn before(body: &Body, id: NodeId) -> Option<NodeId> {
    match &body[id] {
        _ if body.kind_of(id) != Kind::Real => None,
        Node::Binary(Binary::Add | Binary::Sub, sum, _) => Some(*sum),
        Node::Call(Function::Fma, operands) => operands.last().copied(),
        _ => None,
    }
}

impl Cutter<'_> {
    /// By nodes of a body of the old stencil.
    fn highest_in(&self, body: &Body) -> Vec<Highest> {
        body.of_nodes(|_, node, made: &[Highest]| {
            let own = match node {
                Node::Read { field, path, .. } => {
                    (self.old.fields[*field].place.levels != Levels::None).then(|| path.levels())
                }
                Node::Use { def, path } => self.highest[def.index()].map(|level| level.saturating_add(path.levels())),
                _ => None,
            };
            node.operands().into_iter().map(|operand| made[operand.index()]).fold(own, Highest::max)
        })
    }

    /// A body of the old stencil, with the links of its chains as definitions.
    fn body(&mut self, body: &Body, name: &str) -> Body {
        let highest = self.highest_in(body);
        let mut cut: BTreeMap<NodeId, DefId> = BTreeMap::new();
        for chain in chains(body) {
            let own = |link: &NodeId| highest[link.index()];
            let is_of_one = chain.iter().all(|link| own(link) == own(&chain[0]));
            // What lies at the cell's level and above is still there when the sum is complete.
            let is_late = self.timing == Timing::Late && own(&chain[0]).is_none_or(|lowest| lowest >= 0);
            if is_of_one || is_late {
                continue;
            }
            for link in chain {
                let part = self.copy(body, link, &cut);
                let def = self.made.add(Def { name: name.to_owned(), origin: Origin::Let, over: None, body: part });
                cut.insert(link, def);
                self.links.insert(def);
            }
        }
        self.copy(body, body.root(), &cut)
    }

    /// The part of a body that a node is, with uses of what has become a definition.
    fn copy(&self, body: &Body, root: NodeId, cut: &BTreeMap<NodeId, DefId>) -> Body {
        let mut waiting = BTreeSet::from([root]);
        let mut needed = Vec::new();
        while let Some(id) = waiting.pop_last() {
            if !cut.contains_key(&id) {
                waiting.extend(body[id].operands());
            }
            needed.push(id);
        }
        needed.reverse();
        let mut part = Body::new();
        for &id in &needed {
            let node = match (cut.get(&id), &body[id]) {
                (Some(&def), _) => Node::Use { def, path: Path::default() },
                (None, Node::Use { def, path }) => Node::Use { def: self.renamed[def.index()], path: path.clone() },
                (None, node) => {
                    node.map_operands(|operand| needed.binary_search(&operand).map_or(operand, NodeId::new))
                }
            };
            part.add(node, body.kind_of(id), body.span_of(id));
        }
        part
    }
}

/// The chains of a body, each from what it begins with to its last link; inner ones before those around them.
fn chains(body: &Body) -> Vec<Vec<NodeId>> {
    let times = body.times_used();
    let mut is_within = vec![false; body.len()];
    for (id, _) in body.iter() {
        // What somebody else looks at, too, ends a chain.
        if let Some(sum) = before(body, id).filter(|sum| times[sum.index()] == 1) {
            is_within[sum.index()] = true;
        }
    }
    let ends = body.iter().filter(|(id, _)| !is_within[id.index()] && before(body, *id).is_some());
    let chain = |(end, _): (NodeId, &Node)| {
        let mut links = vec![end];
        while let Some(sum) = links.last().and_then(|&link| before(body, link)) {
            links.push(sum);
            if !is_within[sum.index()] {
                break;
            }
        }
        links.reverse();
        links
    };
    ends.map(chain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Precision;
    use crate::plan::prepare;
    use crate::source::Source;

    fn told(body: &str) -> String {
        let text = format!("stencil s {{ in a, b; out r\n{body} }}");
        let stencil = prepare(&crate::check(&Source::new("s", &text)).stencils[0], Precision::F64, true);
        let text = cut(&stencil, Timing::Early).0.to_string();
        let lines = text.lines().skip(4).map(str::trim).filter(|line| *line != "}");
        lines.collect::<Vec<&str>>().join("\n")
    }

    #[test]
    fn a_sum_is_cut_at_each_of_its_terms() {
        insta::assert_snapshot!(told("r = a[k-1] + 2*a[i+1] + b + a[k+1]"), @r"
        let r.0: real = a[k-1]
        let r.1: real = fma(2.0, a[i+1], r.0)
        let r.2: real = r.1 + b
        let r.3: real = r.2 + a[k+1]
        r = r.3
        ");
    }

    #[test]
    fn what_reads_one_level_stays_as_it_is() {
        insta::assert_snapshot!(told("r = a[i-1, k+1] + 2*a[i+1, k+1] + b[k+1]"), @"r = fma(2.0, a[i+1, k+1], a[i-1, k+1]) + b[k+1]");
    }

    #[test]
    fn sums_within_products_are_cut_and_what_two_look_at_ends_a_chain() {
        insta::assert_snapshot!(told("let s = b * (a[k-1] + a)\nr = s * (a[k-1] - a[k+1]) + s[k+1]"), @r"
        let s.0: real = a[k-1]
        let s.1: real = s.0 + a
        let s.2: real = b * s.1
        let r.3: real = a[k-1]
        let r.4: real = r.3 - a[k+1]
        r = fma(s.2, r.4, s.2[k+1])
        ");
    }
}
