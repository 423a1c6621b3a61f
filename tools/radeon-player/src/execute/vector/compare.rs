//! Comparisons, and classes of numbers.

// Comparisons of what is no number are not those that these would be simplified to.
#![allow(clippy::double_comparisons, clippy::neg_cmp_op_on_partial_ord, clippy::nonminimal_bool)]

use super::halves::Half;
use super::lane::{Read, Value};
use crate::execute::wave::{EXEC, Wave};
use crate::execute::{Group, Handler, Outcome};
use crate::isa::instruction::{Instruction, Operand};

/// Compares two sources and writes a mask of the lanes that are on. `v_cmpx` narrows exec.
#[inline(always)]
fn compare<A: Value, B: Value, const N: usize>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    each: impl Fn(Read<N>, Read<N>, usize) -> bool,
) -> Outcome {
    let mut bytes = [0; 64];
    {
        let (mut first, mut second) = ([[0; N]; 2], [[0; N]; 2]);
        let a = A::read(wave, instruction, 0, &mut first);
        let b = B::read(wave, instruction, 1, &mut second);
        for (lane, byte) in bytes.iter_mut().enumerate().take(N) {
            *byte = u8::from(each(a, b, lane));
        }
    }
    let mask = bits::<N>(&bytes) & wave.exec();
    let to = if instruction.name.starts_with("v_cmpx") { Operand::Scalar(EXEC) } else { instruction.to };
    wave.put_lanes(to, mask);
    Ok(())
}

/// Bytes of 0 and 1 to bits.
#[inline(always)]
fn bits<const N: usize>(bytes: &[u8; 64]) -> u64 {
    let mut result = 0;
    for (at, eight) in bytes[..N].chunks_exact(8).enumerate() {
        let word = eight.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        // Moves the lowest bit of byte k to bit 56 + k; no two products meet.
        result |= (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    result
}

macro_rules! comparisons {
    ($type:ty, $name:expr, $convert:expr, $($text:literal $(| $more:literal)* => |$a:ident, $b:ident| $body:expr),* $(,)?) => {
        match $name {
            $($text $(| $more)* => {
                // Some read neither.
                #[allow(unused_variables)]
                fn run<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
                    compare::<$type, $type, N>(wave, instruction, |a, b, lane| {
                        let ($a, $b) = ($convert(<$type as Value>::of(a, lane)), $convert(<$type as Value>::of(b, lane)));
                        $body
                    })
                }
                Some(run::<N>)
            })*
            _ => None,
        }
    };
}

macro_rules! floats {
    ($type:ty, $name:expr, $convert:expr) => {
        comparisons!($type, $name, $convert,
            "f" => |a, b| false,
            "lt" => |a, b| a < b,
            "eq" => |a, b| a == b,
            "le" => |a, b| a <= b,
            "gt" => |a, b| a > b,
            "lg" => |a, b| a < b || a > b,
            "ge" => |a, b| a >= b,
            "o" => |a, b| !a.is_nan() && !b.is_nan(),
            "u" => |a, b| a.is_nan() || b.is_nan(),
            "nge" => |a, b| !(a >= b),
            "nlg" => |a, b| !(a < b || a > b),
            "ngt" => |a, b| !(a > b),
            "nle" => |a, b| !(a <= b),
            "neq" => |a, b| a != b,
            "nlt" => |a, b| !(a < b),
            "t" | "tru" => |a, b| true,
        )
    };
}

macro_rules! integers {
    ($type:ty, $name:expr) => {
        comparisons!($type, $name, |value| value,
            "f" => |a, b| false,
            "lt" => |a, b| a < b,
            "eq" => |a, b| a == b,
            "le" => |a, b| a <= b,
            "gt" => |a, b| a > b,
            "ne" | "lg" => |a, b| a != b,
            "ge" => |a, b| a >= b,
            "t" => |a, b| true,
        )
    };
}

/// The class of a number, as a bit of the mask that `v_cmp_class` takes.
#[inline(always)]
fn class(bits: u64, mantissa_bits: u32, exponent_bits: u32) -> u32 {
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let most = (1 << exponent_bits) - 1;
    let exponent = bits >> mantissa_bits & most;
    let negative = bits >> (mantissa_bits + exponent_bits) & 1 != 0;
    let (below, above) = match (exponent, mantissa) {
        (e, 0) if e == most => (2, 9),
        (e, m) if e == most => return if m >> (mantissa_bits - 1) != 0 { 2 } else { 1 },
        (0, 0) => (5, 6),
        (0, _) => (4, 7),
        _ => (3, 8),
    };
    1 << if negative { below } else { above }
}

/// A class is that of the number as it stands: no subnormal is zero here, whatever the wave's mode.
fn classify<A: Value, B: Value, const N: usize>(
    wave: &mut Wave<N>,
    instruction: &Instruction,
    of: impl Fn(Read<N>, usize) -> u32,
) -> Outcome {
    let mode = std::mem::replace(&mut wave.mode, 0xf0);
    let outcome = compare::<A, B, N>(wave, instruction, |a, b, lane| of(a, lane) & b[0][lane] != 0);
    wave.mode = mode;
    outcome
}

fn class_single<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    classify::<f32, u32, N>(wave, instruction, |a, lane| class(u64::from(a[0][lane]), 23, 8))
}

fn class_half<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    classify::<Half, u16, N>(wave, instruction, |a, lane| class(u64::from(a[0][lane] & 0xffff), 10, 5))
}

fn class_double<const N: usize>(wave: &mut Wave<N>, instruction: &Instruction, _: &mut Group) -> Outcome {
    classify::<f64, u32, N>(wave, instruction, |a, lane| class(u64::of(a, lane), 52, 11))
}

pub(super) fn find<const N: usize>(name: &str) -> Option<Handler<N>> {
    let rest = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_"))?;
    let (how, kind) = rest.split_once('_')?;
    match (how, kind) {
        ("class", "f32") => Some(class_single),
        ("class", "f16") => Some(class_half),
        ("class", "f64") => Some(class_double),
        (_, "f32") => floats!(f32, how, |value: f32| value),
        (_, "f16") => floats!(Half, how, |value: Half| value.0),
        (_, "f64") => floats!(f64, how, |value: f64| value),
        (_, "i32") => integers!(i32, how),
        (_, "u32") => integers!(u32, how),
        (_, "i16") => integers!(i16, how),
        (_, "u16") => integers!(u16, how),
        (_, "i64") => integers!(i64, how),
        (_, "u64") => integers!(u64, how),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_become_bits() {
        let bytes: [u8; 64] = std::array::from_fn(|lane| u8::from(lane % 3 == 0));
        let expected = (0..64).filter(|lane| lane % 3 == 0).fold(0u64, |mask, lane| mask | 1 << lane);
        assert_eq!(bits::<64>(&bytes), expected);
        assert_eq!(bits::<32>(&bytes), expected & 0xffff_ffff);
    }

    #[test]
    fn numbers_have_classes() {
        let cases = [
            (f32::NAN, 2),
            (f32::NEG_INFINITY, 4),
            (-1.0, 8),
            (-1e-40, 16),
            (-0.0, 32),
            (0.0, 64),
            (1e-40, 128),
            (1.0, 256),
            (f32::INFINITY, 512),
        ];
        for (value, bit) in cases {
            assert_eq!(class(u64::from(value.to_bits()), 23, 8), bit, "{value}");
        }
        assert_eq!(class(0x7f80_0001, 23, 8), 1);
    }
}
