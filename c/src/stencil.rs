//! Texts: the stencil or program that is meant of one, and how it is to be computed.

use crate::declared::{STENCILC_F32, STENCILC_F64};
use crate::handles::{self, Held};
use crate::status::{StencilcStatus, answered, guarded};
use crate::text::{c_text, text};
use command_line::texts;
use std::ffi::{CString, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};
use stencilc_compiler::check;
use stencilc_compiler::diagnostic::{Failure, Severity, guess};
use stencilc_compiler::ir::{Home, Kind, Param, Precision, Role, called};
use stencilc_compiler::plan::Choices;
use stencilc_compiler::source::Source;
use stencilc_runtime::device::MOST_DEVICES;
use stencilc_runtime::job::{Job, Subject};
use stencilc_runtime::mesh::program::alone;
use stencilc_runtime::{Device, Error};

/// A stencil or program of a text, and how it is to be computed.
pub struct StencilcStencil {
    _nobody_looks_inside: (),
}

/// What a handle of a stencil or program stands for.
pub struct Stencil {
    source: Source,
    pub subject: Subject,
    is_program: bool,
    name: CString,
    /// Names and documentation of fields, and what each is on; then of parameters.
    pub fields: Vec<[CString; 3]>,
    pub params: Vec<[CString; 2]>,
    how: Mutex<How>,
}

impl Held for Stencil {
    const WHAT: &'static str = "a stencil";
}

/// How it is computed.
#[derive(Clone, Default)]
pub struct How {
    pub precision: Option<Precision>,
    /// What computes, if it is said.
    pub device: Option<Device>,
    /// On how many devices what holds its arrays by itself is computed; on one if it is 0.
    devices: usize,
    /// How many levels there are over a mesh, if arrays do not tell.
    pub levels: Option<usize>,
    choices: Option<Choices>,
    settings: Vec<(String, String)>,
}

/// One of a text: what it is, and whether it is a program.
struct Found {
    subject: Subject,
    is_program: bool,
}

/// The stencil or program of a text that has this name; without one, its only stencil on a grid, or else the only one that there is.
///
/// # Errors
/// There is none, or several.
fn found(source: &Source, name: Option<&str>) -> Result<Found, Error> {
    let lowered = check(source);
    if lowered.diagnostics.iter().any(|told| told.severity == Severity::Error) {
        return Err(Error::input(Failure::wrong(lowered.diagnostics, source).to_string().trim_end()));
    }
    let stencil = |subject| Found { subject, is_program: false };
    let program = |subject| Found { subject, is_program: true };
    let on_grids = lowered.stencils.iter().map(|own| stencil(Subject::Grid(called::once(own, false).0)));
    let over_meshes = lowered.mesh_stencils.iter().map(|own| stencil(Subject::Mesh(alone(own))));
    let programs = lowered.programs.iter().cloned().map(|own| program(Subject::Grid(own)));
    let programs = programs.chain(lowered.mesh_programs.iter().cloned().map(|own| program(Subject::Mesh(own))));
    let all: Vec<Found> = on_grids.chain(over_meshes).chain(programs).collect();
    let names: Vec<String> = all.iter().map(|own| own.subject.name().to_owned()).collect();
    let list = names.join(", ");
    let (count, stencils) = (all.len(), lowered.stencils.len());
    let chosen = match name {
        Some(name) => all.into_iter().find(|own| own.subject.name() == name),
        // Stencils on grids come first.
        None if stencils == 1 || count == 1 => all.into_iter().next(),
        None => None,
    };
    chosen.ok_or_else(|| {
        let message = match name {
            None if count == 0 => format!("`{}` has no stencil and no program", source.name),
            None => format!("`{}` has several stencils and programs: {list}", source.name),
            Some(name) => format!("`{}` has no stencil or program `{name}`", source.name),
        };
        Error::call(message).help(match name {
            None if count == 0 => "write one: `stencil copy { in a; out b; b = a }`".to_owned(),
            None => "name one of them".to_owned(),
            Some(name) => match guess(name, names.iter().map(String::as_str)) {
                Some(guess) => format!("did you mean `{guess}`?"),
                None => format!("it has {list}"),
            },
        })
    })
}

impl Stencil {
    fn new(source: Source, name: Option<&str>) -> Result<Self, Error> {
        let Found { subject, is_program } = found(&source, name)?;
        let on = |home: Option<Home>| match (&subject, home) {
            (Subject::Mesh(program), Some(home)) => {
                let set = &program.mesh.sets[home.set].name;
                home.map.map_or_else(|| set.clone(), |map| format!("{set}.{}", program.mesh.maps[map].name))
            }
            _ => String::new(),
        };
        let fields = subject
            .fields()
            .map(|(field, _)| [c_text(&field.name), c_text(field.doc.as_told()), c_text(&on(field.place.home))]);
        let fields = fields.collect();
        Ok(Self {
            name: c_text(subject.name()),
            fields,
            params: subject.params().map(|own| [c_text(&own.name), c_text(own.doc.as_told())]).collect(),
            subject,
            is_program,
            how: Mutex::default(),
            source,
        })
    }

    /// `stencil`, `program`.
    fn what(&self) -> &'static str {
        if self.is_program { "program" } else { "stencil" }
    }

    /// How it is computed.
    pub fn how(&self) -> MutexGuard<'_, How> {
        // What is changed there is changed at once.
        self.how.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be computed, and how.
    pub fn job(&self) -> (Job, How) {
        let how = self.how().clone();
        let job = Job::of(self.subject.clone()).standing_in(&self.source).devices(how.devices);
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
        self.subject.fields().find(|(own, _)| own.name == name).map(|(_, role)| role).ok_or_else(|| {
            let names: Vec<&str> = self.subject.fields().map(|(own, _)| own.name.as_str()).collect();
            let error = Error::call(format!("{} `{}` has no field `{name}`", self.what(), self.subject.name()));
            match guess(name, names.iter().copied()) {
                Some(guess) => error.help(format!("did you mean `{guess}`?")),
                None => error.help(format!("its fields are {}", names.join(", "))),
            }
        })
    }

    fn set(&self, name: &str, kind: Kind, value: String) -> Result<(), Error> {
        let params: Vec<&Param> = self.subject.params().collect();
        let Some(param) = params.iter().find(|own| own.name == name) else {
            let error = Error::call(format!("{} `{}` has no parameter `{name}`", self.what(), self.subject.name()));
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

/// Compiles a text. Messages call it by `name`; `stencil` says which of its stencils and programs is meant, and may be null where it has one
/// stencil on a grid, or one in all.
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
        handles::made(out, || {
            let stencil = if stencil.is_null() { None } else { Some(text(stencil, "the name of the stencil")?) };
            let source = texts::in_memory(text(name, "the name of the text")?, text(source, "the source")?)?;
            Stencil::new(source, stencil)
        })
    }
}

/// Compiles a file, or what comes along: `file` is a path, or a name without dots and slashes. `stencil` as in
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
        handles::made(out, || {
            let stencil = if stencil.is_null() { None } else { Some(text(stencil, "the name of the stencil")?) };
            let source = texts::open(text(file, "the name of the file")?)?;
            Stencil::new(source, stencil)
        })
    }
}

/// Frees a stencil or program; null is none. Calls and runs of it stay.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_free(stencil: *mut StencilcStencil) -> StencilcStatus {
    handles::free::<Stencil, _>(stencil)
}

/// The name of a stencil or program, which is there until it is freed; null if the handle is none.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_name(stencil: *const StencilcStencil) -> *const c_char {
    answered(std::ptr::null(), || Ok(handles::held::<Stencil, _>(stencil)?.name.as_ptr()))
}

/// Says what `real` is, of all that is bound or begun from now on: STENCILC_F64, which it is if nothing is said, or STENCILC_F32.
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
        handles::held::<Stencil, _>(stencil)?.how().precision = Some(precision);
        Ok(())
    })
}

/// Says what computes all that is bound or begun from now on: `cpu`, the interpreter; `native`, kernels on the CPU, which the C++ compiler makes;
/// `cuda:0` and so on. If nothing is said, it is the GPU where arrays lie, or else `cpu`.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_device(stencil: *mut StencilcStencil, device: *const c_char) -> StencilcStatus {
    guarded(|| {
        let own = handles::held::<Stencil, _>(stencil)?;
        // SAFETY: the caller's.
        let name = unsafe { text(device, "the name of the device") }?;
        let device =
            name.parse().map_err(|help: String| Error::call(format!("there is no device `{name}`")).help(help))?;
        own.how().device = Some(device);
        Ok(())
    })
}

/// Says on how many devices all is computed that is begun from now on: on GPUs with the numbers that follow, or as many parts on the CPU. The
/// bits are those of one.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_set_devices(stencil: *mut StencilcStencil, count: usize) -> StencilcStatus {
    guarded(|| {
        let own = handles::held::<Stencil, _>(stencil)?;
        if count == 0 {
            return Err(Error::call("0 devices compute nothing").help("give 1 or more"));
        }
        if count > MOST_DEVICES {
            return Err(Error::call(format!("nobody has {count} devices")).help(format!("give 1 to {MOST_DEVICES}")));
        }
        own.how().devices = count;
        Ok(())
    })
}

/// Says how many levels there are over the meshes of all that is begun from now on, if no array tells.
#[unsafe(no_mangle)]
pub extern "C" fn stencilc_set_levels(stencil: *mut StencilcStencil, levels: usize) -> StencilcStatus {
    guarded(|| {
        handles::held::<Stencil, _>(stencil)?.how().levels = Some(levels);
        Ok(())
    })
}

/// Chooses the kernel of all on grids that is bound or begun from now on, by options of the command line, as `--access tile --tile 2x4`.
///
/// # Safety
/// The text ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stencilc_set_options(stencil: *mut StencilcStencil, options: *const c_char) -> StencilcStatus {
    guarded(|| {
        let own = handles::held::<Stencil, _>(stencil)?;
        // SAFETY: the caller's.
        let words = unsafe { text(options, "what chooses the kernel") }?;
        if let Subject::Mesh(program) = &own.subject {
            let name = &program.program.name;
            return Err(Error::call(format!("options choose kernels on grids, and `{name}` runs over a mesh"))
                .help("over a mesh kernels are the usual ones"));
        }
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

/// Sets a parameter that is a real number, for all that is bound or begun from now on.
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
        let own = handles::held::<Stencil, _>(stencil)?;
        // SAFETY: the caller's.
        let name = unsafe { text(name, "the name of the parameter") }?;
        if !value.is_finite() {
            return Err(Error::call(format!("{value} is no value for the parameter `{name}`: parameters are finite")));
        }
        // As people write it: 1e300, not 301 digits.
        own.set(name, Kind::Real, format!("{value:?}"))
    })
}

/// Sets a parameter that is a whole number, for all that is bound or begun from now on.
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
        let own = handles::held::<Stencil, _>(stencil)?;
        // SAFETY: the caller's.
        own.set(unsafe { text(name, "the name of the parameter") }?, Kind::Int, value.to_string())
    })
}

/// Sets a parameter that is a truth value, 0 if it is not, for all that is bound or begun from now on.
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
        let own = handles::held::<Stencil, _>(stencil)?;
        // SAFETY: the caller's.
        own.set(unsafe { text(name, "the name of the parameter") }?, Kind::Bool, (value != 0).to_string())
    })
}
