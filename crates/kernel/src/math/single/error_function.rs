//! The error function and its complement. All polynomials are minimax (Remez).

use super::exact::{Sum, fast_two_sum, polynomial, two_product, two_square, two_sum};
use super::exponential::{clamp, exp_sum, scaled};
use super::subnormal::{denormalized, normalized};
use super::{INF, MAGNITUDE, NAN, SIGN, ratio, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// `erf(x) / x - 1` as a polynomial in x^2 for |x| up to 1, within 2^-29.
const ERF: [f64; 7] = [
    0.128_379_166,
    -0.376_126_289,
    0.112_836_182,
    -0.026_855_126,
    0.005_190_733_82,
    -0.000_803_076_371,
    7.920_392_09e-5,
];
/// `erfc(x)` as a polynomial in x - 2.5 for x of 1 to 4, within 2^-28 absolute.
const ERFC: [f64; 16] = [
    0.000_406_952_313,
    -0.002_178_278_29,
    0.005_445_690_83,
    -0.008_350_215_85,
    0.008_622_585_8,
    -0.006_116_563_92,
    0.002_797_608_26,
    -0.000_544_593_204,
    -0.000_258_803_891,
    0.000_253_499_02,
    -8.104_865_99e-5,
    -7.805_841_96e-6,
    1.570_134_92e-5,
    -3.446_322_58e-6,
    -8.877_162_26e-7,
    3.491_674_36e-7,
];

/// Error function, within 1.3 ulp.
pub fn erf(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let a = clamp(magnitude.bitcast(F32), 0.0, 4.0);
    // Times 2^64, so that no product is subnormal.
    let up = (normalized(magnitude) + (64 << 23)).bitcast(F32);
    let small = (up + up * polynomial(a * a, &ERF)).bitcast(I32) - (64 << 23);
    let large: Value<'_> = 1.0 - polynomial(a - 2.5, &ERFC);
    let result = a.lt(1.0).select(denormalized(small), large.bitcast(U32));
    let result = magnitude.eq(0).select(magnitude, result) | (bits & SIGN);
    select_bits(magnitude.gt(INF), NAN, result)
}

/// `e^(x^2) erfc(x) / t` with t = 1 / (1 + x/2), as a polynomial in t - 1/2 for x of 0.46 to 10.2,
/// within 2^-27. The constant term comes first, in two parts.
const SCALED_0: [f64; 2] = [0.510_791_361, -8.699_752_03e-9];
const SCALED: [f64; 10] = [
    0.687_160_671,
    0.558_944_166,
    0.145_769_313,
    -0.172_083_989,
    -0.103_690_043,
    0.098_837_755_6,
    0.054_165_963_1,
    -0.083_571_009_3,
    -0.015_539_812_9,
    0.061_452_467,
];

/// `1 - erf(x)`, within 1.9 ulp.
pub fn erfc(x: Value<'_>) -> Value<'_> {
    erfc_scaled(x, 0)
}

/// `erfc(x) * 2^n` for an n of 0 to 64, and an x that is not negative where n is above 0; no bits
/// are lost where `erfc(x)` alone would be subnormal.
pub(in crate::math) fn erfc_scaled(x: Value<'_>, n: u32) -> Value<'_> {
    let power = 2f64.powi(n as i32);
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let one = x.like(1.0);
    // Near zero, 1 - erf(x).
    let one_less = two_sum(one, -x);
    let near = one_less.hi + (one_less.lo - x * polynomial(x * x, &ERF));

    // Elsewhere e^(-x^2) times a smooth function, both to more than f32's precision.
    let a = clamp(magnitude.bitcast(F32), 0.46, if n == 0 { 10.2 } else { 11.0 });
    let square = two_square(a);
    let (y, k) = exp_sum(-square.hi, Some(-square.lo));
    let d = fast_two_sum(one, a * 0.5);
    // The divisor is 1.2 to 6.1; a power of two scales it below 2.
    let scale = d.hi.gt(4.0).select(x.like(0.25), d.hi.gt(2.0).select(x.like(0.5), 1.0));
    let t = ratio(Sum { hi: scale, lo: x.like(0.0) }, Sum { hi: d.hi * scale, lo: d.lo * scale });
    let u = t.hi - 0.5;
    let p = fast_two_sum(x.like(SCALED_0[0]), u * polynomial(u, &SCALED));
    let g = two_product(t.hi, p.hi);
    let slope = p.hi + t.hi * (1.3 * t.hi);
    let g = Sum { hi: g.hi, lo: g.lo + t.hi * (p.lo + SCALED_0[1]) + t.lo * slope };
    let h = two_product(g.hi, y.hi);
    let far = fast_two_sum(h.hi, h.lo + g.lo * y.hi + g.hi * y.lo);
    let positive = scaled(far.hi, k + n).bitcast(F32);
    let reflected = 2.0 - positive;
    let far = (bits & SIGN).ne(0).select(reflected, positive);
    let near = if n == 0 { near } else { near * power };
    let result = magnitude.bitcast(F32).lt(0.46).select(near, far);
    select_bits(magnitude.gt(INF), NAN, result.bitcast(U32))
}
