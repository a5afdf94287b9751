//! Files of meshes: what is read, and what is refused.

use super::*;
use crate::array::Array;
use crate::npy::save_archive;
use std::fs;
use std::path::Path;

/// A file of these bytes, read.
fn load_bytes(name: &str, bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    told(&path, folder.path())
}

/// What the error of a file says, with its path cut.
fn told(path: &Path, folder: &Path) -> String {
    let error = load(path).expect_err("must be refused");
    error.to_string().replace(&format!("{}/", folder.display()), "")
}

/// An archive of these arrays, read.
fn load_arrays(arrays: &[(&str, &[usize], Data)]) -> crate::Result<Mesh> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.npz");
    let arrays = arrays
        .iter()
        .map(|(name, shape, data)| ((*name).to_owned(), Array { shape: shape.to_vec(), data: data.clone() }));
    save_archive(&path, arrays).unwrap();
    load(&path).map_err(|error| {
        let message = error.message.replace(&format!("{}/", folder.path().display()), "");
        crate::Error { message, ..error }
    })
}

fn refused(arrays: &[(&str, &[usize], Data)], message: &str, help: &str) {
    let error = load_arrays(arrays).expect_err(message);
    assert_eq!(error.message, format!("cannot read `mesh.npz`: {message}"));
    assert_eq!(error.help.as_deref(), Some(help).filter(|help| !help.is_empty()), "{message}");
}

fn ints(numbers: &[i32]) -> Data {
    Data::I32(numbers.to_vec())
}

fn reals(numbers: &[f64]) -> Data {
    Data::F64(numbers.to_vec())
}

/// Two triangles, whose common edge is edge 0.
const NODES: [i32; 6] = [0, 1, 2, 1, 3, 2];

#[test]
fn three_lines_of_numpy_are_a_mesh() {
    let mesh = load_arrays(&[
        ("cell.nodes -> node", &[2, 3], ints(&NODES)),
        ("x on node", &[4, 2], reals(&[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0])),
        ("border.cell -> cell", &[4], ints(&[0, 0, 1, 1])),
        ("side on cell.nodes", &[2, 3], ints(&[1, 2, 3, 4, 5, 6])),
        ("frame on cell.nodes", &[2, 3, 2], reals(&[0.5; 12])),
        ("open on border.cell", &[4, 1], Data::Bool(vec![1, 0, 0, 1])),
    ])
    .unwrap();
    let sizes: Vec<(&str, usize)> = mesh.sets.iter().map(|set| (set.name.as_str(), set.size)).collect();
    assert_eq!(sizes, [("cell", 2), ("node", 4), ("border", 4)]);
    let maps: Vec<(String, usize)> = mesh.maps.iter().map(|map| (mesh.full_name(map), map.arity)).collect();
    assert_eq!(maps, [("cell.nodes".to_owned(), 3), ("border.cell".to_owned(), 1)]);
    assert_eq!(mesh.maps[0].row(1), [1, 3, 2]);
    let fields: Vec<(String, usize)> = mesh.fields.iter().map(|field| (mesh.field_place(field), field.parts)).collect();
    let expected =
        [("x on node", 2), ("side on cell.nodes", 1), ("frame on cell.nodes", 2), ("open on border.cell", 1)];
    assert_eq!(fields, expected.map(|(name, parts)| (name.to_owned(), parts)));
    assert!(mesh.origin.ends_with("mesh.npz"));
}

#[test]
fn what_is_saved_is_read_again() {
    let mesh = load(Path::new("../examples/grid_120x60.dat")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    save(&mesh, &path).unwrap();
    let first = fs::read(&path).unwrap();
    let again = load(&path).unwrap();
    assert_eq!(Mesh { origin: mesh.origin.clone(), ..again }, mesh);
    save(&mesh, &path).unwrap();
    assert!(fs::read(&path).unwrap() == first, "the same bytes");

    let error = save(&mesh, &folder.path().join("a.dat")).unwrap_err();
    assert!(error.message.ends_with("says another kind of file"), "{error}");
    // What cannot be read is not written.
    let mut wrong = mesh;
    wrong.maps[0].table[3] = 90_000;
    assert!(save(&wrong, &path).unwrap_err().message.contains("`edge.nodes` leads from edge 1, slot 1, to node 90000"));
    assert!(fs::read(&path).unwrap() == first);
}

#[test]
fn the_given_mesh_of_an_airfoil() {
    let mesh = load(Path::new("../examples/grid_120x60.dat")).unwrap();
    let sizes: Vec<(&str, usize)> = mesh.sets.iter().map(|set| (set.name.as_str(), set.size)).collect();
    assert_eq!(sizes, [("node", 7381), ("edge", 14_260), ("bedge", 280), ("cell", 7200)]);
    let maps: Vec<String> = mesh.maps.iter().map(|map| mesh.full_name(map)).collect();
    assert_eq!(maps, ["edge.nodes", "edge.cells", "bedge.nodes", "bedge.cell", "cell.nodes"]);
    assert_eq!(mesh.maps.iter().map(Map::holes).sum::<usize>(), 0);
    // Both ends of an edge are corners of its cells; along the cut behind the wing, where nodes are there twice, by place.
    let [edge_nodes, edge_cells, bedge_nodes, bedge_cell, cell_nodes] = mesh.maps.as_slice() else { panic!() };
    let x = mesh.field_named("x").unwrap();
    let place = |node: i32| [0, 1].map(|part| x.data.get(2 * node as usize + part).abs());
    let is_corner = |cell: i32, node: i32| {
        cell_nodes.row(cell as usize).iter().any(|&corner| corner == node || place(corner) == place(node))
    };
    let is_side = |cell: i32, nodes: &[i32]| nodes.iter().all(|&node| is_corner(cell, node));
    for edge in 0..14_260 {
        assert!(edge_cells.row(edge).iter().all(|&cell| is_side(cell, edge_nodes.row(edge))), "edge {edge}");
    }
    for bedge in 0..280 {
        assert!(is_side(bedge_cell.table[bedge], bedge_nodes.row(bedge)), "bedge {bedge}");
    }
    assert_eq!(4 * 7200, 2 * 14_260 + 280);
    let bound = mesh.field_named("bound").unwrap();
    assert_eq!((x.data.get(0), x.data.get(2), mesh.is_position(x)), (9.0, 8.7025, true));
    let count = |which: f64| (0..280).filter(|&at| bound.data.get(at) == which).count();
    assert_eq!((count(1.0), count(2.0)), (40, 240));
}

#[test]
fn numbers_are_checked_one_by_one() {
    let map = |numbers: &[i32]| ("cell.nodes -> node", [2, 3].as_slice(), ints(numbers));
    let x = ("x on node", [4, 2].as_slice(), reals(&[0.5; 8]));
    refused(
        &[map(&[0, 1, 2, 1, 4, 2]), x.clone()],
        "`cell.nodes` leads from cell 1, slot 1, to node 4, and nodes are numbered from 0 to 3",
        "does it lead to another set, or are there more nodes than the file says?",
    );
    refused(
        &[map(&[1, 2, 3, 2, 4, 3]), x.clone()],
        "`cell.nodes` leads from cell 1, slot 1, to node 4, and nodes are numbered from 0 to 3",
        "do its numbers count from 1? numbers of elements count from 0: subtract 1",
    );
    refused(
        &[map(&[0, -2, 3, 2, 1, 3]), x.clone()],
        "`cell.nodes` leads from cell 0, slot 1, to node -2, and nodes are numbered from 0 to 3",
        "-1 says that there is no element",
    );
    refused(
        &[map(&[0, 1, 2, 2, 1, 70]), x],
        "`cell.nodes` leads from cell 1, slot 2, to node 70, and nodes are numbered from 0 to 3",
        "does it lead to another set?",
    );
    assert_eq!(
        load_arrays(&[("cell.nodes -> node", &[1, 3], ints(&[0, 1, -1])), ("set node", &[], ints(&[2]))]).unwrap().maps
            [0]
        .holes(),
        1,
        "a hole is data"
    );
    let mut places = vec![0.5; 8];
    places[5] = f64::NAN;
    refused(
        &[map(&NODES), ("x on node", &[4, 2], reals(&places))],
        "the position `x` of node 2 is no number: part 1 is NaN",
        "every element has a place; was a missing value written as NaN?",
    );
    // Elsewhere a NaN is a number that is not known yet.
    load_arrays(&[map(&NODES), ("q on node", &[4], reals(&[f64::NAN; 4]))]).unwrap();
}

#[test]
fn arrays_that_do_not_fit_each_other() {
    let map = || ("cell.nodes -> node", [2, 3].as_slice(), ints(&NODES));
    refused(
        &[map()],
        "nothing says how many nodes there are",
        "add their number: `numpy.savez(..., **{'set node': 4})`, if there are no more",
    );
    refused(
        &[map(), ("x on node", &[4, 2], reals(&[0.5; 8])), ("area on cell", &[3], reals(&[1.0; 3]))],
        "`area on cell` says that there are 3 cells, and `cell.nodes -> node` that there are 2",
        "arrays of one set have one row for each of its elements",
    );
    refused(
        &[map(), ("set node", &[2], ints(&[4, 4]))],
        "`set node` has 2 numbers",
        "it is one number: how many elements the set has",
    );
    refused(&[map(), ("set node", &[], ints(&[-4]))], "`set node` is -4: a set has 0 elements or more", "");
    refused(
        &[("cell.nodes -> node", &[1, 2, 3], ints(&NODES)), ("set node", &[], ints(&[4]))],
        "`cell.nodes -> node` has the shape (1, 2, 3)",
        "a map has a row for each element and a column for each slot: (edges, 2)",
    );
    refused(
        &[map(), ("set node", &[], ints(&[4])), ("sign on cell.nodes", &[2, 4], ints(&[1; 8]))],
        "`sign on cell.nodes` has the shape (2, 4)",
        "a field on a map of 3 slots has the shape (cells, 3) or (cells, 3, parts)",
    );
    refused(
        &[map(), ("set node", &[], ints(&[4])), ("sign on cell.node", &[2, 3], ints(&[1; 6]))],
        "`sign on cell.node` is on a map that the file has not: `cell.node`",
        "is it `cell.nodes`?",
    );
    refused(
        &[map(), ("set node", &[], ints(&[4])), ("m on cell", &[2, 2, 2], reals(&[1.0; 8]))],
        "`m on cell` has the shape (2, 2, 2)",
        "a field on `cell` has the shape (cells) or (cells, parts)",
    );
    refused(
        &[map(), ("set node", &[], ints(&[4])), ("dt on cell", &[], reals(&[1.0]))],
        "`dt on cell` is a single number",
        "a field has one for each cell; a single one is a parameter: `--set NAME=VALUE`",
    );
    refused(
        &[("cell.nodes -> node", &[2, 3], reals(&[0.0; 6]))],
        "`cell.nodes -> node`: its numbers are of type `<f8`, and whole ones are needed",
        "convert them before saving: `array.astype('int32')`",
    );
}

#[test]
fn names_that_say_too_little_or_the_same() {
    let how = "a map is called `edge.nodes -> node`, a field `x on node` or `sign on cell.edges`, the size of a set \
               `set node`, as in `numpy.savez('mesh.npz', **{'edge.nodes -> node': nodes, 'x on node': x})`";
    let one = |name| [(name, [1].as_slice(), ints(&[0]))];
    refused(
        &one("edge.nodes"),
        "the name of the array `edge.nodes` does not say what it is",
        "if it is a map, say where it leads: `numpy.savez(..., **{'edge.nodes -> node': ...})`",
    );
    refused(
        &one("x"),
        "the name of the array `x` does not say what it is",
        "if it is a field, say of what: `numpy.savez(..., **{'x on cell': ...})`",
    );
    refused(&one("edge nodes"), "the name of the array `edge nodes` does not say what it is", how);
    refused(&one("edge.2 -> node"), "the name of the array `edge.2 -> node` does not say what it is", how);
    refused(
        &["left", "right", "top", "bottom", "x"].map(|name| (name, [1].as_slice(), ints(&[0]))),
        "it holds a grid of cells and their neighbours, not a mesh",
        "give it as `--grid FILE`, to what runs on grids",
    );
    refused(&[], "it holds no arrays", how);
    refused(
        &[("a.b -> a", &[1], ints(&[0])), ("a.b ->  a", &[1], ints(&[0]))],
        "there are two maps called `a.b`",
        "call one of them something else",
    );
    refused(
        &[("m on a", &[1], ints(&[0])), ("m  on a", &[1], ints(&[0]))],
        "there are two fields called `m on a`",
        "call one of them something else",
    );
}

#[test]
fn whole_numbers_of_any_width_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.npz");
    // By hand: the header of a type that this program does not write, and its numbers.
    let npy = |element: &str, numbers: &[u8], rows: usize| {
        let mut header = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': ({rows},), }}");
        header.push_str(&" ".repeat(64 - (10 + header.len() + 1) % 64));
        header.push('\n');
        [b"\x93NUMPY\x01\x00", (header.len() as u16).to_le_bytes().as_slice(), header.as_bytes(), numbers].concat()
    };
    let archive = |arrays: &[(&str, Vec<u8>)]| {
        let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        for (name, bytes) in arrays {
            archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
            std::io::Write::write_all(&mut archive, bytes).unwrap();
        }
        archive.finish().unwrap();
    };
    for (element, width) in
        [("|u1", 1), ("|i1", 1), ("<u2", 2), ("<i2", 2), ("<u4", 4), ("<u8", 8), ("<i8", 8), (">i8", 8)]
    {
        let bytes: Vec<u8> = [2_i64, -1, 0]
            .iter()
            .flat_map(|number| {
                let mut bytes = number.to_le_bytes()[..width].to_vec();
                if element.starts_with('>') {
                    bytes.reverse();
                }
                bytes
            })
            .collect();
        archive(&[("a.b -> b", npy(element, &bytes, 3)), ("set b", npy("|u1", &[3], 1))]);
        assert_eq!(load(&path).unwrap().maps[0].table, [2, -1, 0], "{element}");
    }
    let large = npy("<i8", &(1_i64 << 40).to_le_bytes(), 1);
    archive(&[("a.b -> b", large), ("set b", npy("|u1", &[3], 1))]);
    assert!(
        told(&path, folder.path())
            .contains("leads from a 0, slot 0, to b 1099511627776, and bs are numbered from 0 to 2")
    );
    archive(&[("a.b -> b", npy("|O", &[0; 16], 2)), ("set b", npy("|u1", &[3], 1))]);
    assert_eq!(
        told(&path, folder.path()),
        "cannot read `mesh.npz`: `a.b -> b`: its numbers are of type `|O`, and whole ones are needed\n  \
         help: are its rows of different lengths? Make them equally long: the shorter ones end with -1"
    );
    archive(&[("a.b -> b", npy("<i4", &[0; 6], 2)), ("set b", npy("|u1", &[3], 1))]);
    assert!(told(&path, folder.path()).contains("`a.b -> b`: it is cut short"));
    let whole = fs::read(&path).unwrap();
    for length in [4, whole.len() / 2, whole.len() - 1] {
        let said = load_bytes("mesh.npz", &whole[..length]);
        assert!(said.contains("was not written to its end"), "{said}");
    }
}

#[test]
fn texts_that_are_no_mesh() {
    let text = "4 1 1 2\n0 0\n1 0\n1 1\n0 1\n0 1 2 3\n0 2 0 0\n0 1 0 1\n\n1 2 0 2\n";
    let refused = |from: &str, to: &str, expected: &str| {
        assert!(text.contains(from));
        let said = load_bytes("new_grid.dat", text.replacen(from, to, 1).as_bytes());
        assert_eq!(said, format!("cannot read `new_grid.dat`: {expected}"));
    };
    let bedge = "a boundary edge is a line of two nodes, a cell, and which boundary it is on";
    refused(
        "1 2 0 2\n",
        "",
        "it ends after 1 of 2 boundary edges\n  \
        help: the file is damaged, or its first line says too much; write it again",
    );
    refused("1 2 0 2\n", "1 2 0\n", &format!("line 10: there are 3 numbers where 4 are needed\n  help: {bedge}"));
    refused(
        "0 1 2 3",
        "0 1 2 3 4",
        "line 6: there are 5 numbers where 4 are needed\n  help: a cell is a line of its four nodes",
    );
    refused(
        "1 1\n0 1\n",
        "1 one\n0 1\n",
        "line 4: \"one\" is not the number that should be there\n  \
        help: a node is a line of two numbers: x and y",
    );
    refused(
        "1 1\n0 1\n",
        "1 nan\n0 1\n",
        "the position `x` of node 2 is no number: part 1 is NaN\n  \
        help: every element has a place; was a missing value written as NaN?",
    );
    refused(
        "0 2 0 0",
        "0 2 0 1",
        "`edge.cells` leads from edge 0, slot 1, to cell 1, and there is only cell 0\n  \
        help: does it lead to another set, or are there more cells than the file says?",
    );
    refused(
        "1 2 0 2\n",
        "1 2 0 2\n5 5\n",
        "line 11: \"5 5\" follows the last boundary edge\n  \
        help: the first line says how many nodes, cells, interior edges and boundary edges there are",
    );
    refused(
        "4 1 1 2\n",
        "4 1 1\n",
        "line 1: there are 3 numbers where 4 are needed\n  \
        help: the first line says how many nodes, cells, interior edges and boundary edges there are",
    );
    refused(
        "4 1 1 2\n",
        "999999999999 1 1 2\n",
        "line 6: there are 4 numbers where 2 are needed\n  \
        help: a node is a line of two numbers: x and y",
    );
    assert!(load_bytes("a.msx", b"4 1 1 x\n").contains("it is a mesh of no known format"));
    assert!(load_bytes("a.dat", b"").contains("it is empty"));
    let folder = tempfile::tempdir().unwrap();
    assert!(told(&folder.path().join("none.npz"), folder.path()).starts_with("there is no file `none.npz`"));
    assert!(load(folder.path()).unwrap_err().message.ends_with("it is a directory, not a file"));
}

#[test]
fn no_damage_is_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mesh.npz");
    save(&made::triangles(3, 2, made::Perturbed::default()).unwrap(), &path).unwrap();
    let archive = fs::read(&path).unwrap();
    let text = b"4 1 1 2\n0 0\n1 0\n1 1\n0 1\n0 1 2 3\n0 2 0 0\n0 1 0 1\n\n1 2 0 2\n".to_vec();
    let mut random = fastrand::Rng::with_seed(3);
    let mut refused = 0;
    for round in 0..600 {
        let mut bytes = if round % 2 == 0 { archive.clone() } else { text.clone() };
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = if random.bool() { random.u8(..) } else { b"0123456789-. \n"[random.usize(..14)] };
        }
        bytes.truncate(random.usize(1..=2 * bytes.len()));
        fs::write(&path, bytes).unwrap();
        // Whatever is read has been checked.
        match load(&path) {
            Ok(mesh) => mesh.check().unwrap(),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 300, "{refused}");
}
