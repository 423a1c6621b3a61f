//! `f32`.

use super::halves::{InHalf, Mixed};
use super::lane::Own;

/// The lesser, of a number and no number the number, of zeros the negative one.
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    let ordered = if a < b { a } else { b };
    let equal = if a == b { f32::from_bits(a.to_bits() | b.to_bits()) } else { ordered };
    let known = if b.is_nan() { a } else { equal };
    if a.is_nan() { b } else { known }
}

/// The greater, of a number and no number the number, of zeros the positive one.
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    let ordered = if a > b { a } else { b };
    let equal = if a == b { f32::from_bits(a.to_bits() & b.to_bits()) } else { ordered };
    let known = if b.is_nan() { a } else { equal };
    if a.is_nan() { b } else { known }
}

/// The lesser, of which one that is no number is the result.
#[inline(always)]
pub fn minimum(a: f32, b: f32) -> f32 {
    let least = min(a, b);
    if a.is_nan() || b.is_nan() { f32::NAN } else { least }
}

/// The greater, of which one that is no number is the result.
#[inline(always)]
pub fn maximum(a: f32, b: f32) -> f32 {
    let most = max(a, b);
    if a.is_nan() || b.is_nan() { f32::NAN } else { most }
}

/// The one in the middle.
#[inline(always)]
pub fn middle(a: f32, b: f32, c: f32) -> f32 {
    let any_nan = a.is_nan() || b.is_nan() || c.is_nan();
    if any_nan { min(min(a, b), c) } else { max(min(a, b), min(max(a, b), c)) }
}

/// A product in which zero is stronger than anything.
#[inline(always)]
fn legacy(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// The same, added to a sum.
#[inline(always)]
fn fma_legacy(a: f32, b: f32, c: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 + c } else { a.mul_add(b, c) }
}

/// A value times a power of two.
#[inline(always)]
pub fn scale(value: f32, power: i32) -> f32 {
    // Exact in f64, whose exponents are three bits wider.
    let power = f64::from_bits(((power.clamp(-400, 400) + 1023) as u64) << 52);
    (f64::from(value) * power) as f32
}

/// Exponent and mantissa of a value, the mantissa from 0.5 to 1.
#[inline(always)]
pub fn parts(value: f32) -> (i32, f32) {
    // As f64 no f32 is subnormal.
    let bits = f64::from(value).to_bits();
    let special = value == 0.0 || !value.is_finite();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    let mantissa = f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52) as f32;
    if special { (0, value) } else { (exponent, mantissa) }
}

/// The last step of a division: signs, zeros and infinities of a quotient.
#[inline(always)]
fn fix_quotient(quotient: f32, denominator: f32, numerator: f32) -> f32 {
    let sign = (denominator.to_bits() ^ numerator.to_bits()) & 0x8000_0000;
    if numerator.is_nan() {
        f32::from_bits(numerator.to_bits() | 0x0040_0000)
    } else if denominator.is_nan() {
        f32::from_bits(denominator.to_bits() | 0x0040_0000)
    } else if numerator == 0.0 && denominator == 0.0 || numerator.is_infinite() && denominator.is_infinite() {
        f32::from_bits(0xffc0_0000)
    } else if denominator == 0.0 || numerator.is_infinite() {
        f32::from_bits(0x7f80_0000 | sign)
    } else if denominator.is_infinite() || numerator == 0.0 {
        f32::from_bits(sign)
    } else {
        f32::from_bits(quotient.to_bits() & 0x7fff_ffff | sign)
    }
}

/// The face of a cube that a direction points to, the coordinates on it, and twice the coordinate
/// across it.
#[inline(always)]
fn cube(x: f32, y: f32, z: f32) -> [f32; 4] {
    let sign = |value: f32| if value < 0.0 { -1.0 } else { 1.0 };
    let behind = |value: f32| if value < 0.0 { 1.0 } else { 0.0 };
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        [4.0 + behind(z), x * sign(z), -y, 2.0 * z]
    } else if y.abs() >= x.abs() {
        [2.0 + behind(y), x, z * sign(y), 2.0 * y]
    } else {
        [behind(x), -z * sign(x), -y, 2.0 * x]
    }
}

/// A product of lighting: the least number where it is to have no effect.
#[inline(always)]
fn lit(a: f32, b: f32, c: f32) -> f32 {
    if b == f32::MIN || b == f32::NEG_INFINITY || b.is_nan() || c <= 0.0 || c.is_nan() {
        f32::MIN
    } else {
        legacy(a, b)
    }
}

super::operations! {
    "v_cubeid_f32"(a: f32, b: f32, c: f32) -> f32 { cube(a, b, c)[0] }
    "v_cubesc_f32"(a: f32, b: f32, c: f32) -> f32 { cube(a, b, c)[1] }
    "v_cubetc_f32"(a: f32, b: f32, c: f32) -> f32 { cube(a, b, c)[2] }
    "v_cubema_f32"(a: f32, b: f32, c: f32) -> f32 { cube(a, b, c)[3] }
    "v_mullit_f32"(a: f32, b: f32, c: f32) -> f32 { lit(a, b, c) }
    "v_mad_legacy_f32"(a: f32, b: f32, c: f32) -> f32 { legacy(a, b) + c }
    "v_mac_legacy_f32"(a: f32, b: f32, c: Own<f32>) -> f32 { legacy(a, b) + c.0 }
    "v_add_f32"(a: f32, b: f32) -> f32 { a + b }
    "v_sub_f32"(a: f32, b: f32) -> f32 { a - b }
    "v_subrev_f32"(a: f32, b: f32) -> f32 { b - a }
    "v_mul_f32"(a: f32, b: f32) -> f32 { a * b }
    "v_mul_dx9_zero_f32" | "v_mul_legacy_f32"(a: f32, b: f32) -> f32 { legacy(a, b) }
    "v_min_f32" | "v_min_num_f32"(a: f32, b: f32) -> f32 { min(a, b) }
    "v_max_f32" | "v_max_num_f32"(a: f32, b: f32) -> f32 { max(a, b) }
    "v_fma_f32" | "v_fmaak_f32" | "v_fmamk_f32"(a: f32, b: f32, c: f32) -> f32 { a.mul_add(b, c) }
    "v_fmac_f32"(a: f32, b: f32, c: Own<f32>) -> f32 { a.mul_add(b, c.0) }
    "v_fma_dx9_zero_f32" | "v_fma_legacy_f32"(a: f32, b: f32, c: f32) -> f32 { fma_legacy(a, b, c) }
    "v_fmac_dx9_zero_f32" | "v_fmac_legacy_f32"(a: f32, b: f32, c: Own<f32>) -> f32 { fma_legacy(a, b, c.0) }
    "v_mad_f32" | "v_madak_f32" | "v_madmk_f32"(a: f32, b: f32, c: f32) -> f32 { a * b + c }
    "v_mac_f32"(a: f32, b: f32, c: Own<f32>) -> f32 { a * b + c.0 }
    "v_min3_f32" | "v_min3_num_f32"(a: f32, b: f32, c: f32) -> f32 { min(min(a, b), c) }
    "v_max3_f32" | "v_max3_num_f32"(a: f32, b: f32, c: f32) -> f32 { max(max(a, b), c) }
    "v_med3_f32" | "v_med3_num_f32"(a: f32, b: f32, c: f32) -> f32 { middle(a, b, c) }
    "v_maxmin_f32" | "v_maxmin_num_f32"(a: f32, b: f32, c: f32) -> f32 { min(max(a, b), c) }
    "v_minmax_f32" | "v_minmax_num_f32"(a: f32, b: f32, c: f32) -> f32 { max(min(a, b), c) }
    "v_minimum_f32"(a: f32, b: f32) -> f32 { minimum(a, b) }
    "v_maximum_f32"(a: f32, b: f32) -> f32 { maximum(a, b) }
    "v_minimum3_f32"(a: f32, b: f32, c: f32) -> f32 { minimum(minimum(a, b), c) }
    "v_maximum3_f32"(a: f32, b: f32, c: f32) -> f32 { maximum(maximum(a, b), c) }
    "v_maximumminimum_f32"(a: f32, b: f32, c: f32) -> f32 { minimum(maximum(a, b), c) }
    "v_minimummaximum_f32"(a: f32, b: f32, c: f32) -> f32 { maximum(minimum(a, b), c) }
    "v_rndne_f32"(a: f32) -> f32 { a.round_ties_even() }
    "v_floor_f32"(a: f32) -> f32 { a.floor() }
    "v_ceil_f32"(a: f32) -> f32 { a.ceil() }
    "v_trunc_f32"(a: f32) -> f32 { a.trunc() }
    "v_fract_f32"(a: f32) -> f32 {
        // Below one, also where the difference rounds up to it.
        let part = a - a.floor();
        if part >= 1.0 { 0.999_999_94 } else { part }
    }
    "v_ldexp_f32"(a: f32, b: i32) -> f32 { scale(a, b) }
    "v_frexp_exp_i32_f32"(a: f32) -> i32 { parts(a).0 }
    "v_frexp_mant_f32"(a: f32) -> f32 { parts(a).1 }
    "v_div_fixup_f32"(a: f32, b: f32, c: f32) -> f32 { fix_quotient(a, b, c) }
    "v_fma_mix_f32"(a: Mixed, b: Mixed, c: Mixed) -> f32 { a.0.mul_add(b.0, c.0) }
    "v_fma_mixlo_f16"(a: Mixed, b: Mixed, c: Mixed) -> InHalf<false> { InHalf(a.0.mul_add(b.0, c.0)) }
    "v_fma_mixhi_f16"(a: Mixed, b: Mixed, c: Mixed) -> InHalf<true> { InHalf(a.0.mul_add(b.0, c.0)) }
}
