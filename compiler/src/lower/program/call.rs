//! Calls of stencils.

use super::{Held, Programmer};
use crate::analysis::moving::offsets;
use crate::ast::{self, Expr, ExprId};
use crate::diagnostic::{Diagnostic, guess, wrong};
use crate::ir::program::{Action, Call, FieldBinding};
use crate::ir::{Field, FieldId, Handle, Node, Param, ParamId, Role, Stencil, Stored, VariableId};
use crate::lower::Found;
use crate::lower::call::count;
use crate::lower::mesh::SIZE;
use crate::lower::scope::{Binding, FUNCTIONS, Global};
use crate::lower::sweep::single;
use crate::source::Span;

/// What a call passes to a stencil, in the order declared.
#[derive(Clone, Copy)]
struct Slot<'a> {
    name: &'a str,
    span: Span,
    takes: Takes<'a>,
}

#[derive(Clone, Copy)]
enum Takes<'a> {
    Field(FieldId, &'a Field),
    Param(ParamId, &'a Param),
}

impl Takes<'_> {
    /// Whether nothing else stands for it: a parameter may have a default, and what adds up starts from 0.
    fn must_be_given(self) -> bool {
        match self {
            Takes::Field(_, own) => own.role != Role::Inc,
            Takes::Param(_, own) => own.default.is_none(),
        }
    }
}

/// The fields that a stencil returns, in the order declared.
pub(super) fn outputs(stencil: &Stencil) -> impl Iterator<Item = &Field> {
    stencil.fields.iter().map(|(_, own)| own).filter(|own| own.role.is_written())
}

/// `diffuse(phi, alpha)`
fn signature(stencil: &Stencil, slots: &[Slot]) -> String {
    let names: Vec<&str> = slots.iter().map(|slot| slot.name).collect();
    format!("`{}({})`", stencil.name, names.join(", "))
}

impl<'a> Programmer<'_, 'a> {
    /// The stencil that is called and the call, if an expression is one of a stencil that returns its results to so many names.
    /// The call is nothing if something is wrong with what is passed, both are if there is no such stencil.
    pub(super) fn stencil_call(&mut self, expr: ExprId, names: usize) -> Option<Found<(&'a Stencil, Found<Call>)>> {
        let file = self.lowering.file;
        let Expr::Call(name, arguments) = &file.exprs[expr] else { return None };
        match self.lowering.globals.find(&name.text) {
            Some(Global::Stencil) => {}
            Some(Global::Program) => {
                let message = format!("`{}` is a program: it is run, not called", name.text);
                return Some(self.report(Diagnostic::error(name.span, message).label("a program calls stencils")));
            }
            Some(Global::Function(_) | Global::Constant(_) | Global::Param(..)) => return None,
            Some(Global::Mesh | Global::Type(_)) => return None,
            // Of numbers there are functions, too.
            None if FUNCTIONS.contains(&name.text.as_str()) || name.text == SIZE && self.lowering.is_over_mesh() => {
                return None;
            }
            None if Stored::named(&name.text).is_some() => return None,
            None if self.lowering.scope.find(&name.text).is_some() => return None,
            None => return Some(self.unknown_stencil(name)),
        }
        let stencils = self.stencils;
        let Some(stencil) = stencils.iter().find(|stencil| stencil.name == name.text) else {
            self.check_mesh(name);
            return Some(None);
        };
        let span = self.span(expr);
        let fits = self.check_results(stencil, names, span);
        let part = match self.place_of(expr) {
            None => None,
            Some(place) => match self.part(stencil, place) {
                None => return Some(None),
                part => part,
            },
        };
        let (number, passed) = match part {
            None => (self.number_of(stencil), Vec::new()),
            Some(mut part) => (self.number_of_part(&mut part.stencil), part.passed),
        };
        let mut call = self.call(number, stencil, arguments, span);
        if let Some(call) = &mut call {
            call.params.extend(passed.into_iter().map(Some));
        }
        Some(fits.map(|()| (stencil, call)))
    }

    fn unknown_stencil<T>(&mut self, name: &ast::Name) -> Found<T> {
        let items = self.lowering.file.items.iter();
        let names: Vec<&str> = items
            .filter_map(|item| if let ast::Item::Stencil(own) = item { Some(own.name.text.as_str()) } else { None })
            .collect();
        let found = Diagnostic::error(name.span, format!("unknown stencil `{}`", name.text));
        self.report(found.meant(guess(&name.text, names.iter().copied()), |found| {
            match names.is_empty() {
                true => {
                    found.label("this file has no stencil").help("write one: `stencil step { in a; out b; b = a }`")
                }
                false => found
                    .label("not in this file")
                    .help(format!("a program calls stencils of its file; here are {}", names.join(", "))),
            }
        }))
    }

    /// The stencil's number in the program, which holds each once.
    fn number_of(&mut self, stencil: &Stencil) -> usize {
        let known = &mut self.program.stencils;
        known.iter().position(|own| own.name == stencil.name).unwrap_or_else(|| {
            known.push(stencil.clone());
            known.len() - 1
        })
    }

    /// Reports a stencil that does not return what so many names take.
    fn check_results(&mut self, stencil: &Stencil, names: usize, span: Span) -> Found<()> {
        let list: Vec<&str> = outputs(stencil).map(|own| own.name.as_str()).collect();
        if list.len() == names {
            return Some(());
        }
        let what = if list.len() == 1 { "one field".to_owned() } else { format!("{} fields", list.len()) };
        let takes = if names == 1 { "one name takes them".to_owned() } else { format!("{names} names take them") };
        let found = Diagnostic::error(span, format!("`{}` returns {what}, and {takes}", stencil.name));
        let found = found.label(format!("returns `{}`", list.join("`, `")));
        self.report(found.help(format!("write `{} = {}(...)`", list.join(", "), stencil.name)))
    }

    /// A call without what takes its results.
    fn call(&mut self, number: usize, stencil: &'a Stencil, arguments: &'a [ast::Argument], span: Span) -> Found<Call> {
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
                        let found = wrong(at, "an argument without a name after one with a name", "which one is this?");
                        return self.report(found.note(named, "the one with a name"));
                    }
                    if n >= slots.len() {
                        return self.too_many(stencil, &slots, arguments.len(), at);
                    }
                    n
                }
            };
            if let Some(before) = given[place].replace(argument) {
                let found = Diagnostic::error(at, format!("`{}` is given twice", slots[place].name));
                let before = self.span(before.value);
                return self.report(found.label("again here").note(before, "first here"));
            }
        }
        // Where something is missing, those without a name may stand in each other's places: nothing is said of them.
        let is_missing = |(slot, argument): (&Slot, &Option<_>)| argument.is_none() && slot.takes.must_be_given();
        let is_shifted = slots.iter().zip(&given).any(is_missing);
        let mut call = Call {
            stencil: number,
            fields: vec![FieldBinding::default(); stencil.fields.len()],
            params: vec![None; stencil.params.len()],
            span,
        };
        let mut complete = true;
        for (n, (slot, argument)) in slots.iter().zip(&given).enumerate() {
            complete &= match (slot.takes, argument) {
                (_, None) if slot.takes.must_be_given() => self.missing(stencil, &slots, *slot, span).unwrap_or(false),
                // It has a default, or starts from 0.
                (_, None) => true,
                (_, Some(argument)) if is_shifted && argument.name.is_none() => false,
                (Takes::Field(id, own), Some(argument)) => {
                    let found = self.field_argument(stencil, own, argument.value);
                    let found = found.and_then(|found| self.check_levels_given(stencil, id, found, argument.value));
                    call.fields[id.index()].read = found;
                    found.is_some()
                }
                (Takes::Param(_, own), Some(argument)) if self.names_a_field(argument.value) => {
                    self.field_for_param(stencil, own, &slots, &given, n).unwrap_or(false)
                }
                (Takes::Param(id, own), Some(argument)) => {
                    call.params[id.index()] = self.number(argument.value, Some(own.kind), &own.name);
                    call.params[id.index()].is_some()
                }
            };
        }
        // Parameters of the file are the program's, too.
        for (id, own) in stencil.params.iter() {
            if let Some((params, index)) = self.file_param(own) {
                let param = self.lowering.file_param(params, index)?;
                call.params[id.index()] = Some(single(Node::Param(param), own.kind, span));
            }
        }
        complete.then_some(call)
    }

    /// Reports what says which levels a stencil reads, where it is no input: whether these are there is looked at when numbers come in.
    fn check_levels_given(
        &mut self,
        stencil: &Stencil,
        field: FieldId,
        given: VariableId,
        argument: ast::ExprId,
    ) -> Found<VariableId> {
        let own = &self.program.variables[given];
        if own.role == Some(Role::In) || !offsets(stencil).contains(&field) {
            return Some(given);
        }
        let (name, field) = (&own.name, &stencil.fields[field]);
        let message = format!("`{}` of `{}` says which levels are read: it is an input", field.name, stencil.name);
        let renamed = self.renamed.get(&given).map(|from| &self.program.variables[*from]);
        let renamed = renamed.filter(|from| from.role == Some(Role::In)).map(|from| from.name.clone());
        let what = match (&renamed, own.role) {
            (Some(input), _) if !self.assigned_names.contains(own.name.as_str()) => {
                format!("another name for `{input}`")
            }
            (Some(input), _) => format!("it has the values of `{input}`, and others later"),
            (None, Some(_)) => "it may change".to_owned(),
            (None, None) => "computed on the way".to_owned(),
        };
        let found = wrong(self.span(argument), message, what).note(field.span, "declared here");
        let help = match renamed {
            Some(input) if !self.assigned_names.contains(own.name.as_str()) => format!("pass `{input}` itself"),
            Some(input) => format!("pass `{input}` itself, or give what is assigned later another name"),
            None => format!(
                "that these levels are there is looked at before anything is computed: declare `in {name}: int` in the program"
            ),
        };
        self.report(found.help(help))
    }

    /// Lets variables take what a call returns, in the order declared.
    pub(super) fn take(&mut self, stencil: &Stencil, call: Found<Call>, to: Vec<Found<VariableId>>) -> Found<Action> {
        self.valued.extend(to.iter().flatten());
        let (mut call, targets) = call.zip(to.into_iter().collect::<Option<Vec<_>>>())?;
        let written = stencil.fields.iter().filter(|(_, field)| field.role.is_written());
        for ((id, _), target) in written.zip(targets) {
            call.fields[id.index()].written = Some(target);
        }
        self.check_edges(stencil, &call)?;
        Some(Action::Call(call))
    }

    /// The parameter of the file that a stencil's is, if it is one.
    fn file_param(&self, own: &Param) -> Option<(&'a ast::Params, usize)> {
        let Global::Param(params, index) = self.lowering.globals.find(&own.name)? else { return None };
        (params.names[index].span == own.span).then_some((params, index))
    }

    fn slots<'s>(&self, stencil: &'s Stencil) -> Vec<Slot<'s>> {
        let fields = stencil.fields.iter().filter(|(_, own)| own.role.is_read());
        let params = stencil.params.iter().filter(|(_, own)| self.file_param(own).is_none());
        let fields = fields.map(|(id, own)| Slot { name: &own.name, span: own.span, takes: Takes::Field(id, own) });
        let params = params.map(|(id, own)| Slot { name: &own.name, span: own.span, takes: Takes::Param(id, own) });
        let mut slots: Vec<Slot> = fields.chain(params).collect();
        slots.sort_by_key(|slot| slot.span.start);
        slots
    }

    fn slot_named(&mut self, stencil: &Stencil, slots: &[Slot], name: &ast::Name) -> Found<usize> {
        if let Some(place) = slots.iter().position(|own| own.name == name.text) {
            return Some(place);
        }
        let found = Diagnostic::error(name.span, format!("`{}` takes no `{}`", stencil.name, name.text));
        if stencil.fields.iter().any(|(_, own)| own.name == name.text) {
            return self.report(found.label("an output: it is returned, not passed"));
        }
        if stencil.params.iter().any(|(_, own)| own.name == name.text) {
            let found = found.label("a parameter of the file: stencils and programs see the same");
            return self.report(found.help(format!("set it for all: --set {}=...", name.text)));
        }
        let guess = guess(&name.text, slots.iter().map(|slot| slot.name));
        self.report(found.meant(guess, |found| found.label(signature(stencil, slots))))
    }

    fn too_many<T>(&mut self, stencil: &Stencil, slots: &[Slot], given: usize, at: Span) -> Found<T> {
        let takes = if slots.is_empty() { "nothing".to_owned() } else { count(slots.len()) };
        self.report(wrong(at, format!("`{}` takes {takes}, here are {given}", stencil.name), signature(stencil, slots)))
    }

    fn missing<T>(&mut self, stencil: &Stencil, slots: &[Slot], slot: Slot, span: Span) -> Found<T> {
        let what = if let Takes::Field(..) = slot.takes { "field" } else { "parameter" };
        let found = Diagnostic::error(span, format!("`{}` needs the {what} `{}`", stencil.name, slot.name));
        self.report(found.label(signature(stencil, slots)).note(slot.span, "declared here"))
    }

    /// A field that is passed to a stencil.
    fn field_argument(&mut self, stencil: &Stencil, own: &Field, value: ExprId) -> Found<VariableId> {
        let at = self.span(value);
        let Some(variable) = self.field_with_value(value) else { return self.no_field(stencil, own, value) };
        let variable = variable?;
        if self.is_number(variable) {
            let (name, number) = (&own.name, &self.program.variables[variable].name);
            let message = format!("`{name}` of `{}` is a field, and `{number}` a number", stencil.name);
            let found = wrong(at, message, "a number is passed to a parameter").note(own.span, "declared here");
            return self.report(found.help(format!("declare it in the stencil as `param {name}`")));
        }
        let passed = Held::variable(&self.program.variables[variable]);
        self.check_same(Held::field(stencil, own), passed, at, "does not fit").map(|()| variable)
    }

    /// Whether an expression is a field's name alone.
    fn names_a_field(&mut self, value: ExprId) -> bool {
        matches!(self.field_named(value), Some(Some(variable)) if !self.is_number(variable))
    }

    /// Reports a field that is passed to the parameter at place `n`.
    fn field_for_param<T>(
        &mut self,
        stencil: &Stencil,
        own: &Param,
        slots: &[Slot],
        given: &[Option<&ast::Argument>],
        n: usize,
    ) -> Found<T> {
        let argument = given[n]?;
        let (at, variable) = (self.span(argument.value), self.field_named(argument.value)??);
        let field = &self.program.variables[variable].name;
        let place = match argument.name {
            None => format!("argument {} of `{}` is the parameter `{}`", n + 1, stencil.name, own.name),
            Some(_) => format!("`{}` of `{}` is a parameter", own.name, stencil.name),
        };
        // It is mostly meant for the field that adds up, which nobody has to give.
        let mut left = slots.iter().zip(given).filter(|(_, argument)| argument.is_none());
        let is_added = |slot: &Slot| matches!(slot.takes, Takes::Field(_, own) if own.role == Role::Inc);
        let added = left.find(|(slot, _)| is_added(slot)).map(|(slot, _)| slot.name);
        let found = wrong(at, format!("{place}, and `{field}` is a field"), signature(stencil, slots))
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
    fn no_field<T>(&mut self, stencil: &Stencil, own: &Field, value: ExprId) -> Found<T> {
        let (file, at) = (self.lowering.file, self.span(value));
        let found = Diagnostic::error(at, format!("`{}` of `{}` takes a field", own.name, stencil.name));
        let found = match &file.exprs[value] {
            Expr::Name(name) => match self.lowering.scope.find(name) {
                Some(symbol) if matches!(symbol.binding, Binding::Broken) => return None,
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
        let inside = self.program.variables.iter().find(|(_, own)| own.name == name).map(|(_, own)| own.span);
        let found = Diagnostic::error(at, format!("unknown field `{name}`"));
        self.report(match inside {
            Some(span) => found
                .label("a name of a loop ends with it")
                .note(span, "defined here")
                .help("declare the field before the loop, and assign it inside"),
            None => found.meant(self.guess(name), |found| {
                found.label("not defined here").help("declare it with `in`, `inout` or `out`")
            }),
        })
    }
}
