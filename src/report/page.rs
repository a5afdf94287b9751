//! The page: one file that needs nothing beside it.

use super::data::Data;
use crate::terminal::ascii_controls;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use std::io::Write;
use stencilc_runtime::bench::hash;
use stencilc_runtime::{Error, Result};
use tera::{Context, Tera};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");

/// One after the other they are the program of the page.
const PROGRAM: [&str; 5] = [
    include_str!("page/data.js"),
    include_str!("page/charts.js"),
    include_str!("page/plots.js"),
    include_str!("page/table.js"),
    include_str!("page/page.js"),
];

/// Apache ECharts, which draws the plots; `assets/README.md` says where it is from.
const LIBRARY: &[u8] = include_bytes!("../../assets/echarts/echarts.common.min.js");

/// The page as HTML.
///
/// # Errors
/// None that an input makes.
pub fn page(data: &Data, texts: &[String]) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| Error::input(format!("the page cannot be made: {error}"));
    let json = in_script(data).map_err(|error| failed(&error))?;
    let texts = serde_json::to_vec(texts).map_err(|error| failed(&error))?;
    let packed = |bytes: &[u8]| packed(bytes).map_err(|error| failed(&error));
    let mut context = Context::new();
    context.insert("title", data.title());
    // Only scripts that bear this word are run. Nothing that rows hold can know it, since it depends on all of it.
    context.insert("nonce", &hash(&[json.as_bytes(), &texts]));
    context.insert("style", STYLE);
    context.insert("program", &PROGRAM.concat());
    context.insert("data", &json);
    context.insert("texts", &packed(&texts)?);
    context.insert("library", &packed(LIBRARY)?);
    let mut tera = Tera::default();
    // What ends in .html is escaped, but for what the page says is safe.
    tera.add_raw_template("page.html", PAGE).map_err(|error| failed(&error))?;
    tera.render("page.html", &context).map_err(|error| failed(&error))
}

/// JSON that may stand in a `<script>`: without `<`, nothing in it can end the script or begin a comment; and without characters
/// that nobody sees, or that change the order of others.
fn in_script(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(ascii_controls(&serde_json::to_string(value)?).replace('<', "\\u003c"))
}

/// Compressed, and as text. Kernels of one sweep are nearly alike, so that together they take little.
fn packed(bytes: &[u8]) -> std::io::Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_ends_its_script() {
        let texts = ["</script><script>alert(1)</script>", "<!--", "]]>\u{2028}\"'&amp;"];
        let text = in_script(&texts).unwrap();
        assert!(!text.contains('<'));
        assert_eq!(serde_json::from_str::<Vec<String>>(&text).unwrap(), texts);
    }
}
