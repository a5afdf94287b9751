//! What ranks send each other out of the memory of machines: through that of the hosts, unless the machines have a way of their own.

use super::{About, Awaited, Parcel, Ranks};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::peers::Peer;

/// What goes to another rank, or room for what comes of it.
pub struct Freight<P> {
    /// The other rank.
    pub peer: usize,
    /// Which it is, of those that go from one to the other at once.
    pub tag: u32,
    /// How many bytes.
    pub count: usize,
    /// Where they are, or will be.
    pub room: P,
}

impl<P> Freight<P> {
    /// The same, lent.
    pub fn lent(&self) -> Freight<&P> {
        Freight { peer: self.peer, tag: self.tag, count: self.count, room: &self.room }
    }

    /// The same of another kind of room.
    pub fn with<Q>(&self, room: Q) -> Freight<Q> {
        Freight { peer: self.peer, tag: self.tag, count: self.count, room }
    }
}

/// A backend whose part of a program others look at from other processes.
pub trait Carrier: Peer {
    /// What goes from one to another.
    type Room;

    /// Makes ready for it. All ranks do so, before the first step.
    ///
    /// # Errors
    /// There should be a way between the machines, and it fails.
    fn reach(&self, _ranks: &Ranks) -> Result<()> {
        Ok(())
    }

    /// Whether what it sends can be recorded.
    fn records_swaps(&self, _ranks: &Ranks) -> bool {
        false
    }

    /// Sends something to others, and fills rooms with what comes of them. All ranks do so.
    ///
    /// # Errors
    /// As [`Ranks::swap`].
    fn swap(
        &self,
        ranks: &Ranks,
        about: About,
        sent: &[Freight<&Self::Room>],
        rooms: &mut [Freight<Self::Room>],
    ) -> Result<()>;
}

/// Sends arrays of the host's own memory.
///
/// # Errors
/// As [`Ranks::swap`].
pub fn of_host(ranks: &Ranks, about: About, sent: &[Freight<&Data>], rooms: &mut [Freight<Data>]) -> Result<()> {
    let parcel = |own: &Freight<&Data>| Parcel { to: own.peer, tag: own.tag, bytes: own.room.bytes().to_vec() };
    let awaited = |own: &Freight<Data>| Awaited { from: own.peer, tag: own.tag, count: own.count };
    let awaited: Vec<_> = rooms.iter().map(awaited).collect();
    let came = ranks.swap(about, sent.iter().map(parcel).collect(), &awaited)?;
    for (own, bytes) in rooms.iter_mut().zip(came) {
        own.room = Data::of_bytes(own.room.element(), &bytes)?;
    }
    Ok(())
}

/// Memory of a machine between ranks.
pub struct Memory<'a, B> {
    /// The buffer.
    pub buffer: &'a B,
    /// Its bytes, which may be more than are sent.
    pub bytes: usize,
}

/// Sends memory of a machine by way of the host's.
///
/// # Errors
/// As [`Ranks::swap`], and those of the machine.
pub fn through_hosts<M: Machine + ?Sized>(
    machine: &M,
    ranks: &Ranks,
    about: About,
    sent: &[Freight<Memory<M::Buffer>>],
    rooms: &[Freight<Memory<M::Buffer>>],
) -> Result<()> {
    let parcel = |own: &Freight<Memory<M::Buffer>>| {
        let (mut bytes, guards) = machine.download(own.room.buffer)?;
        if !guards.intact() {
            return Err(Error::check(format!("what goes to rank {}: {guards}", own.peer)));
        }
        bytes.truncate(own.count);
        Ok(Parcel { to: own.peer, tag: own.tag, bytes })
    };
    let parcels = sent.iter().map(parcel).collect::<Result<_>>()?;
    let awaited = |own: &Freight<_>| Awaited { from: own.peer, tag: own.tag, count: own.count };
    let came = ranks.swap(about, parcels, &rooms.iter().map(awaited).collect::<Vec<_>>())?;
    for (own, mut bytes) in rooms.iter().zip(came) {
        bytes.resize(own.room.bytes, 0);
        machine.write(own.room.buffer, &bytes)?;
    }
    Ok(())
}
