//! Parts of one program that are computed beside each other: each by a backend, on a machine of its own or all on one.
//!
//! Machines do what they are asked side by side. Where one looks at what another has, both *meet* before: a kernel tells the neighbours
//! that all is done that came before it, and waits until they have told the same. They do so in the memory of the machines, and the host
//! waits for nobody.

mod script;

use crate::driver::Backend;
use crate::error::{Error, Result};
use crate::machine::{Arg, Machine};
pub use script::{Brought, PartsScript};
use std::cell::OnceCell;
use std::sync::Arc;

/// A backend that computes a part, beside others of its kind. One that does what it is asked at once has nobody to wait for.
pub trait Peer: Backend + Sized {
    /// Lets it look at what another part holds.
    ///
    /// # Errors
    /// There is no way from one machine to the other.
    fn look_at(&self, _other: &Self) -> Result<()> {
        Ok(())
    }

    /// Says whom it meets: other parts, and the place of this one among those that the other meets. It is said once, and nothing of a
    /// place among the neighbours where nobody is.
    ///
    /// # Errors
    /// The machine has too little memory.
    fn join(&self, _neighbours: &[Option<(&Self, usize)>]) -> Result<()> {
        Ok(())
    }

    /// Lets what it is asked from now on wait for what its neighbours were asked until now. All parts do so, one after the other, and are
    /// asked nothing else meanwhile.
    ///
    /// # Errors
    /// The machine fails.
    fn meet(&self) -> Result<()> {
        Ok(())
    }

    /// Records what all parts are asked by a closure, as [`Backend::record`] does of one. It is done when all that all were asked before is
    /// done, and before what they are asked later.
    ///
    /// # Errors
    /// As there.
    fn record_together(_parts: &[Self], _work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        Ok(None)
    }

    /// Does what was recorded of all parts.
    ///
    /// # Errors
    /// A machine fails.
    fn replay_together(parts: &[Self], recording: &Self::Recording) -> Result<()> {
        parts.first().map_or(Ok(()), |first| first.replay(recording))
    }
}

/// The most neighbours that a part meets.
const MOST: usize = 1024;

/// Numbers before those by which neighbours tell a part something: how many launches have met, and how many blocks of one.
const BEFORE: usize = 2;

/// What a part on a machine keeps of whom it meets.
pub struct Meeting<M: Machine> {
    machine: Arc<M>,
    /// What it counts, from when somebody joins it.
    turns: OnceCell<M::Buffer>,
    /// Where it tells its neighbours, and how many there are; and whether any of them is on another machine.
    told: OnceCell<(M::Buffer, usize, bool)>,
}

impl<M: Machine> Meeting<M> {
    /// Of a part that has met nobody yet.
    pub fn new(machine: &Arc<M>) -> Self {
        Self { machine: Arc::clone(machine), turns: OnceCell::new(), told: OnceCell::new() }
    }

    /// The address of one of the numbers by which it counts.
    fn number(&self, place: usize) -> Result<u64> {
        let turns = match self.turns.get() {
            Some(known) => known,
            None => {
                let turns = self.machine.upload(&[0; 4 * (BEFORE + MOST)])?;
                self.turns.get_or_init(|| turns)
            }
        };
        Ok(self.machine.address(turns, 4 * place))
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
            Some((other, place)) if !Arc::ptr_eq(&self.machine, &other.machine) => other.number(BEFORE + place),
            Some(_) | None => Ok(0),
        };
        let mut places: Vec<u64> = neighbours.iter().map(place).collect::<Result<_>>()?;
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
        let table = self.machine.address(table, 0);
        Ok([Arg::Pointer(self.number(0)?), Arg::Pointer(table), Arg::I32(*count as i32)])
    }

    /// The same of a kernel that could meet others, and has nobody to meet, since those before it have. All parts launch such a kernel alike, so
    /// that they still count the same.
    ///
    /// # Errors
    /// It has joined nobody.
    pub fn alone(&self) -> Result<[Arg; 3]> {
        let [turns, table, _] = self.arguments()?;
        Ok([turns, table, Arg::I32(0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Build;
    use crate::emulate::{Compiler, Emulator, Settings};
    use crate::machine::Launch;
    use stencilc_compiler::cuda;
    use stencilc_compiler::kernel::machine::meet_peers;

    /// Launches the kernel that meets others so often, in so many blocks, and returns the first of its numbers.
    fn met(others: &[u64], launches: usize, blocks: u32) -> Result<[u32; 2]> {
        let settings = Settings::default();
        let emulator = Arc::new(Emulator::new(Compiler::find()?, settings));
        let code = meet_peers("meet_peers");
        let kernel = emulator.build(&code.name, &cuda::text(&code)?)?;
        let turns = emulator.upload(&[0; 4 * (BEFORE + MOST)])?;
        let table = emulator.upload(bytemuck::cast_slice(others))?;
        let [turns_at, table_at] = [&turns, &table].map(|buffer| Arg::Pointer(emulator.address(buffer, 0)));
        for _ in 0..launches {
            let arguments = [turns_at, table_at, Arg::I32(others.len() as i32)];
            emulator.launch(&kernel, &Launch::new([blocks, 1, 1], [32, 1, 1]), &arguments)?;
        }
        let (bytes, guards) = emulator.download(&turns)?;
        assert!(guards.intact());
        let numbers: &[u32] = bytemuck::cast_slice(&bytes);
        Ok([numbers[0], numbers[1]])
    }

    #[test]
    fn launches_are_counted_whatever_blocks_they_have() {
        assert_eq!(met(&[0, 0], 3, 1).unwrap(), [3, 0]);
        assert_eq!(met(&[0, 0, 0], 2, 5).unwrap(), [2, 0]);
    }

    #[test]
    fn nobody_is_waited_for_who_computes_nothing_meanwhile() {
        let said = met(&[0, 4096], 1, 1).unwrap_err().message;
        assert!(said.contains("peers_meet") && said.contains("does nothing meanwhile"), "{said}");
    }

    #[test]
    fn machines_that_parts_share_have_nobody_to_wait_for() {
        let emulator = Arc::new(Emulator::default());
        let [one, other] = [(), ()].map(|()| Meeting::new(&emulator));
        assert!(one.arguments().is_err(), "it has joined nobody");
        one.join(&[None, Some((&other, 0))]).unwrap();
        assert!(one.is_alone());
        assert!(one.join(&[]).is_err(), "it has joined already");
        let apart = Meeting::new(&Arc::new(Emulator::default()));
        other.join(&[Some((&apart, 1))]).unwrap();
        assert!(!other.is_alone());
    }
}
