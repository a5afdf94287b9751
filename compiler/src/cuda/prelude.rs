//! Helper functions that generated code calls: operations of the language that C++ lacks or leaves undefined.

use super::functions;
use crate::ir::Precision;
use std::collections::BTreeSet;

/// Name and text of each function. `REAL`, `FMOD`, `FABS`, `COPYSIGN` and `REGISTER` stand for those of the chosen
/// precision.
const FUNCTIONS: &[(&str, &str)] = &[
    ("real_min", "REAL real_min(REAL a, REAL b) { return a < b || a != a ? a : b; }"),
    ("real_max", "REAL real_max(REAL a, REAL b) { return a > b || a != a ? a : b; }"),
    ("real_sign", "REAL real_sign(REAL a) { return a > 0 ? REAL(1) : a < 0 ? REAL(-1) : a; }"),
    // A number of which compilers do not know where it comes from. NVVM 13.0 leaves a constant operation that makes a NaN
    // for later, and takes two of one text for equal numbers.
    (
        "real_opaque",
        "REAL real_opaque(REAL a)
{
#ifdef __CUDA_ARCH__
    asm(\"\" : \"+REGISTER\"(a));
#endif
    return a;
}",
    ),
    // A NaN has no sign that devices agree on.
    ("real_copysign", "REAL real_copysign(REAL a, REAL b) { return b != b ? FABS(a) : COPYSIGN(a, b); }"),
    (
        "real_rem",
        "REAL real_rem(REAL a, REAL b)
{
    const REAL rest = FMOD(a, b);
    return rest == 0 ? COPYSIGN(rest, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}",
    ),
    // By arithmetic, not by a comparison: where three whole numbers are compared and one of them is a difference, ptxas 13.0
    // for sm_90 makes one instruction, VIMNMX3, of two and drops the difference's sign (`docs/trust.md`). A comparison and a
    // choice of the same numbers, however far apart, would become a minimum before it came to that.
    (
        "int_less",
        "bool int_less(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    return int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) < 0;
}",
    ),
    (
        "int_min",
        "int int_min(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    const int less = int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) >> 31;
    return int(unsigned(b) + (apart & unsigned(less)));
}",
    ),
    (
        "int_max",
        "int int_max(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    const int less = int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) >> 31;
    return int(unsigned(a) - (apart & unsigned(less)));
}",
    ),
    ("int_add", "int int_add(int a, int b) { return int(unsigned(a) + unsigned(b)); }"),
    ("int_sub", "int int_sub(int a, int b) { return int(unsigned(a) - unsigned(b)); }"),
    ("int_mul", "int int_mul(int a, int b) { return int(unsigned(a) * unsigned(b)); }"),
    ("int_abs", "int int_abs(int a) { return a < 0 ? int(0u - unsigned(a)) : a; }"),
    ("int_sign", "int int_sign(int a) { return (a > 0) - (a < 0); }"),
    (
        "int_rem",
        "int int_rem(int a, int b)
{
    const int rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}",
    ),
];

/// How functions are declared: those that are part of a kernel, and those that it rarely needs.
const LINKAGES: &[(&str, &str)] =
    &[("STENCILC_FUNCTION", "__forceinline__"), ("STENCILC_FAR_FUNCTION", "__noinline__")];

/// The lines of the functions in `used`.
pub fn functions(used: &BTreeSet<&'static str>, precision: Precision) -> Vec<String> {
    let words = match precision {
        Precision::F32 => ["float", "fmodf", "fabsf", "copysignf", "f"],
        Precision::F64 => ["double", "fmod", "fabs", "copysign", "d"],
    };
    let text = |text: &str| {
        let names = ["REAL", "FMOD", "FABS", "COPYSIGN", "REGISTER"];
        let text = names.iter().zip(words).fold(text.to_owned(), |text, (name, word)| text.replace(name, word));
        format!("STENCILC_FUNCTION {text}")
    };
    let mut lines: Vec<String> = Vec::new();
    for (name, body) in FUNCTIONS {
        if used.contains(name) {
            lines.extend(text(body).lines().map(str::to_owned));
        }
    }
    lines.extend(functions::functions(used, precision));
    for (name, linkage) in LINKAGES.iter().rev() {
        if lines.iter().any(|line| line.contains(name)) {
            lines.insert(0, format!("#define {name} static __host__ __device__ {linkage}"));
        }
    }
    lines
}
