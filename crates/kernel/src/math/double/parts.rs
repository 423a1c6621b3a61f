//! Shared building blocks: bits, exponents, error-free transformations, sums and quotients of two
//! doubles.

use crate::builder::{Builder, Value};
use crate::types::ScalarType;

pub const SIGN: u64 = 1 << 63;
pub const MANTISSA: u64 = (1 << 52) - 1;
pub const ONE: u64 = 1023 << 52;
pub const INFINITY: u64 = 2047 << 52;
pub const NAN: u64 = INFINITY | 1 << 51;

/// The bits of a double.
pub fn bits(x: Value<'_>) -> Value<'_> {
    x.bitcast(ScalarType::U64)
}

/// The double with these bits.
pub fn float(bits: Value<'_>) -> Value<'_> {
    bits.bitcast(ScalarType::F64)
}

/// Bits without the sign: comparing them compares magnitudes, and no driver flushes an integer.
pub fn magnitude(x: Value<'_>) -> Value<'_> {
    bits(x) & !SIGN
}

/// The sign bit.
pub fn sign(x: Value<'_>) -> Value<'_> {
    bits(x) & SIGN
}

/// Whether the sign bit is set.
pub fn is_negative(x: Value<'_>) -> Value<'_> {
    bits(x).ge(SIGN)
}

/// `x` with its sign bit exclusive-or'ed with `sign`, which has no other bit.
pub fn flip<'b>(x: Value<'b>, sign: Value<'b>) -> Value<'b> {
    float(bits(x) ^ sign)
}

/// A double constant.
pub fn constant(b: &Builder, x: f64) -> Value<'_> {
    b.float(ScalarType::F64, x)
}

/// The double constant with these bits.
pub fn special(b: &Builder, bits: u64) -> Value<'_> {
    float(b.int(ScalarType::U64, bits))
}

/// A polynomial, lowest coefficient first, by Horner's rule.
pub fn polynomial<'b>(x: Value<'b>, coefficients: &[f64]) -> Value<'b> {
    let (last, rest) = coefficients.split_last().expect("a polynomial has coefficients");
    rest.iter().rev().fold(x.like(*last), |sum, &c| sum * x + c)
}

/// `2^k` for an i32 in -1022..=1023.
pub fn power_of_two(k: Value<'_>) -> Value<'_> {
    float((k + 1023).cast(ScalarType::U64) << 52)
}

/// `y * 2^k` for a `y` within 2^-60 and 2^60, or any `y` and a `k` above -1000, not 0 unless k is
/// below 0, and any result: infinite above, rounded below to the nearest subnormal, in integers,
/// which no adapter flushes.
pub fn scale<'b>(y: Value<'b>, k: Value<'b>) -> Value<'b> {
    let b = y.builder();
    let k = k.max(-1200);
    let shifted = |by: Value<'b>| magnitude(y) + (by.cast(ScalarType::U64) << 52);
    let field = (magnitude(y) >> 52).cast(ScalarType::I32) + k;
    // The bits of a subnormal number are its multiple of 2^-1074.
    let multiple = float(shifted(k + 1074)).round().cast(ScalarType::U64);
    let finite = field.lt(1).select(multiple, shifted(k));
    float(field.gt(2046).select(b.int(ScalarType::U64, INFINITY), finite) | sign(y))
}

/// `y * 2^-k` for a non-negative `y` and a `k` of 0 to 1000, including subnormal results.
pub fn lowered(y: Value<'_>, k: u32) -> Value<'_> {
    magnitude(y).ge(INFINITY).select(y, scale(y, y.builder().i32(-(k as i32))))
}

/// `x * factor` for a positive factor of 2^-1000 to 2^1000; `x` may be subnormal, and so may the
/// product if `x` is below 2^-900.
pub fn product<'b>(x: Value<'b>, factor: Value<'b>) -> Value<'b> {
    let (mantissa, exponent) = split_exponent(magnitude(x));
    let small = is_below(x, -900) & magnitude(x).ne(0);
    small.select(flip(scale(mantissa * factor, exponent), sign(x)), x * factor)
}

/// `x + y`; both may be subnormal.
pub fn sum<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    // Scaled by 2^1022 and back.
    let lifted = |x: Value<'b>| {
        let a = magnitude(x);
        let subnormal = bits(float(a | ONE) - 1.0);
        flip(float(a.lt(MANTISSA + 1).select(subnormal, a + (1022u64 << 52))), sign(x))
    };
    let total = scale(lifted(x) + lifted(y), x.builder().i32(-1022));
    (is_below(x, -900) & is_below(y, -900)).select(total, x + y)
}

/// Mantissa in [1, 2) and exponent (i32) of a positive finite double, given by its bits.
pub fn split_exponent(magnitude: Value<'_>) -> (Value<'_>, Value<'_>) {
    let b = magnitude.builder();
    let subnormal = magnitude.lt(MANTISSA + 1);
    // A subnormal m * 2^-1074 becomes m * 2^-52 without arithmetic on subnormals.
    let lifted = bits(float(magnitude | ONE) - 1.0);
    let normal = subnormal.select(lifted, magnitude);
    let exponent = (normal >> 52).cast(ScalarType::I32) - subnormal.select(b.i32(1023 + 1022), 1023);
    (float((normal & MANTISSA) | ONE), exponent)
}

/// A number as an unevaluated sum; `l` is small compared with `h`.
#[derive(Copy, Clone)]
pub struct Pair<'b> {
    pub h: Value<'b>,
    pub l: Value<'b>,
}

impl<'b> Pair<'b> {
    pub fn new(h: Value<'b>, l: Value<'b>) -> Pair<'b> {
        Pair { h, l }
    }

    /// A double.
    pub fn exact(h: Value<'b>) -> Pair<'b> {
        Pair { h, l: h.like(0.0) }
    }

    /// A constant, as the nearest double and the remainder.
    pub fn constant(b: &'b Builder, (h, l): (f64, f64)) -> Pair<'b> {
        Pair { h: constant(b, h), l: constant(b, l) }
    }

    /// The sum, rounded.
    pub fn value(self) -> Value<'b> {
        self.h + self.l
    }

    /// The same number with `h` its rounded value.
    pub fn normalized(self) -> Pair<'b> {
        fast_two_sum(self.h, self.l)
    }

    /// The pair if `cond` holds, else `other`.
    pub fn select(cond: Value<'b>, a: Pair<'b>, b: Pair<'b>) -> Pair<'b> {
        Pair { h: cond.select(a.h, b.h), l: cond.select(a.l, b.l) }
    }

    /// Both parts multiplied by a power of two.
    pub fn times_power(self, power: impl crate::builder::Operand<'b> + Copy) -> Pair<'b> {
        Pair { h: self.h * power, l: self.l * power }
    }

    pub fn neg(self) -> Pair<'b> {
        Pair { h: -self.h, l: -self.l }
    }

    /// `self + x`, relative error about 2^-104 unless they cancel.
    pub fn plus(self, x: Value<'b>) -> Pair<'b> {
        let s = two_sum(self.h, x);
        fast_two_sum(s.h, s.l + self.l)
    }

    /// `self + other`, error about 2^-104 of the larger one.
    pub fn plus_pair(self, other: Pair<'b>) -> Pair<'b> {
        let s = two_sum(self.h, other.h);
        fast_two_sum(s.h, s.l + (self.l + other.l))
    }

    /// `self * other`, relative error about 2^-102.
    pub fn times(self, other: Pair<'b>) -> Pair<'b> {
        let p = two_product(self.h, other.h);
        fast_two_sum(p.h, p.l + (self.h * other.l + self.l * other.h))
    }
}

/// `a + b` exactly (Knuth).
pub fn two_sum<'b>(a: Value<'b>, b: Value<'b>) -> Pair<'b> {
    let h = a + b;
    let t = h - a;
    Pair { h, l: (a - (h - t)) + (b - t) }
}

/// `a + b` exactly where `|a| >= |b|` or `a` is 0 (Dekker).
pub fn fast_two_sum<'b>(a: Value<'b>, b: Value<'b>) -> Pair<'b> {
    let h = a + b;
    Pair { h, l: b - (h - a) }
}

/// `x` as a sum of two numbers of 26 bits: rounded in integer arithmetic, where Veltkamp's
/// splitting takes three more operations on doubles and overflows early.
pub fn halves(x: Value<'_>) -> Pair<'_> {
    let h = float((bits(x) + 0x0400_0000u64) & !0x07ff_ffffu64);
    Pair { h, l: x - h }
}

/// `a * b` exactly (Dekker), unless it is below 2^-900.
pub fn two_product<'b>(a: Value<'b>, b: Value<'b>) -> Pair<'b> {
    two_product_of(a, halves(a), b, halves(b))
}

/// [`two_product`] of numbers already split.
pub fn two_product_of<'b>(a: Value<'b>, sa: Pair<'b>, b: Value<'b>, sb: Pair<'b>) -> Pair<'b> {
    let h = a * b;
    Pair { h, l: ((sa.h * sb.h - h) + sa.h * sb.l + sa.l * sb.h) + sa.l * sb.l }
}

/// `1 / x` with relative error 2^-12, for a normal `x` of magnitude below 2^1000. The seed
/// subtracts exponents and mantissas as one integer.
pub fn rough_reciprocal(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    reciprocal_step(x, float(b.int(ScalarType::U64, 0x7fde_6238_22fc_16e6) - bits(x)))
}

/// Takes an estimate of `1 / x` from relative error e to e^3.
fn reciprocal_step<'b>(x: Value<'b>, r: Value<'b>) -> Value<'b> {
    let e = 1.0 - x * r;
    r + r * (e + e * e)
}

/// `1 / x` with relative error 2^-37, under [`rough_reciprocal`]'s conditions.
pub fn reciprocal_estimate(x: Value<'_>) -> Value<'_> {
    reciprocal_step(x, rough_reciprocal(x))
}

/// `1 / sqrt(x)` with relative error 2^-17, for a positive normal `x`: a seed that halves the
/// exponent, and one step of the binomial series.
pub fn rsqrt_estimate(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let r = float(b.int(ScalarType::U64, 0x5fe6_eb50_c7b5_37a9) - (bits(x) >> 1));
    rsqrt_step(x, r)
}

/// Takes an estimate of `1 / sqrt(x)` from relative error e to about 4 e^4.
pub fn rsqrt_step<'b>(x: Value<'b>, r: Value<'b>) -> Value<'b> {
    let e = 1.0 - x * (r * r);
    r + (r * e) * (0.5 + e * (0.375 + e * 0.3125))
}

/// `n / d` with relative error about 2^-74, for quotients and parts far from the ends of the range.
pub fn quotient<'b>(n: Pair<'b>, d: Pair<'b>) -> Pair<'b> {
    let r = reciprocal_estimate(d.h);
    let q = n.h * r;
    let p = two_product(q, d.h);
    let rest = ((n.h - p.h) - p.l) + (n.l - q * d.l);
    fast_two_sum(q, rest * r)
}

/// `sqrt(x)` with relative error about 2^-74, for a positive `x` far from the ends of the range;
/// the parts are 0 for 0.
pub fn square_root(x: Value<'_>) -> Pair<'_> {
    let positive = x.max(2f64.powi(-200));
    let r = rsqrt_step(positive, rsqrt_estimate(positive));
    let s = x * r;
    let p = two_product(s, s);
    fast_two_sum(s, ((x - p.h) - p.l) * (0.5 * r))
}

/// Whether `|x| < 2^exponent`.
pub fn is_below(x: Value<'_>, exponent: i32) -> Value<'_> {
    magnitude(x).lt(2f64.powi(exponent).to_bits())
}
