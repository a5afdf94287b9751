//! Which values are computed together, for which cells of a tile, and in which order.
//!
//! A loop goes over the cells of a rectangle and computes some values there. What it looks at beside a cell is complete when
//! it begins, for a barrier stands between loops of different ranks; loops of one rank know nothing of each other. A value
//! that all its users look at in one loop, at the cell itself, is computed there, and nowhere kept.

use super::super::flow::{Area, Flow, Source, Use, Window};

/// Values that are computed together.
#[derive(Clone, Debug)]
pub struct Loop {
    /// How many barriers stand between it and that of the outputs.
    pub rank: usize,
    /// The cells.
    pub area: Area,
    /// The definitions, by their places in [`Flow::rows`], each after those it looks at.
    pub values: Vec<usize>,
}

/// All loops, in the order in which they are executed. The last one computes the outputs.
#[derive(Clone, Debug)]
pub struct Loops {
    /// The loops.
    pub loops: Vec<Loop>,
    /// Of each row of the [`Flow`] the cells around a tile that it has in shared memory. Others are where they are looked at: fields in
    /// their arrays, definitions in registers of the loop that computes them.
    pub kept: Vec<Option<Area>>,
}

/// The cells of a loop as its threads share them.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Columns, and rows of one.
    pub cells: [usize; 2],
    /// Parts of a column, which are as long as each other, but for a row.
    pub count: usize,
    /// How many rows a part has, and how many have as many, if some have one less.
    pub rows: usize,
    pub longer: usize,
}

impl Area {
    /// Columns and rows, for a tile of so many.
    pub fn cells(self, tile: [usize; 2]) -> [usize; 2] {
        let along = |window: Window, tile: usize| tile.saturating_add_signed((window.high - window.low) as isize);
        [along(self.i, tile[0]), along(self.j, tile[1])]
    }
}

impl Loop {
    /// Its cells around a tile, of which a thread computes so many rows at most.
    pub fn parts(&self, tile: [usize; 2], most: usize) -> Parts {
        let cells = self.area.cells(tile);
        let count = cells[1].div_ceil(most);
        Parts { cells, count, rows: cells[1].div_ceil(count), longer: cells[1] % count }
    }
}

impl Loops {
    /// The loops of a stencil.
    pub fn new(flow: &Flow) -> Self {
        let mut loops = vec![Loop { rank: 0, area: Area::default(), values: Vec::new() }];
        let mut kept = vec![None; flow.rows.len()];
        // Of each row which loops look at it, and where.
        let mut looks: Vec<Vec<(usize, Use)>> = vec![Vec::new(); flow.rows.len()];
        for (place, used) in flow.looked(flow.stores.iter().flatten()) {
            looks[place].push((0, used));
        }
        // Users come after what they use, so backwards all of them are known when a value's turn comes.
        for (place, row) in flow.rows.iter().enumerate().rev() {
            let own = &looks[place];
            let Some(&(first, _)) = own.first() else { continue };
            let is_here = own.iter().all(|(_, used)| (used.i, used.j) == (0, 0));
            let areas = own.iter().map(|&(number, used)| loops[number].area.seen(used));
            let area = areas.reduce(Area::union).unwrap_or_default();
            let number = match row.source {
                Source::Field(..) => {
                    kept[place] = (!is_here).then_some(area);
                    continue;
                }
                Source::Def(..) if is_here && own.iter().all(|(number, _)| *number == first) => first,
                Source::Def(..) => {
                    kept[place] = Some(area);
                    let rank = 1 + own.iter().map(|(number, _)| loops[*number].rank).max().unwrap_or(0);
                    let known = loops.iter().position(|own| own.rank == rank && own.area == area);
                    known.unwrap_or_else(|| {
                        loops.push(Loop { rank, area, values: Vec::new() });
                        loops.len() - 1
                    })
                }
            };
            loops[number].values.insert(0, place);
            for (place, used) in flow.looked(&row.uses) {
                looks[place].push((number, used));
            }
        }
        loops.sort_by_key(|own| std::cmp::Reverse(own.rank));
        Self { loops, kept }
    }

    /// What a loop looks at: its values, and the outputs if it is the last.
    pub fn uses<'a>(&'a self, flow: &'a Flow, number: usize) -> impl Iterator<Item = (usize, Use)> + 'a {
        let of_values = self.loops[number].values.iter().flat_map(|&place| &flow.rows[place].uses);
        let is_last = number + 1 == self.loops.len();
        let of_stores = flow.stores.iter().filter(move |_| is_last).flatten();
        flow.looked(of_values.chain(of_stores))
    }

    /// Whether a loop begins after a barrier that the one before it has not had.
    pub fn waits(&self, number: usize) -> bool {
        number > 0 && self.loops[number].rank < self.loops[number - 1].rank
    }

    /// The first loop that looks at a field's tile.
    pub fn first_reader(&self, flow: &Flow) -> Option<usize> {
        let is_read = |place: usize| flow.rows[place].uses.is_empty() && self.kept[place].is_some();
        (0..self.loops.len()).find(|&number| self.uses(flow, number).any(|(place, _)| is_read(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Precision;
    use crate::plan::prepare;
    use crate::source::Source as Text;
    use crate::step::{Edge, Rows, StepTask};

    /// What each loop computes, after which barriers and how far around a tile.
    fn told(body: &str) -> Vec<String> {
        let text = format!("stencil s {{ in a; out r\n{body} }}");
        let stencil = prepare(&crate::check(&Text::new("s", &text)).stencils[0], Precision::F64, true);
        let task = StepTask {
            stencil: &stencil,
            precision: Precision::F64,
            extents: [8, 8, 2],
            rows: Rows { first: 0, row: 8, plane: 64 },
            edges: [Edge::Periodic; 2],
        };
        let flow = Flow::new(&task).unwrap();
        let loops = Loops::new(&flow);
        let name = |place: &usize| match flow.rows[*place].source {
            Source::Field(field, _) => stencil.fields[field].name.clone(),
            Source::Def(def, _) => stencil.defs[def].name.clone(),
        };
        let text = |own: &Loop| {
            let names: Vec<String> = own.values.iter().map(name).collect();
            let Area { i, j } = own.area;
            format!("{}: {} i {}..{} j {}..{}", own.rank, names.join(" "), i.low, i.high, j.low, j.high)
        };
        let tiles = (0..flow.rows.len()).filter(|&place| loops.kept[place].is_some());
        let tiles: Vec<String> = tiles.map(|place| name(&place)).collect();
        loops.loops.iter().map(text).chain([tiles.join(" ")]).collect()
    }

    #[test]
    fn what_is_looked_at_beside_a_cell_is_kept() {
        let body = "let l = a[j-1] + a[j+1]\nlet g = l * 2\nlet s = g[i+1] - g\nr = s * s + g";
        assert_eq!(told(body), ["1: l g i 0..1 j 0..0", "0: s i 0..0 j 0..0", "a g"]);
    }

    #[test]
    fn values_of_one_area_share_a_loop() {
        // `x` is looked at in two definitions, which are computed in the same loop.
        let body = "let x = a * a\nlet u = x + 1\nlet v = x - 1\nr = u[i-1] + v[i-1]";
        assert_eq!(told(body), ["1: x u v i -1..-1 j 0..0", "0:  i 0..0 j 0..0", "u v"]);
        // Of different areas, they do not, and then it is kept.
        let body = "let x = a * a\nlet u = x + 1\nlet v = x - 1\nr = u[i-1] + v[i+1]";
        let expected =
            ["2: x i -1..1 j 0..0", "1: v i 1..1 j 0..0", "1: u i -1..-1 j 0..0", "0:  i 0..0 j 0..0", "x u v"];
        assert_eq!(told(body), expected);
    }

    #[test]
    fn what_is_only_here_is_nowhere_kept() {
        assert_eq!(told("let x = 2 * a\nr = x * x"), ["0: x i 0..0 j 0..0", ""]);
    }
}
