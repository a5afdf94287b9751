//! `h = step(h, ..) on interior, levels 3..nk`, `t = heated(t) on i 0..3`: a call that computes a part of what its stencil does.
//!
//! The part is a stencil of its own, whose zones and bounds are those of the call. Where it ends may depend on numbers of the program;
//! then these are parameters of that stencil.

use super::{ExprId, Programmer};
use crate::ast::{self, Within};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::Zones;
use crate::ir::program::GridAxis;
use crate::ir::{Body, Bound, Bounding, Kind, Node, Param, ParamId, Part, Stencil};
use crate::lower::Found;
use crate::lower::sweep::single;
use crate::lower::within::noun;
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
        if !place.zones.is_empty() {
            let zones = self.zones_of(stencil, place)?;
            let names = place.zones.iter().map(|name| name.text.as_str());
            part.stencil.name = [part.stencil.name.as_str()].into_iter().chain(names).collect::<Vec<_>>().join("_");
            part.stencil.zones = Some(zones);
        }
        for within in &place.within {
            match within.axis {
                GridAxis::I | GridAxis::J => part.stencil.name.push_str(&format!("_{}", within.axis)),
                GridAxis::K => part.stencil.name.push_str("_levels"),
            }
            self.restrict(&mut part, stencil, within)?;
        }
        let names = place.zones.iter().map(|name| name.text.clone());
        let text = names.chain(place.within.iter().map(Within::line)).collect::<Vec<_>>().join(", ");
        part.stencil.part = Some(Part { of: stencil.name.clone(), place: FreeText::new(text) });
        Some(part)
    }

    /// The zones of a call, as far as the stencil computes them.
    fn zones_of(&mut self, stencil: &Stencil, place: &'a ast::Where) -> Found<Zones> {
        let Some(over) = &self.lowering.over else {
            let found = wrong(place.span, "zones are parts of the sets of a mesh", "on a grid");
            return self.report(found.help("on a grid one says `i 0..3`, `j nj - 1`, `levels 1..nk`"));
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

    /// Restricts a stencil to a part of an axis, of what it computes.
    fn restrict(&mut self, part: &mut Called, whole: &Stencil, within: &'a Within) -> Found<()> {
        let axis = within.axis;
        self.lowering.check_axis(within)?;
        if axis == GridAxis::K && !whole.sweeps.is_empty() {
            let found = Diagnostic::error(within.span, format!("`{}` sweeps through all levels", whole.name));
            return self.report(found.label("but these are some").help("leave it out"));
        }
        self.lowering.counts_columns = true;
        let numbers = within.ends().into_iter().map(|(is, expr)| {
            let body = self.number(expr, Some(Kind::Int), noun(axis))?;
            let text = FreeText::new(within.line_of(self.span(expr)));
            Some(Bound { axis, is, body, text, span: within.span })
        });
        let numbers: Vec<Option<Bound>> = numbers.collect();
        self.lowering.counts_columns = false;
        let bounds = numbers.into_iter().collect::<Option<Vec<Bound>>>()?;
        if let Some(found) = self.lowering.misplaced(whole, &bounds) {
            return self.report(found);
        }
        for bound in bounds {
            let name = match (axis, bound.is) {
                (GridAxis::K, Bounding::Only) => "level".to_owned(),
                (GridAxis::K, Bounding::First) => "first_level".to_owned(),
                (GridAxis::K, Bounding::End) => "end_of_levels".to_owned(),
                (_, Bounding::Only) => format!("only_{axis}"),
                (_, Bounding::First) => format!("first_{axis}"),
                (_, Bounding::End) => format!("end_of_{axis}"),
            };
            let body = part.bound(&bound.body, &name, within.span);
            part.stencil.within.push(Bound { body, ..bound });
        }
        Some(())
    }

    /// The number of a part among the program's stencils, which hold each once.
    pub(super) fn number_of_part(&mut self, part: &mut Stencil) -> usize {
        let known = self.program.stencils.iter().position(|own| {
            let is_same = |(own, other): (&Bound, &Bound)| {
                (own.axis, own.is, own.body.nodes()) == (other.axis, other.is, other.body.nodes())
            };
            own.part.is_some()
                && own.whole_name() == part.whole_name()
                && own.zones == part.zones
                && own.within.len() == part.within.len()
                && own.within.iter().zip(&part.within).all(is_same)
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
    /// A number as the stencil has it: itself, where it is made of `ni`, `nj`, `nk` and literals; else a parameter that it is passed to.
    fn bound(&mut self, number: &Body, name: &str, span: Span) -> Body {
        let is_plain = |node: &Node| matches!(node, Node::Int(_) | Node::Count(_) | Node::Binary(..) | Node::Negate(_));
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
