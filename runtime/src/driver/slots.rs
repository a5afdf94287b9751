//! Which buffer holds which variable.
//!
//! A variable is bound to a slot: a buffer, and what is known of its content. A stage reads the slots that its arguments are bound
//! to, and writes others, which its results are bound to afterwards; so nothing that is read is written, and buffers rotate by
//! themselves. A slot that nobody is bound to any more is used again.

use super::cycles::State;
use super::script::{Backend, Computed};
use super::{Driver, numbers::Number};
use crate::array::Data;
use crate::error::{Error, Result};
use std::cell::Cell;
use std::rc::Rc;
use stencilc_compiler::ir::{FieldId, Handle, Place, Program, Stored, VariableId};

/// What buffers of one size have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    place: Place,
    stored: Stored,
}

/// A buffer, and what is known of its content.
pub(super) struct Slot<B> {
    number: usize,
    pub(super) buffer: B,
    shape: Shape,
    /// The variable by whose rules its halo is filled.
    pub(super) filled: Cell<Option<VariableId>>,
    /// What the cells hold that stages of a region do not compute: slots with the same mark hold the same there.
    frame: Cell<Option<Frame>>,
}

/// What cells outside a region hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    mark: u64,
    region: u64,
}

/// Slots that fields of a stage read.
pub(super) type Held<B> = Vec<(FieldId, Rc<Slot<B>>)>;

/// All slots.
pub(super) struct Slots<B> {
    shapes: Vec<Shape>,
    /// By variable.
    bound: Vec<Option<Rc<Slot<B>>>>,
    /// Those that were made. Free is who is here alone.
    all: Vec<Rc<Slot<B>>>,
    /// Slots that hold nothing, by the region that stages compute: what new names hold elsewhere.
    blank: Vec<(u64, Rc<Slot<B>>)>,
    marks: u64,
}

impl<B> Slots<B> {
    pub fn new(program: &Program) -> Self {
        let shapes = program.variables.iter().map(|(_, own)| Shape { place: own.place, stored: own.stored }).collect();
        let bound = program.variables.iter().map(|_| None).collect();
        Self { shapes, bound, all: Vec::new(), blank: Vec::new(), marks: 0 }
    }

    /// What a variable is bound to.
    pub fn bound(&self, variable: VariableId) -> Option<Rc<Slot<B>>> {
        self.bound[variable.index()].clone()
    }

    pub fn bind(&mut self, variable: VariableId, slot: Rc<Slot<B>>) {
        self.bound[variable.index()] = Some(slot);
    }

    /// A name ends.
    pub fn unbind(&mut self, variable: VariableId) {
        self.bound[variable.index()] = None;
    }

    fn shape(&self, variable: VariableId) -> Shape {
        self.shapes[variable.index()]
    }

    fn made(&mut self, buffer: B, variable: VariableId) -> Rc<Slot<B>> {
        let (number, shape) = (self.all.len(), self.shape(variable));
        let slot = Rc::new(Slot { number, buffer, shape, filled: Cell::new(None), frame: Cell::new(None) });
        self.all.push(Rc::clone(&slot));
        slot
    }

    /// A slot for a variable that nobody is bound to, and that suits.
    fn free(&self, variable: VariableId, suits: impl Fn(&Slot<B>) -> bool) -> Option<Rc<Slot<B>>> {
        let shape = self.shape(variable);
        let is_free = |slot: &&Rc<Slot<B>>| Rc::strong_count(slot) == 1 && slot.shape == shape && suits(slot);
        self.all.iter().find(is_free).cloned()
    }
}

impl<B> Slot<B> {
    /// Whether nobody but one owner holds it, beside the list of all.
    fn is_held_once(slot: &Rc<Self>) -> bool {
        Rc::strong_count(slot) == 2
    }
}

impl<B: Backend> Driver<B> {
    /// Gives a variable its numbers.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn set(&mut self, variable: VariableId, data: &Data) -> Result<()> {
        let buffer = self.backend.load(variable, data)?;
        let slot = self.slots.made(buffer, variable);
        self.slots.bind(variable, slot);
        Ok(())
    }

    /// The variables that are bound, with the number of the slot that each is bound to: those of one slot are one value.
    pub fn bound(&self) -> Vec<(VariableId, usize)> {
        let bound = self.slots.bound.iter().enumerate();
        bound.filter_map(|(n, slot)| Some((VariableId::new(n), slot.as_ref()?.number))).collect()
    }

    /// Gives a variable the value of another.
    ///
    /// # Errors
    /// The buffer of one is none for the other: it has another size, or holds numbers of another type.
    pub fn share(&mut self, from: VariableId, to: VariableId) -> Result<()> {
        if self.slots.shape(from) != self.slots.shape(to) {
            let [from, to] = [from, to].map(|id| &self.script.program().variables[id].name);
            return Err(Error::check(format!("`{to}` cannot hold what `{from}` holds")));
        }
        if let Some(slot) = self.slots.bound(from) {
            self.slots.bind(to, slot);
        }
        Ok(())
    }

    /// What a variable is bound to.
    pub(super) fn bound_to(&self, variable: VariableId) -> Result<Rc<Slot<B::Buffer>>> {
        self.slots.bound(variable).ok_or_else(|| {
            let name = &self.script.program().variables[variable].name;
            Error::check(format!("`{name}` has no value"))
        })
    }

    /// Gives a variable a slot of its own if it shares one with another that the same stage reads by other rules, `before` it.
    pub(super) fn part(&mut self, stage: usize, variable: VariableId, before: &[(FieldId, VariableId)]) -> Result<()> {
        if !self.script.needs_halo(stage, variable) {
            return Ok(());
        }
        let Some(slot) = self.slots.bound(variable) else { return Ok(()) };
        let is_other = |other: VariableId| {
            let shares = self.slots.bound(other).is_some_and(|own| Rc::ptr_eq(&own, &slot));
            shares && !self.script.has_same_edges(other, variable)
        };
        if !before.iter().take_while(|(_, other)| *other != variable).any(|(_, other)| is_other(*other)) {
            return Ok(());
        }
        let own = self.some_slot(variable, |_| true)?;
        self.backend.copy(&slot.buffer, &own.buffer)?;
        own.filled.set(None);
        own.frame.set(slot.frame.get());
        self.slots.bind(variable, own);
        Ok(())
    }

    /// What variables are bound to that a stage reads, their halos filled by their rules unless the stage needs none: all at once, since parts
    /// meet for that.
    pub(super) fn with_halos(&mut self, stage: usize, reads: &[(FieldId, VariableId)]) -> Result<Held<B::Buffer>> {
        let mut held = Vec::new();
        let mut stale: Vec<(VariableId, Rc<Slot<B::Buffer>>)> = Vec::new();
        for &(field, variable) in reads {
            let slot = self.bound_to(variable)?;
            let is_filled = slot.filled.get().is_some_and(|by| self.script.has_same_edges(by, variable));
            if self.script.needs_halo(stage, variable) && !is_filled {
                slot.filled.set(Some(variable));
                stale.push((variable, Rc::clone(&slot)));
            }
            held.push((field, slot));
        }
        if !stale.is_empty() {
            let all: Vec<_> = stale.iter().map(|(variable, slot)| (*variable, &slot.buffer)).collect();
            let filled = self.backend.fill_halos(&all);
            filled.inspect_err(|_| stale.iter().for_each(|(_, slot)| slot.filled.set(None)))?;
        }
        Ok(held)
    }

    /// A slot that a stage may write a variable to: cells that it does not compute hold what they hold `before`.
    pub(super) fn target(
        &mut self,
        computed: &Computed,
        variable: VariableId,
        before: Option<Rc<Slot<B::Buffer>>>,
    ) -> Result<Rc<Slot<B::Buffer>>> {
        let Some(region) = self.script.region(computed.stage, &computed.params, variable)? else {
            // Nobody has to hold it any longer.
            drop(before);
            let slot = self.some_slot(variable, |_| true)?;
            slot.frame.set(None);
            return Ok(slot);
        };
        let before = match before {
            // What the stage does not read it can write where it is.
            Some(before) if Slot::is_held_once(&before) => {
                before.frame.set(before.frame.get().filter(|frame| frame.region == region));
                return Ok(before);
            }
            Some(before) => before,
            None => self.blank(region, variable)?,
        };
        let frame = before.frame.get().filter(|frame| frame.region == region);
        let slot = self.some_slot(variable, |slot| frame.is_some() && slot.frame.get() == frame)?;
        if frame.is_none() || slot.frame.get() != frame {
            self.backend.copy(&before.buffer, &slot.buffer)?;
            self.slots.marks += 1;
            let frame = Some(Frame { mark: self.slots.marks, region });
            before.frame.set(frame);
            slot.frame.set(frame);
        }
        Ok(slot)
    }

    /// A slot that a stage adds to a variable in: it holds what there is, which is that of `before`.
    pub(super) fn summed(
        &mut self,
        variable: VariableId,
        before: Option<Rc<Slot<B::Buffer>>>,
    ) -> Result<Rc<Slot<B::Buffer>>> {
        let slot = match before {
            Some(before) if Slot::is_held_once(&before) => before,
            Some(before) => {
                let slot = self.some_slot(variable, |_| true)?;
                self.backend.copy(&before.buffer, &slot.buffer)?;
                slot
            }
            None => self.some_slot(variable, |_| true)?,
        };
        slot.frame.set(None);
        Ok(slot)
    }

    /// A slot for a variable that nobody is bound to: one that is `best`, any, or a new one.
    fn some_slot(
        &mut self,
        variable: VariableId,
        best: impl Fn(&Slot<B::Buffer>) -> bool,
    ) -> Result<Rc<Slot<B::Buffer>>> {
        let free = self.slots.free(variable, best).or_else(|| self.slots.free(variable, |_| true));
        free.map_or_else(|| self.fresh(variable), Ok)
    }

    /// A slot of a variable's shape that holds nothing.
    fn blank(&mut self, region: u64, variable: VariableId) -> Result<Rc<Slot<B::Buffer>>> {
        let shape = self.slots.shape(variable);
        let known = self.slots.blank.iter().find(|(own, slot)| *own == region && slot.shape == shape);
        if let Some((_, slot)) = known {
            return Ok(Rc::clone(slot));
        }
        let slot = self.fresh(variable)?;
        self.slots.blank.push((region, Rc::clone(&slot)));
        Ok(slot)
    }

    fn fresh(&mut self, variable: VariableId) -> Result<Rc<Slot<B::Buffer>>> {
        let buffer = self.backend.fresh(variable)?;
        Ok(self.slots.made(buffer, variable))
    }

    /// Where everything is.
    pub(super) fn state(&self) -> State {
        // Of marks it counts alone which are the same.
        let mut marks = Vec::new();
        let mut known = |slot: &Rc<Slot<B::Buffer>>| {
            let frame = slot.frame.get().map(|Frame { mark, region }| {
                let place = marks.iter().position(|known| *known == mark).unwrap_or_else(|| {
                    marks.push(mark);
                    marks.len() - 1
                });
                Frame { mark: place as u64, region }
            });
            (slot.filled.get(), frame)
        };
        let number = |number: &Number<B::Buffer>| match number {
            Number::Reduced(slot, _) => Some(slot.number),
            Number::Known(_) | Number::Made { .. } => None,
        };
        State {
            slots: self.slots.all.iter().map(&mut known).collect(),
            bound: self.slots.bound.iter().map(|slot| slot.as_ref().map(|slot| slot.number)).collect(),
            numbers: self.numbers.iter().map(|(&id, own)| (id, number(&own.borrow()))).collect(),
        }
    }
}
