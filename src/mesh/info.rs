//! `stencilc mesh info`: what a mesh consists of, and how far apart lies what is used together.

use crate::{output, terminal};
use clap::ValueHint;
use serde::Serialize;
use std::path::PathBuf;
use stencilc_runtime::Result;
use stencilc_runtime::files::Kind;
use stencilc_runtime::mesh::statistics::{OfField, OfMap, Spread};
use stencilc_runtime::mesh::{self, Mesh};

/// Arguments of `mesh info`.
#[derive(clap::Args)]
pub struct Args {
    /// The file of a mesh
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Draw the cells at their places, coloured by their numbers
    #[arg(long, value_name = "FILE.png", value_hint = ValueHint::FilePath)]
    picture: Option<PathBuf>,
    /// What is drawn: the elements that this map leads from, to their corners
    #[arg(long, value_name = "SET.MAP", requires = "picture")]
    cells: Option<String>,
}

/// What is printed.
#[derive(Serialize)]
struct Info {
    file: String,
    sets: serde_json::Map<String, serde_json::Value>,
    maps: Vec<OfMap>,
    fields: Vec<OfField>,
}

/// Says what a mesh consists of.
///
/// # Errors
/// The file holds no mesh, or the picture cannot be drawn.
pub fn info(args: &Args, json: bool) -> Result<()> {
    if let Some(path) = &args.picture {
        output::check("--picture", path, "png", Kind::Picture)?;
    }
    let mesh = mesh::load(&args.file)?;
    let info = Info::new(&mesh);
    if let Some(path) = &args.picture {
        mesh::picture(&mesh, args.cells.as_deref(), &mesh.origin, path)?;
    }
    match json {
        true => terminal::json(&info),
        false => terminal::print(&info.text()),
    }
}

impl Info {
    fn new(mesh: &Mesh) -> Self {
        Self {
            file: mesh.origin.clone(),
            sets: mesh.sets.iter().map(|set| (set.name.clone(), set.size.into())).collect(),
            maps: mesh.maps.iter().map(|map| OfMap::new(mesh, map)).collect(),
            fields: mesh.fields.iter().map(|field| OfField::new(mesh, field)).collect(),
        }
    }

    /// The same, to be read.
    fn text(&self) -> String {
        let count = |number: usize, what: &str| terminal::count(number, what);
        let mut text = format!(
            "{}: {}, {}, {}\n\n",
            self.file,
            count(self.sets.len(), "set"),
            count(self.maps.len(), "map"),
            count(self.fields.len(), "field")
        );
        let mut rows = vec![["set", "elements"].map(str::to_owned).to_vec()];
        rows.extend(self.sets.iter().map(|(name, size)| vec![name.clone(), size.to_string()]));
        text.push_str(&terminal::table(&rows, &[1]));
        if !self.maps.is_empty() {
            text.push('\n');
            text.push_str(&self.maps());
        }
        if !self.fields.is_empty() {
            text.push('\n');
            text.push_str(&self.fields());
        }
        text
    }

    fn maps(&self) -> String {
        let head = [
            "map", "leads to", "slots", "holes", "repeated", "unused", "uses", "most", "in a row", "most", "sharing",
            "most",
        ];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        let spread = |Spread { mean, most }: Spread| [format!("{mean:.1}"), most.to_string()];
        rows.extend(self.maps.iter().map(|map| {
            let numbers = [map.slots, map.holes, map.repeated, map.unused].map(|number| number.to_string());
            let names = [map.name.clone(), map.to.clone()];
            let spreads = [map.uses, map.row, map.shared].map(spread);
            names.into_iter().chain(numbers).chain(spreads.into_iter().flatten()).collect()
        }));
        let table = terminal::table(&rows, &(2..head.len()).collect::<Vec<usize>>());
        format!(
            "{table}  holes: slots that lead nowhere; repeated: rows that lead to one element more than once; unused: elements that no \
             slot leads to\n  \
             uses: slots that lead to an element, on average and at most; the other numbers say how far apart numbers are:\n  \
             in a row: of the elements that a row leads to; sharing: of the elements that lead to the same one\n"
        )
    }

    fn fields(&self) -> String {
        let mut rows = vec![["field", "type", "parts", "least", "greatest", "not finite"].map(str::to_owned).to_vec()];
        rows.extend(self.fields.iter().map(|field| {
            let [least, greatest] = field.range.map_or(["", ""].map(str::to_owned), |range| range.map(shown));
            let name = field.name.clone();
            vec![name, field.element.to_owned(), field.parts.to_string(), least, greatest, field.not_finite.to_string()]
        }));
        terminal::table(&rows, &[2, 3, 4, 5])
    }
}

/// A number in six digits or fewer.
fn shown(number: f64) -> String {
    let rounded: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    match rounded.abs() {
        0.0 | 1e-4..1e9 => rounded.to_string(),
        _ => format!("{rounded:e}"),
    }
}
