//! Leaves out of a kernel what nothing uses: names that are never called, variables that nobody reads, loops and branches in which
//! nothing is done, arguments and arrays that nothing needs. So whoever makes a kernel can declare all that might be needed.

use super::verify::verify;
use super::{ArgumentKind, ArrayId, Block, Kernel, Meaning, Operation, Space, Statement, ValueId, VariableId};
use crate::ir::{Arena, Handle};

/// The kernel without what nothing uses. Fields and parameters stay arguments: callers count on them.
pub fn simplify(mut kernel: Kernel) -> Kernel {
    let mut used = Used {
        values: vec![false; kernel.values.len()],
        variables: vec![false; kernel.variables.len()],
        arguments: vec![false; kernel.arguments.len()],
        arrays: vec![false; kernel.arrays.len()],
        waiting: Vec::new(),
    };
    used.promised(&kernel);
    // What is stored, and which way threads go, is why there is a kernel. A variable counts where something that counts reads it, which
    // may stand before it is assigned, in a loop: so until nothing more is found.
    loop {
        let before = used.count();
        used.block(&kernel, &kernel.body);
        if used.count() == before {
            break;
        }
    }
    kernel.body = used.kept(std::mem::take(&mut kernel.body));
    let kernel = used.alone(kernel);
    debug_assert!(verify(&kernel).is_ok(), "{:?}\n{kernel}", verify(&kernel));
    kernel
}

/// What something that counts uses.
struct Used {
    values: Vec<bool>,
    variables: Vec<bool>,
    /// Arguments that are numbers.
    arguments: Vec<bool>,
    /// Arrays that are read or written.
    arrays: Vec<bool>,
    waiting: Vec<ValueId>,
}

impl Used {
    fn count(&self) -> usize {
        self.values.iter().chain(&self.variables).chain(&self.arrays).filter(|used| **used).count()
    }

    /// What counts, whatever statements do.
    fn promised(&mut self, kernel: &Kernel) {
        if let Some(watch) = &kernel.watch {
            self.value(kernel, watch.plane);
            [watch.report, watch.columns].into_iter().for_each(|array| self.array(kernel, array));
        }
        for (id, argument) in kernel.arguments.iter() {
            match &argument.meaning {
                Meaning::Input(_) | Meaning::Output(_) | Meaning::Param(_) => match argument.what {
                    ArgumentKind::Array(array) => self.array(kernel, array),
                    ArgumentKind::Number(_) => self.arguments[id.index()] = true,
                },
                Meaning::Documented | Meaning::Table(_) | Meaning::Report | Meaning::Columns => {}
                Meaning::Size(_) | Meaning::Mesh(_) | Meaning::Step(_) => {}
            }
        }
    }

    /// A value that counts, with all that it is made of.
    fn value(&mut self, kernel: &Kernel, value: ValueId) {
        self.waiting.push(value);
        while let Some(value) = self.waiting.pop() {
            if std::mem::replace(&mut self.values[value.index()], true) {
                continue;
            }
            let operation = &kernel.values[value].operation;
            match operation {
                Operation::Argument(argument) => self.arguments[argument.index()] = true,
                Operation::Variable(variable) => self.variables[variable.index()] = true,
                Operation::Load(array, _) => self.array(kernel, *array),
                Operation::Follow(follow) => {
                    follow.patterns.iter().chain([&follow.table]).for_each(|&table| self.array(kernel, table));
                }
                _ => {}
            }
            self.waiting.extend(operation.operands());
        }
    }

    /// An array that counts, with what it is a part or a view of.
    fn array(&mut self, kernel: &Kernel, array: ArrayId) {
        let mut at = Some(array);
        while let Some(array) = at {
            self.arrays[array.index()] = true;
            at = kernel.arrays[array].space.base();
        }
    }

    /// What the statements of a block need, last ones first.
    fn block(&mut self, kernel: &Kernel, block: &Block) {
        for statement in block.0.iter().rev() {
            statement.blocks().into_iter().rev().for_each(|inner| self.block(kernel, inner));
            if self.counts(statement) {
                statement.values().into_iter().for_each(|value| self.value(kernel, value));
                statement.arrays().into_iter().for_each(|array| self.array(kernel, array));
            }
        }
    }

    /// Whether something is done by a statement.
    fn counts(&self, statement: &Statement) -> bool {
        let is_read = |variable: &VariableId| self.variables[variable.index()];
        match statement {
            Statement::Let(value) => self.values[value.index()],
            Statement::Declare(variable, _) | Statement::Assign(variable, _) => is_read(variable),
            Statement::If(..) | Statement::For(_) => {
                statement.blocks().into_iter().any(|block| block.0.iter().any(|own| self.counts(own)))
            }
            Statement::Array(array, _) => self.arrays[array.index()],
            Statement::Store(..) | Statement::AtomicAdd(..) | Statement::Do(..) | Statement::Barrier => true,
            Statement::Break | Statement::Return | Statement::GiveUp => true,
            Statement::Gap | Statement::Note(_) => false,
        }
    }

    /// A block without what does nothing.
    fn kept(&self, block: Block) -> Block {
        let kept =
            block.0.into_iter().filter(|own| matches!(own, Statement::Gap | Statement::Note(_)) || self.counts(own));
        let inner = kept.map(|own| match own {
            Statement::If(condition, yes, no) => Statement::If(condition, self.kept(yes), self.kept(no)),
            Statement::For(mut own) => {
                own.body = self.kept(own.body);
                Statement::For(own)
            }
            own => own,
        });
        Block(inner.collect())
    }

    /// The kernel with the values, arguments and arrays alone that count, by their new numbers.
    fn alone(&self, mut kernel: Kernel) -> Kernel {
        let (values, moved_values) = kept(&kernel.values, |id, _| self.values[id]);
        let (arrays, moved_arrays) = kept(&kernel.arrays, |id, _| self.arrays[id]);
        let (arguments, moved_arguments) = kept(&kernel.arguments, |id, argument| match argument.what {
            ArgumentKind::Number(_) => self.arguments[id],
            ArgumentKind::Array(array) => self.arrays[array.index()],
        });
        kernel = Kernel { values, arrays, arguments, ..kernel };
        for argument in kernel.arguments.values_mut() {
            if let ArgumentKind::Array(array) = &mut argument.what {
                *array = moved_arrays[array.index()];
            }
        }
        for array in kernel.arrays.values_mut() {
            if let Space::Part { of, .. } | Space::View(of) = &mut array.space {
                *of = moved_arrays[of.index()];
            }
        }
        for value in kernel.values.values_mut() {
            value.operation.operands_mut().into_iter().for_each(|operand| *operand = moved_values[operand.index()]);
            match &mut value.operation {
                Operation::Argument(argument) => *argument = moved_arguments[argument.index()],
                Operation::Load(array, _) => *array = moved_arrays[array.index()],
                Operation::Follow(follow) => {
                    follow.table = moved_arrays[follow.table.index()];
                    follow.patterns = follow.patterns.map(|patterns| moved_arrays[patterns.index()]);
                }
                _ => {}
            }
        }
        move_parts(&mut kernel.body, &moved_values, &moved_arrays);
        if let Some(watch) = &mut kernel.watch {
            watch.plane = moved_values[watch.plane.index()];
            watch.report = moved_arrays[watch.report.index()];
            watch.columns = moved_arrays[watch.columns.index()];
        }
        kernel
    }
}

/// Gives the statements of a block the new numbers of what they use.
fn move_parts(block: &mut Block, values: &[ValueId], arrays: &[ArrayId]) {
    for statement in &mut block.0 {
        let parts = statement.parts_mut();
        parts.values.into_iter().for_each(|value| *value = values[value.index()]);
        parts.arrays.into_iter().for_each(|array| *array = arrays[array.index()]);
        parts.blocks.into_iter().for_each(|inner| move_parts(inner, values, arrays));
    }
}

/// The elements that are kept, and of each element its handle among them.
fn kept<H: Handle, T: Clone>(arena: &Arena<H, T>, keep: impl Fn(usize, &T) -> bool) -> (Arena<H, T>, Vec<H>) {
    let mut own = Arena::new();
    let mut moved = Vec::with_capacity(arena.len());
    for (id, item) in arena.iter() {
        moved.push(H::new(own.len()));
        if keep(id.index(), item) {
            own.add(item.clone());
        }
    }
    (own, moved)
}

#[cfg(test)]
mod tests {
    use super::super::build::{Builder, Making};
    use super::super::verify::verify;
    use super::super::{Coordinate, Follow, Step, Type, Unroll};
    use super::*;
    use crate::kernel::Axis;

    #[test]
    fn what_nothing_uses_is_left_out() {
        let mut own = Builder::new("own", 64, "");
        let (a, b) = (own.input("a", Type::I32), own.output("b", Type::I32));
        let [n, idle] = ["n", "idle"].map(|name| own.number(name, Type::I32));
        own.input("unread", Type::I32);
        let thread = own.coordinate(Coordinate::Thread, Axis::X);
        let (unused, count) = (own.add(idle, n), own.variable("count", thread));
        own.name("unused", unused);
        let (zero, one) = (own.int(0), own.int(1));
        own.each("i", (zero, n, Step::By(one)), Unroll::Free, |own, i| {
            let before = own.get(count);
            let next = own.add(before, i);
            own.assign(count, next);
        });
        let forgotten = own.variable("forgotten", zero);
        own.each("j", (zero, n, Step::By(one)), Unroll::Free, |own, j| {
            own.assign(forgotten, j);
            let inside = own.less(j, idle);
            own.when(inside, |_| {});
        });
        let (value, sum) = (own.load(a, thread), own.get(count));
        let value = own.add(value, sum);
        own.store(b, thread, value);
        let kernel = simplify(own.finish());
        verify(&kernel).unwrap_or_else(|refusal| panic!("{}\n{kernel}", refusal.message));
        let expected = "\
kernel own of 64 threads
    input a: i32
    output b: i32
    number n: i32
    var count: i32 = thread.x
    for i from 0 to n by 1
        count = add(count, i)
    b[thread.x] = add(a[thread.x], count)
";
        assert_eq!(kernel.to_string(), expected);
    }
    #[test]
    fn tables_keep_their_patterns_where_an_array_leaves() {
        let mut own = Builder::new("own", 64, "");
        own.input("unread", Type::I32);
        let [patterns, table, out] = [own.input("p", Type::I32), own.input("t", Type::I32), own.output("o", Type::I32)];
        let (thread, start) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(3));
        let far = own.follow(Follow { patterns: Some(patterns), table, start, place: thread });
        own.store(out, thread, far);
        let before = own.kernel().arrays[patterns].name.clone();
        let kernel = simplify(own.finish());
        let follow = kernel.values.iter().find_map(|(_, own)| match &own.operation {
            Operation::Follow(follow) => Some(follow),
            _ => None,
        });
        assert_eq!((kernel.arrays.len(), &kernel.arrays[follow.unwrap().patterns.unwrap()].name), (3, &before));
    }
}
