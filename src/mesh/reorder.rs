//! `stencilc mesh reorder`: new numbers for the elements of a mesh.

use crate::{args, terminal};
use clap::ValueHint;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;
use std::path::PathBuf;
use stencilc_compiler::diagnostic::guess;
use stencilc_runtime::mesh::order::{self, METHODS, Measures, Options};
use stencilc_runtime::mesh::{self, Mesh};
use stencilc_runtime::{Error, Result};

/// Arguments of `mesh reorder`.
#[derive(clap::Args)]
#[command(
    after_help = "The set that leads is put in order, and the others follow: their elements stand in the order of \
    those that maps tie them to. The file gets the fields user_number, the numbers that elements had before the first \
    ordering, and with --method metis block_number."
)]
pub struct Args {
    /// The file of a mesh
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// How elements are put in order
    #[arg(long, value_name = "NAME", value_parser = methods())]
    method: String,
    /// The set that leads: best the one that increments go to
    #[arg(long, value_name = "NAME")]
    set: String,
    /// Elements of a block: at most so many are in one of --method metis, and reuse is measured in such blocks
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    block: u16,
    /// The field of coordinates that --method hilbert goes by, if it is not called x
    #[arg(long, value_name = "NAME")]
    coordinates: Option<String>,
    /// What --method random begins with
    #[arg(long, value_name = "N", value_parser = args::seed)]
    seed: Option<u64>,
    /// The file to write
    #[arg(short, long, value_name = "FILE.npz", value_hint = ValueHint::FilePath)]
    out: PathBuf,
}

fn methods() -> PossibleValuesParser {
    PossibleValuesParser::new(METHODS.iter().map(|method| PossibleValue::new(method.name()).help(method.summary())))
}

/// What is printed.
#[derive(Serialize)]
struct Reordered<'a> {
    files: [&'a PathBuf; 1],
    method: &'a str,
    set: &'a str,
    block: u16,
    before: Measures,
    after: Measures,
}

/// Puts a mesh in order.
///
/// # Errors
/// The file holds no mesh, it has no such set, the method does not suit it, or the new one cannot be written.
pub fn reorder(args: &Args, json: bool) -> Result<()> {
    mesh::will_save("--out", &args.out)?;
    let method = order::find(&args.method)?;
    let mesh = mesh::load(&args.file)?;
    let lead = set(&mesh, &args.set)?;
    let idle = [("--coordinates", args.coordinates.is_some(), "hilbert"), ("--seed", args.seed.is_some(), "random")];
    if let Some((option, _, own)) = idle.into_iter().find(|(_, is_given, own)| *is_given && method.name() != *own) {
        return Err(Error::call(format!("{option} makes no difference for --method {}", method.name()))
            .help(format!("it is of --method {own}; leave it out")));
    }
    let block = usize::from(args.block);
    let options = Options { lead, coordinates: args.coordinates.as_deref(), seed: args.seed.unwrap_or(0), block };
    let ordering = method.ordering(&mesh, &options)?;
    let new = ordering.recorded(&mesh);
    let reordered = Reordered {
        files: [&args.out],
        method: method.name(),
        set: &args.set,
        block: args.block,
        before: Measures::new(&mesh, lead, block, None)?,
        after: Measures::new(&new, lead, block, ordering.cuts.as_ref())?,
    };
    mesh::save(&new, &args.out)?;
    match json {
        true => terminal::json(&reordered),
        false => terminal::print(&reordered.text()),
    }
}

/// The number of the set called `name`.
fn set(mesh: &Mesh, name: &str) -> Result<usize> {
    mesh.set_named(name).ok_or_else(|| {
        let names: Vec<&str> = mesh.sets.iter().map(|set| set.name.as_str()).collect();
        let error = Error::call(format!("{} has no set `{name}`", mesh.origin));
        match guess(name, names.iter().copied()) {
            Some(guess) => error.help(format!("did you mean `{guess}`?")),
            None => error.help(format!("its sets are {}", names.join(", "))),
        }
    })
}

impl Reordered<'_> {
    /// The same, to be read.
    fn text(&self) -> String {
        let mut rows = vec![["", "before", "after"].map(str::to_owned).to_vec()];
        let mut row =
            |name: String, of: &dyn Fn(&Measures) -> String| rows.push(vec![name, of(&self.before), of(&self.after)]);
        row(format!("bandwidth of {}, at most", self.set), &|measures| measures.bandwidth.max.to_string());
        row("  on average".to_owned(), &|measures| format!("{:.1}", measures.bandwidth.mean));
        for (number, reuse) in self.before.reuse.iter().enumerate() {
            let name = format!("reuse through {}", reuse.map);
            row(name, &|measures| format!("{:.2}", measures.reuse[number].mean));
        }
        format!(
            "wrote {}, by {}\n\n{}  bandwidth: how far apart the numbers of neighbours are\n  \
             reuse: how often a block of {} elements uses what it loads once\n",
            self.files[0].display(),
            self.method,
            terminal::table(&rows, &[1, 2]),
            self.block,
        )
    }
}
