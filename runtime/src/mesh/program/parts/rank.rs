//! The part of a program that this process computes, while others, on other hosts perhaps, compute theirs, as on grids.
//!
//! Elements travel as bytes, one message for all that a part needs of another. What is folded every process folds, of the numbers of all and
//! in the user's order: so each has the number, and all have the same.

use super::{Cut, Folding, Known, Message, OverMesh};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::mesh::program::MeshScript;
use crate::peers::Peer;
use crate::ranks::{About, Awaited, Parcel, Ranks};
use std::sync::Arc;
use stencilc_compiler::ir::{Handle, VariableId};
use stencilc_compiler::mesh::Chain;

/// A backend whose part of a program others look at: it gives elements as bytes, and takes those of others. What it would fold it leaves.
pub trait Carried: Peer {
    /// The elements of a message, which starts here.
    ///
    /// # Errors
    /// The machine fails.
    fn give(&self, variable: VariableId, buffer: &Self::Buffer, message: &Message) -> Result<Vec<u8>>;

    /// How many bytes come with a message.
    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize;

    /// Puts elements that came with a message into a buffer.
    ///
    /// # Errors
    /// The machine fails.
    fn take(&self, variable: VariableId, buffer: &Self::Buffer, message: &Message, bytes: &[u8]) -> Result<()>;

    /// The numbers that a stage has left to be folded, in the order of the part's elements.
    ///
    /// # Errors
    /// The machine fails, or nothing was left.
    fn left(&self, folding: &Folding, buffer: &Self::Buffer) -> Result<Data>;

    /// Makes one number of those of all parts, in the user's order.
    ///
    /// # Errors
    /// The machine fails.
    fn fold(&self, folding: &Folding, leaves: &Data, buffer: &Self::Buffer) -> Result<()>;
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
        Ok(Self { known: Known::new(MeshScript::new(&cut.whole, merges), cut), backend, ranks })
    }

    /// The numbers of a reduction of all parts, in the user's order, of those that this one has left.
    fn gathered(&self, folding: &Folding, left: &Data) -> Result<Data> {
        let (levels, element) = (folding.levels, left.element());
        let owned = |rank: usize| folding.ranks[rank].iter().map(|pair| pair.map(|number| number as usize * levels));
        let numbers = owned(self.ranks.rank()).flat_map(|[_, from]| from..from + levels);
        let about = About::Reduction(folding.field.index());
        let all = self.ranks.gather(about, left.pick(numbers).bytes())?;
        let mut leaves = Data::fresh(element, folding.count);
        for (rank, bytes) in all.iter().enumerate() {
            let own = Data::of_bytes(element, bytes)?;
            if own.len() != folding.ranks[rank].len() * levels {
                return Err(Error::check("a rank sends other numbers than it has"));
            }
            own.copy_runs(&mut leaves, levels, owned(rank).enumerate().map(|(place, [to, _])| [place * levels, to]));
        }
        Ok(leaves)
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
        let (mut parcels, mut awaited) = (Vec::new(), Vec::new());
        for (n, (variable, buffer)) in all.iter().enumerate() {
            for message in self.known.messages(*variable).filter(|message| message.from == own) {
                let bytes = self.backend.give(*variable, buffer, message)?;
                parcels.push(Parcel { to: message.to, tag: tag(n, message), bytes });
            }
            for message in self.known.messages(*variable).filter(|message| message.to == own) {
                let count = self.backend.bytes_of(*variable, message);
                awaited.push(Awaited { from: message.from, tag: tag(n, message), count });
            }
        }
        let mut came = self.ranks.swap(About::Halos(all.len()), parcels, &awaited)?.into_iter();
        for (variable, buffer) in all {
            let taken = self.known.messages(*variable).filter(|message| message.to == own);
            for (message, bytes) in taken.zip(&mut came) {
                self.backend.take(*variable, buffer, message, &bytes)?;
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
            let leaves = self.gathered(folding, &self.backend.left(folding, buffer)?)?;
            self.backend.fold(folding, &leaves, buffer)?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.backend.wait()
    }

    /// What goes through other processes is not recorded.
    fn record(&self, _: &mut dyn FnMut() -> Result<()>) -> Result<Option<B::Recording>> {
        Ok(None)
    }

    fn replay(&self, recording: &B::Recording) -> Result<()> {
        self.backend.replay(recording)
    }
}
