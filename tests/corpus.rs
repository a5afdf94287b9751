//! What the fuzzers found interesting, or once found wrong, goes through the same functions again: `fuzz/README.md`.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;
use std::time::{Duration, Instant};

/// Far more than any file of the corpus takes, and less than a reader who waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Takes every file of a folder of the corpus.
fn replay(folder: &str, take: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(folder);
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 50, "the corpus is not there: {}", folder.display());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let start = Instant::now();
        // A failure names its file in what is printed before.
        println!("{}", file.display());
        take(&bytes);
        assert!(start.elapsed() < PATIENCE, "{} takes {:?}", file.display(), start.elapsed());
    }
}

#[test]
fn every_text_is_answered() {
    replay("language", fuzz::language);
}

#[test]
fn every_array_is_read_or_refused() {
    replay("npy", fuzz::npy);
}
