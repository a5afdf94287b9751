//! `stencilc grid info`: how large the tables of neighbours are that a stencil needs, and what compression gains.

use super::bars;
use super::patches::{self, OfPatches, of_patches};
use crate::args::{self, ALL, Chosen, GridArg, Pair};
use crate::{input, kernel, output, terminal};
use clap::{ArgAction, ValueHint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use stencilc_compiler::analysis;
use stencilc_compiler::gpu::CONSTANT;
use stencilc_compiler::grid::{Form, Grid, Region};
use stencilc_compiler::ir::{Precision, Stored};
use stencilc_compiler::plan::{self, Choices, Plan, Target};
use stencilc_compiler::storage::LayoutRequest;
use stencilc_compiler::storage::neighbors::{NEIGHBORS, Neighbors};
use stencilc_compiler::storage::order::{ORDERS, Order};
use stencilc_compiler::storage::statistics::Statistics;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::files::Kind;
use stencilc_runtime::plot::bars::{Chart, Page, save_png};
use stencilc_runtime::{Error, Result, memory, problem};

/// The grid that is looked at where none is given.
const GRID: Grid = Grid::rows(512, 512, 64);

/// How many patterns are drawn.
const DRAWN: usize = 40;

/// Arguments of `grid info`.
#[derive(clap::Args)]
#[command(
    after_help = "A table of neighbours has an entry for each relation (a neighbour that is looked up) and cell. \
    Cells whose neighbours lie at the same relative offsets share a pattern; a compressed table has an entry for each \
    relation and pattern, and another one says which pattern a cell has."
)]
pub struct Args {
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = ValueHint::FilePath)]
    file: String,
    /// Which stencil of the file
    #[arg(long, value_name = "NAME")]
    stencil: Option<String>,
    /// Extents of the grid, halo included; or a .npz file that says which cells are neighbours
    #[arg(long, value_name = "NIxNJxNK|FILE", default_value_t = GridArg::Rows(GRID))]
    grid: GridArg,
    /// Levels of a grid from a file, 64 if not given; tables are the same for any number
    #[arg(long, value_name = "N", value_parser = args::grid::levels)]
    levels: Option<usize>,
    /// A parameter that decides which levels are computed
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    set: Vec<Pair>,
    /// The order of cells
    #[arg(long, value_name = "NAME", value_parser = args::layouts_or_all(), default_value_t = Choices::default().layout)]
    layout: String,
    /// Cells along i that stay together in the layouts z-curve and hilbert: a power of two
    #[arg(long, value_name = "N", value_parser = args::run_width, default_value_t = Choices::default().run_width)]
    run_width: u32,
    /// Where runs shorter than the run width stand: in their place, or behind all others
    #[arg(long, value_name = "in-place|last", value_parser = args::one_of("last", "in-place"), default_value = "in-place")]
    #[arg(action = ArgAction::Set)]
    short_runs: bool,
    /// What `real` is: it decides how many cells a line of memory holds
    #[arg(long, value_name = "P", value_parser = args::precision(), default_value = Choices::default().precision.name())]
    precision: Precision,
    /// Draw how many cells share each of the most common patterns
    #[arg(long, value_name = "FILE.png", value_hint = ValueHint::FilePath)]
    plot: Option<PathBuf>,
    /// Draw which cells of a grid from a file belong to patches, for `--access patches`
    #[arg(long, value_name = "FILE.png", value_hint = ValueHint::FilePath)]
    picture: Option<PathBuf>,
}

/// What is printed.
#[derive(Serialize)]
struct Info<'a> {
    stencil: &'a str,
    /// The file that the grid is from, if it has no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    grid: Grid,
    computed: &'a Region,
    /// Cells of a plane, halo included.
    cells: usize,
    /// Those of them that are computed.
    inner_cells: usize,
    /// Neighbours along i and j that the stencil reads.
    neighbours: Vec<String>,
    run_width: u32,
    precision: Precision,
    layouts: Vec<OfLayout>,
    patches: Vec<OfPatches>,
}

/// What belongs to an order of cells.
#[derive(Serialize)]
struct OfLayout {
    layout: &'static str,
    #[serde(skip)]
    has_runs: bool,
    /// The median distance to a neighbour, in bytes.
    median_distance: usize,
    /// Lines of 128 bytes that a warp reads for one neighbour, on average.
    lines_per_warp: f64,
    tables: Vec<OfTable>,
}

/// What a table comes to.
#[derive(Serialize)]
struct OfTable {
    neighbors: Neighbors,
    relations: usize,
    /// Relations times cells.
    entries: usize,
    patterns: usize,
    inner_patterns: usize,
    /// Patterns to cells.
    ratio: f64,
    /// The share of cells that have the most common pattern.
    most_common: f64,
    bytes_uncompressed: usize,
    bytes_compressed: usize,
    bytes_pattern: usize,
    bytes_table: usize,
    fits_constant_memory: bool,
    /// How many cells share each of the most common patterns.
    cells_by_pattern: Vec<usize>,
}

/// Says what tables of neighbours come to.
///
/// # Errors
/// The stencil has errors or reads no neighbours, the grid is too small for it or too large for this machine, or the picture
/// cannot be written.
pub fn info(args: &Args, json: bool) -> Result<()> {
    let levels = match &args.grid {
        GridArg::Rows(_) => args.levels,
        GridArg::File(_) => args.levels.or(Some(GRID.nk)),
    };
    let Chosen { grid, adjacency } = Chosen::new(Some(&args.grid), levels)?;
    let grid = problem::checked(grid.unwrap_or(GRID))?;
    for (option, path) in [("--plot", &args.plot), ("--picture", &args.picture)] {
        if let Some(path) = path {
            output::check(option, path, "png", Kind::Picture)?;
        }
    }
    if args.picture.is_some() {
        patches::check(adjacency.as_deref())?;
    }
    let input = input::load(&args.file)?;
    let stencil = input.stencil(args.stencil.as_deref())?;
    let contract = Choices::default().contract;
    let prepared = plan::prepare(stencil, args.precision, contract);
    let settings = args::by_name(&args.set, "--set")?;
    let (params, _) = kernel::parameters(&prepared, args.precision, contract, settings, true)?;
    let region = analysis::region(&prepared, args.precision, grid, adjacency.as_deref(), &params)?;
    // Of the plan only the neighbours matter, so the storage is one that makes no tables where there is one.
    let storage = match grid.form {
        Form::Rows => "regular",
        Form::Cells => "uncompressed",
    };
    let choices = Choices {
        storage: storage.to_owned(),
        precision: args.precision,
        run_width: args.run_width,
        ..Choices::default()
    };
    let target = Target {
        grid,
        adjacency: adjacency.as_deref(),
        region: &region,
        levels_known: true,
        sharing: None,
        layouts: None,
    };
    let plan = plan::plan(&prepared, &choices, Some(target))?;
    if plan.neighbours.is_empty() {
        return Err(Error::input(format!(
            "stencil `{}` reads no neighbours along i and j: it needs no tables of them",
            prepared.name
        ))
        .help(format!("`stencilc explain {}` shows what it reads", ShellWord::path(&args.file))));
    }
    check_room(grid, &plan)?;

    // Nearness is told of fields of real numbers.
    let smallest = Stored::Real.bytes(args.precision);
    let ground = LayoutRequest { smallest, short_last: args.short_runs, ..plan.request(&target) };
    let orders = ORDERS.iter().filter(|order| args.layout == ALL || args.layout == order.name());
    let info = Info {
        stencil: &prepared.name,
        file: adjacency.as_ref().map(|adjacency| adjacency.name.as_told().to_owned()),
        grid,
        computed: &region,
        cells: grid.columns(),
        inner_cells: region.columns(),
        neighbours: plan.neighbours.iter().map(ToString::to_string).collect(),
        run_width: args.run_width,
        precision: args.precision,
        layouts: orders.map(|order| of_layout(*order, &plan, &ground)).collect(),
        patches: of_patches(&prepared, &choices, target),
    };
    if let Some(path) = &args.plot {
        draw(&info, path)?;
    }
    if let Some(path) = &args.picture {
        patches::draw(&info.patches, &prepared, &choices, target, &info.subject(), path)?;
    }
    match json {
        true => terminal::json(&info),
        false => terminal::print(&text(&info)),
    }
}

/// Refuses what this machine's memory does not hold, should every cell have a pattern of its own.
fn check_room(grid: Grid, plan: &Plan) -> Result<()> {
    // Of a pattern its offsets, twice, with what lists, a hash and a count take; and of a cell its place, its key and the
    // number of its pattern. For patches, where each path leads.
    let a_cell =
        3 * size_of::<i32>() * plan.relations.len() + 2 * (size_of::<i32>() * plan.relations.len() + 48) + 64 + 48;
    let bytes = grid.columns() as u128 * a_cell as u128;
    memory::check(bytes, &format!("patterns of {} cells can take", grid.columns()), "give a smaller --grid")
}

/// The statistics of each way to follow paths that makes a difference for the stencil.
fn of_layout(order: &'static dyn Order, plan: &Plan, ground: &LayoutRequest) -> OfLayout {
    let all = NEIGHBORS.into_iter().filter(|neighbors| neighbors.suits(&plan.neighbours)).map(|neighbors| {
        let relations = neighbors.relations(&plan.neighbours);
        let inner_only = neighbors == Neighbors::Direct;
        (neighbors, Statistics::new(&LayoutRequest { order, relations: &relations, inner_only, ..*ground }))
    });
    let all: Vec<(Neighbors, Statistics)> = all.collect();
    // What is read are the stencil's own neighbours, whichever the tables hold.
    let own = all.iter().find(|(neighbors, _)| *neighbors == Neighbors::Direct).map(|(_, found)| found.nearness);
    OfLayout {
        layout: order.name(),
        has_runs: order.has_runs(),
        median_distance: own.map_or(0, |own| own.distance as usize) * ground.smallest,
        lines_per_warp: own.map_or(0.0, |own| own.lines),
        tables: all.iter().map(|(neighbors, found)| of_table(*neighbors, found)).collect(),
    }
}

fn of_table(neighbors: Neighbors, found: &Statistics) -> OfTable {
    OfTable {
        neighbors,
        relations: found.relations,
        entries: found.entries(),
        patterns: found.counts.len(),
        inner_patterns: found.inner_patterns,
        ratio: found.ratio(),
        most_common: found.most_common(),
        bytes_uncompressed: found.bytes.uncompressed,
        bytes_compressed: found.bytes.compressed(),
        bytes_pattern: found.bytes.pattern,
        bytes_table: found.bytes.table,
        fits_constant_memory: found.bytes.table <= CONSTANT,
        cells_by_pattern: found.counts.iter().copied().take(DRAWN).collect(),
    }
}

impl Info<'_> {
    /// Every table, with what it is called.
    fn tables(&self) -> impl Iterator<Item = (&'static str, &OfTable)> {
        self.layouts.iter().flat_map(|own| own.tables.iter().map(|table| (own.layout, table)))
    }

    /// The stencil and the grid.
    fn subject(&self) -> String {
        let Info { stencil, grid, file, .. } = self;
        match file {
            Some(file) => format!("{stencil} on {file}, {grid}"),
            None => format!("{stencil} on {grid}"),
        }
    }

    /// What stands above charts.
    fn title(&self) -> String {
        format!("cells that share each of the {DRAWN} most common patterns")
    }
}

/// Draws the charts into a file.
fn draw(info: &Info, path: &Path) -> Result<()> {
    let titles: Vec<String> =
        info.tables().map(|(layout, table)| format!("{layout}, {}", table.neighbors.name())).collect();
    let charts: Vec<Chart> = info
        .tables()
        .zip(&titles)
        .map(|((_, table), title)| Chart { title, counts: &table.cells_by_pattern })
        .collect();
    let title = format!("{}: {}", info.subject(), info.title());
    save_png(
        path,
        &Page { title: &title, x: "pattern, the most common first", y: "cells", charts: &charts, columns: 2 },
    )
}

/// The statistics, to be read.
fn text(info: &Info) -> String {
    let Info { computed, cells, inner_cells, neighbours, run_width, precision, layouts, patches, .. } = info;
    let neighbours = terminal::count(neighbours.len(), "neighbour");
    let mut text = format!("{}, computed {computed}\n", info.subject());
    text.push_str(&format!("{neighbours} along i and j; {cells} cells in a plane, {inner_cells} of them computed\n"));
    if layouts.iter().any(|own| own.has_runs) {
        text.push_str(&format!("runs of {run_width} cells stay together in curves\n"));
    }
    if info.tables().all(|(_, table)| table.neighbors != Neighbors::Chasing) {
        text.push_str("all neighbours are direct ones: there is nothing to follow step by step, by `chasing`\n");
    }
    text.push('\n');

    let head = ["layout", "neighbors", "entries", "patterns", "inner", "ratio", "most common"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(info.tables().map(|(layout, table)| {
        vec![
            layout.to_owned(),
            table.neighbors.name().to_owned(),
            table.entries.to_string(),
            table.patterns.to_string(),
            table.inner_patterns.to_string(),
            format!("{:.5}", table.ratio),
            format!("{:.1}%", 100.0 * table.most_common),
        ]
    }));
    text.push_str(&terminal::table(&rows, &[2, 3, 4, 5, 6]));
    text.push_str(
        "  entries: relations x cells, uncompressed; patterns: of all cells, halo included; inner: of computed cells alone\n  \
         ratio: relations x patterns / entries; most common: cells that have the most common pattern\n\n",
    );

    let head = ["bytes of tables", "neighbors", "uncompressed", "compressed", "pattern", "table", "table fits"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(info.tables().map(|(layout, table)| {
        vec![
            layout.to_owned(),
            table.neighbors.name().to_owned(),
            table.bytes_uncompressed.to_string(),
            table.bytes_compressed.to_string(),
            table.bytes_pattern.to_string(),
            table.bytes_table.to_string(),
            if table.fits_constant_memory { "constant memory" } else { "global memory" }.to_owned(),
        ]
    }));
    text.push_str(&terminal::table(&rows, &[2, 3, 4, 5]));
    text.push_str(
        "  compressed: pattern, which each cell has, and table, an offset for each relation and pattern that is looked up\n\n",
    );

    let mut rows = vec![["nearness", "distance", "lines"].map(str::to_owned).to_vec()];
    rows.extend(
        info.layouts.iter().map(|own| {
            vec![own.layout.to_owned(), own.median_distance.to_string(), format!("{:.2}", own.lines_per_warp)]
        }),
    );
    text.push_str(&terminal::table(&rows, &[1, 2]));
    text.push_str(&format!(
        "  distance: bytes to a neighbour in {}, median; lines: of 128 bytes, that a warp reads for one neighbour, mean\n\n",
        precision.name()
    ));

    text.push_str(&patches::text(patches));
    text.push_str(&format!("{}\n\n", info.title()));
    let charts = info
        .tables()
        .map(|(layout, table)| bars::chart(&format!("{layout}, {}", table.neighbors.name()), &table.cells_by_pattern));
    text.push_str(&bars::side_by_side(&charts.collect::<Vec<_>>()));
    text
}
