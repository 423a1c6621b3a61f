//! `f64`.

use super::lane::Own;

/// As of `f32`.
#[inline(always)]
pub fn min(a: f64, b: f64) -> f64 {
    let ordered = if a < b { a } else { b };
    let equal = if a == b { f64::from_bits(a.to_bits() | b.to_bits()) } else { ordered };
    let known = if b.is_nan() { a } else { equal };
    if a.is_nan() { b } else { known }
}

/// As of `f32`.
#[inline(always)]
pub fn max(a: f64, b: f64) -> f64 {
    let ordered = if a > b { a } else { b };
    let equal = if a == b { f64::from_bits(a.to_bits() & b.to_bits()) } else { ordered };
    let known = if b.is_nan() { a } else { equal };
    if a.is_nan() { b } else { known }
}

/// A value times a power of two, rounded once.
fn scale(value: f64, power: i32) -> f64 {
    let (exponent, mantissa) = parts(value);
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power_of = |power: i32| f64::from_bits(((power + 1023) as u64) << 52);
    // From 0.5 to 1 times powers that are in range; the last product alone rounds.
    let exponent = (exponent + power.clamp(-5000, 5000)).clamp(-1100, 1100);
    if exponent > -1000 {
        mantissa * power_of(exponent / 2) * power_of(exponent - exponent / 2)
    } else {
        mantissa * power_of(-900) * power_of(exponent + 900)
    }
}

/// Exponent and mantissa, the mantissa from 0.5 to 1.
fn parts(value: f64) -> (i32, f64) {
    if value == 0.0 || !value.is_finite() {
        return (0, value);
    }
    let (value, less) = if value.is_subnormal() { (value * 2f64.powi(64), 64) } else { (value, 0) };
    let bits = value.to_bits();
    ((bits >> 52 & 0x7ff) as i32 - 1022 - less, f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52))
}

/// The last step of a division, as of `f32`.
fn fix_quotient(quotient: f64, denominator: f64, numerator: f64) -> f64 {
    let sign = (denominator.to_bits() ^ numerator.to_bits()) & 1 << 63;
    if numerator.is_nan() {
        f64::from_bits(numerator.to_bits() | 1 << 51)
    } else if denominator.is_nan() {
        f64::from_bits(denominator.to_bits() | 1 << 51)
    } else if numerator == 0.0 && denominator == 0.0 || numerator.is_infinite() && denominator.is_infinite() {
        f64::from_bits(0xfff8 << 48)
    } else if denominator == 0.0 || numerator.is_infinite() {
        f64::from_bits(0x7ff0 << 48 | sign)
    } else if denominator.is_infinite() || numerator == 0.0 {
        f64::from_bits(sign)
    } else {
        f64::from_bits(quotient.to_bits() & !(1 << 63) | sign)
    }
}

super::operations! {
    "v_add_f64"(a: f64, b: f64) -> f64 { a + b }
    "v_mul_f64"(a: f64, b: f64) -> f64 { a * b }
    "v_fma_f64"(a: f64, b: f64, c: f64) -> f64 { a.mul_add(b, c) }
    "v_fmac_f64"(a: f64, b: f64, c: Own<f64>) -> f64 { a.mul_add(b, c.0) }
    "v_min_f64" | "v_min_num_f64"(a: f64, b: f64) -> f64 { min(a, b) }
    "v_max_f64" | "v_max_num_f64"(a: f64, b: f64) -> f64 { max(a, b) }
    "v_minimum_f64"(a: f64, b: f64) -> f64 { if a.is_nan() || b.is_nan() { f64::NAN } else { min(a, b) } }
    "v_maximum_f64"(a: f64, b: f64) -> f64 { if a.is_nan() || b.is_nan() { f64::NAN } else { max(a, b) } }
    "v_trunc_f64"(a: f64) -> f64 { a.trunc() }
    "v_floor_f64"(a: f64) -> f64 { a.floor() }
    "v_ceil_f64"(a: f64) -> f64 { a.ceil() }
    "v_rndne_f64"(a: f64) -> f64 { a.round_ties_even() }
    "v_fract_f64"(a: f64) -> f64 {
        let part = a - a.floor();
        if part >= 1.0 { 1.0 - f64::EPSILON / 2.0 } else { part }
    }
    "v_rcp_f64"(a: f64) -> f64 { 1.0 / a }
    "v_rsq_f64"(a: f64) -> f64 { 1.0 / a.sqrt() }
    "v_sqrt_f64"(a: f64) -> f64 { a.sqrt() }
    "v_ldexp_f64"(a: f64, b: i32) -> f64 { scale(a, b) }
    "v_frexp_exp_i32_f64"(a: f64) -> i32 { parts(a).0 }
    "v_frexp_mant_f64"(a: f64) -> f64 { parts(a).1 }
    "v_div_fixup_f64"(a: f64, b: f64, c: f64) -> f64 { fix_quotient(a, b, c) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_exact() {
        for value in [1.0, -3.25, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.7e-310, 0.0, f64::INFINITY] {
            let (exponent, mantissa) = parts(value);
            assert_eq!(scale(mantissa, exponent), value, "{value:e}");
            assert_eq!(scale(value, 0), value);
        }
        assert_eq!((scale(3.0, -1075), scale(1.0, -1075), scale(1.0, 1024)), (1e-323, 0.0, f64::INFINITY));
        assert_eq!(scale(1.0, -1074), 5e-324);
    }
}
