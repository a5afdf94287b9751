//! Kernels that no stencil says: what whoever runs kernels needs to have done to memory.

use super::build::Builder;
use super::{ArrayId, Axis, Binary, Coordinate, Element, Kernel, Step, Type, Unroll, ValueId};
use crate::ir::Relation;
use crate::ir::mesh::Fold;

/// Sets 16 bytes a thread to zeros: `set_to_zero(to, n)`, for n accesses.
pub fn set_to_zero(threads: u32) -> Kernel {
    let mut own = Builder::new("set_to_zero", threads, "");
    let to = own.output("to", Type::WIDEST);
    let n = own.number("n", Type::I32);
    let i = thread_of_launch(&mut own, "i", threads);
    let inside = own.less(i, n);
    let zeros = zeros(&mut own);
    own.when(inside, |own| own.store(to, i, zeros));
    own.finish()
}

/// Copies 16 bytes at once, however few threads there are: `copy_all(a, b, n)`, for n accesses.
pub fn copy_all(threads: u32) -> Kernel {
    let mut own = Builder::new("copy_all", threads, "");
    let (a, b) = (own.input("a", Type::WIDEST), own.output("b", Type::WIDEST));
    let n = own.number("n", Type::I32);
    let (first, all) = (thread_number(&mut own, threads), all_threads(&mut own, threads));
    own.each("i", (first, n, Step::By(all)), Unroll::Free, |own, i| {
        let moved = own.load(a, i);
        own.store(b, i, moved);
    });
    own.finish()
}

/// Copies streams, each of so many accesses of 16 bytes, of which a thread makes `per_thread`. What is written is every bit of what is
/// read, combined, so that nothing can be left out: `copy(a0, a1, ..., b0, ...)`.
pub fn copy_streams(name: &str, reads: &[usize], writes: &[usize], threads: u32, per_thread: usize) -> Kernel {
    let mut own = Builder::new(name, threads, "");
    let streams = |own: &mut Builder, letter: char, counts: &[usize], is_written: bool| -> Vec<(ArrayId, ValueId)> {
        let each = counts.iter().enumerate().map(|(number, &count)| {
            let name = format!("{letter}{number}");
            let array = if is_written { own.output(&name, Type::WIDEST) } else { own.input(&name, Type::WIDEST) };
            (array, own.literal(count as i64, Type::I64))
        });
        each.collect()
    };
    let reads = streams(&mut own, 'a', reads, false);
    let writes = streams(&mut own, 'b', writes, true);
    let (first, threads) = first_place(&mut own, per_thread);
    let moved: Vec<_> = (0..per_thread)
        .map(|number| {
            let number = own.literal(number as i64, Type::I64);
            let by = own.mul(number, threads);
            let c = own.add(first, by);
            let c = own.name("c", c);
            let zeros = zeros(&mut own);
            (c, own.variable("x", zeros))
        })
        .collect();
    for &(c, x) in &moved {
        for &(array, count) in &reads {
            let inside = own.less(c, count);
            own.when(inside, |own| {
                let y = own.load(array, c);
                let y = own.name("y", y);
                let before = own.get(x);
                let lanes = (0..4).map(|lane| differing(own, before, y, lane)).collect();
                let both = own.lanes(lanes);
                own.assign(x, both);
            });
        }
    }
    for &(c, x) in &moved {
        for &(array, count) in &writes {
            let inside = own.less(c, count);
            own.when(inside, |own| {
                let x = own.get(x);
                own.store(array, c, x);
            });
        }
    }
    own.finish()
}

/// Whether two pieces of memory are the same: `same(a, b, accesses, a_rest, b_rest, rest, differs)` looks at so many accesses of 16
/// bytes, and at the `rest` of the bytes, which stand behind them; where one differs, `differs` becomes 1.
pub fn same(threads: u32) -> Kernel {
    let mut own = Builder::new("same", threads, "");
    let byte = Type::one(Element::U8);
    let (a, b) = (own.aliased("a", Type::WIDEST, false), own.aliased("b", Type::WIDEST, false));
    let accesses = own.number("accesses", Type::I64);
    let (a_rest, b_rest) = (own.aliased("a_rest", byte, false), own.aliased("b_rest", byte, false));
    let rest = own.number("rest", Type::I64);
    let differs = own.aliased("differs", Type::I32, true);
    let (first, threads) = first_place(&mut own, 1);
    let blocks = coordinate64(&mut own, Coordinate::Blocks);
    let all = own.mul(blocks, threads);
    let all = own.name("threads", all);
    let (zero, one) = (own.int(0), own.int(1));
    own.each("at", (first, accesses, Step::By(all)), Unroll::Free, |own, at| {
        let (x, y) = (own.load(a, at), own.load(b, at));
        let (x, y) = (own.name("x", x), own.name("y", y));
        let bits: Vec<ValueId> = (0..4).map(|lane| differing(own, x, y, lane)).collect();
        let any = bits.into_iter().reduce(|any, bits| own.binary(Binary::BitOr, any, bits)).unwrap_or(zero);
        let is_other = own.compare(Relation::Ne, any, zero);
        own.when(is_other, |own| own.store(differs, zero, one));
    });
    let inside = own.less(first, rest);
    let (x, y) = (own.load(a_rest, first), own.load(b_rest, first));
    let is_other = own.compare(Relation::Ne, x, y);
    let is_other = own.and(inside, is_other);
    own.when(is_other, |own| own.store(differs, zero, one));
    own.finish()
}

/// Numbers that a block of [`fold`] makes one of.
pub const FOLDED: usize = 4 * FOLDING as usize;

/// Threads of a block of [`fold`], each of which begins with four numbers.
pub const FOLDING: u32 = 256;

/// Threads of a warp.
const WARP: u32 = 32;

/// Makes one number of each [`FOLDED`], pairwise: a number whose neighbour does not exist stays as it is. `fold(numbers, totals, n)`
/// has a block for each total.
pub fn fold(name: &str, fold: Fold, real: Element) -> Kernel {
    let mut own = Builder::new(name, FOLDING, "");
    let real = Type::one(real);
    let (numbers, totals) = (own.input("numbers", real), own.output("totals", real));
    let n = own.number("n", Type::I32);
    let of_warps = own.shared("of_warps", real, (FOLDING / WARP) as usize);
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| own.int(number));
    let [warps, warp_size] = [FOLDING / WARP, WARP].map(|number| own.int(i64::from(number)));
    let (thread, block) = (own.coordinate(Coordinate::Thread, Axis::X), own.coordinate(Coordinate::Block, Axis::X));
    let warp = own.binary(Binary::Div, thread, warp_size);
    let warp = own.name("warp", warp);
    let lane = own.binary(Binary::Rem, thread, warp_size);
    let lane = own.name("lane", lane);
    let count = own.int(FOLDED as i64);
    let first_of_block = own.mul(block, count);
    let first_of_block = own.name("first_of_block", first_of_block);
    let before = own.mul(four, thread);
    let first = own.add(first_of_block, before);
    let first = own.name("first", first);
    let zero = own.literal(0, real);
    let total = own.variable("total", zero);
    // What stands so many places further on is taken into a variable, if there is anything.
    let take = |own: &mut Builder, into, by: ValueId| {
        let at = own.add(first, by);
        let inside = own.less(at, n);
        own.when(inside, |own| {
            let number = own.load(numbers, at);
            let number = own.name("number", number);
            join(own, fold, into, number);
        });
    };
    let is_there = own.less(first, n);
    own.when(is_there, |own| {
        let number = own.load(numbers, first);
        own.assign(total, number);
        take(own, total, one);
        let at = own.add(first, two);
        let inside = own.less(at, n);
        own.when(inside, |own| {
            let number = own.load(numbers, at);
            let next = own.variable("next", number);
            take(own, next, three);
            let next = own.get(next);
            join(own, fold, total, next);
        });
    });
    own.each("by", (one, warp_size, Step::Doubled), Unroll::Free, |own, by| {
        let mine = own.get(total);
        let next = own.shuffle_down(mine, by);
        let next = own.name("next", next);
        let before = own.mul(four, by);
        let at = own.add(first, before);
        let inside = own.less(at, n);
        own.when(inside, |own| join(own, fold, total, next));
    });
    let nought = own.int(0);
    let is_first = own.compare(Relation::Eq, lane, nought);
    own.when(is_first, |own| {
        let total = own.get(total);
        own.store(of_warps, warp, total);
    });
    own.barrier();
    let is_first = own.compare(Relation::Eq, thread, nought);
    own.when(is_first, |own| {
        own.each("by", (one, warps, Step::Doubled), Unroll::Free, |own, by| {
            let end = own.binary(Binary::Sub, warps, by);
            let step = own.mul(two, by);
            own.each("warp_of_two", (nought, end, Step::By(step)), Unroll::Free, |own, mine| {
                let of_warp = own.int(4 * i64::from(WARP));
                let other = own.add(mine, by);
                let before = own.mul(of_warp, other);
                let at = own.add(first_of_block, before);
                let inside = own.less(at, n);
                own.when(inside, |own| {
                    let (a, b) = (own.load(of_warps, mine), own.load(of_warps, other));
                    let (a, b) = (own.name("a", a), own.name("b", b));
                    let both = joined(own, fold, a, b);
                    own.store(of_warps, mine, both);
                });
            });
        });
        let total = own.load(of_warps, nought);
        own.store(totals, block, total);
    });
    own.finish()
}

/// Fills the cells around a field: `columns` and `levels` are pairs of where a value goes and where it comes from; a source less than 0
/// is a number, -1 the first of six: of i, j and k at the low side and at the high one.
pub fn fill_halo(name: &str, threads: u32, element: Element) -> Kernel {
    let mut own = Builder::new(
        name,
        threads,
        "Fills the cells around a field: columns and levels are pairs of where a value goes and where it comes from.",
    );
    let kind = Type::one(element);
    let field = own.aliased("field", kind, true);
    let plane = own.number("plane", Type::I64);
    let columns = own.aliased("columns", Type::I32, false);
    let column_count = own.number("column_count", Type::I32);
    let levels = own.aliased("levels", Type::I32, false);
    let level_count = own.number("level_count", Type::I32);
    let beyond = ["i_low", "i_high", "j_low", "j_high", "k_low", "k_high"].map(|name| own.number(name, kind));
    let column = thread_of_launch(&mut own, "column", threads);
    let outside = own.compare(Relation::Ge, column, column_count);
    own.leave_if(outside);
    let [zero, one, two] = [0, 1, 2].map(|number| own.int(number));
    let pair = |own: &mut Builder, table: ArrayId, number: ValueId, part: ValueId| {
        let at = own.mul(two, number);
        let at = own.add(at, part);
        own.load(table, at)
    };
    let (to, from) = (pair(&mut own, columns, column, zero), pair(&mut own, columns, column, one));
    let (to, from) = (own.name("to", to), own.name("from", from));
    let (first, all) = (own.coordinate(Coordinate::Block, Axis::Y), own.coordinate(Coordinate::Blocks, Axis::Y));
    own.each("level", (first, level_count, Step::By(all)), Unroll::Free, |own, level| {
        let source = pair(own, levels, level, one);
        let source = own.name("source", source);
        let is_number = own.less(from, zero);
        let number = own.choose(is_number, from, source);
        let number = own.name("number", number);
        let place = |own: &mut Builder, column: ValueId, level: ValueId| {
            let (column, level) = (own.convert(column, Type::I64), own.convert(level, Type::I64));
            let above = own.mul(level, plane);
            own.add(column, above)
        };
        let read = place(own, from, source);
        let inner = own.load(field, read);
        let [.., mut value] = beyond;
        for (place, &own_number) in beyond.iter().enumerate().rev().skip(1) {
            let code = own.int(-1 - place as i64);
            let is_own = own.compare(Relation::Eq, number, code);
            value = own.choose(is_own, own_number, value);
        }
        let is_cell = own.compare(Relation::Ge, number, zero);
        let value = own.choose(is_cell, inner, value);
        let value = own.name("value", value);
        let level = pair(own, levels, level, zero);
        let written = place(own, to, level);
        own.store(field, written, value);
    });
    own.finish()
}

/// The number of a thread of a launch whose blocks have so many, by name.
fn thread_of_launch(own: &mut Builder, name: &str, threads: u32) -> ValueId {
    let number = thread_number(own, threads);
    own.name(name, number)
}

fn thread_number(own: &mut Builder, threads: u32) -> ValueId {
    let (block, thread) = (own.coordinate(Coordinate::Block, Axis::X), own.coordinate(Coordinate::Thread, Axis::X));
    let threads = own.int(i64::from(threads));
    let before = own.mul(block, threads);
    own.add(before, thread)
}

fn all_threads(own: &mut Builder, threads: u32) -> ValueId {
    let (blocks, threads) = (own.coordinate(Coordinate::Blocks, Axis::X), own.int(i64::from(threads)));
    own.mul(blocks, threads)
}

/// The first of the places of a thread that has so many, and how far they are apart: by as many threads as a block of the launch has,
/// not as it may have.
fn first_place(own: &mut Builder, per_thread: usize) -> (ValueId, ValueId) {
    use Coordinate::{Block, Thread, Threads};
    let [block, threads, thread] = [Block, Threads, Thread].map(|coordinate| coordinate64(own, coordinate));
    let each = own.literal(per_thread as i64, Type::I64);
    let before = own.mul(block, each);
    let before = own.mul(before, threads);
    let first = own.add(before, thread);
    (own.name("first", first), threads)
}

/// A coordinate along x, with 64 bits.
fn coordinate64(own: &mut Builder, coordinate: Coordinate) -> ValueId {
    let number = own.coordinate(coordinate, Axis::X);
    own.convert(number, Type::I64)
}

fn zeros(own: &mut Builder) -> ValueId {
    let zero = own.int(0);
    own.lanes(vec![zero; 4])
}

/// The bits in which a number of one vector differs from that of another.
fn differing(own: &mut Builder, a: ValueId, b: ValueId, lane: u8) -> ValueId {
    let (a, b) = (own.lane(a, lane), own.lane(b, lane));
    own.binary(Binary::Xor, a, b)
}

/// Two numbers as one. Of a NaN and anything else, NaN.
fn joined(own: &mut Builder, fold: Fold, a: ValueId, b: ValueId) -> ValueId {
    let relation = match fold {
        Fold::Sum => return own.add(a, b),
        Fold::Min => Relation::Lt,
        Fold::Max => Relation::Gt,
    };
    let (is_first, is_nan) = (own.compare(relation, a, b), own.compare(Relation::Ne, a, a));
    let is_first = own.or(is_first, is_nan);
    own.choose(is_first, a, b)
}

/// Takes a number into a variable.
fn join(own: &mut Builder, fold: Fold, into: super::VariableId, number: ValueId) {
    let mine = own.get(into);
    let both = joined(own, fold, mine, number);
    own.assign(into, both);
}

#[cfg(test)]
mod tests {
    use super::super::verify::verify;
    use super::*;

    fn all() -> Vec<Kernel> {
        let mut all = vec![set_to_zero(256), copy_all(512), same(256)];
        all.extend((1..4).map(|per_thread| copy_streams("copy", &[7, 9], &[7, 3], 1024, per_thread)));
        for real in [Element::F32, Element::F64] {
            all.extend([Fold::Sum, Fold::Min, Fold::Max].map(|own| fold("fold", own, real)));
        }
        all.extend([Element::F32, Element::F64, Element::I32, Element::U8].map(|own| fill_halo("fill", 128, own)));
        all
    }

    #[test]
    fn each_keeps_to_the_rules() {
        for kernel in all() {
            verify(&kernel).unwrap_or_else(|refusal| panic!("{}\n{kernel}", refusal.message));
        }
    }

    #[test]
    fn a_kernel_reads_as_what_it_does() {
        let expected = "\
kernel set_to_zero of 256 threads
    output to: i32x4
    number n: i32
    let i: i32 = add(mul(block.x, 256), thread.x)
    if lt(i, n)
        to[i] = lanes(0, 0, 0, 0)
";
        assert_eq!(set_to_zero(256).to_string(), expected);
    }
}
