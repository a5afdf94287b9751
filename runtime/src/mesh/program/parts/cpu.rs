//! Parts that the interpreter computes, one after the other.

use super::super::cpu::Interpreter;
use super::{ByPart, Carried, Folding, Message, put};
use crate::array::Data;
use crate::driver::Backend;
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
        let shape = self.shape(variable);
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
        // What was left is no number of the program.
        buffers.iter().try_for_each(|buffer| part.fold_leaves(folding, leaves.clone(), buffer))
    }
}

impl Interpreter {
    /// Numbers of an element of a variable, and how many levels of it there are.
    fn shape(&self, variable: VariableId) -> [usize; 2] {
        let place = self.problem().program.program.variables[variable].place;
        [place.home.map_or(1, |home| home.width as usize), place.levels.count(self.problem().levels)]
    }

    /// Makes one number of all that is folded.
    fn fold_leaves(&self, folding: &Folding, leaves: Vec<f64>, buffer: &RefCell<Data>) -> Result<()> {
        let precision = self.problem().precision;
        let total = folded(folding.fold, precision, leaves);
        buffer.replace(match precision {
            Precision::F32 => Data::F32(vec![total as f32]),
            Precision::F64 => Data::F64(vec![total]),
        });
        Ok(())
    }
}

impl Carried for Interpreter {
    fn give(&self, variable: VariableId, buffer: &RefCell<Data>, message: &Message) -> Result<Vec<u8>> {
        let (shape, own) = (self.shape(variable), buffer.borrow());
        let count = message.places.len();
        let mut given = Data::fresh(own.element(), count * shape[0] * shape[1]);
        let places = message.places.iter().enumerate().map(|(place, &[_, from])| [from as usize, place]);
        put((&own, self.problem().bound.size(message.set)), (&mut given, count), shape, places);
        Ok(given.bytes().to_vec())
    }

    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize {
        let [width, levels] = self.shape(variable);
        message.places.len() * width * levels * self.script().element(variable).bytes()
    }

    fn take(&self, variable: VariableId, buffer: &RefCell<Data>, message: &Message, bytes: &[u8]) -> Result<()> {
        let mut own = buffer.try_borrow_mut().map_err(|_| Error::check("a part writes what it reads"))?;
        let taken = Data::of_bytes(own.element(), bytes)?;
        let places = message.places.iter().enumerate().map(|(place, &[to, _])| [place, to as usize]);
        let size = self.problem().bound.size(message.set);
        put((&taken, message.places.len()), (&mut own, size), self.shape(variable), places);
        Ok(())
    }

    fn left(&self, _: &Folding, buffer: &RefCell<Data>) -> Result<Data> {
        Ok(buffer.borrow().clone())
    }

    fn fold(&self, folding: &Folding, leaves: &Data, buffer: &RefCell<Data>) -> Result<()> {
        self.fold_leaves(folding, (0..leaves.len()).map(|place| leaves.get(place)).collect(), buffer)
    }
}
