//! Calls of stencils.

use super::Programmer;
use crate::ast::{self, Expr, ExprId};
use crate::diagnostic::{Diagnostic, guess};
use crate::ir::program::{Action, Call, FieldBinding};
use crate::ir::{FieldId, Handle, ParamId, Place, Role, Stencil, Stored, VariableId};
use crate::lower::Found;
use crate::lower::mesh::SIZE;
use crate::lower::scope::{FUNCTIONS, Global};
use crate::source::Span;

/// A stencil that is called, with its number; nothing if it has errors of its own.
type Called<'a> = Option<(usize, &'a Stencil)>;

/// What a call passes to a stencil, in the order declared.
#[derive(Clone, Copy)]
enum Slot {
    Field(FieldId),
    Param(ParamId),
}

impl<'a> Programmer<'_, 'a> {
    /// The stencil and arguments, if an expression is a call of a stencil.
    pub(super) fn stencil_call(&mut self, expr: ExprId) -> Option<(Called<'a>, &'a [ast::Argument], Span)> {
        let file = self.lowering.file;
        let Expr::Call(name, arguments) = &file.exprs[expr] else { return None };
        match self.lowering.globals.find(&name.text) {
            Some(Global::Stencil) => {}
            Some(Global::Program) => {
                self.report::<()>(
                    Diagnostic::error(name.span, format!("`{}` is a program: it is run, not called", name.text))
                        .label("a program calls stencils"),
                );
                return Some((None, arguments, file.exprs.span(expr)));
            }
            Some(Global::Function(_) | Global::Constant(_) | Global::Param(..) | Global::Mesh) => return None,
            // Of numbers there are functions, too.
            None if FUNCTIONS.contains(&name.text.as_str()) || name.text == SIZE && self.lowering.is_over_mesh() => {
                return None;
            }
            None if self.lowering.scope.find(&name.text).is_some() => {
                return None;
            }
            None => {
                self.unknown_stencil(name);
                return Some((None, arguments, file.exprs.span(expr)));
            }
        }
        let stencils = self.stencils;
        let stencil = stencils.iter().find(|stencil| stencil.name == name.text);
        if stencil.is_none() && self.is_elsewhere(name) {
            return Some((None, arguments, file.exprs.span(expr)));
        }
        let called = stencil.map(|stencil| (self.number_of(stencil), stencil));
        Some((called, arguments, file.exprs.span(expr)))
    }

    fn unknown_stencil(&mut self, name: &ast::Name) {
        let items = self.lowering.file.items.iter();
        let names: Vec<&str> = items
            .filter_map(|item| match item {
                ast::Item::Stencil(stencil) => Some(stencil.name.text.as_str()),
                ast::Item::Program(_) | ast::Item::Function(_) | ast::Item::Constant(_) => None,
                ast::Item::Param(_) | ast::Item::Test(_) | ast::Item::Mesh(_) => None,
            })
            .collect();
        let found = Diagnostic::error(name.span, format!("unknown stencil `{}`", name.text));
        self.report::<()>(match guess(&name.text, names.iter().copied()) {
            Some(guess) => found.label(format!("did you mean `{guess}`?")),
            None if names.is_empty() => {
                found.label("this file has no stencil").help("write one: `stencil step { in a; out b; b = a }`")
            }
            None => found
                .label("not in this file")
                .help(format!("a program calls stencils of its file; here are {}", names.join(", "))),
        });
    }

    /// The stencil's number in the program, which holds each once.
    fn number_of(&mut self, stencil: &Stencil) -> usize {
        let known = &mut self.program.stencils;
        known.iter().position(|own| own.name == stencil.name).unwrap_or_else(|| {
            known.push(stencil.clone());
            known.len() - 1
        })
    }

    /// What a stencil returns, if so many names take it.
    pub(super) fn results(&mut self, stencil: &Stencil, names: usize, span: Span) -> Found<Vec<(Place, Stored)>> {
        let outputs: Vec<_> = stencil.fields.iter().map(|(_, own)| own).filter(|own| own.role.is_written()).collect();
        if outputs.len() == names {
            return Some(outputs.iter().map(|own| (own.place, own.stored)).collect());
        }
        let list: Vec<&str> = outputs.iter().map(|own| own.name.as_str()).collect();
        let what = if outputs.len() == 1 { "one field".to_owned() } else { format!("{} fields", outputs.len()) };
        let takes = if names == 1 { "one name takes them".to_owned() } else { format!("{names} names take them") };
        self.report(
            Diagnostic::error(span, format!("`{}` returns {what}, and {takes}", stencil.name))
                .label(format!("returns `{}`", list.join("`, `")))
                .help(format!("write `{} = {}(...)`", list.join(", "), stencil.name)),
        )
    }

    /// A call without what takes its results.
    pub(super) fn call(
        &mut self,
        (number, stencil): (usize, &'a Stencil),
        arguments: &'a [ast::Argument],
        span: Span,
    ) -> Found<Call> {
        self.calls += 1;
        if self.calls > super::CALLS {
            return self.report(Diagnostic::error(span, format!("a program has at most {} calls", super::CALLS)));
        }
        let slots = self.slots(stencil);
        let mut given: Vec<Option<&'a ast::Argument>> = vec![None; slots.len()];
        let mut named = None;
        for (n, argument) in arguments.iter().enumerate() {
            let at = self.span(argument.value);
            let place = match &argument.name {
                Some(name) => {
                    named = Some(name.span);
                    self.slot_named(stencil, &slots, name)?
                }
                None => {
                    if let Some(named) = named {
                        return self.report(
                            Diagnostic::error(at, "an argument without a name after one with a name")
                                .label("which one is this?")
                                .note(named, "the one with a name"),
                        );
                    }
                    if n >= slots.len() {
                        return self.too_many(stencil, &slots, arguments.len(), at);
                    }
                    n
                }
            };
            if let Some(before) = given[place].replace(argument) {
                let name = slot_name(stencil, slots[place]);
                let before = self.span(before.value);
                return self.report(
                    Diagnostic::error(at, format!("`{name}` is given twice"))
                        .label("again here")
                        .note(before, "first here"),
                );
            }
        }
        let mut call = Call {
            stencil: number,
            fields: vec![FieldBinding::default(); stencil.fields.len()],
            params: vec![None; stencil.params.len()],
            span,
        };
        let mut complete = true;
        for (n, (slot, argument)) in slots.iter().zip(&given).enumerate() {
            let done = match (*slot, argument) {
                (Slot::Field(id), Some(argument)) => {
                    let read = self.field_argument(stencil, id, argument.value);
                    call.fields[id.index()].read = read;
                    read.map(|_| ())
                }
                (Slot::Param(_), Some(argument)) if self.names_a_field(argument.value) => {
                    self.field_for_param(stencil, &slots, &given, n)
                }
                (Slot::Param(id), Some(argument)) => {
                    let own = &stencil.params[id];
                    let body = self.number(argument.value, Some(own.kind), &own.name);
                    call.params[id.index()] = body.clone();
                    body.map(|_| ())
                }
                (Slot::Param(id), None) if stencil.params[id].default.is_some() => Some(()),
                // Starts from 0.
                (Slot::Field(id), None) if stencil.fields[id].role == Role::Inc => Some(()),
                (slot, None) => self.missing(stencil, &slots, slot, span),
            };
            complete &= done.is_some();
        }
        // Parameters of the file are the program's, too.
        for (id, own) in stencil.params.iter() {
            if let Some(Global::Param(params, index)) = self.file_param(own) {
                self.lowering.scope.use_global(&own.name);
                let frame = self.lowering.scope.enter(0);
                let param = self.lowering.add_param(params, index);
                self.lowering.scope.leave(frame);
                let mut body = crate::ir::Body::new();
                body.add(crate::ir::Node::Param(param?), own.kind, span);
                call.params[id.index()] = Some(body);
            }
        }
        complete.then_some(call)
    }

    /// Lets variables take what a call returns, in the order declared.
    pub(super) fn take(&mut self, call: Found<Call>, targets: Vec<Found<VariableId>>, actions: &mut Vec<Action>) {
        self.valued.extend(targets.iter().flatten());
        let (Some(mut call), Some(targets)) = (call, targets.into_iter().collect::<Option<Vec<_>>>()) else { return };
        let mut targets = targets.into_iter();
        let stencils = self.stencils;
        let name = &self.program.stencils[call.stencil].name;
        let Some(stencil) = stencils.iter().find(|stencil| stencil.name == *name) else { return };
        for (id, field) in stencil.fields.iter() {
            if field.role.is_written() {
                call.fields[id.index()].written = targets.next();
            }
        }
        if self.check_edges(stencil, &call).is_some() {
            actions.push(Action::Call(call));
        }
    }

    /// The parameter of the file that a stencil's is, if it is one.
    fn file_param(&self, own: &crate::ir::Param) -> Option<Global<'a>> {
        let global = self.lowering.globals.find(&own.name)?;
        let Global::Param(params, index) = global else { return None };
        (params.names[index].span == own.span).then_some(global)
    }

    fn slots(&self, stencil: &Stencil) -> Vec<Slot> {
        let fields = stencil.fields.iter().filter(|(_, own)| own.role.is_read());
        let params = stencil.params.iter().filter(|(_, own)| self.file_param(own).is_none());
        let mut slots: Vec<(u32, Slot)> = fields
            .map(|(id, own)| (own.span.start, Slot::Field(id)))
            .chain(params.map(|(id, own)| (own.span.start, Slot::Param(id))))
            .collect();
        slots.sort_by_key(|(start, _)| *start);
        slots.into_iter().map(|(_, slot)| slot).collect()
    }

    fn slot_named(&mut self, stencil: &Stencil, slots: &[Slot], name: &ast::Name) -> Found<usize> {
        let known: Vec<&str> = slots.iter().map(|slot| slot_name(stencil, *slot)).collect();
        if let Some(place) = known.iter().position(|own| *own == name.text) {
            return Some(place);
        }
        let what = format!("`{}` takes no `{}`", stencil.name, name.text);
        let found = Diagnostic::error(name.span, what);
        if stencil.fields.iter().any(|(_, own)| own.name == name.text) {
            return self.report(found.label("an output: it is returned, not passed"));
        }
        let is_shared = stencil.params.iter().any(|(_, own)| own.name == name.text);
        if is_shared {
            let label = "a parameter of the file: stencils and programs see the same";
            return self.report(found.label(label).help(format!("set it for all: --set {}=...", name.text)));
        }
        self.report(match guess(&name.text, known.iter().copied()) {
            Some(guess) => found.label(format!("did you mean `{guess}`?")),
            None => found.label(signature(stencil, slots)),
        })
    }

    fn too_many<T>(&mut self, stencil: &Stencil, slots: &[Slot], given: usize, at: Span) -> Found<T> {
        let takes = match slots.len() {
            0 => "nothing".to_owned(),
            1 => "one argument".to_owned(),
            n => format!("{n} arguments"),
        };
        self.report(
            Diagnostic::error(at, format!("`{}` takes {takes}, here are {given}", stencil.name))
                .label(signature(stencil, slots)),
        )
    }

    fn missing<T>(&mut self, stencil: &Stencil, slots: &[Slot], slot: Slot, span: Span) -> Found<T> {
        let (what, declared) = match slot {
            Slot::Field(id) => ("field", stencil.fields[id].span),
            Slot::Param(id) => ("parameter", stencil.params[id].span),
        };
        let name = slot_name(stencil, slot);
        self.report(
            Diagnostic::error(span, format!("`{}` needs the {what} `{name}`", stencil.name))
                .label(signature(stencil, slots))
                .note(declared, "declared here"),
        )
    }

    /// A field that is passed to a stencil.
    fn field_argument(&mut self, stencil: &Stencil, id: FieldId, value: ExprId) -> Found<VariableId> {
        let own = &stencil.fields[id];
        let at = self.span(value);
        let Some(variable) = self.field_named(value) else { return self.no_field(stencil, id, value) };
        let variable = self.with_value(variable?, at)?;
        if self.is_number(variable) {
            let (name, number) = (&own.name, &self.program.variables[variable].name);
            let found =
                Diagnostic::error(at, format!("`{name}` of `{}` is a field, and `{number}` a number", stencil.name))
                    .label("a number is passed to a parameter")
                    .note(own.span, "declared here")
                    .help(format!("declare it in the stencil as `param {name}`"));
            return self.report(found);
        }
        let passed = &self.program.variables[variable];
        let differs = if passed.place != own.place {
            format!(
                "`{}` of `{}` is{}, `{}` is{}",
                own.name,
                stencil.name,
                self.axes(own.place),
                passed.name,
                self.axes(passed.place)
            )
        } else if passed.stored != own.stored {
            let (wanted, stored) = (own.stored.name(), passed.stored.name());
            format!("`{}` of `{}` is stored as {wanted}, `{}` as {stored}", own.name, stencil.name, passed.name)
        } else {
            return Some(variable);
        };
        let declared = passed.span;
        self.report(
            Diagnostic::error(at, differs)
                .label("does not fit")
                .note(own.span, "declared here")
                .note(declared, "and here"),
        )
    }

    /// Whether an expression is a field's name alone.
    fn names_a_field(&mut self, value: ExprId) -> bool {
        matches!(self.field_named(value), Some(Some(variable)) if !self.is_number(variable))
    }

    /// Reports a field that is passed to the parameter at place `n`.
    fn field_for_param<T>(
        &mut self,
        stencil: &Stencil,
        slots: &[Slot],
        given: &[Option<&ast::Argument>],
        n: usize,
    ) -> Found<T> {
        let (Some(argument), Slot::Param(id)) = (given[n], slots[n]) else { return None };
        let (own, at) = (&stencil.params[id], self.span(argument.value));
        let Some(Some(variable)) = self.field_named(argument.value) else { return None };
        let field = &self.program.variables[variable].name;
        let place = match argument.name {
            None => format!("argument {} of `{}` is the parameter `{}`", n + 1, stencil.name, own.name),
            Some(_) => format!("`{}` of `{}` is a parameter", own.name, stencil.name),
        };
        // It is mostly meant for the field that adds up, which nobody has to give.
        let mut left = slots.iter().zip(given).filter(|(_, argument)| argument.is_none());
        let added = left.find_map(|(slot, _)| match slot {
            Slot::Field(id) if stencil.fields[*id].role == Role::Inc => Some(&stencil.fields[*id].name),
            Slot::Field(_) | Slot::Param(_) => None,
        });
        let found = Diagnostic::error(at, format!("{place}, and `{field}` is a field"))
            .label(signature(stencil, slots))
            .note(own.span, "declared here");
        let found = match added {
            Some(added) => {
                found.help(format!("if it is what the `inc` adds to, give it by its name: `{added} = {field}`"))
            }
            None => found.help("a parameter takes a number; a field is passed to an `in`, `inout` or `inc`"),
        };
        self.report(found)
    }

    /// Reports what is passed instead of a field.
    fn no_field<T>(&mut self, stencil: &Stencil, id: FieldId, value: ExprId) -> Found<T> {
        let (own, at) = (&stencil.fields[id], self.span(value));
        let file = self.lowering.file;
        let found = Diagnostic::error(at, format!("`{}` of `{}` takes a field", own.name, stencil.name));
        let found = match &file.exprs[value] {
            Expr::Name(name) => match self.lowering.scope.find(name) {
                Some(symbol) if matches!(symbol.binding, crate::lower::scope::Binding::Broken) => return None,
                Some(symbol) => found.label(format!("`{name}` is none")).note(symbol.span, "defined here"),
                None if self.lowering.globals.find(name).is_some() => found.label(format!("`{name}` is none")),
                None => return self.unknown_field(name, at),
            },
            Expr::Index(..) => found
                .label("an offset belongs into the stencil")
                .help("a field is passed by its name; the stencil reads it where it needs it"),
            Expr::Call(..) => {
                found.label("a call inside a call").help("name what it returns first: `let lap = laplacian(phi)`")
            }
            _ => found.label("a field is passed by its name").help("compute in a stencil, and call that"),
        };
        self.report(found)
    }

    fn unknown_field<T>(&mut self, name: &str, at: Span) -> Found<T> {
        let known: Vec<&str> = self.program.variables.iter().map(|(_, own)| own.name.as_str()).collect();
        let found = Diagnostic::error(at, format!("unknown field `{name}`"));
        let inside = self.program.variables.iter().find(|(_, own)| own.name == name).map(|(_, own)| own.span);
        self.report(match (inside, guess(name, known.iter().copied())) {
            (Some(span), _) => found
                .label("a name of a loop ends with it")
                .note(span, "defined here")
                .help("declare the field before the loop, and assign it inside"),
            (None, Some(guess)) => found.label(format!("did you mean `{guess}`?")),
            (None, None) => found.label("not defined here").help("declare it with `in`, `inout` or `out`"),
        })
    }
}

fn slot_name(stencil: &Stencil, slot: Slot) -> &str {
    match slot {
        Slot::Field(id) => &stencil.fields[id].name,
        Slot::Param(id) => &stencil.params[id].name,
    }
}

/// `diffuse(phi, alpha)`
fn signature(stencil: &Stencil, slots: &[Slot]) -> String {
    let names: Vec<&str> = slots.iter().map(|slot| slot_name(stencil, *slot)).collect();
    format!("`{}({})`", stencil.name, names.join(", "))
}
