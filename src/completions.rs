//! `stencilc completions`: what shells need to complete its calls.

use crate::terminal;
use clap::Command;
use clap_complete::{Shell, generate};
use stencilc_runtime::Result;

/// Arguments of `completions`.
#[derive(clap::Args)]
#[command(after_help = "Install it once, and again after an update:\n\n  \
    bash        stencilc completions bash > ~/.local/share/bash-completion/completions/stencilc\n  \
    zsh         stencilc completions zsh > ~/.zfunc/_stencilc    (with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc)\n  \
    fish        stencilc completions fish > ~/.config/fish/completions/stencilc.fish\n  \
    powershell  stencilc completions powershell >> $PROFILE\n\n\
    Folders that are not there yet have to be made first (`mkdir -p`); a new shell knows the completions.")]
pub struct Args {
    /// For which shell
    shell: Shell,
}

/// Prints a shell's script for the calls of `command`.
///
/// # Errors
/// It cannot be printed.
pub fn completions(args: &Args, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    generate(args.shell, &mut command, name, &mut script);
    terminal::print_bytes(&script)
}
