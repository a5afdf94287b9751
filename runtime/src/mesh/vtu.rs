//! Meshes with fields in `.vtu` files, which ParaView and VTK read: XML with arrays whose bytes are written in base64.
//!
//! Format: "VTK File Formats", section "XML File Formats" (<https://docs.vtk.org/en/latest/vtk_file_formats/vtkxml_file_format.html>).

use super::cells::{Cells, map_to_corners};
use super::check::plural;
use super::sides::Shape;
use super::{Field, Mesh};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::files;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use std::io::{self, Write};
use std::path::Path;

/// Writes a mesh with fields to the file at `path`, all of it or nothing.
///
/// Points are the elements whose positions are known and that cells lead to; their fields are point data. Cells are triangles, quadrilaterals, polygons,
/// tetrahedra, pyramids, prisms or hexahedra, by their corners. Elements of other sets with corners, if one of the fields is on them, are
/// cells too: points, lines or polygons. Fields of cells are cell data, which is NaN on cells of other sets. Two or three parts
/// are a vector in space.
///
/// # Errors
/// No positions are known; elements with a field have no corners, or a field has a number for each slot of a map; those of
/// [`files::write_atomic`].
pub fn write_vtu(mesh: &Mesh, fields: &[&Field], path: &Path) -> Result<()> {
    let kinds = kinds(mesh, fields)?;
    let [main, ..] = kinds.as_slice() else { return Ok(()) };
    let (points, x) = (main.map.to, main.x);
    let (mut connectivity, mut offsets, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for cells in &kinds {
        for element in 0..mesh.sets[cells.map.from].size {
            let corners = cells.corners(element);
            connectivity.extend_from_slice(corners);
            offsets.push(connectivity.len() as i64);
            types.push(vtk_type(corners.len(), cells.is_solid));
        }
    }
    let sizes: Vec<usize> = kinds.iter().map(|cells| mesh.sets[cells.map.from].size).collect();
    let of_points = fields.iter().filter(|field| field.set == points).map(|field| array(field, 0, 0));
    let on_cells = || fields.iter().filter(|field| field.set != points);
    let of_cells = on_cells().filter_map(|field| {
        let kind = kinds.iter().position(|cells| cells.map.from == field.set)?;
        let array = array(field, sizes[..kind].iter().sum(), sizes[kind + 1..].iter().sum());
        // All cells are in one list, so fields of one name on several sets are told apart.
        let is_alone = on_cells().filter(|other| other.name == field.name).count() == 1;
        Some(Array { name: if is_alone { array.name } else { mesh.field_place(field) }, ..array })
    });
    let named = |name: &str, components, numbers| Array { name: name.to_owned(), components, numbers };
    let sections = [
        ("PointData", of_points.collect::<Vec<Array>>()),
        ("CellData", of_cells.collect()),
        ("Points", vec![array(x, 0, 0)]),
        (
            "Cells",
            vec![
                named("connectivity", 1, Numbers::I32(connectivity)),
                named("offsets", 1, Numbers::I64(offsets)),
                named("types", 1, Numbers::U8(types)),
            ],
        ),
    ];
    let counts = [mesh.sets[points].size, sizes.iter().sum()];
    files::write_atomic(path, |out| write(out, counts, &sections))
}

/// Checks that a `.vtu` file has places for fields.
///
/// # Errors
/// As [`write_vtu`].
pub fn check_vtu(mesh: &Mesh, fields: &[&Field]) -> Result<()> {
    kinds(mesh, fields).map(|_| ())
}

/// Whether a `.vtu` file has a place for a field: its elements are points, or have corners.
pub fn has_place_in_vtu(mesh: &Mesh, field: &Field) -> bool {
    kinds(mesh, &[field]).is_ok()
}

/// The sets whose elements become cells, cells themselves first.
fn kinds<'a>(mesh: &'a Mesh, fields: &[&Field]) -> Result<Vec<Cells<'a>>> {
    let main = Cells::find(mesh, None)?;
    let mut kinds = vec![main];
    for field in fields {
        if field.map.is_some() {
            return Err(Error::call(format!(
                "`{}` has a number for each slot of a map, which a .vtu file cannot hold",
                mesh.field_place(field)
            ))
            .help("write it to a .npz file"));
        }
        if field.set == main.map.to || kinds.iter().any(|cells| cells.map.from == field.set) {
            continue;
        }
        let Some(map) = map_to_corners(mesh, field.set, |to| to == main.map.to) else {
            let (set, corners) = (plural(&mesh.sets[field.set].name), plural(&mesh.sets[main.map.to].name));
            return Err(Error::call(format!(
                "`{}` cannot be written to a .vtu file: no map leads from {set} to {corners}, whose positions are known",
                mesh.field_place(field)
            ))
            .help("write it to a .npz file"));
        };
        kinds.push(Cells { map, x: main.x, is_solid: false });
    }
    Ok(kinds)
}

/// What VTK calls a cell of so many corners (`vtkCellType.h`).
fn vtk_type(corners: usize, is_solid: bool) -> u8 {
    match (Shape::of(corners, is_solid), corners) {
        (Some(Shape::Tetrahedron), _) => 10,
        (Some(Shape::Hexahedron), _) => 12,
        (Some(Shape::Prism), _) => 13,
        (Some(Shape::Pyramid), _) => 14,
        (Some(Shape::Polygon(3)), _) => 5,
        (Some(Shape::Polygon(4)), _) => 9,
        (Some(Shape::Polygon(_)), _) => 7,
        (None, 0) => 0,
        (None, 1) => 1,
        (None, 2) => 3,
        // Points that stand for themselves.
        (None, _) => 2,
    }
}

/// Numbers of a file.
enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
}

/// An array of a file.
struct Array {
    name: String,
    components: usize,
    numbers: Numbers,
}

/// The numbers of a field, with `before` and `after` elements that have none.
fn array(field: &Field, before: usize, after: usize) -> Array {
    let components = if field.parts == 2 { 3 } else { field.parts };
    let numbers = match &field.data {
        Data::F32(v) => Numbers::F32(padded(v, field.parts, components, before, after, f32::NAN, 0.0)),
        Data::F64(v) => Numbers::F64(padded(v, field.parts, components, before, after, f64::NAN, 0.0)),
        // Whole numbers have none that says that there is none.
        Data::I32(_) | Data::Bool(_) if before + after > 0 => {
            let v: Vec<f64> = (0..field.data.len()).map(|at| field.data.get(at)).collect();
            Numbers::F64(padded(&v, field.parts, components, before, after, f64::NAN, 0.0))
        }
        Data::I32(v) => Numbers::I32(padded(v, field.parts, components, 0, 0, 0, 0)),
        Data::Bool(v) => Numbers::U8(padded(v, field.parts, components, 0, 0, 0, 0)),
    };
    Array { name: field.name.clone(), components, numbers }
}

/// Rows of `parts` numbers, filled up with `zero` to `components`, between rows of `none`.
fn padded<T: Copy>(
    numbers: &[T],
    parts: usize,
    components: usize,
    before: usize,
    after: usize,
    none: T,
    zero: T,
) -> Vec<T> {
    let rows = numbers
        .chunks(parts.max(1))
        .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(zero, components.saturating_sub(row.len()))));
    let empty = |count: usize| std::iter::repeat_n(none, count * components);
    empty(before).chain(rows).chain(empty(after)).collect()
}

impl Numbers {
    /// What VTK calls their type.
    fn type_name(&self) -> &'static str {
        match self {
            Numbers::F32(_) => "Float32",
            Numbers::F64(_) => "Float64",
            Numbers::I32(_) => "Int32",
            Numbers::I64(_) => "Int64",
            Numbers::U8(_) => "UInt8",
        }
    }

    /// Their bytes, as this machine has them.
    fn bytes(&self) -> &[u8] {
        match self {
            Numbers::F32(v) => bytemuck::cast_slice(v),
            Numbers::F64(v) => bytemuck::cast_slice(v),
            Numbers::I32(v) => bytemuck::cast_slice(v),
            Numbers::I64(v) => bytemuck::cast_slice(v),
            Numbers::U8(v) => v,
        }
    }
}

/// Writes a file of so many points and cells. Names of fields are names of the language, which XML takes as they are.
fn write(out: &mut dyn Write, [points, cells]: [usize; 2], sections: &[(&str, Vec<Array>)]) -> io::Result<()> {
    let order = if cfg!(target_endian = "big") { "BigEndian" } else { "LittleEndian" };
    writeln!(out, "<?xml version=\"1.0\"?>")?;
    writeln!(out, "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"{order}\" header_type=\"UInt64\">")?;
    writeln!(out, "<UnstructuredGrid>\n<Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{cells}\">")?;
    for (section, arrays) in sections {
        writeln!(out, "<{section}>")?;
        for Array { name, components, numbers } in arrays {
            let kind = numbers.type_name();
            writeln!(
                out,
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{components}\" format=\"binary\">"
            )?;
            // The length and the numbers are encoded in one.
            let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
            encoder.write_all(&(numbers.bytes().len() as u64).to_ne_bytes())?;
            encoder.write_all(numbers.bytes())?;
            encoder.finish()?;
            drop(encoder);
            writeln!(out, "\n</DataArray>")?;
        }
        writeln!(out, "</{section}>")?;
    }
    writeln!(out, "</Piece>\n</UnstructuredGrid>\n</VTKFile>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::load;
    use crate::mesh::made::{Division, Perturbed, airfoil, hexahedra, icosahedral};
    use vtkio::model::{Attribute, DataSet, Piece, UnstructuredGridPiece, Vtk};

    /// A file that was written, as another program reads it.
    fn written(mesh: &Mesh, fields: &[&Field]) -> UnstructuredGridPiece {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mesh.vtu");
        write_vtu(mesh, fields, &path).unwrap();
        let mut vtk = Vtk::import(&path).unwrap();
        vtk.load_all_pieces().unwrap();
        match vtk.data {
            DataSet::UnstructuredGrid { mut pieces, .. } => match pieces.remove(0) {
                Piece::Inline(piece) => *piece,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Names, components and numbers of arrays.
    fn arrays(attributes: &[Attribute]) -> Vec<(String, u32, Vec<f64>)> {
        let array = |attribute: &Attribute| match attribute {
            Attribute::DataArray(array) => {
                (array.name.clone(), array.num_comp() as u32, array.data.cast_into::<f64>().unwrap())
            }
            Attribute::Field { .. } => panic!("{attribute:?}"),
        };
        attributes.iter().map(array).collect()
    }

    fn field(name: &str, set: usize, parts: usize, data: Data) -> Field {
        Field { name: name.to_owned(), set, map: None, parts, data }
    }

    #[test]
    fn a_wing_with_results() {
        let mesh = airfoil(12, 6).unwrap();
        let q: Vec<f64> = (0..4 * 72).map(|number| number as f64 + 0.25).collect();
        let fields = [
            field("q", 3, 4, Data::F64(q.clone())),
            field("near", 3, 1, Data::Bool(vec![1; 72])),
            field("flow", 0, 2, Data::F32((0..168).map(|number| number as f32).collect())),
        ];
        let read = written(&mesh, &fields.each_ref());
        assert_eq!(read.num_points(), 84);
        let places = read.points.cast_into::<f64>().unwrap();
        assert_eq!(places[3..6], [mesh.fields[0].data.get(2), mesh.fields[0].data.get(3), 0.0]);
        assert!(
            read.cells.types.iter().all(|kind| *kind == vtkio::model::CellType::Quad) && read.cells.types.len() == 72
        );
        let (corners, offsets) = read.cells.cell_verts.into_xml();
        assert_eq!(corners, mesh.maps[4].table.iter().map(|&node| node as u64).collect::<Vec<_>>());
        assert_eq!(offsets, (1..=72).map(|cell| 4 * cell).collect::<Vec<u64>>());
        let cell_data = arrays(&read.data.cell);
        assert_eq!(cell_data[0], ("q".to_owned(), 4, q));
        assert_eq!(cell_data[1], ("near".to_owned(), 1, vec![1.0; 72]));
        // A vector of the plane has a third part.
        let point_data = arrays(&read.data.point);
        assert_eq!((point_data[0].0.as_str(), point_data[0].1), ("flow", 3));
        assert_eq!(point_data[0].2[..6], [0.0, 1.0, 0.0, 2.0, 3.0, 0.0]);
    }

    #[test]
    fn edges_are_lines_beside_cells() {
        let mesh = icosahedral(Division { root: 1, bisections: 1 }, 1.0).unwrap();
        let u: Vec<f64> = (0..120).map(f64::from).collect();
        let fields = [
            field("u", 1, 1, Data::F64(u.clone())),
            field("level", 2, 1, Data::I32((0..80).collect())),
            field("level", 1, 1, Data::I32((0..120).collect())),
        ];
        let read = written(&mesh, &fields.each_ref());
        let count = |kind| read.cells.types.iter().filter(|own| **own == kind).count();
        assert_eq!((count(vtkio::model::CellType::Triangle), count(vtkio::model::CellType::Line)), (80, 120));
        let found = arrays(&read.data.cell);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["u", "level on cell", "level on edge"]);
        assert!(found[0].2[..80].iter().all(|number| number.is_nan()) && found[0].2[80..] == u);
        assert!(found[1].2[79] == 79.0 && found[1].2[80..].iter().all(|number| number.is_nan()));
    }

    #[test]
    fn bodies_have_their_types() {
        let mesh = hexahedra(3, 2, 2, Perturbed::default()).unwrap();
        let on_face = field("flux", mesh.set_named("face").unwrap(), 1, Data::F32(vec![1.0; 20]));
        let read = written(&mesh, &[&on_face]);
        let count = |kind| read.cells.types.iter().filter(|own| **own == kind).count();
        assert_eq!((count(vtkio::model::CellType::Hexahedron), count(vtkio::model::CellType::Quad)), (12, 20));
        let kinds =
            [(4, true), (5, true), (6, true), (8, true), (3, false), (4, false), (6, false), (2, false), (1, false)];
        assert_eq!(kinds.map(|(corners, is_solid)| vtk_type(corners, is_solid)), [10, 14, 13, 12, 5, 9, 7, 3, 1]);
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let mesh = icosahedral(Division { root: 1, bisections: 0 }, 1.0).unwrap();
        let sign = mesh.fields.last().unwrap();
        let told = write_vtu(&mesh, &[sign], Path::new("/dev/null")).unwrap_err();
        assert_eq!(
            told.to_string(),
            "`orientation on vertex.edges` has a number for each slot of a map, which a .vtu file cannot hold\n  \
             help: write it to a .npz file"
        );
        let mut mesh = airfoil(12, 6).unwrap();
        let zone = mesh.add_set("zone", 2);
        let told =
            write_vtu(&mesh, &[&field("p", zone, 1, Data::F64(vec![0.0; 2]))], Path::new("/dev/null")).unwrap_err();
        assert_eq!(
            told.message,
            "`p on zone` cannot be written to a .vtu file: no map leads from zones to nodes, whose positions are known"
        );
        // All fields of a mesh as .npz are read again as a mesh's, once its sets are there.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fields.npz");
        let bound = mesh.fields.iter().collect::<Vec<_>>();
        crate::mesh::save_fields(&mesh, &bound, &path).unwrap();
        let read = load(&path).unwrap();
        assert_eq!(
            read.fields.iter().map(|field| read.field_place(field)).collect::<Vec<_>>(),
            ["x on node", "bound on bedge"]
        );
        assert!(read.fields.iter().zip(&mesh.fields).all(|(own, other)| own.data == other.data));
        let error = crate::mesh::save_fields(&mesh, &bound, Path::new("fields.csv")).unwrap_err();
        assert!(error.message.contains("are written as .vtu or .npz files"), "{error}");
    }
}
