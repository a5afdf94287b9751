//! Plans for patches of columns: how many columns a warp and levels a lane compute, and how blocks that stay are launched.

use super::path_classes::Walker;
use super::{Choices, Chosen, KnownGrid, Plan, Target, of_tile};
use crate::cells;
use crate::diagnostic::Refusal;
use crate::gpu::{MOST_BLOCKS, WARP};
use crate::ir::{Offset, Path, Stencil};
use crate::kernel::cost::Cost;
use crate::storage::patches::{Member, Wanted, members};
use crate::storage::{Placement, Tile};
use std::collections::BTreeSet;
use std::ops::Range;

/// Words of 32 bits that a kernel's threads may have waiting at one place: with 203 no kernel of a stencil that comes along spills, with
/// 303 one does. A thread has 255 registers, and addresses come on top.
const MOST_WAITING: usize = 215;

/// Threads of a warp.
const LANES: u32 = WARP as u32;

/// What a plan of patches has besides: its own schedule is that of a patch, whose neighbours stand as in rows.
pub struct Patches {
    /// How the columns are computed that belong to no patch.
    pub lone: Box<Plan>,
    /// What is to be found in the grid.
    pub wanted: Wanted,
}

/// A plan for patches, and for the columns that belong to none: of as many levels a lane, and then columns, as there are registers for.
///
/// # Errors
/// Those of plans for tiles.
pub(super) fn plan(
    stencil: &Stencil,
    choices: &Choices,
    chosen: Chosen,
    walker: &Walker,
    tile: Tile,
) -> Result<Plan, Refusal> {
    let one_level = Tile { levels: 1, ..tile };
    let in_a_row = Tile { columns: [tile.columns[0], 1], ..one_level };
    let smaller = [one_level, in_a_row, Tile { columns: [1, 1], ..one_level }];
    let mut plan = of_patches(stencil, choices, chosen, walker.clone(), tile)?;
    for smaller in smaller {
        if waiting(&plan)? <= MOST_WAITING {
            break;
        }
        plan = of_patches(stencil, choices, chosen, walker.clone(), smaller)?;
    }
    Ok(plan)
}

/// A plan for patches of these columns and levels.
fn of_patches(
    stencil: &Stencil,
    choices: &Choices,
    chosen: Chosen,
    walker: Walker,
    tile: Tile,
) -> Result<Plan, Refusal> {
    // The tile's schedule knows sums of steps alone: of each that it reads there has to be a path.
    let one = Tile { columns: [1, 1], ..tile };
    let lone = of_tile(stencil, choices, chosen, walker.keeping_sums(), one)?;
    let mut plan = of_tile(stencil, choices, chosen, Walker::rows(), tile)?;
    let here = Path::default();
    // Columns of the tile come first, which are written.
    let mut footprint: Vec<Offset> = tile.paths().iter().map(|path| path.offset().horizontal()).collect();
    footprint.extend(plan.neighbours.iter().map(Path::offset));
    let mut seen = BTreeSet::new();
    footprint.retain(|offset| seen.insert(*offset));
    let lone_columns: Vec<Path> = std::iter::once(here).chain(lone.neighbours.iter().cloned()).collect();
    let paths = lone.path_classes.representatives().unwrap_or_else(|| lone_columns.clone());
    let wanted = Wanted { columns: tile.columns, footprint, lone: lone_columns, paths };
    plan.patches = Some(Patches { lone: Box::new(lone), wanted });
    Ok(plan)
}

/// How many words wait in registers at one place of the kernel of a plan.
fn waiting(plan: &Plan) -> Result<usize, Refusal> {
    Ok(Cost::of(&cells::kernel(plan, Vec::new())?.kernel).waiting)
}

/// How many levels a lane computes, and at most so many: all of them exist, and begin at an aligned one; and where fewer leave fewer lanes
/// idle, it is those.
pub(super) fn levels_a_lane(choices: &Choices, most: u32, target: &Target) -> u32 {
    let Range { start, end } = target.region.k;
    let fits = |levels: u32| {
        let is_whole = [start, end].iter().all(|level| level.is_multiple_of(levels as usize));
        levels == 1 || (levels <= most && target.levels_known && is_whole)
    };
    let lanes = choices.block[0].max(1);
    let turns = |levels: u32| (end - start).div_ceil((lanes * levels) as usize) * levels as usize;
    [4, 2, 1].into_iter().filter(|&levels| fits(levels)).min_by_key(|&levels| turns(levels)).unwrap_or(1)
}

impl Plan {
    /// Which patch each column of the grid belongs to, by its number in the user's order; nothing if the plan has none, or no grid.
    pub fn members(&self) -> Option<Vec<Member>> {
        members(&self.known_grid.as_ref()?.layout, &self.patches.as_ref()?.wanted)
    }

    /// Blocks that are launched for patches: each takes several groups of them, since with fewer than two there is nothing to look ahead to.
    ///
    /// # Errors
    /// There are more groups than a thread can count.
    pub(super) fn launch_of_patches(&self, known_grid: &KnownGrid) -> Result<[u32; 3], Refusal> {
        let [x, y, z] = self.choices.block;
        let rows = match known_grid.layout.placement {
            Placement::Patches { rows, .. } => rows,
            _ => 0,
        };
        let slices = known_grid.region.k.len().div_ceil((x * self.tile.levels) as usize);
        let turns = rows.div_ceil((y * z) as usize).saturating_mul(slices);
        // Threads count turns, and look one ahead.
        if turns > i32::MAX as usize / 2 {
            return Err(Refusal::new(format!("{turns} groups of patches and levels are more than a thread can count"))
                .help("give more threads with --block, as 32x4x1"));
        }
        Ok([turns.div_ceil(2) as u32, 1, 1])
    }

    /// Whether blocks stay, and take what there is to compute by turns: of those that a launch has at most, no more are of use than there
    /// is room for at once.
    pub fn blocks_stay(&self) -> bool {
        self.patches.is_some()
    }

    /// For how many blocks a multiprocessor has to have room at once; nothing if that is for compilers to decide.
    pub fn blocks_at_once(&self) -> Option<u32> {
        let threads: u32 = self.choices.block.iter().product();
        let warps = self.access.warps(&self.choices.knobs, self.choices.precision)?;
        Some((warps / threads.div_ceil(LANES)).clamp(1, MOST_BLOCKS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Grid, Region};
    use crate::plan;
    use crate::source::Source;

    /// Of the levels that a warp has at once, as few as can be are none of the column's.
    #[test]
    fn lanes_have_as_many_levels_as_leave_few_of_them_idle() {
        let of = |first: usize, end: usize, most: u32, known: bool| {
            let (grid, region) = (Grid::rows(4, 4, end), Region::rows(0..4, 0..4, first..end));
            let (sharing, layouts) = (None, None);
            let target = Target { grid, adjacency: None, region: &region, levels_known: known, sharing, layouts };
            levels_a_lane(&Choices { block: [32, 4, 1], ..Choices::default() }, most, &target)
        };
        let levels = [64, 128, 90, 20, 63, 32].map(|end| of(0, end, 4, true));
        assert_eq!(levels, [2, 4, 1, 1, 1, 1]);
        assert_eq!([of(0, 128, 2, true), of(2, 128, 4, true), of(1, 64, 4, true), of(0, 64, 2, false)], [2, 2, 1, 1]);
    }

    /// A patch shrinks along levels, then along j, until what its threads read has room in registers.
    #[test]
    fn patches_are_as_large_as_registers_allow() {
        let grid = Grid::rows(16, 16, 64);
        let region = Region::rows(2..14, 2..14, 0..64);
        let (sharing, layouts) = (None, None);
        let target = Target { grid, adjacency: None, region: &region, levels_known: true, sharing, layouts };
        let of = |fields: usize| {
            let names: Vec<String> = (0..fields).map(|number| format!("f{number}")).collect();
            let kept = names
                .iter()
                .map(|name| format!("let of_{name} = {name}[i-1] * {name}[i+1] * {name}[j-1] * {name}[j+1];"));
            let kept: String = kept.collect();
            let read = names.iter().map(|name| format!("of_{name}[i-1] / of_{name}[j+1]"));
            let read = read.collect::<Vec<_>>().join(" + ");
            let text = format!("stencil s {{ in {}; out b; {kept} b = {read} }}", names.join(", "));
            let lowered = crate::check(&Source::new("s.stn", &text));
            let choices = Choices {
                access: "patches".into(),
                storage: "uncompressed".into(),
                fastest: crate::storage::fastest::Fastest::Levels,
                block: [32, 4, 1],
                ..Choices::default()
            };
            let plan = plan::plan(&lowered.stencils[0], &choices, Some(target)).unwrap();
            (plan.tile.levels, plan.tile.columns)
        };
        assert_eq!([3, 4, 16, 32].map(of), [(2, [2, 2]), (1, [2, 2]), (1, [2, 1]), (1, [1, 1])]);
    }
}
