//! In which order a thread computes the values of a step.
//!
//! Each item is computed for all rows of a thread at once. Of those that can be computed, the next is the one after which the fewest
//! values wait in registers: links of sums take the place of those before them, and what nobody looks at any more is gone.

use super::super::flow::{Source, Use, Window, used};
use super::flow::{Flow, Home};
use crate::ir::operation::Operation;
use crate::ir::{Body, DefId, FieldId, Handle, Stencil};
use std::collections::{BTreeMap, BTreeSet};

/// What is computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A definition, so many columns away.
    Def(DefId, i32),
    /// A store, by its number.
    Store(usize),
}

/// What an item looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Seen {
    /// A field's values of a plane.
    Field(Column),
    /// A definition's.
    Def(DefId, i32, usize),
}

/// Values of a field: so many columns away, of a plane so many before its present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Column {
    /// The field.
    pub field: FieldId,
    /// How many columns away.
    pub i: i32,
    /// How many planes before the present one.
    pub age: usize,
}

/// The items of a step in their order.
#[derive(Clone, Debug)]
pub struct Order {
    /// The items, and the rows that each looks at of planes in shared memory.
    pub items: Vec<(Item, Columns)>,
    /// Columns that several of them look at, and all rows that any does.
    pub columns: Columns,
    /// The most values of a thread that wait at once.
    pub most: usize,
    /// Whether anything is computed by many instructions, which hold values of their own.
    pub is_slow: bool,
}

/// Rows of columns, from an output's.
pub type Columns = BTreeMap<Column, Window>;

impl Order {
    /// Of threads of so many rows.
    pub fn new(stencil: &Stencil, flow: &Flow, rows: usize) -> Self {
        let mut waiting = all(stencil, flow);
        let mut lookers: BTreeMap<Seen, usize> = BTreeMap::new();
        waiting.iter().flat_map(|own| &own.seen).for_each(|&seen| *lookers.entry(seen).or_default() += 1);
        let mut columns = Columns::new();
        waiting.iter().flat_map(|own| &own.columns).for_each(|(&column, &rows)| widen(&mut columns, column, rows));
        columns.retain(|&column, _| lookers.get(&Seen::Field(column)).is_some_and(|&lookers| lookers > 1));
        let (loaded, done) = (BTreeSet::new(), BTreeSet::new());
        let mut live = Live { flow, rows: rows as i64, columns, lookers, loaded, done };
        let (mut now, mut items) = (live.kept(), Vec::with_capacity(waiting.len()));
        let mut most = now;
        while !waiting.is_empty() {
            let ready = waiting.iter().enumerate().filter(|(_, own)| own.seen.iter().all(|&seen| live.is_there(seen)));
            let next = ready.min_by_key(|(place, own)| (live.grows(own), *place)).map(|(place, _)| place);
            // Definitions come after those that they look at, so something always is ready.
            let own = waiting.remove(next.unwrap_or(0));
            now += live.grows(&own);
            most = most.max(now);
            live.compute(&own);
            items.push((own.item, own.columns));
        }
        let is_slow = |body: &Body| body.iter().any(|(id, _)| Operation::of(body, id).is_some_and(Operation::is_slow));
        let mut bodies =
            stencil.defs.iter().map(|(_, def)| &def.body).chain(stencil.stores.iter().map(|own| &own.body));
        let is_slow = bodies.any(is_slow);
        Self { items, columns: live.columns, most: usize::try_from(most).unwrap_or(0), is_slow }
    }
}

/// Everything that is to be computed.
fn all(stencil: &Stencil, flow: &Flow) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = Vec::new();
    let defs = flow.instances.keys().map(|&(def, i)| Item::Def(def, i));
    let stores = (0..stencil.stores.len()).map(Item::Store);
    for item in defs.chain(stores) {
        let (body, lag, i, rows) = match item {
            Item::Def(def, i) => {
                let rows = flow.instances.get(&(def, i)).map_or(Window::default(), |own| own.rows);
                (&stencil.defs[def].body, flow.lags[def.index()], i, rows)
            }
            Item::Store(number) => (&stencil.stores[number].body, flow.stores[number], 0, Window::default()),
        };
        let mut waits = Waiting { item, lag, seen: BTreeSet::new(), columns: Columns::new() };
        waits.look((stencil, flow), body, -lag, (i, rows));
        waiting.push(waits);
    }
    // Links that are furthest behind come first: each takes the place of the one before it.
    waiting.sort_by_key(|own| (-own.lag, own.item));
    waiting
}

/// An item that is to be computed.
struct Waiting {
    item: Item,
    lag: i32,
    seen: BTreeSet<Seen>,
    columns: Columns,
}

impl Waiting {
    /// What a body looks at that is evaluated at a plane and column for some rows, through all that is part of it.
    fn look(&mut self, (stencil, flow): (&Stencil, &Flow), body: &Body, shift: i32, (i, rows): (i32, Window)) {
        for Use { source, i: along, j } in body.iter().filter_map(|(_, node)| used(stencil, node, shift)) {
            let (i, rows, age) = (i + along, rows.moved(j), flow.age_of(source));
            match source {
                Source::Field(field, _) => {
                    let column = Column { field, i, age };
                    if flow.fields.get(&field).is_none_or(|own| own.home == Home::Memory) {
                        continue;
                    }
                    if flow.is_shared(stencil, field, age) {
                        widen(&mut self.columns, column, rows);
                    }
                    self.seen.insert(Seen::Field(column));
                }
                Source::Def(def, _) if flow.instances.contains_key(&(def, i)) => {
                    self.seen.insert(Seen::Def(def, i, age));
                }
                Source::Def(def, shift) => self.look((stencil, flow), &stencil.defs[def].body, shift, (i, rows)),
            }
        }
    }
}

fn widen(columns: &mut Columns, column: Column, rows: Window) {
    let own = columns.entry(column).or_insert(rows);
    *own = own.union(rows);
}

/// What is in registers.
struct Live<'a> {
    flow: &'a Flow,
    rows: i64,
    columns: Columns,
    /// How many items are still to look at something.
    lookers: BTreeMap<Seen, usize>,
    loaded: BTreeSet<Seen>,
    done: BTreeSet<(DefId, i32)>,
}

impl Live<'_> {
    /// Whether something can be looked at.
    fn is_there(&self, seen: Seen) -> bool {
        match seen {
            Seen::Def(def, i, 0) => self.done.contains(&(def, i)),
            Seen::Def(..) | Seen::Field(..) => true,
        }
    }

    /// How many values a thread holds between two steps.
    fn kept(&self) -> i64 {
        let defs = self.flow.instances.iter().map(|(&(def, i), own)| own.kept as i64 * self.size(def, i));
        let fields = self.flow.fields.values().map(|own| match own.home {
            Home::Memory => 0,
            Home::Registers { kept } => (kept as i64 + 1) * self.rows,
            Home::Shared { back, kept, .. } => kept.saturating_sub(back) as i64 * self.rows,
        });
        defs.chain(fields).sum()
    }

    /// The values of a thread's rows, and those around that are read.
    fn size(&self, def: DefId, i: i32) -> i64 {
        let around = self.flow.instances.get(&(def, i)).map_or(0, |own| own.rows.high - own.rows.low);
        self.rows + i64::from(around)
    }

    /// The values of a column that are looked at.
    fn of_column(&self, column: Column) -> i64 {
        self.rows + self.columns.get(&column).map_or(0, |rows| i64::from(rows.high - rows.low))
    }

    /// By how many values what waits in registers grows if an item comes next.
    fn grows(&self, own: &Waiting) -> i64 {
        let mut grows = match own.item {
            Item::Def(def, i) => {
                let kept = self.flow.instances.get(&(def, i)).map_or(0, |own| own.kept);
                if kept > 0 || self.lookers.contains_key(&Seen::Def(def, i, 0)) { self.size(def, i) } else { 0 }
            }
            Item::Store(_) => 0,
        };
        for &seen in &own.seen {
            let is_last = self.lookers.get(&seen).is_none_or(|&lookers| lookers <= 1);
            grows += match seen {
                Seen::Field(column) if is_last && self.loaded.contains(&seen) => -self.of_column(column),
                Seen::Field(_) if is_last || self.loaded.contains(&seen) => 0,
                Seen::Field(column) => self.of_column(column),
                // What is kept for longer moves on.
                Seen::Def(def, i, age) => {
                    let kept = self.flow.instances.get(&(def, i)).map_or(0, |own| own.kept);
                    if is_last && age == kept { -self.size(def, i) } else { 0 }
                }
            };
        }
        grows
    }

    fn compute(&mut self, own: &Waiting) {
        for &seen in &own.seen {
            self.loaded.insert(seen);
            if let Some(lookers) = self.lookers.get_mut(&seen) {
                *lookers -= 1;
            }
        }
        if let Item::Def(def, i) = own.item {
            self.done.insert((def, i));
        }
    }
}
