//! From planned rows to instructions on slots.

use super::Shared;
use super::plan::{Item, Plan, Row, Target, Window};
use std::collections::HashMap;
use std::sync::Arc;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, FieldId, Handle, Kind, Node, NodeId, Path};
use stencilc_compiler::source::Span;

/// How to compute one level.
#[derive(Default)]
pub(super) struct Program<'a> {
    /// In order of execution.
    pub tasks: Vec<Task<'a>>,
    /// How many slots there are for rows of each [`Kind`].
    pub slots: [usize; 3],
    /// The open choices: in which task each is made, where it stands in the stencil, and in its source.
    pub choices: Vec<(usize, (Item, NodeId), Span)>,
}

/// One row and how to compute it.
pub(super) struct Task<'a> {
    pub window: Window,
    /// What to do, in order.
    pub instructions: Vec<Instruction<'a>>,
}

/// An operation on whole rows.
pub(super) enum Instruction<'a> {
    /// Converts an input.
    Load { from: Source, into: Slot },
    /// Of a whole plane, brings each column what another one has; that is -1 where there is none.
    Gather { from: Source, columns: Arc<[i32]>, into: Slot },
    /// Computes a node of as many operands as it has; the first is `of` some kind.
    Compute { node: &'a Node, of: Kind, operands: [Source; 3], into: Slot, choice: Option<usize> },
    /// Reads a field on a level that data says: that of the body, and so many further; beyond the field's levels, the nearest.
    ReadMoved { field: FieldId, level: i32, way: Way, by: Source, into: Slot },
    /// Writes to an output; if that has no horizontal axes, its one number.
    Store { from: Source, output: usize, horizontal: bool },
}

/// In which column something is read, from the cell's.
pub(super) enum Way {
    /// At offsets along i and j.
    Offset { i: i32, j: i32 },
    /// Of a whole plane, in the column that each has; that is -1 where there is none.
    Columns(Arc<[i32]>),
    /// The field has no columns.
    Nowhere,
}

/// Where an operand is.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A number, the same along i and j.
    Value(Value),
    /// An array as it is, at offsets from the row's first cell.
    Field { field: FieldId, level: usize, i: i32, j: i32 },
    /// A computed row from element `i` on.
    Slot { slot: Slot, i: i32, j: i32 },
}

/// Where a row is kept: row j at `first + j % depth`, among those of its kind.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub kind: Kind,
    first: usize,
    depth: i32,
}

impl Slot {
    /// A slot for one row.
    pub fn single(kind: Kind, first: usize) -> Self {
        Self { kind, first, depth: 1 }
    }
}

impl Slot {
    /// The number of the slot that holds row `j`.
    pub fn at(self, j: i32) -> usize {
        self.first + j.rem_euclid(self.depth) as usize
    }
}

impl<'a> Program<'a> {
    /// Of the rows of one level.
    pub fn new(shared: &'a Shared<'a>, plans: &[Plan]) -> Self {
        let (program, free) = (Program::default(), Default::default());
        let mut writer = Writer { shared, program, free, rows: HashMap::new() };
        let mut last_look: HashMap<Row, usize> = HashMap::new();
        for (index, plan) in plans.iter().enumerate() {
            last_look.extend(plan.targets().filter_map(Target::row).map(|row| (row, index)));
        }
        for (index, plan) in plans.iter().enumerate() {
            writer.write(plan);
            for row in plan.targets().filter_map(Target::row).filter(|row| last_look[row] == index) {
                writer.drop(row);
            }
        }
        writer.program
    }
}

/// Planes that are gathered for one instruction, and given back after it.
#[derive(Default)]
struct Gathered<'a> {
    instructions: Vec<Instruction<'a>>,
    slots: Vec<Slot>,
}

struct Writer<'a> {
    shared: &'a Shared<'a>,
    program: Program<'a>,
    /// Slots of each kind that hold nothing any more.
    free: [Vec<usize>; 3],
    rows: HashMap<Row, (Slot, Window)>,
}

impl<'a> Writer<'a> {
    fn write(&mut self, plan: &Plan) {
        let stencil = self.shared.job.stencil;
        let depth = plan.window.j[1] - plan.window.oldest + 1;
        let mut instructions = Vec::new();
        match plan.row.item {
            Item::Load(_) => {
                let into = self.keep(Kind::Real, depth);
                self.rows.insert(plan.row, (into, plan.window));
                let from = self.source(plan, &plan.root, &[], &mut Gathered::default());
                instructions.push(Instruction::Load { from, into });
            }
            Item::Def(def) => {
                let body = &stencil.defs[def].body;
                let into = self.keep(body.kind(), depth);
                self.rows.insert(plan.row, (into, plan.window));
                self.compute(plan, body, Some(into), &mut instructions);
            }
            Item::Store(output) => {
                let store = &stencil.stores[output];
                let from = self.compute(plan, &store.body, None, &mut instructions);
                let horizontal = stencil.fields[store.field].place.horizontal;
                instructions.push(Instruction::Store { from, output, horizontal });
            }
        }
        self.program.tasks.push(Task { window: plan.window, instructions });
    }

    /// Writes down the nodes of a body, the last `into` a slot if one is given. Returns where the value is.
    fn compute(
        &mut self,
        plan: &Plan,
        body: &'a Body,
        into: Option<Slot>,
        instructions: &mut Vec<Instruction<'a>>,
    ) -> Source {
        let mut last_use = vec![0; body.len()];
        for (index, (_, operands)) in plan.nodes.iter().enumerate() {
            operands.iter().filter_map(Target::node).for_each(|node| last_use[node.index()] = index);
        }
        let mut slots: Vec<Option<Slot>> = vec![None; body.len()];
        for (index, (id, targets)) in plan.nodes.iter().enumerate() {
            let node = &body[*id];
            let mut operands = [Source::Value(Value::Bool(false)); 3];
            let mut gathered = Gathered::default();
            for (operand, target) in operands.iter_mut().zip(targets) {
                *operand = self.source(plan, target, &slots, &mut gathered);
            }
            instructions.append(&mut gathered.instructions);
            let last = index + 1 == plan.nodes.len();
            let into = into.filter(|_| last).unwrap_or_else(|| self.borrow(body.kind_of(*id)));
            slots[id.index()] = Some(into);
            if let Node::Read { field, path, .. } = node {
                let (field, level, by) = (*field, plan.row.level.saturating_add(path.levels()), operands[0]);
                instructions.push(Instruction::ReadMoved { field, level, way: self.way(field, path), by, into });
            } else {
                let choice = matches!(node, Node::Choose { .. }).then_some(self.program.choices.len());
                let task = self.program.tasks.len();
                self.program.choices.extend(choice.map(|_| (task, (plan.row.item, *id), body.span_of(*id))));
                let of = body.kind_of(node.operands()[0]);
                instructions.push(Instruction::Compute { node, of, operands, into, choice });
            }
            gathered.slots.into_iter().for_each(|slot| self.give_back(Some(slot)));
            for node in targets.iter().filter_map(Target::node).filter(|node| last_use[node.index()] == index) {
                // Taken, since a node may be several operands.
                self.give_back(slots[node.index()].take());
            }
        }
        let mut gathered = Gathered::default();
        let value = self.source(plan, &plan.root, &slots, &mut gathered);
        instructions.append(&mut gathered.instructions);
        gathered.slots.into_iter().for_each(|slot| self.give_back(Some(slot)));
        if into.is_none() {
            self.give_back(plan.root.node().and_then(|node| slots[node.index()]));
        }
        value
    }

    fn source(&mut self, plan: &Plan, target: &Target, slots: &[Option<Slot>], gathered: &mut Gathered<'a>) -> Source {
        let stencil = self.shared.job.stencil;
        match target {
            Target::Value(value) => Source::Value(*value),
            Target::Field(field, level, path) => {
                let (field, level) = (*field, *level as usize);
                let at = |i: i32, j: i32| Source::Field { field, level, i, j };
                self.reached(path, stencil.fields[field].stored.kind(), at, gathered)
            }
            Target::Row(row, path) => {
                let (slot, window) = self.rows[row];
                let left = plan.window.i[0] - window.i[0];
                self.reached(path, slot.kind, |i, j| Source::Slot { slot, i: left + i, j }, gathered)
            }
            Target::Node(node) => Source::Slot { slot: slots[node.index()].expect("operands come first"), i: 0, j: 0 },
        }
    }

    /// In which columns a field is read at the end of a path.
    fn way(&self, field: FieldId, path: &Path) -> Way {
        match (&self.shared.walks, self.shared.job.stencil.fields[field].place.horizontal) {
            (_, false) => Way::Nowhere,
            (Some(walks), true) => Way::Columns(walks.along(&path.clone().without_levels())),
            (None, true) => {
                let offset = path.offset();
                Way::Offset { i: offset.i, j: offset.j }
            }
        }
    }

    /// What lies at the end of a path: a shifted row where steps commute, else a plane that is gathered along it.
    fn reached(
        &mut self,
        path: &Path,
        kind: Kind,
        at: impl Fn(i32, i32) -> Source,
        gathered: &mut Gathered<'a>,
    ) -> Source {
        match &self.shared.walks {
            Some(walks) if !path.is_here() => {
                let into = self.borrow(kind);
                gathered.slots.push(into);
                gathered.instructions.push(Instruction::Gather { from: at(0, 0), columns: walks.along(path), into });
                Source::Slot { slot: into, i: 0, j: 0 }
            }
            _ => {
                let offset = path.offset();
                at(offset.i, offset.j)
            }
        }
    }

    /// Nobody looks at a row any more. Those of which several are kept stay, for they are looked at in later rounds.
    fn drop(&mut self, row: Row) {
        if let Some((slot, _)) = self.rows.get(&row).filter(|(slot, _)| slot.depth == 1) {
            let slot = *slot;
            self.rows.remove(&row);
            self.give_back(Some(slot));
        }
    }

    /// Slots for the last `depth` rows of something.
    fn keep(&mut self, kind: Kind, depth: i32) -> Slot {
        if depth == 1 {
            return self.borrow(kind);
        }
        self.fresh(kind, depth)
    }

    fn fresh(&mut self, kind: Kind, depth: i32) -> Slot {
        let count = &mut self.program.slots[kind as usize];
        *count += depth as usize;
        Slot { kind, first: *count - depth as usize, depth }
    }

    /// A slot for one row, until it is given back.
    fn borrow(&mut self, kind: Kind) -> Slot {
        match self.free[kind as usize].pop() {
            Some(first) => Slot { kind, first, depth: 1 },
            None => self.fresh(kind, 1),
        }
    }

    fn give_back(&mut self, slot: Option<Slot>) {
        if let Some(slot) = slot {
            self.free[slot.kind as usize].push(slot.first);
        }
    }
}
