//! `stencilc build`: a stencil's kernel, launcher and header, and what the kernel costs.

mod callers;
mod kernels;
mod library;
pub mod mesh;
pub mod mesh_program;
pub mod program;

use crate::args::ARCH;
use crate::args::given::Names;
use crate::args::mesh::MeshArgs;
use crate::emit::{self, Emit};
use crate::input::{self, Input};
use crate::kernel::Wanted;
use crate::terminal;
use crate::tuned::TunedArgs;
use callers::CallersArgs;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use stencilc_compiler::analysis::cost;
use stencilc_compiler::cuda::{self, Built};
use stencilc_compiler::plan::{Choices, Plan};
use stencilc_runtime::cache::{compile_cached, emulated_cached};
use stencilc_runtime::emulate::{self, Compiler, Settings};
use stencilc_runtime::job::Subject;
use stencilc_runtime::mesh::program::alone;
use stencilc_runtime::nvrtc::Arch;
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
    of_program: program::ProgramArgs,
    #[command(flatten)]
    tuned: TunedArgs,
    #[command(flatten)]
    over: MeshArgs,
    #[command(flatten)]
    callers: CallersArgs,
    /// The architecture that machine code is for
    #[arg(long, value_name = "ARCH", default_value = ARCH)]
    arch: Arch,
    /// The folder for what is made; `.` if nothing is emitted
    #[arg(short, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Show what one step makes of the stencil, on stdout or in DIR
    #[arg(long, value_name = "STEP")]
    emit: Option<Emit>,
}

impl Args {
    /// The architecture that machine code is for.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// The plan of the kernel: where the options leave open which, of the one that was tuned.
    ///
    /// # Errors
    /// There is no such kernel.
    pub fn plan(&self, input: &Input) -> Result<Plan> {
        if self.callers.is_given() {
            return self.kernel.plan_on_plain_arrays(input);
        }
        self.kernel.plan_or_tuned(input, (!self.tuned.untuned).then_some(&*self.arch))
    }
}

/// Builds a stencil.
///
/// # Errors
/// The stencil has errors, the kernel cannot be made, or nothing can be written.
pub fn build(args: &Args, json: bool) -> Result<()> {
    args.emit.map_or(Ok(()), |emit| emit.refuse_idle(&args.names))?;
    // The tree of a file that goes no further is worth seeing, too.
    if args.emit == Some(Emit::Ast) {
        return emit::emit(args, Emit::Ast, json);
    }
    let input = input::load(&args.file)?;
    let program = args.of_program.program.as_deref();
    if let Some(program) = program.map(|name| input.mesh_program(name)).transpose()?.flatten() {
        args.callers.refuse(&args.file, &Subject::Mesh(program.clone()), "is a program over a mesh")?;
        return mesh_program::build(args, &input, program, json);
    }
    if let Some(program) = program.map(|name| input.program(Some(name), None)).transpose()?.flatten() {
        args.over.refuse()?;
        args.callers.refuse(&args.file, &Subject::Grid(program.clone()), "is a program")?;
        return program::build(args, &input, program, json);
    }
    if let Some(stencil) = input.mesh_stencil(args.kernel.stencil.as_deref())? {
        args.callers.refuse(&args.file, &Subject::Mesh(alone(stencil)), "runs over a mesh")?;
        return mesh::build(args, stencil, json);
    }
    args.over.refuse()?;
    args.of_program.refuse()?;
    if let Some(emit) = args.emit {
        return emit::emit(args, emit, json);
    }
    let plan = args.plan(&input)?;
    input.tell_of_programs(args.kernel.stencil.as_deref(), "build", &plan.stencil.name);
    if !plan.stencil.prints.is_empty() {
        terminal::note("the kernel leaves out what the stencil prints; `stencilc run` shows it");
    }
    let built = cuda::build_with(&plan, &args.callers.words())?;
    let kernel = Text { whole: &built.source, name: &built.kernel.name, kernel: &built.kernel.text };
    let folder = args.output.as_deref().unwrap_or(Path::new("."));
    let name = &plan.stencil.name;
    let source = will_write("-o", folder, &format!("{name}.cu"))?;
    let header = will_write("-o", folder, &format!("{name}.h"))?;
    let host = emulate::Host { stem: name, header: &built.header, source: &built.source };
    let tried = Tried::compile(&[kernel], &args.arch)?.with_host(&host)?;
    let (others, told) = args.callers.files(&plan, &built)?;
    let paths = others.iter().map(|own| will_write("-o", folder, &own.name)).collect::<Result<Vec<_>>>()?;
    let mut files = vec![write(&source, built.source.as_bytes())?, write(&header, built.header.as_bytes())?];
    for (own, path) in others.iter().zip(&paths) {
        files.push(write(path, own.text.as_bytes())?);
    }
    let told = format!("{}{told}", tried.told(&args.arch));
    report(args, &plan, &tried, (&files, &told), json)
}

/// A kernel that is about to be written.
pub struct Text<'a> {
    /// All that is written with it.
    pub whole: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its own text.
    pub kernel: &'a str,
}

/// What came of compiling kernels before they are written.
pub struct Tried {
    /// Who compiled them, if anybody could.
    pub by: Option<By>,
    /// Who compiled the header and the launcher, where there are such.
    host: Option<Option<By>>,
    /// What each takes of a GPU, where that is known.
    pub resources: Vec<Resources>,
}

/// Who compiles a kernel.
#[derive(Clone, Copy, Serialize)]
pub enum By {
    /// NVRTC, for a GPU.
    #[serde(rename = "nvrtc")]
    Nvrtc,
    /// The C++ compiler, for the emulator.
    #[serde(rename = "c++")]
    Cpp,
}

impl Tried {
    /// Compiles kernels by NVRTC, or by the C++ compiler where that is all there is. Where there is neither, that is told.
    ///
    /// # Errors
    /// A compiler refuses one, so that none of them is to be written; or NVRTC does not know the architecture.
    pub fn compile(kernels: &[Text], arch: &str) -> Result<Tried> {
        let missing = match nvrtc::locate() {
            Ok(_) => {
                let compile = |own: &Text| compile_cached(own.whole, &format!("{}.cu", own.name), arch, Kind::Cubin);
                let compiled = kernels.iter().map(compile).collect::<Result<Vec<_>>>()?;
                let resources = compiled.into_iter().flat_map(|own| own.compiled.resources).collect();
                return Ok(Tried { by: Some(By::Nvrtc), host: None, resources });
            }
            Err(error) => error.message,
        };
        terminal::note(&format!("registers and spills are not known: {missing}"));
        let Ok(compiler) = Compiler::find() else {
            terminal::note("what is written was not compiled: there is no C++ compiler either");
            return Ok(Tried { by: None, host: None, resources: Vec::new() });
        };
        for own in kernels {
            let source = emulate::Source { name: own.name, text: own.kernel };
            emulated_cached(&compiler, source, &Settings::default())?;
        }
        Ok(Tried { by: Some(By::Cpp), host: None, resources: Vec::new() })
    }

    /// Has the C++ compiler, if there is one, look at the header and the launcher as well.
    ///
    /// # Errors
    /// It refuses them, so that nothing is to be written.
    pub fn with_host(self, host: &emulate::Host) -> Result<Tried> {
        let Ok(compiler) = Compiler::find() else { return Ok(Tried { host: Some(None), ..self }) };
        compiler.check_host(host, &["gnu17"], &["gnu++17"], &[])?;
        Ok(Tried { host: Some(Some(By::Cpp)), ..self })
    }

    /// Who compiled the header and the launcher, if there are such and anybody could.
    pub fn host(&self) -> Option<By> {
        self.host.flatten()
    }

    /// What is told with what was written: `; the kernel was compiled by NVRTC for sm_90`.
    pub fn told(&self, arch: &str) -> String {
        let kernel = match self.by {
            Some(By::Nvrtc) => format!("compiled by NVRTC for {arch}"),
            Some(By::Cpp) => "compiled by the C++ compiler alone, as for the emulator".to_owned(),
            None => "not compiled".to_owned(),
        };
        match self.host {
            None => format!(", {kernel}"),
            Some(Some(_)) => format!("; kernel {kernel}, header and launcher by the C++ compiler"),
            Some(None) => format!("; kernel {kernel}, header and launcher not compiled"),
        }
    }
}

/// The kernel, compiled.
///
/// # Errors
/// There is no NVRTC, or it does not know the architecture.
pub fn compile(args: &Args, plan: &Plan, built: &Built, kind: Kind) -> Result<Compiled> {
    Ok(compile_cached(&built.source, &format!("{}.cu", plan.stencil.name), &args.arch, kind)?.compiled)
}

/// Tells that a file will be written in the folder of an option, which is made with its first file; gives the file's path.
///
/// # Errors
/// The folder is a file or cannot be made, or the file not be written ([`files::will_write_inside`]).
pub fn will_write(option: &str, folder: &Path, name: &str) -> Result<PathBuf> {
    refuse_file(option, folder)?;
    let path = folder.join(name);
    files::will_write_inside(files::Kind::Code, option, &path)?;
    Ok(path)
}

/// Refuses a file where an option has to name a folder.
///
/// # Errors
/// It is one.
pub fn refuse_file(option: &str, folder: &Path) -> Result<()> {
    if folder.is_file() {
        let name = folder.display();
        return Err(Error::input(format!("`{name}` is a file, and files are written into a folder"))
            .help(format!("{option} names it: {option} made")));
    }
    Ok(())
}

/// Writes a file that was told of.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    files::write_atomic(path, |file| file.write_all(bytes))?;
    Ok(path.to_owned())
}

fn report(args: &Args, plan: &Plan, tried: &Tried, (files, told): (&[PathBuf], &str), json: bool) -> Result<()> {
    let cost = cost::cost(&plan.stencil, plan.choices.precision);
    let known_grid = plan.known_grid.as_ref();
    if json {
        return terminal::json(&json!({
            "stencil": plan.stencil.name,
            "choices": plan.choices,
            "grid": known_grid.map(|known_grid| known_grid.grid),
            "region": known_grid.map(|known_grid| &known_grid.region),
            "cost": cost,
            "arch": args.arch,
            "compiled": tried.by,
            "host_compiled": tried.host(),
            "resources": tried.resources,
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
    for taken in &tried.resources {
        row("registers", taken.registers, &format!("a thread, on {}", args.arch));
        row("spills", taken.spill_stores + taken.spill_loads, "bytes a thread");
        row("stack", taken.stack, "bytes a thread");
        row("shared", taken.shared, "bytes a block");
    }
    let Choices { access, storage, precision, .. } = &plan.choices;
    let mut text = format!("{}: {access} access, {storage} storage, {}", plan.stencil.name, precision.name());
    if let Some(known_grid) = known_grid {
        text.push_str(&format!(", grid {}, computed {}", known_grid.grid, known_grid.region));
    }
    text.push_str(&format!("\n{}", terminal::table(&rows, &[1])));
    let written: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    terminal::print(&format!("{text}wrote {}{told}\n", written.join(", ")))
}
