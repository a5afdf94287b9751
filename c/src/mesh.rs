//! Meshes: of files, and of arrays that the caller has.

use crate::array::{self, StencilcArray};
use crate::handles::{self, Held};
use crate::status::{StencilcStatus, guarded};
use crate::text::text;
use std::ffi::c_char;
use std::path::Path;
use stencilc_compiler::diagnostic::guess;
use stencilc_runtime::{Array, Data, Error, mesh};

/// A mesh: sets of elements, and maps between them.
pub struct StencilcMesh {
    _nobody_looks_inside: (),
}

impl Held for mesh::Mesh {
    const WHAT: &'static str = "a mesh";
}

/// Reads the file of a mesh.
///
/// # Safety
/// The text ends with a zero byte, and there is room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_mesh_read(file: *const c_char, out: *mut *mut StencilcMesh) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe { handles::made(out, || mesh::load(Path::new(text(file, "the name of the file")?))) }
}

/// Makes a mesh of arrays, which are copied. The name of each says what it is: `edge.cells -> cell`, a map of shape (edges, slots) whose
/// numbers are those of cells; `area on cell`, a field of shape (cells) or (cells, parts); `sign on cell.edges`, one of shape (cells, slots);
/// `set cell`, one number, where nothing else tells how many cells there are. `first` is the number of the first element of each set, 0 as
/// in C or 1 as in Fortran; the number before stands where a map leads to no element.
///
/// # Safety
/// There are as many arrays, of the host's memory, and room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_mesh_make(
    arrays: *const StencilcArray,
    count: usize,
    first: i32,
    out: *mut *mut StencilcMesh,
) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe {
        handles::made(out, || {
            let arrays =
                array::copied(arrays, count)?.into_iter().map(|(name, array)| counted_from(first, name, array));
            let made = mesh::Mesh::of_arrays(arrays.collect::<Result<Vec<_>, _>>()?);
            made.map_err(|error| Error {
                message: match first {
                    0 => error.message,
                    _ => format!("{} (elements and slots are counted from 0 here)", error.message),
                },
                ..error
            })
        })
    }
}

/// An array of a mesh whose elements are counted from 0.
///
/// # Errors
/// Nobody counts from that number; or a number of an element is none.
fn counted_from(first: i32, name: String, array: Array) -> Result<(String, Array), Error> {
    match (first, array.data) {
        (0, data) => Ok((name, Array { data, ..array })),
        (1, Data::I32(mut numbers)) if name.contains("->") => {
            if numbers.iter().any(|number| *number < 0) {
                return Err(Error::input(format!("`{name}` has a negative number, and elements are counted from 1"))
                    .help("0 stands where there is no element"));
            }
            numbers.iter_mut().for_each(|number| *number -= 1);
            Ok((name, Array { data: Data::I32(numbers), ..array }))
        }
        (1, data) => Ok((name, Array { data, ..array })),
        _ => {
            Err(Error::call(format!("elements are counted from {first}")).help("give 0, as in C, or 1, as in Fortran"))
        }
    }
}

/// Says how many elements a set of a mesh has.
///
/// # Safety
/// The text ends with a zero byte, and there is room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_mesh_size(
    mesh: *const StencilcMesh,
    set: *const c_char,
    size: *mut usize,
) -> StencilcStatus {
    guarded(|| {
        let own = handles::held::<mesh::Mesh, _>(mesh)?;
        // SAFETY: the caller's.
        let name = unsafe { text(set, "the name of the set") }?;
        if size.is_null() {
            return Err(Error::call("the place for the number is a null pointer"));
        }
        let number = own.set_named(name).ok_or_else(|| {
            let names: Vec<&str> = own.sets.iter().map(|own| own.name.as_str()).collect();
            let error = Error::call(format!("the mesh has no set `{name}`"));
            match guess(name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("its sets are {}", names.join(", "))),
            }
        })?;
        // SAFETY: the caller's.
        unsafe { size.write(own.sets[number].size) };
        Ok(())
    })
}

/// Frees a mesh; null is none. What was begun over it stays.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_mesh_free(mesh: *mut StencilcMesh) -> StencilcStatus {
    handles::free::<mesh::Mesh, _>(mesh)
}
