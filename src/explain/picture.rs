//! Pictures of what a stencil reads around a cell, drawn with letters.

use crate::terminal;
use std::collections::{BTreeMap, BTreeSet};
use stencilc_compiler::ir::Offset;

/// The most cells along an axis that are drawn.
const WIDEST: i64 = 25;

/// The widest row of pictures that stand side by side, in letters.
const LINE: usize = 100;

/// A picture: a title, and rows of letters.
pub struct Picture {
    title: String,
    rows: Vec<String>,
}

impl Picture {
    /// Draws offsets, i to the right and j down. A column that is read on one level is an `x`, on several their number (`#`
    /// if they are ten or more), the cell itself in parentheses.
    pub fn new(title: &str, offsets: &BTreeSet<Offset>) -> Self {
        let mut levels: BTreeMap<(i32, i32), u32> = BTreeMap::new();
        for offset in offsets {
            *levels.entry((offset.j, offset.i)).or_default() += 1;
        }
        let range = |along: fn(&Offset) -> i32| {
            let (low, high) = offsets.iter().map(along).fold((0, 0), |(low, high), by| (by.min(low), by.max(high)));
            low..=high
        };
        let (i_range, j_range) = (range(|offset| offset.i), range(|offset| offset.j));
        let length = |range: &std::ops::RangeInclusive<i32>| i64::from(*range.end()) - i64::from(*range.start()) + 1;
        let rows = if length(&i_range) > WIDEST || length(&j_range) > WIDEST {
            vec!["too wide to draw".to_owned()]
        } else {
            let row = |j: i32| {
                let mut row = String::new();
                for i in i_range.clone() {
                    let before = match (i, j) {
                        (0, 0) => '(',
                        (1, 0) => ')',
                        _ => ' ',
                    };
                    row.push(before);
                    row.push(mark(levels.get(&(j, i)).copied().unwrap_or(0)));
                }
                row.push(if j == 0 && *i_range.end() == 0 { ')' } else { ' ' });
                row
            };
            j_range.map(row).collect()
        };
        Self { title: title.to_owned(), rows }
    }

    fn width(&self) -> usize {
        self.rows.iter().chain([&self.title]).map(|row| row.chars().count()).max().unwrap_or(0)
    }
}

fn mark(levels: u32) -> char {
    match levels {
        0 => '.',
        1 => 'x',
        _ => char::from_digit(levels, 10).unwrap_or('#'),
    }
}

/// Pictures side by side, as many in a row as there is room for; each line begins with two blanks.
pub fn side_by_side(pictures: &[Picture]) -> String {
    let mut text = String::new();
    let mut rest = pictures;
    while !rest.is_empty() {
        let mut width = 0;
        let fitting = rest.iter().take_while(|picture| {
            width += picture.width() + 3;
            width <= LINE
        });
        let (row, others) = rest.split_at(fitting.count().max(1));
        rest = others;
        let height = row.iter().map(|picture| picture.rows.len()).max().unwrap_or(0);
        for line in 0..=height {
            let mut written = " ".to_owned();
            for picture in row {
                // Rows with a cell begin with the blank or parenthesis before it, the title with a blank of its own.
                let part = match line {
                    0 => format!(" {}", picture.title),
                    _ => picture.rows.get(line - 1).cloned().unwrap_or_default(),
                };
                let blanks = terminal::blanks(&part, picture.width() + 3);
                written.push_str(&format!("{part}{blanks}"));
            }
            text.push_str(written.trim_end());
            text.push('\n');
        }
        if !rest.is_empty() {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(all: &[(i32, i32, i32)]) -> BTreeSet<Offset> {
        all.iter().map(|&(i, j, k)| Offset { i, j, k }).collect()
    }

    #[test]
    fn the_cell_itself_stands_in_parentheses() {
        let cross = offsets(&[(0, 0, 0), (-1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 1, -1)]);
        let ahead = offsets(&[(1, 0, 0)]);
        let text = side_by_side(&[Picture::new("cross", &cross), Picture::new("ahead", &ahead)]);
        assert_eq!(text, "  cross     ahead\n  x(x)x    (.)x\n  . 2 .\n");
    }

    #[test]
    fn what_is_too_wide_is_not_drawn() {
        let far = offsets(&[(i32::MIN, 0, 0), (i32::MAX, 3, 0)]);
        assert_eq!(side_by_side(&[Picture::new("far", &far)]), "  far\n too wide to draw\n");
    }
}
