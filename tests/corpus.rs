//! What the fuzzers found interesting, or once found wrong, goes through the same functions again: `fuzz/README.md`.

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use zip::ZipArchive;

/// Takes every file of a folder of the corpus, of which there are so many at least.
fn replay(folder: &str, least: usize, take: fn(&[u8])) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus.zip");
    let mut corpus = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let names = corpus.file_names().map(|name| name.unwrap().into_owned());
    let is_own = |name: &String| name.starts_with(&format!("corpus/{folder}/")) && !name.ends_with('/');
    let mut files: Vec<String> = names.filter(is_own).collect();
    files.sort();
    assert!(files.len() >= least, "{folder}: {} files", files.len());
    for file in files {
        let mut bytes = Vec::new();
        corpus.by_name(&file).unwrap().read_to_end(&mut bytes).unwrap();
        // A failure names its file in what is printed before.
        println!("{file}");
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
