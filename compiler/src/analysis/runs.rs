//! Runs of levels on which all that is known of a level is the same, so that one of them tells what holds on all.
//!
//! What changes from level to level is whether comparisons of `k` hold and whether reads leave their field. Where the first
//! compare `k`, shifted by a number, with a number, both are known without looking at each level.

use super::bounds;
use super::levels::{Known, knowable_nodes};
use crate::ir::known_defs;
use crate::ir::program::GridAxis;
use crate::ir::scalar::Value;
use crate::ir::{Binary, Body, Handle, Kind, Levels, Node, NodeId, Path};
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
    let Some(points) = Finder::new(known).points(there) else {
        return levels.map(|level| level..level + 1).collect();
    };
    let inside = points.range(levels.start as i64 + 1..(levels.end as i64).max(levels.start as i64 + 1));
    let mut bounds = vec![levels.start];
    bounds.extend(inside.map(|&point| point as usize));
    bounds.push(levels.end);
    bounds.windows(2).map(|pair| pair[0]..pair[1]).filter(|run| !run.is_empty()).collect()
}

/// By definition of a stencil, then by store: the nodes whose known values may differ within a run, operands before those made of
/// them.
pub fn differing(known: &Known) -> [Vec<Vec<NodeId>>; 2] {
    let (finder, stencil) = (Finder::new(known), known.stencil());
    let of = |body: &Body| {
        let (depends, _) = finder.nodes(body, &finder.defs);
        let knowable = knowable_nodes(body, &finder.known_defs);
        // What is true on a level is true on all of its run.
        let differs = |id: &NodeId| {
            knowable[id.index()] && depends[id.index()] != Depends::Not && body.kind_of(*id) != Kind::Bool
        };
        body.iter().map(|(id, _)| id).filter(differs).collect::<Vec<NodeId>>()
    };
    [stencil.of_defs(|body, _| of(body)), stencil.outputs().map(of).collect()]
}

struct Finder<'a, 'b> {
    known: &'a Known<'b>,
    known_defs: Vec<bool>,
    /// Of each definition that is known.
    defs: Vec<Depends>,
}

impl<'a, 'b> Finder<'a, 'b> {
    fn new(known: &'a Known<'b>) -> Self {
        let stencil = known.stencil();
        let mut finder = Self { known, known_defs: known_defs(stencil), defs: Vec::new() };
        finder.defs = stencil.of_defs(|body, defs| finder.nodes(body, defs).0.last().copied().unwrap_or(Depends::Else));
        finder
    }

    /// The levels that may differ from those before them; nothing if each level may be different.
    fn points(&self, there: Option<&[Range<usize>]>) -> Option<BTreeSet<i64>> {
        let (stencil, mut points) = (self.known.stencil(), Some(BTreeSet::new()));
        let then = |shift: &i32, path: &Path| shift.saturating_add(path.levels());
        stencil.at_places(stencil.outputs(), 0, then, |_, body, &shift| {
            points = points.take().and_then(|points| self.points_of(body, i64::from(shift), there, points));
        });
        for bound in stencil.bounds(GridAxis::K) {
            let point = bounds::number(self.known, bound).filter(|point| point.abs() < FAR)?;
            points.as_mut()?.extend([point, point + 1]);
        }
        points
    }

    /// The same with those of a body that is evaluated `shift` levels away.
    fn points_of(
        &self,
        body: &Body,
        shift: i64,
        there: Option<&[Range<usize>]>,
        mut points: BTreeSet<i64>,
    ) -> Option<BTreeSet<i64>> {
        for (field, path) in body.reads() {
            let levels = self.known.stencil().fields[field].place.levels;
            if levels != Levels::None {
                let all = 0..levels.count(self.known.levels());
                let own = there.map_or(&all, |there| &there[field.index()]);
                let by = shift + i64::from(path.levels());
                points.extend([own.start as i64 - by, own.end as i64 - by]);
            }
        }
        let (depends, values) = self.nodes(body, &self.defs);
        let knowable = knowable_nodes(body, &self.known_defs);
        for (_, node) in body.iter().filter(|(id, _)| knowable[id.index()]) {
            let Node::Compare(_, a, b) = node else { continue };
            let (own, other) = match (depends[a.index()], depends[b.index()]) {
                (Depends::Not, Depends::Not) | (Depends::Shifted(_), Depends::Shifted(_)) => continue,
                (Depends::Shifted(by), Depends::Not) => (by, whole(values[b.index()])),
                (Depends::Not, Depends::Shifted(by)) => (by, whole(values[a.index()])),
                (Depends::Else, _) | (_, Depends::Else) => return None,
            };
            let point = other.filter(|other| other.abs() < FAR)? - own - shift;
            points.extend([point, point + 1]);
        }
        Some(points)
    }

    /// How each node of a body that may be known depends on the level, given how definitions do, and its value on level 0.
    fn nodes(&self, body: &Body, defs: &[Depends]) -> (Vec<Depends>, Vec<Option<Value>>) {
        let values = self.known.values(body, 0);
        let knowable = knowable_nodes(body, &self.known_defs);
        let shifted = |by: i64| if by.abs() < FAR { Depends::Shifted(by) } else { Depends::Else };
        let depends = body.of_nodes(|id, node, depends| {
            let of = |of: &NodeId| (depends[of.index()], whole(values[of.index()]));
            match node {
                _ if !knowable[id.index()] => Depends::Else,
                Node::Level => Depends::Shifted(0),
                Node::Use { def, path } => match defs.get(def.index()) {
                    Some(Depends::Shifted(by)) => shifted(by + i64::from(path.levels())),
                    Some(other) => *other,
                    None => Depends::Else,
                },
                _ if node.operands().iter().all(|operand| of(operand).0 == Depends::Not) => Depends::Not,
                Node::Binary(op, a, b) => match (of(a), *op, of(b)) {
                    ((Depends::Shifted(by), _), Binary::Add, (Depends::Not, Some(more)))
                    | ((Depends::Not, Some(more)), Binary::Add, (Depends::Shifted(by), _)) => shifted(by + more),
                    ((Depends::Shifted(by), _), Binary::Sub, (Depends::Not, Some(less))) => shifted(by - less),
                    _ => Depends::Else,
                },
                _ => Depends::Else,
            }
        });
        (depends, values)
    }
}

/// A value that is a whole number.
fn whole(value: Option<Value>) -> Option<i64> {
    match value {
        Some(Value::Int(x)) => Some(i64::from(x)),
        Some(Value::Real(_) | Value::Bool(_)) | None => None,
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
