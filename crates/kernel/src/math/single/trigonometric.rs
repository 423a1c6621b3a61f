//! Sine, cosine and tangent.
//!
//! The argument is reduced by a multiple of pi/2: up to 8192 by Cody and Waite's method with pi/2
//! in five parts, above by Payne and Hanek's method with integers, in a branch. The reduced
//! argument, in twice the precision, is the argument of minimax (Remez) polynomials on [-pi/4,
//! pi/4], arranged as in fdlibm's k_sin and k_cos.

use super::exact::{Sum, fast_two_sum, polynomial, two_product, two_sum};
use super::{INF, MAGNITUDE, NAN, SIGN, ratio, select_bits};
use crate::builder::Value;
use crate::types::ScalarType::{F32, I32, U32};

/// pi/2 in parts of 11 bits, whose products with numbers below 2^13 are exact, and the remainder.
const HALF_PI_PARTS: [f64; 5] = [
    1.570_312_5,
    0.000_483_751_296_997_070_3,
    7.549_533_620_476_723e-8,
    2.563_282_919_254_561_4e-12,
    6.123_234_262_925_839e-17,
];
/// pi/2 rounded to f32, and the remainder.
pub(super) const HALF_PI: [f64; 2] = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8];
/// The first 224 bits of 2/pi, high words first, with a zero word before them.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// `(sin(r) - r) / r^3` as a polynomial in r^2, within 2^-28 of `sin(r) / r`.
const SIN: [f64; 3] = [-0.166_666_552, 0.008_332_191_04, -0.000_195_185_887];
/// `(cos(r) - 1 + r^2/2) / r^4` as a polynomial in r^2, within 2^-33 of cos(r).
const COS: [f64; 3] = [0.041_666_645_6, -0.001_388_730_13, 2.443_067_39e-5];

/// An angle reduced by a multiple of pi/2.
struct Reduced<'b> {
    /// The multiple modulo 4, as u32.
    quadrant: Value<'b>,
    /// The reduced angle, from -pi/4 to pi/4 or slightly beyond.
    r: Sum<'b>,
}

fn reduce(x: Value<'_>) -> Reduced<'_> {
    let b = x.builder();
    let magnitude = x.bitcast(U32) & MAGNITUDE;
    let large = magnitude.ge(8192f32.to_bits()) & magnitude.lt(INF);
    let Reduced { quadrant, r } = reduce_near(large.select(x.like(0.0), x));
    let quadrant = b.var(quadrant);
    let (hi, lo) = (b.var(r.hi), b.var(r.lo));
    b.if_(large, || {
        let far = reduce_large(magnitude);
        let sign = x.bitcast(U32) & SIGN;
        let negative = sign.ne(0);
        quadrant.set(negative.select(-far.quadrant.bitcast(I32), far.quadrant.bitcast(I32)).bitcast(U32) & 3);
        hi.set((far.r.hi.bitcast(U32) ^ sign).bitcast(F32));
        lo.set((far.r.lo.bitcast(U32) ^ sign).bitcast(F32));
    });
    Reduced { quadrant: quadrant.get(), r: Sum { hi: hi.get(), lo: lo.get() } }
}

/// Reduces a number below 2^13.
fn reduce_near(x: Value<'_>) -> Reduced<'_> {
    let k = (x * std::f64::consts::FRAC_2_PI).round();
    // Two exact differences, two differences with their rounding errors, and the last one.
    let first = (x - k * HALF_PI_PARTS[0]) - k * HALF_PI_PARTS[1];
    let second = two_sum(first, -(k * HALF_PI_PARTS[2]));
    let third = two_sum(second.hi, -(k * HALF_PI_PARTS[3]));
    let r = two_sum(third.hi, (second.lo + third.lo) - k * HALF_PI_PARTS[4]);
    Reduced { quadrant: k.cast(I32).bitcast(U32) & 3, r }
}

/// Reduces a number of at least 2^13, given by its bits.
fn reduce_large(bits: Value<'_>) -> Reduced<'_> {
    let b = bits.builder();
    let m = (bits & 0x7f_ffff) | 0x80_0000;
    // x = m 2^e with e of -10 to 104. The bits of 2/pi of weight 2^(2 - e) and more give whole
    // turns; the next 96 bits determine the result. `skip` bits precede them, counted from the zero
    // word's first bit.
    let e = (bits >> 23) - 150;
    let skip = e + 30;
    let (word, shift) = (skip >> 5, skip & 31);
    // Words word .. word + 3 of the table.
    let table = |i: usize| {
        let at = |w: usize| b.u32(TWO_OVER_PI[w + i]);
        word.eq(0).select(at(0), word.eq(1).select(at(1), word.eq(2).select(at(2), word.eq(3).select(at(3), at(4)))))
    };
    let w: Vec<_> = (0..4).map(table).collect();
    let window = |i: usize| {
        let joined = (w[i] << shift) | (w[i + 1] >> (b.u32(32) - shift));
        shift.eq(0).select(w[i], joined)
    };
    let (high, middle, low) = (window(0), window(1), window(2));
    // The product modulo 2^96, its top two bits are the quadrant; only the high half of the lowest
    // word is needed.
    let part = low.mul_high(m);
    let sum = middle * m + part;
    let carry = sum.lt(part).select(b.u32(1), 0);
    let top = high * m + middle.mul_high(m) + carry;
    // To the nearest quadrant: the fraction becomes signed.
    let quadrant = (top >> 30) + ((top >> 29) & 1);
    let above = ((top >> 29) & 1).ne(0);
    let (t, s) = ((top << 2) | (sum >> 30), sum << 2);
    // Magnitude of the signed fraction, in units of 2^-64.
    let (t, s) = (above.select(!t, t), above.select(!s, s));
    // Its leading 24 bits and the next 24 as floats.
    let wide = t.eq(0);
    let (t, s) = (wide.select(s, t), wide.select(b.u32(0), s));
    let zeros = b.u32(31) - t.max(1u32).highest_bit();
    let t = (t << zeros) | zeros.eq(0).select(b.u32(0), s >> (b.u32(32) - zeros.max(1u32)));
    let s = s << zeros;
    let f_hi = (t >> 8).cast(F32);
    let f_lo = (((t & 0xff) << 16) | (s >> 16)).cast(F32) * f64::from(2f32.powi(-24));
    // Times 2^-24 for the integer, 2^-zeros, and 2^-32 where the first word was empty.
    let exponent = -(zeros + wide.select(b.u32(32), 0)).bitcast(I32) - 24 + 127;
    let scale = (exponent << 23).bitcast(F32);
    let f = fast_two_sum(f_hi, f_lo);
    // f * pi/2, with pi/2 to twice the precision.
    let p = two_product(f.hi, b.float(F32, HALF_PI[0]));
    let p = fast_two_sum(p.hi, p.lo + f.hi * HALF_PI[1] + f.lo * HALF_PI[0]);
    let sign = above.select(b.u32(SIGN), 0);
    Reduced {
        quadrant,
        r: Sum {
            hi: ((p.hi * scale).bitcast(U32) ^ sign).bitcast(F32),
            lo: ((p.lo * scale).bitcast(U32) ^ sign).bitcast(F32),
        },
    }
}

/// sin(r) and cos(r), each a leading part and a correction.
fn sin_cos(r: Sum<'_>) -> (Sum<'_>, Sum<'_>) {
    let z = r.hi * r.hi;
    let sin = Sum { hi: r.hi, lo: (z * r.hi) * polynomial(z, &SIN) + r.lo };
    let half = z * 0.5;
    let hi = 1.0 - half;
    let lo = ((1.0 - hi) - half) + (z * z * polynomial(z, &COS) - r.hi * r.lo);
    (sin, Sum { hi, lo })
}

/// Bits of the sine of x + shift * pi/2.
fn wave(x: Value<'_>, shift: u32) -> Value<'_> {
    let Reduced { quadrant, r } = reduce(x);
    let quadrant = quadrant + shift;
    let (sin, cos) = sin_cos(r);
    let y = (quadrant & 1).ne(0).select(cos.hi + cos.lo, sin.hi + sin.lo);
    let flip = (quadrant & 2) << 30;
    y.bitcast(U32) ^ flip
}

/// Sine, within 0.95 ulp, for every f32.
pub fn sin(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    // x - x^3 / 6 rounds to x.
    let result = magnitude.lt(0x3980_0000).select(bits, wave(x, 0));
    select_bits(magnitude.ge(INF), NAN, result)
}

/// Cosine, within 0.95 ulp, for every f32.
pub fn cos(x: Value<'_>) -> Value<'_> {
    let magnitude = x.bitcast(U32) & MAGNITUDE;
    select_bits(magnitude.ge(INF), NAN, wave(x, 1))
}

/// Sine and cosine of 2 pi times `x`, for an `x` of 0 to 1, within 1.8 ulp.
pub(in crate::math) fn turn_sin_cos<'b>(x: Value<'b>) -> [Value<'b>; 2] {
    // Exact: the number of quarter turns, and the fraction of the last one.
    let quarters = x * 4.0;
    let k = quarters.round();
    let r = (quarters - k) * std::f64::consts::FRAC_PI_2;
    let z = r * r;
    let sin = r + (z * r) * polynomial(z, &SIN);
    let cos = (1.0 - z * 0.5) + z * z * polynomial(z, &COS);
    let quadrant = k.cast(I32).bitcast(U32);
    let odd = (quadrant & 1).ne(0);
    let wave = |y: Value<'b>, quadrant: Value<'b>| (y.bitcast(U32) ^ ((quadrant & 2) << 30)).bitcast(F32);
    [wave(odd.select(cos, sin), quadrant), wave(odd.select(sin, cos), quadrant + 1)]
}

/// Tangent, within 1.45 ulp, for every f32.
pub fn tan(x: Value<'_>) -> Value<'_> {
    let b = x.builder();
    let bits = x.bitcast(U32);
    let magnitude = bits & MAGNITUDE;
    let Reduced { quadrant, r } = reduce(x);
    let (sin, cos) = sin_cos(r);
    let odd = (quadrant & 1).ne(0);
    let n = Sum { hi: odd.select(cos.hi, sin.hi), lo: odd.select(cos.lo, sin.lo) };
    let d = Sum { hi: odd.select(sin.hi, cos.hi), lo: odd.select(sin.lo, cos.lo) };
    // The divisor's sign and exponent are applied to the quotient.
    let d = fast_two_sum(d.hi, d.lo);
    let d_bits = d.hi.bitcast(U32);
    let down = ((b.u32(254) - ((d_bits & MAGNITUDE) >> 23)) << 23 | (d_bits & SIGN)).bitcast(F32);
    let q = ratio(n, Sum { hi: d.hi * down, lo: d.lo * down });
    // tan(r + pi/2) = -cos(r) / sin(r)
    let up = (down.bitcast(U32) ^ odd.select(b.u32(SIGN), 0)).bitcast(F32);
    let result = magnitude.lt(0x3980_0000).select(bits, ((q.hi + q.lo) * up).bitcast(U32));
    select_bits(magnitude.ge(INF), NAN, result)
}
