//! The types of values: what each operation takes and makes.

use super::super::{ArgumentKind, ArrayId, Binary, Element, Function, Kernel, Operation, Space, Type};
use crate::ir::{Handle, Relation};

/// Whether values come after their operands, and have the types that their operations need and make.
pub fn types(kernel: &Kernel) -> Result<(), String> {
    for (id, value) in kernel.values.iter() {
        let operands = value.operation.operands();
        if operands.iter().any(|operand| operand.index() >= id.index()) {
            return Err(format!("value {} comes before what it is made of", id.index()));
        }
        let of: Vec<Type> = operands.iter().map(|&operand| kernel.values[operand].kind).collect();
        let own = value.kind;
        let fits = match (&value.operation, of.as_slice()) {
            (Operation::Int(number), _) => {
                let is_byte = own == Type::U8 && u8::try_from(*number).is_ok();
                let is_bits = own == Type::U32 && u32::try_from(*number).is_ok();
                own == Type::I64
                    || is_byte
                    || is_bits
                    || i32::try_from(*number).is_ok() && (own.is_whole() || own.is_real())
            }
            (Operation::Argument(argument), _) => kernel.arguments[*argument].what == ArgumentKind::Number(own),
            (Operation::Variable(variable), _) => kernel.variables[*variable].kind == own,
            (Operation::Coordinate(..), _) => own == Type::I32,
            (Operation::Real(bits), _) => own.is_real() && is_exact(f64::from_bits(*bits), own),
            (Operation::Bool(_), _) => own == Type::BOOL,
            (Operation::Mask(_), _) => own == Type::I32,
            (Operation::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, ..), &[a, b]) => {
                a == b && a == own && (own.is_whole() || own.is_real() || own == Type::U32)
            }
            (Operation::Binary(Binary::Min | Binary::Max, ..), &[a, b]) => a == b && a == own && own.is_whole(),
            (Operation::Binary(..), &[a, b]) => a == b && a == own && (own.is_whole() || own == Type::U32),
            (Operation::Negate(_), &[a]) => a == own && (own.is_whole() || own.is_real()),
            (Operation::Not(_), &[a]) => [a, own] == [Type::BOOL; 2],
            (Operation::Call(function, _), of) => is_call(*function, of, own),
            (Operation::Compare(relation, ..), &[a, b]) => {
                let is_ordered = a != Type::BOOL || matches!(relation, Relation::Eq | Relation::Ne);
                a == b && a.lanes == 1 && is_ordered && own == Type::BOOL
            }
            (Operation::And(..) | Operation::Or(..), &[a, b]) => [a, b, own] == [Type::BOOL; 3],
            (Operation::Choose(..), &[condition, yes, no]) => condition == Type::BOOL && yes == no && yes == own,
            (Operation::Convert(_), &[a]) => a.lanes == 1 && own.lanes == 1 && own != Type::BOOL && a != Type::BOOL,
            (Operation::Lane(_, lane), &[a]) => a.lanes > 1 && *lane < a.lanes && own == Type::one(a.element),
            (Operation::Lanes(lanes), of) => {
                lanes.len().is_power_of_two()
                    && lanes.len() > 1
                    && own.element != Element::Bool
                    && of.iter().all(|&a| a == Type::one(own.element))
                    && usize::from(own.lanes) == of.len()
            }
            (Operation::Load(array, _), &[index]) => index.is_whole() && moves(kernel, *array, own),
            (Operation::Follow(follow), &[start, place]) => {
                let tables = follow.patterns.iter().chain([&follow.table]);
                [start, place, own] == [Type::I32; 3]
                    && tables.into_iter().all(|&table| kernel.arrays[table].element == Type::I32)
            }
            (Operation::Shuffle { .. }, &[value, lane, lanes]) => {
                value == own && (own.is_real() || own.is_whole()) && [lane, lanes] == [Type::I32; 2]
            }
            (Operation::ShuffleDown(..), &[a, by]) => a == own && (own.is_real() || own.is_whole()) && by == Type::I32,
            _ => false,
        };
        if !fits {
            return Err(format!("value {} is {own:?}, made by {:?} of {of:?}", id.index(), value.operation));
        }
    }
    Ok(())
}

/// Whether a number is one of a type.
fn is_exact(number: f64, kind: Type) -> bool {
    kind.element == Element::F64 || number.is_nan() || f64::from(number as f32) == number
}

/// Whether an array's elements, one or several that follow each other, have a type.
pub fn moves(kernel: &Kernel, array: ArrayId, kind: Type) -> bool {
    let Type { element, lanes } = kernel.arrays[array].element;
    let is_element = !matches!(kernel.arrays[array].space, Space::Rows(..));
    let is_run = (kind.lanes / lanes).is_power_of_two() && kind.lanes.is_multiple_of(lanes);
    is_element && kind.element == element && is_run
}

/// Whether a function takes values of these types and makes one of this.
fn is_call(function: Function, of: &[Type], own: Type) -> bool {
    let are = |kinds: &[Type]| of == kinds && own == Type::I32;
    match function {
        Function::Scalar(function, _) => {
            let takes = own.is_real() || own == Type::I32 && function.takes_whole_numbers();
            of.len() == function.arity() && of.iter().all(|&a| a == own) && takes
        }
        Function::WrappingAdd | Function::WrappingSub | Function::WrappingMul => are(&[Type::I32; 2]),
        Function::Rem => of == [own; 2] && (own.is_real() || own == Type::I32),
        Function::ClusterRank => of.is_empty() && own == Type::I32,
        Function::Less => of == [Type::I32; 2] && own == Type::BOOL,
        Function::Opaque | Function::Inverse => of == [own] && own.is_real(),
        Function::Quotient => of == [own; 3] && own.is_real(),
        Function::Turned => of == [own, Type::I32] && own.is_real(),
        Function::Interleaved(_) => of == [own] && own.is_whole(),
        Function::WatchShift | Function::WatchNeighbour => {
            of.len() == 7 && of.iter().all(|kind| kind.is_whole()) && own == Type::BOOL
        }
        Function::WatchLevel => of.len() == 6 && of.iter().all(|kind| kind.is_whole()) && own == Type::BOOL,
    }
}
