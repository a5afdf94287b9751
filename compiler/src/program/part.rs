//! A program on a part of its grid: some rows along j.
//!
//! An edge between two parts is an edge like any other, beyond which the cells of the neighbour lie. So stages, regions, kernels and whoever
//! fills halos know of no parts: somebody brings the neighbour's rows, once its own halo is filled.

use super::{Beyond, Halo, Stage, Staged, beyond};
use crate::analysis::extents::reaches;
use crate::diagnostic::Refusal;
use crate::grid::{Form, Grid, Region};
use crate::ir::program::{GridAxis, Side};
use crate::ir::{Handle, VariableId, needed};
use std::ops::Range;

/// The rows of a part, of so many rows in so many parts, if they are cut at all: as many for each, but for one more where they do not divide.
pub fn rows_of_part(nj: usize, parts: usize, part: usize) -> Range<usize> {
    let (each, more) = (nj / parts, nj % parts);
    let first = |part: usize| part * each + part.min(more);
    first(part)..first(part + 1)
}

impl Staged {
    /// The rows of each of so many parts: as many for each, but for one more where they do not divide.
    ///
    /// # Errors
    /// The grid has no rows, or too few: a part has at least as many as are looked at beyond its edges. A stage fetches what lies beyond edges by
    /// itself; or gives a field without rows, and computes none in some part.
    pub fn rows_of_parts(&self, parts: usize) -> Result<Vec<Range<usize>>, Refusal> {
        let (name, nj) = (&self.program.name, self.domain.nj);
        if self.domain.form != Form::Rows {
            return Err(Refusal::new(format!(
                "program `{name}` is on a grid whose cells stand in no rows, and parts are rows"
            ))
            .help("leave out --gpus, or give --grid NIxNJxNK"));
        }
        if let Some(stage) = self.stages.iter().find(|stage| stage.wraps || !stage.carry.is_empty()) {
            let own = &stage.stencil.name;
            return Err(Refusal::new(format!(
                "the kernel of `{own}` fetches what lies beyond an edge by itself, from one grid"
            ))
            .help("on parts of a grid there are --fuse separate, merged and recomputed"));
        }
        let beyond = self.beyond_rows().into_iter().flatten().max().unwrap_or(0);
        let least = beyond.max(1);
        if nj / parts < least {
            let most = nj / least;
            let why = match beyond {
                0 => "each has at least one".to_owned(),
                _ => format!("program `{name}` looks at {beyond} beyond an edge, so each has at least as many"),
            };
            let rows = if nj == 1 { "1 row is".to_owned() } else { format!("{nj} rows are") };
            return Err(Refusal::new(format!("{rows} too few for {parts} parts: {why}")).help(match most {
                0 | 1 => format!("a grid with {} rows along j can be cut like that", parts * least),
                _ => format!("give at most --gpus {most}, or a grid with more rows along j"),
            }));
        }
        let all: Vec<Range<usize>> = (0..parts).map(|part| rows_of_part(nj, parts, part)).collect();
        self.check_without_rows(&all)?;
        Ok(all)
    }

    /// Refuses parts some of which compute nothing of a call that gives a field without rows: each part has such a field for itself.
    fn check_without_rows(&self, all: &[Range<usize>]) -> Result<(), Refusal> {
        let before = self.halo.width(GridAxis::J, Side::Low);
        for stage in &self.stages {
            let (start, end) = (stage.region.j.start - before, stage.region.j.end - before);
            let is_empty = |rows: &Range<usize>| rows.start.max(start) >= rows.end.min(end);
            let mut written = stage.writes().map(|(_, variable)| &self.program.variables[variable]);
            let Some(own) = written.find(|own| !GridAxis::J.is_of(own.place)) else { continue };
            let Some(part) = all.iter().position(is_empty) else { continue };
            let (stencil, parts, rows) = (&stage.stencil.name, all.len(), end - start);
            return Err(Refusal::new(format!(
                "`{stencil}` computes {rows} rows, none of them in part {} of {parts}, and gives `{}`, which has no rows: that part would not know it",
                part + 1,
                own.name
            ))
            .help("give fewer --gpus, so that all parts have rows that it computes"));
        }
        Ok(())
    }

    /// How many rows are looked at beyond each side of an edge along j: what stages read, and what rules take to fill halos.
    fn beyond_rows(&self) -> [[usize; 2]; 2] {
        let mut read = [0; 2];
        for (_, reach) in self.reads_along_j() {
            read.iter_mut().zip(reach).for_each(|(most, own)| *most = own.max(*most));
        }
        [read, Side::BOTH.map(|side| self.halo.width(GridAxis::J, side))]
    }

    /// Which variables that have rows stages read, and how many rows before and behind a cell.
    fn reads_along_j(&self) -> impl Iterator<Item = (VariableId, [usize; 2])> {
        self.stages.iter().flat_map(move |stage| {
            let reaches = reaches(&needed(&stage.stencil));
            stage.reads().filter_map(move |(field, variable)| {
                let reach = reaches[field.index()]?;
                let has_rows = GridAxis::J.is_of(self.program.variables[variable].place);
                has_rows.then(|| (variable, Side::BOTH.map(|side| beyond(reach, GridAxis::J, side))))
            })
        })
    }

    /// Whether a variable is read beside its own row, by variable: then parts look at each other's.
    pub fn is_shared_by_parts(&self) -> Vec<bool> {
        let mut shared = vec![false; self.program.variables.len()];
        for (variable, reach) in self.reads_along_j() {
            shared[variable.index()] |= reach != [0, 0];
        }
        shared
    }

    /// The same program on one of the parts whose rows are these.
    pub fn part(&self, all: &[Range<usize>], part: usize) -> Self {
        let (rows, [read, _]) = (all[part].clone(), self.beyond_rows());
        let is_inner = |side: Side| match side {
            Side::Low => part > 0,
            Side::High => part + 1 < all.len(),
        };
        let mut halo: Halo = self.halo;
        for side in Side::BOTH {
            let width = if is_inner(side) { read[side as usize] } else { self.halo.width(GridAxis::J, side) };
            halo = halo.with(GridAxis::J, side, width);
        }
        let mut edges = self.edges.clone();
        for (own, is_shared) in edges.iter_mut().zip(self.is_shared_by_parts()) {
            for side in Side::BOTH {
                // Around a circle of rows, the first part and the last one are neighbours.
                let is_circle = own.beyond(GridAxis::J, side) == Some(Beyond::Periodic);
                if is_inner(side) || is_circle {
                    own.set(GridAxis::J, side, is_shared.then_some(Beyond::Neighbour));
                }
            }
        }
        let domain = Grid::rows(self.domain.ni, rows.len(), self.domain.nk);
        let mut own = Self { domain, grid: halo.around(domain), halo, edges, rims: Vec::new(), ..self.clone() };
        let before = self.halo.width(GridAxis::J, Side::Low);
        let own_before = halo.width(GridAxis::J, Side::Low);
        let moved = |region: &Region, before: usize, own_before: usize| {
            let within = |row: usize| row.clamp(before + rows.start, before + rows.end) - before - rows.start;
            Region { j: own_before + within(region.j.start)..own_before + within(region.j.end), ..region.clone() }
        };
        own.computed = moved(&self.computed, 0, 0);
        let inner = own.inner();
        own.stages = self
            .stages
            .iter()
            .map(|stage| {
                let region = moved(&stage.region, before, own_before);
                Stage { is_whole: region == inner, region, ..stage.clone() }
            })
            .collect();
        own
    }
}
