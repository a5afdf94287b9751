//! From planned rows to instructions on slots.

use super::Job;
use super::plan::{Item, Plan, Row, Target, Window, plan};
use std::collections::HashMap;
use stencilc_compiler::analysis::levels::Known;
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, FieldId, Handle, Kind, Node, NodeId, Offset};
use stencilc_compiler::source::Span;

/// How to compute one level.
#[derive(Default)]
pub(super) struct Program<'a> {
    /// In order of execution.
    pub tasks: Vec<Task<'a>>,
    /// How many slots there are for rows of each [`Kind`].
    pub slots: [usize; 3],
    /// The open choices: where each stands in the stencil, and in its source.
    pub choices: Vec<((Item, NodeId), Span)>,
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
    /// Computes a node of as many operands as it has; the first is `of` some kind.
    Compute { node: &'a Node, of: Kind, operands: [Source; 3], into: Slot, choice: Option<usize> },
    /// Writes to an output; if that has no horizontal axes, its one number.
    Store { from: Source, output: usize, horizontal: bool },
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
    /// The number of the slot that holds row `j`.
    pub fn at(self, j: i32) -> usize {
        self.first + j.rem_euclid(self.depth) as usize
    }
}

impl<'a> Program<'a> {
    /// For a level of the region.
    pub fn new(job: &'a Job<'a>, known: &'a Known<'a>, level: usize) -> Self {
        let (program, free) = (Program::default(), Default::default());
        let mut writer = Writer { job, program, free, rows: HashMap::new() };
        plan(job, known, level).iter().for_each(|plan| writer.write(plan));
        writer.program
    }
}

struct Writer<'a> {
    job: &'a Job<'a>,
    program: Program<'a>,
    /// Slots of each kind that hold nothing any more.
    free: [Vec<usize>; 3],
    rows: HashMap<Row, (Slot, Window)>,
}

impl<'a> Writer<'a> {
    fn write(&mut self, plan: &Plan) {
        let stencil = self.job.stencil;
        let depth = plan.window.j[1] - plan.window.oldest + 1;
        let mut instructions = Vec::new();
        match plan.row.item {
            Item::Load(_) => {
                let into = self.keep(Kind::Real, depth);
                self.rows.insert(plan.row, (into, plan.window));
                instructions.push(Instruction::Load { from: self.source(plan, plan.root, &[]), into });
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
            for (operand, &target) in operands.iter_mut().zip(targets) {
                *operand = self.source(plan, target, &slots);
            }
            let last = index + 1 == plan.nodes.len();
            let into = into.filter(|_| last).unwrap_or_else(|| self.borrow(body.kind_of(*id)));
            slots[id.index()] = Some(into);
            let choice = matches!(node, Node::Choose { .. }).then_some(self.program.choices.len());
            self.program.choices.extend(choice.map(|_| ((plan.row.item, *id), body.span_of(*id))));
            let of = body.kind_of(node.operands()[0]);
            instructions.push(Instruction::Compute { node, of, operands, into, choice });
            for node in targets.iter().filter_map(Target::node).filter(|node| last_use[node.index()] == index) {
                // Taken, since a node may be several operands.
                self.give_back(slots[node.index()].take());
            }
        }
        let value = self.source(plan, plan.root, &slots);
        if into.is_none() {
            self.give_back(plan.root.node().and_then(|node| slots[node.index()]));
        }
        value
    }

    fn source(&self, plan: &Plan, target: Target, slots: &[Option<Slot>]) -> Source {
        match target {
            Target::Value(value) => Source::Value(value),
            Target::Field(field, Offset { i, j, k }) => Source::Field { field, level: k as usize, i, j },
            Target::Row(row, offset) => {
                let (slot, window) = self.rows[&row];
                Source::Slot { slot, i: plan.window.i[0] + offset.i - window.i[0], j: offset.j }
            }
            Target::Node(node) => Source::Slot { slot: slots[node.index()].expect("operands come first"), i: 0, j: 0 },
        }
    }

    /// Slots for the last `depth` rows of something.
    fn keep(&mut self, kind: Kind, depth: i32) -> Slot {
        let count = &mut self.program.slots[kind as usize];
        *count += depth as usize;
        Slot { kind, first: *count - depth as usize, depth }
    }

    /// A slot for one row, until it is given back.
    fn borrow(&mut self, kind: Kind) -> Slot {
        match self.free[kind as usize].pop() {
            Some(first) => Slot { kind, first, depth: 1 },
            None => self.keep(kind, 1),
        }
    }

    fn give_back(&mut self, slot: Option<Slot>) {
        if let Some(slot) = slot {
            self.free[slot.kind as usize].push(slot.first);
        }
    }
}
