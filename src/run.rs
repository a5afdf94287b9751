//! `stencilc run`: computes a stencil or a program on arrays, or on random numbers.

pub mod animate;
mod grid;
mod idle;
mod kept;
pub mod mesh;
mod outputs;
pub mod picture;
pub mod program;
mod stencil;
pub mod texts;
mod timings;
pub mod together;
mod way;

use crate::args::given::{Given, Names};
use crate::args::{self, At, GridArg, KernelArgs, Pair};
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
use stencilc_runtime::files::Kind;
use stencilc_runtime::job::Subject;
use stencilc_runtime::npy::Stored;
use stencilc_runtime::ranks::mpi;
use stencilc_runtime::{Array, Cast, Device, Drawing, Error, Result, npy};
use together::{Together, together};

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("Pictures").multiple(true).args(["plot", "animate"])))]
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
    /// Extents of the grid, halo included, NIxNJ for one level; not needed where arrays tell them. Or a .npz file that says which cells are
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
    #[arg(long, value_name = "K", requires = "Pictures")]
    level: Option<usize>,
    /// A cell to print at, I,J for one on level 0, over a mesh an element or ELEMENT,K; it may be given again. If not given, the middle
    /// of what is computed
    #[arg(long, value_name = "I,J,K")]
    at: Vec<At>,
    /// Show the bits of printed values, too
    #[arg(long)]
    bits: bool,
    /// cpu, native (kernels on the CPU), emulate, cuda or cuda:N; if not given, the first GPU or else the cpu
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
    together(|others| computed(args, json, start, others))
}

/// Does so, beside other processes if there are any.
fn computed(args: &Args, json: bool, start: Instant, others: &Together) -> Result<()> {
    let input = input::load(&args.file)?;
    if let Some(program) = input.over_mesh(args.of_program.program.as_deref(), args.stencil.as_deref())? {
        return program::run(args, &input, Subject::Mesh(program), (json, start), others);
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
    match input.program(args.of_program.program.as_deref(), args.stencil.as_deref())? {
        Some(program) => program::run(args, &input, Subject::Grid(program.clone()), (json, start), others),
        None if others.ranks().is_some() => Err(Error::call(
            "several processes compute a program together, and this is a stencil",
        )
        .help(format!("write a program that calls it; {}=off lets each process compute all of it", mpi::VARIABLE))),
        None => stencil::run(args, &input, json, start),
    }
}

/// What a stencil or program declares.
struct Declared {
    /// `stencil laplap`.
    what: String,
    fields: Vec<DeclaredField>,
    /// Whether fields may have several parts, of which one is drawn: `q.1`.
    has_parts: bool,
}

struct DeclaredField {
    name: String,
    is_read: bool,
    is_written: bool,
    /// Whether it is a single number, and no field.
    is_number: bool,
}

impl Declared {
    fn of_stencil(stencil: &Stencil) -> Self {
        let field = |(_, own): (FieldId, &Field)| DeclaredField {
            name: own.name.clone(),
            is_read: own.role.is_read(),
            is_written: own.role.is_written(),
            is_number: false,
        };
        Self {
            what: format!("stencil `{}`", stencil.name),
            fields: stencil.fields.iter().map(field).collect(),
            has_parts: false,
        }
    }

    /// The field or number of a name, if it suits an option.
    fn find(&self, name: &str, option: &str) -> Result<&DeclaredField> {
        let is_any = option == "--plot";
        let suiting = || self.fields.iter().filter(|own| is_any || own.is_written);
        suiting().find(|own| own.name == name).ok_or_else(|| {
            let names: Vec<&str> = suiting().map(|own| own.name.as_str()).collect();
            let error =
                Error::call(format!("{} has no {} `{name}`", self.what, if is_any { "field" } else { "output" }));
            match guess(name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("it has {}", names.join(", "))),
            }
        })
    }
}

/// What a file holds, and how its name ends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Format {
    kind: Kind,
    ending: &'static str,
}

const ARRAY: Format = Format { kind: Kind::Array, ending: "npy" };
const PICTURE: Format = Format { kind: Kind::Picture, ending: "png" };
/// Fields with their mesh.
const VTU: Format = Format { kind: Kind::Mesh, ending: "vtu" };

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
    declared: &Declared,
    format: Format,
    steps: Steps,
) -> Result<Vec<(String, PathBuf)>> {
    let mut targets = Vec::new();
    for (name, path) in args::by_name(pairs, option)? {
        let part = name.split_once('.').filter(|_| declared.has_parts && format == PICTURE);
        let field = part.map_or(name.as_str(), |(field, _)| field);
        declared.find(field, option)?;
        let path = PathBuf::from(path);
        will_write(option, &path, format, steps)?;
        targets.push((name, path));
    }
    Ok(targets)
}

/// Tells that a file will be written.
///
/// # Errors
/// It cannot be, or its name says another kind of file.
fn will_write(option: &str, path: &Path, Format { kind, ending }: Format, steps: Steps) -> Result<()> {
    match steps {
        Steps::None => output::check(option, path, ending, kind),
        Steps::Each => output::check_each(option, path, ending, kind),
    }
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

/// The arrays that are given, by the names of their fields. `rows` says where a field of a grid in rows has its numbers: an array of two
/// axes for one with levels is told to be taken as one level.
fn arrays(pairs: &[Pair], rows: impl Fn(&str) -> Option<Place>) -> Result<BTreeMap<String, Array>> {
    let mut arrays = BTreeMap::new();
    for (name, path) in args::by_name(pairs, "--in")? {
        let array = npy::load(path.as_ref())?;
        note_level(&path, &array.shape, rows(&name));
        arrays.insert(name, array);
    }
    Ok(arrays)
}

/// The same, of which nothing but the shapes is read yet.
fn stored(pairs: &[Pair], rows: impl Fn(&str) -> Option<Place>) -> Result<BTreeMap<String, Stored>> {
    let mut files = BTreeMap::new();
    for (name, path) in args::by_name(pairs, "--in")? {
        let file = Stored::open(path.as_ref())?;
        note_level(&path, file.shape(), rows(&name));
        files.insert(name, file);
    }
    Ok(files)
}

/// Notes that an array of two axes is taken as one level of a field that has levels.
fn note_level(path: &str, shape: &[usize], place: Option<Place>) {
    if let ([nj, ni], Some(Place { horizontal: true, levels: Levels::Full, .. })) = (shape, place) {
        terminal::note(&format!("`{path}` has the shape ({nj}, {ni}): taken as one level, (1, {nj}, {ni})"));
    }
}
