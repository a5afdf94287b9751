//! What a program does, and what computes it.

use crate::array::{Data, Element};
use crate::error::{Error, Result};
use std::cell::{Ref, RefCell};
use std::sync::Arc;
use stencilc_compiler::ir::program::Action;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, FieldId, Handle, Program, VariableId};
use stencilc_compiler::program::{Loop, Step, Times};

/// A value of a number, by its variable.
pub type NumberOf<'a> = dyn FnMut(VariableId) -> Result<Value> + 'a;

/// A program where its fields are, as a [`Driver`](super::Driver) follows it: one on a grid, or over a mesh.
pub trait Script {
    /// The program.
    fn program(&self) -> &Program;

    /// What it does. Stages are known by their numbers.
    fn steps(&self) -> &[Step];

    /// What declared variables hold before the first step.
    ///
    /// # Errors
    /// One has no array.
    fn initial(&self) -> Result<Vec<(VariableId, &Data)>>;

    /// The lengths of the axes of a variable's array, in the user's order.
    fn shape(&self, variable: VariableId) -> Vec<usize>;

    /// The type of its elements.
    fn element(&self, variable: VariableId) -> Element;

    /// An array for a variable that holds nothing: NaN, 0 or false.
    fn fresh(&self, variable: VariableId) -> Data {
        Data::fresh(self.element(variable), self.shape(variable).into_iter().product())
    }

    /// Whether numbers that a declared variable is given lead to levels that there are, if they say which levels are read.
    ///
    /// # Errors
    /// One does not.
    fn check_levels(&self, _variable: VariableId, _data: &Data) -> Result<()> {
        Ok(())
    }

    /// Whether it is known from the beginning how often a loop is run.
    fn is_known(&self, own: &Loop) -> bool {
        match &own.times {
            Times::Known(_) => true,
            Times::Of(body) => self.numbers_in(body).is_empty(),
        }
    }

    /// How often a loop is run.
    ///
    /// # Errors
    /// It is negative, or those of `number`.
    fn times(&self, own: &Loop, number: &mut NumberOf) -> Result<usize> {
        let times = match &own.times {
            Times::Known(times) => return Ok(*times),
            Times::Of(body) => self.value(body, number)?.int(),
        };
        usize::try_from(times).map_err(|_| {
            let name = &self.program().name;
            Error::input(format!("program `{name}` repeats something {times} times"))
                .help("the number of repetitions is at least 0")
        })
    }

    /// How often a loop is run, if that is known from the beginning.
    ///
    /// # Errors
    /// It is negative.
    fn known_times(&self, own: &Loop) -> Result<Option<usize>> {
        let none = &mut |_| Err(Error::check("a number was read before it was known"));
        self.is_known(own).then(|| self.times(own, none)).transpose()
    }

    /// What a stage reads and writes.
    fn uses(&self, stage: usize) -> Uses;

    /// The values of a stage's parameters.
    ///
    /// # Errors
    /// One has none, or those of `number`.
    fn params(&self, stage: usize, number: &mut NumberOf) -> Result<Vec<Value>>;

    /// Which part of a variable a stage computes that does not compute all of it. Stages with the same number compute the same.
    ///
    /// # Errors
    /// It computes none.
    fn region(&self, stage: usize, params: &[Value], variable: VariableId) -> Result<Option<u64>>;

    /// Whether the halo of a variable has to be filled before a stage reads it.
    fn needs_halo(&self, _stage: usize, _variable: VariableId) -> bool {
        false
    }

    /// Whether two variables' halos are filled by the same rules.
    fn has_same_edges(&self, _a: VariableId, _b: VariableId) -> bool {
        true
    }

    /// Whether a variable is a single number.
    fn is_number(&self, _: VariableId) -> bool {
        false
    }

    /// The numbers that a body reads.
    fn numbers_in(&self, _: &Body) -> Vec<VariableId> {
        Vec::new()
    }

    /// Whether a stage's parameters are made of numbers, which change.
    fn reads_numbers(&self, _stage: usize) -> bool {
        false
    }

    /// The value of a body.
    ///
    /// # Errors
    /// Those of `number`.
    fn value(&self, body: &Body, number: &mut NumberOf) -> Result<Value>;
}

/// What a stage reads and writes.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// Fields with the variables that they read.
    pub reads: Vec<(FieldId, VariableId)>,
    /// What it writes.
    pub writes: Vec<Write>,
    /// The variables that nobody looks at after it, until they are written again.
    pub ends: Vec<VariableId>,
}

/// A field that a stage writes.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Which.
    pub field: FieldId,
    /// The variable that has it afterwards.
    pub variable: VariableId,
    /// What it holds before.
    pub before: Before,
}

/// What the array that a stage writes holds before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Where the stage does not compute it: what a variable holds, or nothing.
    Kept(Option<VariableId>),
    /// All that a variable holds, since the stage adds to it, or changes some of it where it is.
    Sum(VariableId),
    /// Whatever: the stage begins with zeros.
    Zero,
}

/// What computes the stages of a program: the interpreter, or kernels on a machine.
pub trait Backend {
    /// Where it keeps an array.
    type Buffer;

    /// What was asked for, recorded.
    type Recording;

    /// What it computes.
    fn script(&self) -> Arc<dyn Script>;

    /// A buffer for a variable that holds these numbers: without a halo, in the user's order.
    ///
    /// # Errors
    /// There is not so much memory.
    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer>;

    /// The numbers in a variable's buffer: without its halo, in the user's order.
    ///
    /// # Errors
    /// The machine fails.
    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data>;

    /// A buffer for a variable that holds nothing.
    ///
    /// # Errors
    /// There is not so much memory.
    fn fresh(&self, variable: VariableId) -> Result<Self::Buffer> {
        self.load(variable, &self.script().fresh(variable))
    }

    /// The rows in a variable's buffer that this process has, where others have the others; nothing where it has all that there is.
    ///
    /// # Errors
    /// The machine fails.
    fn own(&self, _variable: VariableId, _buffer: &Self::Buffer) -> Result<Option<Data>> {
        Ok(None)
    }

    /// Fills the halo of a variable's buffer.
    ///
    /// # Errors
    /// The machine fails.
    fn fill_halo(&self, _variable: VariableId, _buffer: &Self::Buffer) -> Result<()> {
        Ok(())
    }

    /// Fills those of several variables' buffers, which are different ones.
    ///
    /// # Errors
    /// The machine fails.
    fn fill_halos(&self, all: &[(VariableId, &Self::Buffer)]) -> Result<()> {
        all.iter().try_for_each(|(variable, buffer)| self.fill_halo(*variable, buffer))
    }

    /// Copies a buffer to another of the same shape.
    ///
    /// # Errors
    /// The machine fails.
    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()>;

    /// Computes a stage of the program, one that is a whole loop so many times.
    ///
    /// # Errors
    /// The machine fails.
    fn compute(&self, stage: &Computed, arrays: Arrays<Self::Buffer>) -> Result<()>;

    /// Waits until all is computed.
    ///
    /// # Errors
    /// A kernel has failed.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Records what a closure asks for, which is not done: `replay` does it, as often as one likes. Nothing, and the closure is
    /// not called, if that has no use.
    ///
    /// # Errors
    /// Those of the closure, and when it asks for what cannot be recorded, such as a buffer.
    fn record(&self, _work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        Ok(None)
    }

    /// Does what was recorded.
    ///
    /// # Errors
    /// The machine fails.
    fn replay(&self, recording: &Self::Recording) -> Result<()>;
}

/// A backend that somebody else keeps, who may ask it afterwards.
impl<B: Backend> Backend for &B {
    type Buffer = B::Buffer;
    type Recording = B::Recording;

    fn script(&self) -> Arc<dyn Script> {
        (**self).script()
    }
    fn load(&self, variable: VariableId, data: &Data) -> Result<Self::Buffer> {
        (**self).load(variable, data)
    }
    fn read(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Data> {
        (**self).read(variable, buffer)
    }
    fn fresh(&self, variable: VariableId) -> Result<Self::Buffer> {
        (**self).fresh(variable)
    }
    fn own(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<Option<Data>> {
        (**self).own(variable, buffer)
    }
    fn fill_halo(&self, variable: VariableId, buffer: &Self::Buffer) -> Result<()> {
        (**self).fill_halo(variable, buffer)
    }
    fn fill_halos(&self, all: &[(VariableId, &Self::Buffer)]) -> Result<()> {
        (**self).fill_halos(all)
    }
    fn copy(&self, from: &Self::Buffer, to: &Self::Buffer) -> Result<()> {
        (**self).copy(from, to)
    }
    fn compute(&self, stage: &Computed, arrays: Arrays<Self::Buffer>) -> Result<()> {
        (**self).compute(stage, arrays)
    }
    fn wait(&self) -> Result<()> {
        (**self).wait()
    }
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Option<Self::Recording>> {
        (**self).record(work)
    }
    fn replay(&self, recording: &Self::Recording) -> Result<()> {
        (**self).replay(recording)
    }
}

/// A stage that is computed.
#[derive(Clone, Debug)]
pub struct Computed {
    /// Its number.
    pub stage: usize,
    /// How often, if it is a whole loop; 1 otherwise.
    pub times: usize,
    /// The values of its parameters.
    pub params: Vec<Value>,
}

/// The arrays of a stage, by the fields of its stencil.
pub struct Arrays<'a, B> {
    /// What is read.
    pub reads: &'a [(FieldId, &'a B)],
    /// What is written.
    pub writes: &'a [(FieldId, &'a B)],
}

impl<'a, B> Arrays<'a, Vec<B>> {
    /// Those of a part, of arrays that have one for each: what is read, and what is written.
    pub fn of_part(&self, part: usize) -> [Vec<(FieldId, &'a B)>; 2] {
        [self.reads, self.writes].map(|all| all.iter().map(|(field, buffer)| (*field, &buffer[part])).collect())
    }
}

impl<B> Clone for Arrays<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Arrays<'_, B> {}

impl Arrays<'_, RefCell<Data>> {
    /// Lends what is read and what is written to an interpreter, by the `fields` of the stencil.
    ///
    /// # Errors
    /// What is written is read, too; and those of the closure.
    pub fn lend(
        self,
        fields: usize,
        interpret: impl FnOnce(&[Option<&Data>], &mut [Option<Data>]) -> Result<()>,
    ) -> Result<()> {
        let held: Vec<(FieldId, Ref<Data>)> =
            self.reads.iter().map(|(field, buffer)| (*field, buffer.borrow())).collect();
        let mut inputs: Vec<Option<&Data>> = vec![None; fields];
        for (field, data) in &held {
            inputs[field.index()] = Some(data);
        }
        let mut outputs: Vec<Option<Data>> = vec![None; fields];
        for (field, buffer) in self.writes {
            let mut data = buffer.try_borrow_mut().map_err(|_| Error::check("a stage writes what it reads"))?;
            outputs[field.index()] = Some(std::mem::replace(&mut data, Data::Bool(Vec::new())));
        }
        let done = interpret(&inputs, &mut outputs);
        for (field, buffer) in self.writes {
            if let Some(data) = outputs[field.index()].take() {
                buffer.replace(data);
            }
        }
        done
    }
}

/// How far a program is: so many steps of its outermost sequence are done, and so many times of the loop after them.
///
/// Plans make other steps of the same text, so what is kept counts the text's actions instead: `Position::in_text`, and
/// `Position::in_steps` back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Steps of the outermost sequence that are done.
    pub step: usize,
    /// Times that the loop after them was run.
    pub time: usize,
}

impl Position {
    /// How often outermost loops were run by then, as far as that is known before.
    ///
    /// # Errors
    /// A number of repetitions is negative.
    pub fn done(self, script: &dyn Script) -> Result<u64> {
        let done = times(script.steps().iter().take(self.step), script)?;
        Ok(done.saturating_add(self.time as u64))
    }

    /// A position between steps as one between the actions of the text. Programs are looked at before they begin, in their
    /// outermost loops, and at their end: of loops there are as many here as there, in the same order.
    pub(crate) fn in_text(self, script: &dyn Script) -> Position {
        let (steps, actions) = (script.steps(), script.program().own_actions());
        let place = loops(steps, is_loop).position(|step| step == self.step);
        match place.and_then(|place| loops(&actions, is_repeat).nth(place)) {
            Some(step) => Position { step, time: self.time },
            None if self.step == 0 => Position::default(),
            None => Position { step: actions.len(), time: 0 },
        }
    }

    /// A position between the actions of the text as one between steps. Nothing, if a program is never looked at there.
    pub(crate) fn in_steps(self, script: &dyn Script) -> Option<Position> {
        let (steps, actions) = (script.steps(), script.program().own_actions());
        let place = loops(&actions, is_repeat).position(|step| step == self.step);
        match place {
            Some(place) => Some(Position { step: loops(steps, is_loop).nth(place)?, time: self.time }),
            None if self.time > 0 => None,
            None if self.step == 0 => Some(Position::default()),
            None => (self.step == actions.len()).then_some(Position { step: steps.len(), time: 0 }),
        }
    }
}

/// How often the outermost loops of a program are run, as far as that is known before.
///
/// # Errors
/// A number of repetitions is negative.
pub fn total(script: &dyn Script) -> Result<u64> {
    times(script.steps().iter(), script)
}

/// Whether it is known before how often all of them are run.
pub fn knows_total(script: &dyn Script) -> bool {
    script.steps().iter().all(|step| if let Step::Repeat(own) = step { script.is_known(own) } else { true })
}

/// The same of some of its steps.
fn times<'a>(steps: impl Iterator<Item = &'a Step>, script: &dyn Script) -> Result<u64> {
    let mut total = 0u64;
    for step in steps {
        if let Step::Repeat(own) = step {
            total = total.saturating_add(script.known_times(own)?.unwrap_or(0) as u64);
        }
    }
    Ok(total)
}

/// Where loops are in a sequence.
fn loops<T>(all: &[T], is_loop: fn(&T) -> bool) -> impl Iterator<Item = usize> {
    all.iter().enumerate().filter(move |(_, own)| is_loop(own)).map(|(place, _)| place)
}

fn is_loop(step: &Step) -> bool {
    matches!(step, Step::Repeat(_))
}

fn is_repeat(action: &&Action) -> bool {
    matches!(action, Action::Repeat(_))
}
