//! The plans of a program that are worth a look.

use super::plan::{PlanKind, ProgramPlan, usual_shape};
use stencilc_compiler::access::swic::HEIGHT;
use stencilc_compiler::grid::Form;
use stencilc_compiler::plan::Choices;
use stencilc_compiler::step::stream::{Shape, Strip};
use stencilc_compiler::step::tiled;
use stencilc_compiler::storage::fastest::Fastest;

/// What is worth a look where nobody names a strategy or a storage: strategy, storage and fastest axis, on grids in rows and on those of
/// any cells.
const IN_ROWS: &[(&str, &str, Fastest)] =
    &[("idxvar", "regular", Fastest::Columns), ("tile", "regular", Fastest::Columns)];
const OF_CELLS: &[(&str, &str, Fastest)] = &[
    ("patches", "uncompressed", Fastest::Levels),
    ("idxvar", "uncompressed", Fastest::Columns),
    ("idxvar", "uncompressed", Fastest::Levels),
];

/// Of kernels that may compute a call on a grid of this form, those that are enough where nobody asks for more: of many that differ in
/// blocks and knobs alone, the usual one, or else the first of those that are the most like it.
pub fn enough(all: &[Choices], form: Form) -> Vec<Choices> {
    let numbers = |own: &Choices| {
        let block = own.block.to_vec();
        std::iter::once(block).chain(own.settings().map(|(_, own)| own.numbers().to_vec())).collect::<Vec<_>>()
    };
    let unusual = |own: &Choices| {
        let knobs = Choices::default().knobs;
        let usual = Choices { block: Choices::usual_block(&own.access), knobs, ..own.clone() };
        numbers(own).into_iter().zip(numbers(&usual)).filter(|(own, usual)| own != usual).count()
    };
    let of = |&(access, storage, fastest): &(&str, &str, Fastest)| {
        let own = all.iter().filter(|own| own.access == access && own.storage == storage);
        own.min_by_key(|own| unusual(own)).map(|own| Choices { fastest, ..own.clone() })
    };
    let worth = match form {
        Form::Rows => IN_ROWS,
        Form::Cells => OF_CELLS,
    };
    worth.iter().filter_map(of).collect()
}

/// The most ways to hold a plane in registers that are worth a look.
const RESIDENT: usize = 6;

/// Plans worth a look: those of these kinds, with as many steps at once, kernels that are a thread a cell as chosen. Blocks walk along k
/// as the choices have it, if any of these does.
pub fn candidates(kinds: &[PlanKind], steps: &[usize], choices: &[Choices], graph: bool) -> Vec<ProgramPlan> {
    let plan = |kind, steps, choices: &Choices, shape, resident| ProgramPlan {
        kind,
        steps,
        choices: choices.clone(),
        shape,
        tile: None,
        resident,
        graph,
    };
    // Rows are walked down in one storage.
    let rows = choices.iter().find(|choices| choices.has_rows());
    let mut plans = Vec::new();
    for &kind in kinds {
        match kind {
            PlanKind::Separate | PlanKind::Merged => {
                plans
                    .extend(choices.iter().map(|choices| plan(kind, 1, choices, usual_shape(1, choices.precision), 0)));
            }
            PlanKind::Recomputed => {
                // Beyond two steps the work done again is more than what is saved.
                for &steps in steps.iter().filter(|&&steps| steps <= 2) {
                    plans.extend(
                        choices.iter().map(|choices| plan(kind, steps, choices, usual_shape(1, choices.precision), 0)),
                    );
                }
            }
            PlanKind::Streamed => {
                for &steps in steps {
                    let of = |choices| shapes(steps).map(move |shape| plan(kind, steps, choices, shape, 0));
                    plans.extend(rows.into_iter().flat_map(of));
                }
            }
            PlanKind::Tiled => {
                let each = steps.iter().flat_map(|&steps| TILES.map(|tile| (steps, tile)));
                plans.extend(rows.into_iter().flat_map(|choices| {
                    each.clone().map(|(steps, tile)| {
                        let shape = usual_shape(steps, choices.precision);
                        ProgramPlan { tile, ..plan(kind, steps, choices, shape, 0) }
                    })
                }));
            }
            PlanKind::Walked => {
                let mut ways: Vec<Choices> =
                    choices.iter().filter(|own| own.has_rows() && own.walks()).cloned().collect();
                if let (true, Some(base)) = (ways.is_empty(), rows) {
                    ways.extend(WALKS.map(|(access, height, [x, y])| {
                        let base = Choices { access: access.to_owned(), block: [x, y, 1], ..base.clone() };
                        base.with(HEIGHT.name, [height])
                    }));
                }
                plans.extend(ways.iter().map(|own| plan(kind, 1, own, usual_shape(1, own.precision), 0)));
            }
            PlanKind::Persistent => {
                let of = |choices| shapes(1).map(move |shape| plan(kind, 1, choices, shape, 0));
                plans.extend(rows.into_iter().flat_map(of));
            }
            PlanKind::Resident => {
                let of = |choices| {
                    (0..RESIDENT).map(move |number| plan(kind, 1, choices, usual_shape(1, choices.precision), number))
                };
                plans.extend(rows.into_iter().flat_map(of));
            }
        }
    }
    plans
}

/// Tiles worth a look: the one that should be fastest, and others around it.
const TILES: [Option<tiled::Shape>; 7] = [
    None,
    tile([64, 16], 128, 4),
    tile([64, 32], 256, 4),
    tile([64, 32], 256, 8),
    tile([128, 32], 512, 4),
    tile([64, 64], 512, 4),
    tile([64, 64], 512, 8),
];

const fn tile(tile: [usize; 2], threads: usize, rows: usize) -> Option<tiled::Shape> {
    Some(tiled::Shape { tile, threads, rows })
}

/// Walks along k worth a look: strategy, rows of a thread (0 for as many as have room), threads of a block along i and j.
const WALKS: [(&str, u32, [u32; 2]); 11] = [
    ("swic", 0, [128, 4]),
    ("swic", 0, [64, 8]),
    ("swic", 0, [64, 4]),
    ("swic", 2, [128, 4]),
    ("swic", 4, [256, 2]),
    ("swic", 3, [64, 4]),
    ("swic", 6, [64, 4]),
    ("swic", 8, [64, 4]),
    ("swic", 8, [128, 2]),
    ("queue", 0, [128, 4]),
    ("queue", 2, [128, 4]),
];

/// Rows that a warp walks down: as many as fill whole waves, or these.
const ROWS: [Option<usize>; 4] = [None, Some(32), Some(64), Some(128)];

/// Shapes of streams worth a look.
fn shapes(steps: usize) -> impl Iterator<Item = Shape> {
    let is_one = steps == 1;
    let strips: &[Strip] = if is_one { &[Strip::Aligned, Strip::Overlapping] } else { &[Strip::Overlapping] };
    // Rows ahead cost registers, of which several steps leave none.
    let ahead: &[usize] = if is_one { &[2, 4] } else { &[2] };
    let each = strips.iter().flat_map(move |&strip| ahead.iter().map(move |&ahead| (strip, ahead)));
    each.flat_map(|(strip, ahead)| {
        [16, 32]
            .into_iter()
            .flat_map(move |lane| ROWS.map(|rows| Shape { lane, ahead, strip, rows, ..Shape::default() }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(choices: &[Choices]) -> Vec<String> {
        candidates(&[PlanKind::Walked], &[1], choices, true).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn blocks_walk_as_they_are_told_to_or_in_ways_worth_a_look() {
        let walk = |access: &str, height| {
            Choices { access: access.to_owned(), block: [64, 4, 1], ..Choices::default() }.with(HEIGHT.name, [height])
        };
        let named = [walk("swic", 3), Choices::default(), walk("queue", 2)];
        let told = [
            "--fuse walked --access swic --block 64x4 --height 3",
            "--fuse walked --access queue --block 64x4 --height 2",
        ];
        assert_eq!(walked(&named), told);
        // Cells in no rows are not walked through.
        let of_cells = Choices { storage: "uncompressed".to_owned(), ..walk("swic", 3) };
        assert_eq!(walked(&[of_cells]), Vec::<String>::new());
        let others = walked(&[Choices::default()]);
        assert_eq!(others.len(), WALKS.len());
        assert!(others.contains(&"--fuse walked --access swic --block 64x4 --height 8".to_owned()), "{others:?}");
    }
}
