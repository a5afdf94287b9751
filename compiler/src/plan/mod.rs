//! Plans: a stencil, a storage and an access strategy become one kernel. The only place where storage and access meet.

pub mod lookups;
pub mod schedule;

use crate::access::{self, Access, LevelsPerThread, Shape, Wanted};
use crate::analysis::extents::{Demand, demand};
use crate::diagnostic::Refusal;
use crate::grid::{Grid, Region};
use crate::ir::{self, FieldId, Levels, Offset, Precision, Stencil, Stored};
use crate::storage::{self, Layout, Neighbour, Storage};
use schedule::Schedule;
use serde::{Deserialize, Serialize};

/// What can be chosen. Together with the stencil it is enough to make the kernel again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// A name of [`access::ACCESSES`].
    pub access: String,
    /// A name of [`storage::STORAGES`].
    pub storage: String,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Levels a thread, for strategies that slice.
    pub slice: u32,
    /// Whether 64-bit indices are forced.
    pub wide: bool,
    /// Whether every index is checked, and the first wrong one told; for a known grid only.
    pub checked: bool,
    /// Whose functions are called where devices round differently.
    pub math: Math,
}

/// Whose `exp`, `log`, `sin` and their kin a kernel calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Math {
    /// The language's own: the same bits everywhere.
    #[default]
    Own,
    /// The device's: what it rounds differently is different.
    Device,
}

impl Math {
    /// `own` or `device`.
    pub fn name(self) -> &'static str {
        match self {
            Math::Own => "own",
            Math::Device => "device",
        }
    }
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            access: "idxvar".into(),
            storage: "regular".into(),
            precision: Precision::F64,
            contract: true,
            block: [64, 2, 1],
            slice: 8,
            wide: false,
            checked: false,
            math: Math::Own,
        }
    }
}

/// A grid that is known when compiling: its extents, strides and tables are constants.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// The grid.
    pub grid: Grid,
    /// What is computed.
    pub region: Region,
    /// Whether the levels computed are constants too, or depend on parameters that are given at the launch.
    pub levels_known: bool,
    /// Where everything is.
    pub layout: Layout,
}

/// The grid that a kernel is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The grid.
    pub grid: Grid,
    /// What is computed, for the parameters at hand.
    pub region: &'a Region,
    /// Whether the kernel will only ever run with these parameters.
    pub levels_known: bool,
}

/// How one kernel computes a stencil.
pub struct Plan {
    /// The stencil, contracted and folded.
    pub stencil: Stencil,
    /// What was chosen.
    pub choices: Choices,
    /// The storage chosen.
    pub storage: &'static dyn Storage,
    /// The strategy chosen.
    pub access: &'static dyn Access,
    /// The grid, if it is known.
    pub fixed: Option<Fixed>,
    /// Whether indices have 64 bits.
    pub wide: bool,
    /// Horizontal neighbours, in the order of the tables' relations.
    pub neighbours: Vec<Neighbour>,
    /// Neighbours and the shapes of fields in which they are read.
    pub wanted: Vec<Wanted>,
    /// What is computed where.
    pub schedule: Schedule,
}

/// The stencil as kernels and the interpreter compute it.
pub fn prepare(stencil: &Stencil, precision: Precision, contract: bool) -> Stencil {
    let stencil = if contract { ir::contract(stencil) } else { stencil.clone() };
    ir::fold(&stencil, precision)
}

/// Plans a kernel for `stencil`, which is prepared; for one grid, if it is known.
///
/// # Errors
/// What was chosen does not exist or does not fit together.
pub fn plan(stencil: &Stencil, choices: &Choices, target: Option<Target>) -> Result<Plan, Refusal> {
    let access = access::find(&choices.access).map_err(Refusal::new)?;
    let storage = storage::find(&choices.storage).map_err(Refusal::new)?;
    check_block(choices.block)?;
    if choices.slice == 0 || choices.slice > 1024 {
        return Err(Refusal::new(format!("{} levels a thread are not possible", choices.slice)).help("1 to 1024 are"));
    }
    let demand = demand(stencil);
    let neighbours = neighbours(stencil, &demand);
    let wanted = wanted(stencil, &demand, &neighbours);
    let fixed = match target {
        Some(target) => Some(fix(stencil, choices, storage, target, &neighbours)?),
        None => None,
    };
    if choices.checked {
        check_checked(fixed.as_ref())?;
    }
    let needs_wide = fixed.as_ref().is_some_and(|fixed| {
        let most = (fixed.grid.nk + 2) as u128 * fixed.layout.plane as u128;
        most > i32::MAX as u128
    });
    let wide = choices.wide || needs_wide;
    let schedule = schedule::schedule(stencil)?;
    Ok(Plan {
        stencil: stencil.clone(),
        choices: choices.clone(),
        storage,
        access,
        fixed,
        wide,
        neighbours,
        wanted,
        schedule,
    })
}

/// Whether a block of threads is possible on any GPU.
///
/// # Errors
/// It is not.
pub fn check_block([x, y, z]: [u32; 3]) -> Result<(), Refusal> {
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads == 0 || threads > 1024 || z > 64 {
        return Err(Refusal::new(format!("a block of {x}x{y}x{z} threads is not possible"))
            .help("a block has 1 to 1024 threads, at most 64 of them along z"));
    }
    Ok(())
}

/// Whether a kernel can check its indices.
fn check_checked(fixed: Option<&Fixed>) -> Result<(), Refusal> {
    let Some(fixed) = fixed else {
        return Err(
            Refusal::new("a kernel for any grid cannot check its indices").help("give the grid: --grid 512x512x64")
        );
    };
    if fixed.grid.columns() as u128 * 3 > i32::MAX as u128 {
        return Err(Refusal::new(format!("the grid {} has too many columns for a checked kernel", fixed.grid))
            .help("look for the fault on a smaller grid"));
    }
    Ok(())
}

/// Neighbours that fields are read at. The order is that of first use in the text of the stencil, so that what belongs
/// together stays together.
fn neighbours(stencil: &Stencil, demand: &Demand) -> Vec<Neighbour> {
    let mut offsets: Vec<Offset> = Vec::new();
    for (field, reads) in &demand.reads {
        if stencil.fields[*field].place.horizontal {
            offsets.extend(reads.iter().map(|offset| offset.horizontal()));
        }
    }
    offsets.retain(|&offset| offset != Offset::default());
    // Near ones first: they are what a reader looks for.
    let distance = |offset: &Offset| (i64::from(offset.i).abs() + i64::from(offset.j).abs(), offset.j, offset.i);
    offsets.sort_by_key(distance);
    offsets.dedup();
    offsets.into_iter().enumerate().map(|(relation, offset)| Neighbour { offset, relation }).collect()
}

fn wanted(stencil: &Stencil, demand: &Demand, neighbours: &[Neighbour]) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for &neighbour in neighbours {
        for shape in [Shape::Volume, Shape::Plane] {
            let read = demand.reads.iter().any(|(field, offsets)| {
                shape_of(stencil, *field) == Some(shape)
                    && offsets.iter().any(|offset| offset.horizontal() == neighbour.offset)
            });
            if read {
                wanted.push(Wanted { neighbour, shape });
            }
        }
    }
    wanted
}

/// The shape of a field; nothing for one without horizontal axes.
pub fn shape_of(stencil: &Stencil, field: FieldId) -> Option<Shape> {
    let place = stencil.fields[field].place;
    match (place.horizontal, place.levels) {
        (true, Levels::None) => Some(Shape::Plane),
        (true, _) => Some(Shape::Volume),
        (false, _) => None,
    }
}

fn fix(
    stencil: &Stencil,
    choices: &Choices,
    storage: &dyn Storage,
    Target { grid, region, levels_known }: Target,
    neighbours: &[Neighbour],
) -> Result<Fixed, Refusal> {
    let columns = grid.ni as u128 * grid.nj as u128;
    if columns * 2 > i32::MAX as u128 {
        return Err(Refusal::new(format!("the grid {grid} has {columns} columns: more than a plane can have"))
            .help("a plane has at most 2^30 columns; cut the grid into pieces"));
    }
    let smallest = stencil.fields.iter().map(|(_, field)| field.stored.bytes(choices.precision)).min().unwrap_or(8);
    let offsets: Vec<Offset> = neighbours.iter().map(|neighbour| neighbour.offset).collect();
    let layout = storage.layout(grid, region, &offsets, smallest);
    Ok(Fixed { grid, region: region.clone(), levels_known, layout })
}

impl Plan {
    /// How many levels a thread computes.
    pub fn levels_per_thread(&self) -> LevelsPerThread {
        self.access.levels(self.choices.slice)
    }

    /// Blocks along x, y and z for the known grid.
    ///
    /// # Errors
    /// There are more blocks than a launch can have.
    pub fn launch(&self, fixed: &Fixed) -> Result<[u32; 3], Refusal> {
        let [x, y, z] = self.choices.block.map(|threads| threads as usize);
        let columns = self.storage.columns(&fixed.region, &fixed.layout);
        let count = |axis: usize| columns.get(axis).map(|range| range.len());
        let levels = fixed.region.k.len();
        let threads_z = match self.levels_per_thread() {
            LevelsPerThread::One => levels,
            LevelsPerThread::Slice(slice) => levels.div_ceil(slice as usize),
            LevelsPerThread::All => 1,
        };
        let blocks = match (count(0), count(1)) {
            (Some(i), Some(j)) => [i.div_ceil(x), j.div_ceil(y), threads_z.div_ceil(z)],
            (cells, _) => [cells.unwrap_or(0).div_ceil(x * y), 1, threads_z.div_ceil(z)],
        };
        let limits = [i32::MAX as usize, 65_535, 65_535];
        for (axis, (blocks, limit)) in blocks.iter().zip(limits).enumerate() {
            if *blocks > limit {
                let name = ["x", "y", "z"][axis];
                return Err(Refusal::new(format!("{blocks} blocks along {name}: a launch has at most {limit}"))
                    .help(format!("give more threads along {name} with --block")));
            }
        }
        Ok(blocks.map(|blocks| blocks as u32))
    }
}

/// The C type that a field's values have in memory.
pub fn stored_type(stored: Stored, precision: Precision) -> &'static str {
    match (stored, precision) {
        (Stored::F32, _) | (Stored::Real, Precision::F32) => "float",
        (Stored::F64, _) | (Stored::Real, Precision::F64) => "double",
        (Stored::Int, _) => "int",
        (Stored::Bool, _) => "unsigned char",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn planned(block: [u32; 3], grid: Grid) -> Plan {
        let lowered = crate::check(&Source::new("copy", "stencil copy { in a; out b; b = a }"));
        let region = Region::rows(0..grid.ni, 0..grid.nj, 0..grid.nk);
        let target = Target { grid, region: &region, levels_known: true };
        plan(&lowered.stencils[0], &Choices { block, ..Choices::default() }, Some(target)).unwrap()
    }

    #[test]
    fn indices_have_64_bits_where_32_would_overflow() {
        let wide = |nk| planned([64, 2, 1], Grid::rows(1 << 14, 1 << 14, nk)).wide;
        // Kernels come to the index of two planes more than there are.
        assert!(!wide(5) && wide(6) && wide(7));
    }

    #[test]
    fn more_blocks_than_a_launch_can_have_are_refused() {
        let launched = |nj| {
            let plan = planned([64, 1, 1], Grid::rows(65, nj, 3));
            plan.launch(plan.fixed.as_ref().unwrap())
        };
        assert_eq!(launched(65_535).unwrap(), [2, 65_535, 3]);
        assert!(launched(65_536).unwrap_err().message.starts_with("65536 blocks along y"));
    }
}
