//! Powers, in integer arithmetic: `x^y = 2^(y log2 x)` needs about 32 bits of the logarithm, more
//! than one f32 has and fewer than two. Polynomials are minimax (Remez) and evaluated in fixed
//! point: Qn has n fraction bits.

use super::subnormal::{denormalized, normalized};
use super::{INF, MAGNITUDE, NAN, SIGN};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// `log2(m) / (m - 1) - 1` in Q32 as an alternating polynomial in `(m - sqrt(1/2)) * 362/256`, for
/// m of sqrt(1/2) to sqrt(2), within 2^-33; without the signs.
const LOG2: [u32; 12] = [
    0xb504_f36e,
    0xcdef_6bc9,
    0x8565_1936,
    0x625d_aa1d,
    0x4db6_ad7d,
    0x3f90_6672,
    0x339b_abf5,
    0x26c9_dd14,
    0x1879_d313,
    0x0b86_9d1e,
    0x0377_99da,
    0x007d_2533,
];
/// `(2^f - 1) / f` in Q31 for f of 0 to 1, within 2^-31.
const EXP2: [u32; 7] = [0x58b9_0bfc, 0x1ebf_bdd2, 0x071a_c50b, 0x013b_19f1, 0x002b_e00b, 0x0004_c91b, 0x0000_ae0f];
/// Bits of sqrt(1/2).
const SQRT_HALF: u32 = 0x3f35_04f3;

/// Shifts of a number of two words, `a` the high one, for a shift of 0 to 31: the high word of the
/// result.
fn shift_left<'b>(a: Value<'b>, b: Value<'b>, n: Value<'b>) -> Value<'b> {
    (a << n) | ((b >> 1) >> (n ^ 31))
}

/// `x^y` with C's special cases, within 1.4 ulp.
pub fn pow<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    pow_scaled(x, y, x.builder().i32(0))
}

/// `x^y * 2^scale` for a scale (i32) of 0 to 64; no bits are lost where `x^y` alone would be
/// subnormal. Where `x^y` is 1 because a base or an exponent is, the scale must be 0.
pub(in crate::math) fn pow_scaled<'b>(x: Value<'b>, y: Value<'b>, scale: Value<'b>) -> Value<'b> {
    let b = x.builder();
    let zero = b.u32(0);
    let (ux, uy) = (x.bitcast(U32), y.bitcast(U32));
    let (ax, ay) = (ux & MAGNITUDE, uy & MAGNITUDE);

    // |x| = 2^k m with m of sqrt(1/2) to sqrt(2); log2 m = (m - 1) (1 + P).
    let nx = normalized(ax);
    let k = (nx - SQRT_HALF as i32) >> 23;
    let m = (nx - (k << 23)).bitcast(F32);
    let f = m - 1.0;
    let distance = (f.abs() * 16_777_216.0).cast(U32) << 8; // Q32
    let w = ((m - f64::from(f32::from_bits(SQRT_HALF))) * 16_777_216.0).cast(U32) * 362; // Q32
    let p = LOG2.iter().rev().skip(1).fold(b.u32(LOG2[11]), |sum, &c| b.u32(c) - w.mul_high(sum));
    let (hi, lo) = (distance + distance.mul_high(p), distance * p); // Q64

    // |log2 |x|| as an integer and a fraction: k and log2 m may have opposite signs.
    let k_negative = k.lt(0);
    let whole = k_negative.select(-k, k).bitcast(U32);
    let m_negative = f.lt(0.0);
    let opposite = whole.ne(0) & (k_negative ^ m_negative) & distance.ne(0);
    let whole = whole - opposite.select(b.u32(1), 0);
    let flip = opposite.select(b.u32(u32::MAX), 0);
    let (hi, lo) = (hi ^ flip, lo ^ flip);
    let log_negative = k_negative | (k.eq(0) & m_negative);

    // Times y, both as 32-bit significands: the product of 64 bits, at most 4, has 62 fraction
    // bits.
    let small = whole.eq(0);
    let (a, c) = (small.select(hi, whole), small.select(lo, hi));
    let zeros = b.u32(31) - a.max(1u32).highest_bit();
    let log_exponent = small.select(b.i32(-1), 31) - zeros.bitcast(I32);
    let log = shift_left(a, c, zeros);
    let y_exponent = (ay >> 23).bitcast(I32) - 127;
    let y_significand = (ay << 8) | 0x8000_0000u32;
    let (g, h) = (log.mul_high(y_significand), log * y_significand);
    // The logarithm was truncated to 32 bits; adding half a unit reduces the error.
    let half = y_significand >> 1;
    let h = h + half;
    let g = g + h.lt(half).select(b.u32(1), 0);
    let e = log_exponent + y_exponent;
    // Integer part and Q32 fraction of the exponent: the product shifted right by 30 - e.
    let right = (-e + 30).max(0).bitcast(U32);
    let near = right.lt(32);
    let n = near.select(g >> (right & 31), zero);
    let fraction = near.select((h >> (right & 31)) | ((g << 1) << (!right & 31)), g >> (right & 31));
    let fraction = right.lt(64).select(fraction, zero);
    let grows = (uy.lt(SIGN)) ^ log_negative;
    let borrow = grows | fraction.eq(0);
    let n = n.bitcast(I32);
    let n = grows.select(n, -n - borrow.select(b.i32(0), 1)) + scale;
    let fraction = grows.select(fraction, !fraction + 1);

    // 2^fraction, rounded to 24 bits; a carry moves into the exponent.
    let p = EXP2.iter().rev().skip(1).fold(b.u32(EXP2[6]), |sum, &c| fraction.mul_high(sum) + c);
    let s = fraction.mul_high(p).min(0x7fff_ffffu32); // Q31
    let significand = (s >> 8) + ((s >> 7) & 1);
    let bits = denormalized(((n.max(-152) + 127) << 23) + significand.bitcast(I32));
    let bits = n.gt(127).select(b.u32(INF), bits);

    // Zeros, infinities and exponents out of range give infinity or 0.
    let x_extreme = ax.eq(0) | ax.ge(INF);
    let extreme = x_extreme | ay.ge(INF) | e.gt(7);
    let bits = extreme.select(grows.select(b.u32(INF), 0), bits);
    let one = ax.eq(0x3f80_0000) | ay.eq(0);
    let bits = one.select(b.u32(0x3f80_0000), bits);

    // A negative base: the sign of odd powers, NaN for powers that are no integer.
    let below_point = y_exponent.gt(23).select(zero, y_significand << (y_exponent.max(0) & 31).bitcast(U32));
    let integer = y_exponent.ge(0) & (below_point & MAGNITUDE).eq(0);
    let odd = integer & below_point.ne(0);
    let negative = ux.ge(SIGN);
    let bits = (negative & odd).select(bits | SIGN, bits);
    let domain = negative & !integer & !x_extreme & ay.ne(0);
    let nan = domain | ax.gt(INF) | ay.gt(INF);
    let always_one = ay.eq(0) | ux.eq(0x3f80_0000);
    let bits = (nan & !always_one).select(b.u32(NAN), bits);
    bits.bitcast(F32)
}
