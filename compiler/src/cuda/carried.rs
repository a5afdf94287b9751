//! Where a thread keeps the values of sweeps: the last few levels in variables, and where all are needed again, all of them in
//! shared memory, or where a block's threads do not find room there, in an array of its own.

use super::Named;
use super::expression::{computing_bytes, computing_type};
use crate::ir::FieldId;
use crate::plan::Plan;
use std::collections::BTreeMap;

/// Bytes of shared memory that a block can declare.
const SHARED: usize = 48 << 10;

/// The most bytes of shared memory for a thread: with more of them, so few threads are at work at once that arrays of their
/// own, which go to memory and back, are as fast (docs/performance.md).
const MOST: usize = 600;

/// The variables and arrays of the carried fields.
pub struct Carried {
    fields: BTreeMap<FieldId, Names>,
    /// Where arrays are shared: how many threads a block has, and the number of a thread among them.
    shared: Option<(usize, String)>,
}

struct Names {
    c_type: &'static str,
    bytes: usize,
    /// Of the level before the one at hand, of the one before that, and so on.
    before: Vec<String>,
    /// The array, and how many elements it has.
    levels: Option<(String, usize)>,
}

/// Names for all that `plan` keeps.
pub fn declare(plan: &Plan, named: &mut Named) -> Carried {
    let nk = plan.fixed.as_ref().map_or(0, |fixed| fixed.grid.nk);
    let fields = plan.kept.iter().map(|(&id, kept)| {
        let field = &plan.stencil.fields[id];
        let mut name = |suffix: String| named.names.fresh(&format!("{}_{suffix}", field.name));
        let before = (1..=kept.before).map(|n| name(if n == 1 { "before".into() } else { format!("{n}_before") }));
        let before = before.collect();
        let levels = kept.levels.then(|| (name("levels".into()), nk));
        let (kind, precision) = (field.stored.kind(), plan.choices.precision);
        (id, Names { c_type: computing_type(kind, precision), bytes: computing_bytes(kind, precision), before, levels })
    });
    let fields: BTreeMap<FieldId, Names> = fields.collect();
    let bytes = |own: &Names| own.levels.as_ref().map_or(0, |(_, count)| count * own.bytes);
    let [x, y, z] = plan.choices.block.map(|extent| extent as usize);
    let threads = x * y;
    let total = fields.values().map(bytes).sum::<usize>().saturating_mul(threads);
    let has_room = z == 1 && (1..=SHARED).contains(&total) && total <= MOST * threads;
    let shared = has_room.then(|| {
        let number = match y {
            1 => "threadIdx.x".to_owned(),
            _ => format!("threadIdx.y * {x} + threadIdx.x"),
        };
        (threads, number)
    });
    Carried { fields, shared }
}

impl Carried {
    /// Their declarations. What variables hold at first is never looked at.
    pub fn declarations(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Names { c_type, before, levels, .. } in self.fields.values() {
            let start = if *c_type == "bool" { "false" } else { "0" };
            lines.extend(before.iter().map(|name| format!("{c_type} {name} = {start};")));
            lines.extend(levels.iter().map(|(name, nk)| match &self.shared {
                Some((threads, _)) => format!("STENCILC_SHARED({c_type}, {name}, [{nk}][{threads}]);"),
                None => format!("{c_type} {name}[{nk}];"),
            }));
        }
        lines
    }

    /// The variable that holds a value of so many levels before.
    pub fn before(&self, field: FieldId, levels: u32) -> Option<&str> {
        let number = (levels as usize).checked_sub(1)?;
        self.fields.get(&field)?.before.get(number).map(String::as_str)
    }

    /// The value of a level, of those that are all kept.
    pub fn at(&self, field: FieldId, level: &str) -> String {
        let name = self.fields.get(&field).and_then(|own| own.levels.as_ref()).map_or("", |(name, _)| name);
        self.element(name, level)
    }

    fn element(&self, array: &str, level: &str) -> String {
        match &self.shared {
            Some((_, thread)) => format!("{array}[{level}][{thread}]"),
            None => format!("{array}[{level}]"),
        }
    }

    /// Keeps the value of level `k`: `stored` comes before `moved`, which changes what is known of the levels before.
    pub fn keep(&self, field: FieldId, value: &str, k: &str, stored: &mut Vec<String>, moved: &mut Vec<String>) {
        let Some(Names { before, levels, .. }) = self.fields.get(&field) else { return };
        stored.extend(levels.iter().map(|(name, _)| format!("{} = {value};", self.element(name, k))));
        for pair in before.windows(2).rev() {
            moved.push(format!("{} = {};", pair[1], pair[0]));
        }
        moved.extend(before.first().map(|name| format!("{name} = {value};")));
    }
}
