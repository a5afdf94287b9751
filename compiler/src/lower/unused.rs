//! What is wrong with functions and constants that no stencil uses.

use super::Lowering;
use super::body::STENCIL_NODES;
use super::call::Call;
use super::declare::new_field;
use super::report::has_error;
use super::scope::{Binding, Globals};
use super::value::{Alias, Value};
use crate::ast::{Constant, Function, Item, Name};
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::{FieldId, Path, Place, Role, Stored};
use crate::source::Span;
use std::collections::HashSet;

/// The most operations of one try, and of all.
const TRY: usize = 20_000;
const TRIES: usize = 1_000_000;

/// With more arguments than this, not every combination is tried.
const ARGUMENTS: u32 = 3;

/// What may be passed to a function: a real number, a whole constant, a truth value, a vector.
const KINDS: u32 = 4;

/// Errors in what nobody uses; and what there is to tell if not all of it was looked at.
pub fn look(globals: &Globals, used: &HashSet<String>) -> (Vec<Diagnostic>, Option<Diagnostic>) {
    let (mut told, mut spent, mut unread) = (Vec::new(), 0, None);
    let is_unused = |name: &Name| !used.contains(&name.text);
    // One for all constants, so that a chain of them is followed once.
    let mut constants = Lowering::new(globals, "", "");
    for item in &globals.file.items {
        match item {
            Item::Function(Function { name, .. }) | Item::Constant(Constant { name, .. })
                if is_unused(name) && spent > TRIES =>
            {
                unread.get_or_insert(name.span);
            }
            Item::Function(function) if is_unused(&function.name) => {
                told.append(&mut look_at(function, globals, &mut spent));
            }
            Item::Constant(constant) if is_unused(&constant.name) => {
                (constants.size.nodes, constants.size.is_exceeded) = (0, false);
                constants.constant_in(constant, 0);
                spent += constants.size.nodes;
                told.append(&mut constants.reports.diagnostics);
            }
            Item::Function(_) | Item::Constant(_) | Item::Stencil(_) | Item::Program(_) => {}
            Item::Param(_) | Item::Type(_) | Item::Test(_) | Item::Mesh(_) | Item::Import(_) => {}
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
fn look_at(function: &Function, globals: &Globals, spent: &mut usize) -> Vec<Diagnostic> {
    // First what has nothing to do with the arguments.
    let (certain, _) = attempt(function, globals, None, spent);
    let arguments = function.params.len() as u32;
    if has_error(&certain) || arguments == 0 || arguments > ARGUMENTS {
        return certain;
    }
    // Then what is wrong with every kind of argument: told as it is with real numbers.
    let mut with_reals = None;
    for kinds in 0..KINDS.pow(arguments) {
        if *spent > TRIES {
            return Vec::new();
        }
        let (told, depends_on_numbers) = attempt(function, globals, Some(kinds), spent);
        if depends_on_numbers || !has_error(&told) {
            return Vec::new();
        }
        with_reals.get_or_insert(told);
    }
    with_reals.unwrap_or_default()
}

/// Writes a function out with arguments of these kinds, or with arguments that nothing is known of: what there is to tell then,
/// and whether it depends on numbers.
fn attempt(function: &Function, globals: &Globals, kinds: Option<u32>, spent: &mut usize) -> (Vec<Diagnostic>, bool) {
    let start = STENCIL_NODES - TRY;
    let mut lowering = Lowering::new(globals, "", "");
    lowering.size.nodes = start;
    lowering.calls.push(Call::nobody(&function.name));
    let (real, truth) = (lowering.sample(Stored::Real), lowering.sample(Stored::Bool));
    let field = |field| Alias::Field(field, Path::default(), 0);
    for (number, name) in function.params.iter().enumerate() {
        let bound = kinds.map(|kinds| match kinds / KINDS.pow(number as u32) % KINDS {
            0 => Value::One(field(real)),
            1 => Value::One(Alias::Int(1)),
            2 => Value::One(field(truth)),
            _ => Value::Many(vec![field(real); 3]),
        });
        lowering.define(name, bound.map_or(Binding::Broken, Binding::Value));
    }
    lowering.bodies(|own| own.block(&function.body));
    *spent += lowering.size.nodes.saturating_sub(start);
    (lowering.reports.diagnostics, lowering.reports.depend_on_numbers)
}

impl Lowering<'_> {
    /// A field to pass as an argument.
    fn sample(&mut self, stored: Stored) -> FieldId {
        self.stencil.fields.add(new_field("", Role::In, Place::CELLS, stored, Span::default()))
    }
}
