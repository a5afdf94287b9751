//! Levels that are said by their numbers: `w[level nk]`, `theta[i+1, level base]`. A number is that of a level, whatever level it is
//! read from, so what leads there is it less `k`: behind lowering such a read is one on a level that is data.

use super::moved::{Leads, LevelOffset};
use super::{Found, Lowering};
use crate::ast::{Expr, ExprId};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::program::GridAxis;
use crate::ir::{Binary, Body, DefId, Field, Kind, Levels, Node, NodeId, Precision, scalar};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// The word before the number.
pub(super) const LEVEL: &str = "level";

/// A level that some grid has is there on one of up to so many levels, or on many.
const FEW: i32 = 1 << 10;
const MANY: i32 = 1 << 20;

/// What stands in a number of a level and must not, and where.
enum Wrong {
    Level(Span),
    Read(Span),
    Param(Span),
}

impl Lowering<'_> {
    /// `level nk - 1` in brackets, if that is what stands there.
    pub(super) fn level_said(&mut self, part: ExprId) -> Option<Found<LevelOffset>> {
        let number = match &self.file.exprs[part] {
            Expr::Level(number) => *number,
            _ if self.begins_with(part, &[LEVEL]) && !self.is_name(LEVEL) => return Some(self.no_number(part)),
            Expr::Call(name, _) if name.text == LEVEL && !self.is_name(LEVEL) => return Some(self.no_number(part)),
            _ => return None,
        };
        Some(self.level_itself(number, self.span(part)))
    }

    fn is_name(&self, name: &str) -> bool {
        self.scope.find(name).is_some() || self.globals.find(name).is_some()
    }

    /// Reports `a[level]` and `a[level - 1]`.
    fn no_number<T>(&mut self, part: ExprId) -> Found<T> {
        let found = Diagnostic::error(self.span(part), "`level` says a level by its number");
        let found = match &self.file.exprs[part] {
            Expr::Name(_) => found.label("which level?"),
            Expr::Call(..) => found.label("write a blank behind `level`"),
            _ => found.label("begins with a sign"),
        };
        self.report(found.help(
            "levels are counted from 0, the highest: `a[level 0]`, `a[level nk - 1]`; so many levels further is `a[k+n]`",
        ))
    }

    fn level_itself(&mut self, number: ExprId, span: Span) -> Found<LevelOffset> {
        let number = self.ungrouped(number);
        let (first, terms) = self.terms(number);
        let terms: Vec<_> = [(Binary::Add, first)].into_iter().chain(terms).collect();
        let is_data = terms.iter().any(|(_, term)| self.is_of_a_field(*term));
        let itself = match is_data {
            false => self.known_number(number, true)?,
            true => {
                let (mut sum, others) = self.data_among(terms)?;
                for (op, term) in others {
                    let own = self.known_number(term, false)?;
                    sum = self.node(Node::Binary(op, sum, own), Kind::Int, span)?;
                }
                sum
            }
        };
        let level = self.node(Node::Level, Kind::Int, span)?;
        let by = self.node(Node::Binary(Binary::Sub, itself, level), Kind::Int, span)?;
        let leads = if is_data { Leads::DataItself(by) } else { Leads::Said(itself, by) };
        Some(LevelOffset { by: 0, leads: Some(leads) })
    }

    /// A whole number that is known before anything is computed.
    fn known_number(&mut self, expr: ExprId, with_params: bool) -> Found<NodeId> {
        let (span, node) = (self.span(expr), self.scalar(expr)?);
        if self.kind(node)? != Kind::Int {
            let found = wrong(span, "levels are counted in whole numbers", "not a whole number");
            return self.report(found.help("as in `a[level 0]` or `a[level nk - 1]`"));
        }
        let body = self.bodies.last()?.body.rooted(node);
        let Some(own) = self.wrong_in_number(&body, with_params) else { return Some(node) };
        let found = match own {
            Wrong::Level(at) => wrong(at, "a level by its number is the same wherever it is read", "`k` is not")
                .help("so many levels further than the cell's is `a[k+n]`"),
            Wrong::Read(at) => wrong(at, "which level is read is known before anything is computed", "computed").help(
                "a level is a known number, or that of an `int` field as it stands, and perhaps a known number more: \
                 `a[level n + 1]`",
            ),
            Wrong::Param(at) => wrong(at, "what is added to data is known when compiling", "a parameter")
                .help("add it to the numbers of the field, or write a `const` instead"),
        };
        self.report(found)
    }

    /// What makes a number no known one. Definitions are followed.
    fn wrong_in_number(&self, body: &Body, with_params: bool) -> Option<Wrong> {
        let wrong = |node: &Node, at: Span| match node {
            Node::Read { .. } | Node::Present { .. } | Node::InZone(_) => Some(Wrong::Read(at)),
            Node::Level => Some(Wrong::Level(at)),
            Node::Param(_) if !with_params => Some(Wrong::Param(at)),
            _ => None,
        };
        let within = self.defs_in(body).into_iter().map(|def| &self.stencil.defs[def].body);
        let at = body.span_of(body.root());
        let own = body.iter().find_map(|(id, node)| wrong(node, body.span_of(id)));
        own.or_else(|| within.flat_map(Body::iter).find_map(|(_, node)| wrong(node, at)))
    }

    /// The definitions that a body is made of.
    fn defs_in(&self, body: &Body) -> BTreeSet<DefId> {
        let mut waiting: BTreeSet<DefId> = body.uses().map(|(def, _)| def).collect();
        let mut all = BTreeSet::new();
        while let Some(def) = waiting.pop_last() {
            waiting.extend(self.stencil.defs[def].body.uses().map(|(def, _)| def));
            all.insert(def);
        }
        all
    }

    /// Reports a level that the field has on no grid, `further` than a number says.
    pub(super) fn check_there(&mut self, field: &Field, further: i32, number: NodeId, span: Span) -> Found<()> {
        let body = self.bodies.last()?.body.rooted(number);
        let more = i64::from(field.place.levels == Levels::Interfaces);
        let is_there = |nk: i32| {
            let level = self.number_on(&body, nk).map(|level| i64::from(level) + i64::from(further));
            // Parameters are known when running.
            level.is_none_or(|level| (0..i64::from(nk) + more).contains(&level))
        };
        if is_there(MANY) || (1..FEW).any(is_there) {
            return Some(());
        }
        let name = &field.name;
        let found = Diagnostic::error(span, format!("`{name}` has no such level, however many there are"));
        let is_behind = self.number_on(&body, MANY).is_some_and(|level| level > 0);
        let found = found.label(if is_behind { "behind the last one" } else { "before the first one" });
        let found = found.note(field.span, "declared here");
        self.report(found.help(match field.place.levels {
            Levels::Interfaces => "its levels are `level 0`, the highest, to `level nk`, the lowest interface",
            Levels::Full | Levels::None => "its levels are `level 0`, the highest, to `level nk - 1`, the lowest",
        }))
    }

    /// What a known number is on so many levels; nothing if a parameter says it.
    fn number_on(&self, body: &Body, nk: i32) -> Option<i32> {
        let mut found: BTreeMap<DefId, Option<scalar::Value>> = BTreeMap::new();
        let value = |body: &Body, found: &BTreeMap<DefId, Option<scalar::Value>>| {
            let values = body.of_nodes(|_, node, values: &[Option<scalar::Value>]| match node {
                Node::Use { def, .. } => found.get(def).copied().flatten(),
                Node::Count(GridAxis::K) => Some(scalar::Value::Int(nk)),
                _ => {
                    let operands: Option<Vec<_>> =
                        node.operands().iter().map(|operand| values[crate::ir::Handle::index(*operand)]).collect();
                    operands.and_then(|operands| scalar::apply(Precision::F64, node, &operands))
                }
            });
            values.last().copied().flatten()
        };
        for def in self.defs_in(body) {
            let own = value(&self.stencil.defs[def].body, &found);
            found.insert(def, own);
        }
        value(body, &found).map(scalar::Value::int)
    }
}

/// Whether a body reads on a level that is data.
pub(super) fn reads_where_data_says(body: &Body) -> bool {
    body.iter().any(|(_, node)| match node {
        Node::Read { by: Some(by), .. } => body.is_data(*by),
        _ => false,
    })
}
