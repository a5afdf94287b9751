//! Runs of levels on which all that is known of a level is the same, so that one of them tells what holds on all.
//!
//! What changes from level to level is whether comparisons of `k` hold and whether reads leave their field. Where the first
//! compare `k`, shifted by a number, with a number, both are known without looking at each level.

use super::levels::{Known, knowable_nodes, known_defs};
use crate::ir::scalar::Value;
use crate::ir::{Binary, Body, DefId, Handle, Kind, Levels, Node, NodeId};
use std::collections::BTreeSet;
use std::ops::Range;

/// Numbers beyond this are not reckoned with here, lest anything overflows.
const FAR: i64 = 1 << 30;

/// How a whole number depends on the level.
#[derive(Clone, Copy, PartialEq)]
enum Depends {
    /// Not at all.
    Not,
    /// It is the level and so much more.
    Shifted(i64),
    /// In another way.
    Else,
}

/// The runs that some levels fall into, in their order. `there` says which levels of each field may be read; if nothing is said,
/// those that it has.
pub fn runs(known: &Known, levels: Range<usize>, there: Option<&[Range<usize>]>) -> Vec<Range<usize>> {
    let mut finder = Finder { known, defs: Vec::new(), points: BTreeSet::new() };
    if !finder.find(there) {
        return levels.map(|level| level..level + 1).collect();
    }
    let inside = finder.points.range(levels.start as i64 + 1..(levels.end as i64).max(levels.start as i64 + 1));
    let mut starts = vec![levels.start];
    starts.extend(inside.map(|&point| point as usize));
    let ends = starts.iter().skip(1).copied().chain([levels.end]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).filter(|run| !run.is_empty()).collect()
}

/// By definition of a stencil, then by store: the nodes whose known values may differ within a run, operands before those made of
/// them.
pub fn differing(known: &Known) -> [Vec<Vec<NodeId>>; 2] {
    let stencil = known.stencil();
    let known_defs = known_defs(stencil);
    let mut finder = Finder { known, defs: Vec::new(), points: BTreeSet::new() };
    let of = |finder: &Finder, body: &Body| {
        let (depends, _) = finder.nodes(body, &known_defs);
        let knowable = knowable_nodes(body, &known_defs);
        // What is true on a level is true on all of its run.
        let differs = |id: &NodeId| {
            knowable[id.index()] && depends[id.index()] != Depends::Not && body.kind_of(*id) != Kind::Bool
        };
        body.iter().map(|(id, _)| id).filter(differs).collect::<Vec<NodeId>>()
    };
    let mut defs = Vec::new();
    for (_, def) in stencil.defs.iter() {
        defs.push(of(&finder, &def.body));
        let own = finder.nodes(&def.body, &known_defs).0.last().copied().unwrap_or(Depends::Else);
        finder.defs.push(own);
    }
    [defs, stencil.stores.iter().map(|store| of(&finder, &store.body)).collect()]
}

struct Finder<'a, 'b> {
    known: &'a Known<'b>,
    /// Of each definition that is known.
    defs: Vec<Depends>,
    /// Levels that may differ from those before them.
    points: BTreeSet<i64>,
}

impl Finder<'_, '_> {
    /// Finds all points; or says that each level may be different.
    fn find(&mut self, there: Option<&[Range<usize>]>) -> bool {
        let stencil = self.known.stencil();
        let known_defs = known_defs(stencil);
        for (_, def) in stencil.defs.iter() {
            let own = self.nodes(&def.body, &known_defs).0.last().copied().unwrap_or(Depends::Else);
            self.defs.push(own);
        }
        let mut waiting: BTreeSet<(DefId, i32)> = BTreeSet::new();
        for store in &stencil.stores {
            if !self.body(&store.body, 0, &known_defs, there, &mut waiting) {
                return false;
            }
        }
        // Users come after what they use.
        while let Some((def, shift)) = waiting.pop_last() {
            if !self.body(&stencil.defs[def].body, shift, &known_defs, there, &mut waiting) {
                return false;
            }
        }
        true
    }

    /// The points of a body that is evaluated `shift` levels away.
    fn body(
        &mut self,
        body: &Body,
        shift: i32,
        known_defs: &[bool],
        there: Option<&[Range<usize>]>,
        waiting: &mut BTreeSet<(DefId, i32)>,
    ) -> bool {
        let (depends, values) = self.nodes(body, known_defs);
        let knowable = knowable_nodes(body, known_defs);
        for (id, node) in body.iter() {
            match node {
                Node::Read { field, path, .. } => {
                    let place = self.known.stencil().fields[*field].place;
                    if place.levels != Levels::None {
                        let all = 0..place.levels.count(self.known.levels());
                        let own = there.map_or(&all, |there| &there[field.index()]);
                        let by = i64::from(shift) + i64::from(path.levels());
                        self.points.extend([own.start as i64 - by, own.end as i64 - by]);
                    }
                }
                Node::Use { def, path } => {
                    waiting.insert((*def, shift.saturating_add(path.levels())));
                }
                Node::Compare(_, a, b) if knowable[id.index()] => {
                    let number = |value: Option<Value>| match value {
                        Some(Value::Int(x)) => Some(i64::from(x)),
                        Some(Value::Real(_) | Value::Bool(_)) | None => None,
                    };
                    let (own, other) = match (depends[a.index()], depends[b.index()]) {
                        (Depends::Not, Depends::Not) | (Depends::Shifted(_), Depends::Shifted(_)) => continue,
                        (Depends::Shifted(by), Depends::Not) => (by, number(values[b.index()])),
                        (Depends::Not, Depends::Shifted(by)) => (by, number(values[a.index()])),
                        (Depends::Else, _) | (_, Depends::Else) => return false,
                    };
                    let Some(other) = other.filter(|other| other.abs() < FAR) else { return false };
                    let point = other - own - i64::from(shift);
                    self.points.extend([point, point + 1]);
                }
                Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_) | Node::Level | Node::LevelCount => {}
                Node::Present { .. } | Node::ToReal(_) | Node::ToSingle(_) | Node::Negate(_) | Node::Not(_) => {}
                Node::Binary(..) | Node::Compare(..) | Node::And(..) | Node::Or(..) => {}
                Node::Call(..) | Node::Choose { .. } => {}
            }
        }
        true
    }

    /// How each node of a body that may be known depends on the level, and its value on level 0.
    fn nodes(&self, body: &Body, known_defs: &[bool]) -> (Vec<Depends>, Vec<Option<Value>>) {
        let values = self.known.values(body, 0);
        let knowable = knowable_nodes(body, known_defs);
        let mut depends: Vec<Depends> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let shifted = |by: i64| if by.abs() < FAR { Depends::Shifted(by) } else { Depends::Else };
            let whole = |of: NodeId, sign: i64| match values[of.index()] {
                Some(Value::Int(x)) => Some(sign * i64::from(x)),
                Some(Value::Real(_) | Value::Bool(_)) | None => None,
            };
            let of = |of: &NodeId| depends[of.index()];
            depends.push(match node {
                _ if !knowable[id.index()] => Depends::Else,
                Node::Level => Depends::Shifted(0),
                Node::Use { def, path } => match self.defs.get(def.index()) {
                    Some(Depends::Shifted(by)) => shifted(by + i64::from(path.levels())),
                    Some(other) => *other,
                    None => Depends::Else,
                },
                _ if node.operands().iter().all(|operand| of(operand) == Depends::Not) => Depends::Not,
                Node::Binary(Binary::Add, a, b) => match (of(a), of(b), whole(*a, 1), whole(*b, 1)) {
                    (Depends::Shifted(by), Depends::Not, _, Some(more)) => shifted(by + more),
                    (Depends::Not, Depends::Shifted(by), Some(more), _) => shifted(by + more),
                    _ => Depends::Else,
                },
                Node::Binary(Binary::Sub, a, b) => match (of(a), of(b), whole(*b, -1)) {
                    (Depends::Shifted(by), Depends::Not, Some(more)) => shifted(by + more),
                    _ => Depends::Else,
                },
                _ => Depends::Else,
            });
        }
        (depends, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::levels::readable;
    use crate::analysis::reached::classes;
    use crate::ir::{Precision, Stencil};
    use crate::plan::prepare;
    use crate::source::Source;

    fn prepared(text: &str) -> Stencil {
        let lowered = crate::check(&Source::new("own", text));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        prepare(&lowered.stencils[0], Precision::F64, true)
    }

    #[test]
    fn many_branches_on_many_levels_make_few_runs() {
        // Were each level looked at, 40 million conditions would be evaluated.
        let branches: String = (0..399).map(|n| format!("if k == {n} {{ a[k-{n}] }} else ")).collect();
        let stencil = prepared(&format!("stencil s {{ in a; out b; b = {branches} {{ a[k-1] }} }}"));
        let known = Known::new(&stencil, Precision::F64, 100_000, &[]);
        let runs = runs(&known, 0..100_000, None);
        assert!(runs.len() < 1_300, "{}", runs.len());
        assert_eq!(readable(&known, 0..100_000, None).len(), 100_000);
        assert!(classes(&stencil, &known, 100_000).len() <= 400);
    }

    #[test]
    fn levels_of_a_run_are_alike() {
        // Of each: what is found by runs is what is found level by level.
        for text in [
            "stencil s { in a; out b; b = if k < 3 { a[k+1] } else { a[k-2] } }",
            "stencil s { in a; out b; let n = nk - 2; let m = k + 1; b = if m[k+2] >= n { a[k-1] } else { a[k+2] } }",
            "stencil s { in a; out b; let c = if k == 4 { a } else { a[k+1] }; b = c[k-1] + c[k+1] }",
            "stencil s { in a; out b; b = if 2*k > 7 { a[k-1] } else { a[k+1] } }",
            "stencil s { in a; out b; b = if k > 2.5 && (k != 5 || a > 0) { a[k-1] } else { a[k+1] } }",
            "stencil s { in a; in z on (i, j, k+1); out b; b = if !(3 <= k) { z[k+1] } else { a[k+3] } }",
            "stencil s { in a; param n: int; out b; b = if k - n > -3 { a[k-1] } else { a } }",
        ] {
            let stencil = prepared(text);
            for nk in [1, 2, 5, 9] {
                let params: Vec<Value> = stencil.params.iter().map(|_| Value::Int(4)).collect();
                let known = Known::new(&stencil, Precision::F64, nk, &params);
                let alone = (0..nk).filter(|&level| !readable(&known, level..level + 1, None).is_empty());
                assert_eq!(readable(&known, 0..nk, None), alone.collect::<Vec<_>>(), "{text} {nk}");
                let there: Vec<Range<usize>> = stencil.fields.iter().map(|_| 1..nk).collect();
                let alone = (0..nk).filter(|&level| !readable(&known, level..level + 1, Some(&there)).is_empty());
                assert_eq!(readable(&known, 0..nk, Some(&there)), alone.collect::<Vec<_>>(), "{text} {nk}");
            }
        }
    }

    #[test]
    fn one_level_tells_what_is_known_on_its_run() {
        for text in [
            "stencil s { in a; out b; b = if k < 3 { a + k } else { 2*k } }",
            "stencil s { in a; out b; b = if 1.0 == 0 && a < 2 { 1 } else { k } }",
            "stencil s { in a; out b; b = if k == 4 || a < 2 { k - 1 } else { nk } }",
            "stencil s { in a; out b; b = if (if k != k && a > 0 { 2 } else { k }) > 3 { a } else { 2*a } }",
            "stencil s { in a; param n: int; out b; b = if n == 4 || a > 1 { k*n } else { a } + k }",
            "stencil s { in a: bool; out b; let c = if k > 1 && a { 7 } else { k }; b = c + k }",
            "stencil s { in a: bool; out b; let c = 1 == 0 && a; let d = k + 1; b = if c { 1 } else { d } }",
        ] {
            let stencil = prepared(text);
            let params: Vec<Value> = stencil.params.iter().map(|_| Value::Int(4)).collect();
            let known = Known::new(&stencil, Precision::F64, 9, &params);
            let [_, differing] = differing(&known);
            for run in runs(&known, 0..9, None) {
                for (store, differing) in stencil.stores.iter().zip(&differing) {
                    let first = known.values(&store.body, run.start as i64);
                    for level in run.clone() {
                        let mut own = first.clone();
                        known.change(&store.body, level as i64, differing, &mut own);
                        assert_eq!(own, known.values(&store.body, level as i64), "{text} {level}");
                    }
                }
            }
        }
    }
}
