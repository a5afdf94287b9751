//! Which kernel of a file is meant, and its plan.

use crate::args::given::Given;
use crate::args::{self, Chosen, GridArg, KernelArgs, Pair};
use crate::input::Input;
use crate::tuned::Sought;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::analysis::{self, levels};
use stencilc_compiler::grid::{Adjacency, Grid, Region};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Precision, Program, Stencil};
use stencilc_compiler::plan::{self, Choices, KnownGrid, Plan, Target};
use stencilc_compiler::storage::Layout;
use stencilc_compiler::storage::sharing::Sharing;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::bench::hash_of_neighbours;
use stencilc_runtime::problem::{Problem, Request};
use stencilc_runtime::{Cast, Drawing, Error, Result};

/// One kernel of one stencil.
#[derive(clap::Args)]
pub struct Wanted {
    /// Which stencil of the file
    #[arg(long, value_name = "NAME")]
    pub stencil: Option<String>,
    #[command(flatten)]
    kernel: Given<KernelArgs>,
    /// Build for this grid alone: its extents, halo included, become constants; or a .npz file that says which cells are
    /// neighbours
    #[arg(long, value_name = "NIxNJxNK|FILE")]
    grid: Option<GridArg>,
    /// Levels of a grid from a file, or of a mesh
    #[arg(long, value_name = "N", value_parser = args::grid::levels)]
    pub levels: Option<usize>,
    /// A parameter that decides which levels are computed
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    pub set: Vec<Pair>,
}

impl Wanted {
    /// What is chosen.
    pub fn choices(&self) -> Choices {
        self.kernel.args.choices()
    }

    /// What is chosen for a stencil.
    ///
    /// # Errors
    /// An option was given that makes no difference for it.
    pub fn choices_for(&self, stencil: &Stencil) -> Result<Choices> {
        let choices = self.kernel.choices_for(stencil, self.of_cells());
        self.kernel.refuse_idle(&choices)?;
        Ok(choices)
    }

    fn of_cells(&self) -> Option<usize> {
        args::grid::of_cells(self.grid.as_ref(), self.levels)
    }

    /// Whether it takes what it says from files, too.
    pub fn names_files(&self) -> bool {
        matches!(self.grid, Some(GridArg::File(_))) || !self.choices().share.is_empty()
    }

    /// The plan of the kernel.
    ///
    /// # Errors
    /// There is no such kernel.
    pub fn plan(&self, input: &Input) -> Result<Plan> {
        self.plan_or_tuned(input, None)
    }

    /// The plan of the kernel; where the options leave open which, of the one that was tuned for GPUs of an architecture.
    ///
    /// # Errors
    /// There is no such kernel.
    pub fn plan_or_tuned(&self, input: &Input, arch: Option<&str>) -> Result<Plan> {
        let stencil = input.stencil(self.stencil.as_deref())?;
        if self.grid.is_none() && (self.levels.is_some() || !self.set.is_empty()) {
            let option = if self.levels.is_some() { "--levels" } else { "--set" };
            return Err(Error::call(format!("{option} needs to know the grid")).help("give it: --grid NIxNJxNK"));
        }
        let choices = self.choices_for(stencil)?;
        input.warn_of_numbers(stencil, choices.precision);
        let prepared = plan::prepare(stencil, choices.precision, choices.contract);
        let settings = args::by_name(&self.set, "--set")?;
        let chosen = Chosen::new(self.grid.as_ref(), self.levels)?;
        // A kernel for any grid takes it that cells stand in rows, where steps along i and j commute.
        if let (Some(adjacency), None) = (&chosen.adjacency, chosen.grid) {
            let why = format!("how many levels the grid `{}` has is not known", adjacency.name.as_told());
            return Err(Error::call(why).help("give --levels N"));
        }
        let plan = match chosen.grid {
            None => plan::plan(&prepared, &choices, None)?,
            Some(grid) => {
                let levels_known = !levels::depend_on_params(&prepared);
                let adjacency = chosen.adjacency.as_deref();
                let region = region(&prepared, &choices, grid, adjacency, settings, levels_known)?;
                let sharing = input.sharing(&choices.share)?.map(|stencils| {
                    let prepare = |own| plan::prepare(own, choices.precision, choices.contract);
                    let prepared: Vec<Stencil> = stencils.iter().map(prepare).collect();
                    Sharing::new(&prepared, choices.precision, grid, adjacency)
                });
                let target =
                    Target { grid, adjacency, region: &region, levels_known, sharing: sharing.as_ref(), layouts: None };
                let arch = arch.filter(|_| !self.kernel.is_given_beside(&KernelArgs::OPEN));
                let tuned = arch.and_then(|arch| {
                    let (source, stencil) = (&input.source.text, &stencil.name);
                    let neighbours = adjacency.map(hash_of_neighbours);
                    let sought = Sought { source, stencil, choices: &choices, extents: grid, neighbours };
                    sought.on_any(arch, |own| Ok(plan::plan(&prepared, own, Some(target)).map(|_| ())?))
                });
                plan::plan(&prepared, tuned.as_ref().unwrap_or(&choices), Some(target))?
            }
        };
        Ok(plan)
    }

    /// The plan of a kernel on arrays that are somebody else's. It takes extents and strides from its arguments; where a thread has to
    /// know how many levels it sweeps, it is for one grid, whose arrays have no room between rows and levels.
    ///
    /// # Errors
    /// There is no such kernel; or a grid is given where none is needed.
    pub fn plan_on_plain_arrays(&self, input: &Input) -> Result<Plan> {
        let stencil = input.stencil(self.stencil.as_deref())?;
        if !stencil.sweeps.is_empty() && self.grid.is_some() {
            return self.plan_of_sweeps(input, stencil);
        }
        if self.grid.is_some() {
            return Err(Error::call(
                "a launcher for the CPU or for Fortran takes extents and strides from its arguments",
            )
            .help("leave out --grid: sweeps alone have to know it"));
        }
        self.plan(input)
    }

    fn plan_of_sweeps(&self, input: &Input, stencil: &Stencil) -> Result<Plan> {
        let choices = self.choices_for(stencil)?;
        input.warn_of_numbers(stencil, choices.precision);
        let chosen = Chosen::new(self.grid.as_ref(), self.levels)?;
        let (Some(grid), None) = (chosen.grid, &chosen.adjacency) else {
            return Err(Error::call("launchers for the CPU and for Fortran take arrays in rows")
                .help("give the grid as its extents: --grid NIxNJxNK"));
        };
        let prepared = plan::prepare(stencil, choices.precision, choices.contract);
        let levels_known = !levels::depend_on_params(&prepared);
        let settings = args::by_name(&self.set, "--set")?;
        let region = region(&prepared, &choices, grid, None, settings, levels_known)?;
        let plan = plan::plan(&prepared, &choices, None)?;
        let (row, outer) = (grid.ni, grid.ni * grid.nj);
        let layout = Layout::of_arrays(plan.storage.strides(), row, outer, grid.nj, region.i.start);
        let known = KnownGrid { grid, adjacency: None, region, levels_known, layout: Arc::new(layout) };
        Ok(plan.knowing(known)?)
    }

    /// What is chosen for the calls of a program.
    ///
    /// # Errors
    /// An option was given that makes no difference.
    pub fn choices_of(&self, program: &Program) -> Result<Choices> {
        let choices = self.kernel.choices_of(program, self.of_cells());
        self.kernel.refuse_idle(&choices)?;
        Ok(choices)
    }

    /// The options that say the same again, but for the stencil.
    pub fn words(&self) -> String {
        self.words_after(self.choices())
    }

    /// The options that say what they choose for a stencil.
    ///
    /// # Errors
    /// An option was given that makes no difference for it, and would be lost.
    pub fn words_for(&self, stencil: &Stencil) -> Result<String> {
        Ok(self.words_after(self.choices_for(stencil)?))
    }

    fn words_after(&self, choices: Choices) -> String {
        words_on(&choices, self.grid.as_ref(), self.levels, &self.set)
    }

    /// The grid as it was named.
    pub fn grid(&self) -> Option<&GridArg> {
        self.grid.as_ref()
    }

    /// What distinguishes it from the other kernels of its stencil, as a part of a file's name.
    pub fn name(&self) -> String {
        let Choices { access, storage, precision, .. } = self.choices();
        let mut name = format!("{storage}-{access}-{}", precision.name());
        let rest = self.words();
        // The first three options are said already.
        for word in rest.split_whitespace().skip(6) {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "._=+-".contains(c) { c } else { '_' };
            name.push('-');
            name.extend(word.trim_start_matches("--").chars().map(plain));
        }
        name
    }
}

/// The options that say again what is chosen, on a grid.
pub fn words_on(choices: &Choices, grid: Option<&GridArg>, levels: Option<usize>, set: &[Pair]) -> String {
    let mut words = choices.words();
    if let Some(grid) = grid {
        words.push_str(&format!(" --grid {}", ShellWord::path(grid.to_string())));
    }
    say_levels(&mut words, levels, set);
    words
}

/// The options that say the same again over meshes, but for what runs there and those about meshes.
pub fn words_over_meshes(precision: Precision, contract: bool, levels: Option<usize>, set: &[Pair]) -> String {
    let mut words = format!("--precision {}", precision.name());
    if !contract {
        words.push_str(" --contract off");
    }
    say_levels(&mut words, levels, set);
    words
}

fn say_levels(words: &mut String, levels: Option<usize>, set: &[Pair]) {
    if let Some(levels) = levels {
        words.push_str(&format!(" --levels {levels}"));
    }
    set.iter().for_each(|pair| words.push_str(&format!(" --set {}", ShellWord::new(pair.to_string()))));
}

/// What a prepared stencil computes on a grid. Parameters that decide nothing about that need no value.
fn region(
    stencil: &Stencil,
    choices: &Choices,
    grid: Grid,
    adjacency: Option<&Adjacency>,
    settings: BTreeMap<String, String>,
    levels_known: bool,
) -> Result<Region> {
    if analysis::bounds::columns_depend_on_params(stencil) {
        let name = &stencil.name;
        return Err(Error::call(format!(
            "parameters say which columns `{name}` computes, and a kernel for one grid knows those"
        ))
        .help("leave out --grid: a kernel for any grid finds them out"));
    }
    let (params, _) = parameters(stencil, choices.precision, choices.contract, settings, levels_known)?;
    Ok(analysis::region(stencil, choices.precision, grid, adjacency, &params)?)
}

/// Values of the parameters: what is set, the defaults, and, where any would do, arbitrary ones; and the names of those.
///
/// # Errors
/// A parameter has no value, or one that is no value for it.
pub fn parameters(
    stencil: &Stencil,
    precision: Precision,
    contract: bool,
    settings: BTreeMap<String, String>,
    any: bool,
) -> Result<(Vec<Value>, Vec<String>)> {
    // The parameters alone, without the fields, whose arrays would be made.
    let bare = Stencil { name: stencil.name.clone(), params: stencil.params.clone(), ..Stencil::default() };
    let problem = Problem::new(Request {
        stencil: &bare,
        precision,
        contract,
        grid: Some(Grid::rows(1, 1, 1)),
        adjacency: None,
        arrays: BTreeMap::new(),
        settings,
        seed: 0,
        cast: Cast::Exact,
        drawing: if any { Drawing::Everything } else { Drawing::Nothing },
    })?;
    Ok((problem.params, problem.drawn))
}
