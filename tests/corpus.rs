//! What the fuzzers found interesting, or once found wrong, goes through the same functions again: `fuzz/README.md`.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;

/// Takes every file of a folder of the corpus, of which there are so many at least.
fn replay(folder: &str, least: usize, take: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(folder);
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= least, "the corpus is not there: {}", folder.display());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        // A failure names its file in what is printed before.
        println!("{}", file.display());
        take(&bytes);
    }
}

#[test]
fn every_text_is_answered() {
    replay("language", 50, fuzz::language);
}

#[test]
fn every_array_is_read_or_refused() {
    replay("npy", 50, fuzz::npy);
}

#[test]
fn every_grid_is_read_or_refused() {
    replay("grid", 5, fuzz::grid);
}

#[test]
fn every_mesh_is_read_or_refused() {
    replay("mesh", 9, fuzz::mesh);
}

#[test]
fn every_checkpoint_is_read_or_refused() {
    replay("checkpoint", 3, fuzz::checkpoint);
}

#[test]
fn whatever_was_tuned_is_read_or_refused() {
    replay("tuned", 5, fuzz::tuned);
}

#[test]
fn every_entry_of_the_cache_is_read_or_refused() {
    replay("cache", 3, fuzz::cache);
}

#[test]
fn all_rows_are_read_or_refused() {
    replay("rows", 5, fuzz::rows);
}
