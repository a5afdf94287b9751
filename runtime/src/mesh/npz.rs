//! Meshes in NumPy's `.npz` files: arrays whose [names](super::named) say what they are.

use super::named::{Content, HOW, Key, Named, check_maps_known, made};
use super::{Field, Mesh};
use crate::array::{Array, Data};
use crate::error::{Error, Result};
use crate::files;
use crate::memory;
use crate::npy::{self, Archive};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

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
    let mut read = |(name, key)| {
        let content = match key {
            Key::Set(_) => Content::Whole(archive.whole(name)?),
            Key::Map { .. } => {
                Content::Whole(archive.whole(name).map_err(|error| about_rows(error, "the shorter ones end with -1"))?)
            }
            Key::Field { .. } => {
                Content::Any(archive.array(name).map_err(|error| about_rows(error, "fill the shorter ones"))?)
            }
        };
        Ok(Named { name, key, content })
    };
    made(keys.iter().copied().map(&mut read).collect::<Result<_>>()?)
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

/// Rows of different lengths become an array of Python's objects.
fn about_rows(error: Error, how: &str) -> Error {
    match error.message.contains("`|O`") || error.message.contains("`|O8`") {
        true => error.help(format!("are its rows of different lengths? Make them equally long: {how}")),
        false => error,
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
