//! What the stencils of a program print, computed by the program: each print by a stencil of its own, called before the one that it
//! stands in, with the same arguments. What it computes goes into a variable that nobody reads but who looks at it.

use super::mesh::{How, Write};
use super::program::{Action, Call, FieldBinding, Program, Variable};
use super::{Handle, Home, Levels, MeshProgram, MeshStencil, Place, VariableId, Verify};
use crate::source::Span;
use crate::text::FreeText;
use std::collections::BTreeMap;

/// A print of a stencil where a program calls that.
#[derive(Clone, Debug)]
pub struct ShownPrint {
    /// What holds the values that it had last.
    pub variable: VariableId,
    /// The stencil.
    pub stencil: String,
    /// The stencil that computes the print.
    pub computed_by: String,
    /// What to call it.
    pub label: FreeText,
    /// Where it is written.
    pub span: Span,
    /// Where the stencil is called.
    pub call: Span,
}

/// Whether a print is wanted, by its number among all prints of all calls, in the order of the text.
pub type IsWanted<'a> = dyn Fn(usize) -> bool + 'a;

/// A program that is given the prints of its calls.
struct Showing<'a> {
    program: Program,
    /// Where the value of a print lives, by the number of its stencil.
    place: &'a dyn Fn(usize) -> Place,
    is_wanted: &'a IsWanted<'a>,
    /// How many prints there were so far.
    count: usize,
    prints: Vec<ShownPrint>,
    /// The stencils of prints, by the number of the stencil and that of its print.
    stencils: BTreeMap<(usize, usize), usize>,
}

impl Program {
    /// Whether a stencil that it calls prints anything.
    pub fn prints(&self) -> bool {
        self.calls().iter().any(|call| !self.stencils[call.stencil].prints.is_empty())
    }

    /// What its text says that it does, without the calls that compute prints.
    pub fn own_actions(&self) -> Vec<&Action> {
        let shows = |call: &Call| call.writes().any(|id| self.variables[id].is_shown);
        self.actions.iter().filter(|action| !matches!(action, Action::Call(call) if shows(call))).collect()
    }

    /// The same program, which also computes those prints of its calls that are wanted. Its own variables keep their handles.
    pub fn with_prints(&self, is_wanted: &IsWanted) -> (Program, Vec<ShownPrint>) {
        let place = |_| Place::CELLS;
        let Showing { program, prints, .. } = Showing::of(self, &place, is_wanted);
        (program, prints)
    }
}

impl MeshProgram {
    /// The same program, which also computes those prints of its calls that are wanted, each on the set of its stencil. Its own variables
    /// keep their handles.
    pub fn with_prints(&self, is_wanted: &IsWanted) -> (MeshProgram, Vec<ShownPrint>) {
        let levels = if self.mesh.levels { Levels::Full } else { Levels::None };
        let place = |stencil: usize| {
            let home = Home { set: self.stencils[stencil].set(), map: None, parts: 1, width: 1 };
            Place { levels, home: Some(home), ..Place::CELLS }
        };
        let Showing { program, prints, stencils, .. } = Showing::of(&self.program, &place, is_wanted);
        let mut shown = MeshProgram { program, ..self.clone() };
        let mut made: Vec<(usize, usize)> = stencils.into_iter().map(|((of, _), number)| (number, of)).collect();
        made.sort_unstable();
        for (number, of) in made {
            let stencil = shown.program.stencils[number].clone();
            let writes = stencil.stores.iter().map(|_| Write { part: 0, how: How::Assign }).collect();
            let (mesh, over) = (self.mesh.clone(), self.stencils[of].over);
            shown.stencils.push(MeshStencil { stencil, mesh, over, writes }.verified("taking a print by itself"));
        }
        (shown, prints)
    }
}

impl<'a> Showing<'a> {
    fn of(program: &Program, place: &'a dyn Fn(usize) -> Place, is_wanted: &'a IsWanted<'a>) -> Self {
        let (program, prints, stencils) = (program.clone(), Vec::new(), BTreeMap::new());
        let mut own = Self { program, place, is_wanted, count: 0, prints, stencils };
        let actions = std::mem::take(&mut own.program.actions);
        own.program.actions = own.actions(actions);
        own
    }

    fn actions(&mut self, actions: Vec<Action>) -> Vec<Action> {
        let mut all = Vec::with_capacity(actions.len());
        for action in actions {
            match action {
                Action::Call(call) => {
                    for number in 0..self.program.stencils[call.stencil].prints.len() {
                        all.extend(self.print(&call, number).map(Action::Call));
                    }
                    all.push(Action::Call(call));
                }
                Action::Repeat(mut repeat) => {
                    repeat.actions = self.actions(repeat.actions);
                    all.push(Action::Repeat(repeat));
                }
                Action::Rename(_) | Action::Number(_) => all.push(action),
            }
        }
        all
    }

    /// The call that computes a print of another call, if it is wanted.
    fn print(&mut self, call: &Call, number: usize) -> Option<Call> {
        self.count += 1;
        if !(self.is_wanted)(self.count - 1) {
            return None;
        }
        let of = &self.program.stencils[call.stencil];
        let print = of.prints[number].clone();
        let (made, value) = of.of_print(number, (self.place)(call.stencil))?;
        let mut fields: Vec<FieldBinding> = Vec::with_capacity(made.fields.len());
        for id in of.seen_by_prints() {
            fields.push(FieldBinding { read: call.fields[id.index()].read, written: None });
        }
        let stencil = of.name.clone();
        let own = made.fields[value].clone();
        let variable = self.program.variables.add(Variable {
            name: own.name,
            original: None,
            doc: own.doc,
            role: None,
            is_shown: true,
            place: own.place,
            stored: own.stored,
            range: None,
            edges: Default::default(),
            span: own.span,
        });
        // What sweeps carry has no array.
        fields.resize(made.fields.len() - 1, FieldBinding::default());
        fields.push(FieldBinding { read: None, written: Some(variable) });
        let (label, computed_by) = (print.label, made.name.clone());
        self.prints.push(ShownPrint { variable, stencil, computed_by, label, span: print.span, call: call.span });
        let next = self.program.stencils.len();
        let place = *self.stencils.entry((call.stencil, number)).or_insert(next);
        if place == next {
            self.program.stencils.push(made);
        }
        Some(Call { stencil: place, fields, ..call.clone() })
    }
}
