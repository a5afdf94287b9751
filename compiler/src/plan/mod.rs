//! Plans: a stencil, a storage and an access strategy become one kernel. The only place where storage and access meet.

mod belongs;
mod choices;
pub mod estimate;
mod launch;
mod patches;
pub mod path_classes;
pub mod phases;
pub mod schedule;
mod walks;

use crate::access::{self, Access, Neighbourhood, Shape, Wanted};
use crate::diagnostic::Refusal;
use crate::gpu::AT_ONCE;
use crate::grid::{Adjacency, Grid, Region, Topology};
use crate::ir::{self, FieldId, Levels, Path, Precision, Role, Stencil, Stored, Verify};
pub use crate::kernel::Math;
use crate::kernel::build::Builder;
use crate::step;
use crate::storage::fields::{self, FieldSlot, Fields};
use crate::storage::layouts::Layouts;
use crate::storage::neighbors::{Hop, Neighbors};
use crate::storage::sharing::Sharing;
use crate::storage::{
    self, ALIGNMENT, Coordinates, LIST, Layout, LayoutRequest, Placement, Sizes, Storage, Stride, Tile, order,
};
pub use belongs::{idle, options};
pub use choices::{Choices, Open, check_block, variants};
pub use patches::Patches;
use path_classes::{PathClasses, Walker};
use phases::{Kept, Phase};
use schedule::{Context, KERNEL};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A grid that is known when compiling: its extents, strides and tables are constants.
#[derive(Clone, Debug)]
pub struct KnownGrid {
    /// The grid.
    pub grid: Grid,
    /// Which columns are neighbours, where they do not stand in rows.
    pub adjacency: Option<Adjacency>,
    /// What is computed.
    pub region: Region,
    /// Whether the levels computed are constants too, or depend on parameters that are given at the launch.
    pub levels_known: bool,
    /// Where everything is.
    pub layout: Arc<Layout>,
}

/// The grid that a kernel is compiled for.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The grid.
    pub grid: Grid,
    /// Which columns are neighbours, where they do not stand in rows.
    pub adjacency: Option<&'a Adjacency>,
    /// What is computed, for the parameters at hand.
    pub region: &'a Region,
    /// Whether the kernel will only ever run with these parameters.
    pub levels_known: bool,
    /// The stencils that the layout is shared with, this one among them; none if it has one of its own.
    pub sharing: Option<&'a Sharing>,
    /// Layouts that were made for this grid, region and sharing before.
    pub layouts: Option<&'a Layouts>,
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
    pub known_grid: Option<KnownGrid>,
    /// Whether indices have 64 bits.
    pub wide: bool,
    /// The columns of a thread.
    pub tile: Tile,
    /// The order of cells chosen.
    pub order: &'static dyn order::Order,
    /// Which paths lead to the same cells.
    pub path_classes: PathClasses,
    /// Horizontal neighbours that are read.
    pub neighbours: Vec<Path>,
    /// What the tables' relations are.
    pub relations: Vec<Path>,
    /// The look-ups that lead to the neighbours.
    pub hops: Vec<Hop>,
    /// The last hop to each neighbour.
    pub last_hops: BTreeMap<Path, usize>,
    /// Neighbours and the shapes of fields in which they are read.
    pub wanted: Vec<Wanted>,
    /// Which fields lie together: of each that is read or written (`true`) its slot.
    pub slots: BTreeMap<(FieldId, bool), FieldSlot>,
    /// The loops of the kernel, one after the other.
    pub phases: Vec<Phase>,
    /// How a thread keeps the values of sweeps.
    pub kept: BTreeMap<FieldId, Kept>,
    /// If it computes patches of columns: what they are.
    pub patches: Option<Patches>,
    /// If blocks walk along k: the kernel.
    pub walk: Option<Box<step::Kernel>>,
}

/// The stencil as kernels and the interpreter compute it.
pub fn prepare(stencil: &Stencil, precision: Precision, contract: bool) -> Stencil {
    ir::split(&folded(stencil, precision, contract)).verified("splitting")
}

/// The same with the definitions that it has, by the same handles: of a stencil that others' bodies use, and no kernel computes.
pub fn folded(stencil: &Stencil, precision: Precision, contract: bool) -> Stencil {
    let contracted = if contract { ir::contract(stencil) } else { stencil.clone() }.verified("contracting");
    let folded = ir::fold(&contracted, precision).verified("folding");
    let shared = ir::share_invariants(&folded).verified("sharing of invariants");
    ir::needed(&shared).verified("leaving out what is not needed")
}

/// Plans a kernel for `stencil`, which is prepared; for one grid, if it is known.
///
/// # Errors
/// What was chosen does not exist or does not fit together.
pub fn plan(stencil: &Stencil, choices: &Choices, target: Option<Target>) -> Result<Plan, Refusal> {
    let access = access::find(&choices.access).map_err(Refusal::new)?;
    let storage = choices.fastest.of(storage::find(&choices.storage).map_err(Refusal::new)?);
    let order = order::find(&choices.layout).map_err(Refusal::new)?;
    choices::check(choices, access, storage, target.as_ref())?;
    choices::check_sweeps(stencil, choices, access)?;
    choices::check_columns(stencil, storage, target.as_ref())?;
    let walker = match target.and_then(|target| Some((target.adjacency?, target))) {
        Some((adjacency, target)) => Walker::cells(adjacency, target.region.column_numbers(target.grid)),
        None => Walker::rows(),
    };
    let tile = tile(choices, access, target.as_ref());
    let chosen = (storage, access, order);
    let mut plan = match access.has_patches() {
        false => of_tile(stencil, choices, chosen, walker, tile)?,
        true => patches::plan(stencil, choices, chosen, &walker, tile)?,
    };
    // How many places there are the table does not say.
    plan.wide |= target.is_none() && plan.patches.is_some();
    if let Some(Patches { lone, .. }) = &mut plan.patches {
        lone.wide = plan.wide;
    }
    if let Some(target) = target {
        let known_grid = fix(&plan, target)?;
        plan.wide |= plan.last_index(&known_grid) > i32::MAX as u128;
        choices::check_fixed(choices, storage, &known_grid)?;
        if let Some(Patches { lone, .. }) = &mut plan.patches {
            lone.wide = plan.wide;
            lone.known_grid = Some(known_grid.clone());
        }
        if let Some(queue) = access.queue() {
            plan.walk = Some(Box::new(plan.walking(&known_grid, queue)?));
        }
        plan.known_grid = Some(known_grid);
    }
    choices::check_shared(&plan)?;
    choices::check_kept(&plan)?;
    Ok(plan)
}

/// Storage, strategy and order.
type Chosen = (&'static dyn Storage, &'static dyn Access, &'static dyn order::Order);

/// A plan for tiles of cells, on a grid whose paths `walker` knows.
fn of_tile(
    stencil: &Stencil,
    choices: &Choices,
    (storage, access, order): Chosen,
    mut walker: Walker,
    tile: Tile,
) -> Result<Plan, Refusal> {
    let (phases, kept) = phases::phases(stencil, &mut walker, &tile.paths())?;
    let reached = reached(&phases, &mut walker);
    let wanted = wanted(stencil, &reached);
    let mut neighbours: Vec<Path> = wanted.iter().map(|wanted| wanted.path.clone()).collect();
    neighbours.dedup();
    if !choices.neighbors.suits(&neighbours) {
        return Err(Refusal::new(format!(
            "stencil `{}` reads direct neighbours alone: there is nothing to follow step by step",
            stencil.name
        ))
        .help("--neighbors direct is the same"));
    }
    let relations = choices.neighbors.relations(&neighbours);
    let Some((hops, last_hops)) = choices.neighbors.hops(&neighbours) else {
        return Err(Refusal::new(format!(
            "stencil `{}` reads so many far neighbours that a kernel cannot follow them step by step",
            stencil.name
        ))
        .help("--neighbors direct looks each of them up at once"));
    };
    Ok(Plan {
        stencil: stencil.clone(),
        choices: choices.clone(),
        storage,
        access,
        known_grid: None,
        wide: choices.wide,
        tile,
        order,
        path_classes: walker.finish(),
        neighbours,
        relations,
        hops,
        last_hops,
        wanted,
        slots: slots(stencil, choices),
        phases,
        kept,
        patches: None,
        walk: None,
    })
}

/// The horizontal paths at which each field is read, where that is evaluated, or written.
fn reached(phases: &[Phase], walker: &mut Walker) -> BTreeMap<FieldId, BTreeSet<Path>> {
    let mut reached: BTreeMap<FieldId, BTreeSet<Path>> = BTreeMap::new();
    for (store, item) in phases.iter().flat_map(Phase::stores) {
        reached.entry(store.field).or_default().insert(item.at.clone().without_levels());
    }
    for (field, [at, path], _) in phases.iter().flat_map(Phase::reads) {
        reached.entry(field).or_default().insert(walker.join(at, path).without_levels());
    }
    reached
}

/// The cells of a thread: tiles as chosen, but none larger than what is computed.
fn tile(choices: &Choices, access: &dyn Access, target: Option<&Target>) -> Tile {
    let columns = access.tile(&choices.knobs, choices.precision);
    let levels = access.tile_levels(&choices.knobs, choices.precision);
    let Some(target) = target else {
        return Tile { columns, levels: 1, whole: columns.map(|columns| columns == 1) };
    };
    if access.has_patches() {
        return Tile { columns, levels: patches::levels_a_lane(choices, levels, target), whole: [true; 2] };
    }
    let computed = [target.region.i.len(), target.region.j.len()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    // Along i tiles are powers of two.
    let most = [1 << computed[0].max(1).ilog2(), computed[1].max(1)];
    let columns = [columns[0].min(most[0]), columns[1].min(most[1])];
    Tile { columns, levels: 1, whole: [0, 1].map(|axis| computed[axis].is_multiple_of(columns[axis])) }
}

/// Neighbours, and the shapes of fields in which they are read or written. Near ones first: they are what a reader looks for.
fn wanted(stencil: &Stencil, reached: &BTreeMap<FieldId, BTreeSet<Path>>) -> Vec<Wanted> {
    let mut wanted = BTreeSet::new();
    for (field, paths) in reached {
        if let Some(shape) = shape_of(stencil, *field) {
            for path in paths.iter().filter(|path| !path.is_here()) {
                let offset = path.offset();
                wanted.insert((path.units().count(), offset.j, offset.i, path.clone(), shape));
            }
        }
    }
    wanted.into_iter().map(|(_, _, _, path, shape)| Wanted { path, shape }).collect()
}

/// Where fields that lie together lie.
fn slots(stencil: &Stencil, choices: &Choices) -> BTreeMap<(FieldId, bool), FieldSlot> {
    /// Fields of one type on the same axes; one that lies alone has no kind.
    struct Group<'a> {
        kind: Option<(&'a str, ir::Place)>,
        members: Vec<(FieldId, bool)>,
    }
    let mut groups: Vec<Group> = Vec::new();
    for (id, field) in stencil.fields.iter() {
        let kind = (choices.fields != Fields::Soa && field.place.horizontal)
            .then(|| (stored_type(field.stored, choices.precision), field.place));
        let sides: &[bool] = match field.role {
            Role::In => &[false],
            Role::Out => &[true],
            Role::InOut => &[false, true],
            Role::Carried | Role::Inc | Role::Reduce => &[],
        };
        for &written in sides {
            match groups.iter_mut().find(|group| group.kind.is_some() && group.kind == kind) {
                Some(group) => group.members.push((id, written)),
                None => groups.push(Group { kind, members: vec![(id, written)] }),
            }
        }
    }
    let mut slots = BTreeMap::new();
    for (group, Group { members, .. }) in groups.iter().enumerate() {
        for (number, &member) in members.iter().enumerate() {
            slots.insert(member, FieldSlot { group, number, fields: members.len() });
        }
    }
    slots
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

fn fix(plan: &Plan, target: Target) -> Result<KnownGrid, Refusal> {
    let Target { grid, adjacency, region, levels_known, layouts, .. } = target;
    let columns = grid.ni as u128 * grid.nj as u128;
    if columns * 2 > i32::MAX as u128 {
        return Err(Refusal::new(format!("the grid {grid} has {columns} columns: more than a plane can have"))
            .help("a plane of a kernel has fewer than 2^30 columns; cut the grid into pieces"));
    }
    let request = plan.request(&target);
    let layout = match layouts {
        Some(layouts) => layouts.of(plan.storage, &request),
        None => Arc::new(request.layout(plan.storage)),
    };
    let entries = layout.tables.iter().map(Vec::len).max().unwrap_or(0);
    if entries > i32::MAX as usize && plan.patches.is_some() {
        return Err(Refusal::new(format!("a table of {entries} columns of patches is more than an index can reach"))
            .help("give larger patches, as --patch 4x2, or another access: --access idxvar"));
    }
    if entries > i32::MAX as usize {
        return Err(Refusal::new(format!("a table of {entries} neighbours is more than an index can reach"))
            .help("--neighbors chasing needs smaller tables, and --storage compressed smaller ones yet"));
    }
    Ok(KnownGrid { grid, adjacency: adjacency.cloned(), region: region.clone(), levels_known, layout })
}

impl Plan {
    /// The same kernel for one grid, on arrays that lie as its layout says: of a plan for any grid, whose arrays are somebody else's.
    ///
    /// # Errors
    /// A thread would keep too much of what sweeps carry.
    pub fn knowing(mut self, known_grid: KnownGrid) -> Result<Self, Refusal> {
        self.wide |= self.last_index(&known_grid) > i32::MAX as u128;
        self.known_grid = Some(known_grid);
        choices::check_kept(&self)?;
        Ok(self)
    }

    /// What a layout for a grid is made for.
    pub fn request<'a>(&'a self, target: &Target<'a>) -> LayoutRequest<'a> {
        let Target { grid, adjacency, region, sharing, .. } = *target;
        let own = self.stencil.smallest(self.choices.precision);
        let smallest = sharing.map_or(own, |sharing| own.min(sharing.smallest));
        let highest = self.stencil.highest(grid.nk);
        // A plane is made of whole blocks, so that the index of a block's cell is the same sum on every level.
        let block = ALIGNMENT / fields::BLOCK;
        LayoutRequest {
            topology: adjacency.map_or(Topology::Rows { ni: grid.ni, nj: grid.nj }, Topology::Adjacent),
            levels: sharing.map_or(highest, |sharing| sharing.levels.max(highest)),
            region,
            sharing,
            // Patches have a table of their own.
            relations: if self.patches.is_none() { &self.relations } else { &[] },
            inner_only: self.choices.neighbors == Neighbors::Direct,
            order: self.order,
            run_width: self.choices.run_width,
            short_last: self.choices.short_last,
            smallest: if self.choices.fields == Fields::Aosoa { smallest.min(block) } else { smallest },
            patches: self.patches.as_ref().map(|own| &own.wanted),
        }
    }

    /// How many elements of a field that follow each other are moved at once; nothing if each moves alone.
    pub fn run_width_of(&self, field: FieldId) -> Option<u32> {
        let declared = &self.stencil.fields[field];
        if self.walk.is_some() {
            let most = AT_ONCE / declared.stored.bytes(self.choices.precision);
            return Some(most as u32).filter(|_| declared.place.horizontal);
        }
        let width = self.run_width().filter(|_| declared.place.horizontal)?;
        if !self.access.has_patches() {
            return Some(width);
        }
        let most = AT_ONCE / declared.stored.bytes(self.choices.precision);
        Some(width.min(most as u32)).filter(|&width| width > 1 && declared.place.levels != Levels::None)
    }

    /// How many elements of a field that follow each other, along i or along levels, are moved at once; nothing if each moves alone.
    pub fn run_width(&self) -> Option<u32> {
        if self.access.has_patches() {
            let is_plain = self.choices.fields == Fields::Soa && !self.choices.checked;
            return Some(self.tile.levels).filter(|&levels| levels > 1 && is_plain);
        }
        let [width, _] = self.tile.columns;
        let is_aligned = self.known_grid.is_some() && self.tile.whole[0];
        let is_plain = self.choices.fields == Fields::Soa && !self.choices.checked;
        let is_adjacent = self.storage.strides().place == Stride::One;
        // Arrays that are shared cannot be aligned to the first cell of each stencil.
        let is_own = self.choices.share.is_empty();
        (width > 1 && is_aligned && is_plain && is_adjacent && is_own).then_some(width)
    }

    /// The reads of fields with horizontal axes that each thread makes, whatever the conditions.
    pub fn surely_read(&self) -> BTreeSet<(FieldId, Path)> {
        let reads = self.phases.iter().flat_map(Phase::reads);
        let sure = reads.filter(|(field, _, context)| {
            matches!(context, Some(Context { block: KERNEL, sure: true })) && shape_of(&self.stencil, *field).is_some()
        });
        sure.map(|(field, [at, path], _)| (field, self.path_classes.join(at, path))).collect()
    }

    /// The tables that its expressions use, and what they mean: in the order of [`Layout::tables`].
    pub fn tables(&self) -> Vec<(&'static str, &'static str)> {
        if self.patches.is_some() {
            return vec![storage::patches::TABLE];
        }
        let mut tables = self.storage.tables().to_vec();
        if *self.placement() == Placement::Listed {
            tables.push(LIST);
        }
        tables
    }

    /// Names of the first and the end of what is computed, along each axis of columns.
    pub fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        match self.patches {
            Some(_) => &[("row_first", "row_end")],
            None => self.storage.bounds(),
        }
    }

    /// The sizes that addresses are made of, and what they mean: patches need no lengths of tables.
    pub fn sizes(&self) -> &[(&'static str, &'static str)] {
        let all = self.storage.sizes();
        if self.access.has_patches() { &all[..1] } else { all }
    }

    /// Bytes of shared memory that a launch gives each block.
    pub fn shared(&self) -> u32 {
        self.walk.as_ref().map_or(0, |walk| walk.launch.shared)
    }

    /// How the computed columns stand in the plane.
    fn placement(&self) -> &Placement {
        self.known_grid.as_ref().map_or(&Placement::Aligned, |known_grid| &known_grid.layout.placement)
    }

    /// How a thread finds its column.
    pub fn coordinates(&self, own: &mut Builder, sizes: &Sizes) -> Coordinates {
        self.storage.coordinates(own, sizes, &self.threads())
    }

    /// What a strategy has to reach, from a column that threads find like this.
    pub fn neighbourhood<'a>(&'a self, coordinates: &'a Coordinates, sizes: &'a Sizes) -> Neighbourhood<'a> {
        let Plan { storage, wanted, hops, last_hops, choices, .. } = self;
        Neighbourhood { storage: *storage, sizes, wanted, hops, last_hops, coordinates, block: choices.block }
    }

    /// More than any index that kernels come to, which is that of two levels more than there are.
    fn last_index(&self, known_grid: &KnownGrid) -> u128 {
        let together = self.slots.values().map(|slot| slot.fields).max().unwrap_or(1);
        known_grid.layout.elements(known_grid.grid.nk + 2) as u128 * together as u128
    }

    /// Bytes that a thread keeps of the values of sweeps in arrays.
    pub fn kept_bytes(&self, nk: usize) -> usize {
        let kept = self.kept.iter().filter(|(_, kept)| kept.levels);
        let bytes = |field: FieldId| {
            let own = &self.stencil.fields[field];
            own.place.levels.count(nk) * own.stored.bytes(self.choices.precision)
        };
        kept.map(|(&field, _)| bytes(field)).sum()
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
        let target =
            Target { grid, adjacency: None, region: &region, levels_known: true, sharing: None, layouts: None };
        plan(&lowered.stencils[0], &Choices { block, ..Choices::default() }, Some(target)).unwrap()
    }

    #[test]
    fn indices_have_64_bits_where_32_would_overflow() {
        let wide = |nk| planned([64, 2, 1], Grid::rows(1 << 14, 1 << 14, nk)).wide;
        // Kernels come to the index of two planes more than there are.
        assert!(!wide(5) && wide(6) && wide(7));
    }

    #[test]
    fn planes_of_blocks_are_whole() {
        let lowered = crate::check(&Source::new("two", "stencil two { in a; out b; b = a }"));
        let grid = Grid::rows(1, 2, 2);
        let region = Region::rows(0..1, 0..2, 0..2);
        let target =
            Target { grid, adjacency: None, region: &region, levels_known: true, sharing: None, layouts: None };
        let choices = Choices { fields: Fields::Aosoa, ..Choices::default() };
        let plan = plan(&lowered.stencils[0], &choices, Some(target)).unwrap();
        assert!(plan.known_grid.unwrap().layout.sizes[0].is_multiple_of(fields::BLOCK));
    }

    #[test]
    fn shared_arrays_are_aligned_for_no_one_alone() {
        let lowered = crate::check(&Source::new("right", "stencil right { in a; out b; b = a[i-1] }"));
        let grid = Grid::rows(9, 4, 1);
        let region = Region::rows(1..9, 0..4, 0..1);
        let target =
            Target { grid, adjacency: None, region: &region, levels_known: true, sharing: None, layouts: None };
        let width = |share: &[&str]| {
            let share = share.iter().map(|&file| file.to_owned()).collect();
            let choices = Choices { access: "tile".into(), share, ..Choices::default() };
            plan(&lowered.stencils[0], &choices, Some(target)).unwrap().run_width()
        };
        assert_eq!((width(&[]), width(&["other.stn"])), (Some(2), None));
    }

    #[test]
    fn more_blocks_than_a_launch_can_have_are_refused() {
        let launched = |nj| {
            let plan = planned([64, 1, 1], Grid::rows(65, nj, 3));
            plan.launch(plan.known_grid.as_ref().unwrap())
        };
        assert_eq!(launched(65_535).unwrap(), [2, 65_535, 3]);
        assert!(launched(65_536).unwrap_err().message.starts_with("65536 blocks along y"));
    }
}
