//! What is evaluated on a level: the nodes that its known conditions let be reached, and which levels they read.
//!
//! The rules are those of [`super::levels`]. Levels on which the same is reached form a [`Class`]: all that depends on the
//! level alone (which reads count, what an evaluation costs) is asked once a class, however many levels a grid has.

use super::bounds::within;
use super::levels::{Known, candidates};
use super::runs::runs;
use crate::ir::program::GridAxis;
use crate::ir::scalar::Value;
use crate::ir::{Body, DefId, FieldId, Handle, Kind, Levels, Node, Stencil};
use crate::ir::{known_defs, known_nodes};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The nodes that a level evaluates: a truth for each node of a body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reached {
    /// Of each store.
    pub stores: Vec<Vec<bool>>,
    /// Of each definition, for every shift of levels at which it is used.
    pub defs: BTreeMap<(DefId, i32), Vec<bool>>,
}

/// Levels that evaluate the same.
#[derive(Clone, Debug)]
pub struct Class {
    /// Which levels, as runs.
    pub levels: Vec<Range<usize>>,
    /// What they evaluate.
    pub reached: Reached,
}

/// A condition on the level that lets a read be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guard {
    /// Where it is written.
    pub span: Span,
    /// Whether it holds where the read is reached.
    pub holds: bool,
}

/// A read of a field with levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRead {
    /// The field.
    pub field: FieldId,
    /// How many levels from the one that is computed.
    pub shift: i32,
    /// Where it is written.
    pub span: Span,
    /// The innermost guards around it, each by another way to it; none if some way is without.
    pub guards: BTreeSet<Guard>,
}

/// The levels of a grid by what they evaluate, in the order of their first levels.
pub fn classes(stencil: &Stencil, known: &Known, nk: usize) -> Vec<Class> {
    classes_of(stencil, known, 0..nk)
}

/// The same of some levels.
pub fn classes_of(stencil: &Stencil, known: &Known, levels: Range<usize>) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    let mut numbers: HashMap<Reached, usize> = HashMap::new();
    for run in runs(known, levels, None) {
        let reached = reached(stencil, known, run.start);
        let number = *numbers.entry(reached).or_insert_with_key(|reached| {
            classes.push(Class { levels: Vec::new(), reached: reached.clone() });
            classes.len() - 1
        });
        match classes[number].levels.last_mut() {
            Some(before) if before.end == run.start => before.end = run.end,
            _ => classes[number].levels.push(run),
        }
    }
    classes
}

/// The reads that leave a grid of `nk` levels, and on which of those that are to be computed, in the order of classes.
pub fn outside(stencil: &Stencil, known: &Known, nk: usize) -> Vec<(LevelRead, Vec<usize>)> {
    let mut outside = Vec::new();
    for class in classes_of(stencil, known, within(known, GridAxis::K, candidates(stencil, 0..nk))) {
        for read in class.level_reads(stencil) {
            let count = stencil.fields[read.field].place.levels.count(nk) as i64;
            let is_outside = |&level: &usize| !(0..count).contains(&(level as i64 + i64::from(read.shift)));
            let levels: Vec<usize> = class.levels.iter().cloned().flatten().filter(is_outside).collect();
            outside.push((read, levels));
        }
    }
    outside.retain(|(_, levels)| !levels.is_empty());
    outside
}

/// The most reads that a message names.
const NAMED: usize = 3;

/// Which reads would leave a grid of `nk` levels, and at which of them.
pub fn leaving(stencil: &Stencil, known: &Known, nk: usize) -> String {
    let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (read, levels) in outside(stencil, known, nk) {
        found.entry((read.field, read.shift)).or_default().extend(levels);
    }
    let others = found.len().saturating_sub(NAMED);
    let mut parts: Vec<String> = Vec::new();
    for ((field, shift), levels) in found.into_iter().take(NAMED) {
        let (first, last) = levels.iter().fold((usize::MAX, 0), |(a, b), &level| (a.min(level), b.max(level)));
        let at = if first == last { format!("k = {first}") } else { format!("k = {first} to {last}") };
        let offset = if shift == 0 { String::new() } else { format!("[k{shift:+}]") };
        parts.push(format!("`{}{offset}` would leave the grid at {at}", stencil.fields[field].name));
    }
    if others > 0 {
        parts.push(format!("and {others} more would"));
    }
    parts.join(", ")
}

/// What one level evaluates.
pub fn reached(stencil: &Stencil, known: &Known, level: usize) -> Reached {
    let mut result = Reached::default();
    let mut uses: BTreeSet<(DefId, i32)> = BTreeSet::new();
    let known_defs = known_defs(stencil);
    let mark = |body: &Body, level: i64| mark(body, &known.values(body, level), &known_nodes(body, &known_defs));
    for store in &stencil.stores {
        let nodes = mark(&store.body, level as i64);
        note_uses(&store.body, &nodes, 0, &mut uses);
        result.stores.push(nodes);
    }
    // Users come after what they use.
    while let Some((def, shift)) = uses.pop_last() {
        let body = &stencil.defs[def].body;
        let nodes = mark(body, level as i64 + i64::from(shift));
        note_uses(body, &nodes, shift, &mut uses);
        result.defs.insert((def, shift), nodes);
    }
    result
}

fn note_uses(body: &Body, reached: &[bool], shift: i32, uses: &mut BTreeSet<(DefId, i32)>) {
    let reached = body.iter().filter(|(id, _)| reached[id.index()]).filter_map(|(_, node)| node.used());
    uses.extend(reached.map(|(def, path)| (def, shift.saturating_add(path.levels()))));
}

/// The nodes that are evaluated where conditions have these values. The right side of an `&&` or `||` that is `known` on
/// every level counts as evaluated even where the left side decides: it reads nothing, and levels that differ in no more
/// than that are not worth telling apart.
fn mark(body: &Body, values: &[Option<Value>], known: &[bool]) -> Vec<bool> {
    let mut reached = vec![false; body.len()];
    reached[body.root().index()] = true;
    for (id, node) in body.iter().rev() {
        if !reached[id.index()] {
            continue;
        }
        let connects = matches!(node, Node::And(..) | Node::Or(..));
        for (operand, condition) in node.guarded_operands() {
            let is_out = condition.is_some_and(|(id, truth)| values[id.index()] == Some(Value::Bool(!truth)));
            reached[operand.index()] |= !is_out || connects && known[operand.index()];
        }
    }
    reached
}

impl Class {
    /// How many levels of `range` belong to it.
    pub fn levels_in(&self, range: &Range<usize>) -> usize {
        self.levels.iter().map(|run| run.end.min(range.end).saturating_sub(run.start.max(range.start))).sum()
    }

    /// The reads of fields with levels that count, each place in the text once for every shift.
    pub fn level_reads(&self, stencil: &Stencil) -> Vec<LevelRead> {
        let known = known_defs(stencil);
        let of_level = level_defs(stencil, &known);
        let mut reads: Vec<LevelRead> = Vec::new();
        // The guards of a definition's uses, by definition and shift; nothing stands for a way without.
        let mut uses: BTreeMap<(DefId, i32), BTreeSet<Option<Guard>>> = BTreeMap::new();
        let stores = stencil.stores.iter().zip(&self.reached.stores).map(|(store, nodes)| (None, &store.body, nodes));
        let defs = self.reached.defs.iter().rev().map(|(&at, nodes)| (Some(at), &stencil.defs[at.0].body, nodes));
        for (at, body, nodes) in stores.chain(defs) {
            let outside = at.map_or(BTreeSet::from([None]), |at| uses.remove(&at).unwrap_or_default());
            let shift = at.map_or(0, |(_, shift)| shift);
            let own = guards(body, nodes, &known, &of_level);
            for (id, node) in body.iter().filter(|(id, _)| nodes[id.index()]) {
                let around = match own[id.index()] {
                    Some(guard) => BTreeSet::from([Some(guard)]),
                    None => outside.clone(),
                };
                match node {
                    Node::Use { def, path } => {
                        uses.entry((*def, shift.saturating_add(path.levels()))).or_default().extend(around);
                    }
                    Node::Read { field, path, by: None, .. } if stencil.fields[*field].place.levels != Levels::None => {
                        // What is reached by a way without guards has none.
                        let guards = around.into_iter().collect::<Option<_>>().unwrap_or_default();
                        let shift = shift.saturating_add(path.levels());
                        reads.push(LevelRead { field: *field, shift, span: body.span_of(id), guards });
                    }
                    _ => {}
                }
            }
        }
        reads
    }
}

/// Which known definitions depend on the level.
fn level_defs(stencil: &Stencil, known: &[bool]) -> Vec<bool> {
    stencil.of_defs(|body, of_level| known[of_level.len()] && body.any(of_level, |node| *node == Node::Level))
}

/// Of each node the innermost condition around it that the level decides, wholly or in part.
fn guards(body: &Body, reached: &[bool], known_defs: &[bool], level_defs: &[bool]) -> Vec<Option<Guard>> {
    let known = known_nodes(body, known_defs);
    let any = |node: &Node, truths: &[bool]| node.operands().iter().any(|operand| truths[operand.index()]);
    let of_level = body.of_nodes(|_, node, of_level| {
        let uses_such = node.used().is_some_and(|(def, _)| level_defs[def.index()]);
        *node == Node::Level || uses_such || any(node, of_level)
    });
    let decides = body.of_nodes(|id, node, decides| {
        let connective = matches!(node, Node::And(..) | Node::Or(..) | Node::Not(_));
        let is_truth = body.kind_of(id) == Kind::Bool;
        is_truth && (known[id.index()] && of_level[id.index()] || connective && any(node, decides))
    });
    let mut guards: Vec<Option<Guard>> = vec![None; body.len()];
    for (id, node) in body.iter().rev().filter(|(id, _)| reached[id.index()]) {
        let around = guards[id.index()];
        for (operand, condition) in node.guarded_operands() {
            let own = condition.filter(|(condition, _)| decides[condition.index()]);
            let own = own.map(|(condition, holds)| Guard { span: body.span_of(condition), holds });
            guards[operand.index()] = own.or(around);
        }
    }
    guards
}
