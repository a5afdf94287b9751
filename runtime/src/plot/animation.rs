//! One level of a field at several times: an animated PNG (APNG). Browsers play it, `ffmpeg` makes a film of it, and to
//! whoever knows PNG alone it is the first picture.

use super::scale::Scale;
use super::{Picture, draw};
use crate::error::{Error, Result};
use crate::files;
use std::io;
use std::path::Path;

/// Draws pictures of one size into the PNG file at `path`, to be shown one after the other, `per_second` in a second, again
/// and again. `drawn` is called once for each.
///
/// Each is as [`super::save_png`] draws it, but for the colours: they run from the least to the greatest finite number of all
/// pictures, so that a colour means the same number at all times. The caption tells the range of the picture itself.
///
/// # Errors
///
/// There are no pictures, or of several sizes, or too many for the file; one cannot be drawn; those of
/// [`files::write_atomic`].
pub fn save_animation(path: &Path, pictures: &[Picture<'_>], per_second: u16, drawn: &dyn Fn()) -> Result<()> {
    let Some(first) = pictures.first() else {
        return Err(Error::input("there is nothing to animate: no picture was taken"));
    };
    if let Some(other) = pictures.iter().find(|own| (own.ni, own.nj) != (first.ni, first.nj)) {
        let sizes = format!("{} by {} and {} by {} cells", first.ni, first.nj, other.ni, other.nj);
        return Err(Error::input(format!("pictures of {sizes} cannot be animated together")));
    }
    let count = u32::try_from(pictures.len())
        .map_err(|_| Error::input(format!("{} pictures are too many for one file", pictures.len())))?;
    let scale = pictures.iter().filter_map(|own| Scale::of(own.values)).reduce(Scale::with);
    let (pixels, width, height) = draw(first, scale)?;
    files::write_atomic(path, |out| {
        let mut encoder = png::Encoder::new(out, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        // 0: without an end.
        encoder.set_animated(count, 0)?;
        encoder.set_frame_delay(1, per_second)?;
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        drawn();
        for picture in &pictures[1..] {
            // All have one scale, and thus one size in pixels.
            let (pixels, ..) = draw(picture, scale).map_err(|error| io::Error::other(error.message))?;
            writer.write_image_data(&pixels)?;
            drawn();
        }
        Ok(writer.finish()?)
    })
}

#[cfg(test)]
mod tests {
    use super::super::scale::colour;
    use super::*;
    use std::cell::Cell;

    fn picture<'a>(title: &'a str, values: &'a [f64]) -> Picture<'a> {
        Picture { title, values, ni: 2, nj: 1, scattered: None }
    }

    #[test]
    fn a_colour_means_the_same_number_in_every_frame() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.png");
        let frames: [&[f64]; 3] = [&[0.0, 4.0], &[2.0, f64::NAN], &[8.0, 2.0]];
        let pictures: Vec<Picture> = frames.iter().map(|values| picture("step", values)).collect();
        let drawn = Cell::new(0);
        save_animation(&path, &pictures, 25, &|| drawn.set(drawn.get() + 1)).unwrap();
        assert_eq!(drawn.get(), 3);

        let file = io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let control = reader.info().animation_control().unwrap();
        assert_eq!((control.num_frames, control.num_plays), (3, 0));
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        for values in frames {
            let width = reader.next_frame(&mut bytes).unwrap().width as usize;
            let frame = reader.info().frame_control().unwrap();
            assert_eq!((frame.delay_num, frame.delay_den), (1, 25));
            let pixels = bytes.as_chunks::<3>().0;
            // The map's own row of pixels in the middle of the cells, 400 a cell: what has the colour of the cell.
            for value in values.iter().filter(|value| value.is_finite()) {
                let expected = colour(value / 8.0);
                let expected = [expected.0, expected.1, expected.2];
                let rows = pixels.chunks(width).filter(|row| row.iter().filter(|own| **own == expected).count() >= 400);
                assert!(rows.count() >= 160, "{value} of {values:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_animated_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.png");
        let message = |pictures: &[Picture]| save_animation(&path, pictures, 10, &|| {}).unwrap_err().message;
        assert!(message(&[]).contains("nothing to animate"));
        let other = Picture { ni: 1, nj: 2, ..picture("", &[1.0, 2.0]) };
        let said = message(&[picture("", &[1.0, 2.0]), other]);
        assert!(said.contains("2 by 1 and 1 by 2 cells"), "{said}");
        // Found when the file was begun.
        let short = Picture { values: &[1.0], ..picture("", &[]) };
        assert!(message(&[picture("", &[1.0, 2.0]), short]).contains("cannot have 1 values"));
        assert!(!path.exists() && directory.path().read_dir().unwrap().next().is_none());
    }

    #[test]
    fn nothing_finite_is_grey() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.png");
        let nothing = picture("", &[f64::NAN, f64::INFINITY]);
        save_animation(&path, &[nothing, nothing], 10, &|| {}).unwrap();
        assert!(path.metadata().unwrap().len() > 0);
    }
}
