//! `stencilc bench` of a stencil over a mesh: every strategy, layout and order.

use super::Args;
use crate::args::Device;
use crate::input::Input;
use crate::run::mesh::{compiled, emulated};
use crate::terminal::{self, Progress};
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use stencilc_compiler::ir::MeshStencil;
use stencilc_compiler::mesh::{Choices, Layout, Strategy};
use stencilc_runtime::cuda::Gpu;
use stencilc_runtime::emulate::{Compiler, Emulator};
use stencilc_runtime::machine::Machine;
use stencilc_runtime::mesh::order::{self, METHODS, Options};
use stencilc_runtime::mesh::program::kernels::{Kernels, Load, Placed};
use stencilc_runtime::mesh::program::measure::{self, COPY, Measured, Verdict};
use stencilc_runtime::mesh::program::{MeshProblem, Request};
use stencilc_runtime::{Error, Fault, Result, mesh};

/// Options of `bench` that are about meshes.
#[derive(clap::Args)]
pub struct MeshArgs {
    /// The mesh: a .npz or .msh file, or the text of OP2's airfoil
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub mesh: Option<PathBuf>,
    /// On a mesh: strategies, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all", value_parser = names(Strategy::ALL.map(Strategy::name), Strategy::ALL.map(Strategy::summary)))]
    pub strategies: Vec<String>,
    /// On a mesh: how vectors lie in memory
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all", value_parser = names(Layout::ALL.map(Layout::name), Layout::ALL.map(Layout::summary)))]
    pub vectors: Vec<String>,
    /// On a mesh: orders of elements
    #[arg(long, value_name = "METHODS", value_delimiter = ',', default_value = "none")]
    pub orders: Vec<String>,
    /// On a mesh: the set that leads orders; if not given, the last that is declared
    #[arg(long, value_name = "SET")]
    pub lead: Option<String>,
    /// On a mesh: threads of a block, and, after an x, blocks that have to fit on a multiprocessor
    #[arg(long, value_name = "N[xM]", value_delimiter = ',', default_value = "128")]
    pub threads: Vec<String>,
    /// On a mesh: what is added to starts from 0, so that it is written, not added to
    #[arg(long)]
    pub from_zero: bool,
    /// On a mesh: a folder for the texts of the kernels that are measured
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub texts: Option<PathBuf>,
    /// On a mesh: levels
    #[arg(long, value_name = "N")]
    pub mesh_levels: Option<usize>,
}

fn names<const N: usize>(names: [&'static str; N], summaries: [&'static str; N]) -> PossibleValuesParser {
    let own = names.into_iter().zip(summaries).map(|(name, summary)| PossibleValue::new(name).help(summary));
    PossibleValuesParser::new(own.chain([PossibleValue::new("all").help("each of them")]).collect::<Vec<_>>())
}

/// What came of one kernel.
#[derive(Serialize)]
struct Row {
    strategy: &'static str,
    vectors: &'static str,
    order: String,
    threads: u32,
    at_once: u32,
    /// Registers of the threads of each kernel.
    registers: Vec<u32>,
    gb_per_s: f64,
    of_copy: f64,
    #[serde(flatten)]
    measured: Measured,
}

/// Measures the kernels of a stencil.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device, or a kernel differs from the interpreter.
pub fn bench(args: &Args, input: &Input, stencil: &MeshStencil, json: bool) -> Result<()> {
    let own = &args.of_mesh;
    let name = &stencil.stencil.name;
    let Some(path) = &own.mesh else {
        return Err(Error::call(format!("`{name}` runs over the mesh `{}`: which file holds it?", stencil.mesh.name))
            .help("give it: --mesh FILE; `stencilc mesh make` makes one"));
    };
    let _ = input;
    let (device, no_gpu) = Device::choose(args.kernels.device);
    if let Some(error) = no_gpu {
        terminal::note(&format!("no kernel is measured: {}; --device emulate tries the call", error.message));
    }
    let precision = args.kernels.precisions().first().copied().unwrap_or_default();
    let program = measure::program(stencil, own.from_zero);
    let request = Request {
        program: &program,
        precision,
        contract: true,
        mesh: mesh::load(path)?,
        levels: own.mesh_levels,
        arrays: Default::default(),
        settings: crate::args::by_name(&args.kernels.set, "--set")?,
        seed: args.kernels.seed,
        cast: false,
    };
    let problem = MeshProblem::new(request)?;
    match device {
        Device::Cpu => {
            Err(Error::call("the interpreter has no strategies to measure")
                .help("give --device cuda or --device emulate"))
        }
        Device::Emulate => {
            let (machine, compiler) = (Emulator::default(), Compiler::find()?);
            let load = |name: &str, text: &str| emulated(&compiler, name, text);
            all(args, &problem, &machine, &load, &RefCell::default(), json)
        }
        Device::Cuda(ordinal) => {
            let gpu = Gpu::open(ordinal)?;
            let registers = RefCell::new(Vec::new());
            let load = |name: &str, text: &str| {
                let kernel = compiled(&gpu, name, text)?;
                registers.borrow_mut().push(kernel.registers);
                Ok(kernel)
            };
            all(args, &problem, &gpu, &load, &registers, json)
        }
    }
}

fn all<M: Machine>(
    args: &Args,
    problem: &MeshProblem,
    machine: &M,
    load: &Load<M>,
    registers: &RefCell<Vec<u32>>,
    json: bool,
) -> Result<()> {
    let own = &args.of_mesh;
    let is = |chosen: &[String], name: &str| chosen.iter().any(|own| own == name || own == "all");
    let strategies: Vec<Strategy> = Strategy::ALL.into_iter().filter(|all| is(&own.strategies, all.name())).collect();
    let layouts: Vec<Layout> = Layout::ALL.into_iter().filter(|all| is(&own.vectors, all.name())).collect();
    let threads: Vec<(u32, u32)> = own.threads.iter().map(|text| parse_threads(text)).collect::<Result<_>>()?;
    let orders: Vec<&str> = METHODS.iter().map(|own| own.name()).filter(|name| is(&own.orders, name)).collect();
    if let Some(name) = own.orders.iter().find(|name| *name != "all" && METHODS.iter().all(|own| own.name() != **name))
    {
        return Err(Error::call(format!("there is no order `{name}`"))
            .help(format!("there are {}", METHODS.iter().map(|own| own.name()).collect::<Vec<_>>().join(", "))));
    }
    let runs = args.method.method().runs;
    let [bytes, of_maps] = measure::bytes(problem)?;
    let expected = measure::expected(problem)?;
    let declared = problem.program.mesh.sets.iter().last().map(|(_, set)| set.name.as_str());
    let lead = own.lead.as_deref().or(declared).unwrap_or_default();
    let lead = problem.mesh.set_named(lead).ok_or_else(|| Error::call(format!("the mesh has no set `{lead}`")))?;
    let copied = if bytes > 64 << 20 { 1 << 30 } else { 1 << 20 };
    let copy = measure::copy_rate(machine, &load(COPY[0], COPY[1])?, copied, runs)?;
    let progress = Progress::new(orders.len() * strategies.len() * layouts.len() * threads.len(), "measuring");
    let (mut rows, mut refused) = (Vec::new(), BTreeMap::new());
    for name in &orders {
        let ordering = order::find(name)?.ordering(&problem.mesh, &Options::new(lead))?;
        let placed = Rc::new(Placed::new(problem, &ordering)?);
        for &strategy in &strategies {
            for &layout in &layouts {
                for &(block, blocks_at_once) in &threads {
                    registers.borrow_mut().clear();
                    let own_name = format!("{}-{}-{block}x{blocks_at_once}", strategy.name(), layout.name());
                    let load = |name: &str, text: &str| {
                        if let Some(folder) = &own.texts {
                            crate::build::write(folder, &format!("{name}-{own_name}.cu"), text.as_bytes())?;
                        }
                        load(name, text)
                    };
                    let choices = Choices { strategy, layout, block, blocks_at_once };
                    let kernels = Kernels::new(problem, machine, choices, Rc::clone(&placed), &load);
                    let measured = measure::measure(problem, &kernels, &expected, runs);
                    progress.advance(1);
                    let measured = match measured {
                        Ok(measured) => measured,
                        // What a strategy cannot do is no reason not to measure the others.
                        Err(error) if error.fault == Fault::Input => {
                            refused.entry(strategy.name()).or_insert(error);
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                    let gb_per_s = bytes as f64 / measured.statistics.median_us / 1e3;
                    rows.push(Row {
                        strategy: strategy.name(),
                        vectors: layout.name(),
                        order: (*name).to_owned(),
                        threads: block,
                        at_once: blocks_at_once,
                        registers: registers.borrow().clone(),
                        gb_per_s,
                        of_copy: gb_per_s / copy,
                        measured,
                    });
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
    let wrong = rows.iter().filter(|row| matches!(row.measured.verdict, Verdict::Differs { .. })).count();
    if json {
        terminal::json(&json!({
            "stencil": problem.program.program.name,
            "precision": problem.precision,
            "bytes": bytes,
            "bytes_of_maps": of_maps,
            "copy_gb_per_s": copy,
            "rows": rows,
        }))?;
    } else {
        let head = format!(
            "{}, {}: {:.1} MB, {:.1} of them maps; copying {} MiB: {copy:.0} GB/s\n",
            problem.program.program.name,
            problem.precision.name(),
            bytes as f64 / 1e6,
            of_maps as f64 / 1e6,
            copied >> 20
        );
        let table: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        terminal::print(&(head + &terminal::table(&table, &[4, 6, 8])))?;
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Error::check(format!("{} differ from the interpreter", terminal::count(wrong, "kernel")))),
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let registers: Vec<String> = self.registers.iter().map(u32::to_string).collect();
        let at_once = if self.at_once == 0 { String::new() } else { format!("x{}", self.at_once) };
        vec![
            self.strategy.to_owned(),
            self.vectors.to_owned(),
            self.order.clone(),
            format!("{}{at_once}", self.threads),
            format!("{:.1}", self.measured.statistics.median_us),
            "us".to_owned(),
            format!("{:.0}", self.gb_per_s),
            "GB/s".to_owned(),
            format!("{:.3}", self.of_copy),
            format!(
                "of the copy, registers {}",
                if registers.is_empty() { "-".to_owned() } else { registers.join("+") }
            ),
            match &self.measured.verdict {
                Verdict::Equal => "equal".to_owned(),
                Verdict::Within { share } => format!("within {share:.2} of the bound"),
                Verdict::Differs { what } => format!("WRONG: {what}"),
            },
        ]
    }
}

/// `128`, `128x8`.
fn parse_threads(text: &str) -> Result<(u32, u32)> {
    let (threads, at_once) = text.split_once('x').unwrap_or((text, "0"));
    match (threads.parse(), at_once.parse()) {
        (Ok(threads @ 32..=1024), Ok(at_once @ 0..=32)) => Ok((threads, at_once)),
        _ => Err(Error::call(format!("`{text}` is no number of threads"))
            .help("as in 128, or 128x8 for eight such blocks at once")),
    }
}
