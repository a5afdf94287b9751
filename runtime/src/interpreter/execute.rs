//! Runs a program on rows.

use super::Job;
use super::functions::{self, each};
use super::plan::Window;
use super::program::{Instruction, Program, Source, Way};
use crate::Data;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::scalar::{Real, Value, compare, int_binary, int_call};
use stencilc_compiler::ir::{Binary, Handle, Kind, Node, Precision, Relation};

/// Some rows of a level.
pub(super) struct Strip<'a> {
    pub level: usize,
    pub rows: Range<usize>,
    /// The parts of the outputs that the rows go to: one for each store, or none.
    pub outputs: Vec<Part<'a>>,
    /// What each open choice was: one for each, or none.
    pub counts: Vec<Count>,
}

/// How often an open choice was false and true.
#[derive(Clone, Default)]
pub(super) struct Count {
    pub times: [u64; 2],
    /// Where it counts, by column; if nothing is said, on all cells of the row.
    pub columns: Option<Arc<[bool]>>,
}

impl Count {
    fn add(&mut self, truths: &[u8]) {
        let counts = |column: usize| self.columns.as_ref().is_none_or(|columns| columns[column]);
        let mut times = [0; 2];
        for (_, &truth) in truths.iter().enumerate().filter(|&(column, _)| counts(column)) {
            times[usize::from(truth != 0)] += 1;
        }
        self.times = [self.times[0] + times[0], self.times[1] + times[1]];
    }
}

/// A part of an array.
pub(super) enum Part<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I32(&'a mut [i32]),
    Bool(&'a mut [u8]),
}

impl<'a> Part<'a> {
    /// The parts of an array at some ranges, which ascend and do not overlap.
    pub fn split(data: &'a mut Data, ranges: &[Range<usize>]) -> Vec<Part<'a>> {
        match data {
            Data::F32(data) => split(data, ranges).map(Part::F32).collect(),
            Data::F64(data) => split(data, ranges).map(Part::F64).collect(),
            Data::I32(data) => split(data, ranges).map(Part::I32).collect(),
            Data::Bool(data) => split(data, ranges).map(Part::Bool).collect(),
        }
    }
}

fn split<'a, T>(mut rest: &'a mut [T], ranges: &[Range<usize>]) -> impl Iterator<Item = &'a mut [T]> {
    let mut at = 0;
    ranges.iter().map(move |range| {
        let (part, after) = take(&mut rest)[range.start - at..].split_at_mut(range.len());
        (rest, at) = (after, range.end);
        part
    })
}

/// What rows are made of.
pub(super) trait Element: Copy {
    /// The array's elements; none if they are of another type.
    fn of(data: &Data) -> &[Self];
    /// From a number of the same kind.
    fn from_value(value: Value) -> Self;
}

macro_rules! element {
    ($type:ty, $case:ident, $from:expr) => {
        impl Element for $type {
            #[inline(always)]
            fn of(data: &Data) -> &[Self] {
                if let Data::$case(data) = data { data } else { &[] }
            }
            #[inline(always)]
            fn from_value(value: Value) -> Self {
                $from(value)
            }
        }
    };
}
element!(f32, F32, |value: Value| value.real() as f32);
element!(f64, F64, Value::real);
element!(i32, I32, Value::int);
element!(u8, Bool, |value: Value| value.truth().into());

/// An operand: one number for each element, or one for all.
pub(super) enum Operand<'a, T> {
    Each(&'a [T]),
    All(T),
}

impl<T: Copy> Operand<'_, T> {
    pub fn at(&self, element: usize) -> T {
        match self {
            Operand::Each(row) => row[element],
            Operand::All(x) => *x,
        }
    }
}

/// `cases!(op in Binary { Add, Sub } => ...)` makes `op` a constant in each case.
macro_rules! cases {
    ($value:ident in $type:ident { $($case:ident),+ } => $body:expr) => {
        match $value { $($type::$case => { let $value = $type::$case; $body })+ }
    };
}

/// Rows of every kind.
pub(super) struct Slots<R> {
    pub real: Vec<Vec<R>>,
    pub int: Vec<Vec<i32>>,
    pub truth: Vec<Vec<u8>>,
}

/// A row of cells: `len` of them from (i, j) on, which may lie outside the grid if what is read does not.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    /// The arrays that operands may be in, and their extents.
    pub inputs: &'a [Option<&'a Data>],
    pub grid: Grid,
    pub i: i32,
    pub j: i32,
    pub len: usize,
}

impl<'a> Cells<'a> {
    #[inline(always)]
    pub fn operand<T: Element>(self, rows: &'a [Vec<T>], source: Source) -> Operand<'a, T> {
        let Grid { ni, nj, .. } = self.grid;
        let (row, start) = match source {
            Source::Value(value) => return Operand::All(T::from_value(value)),
            Source::Slot { slot, i, j } => (&rows[slot.at(self.j + j)][..], i as usize),
            Source::Field { field, level, i, j } => {
                let data = self.inputs[field.index()].map_or(&[][..], T::of);
                (data, (level * nj + (self.j + j) as usize) * ni + (self.i + i) as usize)
            }
        };
        Operand::Each(&row[start..start + self.len])
    }
}

/// Computes a strip in pieces of at most `chunk` cells along i.
pub(super) fn execute<R: Real + Element>(job: &Job, program: &Program, strip: &mut Strip, chunk: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        #[target_feature(enable = "avx2,fma")]
        fn wide<R: Real + Element>(job: &Job, program: &Program, strip: &mut Strip, chunk: usize) {
            sweep::<R>(job, program, strip, chunk);
        }
        // SAFETY: the processor has both features.
        return unsafe { wide::<R>(job, program, strip, chunk) };
    }
    sweep::<R>(job, program, strip, chunk);
}

// All that computes is inlined into `execute`, to be compiled with the features chosen there: without them a fused
// multiply-add is a function call.
#[inline(always)]
fn sweep<R: Real + Element>(job: &Job, program: &Program, strip: &mut Strip, chunk: usize) {
    let columns = job.region.i.clone();
    let chunks = columns.len().div_ceil(chunk);
    let step = columns.len().div_ceil(chunks.max(1)).max(1);
    let largest = |of: fn(&Window) -> [i32; 2]| {
        program.tasks.iter().map(|task| of(&task.window)).map(|[low, high]| high - low).max().unwrap_or(0)
    };
    let (widest, tallest) = (step + largest(|window| window.i) as usize, largest(|window| window.j));
    let [real, int, truth] = program.slots;
    let mut slots = Slots {
        real: vec![vec![R::from_f64(0.0); widest]; real],
        int: vec![vec![0; widest]; int],
        truth: vec![vec![0; widest]; truth],
    };
    let first = strip.rows.start as i32;
    for i in columns.clone().step_by(step) {
        let width = step.min(columns.end - i);
        for row in first - tallest..strip.rows.end as i32 {
            for task in &program.tasks {
                let Window { i: [left, right], j: [low, high], .. } = task.window;
                // The first row that anyone looks at is `first + low`.
                if row + high >= first + low {
                    let len = width + (right - left) as usize;
                    let Job { inputs, grid, .. } = *job;
                    let cells = Cells { inputs, grid, i: i as i32 + left, j: row + high, len };
                    for instruction in &task.instructions {
                        run(job, instruction, cells, &mut slots, strip);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn run<R: Real + Element>(job: &Job, instruction: &Instruction, cells: Cells, slots: &mut Slots<R>, strip: &mut Strip) {
    let Cells { i, j, len, .. } = cells;
    match instruction {
        Instruction::Load { from, into } => {
            let mut row = take(&mut slots.real[into.at(j)]);
            match job.precision {
                Precision::F32 => {
                    let x = cells.operand::<f64>(&[], *from);
                    each!(&mut row[..len], x => R::from_f64(x));
                }
                Precision::F64 => {
                    let x = cells.operand::<f32>(&[], *from);
                    each!(&mut row[..len], x => R::from_f32(x));
                }
            }
            slots.real[into.at(j)] = row;
        }
        Instruction::Gather { from, columns, into } => {
            macro_rules! gather {
                ($rows:ident, $missing:expr) => {{
                    let mut row = take(&mut slots.$rows[into.at(j)]);
                    if let Operand::Each(from) = cells.operand(&slots.$rows, *from) {
                        for (to, &column) in row[..len].iter_mut().zip(&columns[..]) {
                            *to = usize::try_from(column).map_or($missing, |column| from[column]);
                        }
                    }
                    slots.$rows[into.at(j)] = row;
                }};
            }
            match into.kind {
                Kind::Real => gather!(real, R::from_f64(f64::NAN)),
                Kind::Int => gather!(int, 0),
                Kind::Bool => gather!(truth, 0),
            }
        }
        Instruction::ReadMoved { field, level, way, by, into } => {
            let place = job.stencil.fields[*field].place;
            let Grid { ni, nj, nk, .. } = job.grid;
            let plane = if place.horizontal { ni * nj } else { 1 };
            let last = place.levels.count(nk) as i64 - 1;
            let levels = cells.operand(&slots.int, *by);
            // Where the element is of each cell of the row; nowhere at the end of a path that leads to no column.
            let at = |n: usize| -> Option<usize> {
                let column = match way {
                    Way::Nowhere => 0,
                    Way::Offset { i: right, j: down } => (j + down) as usize * ni + (i + right) as usize + n,
                    Way::Columns(columns) => usize::try_from(columns[i as usize + n]).ok()?,
                };
                let level = (i64::from(*level) + i64::from(levels.at(n))).clamp(0, last) as usize;
                Some(level * plane + column)
            };
            let places: Vec<Option<usize>> = (0..len).map(at).collect();
            macro_rules! gather {
                ($rows:ident, $data:expr, $missing:expr, |$x:ident| $value:expr) => {
                    for (to, place) in slots.$rows[into.at(j)].iter_mut().zip(&places) {
                        *to = place.map_or($missing, |place| {
                            let $x = $data[place];
                            $value
                        });
                    }
                };
            }
            match job.inputs[field.index()] {
                Some(Data::F32(data)) => gather!(real, data, R::from_f64(f64::NAN), |x| R::from_f32(x)),
                Some(Data::F64(data)) => gather!(real, data, R::from_f64(f64::NAN), |x| R::from_f64(x)),
                Some(Data::I32(data)) => gather!(int, data, 0, |x| x),
                Some(Data::Bool(data)) => gather!(truth, data, 0, |x| u8::from(x != 0)),
                None => {}
            }
        }
        Instruction::Compute { node, of, operands, into, choice } => {
            if let Some(count) = choice.and_then(|choice| strip.counts.get_mut(choice)) {
                match cells.operand(&slots.truth, operands[0]) {
                    Operand::Each(row) => count.add(row),
                    Operand::All(x) => count.add(&vec![x; len]),
                }
            }
            compute(node, *of, *operands, (into.kind, into.at(j)), cells, slots);
        }
        Instruction::Store { from, output, horizontal } => {
            let start = (j as usize - strip.rows.start) * job.grid.ni + i as usize;
            macro_rules! store {
                ($part:expr, $rows:ident, |$x:ident| $value:expr) => {{
                    let $x = cells.operand(&slots.$rows, *from);
                    match &job.region.cells {
                        Some(columns) if *horizontal => for &column in &columns[..] {
                            let $x = $x.at(column as usize);
                            $part[column as usize] = $value;
                        },
                        _ => {
                            let to = if *horizontal { start..start + len } else { 0..$part.len() };
                            each!(&mut $part[to], $x => $value)
                        }
                    }
                }};
            }
            match strip.outputs.get_mut(*output) {
                Some(Part::F32(part)) => store!(part, real, |x| x.to_f32()),
                Some(Part::F64(part)) => store!(part, real, |x| x.to_f64()),
                Some(Part::I32(part)) => store!(part, int, |x| x),
                Some(Part::Bool(part)) => store!(part, truth, |x| x),
                None => {}
            }
        }
    }
}

/// Computes a node whose first operand is `of` some kind into a slot of some kind.
#[inline(always)]
pub(super) fn compute<R: Real + Element>(
    node: &Node,
    of: Kind,
    [a, b, c]: [Source; 3],
    (kind, slot): (Kind, usize),
    cells: Cells,
    slots: &mut Slots<R>,
) {
    /// `set!(truth; a: real, b: real => a < b)`. The row that is written is taken out of the slots meanwhile.
    macro_rules! set {
        ($into:ident; $($operand:ident: $rows:ident),+ => $value:expr) => {{
            let mut row = take(&mut slots.$into[slot]);
            $(let $operand = cells.operand(&slots.$rows, $operand);)+
            each!(&mut row[..cells.len], $($operand)+ => $value);
            slots.$into[slot] = row;
        }};
    }
    match (node, of) {
        (Node::ToReal(_), _) => set!(real; a: int => R::from_i32(a)),
        (Node::ToSingle(_), _) => set!(real; a: real => R::from_f32(a.to_f32())),
        (Node::Negate(_), Kind::Real) => set!(real; a: real => a.negate()),
        (Node::Negate(_), _) => set!(int; a: int => a.wrapping_neg()),
        (Node::Not(_), _) => set!(truth; a: truth => u8::from(a == 0)),
        (Node::And(..), _) => set!(truth; a: truth, b: truth => a & b),
        (Node::Or(..), _) => set!(truth; a: truth, b: truth => a | b),
        (Node::Binary(op, ..), Kind::Real) => {
            cases!(op in Binary { Add, Sub, Mul, Div, Rem } => set!(real; a: real, b: real => R::binary(op, a, b)))
        }
        (Node::Binary(op, ..), _) => {
            cases!(op in Binary { Add, Sub, Mul, Div, Rem } => set!(int; a: int, b: int => int_binary(op, a, b)))
        }
        (Node::Compare(relation, ..), _) => cases!(relation in Relation { Lt, Le, Gt, Ge, Eq, Ne } => match of {
            Kind::Real => set!(truth; a: real, b: real => u8::from(compare(relation, a, b))),
            Kind::Int => set!(truth; a: int, b: int => u8::from(compare(relation, a, b))),
            Kind::Bool => set!(truth; a: truth, b: truth => u8::from(compare(relation, a, b))),
        }),
        (Node::Call(function, _), Kind::Real) => {
            let mut row = take(&mut slots.real[slot]);
            let operand = |n: usize| cells.operand(&slots.real, [a, b, c][n]);
            functions::call(*function, operand, &mut row[..cells.len]);
            slots.real[slot] = row;
        }
        (Node::Call(function, _), _) => set!(int; a: int, b: int => int_call(*function, a, b)),
        (Node::Choose { .. }, _) => match kind {
            Kind::Real => set!(real; a: truth, b: real, c: real => if a != 0 { b } else { c }),
            Kind::Int => set!(int; a: truth, b: int, c: int => if a != 0 { b } else { c }),
            Kind::Bool => set!(truth; a: truth, b: truth, c: truth => if a != 0 { b } else { c }),
        },
        (Node::Real(_) | Node::Int(_) | Node::Bool(_) | Node::Param(_), _)
        | (
            Node::Level
            | Node::Count(_)
            | Node::Read { .. }
            | Node::Present { .. }
            | Node::InZone(_)
            | Node::Use { .. },
            _,
        ) => {
            unreachable!("leaves are operands")
        }
    }
}
