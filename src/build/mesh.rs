//! `stencilc build` of a stencil over a mesh: the texts of its kernels. What launches them is `run`, since the tables that they take are
//! made of a mesh.

use super::{Args, Text, Tried, will_write, write};
use crate::args;
use crate::drawn::{DrawnOver, refuse_of_grids};
use crate::emit::{Emit, wrote};
use crate::kernel;
use crate::terminal;
use serde::Serialize;
use serde_json::json;
use std::cell::Cell;
use std::path::Path;
use stencilc_compiler::analysis::levels;
use stencilc_compiler::cuda;
use stencilc_compiler::ir::{MeshStencil, Path as MeshPath};
use stencilc_compiler::kernel::{Meaning, MeshData, MeshTable};
use stencilc_compiler::mesh::{self as over, Choices, Counts, Cut, Degrees, Group, Kernel, Largest, Subject};
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::mesh::program::kernels::Placed;
use stencilc_runtime::mesh::program::{measure, prepared};
use stencilc_runtime::nvrtc::{Compiled, Kind, Resources};
use stencilc_runtime::{Error, Result};

/// What a kernel comes to.
#[derive(Serialize)]
struct Report {
    name: String,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
    file: Option<std::path::PathBuf>,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    #[serde(rename = "type")]
    c_type: String,
}

/// Builds a stencil over a mesh.
///
/// # Errors
/// The strategy cannot compute it, or nothing can be written.
pub fn build(args: &Args, stencil: &MeshStencil, json: bool) -> Result<()> {
    let own = &args.kernel;
    let name = &stencil.stencil.name;
    refuse_of_grids(&args.names, &["arch", "output", "emit"], name)?;
    let choices = args.over.choices()?;
    if let Some(emit) = args.emit {
        return show(args, stencil, &choices, emit, json);
    }
    let kernels = kernels(args, stencil, &choices)?;
    let folder = args.output.as_deref().unwrap_or(Path::new("."));
    let texts = texts(&kernels)?;
    let file = |kernel: &Kernel| will_write("-o", folder, &format!("{}.cu", kernel.code.name));
    let files = kernels.iter().map(file).collect::<Result<Vec<_>>>()?;
    let tried = tried(&kernels, &texts, &args.arch)?;
    let mut reports = Vec::new();
    for ((kernel, text), file) in kernels.iter().zip(&texts).zip(&files) {
        reports.push(Report {
            name: kernel.code.name.to_string(),
            parameters: cuda::parameters(&kernel.code)
                .into_iter()
                .map(|own| Parameter { name: own.name.to_string(), c_type: own.c_type })
                .collect(),
            resources: tried.resources.iter().find(|own| own.kernel == *kernel.code.name).cloned(),
            file: Some(write(file, text.as_bytes())?),
        });
    }
    let precision = own.choices().precision;
    if json {
        return terminal::json(&json!({
            "stencil": name,
            "precision": precision,
            "strategy": choices.strategy.name(),
            "vectors": choices.layout.name(),
            "threads": choices.block,
            "arch": args.arch,
            "compiled": tried.by,
            "kernels": reports,
            "files": reports.iter().map(|own| &own.file).collect::<Vec<_>>(),
        }));
    }
    let mut text =
        format!("{name}: {}, {} vectors, {}\n", choices.strategy.name(), choices.layout.name(), precision.name());
    let mut rows = Vec::new();
    for own in &reports {
        let mut row = vec![format!("  {}", own.name), terminal::count(own.parameters.len(), "parameter")];
        if let Some(taken) = &own.resources {
            row.push(format!("{} registers", taken.registers));
            row.push(format!("{} bytes of spills", taken.spill_stores + taken.spill_loads));
        }
        rows.push(row);
    }
    text.push_str(&terminal::table(&rows, &[]));
    let files: Vec<String> = reports.iter().flat_map(|own| &own.file).map(|path| path.display().to_string()).collect();
    text.push_str(&format!("wrote {}{}\n", files.join(", "), tried.told(&args.arch)));
    text.push_str("what launches them is `stencilc run`: the tables that they take are made of a mesh\n");
    terminal::print(&text)
}

/// Compiles what is about to be written.
fn tried(kernels: &[Kernel], texts: &[String], arch: &str) -> Result<Tried> {
    let texts = kernels.iter().zip(texts).map(|(own, text)| Text { whole: text, name: &own.code.name, kernel: text });
    Tried::compile(&texts.collect::<Vec<_>>(), arch)
}

/// The kernels as CUDA.
fn texts(kernels: &[Kernel]) -> Result<Vec<String>> {
    kernels.iter().map(|own| Ok(cuda::text(&own.code)?)).collect()
}

/// The kernels: for a mesh if one is given, else for any.
fn kernels(args: &Args, stencil: &MeshStencil, choices: &Choices) -> Result<Vec<Kernel>> {
    let (own, of_code) = (&args.kernel, args.kernel.choices());
    let (precision, contract) = (of_code.precision, of_code.contract);
    if args.over.mesh.is_some() {
        let (over, levels, set) = (&args.over, own.levels, &own.set);
        let problem =
            DrawnOver { stencil, precision, contract, over, levels, set, seed: 0, from_zero: false }.problem()?;
        let ordering = args.over.one_ordering(&problem)?;
        let placed = Placed::new(&problem, &ordering.ordering)?;
        return placed.kernels(&problem, measure::only_call(&problem)?, choices);
    }
    let kernels = kernels_for_any(stencil, (precision, contract), own.levels, &own.set, choices)?;
    let is_list = |own: &Meaning| matches!(own, Meaning::Mesh(MeshData::Table(_, MeshTable::Offsets)));
    if kernels.iter().flat_map(|kernel| kernel.code.meanings()).any(is_list) {
        terminal::note(
            "targets gather over lists, as suits any mesh: with --mesh FILE, over rows where these are short",
        );
    }
    Ok(kernels)
}

/// A mesh of which nothing is known: lists of any length suit it.
struct AnyMesh {
    /// Whether somebody wanted it in pieces.
    is_cut: Cell<bool>,
    /// Whether it matters if an element leads to one target twice.
    may_repeat: Cell<bool>,
}

impl Counts for AnyMesh {
    fn degrees(&self, _: &Group) -> Degrees {
        Degrees { mean: 0.0, max: 0, share: 1.0 }
    }

    fn largest(&self, _: &Group, _: Cut) -> Option<Largest> {
        self.is_cut.set(true);
        None
    }

    fn repeats(&self, _: &Group) -> bool {
        self.may_repeat.set(true);
        true
    }

    fn seats(&self, _: &Group, _: &[MeshPath]) -> usize {
        0
    }
}

/// The kernels for a mesh of which nothing is known.
///
/// # Errors
/// The strategy cannot compute it, or it is not known how many levels there are.
pub fn kernels_for_any(
    stencil: &MeshStencil,
    (precision, contract): (stencilc_compiler::ir::Precision, bool),
    given: Option<usize>,
    set: &[args::Pair],
    choices: &Choices,
) -> Result<Vec<Kernel>> {
    let prepared = prepared(stencil, precision, contract);
    let count = match (stencil.mesh.levels, given) {
        (false, Some(_)) => {
            return Err(
                Error::call(format!("the mesh `{}` has no levels", stencil.mesh.name)).help("leave out --levels")
            );
        }
        (false, None) => 1,
        (true, Some(count)) => count,
        (true, None) => {
            return Err(Error::call("how many levels there are is not known").help("give --levels N"));
        }
    };
    let computed = if stencil.mesh.levels {
        let settings = args::by_name(set, "--set")?;
        let (params, _) = kernel::parameters(&prepared.stencil, precision, contract, settings, true)?;
        levels::computed(&prepared.stencil, precision, count, &params)?
    } else {
        0..1
    };
    let any = AnyMesh { is_cut: Cell::new(false), may_repeat: Cell::new(false) };
    let subject = Subject {
        stencil: &prepared,
        precision,
        levels: count,
        computed: &computed,
        from_zero: &|_| false,
        counts: &any,
    };
    match over::kernels(&subject, choices) {
        Ok(lowered) => Ok(lowered.kernels),
        Err(_) if any.is_cut.get() => {
            let name = choices.strategy.name();
            Err(Error::input(format!("{name} cuts a mesh into pieces, and none is given")).help("give it: --mesh FILE"))
        }
        Err(_) if any.may_repeat.get() => {
            let (name, own) = (&stencil.stencil.name, choices.strategy.name());
            Err(Error::input(format!(
                "`{name}` adds to its fields in different orders of slots, which {own} can do on meshes whose elements lead nowhere twice"
            ))
            .help("give the mesh: --mesh FILE; or write the increments in one order of slots"))
        }
        Err(refusal) => Err(refusal.into()),
    }
}

fn compile(args: &Args, kernel: &Kernel, kind: Kind) -> Result<Compiled> {
    Ok(compile_cached(&cuda::text(&kernel.code)?, &format!("{}.cu", kernel.code.name), &args.arch, kind)?.compiled)
}

/// Shows what one step makes of it.
fn show(args: &Args, stencil: &MeshStencil, choices: &Choices, emit: Emit, json: bool) -> Result<()> {
    let name = &stencil.stencil.name;
    let of_code = args.kernel.choices();
    let ending = emit.ending();
    let will_write = |folder| will_write("-o", folder, &format!("{name}.{ending}"));
    let path = args.output.as_deref().map(will_write).transpose()?;
    let all = |of: &dyn Fn(&Kernel) -> Result<String>| -> Result<String> {
        Ok(kernels(args, stencil, choices)?.iter().map(of).collect::<Result<Vec<_>>>()?.join("\n"))
    };
    let text = match emit {
        Emit::Ast | Emit::Ir => prepared(stencil, of_code.precision, of_code.contract).to_string(),
        Emit::Cuda => all(&|kernel| Ok(cuda::text(&kernel.code)?))?,
        Emit::Kernel => all(&|kernel| Ok(kernel.code.to_string()))?,
        Emit::Ptx => all(&|kernel| {
            let image = compile(args, kernel, Kind::Ptx)?.image;
            // The driver wants a zero byte at the end, a reader does not.
            Ok(String::from_utf8_lossy(&image).trim_end_matches('\0').to_owned())
        })?,
        Emit::Plan => {
            return Err(Error::call(format!("`{name}` runs over a mesh, and has no plan but its strategy"))
                .help("`stencilc explain` says what that does; --emit cuda shows the kernels"));
        }
        Emit::Cubin => {
            return Err(Error::call(format!(
                "`{name}` may have several kernels, and so several files of machine code"
            ))
            .help("--emit ptx shows them all; `run` and `bench` compile them themselves"));
        }
    };
    match path {
        None if json => terminal::json(&json!({ "name": name, "emit": ending, "text": text })),
        None => terminal::print(&text),
        Some(path) => {
            // Only kernels are for a compiler; assembly comes from one.
            let tried = match emit {
                Emit::Cuda => {
                    let kernels = kernels(args, stencil, choices)?;
                    Some(tried(&kernels, &texts(&kernels)?, &args.arch)?)
                }
                Emit::Ast | Emit::Ir | Emit::Plan | Emit::Kernel | Emit::Ptx | Emit::Cubin => None,
            };
            let path = write(&path, text.as_bytes())?;
            wrote(&path, tried.as_ref(), &args.arch, json)
        }
    }
}
