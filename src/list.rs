//! `stencilc list`: what there is to choose from.

use crate::{input, terminal};
use serde::Serialize;
use stencilc_compiler::access::ACCESSES;
use stencilc_compiler::lower::Lowered;
use stencilc_compiler::mesh::{STRATEGIES, VectorLayout};
use stencilc_compiler::storage::STORAGES;
use stencilc_compiler::storage::fastest::FASTEST;
use stencilc_compiler::storage::fields::FIELDS;
use stencilc_compiler::storage::neighbors::NEIGHBORS;
use stencilc_compiler::storage::order::ORDERS;
use stencilc_runtime::mesh::order::{METHODS, auto};
use stencilc_runtime::{Result, cuda, emulate};

/// Arguments of `list`.
#[derive(clap::Args)]
pub struct Args {
    /// Of what
    what: Listed,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Listed {
    /// Stencils and programs that come along
    Stencils,
    /// How neighbours are reached
    Accesses,
    /// How a grid is stored
    Storages,
    /// Which axis is fastest in memory
    Fastest,
    /// Which neighbours a storage's tables hold
    Neighbors,
    /// Orders of cells
    Layouts,
    /// How several fields lie in memory
    Fields,
    /// On a mesh: how elements that add to the same place are kept apart
    Strategies,
    /// On a mesh: how the parts of vectors lie in memory
    Vectors,
    /// On a mesh: orders of elements
    Orders,
    /// What computes
    Devices,
}

/// One thing to choose.
#[derive(Serialize)]
struct Entry {
    name: String,
    summary: String,
}

/// Prints a list.
///
/// # Errors
/// It cannot be printed.
pub fn list(args: &Args, json: bool) -> Result<()> {
    let entry = |name: &str, summary: &str| Entry { name: name.to_owned(), summary: summary.to_owned() };
    let entries = match args.what {
        Listed::Stencils => stencils(),
        Listed::Accesses => ACCESSES.iter().map(|access| entry(access.name(), access.summary())).collect(),
        Listed::Storages => STORAGES.iter().map(|storage| entry(storage.name(), storage.summary())).collect(),
        Listed::Fastest => FASTEST.iter().map(|own| entry(own.name(), own.summary())).collect(),
        Listed::Neighbors => NEIGHBORS.iter().map(|own| entry(own.name(), own.summary())).collect(),
        Listed::Layouts => ORDERS.iter().map(|order| entry(order.name(), order.summary())).collect(),
        Listed::Fields => FIELDS.iter().map(|own| entry(own.name(), own.summary())).collect(),
        Listed::Strategies => STRATEGIES.iter().map(|own| entry(own.name(), own.summary())).collect(),
        Listed::Vectors => VectorLayout::ALL.iter().map(|own| entry(own.name(), own.summary())).collect(),
        Listed::Orders => {
            let own = METHODS.iter().map(|own| entry(own.name(), own.summary()));
            std::iter::once(entry(auto::AUTO, auto::SUMMARY)).chain(own).collect()
        }
        Listed::Devices => devices(),
    };
    if json {
        return terminal::json(&entries);
    }
    let rows: Vec<Vec<String>> = entries.into_iter().map(|entry| vec![entry.name, entry.summary]).collect();
    terminal::print(&terminal::table(&rows, &[]))
}

/// Files that come along, each with the first line of its documentation, or else of its first program's or stencil's.
fn stencils() -> Vec<Entry> {
    let mut entries: Vec<Entry> = input::embedded()
        .map(|source| {
            let lowered = stencilc_compiler::check(&source);
            let Lowered { doc, programs, stencils, mesh_programs, mesh_stencils, .. } = lowered;
            let programs = programs.into_iter().chain(mesh_programs.into_iter().map(|own| own.program));
            let stencils = stencils.into_iter().chain(mesh_stencils.into_iter().map(|own| own.stencil));
            let docs = programs.map(|own| own.doc).chain(stencils.map(|own| own.doc));
            let docs = [doc].into_iter().chain(docs.map(|doc| doc.as_told().to_owned()));
            let summary = docs.filter_map(|doc| doc.lines().next().map(str::to_owned)).next();
            Entry { name: source.name, summary: summary.unwrap_or_default() }
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

fn devices() -> Vec<Entry> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut entries = vec![Entry { name: "cpu".into(), summary: terminal::count(cores, "core") }];
    match emulate::Compiler::find() {
        Ok(compiler) => entries.extend([
            Entry { name: "native".into(), summary: format!("kernels on all cores, compiled by {}", compiler.version) },
            Entry {
                name: "emulate".into(),
                summary: format!("kernels as a GPU runs them, on one core, compiled by {}", compiler.version),
            },
        ]),
        Err(error) => terminal::note(&format!("no kernels on the CPU: {}", error.message)),
    }
    if let Err(error) = cuda::availability() {
        terminal::note(&format!("no GPU: {}", error.message));
    }
    entries.extend(cuda::devices().into_iter().map(|gpu| Entry {
        name: format!("cuda:{}", gpu.ordinal),
        summary: format!("{}, {}, {:.0} GB", gpu.name, gpu.arch, gpu.memory as f64 / 1e9),
    }));
    entries
}
