//! Options with defaults of which one needs to know whether the user gave any.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use stencilc_compiler::plan::{self, Choices};

/// What only programs have, in whatever command.
const OF_PROGRAMS: [&str; 11] =
    ["fuse", "steps", "times", "resident", "every", "checkpoint", "resume", "no_graph", "gpus", "animate", "fps"];

/// A group of options, and whether any of them was given.
pub struct Given<A> {
    /// The options.
    pub args: A,
    /// Whether the user gave one.
    pub is_given: bool,
    /// The names of those that the user gave.
    names: Vec<String>,
}

impl<A> Given<A> {
    /// Whether the user gave the one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// The names of those that the user gave, and that are not among these.
    pub fn beside(&self, others: &[&str]) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !others.contains(name))
    }

    /// Whether the user gave one that is not among these.
    pub fn is_given_beside(&self, others: &[&str]) -> bool {
        self.beside(others).next().is_some()
    }
}

impl<A: Args> Args for Given<A> {
    fn augment_args(command: Command) -> Command {
        A::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

impl<A: Args> FromArgMatches for Given<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let own = A::augment_args(Command::new("own"));
        let names = own.get_arguments().map(|arg| arg.get_id().as_str());
        let given = names.filter(|name| matches.value_source(name) == Some(ValueSource::CommandLine));
        let names: Vec<String> = given.map(str::to_owned).collect();
        Ok(Self { args: A::from_arg_matches(matches)?, is_given: !names.is_empty(), names })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The names of all options that the user gave, of a command that has other options for other subjects.
#[derive(Clone)]
pub struct Names(Vec<String>);

impl Names {
    /// Refuses options that make no difference for any of these kernels.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse_idle(&self, kernels: &[Choices]) -> stencilc_runtime::Result<()> {
        for own in plan::options() {
            // Where several values can be given, the name says so.
            let is_given = self.0.iter().any(|name| *name == own || *name == super::knobs::several(own));
            let refusals: Option<Vec<_>> = kernels.iter().map(|kernel| plan::idle(own, kernel)).collect();
            if let (true, Some(first)) = (is_given, refusals.and_then(|all| all.into_iter().next())) {
                let refusal: stencilc_runtime::Error = first.into();
                let option = own.replace('_', "-");
                let message = format!("--{option} makes no difference here: {}", refusal.message);
                return Err(stencilc_runtime::Error { message, ..refusal });
            }
        }
        Ok(())
    }

    /// Refuses options that only programs have, where a stencil runs by itself.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse_of_programs(&self, stencil: &str) -> stencilc_runtime::Result<()> {
        match self.0.iter().find(|name| OF_PROGRAMS.contains(&name.as_str())) {
            Some(name) => Err(stencilc_runtime::Error::call(format!(
                "--{} is for programs, and `{stencil}` is a stencil",
                name.replace('_', "-")
            ))
            .help("a program repeats calls of stencils: `program name { repeat steps { ... } }`")),
            None => Ok(()),
        }
    }

    /// Those that are among these.
    pub fn among(&self, some: &[&str]) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).filter(|name| some.contains(name))
    }

    /// The first that is not among these, as it is written.
    pub fn beside(&self, others: &[&str]) -> Option<String> {
        let found = self.0.iter().find(|name| !others.contains(&name.as_str()))?;
        // Some fields hold several of what their option gives one of.
        let name = if found == "grids" { "grid" } else { found };
        Some(format!("--{}", name.replace('_', "-")))
    }
}

impl Args for Names {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for Names {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = matches.ids().map(clap::Id::as_str).filter(|name| {
            // Groups are named as their types are; what types of the text are, is a part of the text.
            name.starts_with(char::is_lowercase)
                && *name != "types"
                && matches.value_source(name) == Some(ValueSource::CommandLine)
        });
        Ok(Self(given.map(str::to_owned).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
