//! What a field holds, in a few numbers.

use serde::Serialize;
use stencilc_compiler::grid::{Grid, Region};
use stencilc_compiler::ir::{Field, Levels};
use stencilc_runtime::job::{ByRows, Piece};
use stencilc_runtime::{Data, Result};

/// An output, over the cells that were computed.
#[derive(Serialize)]
pub struct Summary {
    /// The field.
    pub name: String,
    /// Lengths of its axes, slowest first.
    pub shape: Vec<usize>,
    /// The smallest finite value.
    pub min: Option<f64>,
    /// The largest finite value.
    pub max: Option<f64>,
    /// The mean of the finite values.
    pub mean: Option<f64>,
    /// How many are no numbers.
    pub nan: usize,
    /// How many are infinite.
    pub infinite: usize,
    /// How many were computed; the others kept what was there.
    pub computed: usize,
}

/// What has been counted of some numbers.
#[derive(Default)]
struct Counted {
    all: usize,
    nan: usize,
    finite: usize,
    sum: f64,
    range: Option<(f64, f64)>,
}

impl Counted {
    fn with(mut self, value: f64) -> Self {
        self.all += 1;
        self.nan += usize::from(value.is_nan());
        if value.is_finite() {
            self.finite += 1;
            self.sum += value;
            self.range = Some(self.range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
        }
        self
    }
}

impl Summary {
    /// Of `data`, which is that of `field`.
    pub fn new(field: &Field, data: &Data, grid: Grid, region: &Region) -> Self {
        let numbers = region.numbers(grid, field.place).map(|index| data.get(index));
        Self::of(field.name.clone(), grid.shape(field.place), numbers.fold(Counted::default(), Counted::with))
    }

    /// Of a field of which several processes have some rows each: as it is of all of them, on the first.
    ///
    /// # Errors
    /// Another process has ended.
    pub fn of_rows(field: &Field, rows: &ByRows, region: &Region) -> Result<Self> {
        let mut counted = Counted::default();
        rows.each(&mut |Piece { level, rows, data }| {
            if field.place.levels != Levels::None && !region.k.contains(&level) {
                return Ok(());
            }
            let ni = data.len() / rows.len().max(1);
            let computed = rows.clone().enumerate().filter(|(_, j)| region.j.contains(j));
            let numbers = computed.flat_map(|(row, _)| region.i.clone().map(move |i| row * ni + i));
            counted = numbers.map(|at| data.get(at)).fold(std::mem::take(&mut counted), Counted::with);
            Ok(())
        })?;
        Ok(Self::of(field.name.clone(), rows.shape().to_vec(), counted))
    }

    fn of(name: String, shape: Vec<usize>, counted: Counted) -> Self {
        let Counted { all, nan, finite, sum, range } = counted;
        Self {
            name,
            shape,
            min: range.map(|(low, _)| low),
            max: range.map(|(_, high)| high),
            mean: range.map(|_| sum / finite as f64),
            nan,
            infinite: all - finite - nan,
            computed: all,
        }
    }

    /// Of those numbers of an array that are computed.
    pub fn of_those(name: &str, shape: Vec<usize>, data: &Data, is_computed: impl Fn(usize) -> bool) -> Self {
        let numbers = (0..data.len()).filter(|&index| is_computed(index)).map(|index| data.get(index));
        let counted = numbers.fold(Counted::default(), Counted::with);
        Self::of(name.to_owned(), shape, counted)
    }

    /// A row of a table.
    pub fn row(&self) -> Vec<String> {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let mut row = vec![self.name.clone(), format!("({})", shape.join(", "))];
        for (word, value) in [("min", self.min), ("max", self.max), ("mean", self.mean)] {
            row.extend([word.to_owned(), value.map_or("none".to_owned(), number)]);
        }
        row.extend(["NaN".to_owned(), self.nan.to_string()]);
        let infinite = if self.infinite == 0 { String::new() } else { format!(", {} infinite", self.infinite) };
        row.push(format!("of {} computed{infinite}", self.computed));
        row
    }

    /// The columns of [`Summary::row`] that hold numbers.
    pub const NUMBERS: [usize; 4] = [3, 5, 7, 9];
}

/// A number in a width that suits a table.
fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 { format!("{value}") } else { format!("{value:.6e}") }
}
