//! Texts: what they declare, and how what they declare is to be computed.

use crate::handles::{self, Held};
use crate::status::{StencilcStatus, answered, guarded};
use crate::text::{c_text, text};
use command_line::texts;
use std::ffi::{CString, c_char, c_int};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stencilc_compiler::diagnostic::{Failure, Severity, guess};
use stencilc_compiler::ir::{Kind, Levels, Precision, Role, called};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Source;
use stencilc_compiler::{check, ir};
use stencilc_runtime::job::{Job, Subject};
use stencilc_runtime::problem::element_of;
use stencilc_runtime::{Device, Element, Error};

/// A stencil of a text, and how it is to be computed.
pub struct StencilcStencil {
    _nobody_looks_inside: (),
}

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

/// What a stencil declares as a field. Texts are there until the stencil is freed.
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
    /// Whether it has the axes j and i, the last two of its array.
    pub has_columns: i32,
    /// Whether it has the axis k, the first of its array: 0, 1, or 2 where it has one level more, between the levels.
    pub has_levels: i32,
}

/// What a stencil declares as a parameter. Texts are there until the stencil is freed.
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

/// What a handle of a stencil stands for.
pub struct Stencil {
    source: Source,
    own: ir::Stencil,
    name: CString,
    /// Names and documentation of fields, then of parameters.
    fields: Vec<[CString; 2]>,
    params: Vec<[CString; 2]>,
    how: Mutex<How>,
}

/// How it is computed.
#[derive(Clone, Default)]
pub struct How {
    precision: Option<Precision>,
    /// What computes, if it is said.
    pub device: Option<Device>,
    choices: Option<Choices>,
    settings: Vec<(String, String)>,
}

impl Stencil {
    fn new(source: Source, name: Option<&str>) -> Result<Self, Error> {
        let lowered = check(&source);
        if lowered.diagnostics.iter().any(|told| told.severity == Severity::Error) {
            return Err(Error::input(Failure::wrong(lowered.diagnostics, &source).to_string().trim_end()));
        }
        let names: Vec<&str> = lowered.stencils.iter().map(|own| own.name.as_str()).collect();
        let list = names.join(", ");
        let others = lowered.programs.iter().map(|own| own.name.as_str());
        let others = others.chain(lowered.mesh_stencils.iter().map(|own| own.stencil.name.as_str()));
        let others: Vec<&str> =
            others.chain(lowered.mesh_programs.iter().map(|own| own.program.name.as_str())).collect();
        let own = match (name, lowered.stencils.as_slice()) {
            (None, [own]) => own,
            (None, []) => return Err(none_on_grids(&source, &others)),
            (None, _) => {
                return Err(Error::call(format!("`{}` has {} stencils: {list}", source.name, names.len()))
                    .help("name one of them"));
            }
            (Some(name), all) => all.iter().find(|own| own.name == name).ok_or_else(|| {
                if others.contains(&name) {
                    return none_on_grids(&source, &others);
                }
                let error = Error::call(format!("`{}` has no stencil `{name}`", source.name));
                match guess(name, names.iter().copied()) {
                    Some(guess) => error.help(format!("did you mean `{guess}`?")),
                    None => error.help(format!("it has {list}")),
                }
            })?,
        };
        let texts = |name: &str, doc: &stencilc_compiler::text::FreeText| [c_text(name), c_text(doc.as_told())];
        Ok(Self {
            name: c_text(&own.name),
            fields: declared(own).map(|field| texts(&field.name, &field.doc)).collect(),
            params: own.params.iter().map(|(_, param)| texts(&param.name, &param.doc)).collect(),
            own: own.clone(),
            how: Mutex::default(),
            source,
        })
    }

    fn how(&self) -> MutexGuard<'_, How> {
        // What is changed there is changed at once.
        self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be computed, and how.
    pub fn job(&self) -> (Job, How) {
        let how = self.how().clone();
        let (program, _) = called::once(&self.own, false);
        let job = Job::of(Subject::Grid(program)).standing_in(&self.source);
        let job = how.choices.clone().into_iter().fold(job, Job::choices);
        let job = how.precision.into_iter().fold(job, Job::precision);
        let job = how.settings.iter().fold(job, |job, (name, value)| job.set(name, value));
        (job, how)
    }

    /// What is done with a field of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn role(&self, name: &str) -> Result<Role, Error> {
        declared(&self.own).find(|own| own.name == name).map(|own| own.role).ok_or_else(|| {
            let error = Error::call(format!("stencil `{}` has no field `{name}`", self.own.name));
            let names: Vec<&str> = declared(&self.own).map(|own| own.name.as_str()).collect();
            match guess(name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("its fields are {}", names.join(", "))),
            }
        })
    }

    fn set(&self, name: &str, kind: Kind, value: String) -> Result<(), Error> {
        let params: Vec<&ir::Param> = self.own.params.iter().map(|(_, own)| own).collect();
        let Some(param) = params.iter().find(|own| own.name == name) else {
            let error = Error::call(format!("stencil `{}` has no parameter `{name}`", self.own.name));
            let names: Vec<&str> = params.iter().map(|own| own.name.as_str()).collect();
            return Err(match guess(name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None if names.is_empty() => error.help("it has none"),
                None => error.help(format!("its parameters are {}", names.join(", "))),
            });
        };
        if param.kind != kind {
            let own = param.kind.name();
            return Err(Error::call(format!(
                "the parameter `{name}` is {own}, and its value is said to be {}",
                kind.name()
            ))
            .help(format!("call stencilc_set_{own}")));
        }
        let mut how = self.how();
        how.settings.retain(|(own, _)| own != name);
        how.settings.push((name.to_owned(), value));
        Ok(())
    }
}

fn none_on_grids(source: &Source, others: &[&str]) -> Error {
    let named: Vec<String> = others.iter().map(|own| format!("`{own}`")).collect();
    let error = Error::call(format!("`{}` has no stencil on a grid of that name", source.name));
    match named.is_empty() {
        true => error.help("write one: `stencil copy { in a; out b; b = a }`"),
        false => error.help(format!(
            "{} run over a mesh or in steps, and hold their arrays by themselves: `stencilc run` and the package for Python compute them",
            named.join(", ")
        )),
    }
}

/// The fields that have arrays.
fn declared(own: &ir::Stencil) -> impl Iterator<Item = &ir::Field> {
    own.fields.iter().map(|(_, field)| field).filter(|field| field.role != Role::Carried)
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

/// Hands out what was made, or nothing.
///
/// # Safety
/// There is room for a pointer, or it is null.
unsafe fn made<T>(out: *mut *mut T, make: impl FnOnce() -> Result<Held, Error>) -> StencilcStatus {
    guarded(|| {
        if out.is_null() {
            return Err(Error::call("the place for the handle is a null pointer").help("give the address of a pointer"));
        }
        // SAFETY: the caller's.
        unsafe { out.write(std::ptr::null_mut()) };
        let held = make()?;
        // SAFETY: as above.
        unsafe { out.write(handles::give(held)) };
        Ok(())
    })
}

/// Compiles a text. Messages call it by `name`; `stencil` says which of its stencils is meant, and may be null where it has one.
///
/// # Safety
/// Texts end with a zero byte, and there is room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_compile(
    source: *const c_char,
    name: *const c_char,
    stencil: *const c_char,
    out: *mut *mut StencilcStencil,
) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe {
        made(out, || {
            let stencil = if stencil.is_null() { None } else { Some(text(stencil, "the name of the stencil")?) };
            let source = texts::in_memory(text(name, "the name of the text")?, text(source, "the source")?)?;
            Ok(Held::Stencil(Arc::new(Stencil::new(source, stencil)?)))
        })
    }
}

/// Compiles a file, or a stencil that comes along: `file` is a path, or a name without dots and slashes. `stencil` as in
/// stencilc_compile().
///
/// # Safety
/// Texts end with a zero byte, and there is room for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_load(
    file: *const c_char,
    stencil: *const c_char,
    out: *mut *mut StencilcStencil,
) -> StencilcStatus {
    // SAFETY: the caller's.
    unsafe {
        made(out, || {
            let stencil = if stencil.is_null() { None } else { Some(text(stencil, "the name of the stencil")?) };
            let source = texts::open(text(file, "the name of the file")?)?;
            Ok(Held::Stencil(Arc::new(Stencil::new(source, stencil)?)))
        })
    }
}

/// Frees a stencil; null is none. Calls of it stay.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_free(stencil: *mut StencilcStencil) -> StencilcStatus {
    guarded(|| handles::free(stencil, |held| matches!(held, Held::Stencil(_)), "a stencil"))
}

/// The name of a stencil, which is there until it is freed; null if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_name(stencil: *const StencilcStencil) -> *const c_char {
    answered(std::ptr::null(), || Ok(handles::stencil(stencil)?.name.as_ptr()))
}

/// How many fields a stencil has; 0 if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_field_count(stencil: *const StencilcStencil) -> usize {
    answered(0, || Ok(handles::stencil(stencil)?.fields.len()))
}

/// How many parameters a stencil has; 0 if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_parameter_count(stencil: *const StencilcStencil) -> usize {
    answered(0, || Ok(handles::stencil(stencil)?.params.len()))
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

/// Says what a field of a stencil is, by its number. `size` of the struct has to be set.
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
        let own = handles::stencil(stencil)?;
        if out.is_null() {
            return Err(Error::call("the place for the field is a null pointer"));
        }
        // SAFETY: the caller's.
        let size = unsafe { (&raw const (*out).size).read() };
        check_size(size, size_of::<StencilcField>(), "StencilcField")?;
        let found = declared(&own.own).nth(number).zip(own.fields.get(number));
        let (field, [name, documentation]) = found.ok_or_else(|| beyond("field", number, own.fields.len()))?;
        let precision = own.how().precision.unwrap_or_default();
        let said = StencilcField {
            size,
            name: name.as_ptr(),
            documentation: documentation.as_ptr(),
            role: match field.role {
                Role::InOut => STENCILC_UPDATE,
                role if role.is_written() => STENCILC_WRITE,
                _ => STENCILC_READ,
            },
            element: number_of(element_of(field.stored, precision)),
            has_columns: field.place.horizontal.into(),
            has_levels: match field.place.levels {
                Levels::None => 0,
                Levels::Full => 1,
                Levels::Interfaces => 2,
            },
        };
        // SAFETY: the caller's.
        unsafe { out.write(said) };
        Ok(())
    })
}

/// Says what a parameter of a stencil is, by its number. `size` of the struct has to be set.
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
        let own = handles::stencil(stencil)?;
        if out.is_null() {
            return Err(Error::call("the place for the parameter is a null pointer"));
        }
        // SAFETY: the caller's.
        let size = unsafe { (&raw const (*out).size).read() };
        check_size(size, size_of::<StencilcParameter>(), "StencilcParameter")?;
        let found = own.own.params.iter().nth(number).zip(own.params.get(number));
        let ((_, param), [name, documentation]) = found.ok_or_else(|| beyond("parameter", number, own.params.len()))?;
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
    Error::call(format!("there is no {what} {number}: the stencil has {count}, and the first is 0"))
}

/// Says what `real` is, of all that is bound from now on: STENCILC_F64, which it is if nothing is said, or STENCILC_F32.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_set_precision(stencil: *mut StencilcStencil, element: i32) -> StencilcStatus {
    guarded(|| {
        let precision = match element {
            STENCILC_F64 => Precision::F64,
            STENCILC_F32 => Precision::F32,
            _ => {
                return Err(Error::call(format!("{element} is no precision")).help("give STENCILC_F64 or STENCILC_F32"));
            }
        };
        handles::stencil(stencil)?.how().precision = Some(precision);
        Ok(())
    })
}

/// Says what computes all that is bound from now on: `cpu`, the interpreter; `native`, kernels on the CPU, which the C++ compiler makes;
/// `cuda:0` and so on. If nothing is said, it is the GPU where arrays lie, or else `cpu`.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_device(stencil: *mut StencilcStencil, device: *const c_char) -> StencilcStatus {
    guarded(|| {
        let own = handles::stencil(stencil)?;
        // SAFETY: the caller's.
        let name = unsafe { text(device, "the name of the device") }?;
        let device =
            name.parse().map_err(|help: String| Error::call(format!("there is no device `{name}`")).help(help))?;
        own.how().device = Some(device);
        Ok(())
    })
}

/// Chooses the kernel of all that is bound from now on, by options of the command line, as `--access tile --tile 2x4`.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_options(stencil: *mut StencilcStencil, options: *const c_char) -> StencilcStatus {
    guarded(|| {
        let own = handles::stencil(stencil)?;
        // SAFETY: the caller's.
        let words = unsafe { text(options, "what chooses the kernel") }?;
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let (choices, _) = texts::choices(&words)?;
        let mut how = own.how();
        if words.iter().any(|word| word.starts_with("--precision")) {
            how.precision = Some(choices.precision);
        }
        how.choices = Some(choices);
        Ok(())
    })
}

/// Sets a parameter that is a real number, for all that is bound from now on.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_real(
    stencil: *mut StencilcStencil,
    name: *const c_char,
    value: f64,
) -> StencilcStatus {
    guarded(|| {
        let own = handles::stencil(stencil)?;
        // SAFETY: the caller's.
        let name = unsafe { text(name, "the name of the parameter") }?;
        if !value.is_finite() {
            return Err(Error::call(format!("{value} is no value for the parameter `{name}`: parameters are finite")));
        }
        own.set(name, Kind::Real, value.to_string())
    })
}

/// Sets a parameter that is a whole number, for all that is bound from now on.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_int(
    stencil: *mut StencilcStencil,
    name: *const c_char,
    value: i32,
) -> StencilcStatus {
    guarded(|| {
        let own = handles::stencil(stencil)?;
        // SAFETY: the caller's.
        own.set(unsafe { text(name, "the name of the parameter") }?, Kind::Int, value.to_string())
    })
}

/// Sets a parameter that is a truth value, 0 if it is not, for all that is bound from now on.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_bool(
    stencil: *mut StencilcStencil,
    name: *const c_char,
    value: c_int,
) -> StencilcStatus {
    guarded(|| {
        let own = handles::stencil(stencil)?;
        // SAFETY: the caller's.
        own.set(unsafe { text(name, "the name of the parameter") }?, Kind::Bool, (value != 0).to_string())
    })
}
