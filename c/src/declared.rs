//! What texts declare: fields and parameters, and the numbers that types and uses of them have in C.

use crate::handles;
use crate::status::{StencilcStatus, answered, guarded};
use crate::stencil::{Stencil, StencilcStencil};
use std::ffi::c_char;
use stencilc_compiler::ir::{Kind, Levels, Role};
use stencilc_runtime::problem::element_of;
use stencilc_runtime::{Element, Error};

/// Numbers of 64 bits: `double`.
pub const STENCILC_F64: i32 = 1;
/// Numbers of 32 bits: `float`.
pub const STENCILC_F32: i32 = 2;
/// Whole numbers of 32 bits: `int32_t`.
pub const STENCILC_I32: i32 = 3;
/// Truth values, a byte each: 0 or 1.
pub const STENCILC_BOOL: i32 = 4;

/// It is read.
pub const STENCILC_READ: i32 = 1;
/// It is written, where the stencil computes.
pub const STENCILC_WRITE: i32 = 2;
/// It is read, and then written.
pub const STENCILC_UPDATE: i32 = 3;

/// What a stencil or program declares as a field. Texts are there until the stencil is freed.
#[repr(C)]
pub struct StencilcField {
    /// The bytes of this struct, as the caller knows it: it may grow at its end.
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// Its documentation.
    pub documentation: *const c_char,
    /// What is done with it: STENCILC_READ, STENCILC_WRITE or STENCILC_UPDATE.
    pub role: i32,
    /// The type of its elements in the precision that is chosen: STENCILC_F64 and so on.
    pub element: i32,
    /// Whether it has the axes j and i, the last two of its array; over a mesh, whether it has an axis of elements.
    pub has_columns: i32,
    /// Whether it has the axis k, the first of its array: 0, 1, or 2 where it has one level more, between the levels.
    pub has_levels: i32,
    /// Over a mesh: of which elements it has numbers, `cell`, or `cell.edges` for each slot of a map; else an empty text.
    pub on: *const c_char,
    /// Over a mesh: how many slots the map has, which are an axis behind that of elements; 0 if it is of no map, and there is no such axis.
    pub slots: i32,
    /// Over a mesh: how many numbers there are each time; more than 1 are the last axis.
    pub parts: i32,
}

/// What a stencil or program declares as a parameter. Texts are there until the stencil is freed.
#[repr(C)]
pub struct StencilcParameter {
    /// The bytes of this struct, as the caller knows it: it may grow at its end.
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// Its documentation.
    pub documentation: *const c_char,
    /// What its value is: STENCILC_F64 of a real number, STENCILC_I32, or STENCILC_BOOL.
    pub element: i32,
    /// Whether it has a value if none is given.
    pub has_default: i32,
}

/// The number that C knows a type by.
pub fn number_of(element: Element) -> i32 {
    match element {
        Element::F64 => STENCILC_F64,
        Element::F32 => STENCILC_F32,
        Element::I32 => STENCILC_I32,
        Element::Bool => STENCILC_BOOL,
    }
}

/// The type that C knows by a number; `what` is what messages call the array.
///
/// # Errors
/// It is no number of a type.
pub fn element_named(number: i32, what: &str) -> Result<Element, Error> {
    match number {
        STENCILC_F64 => Ok(Element::F64),
        STENCILC_F32 => Ok(Element::F32),
        STENCILC_I32 => Ok(Element::I32),
        STENCILC_BOOL => Ok(Element::Bool),
        other => Err(Error::call(format!("the elements of `{what}` have the type {other}, which is none"))
            .help("give STENCILC_F64, STENCILC_F32, STENCILC_I32 or STENCILC_BOOL")),
    }
}

fn count_of(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// How many fields a stencil or program has; 0 if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_field_count(stencil: *const StencilcStencil) -> usize {
    answered(0, || Ok(handles::held::<Stencil, _>(stencil)?.fields.len()))
}

/// How many parameters a stencil or program has; 0 if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_parameter_count(stencil: *const StencilcStencil) -> usize {
    answered(0, || Ok(handles::held::<Stencil, _>(stencil)?.params.len()))
}

/// Refuses a struct that the caller's header knows in another size.
///
/// # Errors
/// It is another one.
pub fn check_size(size: usize, least: usize, what: &str) -> Result<(), Error> {
    if size >= least {
        return Ok(());
    }
    Err(Error::call(format!("the `size` of a {what} is {size}, and it has at least {least} bytes"))
        .help(format!("set it: `{what} own = {{sizeof own, ...}}`; with the stencilc.h of this library")))
}

/// Says what a field of a stencil or program is, by its number. `size` of the struct has to be set.
///
/// # Safety
/// There is room for the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_field(
    stencil: *const StencilcStencil,
    number: usize,
    out: *mut StencilcField,
) -> StencilcStatus {
    guarded(|| {
        let own = handles::held::<Stencil, _>(stencil)?;
        if out.is_null() {
            return Err(Error::call("the place for the field is a null pointer"));
        }
        // SAFETY: the caller's.
        let size = unsafe { (&raw const (*out).size).read() };
        check_size(size, size_of::<StencilcField>(), "StencilcField")?;
        let found = own.subject.fields().nth(number).zip(own.fields.get(number));
        let ((field, role), [name, documentation, on]) =
            found.ok_or_else(|| beyond("field", number, own.fields.len()))?;
        let precision = own.how().precision.unwrap_or_default();
        let home = field.place.home;
        let said = StencilcField {
            size,
            name: name.as_ptr(),
            documentation: documentation.as_ptr(),
            role: match role {
                Role::InOut | Role::Inc => STENCILC_UPDATE,
                role if role.is_written() => STENCILC_WRITE,
                _ => STENCILC_READ,
            },
            element: number_of(element_of(field.stored, precision)),
            has_columns: (field.place.horizontal || home.is_some()).into(),
            has_levels: match field.place.levels {
                Levels::None => 0,
                Levels::Full => 1,
                Levels::Interfaces => 2,
            },
            on: on.as_ptr(),
            slots: home.filter(|own| own.map.is_some()).map_or(0, |own| count_of(own.width / own.parts.max(1))),
            parts: home.map_or(1, |own| count_of(own.parts)),
        };
        // SAFETY: the caller's.
        unsafe { out.write(said) };
        Ok(())
    })
}

/// Says what a parameter of a stencil or program is, by its number. `size` of the struct has to be set.
///
/// # Safety
/// There is room for the struct.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_parameter(
    stencil: *const StencilcStencil,
    number: usize,
    out: *mut StencilcParameter,
) -> StencilcStatus {
    guarded(|| {
        let own = handles::held::<Stencil, _>(stencil)?;
        if out.is_null() {
            return Err(Error::call("the place for the parameter is a null pointer"));
        }
        // SAFETY: the caller's.
        let size = unsafe { (&raw const (*out).size).read() };
        check_size(size, size_of::<StencilcParameter>(), "StencilcParameter")?;
        let found = own.subject.params().nth(number).zip(own.params.get(number));
        let (param, [name, documentation]) = found.ok_or_else(|| beyond("parameter", number, own.params.len()))?;
        let said = StencilcParameter {
            size,
            name: name.as_ptr(),
            documentation: documentation.as_ptr(),
            element: match param.kind {
                Kind::Real => STENCILC_F64,
                Kind::Int => STENCILC_I32,
                Kind::Bool => STENCILC_BOOL,
            },
            has_default: param.default.is_some().into(),
        };
        // SAFETY: the caller's.
        unsafe { out.write(said) };
        Ok(())
    })
}

fn beyond(what: &str, number: usize, count: usize) -> Error {
    Error::call(format!("there is no {what} {number}: there are {count}, and the first is 0"))
}
