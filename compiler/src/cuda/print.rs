//! The printer: a kernel as CUDA C++.

use super::prelude::Helpers;
use super::values::{
    Tie, bracketed, c_type, expression, given, is_run, is_widening, operation, place, signed, subscript,
};
use super::{prelude, render};
use crate::diagnostic::Refusal;
use crate::ir::Precision;
use crate::kernel::verify::verify;
use crate::kernel::{
    Argument, ArgumentKind, Attempt, Contents, Kernel, Operand, Operation, Space, Statement, Step, Unroll, ValueId,
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
    let is_size = |statement: &Statement| match statement {
        Statement::Let(value) => matches!(kernel.values[*value].operation, Operation::Int(_)),
        _ => false,
    };
    let sizes = kernel.body.0.iter().take_while(|own| is_size(own)).count();
    block(kernel, &kernel.body.0[..sizes], 0, &mut body);
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
    block(kernel, &kernel.body.0[sizes..], 0, &mut body);
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

/// The skeleton of every kernel.
const TEMPLATE: &str = "kernel.cu.tera";

/// `const double* __restrict__ phi`
fn argument(kernel: &Kernel, own: &Argument) -> String {
    match own.what {
        ArgumentKind::Number(kind) => format!("const {} {}", c_type(kind), own.name),
        ArgumentKind::Array(array) => {
            let alone = match kernel.arrays[array].space {
                Space::Global { aliased: true } => "",
                _ => " __restrict__",
            };
            format!("{}{alone} {}", argument_type(kernel, own), own.name)
        }
    }
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
            let (entries, length, site) = (&own.entries, own.length, own.site);
            lines
                .push(format!("const WatchedTable {} = {{{entries}, {length}, {site}u, {}}};", array.name, watch.name));
        }
    }
    lines
}

/// The statements of a block as lines, at a depth.
pub(super) fn block(kernel: &Kernel, statements: &[Statement], depth: usize, lines: &mut Vec<String>) {
    let indent = "    ".repeat(depth);
    for own in statements {
        statement(kernel, own, depth, &indent, lines);
    }
}

fn statement(kernel: &Kernel, statement: &Statement, depth: usize, indent: &str, lines: &mut Vec<String>) {
    let shown = |value: ValueId| given(kernel, value);
    match statement {
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
            lines.push(format!("{indent}{qualifier} {c_type} {name} = {text};"));
        }
        Statement::Declare(variable, value) => {
            let own = &kernel.variables[*variable];
            let first = value.map(|value| format!(" = {}", shown(value))).unwrap_or_default();
            lines.push(format!("{indent}{} {}{first};", c_type(own.kind), own.name));
        }
        Statement::Assign(variable, value) => {
            lines.push(format!("{indent}{} = {};", kernel.variables[*variable].name, shown(*value)));
        }
        Statement::Store(array, index, value) => {
            let (name, element) = (&kernel.arrays[*array].name, kernel.arrays[*array].element);
            let index = subscript(kernel, *index);
            let own = &kernel.values[*value];
            lines.push(match &own.operation {
                Operation::Lanes(lanes) if own.kind != element => {
                    let lanes: Vec<String> = lanes.iter().map(|&lane| expression(kernel, lane).0).collect();
                    format!("{indent}store_run(&{name}[{index}], {});", lanes.join(", "))
                }
                _ => format!("{indent}{name}[{index}] = {};", shown(*value)),
            });
        }
        Statement::AtomicAdd(array, index, values) => {
            let (name, index) = (&kernel.arrays[*array].name, subscript(kernel, *index));
            let texts: Vec<String> = values.iter().map(|&value| shown(value)).collect();
            lines.push(match texts.as_slice() {
                [one] => format!("{indent}atomicAdd(&{name}[{index}], {one});"),
                several => format!("{indent}add_{}({name}, {index}, {});", several.len(), several.join(", ")),
            });
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
            lines.push(match contents {
                Contents::Unset => format!("{indent}{c_type} {name}{extents};"),
                Contents::Zeros => format!("{indent}{c_type} {name}{extents} = {{}};"),
                Contents::Listed(values) => {
                    let values: Vec<String> = values.iter().map(|&value| shown(value)).collect();
                    format!("{indent}const {c_type} {name}{extents} = {{{}}};", values.join(", "))
                }
                Contents::From(row) if !extents.is_empty() => {
                    format!("{indent}{qualifier}{c_type} (&{name}){extents} = {base}[{}];", subscript(kernel, *row))
                }
                Contents::From(first) => {
                    let from = place(kernel, base, *first);
                    format!("{indent}{qualifier}{c_type}* const {name} = {from};")
                }
                Contents::Either(condition, other) => {
                    let (condition, other) = (shown(*condition), &kernel.arrays[*other].name);
                    format!("{indent}{qualifier}{c_type}* const {name} = {condition} ? {base} : {other};")
                }
            });
        }
        Statement::Do(routine, operands) => {
            let numbers: Vec<String> = routine.numbers().iter().map(usize::to_string).collect();
            let numbers = if numbers.is_empty() { String::new() } else { format!("<{}>", numbers.join(", ")) };
            let operands = operands.iter().map(|operand| match operand {
                Operand::Value(value) => shown(*value),
                Operand::Row(array) => kernel.arrays[*array].name.to_string(),
                Operand::Place(array, index) => {
                    let own = &kernel.arrays[*array];
                    match own.space {
                        Space::Rows(..) => format!("{}[{}]", own.name, subscript(kernel, *index)),
                        _ => place(kernel, &own.name, *index),
                    }
                }
            });
            let operands: Vec<String> = operands.collect();
            let (name, operands) = (routine.name(), operands.join(", "));
            lines.push(format!("{indent}{name}{numbers}({operands});"));
        }
        Statement::If(condition, yes, no) => {
            let (mut condition, mut yes, mut no) = (*condition, yes, no);
            let mut head = format!("{indent}if");
            loop {
                let truth = shown(condition);
                // One short statement stands behind its condition.
                let is_short = matches!(
                    yes.0.as_slice(),
                    [Statement::Store(..)
                        | Statement::AtomicAdd(..)
                        | Statement::Do(..)
                        | Statement::Assign(..)
                        | Statement::Return
                        | Statement::Break]
                );
                if is_short && no.0.is_empty() && head.len() == indent.len() + 2 {
                    let mut inner = Vec::new();
                    block(kernel, &yes.0, 0, &mut inner);
                    lines.push(format!("{head} ({truth}) {}", inner.join(" ")));
                    return;
                }
                lines.push(format!("{head} ({truth}) {{"));
                block(kernel, &yes.0, depth + 1, lines);
                match no.0.as_slice() {
                    [] => break,
                    // `else { if ... }` reads better as `else if ...`.
                    [Statement::If(next, next_yes, next_no)] => {
                        head = format!("{indent}}} else if");
                        (condition, yes, no) = (*next, next_yes, next_no);
                    }
                    other => {
                        lines.push(format!("{indent}}} else {{"));
                        block(kernel, other, depth + 1, lines);
                        break;
                    }
                }
            }
            lines.push(format!("{indent}}}"));
        }
        Statement::For(own) => {
            let (name, kind) = (&kernel.variables[own.counter].name, c_type(kernel.variables[own.counter].kind));
            let is_one = |step: ValueId| kernel.values[step].operation == Operation::Int(1);
            let (relation, step) = match own.step {
                Step::By(step) if is_one(step) => ("<", format!("++{name}")),
                Step::By(step) => ("<", format!("{name} += {}", shown(step))),
                Step::Down(step) if is_one(step) => (">=", format!("--{name}")),
                Step::Down(step) => (">=", format!("{name} -= {}", shown(step))),
                Step::Doubled => ("<", format!("{name} *= 2")),
            };
            let end = bracketed(signed(kernel, own.end), Tie::Sum);
            match own.unroll {
                Unroll::Free => {}
                Unroll::Whole => lines.push(format!("{indent}#pragma unroll")),
                Unroll::Times(times) => lines.push(format!("{indent}#pragma unroll {times}")),
            }
            let first = shown(own.first);
            lines.push(format!("{indent}for ({kind} {name} = {first}; {name} {relation} {end}; {step}) {{"));
            block(kernel, &own.body.0, depth + 1, lines);
            lines.push(format!("{indent}}}"));
        }
        Statement::Barrier => lines.push(format!("{indent}__syncthreads();")),
        Statement::Break => lines.push(format!("{indent}break;")),
        Statement::Return => lines.push(match kernel.attempt {
            Some(_) => format!("{indent}return true;"),
            None => format!("{indent}return;"),
        }),
        Statement::GiveUp => {
            if let Some(Attempt { is_quick, is_usual }) = &kernel.attempt {
                lines.push(format!("{indent}if ({is_quick} && !{is_usual}) return false;"));
            }
        }
        Statement::Gap => lines.push(String::new()),
        Statement::Note(note) => lines.push(format!("{indent}// {note}")),
    }
}
