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

/// A rectangle of cells: how much further it begins and ends than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// Along i.
    pub i: Window,
    /// Along j.
    pub j: Window,
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
    /// The cells at which outputs need it, from their own.
    pub area: Area,
}

/// The rows of a stencil, each after those it is made of, fields first.
#[derive(Clone, Debug, Default)]
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
    /// The cells that outputs reach.
    pub reach: Area,
    places: BTreeMap<Source, usize>,
}

/// The furthest that a kernel of rows may look.
pub const REACH: u32 = 1 << 12;

impl Window {
    /// From the smaller to the larger.
    pub fn union(self, other: Window) -> Window {
        Window { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// That alone which is so far away.
    pub fn at(offset: i32) -> Window {
        Window { low: offset, high: offset }
    }

    /// The same, seen from so far away.
    pub fn moved(self, by: i32) -> Window {
        Window { low: self.low.saturating_add(by), high: self.high.saturating_add(by) }
    }

    /// From the smallest to the largest that several look at beside a cell; nothing beside it if one alone does.
    pub fn of_several(windows: impl Iterator<Item = Window>) -> Window {
        let wide: Vec<Window> = windows.filter(|window| *window != Window::default()).collect();
        match wide.len() {
            0 | 1 => Window::default(),
            _ => wide.into_iter().fold(Window::default(), Window::union),
        }
    }

    /// How many cells before and after.
    pub fn sides(self) -> [usize; 2] {
        [self.before(), self.after()]
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

impl Area {
    /// The cells that are looked at from those of this one.
    pub fn seen(self, used: Use) -> Area {
        Area { i: self.i.moved(used.i), j: self.j.moved(used.j) }
    }

    /// From the smaller to the larger, along both.
    pub fn union(self, other: Area) -> Area {
        Area { i: self.i.union(other.i), j: self.j.union(other.j) }
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
        let reader = Reader { task, varying: varying(stencil) };
        let mut flow = Flow::default();
        // Users come after what they use, so backwards all uses are known when a definition's turn comes.
        let mut needed: BTreeMap<Source, bool> = BTreeMap::new();
        for store in &stencil.stores {
            flow.stores.push(reader.uses(&store.body, 0, &mut needed)?);
        }
        let mut uses: BTreeMap<Source, Vec<Use>> = BTreeMap::new();
        for def in stencil.defs.handles().rev() {
            let shifts = needed.range(Source::Def(def, i32::MIN)..=Source::Def(def, i32::MAX));
            for source in shifts.map(|(&source, _)| source).rev().collect::<Vec<_>>() {
                let Source::Def(_, shift) = source else { continue };
                uses.insert(source, reader.uses(&stencil.defs[def].body, shift, &mut needed)?);
            }
        }
        for (&source, &varies) in &needed {
            if varies {
                flow.places.insert(source, flow.rows.len());
                let uses = uses.remove(&source).unwrap_or_default();
                flow.rows.push(Row { source, uses, lag: 0, kept: 0, area: Area::default() });
            } else {
                flow.uniforms.push(source);
            }
        }
        flow.schedule();
        flow.spread();
        let Area { i, j } = flow.reach;
        if [i.low, i.high, j.low, j.high].iter().any(|reach| reach.unsigned_abs() > REACH) {
            return Err(task.refusal(format!("reads more than {REACH} cells away")));
        }
        Ok(flow)
    }

    /// Where a source's row is in [`Flow::rows`]; nothing if it is uniform.
    pub fn place(&self, source: Source) -> Option<usize> {
        self.places.get(&source).copied()
    }

    /// The rows of fields: the place of each in [`Flow::rows`], and the field.
    pub fn fields(&self) -> impl Iterator<Item = (usize, FieldId)> {
        self.rows.iter().enumerate().filter_map(|(place, row)| match row.source {
            Source::Field(field, _) => Some((place, field)),
            Source::Def(..) => None,
        })
    }

    /// Those of some uses that look at rows, after the places of these in [`Flow::rows`].
    pub fn looked<'a>(&'a self, uses: impl IntoIterator<Item = &'a Use>) -> impl Iterator<Item = (usize, Use)> {
        uses.into_iter().filter_map(|&used| Some((self.place(used.source)?, used)))
    }

    /// How far some uses look along i at the rows of each value, by their places and how far these are along j.
    pub fn windows(&self, uses: &[Use]) -> BTreeMap<(usize, i32), Window> {
        let mut windows: BTreeMap<(usize, i32), Window> = BTreeMap::new();
        for (place, used) in self.looked(uses) {
            let window = windows.entry((place, used.j)).or_default();
            *window = window.union(Window::at(used.i));
        }
        windows
    }

    /// All that is looked at: what is the same on all columns, and rows.
    pub fn sources(&self) -> Vec<Source> {
        self.uniforms.iter().copied().chain(self.rows.iter().map(|row| row.source)).collect()
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
        for row in &self.rows {
            let ready = self.looked(&row.uses).map(|(place, used)| lags[place].saturating_add(used.j));
            lags.push(ready.max().unwrap_or(0));
        }
        let of_stores = self.looked(self.stores.iter().flatten());
        self.lag = of_stores.map(|(place, used)| lags[place].saturating_add(used.j)).max().unwrap_or(0);
        // Of each row the least and the most that its users ask for.
        let mut asked = vec![Window { low: i32::MAX, high: i32::MIN }; self.rows.len()];
        let ask = |asked: &mut [Window], lag: i32, uses: &[Use]| {
            for (place, used) in self.looked(uses) {
                asked[place] = asked[place].union(Window::at(lag.saturating_sub(used.j)));
            }
        };
        self.stores.iter().for_each(|uses| ask(&mut asked, self.lag, uses));
        for (number, row) in self.rows.iter().enumerate().rev() {
            let lag = asked[number].low;
            ask(&mut asked, lag, &row.uses);
        }
        for (row, Window { low, high }) in self.rows.iter_mut().zip(asked) {
            row.lag = low;
            row.kept = usize::try_from(high.saturating_sub(low)).unwrap_or(0);
        }
    }

    /// Finds the columns and rows at which the outputs need each value.
    fn spread(&mut self) {
        let mut areas: Vec<Option<Area>> = vec![None; self.rows.len()];
        let ask = |areas: &mut [Option<Area>], uses: &[Use], from: Area| {
            for (place, used) in self.looked(uses) {
                let own = from.seen(used);
                areas[place] = Some(areas[place].map_or(own, |known| known.union(own)));
            }
        };
        self.stores.iter().for_each(|uses| ask(&mut areas, uses, Area::default()));
        for (number, row) in self.rows.iter().enumerate().rev() {
            let Area { i, j } = areas[number].unwrap_or_default();
            // A lane computes its own columns, too, whoever needs them.
            ask(&mut areas, &row.uses, Area { i: i.union(Window::default()), j });
        }
        for (row, area) in self.rows.iter_mut().zip(areas) {
            row.area = area.unwrap_or_default();
            let first = self.lag.saturating_sub(row.lag).saturating_sub(row.area.j.low);
            self.span = self.span.max(usize::try_from(first).unwrap_or(0));
            self.reach = self.reach.union(row.area);
        }
    }
}

struct Reader<'a> {
    task: &'a StepTask<'a>,
    /// Of each definition whether it differs from column to column.
    varying: Vec<bool>,
}

impl Reader<'_> {
    /// What a body looks at that is evaluated so many levels away, noted as needed: whether it differs from column to column.
    fn uses(&self, body: &Body, shift: i32, needed: &mut BTreeMap<Source, bool>) -> Result<Vec<Use>, Refusal> {
        let mut uses = Vec::new();
        for (_, node) in body.iter() {
            let Some(used) = used(self.task.stencil, node, shift) else { continue };
            let varies = match used.source {
                Source::Field(field, shift) => {
                    self.check(field, shift)?;
                    self.task.stencil.fields[field].place.horizontal
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
        let field = &self.task.stencil.fields[field];
        let exists = match field.place.levels {
            Levels::None => true,
            Levels::Full => shift == 0,
            // Each level has two interfaces.
            Levels::Interfaces => shift == 0 || shift == 1,
        };
        if exists {
            return Ok(());
        }
        let path = Path::levels_only(shift);
        Err(self.task.refusal(format!("reads other levels (`{}{path}`): planes are not independent", field.name)))
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
        assert_eq!((flow.lag, flow.span, flow.reach.i.before(), flow.reach.i.after()), (2, 4, 2, 0));
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
