//! Several processes that compute one program together, as under `mpirun`: each is a *rank*, which has a part of it.
//!
//! ```text
//! mod: what ranks tell each other (Ranks), by whatever brings bytes from one to another (Transport)
//! threads: ranks that are threads of one process    mpi: processes that mpirun or srun have started -> shim.c
//! freight: what goes from the memory of one rank's machine to that of another's
//! ```
//!
//! All ranks are asked the same in the same order. What they tell each other is numbered, so that what was lost, cut short or has come
//! in another's place is an error, and no wrong number.

mod freight;
pub mod mpi;
#[cfg(test)]
mod tests;
pub mod threads;

use crate::cuda;
use crate::cuda::nccl::Communicator;
use crate::device::Device;
use crate::error::{Error, Fault, Result};
pub use freight::{Carrier, Freight, Memory, of_host, through_hosts};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes for another rank.
pub struct Parcel {
    /// Who gets them.
    pub to: usize,
    /// Which they are, of those that it gets from here at once.
    pub tag: u32,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Bytes that another rank sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Who sends them.
    pub from: usize,
    /// Which they are, of those that it sends here at once.
    pub tag: u32,
    /// How many there are.
    pub count: usize,
}

/// What brings bytes from rank to rank.
pub trait Transport: Send + Sync {
    /// Which of all ranks this one is.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// Which of those on this host it is, and how many these are.
    fn on_host(&self) -> [usize; 2];

    /// Sends bytes to others and waits for theirs, which are returned in the order awaited.
    ///
    /// # Errors
    /// Another rank has ended, or does not send as many as are awaited.
    fn swap(&self, sent: Vec<Parcel>, awaited: &[Awaited]) -> Result<Vec<Vec<u8>>>;

    /// Ends all ranks, whatever they do, and returns where it cannot.
    fn end_all(&self, status: u8);
}

/// What stands before the bytes of a message: how many swaps came before, how many bytes there are, of how many parcels, and what it is about.
const HEAD: usize = 24;

/// What ranks tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// What this module asks by itself.
    Agreement,
    /// What a rank looks at of another, of as many variables.
    Halos(usize),
    /// What a variable holds.
    Variable(usize),
    /// The numbers that become one.
    Reduction(usize),
}

impl About {
    fn number(self) -> u32 {
        let (kind, number) = match self {
            Self::Agreement => (0, 0),
            Self::Halos(count) => (1, count),
            Self::Variable(number) => (2, number),
            Self::Reduction(number) => (3, number),
        };
        kind << 24 | number as u32 & 0xff_ffff
    }
}

fn head(turn: u64, count: usize, parcels: u32, about: About) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&turn.to_le_bytes());
    head[8..16].copy_from_slice(&(count as u64).to_le_bytes());
    head[16..20].copy_from_slice(&parcels.to_le_bytes());
    head[20..].copy_from_slice(&about.number().to_le_bytes());
    head
}

/// This process, and those that compute with it.
pub struct Ranks {
    transport: Box<dyn Transport>,
    turn: AtomicU64,
    /// Whether the first rank alone is told what fields hold.
    first_alone: AtomicBool,
    /// The way between the GPUs of all, or why there is none, once somebody has looked for it.
    between_gpus: Mutex<Option<Result<Communicator>>>,
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.ranks())
    }
}

/// The GPU of a rank, of so many that it sees, from the first that is meant on; it has a place among those of its host.
fn of_gpus(first: usize, count: usize, [place, here]: [usize; 2]) -> Result<Device> {
    match first + place {
        _ if count == 1 => Ok(Device::Cuda(first)),
        own if own < count => Ok(Device::Cuda(own)),
        _ => Err(Error::call(format!(
            "{here} processes of this host compute on a GPU each, from cuda:{first} on, and it has {count}"
        ))
        .help(match count.saturating_sub(first) {
            0 => format!("its GPUs are cuda:0 to cuda:{}", count.saturating_sub(1)),
            most => format!("start at most {most} there"),
        })),
    }
}

/// What ranks tell each other of an error.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Told {
    fault: Fault,
    message: String,
    help: Option<String>,
}

impl Ranks {
    /// Those that a transport leads to.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self {
            transport: Box::new(transport),
            turn: AtomicU64::new(0),
            first_alone: AtomicBool::new(false),
            between_gpus: Mutex::default(),
        }
    }

    /// Which of all this one is, from 0.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// How many there are.
    pub fn ranks(&self) -> usize {
        self.transport.ranks()
    }

    /// Which of those on this host this one is, and how many these are.
    pub fn on_host(&self) -> [usize; 2] {
        self.transport.on_host()
    }

    /// Whether it is the first, which prints and writes for all.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The device of this one: of several GPUs of a host, each rank there has one, from that which is meant on. Whoever has started them may
    /// have left each but one to see.
    ///
    /// # Errors
    /// The host has fewer GPUs than ranks.
    pub fn device(&self, device: Device) -> Result<Device> {
        let Device::Cuda(first) = device else { return Ok(device) };
        let count = cuda::availability()?;
        of_gpus(first, count, self.on_host())
    }

    /// Asks the way between the GPUs of all ranks, if there is one.
    pub(crate) fn between_gpus<T>(&self, ask: impl FnOnce(Option<&Communicator>) -> T) -> T {
        let known = self.between_gpus.lock().unwrap_or_else(PoisonError::into_inner);
        ask(known.as_ref().and_then(|known| known.as_ref().ok()))
    }

    /// Says the way between the GPUs of all, or why there is none. One that was there before is left as it is: who ends it waits for the others.
    pub(crate) fn set_between_gpus(&self, way: Result<Communicator>) {
        let before = self.between_gpus.lock().unwrap_or_else(PoisonError::into_inner).replace(way);
        std::mem::forget(before);
    }

    /// Why what goes between the GPUs of ranks goes through the hosts' memory; nothing where it does not, or where there are no GPUs.
    pub fn detour(&self) -> Option<Error> {
        let known = self.between_gpus.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().and_then(|known| known.as_ref().err().cloned())
    }

    /// Ends all ranks, whatever they do, and returns where it cannot.
    pub fn end_all(&self, status: u8) {
        self.transport.end_all(status);
    }

    /// Sends bytes to others and waits for theirs, in the order awaited. All ranks do so. What goes to one of them is one message, in the order
    /// of its tags.
    ///
    /// # Errors
    /// Another rank has ended, or sends something else.
    pub fn swap(&self, about: About, mut sent: Vec<Parcel>, awaited: &[Awaited]) -> Result<Vec<Vec<u8>>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        sent.sort_by_key(|own| (own.to, own.tag));
        let joined = sent.chunk_by(|one, other| one.to == other.to).map(|own| {
            let count = own.iter().map(|own| own.bytes.len()).sum();
            let mut bytes = head(turn, count, own.len() as u32, about).to_vec();
            own.iter().for_each(|own| bytes.extend(&own.bytes));
            Parcel { to: own[0].to, tag: 0, bytes }
        });
        let mut order: Vec<usize> = (0..awaited.len()).collect();
        order.sort_by_key(|&at| (awaited[at].from, awaited[at].tag));
        let groups: Vec<&[usize]> = order.chunk_by(|&a, &b| awaited[a].from == awaited[b].from).collect();
        let wanted = groups.iter().map(|own| {
            let count: usize = own.iter().map(|&at| awaited[at].count).sum();
            Awaited { from: awaited[own[0]].from, tag: 0, count: count + HEAD }
        });
        let wanted: Vec<Awaited> = wanted.collect();
        let came = self.transport.swap(joined.collect(), &wanted)?;
        if came.len() != wanted.len() {
            return Err(Error::check(format!("{} messages are awaited, and {} came", wanted.len(), came.len())));
        }
        let mut all = vec![Vec::new(); awaited.len()];
        for ((bytes, wanted), group) in came.iter().zip(&wanted).zip(groups) {
            let count = wanted.count - HEAD;
            if bytes.get(..HEAD) != Some(&head(turn, count, group.len() as u32, about)) || bytes.len() != wanted.count {
                return Err(Error::check(format!(
                    "rank {} awaits {count} bytes of rank {}, and something else came",
                    self.rank(),
                    wanted.from
                ))
                .help("do all of them run the same version of stencilc, with the same options?"));
            }
            let mut rest = &bytes[HEAD..];
            for &at in group {
                let (own, behind) = rest.split_at(awaited[at].count);
                (all[at], rest) = (own.to_vec(), behind);
            }
        }
        Ok(all)
    }

    /// Tells all ranks some bytes, as many as one likes, and returns those of each, by rank. All ranks do so.
    ///
    /// # Errors
    /// As [`Ranks::swap`].
    pub fn gather(&self, about: About, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.told_to(about, own, &|_| true)
    }

    /// The same of what whoever looks at it has to know: all ranks, or the first alone if that was said; then others get nothing.
    ///
    /// # Errors
    /// As [`Ranks::swap`].
    pub fn collect(&self, about: About, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let first_alone = self.first_alone.load(Ordering::Relaxed);
        let all = self.told_to(about, own, &|rank| rank == 0 || !first_alone)?;
        Ok((self.is_first() || !first_alone).then_some(all))
    }

    /// Lets the first rank alone be told what fields hold: it prints and writes for all, and others have no use for it.
    pub fn tell_first_alone(&self) {
        self.first_alone.store(true, Ordering::Relaxed);
    }

    /// Tells some ranks some bytes.
    fn told_to(&self, about: About, own: &[u8], hears: &dyn Fn(usize) -> bool) -> Result<Vec<Vec<u8>>> {
        let others = || (0..self.ranks()).filter(|&other| other != self.rank());
        let all = |bytes: &[u8]| {
            others().filter(|&to| hears(to)).map(|to| Parcel { to, tag: 0, bytes: bytes.to_vec() }).collect()
        };
        let from: Vec<usize> = others().filter(|_| hears(self.rank())).collect();
        let of = |counts: &[usize]| -> Vec<Awaited> {
            from.iter().zip(counts).map(|(&from, &count)| Awaited { from, tag: 0, count }).collect()
        };
        let lengths = self.swap(about, all(&(own.len() as u64).to_le_bytes()), &of(&vec![8; from.len()]))?;
        let length = |bytes: &Vec<u8>| bytes.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
        let mut came = self.swap(about, all(own), &of(&lengths.iter().map(length).collect::<Vec<_>>()))?;
        came.insert(self.rank().min(came.len()), own.to_vec());
        Ok(came)
    }

    /// What the first rank says. All ranks ask.
    ///
    /// # Errors
    /// As [`Ranks::swap`].
    pub fn first_says(&self, truth: bool) -> Result<bool> {
        let sent = (1..self.ranks()).filter(|_| self.is_first());
        let sent = sent.map(|to| Parcel { to, tag: 0, bytes: vec![u8::from(truth)] }).collect();
        let awaited = if self.is_first() { vec![] } else { vec![Awaited { from: 0, tag: 0, count: 1 }] };
        Ok(self.swap(About::Agreement, sent, &awaited)?.first().map_or(truth, |bytes| bytes == &[1]))
    }

    /// Lets nobody go on unless all can. All ranks say how they stand, and get the same error if one of them has any.
    ///
    /// # Errors
    /// That of the first rank that has one.
    pub fn agree(&self, own: Option<&Error>) -> Result<()> {
        let own =
            own.map(|error| Told { fault: error.fault, message: error.message.clone(), help: error.help.clone() });
        let own = serde_json::to_vec(&own).unwrap_or_default();
        let all: Vec<Option<Told>> =
            self.gather(About::Agreement, &own)?.iter().map(|bytes| serde_json::from_slice(bytes).ok()).collect();
        let Some((rank, first)) = all.iter().enumerate().find_map(|(rank, told)| Some((rank, told.as_ref()?))) else {
            return Ok(());
        };
        let Told { fault, message, help } = first.clone();
        let message = match all.iter().all(|told| told.as_ref() == Some(first)) {
            true => message,
            false => format!("on rank {rank} of {}: {message}", self.ranks()),
        };
        Err(Error { fault, message, help })
    }

    /// Sees to it that all ranks have the same: parts, each with what a rank has that has it differently, and a hash of it.
    ///
    /// # Errors
    /// A part differs, which is told.
    pub fn compare(&self, parts: &[(String, [u8; 32])]) -> Result<()> {
        let hashes: Vec<u8> = parts.iter().flat_map(|(_, hash)| *hash).collect();
        let all = self.gather(About::Agreement, &hashes)?;
        let first = all.first().map(Vec::as_slice).unwrap_or_default();
        let Some((rank, own)) = all.iter().enumerate().find(|(_, own)| *own != first) else { return Ok(()) };
        let mut both = own.chunks(32).zip(first.chunks(32));
        let place = both.position(|(own, first)| own != first);
        let what = place.and_then(|place| parts.get(place)).map_or("another program", |(what, _)| what);
        Err(Error::call(format!("rank {rank} has {what} than rank 0, and all compute one program"))
            .help(format!("{}=off lets each process compute by itself", mpi::VARIABLE)))
    }
}
