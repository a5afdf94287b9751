//! `stencilc build` of what has several kernels and no launcher of its own: a file a kernel.

use super::{Args, Text, Tried, will_write, write};
use crate::emit::{Emit, wrote};
use crate::terminal;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use stencilc_compiler::cuda;
use stencilc_compiler::kernel::Kernel;
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::cache::compile_cached;
use stencilc_runtime::nvrtc::{Kind, Resources};
use stencilc_runtime::{Error, Result};

/// Kernels that one call makes.
pub struct Several<'a> {
    args: &'a Args,
    /// The name of what they compute.
    name: &'a str,
    codes: Vec<Kernel>,
}

/// What a kernel comes to.
#[derive(Serialize)]
struct Report {
    name: String,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Resources>,
    file: PathBuf,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    #[serde(rename = "type")]
    c_type: String,
}

impl<'a> Several<'a> {
    /// Kernels, each of which says that `stencilc build FILE` with the options `again` makes it.
    pub fn new(args: &'a Args, name: &'a str, again: &str, mut codes: Vec<Kernel>) -> Self {
        let made = cuda::made(&format!("{} {again}", ShellWord::path(&args.file)));
        codes.iter_mut().for_each(|code| code.made = Some(made.clone()));
        Self { args, name, codes }
    }

    /// The kernels as CUDA.
    fn texts(&self) -> Result<Vec<String>> {
        self.codes.iter().map(|code| Ok(cuda::text(code)?)).collect()
    }

    /// Compiles what is about to be written.
    fn tried(&self, texts: &[String]) -> Result<Tried> {
        let texts = self.codes.iter().zip(texts);
        let texts = texts.map(|(code, text)| Text { whole: text, name: &code.name, kernel: text });
        Tried::compile(&texts.collect::<Vec<_>>(), &self.args.arch)
    }

    /// Shows what one step makes of them.
    ///
    /// # Errors
    /// It is none that makes kernels, a compiler fails, or it cannot be written.
    pub fn show(&self, emit: Emit, json: bool) -> Result<()> {
        // Before anything is compiled.
        path(self.args, emit, self.name)?;
        let text = match emit {
            Emit::Cuda => {
                let texts = self.texts()?;
                // Only what is written is for a compiler.
                let tried = self.args.output.as_ref().map(|_| self.tried(&texts)).transpose()?;
                return shown(self.args, emit, self.name, &texts.join("\n"), tried.as_ref(), json);
            }
            Emit::Kernel => self.codes.iter().map(Kernel::to_string).collect::<Vec<_>>().join("\n"),
            Emit::Ptx => {
                let compile = |(code, text): (&Kernel, String)| {
                    let file = format!("{}.cu", code.name);
                    let image = compile_cached(&text, &file, &self.args.arch, Kind::Ptx)?.compiled.image;
                    // The driver wants a zero byte at the end, a reader does not.
                    Ok(String::from_utf8_lossy(&image).trim_end_matches('\0').to_owned())
                };
                self.codes.iter().zip(self.texts()?).map(compile).collect::<Result<Vec<_>>>()?.join("\n")
            }
            Emit::Ast | Emit::Ir | Emit::Plan | Emit::Cubin => {
                return Err(Error::check(format!("--emit {} makes no texts of kernels", emit.ending())));
            }
        };
        show(self.args, emit, self.name, &text, json)
    }

    /// Writes them, and tells what each comes to: after `head`, a line about all of them, or `facts`, for machines; `launched` says
    /// who launches them.
    ///
    /// # Errors
    /// A compiler refuses one, or nothing can be written.
    pub fn write(&self, head: &str, mut facts: Value, launched: &str, json: bool) -> Result<()> {
        let folder = self.args.output.as_deref().unwrap_or(Path::new("."));
        let texts = self.texts()?;
        // Calls of one stencil may be kernels of one name.
        let earlier = |number: usize| {
            let name = &self.codes[number].name;
            self.codes[..number].iter().filter(|code| code.name == *name).count()
        };
        let file = |(number, code): (usize, &Kernel)| {
            let end = match earlier(number) {
                0 => String::new(),
                earlier => format!("-{}", earlier + 1),
            };
            will_write("-o", folder, &format!("{}{end}.cu", code.name))
        };
        let files = self.codes.iter().enumerate().map(file).collect::<Result<Vec<_>>>()?;
        let tried = self.tried(&texts)?;
        let mut reports = Vec::new();
        for (number, ((code, text), file)) in self.codes.iter().zip(&texts).zip(&files).enumerate() {
            let parameters = cuda::parameters(code).into_iter();
            let mut taken = tried.resources.iter().filter(|own| own.kernel == *code.name);
            reports.push(Report {
                name: code.name.to_string(),
                parameters: parameters
                    .map(|own| Parameter { name: own.name.to_string(), c_type: own.c_type })
                    .collect(),
                resources: taken.nth(earlier(number)).cloned(),
                file: write(file, text.as_bytes())?,
            });
        }
        if json {
            facts["arch"] = json!(&*self.args.arch);
            facts["compiled"] = json!(tried.by);
            facts["files"] = json!(reports.iter().map(|own| &own.file).collect::<Vec<_>>());
            facts["kernels"] = json!(reports);
            return terminal::json(&facts);
        }
        let mut text = format!("{}: {head}\n", self.name);
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
        let files: Vec<String> = reports.iter().map(|own| own.file.display().to_string()).collect();
        text.push_str(&format!("wrote {}{}\n{launched}\n", files.join(", "), tried.told(&self.args.arch)));
        terminal::print(&text)
    }
}

/// Refuses machine code of several kernels.
///
/// # Errors
/// It was asked for.
pub fn refuse_code(emit: Option<Emit>, name: &str) -> Result<()> {
    match emit {
        Some(Emit::Cubin) => {
            Err(Error::call(format!("`{name}` may have several kernels, and so several files of machine code"))
                .help("--emit ptx shows them all; `run` and `bench` compile them themselves"))
        }
        _ => Ok(()),
    }
}

/// Shows a text that a step made.
///
/// # Errors
/// It cannot be written.
pub fn show(args: &Args, emit: Emit, name: &str, text: &str, json: bool) -> Result<()> {
    shown(args, emit, name, text, None, json)
}

/// Where it is to be written, if it is.
fn path(args: &Args, emit: Emit, name: &str) -> Result<Option<PathBuf>> {
    let file = format!("{name}.{}", emit.ending());
    args.output.as_deref().map(|folder| will_write("-o", folder, &file)).transpose()
}

fn shown(args: &Args, emit: Emit, name: &str, text: &str, tried: Option<&Tried>, json: bool) -> Result<()> {
    let ending = emit.ending();
    match &args.output {
        None if json => terminal::json(&json!({ "name": name, "emit": ending, "text": text })),
        None => terminal::print(text),
        Some(_) => {
            let path = path(args, emit, name)?.unwrap_or_default();
            wrote(&write(&path, text.as_bytes())?, tried, &args.arch, json)
        }
    }
}
