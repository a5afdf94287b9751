//! Parts that the interpreter computes, one after the other.

use super::super::cpu::Interpreter;
use super::{ByPart, Folding, Message, put};
use crate::array::Data;
use crate::error::{Error, Result};
use crate::interpreter::mesh::folded;
use crate::peers::Peer;
use std::cell::RefCell;
use stencilc_compiler::ir::Precision;
use stencilc_compiler::ir::VariableId;

impl Peer for Interpreter {}

impl ByPart for Interpreter {
    fn bring(
        &self,
        variable: VariableId,
        message: &Message,
        to: &RefCell<Data>,
        other: &Self,
        from: &RefCell<Data>,
    ) -> Result<()> {
        let place = self.problem().program.program.variables[variable].place;
        let width = place.home.map_or(1, |home| home.width as usize);
        let shape = [width, place.levels.count(self.problem().levels)];
        let [own, others] = [self, other].map(|part| part.problem().bound.size(message.set));
        let from = from.borrow();
        let mut to = to.try_borrow_mut().map_err(|_| Error::check("a part writes what it reads"))?;
        let places = message.places.iter().map(|&[place, first]| [first as usize, place as usize]);
        put((&from, others), (&mut to, own), shape, places);
        Ok(())
    }

    fn fold_together(parts: &[Self], folding: &Folding, buffers: &[&RefCell<Data>]) -> Result<()> {
        let mut leaves = vec![0.0; folding.count];
        for (buffer, ranks) in buffers.iter().zip(&*folding.ranks) {
            let own = buffer.borrow();
            for &[rank, from] in ranks {
                let [rank, from] = [rank, from].map(|rank| rank as usize * folding.levels);
                (0..folding.levels).for_each(|level| leaves[rank + level] = own.get(from + level));
            }
        }
        let Some(part) = parts.first() else { return Ok(()) };
        let precision = part.problem().precision;
        let total = folded(folding.fold, precision, leaves);
        let number = match precision {
            Precision::F32 => Data::F32(vec![total as f32]),
            Precision::F64 => Data::F64(vec![total]),
        };
        // What was left is no number of the program.
        buffers.iter().for_each(|buffer| _ = buffer.replace(number.clone()));
        Ok(())
    }
}
