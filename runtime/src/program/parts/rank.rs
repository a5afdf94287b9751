//! The part of a program that this process computes, while others, on other hosts perhaps, compute theirs.
//!
//! Rows travel by themselves: whoever has them takes them out of its fields, and whoever looks at them puts them into its own. All processes
//! are asked the same, so each knows what the others send it, and when.

use super::messages::{Message, messages};
use super::{Cut, GridScript, Rows};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::peers::PartsScript;
use crate::ranks::{About, Carrier, Freight, Ranks};
use std::sync::Arc;
use stencilc_compiler::ir::program::Side;
use stencilc_compiler::ir::{Handle, VariableId};

/// A backend whose part of a program others look at: it gives rows, and takes those of others.
pub trait Carried: Carrier {
    /// Makes ready what it needs of a variable, before the first step: the rows that others look at, and those that come from the parts before
    /// and behind.
    ///
    /// # Errors
    /// The machine has too little memory.
    fn prepare_to_carry(&self, variable: VariableId, given: &[Message], taken: [Option<Message>; 2]) -> Result<()>;

    /// The rows of a message, which start here.
    ///
    /// # Errors
    /// The machine fails.
    fn give(&self, variable: VariableId, buffer: &Self::Buffer, message: &Message) -> Result<Self::Room>;

    /// Room for the rows of a message, which come here.
    ///
    /// # Errors
    /// Nobody has prepared it.
    fn room(&self, variable: VariableId, message: &Message) -> Result<Self::Room>;

    /// How many bytes come with a message.
    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize;

    /// Fills the halo of a buffer, as [`Backend::fill_halo`] has begun, with rows that came from the parts before and behind.
    ///
    /// # Errors
    /// The machine fails.
    fn take(&self, variable: VariableId, buffer: &Self::Buffer, came: [Option<(Message, Self::Room)>; 2])
    -> Result<()>;
}

/// Computes a part of a program; which, this process's rank says.
pub struct Rank<B: Carried> {
    cut: Cut,
    script: Arc<GridScript>,
    backend: B,
    ranks: Arc<Ranks>,
    messages: Vec<Message>,
}

impl<B: Carried> Rank<B> {
    /// By a backend for this rank's part of a cut.
    ///
    /// # Errors
    /// The machine has too little memory.
    pub fn new(cut: Cut, backend: B, ranks: Arc<Ranks>) -> Result<Self> {
        let (whole, brought) = (Arc::clone(&cut.whole), Rows(cut.whole.staged.is_shared_by_parts()));
        let messages = messages(&cut.whole.staged, &cut.parts);
        let script = Arc::new(PartsScript { whole, brought });
        let own = Self { cut, script, backend, ranks, messages };
        own.backend.join(&[])?;
        own.backend.reach(&own.ranks)?;
        for (variable, _) in own.cut.whole.staged.program.variables.iter() {
            if own.is_brought(variable) {
                let taken = Side::BOTH.map(|side| own.taken(variable).into_iter().find(|own| own.side == side));
                own.backend.prepare_to_carry(variable, &own.given(variable), taken)?;
            }
        }
        Ok(own)
    }

    /// Whether rows of a variable are brought from part to part.
    fn is_brought(&self, variable: VariableId) -> bool {
        self.script.brought.0[variable.index()]
    }

    /// The messages with rows of a variable that start here.
    fn given(&self, variable: VariableId) -> Vec<Message> {
        let is_own = |own: &&Message| own.from == self.ranks.rank() && self.cut.brings(variable, own);
        self.messages.iter().filter(is_own).copied().collect()
    }

    /// Those that come here.
    fn taken(&self, variable: VariableId) -> Vec<Message> {
        let is_own = |own: &&Message| own.to == self.ranks.rank() && self.cut.brings(variable, own);
        self.messages.iter().filter(is_own).copied().collect()
    }
}

impl<B: Carried> Backend for Rank<B> {
    type Buffer = B::Buffer;
    type Recording = B::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<GridScript>::clone(&self.script)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<B::Buffer> {
        self.backend.load(variable, &self.cut.own_of(variable, self.ranks.rank(), data))
    }

    fn read(&self, variable: VariableId, buffer: &B::Buffer) -> Result<Data> {
        let own = self.backend.read(variable, buffer)?;
        let Some(shape) = self.cut.shape(variable) else { return Ok(own) };
        let element = own.element();
        let Some(parts) = self.ranks.collect(About::Variable(variable.index()), own.bytes())? else {
            return Ok(Data::fresh(element, 0));
        };
        let parts: Vec<Data> = parts.iter().map(|bytes| Data::of_bytes(element, bytes)).collect::<Result<_>>()?;
        let is_whole = |(part, rows): (&Data, &std::ops::Range<usize>)| part.len() == shape[0] * shape[1] * rows.len();
        if !parts.iter().zip(&self.cut.rows).all(is_whole) {
            return Err(Error::check("a rank sends other rows than it has"));
        }
        Ok(self.cut.joined(shape, element, &parts))
    }

    fn fresh(&self, variable: VariableId) -> Result<B::Buffer> {
        self.backend.fresh(variable)
    }

    fn own(&self, variable: VariableId, buffer: &B::Buffer) -> Result<Option<Data>> {
        self.cut.shape(variable).map(|_| self.backend.read(variable, buffer)).transpose()
    }

    fn fill_halo(&self, variable: VariableId, buffer: &B::Buffer) -> Result<()> {
        self.fill_halos(&[(variable, buffer)])
    }

    fn fill_halos(&self, all: &[(VariableId, &B::Buffer)]) -> Result<()> {
        all.iter().try_for_each(|(variable, buffer)| self.backend.fill_halo(*variable, buffer))?;
        let brought: Vec<_> = all.iter().filter(|(variable, _)| self.is_brought(*variable)).collect();
        if brought.is_empty() {
            return Ok(());
        }
        let tag = |n: usize, message: &Message| (2 * n + message.side as usize) as u32;
        let (mut given, mut rooms) = (Vec::new(), Vec::new());
        for (n, (variable, buffer)) in brought.iter().enumerate() {
            let freight = |peer: usize, message: &Message, room: B::Room| {
                let count = self.backend.bytes_of(*variable, message);
                Freight { peer, tag: tag(n, message), count, room }
            };
            for message in self.given(*variable) {
                given.push(freight(message.to, &message, self.backend.give(*variable, buffer, &message)?));
            }
            for message in self.taken(*variable) {
                rooms.push(freight(message.from, &message, self.backend.room(*variable, &message)?));
            }
        }
        let sent: Vec<_> = given.iter().map(Freight::lent).collect();
        self.backend.swap(&self.ranks, About::Halos(brought.len()), &sent, &mut rooms)?;
        let mut came = rooms.into_iter().map(|own| own.room);
        for (variable, buffer) in brought {
            let mut sides = [None, None];
            for (message, room) in self.taken(*variable).into_iter().zip(&mut came) {
                sides[message.side as usize] = Some((message, room));
            }
            self.backend.take(*variable, buffer, sides)?;
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
        let own = &self.cut.parts[self.ranks.rank()].staged.stages[stage.stage];
        if own.region.cells() == 0 { Ok(()) } else { self.backend.compute(stage, arrays) }
    }

    fn wait(&self) -> Result<()> {
        self.backend.wait()
    }

    /// What goes through the hosts is not recorded.
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<B::Recording>> {
        if self.backend.records_swaps(&self.ranks) { self.backend.record(work) } else { Ok(None) }
    }

    fn replay(&self, recording: &B::Recording) -> Result<()> {
        self.backend.replay(recording)
    }
}
