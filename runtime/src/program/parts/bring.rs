//! Parts that kernels compute: a kernel of a part fetches its neighbour's rows, from the memory of whichever machine has them.

use super::Part;
use super::messages::Message;
use crate::array::Element;
use crate::error::{Error, Result};
use crate::machine::{Arg, Launch, Machine};
use crate::problem::element_of;
use crate::program::fill::{column_at, element_in_kernels};
use crate::program::kernels::Kernels;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::program::Side;
use stencilc_compiler::kernel;
use stencilc_compiler::program::{Beyond, Staged};

/// Threads of a block.
const THREADS: u32 = 128;

/// The most blocks along y.
const BLOCKS: usize = 65_535;

/// The elements of which rows are brought, each once: there is a kernel for each.
pub fn elements(staged: &Staged) -> Vec<Element> {
    let mut all = Vec::new();
    for ((_, variable), edges) in staged.program.variables.iter().zip(&staged.edges) {
        let element = element_of(variable.stored, staged.precision);
        let is_brought = Side::BOTH.iter().any(|&side| edges.beyond(GridAxis::J, side) == Some(Beyond::Neighbour));
        if is_brought && !all.contains(&element) {
            all.push(element);
        }
    }
    all
}

/// The name of a kernel that brings rows.
pub fn name(element: Element) -> String {
    format!("bring_rows_{}", element.name())
}

/// A kernel that brings rows.
pub fn code(element: Element) -> kernel::Kernel {
    kernel::machine::bring_rows(&name(element), THREADS, element_in_kernels(element))
}

/// Which columns go where, on a machine, and how many there are: by the variable, and the side of the part's own.
pub type Tables<M> = RefCell<BTreeMap<(VariableId, Side), Rc<(<M as Machine>::Buffer, usize)>>>;

impl<M: Machine> Part for Kernels<M> {
    fn look_at(&self, other: &Self) -> Result<()> {
        self.machine().look_at(other.machine())
    }

    fn wait_for(&self, other: &Self) -> Result<()> {
        self.machine().wait_for(other.machine())
    }

    fn record_together(parts: &[Self], work: &mut dyn FnMut() -> Result<()>) -> Result<Option<M::Recording>> {
        let machines: Vec<&M> = parts.iter().map(Kernels::machine).collect();
        if parts.iter().all(Kernels::has_graph) { M::record_together(&machines, work) } else { Ok(None) }
    }

    fn replay_together(parts: &[Self], recording: &M::Recording) -> Result<()> {
        let machines: Vec<&M> = parts.iter().map(Kernels::machine).collect();
        M::replay_together(&machines, recording)
    }

    fn bring(
        &self,
        variable: VariableId,
        message: &Message,
        to: &M::Buffer,
        other: &Self,
        from: &M::Buffer,
    ) -> Result<()> {
        let (machine, staged) = (self.machine(), &self.problem().staged);
        let own = &staged.program.variables[variable];
        let table = self.table(variable, message, other)?;
        let levels = own.place.levels.count(staged.grid.nk);
        let kernel = self.brings.get(&element_of(own.stored, staged.precision));
        let kernel = kernel.ok_or_else(|| Error::check("there is no kernel that brings rows"))?;
        let arguments = [
            Arg::Pointer(machine.address(to, self.packing(variable).pointer())),
            Arg::I64(self.level_apart()),
            Arg::Pointer(other.machine().address(from, other.packing(variable).pointer())),
            Arg::I64(other.level_apart()),
            Arg::Pointer(machine.address(&table.0, 0)),
            Arg::I32(narrow(table.1)?),
            Arg::I32(narrow(levels)?),
        ];
        let blocks = [table.1.div_ceil(THREADS as usize) as u32, levels.min(BLOCKS) as u32, 1];
        machine.launch(kernel, &Launch::new(blocks, [THREADS, 1, 1]), &arguments)
    }
}

impl<M: Machine> Kernels<M> {
    /// Where the columns go that come with a message, and where from.
    fn table(&self, variable: VariableId, message: &Message, other: &Self) -> Result<Rc<(M::Buffer, usize)>> {
        let key = (variable, message.side);
        if let Some(known) = self.tables.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let [to, from] = [self, other].map(|part| column_at(part.problem(), part.layout(), variable));
        let ni = self.problem().staged.grid.ni;
        let pairs: Vec<[i32; 2]> = (0..message.count)
            .flat_map(|row| (0..ni).map(move |i| (i, row)))
            .map(|(i, row)| [to(i, message.to_row + row), from(i, message.from_row + row)])
            .collect();
        let table = Rc::new((self.machine().upload(bytemuck::cast_slice(&pairs))?, pairs.len()));
        self.tables.borrow_mut().insert(key, Rc::clone(&table));
        Ok(table)
    }

    /// The distance from a level to the next.
    fn level_apart(&self) -> i64 {
        let layout = self.layout();
        layout.stride(layout.strides.level) as i64
    }
}

fn narrow(count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| Error::check("more columns than a kernel counts"))
}
