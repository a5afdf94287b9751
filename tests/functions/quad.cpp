// How far numbers are from what 113 bits say, in units in the last place.
#include <algorithm>
#include <cmath>
#include <limits>
#include <quadmath.h>

typedef __float128 quad;

// Infinite where even the kind of number is wrong: a sign, an infinity, NaN.
template <class T> static double distance(T found, quad exact)
{
    typedef std::numeric_limits<T> limits;
    const double wrong = std::numeric_limits<double>::infinity();
    if (isnanq(exact)) return found != found ? 0 : wrong;
    if (found != found || std::signbit(found) != bool(signbitq(exact)) || (isinfq(exact) && !std::isinf(found))) return wrong;
    if (T(exact) == found && (found == 0 || std::isinf(found))) return 0;
    int exponent;
    frexpq(exact, &exponent);
    // Infinity stands for the number after the largest; a unit among the smallest numbers is the smallest.
    const quad near = std::isinf(found) ? copysignq(ldexpq(1, limits::max_exponent), exact) : quad(found);
    const int unit = std::min(std::max(exponent, limits::min_exponent), limits::max_exponent) - limits::digits;
    return double(fabsq(near - exact) / ldexpq(1, unit));
}

// The largest distance of `found` from a function of x and y, and at which of them it is.
template <class T, class F> static double worst(F exact, const T* x, const T* y, const T* found, long count, long* at)
{
    double largest = 0;
    *at = 0;
    for (long n = 0; n < count; n++) {
        const double own = distance(found[n], exact(quad(x[n]), quad(y[n])));
        if (own > largest) {
            largest = own;
            *at = n;
        }
    }
    return largest;
}

#define COMPARED(name, exact)                                                                                              \
    extern "C" double name##_f64(const double* x, const double* y, const double* found, long count, long* at)              \
    {                                                                                                                      \
        return worst([](quad x, quad y) { (void)y; return exact; }, x, y, found, count, at);                               \
    }                                                                                                                      \
    extern "C" double name##_f32(const float* x, const float* y, const float* found, long count, long* at)                 \
    {                                                                                                                      \
        return worst([](quad x, quad y) { (void)y; return exact; }, x, y, found, count, at);                               \
    }
COMPARED(exp, expq(x))
COMPARED(log, logq(x))
COMPARED(pow, powq(x, y))
COMPARED(sin, sinq(x))
COMPARED(cos, cosq(x))
COMPARED(tan, tanq(x))
COMPARED(atan, atanq(x))
COMPARED(atan2, atan2q(x, y))
COMPARED(tanh, tanhq(x))
COMPARED(cbrt, cbrtq(x))
