//! `stencilc tune` of what runs over a mesh: strategies, layouts and orders by a model, and the best of them by measuring.

use super::Args;
use crate::audience::Audience;
use crate::bench::TRIED;
use crate::bench::mesh::{Subject, check_right, tell_refused};
use crate::drawn::refuse_of_grids;
use crate::input::Input;
use crate::terminal::{self, Progress};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use stencilc_compiler::gpu::Sheet;
use stencilc_compiler::mesh::{Merge, MeshChoices};
use stencilc_runtime::device::Platform;
use stencilc_runtime::mesh::order::auto;
use stencilc_runtime::mesh::program::ways::{Candidate, Meter, ORDERS, Variant, Ways};
use stencilc_runtime::tune::search::Found;
use stencilc_runtime::{Device, Result};

/// Tunes a stencil or program over a mesh.
///
/// # Errors
/// Something is wrong with the call, the mesh or the device, no strategy can compute it, or a kernel differs from the interpreter.
pub fn tune(args: &Args, input: &Input, subject: &Subject, audience: &mut Audience) -> Result<()> {
    let (kernels, over, of_program) = (&args.search.0, &args.of_mesh, &args.of_program);
    let name = &subject.program.program.name;
    let options: &[&str] = match subject.is_stencil {
        true => &["budget", "runs", "forget"],
        false => &["budget", "runs", "forget", "program", "fuse", "times"],
    };
    refuse_of_grids(&args.names, options, name)?;
    let asked = subject.asked(over, &of_program.fuse)?;
    let mut ways = Ways::new(subject.problem(kernels, over, of_program.often(kernels.device))?);
    let usual = place(args, &mut ways)?;
    let (device, no_gpu) = Device::choose(kernels.device);
    let platform = device.open(TRIED)?;
    let machine = platform.facts();
    let memory = (device != Device::Cpu).then(|| args.memory(&machine, name, input)).transpose()?;
    let mut ways = ways.on(&platform);
    match &platform {
        Platform::Cpu => {
            let why = no_gpu.map_or_else(|| "--device cpu".to_owned(), |error| error.message);
            terminal::note(&format!("nothing is measured, and kernels stand as the model ranks them: {why}"));
        }
        Platform::Emulator(emulator) if emulator.is_native() => {}
        Platform::Emulator(_) => terminal::note("times of the emulator say nothing of a GPU: the call is tried"),
        Platform::Gpu(_) => {}
    }
    let progress = Progress::new(ways.most(&asked), "predicting");
    ways.add(&asked, true, &|kinds| progress.advance(kinds))?;
    ways.add_usual(&usual)?;
    drop(progress);
    tell_refused(&ways);
    let gpu = if let Platform::Gpu(gpu) = &platform { gpu.name() } else { Sheet::usual().name };
    let (mut found, mut kept) = (Found::default(), None);
    match platform {
        Platform::Cpu => ways.rank(gpu, None),
        Platform::Emulator(_) | Platform::Gpu(_) => {
            let meter = Meter::new(&platform, args.method.method().runs, &ways, None)?;
            ways.rank(gpu, Some(meter.copy).filter(|_| matches!(platform, Platform::Gpu(_))));
            (found, _) = args.timed(|budget, progress| ways.search(&meter, &usual, budget, progress))?;
            // Nothing, if what was asked for is not what would be taken where nothing is.
            let is_open = over.is_open() && of_program.fuse.is_empty();
            let mesh = over.mesh.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
            let entry = ways.entry(mesh, &machine, found.tried).filter(|_| is_open);
            kept = memory.map_or(Ok(None), |memory| memory.keep(entry))?;
        }
    }
    let report = Report { args, subject, ways: &ways, found: &found, kept: kept.as_ref() };
    report.tell(gpu, audience)?;
    check_right(&ways)
}

/// Puts the mesh in the orders that are searched among, and in the one that is usual; what is taken where nobody chooses.
fn place(args: &Args, ways: &mut Ways) -> Result<Variant> {
    let own = &args.of_mesh;
    let mut names = own.orders(&ORDERS);
    let asked = names.clone();
    if !names.contains(&auto::AUTO) {
        names.push(auto::AUTO);
    }
    let mut usual = Variant::new(
        MeshChoices { merge: Merge::WherePays, ..MeshChoices::usual(ways.problem.program.mesh.levels) },
        "none",
    );
    for name in names {
        // All that there is to choose from was asked for, where nothing was.
        let is_asked = asked.contains(&name) || !own.has_order();
        match own.ordering(&ways.problem, name, &[usual.choices.layout]) {
            Ok(ordered) => {
                if name == auto::AUTO {
                    usual.order = ordered.name;
                    ordered.tell();
                }
                ways.place(ordered.name, &ordered.ordering, is_asked)?;
            }
            // A mesh without coordinates has other orders.
            Err(error) if own.has_order() && asked.contains(&name) => return Err(error),
            Err(error) => terminal::note(&format!("--order {name} is left out: {}", error.message)),
        }
    }
    Ok(usual)
}

/// What there is to tell.
struct Report<'a> {
    args: &'a Args,
    subject: &'a Subject<'a>,
    ways: &'a Ways,
    found: &'a Found,
    kept: Option<&'a PathBuf>,
}

impl Report<'_> {
    fn tell(&self, gpu: &str, audience: &mut Audience) -> Result<()> {
        let Self { subject, ways, found, kept, .. } = self;
        let name = &subject.program.program.name;
        let (fastest, ordered) = (ways.all.first(), ways.in_order());
        // Of what was not measured, threads say nothing.
        let mut shown = BTreeSet::new();
        let rows = ways.all.iter().filter(|own| shown.insert(own.kind) || own.measured.is_some());
        let rows: Vec<&Candidate> = rows.collect();
        audience.data(|| {
            json!({
                subject.what(): name,
                "precision": ways.problem.precision,
                "gpu": gpu,
                "fastest": fastest.map(|own| &own.options),
                "fastest_in_order": ordered.map(|own| &own.options),
                "tried": found.tried,
                "hopeless": found.hopeless,
                "left": found.left,
                "kept": kept,
                "rows": rows,
            })
        })?;
        audience.text(|| self.text(gpu, rows))
    }

    fn text(&self, gpu: &str, rows: Vec<&Candidate>) -> String {
        let Self { args, subject, ways, found, kept } = self;
        let name = &subject.program.program.name;
        let (fastest, ordered) = (ways.all.first(), ways.in_order());
        let measured = ways.rows().next().is_some();
        let fuses = rows.iter().any(|own| own.variant.fuse.is_some());
        let mut head = vec!["strategy", "vectors", "order", "threads", "MB", "bound by", "predicted"];
        head.extend(measured.then_some(["measured", "result"]).into_iter().flatten());
        if fuses {
            head.insert(3, "fuse");
        }
        let mut lines = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
        lines.extend(rows.into_iter().map(|own| cells(own, fuses)));
        let right = [3, 4, 6, 7].map(|column| column + usize::from(fuses));
        let of_what = if subject.is_stencil { "microseconds" } else { "microseconds a step" };
        let mut text = format!("{name}, {}, on {gpu}: {of_what}\n", ways.problem.precision.name());
        text.push_str(&terminal::table(&lines, &right));
        if let Some(fastest) = fastest {
            let how = if measured { "the fastest" } else { "the fastest by the model" };
            let left = found.advice(args.budget);
            text.push_str(&format!("{how}: run {}{left}\n", fastest.options));
            let keeps = !fastest.variant.choices.strategy.is_ordered();
            if let (true, Some(ordered)) = (keeps, ordered) {
                text.push_str(&format!(
                    "it adds in another order; with the interpreter's bits: run {}\n",
                    ordered.options
                ));
            }
        }
        if let Some(path) = kept {
            text.push_str(&format!(
                "remembered in {}: `run` of {name} on this mesh takes what keeps the bits\n",
                path.display()
            ));
        }
        text
    }
}

fn cells(own: &Candidate, fuses: bool) -> Vec<String> {
    let Variant { strategy, vectors, order, fuse, .. } = &own.variant;
    let mut cells = vec![(*strategy).to_owned(), (*vectors).to_owned(), (*order).to_owned()];
    cells.extend(fuses.then(|| fuse.unwrap_or_default().to_owned()));
    cells.push(own.variant.threads());
    let megabytes = own.memory_bytes / 1e6;
    cells.push(if megabytes < 10.0 { format!("{megabytes:.3}") } else { format!("{megabytes:.1}") });
    cells.push(own.bound_by.name().to_owned());
    cells.push(format!("{:.1}", own.predicted_us));
    if let Some(row) = &own.measured {
        cells.extend([format!("{:.1}", own.us()), row.verdict()]);
    }
    cells
}
