//! Levels that are data: which numbers of a field lead to levels that there are.

use super::levels::{Known, candidates, depend_on_params, readable};
use super::reached::{Reached, reached};
use super::runs::runs;
use crate::grid::Form;
use crate::ir::scalar::Value;
use crate::ir::{Binary, Body, DefId, FieldId, Handle, Kind, Levels, Node, NodeId, Path, Precision, Stencil};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The numbers of a field that may say which level is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The least of them.
    pub low: i64,
    /// The largest.
    pub high: i64,
    /// The field that is read where they lead.
    pub read: FieldId,
}

/// Where numbers stand that say which levels are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stand {
    /// Of which field.
    pub field: FieldId,
    /// On which level, if the field has levels.
    pub level: Option<usize>,
    /// Where their columns are, from those that are computed; here, if the field has none.
    pub column: Path,
}

/// A read on a level that is data: the field that is read, how many levels from the cell's, and as many more as a number of another field
/// says.
#[derive(Clone, Copy)]
struct Moving<'a> {
    read: FieldId,
    shift: i64,
    offset: FieldId,
    /// Where that number stands, from the cell.
    at: &'a Path,
}

/// The fields whose numbers say which levels are read.
pub fn offsets(stencil: &Stencil) -> BTreeSet<FieldId> {
    stencil.bodies().flat_map(movings).map(|(_, own)| own.offset).collect()
}

/// The fields that are read on levels that data says.
pub fn read_where_data_says(stencil: &Stencil) -> BTreeSet<FieldId> {
    stencil.bodies().flat_map(movings).map(|(_, own)| own.read).collect()
}

/// What a body reads on levels that are data.
fn movings(body: &Body) -> impl Iterator<Item = (NodeId, Moving<'_>)> {
    body.iter().filter_map(|(id, node)| {
        let Node::Read { field, path, by: Some(by), .. } = node else { return None };
        let (data, plus) = match &body[*by] {
            Node::Binary(Binary::Add, data, plus) => match body[*plus] {
                Node::Int(plus) => (*data, plus),
                _ => return None,
            },
            _ => (*by, 0),
        };
        let Node::Read { field: offset, path: at, .. } = &body[data] else { return None };
        let shift = i64::from(path.levels()) + i64::from(plus);
        Some((id, Moving { read: *field, shift, offset: *offset, at }))
    })
}

/// Of each field whose numbers say which levels are read over a mesh: which may, by the level that they stand on, or, of a field without
/// levels, on all of them.
pub fn allowed(stencil: &Stencil, precision: Precision, nk: usize) -> BTreeMap<(FieldId, Option<usize>), Allowed> {
    if offsets(stencil).is_empty() {
        return BTreeMap::new();
    }
    // Where parameters decide, whatever may be computed counts.
    let params: Vec<Value> = stencil.params.iter().map(|(_, param)| some_number(param.kind)).collect();
    let is_known = !depend_on_params(stencil);
    let known = Known::new(stencil, precision, nk, &params);
    let levels: Vec<usize> = match is_known {
        true => readable(&known, candidates(stencil, 0..nk), None),
        false => candidates(stencil, 0..nk).collect(),
    };
    let mut all = BTreeMap::new();
    // From whichever element.
    let place = |path: Path| Path::levels_only(path.levels());
    for range in ranges(&levels) {
        allow(stencil, (&known, is_known), range, None, &place, &mut |stand, new| {
            join(all.entry((stand.field, stand.level)).or_insert(new), new);
        });
    }
    all
}

/// The same on a grid: by where the numbers stand, of a stencil that computes some levels. `there` says by field which levels have values;
/// if nothing is said, those that it has. Unless `is_known`, parameters may have other values than those that are known.
pub fn allowed_on_grid(
    stencil: &Stencil,
    (known, is_known): (&Known, bool),
    (form, levels): (Form, Range<usize>),
    there: Option<&[Range<usize>]>,
) -> BTreeMap<Stand, Allowed> {
    let mut all = BTreeMap::new();
    if offsets(stencil).is_empty() {
        return all;
    }
    // In rows, steps commute.
    let place = |path: Path| match form {
        Form::Rows => Path::from_offset(path.offset()),
        Form::Cells => path,
    };
    allow(stencil, (known, is_known), levels, there, &place, &mut |stand, new| {
        join(all.entry(stand).or_insert(new), new);
    });
    all
}

/// What both allow.
fn join(known: &mut Allowed, new: Allowed) {
    let is_tighter = new.low > known.low || new.high < known.high;
    let read = if is_tighter { new.read } else { known.read };
    *known = Allowed { low: known.low.max(new.low), high: known.high.min(new.high), read };
}

/// Runs of levels that follow each other.
fn ranges(levels: &[usize]) -> impl Iterator<Item = Range<usize>> {
    levels.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1)
}

/// Tells, level by level, where numbers stand that say which levels are read, and which these may be.
fn allow(
    stencil: &Stencil,
    (known, is_known): (&Known, bool),
    levels: Range<usize>,
    there: Option<&[Range<usize>]>,
    place: &dyn Fn(Path) -> Path,
    tell: &mut dyn FnMut(Stand, Allowed),
) {
    let nk = known.levels();
    // On the levels of a run, the same is evaluated.
    for run in runs(known, levels, None) {
        let reached = is_known.then(|| reached(stencil, known, run.start));
        for (own, at) in places(stencil, reached.as_ref(), place) {
            let (offset, read) = (&stencil.fields[own.offset], &stencil.fields[own.read]);
            let all = 0..read.place.levels.count(nk);
            let there = there.map_or(&all, |there| &there[own.read.index()]);
            let number = at.then(own.at);
            let column = if offset.place.horizontal { place(number.clone().without_levels()) } else { Path::default() };
            let has_levels = offset.place.levels != Levels::None;
            for level in run.clone() {
                let stands = usize::try_from(level as i64 + i64::from(number.levels())).ok();
                if has_levels && stands.is_none_or(|stands| stands >= offset.place.levels.count(nk)) {
                    continue;
                }
                let start = level as i64 + i64::from(at.levels()) + own.shift;
                let (low, high) = (there.start as i64 - start, there.end as i64 - 1 - start);
                let level = stands.filter(|_| has_levels);
                let stand = Stand { field: own.offset, level, column: column.clone() };
                tell(stand, Allowed { low, high, read: own.read });
            }
        }
    }
}

/// What is read on levels that are data, and where the cells are that read it, from the one that is computed: of what is reached, or else
/// all.
fn places<'a>(
    stencil: &'a Stencil,
    reached: Option<&Reached>,
    place: &dyn Fn(Path) -> Path,
) -> Vec<(Moving<'a>, Path)> {
    let (mut found, mut waiting): (_, BTreeSet<(DefId, Path)>) = (Vec::new(), BTreeSet::new());
    let mut look = |body: &'a Body, nodes: Option<&Vec<bool>>, at: &Path, waiting: &mut BTreeSet<(DefId, Path)>| {
        let counts = |id: NodeId| nodes.is_none_or(|nodes| nodes[id.index()]);
        found.extend(movings(body).filter(|(id, _)| counts(*id)).map(|(_, own)| (own, at.clone())));
        let uses = body.iter().filter(|(id, _)| counts(*id)).filter_map(|(_, node)| node.used());
        waiting.extend(uses.map(|(def, path)| (def, place(at.then(path)))));
    };
    for (number, store) in stencil.stores.iter().enumerate() {
        look(&store.body, reached.map(|own| &own.stores[number]), &Path::default(), &mut waiting);
    }
    while let Some((def, at)) = waiting.pop_last() {
        let nodes = match reached {
            None => None,
            Some(own) => match own.defs.get(&(def, at.levels())) {
                Some(nodes) => Some(nodes),
                None => continue,
            },
        };
        look(&stencil.defs[def].body, nodes, &at, &mut waiting);
    }
    found
}

fn some_number(kind: Kind) -> Value {
    match kind {
        Kind::Real => Value::Real(1.0),
        Kind::Int => Value::Int(1),
        Kind::Bool => Value::Bool(true),
    }
}
