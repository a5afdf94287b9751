//! What the page knows: rows and cases as JSON.

use super::cases::{self, Case};
use super::commands::{self, Call, others};
use super::kernels::{Facts, Kernels};
use super::read::Found;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::BTreeMap;
use stencilc_compiler::access::ACCESSES;
use stencilc_compiler::gpu;
use stencilc_compiler::storage;
use stencilc_runtime::bench::date;
use stencilc_runtime::bench::limit::Limit;
use stencilc_runtime::bench::rows::{MachineFacts, Method, Outcome, Row};

/// All that the page shows.
#[derive(Serialize)]
pub struct Data {
    title: String,
    made: String,
    version: &'static str,
    files: Vec<String>,
    /// Strategies in the order of the registry, then those that only other versions know.
    strategies: Vec<Named>,
    pub cases: Vec<CaseData>,
    rows: Vec<RowData>,
    /// Why kernels cannot be shown.
    reasons: Vec<String>,
    /// Pictures of patches, as base 64 of PNG files.
    pictures: Vec<String>,
}

#[derive(Serialize)]
struct Named {
    name: String,
    summary: &'static str,
}

/// A case, without its rows.
#[derive(Serialize)]
pub struct CaseData {
    pub label: String,
    stencil: String,
    precision: &'static str,
    grid: String,
    cells: usize,
    region: String,
    machine: String,
    driver: Option<String>,
    compiler: Option<String>,
    device: String,
    parameters: BTreeMap<String, String>,
    hot: bool,
    series: usize,
    /// Floating-point operations a cell.
    flops: Option<f64>,
    compulsory_bytes: usize,
    /// What the GPU's maker says of it.
    sheet: Option<Sheet>,
    limit: Option<LimitData>,
    /// The fastest row.
    best: Option<usize>,
    /// How calls that build its kernels begin and end.
    head: String,
    tail: String,
}

#[derive(Serialize)]
struct Sheet {
    gb_per_s: f64,
    gflops: f64,
    source: &'static str,
}

#[derive(Serialize)]
struct LimitData {
    us: f64,
    gb_per_s: f64,
    reads: usize,
    writes: usize,
    /// The shortest and the longest of several runs.
    range: [f64; 2],
}

/// A row; what is not known is left out.
#[derive(Default, Serialize)]
struct RowData {
    case: usize,
    storage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fastest: Option<&'static str>,
    /// What its tables are like, of a storage that has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbors: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'static str>,
    access: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<[u32; 3]>,
    /// How the knobs of its strategy are set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    knobs: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    others: String,
    options: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    least_bytes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spills: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    occupancy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    runs: usize,
    date: String,
    /// The number of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<usize>,
    /// The number of the reason why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<usize>,
    /// The number of the picture of its patches, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<usize>,
}

/// What a machine is called, where it matters that it is no GPU.
pub fn machine_name(machine: &MachineFacts) -> String {
    match machine.device.as_str() {
        "cuda" => machine.name.clone(),
        "emulate" => format!("the emulator on {}", machine.name),
        "native" => format!("kernels on {}", machine.name),
        "cpu" => format!("the interpreter on {}", machine.name),
        other => format!("{} ({other})", machine.name),
    }
}

impl Data {
    /// What stands at the top.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// All that there is to show.
    pub fn new(title: &str, found: &Found, cases: &[Case], kernels: &Kernels) -> Self {
        let reasons: Vec<String> = kernels.missing().into_keys().map(str::to_owned).collect();
        let mut rows: BTreeMap<usize, RowData> = BTreeMap::new();
        for (number, case) in cases.iter().enumerate() {
            for (at, row) in &case.rows {
                let (text, reason) = match kernels.of_rows.get(at) {
                    Some(Ok(text)) => (Some(*text), None),
                    Some(Err(reason)) => (None, reasons.iter().position(|own| own == reason)),
                    None => (None, None),
                };
                let picture = kernels.pictures_of_rows.get(at).copied();
                rows.insert(*at, RowData { case: number, text, reason, picture, ..row_data(case, row) });
            }
        }
        let labels = cases::labels(cases);
        let facts = cases.iter().zip(labels).zip(&kernels.of_cases);
        let cases = facts.map(|((case, label), facts)| case_data(case, label, facts)).collect();
        let rows: Vec<RowData> = rows.into_values().collect();
        Self {
            title: title.to_owned(),
            made: date(),
            version: env!("CARGO_PKG_VERSION"),
            files: found.files.clone(),
            strategies: strategies(&rows),
            cases,
            rows,
            reasons,
            pictures: kernels.pictures.iter().map(|picture| STANDARD.encode(picture)).collect(),
        }
    }
}

fn strategies(rows: &[RowData]) -> Vec<Named> {
    let known = ACCESSES.iter().map(|access| Named { name: access.name().to_owned(), summary: access.summary() });
    let mut all: Vec<Named> = known.collect();
    for row in rows {
        if all.iter().all(|own| own.name != row.access) {
            all.push(Named { name: row.access.clone(), summary: "" });
        }
    }
    all
}

fn case_data(case: &Case, label: String, facts: &Facts) -> CaseData {
    let (subject, machine) = (case.subject(), case.machine());
    let sheet = gpu::Sheet::by_driver_name(&machine.name).filter(|_| machine.device == "cuda").map(|gpu| {
        let limits = gpu.limits(subject.precision);
        Sheet { gb_per_s: limits.gb_per_s, gflops: limits.gflops, source: gpu.source }
    });
    let Call { head, tail, .. } = commands::build(case, case.rows[0].1, facts);
    CaseData {
        label,
        stencil: subject.stencil.clone(),
        precision: subject.precision.name(),
        grid: subject.grid.clone(),
        cells: subject.cells,
        region: subject.region.to_string(),
        machine: machine_name(machine),
        driver: machine.driver.clone(),
        compiler: machine.compiler.clone(),
        device: machine.device.clone(),
        parameters: subject.parameters.clone(),
        hot: case.is_hot(),
        series: case.series,
        flops: facts.flops.map(rounded),
        compulsory_bytes: case.rows[0].1.kernel.compulsory_bytes,
        sheet,
        limit: limit(case),
        best: case.fastest.map(|at| case.rows[at].0),
        head,
        tail,
    }
}

/// The limit of the fastest row's run, and what other runs measured.
fn limit(case: &Case) -> Option<LimitData> {
    let limit_of = |row: &&Row| -> Option<Limit> { row.measured()?.limit.clone() };
    let own = limit_of(&case.rows[case.fastest?].1)?;
    let all = case.rows.iter().filter_map(|(_, row)| Some(limit_of(row)?.statistics.median_us));
    let (low, high) = all.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), us| (low.min(us), high.max(us)));
    let Limit { reads, writes, gb_per_s, statistics, .. } = own;
    let range = [rounded(low), rounded(high)];
    Some(LimitData { us: rounded(statistics.median_us), gb_per_s: rounded(gb_per_s), reads, writes, range })
}

fn row_data(case: &Case, row: &Row) -> RowData {
    let Method { runs, .. } = row.method;
    let kernel = &row.kernel;
    let mut data = RowData {
        storage: "none".to_owned(),
        access: "interpreter".to_owned(),
        options: commands::build(case, row, &Facts::default()).options,
        least_bytes: rounded(kernel.least_bytes),
        registers: kernel.resources.as_ref().map(|own| own.registers),
        spills: kernel.resources.as_ref().map(|own| own.spill_stores.saturating_add(own.spill_loads)),
        shared: kernel.resources.as_ref().map(|own| own.shared),
        occupancy: kernel.occupancy.map(|own| rounded(own.part)),
        runs,
        date: row.date.clone(),
        ..RowData::default()
    };
    if let Some(choices) = &kernel.choices {
        let has_tables = storage::find(&choices.storage).map_or(true, |storage| storage.has_tables());
        data.storage = choices.storage.clone();
        data.fastest = Some(choices.fastest.name());
        data.neighbors = has_tables.then(|| choices.neighbors.name());
        data.layout = has_tables.then(|| choices.layout.clone());
        data.fields = Some(choices.fields.name());
        data.access = choices.access.clone();
        data.block = Some(choices.block);
        data.knobs = choices.settings().map(|(knob, setting)| (knob.name, setting.to_string())).collect();
        data.others = others(choices);
    }
    match &row.outcome {
        Outcome::Failed { reason } => data.failed = Some(reason.clone()),
        Outcome::Measured(measured) => {
            let own = measured.statistics;
            data.us = Some(rounded(own.median_us));
            data.range = Some([own.minimum_us, own.lower_quartile_us, own.upper_quartile_us].map(rounded));
            data.gb_per_s = Some(rounded(measured.gb_per_s));
            data.of_limit = measured.of_limit.map(rounded);
            data.limit = measured.limit.as_ref().map(|limit| rounded(limit.statistics.median_us));
            data.result = (measured.result != "equal").then(|| measured.result.clone());
        }
    }
    data
}

/// A number to six digits: more were never measured, and a page of thousands of rows is half as large.
fn rounded(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_digits_are_kept() {
        assert_eq!(rounded(94.336_003_065), 94.336);
        assert_eq!(rounded(1_234_567.8), 1_234_570.0);
        assert_eq!((rounded(0.0), rounded(1.0 / 3.0)), (0.0, 0.333_333));
    }
}
