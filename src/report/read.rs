//! The rows of files.

use crate::terminal;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use stencilc_compiler::text::ShellWord;
use stencilc_runtime::bench::rows::{self, Row};
use stencilc_runtime::{Error, Result, files};

/// What files hold.
pub struct Found {
    /// Their rows, each once.
    pub rows: Vec<Row>,
    /// The files, as they were named.
    pub files: Vec<String>,
    /// What there is to say about them.
    pub notes: Vec<String>,
}

/// Reads files of rows. Of several rows of one kernel, measured in the same way, the last one counts.
///
/// # Errors
/// A file cannot be read or holds something else; there are no rows.
pub fn read(files: &[PathBuf]) -> Result<Found> {
    let mut found = Found { rows: Vec::new(), files: Vec::new(), notes: Vec::new() };
    let mut places = BTreeMap::new();
    let mut repeated = 0;
    for path in files {
        let shown = path.display().to_string();
        let (rows, dropped) = rows_of(&bytes(path, &shown)?, &shown)?;
        if dropped > 0 {
            found.notes.push(format!("the last row of `{shown}` was not written whole, and is left out"));
        }
        if rows.is_empty() {
            found.notes.push(format!("`{shown}` holds no rows"));
        }
        for row in rows {
            match places.get(&row.key) {
                Some(&place) => {
                    repeated += 1;
                    let before: &mut Row = &mut found.rows[place];
                    if row.date >= before.date {
                        *before = row;
                    }
                }
                None => {
                    places.insert(row.key.clone(), found.rows.len());
                    found.rows.push(row);
                }
            }
        }
        found.files.push(shown);
    }
    if found.rows.is_empty() {
        return Err(Error::input(format!("there is nothing to show: {}", no_rows(&found.files)))
            .help("measure something: stencilc bench laplap -o rows.jsonl"));
    }
    if repeated > 0 {
        let rows = terminal::count(repeated, "row");
        found.notes.push(format!("{rows} stood there more than once: the last one of each counts"));
    }
    Ok(found)
}

fn no_rows(files: &[String]) -> String {
    match files {
        [one] => format!("`{one}` holds no rows"),
        several => format!("none of the {} files holds a row", several.len()),
    }
}

/// Bytes that a file of rows has at most.
const MOST: u64 = 1 << 30;

fn bytes(path: &Path, shown: &str) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| {
        let help = "name a file that `stencilc bench -o` wrote";
        match error.kind() {
            ErrorKind::NotFound => Error::input(format!("there is no file `{shown}`")).help(help),
            ErrorKind::InvalidInput => Error::input(format!("`{shown}` is no file of rows: {error}"))
                .help("name a file that `stencilc bench -o` wrote; what comes through a pipe is read from /dev/stdin"),
            _ => Error::input(format!("cannot read `{shown}`: {error}")),
        }
    };
    if path.is_dir() {
        let folder = shown.trim_end_matches('/');
        return Err(Error::input(format!("`{shown}` is a directory, not a file of rows"))
            .help(format!("name files in it, one or several: {}/*.jsonl", ShellWord::path(folder))));
    }
    let file = files::open_given(path).map_err(failed)?;
    files::reads(files::Kind::Rows, path)?;
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > MOST {
        true => Err(Error::input(format!("`{shown}` has more than {} MiB", MOST >> 20))
            .help("give the rows to show alone: `grep laplap rows.jsonl > some.jsonl`")),
        false => Ok(bytes),
    }
}

/// The rows of one file, and how many bytes behind them are of one that was not written whole.
fn rows_of(bytes: &[u8], shown: &str) -> Result<(Vec<Row>, usize)> {
    rows::read(bytes).map_err(|error| Error { message: format!("`{shown}` {}", error.message), ..error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_rows_is_told_by_its_line() {
        let message = |bytes: &[u8]| rows_of(bytes, "a.jsonl").unwrap_err().message;
        assert!(message(b"name,time\n1,2\n").starts_with("`a.jsonl` cannot be shown: line 1 is no row of results"));
        assert!(message(b"\x89PNG").starts_with("`a.jsonl` cannot be shown: line 1"));
        assert!(message(b"{\"format\":\"stencilc bench 1\"}\n").contains("line 1 is no row of results (missing field"));
        assert_eq!(rows_of(b"", "a.jsonl").unwrap(), (Vec::new(), 0));
        assert_eq!(rows_of(b"{\"format\":\"stencilc be", "a.jsonl").unwrap(), (Vec::new(), 22));
        assert_eq!(rows_of(b"{\n\"cases\": []\n}\n", "a.jsonl").unwrap(), (Vec::new(), 0));
    }
}
