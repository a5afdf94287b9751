//! What was measured, as a table: the fastest first.

use crate::terminal;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::bench::limit::Limit;
use stencilc_runtime::bench::rows::{KernelFacts, MachineFacts, Measured, Row, Subject};
use stencilc_runtime::bench::sweep::Swept;

/// Letters that a bar of the whole limit takes.
const BAR: f64 = 10.0;

/// What came of one case.
pub fn text(subject: &Subject, machine: &MachineFacts, limit: Option<&Limit>, swept: &Swept, top: usize) -> String {
    let mut text = heading(subject, machine, limit);
    let fastest = swept.fastest();
    let best = fastest.first().and_then(|row| row.measured()).map(|best| best.statistics.median_us);
    let titles = ["us", "quartiles", "GB/s", "of limit", "", "of best", "registers", "spills", "occupancy", "kernel"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let lines = fastest.iter().take(top).filter_map(|row| Some(line(row, row.measured()?, best?)));
    rows.extend(lines);
    if rows.len() > 1 {
        text.push_str(&terminal::table(&rows, &[0, 1, 2, 3, 5, 6, 7, 8]));
    }
    if fastest.len() > top {
        text.push_str(&format!("and {} slower\n", fastest.len() - top));
    }
    for (row, reason) in swept.failed() {
        text.push_str(&format!("FAILED  {}: {reason}\n", row.kernel.options));
    }
    let refused = swept.refused.iter();
    refused.for_each(|(reason, times)| text.push_str(&format!("left out {times}: {reason}\n")));
    text
}

/// What is computed, on what, and how fast a copy of it is.
pub fn heading(subject: &Subject, machine: &MachineFacts, limit: Option<&Limit>) -> String {
    let Subject { stencil, precision, grid, region, .. } = subject;
    let mut text = format!("{stencil} {} {grid}, computed {region}, on {}\n", precision.name(), machine.name);
    if let Some(limit) = limit {
        let (reads, writes) = (terminal::count(limit.reads, "field"), limit.writes);
        text.push_str(&format!(
            "the limit: a copy that reads {reads} and writes {writes} takes {:.2} us, {} GB/s\n",
            limit.statistics.median_us,
            speed(limit.gb_per_s)
        ));
    }
    text
}

fn line(row: &Row, measured: &Measured, best: f64) -> Vec<String> {
    let KernelFacts { resources, occupancy, .. } = &row.kernel;
    let statistics = measured.statistics;
    let number = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
    vec![
        format!("{:.2}", statistics.median_us),
        format!("{:.2}..{:.2}", statistics.lower_quartile_us, statistics.upper_quartile_us),
        speed(measured.gb_per_s),
        measured.of_limit.map_or("-".to_owned(), |part| format!("{part:.3}")),
        measured.of_limit.map_or(String::new(), bar),
        format!("{:.3}", best / statistics.median_us),
        number(resources.as_ref().map(|resources| resources.registers)),
        number(resources.as_ref().map(|resources| resources.spill_stores + resources.spill_loads)),
        occupancy.map_or("-".to_owned(), |occupancy| format!("{:.2}", occupancy.part)),
        kernel(&row.kernel),
    ]
}

fn speed(gb_per_s: f64) -> String {
    if gb_per_s < 10.0 { format!("{gb_per_s:.3}") } else { format!("{gb_per_s:.0}") }
}

/// `regular zloop-sliced 64x4x1 --slice 4`: what is not usual stands as the options that choose it.
pub fn kernel(facts: &KernelFacts) -> String {
    let Some(choices) = &facts.choices else { return facts.options.clone() };
    let Choices { access, storage, block: [x, y, z], .. } = choices;
    let usual = Choices { block: Choices::usual_block(access), ..choices.clone() };
    // Access, storage and precision come first, a name and a value each.
    let rest = usual.words();
    let rest: Vec<&str> = rest.split_whitespace().skip(6).collect();
    format!("{storage} {access} {x}x{y}x{z} {}", rest.join(" ")).trim_end().to_owned()
}

/// A bar of a part of the limit, to an eighth of a letter.
fn bar(part: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part.clamp(0.0, 1.5) * BAR * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(0.5), "█████");
        assert_eq!(bar(0.9625), "█████████▋");
        assert_eq!(bar(1.0), "██████████");
        assert_eq!(bar(1e9).chars().count(), 15);
    }
}
