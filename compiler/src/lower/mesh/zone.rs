//! Zones: ranges of a set's elements, such as a rim and the interior.

use crate::ast::{self, Argument, Expr, ExprId, Name};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::mesh::{Mesh, Missing, Zone, Zones};
use crate::ir::{Kind, Node, Origin, SetId};
use crate::lower::value::Nodes;
use crate::lower::{Found, Lowering};
use crate::source::Span;

/// The function that asks for the zone of the element at hand, or of one where a way leads.
pub const IN_ZONE: &str = "in_zone";

/// The most zones of a set.
const ZONES: usize = 64;

impl<'a> Lowering<'a> {
    /// `zone lateral, interior on edge`
    pub(super) fn add_zones(&mut self, mesh: &mut Mesh, names: &'a [Name], set: &'a Name) -> Found<()> {
        let own = self.set_named(mesh, set)?;
        let set_name = &set.text;
        if let Some(before) = mesh.sets[own].zones.first() {
            let found = wrong(set.span, format!("the zones of `{set_name}` are named twice"), "again here");
            let found = found.note(before.span, "first here");
            return self.report(found.help("name them all in one line: each element is in one of them"));
        }
        if let Some(name) = names.get(ZONES) {
            return self.report(wrong(name.span, format!("a set has at most {ZONES} zones"), "one too many"));
        }
        for name in names {
            if let Some(before) = mesh.sets[own].zones.iter().find(|zone| zone.name == name.text) {
                let found = wrong(name.span, format!("`{set_name}` has two zones `{}`", name.text), "again here");
                return self.report(found.note(before.span, "first here"));
            }
            mesh.sets[own].zones.push(Zone { name: name.text.clone(), span: name.span });
        }
        Some(())
    }

    /// `zones nudging, interior`
    pub(in crate::lower) fn declare_zones(&mut self, own: &'a ast::Zones) {
        if let Some(before) = self.zones_said.replace(own.span) {
            let found = wrong(own.span, "which zones are computed is said twice", "said again");
            return self.tell(found.note(before, "said here").help("name them all in one line"));
        }
        self.stencil.zones = self.own_set(own.span).and_then(|(mesh, set)| self.range_of_zones(mesh, set, &own.names));
    }

    /// `in_zone(nudging)[cells.0]`: of the element where a way leads.
    pub(super) fn in_zone_of(&mut self, asked: ExprId, parts: &[ExprId], span: Span) -> Found<Nodes> {
        let (mesh, own) = self.own_set(span)?;
        let names = parts.first().and_then(|&part| self.trail_of(part)).filter(|names| self.is_trail(names));
        let (Some(names), [part]) = (names, parts) else {
            let found = wrong(span, "the zone of a neighbour is asked for along a way", "no way");
            return self.report(found.help("as in `in_zone(interior)[cells.0]`; zones are the same on all levels"));
        };
        let path = self.one_path(&names, self.span(*part))?;
        self.check_holes(&path, span)?;
        let questions = self.zones_asked.len();
        let bound = self.at_elements(mesh.end(own, &path), |there| there.bind(asked, IN_ZONE, Origin::Base))?;
        // What is true of all elements that are computed need not be so of their neighbours.
        self.zones_asked.truncate(questions);
        let moved = bound.map(|alias| self.moved_to(alias, &path, span)).collected()?;
        let mut is_in = self.place_value(moved, span)?;
        // What a hole is read as is in no zone.
        for (beginning, _) in self.doubtful(&path, Missing::Value).into_iter().rev() {
            is_in = is_in
                .map(|node| {
                    let present = self.node(Node::Present { path: beginning.clone() }, Kind::Bool, span)?;
                    self.node(Node::And(present, node), Kind::Bool, span)
                })
                .collected()?;
        }
        Some(is_in)
    }

    /// `in_zone(lateral, nudging)`
    pub(in crate::lower) fn in_zone(&mut self, arguments: &'a [Argument], span: Span) -> Found<Nodes> {
        let (mesh, set) = self.own_set(span)?;
        let names: Option<Vec<Name>> = arguments.iter().map(|own| self.zone_argument(own)).collect();
        let Some(names) = names.filter(|names| !names.is_empty()) else {
            let found = Diagnostic::error(span, "`in_zone` asks whether the element at hand is in one of some zones");
            let first = mesh.sets[set].zones.first().map_or("interior", |zone| &zone.name);
            return self.report(found.label(format!("as in `in_zone({first})`")));
        };
        let numbers = self.numbers_of_zones(mesh, set, &names)?;
        // A function may be called from stencils of other zones, too.
        if self.calls.is_empty() && self.other_set().is_none() {
            self.zones_asked.push((span, numbers.clone()));
        }
        // Zones that follow each other are one question.
        let ranges = numbers.chunk_by(|a, b| b - a == 1).filter_map(|some| {
            let (&first, &last) = some.first().zip(some.last())?;
            Some(Zones { first, last })
        });
        let mut is_in = None;
        for zones in ranges {
            let own = self.node(Node::InZone(zones), Kind::Bool, span)?;
            is_in = Some(match is_in {
                None => own,
                Some(before) => self.node(Node::Or(before, own), Kind::Bool, span)?,
            });
        }
        Some(Nodes::One(is_in?))
    }

    /// Warns of questions for zones whose answer is the same at all elements that the stencil computes.
    pub(in crate::lower) fn finish_zones(&mut self) {
        let asked = std::mem::take(&mut self.zones_asked);
        let Some((mesh, set)) = self.site().filter(|_| !asked.is_empty()) else { return };
        let all = Zones { first: 0, last: (mesh.sets[set].zones.len().max(1) - 1) as u8 };
        let own = self.stencil.zones.unwrap_or(all);
        for (span, zones) in asked {
            let (name, computed) = (&mesh.sets[set].name, mesh.zone_names(set, own));
            let (what, label) = if (own.first..=own.last).all(|zone| zones.contains(&zone)) {
                ("at every element that is computed", "always true")
            } else if !zones.iter().any(|&zone| own.contain(zone)) {
                ("at no element that is computed", "never true")
            } else {
                continue;
            };
            let found = Diagnostic::warning(span, format!("this condition is true {what}")).label(label);
            self.warn(match self.zones_said {
                Some(said) => found.note(said, format!("computed are {computed} alone")),
                None => found.help(format!("the zones of `{name}` are {computed}")),
            });
        }
    }

    fn zone_argument(&self, argument: &Argument) -> Option<Name> {
        match &self.file.exprs[argument.value] {
            Expr::Name(text) => Some(Name { text: text.clone(), span: self.span(argument.value) }),
            _ => None,
        }
    }

    /// The mesh and the set of the stencil; what has none is reported.
    fn own_set(&mut self, span: Span) -> Found<(&'a Mesh, SetId)> {
        match self.site() {
            Some(site) => Some(site),
            None if self.is_over_mesh() => {
                let found = Diagnostic::error(span, "zones are those of a stencil's set").label("in a program");
                self.report(found.help("a stencil says `zones ...`, or asks `in_zone(...)`"))
            }
            None => self.only_over_mesh(span, "zones are parts of the sets of a mesh", "on a grid"),
        }
    }

    /// A set of the mesh that has zones.
    pub(in crate::lower) fn zoned_set(&mut self, mesh: &Mesh, name: &Name) -> Found<SetId> {
        let set = self.set_named(mesh, name)?;
        if mesh.sets[set].zones.is_empty() {
            let found = wrong(
                name.span,
                format!("the mesh `{}` names no zones of `{}`", mesh.name, name.text),
                "leave this out",
            );
            return self.report(found.note(mesh.sets[set].span, "the set"));
        }
        Some(set)
    }

    /// Zones that follow each other.
    pub(in crate::lower) fn range_of_zones(&mut self, mesh: &Mesh, set: SetId, names: &[Name]) -> Found<Zones> {
        let numbers = self.numbers_of_zones(mesh, set, names)?;
        let (&first, &last) = numbers.first().zip(numbers.last())?;
        if usize::from(last - first) + 1 != numbers.len() {
            let missing = (first..last).find(|number| !numbers.contains(number))?;
            let missing = &mesh.sets[set].zones[usize::from(missing)].name;
            let span = names.first()?.span;
            let found = Diagnostic::error(span, "these zones do not follow each other");
            let found = found.label(format!("`{missing}` lies between them"));
            return self.report(found.help("what is computed is one range: make two calls, or name all in between"));
        }
        Some(Zones { first, last })
    }

    /// The numbers of zones of a set, each once, in their order.
    fn numbers_of_zones(&mut self, mesh: &Mesh, set: SetId, names: &[Name]) -> Found<Vec<u8>> {
        let own = &mesh.sets[set];
        let known: Vec<&str> = own.zones.iter().map(|zone| zone.name.as_str()).collect();
        let mut numbers: Vec<u8> = Vec::new();
        for name in names {
            let Some(number) = known.iter().position(|zone| *zone == name.text) else {
                let message = format!("`{}` has no zone `{}`", own.name, name.text);
                let elsewhere = mesh.sets.iter().find(|(_, set)| set.zones.iter().any(|zone| zone.name == name.text));
                let found = Diagnostic::error(name.span, message).note(own.span, "the set");
                return self.report(found.meant(guess(&name.text, known.iter().copied()), |found| {
                    match (known.is_empty(), elsewhere) {
                        (_, Some((_, other))) => found.label(format!("a zone of `{}`", other.name)),
                        (true, None) => found.label("it has no zones").help(format!(
                            "declare them in the mesh, all of them: `zone {}, ... on {}`",
                            name.text, own.name
                        )),
                        (false, None) => found.label(format!("its zones are {}", known.join(", "))),
                    }
                }));
            };
            let number = number as u8;
            if numbers.contains(&number) {
                return self.report(wrong(name.span, format!("the zone `{}` is named twice", name.text), "again here"));
            }
            numbers.push(number);
        }
        numbers.sort_unstable();
        Some(numbers)
    }
}
