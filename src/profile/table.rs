//! What was counted, as a table: the fastest kernel first.

use super::Done;
use super::ways::{Case, Kernel};
use crate::bench::table::{heading, kernel};
use crate::terminal;
use stencilc_compiler::gpu::SECTOR;
use stencilc_runtime::bench::rows::MachineFacts;
use stencilc_runtime::profile::metrics::Counters;
use stencilc_runtime::profile::{Ncu, Profile};

/// What the columns are that bear no unit.
const LEGEND: &str = "\
L1, L2, DRAM: bytes a cell that threads load from the first-level cache, it from the second, that from memory; stored: bytes a
cell that go to memory; least: bytes a cell if every field and table moves once; shared: passes a cell through shared memory
";

/// What the columns of a way's kernels are.
const LEGEND_OF_WAYS: &str = "\
us: of the launch that was counted; of peak: of what memory can move; loaded, stored: MB from and to memory
";

/// The kernels of a way to compute a program, or something over a mesh.
pub fn of_way(case: &Case, machine: &MachineFacts, ncu: &Ncu) -> String {
    let Case { name, precision, place, way, us, of_copy, kernels, .. } = case;
    let of_copy = of_copy.map_or(String::new(), |part| format!(", {part:.3} of the copy's speed"));
    let mut text = format!("{name} {} {place}, on {}\n{us:.2} us{of_copy}: {way}\n", precision.name(), machine.name);
    text.push_str(&format!("one launch of each counted by Nsight Compute {}, with empty caches\n", ncu.version));
    let titles =
        ["us", "of peak", "occupancy", "issue", "waits", "L1 hits", "L2 hits", "useful", "loaded", "stored", "kernel"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for Kernel { kernel, counters, .. } in kernels.iter().filter(|own| own.launched && own.failed.is_none()) {
        let counted = Counted(counters);
        let mut row = vec![counted.number("duration", 1e-3), counted.percent("dram_share")];
        row.extend(counted.percents());
        row.extend([counted.number("dram_read", 1e-6), counted.number("dram_written", 1e-6), kernel.clone()]);
        rows.push(row);
    }
    if rows.len() > 1 {
        let numbers: Vec<usize> = (0..titles.len() - 1).collect();
        text.push_str(&terminal::table(&rows, &numbers));
        text.push_str(LEGEND_OF_WAYS);
    }
    for own in kernels {
        if !own.launched {
            text.push_str(&format!("not launched: {}\n", own.kernel));
        }
        if let Some(reason) = &own.failed {
            text.push_str(&format!("FAILED  {}: {reason}\n", own.kernel));
        }
    }
    text
}

/// What came of one case.
pub fn text(done: &Done, machine: &MachineFacts, ncu: &Ncu) -> String {
    let mut text = heading(&done.subject, machine, done.limit.as_ref());
    text.push_str(&format!("one launch of each counted by Nsight Compute {}, with empty caches\n", ncu.version));
    let titles = [
        "us",
        "of limit",
        "occupancy",
        "issue",
        "waits",
        "L1 hits",
        "L2 hits",
        "useful",
        "L1",
        "L2",
        "DRAM",
        "stored",
        "least",
        "shared",
        "kernel",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(done.profiles.iter().map(line));
    if rows.len() > 1 {
        let numbers: Vec<usize> = (0..titles.len() - 1).collect();
        text.push_str(&terminal::table(&rows, &numbers));
        text.push_str(LEGEND);
    }
    for (row, reason) in &done.failed {
        text.push_str(&format!("FAILED  {}: {reason}\n", row.kernel.options));
    }
    for (row, reason) in done.swept.failed() {
        text.push_str(&format!("FAILED  {}: {reason}\n", row.kernel.options));
    }
    let refused = done.swept.refused.iter();
    refused.for_each(|(reason, times)| text.push_str(&format!("left out {times}: {reason}\n")));
    text
}

/// Counters as cells of a table.
struct Counted<'a>(&'a Counters);

impl Counted<'_> {
    fn told(&self, name: &str, told: impl Fn(f64) -> String) -> String {
        self.0.get(name).and_then(|counter| counter.value).map_or_else(|| "-".to_owned(), told)
    }

    fn number(&self, name: &str, factor: f64) -> String {
        self.told(name, |value| format!("{:.2}", value * factor))
    }

    fn percent(&self, name: &str) -> String {
        self.told(name, |value| format!("{value:.1}%"))
    }

    /// What both tables have beside the times.
    fn percents(&self) -> [String; 6] {
        ["occupancy", "issue_slots", "memory_stalls", "l1_hits", "l2_hits", "load_efficiency"]
            .map(|name| self.percent(name))
    }
}

fn line(profile: &Profile) -> Vec<String> {
    let row = &profile.row;
    let counted = Counted(&profile.counters);
    let a_cell = |name: &str, each: usize| counted.number(name, each as f64 / row.subject.cells.max(1) as f64);
    let none = || "-".to_owned();
    let measured = row.measured();
    let mut cells = vec![
        measured.map_or_else(none, |measured| format!("{:.2}", measured.statistics.median_us)),
        measured.and_then(|measured| measured.of_limit).map_or_else(none, |part| format!("{part:.3}")),
    ];
    cells.extend(counted.percents());
    cells.extend([
        a_cell("load_sectors", SECTOR),
        a_cell("l2_read_sectors", SECTOR),
        a_cell("dram_read", 1),
        a_cell("dram_written", 1),
        format!("{:.2}", row.kernel.least_bytes),
        a_cell("shared_loads", 1),
        kernel(&row.kernel),
    ]);
    cells
}
