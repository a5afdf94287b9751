//! Rows that can be compared with each other: of one stencil in one precision on one grid and one machine.

use serde::Serialize;
use std::collections::BTreeMap;
use stencilc_runtime::bench::rows::{MachineFacts, Row, Subject};

/// Rows that can be compared with each other.
pub struct Case<'a> {
    /// Each with its number among all rows. There is at least one.
    pub rows: Vec<(usize, &'a Row)>,
    /// Which of them has the shortest median, if any has times.
    pub fastest: Option<usize>,
    /// Cases with the same number differ in nothing but their grid.
    pub series: usize,
}

impl Case<'_> {
    /// What all rows compute.
    pub fn subject(&self) -> &Subject {
        &self.rows[0].1.subject
    }

    /// What all rows were measured on.
    pub fn machine(&self) -> &MachineFacts {
        &self.rows[0].1.machine
    }

    /// Whether all launches were on the same buffers.
    pub fn is_hot(&self) -> bool {
        self.rows[0].1.method.hot
    }
}

/// The cases of rows: stencils by name, and of each the small grids first.
pub fn of(rows: &[Row]) -> Vec<Case<'_>> {
    let mut groups: BTreeMap<String, Vec<(usize, &Row)>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        let Subject { extents, neighbours, region, .. } = &row.subject;
        let key = text(&(series(row), extents, neighbours, region));
        groups.entry(key).or_default().push((number, row));
    }
    let mut groups: Vec<Vec<(usize, &Row)>> = groups.into_values().collect();
    groups.sort_by_key(|rows| {
        let Row { subject, machine, .. } = rows[0].1;
        (subject.stencil.clone(), subject.precision.name(), machine.name.clone(), subject.cells, rows[0].0)
    });
    let mut all: Vec<String> = Vec::new();
    groups.into_iter().map(|rows| case(rows, &mut all)).collect()
}

fn case<'a>(rows: Vec<(usize, &'a Row)>, all: &mut Vec<String>) -> Case<'a> {
    let own = series(rows[0].1);
    let series = all.iter().position(|other| *other == own).unwrap_or_else(|| {
        all.push(own);
        all.len() - 1
    });
    let times = rows.iter().enumerate().filter_map(|(at, (_, row))| Some((row.measured()?.statistics.median_us, at)));
    let fastest = times.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, at)| at);
    Case { rows, fastest, series }
}

/// All that rows have in common whose times depend on nothing but the grid and the kernel. How the file was called, and
/// which numbers are in the fields, make no difference.
fn series(row: &Row) -> String {
    let Subject { source, stencil, precision, parameters, .. } = &row.subject;
    text(&(source, stencil, precision, parameters, &row.machine, row.method.hot))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// What each case is called: stencil, precision and grid, and where these are not enough, what else is different.
pub fn labels(cases: &[Case]) -> Vec<String> {
    let base = |case: &Case| {
        let Subject { stencil, precision, grid, .. } = case.subject();
        format!("{stencil} {} {grid}", precision.name())
    };
    let label = |case: &Case| {
        let own = base(case);
        let alike: Vec<&Case> = cases.iter().filter(|other| base(other) == own).collect();
        let differs = |fact: &str| alike.iter().any(|other| facts(other)[fact] != facts(case)[fact]);
        let parts = FACTS.iter().filter(|fact| differs(fact)).map(|fact| facts(case)[fact].clone());
        std::iter::once(own.clone()).chain(parts).collect::<Vec<_>>().join(", ")
    };
    cases.iter().map(label).collect()
}

/// What cases of one stencil on one grid may differ in, in the order in which it is told.
const FACTS: [&str; 9] =
    ["machine", "driver", "compiler", "version", "parameters", "cache", "source", "neighbours", "region"];

fn facts(case: &Case) -> BTreeMap<&'static str, String> {
    let (subject, machine) = (case.subject(), case.machine());
    let or_none =
        |fact: &Option<String>, what: &str| fact.as_ref().map_or(format!("no {what}"), |fact| format!("{what} {fact}"));
    let name = match machine.device.as_str() {
        "cuda" => machine.name.clone(),
        device => format!("{} ({device})", machine.name),
    };
    let parameters = subject.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let cache = if case.is_hot() { "in the cache" } else { "from memory" };
    BTreeMap::from([
        ("machine", name),
        ("driver", or_none(&machine.driver, "driver")),
        ("compiler", machine.compiler.clone().unwrap_or_else(|| "no compiler".to_owned())),
        ("version", format!("stencilc {}", machine.stencilc)),
        ("parameters", parameters.collect::<Vec<_>>().join(" ")),
        ("cache", cache.to_owned()),
        ("source", format!("text {}", short(&subject.source))),
        ("neighbours", or_none(&subject.neighbours.as_deref().map(short), "neighbours")),
        ("region", format!("computed {}", subject.region)),
    ])
}

fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A row of a kernel that took so many microseconds, with changes to its JSON.
    pub fn row(options: &str, median: f64, changes: &[(&str, Value)]) -> Row {
        let mut row = json!({
            "format": "stencilc bench 1", "key": format!("{options} {changes:?}"), "date": "2026-01-01T00:00:00Z",
            "subject": {
                "file": "laplap", "source": "0123456789abcdef", "stencil": "laplap", "precision": "f64", "grid": "9x6x3",
                "extents": {"ni": 9, "nj": 6, "nk": 3}, "neighbours": null,
                "region": {"i": {"start": 2, "end": 7}, "j": {"start": 2, "end": 4}, "k": {"start": 0, "end": 3}},
                "cells": 30, "parameters": {}, "seed": 0
            },
            "machine": {
                "device": "cuda", "name": "A GPU", "arch": "sm_90", "driver": "13.0", "compiler": "NVRTC 13.0",
                "l2_bytes": 1000, "stencilc": "0.1.0"
            },
            "kernel": {
                "options": options, "choices": null, "plan": null, "compulsory_bytes": 16, "least_bytes": 16.0,
                "table_loads": null, "resources": null, "occupancy": null
            },
            "method": {"runs": 1, "warmups": 1, "hot": false, "verify": true},
            "outcome": {
                "status": "measured", "result": "equal", "sets": 1, "set_bytes": 1, "median_us": median,
                "minimum_us": median, "lower_quartile_us": median, "upper_quartile_us": median, "gb_per_s": 1.0,
                "limit": null, "of_limit": null, "times_us": [median]
            }
        });
        for (pointer, value) in changes {
            *row.pointer_mut(pointer).unwrap() = value.clone();
        }
        serde_json::from_value(row).unwrap()
    }

    fn failed(reason: &str) -> (&'static str, Value) {
        ("/outcome", json!({"status": "failed", "reason": reason}))
    }

    #[test]
    fn what_can_be_compared_is_one_case() {
        let rows = [
            row("a", 3.0, &[]),
            row("b", 2.0, &[("/subject/file", json!("other.stn")), ("/subject/seed", json!(7))]),
            row("c", 1.0, &[failed("wrong")]),
            row("d", 9.0, &[("/subject/precision", json!("f32"))]),
            row("e", 1.0, &[("/method/hot", json!(true))]),
            row("f", 1.0, &[("/machine/driver", json!("12.9"))]),
            row("g", 1.0, &[("/subject/source", json!("fedcba9876543210"))]),
            row(
                "h",
                4.0,
                &[("/subject/extents/nk", json!(4)), ("/subject/grid", json!("9x6x4")), ("/subject/cells", json!(40))],
            ),
        ];
        let cases = of(&rows);
        let of_each: Vec<Vec<usize>> = cases.iter().map(|case| case.rows.iter().map(|(at, _)| *at).collect()).collect();
        assert_eq!(of_each, [vec![3], vec![0, 1, 2], vec![4], vec![5], vec![6], vec![7]]);
        // A row that failed is never the fastest.
        assert_eq!(cases[1].fastest, Some(1));
        // Another grid is another case of the same series.
        assert_eq!(cases[5].series, cases[1].series);
        let mut others: Vec<usize> = cases[..5].iter().map(|case| case.series).collect();
        others.sort();
        others.dedup();
        assert_eq!(others.len(), 5);
    }

    #[test]
    fn labels_say_what_is_different_and_no_more() {
        let rows = [row("a", 1.0, &[]), row("b", 1.0, &[("/subject/precision", json!("f32"))])];
        assert_eq!(labels(&of(&rows)), ["laplap f32 9x6x3", "laplap f64 9x6x3"]);
        let rows = [
            row("a", 1.0, &[]),
            row("b", 1.0, &[("/machine/name", json!("Another")), ("/machine/driver", Value::Null)]),
            row("c", 1.0, &[("/method/hot", json!(true))]),
        ];
        assert_eq!(
            labels(&of(&rows)),
            [
                "laplap f64 9x6x3, A GPU, driver 13.0, from memory",
                "laplap f64 9x6x3, A GPU, driver 13.0, in the cache",
                "laplap f64 9x6x3, Another, no driver, from memory",
            ]
        );
    }

    #[test]
    fn where_all_failed_there_is_no_fastest() {
        let rows = [row("a", 1.0, &[failed("wrong")])];
        assert_eq!(of(&rows)[0].fastest, None);
    }
}
