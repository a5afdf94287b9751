//! `..` in what a program calls: `u, v = step(dt = 1, ..)` passes to each field and parameter that is left what has its name in
//! the program, and `.. = step(..)` assigns each result to the field of its name. It is written out here, so that nobody behind
//! the parser knows of it.

use super::{Builder, Built};
use crate::ast::{Argument, Expr, ExprId, Item, Name, Statement, Stencil, Target};
use crate::diagnostic::{Diagnostic, wrong};
use crate::foreign::FUNCTIONS;
use crate::ir::Role;
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Where `..` was read, and not written out yet.
#[derive(Default)]
pub(super) struct Rests {
    /// By call: among its arguments.
    pub(super) passed: BTreeMap<ExprId, Span>,
    /// By value: instead of the names that take its results.
    pub(super) assigned: BTreeMap<ExprId, Span>,
}

/// What a stencil takes and returns, by the names that it has for it.
#[derive(Default)]
struct Signature {
    /// What is passed, in order, and whether it may be left out.
    inputs: Vec<(String, bool)>,
    outputs: Vec<String>,
}

impl Signature {
    fn of(stencil: &Stencil) -> Self {
        let mut own = Self::default();
        for statement in &stencil.statements {
            match statement {
                Statement::Field(fields) => {
                    let named = Role::ALL.into_iter().find(|role| role.name() == fields.role.text);
                    let Some(role) = named else { continue };
                    let names = || fields.names.iter().map(|name| name.text.clone());
                    if role.is_read() {
                        // What adds up starts from 0 where nothing is passed.
                        own.inputs.extend(names().map(|name| (name, role == Role::Inc)));
                    }
                    if role.is_written() {
                        own.outputs.extend(names());
                    }
                }
                Statement::Param(params) => {
                    let names = params.names.iter().map(|name| (name.text.clone(), params.default.is_some()));
                    own.inputs.extend(names);
                }
                Statement::Reduce(reduce) => own.outputs.extend(reduce.names.iter().map(|name| name.text.clone())),
                Statement::Constant(_) | Statement::Function(_) | Statement::Let(_) | Statement::Print(_) => {}
                Statement::Assign(_) | Statement::Sweep(_) | Statement::Repeat(_) | Statement::Boundary(_) => {}
                Statement::SumsByLevel(_) | Statement::Within(_) | Statement::Zones(_) => {}
            }
        }
        own
    }
}

impl Builder<'_> {
    /// Writes out every `..`.
    ///
    /// # Errors
    /// One stands where no program calls a stencil.
    pub(super) fn write_out_rests(&mut self) -> Built<()> {
        let mut items = std::mem::take(&mut self.file.items);
        let stencils = items.iter().filter_map(|item| if let Item::Stencil(own) = item { Some(own) } else { None });
        let mut signatures: BTreeMap<String, Signature> =
            stencils.map(|own| (own.name.text.clone(), Signature::of(own))).collect();
        // A stencil that there is not is told later, and by its name.
        let unknown: Vec<String> = self.called_with_rest().filter(|name| !is_function(name, &items)).collect();
        for name in unknown {
            signatures.entry(name).or_default();
        }
        for item in &mut items {
            if let Item::Program(program) = item {
                self.statements(&mut program.statements, &signatures, BTreeSet::new())?;
            }
        }
        self.file.items = items;
        let Rests { passed, assigned } = &self.rests;
        match passed.values().chain(assigned.values()).next() {
            Some(&span) => Err(wrong(span, "`..` is for the calls of a program", "no stencil is called here")
                .help("it passes what has the same name in the program and in the stencil that it calls")),
            None => Ok(()),
        }
    }

    /// Writes it out in statements of a program, before which it has these names.
    fn statements(
        &mut self,
        statements: &mut [Statement],
        signatures: &BTreeMap<String, Signature>,
        mut names: BTreeSet<String>,
    ) -> Built<()> {
        for statement in statements {
            let new: &[Name] = match statement {
                Statement::Let(own) => {
                    self.pass_rest(own.value, signatures, &names)?;
                    &own.names
                }
                Statement::Assign(own) => {
                    if let (Some(span), Some(signature)) =
                        (self.rests.assigned.get(&own.value).copied(), self.signature(own.value, signatures))
                    {
                        let target = |text: &String| Target { name: Name { text: text.clone(), span }, index: None };
                        own.targets = signature.outputs.iter().map(target).collect();
                        self.rests.assigned.remove(&own.value);
                    }
                    self.pass_rest(own.value, signatures, &names)?;
                    &[]
                }
                Statement::Repeat(own) => {
                    self.statements(&mut own.statements, signatures, names.clone())?;
                    &[]
                }
                Statement::Field(own) => &own.names,
                Statement::Param(own) => &own.names,
                Statement::Constant(own) => std::slice::from_ref(&own.name),
                Statement::Function(_) | Statement::Print(_) | Statement::Reduce(_) => &[],
                Statement::Sweep(_) | Statement::Boundary(_) => &[],
                Statement::SumsByLevel(_) | Statement::Within(_) | Statement::Zones(_) => &[],
            };
            names.extend(new.iter().map(|name| name.text.clone()));
        }
        Ok(())
    }

    /// The names of what is called where `..` was read.
    fn called_with_rest(&self) -> impl Iterator<Item = String> {
        let Rests { passed, assigned } = &self.rests;
        passed.keys().chain(assigned.keys()).filter_map(|&value| match &self.file.exprs[value] {
            Expr::Call(name, _) => Some(name.text.clone()),
            _ => None,
        })
    }

    /// The signature of the stencil that an expression calls, if it calls one.
    fn signature<'s>(&self, value: ExprId, signatures: &'s BTreeMap<String, Signature>) -> Option<&'s Signature> {
        let Expr::Call(name, _) = &self.file.exprs[value] else { return None };
        signatures.get(&name.text)
    }

    /// Passes what is left of a call.
    fn pass_rest(
        &mut self,
        value: ExprId,
        signatures: &BTreeMap<String, Signature>,
        names: &BTreeSet<String>,
    ) -> Built<()> {
        let Some(span) = self.rests.passed.get(&value).copied() else { return Ok(()) };
        let Some(signature) = self.signature(value, signatures) else { return Ok(()) };
        self.rests.passed.remove(&value);
        let Expr::Call(_, arguments) = &self.file.exprs[value] else { return Ok(()) };
        let by_place = arguments.iter().filter(|own| own.name.is_none()).count();
        let given: BTreeSet<&str> = arguments.iter().filter_map(|own| Some(own.name.as_ref()?.text.as_str())).collect();
        let left = signature
            .inputs
            .iter()
            .skip(by_place)
            .filter(|(name, may_lack)| !given.contains(name.as_str()) && (!may_lack || names.contains(name)));
        let left: Vec<String> = left.map(|(name, _)| name.clone()).collect();
        for text in left {
            let own = self.node(Expr::Name(text.clone()), span, &[])?;
            if let Expr::Call(_, arguments) = &mut self.file.exprs[value] {
                arguments.push(Argument { name: Some(Name { text, span }), value: own });
            }
        }
        Ok(())
    }
}

/// Whether a name is that of a function, of the file or of the language.
fn is_function(name: &str, items: &[Item]) -> bool {
    let is_own = |item: &Item| matches!(item, Item::Function(own) if own.name.text == name);
    FUNCTIONS.contains(&name) || items.iter().any(is_own)
}

/// What `..` is not.
pub(super) fn misplaced(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(span, message).label("write out what is meant, or let `..` stand for all that is left")
}

#[cfg(test)]
mod tests {
    use crate::source::Source;

    const STENCILS: &str = "
stencil step { in h; inout u; param dt; param f = 1; out flux; u = u + f * dt * h; flux = h * dt }
stencil smooth { in h; out u; u = 0.5 * (h[i-1] + h[i+1]) }";

    /// A program, written down as it was understood.
    fn understood(program: &str) -> String {
        let lowered = crate::check(&Source::new("own.stn", format!("{program}{STENCILS}")));
        assert!(lowered.is_ok(), "{:?}", lowered.diagnostics);
        lowered.programs[0].to_string()
    }

    #[test]
    fn what_is_left_is_passed_and_taken_by_its_name() {
        let with = "program p { inout u; in h; out flux; param dt = 0.5; repeat 2 { BODY } }";
        for (short, long) in [
            (".. = step(..)", "u, flux = step(h, u, dt)"),
            ("u, flux = step(..)", "u, flux = step(h, u, dt)"),
            (".. = step(h, f = 2, ..)", "u, flux = step(h, u, dt, 2)"),
            ("let f = 2 * dt; .. = step(dt = dt / 2, ..)", "let f = 2 * dt; u, flux = step(h, u, dt / 2, f)"),
            ("let g = smooth(..); .. = step(h = g, ..)", "let g = smooth(h); u, flux = step(g, u, dt)"),
            ("u, flux = step(h, u, dt, ..)", "u, flux = step(h, u, dt)"),
        ] {
            let [short, long] = [short, long].map(|body| understood(&with.replace("BODY", body)));
            assert_eq!(short, long);
        }
    }
}
