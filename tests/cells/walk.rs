//! The value of an expression at one cell of a grid without rows, by plain recursion: every path is walked where it is
//! met, cell by cell, and nothing is planned, shared between levels or computed in rows.

use std::collections::{BTreeSet, HashMap};
use stencilc_compiler::grid::Adjacency;
use stencilc_compiler::ir::program::GridAxis;
use stencilc_compiler::ir::scalar::{Value, apply};
use stencilc_compiler::ir::{Axis, Body, DefId, Handle, Kind, Levels, Node, NodeId, Path, Precision, Stencil, varying};
use stencilc_runtime::Data;

/// What is evaluated.
pub struct Walker<'a> {
    pub stencil: &'a Stencil,
    pub precision: Precision,
    pub grid: &'a Adjacency,
    pub nk: usize,
    pub params: &'a [Value],
    /// By field.
    pub inputs: &'a [Option<Data>],
    /// Values of definitions found so far, by cell and level.
    pub found: HashMap<(DefId, Option<usize>, i64), Value>,
}

/// Where the paths of a body lead from a cell: the reads of horizontal fields, through whatever definitions.
pub fn paths(stencil: &Stencil, body: &Body, found: &mut HashMap<DefId, BTreeSet<Path>>) -> BTreeSet<Path> {
    let varying = varying(stencil);
    let mut all = BTreeSet::new();
    for (_, node) in body.iter() {
        match node {
            Node::Read { field, path, .. } if stencil.fields[*field].place.horizontal => {
                all.insert(path.clone().without_levels());
            }
            Node::Use { def, path } if varying[def.index()] => {
                if !found.contains_key(def) {
                    let own = paths(stencil, &stencil.defs[*def].body, found);
                    found.insert(*def, own);
                }
                all.extend(found[def].iter().map(|next| path.then(next).without_levels()));
            }
            _ => {}
        }
    }
    all
}

/// The cell at the end of a path.
pub fn walk(grid: &Adjacency, from: usize, path: &Path) -> Option<usize> {
    let [left, right, top, bottom] = grid.neighbours();
    let mut cell = from;
    for step in path.steps() {
        let list = match (step.axis, step.by > 0) {
            (Axis::I, false) => left,
            (Axis::I, true) => right,
            (Axis::J, false) => top,
            (Axis::J, true) => bottom,
        };
        for _ in 0..step.by.abs() {
            if list[cell] < 0 {
                return None;
            }
            cell = list[cell] as usize;
        }
    }
    Some(cell)
}

impl Walker<'_> {
    /// The value of a body at a cell; the cell is unknown where only what has no horizontal axes is needed.
    pub fn value(&mut self, body: &Body, node: NodeId, cell: Option<usize>, level: i64) -> Value {
        match &body[node] {
            Node::Param(param) => self.params[param.index()].rounded(self.precision),
            Node::Level => Value::Int(level as i32),
            Node::Count(GridAxis::K) => Value::Int(self.nk as i32),
            Node::Read { field, path, by, .. } => {
                let more = by.map_or(0, |by| i64::from(self.value(body, by, cell, level).int()));
                let declared = &self.stencil.fields[*field];
                let data = self.inputs[field.index()].as_ref().expect("what is read has an array");
                let level = level + i64::from(path.levels()) + more;
                let plane = match declared.place.levels {
                    Levels::None => 0,
                    levels => {
                        usize::try_from(level).ok().filter(|&level| level < levels.count(self.nk)).expect("a level")
                    }
                };
                let at = match (declared.place.horizontal, cell) {
                    (true, Some(cell)) => {
                        plane * self.grid.cells() + walk(self.grid, cell, path).expect("a read leads to a cell")
                    }
                    (true, None) => panic!("`{}` is read outside the grid", declared.name),
                    (false, _) => plane,
                };
                match declared.stored.kind() {
                    Kind::Real => Value::Real(data.get(at)).rounded(self.precision),
                    Kind::Int => Value::Int(data.get(at) as i32),
                    Kind::Bool => Value::Bool(data.get(at) != 0.0),
                }
            }
            Node::Use { def, path } => {
                let cell = cell.and_then(|cell| walk(self.grid, cell, path));
                let key = (*def, cell, level + i64::from(path.levels()));
                if let Some(&value) = self.found.get(&key) {
                    return value;
                }
                let stencil = self.stencil;
                let body = &stencil.defs[*def].body;
                let value = self.value(body, body.root(), cell, key.2);
                self.found.insert(key, value);
                value
            }
            Node::Choose { condition, yes, no } => {
                let chosen = if self.value(body, *condition, cell, level).truth() { *yes } else { *no };
                self.value(body, chosen, cell, level)
            }
            Node::And(a, b) => {
                Value::Bool(self.value(body, *a, cell, level).truth() && self.value(body, *b, cell, level).truth())
            }
            Node::Or(a, b) => {
                Value::Bool(self.value(body, *a, cell, level).truth() || self.value(body, *b, cell, level).truth())
            }
            other => {
                let operands = other.operands().into_iter().map(|operand| self.value(body, operand, cell, level));
                let operands: Vec<Value> = operands.collect();
                apply(self.precision, other, &operands).expect("an operation")
            }
        }
    }
}
