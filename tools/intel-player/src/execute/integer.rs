//! Arithmetic of integers, and what works on bits.

use super::region::{compare, extend};
use super::thread::Thread;
use super::{Outcome, Row, Trap};
use crate::isa::instruction::{Instruction, Operation, Place, Type};

/// Carries out an operation whose sources are integers.
///
/// # Errors
///
/// What is missing here.
#[inline(always)]
pub fn run(thread: &mut Thread, it: &Instruction, mask: u32, predicate: u32) -> Outcome {
    use Operation::*;
    let channels = usize::from(it.channels);
    let logical = matches!(it.operation, And | Or | Xor | Not);
    let count = crate::isa::sources(it.operation, it.condition);
    let [first, second, third] = &it.source;
    let a = thread.integers(first, channels, logical)?;
    let b = if count > 1 { thread.integers(second, channels, logical)? } else { [0; 32] };
    let c = if count > 2 { thread.integers(third, channels, logical)? } else { [0; 32] };
    let wide = it.to.kind.bytes() == 8 || first.kind.bytes() == 8;
    let bits: u32 = if wide { 64 } else { 32 };
    macro_rules! each {
        (|$k:ident| $value:expr) => {{
            let mut row: Row<i64> = [0; 32];
            (0..channels).for_each(|$k| row[$k] = $value);
            row
        }};
    }
    // Bits of the first source without its sign.
    let plain = |value: i64| if first.kind.bytes() == 8 { value as u64 } else { value as u64 & 0xffff_ffff };
    let unsigned = |value: i64| match first.kind.bytes() {
        1 => value as u64 & 0xff,
        2 => value as u64 & 0xffff,
        4 => value as u64 & 0xffff_ffff,
        _ => value as u64,
    };
    let row = match it.operation {
        Mov => a,
        Not => each!(|k| !a[k]),
        And => each!(|k| a[k] & b[k]),
        Or => each!(|k| a[k] | b[k]),
        Xor => each!(|k| a[k] ^ b[k]),
        Add => each!(|k| a[k].wrapping_add(b[k])),
        Add3 => each!(|k| a[k].wrapping_add(b[k]).wrapping_add(c[k])),
        Mul => each!(|k| a[k].wrapping_mul(b[k])),
        Mad => each!(|k| a[k].wrapping_add(b[k].wrapping_mul(c[k]))),
        Avg => each!(|k| (a[k] + b[k] + 1) >> 1),
        Shl => each!(|k| ((a[k] as u64) << (b[k] as u32 % bits)) as i64),
        Shr => each!(|k| (unsigned(a[k]) >> (b[k] as u32 % bits)) as i64),
        Asr => each!(|k| a[k] >> (b[k] as u32 % bits)),
        Rol if !wide => each!(|k| (a[k] as u32).rotate_left(b[k] as u32 % 32).into()),
        Ror if !wide => each!(|k| (a[k] as u32).rotate_right(b[k] as u32 % 32).into()),
        Bfrev => each!(|k| (a[k] as u32).reverse_bits().into()),
        Cbit => each!(|k| plain(a[k]).count_ones().into()),
        Lzd => each!(|k| (a[k] as u32).leading_zeros().into()),
        Fbl => each!(|k| if a[k] as u32 == 0 { -1 } else { (a[k] as u32).trailing_zeros().into() }),
        Fbh => each!(|k| {
            let value = if first.kind.is_signed() && a[k] < 0 { !(a[k] as u32) } else { a[k] as u32 };
            if value == 0 { -1 } else { value.leading_zeros().into() }
        }),
        Bfe => each!(|k| {
            let (width, offset) = (a[k] as u32 & 31, b[k] as u32 & 31);
            let value = c[k] as u32;
            let left = 32u32.saturating_sub(width + offset);
            match (width, third.kind.is_signed()) {
                (0, _) => 0,
                // Beyond the last bit the width ends there.
                (_, true) => ((value << left) as i32 >> (32 - width.min(32 - offset))).into(),
                (_, false) => (value << left >> (32 - width.min(32 - offset))).into(),
            }
        }),
        Bfi1 => each!(|k| {
            let (width, offset) = (a[k] as u32 & 31, b[k] as u32 & 31);
            (((1u32 << width) - 1) << offset).into()
        }),
        Bfn => each!(|k| {
            let table = it.message.function;
            (0..8).filter(|at| table >> at & 1 != 0).fold(0, |bits, at| {
                let of = |value: i64, by: u32| if at >> by & 1 != 0 { value } else { !value };
                bits | of(a[k], 0) & of(b[k], 1) & of(c[k], 2)
            })
        }),
        Bfi2 => each!(|k| a[k] & b[k] | !a[k] & c[k]),
        Dp4a => each!(|k| {
            let part = |kind: Type, value: i64, at: usize| {
                let byte = (value >> (8 * at)) as u8;
                if kind.is_signed() { i64::from(byte as i8) } else { byte.into() }
            };
            (0..4).fold(a[k], |sum, at| sum + part(second.kind, b[k], at) * part(third.kind, c[k], at))
        }),
        Addc | Subb => {
            let add = it.operation == Addc;
            for k in 0..channels {
                let (x, y) = (a[k] as u32, b[k] as u32);
                thread.accumulators[k] = u64::from(if add { x.overflowing_add(y).1 } else { x < y });
            }
            let out = each!(|k| if add { a[k].wrapping_add(b[k]) } else { a[k].wrapping_sub(b[k]) });
            let it = Instruction { accumulate: false, ..*it };
            return thread.put_integers(&it, mask, out);
        }
        Mac => {
            let sum = thread.accumulators;
            each!(|k| (sum[k] as i64).wrapping_add(a[k].wrapping_mul(b[k])))
        }
        Mach => {
            // The accumulator has the product with the lower half of the second source; the upper
            // half of it is added here, and what is above 32 bits is the result.
            let mut out = [0; 32];
            for k in 0..channels {
                let upper =
                    if second.kind.is_signed() { i64::from(b[k] as i32 >> 16) } else { i64::from(b[k] as u32 >> 16) };
                let sum = (thread.accumulators[k] as i64).wrapping_add(a[k].wrapping_mul(upper) << 16);
                thread.accumulators[k] = sum as u64;
                out[k] = sum >> 32;
            }
            let it = Instruction { accumulate: false, ..*it };
            return thread.put_integers(&it, mask, out);
        }
        Cmp | Cmpn => {
            let mut flags = 0;
            for k in 0..channels {
                let holds = compare_integers(it, a[k], b[k]);
                flags |= u32::from(holds.ok_or_else(|| Trap::missing("this condition"))?) << k;
            }
            return put_comparison(thread, it, mask, flags);
        }
        Sel => {
            let chosen = if it.condition == 0 {
                predicate
            } else {
                let mut chosen = 0;
                for k in 0..channels {
                    let holds = compare_integers(it, a[k], b[k]).ok_or_else(|| Trap::missing("this condition"))?;
                    chosen |= u32::from(holds) << k;
                }
                chosen
            };
            let out = each!(|k| if chosen >> k & 1 != 0 { a[k] } else { b[k] });
            return thread.put_integers(&Instruction { condition: 0, ..*it }, mask, out);
        }
        Csel => {
            let mut out = [0; 32];
            for k in 0..channels {
                let holds = compare(it.condition, &c[k], &0).ok_or_else(|| Trap::missing("this condition"))?;
                out[k] = if holds { a[k] } else { b[k] };
            }
            return thread.put_integers(&Instruction { condition: 0, ..*it }, mask, out);
        }
        _ => return Err(Trap::missing("this operation of integers")),
    };
    thread.put_integers(it, mask, row)
}

/// Whether a condition holds between two sources: those of 64 bits without a sign have them all.
#[inline(always)]
fn compare_integers(it: &Instruction, a: i64, b: i64) -> Option<bool> {
    if it.source[0].kind == Type::UQ && it.source[1].kind == Type::UQ {
        compare(it.condition, &(a as u64), &(b as u64))
    } else {
        compare(it.condition, &a, &b)
    }
}

/// Writes what a comparison found: its flags, and all bits or none to the destination.
///
/// # Errors
///
/// As those of [`Thread::put`].
#[inline(always)]
pub fn put_comparison(thread: &mut Thread, it: &Instruction, mask: u32, flags: u32) -> Outcome {
    thread.set_flags(it, mask, flags);
    if it.to.place == Place::Null {
        return Ok(());
    }
    let mut row = [0; 32];
    (0..usize::from(it.channels)).for_each(|k| row[k] = if flags >> k & 1 != 0 { u64::MAX } else { 0 });
    thread.put(&it.to, it.channels.into(), mask, &row)
}

/// Division of integers by the math unit: the quotient or the remainder, to zero.
///
/// # Errors
///
/// What is missing here.
pub fn divide(thread: &mut Thread, it: &Instruction, mask: u32) -> Outcome {
    let channels = usize::from(it.channels);
    let a = thread.integers(&it.source[0], channels, false)?;
    let b = thread.integers(&it.source[1], channels, false)?;
    let signed = it.to.kind.is_signed();
    let mut row = [0; 32];
    for k in 0..channels {
        // A division by zero gives all bits, and the dividend as what is left.
        let (quotient, rest) = if b[k] == 0 {
            let most = match (signed, a[k] < 0) {
                (false, _) => i64::from(u32::MAX),
                (true, false) => i64::from(i32::MAX),
                (true, true) => i64::from(i32::MIN),
            };
            (most, a[k])
        } else {
            (a[k] / b[k], a[k] % b[k])
        };
        row[k] = extend(it.to.kind, if it.condition == 12 { quotient } else { rest } as u64);
    }
    thread.put_integers(&Instruction { condition: 0, ..*it }, mask, row)
}
