//! The printer: a kernel as CUDA C++.

use crate::ir::Relation;
use crate::kernel::verify::verify;
use crate::kernel::{
    Axis, Binary, Block, Coordinate, Element, Kernel, Operation, Space, Statement, Step, Type, ValueId, What,
};

/// How tightly an expression binds, as in C++: what binds less tightly than what stands around it is put in brackets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tie {
    Choice,
    Or,
    And,
    BitOr,
    Xor,
    Equality,
    Relation,
    Sum,
    Product,
    Prefix,
    Atom,
}

/// The kernel as CUDA C++, for NVRTC, nvcc and the emulator alike.
pub fn text(kernel: &Kernel) -> String {
    debug_assert!(verify(kernel).is_ok(), "{:?}\n{kernel}", verify(kernel));
    let mut lines = Vec::new();
    if !kernel.doc.is_empty() {
        lines.push("/*".to_owned());
        lines.extend(kernel.doc.iter().map(|line| format!(" * {line}").trim_end().to_owned()));
        lines.push(" */".to_owned());
    }
    let arguments = kernel.arguments.iter().map(|(_, own)| match own.what {
        What::Number(kind) => format!("const {} {}", c_type(kind), own.name),
        What::Array(array) => {
            let array = &kernel.arrays[array];
            let read = if array.is_written { "" } else { "const " };
            let alone = if array.space == (Space::Global { aliased: true }) { "" } else { " __restrict__" };
            format!("{read}{}*{alone} {}", c_type(array.element), own.name)
        }
    });
    let arguments: Vec<String> = arguments.collect();
    lines.push(format!("extern \"C\" __global__ void __launch_bounds__({})", kernel.threads));
    lines.push(format!("{}({})", kernel.name, arguments.join(",\n    ")));
    lines.push("{".to_owned());
    for (_, array) in kernel.arrays.iter() {
        if let Space::Shared(count) = array.space {
            lines.push(format!("    STENCILC_SHARED({}, {}, [{count}]);", c_type(array.element), array.name));
        }
    }
    block(kernel, &kernel.body, 1, &mut lines);
    lines.push("}\n".to_owned());
    lines.join("\n")
}

/// The C++ of a type.
pub fn c_type(kind: Type) -> String {
    let (one, several) = match kind.element {
        Element::F32 => ("float", "float"),
        Element::F64 => ("double", "double"),
        Element::I32 => ("int", "int"),
        Element::I64 => ("long long", "longlong"),
        Element::U8 => ("unsigned char", "uchar"),
        Element::Bool => ("bool", "bool"),
    };
    if kind.lanes == 1 { one.to_owned() } else { format!("{several}{}", kind.lanes) }
}

fn block(kernel: &Kernel, block: &Block, depth: usize, lines: &mut Vec<String>) {
    let indent = "    ".repeat(depth);
    for own in &block.0 {
        statement(kernel, own, depth, &indent, lines);
    }
}

fn statement(kernel: &Kernel, statement: &Statement, depth: usize, indent: &str, lines: &mut Vec<String>) {
    let shown = |value: ValueId| expression(kernel, value).0;
    match statement {
        Statement::Let(value) => {
            let own = &kernel.values[*value];
            let name = own.name.as_ref().map_or("", |name| name);
            lines.push(format!("{indent}const {} {name} = {};", c_type(own.kind), operation(kernel, *value).0));
        }
        Statement::Declare(variable, value) => {
            let own = &kernel.variables[*variable];
            lines.push(format!("{indent}{} {} = {};", c_type(own.kind), own.name, shown(*value)));
        }
        Statement::Assign(variable, value) => {
            lines.push(format!("{indent}{} = {};", kernel.variables[*variable].name, shown(*value)));
        }
        Statement::Store(array, index, value) => {
            let index = signed(kernel, *index).0;
            lines.push(format!("{indent}{}[{index}] = {};", kernel.arrays[*array].name, shown(*value)));
        }
        Statement::If(condition, yes, no) => {
            let mut inner = Vec::new();
            block(kernel, yes, depth + 1, &mut inner);
            let head = format!("{indent}if ({})", shown(*condition));
            // One short statement stands behind its condition.
            match (inner.as_slice(), yes.0.as_slice(), no.0.is_empty()) {
                ([line], [Statement::Store(..) | Statement::Assign(..) | Statement::Return], true) => {
                    lines.push(format!("{head} {}", line.trim_start()));
                    return;
                }
                _ => lines.push(format!("{head} {{")),
            }
            lines.append(&mut inner);
            if !no.0.is_empty() {
                lines.push(format!("{indent}}} else {{"));
                block(kernel, no, depth + 1, lines);
            }
            lines.push(format!("{indent}}}"));
        }
        Statement::For(own) => {
            let (name, kind) = (&kernel.variables[own.counter].name, c_type(kernel.variables[own.counter].kind));
            let step = match own.step {
                Step::By(step) if kernel.values[step].operation == Operation::Int(1) => format!("++{name}"),
                Step::By(step) => format!("{name} += {}", shown(step)),
                Step::Doubled => format!("{name} *= 2"),
            };
            let end = bracketed(signed(kernel, own.end), Tie::Sum);
            if own.is_unrolled {
                lines.push(format!("{indent}#pragma unroll"));
            }
            lines.push(format!("{indent}for ({kind} {name} = {}; {name} < {end}; {step}) {{", shown(own.first)));
            block(kernel, &own.body, depth + 1, lines);
            lines.push(format!("{indent}}}"));
        }
        Statement::Barrier => lines.push(format!("{indent}__syncthreads();")),
        Statement::Return => lines.push(format!("{indent}return;")),
    }
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
    // What stands on the right of an operator that goes from left to right binds more tightly.
    let infix = |a: ValueId, symbol: &str, b: ValueId, tie: Tie, right: Tie| {
        (format!("{} {symbol} {}", within(a, tie), within(b, right)), tie)
    };
    match &own.operation {
        Operation::Int(number) if *number < 0 => (number.to_string(), Tie::Prefix),
        Operation::Int(number) => (number.to_string(), Tie::Atom),
        Operation::Argument(argument) => (kernel.arguments[*argument].name.to_string(), Tie::Atom),
        Operation::Variable(variable) => (kernel.variables[*variable].name.to_string(), Tie::Atom),
        Operation::Coordinate(coordinate, axis) => (coordinate_name(*coordinate, *axis), Tie::Atom),
        Operation::Binary(binary, a, b) => match binary {
            Binary::Add => infix(*a, "+", *b, Tie::Sum, Tie::Product),
            Binary::Sub => infix(*a, "-", *b, Tie::Sum, Tie::Product),
            Binary::Mul => infix(*a, "*", *b, Tie::Product, Tie::Prefix),
            Binary::Div => (format!("{} / {}", signed(*a, Tie::Product), signed(*b, Tie::Prefix)), Tie::Product),
            Binary::Rem => (format!("{} % {}", signed(*a, Tie::Product), signed(*b, Tie::Prefix)), Tie::Product),
            // Readers, and warnings of compilers, want brackets where operators on bits meet others.
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
            (format!("{} {} {}", signed(*a, Tie::Sum), relation.symbol(), signed(*b, Tie::Sum)), tie)
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
        Operation::Convert(a) => (format!("({}){}", c_type(own.kind), signed(*a, Tie::Prefix)), Tie::Prefix),
        Operation::Lane(a, lane) => {
            let part = ["x", "y", "z", "w"][usize::from(*lane) % 4];
            (format!("{}.{part}", within(*a, Tie::Atom)), Tie::Atom)
        }
        Operation::Lanes(lanes) => {
            let lanes: Vec<String> = lanes.iter().map(|&lane| expression(kernel, lane).0).collect();
            (format!("make_{}({})", c_type(own.kind), lanes.join(", ")), Tie::Atom)
        }
        Operation::Load(array, index) => {
            (format!("{}[{}]", kernel.arrays[*array].name, signed(*index, Tie::Choice)), Tie::Atom)
        }
        Operation::ShuffleDown(a, by) => {
            let (a, by) = (expression(kernel, *a).0, expression(kernel, *by).0);
            (format!("__shfl_down_sync(0xffffffffu, {a}, {by})"), Tie::Atom)
        }
    }
}

/// A value where its sign matters. CUDA's coordinates have none, and neither has what is made of them: what is assigned to an `int`
/// is right all the same, but not what is compared, divided, widened or looked up.
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
        Operation::Load(..) | Operation::Convert(_) => false,
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
