//! Boundaries: what is said of the edges of which fields.

use super::Programmer;
use crate::ast::{self, Statement};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::program::{EdgeRule, Edges, GridAxis, Side, Variable};
use crate::ir::{Body, Levels, Stored};
use crate::lower::Found;
use crate::source::Span;
use std::collections::HashSet;

/// What the boundaries of a program say.
#[derive(Default)]
pub(super) struct Boundaries<'a> {
    rules: Vec<Said<'a>>,
    /// Names that stood for a field.
    met: HashSet<&'a str>,
}

/// One rule.
#[derive(Clone)]
struct Said<'a> {
    /// Of which fields; of all if there are none.
    names: &'a [ast::Name],
    axis: GridAxis,
    sides: Vec<Side>,
    rule: &'a ast::EdgeRule,
}

/// Whether a rule names a field.
fn is_of(said: &Said, variable: &Variable) -> bool {
    said.names.iter().any(|name| name.text == variable.name)
}

impl<'a> Programmer<'_, 'a> {
    /// Reads all boundaries, so that a field knows its own when it is declared.
    pub(super) fn collect(&mut self, statements: &'a [Statement]) {
        if self.lowering.is_over_mesh() {
            // What is wrong with all of them is told later.
            return;
        }
        for statement in statements {
            if let Statement::Boundary(boundary) = statement {
                boundary.rules.iter().for_each(|rule| self.edge_rule(&boundary.names, rule));
            }
        }
    }

    fn edge_rule(&mut self, names: &'a [ast::Name], rule: &'a ast::EdgeRule) {
        let name = &rule.axis.text;
        let Some(axis) = GridAxis::ALL.into_iter().find(|axis| axis.name() == name) else {
            return self.tell(wrong(rule.axis.span, format!("`{name}` is no axis"), "one of `i`, `j` and `k`"));
        };
        let sides = match rule.side.as_ref().map(|side| side.text.as_str()) {
            Some("low") => vec![Side::Low],
            Some(_) => vec![Side::High],
            None => Side::BOTH.to_vec(),
        };
        if let ("periodic", Some(side)) = (rule.kind.text.as_str(), &rule.side) {
            let found = Diagnostic::error(rule.span, "an axis is periodic on both sides or on none");
            let found = found.label(format!("`{}` alone", side.text));
            return self.tell(found.help(format!("write `{}: periodic`", rule.axis.text)));
        }
        let before = self.boundaries.rules.iter().find(|own| {
            let same_names = own.names.iter().any(|name| names.iter().any(|other| other.text == name.text));
            let both_for_all = own.names.is_empty() && names.is_empty();
            own.axis == axis && own.sides.iter().any(|side| sides.contains(side)) && (same_names || both_for_all)
        });
        if let Some(before) = before {
            let message = format!("two boundaries say what lies beyond the same edge of `{axis}`");
            return self.tell(wrong(rule.span, message, "again here").note(before.rule.span, "first here"));
        }
        self.boundaries.rules.push(Said { names, axis, sides, rule });
    }

    /// What is said of the edges of a field. A rule that names it goes before one for all.
    pub(super) fn edges_of(&mut self, variable: &Variable) -> Edges {
        let mut edges = Edges::default();
        for named in [false, true] {
            for said in self.boundaries.rules.clone() {
                let name = said.names.iter().find(|name| name.text == variable.name);
                if said.names.is_empty() == named || named && name.is_none() {
                    continue;
                }
                if let Some(name) = name {
                    self.boundaries.met.insert(&name.text);
                }
                if !said.axis.is_of(variable.place) {
                    // A rule for all is for those that have the axis.
                    if let Some(name) = name {
                        let message =
                            format!("`{}` is{}: it has no edge along `{}`", variable.name, variable.place, said.axis);
                        self.tell(wrong(said.rule.span, message, "no such edge").note(name.span, "named here"));
                    }
                    continue;
                }
                let Some(rule) = self.rule_for(&said, variable) else { continue };
                said.sides.iter().for_each(|&side| edges.set(said.axis, side, rule.clone()));
            }
        }
        for axis in GridAxis::ALL {
            let periodic = Side::BOTH.map(|side| matches!(edges.rule(axis, side), EdgeRule::Periodic));
            if periodic[0] != periodic[1] {
                let message = format!("`{}` is periodic along `{axis}` on one side alone", variable.name);
                let found = wrong(variable.span, message, "declared here");
                self.tell(found.help("an axis is periodic on both sides or on none"));
            }
        }
        edges
    }

    fn rule_for(&mut self, said: &Said<'a>, variable: &Variable) -> Found<EdgeRule> {
        let rule = said.rule;
        let is_interface = said.axis == GridAxis::K && variable.place.levels == Levels::Interfaces;
        Some(match rule.kind.text.as_str() {
            kind @ ("periodic" | "mirror" | "-mirror") if is_interface => {
                let message = format!("`{}` stands on the interfaces of levels, and cannot be `{kind}`", variable.name);
                let found = wrong(rule.span, message, "`copy` or `value(x)`");
                return self.report(found.note(variable.span, "declared on `k+1` here"));
            }
            "-mirror" if variable.stored == Stored::Bool => {
                let message = format!("`{}` holds truth values, which have no sign", variable.name);
                let found =
                    wrong(rule.span, message, "`mirror`, without the minus").note(variable.span, "declared here");
                return self.report(match said.names.is_empty() {
                    true => {
                        found.help(format!("say it by name, which goes first: `boundary {} {{ ... }}`", variable.name))
                    }
                    false => found,
                });
            }
            "periodic" => EdgeRule::Periodic,
            "copy" => EdgeRule::Copy,
            "mirror" => EdgeRule::Mirror,
            "-mirror" => EdgeRule::OddMirror,
            // Numbers are read when all of them are known.
            "value" => EdgeRule::Value(Body::new()),
            _ => EdgeRule::Halo,
        })
    }

    /// Reads the numbers that lie beyond edges.
    pub(super) fn read_edge_values(&mut self) {
        for id in self.program.variables.handles() {
            let variable = self.program.variables[id].clone();
            for said in self.boundaries.rules.clone() {
                let (rule, is_named) = (said.rule, is_of(&said, &variable));
                let is_said = |side: &Side| {
                    // A rule that names the field goes before one for all.
                    let by_name =
                        |own: &Said| own.axis == said.axis && own.sides.contains(side) && is_of(own, &variable);
                    is_named || said.names.is_empty() && !self.boundaries.rules.iter().any(by_name)
                };
                let sides: Vec<Side> = said.sides.iter().copied().filter(is_said).collect();
                let (Some(value), true) = (rule.value, said.axis.is_of(variable.place) && !sides.is_empty()) else {
                    continue;
                };
                let Some(body) = self.number(value, Some(variable.stored.kind()), &variable.name) else { continue };
                for side in sides {
                    self.program.variables[id].edges.set(said.axis, side, EdgeRule::Value(body.clone()));
                }
            }
        }
    }

    /// Reports boundaries of fields that do not exist.
    pub(super) fn report_unknown_boundaries(&mut self) {
        let mut told: HashSet<Span> = HashSet::new();
        for said in self.boundaries.rules.clone() {
            for name in said.names {
                if self.boundaries.met.contains(name.text.as_str()) || !told.insert(name.span) {
                    continue;
                }
                let found = Diagnostic::error(name.span, format!("a boundary of `{}`, which is no field", name.text));
                let otherwise = |found: Diagnostic| found.label("no field of this program has this name");
                self.tell(found.meant(self.guess(&name.text), otherwise));
            }
        }
    }
}
