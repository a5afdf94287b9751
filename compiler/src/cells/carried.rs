//! Where a thread keeps the values of sweeps: the last few levels in variables, and where all are needed again, all of them in
//! shared memory, or where a block's threads do not find room there, in an array of its own. A thread that goes through the levels of many
//! columns side by side has arrays for all.

use crate::gpu::SHARED;
use crate::ir::{FieldId, Kind, Precision, Stencil};
use crate::kernel::build::{Builder, Computing};
use crate::kernel::{ArrayId, Axis, Coordinate, Type, ValueId, VariableId};
use crate::plan::phases::Kept as Keeping;
use std::collections::BTreeMap;

/// The variables and arrays of the carried fields.
#[derive(Default)]
pub struct Carried {
    fields: BTreeMap<FieldId, Kept>,
    /// Where arrays are shared: how many threads a block has, and the number of a thread among them.
    shared: Option<[ValueId; 2]>,
    /// Where arrays are of columns side by side: how many there are, and the number of the one at hand.
    columns: Option<[ValueId; 2]>,
}

#[derive(Clone)]
struct Kept {
    /// Of the level before the one at hand, of the one before that, and so on.
    before: Vec<Before>,
    /// Of all levels.
    levels: Option<ArrayId>,
}

/// Where the value of a level before is.
#[derive(Clone, Copy)]
enum Before {
    Variable(VariableId),
    /// An element a column.
    Array(ArrayId),
}

/// Bytes of what is kept of columns side by side, at most: with more, it does not stay in the caches next to a core.
const MOST: usize = 64 << 10;

/// How many levels before they are computed numbers of columns side by side come to the caches.
pub const COMING: usize = 2;

/// Numbers that come to a cache at once, at least.
pub const LINE: usize = 8;

/// Columns side by side, at most.
pub const COLUMNS: usize = 64;

/// Bytes that are kept of a column's levels.
fn bytes_of_levels(stencil: &Stencil, kept: &BTreeMap<FieldId, Keeping>, nk: usize, precision: Precision) -> usize {
    let all = kept.iter().filter(|(_, kept)| kept.levels).map(|(&field, _)| &stencil.fields[field]);
    all.map(|own| own.place.levels.count(nk) * Type::computing(own.stored.kind(), precision).bytes()).sum()
}

/// How many columns a thread goes through side by side, on a grid of so many levels.
pub fn columns_side_by_side(
    stencil: &Stencil,
    kept: &BTreeMap<FieldId, Keeping>,
    nk: usize,
    precision: Precision,
) -> usize {
    let bytes = bytes_of_levels(stencil, kept, nk, precision);
    std::iter::successors(Some(COLUMNS), |columns| Some(columns / 2))
        .find(|&own| own <= 8 || own * bytes <= MOST)
        .unwrap_or(1)
}

impl Carried {
    /// Declares all that a kernel keeps of a stencil's fields on a grid of so many levels, in blocks of so many threads. Arrays are shared
    /// if they may be and find room. What variables hold at first is never looked at.
    pub fn declare(
        own: &mut Builder,
        (stencil, kept): (&Stencil, &BTreeMap<FieldId, Keeping>),
        (nk, [x, y, z]): (usize, [u32; 3]),
        precision: Precision,
        may_share: bool,
    ) -> Self {
        let kind = |field: FieldId| stencil.fields[field].stored.kind();
        let computed = |field: FieldId| Type::computing(kind(field), precision);
        let threads = (x * y) as usize;
        let count = |field: FieldId| stencil.fields[field].place.levels.count(nk);
        let total = bytes_of_levels(stencil, kept, nk, precision).saturating_mul(threads);
        let has_room = may_share && z == 1 && (1..=SHARED).contains(&total);
        let fields = kept.iter().map(|(&id, kept)| {
            let name = &stencil.fields[id].name;
            let first = match kind(id) {
                Kind::Real => own.real(0.0, computed(id)),
                Kind::Int => own.int(0),
                Kind::Bool => own.truth(false),
            };
            let before = (1..=kept.before).map(|n| {
                let wish = if n == 1 { format!("{name}_before") } else { format!("{name}_{n}_before") };
                Before::Variable(own.variable(&wish, first))
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
        Self { fields, shared, columns: None }
    }

    /// The same for a thread that goes through the levels of so many columns side by side.
    pub fn of_columns(
        own: &mut Builder,
        (stencil, kept): (&Stencil, &BTreeMap<FieldId, Keeping>),
        (nk, columns): (usize, usize),
        precision: Precision,
    ) -> Self {
        let fields = kept.iter().map(|(&id, kept)| {
            let declared = &stencil.fields[id];
            let (name, kind) = (&declared.name, Type::computing(declared.stored.kind(), precision));
            let before = (1..=kept.before).map(|n| {
                let wish = if n == 1 { format!("{name}_before") } else { format!("{name}_{n}_before") };
                Before::Array(own.local(&wish, kind, columns))
            });
            let before = before.collect();
            let count = declared.place.levels.count(nk) * columns;
            (id, Kept { before, levels: kept.levels.then(|| own.local(&format!("{name}_levels"), kind, count)) })
        });
        Self { fields: fields.collect(), shared: None, columns: None }
    }

    /// What is kept of one of so many columns.
    pub fn of_column(&self, own: &mut Builder, column: ValueId, columns: usize) -> Self {
        Self { fields: self.fields.clone(), shared: None, columns: Some([own.int(columns as i64), column]) }
    }

    /// Whether what a sweep will load after what is on its way to registers comes to the cache meanwhile: where arrays of all levels leave
    /// room for few threads, too few for as many bytes under way as memory can give. In double precision, for in single precision it gains
    /// or loses as much, by the number of columns and of divisions (docs/performance.md).
    pub fn prefetches(&self, precision: Precision) -> bool {
        self.shared.is_some() && precision == Precision::F64
    }

    /// The value of so many levels before, if that is in a variable.
    pub fn before(&self, own: &mut Builder, field: FieldId, levels: u32) -> Option<ValueId> {
        let number = (levels as usize).checked_sub(1)?;
        let place = *self.fields.get(&field)?.before.get(number)?;
        self.get(own, place)
    }

    /// The value of a level, of those that are all kept.
    pub fn at(&self, own: &mut Builder, field: FieldId, level: ValueId) -> Option<ValueId> {
        let array = self.fields.get(&field)?.levels?;
        let index = self.index(own, level);
        Some(own.load(array, index))
    }

    fn get(&self, own: &mut Builder, place: Before) -> Option<ValueId> {
        match (place, self.columns) {
            (Before::Variable(variable), _) => Some(own.get(variable)),
            (Before::Array(array), Some([_, column])) => Some(own.load(array, column)),
            (Before::Array(_), None) => None,
        }
    }

    fn set(&self, own: &mut Builder, place: Before, value: ValueId) {
        match (place, self.columns) {
            (Before::Variable(variable), _) => own.assign(variable, value),
            (Before::Array(array), Some([_, column])) => own.store(array, column, value),
            (Before::Array(_), None) => {}
        }
    }

    /// Where the value of a level is that is a thread's, or a column's.
    fn index(&self, own: &mut Builder, level: ValueId) -> ValueId {
        let Some([all, one]) = self.shared.or(self.columns) else { return level };
        own.term(level.times(all).plus(one))
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
                if let Some(value) = self.get(own, pair[0]) {
                    self.set(own, pair[1], value);
                }
            }
            if let Some(&first) = before.first() {
                self.set(own, first, value);
            }
        }
    }
}
