//! NCCL, which sends from the memory of one GPU to that of another, in other processes and on other hosts, without the hosts' memory between.
//!
//! It is found when ranks on GPUs first start, and its calls are looked up one by one. Where one rank has none, all go through the hosts.

use super::Gpu;
use super::driver::{DeviceUuid, uuid};
use crate::error::{Error, Result};
use crate::nvrtc;
use crate::ranks::{About, Freight, Memory, Ranks};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The variable that names NCCL's library, or its folder; `off` lets ranks go through the hosts' memory.
pub const VARIABLE: &str = "STENCILC_NCCL";

/// The name of the library's file.
const FILE: &str = "libnccl.so.2";

/// The oldest that is used: point-to-point in graphs that are recorded.
const OLDEST: c_int = 21_100;

/// `ncclInt8`.
const BYTES: c_int = 0;

/// What ranks of one communicator know it by.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

type Handle = *mut c_void;
type Status = c_int;

/// The calls that are used, with the types of `nccl.h`, which are those of each version from 2 on.
struct Calls {
    version: unsafe extern "C" fn(*mut c_int) -> Status,
    unique_id: unsafe extern "C" fn(*mut UniqueId) -> Status,
    begin: unsafe extern "C" fn(*mut Handle, c_int, UniqueId, c_int) -> Status,
    words: unsafe extern "C" fn(Status) -> *const c_char,
    group_start: unsafe extern "C" fn() -> Status,
    group_end: unsafe extern "C" fn() -> Status,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Handle, *mut c_void) -> Status,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Handle, *mut c_void) -> Status,
}

/// The library.
pub struct Nccl {
    calls: Calls,
    /// Its version: 2.27.3 is 22703.
    pub version: c_int,
    /// Where it was found, as far as that is known.
    pub place: PathBuf,
    _library: Library,
}

/// How to get it.
fn remedy() -> String {
    format!(
        "`pip install nvidia-nccl-cu13` or `apt install libnccl2` brings it, and {VARIABLE} names the library or its folder; \
         {VARIABLE}=off goes through the hosts' memory without a word"
    )
}

/// Whether somebody has said that ranks are to go through the hosts' memory.
pub fn is_off() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|named| named == "off")
}

impl Nccl {
    /// Finds it, once in a process.
    ///
    /// # Errors
    /// There is none that can be used.
    pub fn find() -> Result<&'static Self> {
        static FOUND: OnceLock<Result<Nccl>> = OnceLock::new();
        FOUND.get_or_init(|| Self::open(std::env::var_os(VARIABLE).map(PathBuf::from))).as_ref().map_err(Error::clone)
    }

    fn open(named: Option<PathBuf>) -> Result<Self> {
        let named = named.filter(|named| !named.as_os_str().is_empty());
        let path = match &named {
            Some(named) if named == Path::new("off") => {
                return Err(Error::input(format!("{VARIABLE} is `off`")).help("unset it"));
            }
            Some(named) if named.is_dir() => named.join(FILE),
            Some(named) => named.clone(),
            // The loader looks for it, if no folder has it that somebody named.
            None => nvrtc::further()
                .into_iter()
                .map(|folder| folder.join(FILE))
                .find(|file| file.is_file())
                .unwrap_or_else(|| FILE.into()),
        };
        let failed = |why: String| {
            let what = match &named {
                Some(named) => format!("{VARIABLE} is `{}`, which is no NCCL: {why}", named.display()),
                None => format!("NCCL is not on this machine: {why}"),
            };
            Error::input(what).help(remedy())
        };
        // SAFETY: opening NCCL runs its initialisers, which are made for it; whoever names another library means it.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|error| failed(error.to_string()))?;
        macro_rules! call {
            ($symbol:literal) => {
                // SAFETY: the types are those of `nccl.h`, and the library is kept beside its calls.
                *unsafe { library.get($symbol) }.map_err(|_| failed(format!("it has no `{}`", $symbol)))?
            };
        }
        let calls = Calls {
            version: call!("ncclGetVersion"),
            unique_id: call!("ncclGetUniqueId"),
            begin: call!("ncclCommInitRank"),
            words: call!("ncclGetErrorString"),
            group_start: call!("ncclGroupStart"),
            group_end: call!("ncclGroupEnd"),
            send: call!("ncclSend"),
            receive: call!("ncclRecv"),
        };
        let mut version = 0;
        // SAFETY: the answer goes into an integer that is there.
        let status = unsafe { (calls.version)(&mut version) };
        if status != 0 || version < OLDEST {
            return Err(failed(format!("its version is {version}, and {OLDEST} is the oldest that is used")));
        }
        Ok(Self { calls, version, place: path, _library: library })
    }

    /// Its version.
    pub fn numbers(&self) -> [c_int; 3] {
        [self.version / 10_000, self.version / 100 % 100, self.version % 100]
    }

    fn succeed(&self, status: Status, doing: &str) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: it returns a text that stays.
        let words = unsafe { CStr::from_ptr((self.calls.words)(status)) }.to_string_lossy();
        Err(Error::machine(format!("NCCL cannot {doing}: {words}"))
            .help(format!("NCCL_DEBUG=WARN says more; {VARIABLE}=off goes through the hosts' memory")))
    }
}

/// The GPUs of all ranks, between which NCCL sends.
pub struct Communicator {
    nccl: &'static Nccl,
    handle: Handle,
    device: DeviceUuid,
}

// SAFETY: NCCL's calls of one communicator may come from any thread, one after the other; a run is asked by one at a time.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

/// What a rank tells the others before they begin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Told {
    /// The version of its NCCL, or why there is none.
    version: std::result::Result<c_int, String>,
    /// Its GPU.
    device: DeviceUuid,
    /// Whether its communicator is there already.
    is_ready: bool,
}

/// What all come to, of what each has told.
enum Way {
    /// As it is.
    Ready,
    /// A new communicator.
    New,
    /// Through the hosts.
    Hosts(Error),
}

fn way(told: &[Told]) -> Way {
    if told.iter().all(|own| own.is_ready) {
        return Way::Ready;
    }
    let hosts = |rank: usize, why: &str| Way::Hosts(Error::input(format!("on rank {rank}, {why}")).help(remedy()));
    for (rank, own) in told.iter().enumerate() {
        match &own.version {
            Err(why) => return hosts(rank, why),
            Ok(version) if told[0].version != Ok(*version) => {
                return hosts(rank, &format!("NCCL has another version, {version}, than on rank 0"));
            }
            Ok(_) => {}
        }
        if let Some(other) = told[..rank].iter().position(|other| other.device == own.device) {
            let message = format!("ranks {other} and {rank} share a GPU, and NCCL wants one for each");
            return Way::Hosts(Error::input(message).help("start as many processes as there are GPUs"));
        }
    }
    Way::New
}

impl Communicator {
    /// Sees to it that the ranks have a way between their GPUs, if there is NCCL: all ask.
    ///
    /// # Errors
    /// There is NCCL on all, and it fails.
    pub fn reach(gpu: &Gpu, ranks: &Ranks) -> Result<()> {
        let device = uuid(gpu.context.device)?;
        let nccl = Nccl::find();
        let is_ready = ranks.between_gpus(|known| known.is_some_and(|known| known.device == device));
        let own = Told {
            version: nccl.as_ref().map(|nccl| nccl.version).map_err(|error| error.message.clone()),
            device,
            is_ready,
        };
        let bytes = serde_json::to_vec(&own).map_err(|error| Error::check(error.to_string()))?;
        let told: Vec<Told> = ranks
            .gather(About::Agreement, &bytes)?
            .iter()
            .map(|bytes| serde_json::from_slice(bytes))
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::check(format!("another rank says of its GPU what cannot be read: {error}")))?;
        match (way(&told), nccl) {
            (Way::Ready, _) => Ok(()),
            (Way::New, Ok(nccl)) => {
                let begun = Self::begin(nccl, gpu, ranks, device);
                // All of them have it, or the first that has none is told by all.
                ranks.agree(begun.as_ref().err())?;
                ranks.set_between_gpus(begun.map(Ok)?);
                Ok(())
            }
            (Way::New, Err(error)) | (Way::Hosts(error), _) => {
                ranks.set_between_gpus(Err(error));
                Ok(())
            }
        }
    }

    fn begin(nccl: &'static Nccl, gpu: &Gpu, ranks: &Ranks, device: DeviceUuid) -> Result<Self> {
        gpu.context.bind()?;
        let mut id = UniqueId([0; 128]);
        let made = match ranks.is_first() {
            // SAFETY: it writes as many bytes as there are.
            true => nccl.succeed(unsafe { (nccl.calls.unique_id)(&mut id) }, "begin"),
            false => Ok(()),
        };
        ranks.agree(made.as_ref().err())?;
        let told = ranks.gather(About::Agreement, &id.0)?;
        let first = told.first().and_then(|bytes| <[u8; 128]>::try_from(&bytes[..]).ok());
        id.0 = first.ok_or_else(|| Error::check("the first rank does not say by what it knows the others"))?;
        let (mut handle, count, rank) = (null_mut(), ranks.ranks() as c_int, ranks.rank() as c_int);
        // SAFETY: the handle goes into a pointer that is there, and the GPU's context is current.
        let status = unsafe { (nccl.calls.begin)(&mut handle, count, id, rank) };
        nccl.succeed(status, "reach the GPUs of all ranks")?;
        Ok(Self { nccl, handle, device })
    }

    /// Sends memory to others and fills memory with what comes of them, in the order of the GPU's work.
    ///
    /// # Errors
    /// NCCL fails.
    pub fn swap(
        &self,
        gpu: &Gpu,
        sent: &[Freight<Memory<super::Buffer>>],
        rooms: &[Freight<Memory<super::Buffer>>],
    ) -> Result<()> {
        gpu.context.bind()?;
        let stream = gpu.context.stream.load(std::sync::atomic::Ordering::Relaxed).cast::<c_void>();
        let calls = &self.nccl.calls;
        let doing = "send to other ranks";
        // SAFETY: a group needs nothing but NCCL.
        self.nccl.succeed(unsafe { (calls.group_start)() }, doing)?;
        // Between two ranks the n-th that is sent is the n-th that comes.
        let mut all = Ok(());
        for own in in_order(sent) {
            let (place, peer) = (own.room.buffer.pointer(0) as *const c_void, own.peer as c_int);
            // SAFETY: the buffer has as many bytes, and is freed in the order of the stream.
            let status = unsafe { (calls.send)(place, own.count, BYTES, peer, self.handle, stream) };
            all = all.and(self.nccl.succeed(status, doing));
        }
        for own in in_order(rooms) {
            let (place, peer) = (own.room.buffer.pointer(0) as *mut c_void, own.peer as c_int);
            // SAFETY: as above.
            let status = unsafe { (calls.receive)(place, own.count, BYTES, peer, self.handle, stream) };
            all = all.and(self.nccl.succeed(status, doing));
        }
        // SAFETY: as above. It is ended whatever became of what is in it.
        all.and(self.nccl.succeed(unsafe { (calls.group_end)() }, doing))
    }
}

/// Those that are not empty, in the order of their tags.
fn in_order<P>(all: &[Freight<P>]) -> Vec<&Freight<P>> {
    let mut some: Vec<_> = all.iter().filter(|own| own.count > 0).collect();
    some.sort_by_key(|own| (own.peer, own.tag));
    some
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(version: c_int, device: u8) -> Told {
        Told { version: Ok(version), device: [device; 16], is_ready: false }
    }

    #[test]
    fn all_have_it_or_none_takes_it() {
        assert!(matches!(way(&[told(22703, 1), told(22703, 2)]), Way::New));
        let ready = |device| Told { is_ready: true, ..told(22703, device) };
        assert!(matches!(way(&[ready(1), ready(2)]), Way::Ready));
        assert!(matches!(way(&[ready(1), told(22703, 2)]), Way::New), "all of them begin anew");
        let hosts = |told: &[Told]| match way(told) {
            Way::Hosts(error) => error.message,
            Way::Ready | Way::New => panic!("there is a way"),
        };
        assert!(hosts(&[told(22703, 1), told(22304, 2)]).contains("on rank 1, NCCL has another version, 22304"));
        assert!(hosts(&[told(22703, 1), told(22703, 2), told(22703, 1)]).contains("ranks 0 and 2 share a GPU"));
        let none = Told { version: Err("it is not there".to_owned()), ..told(0, 3) };
        assert!(hosts(&[told(22703, 1), none]).contains("on rank 1, it is not there"));
    }

    #[test]
    fn what_is_no_nccl_is_told() {
        let said = |named: Option<&str>| Nccl::open(named.map(PathBuf::from)).err().map(|error| error.to_string());
        assert!(said(Some("off")).is_some_and(|said| said.contains("is `off`")));
        assert!(
            said(Some("/nowhere")).is_some_and(|said| said.contains("STENCILC_NCCL is `/nowhere`, which is no NCCL"))
        );
        // The C library is one, and not this.
        assert!(said(Some("libc.so.6")).is_some_and(|said| said.contains("it has no `ncclGetVersion`")));
    }

    #[test]
    fn what_goes_between_two_is_in_one_order() {
        let own = |peer, tag, count| Freight { peer, tag, count, room: () };
        let all = [own(1, 2, 8), own(0, 5, 8), own(1, 0, 8), own(0, 1, 0)];
        let order: Vec<_> = in_order(&all).iter().map(|own| (own.peer, own.tag)).collect();
        assert_eq!(order, [(0, 5), (1, 0), (1, 2)]);
    }
}
