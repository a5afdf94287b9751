//! Ranks that are processes, which `mpirun` or `srun` have started.
//!
//! MPI is not one library: what a communicator is differs from one to the next. So a shim of some lines (`shim.c`) is compiled by the machine's
//! own `mpicc`, once, and kept as kernels are. This program needs MPI neither to be built nor to start.

use super::{Awaited, Parcel, Ranks, Transport};
use crate::error::{Error, Fault, Result, reason};
use crate::files::Scratch;
use crate::{cache, doctor};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_longlong};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// The variable that, set to `off`, lets processes compute by themselves that `mpirun` or `srun` have started.
pub const VARIABLE: &str = "STENCILC_MPI";

/// The variable that names MPI's C compiler.
pub const COMPILER: &str = "MPICC";

/// How whoever starts processes tells each how many there are, and which it is: Open MPI, MPICH and those that are like it, Slurm. Slurm tells
/// its batch scripts, too, how many tasks there are, but not by the name that it has for those of a step.
const STARTERS: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
    ["PMI_SIZE", "PMI_RANK"],
    ["SLURM_STEP_NUM_TASKS", "SLURM_PROCID"],
];

/// The text that the machine's `mpicc` compiles.
const SHIM: &str = include_str!("shim.c");

/// What the shim takes: bytes for another rank, or room for those of another.
#[repr(C)]
struct Raw {
    bytes: *mut u8,
    count: c_longlong,
    peer: c_int,
    tag: c_int,
}

/// What the shim returns where a message has another length than is awaited.
const OTHER_LENGTH: c_int = -1;

type Begin = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type Swap = unsafe extern "C" fn(*const Raw, c_int, *const Raw, c_int) -> c_int;
type Text = unsafe extern "C" fn(c_int, *mut c_char, c_int);
type Abort = unsafe extern "C" fn(c_int);
type End = unsafe extern "C" fn();

/// How many processes were started together, and which this one is, if there are several.
pub fn started() -> Option<[usize; 2]> {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "off") {
        return None;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let told = STARTERS.iter().find_map(|[ranks, rank]| Some([number(ranks)?, number(rank)?]));
    told.filter(|&[ranks, rank]| ranks > 1 && rank < ranks)
}

/// The ranks that this process is one of, if `mpirun` or `srun` have started several.
///
/// # Errors
/// There is no MPI that could be used, or it fails.
pub fn joined() -> Result<Option<Ranks>> {
    let Some([ranks, rank]) = started() else { return Ok(None) };
    let mpi = Mpi::begin().map_err(|error| Error {
        message: format!("this is process {rank} of {ranks} that were started together, and {}", error.message),
        ..error
    })?;
    let [_, told] = mpi.all;
    if told != ranks {
        return Err(Error::input(format!(
            "{ranks} processes were started together, and MPI knows of {told}: it is not the one that started them"
        ))
        .help(format!("{COMPILER} names the mpicc that belongs to this mpirun or srun")));
    }
    Ok(Some(Ranks::new(mpi)))
}

/// The same, once in a process: for whoever starts several programs.
///
/// # Errors
/// As [`joined`].
pub fn shared() -> Result<Option<Arc<Ranks>>> {
    static JOINED: Mutex<Option<Arc<Ranks>>> = Mutex::new(None);
    let mut known = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    if known.is_none() {
        *known = joined()?.map(Arc::new);
    }
    Ok(known.clone())
}

/// MPI's C compiler.
pub struct Compiler {
    /// The program's file.
    pub program: PathBuf,
    /// Options that it is always given.
    options: Vec<String>,
    /// What it would call, and with which options.
    pub calls: String,
}

impl Compiler {
    /// Finds it: `$MPICC`, or else `mpicc`.
    ///
    /// # Errors
    /// There is none that answers.
    pub fn find() -> Result<Self> {
        let given = std::env::var(COMPILER).ok().filter(|given| !given.trim().is_empty());
        let mut words = given.as_deref().unwrap_or("mpicc").split_whitespace().map(str::to_owned);
        let (name, options): (String, Vec<String>) = (words.next().unwrap_or_default(), words.collect());
        let told = options.clone();
        let remedy = format!(
            "install what programs for MPI are compiled with: `apt install libopenmpi-dev`, `dnf install openmpi-devel`, \
             `module load openmpi`; the variable {COMPILER} names another mpicc"
        );
        let missing = || match &given {
            Some(name) => {
                Error::input(format!("`{name}`, which the variable {COMPILER} names, is no compiler for MPI"))
            }
            None => Error::input("there is no `mpicc` on this machine"),
        };
        let (program, version) = doctor::program(&name).ok_or_else(|| missing().help(remedy.as_str()))?;
        // Both Open MPI and MPICH tell that, and it has the place of the library in it.
        let shown = Command::new(&program).arg("-show").stdin(Stdio::null()).output();
        let shown = shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        Ok(Self { program, options, calls: format!("{version}\n{shown}\n{}", told.join(" ")) })
    }

    /// Which MPI it is of, as far as what it calls tells.
    pub fn library(&self) -> &'static str {
        const KNOWN: [(&str, &str); 4] =
            [("openmpi", "Open MPI"), ("mpich", "MPICH"), ("mvapich", "MVAPICH"), ("intel", "Intel MPI")];
        let calls = self.calls.to_lowercase();
        KNOWN.iter().find(|(sign, _)| calls.contains(sign)).map_or("MPI", |(_, name)| name)
    }

    /// The shim's library: its bytes.
    fn compile(&self) -> Result<Vec<u8>> {
        let folder = Scratch::new()?;
        let (text, made) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
        let failed = |why: &dyn std::fmt::Display| {
            let program = self.program.display();
            Error::input(format!("`{program}` does not compile what ranks need of MPI: {why}"))
                .help(format!(
                    "the variable {COMPILER} names MPI's own compiler, which knows where `mpi.h` is; what it makes goes to the folder \
                     for temporary files, which TMPDIR names"
                ))
        };
        std::fs::write(&text, SHIM).map_err(|error| failed(&error))?;
        let mut command = Command::new(&self.program);
        command.args(&self.options).args(["-O1", "-shared", "-fPIC", "-o"]).arg(&made).arg(&text);
        let output = command.env("LC_ALL", "C").env("TMPDIR", folder.path()).stdin(Stdio::null()).output();
        let output = output.map_err(|error| failed(&error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(&said.lines().take(12).map(|line| format!("\n    {line}")).collect::<String>()));
        }
        std::fs::read(&made).map_err(|error| failed(&error))
    }
}

/// The shim, opened.
struct Shim {
    swap: Swap,
    text: Text,
    abort: Abort,
    end: End,
}

/// One of the processes.
pub struct Mpi {
    /// It is called by one thread at a time.
    shim: Mutex<Shim>,
    all: [usize; 2],
    here: [usize; 2],
}

impl Mpi {
    /// Begins.
    fn begin() -> Result<Self> {
        let compiler = Compiler::find()?;
        let image = cache::shim_cached(&compiler.program, &compiler.calls, SHIM, || compiler.compile())?;
        let folder = Scratch::new()?;
        let file = folder.path().join("shim.so");
        let refuse = |why: &dyn std::fmt::Display| Error::input(format!("MPI cannot be opened: {why}"));
        std::fs::write(&file, image).map_err(|error| refuse(&error))?;
        // What MPI loads later looks for what is loaded already.
        // SAFETY: the library has no initialisers of its own, and those of MPI are meant to be run.
        let library = unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_GLOBAL) };
        let library = library.map_err(|error| refuse(&reason(&error)))?;
        // SAFETY: the shim defines these symbols with these signatures.
        let (begin, swap, text, abort, end) = unsafe {
            let missing = |error: libloading::Error| refuse(&reason(&error));
            (
                *library.get::<Begin>(b"stencilc_mpi_begin").map_err(missing)?,
                *library.get::<Swap>(b"stencilc_mpi_swap").map_err(missing)?,
                *library.get::<Text>(b"stencilc_mpi_text").map_err(missing)?,
                *library.get::<Abort>(b"stencilc_mpi_abort").map_err(missing)?,
                *library.get::<End>(b"stencilc_mpi_end").map_err(missing)?,
            )
        };
        // MPI has threads and handlers of its own, which may be there to the end.
        std::mem::forget(library);
        let shim = Shim { swap, text, abort, end };
        let (mut all, mut here) = ([0; 2], [0; 2]);
        // SAFETY: both have room for two numbers.
        shim.check(unsafe { begin(all.as_mut_ptr(), here.as_mut_ptr()) })?;
        let [all, here] = [all, here].map(|own| own.map(|number| usize::try_from(number).unwrap_or(0)));
        Ok(Self { shim: Mutex::new(shim), all, here })
    }
}

impl Shim {
    /// What MPI returned, as an error with its text.
    fn check(&self, told: c_int) -> Result<()> {
        if told == 0 {
            return Ok(());
        }
        let mut text = [0; 1024];
        // SAFETY: there is room for as many characters.
        unsafe { (self.text)(told, text.as_mut_ptr(), text.len() as c_int) };
        // SAFETY: the shim ends it with a zero.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned();
        Err(Error::input(format!("MPI failed: {text}")))
    }
}

impl Transport for Mpi {
    fn rank(&self) -> usize {
        self.all[0]
    }

    fn ranks(&self) -> usize {
        self.all[1]
    }

    fn on_host(&self) -> [usize; 2] {
        self.here
    }

    fn swap(&self, sent: Vec<Parcel>, awaited: &[Awaited]) -> Result<Vec<Vec<u8>>> {
        let mut came: Vec<Vec<u8>> = awaited.iter().map(|own| vec![0; own.count]).collect();
        let raw = |bytes: *mut u8, count: usize, peer: usize, tag: u32| Raw {
            bytes,
            count: count as c_longlong,
            peer: peer as c_int,
            tag: tag as c_int,
        };
        // The shim only reads what is sent.
        let given = sent.iter().map(|own| raw(own.bytes.as_ptr().cast_mut(), own.bytes.len(), own.to, own.tag));
        let given: Vec<Raw> = given.collect();
        let room = came.iter_mut().zip(awaited);
        let room = room.map(|(bytes, own)| raw(bytes.as_mut_ptr(), own.count, own.from, own.tag));
        let room: Vec<Raw> = room.collect();
        let shim = self.shim.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: what comes is written only as long as the call takes, and what is sent is there until MPI has done with it: for good, if
        // that is not known.
        let told = unsafe { (shim.swap)(given.as_ptr(), given.len() as c_int, room.as_ptr(), room.len() as c_int) };
        if told != 0 {
            std::mem::forget(sent);
        }
        match told {
            OTHER_LENGTH => Err(Error::check("another rank sends more or fewer bytes than are awaited")
                .help("do all of them run the same version of stencilc, with the same options?")),
            told => shim.check(told).map(|()| came),
        }
    }

    fn end_all(&self, status: u8) {
        // Whoever else holds it waits for another rank, which will not answer any more.
        let shim = self.shim.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: it ends the process.
        unsafe { (shim.abort)(c_int::from(status)) };
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        let shim = self.shim.get_mut().unwrap_or_else(PoisonError::into_inner);
        if std::thread::panicking() {
            // The others would wait for this one.
            // SAFETY: it ends the process.
            unsafe { (shim.abort)(c_int::from(Fault::Check.status())) };
        }
        // SAFETY: nothing is under way, or the shim knows.
        unsafe { (shim.end)() };
    }
}
