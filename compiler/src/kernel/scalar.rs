//! The operations of stencils (`ir::scalar`) as operations of kernels.

use super::build::{Builder, Computing};
use super::{Binary, Function, Math, Operation, Type, ValueId};
use crate::ir::{self, Body, Kind, Node, NodeId, Precision, Relation, Stored};

/// What operations are made with.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// What reals are computed in.
    pub precision: Precision,
    /// Whose inexact functions are called.
    pub math: Math,
}

impl Scalar {
    /// The value of a number or an operation of a body, whose operands' values are known. Nothing for a node that has no operands and
    /// is no number: that is the caller's.
    pub fn value(self, own: &mut Builder, body: &Body, id: NodeId, of: &dyn Fn(NodeId) -> ValueId) -> Option<ValueId> {
        let is_real = |node: NodeId| body.kind_of(node) == Kind::Real;
        let real = Type::real(self.precision);
        let call = |own: &mut Builder, function: Function, operands: &[NodeId], kind: Type| {
            let operands = operands.iter().map(|&operand| of(operand)).collect();
            own.call(function, operands, kind)
        };
        Some(match &body[id] {
            Node::Param(_) | Node::Level | Node::Count(_) => return None,
            Node::Read { .. } | Node::Use { .. } | Node::Present { .. } | Node::InZone(_) => return None,
            Node::Real(x) => self.real(own, *x),
            Node::Int(x) => own.int(i64::from(*x)),
            Node::Bool(x) => own.truth(*x),
            Node::ToReal(a) => own.convert(of(*a), real),
            Node::ToSingle(a) => own.term(of(*a).to(Type::real(Precision::F32)).to(real)),
            Node::Negate(a) if is_real(*a) => own.negate(of(*a)),
            Node::Negate(a) => {
                let zero = own.int(0);
                own.call(Function::WrappingSub, vec![zero, of(*a)], Type::I32)
            }
            Node::Not(a) => own.not(of(*a)),
            Node::Binary(ir::Binary::Rem, a, b) => {
                let kind = if is_real(*a) { real } else { Type::I32 };
                call(own, Function::Rem, &[*a, *b], kind)
            }
            Node::Binary(operation, a, b) => match operation {
                // Levels are far from overflowing; everything else wraps, which C++ leaves undefined.
                ir::Binary::Add if is_real(*a) || is_small(body, *a, *b) => own.add(of(*a), of(*b)),
                ir::Binary::Sub if is_real(*a) || is_small(body, *a, *b) => own.sub(of(*a), of(*b)),
                ir::Binary::Mul if is_real(*a) => own.mul(of(*a), of(*b)),
                ir::Binary::Div if is_real(*a) => own.binary(Binary::Div, of(*a), of(*b)),
                ir::Binary::Add => call(own, Function::WrappingAdd, &[*a, *b], Type::I32),
                ir::Binary::Sub => call(own, Function::WrappingSub, &[*a, *b], Type::I32),
                ir::Binary::Mul | ir::Binary::Div | ir::Binary::Rem => {
                    call(own, Function::WrappingMul, &[*a, *b], Type::I32)
                }
            },
            Node::Compare(relation, a, b) if may_be_extreme(body, *relation, *a, *b) => {
                let (a, b) = if matches!(relation, Relation::Lt | Relation::Ge) { (*a, *b) } else { (*b, *a) };
                let less = call(own, Function::Less, &[a, b], Type::BOOL);
                if matches!(relation, Relation::Le | Relation::Ge) { own.not(less) } else { less }
            }
            Node::Compare(relation, a, b) => {
                let left = match may_be_alike(body, *relation, *a, *b) {
                    true => call(own, Function::Opaque, &[*a], real),
                    false => of(*a),
                };
                own.compare(*relation, left, of(*b))
            }
            Node::And(a, b) => own.and(of(*a), of(*b)),
            Node::Or(a, b) => own.or(of(*a), of(*b)),
            Node::Call(ir::Function::Abs, operands) if is_real(operands[0]) => {
                let a = of(operands[0]);
                let function = Function::Scalar(ir::Function::Abs, Math::Own);
                self.magnitude(own, a).unwrap_or_else(|| own.call(function, vec![a], real))
            }
            Node::Call(ir::Function::CopySign, operands) => {
                let [a, sign] = [0, 1].map(|number| of(operands[number]));
                let a = self.magnitude(own, a).unwrap_or(a);
                own.call(Function::Scalar(ir::Function::CopySign, Math::Own), vec![a, sign], real)
            }
            Node::Call(function, operands) => {
                let kind = Type::computing(body.kind_of(id), self.precision);
                let math = if function.is_inexact() { self.math } else { Math::Own };
                call(own, Function::Scalar(*function, math), operands, kind)
            }
            Node::Choose { condition, yes, no } => choice(own, of(*condition), of(*yes), of(*no)),
        })
    }

    /// The absolute value of a choice between numbers, made of theirs. In single precision compilers know of no absolute value what it is of.
    fn magnitude(self, own: &mut Builder, value: ValueId) -> Option<ValueId> {
        if self.precision == Precision::F64 { magnitude(own, value) } else { None }
    }

    /// A real number, as the precision has it.
    pub fn real(self, own: &mut Builder, number: f64) -> ValueId {
        let exact = match self.precision {
            Precision::F32 => f64::from(number as f32),
            Precision::F64 => number,
        };
        own.real(exact, Type::real(self.precision))
    }

    /// An element of a field as the value that it is.
    pub fn read(self, own: &mut Builder, element: ValueId, stored: Stored) -> ValueId {
        match stored {
            Stored::F32 | Stored::F64 => own.convert(element, Type::real(self.precision)),
            Stored::Bool => own.term(element.is(Relation::Ne, 0)),
            Stored::Real | Stored::Int => element,
        }
    }

    /// A value as an element of a field.
    pub fn stored(self, own: &mut Builder, value: ValueId, stored: Stored) -> ValueId {
        match stored {
            Stored::F32 | Stored::F64 => own.convert(value, Type::stored(stored, self.precision)),
            Stored::Bool => own.term(value.picks(1.to(Type::U8), 0.to(Type::U8))),
            Stored::Real | Stored::Int => value,
        }
    }
}

/// A choice. Compilers do not learn which two numbers one is between: of -0 and -1 in single precision, ptxas (13.0, for sm_75 to sm_120) makes
/// one of whole numbers, which have no -0, and NVVM makes such a choice of others, by a change of sign, say.
fn choice(own: &mut Builder, condition: ValueId, yes: ValueId, no: ValueId) -> ValueId {
    let kind = own.kernel().values[yes].kind;
    let number = |own: &Builder, value: ValueId| match own.kernel().values[value].operation {
        Operation::Real(bits) => Some(f64::from_bits(bits)),
        _ => None,
    };
    let (Some(a), Some(b)) = (number(own, yes), number(own, no)) else { return own.choose(condition, yes, no) };
    let is_of_whole = [a, b].iter().any(|own| own.to_bits() == (-0.0f64).to_bits()) && [a, b].contains(&-1.0);
    let [yes, no] = if is_of_whole { [-a, -b].map(|number| own.real(number, kind)) } else { [yes, no] };
    let chosen = own.choose(condition, yes, no);
    if !matches!(own.kernel().values[chosen].operation, Operation::Choose(..)) {
        return if is_of_whole { own.negate(chosen) } else { chosen };
    }
    let hidden = own.call(Function::Opaque, vec![chosen], kind);
    if is_of_whole { own.negate(hidden) } else { hidden }
}

/// The absolute value of a choice between numbers, made of theirs: NVVM (13.0) takes `|c ? |a| : -0|` for `c ? |a| : -0`, and finds such choices
/// behind a change of sign or of type, too. Of a choice without a number it does not know the sign.
fn magnitude(own: &mut Builder, value: ValueId) -> Option<ValueId> {
    let known = &own.kernel().values[value];
    let (operation, kind) = (known.operation.clone(), known.kind);
    let operands = operation.operands();
    // What has a name was computed before, and what it is made of may have changed since; numbers and names do not.
    let looked_at = operands.first().copied()?;
    if known.name.is_some() && !own.is_settled(looked_at) {
        return None;
    }
    match operation {
        Operation::Choose(condition, yes, no) => {
            let of_numbers = [magnitude_of_one(own, yes), magnitude_of_one(own, no)];
            if of_numbers == [None, None] {
                return None;
            }
            let of_any = |own: &mut Builder, number: Option<ValueId>, value: ValueId| {
                let function = Function::Scalar(ir::Function::Abs, Math::Own);
                number.unwrap_or_else(|| own.call(function, vec![value], kind))
            };
            let yes = of_any(own, of_numbers[0], yes);
            let no = of_any(own, of_numbers[1], no);
            Some(choice(own, condition, yes, no))
        }
        Operation::Negate(of) => magnitude(own, of),
        Operation::Call(Function::Opaque, of) => magnitude(own, *of.first()?),
        Operation::Convert(of) if own.kernel().values[of].kind.is_real() && kind.is_real() => {
            let of = magnitude(own, of)?;
            Some(own.convert(of, kind))
        }
        _ => None,
    }
}

/// The same of a number, or of a choice between some.
fn magnitude_of_one(own: &mut Builder, value: ValueId) -> Option<ValueId> {
    let known = &own.kernel().values[value];
    match known.operation {
        Operation::Real(bits) => {
            let kind = known.kind;
            Some(own.real(f64::from_bits(bits).abs(), kind))
        }
        _ => magnitude(own, value),
    }
}

/// Whether a comparison of whole numbers might become a minimum or a maximum, together with a choice that need not stand
/// beside it: the prelude says why none may. Parameters and levels a few steps away are harmless, and easier to read.
fn may_be_extreme(body: &Body, relation: Relation, a: NodeId, b: NodeId) -> bool {
    let is_plain = |node: NodeId| matches!(body[node], Node::Level | Node::Count(_) | Node::Int(_) | Node::Param(_));
    let is_near = |node: NodeId| match body[node] {
        Node::Binary(ir::Binary::Add | ir::Binary::Sub, level, by) => {
            is_plain(level) && matches!(body[by], Node::Int(_))
        }
        _ => is_plain(node),
    };
    let orders = matches!(relation, Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge);
    orders && body.kind_of(a) == Kind::Int && !(is_near(a) && is_near(b))
}

/// Whether two whole values are surely far from overflowing: levels, numbers.
fn is_small(body: &Body, a: NodeId, b: NodeId) -> bool {
    [a, b].into_iter().all(|id| match &body[id] {
        Node::Level | Node::Count(_) => true,
        Node::Int(x) => x.unsigned_abs() < 1 << 24,
        _ => false,
    })
}

/// Whether a comparison of real numbers might find two operations on constants, known to make a NaN by nobody yet, and take
/// them for equal: the prelude says more. A constant comes about where a condition tells what a level or a field is.
fn may_be_alike(body: &Body, relation: Relation, a: NodeId, b: NodeId) -> bool {
    let is_plain =
        |node: NodeId| matches!(body[node], Node::Read { .. } | Node::Param(_) | Node::Real(_) | Node::ToReal(_));
    let holds_of_equals = matches!(relation, Relation::Eq | Relation::Ne | Relation::Le | Relation::Ge);
    holds_of_equals && body.kind_of(a) == Kind::Real && !is_plain(a) && !is_plain(b)
}
