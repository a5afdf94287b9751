//! What a stencil over a mesh writes: outputs, increments, reductions.

use crate::ast;
use crate::diagnostic::{Diagnostic, guess};
use crate::ir::mesh::{Fold, How, Write};
use crate::ir::{Body, Field, FieldId, Kind, Levels, Node, Path, Role, Store};
use crate::lower::scope::Binding;
use crate::lower::value::Value;
use crate::lower::{Found, Lowering};
use crate::source::Span;

impl<'a> Lowering<'a> {
    /// `q = ...`, `res[cells.0] += ...`, `change += ...`
    pub(in crate::lower) fn mesh_assign(&mut self, assign: &'a ast::Assign, target: &'a ast::Target) {
        let name = &target.name;
        let Some(Binding::Field(id)) = self.scope.find(&name.text).map(|symbol| symbol.binding.clone()) else {
            return self.no_target(name);
        };
        let field = self.stencil.fields[id].clone();
        let before = self.scope.assigned.insert(name.text.clone(), name.span);
        let index = target.index.as_ref().map(|(parts, at)| (parts, *at));
        let op = assign.op.text.as_str();
        let how = match field.role {
            Role::In | Role::Carried => {
                self.report::<()>(
                    Diagnostic::error(name.span, format!("`{}` is an input: it cannot be written", name.text))
                        .label("written here")
                        .note(field.span, "declared as `in` here")
                        .help("declare it as `inout` to write a new value, or as `inc` to add to it"),
                );
                return;
            }
            Role::Out | Role::InOut => {
                if self.check_plain(&field, name, index, &assign.op).is_none() {
                    return;
                }
                if let Some(before) = before {
                    return self.assigned_twice(name, before);
                }
                How::Assign
            }
            Role::Inc => match self.increment(&field, name, index, &assign.op) {
                Some(path) => How::Add(path),
                None => return,
            },
            Role::Reduce => {
                if let Some(before) = before {
                    return self.assigned_twice(name, before);
                }
                match self.reduction(id, name, index.map(|(_, at)| at), &assign.op) {
                    Some(fold) => How::Reduce(fold),
                    None => return,
                }
            }
        };
        self.write(id, &field, how, op == "-=", assign.value);
    }

    /// Writes a value, part by part.
    fn write(&mut self, id: FieldId, field: &Field, how: How, negated: bool, value: ast::ExprId) -> Found<()> {
        let span = self.file.exprs.span(value);
        self.bodies.push(Body::new());
        let value = self.value(value).and_then(|value| {
            value
                .map(|node| {
                    let kind = if how == How::Assign { field.stored.kind() } else { self.number_kind(field)? };
                    let node = self.convert(node, kind, span, &field.name)?;
                    if negated { self.node(Node::Negate(node), kind, span) } else { Some(node) }
                })
                .collected()
        });
        let body = self.bodies.pop().unwrap_or_default();
        let parts = match value? {
            Value::One(node) => vec![node],
            Value::Many(nodes) => nodes,
        };
        let width = if matches!(how, How::Reduce(_)) { 1 } else { self.parts_of(id) };
        if parts.len() != width {
            let (has, wants) = (count(parts.len()), count(width));
            return self.report(
                Diagnostic::error(span, format!("`{}` is {wants}, this value is {has}", field.name))
                    .label(has)
                    .note(field.span, "declared here")
                    .help(if width == 1 {
                        "take a part of it, as in `v.0`".to_owned()
                    } else {
                        format!("a vector is assigned whole: `[a, b, ...]` with {width} parts")
                    }),
            );
        }
        for (part, node) in parts.into_iter().enumerate() {
            let body = body.rooted(node);
            if field.place.levels == Levels::None && !matches!(how, How::Reduce(_)) {
                self.check_levels(&body, field, span)?;
            }
            self.stencil.stores.push(Store { field: id, body, sweep: None });
            if let Some(over) = &mut self.over {
                over.writes.push(Write { part: part as u32, how: how.clone() });
            }
        }
        Some(())
    }

    /// Numbers are added, whatever kind they are; truth values are not.
    fn number_kind(&mut self, field: &Field) -> Found<Kind> {
        match field.stored.kind() {
            Kind::Bool => self.report(
                Diagnostic::error(field.span, "truth values cannot be added")
                    .label("stored as `bool`")
                    .help("count in an `int`"),
            ),
            kind => Some(kind),
        }
    }

    /// A field without levels may depend on nothing that varies along them.
    fn check_levels(&mut self, body: &Body, field: &Field, span: Span) -> Found<()> {
        let Some(over) = &self.over else { return Some(()) };
        if !over.mesh().levels || !crate::lower::value::varies(&self.stencil, body).1 {
            return Some(());
        }
        self.report(
            Diagnostic::error(span, format!("`{}` has no levels, but its value varies along k", field.name))
                .label("varies along k")
                .note(field.span, "declared here"),
        )
    }

    fn check_plain(
        &mut self,
        field: &Field,
        name: &ast::Name,
        index: Option<(&'a Vec<ast::ExprId>, Span)>,
        op: &ast::Name,
    ) -> Found<()> {
        if let Some((parts, at)) = index {
            let is_part = matches!(parts.as_slice(), [part] if matches!(self.file.exprs[*part], ast::Expr::Int(_)));
            if is_part && field.place.home.is_some_and(|home| home.parts > 1) {
                return self.report(
                    Diagnostic::error(at, "a vector is assigned whole")
                        .label("not part by part")
                        .help(format!("write `{} = [a, b]`, with all its parts", name.text)),
                );
            }
            return self.report(
                Diagnostic::error(at, format!("`{}` is an output: it is written at the element itself", name.text))
                    .label("writes through a map")
                    .note(field.span, "declared here")
                    .help(
                        "several elements may lead to the same one, and who writes last would be a race: declare it as \
                         `inc`, and add to it with `+=`",
                    ),
            );
        }
        if op.text == "=" {
            return Some(());
        }
        let found = Diagnostic::error(op.span, "an output is assigned with `=`, and once");
        self.report(
            found
                .label(format!("write `{} = ...`", name.text))
                .note(field.span, "declared here")
                .help("what is added to with `+=` is declared as `inc`"),
        )
    }

    /// Where an increment goes.
    fn increment(
        &mut self,
        field: &Field,
        name: &ast::Name,
        index: Option<(&'a Vec<ast::ExprId>, Span)>,
        op: &ast::Name,
    ) -> Found<Path> {
        if op.text == "=" {
            return self.report(
                Diagnostic::error(op.span, format!("`{}` is incremented: it is added to", name.text))
                    .label("write `+=` or `-=`")
                    .note(field.span, "declared as `inc` here")
                    .help(
                        "several elements may lead to the same one; adding is the same in any order, assigning is not",
                    ),
            );
        }
        let (mesh, own) = self.site()?;
        let home = field.place.home?;
        let path = match index {
            None => Path::default(),
            Some((parts, at)) => {
                let names = match parts.as_slice() {
                    [part] => self.trail_of(*part),
                    _ => None,
                };
                let Some(names) = names else {
                    let found = Diagnostic::error(at, "an increment goes to an element of a set");
                    let levels = parts.iter().any(|part| self.begins_with(*part, "k"));
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
        let (there, here) = (self.set_name(home.set), self.set_name(end));
        let at = index.map_or(name.span, |(_, at)| at);
        self.report(
            Diagnostic::error(at, format!("`{}` lives on `{there}`, this leads to `{here}`", name.text))
                .label(format!("an element of `{here}`"))
                .note(field.span, "declared here")
                .help(self.ways(home.set)),
        )
    }

    /// Reports an increment of several elements at once.
    fn each_by_itself<T>(&mut self, name: &str, paths: &[Path], at: Span) -> Found<T> {
        let (mesh, _) = self.site()?;
        let found = Diagnostic::error(at, format!("this leads to {} elements", paths.len())).label("which of them?");
        let all: Vec<String> =
            paths.iter().take(2).map(|path| format!("`{name}{} += ...`", mesh.written(path))).collect();
        self.report(found.help(format!("each is added to by itself: {}", all.join(", "))))
    }

    fn reduction(&mut self, id: FieldId, name: &ast::Name, index: Option<Span>, op: &ast::Name) -> Found<Fold> {
        let declared = self.reductions.iter().find(|(own, _)| *own == id).map(|(_, reduce)| *reduce)?;
        if let Some(at) = index {
            let found = Diagnostic::error(at, format!("`{}` is a single number", name.text));
            return self.report(found.label("leave this out").note(declared.span, "declared here"));
        }
        let fold = match declared.op.text.as_str() {
            "sum" => Fold::Sum,
            "min" => Fold::Min,
            _ => Fold::Max,
        };
        let fits = if fold == Fold::Sum { op.text != "=" } else { op.text == "=" };
        if fits {
            return Some(fold);
        }
        let (what, write) = match fold {
            Fold::Sum => ("a sum is added to", "+="),
            Fold::Min => ("of a `min`, the smallest value is kept", "="),
            Fold::Max => ("of a `max`, the largest value is kept", "="),
        };
        self.report(
            Diagnostic::error(op.span, format!("`{}`: {what}", name.text))
                .label(format!("write `{} {write} ...`", name.text))
                .note(declared.span, "declared here"),
        )
    }

    fn assigned_twice(&mut self, name: &ast::Name, before: Span) {
        self.report::<()>(
            Diagnostic::error(name.span, format!("`{}` is assigned twice", name.text))
                .label("assigned again here")
                .note(before, "assigned here first")
                .help("collect the value in a `let`, or choose it with `if`, and assign it once"),
        );
    }

    fn no_target(&mut self, name: &'a ast::Name) {
        let found = self.scope.find(&name.text).cloned();
        self.scope.assigned.insert(name.text.clone(), name.span);
        match found {
            Some(symbol) if matches!(symbol.binding, Binding::Broken) => {}
            Some(symbol) => {
                self.report::<()>(
                    Diagnostic::error(name.span, format!("{} `{}` cannot be assigned again", symbol.what, name.text))
                        .label("assigned here")
                        .note(symbol.span, "defined here")
                        .help("a name means one value: give the new one a name of its own, with `let`"),
                );
            }
            None => {
                let outputs =
                    self.stencil.fields.iter().map(|(_, field)| field).filter(|field| field.role.is_written());
                let outputs: Vec<String> = outputs.map(|field| field.name.clone()).collect();
                let guess = guess(&name.text, outputs.iter().map(String::as_str));
                let label = guess.map_or("not declared".to_owned(), |guess| format!("did you mean `{guess}`?"));
                if let Some(guess) = guess {
                    // That it is never assigned would be the same error again.
                    self.scope.assigned.insert(guess.to_owned(), name.span);
                }
                self.report::<()>(
                    Diagnostic::error(name.span, format!("`{}` is no output of this stencil", name.text))
                        .label(label)
                        .help(format!("declare it with `out {0}` or `inc {0}`", name.text)),
                );
                self.define(name, Binding::Broken);
            }
        }
    }
}

fn count(parts: usize) -> String {
    if parts == 1 { "a single number".to_owned() } else { format!("a vector of {parts} parts") }
}
