//! What Nsight Compute writes: a table of comma-separated values, a line a kernel, among messages.

use super::metrics::{Counter, Counters, METRICS};
use crate::error::{Error, Result};

/// How the table begins; messages may stand before it.
const BEGINNING: &str = "\"ID\",";

/// How messages begin that say why something is not there.
const ERROR: &str = "==ERROR==";

/// The column of kernels' names.
const KERNEL: &str = "Kernel Name";

/// The lines of errors.
pub fn errors(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.trim().strip_prefix(ERROR)).map(str::trim).collect()
}

/// The counters of the first line that is about a kernel of this name; nothing if there is no table, or no such line.
///
/// # Errors
/// The table is not as this program knows it.
pub fn counters(written: &str, kernel: &str) -> Result<Option<Counters>> {
    let Some(begin) = table(written) else { return Ok(None) };
    let other = |what: String| {
        Error::input(format!("Nsight Compute has written something else than was expected: {what}"))
            .help("another version may do: --ncu PATH names it")
    };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&written.as_bytes()[begin..]);
    let titles = reader.headers().map_err(|error| other(error.to_string()))?.clone();
    let column = |title: &str| titles.iter().position(|own| own == title);
    let name = column(KERNEL).ok_or_else(|| other(format!("there is no column `{KERNEL}`")))?;
    let mut units = None;
    for record in reader.records() {
        let record = record.map_err(|error| other(error.to_string()))?;
        let Some(units) = &units else {
            units = Some(record);
            continue;
        };
        // With its parameters behind it, or alone.
        let named = record.get(name).unwrap_or_default().split('(').next().unwrap_or_default().trim();
        if named != kernel {
            continue;
        }
        let mut counters = Counters::new();
        for metric in METRICS {
            let cell = |record: &csv::StringRecord| {
                let cell = column(metric.ncu).and_then(|column| record.get(column)).map(str::trim);
                cell.unwrap_or_default().to_owned()
            };
            let value = match number(&cell(&record)) {
                Some(number) => {
                    let unit = cell(units);
                    let unknown = || other(format!("`{}` in `{unit}`", metric.ncu));
                    Some(number * metric.unit.factor(&unit).ok_or_else(unknown)?)
                }
                None => None,
            };
            counters.insert(metric.name.to_owned(), Counter { unit: metric.unit, value });
        }
        return Ok(Some(counters));
    }
    Ok(None)
}

/// Where the table begins.
fn table(written: &str) -> Option<usize> {
    if written.starts_with(BEGINNING) { Some(0) } else { Some(written.find(&format!("\n{BEGINNING}"))? + 1) }
}

/// A number, in which every three digits may be set apart; nothing of `n/a`, `nan` and the like.
fn number(cell: &str) -> Option<f64> {
    cell.replace(',', "").parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::metrics::Unit;

    const FRONT: &str = "\"ID\",\"Process ID\",\"Kernel Name\"";

    #[test]
    fn numbers_come_in_their_units() {
        let written = format!(
            "==PROF== Connected to process 7 (/x/stencilc)\n{FRONT},\"dram__bytes_read.sum\",\"gpu__time_duration.sum\",\
             \"l1tex__t_sector_hit_rate.pct\",\"lts__t_sector_hit_rate.pct\"\n\"\",\"\",\"\",\"Mbyte\",\"usecond\",\"%\",\"%\"\n\
             \"0\",\"7\",\"copy\",\"1\",\"1\",\"1\",\"1\"\n\
             \"1\",\"7\",\"laplap_kernel(const double *, double *)\",\"1,234.5\",\"69.25\",\"n/a\",\"nan\"\n"
        );
        let counters = counters(&written, "laplap_kernel").unwrap().unwrap();
        assert_eq!(counters.len(), METRICS.len());
        assert_eq!(counters["dram_read"], Counter { unit: Unit::Bytes, value: Some(1_234_500_000.0) });
        assert_eq!(counters["duration"], Counter { unit: Unit::Nanoseconds, value: Some(69_250.0) });
        for absent in ["l1_hits", "l2_hits", "occupancy"] {
            assert_eq!(counters[absent].value, None, "{absent}");
        }
    }

    #[test]
    fn what_is_no_table_is_told() {
        for nothing in ["", "==WARNING== No kernels were profiled.\n", FRONT, &format!("{FRONT}\n\"\",\"\",\"\"\n")] {
            assert!(counters(nothing, "k").unwrap().is_none(), "{nothing}");
        }
        let other = format!("{FRONT}\n\"\",\"\",\"\"\n\"0\",\"7\",\"l\"\n");
        assert!(counters(&other, "k").unwrap().is_none());
        let unit = format!("{FRONT},\"dram__bytes_read.sum\"\n,,,furlong\n0,7,k,1\n");
        assert!(counters(&unit, "k").unwrap_err().message.contains("`dram__bytes_read.sum` in `furlong`"));
        assert!(counters("\"ID\",\"Metric Name\"\n", "k").unwrap_err().message.contains("Kernel Name"));
        // A line that was cut off lacks its last counters.
        let short = format!("{FRONT},\"dram__bytes_read.sum\"\n,,,byte\n0,7,k\n");
        assert_eq!(counters(&short, "k").unwrap().unwrap()["dram_read"].value, None);
        assert_eq!(errors("a\n==ERROR== b c\n ==ERROR==d\n"), ["b c", "d"]);
    }
}
