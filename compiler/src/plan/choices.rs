//! What can be chosen, and what of it fits together.

use super::belongs::SOME;
use super::{KnownGrid, Plan, Target, prepare};
use crate::access::knobs::{self, Knob, Knobs, Setting};
use crate::access::{self, ACCESSES, Access, LevelsPerThread, Needs};
use crate::analysis::cost::cost;
use crate::analysis::extents::{Extents, extents};
use crate::analysis::levels::goes_on;
use crate::analysis::moving::read_anywhere;

use crate::diagnostic::Refusal;
use crate::gpu::{CONSTANT, MOST_THREADS, SHARED, WARP};
use crate::grid::Form;
use crate::ir::program::GridAxis;
use crate::ir::{Precision, Stencil, Store};
use crate::kernel::Math;
use crate::storage::fastest::{FASTEST, Fastest};
use crate::storage::fields::{FIELDS, Fields};
use crate::storage::neighbors::{NEIGHBORS, Neighbors};
use crate::storage::order::ORDERS;
use crate::storage::{STORAGES, Storage, Stride};
use crate::text::ShellWord;
use serde::{Deserialize, Deserializer, Serialize};

/// What can be chosen. Together with the stencil it is enough to make the kernel again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// A name of [`ACCESSES`].
    #[serde(deserialize_with = "present_access")]
    pub access: String,
    /// A name of [`STORAGES`].
    pub storage: String,
    /// Which axis is fastest in memory.
    #[serde(default)]
    pub fastest: Fastest,
    /// Which neighbours tables hold.
    pub neighbors: Neighbors,
    /// The order of cells, for storages with tables: a name of [`ORDERS`].
    pub layout: String,
    /// Cells along i that stay together in orders that are curves: a power of two.
    pub run_width: u32,
    /// Whether runs that are shorter, at the end of a row, stand behind all others.
    pub short_last: bool,
    /// The files whose stencils have the same layout; none if each has one of its own. For a known grid only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share: Vec<String>,
    /// How several fields lie in memory.
    pub fields: Fields,
    /// Whether a compressed table is in constant memory; for a known grid only.
    pub constant: bool,
    /// What `real` is.
    pub precision: Precision,
    /// Whether fused multiply-adds are formed.
    pub contract: bool,
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// How the knobs of the strategy are set. Those of others make no difference.
    #[serde(flatten, deserialize_with = "knobs::known")]
    pub knobs: Knobs,
    /// Whether 64-bit indices are forced.
    pub wide: bool,
    /// Whether every index is checked, and the first wrong one told; for a known grid only.
    pub checked: bool,
    /// Whose functions are called where devices round differently.
    pub math: Math,
}

/// Reads the name of an access strategy, which may be one that it had when the text was written.
fn present_access<'a, D: Deserializer<'a>>(text: D) -> Result<String, D::Error> {
    String::deserialize(text).map(access::present_name)
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            access: "idxvar".into(),
            storage: "regular".into(),
            fastest: Fastest::Columns,
            neighbors: Neighbors::Direct,
            layout: "row-major".into(),
            run_width: 32,
            short_last: false,
            share: Vec::new(),
            fields: Fields::Soa,
            constant: false,
            precision: Precision::F64,
            contract: true,
            block: [64, 2, 1],
            knobs: Knobs::new(),
            wide: false,
            checked: false,
            math: Math::Own,
        }
    }
}

/// Every storage with every choice that makes a difference for it, under every access strategy that makes sense for it; all
/// else as usual.
pub fn variants() -> impl Iterator<Item = Choices> {
    STORAGES.iter().flat_map(|storage| {
        let has_tables = storage.has_tables();
        let neighbors = if has_tables { &NEIGHBORS[..] } else { &NEIGHBORS[..1] };
        let orders = if has_tables { ORDERS } else { &ORDERS[..1] };
        let all =
            neighbors.iter().flat_map(move |&neighbors| orders.iter().map(move |order| (neighbors, order.name())));
        let all = all.flat_map(|(neighbors, layout)| FIELDS.map(|fields| (neighbors, layout, fields)));
        let all = FASTEST.into_iter().flat_map(move |fastest| all.clone().map(move |own| (fastest, own)));
        all.flat_map(move |(fastest, (neighbors, layout, fields))| {
            let storage = fastest.of(*storage);
            let suits = move |access: &&&dyn Access| {
                access.refusal(storage).is_none()
                    && (neighbors == Neighbors::Direct || !access.has_patches() && access.row().is_none())
                    && (fields == Fields::Soa || access.queue().is_none())
            };
            ACCESSES.iter().filter(suits).map(move |access| Choices {
                access: access.name().into(),
                storage: storage.name().into(),
                fastest,
                neighbors,
                layout: layout.into(),
                fields,
                block: access.block(),
                ..Choices::default()
            })
        })
    })
}

impl Choices {
    /// Whether the strategy can compute a stencil: sweeps need a thread that goes through its whole column.
    pub fn suits(&self, stencil: &Stencil) -> bool {
        let levels = access::find(&self.access).map(|access| access.levels(&self.knobs));
        let has_sweeps = !stencil.sweeps.is_empty();
        (!has_sweeps || levels == Ok(LevelsPerThread::All)) && (!self.walks() || is_walked(stencil))
    }

    /// The same for a stencil, if which strategy computes it is left open: one with sweeps needs whole columns.
    pub fn suiting(self, stencil: &Stencil) -> Self {
        if stencil.sweeps.is_empty() {
            return self;
        }
        if self.is_for_cpu() {
            return Self { access: ROWS_SWEEPING.to_owned(), block: Self::usual_block(ROWS_SWEEPING), ..self };
        }
        let is_usual = self.block == Self::usual_block(&self.access);
        let block = if is_usual { SWEEPING_BLOCK } else { self.block };
        Self { access: SWEEPING.to_owned(), block, ..self }
    }

    /// The same for stencils: where cells stand in no rows, of which there are so many levels, what is left open is what is usual there.
    pub fn on_cells(self, stencils: &[Stencil], levels: Option<usize>, open: Open) -> Self {
        let Some(levels) = levels else { return self };
        let own = match open {
            Open::Nothing => return self,
            Open::Kernel if !self.checked && are_for_patches(stencils, levels) => {
                let access = PATCHES.to_owned();
                Self { fastest: Self::usual_fastest(&access), block: Self::usual_block(&access), access, ..self }
            }
            Open::Kernel | Open::Storage => self,
        };
        Self { storage: TABLES.to_owned(), ..own }
    }

    /// The same for kernels on a CPU: if the strategy is left open, it is the one that is usual there. And what is still open.
    pub fn on_cpu(self, open: Open) -> (Self, Open) {
        match open {
            Open::Nothing | Open::Storage => (self, open),
            Open::Kernel => (Self { block: Self::usual_block(ROWS), access: ROWS.to_owned(), ..self }, Open::Storage),
        }
    }

    /// Whether a thread computes a row of columns, as is for CPUs.
    pub fn is_for_cpu(&self) -> bool {
        access::find(&self.access).is_ok_and(|own| own.row().is_some())
    }

    /// Whether blocks walk along k: on a grid that is known.
    pub fn walks(&self) -> bool {
        access::find(&self.access).is_ok_and(|own| own.queue().is_some())
    }

    /// Whether cells stand in rows, one beside the other.
    pub fn has_rows(&self) -> bool {
        self.storage == "regular" && self.fastest == Fastest::Columns
    }

    /// Whether the fastest axis is the strategy's usual one, and neighbours, layout and fields are as usual.
    pub fn is_plain(&self) -> bool {
        let usual = Choices::default();
        self.fastest == Self::usual_fastest(&self.access)
            && self.neighbors == usual.neighbors
            && self.layout == usual.layout
            && self.fields == usual.fields
    }

    /// The fastest axis, if nothing else is asked for.
    pub fn usual_fastest(access: &str) -> Fastest {
        access::find(access).map_or(Fastest::default(), Access::fastest)
    }

    /// The storage, if nothing else is asked for.
    pub fn usual_storage(access: &str) -> String {
        access::find(access).map_or(Choices::default().storage, |own| own.storage().to_owned())
    }

    /// The threads of a block, if nothing else is asked for.
    pub fn usual_block(access: &str) -> [u32; 3] {
        access::find(access).map_or(Choices::default().block, Access::block)
    }

    /// The same with a knob set to these numbers.
    pub fn with(mut self, knob: &str, numbers: impl Into<Setting>) -> Self {
        self.knobs.insert(knob.to_owned(), numbers.into());
        self
    }

    /// The settings of the strategy's knobs, by their names.
    pub fn settings(&self) -> impl Iterator<Item = (&'static Knob, Setting)> {
        let knobs = access::find(&self.access).map_or(&[][..], Access::knobs);
        knobs.iter().map(|knob| (knob, knob.setting(&self.knobs, self.precision)))
    }

    /// The options that choose this: access, storage and precision always, the others where they are not the usual.
    pub fn words(&self) -> String {
        let precision = self.precision.name();
        let [x, y, z] = self.block;
        let block = match self.block == Self::usual_block(&self.access) {
            true => String::new(),
            false => format!(" --block {x}x{y}x{z}"),
        };
        let (access, storage) = (ShellWord::new(&self.access), ShellWord::new(&self.storage));
        format!("--access {access} --storage {storage} --precision {precision}{}", self.unusual(&block))
    }

    /// The options that choose what is not as usual, but for strategy, storage, precision and block.
    pub fn particulars(&self) -> String {
        self.unusual("")
    }

    fn unusual(&self, block: &str) -> String {
        let usual = Choices::default();
        let mut words = String::new();
        let mut say = |differs: bool, word: String| {
            if differs {
                words.push_str(&word);
            }
        };
        say(self.fastest != usual.fastest, format!(" --fastest {}", self.fastest.name()));
        say(self.neighbors != usual.neighbors, format!(" --neighbors {}", self.neighbors.name()));
        say(self.layout != usual.layout, format!(" --layout {}", ShellWord::new(&self.layout)));
        say(self.run_width != usual.run_width, format!(" --run-width {}", self.run_width));
        say(self.short_last, " --short-runs last".to_owned());
        self.share.iter().for_each(|file| say(true, format!(" --share {}", ShellWord::path(file))));
        say(self.fields != usual.fields, format!(" --fields {}", self.fields.name()));
        say(self.constant, " --table constant".to_owned());
        say(true, block.to_owned());
        for (knob, setting) in self.settings() {
            say(setting.numbers() != (knob.usual)(self.precision), format!(" --{} {setting}", knob.name));
        }
        say(!self.contract, " --contract off".to_owned());
        say(self.wide, " --index 64".to_owned());
        say(self.checked, " --checked".to_owned());
        say(self.math != usual.math, format!(" --math {}", self.math.name()));
        words
    }
}

/// How much of a kernel whoever asks for it leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Open {
    /// The strategy, the storage, and all that belongs to them.
    #[default]
    Kernel,
    /// The storage.
    Storage,
    /// Nothing.
    Nothing,
}

/// Whether patches are usually the fastest for stencils on cells of so many levels: a warp has a level a lane, neighbours are read, and
/// few enough fields move, and little enough is computed, that registers hold what a patch needs at once. How fast they are is in
/// docs/performance.md.
fn are_for_patches(stencils: &[Stencil], levels: usize) -> bool {
    let is_few = |own: &Stencil| {
        let roles = own.fields.iter().map(|(_, field)| field.role);
        let moved: usize = roles.map(|role| usize::from(role.is_read()) + usize::from(role.is_written())).sum();
        own.sweeps.is_empty()
            && moved <= MOST_MOVED
            && cost(&prepare(own, Precision::F64, true), Precision::F64).flops <= MOST_FLOPS
    };
    let reads_neighbours = |own: &Stencil| extents(own) != Extents::default();
    levels >= WARP && stencils.iter().all(is_few) && stencils.iter().any(reads_neighbours)
}

/// Fields that are read and written with which patches are usually the fastest: with more, registers leave room for too few warps.
const MOST_MOVED: usize = 4;

/// Floating-point operations with which they are usually the fastest, where each cell computes all that it needs.
const MOST_FLOPS: usize = 64;

/// The strategy for cells that stand in no rows, where it is the fastest.
const PATCHES: &str = "patches";

/// The strategy for CPUs.
const ROWS: &str = "rows";

/// The same for stencils with sweeps.
const ROWS_SWEEPING: &str = "zrows";

/// The storage of cells that stand in no rows.
const TABLES: &str = "uncompressed";

/// Bytes that a thread may keep of the values of sweeps.
const KEPT: usize = 16 << 10;

/// The strategy for stencils with sweeps.
const SWEEPING: &str = "zloop";

/// Its blocks, so small that what is kept of all levels mostly finds room in shared memory.
const SWEEPING_BLOCK: [u32; 3] = [32, 1, 1];

/// Whether choices fit together.
///
/// # Errors
/// They do not.
pub(super) fn check(
    choices: &Choices,
    access: &dyn Access,
    storage: &dyn Storage,
    target: Option<&Target>,
) -> Result<(), Refusal> {
    check_block(choices.block)?;
    for (knob, setting) in choices.settings() {
        knob.checked(setting)?;
    }
    if !choices.run_width.is_power_of_two() || choices.run_width > 1 << 20 {
        return Err(Refusal::new(format!("runs of {} cells are not possible", choices.run_width))
            .help("a run width is a power of two, as 32"));
    }
    if let Some(refusal) = access.refusal(storage) {
        return Err(refusal);
    }
    let planned = SOME.iter().filter(|own| (own.is_planned)(choices));
    if let Some(refusal) = planned.filter_map(|own| (own.refusal)(choices, access, storage)).next() {
        return Err(refusal);
    }
    if !storage.has_tables() && target.is_some_and(|target| target.grid.form == Form::Cells) {
        let name = storage.name();
        return Err(Refusal::new(format!(
            "{name} storage is for grids in rows, and this grid's cells have any neighbours"
        ))
        .help("give --storage compressed or --storage uncompressed"));
    }
    if access.queue().is_some() {
        super::walks::check(choices)?;
    }
    let of_grid = [
        (choices.constant, "a table in constant memory is part of the kernel, so the grid must be known"),
        (!choices.share.is_empty(), "where the cells of a shared layout stand depends on the grid"),
        (choices.checked, "a kernel for any grid cannot check its indices"),
    ];
    if let (None, Some((_, why))) = (target, of_grid.into_iter().find(|(is_chosen, _)| *is_chosen)) {
        return Err(Refusal::new(why).help("give the grid: --grid 512x512x64"));
    }
    if !choices.share.is_empty() && choices.fields != Fields::Soa {
        return Err(Refusal::new(
            "fields that lie together are those of one stencil, so their arrays cannot be shared",
        )
        .help("give --fields soa, or leave --share out"));
    }
    Ok(())
}

/// Refuses a kernel for any grid that is told which columns to compute by whoever calls it, of a stencil that says so itself.
///
/// # Errors
/// It is such a kernel.
pub(super) fn check_columns(stencil: &Stencil, storage: &dyn Storage, target: Option<&Target>) -> Result<(), Refusal> {
    let said = GridAxis::ACROSS.into_iter().find(|&axis| stencil.says(axis));
    match said.filter(|_| storage.has_tables() && target.is_none()) {
        None => Ok(()),
        Some(axis) => Err(Refusal::new(format!(
            "stencil `{}` says which part of {axis} it computes, and where columns stand in tables a kernel for any grid is told by its caller",
            stencil.told()
        ))
        .help("give the grid: --grid 512x512x64; or leave --storage out")),
    }
}

/// Whether a strategy can compute a stencil's sweeps.
///
/// # Errors
/// It cannot.
pub(super) fn check_sweeps(stencil: &Stencil, choices: &Choices, access: &dyn Access) -> Result<(), Refusal> {
    if choices.suits(stencil) {
        return Ok(());
    }
    if stencil.sweeps.is_empty() {
        let (name, access) = (&stencil.name, access.name());
        if let Some((&field, how)) = read_anywhere(stencil).first_key_value() {
            let field = &stencil.fields[field].name;
            return Err(Refusal::new(format!(
                "`{access}` access keeps a few planes of what it reads, and stencil `{name}` reads `{field}` {how}"
            ))
            .help("give another access, as --access idxvar"));
        }
        return Err(Refusal::new(format!(
            "`{access}` access computes columns, and stencil `{name}` writes a field that has none"
        ))
        .help("give another access, as --access idxvar"));
    }
    let levels = match access.levels(&choices.knobs) {
        LevelsPerThread::Slice(_) => "a few levels",
        LevelsPerThread::One | LevelsPerThread::All => "one level",
    };
    Err(Refusal::new(format!(
        "`{}` access gives a thread {levels}, and the sweeps of stencil `{}` need the whole column",
        access.name(),
        stencil.name
    ))
    .help(format!("give --access {SWEEPING}")))
}

/// Whether what a thread keeps of sweeps is not too much.
///
/// # Errors
/// It is.
pub(super) fn check_kept(plan: &Plan) -> Result<(), Refusal> {
    let Some(known_grid) = &plan.known_grid else { return Ok(()) };
    let (name, bytes) = (&plan.stencil.name, plan.kept_bytes(known_grid.grid.nk));
    if bytes > KEPT {
        return Err(Refusal::new(format!(
            "a thread would keep {bytes} bytes of the sweeps of `{name}`, and at most {KEPT} are possible"
        ))
        .help("split the stencil in two, and store what is between them; or give --precision f32"));
    }
    Ok(())
}

/// Whether a block of threads is possible on any GPU.
///
/// # Errors
/// It is not.
pub fn check_block([x, y, z]: [u32; 3]) -> Result<(), Refusal> {
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads == 0 || threads > MOST_THREADS as u64 || z > 64 {
        return Err(Refusal::new(format!("a block of {x}x{y}x{z} threads is not possible"))
            .help("a block has 1 to 1024 threads, at most 64 of them along z"));
    }
    Ok(())
}

/// Whether a grid's layout fits the choices.
///
/// # Errors
/// It does not.
pub(super) fn check_fixed(choices: &Choices, storage: &dyn Storage, known_grid: &KnownGrid) -> Result<(), Refusal> {
    if choices.checked && known_grid.layout.strides.place != Stride::One {
        let name = storage.name();
        return Err(Refusal::new(format!(
            "a checked kernel tells columns by planes, and {name} storage with levels that follow each other has none"
        ))
        .help("leave --checked out, or look for the fault with --access idxvar --fastest columns"));
    }
    if choices.checked && known_grid.grid.columns() as u128 * 3 > i32::MAX as u128 {
        return Err(Refusal::new(format!("the grid {} has too many columns for a checked kernel", known_grid.grid))
            .help("look for the fault on a smaller grid"));
    }
    if let Some(table) = storage.constant().filter(|_| choices.constant) {
        let bytes = known_grid.layout.tables[table].len() * size_of::<i32>();
        if bytes > CONSTANT {
            return Err(Refusal::new(format!(
                "the table of neighbours has {bytes} bytes, and constant memory {CONSTANT}"
            ))
            .help("leave it in global memory, or make it smaller: --neighbors chasing, --layout row-major"));
        }
    }
    Ok(())
}

/// Whether what a block shares fits into shared memory.
///
/// # Errors
/// It does not.
pub(super) fn check_shared(plan: &Plan) -> Result<(), Refusal> {
    let needs = Needs {
        neighbours: plan.neighbours.len(),
        index: if plan.wide { 8 } else { 4 },
        sure: &plan.surely_read(),
        bytes: &|field| plan.stencil.fields[field].stored.bytes(plan.choices.precision),
    };
    let shared = |block| plan.access.shared_bytes(block, &needs);
    let block = plan.choices.block;
    let bytes = shared(block);
    if bytes <= SHARED {
        return Ok(());
    }
    // What is shared grows with the columns of a block alone.
    let [x, y, z] = block;
    let halves = |from: u32| std::iter::successors(Some(from), |most| Some(most / 2)).take_while(|&most| most > 0);
    let (rows, short) = (halves(y / 2).map(|y| [x, y, z]), halves(x / 2).map(|x| [x, 1, z]));
    let smaller = rows.chain(short).find(|&block| shared(block) <= SHARED);
    let other = "give another access: --access idxvar";
    Err(Refusal::new(format!(
        "a block of {x}x{y}x{z} threads would share {bytes} bytes, and at most {SHARED} are possible"
    ))
    .help(match smaller {
        Some([x, y, z]) => format!("give a smaller block, --block {x}x{y}x{z}; or {other}"),
        None => other.to_owned(),
    }))
}

/// Whether blocks that walk along k compute what a stencil does: all that it writes has columns, and lies in their planes, of which there
/// are as many as levels.
fn is_walked(stencil: &Stencil) -> bool {
    let has_columns = |store: &Store| stencil.fields[store.field].place.horizontal;
    stencil.stores.iter().all(has_columns) && !goes_on(stencil) && read_anywhere(stencil).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    /// The first were measured to be faster by patches, and the others to be slower, but for the last, which moves six fields.
    #[test]
    fn patches_are_usual_where_they_are_faster() {
        let has_patches = |text: &str, name: &str, levels: usize| {
            let stencils = crate::check(&Source::new("own", text)).stencils;
            let stencil: Vec<Stencil> = stencils.into_iter().filter(|own| own.name == name).collect();
            assert_eq!(stencil.len(), 1, "{name}");
            Choices::default().on_cells(&stencil, Some(levels), Open::Kernel).access == PATCHES
        };
        macro_rules! own {
            ($file:literal) => {
                include_str!(concat!("../../../stencils/", $file, ".stn"))
            };
        }
        let faster = [
            (own!("laplap"), "laplap"),
            (own!("diffusion4"), "diffuse"),
            (own!("heat27"), "heat27"),
            (own!("terrain_slope"), "terrain_slope"),
            (own!("hdiff"), "hdiff"),
            (own!("acoustic8"), "acoustic8"),
            (own!("gray_scott"), "gray_scott"),
        ];
        faster.iter().for_each(|(text, name)| assert!(has_patches(text, name, 64), "{name}"));
        let slower = [
            (own!("advection5"), "advection5"),
            (own!("frontal"), "frontal"),
            (own!("fastwaves"), "fastwaves"),
            (own!("grad_div"), "grad_div6"),
        ];
        slower.iter().for_each(|(text, name)| assert!(!has_patches(text, name, 64), "{name}"));
        assert!(!has_patches(own!("laplap"), "laplap", 31));
    }
}
