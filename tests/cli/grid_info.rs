//! What `stencilc grid info` says of tables of neighbours.

use crate::common::folder::{Folder, text};
use serde_json::Value;
use std::fs;

/// The tables of a layout: patterns, those of computed cells alone, and per mille of cells with the most common one.
fn tables(said: &Value) -> Vec<(String, [u64; 3])> {
    let tables = said["layouts"].as_array().unwrap().iter().flat_map(|own| {
        own["tables"].as_array().unwrap().iter().map(move |table| {
            let number = |key: &str| table[key].as_u64().unwrap();
            let name = |of: &Value, key: &str| of[key].as_str().unwrap().to_owned();
            let share = (1000.0 * table["most_common"].as_f64().unwrap()).round() as u64;
            let label = format!("{} {}", name(own, "layout"), name(table, "neighbors"));
            (label, [number("patterns"), number("inner_patterns"), share])
        })
    });
    tables.collect()
}

#[test]
fn tables_of_the_thesis() {
    let folder = Folder::new();
    // Table 6.7 of A. Roesti's thesis.
    let said = folder.json("grid info laplap --grid 512x512x64 --layout row-major --json");
    let found = tables(&said);
    let row = |name: &str, numbers| (name.to_owned(), numbers);
    assert_eq!(found, [row("row-major direct", [4093, 2037, 969]), row("row-major chasing", [2054, 1019, 977])]);
    let entries = |table: usize| &said["layouts"][0]["tables"][table]["entries"];
    assert_eq!((entries(0), entries(1)), (&Value::from(3_145_728), &Value::from(1_048_576)));

    let said = folder.json("grid info laplap --grid 512x512x64 --layout z-curve --run-width 16 --json");
    let found = tables(&said);
    assert_eq!(
        found.iter().map(|(_, [patterns, _, share])| (*patterns, *share)).collect::<Vec<_>>(),
        [(5299, 81), (2435, 203)]
    );
    // Its figure 6.3 says of the first two patterns: "shared by 53340 cells".
    let counts = &said["layouts"][0]["tables"][1]["cells_by_pattern"];
    assert_eq!((&counts[0], &counts[1]), (&Value::from(53_340), &Value::from(53_340)));
    assert_eq!(counts.as_array().unwrap().len(), 40);

    let found = tables(&folder.json("grid info laplap --layout z-curve --run-width 32 --json"));
    assert_eq!(found.iter().map(|(_, [patterns, ..])| *patterns).collect::<Vec<_>>(), [4582, 2222]);
}

#[test]
fn all_layouts_to_be_read() {
    let folder = Folder::new();
    let said = folder.transcript(&[
        "grid info laplap --grid 70x41x20 --layout all --run-width 8",
        "grid info fastwaves --grid 70x41x20 --precision f32 --plot made.png",
    ]);
    insta::assert_snapshot!(said);
    assert!(fs::read(folder.path("made.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn json_says_what_the_text_says() {
    let folder = Folder::new();
    let said = folder.json("grid info laplap --grid 70x41x20 --json");
    assert_eq!((&said["cells"], &said["inner_cells"]), (&Value::from(70 * 41), &Value::from(66 * 37)));
    assert_eq!(said["neighbours"].as_array().unwrap().len(), 12);
    let table = &said["layouts"][0]["tables"][0];
    let number = |key: &str| table[key].as_u64().unwrap();
    // 428 cells of halo, before which 20 places are free, so that the first computed cell is aligned.
    assert_eq!(number("bytes_uncompressed"), 4 * 12 * (70 * 41 + 20));
    assert_eq!(number("bytes_pattern"), 4 * (70 * 41 + 20));
    assert_eq!(number("bytes_table"), 4 * 12 * number("inner_patterns"));
    assert_eq!(number("bytes_compressed"), number("bytes_pattern") + number("bytes_table"));
    assert_eq!(table["fits_constant_memory"], Value::from(number("bytes_table") <= 65_536));
    let text = folder.done("grid info laplap --grid 70x41x20");
    let patterns = number("patterns");
    assert!(text.contains(&format!("direct       34440  {patterns:>8}")), "{text}");
}

#[test]
fn the_table_fits_where_a_kernel_can_have_it_in_constant_memory() {
    let folder = Folder::new();
    for grid in ["512x512x64", "300x300x4"] {
        let said = folder.json(&format!("grid info laplap --grid {grid} --layout z-curve --json"));
        for table in said["layouts"][0]["tables"].as_array().unwrap() {
            let neighbors = table["neighbors"].as_str().unwrap();
            let built = folder.run(&format!(
                "build laplap --grid {grid} --storage compressed --layout z-curve --table constant --neighbors {neighbors} \
                 --emit plan"
            ));
            let fits = table["fits_constant_memory"].as_bool().unwrap();
            assert_eq!(built.status.success(), fits, "{grid} {neighbors}: {}", text(&built.stderr));
        }
    }
}

#[test]
fn rows_that_are_written_down_have_the_same_tables() {
    let folder = Folder::new();
    folder.done("grid make emulated --size 70x41 -o rows.npz");
    for stencil in ["laplap", "fastwaves", "hdiff"] {
        let [rows, file] = ["70x41x9", "rows.npz"].map(|grid| {
            let said = folder.json(&format!("grid info {stencil} --grid {grid} --layout all --run-width 8 --json"));
            (said["inner_cells"].clone(), said["layouts"].clone())
        });
        assert_eq!(rows, file, "{stencil}");
    }
}

#[test]
fn grids_from_files() {
    let folder = Folder::new();
    folder.done("grid make quadtree --size 24x16 --depth 2 -o quad.npz");
    insta::assert_snapshot!(folder.transcript(&[
        "grid info laplap --grid quad.npz --layout hilbert --plot quad.png",
        "grid info laplap --grid nothing.npz",
        "grid info laplap --levels 3",
        "grid info laplap --grid 70x41x20 --picture rows.png",
        "grid info laplap --grid quad.npz --picture patches.svg",
    ]));
    // As many places as the tables of a kernel have.
    let said = folder.json("grid info laplap --grid quad.npz --json");
    let table = &said["layouts"][0]["tables"][0];
    let number = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let places = number(table, "bytes_pattern") / 4;
    assert!((0..32).contains(&(places - number(&said, "cells"))));
    assert_eq!(number(table, "bytes_uncompressed"), 4 * number(table, "relations") * places);
}

#[test]
fn patches_of_a_grid_are_drawn() {
    let folder = Folder::new();
    folder.done("grid make quadtree --size 24x16 --depth 2 -o quad.npz");
    let said = folder.json("grid info laplap --grid quad.npz --picture patches.png --json");
    let pixels = folder.pixels("patches.png");
    let of = |colour: [u8; 3]| pixels.iter().filter(|own| **own == colour).count();
    // Of every colour of patches, of cells by themselves and of those at the edges there is some.
    let least = said["patches"].as_array().unwrap().iter().map(|own| own["lone_cells"].as_u64().unwrap()).min();
    assert!(least > Some(0));
    for colour in [[68, 119, 170], [102, 204, 238], [34, 136, 51], [200, 60, 40], [160, 160, 160]] {
        assert!(of(colour) > 1000, "{colour:?}: {}", of(colour));
    }
    // Nobody knows where the cells are.
    fs::write(folder.path("mine.stn"), "stencil mine { in a; out b; b = a[i-1] + a[i+1] }").unwrap();
    let bare = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/grid_files/i4.npz");
    fs::copy(bare, folder.path("bare.npz")).unwrap();
    let said = folder.refused("grid info mine.stn --grid bare.npz --picture bare.png");
    assert!(said.contains("it is not known where the cells of"), "{said}");
}

#[test]
fn what_has_no_tables_is_refused() {
    let folder = Folder::new();
    let levels = "stencil levels { in a; out b; b = a[k-1] }\n";
    fs::write(folder.path("levels.stn"), levels).unwrap();
    insta::assert_snapshot!(folder.transcript(&[
        "grid info levels.stn --grid 9x6x3",
        "grid info two.stn --stencil one --grid 9x6x3",
        "grid info laplap --grid 4x9x3",
        "grid info laplap --grid 2000000x2000000x1",
        "grid info laplap --layout rowmajor",
        "grid info laplap --layout z-curve --run-width 12",
        "grid info laplap --grid 9x9x1 --plot made.svg",
        "grid info laplap --grid 9x9x1 --plot nowhere/made.png",
        "grid info weigh.stn --grid 9x6x3 --set second=1",
        "grid",
    ]));
}
