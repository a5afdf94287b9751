//! `stencilc run`: computes a stencil or a program on arrays, or on random numbers.

pub mod animate;
mod kept;
pub mod mesh;
mod outputs;
mod picture;
pub mod program;
mod stencil;
mod timings;

use crate::args::given::{Given, Names};
use crate::args::{self, At, Chosen, GridArg, KernelArgs, Pair};
use crate::input;
use crate::output;
use crate::terminal;
use crate::tuned::TunedArgs;
use clap::ArgGroup;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::ir::{Field, FieldId, Levels, Place, Stencil};
use stencilc_compiler::plan::Choices;
use stencilc_runtime::files::Kind;
use stencilc_runtime::problem::Request;
use stencilc_runtime::{Cast, Device, Drawing, Error, Result, npy};

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("pictures").multiple(true).args(["plot", "animate"])))]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: String,
    /// Which stencil of the file
    #[arg(long, value_name = "NAME")]
    stencil: Option<String>,
    /// Extents of the grid, halo included; not needed where arrays tell them. Or a .npz file that says which cells are
    /// neighbours
    #[arg(long, value_name = "NIxNJxNK|FILE")]
    grid: Option<GridArg>,
    /// Levels of a grid from a file; not needed where arrays tell them
    #[arg(long, value_name = "N", value_parser = args::grid::levels)]
    levels: Option<usize>,
    /// An input, from a .npy file of shape (nk, nj, ni). A stencil of which none is given computes random numbers; otherwise, and
    /// of a program, all have to be given, or --draw says which are not
    #[arg(long = "in", value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--in phi=phi.npy"))]
    inputs: Vec<Pair>,
    /// Draw inputs at random: those that are neither given nor come with a mesh, or those that are named
    #[arg(long, value_name = "NAME,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    draw: Option<Vec<String>>,
    /// Where to write an output, as a .npy file; of what runs over a mesh, or as a .vtu file for ParaView, several in one
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--out res=res.npy"))]
    outputs: Vec<Pair>,
    /// A parameter
    #[arg(long, value_name = "NAME=VALUE", value_parser = |text: &str| args::pair(text, "--set dt=0.5"))]
    set: Vec<Pair>,
    /// Where to draw one level of a field, as a .png file
    #[arg(long, value_name = "NAME=FILE", value_parser = |text: &str| args::pair(text, "--plot res=res.png"))]
    plot: Vec<Pair>,
    /// The level to draw, from 0; if not given, the middle of those computed
    #[arg(long, value_name = "K", requires = "pictures")]
    level: Option<usize>,
    /// A cell to print at; it may be given again. If not given, the middle of the computed cells
    #[arg(long, value_name = "I,J,K")]
    at: Vec<At>,
    /// Show the bits of printed values, too
    #[arg(long)]
    bits: bool,
    /// cpu, emulate, cuda or cuda:N; if not given, the first GPU or else the cpu
    #[arg(long)]
    device: Option<Device>,
    #[command(flatten)]
    kernel: Given<KernelArgs>,
    #[command(flatten)]
    tuned: TunedArgs,
    #[command(flatten)]
    of_mesh: args::mesh::MeshArgs,
    /// On a mesh: a .vtu file for all outputs that it has a place for
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    vtu: Option<String>,
    /// On a mesh: a folder for the texts of the kernels that are launched
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    texts: Option<PathBuf>,
    #[command(flatten)]
    of_program: program::ProgramArgs,
    /// How often to compute; times are those of the median
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Of the random numbers in inputs that are drawn: another seed, other numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = args::seed)]
    seed: u64,
    /// Let numbers lose precision to fit their field: reals are rounded, or lose their fractions. What is beyond the field's type,
    /// as NaN is of an `int`, stays an error
    #[arg(long)]
    cast: bool,
    /// Show what took how long
    #[arg(long)]
    timings: bool,
}

/// Notes that an output takes the place of the file that another field was read from.
fn note_replaced(inputs: &[Pair], output: &str, path: &Path) {
    let Ok(written) = path.canonicalize() else { return };
    let is_read =
        |pair: &&Pair| pair.name() != output && Path::new(pair.value()).canonicalize().ok().as_ref() == Some(&written);
    if let Some(pair) = inputs.iter().find(is_read) {
        terminal::note(&format!("`{}` held the input `{}`; now it holds `{output}`", path.display(), pair.name()));
    }
}

/// Runs what is meant.
///
/// # Errors
/// Something is wrong with the stencil, the call, the arrays or the device, or nothing can be written.
pub fn run(args: &Args, json: bool, start: Instant) -> Result<()> {
    let input = input::load(&args.file)?;
    if let Some(program) = input.over_mesh(args.of_program.program.as_deref(), args.stencil.as_deref())? {
        return mesh::run(args, &input, &program, json, start);
    }
    args.of_mesh.refuse()?;
    if args.vtu.is_some() {
        return Err(Error::call("--vtu is for what runs over a mesh, and this runs over a grid")
            .help("--out NAME=FILE.npy writes a field, and --plot NAME=FILE.png draws one"));
    }
    if args.texts.is_some() {
        return Err(Error::call("--texts is for what runs over a mesh, and this runs over a grid")
            .help("`stencilc build` writes the kernel of a stencil"));
    }
    if let Some(program) = input.program(args.of_program.program.as_deref(), args.stencil.as_deref())? {
        return program::run(args, &input, program, json, start);
    }
    stencil::run(args, &input, json, start)
}

/// Whether there are files of several steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    None,
    Each,
}

/// The fields and paths of an option, once it is sure that they can be written and are those of nothing else.
fn targets(
    pairs: &[Pair],
    option: &str,
    stencil: &Stencil,
    suits: impl Fn(&Field) -> bool,
    steps: Steps,
) -> Result<Vec<(FieldId, PathBuf)>> {
    let mut targets: Vec<(FieldId, PathBuf)> = Vec::new();
    for (name, path) in args::by_name(pairs, option)? {
        let suiting = || stencil.fields.iter().filter(|(_, field)| suits(field));
        let Some((id, _)) = suiting().find(|(_, field)| field.name == name) else {
            let names: Vec<&str> = suiting().map(|(_, field)| field.name.as_str()).collect();
            let what = if option == "--plot" { "field" } else { "output" };
            let error = Error::call(format!("stencil `{}` has no {what} `{name}`", stencil.name));
            return Err(match guess(&name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("it has {}", names.join(", "))),
            });
        };
        let path = PathBuf::from(path);
        let (ending, kind) = if option == "--out" { ("npy", Kind::Array) } else { ("png", Kind::Picture) };
        match steps {
            Steps::None => output::check(option, &path, ending, kind)?,
            Steps::Each => output::check_each(option, &path, ending, kind)?,
        }
        targets.push((id, path));
    }
    Ok(targets)
}

impl Args {
    /// What is drawn at random. A stencil by itself computes random numbers if none are given, so that it runs at once. Who gives
    /// some means to give all, and a program starts from something: there, only what --draw says is drawn.
    fn drawing(&self, is_program: bool) -> Drawing {
        match self.draw.as_deref() {
            Some([]) => Drawing::Inputs,
            Some(names) => Drawing::Named(names.to_vec()),
            None if is_program || !self.inputs.is_empty() => Drawing::Nothing,
            None => Drawing::Inputs,
        }
    }

    /// What may happen to numbers on their way into fields.
    fn casting(&self) -> Cast {
        if self.cast { Cast::Allowed } else { Cast::Exact }
    }
}

/// What is asked for: arrays, parameters, the grid.
fn problem_request<'a>(args: &Args, stencil: &'a Stencil, choices: &Choices, drawing: Drawing) -> Result<Request<'a>> {
    let chosen = Chosen::new(args.grid.as_ref(), args.levels)?;
    let mut arrays = BTreeMap::new();
    for (name, path) in args::by_name(&args.inputs, "--in")? {
        let array = npy::load(path.as_ref())?;
        let field = stencil.fields.iter().map(|(_, field)| field).find(|field| field.name == name);
        if let (Some(Field { place: Place { horizontal: true, levels: Levels::Full, .. }, .. }), [nj, ni]) =
            (field, array.shape.as_slice())
            && chosen.adjacency.is_none()
        {
            terminal::note(&format!("`{path}` has the shape ({nj}, {ni}): taken as one level, (1, {nj}, {ni})"));
        }
        arrays.insert(name, array);
    }
    Ok(Request {
        stencil,
        precision: choices.precision,
        contract: choices.contract,
        grid: chosen.grid,
        adjacency: chosen.adjacency,
        arrays,
        settings: args::by_name(&args.set, "--set")?,
        seed: args.seed,
        cast: args.casting(),
        drawing,
    })
}
