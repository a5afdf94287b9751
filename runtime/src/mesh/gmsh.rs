//! Gmsh's `.msh` files, versions 2.2 and 4.1, as text or binary.
//!
//! Format: C. Geuzaine, J.-F. Remacle, "Gmsh Reference Manual", section "MSH file format" and "MSH file format version 2 (Legacy)".
//! The crate `mshio` reads version 4.1 alone.

use super::check::plural;
use super::sides::add_sides;
use super::{HOLE, Mesh};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::given::Real;
use crate::memory;
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

/// How every such file begins.
pub(super) const MAGIC: &[u8] = b"$MeshFormat";

/// Bytes that a node takes on its way into a mesh at least: its number by its tag, and where it is.
const A_NODE: u128 = 60;

/// Bytes that an element takes at least: its corners, once by themselves and once in a table, and its sides.
const AN_ELEMENT: u128 = 100;

const WRITE_AGAIN: &str = "the file is damaged or was not written to its end; write it again";

/// What is read of a file.
#[derive(Default)]
struct Found {
    /// Of each node its tag and where it is.
    nodes: Vec<(u64, [f64; 3])>,
    elements: Vec<Element>,
    /// The tags of the nodes of all elements, one after the other.
    corners: Vec<u64>,
    /// The first physical tag of each geometrical entity, by its dimension and tag.
    physical: HashMap<(i32, i32), i32>,
}

/// An element: which, how many dimensions it has, its physical tag or 0, and which corners are its nodes.
struct Element {
    tag: u64,
    dimension: i32,
    physical: i32,
    nodes: Range<usize>,
}

impl Found {
    /// Takes the corners of an element; gives which they are.
    fn corners(&mut self, count: usize, mut next: impl FnMut() -> Result<u64>) -> Result<Range<usize>> {
        let first = self.corners.len();
        for _ in 0..count {
            self.corners.push(next()?);
        }
        Ok(first..self.corners.len())
    }
}

/// Reads a mesh, which is not checked yet.
pub(super) fn read(mut file: impl Read, length: u64) -> Result<Mesh> {
    let bytes = memory::read(&mut file, length, "the bytes of the file")?;
    let mut text = Text { bytes: &bytes, at: 0, is_binary: false, is_big: false, section: String::new() };
    let mut found = Found::default();
    let mut version = 0;
    while let Some(line) = text.line() {
        let Some(section) = line.strip_prefix('$') else {
            if line.is_empty() {
                continue;
            }
            let shown: String = line.escape_debug().take(40).collect();
            return Err(text.wrong(&format!("\"{shown}\" stands where a section should begin")));
        };
        let section = section.to_owned();
        text.section.clone_from(&section);
        match (section.as_str(), version) {
            ("MeshFormat", _) => version = text.format()?,
            (_, 0) => return Err(Error::input("it does not say its version first").help(WRITE_AGAIN)),
            ("Nodes", 2) => text.nodes_2(&mut found)?,
            ("Elements", 2) => text.elements_2(&mut found)?,
            ("Entities", _) => text.entities(&mut found)?,
            ("Nodes", _) => text.nodes_4(&mut found)?,
            ("Elements", _) => text.elements_4(&mut found)?,
            (_, _) => {}
        }
        text.end(&section)?;
    }
    mesh(&found)
}

/// A file that is read from its beginning to its end.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
    is_binary: bool,
    is_big: bool,
    section: String,
}

impl Text<'_> {
    /// The next line.
    fn line(&mut self) -> Option<String> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        self.at += (length + 1).min(rest.len());
        Some(String::from_utf8_lossy(&rest[..length]).trim().to_owned())
    }

    /// An error where the file is being read.
    fn wrong(&self, what: &str) -> Error {
        let place = match self.is_binary {
            true => format!("byte {}", self.at),
            false => format!("line {}", self.bytes[..self.at].iter().filter(|&&byte| byte == b'\n').count() + 1),
        };
        Error::input(format!("{place}: {what}")).help(WRITE_AGAIN)
    }

    fn ended(&self) -> Error {
        Error::input(format!("it ends within ${}", self.section)).help(WRITE_AGAIN)
    }

    /// The version, 2 or 4, and whether numbers are text.
    fn format(&mut self) -> Result<u32> {
        let line = self.line().ok_or_else(|| self.ended())?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[version, kind, size] = words.as_slice() else {
            return Err(self.wrong("the version, the kind of file and the size of a number should be here"));
        };
        let number = match version {
            "2" | "2.0" | "2.1" | "2.2" => 2,
            "4.1" => 4,
            _ => {
                let shown: String = version.escape_debug().take(20).collect();
                return Err(Error::input(format!("version {shown} of the format is not known: 2.2 and 4.1 are"))
                    .help("write it again by `gmsh FILE.msh -save -format msh41 -o NEW.msh`"));
            }
        };
        self.is_binary = kind == "1";
        if size != "8" {
            return Err(self.wrong("numbers of 8 bytes are needed"));
        }
        if self.is_binary {
            let one = self.take::<4>()?;
            self.is_big = i32::from_be_bytes(one) == 1;
        }
        Ok(number)
    }

    /// Goes behind the end of a section.
    fn end(&mut self, section: &str) -> Result<()> {
        let end = format!("$End{section}");
        let found = self.bytes[self.at..].windows(end.len()).position(|window| window == end.as_bytes());
        self.at += found.ok_or_else(|| self.ended())? + end.len();
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes[self.at..].first_chunk::<N>().ok_or_else(|| self.ended())?;
        self.at += N;
        Ok(*bytes)
    }

    /// The next word of a text.
    fn word(&mut self) -> Result<&str> {
        let rest = &self.bytes[self.at..];
        let start = rest.iter().position(|byte| !byte.is_ascii_whitespace()).ok_or_else(|| self.ended())?;
        let length = rest[start..].iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len() - start);
        self.at += start;
        if rest[start] == b'$' {
            return Err(self.wrong(&format!("${} ends too early", self.section)));
        }
        self.at += length;
        std::str::from_utf8(&rest[start..start + length]).map_err(|_| self.wrong("this is no number"))
    }

    fn parsed<T: std::str::FromStr>(&mut self) -> Result<T> {
        let word = self.word()?;
        let shown: String = word.escape_debug().take(40).collect();
        let parsed = word.parse();
        parsed.map_err(|_| self.wrong(&format!("\"{shown}\" is not the number that should be there")))
    }

    fn int(&mut self) -> Result<i32> {
        if !self.is_binary {
            return self.parsed();
        }
        let bytes = self.take::<4>()?;
        Ok(if self.is_big { i32::from_be_bytes(bytes) } else { i32::from_le_bytes(bytes) })
    }

    fn size(&mut self) -> Result<u64> {
        if !self.is_binary {
            return self.parsed();
        }
        let bytes = self.take::<8>()?;
        Ok(if self.is_big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn real(&mut self) -> Result<f64> {
        if !self.is_binary {
            return self.parsed().map(|Real(number)| number);
        }
        let bytes = self.take::<8>()?;
        Ok(if self.is_big { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) })
    }

    fn point(&mut self) -> Result<[f64; 3]> {
        Ok([self.real()?, self.real()?, self.real()?])
    }

    /// A number in a line of its own, which is text in binary files, too.
    fn count(&mut self) -> Result<u64> {
        let line = self.line().ok_or_else(|| self.ended())?;
        line.parse().map_err(|_| self.wrong("how many there are should be here"))
    }

    fn nodes_2(&mut self, found: &mut Found) -> Result<()> {
        for _ in 0..self.count()? {
            let tag = self.tag()?;
            found.nodes.push((tag, self.point()?));
        }
        Ok(())
    }

    /// A tag, which version 2 writes as an int.
    fn tag(&mut self) -> Result<u64> {
        let tag = self.int()?;
        u64::try_from(tag).map_err(|_| self.wrong(&format!("the tag {tag} is negative")))
    }

    fn elements_2(&mut self, found: &mut Found) -> Result<()> {
        let mut left = self.count()?;
        while left > 0 {
            // Text has a head for each element, binary files one for many.
            let own = if self.is_binary { None } else { Some(self.tag()?) };
            let kind = self.int()?;
            let in_block = if self.is_binary { self.tag()? } else { 1 };
            let tags = self.int()?;
            let (dimension, nodes) = self.shape(kind)?;
            if in_block == 0 || in_block > left {
                return Err(self.wrong(&format!("{in_block} elements are in a block, and {left} are left")));
            }
            for _ in 0..in_block {
                let tag = own.map_or_else(|| self.tag(), Ok)?;
                let mut physical = 0;
                for number in 0..tags {
                    let value = self.int()?;
                    physical = if number == 0 { value } else { physical };
                }
                let nodes = found.corners(nodes, || self.tag())?;
                found.elements.push(Element { tag, dimension, physical, nodes });
            }
            left -= in_block;
        }
        Ok(())
    }

    fn entities(&mut self, found: &mut Found) -> Result<()> {
        let counts = [self.size()?, self.size()?, self.size()?, self.size()?];
        for (dimension, count) in (0..).zip(counts) {
            for _ in 0..count {
                let tag = self.int()?;
                for _ in 0..if dimension == 0 { 3 } else { 6 } {
                    self.real()?;
                }
                for number in 0..self.size()? {
                    let physical = self.int()?;
                    if number == 0 {
                        found.physical.insert((dimension, tag), physical);
                    }
                }
                for _ in 0..if dimension == 0 { 0 } else { self.size()? } {
                    self.int()?;
                }
            }
        }
        Ok(())
    }

    fn nodes_4(&mut self, found: &mut Found) -> Result<()> {
        let [blocks, ..] = [self.size()?, self.size()?, self.size()?, self.size()?];
        for _ in 0..blocks {
            let (dimension, _, parametric) = (self.int()?, self.int()?, self.int()?);
            let count = self.size()?;
            let mut tags = Vec::new();
            for _ in 0..count {
                tags.push(self.size()?);
            }
            for tag in tags {
                found.nodes.push((tag, self.point()?));
                for _ in 0..if parametric == 1 { dimension } else { 0 } {
                    self.real()?;
                }
            }
        }
        Ok(())
    }

    fn elements_4(&mut self, found: &mut Found) -> Result<()> {
        let [blocks, ..] = [self.size()?, self.size()?, self.size()?, self.size()?];
        for _ in 0..blocks {
            let (dimension, entity, kind) = (self.int()?, self.int()?, self.int()?);
            let count = self.size()?;
            let (own, nodes) = self.shape(kind)?;
            let physical = found.physical.get(&(dimension, entity)).copied().unwrap_or(0);
            for _ in 0..count {
                let tag = self.size()?;
                let nodes = found.corners(nodes, || self.size())?;
                found.elements.push(Element { tag, dimension: own, physical, nodes });
            }
        }
        Ok(())
    }

    /// How many dimensions and nodes elements of a type have.
    fn shape(&self, kind: i32) -> Result<(i32, usize)> {
        match kind {
            1 => Ok((1, 2)),
            2 => Ok((2, 3)),
            3 => Ok((2, 4)),
            4 => Ok((3, 4)),
            5 => Ok((3, 8)),
            6 => Ok((3, 6)),
            7 => Ok((3, 5)),
            15 => Ok((0, 1)),
            _ => Err(self.wrong(&format!("elements of type {kind} are not known")).help(
                "lines, triangles, quadrilaterals, tetrahedra, hexahedra, prisms and pyramids of first order are: \
                       `gmsh -order 1`",
            )),
        }
    }
}

/// The mesh of what was found: elements of the highest dimension are its cells.
fn mesh(found: &Found) -> Result<Mesh> {
    let dimension = found.elements.iter().map(|element| element.dimension).max().unwrap_or(0);
    if dimension < 2 {
        return Err(Error::input("it holds no triangles, tetrahedra or other cells").help(
            "mesh surfaces or volumes before saving; if there are physical groups, Gmsh saves only what is in one",
        ));
    }
    let (nodes, elements) = (found.nodes.len(), found.elements.len());
    let bytes = nodes as u128 * A_NODE + elements as u128 * AN_ELEMENT;
    memory::check(bytes, &format!("a mesh of {nodes} nodes and {elements} elements takes"), memory::HELP)?;
    let mut tags = HashMap::new();
    for (number, (tag, _)) in found.nodes.iter().enumerate() {
        if tags.insert(*tag, number).is_some() {
            return Err(Error::input(format!("there are two nodes with the tag {tag}")).help(WRITE_AGAIN));
        }
    }
    let numbered = |element: &Element| {
        let number = |tag: &u64| {
            tags.get(tag).copied().ok_or_else(|| {
                Error::input(format!("element {} has the node {tag}, which there is not", element.tag))
                    .help(WRITE_AGAIN)
            })
        };
        found.corners[element.nodes.clone()].iter().map(number).collect::<Result<Vec<usize>>>()
    };
    let of = |wanted: i32| found.elements.iter().filter(move |element| element.dimension == wanted);
    let cells = of(dimension).map(numbered).collect::<Result<Vec<_>>>()?;
    // Nodes of no cell only helped to make the mesh.
    let mut is_used = vec![false; found.nodes.len()];
    cells.iter().flatten().for_each(|&node| is_used[node] = true);
    let used: Vec<[f64; 3]> =
        found.nodes.iter().zip(&is_used).filter(|(_, used)| **used).map(|((_, x), _)| *x).collect();
    let mut next = 0;
    let numbers: Vec<i32> = is_used
        .iter()
        .map(|&used| {
            next += i32::from(used);
            if used { next - 1 } else { HOLE }
        })
        .collect();
    let is_flat = used.iter().all(|place| place[2] == 0.0);

    let mut mesh = Mesh::default();
    let (node, cell) = (mesh.add_set("node", used.len()), mesh.add_set("cell", cells.len()));
    let arity = cells.iter().map(Vec::len).max().unwrap_or(1);
    let mut table = Vec::with_capacity(arity * cells.len());
    for corners in &cells {
        let mut row: Vec<i32> = corners.iter().map(|&corner| numbers[corner]).collect();
        if dimension == 2 && is_flat && area(&row, &used) < 0.0 {
            row.reverse();
        }
        row.resize(arity, HOLE);
        table.extend(row);
    }
    let cell_nodes = mesh.add_map(cell, "nodes", node, arity, table);
    let parts = if is_flat { 2 } else { 3 };
    mesh.add_field("x", node, parts, Data::F64(used.iter().flat_map(|place| place[..parts].to_vec()).collect()));
    mesh.add_field("tag", cell, 1, Data::I32(of(dimension).map(|element| element.physical).collect()));
    let (side, is_solid) = if dimension == 3 { ("face", true) } else { ("edge", false) };
    add_sides(&mut mesh, cell_nodes, side, is_solid)?;

    // Elements of one dimension less say what part of the border a side is.
    let sorted = |mut nodes: Vec<i32>| {
        nodes.retain(|&node| node != HOLE);
        nodes.sort_unstable();
        nodes
    };
    let mut marks = HashMap::new();
    for element in of(dimension - 1) {
        marks.insert(sorted(numbered(element)?.iter().map(|&node| numbers[node]).collect()), element.physical);
    }
    let border = mesh.set_named(&format!("b{side}")).unwrap_or(cell);
    let marked: Vec<i32> = match mesh.map_named(border, "nodes").map(|map| &mesh.maps[map]) {
        Some(map) => (0..mesh.sets[border].size)
            .map(|side| marks.get(&sorted(map.row(side).to_vec())).copied().unwrap_or(0))
            .collect(),
        None => return Err(Error::check(format!("the mesh has no {} on its border", plural(side)))),
    };
    mesh.add_field("bound", border, 1, Data::I32(marked));
    Ok(mesh)
}

/// Twice the area of a polygon of the plane, negative if it goes clockwise.
fn area(row: &[i32], places: &[[f64; 3]]) -> f64 {
    let place = |at: usize| places[row[at % row.len()] as usize];
    (0..row.len()).map(|at| place(at)[0] * place(at + 1)[1] - place(at + 1)[0] * place(at)[1]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::load;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn file(name: &str) -> PathBuf {
        Path::new("../tests/data/mesh_files").join(name)
    }

    fn size(mesh: &Mesh, set: &str) -> usize {
        mesh.sets[mesh.set_named(set).unwrap()].size
    }

    fn count(mesh: &Mesh, field: &str, set: &str, wanted: f64) -> usize {
        let field = mesh.field_on(field, mesh.set_named(set).unwrap(), None).unwrap();
        (0..field.data.len()).filter(|&at| field.data.get(at) == wanted).count()
    }

    #[test]
    fn all_versions_of_a_file_are_one_mesh() {
        for name in ["square", "cube"] {
            let meshes = ["2_text", "2_binary", "4_text", "4_binary"].map(|how| {
                let mut mesh = load(&file(&format!("{name}_{how}.msh"))).unwrap();
                mesh.origin.clear();
                // Text has 16 digits.
                for field in &mut mesh.fields {
                    if let Data::F64(x) = &mut field.data {
                        x.iter_mut().for_each(|x| *x = (*x * 1e12).round());
                    }
                }
                mesh
            });
            assert!(meshes.iter().all(|mesh| *mesh == meshes[0]), "{name}");
        }
    }

    #[test]
    fn a_square_of_triangles_and_quadrilaterals() {
        let mesh = load(&file("square_4_text.msh")).unwrap();
        // Two by two squares on each half; those on the left are cut in two.
        let sizes = ["node", "cell", "edge", "bedge"].map(|set| size(&mesh, set));
        assert_eq!(sizes, [15, 12, 14, 12]);
        assert_eq!((mesh.maps[0].arity, mesh.maps[0].holes()), (4, 8));
        assert_eq!((count(&mesh, "tag", "cell", 10.0), count(&mesh, "tag", "cell", 20.0)), (8, 4));
        let marks = [0.0, 1.0, 2.0].map(|mark| count(&mesh, "bound", "bedge", mark));
        assert_eq!(marks, [0, 4, 8]);
        assert_eq!(mesh.field_named("x").unwrap().parts, 2);
    }

    #[test]
    fn a_cube_of_tetrahedra() {
        let mesh = load(&file("cube_2_binary.msh")).unwrap();
        let [nodes, cells, faces, border] = ["node", "cell", "face", "bface"].map(|set| size(&mesh, set));
        assert_eq!(4 * cells, 2 * faces + border);
        assert_eq!(mesh.field_named("x").unwrap().parts, 3);
        let (x, corners) = (mesh.field_named("x").unwrap(), &mesh.maps[0]);
        let place = |node: i32| [0, 1, 2].map(|part| x.data.get(3 * node as usize + part));
        let volume = |cell: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|slot| place(corners.row(cell)[slot]));
            let from = |to: [f64; 3]| [0, 1, 2].map(|axis| to[axis] - a[axis]);
            let [b, c, d] = [from(b), from(c), from(d)];
            let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
            (0..3).map(|axis| cross[axis] * d[axis]).sum::<f64>() / 6.0
        };
        assert!((0..cells).all(|cell| volume(cell) > 0.0), "faces look outwards");
        let all: f64 = (0..cells).map(volume).sum();
        assert!((all - 1.0).abs() < 1e-12 && nodes > 8, "{all}");
        assert_eq!(count(&mesh, "tag", "cell", 7.0), cells);
        let inlet = count(&mesh, "bound", "bface", 5.0);
        assert!(inlet > 0 && inlet + count(&mesh, "bound", "bface", 0.0) == border);
    }

    /// What is said of a file that was changed.
    fn told(name: &str, change: impl Fn(Vec<u8>) -> Vec<u8>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.msh");
        fs::write(&path, change(fs::read(file(name)).unwrap())).unwrap();
        let told = load(&path).map(|_| ()).unwrap_err().to_string();
        told.replace(&format!("cannot read `{}`: ", path.display()), "")
    }

    #[test]
    fn damaged_files_are_told() {
        let replace = |name: &str, from: &str, to: &str| {
            told(name, |bytes| {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.contains(from), "{from}");
                text.replacen(from, to, 1).into_bytes()
            })
        };
        let again = format!("\n  help: {WRITE_AGAIN}");
        let text = "square_4_text.msh";
        assert_eq!(
            replace(text, "4.1 0 8", "4.0 0 8"),
            "version 4.0 of the format is not known: 2.2 and 4.1 are\n  \
             help: write it again by `gmsh FILE.msh -save -format msh41 -o NEW.msh`"
        );
        assert_eq!(replace(text, "$EndNodes", "$EndNode"), format!("it ends within $Nodes{again}"));
        assert_eq!(
            replace("square_2_text.msh", "\n15\n1 ", "\n15\n1x "),
            format!("line 13: \"1x\" is not the number that should be there{again}")
        );
        assert_eq!(
            replace("square_2_text.msh", "\n15\n1 ", "\n16\n1 "),
            format!("line 28: $Nodes ends too early{again}")
        );
        assert!(replace("square_2_text.msh", "\n15\n1 ", "\n15\n2 ").starts_with("there are two nodes with the tag 2"));
        assert!(replace("square_2_text.msh", "\n15\n1 ", "\n15\n99 ").contains("has the node 1, which there is not"));
        assert!(told(text, |bytes| bytes[..bytes.len() / 2].to_vec()).contains("it ends within $"));
        assert!(
            told(text, |_| b"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n".to_vec()).starts_with("it holds no triangles")
        );
        assert!(
            told(text, |_| b"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Elements\n1\n1 9 0 1 2 3 4 5 6\n".to_vec())
                .contains("elements of type 9 are not known")
        );
    }

    #[test]
    fn no_damage_is_a_panic() {
        let mut random = fastrand::Rng::with_seed(7);
        for name in ["square_2_text.msh", "square_2_binary.msh", "square_4_text.msh", "square_4_binary.msh"] {
            let whole = fs::read(file(name)).unwrap();
            for _ in 0..300 {
                let mut bytes = whole.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..bytes.len());
                    bytes[at] = if random.bool() { random.u8(..) } else { b"0123456789-. \n$"[random.usize(..15)] };
                }
                bytes.truncate(random.usize(1..=2 * bytes.len()));
                // Whatever comes out, it is a mesh or an error.
                let _ = read(bytes.as_slice(), bytes.len() as u64).and_then(|mesh| mesh.check());
            }
        }
    }
}
