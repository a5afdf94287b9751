//! Checked kernels: every element that a kernel touches is compared with the cell that the stencil names.
//!
//! An index is right if it leads to the level and to the column that the offset asks for, by a map from places in the
//! plane back to columns. That is more than a check of bounds: a neighbour table with one wrong entry, or padding that is
//! read, is found too. The first fault of a launch is written down; the kernel then goes on with 0 in its place.

use super::Frame;
use crate::access::Cell;
use crate::grid::{Grid, Topology};
use crate::ir::{FieldId, Levels, Path};
use crate::kernel::build::{Builder, Computing};
use crate::kernel::{Array, ArrayId, Function, Meaning, Space, Type, ValueId, Watch};
use crate::plan::{KnownGrid, Plan};

/// Numbers in a [`Meaning::Report`]: how many faults there were; the first one's site, index, column's place and level.
pub const REPORT: usize = 5;

/// Sites from this number on are tables of the storage.
pub const TABLES: usize = 1 << 31;

/// Where a kernel touches an element of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The field.
    pub field: FieldId,
    /// From the cell that is computed.
    pub path: Path,
    /// Whether it is written.
    pub written: bool,
    /// Whether data says on which level.
    pub is_moved: bool,
}

/// The columns of places in a plane are numbered with room between the rows, so that a step out of a row does not lead to
/// a number of the next one.
pub fn column_number(grid: Grid, i: usize, j: usize) -> i32 {
    (j * 3 * grid.ni + i) as i32
}

/// The column that has a number.
pub fn column_of(grid: Grid, number: i32) -> (usize, usize) {
    let number = usize::try_from(number).unwrap_or_default();
    (number % (3 * grid.ni), number / (3 * grid.ni))
}

/// For each place of a plane the number of its column, or -1; where columns stand in no rows, then for each neighbour and
/// place the number of the neighbour's column.
pub fn columns(plan: &Plan, known_grid: &KnownGrid) -> Vec<i32> {
    let mut columns = vec![-1; known_grid.layout.places];
    for j in 0..known_grid.grid.nj {
        for i in 0..known_grid.grid.ni {
            columns[known_grid.layout.place(known_grid.grid, i, j)] = column_number(known_grid.grid, i, j);
        }
    }
    if let Some(adjacency) = &known_grid.adjacency {
        let own = columns.clone();
        for path in &plan.neighbours {
            columns.extend(own.iter().map(|&column| {
                let end = usize::try_from(column).ok();
                let end = end.and_then(|column| Topology::Adjacent(adjacency).walk(column, path));
                end.map_or(-1, |end| end as i32)
            }));
        }
    }
    columns
}

/// The condition under which an index is the element of a field that a site touches, seen from a cell; on a level that is data, which is
/// given. Nothing if the kernel is none that is checked.
pub(super) fn condition(
    frame: &Frame,
    own: &mut Builder,
    cell: Cell,
    sites: &mut Vec<Site>,
    site: Site,
    (index, level): (ValueId, Option<ValueId>),
) -> Option<ValueId> {
    let plan = frame.plan;
    let known_grid = plan.known_grid.as_ref().filter(|_| plan.choices.checked)?;
    let path = site.path.clone();
    let place = plan.stencil.fields[site.field].place;
    let number = sites.iter().position(|own| *own == site).unwrap_or_else(|| {
        sites.push(site);
        sites.len() - 1
    });
    let level = match (level, place.levels) {
        (Some(level), _) => level,
        (None, Levels::None) => own.int(0),
        (None, Levels::Full | Levels::Interfaces) => own.term(cell.k.plus(path.levels())),
    };
    let mut int = |number: usize| own.int(number as i64);
    let (number, levels) = (int(number), int(place.levels.count(known_grid.grid.nk)));
    let (function, column) = match (place.horizontal, &known_grid.adjacency) {
        (false, _) => (Function::WatchLevel, None),
        (true, None) => {
            let offset = path.offset();
            let shift = i64::from(offset.j) * 3 * known_grid.grid.ni as i64 + i64::from(offset.i);
            (Function::WatchShift, Some(own.int(shift)))
        }
        (true, Some(_)) => {
            let path = path.without_levels();
            let neighbour = plan.neighbours.iter().position(|own| *own == path).map_or(0, |own| own + 1);
            (Function::WatchNeighbour, Some(own.int(neighbour as i64)))
        }
    };
    let operands = [number, index].into_iter().chain(column).chain([level, levels, cell.column, cell.k]);
    Some(own.call(function, operands.collect(), Type::BOOL))
}

/// What a checked kernel takes beside the others: where it writes what went wrong, and the columns.
pub(super) fn arguments(plan: &Plan, own: &mut Builder) -> Option<[ArrayId; 2]> {
    if !plan.choices.checked {
        return None;
    }
    let arrays = [("report", Type::I64, true, Meaning::Report), ("columns", Type::I32, false, Meaning::Columns)];
    Some(arrays.map(|(name, element, is_written, meaning)| {
        let name = own.declared(name);
        let space = Space::Global { aliased: false };
        own.add_array(Array { name, element, space, is_written, watched: None }, meaning)
    }))
}

/// Makes a kernel a checked one.
pub(super) fn watch(own: &mut Builder, [report, columns]: [ArrayId; 2], plane: ValueId) {
    let name = own.declared("watch");
    own.watch(Watch { name, report, columns, plane });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Precision;
    use crate::plan::{self, Choices, Target};
    use crate::source::Source;

    #[test]
    fn numbers_of_columns_come_back() {
        let grid = Grid::rows(5, 4, 1);
        for (i, j) in [(0, 0), (4, 0), (0, 3), (4, 3), (2, 1)] {
            assert_eq!(column_of(grid, column_number(grid, i, j)), (i, j));
        }
        // A step out of a row leads to no column's number.
        let all: Vec<i32> = (0..20).map(|at| column_number(grid, at % 5, at / 5)).collect();
        assert!(!all.contains(&(column_number(grid, 4, 1) + 1)) && !all.contains(&(column_number(grid, 0, 2) - 1)));
    }

    #[test]
    fn every_touch_is_a_site() {
        let text = "stencil s { in a; in w on (k); out b; b = if k > 0 { a[i-1, k-1] * w[k-1] } else { a[i-1] } }";
        let lowered = crate::check(&Source::new("s.stn", text));
        let stencil = plan::prepare(&lowered.stencils[0], Precision::F64, true);
        let grid = Grid::rows(5, 4, 3);
        let region = crate::analysis::region(&stencil, Precision::F64, grid, None, &[]).unwrap();
        let choices = Choices { checked: true, storage: "compressed".into(), ..Choices::default() };
        let target =
            Target { grid, adjacency: None, region: &region, levels_known: true, sharing: None, layouts: None };
        let plan = plan::plan(&stencil, &choices, Some(target)).unwrap();
        let kernel = crate::cuda::print(&plan).unwrap();
        assert_eq!(kernel.sites.len(), 4);
        assert_eq!(kernel.text.matches(".allows(").count(), 4);
        assert_eq!(kernel.text.matches("WatchedTable ").count(), 3);
        assert!(plan::plan(&stencil, &choices, None).is_err(), "only for a known grid");
    }
}
