//! Where a thread keeps the values of sweeps: the last few levels in variables, and where all are needed again, all of them in
//! an array of its own.

use super::Named;
use super::expression::computing_type;
use crate::ir::FieldId;
use crate::plan::Plan;
use std::collections::BTreeMap;

/// The variables and arrays of the carried fields.
pub struct Carried {
    fields: BTreeMap<FieldId, Names>,
}

struct Names {
    c_type: &'static str,
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
        (id, Names { c_type: computing_type(field.stored.kind(), plan.choices.precision), before, levels })
    });
    Carried { fields: fields.collect() }
}

impl Carried {
    /// Their declarations. What variables hold at first is never looked at.
    pub fn declarations(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Names { c_type, before, levels } in self.fields.values() {
            let start = if *c_type == "bool" { "false" } else { "0" };
            lines.extend(before.iter().map(|name| format!("{c_type} {name} = {start};")));
            lines.extend(levels.iter().map(|(name, nk)| format!("{c_type} {name}[{nk}];")));
        }
        lines
    }

    /// The variable that holds a value of so many levels before.
    pub fn before(&self, field: FieldId, levels: u32) -> Option<&str> {
        let number = (levels as usize).checked_sub(1)?;
        self.fields.get(&field)?.before.get(number).map(String::as_str)
    }

    /// The array of the values of all levels.
    pub fn levels(&self, field: FieldId) -> &str {
        self.fields.get(&field).and_then(|own| own.levels.as_ref()).map_or("", |(name, _)| name)
    }

    /// Keeps the value of level `k`: `stored` comes before `moved`, which changes what is known of the levels before.
    pub fn keep(&self, field: FieldId, value: &str, k: &str, stored: &mut Vec<String>, moved: &mut Vec<String>) {
        let Some(Names { before, levels, .. }) = self.fields.get(&field) else { return };
        stored.extend(levels.iter().map(|(name, _)| format!("{name}[{k}] = {value};")));
        for pair in before.windows(2).rev() {
            moved.push(format!("{} = {};", pair[1], pair[0]));
        }
        moved.extend(before.first().map(|name| format!("{name} = {value};")));
    }
}
