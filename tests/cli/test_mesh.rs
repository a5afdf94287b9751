//! `stencilc test` of what runs over meshes.

use crate::common::folder::{Folder, text};
use std::fs;

/// Stencils over triangles, and a program of two of them.
const STENCILS: &str = "
mesh tri {
    set node, edge, bedge, cell
    map edge.nodes -> node[2]
    map edge.cells -> cell[2]
    map cell.nodes -> node[3]
    map cell.edges -> edge[3] missing skip
}
stencil flux over tri.edge {
    in  u on cell
    param c: real = 1
    inc rate on cell
    reduce total: sum
    let f = c * (u[cells.0] - u[cells.1])
    rate[cells.0] -= f
    rate[cells.1] += f
    total += abs(f)
}
stencil mean over tri.cell {
    in  x: real[2] on node
    in  orientation: int on cell.edges
    out m
    out s: int
    m = (x[nodes.0].0 + x[nodes.1].0 + x[nodes.2].0) / 3
    s = sum(e in edges) { orientation[e] }
}
stencil grow over tri.cell { in u; in rate; param dt: real = 0.1; out v; v = u + dt * rate }
program heat over tri {
    inout u on cell
    out total on ()
    param steps: int = 3
    repeat steps {
        let r, t = flux(u)
        u = grow(u, r)
        total = t
    }
}
mesh layered { set node, edge, bedge, cell; map cell.nodes -> node[3]; levels k }
stencil above over layered.cell { in a; in h on (k); out b; b = a[k+1] - a + 0 * h }
";

impl Folder {
    /// A folder with a file of stencils and a test over a mesh with these braces.
    fn with_mesh_test(body: &str) -> Self {
        let folder = Self::new();
        fs::write(folder.path("file.stn"), format!("{STENCILS}test \"it\" {{\n{body}\n}}\n")).unwrap();
        folder
    }
}

#[test]
fn what_holds_over_a_mesh_passes() {
    for (subject, body) in [
        // What is added to starts from 0 where it is not given; reductions are numbers.
        ("flux", "mesh triangles(4, 3)\n flux { u = 7 }\n expect rate == 0 && total == 0"),
        ("flux", "mesh triangles(4, 3)\n flux { u = 7; rate = 5 }\n expect rate == 5"),
        // Whatever leaves one cell comes to another.
        ("flux", "mesh triangles(4, 3)\n flux { u = i; c = 1/2 }\n expect total > 0 && c == 0.5"),
        // Fields come with the mesh, positions are the mean of what an element is tied to.
        ("mean", "mesh triangles(4, 3)\n mean { }\n expect abs(m - position.0) < 1e-12 && ni == 24"),
        // Vectors are given whole, fields on maps for each slot or for all; a `let` means on each set what it says there.
        (
            "mean",
            "mesh triangles(4, 3)\n let twice = 2 * i\n mean { x = [twice, twice + 1]; orientation = [1, 2, 3] }\n \
             expect s >= 1 && s <= 6\n expect x.0 == twice && x.1 == twice + 1\n expect m >= 0",
        ),
        ("mean", "mesh triangles(4, 3)\n mean { orientation = 1 }\n expect s >= 1 && s <= 3"),
        // A program, and what is expected on another set than that of its fields: through a map.
        ("heat", "mesh triangles(4, 3)\n heat { u = 7; steps = 2 }\n expect abs(u - 7) < 1e-12 && total == 0"),
        ("heat", "mesh triangles(4, 3)\n heat { u = i; steps = 0 }\n expect u[cells.0] != u[cells.1]"),
        // Levels: an output is looked at where it was computed.
        (
            "above",
            "mesh triangles(2, 2)\n levels(4)\n above { a = k * k; h = k }\n expect b == 2*k + 1 && k < 3 && h == k",
        ),
        ("above", "mesh triangles(2, 2)\n levels(4)\n above { a = k * k; h = k }\n expect b[k+1] == b + 2 && k < 2"),
        ("above", "mesh triangles(2, 2)\n above { a = k; h = 0 }\n expect b == 1 && nk == 6"),
    ] {
        let folder = Folder::with_mesh_test(body);
        assert_eq!(folder.done("test file.stn"), format!("passed  {subject}: it\nin all: 1 passed\n"), "{body}");
        folder.done("test file.stn --precision f32");
    }
}

#[test]
fn each_mesh_that_is_made_can_be_named() {
    for (mesh, declared) in [
        ("triangles(3, 2)", "map cell.nodes -> node[3]"),
        ("airfoil(8, 4)", "map cell.nodes -> node[4]"),
        ("hexahedra(2, 3, 2)", "map cell.nodes -> node[8]"),
        ("icosahedral(1, 1)", "map cell.vertices -> vertex[3]"),
        ("icosahedral(1, 0)", "map cell.vertices -> vertex[3]"),
        ("limited(1, 2, 50, 1, 0)", "map cell.vertices -> vertex[3]; zone lateral, nudging, interior on cell"),
    ] {
        let folder = Folder::new();
        let corner = if declared.contains("vertex") { "vertex" } else { "node" };
        let file = format!(
            "mesh m {{ set cell, {corner}; {declared} }}\nstencil one over m.cell {{ in a; out b; b = a }}\n\
             test \"t\" {{\n mesh {mesh}\n one {{ a = position.0 + position.1 + position.2 }}\n expect b == a\n}}\n"
        );
        fs::write(folder.path("file.stn"), file).unwrap();
        assert_eq!(folder.done("test file.stn"), "passed  one: t\nin all: 1 passed\n", "{mesh}");
    }
}

#[test]
fn what_fails_says_on_which_elements() {
    let folder = Folder::with_mesh_test("mesh triangles(3, 2)\n mean { }\n expect m < 1/2 && x[nodes.0].0 >= 0");
    let run = folder.run("test file.stn");
    assert_eq!(run.status.code(), Some(3));
    let told = text(&run.stderr);
    assert!(told.contains("\"it\": 6 of 12 elements are not as expected"), "{told}");
    assert!(told.contains("false first at cell "), "{told}");
    assert!(told.contains("m = 0.5"), "{told}");
    let run = folder.run("test file.stn --json");
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let own = &report["tests"][0];
    assert_eq!((&own["mesh"], &own["levels"]), (&"triangles(3, 2)".into(), &1.into()), "{report:#}");
    let failure = &own["failures"][0];
    assert_eq!(
        (&failure["cells"], &failure["failed"], &failure["first"]["set"]),
        (&12.into(), &6.into(), &"cell".into())
    );
    // A level that nobody computed is no success.
    let folder =
        Folder::with_mesh_test("mesh triangles(2, 2)\n levels(2)\n above { a = k; h = 0 }\n expect b[k+1] == 1");
    let told = text(&folder.run("test file.stn").stderr).to_owned();
    assert!(told.contains("this is looked at on no element") && told.contains("levels(8)"), "{told}");
}

#[test]
fn what_is_wrong_with_a_test_over_a_mesh_is_told() {
    for (body, wanted) in [
        ("mesh triangls(4, 3)\n flux { u = 7 }\n expect rate == 0", "did you mean `triangles`?"),
        ("mesh triangles(4)\n flux { u = 7 }\n expect rate == 0", "`triangles` takes 2 numbers"),
        ("mesh triangles(0, 3)\n flux { u = 7 }\n expect rate == 0", "no squares along x"),
        ("mesh limited(2, 2)\n flux { u = 7 }\n expect rate == 0", "degrees from the pole, lateral rows, nudging rows"),
        ("mesh limited(2, 2, 40, 0, 1)\n flux { u = 7 }\n expect rate == 0", "no lateral rows"),
        ("mesh limited(2, 2, 40, 9, 1)\n flux { u = 7 }\n expect rate == 0", "leave nothing inside"),
        ("mesh triangles(4000, 4000)\n flux { u = 7 }\n expect rate == 0", "is too large for a test"),
        ("mesh triangles(4, 3); mesh triangles(4, 3)\n flux { u = 7 }\n expect rate == 0", "this test has two meshes"),
        ("grid(4, 3, 2)\n flux { u = 7 }\n expect rate == 0", "say over which mesh: `mesh triangles(8, 6)`"),
        ("mesh triangles(4, 3); levels(3)\n flux { u = 7 }\n expect rate == 0", "the mesh `tri` has no levels"),
        ("mesh airfoil(8, 4)\n flux { u = 7 }\n expect rate == 0", "has 4 slots; the mesh `tri` says 3"),
        ("flux { u = 7 }\n expect rate == 0", "it names no mesh, and `flux` runs over one"),
        ("mesh triangles(4, 3)\n flux { }\n expect rate == 0", "`u`"),
        ("mesh triangles(4, 3)\n flux { u = rate }\n expect rate == 0", "the field `rate` has no numbers here"),
        ("mesh triangles(4, 3)\n flux { u = [1, 2] }\n expect rate == 0", "this value has 2"),
        ("mesh triangles(4, 3)\n flux { u = j }\n expect rate == 0", "a mesh has no axes `i` and `j`"),
        ("mesh triangles(4, 3)\n heat { u = 1; stps = 2 }\n expect u == 1", "did you mean `steps`?"),
        ("mesh triangles(4, 3)\n heat { u = 1 }\n expect v == 1", "unknown name `v`"),
        ("mesh triangles(4, 3)\n heat { u = 1 }\n expect u[nodes.0] == 1", "nodes"),
        ("mesh triangles(4, 3)\n let h = 3\n heat { u = 1 }\n expect u == 1", "the value `h` is never used"),
        ("mesh triangles(2, 2)\n above { a = k; h = i }\n expect b == 1", "varies from element to element"),
    ] {
        let folder = Folder::with_mesh_test(body);
        let run = folder.run("test file.stn");
        let told = text(&run.stderr);
        assert!(told.contains(wanted), "{body}\n{told}");
        assert!(!told.contains("--in") && !told.contains("--draw"), "{body}\n{told}");
    }
    // What is said of a mesh is not said of a grid.
    let folder = Folder::new();
    let file = "stencil one { in a; out b; b = a }\ntest \"t\" {\n mesh triangles(3, 2)\n levels(2)\n one { a = i }\n expect b == i\n}\n";
    fs::write(folder.path("file.stn"), file).unwrap();
    let told = text(&folder.run("test file.stn").stderr).to_owned();
    assert!(told.contains("`one` runs on a grid") && told.contains("`grid(12, 10, 6)`"), "{told}");
}

#[test]
fn a_test_without_a_mesh_runs_over_that_of_the_call() {
    let folder = Folder::with_mesh_test("mean { }\n expect abs(m - position.0) < 1e-12 && ni == 12");
    folder.done("mesh make triangles --size 3x2 -o three.npz");
    assert_eq!(folder.done("test file.stn --mesh three.npz"), "passed  mean: it\nin all: 1 passed\n");
    let told = text(&folder.run("test file.stn --mesh four.npz").stderr).to_owned();
    assert!(told.contains("four.npz"), "{told}");
    // Without coordinates nobody knows where an element is.
    let bare = "mesh m { set cell; map cell.next -> cell }\nstencil one over m.cell { in a; out b; b = a }\n\
                test \"t\" { one { a = position.0 }; expect b == a }\n";
    fs::write(folder.path("bare.stn"), bare).unwrap();
    let mesh = stencilc_runtime::mesh::Mesh {
        origin: "bare.npz".to_owned(),
        sets: vec![stencilc_runtime::mesh::Set { name: "cell".to_owned(), size: 2 }],
        maps: vec![stencilc_runtime::mesh::Map {
            name: "next".to_owned(),
            from: 0,
            to: 0,
            arity: 1,
            table: vec![1, 0],
        }],
        fields: Vec::new(),
    };
    stencilc_runtime::mesh::save(&mesh, &folder.path("bare.npz")).unwrap();
    let told = text(&folder.run("test bare.stn --mesh bare.npz").stderr).to_owned();
    assert!(told.contains("where each `cell` is, is not known"), "{told}");
    // A mesh that no test takes is a mistake.
    let folder = Folder::with_mesh_test("mesh triangles(3, 2)\n mean { }\n expect ni == 12");
    folder.done("mesh make triangles --size 3x2 -o three.npz");
    let run = folder.run("test file.stn --mesh three.npz");
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("no test runs over the mesh of --mesh"), "{}", text(&run.stderr));
}
