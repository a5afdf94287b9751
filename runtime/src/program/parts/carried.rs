//! Rows that kernels take out of a field for another process, and put into it.
//!
//! They lie together on their way: row after row of inner cells, level after level, of which those beyond the edges of levels are there and
//! mean nothing. To the kernel that exchanges rows such an array is a neighbour's like any other, so it serves both ways.

use super::exchange::narrow;
use super::messages::Message;
use super::rank::Carried;
use crate::array::Element;
use crate::error::{Error, Result};
use crate::machine::{Arg, Machine};
use crate::program::fill::{Fill, Pairs, column_at, levels, nought};
use crate::program::kernels::Kernels;
use crate::ranks::{About, Carrier, Freight, Memory, Ranks};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use stencilc_compiler::ir::VariableId;

/// What is carried of variables, on a machine.
pub struct Carrying<M: Machine> {
    given: RefCell<BTreeMap<(VariableId, Message), Given<M>>>,
    /// Room for rows that come.
    taken: RefCell<Rooms<M>>,
}

/// Rows that come, by the message.
type Rooms<M> = BTreeMap<(VariableId, Message), Rc<<M as Machine>::Buffer>>;

impl<M: Machine> Default for Carrying<M> {
    fn default() -> Self {
        Self { given: RefCell::default(), taken: RefCell::default() }
    }
}

/// Rows on their way out.
struct Given<M: Machine> {
    numbers: Rc<M::Buffer>,
    columns: M::Buffer,
    levels: M::Buffer,
    level_count: usize,
}

impl<M: Machine> Kernels<M> {
    /// Numbers of a row that travels, and how many levels of it there are.
    fn carried(&self, variable: VariableId) -> [usize; 2] {
        let staged = &self.problem().staged;
        let place = staged.program.variables[variable].place;
        [staged.inner_of(place)[0].len(), place.levels.count(staged.grid.nk)]
    }

    /// Where a cell of a row is among numbers that travel.
    fn carried_at(&self, variable: VariableId) -> impl Fn(usize, usize) -> i32 {
        let inner = self.problem().staged.inner_of(self.problem().staged.program.variables[variable].place)[0].clone();
        move |i, row| (row * inner.len() + i - inner.start) as i32
    }

    /// What rows are as a neighbour's: where they are, and how far it is from a level to the next.
    fn as_neighbour(&self, variable: VariableId, numbers: &M::Buffer, rows: usize) -> (Arg, i64) {
        let [ni, _] = self.carried(variable);
        (Arg::Pointer(self.machine().address(numbers, 0)), (ni * rows) as i64)
    }

    fn element_of(&self, variable: VariableId) -> Element {
        Fill::of(&self.problem().staged, variable).element
    }
}

impl<M: Machine> Carrier for Kernels<M> {
    type Room = Rc<M::Buffer>;

    fn reach(&self, ranks: &Ranks) -> Result<()> {
        self.machine().reach(ranks)
    }

    fn records_swaps(&self, ranks: &Ranks) -> bool {
        self.machine().records_swaps(ranks)
    }

    fn swap(
        &self,
        ranks: &Ranks,
        about: About,
        sent: &[Freight<&Rc<M::Buffer>>],
        rooms: &mut [Freight<Rc<M::Buffer>>],
    ) -> Result<()> {
        let sent = sent.iter().map(|own| own.with(Memory { buffer: &**own.room, bytes: own.count }));
        let rooms = rooms.iter().map(|own| own.with(Memory { buffer: &*own.room, bytes: own.count }));
        self.machine().swap(ranks, about, &sent.collect::<Vec<_>>(), &rooms.collect::<Vec<_>>())
    }
}

impl<M: Machine> Carried for Kernels<M> {
    fn prepare_to_carry(&self, variable: VariableId, given: &[Message], taken: [Option<Message>; 2]) -> Result<()> {
        let (machine, at) = (self.machine(), self.carried_at(variable));
        let fresh = |message: &Message| machine.upload(&vec![0; self.bytes_of(variable, message)]).map(Rc::new);
        for message in given {
            let from = column_at(self.problem(), self.layout(), variable);
            let inner =
                self.problem().staged.inner_of(self.problem().staged.program.variables[variable].place)[0].clone();
            let row = |row: usize| inner.clone().map(move |i| (i, row));
            let pairs = (0..message.count).flat_map(row).map(|(i, row)| [at(i, row), from(i, message.from_row + row)]);
            let (columns, (levels, _)) = (pairs.collect::<Pairs>(), levels(self.problem(), variable));
            let own = Given {
                numbers: fresh(message)?,
                columns: machine.upload(bytemuck::cast_slice(&columns))?,
                levels: machine.upload(bytemuck::cast_slice(&levels))?,
                level_count: levels.len(),
            };
            self.exchange.carrying.given.borrow_mut().insert((variable, *message), own);
        }
        let brought = taken.map(|message| {
            let message = message?;
            Some(self.columns_of(variable, &message, |i, row| at(i, row - message.from_row)))
        });
        for message in taken.into_iter().flatten() {
            self.exchange.carrying.taken.borrow_mut().insert((variable, message), fresh(&message)?);
        }
        self.keep_around(variable, brought)
    }

    fn give(&self, variable: VariableId, buffer: &M::Buffer, message: &Message) -> Result<Rc<M::Buffer>> {
        let given = self.exchange.carrying.given.borrow();
        let own =
            given.get(&(variable, *message)).ok_or_else(|| Error::check("rows are given that nobody prepared"))?;
        let [ni, _] = self.carried(variable);
        let count = ni * message.count;
        let machine = self.machine();
        let (numbers, plane) = self.as_neighbour(variable, &own.numbers, message.count);
        let mut arguments = vec![
            numbers,
            Arg::I64(plane),
            Arg::Pointer(machine.address(&own.columns, 0)),
            Arg::I32(narrow(count)?),
            Arg::Pointer(machine.address(&own.levels, 0)),
            Arg::I32(narrow(own.level_count)?),
        ];
        arguments.extend([nought(self.element_of(variable)); 6]);
        // All of them are those of one neighbour: this part's own.
        for count in [count, 0] {
            arguments.extend([self.field(variable, buffer), Arg::I64(self.level_apart()), Arg::I32(narrow(count)?)]);
        }
        self.launch_exchange(Fill::of(&self.problem().staged, variable), arguments, [count, own.level_count], false)?;
        Ok(Rc::clone(&own.numbers))
    }

    fn room(&self, variable: VariableId, message: &Message) -> Result<Rc<M::Buffer>> {
        let taken = self.exchange.carrying.taken.borrow();
        let known = taken.get(&(variable, *message)).map(Rc::clone);
        known.ok_or_else(|| Error::check("rows are taken that nobody prepared"))
    }

    fn bytes_of(&self, variable: VariableId, message: &Message) -> usize {
        let [ni, levels] = self.carried(variable);
        ni * levels * message.count * self.element_of(variable).bytes()
    }

    fn take(
        &self,
        variable: VariableId,
        buffer: &M::Buffer,
        came: [Option<(Message, Rc<M::Buffer>)>; 2],
    ) -> Result<()> {
        let mut neighbours = [(self.field(variable, buffer), self.level_apart()); 2];
        for (place, own) in came.iter().enumerate() {
            if let Some((message, numbers)) = own {
                neighbours[place] = self.as_neighbour(variable, numbers, message.count);
            }
        }
        self.exchange_around(variable, buffer, neighbours, false)
    }
}
