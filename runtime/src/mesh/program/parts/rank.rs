//! The part of a program that this process computes, while others, on other hosts perhaps, compute theirs, as on grids.
//!
//! Elements travel together, one message for all that a part needs of another. What is folded every process folds, of what all tell and
//! in the user's order: so each has the number, and all have the same.

use super::{Cut, Folding, Known, Message, OverMesh, Tells};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::mesh::program::MeshScript;
use crate::ranks::{About, Carrier, Freight, Ranks};
use std::sync::Arc;
use stencilc_compiler::ir::{Handle, VariableId};
use stencilc_compiler::mesh::Chain;

/// A backend whose part of a program others look at: it gives elements, and takes those of others.
pub trait Carried: Carrier + Tells<Told = Self::Room> {
    /// The elements of a message, which starts here.
    ///
    /// # Errors
    /// The machine fails.
    fn give(&self, variable: VariableId, buffer: &Self::Buffer, message: &Message) -> Result<Self::Room>;

    /// Room for the elements of a message.
    ///
    /// # Errors
    /// The machine has too little memory.
    fn room(&self, variable: VariableId, message: &Message) -> Result<Self::Room>;

    /// How many bytes come with a message.
    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize;

    /// Puts elements that came with a message into a buffer.
    ///
    /// # Errors
    /// The machine fails.
    fn take(&self, variable: VariableId, buffer: &Self::Buffer, message: &Message, came: &Self::Room) -> Result<()>;

    /// Room for what a part tells of a reduction.
    ///
    /// # Errors
    /// The machine has too little memory.
    fn room_told(&self, folding: &Folding, part: usize) -> Result<Self::Room>;

    /// Makes one number of what all parts tell.
    ///
    /// # Errors
    /// The machine fails.
    fn fold_told(&self, folding: &Folding, told: &[&Self::Room], buffer: &Self::Buffer) -> Result<()>;
}

/// Computes a part of a program; which, this process's rank says.
pub struct Rank<B: Carried> {
    known: Known,
    backend: B,
    ranks: Arc<Ranks>,
}

impl<B: Carried> Rank<B> {
    /// By a backend for this rank's part of a cut, which computes the same chains as one kernel as the others.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(cut: Cut, backend: B, ranks: Arc<Ranks>, merges: &dyn Fn(&Chain) -> bool) -> Result<Self> {
        backend.join(&[])?;
        backend.reach(&ranks)?;
        Ok(Self { known: Known::new(MeshScript::new(&cut.whole, merges), cut), backend, ranks })
    }

    /// Makes one number of what all parts tell of a reduction.
    fn fold(&self, folding: &Folding, buffer: &B::Buffer) -> Result<()> {
        let (own, parts) = (self.ranks.rank(), &folding.tiles.parts);
        let told = self.backend.told(own, folding, buffer)?;
        let others = || (0..parts.len()).filter(|&other| other != own);
        let freight = |peer: usize, part: usize| {
            let count = parts[part].count() * folding.element.bytes();
            Freight { peer, tag: 0, count, room: () }
        };
        let sent: Vec<_> = others().map(|peer| freight(peer, own).with(&told)).collect();
        let room = |part: usize| Ok(freight(part, part).with(self.backend.room_told(folding, part)?));
        let mut rooms = others().map(room).collect::<Result<Vec<_>>>()?;
        self.backend.swap(&self.ranks, About::Reduction(folding.field.index()), &sent, &mut rooms)?;
        let mut all: Vec<_> = rooms.iter().map(|own| &own.room).collect();
        all.insert(own, &told);
        self.backend.fold_told(folding, &all, buffer)
    }
}

impl<B: Carried> Backend for Rank<B> {
    type Buffer = B::Buffer;
    type Recording = B::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<OverMesh>::clone(&self.known.script)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<B::Buffer> {
        self.backend.load(variable, &self.known.own_of(variable, self.ranks.rank(), data))
    }

    fn read(&self, variable: VariableId, buffer: &B::Buffer) -> Result<Data> {
        let own = self.backend.read(variable, buffer)?;
        let Some(home) = self.known.shape(variable) else { return Ok(own) };
        let mut all = self.known.script.fresh(variable);
        let told = self.ranks.collect(About::Variable(variable.index()), own.bytes())?;
        for (part, bytes) in told.iter().flatten().enumerate() {
            let (own, (set, [width, levels])) = (Data::of_bytes(own.element(), bytes)?, home);
            if own.len() != self.known.cut.parts[part].elements[set.index()].users.len() * width * levels {
                return Err(Error::check("a rank sends other elements than it has"));
            }
            self.known.join(home, part, &own, &mut all);
        }
        Ok(all)
    }

    fn fill_halo(&self, variable: VariableId, buffer: &B::Buffer) -> Result<()> {
        self.fill_halos(&[(variable, buffer)])
    }

    fn fill_halos(&self, all: &[(VariableId, &B::Buffer)]) -> Result<()> {
        if all.iter().all(|(variable, _)| self.known.messages(*variable).next().is_none()) {
            return Ok(());
        }
        let (own, count) = (self.ranks.rank(), self.known.cut.messages.len());
        let tag = |n: usize, message: &Message| (n * count + message.number) as u32;
        let (mut given, mut rooms) = (Vec::new(), Vec::new());
        for (n, (variable, buffer)) in all.iter().enumerate() {
            let freight = |peer: usize, message: &Message, room: B::Room| {
                let count = self.backend.bytes_of(*variable, message);
                Freight { peer, tag: tag(n, message), count, room }
            };
            for message in self.known.messages(*variable).filter(|message| message.from == own) {
                given.push(freight(message.to, message, self.backend.give(*variable, buffer, message)?));
            }
            for message in self.known.messages(*variable).filter(|message| message.to == own) {
                rooms.push(freight(message.from, message, self.backend.room(*variable, message)?));
            }
        }
        let sent: Vec<_> = given.iter().map(Freight::lent).collect();
        self.backend.swap(&self.ranks, About::Halos(all.len()), &sent, &mut rooms)?;
        let mut came = rooms.iter();
        for (variable, buffer) in all {
            let taken = self.known.messages(*variable).filter(|message| message.to == own);
            for (message, came) in taken.zip(&mut came) {
                self.backend.take(*variable, buffer, message, &came.room)?;
            }
        }
        Ok(())
    }

    fn copy(&self, from: &B::Buffer, to: &B::Buffer) -> Result<()> {
        self.backend.copy(from, to)
    }

    fn compute(&self, stage: &Computed, arrays: Arrays<B::Buffer>) -> Result<()> {
        if stage.times != 1 {
            return Err(Error::check("parts are computed step after step"));
        }
        let written = |own| arrays.writes.iter().find(|(field, _)| *field == own).map(|(_, buffer)| *buffer);
        self.backend.compute(stage, arrays)?;
        for folding in &self.known.foldings(stage, |own| written(own).is_some())? {
            let Some(buffer) = written(folding.field) else { continue };
            self.fold(folding, buffer)?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.backend.wait()
    }

    /// What goes through the hosts is not recorded.
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<B::Recording>> {
        let is_recorded = self.backend.records_swaps(&self.ranks) && !self.known.folds_nothing();
        if is_recorded { self.backend.record(work) } else { Ok(None) }
    }

    fn replay(&self, recording: &B::Recording) -> Result<()> {
        self.backend.replay(recording)
    }
}
