//! Bar charts of counts, several on a page, as a PNG file.

use std::path::Path;

use plotters::backend::{BitMapBackend, RGBPixel};
use plotters::chart::ChartBuilder;
use plotters::drawing::IntoDrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor};

use super::scale::colour;
use super::text::{LABEL, TITLE, cannot_draw, fitted, register, text_style};
use super::{GAP, write_png};
use crate::error::{Error, Result};

/// A page of charts.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// What stands above them.
    pub title: &'a str,
    /// What the numbers along the bars are.
    pub x: &'a str,
    /// What the heights of bars are.
    pub y: &'a str,
    /// The charts, row after row.
    pub charts: &'a [Chart<'a>],
    /// How many stand side by side.
    pub columns: usize,
}

/// One chart. Its heights have a scale of their own.
#[derive(Clone, Copy, Debug)]
pub struct Chart<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// The height of each bar; bars are numbered from 1.
    pub counts: &'a [usize],
}

/// The size of a chart in pixels, with its title and axes.
const WIDTH: usize = 560;
const HEIGHT: usize = 320;

/// Pixels for the numbers and the name of an axis.
const X_AXIS: usize = 48;
const Y_AXIS: usize = 92;

/// Pixels above all charts.
const HEAD: usize = 2 * GAP + TITLE;

/// The most charts of a page, and bars of a chart: more than a reader takes in.
const MOST: usize = 100;

/// The grid behind the bars.
const LINES: RGBColor = RGBColor(225, 225, 225);

/// Draws `page` into the PNG file at `path`.
///
/// # Errors
///
/// There is no chart or bar, or there are more than a hundred; those of [`crate::files::write_atomic`].
pub fn save_png(path: &Path, page: &Page<'_>) -> Result<()> {
    let (pixels, width, height) = draw(page)?;
    write_png(path, &pixels, width, height)
}

/// The page as rows of RGB pixels, with its width and height.
fn draw(page: &Page<'_>) -> Result<(Vec<u8>, usize, usize)> {
    let &Page { title, x, y, charts, columns } = page;
    let most_bars = charts.iter().map(|chart| chart.counts.len()).max().unwrap_or(0);
    if most_bars == 0 || columns == 0 {
        return Err(Error::input("there is nothing to draw: no bars"));
    }
    if charts.len().max(most_bars) > MOST {
        return Err(Error::input(format!("{} charts of {most_bars} bars are too many to draw", charts.len())));
    }
    register()?;
    let columns = columns.min(charts.len());
    let rows = charts.len().div_ceil(columns);
    let (width, height) = (columns * WIDTH, HEAD + rows * HEIGHT);
    let mut pixels = vec![255; width * height * 3];
    let size = (width as u32, height as u32);
    let canvas =
        BitMapBackend::<RGBPixel>::with_buffer_and_format(&mut pixels, size).map_err(cannot_draw)?.into_drawing_area();
    let (head, body) = canvas.split_vertically(HEAD as i32);

    let large = text_style(TITLE);
    let text = fitted(title, &large, width - 2 * GAP)?;
    let large = large.pos(Pos::new(HPos::Left, VPos::Top));
    head.draw(&Text::new(text, (GAP as i32, GAP as i32), large)).map_err(cannot_draw)?;

    let label = text_style(LABEL);
    for (area, &Chart { title, counts }) in body.split_evenly((rows, columns)).iter().zip(charts) {
        let highest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let mut chart = ChartBuilder::on(area)
            .margin(GAP as i32)
            .caption(fitted(title, &label, WIDTH - 2 * GAP)?, label.clone())
            .x_label_area_size(X_AXIS as i32)
            .y_label_area_size(Y_AXIS as i32)
            .build_cartesian_2d(0.5..counts.len() as f64 + 0.5, 0.0..highest * 1.05)
            .map_err(cannot_draw)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(LINES.mix(0.0))
            .bold_line_style(LINES)
            .x_desc(x)
            .y_desc(y)
            .x_labels(9)
            .y_labels(6)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole)
            .label_style(label.clone())
            .axis_desc_style(label.clone())
            .draw()
            .map_err(cannot_draw)?;
        let bars = counts.iter().enumerate().map(|(bar, &count)| {
            let (left, right) = (bar as f64 + 0.6, bar as f64 + 1.4);
            Rectangle::new([(left, 0.0), (right, count as f64)], colour(BAR_COLOUR).filled())
        });
        chart.draw_series(bars).map_err(cannot_draw)?;
    }
    canvas.present().map_err(cannot_draw)?;
    drop((head, body, canvas));
    Ok((pixels, width, height))
}

/// Where in the colour map the colour of bars is.
const BAR_COLOUR: f64 = 0.35;

/// A whole number; nothing between two of them.
fn whole(number: &f64) -> String {
    if number.fract().abs() < 1e-9 { format!("{number:.0}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many pixels of each column have the colour of bars.
    fn heights(counts: &[&[usize]]) -> (Vec<usize>, usize) {
        let charts: Vec<_> = counts.iter().map(|counts| Chart { title: "a chart", counts }).collect();
        let page = Page { title: "a page", x: "number", y: "cells", charts: &charts, columns: 2 };
        let (pixels, width, height) = draw(&page).unwrap();
        let colour = colour(BAR_COLOUR);
        let is_bar = |at: usize| pixels[3 * at..][..3] == [colour.0, colour.1, colour.2];
        ((0..width).map(|x| (0..height).filter(|y| is_bar(y * width + x)).count()).collect(), height)
    }

    #[test]
    fn bars_are_as_high_as_their_counts() {
        let (heights, _) = heights(&[&[300, 150, 0, 75]]);
        let mut bars: Vec<usize> = heights.iter().copied().filter(|&height| height > 2).collect();
        bars.dedup();
        let [first, second, last] = bars[..] else { panic!("three bars are higher than a line: {bars:?}") };
        assert!(first > 150 && first.abs_diff(2 * second) <= 3 && first.abs_diff(4 * last) <= 6, "{bars:?}");
    }

    #[test]
    fn charts_stand_in_rows() {
        let (heights, height) = heights(&[&[1], &[2, 2], &[3; 40]]);
        assert_eq!((heights.len(), height), (2 * WIDTH, HEAD + 2 * HEIGHT));
        assert!(heights[..WIDTH].iter().any(|&own| own > 300), "the first column has two charts");
        assert!(heights[WIDTH..].iter().all(|&own| own < HEIGHT), "the second one has one");
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        let draw = |count: usize, counts: &[usize]| {
            let charts = vec![Chart { title: "", counts }; count];
            draw(&Page { title: "", x: "", y: "", charts: &charts, columns: 2 }).unwrap_err().message
        };
        assert!(draw(0, &[]).contains("no bars") && draw(1, &[]).contains("no bars"));
        assert!(draw(101, &[1]).contains("101 charts") && draw(1, &[1; 101]).contains("101 bars"));
    }
}
