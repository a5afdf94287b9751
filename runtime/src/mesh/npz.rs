//! Meshes in NumPy's `.npz` files. An array's name says what it is:
//!
//! - `edge.nodes -> node`: a map, an integer array of shape (edges, slots), or (edges) where there is one slot; -1 is a hole;
//! - `x on node`: a field, of shape (nodes) or (nodes, parts);
//! - `orientation on cell.edges`: a field with a number for each slot of a map, of shape (cells, slots) or
//!   (cells, slots, parts);
//! - `set node`: how many nodes there are, one number. It is needed only where no map or field of nodes says so.

use super::check::{MOST, is_name, plural};
use super::{Field, Map, Mesh, Set};
use crate::array::{Array, Data};
use crate::error::{Error, Result};
use crate::files;
use crate::memory;
use crate::npy::{self, Archive, Whole};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use stencilc_compiler::diagnostic::guess;

/// What an array's name says that it is.
#[derive(Clone, Copy)]
enum Key<'a> {
    Set(&'a str),
    Map { from: &'a str, name: &'a str, to: &'a str },
    Field { name: &'a str, on: &'a str, map: Option<&'a str> },
}

/// A set, while its size is looked for.
struct Found {
    name: String,
    /// Its size, and the array that says so.
    size: Option<(usize, String)>,
}

const HOW: &str = "a map is called `edge.nodes -> node`, a field `x on node` or `sign on cell.edges`, the size of a set \
                   `set node`, as in `numpy.savez('mesh.npz', **{'edge.nodes -> node': nodes, 'x on node': x})`";

/// The arrays of a grid's file, by which it is known.
const SIDES: [&str; 4] = ["left", "right", "top", "bottom"];

/// Reads a mesh, which is not checked yet.
pub(super) fn read(file: impl Read + Seek) -> Result<Mesh> {
    let mut archive = Archive::new(file).map_err(|error| error.help(format!("write it again; {HOW}")))?;
    let names = archive.names();
    if names.is_empty() {
        return Err(Error::input("it holds no arrays").help(HOW));
    }
    if SIDES.iter().all(|side| names.iter().any(|name| name == side)) {
        return Err(Error::input("it holds a grid of cells and their neighbours, not a mesh")
            .help("give it as `--grid FILE`, to what runs on grids"));
    }
    let keys = names.iter().map(|name| Key::new(name).map(|key| (name.as_str(), key))).collect::<Result<Vec<_>>>()?;
    check_maps_known(&keys)?;
    check_memory(&mut archive, &keys)?;
    let mut sets = Vec::new();
    for (name, key) in &keys {
        match *key {
            Key::Set(set) => {
                let size = archive.whole(name).and_then(|array| size_said(&array, name))?;
                say(&mut sets, set, Some(size), name)?;
            }
            Key::Map { from, to, .. } => {
                say(&mut sets, from, None, name)?;
                say(&mut sets, to, None, name)?;
            }
            Key::Field { on, .. } => say(&mut sets, on, None, name)?,
        }
    }
    let mut tables = Vec::new();
    let mut fields = Vec::new();
    for (name, key) in &keys {
        match *key {
            Key::Set(_) => {}
            Key::Map { from, .. } => {
                let array = archive.whole(name).map_err(|error| about_rows(error, "the shorter ones end with -1"))?;
                let arity = arity(&array.shape, name)?;
                say(&mut sets, from, array.shape.first().copied(), name)?;
                tables.push((*name, *key, arity, array));
            }
            Key::Field { on, .. } => {
                let array = archive.array(name).map_err(|error| about_rows(error, "fill the shorter ones"))?;
                let Some(&rows) = array.shape.first() else {
                    return Err(Error::input(format!("`{name}` is a single number")).help(format!(
                        "a field has one for each {on}; a single one is a parameter: `--set NAME=VALUE`"
                    )));
                };
                say(&mut sets, on, Some(rows), name)?;
                fields.push((*name, *key, array));
            }
        }
    }
    let mut mesh = Mesh { sets: sizes(sets, &tables)?, ..Mesh::default() };
    check_elements(&mesh.sets)?;
    for (_, key, arity, array) in tables {
        add_map(&mut mesh, key, arity, &array)?;
    }
    for (name, key, array) in fields {
        add_field(&mut mesh, name, key, array)?;
    }
    Ok(mesh)
}

impl<'a> Key<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let key = if let Some((map, to)) = text.split_once("->") {
            map.split_once('.').map(|(from, name)| Key::Map { from: from.trim(), name: name.trim(), to: to.trim() })
        } else if let Some((name, on)) = text.split_once(" on ") {
            let (on, map) = on.split_once('.').map_or((on, None), |(on, map)| (on, Some(map.trim())));
            Some(Key::Field { name: name.trim(), on: on.trim(), map })
        } else {
            text.strip_prefix("set ").map(|set| Key::Set(set.trim()))
        };
        let names = match key {
            None => vec![],
            Some(Key::Set(set)) => vec![set],
            Some(Key::Map { from, name, to }) => vec![from, name, to],
            Some(Key::Field { name, on, map }) => [Some(name), Some(on), map].into_iter().flatten().collect(),
        };
        match key {
            Some(key) if names.iter().all(|name| is_name(name)) => Ok(key),
            Some(_) | None => {
                let shown: String = text.escape_debug().take(60).collect();
                let error = Error::input(format!("the name of the array `{shown}` does not say what it is"));
                Err(match text.split_once('.') {
                    Some((from, map)) if is_name(from) && is_name(map) => error.help(format!(
                        "if it is a map, say where it leads: `numpy.savez(..., **{{'{shown} -> {}': ...}})`",
                        map.strip_suffix('s').unwrap_or(map)
                    )),
                    _ if is_name(text) => error.help(format!(
                        "if it is a field, say of what: `numpy.savez(..., **{{'{shown} on cell': ...}})`"
                    )),
                    Some(_) | None => error.help(HOW),
                })
            }
        }
    }
}

/// Refuses more numbers than there is memory for, by what the headers say.
fn check_memory<F: Read + Seek>(archive: &mut Archive<F>, keys: &[(&str, Key)]) -> Result<()> {
    let (mut bytes, mut numbers) = (0, 0);
    for (name, key) in keys {
        let count = archive.count(name)? as u128;
        numbers += count;
        bytes += count
            * match key {
                // Maps are read as wider numbers.
                Key::Map { .. } => (size_of::<i64>() + size_of::<i32>()) as u128,
                Key::Set(_) | Key::Field { .. } => size_of::<f32>() as u128,
            };
    }
    memory::check(bytes, &format!("the {numbers} numbers of its arrays take"), memory::HELP)
}

/// Refuses more elements than there is memory for a number of each, which is the least that anybody does with them: a set may
/// be said to be large without an array of that length.
fn check_elements(sets: &[Set]) -> Result<()> {
    let elements: u128 = sets.iter().map(|set| set.size as u128).sum();
    match sets.iter().max_by_key(|set| set.size) {
        Some(set) if set.size <= MOST => {
            let what = format!("a number of each element, {} {} among them, takes", set.size, plural(&set.name));
            memory::check(elements * size_of::<f64>() as u128, &what, memory::HELP)
        }
        // Too many for any memory are told as such.
        Some(_) | None => Ok(()),
    }
}

/// A field on the slots of a map needs the map.
fn check_maps_known(keys: &[(&str, Key)]) -> Result<()> {
    let maps = || {
        keys.iter().filter_map(|(_, key)| match key {
            Key::Map { from, name, .. } => Some((*from, *name)),
            Key::Set(_) | Key::Field { .. } => None,
        })
    };
    for (name, key) in keys {
        if let Key::Field { on, map: Some(map), .. } = key
            && !maps().any(|own| own == (on, map))
        {
            let error = Error::input(format!("`{name}` is on a map that the file has not: `{on}.{map}`"));
            let others: Vec<String> = maps().map(|(from, name)| format!("{from}.{name}")).collect();
            return Err(match guess(&format!("{on}.{map}"), others.iter().map(String::as_str)) {
                Some(guess) => error.help(format!("is it `{guess}`?")),
                None => error.help(format!("add the map: `{on}.{map} -> ...`")),
            });
        }
    }
    Ok(())
}

/// That there is a set, and perhaps how large it is, as the array `by` says.
fn say(sets: &mut Vec<Found>, name: &str, size: Option<usize>, by: &str) -> Result<()> {
    let at = sets.iter().position(|set| set.name == name).unwrap_or_else(|| {
        sets.push(Found { name: name.to_owned(), size: None });
        sets.len() - 1
    });
    match (&sets[at].size, size) {
        (Some((known, other)), Some(size)) if *known != size => Err(Error::input(format!(
            "`{by}` says that there are {size} {}, and `{other}` that there are {known}",
            plural(name)
        ))
        .help("arrays of one set have one row for each of its elements")),
        (None, Some(size)) => {
            sets[at].size = Some((size, by.to_owned()));
            Ok(())
        }
        (Some(_), _) | (None, None) => Ok(()),
    }
}

fn size_said(array: &Whole, name: &str) -> Result<usize> {
    match array.numbers.as_slice() {
        &[size] if size >= 0 => Ok(size as usize),
        [size] => Err(Error::input(format!("`{name}` is {size}: a set has 0 elements or more"))),
        numbers => Err(Error::input(format!("`{name}` has {} numbers", numbers.len()))
            .help("it is one number: how many elements the set has")),
    }
}

fn arity(shape: &[usize], name: &str) -> Result<usize> {
    match *shape {
        [_] => Ok(1),
        [_, arity] if arity > 0 => Ok(arity),
        _ => Err(Error::input(format!("`{name}` has the shape {}", shown(shape)))
            .help("a map has a row for each element and a column for each slot: (edges, 2)")),
    }
}

/// Rows of different lengths become an array of Python's objects.
fn about_rows(error: Error, how: &str) -> Error {
    match error.message.contains("`|O`") || error.message.contains("`|O8`") {
        true => error.help(format!("are its rows of different lengths? Make them equally long: {how}")),
        false => error,
    }
}

/// The sets with their sizes.
fn sizes(found: Vec<Found>, tables: &[(&str, Key, usize, Whole)]) -> Result<Vec<Set>> {
    let sized = |Found { name, size }: Found| match size {
        Some((size, _)) => Ok(Set { name, size }),
        None => {
            let led = tables.iter().filter(|(_, key, ..)| matches!(key, Key::Map { to, .. } if *to == name));
            let largest = led.flat_map(|(.., array)| array.numbers.iter().filter(|&&n| n != array.minus_one)).max();
            let size = largest.map_or(0, |&largest| largest.max(-1).saturating_add(1));
            Err(Error::input(format!("nothing says how many {} there are", plural(&name))).help(format!(
                "add their number: `numpy.savez(..., **{{'set {name}': {size}}})`, if there are no more"
            )))
        }
    };
    found.into_iter().map(sized).collect()
}

fn add_map(mesh: &mut Mesh, key: Key, arity: usize, array: &Whole) -> Result<()> {
    let Key::Map { from, name, to } = key else { return Ok(()) };
    let (Some(from), Some(to)) = (mesh.set_named(from), mesh.set_named(to)) else { return Ok(()) };
    let size = mesh.sets[to].size as i64;
    // An unsigned type has no -1; its largest number stands for it, unless that is an element's.
    let signed = |number: i64| if number == array.minus_one && number >= size { -1 } else { number };
    let mut map = Map { name: name.to_owned(), from, to, arity, table: Vec::new() };
    let table = array.numbers.iter().map(|&number| i32::try_from(signed(number)).map_err(|_| number));
    match table.collect::<std::result::Result<Vec<i32>, i64>>() {
        Ok(table) => map.table = table,
        Err(number) => {
            let at = array.numbers.iter().position(|&own| own == number).unwrap_or_default();
            return Err(mesh.leads_nowhere(&map, at, number));
        }
    }
    mesh.maps.push(map);
    Ok(())
}

fn add_field(mesh: &mut Mesh, key_name: &str, key: Key, array: Array) -> Result<()> {
    let Key::Field { name, on, map } = key else { return Ok(()) };
    let Some(set) = mesh.set_named(on) else { return Ok(()) };
    let map = map.and_then(|map| mesh.map_named(set, map));
    let wrong = |help: String| Error::input(format!("`{key_name}` has the shape {}", shown(&array.shape))).help(help);
    let parts = match (map.map(|map| mesh.maps[map].arity), array.shape.as_slice()) {
        (None, [_]) | (Some(1), [_]) => 1,
        (None, &[_, parts]) if parts > 0 => parts,
        (Some(arity), &[_, slots]) if slots == arity => 1,
        (Some(arity), &[_, slots, parts]) if slots == arity && parts > 0 => parts,
        (None, _) => {
            let all = plural(on);
            return Err(wrong(format!("a field on `{on}` has the shape ({all}) or ({all}, parts)")));
        }
        (Some(arity), _) => {
            let all = plural(on);
            return Err(wrong(format!(
                "a field on a map of {arity} slots has the shape ({all}, {arity}) or ({all}, {arity}, parts)"
            )));
        }
    };
    mesh.fields.push(Field { name: name.to_owned(), set, map, parts, data: array.data });
    Ok(())
}

/// A shape as Python writes it.
fn shown(shape: &[usize]) -> String {
    let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
    match lengths.as_slice() {
        [length] => format!("({length},)"),
        lengths => format!("({})", lengths.join(", ")),
    }
}

/// Writes a mesh as [`read`] reads it.
pub(super) fn save(mesh: &Mesh, path: &Path) -> Result<()> {
    mesh.check()?;
    files::write_atomic(path, |out| write(mesh, out))
}

/// Writes the bytes of such a file, of a mesh that is one.
pub(super) fn write(mesh: &Mesh, out: &mut dyn Write) -> io::Result<()> {
    let sets = mesh.sets.iter().map(|set| {
        let size = i32::try_from(set.size).unwrap_or(i32::MAX);
        (format!("set {}", set.name), Array { shape: vec![], data: Data::I32(vec![size]) })
    });
    let maps = mesh.maps.iter().map(|map| {
        let mut shape = vec![mesh.sets[map.from].size, map.arity];
        shape.truncate(if map.arity == 1 { 1 } else { 2 });
        let name = format!("{} -> {}", mesh.full_name(map), mesh.sets[map.to].name);
        (name, Array { shape, data: Data::I32(map.table.clone()) })
    });
    let fields = mesh.fields.iter().map(|field| field_array(mesh, field));
    npy::write_archive(out, sets.chain(maps).chain(fields))
}

/// A field with its name, as [`read`] reads it.
fn field_array(mesh: &Mesh, field: &Field) -> (String, Array) {
    let mut shape = vec![mesh.sets[field.set].size];
    shape.extend(field.map.map(|map| mesh.maps[map].arity));
    shape.extend((field.parts > 1).then_some(field.parts));
    (mesh.field_place(field), Array { shape, data: field.data.clone() })
}

/// Writes fields alone, under the names that they have in a mesh.
pub(super) fn save_fields(mesh: &Mesh, fields: &[&Field], path: &Path) -> Result<()> {
    npy::save_archive(path, fields.iter().map(|field| field_array(mesh, field)))
}
