//! Parts that the interpreter computes, one after the other.

use super::messages::Message;
use super::{Neighbour, Part};
use crate::array::Data;
use crate::driver::Backend;
use crate::error::{Error, Result};
use crate::peers::Peer;
use crate::program::cpu::Interpreter;
use std::cell::RefCell;
use stencilc_compiler::ir::VariableId;

impl Peer for Interpreter {}

impl Part for Interpreter {
    fn prepare(&self, _: VariableId, _: [Option<(&Self, &Message)>; 2]) -> Result<()> {
        Ok(())
    }

    fn exchange(
        &self,
        variable: VariableId,
        buffer: &RefCell<Data>,
        neighbours: [Option<Neighbour<Self>>; 2],
    ) -> Result<()> {
        for Neighbour { part, buffer: from, message } in neighbours.into_iter().flatten() {
            let Some(message) = message else { continue };
            let [own, others] = [self, part].map(|part| part.staged().grid);
            let levels = self.script().program().variables[variable].place.levels.count(own.nk);
            let from = from.borrow();
            let mut to = buffer.try_borrow_mut().map_err(|_| Error::check("a part writes what it reads"))?;
            let row = |nj: usize, level: usize, first: usize| (level * nj + first) * own.ni;
            let run = |level| [row(others.nj, level, message.from_row), row(own.nj, level, message.to_row)];
            from.copy_runs(&mut to, message.count * own.ni, (0..levels).map(run));
        }
        Ok(())
    }
}
