//! The printer: a kernel as CUDA C++.

use super::prelude::Helpers;
use super::values::{
    Tie, bracketed, c_type, expression, given, is_run, is_widening, list, operation, place, signed, subscript,
};
use super::{prelude, render};
use crate::diagnostic::Refusal;
use crate::ir::Precision;
use crate::kernel::verify::verify;
use crate::kernel::{
    Argument, ArgumentKind, Array, Attempt, Block, Contents, Kernel, Operand, Operation, Space, Statement, Step,
    Unroll, Value, ValueId, Variable, Watched,
};
use crate::names::Identifier;
use crate::text::Comment;
use serde::Serialize;

/// What the template of a kernel is filled with.
#[derive(Serialize)]
struct Texts {
    comment: Vec<Comment>,
    prelude: Vec<String>,
    bounds: String,
    name: Identifier,
    signature: Vec<String>,
    body: Vec<String>,
    /// The names of the arguments.
    arguments: Vec<Identifier>,
    attempt: Option<Identifier>,
}

/// The kernel as CUDA C++, for NVRTC, nvcc and the emulator alike.
///
/// # Errors
/// The template is broken, which is a fault of the compiler.
pub fn text(kernel: &Kernel) -> Result<String, Refusal> {
    text_with(kernel, &Helpers::new(), Precision::F64)
}

/// The same, with functions in its prelude that something else needs, in a precision.
pub(super) fn text_with(kernel: &Kernel, others: &Helpers, precision: Precision) -> Result<String, Refusal> {
    debug_assert!(verify(kernel).is_ok(), "{:?}\n{kernel}", verify(kernel));
    let mut body = Vec::new();
    if let Some(Attempt { is_usual, .. }) = &kernel.attempt {
        body.push(format!("bool {is_usual} = true;"));
    }
    // What looks at indices is made of sizes, which come first.
    let sizes = kernel.sizes().count();
    body.extend(block(kernel, &kernel.body.0[..sizes]));
    for (_, array) in kernel.arrays.iter() {
        let (c_type, name) = (c_type(array.element), &array.name);
        match array.space {
            Space::Global { .. } | Space::Constant(_) | Space::Local(_) | Space::Rows(..) | Space::View(_) => {}
            Space::Shared(count) => body.push(format!("STENCILC_SHARED({c_type}, {name}, [{count}]);")),
            Space::Dynamic(_) => body.push(format!("STENCILC_DYNAMIC_SHARED({c_type}, {name});")),
            Space::Part { of, first, .. } => {
                let of = &kernel.arrays[of].name;
                let from = if first == 0 { of.to_string() } else { format!("{of} + {first}") };
                body.push(format!("{c_type}* const {name} = reinterpret_cast<{c_type}*>({from});"));
            }
        }
    }
    body.extend(watches(kernel));
    body.extend(block(kernel, &kernel.body.0[sizes..]));
    let texts = Texts {
        comment: super::head(kernel),
        prelude: prelude::of_kernel(kernel, others, precision),
        bounds: match kernel.blocks {
            0 => kernel.threads.to_string(),
            blocks => format!("{}, {blocks}", kernel.threads),
        },
        name: kernel.name.clone(),
        signature: kernel.arguments.iter().map(|(_, own)| argument(kernel, own)).collect(),
        body,
        arguments: kernel.arguments.iter().map(|(_, own)| own.name.clone()).collect(),
        attempt: kernel.attempt.as_ref().map(|own| own.is_quick.clone()),
    };
    render(TEMPLATE, &texts)
}

/// The word before a loop whose turns have nothing to do with each other.
pub(super) const SIDE_BY_SIDE: &str = "STENCILC_SIDE_BY_SIDE";

/// The skeleton of every kernel.
const TEMPLATE: &str = "kernel.cu.tera";

/// `const double* __restrict__ phi`
fn argument(kernel: &Kernel, own: &Argument) -> String {
    let (before, behind) = match own.what {
        ArgumentKind::Number(_) => ("const ", ""),
        ArgumentKind::Array(array) if kernel.arrays[array].space == (Space::Global { aliased: true }) => ("", ""),
        ArgumentKind::Array(_) => ("", " __restrict__"),
    };
    format!("{before}{}{behind} {}", argument_type(kernel, own), own.name)
}

/// The C type of an argument: `const double*`.
pub(super) fn argument_type(kernel: &Kernel, own: &Argument) -> String {
    match own.what {
        ArgumentKind::Number(kind) => c_type(kind),
        ArgumentKind::Array(array) => {
            let array = &kernel.arrays[array];
            format!("{}{}*", if array.is_written { "" } else { "const " }, c_type(array.element))
        }
    }
}

/// What stands at the head of a checked kernel.
fn watches(kernel: &Kernel) -> Vec<String> {
    let Some(watch) = &kernel.watch else { return Vec::new() };
    let [report, columns] = [watch.report, watch.columns].map(|array| &kernel.arrays[array].name);
    let plane = expression(kernel, watch.plane).0;
    let mut lines = vec![format!("const Watch {} = {{{report}, {columns}, {plane}}};", watch.name)];
    for (_, array) in kernel.arrays.iter() {
        if let Some(own) = &array.watched {
            let Watched { entries, length, site } = own;
            let (name, watch) = (&array.name, &watch.name);
            lines.push(format!("const WatchedTable {name} = {{{entries}, {length}, {site}u, {watch}}};"));
        }
    }
    lines
}

/// The statements of a block as lines.
pub(super) fn block(kernel: &Kernel, statements: &[Statement]) -> Vec<String> {
    statements.iter().flat_map(|own| statement(kernel, own)).collect()
}

/// A block within another one.
fn indented(kernel: &Kernel, block: &Block) -> Vec<String> {
    let lines = self::block(kernel, &block.0).into_iter();
    lines.map(|line| if line.is_empty() { line } else { format!("    {line}") }).collect()
}

fn statement(kernel: &Kernel, statement: &Statement) -> Vec<String> {
    let shown = |value: ValueId| given(kernel, value);
    let all = |values: &[ValueId]| values.iter().map(|&value| shown(value)).collect::<Vec<_>>().join(", ");
    let line = match statement {
        Statement::Let(value) => {
            let own = &kernel.values[*value];
            let name = own.name.as_ref().map_or("", |name| name);
            let (qualifier, c_type) = match own.operation {
                Operation::Int(_) => ("constexpr", c_type(own.kind)),
                _ if is_run(kernel, *value) => ("const", "auto".to_owned()),
                _ => ("const", c_type(own.kind)),
            };
            let text = match own.operation {
                Operation::Convert(a) if is_widening(kernel, a, own.kind) => signed(kernel, a).0,
                _ => operation(kernel, *value).0,
            };
            format!("{qualifier} {c_type} {name} = {text};")
        }
        Statement::Declare(variable, value) => {
            let own = &kernel.variables[*variable];
            let first = value.map(|value| format!(" = {}", shown(value))).unwrap_or_default();
            format!("{} {}{first};", c_type(own.kind), own.name)
        }
        Statement::Assign(variable, value) => format!("{} = {};", kernel.variables[*variable].name, shown(*value)),
        Statement::Store(array, index, value) => {
            let Array { name, element, .. } = &kernel.arrays[*array];
            let index = subscript(kernel, *index);
            match &kernel.values[*value] {
                Value { operation: Operation::Lanes(lanes), kind, .. } if kind != element => {
                    format!("store_run(&{name}[{index}], {});", list(kernel, lanes))
                }
                _ => format!("{name}[{index}] = {};", shown(*value)),
            }
        }
        Statement::AtomicAdd(array, index, values) => {
            let (name, index) = (&kernel.arrays[*array].name, subscript(kernel, *index));
            match values.as_slice() {
                [one] => format!("atomicAdd(&{name}[{index}], {});", shown(*one)),
                several => format!("add_{}({name}, {index}, {});", several.len(), all(several)),
            }
        }
        Statement::Array(array, contents) => {
            let own = &kernel.arrays[*array];
            let (c_type, name) = (c_type(own.element), &own.name);
            let extents = match own.space {
                Space::Local(count) => format!("[{count}]"),
                Space::Rows(count, width) => format!("[{count}][{width}]"),
                _ => kernel.row_width(*array).map(|width| format!("[{width}]")).unwrap_or_default(),
            };
            let qualifier = if own.is_written { "" } else { "const " };
            let base = own.space.base().map_or("", |base| &kernel.arrays[base].name);
            match contents {
                Contents::Unset => format!("{c_type} {name}{extents};"),
                Contents::Zeros => format!("{c_type} {name}{extents} = {{}};"),
                Contents::Listed(values) => format!("const {c_type} {name}{extents} = {{{}}};", all(values)),
                Contents::From(row) if !extents.is_empty() => {
                    format!("{qualifier}{c_type} (&{name}){extents} = {base}[{}];", subscript(kernel, *row))
                }
                Contents::From(first) => {
                    format!("{qualifier}{c_type}* const {name} = {};", place(kernel, base, *first))
                }
                Contents::Either(condition, other) => {
                    let (condition, other) = (shown(*condition), &kernel.arrays[*other].name);
                    format!("{qualifier}{c_type}* const {name} = {condition} ? {base} : {other};")
                }
            }
        }
        Statement::Do(routine, operands) => {
            let numbers: Vec<String> = routine.numbers().iter().map(usize::to_string).collect();
            let numbers = if numbers.is_empty() { String::new() } else { format!("<{}>", numbers.join(", ")) };
            let operands = operands.iter().map(|operand| match operand {
                Operand::Value(value) => shown(*value),
                Operand::Row(array) => kernel.arrays[*array].name.to_string(),
                Operand::Place(array, index) => match &kernel.arrays[*array] {
                    Array { name, space: Space::Rows(..), .. } => format!("{name}[{}]", subscript(kernel, *index)),
                    own => place(kernel, &own.name, *index),
                },
            });
            format!("{}{numbers}({});", routine.name(), operands.collect::<Vec<_>>().join(", "))
        }
        Statement::If(condition, yes, no) if is_short(yes) && no.0.is_empty() => {
            format!("if ({}) {}", shown(*condition), block(kernel, &yes.0).concat())
        }
        Statement::If(condition, yes, no) => {
            let (mut condition, mut yes, mut no) = (*condition, yes, no);
            let mut lines = vec![format!("if ({}) {{", shown(condition))];
            loop {
                lines.extend(indented(kernel, yes));
                match no.0.as_slice() {
                    [] => break,
                    // `else { if ... }` reads better as `else if ...`.
                    [Statement::If(next, next_yes, next_no)] => {
                        (condition, yes, no) = (*next, next_yes, next_no);
                        lines.push(format!("}} else if ({}) {{", shown(condition)));
                    }
                    _ => {
                        lines.push("} else {".to_owned());
                        lines.extend(indented(kernel, no));
                        break;
                    }
                }
            }
            lines.push("}".to_owned());
            return lines;
        }
        Statement::For(own) => {
            let Variable { name, kind, .. } = &kernel.variables[own.counter];
            let is_one = |step: ValueId| kernel.values[step].operation == Operation::Int(1);
            let (relation, step) = match own.step {
                Step::By(step) if is_one(step) => ("<", format!("++{name}")),
                Step::By(step) => ("<", format!("{name} += {}", shown(step))),
                Step::Down(step) if is_one(step) => (">=", format!("--{name}")),
                Step::Down(step) => (">=", format!("{name} -= {}", shown(step))),
                Step::Doubled => ("<", format!("{name} *= 2")),
            };
            let mut lines = match own.unroll {
                Unroll::Free => Vec::new(),
                Unroll::Whole => vec!["#pragma unroll".to_owned()],
                Unroll::Times(times) => vec![format!("#pragma unroll {times}")],
                Unroll::SideBySide => vec![SIDE_BY_SIDE.to_owned()],
            };
            let (kind, first) = (c_type(*kind), shown(own.first));
            let end = bracketed(signed(kernel, own.end), Tie::Sum);
            lines.push(format!("for ({kind} {name} = {first}; {name} {relation} {end}; {step}) {{"));
            lines.extend(indented(kernel, &own.body));
            lines.push("}".to_owned());
            return lines;
        }
        Statement::Barrier => "__syncthreads();".to_owned(),
        Statement::Break => "break;".to_owned(),
        Statement::Return => if kernel.attempt.is_some() { "return true;" } else { "return;" }.to_owned(),
        Statement::GiveUp => match &kernel.attempt {
            Some(Attempt { is_quick, is_usual }) => format!("if ({is_quick} && !{is_usual}) return false;"),
            None => return Vec::new(),
        },
        Statement::Gap => String::new(),
        Statement::Note(note) => format!("// {note}"),
    };
    vec![line]
}

/// Whether a block is one short statement, which stands behind its condition.
fn is_short(block: &Block) -> bool {
    use Statement::{Assign, AtomicAdd, Break, Do, Return, Store};
    matches!(block.0.as_slice(), [Store(..) | AtomicAdd(..) | Do(..) | Assign(..) | Return | Break])
}
