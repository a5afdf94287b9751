//! A picture of one level of a field: a heat map with a colour bar, as a PNG file.

pub mod animation;
mod axis;
pub mod bars;
pub mod kinds;
mod scale;
mod text;

use std::ops::Range;
use std::path::Path;

use plotters::backend::{BitMapBackend, RGBPixel};
use plotters::drawing::IntoDrawingArea;
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

use crate::error::{Error, Result};
use crate::files;
use axis::{Axis, mean};
use scale::{Scale, colour};
use text::{GREY, LABEL, Pen, TITLE, cannot_draw, caption, fitted, register, text_style};

/// One level of a field.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// What stands above the picture.
    pub title: &'a str,
    /// The numbers: `nj` rows of `ni`, i fastest.
    pub values: &'a [f64],
    /// Cells along i, to the right.
    pub ni: usize,
    /// Cells along j, downwards: row 0 is at the top.
    pub nj: usize,
    /// If the numbers are points of a plane on which cells lie anywhere: what lies there.
    pub scattered: Option<Scattered<'a>>,
}

/// What lies anywhere on a plane.
#[derive(Clone, Copy, Debug)]
pub struct Scattered<'a> {
    /// How many there are.
    pub count: usize,
    /// What they are: cells.
    pub what: &'a str,
    /// What the axes are called, to the right and downwards.
    pub axes: [&'a str; 2],
}

/// The longer side of the heat map in pixels, or near it, where cells can be magnified to it.
const SIDE: usize = 800;

/// The shorter side at least, where the colour bar still has room for its numbers.
const SHORT_SIDE: usize = 160;

/// The longer side at most; beyond, cells are averaged.
const LONG_SIDE: usize = 2000;

/// Free space around everything, and between the parts.
const GAP: usize = 14;

/// The length of a tick.
const TICK: usize = 5;

/// The width of the colour bar.
const BAR: usize = 20;

/// The least width of the whole, which title and caption need.
const LEAST_WIDTH: usize = 480;

/// Draws `picture` into the PNG file at `path`.
///
/// Colours run from the least to the greatest finite number. Cells are squares of at least one
/// pixel with sharp edges; sides of more than 2000 cells are averaged, and where one side is many
/// times the other, the short one is stretched. Cells that are not finite are grey and counted in
/// the caption; so is a block of averaged cells that holds one.
///
/// # Errors
///
/// There are no cells, or not `ni * nj` of them; those of [`files::write_atomic`].
pub fn save_png(path: &Path, picture: &Picture<'_>) -> Result<()> {
    let png = png(picture)?;
    files::write_atomic(path, |out| out.write_all(&png))
}

/// The same as the bytes of a PNG file.
///
/// # Errors
///
/// There are no cells, or not `ni * nj` of them.
pub fn png(picture: &Picture<'_>) -> Result<Vec<u8>> {
    let (pixels, width, height) = draw(picture, Scale::of(picture.values))?;
    encoded(&pixels, width, height)
}

/// Writes RGB pixels into the PNG file at `path`.
fn write_png(path: &Path, pixels: &[u8], width: usize, height: usize) -> Result<()> {
    let png = encoded(pixels, width, height)?;
    files::write_atomic(path, |out| out.write_all(&png))
}

fn encoded(pixels: &[u8], width: usize, height: usize) -> Result<Vec<u8>> {
    encode(pixels, width, height).map_err(|error| Error::input(format!("cannot encode the picture: {error}")))
}

/// RGB pixels as a PNG file.
fn encode(pixels: &[u8], width: usize, height: usize) -> std::result::Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

/// The picture as rows of RGB pixels, with its width and height. Colours run along `scale`.
fn draw(picture: &Picture<'_>, scale: Option<Scale>) -> Result<(Vec<u8>, usize, usize)> {
    let &Picture { title, values, ni, nj, scattered } = picture;
    if values.is_empty() {
        return Err(Error::input("there is nothing to draw: the level has no cells"));
    }
    if ni.checked_mul(nj) != Some(values.len()) {
        return Err(Error::input(format!("a level of {ni} by {nj} cells cannot have {} values", values.len())));
    }
    register()?;
    let (i, j) = Axis::pair(ni, nj);
    let label = text_style(LABEL);
    let [i_name, j_name] = scattered.map_or(["i", "j"], |scattered| scattered.axes);
    let measure = |text: &str| -> Result<usize> {
        let (width, _) = label.font.box_size(text).map_err(cannot_draw)?;
        Ok(width as usize)
    };

    // Points of a plane have no numbers of their own.
    let ticks = |axis: Axis, wanted: usize| axis.ticks(wanted).filter(|_| scattered.is_none());
    let j_ticks: Vec<usize> = ticks(j, j.pixels() / 50).collect();
    let last_j = j_ticks.last().copied().unwrap_or(0).to_string();
    let numbers = scale.map_or(vec![], |scale| scale.ticks(j.pixels() / 50));
    let mut number_width = 0;
    for number in &numbers {
        number_width = number_width.max(measure(&number.text)?);
    }
    let line = LABEL + GAP / 2;
    let left = GAP + measure(j_name)? + GAP + measure(&last_j)? + 2 * TICK;
    let top = GAP + TITLE + GAP / 2 + line + GAP;
    let right = left + i.pixels();
    let bottom = top + j.pixels();
    let bar = right + 2 * GAP;
    let width = (bar + BAR + 2 * TICK + number_width + 2 * GAP).max(LEAST_WIDTH);
    let height = bottom + 2 * TICK + 2 * line + GAP;

    let mut pixels = vec![255; width * height * 3];
    {
        let mut paint = |x: Range<usize>, y: Range<usize>, colour: RGBColor| {
            for row in y {
                let from = 3 * (row * width + x.start);
                for pixel in pixels[from..][..3 * x.len()].as_chunks_mut().0 {
                    *pixel = [colour.0, colour.1, colour.2];
                }
            }
        };
        for row in 0..j.blocks() {
            for column in 0..i.blocks() {
                let value = mean(picture, j.cells_of(row), i.cells_of(column));
                let colour = match scale {
                    Some(scale) if value.is_finite() => colour(scale.fraction(value)),
                    Some(_) | None => GREY,
                };
                let x = left + column * i.magnification;
                let y = top + row * j.magnification;
                paint(x..x + i.magnification, y..y + j.magnification, colour);
            }
        }
        if let Some(scale) = scale {
            for y in 0..j.pixels() {
                let fraction = if scale.low < scale.high { 1.0 - y as f64 / (j.pixels() - 1) as f64 } else { 0.5 };
                paint(bar..bar + BAR, top + y..top + y + 1, colour(fraction));
            }
        }
    }

    let size = (width as u32, height as u32);
    let canvas =
        BitMapBackend::<RGBPixel>::with_buffer_and_format(&mut pixels, size).map_err(cannot_draw)?.into_drawing_area();
    let pen = Pen { canvas: &canvas };
    let title_style = text_style(TITLE);
    let title = fitted(title, &title_style, width - left - GAP)?;
    pen.write(&title, left, GAP, &title_style, HPos::Left, VPos::Top)?;
    let caption = fitted(&caption(picture, Scale::of(values)), &label, width - left - GAP)?;
    let below_title = GAP + TITLE + GAP / 2;
    pen.write(&caption, left, below_title, &label, HPos::Left, VPos::Top)?;

    pen.frame(left..right, top..bottom)?;
    for cell in ticks(i, i.pixels() / 90) {
        let x = left + i.middle(cell);
        pen.line((x, bottom), (x, bottom + TICK))?;
        let y = bottom + 2 * TICK;
        pen.write(&cell.to_string(), x, y, &label, HPos::Center, VPos::Top)?;
    }
    let y = bottom + 2 * TICK + line;
    pen.write(i_name, left + i.pixels() / 2, y, &label, HPos::Center, VPos::Top)?;
    for cell in j_ticks {
        let y = top + j.middle(cell);
        pen.line((left - TICK, y), (left, y))?;
        let x = left - 2 * TICK;
        pen.write(&cell.to_string(), x, y, &label, HPos::Right, VPos::Center)?;
    }
    let y = top + j.pixels() / 2;
    pen.write(j_name, GAP, y, &label, HPos::Left, VPos::Center)?;

    if let Some(scale) = scale {
        pen.frame(bar..bar + BAR, top..bottom)?;
        let edge = bar + BAR;
        for number in numbers {
            let down = (1.0 - scale.fraction(number.value)) * (j.pixels() - 1) as f64;
            let y = top + down.round() as usize;
            pen.line((edge, y), (edge + TICK, y))?;
            let x = edge + 2 * TICK;
            pen.write(&number.text, x, y, &label, HPos::Left, VPos::Center)?;
        }
    }
    canvas.present().map_err(cannot_draw)?;
    drop(canvas);
    Ok((pixels, width, height))
}

#[cfg(test)]
mod tests {
    use super::scale::VIRIDIS;
    use super::*;

    const BACKGROUND: [u8; 3] = [255; 3];

    /// The pixels of a picture, read back from its file.
    fn drawn(values: &[f64], ni: usize, nj: usize) -> (Vec<[u8; 3]>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.png");
        let picture = Picture { title: "a field", values, ni, nj, scattered: None };
        save_png(&path, &picture).unwrap();
        let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        (bytes.as_chunks().0.to_vec(), info.width as usize)
    }

    fn rgb(colour: RGBColor) -> [u8; 3] {
        [colour.0, colour.1, colour.2]
    }

    /// How many pixels have a colour; a few greys also belong to smoothed letters.
    fn amount(pixels: &[[u8; 3]], colour: [u8; 3]) -> usize {
        pixels.iter().filter(|pixel| **pixel == colour).count()
    }

    fn texts(low: f64, high: f64) -> Vec<String> {
        let ticks = Scale { low, high }.ticks(8);
        ticks.into_iter().map(|label| label.text).collect()
    }

    #[test]
    fn cells_are_crisp_squares_with_row_0_at_the_top() {
        let (pixels, width) = drawn(&[0.0, 1.0, f64::NAN, 0.5], 2, 2);
        // A pixel in the middle of each quarter of the map, found by the frame's top left corner.
        let corner = pixels.iter().position(|pixel| *pixel == rgb(colour(0.0)));
        let corner = corner.unwrap();
        let at = |x: usize, y: usize| pixels[corner + y * width + x];
        assert_eq!(at(399, 399), rgb(colour(0.0)));
        assert_eq!(at(400, 399), rgb(colour(1.0)));
        assert_eq!(at(399, 400), rgb(GREY));
        assert_eq!(at(400, 400), rgb(colour(0.5)));
        assert_eq!(at(799, 799), rgb(colour(0.5)));
        let grey = amount(&pixels, rgb(GREY));
        assert!((160_000..160_100).contains(&grey), "{grey}");
    }

    #[test]
    fn a_grey_cell_is_not_averaged_away() {
        let mut values = vec![1.0; 4001 * 2];
        values[4001] = f64::INFINITY;
        let (pixels, _) = drawn(&values, 4001, 2);
        // One of 1334 blocks in one of two rows of 80 pixels.
        let grey = amount(&pixels, rgb(GREY));
        assert!((80..160).contains(&grey), "{grey}");
    }

    #[test]
    fn fields_without_a_range_are_drawn() {
        let (pixels, _) = drawn(&[f64::NAN; 6], 3, 2);
        assert!(amount(&pixels, rgb(GREY)) > 500_000 / 2);
        let (pixels, _) = drawn(&[3.25; 6], 3, 2);
        assert!(amount(&pixels, rgb(colour(0.5))) > 500_000 / 2);
        assert!(amount(&pixels, rgb(GREY)) < 100);
        for extreme in [f64::MAX, 5e-324, 1e-300] {
            drawn(&[extreme, -extreme], 2, 1);
            drawn(&[extreme, extreme], 2, 1);
        }
        drawn(&[1.0, 1.0_f64.next_up()], 1, 2);
    }

    #[test]
    fn letters_are_drawn() {
        let (pixels, _) = drawn(&[1.0, 2.0], 2, 1);
        // The smoothed edges of black letters on white.
        let edges = |pixel: &&[u8; 3]| pixel[0] == pixel[1] && pixel[1] == pixel[2];
        let grey = pixels.iter().filter(edges).filter(|pixel| **pixel != BACKGROUND && **pixel != [0; 3]);
        assert!(grey.count() > 500);
    }

    #[test]
    fn sizes_stay_within_limits() {
        for (ni, nj, width, height) in [
            (1, 1, 800, 800),
            (8, 6, 800, 600),
            (403, 344, 806, 688),
            (2000, 1000, 2000, 1000),
            (5000, 3000, 1667, 1000),
            (3000, 1, 1500, 160),
            (1, 100_000_000, 160, 2000),
        ] {
            let (i, j) = Axis::pair(ni, nj);
            assert_eq!((i.pixels(), j.pixels()), (width, height), "{ni} by {nj}");
            assert_eq!(i.cells_of(i.blocks() - 1).end, ni);
            assert!(j.middle(nj - 1) < j.pixels());
        }
    }

    #[test]
    fn numbers_beside_the_bar_are_round() {
        assert_eq!(texts(236.0, 1076.0), ["400", "600", "800", "1000"],);
        assert_eq!(texts(-0.02, 0.0411)[..3], ["-0.02", "-0.01", "0"]);
        assert_eq!(texts(0.0, 4e-7)[1..3], ["5e-8", "1.0e-7"]);
        assert_eq!(texts(999_999_000.0, 1_000_001_000.0)[0], "999999000");
        assert_eq!(texts(3.25, 3.25), ["3.25"]);
        assert_eq!(texts(f64::MIN, f64::MAX).len(), 2);
        for (low, high) in [(1.0, 1.0_f64.next_up()), (0.0, 5e-324), (1e300, 2e300)] {
            let texts = texts(low, high);
            assert!((2..=9).contains(&texts.len()), "{texts:?}");
            assert!(texts.iter().all(|text| text.len() < 24), "{texts:?}");
        }
    }

    #[test]
    fn colours_run_through_the_table() {
        assert_eq!(rgb(colour(0.0)), VIRIDIS[0]);
        assert_eq!(rgb(colour(1.0)), VIRIDIS[31]);
        assert_eq!(rgb(colour(10.0 / 31.0)), VIRIDIS[10]);
    }

    #[test]
    fn the_caption_tells_what_is_not_seen() {
        let caption_of = |values: &[f64], ni, nj| {
            let picture = Picture { title: "", values, ni, nj, scattered: None };
            caption(&picture, Scale::of(values))
        };
        assert_eq!(caption_of(&[1.0, 2.5], 2, 1), "2 × 1 cells, 1 to 2.5");
        assert_eq!(caption_of(&[1.0, 1.0], 1, 2), "1 × 2 cells, all 1");
        assert_eq!(caption_of(&[f64::NAN, 1.0], 2, 1), "2 × 1 cells, all 1; 1 cell not finite, grey");
        let long = caption_of(&vec![f64::NAN; 4000], 4000, 1);
        assert!(long.ends_with("4000 cells not finite, grey; means over 2 × 1"), "{long}");
    }

    #[test]
    fn titles_are_cut_to_the_picture() {
        register().unwrap();
        let style = text_style(TITLE);
        assert_eq!(fitted("short", &style, 400).unwrap(), "short");
        let long = fitted(&"long\n".repeat(100_000), &style, 400).unwrap();
        assert!(long.ends_with('…') && long.starts_with("long long"), "{long}");
        assert!(style.font.box_size(&long).unwrap().0 <= 400);
    }

    #[test]
    fn wrong_sizes_are_refused() {
        for (ni, nj) in [(0, 0), (3, 1), (usize::MAX, 2)] {
            let picture = Picture { title: "", values: &[1.0, 2.0], ni, nj, scattered: None };
            assert!(save_png(Path::new("unused.png"), &picture).is_err());
        }
        let nothing = Picture { title: "", values: &[], ni: 0, nj: 5, scattered: None };
        let error = save_png(Path::new("unused.png"), &nothing).unwrap_err();
        assert!(error.message.contains("no cells"), "{error}");
    }
}
