//! Kernels that are a part of several: they fetch what other parts own, from the memory of whichever machine has it.

use super::super::fold::Folds;
use super::super::parts::{ByPart, Folding, Message, Tells};
use super::arrays::Array;
use super::{Kernels, narrow};
use crate::build::Build;
use crate::machine::{Arg, Launch, Machine};
use crate::peers::{Meeting, Peer};
use crate::{Element, Error, Result};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use stencilc_compiler::cuda;
use stencilc_compiler::gpu;
use stencilc_compiler::ir::mesh::{Fold, Zones};
use stencilc_compiler::ir::{Handle, Levels, Place, SetId, Stored, VariableId};
use stencilc_compiler::kernel;
use stencilc_compiler::kernel::machine::{TILES_OF_BLOCK, bring_columns, meet_peers};

/// Threads of a block.
const THREADS: u32 = 128;

/// The most blocks along y.
const BLOCKS: usize = 65_535;

/// Which numbers go where: pairs of where each goes and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Pairs {
    /// Those of a message, of fields that lie so.
    Message(usize, Place, Stored),
    /// Those of a reduction, over some zones of a set, of so many numbers of each element.
    Fold(Tiled, SetId, Option<Zones>, usize),
}

/// Which numbers of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tiled {
    /// The first of each tile that a part has whole, and its total.
    Totals(usize),
    /// The others of the part.
    Numbers(usize),
    /// What the part tells.
    Told(usize),
    /// The first of each tile that no part has whole, and its total.
    Mixed,
}

/// A table of pairs on a machine, and how many there are.
type Table<M> = Rc<(Rc<<M as Machine>::Buffer>, usize)>;

/// Kernels that bring numbers of a type, and the tables that they take.
pub(super) struct Bringing<M: Machine> {
    kernels: RefCell<BTreeMap<&'static str, Rc<M::Kernel>>>,
    tables: RefCell<HashMap<Pairs, Table<M>>>,
    meeting: Meeting<M>,
    /// The kernel that meets others, where some are on other machines.
    meets: OnceCell<M::Kernel>,
}

impl<M: Machine> Bringing<M> {
    /// For kernels on a machine.
    pub fn new(machine: &Arc<M>) -> Self {
        Self {
            kernels: RefCell::default(),
            tables: RefCell::default(),
            meeting: Meeting::new(machine),
            meets: OnceCell::new(),
        }
    }
}

/// How the numbers of a field lie in a part: where the numbers of an element are on its first level, and how far it is to the next.
struct Lie<'a> {
    /// By the user's number, that of the machine.
    news: &'a [u32],
    together: usize,
    groups: usize,
    chunks: stencilc_compiler::mesh::Chunks,
}

impl Lie<'_> {
    /// Where the numbers of an element are on the first level.
    fn of(&self, user: u32) -> impl Iterator<Item = usize> {
        let new = self.news[user as usize] as usize;
        let group = move |group| self.chunks.number([0, group, new]) * self.together;
        (0..self.groups).map(group).flat_map(|first| first..first + self.together)
    }

    fn level_apart(&self) -> usize {
        (self.chunks.number([1, 0, 0]) - self.chunks.number([0, 0, 0])) * self.together
    }
}

impl<M: Build> Peer for Kernels<M> {
    fn look_at(&self, other: &Self) -> Result<()> {
        self.machine.look_at(&other.machine)
    }

    fn join(&self, neighbours: &[Option<(&Self, usize)>]) -> Result<()> {
        let meetings = neighbours.iter().map(|own| own.map(|(other, place)| (&other.bringing.meeting, place)));
        let own = &self.bringing.meeting;
        own.join(&meetings.collect::<Vec<_>>())?;
        if !own.is_alone() {
            // Made ready now: once parts wait for each other, none is asked anything else meanwhile.
            let code = meet_peers("meet_peers");
            _ = self.bringing.meets.set(self.build(&code.name, &cuda::text(&code)?)?);
        }
        Ok(())
    }

    fn meet(&self) -> Result<()> {
        let Some(kernel) = self.bringing.meets.get() else { return Ok(()) };
        let launch = Launch::new([1; 3], [gpu::WARP as u32, 1, 1]);
        self.machine.launch(kernel, &launch, &self.bringing.meeting.arguments()?)
    }

    fn record_together(parts: &[Self], work: &mut dyn FnMut() -> Result<()>) -> Result<Option<M::Recording>> {
        let machines: Vec<&M> = parts.iter().map(Kernels::machine).collect();
        if parts.iter().all(|part| part.records) { M::record_together(&machines, work) } else { Ok(None) }
    }

    fn replay_together(parts: &[Self], recording: &M::Recording) -> Result<()> {
        let machines: Vec<&M> = parts.iter().map(Kernels::machine).collect();
        M::replay_together(&machines, recording)
    }
}

impl<M: Build> ByPart for Kernels<M> {
    fn bring(
        &self,
        variable: VariableId,
        message: &Message,
        to: &Array<M>,
        other: &Self,
        from: &Array<M>,
    ) -> Result<()> {
        let own = &self.problem.program.program.variables[variable];
        let (Some(here), Some(there)) = (self.lie(own.place, own.stored), other.lie(own.place, own.stored)) else {
            return Ok(());
        };
        let table = self.table(Pairs::Message(message.number, own.place, own.stored), || {
            let numbers =
                |&[to, from]: &[u32; 2]| here.of(to).zip(there.of(from)).map(|(to, from)| [to as i32, from as i32]);
            message.places.iter().flat_map(numbers).collect()
        })?;
        let levels = if own.place.levels == Levels::None { 1 } else { own.place.levels.count(self.problem.levels) };
        let apart = [&here, &there].map(Lie::level_apart);
        self.bring_numbers(&table, [to, from], other, apart, levels)
    }

    fn fold_together(parts: &[Self], folding: &Folding, told: &[Array<M>], buffers: &[Array<M>]) -> Result<()> {
        let (Some(first), Some(result)) = (parts.first(), buffers.first()) else { return Ok(()) };
        first.fold_of_parts(folding, &parts.iter().zip(told).collect::<Vec<_>>(), result)
    }
}

impl<M: Build> Tells for Kernels<M> {
    type Told = Array<M>;

    fn told(&self, part: usize, folding: &Folding, _: &Array<M>) -> Result<Array<M>> {
        let left = self.left.as_ref().map(RefCell::borrow);
        let own = left.as_ref().and_then(|left| left.iter().find(|own| own.field == folding.field));
        let own = own.ok_or_else(|| Error::check("a part left nothing to fold"))?;
        let told = self.array(folding.element, folding.tiles.parts[part].count())?;
        let totals = self.folding_table(folding, Tiled::Totals(part))?;
        self.total(folding.fold, &totals, [&own.numbers, &told])?;
        let numbers = self.folding_table(folding, Tiled::Numbers(part))?;
        self.bring_numbers(&numbers, [&told, &own.numbers], self, [0, 0], 1)?;
        Ok(told)
    }
}

impl<M: Build> Kernels<M> {
    /// Brings elements, in the order of a message, from a field to where they lie together, or from there to a field.
    pub(super) fn carry(
        &self,
        variable: VariableId,
        message: &Message,
        [to, from]: [&Array<M>; 2],
        is_given: bool,
    ) -> Result<()> {
        let own = &self.problem.program.program.variables[variable];
        let Some(here) = self.lie(own.place, own.stored) else { return Ok(()) };
        let in_order = |[field, together]: [usize; 2]| if is_given { [together, field] } else { [field, together] };
        let table = self.table(Pairs::Message(message.number, own.place, own.stored), || {
            let users = message.places.iter().map(|&[to, from]| if is_given { from } else { to });
            let fields = users.flat_map(|user| here.of(user).collect::<Vec<_>>());
            fields.enumerate().map(|(place, field)| in_order([field, place]).map(|at| at as i32)).collect()
        })?;
        let levels = if own.place.levels == Levels::None { 1 } else { own.place.levels.count(self.problem.levels) };
        let width = own.place.home.map_or(1, |home| home.width as usize);
        let apart = in_order([here.level_apart(), message.places.len() * width]);
        self.bring_numbers(&table, [to, from], self, apart, levels)
    }

    /// How the numbers of a field lie; nothing of one that is on no set.
    fn lie(&self, place: Place, stored: Stored) -> Option<Lie<'_>> {
        let home = place.home?;
        let together = self.choices.layout.together(home, stored, self.problem.precision);
        let size = self.renumbered.bound.size(home.set);
        let chunks = self.choices.layout.chunks(place, together, [size, self.problem.levels]);
        let news = &self.renumbered.news[home.set.index()];
        Some(Lie { news, together, groups: home.width as usize / together, chunks })
    }

    /// The table of some numbers of a reduction.
    fn folding_table(&self, folding: &Folding, which: Tiled) -> Result<Table<M>> {
        let tiles = &folding.tiles;
        self.table(Pairs::Fold(which, folding.set, folding.zones, folding.levels), || match which {
            Tiled::Totals(part) => tiles.parts[part].totals.clone(),
            Tiled::Numbers(part) => tiles.parts[part].numbers.clone(),
            Tiled::Told(part) => tiles.parts[part].to.clone(),
            Tiled::Mixed => tiles.mixed.clone(),
        })
    }

    /// Makes one number of what all parts tell, which stands on this machine or one that it looks at.
    pub(super) fn fold_of_parts(&self, folding: &Folding, told: &[(&Self, &Array<M>)], to: &Array<M>) -> Result<()> {
        let all = self.array(folding.element, folding.tiles.len)?;
        for (number, (part, own)) in told.iter().enumerate() {
            let table = self.folding_table(folding, Tiled::Told(number))?;
            self.bring_numbers(&table, [&all, own], part, [0, 0], 1)?;
        }
        self.total(folding.fold, &self.folding_table(folding, Tiled::Mixed)?, [&all, &all])?;
        self.fold(folding.fold, &all, folding.tiles.count, to)
    }

    /// Makes one number of each tile of a table.
    fn total(&self, fold: Fold, table: &Table<M>, [numbers, totals]: [&Array<M>; 2]) -> Result<()> {
        let (buffer, count) = &**table;
        if *count == 0 {
            return Ok(());
        }
        let kernel = self.folder(Folds::Tiles, fold)?;
        let arguments = [
            Arg::Pointer(self.machine.address(numbers.buffer()?, 0)),
            Arg::Pointer(self.machine.address(totals.buffer()?, 0)),
            Arg::Pointer(self.machine.address(buffer, 0)),
            Arg::I32(narrow(*count)?),
            Arg::I32(narrow(numbers.used() / numbers.element.bytes())?),
        ];
        let blocks = narrow(count.div_ceil(TILES_OF_BLOCK))? as u32;
        self.machine.launch(&kernel, &Launch::new([blocks, 1, 1], [Folds::Tiles.threads(), 1, 1]), &arguments)
    }

    /// A table of pairs.
    fn table(&self, pairs: Pairs, make: impl FnOnce() -> Vec<[i32; 2]>) -> Result<Table<M>> {
        if let Some(known) = self.bringing.tables.borrow().get(&pairs) {
            return Ok(Rc::clone(known));
        }
        let numbers = make();
        let buffer = self.upload_numbers("a table of what other parts own", bytemuck::cast_slice(&numbers))?;
        let table = Rc::new((buffer, numbers.len()));
        self.bringing.tables.borrow_mut().insert(pairs, Rc::clone(&table));
        Ok(table)
    }

    /// Brings numbers to an array here from one of another part: on each level those of a table.
    fn bring_numbers(
        &self,
        table: &Table<M>,
        [to, from]: [&Array<M>; 2],
        other: &Self,
        apart: [usize; 2],
        levels: usize,
    ) -> Result<()> {
        let (buffer, count) = &**table;
        if *count == 0 || levels == 0 {
            return Ok(());
        }
        let kernel = self.bringer(to.element)?;
        let arguments = [
            Arg::Pointer(self.machine.address(to.buffer()?, 0)),
            Arg::I64(apart[0] as i64),
            Arg::Pointer(other.machine.address(from.buffer()?, 0)),
            Arg::I64(apart[1] as i64),
            Arg::Pointer(self.machine.address(buffer, 0)),
            Arg::I32(narrow(*count)?),
            Arg::I32(narrow(levels)?),
        ];
        let blocks = [narrow(count.div_ceil(THREADS as usize))? as u32, levels.min(BLOCKS) as u32, 1];
        self.machine.launch(&kernel, &Launch::new(blocks, [THREADS, 1, 1]), &arguments)
    }

    /// The kernel that brings numbers of a type.
    fn bringer(&self, element: Element) -> Result<Rc<M::Kernel>> {
        if let Some(known) = self.bringing.kernels.borrow().get(element.name()) {
            return Ok(Rc::clone(known));
        }
        let in_kernels = match element {
            Element::F32 => kernel::Element::F32,
            Element::F64 => kernel::Element::F64,
            Element::I32 => kernel::Element::I32,
            Element::Bool => kernel::Element::U8,
        };
        let code = bring_columns(&format!("bring_{}", element.name()), THREADS, in_kernels);
        let kernel = Rc::new(self.build(&code.name, &cuda::text(&code)?)?);
        self.bringing.kernels.borrow_mut().insert(element.name(), Rc::clone(&kernel));
        Ok(kernel)
    }
}
