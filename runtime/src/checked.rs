//! What a checked kernel reports, in words.

use stencilc_compiler::cells::checked::{self, REPORT, Site, TABLES};
use stencilc_compiler::cuda::Kernel;
use stencilc_compiler::ir::Place;
use stencilc_compiler::plan::{KnownGrid, Plan};

/// The first fault of a launch, if there was one: stencil, field, offset and cell, and where the index led instead.
pub fn fault(plan: &Plan, known_grid: &KnownGrid, kernel: &Kernel, report: &[u64; REPORT]) -> Option<String> {
    let [faults, site, index, column, k] = report.map(|number| number as i64);
    if faults == 0 {
        return None;
    }
    let columns = checked::columns(plan, known_grid);
    let table = usize::try_from(site).ok().and_then(|site| site.checked_sub(TABLES));
    let told = match (table, usize::try_from(site).ok().and_then(|site| kernel.sites.get(site))) {
        (Some(table), _) => {
            let name = plan.storage.tables().get(table).map_or("?", |(name, _)| name);
            let length = known_grid.layout.tables.get(table).map_or(0, Vec::len);
            format!("reads entry {index} of the storage's table `{name}`, which has {length} entries")
        }
        (None, Some(site)) => touched(plan, known_grid, &columns, site, index, column, k),
        (None, None) => format!("reports a fault at an unknown site {site}"),
    };
    let others = match faults - 1 {
        0 => String::new(),
        1 => "; one more fault followed".to_owned(),
        others => format!("; {others} more faults followed"),
    };
    Some(format!("stencil `{}`: kernel {} {told}{others}", plan.stencil.name, kernel.name))
}

fn touched(
    plan: &Plan,
    known_grid: &KnownGrid,
    columns: &[i32],
    site: &Site,
    index: i64,
    column: i64,
    k: i64,
) -> String {
    let field = &plan.stencil.fields[site.field];
    let Place { horizontal, levels, home: _ } = field.place;
    let verb = if site.written { "writes" } else { "reads" };
    let own = match usize::try_from(column).ok().and_then(|column| columns.get(column)) {
        Some(&number) if number >= 0 => {
            let (i, j) = checked::column_of(known_grid.grid, number);
            format!("cell (i={i}, j={j}, k={k})")
        }
        Some(_) | None => format!("level {k} of place {column} in the plane, where no column is"),
    };
    let plane = known_grid.layout.places as i64;
    let (place, level) = if horizontal { (index.rem_euclid(plane), index.div_euclid(plane)) } else { (0, index) };
    let is_inside = level >= 0 && level < levels.count(known_grid.grid.nk) as i64;
    let led = match (is_inside, horizontal, columns.get(place as usize)) {
        (false, ..) => format!("element {index}, outside the array"),
        (true, false, _) => format!("element {index}"),
        (true, true, Some(&number)) if number >= 0 => {
            let (i, j) = checked::column_of(known_grid.grid, number);
            format!("element {index}, which is cell (i={i}, j={j}, k={level})")
        }
        (true, true, _) => format!("element {index}, padding that belongs to no cell"),
    };
    format!("{verb} `{}{}` wrongly: at {own} its index leads to {led}", field.name, site.path)
}
