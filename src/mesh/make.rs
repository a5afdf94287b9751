//! `stencilc mesh make`: meshes to begin with.

use crate::args;
use crate::terminal;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use stencilc_runtime::Result;
use stencilc_runtime::mesh::made::{self, Division, Perturbed, Piece};
use stencilc_runtime::mesh::{self, Mesh};

/// Arguments of `mesh make`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    /// Quadrilaterals around a wing's profile, with the sets and maps of OP2's airfoil
    Airfoil {
        /// Cells around the profile, and from it to the far field; those are nearly squares of which twice as many are around
        #[arg(long, value_name = "NIxNJ", value_parser = args::plane)]
        size: [usize; 2],
        #[command(flatten)]
        out: Out,
    },
    /// Triangles on a sphere, from an icosahedron, with all that a C-grid needs
    Icosahedral {
        /// R2B4: edges of the icosahedron are divided into 2 parts, and then 4 times each triangle into four
        #[arg(long, value_name = "RnBk")]
        size: Division,
        /// Of the sphere, in any unit: its square has to be a number of double precision
        #[arg(long, value_name = "LENGTH", default_value_t = 1.0, allow_negative_numbers = true)]
        radius: f64,
        #[command(flatten)]
        out: Out,
    },
    /// A limited area of an icosahedral grid, with zones: lateral rows at its border, rows that are nudged, and the interior
    Limited {
        /// Of the whole sphere, as of an icosahedral grid: R2B4
        #[arg(long, value_name = "RnBk")]
        size: Division,
        /// Of the sphere, in any unit
        #[arg(long, value_name = "LENGTH", default_value_t = 1.0, allow_negative_numbers = true)]
        radius: f64,
        /// The middle of the area, in degrees to the east and to the north; if not given, the north pole
        #[arg(long, value_name = "EAST,NORTH", default_value = "0,90", value_parser = args::place, allow_negative_numbers = true)]
        centre: [f64; 2],
        /// How far from there vertices are at most whose triangles are all there, in degrees of a great circle
        #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
        within: f64,
        /// How many rows of cells at the border are lateral: their values come from outside
        #[arg(long, value_name = "ROWS", default_value_t = 4)]
        lateral: usize,
        /// How many rows of cells next to those are nudged
        #[arg(long, value_name = "ROWS", default_value_t = 8)]
        nudging: usize,
        #[command(flatten)]
        out: Out,
    },
    /// A rectangle of squares that are cut into two triangles
    Triangles {
        /// Squares along x and y
        #[arg(long, value_name = "NIxNJ", value_parser = args::plane)]
        size: [usize; 2],
        #[command(flatten)]
        moved: Moved,
        #[command(flatten)]
        out: Out,
    },
    /// A box of cubes
    Hexahedra {
        /// Cubes along x, y and z
        #[arg(long, value_name = "NIxNJxNK", value_parser = args::space)]
        size: [usize; 3],
        #[command(flatten)]
        moved: Moved,
        #[command(flatten)]
        out: Out,
    },
}

#[derive(clap::Args)]
struct Moved {
    /// Move the nodes inside at random, by as many lengths of a cell at most: less than 0.25
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    perturb: f64,
    /// Of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = args::seed)]
    seed: u64,
}

#[derive(clap::Args)]
struct Out {
    /// The file to write
    #[arg(short, long = "out", value_name = "FILE.npz")]
    out: PathBuf,
}

/// Makes a mesh.
///
/// # Errors
/// There can be no such mesh, or it cannot be written.
pub fn make(args: &Args, json: bool) -> Result<()> {
    let Args { kind } = args;
    let (Kind::Airfoil { out, .. }
    | Kind::Icosahedral { out, .. }
    | Kind::Limited { out, .. }
    | Kind::Triangles { out, .. }
    | Kind::Hexahedra { out, .. }) = kind;
    mesh::will_save("--out", &out.out)?;
    let mesh = match kind {
        Kind::Airfoil { size: [around, outwards], .. } => made::airfoil(*around, *outwards)?,
        Kind::Icosahedral { size, radius, .. } => made::icosahedral(*size, *radius)?,
        Kind::Limited { size, radius, centre, within, lateral, nudging, .. } => {
            let piece = Piece { centre: *centre, within: *within, lateral: *lateral, nudging: *nudging };
            made::limited(*size, *radius, piece)?
        }
        Kind::Triangles { size: [ni, nj], moved, .. } => made::triangles(*ni, *nj, moved.perturbed())?,
        Kind::Hexahedra { size: [ni, nj, nk], moved, .. } => made::hexahedra(*ni, *nj, *nk, moved.perturbed())?,
    };
    made::check_numbers(&mesh)?;
    mesh::save(&mesh, &out.out)?;
    report(&mesh, &out.out, json)
}

impl Moved {
    fn perturbed(&self) -> Perturbed {
        Perturbed { by: self.perturb, seed: self.seed }
    }
}

/// Says what was written.
fn report(mesh: &Mesh, path: &Path, json: bool) -> Result<()> {
    if json {
        let sets: Map<String, Value> = mesh.sets.iter().map(|set| (set.name.clone(), set.size.into())).collect();
        return terminal::json(&json!({ "files": [path], "sets": sets }));
    }
    let sizes: Vec<String> = mesh.sets.iter().map(|set| format!("{} {}", set.name, set.size)).collect();
    terminal::print(&format!("wrote {}: {}\n", path.display(), sizes.join(", ")))
}
