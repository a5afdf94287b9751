//! Grids in NumPy's `.npz` files: an archive of the arrays `left`, `right`, `top` and `bottom`, and perhaps `x` and `y`.

use crate::array::{Array, Data, Element};
use crate::error::{Error, Result};
use crate::files;
use crate::given::{self, Cast, Given};
use crate::memory;
use crate::npy::{self, Archive, Whole};
use std::io::{self, BufReader, ErrorKind, Read, Seek, Write};
use std::path::Path;
use stencilc_compiler::diagnostic::guess;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::grid::adjacency::{DIRECTIONS, MOST};

/// The arrays of positions.
const POSITIONS: [&str; 2] = ["x", "y"];

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
    files::reads(files::Kind::Grid, path)?;
    let file = BufReader::new(files::open(path, files::Links::Follow).map_err(failed)?);
    read(file, &shown.to_string()).map_err(|Error { fault, message, help }| Error {
        fault,
        message: format!("cannot read `{shown}`: {message}"),
        help,
    })
}

/// Reads a grid called `name` from the bytes of a file.
///
/// # Errors
/// As [`load`], but messages do not name the file.
pub fn read(file: impl Read + Seek, name: &str) -> Result<Adjacency> {
    let damaged = |error: Error| {
        error.help(
            "a grid is written by `numpy.savez('grid.npz', left=..., right=..., top=..., bottom=...)`, \
             or by `stencilc grid make`",
        )
    };
    let mut archive = Archive::new(file).map_err(damaged)?;
    check_sizes(&mut archive)?;
    let mut lists = Vec::new();
    for (direction, _) in DIRECTIONS {
        check_there(&archive, direction)?;
        lists.push(numbers(archive.whole(direction)?, direction)?);
    }
    let [left, right, top, bottom] = <[Vec<i32>; 4]>::try_from(lists).unwrap_or_default();
    let positions = match POSITIONS.map(|name| archive.has(name)) {
        [false, false] => None,
        _ => {
            let mut position = |axis: &str| -> Result<Vec<f64>> {
                check_there(&archive, axis)?;
                let array = archive.array(axis)?;
                check_axes(&array.shape, axis)?;
                let given = Given { field: axis, holder: "the array" };
                let data = given::array(array, given, Element::F64, Cast::Exact)?;
                Ok((0..data.len()).map(|cell| data.get(cell)).collect())
            };
            Some([position("x")?, position("y")?])
        }
    };
    Ok(Adjacency::new(name, [left, right, top, bottom], positions)?)
}

/// Refuses, by what the headers say, more cells than there can be or than there is memory for.
fn check_sizes<F: Read + Seek>(archive: &mut Archive<F>) -> Result<()> {
    let (mut bytes, mut most) = (0, 0);
    let directions = DIRECTIONS.iter().map(|(direction, _)| (*direction, size_of::<i32>()));
    for (name, each) in directions.chain(POSITIONS.map(|name| (name, size_of::<f64>()))) {
        if !archive.has(name) {
            continue;
        }
        let cells = archive.count(name)?;
        if cells > MOST {
            return Err(Error::input(format!("`{name}` has {cells} cells: at most 2^30 are possible")));
        }
        bytes += cells as u128 * each as u128;
        most = most.max(cells);
    }
    // One list at a time is read as wider numbers.
    bytes += most as u128 * size_of::<i64>() as u128;
    memory::check(bytes, &format!("a grid of {most} cells takes"), memory::HELP)
}

fn check_there<F: Read + Seek>(archive: &Archive<F>, name: &str) -> Result<()> {
    if archive.has(name) {
        return Ok(());
    }
    let names = archive.names();
    let names: Vec<String> = names.into_iter().filter(|name| name.chars().count() < 40).take(12).collect();
    let others = names
        .iter()
        .map(String::as_str)
        .filter(|other| !POSITIONS.contains(other) && DIRECTIONS.iter().all(|(direction, _)| direction != other));
    let error = Error::input(format!("it holds no array `{name}`"));
    Err(match guess(name, others) {
        Some(guess) => error.help(format!("is it `{guess}`? save it as `{name}`: `numpy.savez(..., {name}={guess})`")),
        None if POSITIONS.contains(&name) => error.help("positions have both: `numpy.savez(..., x=x, y=y)`"),
        None if names.is_empty() => error.help(NEEDED),
        None => error.help(format!("it holds {}; {NEEDED}", names.join(", "))),
    })
}

const NEEDED: &str = "a grid has `left`, `right`, `top` and `bottom`: of each cell the number of that neighbour, or -1";

/// The numbers of cells, of an array that has one a cell.
fn numbers(Whole { shape, numbers, minus_one }: Whole, name: &str) -> Result<Vec<i32>> {
    check_axes(&shape, name)?;
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
    crate::files::write_atomic(path, |out| write(out, adjacency))
}

/// Writes the bytes that [`save`] puts into a file.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, adjacency: &Adjacency) -> io::Result<()> {
    let lists = DIRECTIONS.iter().zip(adjacency.neighbours());
    let lists = lists.map(|((name, _), list)| (*name, Data::I32(list.clone())));
    let positions = POSITIONS.into_iter().zip(adjacency.positions().map(Data::F64));
    let array = |(name, data): (&str, Data)| (name.to_owned(), Array { shape: vec![data.len()], data });
    npy::write_archive(out, lists.chain(positions).map(array))
}
