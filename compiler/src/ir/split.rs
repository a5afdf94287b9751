//! Makes several bodies of one that C++ compilers would find too deep, or whose text would be too long.
//!
//! A part with a name of its own is the same bits: fused multiply-adds are formed before.

use super::walk::{known_defs, known_nodes};
use super::{Arena, Body, Def, DefId, Handle, Kind, Node, NodeId, Origin, Path, SetId, Stencil};
use crate::depth;

/// What several nodes of a body look at is written once if it has more operations than this. A text holds it once for each,
/// and what is in it once for each of these: twice as much at every step.
const SHARED: usize = 500;

/// So many `&&` and `||` are in one text at most, or twice as many: each is a branch, and NVRTC takes a time that grows with the
/// cube of how many follow each other.
const TRUTHS: usize = 48;

/// `stencil` with bodies that are nested no deeper than [`depth::BODY`].
pub fn split(stencil: &Stencil) -> Stencil {
    let mut all = stencil.bodies().chain(stencil.spare.iter().map(|store| &store.body));
    if !all.any(is_large) && !stencil.prints.iter().any(|print| is_large(&print.body)) {
        return stencil.clone();
    }
    let mut splitter = Splitter { defs: Arena::new(), renamed: Vec::new(), known: known_defs(stencil), over: None };
    for (_, def) in stencil.defs.iter() {
        splitter.over = def.over;
        let body = splitter.split(&def.body);
        let renamed = splitter.defs.add(Def { body, ..def.clone() });
        splitter.renamed.push(renamed);
    }
    splitter.over = None;
    let mut new = Stencil { defs: Arena::new(), ..stencil.clone() }.map_bodies(|body| splitter.split(body));
    new.defs = splitter.defs;
    new
}

/// How deep a node is nested with operands of these depths, how much its text holds of operands that hold so much, and how much
/// of that is `&&` and `||`.
#[derive(Clone, Copy)]
struct Extent {
    depth: usize,
    length: usize,
    truths: usize,
}

impl Extent {
    const LEAF: Extent = Extent { depth: 1, length: 1, truths: 0 };

    fn of(node: &Node, known: &[Extent]) -> Extent {
        let own = Extent { truths: usize::from(matches!(node, Node::And(..) | Node::Or(..))), ..Extent::LEAF };
        node.operands().iter().map(|operand| known[operand.index()]).fold(own, |all, operand| Extent {
            depth: all.depth.max(operand.depth + 1),
            length: all.length.saturating_add(operand.length),
            truths: all.truths.saturating_add(operand.truths),
        })
    }
}

/// Whether a body has a part that has to stand alone.
fn is_large(body: &Body) -> bool {
    let (uses, mut extents) = (body.times_used(), Vec::with_capacity(body.len()));
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
    extent.depth >= depth::BODY || extent.truths >= TRUTHS || uses > 1 && extent.length > SHARED
}

/// Collects the definitions of the new stencil.
struct Splitter {
    defs: Arena<DefId, Def>,
    /// By the definitions of the old stencil.
    renamed: Vec<DefId>,
    /// Which of these are known on each level.
    known: Vec<bool>,
    /// Over a mesh, the set at whose elements the body at hand has a value, if it is not the stencil's own.
    over: Option<SetId>,
}

/// Of a truth: what says, by the level and by parameters alone, that it is true, and what says that it is false. Nothing where
/// only fields can tell.
#[derive(Clone, Copy, Default)]
struct Judged {
    yes: Option<NodeId>,
    no: Option<NodeId>,
}

impl Splitter {
    fn split(&mut self, body: &Body) -> Body {
        let (uses, known) = (body.times_used(), known_nodes(body, &self.known));
        let mut written = Body::new();
        let mut renamed: Vec<NodeId> = Vec::with_capacity(body.len());
        let mut extents: Vec<Extent> = Vec::with_capacity(body.len());
        let mut judged: Vec<Judged> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let (kind, span) = (body.kind_of(id), body.span_of(id));
            let mut own = node.map_operands(|operand| renamed[operand.index()]);
            if let Node::Use { def, .. } = &mut own {
                *def = self.renamed[def.index()];
            }
            let mut extent = Extent::of(node, &extents);
            let mut new = written.add(own, kind, span);
            let is_truth = kind == Kind::Bool;
            let mut says = match is_truth && !known[id.index()] {
                true => says(node, &judged, &mut |node| written.add(node, Kind::Bool, span)),
                false => Judged::default(),
            };
            if id != body.root() && stands_alone(extent, uses[id.index()]) {
                let mut name = |written: &mut Body, name: &str, root: NodeId| {
                    let part =
                        Def { name: name.to_owned(), origin: Origin::Let, over: self.over, body: written.rooted(root) };
                    let node = Node::Use { def: self.defs.add(part), path: Path::default() };
                    written.add(node, written.kind_of(root), span)
                };
                new = name(&mut written, "part", new);
                extent = Extent::LEAF;
                // Which levels count as read follows from what is known of a truth, and of a name for it nothing is. So what
                // is known stands beside the name. It comes after it, since what is on the left decides whether what is on
                // the right counts.
                says.yes = says.yes.map(|root| name(&mut written, "always", root));
                says.no = says.no.map(|root| name(&mut written, "never", root));
                let mut join = |node: Node| {
                    extent = Extent { depth: extent.depth + 1, length: extent.length + 2, truths: extent.truths + 1 };
                    written.add(node, Kind::Bool, span)
                };
                if let Some(no) = says.no {
                    let not = join(Node::Not(no));
                    new = join(Node::And(new, not));
                }
                if let Some(yes) = says.yes {
                    new = join(Node::Or(new, yes));
                }
            }
            if is_truth && known[id.index()] {
                says = Judged { yes: Some(new), no: Some(written.add(Node::Not(new), Kind::Bool, span)) };
            }
            renamed.push(new);
            extents.push(extent);
            judged.push(says);
        }
        written.rooted(renamed[body.root().index()])
    }
}

/// What is known of a truth that is made of truths, as [`Rules`](crate::analysis::levels::Rules) say it.
fn says(node: &Node, judged: &[Judged], add: &mut dyn FnMut(Node) -> NodeId) -> Judged {
    let both = |a: Option<NodeId>, b: Option<NodeId>| Some(Node::And(a?, b?));
    let either = |a: Option<NodeId>, b: Option<NodeId>| match (a, b) {
        (Some(a), Some(b)) => Err(Node::Or(a, b)),
        (one, other) => Ok(one.or(other)),
    };
    let (a, b, is_and) = match node {
        Node::And(a, b) => (judged[a.index()], judged[b.index()], true),
        Node::Or(a, b) => (judged[a.index()], judged[b.index()], false),
        Node::Not(a) => return Judged { yes: judged[a.index()].no, no: judged[a.index()].yes },
        _ => return Judged::default(),
    };
    let (all, any) = match is_and {
        true => (both(a.yes, b.yes), either(a.no, b.no)),
        false => (both(a.no, b.no), either(a.yes, b.yes)),
    };
    let all = all.map(&mut *add);
    let any = any.unwrap_or_else(|node| Some(add(node)));
    if is_and { Judged { yes: all, no: any } } else { Judged { yes: any, no: all } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::levels::{Known, readable};
    use crate::ir::scalar::Value;
    use crate::ir::{Precision, Verify};
    use crate::plan::{folded, prepare};
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
        assert_eq!(split.verify(), Ok(()));
        assert_eq!(deepest(&split), depth::BODY);
        assert_eq!(split.defs.len(), 5);
        assert_eq!(prepared("sum(n in 1..=190) { a[i+n] * b }").defs.len(), 0);
    }

    /// How many `&&` and `||` the longest text holds.
    fn most_truths(stencil: &Stencil) -> usize {
        let own = |body: &Body| body.iter().filter(|(_, node)| matches!(node, Node::And(..) | Node::Or(..))).count();
        stencil.bodies().map(own).max().unwrap_or(0)
    }

    /// Which of six levels a stencil computes.
    fn levels(stencil: &Stencil) -> Vec<usize> {
        let params: Vec<Value> = stencil.params.iter().map(|_| Value::Int(2)).collect();
        let known = Known::new(stencil, Precision::F64, 6, &params);
        readable(&known, 0..6, None)
    }

    #[test]
    fn chains_of_truths_are_split_and_guard_what_they_guarded() {
        let many = |term: &dyn Fn(usize) -> String, with: &str| {
            (0..300).map(term).collect::<Vec<_>>().join(&format!(" {with} "))
        };
        let open = many(&|n| format!("a > {n}"), "&&");
        let mixed = many(&|n| if n % 2 == 0 { format!("a > {n}") } else { format!("k < {}", n + 3) }, "&&");
        let either = many(&|n| format!("(k > {n} || a == {n})"), "&&");
        let never = many(&|n| if n % 3 == 0 { "k == 0".to_owned() } else { format!("b > {n}") }, "||");
        let levels_alone = many(&|n| format!("k < nk + {n}"), "&&");
        for (condition, expected) in [
            (open.clone(), 1..6),
            (format!("k > 0 && {open}"), 0..6),
            (format!("{open} && k > 0"), 0..6),
            (format!("{mixed} && k > 0"), 0..6),
            (format!("a[k-1] > 0 && {open} && k > 0"), 1..6),
            (format!("{open} && k > 0 && {open} && a[k-1] > 0 && {open}"), 0..6),
            (format!("{open} && a[k-1] > 0 && {open} && k > 0 && {open}"), 1..6),
            (format!("{either} && k > 0"), 0..6),
            (format!("!({never})"), 0..6),
            (format!("({never}) && false || !({never})"), 0..6),
            (never.clone(), 1..6),
            (format!("{levels_alone} && k > 0"), 0..6),
            (format!("({open} || k > 3) && ({mixed} || k > 1)"), 1..6),
            (format!("{open} && k > p - 2 && {open}"), 0..6),
        ] {
            let value = format!("if {condition} {{ a[k-1] }} else {{ a }}");
            let text = format!("stencil s {{ in a; in b; param p: int = 2; out r\nr = {value} }}");
            let lowered = crate::check(&Source::new("s", &text));
            assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
            let whole = folded(&lowered.stencils[0], Precision::F64, true);
            let split = split(&whole);
            assert_eq!(split.verify(), Ok(()));
            assert!(most_truths(&whole) >= 299 && most_truths(&split) < 3 * TRUTHS, "{}", most_truths(&split));
            let own = &condition[..condition.len().min(60)];
            assert_eq!(levels(&whole), expected.collect::<Vec<_>>(), "{own}");
            assert_eq!(levels(&split), levels(&whole), "{own}");
        }
    }

    /// Each `dot` looks at the one within twice, so the text of all would be 2^40 long.
    #[test]
    fn what_is_looked_at_twice_is_written_once() {
        let doubled = (0..40).fold("a".to_owned(), |inner, _| format!("dot({inner} * [b, 2], [1, b])"));
        let split = prepared(&doubled);
        assert_eq!(split.verify(), Ok(()));
        let longest = split.bodies().map(|body| {
            let mut extents = Vec::new();
            body.iter().for_each(|(_, node)| extents.push(Extent::of(node, &extents)));
            extents.last().map_or(0, |extent| extent.length)
        });
        assert!(longest.max().is_some_and(|length| length < 10 * SHARED));
    }
}
