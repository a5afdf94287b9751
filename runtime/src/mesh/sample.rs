//! Meshes for tests: at random, with everything that meshes may have, and of squares.

use super::{Field, HOLE, Map, Mesh, Set};
use crate::array::Data;

/// A mesh of up to four sets (some empty, some not tied to others) and up to six maps (some to the own set, some with holes
/// and with the same target twice), with fields of every type.
pub fn random(seed: u64) -> Mesh {
    let mut random = fastrand::Rng::with_seed(seed);
    let sets: Vec<Set> = (0..random.usize(1..=4))
        .map(|number| Set {
            name: format!("s{number}"),
            size: if random.u8(0..8) == 0 { 0 } else { random.usize(1..60) },
        })
        .collect();
    let maps: Vec<Map> = (0..random.usize(1..=6))
        .map(|number| {
            let (from, to, arity) = (random.usize(0..sets.len()), random.usize(0..sets.len()), random.usize(1..=4));
            let hole = [0, 0, 20, 100][random.usize(0..4)];
            // Few distinct targets make large degrees.
            let some = sets[to].size.div_ceil(random.usize(1..=3));
            let mut target = || match sets[to].size == 0 || random.u8(0..100) < hole {
                true => HOLE,
                false => random.usize(0..some) as i32,
            };
            let table = (0..sets[from].size * arity).map(|_| target()).collect();
            Map { name: format!("m{number}"), from, to, arity, table }
        })
        .collect();
    let fields = (0..random.usize(0..=4))
        .map(|number| {
            let map = random.bool().then(|| random.usize(0..maps.len()));
            let set = map.map_or_else(|| random.usize(0..sets.len()), |map| maps[map].from);
            let parts = random.usize(1..=3);
            let len = sets[set].size * map.map_or(1, |map| maps[map].arity) * parts;
            let data = match number % 4 {
                0 => Data::F64((0..len).map(|_| random.f64()).collect()),
                1 => Data::F32((0..len).map(|_| random.f32()).collect()),
                2 => Data::I32((0..len).map(|_| random.i32(..)).collect()),
                _ => Data::Bool((0..len).map(|_| random.u8(0..2)).collect()),
            };
            Field { name: format!("f{number}"), set, map, parts, data }
        })
        .collect();
    Mesh { origin: format!("random mesh {seed}"), sets, maps, fields }
}

/// A rectangle of `ni` x `nj` unit squares, row after row: nodes with their coordinates `x`, interior edges (first the
/// upright ones) and cells.
pub fn quads(ni: usize, nj: usize) -> Mesh {
    let node = |i: usize, j: usize| (j * (ni + 1) + i) as i32;
    let cell = |i: usize, j: usize| (j * ni + i) as i32;
    let each = |ni: usize, nj: usize| (0..nj).flat_map(move |j| (0..ni).map(move |i| (i, j)));
    let upright =
        || each(ni - 1, nj).map(|(i, j)| ([node(i + 1, j), node(i + 1, j + 1)], [cell(i, j), cell(i + 1, j)]));
    let flat = || each(ni, nj - 1).map(|(i, j)| ([node(i, j + 1), node(i + 1, j + 1)], [cell(i, j), cell(i, j + 1)]));
    let edges: Vec<([i32; 2], [i32; 2])> = upright().chain(flat()).collect();
    let cells = each(ni, nj).flat_map(|(i, j)| [node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)]);
    let set = |name: &str, size| Set { name: name.to_owned(), size };
    let map = |name: &str, from, to, arity, table| Map { name: name.to_owned(), from, to, arity, table };
    let x = each(ni + 1, nj + 1).flat_map(|(i, j)| [i as f64, j as f64]).collect();
    Mesh {
        origin: format!("made of {ni} x {nj} squares"),
        sets: vec![set("node", (ni + 1) * (nj + 1)), set("edge", edges.len()), set("cell", ni * nj)],
        maps: vec![
            map("nodes", 1, 0, 2, edges.iter().flat_map(|(nodes, _)| *nodes).collect()),
            map("cells", 1, 2, 2, edges.iter().flat_map(|(_, cells)| *cells).collect()),
            map("nodes", 2, 0, 4, cells.collect()),
        ],
        fields: vec![Field { name: "x".to_owned(), set: 0, map: None, parts: 2, data: Data::F64(x) }],
    }
}
