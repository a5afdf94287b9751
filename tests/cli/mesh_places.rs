//! Stencils over meshes whose sums are looked at along many ways: their kernels stay short, and compute what the interpreter does.

use crate::common::folder::Folder;
use std::fs;
use stencilc_runtime::mesh::{Map, Mesh, Set, save};

/// Sums of sums: written out, `last` would come to nine times `wide`, of which each is nine times `near`.
const TEXT: &str = "
mesh net {
    set cell
    map cell.next -> cell[3] missing skip
}

stencil near over net.cell {
    in  a on cell = -2..2
    out r on cell
    let near = sum(n in next.next) { a[n] / (a[n] * a[n] + 0.5) }
    r = near
}

stencil wide over net.cell {
    in  a on cell = -2..2
    out r on cell
    let near = sum(n in next.next) { a[n] / (a[n] * a[n] + 0.5) }
    let wide = sum(n in next.next) { near[n] / (a[n] * a[n] + 1.5) } - near
    r = wide
}

stencil last over net.cell {
    in  a on cell = -2..2
    out r on cell
    let near = sum(n in next.next) { a[n] / (a[n] * a[n] + 0.5) }
    let wide = sum(n in next.next) { near[n] / (a[n] * a[n] + 1.5) } - near
    r = sum(n in next.next) { wide[n] } - wide
}

stencil gathered over net.cell {
    in  a on cell = -2..2
    inc total on cell
    let near = sum(n in next.next) { a[n] / (a[n] * a[n] + 0.5) }
    total[next.0] += sum(n in next.next.next) { near[n] } / (a * a + 1)
    total[next.1] -= near
}
";

/// Each cell leads to three others, or to fewer.
fn net(cells: usize) -> Mesh {
    let others = |cell: usize| [(cell * 7 + 1) % cells, (cell + 3) % cells, (cell * 5 + 2) % cells];
    let table = (0..cells).flat_map(|cell| {
        let holes = (cell % 4).saturating_sub(1);
        others(cell).into_iter().enumerate().map(move |(slot, other)| if slot + holes < 3 { other as i32 } else { -1 })
    });
    let map = Map { name: "next".to_owned(), from: 0, to: 0, arity: 3, table: table.collect() };
    let set = Set { name: "cell".to_owned(), size: cells };
    Mesh { origin: "net".to_owned(), sets: vec![set], maps: vec![map], fields: Vec::new() }
}

#[test]
fn kernels_of_sums_of_sums_stay_short_and_keep_the_bits() {
    let folder = Folder::new();
    fs::write(folder.path("net.stn"), TEXT).unwrap();
    save(&net(40), &folder.path("net.npz")).unwrap();
    let kernel =
        |name: &str| folder.done(&format!("build net.stn --stencil {name} --mesh net.npz --precision f64 --emit cuda"));
    let [near, wide, last] = ["near", "wide", "last"].map(kernel);
    // What is short is written out, and what is long stands there once.
    let loops = |text: &str| text.matches("for (int n").count();
    assert_eq!(loops(&near), 0, "{near}");
    assert!(loops(&wide) == 1 && loops(&last) > 1, "{wide}\n{last}");
    let lines = |text: &str| text.lines().count();
    assert!(lines(&wide) < 4 * lines(&near), "{} of {}", lines(&wide), lines(&near));
    assert!(lines(&last) < 3 * lines(&wide), "{} of {}", lines(&last), lines(&wide));
    for (name, strategies) in [("last", "owner"), ("gathered", "all")] {
        let call = format!("verify net.stn --stencil {name} --mesh net.npz --device emulate --strategy {strategies}");
        let verified = folder.run(&format!("{call} --vectors aos --precision f64"));
        let said = String::from_utf8_lossy(&verified.stdout).into_owned();
        assert!(verified.status.success(), "{call}: {said}{}", String::from_utf8_lossy(&verified.stderr));
    }
}
