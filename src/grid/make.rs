//! `stencilc grid make`: grids whose cells stand in no rows.

use crate::args;
use crate::terminal;
use serde_json::json;
use std::path::PathBuf;
use stencilc_compiler::grid::Adjacency;
use stencilc_runtime::grid::{DEEPEST, Quadtree, Refinement, in_rows, save};
use stencilc_runtime::{Error, Result, files, npy};

/// Arguments of `grid make`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    /// Cells in rows, as if they were none: the neighbours of a regular grid, written down
    Emulated {
        /// Cells along i and j
        #[arg(long, value_name = "NIxNJ", value_parser = args::plane)]
        size: [usize; 2],
        #[command(flatten)]
        out: Out,
    },
    /// Squares, some of which are divided into four, and these again
    Quadtree {
        /// Squares along i and j, before any is divided
        #[arg(long, value_name = "NIxNJ", value_parser = args::plane)]
        size: [usize; 2],
        /// How often a square is divided at most
        #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=i64::from(DEEPEST)))]
        depth: u32,
        /// Which squares are divided: `circle`, those on the rim of one; `noise`, those where it is high; or by an array
        /// of two axes in a .npy file: whole numbers say how often, real ones are heights, and steep squares are divided
        #[arg(long, value_name = "circle|noise|FILE.npy", default_value = "circle")]
        refine: String,
        /// Of the noise
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        #[command(flatten)]
        out: Out,
    },
}

#[derive(clap::Args)]
struct Out {
    /// The file to write
    #[arg(short, long = "out", value_name = "FILE.npz")]
    out: PathBuf,
}

/// Makes a grid.
///
/// # Errors
/// There can be no such grid, or it cannot be written.
pub fn make(args: &Args, json: bool) -> Result<()> {
    let Args { kind } = args;
    let (Kind::Emulated { out, .. } | Kind::Quadtree { out, .. }) = kind;
    let path = &out.out;
    if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("npz")) {
        return Err(Error::call(format!("a grid is a .npz file, and `{}` says another kind of file", path.display()))
            .help(format!("call it `{}`", path.with_extension("npz").display())));
    }
    files::will_write(files::Kind::Grid, "--out", path)?;
    let name = path.display().to_string();
    let (adjacency, levels) = match kind {
        Kind::Emulated { size: [ni, nj], .. } => (in_rows(&name, *ni, *nj)?, Vec::new()),
        Kind::Quadtree { size: [ni, nj], depth, refine, seed, .. } => {
            let refinement = refinement(refine, *seed)?;
            Quadtree { ni: *ni, nj: *nj, depth: *depth, refinement }.adjacency(&name)?
        }
    };
    save(path, &adjacency)?;
    report(&adjacency, &levels, path, json)
}

fn refinement(text: &str, seed: Option<u64>) -> Result<Refinement> {
    if seed.is_some() && text != "noise" {
        return Err(Error::call(format!("--seed makes no difference for --refine {text}"))
            .help("it is of --refine noise; leave it out"));
    }
    match text {
        "circle" => Ok(Refinement::Circle),
        "noise" => Ok(Refinement::Noise { seed: seed.unwrap_or(0) }),
        file if file.ends_with(".npy") => Ok(Refinement::Array(npy::load(file.as_ref())?)),
        _ => Err(Error::call(format!("`{text}` says not which squares are divided"))
            .help("give --refine circle, --refine noise, or an array of two axes: --refine height.npy")),
    }
}

fn report(adjacency: &Adjacency, levels: &[usize], path: &PathBuf, json: bool) -> Result<()> {
    let cells = adjacency.cells();
    if json {
        return terminal::json(&json!({ "files": [path], "cells": cells, "cells_by_divisions": levels }));
    }
    let divided = levels.iter().enumerate().map(|(times, count)| {
        let times = match times {
            0 => "undivided".to_owned(),
            1 => "divided once".to_owned(),
            times => format!("divided {times} times"),
        };
        vec![count.to_string(), times]
    });
    let rows: Vec<Vec<String>> = divided.collect();
    terminal::print(&format!("{}wrote {}: {cells} cells\n", terminal::table(&rows, &[0]), path.display()))
}
