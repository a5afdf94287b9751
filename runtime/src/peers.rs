//! Parts of one program that are computed beside each other: each by a backend, on a machine of its own or all on one.
//!
//! Machines do what they are asked side by side. Where one looks at what another has, both *meet* before: a kernel tells the neighbours
//! that all is done that came before it, and waits until they have told the same. They do so in the memory of the machines, and the host
//! waits for nobody.

use crate::driver::Backend;
use crate::error::{Error, Result};
use crate::machine::{Arg, Machine};
use std::cell::OnceCell;
use std::sync::Arc;

/// A backend that computes a part, beside others of its kind.
pub trait Peer: Backend + Sized {
    /// Lets it look at what another part holds.
    ///
    /// # Errors
    /// There is no way from one machine to the other.
    fn look_at(&self, other: &Self) -> Result<()>;

    /// Says whom it meets: other parts, and the place of this one among those that the other meets. It is said once, and nothing of a
    /// place among the neighbours where nobody is.
    ///
    /// # Errors
    /// The machine has too little memory.
    fn join(&self, neighbours: &[Option<(&Self, usize)>]) -> Result<()>;

    /// Lets what it is asked from now on wait for what its neighbours were asked until now. All parts do so, one after the other, and are
    /// asked nothing else meanwhile.
    ///
    /// # Errors
    /// The machine fails.
    fn meet(&self) -> Result<()>;

    /// Records what all parts are asked by a closure, as [`Backend::record`] does of one. It is done when all that all were asked before is
    /// done, and before what they are asked later.
    ///
    /// # Errors
    /// As there.
    fn record_together(parts: &[Self], work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>>;

    /// Does what was recorded of all parts.
    ///
    /// # Errors
    /// A machine fails.
    fn replay_together(parts: &[Self], recording: &Self::Recording) -> Result<()>;
}

/// The most neighbours that a part meets.
const MOST: usize = 1024;

/// Numbers before those by which neighbours tell a part something: how many launches have met, and how many blocks of one.
const BEFORE: usize = 2;

/// What a part on a machine keeps of whom it meets.
pub struct Meeting<M: Machine> {
    machine: Arc<M>,
    turns: M::Buffer,
    /// Where it tells its neighbours, and how many there are; and whether any of them is on another machine.
    told: OnceCell<(M::Buffer, usize, bool)>,
}

impl<M: Machine> Meeting<M> {
    /// Of a part that has met nobody yet.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(machine: &Arc<M>) -> Result<Self> {
        let turns = machine.upload(&[0; 4 * (BEFORE + MOST)])?;
        Ok(Self { machine: Arc::clone(machine), turns, told: OnceCell::new() })
    }

    /// As [`Peer::join`].
    ///
    /// # Errors
    /// The machine has too little memory, or there are too many neighbours.
    pub fn join(&self, neighbours: &[Option<(&Self, usize)>]) -> Result<()> {
        if neighbours.len() > MOST {
            return Err(Error::call(format!("a part meets {} others, and {MOST} are the most", neighbours.len()))
                .help("give fewer --gpus"));
        }
        let place = |own: &Option<(&Self, usize)>| match own {
            // A machine does what it is asked in order: whoever shares it is not waited for.
            Some((other, place)) if !Arc::ptr_eq(&self.machine, &other.machine) => {
                other.machine.address(&other.turns, 4 * (BEFORE + place))
            }
            Some(_) | None => 0,
        };
        let mut places: Vec<u64> = neighbours.iter().map(place).collect();
        let (count, is_apart) = (places.len(), places.iter().any(|&place| place != 0));
        // There is a table even where nobody is.
        places.push(0);
        let table = self.machine.upload(bytemuck::cast_slice(&places))?;
        self.told.set((table, count, is_apart)).map_err(|_| Error::check("a part joins others twice"))
    }

    /// Whether nobody has to be waited for.
    pub fn is_alone(&self) -> bool {
        !self.told.get().is_some_and(|(.., is_apart)| *is_apart)
    }

    /// What a kernel takes that meets others: its own numbers, where it tells its neighbours, and how many there are.
    ///
    /// # Errors
    /// It has joined nobody.
    pub fn arguments(&self) -> Result<[Arg; 3]> {
        let told = self.told.get();
        let (table, count, _) = told.ok_or_else(|| Error::check("a part meets others that it has not joined"))?;
        let pointer = |buffer| Arg::Pointer(self.machine.address(buffer, 0));
        Ok([pointer(&self.turns), pointer(table), Arg::I32(*count as i32)])
    }
}
