use super::*;
use crate::kernel::{Axis, Coordinate};

/// What is computed from a variable, or from an array that the kernel writes, may be another number after that was written.
#[test]
fn what_may_have_changed_is_computed_again() {
    let mut own = Builder::new("own", 64, "");
    let (thread, out) = (own.coordinate(Coordinate::Thread, Axis::X), own.output("out", Type::I32));
    let count = own.variable("count", thread);
    for _ in 0..2 {
        let more = own.get(count).plus(2);
        let more = own.name("more", more);
        own.assign(count, more);
    }
    for _ in 0..2 {
        let there = own.name("there", out.at(thread).plus(2));
        own.store(out, thread, there);
    }
    let expected = "\
kernel own of 64 threads
    output out: i32
    var count: i32 = thread.x
    let more: i32 = add(count, 2)
    count = more
    let more_2: i32 = add(count, 2)
    count = more_2
    let there: i32 = add(out[thread.x], 2)
    out[thread.x] = there
    let there_2: i32 = add(out[thread.x], 2)
    out[thread.x] = there_2
";
    assert_eq!(own.finish().to_string(), expected);
}
