// Quotients by shared inverses against the machine's own division. REAL, BITS and MANTISSA are those of the precision, before
// are the functions. Counts what is wrong, what is unusual, and all.
__device__ unsigned long long mixed(unsigned long long x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

// A number whose exponent is at most `range` from 0. Mantissas are random, or near the ends: few bits set, few missing.
__device__ REAL drawn(const unsigned long long from, const int kind, const int range)
{
    const unsigned long long all = (1ull << MANTISSA) - 1, one = 1ull << mixed(from + 1) % MANTISSA, two = 1ull << mixed(from + 2) % MANTISSA;
    const unsigned long long exponent = BIAS + mixed(from + 3) % (2 * range + 1) - range, sign = mixed(from + 4) & 1;
    const unsigned long long mantissas[5] = {mixed(from) & all, one | two, all ^ one ^ (from & 1 ? two : 0), all - (mixed(from + 5) & 7), mixed(from + 5) & 7};
    return REAL_OF(sign << (SIZE - 1) | exponent << MANTISSA | mantissas[kind]);
}

// Any NaN is as good as any other.
__device__ bool is_same(const REAL x, const REAL y)
{
    return BITS_OF(x) == BITS_OF(y) || (x != x && y != y);
}

extern "C" __global__ void quotients(unsigned* __restrict__ counts, const int first, const int range)
{
    const unsigned long long thread = first + blockIdx.x * 128ull + threadIdx.x;
    for (int n = 0; n < 64; n++) {
        const unsigned long long from = mixed(thread * 64 + n);
        const int kind = int(mixed(from + 6) % 25);
        REAL b = drawn(mixed(from + 7), kind / 5, range);
        REAL a = drawn(from, kind % 5, range);
        if (mixed(from + 8) % 64 == 0) a = from & 1 ? REAL(0) : -REAL(0);
        if (mixed(from + 9) % 64 == 0) b = from & 2 ? REAL(0) : -REAL(0);
        bool is_usual = true;
        const REAL found = real_quotient(a, b, real_inverse(b, is_usual), true, is_usual);
        const bool is_wrong = is_usual && !is_same(found, a / b);
        bool is_careful = true;
        const bool is_other = !is_same(real_quotient(a, b, REAL(0), false, is_careful), a / b);
        atomicAdd(&counts[is_wrong || is_other ? 0 : is_usual ? 1 : 2], 1u);
    }
}
