//! Operations on scalars in 64-bit words. The high half of a 32-bit number's word is zero.

use crate::ir::Atomic;
use crate::types::ScalarType;
use half::f16;

pub(super) fn f32_(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

pub(super) fn f64_(word: u64) -> f64 {
    f64::from_bits(word)
}

pub(super) fn bits32(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// Clears the high bits of a word of a 32-bit type.
pub(super) fn narrow(s: ScalarType, word: u64) -> u64 {
    if s.bytes() == 4 { word & 0xffff_ffff } else { word }
}

pub(super) fn signed(s: ScalarType, word: u64) -> i64 {
    if s.bytes() == 4 { i64::from(word as u32 as i32) } else { word as i64 }
}

pub(super) fn less(s: ScalarType, a: u64, b: u64) -> bool {
    match s {
        ScalarType::F32 => f32_(a) < f32_(b),
        ScalarType::F64 => f64_(a) < f64_(b),
        s if s.is_signed() => signed(s, a) < signed(s, b),
        _ => a < b,
    }
}

pub(super) fn atomic(op: Atomic, s: ScalarType, old: u64, value: u64) -> u64 {
    match op {
        Atomic::Add => narrow(s, old.wrapping_add(value)),
        Atomic::Min if less(s, value, old) => value,
        Atomic::Max if less(s, old, value) => value,
        Atomic::Min | Atomic::Max => old,
        Atomic::And => old & value,
        Atomic::Or => old | value,
        Atomic::Xor => old ^ value,
        Atomic::Exchange => value,
    }
}

/// The bits of a float as an f16, without the payload of a NaN.
pub(super) fn half(x: f32) -> u64 {
    let bits = f16::from_f32(x).to_bits();
    u64::from(if x.is_nan() { bits & 0x8000 | 0x7e00 } else { bits })
}
