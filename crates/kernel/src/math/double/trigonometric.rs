//! Sine, cosine and tangent.

use super::parts::*;
use crate::builder::Value;
use crate::types::ScalarType;
use std::f64::consts::FRAC_2_PI;

/// pi / 2 in parts of at most 33 bits, so that products with integers below 2^20 are exact, and the
/// remainder.
const QUARTER_TURN: [f64; 4] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];
/// pi / 2 as a pair.
const FRAC_PI_2: (f64, f64) = (std::f64::consts::FRAC_PI_2, 6.123233995736766e-17);

/// `(sin(r) - r) / r^3` in `r^2` up to pi / 4; minimax, relative to r 2^-58.
const SIN: [f64; 6] = [
    -0.16666666666666632,
    0.008333333333322422,
    -0.0001984126982981389,
    2.755731369379128e-06,
    -2.5050758371498016e-08,
    1.5896808484378065e-10,
];
/// `(cos(r) - 1 + r^2 / 2) / r^4` in `r^2` up to pi / 4; minimax, 2^-64.
const COS: [f64; 6] = [
    0.0416666666666666,
    -0.001388888888887413,
    2.4801587289484878e-05,
    -2.7557314352962825e-07,
    2.0875723345847473e-09,
    -1.1359651110076647e-11,
];

/// Two zero words, then 2 / pi to 1184 bits.
const TWO_OVER_PI: [u32; 39] = [
    0,
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
    0x5603_3046,
];

/// `|x| = n pi / 2 + r` with `|r| <= pi / 4`: n modulo 4 or congruent to it (i32), and r with a
/// relative error of 2^-69.
fn reduce(x: Value<'_>) -> (Value<'_>, Pair<'_>) {
    let b = x.builder();
    let a = x.abs();
    let small = a.min(2f64.powi(20));
    let n = (small * FRAC_2_PI).round();
    let [p1, p2, p3, p4] = QUARTER_TURN;
    // Cody and Waite: the products are exact, and so is the first difference.
    let r2 = two_sum(small - n * p1, -(n * p2));
    let r3 = two_sum(r2.h, -(n * p3));
    let r = fast_two_sum(r3.h, (r2.l + r3.l) - n * p4);
    let (turns, h, l) = (b.var(n.cast(ScalarType::I32)), b.var(r.h), b.var(r.l));
    b.if_(magnitude(x).gt(2f64.powi(20).to_bits()), || {
        let (n, r) = reduce_large(magnitude(x));
        turns.set(n);
        h.set(r.h);
        l.set(r.l);
    });
    (turns.get(), Pair::new(h.get(), l.get()))
}

/// [`reduce`] for the bits of a number from 2^20: multiplies the mantissa by the 192 bits of 2 / pi
/// that determine the quarter turn and its fraction. After M. Payne and R. Hanek, "Radian reduction
/// for trigonometric functions" (1983).
fn reduce_large(magnitude: Value<'_>) -> (Value<'_>, Pair<'_>) {
    let b = magnitude.builder();
    // With e the exponent, x = mantissa * 2^(e - 52). Bits of 2 / pi above place e - 54 give
    // multiples of four quarter turns; the two zero words move that place to e + 10.
    let bit = (magnitude >> 52).cast(ScalarType::U32) - (1023 - 10);
    let word = bit >> 5;
    let mut window: Vec<Value<'_>> = TWO_OVER_PI.iter().map(|&w| b.u32(w)).collect();
    for step in [32usize, 16, 8, 4, 2, 1] {
        let skip = (word & step as u32).ne(0);
        let moved = (0..window.len().min(6 + step)).map(|i| match window.get(i + step) {
            Some(&w) => skip.select(w, window[i]),
            None => window[i],
        });
        window = moved.collect();
    }
    let shift = bit & 31;
    // A shift by 32 is undefined.
    let window: Vec<Value<'_>> =
        (0..6).map(|i| ((window[i] << shift) | ((window[i + 1] >> 1) >> (31 - shift))).cast(ScalarType::U64)).collect();

    // The product modulo 2^192, lowest word first.
    let mantissa = (magnitude & MANTISSA) | (MANTISSA + 1);
    let (low, high) = (low_word(mantissa), mantissa >> 32);
    let mut product = Vec::new();
    let mut carry = b.int(ScalarType::U64, 0);
    for i in 0..6 {
        let first = window[5 - i] * low + carry;
        let second = match i {
            0 => low_word(first),
            _ => low_word(first) + window[6 - i] * high,
        };
        product.push(low_word(second));
        carry = (first >> 32) + (second >> 32);
    }
    // Two bits of whole quarter turns, then the fraction, as a signed number below one half.
    let words: Vec<Value<'_>> =
        (0..5).map(|i| low_word((product[5 - i] << 2) | (product[4 - i] >> 30)).cast(ScalarType::U32)).collect();
    let up = words[0] >> 31;
    let n = ((product[5] >> 30).cast(ScalarType::U32) + up).cast(ScalarType::I32);
    let flip = -up;
    let parts: Vec<Value<'_>> =
        (0..5).map(|i| (words[i] ^ flip).cast(ScalarType::F64) * 2f64.powi(-32 * (i as i32 + 1))).collect();
    let first = fast_two_sum(parts[0], parts[1]);
    let second = fast_two_sum(first.l, parts[2]);
    let sum = fast_two_sum(first.h, second.h);
    let sum = fast_two_sum(sum.h, sum.l + (second.l + (parts[3] + parts[4])));
    let r = sum.times(Pair::constant(b, FRAC_PI_2));
    let negative = up.ne(0);
    (n, Pair::new(negative.select(-r.h, r.h), negative.select(-r.l, r.l)))
}

/// The low 32 bits of 64.
fn low_word(x: Value<'_>) -> Value<'_> {
    x.cast(ScalarType::U32).cast(ScalarType::U64)
}

/// Sine and cosine of `|r| <= pi / 4`.
fn both(r: Pair<'_>) -> (Pair<'_>, Pair<'_>) {
    let z = r.h * r.h;
    let half = z * 0.5;
    let sin = (z * r.h) * polynomial(z, &SIN) + (r.l - r.l * half);
    let one = fast_two_sum(r.h.like(1.0), -half);
    let cos = one.l + ((z * z) * polynomial(z, &COS) - r.h * r.l);
    (Pair::new(r.h, sin), Pair::new(one.h, cos))
}

/// NaN for infinities and NaN.
fn finite<'b>(x: Value<'b>, result: Value<'b>) -> Value<'b> {
    magnitude(x).ge(INFINITY).select(special(x.builder(), NAN), result)
}

/// `even` or `odd` by the parity of `n`, negated if bit 1 of `n` is set.
fn quadrant<'b>(n: Value<'b>, even: Pair<'b>, odd: Pair<'b>) -> Value<'b> {
    let value = Pair::select((n & 1).eq(0), even, odd).value();
    flip(value, (n & 2).cast(ScalarType::U64) << 62)
}

/// See [`crate::math::sin`].
pub fn sin<'b>(x: Value<'b>) -> Value<'b> {
    let (n, r) = reduce(x);
    let (sin, cos) = both(r);
    let y = flip(quadrant(n, sin, cos), sign(x));
    finite(x, is_below(x, -28).select(x, y))
}

/// See [`crate::math::cos`].
pub fn cos<'b>(x: Value<'b>) -> Value<'b> {
    let (n, r) = reduce(x);
    let (sin, cos) = both(r);
    finite(x, quadrant(n + 1, sin, cos))
}

/// See [`crate::math::tan`].
pub fn tan<'b>(x: Value<'b>) -> Value<'b> {
    let (n, r) = reduce(x);
    let (sin, cos) = both(r);
    let (sin, cos) = (sin.normalized(), cos.normalized());
    let odd = (n & 1).ne(0);
    let y = quotient(Pair::select(odd, cos, sin), Pair::select(odd, sin, cos)).value();
    let y = flip(y, sign(x) ^ odd.select(x.builder().int(ScalarType::U64, SIGN), 0));
    finite(x, is_below(x, -28).select(x, y))
}
