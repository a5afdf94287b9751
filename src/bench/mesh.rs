//! `stencilc bench` of a stencil over a mesh: every strategy, layout and order.

use super::Args;
use crate::args::mesh::{MeshArgs, Threads};
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::run::mesh::Texts;
use crate::terminal::{self, Progress};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::MeshStencil;
use stencilc_compiler::mesh::{MeshChoices, VectorLayout};
use stencilc_runtime::Device;
use stencilc_runtime::build::{Build, Usage};
use stencilc_runtime::device::Platform;
use stencilc_runtime::mesh::order::auto;
use stencilc_runtime::mesh::program::MeshProblem;
use stencilc_runtime::mesh::program::kernels::{Kernels, Renumbered, Works};
use stencilc_runtime::mesh::program::measure::{self, Measured};
use stencilc_runtime::verify::Verdict;
use stencilc_runtime::verify::mesh::Expected;
use stencilc_runtime::{Error, Fault, Result};

/// Options of `bench` that are about meshes.
#[derive(clap::Args)]
pub struct OnMesh {
    #[command(flatten)]
    pub over: MeshArgs,
    /// On a mesh: what is added to starts from 0, so that it is written, not added to
    #[arg(long)]
    pub from_zero: bool,
    /// On a mesh: a folder for the texts of the kernels that are measured
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub texts: Option<PathBuf>,
}

impl OnMesh {
    /// Refuses what only meshes have.
    ///
    /// # Errors
    /// One of the options was given.
    pub fn refuse(&self) -> Result<()> {
        self.over.refuse()?;
        match (self.from_zero, self.texts.is_some()) {
            (false, false) => Ok(()),
            (is_zero, _) => {
                let option = if is_zero { "--from-zero" } else { "--texts" };
                Err(Error::call(format!("{option} is for stencils over a mesh, and this one runs over a grid")))
            }
        }
    }
}

/// What a thread of a kernel takes.
#[derive(Clone, Debug, Serialize)]
pub struct Taken {
    kernel: String,
    #[serde(flatten)]
    usage: Usage,
}

/// One way to compute a stencil.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    pub strategy: &'static str,
    pub vectors: &'static str,
    pub order: &'static str,
    pub threads: u32,
    pub at_once: u32,
    #[serde(skip)]
    pub choices: MeshChoices,
}

impl Variant {
    pub fn new(choices: MeshChoices, order: &'static str) -> Self {
        Self {
            strategy: choices.strategy.name(),
            vectors: choices.layout.name(),
            order,
            threads: choices.block,
            at_once: choices.blocks_at_once,
            choices,
        }
    }

    /// `128x8`
    pub fn threads(&self) -> String {
        Threads { block: self.threads, at_once: self.at_once }.to_string()
    }

    /// The options that choose it.
    pub fn words(&self) -> String {
        let Self { strategy, vectors, order, .. } = self;
        format!("--strategy {strategy} --vectors {vectors} --order {order} --threads {}", self.threads())
    }

    /// A part of a file's name.
    fn name(&self) -> String {
        format!("{}-{}-{}-{}x{}", self.strategy, self.vectors, self.order, self.threads, self.at_once)
    }
}

/// What came of one.
#[derive(Clone, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub variant: Variant,
    /// Of each kernel, in the order of their launches; nothing on the emulator.
    pub taken: Vec<Taken>,
    pub gb_per_s: f64,
    pub of_copy: f64,
    /// How often an average datum of a block's working set is used.
    pub reuse: Option<f64>,
    pub colours: Option<usize>,
    /// Bytes of tables and maps for each target.
    pub table_bytes: f64,
    #[serde(flatten)]
    pub measured: Measured,
}

/// What measures.
pub struct Meter<M: Build> {
    machine: Arc<M>,
    texts: Option<Rc<Texts>>,
    runs: usize,
    /// Gigabytes a second of a copy of so many bytes.
    pub copy: f64,
    pub copied: usize,
}

impl<M: Build> Meter<M> {
    /// Measures the copy as well.
    ///
    /// # Errors
    /// There is not enough memory, or the kernel has failed.
    pub fn new(machine: &Arc<M>, runs: usize, bytes: usize) -> Result<Self> {
        let copied = if bytes > 64 << 20 { 1 << 30 } else { 1 << 20 };
        let copy = measure::copy_rate(&**machine, copied, runs)?;
        Ok(Self { machine: Arc::clone(machine), texts: None, runs, copy, copied })
    }

    /// Measures one way to compute a stencil.
    ///
    /// # Errors
    /// The strategy cannot compute it; there is not enough memory, or a kernel has failed.
    pub fn row(
        &self,
        problem: &Arc<MeshProblem>,
        expected: &Expected,
        renumbered: &Rc<Renumbered>,
        variant: Variant,
        bytes: usize,
    ) -> Result<Row> {
        let works = renumbered.works(problem, measure::only_call(problem)?, &variant.choices)?;
        let (machine, placed) = (Arc::clone(&self.machine), Rc::clone(renumbered));
        let mut kernels = Kernels::new(Arc::clone(problem), machine, variant.choices, placed);
        if let Some(texts) = &self.texts {
            let (texts, variant) = (Rc::clone(texts), variant.name());
            kernels = kernels.read_by(Rc::new(move |name, text| texts.keep(&format!("{name}-{variant}"), text)));
        }
        let measured = measure::measure(problem, &kernels, expected, self.runs)?;
        let gb_per_s = bytes as f64 / measured.statistics.median_us / 1e3;
        let is_own = |kernel: &str| works.kernels.iter().any(|work| work.name == kernel);
        let own = kernels.usages().into_iter().filter(|(kernel, _)| is_own(kernel));
        let taken = own.map(|(kernel, usage)| Taken { kernel, usage }).collect();
        let Works { colours, .. } = works;
        let (reuse, table_bytes) = (works.reuse(), works.table_bytes());
        let of_copy = gb_per_s / self.copy;
        Ok(Row { variant, taken, gb_per_s, of_copy, reuse, colours, table_bytes, measured })
    }
}

/// Measures the kernels of a stencil.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device, or a kernel differs from the interpreter.
pub fn bench(args: &Args, stencil: &MeshStencil, json: bool) -> Result<()> {
    let (own, kernels) = (&args.of_mesh, &args.kernels);
    refuse_of_grids(&args.names, &["from_zero", "texts", "runs"], &stencil.stencil.name)?;
    let texts = Rc::new(Texts::new(own.texts.as_deref())?);
    let problem = DrawnOver {
        stencil,
        precision: kernels.precisions().first().copied().unwrap_or_default(),
        contract: kernels.code.contract,
        over: &own.over,
        levels: kernels.levels,
        set: &kernels.set,
        seed: kernels.seed,
        from_zero: own.from_zero,
    };
    let problem = Arc::new(problem.problem()?);
    let (device, no_gpu) = Device::choose(kernels.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("no kernel is measured: {}; --device emulate tries the call", error.message));
    }
    match device.open(2)? {
        Platform::Cpu => {
            Err(Error::call("the interpreter has no strategies to measure")
                .help("give --device cuda or --device emulate"))
        }
        Platform::Emulator(emulator) => all(args, &problem, &emulator, texts, json),
        Platform::Gpu(gpu) => all(args, &problem, &gpu, texts, json),
    }
}

fn all<M: Build>(
    args: &Args,
    problem: &Arc<MeshProblem>,
    machine: &Arc<M>,
    texts: Rc<Texts>,
    json: bool,
) -> Result<()> {
    let own = &args.of_mesh;
    let stencil = &problem.program.stencils[measure::only_call(problem)?.stencil];
    let (strategies, layouts) = (own.over.strategies_for(stencil), own.over.layouts(&VectorLayout::ALL));
    let (orders, threads) = (own.over.orders(&[auto::AUTO]), own.over.threads(&[MeshChoices::default().block]));
    let [bytes, of_maps] = measure::bytes(problem)?;
    let expected = Expected::new(problem)?;
    let meter = Meter::new(machine, args.method.method().runs, bytes)?;
    let meter = Meter { texts: Some(texts), ..meter };
    let progress = Progress::new(orders.len() * strategies.len() * layouts.len() * threads.len(), "measuring");
    let (mut rows, mut refused, mut why) = (Vec::new(), BTreeMap::new(), None);
    for name in &orders {
        let ordered = own.over.ordering(problem, name)?;
        progress.aside(|| ordered.tell());
        why = why.or(ordered.why);
        let renumbered = Rc::new(Renumbered::new(problem, &ordered.ordering)?);
        for &strategy in &strategies {
            for &layout in &layouts {
                for &Threads { block, at_once } in &threads {
                    let choices =
                        MeshChoices { strategy, layout, block, blocks_at_once: at_once, ..MeshChoices::default() };
                    let row = meter.row(problem, &expected, &renumbered, Variant::new(choices, ordered.name), bytes);
                    progress.advance(1);
                    match row {
                        Ok(row) => rows.push(row),
                        // What a strategy cannot do is no reason not to measure the others.
                        Err(error) if error.fault == Fault::Input => {
                            refused.entry(strategy.name()).or_insert(error);
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }
    drop(progress);
    if rows.is_empty()
        && let Some((_, error)) = refused.pop_first()
    {
        return Err(error);
    }
    for (strategy, error) in &refused {
        terminal::note(&format!("{strategy} is left out: {}", error.message));
    }
    rows.sort_by(|a, b| a.measured.statistics.median_us.total_cmp(&b.measured.statistics.median_us));
    let wrong = rows.iter().filter(|row| row.is_wrong()).count();
    if json {
        let left_out: BTreeMap<_, _> = refused.iter().map(|(name, error)| (name, &error.message)).collect();
        terminal::json(&json!({
            "stencil": problem.program.program.name,
            "precision": problem.precision,
            "bytes": bytes,
            "bytes_of_maps": of_maps,
            "copy_gb_per_s": meter.copy,
            "why_order": why,
            "rows": rows,
            "left_out": left_out,
        }))?;
    } else {
        let head = format!(
            "{}, {}: {:.1} MB, {:.1} of them maps; copying {} MiB: {:.0} GB/s\n",
            problem.program.program.name,
            problem.precision.name(),
            bytes as f64 / 1e6,
            of_maps as f64 / 1e6,
            meter.copied >> 20,
            meter.copy,
        );
        terminal::print(&(head + &table(&rows, args.kernels.device == Some(Device::Emulate))))?;
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Error::check(format!("{} differ from the interpreter", terminal::count(wrong, "kernel")))),
    }
}

impl Row {
    /// Whether what came out is wrong.
    pub fn is_wrong(&self) -> bool {
        measure::wrong(&self.measured.verdict).is_some()
    }

    /// How what came out compares.
    pub fn verdict(&self) -> String {
        match (&self.measured.verdict, measure::wrong(&self.measured.verdict)) {
            (_, Some(what)) => format!("WRONG: {what}"),
            (Verdict::Within { share }, None) => format!("within {share:.2} of the bound"),
            (_, None) => "equal".to_owned(),
        }
    }
}

/// A column: its head, whether it holds numbers, what it says of a row, and what that means.
type Column = (&'static str, bool, fn(&Row) -> String, &'static str);

/// All columns. Those that say the same in each row, or nothing, are left out, but for times.
const COLUMNS: [Column; 13] = [
    ("strategy", false, |row| row.variant.strategy.to_owned(), ""),
    ("vectors", false, |row| row.variant.vectors.to_owned(), ""),
    ("order", false, |row| row.variant.order.to_owned(), ""),
    ("threads", true, |row| row.variant.threads(), ""),
    ("us", true, |row| format!("{:.1}", row.measured.statistics.median_us), ""),
    (
        "GB/s",
        true,
        |row| format!("{:.0}", row.gb_per_s),
        "each field once, those that are added to twice, and the maps",
    ),
    ("of copy", true, |row| format!("{:.0}%", 100.0 * row.of_copy), "GB/s beside those of the copy"),
    (
        "reuse",
        true,
        |row| row.reuse.map_or(String::new(), |reuse| format!("{reuse:.2}")),
        "threads of a block that use an average datum of those that the block reaches through maps",
    ),
    ("colours", true, |row| row.colours.map_or(String::new(), |colours| colours.to_string()), "launches, one a colour"),
    (
        "tables",
        true,
        |row| if row.table_bytes > 0.0 { format!("{:.1}", row.table_bytes) } else { String::new() },
        "bytes of tables and maps that kernels take, for each target",
    ),
    ("registers", true, |row| joined(row, |taken| taken.registers), "of a thread of each kernel"),
    ("local", true, local, "bytes of local memory of a thread of each kernel"),
    ("result", false, Row::verdict, ""),
];

fn joined(row: &Row, number: fn(Usage) -> u32) -> String {
    row.taken.iter().map(|taken| number(taken.usage).to_string()).collect::<Vec<_>>().join("+")
}

fn local(row: &Row) -> String {
    let takes = row.taken.iter().any(|taken| taken.usage.local > 0);
    if takes { joined(row, |taken| taken.local) } else { String::new() }
}

/// A line for each row, and what its columns mean.
fn table(rows: &[Row], is_emulated: bool) -> String {
    let always = ["strategy", "vectors", "us", "result"];
    let says = |(head, _, text, _): &&Column| {
        let texts = || rows.iter().map(text);
        let first = texts().next().unwrap_or_default();
        let differs = texts().any(|text| text != first);
        match *head {
            // How fast an emulated kernel is tells nothing of memory.
            "GB/s" | "of copy" => !is_emulated,
            head if always.contains(&head) => true,
            "order" | "threads" => differs,
            _ => texts().any(|text| !text.is_empty()),
        }
    };
    let columns: Vec<&Column> = COLUMNS.iter().filter(says).collect();
    let mut lines = vec![columns.iter().map(|(head, ..)| (*head).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|(_, _, text, _)| text(row)).collect()));
    let right: Vec<usize> = (0..columns.len()).filter(|&column| columns[column].1).collect();
    let means = columns.iter().filter(|(.., means)| !means.is_empty());
    let means: Vec<String> = means.map(|(head, .., means)| format!("  {head}: {means}\n")).collect();
    terminal::table(&lines, &right) + &means.concat()
}
