//! Some tens of damaged files of every kind that the program reads, each given to the real program with little memory: it ends by
//! itself with a status of its own, says why in characters that a terminal shows, and writes nothing but what was named.
#![cfg(target_os = "linux")]

mod imports;
mod texts;

use crate::common::process::{self, PROGRAM};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;
use stencilc_runtime::emulate::Compiler;
use stencilc_testing::attack::files::{Attack, EMULATED, FILE, GIVEN, MADE, Original, WRITTEN, originals};
use stencilc_testing::attack::hostile::unseen;
use stencilc_testing::attack::texts as hostile_texts;

/// How many files there are.
const FILES: u64 = 60;

/// So many failures are shown.
const SHOWN: usize = 20;

/// Names a number of files, and the seed of the first.
const VARIABLE: &str = "STENCILC_DAMAGED_FILES";

/// KiB of addresses that a call has: so few that files of some hundred KB can ask for more.
const MEMORY: u32 = 1 << 20;

/// Seconds after which a call is one that does not end.
const PATIENCE: u64 = 600;

/// What a panic, an abort or a failed allocation says.
const PANICS: &[&str] =
    &["panicked", "RUST_BACKTRACE", "stack overflow", "overflowed its stack", "memory allocation of", "internal error"];

/// A call in a folder, with its own home and its own folder for what is temporary.
fn call<'a>(folder: &Path, arguments: impl Iterator<Item = &'a str>) -> Output {
    let temporary = folder.join("temporary");
    fs::create_dir_all(&temporary).unwrap();
    GIVEN.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    let mut command = process::shell(folder, PATIENCE, &format!("ulimit -v {MEMORY}; exec \"$@\""));
    command
        .arg(PROGRAM)
        .args(arguments)
        .env("TMPDIR", &temporary)
        // Threads take addresses, too, and processors are many or few.
        .env("RAYON_NUM_THREADS", "2")
        .env("MALLOC_ARENA_MAX", "2")
        // As on a terminal.
        .env("CLICOLOR_FORCE", "1")
        .env_remove("STENCILC_CACHE")
        .env_remove("STENCILC_TUNED")
        .env_remove("RUST_BACKTRACE");
    command.output().unwrap()
}

/// The files in a folder, and what they hold.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() && !path.is_symlink() {
                true => left.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                    found.insert(name, fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

/// The files that are damaged afterwards, made once.
fn made() -> &'static [Original] {
    static MADE: OnceLock<Vec<Original>> = OnceLock::new();
    MADE.get_or_init(make)
}

fn make() -> Vec<Original> {
    let folder = tempfile::tempdir().unwrap();
    for (line, _) in MADE {
        let output = call(folder.path(), line.split(' '));
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let cached = Compiler::find().ok().and_then(|_| {
        let output = call(folder.path(), EMULATED.split(' '));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        files(folder.path()).into_iter().find(|(name, _)| name.starts_with("home/kernels/"))
    });
    let texts: Vec<String> = hostile_texts::originals().into_iter().step_by(5).collect();
    originals(&|name| fs::read(folder.path().join(name)).unwrap(), cached, &texts).unwrap()
}

/// The status with which an attack ends.
fn status(attack: &Attack) -> Result<i32, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&attack.path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &attack.bytes).unwrap();
    let output = call(folder.path(), attack.arguments.iter().map(String::as_str));
    let said = [("stdout", &output.stdout), ("stderr", &output.stderr)];
    let Some(status) = output.status.code().filter(|status| (0..=3).contains(status)) else {
        return Err(format!("it ends with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    };
    for (stream, bytes) in said {
        let text = String::from_utf8_lossy(bytes);
        if let Some(panic) = PANICS.iter().find(|panic| text.contains(**panic)) {
            return Err(format!("{stream} has \"{panic}\": {text}"));
        }
        if let Some(unseen) = unseen(&text) {
            return Err(format!("{stream} has the character U+{:04X}: {text}", u32::from(unseen)));
        }
    }
    for (name, bytes) in files(folder.path()) {
        let is_named = WRITTEN.iter().any(|own| name == *own || name.starts_with(&format!("{own}/")));
        let is_own = name == attack.path;
        let is_given = GIVEN.iter().any(|(given, text)| name == *given && bytes == text.as_bytes());
        let writes_own = attack.arguments.windows(2).any(|pair| pair[0] == "-o" && pair[1] == attack.path);
        if is_own && bytes != attack.bytes && !writes_own && !is_named {
            return Err("it changes what it reads".to_owned());
        }
        if !is_own && !is_named && !is_given {
            return Err(format!("it writes {name:?}"));
        }
    }
    Ok(status)
}

#[test]
fn no_file_does_harm() {
    let given = std::env::var(VARIABLE).unwrap_or_default();
    let mut given = given.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    let (count, first) = (given.next().unwrap_or(FILES), given.next().unwrap_or(0));
    let originals = made();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files");
    fs::create_dir_all(&folder).unwrap();
    let one = |seed: u64| {
        let attack = Attack::new(originals, seed);
        status(&attack).map_err(|why| {
            fs::write(folder.join(seed.to_string()), &attack.bytes).unwrap();
            let line = attack.arguments.join(" ");
            format!("seed {seed}, {}: stencilc {line:?}: {}", attack.kind, why.escape_debug())
        })
    };
    let all: Vec<Result<i32, String>> = (first..first + count).into_par_iter().map(one).collect();
    let done = all.iter().filter(|ended| **ended == Ok(0)).count();
    let failed: Vec<String> = all.into_iter().filter_map(Result::err).collect();
    let refused = count as usize - done - failed.len();
    println!("{done} of {count} accepted, {refused} refused, {} failed", failed.len());
    if !failed.is_empty() {
        fs::write(folder.join("failed.txt"), failed.join("\n")).unwrap();
    }
    assert!(
        failed.is_empty(),
        "{} failed; their files are in {}, and {VARIABLE}=1,SEED repeats one:\n{}",
        failed.len(),
        folder.display(),
        failed[..failed.len().min(SHOWN)].join("\n")
    );
    // Enough of both, or the attack shows nothing.
    assert!(
        count < FILES || (done > count as usize / 10 && refused > count as usize / 4),
        "{done} done, {refused} refused"
    );
}

#[test]
fn what_is_not_damaged_is_read() {
    for original in made() {
        let Original { kind, ending, .. } = original;
        let path = original.place.clone().unwrap_or(format!("a.{ending}"));
        let line = original.calls[0];
        let arguments = line.split(' ').map(|word| word.replace(FILE, &path)).collect();
        let attack = Attack { kind, path, bytes: original.bytes.clone(), arguments };
        assert_eq!(status(&attack), Ok(0), "{}: {line}", original.kind);
    }
}
