//! The printer: a kernel as CUDA C++.

use super::prelude::Helpers;
use super::{prelude, render};
use crate::diagnostic::Refusal;
use crate::ir::{Precision, Relation};
use crate::kernel::verify::verify;
use crate::kernel::{
    Argument, Attempt, Axis, Binary, Contents, Coordinate, Element, Function, Kernel, Operand, Operation, Space,
    Statement, Step, Type, Unroll, ValueId, What,
};
use crate::names::Identifier;
use crate::text::Comment;
use serde::Serialize;

/// How tightly an expression binds, as in C++: what binds less tightly than what stands around it is put in brackets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tie {
    Choice,
    Or,
    And,
    BitOr,
    Xor,
    BitAnd,
    Equality,
    Relation,
    Shift,
    Sum,
    Product,
    Prefix,
    Atom,
}

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
        What::Number(kind) => format!("const {} {}", c_type(kind), own.name),
        What::Array(array) => {
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
        What::Number(kind) => c_type(kind),
        What::Array(array) => {
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

/// The C++ of a type.
pub fn c_type(kind: Type) -> String {
    let (one, several) = match kind.element {
        Element::F32 => ("float", "float"),
        Element::F64 => ("double", "double"),
        Element::I32 => ("int", "int"),
        Element::I64 => ("long long", "longlong"),
        Element::U32 => ("unsigned", "uint"),
        Element::Barrier => ("unsigned long long", "ulonglong"),
        Element::U16 => ("unsigned short", "ushort"),
        Element::U8 => ("unsigned char", "uchar"),
        Element::Bool => ("bool", "bool"),
    };
    if kind.lanes == 1 { one.to_owned() } else { format!("{several}{}", kind.lanes) }
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

/// A value as an expression.
pub(super) fn shown(kernel: &Kernel, value: ValueId) -> String {
    expression(kernel, value).0
}

/// What a value is converted from, if it has no name and is a whole number that is made longer: C++ does that by itself where a variable
/// gets it, as an index, and beside what is as long.
fn widened(kernel: &Kernel, value: ValueId) -> Option<ValueId> {
    let own = &kernel.values[value];
    match own.operation {
        Operation::Convert(a) if own.name.is_none() && is_widening(kernel, a, own.kind) => Some(a),
        _ => None,
    }
}

fn is_widening(kernel: &Kernel, a: ValueId, to: Type) -> bool {
    (kernel.values[a].kind, to) == (Type::I32, Type::I64)
}

/// A value as what a variable gets, or an element of an array.
fn given(kernel: &Kernel, value: ValueId) -> String {
    match widened(kernel, value) {
        Some(a) => signed(kernel, a).0,
        None => shown(kernel, value),
    }
}

/// A value as an index.
fn subscript(kernel: &Kernel, value: ValueId) -> String {
    signed(kernel, widened(kernel, value).unwrap_or(value)).0
}

/// Where an element of an array is: `phi + cell`.
fn place(kernel: &Kernel, array: &str, index: ValueId) -> String {
    let index = widened(kernel, index).unwrap_or(index);
    match kernel.values[index].operation {
        Operation::Int(0) => array.to_owned(),
        _ => format!("{array} + {}", bracketed(signed(kernel, index), Tie::Sum)),
    }
}

/// Whether a value is elements that were loaded at once.
fn is_run(kernel: &Kernel, value: ValueId) -> bool {
    let own = &kernel.values[value];
    matches!(own.operation, Operation::Load(array, _) if kernel.arrays[array].element != own.kind)
}

fn bracketed((text, tie): (String, Tie), least: Tie) -> String {
    if tie < least { format!("({text})") } else { text }
}

/// A value by its name, or else by what computes it.
fn expression(kernel: &Kernel, value: ValueId) -> (String, Tie) {
    match &kernel.values[value].name {
        Some(name) => (name.to_string(), Tie::Atom),
        None => operation(kernel, value),
    }
}

fn operation(kernel: &Kernel, value: ValueId) -> (String, Tie) {
    let own = &kernel.values[value];
    let within = |value: ValueId, least: Tie| bracketed(expression(kernel, value), least);
    let signed = |value: ValueId, least: Tie| bracketed(signed(kernel, value), least);
    // An operand beside one that has 64 bits has them, too.
    let beside = |value: ValueId, other: ValueId, least: Tie| match widened(kernel, value) {
        Some(a) if is_wide(kernel, other) => signed(a, least),
        _ => within(value, least),
    };
    // What stands on the right of an operator that goes from left to right binds more tightly.
    let infix = |a: ValueId, symbol: &str, b: ValueId, tie: Tie, right: Tie| {
        (format!("{} {symbol} {}", beside(a, b, tie), beside(b, a, right)), tie)
    };
    let call = |name: &str, operands: &[ValueId]| {
        let operands: Vec<String> = operands.iter().map(|&operand| expression(kernel, operand).0).collect();
        (format!("{name}({})", operands.join(", ")), Tie::Atom)
    };
    match &own.operation {
        Operation::Int(number) => match i32::try_from(*number) {
            // C++ reads -2147483648 as the negation of a number that does not fit.
            Ok(i32::MIN) => ("(-2147483647 - 1)".into(), Tie::Atom),
            _ if *number < 0 => (number.to_string(), Tie::Prefix),
            _ => (number.to_string(), Tie::Atom),
        },
        Operation::Real(bits) => {
            let number = f64::from_bits(*bits);
            let tie = if number.is_sign_negative() && !number.is_nan() { Tie::Prefix } else { Tie::Atom };
            (real(number, own.kind.precision()), tie)
        }
        Operation::Bool(truth) => (truth.to_string(), Tie::Atom),
        Operation::Mask(lanes) => (format!("{lanes:#x}u"), Tie::Atom),
        Operation::Negate(a) => {
            // Two signs in a row mean something else.
            let is_signed = kernel.values[*a].name.is_none() && is_negative(kernel, *a);
            let least = if is_signed { Tie::Atom } else { Tie::Prefix };
            (format!("-{}", within(*a, least)), Tie::Prefix)
        }
        Operation::Not(a) => (format!("!{}", within(*a, Tie::Prefix)), Tie::Prefix),
        Operation::Call(function, operands) => match function {
            Function::WatchShift | Function::WatchLevel => call(&format!("{}.allows", watch(kernel)), operands),
            Function::WatchNeighbour => call(&format!("{}.leads", watch(kernel)), operands),
            Function::Interleaved(fields) => call(&format!("interleaved<{fields}, {}>", c_type(own.kind)), operands),
            Function::Inverse | Function::Quotient => {
                let told = kernel.attempt.as_ref().map_or(["", ""], |own| [&*own.is_quick, &*own.is_usual]);
                let told = if *function == Function::Inverse { &told[1..] } else { &told[..] };
                let operands = operands.iter().map(|&operand| expression(kernel, operand).0);
                let all: Vec<String> = operands.chain(told.iter().map(|&name| name.to_owned())).collect();
                let name = prelude::function_name(*function, own.kind);
                (format!("{name}({})", all.join(", ")), Tie::Atom)
            }
            function => call(prelude::function_of(kernel, value, *function, operands), operands),
        },
        Operation::Argument(argument) => (kernel.arguments[*argument].name.to_string(), Tie::Atom),
        Operation::Variable(variable) => (kernel.variables[*variable].name.to_string(), Tie::Atom),
        Operation::Coordinate(coordinate, axis) => (coordinate_name(*coordinate, *axis), Tie::Atom),
        Operation::Binary(binary, a, b) => match binary {
            Binary::Add => infix(*a, "+", *b, Tie::Sum, Tie::Product),
            Binary::Sub => infix(*a, "-", *b, Tie::Sum, Tie::Product),
            Binary::Mul => infix(*a, "*", *b, Tie::Product, Tie::Prefix),
            // Of whole numbers that are not negative, whose sign has no part in it.
            Binary::Div => infix(*a, "/", *b, Tie::Product, Tie::Prefix),
            Binary::Rem => infix(*a, "%", *b, Tie::Product, Tie::Prefix),
            Binary::Min | Binary::Max => {
                let name = if *binary == Binary::Min { "min" } else { "max" };
                (format!("{name}({}, {})", signed(*a, Tie::Choice), signed(*b, Tie::Choice)), Tie::Atom)
            }
            // Readers, and warnings of compilers, want brackets where operators on bits meet others.
            Binary::BitAnd => (format!("{} & {}", within(*a, Tie::Prefix), within(*b, Tie::Prefix)), Tie::BitAnd),
            Binary::ShiftRight => (format!("{} >> {}", within(*a, Tie::Prefix), within(*b, Tie::Prefix)), Tie::Shift),
            Binary::Xor => (format!("{} ^ {}", within(*a, Tie::Prefix), within(*b, Tie::Prefix)), Tie::Xor),
            Binary::BitOr => {
                let chain = match kernel.values[*a].operation {
                    Operation::Binary(Binary::BitOr, ..) => within(*a, Tie::BitOr),
                    _ => within(*a, Tie::Prefix),
                };
                (format!("{chain} | {}", within(*b, Tie::Prefix)), Tie::BitOr)
            }
        },
        Operation::Compare(relation, a, b) => {
            let tie = match relation {
                Relation::Eq | Relation::Ne => Tie::Equality,
                Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge => Tie::Relation,
            };
            // Whether a coordinate is a number, its sign has no part in.
            let is_number = |value: ValueId| matches!(kernel.values[value].operation, Operation::Int(0..));
            let side = |value: ValueId, other: ValueId| match tie {
                Tie::Equality if is_number(other) => within(value, Tie::Sum),
                _ => signed(value, Tie::Sum),
            };
            (format!("{} {} {}", side(*a, *b), relation.symbol(), side(*b, *a)), tie)
        }
        Operation::And(a, b) => infix(*a, "&&", *b, Tie::And, Tie::Equality),
        Operation::Or(a, b) => {
            let side = |value: ValueId| match kernel.values[value].operation {
                Operation::And(..) => within(value, Tie::Equality),
                _ => within(value, Tie::Or),
            };
            (format!("{} || {}", side(*a), side(*b)), Tie::Or)
        }
        Operation::Choose(condition, yes, no) => (
            format!("{} ? {} : {}", within(*condition, Tie::Or), within(*yes, Tie::Or), within(*no, Tie::Choice)),
            Tie::Choice,
        ),
        Operation::Convert(a) if own.kind == Type::I64 => {
            (format!("({}){}", c_type(own.kind), signed(*a, Tie::Prefix)), Tie::Prefix)
        }
        // What is made of coordinates alone has no sign already.
        Operation::Convert(a) if own.kind == Type::U32 && has_coordinate(kernel, *a) => expression(kernel, *a),
        Operation::Convert(a) => (format!("{}({})", c_type(own.kind), signed(*a, Tie::Choice)), Tie::Atom),
        Operation::Lane(a, lane) if is_run(kernel, *a) => (format!("{}.at[{lane}]", within(*a, Tie::Atom)), Tie::Atom),
        Operation::Lane(a, lane) => {
            let part = ["x", "y", "z", "w"][usize::from(*lane) % 4];
            (format!("{}.{part}", within(*a, Tie::Atom)), Tie::Atom)
        }
        Operation::Lanes(lanes) => {
            let lanes: Vec<String> = lanes.iter().map(|&lane| expression(kernel, lane).0).collect();
            (format!("make_{}({})", c_type(own.kind), lanes.join(", ")), Tie::Atom)
        }
        Operation::Load(array, index) => {
            let element = format!("{}[{}]", kernel.arrays[*array].name, subscript(kernel, *index));
            match is_run(kernel, value) {
                true => (format!("load_run<{}>(&{element})", own.kind.lanes), Tie::Atom),
                false => (element, Tie::Atom),
            }
        }
        Operation::Follow(follow) => {
            let tables =
                follow.patterns.iter().chain([&follow.table]).map(|&table| kernel.arrays[table].name.to_string());
            let operands = [follow.start, follow.place].map(|operand| expression(kernel, operand).0);
            let operands: Vec<String> = tables.chain(operands).collect();
            (format!("neighbour_of({})", operands.join(", ")), Tie::Atom)
        }
        Operation::Shuffle { value, lane, lanes } => call("__shfl_sync", &[*lanes, *value, *lane]),
        Operation::ShuffleDown(a, by) => {
            let (a, by) = (expression(kernel, *a).0, expression(kernel, *by).0);
            (format!("__shfl_down_sync(0xffffffffu, {a}, {by})"), Tie::Atom)
        }
    }
}

/// Whether the text of a value without a name begins with a sign.
fn is_negative(kernel: &Kernel, value: ValueId) -> bool {
    match kernel.values[value].operation {
        Operation::Negate(_) => true,
        Operation::Int(number) => number < 0,
        Operation::Real(bits) => f64::from_bits(bits).is_sign_negative() && !f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Whether the text of a value has 64 bits in C++. A number has as many as it needs.
fn is_wide(kernel: &Kernel, value: ValueId) -> bool {
    let own = &kernel.values[value];
    match own.operation {
        _ if own.kind != Type::I64 => false,
        _ if own.name.is_some() => true,
        Operation::Int(_) | Operation::Convert(_) => false,
        Operation::Choose(_, yes, no) => is_wide(kernel, yes) || is_wide(kernel, no),
        _ => true,
    }
}

/// What a checked kernel calls what looks at indices.
fn watch(kernel: &Kernel) -> &str {
    kernel.watch.as_ref().map_or("", |watch| &watch.name)
}

/// A value where its sign matters. CUDA's coordinates have none, and neither has what is made of them: what is assigned to an `int`
/// is right all the same, but not what is compared, widened or looked up.
fn signed(kernel: &Kernel, value: ValueId) -> (String, Tie) {
    let own = &kernel.values[value];
    let (text, tie) = expression(kernel, value);
    let is_plain = own.kind != Type::I32 || !has_coordinate(kernel, value);
    if is_plain { (text, tie) } else { (format!("int({text})"), Tie::Atom) }
}

/// Whether a coordinate stands in an expression as it is written.
fn has_coordinate(kernel: &Kernel, value: ValueId) -> bool {
    let own = &kernel.values[value];
    match &own.operation {
        _ if own.name.is_some() => false,
        Operation::Coordinate(..) => true,
        Operation::Load(..) | Operation::Convert(_) | Operation::Call(..) | Operation::Follow(_) => false,
        operation => operation.operands().into_iter().any(|operand| has_coordinate(kernel, operand)),
    }
}

fn coordinate_name(coordinate: Coordinate, axis: Axis) -> String {
    let of = match coordinate {
        Coordinate::Thread => "threadIdx",
        Coordinate::Block => "blockIdx",
        Coordinate::Threads => "blockDim",
        Coordinate::Blocks => "gridDim",
    };
    let axis = match axis {
        Axis::X => "x",
        Axis::Y => "y",
        Axis::Z => "z",
    };
    format!("{of}.{axis}")
}

/// A real number, exact in the precision.
fn real(x: f64, precision: Precision) -> String {
    if x.is_nan() {
        // Not a quotient: ptxas 13.0 compares one of zeros with itself as if it were a number.
        let text = if precision == Precision::F32 { "nanf(\"\")" } else { "nan(\"\")" };
        return text.into();
    }
    let sign = if x.is_sign_negative() { "-" } else { "" };
    let magnitude = match (x.is_infinite(), precision) {
        (true, Precision::F64) => "(1.0 / 0.0)".to_owned(),
        (true, Precision::F32) => "(1.0f / 0.0f)".to_owned(),
        (false, Precision::F64) => format!("{:?}", x.abs()),
        (false, Precision::F32) => format!("{:?}f", x.abs() as f32),
    };
    format!("{sign}{magnitude}")
}
