//! Kernels that no stencil says: what whoever runs kernels needs to have done to memory.

use super::build::{Builder, Computing, Making, Term};
use super::simplify::simplify;
use super::{
    ArrayId, Axis, Binary, Coordinate, Element, Function, Kernel, Operand, Routine, Step, Type, Unroll, ValueId,
    VariableId,
};
use crate::gpu;
use crate::ir::Relation;
use crate::ir::mesh::Fold;
use crate::storage::Along;

/// Sets 16 bytes a thread to zeros: `set_to_zero(to, n)`, for n accesses.
pub fn set_to_zero(threads: u32) -> Kernel {
    let mut own = Builder::new("set_to_zero", threads, "");
    let to = own.output("to", Type::WIDEST);
    let n = own.number("n", Type::I32);
    let i = own.name("i", Term::thread_of_launch(threads));
    let zeros = zeros(&mut own);
    own.when(i.less(n), |own| own.store(to, i, zeros));
    simplify(own.finish())
}

/// Copies 16 bytes at once, however few threads there are: `copy_all(a, b, n)`, for n accesses.
pub fn copy_all(threads: u32) -> Kernel {
    let mut own = Builder::new("copy_all", threads, "");
    let (a, b) = (own.input("a", Type::WIDEST), own.output("b", Type::WIDEST));
    let n = own.number("n", Type::I32);
    let all = own.term(Coordinate::Blocks.along(Axis::X).times(threads));
    own.each("i", (Term::thread_of_launch(threads), n, Step::By(all)), Unroll::Free, |own, i| own.store(b, i, a.at(i)));
    simplify(own.finish())
}

/// Copies streams, each of so many accesses of 16 bytes, of which a thread makes `per_thread`. What is written is every bit of what is
/// read, combined, so that nothing can be left out: `copy(a0, a1, ..., b0, ...)`.
pub fn copy_streams(name: &str, reads: &[usize], writes: &[usize], threads: u32, per_thread: usize) -> Kernel {
    let mut own = Builder::new(name, threads, "");
    let reads = streams(&mut own, 'a', (reads, Type::WIDEST), false);
    let writes = streams(&mut own, 'b', (writes, Type::WIDEST), true);
    let (first, threads) = first_place(&mut own, per_thread);
    let moved = (0..per_thread).map(|number| {
        let c = own.name("c", first.plus(number.times(threads)));
        let zeros = zeros(&mut own);
        (c, own.variable("x", zeros))
    });
    let moved: Vec<_> = moved.collect();
    for &(c, x) in &moved {
        for &(array, count) in &reads {
            own.when(c.less(count), |own| {
                let y = own.name("y", array.at(c));
                let before = own.get(x);
                let lanes = (0..4).map(|lane| differing(own, before, y, lane)).collect();
                let both = own.lanes(lanes);
                own.assign(x, both);
            });
        }
    }
    for &(c, x) in &moved {
        for &(array, count) in &writes {
            own.when(c.less(count), |own| own.store(array, c, x));
        }
    }
    simplify(own.finish())
}

/// The same for CPUs: a thread copies its share of all accesses, one after the other.
pub fn copy_streams_in_rows(name: &str, reads: &[usize], writes: &[usize]) -> Kernel {
    let mut own = Builder::new(name, 1, "");
    // What is moved at once is for compilers to decide.
    let reads = streams(&mut own, 'a', (reads, Type::I32), false);
    let writes = streams(&mut own, 'b', (writes, Type::I32), true);
    let longest = reads.iter().chain(&writes).map(|(_, count)| *count).max().unwrap_or(0);
    let bounds = [0, longest as i64].map(|bound| own.literal(bound, Type::I32));
    let [start, stop] = Along::X.share(&mut own, [1, 1, 1], bounds, "c");
    let one = Step::By(own.int(1));
    own.each("c", (start, stop, one), Unroll::SideBySide, |own, c| {
        let x = own.variable("x", 0.to(Type::I32));
        let within = |own: &mut Builder, count: usize| (count < longest).then(|| own.term(c.less(count)));
        for &(array, count) in &reads {
            let is_there = within(own, count);
            own.when_if(is_there, |own| own.assign(x, Term::from(x).by(Binary::Xor, array.at(c))));
        }
        for &(array, count) in &writes {
            let is_there = within(own, count);
            own.when_if(is_there, |own| own.store(array, c, x));
        }
    });
    simplify(own.finish())
}

/// The arrays of streams of so many accesses of 16 bytes, each with how many elements of a type that is.
fn streams(
    own: &mut Builder,
    letter: char,
    (accesses, element): (&[usize], Type),
    is_written: bool,
) -> Vec<(ArrayId, usize)> {
    let of_access = usize::from(Type::WIDEST.lanes / element.lanes);
    let each = accesses.iter().enumerate().map(|(number, &count)| {
        let name = format!("{letter}{number}");
        let array = if is_written { own.output(&name, element) } else { own.input(&name, element) };
        (array, count * of_access)
    });
    each.collect()
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
    let all = own.name("threads", along_x(Coordinate::Blocks).times(threads));
    own.each("at", (first, accesses, Step::By(all)), Unroll::Free, |own, at| {
        let (x, y) = (own.load(a, at), own.load(b, at));
        let (x, y) = (own.name("x", x), own.name("y", y));
        let bits = (0..4).map(|lane| Term::from(differing(own, x, y, lane)));
        let any = bits.reduce(|any, bits| any.by(Binary::BitOr, bits)).unwrap_or(0.into());
        own.when(any.is(Relation::Ne, 0), |own| own.store(differs, 0, 1));
    });
    let is_other = a_rest.at(first).is(Relation::Ne, b_rest.at(first));
    own.when(first.less(rest).and(is_other), |own| own.store(differs, 0, 1));
    simplify(own.finish())
}

/// Numbers that a block of [`fold`] makes one of.
pub const FOLDED: usize = 4 * FOLDING as usize;

/// Threads of a block of [`fold`], each of which begins with four numbers.
pub const FOLDING: u32 = 256;

/// Threads of a warp.
const WARP: u32 = gpu::WARP as u32;

/// Makes one number of those of a warp's lanes, in the first of them: a lane's first number has its own place, and it begins with so many of n.
fn fold_lanes(own: &mut Builder, fold: Fold, total: VariableId, (first, count, n): (ValueId, i32, ValueId)) {
    own.each("by", (1, WARP, Step::Doubled), Unroll::Free, |own, by| {
        let mine = own.get(total);
        let next = own.shuffle_down(mine, by);
        let next = own.name("next", next);
        own.when(first.plus(count.times(by)).less(n), |own| join(own, fold, total, next));
    });
}

/// Numbers that a warp of [`fold_tiles`] makes one of.
pub const FOLDED_TILE: usize = 2 * WARP as usize;

/// Tiles that a block of [`fold_tiles`] makes one number of each.
pub const TILES_OF_BLOCK: usize = FOLDING as usize / WARP as usize;

/// Makes one number of each [`FOLDED`], pairwise: a number whose neighbour does not exist stays as it is. `fold(numbers, totals, n)`
/// has a block for each total.
pub fn fold(name: &str, fold: Fold, real: Element) -> Kernel {
    let mut own = Builder::new(name, FOLDING, "");
    let real = Type::one(real);
    let (numbers, totals) = (own.input("numbers", real), own.output("totals", real));
    let n = own.number("n", Type::I32);
    let warps = FOLDING / WARP;
    let of_warps = own.shared("of_warps", real, warps as usize);
    let (thread, block) = (own.coordinate(Coordinate::Thread, Axis::X), own.coordinate(Coordinate::Block, Axis::X));
    let warp = own.name("warp", thread.over(WARP));
    let lane = own.name("lane", thread.rem(WARP));
    let first_of_block = own.name("first_of_block", block.times(FOLDED));
    let first = own.name("first", first_of_block.plus(4.times(thread)));
    let total = own.variable("total", 0.to(real));
    // What stands so many places further on is taken into a variable, if there is anything.
    let take = |own: &mut Builder, into: VariableId, by: i32| {
        let at = own.term(first.plus(by));
        own.when(at.less(n), |own| {
            let number = own.name("number", numbers.at(at));
            join(own, fold, into, number);
        });
    };
    own.when(first.less(n), |own| {
        own.assign(total, numbers.at(first));
        take(own, total, 1);
        let at = own.term(first.plus(2));
        own.when(at.less(n), |own| {
            let next = own.variable("next", numbers.at(at));
            take(own, next, 3);
            let next = own.get(next);
            join(own, fold, total, next);
        });
    });
    fold_lanes(&mut own, fold, total, (first, 4, n));
    own.when(lane.is(Relation::Eq, 0), |own| own.store(of_warps, warp, total));
    own.barrier();
    own.when(thread.is(Relation::Eq, 0), |own| {
        own.each("by", (1, warps, Step::Doubled), Unroll::Free, |own, by| {
            let step = Step::By(own.term(2.times(by)));
            own.each("warp_of_two", (0, warps.minus(by), step), Unroll::Free, |own, mine| {
                let other = own.term(mine.plus(by));
                own.when(first_of_block.plus((4 * WARP).times(other)).less(n), |own| {
                    let (a, b) = (own.load(of_warps, mine), own.load(of_warps, other));
                    let (a, b) = (own.name("a", a), own.name("b", b));
                    own.store(of_warps, mine, joined(fold, a, b));
                });
            });
        });
        own.store(totals, block, of_warps.at(0));
    });
    simplify(own.finish())
}

/// The same as [`fold`] for CPUs: blocks of one thread, each of which goes through its numbers from the leaves of the tree to its root.
pub fn fold_in_turns(name: &str, fold: Fold, real: Element) -> Kernel {
    let mut own = Builder::new(name, 1, "");
    let real = Type::one(real);
    let (numbers, totals) = (own.input("numbers", real), own.output("totals", real));
    let n = own.number("n", Type::I32);
    let block = own.coordinate(Coordinate::Block, Axis::X);
    let first = own.name("first", block.times(FOLDED));
    let count = own.variable("count", n.minus(first).at_most(FOLDED as i32));
    let of_pairs = own.local("of_pairs", real, FOLDED / 2);
    // One of two each, and of one that has no neighbour itself.
    let halve = |own: &mut Builder, number: &dyn Fn(&mut Builder, Term) -> ValueId| {
        let before = own.get(count);
        let before = own.name("before", before);
        let pairs = own.name("pairs", before.over(2));
        let one = Step::By(own.int(1));
        own.each("pair", (0, pairs, one), Unroll::Free, |own, pair| {
            let (a, b) = (number(own, 2.times(pair)), number(own, 2.times(pair).plus(1)));
            let (a, b) = (own.name("a", a), own.name("b", b));
            own.store(of_pairs, pair, joined(fold, a, b));
        });
        own.when(before.rem(2).is(Relation::Eq, 1), |own| {
            let last = number(own, 2.times(pairs));
            own.store(of_pairs, pairs, last);
        });
        own.assign(count, before.plus(1).over(2));
    };
    halve(&mut own, &|own, at| own.term(numbers.at(first.plus(at))));
    let one = Step::By(own.int(1));
    own.each("halving", (1, FOLDED.ilog2() as i32, one), Unroll::Free, |own, _| {
        halve(own, &|own, at| own.term(of_pairs.at(at)));
    });
    own.store(totals, block, of_pairs.at(0));
    simplify(own.finish())
}

/// Makes one number of each of some tiles of [`FOLDED_TILE`] numbers, pairwise, as [`fold`] does: `fold_tiles(numbers, totals, tiles, tile_count, n)`,
/// where `tiles` are pairs of where a total goes and where its numbers start. The totals may stand before the numbers in one array of n.
pub fn fold_tiles(name: &str, fold: Fold, real: Element) -> Kernel {
    let mut own = Builder::new(name, FOLDING, "");
    let kind = Type::one(real);
    let (numbers, totals) = (own.aliased("numbers", kind, false), own.aliased("totals", kind, true));
    let tiles = own.aliased("tiles", Type::I32, false);
    let (count, n) = (own.number("tile_count", Type::I32), own.number("n", Type::I32));
    let thread = own.name("thread", Term::thread_of_launch(FOLDING));
    let tile = own.name("tile", thread.over(WARP));
    let lane = own.name("lane", thread.rem(WARP));
    // Of a tile that there is not no number is there.
    let first = own.variable("first", n);
    let is_there = own.name("is_there", tile.less(count));
    own.when(is_there, |own| {
        let start = own.term(tiles.at(2.times(tile).plus(1)));
        own.assign(first, start.plus(2.times(lane)));
    });
    let first = own.get(first);
    let first = own.name("mine", first);
    let total = own.variable("total", 0.to(kind));
    own.when(first.less(n), |own| {
        own.assign(total, numbers.at(first));
        let at = own.term(first.plus(1));
        own.when(at.less(n), |own| {
            let number = own.name("number", numbers.at(at));
            join(own, fold, total, number);
        });
    });
    fold_lanes(&mut own, fold, total, (first, 2, n));
    own.when(is_there.and(lane.is(Relation::Eq, 0)), |own| {
        let place = own.term(tiles.at(2.times(tile)));
        own.store(totals, place, total);
    });
    simplify(own.finish())
}

/// Fills the cells around a field: `columns` and `levels` are pairs of where a value goes and where it comes from; a source less than 0
/// is a number, -1 the first of six: of i, j and k at the low side and at the high one. Where some values are `signed`, those that
/// change their sign go to -1 less the place; of a number that lies in a column, the column alone says so.
pub fn fill_halo(name: &str, threads: u32, element: Element, signed: bool) -> Kernel {
    let mut own = Builder::new(
        name,
        threads,
        "Fills the cells around a field: columns and levels are pairs of where a value goes and where it comes from.",
    );
    let around = Around::new(&mut own, element);
    let column = own.name("column", Term::thread_of_launch(threads));
    own.leave_if(column.is(Relation::Ge, around.column_count));
    let pair = around.pair(&mut own, column);
    around.fill(&mut own, (element, signed), pair, (around.field, around.plane));
    simplify(own.finish())
}

/// The same of a part of a field, beside which others have what lies beyond some edges: the first columns come from the part before, and
/// those after them from the part behind. It waits until both parts are computed, on whatever GPU they are.
pub fn exchange_halo(name: &str, threads: u32, element: Element, signed: bool) -> Kernel {
    let mut own = Builder::new(
        name,
        threads,
        "Fills the cells around a part of a field: columns and levels are pairs of where a value goes and where it comes from. The first \
         columns come from the part before, and those after them from the part behind.",
    );
    let around = Around::new(&mut own, element);
    let kind = Type::one(element);
    let [(before, before_plane, before_count), (behind, behind_plane, behind_count)] =
        ["before", "behind"].map(|name| {
            let field = own.aliased(name, kind, false);
            let plane = own.number(&format!("{name}_plane"), Type::I64);
            (field, plane, own.number(&format!("{name}_count"), Type::I32))
        });
    let meeting = Meeting::new(&mut own);
    let first = own.name("first", Coordinate::Block.along(Axis::X).times(threads));
    let brought = own.name("brought", before_count.plus(behind_count));
    let column = own.name("column", first.plus(Coordinate::Thread.along(Axis::X)));
    // The table is looked at while others are waited for: of its last column where there is none.
    let known = around.column_count.minus(1).at_most(column);
    let known = own.name("known", known.by(Binary::Max, 0));
    let pair = around.pair(&mut own, known);
    let waits = own.term(first.less(brought));
    meeting.perform(&mut own, waits);
    own.leave_if(column.is(Relation::Ge, around.column_count));
    let [is_before, is_brought] = [before_count, brought].map(|end| own.term(column.less(end)));
    let other = own.either("other", is_brought, [behind, around.field], false);
    let source = own.either("source_field", is_before, [before, other], false);
    let plane = is_before.picks(before_plane, is_brought.picks(behind_plane, around.plane));
    let plane = own.name("source_plane", plane);
    around.fill(&mut own, (element, signed), pair, (source, plane));
    simplify(own.finish())
}

/// Meets other GPUs, and does nothing else.
pub fn meet_peers(name: &str) -> Kernel {
    let doc = "Tells other GPUs that all is done that was launched before, and waits until they have told the same.";
    let mut own = Builder::new(name, gpu::WARP as u32, doc);
    let meeting = Meeting::new(&mut own);
    let waits = own.term(0.is(Relation::Lt, meeting.count));
    meeting.perform(&mut own, waits);
    own.finish()
}

/// What kernels take that meet other GPUs.
struct Meeting {
    turns: ArrayId,
    others: ArrayId,
    count: ValueId,
}

impl Meeting {
    fn new(own: &mut Builder) -> Self {
        Self {
            turns: own.aliased("turns", Type::U32, true),
            others: own.aliased("others", Type::I64, false),
            count: own.number("others_count", Type::I32),
        }
    }

    /// Meets them, and waits for them where a truth holds.
    fn perform(&self, own: &mut Builder, waits: ValueId) {
        let zero = own.int(0);
        let mut operands: Vec<Operand> = [self.turns, self.others].map(|array| Operand::Place(array, zero)).into();
        operands.extend([self.count, waits].map(Operand::Value));
        own.perform(Routine::PeersMeet, operands);
    }
}

/// What kernels take that fill the cells around a field.
struct Around {
    field: ArrayId,
    /// The distance from a level to the next.
    plane: ValueId,
    columns: ArrayId,
    column_count: ValueId,
    levels: ArrayId,
    level_count: ValueId,
    /// Numbers that lie beyond edges.
    beyond: [ValueId; 6],
}

impl Around {
    fn new(own: &mut Builder, element: Element) -> Self {
        let kind = Type::one(element);
        Self {
            field: own.aliased("field", kind, true),
            plane: own.number("plane", Type::I64),
            columns: own.aliased("columns", Type::I32, false),
            column_count: own.number("column_count", Type::I32),
            levels: own.aliased("levels", Type::I32, false),
            level_count: own.number("level_count", Type::I32),
            beyond: ["i_low", "i_high", "j_low", "j_high", "k_low", "k_high"].map(|name| own.number(name, kind)),
        }
    }

    /// Where the values of a column go, and where they come from.
    fn pair(&self, own: &mut Builder, column: ValueId) -> [ValueId; 2] {
        let [to, from] = [0, 1].map(|part| own.term(self.columns.at(2.times(column).plus(part))));
        [own.name("to", to), own.name("from", from)]
    }

    /// Fills a column, from a field whose levels are so far apart.
    fn fill(
        &self,
        own: &mut Builder,
        (element, signed): (Element, bool),
        [to, from]: [ValueId; 2],
        (source_field, source_plane): (ArrayId, ValueId),
    ) {
        let &Self { field, plane, levels, level_count, beyond, .. } = self;
        let pair = |number: ValueId, part: i32| levels.at(2.times(number).plus(part));
        let unsigned = |place: ValueId| place.less(0).picks(Term::from(-1).minus(place), place);
        let column_to = if signed { own.name("column_to", unsigned(to)) } else { to };
        let (first, all) = (Coordinate::Block.along(Axis::Y), own.coordinate(Coordinate::Blocks, Axis::Y));
        own.each("level", (first, level_count, Step::By(all)), Unroll::Free, |own, level| {
            let source = own.name("source", pair(level, 1));
            let number = own.name("number", from.less(0).picks(from, source));
            let place = |column: ValueId, level: Term, plane: ValueId| {
                column.to(Type::I64).plus(level.to(Type::I64).times(plane))
            };
            let inner = source_field.at(place(from, source.into(), source_plane));
            let [.., last] = beyond;
            let other = beyond.iter().enumerate().rev().skip(1).fold(last.into(), |others: Term, (place, &own)| {
                number.is(Relation::Eq, -1 - place as i64).picks(own, others)
            });
            let value = own.name("value", number.is(Relation::Ge, 0).picks(inner, other));
            if !signed {
                return own.store(field, place(to, pair(level, 0), plane), value);
            }
            let level_to = own.name("level_to", pair(level, 0));
            let signs = own.name("signs", from.less(0).picks(to, to.by(Binary::Xor, level_to)));
            let negated = match element {
                // The least whole number stays as it is.
                Element::I32 => {
                    let zero = own.int(0);
                    own.call(Function::WrappingSub, vec![zero, value], Type::one(element))
                }
                _ => own.negate(value),
            };
            own.store(field, place(column_to, unsigned(level_to), plane), signs.less(0).picks(negated, value));
        });
    }
}

/// Copies columns of a field from another one of it, whose columns and levels lie elsewhere: `columns` are pairs of where each goes and where
/// it comes from.
pub fn bring_columns(name: &str, threads: u32, element: Element) -> Kernel {
    let mut own = Builder::new(
        name,
        threads,
        "Brings columns of a neighbour: columns are pairs of where each goes and where it comes from.",
    );
    let kind = Type::one(element);
    let field = own.aliased("field", kind, true);
    let plane = own.number("plane", Type::I64);
    let other = own.aliased("other", kind, false);
    let other_plane = own.number("other_plane", Type::I64);
    let columns = own.aliased("columns", Type::I32, false);
    let column_count = own.number("column_count", Type::I32);
    let level_count = own.number("level_count", Type::I32);
    let column = own.name("column", Term::thread_of_launch(threads));
    own.leave_if(column.is(Relation::Ge, column_count));
    let [to, from] = [("to", 0), ("from", 1)].map(|(wish, part)| {
        let place = own.term(columns.at(2.times(column).plus(part)));
        own.name(wish, place)
    });
    let (first, all) = (Coordinate::Block.along(Axis::Y), own.coordinate(Coordinate::Blocks, Axis::Y));
    own.each("level", (first, level_count, Step::By(all)), Unroll::Free, |own, level| {
        let place = |column: ValueId, plane: ValueId| column.to(Type::I64).plus(level.to(Type::I64).times(plane));
        let value = own.name("value", other.at(place(from, other_plane)));
        own.store(field, place(to, plane), value);
    });
    simplify(own.finish())
}

/// The first of the places of a thread that has so many, and how far they are apart: by as many threads as a block of the launch has,
/// not as it may have.
fn first_place(own: &mut Builder, per_thread: usize) -> (ValueId, ValueId) {
    let threads = own.term(along_x(Coordinate::Threads));
    let before = along_x(Coordinate::Block).times(per_thread).times(threads);
    (own.name("first", before.plus(along_x(Coordinate::Thread))), threads)
}

/// A coordinate along x, with 64 bits.
fn along_x(coordinate: Coordinate) -> Term {
    coordinate.along(Axis::X).to(Type::I64)
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
fn joined(fold: Fold, a: ValueId, b: ValueId) -> Term {
    let relation = match fold {
        Fold::Sum => return a.plus(b),
        Fold::Min => Relation::Lt,
        Fold::Max => Relation::Gt,
    };
    a.is(relation, b).or(a.is(Relation::Ne, a)).picks(a, b)
}

/// Takes a number into a variable.
fn join(own: &mut Builder, fold: Fold, into: VariableId, number: ValueId) {
    let mine = own.get(into);
    own.assign(into, joined(fold, mine, number));
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
            all.extend([Fold::Sum, Fold::Min, Fold::Max].map(|own| fold_in_turns("fold", own, real)));
        }
        all.extend(
            [Element::F32, Element::F64, Element::I32, Element::U8].map(|own| fill_halo("fill", 128, own, false)),
        );
        all.extend([Element::F32, Element::F64, Element::I32].map(|own| fill_halo("fill", 128, own, true)));
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
