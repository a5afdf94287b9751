//! `grid info`: how much of a grid is patches.

use crate::terminal;
use serde::Serialize;
use std::path::Path;
use stencilc_compiler::access;
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::ir::Stencil;
use stencilc_compiler::plan::{self, Choices, Plan, Target};
use stencilc_compiler::storage::Placement;
use stencilc_runtime::grid::patches;
use stencilc_runtime::{Error, files};

/// Patches of so many columns along i and j.
const SHAPES: [[u32; 2]; 4] = [[1, 1], [2, 1], [2, 2], [4, 2]];

/// What patches of one shape come to.
#[derive(Serialize)]
pub struct OfPatches {
    /// Columns of a patch along i and j.
    patch: [u32; 2],
    patches: usize,
    /// Cells of a plane that are computed and belong to no patch.
    lone_cells: usize,
    /// The share of the computed cells that belong to one.
    share: f64,
    /// Columns that are looked up and read for a computed cell, on average.
    columns_per_cell: f64,
    /// The same where each cell is computed by itself.
    columns_alone: usize,
    bytes_table: usize,
}

/// A plan of patches of a shape, or why the stencil cannot be computed by them.
fn planned(stencil: &Stencil, choices: &Choices, target: Target, patch: [u32; 2]) -> Result<Plan, Refusal> {
    let access = access::ACCESSES.iter().find(|own| own.has_patches());
    let access = access.ok_or_else(|| Refusal::new("no strategy computes patches"))?;
    let own = Choices {
        access: access.name().to_owned(),
        storage: access.storage().to_owned(),
        fastest: access.fastest(),
        block: access.block(),
        ..choices.clone()
    };
    plan::plan(stencil, &own.with("patch", patch), Some(target))
}

/// Refuses grids of which no patches can be drawn.
///
/// # Errors
/// The grid's cells stand in rows, or nobody knows where they are.
pub fn check(adjacency: Option<&Adjacency>) -> stencilc_runtime::Result<()> {
    patches::check(adjacency_of(adjacency)?)
}

fn adjacency_of(adjacency: Option<&Adjacency>) -> stencilc_runtime::Result<&Adjacency> {
    let why = "on a grid in rows every column is in a patch, but for the last ones of a row: there is nothing to draw";
    adjacency
        .ok_or_else(|| Error::call(why).help("--picture is for grids from files, as `stencilc grid make` writes them"))
}

/// Draws the patches of the shape that reads the fewest columns.
///
/// # Errors
/// The stencil cannot be computed by patches, those of [`check`], the file cannot be written.
pub fn draw(
    all: &[OfPatches],
    stencil: &Stencil,
    choices: &Choices,
    target: Target,
    subject: &str,
    path: &Path,
) -> stencilc_runtime::Result<()> {
    let best = all.iter().min_by(|a, b| a.columns_per_cell.total_cmp(&b.columns_per_cell));
    let plan = planned(stencil, choices, target, best.map_or(SHAPES[0], |best| best.patch))?;
    let picture = patches::picture(&plan, adjacency_of(target.adjacency)?, &format!("patches of {subject}"))?;
    files::write_atomic(path, |out| out.write_all(&picture))
}

/// What there is to tell of a stencil's patches on a grid; nothing if it cannot be computed by them.
pub fn of_patches(stencil: &Stencil, choices: &Choices, target: Target) -> Vec<OfPatches> {
    let of_shape = |patch: [u32; 2]| {
        let plan = planned(stencil, choices, target, patch).ok()?;
        let (found, known_grid) = (plan.patches.as_ref()?, plan.known_grid.as_ref()?);
        let Placement::Patches { rows, lone } = known_grid.layout.placement else { return None };
        let (patches, computed) = (rows - lone, target.region.columns());
        let read = patches * found.wanted.footprint.len() + lone * found.wanted.lone.len();
        let part = |of: usize| of as f64 / computed.max(1) as f64;
        Some(OfPatches {
            patch,
            patches,
            lone_cells: lone,
            share: 1.0 - part(lone),
            columns_per_cell: part(read),
            columns_alone: found.wanted.lone.len(),
            bytes_table: known_grid.layout.tables.iter().map(|table| size_of_val(&table[..])).sum(),
        })
    };
    SHAPES.into_iter().filter_map(of_shape).collect()
}

/// The same, to be read; nothing if there is nothing.
pub fn text(all: &[OfPatches]) -> String {
    let Some(first) = all.first() else { return String::new() };
    let head = ["patches", "found", "lone cells", "in patches", "columns a cell", "bytes of table"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|own| {
        vec![
            format!("{}x{}", own.patch[0], own.patch[1]),
            own.patches.to_string(),
            own.lone_cells.to_string(),
            format!("{:.1}%", 100.0 * own.share),
            format!("{:.1}", own.columns_per_cell),
            own.bytes_table.to_string(),
        ]
    }));
    format!(
        "{}  for `--access patches`: columns that are looked up and read for a cell, on average; {} for each by itself\n\n",
        terminal::table(&rows, &[1, 2, 3, 4, 5]),
        first.columns_alone
    )
}
