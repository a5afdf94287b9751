//! Pictures of what runs over meshes.

use crate::common::folder::Folder;
use std::fs;

/// Fields of all kinds of places.
const ALL: &str =
    "mesh plane { levels k; set node, edge, bedge, cell; map cell.nodes -> node[4]; map edge.cells -> cell[2] }
program all over plane {
    inout a on cell
    inout flat on cell, no k
    inout v: real[2] on node
    inout slots on edge.cells
    out sum on ()
    param n: int = 4
    repeat n { a, flat, v, slots = raise(a, flat), grown(v), widened(slots); sum = total(a) }
}
";

/// Which pixels of a picture have colours, and not grey or black or white.
fn coloured(folder: &Folder, name: &str) -> usize {
    folder.pixels(name).iter().filter(|own| own[0] != own[1] || own[1] != own[2]).count()
}

#[test]
fn fields_over_meshes_are_drawn() {
    let folder = Folder::new();
    folder.done("mesh make airfoil --size 24x12 -o m.npz");
    let run = "run airfoil --mesh m.npz --device cpu --set steps=4 --every 2";
    folder.done(&format!("{run} --plot q.0=q_{{step}}.png --animate q.3=moving.png --fps 5"));
    // Of an output there is nothing at the start.
    assert!(!folder.path("q_0.png").exists());
    let [two, four] = ["q_2.png", "q_4.png"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(two != four && coloured(&folder, "q_2.png") > 100_000, "{}", coloured(&folder, "q_2.png"));
    assert_eq!(folder.frames("moving.png"), (2, 5));
    // Nodes are corners: cells show the mean of theirs.
    folder.done("run airfoil --stencil adt_calc --mesh m.npz --device cpu --draw --plot x.0=x.png --plot adt=adt.png");
    assert!(coloured(&folder, "x.png") > 100_000 && coloured(&folder, "adt.png") > 100_000);
}

#[test]
fn what_cannot_be_drawn_over_a_mesh_is_told() {
    let folder = Folder::new();
    fs::write(folder.path("all.stn"), ALL).unwrap();
    folder.done("mesh make airfoil --size 12x6 -o m.npz");
    let run = "run all.stn --mesh m.npz --levels 3 --device cpu --draw";
    insta::assert_snapshot!(folder.transcript(&[
        &format!("{run} --plot b=p.png"),
        &format!("{run} --plot v=p.png"),
        &format!("{run} --plot v.2=p.png"),
        &format!("{run} --plot a.0=p.png"),
        &format!("{run} --plot a=p.png --level 3"),
        &format!("{run} --plot slots=p.png"),
        &format!("{run} --plot sum=p.png"),
        &format!("{run} --plot a=p.svg"),
        &format!("{run} --animate a=p.png"),
        "run airfoil --mesh m.npz --device cpu --animate q=p.png --every 1",
        "run airfoil --stencil update --mesh m.npz --device cpu --animate q=p.png --every 1",
    ]));
}
