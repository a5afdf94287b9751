//! Does what a program says, step by step.
//!
//! A variable is bound to a slot: a buffer, and what is known of its content. A call reads the slots that its arguments
//! are bound to, and writes fresh ones, which its results are bound to afterwards; so nothing that is read is written,
//! and buffers rotate by themselves. A slot that nobody is bound to any more waits to be used again.

use super::cycles::{Cycle, State};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::problem::element_of;
use std::cell::Cell;
use std::rc::Rc;
use stencilc_compiler::ir::program::Action;
use stencilc_compiler::ir::{FieldId, Handle, Place, Stored, VariableId};
use stencilc_compiler::program::{Loop, Stage, Staged, Step};

/// Computes what a program asks for.
pub trait Backend {
    /// Where it keeps an array with its halo.
    type Buffer;

    /// What was asked for, recorded.
    type Recording;

    /// A buffer for a variable that holds these numbers, given without a halo.
    ///
    /// # Errors
    /// There is not so much memory.
    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer>;

    /// The numbers in a variable's buffer, without its halo.
    ///
    /// # Errors
    /// The machine fails.
    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data>;

    /// Fills the halo of a variable's buffer.
    ///
    /// # Errors
    /// The machine fails.
    fn fill_halo(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<()>;

    /// Copies a buffer to another of the same shape.
    ///
    /// # Errors
    /// The machine fails.
    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()>;

    /// Computes a stage of the program, one that is a whole loop so many times.
    ///
    /// # Errors
    /// The machine fails.
    fn compute(
        &self,
        stage: usize,
        times: usize,
        reads: &[(FieldId, &Self::Buffer)],
        writes: &[(FieldId, &Self::Buffer)],
    ) -> Result<()>;

    /// Records what a closure asks for, which is not done: `replay` does it, as often as one likes. Nothing, and the closure is
    /// not called, if that has no use.
    ///
    /// # Errors
    /// Those of the closure, and when it asks for what cannot be recorded, such as a buffer.
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>>;

    /// Does what was recorded.
    ///
    /// # Errors
    /// The machine fails.
    fn replay(&self, recording: &Self::Recording) -> Result<()>;
}

/// The most times that a loop is run in one launch, so that one sees how far it is.
const AT_ONCE: usize = 2048;

/// What buffers of one size have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    place: Place,
    stored: Stored,
}

/// A buffer, and what is known of its content.
struct Slot<B> {
    number: usize,
    buffer: B,
    shape: Shape,
    /// The variable by whose rules its halo is filled.
    filled: Cell<Option<VariableId>>,
    /// What the cells hold that calls of a region do not compute: slots with the same mark hold the same there.
    frame: Cell<Option<Frame>>,
}

/// What cells outside the region of a stage hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    mark: u64,
    /// The first stage of this region.
    region: usize,
}

/// How far a program is: so many steps of its outermost sequence are done, and so many times of the loop after them.
///
/// Plans make other steps of the same text, so what is kept counts the text's actions instead: [`Position::in_text`], and
/// [`Position::in_steps`] back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Steps of the outermost sequence that are done.
    pub step: usize,
    /// Times that the loop after them was run.
    pub time: usize,
}

impl Position {
    /// How often outermost loops were run by then.
    pub fn done(self, staged: &Staged) -> u64 {
        let before = staged.steps.iter().take(self.step).map(Step::times).fold(0, u64::saturating_add);
        before.saturating_add(self.time as u64)
    }

    /// A position between steps as one between the actions of the text. Programs are looked at before they begin, in their
    /// outermost loops, and at their end: of loops there are as many here as there, in the same order.
    pub(super) fn in_text(self, staged: &Staged) -> Position {
        let actions = &staged.program.actions;
        let place = loops(&staged.steps, is_loop).position(|step| step == self.step);
        match place.and_then(|place| loops(actions, is_repeat).nth(place)) {
            Some(step) => Position { step, time: self.time },
            None if self.step == 0 => Position::default(),
            None => Position { step: actions.len(), time: 0 },
        }
    }

    /// A position between the actions of the text as one between steps. Nothing, if a program is never looked at there.
    pub(super) fn in_steps(self, staged: &Staged) -> Option<Position> {
        let actions = &staged.program.actions;
        let place = loops(actions, is_repeat).position(|step| step == self.step);
        match place {
            Some(place) => Some(Position { step: loops(&staged.steps, is_loop).nth(place)?, time: self.time }),
            None if self.time > 0 => None,
            None if self.step == 0 => Some(Position::default()),
            None => (self.step == actions.len()).then_some(Position { step: staged.steps.len(), time: 0 }),
        }
    }
}

/// Where loops are in a sequence.
fn loops<T>(all: &[T], is_loop: fn(&T) -> bool) -> impl Iterator<Item = usize> {
    all.iter().enumerate().filter(move |(_, own)| is_loop(own)).map(|(place, _)| place)
}

fn is_loop(step: &Step) -> bool {
    matches!(step, Step::Repeat(_))
}

fn is_repeat(action: &Action) -> bool {
    matches!(action, Action::Repeat(_))
}

/// A program on its way.
pub struct Driver<'a, B: Backend> {
    pub(super) staged: &'a Staged,
    pub(super) backend: &'a B,
    bound: Vec<Option<Rc<Slot<B::Buffer>>>>,
    free: Vec<Slot<B::Buffer>>,
    /// Slots that were made.
    slots: usize,
    /// Slots that hold nothing, by the number of the region that calls compute: what new names hold elsewhere.
    blank: Vec<(usize, Rc<Slot<B::Buffer>>)>,
    marks: Cell<u64>,
    /// Whether loops may be recorded.
    pub(super) records: bool,
    pub(super) cycles: Vec<Cycle<B::Recording>>,
    /// Stages that were computed.
    pub(super) launches: u64,
    /// How far it is.
    pub position: Position,
}

impl<'a, B: Backend> Driver<'a, B> {
    /// A program before its first step: nothing is bound.
    pub fn new(staged: &'a Staged, backend: &'a B) -> Self {
        let bound = staged.program.variables.iter().map(|_| None).collect();
        Self {
            staged,
            backend,
            bound,
            free: Vec::new(),
            slots: 0,
            blank: Vec::new(),
            marks: Cell::new(0),
            records: true,
            cycles: Vec::new(),
            launches: 0,
            position: Position::default(),
        }
    }

    /// Gives a variable its numbers.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn set(&mut self, variable: VariableId, data: &Data) -> Result<()> {
        let buffer = self.backend.load(variable, data)?;
        let slot = self.slot(buffer, variable);
        self.bind(variable, Rc::new(slot));
        Ok(())
    }

    /// The numbers of a variable, if it is bound.
    ///
    /// # Errors
    /// The machine fails.
    pub fn get(&self, variable: VariableId) -> Result<Option<Data>> {
        let slot = self.bound[variable.index()].as_ref();
        slot.map(|slot| self.backend.read(variable, &slot.buffer)).transpose()
    }

    /// The variables that are bound, with the number of the slot that each is bound to: those of one slot are one value.
    pub fn bound(&self) -> Vec<(VariableId, usize)> {
        let mut slots: Vec<*const Slot<B::Buffer>> = Vec::new();
        let mut bound = Vec::new();
        for (n, slot) in self.bound.iter().enumerate() {
            let Some(slot) = slot else { continue };
            let own = Rc::as_ptr(slot);
            let number = slots.iter().position(|&known| std::ptr::eq(known, own)).unwrap_or_else(|| {
                slots.push(own);
                slots.len() - 1
            });
            bound.push((VariableId::new(n), number));
        }
        bound
    }

    /// Gives a variable the value of another.
    ///
    /// # Errors
    /// The buffer of one is none for the other: it has another size, or holds numbers of another type.
    pub fn share(&mut self, from: VariableId, to: VariableId) -> Result<()> {
        if self.shape(from) != self.shape(to) {
            let [from, to] = [from, to].map(|id| &self.staged.program.variables[id].name);
            return Err(Error::check(format!("`{to}` cannot hold what `{from}` holds")));
        }
        if let Some(slot) = self.bound[from.index()].clone() {
            self.bind(to, slot);
        }
        Ok(())
    }

    /// Runs the program from where it is to its end. `after` is told after each time of an outermost loop, or after several
    /// of them, how many there were; never later than at a multiple of `every`.
    ///
    /// # Errors
    /// The machine fails, or `after` does.
    pub fn run(&mut self, every: Option<u64>, after: &mut dyn FnMut(&Self, u64) -> Result<()>) -> Result<()> {
        let staged = self.staged;
        let mut done = self.position.done(staged);
        while let Some(step) = staged.steps.get(self.position.step) {
            let Step::Repeat(own) = step else {
                self.steps(std::slice::from_ref(step))?;
                self.position.step += 1;
                continue;
            };
            while self.position.time < own.times {
                let until = every.map_or(u64::MAX, |every| every - done % every);
                let left = (own.times - self.position.time).min(usize::try_from(until).unwrap_or(usize::MAX));
                let times = self.times(own, self.position.time, left)?;
                done += times as u64;
                self.position.time += times;
                after(self, times as u64)?;
            }
            // From the end of the last loop a longer one can go on.
            if self.position.step + 1 == staged.steps.len() {
                break;
            }
            self.position = Position { step: self.position.step + 1, time: 0 };
        }
        Ok(())
    }

    /// Does a loop once, or several times at once, at most `left` times, after `done` times. Returns how often.
    pub(super) fn some(&mut self, own: &Loop, done: usize, left: usize) -> Result<usize> {
        own.names.iter().for_each(|&name| self.unbind(name));
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
                Step::Rename(from, to) => self.share(*from, *to)?,
                Step::Repeat(own) => {
                    let mut done = 0;
                    while done < own.times {
                        done += self.times(own, done, own.times - done)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes a stage, and binds its results.
    fn stage(&mut self, number: usize, times: usize) -> Result<()> {
        let stage = &self.staged.stages[number];
        let mut held = Vec::new();
        for (field, variable) in stage.reads() {
            self.part(variable, stage)?;
            held.push((field, self.with_halo(variable, stage.wraps)?));
        }
        let mut writes = Vec::new();
        for (field, variable) in stage.writes() {
            writes.push((field, variable, self.target(number, variable)?));
        }
        let reads: Vec<(FieldId, &B::Buffer)> = held.iter().map(|(field, slot)| (*field, &slot.buffer)).collect();
        let targets: Vec<(FieldId, &B::Buffer)> =
            writes.iter().map(|(field, _, slot)| (*field, &slot.buffer)).collect();
        self.backend.compute(number, times, &reads, &targets)?;
        self.launches += 1;
        // Slots that only this call still held are free from now on.
        drop(held);
        for (_, variable, slot) in writes {
            slot.filled.set(None);
            self.bind(variable, Rc::new(slot));
        }
        Ok(())
    }

    /// Gives a variable a slot of its own if it shares one with another that the same stage reads by other rules.
    fn part(&mut self, variable: VariableId, stage: &Stage) -> Result<()> {
        if stage.wraps || !self.staged.needs_halo(variable) {
            return Ok(());
        }
        let Some(slot) = self.bound[variable.index()].clone() else { return Ok(()) };
        let is_other = |other: VariableId| {
            let shares = self.bound[other.index()].as_ref().is_some_and(|own| Rc::ptr_eq(own, &slot));
            shares && !self.has_same_edges(other, variable)
        };
        if !stage.reads().take_while(|(_, other)| *other != variable).any(|(_, other)| is_other(other)) {
            return Ok(());
        }
        let suits = self.free.iter().position(|own| own.shape == slot.shape);
        let own = match suits {
            Some(place) => self.free.swap_remove(place),
            None => self.fresh(variable)?,
        };
        self.backend.copy(&slot.buffer, &own.buffer)?;
        own.filled.set(None);
        own.frame.set(slot.frame.get());
        self.bind(variable, Rc::new(own));
        Ok(())
    }

    /// What a variable is bound to, its halo filled by its rules unless the stage needs none.
    fn with_halo(&mut self, variable: VariableId, wraps: bool) -> Result<Rc<Slot<B::Buffer>>> {
        let missing = || {
            let name = &self.staged.program.variables[variable].name;
            Error::check(format!("`{name}` has no value"))
        };
        let slot = self.bound[variable.index()].clone().ok_or_else(missing)?;
        if wraps
            || !self.staged.needs_halo(variable)
            || slot.filled.get().is_some_and(|by| self.has_same_edges(by, variable))
        {
            return Ok(slot);
        }
        self.backend.fill_halo(variable, &slot.buffer)?;
        slot.filled.set(Some(variable));
        Ok(slot)
    }

    fn has_same_edges(&self, a: VariableId, b: VariableId) -> bool {
        a == b || self.staged.edges[a.index()] == self.staged.edges[b.index()]
    }

    /// A slot that a stage may write a variable to: cells that it does not compute hold what the variable holds now.
    fn target(&mut self, number: usize, variable: VariableId) -> Result<Slot<B::Buffer>> {
        let (stage, shape) = (&self.staged.stages[number], self.shape(variable));
        let region = self.staged.stages.iter().position(|own| own.region == stage.region).unwrap_or(number);
        let is_all = self.staged.computes_all(&stage.region, variable);
        let before = match (is_all, self.bound[variable.index()].clone()) {
            (true, _) => None,
            (false, Some(before)) => Some(before),
            (false, None) => Some(self.blank(region, variable)?),
        };
        let frame = before.as_ref().and_then(|before| before.frame.get()).filter(|frame| frame.region == region);
        let suits = |slot: &Slot<B::Buffer>| slot.shape == shape;
        let framed = self.free.iter().position(|slot| suits(slot) && frame.is_some() && slot.frame.get() == frame);
        let found = framed.or_else(|| self.free.iter().position(suits));
        let slot = match found {
            Some(place) => self.free.swap_remove(place),
            None => self.fresh(variable)?,
        };
        let Some(before) = before else {
            slot.frame.set(None);
            return Ok(slot);
        };
        if frame.is_none() || slot.frame.get() != frame {
            self.backend.copy(&before.buffer, &slot.buffer)?;
            self.marks.set(self.marks.get() + 1);
            let frame = Some(Frame { mark: self.marks.get(), region });
            before.frame.set(frame);
            slot.frame.set(frame);
        }
        Ok(slot)
    }

    /// A slot of a variable's shape that holds nothing.
    fn blank(&mut self, region: usize, variable: VariableId) -> Result<Rc<Slot<B::Buffer>>> {
        let shape = self.shape(variable);
        let known = self.blank.iter().find(|(own, slot)| *own == region && slot.shape == shape);
        if let Some((_, slot)) = known {
            return Ok(Rc::clone(slot));
        }
        let slot = Rc::new(self.fresh(variable)?);
        self.blank.push((region, Rc::clone(&slot)));
        Ok(slot)
    }

    fn fresh(&mut self, variable: VariableId) -> Result<Slot<B::Buffer>> {
        let shape = self.shape(variable);
        let len = self.staged.inner_of(shape.place).iter().map(std::ops::Range::len).product();
        let data = Data::fresh(element_of(shape.stored, self.staged.precision), len);
        let buffer = self.backend.load(variable, &data)?;
        Ok(self.slot(buffer, variable))
    }

    fn slot(&mut self, buffer: B::Buffer, variable: VariableId) -> Slot<B::Buffer> {
        self.slots += 1;
        let shape = self.shape(variable);
        Slot { number: self.slots, buffer, shape, filled: Cell::new(None), frame: Cell::new(None) }
    }

    /// Where everything is.
    pub(super) fn state(&self) -> State {
        // Of marks it counts alone which are the same.
        let mut marks = Vec::new();
        let mut known = |slot: &Slot<B::Buffer>| {
            let frame = slot.frame.get().map(|Frame { mark, region }| {
                let place = marks.iter().position(|known| *known == mark).unwrap_or_else(|| {
                    marks.push(mark);
                    marks.len() - 1
                });
                Frame { mark: place as u64, region }
            });
            (slot.number, slot.filled.get(), frame)
        };
        let blank = self.blank.iter().map(|(_, slot)| &**slot);
        let slots = self.bound.iter().flatten().map(|slot| &**slot).chain(&self.free).chain(blank);
        State {
            slots: slots.map(&mut known).collect(),
            bound: self.bound.iter().map(|slot| slot.as_ref().map(|slot| slot.number)).collect(),
        }
    }

    fn shape(&self, variable: VariableId) -> Shape {
        let own = &self.staged.program.variables[variable];
        Shape { place: own.place, stored: own.stored }
    }

    fn bind(&mut self, variable: VariableId, slot: Rc<Slot<B::Buffer>>) {
        self.unbind(variable);
        self.bound[variable.index()] = Some(slot);
    }

    /// A name ends.
    fn unbind(&mut self, variable: VariableId) {
        let before = self.bound[variable.index()].take();
        if let Some(slot) = before.and_then(|before| Rc::try_unwrap(before).ok()) {
            self.free.push(slot);
        }
    }
}
