//! Archives of arrays, taken apart and put together, and their own sizes forged.

use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// What each entry of a directory at the end begins with, and each entry itself.
const SIGNATURES: [&[u8]; 2] = [b"PK\x01\x02", b"PK\x03\x04"];

/// Where these say how long an entry is, packed and unpacked.
const SIZES: [[usize; 2]; 2] = [[20, 24], [18, 22]];

/// The entries of an archive with their names, if it is one.
pub fn entries(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let mut all = Vec::new();
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number).ok()?;
        let name = entry.name().ok()?.into_owned();
        let mut own = Vec::new();
        entry.read_to_end(&mut own).ok()?;
        all.push((name, own));
    }
    Some(all)
}

/// An archive of entries, packed or as they are. Names that no archive can have twice are left out.
pub fn archive(entries: &[(String, Vec<u8>)], is_packed: bool) -> Vec<u8> {
    let method = if is_packed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = SimpleFileOptions::default().compression_method(method);
        if archive.start_file(name.as_str(), options).is_ok() {
            archive.write_all(bytes).expect("there is memory");
        }
    }
    archive.finish().expect("there is memory").into_inner()
}

/// Says of some entry that it has so many bytes: in its own head and in the directory, or in one of them.
pub fn forge(bytes: &mut [u8], entry: usize, size: u32, heads: [bool; 2], is_unpacked: bool) {
    for ((signature, sizes), is_wanted) in SIGNATURES.iter().zip(SIZES).zip(heads) {
        let places: Vec<usize> =
            (0..bytes.len()).filter(|&at| bytes[at..].starts_with(signature) && at + 28 <= bytes.len()).collect();
        if let Some(&at) = places.get(entry % places.len().max(1)).filter(|_| is_wanted) {
            let at = at + sizes[usize::from(is_unpacked)];
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_comes_apart() {
        let own = vec![("a.npy".to_owned(), b"one".to_vec()), ("b".to_owned(), vec![0; 5000])];
        for is_packed in [false, true] {
            assert_eq!(entries(&archive(&own, is_packed)).unwrap(), own);
        }
        let mut forged = archive(&own, true);
        forge(&mut forged, 1, 4_000_000_000, [true, true], true);
        let mut archive = ZipArchive::new(Cursor::new(forged)).unwrap();
        assert_eq!(archive.by_index(1).unwrap().size(), 4_000_000_000);
    }
}
