//! `stencilc explain --program`: what each kernel of a program's plan computes, takes and touches.

use super::Args;
use crate::build::program::{Kernels, Wanted};
use crate::input::Input;
use crate::terminal;
use serde::Serialize;
use std::collections::BTreeMap;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{FieldId, Handle, Origin, Precision, Program, VariableId};
use stencilc_compiler::kernel::cost::TableLoads;
use stencilc_compiler::kernel::{Kernel, Meaning, Size, StepData};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::program::{Stage, Staged};
use stencilc_compiler::source::{Source, Span};
use stencilc_compiler::storage;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::{Error, Result};

/// What is known of a program's plan.
#[derive(Serialize)]
struct Explanation {
    program: String,
    doc: String,
    precision: Precision,
    plan: String,
    /// The call that makes the kernels again.
    made: String,
    kernels: Vec<KernelFacts>,
}

#[derive(Serialize)]
struct KernelFacts {
    name: String,
    /// What its head says.
    does: Vec<String>,
    /// Formulas of the source that it computes, in the source's order.
    formulas: Vec<String>,
    threads: u32,
    /// Of the kernel of a stage, the bytes of all fields that it reads and writes, each once.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<usize>,
    /// Loads from tables, as the kernel is written.
    table_loads: usize,
    /// Registers of a thread, if they were asked for.
    registers: Option<u32>,
    arguments: Vec<ArgumentFacts>,
}

#[derive(Serialize)]
struct ArgumentFacts {
    name: String,
    #[serde(rename = "type")]
    c_type: String,
    means: String,
}

/// Explains the kernels of a program's plan.
///
/// # Errors
/// The grid is not known, or the plan cannot compute the program.
pub fn explain(args: &Args, input: &Input, program: &Program, json: bool) -> Result<()> {
    if args.gpu.is_some() || args.bandwidth.is_some() || args.flops.is_some() {
        return Err(Error::call("--gpu, --bandwidth and --flops bound the time of a stencil, and a program is named")
            .help("leave them out, or name the stencil: --stencil NAME"));
    }
    let choices = args.launch.choices(Choices::default(), args.precision);
    args.launch.given.refuse_idle(std::slice::from_ref(&choices))?;
    let (grid, levels, set, arch) = (args.grid.as_ref(), args.levels, &args.set[..], &*args.arch);
    let wanted = Wanted { choices: &choices, grid, levels, set, plan: &args.of_program.plan, arch };
    let Kernels { plan, planned, again, codes } = wanted.kernels(input, program)?;
    let staged = &planned.problem.staged;
    let facts = |(number, code): (usize, &Kernel)| facts(args, (input, staged), staged.stages.get(number), code);
    let explanation = Explanation {
        program: program.name.clone(),
        doc: program.doc.as_told().to_owned(),
        precision: args.precision,
        plan: plan.to_string(),
        made: cuda::made(&format!("{} {again}", ShellWord::path(&args.file))).to_string(),
        kernels: codes.iter().enumerate().map(facts).collect::<Result<_>>()?,
    };
    if json { terminal::json(&explanation) } else { terminal::print(&explanation.text()) }
}

fn facts(args: &Args, (input, staged): (&Input, &Staged), stage: Option<&Stage>, code: &Kernel) -> Result<KernelFacts> {
    let registers = if args.registers { super::registers(args, &code.name, &cuda::text(code)?)? } else { None };
    let argument = |own: cuda::Parameter| ArgumentFacts {
        name: own.name.to_string(),
        means: means(args, staged, stage, &own.meaning),
        c_type: own.c_type,
    };
    Ok(KernelFacts {
        name: code.name.to_string(),
        does: code.doc.iter().map(ToString::to_string).collect(),
        formulas: stage.map(|own| formulas(&input.source, own)).unwrap_or_default(),
        threads: code.threads,
        memory_bytes: stage.map(|own| own.reads().chain(own.writes()).map(|(_, id)| bytes(staged, id)).sum()),
        table_loads: TableLoads::new(code).of_block(&code.body),
        registers,
        arguments: cuda::parameters(code).into_iter().map(argument).collect(),
    })
}

/// What is written in the source of a stage's stores and of the values that they are made of. What is computed of several calls or steps
/// stands there once.
fn formulas(source: &Source, stage: &Stage) -> Vec<String> {
    let stencil = &stage.stencil;
    let lets = stencil.defs.iter().filter(|(_, own)| own.origin == Origin::Let);
    let bodies = lets.map(|(_, own)| &own.body).chain(stencil.stores.iter().map(|own| &own.body));
    // What is only stored has the place where its field is declared.
    let is_field =
        |span: &Span| stencil.fields.iter().any(|(_, own)| own.span.start <= span.start && span.end <= own.span.end);
    let spans =
        bodies.map(|body| body.span_of(body.root())).filter(|span| !is_field(span) && !source.slice(*span).is_empty());
    let lines: BTreeMap<_, _> = spans.map(|span| (span.start, source.lines(span))).collect();
    let mut texts: Vec<String> = Vec::new();
    for lines in lines.into_values() {
        let text = source.text.get(lines).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// The bytes of a variable's cells, without those of halos.
fn bytes(staged: &Staged, id: VariableId) -> usize {
    let own = &staged.program.variables[id];
    let cells: usize = staged.inner_of(own.place).iter().map(ExactSizeIterator::len).product();
    cells * own.stored.bytes(staged.precision)
}

/// What an argument means.
fn means(args: &Args, staged: &Staged, stage: Option<&Stage>, meaning: &Meaning) -> String {
    let Some(stage) = stage else { return "as the first line says".to_owned() };
    let storage = storage::find(&args.launch.choices(Choices::default(), args.precision).storage).ok();
    let binding = |field: FieldId| stage.call.fields[field.index()];
    let name = |id: Option<VariableId>| id.map_or("nothing", |id| &staged.program.variables[id].name).to_owned();
    match meaning {
        Meaning::Documented => "as the first line says".to_owned(),
        Meaning::Input(field) => format!("`{}`, which is read", name(binding(*field).read)),
        Meaning::Output(field) => format!("`{}`, which is written", name(binding(*field).written)),
        Meaning::Param(param) => format!("the parameter `{}`", stage.stencil.params[*param].name),
        // The storage's own, and behind them the list of cells.
        Meaning::Table(number) => {
            let known = storage.and_then(|own| own.tables().get(*number));
            known.map_or("the cells to compute", |(_, means)| means).to_owned()
        }
        Meaning::Report => "where it writes what went wrong".to_owned(),
        Meaning::Columns => "the column of each place".to_owned(),
        Meaning::Size(size) => match size {
            Size::ColumnFirst(axis) => format!("the first column along axis {axis}"),
            Size::ColumnEnd(axis) => format!("one past the last column along axis {axis}"),
            Size::LevelFirst => "the first level".to_owned(),
            Size::LevelEnd => "one past the last level".to_owned(),
            Size::Levels => "how many levels there are".to_owned(),
            Size::Own(number) => storage.map_or_else(String::new, |own| own.sizes()[*number].1.to_owned()),
        },
        Meaning::Mesh(_) => "what a mesh has".to_owned(),
        Meaning::Step(data) => match data {
            StepData::Count => "how many steps are computed".to_owned(),
            StepData::Spare(field) => format!("room for `{}`, for some of the steps", name(binding(*field).written)),
            StepData::Barrier => "a number, 0 at first, at which blocks wait for each other".to_owned(),
            StepData::Flags(count) => format!("{count} numbers, 0 at first, at which blocks wait for one another"),
        },
    }
}

impl Explanation {
    /// The same, to be read.
    fn text(&self) -> String {
        let title = match self.doc.lines().next() {
            Some(line) => format!("{}: {line}", self.program),
            None => self.program.clone(),
        };
        let kernels = self.kernels.iter().map(KernelFacts::text).collect::<String>();
        format!("{title}\nin {}, by {}\n{kernels}\n{}\n", self.precision.name(), self.plan, self.made)
    }
}

impl KernelFacts {
    fn text(&self) -> String {
        let mut text = format!("\n{}, {} threads a block\n", self.name, self.threads);
        self.does.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        self.formulas.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut row = |what: &str, number: String| rows.push(vec![format!("  {what}"), number]);
        if let Some(bytes) = self.memory_bytes {
            row("MB of fields that it reads and writes, each once", format!("{:.3}", bytes as f64 / 1e6));
        }
        row("loads from tables, as written", self.table_loads.to_string());
        if let Some(registers) = self.registers {
            row("registers of a thread", registers.to_string());
        }
        text.push_str(&terminal::table(&rows, &[1]));
        let argument = |own: &ArgumentFacts| vec![format!("  {}", own.name), own.c_type.clone(), own.means.clone()];
        text + &terminal::table(&self.arguments.iter().map(argument).collect::<Vec<_>>(), &[])
    }
}
