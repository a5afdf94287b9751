//! Elements that kernels take out of a field for another process, and put into it.
//!
//! They lie together on their way, level after level, and the kernel that brings columns from another part serves both ways.

use super::super::parts::{Carried, Folding, Message};
use super::Kernels;
use super::arrays::{Array, padded};
use crate::array::Data;
use crate::build::Build;
use crate::driver::Backend;
use crate::{Error, Result};
use stencilc_compiler::ir::VariableId;

impl<M: Build> Kernels<M> {
    /// Numbers of an element of a variable, and how many levels of it there are.
    fn carried(&self, variable: VariableId) -> [usize; 2] {
        let place = self.problem.program.program.variables[variable].place;
        [place.home.map_or(1, |home| home.width as usize), place.levels.count(self.problem.levels).max(1)]
    }

    /// Room for the elements of a message.
    fn room(&self, variable: VariableId, message: &Message) -> Result<Array<M>> {
        let [width, levels] = self.carried(variable);
        self.array(self.script().element(variable), message.places.len() * width * levels)
    }
}

impl<M: Build> Carried for Kernels<M> {
    fn give(&self, variable: VariableId, buffer: &Array<M>, message: &Message) -> Result<Vec<u8>> {
        let room = self.room(variable, message)?;
        self.carry(variable, message, [&room, buffer], true)?;
        let mut bytes = self.intact(&room, "elements for another rank")?;
        bytes.truncate(self.bytes_of(variable, message));
        Ok(bytes)
    }

    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize {
        let [width, levels] = self.carried(variable);
        message.places.len() * width * levels * self.script().element(variable).bytes()
    }

    fn take(&self, variable: VariableId, buffer: &Array<M>, message: &Message, bytes: &[u8]) -> Result<()> {
        let room = self.room(variable, message)?;
        let mut bytes = bytes.to_vec();
        bytes.resize(room.bytes, 0);
        self.machine.write(room.buffer()?, &bytes)?;
        self.carry(variable, message, [buffer, &room], false)
    }

    fn left(&self, folding: &Folding, _: &Array<M>) -> Result<Data> {
        let left = self.left.as_ref().map(std::cell::RefCell::borrow);
        let own = left.as_ref().and_then(|left| left.iter().find(|own| own.field == folding.field));
        let own = own.ok_or_else(|| Error::check("a part left nothing to fold"))?;
        let bytes = self.intact(&own.numbers, "what is folded")?;
        let element = own.numbers.element;
        Data::of_bytes(element, &bytes[..bytes.len() - bytes.len() % element.bytes()])
    }

    fn fold(&self, folding: &Folding, leaves: &Data, buffer: &Array<M>) -> Result<()> {
        let all = self.array(leaves.element(), leaves.len())?;
        let mut bytes = padded(leaves);
        bytes.resize(all.bytes, 0);
        self.machine.write(all.buffer()?, &bytes)?;
        Kernels::fold(self, folding.fold, &all, leaves.len(), buffer)
    }
}
