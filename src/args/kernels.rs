//! Many kernels of one stencil, on several grids: what `bench` measures, and what `profile` looks into.

use super::given::Names;
use super::knobs::KnobLists;
use super::shapes::{Shapes, blocks};
use super::{CodeArgs, GridArg, PRECISIONS, Pair, ShareArgs, VariantArgs};
use crate::drawn::Drawn;
use crate::input::Input;
use crate::terminal;
use clap::builder::PossibleValuesParser;
use std::collections::BTreeSet;
use stencilc_compiler::access;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::{Precision, Stencil};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_runtime::Device;
use stencilc_runtime::Result;
use stencilc_runtime::device::Platform;
use stencilc_runtime::problem::Problem;

/// The grid if none is given: larger than any cache.
const GRID: Grid = Grid::rows(512, 512, 64);

/// The grid of the emulator if none is given, for which the other would take minutes a kernel.
const SMALL: Grid = Grid::rows(64, 48, 8);

/// The word for every precision.
const BOTH: &str = "both";

/// Many kernels of one stencil. Their blocks are an option of each subcommand, for they have different defaults.
#[derive(clap::Args)]
pub struct KernelsArgs {
    #[command(flatten)]
    given: Names,
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: String,
    /// Which stencil of the file
    #[arg(long, value_name = "NAME")]
    pub stencil: Option<String>,
    #[command(flatten)]
    variants: VariantArgs,
    #[command(flatten)]
    shared: ShareArgs,
    #[command(flatten)]
    knobs: KnobLists,
    #[command(flatten)]
    pub code: CodeArgs,
    /// What `real` is
    #[arg(long, value_name = "P", value_parser = precisions(), default_value = Choices::default().precision.name())]
    precision: String,
    /// Extents of grids, halo included, or .npz files that say which cells are neighbours; several with commas between them.
    /// If not given, 512x512x64, and 64x48x8 on the emulator
    #[arg(long = "grid", value_name = "NIxNJxNK|FILE,...", value_delimiter = ',')]
    grids: Vec<GridArg>,
    /// Levels of grids from files, 64 if not given, and of meshes
    #[arg(long, alias = "mesh-levels", value_name = "N", value_parser = super::grid::levels)]
    pub levels: Option<usize>,
    /// A parameter; those without a value or a default are drawn at random
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| super::pair(text, "--set dt=0.5"))]
    pub set: Vec<Pair>,
    /// Of the random numbers in the fields
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = super::seed)]
    pub seed: u64,
    /// cuda, cuda:N, native for kernels on the CPU, emulate to try the call without a GPU, or cpu for the interpreter; if not
    /// given, the first GPU or else the cpu
    #[arg(long)]
    pub device: Option<Device>,
}

fn precisions() -> PossibleValuesParser {
    PossibleValuesParser::new(PRECISIONS.map(Precision::name).into_iter().chain([BOTH]))
}

/// A grid, as it was named and as it is.
pub struct Named {
    /// As one calls it.
    pub name: String,
    /// The options that say the same again.
    pub words: Vec<String>,
    /// What it is.
    pub chosen: super::Chosen,
}

impl KernelsArgs {
    /// The precisions that are asked for.
    pub fn precisions(&self) -> Vec<Precision> {
        PRECISIONS.into_iter().filter(|own| self.precision == BOTH || self.precision == own.name()).collect()
    }

    /// The grids that are asked for, on what measures.
    ///
    /// # Errors
    /// A file is no grid, or levels are given of one whose extents tell them.
    pub fn grids(&self, platform: &Platform) -> Result<Vec<Named>> {
        let usual =
            GridArg::Rows(if matches!(platform, Platform::Emulator(own) if !own.is_native()) { SMALL } else { GRID });
        let given = if self.grids.is_empty() { std::slice::from_ref(&usual) } else { &self.grids };
        let chosen = super::grid::all(given, self.levels, super::grid::LEVELS)?;
        let named = given.iter().zip(chosen).map(|(given, chosen)| {
            let mut words = vec!["--grid".to_owned(), given.to_string()];
            let levels = chosen.grid.filter(|_| chosen.adjacency.is_some()).map(|grid| grid.nk);
            words.extend(levels.iter().flat_map(|levels| ["--levels".to_owned(), levels.to_string()]));
            let name = levels.map_or_else(|| given.to_string(), |levels| format!("{given} x {levels}"));
            Named { name, words, chosen }
        });
        Ok(named.collect())
    }

    /// An option by which kernels are not as they usually are, if one was given.
    pub fn special(&self) -> Option<&'static str> {
        let choices = self.code.choices(Choices::default(), Choices::default().precision);
        let usual = Choices::default();
        [
            (!self.shared.share.is_empty(), "--share"),
            (choices.checked, "--checked"),
            (choices.wide, "--index 64"),
            (choices.math != usual.math, "--math device"),
            (choices.contract != usual.contract, "--contract off"),
        ]
        .into_iter()
        .find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// Every kernel that is asked for, in one precision.
    ///
    /// # Errors
    /// An option was given that makes no difference for any of them.
    pub fn choices(&self, shapes: &[Shapes], precision: Precision) -> Result<Vec<Choices>> {
        let mut all = Vec::new();
        for variant in self.variants.choices() {
            let Ok(access) = access::find(&variant.access) else { continue };
            for block in blocks(shapes, access) {
                let choices = Choices { block, share: self.shared.share.clone(), ..variant.clone() };
                all.extend(self.knobs.each(self.code.choices(choices, precision)));
            }
        }
        let mut seen = BTreeSet::new();
        all.retain(|choices| seen.insert(choices.words()));
        self.given.refuse_idle(&all)?;
        Ok(all)
    }

    /// The kernel of a stencil that is taken where nobody chooses: its place among these, to which it is added if it is missing.
    pub fn usual(&self, problem: &Problem, platform: &Platform, among: &mut Vec<Choices>) -> usize {
        let Problem { stencil, precision, grid, .. } = problem;
        let variant = Choices { share: self.shared.share.clone(), ..Choices::default() };
        let (variant, open) = platform.usual(variant, Open::Kernel);
        let variant = variant.suiting(stencil).on_cells(std::slice::from_ref(stencil), grid.levels_of_cells(), open);
        let block = Choices::usual_block(&variant.access);
        let usual = self.code.choices(Choices { block, ..variant }, *precision);
        among.iter().position(|own| *own == usual).unwrap_or_else(|| {
            among.push(usual);
            among.len() - 1
        })
    }

    /// The stencil on a grid, with fields drawn at random.
    ///
    /// # Errors
    /// The grid is too small, or a parameter cannot have its value.
    pub fn problem(&self, input: &Input, stencil: &Stencil, precision: Precision, grid: &Named) -> Result<Problem> {
        let (grid, contract) = (&grid.chosen, self.code.contract);
        let (share, set, seed) = (&self.shared.share[..], &self.set[..], self.seed);
        Drawn { stencil, precision, contract, grid, share, set, seed }.problem(input)
    }

    /// Whether no option says how cells are stored and reached.
    pub fn is_open(&self) -> bool {
        self.variants.is_open()
    }

    /// Tells which parameters have values at random, once: times may depend on them.
    pub fn tell_drawn(&self, problem: &Problem, told: &mut BTreeSet<String>) {
        let params = problem.stencil.params.iter().map(|(_, param)| &param.name);
        let drawn: Vec<&str> = params
            .filter(|name| problem.drawn.contains(name) && told.insert((*name).clone()))
            .map(String::as_str)
            .collect();
        if !drawn.is_empty() {
            terminal::note(&format!("drawn at random, with seed {}: {}", self.seed, drawn.join(", ")));
        }
    }
}
