//! `stencilc build`: a stencil's kernel, launcher and header, and what the kernel costs.

pub mod mesh;

use crate::args::ARCH;
use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::emit::{self, Emit};
use crate::input::{self, Input};
use crate::kernel::Wanted;
use crate::terminal;
use crate::tuned::TunedArgs;
use serde_json::json;
use std::path::{Path, PathBuf};
use stencilc_compiler::analysis::cost;
use stencilc_compiler::cuda::{self, Built};
use stencilc_compiler::plan::{Choices, Plan};
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::nvrtc::{self, Compiled, Kind, Resources};
use stencilc_runtime::{Error, Result, files};

/// Arguments of `build`.
#[derive(clap::Args)]
pub struct Args {
    /// First, since fields take what they find.
    #[command(flatten)]
    names: Names,
    /// A stencil file, or the name of a stencil that comes along
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub file: String,
    #[command(flatten)]
    pub kernel: Wanted,
    #[command(flatten)]
    tuned: TunedArgs,
    #[command(flatten)]
    over: MeshArgs,
    /// The architecture that machine code is for
    #[arg(long, value_name = "ARCH", default_value = ARCH)]
    arch: String,
    /// The folder for what is made; `.` if nothing is emitted
    #[arg(short, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Show what one step makes of the stencil, on stdout or in DIR
    #[arg(long, value_name = "STEP")]
    emit: Option<Emit>,
}

impl Args {
    /// The plan of the kernel: where the options leave open which, of the one that was tuned.
    ///
    /// # Errors
    /// There is no such kernel.
    pub fn plan(&self, input: &Input) -> Result<Plan> {
        self.kernel.plan_or_tuned(input, (!self.tuned.untuned).then_some(self.arch.as_str()))
    }
}

/// Builds a stencil.
///
/// # Errors
/// The stencil has errors, the kernel cannot be made, or nothing can be written.
pub fn build(args: &Args, json: bool) -> Result<()> {
    // The tree of a file that goes no further is worth seeing, too.
    if args.emit == Some(Emit::Ast) {
        return emit::emit(args, Emit::Ast, json);
    }
    let input = input::load(&args.file)?;
    if let Some(stencil) = input.mesh_stencil(args.kernel.stencil.as_deref())? {
        return mesh::build(args, stencil, json);
    }
    args.over.refuse()?;
    if let Some(emit) = args.emit {
        return emit::emit(args, emit, json);
    }
    let plan = args.plan(&input)?;
    input.tell_of_programs(args.kernel.stencil.as_deref(), "build", &plan.stencil.name);
    if !plan.stencil.prints.is_empty() {
        terminal::note("the kernel leaves out what the stencil prints; `stencilc run` shows it");
    }
    let built = cuda::build(&plan)?;
    let resources = match nvrtc::locate() {
        Ok(_) => compile(args, &plan, &built, Kind::Cubin)?.resources,
        Err(error) => {
            terminal::note(&format!("registers and spills are not known: {}", error.message));
            Vec::new()
        }
    };
    let folder = args.output.as_deref().unwrap_or(Path::new("."));
    let name = &plan.stencil.name;
    let source = write(folder, &format!("{name}.cu"), built.source.as_bytes())?;
    let header = write(folder, &format!("{name}.h"), built.header.as_bytes())?;
    report(args, &plan, &resources, &[source, header], json)
}

/// The kernel, compiled.
///
/// # Errors
/// There is no NVRTC, or it does not know the architecture.
pub fn compile(args: &Args, plan: &Plan, built: &Built, kind: Kind) -> Result<Compiled> {
    Ok(compile_cached(&built.source, &format!("{}.cu", plan.stencil.name), &args.arch, kind)?.compiled)
}

/// Writes a file in a folder, which is made if it is not there; gives the file's path.
///
/// # Errors
/// The folder cannot be made, or the file not be written.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    if folder.is_file() {
        let name = folder.display();
        return Err(Error::input(format!("`{name}` is a file, and files are written into a folder"))
            .help("-o names it: -o made"));
    }
    std::fs::create_dir_all(folder).map_err(|error| {
        Error::input(format!("cannot make the folder `{}`: {error}", folder.display())).help("give another: -o DIR")
    })?;
    let path = folder.join(name);
    files::write_atomic(&path, |file| file.write_all(bytes))?;
    Ok(path)
}

fn report(args: &Args, plan: &Plan, resources: &[Resources], files: &[PathBuf], json: bool) -> Result<()> {
    let cost = cost::cost(&plan.stencil, plan.choices.precision);
    let fixed = plan.fixed.as_ref();
    if json {
        return terminal::json(&json!({
            "stencil": plan.stencil.name,
            "choices": plan.choices,
            "grid": fixed.map(|fixed| fixed.grid),
            "region": fixed.map(|fixed| &fixed.region),
            "cost": cost,
            "arch": args.arch,
            "resources": resources,
            "files": files,
        }));
    }
    let mut rows = vec![
        vec!["reads".into(), cost.reads.to_string(), "values a cell".into()],
        vec!["writes".into(), cost.writes.to_string(), "values a cell".into()],
        vec!["bytes".into(), cost.bytes.to_string(), "a cell, if every field passes once".into()],
        vec!["flops".into(), cost.flops.to_string(), "a cell".into()],
    ];
    let mut row = |what: &str, number: u32, unit: &str| rows.push(vec![what.into(), number.to_string(), unit.into()]);
    for taken in resources {
        row("registers", taken.registers, &format!("a thread, on {}", args.arch));
        row("spills", taken.spill_stores + taken.spill_loads, "bytes a thread");
        row("stack", taken.stack, "bytes a thread");
        row("shared", taken.shared, "bytes a block");
    }
    let Choices { access, storage, precision, .. } = &plan.choices;
    let mut text = format!("{}: {access} access, {storage} storage, {}", plan.stencil.name, precision.name());
    if let Some(fixed) = fixed {
        text.push_str(&format!(", grid {}, computed {}", fixed.grid, fixed.region));
    }
    text.push_str(&format!("\n{}", terminal::table(&rows, &[1])));
    let written: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    terminal::print(&format!("{text}wrote {}\n", written.join(", ")))
}
