//! A picture of points that are of a few kinds, each with its colour and its name, as a PNG file.

use super::axis::Axis;
use super::text::{LABEL, Pen, TITLE, cannot_draw, fitted, register, text_style};
use super::{GAP, LEAST_WIDTH, encoded};
use crate::error::{Error, Result};
use plotters::backend::{BitMapBackend, RGBPixel};
use plotters::drawing::IntoDrawingArea;
use plotters::style::text_anchor::{HPos, VPos};

/// A colour: red, green and blue.
pub type Rgb = [u8; 3];

/// Points of a plane, each in the colour of its kind.
#[derive(Clone, Copy, Debug)]
pub struct Kinds<'a> {
    /// What stands above the picture.
    pub title: &'a str,
    /// What the colours mean, below it.
    pub legend: &'a [(String, Rgb)],
    /// The colour of each point, i fastest, row 0 at the top.
    pub points: &'a [Rgb],
    /// Points to the right.
    pub ni: usize,
    /// Points downwards.
    pub nj: usize,
}

/// The side of a square beside a name.
const SQUARE: usize = LABEL;

/// The picture as the bytes of a PNG file: points are squares with sharp edges. Sides of more than 2000 points show every second or
/// third alone, and so on.
///
/// # Errors
/// There are no points, or not `ni * nj` of them.
pub fn png(picture: &Kinds) -> Result<Vec<u8>> {
    let Kinds { title, legend, points, ni, nj } = *picture;
    if points.is_empty() || ni.checked_mul(nj) != Some(points.len()) {
        return Err(Error::input(format!("a picture of {ni} by {nj} points cannot have {} colours", points.len())));
    }
    register()?;
    let (i, j) = Axis::pair(ni, nj);
    let (title_style, label) = (text_style(TITLE), text_style(LABEL));
    let [left, top] = [GAP, 2 * GAP + TITLE];
    let (right, bottom) = (left + i.pixels(), top + j.pixels());
    let width = (right + GAP).max(LEAST_WIDTH);
    let height = bottom + GAP + legend.len() * (LABEL + GAP / 2) + GAP;
    let mut pixels: Vec<Rgb> = vec![[255; 3]; width * height];
    for (row, y) in (0..j.blocks()).flat_map(|row| (0..j.magnification).map(move |y| (row, row * j.magnification + y)))
    {
        for column in 0..i.blocks() {
            let colour = points[j.cells_of(row).start * ni + i.cells_of(column).start];
            let from = (top + y) * width + left + column * i.magnification;
            pixels[from..from + i.magnification].fill(colour);
        }
    }
    let line = |number: usize| bottom + GAP + number * (LABEL + GAP / 2);
    for (number, (_, colour)) in legend.iter().enumerate() {
        for y in line(number)..line(number) + SQUARE {
            pixels[y * width + left..][..SQUARE].fill(*colour);
        }
    }
    let mut bytes: Vec<u8> = pixels.into_iter().flatten().collect();
    let size = (width as u32, height as u32);
    let canvas =
        BitMapBackend::<RGBPixel>::with_buffer_and_format(&mut bytes, size).map_err(cannot_draw)?.into_drawing_area();
    let pen = Pen { canvas: &canvas };
    let title = fitted(title, &title_style, width - 2 * GAP)?;
    pen.write(&title, left, GAP, &title_style, HPos::Left, VPos::Top)?;
    pen.frame(left..right, top..bottom)?;
    for (number, (name, _)) in legend.iter().enumerate() {
        let name = fitted(name, &label, width - left - SQUARE - 2 * GAP)?;
        pen.frame(left..left + SQUARE, line(number)..line(number) + SQUARE)?;
        pen.write(&name, left + SQUARE + GAP / 2, line(number), &label, HPos::Left, VPos::Top)?;
    }
    canvas.present().map_err(cannot_draw)?;
    drop(canvas);
    encoded(&bytes, width, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Rgb = [200, 10, 10];
    const BLUE: Rgb = [10, 10, 200];

    #[test]
    fn points_and_legend_have_the_colours_of_kinds() {
        let legend = [("red".to_owned(), RED), ("blue".to_owned(), BLUE)];
        let points = [RED, BLUE, BLUE, RED, BLUE, BLUE];
        let bytes = png(&Kinds { title: "kinds", legend: &legend, points: &points, ni: 3, nj: 2 }).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let at = |x: usize, y: usize| pixels[3 * (y * info.width as usize + x)..][..3].to_vec();
        let (i, _) = Axis::pair(3, 2);
        for (number, colour) in points.iter().enumerate() {
            let middle = |at: usize| at * i.magnification + i.magnification / 2;
            assert_eq!(at(GAP + middle(number % 3), 2 * GAP + TITLE + middle(number / 3)), colour, "{number}");
        }
        let below = 2 * GAP + TITLE + 2 * i.magnification + GAP + SQUARE / 2;
        assert_eq!([at(GAP + 2, below), at(GAP + 2, below + LABEL + GAP / 2)], [RED.to_vec(), BLUE.to_vec()]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for (ni, nj) in [(0, 0), (2, 2), (usize::MAX, 2)] {
            let points = &[RED; 3][..if ni == 0 { 0 } else { 3 }];
            assert!(png(&Kinds { title: "none", legend: &[], points, ni, nj }).is_err());
        }
    }
}
