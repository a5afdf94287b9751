//! Every kind of file that the program reads, made by the program itself where it writes such files, and the calls that read them.

use super::damage::damage;
use super::hostile;
use fastrand::Rng;
use std::fmt::Write;
use std::path::Path;
use stencilc_compiler::grid::Grid;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::plan::Choices;
use stencilc_runtime::bench::hash;
use stencilc_runtime::mesh::{Mesh, made::airfoil};
use stencilc_runtime::tune::database::{Database, Entry};
use stencilc_runtime::{Array, Data, Result, npy};

/// What stands for the path of a file in a call.
pub const FILE: &str = "FILE";

/// A file that is right, and who reads it.
#[derive(Clone, Debug)]
pub struct Original {
    /// What it is.
    pub kind: &'static str,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it has to be, in the folder of the call; anywhere if nothing is said.
    pub place: Option<String>,
    /// How its name ends.
    pub ending: &'static str,
    /// Calls that read it: [`FILE`] is its path.
    pub calls: &'static [&'static str],
    /// How often it is drawn.
    pub weight: usize,
}

/// What calls may write, in the folder of the call: these files, and all in these folders.
pub const WRITTEN: &[&str] = &["res.npy", "res.png", "out.npz", "out.vtu", "page.html", "made", "home", "code"];

/// A program whose fields have several places and types: what its checkpoint says of one suits no other.
pub const OWN: &str = "program own {
    inout a; in z on (k); in n: int; in flat on (i, j); param steps: int = 3
    boundary { i: periodic, j: periodic }
    repeat steps { a = one(a, z, n, flat) }
}
stencil one { in a; in z on (k); in n: int; in flat on (i, j); out b; b = a[i+1] + z + flat[j-1] + if n > 0 { 1 } else { 0 } }";

/// The same over a mesh: fields on two sets, of two types, and a number that a reduction leaves.
pub const OVER: &str = "mesh square { set node, edge, cell; map edge.nodes -> node[2] }
program over over square {
    inout w on node; inout turns: int on cell; out t: real on (); param steps: int = 3
    repeat steps { let y = spread(w); w, t = halved(y); turns = counted(turns) }
}
stencil spread over square.edge { in x on node; inc y on node; y[nodes.0] += x[nodes.1]; y[nodes.1] += x[nodes.0] }
stencil halved over square.node { in y; out x; reduce t: sum; x = y / 2; t += y }
stencil counted over square.cell { in n: int; out m: int; m = n + 1 }";

/// The mesh that it runs over.
const SQUARE: &str = include_str!("../../../tests/data/mesh_files/square_2_text.msh");

/// Files that are there in the folder of every call.
pub const GIVEN: &[(&str, &str)] = &[("own.stn", OWN), ("over.stn", OVER), ("square.msh", SQUARE)];

/// Calls that make files, and what they make.
pub const MADE: &[(&str, &str)] = &[
    ("grid make quadtree --size 4x3 --depth 1 -o grid.npz", "grid.npz"),
    ("mesh make airfoil --size 6x4 -o mesh.npz", "mesh.npz"),
    ("run own.stn --grid 8x8x2 --set steps=3 --draw --checkpoint way.npz --device cpu", "way.npz"),
    ("run over.stn --mesh square.msh --set steps=3 --draw --checkpoint over.npz --device cpu", "over.npz"),
    ("bench laplap --device cpu --grid 9x7x2 --runs 1 -o rows.jsonl", "rows.jsonl"),
    ("snapshot laplap --accept -o code", "code/kernels.txt"),
];

/// A call that makes an entry of the cache, in the folder `home`.
pub const EMULATED: &str = "run laplap --grid 9x7x2 --device emulate";

/// The stencil that arrays, grids, tuned files and rows are of.
const LAPLAP: &str = include_str!("../../../stencils/laplap.stn");

/// An array as the call `run laplap --grid 9x7x2` takes it.
fn powers(convert: impl Fn(Vec<f64>) -> Data) -> Vec<u8> {
    let numbers = (0..9 * 7 * 2).map(|cell| f64::from(cell % 9).powi(2)).collect();
    let mut bytes = Vec::new();
    npy::write(&mut bytes, &Array { shape: vec![2, 7, 9], data: convert(numbers) }).expect("there is memory");
    bytes
}

/// A mesh as the text of OP2's airfoil.
fn op2(mesh: &Mesh) -> String {
    let size = |set: &str| mesh.set_named(set).map_or(0, |set| mesh.sets[set].size);
    let row = |set: &str, map: &str, at: usize| {
        let map = mesh.set_named(set).and_then(|set| mesh.map_named(set, map)).map(|map| &mesh.maps[map]);
        map.map_or(&[][..], |map| map.row(at)).iter().map(i32::to_string).collect::<Vec<_>>().join(" ")
    };
    let number = |field: &str, at: usize| mesh.field_named(field).map_or(0.0, |field| field.data.get(at));
    let mut text = format!("{} {} {} {}\n", size("node"), size("cell"), size("edge"), size("bedge"));
    let mut line = |line: String| writeln!(text, "{line}").expect("texts grow");
    (0..size("node")).for_each(|at| line(format!("{} {}", number("x", 2 * at), number("x", 2 * at + 1))));
    (0..size("cell")).for_each(|at| line(row("cell", "nodes", at)));
    (0..size("edge")).for_each(|at| line(format!("{} {}", row("edge", "nodes", at), row("edge", "cells", at))));
    (0..size("bedge")).for_each(|at| {
        line(format!("{} {} {}", row("bedge", "nodes", at), row("bedge", "cell", at), number("bound", at)));
    });
    text
}

/// The file of what was tuned for `laplap` on 37x11x4, and where it is below the folder of such files.
fn tuned() -> Result<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().map_err(|error| stencilc_runtime::Error::input(error.to_string()))?;
    let choices = Choices { access: "zloop".to_owned(), ..Choices::default() };
    let entry = Entry {
        stencil: "laplap".to_owned(),
        precision: Precision::F64,
        grid: "37x11x4".to_owned(),
        extents: Grid::rows(37, 11, 4),
        neighbours: None,
        options: choices.words(),
        choices,
        plan: None,
        median_us: 4.5,
        of_limit: Some(0.9),
        among: 2,
        tried: 2,
        date: "2026-01-01T00:00:00Z".to_owned(),
        driver: Some("13.0".to_owned()),
        compiler: Some("NVRTC 13.0".to_owned()),
        stencilc: "0.1.0".to_owned(),
    };
    let kept = Database::at(folder.path().to_owned()).keep("GPU", Some("sm_90"), &hash(&[LAPLAP.as_bytes()]), entry)?;
    let place = kept.strip_prefix(folder.path()).unwrap_or(&kept).display().to_string();
    let bytes = std::fs::read(&kept).map_err(|error| stencilc_runtime::Error::input(error.to_string()))?;
    Ok((place, bytes))
}

const ARRAY: &[&str] = &[
    "run laplap --in phi=FILE --out res=res.npy --plot res=res.png --device cpu",
    "run laplap --in phi=FILE --cast --precision f32 --out res=res.npy --device cpu",
    "run laplap --in phi=FILE --cast --out res=res.npy --device emulate",
    "grid make quadtree --size 4x3 --depth 2 --refine FILE -o out.npz",
];
const GRID: &[&str] = &[
    "run laplap --grid FILE --levels 2 --out res=res.npy --device cpu",
    "grid info laplap --grid FILE",
    "run laplap --grid FILE --levels 2 --out res=res.npy --device emulate",
    "build laplap --grid FILE --levels 2 -o made",
    "build laplap --grid FILE --levels 2 --storage compressed --layout hilbert -o made",
];
const MESH: &[&str] = &[
    "mesh info FILE",
    "mesh convert FILE -o out.npz",
    "mesh convert FILE -o out.vtu",
    "mesh reorder FILE --method rcm --set cell -o out.npz",
    "mesh reorder FILE --method hilbert --set cell -o out.npz",
    "run airfoil --mesh FILE --set steps=2 --device cpu --out q=out.npz",
    "run airfoil --mesh FILE --set steps=1 --device emulate --out q=out.npz",
];
const CHECKPOINT: &[&str] = &[
    "run own.stn --set steps=5 --resume FILE --device cpu --out a=res.npy",
    "run own.stn --set steps=5 --resume FILE --device emulate --out a=res.npy",
];
const CHECKPOINT_OVER: &[&str] = &[
    "run over.stn --mesh square.msh --set steps=5 --resume FILE --device cpu --out w=res.npy",
    "run over.stn --mesh square.msh --set steps=5 --resume FILE --device emulate --out w=res.npy",
];
const ROWS: &[&str] = &["report FILE -o page.html", "bench laplap --device cpu --grid 9x7x2 --runs 1 -o FILE"];
const TEXT: &[&str] = &[
    "check FILE",
    "check FILE --json",
    "explain FILE",
    "test FILE",
    "build FILE -o made",
    "build FILE --emit cuda",
    "run FILE --grid 12x11x4 --draw --device cpu",
    "snapshot FILE --accept -o code",
];
const TUNED: &[&str] = &["build laplap --grid 37x11x4 -o made"];
const LIST: &[&str] = &["snapshot laplap -o code", "snapshot laplap --accept -o code"];

/// Every kind of file. `made` gives what a call of [`MADE`] made, `cached` an entry of the cache with its path in the folder `home`,
/// `texts` some stencils.
///
/// # Errors
/// Something cannot be made.
pub fn originals(
    made: &dyn Fn(&str) -> Vec<u8>,
    cached: Option<(String, Vec<u8>)>,
    texts: &[String],
) -> Result<Vec<Original>> {
    let own = |kind, ending, bytes, calls, weight| Original { kind, bytes, place: None, ending, calls, weight };
    let mut all = vec![
        own("array", "npy", powers(Data::F64), ARRAY, 3),
        own(
            "array of whole numbers",
            "npy",
            powers(|all| Data::I32(all.iter().map(|&x| x as i32).collect())),
            ARRAY,
            1,
        ),
        own(
            "array of truths",
            "npy",
            powers(|all| Data::Bool(all.iter().map(|&x| u8::from(x > 3.0)).collect())),
            &ARRAY[1..],
            1,
        ),
        own("grid", "npz", made("grid.npz"), GRID, 9),
        own("mesh", "npz", made("mesh.npz"), MESH, 9),
        own("text of OP2", "dat", op2(&airfoil(6, 4)?).into_bytes(), MESH, 3),
        own("checkpoint", "npz", made("way.npz"), CHECKPOINT, 6),
        own("checkpoint over a mesh", "npz", made("over.npz"), CHECKPOINT_OVER, 6),
        own("rows", "jsonl", made("rows.jsonl"), ROWS, 4),
    ];
    let gmsh = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/mesh_files");
    for name in ["square_2_text", "square_2_binary", "square_4_text", "square_4_binary", "cube_4_binary"] {
        let bytes = std::fs::read(gmsh.join(name).with_extension("msh"));
        all.push(own("mesh of Gmsh", "msh", bytes.expect("it comes along"), &MESH[..5], 1));
    }
    all.extend(texts.iter().map(|text| own("text", "stn", text.clone().into_bytes(), TEXT, 1)));
    let (place, bytes) = tuned()?;
    let place = Some(format!("home/tuned/{place}"));
    all.push(Original { place, ..own("tuned", "json", bytes, TUNED, 3) });
    let place = Some("code/kernels.txt".to_owned());
    all.push(Original { place, ..own("list of kernels", "txt", made("code/kernels.txt"), LIST, 2) });
    if let Some((place, bytes)) = cached {
        all.push(Original { place: Some(place), ..own("entry of the cache", "bin", bytes, &[EMULATED], 1) });
    }
    Ok(all)
}

/// A call that reads a damaged file.
#[derive(Clone, Debug)]
pub struct Attack {
    /// What the file was.
    pub kind: &'static str,
    /// Where it is, in the folder of the call.
    pub path: String,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// The arguments of the call.
    pub arguments: Vec<String>,
}

impl Attack {
    /// The attack of a seed.
    pub fn new(originals: &[Original], seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6461_6d61_6765);
        let all: usize = originals.iter().map(|own| own.weight).sum();
        let mut left = rng.usize(0..all);
        let weighed = |own: &&Original| {
            let is_it = left < own.weight;
            left = left.saturating_sub(own.weight);
            is_it
        };
        let own = originals.iter().find(weighed).unwrap_or(&originals[0]);
        let other = &originals[rng.usize(0..originals.len())].bytes;
        let ending = own.ending;
        let path = match (&own.place, rng.u8(0..3)) {
            (Some(place), _) => place.clone(),
            (None, 0) => format!("{}.{ending}", hostile::name(&mut rng)),
            (None, _) => format!("a.{ending}"),
        };
        // Now and then only the name is hostile.
        let is_whole = own.place.is_none() && path != format!("a.{ending}") && rng.u8(0..4) == 0;
        let bytes = if is_whole { own.bytes.clone() } else { damage(&mut rng, &own.bytes, other) };
        let call = own.calls[rng.usize(0..own.calls.len())];
        let arguments = call.split(' ').map(|word| word.replace(FILE, &path)).collect();
        Self { kind: own.kind, path, bytes, arguments }
    }
}
