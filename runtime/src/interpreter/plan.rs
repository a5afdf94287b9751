//! Which rows a level needs, and where.

use super::Shared;
use super::alike::Values;
use crate::Data;
use std::collections::{BTreeMap, HashMap};
use stencilc_compiler::ir::scalar::Value;
use stencilc_compiler::ir::{Body, DefId, FieldId, Handle, Levels, Node, NodeId, Offset, Path, Precision};

/// What is computed row after row, on a level of the grid. In this order each comes after what it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Row {
    pub item: Item,
    pub level: i32,
}

/// What rows are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Item {
    /// An input, converted to the precision.
    Load(FieldId),
    /// A definition.
    Def(DefId),
    /// An output: which of the stencil's stores.
    Store(usize),
}

/// Where a row is wanted, as offsets from the cells of the region. Where steps do not commute, a row is a whole plane, and
/// its window is that of the region.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// The first and the last along i.
    pub i: [i32; 2],
    /// The first and the last along j. When the region's row j is computed, so is `j + self.j[1]` of this one.
    pub j: [i32; 2],
    /// The row furthest back that is still looked at then.
    pub oldest: i32,
}

/// What a node comes to once everything that the level decides is decided. Paths have no levels.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// A number, the same along i and j.
    Value(Value),
    /// An array as it is, on a level.
    Field(FieldId, i32, Path),
    /// A computed row.
    Row(Row, Path),
    /// A node of the same body.
    Node(NodeId),
}

/// How to compute a row.
pub(super) struct Plan {
    pub row: Row,
    pub window: Window,
    /// The nodes to compute, operands first, and what their operands are.
    pub nodes: Vec<(NodeId, Vec<Target>)>,
    /// What the value is.
    pub root: Target,
}

/// Every row that a level of the region needs, in order of execution.
pub(super) fn plan<'a>(shared: &'a Shared<'a>, level: usize) -> Vec<Plan> {
    let job = shared.job;
    let mut resolver = Resolver { shared, level, values: HashMap::new() };
    let mut wanted: BTreeMap<Row, Window> = BTreeMap::new();
    for (index, store) in job.stencil.stores.iter().enumerate() {
        // An output that is the same on all levels is computed on the first.
        if level == job.region.k.start || job.stencil.fields[store.field].place.levels != Levels::None {
            wanted.insert(Row { item: Item::Store(index), level: level as i32 }, Window::default());
        }
    }
    let mut plans = Vec::new();
    // Backwards, so that a row's window is complete when its turn comes.
    while let Some((row, window)) = wanted.pop_last() {
        let mut want = |target: &Target, needed: &mut [bool]| match target {
            Target::Node(node) => needed[node.index()] = true,
            Target::Row(row, path) => {
                let seen = if shared.walks.is_some() { window } else { window.moved(path.offset()) };
                wanted.entry(*row).and_modify(|window| *window = window.union(seen)).or_insert(seen);
            }
            Target::Value(_) | Target::Field(..) => {}
        };
        let mut nodes = Vec::new();
        let root = match row.item {
            Item::Load(field) => Target::Field(field, row.level, Path::default()),
            Item::Def(_) | Item::Store(_) => {
                let body = resolver.body(row);
                let mut needed = vec![false; body.len()];
                let root = resolver.target(row, body.root());
                want(&root, &mut needed);
                for (id, node) in body.iter().rev() {
                    if needed[id.index()] {
                        let operands = node.operands().into_iter().map(|operand| resolver.target(row, operand));
                        let operands: Vec<Target> = operands.collect();
                        operands.iter().for_each(|operand| want(operand, &mut needed));
                        nodes.push((id, operands));
                    }
                }
                nodes.reverse();
                root
            }
        };
        plans.push(Plan { row, window, nodes, root });
    }
    plans.reverse();
    plans
}

struct Resolver<'a> {
    shared: &'a Shared<'a>,
    /// The level of the region.
    level: usize,
    values: HashMap<Row, Values>,
}

impl<'a> Resolver<'a> {
    /// Follows conditions that the level decides, reads, and uses of definitions that are mere aliases.
    fn target(&mut self, from: Row, mut node: NodeId) -> Target {
        let (mut row, mut path) = (from, Path::default());
        loop {
            let (body, values) = (self.body(row), self.values(row));
            let known = |node: NodeId| values[node.index()];
            if let Some(value) = known(node) {
                return Target::Value(value);
            }
            match &body[node] {
                Node::Choose { condition, yes, no } if known(*condition).is_some() => {
                    node = if known(*condition) == Some(Value::Bool(true)) { *yes } else { *no };
                }
                // A known side that does not decide leaves the other.
                Node::And(a, b) | Node::Or(a, b) if known(*a).is_some() => node = *b,
                Node::And(a, b) | Node::Or(a, b) if known(*b).is_some() => node = *a,
                Node::Read { field, path: on, by: None, .. } => {
                    return self.read(*field, row.level + on.levels(), path.then(on).without_levels());
                }
                Node::Use { def, path: on } => {
                    row = Row { item: Item::Def(*def), level: row.level + on.levels() };
                    // The value of others is the same everywhere, also where the path leads outside the grid.
                    if self.shared.varying[def.index()] {
                        path = path.then(on).without_levels();
                    }
                    node = self.body(row).root();
                }
                _ if row == from => return Target::Node(node),
                _ => return Target::Row(row, path),
            }
        }
    }

    fn read(&self, field: FieldId, level: i32, path: Path) -> Target {
        let job = self.shared.job;
        let place = job.stencil.fields[field].place;
        let level = if place.levels == Levels::None { 0 } else { level };
        match (job.inputs[field.index()], job.precision) {
            (Some(data), precision) if !place.horizontal => {
                Target::Value(element(data, level as usize).rounded(precision))
            }
            (Some(Data::F32(_)), Precision::F64) | (Some(Data::F64(_)), Precision::F32) => {
                Target::Row(Row { item: Item::Load(field), level }, path)
            }
            _ => Target::Field(field, level, path),
        }
    }

    fn body(&self, row: Row) -> &'a Body {
        match row.item {
            Item::Def(def) => &self.shared.job.stencil.defs[def].body,
            Item::Store(index) => &self.shared.job.stencil.stores[index].body,
            Item::Load(_) => unreachable!("inputs have no body"),
        }
    }

    fn values(&mut self, row: Row) -> Values {
        let (body, level, Shared { known, alike, .. }) = (self.body(row), self.level, self.shared);
        self.values.entry(row).or_insert_with(|| alike.values(known, body, row, level)).clone()
    }
}

impl Plan {
    /// All that is looked at: operands, then the value.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.nodes.iter().flat_map(|(_, operands)| operands).chain([&self.root])
    }
}

impl Target {
    /// The node, if it is one.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Target::Node(node) => Some(*node),
            Target::Value(_) | Target::Field(..) | Target::Row(..) => None,
        }
    }

    /// The row, if it is one.
    pub fn row(&self) -> Option<Row> {
        match self {
            Target::Row(row, _) => Some(*row),
            Target::Value(_) | Target::Field(..) | Target::Node(_) => None,
        }
    }
}

impl Window {
    /// The window of what is looked at from here.
    fn moved(&self, by: Offset) -> Window {
        let along = |[low, high]: [i32; 2], by: i32| [low + by, high + by];
        Window { i: along(self.i, by.i), j: along(self.j, by.j), oldest: self.j[1] + by.j }
    }

    fn union(&self, other: Window) -> Window {
        let along = |a: [i32; 2], b: [i32; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        Window { i: along(self.i, other.i), j: along(self.j, other.j), oldest: self.oldest.min(other.oldest) }
    }
}

fn element(data: &Data, index: usize) -> Value {
    match data {
        Data::F32(data) => Value::Real(data[index].into()),
        Data::F64(data) => Value::Real(data[index]),
        Data::I32(data) => Value::Int(data[index]),
        Data::Bool(data) => Value::Bool(data[index] != 0),
    }
}
