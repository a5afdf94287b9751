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
//! - Copies that threads start are made a group, and waited for, before the barrier behind which others see them.
//! - Every argument is used, and so is every array; those that are written are written to.

#[cfg(test)]
mod tests;
mod types;

use super::uniform::{Counters, Together, uniform};
use super::{
    ArgumentKind, Array, ArrayId, Block, Contents, Function, Kernel, Meaning, Operand, Operation, Routine, Space,
    Statement, Step, Type, ValueId, VariableId,
};
use crate::diagnostic::Refusal;
use crate::ir::Handle;
use crate::names::Identifier;
use std::collections::HashSet;
use types::{moves, types};

/// Bytes of shared memory that a block can declare.
const SHARED: usize = 48 << 10;

/// And with what the launch gives.
const DYNAMIC: usize = 227 << 10;

/// Looks whether a kernel keeps to all of it.
///
/// # Errors
/// It does not, which is a fault of the compiler: what is wrong, and where.
pub fn verify(kernel: &Kernel) -> Result<(), Refusal> {
    let broken = |what: String| Refusal::new(format!("the kernel `{}` is broken: {what}", kernel.name));
    types(kernel).map_err(broken)?;
    spaces(kernel).map_err(broken)?;
    let mut known = Known {
        kernel,
        named: HashSet::new(),
        declared: HashSet::new(),
        set: HashSet::new(),
        live: HashSet::new(),
        loops: 0,
        ever: HashSet::new(),
        arrays: HashSet::new(),
        stored: HashSet::new(),
        arguments: HashSet::new(),
        ever_counted: HashSet::new(),
        counters: Counters::new(),
        whole: Together::Launch,
        made: HashSet::new(),
        copies: Copies::None,
        depth: 0,
        is_final: kernel.attempt.is_none(),
    };
    if let Some(watch) = &kernel.watch {
        known.arrays.extend([watch.report, watch.columns].map(Handle::index));
        known.stored.insert(watch.report.index());
        if let Operation::Argument(plane) = kernel.values[watch.plane].operation {
            known.arguments.insert(plane.index());
        }
    }
    let arguments = kernel.arguments.iter().map(|(_, argument)| argument.name.clone());
    let arrays = kernel.arrays.iter().filter(|(_, array)| !is_made(array)).map(|(_, array)| array.name.clone());
    known.live.extend(arguments.chain(arrays));
    known.block(&kernel.body, Together::Launch).map_err(broken)?;
    if !known.is_final {
        return Err(broken("it is tried, and nowhere could it give up".into()));
    }
    for (id, argument) in kernel.arguments.iter() {
        let is_used = match argument.what {
            ArgumentKind::Number(_) => known.arguments.contains(&id.index()),
            ArgumentKind::Array(array) => known.arrays.contains(&array.index()),
        };
        // Callers count on what the stencil's text declares.
        let is_promised = matches!(argument.meaning, Meaning::Input(_) | Meaning::Param(_));
        if !is_used && !is_promised {
            return Err(broken(format!("nothing uses the argument `{}`", argument.name)));
        }
    }
    for (id, array) in kernel.arrays.iter() {
        let is_promised = kernel.arguments.iter().any(|(_, argument)| {
            argument.what == ArgumentKind::Array(id) && matches!(argument.meaning, Meaning::Input(_))
        });
        let (is_used, is_stored) = (known.arrays.contains(&id.index()), known.stored.contains(&id.index()));
        let is_view = matches!(array.space, Space::View(_));
        if !is_used && !is_promised || is_stored && !array.is_written || !is_stored && array.is_written && !is_view {
            return Err(broken(format!("nothing uses the array `{}`, or nothing writes to it", array.name)));
        }
    }
    if !(1..=1024).contains(&kernel.threads) {
        return Err(broken(format!("a block has {} threads", kernel.threads)));
    }
    let shared = |array: &Array| match array.space {
        Space::Shared(count) => count * array.element.bytes(),
        Space::Global { .. } | Space::Local(_) | Space::Rows(..) | Space::Constant(_) => 0,
        Space::Dynamic(_) | Space::Part { .. } | Space::View(_) => 0,
    };
    let bytes: usize = kernel.arrays.iter().map(|(_, array)| shared(array)).sum();
    let all = bytes + kernel.dynamic_bytes();
    match (bytes > SHARED, all > DYNAMIC) {
        (true, _) => Err(broken(format!("a block shares {bytes} bytes, and has {SHARED}"))),
        (_, true) => Err(broken(format!("a block shares {all} bytes, and has {DYNAMIC}"))),
        (false, false) => Ok(()),
    }
}

/// Whether parts and views are of what they can be.
fn spaces(kernel: &Kernel) -> Result<(), String> {
    let mut dynamics = 0;
    for (id, array) in kernel.arrays.iter() {
        if array.space.base().is_some_and(|base| base.index() >= id.index()) {
            return Err(format!("`{}` comes before what it is a part or a view of", array.name));
        }
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
        if !fits {
            return Err(format!("`{}` cannot be {:?}", array.name, array.space));
        }
    }
    Ok(())
}

/// Whether a statement makes an array.
fn is_made(array: &Array) -> bool {
    matches!(array.space, Space::Local(_) | Space::Rows(..) | Space::View(_))
}

/// What is known at a statement.
struct Known<'a> {
    kernel: &'a Kernel,
    /// Values that have their names here.
    named: HashSet<ValueId>,
    /// Variables that are there.
    declared: HashSet<VariableId>,
    /// Variables that have a value.
    set: HashSet<VariableId>,
    /// Names that mean something here.
    live: HashSet<Identifier>,
    /// How many loops stand around.
    loops: usize,
    /// Values that were named anywhere.
    ever: HashSet<ValueId>,
    arrays: HashSet<usize>,
    /// Arrays that something is written to.
    stored: HashSet<usize>,
    arguments: HashSet<usize>,
    /// Counters of loops.
    ever_counted: HashSet<VariableId>,
    /// Counters, and for which threads they are the same.
    counters: Counters,
    /// Of which threads nobody may be done, or done with the loop around.
    whole: Together,
    /// How many blocks stand around.
    depth: usize,
    /// Whether no attempt can fail any more.
    is_final: bool,
    /// The arrays that statements have made.
    made: HashSet<ArrayId>,
    /// How far the copies are that threads have started.
    copies: Copies,
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
        let (mut named, mut declared, mut live, mut made) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        self.depth += 1;
        for statement in &block.0 {
            if let Some(name) = self.kernel.declares(statement).cloned() {
                if !self.live.insert(name.clone()) {
                    return Err(format!("two things are called `{name}`"));
                }
                live.push(name);
            }
            for value in statement.values() {
                // What gets its name here is looked at as what it is made of.
                let is_let = matches!(statement, Statement::Let(_));
                self.used(value, is_let, together)?;
            }
            match statement {
                Statement::Let(value) => {
                    if self.kernel.values[*value].name.is_none() || !self.ever.insert(*value) {
                        return Err(format!("value {} is computed twice, or has no name", value.index()));
                    }
                    self.named.insert(*value);
                    named.push(*value);
                }
                Statement::Declare(variable, value) => {
                    if let Some(value) = value {
                        self.fits(*variable, *value)?;
                        self.set.insert(*variable);
                    }
                    if !self.declared.insert(*variable) {
                        return Err(format!("`{}` is declared twice", self.kernel.variables[*variable].name));
                    }
                    declared.push(*variable);
                }
                Statement::Assign(variable, value) => {
                    self.fits(*variable, *value)?;
                    if !self.declared.contains(variable) {
                        return Err(format!(
                            "`{}` is not there where it is assigned",
                            self.kernel.variables[*variable].name
                        ));
                    }
                    self.set.insert(*variable);
                }
                Statement::Store(array, index, value) => {
                    let own = &self.kernel.arrays[*array];
                    self.touched(*array, true)?;
                    let (index, value) = (self.kernel.values[*index].kind, self.kernel.values[*value].kind);
                    if !own.is_written || !index.is_whole() || !moves(self.kernel, *array, value) {
                        return Err(format!("{value:?} at {index:?} is written to `{}`", own.name));
                    }
                    self.written()?;
                }
                Statement::AtomicAdd(array, index, values) => {
                    let own = &self.kernel.arrays[*array];
                    self.touched(*array, true)?;
                    let kind = |value: &ValueId| self.kernel.values[*value].kind;
                    let are_numbers = own.element.is_real() || own.element == Type::I32;
                    let fits = are_numbers && values.iter().all(|value| kind(value) == own.element);
                    if !own.is_written || kind(index) != Type::I32 || !fits || ![1, 2, 4].contains(&values.len()) {
                        return Err(format!("{} values are added to `{}`", values.len(), own.name));
                    }
                    if values.len() > 1 && together.min(self.whole) < Together::Warp {
                        return Err("not all threads of a warp come to what its lanes add together".into());
                    }
                    self.written()?;
                }
                Statement::Array(array, contents) => {
                    let own = &self.kernel.arrays[*array];
                    let fits = match (contents, &own.space) {
                        (Contents::Unset | Contents::Zeros, Space::Local(_) | Space::Rows(..)) => true,
                        (Contents::Listed(values), Space::Local(count)) => {
                            let fits = |value: &ValueId| self.kernel.values[*value].kind == own.element;
                            values.len() == *count && !own.is_written && values.iter().all(fits)
                        }
                        (Contents::From(index), Space::View(of)) => {
                            self.touched(*of, false)?;
                            self.kernel.values[*index].kind.is_whole()
                        }
                        (Contents::Either(condition, other), Space::View(of)) => {
                            self.touched(*of, own.is_written)?;
                            self.touched(*other, own.is_written)?;
                            let is_like = |array: ArrayId| {
                                let array = &self.kernel.arrays[array];
                                let is_global = matches!(array.space, Space::Global { aliased: true } | Space::View(_));
                                is_global && array.element == own.element && array.is_written >= own.is_written
                            };
                            self.kernel.values[*condition].kind == Type::BOOL && is_like(*of) && is_like(*other)
                        }
                        _ => false,
                    };
                    if !fits || !self.made.insert(*array) {
                        return Err(format!("`{}` is made twice, or otherwise than it is", own.name));
                    }
                    made.push(*array);
                }
                Statement::Do(routine, operands) => {
                    if together.min(self.whole) < routine.together() {
                        return Err(format!("not all threads come to {}", routine.name()));
                    }
                    self.done(*routine, operands)?;
                }
                Statement::If(condition, yes, no) => {
                    if self.kernel.values[*condition].kind != Type::BOOL {
                        return Err("a condition is no truth".into());
                    }
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
                Statement::For(own) => {
                    let counter = own.counter;
                    let kind = self.kernel.variables[counter].kind;
                    let bounds = statement.values();
                    let counts = kind.is_whole() || kind == Type::U32;
                    if !counts || bounds.iter().any(|&value| self.kernel.values[value].kind != kind) {
                        return Err(format!(
                            "the loop of `{}` counts in other numbers",
                            self.kernel.variables[counter].name
                        ));
                    }
                    let grows_by = match own.step {
                        Step::By(step) | Step::Down(step) => step,
                        Step::Doubled => own.first,
                    };
                    let is_fresh = self.kernel.variables[counter].is_counter && self.ever_counted.insert(counter);
                    if !is_fresh {
                        let name = &self.kernel.variables[counter].name;
                        return Err(format!("`{name}` is no counter, or that of two loops"));
                    }
                    if matches!(self.kernel.values[grows_by].operation, Operation::Int(..=0)) {
                        return Err(format!("the loop of `{}` never ends", self.kernel.variables[counter].name));
                    }
                    let bound = bounds.iter().map(|&value| self.uniform(value)).min().unwrap_or(Together::Nobody);
                    self.counters.insert(counter, bound);
                    self.declared.insert(counter);
                    let name = self.kernel.variables[counter].name.clone();
                    if !self.live.insert(name.clone()) {
                        return Err(format!("two things are called `{name}`"));
                    }
                    let before = self.set.clone();
                    self.set.insert(counter);
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
                    self.declared.remove(&counter);
                    self.live.remove(&name);
                    self.loops -= 1;
                    self.set = before;
                }
                Statement::Barrier if together.min(self.whole) < Together::Block => {
                    return Err("not all threads of a block come to a barrier".into());
                }
                Statement::Barrier if self.copies != Copies::None => {
                    return Err("copies are not waited for before a barrier".into());
                }
                Statement::Barrier | Statement::Gap | Statement::Note(_) => {}
                Statement::Break if self.loops == 0 => return Err("there is no loop to leave".into()),
                // Those who leave a loop are missed in it.
                Statement::Break | Statement::Return => self.whole = self.whole.min(together),
                Statement::GiveUp if self.is_final || self.depth > 1 => {
                    return Err("it gives up where it is not tried, or where not all threads come".into());
                }
                Statement::GiveUp => self.is_final = true,
            }
        }
        self.depth -= 1;
        live.iter().for_each(|name| _ = self.live.remove(name));
        named.iter().for_each(|value| _ = self.named.remove(value));
        declared.iter().for_each(|variable| _ = self.declared.remove(variable));
        made.iter().for_each(|array| _ = self.made.remove(array));
        Ok(())
    }

    /// Whether something may be written here.
    fn written(&self) -> Result<(), String> {
        if self.is_final { Ok(()) } else { Err("something is written by an attempt that may fail".into()) }
    }

    /// Notes that an array is read or written, which must be there.
    fn touched(&mut self, array: ArrayId, is_stored: bool) -> Result<(), String> {
        let (mut at, mut is_stored) = (Some(array), is_stored);
        while let Some(array) = at {
            let own = &self.kernel.arrays[array];
            if is_made(own) && !self.made.contains(&array) {
                return Err(format!("`{}` is used where it is not there", own.name));
            }
            self.arrays.insert(array.index());
            is_stored &= !matches!(own.space, Space::Dynamic(_));
            if is_stored {
                self.stored.insert(array.index());
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
                if !is_index || routine.writes(number) && !own.is_written {
                    return Err(format!("`{}` is written by {}", own.name, routine.name()));
                }
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
            (Routine::CopyAsyncCommit, []) => {
                self.copies = if self.copies == Copies::None { Copies::None } else { Copies::Grouped };
                true
            }
            (Routine::CopyAsyncWait(pending), []) => {
                let is_done = pending == 0 && self.copies == Copies::Grouped;
                self.copies = if is_done { Copies::None } else { self.copies };
                true
            }
            _ => routine.takes(self.kernel, operands),
        };
        if fits { Ok(()) } else { Err(format!("{} takes {operands:?}", routine.name())) }
    }

    fn fits(&self, variable: VariableId, value: ValueId) -> Result<(), String> {
        let own = &self.kernel.variables[variable];
        match own.kind == self.kernel.values[value].kind && !own.is_counter {
            true => Ok(()),
            false => Err(format!("`{}` gets another type, or is a counter", own.name)),
        }
    }

    /// Whether all that a statement needs for a value is there.
    fn used(&mut self, value: ValueId, is_let: bool, together: Together) -> Result<(), String> {
        let (mut waiting, mut seen) = (vec![(value, is_let, together)], HashSet::new());
        while let Some((id, is_let, together)) = waiting.pop() {
            let value = &self.kernel.values[id];
            if value.name.is_some() && !is_let {
                if !self.named.contains(&id) {
                    let name = value.name.as_ref().map_or("", |name| name);
                    return Err(format!("`{name}` is used where it is not known"));
                }
                continue;
            }
            if !seen.insert((id, together)) {
                continue;
            }
            match &value.operation {
                Operation::Argument(argument) => _ = self.arguments.insert(argument.index()),
                Operation::Variable(variable) if !self.declared.contains(variable) => {
                    return Err(format!("`{}` is used where it is not there", self.kernel.variables[*variable].name));
                }
                Operation::Variable(variable) if !self.set.contains(variable) => {
                    return Err(format!("`{}` is used before it has a value", self.kernel.variables[*variable].name));
                }
                Operation::Load(array, _) => self.touched(*array, false)?,
                Operation::Call(Function::Inverse | Function::Quotient, _) if self.is_final => {
                    return Err("a quick division stands where no attempt fails".into());
                }
                Operation::Follow(follow) => {
                    self.arrays.extend(follow.patterns.iter().chain([&follow.table]).map(|table| table.index()));
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
