//! The command line: one file a subcommand, each from arguments to a request to a call to print. [`run`] is all of it, for `main` and
//! for whoever else hands the words of a call on; [`texts`] is what it knows of texts, for callers that hold them in memory.

mod args;
mod audience;
mod bench;
mod build;
mod check;
mod cmake;
mod completions;
mod doctor;
mod drawn;
mod emit;
mod exhausted;
mod explain;
mod grid;
mod heard;
mod input;
mod kernel;
mod line;
mod list;
mod mesh;
mod message;
mod mistyped;
mod new;
mod output;
pub mod pictures;
mod print;
mod profile;
mod report;
mod run;
mod snapshot;
mod summary;
mod terminal;
mod test;
pub mod texts;
mod tune;
mod tuned;
mod verify;

use clap::{CommandFactory, Parser, Subcommand};
pub use exhausted::end as out_of_memory;
use message::Failure;
use std::ffi::OsString;
use std::io::Write;
use std::time::Instant;
use stencilc_compiler::ir::Stored;
use stencilc_runtime::files::{self, trust};
use stencilc_runtime::{Error, Result, threads};

/// Compiles stencils to CUDA, runs them, and checks them to the last bit
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "FILE is a path, or the name of a stencil that comes along (`stencilc list stencils`).\n\
    Exit status: 0 done, 1 the input is wrong, 2 the call is wrong, 3 a check failed.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// What a type is that the file has a name for by `type NAME = ...`, instead of what it says; may be given several times
    #[arg(long = "type", global = true, value_name = "NAME=real|f32|f64", value_parser = input::type_given, display_order = 99)]
    types: Vec<(String, Stored)>,
    /// Print JSON on stdout; messages still go to stderr
    #[arg(long, global = true, display_order = 100)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Write a stencil file to begin with
    New(new::Args),
    /// Look for errors
    Check(check::Args),
    /// Say what a stencil reads, computes and costs
    Explain(explain::Args),
    /// Write a stencil's kernel, launcher and header, and say what the kernel costs
    Build(build::Args),
    /// Compute a stencil on arrays, or on random numbers
    Run(Box<run::Args>),
    /// Run the tests that stand in stencil files
    Test(test::Args),
    /// Compare every kernel with the interpreter, bit for bit
    Verify(verify::Args),
    /// Measure which storage, strategy and block is the fastest
    Bench(Box<bench::Args>),
    /// Find the fastest kernel for a grid, and remember it: `run` and `build` then take it
    Tune(Box<tune::Args>),
    /// Say what hardware counters of a GPU tell of kernels, beside their times
    Profile(Box<profile::Args>),
    /// Make a page of what was measured, to look at in a browser
    Report(report::Args),
    /// Keep generated code beside its source, and show how it changes
    Snapshot(snapshot::Args),
    /// Make grids whose cells stand in no rows, and say how large tables of neighbours are
    Grid(grid::Args),
    /// Make meshes, and say what is in their files
    Mesh(mesh::Args),
    /// Show what there is to choose from
    List(list::Args),
    /// Look for what compiling and running need
    Doctor,
    /// Write what CMake's `find_package(stencilc)` looks for, and print the folder
    Cmake(cmake::Args),
    /// Print what a shell needs to complete calls
    Completions(completions::Args),
}

/// Does what the words of a call say, of which the first is the program's name, and returns the exit status. Results are on stdout,
/// messages on stderr.
///
/// It is called once in a process: the types and the files that a call names hold for all that the process reads and writes.
pub fn run(words: impl IntoIterator<Item = OsString>) -> u8 {
    let start = Instant::now();
    let words: Vec<OsString> = words.into_iter().collect();
    // A file that grows beyond `ulimit -f` is then an error with a message, not the end of the program by a signal.
    // SAFETY: ignoring a signal runs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    terminal::tame_panics();
    files::remove_at_signals();
    files::begin();
    let mended = |error| mistyped::mended(error, &Cli::command(), &words);
    let status = match Cli::try_parse_from(&words) {
        Ok(cli) => done(cli, start),
        Err(error) => {
            let error = mended(error);
            // Not for help and versions, which are no errors.
            if error.use_stderr() && words.iter().any(|word| word == "--json") {
                let _ = terminal::json(&Failure::call(&error.to_string()));
            }
            terminal::end_of_call(error, &words, |words| Cli::try_parse_from(words).err().map(mended))
        }
    };
    // Where it goes to nobody, nobody can be told.
    let _ = std::io::stdout().flush();
    status
}

/// Does what a call says that was understood, and returns the exit status.
fn done(Cli { command, types, json }: Cli, start: Instant) -> u8 {
    if json {
        exhausted::promise_json();
    }
    if computes(&command) {
        threads::start();
    }
    let done =
        match types.is_empty() || reads_sources(&command) {
            true => input::give_types(types).and_then(|()| dispatch(command, json, start)),
            false => Err(Error::call("--type says what the types of a stencil file are, and this reads none")
                .help("leave it out")),
        };
    for error in trust::refused() {
        terminal::note(
            &error.help.map_or_else(|| error.message.clone(), |help| format!("{}\n  {help}", error.message)),
        );
    }
    match done {
        Ok(()) => 0,
        Err(error) => {
            // A result that tells of errors, as that of `check`, has said it already.
            if json && !terminal::has_json() {
                let _ = terminal::json(&Failure::new(&error, terminal::told()));
            }
            terminal::error(&error);
            run::together::end(error.fault.status());
            error.fault.status()
        }
    }
}

/// Whether a subcommand has work that threads share. To start them costs more than the others take.
fn computes(command: &Command) -> bool {
    match command {
        Command::New(_) | Command::Check(_) | Command::List(_) | Command::Doctor | Command::Completions(_) => false,
        Command::Cmake(_) => false,
        Command::Explain(_)
        | Command::Build(_)
        | Command::Run(_)
        | Command::Test(_)
        | Command::Verify(_)
        | Command::Bench(_)
        | Command::Tune(_)
        | Command::Profile(_)
        | Command::Report(_)
        | Command::Snapshot(_)
        | Command::Grid(_)
        | Command::Mesh(_) => true,
    }
}

/// Whether a subcommand reads stencil files.
fn reads_sources(command: &Command) -> bool {
    match command {
        Command::New(_) | Command::Grid(_) | Command::Mesh(_) | Command::List(_) => false,
        Command::Doctor | Command::Cmake(_) | Command::Completions(_) => false,
        Command::Check(_) | Command::Explain(_) | Command::Build(_) | Command::Run(_) | Command::Test(_) => true,
        Command::Verify(_) | Command::Bench(_) | Command::Tune(_) | Command::Profile(_) => true,
        Command::Report(_) | Command::Snapshot(_) => true,
    }
}

fn dispatch(command: Command, json: bool, start: Instant) -> Result<()> {
    match command {
        Command::New(args) => new::new(&args, json),
        Command::Check(args) => check::check(&args, json),
        Command::Explain(args) => explain::explain(&args, json),
        Command::Build(args) => build::build(&args, json),
        Command::Run(args) => run::run(&args, json, start),
        Command::Test(args) => test::test(&args, json),
        Command::Verify(args) => verify::verify(&args, json),
        Command::Bench(args) => bench::bench(&args, json),
        Command::Tune(args) => tune::tune(&args, json),
        Command::Profile(args) => profile::profile(&args, json),
        Command::Report(args) => report::report(&args, json),
        Command::Snapshot(args) => snapshot::snapshot(&args, json),
        Command::Grid(args) => grid::grid(&args, json),
        Command::Mesh(args) => mesh::mesh(&args, json),
        Command::List(args) => list::list(&args, json),
        Command::Doctor => doctor::doctor(json),
        Command::Cmake(args) => cmake::cmake(&args, json),
        Command::Completions(args) => completions::completions(&args, Cli::command()),
    }
}
