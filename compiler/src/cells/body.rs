//! What a kernel computes of a cell: values in the order of the schedule, then the outputs.

use super::checked::{self, Site};
use super::{Ahead, Elements, Frame};
use crate::access::Cell;
use crate::ir::program::GridAxis;
use crate::ir::{Body, DefId, FieldId, Handle, Levels, Node, NodeId, Path, Relation, Role, Store};
use crate::kernel::build::{BlockKey, Builder, Computing, Making, Term};
use crate::kernel::scalar::Scalar;
use crate::kernel::{Math, Operand, Routine, Type, ValueId, VariableId};
use crate::names::{Identifier, name_at};
use crate::plan::Plan;
use crate::plan::phases::Phase;
use crate::plan::schedule::{BlockId, Item};
use std::collections::BTreeMap;

/// A branch with more operations than this is written as a statement.
const INLINE: usize = 8;

/// Writes what is done on one level.
pub(super) struct Writer<'a> {
    frame: &'a Frame<'a>,
    phase: &'a Phase,
    own: &'a mut Builder,
    /// Of a checked kernel: where it touches fields.
    sites: &'a mut Vec<Site>,
    cell: Cell,
    /// What is loaded already: by a sweep for several levels, or many elements at a time.
    loaded: Elements,
    /// The values written so far.
    values: BTreeMap<(DefId, Path), ValueId>,
    /// The blocks of the schedule.
    blocks: Vec<BlockKey>,
    /// Of each field whose elements are being written as one: the index of the first, and the values so far.
    run: BTreeMap<FieldId, (ValueId, Vec<ValueId>)>,
    /// Whether each node of the body at hand depends on a field.
    reads: Vec<bool>,
    /// Whether each definition does.
    reading: Vec<bool>,
}

/// The elements of fields that a sweep knows early enough to load them for several levels at once: those of its own column.
pub(super) fn loaded_ahead(plan: &Plan, phase: &Phase) -> Ahead {
    let mut ahead = Ahead::new();
    if phase.direction.is_none() || plan.choices.checked {
        return ahead;
    }
    for (body, Item { at, contexts, .. }) in phase.bodies() {
        for ((_, node), context) in body.iter().zip(contexts) {
            let (Node::Read { field, path, by: None, .. }, Some(_)) = (node, context) else { continue };
            let path = plan.path_classes.join(at, path);
            let own = &plan.stencil.fields[*field];
            let is_own = path.clone().without_levels().is_here() && own.place.levels != Levels::None;
            if is_own && own.role != Role::Carried {
                ahead.insert((*field, path));
            }
        }
    }
    ahead
}

/// An element that a sweep loads ahead: whether or not it is used, so not from a level that does not exist.
pub(super) fn element_ahead(frame: &Frame, own: &mut Builder, cell: Cell, field: FieldId, at: &Path) -> ValueId {
    let index = frame.index(own, cell, field, at, false);
    let index = frame.element(own, field, false, index);
    own.load(frame.inputs[&field], index)
}

/// Lets an element that a sweep will load come to the cache.
pub(super) fn prefetch(frame: &Frame, own: &mut Builder, cell: Cell, field: FieldId, at: &Path) {
    let index = frame.index(own, cell, field, at, false);
    let index = frame.element(own, field, false, index);
    own.perform(Routine::Prefetch, vec![Operand::Place(frame.inputs[&field], index)]);
}

impl Frame<'_> {
    /// Where a field's element is that has an index among its own.
    fn element(&self, own: &mut Builder, field: FieldId, written: bool, index: ValueId) -> ValueId {
        let Plan { choices, slots, .. } = self.plan;
        choices.fields.element(own, slots[&(field, written)], index)
    }
}

impl<'a> Writer<'a> {
    /// Of a phase, on the level of a cell, of which something may be loaded already.
    pub(super) fn new(
        frame: &'a Frame<'a>,
        phase: &'a Phase,
        own: &'a mut Builder,
        sites: &'a mut Vec<Site>,
        cell: Cell,
        loaded: Elements,
    ) -> Self {
        let mut blocks = vec![own.current()];
        for number in 1..phase.schedule.blocks() {
            let parent = phase.schedule.parent(number).index();
            let block = own.within(blocks[parent], |own| own.open());
            blocks.push(block);
        }
        Self {
            frame,
            phase,
            own,
            sites,
            cell,
            loaded,
            values: BTreeMap::new(),
            blocks,
            run: BTreeMap::new(),
            reads: Vec::new(),
            reading: Vec::new(),
        }
    }

    /// Values, then outputs, then what the levels after this one need.
    pub(super) fn write(mut self) {
        let phase = self.phase;
        for (_, def) in phase.stencil.defs.iter() {
            let reads = reading(&def.body, &self.reading);
            self.reading.push(reads.last().is_some_and(|&reads| reads));
        }
        for ((def, at), item) in &phase.schedule.values {
            self.value(*def, at, item);
        }
        let is_carried = |store: &Store| phase.stencil.fields[store.field].role == Role::Carried;
        for (store, item) in phase.stores().filter(|(store, _)| !is_carried(store)) {
            self.store(store.field, &store.body, item);
        }
        let mut carried = Vec::new();
        for (store, item) in phase.stores().filter(|(store, _)| is_carried(store)) {
            carried.push((store.field, self.body(&store.body, item, None)));
        }
        self.frame.carried.keep(self.own, &carried, self.cell.k);
    }

    fn scalar(&self, math: Math) -> Scalar {
        Scalar { precision: self.frame.plan.choices.precision, math }
    }

    /// A value of a sweep, some levels away.
    fn carried(&mut self, field: FieldId, shift: i32, sure: bool) -> ValueId {
        let phase = self.phase;
        let store = phase.stencil.stores.iter().find(|store| store.field == field);
        if let (Some(store), Some(direction)) = (store, phase.direction) {
            if shift == 0 {
                // What it stores is a name or a number.
                let (body, root) = (&store.body, store.body.root());
                return self.node(body, root, &Path::default(), true, &[]);
            }
            if let Some(value) = self.frame.carried.before(self.own, field, direction.before(shift)) {
                return value;
            }
        }
        let mut by = Term::from(shift);
        if shift != 0 && !sure {
            let levels = self.frame.plan.stencil.fields[field].place.levels;
            by = self.frame.level_exists(self.own, self.cell, shift, levels).picks(by, 0);
        }
        let level = self.own.term(self.cell.k.plus(by));
        // Planned: whatever is read here is kept.
        self.frame.carried.at(self.own, field, level).unwrap_or(self.cell.k)
    }

    /// `const double lap_right = ...;`
    fn value(&mut self, def: DefId, at: &Path, item: &Item) {
        let declared = &self.frame.plan.stencil.defs[def];
        let wish = name_at(&declared.name, at);
        let value = self.body(&declared.body, item, Some(&wish));
        self.values.insert((def, at.clone()), value);
    }

    fn store(&mut self, field: FieldId, body: &Body, item: &Item) {
        let (frame, plan) = (self.frame, self.frame.plan);
        let declared = &plan.stencil.fields[field];
        // Columns, and levels, have the value of a field on fewer axes together.
        let (column, levels) = (item.at.clone().without_levels(), item.at.levels());
        let has_levels = declared.place.levels != Levels::None;
        if (!declared.place.horizontal && !column.is_here()) || (!has_levels && levels != 0) {
            return;
        }
        let value = self.body(body, item, None);
        let value = self.scalar(plan.choices.math).stored(self.own, value, declared.stored);
        let index = frame.index(self.own, self.cell, field, &item.at, true);
        let target = frame.outputs[&field];
        if let Some(width) = plan.run_width_of(field) {
            let (_, values) = self.run.entry(field).or_insert((index, Vec::new()));
            values.push(value);
            if values.len() == width as usize
                && let Some((start, values)) = self.run.remove(&field)
            {
                let run = self.own.lanes(values);
                self.own.store(target, start, run);
            }
            return;
        }
        // A field on fewer axes is written by one thread of those that compute the same.
        let first = frame.coordinates.first;
        let is_first_level = self.own.compare(Relation::Eq, self.cell.k, frame.sizes.levels[0]);
        let one_thread = match (declared.place.horizontal, declared.place.levels) {
            (true, Levels::Full | Levels::Interfaces) => None,
            (true, Levels::None) => Some(is_first_level),
            (false, Levels::Full | Levels::Interfaces) => Some(first),
            (false, Levels::None) => Some(self.own.and(first, is_first_level)),
        };
        let site = Site { field, path: item.at.clone(), written: true, is_moved: false };
        self.own.when_if(one_thread, |own| {
            let element = frame.element(own, field, true, index);
            let condition = checked::condition(frame, own, self.cell, self.sites, site, (index, None));
            own.when_if(condition, |own| own.store(target, element, value));
        });
    }

    /// Writes what a body needs into the blocks of its nodes. Returns its value, which is called as wished.
    fn body(&mut self, body: &Body, item: &Item, wish: Option<&str>) -> ValueId {
        self.reads = reading(body, &self.reading);
        let name = wish.map(|wish| self.own.declared(wish));
        let statements = self.statements(body, item);
        let targets = self.targets(body, item, &statements, name.clone());
        let mut values: Vec<ValueId> = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let value = match (item.contexts[id.index()], &targets[id.index()]) {
                // Not evaluated anywhere.
                (None, _) => self.cell.k,
                (Some(context), Some(target)) => {
                    let Node::Choose { condition, yes, no } = node else { continue };
                    let block = self.blocks[context.block.index()];
                    let (yes_block, no_block) = item.branches[&id];
                    let branches = [(yes_block, *yes), (no_block, *no)];
                    for (branch, value) in branches {
                        // A choice that shares the variable has assigned it already.
                        let has_assigned =
                            targets[value.index()].as_ref().is_some_and(|inner| inner.variable == target.variable);
                        if !has_assigned {
                            let branch = self.blocks[branch.index()];
                            self.own.within(branch, |own| own.assign(target.variable, values[value.index()]));
                        }
                    }
                    let [yes, no] = [yes_block, no_block].map(|branch: BlockId| self.blocks[branch.index()]);
                    let condition = values[condition.index()];
                    self.own.within(block, |own| {
                        if !target.is_inherited {
                            own.declare(target.variable);
                        }
                        own.branch(condition, yes, no);
                        own.get(target.variable)
                    })
                }
                (Some(context), None) => {
                    let block = self.blocks[context.block.index()];
                    let before = self.own.enter(block);
                    let value = self.node(body, id, &item.at, context.sure, &values);
                    self.own.enter(before);
                    value
                }
            };
            values.push(value);
        }
        let root = body.root();
        let value = values[root.index()];
        match name {
            Some(name) if targets[root.index()].is_none() => {
                let block = self.blocks[item.block().index()];
                self.own.within(block, |own| own.named(name, value))
            }
            _ => value,
        }
    }

    /// The choices that are written as statements: those with values of their own in a branch, or with large branches.
    fn statements(&self, body: &Body, item: &Item) -> Vec<bool> {
        let mut sizes = vec![1usize; body.len()];
        let mut statements = vec![false; body.len()];
        for (id, node) in body.iter() {
            sizes[id.index()] += node.operands().iter().map(|operand| sizes[operand.index()]).sum::<usize>();
            if let (Node::Choose { yes, no, .. }, Some((yes_block, no_block))) = (node, item.branches.get(&id)) {
                let filled = [yes_block, no_block].iter().any(|block| !self.own.is_empty(self.blocks[block.index()]));
                let large = [yes, no].iter().any(|branch| sizes[branch.index()] > INLINE);
                let nested = [yes, no].iter().any(|branch| {
                    // Whatever is nested deeper makes its branch large or filled in its turn.
                    statements[branch.index()]
                });
                statements[id.index()] =
                    filled || large || nested || self.holds_statement(body, *yes, *no, &statements);
            }
        }
        statements
    }

    /// Whether a branch's expression holds a choice that is a statement.
    fn holds_statement(&self, body: &Body, yes: NodeId, no: NodeId, statements: &[bool]) -> bool {
        let mut pending = vec![yes, no];
        let mut visited = 0;
        while let Some(node) = pending.pop() {
            visited += 1;
            // Larger branches are statements anyway.
            if statements[node.index()] || visited > 4 * INLINE {
                return true;
            }
            pending.extend(body[node].operands());
        }
        false
    }

    /// The variables of the choices that are statements. A choice that is a branch of another shares its variable, which
    /// makes a chain of `else if`.
    fn targets(
        &mut self,
        body: &Body,
        item: &Item,
        statements: &[bool],
        name: Option<Identifier>,
    ) -> Vec<Option<Target>> {
        let mut targets: Vec<Option<Target>> = vec![None; body.len()];
        let mut uses = vec![0usize; body.len()];
        for (_, node) in body.iter() {
            node.operands().iter().for_each(|operand| uses[operand.index()] += 1);
        }
        for (id, node) in body.iter().rev() {
            if !statements[id.index()] || item.contexts[id.index()].is_none() {
                continue;
            }
            let target = match targets[id.index()] {
                Some(target) => target,
                None => {
                    let kind = Type::computing(body.kind_of(id), self.frame.plan.choices.precision);
                    let own = match &name {
                        Some(name) if id == body.root() => name.clone(),
                        Some(name) => self.own.declared(name),
                        None => self.own.declared("chosen"),
                    };
                    Target { variable: self.own.undeclared(own, kind), is_inherited: false }
                }
            };
            targets[id.index()] = Some(target);
            if let Node::Choose { yes, no, .. } = node {
                for branch in [yes, no] {
                    if statements[branch.index()] && uses[branch.index()] == 1 {
                        targets[branch.index()] = Some(Target { is_inherited: true, ..target });
                    }
                }
            }
        }
        targets
    }

    /// The value of a node whose operands' values are known.
    fn node(&mut self, body: &Body, id: NodeId, at: &Path, sure: bool, values: &[ValueId]) -> ValueId {
        let frame = self.frame;
        match &body[id] {
            Node::Param(param) => frame.params[param],
            Node::Level => self.own.term(self.cell.k.plus(at.levels())),
            Node::Count(GridAxis::K) => frame.sizes.level_count,
            Node::Read { field, path, by, .. } => {
                let at = frame.plan.path_classes.join(at, path);
                match by {
                    None => self.read(*field, &at, sure),
                    Some(by) => self.read_moved(*field, &at, values[by.index()]),
                }
            }
            Node::Use { def, path } => self.values[&(*def, frame.plan.path_classes.join(at, path))],
            _ => {
                // What decides levels is the language's own, or a kernel might look for levels that do not exist.
                let reads = self.reads.get(id.index()).is_some_and(|&reads| reads);
                let scalar = self.scalar(if reads { frame.plan.choices.math } else { Math::Own });
                let value = scalar.value(self.own, body, id, &|operand| values[operand.index()]);
                value.unwrap_or(self.cell.k)
            }
        }
    }

    /// `phi[right + plane]`, converted to what is computed in.
    fn read(&mut self, field: FieldId, at: &Path, sure: bool) -> ValueId {
        let (frame, plan) = (self.frame, self.frame.plan);
        if plan.stencil.fields[field].role == Role::Carried {
            return self.carried(field, at.levels(), sure);
        }
        let key = (field, at.clone());
        let element = self.loaded.get(&key).copied().unwrap_or_else(|| {
            let index = frame.index(self.own, self.cell, field, at, sure);
            let element = frame.element(self.own, field, false, index);
            let loaded = self.own.load(frame.inputs[&field], element);
            let site = Site { field, path: at.clone(), written: false, is_moved: false };
            match checked::condition(frame, self.own, self.cell, self.sites, site, (index, None)) {
                None => loaded,
                Some(condition) => self.own.term(condition.picks(loaded, 0)),
            }
        });
        self.scalar(plan.choices.math).read(self.own, element, plan.stencil.fields[field].stored)
    }

    /// The same on a level that is data: whatever a strategy loads by itself, it is none of that.
    fn read_moved(&mut self, field: FieldId, at: &Path, by: ValueId) -> ValueId {
        let (frame, plan) = (self.frame, self.frame.plan);
        let own = &plan.stencil.fields[field];
        let [index, level] = frame.index_moved(self.own, self.cell, field, at, by);
        let element = frame.element(self.own, field, false, index);
        let mut loaded = self.own.load(frame.inputs[&field], element);
        let site = Site { field, path: at.clone(), written: false, is_moved: true };
        if let Some(is_right) = checked::condition(frame, self.own, self.cell, self.sites, site, (index, Some(level))) {
            loaded = self.own.term(is_right.picks(loaded, 0));
        }
        self.scalar(plan.choices.math).read(self.own, loaded, own.stored)
    }
}

/// Whether each node of a body depends on a field, given whether definitions do.
fn reading(body: &Body, defs: &[bool]) -> Vec<bool> {
    let mut reads: Vec<bool> = Vec::with_capacity(body.len());
    for (_, node) in body.iter() {
        let own = match node {
            Node::Read { .. } => true,
            Node::Use { def, .. } => defs[def.index()],
            _ => node.operands().iter().any(|operand| reads[operand.index()]),
        };
        reads.push(own);
    }
    reads
}

/// The variable of a choice.
#[derive(Clone, Copy, Debug)]
struct Target {
    variable: VariableId,
    /// Whether it belongs to the choice around it.
    is_inherited: bool,
}
