//! `stencilc explain --program`: what each kernel of a program's plan computes, takes and touches.

use super::kernels::KernelFacts;
use super::parts::PartFacts;
use super::{Args, Told};
use crate::args::grid::of_cells;
use crate::build::program::{Kernels, Wanted};
use crate::input::Input;
use serde::Serialize;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{FieldId, Handle, Precision, Program, Stencil, VariableId};
use stencilc_compiler::kernel::{Kernel, Meaning, Size, StepData};
use stencilc_compiler::plan::{Choices, Open};
use stencilc_compiler::program::{Stage, Staged};
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
    /// How it is cut, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<PartFacts>,
    /// The call that makes the kernels again.
    made: String,
    kernels: Vec<KernelFacts>,
}

/// Explains the kernels of a program's plan.
///
/// # Errors
/// The grid is not known, or the plan cannot compute the program.
pub fn explain(args: &Args, input: &Input, program: &Program, json: bool) -> Result<Told> {
    if args.gpu.is_some() || args.bandwidth.is_some() || args.flops.is_some() {
        return Err(Error::call("--gpu, --bandwidth and --flops bound the time of a stencil, and a program is named")
            .help("leave them out, or name the stencil: --stencil NAME"));
    }
    let choices = choices(args, program);
    args.launch.given.refuse_idle(std::slice::from_ref(&choices))?;
    let (grid, levels, set, arch) = (args.grid.as_ref(), args.levels, &args.set[..], &*args.arch);
    let of_parts = args.gpus.is_some();
    let wanted = Wanted { choices: &choices, grid, levels, set, plan: &args.of_program.plan, arch, of_parts };
    let Kernels { plan, planned, problem, again, codes } = wanted.kernels(input, program)?;
    let staged = &planned.problem.staged;
    let facts = |(number, code): (usize, &Kernel)| facts(args, (input, staged), staged.stages.get(number), code);
    let explanation = Explanation {
        program: program.name.clone(),
        doc: program.doc.as_told().to_owned(),
        precision: args.precision,
        plan: plan.to_string(),
        parts: args.gpus.map(|number| PartFacts::on_grid(&problem, &plan, number.into())).transpose()?,
        made: cuda::made(&format!("{} {again}", ShellWord::path(&args.file))).to_string(),
        kernels: codes.iter().enumerate().map(facts).collect::<Result<_>>()?,
    };
    Told::new(&explanation, json, || explanation.text())
}

/// What computes the calls of a program.
fn choices(args: &Args, program: &Program) -> Choices {
    let cells = of_cells(args.grid.as_ref(), args.levels);
    args.launch.choices(Choices::default().on_cells(&program.stencils, cells, Open::Kernel), args.precision)
}

fn facts(args: &Args, (input, staged): (&Input, &Staged), stage: Option<&Stage>, code: &Kernel) -> Result<KernelFacts> {
    let stencils: Vec<&Stencil> = stage.iter().map(|own| &own.stencil).collect();
    let means = |meaning: &Meaning| means(args, staged, stage, meaning);
    let mut facts = KernelFacts::new(args, (&input.source, &stencils), code, &means)?;
    facts.memory_bytes = stage.map(|own| own.reads().chain(own.writes()).map(|(_, id)| bytes(staged, id)).sum());
    Ok(facts)
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
    let storage = storage::find(&choices(args, &staged.program).storage).ok();
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
        let parts = self.parts.as_ref().map_or_else(String::new, PartFacts::text);
        format!("{title}\nin {}, by {}\n{parts}{kernels}\n{}\n", self.precision.name(), self.plan, self.made)
    }
}
