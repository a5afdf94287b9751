//! The knobs of access strategies, each an option: those that a strategy declares are there by themselves.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use stencilc_compiler::access::knobs::{Knob, Setting, knobs};
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;

/// One setting of each knob: `--tile 2x4`.
pub struct KnobArgs(Vec<(&'static Knob, Setting)>);

/// Several settings of each: `--tiles 2x4,4x4`.
pub struct KnobLists(Vec<(&'static Knob, Vec<Setting>)>);

impl KnobArgs {
    /// Choices with the knobs that were given.
    pub fn set(&self, choices: Choices) -> Choices {
        self.0.iter().fold(choices, |choices, (knob, setting)| choices.with(knob.name, setting.numbers()))
    }
}

impl KnobLists {
    /// Choices with every setting that was given of every knob that their strategy has.
    pub fn each(&self, choices: Choices) -> Vec<Choices> {
        let mut all = vec![choices.clone()];
        for (knob, usual) in choices.settings() {
            let given = self.0.iter().find(|(own, _)| own.name == knob.name).map(|(_, settings)| &settings[..]);
            let settings = given.unwrap_or(std::slice::from_ref(&usual));
            let with = |own: &Choices| -> Vec<Choices> {
                settings.iter().map(|setting| own.clone().with(knob.name, setting.numbers())).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }
}

/// The name of the option that takes several settings of a knob.
pub(super) fn several(name: &str) -> String {
    let ending = if name.ends_with("ch") { "es" } else { "s" };
    format!("{name}{ending}")
}

/// What is usual, for the help.
fn usual(knob: &Knob) -> String {
    let [double, single] = [Precision::F64, Precision::F32].map(|precision| Setting::from((knob.usual)(precision)));
    match double == single {
        true => format!("{double} if not given"),
        false => format!("{double} if not given, {single} in f32"),
    }
}

fn option(knob: &'static Knob, name: String) -> Arg {
    let read = |text: &str| {
        knob.read(text).map_err(|refusal| match refusal.help {
            Some(help) => format!("{}: {help}", refusal.message),
            None => refusal.message,
        })
    };
    Arg::new(name.clone()).long(name).value_parser(read)
}

impl Args for KnobArgs {
    fn augment_args(command: Command) -> Command {
        command.args(knobs().into_iter().map(|knob| {
            let own = option(knob, knob.name.to_owned()).value_name(knob.form);
            own.help(format!("{}; {}", knob.summary, usual(knob)))
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KnobArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |knob: &'static Knob| Some((knob, matches.get_one::<Setting>(knob.name)?.clone()));
        Ok(Self(knobs().into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl KnobLists {
    /// A command whose knobs have, unless they are given, all settings that are worth a try.
    pub fn widened(command: Command) -> Command {
        knobs().into_iter().fold(command, |command, knob| {
            let help = format!("{}; several with commas between them", knob.summary);
            command.mut_arg(several(knob.name), |own| own.help(help).default_values(knob.searched))
        })
    }
}

impl Args for KnobLists {
    fn augment_args(command: Command) -> Command {
        command.args(knobs().into_iter().map(|knob| {
            let own = option(knob, several(knob.name)).value_name(format!("{},...", knob.form));
            let help = format!("{}; several with commas between them. {}", knob.summary, usual(knob));
            own.value_delimiter(',').action(ArgAction::Append).help(help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KnobLists {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |knob: &'static Knob| {
            let settings = matches.get_many::<Setting>(&several(knob.name))?;
            Some((knob, settings.cloned().collect()))
        };
        Ok(Self(knobs().into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
