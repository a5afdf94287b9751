//! Parts that the interpreter computes, one after the other.

use super::messages::Message;
use super::{Carried, Neighbour, Part};
use crate::array::Data;
use crate::driver::Backend;
use crate::error::{Error, Result};
use crate::peers::Peer;
use crate::program::cpu::Interpreter;
use crate::ranks::{About, Carrier, Freight, Ranks, of_host};
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
        _: bool,
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

impl Interpreter {
    /// Numbers of a row, halo included, and how many levels there are.
    fn carried(&self, variable: VariableId) -> [usize; 2] {
        let grid = self.staged().grid;
        [grid.ni, self.script().program().variables[variable].place.levels.count(grid.nk)]
    }
}

impl Carrier for Interpreter {
    type Room = Data;

    fn swap(&self, ranks: &Ranks, about: About, sent: &[Freight<&Data>], rooms: &mut [Freight<Data>]) -> Result<()> {
        of_host(ranks, about, sent, rooms)
    }
}

impl Carried for Interpreter {
    fn prepare_to_carry(&self, _: VariableId, _: &[Message], _: [Option<Message>; 2]) -> Result<()> {
        Ok(())
    }

    fn give(&self, variable: VariableId, buffer: &RefCell<Data>, message: &Message) -> Result<Data> {
        let ([ni, levels], nj) = (self.carried(variable), self.staged().grid.nj);
        let own = buffer.borrow();
        let mut rows = Data::fresh(own.element(), levels * message.count * ni);
        let run = |level: usize| [(level * nj + message.from_row) * ni, level * message.count * ni];
        own.copy_runs(&mut rows, message.count * ni, (0..levels).map(run));
        Ok(rows)
    }

    fn room(&self, variable: VariableId, message: &Message) -> Result<Data> {
        let [ni, levels] = self.carried(variable);
        Ok(Data::fresh(self.script().element(variable), ni * levels * message.count))
    }

    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize {
        let [ni, levels] = self.carried(variable);
        ni * levels * message.count * self.script().element(variable).bytes()
    }

    fn take(&self, variable: VariableId, buffer: &RefCell<Data>, came: [Option<(Message, Data)>; 2]) -> Result<()> {
        let ([ni, levels], nj) = (self.carried(variable), self.staged().grid.nj);
        let mut own = buffer.try_borrow_mut().map_err(|_| Error::check("a part writes what it reads"))?;
        for (message, rows) in came.into_iter().flatten() {
            let run = |level: usize| [level * message.count * ni, (level * nj + message.to_row) * ni];
            rows.copy_runs(&mut own, message.count * ni, (0..levels).map(run));
        }
        Ok(())
    }
}
