//! Parts that the interpreter computes, one after the other.

use super::messages::Message;
use super::{Part, put};
use crate::array::Data;
use crate::driver::Backend;
use crate::error::{Error, Result};
use crate::program::cpu::Interpreter;
use std::cell::RefCell;
use std::convert::Infallible;
use stencilc_compiler::ir::VariableId;

impl Part for Interpreter {
    fn look_at(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    fn wait_for(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    fn record_together(_: &[Self], _: &mut dyn FnMut() -> Result<()>) -> Result<Option<Infallible>> {
        Ok(None)
    }

    fn replay_together(_: &[Self], recording: &Infallible) -> Result<()> {
        match *recording {}
    }

    fn bring(
        &self,
        variable: VariableId,
        message: &Message,
        to: &RefCell<Data>,
        other: &Self,
        from: &RefCell<Data>,
    ) -> Result<()> {
        let [own, others] = [self, other].map(|part| part.staged().grid);
        let levels = self.script().program().variables[variable].place.levels.count(own.nk);
        let from = from.borrow();
        let mut to = to.try_borrow_mut().map_err(|_| Error::check("a part writes what it reads"))?;
        let row = |nj: usize, first: usize| move |level: usize| (level * nj + first) * own.ni;
        let (first, place) = (row(others.nj, message.from_row), row(own.nj, message.to_row));
        put(&from, &mut to, levels, first, place, message.count * own.ni);
        Ok(())
    }
}
