// Operations of the language that C++ lacks or leaves undefined. A kernel gets those that it calls. Each begins with a line that names
// it; lines that begin with `//-` are for readers of this file alone. `REAL` and other words in capitals stand for what they are in the
// precision of the kernel (`math/cpp.rs`).

//: real_min
STENCILC_FUNCTION REAL real_min(REAL a, REAL b) { return a < b || a != a ? a : b; }

//: real_max
STENCILC_FUNCTION REAL real_max(REAL a, REAL b) { return a > b || a != a ? a : b; }

//: real_sign
STENCILC_FUNCTION REAL real_sign(REAL a) { return a > 0 ? REAL(1) : a < 0 ? REAL(-1) : a; }

//: real_opaque
//- A number of which compilers do not know where it comes from. NVVM 13.0 leaves a constant operation that makes a NaN
//- for later, and takes two of one text for equal numbers.
STENCILC_FUNCTION REAL real_opaque(REAL a)
{
#ifdef __CUDA_ARCH__
    asm("" : "+REGISTER"(a));
#endif
    return a;
}

//: real_abs of f32
//- By its bits: ptxas 13.0 decides `fabsf(a) >= 0` without looking at it, though NaN is not.
STENCILC_FUNCTION float real_abs(float a)
{
#ifdef __CUDA_ARCH__
    unsigned bits;
    asm("and.b32 %0, %1, 0x7fffffff;" : "=r"(bits) : "r"(__float_as_uint(a)));
    return __uint_as_float(bits);
#else
    return fabsf(a);
#endif
}

//: real_copysign of f64
//- A NaN has no sign that devices agree on.
STENCILC_FUNCTION double real_copysign(double a, double b) { return b != b ? fabs(a) : copysign(a, b); }

//: real_copysign of f32 uses real_abs
//- With a sign that is known, copysignf is an absolute value that ptxas looks through.
STENCILC_FUNCTION float real_copysign(float a, float b)
{
    const float size = real_abs(a);
#ifdef __CUDA_ARCH__
    return b != b || !(__float_as_uint(b) >> 31) ? size : -size;
#else
    return b != b ? size : copysignf(size, b);
#endif
}

//: real_rem
STENCILC_FUNCTION REAL real_rem(REAL a, REAL b)
{
    const REAL rest = FMOD(a, b);
    return rest == 0 ? COPYSIGN(rest, b) : (rest < 0) != (b < 0) ? rest + b : rest;
}

//: int_less
//- By arithmetic, not by a comparison: where three whole numbers are compared and one of them is a difference, ptxas 13.0
//- for sm_90 makes one instruction, VIMNMX3, of two and drops the difference's sign (`docs/trust.md`). A comparison and a
//- choice of the same numbers, however far apart, would become a minimum before it came to that.
STENCILC_FUNCTION bool int_less(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    return int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) < 0;
}

//: int_min
STENCILC_FUNCTION int int_min(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    const int less = int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) >> 31;
    return int(unsigned(b) + (apart & unsigned(less)));
}

//: int_max
STENCILC_FUNCTION int int_max(int a, int b)
{
    const unsigned apart = unsigned(a) - unsigned(b);
    const int less = int(apart ^ ((unsigned(a) ^ unsigned(b)) & (apart ^ unsigned(a)))) >> 31;
    return int(unsigned(a) - (apart & unsigned(less)));
}

//: int_add
STENCILC_FUNCTION int int_add(int a, int b) { return int(unsigned(a) + unsigned(b)); }

//: int_sub
STENCILC_FUNCTION int int_sub(int a, int b) { return int(unsigned(a) - unsigned(b)); }

//: int_mul
STENCILC_FUNCTION int int_mul(int a, int b) { return int(unsigned(a) * unsigned(b)); }

//: int_abs
STENCILC_FUNCTION int int_abs(int a) { return a < 0 ? int(0u - unsigned(a)) : a; }

//: int_sign
STENCILC_FUNCTION int int_sign(int a) { return (a > 0) - (a < 0); }

//: int_rem
STENCILC_FUNCTION int int_rem(int a, int b)
{
    const int rest = b == 0 || b == -1 ? 0 : a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
