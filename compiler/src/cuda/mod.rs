//! The printer: kernels as CUDA C++, and what surrounds them.
//!
//! Templates hold the skeletons, this module fills them with ready texts. The text is the same to the byte for the same plan, and runs
//! through NVRTC and nvcc alike.

mod fortran;
mod host;
mod levels;
mod on_cpu;
pub(crate) mod prelude;
mod print;
mod values;

use crate::cells::{self, Cells, checked::Site};
use crate::diagnostic::Refusal;
use crate::ir::{Precision, Stencil};
use crate::kernel::{self, Meaning, Operation};
use crate::names::Identifier;
use crate::plan::Plan;
use crate::text::{Comment, ShellWord};
pub use fortran::{Fortran, fortran};
pub use host::{Built, build, build_with};
pub use on_cpu::on_cpu;
use prelude::Helpers;
pub use prelude::quotients;
pub use print::text;
use serde::Serialize;
use tera::{Context, Tera};

/// The templates, embedded so that the compiler works from any folder.
const TEMPLATES: &[(&str, &str)] = &[
    ("fortran.f90.tera", fortran::TEMPLATE),
    ("kernel.cu.tera", include_str!("../../../templates/kernel.cu.tera")),
    ("launch.begin.tera", include_str!("../../../templates/launch.begin.tera")),
    ("launch.cpp.tera", include_str!("../../../templates/launch.cpp.tera")),
    ("launch.cu.tera", include_str!("../../../templates/launch.cu.tera")),
    ("launch.h.tera", include_str!("../../../templates/launch.h.tera")),
];

/// A printed kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: Identifier,
    /// Its CUDA C++.
    pub text: String,
    /// What it takes, in order.
    pub parameters: Vec<Parameter>,
    /// Of a checked kernel: where it touches fields, by the numbers that it reports.
    pub sites: Vec<Site>,
}

/// What a kernel takes.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name in the code.
    pub name: Identifier,
    /// Its C type.
    pub c_type: String,
    /// What it means.
    pub meaning: Meaning,
}

/// The kernel of a plan.
///
/// # Errors
/// It keeps values of sweeps on every level, and how many there are is not known; or a template is broken, which is a fault
/// of the compiler.
pub fn print(plan: &Plan) -> Result<Kernel, Refusal> {
    print_with(plan, &Helpers::new(), "")
}

/// The kernel of a plan, as what is printed.
///
/// # Errors
/// It keeps values of sweeps on every level, and how many there are is not known.
pub fn lower(plan: &Plan) -> Result<kernel::Kernel, Refusal> {
    Ok(cells(plan)?.kernel)
}

fn cells(plan: &Plan) -> Result<Cells, Refusal> {
    let Cells { mut kernel, sites } = cells::kernel(plan, doc(plan))?;
    kernel.made = Some(made(&again(plan)));
    Ok(Cells { kernel, sites })
}

/// The kernel of a plan, with functions in its prelude that something else needs. `words` are options of `build` beside those of the
/// kernel.
fn print_with(plan: &Plan, others: &Helpers, words: &str) -> Result<Kernel, Refusal> {
    let Cells { mut kernel, sites } = cells(plan)?;
    kernel.made = Some(made(&format!("{}{words}", again(plan))));
    Ok(Kernel { sites, ..printed_with(&kernel, others, plan.choices.precision)? })
}

/// A kernel as CUDA C++, in a precision.
///
/// # Errors
/// The template is broken, which is a fault of the compiler.
pub(crate) fn printed(kernel: &kernel::Kernel, precision: Precision) -> Result<Kernel, Refusal> {
    printed_with(kernel, &Helpers::new(), precision)
}

fn printed_with(kernel: &kernel::Kernel, others: &Helpers, precision: Precision) -> Result<Kernel, Refusal> {
    let text = print::text_with(kernel, others, precision)?;
    Ok(Kernel { name: kernel.name.clone(), text, parameters: parameters(kernel), sites: Vec::new() })
}

/// What a kernel takes, as C has it.
pub fn parameters(kernel: &kernel::Kernel) -> Vec<Parameter> {
    let parameters = kernel.arguments.iter().map(|(_, own)| Parameter {
        name: own.name.clone(),
        c_type: print::argument_type(kernel, own),
        meaning: own.meaning.clone(),
    });
    parameters.collect()
}

/// Renders a template; an error in one is ours.
pub(crate) fn render<T: Serialize>(template: &str, texts: &T) -> Result<String, Refusal> {
    let broken = |error: tera::Error| Refusal::new(format!("the template {template} is broken: {error}"));
    let mut tera = Tera::default();
    tera.autoescape_on(Vec::<&'static str>::new());
    tera.add_raw_templates(TEMPLATES.to_vec()).map_err(broken)?;
    let context = Context::from_serialize(texts).map_err(broken)?;
    tera.render(template, &context).map_err(broken)
}

/// The file to build from, and the stencil in it where its name does not say so.
fn source(stencil: &Stencil) -> String {
    let (file, name) = (stencil.file.as_told(), &stencil.name);
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file).trim_end_matches(".stn");
    let source = match (file.is_empty(), stem == name) {
        (true, _) => name.clone(),
        (false, true) => ShellWord::path(file).to_string(),
        (false, false) => format!("{} --stencil {name}", ShellWord::path(file)),
    };
    if stencil.types.is_empty() { source } else { format!("{source} {}", stencil.types) }
}

/// How the line of a head begins that says how to make the file again.
const MADE: &str = "Made by stencilc build";

/// Whether a text begins as a generated kernel does, or its header: with the head, which says how it was made, or with the guard
/// behind what is said of the launcher.
pub fn is_generated(text: &str) -> bool {
    let Some((head, rest)) = text.strip_prefix("/*\n").and_then(|text| text.split_once("\n */\n")) else {
        return false;
    };
    let is_made = |line: &str| line.strip_prefix(" * ").is_some_and(|line| line.starts_with(MADE));
    head.lines().all(|line| line.starts_with(" *"))
        && (head.lines().any(is_made) || rest.starts_with("#ifndef STENCILC_"))
}

/// The line of a head that says how to make the file again, by `stencilc build` with these arguments.
pub fn made(arguments: &str) -> Comment {
    Comment::new(format!("{MADE} {arguments}"))
}

/// The arguments of `stencilc build` that make a plan's kernel.
fn again(plan: &Plan) -> String {
    let mut again = format!("{} {}", source(&plan.stencil), plan.choices.words());
    if let Some(known_grid) = &plan.known_grid {
        match &known_grid.adjacency {
            None => again.push_str(&format!(" --grid {}", known_grid.grid)),
            Some(adjacency) => {
                let file = ShellWord::path(adjacency.name.as_told());
                again.push_str(&format!(" --grid {file} --levels {}", known_grid.grid.nk));
            }
        }
    }
    again
}

/// What a plan's kernel is.
fn doc(plan: &Plan) -> Vec<Comment> {
    let choices = &plan.choices;
    let mut lines = vec![Comment::new(format!(
        "{}: {} access, {} storage, {}.",
        plan.stencil.told(),
        choices.access,
        choices.storage,
        choices.precision.name()
    ))];
    lines.extend(plan.stencil.doc.comments());
    if let Some(known_grid) = &plan.known_grid {
        lines.push(Comment::new(format!("Grid {}, computed on {}.", known_grid.grid, known_grid.region)));
    }
    lines
}

/// The head of a kernel's file: what it is, how to make it again, and what compilers have to be told.
fn head(kernel: &kernel::Kernel) -> Vec<Comment> {
    let is_rounded = |operation: &Operation| matches!(operation, Operation::Binary(..) | Operation::Call(..));
    let computes = kernel.values.iter().any(|(_, value)| value.kind.is_real() && is_rounded(&value.operation));
    let mut lines = kernel.doc.clone();
    if kernel.made.is_some() || computes && !lines.is_empty() {
        lines.push(Comment::new(""));
        lines.extend(kernel.made.clone());
        lines.push(Comment::new(EXACT));
    }
    lines
}

/// How results stay the same in every bit.
const EXACT: &str =
    "Exact only without contraction: nvcc -fmad=false -Xcompiler -ffp-contract=off, NVRTC --fmad=false.";
