//! Elements that kernels take out of a field for another process, and put into it.
//!
//! They lie together on their way, level after level, and the kernel that brings columns from another part serves both ways.

use super::super::parts::{Carried, Folding, Message};
use super::Kernels;
use super::arrays::Array;
use crate::Result;
use crate::build::Build;
use crate::driver::Backend;
use crate::machine::Machine;
use crate::ranks::{About, Carrier, Freight, Memory, Ranks};
use stencilc_compiler::ir::VariableId;

impl<M: Build> Kernels<M> {
    /// Numbers of an element of a variable, and how many levels of it there are.
    fn carried(&self, variable: VariableId) -> [usize; 2] {
        let place = self.problem.program.program.variables[variable].place;
        [place.home.map_or(1, |home| home.width as usize), place.levels.count(self.problem.levels).max(1)]
    }
}

impl<M: Build> Carrier for Kernels<M> {
    type Room = Array<M>;

    fn reach(&self, ranks: &Ranks) -> Result<()> {
        self.machine.reach(ranks)
    }

    fn records_swaps(&self, ranks: &Ranks) -> bool {
        self.records && self.machine.records_swaps(ranks)
    }

    fn swap(
        &self,
        ranks: &Ranks,
        about: About,
        sent: &[Freight<&Array<M>>],
        rooms: &mut [Freight<Array<M>>],
    ) -> Result<()> {
        let sent: Vec<_> = sent.iter().map(|own| Ok(own.with(own.room.memory()?))).collect::<Result<_>>()?;
        let rooms: Vec<_> = rooms.iter().map(|own| Ok(own.with(own.room.memory()?))).collect::<Result<_>>()?;
        self.machine.swap(ranks, about, &sent, &rooms)
    }
}

impl<M: Machine> Array<M> {
    fn memory(&self) -> Result<Memory<'_, M::Buffer>> {
        Ok(Memory { buffer: self.buffer()?, bytes: self.bytes })
    }
}

impl<M: Build> Carried for Kernels<M> {
    fn give(&self, variable: VariableId, buffer: &Array<M>, message: &Message) -> Result<Array<M>> {
        let room = self.room(variable, message)?;
        self.carry(variable, message, [&room, buffer], true)?;
        Ok(room)
    }

    fn room(&self, variable: VariableId, message: &Message) -> Result<Array<M>> {
        let [width, levels] = self.carried(variable);
        self.array(self.script().element(variable), message.places.len() * width * levels)
    }

    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize {
        let [width, levels] = self.carried(variable);
        message.places.len() * width * levels * self.script().element(variable).bytes()
    }

    fn take(&self, variable: VariableId, buffer: &Array<M>, message: &Message, came: &Array<M>) -> Result<()> {
        self.carry(variable, message, [buffer, came], false)
    }

    fn room_told(&self, folding: &Folding, part: usize) -> Result<Array<M>> {
        self.array(folding.element, folding.tiles.parts[part].count())
    }

    fn fold_told(&self, folding: &Folding, told: &[&Array<M>], buffer: &Array<M>) -> Result<()> {
        let told: Vec<_> = told.iter().map(|&own| (self, own)).collect();
        self.fold_of_parts(folding, &told, buffer)
    }
}
