//! `stencilc bench` of what runs over a mesh: every strategy, layout and order.

use super::{Args, scaling, with_kernels};
use crate::args::kernels::KernelsArgs;
use crate::args::mesh::MeshArgs;
use crate::bench::TRIED;
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::input::Input;
use crate::run::texts::Texts;
use crate::terminal::{self, Progress};
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::MeshProgram;
use stencilc_compiler::mesh::Merge;
use stencilc_runtime::build::Usage;
use stencilc_runtime::measure::STEPS;
use stencilc_runtime::mesh::order::auto;
use stencilc_runtime::mesh::program::ways::{Asked, MERGES, Meter, Row, Ways};
use stencilc_runtime::mesh::program::{MeshProblem, measure};
use stencilc_runtime::program::plan::PlanKind;
use stencilc_runtime::{Device, Error, Result};

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

/// What runs over a mesh: a stencil, as a program that calls it once, or a program.
pub struct Subject<'a> {
    /// What is computed.
    pub program: Cow<'a, MeshProgram>,
    /// Whether it is a stencil by itself.
    pub is_stencil: bool,
}

impl<'a> Subject<'a> {
    /// What of a file is meant; nothing if that runs over a grid.
    ///
    /// # Errors
    /// There are several.
    pub fn of(input: &'a Input, program: Option<&str>, stencil: Option<&str>, from_zero: bool) -> Result<Option<Self>> {
        if let Some(name) = program {
            let found = input.mesh_program(name)?;
            return Ok(found.map(|own| Self { program: Cow::Borrowed(own), is_stencil: false }));
        }
        let found = input.mesh_stencil(stencil)?;
        let alone = |own| Self { program: Cow::Owned(measure::program(own, from_zero)), is_stencil: true };
        Ok(found.map(alone))
    }

    /// `stencil` or `program`.
    pub fn what(&self) -> &'static str {
        if self.is_stencil { "stencil" } else { "program" }
    }

    /// The problem; of a program, with so many steps of its outermost loops.
    ///
    /// # Errors
    /// Several precisions are asked for; there is no mesh, or it is another than the program's; or a parameter does not fit.
    pub fn problem(&self, kernels: &KernelsArgs, over: &MeshArgs, times: u32) -> Result<Arc<MeshProblem>> {
        let &[precision] = kernels.precisions().as_slice() else {
            return Err(Error::call(format!(
                "`{}` runs over a mesh, in one precision at once",
                self.program.program.name
            ))
            .help("give --precision f64, and then --precision f32"));
        };
        let problem = DrawnOver {
            program: &self.program,
            precision,
            contract: kernels.code.contract,
            over,
            levels: kernels.levels,
            set: &kernels.set,
            seed: kernels.seed,
        };
        let problem = problem.problem()?;
        Ok(Arc::new(if self.is_stencil { problem } else { problem.with_times(times as i32) }))
    }

    /// The ways that are asked for; of a program those alone that leave the interpreter's bits.
    ///
    /// # Errors
    /// There are none.
    pub fn asked(&self, over: &MeshArgs, fuse: &[PlanKind]) -> Result<Asked> {
        let threads = if over.has_threads() { over.threads(&[]) } else { Vec::new() };
        let strategies = match (self.is_stencil, self.program.stencils.first()) {
            (true, Some(stencil)) => over.strategies_for(stencil),
            _ => over.ordered_strategies(),
        };
        let of_program = |(name, _): &(Option<&str>, Merge)| match name {
            None => fuse.is_empty(),
            Some(name) => fuse.is_empty() || fuse.iter().any(|kind| kind.name() == *name),
        };
        let merges: Vec<_> = match self.is_stencil {
            true => vec![MERGES[0]],
            false => MERGES.into_iter().filter(of_program).collect(),
        };
        if merges.is_empty() || strategies.is_empty() {
            let name = &self.program.program.name;
            return Err(Error::call(format!("there is no way to compute `{name}` by what is named")).help(
                "over a mesh there are --fuse merged,separate, and strategies that add in order: owner, two-step, tiled",
            ));
        }
        Ok(Asked { strategies, layouts: over.layouts_for(self.program.mesh.levels), threads, merges })
    }
}

/// Measures the ways to compute a stencil or program.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device, or a kernel differs from the interpreter.
pub fn bench(args: &Args, subject: &Subject, json: bool) -> Result<()> {
    let (own, kernels, of_program) = (&args.of_mesh, &args.kernels, &args.of_program);
    let name = &subject.program.program.name;
    if subject.is_stencil && of_program.gpus.is_some() {
        args.names.refuse_of_programs(name)?;
    }
    let options: &[&str] = match (subject.is_stencil, of_program.gpus) {
        (true, _) => &["from_zero", "texts", "runs"],
        (false, None) => &["texts", "runs", "program", "fuse", "times"],
        (false, Some(_)) => &scaling::OVER_MESHES,
    };
    refuse_of_grids(&args.names, options, name)?;
    if let Some(gpus) = of_program.gpus {
        return scaling::over_mesh(args, subject, gpus, json);
    }
    let texts = Rc::new(Texts::new(own.texts.as_deref())?);
    let asked = subject.asked(&own.over, &of_program.fuse)?;
    let problem = subject.problem(kernels, &own.over, of_program.times)?;
    let platform = with_kernels(kernels.device, "measure")?.open(TRIED)?;
    let mut ways = Ways::new(problem).on(&platform);
    let mut why = None;
    for name in own.over.orders(&[auto::AUTO]) {
        let ordered = own.over.ordering(&ways.problem, name, &asked.layouts)?;
        ordered.tell();
        ways.place(ordered.name, &ordered.ordering, true)?;
        why = why.or(ordered.why);
    }
    ways.add(&asked, false, &|_| {})?;
    let reader = move |name: &str, text: &str| texts.keep(name, text);
    let meter = Meter::new(&platform, args.method.method().runs, &ways, Some(Rc::new(reader)))?;
    let progress = Progress::new(ways.all.len() * STEPS, "measuring");
    ways.measure(&meter, &|steps| progress.advance(steps))?;
    drop(progress);
    tell_refused(&ways);
    let rows: Vec<&Row> = ways.rows().collect();
    let (precision, [bytes, of_maps]) = (ways.problem.precision, ways.bytes);
    if json {
        let left_out: BTreeMap<_, _> = ways.refused.iter().map(|(name, error)| (name, &error.message)).collect();
        terminal::json(&json!({
            subject.what(): name,
            "precision": precision,
            "bytes": bytes,
            "bytes_of_maps": of_maps,
            "copy_gb_per_s": meter.copy,
            "why_order": why,
            "rows": rows,
            "left_out": left_out,
        }))?;
    } else {
        let head = format!(
            "{name}, {}: {:.1} MB{}, {:.1} of them maps; copying {} MiB: {:.0} GB/s\n",
            precision.name(),
            bytes as f64 / 1e6,
            if subject.is_stencil { "" } else { " a step" },
            of_maps as f64 / 1e6,
            meter.copied >> 20,
            meter.copy,
        );
        terminal::print(&(head + &table(&rows, kernels.device == Some(Device::Emulate))))?;
    }
    check_right(&ways)
}

/// Tells which strategies cannot compute it.
pub fn tell_refused(ways: &Ways) {
    for (strategy, error) in &ways.refused {
        terminal::note(&format!("{strategy} is left out: {}", error.message));
    }
}

/// Whether everything is right that was measured; which ways failed is told.
///
/// # Errors
/// Something is not.
pub fn check_right(ways: &Ways) -> Result<()> {
    for (options, error) in &ways.failed {
        terminal::error(&Error::check(format!("{options}: {}", error.message)));
    }
    match (ways.rows().filter(|row| row.is_wrong()).count(), ways.failed.len()) {
        (0, 0) => Ok(()),
        (0, failed) => Err(Error::check(format!("{} failed", terminal::count(failed, "way")))),
        (wrong, _) => Err(Error::check(format!("{} differ from the interpreter", terminal::count(wrong, "kernel")))),
    }
}

/// A column: its head, whether it holds numbers, what it says of a row, and what that means.
type Column = (&'static str, bool, fn(&Row) -> String, &'static str);

/// All columns. Those that say the same in each row, or nothing, are left out, but for times.
const COLUMNS: [Column; 14] = [
    ("strategy", false, |row| row.variant.strategy.to_owned(), ""),
    ("vectors", false, |row| row.variant.vectors.to_owned(), ""),
    ("order", false, |row| row.variant.order.to_owned(), ""),
    ("threads", true, |row| row.variant.threads(), ""),
    ("fuse", false, |row| row.variant.fuse.unwrap_or_default().to_owned(), ""),
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
fn table(rows: &[&Row], is_emulated: bool) -> String {
    let always = ["strategy", "vectors", "us", "result"];
    let says = |(head, _, text, _): &&Column| {
        let texts = || rows.iter().map(|row| text(row));
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
