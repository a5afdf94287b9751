//! A program on several devices: each has some rows of the grid, and computes them as it would compute any grid.
//!
//! ```text
//! mod: as one backend, whose buffers have a part on each device
//!      messages: which rows go from whom to whom -> cpu, exchange: how a backend gets them
//! rank: the part of this process, where others have the others -> cpu, carried: how a backend gives and takes rows as bytes
//! ```
//!
//! The driver above and the backends below know of no parts. Every value is computed by one device, from the values that a single device
//! would have, so the bits do not depend on how many there are.

mod carried;
mod cpu;
pub(super) mod exchange;
mod messages;
mod rank;
#[cfg(test)]
mod tests;
mod traffic;

use super::ProgramProblem;
use super::plan::{PlanKind, ProgramPlan};
use crate::array::{Data, Element};
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use crate::peers::{Brought, PartsScript, Peer};
use crate::rows::Slab;
use messages::{Message, messages, neighbours};
pub use rank::{Carried, Rank};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::ir::program::{GridAxis, Side};
use stencilc_compiler::ir::{Handle, VariableId};
use stencilc_compiler::program::Beyond;
pub use traffic::{Traffic, Turn, traffic};

/// A backend that can have a part of a program on a grid. It meets the parts before and behind it.
pub trait Part: Peer {
    /// Makes ready what [`Part::exchange`] needs of a variable: the rows that come from the parts before and behind this one.
    ///
    /// # Errors
    /// The machine has too little memory.
    fn prepare(&self, variable: VariableId, brought: [Option<(&Self, &Message)>; 2]) -> Result<()>;

    /// Fills the halo of a buffer of a variable, as [`Backend::fill_halo`] has begun, with what the parts before and behind this one have in
    /// theirs. When they have computed it, they `meet`; of several buffers that all have computed, before the first. All parts do so, one
    /// after the other, and nothing else meanwhile.
    ///
    /// # Errors
    /// The machine fails.
    fn exchange(
        &self,
        variable: VariableId,
        buffer: &Self::Buffer,
        neighbours: [Option<Neighbour<Self>>; 2],
        meets: bool,
    ) -> Result<()>;
}

/// The part before or behind one that exchanges rows of a variable with it.
pub struct Neighbour<'a, B: Part> {
    /// The part.
    pub part: &'a B,
    /// What it has of the variable.
    pub buffer: &'a B::Buffer,
    /// The rows that come from it, if any do.
    pub message: Option<&'a Message>,
}

impl<B: Part> Clone for Neighbour<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Part> Copy for Neighbour<'_, B> {}

/// How a program is cut into parts.
#[derive(Clone)]
pub struct Cut {
    whole: Arc<ProgramProblem>,
    rows: Vec<Range<usize>>,
    parts: Vec<Arc<ProgramProblem>>,
}

impl Cut {
    /// A program in so many parts.
    ///
    /// # Errors
    /// Its grid has no rows, or too few.
    pub fn new(whole: Arc<ProgramProblem>, parts: usize) -> Result<Self> {
        let rows = whole.staged.rows_of_parts(parts)?;
        let part =
            |part: usize| Arc::new(ProgramProblem { staged: whole.staged.part(&rows, part), ..(*whole).clone() });
        let parts = (0..rows.len()).map(part).collect();
        Ok(Self { whole, rows, parts })
    }

    /// The same of a program as a plan fuses it, and the plan of each part.
    ///
    /// # Errors
    /// As [`Cut::new`]; or it cannot be fused like that.
    pub fn fused(whole: &ProgramProblem, plan: &ProgramPlan, parts: usize) -> Result<(Self, ProgramPlan)> {
        let cut = Self::new(Arc::new(plan.fused(whole)?), parts)?;
        // Its calls have become one already.
        Ok((cut, ProgramPlan { kind: PlanKind::Separate, steps: 1, ..plan.clone() }))
    }

    /// The program of each part.
    pub fn parts(&self) -> &[Arc<ProgramProblem>] {
        &self.parts
    }

    /// The lengths of a variable's array: of a row along i, and of levels; nothing of one that has no rows.
    fn shape(&self, variable: VariableId) -> Option<[usize; 2]> {
        let staged = &self.whole.staged;
        let place = staged.program.variables[variable].place;
        place.horizontal.then(|| [staged.domain.ni, place.levels.count(staged.domain.nk)])
    }

    /// A part's rows of the array of a variable, which may be those alone already; or all of one that has no rows.
    fn own_of<'a>(&self, variable: VariableId, part: usize, data: &'a Data) -> Cow<'a, Data> {
        let place = self.whole.staged.program.variables[variable].place;
        match Slab::new(self.whole.staged.domain, place, self.rows[part].clone()) {
            Some(own) if data.len() == own.whole() => Cow::Owned(own.of(data)),
            Some(_) | None => Cow::Borrowed(data),
        }
    }

    /// The array of a variable that has rows, of those of all parts.
    fn joined(&self, [ni, levels]: [usize; 2], element: Element, parts: &[Data]) -> Data {
        let nj = self.whole.staged.domain.nj;
        let mut all = Data::fresh(element, ni * nj * levels);
        for (own, rows) in parts.iter().zip(&self.rows) {
            let (len, first) = (rows.len(), rows.start);
            own.copy_runs(&mut all, ni * len, (0..levels).map(|level| [level * len * ni, (level * nj + first) * ni]));
        }
        all
    }

    /// Whether a part brings rows of a variable from beyond a side of its own.
    fn brings(&self, variable: VariableId, message: &Message) -> bool {
        let edges = &self.parts[message.to].staged.edges[variable.index()];
        message.count > 0 && edges.beyond(GridAxis::J, message.side) == Some(Beyond::Neighbour)
    }
}

/// By variable: whether rows of it are brought.
struct Rows(Vec<bool>);

impl Brought<ProgramProblem> for Rows {
    fn is_read(&self, _: &ProgramProblem, _: usize, variable: VariableId) -> bool {
        self.0[variable.index()]
    }

    fn is_same(&self, a: VariableId, b: VariableId) -> bool {
        self.0[a.index()] == self.0[b.index()]
    }
}

type GridScript = PartsScript<ProgramProblem, Rows>;

/// Computes a program by parts.
pub struct Parts<B: Part> {
    cut: Cut,
    script: Arc<GridScript>,
    backends: Vec<B>,
    messages: Vec<Message>,
    /// By part: which parts lie before and behind it.
    neighbours: Vec<[Option<usize>; 2]>,
    /// The buffers that rows were exchanged of since all parts met last: neighbours may still look at them.
    exchanged: RefCell<Vec<*const B::Buffer>>,
}

impl<B: Part> Parts<B> {
    /// By a backend for each part of a cut.
    ///
    /// # Errors
    /// The machines of two neighbours do not reach each other.
    pub fn new(cut: Cut, backends: Vec<B>) -> Result<Self> {
        let (whole, brought) = (Arc::clone(&cut.whole), Rows(cut.whole.staged.is_shared_by_parts()));
        let script = Arc::new(PartsScript { whole, brought });
        let messages = messages(&cut.whole.staged, &cut.parts);
        let neighbours = neighbours(&messages, backends.len());
        for (part, own) in backends.iter().enumerate() {
            // Whoever is looked at looks, too: it is told when somebody has come so far.
            neighbours[part].iter().flatten().try_for_each(|&other| own.look_at(&backends[other]))?;
        }
        let own = Self { cut, script, backends, messages, neighbours, exchanged: RefCell::default() };
        for (part, backend) in own.backends.iter().enumerate() {
            // To the part before, this one lies behind.
            let met = Side::BOTH.map(|side| {
                let other = own.neighbours[part][side as usize]?;
                Some((&own.backends[other], side.other() as usize))
            });
            backend.join(&met)?;
        }
        let variables = own.cut.whole.staged.program.variables.iter().map(|(id, _)| id);
        variables.filter(|&id| own.is_brought(id)).try_for_each(|id| own.prepare(id))?;
        Ok(own)
    }

    /// How the program is cut.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// What computes each part.
    pub fn backends(&self) -> &[B] {
        &self.backends
    }

    /// Whether rows of a variable are brought from part to part.
    fn is_brought(&self, variable: VariableId) -> bool {
        self.script.brought.0[variable.index()]
    }

    /// The rows of a variable that a part brings from beyond a side of its own.
    fn message(&self, variable: VariableId, part: usize, side: Side) -> Option<&Message> {
        let is_wanted = |message: &&Message| message.to == part && message.side == side;
        self.messages.iter().find(is_wanted).filter(|message| self.cut.brings(variable, message))
    }

    /// Makes ready what the exchange of a variable's rows needs, before anybody waits for anybody.
    fn prepare(&self, variable: VariableId) -> Result<()> {
        for (part, own) in self.backends.iter().enumerate() {
            let messages = Side::BOTH.map(|side| self.message(variable, part, side));
            own.prepare(variable, messages.map(|own| own.map(|message| (&self.backends[message.from], message))))?;
        }
        Ok(())
    }

    /// Sees to it that nobody changes a buffer that neighbours still look at.
    fn let_look(&self, written: &[B::Buffer]) -> Result<()> {
        if !self.exchanged.borrow().contains(&written.as_ptr()) {
            return Ok(());
        }
        self.exchanged.borrow_mut().clear();
        self.backends.iter().try_for_each(Peer::meet)
    }
}

impl<B: Part> Backend for Parts<B> {
    type Buffer = Vec<B::Buffer>;
    type Recording = B::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<GridScript>::clone(&self.script)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer> {
        let parts = self.backends.iter().enumerate();
        parts.map(|(part, backend)| backend.load(variable, &self.cut.own_of(variable, part, data))).collect()
    }

    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data> {
        let Some(shape) = self.cut.shape(variable) else {
            return self.backends[0].read(variable, &buffer[0]);
        };
        let parts = self.backends.iter().zip(buffer).map(|(backend, buffer)| backend.read(variable, buffer));
        Ok(self.cut.joined(shape, self.script.element(variable), &parts.collect::<Result<Vec<_>>>()?))
    }

    fn fill_halo(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<()> {
        self.fill_halos(&[(variable, buffer)])
    }

    fn fill_halos(&self, all: &[(VariableId, &Self::Buffer)]) -> Result<()> {
        for (variable, buffer) in all {
            let mut parts = self.backends.iter().zip(*buffer);
            parts.try_for_each(|(backend, own)| backend.fill_halo(*variable, own))?;
        }
        let brought: Vec<_> = all.iter().filter(|(variable, _)| self.is_brought(*variable)).collect();
        // Who brings nothing waits for nobody: so one meeting serves all buffers of which the same parts bring something.
        let mut has_waited = vec![false; self.backends.len()];
        for (variable, buffer) in &brought {
            let brings = |part: usize| Side::BOTH.iter().any(|&side| self.message(*variable, part, side).is_some());
            let meets = has_waited.iter().enumerate().any(|(part, has_waited)| !has_waited && brings(part));
            has_waited.iter_mut().enumerate().for_each(|(part, has_waited)| *has_waited |= meets && brings(part));
            if meets && (0..self.backends.len()).all(brings) {
                // All have waited, and so seen that their neighbours have exchanged all that came before.
                self.exchanged.borrow_mut().clear();
            }
            for (part, own) in self.backends.iter().enumerate() {
                let neighbours = Side::BOTH.map(|side| {
                    let other = self.neighbours[part][side as usize]?;
                    let (message, buffer) = (self.message(*variable, part, side), &buffer[other]);
                    Some(Neighbour { part: &self.backends[other], buffer, message })
                });
                own.exchange(*variable, &buffer[part], neighbours, meets)?;
            }
            if !self.exchanged.borrow().contains(&buffer.as_ptr()) {
                self.exchanged.borrow_mut().push(buffer.as_ptr());
            }
        }
        Ok(())
    }

    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()> {
        self.let_look(to)?;
        self.backends.iter().zip(from.iter().zip(to)).try_for_each(|(backend, (from, to))| backend.copy(from, to))
    }

    fn compute(&self, stage: &Computed, arrays: Arrays<Self::Buffer>) -> Result<()> {
        if stage.times != 1 {
            return Err(Error::check("parts are computed step after step"));
        }
        arrays.writes.iter().try_for_each(|(_, written)| self.let_look(written))?;
        for (part, backend) in self.backends.iter().enumerate() {
            if self.cut.parts[part].staged.stages[stage.stage].region.cells() == 0 {
                continue;
            }
            let [reads, writes] = arrays.of_part(part);
            backend.compute(stage, Arrays { reads: &reads, writes: &writes })?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.backends.iter().try_for_each(Backend::wait)
    }

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        // What is recorded begins when all was done before, and all is done when it ends.
        self.exchanged.borrow_mut().clear();
        let recording = B::record_together(&self.backends, work)?;
        self.exchanged.borrow_mut().clear();
        Ok(recording)
    }

    fn replay(&self, recording: &Self::Recording) -> Result<()> {
        B::replay_together(&self.backends, recording)
    }
}
