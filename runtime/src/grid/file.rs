//! Grids in NumPy's `.npz` files: an archive of the arrays `left`, `right`, `top` and `bottom`, and perhaps `x` and `y`.

use crate::array::{Array, Data};
use crate::error::{Error, Result};
use crate::files;
use crate::npy::{self, Whole};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::path::Path;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::grid::adjacency::{DIRECTIONS, MOST};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// The arrays of positions.
const POSITIONS: [&str; 2] = ["x", "y"];

/// The most entries of an archive: each costs memory before it is looked at.
const ENTRIES: usize = 1000;

/// No entry becomes more than so many times as long when it is unpacked: what DEFLATE can do at best.
const DENSEST: u64 = 1032;

/// Reads the grid in the file at `path`; the grid is called by that name.
///
/// # Errors
/// There is no such file, or it is damaged; an array is missing, has another length than the others, or holds what is no
/// cell's number.
pub fn load(path: &Path) -> Result<Adjacency> {
    let shown = path.display();
    let failed = |error: io::Error| {
        let help = "give the path of a .npz file, or extents such as 512x512x64; `stencilc grid make` writes grids";
        match error.kind() {
            ErrorKind::NotFound => Error::input(format!("there is no file `{shown}`")).help(help),
            _ => Error::input(format!("cannot read `{shown}`: {error}")),
        }
    };
    let found = path.metadata().map_err(failed)?;
    if !found.is_file() {
        let what = if found.is_dir() { "a directory" } else { "a device or a pipe" };
        return Err(Error::input(format!("cannot read `{shown}`: it is {what}, not a file")).help("name a .npz file"));
    }
    let file = BufReader::new(File::open(path).map_err(failed)?);
    read(file, &shown.to_string()).map_err(|Error { fault, message, help }| Error {
        fault,
        message: format!("cannot read `{shown}`: {message}"),
        help,
    })
}

/// Reads a grid called `name` from an archive.
fn read(file: impl Read + Seek, name: &str) -> Result<Adjacency> {
    let damaged = |_: zip::result::ZipError| {
        Error::input("it is no archive as .npz files are, or was not written to its end").help(
            "a grid is written by `numpy.savez('grid.npz', left=..., right=..., top=..., bottom=...)`, \
             or by `stencilc grid make`",
        )
    };
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    if archive.len() > ENTRIES {
        return Err(Error::input(format!("it holds {} arrays, and a grid has 4 to 6", archive.len())));
    }
    let mut lists = Vec::new();
    for (direction, _) in DIRECTIONS {
        lists.push(unpacked(&mut archive, direction, |bytes, length| npy::read_whole(bytes, length))?);
    }
    let lists = lists.into_iter().zip(DIRECTIONS).map(|(list, (direction, _))| numbers(list, direction));
    let lists = lists.collect::<Result<Vec<Vec<i32>>>>()?;
    let [left, right, top, bottom] = <[Vec<i32>; 4]>::try_from(lists).unwrap_or_default();
    let is_there = |name: &str| archive.index_for_name(&format!("{name}.npy")).is_some();
    let positions = match POSITIONS.map(is_there) {
        [false, false] => None,
        _ => {
            let mut position = |axis: &str| -> Result<Vec<f64>> {
                let array = unpacked(&mut archive, axis, |bytes, length| npy::read(bytes, length))?;
                check_axes(&array.shape, axis)?;
                Ok((0..array.data.len()).map(|cell| array.data.get(cell)).collect())
            };
            Some([position("x")?, position("y")?])
        }
    };
    Ok(Adjacency::new(name, [left, right, top, bottom], positions)?)
}

/// What `read` makes of one array of the archive.
fn unpacked<F: Read + Seek, T>(
    archive: &mut ZipArchive<F>,
    name: &str,
    read: impl FnOnce(&mut Checked, u64) -> Result<T>,
) -> Result<T> {
    let own = format!("{name}.npy");
    if archive.index_for_name(&own).is_none() {
        return Err(missing(archive, name));
    }
    let about = |message: String| format!("`{name}`: {message}");
    let mut entry =
        archive.by_name(&own).map_err(|error| Error::input(about(format!("it cannot be unpacked: {error}"))))?;
    let length = entry.size();
    if length > entry.compressed_size().saturating_mul(DENSEST) {
        let message = format!("{length} bytes are said to be packed into {}", entry.compressed_size());
        return Err(Error::input(about(message)).help("the file is damaged; write it again"));
    }
    let mut bytes: Checked = (&mut entry as &mut dyn Read).take(length.saturating_add(1));
    let result = read(&mut bytes, length);
    // Only at the end the archive compares its checksum.
    let end = io::copy(&mut bytes, &mut io::sink());
    let failed = |Error { fault, message, help }| Error { fault, message: about(message), help };
    match (result, end) {
        (Ok(_), Err(error)) => Err(Error::input(about(error.to_string())).help("the file is damaged; write it again")),
        (result, _) => result.map_err(failed),
    }
}

/// The bytes of one array, of which there are no more than the archive says, and one.
type Checked<'a> = io::Take<&'a mut dyn Read>;

fn missing<F: Read + Seek>(archive: &ZipArchive<F>, name: &str) -> Error {
    let names: Vec<String> = archive
        .file_names()
        .filter_map(|name| Some(name.ok()?.strip_suffix(".npy")?.to_owned()))
        .filter(|name| name.chars().count() < 40)
        .take(12)
        .collect();
    let others = names
        .iter()
        .map(String::as_str)
        .filter(|other| !POSITIONS.contains(other) && DIRECTIONS.iter().all(|(direction, _)| direction != other));
    let error = Error::input(format!("it holds no array `{name}`"));
    match guess(name, others) {
        Some(guess) => error.help(format!("is it `{guess}`? save it as `{name}`: `numpy.savez(..., {name}={guess})`")),
        None if POSITIONS.contains(&name) => error.help("positions have both: `numpy.savez(..., x=x, y=y)`"),
        None if names.is_empty() => error.help(NEEDED),
        None => error.help(format!("it holds {}; {NEEDED}", names.join(", "))),
    }
}

const NEEDED: &str = "a grid has `left`, `right`, `top` and `bottom`: of each cell the number of that neighbour, or -1";

/// The numbers of cells, of an array that has one a cell.
fn numbers(Whole { shape, numbers, minus_one }: Whole, name: &str) -> Result<Vec<i32>> {
    check_axes(&shape, name)?;
    if numbers.len() > MOST {
        return Err(Error::input(format!("`{name}` has {} cells: at most 2^30 are possible", numbers.len())));
    }
    let cells = numbers.len() as i64;
    // An unsigned type has no -1; its largest number stands for it, unless that is a cell's.
    let cell = |number: i64| if number == minus_one && number >= cells { Ok(-1) } else { i32::try_from(number) };
    let found = numbers.iter().map(|&number| cell(number).map_err(|_| number)).collect::<std::result::Result<_, i64>>();
    found.map_err(|number| {
        Error::input(format!("`{name}` holds {number}, and cells are numbered from 0 to {}", cells - 1))
            .help("-1 says that there is no neighbour")
    })
}

fn check_axes(shape: &[usize], name: &str) -> Result<()> {
    if let [_] = shape {
        return Ok(());
    }
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    let help = if shape.is_empty() {
        "it has one number a cell".to_owned()
    } else {
        format!("it has one axis, all cells one after the other: `{name}.ravel()`, with numbers to match")
    };
    Err(Error::input(format!("`{name}` has the shape ({})", lengths.join(", "))).help(help))
}

/// Writes a grid to the file at `path`, all of it or nothing, as [`load`] and NumPy read it. The same grid makes the same
/// bytes.
///
/// # Errors
/// Those of [`files::write_atomic`].
pub fn save(path: &Path, adjacency: &Adjacency) -> Result<()> {
    let lists = DIRECTIONS.iter().zip(adjacency.neighbours());
    let lists = lists.map(|((name, _), list)| (*name, Data::I32(list.clone())));
    let positions = POSITIONS.into_iter().zip(adjacency.positions().map(Data::F64));
    files::write_atomic(path, |out| {
        let mut archive = ZipWriter::new_stream(out);
        for (name, data) in lists.chain(positions) {
            let array = Array { shape: vec![data.len()], data };
            let is_large = array.data.len() * array.data.element().bytes() >= 1 << 31;
            archive.start_file(format!("{name}.npy"), SimpleFileOptions::default().large_file(is_large))?;
            npy::write(&mut archive, &array)?;
        }
        archive.finish()?;
        Ok(())
    })
}
