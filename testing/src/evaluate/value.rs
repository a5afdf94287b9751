//! Values over all cells of a grid, and which of them may be looked at.

use super::arithmetic::Arithmetic;
use super::order::{Written, joined};
use super::real::Real;
use std::rc::Rc;
use stencilc_compiler::grid::{Adjacency, Grid};

/// The cells of every value: those of the grid, and some around it. A value may be asked for there, on the way to a cell
/// that is inside, and `k` means something there.
#[derive(Clone, Copy, Debug)]
pub struct Domain<'a> {
    pub grid: Grid,
    /// Which cells are neighbours, where they stand in no rows: they are one row then, without margins.
    pub adjacency: Option<&'a Adjacency>,
    /// Cells on either side along i, j and k.
    pub margin: [usize; 3],
}

impl Domain<'_> {
    /// Cells along i, j and k, the margins included.
    pub fn extents(self) -> [usize; 3] {
        let Grid { ni, nj, nk, .. } = self.grid;
        let [mi, mj, mk] = self.margin;
        [ni + 2 * mi, nj + 2 * mj, nk + 2 * mk]
    }

    /// Columns, the margins included.
    pub fn columns(self) -> usize {
        let [ni, nj, _] = self.extents();
        ni * nj
    }

    /// Levels, the margins included.
    pub fn levels(self) -> usize {
        self.extents()[2]
    }

    /// One array of one value a cell, given its indices in the grid.
    pub fn cells<T>(self, value: impl Fn(i64, i64, i64) -> T) -> Rc<[T]> {
        let [ni, nj, nk] = self.extents();
        let [mi, mj, mk] = self.margin.map(|margin| margin as i64);
        let (mut all, value) = (Vec::with_capacity(ni * nj * nk), &value);
        for k in 0..nk as i64 {
            for j in 0..nj as i64 {
                all.extend((0..ni as i64).map(|i| value(i - mi, j - mj, k - mk)));
            }
        }
        all.into()
    }

    /// An array with the same value in every cell.
    pub fn all<T: Copy>(self, value: T) -> Rc<[T]> {
        vec![value; self.columns() * self.levels()].into()
    }

    /// Where a cell of the grid is in an array.
    pub fn index(self, i: usize, j: usize, k: usize) -> usize {
        let ([ni, nj, _], [mi, mj, mk]) = (self.extents(), self.margin);
        ((k + mk) * nj + j + mj) * ni + i + mi
    }

    /// Of each column the one that is (i, j) away, if there is one: the steps along i are gone before those along j.
    fn away(self, by: [i64; 3]) -> Vec<Option<usize>> {
        let [ni, nj, _] = self.extents();
        let Some(adjacency) = self.adjacency else {
            let along =
                |at: usize, by: i64, count: usize| usize::try_from(at as i64 + by).ok().filter(|&at| at < count);
            let of = |(j, i): (usize, usize)| Some(along(j, by[1], nj)? * ni + along(i, by[0], ni)?);
            return (0..ni * nj).map(|column| of((column / ni, column % ni))).collect();
        };
        let [left, right, top, bottom] = adjacency.neighbours();
        let steps = [(left, -by[0]), (right, by[0]), (top, -by[1]), (bottom, by[1])];
        let walk = |cell: usize| {
            let lists = steps.iter().flat_map(|&(list, count)| (0..count).map(move |_| list));
            lists.into_iter().try_fold(cell, |cell, list| usize::try_from(list[cell]).ok())
        };
        (0..ni).map(walk).collect()
    }

    /// An array whose cells are those that are (i, j, k) away; where there is no such column the cell's own, and beyond the
    /// levels the last there is. Nobody looks there: what is beyond the margins is not taken, and masks tell the rest.
    fn shifted<T: Copy>(self, cells: &[T], by: [i64; 3]) -> Rc<[T]> {
        let (away, count) = (self.away(by), self.levels() as i64);
        let mut all = Vec::with_capacity(cells.len());
        for k in 0..count {
            let level = (k + by[2]).clamp(0, count - 1) as usize;
            let own = away.iter().enumerate().map(|(column, to)| cells[level * away.len() + to.unwrap_or(column)]);
            all.extend(own);
        }
        all.into()
    }
}

/// How real numbers are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// As what they meet: they are written.
    Any,
    /// To single precision.
    Single,
    /// To the precision of the rest.
    Real,
}

/// The numbers of a value, one a cell.
#[derive(Clone, Debug)]
pub enum Cells<R> {
    Real(Rc<[R]>),
    Int(Rc<[i32]>),
    Bool(Rc<[bool]>),
}

/// Where something may be looked at; nothing if it may be everywhere.
pub type Mask = Option<Rc<[bool]>>;

/// A value at every cell.
#[derive(Clone, Debug)]
pub struct Value<R> {
    pub cells: Cells<R>,
    /// How it is rounded, if it is real.
    pub rounding: Rounding,
    /// Of each column whether all that is read lies in the grid; nothing if no column is read.
    pub columns: Mask,
    /// Of each level the same; nothing if no level is read.
    pub levels: Mask,
    /// Of each level what a condition is known to be, where that is not known as `known` says.
    pub decided: Option<Rc<[Option<bool>]>>,
    /// Whether it is made of `k`, `nk`, numbers, constants, parameters and names of these.
    pub known: bool,
    /// Whether it is made of numbers and constants.
    pub constant: bool,
    /// If it is written as a product: of what.
    pub factors: Option<Rc<(Value<R>, Value<R>)>>,
    /// Its lowest and highest level that it reads, counted from the cell's; nothing of what reads none.
    pub range: Option<[i64; 2]>,
    /// How it was written, where sums are put in order.
    pub written: Option<Rc<Written<R>>>,
    /// How far away, along i, j and k and to either side, the cells are that it depends on.
    pub reach: [i64; 3],
}

/// One value, or several.
#[derive(Clone, Debug)]
pub enum Parts<R> {
    One(Value<R>),
    Many(Vec<Value<R>>),
}

impl<R: Real> Parts<R> {
    /// Each part changed.
    pub fn map(self, change: impl Fn(Value<R>) -> Value<R>) -> Parts<R> {
        match self {
            Parts::One(value) => Parts::One(change(value)),
            Parts::Many(values) => Parts::Many(values.into_iter().map(change).collect()),
        }
    }

    /// With a name: nothing of how it was written is left.
    pub fn named(self, own: Arithmetic<'_>) -> Parts<R> {
        self.map(|value| Value { factors: None, decided: None, ..own.settled(value) })
    }

    /// The value there, `by` cells away.
    pub fn shifted(self, domain: Domain<'_>, by: [i64; 3]) -> Parts<R> {
        self.map(|value| value.shifted(domain, by))
    }
}

/// Both masks; a value that reads nothing is as good as one whose reads all lie inside.
pub fn both(a: &Mask, b: &Mask) -> Mask {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.iter().zip(b.iter()).map(|(&a, &b)| a && b).collect()),
        (one, other) => one.as_ref().or(other.as_ref()).cloned(),
    }
}

impl<R: Real> Value<R> {
    /// A value that reads nothing.
    pub fn plain(cells: Cells<R>, constant: bool) -> Value<R> {
        let (columns, levels, decided, factors) = (None, None, None, None);
        // Whole numbers take on whatever they meet.
        let rounding = if constant || !matches!(cells, Cells::Real(_)) { Rounding::Any } else { Rounding::Real };
        Value {
            cells,
            rounding,
            columns,
            levels,
            decided,
            known: true,
            constant,
            factors,
            range: None,
            written: None,
            reach: [0; 3],
        }
    }

    /// A value made of others, all of which are always looked at.
    pub fn made_of(cells: Cells<R>, of: &[&Value<R>]) -> Value<R> {
        let mut value = Value::plain(cells, true);
        if of.iter().any(|part| matches!(part.cells, Cells::Real(_)) && part.rounding == Rounding::Real) {
            value.rounding = Rounding::Real;
        }
        for part in of {
            value.columns = both(&value.columns, &part.columns);
            value.levels = both(&value.levels, &part.levels);
            value.range = joined(value.range, part.range);
            value.known &= part.known;
            value.constant &= part.constant;
            for axis in 0..3 {
                value.reach[axis] = value.reach[axis].max(part.reach[axis]);
            }
        }
        value
    }

    /// What a condition is known to be on a level, by its number.
    pub fn decided(&self, domain: Domain<'_>, number: usize) -> Option<bool> {
        match (&self.cells, &self.decided) {
            (Cells::Bool(cells), _) if self.known => Some(cells[number * domain.columns()]),
            (_, Some(decided)) => decided[number],
            _ => None,
        }
    }

    /// Whether everything read on a level, by its number, lies in the grid.
    pub fn is_inside(&self, number: usize) -> bool {
        self.levels.as_ref().is_none_or(|levels| levels[number])
    }

    /// A field's number so many levels away, and as many more as a number of another field says; of what lies beyond its levels, the nearest.
    /// That there is such a level is no matter of which levels are computed.
    pub fn on_level(self, domain: Domain<'_>, by: i64, more: &Value<R>) -> Value<R> {
        let Cells::Int(more_cells) = &more.cells else { return self };
        let (columns, before) = (domain.columns(), domain.margin[2] as i64);
        let count = self.levels.as_ref().map_or(0, |levels| levels.iter().filter(|&&there| there).count()) as i64;
        let level = |at: usize| (at / columns) as i64 - before + i64::from(more_cells[at].wrapping_add(by as i32));
        let from = |at: usize| (level(at).clamp(0, count - 1) + before) as usize * columns + at % columns;
        // Where a number leads to no level nobody looks: it is as wrong as it can be.
        let real = |at: usize, x: R| if (0..count).contains(&level(at)) { x } else { R::of(f64::NAN) };
        fn gathered<T: Copy>(cells: &[T], from: impl Fn(usize) -> usize) -> Rc<[T]> {
            (0..cells.len()).map(|at| cells[from(at)]).collect()
        }
        let cells = match &self.cells {
            Cells::Real(cells) => Cells::Real((0..cells.len()).map(|at| real(at, cells[from(at)])).collect()),
            Cells::Int(cells) => Cells::Int(gathered(cells, from)),
            Cells::Bool(cells) => Cells::Bool(gathered(cells, from)),
        };
        let reach = [0, 1, 2].map(|axis| self.reach[axis].max(more.reach[axis]));
        Value {
            cells,
            columns: both(&self.columns, &more.columns),
            levels: more.levels.clone(),
            range: joined(self.range, more.range),
            reach,
            decided: None,
            factors: None,
            written: None,
            ..self
        }
    }

    /// A whole number less that of the level: how far away a level is that is said by its number.
    pub fn less_level(self, domain: Domain<'_>) -> Value<R> {
        let Cells::Int(number) = &self.cells else { return self };
        let before = domain.margin[2] as i64;
        let level = |at: usize| ((at / domain.columns()) as i64 - before) as i32;
        let cells = (0..number.len()).map(|at| number[at].wrapping_sub(level(at))).collect();
        Value { cells: Cells::Int(cells), constant: false, known: false, ..self }
    }

    fn shifted(self, domain: Domain<'_>, by: [i64; 3]) -> Value<R> {
        let cells = match &self.cells {
            Cells::Real(cells) => Cells::Real(domain.shifted(cells, by)),
            Cells::Int(cells) => Cells::Int(domain.shifted(cells, by)),
            Cells::Bool(cells) => Cells::Bool(domain.shifted(cells, by)),
        };
        // Beyond the margins it does not matter: larger ones are taken then.
        let columns = self
            .columns
            .map(|columns| domain.away(by).into_iter().map(|to| to.is_some_and(|to| columns[to])).collect());
        let levels = self.levels.map(|levels| {
            let line = Domain { grid: Grid::rows(1, 1, domain.levels()), adjacency: None, margin: [0; 3] };
            line.shifted(&levels, [0, 0, by[2]])
        });
        let mut reach = self.reach;
        for axis in 0..3 {
            reach[axis] += by[axis].abs();
        }
        let range = self.range.map(|range| range.map(|level| level + by[2]));
        Value { cells, columns, levels, range, reach, decided: None, factors: None, written: None, ..self }
    }
}
