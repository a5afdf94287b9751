//! What several subcommands are given: groups of arguments, and how the values in them are written.

pub mod given;
pub mod grid;
pub mod kernels;
pub mod knobs;
pub mod mesh;
pub mod method;
pub mod program;
pub mod shapes;
mod variants;

use self::given::{Given, Names};
pub use self::grid::{Chosen, GridArg};
use self::knobs::KnobArgs;
pub use self::variants::VariantArgs;
use clap::ArgAction;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use stencilc_compiler::access::{self, ACCESSES, Access};
use stencilc_compiler::gpu::SHEETS;
use stencilc_compiler::ir::{Precision, Program, Stencil};
use stencilc_compiler::plan::{self, Choices, Math, Open, variants};
use stencilc_compiler::storage::STORAGES;
use stencilc_compiler::storage::fastest::{FASTEST, Fastest};
use stencilc_compiler::storage::fields::{FIELDS, Fields};
use stencilc_compiler::storage::neighbors::{NEIGHBORS, Neighbors};
use stencilc_compiler::storage::order::ORDERS;
pub use stencilc_runtime::device::ARCH;
use stencilc_runtime::{Device, Error};

/// The word for every entry of a registry.
pub const ALL: &str = "all";

/// Of random numbers.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a whole number from 0 on is needed, such as 1".to_owned())
}

/// One kernel.
#[derive(clap::Args)]
pub struct KernelArgs {
    /// How neighbours are reached; where cells stand in no rows, `patches` if nothing is chosen and they are usually faster
    #[arg(long, value_name = "NAME", value_parser = accesses(), default_value_t = Choices::default().access)]
    access: String,
    /// How the grid is stored; if not given, regular, or uncompressed where cells stand in no rows
    #[arg(long, value_name = "NAME", value_parser = storages())]
    storage: Option<String>,
    /// Which axis is fastest in memory; columns if not given, levels for `patches`
    #[arg(long, value_name = "NAME", value_parser = fastest())]
    fastest: Option<Fastest>,
    /// Which neighbours a storage's tables hold
    #[arg(long, value_name = "NAME", value_parser = neighbors(), default_value = Choices::default().neighbors.name())]
    neighbors: Neighbors,
    /// The order of cells, for storages with tables
    #[arg(long, value_name = "NAME", value_parser = layouts(), default_value_t = Choices::default().layout)]
    layout: String,
    /// How several fields lie in memory
    #[arg(long, value_name = "NAME", value_parser = fields(), default_value = Choices::default().fields.name())]
    fields: Fields,
    #[command(flatten)]
    shared: ShareArgs,
    /// What `real` is
    #[arg(long, value_name = "P", value_parser = precision(), default_value = Choices::default().precision.name())]
    precision: Precision,
    #[command(flatten)]
    launch: LaunchArgs,
}

/// Whose layout is shared.
#[derive(clap::Args)]
pub struct ShareArgs {
    /// Lay the grid out alike for the stencils of this file and those of FILE, which may be this one, so that they can work
    /// on the same arrays; it may be given again
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub share: Vec<String>,
}

/// What kernels of every strategy and storage share.
#[derive(clap::Args)]
pub struct LaunchArgs {
    #[command(flatten)]
    pub given: Names,
    /// Threads of a block; 64x2x1 if not given, 32x1x8 for `shared`, 8x1x16 for `warp`, 64x4x1 for `tile` and 32x4x1 for `patches`
    #[arg(long, value_name = "XxYxZ")]
    block: Option<Block>,
    #[command(flatten)]
    knobs: KnobArgs,
    #[command(flatten)]
    pub code: CodeArgs,
}

/// What kernels of every strategy, storage and block share.
#[derive(clap::Args)]
pub struct CodeArgs {
    /// Cells along i that stay together in the layouts z-curve and hilbert: a power of two
    #[arg(long, value_name = "N", value_parser = run_width, default_value_t = Choices::default().run_width)]
    run_width: u32,
    /// Where runs shorter than the run width stand, as at the end of a row: in their place, or behind all others, so that
    /// these are aligned
    #[arg(long, value_name = "in-place|last", value_parser = one_of("last", "in-place"), default_value = "in-place")]
    #[arg(action = ArgAction::Set)]
    short_runs: bool,
    /// Which memory the table of compressed storage is in; constant memory holds 64 KiB
    #[arg(long, value_name = "global|constant", value_parser = one_of("constant", "global"), default_value = "global")]
    #[arg(action = ArgAction::Set)]
    table: bool,
    /// Whether products and sums that stand together become one operation, an fma
    #[arg(long, value_name = "on|off", value_parser = one_of("on", "off"), default_value = "on")]
    #[arg(action = ArgAction::Set)]
    pub contract: bool,
    /// Bits of an index; with 32, kernels that need 64 still get them
    #[arg(long, value_name = "BITS", value_parser = one_of("64", "32"), default_value = "32")]
    #[arg(action = ArgAction::Set)]
    index: bool,
    /// Check every index in the kernel, and tell the first that is wrong: field, cell and offset
    #[arg(long)]
    checked: bool,
    /// Whose exp, log, sin ... kernels call; the device's may differ from the interpreter in the last bits
    #[arg(long, value_name = "own|device", value_parser = math(), default_value = Math::Own.name())]
    pub math: Math,
}

impl KernelArgs {
    /// Those that say what is computed, or watch it, and leave open which kernel does.
    pub const OPEN: [&str; 5] = ["precision", "contract", "index", "checked", "math"];

    /// What they choose.
    pub fn choices(&self) -> Choices {
        let Self { access, storage, fastest, neighbors, layout, fields, shared, precision, launch } = self;
        let variant = Choices {
            access: access.clone(),
            storage: storage.clone().unwrap_or_else(|| Choices::usual_storage(access)),
            fastest: fastest.unwrap_or_else(|| Choices::usual_fastest(access)),
            neighbors: *neighbors,
            layout: layout.clone(),
            fields: *fields,
            share: shared.share.clone(),
            ..Choices::default()
        };
        launch.choices(variant, *precision)
    }
}

impl Given<KernelArgs> {
    /// What they choose for a stencil: with sweeps, which strategy does is not left open. `cells` is how many levels there are, where cells
    /// stand in no rows.
    pub fn choices_for(&self, stencil: &Stencil, cells: Option<usize>) -> Choices {
        self.usual_for(stencil, cells, (self.args.choices(), self.open()))
    }

    /// The same on a device.
    pub fn choices_on(&self, device: Device, stencil: &Stencil, cells: Option<usize>) -> Choices {
        self.usual_for(stencil, cells, self.open_on(device))
    }

    fn usual_for(&self, stencil: &Stencil, cells: Option<usize>, (choices, open): (Choices, Open)) -> Choices {
        let choices = if self.has("access") { choices } else { choices.suiting(stencil) };
        choices.on_cells(std::slice::from_ref(stencil), cells, open)
    }

    /// What they choose for the calls of a program.
    pub fn choices_of(&self, program: &Program, cells: Option<usize>) -> Choices {
        self.args.choices().on_cells(&program.stencils, cells, self.open())
    }

    /// What they choose on a device, and what is still open.
    pub fn open_on(&self, device: Device) -> (Choices, Open) {
        let (choices, open) = (self.args.choices(), self.open());
        if device != Device::Native || self.has("access") || self.has("fastest") {
            return (choices, open);
        }
        let (usual, _) = choices.clone().on_cpu(Open::Kernel);
        let block = if self.has("block") { choices.block } else { usual.block };
        (Choices { block, ..usual }, if open == Open::Kernel { Open::Storage } else { open })
    }

    /// How much of the kernel they leave open.
    fn open(&self) -> Open {
        match (self.has("storage"), self.is_given_beside(&KernelArgs::OPEN)) {
            (true, _) => Open::Nothing,
            (false, true) => Open::Storage,
            (false, false) => Open::Kernel,
        }
    }

    /// Refuses options that make no difference for the kernel that they choose.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse_idle(&self, choices: &Choices) -> stencilc_runtime::Result<()> {
        self.args.launch.given.refuse_idle(std::slice::from_ref(choices))
    }
}

impl LaunchArgs {
    /// What they choose, for one strategy, storage and precision.
    pub fn choices(&self, variant: Choices, precision: Precision) -> Choices {
        let block = self.block.map_or_else(|| Choices::usual_block(&variant.access), |block| block.0);
        self.knobs.set(self.code.choices(Choices { block, ..variant }, precision))
    }

    /// What they choose, for every strategy and storage.
    pub fn every(&self, precision: Precision) -> impl Iterator<Item = Choices> {
        variants().filter(Choices::is_plain).map(move |variant| self.choices(variant, precision))
    }
}

impl CodeArgs {
    /// What they choose, for one strategy, storage, block and precision.
    pub fn choices(&self, variant: Choices, precision: Precision) -> Choices {
        Choices {
            precision,
            run_width: self.run_width,
            short_last: self.short_runs,
            constant: self.table,
            contract: self.contract,
            wide: self.index,
            checked: self.checked,
            math: self.math,
            ..variant
        }
    }
}

/// Threads of a block.
#[derive(Clone, Copy)]
pub struct Block(pub [u32; 3]);

impl FromStr for Block {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [x, y, z] = extents(text, "a block is three numbers of threads, as in 64x2x2")?;
        let narrow = |n: usize| u32::try_from(n).map_err(|_| format!("{n} threads are too many"));
        let block = [narrow(x)?, narrow(y)?, narrow(z)?];
        plan::check_block(block).map_err(|refusal| refusal.message)?;
        Ok(Self(block))
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([x, y, z]) = self;
        write!(f, "{x}x{y}x{z}")
    }
}

/// A power of two.
pub fn run_width(text: &str) -> Result<u32, String> {
    let width = text.parse().ok().filter(|width: &u32| width.is_power_of_two() && *width <= 1 << 20);
    width.ok_or_else(|| "a run width is a power of two, as 32".to_owned())
}

/// The cells of a plane: `512x512`.
pub fn plane(text: &str) -> Result<[usize; 2], String> {
    extents(text, "a plane is two numbers of cells along i and j, as in 512x512")
}

/// A place on a sphere, in degrees to the east and to the north: `10,50`.
pub fn place(text: &str) -> Result<[f64; 2], String> {
    let parts: Vec<Option<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_slice() {
        &[Some(east), Some(north)] => Ok([east, north]),
        _ => Err("a place is two numbers of degrees, to the east and to the north, as in 10,50".to_owned()),
    }
}

/// The cells of a box: `32x32x16`.
pub fn space(text: &str) -> Result<[usize; 3], String> {
    extents(text, "a box is three numbers of cells along x, y and z, as in 32x32x16")
}

/// A cell as it is written: `3,4,5`; `3,4` on level 0; or, of a grid without rows, `17,5`; `17` on level 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At(pub Vec<usize>);

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        parts
            .filter(|parts| (1..=3).contains(&parts.len()))
            .map(Self)
            .ok_or_else(|| "a cell is three numbers along i, j and k, counted from 0, as in 3,4,5".to_owned())
    }
}

/// Numbers with an `x` between them, none of them 0.
fn extents<const N: usize>(text: &str, example: &str) -> Result<[usize; N], String> {
    let parts: Vec<&str> = text.split(['x', 'X']).map(str::trim).collect();
    let Ok(parts) = <[&str; N]>::try_from(parts) else { return Err(example.to_owned()) };
    let mut numbers = [0; N];
    for (number, part) in numbers.iter_mut().zip(parts) {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = match part.parse() {
            Ok(0) => return Err(format!("each is at least 1; {example}")),
            Ok(number) => number,
            Err(_) if is_number => return Err(format!("{part} is more than there can be")),
            Err(_) => return Err(example.to_owned()),
        };
    }
    Ok(numbers)
}

/// `name=value`.
#[derive(Clone)]
pub struct Pair {
    name: String,
    value: String,
}

impl Pair {
    /// What stands before `=`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What stands after it.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// Splits `name=value`; `example` is how it may look.
pub fn pair(text: &str, example: &str) -> Result<Pair, String> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value)) {
        Some((name, value)) if !name.is_empty() && !value.trim().is_empty() => {
            Ok(Pair { name: name.to_owned(), value: value.to_owned() })
        }
        _ => Err(format!("a name and a value belong together, as in {example}")),
    }
}

/// The values by name.
///
/// # Errors
/// A name has two.
pub fn by_name(pairs: &[Pair], option: &str) -> stencilc_runtime::Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    for Pair { name, value } in pairs {
        if let Some(before) = values.insert(name.clone(), value.clone()) {
            return Err(Error::call(format!("{option} gives `{name}` twice: `{before}` and `{value}`"))
                .help(format!("give {option} {name}=... once")));
        }
    }
    Ok(values)
}

/// Names of the access strategies.
pub fn accesses() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(access_names()).map(access::present_name)
}

/// Names of the access strategies, or [`ALL`].
pub fn accesses_or_all() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(all().chain(access_names())).map(access::present_name)
}

/// Names of the storages.
pub fn storages() -> PossibleValuesParser {
    PossibleValuesParser::new(storage_names())
}

/// Names of the storages, or [`ALL`].
pub fn storages_or_all() -> PossibleValuesParser {
    PossibleValuesParser::new(all().chain(storage_names()))
}

/// Ways to follow paths, by name.
fn neighbors() -> impl TypedValueParser<Value = Neighbors> {
    PossibleValuesParser::new(neighbor_names())
        .map(|name| NEIGHBORS.into_iter().find(|own| own.name() == name).unwrap_or_default())
}

/// Names of the ways to follow paths, or [`ALL`].
pub fn neighbors_or_all() -> PossibleValuesParser {
    PossibleValuesParser::new(all().chain(neighbor_names()))
}

fn neighbor_names() -> impl Iterator<Item = PossibleValue> {
    NEIGHBORS.iter().map(|own| PossibleValue::new(own.name()).help(own.summary()))
}

/// Names of the orders of cells.
fn layouts() -> PossibleValuesParser {
    PossibleValuesParser::new(layout_names())
}

/// Names of the orders of cells, or [`ALL`].
pub fn layouts_or_all() -> PossibleValuesParser {
    PossibleValuesParser::new(all().chain(layout_names()))
}

fn layout_names() -> impl Iterator<Item = PossibleValue> {
    ORDERS.iter().map(|order| PossibleValue::new(order.name()).help(order.summary()))
}

/// The fastest axis, by name.
fn fastest() -> impl TypedValueParser<Value = Fastest> {
    PossibleValuesParser::new(fastest_names())
        .map(|name| FASTEST.into_iter().find(|own| own.name() == name).unwrap_or_default())
}

/// Names of the fastest axis, or [`ALL`].
pub fn fastest_or_all() -> PossibleValuesParser {
    PossibleValuesParser::new(all().chain(fastest_names()))
}

fn fastest_names() -> impl Iterator<Item = PossibleValue> {
    FASTEST.iter().map(|own| PossibleValue::new(own.name()).help(own.summary()))
}

/// How fields lie, by name.
fn fields() -> impl TypedValueParser<Value = Fields> {
    PossibleValuesParser::new(field_names())
        .map(|name| FIELDS.into_iter().find(|own| own.name() == name).unwrap_or_default())
}

/// Names of how fields lie, or [`ALL`].
pub fn fields_or_all() -> PossibleValuesParser {
    PossibleValuesParser::new(all().chain(field_names()))
}

fn field_names() -> impl Iterator<Item = PossibleValue> {
    FIELDS.iter().map(|own| PossibleValue::new(own.name()).help(own.summary()))
}

/// Names of the GPUs whose figures are known.
pub fn gpus() -> PossibleValuesParser {
    PossibleValuesParser::new(SHEETS.iter().map(|gpu| PossibleValue::new(gpu.name).help(gpu.source)))
}

fn all() -> impl Iterator<Item = PossibleValue> {
    std::iter::once(PossibleValue::new(ALL).help("each of them"))
}

fn access_names() -> impl Iterator<Item = PossibleValue> {
    let value = |access: &&dyn Access| {
        PossibleValue::new(access.name()).aliases(access.former_names().iter().copied()).help(access.summary())
    };
    ACCESSES.iter().map(value)
}

fn storage_names() -> impl Iterator<Item = PossibleValue> {
    STORAGES.iter().map(|storage| PossibleValue::new(storage.name()).help(storage.summary()))
}

/// Every precision.
pub const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F64];

/// A precision by its name.
pub fn precision() -> impl TypedValueParser<Value = Precision> {
    PossibleValuesParser::new(PRECISIONS.map(Precision::name))
        .map(|name| PRECISIONS.into_iter().find(|precision| precision.name() == name).unwrap_or_default())
}

/// Whose functions, by name.
fn math() -> impl TypedValueParser<Value = Math> {
    one_of(Math::Own.name(), Math::Device.name()).map(|own| if own { Math::Own } else { Math::Device })
}

/// One of two words: true for the first.
pub fn one_of(yes: &'static str, no: &'static str) -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new([yes, no]).map(move |word| word == yes)
}
