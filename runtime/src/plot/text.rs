//! Text in pictures, and what it is drawn with.

use super::axis::Axis;
use super::scale::{Label, Scale};
use super::{Picture, Scattered};
use crate::error::{Error, Result};
use plotters::backend::{BitMapBackend, RGBPixel};
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{PathElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, FontStyle, IntoFont, RGBColor, TextStyle, register_font};
use std::ops::Range;
use std::sync::OnceLock;

/// DejaVu Sans, cut to Latin-1 and a few symbols (its licence lies beside it). Fonts of the system
/// may be missing or look different.
pub(super) const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");

/// The name that [`FONT`] is registered under.
pub(super) const FONT_NAME: &str = "stencilc";

/// The size of the title's letters in pixels. The library shifts letters by half of it, so an odd
/// size would round those below and above the line apart.
pub(super) const TITLE: usize = 20;

/// The size of all other letters in pixels, even for the same reason.
pub(super) const LABEL: usize = 16;

/// Cells that are not finite.
pub(super) const GREY: RGBColor = RGBColor(160, 160, 160);

/// What stands below the title: the size, the range, what is grey or averaged.
pub(super) fn caption(picture: &Picture<'_>, scale: Option<Scale>) -> String {
    let &Picture { ni, nj, values, scattered, .. } = picture;
    let mut caption = match scattered {
        Some(Scattered { count, what, .. }) => format!("{count} {what} at their places"),
        None => format!("{ni} × {nj} cells"),
    };
    match scale {
        Some(scale) if scale.low < scale.high => {
            let [low, high] = scale.ends();
            caption += &format!(", {} to {}", low.text, high.text);
        }
        Some(scale) => caption += &format!(", all {}", Label::exact(scale.low).text),
        None => {}
    }
    let grey = values.iter().filter(|value| !value.is_finite()).count();
    match grey {
        0 => {}
        _ if let Some(Scattered { what, .. }) = scattered => caption += &format!("; grey: no {what}, or not finite"),
        1 => caption += "; 1 cell not finite, grey",
        _ => caption += &format!("; {grey} cells not finite, grey"),
    }
    let (i, j) = Axis::pair(ni, nj);
    if i.block > 1 || j.block > 1 {
        caption += &format!("; means over {} × {}", i.block, j.block);
    }
    caption
}

/// Makes [`FONT`] known to the drawing library, once.
pub(super) fn register() -> Result<()> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = DONE.get_or_init(|| register_font(FONT_NAME, FontStyle::Normal, FONT).is_ok());
    if *done { Ok(()) } else { Err(Error::input("cannot draw: the built-in font is damaged")) }
}

/// Black letters of `size` pixels.
pub(super) fn text_style(size: usize) -> TextStyle<'static> {
    (FONT_NAME, size as f64).into_font().color(&BLACK)
}

/// `text`, cut to `room` pixels.
pub(super) fn fitted(text: &str, style: &TextStyle<'_>, room: usize) -> Result<String> {
    let mut shown: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // No letter that matters is narrower than two pixels.
    let mut cut = shown.len() > room / 2;
    shown.truncate(room / 2);
    loop {
        let end = if cut { "…" } else { "" };
        let candidate: String = shown.iter().copied().chain(end.chars()).collect();
        let (width, _) = style.font.box_size(&candidate).map_err(cannot_draw)?;
        if width as usize <= room || shown.pop().is_none() {
            return Ok(candidate);
        }
        cut = true;
    }
}

/// The error of a drawing that failed.
pub(super) fn cannot_draw(error: impl std::fmt::Display) -> Error {
    Error::input(format!("cannot draw the picture: {error}"))
}

/// Draws lines and letters in pixel coordinates.
pub(super) struct Pen<'a, 'b> {
    pub(super) canvas: &'a DrawingArea<BitMapBackend<'b, RGBPixel>, Shift>,
}

impl Pen<'_, '_> {
    pub(super) fn line(&self, from: (usize, usize), to: (usize, usize)) -> Result<()> {
        let points = [from, to].map(|(x, y)| (x as i32, y as i32));
        self.canvas.draw(&PathElement::new(points, BLACK)).map_err(cannot_draw)
    }

    /// A frame around pixels, not over them.
    pub(super) fn frame(&self, x: Range<usize>, y: Range<usize>) -> Result<()> {
        let (left, top, right, bottom) = (x.start - 1, y.start - 1, x.end, y.end);
        self.line((left, top), (right, top))?;
        self.line((right, top), (right, bottom))?;
        self.line((right, bottom), (left, bottom))?;
        self.line((left, bottom), (left, top))
    }

    pub(super) fn write(
        &self,
        text: &str,
        x: usize,
        y: usize,
        style: &TextStyle<'_>,
        horizontal: HPos,
        vertical: VPos,
    ) -> Result<()> {
        let style = style.clone().pos(Pos::new(horizontal, vertical));
        self.canvas.draw(&Text::new(text, (x as i32, y as i32), style)).map_err(cannot_draw)
    }
}
