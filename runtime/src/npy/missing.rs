//! The error of a file that does not exist, with the files there that may have been meant.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use crate::error::Error;

/// The error of a file that does not exist, with the files there that may have been meant.
pub(super) fn missing(path: &Path) -> Error {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        Some(_) | None => Path::new("."),
    };
    let error = Error::input(format!("cannot read `{}`: there is no such file", path.display()));
    let Ok(entries) = fs::read_dir(directory) else {
        return error.help(format!("there is no directory `{}` either", directory.display()));
    };
    let wanted = stem(path);
    let mut names: Vec<(usize, String)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|found| found.extension().is_some_and(|extension| extension == "npy"))
        .map(|found| {
            let likeness = shared(&wanted, &stem(&found));
            let name = directory.join(found.file_name().unwrap_or_default());
            (likeness, format!("`{}`", name.display()))
        })
        .collect();
    names.sort_by_key(|(likeness, name)| (Reverse(*likeness), name.clone()));
    match names.first() {
        None => {
            error.help(format!("there are no .npy files in `{}`; write one with `numpy.save`", directory.display()))
        }
        // Half the letters in place is close enough for a guess.
        Some((likeness, name)) if 2 * likeness > wanted.len() => error.help(format!("did you mean {name}?")),
        Some(_) => {
            let more = if names.len() > 5 { ", ..." } else { "" };
            let shown: Vec<&str> = names.iter().take(5).map(|(_, name)| name.as_str()).collect();
            error.help(format!("what is there: {}{more}", shown.join(", ")))
        }
    }
}

/// The characters of a file's name without its ending, in lower case.
fn stem(path: &Path) -> Vec<char> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.to_lowercase().chars().collect()
}

/// How many characters two names share at their beginnings and ends: one slip between them costs
/// at most the characters that it touches.
fn shared(a: &[char], b: &[char]) -> usize {
    let same = |(a, b): &(&char, &char)| a == b;
    let front = a.iter().zip(b).take_while(same).count();
    let back = a[front..].iter().rev().zip(b[front..].iter().rev()).take_while(same).count();
    front + back
}
