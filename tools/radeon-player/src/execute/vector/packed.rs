//! Two values of 16 bits in a register, and dot products of parts of registers.

use super::halves::{Half, Pair, Wide};
use super::lane::Own;
use super::single::{max, maximum, min, minimum};
use super::small;
use crate::execute::float::half_to_float;
use crate::execute::{Group, Handler, Outcome, wave::Wave};
use crate::isa::instruction::{Encoding, Instruction};

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
    }
}

/// Which operands of a dot product of integers are signed.
#[derive(Clone, Copy)]
struct Signs(u8);

impl Signs {
    const NONE: u8 = 0;
    const BOTH: u8 = 1;
    /// As the encoding has it.
    const ENCODED: u8 = 2;

    fn of(self, it: &Instruction, k: usize) -> bool {
        match self.0 {
            Self::ENCODED => it.negate >> k & 1 != 0,
            other => other == Self::BOTH,
        }
    }
}

/// Products of parts of `BITS` bits, added to a sum.
fn dot<const N: usize, const BITS: u32, const SIGNS: u8>(
    wave: &mut Wave<N>,
    it: &Instruction,
    _: &mut Group,
) -> Outcome {
    let [mut a, mut b] = [0, 1].map(|k| wave.words(it.source[k]));
    let mut sum = wave.words(if it.encoding == Encoding::Vop3p { it.source[2] } else { it.to });
    let [first, second] = [0, 1].map(|k| Signs(SIGNS).of(it, k));
    if BITS == 16 {
        for (k, row) in [&mut a, &mut b].into_iter().enumerate() {
            choose_halves(it, k, row);
        }
    }
    let part = |word: u32, at: u32, signed: bool| {
        let moved = word << (32 - BITS - BITS * at);
        if signed { i64::from(moved as i32 >> (32 - BITS)) } else { i64::from(moved >> (32 - BITS)) }
    };
    for lane in 0..N {
        let products = (0..32 / BITS).map(|at| part(a[lane], at, first) * part(b[lane], at, second));
        let exact = products.sum::<i64>();
        sum[lane] = if !it.clamp {
            sum[lane].wrapping_add(exact as u32)
        } else if first || second {
            (i64::from(sum[lane] as i32) + exact).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
        } else {
            (i64::from(sum[lane]) + exact).min(i64::from(u32::MAX)) as u32
        };
    }
    wave.put(it.to, &sum);
    Ok(())
}

/// Puts the halves in their places that the encoding chooses of source `k`.
fn choose_halves<const N: usize>(it: &Instruction, k: usize, row: &mut [u32; N]) {
    let [low, high] = [it.high, it.high_of_high].map(|bits| if bits >> k & 1 != 0 { 16 } else { 0 });
    for word in row {
        *word = *word >> low & 0xffff | (*word >> high) << 16;
    }
}

/// Two products of bfloat16, added to a sum, with the halves and signs that the encoding chooses.
fn dot_brains<const N: usize>(wave: &mut Wave<N>, it: &Instruction, _: &mut Group) -> Outcome {
    let [a, b] = [0, 1].map(|k| {
        let mut row = wave.words(it.source[k]);
        choose_halves(it, k, &mut row);
        let turn = u32::from(it.negate >> k & 1) << 15 | u32::from(it.absolute >> k & 1) << 31;
        row.map(|word| word ^ turn)
    });
    let c = sum_with_signs(wave, it);
    let row = std::array::from_fn(|lane| {
        let [a, b] = [a[lane], b[lane]];
        (brain(a << 16) * brain(b << 16) + brain(a) * brain(b) + f64::from(c[lane])) as f32
    });
    wave.put_floats(it, row);
    Ok(())
}

/// The third operand of a dot product of small floats: of packed encodings the bits of absolute
/// values are those of the high halves, of which it has none.
fn sum_with_signs<const N: usize>(wave: &Wave<N>, it: &Instruction) -> [f32; N] {
    let keep = if it.absolute >> 2 & 1 != 0 { 0x7fff_ffff } else { u32::MAX };
    let turn = if it.negate >> 2 & 1 != 0 { 0x8000_0000 } else { 0 };
    wave.words(it.source[2]).map(|word| f32::from_bits(word & keep ^ turn))
}

/// Four products of floats of eight bits, added to a sum.
fn dot_small<const N: usize, const A: u32, const B: u32>(
    wave: &mut Wave<N>,
    it: &Instruction,
    _: &mut Group,
) -> Outcome {
    let [a, b] = [0, 1].map(|k| wave.words(it.source[k]));
    let c = sum_with_signs(wave, it);
    let row = std::array::from_fn(|lane| {
        let products = (0..4).map(|at| {
            let [a, b] = [a[lane], b[lane]].map(|word| (word >> (8 * at)) as u8);
            f64::from(small::value::<A>(a)) * f64::from(small::value::<B>(b))
        });
        (products.sum::<f64>() + f64::from(c[lane])) as f32
    });
    wave.put_floats(it, row);
    Ok(())
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    use small::{BF8, FP8};
    Some(match name {
        "v_dot2_u32_u16" => dot::<N, 16, { Signs::NONE }>,
        "v_dot2_i32_i16" => dot::<N, 16, { Signs::BOTH }>,
        "v_dot4_u32_u8" => dot::<N, 8, { Signs::NONE }>,
        "v_dot4_i32_i8" | "v_dot4c_i32_i8" => dot::<N, 8, { Signs::BOTH }>,
        "v_dot4_i32_iu8" => dot::<N, 8, { Signs::ENCODED }>,
        "v_dot8_u32_u4" => dot::<N, 4, { Signs::NONE }>,
        "v_dot8_i32_i4" => dot::<N, 4, { Signs::BOTH }>,
        "v_dot8_i32_iu4" => dot::<N, 4, { Signs::ENCODED }>,
        "v_dot2_f32_bf16" => dot_brains,
        "v_dot4_f32_fp8_fp8" => dot_small::<N, FP8, FP8>,
        "v_dot4_f32_fp8_bf8" => dot_small::<N, FP8, BF8>,
        "v_dot4_f32_bf8_fp8" => dot_small::<N, BF8, FP8>,
        "v_dot4_f32_bf8_bf8" => dot_small::<N, BF8, BF8>,
        _ => return table::find(name),
    })
}
