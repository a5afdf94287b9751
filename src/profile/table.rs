//! What was counted, as a table: the fastest kernel first.

use super::Done;
use crate::bench::table::{heading, kernel};
use crate::terminal;
use stencilc_runtime::bench::rows::MachineFacts;
use stencilc_runtime::profile::metrics::SECTOR;
use stencilc_runtime::profile::{Ncu, Profile};

/// What the columns are that bear no unit.
const LEGEND: &str = "\
L1, L2, DRAM: bytes a cell that threads load from the first-level cache, it from the second, that from memory; stored: bytes a
cell that go to memory; least: bytes a cell if every field and table moves once; shared: passes a cell through shared memory
";

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

fn line(profile: &Profile) -> Vec<String> {
    let row = &profile.row;
    let cells = row.subject.cells.max(1) as f64;
    let none = || "-".to_owned();
    let percent = |name: &str| profile.value(name).map_or_else(none, |value| format!("{value:.1}%"));
    let a_cell = |name: &str, each: usize| {
        profile.value(name).map_or_else(none, |value| format!("{:.2}", value * each as f64 / cells))
    };
    let measured = row.measured();
    vec![
        measured.map_or_else(none, |measured| format!("{:.2}", measured.statistics.median_us)),
        measured.and_then(|measured| measured.of_limit).map_or_else(none, |part| format!("{part:.3}")),
        percent("occupancy"),
        percent("issue_slots"),
        percent("memory_stalls"),
        percent("l1_hits"),
        percent("l2_hits"),
        percent("load_efficiency"),
        a_cell("load_sectors", SECTOR),
        a_cell("l2_read_sectors", SECTOR),
        a_cell("dram_read", 1),
        a_cell("dram_written", 1),
        format!("{:.2}", row.kernel.least_bytes),
        a_cell("shared_loads", 1),
        kernel(&row.kernel),
    ]
}
