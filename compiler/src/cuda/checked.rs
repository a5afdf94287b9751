//! Checked kernels: every element that a kernel touches is compared with the cell that the stencil names.
//!
//! An index is right if it leads to the level and to the column that the offset asks for, by a map from places in the
//! plane back to columns. That is more than a check of bounds: a neighbour table with one wrong entry, or padding that is
//! read, is found too. The first fault of a launch is written down; the kernel then goes on with 0 in its place.

use super::{Named, Parameter, What};
use crate::grid::{Grid, Topology};
use crate::ir::{FieldId, Levels, Path};
use crate::names::{Identifier, Names};
use crate::plan::{Fixed, Plan};

/// Numbers in a [`super::What::Report`]: how many faults there were; the first one's site, index, column's place and level.
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
pub fn columns(plan: &Plan, fixed: &Fixed) -> Vec<i32> {
    let mut columns = vec![-1; fixed.layout.plane];
    for j in 0..fixed.grid.nj {
        for i in 0..fixed.grid.ni {
            columns[fixed.layout.place(fixed.grid, i, j)] = column_number(fixed.grid, i, j);
        }
    }
    if let Some(adjacency) = &fixed.adjacency {
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

/// What a checked kernel begins with: the types and functions that its checks use.
pub const PRELUDE: &str = "\
#define STENCILC_METHOD __device__ __forceinline__
/* Looks at every index: the first that leads elsewhere than it should is written down. */
struct Watch {
    unsigned long long* report;  // faults; site, index, column and level of the first
    const int* columns;          // the column of each place in the plane, or -1
    long long plane;

    STENCILC_METHOD void tell(unsigned site, long long index, long long column, int k) const
    {
        if (atomicAdd(report, 1ull) != 0) return;
        report[1] = site;
        report[2] = (unsigned long long)index;
        report[3] = (unsigned long long)column;
        report[4] = (unsigned long long)k;
    }

    /* Whether `index` is on `level`, in the column `shift` away from the thread's own. */
    STENCILC_METHOD bool allows(unsigned site, long long index, int shift, int level, int levels, long long column, int k) const
    {
        // Where a level does not exist, the own one is read for a value that is then not chosen.
        const long long place = index - (level < 0 || level >= levels ? k : level) * plane;
        const bool is_inside = place >= 0 && place < plane && column >= 0 && column < plane;
        const bool is_right = is_inside && columns[place] >= 0 && columns[place] == columns[column] + shift;
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }

    /* The same where columns stand in no rows: whether it is in the column of a neighbour. */
    STENCILC_METHOD bool leads(unsigned site, long long index, int neighbour, int level, int levels, long long column, int k) const
    {
        const long long place = index - (level < 0 || level >= levels ? k : level) * plane;
        const bool is_inside = place >= 0 && place < plane && column >= 0 && column < plane;
        const bool is_right = is_inside && columns[place] >= 0 && columns[place] == columns[neighbour * plane + column];
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }

    /* The same for a field without columns. */
    STENCILC_METHOD bool allows(unsigned site, long long index, int level, int levels, long long column, int k) const
    {
        const bool is_right = index == (level < 0 || level >= levels ? k : level);
        if (!is_right) tell(site, index, column, k);
        return is_right;
    }
};

struct WatchedTable {
    const int* entries;
    long long length;
    unsigned site;
    Watch watch;

    STENCILC_METHOD int operator[](long long index) const
    {
        if (index >= 0 && index < length) return entries[index];
        watch.tell(site, index, -1, -1);
        return 0;
    }
};";

/// The condition under which `index` is the element of `field` at `offset` from the cell.
pub(super) fn condition(
    plan: &Plan,
    named: &mut Named,
    sites: &mut Vec<Site>,
    site: Site,
    index: &str,
) -> Option<String> {
    let fixed = plan.fixed.as_ref().filter(|_| plan.choices.checked)?;
    let path = site.path.clone();
    let place = plan.stencil.fields[site.field].place;
    let number = sites.iter().position(|own| *own == site).unwrap_or_else(|| {
        sites.push(site);
        sites.len() - 1
    });
    let [watch, column, k] = named.names.internals(["watch", "column", "k"]);
    let levels = place.levels.count(fixed.grid.nk);
    let level = match (place.levels, path.levels()) {
        (Levels::None, _) => "0".to_owned(),
        (_, 0) => k.clone(),
        (_, shift) => format!("{k} {} {}", if shift < 0 { '-' } else { '+' }, shift.unsigned_abs()),
    };
    let end = format!("{level}, {levels}, {column}, {k})");
    Some(match (place.horizontal, &fixed.adjacency) {
        (false, _) => format!("{watch}.allows({number}, {index}, {end}"),
        (true, None) => {
            let offset = path.offset();
            let shift = offset.j as i64 * 3 * fixed.grid.ni as i64 + offset.i as i64;
            format!("{watch}.allows({number}, {index}, {shift}, {end}")
        }
        (true, Some(_)) => {
            let path = path.without_levels();
            let neighbour = plan.neighbours.iter().position(|own| *own == path).map_or(0, |own| own + 1);
            format!("{watch}.leads({number}, {index}, {neighbour}, {end}")
        }
    })
}

/// A table that a checked kernel watches.
pub struct Watched {
    /// What the storage's expressions call it.
    pub name: Identifier,
    /// The parameter that holds it.
    pub entries: Identifier,
    /// Its number among the storage's tables.
    pub number: usize,
}

/// What a checked kernel takes beside the others.
pub fn parameters(plan: &Plan, names: &mut Names) -> Vec<Parameter> {
    if !plan.choices.checked {
        return Vec::new();
    }
    let [report, columns] = ["report", "columns"].map(|name| names.declared_internal(name));
    vec![
        Parameter { name: report, c_type: "unsigned long long*".into(), what: What::Report },
        Parameter { name: columns, c_type: "const int*".into(), what: What::Columns },
    ]
}

/// What stands at the head of a checked kernel.
pub fn lines(plan: &Plan, names: &mut Names, tables: &[Watched]) -> Vec<String> {
    let Some(fixed) = plan.fixed.as_ref().filter(|_| plan.choices.checked) else { return Vec::new() };
    let [watch, report, columns, plane] = names.internals(["watch", "report", "columns", "plane"]);
    let mut lines = vec![format!("const Watch {watch} = {{{report}, {columns}, {plane}}};")];
    for Watched { name, entries, number } in tables {
        let (length, site) = (fixed.layout.tables[*number].len(), TABLES + number);
        lines.push(format!("const WatchedTable {name} = {{{entries}, {length}, {site}u, {watch}}};"));
    }
    lines
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
