//! `stencilc mesh`: meshes, and what is in their files.

mod convert;
mod info;
mod make;
mod reorder;

use stencilc_runtime::Result;

/// Arguments of `mesh`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a mesh to begin with, as a .npz file of its maps and fields
    Make(make::Args),
    /// Say what a mesh consists of, how often elements are used, and how far apart those are that are used together
    Info(info::Args),
    /// Give elements new numbers, so that what is used together lies together
    Reorder(reorder::Args),
    /// Write a mesh to another file: .npz, or .vtu for ParaView
    Convert(convert::Args),
}

/// Does what one of its subcommands says.
///
/// # Errors
/// Those of the subcommand.
pub fn mesh(args: &Args, json: bool) -> Result<()> {
    match &args.command {
        Command::Make(args) => make::make(args, json),
        Command::Info(args) => info::info(args, json),
        Command::Reorder(args) => reorder::reorder(args, json),
        Command::Convert(args) => convert::convert(args, json),
    }
}
