//! What is wrong with functions and constants that no stencil uses.

use super::call::Call;
use super::scope::{Binding, Globals};
use super::value::{Alias, Bound, Value};
use super::{Body, Lowering, STENCIL_NODES};
use crate::ast::{File, Function, Item};
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::{Field, FieldId, Levels, Path, Place, Role, Stored};
use crate::source::Span;
use crate::text::FreeText;
use std::collections::HashMap;

/// The most operations of one try, and of all.
const TRY: usize = 20_000;
const TRIES: usize = 1_000_000;

/// With more arguments than this, not every combination is tried.
const ARGUMENTS: u32 = 3;

/// What may be passed to a function: a real number, a whole constant, a truth value, a vector.
const KINDS: u32 = 4;

/// Errors in what nobody uses; and what there is to tell if not all of it was looked at.
pub fn look(file: &File, globals: &Globals, used: &HashMap<String, ()>) -> (Vec<Diagnostic>, Option<Diagnostic>) {
    let mut told = Vec::new();
    let mut spent = 0;
    let mut unread = None;
    // One for all constants, so that a chain of them is followed once.
    let mut constants = Lowering::new(file, globals, "", "");
    for item in &file.items {
        match item {
            Item::Function(function) if !used.contains_key(&function.name.text) => {
                if spent > TRIES {
                    unread.get_or_insert(function.name.span);
                    continue;
                }
                told.append(&mut look_at(function, &|| Lowering::new(file, globals, "", ""), &mut spent));
            }
            Item::Constant(constant) if !used.contains_key(&constant.name.text) => {
                if spent > TRIES {
                    unread.get_or_insert(constant.name.span);
                    continue;
                }
                (constants.nodes, constants.exceeded) = (0, false);
                constants.constant_in(constant, 0);
                spent += constants.nodes;
                told.append(&mut constants.diagnostics);
            }
            Item::Function(_)
            | Item::Constant(_)
            | Item::Stencil(_)
            | Item::Program(_)
            | Item::Param(_)
            | Item::Test(_)
            | Item::Mesh(_) => {}
        }
    }
    told.retain(|found| found.severity == Severity::Error);
    let unread = unread.map(|first| {
        Diagnostic::warning(first, "from here on, what nobody uses is not looked at")
            .label("not looked at")
            .help("what is wrong in it is told as soon as a stencil uses it")
    });
    (told, unread)
}

/// What is wrong with a function, whatever its arguments are.
fn look_at<'a>(function: &'a Function, new: &dyn Fn() -> Lowering<'a>, spent: &mut usize) -> Vec<Diagnostic> {
    // First what has nothing to do with the arguments.
    let (mut certain, _, nodes) = attempt(function, new(), None);
    *spent += nodes;
    certain.retain(|found| found.severity == Severity::Error);
    let arguments = function.params.len() as u32;
    if !certain.is_empty() || arguments == 0 || arguments > ARGUMENTS {
        return certain;
    }
    // Then what is wrong with every kind of argument: told as it is with real numbers.
    let mut with_reals = None;
    for kinds in 0..KINDS.pow(arguments) {
        if *spent > TRIES {
            return Vec::new();
        }
        let (errors, depends_on_numbers, nodes) = attempt(function, new(), Some(kinds));
        *spent += nodes;
        if depends_on_numbers || errors.iter().all(|found| found.severity == Severity::Warning) {
            return Vec::new();
        }
        with_reals.get_or_insert(errors);
    }
    let mut errors = with_reals.unwrap_or_default();
    errors.retain(|found| found.severity == Severity::Error);
    errors
}

/// Writes a function out with arguments of these kinds, or with arguments that nothing is known of.
fn attempt<'a>(
    function: &'a Function,
    mut lowering: Lowering<'a>,
    kinds: Option<u32>,
) -> (Vec<Diagnostic>, bool, usize) {
    let start = STENCIL_NODES - TRY;
    lowering.nodes = start;
    lowering.calls.push(Call::nobody(&function.name));
    let (real, truth) = (lowering.sample(Stored::Real), lowering.sample(Stored::Bool));
    let frame = lowering.scope.enter(0);
    for (number, name) in function.params.iter().enumerate() {
        let binding = kinds.map_or(Binding::Broken, |kinds| {
            let field = |field| Alias::Field(field, Path::default(), 0);
            let bound: Bound = match kinds / KINDS.pow(number as u32) % KINDS {
                0 => Value::One(field(real)),
                1 => Value::One(Alias::Int(1)),
                2 => Value::One(field(truth)),
                _ => Value::Many(vec![field(real); 3]),
            };
            Binding::Value(bound)
        });
        lowering.define(name, binding);
    }
    lowering.bodies.push(Body::new());
    lowering.block(&function.body);
    lowering.scope.leave(frame);
    (lowering.diagnostics, lowering.depends_on_numbers, lowering.nodes.saturating_sub(start))
}

impl Lowering<'_> {
    /// A field to pass as an argument.
    fn sample(&mut self, stored: Stored) -> FieldId {
        let place = Place { horizontal: true, levels: Levels::Full, home: None };
        let (name, doc, role, range) = (String::new(), FreeText::default(), Role::In, None);
        self.stencil.fields.add(Field { name, doc, role, place, stored, range, span: Span::default() })
    }
}
