//! Leaves out of a kernel what nothing uses: names that are never called, variables that nobody reads, loops and branches in which
//! nothing is done, arguments and arrays that nothing needs. So whoever makes a kernel can declare all that might be needed.

use super::{ArgumentKind, ArrayId, Block, Kernel, Meaning, Operation, Statement, ValueId, VariableId};
use crate::ir::{Arena, Handle};

/// The kernel without what nothing uses. Fields and parameters stay arguments: callers count on them.
pub fn simplify(mut kernel: Kernel) -> Kernel {
    let mut used = Used {
        values: vec![false; kernel.values.len()],
        variables: vec![false; kernel.variables.len()],
        arrays: vec![false; kernel.arrays.len()],
        waiting: Vec::new(),
    };
    if let Some(watch) = &kernel.watch {
        used.value(&kernel, watch.plane);
    }
    // What is stored, and which way threads go, is why there is a kernel. A variable counts where something that counts reads it, which
    // may stand before it is assigned, in a loop: so until nothing more is found.
    loop {
        let before = used.count();
        used.block(&kernel, &kernel.body);
        if used.count() == before {
            break;
        }
    }
    let body = used.kept(std::mem::take(&mut kernel.body));
    without_arguments(compact(Kernel { body, ..kernel }))
}

/// What something that counts uses.
struct Used {
    values: Vec<bool>,
    variables: Vec<bool>,
    /// Arrays that are read or written.
    arrays: Vec<bool>,
    waiting: Vec<ValueId>,
}

impl Used {
    fn count(&self) -> usize {
        self.values.iter().chain(&self.variables).chain(&self.arrays).filter(|used| **used).count()
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
                Operation::Variable(variable) => self.variables[variable.index()] = true,
                Operation::Load(array, _) => self.array(kernel, *array),
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
}

/// The kernel with those values alone that statements use.
fn compact(mut kernel: Kernel) -> Kernel {
    let mut used = vec![false; kernel.values.len()];
    let mut waiting: Vec<ValueId> = kernel.watch.iter().map(|watch| watch.plane).collect();
    each_value(&mut kernel.body, &mut |value| waiting.push(*value));
    while let Some(value) = waiting.pop() {
        if !std::mem::replace(&mut used[value.index()], true) {
            waiting.extend(kernel.values[value].operation.operands());
        }
    }
    let mut moved = vec![ValueId::new(0); used.len()];
    let mut values = Arena::new();
    let all = std::mem::take(&mut kernel.values);
    for (id, value) in all.iter().filter(|(id, _)| used[id.index()]) {
        let mut value = value.clone();
        value.operation.operands_mut().into_iter().for_each(|operand| *operand = moved[operand.index()]);
        moved[id.index()] = values.add(value);
    }
    each_value(&mut kernel.body, &mut |value| *value = moved[value.index()]);
    if let Some(watch) = &mut kernel.watch {
        watch.plane = moved[watch.plane.index()];
    }
    kernel.values = values;
    kernel
}

/// Every value that a statement uses itself.
fn each_value(block: &mut Block, visit: &mut impl FnMut(&mut ValueId)) {
    for statement in &mut block.0 {
        statement.values_mut().into_iter().for_each(&mut *visit);
        statement.blocks_mut().into_iter().for_each(|inner| each_value(inner, visit));
    }
}

/// The kernel without arguments and arrays that nothing needs.
fn without_arguments(mut kernel: Kernel) -> Kernel {
    let mut arrays = vec![false; kernel.arrays.len()];
    let mut numbers = vec![false; kernel.arguments.len()];
    for (_, value) in kernel.values.iter() {
        match &value.operation {
            Operation::Argument(argument) => numbers[argument.index()] = true,
            Operation::Load(array, _) => arrays[array.index()] = true,
            Operation::Follow(follow) => {
                follow.patterns.iter().chain([&follow.table]).for_each(|table| arrays[table.index()] = true);
            }
            _ => {}
        }
    }
    touched(&kernel.body, &mut arrays);
    if let Some(watch) = &kernel.watch {
        [watch.report, watch.columns].into_iter().for_each(|array| arrays[array.index()] = true);
    }
    for (id, argument) in kernel.arguments.iter() {
        match &argument.meaning {
            Meaning::Input(_) | Meaning::Output(_) | Meaning::Param(_) => match argument.what {
                ArgumentKind::Array(array) => arrays[array.index()] = true,
                ArgumentKind::Number(_) => numbers[id.index()] = true,
            },
            Meaning::Documented | Meaning::Table(_) | Meaning::Report | Meaning::Columns => {}
            Meaning::Size(_) | Meaning::Mesh(_) | Meaning::Step(_) => {}
        }
    }
    // What an array is a part or a view of comes before it.
    for (id, array) in kernel.arrays.iter().rev() {
        if let Some(base) = array.space.base().filter(|_| arrays[id.index()]) {
            arrays[base.index()] = true;
        }
    }
    let (kept_arrays, moved_arrays) = kept(std::mem::take(&mut kernel.arrays), |id, _| arrays[id]);
    let (kept_arguments, moved_arguments) =
        kept(std::mem::take(&mut kernel.arguments), |id, argument| match argument.what {
            ArgumentKind::Number(_) => numbers[id],
            ArgumentKind::Array(array) => arrays[array.index()],
        });
    kernel.arrays = kept_arrays;
    kernel.arguments = kept_arguments;
    for argument in kernel.arguments.values_mut() {
        if let ArgumentKind::Array(array) = &mut argument.what {
            *array = moved_arrays[array.index()];
        }
    }
    for value in kernel.values.values_mut() {
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
    for base in kernel.arrays.values_mut().filter_map(|array| array.space.base_mut()) {
        *base = moved_arrays[base.index()];
    }
    each_array(&mut kernel.body, &mut |array| *array = moved_arrays[array.index()]);
    if let Some(watch) = &mut kernel.watch {
        watch.report = moved_arrays[watch.report.index()];
        watch.columns = moved_arrays[watch.columns.index()];
    }
    kernel
}

/// The elements that are kept, and of each element its handle among them.
fn kept<H: Handle, T: Clone>(arena: Arena<H, T>, keep: impl Fn(usize, &T) -> bool) -> (Arena<H, T>, Vec<H>) {
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

fn touched(block: &Block, arrays: &mut [bool]) {
    for statement in &block.0 {
        statement.arrays().into_iter().for_each(|array| arrays[array.index()] = true);
        statement.blocks().into_iter().for_each(|inner| touched(inner, arrays));
    }
}

fn each_array(block: &mut Block, visit: &mut impl FnMut(&mut ArrayId)) {
    for statement in &mut block.0 {
        statement.arrays_mut().into_iter().for_each(&mut *visit);
        statement.blocks_mut().into_iter().for_each(|inner| each_array(inner, visit));
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::super::verify::verify;
    use super::super::{Coordinate, Step, Type, Unroll};
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
}
