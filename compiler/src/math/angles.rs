// Sine, cosine and tangent, in both precisions alike: a part of `double.rs` and of `single.rs`.

/// The sine or cosine of what is left of the angle, by its quadrant.
#[inline(always)]
pub fn sin(x: Real) -> Real {
    let a = angle(x);
    let size = sin_or_cos(a.high, (a.quadrant & 1) == 1);
    choose((a.quadrant & 2) == 2, -size, size)
}

/// Like the sine, a quarter turn on.
#[inline(always)]
pub fn cos(x: Real) -> Real {
    let a = angle(x);
    let size = sin_or_cos(a.high, (a.quadrant & 1) == 0);
    choose(((a.quadrant ^ (a.quadrant >> 1)) & 1) == 1, -size, size)
}

/// The sine divided by the cosine, each as a sum of two numbers; the other way round in every other quadrant.
#[inline(always)]
pub fn tan(x: Real) -> Real {
    let a = angle(x);
    let most = fma(-0.5, a.high * a.high, 1.0);
    let sine_more = sin_rest(a.high, a.rest);
    let sine = a.high + sine_more;
    let sine_rest = a.high - sine + sine_more;
    let cosine_more = cos_rest(a.high, a.rest, most);
    let cosine = most + cosine_more;
    let cosine_rest = most - cosine + cosine_more;
    let is_odd = (a.quadrant & 1) == 1;
    let n = choose(is_odd, -cosine, sine);
    let n_rest = choose(is_odd, -cosine_rest, sine_rest);
    let d = choose(is_odd, sine, cosine);
    let d_rest = choose(is_odd, sine_rest, cosine_rest);
    let inverse = 1.0 / d;
    let ratio = n * inverse;
    let left = fma(-ratio, d, n) + fma(-ratio, d_rest, n_rest);
    choose(x == 0.0, x, fma(left, inverse, ratio))
}
