//! Holes of maps: what may be missing, and what makes sure that it is not.

use crate::ast::{Argument, Expr, ExprId, Infix, Name, Prefix};
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::Missing;
use crate::ir::{Kind, MapId, Node, NodeId, Param, Path, Relation};
use crate::lower::scope::Binding;
use crate::lower::value::{Alias, Nodes, Value};
use crate::lower::{Found, Lowering};
use crate::source::Span;
use crate::text::FreeText;
use std::collections::BTreeSet;

/// The function that says how many elements a set has.
pub const SIZE: &str = "size";
/// The function that asks for holes.
pub const PRESENT: &str = "present";

impl<'a> Lowering<'a> {
    /// `present(cells.1)`
    pub(in crate::lower) fn present(&mut self, arguments: &'a [Argument], span: Span) -> Found<Nodes> {
        let Some(names) = self.only_trail(arguments) else {
            let found = Diagnostic::error(span, "`present` asks whether a slot of a map leads somewhere");
            return self.report(found.label("as in `present(cells.1)`"));
        };
        let path = self.one_path(&names, span)?;
        self.one(Node::Present { path }, Kind::Bool, span)
    }

    /// `size(cell)`
    pub(in crate::lower) fn size(&mut self, arguments: &'a [Argument], span: Span) -> Found<Nodes> {
        let mesh = self.over.as_ref()?.mesh();
        if self.site().is_some() {
            let found = wrong(span, "how large a set is, programs know", "in a stencil");
            return self.report(found.help("pass it as a parameter: `param n: int`"));
        }
        let names = self.only_trail(arguments);
        let Some([name]) = names.as_deref() else {
            return self.report(wrong(span, "`size` is how many elements a set has", "as in `size(cell)`"));
        };
        let set = self.set_named(mesh, name)?;
        let param = match self.sizes.iter().find(|(_, own)| *own == set) {
            Some((param, _)) => *param,
            None => {
                let (text, doc) = (format!("{SIZE}({})", name.text), FreeText::default());
                let own = Param { name: text, doc, kind: Kind::Int, is_single: false, default: None, span };
                let param = self.stencil.params.add(own);
                self.sizes.push((param, set));
                param
            }
        };
        self.one(Node::Param(param), Kind::Int, span)
    }

    /// The names that the only argument of a call consists of.
    fn only_trail(&self, arguments: &[Argument]) -> Option<Vec<Name>> {
        if let [argument] = arguments { self.trail_of(argument.value) } else { None }
    }

    /// The paths that lead to an element if an expression has this truth.
    fn assured(&mut self, expr: ExprId, truth: bool) -> Vec<Path> {
        let file = self.file;
        let (mut assured, mut waiting) = (Vec::new(), vec![(expr, truth)]);
        while let Some((expr, truth)) = waiting.pop() {
            match &file.exprs[expr] {
                Expr::Group(inner) => waiting.push((*inner, truth)),
                Expr::Prefix(Prefix::Not, inner) => waiting.push((*inner, !truth)),
                // Both sides of what is true with `&&`, or false with `||`, are.
                Expr::Infix(op @ (Infix::And | Infix::Or), left, right) if (*op == Infix::And) == truth => {
                    waiting.extend([(*right, truth), (*left, truth)]);
                }
                Expr::Call(name, arguments) if name.text == PRESENT && truth => {
                    let names = self.only_trail(arguments);
                    // What is wrong with it is told where it is lowered.
                    let was_silent = std::mem::replace(&mut self.reports.is_silent, true);
                    assured.extend(names.and_then(|names| self.one_path(&names, name.span)));
                    self.reports.is_silent = was_silent;
                }
                Expr::Name(name) => assured.extend(self.assured_by_let(name, truth)),
                _ => {}
            }
        }
        assured
    }

    /// The paths that lead to an element if the truth that a `let` names is this one.
    fn assured_by_let(&self, name: &str, truth: bool) -> Vec<Path> {
        let Some(Binding::Value(Value::One(Alias::Def(def, path)))) = self.scope.find(name).map(|own| &own.binding)
        else {
            return Vec::new();
        };
        let (mut assured, mut seen) = (Vec::new(), BTreeSet::new());
        let mut waiting_defs = Vec::from_iter(path.hops().is_empty().then_some((*def, truth)));
        while let Some((def, truth)) = waiting_defs.pop() {
            if !seen.insert((def, truth)) {
                continue;
            }
            let body = &self.stencil.defs[def].body;
            let mut waiting = vec![(body.root(), truth)];
            while let Some((node, truth)) = waiting.pop() {
                match &body[node] {
                    Node::Not(inner) => waiting.push((*inner, !truth)),
                    Node::And(left, right) if truth => waiting.extend([(*right, true), (*left, true)]),
                    Node::Or(left, right) if !truth => waiting.extend([(*right, false), (*left, false)]),
                    Node::Present { path } if truth => assured.push(path.clone()),
                    Node::Use { def, path } if path.hops().is_empty() => waiting_defs.push((*def, truth)),
                    _ => {}
                }
            }
        }
        assured
    }

    /// The paths in `known`, and those that lead to an element if an expression has this truth.
    pub(in crate::lower) fn also_assured(&mut self, mut known: Vec<Path>, expr: ExprId, truth: bool) -> Vec<Path> {
        if self.over.is_some() {
            for path in self.assured(expr, truth) {
                if !known.contains(&path) {
                    known.push(path);
                }
            }
        }
        known
    }

    /// Does something where each of `conditions` is known to be true (or false).
    pub(in crate::lower) fn where_known<T>(
        &mut self,
        conditions: &[ExprId],
        truth: bool,
        then: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if self.over.is_none() {
            return then(self);
        }
        let known = conditions.iter().flat_map(|&condition| self.assured(condition, truth)).collect();
        self.with_present(known, then)
    }

    /// Does something where paths are known to lead to elements.
    pub(in crate::lower) fn with_present<T>(&mut self, paths: Vec<Path>, then: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.over.as_ref().map_or(0, |over| over.present.len());
        if let Some(over) = &mut self.over {
            over.present.extend(paths);
        }
        let value = then(self);
        if let Some(over) = &mut self.over {
            over.present.truncate(before);
        }
        value
    }

    /// The beginnings of a path that may lead nowhere, and the maps of their last hops.
    pub(super) fn doubtful(&self, path: &Path, missing: Missing) -> Vec<(Path, MapId)> {
        let Some(over) = &self.over else { return Vec::new() };
        let hops = path.hops();
        let ends = (1..=hops.len()).filter(|&end| over.mesh().maps[hops[end - 1].map].missing == missing);
        let beginnings = ends.map(|end| (Path::through(&hops[..end]), hops[end - 1].map));
        let is_known = |own: &Path| over.present.iter().any(|known| known.hops().starts_with(own.hops()));
        beginnings.filter(|(own, _)| !is_known(own)).collect()
    }

    /// Reports a read through what may be a hole.
    pub(super) fn check_holes(&mut self, path: &Path, span: Span) -> Found<()> {
        let doubtful = self.doubtful(path, Missing::Skip);
        let Some((beginning, map)) = doubtful.first() else { return Some(()) };
        let (mesh, _) = self.site()?;
        let written = mesh.written(beginning);
        let slot = written.trim_start_matches('[').trim_end_matches(']');
        let found = wrong(span, format!("`{slot}` may be missing"), "reads through what may be a hole")
            .note(mesh.maps[*map].span, "declared with `missing skip` here");
        self.report(found.help(format!(
            "write `if present({slot}) {{ ... }} else {{ ... }}`; a `sum`, `min` or `max` over the map leaves holes out"
        )))
    }

    /// A value that was read along `path`, or what is read through its holes.
    pub(super) fn through_holes(&mut self, value: NodeId, path: &Path, span: Span) -> Found<NodeId> {
        let mut value = value;
        for (beginning, map) in self.doubtful(path, Missing::Value).into_iter().rev() {
            let kind = self.kind(value)?;
            let instead = self.hole_value(map)?;
            let instead = match (self.kind(instead)?, kind) {
                // Where numbers are 0, truths are false.
                (number @ (Kind::Int | Kind::Real), Kind::Bool) => {
                    let zero = if number == Kind::Int { Node::Int(0) } else { Node::Real(0.0) };
                    let zero = self.node(zero, number, span)?;
                    self.node(Node::Compare(Relation::Ne, instead, zero), Kind::Bool, span)?
                }
                (Kind::Bool, Kind::Int | Kind::Real) => {
                    let found = wrong(
                        span,
                        "a number is read here, and where there is no neighbour, a truth value",
                        kind.name(),
                    );
                    return self
                        .report(found.help("declare the map as `missing value(0)`: of a truth value that is false"));
                }
                _ => self.convert(instead, kind, span, "missing value")?,
            };
            let condition = self.node(Node::Present { path: beginning }, Kind::Bool, span)?;
            value = self.node(Node::Choose { condition, yes: value, no: instead }, kind, span)?;
        }
        Some(value)
    }
}
