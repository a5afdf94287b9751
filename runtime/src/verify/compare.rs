//! Where two arrays differ, and whether a comparison with one proves something.

use crate::array::Data;
use crate::error::{Error, Result};
use serde::Serialize;
use std::fmt;

/// Of computed values, at most this part may be no finite numbers: else a comparison says nothing.
const NOT_FINITE: f64 = 0.01;

/// Where a kernel and the interpreter differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mismatch {
    /// The output.
    pub field: String,
    /// The first cell that differs, as (i, j, k) where the field has these axes; over a mesh the element, and which of its numbers.
    pub cell: String,
    /// How many cells differ; over a mesh, how many numbers.
    pub cells: usize,
    /// The interpreter's value.
    pub expected: f64,
    /// The interpreter's value's bits.
    pub expected_bits: String,
    /// The kernel's value.
    pub found: f64,
    /// The kernel's value's bits.
    pub found_bits: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, cell, cells, expected, found, .. } = self;
        let cells = if *cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
        write!(f, "`{field}` differs on {cells}, first at {cell}: {found} instead of {expected}")
    }
}

impl Mismatch {
    /// Where an array differs from what is expected of it: where `differs` says so of a number, whose place `cell` tells.
    pub(super) fn of(
        field: &str,
        [expected, found]: [&Data; 2],
        differs: impl Fn(usize) -> bool,
        cell: impl Fn(usize) -> String,
    ) -> Option<Self> {
        let first = (0..expected.len()).find(|&index| differs(index))?;
        Some(Self {
            field: field.to_owned(),
            cell: cell(first),
            cells: (first..expected.len()).filter(|&index| differs(index)).count(),
            expected: expected.get(first),
            expected_bits: hex(expected, first),
            found: found.get(first),
            found_bits: hex(found, first),
        })
    }
}

/// Whether a number has other bits; any NaN equals any NaN.
pub(super) fn differs(expected: &Data, found: &Data, index: usize) -> bool {
    expected.bits(index) != found.bits(index)
}

/// The bits of a number.
fn hex(data: &Data, index: usize) -> String {
    match data {
        Data::F64(v) => format!("{:#018x}", v[index].to_bits()),
        Data::F32(v) => format!("{:#010x}", v[index].to_bits()),
        Data::I32(v) => format!("{:#010x}", v[index]),
        Data::Bool(v) => format!("{:#04x}", v[index]),
    }
}

/// Whether a comparison of what an output holds at `numbers`, where it is computed, would prove something.
///
/// # Errors
/// It would not: too much of it is not finite, or all the same.
pub(super) fn check_worth(name: &str, data: &Data, numbers: impl Iterator<Item = usize>) -> Result<()> {
    let (mut count, mut not_finite, mut first, mut constant) = (0usize, 0usize, None, true);
    for index in numbers {
        let bits = data.bits(index);
        count += 1;
        not_finite += usize::from(!data.get(index).is_finite());
        constant &= *first.get_or_insert(bits) == bits;
    }
    if not_finite as f64 > NOT_FINITE * count as f64 {
        return Err(Error::check(format!("{not_finite} of the {count} values of `{name}` are not finite"))
            .help("declare a range for the inputs that need one, as in `in rho = 0.5..1.5`, or set parameters"));
    }
    if constant && count > 1 {
        return Err(Error::check(format!("all {count} values of `{name}` are the same"))
            .help("a comparison would prove nothing: declare ranges for the inputs, or set parameters"));
    }
    Ok(())
}
