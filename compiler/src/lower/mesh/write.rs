//! What a stencil over a mesh writes: outputs, increments, reductions.

use super::fold::fold_named;
use crate::ast;
use crate::diagnostic::{Diagnostic, wrong};
use crate::ir::mesh::{Fold, How, Write};
use crate::ir::{Body, Field, FieldId, Kind, Levels, Node, Path, Role, Store};
use crate::lower::{Found, Lowering};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// `q = ...`, `res[cells.0] += ...`, `change += ...`
    pub(in crate::lower) fn mesh_assign(&mut self, assign: &'a ast::Assign, target: &'a ast::Target) {
        let name = &target.name;
        let Some(id) = self.field_at(&name.text) else {
            return self.no_target(name, format!("declare it with `out {0}` or `inc {0}`", name.text));
        };
        let before = self.scope.assigned.insert(name.text.clone(), name.span);
        if let Some(how) = self.how_written(id, target, &assign.op, before) {
            self.write(id, how, assign.op.text == "-=", assign.value);
        }
    }

    /// What becomes of a value that is written to a field, which may have been assigned before.
    fn how_written(&mut self, id: FieldId, target: &ast::Target, op: &ast::Name, before: Option<Span>) -> Found<How> {
        let (name, field) = (&target.name, &self.stencil.fields[id].clone());
        match field.role {
            Role::In | Role::Carried => {
                let found =
                    wrong(name.span, format!("`{}` is an input: it cannot be written", name.text), "written here");
                let found = found.note(field.span, "declared as `in` here");
                self.report(found.help("declare it as `inout` to write a new value, or as `inc` to add to it"))
            }
            Role::Out | Role::InOut => {
                self.check_plain(field, target, op)?;
                self.check_first(name, before).map(|()| How::Assign)
            }
            Role::Inc => self.increment(field, target, op).map(How::Add),
            Role::Reduce => {
                self.check_first(name, before)?;
                self.reduction(id, target, op).map(How::Reduce)
            }
        }
    }

    /// Writes a value, part by part.
    fn write(&mut self, id: FieldId, how: How, negated: bool, value: ast::ExprId) -> Found<()> {
        let (span, field) = (self.span(value), &self.stencil.fields[id].clone());
        let is_reduced = matches!(how, How::Reduce(_));
        let written = self.bodies(|own| {
            let value = own.value(value)?;
            let write = |node| {
                let kind = if how == How::Assign { field.stored.kind() } else { own.added_kind(field)? };
                let node = own.convert(node, kind, span, &field.name)?;
                if negated { own.node(Node::Negate(node), kind, span) } else { Some(node) }
            };
            value.map(write).collected()
        });
        let parts = written?.into_parts();
        let width = field.place.home.filter(|_| !is_reduced).map_or(1, |home| home.parts as usize);
        if parts.len() != width {
            let (has, wants) = (count(parts.len()), count(width));
            let found = Diagnostic::error(span, format!("`{}` is {wants}, this value is {has}", field.name));
            let found = found.label(has).note(field.span, "declared here");
            let whole = format!("a vector is assigned whole: `[a, b, ...]` with {width} parts");
            return self.report(found.help(if width == 1 { "take a part of it, as in `v.0`" } else { &whole }));
        }
        if self.current_sweep().is_some() && (width > 1 || how != How::Assign) {
            let found = Diagnostic::error(span, "a sweep assigns plain numbers").note(field.span, "declared here");
            return self.report(match how {
                How::Assign => found.label("a vector").help("assign it below the sweep, whose names are known there"),
                How::Add(_) | How::Reduce(_) => found
                    .label("an increment, or a reduction")
                    .help("assign an output here, and add or fold that in another stencil"),
            });
        }
        for (part, body) in parts.into_iter().enumerate() {
            if field.place.levels == Levels::None && !is_reduced && !self.has_one_level {
                self.check_levels(&body, field, span)?;
            }
            if self.current_sweep().is_some() {
                self.store(id, body);
                continue;
            }
            self.stencil.stores.push(Store { field: id, body, sweep: None });
            if let Some(over) = &mut self.over {
                over.writes.push(Write { part: part as u32, how: how.clone() });
            }
        }
        Some(())
    }

    /// What can be told of sweeps once the whole stencil is known: kernels give each of their columns a thread, which adds to no other
    /// elements. Returns whether all is well.
    pub(in crate::lower) fn finish_sweeps(&mut self) -> bool {
        let (Some(over), Some((_, sweep))) = (&self.over, self.stencil.sweeps.iter().next()) else { return true };
        let Some(at) = over.writes.iter().position(|write| write.how != How::Assign) else { return true };
        let (sweep, field) = (sweep.span, &self.stencil.fields[self.stencil.stores[at].field]);
        let found = Diagnostic::error(field.span, "what sweeps adds to nothing, and folds nothing");
        let found = found.label("an increment, or a reduction").note(sweep, "the sweep");
        self.tell(found.help("assign an output, and add or fold that in another stencil"));
        false
    }

    /// Numbers are added, whatever kind they are; truth values are not.
    fn added_kind(&mut self, field: &Field) -> Found<Kind> {
        match field.stored.kind() {
            Kind::Bool => {
                let found = wrong(field.span, "truth values cannot be added", "stored as `bool`");
                self.report(found.help("count in an `int`"))
            }
            kind @ (Kind::Real | Kind::Int) => Some(kind),
        }
    }

    /// A field without levels may depend on nothing that varies along them.
    fn check_levels(&mut self, body: &Body, field: &Field, span: Span) -> Found<()> {
        let Some(over) = &self.over else { return Some(()) };
        if !over.mesh().levels || !crate::lower::value::varies(&self.stencil, body).1 {
            return Some(());
        }
        let found = Diagnostic::error(span, format!("`{}` has no levels, but its value varies along k", field.name));
        let found = found.label("varies along k").note(field.span, "declared here");
        self.report(found.help(
            "of one level it is made by `a[level nk - 1]`; or `level nk - 1` by itself says that the stencil computes no other",
        ))
    }

    fn check_plain(&mut self, field: &Field, target: &ast::Target, op: &ast::Name) -> Found<()> {
        let name = &target.name;
        if let Some((parts, at)) = &target.index {
            let at = *at;
            let is_part = matches!(parts.as_slice(), [part] if matches!(self.file.exprs[*part], ast::Expr::Int(_)));
            if is_part && field.place.home.is_some_and(|home| home.parts > 1) {
                let found = wrong(at, "a vector is assigned whole", "not part by part");
                return self.report(found.help(format!("write `{} = [a, b]`, with all its parts", name.text)));
            }
            if let Some(found) = self.assigned_on_level(&name.text, parts, at) {
                return self.report(found);
            }
            let message = format!("`{}` is an output: it is written at the element itself", name.text);
            let found = Diagnostic::error(at, message).label("writes through a map").note(field.span, "declared here");
            return self.report(found.help(
                "several elements may lead to the same one, and who writes last would be a race: declare it as `inc`, and \
                 add to it with `+=`",
            ));
        }
        if op.text == "=" {
            return Some(());
        }
        let found = wrong(op.span, "an output is assigned with `=`, and once", format!("write `{} = ...`", name.text));
        self.report(found.note(field.span, "declared here").help("what is added to with `+=` is declared as `inc`"))
    }

    /// Where an increment goes.
    fn increment(&mut self, field: &Field, target: &ast::Target, op: &ast::Name) -> Found<Path> {
        let ast::Target { name, index } = target;
        if op.text == "=" {
            let found = Diagnostic::error(op.span, format!("`{}` is incremented: it is added to", name.text));
            let found = found.label("write `+=` or `-=`").note(field.span, "declared as `inc` here");
            let help = "several elements may lead to the same one; adding is the same in any order, assigning is not";
            return self.report(found.help(help));
        }
        let (mesh, own) = self.site()?;
        let home = field.place.home?;
        let at = index.as_ref().map_or(name.span, |(_, at)| *at);
        let path = match index {
            None => Path::default(),
            Some((parts, _)) => {
                let names = if let [part] = parts.as_slice() { self.trail_of(*part) } else { None };
                let Some(names) = names else {
                    let found = Diagnostic::error(at, "an increment goes to an element of a set");
                    let is_level = |part: &ast::ExprId| matches!(self.file.exprs[*part], ast::Expr::Level(_));
                    let levels = parts.iter().any(|part| self.begins_with(*part, &["k"]) || is_level(part));
                    return self.report(if levels {
                        found.label("leave the level out").help("what is added to is on the level at hand")
                    } else {
                        found.label("as in `res[cells.0] += ...`")
                    });
                };
                let paths = self.paths(&names)?;
                let [path] = paths.as_slice() else { return self.each_by_itself(&name.text, &paths, at) };
                path.clone()
            }
        };
        let end = mesh.end(own, &path);
        if end == home.set {
            return Some(path);
        }
        let (there, here) = (&mesh.sets[home.set].name, &mesh.sets[end].name);
        let found = Diagnostic::error(at, format!("`{}` lives on `{there}`, this leads to `{here}`", name.text));
        let found = found.label(format!("an element of `{here}`")).note(field.span, "declared here");
        self.report(found.help(self.ways(home.set)))
    }

    /// Reports an increment of several elements at once.
    fn each_by_itself<T>(&mut self, name: &str, paths: &[Path], at: Span) -> Found<T> {
        let (mesh, _) = self.site()?;
        let found = Diagnostic::error(at, format!("this leads to {} elements", paths.len())).label("which of them?");
        let all: Vec<String> =
            paths.iter().take(2).map(|path| format!("`{name}{} += ...`", mesh.written(path))).collect();
        self.report(found.help(format!("each is added to by itself: {}", all.join(", "))))
    }

    fn reduction(&mut self, id: FieldId, target: &ast::Target, op: &ast::Name) -> Found<Fold> {
        let name = &target.name;
        let declared = self.reductions.iter().find(|(own, _)| *own == id).map(|(_, reduce)| *reduce)?;
        if let Some((_, at)) = target.index {
            let found = wrong(at, format!("`{}` is a single number", name.text), "leave this out");
            return self.report(found.note(declared.span, "declared here"));
        }
        let fold = fold_named(&declared.op);
        if (fold == Fold::Sum) == (op.text != "=") {
            return Some(fold);
        }
        let (what, write) = match fold {
            Fold::Sum => ("a sum is added to", "+="),
            Fold::Min => ("of a `min`, the smallest value is kept", "="),
            Fold::Max => ("of a `max`, the largest value is kept", "="),
        };
        let found = wrong(op.span, format!("`{}`: {what}", name.text), format!("write `{} {write} ...`", name.text));
        self.report(found.note(declared.span, "declared here"))
    }
}

/// `a vector of 3 parts`
fn count(parts: usize) -> String {
    if parts == 1 { "a single number".to_owned() } else { format!("a vector of {parts} parts") }
}
