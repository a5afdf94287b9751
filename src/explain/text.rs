//! The explanation as a text for people.

use super::facts::{BoundFacts, Explanation, LookupFacts, WorkFacts};
use super::kernels::CostFacts;
use super::level_facts::GuardFacts;
use super::picture::{Picture, side_by_side};
use crate::line::Line;
use crate::terminal::table;
use std::collections::BTreeSet;
use std::ops::Range;
use stencilc_compiler::analysis::operations::Operation;
use stencilc_compiler::analysis::roofline::Binding;

/// The most kinds of levels, values or reads that are shown.
const SHOWN: usize = 12;

/// The longest documentation that is shown whole.
const DOC: usize = 56;

/// The most columns of the table of work.
const COLUMNS: usize = 5;

/// Writes an explanation; registers are those on `arch`.
pub fn write(explained: &Explanation, arch: &str) -> String {
    let sections = [
        head(explained),
        fields(explained),
        params(explained),
        reads(explained),
        computed(explained),
        work(explained),
        values(explained),
        memory(explained),
        bounds(explained),
        lookups(explained, arch),
        super::walks::write(explained.walks.as_ref()),
        costs(explained),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn head(explained: &Explanation) -> String {
    let Explanation { stencil, doc, precision, grid, .. } = explained;
    let title = match doc.lines().next() {
        Some(line) => format!("{stencil}: {line}"),
        None => stencil.clone(),
    };
    format!("{title}\nin {}, on a grid of {grid}\n", precision.name())
}

fn fields(explained: &Explanation) -> String {
    let row = |field: &super::facts::FieldFacts| {
        let place = if field.place.is_empty() { " on (i, j, k)" } else { &field.place };
        let range = field.range.map_or(String::new(), |(low, high)| format!("{low}..{high}"));
        vec![
            format!("  {}", field.role),
            field.name.clone(),
            place.trim_start().to_owned(),
            format!("{}, {} B", field.stored, field.bytes),
            range,
            first_line(&field.doc),
        ]
    };
    format!("fields\n{}", table(&explained.fields.iter().map(row).collect::<Vec<_>>(), &[]))
}

fn params(explained: &Explanation) -> String {
    if explained.params.is_empty() {
        return String::new();
    }
    let row = |param: &super::facts::ParamFacts| {
        let value = match param.arbitrary {
            true => format!("{}, since it has no value: --set {}=...", param.value, param.name),
            false => param.value.clone(),
        };
        vec![format!("  {}", param.name), param.kind.to_owned(), value, first_line(&param.doc)]
    };
    format!("parameters\n{}", table(&explained.params.iter().map(row).collect::<Vec<_>>(), &[]))
}

/// The first line of a documentation, cut to what a table has room for.
fn first_line(doc: &str) -> String {
    let line = doc.lines().next().unwrap_or_default();
    if line.chars().count() <= DOC {
        line.to_owned()
    } else {
        line.chars().take(DOC - 3).chain("...".chars()).collect()
    }
}

/// `-2..+2`
fn span(low: i32, high: i32) -> String {
    if low == 0 && high == 0 { "0".to_owned() } else { format!("{low:+}..{high:+}").replace("+0", "0") }
}

fn reads(explained: &Explanation) -> String {
    let read: Vec<_> = explained.fields.iter().filter(|field| !field.offsets.is_empty()).collect();
    if read.is_empty() {
        return "reads\n  none\n".to_owned();
    }
    let row = |field: &&super::facts::FieldFacts| {
        let along = |axis: usize| {
            let all = || field.reads.iter().map(|offset| offset[axis]);
            span(all().min().unwrap_or(0).min(0), all().max().unwrap_or(0).max(0))
        };
        let mut row = vec![format!("  {}", field.name)];
        row.extend([("i", 0), ("j", 1), ("k", 2)].into_iter().flat_map(|(axis, number)| [axis.into(), along(number)]));
        let moved = if field.on_levels_that_are_data { ", on levels that are data too" } else { "" };
        let said = if field.on_one_level_of_all { ", on one level of all too" } else { "" };
        row.push(format!("{}{moved}{said}", counted(field.reads.len(), "value")));
        row
    };
    let mut text = format!("reads, from the cell\n{}", table(&read.iter().map(row).collect::<Vec<_>>(), &[]));
    let drawn = read.iter().filter(|field| field.horizontal);
    let mut pictures: Vec<Picture> = drawn.map(|field| Picture::new(&field.name, &field.offsets)).collect();
    if pictures.len() > 1 {
        pictures.push(Picture::new("all", &explained.columns));
    }
    if !pictures.is_empty() {
        text.push_str("\n  i to the right, j down; (x) is the cell itself; a digit: so many levels are read there\n\n");
        text.push_str(&side_by_side(&pictures));
    }
    text
}

fn computed(explained: &Explanation) -> String {
    let mut text = match &explained.region {
        Some(region) => format!("computed: {region}\n"),
        None => "computed: nothing\n".to_owned(),
    };
    let halo = explained.halo;
    if (halo.i, halo.j) == ((0, 0), (0, 0)) {
        text.push_str("  every column: no read leaves it\n");
    } else {
        let sides = [(-halo.i.0, "left"), (halo.i.1, "right"), (-halo.j.0, "top"), (halo.j.1, "bottom")];
        let sides = sides.iter().filter(|(by, _)| *by > 0).map(|(by, side)| format!("{by} at the {side}"));
        text.push_str(&format!("  columns left out: {}\n", sides.collect::<Vec<_>>().join(", ")));
    }
    for said in &explained.columns_said {
        text.push_str(&format!("  of these columns alone: `{}`, line {}\n", said.text, said.line));
    }
    if let Some(said) = &explained.levels.said {
        text.push_str(&format!("  of these levels alone: `{}`, line {}\n", said.text, said.line));
    }
    if explained.levels.left_out.is_empty() {
        let which = if explained.levels.said.is_some() { "each of them" } else { "every level" };
        text.push_str(&format!("  {which}: no read that counts leaves the grid\n"));
    }
    for left in explained.levels.left_out.iter().take(SHOWN) {
        let levels = match left.levels.as_slice() {
            [run] if run.len() == 1 => format!("level {}", run.start),
            runs => format!("levels {}", listed(runs)),
        };
        // Where they are said, it is an error.
        let verb = match (&explained.levels.said, left.levels.as_slice()) {
            (Some(_), _) => "cannot be computed",
            (None, [run]) if run.len() == 1 => "is left out",
            (None, _) => "are left out",
        };
        let read = shifted(&left.field, left.shift);
        text.push_str(&format!("  {levels} {verb}: `{read}`, {}, would leave the grid\n", lines(&left.lines)));
        for guard in left.guards.iter().take(3) {
            let verb = if guard.holds { "holds" } else { "is false" };
            text.push_str(&format!("    its guard `{}`, {}, {verb} there\n", guard.text, lines(&guard.lines)));
        }
    }
    text.push_str(&more(explained.levels.left_out.len()));
    if explained.levels.reads.is_empty() {
        return text;
    }
    text.push_str("reads of other levels count\n");
    let rows = explained.levels.reads.iter().take(SHOWN).map(|read| {
        let guards: Vec<String> = read.guards.iter().take(3).map(condition).collect();
        let why = if guards.is_empty() { "no guard".to_owned() } else { format!("where {}", guards.join("; or ")) };
        vec![format!("  {}", shifted(&read.field, read.shift)), format!("on levels {}", listed(&read.levels)), why]
    });
    text.push_str(&table(&rows.collect::<Vec<_>>(), &[]));
    text.push_str(&more(explained.levels.reads.len()));
    text
}

/// Where a guard lets a read count.
fn condition(guard: &GuardFacts) -> String {
    format!("`{}`, {}{}", guard.text, lines(&guard.lines), if guard.holds { "" } else { ", is false" })
}

/// `line 7`, `lines 7 and 9`
fn lines(lines: &BTreeSet<Line>) -> String {
    let numbers: Vec<String> = lines.iter().take(4).map(Line::to_string).collect();
    match numbers.split_last() {
        None => String::new(),
        Some((one, [])) => format!("line {one}"),
        Some((last, others)) => format!("lines {} and {last}", others.join(", ")),
    }
}

/// `phi[k-1]`
fn shifted(field: &str, shift: i32) -> String {
    if shift == 0 { field.to_owned() } else { format!("{field}[k{shift:+}]") }
}

/// `0..11, 12..64`
fn listed(runs: &[Range<usize>]) -> String {
    let shown: Vec<String> = runs.iter().take(4).map(|run| format!("{}..{}", run.start, run.end)).collect();
    format!("{}{}", shown.join(", "), if runs.len() > 4 { ", ..." } else { "" })
}

fn more(count: usize) -> String {
    if count > SHOWN { format!("  and {} more\n", count - SHOWN) } else { String::new() }
}

fn counted(number: usize, what: &str) -> String {
    crate::terminal::count(number, what)
}

/// A count as a text; counting ends at the largest number of 64 bits.
fn up_to_most(count: u64, shown: impl Fn(&u64) -> String) -> String {
    if count == u64::MAX { format!("over {:.0e}", count as f64) } else { shown(&count) }
}

fn work(explained: &Explanation) -> String {
    let columns: Vec<&WorkFacts> = explained.work.iter().take(COLUMNS).collect();
    if columns.is_empty() {
        return String::new();
    }
    let mut head = vec!["a cell needs".to_owned()];
    head.extend(columns.iter().map(|work| match columns.len() {
        1 => String::new(),
        _ => format!("k {}", listed(&work.levels)),
    }));
    let mut rows = vec![head];
    let mut row = |name: &str, number: &dyn Fn(&WorkFacts) -> u64| {
        let mut row = vec![format!("  {name}")];
        row.extend(columns.iter().map(|work| up_to_most(number(work), u64::to_string)));
        rows.push(row);
    };
    row("distinct reads of fields", &|work| work.reads as u64);
    row("reads as written, every value computed once", &|work| work.reads_written);
    row("reads if every use computed its value anew", &|work| work.reads_anew);
    row("values (lets, arguments, results; each offset once)", &|work| work.values as u64);
    row("values if every use computed its value anew", &|work| work.values_anew);
    row("flops, every value computed once", &|work| work.flops);
    row("flops if every use computed its value anew", &|work| work.flops_anew);
    for operation in Operation::ALL {
        let count = |work: &WorkFacts| work.once.count(operation);
        if columns.iter().any(|work| count(work) > 0) {
            let flops = match (operation.flops(), operation.is_slow()) {
                (0, _) => ", not flops",
                (1, false) => "",
                (1, true) => ", each one flop, but many instructions",
                _ => ", each two flops",
            };
            row(&format!("  {}{flops}", operation.name()), &count);
        }
    }
    let numbers: Vec<usize> = (1..=columns.len()).collect();
    let mut text = table(&rows, &numbers);
    if explained.work.len() > COLUMNS {
        text.push_str(&format!("  and {} more kinds of levels\n", explained.work.len() - COLUMNS));
    }
    text
}

fn values(explained: &Explanation) -> String {
    let again: Vec<_> = explained.values.iter().filter(|value| value.anew > 1).collect();
    if again.is_empty() {
        return String::new();
    }
    let row = |value: &&super::facts::ValueFacts| {
        vec![
            format!("  {}", value.name),
            value.origin.to_owned(),
            format!("at {}", counted(value.offsets, "offset")),
            format!(
                "{} if every use computed it anew",
                up_to_most(value.anew, |anew| counted(usize::try_from(*anew).unwrap_or(usize::MAX), "time"))
            ),
        ]
    };
    let rows: Vec<Vec<String>> = again.iter().take(SHOWN).map(row).collect();
    format!("values used more than once, computed once at each offset\n{}{}", table(&rows, &[]), more(again.len()))
}

fn memory(explained: &Explanation) -> String {
    if explained.cells == 0 {
        return String::new();
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, bytes: f64, what: &str| {
        if bytes > 0.0 {
            rows.push(vec![format!("  {name}"), format!("{bytes:.2}"), format!("B {what}")]);
        }
    };
    for field in &explained.fields {
        row(&field.name, field.read_bytes_per_cell, "read");
        row(&field.name, field.written_bytes_per_cell, "written");
    }
    row("in all", explained.bytes_per_cell, "a computed cell");
    let mut text = format!("memory, if each value passes once\n{}", table(&rows, &[1]));
    let (flops, intensity) = (explained.flops_per_cell, explained.intensity);
    text.push_str(&format!("  {flops:.2} flops a cell make {intensity:.2} flops a byte\n"));
    text
}

fn bounds(explained: &Explanation) -> String {
    if explained.bounds.is_empty() {
        return String::new();
    }
    let head = ["  machine", "GB/s", "Gflop/s", "memory", "arithmetic", "at least", "binds", "cells/s"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let row = |bounded: &BoundFacts| {
        let us = |time: f64| if time < 10.0 { format!("{time:.3} us") } else { format!("{time:.1} us") };
        vec![
            format!("  {}", bounded.machine),
            format!("{:.0}", bounded.limits.gb_per_s),
            format!("{:.0}", bounded.limits.gflops),
            us(bounded.bound.memory_us),
            us(bounded.bound.arithmetic_us),
            us(bounded.bound.bound_us),
            match bounded.bound.binding {
                Binding::Memory => "memory".to_owned(),
                Binding::Arithmetic => "arithmetic".to_owned(),
            },
            format!("{:.3e}", bounded.cells_per_second),
        ]
    };
    rows.extend(explained.bounds.iter().map(row));
    let mut text = format!("the least time of {} cells\n{}", explained.cells, table(&rows, &[1, 2, 3, 4, 5, 7]));
    text.push_str("  a bound, not a forecast, for fields that come from memory and not from a cache;\n");
    text.push_str("  docs/performance.md has times that were measured\n");
    if let [one] = explained.bounds.as_slice() {
        text.push_str(&format!("  figures of the machine: {}\n", one.source));
    }
    text
}

fn lookups(explained: &Explanation, arch: &str) -> String {
    if explained.lookups.is_empty() {
        return String::new();
    }
    let with_registers = explained.lookups.iter().any(|kernel| kernel.registers.is_some());
    let mut head = vec!["  storage", "access", "levels", "index variables", "neighbours looked up", "table loads"];
    if with_registers {
        head.push("registers");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(explained.lookups.iter().map(|kernel| {
        let mut row = vec![format!("  {}", kernel.storage), kernel.access.clone()];
        match &kernel.work {
            Some(work) => row.extend([
                work.levels.to_string(),
                work.index_variables.to_string(),
                format!("{:.1}", work.lookups),
                format!("{:.1}", work.table_loads),
            ]),
            None => row.push("refused".to_owned()),
        }
        row.extend(kernel.registers.map(|registers| registers.to_string()));
        row
    }));
    let mut why: Vec<(&str, Vec<&str>)> = Vec::new();
    for kernel in &explained.lookups {
        let Some(reason) = &kernel.refused else { continue };
        match why.iter_mut().find(|(known, _)| known == reason) {
            Some((_, accesses)) if accesses.contains(&kernel.access.as_str()) => {}
            Some((_, accesses)) => accesses.push(&kernel.access),
            None => why.push((reason, vec![&kernel.access])),
        }
    }
    let why = why.iter().map(|(reason, accesses)| format!("  {} is refused: {reason}\n", accesses.join(", ")));
    let on = if with_registers { format!(", registers on {arch}") } else { String::new() };
    format!(
        "kernels as written: levels and index variables a thread, look-ups and loads a cell{on}\n{}{}",
        table(&rows, &[2, 3, 4, 5, 6]),
        why.collect::<String>()
    )
}

fn costs(explained: &Explanation) -> String {
    let names = |kernel: &LookupFacts| vec![format!("  {}", kernel.storage), kernel.access.clone()];
    let kernels = explained.lookups.iter().filter_map(|kernel| Some((names(kernel), kernel.cost.as_ref()?)));
    let kernels: Vec<_> = kernels.collect();
    if kernels.is_empty() {
        return String::new();
    }
    format!(
        "kernels as written, for any grid: what a thread does at most, real and whole operations, and what it needs\n{}",
        CostFacts::table(&kernels, &["  storage", "access"])
    )
}
