//! `h = step(h, ..) on interior, levels 3..nk`: a call that computes a part of what its stencil does.
//!
//! The part is a stencil of its own, whose zones and levels are those of the call. Where levels end may depend on numbers of the program;
//! then these are parameters of that stencil.

use super::{ExprId, Programmer};
use crate::analysis::levels::may_go_on;
use crate::ast::{self, Levels};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::Zones;
use crate::ir::{Body, Bounding, Kind, LevelBound, Node, Param, ParamId, Part, Relation, Stencil};
use crate::lower::Found;
use crate::lower::sweep::single;
use crate::source::Span;
use crate::text::FreeText;

/// What a call computes of its stencil.
pub(super) struct Called {
    /// The stencil that computes it.
    pub stencil: Stencil,
    /// What is passed to the parameters that it has beside those of the whole one.
    pub passed: Vec<Body>,
}

impl<'a> Programmer<'_, 'a> {
    /// What is said of where a call is computed, if anything is.
    pub(super) fn place_of(&self, call: ExprId) -> Option<&'a ast::Where> {
        self.lowering.file.wheres.get(&call)
    }

    /// Reports what is said of where something is computed that is no call of a stencil.
    pub(super) fn is_no_place(&mut self, value: ExprId) -> bool {
        let Some(place) = self.place_of(value) else { return false };
        let found =
            wrong(place.span, "where something is computed is said of a call of a stencil", "this is no such call");
        self.tell(found);
        true
    }

    /// The part of a stencil that is computed where a call says.
    pub(super) fn part(&mut self, stencil: &Stencil, place: &'a ast::Where) -> Found<Called> {
        let mut part = Called { stencil: stencil.clone(), passed: Vec::new() };
        let mut bounds = Vec::new();
        if !place.zones.is_empty() {
            let zones = self.zones_of(stencil, place)?;
            let names = place.zones.iter().map(|name| name.text.as_str());
            part.stencil.name = [part.stencil.name.as_str()].into_iter().chain(names).collect::<Vec<_>>().join("_");
            part.stencil.zones = Some(zones);
        }
        if let Some(levels) = &place.levels {
            part.stencil.name.push_str("_levels");
            bounds = self.restrict(&mut part, stencil, levels)?;
        }
        let names = place.zones.iter().map(|name| name.text.clone());
        let levels = place.levels.iter().map(|levels| levels.line());
        let text = names.chain(levels).collect::<Vec<_>>().join(", ");
        part.stencil.part = Some(Part { of: stencil.name.clone(), place: FreeText::new(text), bounds });
        Some(part)
    }

    /// The zones of a call, as far as the stencil computes them.
    fn zones_of(&mut self, stencil: &Stencil, place: &'a ast::Where) -> Found<Zones> {
        let Some(over) = &self.lowering.over else {
            return self.lowering.only_over_mesh(place.span, "zones are parts of the sets of a mesh", "on a grid");
        };
        let mesh = &over.declared.mesh;
        let called = self.lowering.file.stencils().filter(|own| own.name.text == stencil.name).last();
        let set = mesh.set_named(&called?.over.as_ref()?.names.get(1)?.text)?;
        let zones = self.lowering.range_of_zones(mesh, set, &place.zones)?;
        let Some(own) = stencil.zones else { return Some(zones) };
        let both = Zones { first: zones.first.max(own.first), last: zones.last.min(own.last) };
        if both.first > both.last {
            let message = format!("`{}` computes nothing here", stencil.name);
            let found = wrong(place.span, message, format!("it says `zones {}`", mesh.zone_names(set, own)));
            return self.report(found.help("leave one of both out"));
        }
        Some(both)
    }

    /// Restricts a stencil to some levels, of those that it computes.
    fn restrict(&mut self, part: &mut Called, whole: &Stencil, levels: &'a Levels) -> Found<Vec<LevelBound>> {
        if self.lowering.over.as_ref().is_some_and(|over| !over.declared.mesh.levels) {
            return self.lowering.no_levels(levels.span, "there is no `k`");
        }
        if !whole.sweeps.is_empty() {
            let found = Diagnostic::error(levels.span, format!("`{}` sweeps through all levels", whole.name));
            return self.report(found.label("but these are some").help("leave it out"));
        }
        let first = self.number(levels.first, Some(Kind::Int), "level")?;
        let end = match levels.end {
            Some(end) => Some(self.number(end, Some(Kind::Int), "level")?),
            None => None,
        };
        self.check_said(whole, levels, &first, end.as_ref())?;
        let text = |bound: ExprId| levels.line_of(self.lowering.file.exprs.span(bound));
        let mut body = match &whole.levels {
            Some(own) => own.clone(),
            None => Body::new(),
        };
        let mut is_computed = (!body.is_empty()).then(|| body.root());
        let mut bounds = Vec::new();
        let mut with = |body: &mut Body, is: Bounding, bound: &Body, (name, text): (&str, String)| {
            let relation = match is {
                Bounding::Only => Relation::Eq,
                Bounding::First => Relation::Ge,
                Bounding::End => Relation::Lt,
            };
            let number = part.bound(bound, name, levels.span);
            let level = body.add(Node::Level, Kind::Int, levels.span);
            let own = body.append(&number);
            let own = body.add(Node::Compare(relation, level, own), Kind::Bool, levels.span);
            bounds.push(LevelBound { is, text: FreeText::new(text), body: number });
            is_computed = Some(match is_computed {
                None => own,
                Some(before) => body.add(Node::And(before, own), Kind::Bool, levels.span),
            });
        };
        match &end {
            None => with(&mut body, Bounding::Only, &first, ("level", text(levels.first))),
            Some(end) => {
                with(&mut body, Bounding::First, &first, ("first_level", text(levels.first)));
                with(&mut body, Bounding::End, end, ("end_of_levels", levels.end.map(text).unwrap_or_default()));
            }
        }
        part.stencil.levels = Some(body);
        Some(bounds)
    }

    /// Reports levels that are known to lie beyond those that there are.
    fn check_said(&mut self, whole: &Stencil, levels: &Levels, first: &Body, end: Option<&Body>) -> Found<()> {
        let known = |body: &Body| if let [Node::Int(number)] = body.nodes() { Some(*number) } else { None };
        let beyond = |body: &Body| match body.nodes() {
            // `nk + 1`, as `nk` followed by what is added.
            [Node::LevelCount, Node::Int(more), Node::Binary(crate::ir::Binary::Add, ..)] => *more,
            [Node::LevelCount] => 0,
            _ => i32::MIN,
        };
        let last = i32::from(may_go_on(whole));
        let is_too_far = end.is_some_and(|end| beyond(end) > last) || end.is_none() && beyond(first) >= last;
        let found = if is_too_far {
            let found = Diagnostic::error(levels.span, "these levels go on behind the last one").label("too far");
            found.help(match last {
                0 => "to `nk + 1` where all that is written is on interfaces, `k+1`; else to `nk`",
                _ => "the last interface has the number `nk`: `levels 0..nk + 1` are all of them",
            })
        } else if known(first).is_some_and(|first| first < 0) {
            let found = Diagnostic::error(levels.span, "these levels begin before the first one").label("too early");
            found.help("levels are counted from 0, the highest")
        } else if known(first).zip(end.and_then(known)).is_some_and(|(first, end)| first >= end) {
            Diagnostic::error(levels.span, "there is no such level").label("ends where it begins, or before")
        } else {
            return Some(());
        };
        self.report(found)
    }

    /// The number of a part among the program's stencils, which hold each once.
    pub(super) fn number_of_part(&mut self, part: &mut Stencil) -> usize {
        let known = self.program.stencils.iter().position(|own| {
            let levels = |own: &Stencil| own.levels.as_ref().map(|body| body.nodes().to_vec());
            own.part.is_some()
                && own.whole_name() == part.whole_name()
                && own.zones == part.zones
                && levels(own) == levels(part)
        });
        if let Some(known) = known {
            return known;
        }
        let is_taken = |name: &str| {
            self.stencils.iter().any(|own| own.name == name) || self.program.stencils.iter().any(|own| own.name == name)
        };
        let free = (1..).map(|n| if n == 1 { part.name.clone() } else { format!("{}_{n}", part.name) });
        part.name = free.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
        self.program.stencils.push(part.clone());
        self.program.stencils.len() - 1
    }
}

impl Called {
    /// A number as the stencil has it: itself, where it is made of `nk` and literals; else a parameter that it is passed to.
    fn bound(&mut self, number: &Body, name: &str, span: Span) -> Body {
        let is_plain =
            |node: &Node| matches!(node, Node::Int(_) | Node::LevelCount | Node::Binary(..) | Node::Negate(_));
        if number.nodes().iter().all(is_plain) {
            return number.clone();
        }
        let is_taken = |name: &str| {
            let stencil = &self.stencil;
            stencil.params.iter().any(|(_, own)| own.name == name)
                || stencil.fields.iter().any(|(_, own)| own.name == name)
        };
        let free = (1..).map(|n| if n == 1 { name.to_owned() } else { format!("{name}_{n}") });
        let name = free.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
        let (kind, doc) = (Kind::Int, FreeText::default());
        let param: ParamId = self.stencil.params.add(Param { name, doc, kind, is_single: false, default: None, span });
        self.passed.push(number.clone());
        single(Node::Param(param), Kind::Int, span)
    }
}
