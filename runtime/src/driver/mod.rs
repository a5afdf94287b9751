//! Does what a program says, step by step, on grids and over meshes alike.
//!
//! ```text
//! script: what a program does (Script), and what computes it (Backend)
//! mod: from step to step, in loops -> slots: which buffer holds which variable
//!                                  -> numbers: those of the program, known when somebody needs them
//! cycles: loops whose launches are recorded
//! dry: what it asks for, of which nothing is done
//! ```

mod cycles;
pub mod dry;
mod numbers;
#[cfg(test)]
pub(crate) mod recorder;
mod script;
mod slots;

use crate::array::Data;
use crate::error::Result;
use cycles::Cycle;
use numbers::Shared;
pub use script::{Arrays, Backend, Before, Computed, NumberOf, Position, Script, Uses, Write, knows_total, total};
use slots::{Slot, Slots};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{FieldId, Role, VariableId};
use stencilc_compiler::program::{Loop, Step};

/// The most times that a loop is run in one launch, so that one sees how far it is.
const AT_ONCE: usize = 2048;

/// A program on its way.
pub struct Driver<B: Backend> {
    script: Arc<dyn Script>,
    backend: Rc<B>,
    slots: Slots<B::Buffer>,
    numbers: BTreeMap<VariableId, Shared<B::Buffer>>,
    /// Whether loops may be recorded.
    records: bool,
    cycles: Vec<Cycle<B::Recording>>,
    /// How often somebody looked at what a reduction left, whose slot was free from then on.
    looks: Cell<u64>,
    /// Stages that were computed.
    launches: u64,
    /// The outermost loop that it is in, by its step, and how often that is run in all.
    repeated: Option<(usize, usize)>,
    /// How often outermost loops were run until now.
    done: u64,
    /// How far it is.
    pub position: Position,
}

/// A stage, and the buffers that it works on.
pub(crate) struct Opened<B> {
    computed: Computed,
    reads: Vec<(FieldId, Rc<Slot<B>>)>,
    writes: Vec<(FieldId, VariableId, Rc<Slot<B>>)>,
}

impl<B> Clone for Opened<B> {
    fn clone(&self) -> Self {
        Self { computed: self.computed.clone(), reads: self.reads.clone(), writes: self.writes.clone() }
    }
}

impl<B: Backend> Driver<B> {
    /// What a backend computes, before its first step: nothing is bound.
    pub fn new(backend: B) -> Self {
        Self::of(backend.script(), backend)
    }

    /// The same of another program that has the same stages.
    pub fn of(script: Arc<dyn Script>, backend: B) -> Self {
        Self {
            slots: Slots::new(script.program()),
            script,
            backend: Rc::new(backend),
            numbers: BTreeMap::new(),
            records: true,
            cycles: Vec::new(),
            looks: Cell::new(0),
            launches: 0,
            repeated: None,
            done: 0,
            position: Position::default(),
        }
    }

    /// What computes.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// The same, with what is given to the program.
    ///
    /// # Errors
    /// There is not enough memory, or an array is missing.
    pub fn given(mut self) -> Result<Self> {
        let script = Arc::clone(&self.script);
        for (variable, data) in script.initial()? {
            self.set(variable, data)?;
        }
        Ok(self)
    }

    /// How often its outermost loops are run, as far as that is known before.
    ///
    /// # Errors
    /// A number of repetitions is negative.
    pub fn total(&self) -> Result<u64> {
        total(&*self.script)
    }

    /// Runs the program from where it is to its end. `after` is told after each time of an outermost loop, or after several
    /// of them, how many there were; never later than at a multiple of `every`.
    ///
    /// # Errors
    /// The machine fails, a number of repetitions is negative, or `after` fails.
    pub fn run(&mut self, every: Option<u64>, after: &mut dyn FnMut(&Self, u64) -> Result<()>) -> Result<()> {
        loop {
            let until = every.map_or(u64::MAX, |every| every - self.done % every);
            let Some(times) = self.advance(until)? else { return Ok(()) };
            after(self, times)?;
        }
    }

    /// Runs the program on, as far as several times of an outermost loop at once, at most `most` of them. Returns how many times
    /// there were; nothing at the end.
    ///
    /// # Errors
    /// The machine fails, or a number of repetitions is negative.
    pub fn advance(&mut self, most: u64) -> Result<Option<u64>> {
        let script = Arc::clone(&self.script);
        while let Some(step) = script.steps().get(self.position.step) {
            let Step::Repeat(own) = step else {
                self.steps(std::slice::from_ref(step))?;
                self.position.step += 1;
                continue;
            };
            let all = match self.repeated {
                // A number that says how often may have changed since the loop began.
                Some((step, all)) if step == self.position.step && self.position.time > 0 && !script.is_known(own) => {
                    all
                }
                _ => self.times_of(own)?,
            };
            self.repeated = Some((self.position.step, all));
            if self.position.time < all {
                let left = (all - self.position.time).min(usize::try_from(most).unwrap_or(usize::MAX));
                let times = self.times(own, self.position.time, left)?;
                self.position.time += times;
                self.done = self.done.saturating_add(times as u64);
                return Ok(Some(times as u64));
            }
            // From the end of the last loop a longer one can go on.
            if self.position.step + 1 == script.steps().len() {
                break;
            }
            self.position = Position { step: self.position.step + 1, time: 0 };
        }
        Ok(None)
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// As [`Driver::run`].
    pub fn finish(&mut self) -> Result<()> {
        self.run(None, &mut |_, _| Ok(()))
    }

    /// Waits until all that was done is computed.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn wait(&self) -> Result<()> {
        self.backend.wait()
    }

    /// Goes back to the beginning, with what its variables hold by now; those that hold nothing any more have what was given.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn begin_again(&mut self) -> Result<()> {
        self.position = Position::default();
        let script = Arc::clone(&self.script);
        for (variable, data) in script.initial()? {
            if self.slots.bound(variable).is_none() {
                self.set(variable, data)?;
            }
        }
        Ok(())
    }

    /// How far it is, in the actions of its text.
    pub(crate) fn position_in_text(&self) -> Position {
        self.position.in_text(&*self.script)
    }

    /// What the program does.
    pub fn script(&self) -> Arc<dyn Script> {
        Arc::clone(&self.script)
    }

    /// How often outermost loops were run until now.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// How often the outermost loop is run in all that it is in, if a number said so when it began.
    pub(crate) fn repeats(&self) -> Option<usize> {
        let Some(Step::Repeat(own)) = self.script.steps().get(self.position.step) else { return None };
        let (step, all) = self.repeated.filter(|_| !self.script.is_known(own))?;
        (step == self.position.step).then_some(all)
    }

    /// Goes on from a position, by which outermost loops were run `done` times, and the one that it is in is run so often.
    pub(crate) fn go_to(&mut self, position: Position, done: u64, repeats: Option<usize>) {
        self.repeated = repeats.map(|all| (position.step, all));
        (self.position, self.done) = (position, done);
    }

    /// Does a loop once, or several times at once, at most `left` times, after `done` times. Returns how often.
    fn some(&mut self, own: &Loop, done: usize, left: usize) -> Result<usize> {
        own.names.iter().for_each(|&name| self.slots.unbind(name));
        if let Some(counter) = own.counter {
            self.set_number(counter, Value::Int(i32::try_from(done).unwrap_or(i32::MAX)));
        }
        let is_steady = own.is_steady(done);
        if let Some(stage) = own.whole.filter(|_| is_steady) {
            let times = left.min(AT_ONCE);
            return self.stage(stage, times).map(|()| times);
        }
        match &own.unrolled {
            Some(wide) if is_steady && wide.times <= left => self.steps(&wide.steps).map(|()| wide.times),
            _ => self.steps(own.turn(done)).map(|()| 1),
        }
    }

    fn steps(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Stage(stage) => self.stage(*stage, 1)?,
                Step::Rename(from, to) => self.rename(*from, *to)?,
                Step::Number(to, value) => self.make(*to, value)?,
                Step::Repeat(own) => {
                    let (mut done, all) = (0, self.times_of(own)?);
                    while done < all {
                        done += self.times(own, done, all - done)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes a stage, and binds its results.
    fn stage(&mut self, number: usize, times: usize) -> Result<()> {
        let opened = self.open(number, times)?;
        self.compute(&opened)?;
        self.launches += 1;
        self.close(opened);
        Ok(())
    }

    /// The buffers of a stage, which hold what they have to before it.
    pub(crate) fn open(&mut self, stage: usize, times: usize) -> Result<Opened<B::Buffer>> {
        let script = Arc::clone(&self.script);
        let Uses { reads, writes, ends } = script.uses(stage);
        let params = script.params(stage, &mut |id| self.number_or_nan(id))?;
        for (n, &(_, variable)) in reads.iter().enumerate() {
            self.part(stage, variable, &reads[..n])?;
        }
        let held = self.with_halos(stage, &reads)?;
        let before = |own: &Write| match own.before {
            Before::Kept(variable) => Ok(variable.and_then(|id| self.slots.bound(id))),
            Before::Sum(variable) => self.bound_to(variable).map(Some),
            Before::Zero => Ok(None),
        };
        let before: Vec<Option<Rc<Slot<B::Buffer>>>> = writes.iter().map(before).collect::<Result<_>>()?;
        // Nobody looks at these later: the stage may have them. What is to have a new value needs none meanwhile.
        ends.iter().for_each(|&id| self.slots.unbind(id));
        writes
            .iter()
            .filter(|own| own.before == Before::Kept(Some(own.variable)))
            .for_each(|own| self.slots.unbind(own.variable));
        let computed = Computed { stage, times, params };
        let mut targets = Vec::new();
        for (write, before) in writes.iter().zip(before) {
            let target = match write.before {
                Before::Kept(_) => self.target(&computed, write.variable, before)?,
                Before::Sum(_) | Before::Zero => self.summed(write.variable, before)?,
            };
            targets.push((write.field, write.variable, target));
        }
        Ok(Opened { computed, reads: held, writes: targets })
    }

    /// Computes a stage.
    pub(crate) fn compute(&self, opened: &Opened<B::Buffer>) -> Result<()> {
        let reads: Vec<(FieldId, &B::Buffer)> =
            opened.reads.iter().map(|(field, slot)| (*field, &slot.buffer)).collect();
        let writes: Vec<(FieldId, &B::Buffer)> =
            opened.writes.iter().map(|(field, _, slot)| (*field, &slot.buffer)).collect();
        self.backend.compute(&opened.computed, Arrays { reads: &reads, writes: &writes })
    }

    /// Binds the results of a stage.
    pub(crate) fn close(&mut self, opened: Opened<B::Buffer>) {
        for (_, variable, slot) in opened.writes {
            slot.filled.set(None);
            match self.script.is_number(variable) {
                true => self.reduced(variable, slot),
                false => self.slots.bind(variable, slot),
            }
        }
    }

    /// How often a loop is run.
    fn times_of(&self, own: &Loop) -> Result<usize> {
        self.script.times(own, &mut |id| self.number_or_nan(id))
    }

    /// What the declared variables hold that are written, fields and numbers, in the order declared; nothing where one never got a
    /// value.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn results(&self) -> Result<Vec<(VariableId, Option<Data>)>> {
        let program = self.script.program();
        let outputs = program.variables.iter().filter(|(_, own)| own.role.is_some_and(Role::is_written));
        outputs.map(|(id, _)| Ok((id, self.get(id)?))).collect()
    }

    /// The rows of a variable that this process has, in the user's order; nothing if it never got a value, or where no process has others.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn own(&self, variable: VariableId) -> Result<Option<Data>> {
        let slot = self.slots.bound(variable).filter(|_| !self.script.is_number(variable));
        slot.map_or(Ok(None), |slot| self.backend.own(variable, &slot.buffer))
    }

    /// What a variable holds, in the user's order; nothing if it never got a value.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn get(&self, variable: VariableId) -> Result<Option<Data>> {
        if !self.script.is_number(variable) {
            let slot = self.slots.bound(variable);
            return slot.map(|slot| self.backend.read(variable, &slot.buffer)).transpose();
        }
        // A number is as wide as those of the program.
        let element = self.script.element(variable);
        Ok(self.number(variable)?.map(|value| Data::single(element, value)))
    }
}
