//! `stencilc grid`: grids, and their tables of neighbours.

mod bars;
mod info;
mod make;
mod patches;

use stencilc_runtime::Result;

/// Arguments of `grid`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a grid to begin with, as a .npz file of the arrays left, right, top, bottom, x and y
    Make(make::Args),
    /// Say how large the tables of neighbours are that a stencil needs, and what compression gains
    Info(info::Args),
}

/// Does what one of its subcommands says.
///
/// # Errors
/// Those of the subcommand.
pub fn grid(args: &Args, json: bool) -> Result<()> {
    match &args.command {
        Command::Make(args) => make::make(args, json),
        Command::Info(args) => info::info(args, json),
    }
}
