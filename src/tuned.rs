//! The kernel that `run` and `build` take where none is asked for: the one that was tuned, if there is one.

use crate::terminal;
use stencilc_compiler::grid::{Adjacency, Grid};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::bench::{hash, hash_of_neighbours};
use stencilc_runtime::cuda::devices;
use stencilc_runtime::tune::database::{Database, Hit, Wanted};
use stencilc_runtime::{Error, Result};

/// `--untuned`.
#[derive(clap::Args)]
pub struct TunedArgs {
    /// Take the usual kernel where no option chooses one, not the one that `stencilc tune` found
    #[arg(long)]
    pub untuned: bool,
}

/// For what a kernel is sought.
pub struct Sought<'a> {
    /// The file's text.
    pub source: &'a str,
    /// The stencil.
    pub stencil: &'a str,
    /// What is chosen but for storage, strategy and block.
    pub choices: &'a Choices,
    /// The grid.
    pub extents: Grid,
    /// Which cells are neighbours, if they stand in no rows.
    pub adjacency: Option<&'a Adjacency>,
}

impl Sought<'_> {
    /// The choices that were tuned on GPUs of one name, if `fits` accepts them. It is told that they are taken.
    pub fn on(&self, gpu: &str, fits: impl Fn(&Choices) -> Result<()>) -> Option<Choices> {
        let hits = self.hits(|database, wanted| Ok(database.find(gpu, wanted)?.into_iter().collect()));
        self.take(hits, fits)
    }

    /// The choices that were tuned on GPUs of an architecture: those of this machine, or of the only model that there is
    /// something for.
    pub fn on_any(&self, arch: &str, fits: impl Fn(&Choices) -> Result<()>) -> Option<Choices> {
        let mut hits = self.hits(|database, wanted| database.find_for(arch, wanted));
        if hits.len() > 1 {
            let names: Vec<String> = hits.iter().map(|hit| hit.gpu.clone()).collect();
            let own = devices();
            hits.retain(|hit| own.first().is_some_and(|device| device.name == hit.gpu));
            if hits.is_empty() {
                let (stencil, names) = (self.stencil, names.join(", "));
                terminal::note(&format!(
                    "`{stencil}` was tuned for {names}: none of these is in this machine, so the kernel is the usual one"
                ));
            }
        }
        self.take(hits, fits)
    }

    /// What the database holds. One that is damaged keeps nobody from computing.
    fn hits(&self, find: impl FnOnce(&Database, &Wanted) -> Result<Vec<Hit>>) -> Vec<Hit> {
        let Some(database) = Database::usual() else { return Vec::new() };
        let (source, neighbours) = (hash(&[self.source.as_bytes()]), self.adjacency.map(hash_of_neighbours));
        let wanted = Wanted {
            source: &source,
            stencil: self.stencil,
            precision: self.choices.precision,
            extents: self.extents,
            neighbours: neighbours.as_deref(),
        };
        find(&database, &wanted).unwrap_or_else(|error| {
            not_taken(&error);
            Vec::new()
        })
    }

    fn take(&self, hits: Vec<Hit>, fits: impl Fn(&Choices) -> Result<()>) -> Option<Choices> {
        let Hit { gpu, entry } = hits.into_iter().next()?;
        let Choices { precision, contract, wide, checked, math, .. } = *self.choices;
        let choices = Choices { precision, contract, wide, checked, math, ..entry.choices };
        if let Err(error) = fits(&choices) {
            not_taken(&error);
            return None;
        }
        // Not the entry's own options: what decides the results is this call's.
        let (options, grid) = (choices.words(), &entry.grid);
        terminal::note(&format!("tuned for {gpu} and {grid}: {options} (--untuned takes the usual kernel)"));
        Some(choices)
    }
}

fn not_taken(error: &Error) {
    let help = error.help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
    terminal::note(&format!("what was tuned is not taken: {}{help}", error.message));
}
