use super::super::build::{Builder, Making};
use super::super::{Attempt, Axis, Coordinate, Element, Kernel, Unroll};
use super::*;

fn told(write: impl FnOnce(&mut Builder)) -> String {
    let mut builder = Builder::new("own", 64, "");
    write(&mut builder);
    verify(&builder.finish()).err().map(|refusal| refusal.message).unwrap_or_default()
}

/// `b[t] = a[t]`, for threads below n.
fn copied(own: &mut Builder) {
    let (a, b) = (own.input("a", Type::I32), own.output("b", Type::I32));
    let (n, thread) = (own.number("n", Type::I32), own.coordinate(Coordinate::Thread, Axis::X));
    let inside = own.less(thread, n);
    own.when(inside, |own| {
        let value = own.load(a, thread);
        own.store(b, thread, value);
    });
}

#[test]
fn what_is_right_passes() {
    assert_eq!(told(copied), "");
}

#[test]
fn each_fault_is_found() {
    type Fault = fn(&mut Builder);
    let faults: [(&str, Fault); 24] = [
        ("not all threads of a block", |own| {
            let [zero, two, ten] = [0, 2, 10].map(|number| own.int(number));
            let one = own.int(1);
            own.each("i", (zero, ten, Step::By(one)), Unroll::Free, |own, _| {
                own.barrier();
                let thread = own.coordinate(Coordinate::Thread, Axis::X);
                let condition = own.less(thread, two);
                own.leave_if(condition);
            });
        }),
        ("not all threads of a warp", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let (condition, moved) = (own.less(thread, two), own.shuffle_down(thread, two));
            let chosen = own.choose(condition, moved, two);
            own.variable("moved", chosen);
        }),
        ("never ends", |own| {
            let (zero, ten, back) = (own.int(0), own.int(10), own.int(-1));
            own.each("i", (zero, ten, Step::By(back)), Unroll::Free, |_, _| {});
        }),
        ("nothing uses the array `idle`", |own| _ = own.shared("idle", Type::I32, 4)),
        ("is used where it is not known", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let (condition, sum) = (own.less(thread, two), own.add(thread, two));
            let mut inside = sum;
            own.when(condition, |own| inside = own.name("inside", sum));
            own.variable("outside", inside);
        }),
        ("counts in other numbers", |own| {
            let (zero, ten) = (own.int(0), own.literal(10, Type::I64));
            own.each("i", (zero, ten, Step::By(ten)), Unroll::Free, |_, _| {});
        }),
        ("nothing uses the argument `m`", |own| _ = own.number("m", Type::I32)),
        ("not all threads of a block", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let condition = own.less(thread, two);
            own.when(condition, Builder::barrier);
        }),
        ("not all threads of a block", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let condition = own.less(thread, two);
            own.leave_if(condition);
            own.barrier();
        }),
        ("not all threads of a warp", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let condition = own.less(thread, two);
            own.when(condition, |own| {
                let moved = own.shuffle_down(thread, two);
                own.variable("moved", moved);
            });
        }),
        ("shares 65536 bytes", |own| {
            let (array, zero) = (own.shared("large", Type::I32, 1 << 14), own.int(0));
            own.store(array, zero, zero);
        }),
        ("never ends", |own| {
            let (zero, ten) = (own.int(0), own.int(10));
            own.each("i", (zero, ten, Step::Doubled), Unroll::Free, |_, _| {});
        }),
        ("is used before it has a value", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let condition = own.less(thread, two);
            let name = own.declared("late");
            let late = own.undeclared(name, Type::I32);
            own.declare(late);
            own.when(condition, |own| own.assign(late, two));
            let value = own.get(late);
            own.variable("read", value);
        }),
        ("two things are called `twice`", |own| {
            let name = own.declared("twice");
            for _ in 0..2 {
                let variable = own.undeclared(name.clone(), Type::I32);
                own.declare(variable);
            }
        }),
        ("there is no loop to leave", |own| {
            let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
            let condition = own.less(thread, two);
            own.break_if(condition);
        }),
        ("not all threads of a block", |own| {
            let [zero, one, ten] = [0, 1, 10].map(|number| own.int(number));
            own.each("i", (zero, ten, Step::By(one)), Unroll::Free, |own, _| {
                let thread = own.coordinate(Coordinate::Thread, Axis::X);
                let condition = own.less(thread, one);
                own.break_if(condition);
                own.barrier();
            });
        }),
        ("made by", |own| {
            let (thread, yes) = (own.coordinate(Coordinate::Thread, Axis::X), own.truth(true));
            let sum = own.add(yes, thread);
            own.variable("sum", sum);
        }),
        ("copies are not waited for", |own| {
            let (memory, from) = (own.dynamic("memory", 64), own.input("from", Type::I32));
            let (tile, zero) = (own.part("tile", memory, Type::I32, (0, 16)), own.int(0));
            let places = vec![Operand::Place(tile, zero), Operand::Place(from, zero)];
            own.perform(Routine::CopyAsync(4), places);
            own.perform(Routine::CopyAsyncCommit, Vec::new());
            own.barrier();
        }),
        ("copy_async takes", |own| {
            let (to, from, zero) = (own.output("to", Type::I32), own.input("from", Type::I32), own.int(0));
            let places = vec![Operand::Place(to, zero), Operand::Place(from, zero)];
            own.perform(Routine::CopyAsync(4), places);
        }),
        ("`tile` cannot be", |own| {
            let memory = own.dynamic("memory", 64);
            own.part("tile", memory, Type::I32, (4, 16));
        }),
        ("a block shares 262144 bytes", |own| {
            let memory = own.dynamic("memory", 1 << 18);
            let (tile, zero) = (own.part("tile", memory, Type::I32, (0, 16)), own.int(0));
            own.store(tile, zero, zero);
        }),
        ("`inside` is used where it is not there", |own| {
            let (from, zero, one) = (own.input("from", Type::I32), own.int(0), own.int(1));
            let mut view = from;
            own.each("i", (zero, one, Step::By(one)), Unroll::Free, |own, i| view = own.view("inside", from, i));
            let value = own.load(view, zero);
            own.variable("outside", value);
        }),
        ("made by", |own| {
            // A third is no number of single precision.
            let third = own.real(1.0 / 3.0, Type::one(Element::F32));
            own.variable("third", third);
        }),
        ("made by", |own| {
            let (one, two) = (own.int(1), own.literal(2, Type::I64));
            let sum = own.call(Function::WrappingAdd, vec![one, two], Type::I32);
            own.variable("sum", sum);
        }),
    ];
    for (what, fault) in faults {
        let said = told(|own| {
            copied(own);
            fault(own);
        });
        assert!(said.contains(what), "{what}: {said}");
    }
}

#[test]
fn a_kernel_that_was_changed_is_looked_at_again() {
    let kernel = || {
        let mut builder = Builder::new("own", 64, "");
        copied(&mut builder);
        builder.finish()
    };
    let change = |change: fn(&mut Kernel)| {
        let mut kernel = kernel();
        change(&mut kernel);
        verify(&kernel).unwrap_err().message
    };
    assert!(
        change(|kernel| kernel.arrays.values_mut().for_each(|array| array.is_written = false))
            .contains("written to `b`")
    );
    assert!(change(|kernel| kernel.values.values_mut().for_each(|value| value.kind = Type::I64)).contains("made by"));
    assert!(change(|kernel| kernel.body.0.clear()).contains("nothing uses"));
}

#[test]
fn attempts_write_nothing_before_they_are_sure() {
    fn tried(own: &mut Builder) -> [ValueId; 2] {
        let [is_quick, is_usual] = ["is_quick", "is_usual"].map(|name| own.declared(name));
        own.attempt(Attempt { is_quick, is_usual });
        let real = Type::one(Element::F64);
        let (a, thread) = (own.input("a", real), own.coordinate(Coordinate::Thread, Axis::X));
        let a = own.load(a, thread);
        let inverse = own.call(Function::Inverse, vec![a], real);
        [thread, own.call(Function::Quotient, vec![a, a, inverse], real)]
    }
    fn written(own: &mut Builder, at: ValueId, value: ValueId) {
        let b = own.output("b", Type::one(Element::F64));
        own.store(b, at, value);
    }
    let right = told(|own| {
        let [at, quotient] = tried(own);
        let quotient = own.name("q", quotient);
        own.give_up();
        written(own, at, quotient);
    });
    assert_eq!(right, "");
    let in_own_memory = told(|own| {
        let [at, quotient] = tried(own);
        let zero = own.int(0);
        let kept = own.local("kept", Type::one(Element::F64), 1);
        own.store(kept, zero, quotient);
        let kept = own.load(kept, zero);
        own.give_up();
        written(own, at, kept);
    });
    assert_eq!(in_own_memory, "");
    type Fault = fn(&mut Builder);
    let faults: [(&str, Fault); 5] = [
        ("nowhere could it give up", |own| _ = tried(own)),
        ("written by an attempt that may fail", |own| {
            let [at, quotient] = tried(own);
            let quotient = own.name("q", quotient);
            written(own, at, quotient);
            own.give_up();
        }),
        ("a quick division stands where no attempt fails", |own| {
            let [at, quotient] = tried(own);
            own.give_up();
            written(own, at, quotient);
        }),
        ("it gives up where it is not tried, or where not all threads come", |own| {
            let [at, _] = tried(own);
            let two = own.int(2);
            let inside = own.less(at, two);
            own.when(inside, |own| own.give_up());
        }),
        ("it gives up where it is not tried", |own| {
            let [_, quotient] = tried(own);
            own.name("q", quotient);
            own.give_up();
            own.give_up();
        }),
    ];
    for (expected, fault) in faults {
        let told = told(fault);
        assert!(told.contains(expected), "{told:?} is not: {expected}");
    }
}

#[test]
fn additions_and_lists_are_of_their_arrays() {
    fn thread(own: &mut Builder) -> ValueId {
        own.coordinate(Coordinate::Thread, Axis::X)
    }
    let right = told(|own| {
        let (b, thread) = (own.output("b", Type::I32), thread(own));
        let listed = own.list("listed", Type::I32, vec![thread, thread]);
        let one = own.int(1);
        let value = own.load(listed, one);
        own.atomic_add(b, thread, vec![value, value]);
    });
    assert_eq!(right, "");
    type Fault = fn(&mut Builder);
    let faults: [(&str, Fault); 5] = [
        ("not all threads of a warp come to what its lanes add", |own| {
            let (b, thread, two) = (own.output("b", Type::I32), thread(own), own.int(2));
            let inside = own.less(thread, two);
            own.when(inside, |own| own.atomic_add(b, thread, vec![two, two]));
        }),
        ("3 values are added to `b`", |own| {
            let (b, thread) = (own.output("b", Type::I32), thread(own));
            own.atomic_add(b, thread, vec![thread; 3]);
        }),
        ("1 values are added to `b`", |own| {
            let (b, thread) = (own.output("b", Type::one(Element::F64)), thread(own));
            own.atomic_add(b, thread, vec![thread]);
        }),
        ("`listed` is used where it is not there", |own| {
            let (b, thread, two) = (own.output("b", Type::I32), thread(own), own.int(2));
            let (inside, mut listed) = (own.less(thread, two), None);
            own.when(inside, |own| listed = Some(own.list("listed", Type::I32, vec![two, thread])));
            let value = own.load(listed.unwrap(), two);
            own.store(b, thread, value);
        }),
        ("made twice, or otherwise than it is", |own| {
            let (b, thread) = (own.output("b", Type::I32), thread(own));
            let listed = own.list("listed", Type::one(Element::F64), vec![thread]);
            let zero = own.int(0);
            let value = own.load(listed, zero);
            let value = own.convert(value, Type::I32);
            own.store(b, thread, value);
        }),
    ];
    for (expected, fault) in faults {
        let told = told(fault);
        assert!(told.contains(expected), "{told:?} is not: {expected}");
    }
}

#[test]
fn what_is_put_around_an_open_block_has_a_name_of_its_own() {
    // A branch within a branch is finished, and then something is found to belong before both.
    let write = |own: &mut Builder| {
        let out = own.output("out", Type::I32);
        let (thread, two) = (own.coordinate(Coordinate::Thread, Axis::X), own.int(2));
        let (condition, whole) = (own.less(thread, two), own.current());
        own.when(condition, |own| {
            let other = own.less(two, thread);
            own.when(other, |own| {
                let inside = own.add(thread, two);
                let inside = own.name("sum", inside);
                own.store(out, thread, inside);
            });
            let product = own.mul(thread, two);
            let before = own.within(whole, |own| own.name("sum", product));
            own.store(out, thread, before);
        });
        // Behind them a name is free again.
        let product = own.mul(thread, thread);
        own.within(whole, |own| own.name("sum", product));
    };
    assert_eq!(told(write), "");
    let mut builder = Builder::new("own", 64, "");
    write(&mut builder);
    let text = builder.finish().to_string();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("let ")?.split_once(':'));
    assert_eq!(names.map(|(name, _)| name).collect::<Vec<_>>(), ["sum_2", "sum", "sum"], "{text}");
}
