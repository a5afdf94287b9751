//! Parts that the interpreter computes, one after the other.

use super::super::cpu::Interpreter;
use super::{ByPart, Carried, Folding, Message, Tells, put};
use crate::array::Data;
use crate::driver::Backend;
use crate::error::{Error, Result};
use crate::interpreter::mesh::folded;
use crate::peers::Peer;
use crate::ranks::{About, Carrier, Freight, Ranks, of_host};
use std::cell::RefCell;
use stencilc_compiler::ir::VariableId;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::kernel::machine::FOLDED_TILE;

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

    fn fold_together(parts: &[Self], folding: &Folding, told: &[Data], buffers: &[RefCell<Data>]) -> Result<()> {
        let told: Vec<&Data> = told.iter().collect();
        // What was left is no number of the program.
        parts.iter().zip(buffers).try_for_each(|(part, buffer)| part.fold_told(folding, &told, buffer))
    }
}

impl Tells for Interpreter {
    type Told = Data;

    fn told(&self, part: usize, folding: &Folding, buffer: &RefCell<Data>) -> Result<Data> {
        let (own, left) = (&folding.tiles.parts[part], buffer.borrow());
        let mut told = Data::fresh(folding.element, own.count());
        for &[place, first] in &own.totals {
            let numbers = (first as usize..).take(FOLDED_TILE).map(|number| left.get(number)).collect();
            let total = folded(folding.fold, self.problem().precision, numbers);
            told.replace(place as usize, &Data::single(folding.element, Value::Real(total)));
        }
        let numbers = own.numbers.iter().map(|&[place, number]| [number as usize, place as usize]);
        left.copy_runs(&mut told, 1, numbers);
        Ok(told)
    }
}

impl Interpreter {
    /// Numbers of an element of a variable, and how many levels of it there are.
    fn shape(&self, variable: VariableId) -> [usize; 2] {
        let place = self.problem().program.program.variables[variable].place;
        [place.home.map_or(1, |home| home.width as usize), place.levels.count(self.problem().levels)]
    }
}

impl Carrier for Interpreter {
    type Room = Data;

    fn swap(&self, ranks: &Ranks, about: About, sent: &[Freight<&Data>], rooms: &mut [Freight<Data>]) -> Result<()> {
        of_host(ranks, about, sent, rooms)
    }
}

impl Carried for Interpreter {
    fn give(&self, variable: VariableId, buffer: &RefCell<Data>, message: &Message) -> Result<Data> {
        let (shape, own) = (self.shape(variable), buffer.borrow());
        let count = message.places.len();
        let mut given = Data::fresh(own.element(), count * shape[0] * shape[1]);
        let places = message.places.iter().enumerate().map(|(place, &[_, from])| [from as usize, place]);
        put((&own, self.problem().bound.size(message.set)), (&mut given, count), shape, places);
        Ok(given)
    }

    fn room(&self, variable: VariableId, message: &Message) -> Result<Data> {
        let [width, levels] = self.shape(variable);
        Ok(Data::fresh(self.script().element(variable), message.places.len() * width * levels))
    }

    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize {
        let [width, levels] = self.shape(variable);
        message.places.len() * width * levels * self.script().element(variable).bytes()
    }

    fn take(&self, variable: VariableId, buffer: &RefCell<Data>, message: &Message, came: &Data) -> Result<()> {
        let mut own = buffer.try_borrow_mut().map_err(|_| Error::check("a part writes what it reads"))?;
        let places = message.places.iter().enumerate().map(|(place, &[to, _])| [place, to as usize]);
        let size = self.problem().bound.size(message.set);
        put((came, message.places.len()), (&mut own, size), self.shape(variable), places);
        Ok(())
    }

    fn room_told(&self, folding: &Folding, part: usize) -> Result<Data> {
        Ok(Data::fresh(folding.element, folding.tiles.parts[part].count()))
    }

    fn fold_told(&self, folding: &Folding, told: &[&Data], buffer: &RefCell<Data>) -> Result<()> {
        let all = folding.joined(told);
        let (tiles, precision) = (&folding.tiles, self.problem().precision);
        let mut totals: Vec<f64> = (0..tiles.count).map(|tile| all.get(tile)).collect();
        for &[tile, first] in &tiles.mixed {
            let numbers = (first as usize..tiles.len).take(FOLDED_TILE).map(|number| all.get(number)).collect();
            totals[tile as usize] = folded(folding.fold, precision, numbers);
        }
        let total = folded(folding.fold, precision, totals);
        buffer.replace(Data::single(folding.element, Value::Real(total)));
        Ok(())
    }
}
