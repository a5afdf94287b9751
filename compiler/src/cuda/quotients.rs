//! Divisions that share an inverse, of kernels that are tried ([`Attempt`]): texts of [`Function::Inverse`] and [`Function::Quotient`].
//!
//! [`Attempt`]: crate::kernel::Attempt
//! [`Function::Inverse`]: crate::kernel::Function::Inverse
//! [`Function::Quotient`]: crate::kernel::Function::Quotient

use crate::ir::Precision;

/// `real_inverse(b, is_usual)` and `real_quotient(a, b, inverse, is_quick, is_usual)`.
///
/// Bounds are such that no step overflows, and that what is left of a division is exact. A double's first half, looked at as a
/// single, is in the order of doubles: 1e-5 stands for 2^-141, 1e5 for 2^125, 1e-25 for 2^-670, 1e25 for 2^655.
///
/// A divisor of 0 is usual, too: where a condition guards a division, its inverse is made before that is asked. The approximate inverse
/// is infinite then, and the first product is the quotient.
pub fn functions(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => F64,
        Precision::F32 => F32,
    }
}

const F64: &str = "\
static __device__ __forceinline__ double real_inverse(const double b, bool& is_usual)
{
    const float size = fabsf(__int_as_float(__double2hiint(b)));
    is_usual = is_usual & (((size > 1e-5f) & (size < 1e5f)) | (b == 0.0));
#ifdef __CUDA_ARCH__
    double rough;
    asm(\"rcp.approx.ftz.f64 %0, %1;\" : \"=d\"(rough) : \"d\"(b));
    // As the device does: without this bit, inverses of numbers with all bits set come out too small.
    const double first = __hiloint2double(__double2hiint(rough), 1);
    const double error = fma(-b, first, 1.0);
    const double second = fma(first, fma(error, error, error), first);
    return b == 0.0 ? rough : fma(second, fma(-b, second, 1.0), second);
#else
    return 1.0 / b;
#endif
}
static __device__ __forceinline__ double real_quotient(const double a, const double b, const double inverse, const bool is_quick, bool& is_usual)
{
    if (!is_quick) return a / b;
    const double first = a * inverse;
    const double second = fma(inverse, fma(-b, first, a), first);
    const float size = fabsf(__int_as_float(__double2hiint(second)));
    const bool is_plain = (a == 0.0) | (b == 0.0);
    is_usual = is_usual & (((size > 1e-25f) & (size < 1e25f)) | is_plain);
    return is_plain ? first : second;
}
";

const F32: &str = "\
static __device__ __forceinline__ float real_inverse(const float b, bool& is_usual)
{
    const float size = fabsf(b);
    is_usual = is_usual & (((size > 1e-9f) & (size < 1e9f)) | (b == 0.0f));
#ifdef __CUDA_ARCH__
    float first;
    asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(first) : \"f\"(b));
    return b == 0.0f ? first : fmaf(first, fmaf(-b, first, 1.0f), first);
#else
    return 1.0f / b;
#endif
}
static __device__ __forceinline__ float real_quotient(const float a, const float b, const float inverse, const bool is_quick, bool& is_usual)
{
    if (!is_quick) return a / b;
    const float first = a * inverse;
    const float second = fmaf(inverse, fmaf(-b, first, a), first);
    const float third = fmaf(inverse, fmaf(-b, second, a), second);
    const float size = fabsf(third);
    const bool is_plain = (a == 0.0f) | (b == 0.0f);
    is_usual = is_usual & (((size > 1e-18f) & (size < 1e18f)) | is_plain);
    return is_plain ? first : third;
}
";
