//! The printer of values: what is computed, as expressions of CUDA C++.

use super::prelude;
use crate::ir::{Precision, Relation};
use crate::kernel::{Axis, Binary, Coordinate, Element, Function, Kernel, Operation, Type, ValueId};

/// How tightly an expression binds, as in C++: what binds less tightly than what stands around it is put in brackets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tie {
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

/// A value as an expression.
pub(super) fn shown(kernel: &Kernel, value: ValueId) -> String {
    expression(kernel, value).0
}

/// What a value is converted from, if it has no name and is a whole number that is made longer: C++ does that by itself where a variable
/// gets it, as an index, and beside what is as long.
pub(super) fn widened(kernel: &Kernel, value: ValueId) -> Option<ValueId> {
    let own = &kernel.values[value];
    match own.operation {
        Operation::Convert(a) if own.name.is_none() && is_widening(kernel, a, own.kind) => Some(a),
        _ => None,
    }
}

pub(super) fn is_widening(kernel: &Kernel, a: ValueId, to: Type) -> bool {
    (kernel.values[a].kind, to) == (Type::I32, Type::I64)
}

/// A value as what a variable gets, or an element of an array.
pub(super) fn given(kernel: &Kernel, value: ValueId) -> String {
    match widened(kernel, value) {
        Some(a) => signed(kernel, a).0,
        None => shown(kernel, value),
    }
}

/// A value as an index.
pub(super) fn subscript(kernel: &Kernel, value: ValueId) -> String {
    signed(kernel, widened(kernel, value).unwrap_or(value)).0
}

/// Where an element of an array is: `phi + cell`.
pub(super) fn place(kernel: &Kernel, array: &str, index: ValueId) -> String {
    let index = widened(kernel, index).unwrap_or(index);
    match kernel.values[index].operation {
        Operation::Int(0) => array.to_owned(),
        _ => format!("{array} + {}", bracketed(signed(kernel, index), Tie::Sum)),
    }
}

/// Whether a value is elements that were loaded at once.
pub(super) fn is_run(kernel: &Kernel, value: ValueId) -> bool {
    let own = &kernel.values[value];
    matches!(own.operation, Operation::Load(array, _) if kernel.arrays[array].element != own.kind)
}

pub(super) fn bracketed((text, tie): (String, Tie), least: Tie) -> String {
    if tie < least { format!("({text})") } else { text }
}

/// Values, one after the other.
pub(super) fn list(kernel: &Kernel, values: &[ValueId]) -> String {
    values.iter().map(|&value| expression(kernel, value).0).collect::<Vec<_>>().join(", ")
}

/// A value by its name, or else by what computes it.
pub(super) fn expression(kernel: &Kernel, value: ValueId) -> (String, Tie) {
    match &kernel.values[value].name {
        Some(name) => (name.to_string(), Tie::Atom),
        None => operation(kernel, value),
    }
}

pub(super) fn operation(kernel: &Kernel, value: ValueId) -> (String, Tie) {
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
    // Readers, and warnings of compilers, want brackets where operators on bits meet others.
    let of_bits = |a: ValueId, symbol: &str, b: ValueId, tie: Tie| {
        (format!("{} {symbol} {}", within(a, Tie::Prefix), within(b, Tie::Prefix)), tie)
    };
    let call = |name: &str, operands: &[ValueId]| (format!("{name}({})", list(kernel, operands)), Tie::Atom);
    match &own.operation {
        // C++ reads -2147483648 as the negation of a number that does not fit.
        Operation::Int(number) if *number == i64::from(i32::MIN) => ("(-2147483647 - 1)".into(), Tie::Atom),
        Operation::Int(number) => (number.to_string(), tie_of_number(kernel, value)),
        Operation::Real(bits) => (real(f64::from_bits(*bits), own.kind.precision()), tie_of_number(kernel, value)),
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
            Function::WatchShift | Function::WatchLevel | Function::WatchNeighbour => {
                let watch = kernel.watch.as_ref().map_or("", |watch| &watch.name);
                call(&format!("{watch}.{}", prelude::function_name(*function, own.kind)), operands)
            }
            Function::Interleaved(fields) => call(&format!("interleaved<{fields}, {}>", c_type(own.kind)), operands),
            Function::Inverse | Function::Quotient => {
                let told = kernel.attempt.as_ref().map_or(["", ""], |own| [&*own.is_quick, &*own.is_usual]);
                let told = if *function == Function::Inverse { &told[1..] } else { &told[..] };
                let name = prelude::function_name(*function, own.kind);
                (format!("{name}({}, {})", list(kernel, operands), told.join(", ")), Tie::Atom)
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
            Binary::BitAnd => of_bits(*a, "&", *b, Tie::BitAnd),
            Binary::ShiftRight => of_bits(*a, ">>", *b, Tie::Shift),
            Binary::Xor => of_bits(*a, "^", *b, Tie::Xor),
            Binary::BitOr => match kernel.values[*a].operation {
                Operation::Binary(Binary::BitOr, ..) => {
                    (format!("{} | {}", within(*a, Tie::BitOr), within(*b, Tie::Prefix)), Tie::BitOr)
                }
                _ => of_bits(*a, "|", *b, Tie::BitOr),
            },
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
            (format!("{} {} {}", side(*a, *b), relation.name(), side(*b, *a)), tie)
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
        Operation::Lanes(lanes) => call(&format!("make_{}", c_type(own.kind)), lanes),
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
            let operands: Vec<String> = tables.chain([list(kernel, &[follow.start, follow.place])]).collect();
            (format!("neighbour_of({})", operands.join(", ")), Tie::Atom)
        }
        Operation::Shuffle { value, lane, lanes } => call("__shfl_sync", &[*lanes, *value, *lane]),
        Operation::ShuffleDown(a, by) => {
            (format!("__shfl_down_sync(0xffffffffu, {})", list(kernel, &[*a, *by])), Tie::Atom)
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

fn tie_of_number(kernel: &Kernel, number: ValueId) -> Tie {
    if is_negative(kernel, number) { Tie::Prefix } else { Tie::Atom }
}

/// A value where its sign matters. CUDA's coordinates have none, and neither has what is made of them: what is assigned to an `int`
/// is right all the same, but not what is compared, widened or looked up.
pub(super) fn signed(kernel: &Kernel, value: ValueId) -> (String, Tie) {
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
    let axis = format!("{axis:?}").to_lowercase();
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
