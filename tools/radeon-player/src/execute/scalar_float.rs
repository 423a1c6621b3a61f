//! Floats in scalar registers, which RDNA4 has, and the functions that it computes for one value of
//! the wave.

use super::exact::{HALF, Mode, Rounder, SINGLE};
use super::float::{float_to_half, half_to_float};
use super::vector::{approximate, single};
use super::wave::Wave;
use super::{Group, Handler, Outcome};
use crate::isa::instruction::{Instruction, Operand};

/// Source `k` of 32 bits, with the signs that vector encodings change.
fn single_of<const N: usize>(wave: &Wave<N>, instruction: &Instruction, k: usize) -> f32 {
    let bits = wave.s32(instruction.source[k]);
    let bits = if instruction.absolute >> k & 1 != 0 { bits & 0x7fff_ffff } else { bits };
    flushed(
        wave.mode & 0x10 == 0,
        f32::from_bits(if instruction.negate >> k & 1 != 0 { bits ^ 0x8000_0000 } else { bits }),
    )
}

/// Zero for what is subnormal, if those are not kept.
fn flushed(flush: bool, value: f32) -> f32 {
    if flush && value.is_subnormal() { 0f32.copysign(value) } else { value }
}

/// Writes a result of 32 bits.
fn put_single<const N: usize>(wave: &mut Wave<N>, to: Operand, value: f32) {
    let value = flushed(wave.mode & 0x20 == 0, value);
    wave.put_s32(to, value.to_bits());
}

/// Writes a result of 16 bits.
fn put_half<const N: usize>(wave: &mut Wave<N>, to: Operand, half: u16) {
    let subnormal = half & 0x7c00 == 0 && wave.mode & 0x80 == 0;
    wave.put_s32(to, u32::from(if subnormal { half & 0x8000 } else { half }));
}

/// Source `k` of 16 bits.
fn half_of<const N: usize>(wave: &Wave<N>, instruction: &Instruction, k: usize) -> f32 {
    let bits = match instruction.source[k] {
        Operand::Inline(number) => number.half,
        other => wave.s32(other) as u16,
    };
    let bits = if instruction.absolute >> k & 1 != 0 { bits & 0x7fff } else { bits };
    let bits = if wave.mode & 0x40 == 0 && bits & 0x7c00 == 0 { bits & 0x8000 } else { bits };
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
            put_single(wave, i.to, result);
        })
    };
}

/// f16 of one or two sources.
macro_rules! halves {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(f32, f32) -> f32 = $value;
            let result = value(half_of(wave, i, 0), half_of(wave, i, 1));
            put_half(wave, i.to, float_to_half(result));
        })
    };
}

/// The same as of [`singles`], rounded as MODE says; the third value is that of the result where
/// the instruction adds to it.
macro_rules! rounded_singles {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(Rounder, f64, f64, f64) -> f64 = $value;
            let third =
                if i.source[2] == Operand::None { f32::from_bits(wave.s32(i.to)) } else { single_of(wave, i, 2) };
            let [a, b] = [0, 1].map(|k| f64::from(single_of(wave, i, k)));
            let result = value(single_rounder(wave.mode), a, b, third.into());
            put_single(wave, i.to, result as f32);
        })
    };
}

macro_rules! rounded_halves {
    ($value:expr) => {
        scalar!(|wave, i| {
            let value: fn(Rounder, f64, f64, f64) -> f64 = $value;
            let [a, b] = [0, 1].map(|k| f64::from(half_of(wave, i, k)));
            let third = half_to_float(wave.s32(i.to) as u16);
            let result = value(half_rounder(wave.mode), a, b, third.into());
            put_half(wave, i.to, float_to_half(result as f32));
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
            put_single(wave, i.to, sum);
        }),
        "s_fmaak_f32" | "s_fmamk_f32" => scalar!(|wave, i| {
            let sum = single_of(wave, i, 0).mul_add(single_of(wave, i, 1), single_of(wave, i, 2));
            put_single(wave, i.to, sum);
        }),
        "s_fmac_f16" => scalar!(|wave, i| {
            let product = f64::from(half_of(wave, i, 0)) * f64::from(half_of(wave, i, 1));
            let sum = product + f64::from(half_to_float(wave.s32(i.to) as u16));
            put_half(wave, i.to, float_to_half(approximate::odd_single(sum)));
        }),
        "s_cvt_f32_i32" => scalar!(|wave, i| wave.put_s32(i.to, (wave.s32(i.source[0]) as i32 as f32).to_bits())),
        "s_cvt_f32_u32" => scalar!(|wave, i| wave.put_s32(i.to, (wave.s32(i.source[0]) as f32).to_bits())),
        "s_cvt_i32_f32" => scalar!(|wave, i| wave.put_s32(i.to, single_of(wave, i, 0) as i32 as u32)),
        "s_cvt_u32_f32" => scalar!(|wave, i| wave.put_s32(i.to, single_of(wave, i, 0) as u32)),
        "s_cvt_f16_f32" => scalar!(|wave, i| put_half(wave, i.to, float_to_half(single_of(wave, i, 0)))),
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

/// The handler of an instruction whose result MODE rounds.
#[must_use]
pub fn rounding_handler<const N: usize>(name: &str) -> Option<Handler<N>> {
    let (operation, kind) = name.strip_prefix("s_")?.rsplit_once('_')?;
    match (operation, kind) {
        ("add", "f32") => rounded_singles!(|to, a, b, _| to.add(a, b)),
        ("sub", "f32") => rounded_singles!(|to, a, b, _| to.add(a, -b)),
        ("mul", "f32") => rounded_singles!(|to, a, b, _| to.multiply(a, b)),
        ("fmac" | "fmaak" | "fmamk", "f32") => rounded_singles!(|to, a, b, c| to.multiply_add(a, b, c)),
        ("cvt_f32", "i32") => scalar!(|wave, i| {
            let value = single_rounder(wave.mode).value(f64::from(wave.s32(i.source[0]) as i32));
            put_single(wave, i.to, value as f32);
        }),
        ("cvt_f32", "u32") => scalar!(|wave, i| {
            let value = single_rounder(wave.mode).value(f64::from(wave.s32(i.source[0])));
            put_single(wave, i.to, value as f32);
        }),
        ("add", "f16") => rounded_halves!(|to, a, b, _| to.add(a, b)),
        ("sub", "f16") => rounded_halves!(|to, a, b, _| to.add(a, -b)),
        ("mul", "f16") => rounded_halves!(|to, a, b, _| to.multiply(a, b)),
        ("fmac", "f16") => rounded_halves!(|to, a, b, c| to.multiply_add(a, b, c)),
        ("cvt_f16", "f32") => scalar!(|wave, i| {
            let value = half_rounder(wave.mode).value(single_of(wave, i, 0).into());
            put_half(wave, i.to, float_to_half(value as f32));
        }),
        _ => None,
    }
}

fn single_rounder(mode: u32) -> Rounder {
    Rounder { format: SINGLE, mode: Mode::of(mode) }
}

fn half_rounder(mode: u32) -> Rounder {
    Rounder { format: HALF, mode: Mode::of(mode >> 2) }
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
