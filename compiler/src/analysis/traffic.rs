//! Which values of each field a computation touches: what has to come from memory once, and go back once, at the least.

use super::reached::Class;
use super::reuse::Evaluation;
use crate::grid::{Grid, Region};
use crate::ir::{FieldId, Levels, Offset, Precision, Stencil};
use std::collections::{BTreeSet, HashMap};

/// Values of one field that are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The field.
    pub field: FieldId,
    /// Values that are read.
    pub read: u64,
    /// Values that are written.
    pub written: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// What the levels of one kind evaluate.
pub type Evaluated<'a> = (&'a Class, &'a Evaluation);

/// The values of every field that computing `region` touches. Where a branch depends on data, both of its sides are taken
/// to be touched.
pub fn traffic(
    stencil: &Stencil,
    precision: Precision,
    grid: Grid,
    region: &Region,
    classes: &[Evaluated],
) -> Vec<Touched> {
    // One for the last interface.
    let mut class_of = vec![None; grid.nk + 1];
    for (number, (class, _)) in classes.iter().enumerate() {
        for level in class.levels.iter().flat_map(|run| run.start.max(region.k.start)..run.end.min(region.k.end)) {
            class_of[level] = Some(number);
        }
    }
    let touched = |(id, field): (FieldId, &crate::ir::Field)| {
        let read = match field.place.levels {
            Levels::None => {
                let computed = classes.iter().filter(|(class, _)| class.levels_in(&region.k) > 0);
                let offsets = computed.flat_map(|(_, evaluation)| offsets(evaluation, id)).collect();
                columns(region, field.place.horizontal, &offsets)
            }
            levels => {
                let shifts: BTreeSet<i32> =
                    classes.iter().flat_map(|(_, evaluation)| offsets(evaluation, id)).map(|offset| offset.k).collect();
                let mut known: HashMap<Vec<Option<usize>>, u64> = HashMap::new();
                (0..levels.count(grid.nk) as i64)
                    .map(|level| {
                        let class = |shift: i32| {
                            let from = usize::try_from(level - i64::from(shift)).ok()?;
                            class_of.get(from).copied().flatten()
                        };
                        let readers: Vec<Option<usize>> = shifts.iter().map(|&shift| class(shift)).collect();
                        *known.entry(readers).or_insert_with_key(|readers| {
                            let at = |(&shift, reader): (&i32, &Option<usize>)| {
                                let evaluation = reader.map(|number| classes[number].1);
                                let all = evaluation.into_iter().flat_map(|evaluation| offsets(evaluation, id));
                                all.filter(move |offset| offset.k == shift).map(Offset::horizontal).collect::<Vec<_>>()
                            };
                            let offsets = shifts.iter().zip(readers).flat_map(at).collect();
                            columns(region, field.place.horizontal, &offsets)
                        })
                    })
                    .sum()
            }
        };
        let written = match field.role.is_written() {
            true => {
                let horizontal = if field.place.horizontal { region.i.len() * region.j.len() } else { 1 };
                let levels = if field.place.levels == Levels::None { 1 } else { region.k.len() };
                (horizontal * levels) as u64
            }
            false => 0,
        };
        let bytes = (read + written) * field.stored.bytes(precision) as u64;
        Touched { field: id, read, written, bytes }
    };
    stencil.fields.iter().map(touched).collect()
}

fn offsets(evaluation: &Evaluation, field: FieldId) -> impl Iterator<Item = Offset> {
    evaluation.reads.get(&field).into_iter().flat_map(|reads| reads.keys().copied())
}

/// How many columns lie under the computed columns, moved by any of the offsets.
fn columns(region: &Region, horizontal: bool, offsets: &BTreeSet<Offset>) -> u64 {
    if !horizontal {
        return u64::from(!offsets.is_empty());
    }
    let (ni, nj) = (region.i.len() as i64, region.j.len() as i64);
    // Between two of these rows the same offsets matter.
    let mut rows: Vec<i64> =
        offsets.iter().flat_map(|offset| [i64::from(offset.j), i64::from(offset.j) + nj]).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut total = 0;
    for pair in rows.windows(2) {
        let here = |offset: &&Offset| (i64::from(offset.j)..i64::from(offset.j) + nj).contains(&pair[0]);
        let mut starts: Vec<i64> = offsets.iter().filter(here).map(|offset| i64::from(offset.i)).collect();
        starts.sort_unstable();
        let (mut covered, mut end) = (0, i64::MIN);
        for start in starts {
            covered += start + ni - end.max(start).min(start + ni);
            end = start + ni;
        }
        total += covered * (pair[1] - pair[0]);
    }
    total as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_once() {
        let region = Region::rows(2..7, 2..6, 0..1);
        let count = |offsets: &[(i32, i32)]| {
            let offsets = offsets.iter().map(|&(i, j)| Offset { i, j, k: 0 }).collect();
            columns(&region, true, &offsets)
        };
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[(0, 0)]), 20);
        // One more column to the left, one more row below, and no corners.
        assert_eq!(count(&[(0, 0), (-1, 0), (0, 1)]), 20 + 4 + 5);
        assert_eq!(count(&[(0, 0), (1, 1)]), 20 + 4 + 5 - 1);
        assert_eq!(count(&[(-100, 0), (100, 0), (0, 50)]), 60);
    }
}
