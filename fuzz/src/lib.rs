//! What the fuzzers do with their bytes. `tests/corpus.rs` replays the corpus through the same functions.
//!
//! Whatever the bytes are, they are accepted or refused, without a panic. What is accepted has to hold what the reader
//! promises, and is the same when it is written and read again.

use std::collections::BTreeMap;
use std::io::Cursor;
use stencilc_compiler::check;
use stencilc_compiler::grid::adjacency::DIRECTIONS;
use stencilc_compiler::grid::{Form, Grid};
use stencilc_compiler::source::Source;
use stencilc_runtime::bench::log;
use stencilc_runtime::bench::rows::{self, Row};
use stencilc_runtime::checkpoint::{self, Checkpoint};
use stencilc_runtime::driver::Driver;
use stencilc_runtime::mesh::{self, HOLE, MOST};
use stencilc_runtime::problem::Request;
use stencilc_runtime::program::ProgramProblem;
use stencilc_runtime::program::cpu::Interpreter;
use stencilc_runtime::tune::database::Content;
use stencilc_runtime::{Array, Cast, Drawing, cache, grid, npy};
use stencilc_testing::attack::files::OWN;
use stencilc_testing::attack::through::take;

/// Archives and arrays of more bytes are refused unread: what DEFLATE makes of few is enough to run out of memory, which the
/// fuzzer takes for a fault.
const LARGE: usize = 1 << 22;

/// The key under which entries of the cache are written here.
const KEY: [u8; 32] = [7; 32];

/// Takes bytes for the text of a stencil file, and everything that it holds as far as CUDA. Every text is accepted or
/// refused; nothing here may panic or take long. The choices are the same for the same text.
pub fn language(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let number = bytes.iter().fold(0, |sum: u64, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    take("fuzz.stn", text, number).expect("what is told and what is made is as it should be");
}

/// Takes bytes for a `.npy` file. What is accepted has as many numbers as its shape says, and comes back the same from a
/// file that is written of it.
pub fn npy(bytes: &[u8]) {
    let Ok(array) = npy::read(&mut &bytes[..], bytes.len() as u64) else { return };
    assert_eq!(array.shape.iter().product::<usize>(), array.data.len());
    let mut written = Vec::new();
    npy::write(&mut written, &array).expect("what was read can be written");
    let again = npy::read(&mut &written[..], written.len() as u64).expect("what was written can be read");
    same(&array, &again);
}

/// That two arrays are the same to the last bit.
fn same(array: &Array, again: &Array) {
    assert_eq!(again.shape, array.shape);
    assert_eq!(again.data.element(), array.data.element());
    assert!((0..array.data.len()).all(|index| again.data.bits(index) == array.data.bits(index)));
}

/// Whether an archive says that it becomes large.
fn is_large(bytes: &[u8]) -> bool {
    let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else { return false };
    let sizes = (0..archive.len()).map(|number| archive.by_index_raw(number).map_or(0, |entry| entry.size()));
    sizes.fold(0, u64::saturating_add) > LARGE as u64
}

/// Takes bytes for the file of a grid. All cells have neighbours that there are, and a place if any has one.
pub fn grid(bytes: &[u8]) {
    if is_large(bytes) {
        return;
    }
    let Ok(read) = grid::read(Cursor::new(bytes), "fuzz.npz") else { return };
    let cells = read.cells();
    assert!(cells > 0);
    for list in read.neighbours() {
        assert_eq!(list.len(), cells);
        assert!(list.iter().all(|&other| other == -1 || usize::try_from(other).is_ok_and(|other| other < cells)));
    }
    for (_, step) in DIRECTIONS {
        assert!((0..cells).all(|cell| read.step(cell, step).is_none_or(|other| other < cells)));
    }
    assert!(read.centres().is_none_or(|[x, y]| x.len() == cells && y.len() == cells));
    let mut written = Vec::new();
    grid::write(&mut written, &read).expect("what was read can be written");
    let again = grid::read(Cursor::new(&written), "fuzz.npz").expect("what was written can be read");
    assert_eq!(again.neighbours(), read.neighbours());
    assert_eq!(again.positions(), read.positions());
}

/// Takes bytes for the file of a mesh: NumPy's, Gmsh's, or the text of OP2's airfoil. Maps lead to elements that there are, tables
/// and fields are as long as their sets, and a mesh comes back the same from the file that is written of it.
pub fn mesh(bytes: &[u8]) {
    if is_large(bytes) {
        return;
    }
    let Ok(read) = mesh::read(Cursor::new(bytes), "dat") else { return };
    assert!(read.sets.iter().all(|set| set.size <= MOST));
    for map in &read.maps {
        let (from, to) = (&read.sets[map.from], &read.sets[map.to]);
        assert_eq!(map.table.len(), from.size * map.arity);
        assert!(map.table.iter().all(|&n| n == HOLE || usize::try_from(n).is_ok_and(|n| n < to.size)));
    }
    for field in &read.fields {
        let slots = field.map.map_or(1, |map| read.maps[map].arity);
        assert_eq!(field.data.len(), read.sets[field.set].size * slots * field.parts);
    }
    let mut written = Vec::new();
    mesh::write(&read, &mut written).expect("what was read can be written");
    let again = mesh::read(Cursor::new(&written), "npz").expect("what was written can be read");
    // In a file of arrays, sets stand before maps, and maps before fields.
    assert_eq!(again.sets, read.sets);
    assert_eq!(again.maps, read.maps);
    assert_eq!(again.fields.len(), read.fields.len());
    for (again, own) in again.fields.iter().zip(&read.fields) {
        assert_eq!((&again.name, again.set, again.map, again.parts), (&own.name, own.set, own.map, own.parts));
        let (again, own) = (&again.data, &own.data);
        assert_eq!((again.element(), again.len()), (own.element(), own.len()));
        assert!((0..own.len()).all(|index| again.bits(index) == own.bits(index)));
    }
}

/// Programs of which there may be checkpoints.
const PROGRAMS: &[&str] = &[
    include_str!("../../stencils/diffusion4.stn"),
    include_str!("../../stencils/gray_scott.stn"),
    include_str!("../../stencils/shallow_water.stn"),
    OWN,
];

/// Cells beyond which nothing is computed here.
const CELLS: usize = 4096;

/// Takes bytes for a checkpoint, which comes back the same from the file that is written of it. The program that it is of goes on
/// from it, or refuses it.
pub fn checkpoint(bytes: &[u8]) {
    if is_large(bytes) {
        return;
    }
    let Ok(read) = checkpoint::read(Cursor::new(bytes)) else { return };
    for array in read.arrays().values() {
        assert_eq!(array.shape.iter().product::<usize>(), array.data.len());
    }
    let mut written = Vec::new();
    read.write(&mut written).expect("what was read can be written");
    let again = checkpoint::read(Cursor::new(&written)).expect("what was written can be read");
    assert_eq!(again.about, read.about);
    assert!(again.arrays().keys().eq(read.arrays().keys()));
    again.arrays().iter().zip(read.arrays()).for_each(|((_, again), (_, own))| same(own, again));
    goes_on(&read);
}

/// Lets the program of a checkpoint go on for a few steps, whatever its text was.
fn goes_on(read: &Checkpoint) {
    let about = &read.about;
    let texts = PROGRAMS.iter().map(|text| check(&Source::new("fuzz.stn", *text)));
    let Some(program) = texts.flat_map(|text| text.programs).find(|program| program.name == about.program) else {
        return;
    };
    let Some(Grid { ni, nj, nk, form }) = about.grid else { return };
    let cells = ni.checked_mul(nj).and_then(|columns| columns.checked_mul(nk));
    if form != Form::Rows || cells.is_none_or(|cells| cells > CELLS) {
        return;
    }
    let facade = program.facade();
    let request = Request {
        stencil: &facade,
        precision: about.precision,
        contract: about.contract,
        grid: about.grid,
        adjacency: None,
        arrays: BTreeMap::new(),
        settings: BTreeMap::from([("steps".to_owned(), about.position.time.clamp(1, 4).to_string())]),
        seed: 0,
        cast: Cast::Exact,
        drawing: Drawing::Inputs,
    };
    let Ok(problem) = ProgramProblem::new(&program, request) else { return };
    let backend = Interpreter::new(problem.clone());
    let mut driver = Driver::new(&backend);
    if read.restore(&mut driver).is_ok() {
        driver.finish().expect("what fits can go on");
    }
}

/// Takes bytes for a file of what was tuned, which comes back the same from the text that is kept of it.
pub fn tuned(bytes: &[u8]) {
    let Ok(read) = Content::read(bytes) else { return };
    let text = read.text().expect("what was read can be written");
    assert_eq!(Content::read(text.as_bytes()).expect("what was written can be read"), read);
}

/// Takes bytes for an entry of the cache, and for what an entry holds behind its checksum, which no fuzzer guesses.
pub fn cache(bytes: &[u8]) {
    for entry in [bytes.to_vec(), cache::sealed(bytes, &KEY)] {
        let Some(read) = cache::decode(&entry, &KEY) else { continue };
        let written = cache::encode(&read, &KEY).expect("what was read can be written");
        assert_eq!(cache::decode(&written, &KEY).as_ref(), Some(&read));
        let mut other = KEY;
        other[0] ^= 1;
        assert_eq!(cache::decode(&written, &other), None);
    }
}

/// Takes bytes for a file of rows, of which `report` makes a page; they come back the same from lines that are written of them, and
/// fit a table.
pub fn rows(bytes: &[u8]) {
    let Ok((read, dropped)) = rows::read(bytes) else { return };
    assert!(dropped <= bytes.len());
    let line = |row: &Row| serde_json::to_string(row).expect("what was read can be written") + "\n";
    let written: String = read.iter().map(line).collect();
    assert_eq!(log::parse::<Row>(written.as_bytes()), Ok((read.clone(), 0)));
    let mut table = Vec::new();
    rows::csv(&read, &mut table).expect("rows make a table");
}
