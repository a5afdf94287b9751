//! The functions of this language, and what other languages call its things.

use crate::ir::Function;
use std::sync::LazyLock;

/// The functions of the language: those that are one operation, `dot`, which is written out, and those that are an algorithm.
pub static FUNCTIONS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = |is_inexact: bool| {
        let own = Function::ALL.iter().filter(move |function| function.is_inexact() == is_inexact);
        own.map(|function| function.name())
    };
    names(false).chain(["dot"]).chain(names(true)).collect()
});

/// The same as a sentence.
pub fn functions() -> String {
    format!("functions are {}, and those written with `fn`", FUNCTIONS.join(", "))
}

/// What is written here for a function of another language.
pub fn function(foreign: &str) -> Option<&'static str> {
    Some(match foreign.to_lowercase().as_str() {
        "maximum" | "fmax" | "fmaxf" | "amax" | "dmax1" | "max" => "max(a, b)",
        "minimum" | "fmin" | "fminf" | "amin" | "dmin1" | "min" => "min(a, b)",
        "fabs" | "fabsf" | "absolute" | "magnitude" | "dabs" | "abs" => "abs(a)",
        "sqrtf" | "dsqrt" | "sqrt" => "sqrt(a)",
        "ceiling" | "ceilf" | "ceil" => "ceil(a)",
        "floorf" | "floor" => "floor(a)",
        "where" | "merge" | "select" | "iif" | "ternary" | "ifelse" | "cond" | "if_then_else" => {
            "if c { a } else { b }"
        }
        "mod" | "fmod" | "modulo" | "remainder" => "a % b",
        "power" | "powf" | "pow" => "a ** b",
        "square" | "sqr" => "a ** 2",
        "ln" | "loge" | "logf" | "alog" | "log" => "log(a)",
        "log10" | "lg" => "log(a) / log(10)",
        "log2" | "ld" => "log(a) / log(2)",
        "log1p" => "log(1 + a)",
        "expf" | "dexp" | "exp" => "exp(a)",
        "expm1" => "exp(a) - 1",
        "exp2" => "2 ** a",
        "exp10" => "10 ** a",
        "sin" | "sinf" | "dsin" => "sin(a)",
        "cos" | "cosf" | "dcos" => "cos(a)",
        "tan" | "tanf" | "dtan" => "tan(a)",
        "tanh" | "tanhf" | "dtanh" => "tanh(a)",
        "cbrt" | "cbrtf" => "cbrt(a)",
        "fma" | "fmaf" | "muladd" => "fma(a, b, c)",
        "copysign" | "copysignf" => "copysign(a, b)",
        "sinh" => "(exp(a) - exp(-a)) / 2",
        "cosh" => "(exp(a) + exp(-a)) / 2",
        "asin" | "arcsin" => "atan2(a, sqrt(1 - a*a))",
        "acos" | "arccos" => "atan2(sqrt(1 - a*a), a)",
        "arctan" | "atn" | "atanf" | "atan" => "atan(a)",
        "arctan2" | "atan2f" | "atan2" => "atan2(y, x)",
        "clamp" | "clip" | "saturate" => "min(max(a, low), high)",
        "round" | "rint" | "nint" => "floor(a + 0.5)",
        "trunc" | "fix" | "int" | "integer" => "floor(a)",
        "signum" | "sgn" | "sign" => "sign(a)",
        "roll" | "shift" | "cshift" | "eoshift" | "circshift" => "a[i-1]",
        "dot_product" | "dot" | "inner" => "dot(a, b)",
        "norm" | "hypot" => "sqrt(a**2 + b**2)",
        "float" | "double" | "real" | "float32" | "float64" | "dble" => "1.0 * n",
        "isnan" | "is_nan" => "a != a",
        _ => return None,
    })
}

/// How an operator of other languages and libraries is written out here.
pub fn operator(foreign: &str) -> Option<&'static str> {
    Some(match foreign.to_lowercase().as_str() {
        "laplacian" | "laplace" | "lap" | "del2" | "nabla2" => {
            "write it, as in `fn laplacian(a) = a[i-1] + a[i+1] + a[j-1] + a[j+1] - 4*a`"
        }
        "grad" | "gradient" | "div" | "divergence" | "curl" | "rot" | "ddx" | "ddy" | "ddz" | "diff" | "derivative" => {
            "a derivative is a difference of neighbours, as in `(a[i+1] - a[i-1]) / (2*dx)`; a `fn` gives it a name"
        }
        "mean" | "average" | "avg" | "interp" => "a mean is written out, as in `(a[i-1] + a + a[i+1]) / 3`",
        "random" | "rand" | "randn" => {
            "nothing is random in a source; fields that are given no array are drawn at random"
        }
        "prod" | "product" => "a product is written out with `*`",
        "any" | "all" => "what is expected has to hold on every cell; conditions are joined by `&&` and `||`",
        _ => return None,
    })
}

/// What is written here for an attribute of a field elsewhere.
pub fn attribute(foreign: &str) -> Option<&'static str> {
    Some(match foreign {
        "dx" | "dy" | "dz" | "dx2" | "dy2" | "dz2" | "dxl" | "dxr" | "dyl" | "dyr" | "laplace" | "biharmonic" => {
            "a derivative is a difference of neighbours, as in `(a[i+1] - a[i-1]) / (2*dx)`; a `fn` gives it a name"
        }
        "forward" | "backward" | "dt" | "dt2" => {
            "a stencil is one step: the old value is an `in` field and the new one an `out` field, or both are an `inout`"
        }
        "x" | "y" | "z" => "parts are counted: `v.0`, `v.1`, `v.2`",
        "T" | "real" | "imag" | "shape" | "size" | "data" | "at" => {
            "a field is one number a cell, and has no attributes"
        }
        _ => return None,
    })
}

/// What is written here for a type of another language.
pub fn scalar(foreign: &str) -> Option<&'static str> {
    Some(match foreign.to_lowercase().as_str() {
        "float" | "single" | "float32" | "f4" | "real4" | "real32" | "f32" => "f32",
        "double" | "float64" | "f8" | "real8" | "real64" | "f64" => "f64",
        "integer" | "i32" | "int32" | "i4" | "long" | "short" | "i64" | "int64" | "u32" | "unsigned" | "int" => "int",
        "logical" | "boolean" | "bool" | "bool_" => "bool",
        "real" => "real",
        _ => return None,
    })
}

/// What is written here for a constant of another language.
pub fn constant(foreign: &str) -> Option<&'static str> {
    Some(match foreign {
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        "PI" | "Pi" | "M_PI" => "pi",
        "M_E" => "exp(1)",
        "nz" | "nlev" | "kmax" | "ke" | "KMAX" | "NK" => "nk",
        _ => return None,
    })
}

/// The axis that a name stands for elsewhere.
pub fn axis(foreign: &str) -> Option<&'static str> {
    Some(match foreign {
        "x" | "I" | "X" | "ii" | "lon" => "i",
        "y" | "J" | "Y" | "jj" | "lat" => "j",
        "z" | "K" | "Z" | "kk" | "lev" | "level" => "k",
        _ => return None,
    })
}
