//! Floats in scalar registers, which RDNA4 has, and the functions that it computes for one value of
//! the wave.

use super::float::{float_to_half, half_to_float};
use super::vector::{approximate, single};
use super::wave::Wave;
use super::{Group, Handler, Outcome};
use crate::isa::instruction::{Instruction, Operand};

/// Source `k` of 32 bits, with the signs that vector encodings change.
fn single_of<const N: usize>(wave: &Wave<N>, instruction: &Instruction, k: usize) -> f32 {
    let bits = wave.s32(instruction.source[k]);
    let bits = if instruction.absolute >> k & 1 != 0 { bits & 0x7fff_ffff } else { bits };
    f32::from_bits(if instruction.negate >> k & 1 != 0 { bits ^ 0x8000_0000 } else { bits })
}

/// Source `k` of 16 bits.
fn half_of<const N: usize>(wave: &Wave<N>, instruction: &Instruction, k: usize) -> f32 {
    let bits = match instruction.source[k] {
        Operand::Inline(number) => number.half,
        other => wave.s32(other) as u16,
    };
    let bits = if instruction.absolute >> k & 1 != 0 { bits & 0x7fff } else { bits };
    half_to_float(if instruction.negate >> k & 1 != 0 { bits ^ 0x8000 } else { bits })
}

macro_rules! scalar {
    (|$wave:ident, $instruction:ident| $body:expr) => {{
        #[allow(clippy::redundant_closure_call)] // The macro's expression is one.
        fn handler<const N: usize>($wave: &mut Wave<N>, $instruction: &Instruction, _: &mut Group) -> Outcome {
            $body;
            Ok(())
        }
        Some(handler::<N>)
    }};
}

/// f32 of one or two sources.
macro_rules! singles {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(f32, f32) -> f32 = $value;
            let result = value(single_of(wave, i, 0), single_of(wave, i, 1));
            wave.put_s32(i.to, result.to_bits());
        })
    };
}

/// f16 of one or two sources.
macro_rules! halves {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(f32, f32) -> f32 = $value;
            let result = value(half_of(wave, i, 0), half_of(wave, i, 1));
            wave.put_s32(i.to, float_to_half(result).into());
        })
    };
}

/// What both types have.
macro_rules! both {
    ($operation:expr, $with:ident) => {
        match $operation {
            "add" => $with!(|a, b| a + b),
            "sub" => $with!(|a, b| a - b),
            "mul" => $with!(|a, b| a * b),
            "min_num" => $with!(single::min),
            "max_num" => $with!(single::max),
            "minimum" => $with!(single::minimum),
            "maximum" => $with!(single::maximum),
            "ceil" => $with!(|a, _| a.ceil()),
            "floor" => $with!(|a, _| a.floor()),
            "trunc" => $with!(|a, _| a.trunc()),
            "rndne" => $with!(|a, _| a.round_ties_even()),
            _ => None,
        }
    };
}

macro_rules! comparisons {
    ($operation:expr, $get:ident) => {
        match $operation {
            "lt" => compare!($get, |a, b| a < b),
            "eq" => compare!($get, |a, b| a == b),
            "le" => compare!($get, |a, b| a <= b),
            "gt" => compare!($get, |a, b| a > b),
            "lg" => compare!($get, |a, b| matches!(a.partial_cmp(&b), Some(Less | Greater))),
            "ge" => compare!($get, |a, b| a >= b),
            "o" => compare!($get, |a, b| !a.is_nan() && !b.is_nan()),
            "u" => compare!($get, |a, b| a.is_nan() || b.is_nan()),
            "nge" => compare!($get, |a, b| !matches!(a.partial_cmp(&b), Some(Greater | Equal))),
            "nlg" => compare!($get, |a, b| matches!(a.partial_cmp(&b), Some(Equal) | None)),
            "ngt" => compare!($get, |a, b| a.partial_cmp(&b) != Some(Greater)),
            "nle" => compare!($get, |a, b| !matches!(a.partial_cmp(&b), Some(Less | Equal))),
            "neq" => compare!($get, |a, b| a != b),
            "nlt" => compare!($get, |a, b| a.partial_cmp(&b) != Some(Less)),
            _ => None,
        }
    };
}

macro_rules! compare {
    ($get:ident, $holds:expr) => {
        scalar!(|wave, i| {
            let (a, b) = ($get(wave, i, 0), $get(wave, i, 1));
            let holds: fn(f32, f32) -> bool = $holds;
            wave.scc = holds(a, b);
        })
    };
}

/// The handler of an instruction of scalar floats.
#[must_use]
pub fn handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if let Some(rest) = name.strip_prefix("v_s_") {
        return of_one_value(rest);
    }
    if let Some(rest) = name.strip_prefix("s_cmp_") {
        return match rest.split_once('_')? {
            (operation, "f32") => comparisons!(operation, single_of),
            (operation, "f16") => comparisons!(operation, half_of),
            _ => None,
        };
    }
    match name {
        "s_fmac_f32" => scalar!(|wave, i| {
            let sum = single_of(wave, i, 0).mul_add(single_of(wave, i, 1), f32::from_bits(wave.s32(i.to)));
            wave.put_s32(i.to, sum.to_bits());
        }),
        "s_fmaak_f32" | "s_fmamk_f32" => scalar!(|wave, i| {
            let sum = single_of(wave, i, 0).mul_add(single_of(wave, i, 1), single_of(wave, i, 2));
            wave.put_s32(i.to, sum.to_bits());
        }),
        "s_fmac_f16" => scalar!(|wave, i| {
            let product = f64::from(half_of(wave, i, 0)) * f64::from(half_of(wave, i, 1));
            let sum = product + f64::from(half_to_float(wave.s32(i.to) as u16));
            wave.put_s32(i.to, float_to_half(approximate::odd_single(sum)).into());
        }),
        "s_cvt_f32_i32" => scalar!(|wave, i| wave.put_s32(i.to, (wave.s32(i.source[0]) as i32 as f32).to_bits())),
        "s_cvt_f32_u32" => scalar!(|wave, i| wave.put_s32(i.to, (wave.s32(i.source[0]) as f32).to_bits())),
        "s_cvt_i32_f32" => scalar!(|wave, i| wave.put_s32(i.to, single_of(wave, i, 0) as i32 as u32)),
        "s_cvt_u32_f32" => scalar!(|wave, i| wave.put_s32(i.to, single_of(wave, i, 0) as u32)),
        "s_cvt_f16_f32" => scalar!(|wave, i| wave.put_s32(i.to, float_to_half(single_of(wave, i, 0)).into())),
        "s_cvt_f32_f16" => scalar!(|wave, i| wave.put_s32(i.to, half_of(wave, i, 0).to_bits())),
        "s_cvt_hi_f32_f16" => scalar!(|wave, i| {
            let high = (wave.s32(i.source[0]) >> 16) as u16;
            wave.put_s32(i.to, half_to_float(high).to_bits());
        }),
        "s_cvt_pk_rtz_f16_f32" => scalar!(|wave, i| {
            let [low, high] = [0, 1].map(|k| approximate::half_toward_zero(single_of(wave, i, k)));
            wave.put_s32(i.to, low | high << 16);
        }),
        _ => {
            let (operation, kind) = name.strip_prefix("s_")?.rsplit_once('_')?;
            match kind {
                "f32" => both!(operation, singles),
                "f16" => both!(operation, halves),
                _ => None,
            }
        }
    }
}

/// Approximate functions of one value.
fn of_one_value<const N: usize>(name: &str) -> Option<Handler<N>> {
    use approximate::{given, near};
    match name {
        "rcp_f32" => singles!(|a, _| near(1.0 / given(a))),
        "sqrt_f32" => singles!(|a, _| near(given(a).sqrt())),
        "rsq_f32" => singles!(|a, _| near(1.0 / given(a).sqrt())),
        "exp_f32" => singles!(|a, _| near(f64::from(a).exp2())),
        "log_f32" => singles!(|a, _| near(given(a).log2())),
        "rcp_f16" => halves!(|a, _| 1.0 / a),
        "sqrt_f16" => halves!(|a, _| a.sqrt()),
        "rsq_f16" => halves!(|a, _| (1.0 / f64::from(a).sqrt()) as f32),
        "exp_f16" => halves!(|a, _| f64::from(a).exp2() as f32),
        "log_f16" => halves!(|a, _| f64::from(a).log2() as f32),
        _ => None,
    }
}
