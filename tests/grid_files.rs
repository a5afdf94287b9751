//! Grids in `.npz` files: those that NumPy wrote (`grid_files.py`), those that are wrong, and thousands of damaged ones.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use stencilc_compiler::grid::Adjacency;
use stencilc_runtime::grid::{Quadtree, Refinement, load, save};
use stencilc_runtime::npy;
use stencilc_runtime::{Array, Data, Error};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn numpy_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/grid_files").join(name)
}

/// A .npy file of a type and some bytes.
fn npy_bytes(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(numbers);
    bytes
}

fn whole(numbers: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write(&mut bytes, &Array { shape: vec![numbers.len()], data: Data::I32(numbers.to_vec()) }).unwrap();
    bytes
}

fn archive(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn read(bytes: &[u8]) -> Result<Adjacency, Error> {
    let folder = folder();
    let path = folder.path().join("grid.npz");
    fs::write(&path, bytes).unwrap();
    load(&path)
}

/// Three cells in a row.
fn row() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("left", whole(&[-1, 0, 1])),
        ("right", whole(&[1, 2, -1])),
        ("top", whole(&[-1; 3])),
        ("bottom", whole(&[-1; 3])),
    ]
}

#[test]
fn what_is_written_is_read_and_the_same_every_time() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let quadtree = Quadtree { ni: 7, nj: 5, depth: 3, refinement: Refinement::Noise { seed: 2 } };
    let (grid, _) = quadtree.adjacency("any").unwrap();
    save(&path("a.npz"), &grid).unwrap();
    save(&path("b.npz"), &grid).unwrap();
    assert_eq!(fs::read(path("a.npz")).unwrap(), fs::read(path("b.npz")).unwrap());
    let read = load(&path("a.npz")).unwrap();
    assert_eq!((read.neighbours(), read.centres()), (grid.neighbours(), grid.centres()));
    assert_eq!(read.name.as_told(), path("a.npz").display().to_string());
    // Also where nobody reads it as one.
    assert!(save(&path("no/such.npz"), &grid).is_err());
}

#[test]
fn what_numpy_writes_is_read() {
    // The same grid in each: 3x2 cells in rows; positions in some.
    let expected =
        [vec![-1, 0, 1, -1, 3, 4], vec![1, 2, -1, 4, 5, -1], vec![-1, -1, -1, 0, 1, 2], vec![3, 4, 5, -1, -1, -1]];
    let mut seen = 0;
    for entry in fs::read_dir(numpy_file("")).unwrap() {
        let path = entry.unwrap().path();
        let grid = load(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(grid.neighbours(), &expected, "{}", path.display());
        if let Some([x, y]) = grid.centres() {
            assert_eq!((x.as_slice(), y.as_slice()), (&[0., 1., 2., 0., 1., 2.][..], &[0., 0., 0., 1., 1., 1.][..]));
            seen += 1;
        }
        seen += 1;
    }
    assert!(seen >= 8, "only {seen} files and positions");
}

#[test]
fn what_is_no_grid_is_refused() {
    let with = |name: &'static str, bytes: Vec<u8>| {
        let mut entries: Vec<(&str, Vec<u8>)> = row().into_iter().filter(|(own, _)| *own != name).collect();
        entries.push((name, bytes));
        let error = read(&archive(&entries)).unwrap_err();
        format!("{}; {}", error.message, error.help.unwrap_or_default())
    };
    let check = |found: String, parts: &[&str]| {
        parts.iter().for_each(|part| assert!(found.contains(part), "{found}"));
    };
    check(with("top", npy_bytes("<f8", "(3,)", &[0; 24])), &["`top`", "type `<f8`", "array.astype('int32')"]);
    check(with("top", npy_bytes("<i4", "(3, 1)", &[0; 12])), &["`top` has the shape (3, 1)", "`top.ravel()`"]);
    check(with("top", npy_bytes("<i4", "()", &[0; 4])), &["the shape ()", "one number a cell"]);
    check(with("top", whole(&[0, 1])), &["3 cells by its `left`, and 2 by its `top`"]);
    check(with("top", whole(&[0, 1, 3])), &["`top` of cell 2 is 3", "from 0 to 2"]);
    check(with("top", whole(&[0, 1, -2])), &["is -2", "-1 says"]);
    check(with("top", npy_bytes("<i8", "(3,)", &[0x7f; 24])), &["`top` holds", "numbered from 0 to 2"]);
    check(with("top", npy_bytes("<u8", "(3,)", &[0xfe; 24])), &["`top`", "18374403900871474942"]);
    check(with("top", npy_bytes("<i4", "(3,)", &[0; 8])), &["`top`", "cut short"]);
    check(with("top", b"no array".to_vec()), &["`top`", "not a .npy file"]);
    check(with("x", whole(&[0, 1, 2])), &["holds no array `y`", "both"]);
    let mut named = row();
    named[3].0 = "botom";
    let error = read(&archive(&named)).unwrap_err();
    assert!(error.message.contains("no array `bottom`") && error.help.unwrap().contains("is it `botom`?"));
    let others = read(&archive(&[("phi", whole(&[1]))])).unwrap_err();
    assert!(others.help.unwrap().contains("it holds phi; a grid has `left`"));
    assert!(read(b"").unwrap_err().message.contains("no archive as .npz files are"));
    assert!(read(&whole(&[1])).unwrap_err().help.unwrap().contains("numpy.savez"));
    let empty = ["left", "right", "top", "bottom"].map(|name| (name, whole(&[])));
    assert!(read(&archive(&empty)).unwrap_err().message.contains("has 0 cells"));
    assert!(load(Path::new("no_such.npz")).unwrap_err().message.contains("no file `no_such.npz`"));
    assert!(load(Path::new("/dev/null")).unwrap_err().message.contains("a device or a pipe"));
}

#[test]
fn the_largest_number_of_an_unsigned_type_is_none_unless_a_cell_has_it() {
    let bytes = |numbers: &[u8]| npy_bytes("|u1", &format!("({},)", numbers.len()), numbers);
    let lists = |numbers: &[u8]| ["left", "right", "top", "bottom"].map(|name| (name, bytes(numbers)));
    assert_eq!(read(&archive(&lists(&[255, 0]))).unwrap().neighbours()[0], [-1, 0]);
    let many = read(&archive(&lists(&[255; 300]))).unwrap();
    assert_eq!(many.neighbours()[0], [255; 300]);
}

#[test]
fn damaged_files_are_answered() {
    let folder = folder();
    let path = folder.path().join("grid.npz");
    let quadtree = Quadtree { ni: 3, nj: 3, depth: 2, refinement: Refinement::Circle };
    let (grid, _) = quadtree.adjacency("any").unwrap();
    save(&path, &grid).unwrap();
    let packed = fs::read(&path).unwrap();
    let plain = archive(&row());
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |n: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        ((state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n as u64) as usize
    };
    let (mut refused, mut same) = (0, 0);
    for round in 0..6000 {
        let whole = if round % 2 == 0 { &packed } else { &plain };
        let mut bytes = whole.clone();
        match random(4) {
            0 => bytes.truncate(random(bytes.len())),
            1 => {
                let (from, len) = (random(bytes.len()), random(40));
                bytes.drain(from..(from + len).min(whole.len()));
            }
            _ => {
                for _ in 0..=random(3) {
                    let at = random(bytes.len());
                    bytes[at] = [0, 1, 0x7f, 0xff, random(256) as u8][random(5)];
                }
            }
        }
        fs::write(&path, &bytes).unwrap();
        match load(&path) {
            Err(error) => {
                refused += 1;
                assert!(error.message.contains("cannot read `") && error.message.len() < 600, "{error}");
            }
            // What the checksums and the tables do not cover: times, attributes, what nobody looks at.
            Ok(read) => {
                let lists = if round % 2 == 0 { grid.neighbours().clone() } else { load_row() };
                assert_eq!(read.neighbours(), &lists, "a damaged file is read as another grid");
                same += 1;
            }
        }
    }
    assert!(refused > 3000 && same > 0, "{refused} refused, {same} the same");
}

fn load_row() -> [Vec<i32>; 4] {
    [vec![-1, 0, 1], vec![1, 2, -1], vec![-1; 3], vec![-1; 3]]
}
