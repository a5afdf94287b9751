//! Numbers of a program: they are computed when somebody needs them, since a reduction may still be under way.

use super::Driver;
use super::script::Backend;
use super::slots::Slot;
use crate::error::Result;
use std::cell::RefCell;
use std::rc::Rc;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, VariableId};

/// A number of a program.
pub(super) enum Number<B> {
    /// It is known.
    Known(Value),
    /// It stands in a slot, as a reduction left it for a variable.
    Reduced(Rc<Slot<B>>, VariableId),
    /// It is made of others, as they were then.
    Made {
        /// Its value.
        body: Body,
        /// What the body reads.
        of: Vec<(VariableId, Shared<B>)>,
        /// How long the chain of numbers below it may be that are not known.
        depth: usize,
    },
}

/// A number that several variables may hold.
pub(super) type Shared<B> = Rc<RefCell<Number<B>>>;

/// The longest chain of numbers that are not known, each made of the one before.
const DEPTH: usize = 100;

impl<B> Number<B> {
    /// A number that is made of others.
    fn made(body: Body, of: Vec<(VariableId, Shared<B>)>) -> Self {
        let depth = of.iter().map(|(_, number)| number.borrow().depth()).max().map_or(0, |deepest| deepest + 1);
        Number::Made { body, of, depth }
    }

    /// Whether there is no reason to leave open what it is worth: nothing that it is made of has to be waited for, or
    /// all that it is made of has become too much to be looked at in one go. A loop of any length may go on from its own number.
    fn is_due(&self) -> bool {
        match self {
            Number::Known(_) | Number::Reduced(..) => false,
            Number::Made { of, depth, .. } => {
                *depth >= DEPTH || of.iter().all(|(_, number)| matches!(&*number.borrow(), Number::Known(_)))
            }
        }
    }

    fn depth(&self) -> usize {
        match self {
            Number::Known(_) | Number::Reduced(..) => 0,
            Number::Made { depth, .. } => *depth,
        }
    }
}

impl<B: Backend> Driver<B> {
    /// The value of a number; nothing if it never got one.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn number(&self, variable: VariableId) -> Result<Option<Value>> {
        self.numbers.get(&variable).map(|number| self.forced(number)).transpose()
    }

    /// All numbers that have a value.
    ///
    /// # Errors
    /// A kernel has failed.
    pub(crate) fn numbers(&self) -> Result<Vec<(VariableId, Value)>> {
        self.numbers.iter().map(|(&id, number)| Ok((id, self.forced(number)?))).collect()
    }

    /// Gives a number a value.
    pub(crate) fn set_number(&mut self, variable: VariableId, value: Value) {
        self.numbers.insert(variable, Rc::new(RefCell::new(Number::Known(value))));
    }

    /// The same, where what never got a value is not a number.
    pub(super) fn number_or_nan(&self, variable: VariableId) -> Result<Value> {
        Ok(self.number(variable)?.unwrap_or(Value::Real(f64::NAN)))
    }

    /// A number gets the value of a body.
    pub(super) fn make(&mut self, to: VariableId, value: &Body) -> Result<()> {
        let reads = self.script.numbers_in(value);
        let of = reads.into_iter().filter_map(|id| Some((id, Rc::clone(self.numbers.get(&id)?)))).collect();
        let made = Number::made(value.clone(), of);
        let is_due = made.is_due();
        let number = Rc::new(RefCell::new(made));
        if is_due {
            self.forced(&number)?;
        }
        self.numbers.insert(to, number);
        Ok(())
    }

    /// A number is what a reduction leaves in a slot.
    pub(super) fn reduced(&mut self, variable: VariableId, slot: Rc<Slot<B::Buffer>>) {
        self.numbers.insert(variable, Rc::new(RefCell::new(Number::Reduced(slot, variable))));
    }

    /// A variable gets the value of another, field or number.
    pub(super) fn rename(&mut self, from: VariableId, to: VariableId) -> Result<()> {
        if let Some(number) = self.numbers.get(&from).cloned() {
            self.numbers.insert(to, number);
        }
        self.share(from, to)
    }

    fn forced(&self, number: &Shared<B::Buffer>) -> Result<Value> {
        let value = match &*number.borrow() {
            Number::Known(value) => return Ok(*value),
            Number::Reduced(slot, variable) => {
                self.looks.set(self.looks.get() + 1);
                self.backend.read(*variable, &slot.buffer)?.value(0)
            }
            Number::Made { body, of, .. } => self.script.value(body, &mut |id| {
                let known = of.iter().find(|(own, _)| *own == id);
                known.map_or(Ok(Value::Real(f64::NAN)), |(_, number)| self.forced(number))
            })?,
        };
        *number.borrow_mut() = Number::Known(value);
        Ok(value)
    }
}
