// What the functions of `compiler/src/math/` are made of, as C++ has it. Each begins with a line that names it. `REAL`, `BITS` and other
// words in capitals stand for what they are in the precision of the kernel (`math/cpp.rs`).

//: real_choose
template <class T> STENCILC_FUNCTION T real_choose(bool condition, T yes, T no) { return condition ? yes : no; }

//: real_entry
template <int N> STENCILC_FUNCTION double real_entry(const double (&table)[2][N], bool second, int n)
{
    return table[second][n];
}

//: real_digits_of
union real_digits_of { REAL number; BITS digits; };

//: real_low uses real_digits_of
STENCILC_FUNCTION int real_low(REAL x) { return int(real_digits_of{x}.digits - LARGE); }

//: real_power_of_two uses real_digits_of
STENCILC_FUNCTION REAL real_power_of_two(int k)
{
    const BITS digits = unsigned(k);
    real_digits_of power;
    power.digits = (digits << SHIFT) + ONE;
    return power.number;
}

//: real_exponent uses real_digits_of
STENCILC_FUNCTION int real_exponent(REAL x)
{
    const SIGNED digits = real_digits_of{x}.digits - LEAST;
    return int(digits >> SHIFT);
}

//: real_mantissa uses real_digits_of
STENCILC_FUNCTION REAL real_mantissa(REAL x)
{
    real_digits_of mantissa = {x};
    mantissa.digits -= (mantissa.digits - LEAST) >> SHIFT << SHIFT;
    return mantissa.number;
}

//: real_inverse_root_f64 uses real_digits_of
STENCILC_FUNCTION double real_inverse_root_f64(double x)
{
    real_digits_of root = {x};
    const BITS high = 1430186309u - unsigned(root.digits >> 32) / 3;
    root.digits = high << 32;
    return root.number;
}

//: real_inverse_root_f32 uses real_digits_of
STENCILC_FUNCTION float real_inverse_root_f32(float x)
{
    real_digits_of root = {x};
    root.digits = 1419900111u - root.digits / 3;
    return root.number;
}

//: real_bits
STENCILC_FUNCTION unsigned long long real_bits(double x)
{
    union { double number; unsigned long long digits; } all = {x};
    return all.digits;
}

//: real_number
STENCILC_FUNCTION double real_number(unsigned long long digits)
{
    union { unsigned long long digits; double number; } all = {digits};
    return all.number;
}

//: real_sum
STENCILC_FUNCTION unsigned long long real_sum(unsigned long long a, unsigned long long b) { return a + b; }

//: real_product
STENCILC_FUNCTION unsigned long long real_product(unsigned long long a, unsigned long long b) { return a * b; }

//: real_product_high
STENCILC_FUNCTION unsigned long long real_product_high(unsigned long long a, unsigned long long b)
{
    const unsigned long long a0 = unsigned(a), a1 = a >> 32, b0 = unsigned(b), b1 = b >> 32;
    const unsigned long long middle = a1 * b0 + (a0 * b0 >> 32);
    return a1 * b1 + (middle >> 32) + ((unsigned(middle) + a0 * b1) >> 32);
}
