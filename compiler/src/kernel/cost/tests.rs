//! Kernels whose counts can be checked by hand.

use super::super::build::{Builder, Making};
use super::super::{Array, Axis, Follow, Meaning, MeshData, Unroll};
use super::*;
use crate::ir::Relation;

const REAL: Type = Type::one(Element::F64);

fn kernel(write: impl FnOnce(&mut Builder, ValueId)) -> Kernel {
    let mut own = Builder::new("own", 64, "");
    let thread = own.coordinate(Coordinate::Thread, Axis::X);
    write(&mut own, thread);
    own.finish()
}

fn array(own: &mut Builder, name: &str, (element, is_written): (Type, bool), meaning: Meaning) -> ArrayId {
    let name = own.declared(name);
    let space = Space::Global { aliased: false };
    own.add_array(Array { name, element, space, is_written, watched: None }, meaning)
}

fn moved(read: u64, written: u64) -> Moved {
    Moved { read, written }
}

#[test]
fn a_statement_works_out_each_value_once() {
    let mut arrays = Vec::new();
    let kernel = kernel(|own, thread| {
        let (a, b) = (own.input("a", REAL), own.output("b", Type::one(Element::F32)));
        arrays = vec![a, b];
        let one = own.int(1);
        let next = own.add(thread, one);
        let (x, y) = (own.load(a, thread), own.load(a, next));
        let sum = own.add(x, y);
        let product = own.mul(sum, sum);
        let product = own.binary(Binary::Div, product, x);
        let rounded = own.convert(product, Type::one(Element::F32));
        own.store(b, thread, rounded);
        own.store(b, next, rounded);
    });
    let cost = Cost::of(&kernel);
    // Twice: 16 bytes of doubles, a sum, a product, a quotient and a conversion; and the index of the next element.
    assert_eq!(cost.thread.moved, BTreeMap::from([(arrays[0], moved(32, 0)), (arrays[1], moved(0, 8))]));
    assert_eq!((cost.thread.real, cost.thread.slow, cost.thread.whole), (8, 2, 2));
    assert_eq!(cost.thread.moved_in(&kernel, Memory::Global), moved(32, 8));
    assert_eq!((cost.thread.lookups, cost.turn, cost.waiting), (0, Counts::default(), 0));
}

#[test]
fn loops_count_as_often_as_they_turn() {
    type MakeStep = fn(ValueId) -> Step;
    let steps: [(i64, i64, MakeStep, u64); 5] = [
        (0, 10, Step::By, 4),
        (1, 10, Step::By, 3),
        (9, 3, Step::By, 0),
        (9, 3, Step::Down, 3),
        (3, 25, |_| Step::Doubled, 4),
    ];
    for (first, end, step, turns) in steps {
        let kernel = kernel(|own, thread| {
            let b = own.output("b", REAL);
            let [first, end, three] = [first, end, 3].map(|number| own.int(number));
            own.each("n", (first, end, step(three)), Unroll::Free, |own, n| {
                let index = own.add(thread, n);
                let real = own.convert(n, REAL);
                own.store(b, index, real);
            });
        });
        let cost = Cost::of(&kernel);
        assert_eq!((cost.thread.real, cost.thread.whole), (turns, turns), "{first}..{end}");
        assert_eq!(cost.thread.moved_in(&kernel, Memory::Global), moved(0, 8 * turns));
        assert_eq!((cost.known_loops, cost.unknown_loops), (1, 0));
    }
}

#[test]
fn loops_of_unknown_length_are_counted_for_one_turn() {
    let kernel = kernel(|own, thread| {
        let (b, count) = (own.output("b", REAL), own.number("count", Type::I32));
        let [zero, one, five, sixty_four] = [0, 1, 5, 64].map(|number| own.int(number));
        own.each("n", (zero, count, Step::By(one)), Unroll::Free, |own, n| {
            own.each("m", (zero, five, Step::By(one)), Unroll::Free, |own, m| {
                let index = own.add(n, m);
                let real = own.convert(thread, REAL);
                own.store(b, index, real);
            });
        });
        // Of a thread that is the first of 64, three turns; of others at most as many.
        let end = own.int(130);
        own.each("t", (thread, end, Step::By(sixty_four)), Unroll::Free, |own, _| own.barrier());
    });
    let cost = Cost::of(&kernel);
    assert_eq!((cost.known_loops, cost.unknown_loops), (2, 1));
    assert_eq!((cost.turn.whole, cost.turn.real), (5, 5));
    assert_eq!(cost.turn.moved_in(&kernel, Memory::Global), moved(0, 40));
    assert_eq!(cost.thread, Counts { waits: 3, ..Counts::default() });
}

#[test]
fn of_two_branches_the_one_counts_that_does_more() {
    let kernel = kernel(|own, thread| {
        let (a, b) = (own.input("a", REAL), own.output("b", REAL));
        let zero = own.int(0);
        let condition = own.compare(Relation::Eq, thread, zero);
        let (yes, no) = (own.open(), own.open());
        own.within(yes, |own| {
            let x = own.load(a, thread);
            own.store(b, thread, x);
            own.atomic_add(b, zero, vec![x]);
        });
        own.within(no, |own| {
            let real = own.convert(thread, REAL);
            let root = own.call(Function::Scalar(ir::Function::Sqrt, Default::default()), vec![real], REAL);
            own.store(b, thread, root);
        });
        own.branch(condition, yes, no);
    });
    let counts = Cost::of(&kernel).thread;
    // One side loads twice, stores and adds; the other converts, takes a root and stores. Both compare.
    assert_eq!((counts.real, counts.slow, counts.whole, counts.atomics), (2, 1, 1, 1));
    assert_eq!(counts.moved_in(&kernel, Memory::Global), moved(24, 16));
}

#[test]
fn tables_and_each_kind_of_memory_are_told_apart() {
    let mut map = None;
    let kernel = kernel(|own, thread| {
        let table = array(own, "table", (Type::I32, false), Meaning::Table(0));
        let patterns = array(own, "patterns", (Type::one(Element::U8), false), Meaning::Table(1));
        let users = array(own, "users", (Type::I32, false), Meaning::Mesh(MeshData::Users(Handle::new(0), None)));
        map = Some(users);
        let a = array(own, "a", (REAL, false), Meaning::Input(Handle::new(0)));
        let (tile, kept) = (own.shared("tile", REAL, 64), own.local("kept", REAL, 2));
        let [zero, one] = [0, 1].map(|number| own.int(number));
        let place = own.follow(Follow { patterns: Some(patterns), table, start: zero, place: thread });
        let place = own.name("place", place);
        let user = own.load(users, place);
        let x = own.load(a, user);
        own.store(tile, thread, x);
        own.barrier();
        let x = own.load(tile, thread);
        own.store(kept, zero, x);
        let x = own.load(kept, zero);
        own.store(kept, one, x);
    });
    let cost = Cost::of(&kernel);
    let in_memory = |memory| cost.thread.moved_in(&kernel, memory);
    assert_eq!((cost.thread.lookups, cost.thread.whole, cost.thread.waits, cost.shared_bytes), (3, 2, 1, 512));
    assert_eq!(in_memory(Memory::Global), moved(4 + 1 + 4 + 8, 0));
    assert_eq!((in_memory(Memory::Shared), in_memory(Memory::Own)), (moved(8, 8), moved(8, 16)));
    assert_eq!(map.map(|map| cost.thread.moved[&map]), Some(moved(4, 0)));
    // The array `kept`, from where it is made, and for a while `place`.
    assert_eq!(cost.waiting, 5);
}

#[test]
fn rows_move_as_a_whole() {
    let kernel = kernel(|own, thread| {
        let (a, b) = (own.aliased("a", REAL, false), own.aliased("b", REAL, true));
        let row = own.local("row", REAL, 4);
        own.perform(Routine::LoadRow(2), vec![Operand::Row(row), Operand::Place(a, thread)]);
        let wide = own.local("wide", REAL, 7);
        let operands = vec![Operand::Row(wide), Operand::Row(row), Operand::Value(thread)];
        own.perform(Routine::WidenRow(1, 2), operands);
        own.perform(Routine::PutRow(1), vec![Operand::Place(b, thread), Operand::Row(wide)]);
    });
    let cost = Cost::of(&kernel);
    assert_eq!(cost.thread.moved_in(&kernel, Memory::Global), moved(32, 56));
    assert_eq!(cost.thread.moved_in(&kernel, Memory::Own), moved(32 + 56, 32 + 56));
    assert_eq!((cost.thread.exchanges, cost.waiting), (3, 2 * (4 + 7)));
}

/// An element of an array, by a name of its own.
fn named(own: &mut Builder, name: &str, (array, index): (ArrayId, i64)) -> ValueId {
    let index = own.int(index);
    let element = own.load(array, index);
    own.name(name, element)
}

#[test]
fn what_waits_is_counted_where_most_of_it_does() {
    type Write = fn(&mut Builder, ArrayId, ValueId);
    let cases: [(&str, usize, Write); 4] = [
        ("three elements, until two become one", 6, |own, a, thread| {
            let [x, y, z] = [("x", 0), ("y", 1), ("z", 2)].map(|(name, at)| named(own, name, (a, at)));
            let sum = own.add(x, y);
            let sum = own.name("sum", sum);
            let all = own.add(sum, z);
            own.store(a, thread, all);
        }),
        ("two of a branch and one from before, not what the other branch wants", 6, |own, a, thread| {
            let [x, y] = [("x", 0), ("y", 1)].map(|(name, at)| named(own, name, (a, at)));
            let zero = own.int(0);
            let condition = own.less(thread, zero);
            let (yes, no) = (own.open(), own.open());
            own.within(yes, |own| {
                let [p, q] = [("p", 2), ("q", 3)].map(|(name, at)| named(own, name, (a, at)));
                [p, q, x].into_iter().for_each(|value| own.store(a, thread, value));
            });
            own.within(no, |own| own.store(a, thread, y));
            own.branch(condition, yes, no);
        }),
        ("two of a turn, the counter, and what the next turn wants", 7, |own, a, thread| {
            let x = named(own, "x", (a, 0));
            let [zero, one, nine] = [0, 1, 9].map(|number| own.int(number));
            own.each("n", (zero, nine, Step::By(one)), Unroll::Free, |own, n| {
                own.store(a, n, x);
                let [p, q] = [("p", 2), ("q", 3)].map(|(name, at)| named(own, name, (a, at)));
                [p, q].into_iter().for_each(|value| own.store(a, thread, value));
            });
        }),
        ("an array by literals, and not the one by a counter", 6 + 1, |own, a, _| {
            let [zero, one, three] = [0, 1, 3].map(|number| own.int(number));
            let (kept, far) = (own.local("kept", REAL, 3), own.local("far", REAL, 3));
            for unroll in [Unroll::Whole, Unroll::Free] {
                own.each("n", (zero, three, Step::By(one)), unroll, |own, n| {
                    let x = own.load(a, n);
                    own.store(if unroll == Unroll::Whole { kept } else { far }, n, x);
                });
            }
            let (x, y) = (own.load(kept, one), own.load(far, one));
            let sum = own.add(x, y);
            own.store(a, zero, sum);
        }),
    ];
    for (what, words, write) in cases {
        let kernel = kernel(|own, thread| {
            let a = own.output("a", REAL);
            write(own, a, thread);
        });
        assert_eq!(Cost::of(&kernel).waiting, words, "{what}");
    }
}
