//! The language's functions on rows.

use super::execute::Operand;
use std::borrow::Cow;
use stencilc_compiler::ir::Function;
use stencilc_compiler::ir::scalar::Real;

/// `each!(out, a b => f(a, b))` sets every element of `out`, with a loop of its own for each combination of operands
/// that are rows and numbers, so that every one is vectorised.
macro_rules! each {
    (@ $out:ident, [$($get:tt)*] $operand:ident $($rest:ident)* => $value:expr) => {
        match $operand {
            Operand::Each(row) => {
                let $operand = &row[..$out.len()];
                each!(@ $out, [$($get)* ($operand, |n: usize| $operand[n])] $($rest)* => $value)
            }
            Operand::All($operand) => each!(@ $out, [$($get)* ($operand, |_: usize| $operand)] $($rest)* => $value),
        }
    };
    (@ $out:ident, [$(($operand:ident, $get:expr))*] => $value:expr) => {
        for (n, out) in $out.iter_mut().enumerate() {
            $(let $operand = $get(n);)*
            *out = $value;
        }
    };
    ($out:expr, $($operand:ident)+ => $value:expr) => {{
        let out: &mut [_] = $out;
        each!(@ out, [] $($operand)+ => $value)
    }};
}
pub(super) use each;

/// Sets each element of `out` to a function of its operands, which are asked for by their numbers.
#[inline(always)]
pub(super) fn call<'a, R: Real>(function: Function, operand: impl Fn(usize) -> Operand<'a, R>, out: &mut [R]) {
    /// A function of a few instructions.
    macro_rules! quick {
        ($function:ident(a)) => {{
            let a = operand(0);
            each!(out, a => R::call(Function::$function, [a; 3]))
        }};
        ($function:ident(a, b)) => {{
            let (a, b) = (operand(0), operand(1));
            each!(out, a b => R::call(Function::$function, [a, b, b]))
        }};
        ($function:ident(a, b, c)) => {{
            let (a, b, c) = (operand(0), operand(1), operand(2));
            each!(out, a b c => R::call(Function::$function, [a, b, c]))
        }};
    }
    /// A function of some hundred instructions, and of one number or two. It has a loop of its own, apart from all others, which
    /// would become too large to be compiled in reasonable time.
    macro_rules! slow {
        ($function:ident) => {{
            #[inline(always)]
            fn each<R: Real>([a, b]: [&[R]; 2], out: &mut [R]) {
                for (out, (&a, &b)) in out.iter_mut().zip(a.iter().zip(b)) {
                    *out = R::call(Function::$function, [a, b, b]);
                }
            }
            fn apart<R: Real>(operands: [&[R]; 2], out: &mut [R]) {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    #[target_feature(enable = "avx2,fma")]
                    fn wide<R: Real>(operands: [&[R]; 2], out: &mut [R]) {
                        each(operands, out);
                    }
                    // SAFETY: the processor has both features.
                    return unsafe { wide::<R>(operands, out) };
                }
                each::<R>(operands, out);
            }
            let first = row(operand(0), out.len());
            let second = if function.arity() > 1 { row(operand(1), out.len()) } else { Cow::Borrowed(&first[..]) };
            apart([&first, &second], out);
        }};
    }
    match function {
        Function::Min => quick!(Min(a, b)),
        Function::Max => quick!(Max(a, b)),
        Function::Abs => quick!(Abs(a)),
        Function::Sqrt => quick!(Sqrt(a)),
        Function::Floor => quick!(Floor(a)),
        Function::Ceil => quick!(Ceil(a)),
        Function::Sign => quick!(Sign(a)),
        Function::CopySign => quick!(CopySign(a, b)),
        Function::Fma => quick!(Fma(a, b, c)),
        Function::Cbrt => slow!(Cbrt),
        Function::Exp => slow!(Exp),
        Function::Log => slow!(Log),
        Function::Pow => slow!(Pow),
        Function::Sin => slow!(Sin),
        Function::Cos => slow!(Cos),
        Function::Tan => slow!(Tan),
        Function::Atan => slow!(Atan),
        Function::Atan2 => slow!(Atan2),
        Function::Tanh => slow!(Tanh),
    }
}

/// An operand as a row.
fn row<R: Copy>(operand: Operand<R>, len: usize) -> Cow<[R]> {
    match operand {
        Operand::Each(row) => Cow::Borrowed(row),
        Operand::All(x) => Cow::Owned(vec![x; len]),
    }
}
