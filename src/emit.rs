//! `stencilc build --emit`: what one step makes of a stencil.

use crate::args::given::Names;
use crate::build::{self, Args, Text, Tried, compile};
use crate::{input, terminal};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::path::Path;
use stencilc_compiler::cuda::{self, Kernel};
use stencilc_compiler::ir;
use stencilc_compiler::ir::Handle;
use stencilc_compiler::names::path_name;
use stencilc_compiler::plan::phases::Phase;
use stencilc_compiler::plan::{self, Plan};
use stencilc_compiler::storage::Placement;
use stencilc_runtime::emulate;
use stencilc_runtime::nvrtc::Kind;
use stencilc_runtime::{Error, Result};

/// Which step.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Emit {
    /// The syntax tree
    Ast,
    /// What the stencil means, contracted and folded
    Ir,
    /// What is computed where
    Plan,
    /// What the kernel does, before it is written as CUDA
    Kernel,
    /// The kernel and its launcher
    Cuda,
    /// Assembly for a virtual architecture
    Ptx,
    /// Machine code
    Cubin,
}

impl Emit {
    /// Refuses options that make no difference for what the step makes.
    ///
    /// # Errors
    /// One was given.
    pub fn refuse_idle(self, names: &Names) -> Result<()> {
        const ALL: [&str; 4] = ["file", "emit", "output", "json"];
        let of_step: &[&str] = match self {
            Emit::Ast => &[],
            Emit::Ir => &["stencil", "precision", "contract"],
            Emit::Plan | Emit::Kernel | Emit::Cuda | Emit::Ptx | Emit::Cubin => return Ok(()),
        };
        match names.beside(&[ALL.as_slice(), of_step].concat()) {
            Some(option) => Err(Error::call(format!("{option} makes no difference for --emit {}", self.ending()))
                .help("leave it out; --emit cuda shows what all options together make")),
            None => Ok(()),
        }
    }

    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Emit::Ast => "ast",
            Emit::Ir => "ir",
            Emit::Plan => "plan",
            Emit::Kernel => "kernel",
            Emit::Cuda => "cu",
            Emit::Ptx => "ptx",
            Emit::Cubin => "cubin",
        }
    }
}

/// What a step made.
enum Made {
    Text(String),
    /// A kernel, the text of all that belongs to it, and the header that its launcher needs.
    Kernel(Box<Kernel>, String, Option<String>),
    Bytes(Vec<u8>),
    Json(Value),
}

/// Shows what one step makes of the stencil.
///
/// # Errors
/// The steps up to it fail, or it cannot be written.
pub fn emit(args: &Args, emit: Emit, json: bool) -> Result<()> {
    // As soon as its name is known, and before anything is compiled.
    let mut path = None;
    let mut tell = |name: &str| -> Result<()> {
        let Some(folder) = &args.output else { return Ok(()) };
        path = Some(build::will_write("-o", folder, &format!("{name}.{}", emit.ending()))?);
        Ok(())
    };
    let (name, made) = make(args, emit, json, &mut tell)?;
    let (made, tried) = match made {
        // What is only looked at is shown even where no compiler takes it.
        Made::Kernel(_, whole, _) if args.output.is_none() => (Made::Text(whole), None),
        Made::Kernel(kernel, whole, header) => {
            let tried =
                Tried::compile(&[Text { whole: &whole, name: &kernel.name, kernel: &kernel.text }], args.arch())?;
            let tried = match &header {
                Some(header) => tried.with_host(&emulate::Host { stem: &name, header, source: &whole })?,
                None => tried,
            };
            (Made::Text(whole), Some(tried))
        }
        made => (made, None),
    };
    let made = match made {
        Made::Text(text) if json => Made::Json(json!({ "name": name, "emit": emit.ending(), "text": text })),
        made => made,
    };
    let bytes = match made {
        Made::Text(text) | Made::Kernel(_, text, _) => match args.output {
            None => return terminal::print(&text),
            Some(_) => text.into_bytes(),
        },
        Made::Json(value) => match args.output {
            None => return terminal::json(&value),
            Some(_) => format!("{}\n", terminal::ascii_controls(&format!("{value:#}"))).into_bytes(),
        },
        Made::Bytes(_) if args.output.is_none() && (json || std::io::stdout().is_terminal()) => {
            return Err(Error::call("machine code is no text").help("write it to a folder: -o DIR"));
        }
        Made::Bytes(bytes) => bytes,
    };
    match path {
        None => terminal::print_bytes(&bytes),
        Some(path) => {
            let path = build::write(&path, &bytes)?;
            wrote(&path, tried.as_ref(), args.arch(), json)
        }
    }
}

/// Tells what was written, and of kernels who compiled them.
///
/// # Errors
/// It cannot be told.
pub fn wrote(path: &Path, tried: Option<&Tried>, arch: &str, json: bool) -> Result<()> {
    match (json, tried) {
        (true, Some(tried)) => {
            terminal::json(&json!({ "files": [path], "compiled": tried.by, "host_compiled": tried.host() }))
        }
        (true, None) => terminal::json(&json!({ "files": [path] })),
        (false, tried) => {
            let told = tried.map(|tried| tried.told(arch)).unwrap_or_default();
            terminal::print(&format!("wrote {}{told}\n", path.display()))
        }
    }
}

/// What the step makes, and of what; `tell` gets the name first.
fn make(args: &Args, emit: Emit, json: bool, tell: &mut dyn FnMut(&str) -> Result<()>) -> Result<(String, Made)> {
    // The tree of a file that goes no further is worth seeing, too.
    if emit == Emit::Ast {
        let source = input::open(&args.file)?;
        let stem = std::path::Path::new(&source.name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        tell(&stem)?;
        return Ok((stem, Made::Text(format!("{:#?}\n", input::tree(&source)?))));
    }
    let input = input::load(&args.file)?;
    if emit == Emit::Ir {
        let choices = args.kernel.choices();
        let stencil = input.stencil(args.kernel.stencil.as_deref())?;
        args.kernel.choices_for(stencil)?;
        tell(&stencil.name)?;
        let prepared = plan::prepare(stencil, choices.precision, choices.contract);
        return Ok((prepared.name.clone(), Made::Text(prepared.to_string())));
    }
    let plan = args.plan(&input)?;
    tell(&plan.stencil.name)?;
    let made = match emit {
        Emit::Plan if json => Made::Json(plan_as_json(&plan)),
        Emit::Plan => Made::Text(plan_as_text(&plan)),
        Emit::Kernel => Made::Text(cuda::lower(&plan)?.to_string()),
        // A checked kernel has no launcher.
        Emit::Cuda if plan.choices.checked => {
            let kernel = cuda::print(&plan)?;
            let text = kernel.text.clone();
            Made::Kernel(Box::new(kernel), text, None)
        }
        Emit::Ast | Emit::Ir | Emit::Cuda => {
            let built = cuda::build(&plan)?;
            Made::Kernel(Box::new(built.kernel), built.source, Some(built.header))
        }
        Emit::Ptx => {
            let image = compile(args, &plan, &cuda::build(&plan)?, Kind::Ptx)?.image;
            // The driver wants a zero byte at the end, a reader does not.
            Made::Text(String::from_utf8_lossy(&image).trim_end_matches('\0').to_owned())
        }
        Emit::Cubin => Made::Bytes(compile(args, &plan, &cuda::build(&plan)?, Kind::Cubin)?.image),
    };
    Ok((plan.stencil.name, made))
}

/// What a plan says, in JSON.
fn plan_as_json(plan: &Plan) -> Value {
    let known_grid = plan.known_grid.as_ref();
    let neighbours = plan.neighbours.iter().map(|path| json!({ "name": path_name(path), "path": path.to_string() }));
    // Patches have a table of their own, and nothing to follow.
    let is_followed = plan.patches.is_none();
    let relations = plan.relations.iter().filter(|_| is_followed).map(path_name);
    let hops = plan.hops.iter().filter(|_| is_followed);
    let hops = hops.map(|hop| json!({ "to": path_name(&hop.path), "from": hop.from, "relation": hop.relation }));
    let patches = plan.patches.as_ref().map(|own| {
        let footprint = own.wanted.footprint.iter().map(|&offset| path_name(&ir::Path::from_offset(offset)));
        let (rows, lone) = match known_grid.map(|known_grid| &known_grid.layout.placement) {
            Some(&Placement::Patches { rows, lone }) => (Some(rows), Some(lone)),
            _ => (None, None),
        };
        json!({
            "footprint": footprint.collect::<Vec<_>>(),
            "of_lone": own.wanted.lone.iter().map(path_name).collect::<Vec<_>>(),
            "rows": rows,
            "lone": lone,
        })
    });
    let values = plan.phases.iter().flat_map(|phase| &phase.schedule.values).map(|((def, path), item)| {
        let name = format!("{}.{}", plan.stencil.defs[*def].name, def.index());
        json!({ "name": name, "path": path.to_string(), "block": item.block().index() })
    });
    let outputs = plan.stencil.stores.iter().map(|store| &plan.stencil.fields[store.field]);
    let outputs = outputs.filter(|field| field.role.is_written()).map(|field| &field.name);
    json!({
        "stencil": plan.stencil.name,
        "choices": plan.choices,
        "index_bits": if plan.wide { 64 } else { 32 },
        "grid": known_grid.map(|known_grid| known_grid.grid),
        "region": known_grid.map(|known_grid| &known_grid.region),
        "blocks": known_grid.and_then(|known_grid| plan.launch(known_grid).ok()),
        "neighbours": neighbours.collect::<Vec<_>>(),
        "relations": relations.collect::<Vec<_>>(),
        "hops": hops.collect::<Vec<_>>(),
        "values": values.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
        "tile": plan.tile.columns,
        "levels_of_tile": plan.tile.levels,
        "patches": patches,
        "run_width": plan.run_width(),
    })
}

/// What a plan says, to be read.
fn plan_as_text(plan: &Plan) -> String {
    let stencil = &plan.stencil;
    let mut text = format!("plan of {}\n\n", stencil.name);
    let mut rows = vec![
        vec!["choices".into(), serde_json::to_string(&plan.choices).unwrap_or_default()],
        vec!["access".into(), format!("{}: {}", plan.access.name(), plan.access.summary())],
        vec!["storage".into(), format!("{}: {}", plan.storage.name(), plan.storage.summary())],
        vec!["indices".into(), format!("{} bits", if plan.wide { 64 } else { 32 })],
    ];
    if let Some(known_grid) = &plan.known_grid {
        rows.push(vec!["grid".into(), format!("{}, computed on {}", known_grid.grid, known_grid.region)]);
        if let Ok([x, y, z]) = plan.launch(known_grid) {
            rows.push(vec!["blocks".into(), format!("{x}x{y}x{z}")]);
        }
    }
    if plan.patches.is_some() {
        let [i, j] = plan.tile.columns;
        rows.push(vec!["patch".into(), format!("{i}x{j} columns a warp, {} levels a lane", plan.tile.levels)]);
    } else if plan.tile.columns != [1, 1] {
        let [i, j] = plan.tile.columns;
        let moved = plan.run_width().map_or("each alone".into(), |width| format!("{width} at once"));
        rows.push(vec!["tile".into(), format!("{i}x{j} cells a thread; elements are moved {moved}")]);
    }
    text.push_str(&terminal::table(&rows, &[]));

    text.push_str("\nneighbours\n");
    let neighbours = plan.neighbours.iter().map(|path| vec![format!("  {}", path_name(path)), path.to_string()]);
    text.push_str(&terminal::table(&neighbours.collect::<Vec<_>>(), &[]));

    // Where there are branches, the block of code tells in which of them a value is computed.
    text.push_str("\nvalues, in order\n");
    let values = plan.phases.iter().flat_map(|phase| &phase.schedule.values).map(|((def, path), item)| {
        let name = format!("  {}.{}{path}", stencil.defs[*def].name, def.index());
        vec![name, format!("block {}", item.block().index())]
    });
    let stores = plan.phases.iter().flat_map(Phase::stores);
    let outputs = stores.filter(|(store, _)| stencil.fields[store.field].role.is_written()).map(|(store, item)| {
        vec![format!("  {}{}", stencil.fields[store.field].name, item.at), format!("block {}", item.block().index())]
    });
    text.push_str(&terminal::table(&values.chain(outputs).collect::<Vec<_>>(), &[]));
    text
}
