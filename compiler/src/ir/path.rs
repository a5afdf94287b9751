//! Ordered paths from a cell to the cell that is read.

use super::{Handle, Levels, MapId, Place};
use std::cmp::Ordering;
use std::fmt;

/// A horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// The first horizontal axis, left (-1) and right (+1).
    I,
    /// The second horizontal axis, top (-1) and bottom (+1).
    J,
}

/// One run of equal steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// Along which axis.
    pub axis: Axis,
    /// How many cells, and in which direction; never 0.
    pub by: i32,
}

/// Where a read looks: horizontal steps in the order they are walked, and a shift of levels.
///
/// The order is kept because on an irregular grid left-of-top is not top-of-left, and right-of-left need not be the cell
/// itself; so only steps in the same direction are merged. Levels are regular on every grid: their shifts add up.
/// Summing the steps to an [`Offset`] holds where steps commute, which the storage decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path {
    steps: Vec<Step>,
    hops: Vec<Hop>,
    levels: i32,
}

/// On a mesh: from an element through a slot of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The map.
    pub map: MapId,
    /// Which of its slots.
    pub slot: u32,
}

/// A path added up: valid where horizontal steps commute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset {
    /// Cells along i.
    pub i: i32,
    /// Cells along j.
    pub j: i32,
    /// Levels.
    pub k: i32,
}

impl Path {
    /// A path of levels only.
    pub fn levels_only(levels: i32) -> Self {
        Self { levels, ..Self::default() }
    }

    /// The path that walks `offset`'s i steps, then its j steps.
    pub fn from_offset(offset: Offset) -> Self {
        let mut path = Self::levels_only(offset.k);
        path.walk(Step { axis: Axis::I, by: offset.i });
        path.walk(Step { axis: Axis::J, by: offset.j });
        path
    }

    /// Goes on by one run of steps.
    pub fn walk(&mut self, step: Step) {
        match self.steps.last_mut() {
            _ if step.by == 0 => {}
            Some(last) if last.axis == step.axis && last.by.signum() == step.by.signum() => {
                last.by = last.by.saturating_add(step.by);
            }
            _ => self.steps.push(step),
        }
    }

    /// This path, then `next`.
    pub fn then(&self, next: &Path) -> Path {
        let mut path = self.clone();
        for &step in &next.steps {
            path.walk(step);
        }
        path.hops.extend(&next.hops);
        path.levels = path.levels.saturating_add(next.levels);
        path
    }

    /// The same without its shift of levels.
    pub fn without_levels(mut self) -> Path {
        self.levels = 0;
        self
    }

    /// The single steps of one cell, first one first.
    pub fn units(&self) -> impl Iterator<Item = Step> {
        self.steps.iter().flat_map(|step| {
            let unit = Step { axis: step.axis, by: step.by.signum() };
            std::iter::repeat_n(unit, step.by.unsigned_abs() as usize)
        })
    }

    /// A path through a mesh.
    pub fn through(hops: impl Into<Vec<Hop>>) -> Self {
        Self { hops: hops.into(), ..Self::default() }
    }

    /// The hops through a mesh, first one first.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The horizontal steps, first one first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The shift of levels.
    pub fn levels(&self) -> i32 {
        self.levels
    }

    /// Whether the path stays at the cell.
    pub fn is_here(&self) -> bool {
        self.steps.is_empty() && self.hops.is_empty() && self.levels == 0
    }

    /// Whether it leads to another column, or begins as if it did.
    pub fn is_away(&self) -> bool {
        !self.steps.is_empty() || !self.hops.is_empty()
    }

    /// Its horizontal parts and the shift of levels in brackets; nothing for the cell itself.
    pub(super) fn written(&self, horizontal: impl Iterator<Item = String>) -> String {
        let levels = (self.levels != 0).then(|| format!("k{:+}", self.levels));
        let parts: Vec<String> = horizontal.chain(levels).collect();
        if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) }
    }

    /// The steps added up.
    pub fn offset(&self) -> Offset {
        let along = |axis| {
            self.steps.iter().filter(|step| step.axis == axis).fold(0i32, |sum, step| sum.saturating_add(step.by))
        };
        Offset { i: along(Axis::I), j: along(Axis::J), k: self.levels }
    }
}

/// By where they lead if steps commute, so that lists of paths read like lists of offsets.
impl Ord for Path {
    fn cmp(&self, other: &Self) -> Ordering {
        self.offset()
            .cmp(&other.offset())
            .then_with(|| self.steps.cmp(&other.steps))
            .then_with(|| self.hops.cmp(&other.hops))
    }
}

impl PartialOrd for Path {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Offset {
    /// The sum of two offsets.
    pub fn plus(self, other: Offset) -> Offset {
        self.with(other, i32::saturating_add)
    }

    /// What becomes of two offsets, axis by axis.
    pub fn with(self, other: Offset, along: impl Fn(i32, i32) -> i32) -> Offset {
        Offset { i: along(self.i, other.i), j: along(self.j, other.j), k: along(self.k, other.k) }
    }

    /// The horizontal part.
    pub fn horizontal(self) -> Offset {
        Offset { k: 0, ..self }
    }

    /// The part along the axes of a field on `place`; along others all its values are one.
    pub fn along(self, place: Place) -> Offset {
        let levels = if place.levels == Levels::None { self.horizontal() } else { self };
        if place.horizontal { levels } else { Offset { i: 0, j: 0, ..levels } }
    }
}

/// `[i-1, j+1]`, or nothing for the cell itself.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |step: &Step| format!("{}{:+}", if step.axis == Axis::I { "i" } else { "j" }, step.by);
        let hop = |hop: &Hop| format!("map {} slot {}", hop.map.index(), hop.slot);
        f.write_str(&self.written(self.steps.iter().map(step).chain(self.hops.iter().map(hop))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(steps: &[(Axis, i32)]) -> Path {
        let mut path = Path::default();
        for &(axis, by) in steps {
            path.walk(Step { axis, by });
        }
        path
    }

    #[test]
    fn order_is_kept_and_only_equal_directions_merge() {
        use Axis::{I, J};
        assert_eq!(path(&[(I, 1), (I, 2)]), path(&[(I, 3)]));
        assert_ne!(path(&[(I, 1), (J, 1)]), path(&[(J, 1), (I, 1)]));
        assert_eq!(path(&[(I, 1), (I, -1)]).steps().len(), 2);
        assert_eq!(path(&[(I, 1), (J, -2), (I, -3)]).offset(), Offset { i: -2, j: -2, k: 0 });
        assert_eq!(path(&[(J, 1)]).then(&path(&[(I, -1)])).to_string(), "[j+1, i-1]");
    }
}
