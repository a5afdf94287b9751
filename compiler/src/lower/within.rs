//! `levels 1..nk`, `level nk-1`, `i 2..ni-2`: which part of an axis is computed.

use super::{Found, Lowering};
use crate::analysis::bounds::number;
use crate::analysis::levels::{Known, may_go_on};
use crate::ast::{self, Within};
use crate::diagnostic::{Diagnostic, wrong};
use crate::grid::Grid;
use crate::ir::program::GridAxis;
use crate::ir::{Body, Bound, Bounding, Kind, Levels, Node, Origin, Precision, Role, Stencil};
use crate::text::FreeText;

/// So many cells along an axis are many: what is taken from them in numbers is less.
const MANY: usize = 1 << 20;

impl<'a> Lowering<'a> {
    /// Says which part of an axis is computed.
    pub(super) fn declare_within(&mut self, own: &'a Within) {
        if self.check_axis(own).is_none() {
            return;
        }
        if let Some((_, before)) = self.within_said.iter().find(|(axis, _)| *axis == own.axis) {
            let what = match own.axis {
                GridAxis::I | GridAxis::J => format!("which part of `{}` is computed", own.axis),
                GridAxis::K => "which levels are computed".to_owned(),
            };
            let found = wrong(own.span, format!("{what} is said twice"), "said again");
            let found = found.note(*before, "said here").help("leave one of them out");
            return self.tell(found);
        }
        self.within_said.push((own.axis, own.span));
        let bounds = self.bounds(own, |lowering, expr| {
            let body = lowering.body_as(expr, Kind::Int, noun(own.axis))?;
            lowering.check_bound(&body, own)?;
            Some(body)
        });
        self.stencil.within.extend(bounds.into_iter().flatten());
    }

    /// The bounds that are written, whose numbers `number` makes.
    pub(super) fn bounds(
        &mut self,
        own: &'a Within,
        mut number: impl FnMut(&mut Self, ast::ExprId) -> Found<Body>,
    ) -> Found<Vec<Bound>> {
        self.counts_columns = true;
        let ends: Vec<Option<Bound>> = own
            .ends()
            .into_iter()
            .map(|(is, expr)| {
                let body = number(self, expr)?;
                let text = FreeText::new(own.line_of(self.span(expr)));
                Some(Bound { axis: own.axis, is, body, text, span: own.span })
            })
            .collect();
        self.counts_columns = false;
        ends.into_iter().collect()
    }

    /// Reports an axis that there is not.
    pub(super) fn check_axis(&mut self, own: &Within) -> Found<()> {
        match own.axis {
            GridAxis::K if self.lacks_levels() => self.no_levels(own.span, "there is no `k`"),
            GridAxis::I | GridAxis::J if self.is_over_mesh() => {
                let found = wrong(own.span, "a mesh has no axes `i` and `j`", "over a mesh one says zones");
                self.report(
                    found.help("zones are parts of a set, which the mesh declares: `zone rim, interior on cell`"),
                )
            }
            _ => Some(()),
        }
    }

    /// Reports a bound that depends on where something is computed.
    fn check_bound(&mut self, body: &Body, own: &Within) -> Found<()> {
        let span = own.span;
        for (id, node) in body.iter() {
            if let (Node::Count(axis @ (GridAxis::I | GridAxis::J)), GridAxis::K) = (node, own.axis) {
                let found = Diagnostic::error(body.span_of(id), "levels are the same, however many columns there are");
                return self.report(found.label(format!("how many columns there are along {axis}")).help(
                    "levels are made of `nk`, numbers, constants and parameters; a call can say more: `on levels 0..min(ni, nk)`",
                ));
            }
            let what = match node {
                Node::Read { .. } | Node::Present { .. } | Node::InZone(_) => "a field",
                Node::Level => "the level itself",
                Node::Use { def, .. } if self.stencil.defs[*def].origin != Origin::Constant => "a value at a cell",
                _ => continue,
            };
            let place = if body.span_of(id).end > 0 { body.span_of(id) } else { span };
            let found = Diagnostic::error(place, "where something is computed is known before anything is").label(what);
            let counts = if self.is_over_mesh() || own.axis == GridAxis::K { "`nk`" } else { "`ni`, `nj`, `nk`" };
            return self.report(found.help(format!("bounds are made of {counts}, numbers, constants and parameters")));
        }
        Some(())
    }

    /// What can be told of bounds once the whole stencil is known. Returns whether all is well.
    pub(super) fn finish_within(&mut self) -> bool {
        let levels = self.within_said.iter().find(|(axis, _)| *axis == GridAxis::K).copied();
        let found = match levels.filter(|_| !self.stencil.sweeps.is_empty()) {
            Some((_, span)) if self.says_all_interfaces() && !may_go_on(&self.stencil) => {
                let found = Diagnostic::error(span, "there is one interface more than there are levels");
                let found = found.label("all interfaces, and not every output is on them");
                Some(found.help("declare every output `on (i, j, k+1)`, over a mesh `on cell, k+1`; or leave this out"))
            }
            Some(_) if self.says_all_interfaces() => {
                // What goes through the interfaces is there on the last one, too.
                for field in self.stencil.fields.values_mut().filter(|field| field.role == Role::Carried) {
                    field.place.levels = Levels::Interfaces;
                }
                None
            }
            Some((_, span)) => {
                let found = Diagnostic::error(span, "a sweep goes through all levels").label("but these are some");
                Some(found.help(
                    "leave it out, and say in the sweep what holds at other levels, as in `if k < 3 { ... }`; where all outputs are on \
                     interfaces, `levels 0..nk + 1` goes through all of these",
                ))
            }
            None => self.misplaced(&self.stencil, &self.stencil.within),
        };
        let is_well = found.is_none();
        found.into_iter().for_each(|found| self.tell(found));
        is_well
    }

    /// The number of a bound that depends on no parameter.
    fn constant_bound(&self, known: &Known, bound: &Bound) -> Option<i64> {
        let is_constant = |node: &Node| match node {
            Node::Param(_) | Node::Read { .. } => false,
            Node::Use { def, .. } => self.stencil.defs[*def].origin == Origin::Constant,
            _ => true,
        };
        let is_known = bound.body.iter().all(|(_, node)| is_constant(node));
        if is_known { number(known, bound) } else { None }
    }

    /// Whether the levels that are said are all interfaces, on whatever grid.
    fn says_all_interfaces(&self) -> bool {
        let of = |levels: usize| {
            let known = Known::new(&self.stencil, Precision::F64, levels, &[]);
            let own = self.stencil.bounds(GridAxis::K).map(|bound| (bound.is, self.constant_bound(&known, bound)));
            let all = [(Bounding::First, 0), (Bounding::End, levels as i64 + 1)];
            own.eq(all.map(|(is, number)| (is, Some(number))))
        };
        of(MANY) && of(1)
    }

    /// What is wrong with bounds that lie beyond what there is, or leave nothing, on whatever grid; their numbers are those of this
    /// stencil, or program, and what is computed is `of`.
    pub(super) fn misplaced(&self, of: &Stencil, bounds: &[Bound]) -> Option<Diagnostic> {
        let known = Known::new(&self.stencil, Precision::F64, MANY, &[]).on(Grid::rows(MANY, MANY, MANY));
        let counts = |bound: &Bound| bound.body.iter().any(|(_, node)| matches!(node, Node::Count(_)));
        let number = |bound: &Bound| self.constant_bound(&known, bound);
        bounds.iter().enumerate().find_map(|(at, bound)| {
            let (axis, span) = (bound.axis, bound.span);
            let more = i64::from(axis == GridAxis::K && may_go_on(of));
            let end = MANY as i64 + more + i64::from(bound.is != Bounding::Only);
            let own = number(bound)?;
            let (what, them) = match axis {
                GridAxis::I | GridAxis::J => ("column", "columns are counted from 0"),
                GridAxis::K => ("level", "levels are counted from 0, the highest"),
            };
            if counts(bound) && own >= end {
                let found =
                    Diagnostic::error(span, format!("these {what}s go on behind the last one")).label("too far");
                return Some(match (axis, more) {
                    (GridAxis::I | GridAxis::J, _) => {
                        found.help(format!("to `n{axis}`, how many there are along {axis}"))
                    }
                    (GridAxis::K, 0) => {
                        found.help("to `nk + 1` where all that is written is on interfaces, `k+1`; else to `nk`")
                    }
                    (GridAxis::K, _) => {
                        found.help("the last interface has the number `nk`: `levels 0..nk + 1` are all of them")
                    }
                });
            }
            if !counts(bound) && own < 0 {
                let found = Diagnostic::error(span, format!("these {what}s begin before the first one"));
                return Some(found.label("too early").help(them));
            }
            let first = bounds[..at].last().filter(|first| first.span == span && !counts(first) && !counts(bound));
            let is_none = first.and_then(number).is_some_and(|first| first >= own);
            is_none.then(|| {
                Diagnostic::error(span, format!("there is no such {what}")).label("ends where it begins, or before")
            })
        })
    }
}

impl Within {
    /// Where it begins and ends.
    pub(super) fn ends(&self) -> Vec<(Bounding, ast::ExprId)> {
        match self.end {
            None => vec![(Bounding::Only, self.first)],
            Some(end) => vec![(Bounding::First, self.first), (Bounding::End, end)],
        }
    }
}

/// What there is along an axis.
pub(super) fn noun(axis: GridAxis) -> &'static str {
    match axis {
        GridAxis::I | GridAxis::J => "column",
        GridAxis::K => "level",
    }
}
