//! Arithmetic of floats. f16 is computed as f32 and rounded at the end, which is exact for one sum
//! or product.

use half::f16;

use super::integer::put_comparison;
use super::region::{Mode, compare};
use super::thread::Thread;
use super::{Outcome, Row, Trap};
use crate::isa::instruction::{Instruction, Operation, Type};

/// Carries out an operation of which a source is a float.
///
/// # Errors
///
/// What is missing here.
#[inline(always)]
pub fn run(thread: &mut Thread, it: &Instruction, mask: u32, predicate: u32) -> Outcome {
    use Operation::*;
    let channels = usize::from(it.channels);
    let mode = thread.mode().of(it);
    let [first, second, third] = &it.source;
    // A move of the same type is one of bits.
    if it.operation == Mov
        && it.to.kind == first.kind
        && !first.negate
        && !first.absolute
        && !it.saturate
        && it.condition == 0
    {
        let row = thread.raw(first, channels)?;
        return thread.put(&it.to, channels, mask, &row);
    }
    let count = crate::isa::sources(it.operation, it.condition);
    if it.source[..count].iter().any(|source| source.kind == Type::DF) || it.to.kind == Type::DF {
        return run_doubles(thread, it, mask, predicate, mode);
    }
    // Of roundings other than to the nearest there is the one to zero of conversions to f16.
    let to_half = it.operation == Mov && it.to.kind == Type::HF && first.kind == Type::F;
    let rounds = it.to.kind.is_float() && !matches!(it.operation, Sel | Cmp | Cmpn | Csel);
    if rounds && mode.rounding() != 0 && !(to_half && mode.rounding() == 3) {
        return Err(Trap::missing("this rounding"));
    }
    let a = thread.floats(first, channels, mode)?;
    let b = if count > 1 { thread.floats(second, channels, mode)? } else { [0.0; 32] };
    let c = if count > 2 { thread.floats(third, channels, mode)? } else { [0.0; 32] };
    macro_rules! each {
        (|$k:ident| $value:expr) => {{
            let mut row: Row<f32> = [0.0; 32];
            (0..channels).for_each(|$k| row[$k] = $value);
            row
        }};
    }
    let halves = it.to.kind == Type::HF;
    let row = match it.operation {
        Mov => a,
        Add => each!(|k| a[k] + b[k]),
        Mul => each!(|k| a[k] * b[k]),
        // The product of two f16 is exact in f64; so is the sum but for its last place.
        Mad if halves => each!(|k| round_odd(f64::from(b[k]) * f64::from(c[k]), f64::from(a[k]))),
        Mad => each!(|k| b[k].mul_add(c[k], a[k])),
        Lrp => each!(|k| a[k].mul_add(b[k], (1.0 - a[k]) * c[k])),
        Frc => each!(|k| a[k] - a[k].floor()),
        Rndd => each!(|k| a[k].floor()),
        Rndu => each!(|k| a[k].ceil()),
        Rnde => each!(|k| a[k].round_ties_even()),
        Rndz => each!(|k| a[k].trunc()),
        Mac => {
            let sum = thread.accumulators;
            each!(|k| a[k].mul_add(b[k], f32::from_bits(sum[k] as u32)))
        }
        Cmp | Cmpn => {
            let mut flags = 0;
            for k in 0..channels {
                let holds = compare(it.condition, &a[k], &b[k]).ok_or_else(|| Trap::missing("this condition"))?;
                flags |= u32::from(holds) << k;
            }
            return put_comparison(thread, it, mask, flags);
        }
        Sel if it.condition == 0 => each!(|k| if predicate >> k & 1 != 0 { a[k] } else { b[k] }),
        Sel => {
            let mut out = [0.0; 32];
            for k in 0..channels {
                let holds = compare(it.condition, &a[k], &b[k]).ok_or_else(|| Trap::missing("this condition"))?;
                // A number is chosen before what is none.
                out[k] = if a[k].is_nan() || (!holds && !b[k].is_nan()) { b[k] } else { a[k] };
            }
            return thread.put_floats(&Instruction { condition: 0, ..*it }, mask, out, mode);
        }
        Csel => {
            let mut out = [0.0; 32];
            for k in 0..channels {
                let holds = compare(it.condition, &c[k], &0.0).ok_or_else(|| Trap::missing("this condition"))?;
                out[k] = if holds { a[k] } else { b[k] };
            }
            return thread.put_floats(&Instruction { condition: 0, ..*it }, mask, out, mode);
        }
        Math => return math(thread, it, mask, &a, &b, mode),
        _ => return Err(Trap::missing("this operation of floats")),
    };
    thread.put_floats(it, mask, row, mode)
}

/// The sum of an exact product and a number, so that rounding it again is as rounding it once: the
/// last place of f32 says whether something was lost.
fn round_odd(product: f64, sum: f64) -> f32 {
    let total = product + sum;
    let near = total as f32;
    if f64::from(near) == total && (total - product == sum && total - sum == product) || !near.is_finite() {
        return near;
    }
    // Towards zero, then the last bit set.
    let toward = if f64::from(near).abs() > total.abs() { f32::from_bits(near.to_bits() - 1) } else { near };
    f32::from_bits(toward.to_bits() | 1)
}

/// What the math unit computes.
#[inline(always)]
fn math(thread: &mut Thread, it: &Instruction, mask: u32, a: &Row<f32>, b: &Row<f32>, mode: Mode) -> Outcome {
    let function: fn(f64, f64) -> f64 = match it.condition {
        1 => |a, _| 1.0 / a,
        2 => |a, _| a.log2(),
        3 => |a, _| a.exp2(),
        4 => |a, _| a.sqrt(),
        5 => |a, _| 1.0 / a.sqrt(),
        6 => |a, _| a.sin(),
        7 => |a, _| a.cos(),
        9 => |a, b| a / b,
        10 => |a, b| a.abs().powf(b),
        _ => return Err(Trap::missing("this function")),
    };
    let mut row = [0.0; 32];
    for k in (0..usize::from(it.channels)).filter(|k| mask >> k & 1 != 0) {
        row[k] = function(a[k].into(), b[k].into()) as f32;
    }
    thread.put_floats(&Instruction { condition: 0, ..*it }, mask, row, mode)
}

/// The same of f64.
fn run_doubles(thread: &mut Thread, it: &Instruction, mask: u32, predicate: u32, mode: Mode) -> Outcome {
    use Operation::*;
    let channels = usize::from(it.channels);
    let count = crate::isa::sources(it.operation, it.condition);
    let [first, second, third] = &it.source;
    if mode.rounding() != 0 {
        return Err(Trap::missing("f64 that does not round to the nearest"));
    }
    let a = thread.doubles(first, channels, mode)?;
    let b = if count > 1 { thread.doubles(second, channels, mode)? } else { [0.0; 32] };
    let c = if count > 2 { thread.doubles(third, channels, mode)? } else { [0.0; 32] };
    let each = |f: &dyn Fn(usize) -> f64| {
        let mut row = [0.0; 32];
        (0..channels).for_each(|k| row[k] = f(k));
        row
    };
    let row = match it.operation {
        Mov => a,
        Add => each(&|k| a[k] + b[k]),
        Mul => each(&|k| a[k] * b[k]),
        Mad => each(&|k| b[k].mul_add(c[k], a[k])),
        Rndd => each(&|k| a[k].floor()),
        Rndu => each(&|k| a[k].ceil()),
        Rnde => each(&|k| a[k].round_ties_even()),
        Rndz => each(&|k| a[k].trunc()),
        Sel if it.condition == 0 => each(&|k| if predicate >> k & 1 != 0 { a[k] } else { b[k] }),
        Cmp | Cmpn => {
            let mut flags = 0;
            for k in 0..channels {
                let holds = compare(it.condition, &a[k], &b[k]).ok_or_else(|| Trap::missing("this condition"))?;
                flags |= u32::from(holds) << k;
            }
            return put_comparison(thread, it, mask, flags);
        }
        _ => return Err(Trap::missing("this operation of f64")),
    };
    thread.put_doubles(it, mask, row, mode)
}

/// f32 of f16 bits.
#[must_use]
pub fn half(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}
