//! How stencils over meshes are computed: which strategy, how vectors lie, in which order, with how many threads. Some commands
//! take one of each, others try several.

use super::ALL;
use super::program::PlanArgs;
use crate::terminal;
use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::path::{Path, PathBuf};
use stencilc_compiler::ir::MeshStencil;
use stencilc_compiler::mesh::{MeshChoices, STRATEGIES, Strategy, Threads, VectorLayout};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::mesh::order::auto::{self, Touched};
use stencilc_runtime::mesh::order::{self, METHODS, Options, Ordering};
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::{Error, Result};

/// Options about meshes. Those with several values are for commands that try several.
#[derive(clap::Args)]
pub struct MeshArgs {
    /// The mesh that a stencil or program over one runs on: a .npz or .msh file, or the text of OP2's airfoil
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub mesh: Option<PathBuf>,
    /// On a mesh: how elements that add to the same place are kept apart; several with commas between them, where several are tried
    #[arg(long, alias = "strategies", value_name = "NAME,...", value_delimiter = ',', value_parser = strategies())]
    strategy: Vec<String>,
    /// On a mesh: how the parts of vectors lie in memory, and the levels of elements
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = layouts())]
    vectors: Vec<String>,
    /// On a mesh: the order of elements in memory, auto if not given; inputs and outputs stay in the order of the mesh
    #[arg(long, alias = "orders", value_name = "METHOD,...", value_delimiter = ',', value_parser = orders())]
    order: Vec<String>,
    /// On a mesh: the set whose elements are put in order, which the others follow; if not given, the last that is declared
    #[arg(long, value_name = "SET")]
    lead: Option<String>,
    /// On a mesh: threads of a block, 128 if not given; after an x, how many blocks have to fit on a multiprocessor, which
    /// bounds registers; and after a slash, how many levels a thread goes through, where that is not chosen by itself
    #[arg(long, value_name = "N[xM][/L],...", value_delimiter = ',')]
    threads: Vec<Threads>,
}

/// These options by themselves.
#[derive(clap::Parser)]
struct Words {
    #[command(flatten)]
    own: MeshArgs,
    #[command(flatten)]
    plan: PlanArgs,
}

fn everything() -> PossibleValue {
    PossibleValue::new(ALL).help("each of them")
}

fn strategies() -> PossibleValuesParser {
    let own = STRATEGIES.iter().map(|own| PossibleValue::new(own.name()).help(own.summary()));
    PossibleValuesParser::new(own.chain([everything()]))
}

fn layouts() -> PossibleValuesParser {
    let own = VectorLayout::ALL.iter().map(|own| PossibleValue::new(own.name()).help(own.summary()));
    PossibleValuesParser::new(own.chain([everything()]))
}

fn orders() -> PossibleValuesParser {
    let own = METHODS.iter().map(|own| PossibleValue::new(own.name()).help(own.summary()));
    let auto = PossibleValue::new(auto::AUTO).help(auto::SUMMARY);
    PossibleValuesParser::new([auto].into_iter().chain(own).chain([everything()]))
}

/// An order of the elements of a mesh.
pub struct Ordered {
    /// What the command line calls it.
    pub name: &'static str,
    /// What was chosen, and why, if the choice was left open.
    pub why: Option<String>,
    /// The new numbers.
    pub ordering: Ordering,
}

impl MeshArgs {
    /// The file of the mesh.
    ///
    /// # Errors
    /// It is not given, for `name`, which runs over `mesh`.
    pub fn file(&self, name: &str, mesh: &str) -> Result<&Path> {
        self.mesh.as_deref().ok_or_else(|| {
            Error::call(format!("`{name}` runs over the mesh `{mesh}`: which file holds it?"))
                .help("give it: --mesh FILE; `stencilc mesh make` makes one")
        })
    }

    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--mesh", self.mesh.is_some()),
            ("--strategy", !self.strategy.is_empty()),
            ("--vectors", !self.vectors.is_empty()),
            ("--order", !self.order.is_empty()),
            ("--lead", self.lead.is_some()),
            ("--threads", !self.threads.is_empty()),
        ];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Refuses what only meshes have.
    ///
    /// # Errors
    /// One of the options was given.
    pub fn refuse(&self) -> Result<()> {
        match self.given() {
            Some(option) => {
                Err(Error::call(format!("{option} is for stencils over a mesh, and this one runs over a grid"))
                    .help("a stencil over a mesh says so: `stencil name over mesh.set`"))
            }
            None => Ok(()),
        }
    }

    fn strategies(&self, usual: &[&'static dyn Strategy]) -> Vec<&'static dyn Strategy> {
        let chosen = STRATEGIES.iter().copied().filter(|own| is(&self.strategy, own.name()));
        if self.strategy.is_empty() { usual.to_vec() } else { chosen.collect() }
    }

    /// The strategies that are asked for; if none is, all that differ for a stencil. Where nothing is added, they are the same.
    pub fn strategies_for(&self, stencil: &MeshStencil) -> Vec<&'static dyn Strategy> {
        match stencil.incremented().next() {
            Some(_) => self.strategies(STRATEGIES),
            None => self.strategies(&[MeshChoices::default().strategy]),
        }
    }

    /// The strategies that are asked for and add in the order of elements; if none is asked for, all that do.
    pub fn ordered_strategies(&self) -> Vec<&'static dyn Strategy> {
        self.strategies(STRATEGIES).into_iter().filter(|own| own.is_ordered()).collect()
    }

    /// The layouts that are asked for.
    fn layouts(&self) -> Vec<VectorLayout> {
        VectorLayout::ALL.into_iter().filter(|own| is(&self.vectors, own.name())).collect()
    }

    /// The layouts that are asked for; if none is, or all are, those that differ on a mesh with levels, or without.
    pub fn layouts_for(&self, has_levels: bool) -> Vec<VectorLayout> {
        let differ = |own: &VectorLayout| {
            let is_named = self.vectors.iter().any(|name| name == own.name());
            is_named || has_levels || !own.is_by_column()
        };
        let chosen = if self.vectors.is_empty() { VectorLayout::ALL.to_vec() } else { self.layouts() };
        chosen.into_iter().filter(differ).collect()
    }

    /// The orders that are asked for; these if none is.
    pub fn orders(&self, usual: &[&'static str]) -> Vec<&'static str> {
        if self.order.is_empty() {
            return usual.to_vec();
        }
        // Of all orders, the chosen one is one.
        let auto = self.order.iter().any(|own| own == auto::AUTO).then_some(auto::AUTO);
        let named = METHODS.iter().map(|own| own.name()).filter(|name| is(&self.order, name));
        auto.into_iter().chain(named).collect()
    }

    /// The threads that are asked for; these if none are.
    pub fn threads(&self, usual: &[Threads]) -> Vec<Threads> {
        if self.threads.is_empty() { usual.to_vec() } else { self.threads.clone() }
    }

    /// The options that these words are, as [`MeshArgs::words`] has them, and whether calls of a program share a kernel.
    ///
    /// # Errors
    /// They are none any more.
    pub fn of_words(words: &str) -> Result<(Self, PlanArgs)> {
        let words = shlex::split(words).unwrap_or_default();
        let read = Words::try_parse_from(std::iter::once("run".to_owned()).chain(words));
        read.map(|words| (words.own, words.plan)).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Error::input(first).help("tune again")
        })
    }

    /// Whether it is left open how something is computed.
    pub fn is_open(&self) -> bool {
        let Self { strategy, vectors, order, lead, threads, .. } = self;
        strategy.is_empty() && vectors.is_empty() && order.is_empty() && lead.is_none() && threads.is_empty()
    }

    /// Whether an order was named.
    pub fn has_order(&self) -> bool {
        !self.order.is_empty()
    }

    /// Whether threads were given.
    pub fn has_threads(&self) -> bool {
        !self.threads.is_empty()
    }

    /// What a command that takes one of each is to take, on a mesh with levels or without.
    ///
    /// # Errors
    /// Several are given.
    pub fn choices(&self, has_levels: bool) -> Result<MeshChoices> {
        self.choices_of(self.strategy()?, has_levels)
    }

    /// The strategy of such a command.
    ///
    /// # Errors
    /// Several are given.
    pub fn strategy(&self) -> Result<&'static dyn Strategy> {
        one("--strategy", &self.strategies(&[MeshChoices::default().strategy]))
    }

    /// The options that say the same again.
    ///
    /// # Errors
    /// As [`MeshArgs::choices`].
    pub fn words(&self, has_levels: bool) -> Result<String> {
        self.words_on(self.mesh.as_ref().map(|file| file.display().to_string()).as_deref(), has_levels)
    }

    /// The same, on a mesh that is called so.
    ///
    /// # Errors
    /// As [`MeshArgs::choices`].
    pub fn words_on(&self, mesh: Option<&str>, has_levels: bool) -> Result<String> {
        let MeshChoices { strategy, layout, threads, .. } = self.choices(has_levels)?;
        let mut words = format!("--strategy {} --vectors {} --threads {threads}", strategy.name(), layout.name());
        let given = [
            mesh.map(|file| format!(" --mesh {}", ShellWord::path(file))),
            self.order.first().map(|order| format!(" --order {}", ShellWord::new(order))),
            self.lead.as_ref().map(|set| format!(" --lead {}", ShellWord::new(set))),
        ];
        words.extend(given.into_iter().flatten());
        Ok(words)
    }

    /// What is to be taken with a strategy.
    ///
    /// # Errors
    /// Several of something else are given.
    pub fn choices_of(&self, strategy: &'static dyn Strategy, has_levels: bool) -> Result<MeshChoices> {
        let usual = MeshChoices::default();
        let threads = one("--threads", &self.threads(&[usual.threads]))?;
        Ok(MeshChoices {
            strategy,
            layout: match self.vectors.is_empty() {
                true => strategy.usual_layout(has_levels),
                false => one("--vectors", &self.layouts())?,
            },
            threads,
            ..usual
        })
    }

    /// The order of a command that takes one, for kernels whose fields lie in these ways.
    ///
    /// # Errors
    /// Several are given; or as [`MeshArgs::ordering`].
    pub fn one_ordering(&self, problem: &MeshProblem, layouts: &[VectorLayout]) -> Result<Ordered> {
        let ordered = self.ordering(problem, one("--order", &self.orders(&[auto::AUTO]))?, layouts)?;
        ordered.tell();
        Ok(ordered)
    }

    /// The set that leads orders, in the file.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn leading_set(&self, problem: &MeshProblem) -> Result<usize> {
        let mesh = &problem.mesh;
        let last = problem.program.mesh.sets.iter().last().map(|(_, set)| set.name.as_str());
        let lead = self.lead.as_deref().or(last).unwrap_or_default();
        mesh.set_named(lead).ok_or_else(|| {
            let sets: Vec<&str> = mesh.sets.iter().map(|set| set.name.as_str()).collect();
            Error::call(format!("the mesh has no set `{lead}`")).help(format!("its sets are {}", sets.join(", ")))
        })
    }

    /// An order of elements by its name, for kernels whose fields lie in these ways: what is chosen depends on it.
    ///
    /// # Errors
    /// There is no such set, or the mesh lacks what the method needs.
    pub fn ordering(&self, problem: &MeshProblem, name: &str, layouts: &[VectorLayout]) -> Result<Ordered> {
        let (mesh, declared) = (&problem.mesh, &problem.program.mesh);
        let lead = self.leading_set(problem)?;
        let options = Options::new(lead);
        if name != auto::AUTO {
            let method = order::find(name)?;
            return Ok(Ordered { name: method.name(), why: None, ordering: method.ordering(mesh, &options)? });
        }
        // Those of the mesh that the program knows.
        let known = declared
            .maps
            .iter()
            .filter_map(|(_, map)| mesh.map_named(mesh.set_named(&declared.sets[map.from].name)?, &map.name));
        let is_by_column = layouts.iter().any(|own| own.is_by_column());
        let touched = if declared.levels && is_by_column { Touched::Columns } else { Touched::Sectors };
        let chosen = auto::choose(mesh, &known.collect::<Vec<_>>(), touched, &options)?;
        Ok(Ordered { name: chosen.method, why: Some(chosen.why), ordering: chosen.ordering })
    }
}

impl Ordered {
    /// Says which was chosen, and why, if that was left open.
    pub fn tell(&self) {
        if let Some(why) = &self.why {
            terminal::note(&format!("--order {}: {why}", self.name));
        }
    }
}

fn is(chosen: &[String], name: &str) -> bool {
    chosen.iter().any(|own| own == name || own == ALL)
}

/// The only one.
fn one<T: Copy>(option: &str, all: &[T]) -> Result<T> {
    match all {
        [only] => Ok(*only),
        _ => Err(Error::call(format!("{option} names several, and here one is taken"))
            .help("name one; `stencilc bench` tries several")),
    }
}
