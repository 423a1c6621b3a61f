//! Division, square roots and remainders. Division and square root are correctly rounded: a Newton
//! iteration gives the significand with an error of about one unit, and the exact remainder in
//! integer arithmetic determines the rounding, including that of a subnormal result.
//!
//! Sources: P. Markstein, "IA-64 and Elementary Functions" (2000), for rounding by remainders.

use super::exact::head;
use super::subnormal::{denormalized, normalized};
use super::{INF, MAGNITUDE, MIN_NORMAL, NAN, SIGN, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// The quotient of two significands.
pub(super) struct Quotient<'b> {
    /// Rounded to nearest, 2^23 to 2^24, as u32.
    pub significand: Value<'b>,
    /// The exponent of the quotient, 0 or -1, as i32: the quotient is
    /// `significand * 2^(exponent - 23)`.
    pub exponent: Value<'b>,
    /// The exact quotient minus the rounded one, in ulp (f32).
    pub rest: Value<'b>,
}

/// `1 / y` for y in [1, 2], within 1.7 * 2^-24 relative.
pub(super) fn reciprocal_significand(y: Value<'_>) -> Value<'_> {
    // Minimax parabola, within 1%; each step squares the error.
    let r = (y * 0.323_225_975 - 1.454_533_93) * y + 2.121_212_01;
    let r = r + r * (1.0 - y * r);
    r + r * (1.0 - y * r)
}

/// Quotient of the significands of two numbers given by their [`normalized`] bits (u32); exponents
/// and signs are ignored.
pub(super) fn quotient<'b>(x: Value<'b>, y: Value<'b>) -> Quotient<'b> {
    let b = x.builder();
    let (fx, fy) = (x & 0x7f_ffff, y & 0x7f_ffff);
    let (mx, my) = (fx | 0x80_0000, fy | 0x80_0000);
    let reciprocal = reciprocal_significand((fy | 0x3f80_0000).bitcast(F32));
    let less = fx.lt(fy);
    let approximate = (fx | 0x3f80_0000).bitcast(F32) * reciprocal;
    let scale = less.select(b.float(F32, 16_777_216.0), 8_388_608.0);
    let guess = (approximate * scale).cast(U32).bitcast(I32);
    // The remainder is below 2^27, so its low 32 bits are all of it.
    let shift = less.select(b.u32(24), 23);
    let divisor = my.bitcast(I32);
    let remainder = (mx << shift).bitcast(I32) - guess * divisor;
    // The estimate has an error of at most three units. One step reduces it to one unit; a second
    // step determines the rounding.
    let unit = reciprocal * f64::from(2f32.powi(-23));
    let step = (remainder.cast(F32) * unit).round().cast(I32);
    let (q, remainder) = (guess + step, remainder - step * divisor);
    let twice = remainder + remainder;
    let step = twice.gt(divisor).select(b.i32(1), twice.lt(-divisor).select(b.i32(-1), 0));
    let left = remainder - step * divisor;
    Quotient { significand: (q + step).bitcast(U32), exponent: less.select(b.i32(-1), 0), rest: left.cast(F32) * unit }
}

/// Bits of the positive number `q.significand * 2^(exponent - 23)`, rounded once: `q.rest`
/// determines the rounding of a subnormal result. Infinity above the range.
pub(super) fn assemble<'b>(q: &Quotient<'b>, exponent: Value<'b>) -> Value<'b> {
    let b = exponent.builder();
    // The significand's leading one adds 1 to the exponent field.
    let field = exponent + 126;
    let lost = (-field).max(0).min(25).bitcast(U32);
    let kept = q.significand >> lost;
    let (low, half) = (q.significand - (kept << lost), (b.u32(1) << lost) >> 1);
    let tie_up = q.rest.gt(0.0) | (q.rest.eq(0.0) & (kept & 1).ne(0));
    let up = lost.ne(0) & (low.gt(half) | (low.eq(half) & tie_up));
    let bits = (field.max(0) << 23).bitcast(U32) + kept + up.cast(U32);
    field.gt(253).select(b.u32(INF), bits)
}

/// Unbiased exponent of a magnitude given by its [`normalized`] bits.
fn exponent(bits: Value<'_>) -> Value<'_> {
    (bits >> 23) - 127
}

/// `x / y`, correctly rounded.
pub fn div<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ux, uy) = (x.bitcast(U32), y.bitcast(U32));
    let (ax, ay) = (ux & MAGNITUDE, uy & MAGNITUDE);
    // Special operands and results out of range are rare, so they are computed in branches.
    let irregular = (ax - MIN_NORMAL).max(ay - MIN_NORMAL).ge(INF - MIN_NORMAL);
    let (nx, ny) = (b.var(ax.bitcast(I32)), b.var(ay.bitcast(I32)));
    b.if_(irregular, || {
        nx.set(normalized(ax));
        ny.set(normalized(ay));
    });
    let (nx, ny) = (nx.get(), ny.get());
    let q = quotient(nx.bitcast(U32), ny.bitcast(U32));
    let e = (nx >> 23) - (ny >> 23) + q.exponent;
    let field = (e + 126).bitcast(U32);
    let sign = (ux ^ uy) & SIGN;
    let result = b.var(((field << 23) + q.significand) | sign);
    b.if_(irregular | field.gt(253), || {
        let (x_zero, y_zero) = (ax.eq(0), ay.eq(0));
        let (x_inf, y_inf) = (ax.ge(INF), ay.ge(INF));
        let bits = (x_zero | y_inf).select(b.u32(0), assemble(&q, e));
        let bits = (x_inf | y_zero).select(b.u32(INF), bits) | sign;
        let nan = (x_zero & y_zero) | (x_inf & y_inf) | ax.gt(INF) | ay.gt(INF);
        result.set(nan.select(b.u32(NAN), bits));
    });
    result.get().bitcast(F32)
}

/// `1 / x`, correctly rounded.
pub fn reciprocal(x: Value<'_>) -> Value<'_> {
    div(x.like(1.0), x)
}

/// A positive number, given by its [`normalized`] bits, as `m * 4^k`: m in [1, 4) as f32 and in
/// units of 2^-23 as u32, k as i32.
fn quarter_range<'b>(bits: Value<'b>) -> (Value<'b>, Value<'b>, Value<'b>) {
    let b = bits.builder();
    let e = exponent(bits);
    let odd = (e & 1).ne(0);
    let fraction = bits.bitcast(U32) & 0x7f_ffff;
    let m = (fraction | odd.select(b.u32(0x4000_0000), 0x3f80_0000)).bitcast(F32);
    let radicand = (fraction | 0x80_0000) << odd.select(b.u32(1), 0);
    (m, radicand, e >> 1)
}

/// `1 / sqrt(m)` for m in [1, 4), with a relative error of about 2^-22; also for any `m` that is
/// far from the ends of the range.
fn rsqrt_significand(m: Value<'_>) -> Value<'_> {
    // The first estimate is linear in the bits; each step squares the error, or better.
    let y = (0x5f37_59dfu32 - (m.bitcast(U32) >> 1)).bitcast(F32);
    let half = m * 0.5;
    let y = y * (1.5 - half * y * y);
    let y = y * (1.5 - half * y * y);
    y + y * (0.5 - half * y * y)
}

/// A square root and its rounding error.
pub(super) struct Root<'b> {
    /// Correctly rounded.
    pub root: Value<'b>,
    /// The exact root minus the rounded one, in ulp (f32).
    pub rest: Value<'b>,
}

/// Square root of a positive number given by its [`normalized`] bits.
pub(super) fn root(bits: Value<'_>) -> Root<'_> {
    let b = bits.builder();
    let (m, radicand, k) = quarter_range(bits);
    let y = rsqrt_significand(m);
    let guess = (m * y * 8_388_608.0).cast(U32);
    let unit = y * f64::from(2f32.powi(-24));
    // The estimate has an error of at most three units. One step reduces it to one unit, and the
    // remainder is exact again.
    let remainder = ((radicand << 23) - guess * guess).bitcast(I32);
    let s = guess + (remainder.cast(F32) * unit).round().cast(I32).bitcast(U32);
    let remainder = ((radicand << 23) - s * s).bitcast(I32);
    let signed = s.bitcast(I32);
    // sqrt is above s + 1/2 when the remainder is above s, since (s + 1/2)^2 = s^2 + s + 1/4.
    let step = remainder.gt(signed).select(b.i32(1), remainder.le(-signed).select(b.i32(-1), 0));
    let significand = signed + step;
    let left = remainder - step * (signed + significand);
    let bits = ((k + 126) << 23) + significand;
    Root { root: bits.bitcast(F32), rest: left.cast(F32) * unit }
}

/// Square root, correctly rounded.
pub fn sqrt(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let finite = root(normalized(magnitude)).root.bitcast(U32);
    let result = bits.ge(INF).select(b.u32(NAN), finite);
    let itself = magnitude.eq(0) | bits.eq(INF);
    itself.select(bits, result).bitcast(F32)
}

/// The square root of a zero, or of a normal number between 2^-100 and 2^100, within 1 ulp.
pub(in crate::math) fn near_sqrt(x: Value<'_>) -> Value<'_> {
    let y = rsqrt_significand(x);
    // Zero times the large estimate is zero.
    let root = x * y;
    root + (x - root * root) * (y * 0.5)
}

/// `1 / sqrt(x)`, within 0.52 ulp.
pub fn rsqrt(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let (m, _, k) = quarter_range(normalized(magnitude));
    let y = rsqrt_significand(m);
    // 1 - m y^2 with leading parts of few bits, so that their products and the difference are
    // exact.
    let (mh, yh) = (head(m, 8), head(y, 8));
    let (ml, yl) = (m - mh, y - yh);
    let square = yh * yh;
    let residual = ((1.0 - mh * square) - ml * square) - m * (yl * (y + yh));
    let y = y + y * (residual * 0.5);
    let finite = (y.bitcast(I32) - (k << 23)).bitcast(U32);
    let result = bits.ge(INF).select(b.u32(NAN), finite);
    let result = bits.eq(INF).select(b.u32(0), result);
    magnitude.eq(0).select(bits | INF, result).bitcast(F32)
}

/// Remainder of `x / y` with the sign of x, exact: long division of the significands, eight bits at
/// a time.
pub fn fmod<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let (ux, uy) = (x.bitcast(U32), y.bitcast(U32));
    let (ax, ay) = (ux & MAGNITUDE, uy & MAGNITUDE);
    let nan = ax.ge(INF) | ay.gt(INF) | ay.eq(0);
    let smaller = ax.lt(ay);
    let result = b.var(ux);
    b.if_(!(nan | smaller), || {
        let (nx, ny) = (normalized(ax), normalized(ay));
        let my = (ny.bitcast(U32) & 0x7f_ffff) | 0x80_0000;
        let rest = b.var(((nx.bitcast(U32) & 0x7f_ffff) | 0x80_0000) % my);
        let bits = b.var(((nx >> 23) - (ny >> 23)).bitcast(U32));
        b.while_(
            || bits.get().ne(0),
            || {
                let step = bits.get().min(8u32);
                rest.set((rest.get() << step) % my);
                bits.set(bits.get() - step);
            },
        );
        let scaled = rest.get().cast(F32).bitcast(I32) + (((ny >> 23) - 150) << 23);
        let magnitude = rest.get().eq(0).select(b.u32(0), denormalized(scaled));
        result.set(magnitude | (ux & SIGN));
    });
    select_bits(nan, NAN, result.get())
}
