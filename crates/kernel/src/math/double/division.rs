//! Division and square root, correctly rounded in every case, and functions built from them.
//!
//! Newton's iteration on mantissas gives a quotient or root that is off by a few units in the last
//! place. It is then an integer of 53 bits, and its remainder is exact in 64-bit integers: the high
//! bits that wrap away are known to be zero. The remainder gives the correction and decides the
//! rounding.

use super::parts::*;
use crate::builder::Value;
use crate::types::ScalarType;

/// Bit 52: the leading one of a mantissa taken as an integer.
pub(super) const LEADING: u64 = 1 << 52;

/// A double in [1, 2) as an integer, in units of 2^-52.
fn integer(mantissa: Value<'_>) -> Value<'_> {
    bits(mantissa) - (ONE - LEADING)
}

/// `1 / x` within 2^-51, for a mantissa.
fn reciprocal_of_mantissa(x: Value<'_>) -> Value<'_> {
    let r = reciprocal_estimate(x);
    r + r * (1.0 - x * r)
}

/// See [`crate::math::div`]. Correctly rounded, including subnormal results.
pub fn div<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ax, ay) = (magnitude(x), magnitude(y));
    let ((mx, ex), (my, ey)) = (split_exponent(ax), split_exponent(ay));
    // The quotient of the mantissas is brought to [1, 2).
    let less = mx.lt(my);
    let exponent = ex - ey - less.cast(ScalarType::I32);
    let r = reciprocal_of_mantissa(my);
    let q = integer(less.select(mx + mx, mx) * r).bitcast(ScalarType::I64);
    let divisor = integer(my).bitcast(ScalarType::I64);
    let dividend = (integer(mx) << (52 + less.cast(ScalarType::U64))).bitcast(ScalarType::I64);
    let rest = dividend - q * divisor;
    // |rest| < 2^57. Its high part determines the nearest integer to rest / divisor, up to an error
    // of one.
    let step = ((rest >> 26).cast(ScalarType::I32).cast(ScalarType::F64) * (r * 2f64.powi(-26))).round();
    let step = step.cast(ScalarType::I32).cast(ScalarType::I64);
    let (q, rest) = (q + step, rest - step * divisor);
    let (one, zero) = (b.int(ScalarType::I64, 1), b.int(ScalarType::I64, 0));
    let up = (rest + rest).gt(divisor).select(one, zero);
    let down = (rest + rest).lt(-divisor).select(one, zero);
    let (q, rest) = (q + up - down, rest - (up - down) * divisor);
    let finite = assemble(q.bitcast(ScalarType::U64), rest, exponent);
    let (x_inf, y_inf) = (ax.eq(INFINITY), ay.eq(INFINITY));
    let (x_zero, y_zero) = (ax.eq(0), ay.eq(0));
    let result = (x_zero | y_inf).select(b.int(ScalarType::U64, 0), finite);
    let result = (x_inf | y_zero).select(b.int(ScalarType::U64, INFINITY), result);
    let result = result | ((bits(x) ^ bits(y)) & SIGN);
    let nan = ax.gt(INFINITY) | ay.gt(INFINITY) | (x_inf & y_inf) | (x_zero & y_zero);
    float(nan.select(b.int(ScalarType::U64, NAN), result))
}

/// Bits of the positive number `q * 2^(exponent - 52)`, for a rounded `q` of 53 bits. Below the
/// normal numbers it is rounded again at a higher bit; the sign of `rest` is the sign of the
/// difference between the exact number and `q`. Infinity above the range.
pub(super) fn assemble<'b>(q: Value<'b>, rest: Value<'b>, exponent: Value<'b>) -> Value<'b> {
    let b = q.builder();
    // The leading one of q adds 1 to the exponent field.
    let field = exponent + 1022;
    let normal = (field.cast(ScalarType::U64) << 52) + q;
    let shift = (-field).max(1).min(60).cast(ScalarType::U64);
    let kept = q >> shift;
    let (low, half) = (q - (kept << shift), b.int(ScalarType::U64, 1) << (shift - 1));
    let tie = rest.gt(0) | (rest.eq(0) & (kept & 1).eq(1));
    let round_up = low.gt(half) | (low.eq(half) & tie);
    let subnormal = kept + round_up.cast(ScalarType::U64);
    field.lt(0).select(subnormal, field.gt(2045).select(b.int(ScalarType::U64, INFINITY), normal))
}

/// See [`crate::math::reciprocal`]. Correctly rounded.
pub fn reciprocal<'b>(x: Value<'b>) -> Value<'b> {
    div(x.like(1.0), x)
}

/// Mantissa in [1, 4), half the exponent, and whether the mantissa is above 2, for [`sqrt`] and
/// [`rsqrt`].
fn split_even_exponent(magnitude: Value<'_>) -> (Value<'_>, Value<'_>, Value<'_>) {
    let (m, e) = split_exponent(magnitude);
    let odd = (e & 1).eq(1);
    (odd.select(m + m, m), e >> 1, odd)
}

/// See [`crate::math::sqrt`]. Correctly rounded.
pub fn sqrt<'b>(x: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let ax = magnitude(x);
    let (m, e, odd) = split_even_exponent(ax);
    let r = rsqrt_step(m, rsqrt_estimate(m));
    let root = integer(m * r).bitcast(ScalarType::I64);
    let mantissa = (bits(m) & MANTISSA) | LEADING;
    let radicand = (mantissa << (52 + odd.cast(ScalarType::U64))).bitcast(ScalarType::I64);
    let rest = radicand - root * root;
    // Half of rest / root, as in `div`.
    let step = ((rest >> 28).cast(ScalarType::I32).cast(ScalarType::F64) * (r * 2f64.powi(-25))).round();
    let root = root + step.cast(ScalarType::I32).cast(ScalarType::I64);
    let rest = radicand - root * root;
    // (root + 1/2)^2 = root^2 + root + 1/4, and the radicand is an integer: no ties.
    let (one, zero) = (b.int(ScalarType::I64, 1), b.int(ScalarType::I64, 0));
    let root = root + rest.gt(root).select(one, zero) - rest.le(-root).select(one, zero);
    let result = ((e + 1022).cast(ScalarType::U64) << 52) + root.bitcast(ScalarType::U64);
    let itself = ax.eq(0) | bits(x).eq(INFINITY);
    let result = itself.select(bits(x), result);
    let invalid = ax.gt(INFINITY) | (is_negative(x) & ax.ne(0));
    float(invalid.select(b.int(ScalarType::U64, NAN), result))
}

/// See [`crate::math::rsqrt`].
pub fn rsqrt<'b>(x: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let ax = magnitude(x);
    let (m, e, _) = split_even_exponent(ax);
    let r = rsqrt_estimate(m);
    let r = r + (0.5 * r) * (1.0 - m * (r * r));
    // An estimate of 26 bits has an exact square, so the error is exact in the last step.
    let r = halves(r).h;
    let (m, square) = (halves(m), halves(r * r));
    let error = ((1.0 - m.h * square.h) - (m.h * square.l + m.l * square.h)) - m.l * square.l;
    let y = r + (r * error) * (0.5 + 0.375 * error);
    let result = bits(y) - (e.cast(ScalarType::U64) << 52);
    let result = ax.eq(0).select(b.int(ScalarType::U64, INFINITY) | bits(x), result);
    let result = bits(x).eq(INFINITY).select(b.int(ScalarType::U64, 0), result);
    let invalid = ax.gt(INFINITY) | (is_negative(x) & ax.ne(0));
    float(invalid.select(b.int(ScalarType::U64, NAN), result))
}

/// See [`crate::math::fmod`]. Exact: long division, eleven bits of the quotient at a time.
pub fn fmod<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ax, ay) = (magnitude(x), magnitude(y));
    let ((mx, ex), (my, ey)) = (split_exponent(ax), split_exponent(ay));
    let divisor = integer(my);
    // Both are in [2^52, 2^53). (Compilers share the many steps of two `%` by the same divisor, and
    // keep them in registers from one to the other.)
    let first = integer(mx);
    let rest = b.var(first.lt(divisor).select(first, first - divisor));
    // There are no steps for special operands (infinite, NaN, x below y).
    let regular = ax.ge(ay) & ax.lt(INFINITY);
    let left = b.var(regular.select(ex - ey, 0));
    b.while_(
        || left.get().gt(0),
        || {
            let step = left.get().min(11);
            rest.set((rest.get() << step.cast(ScalarType::U64)) % divisor);
            left.set(left.get() - step);
        },
    );
    // rest * 2^(ey - 52), normalized.
    let rest = rest.get();
    let zeros = leading_zeros_of_53(rest);
    let field = ey + 1022 - zeros;
    let normal = (field.cast(ScalarType::U64) << 52) + (rest << zeros.cast(ScalarType::U64));
    let subnormal = rest << (ey + 1022).max(0).min(52).cast(ScalarType::U64);
    let subnormal = (ey + 1022).lt(0).select(rest >> (-(ey + 1022)).max(0).cast(ScalarType::U64), subnormal);
    let result = field.lt(0).select(subnormal, normal);
    let result = rest.eq(0).select(b.int(ScalarType::U64, 0), result);
    let result = ax.lt(ay).select(ax, result) | sign(x);
    let nan = ax.ge(INFINITY) | ay.gt(INFINITY) | ay.eq(0);
    float(nan.select(b.int(ScalarType::U64, NAN), result))
}

/// The number of bits by which an integer below 2^53 must be shifted left to set bit 52; undefined
/// for 0.
fn leading_zeros_of_53(x: Value<'_>) -> Value<'_> {
    let (high, low) = ((x >> 32).cast(ScalarType::U32), x.cast(ScalarType::U32));
    let top = high.ne(0).select(high.highest_bit() + 32, low.highest_bit()).bitcast(ScalarType::I32);
    (-top + 52).max(0).min(52)
}
