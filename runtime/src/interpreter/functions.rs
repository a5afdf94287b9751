//! The language's own functions on rows. Each is some hundred instructions long, so each has a loop of its own, apart from
//! `execute`, which would become too large to be compiled in reasonable time.

use stencilc_compiler::ir::Function;
use stencilc_compiler::ir::scalar::Real;

/// `loops!(f(a, b) => R::pow(a, b), on (a, b, out))` runs one loop, compiled for the processor at hand.
macro_rules! loops {
    (|$a:ident, $b:ident| $value:expr, on $rows:expr) => {{
        #[inline(always)]
        fn each<R: Real>((a, b, out): (&[R], &[R], &mut [R])) {
            for (out, ($a, $b)) in out.iter_mut().zip(a.iter().copied().zip(b.iter().copied())) {
                *out = $value;
            }
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            #[target_feature(enable = "avx2,fma")]
            fn wide<R: Real>(operands: (&[R], &[R], &mut [R])) {
                each(operands);
            }
            // SAFETY: the processor has both features.
            return unsafe { wide::<R>($rows) };
        }
        each::<R>($rows)
    }};
}

/// Sets each element of `out` to a function of those of `a` and, if it takes two numbers, of `b`, which is `a` otherwise.
/// Functions that are no loop of their own leave `out` as it is.
pub(super) fn apply<R: Real>(function: Function, a: &[R], b: &[R], out: &mut [R]) {
    let rows = (a, b, out);
    match function {
        Function::Exp => loops!(|a, _b| R::unary(Function::Exp, a), on rows),
        Function::Log => loops!(|a, _b| R::unary(Function::Log, a), on rows),
        Function::Sin => loops!(|a, _b| R::unary(Function::Sin, a), on rows),
        Function::Cos => loops!(|a, _b| R::unary(Function::Cos, a), on rows),
        Function::Tan => loops!(|a, _b| R::unary(Function::Tan, a), on rows),
        Function::Atan => loops!(|a, _b| R::unary(Function::Atan, a), on rows),
        Function::Tanh => loops!(|a, _b| R::unary(Function::Tanh, a), on rows),
        Function::Cbrt => loops!(|a, _b| R::unary(Function::Cbrt, a), on rows),
        Function::Pow => loops!(|a, b| R::pow(a, b), on rows),
        Function::Atan2 => loops!(|a, b| R::atan2(a, b), on rows),
        Function::Min | Function::Max | Function::Abs | Function::Sqrt | Function::Floor | Function::Ceil => {}
        Function::Sign | Function::CopySign | Function::Fma => {}
    }
}
