//! Arrays of the caller's: what C says of them, and whether that can be.

use crate::declared::{STENCILC_READ, STENCILC_UPDATE, STENCILC_WRITE, check_size, element_named};
use crate::stencil::Stencil;
use crate::text::text;
use std::ffi::{c_char, c_void};
use stencilc_compiler::ir::Role;
use stencilc_runtime::job::Arrays;
use stencilc_runtime::lent::Memory;
use stencilc_runtime::{Array, Error, Lent};

/// In the host's memory.
pub const STENCILC_HOST: i32 = -1;

/// An array of the caller's. Of a field on (i, j, k) the axes are k, j and i, of which i is the last; over a mesh they are levels, elements,
/// slots and parts, of which a field has some.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StencilcArray {
    /// The bytes of this struct, as the caller knows it: it may grow at its end.
    pub size: usize,
    /// The name of its field; of an array that makes a mesh, what it is.
    pub name: *const c_char,
    /// Its first element.
    pub data: *mut c_void,
    /// The type of its elements: STENCILC_F64 and so on.
    pub element: i32,
    /// What is done with it: STENCILC_READ and so on; 0 for what its field is declared for. Of a field that is read and written two arrays
    /// may be given, one to be read and one to be written; one that is updated is copied aside before each run.
    pub role: i32,
    /// Where it lies: STENCILC_HOST, or the number of the GPU.
    pub device: i32,
    /// How many axes it has: 1 to 4.
    pub axes: i32,
    /// How many elements it has along each axis, slowest first.
    pub shape: [i64; 4],
    /// Elements from one to the next along each axis; all 0 for those of an array of C, without room between rows. Where some are 0 and
    /// others not, what is read is the same all along that axis, and nothing can be written.
    pub strides: [i64; 4],
}

/// Arrays from C, with their names.
///
/// # Safety
/// There are as many structs, whose names end with zero bytes and are there as long as what comes of this.
///
/// # Errors
/// Something of them cannot be.
unsafe fn all<'a>(arrays: *const StencilcArray, count: usize) -> Result<Vec<(&'a str, StencilcArray)>, Error> {
    if count > 0 && arrays.is_null() {
        return Err(Error::call(format!("{count} arrays are said to be there, and their address is a null pointer")));
    }
    if count > MOST {
        return Err(Error::call(format!("{count} arrays are more than any stencil has")));
    }
    let mut found = Vec::new();
    let mut first_size = None;
    for number in 0..count {
        // SAFETY: the first number of the first struct is there; all have its size, which is checked.
        let address = unsafe { arrays.byte_add(number * first_size.unwrap_or(0)) };
        // SAFETY: as above.
        let size = unsafe { (&raw const (*address).size).read_unaligned() };
        check_size(size, size_of::<StencilcArray>(), "StencilcArray")?;
        let expected = *first_size.get_or_insert(size);
        if size > MOST {
            return Err(Error::call(format!("the `size` of array {number} is {size}, which no such struct has"))
                .help("set it: `sizeof(StencilcArray)`"));
        }
        if size != expected || !size.is_multiple_of(align_of::<StencilcArray>()) {
            return Err(Error::call(format!(
                "the `size` of array {number} is {size}, and that of the first is {expected}"
            ))
            .help("set it in each: `sizeof(StencilcArray)`"));
        }
        // SAFETY: it has at least this many bytes, and any numbers are right for it.
        let own = unsafe { address.read_unaligned() };
        // SAFETY: the caller's.
        found.push((unsafe { text(own.name, &format!("the name of array {number}")) }?, own));
    }
    Ok(found)
}

/// The numbers of arrays in the host's memory, copied, with their names.
///
/// # Safety
/// There are as many structs, and what they say is true.
///
/// # Errors
/// Something of them cannot be.
pub unsafe fn copied(arrays: *const StencilcArray, count: usize) -> Result<Vec<(String, Array)>, Error> {
    // SAFETY: the caller's.
    let all = unsafe { all(arrays, count) }?;
    let copied = all.into_iter().map(|(name, own)| {
        // SAFETY: as above.
        let lent = unsafe { lent_one(&own, name, false) }?;
        if own.device != STENCILC_HOST {
            return Err(Error::call(format!(
                "`{name}` is on cuda:{}, and is copied from the host's memory",
                own.device
            ))
            .help("bring it there: cudaMemcpy"));
        }
        let array = lent.to_array()?;
        lent.check_truths(&format!("the array of `{name}`"))?;
        Ok((name.to_owned(), array))
    });
    let copied = copied.collect::<Result<Vec<(String, Array)>, Error>>()?;
    let mut names: Vec<&str> = copied.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(Error::call(format!("there are two arrays called `{}`", pair[0])).help("leave out one of them"))
        }
        None => Ok(copied),
    }
}

/// An array, lent, with its name.
///
/// # Safety
/// There is a struct, and what it says is true as long as the array is lent.
///
/// # Errors
/// Something of it cannot be.
pub unsafe fn one(array: *const StencilcArray, is_writable: bool) -> Result<(String, Lent<'static>), Error> {
    if array.is_null() {
        return Err(Error::call("the array is a null pointer"));
    }
    // SAFETY: the caller's.
    let all = unsafe { all(array, 1) }?;
    let (name, own) = all.first().ok_or_else(|| Error::check("one array is none"))?;
    // SAFETY: as above.
    Ok(((*name).to_owned(), unsafe { lent_one(own, name, is_writable) }?))
}

/// Arrays from C, lent; and the GPU where they lie.
///
/// # Safety
/// There are as many structs, whose names end with zero bytes; and what they say of arrays is true as long as these are lent.
///
/// # Errors
/// Something of them cannot be.
pub unsafe fn lent(
    stencil: &Stencil,
    arrays: *const StencilcArray,
    count: usize,
) -> Result<(Arrays<'static>, Option<usize>), Error> {
    let mut lent = Arrays::default();
    let mut place: Option<(i32, String)> = None;
    // SAFETY: the caller's.
    for (name, own) in unsafe { all(arrays, count) }? {
        let role = stencil.role(name)?;
        let how = match (own.role, role) {
            (0, Role::InOut) => STENCILC_UPDATE,
            (0, role) if role.is_written() => STENCILC_WRITE,
            (0, _) => STENCILC_READ,
            (STENCILC_READ..=STENCILC_UPDATE, _) => own.role,
            (other, _) => {
                return Err(Error::call(format!("`{name}` is lent for {other}, which is no use of an array")).help(
                    "give STENCILC_READ, STENCILC_WRITE or STENCILC_UPDATE, or 0 for what its field is declared for",
                ));
            }
        };
        if how == STENCILC_UPDATE && role != Role::InOut {
            return Err(Error::call(format!("`{name}` is not read and written, so that its array cannot be updated"))
                .help("give 0 for what the field is declared for"));
        }
        // SAFETY: the caller's.
        let array = unsafe { lent_one(&own, name, how != STENCILC_READ) }?;
        if how != STENCILC_WRITE {
            array.check_truths(&format!("the array of `{name}`"))?;
        }
        match &place {
            None => place = Some((own.device, name.to_owned())),
            Some((device, other)) if *device != own.device => {
                let at = |device: i32| {
                    if device < 0 { "in the host's memory".to_owned() } else { format!("on cuda:{device}") }
                };
                return Err(Error::call(format!("`{other}` is {}, and `{name}` {}", at(*device), at(own.device)))
                    .help("arrays of one call lie in one memory"));
            }
            Some(_) => {}
        }
        lent = match how {
            STENCILC_READ => lent.read(name, array),
            STENCILC_WRITE => lent.write(name, array),
            _ => lent.update(name, array),
        };
    }
    Ok((lent, place.and_then(|(device, _)| usize::try_from(device).ok())))
}

/// The most arrays, and the most bytes of a struct: whoever says more has set no size.
const MOST: usize = 1 << 16;

/// # Safety
/// What the struct says is true.
unsafe fn lent_one(own: &StencilcArray, name: &str, is_writable: bool) -> Result<Lent<'static>, Error> {
    let element = element_named(own.element, name)?;
    let axes = usize::try_from(own.axes).ok().filter(|axes| (1..=4).contains(axes));
    let Some(axes) = axes else {
        return Err(
            Error::call(format!("the array of `{name}` is said to have {} axes", own.axes)).help("it has 1 to 4")
        );
    };
    let lengths = |what: &str, numbers: &[i64]| -> Result<Vec<usize>, Error> {
        let number = |own: &i64| {
            usize::try_from(*own).map_err(|_| {
                Error::call(format!("the array of `{name}` has the {what} {numbers:?}, of which one is negative"))
            })
        };
        numbers.iter().map(number).collect()
    };
    let shape = lengths("shape", &own.shape[..axes])?;
    let strides = lengths("strides", &own.strides[..axes])?;
    // Of an array without elements nobody looks where it is.
    if own.data.is_null() && !shape.contains(&0) {
        return Err(Error::call(format!("the array of `{name}` is a null pointer")));
    }
    let strides = match strides.iter().all(|own| *own == 0) {
        false => strides,
        true => {
            let mut dense = vec![1usize; axes];
            for axis in (1..axes).rev() {
                dense[axis - 1] = dense[axis].saturating_mul(shape[axis]);
            }
            dense
        }
    };
    if own.device < STENCILC_HOST {
        return Err(Error::call(format!("the array of `{name}` is said to lie on device {}", own.device))
            .help("give STENCILC_HOST, or the number of a GPU"));
    }
    let memory = if own.device == STENCILC_HOST { Memory::Host } else { Memory::Device };
    // SAFETY: the caller's. Truth values are looked at before they are read.
    unsafe { Lent::at(memory, own.data.expose_provenance() as u64, element, &shape, &strides, is_writable) }
}
