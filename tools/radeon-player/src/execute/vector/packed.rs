//! Two values of 16 bits in a register, and dot products of parts of registers.

use super::halves::{Half, Pair, Wide};
use super::lane::Own;
use super::single::{max, maximum, min, minimum};
use crate::execute::float::half_to_float;
use crate::execute::{Group, Handler, Outcome, wave::Wave};
use crate::isa::instruction::Instruction;

/// Both halves by one function of two values.
#[inline(always)]
fn two<T: Copy>(a: Pair<T>, b: Pair<T>, each: impl Fn(T, T) -> T) -> Pair<T> {
    Pair([each(a.0[0], b.0[0]), each(a.0[1], b.0[1])])
}

/// Both halves by one function of three values.
#[inline(always)]
fn three<T: Copy>(a: Pair<T>, b: Pair<T>, c: Pair<T>, each: impl Fn(T, T, T) -> T) -> Pair<T> {
    Pair([each(a.0[0], b.0[0], c.0[0]), each(a.0[1], b.0[1], c.0[1])])
}

/// Two products of halves.
#[inline(always)]
fn dot_halves(a: Pair<f64>, b: Pair<f64>, sum: f32) -> f32 {
    (a.0[0] * b.0[0] + a.0[1] * b.0[1] + f64::from(sum)) as f32
}

/// The value of a bfloat16 in the upper half of a word.
#[inline(always)]
fn brain(word: u32) -> f64 {
    f64::from(f32::from_bits(word & 0xffff_0000))
}

mod table {
    use super::*;

    super::super::operations! {
        "v_pk_add_f16"(a: Pair<f32>, b: Pair<f32>) -> Pair<f32> { two(a, b, |a, b| a + b) }
        "v_pk_mul_f16"(a: Pair<f32>, b: Pair<f32>) -> Pair<f32> { two(a, b, |a, b| a * b) }
        "v_pk_min_f16" | "v_pk_min_num_f16"(a: Pair<f32>, b: Pair<f32>) -> Pair<f32> { two(a, b, min) }
        "v_pk_minimum_f16"(a: Pair<f32>, b: Pair<f32>) -> Pair<f32> { two(a, b, minimum) }
        "v_pk_maximum_f16"(a: Pair<f32>, b: Pair<f32>) -> Pair<f32> { two(a, b, maximum) }
        "v_pk_max_f16" | "v_pk_max_num_f16"(a: Pair<f32>, b: Pair<f32>) -> Pair<f32> { two(a, b, max) }
        "v_pk_fma_f16"(a: Pair<f64>, b: Pair<f64>, c: Pair<f64>) -> Pair<f64> { three(a, b, c, |a, b, c| a * b + c) }
        "v_pk_fmac_f16"(a: Pair<f64>, b: Pair<f64>, c: Own<Pair<f64>>) -> Pair<f64> {
            three(a, b, c.0, |a, b, c| a * b + c)
        }
        "v_pk_add_u16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, u16::wrapping_add) }
            or { two(a, b, u16::saturating_add) }
        "v_pk_add_i16"(a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { two(a, b, i16::wrapping_add) }
            or { two(a, b, i16::saturating_add) }
        "v_pk_sub_u16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, u16::wrapping_sub) }
            or { two(a, b, u16::saturating_sub) }
        "v_pk_sub_i16"(a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { two(a, b, i16::wrapping_sub) }
            or { two(a, b, i16::saturating_sub) }
        "v_pk_mul_lo_u16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, u16::wrapping_mul) }
        "v_pk_mad_u16" | "v_pk_mad_i16"(a: Pair<u16>, b: Pair<u16>, c: Pair<u16>) -> Pair<u16> {
            three(a, b, c, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
        }
        "v_pk_lshlrev_b16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, |a, b| b << (a & 15)) }
        "v_pk_lshrrev_b16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, |a, b| b >> (a & 15)) }
        "v_pk_ashrrev_i16"(a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { two(a, b, |a, b| b >> (a & 15)) }
        "v_pk_min_u16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, u16::min) }
        "v_pk_max_u16"(a: Pair<u16>, b: Pair<u16>) -> Pair<u16> { two(a, b, u16::max) }
        "v_pk_min_i16"(a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { two(a, b, i16::min) }
        "v_pk_max_i16"(a: Pair<i16>, b: Pair<i16>) -> Pair<i16> { two(a, b, i16::max) }
        "v_dot2_f32_f16"(a: Pair<f64>, b: Pair<f64>, c: f32) -> f32 { dot_halves(a, b, c) }
        "v_dot2acc_f32_f16" | "v_dot2c_f32_f16"(a: u32, b: u32, c: Own<f32>) -> f32 {
            let pair = |word: u32| Pair([word, word >> 16].map(|bits| f64::from(half_to_float(bits as u16))));
            dot_halves(pair(a), pair(b), c.0)
        }
        "v_dot2_f16_f16"(a: u32, b: u32, c: Half) -> Wide {
            let half = |word: u32| f64::from(half_to_float(word as u16));
            Wide(half(a) * half(b) + half(a >> 16) * half(b >> 16) + f64::from(c.0))
        }
        "v_dot2_bf16_bf16"(a: u32, b: u32, c: u16) -> u16 {
            let sum = brain(a << 16) * brain(b << 16) + brain(a) * brain(b) + brain(u32::from(c) << 16);
            ::half::bf16::from_f64(sum).to_bits()
        }
        "v_dot2_f32_bf16"(a: u32, b: u32, c: f32) -> f32 {
            (brain(a << 16) * brain(b << 16) + brain(a) * brain(b) + f64::from(c)) as f32
        }
    }
}

/// Products of parts of `BITS` bits, added to a sum; which operands are signed, as the encoding has
/// it.
fn dot<const N: usize, const BITS: u32>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    let [a, b, mut sum] = [0, 1, 2].map(|k| wave.words(instruction.source[k]));
    let [first, second] = [0, 1].map(|k| instruction.negate >> k & 1 != 0);
    let part = |word: u32, at: u32, signed: bool| {
        let moved = word << (32 - BITS - BITS * at);
        if signed { i64::from(moved as i32 >> (32 - BITS)) } else { i64::from(moved >> (32 - BITS)) }
    };
    for lane in 0..N {
        let products = (0..32 / BITS).map(|at| part(a[lane], at, first) * part(b[lane], at, second));
        let exact = products.sum::<i64>();
        sum[lane] = if !instruction.clamp {
            sum[lane].wrapping_add(exact as u32)
        } else if first || second {
            (i64::from(sum[lane] as i32) + exact).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
        } else {
            (i64::from(sum[lane]) + exact).min(i64::from(u32::MAX)) as u32
        };
    }
    wave.put(instruction.to, &sum);
    Ok(())
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    match name {
        "v_dot4_u32_u8" | "v_dot4_i32_iu8" => Some(dot::<N, 8>),
        "v_dot8_u32_u4" | "v_dot8_i32_iu4" => Some(dot::<N, 4>),
        _ => table::find(name),
    }
}
