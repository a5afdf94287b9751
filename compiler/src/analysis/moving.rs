//! Levels that are data: which numbers of a field lead to levels that there are; and levels that the text says by their numbers.

use super::levels::{Known, candidates, depend_on_params, readable};
use super::reached::{Reached, reached};
use super::runs::runs;
use crate::diagnostic::Refusal;
use crate::grid::Form;
use crate::ir::scalar::Value;
use crate::ir::{Body, DefId, FieldId, Handle, Kind, Levels, Node, NodeId, Path, Precision, Stencil};
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
    /// How much more the level is that they say by its own number; nothing if they say how many levels further it is.
    pub more: Option<i64>,
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

/// A read on a level that is data, or that the text says by its number.
struct Moving {
    read: FieldId,
    /// How many levels from the cell's, before `by`.
    shift: i64,
    /// The field whose number says the level, and where that stands, from the cell; nothing if the text says it.
    data: Option<(FieldId, Path)>,
    /// How many levels further, as if that number were 0.
    by: Body,
}

impl Moving {
    /// How many levels further than a cell's it is read, apart from what data says.
    fn further(&self, known: &Known, level: i64) -> i64 {
        let by = known.values(&self.by, level).pop().flatten();
        self.shift + by.map_or(0, |by| i64::from(by.int()))
    }

    /// Whether a level is said by its own number, so that it stays where it is when the cell is another.
    fn stays(&self, known: &Known, level: i64) -> bool {
        self.further(known, level) == self.further(known, level + 1) + 1
    }
}

/// The fields whose numbers say which levels are read.
pub fn offsets(stencil: &Stencil) -> BTreeSet<FieldId> {
    all(stencil).filter_map(|own| own.data.map(|(field, _)| field)).collect()
}

/// The fields that are read on levels that data says.
pub fn read_where_data_says(stencil: &Stencil) -> BTreeSet<FieldId> {
    all(stencil).filter(|own| own.data.is_some()).map(|own| own.read).collect()
}

/// The fields that are read on levels that the text says by their numbers.
pub fn read_where_said(stencil: &Stencil) -> BTreeSet<FieldId> {
    all(stencil).filter(|own| own.data.is_none()).map(|own| own.read).collect()
}

/// The fields that are read on levels which may be anywhere, and how messages say that.
pub fn read_anywhere(stencil: &Stencil) -> BTreeMap<FieldId, &'static str> {
    let how =
        |own: Moving| (own.read, if own.data.is_some() { "on levels that are data" } else { "on one level of all" });
    all(stencil).map(how).collect()
}

fn all(stencil: &Stencil) -> impl Iterator<Item = Moving> {
    stencil.bodies().flat_map(movings).map(|(_, own)| own)
}

/// What a body reads on levels that are data, or said by their numbers.
fn movings(body: &Body) -> impl Iterator<Item = (NodeId, Moving)> {
    body.iter().filter_map(|(id, node)| {
        let Node::Read { field, path, by: Some(by), .. } = node else { return None };
        let by = body.rooted(*by);
        let data = by.iter().find_map(|(_, node)| match node {
            Node::Read { field, path, .. } => Some((*field, path.clone())),
            _ => None,
        });
        let by = by.map_nodes(|node| if matches!(node, Node::Read { .. }) { Node::Int(0) } else { node.clone() });
        Some((id, Moving { read: *field, shift: i64::from(path.levels()), data, by }))
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
        allow(stencil, (&known, is_known), range, There::default(), &place, &mut |stand, new| {
            join(all.entry((stand.field, stand.level)).or_insert(new), new);
        });
    }
    all
}

/// Which levels may be read.
#[derive(Clone, Copy, Default)]
pub struct There<'a> {
    /// By field, those that have values; if nothing is said, those that it has.
    pub of: Option<&'a [Range<usize>]>,
    /// How many levels of a halo stand before the first one, and behind the last.
    pub halo: [usize; 2],
}

impl There<'_> {
    fn of(&self, stencil: &Stencil, field: FieldId, nk: usize) -> Range<usize> {
        self.of.map_or(0..stencil.fields[field].place.levels.count(nk), |there| there[field.index()].clone())
    }
}

/// The same on a grid: by where the numbers stand, of a stencil that computes some levels. Unless `is_known`, parameters may have other
/// values than those that are known.
pub fn allowed_on_grid(
    stencil: &Stencil,
    (known, is_known): (&Known, bool),
    (form, levels): (Form, Range<usize>),
    there: There,
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
    let Allowed { read, more, .. } = if is_tighter { new } else { *known };
    *known = Allowed { low: known.low.max(new.low), high: known.high.min(new.high), read, more };
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
    there: There,
    place: &dyn Fn(Path) -> Path,
    tell: &mut dyn FnMut(Stand, Allowed),
) {
    let nk = known.levels();
    // On the levels of a run, the same is evaluated.
    for run in runs(known, levels, None) {
        let reached = is_known.then(|| reached(stencil, known, run.start));
        for (own, at) in places(stencil, reached.as_ref(), place) {
            let Some((field, path)) = &own.data else { continue };
            let offset = &stencil.fields[*field];
            let all = there.of(stencil, own.read, nk);
            let number = at.then(path);
            let column = if offset.place.horizontal { place(number.clone().without_levels()) } else { Path::default() };
            let has_levels = offset.place.levels != Levels::None;
            for level in run.clone() {
                let stands = usize::try_from(level as i64 + i64::from(number.levels())).ok();
                if has_levels && stands.is_none_or(|stands| stands >= offset.place.levels.count(nk)) {
                    continue;
                }
                let cell = level as i64 + i64::from(at.levels());
                let start = cell + own.further(known, cell);
                let (low, high) = (all.start as i64 - start, all.end as i64 - 1 - start);
                let more = own.stays(known, cell).then_some(start - there.halo[0] as i64);
                let level = stands.filter(|_| has_levels);
                let stand = Stand { field: *field, level, column: column.clone() };
                tell(stand, Allowed { low, high, read: own.read, more });
            }
        }
    }
}

/// A field of which a parameter says the level that is read, by its own number.
pub fn said_by_params(stencil: &Stencil) -> Option<FieldId> {
    let is_param = |node: &Node| matches!(node, Node::Param(_));
    let with_params = stencil.of_defs(|body, with_params| body.any(with_params, is_param));
    all(stencil).find(|own| own.by.any(&with_params, is_param)).map(|own| own.read)
}

/// Refuses levels that the text says by their numbers, and on which what is read there has no value, of a stencil that computes some
/// levels. Unless `is_known`, parameters may have other values than those that are known.
///
/// # Errors
/// There is one.
pub fn check_said(
    stencil: &Stencil,
    (known, is_known): (&Known, bool),
    levels: Range<usize>,
    there: There,
) -> Result<(), Refusal> {
    if read_where_said(stencil).is_empty() {
        return Ok(());
    }
    let nk = known.levels();
    let place = |path: Path| Path::levels_only(path.levels());
    for run in runs(known, levels, None) {
        let reached = is_known.then(|| reached(stencil, known, run.start));
        for (own, at) in places(stencil, reached.as_ref(), &place).into_iter().filter(|(own, _)| own.data.is_none()) {
            let cell = run.start as i64 + i64::from(at.levels());
            let level = cell + own.further(known, cell);
            let all = there.of(stencil, own.read, nk);
            if !(all.start as i64..all.end as i64).contains(&level) {
                let own = &stencil.fields[own.read];
                let [before, after] = there.halo.map(|levels| levels as i64);
                let all = all.start as i64 - before..all.end as i64 - before;
                let whole = own.place.levels.count(nk) as i64 - before - after;
                return Err(no_such_level(&stencil.told(), &own.name, level - before, &all, whole));
            }
        }
    }
    Ok(())
}

/// What is wrong with a level that a stencil reads of a field, which has values on others.
fn no_such_level(stencil: &str, field: &str, level: i64, there: &Range<i64>, whole: i64) -> Refusal {
    let has = match there.end - there.start {
        ..1 => "has no value on any".to_owned(),
        1 => format!("has level {} alone", there.start),
        _ if (there.start, there.end) != (0, whole) => {
            format!("has values on levels {} to {} there", there.start, there.end - 1)
        }
        _ => format!("has levels {} to {}", there.start, there.end - 1),
    };
    let help = match (0..whole).contains(&level) {
        true => "what is read has to have a value on that level: look at which levels the calls before leave out",
        false => "levels are counted from 0, the highest; `level nk - 1` is the lowest, of interfaces `level nk`",
    };
    Refusal::new(format!("`{stencil}` needs level {level} of `{field}`, which {has}")).help(help)
}

/// What is read on levels that are data or said, and where the cells are that read it, from the one that is computed: of what is
/// reached, or else all.
fn places(stencil: &Stencil, reached: Option<&Reached>, place: &dyn Fn(Path) -> Path) -> Vec<(Moving, Path)> {
    let (mut found, mut waiting): (_, BTreeSet<(DefId, Path)>) = (Vec::new(), BTreeSet::new());
    let mut look = |body: &Body, nodes: Option<&Vec<bool>>, at: &Path, waiting: &mut BTreeSet<(DefId, Path)>| {
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
