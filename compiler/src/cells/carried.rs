//! Where a thread keeps the values of sweeps: the last few levels in variables, and where all are needed again, all of them in
//! shared memory, or where a block's threads do not find room there, in an array of its own.

use crate::gpu::SHARED;
use crate::ir::{FieldId, Kind, Precision, Stencil};
use crate::kernel::build::{Builder, Computing};
use crate::kernel::{ArrayId, Axis, Coordinate, Type, ValueId, VariableId};
use crate::plan::phases::Kept as Keeping;
use std::collections::BTreeMap;

/// The most bytes of shared memory for a thread: with more of them, so few threads are at work at once that arrays of their
/// own, which go to memory and back, are as fast (docs/performance.md).
pub const MOST: usize = 600;

/// The variables and arrays of the carried fields.
#[derive(Default)]
pub struct Carried {
    fields: BTreeMap<FieldId, Kept>,
    /// Where arrays are shared: how many threads a block has, and the number of a thread among them.
    shared: Option<[ValueId; 2]>,
}

struct Kept {
    /// Of the level before the one at hand, of the one before that, and so on.
    before: Vec<VariableId>,
    /// Of all levels.
    levels: Option<ArrayId>,
}

impl Carried {
    /// Declares all that a kernel keeps of a stencil's fields on a grid of so many levels, in blocks of so many threads, with so many bytes of shared
    /// memory a thread at `most`. What variables hold at first is never looked at.
    pub fn declare(
        own: &mut Builder,
        (stencil, kept): (&Stencil, &BTreeMap<FieldId, Keeping>),
        (nk, [x, y, z]): (usize, [u32; 3]),
        precision: Precision,
        most: usize,
    ) -> Self {
        let kind = |field: FieldId| stencil.fields[field].stored.kind();
        let computed = |field: FieldId| Type::computing(kind(field), precision);
        let threads = (x * y) as usize;
        let all_levels = kept.iter().filter(|(_, kept)| kept.levels);
        let count = |field: FieldId| stencil.fields[field].place.levels.count(nk);
        let total = all_levels.map(|(&field, _)| count(field) * computed(field).bytes()).sum::<usize>();
        let total = total.saturating_mul(threads);
        let has_room = z == 1 && (1..=SHARED).contains(&total) && total <= most.saturating_mul(threads);
        let fields = kept.iter().map(|(&id, kept)| {
            let name = &stencil.fields[id].name;
            let first = match kind(id) {
                Kind::Real => own.real(0.0, computed(id)),
                Kind::Int => own.int(0),
                Kind::Bool => own.truth(false),
            };
            let before = (1..=kept.before).map(|n| {
                let wish = if n == 1 { format!("{name}_before") } else { format!("{name}_{n}_before") };
                own.variable(&wish, first)
            });
            let before = before.collect();
            let levels = kept.levels.then(|| match has_room {
                true => own.shared(&format!("{name}_levels"), computed(id), count(id) * threads),
                false => own.local(&format!("{name}_levels"), computed(id), count(id)),
            });
            (id, Kept { before, levels })
        });
        let fields = fields.collect();
        let shared = has_room.then(|| {
            let mut thread = Coordinate::Thread.along(Axis::X);
            if y > 1 {
                thread = Coordinate::Thread.along(Axis::Y).times(x).plus(thread);
            }
            [own.int(threads as i64), own.name("thread", thread)]
        });
        Self { fields, shared }
    }

    /// Whether the values of all levels are in shared memory.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// The value of so many levels before, if that is in a variable.
    pub fn before(&self, own: &mut Builder, field: FieldId, levels: u32) -> Option<ValueId> {
        let number = (levels as usize).checked_sub(1)?;
        let variable = *self.fields.get(&field)?.before.get(number)?;
        Some(own.get(variable))
    }

    /// The value of a level, of those that are all kept.
    pub fn at(&self, own: &mut Builder, field: FieldId, level: ValueId) -> Option<ValueId> {
        let array = self.fields.get(&field)?.levels?;
        let index = self.index(own, level);
        Some(own.load(array, index))
    }

    /// Where a thread's value of a level is.
    fn index(&self, own: &mut Builder, level: ValueId) -> ValueId {
        let Some([threads, thread]) = self.shared else { return level };
        own.term(level.times(threads).plus(thread))
    }

    /// Keeps the values of level `k`.
    pub fn keep(&self, own: &mut Builder, values: &[(FieldId, ValueId)], k: ValueId) {
        let kept = values.iter().filter_map(|(field, value)| Some((self.fields.get(field)?, *value)));
        let kept: Vec<(&Kept, ValueId)> = kept.collect();
        for (field, value) in &kept {
            if let Some(array) = field.levels {
                let index = self.index(own, k);
                own.store(array, index, *value);
            }
        }
        // What is known of the levels before changes after everything was stored that is made of it.
        for (Kept { before, .. }, value) in kept {
            for pair in before.windows(2).rev() {
                own.assign(pair[1], pair[0]);
            }
            if let Some(&first) = before.first() {
                own.assign(first, value);
            }
        }
    }
}
