//! Halos: how wide they are, and what each of their cells holds.

use super::Numbers;
use crate::grid::{Form, Grid};
use crate::ir::program::{EdgeRule, Edges, GridAxis, Side};
use crate::ir::scalar::Value;
use crate::ir::{Binary, Body, Kind, Node, Stencil, Verify};

/// Cells around the arrays, by axis and side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halo([[usize; 2]; 3]);

/// What lies beyond an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beyond {
    /// The other end of the axis.
    Periodic,
    /// The outermost cell, over and over.
    Copy,
    /// The cells before the edge, in reverse.
    Mirror,
    /// The same with the other sign.
    OddMirror,
    /// A number.
    Value(Value),
    /// The cells of another part of the grid, which somebody else fetches.
    Neighbour,
}

/// What lies beyond the edges of a variable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeValues {
    sides: [[Option<Beyond>; 2]; 3],
}

/// Where a cell's value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// The cell with this index along the axis.
    Cell(usize),
    /// The same with the other sign.
    Negated(usize),
    /// A number.
    Value(Value),
    /// Nothing: there is no rule for this side.
    Nothing,
}

impl Halo {
    /// Cells beyond a side.
    pub fn width(&self, axis: GridAxis, side: Side) -> usize {
        self.0[axis as usize][side as usize]
    }

    pub(super) fn widen(&mut self, axis: GridAxis, side: Side, width: usize) {
        let own = &mut self.0[axis as usize][side as usize];
        *own = (*own).max(width);
    }

    /// The same, but for so many cells beyond a side.
    pub(super) fn with(mut self, axis: GridAxis, side: Side, width: usize) -> Self {
        self.0[axis as usize][side as usize] = width;
        self
    }

    /// Levels before the first and after the last.
    pub(super) fn levels(&self) -> [i32; 2] {
        self.0[GridAxis::K as usize].map(|levels| levels as i32)
    }

    /// A grid with these cells around it.
    pub fn around(&self, grid: Grid) -> Grid {
        let [i, j, k] = self.0.map(|[low, high]| low + high);
        match grid.form {
            Form::Rows => Grid::rows(grid.ni + i, grid.nj + j, grid.nk + k),
            Form::Cells => Grid::cells(grid.ni, grid.nk + k),
        }
    }
}

impl EdgeValues {
    pub(super) fn new(edges: &Edges, numbers: &Numbers) -> Self {
        let beyond = |axis, side| match edges.rule(axis, side) {
            EdgeRule::Halo => None,
            EdgeRule::Periodic => Some(Beyond::Periodic),
            EdgeRule::Copy => Some(Beyond::Copy),
            EdgeRule::Mirror => Some(Beyond::Mirror),
            EdgeRule::OddMirror => Some(Beyond::OddMirror),
            EdgeRule::Value(body) => Some(Beyond::Value(numbers.value(body))),
        };
        Self { sides: GridAxis::ALL.map(|axis| Side::BOTH.map(|side| beyond(axis, side))) }
    }

    /// What lies beyond a side.
    pub fn beyond(&self, axis: GridAxis, side: Side) -> Option<Beyond> {
        self.sides[axis as usize][side as usize]
    }

    /// Makes an axis a circle.
    pub(super) fn set_circle(&mut self, axis: GridAxis) {
        self.sides[axis as usize] = [Some(Beyond::Periodic); 2];
    }

    /// Says what lies beyond a side.
    pub(super) fn set(&mut self, axis: GridAxis, side: Side, beyond: Option<Beyond>) {
        self.sides[axis as usize][side as usize] = beyond;
    }

    /// Whether values change their sign beyond any side.
    pub fn has_odd(&self) -> bool {
        self.sides.iter().flatten().any(|own| *own == Some(Beyond::OddMirror))
    }

    /// Whether something lies beyond a side.
    pub fn has(&self, axis: GridAxis, side: Side) -> bool {
        self.beyond(axis, side).is_some()
    }

    /// Where the value comes from of a cell that lies `index` cells after the first of `n` along an axis.
    pub fn source(&self, axis: GridAxis, index: i64, n: usize) -> Source {
        let last = n as i64 - 1;
        let (side, by) = match index {
            ..0 => (Side::Low, -1 - index),
            _ if index > last => (Side::High, index - last - 1),
            _ => return Source::Cell(index as usize),
        };
        // `by` is 0 right beyond the edge.
        let inward = |by: i64| if side == Side::Low { by } else { last - by };
        match self.beyond(axis, side) {
            None | Some(Beyond::Neighbour) => Source::Nothing,
            Some(Beyond::Periodic) => Source::Cell(index.rem_euclid(n as i64) as usize),
            Some(Beyond::Copy) => Source::Cell(inward(0) as usize),
            Some(Beyond::Mirror) => Source::Cell(inward(by.min(last)) as usize),
            Some(Beyond::OddMirror) => Source::Negated(inward(by.min(last)) as usize),
            Some(Beyond::Value(value)) => Source::Value(value),
        }
    }
}

/// A stencil on a grid with so many levels more before and after, or fewer: its `k` and `nk` stay those that they were.
pub(super) fn moved(stencil: &Stencil, [low, high]: [i32; 2]) -> Stencil {
    if [low, high] == [0, 0] {
        return stencil.clone();
    }
    let mut moved = stencil.map_bodies(|body| {
        let mut moved = Body::new();
        let mut renamed = Vec::with_capacity(body.len());
        for (id, node) in body.iter() {
            let span = body.span_of(id);
            let less = match node {
                Node::Level => low,
                Node::Count(GridAxis::K) => low + high,
                _ => 0,
            };
            let node = node.map_operands(|operand| renamed[crate::ir::Handle::index(operand)]);
            let mut own = moved.add(node, body.kind_of(id), span);
            if less != 0 {
                let by = moved.add(Node::Int(less.abs()), Kind::Int, span);
                let op = if less > 0 { Binary::Sub } else { Binary::Add };
                own = moved.add(Node::Binary(op, own, by), Kind::Int, span);
            }
            renamed.push(own);
        }
        moved
    });
    for bound in moved.within.iter_mut().filter(|bound| bound.axis == GridAxis::K) {
        let (own, span) = (bound.body.root(), bound.span);
        let by = bound.body.add(Node::Int(low), Kind::Int, span);
        bound.body.add(Node::Binary(Binary::Add, own, by), Kind::Int, span);
    }
    moved.verified("moving levels")
}
