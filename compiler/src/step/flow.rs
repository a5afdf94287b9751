//! Which rows of which values a stencil needs, and when, if it is computed row after row down a plane.
//!
//! Everything that differs from column to column is a [`Row`] along i: of a field that is read, or of a definition. At each
//! step every value moves on by one row along j. A value *lags*: while one is at row y, another is at y - 1, because it looks
//! at the rows around. What is looked back at is *kept*.

use super::StepTask;
use crate::diagnostic::Refusal;
use crate::ir::{Body, DefId, FieldId, Handle, Levels, Node, Path, Stencil, varying};
use std::collections::BTreeMap;

/// Something that has a value at every cell: a field or a definition, so many levels away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A field that is read.
    Field(FieldId, i32),
    /// A definition.
    Def(DefId, i32),
}

/// A source looked at from the cell itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// What.
    pub source: Source,
    /// How far along i.
    pub i: i32,
    /// How far along j.
    pub j: i32,
}

/// From the smallest to the largest offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// At most 0.
    pub low: i32,
    /// At least 0.
    pub high: i32,
}

/// A value that differs from column to column.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whose value it is.
    pub source: Source,
    /// What it is made of; nothing if it is a field's.
    pub uses: Vec<Use>,
    /// How many rows it is behind the foremost.
    pub lag: i32,
    /// How many of its rows before the present one are looked at.
    pub kept: usize,
    /// The columns at which outputs need it, from their own.
    pub i: Window,
    /// The rows at which outputs need it, from their own.
    pub j: Window,
}

/// The rows of a stencil, each after those it is made of, fields first.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The rows.
    pub rows: Vec<Row>,
    /// What is the same on all columns of a level, in the same order.
    pub uniforms: Vec<Source>,
    /// What each store of the stencil is made of.
    pub stores: Vec<Vec<Use>>,
    /// How many rows the outputs are behind the foremost value.
    pub lag: i32,
    /// How many steps come before the first that has an output.
    pub span: usize,
    /// The columns that outputs reach.
    pub i: Window,
    /// The rows that outputs reach.
    pub j: Window,
    places: BTreeMap<Source, usize>,
}

/// The furthest that a kernel of rows may look.
const REACH: i32 = 1 << 12;

impl Window {
    /// From the smaller to the larger.
    pub fn union(self, other: Window) -> Window {
        Window { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The same, seen from so far away.
    pub fn moved(self, by: i32) -> Window {
        Window { low: self.low.saturating_add(by), high: self.high.saturating_add(by) }
    }

    /// How many cells to the left, or up.
    pub fn before(self) -> usize {
        self.low.min(0).unsigned_abs() as usize
    }

    /// How many cells to the right, or down.
    pub fn after(self) -> usize {
        self.high.max(0).unsigned_abs() as usize
    }
}

impl Flow {
    /// The rows of a task's stencil.
    ///
    /// # Errors
    /// It looks at other levels, or too far.
    pub fn new(task: &StepTask) -> Result<Flow, Refusal> {
        task.check()?;
        let stencil = task.stencil;
        let reader = Reader { stencil, varying: varying(stencil) };
        let mut flow = Flow {
            rows: Vec::new(),
            uniforms: Vec::new(),
            stores: Vec::new(),
            lag: 0,
            span: 0,
            i: Window::default(),
            j: Window::default(),
            places: BTreeMap::new(),
        };
        // Users come after what they use, so backwards all uses are known when a definition's turn comes.
        let mut needed: BTreeMap<Source, bool> = BTreeMap::new();
        for store in &stencil.stores {
            flow.stores.push(reader.uses(&store.body, 0, &mut needed)?);
        }
        let mut uses: BTreeMap<Source, Vec<Use>> = BTreeMap::new();
        let mut done = None;
        while let Some(source) = last_def(&needed, done) {
            let Source::Def(def, shift) = source else { break };
            uses.insert(source, reader.uses(&stencil.defs[def].body, shift, &mut needed)?);
            done = Some(source);
        }
        for (&source, &varies) in &needed {
            if varies {
                flow.places.insert(source, flow.rows.len());
                let uses = uses.remove(&source).unwrap_or_default();
                let (i, j) = (Window::default(), Window::default());
                flow.rows.push(Row { source, uses, lag: 0, kept: 0, i, j });
            } else {
                flow.uniforms.push(source);
            }
        }
        flow.schedule();
        flow.spread();
        let reach = [flow.i.low, flow.i.high, flow.j.low, flow.j.high];
        if reach.iter().any(|reach| reach.unsigned_abs() > REACH.unsigned_abs()) {
            return Err(Refusal::new(format!("stencil `{}` reads more than {REACH} cells away", stencil.name)));
        }
        Ok(flow)
    }

    /// Where a source's row is in [`Flow::rows`]; nothing if it is uniform.
    pub fn place(&self, source: Source) -> Option<usize> {
        self.places.get(&source).copied()
    }

    /// All that is looked at: rows, and what is the same on all columns.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        self.rows.iter().map(|row| row.source).chain(self.uniforms.iter().copied())
    }

    /// How many rows back a user that lags so much looks.
    pub fn age(&self, lag: i32, used: Use) -> Option<(usize, usize)> {
        let place = self.place(used.source)?;
        let age = lag.saturating_sub(used.j).saturating_sub(self.rows[place].lag);
        Some((place, usize::try_from(age).unwrap_or(0)))
    }

    /// Everyone that looks at rows: how much it lags, where, and at what.
    pub fn users(&self) -> impl Iterator<Item = (i32, Use)> {
        let rows = self.rows.iter().flat_map(|row| row.uses.iter().map(|&used| (row.lag, used)));
        rows.chain(self.stores.iter().flatten().map(|&used| (self.lag, used)))
    }

    /// Finds lags: each value as early as what it looks at allows, for the outputs; then each as late as its users need it,
    /// so that as few rows as possible are kept.
    fn schedule(&mut self) {
        let mut lags: Vec<i32> = Vec::with_capacity(self.rows.len());
        let earliest = |uses: &[Use], lags: &[i32], places: &BTreeMap<Source, usize>| {
            let own = uses.iter().filter_map(|used| Some(lags[*places.get(&used.source)?].saturating_add(used.j)));
            own.max()
        };
        for row in &self.rows {
            lags.push(earliest(&row.uses, &lags, &self.places).unwrap_or(0));
        }
        self.lag = self.stores.iter().filter_map(|uses| earliest(uses, &lags, &self.places)).max().unwrap_or(0);
        let mut latest = vec![i32::MAX; self.rows.len()];
        let mut oldest = vec![i32::MIN; self.rows.len()];
        let mut ask = |lag: i32, uses: &[Use], latest: &mut [i32]| {
            for used in uses {
                if let Some(&place) = self.places.get(&used.source) {
                    latest[place] = latest[place].min(lag.saturating_sub(used.j));
                    oldest[place] = oldest[place].max(lag.saturating_sub(used.j));
                }
            }
        };
        self.stores.iter().for_each(|uses| ask(self.lag, uses, &mut latest));
        for (number, row) in self.rows.iter().enumerate().rev() {
            ask(latest[number], &row.uses, &mut latest);
        }
        for (number, row) in self.rows.iter_mut().enumerate() {
            row.lag = latest[number];
            row.kept = usize::try_from(oldest[number].saturating_sub(latest[number])).unwrap_or(0);
        }
    }

    /// Finds the columns and rows at which the outputs need each value.
    fn spread(&mut self) {
        let mut windows: Vec<Option<(Window, Window)>> = vec![None; self.rows.len()];
        let ask = |uses: &[Use], (i, j): (Window, Window), windows: &mut Vec<Option<(Window, Window)>>| {
            for used in uses {
                if let Some(&place) = self.places.get(&used.source) {
                    let own = (i.moved(used.i), j.moved(used.j));
                    let entry = &mut windows[place];
                    *entry = Some(entry.map_or(own, |known| (known.0.union(own.0), known.1.union(own.1))));
                }
            }
        };
        self.stores.iter().for_each(|uses| ask(uses, Default::default(), &mut windows));
        for (number, row) in self.rows.iter().enumerate().rev() {
            let (i, j) = windows[number].unwrap_or_default();
            // A lane computes its own columns, too, whoever needs them.
            ask(&row.uses, (i.union(Window::default()), j), &mut windows);
        }
        for (row, window) in self.rows.iter_mut().zip(windows) {
            (row.i, row.j) = window.unwrap_or_default();
            let first = self.lag.saturating_sub(row.lag).saturating_sub(row.j.low);
            self.span = self.span.max(usize::try_from(first).unwrap_or(0));
            self.i = self.i.union(row.i);
            self.j = self.j.union(row.j);
        }
    }
}

/// The last definition that is needed, before the one that was found last.
fn last_def(needed: &BTreeMap<Source, bool>, before: Option<Source>) -> Option<Source> {
    let mut last = needed.keys().rev().filter(|source| before.is_none_or(|before| **source < before));
    last.next().copied().filter(|source| matches!(source, Source::Def(..)))
}

struct Reader<'a> {
    stencil: &'a Stencil,
    /// Of each definition whether it differs from column to column.
    varying: Vec<bool>,
}

impl Reader<'_> {
    /// What a body looks at that is evaluated so many levels away, noted as needed: whether it differs from column to column.
    fn uses(&self, body: &Body, shift: i32, needed: &mut BTreeMap<Source, bool>) -> Result<Vec<Use>, Refusal> {
        let mut uses = Vec::new();
        for (_, node) in body.iter() {
            let Some(used) = used(self.stencil, node, shift) else { continue };
            let varies = match used.source {
                Source::Field(field, shift) => {
                    self.check(field, shift)?;
                    self.stencil.fields[field].place.horizontal
                }
                Source::Def(def, _) => self.varying[def.index()],
            };
            needed.insert(used.source, varies);
            uses.push(used);
        }
        uses.sort_unstable();
        uses.dedup();
        Ok(uses)
    }

    /// Refuses reads of levels that may not be there, or that another warp computes.
    fn check(&self, field: FieldId, shift: i32) -> Result<(), Refusal> {
        let field = &self.stencil.fields[field];
        let exists = match field.place.levels {
            Levels::None => true,
            Levels::Full => shift == 0,
            // Each level has two interfaces.
            Levels::Interfaces => shift == 0 || shift == 1,
        };
        if exists {
            return Ok(());
        }
        Err(Refusal::new(format!(
            "stencil `{}` reads other levels (`{}{}`): planes are not independent",
            self.stencil.name,
            field.name,
            Path::levels_only(shift)
        )))
    }
}

/// What a node looks at that is evaluated so many levels away.
pub fn used(stencil: &Stencil, node: &Node, shift: i32) -> Option<Use> {
    match node {
        Node::Read { field, path, .. } => {
            let mut offset = path.offset();
            offset.k = offset.k.saturating_add(shift);
            let offset = offset.along(stencil.fields[*field].place);
            Some(Use { source: Source::Field(*field, offset.k), i: offset.i, j: offset.j })
        }
        Node::Use { def, path } => {
            let offset = path.offset();
            Some(Use { source: Source::Def(*def, offset.k.saturating_add(shift)), i: offset.i, j: offset.j })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Precision;
    use crate::plan::prepare;
    use crate::source::Source as Text;
    use crate::step::{Edge, Rows};

    fn flow(body: &str) -> Result<(Flow, Vec<String>), String> {
        let text = format!("stencil s {{ in a; in h on (i, j, k+1); in w on (k); out r\n{body} }}");
        let stencil = prepare(&crate::check(&Text::new("s", &text)).stencils[0], Precision::F64, true);
        let task = StepTask {
            stencil: &stencil,
            precision: Precision::F64,
            extents: [8, 8, 2],
            rows: Rows { first: 0, row: 8, plane: 64 },
            edges: [Edge::Periodic; 2],
        };
        let flow = Flow::new(&task).map_err(|refusal| refusal.message)?;
        let name = |source: Source| match source {
            Source::Field(field, shift) => format!("{}{}", stencil.fields[field].name, Path::levels_only(shift)),
            Source::Def(def, shift) => format!("{}{}", stencil.defs[def].name, Path::levels_only(shift)),
        };
        let told = flow.rows.iter().map(|row| format!("{} lags {}, {} kept", name(row.source), row.lag, row.kept));
        let told = told.chain(flow.uniforms.iter().map(|&source| name(source))).collect();
        Ok((flow, told))
    }

    #[test]
    fn values_are_as_late_as_their_users_allow() {
        let (flow, told) = flow("let l = a[j-1] + a[j+1]\nlet g = w * k\nr = (l[j+1] - l[j-1]) * g + a[i-2]").unwrap();
        assert_eq!(told, ["a lags 0, 2 kept", "l lags 1, 2 kept", "w", "g"]);
        assert_eq!((flow.lag, flow.span, flow.i.before(), flow.i.after()), (2, 4, 2, 0));
    }

    #[test]
    fn what_is_only_looked_up_to_is_not_waited_for() {
        let (flow, told) = flow("r = a[j-2] + h[j-3, k+1]").unwrap();
        assert_eq!(told, ["a lags 0, 0 kept", "h[k+1] lags 1, 0 kept"]);
        assert_eq!((flow.lag, flow.span), (-2, 0));
    }

    #[test]
    fn other_levels_are_refused() {
        assert!(flow("r = h[k+1] - h").is_ok());
        assert!(flow("r = if k > 0 { a[k-1] } else { a }").unwrap_err().contains("reads other levels (`a[k-1]`)"));
        assert!(flow("let d = a + w\nr = d[k+1]").unwrap_err().contains("reads other levels"));
        assert!(flow("r = a[i+5000]").unwrap_err().contains("more than 4096 cells away"));
    }
}
