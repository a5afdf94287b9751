//! The columns that a stencil computes where an [`Adjacency`] says which are neighbours.
//!
//! A column is computed if every horizontal read, in whatever branch, leads to a cell, step by step. That is found
//! definition by definition: a definition has a value at a column if each of its reads leads to a cell, and each
//! definition that it uses has a value where the path leads. So the work grows with the text, not with the number of
//! paths through it.

use crate::diagnostic::Refusal;
use crate::grid::{Adjacency, Topology};
use crate::ir::{Body, DefId, FieldId, Handle, Node, Path, Stencil, varying};
use std::sync::Arc;

/// The columns that `stencil` computes, in ascending order.
///
/// # Errors
/// There is none.
pub fn columns(stencil: &Stencil, adjacency: &Adjacency) -> Result<Arc<[u32]>, Refusal> {
    columns_where(stencil, adjacency, &|_, _| true)
}

/// The same where not every field has a value on every column: `has_value` tells.
///
/// # Errors
/// There is none.
pub fn columns_where(
    stencil: &Stencil,
    adjacency: &Adjacency,
    has_value: &dyn Fn(FieldId, usize) -> bool,
) -> Result<Arc<[u32]>, Refusal> {
    let mut coverage = Coverage { stencil, adjacency, has_value, varying: varying(stencil), there: Vec::new() };
    let used = used(stencil);
    for (id, def) in stencil.defs.iter() {
        let there = if used[id.index()] { coverage.of(&def.body) } else { Vec::new() };
        coverage.there.push(there);
    }
    let mut computed = vec![true; adjacency.cells()];
    for store in &stencil.stores {
        computed.iter_mut().zip(coverage.of(&store.body)).for_each(|(computed, there)| *computed &= there);
    }
    let columns: Vec<u32> = (0..).zip(&computed).filter_map(|(column, &computed)| computed.then_some(column)).collect();
    if columns.is_empty() { Err(coverage.refusal()) } else { Ok(columns.into()) }
}

/// Which definitions an output needs.
fn used(stencil: &Stencil) -> Vec<bool> {
    let mut used = vec![false; stencil.defs.len()];
    let mut look = |body: &Body, ()| body.uses().for_each(|(def, _)| used[def.index()] = true);
    stencil.at_joined_places((), |(), _| (), |(), ()| (), &mut look);
    used
}

/// What a body needs at the end of a path.
#[derive(Clone, Copy, PartialEq)]
enum Need {
    Cell(FieldId),
    Value(DefId),
}

/// Everything that a body needs, each once.
fn needs(stencil: &Stencil, body: &Body, varying: &[bool]) -> Vec<(Path, Need)> {
    let mut needs = Vec::new();
    for (_, node) in body.iter() {
        let need = match node {
            Node::Read { field, path, .. } if stencil.fields[*field].place.horizontal => (path, Need::Cell(*field)),
            Node::Use { def, path } if varying[def.index()] => (path, Need::Value(*def)),
            _ => continue,
        };
        let need = (need.0.clone().without_levels(), need.1);
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    needs
}

struct Coverage<'a> {
    stencil: &'a Stencil,
    adjacency: &'a Adjacency,
    has_value: &'a dyn Fn(FieldId, usize) -> bool,
    varying: Vec<bool>,
    /// Of each definition, by column: whether it has a value there. Empty for those that nobody uses.
    there: Vec<Vec<bool>>,
}

impl Coverage<'_> {
    /// By column: whether a body has a value there.
    fn of(&self, body: &Body) -> Vec<bool> {
        let mut there = vec![true; self.adjacency.cells()];
        for (path, need) in needs(self.stencil, body, &self.varying) {
            for (column, there) in there.iter_mut().enumerate() {
                *there = *there && self.is_met(column, &path, need);
            }
        }
        there
    }

    fn is_met(&self, column: usize, path: &Path, need: Need) -> bool {
        Topology::Adjacent(self.adjacency).walk(column, path).is_some_and(|end| match need {
            Need::Cell(field) => (self.has_value)(field, end),
            Need::Value(def) => self.there[def.index()][end],
        })
    }

    /// Why there is no column: the read that is missing everywhere, or several that no column has together.
    fn refusal(&self) -> Refusal {
        let Self { stencil, adjacency, varying, .. } = self;
        let mut from = Path::default();
        let mut body = stencil.stores.iter().map(|store| &store.body).find(|body| !self.of(body).contains(&true));
        let mut together = Vec::new();
        let mut missing = None;
        while let Some(looked_at) = body.take() {
            let all = needs(stencil, looked_at, varying).into_iter().map(|(path, need)| (from.then(&path), need));
            let all: Vec<(Path, Need)> = all.collect();
            let alone =
                all.iter().find(|(path, need)| !(0..adjacency.cells()).any(|column| self.is_met(column, path, *need)));
            match alone {
                // What a definition needs may lie further on.
                Some((path, Need::Value(def))) => {
                    from = path.clone();
                    body = Some(&stencil.defs[*def].body);
                }
                Some((path, Need::Cell(field))) => missing = Some((path.clone(), *field)),
                None => together = all.iter().map(|(path, _)| path.clone()).filter(|path| !path.is_here()).collect(),
            }
        }
        let reason = match missing {
            Some((path, field)) => {
                format!("`{}{path}` is read, and none has a cell there", stencil.fields[field].name)
            }
            None if together.is_empty() => "none has all the neighbours that its outputs need".to_owned(),
            None => {
                together.sort();
                together.dedup();
                let paths: Vec<String> = together.iter().map(|path| format!("`{path}`")).collect();
                format!("none has all that is needed at {}", paths.join(", "))
            }
        };
        Refusal::new(format!(
            "stencil `{}` can compute none of the {} cells of the grid `{}`: {reason}",
            stencil.told(),
            adjacency.cells(),
            adjacency.name.as_told()
        ))
        .help("a cell is computed if each path that is read leads to a cell, step by step; give a larger grid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    /// ni x nj cells, numbered in rows.
    fn plane(ni: i32, nj: i32) -> Adjacency {
        let cells = || (0..nj).flat_map(|j| (0..ni).map(move |i| (i, j)));
        let at = |i: i32, j: i32| {
            if (0..ni).contains(&i) && (0..nj).contains(&j) { j * ni + i } else { -1 }
        };
        let to = |by: [i32; 2]| cells().map(|(i, j)| at(i + by[0], j + by[1])).collect();
        Adjacency::new("plane", [[-1, 0], [1, 0], [0, -1], [0, 1]].map(to), None).unwrap()
    }

    fn computed(text: &str, adjacency: &Adjacency) -> Result<Vec<u32>, String> {
        let checked = crate::check(&Source::new("own", text));
        columns(&checked.stencils[0], adjacency).map(|columns| columns.to_vec()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn columns_lack_no_neighbour_in_any_branch() {
        let plane = plane(5, 4);
        assert_eq!(
            computed("stencil s { in a; out b; b = a[i-1, j+1] }", &plane).unwrap(),
            [1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]
        );
        let text = "stencil s { in a; out b; let d = a[i-1]; b = if k < 3 { a } else { d[i-1] + d[j+1] } }";
        assert_eq!(computed(text, &plane).unwrap(), [2, 3, 4, 7, 8, 9, 12, 13, 14]);
        // Every step counts: the column at the right has no neighbour to come back from.
        let text = "stencil s { in a; out b; let d = a[i-1]; b = d[i+1] }";
        assert_eq!(computed(text, &plane).unwrap(), [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18]);
    }

    #[test]
    fn what_has_no_horizontal_axes_needs_no_neighbour() {
        let text = "stencil s { in a; in w on (k); out b; let d = 2 * w; let e = d + a; b = d[i+1] * a + e }";
        assert_eq!(computed(text, &plane(2, 1)).unwrap(), [0, 1]);
    }

    #[test]
    fn a_grid_without_columns_is_refused_with_the_path() {
        let row = plane(4, 1);
        let refused = |text: &str| computed(text, &row).unwrap_err();
        let wide = "let d = a[i-2] + a[i+2]";
        assert!(refused("stencil s { in a; out b; b = a[i-1] + a[j+1] }").contains("`a[j+1]` is read"));
        let text = format!("stencil s {{ in a; out b; {wide}; b = d[i-1] }}");
        assert!(refused(&text).contains("at `[i-3]`, `[i-1, i+2]`"));
        assert!(refused("stencil s { in a; out b; let d = a[i-2]; b = d[i-2] }").contains("`a[i-4]` is read"));
        assert!(refused("stencil s { in a; out b; b = a[i-2] + a[i+2] }").contains("at `[i-2]`, `[i+2]`"));
        assert!(refused("stencil s { in a; out b; out c; b = a[i-2]; c = a[i+2] }").contains("its outputs"));
    }
}
