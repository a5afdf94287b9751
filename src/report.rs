//! `stencilc report`: a page of what `stencilc bench` measured.

mod cases;
mod commands;
mod data;
mod kernels;
mod page;
mod read;

use crate::output;
use crate::terminal;
use cases::Case;
use data::Data;
use kernels::{Facts, Kernels};
use read::Found;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use stencilc_runtime::bench::rows::{Outcome, Row};
use stencilc_runtime::{Result, files};

/// Arguments of `report`.
#[derive(clap::Args)]
pub struct Args {
    /// Files of rows that `stencilc bench -o` wrote, or of what it printed with --json
    #[arg(required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// The page: a .html file
    #[arg(short, long = "output", value_name = "FILE", default_value = "report.html", value_hint = clap::ValueHint::FilePath)]
    output: PathBuf,
    /// What stands at the top of the page
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Leave the CUDA of the kernels out: the page is made faster, and is smaller
    #[arg(long)]
    no_cuda: bool,
    /// Show the page in the browser
    #[arg(long)]
    open: bool,
}

/// Makes a page of rows.
///
/// # Errors
/// A file is missing or holds something else, no file holds a row, or the page cannot be written.
pub fn report(args: &Args, json: bool) -> Result<()> {
    output::check("-o", &args.output, "html", files::Kind::Page)?;
    let found = read::read(&args.files)?;
    for note in &found.notes {
        terminal::note(note);
    }
    let cases = cases::of(&found.rows);
    tell_machines(&cases);
    let kernels = kernels::again(&cases, args.no_cuda);
    let title = args.title.clone().unwrap_or_else(|| title(&cases));
    let data = Data::new(&title, &found, &cases, &kernels);
    let page = page::page(&data, &kernels.texts)?;
    files::write_atomic(&args.output, |to| to.write_all(page.as_bytes()))?;
    tell(args, &found, &cases, &data, &kernels, page.len(), json)?;
    if args.open {
        open(&args.output);
    }
    Ok(())
}

/// What a page is called that nobody gave a title.
fn title(cases: &[Case]) -> String {
    let mut names: Vec<&str> = cases.iter().map(|case| case.subject().stencil.as_str()).collect();
    names.dedup();
    let machines: BTreeSet<&str> = cases.iter().map(|case| case.machine().name.as_str()).collect();
    match (names.as_slice(), machines.len()) {
        ([first, second, third, _, ..], _) => format!("Measured: {first}, {second}, {third} and more"),
        (names, 1) => format!("{} on {}", names.join(", "), machines.into_iter().next().unwrap_or_default()),
        (names, several) => format!("{} on {several} machines", names.join(", ")),
    }
}

fn tell_machines(cases: &[Case]) {
    let machines: BTreeSet<String> = cases.iter().map(|case| data::machine_name(case.machine())).collect();
    if machines.len() > 1 {
        let names: Vec<&str> = machines.iter().map(String::as_str).collect();
        terminal::note(&format!("rows are of {} machines, each a case of its own: {}", names.len(), names.join("; ")));
    }
}

fn tell(
    args: &Args,
    found: &Found,
    cases: &[Case],
    data: &Data,
    kernels: &Kernels,
    bytes: usize,
    json: bool,
) -> Result<()> {
    let failed = found.rows.iter().filter(|row| matches!(row.outcome, Outcome::Failed { .. })).count();
    let missing = kernels.missing();
    if json {
        let facts = data.cases.iter().zip(&kernels.of_cases);
        let answers = cases.iter().zip(facts).map(|(case, (shown, facts))| answer(case, &shown.label, facts));
        let missing = missing.iter().map(|(reason, kernels)| json!({ "reason": reason, "kernels": kernels }));
        return terminal::json(&json!({
            "file": args.output,
            "bytes": bytes,
            "rows": found.rows.len(),
            "failed": failed,
            "cases": answers.collect::<Vec<_>>(),
            "cuda": { "shown": kernels.shown(), "missing": missing.collect::<Vec<_>>() },
        }));
    }
    let mut lines = vec![["case", "us", "of limit", "fastest"].map(str::to_owned).to_vec()];
    lines.extend(cases.iter().zip(&data.cases).map(|(case, shown)| line(case, shown)));
    let mut text = terminal::table(&lines, &[1, 2]);
    if !args.no_cuda {
        for (reason, times) in missing {
            text.push_str(&format!("CUDA of {} is not shown: {reason}\n", terminal::count(times, "kernel")));
        }
    }
    let mut parts = vec![terminal::count(found.rows.len(), "kernel"), terminal::count(cases.len(), "case")];
    parts.extend((failed > 0).then(|| format!("{failed} failed")));
    let size = bytes as f64 / 1e6;
    terminal::print(&format!("{text}wrote {}: {}, {size:.1} MB\n", args.output.display(), parts.join(", ")))
}

fn line(case: &Case, shown: &data::CaseData) -> Vec<String> {
    let fastest = case.fastest.map(|row| case.rows[row].1);
    let measured = fastest.and_then(Row::measured);
    let part = measured.and_then(|measured| measured.of_limit).map_or("-".to_owned(), |part| format!("{part:.3}"));
    let time = measured.map_or("-".to_owned(), |measured| format!("{:.2}", measured.statistics.median_us));
    let kernel = fastest.map_or("none was measured".to_owned(), |row| row.kernel.options.clone());
    vec![shown.label.clone(), time, part, kernel]
}

fn answer(case: &Case, label: &str, facts: &Facts) -> Value {
    let fastest = case.fastest.map(|row| case.rows[row].1);
    let fastest = fastest.and_then(|row| {
        let measured = row.measured()?;
        Some(json!({
            "options": row.kernel.options,
            "median_us": measured.statistics.median_us,
            "of_limit": measured.of_limit,
            "command": commands::build(case, row, facts).whole(),
        }))
    });
    json!({ "case": label, "machine": case.machine(), "kernels": case.rows.len(), "fastest": fastest })
}

/// Shows a file as the desktop does when it is clicked on.
fn open(path: &Path) {
    let mut command = Command::new("xdg-open");
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let why = match command.status() {
        Ok(status) if status.success() => return,
        Ok(status) => format!("xdg-open ended with {status}"),
        Err(error) => format!("xdg-open: {error}"),
    };
    terminal::note(&format!("no browser could be started ({why}): open `{}` in one", path.display()));
}
