//! What a thread reads of planes in shared memory: each row once a step.
//!
//! What one item alone looks at, compilers read once by themselves. But between one item and the next copies to shared memory are started,
//! which for all that they know change what has been read.

use super::body::Walk;
use super::order::{Column, Columns};
use crate::ir::{FieldId, Levels};
use crate::kernel::build::{Computing, Making};
use crate::kernel::{ArrayId, ValueId};
use std::collections::BTreeSet;
use std::ops::Range;

/// Rows of a column that a thread has read.
pub(super) struct Held {
    /// The values, from the first row on that anything looks at.
    pub array: ArrayId,
    /// That row, from the thread's first.
    pub first: i32,
    /// The rows that have been read.
    there: BTreeSet<i32>,
}

impl Held {
    /// Whether all of some rows have been read.
    pub fn has(&self, rows: Range<i32>) -> bool {
        rows.into_iter().all(|row| self.there.contains(&row))
    }

    /// Those of some rows that have not been read, which will be now, in runs.
    fn lacking(&mut self, rows: Range<i32>) -> Vec<Range<i32>> {
        let mut runs: Vec<Range<i32>> = Vec::new();
        for row in rows {
            match runs.last_mut() {
                _ if !self.there.insert(row) => {}
                Some(run) if run.end == row => run.end += 1,
                _ => runs.push(row..row + 1),
            }
        }
        runs
    }
}

impl Walk<'_> {
    /// Where the thread's first cell is in a field's plane so many before the present one.
    pub(super) fn place(&self, field: FieldId, age: usize) -> Option<ValueId> {
        match self.layout.task.stencil.fields[field].place.levels {
            Levels::None => Some(self.here),
            _ => self.at.get(age).copied(),
        }
    }

    /// Reads what this item and others look at, and has not been read in this step.
    pub(super) fn read(&mut self, columns: &Columns) {
        let layout = self.layout;
        for (&column, &rows) in columns {
            let Column { field, i, age } = column;
            let (Some(&all), Some(&planes)) = (layout.order.columns.get(&column), self.tiles.get(&field)) else {
                continue;
            };
            let [all, rows] = [all, rows].map(|rows| rows.low..rows.high + layout.rows as i32);
            if !self.held.contains_key(&column) {
                let name = format!("{}_read", self.lowering.read_name(field));
                let array = self.own().local(&name, layout.task.stored(field), all.len());
                self.held.insert(column, Held { array, first: all.start, there: BTreeSet::new() });
            }
            let Some(held) = self.held.get_mut(&column) else { continue };
            let (array, first) = (held.array, held.first);
            for run in held.lacking(rows) {
                let Some(at) = self.place(field, age) else { continue };
                self.unrolled("r", ((run.start - first) as usize, (run.end - first) as usize), |walk, r| {
                    let index = at.plus(r.plus(first).times(layout.memory.pitch)).plus(i);
                    walk.own().store(array, r, planes.at(index));
                });
            }
        }
    }
}
