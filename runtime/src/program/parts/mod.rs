//! A program on several devices: each has some rows of the grid, and computes them as it would compute any grid.
//!
//! ```text
//! mod: as one backend, whose buffers have a part on each device -> script: what the program does, with rows that are brought
//!      messages: which rows go from whom to whom                -> cpu, bring: how a backend gets them
//! ```
//!
//! The driver above and the backends below know of no parts. Every value is computed by one device, from the values that a single device
//! would have, so the bits do not depend on how many there are.

pub(super) mod bring;
mod cpu;
mod messages;
mod script;
#[cfg(test)]
mod tests;

use super::ProgramProblem;
use super::plan::{PlanKind, ProgramPlan};
use crate::array::Data;
use crate::driver::{Arrays, Backend, Computed, Script};
use crate::error::{Error, Result};
use messages::{Message, messages};
use script::PartsScript;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::{FieldId, Handle, VariableId};
use stencilc_compiler::program::Beyond;

/// A backend that can have a part of a program.
pub trait Part: Backend {
    /// Lets it look at what another part holds.
    ///
    /// # Errors
    /// There is no way from one machine to the other.
    fn look_at(&self, other: &Self) -> Result<()>;

    /// Lets what it is asked from now on wait for what another part was asked until now.
    ///
    /// # Errors
    /// The machine fails.
    fn wait_for(&self, other: &Self) -> Result<()>;

    /// Records what all parts are asked by a closure, as [`Backend::record`] does of one.
    ///
    /// # Errors
    /// As there.
    fn record_together(parts: &[Self], work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>>
    where
        Self: Sized;

    /// Does what was recorded of all parts.
    ///
    /// # Errors
    /// A machine fails.
    fn replay_together(parts: &[Self], recording: &Self::Recording) -> Result<()>
    where
        Self: Sized;

    /// Brings rows of another part's buffer of a variable into its own.
    ///
    /// # Errors
    /// The machine fails.
    fn bring(
        &self,
        variable: VariableId,
        message: &Message,
        to: &Self::Buffer,
        other: &Self,
        from: &Self::Buffer,
    ) -> Result<()>;
}

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
}

/// Computes a program by parts.
pub struct Parts<B: Part> {
    cut: Cut,
    script: Arc<PartsScript>,
    backends: Vec<B>,
    messages: Vec<Message>,
}

impl<B: Part> Parts<B> {
    /// By a backend for each part of a cut.
    ///
    /// # Errors
    /// The machines of two neighbours do not reach each other.
    pub fn new(cut: Cut, backends: Vec<B>) -> Result<Self> {
        let script = Arc::new(PartsScript::new(Arc::clone(&cut.whole)));
        let messages = messages(&cut.whole.staged, &cut.parts);
        for Message { to, from, .. } in &messages {
            backends[*to].look_at(&backends[*from])?;
        }
        Ok(Self { cut, script, backends, messages })
    }

    /// What computes each part.
    pub fn backends(&self) -> &[B] {
        &self.backends
    }

    /// The lengths of a variable's array: of a row along i, and of levels; nothing of one that has no rows.
    fn shape(&self, variable: VariableId) -> Option<[usize; 2]> {
        let staged = &self.cut.whole.staged;
        let place = staged.program.variables[variable].place;
        place.horizontal.then(|| [staged.domain.ni, place.levels.count(staged.domain.nk)])
    }

    /// Lets parts that are neighbours wait for each other.
    fn meet(&self) -> Result<()> {
        let pairs: BTreeSet<(usize, usize)> = self.messages.iter().map(|message| (message.to, message.from)).collect();
        pairs.into_iter().try_for_each(|(to, from)| self.backends[to].wait_for(&self.backends[from]))
    }
}

/// The numbers of some rows of an array whose rows and levels have these lengths.
fn rows_of(data: &Data, [ni, levels]: [usize; 2], nj: usize, rows: &Range<usize>) -> Data {
    let mut own = Data::fresh(data.element(), ni * levels * rows.len());
    put(
        data,
        &mut own,
        levels,
        |level| (level * nj + rows.start) * ni,
        |level| level * rows.len() * ni,
        ni * rows.len(),
    );
    own
}

/// Copies as many numbers of each level.
pub(super) fn put(
    from: &Data,
    to: &mut Data,
    levels: usize,
    first: impl Fn(usize) -> usize,
    place: impl Fn(usize) -> usize,
    count: usize,
) {
    fn each<T: Copy>(from: &[T], to: &mut [T], runs: impl Iterator<Item = (usize, usize)>, count: usize) {
        runs.for_each(|(first, place)| to[place..place + count].copy_from_slice(&from[first..first + count]));
    }
    let runs = (0..levels).map(|level| (first(level), place(level)));
    match (from, to) {
        (Data::F32(from), Data::F32(to)) => each(from, to, runs, count),
        (Data::F64(from), Data::F64(to)) => each(from, to, runs, count),
        (Data::I32(from), Data::I32(to)) => each(from, to, runs, count),
        (Data::Bool(from), Data::Bool(to)) => each(from, to, runs, count),
        // Both are of one variable.
        (Data::F32(_) | Data::F64(_) | Data::I32(_) | Data::Bool(_), _) => {}
    }
}

impl<B: Part> Backend for Parts<B> {
    type Buffer = Vec<B::Buffer>;
    type Recording = B::Recording;

    fn script(&self) -> Arc<dyn Script> {
        Arc::<PartsScript>::clone(&self.script)
    }

    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer> {
        let nj = self.cut.whole.staged.domain.nj;
        let parts = self.backends.iter().zip(&self.cut.rows);
        let load = |(backend, rows): (&B, &Range<usize>)| match self.shape(variable) {
            Some(shape) => backend.load(variable, &rows_of(data, shape, nj, rows)),
            None => backend.load(variable, data),
        };
        parts.map(load).collect()
    }

    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data> {
        let Some([ni, levels]) = self.shape(variable) else {
            return self.backends[0].read(variable, &buffer[0]);
        };
        let nj = self.cut.whole.staged.domain.nj;
        let mut all = Data::fresh(self.script.element(variable), ni * nj * levels);
        for ((backend, buffer), rows) in self.backends.iter().zip(buffer).zip(&self.cut.rows) {
            let own = backend.read(variable, buffer)?;
            let (len, first) = (rows.len(), rows.start);
            put(&own, &mut all, levels, |level| level * len * ni, |level| (level * nj + first) * ni, ni * len);
        }
        Ok(all)
    }

    fn fill_halo(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<()> {
        // What lies beyond the other edges comes with a neighbour's rows, so it has to be there before.
        for (backend, own) in self.backends.iter().zip(buffer) {
            backend.fill_halo(variable, own)?;
        }
        if !self.script.is_brought(variable) {
            return Ok(());
        }
        self.meet()?;
        let is_wanted = |message: &&Message| {
            let edges = &self.cut.parts[message.to].staged.edges[variable.index()];
            message.count > 0 && edges.beyond(GridAxis::J, message.side) == Some(Beyond::Neighbour)
        };
        for message in self.messages.iter().filter(is_wanted) {
            let &Message { to, from, .. } = message;
            self.backends[to].bring(variable, message, &buffer[to], &self.backends[from], &buffer[from])?;
        }
        // Nobody changes what a neighbour still fetches.
        self.meet()
    }

    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()> {
        self.backends.iter().zip(from.iter().zip(to)).try_for_each(|(backend, (from, to))| backend.copy(from, to))
    }

    fn compute(&self, stage: &Computed, arrays: Arrays<Self::Buffer>) -> Result<()> {
        if stage.times != 1 {
            return Err(Error::check("parts are computed step after step"));
        }
        for (part, backend) in self.backends.iter().enumerate() {
            if self.cut.parts[part].staged.stages[stage.stage].region.cells() == 0 {
                continue;
            }
            let reads: Vec<(FieldId, &B::Buffer)> =
                arrays.reads.iter().map(|(field, buffer)| (*field, &buffer[part])).collect();
            let writes: Vec<(FieldId, &B::Buffer)> =
                arrays.writes.iter().map(|(field, buffer)| (*field, &buffer[part])).collect();
            backend.compute(stage, Arrays { reads: &reads, writes: &writes })?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        self.backends.iter().try_for_each(Backend::wait)
    }

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        B::record_together(&self.backends, work)
    }

    fn replay(&self, recording: &Self::Recording) -> Result<()> {
        B::replay_together(&self.backends, recording)
    }
}
