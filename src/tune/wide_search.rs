//! The kernels that `tune` searches among, if nothing else is asked for: more than `bench` measures.

use crate::args::ALL;
use crate::args::kernels::KernelsArgs;
use crate::args::knobs::KnobLists;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// [`KernelsArgs`] with other defaults.
pub struct WideSearch(pub KernelsArgs);

impl WideSearch {
    fn widen(command: Command) -> Command {
        KnobLists::widened(command)
            .mut_arg("neighbors", |arg| arg.default_value(ALL))
            // Not the random order, which is there to see how bad an order can be.
            .mut_arg("layout", |arg| arg.default_values(["row-major", "z-curve", "hilbert"]))
    }
}

impl Args for WideSearch {
    fn augment_args(command: Command) -> Command {
        Self::widen(KernelsArgs::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::widen(KernelsArgs::augment_args_for_update(command))
    }
}

impl FromArgMatches for WideSearch {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        KernelsArgs::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
