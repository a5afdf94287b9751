//! Meshes that are made of arrays whose names say what they are:
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
use crate::memory;
use crate::npy::Whole;
use stencilc_compiler::diagnostic::guess;

/// What an array's name says that it is.
#[derive(Clone, Copy)]
pub(super) enum Key<'a> {
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

/// What an array holds.
pub(super) enum Content {
    /// Whole numbers, of a map or a size.
    Whole(Whole),
    /// Numbers of a field.
    Any(Array),
}

/// An array, its name, and what that says that it is.
pub(super) struct Named<'a> {
    pub name: &'a str,
    pub key: Key<'a>,
    pub content: Content,
}

/// What names of arrays are, and something more of it.
macro_rules! how {
    ($more:literal) => {
        concat!(
            "a map is called `edge.nodes -> node`, a field `x on node` or `sign on cell.edges`, the size of a set `set node`",
            $more
        )
    };
}

/// What names of arrays are, for those who write files.
pub(super) const HOW: &str = how!(", as in `numpy.savez('mesh.npz', **{'edge.nodes -> node': nodes, 'x on node': x})`");

/// The same for those who have arrays in memory.
const HOW_IN_MEMORY: &str = how!("");

impl Mesh {
    /// A mesh of arrays in memory, whose names say what they are: `edge.nodes -> node` of shape (edges, slots), -1 where there is
    /// no node; `x on node` of shape (nodes) or (nodes, parts); `sign on cell.edges` of shape (cells, slots); `set node`, one number, where
    /// nothing else tells how many there are.
    ///
    /// ```
    /// use stencilc_runtime::{Array, Data, mesh::Mesh};
    ///
    /// let nodes = Array { shape: vec![3, 2], data: Data::I32(vec![0, 1, 1, 2, 2, 0]) };
    /// let mesh = Mesh::of_arrays([("edge.nodes -> node".to_owned(), nodes), Mesh::size("node", 3)])?;
    /// assert_eq!((mesh.sets[0].name.as_str(), mesh.sets[0].size), ("edge", 3));
    /// # Ok::<(), stencilc_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// A name does not say what the array is; arrays contradict each other; a map leads to an element that there is not.
    pub fn of_arrays(arrays: impl IntoIterator<Item = (String, Array)>) -> Result<Self> {
        let told = |error: Error| match &error.help {
            Some(help) if help.contains("numpy") => error.help(HOW_IN_MEMORY),
            _ => error,
        };
        let (names, arrays): (Vec<String>, Vec<Array>) = arrays.into_iter().unzip();
        let named = names.iter().zip(arrays).map(|(name, array)| {
            array.check(&format!("the array `{}`", name.escape_debug()))?;
            let key = Key::new(name)?;
            let content = match (key, array.data) {
                (Key::Field { .. }, data) => Content::Any(Array { shape: array.shape, data }),
                (Key::Set(_) | Key::Map { .. }, Data::I32(numbers)) => {
                    let numbers = numbers.into_iter().map(i64::from).collect();
                    Content::Whole(Whole { shape: array.shape, numbers, minus_one: -1 })
                }
                (Key::Set(_) | Key::Map { .. }, data) => {
                    let what = data.element().name();
                    return Err(Error::input(format!(
                        "`{name}` holds {what}, and it is made of whole numbers of 32 bits"
                    )));
                }
            };
            Ok(Named { name, key, content })
        });
        let mesh = named.collect::<Result<Vec<_>>>().and_then(|named| {
            if named.is_empty() {
                return Err(Error::input("no array is given, of which a mesh would be made").help(HOW_IN_MEMORY));
            }
            let keys: Vec<(&str, Key)> = named.iter().map(|own| (own.name, own.key)).collect();
            check_maps_known(&keys)?;
            let mesh = made(named)?;
            mesh.check()?;
            Ok(mesh)
        });
        mesh.map(|mesh| Self { origin: "the mesh in memory".to_owned(), ..mesh }).map_err(told)
    }

    /// How many elements a set has, as [`Mesh::of_arrays`] takes it.
    pub fn size(set: &str, size: i32) -> (String, Array) {
        (format!("set {set}"), Array { shape: vec![1], data: Data::I32(vec![size]) })
    }
}

/// A mesh of such arrays, which is not checked yet.
pub(super) fn made(arrays: Vec<Named>) -> Result<Mesh> {
    let mut sets = Vec::new();
    for Named { name, key, content } in &arrays {
        match (*key, content) {
            (Key::Set(set), Content::Whole(array)) => say(&mut sets, set, Some(size_said(array, name)?), name)?,
            (Key::Map { from, to, .. }, Content::Whole(_)) => {
                say(&mut sets, from, None, name)?;
                say(&mut sets, to, None, name)?;
            }
            (Key::Field { on, .. }, Content::Any(_)) => say(&mut sets, on, None, name)?,
            (Key::Set(_) | Key::Map { .. }, Content::Any(_)) | (Key::Field { .. }, Content::Whole(_)) => {
                return Err(Error::check(format!("`{name}` was read as what its name does not say")));
            }
        }
    }
    let mut tables = Vec::new();
    for Named { name, key, content } in &arrays {
        match (*key, content) {
            (key @ Key::Map { from, .. }, Content::Whole(array)) => {
                let arity = arity(&array.shape, name)?;
                say(&mut sets, from, array.shape.first().copied(), name)?;
                tables.push((key, arity, array));
            }
            (Key::Field { on, .. }, Content::Any(array)) => {
                let Some(&rows) = array.shape.first() else {
                    return Err(Error::input(format!("`{name}` is a single number")).help(format!(
                        "a field has one for each {on}; a single one is a parameter: `--set NAME=VALUE`"
                    )));
                };
                say(&mut sets, on, Some(rows), name)?;
            }
            _ => {}
        }
    }
    let mut mesh = Mesh { sets: sizes(sets, &tables)?, ..Mesh::default() };
    check_elements(&mesh.sets)?;
    for (key, arity, array) in tables {
        add_map(&mut mesh, key, arity, array)?;
    }
    for Named { name, key, content } in arrays {
        if let (Key::Field { .. }, Content::Any(array)) = (key, content) {
            add_field(&mut mesh, name, key, array)?;
        }
    }
    Ok(mesh)
}

impl<'a> Key<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self> {
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
pub(super) fn check_maps_known(keys: &[(&str, Key)]) -> Result<()> {
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

/// The sets with their sizes.
fn sizes(found: Vec<Found>, tables: &[(Key, usize, &Whole)]) -> Result<Vec<Set>> {
    let sized = |Found { name, size }: Found| match size {
        Some((size, _)) => Ok(Set { name, size }),
        None => {
            let led = tables.iter().filter(|(key, ..)| matches!(key, Key::Map { to, .. } if *to == name));
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
