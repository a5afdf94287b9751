//! Ranks that are threads of one process.

use super::{Awaited, Parcel, Ranks, Transport};
use crate::error::{Error, Result};
use rayon::ThreadPoolBuilder;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// What a rank sends another at once: its tag, and bytes.
type Sent = (u32, Vec<u8>);

/// One of some threads.
pub struct Threads {
    rank: usize,
    to: Vec<Sender<Sent>>,
    /// By rank: what it sends, and what of that was not awaited yet.
    from: Mutex<Vec<(Receiver<Sent>, VecDeque<Sent>)>>,
}

/// As many as one likes, each for a thread of its own.
pub fn threads(count: usize) -> Vec<Threads> {
    // By who gets it: the ends of all that send.
    let mut to: Vec<Vec<Sender<_>>> = Vec::new();
    let mut from: Vec<Vec<_>> = Vec::new();
    for _ in 0..count {
        let (sends, receives): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
        to.push(sends);
        from.push(receives.into_iter().map(|own| (own, VecDeque::new())).collect());
    }
    let of = |(rank, from): (usize, Vec<_>)| Threads {
        rank,
        to: to.iter().map(|senders| senders[rank].clone()).collect(),
        from: Mutex::new(from),
    };
    from.into_iter().enumerate().map(of).collect()
}

impl Transport for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    fn on_host(&self) -> [usize; 2] {
        [self.rank, self.to.len()]
    }

    fn swap(&self, sent: Vec<Parcel>, awaited: &[Awaited]) -> Result<Vec<Vec<u8>>> {
        let ended = |rank: usize| Error::check(format!("rank {rank} has ended"));
        for Parcel { to, tag, bytes } in sent {
            self.to[to].send((tag, bytes)).map_err(|_| ended(to))?;
        }
        let mut from = self.from.lock().unwrap_or_else(PoisonError::into_inner);
        let mut await_one = |own: &Awaited| {
            let (receiver, came) = &mut from[own.from];
            loop {
                if let Some(place) = came.iter().position(|(tag, _)| *tag == own.tag) {
                    return came.remove(place).map(|(_, bytes)| bytes).ok_or_else(|| ended(own.from));
                }
                came.push_back(receiver.recv().map_err(|_| ended(own.from))?);
            }
        };
        awaited.iter().map(&mut await_one).collect()
    }

    /// Threads end with what they are a part of.
    fn end_all(&self, _: u8) {}
}

/// Lets so many ranks work, each in a thread of its own, and returns what each has done, by rank.
///
/// # Errors
/// The first rank's that has failed.
pub fn together<T: Send>(count: usize, work: impl Fn(Arc<Ranks>) -> Result<T> + Sync) -> Result<Vec<T>> {
    let all = threads(count);
    std::thread::scope(|scope| {
        let work = &work;
        let rank = |own| {
            // Each computes by a thread of its own: those that all share may all be waiting for ranks.
            let pool = ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.map_err(|error| Error::machine(format!("no thread can be started for a rank: {error}")))?;
            pool.install(|| work(Arc::new(Ranks::new(own))))
        };
        let started = all.into_iter().map(|own| scope.spawn(move || rank(own)));
        let started: Vec<_> = started.collect();
        let ended = |_| Error::check("a mistake in stencilc has ended a rank: it has said why on stderr");
        // All of them are waited for, whoever failed.
        let done: Vec<_> = started.into_iter().map(|own| own.join().map_err(ended).and_then(|done| done)).collect();
        // Whoever failed first has left others without an answer.
        let is_left = |error: &Error| error.message.contains("has ended");
        let failed = done.iter().filter_map(|own| own.as_ref().err());
        match failed.clone().find(|error| !is_left(error)).or(failed.clone().next()) {
            Some(error) => Err(error.clone()),
            None => done.into_iter().collect(),
        }
    })
}
