//! What every kernel keeps to.
//!
//! - A value comes after those that it is made of, and their types fit.
//! - A value with a name is computed once, before all that use it; a variable is declared before, and has a value on every way to
//!   where it is read; a counter changes by its loop alone.
//! - What is read or written is a number of the array's type, at a whole index; only arrays that say so are written.
//! - Threads of a block meet at barriers, those of a warp at shuffles, those of a launch at its barriers: each stands where all come or
//!   none, and nobody has left before.
//! - In a kernel that is tried, nothing is written before it may give up, and it divides quickly only before that.
//! - A part lies within what it is a part of, where its elements are aligned; a view has the type of what it is a view of; a thread's
//!   own arrays and views are there from the statement on that makes them.
//! - Copies that threads start are made a group, and groups are waited for, before a barrier behind which others see them.
//! - Every argument is used, and so is every array; those that are written are written to.

#[cfg(test)]
mod tests;
mod types;

use super::uniform::{Counters, Together, uniform};
use super::{
    ArgumentId, ArgumentKind, Array, ArrayId, Block, Contents, For, Function, Kernel, Meaning, Operand, Operation,
    Routine, Space, Statement, Step, Type, ValueId, VariableId,
};
use crate::diagnostic::Refusal;
use crate::gpu::{MOST_SHARED, SHARED};
use crate::ir::Handle;
use crate::names::Identifier;
use std::collections::HashSet;
use types::{moves, types};

/// Looks whether a kernel keeps to all of it.
///
/// # Errors
/// It does not, which is a fault of the compiler: what is wrong, and where.
pub fn verify(kernel: &Kernel) -> Result<(), Refusal> {
    verified(kernel).map_err(|what| Refusal::new(format!("the kernel `{}` is broken: {what}", kernel.name)))
}

/// An error where something is wrong.
fn wrong_if(is_wrong: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_wrong { Err(what()) } else { Ok(()) }
}

fn verified(kernel: &Kernel) -> Result<(), String> {
    types(kernel)?;
    spaces(kernel)?;
    let mut known = Known {
        kernel,
        there: HashSet::new(),
        set: HashSet::new(),
        ever: HashSet::new(),
        used: HashSet::new(),
        stored: HashSet::new(),
        counters: Counters::new(),
        loops: 0,
        depth: 0,
        whole: Together::Launch,
        copies: Copies::None,
        is_final: kernel.attempt.is_none(),
    };
    if let Some(watch) = &kernel.watch {
        known.used.extend([watch.report, watch.columns].map(Thing::Array));
        known.stored.insert(watch.report);
        match kernel.values[watch.plane].operation {
            Operation::Argument(plane) => _ = known.used.insert(Thing::Argument(plane)),
            Operation::Int(_) if kernel.values[watch.plane].name.is_none() => {}
            Operation::Int(_) if kernel.sizes().any(|size| size == watch.plane) => {}
            _ => return Err(format!("`{}` is made of a value that is not there yet", watch.name)),
        }
    }
    let arguments = kernel.arguments.iter().map(|(_, argument)| argument.name.clone());
    let arrays = kernel.arrays.iter().filter(|(_, array)| !is_made(array)).map(|(_, array)| array.name.clone());
    known.there.extend(arguments.chain(arrays).map(Thing::Name));
    known.block(&kernel.body, Together::Launch)?;
    wrong_if(!known.is_final, || "it is tried, and nowhere could it give up".into())?;
    for (id, argument) in kernel.arguments.iter() {
        let thing = match argument.what {
            ArgumentKind::Number(_) => Thing::Argument(id),
            ArgumentKind::Array(array) => Thing::Array(array),
        };
        // Callers count on what the stencil's text declares.
        let is_promised = matches!(argument.meaning, Meaning::Input(_) | Meaning::Param(_));
        let is_idle = !known.used.contains(&thing) && !is_promised;
        wrong_if(is_idle, || format!("nothing uses the argument `{}`", argument.name))?;
    }
    for (id, array) in kernel.arrays.iter() {
        let is_promised = kernel.arguments.iter().any(|(_, argument)| {
            argument.what == ArgumentKind::Array(id) && matches!(argument.meaning, Meaning::Input(_))
        });
        let (is_used, is_stored) = (known.used.contains(&Thing::Array(id)), known.stored.contains(&id));
        let is_view = matches!(array.space, Space::View(_));
        let is_idle =
            !is_used && !is_promised || is_stored && !array.is_written || !is_stored && array.is_written && !is_view;
        wrong_if(is_idle, || format!("nothing uses the array `{}`, or nothing writes to it", array.name))?;
    }
    wrong_if(!(1..=1024).contains(&kernel.threads), || format!("a block has {} threads", kernel.threads))?;
    let shared = |array: &Array| match array.space {
        Space::Shared(count) => count * array.element.bytes(),
        Space::Global { .. } | Space::Local(_) | Space::Rows(..) | Space::Constant(_) => 0,
        Space::Dynamic(_) | Space::Part { .. } | Space::View(_) => 0,
    };
    let bytes: usize = kernel.arrays.iter().map(|(_, array)| shared(array)).sum();
    let all = bytes + kernel.dynamic_bytes();
    wrong_if(bytes > SHARED, || format!("a block shares {bytes} bytes, and has {SHARED}"))?;
    wrong_if(all > MOST_SHARED, || format!("a block shares {all} bytes, and has {MOST_SHARED}"))
}

/// Whether parts and views are of what they can be.
fn spaces(kernel: &Kernel) -> Result<(), String> {
    let mut dynamics = 0;
    for (id, array) in kernel.arrays.iter() {
        let is_early = array.space.base().is_some_and(|base| base.index() >= id.index());
        wrong_if(is_early, || format!("`{}` comes before what it is a part or a view of", array.name))?;
        let fits = match &array.space {
            Space::Part { of, first, count } => match kernel.arrays[*of].space {
                Space::Dynamic(bytes) => {
                    let end = count.saturating_mul(array.element.bytes()).saturating_add(*first);
                    end <= bytes && first.is_multiple_of(array.element.bytes())
                }
                _ => false,
            },
            Space::View(of) => {
                let of = &kernel.arrays[*of];
                of.element == array.element && (of.is_written || !array.is_written)
            }
            Space::Dynamic(_) => {
                dynamics += 1;
                dynamics == 1
            }
            Space::Global { .. } | Space::Shared(_) | Space::Local(_) | Space::Rows(..) | Space::Constant(_) => true,
        };
        wrong_if(!fits, || format!("`{}` cannot be {:?}", array.name, array.space))?;
    }
    Ok(())
}

/// Whether a statement makes an array.
fn is_made(array: &Array) -> bool {
    matches!(array.space, Space::Local(_) | Space::Rows(..) | Space::View(_))
}

/// Something of a kernel that is there, or is used.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Thing {
    Argument(ArgumentId),
    Array(ArrayId),
    Variable(VariableId),
    Value(ValueId),
    Name(Identifier),
}

/// What is known at a statement.
struct Known<'a> {
    kernel: &'a Kernel,
    /// Here: values that have their names, variables, the arrays that statements have made, and names that mean something.
    there: HashSet<Thing>,
    /// Variables that have a value.
    set: HashSet<VariableId>,
    /// Values that were named anywhere, and counters of loops.
    ever: HashSet<Thing>,
    /// Arguments and arrays that something needs.
    used: HashSet<Thing>,
    /// Arrays that something is written to.
    stored: HashSet<ArrayId>,
    /// Counters, and for which threads they are the same.
    counters: Counters,
    /// How many loops stand around.
    loops: usize,
    /// How many blocks stand around.
    depth: usize,
    /// Of which threads nobody may be done, or done with the loop around.
    whole: Together,
    /// How far the copies are that threads have started.
    copies: Copies,
    /// Whether no attempt can fail any more.
    is_final: bool,
}

/// How far copies are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copies {
    /// There are none that nobody has waited for.
    None,
    /// Some have been started.
    Started,
    /// They are a group.
    Grouped,
}

impl Known<'_> {
    /// The statements of a block, to which threads come together.
    fn block(&mut self, block: &Block, together: Together) -> Result<(), String> {
        let mut own = Vec::new();
        self.depth += 1;
        for statement in &block.0 {
            self.statement(statement, together, &mut own)?;
        }
        self.depth -= 1;
        own.iter().for_each(|thing| _ = self.there.remove(thing));
        Ok(())
    }

    /// A statement, by which things come to be there that are the block's `own`.
    fn statement(&mut self, statement: &Statement, together: Together, own: &mut Vec<Thing>) -> Result<(), String> {
        let kernel = self.kernel;
        let kind = |value: &ValueId| kernel.values[*value].kind;
        let meeting = together.min(self.whole);
        if let Some(name) = kernel.declares(statement).cloned() {
            self.called(&name)?;
            own.push(Thing::Name(name));
        }
        for value in statement.values() {
            // What gets its name here is looked at as what it is made of.
            let is_let = matches!(statement, Statement::Let(_));
            self.used(value, is_let, together)?;
        }
        match statement {
            Statement::Let(value) => {
                let thing = Thing::Value(*value);
                let is_wrong = kernel.values[*value].name.is_none() || !self.ever.insert(thing.clone());
                wrong_if(is_wrong, || format!("value {} is computed twice, or has no name", value.index()))?;
                self.there.insert(thing.clone());
                own.push(thing);
            }
            Statement::Declare(variable, value) => {
                if let Some(value) = value {
                    self.fits(*variable, *value)?;
                    self.set.insert(*variable);
                }
                let is_new = self.there.insert(Thing::Variable(*variable));
                wrong_if(!is_new, || format!("`{}` is declared twice", kernel.variables[*variable].name))?;
                own.push(Thing::Variable(*variable));
            }
            Statement::Assign(variable, value) => {
                self.fits(*variable, *value)?;
                let name = &kernel.variables[*variable].name;
                let is_there = self.there.contains(&Thing::Variable(*variable));
                wrong_if(!is_there, || format!("`{name}` is not there where it is assigned"))?;
                self.set.insert(*variable);
            }
            Statement::Store(array, index, value) => {
                let own = &kernel.arrays[*array];
                self.touched(*array, true)?;
                let (index, value) = (kind(index), kind(value));
                let fits = own.is_written && index.is_whole() && moves(kernel, *array, value);
                wrong_if(!fits, || format!("{value:?} at {index:?} is written to `{}`", own.name))?;
                // An attempt that begins again has its own memory anew.
                if !matches!(own.space, Space::Local(_)) {
                    self.written()?;
                }
            }
            Statement::AtomicAdd(array, index, values) => {
                let own = &kernel.arrays[*array];
                self.touched(*array, true)?;
                let are_numbers = own.element.is_real() || own.element == Type::I32;
                let are_own = are_numbers && values.iter().all(|value| kind(value) == own.element);
                let fits = own.is_written && kind(index) == Type::I32 && are_own && [1, 2, 4].contains(&values.len());
                wrong_if(!fits, || format!("{} values are added to `{}`", values.len(), own.name))?;
                wrong_if(values.len() > 1 && meeting < Together::Warp, || {
                    "not all threads of a warp come to what its lanes add together".into()
                })?;
                self.written()?;
            }
            Statement::Array(array, contents) => {
                let fits = self.holds(&kernel.arrays[*array], contents)?;
                let is_right = fits && self.there.insert(Thing::Array(*array));
                let name = &kernel.arrays[*array].name;
                wrong_if(!is_right, || format!("`{name}` is made twice, or otherwise than it is"))?;
                own.push(Thing::Array(*array));
            }
            Statement::Do(routine, operands) => {
                let is_missed = meeting < routine.together();
                wrong_if(is_missed, || format!("not all threads come to {}", routine.name()))?;
                self.done(*routine, operands)?;
            }
            Statement::If(condition, yes, no) => {
                wrong_if(kind(condition) != Type::BOOL, || "a condition is no truth".into())?;
                let together = together.min(self.uniform(*condition));
                // A variable that both ways set has a value behind them.
                let before = self.set.clone();
                self.block(yes, together)?;
                let after = std::mem::replace(&mut self.set, before);
                self.block(no, together)?;
                self.set = match (ends(yes), ends(no)) {
                    (true, _) => std::mem::take(&mut self.set),
                    (false, true) => after,
                    (false, false) => self.set.intersection(&after).copied().collect(),
                };
            }
            Statement::For(own) => self.repeated(own, &statement.values(), together)?,
            Statement::Barrier => {
                wrong_if(meeting < Together::Block, || "not all threads of a block come to a barrier".into())?;
                wrong_if(self.copies != Copies::None, || "copies are not waited for before a barrier".into())?;
            }
            Statement::Gap | Statement::Note(_) => {}
            Statement::Break if self.loops == 0 => return Err("there is no loop to leave".into()),
            // Those who leave a loop are missed in it.
            Statement::Break | Statement::Return => self.whole = meeting,
            Statement::GiveUp => {
                wrong_if(self.is_final || self.depth > 1, || {
                    "it gives up where it is not tried, or where not all threads come".into()
                })?;
                self.is_final = true;
            }
        }
        Ok(())
    }

    /// A name that comes to mean something.
    fn called(&mut self, name: &Identifier) -> Result<(), String> {
        let is_new = self.there.insert(Thing::Name(name.clone()));
        wrong_if(!is_new, || format!("two things are called `{name}`"))
    }

    /// Whether an array that a statement makes can have at first what it has.
    fn holds(&mut self, own: &Array, contents: &Contents) -> Result<bool, String> {
        let kernel = self.kernel;
        let kind = |value: &ValueId| kernel.values[*value].kind;
        Ok(match (contents, &own.space) {
            (Contents::Unset | Contents::Zeros, Space::Local(_) | Space::Rows(..)) => true,
            (Contents::Listed(values), Space::Local(count)) => {
                let fits = |value: &ValueId| kind(value) == own.element;
                values.len() == *count && !own.is_written && values.iter().all(fits)
            }
            (Contents::From(index), Space::View(of)) => {
                self.touched(*of, false)?;
                kind(index).is_whole()
            }
            (Contents::Either(condition, other), Space::View(of)) => {
                self.touched(*of, own.is_written)?;
                self.touched(*other, own.is_written)?;
                let is_like = |array: ArrayId| {
                    let array = &kernel.arrays[array];
                    let is_global = matches!(array.space, Space::Global { aliased: true } | Space::View(_));
                    is_global && array.element == own.element && array.is_written >= own.is_written
                };
                kind(condition) == Type::BOOL && is_like(*of) && is_like(*other)
            }
            _ => false,
        })
    }

    /// A loop, with its bounds and its step.
    fn repeated(&mut self, own: &For, bounds: &[ValueId], together: Together) -> Result<(), String> {
        let counter = &self.kernel.variables[own.counter];
        let (name, kind) = (&counter.name, counter.kind);
        let counts = kind.is_whole() || kind == Type::U32;
        let is_alike = bounds.iter().all(|&value| self.kernel.values[value].kind == kind);
        wrong_if(!counts || !is_alike, || format!("the loop of `{name}` counts in other numbers"))?;
        let grows_by = match own.step {
            Step::By(step) | Step::Down(step) => step,
            Step::Doubled => own.first,
        };
        let thing = Thing::Variable(own.counter);
        let is_fresh = counter.is_counter && self.ever.insert(thing.clone());
        wrong_if(!is_fresh, || format!("`{name}` is no counter, or that of two loops"))?;
        let is_endless = matches!(self.kernel.values[grows_by].operation, Operation::Int(..=0));
        wrong_if(is_endless, || format!("the loop of `{name}` never ends"))?;
        let bound = bounds.iter().map(|&value| self.uniform(value)).min().unwrap_or(Together::Nobody);
        self.counters.insert(own.counter, bound);
        self.there.insert(thing.clone());
        self.called(name)?;
        let before = self.set.clone();
        self.set.insert(own.counter);
        self.loops += 1;
        // Who leaves in one turn is missed in the next, but not behind the loop if the loop is all that is left.
        let whole = self.whole;
        if leaves(&own.body, true) {
            self.whole = Together::Nobody;
        }
        self.block(&own.body, together.min(bound))?;
        if !leaves(&own.body, false) {
            self.whole = whole;
        }
        self.there.remove(&thing);
        self.there.remove(&Thing::Name(name.clone()));
        self.loops -= 1;
        self.set = before;
        Ok(())
    }

    /// Whether something may be written here.
    fn written(&self) -> Result<(), String> {
        wrong_if(!self.is_final, || "something is written by an attempt that may fail".into())
    }

    /// Notes that an array is read or written, which must be there.
    fn touched(&mut self, array: ArrayId, is_stored: bool) -> Result<(), String> {
        let (mut at, mut is_stored) = (Some(array), is_stored);
        while let Some(array) = at {
            let own = &self.kernel.arrays[array];
            let is_there = !is_made(own) || self.there.contains(&Thing::Array(array));
            wrong_if(!is_there, || format!("`{}` is used where it is not there", own.name))?;
            self.used.insert(Thing::Array(array));
            is_stored &= !matches!(own.space, Space::Dynamic(_));
            if is_stored {
                self.stored.insert(array);
            }
            at = own.space.base();
        }
        Ok(())
    }

    /// Whether a routine takes what it can take.
    fn done(&mut self, routine: Routine, operands: &[Operand]) -> Result<(), String> {
        let mut are_places = Vec::new();
        for (number, operand) in operands.iter().enumerate() {
            if let Some(array) = operand.array() {
                self.touched(array, routine.writes(number))?;
                let own = &self.kernel.arrays[array];
                let is_index = operand.value().is_none_or(|index| self.kernel.values[index].kind.is_whole());
                let is_wrong = !is_index || routine.writes(number) && !own.is_written;
                wrong_if(is_wrong, || format!("`{}` is written by {}", own.name, routine.name()))?;
            }
            are_places.push(operand.array());
        }
        let element = |array: ArrayId| self.kernel.arrays[array].element;
        let fits = match (routine, are_places.as_slice()) {
            (Routine::CopyAsync(bytes), &[Some(to), Some(from)]) => {
                self.copies = Copies::Started;
                let spaces = [to, from].map(|array| &self.kernel.whole(array).space);
                let is_shared = matches!(spaces, [Space::Shared(_) | Space::Dynamic(_), Space::Global { .. }]);
                is_shared
                    && element(to) == element(from)
                    && [4, 8, 16].contains(&bytes)
                    && bytes.is_multiple_of(element(to).bytes())
            }
            (Routine::CopyRun(count), &[Some(to), Some(from)]) => {
                element(to) == element(from) && count.is_power_of_two() && count * element(to).bytes() <= 16
            }
            (Routine::Prefetch, &[Some(from)]) => matches!(self.kernel.whole(from).space, Space::Global { .. }),
            (Routine::CopyAsyncCommit, []) => {
                self.copies = if self.copies == Copies::None { Copies::None } else { Copies::Grouped };
                true
            }
            (Routine::CopyAsyncWait(_), []) => {
                // Groups that stay under way are for who looks at them behind a later barrier.
                self.copies = if self.copies == Copies::Grouped { Copies::None } else { self.copies };
                true
            }
            _ => routine.takes(self.kernel, operands),
        };
        wrong_if(!fits, || format!("{} takes {operands:?}", routine.name()))
    }

    fn fits(&self, variable: VariableId, value: ValueId) -> Result<(), String> {
        let own = &self.kernel.variables[variable];
        let fits = own.kind == self.kernel.values[value].kind && !own.is_counter;
        wrong_if(!fits, || format!("`{}` gets another type, or is a counter", own.name))
    }

    /// Whether all that a statement needs for a value is there.
    fn used(&mut self, value: ValueId, is_let: bool, together: Together) -> Result<(), String> {
        let (mut waiting, mut seen) = (vec![(value, is_let, together)], HashSet::new());
        while let Some((id, is_let, together)) = waiting.pop() {
            let value = &self.kernel.values[id];
            if let Some(name) = value.name.as_ref().filter(|_| !is_let) {
                let is_there = self.there.contains(&Thing::Value(id));
                wrong_if(!is_there, || format!("`{name}` is used where it is not known"))?;
                continue;
            }
            if !seen.insert((id, together)) {
                continue;
            }
            match &value.operation {
                Operation::Argument(argument) => _ = self.used.insert(Thing::Argument(*argument)),
                Operation::Variable(variable) => {
                    let name = &self.kernel.variables[*variable].name;
                    let is_there = self.there.contains(&Thing::Variable(*variable));
                    wrong_if(!is_there, || format!("`{name}` is used where it is not there"))?;
                    wrong_if(!self.set.contains(variable), || format!("`{name}` is used before it has a value"))?;
                }
                Operation::Load(array, _) => self.touched(*array, false)?,
                Operation::Call(Function::Inverse | Function::Quotient, _) if self.is_final => {
                    return Err("a quick division stands where no attempt fails".into());
                }
                Operation::Follow(follow) => {
                    self.used.extend(follow.patterns.iter().chain([&follow.table]).copied().map(Thing::Array));
                }
                Operation::ShuffleDown(..) | Operation::Shuffle { .. } if together.min(self.whole) < Together::Warp => {
                    return Err("not all threads of a warp come to a shuffle".into());
                }
                _ => {}
            }
            // What is computed only where something holds, not all threads may come to.
            let (always, sometimes) = match value.operation {
                Operation::And(a, b) | Operation::Or(a, b) => (vec![a], vec![b]),
                Operation::Choose(condition, yes, no) => (vec![condition], vec![yes, no]),
                _ => (value.operation.operands(), Vec::new()),
            };
            let condition = always.first().filter(|_| !sometimes.is_empty());
            let meet = condition.map_or(together, |&condition| together.min(self.uniform(condition)));
            waiting.extend(always.into_iter().map(|operand| (operand, false, together)));
            waiting.extend(sometimes.into_iter().map(|operand| (operand, false, meet)));
        }
        Ok(())
    }

    /// For which threads a value is the same.
    fn uniform(&self, value: ValueId) -> Together {
        uniform(self.kernel, &self.counters, value)
    }
}

/// Whether no thread comes to the end of a block.
fn ends(block: &Block) -> bool {
    matches!(block.0.last(), Some(Statement::Return | Statement::Break))
}

/// Whether threads may be done in a block of statements, or, where `breaks` count, with the loop around it.
fn leaves(block: &Block, breaks: bool) -> bool {
    block.0.iter().any(|own| match own {
        Statement::Return => true,
        Statement::Break => breaks,
        Statement::For(inner) => leaves(&inner.body, false),
        own => own.blocks().into_iter().any(|inner| leaves(inner, breaks)),
    })
}
