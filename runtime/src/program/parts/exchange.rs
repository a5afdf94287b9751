//! Parts that kernels compute: a kernel of a part fills its halo, from its own cells and from those of its neighbours, in the memory of
//! whichever machine has them.
//!
//! Two machines do what they are asked side by side. So the kernel tells the neighbours that all is computed that it was asked before, and
//! waits until they have told the same: nothing else keeps them together. It takes what lies beyond several edges from the neighbour's
//! inner cells, whose halo may not be filled yet.

use super::carried::Carrying;
use super::messages::Message;
use super::{Neighbour, Part};
use crate::error::{Error, Result};
use crate::machine::{Arg, Launch, Machine};
use crate::peers::{Meeting, Peer};
use crate::program::ProgramProblem;
use crate::program::fill::{
    BLOCKS, Fill, Pairs, THREADS, column_at, columns, element_in_kernels, is_exchanged, levels, nought, signed, source,
    values,
};
use crate::program::kernels::Kernels;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::kernel;
use stencilc_compiler::program::Staged;

/// What the variables that are exchanged need, each once: there is a kernel for each.
pub fn fills(staged: &Staged) -> Vec<Fill> {
    let mut all = Vec::new();
    for (id, _) in staged.program.variables.iter().filter(|(id, _)| is_exchanged(staged, *id)) {
        let fill = Fill::of(staged, id);
        if !all.contains(&fill) {
            all.push(fill);
        }
    }
    all
}

/// The name of a kernel that exchanges rows.
pub fn name(Fill { element, signed }: Fill) -> String {
    format!("exchange_{}halo_{}", if signed { "signed_" } else { "" }, element.name())
}

/// A kernel that exchanges rows.
pub fn code(fill: Fill) -> kernel::Kernel {
    kernel::machine::exchange_halo(&name(fill), THREADS, element_in_kernels(fill.element), fill.signed)
}

/// What a part exchanges with its neighbours, on a machine.
pub struct Exchange<M: Machine> {
    meeting: Meeting<M>,
    /// Which columns and levels go where, by variable.
    around: RefCell<BTreeMap<VariableId, Around<M>>>,
    /// What is carried to and from other processes.
    pub(super) carrying: Carrying<M>,
}

/// Where the columns and levels of a variable's halo come from: first from the part before, then from the part behind, then from its own.
struct Around<M: Machine> {
    columns: M::Buffer,
    column_count: usize,
    brought: [usize; 2],
    levels: M::Buffer,
    level_count: usize,
}

impl<M: Machine> Exchange<M> {
    /// Of a part that has met nobody yet.
    pub fn new(machine: &Arc<M>) -> Self {
        Self { meeting: Meeting::new(machine), around: RefCell::default(), carrying: Carrying::default() }
    }
}

impl<M: Machine> Peer for Kernels<M> {
    fn look_at(&self, other: &Self) -> Result<()> {
        self.machine().look_at(other.machine())
    }

    fn join(&self, neighbours: &[Option<(&Self, usize)>]) -> Result<()> {
        let meetings = neighbours.iter().map(|own| own.map(|(other, place)| (&other.exchange.meeting, place)));
        self.exchange.meeting.join(&meetings.collect::<Vec<_>>())
    }

    fn meet(&self) -> Result<()> {
        let Some(&fill) = self.exchanges.keys().next().filter(|_| !self.exchange.meeting.is_alone()) else {
            return Ok(());
        };
        // The same kernel as for an exchange, which fills nothing.
        let [nothing, ..] = self.exchange.meeting.arguments()?;
        let mut arguments = vec![nothing, Arg::I64(0), nothing, Arg::I32(0), nothing, Arg::I32(0)];
        arguments.extend([nought(fill.element); 6]);
        // As if one column were brought: who brings none waits for nobody.
        for brought in [1, 0] {
            arguments.extend([nothing, Arg::I64(0), Arg::I32(brought)]);
        }
        self.launch_exchange(fill, arguments, [1, 1], true)
    }

    fn record_together(parts: &[Self], work: &mut dyn FnMut() -> Result<()>) -> Result<Option<M::Recording>> {
        let machines: Vec<&M> = parts.iter().map(|part| &**part.machine()).collect();
        if parts.iter().all(Kernels::has_graph) { M::record_together(&machines, work) } else { Ok(None) }
    }

    fn replay_together(parts: &[Self], recording: &M::Recording) -> Result<()> {
        let machines: Vec<&M> = parts.iter().map(|part| &**part.machine()).collect();
        M::replay_together(&machines, recording)
    }
}

impl<M: Machine> Part for Kernels<M> {
    fn prepare(&self, variable: VariableId, brought: [Option<(&Self, &Message)>; 2]) -> Result<()> {
        let columns = |(other, message): (&Self, &Message)| {
            self.columns_of(variable, message, column_at(other.problem(), other.layout(), variable))
        };
        self.keep_around(variable, brought.map(|own| own.map(columns)))
    }

    fn exchange(
        &self,
        variable: VariableId,
        buffer: &M::Buffer,
        neighbours: [Option<Neighbour<Self>>; 2],
        meets: bool,
    ) -> Result<()> {
        let own = |neighbour: Option<Neighbour<Self>>| {
            // Whoever brings nothing looks at nobody.
            let (part, other) = neighbour.map_or((self, buffer), |own| (own.part, own.buffer));
            (part.field(variable, other), part.level_apart())
        };
        self.exchange_around(variable, buffer, neighbours.map(own), meets)
    }
}

impl<M: Machine> Kernels<M> {
    /// Where a kernel finds a buffer of a variable.
    pub(super) fn field(&self, variable: VariableId, buffer: &M::Buffer) -> Arg {
        Arg::Pointer(self.machine().address(buffer, self.packing(variable).pointer()))
    }

    /// Keeps where the columns of a variable's halo come from: those from the parts before and behind, and then its own.
    pub(super) fn keep_around(&self, variable: VariableId, brought: [Option<Pairs>; 2]) -> Result<()> {
        let brought = brought.map(Option::unwrap_or_default);
        let (_, outer) = columns(self.problem(), self.layout(), variable);
        let (inner_levels, outer_levels) = levels(self.problem(), variable);
        let levels = [inner_levels, outer_levels].concat();
        let counts = [0, 1].map(|place| brought[place].len());
        let all = [brought.concat(), outer].concat();
        let around = Around {
            columns: self.machine().upload(bytemuck::cast_slice(&all))?,
            column_count: all.len(),
            brought: counts,
            levels: self.machine().upload(bytemuck::cast_slice(&levels))?,
            level_count: levels.len(),
        };
        self.exchange.around.borrow_mut().insert(variable, around);
        Ok(())
    }

    /// Fills the halo of a buffer from its own cells and from those of two neighbours: where each has them, and how far it is from a level of
    /// theirs to the next.
    pub(super) fn exchange_around(
        &self,
        variable: VariableId,
        buffer: &M::Buffer,
        neighbours: [(Arg, i64); 2],
        meets: bool,
    ) -> Result<()> {
        let known = self.exchange.around.borrow();
        let around = known.get(&variable).ok_or_else(|| Error::check("rows are exchanged that nobody prepared"))?;
        let mut arguments = vec![
            self.field(variable, buffer),
            Arg::I64(self.level_apart()),
            Arg::Pointer(self.machine().address(&around.columns, 0)),
            Arg::I32(narrow(around.column_count)?),
            Arg::Pointer(self.machine().address(&around.levels, 0)),
            Arg::I32(narrow(around.level_count)?),
        ];
        arguments.extend(values(&self.problem().staged, variable));
        for ((field, plane), count) in neighbours.into_iter().zip(around.brought) {
            arguments.extend([field, Arg::I64(plane), Arg::I32(narrow(count)?)]);
        }
        let blocks = [around.column_count, around.level_count];
        self.launch_exchange(Fill::of(&self.problem().staged, variable), arguments, blocks, meets)
    }

    /// Launches a kernel that exchanges so many columns on so many levels with the parts before and behind this one, which are told and waited
    /// for if it `meets` them.
    pub(super) fn launch_exchange(
        &self,
        fill: Fill,
        mut arguments: Vec<Arg>,
        [columns, levels]: [usize; 2],
        meets: bool,
    ) -> Result<()> {
        let kernel = self.exchanges.get(&fill);
        let kernel = kernel.ok_or_else(|| Error::check("there is no kernel that exchanges rows"))?;
        let meeting = &self.exchange.meeting;
        arguments.extend(if meets { meeting.arguments()? } else { meeting.alone()? });
        let blocks = [columns.div_ceil(THREADS as usize).max(1) as u32, levels.clamp(1, BLOCKS) as u32, 1];
        self.machine().launch(kernel, &Launch::new(blocks, [THREADS, 1, 1]), &arguments)
    }

    /// Where the columns go that come with a message, and where from: rows of the other's inner cells, and what lies beyond the edges of those.
    pub(super) fn columns_of(
        &self,
        variable: VariableId,
        message: &Message,
        from: impl Fn(usize, usize) -> i32,
    ) -> Pairs {
        let problem: &ProgramProblem = self.problem();
        let to = column_at(problem, self.layout(), variable);
        let row = |row: usize| {
            let (to, from) = (&to, &from);
            (0..problem.staged.grid.ni).filter_map(move |i| {
                let (origin, is_negated) = source(problem, variable, GridAxis::I, i)?;
                let place = signed(to(i, message.to_row + row), is_negated);
                Some(match usize::try_from(origin) {
                    Ok(cell) => [place, from(cell, message.from_row + row)],
                    Err(_) => [place, origin],
                })
            })
        };
        (0..message.count).flat_map(row).collect()
    }

    /// The distance from a level to the next.
    pub(super) fn level_apart(&self) -> i64 {
        let layout = self.layout();
        layout.stride(layout.strides.level) as i64
    }
}

pub(super) fn narrow(count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| Error::check("more columns than a kernel counts"))
}
