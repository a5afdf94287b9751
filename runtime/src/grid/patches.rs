//! A picture of the patches of a grid: boxes of columns that are computed together, and columns that belong to none.

use super::Raster;
use crate::error::{Error, Result};
use crate::plot::kinds::{self, Kinds, Rgb};
use std::collections::{BTreeMap, BTreeSet};
use stencilc_compiler::diagnostic::Refusal;
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::plan::Plan;
use stencilc_compiler::storage::patches::Member;

/// Colours of patches, so that those side by side are told apart, mostly.
const PATCHES: [Rgb; 6] =
    [[68, 119, 170], [102, 204, 238], [34, 136, 51], [120, 190, 120], [170, 170, 220], [20, 150, 150]];
/// Columns that belong to no patch.
const LONE: Rgb = [200, 60, 40];
/// Columns that are not computed.
const OUTSIDE: Rgb = [160, 160, 160];
/// Where there is no column.
const NOTHING: Rgb = [255; 3];

/// Refuses a grid that cannot be drawn.
///
/// # Errors
/// It is not known where its cells are.
pub fn check(adjacency: &Adjacency) -> Result<()> {
    adjacency.centres().map(|_| ()).ok_or_else(|| unknown(adjacency))
}

fn unknown(adjacency: &Adjacency) -> Error {
    let why = format!("it is not known where the cells of `{}` are", adjacency.name.as_told());
    Error::from(Refusal::new(why).help("a grid with the arrays `x` and `y`, their centres, can be drawn"))
}

/// The picture of a plan's patches on its grid, as the bytes of a PNG file.
///
/// # Errors
/// The plan has no patches, or those of [`check`].
pub fn picture(plan: &Plan, adjacency: &Adjacency, title: &str) -> Result<Vec<u8>> {
    let members = plan.members().ok_or_else(|| Error::check("a plan without patches was to be drawn"))?;
    let Raster { ni, nj, cells } = Raster::new(adjacency).ok_or_else(|| unknown(adjacency))?;
    let colours = colours(&members, &cells, ni);
    let colour = |cell: usize| match members[cell] {
        Member::Patch(number) => colours.get(&number).copied().unwrap_or(PATCHES[0]),
        Member::Lone => LONE,
        Member::Outside => OUTSIDE,
    };
    let points: Vec<Rgb> = cells.iter().map(|cell| cell.map_or(NOTHING, colour)).collect();
    let count = |is: &dyn Fn(&Member) -> bool| members.iter().filter(|own| is(own)).count();
    let in_patches = count(&|own| matches!(own, Member::Patch(_)));
    let [i, j] = plan.tile.columns;
    let patches = in_patches / (i * j) as usize;
    let mut legend = vec![(format!("{in_patches} cells in {patches} patches of {i} x {j}"), PATCHES[0])];
    legend.push((format!("{} cells by themselves", count(&|own| *own == Member::Lone)), LONE));
    let outside = count(&|own| *own == Member::Outside);
    legend.extend((outside > 0).then(|| (format!("{outside} cells that are not computed"), OUTSIDE)));
    kinds::png(&Kinds { title, legend: &legend, points: &points, ni, nj })
}

/// The colour of each patch that is seen: another one than those beside it have, as far as there are enough.
fn colours(members: &[Member], cells: &[Option<usize>], ni: usize) -> BTreeMap<u32, Rgb> {
    let patch = |point: usize| match members[(*cells.get(point)?)?] {
        Member::Patch(number) => Some(number),
        Member::Lone | Member::Outside => None,
    };
    let mut beside: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for point in 0..cells.len() {
        let Some(own) = patch(point) else { continue };
        let right = if (point + 1).is_multiple_of(ni) { None } else { patch(point + 1) };
        for other in [right, patch(point + ni)].into_iter().flatten().filter(|&other| other != own) {
            beside.entry(own).or_default().insert(other);
            beside.entry(other).or_default().insert(own);
        }
        beside.entry(own).or_default();
    }
    let mut colours: BTreeMap<u32, Rgb> = BTreeMap::new();
    for (&own, others) in &beside {
        // Not always the first that is free, so that all come up.
        let mut tried = (0..PATCHES.len()).map(|at| PATCHES[(own as usize + at) % PATCHES.len()]);
        let is_free = |colour: &Rgb| others.iter().all(|other| colours.get(other) != Some(colour));
        let colour = tried.find(is_free).unwrap_or(PATCHES[0]);
        colours.insert(own, colour);
    }
    colours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_side_by_side_have_other_colours() {
        // 40 x 40 patches of 3 x 2 points.
        let (ni, nj) = (120, 80);
        let members: Vec<Member> =
            (0..ni * nj).map(|at| Member::Patch((at / ni / 2 * 40 + at % ni / 3) as u32)).collect();
        let cells: Vec<Option<usize>> = (0..ni * nj).map(Some).collect();
        let colours = colours(&members, &cells, ni);
        assert_eq!(colours.len(), 1600);
        for own in 0..1600 {
            assert!(own % 40 == 39 || colours[&own] != colours[&(own + 1)], "{own}");
            assert!(own >= 1560 || colours[&own] != colours[&(own + 40)], "{own}");
        }
        assert!(PATCHES.iter().all(|colour| colours.values().filter(|own| *own == colour).count() > 100));
    }
}
