//! `f16`.

use super::halves::{Half, Wide};
use super::lane::Own;
use super::single::{max, maximum, middle, min, minimum, parts, scale};

/// The last step of a division, as of `f32`.
#[inline(always)]
fn fix_quotient(quotient: f32, denominator: f32, numerator: f32) -> f32 {
    let sign = (denominator.to_bits() ^ numerator.to_bits()) & 0x8000_0000;
    if numerator.is_nan() || denominator.is_nan() {
        f32::NAN
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

super::operations! {
    "v_add_f16"(a: Half, b: Half) -> Half { Half(a.0 + b.0) }
    "v_sub_f16"(a: Half, b: Half) -> Half { Half(a.0 - b.0) }
    "v_subrev_f16"(a: Half, b: Half) -> Half { Half(b.0 - a.0) }
    "v_mul_f16"(a: Half, b: Half) -> Half { Half(a.0 * b.0) }
    "v_min_f16" | "v_min_num_f16"(a: Half, b: Half) -> Half { Half(min(a.0, b.0)) }
    "v_max_f16" | "v_max_num_f16"(a: Half, b: Half) -> Half { Half(max(a.0, b.0)) }
    // The product is exact, and the sum keeps all that a half can tell.
    "v_fma_f16" | "v_fmaak_f16" | "v_fmamk_f16"(a: Wide, b: Wide, c: Wide) -> Wide { Wide(a.0 * b.0 + c.0) }
    "v_fmac_f16"(a: Wide, b: Wide, c: Own<Wide>) -> Wide { Wide(a.0 * b.0 + c.0.0) }
    "v_min3_f16" | "v_min3_num_f16"(a: Half, b: Half, c: Half) -> Half { Half(min(min(a.0, b.0), c.0)) }
    "v_max3_f16" | "v_max3_num_f16"(a: Half, b: Half, c: Half) -> Half { Half(max(max(a.0, b.0), c.0)) }
    "v_med3_f16" | "v_med3_num_f16"(a: Half, b: Half, c: Half) -> Half { Half(middle(a.0, b.0, c.0)) }
    "v_maxmin_f16" | "v_maxmin_num_f16"(a: Half, b: Half, c: Half) -> Half { Half(min(max(a.0, b.0), c.0)) }
    "v_minmax_f16" | "v_minmax_num_f16"(a: Half, b: Half, c: Half) -> Half { Half(max(min(a.0, b.0), c.0)) }
    "v_minimum_f16"(a: Half, b: Half) -> Half { Half(minimum(a.0, b.0)) }
    "v_maximum_f16"(a: Half, b: Half) -> Half { Half(maximum(a.0, b.0)) }
    "v_minimum3_f16"(a: Half, b: Half, c: Half) -> Half { Half(minimum(minimum(a.0, b.0), c.0)) }
    "v_maximum3_f16"(a: Half, b: Half, c: Half) -> Half { Half(maximum(maximum(a.0, b.0), c.0)) }
    "v_maximumminimum_f16"(a: Half, b: Half, c: Half) -> Half { Half(minimum(maximum(a.0, b.0), c.0)) }
    "v_minimummaximum_f16"(a: Half, b: Half, c: Half) -> Half { Half(maximum(minimum(a.0, b.0), c.0)) }
    "v_rndne_f16"(a: Half) -> Half { Half(a.0.round_ties_even()) }
    "v_floor_f16"(a: Half) -> Half { Half(a.0.floor()) }
    "v_ceil_f16"(a: Half) -> Half { Half(a.0.ceil()) }
    "v_trunc_f16"(a: Half) -> Half { Half(a.0.trunc()) }
    "v_fract_f16"(a: Half) -> Half {
        let part = a.0 - a.0.floor();
        Half(if part > 0.999_511_7 { 0.999_511_7 } else { part })
    }
    "v_rcp_f16"(a: Half) -> Half { Half(1.0 / a.0) }
    "v_sqrt_f16"(a: Half) -> Half { Half(a.0.sqrt()) }
    "v_rsq_f16"(a: Half) -> Wide { Wide(1.0 / f64::from(a.0).sqrt()) }
    "v_exp_f16"(a: Half) -> Wide { Wide(f64::from(a.0).exp2()) }
    "v_log_f16"(a: Half) -> Wide { Wide(f64::from(a.0).log2()) }
    "v_sin_f16"(a: Half) -> Wide { Wide((f64::from(a.0) * std::f64::consts::TAU).sin()) }
    "v_cos_f16"(a: Half) -> Wide { Wide((f64::from(a.0) * std::f64::consts::TAU).cos()) }
    "v_ldexp_f16"(a: Half, b: i16) -> Half { Half(scale(a.0, i32::from(b))) }
    "v_frexp_exp_i16_f16"(a: Half) -> i16 { parts(a.0).0 as i16 }
    "v_frexp_mant_f16"(a: Half) -> Half { Half(parts(a.0).1) }
    "v_div_fixup_f16"(a: Half, b: Half, c: Half) -> Half { Half(fix_quotient(a.0, b.0, c.0)) }
}
