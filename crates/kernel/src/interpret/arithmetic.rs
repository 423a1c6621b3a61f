//! Arithmetic, comparisons and conversions, on all invocations at a time.

use super::machine::Machine;
use super::word::{bits32, less, narrow, signed};
use crate::ir::{Binary, Compare, Unary, ValueId};
use crate::types::ScalarType;

impl Machine<'_, '_, '_> {
    /// Fused multiply-add.
    pub(super) fn fma(&mut self, id: ValueId, s: ScalarType, operands: [ValueId; 3]) {
        let n = self.subnormals;
        match s {
            ScalarType::F32 => {
                self.registers.map3(id, operands, |a, b, c| n.bits32(n.f32(a).mul_add(n.f32(b), n.f32(c))));
            }
            _ => self.registers.map3(id, operands, |a, b, c| n.bits64(n.f64(a).mul_add(n.f64(b), n.f64(c)))),
        }
    }

    pub(super) fn unary(&mut self, id: ValueId, op: Unary, s: ScalarType, a: ValueId) {
        let n = self.subnormals;
        macro_rules! float {
            ($f:ident) => {
                match s {
                    ScalarType::F32 => self.registers.map1(id, a, |a| bits32(n.f32(a).$f())),
                    _ => self.registers.map1(id, a, |a| n.f64(a).$f().to_bits()),
                }
            };
        }
        match op {
            Unary::Neg if s == ScalarType::F32 => self.registers.map1(id, a, |a| bits32(n.f32(a)) ^ 1 << 31),
            Unary::Neg if s == ScalarType::F64 => self.registers.map1(id, a, |a| n.f64(a).to_bits() ^ 1 << 63),
            Unary::Neg => self.registers.map1(id, a, |a| narrow(s, a.wrapping_neg())),
            Unary::Not if s == ScalarType::Bool => self.registers.map1(id, a, |a| a ^ 1),
            Unary::Not => self.registers.map1(id, a, |a| narrow(s, !a)),
            Unary::Abs => float!(abs),
            Unary::Floor => float!(floor),
            Unary::Ceil => float!(ceil),
            Unary::Trunc => float!(trunc),
            Unary::Round => float!(round_ties_even),
            Unary::CountOneBits => self.registers.map1(id, a, |a| u64::from(a.count_ones())),
            Unary::HighestBit => {
                self.registers.map1(id, a, |a| u64::from((a as u32).checked_ilog2().unwrap_or(u32::MAX)))
            }
            Unary::FastExp2 => float!(exp2),
        }
    }

    pub(super) fn binary(&mut self, id: ValueId, op: Binary, s: ScalarType, a: ValueId, b: ValueId) {
        let n = self.subnormals;
        macro_rules! arithmetic {
            ($operator:tt, $wrapping:ident) => {
                match s {
                    ScalarType::F32 => self.registers.map2(id, a, b, |a, b| n.bits32(n.f32(a) $operator n.f32(b))),
                    ScalarType::F64 => self.registers.map2(id, a, b, |a, b| n.bits64(n.f64(a) $operator n.f64(b))),
                    s if s.bytes() == 4 => self.registers.map2(id, a, b, |a, b| a.$wrapping(b) & 0xffff_ffff),
                    _ => self.registers.map2(id, a, b, |a, b| a.$wrapping(b)),
                }
            };
        }
        let width = u64::from(s.bytes()) * 8;
        match op {
            Binary::Add => arithmetic!(+, wrapping_add),
            Binary::Sub => arithmetic!(-, wrapping_sub),
            Binary::Mul => arithmetic!(*, wrapping_mul),
            Binary::Div if s.is_signed() => self.registers.map2(id, a, b, |a, b| {
                let (a, b) = (signed(s, a), signed(s, b));
                narrow(s, if b == 0 { 0 } else { a.wrapping_div(b) as u64 })
            }),
            Binary::Div => self.registers.map2(id, a, b, |a, b| a.checked_div(b).unwrap_or(0)),
            Binary::Rem if s.is_signed() => self.registers.map2(id, a, b, |a, b| {
                let (a, b) = (signed(s, a), signed(s, b));
                narrow(s, if b == 0 { 0 } else { a.wrapping_rem(b) as u64 })
            }),
            Binary::Rem => self.registers.map2(id, a, b, |a, b| a.checked_rem(b).unwrap_or(0)),
            Binary::And => self.registers.map2(id, a, b, |a, b| a & b),
            Binary::Or => self.registers.map2(id, a, b, |a, b| a | b),
            Binary::Xor => self.registers.map2(id, a, b, |a, b| a ^ b),
            // Shifts by the width or more are undefined in the language; here the low bits of the
            // count are used.
            Binary::Shl => self.registers.map2(id, a, b, |a, b| narrow(s, a << (b & (width - 1)))),
            Binary::Shr if s.is_signed() => {
                self.registers.map2(id, a, b, |a, b| narrow(s, (signed(s, a) >> (b & (width - 1))) as u64))
            }
            Binary::Shr => self.registers.map2(id, a, b, |a, b| a >> (b & (width - 1))),
            Binary::Min => self.registers.map2(id, a, b, |a, b| if less(s, b, a) { b } else { a }),
            Binary::Max => self.registers.map2(id, a, b, |a, b| if less(s, a, b) { b } else { a }),
            Binary::MulHigh => self.registers.map2(id, a, b, |a, b| (a * b) >> 32),
        }
    }

    pub(super) fn compare(&mut self, id: ValueId, op: Compare, s: ScalarType, a: ValueId, b: ValueId) {
        let n = self.subnormals;
        macro_rules! with {
            ($view:expr) => {{
                let view = $view;
                match op {
                    Compare::Eq => self.registers.map2(id, a, b, |a, b| u64::from(view(a) == view(b))),
                    Compare::Ne => self.registers.map2(id, a, b, |a, b| u64::from(view(a) != view(b))),
                    Compare::Lt => self.registers.map2(id, a, b, |a, b| u64::from(view(a) < view(b))),
                    Compare::Le => self.registers.map2(id, a, b, |a, b| u64::from(view(a) <= view(b))),
                    Compare::Gt => self.registers.map2(id, a, b, |a, b| u64::from(view(a) > view(b))),
                    Compare::Ge => self.registers.map2(id, a, b, |a, b| u64::from(view(a) >= view(b))),
                }
            }};
        }
        match s {
            ScalarType::F32 => with!(|w| n.f32(w)),
            ScalarType::F64 => with!(|w| n.f64(w)),
            s if s.is_signed() => with!(|w| signed(s, w)),
            _ => with!(|w: u64| w),
        }
    }

    pub(super) fn cast(&mut self, id: ValueId, from: ScalarType, to: ScalarType, a: ValueId) {
        let n = self.subnormals;
        match (from, to) {
            (ScalarType::F32, ScalarType::F64) => self.registers.map1(id, a, |a| f64::from(n.f32(a)).to_bits()),
            (ScalarType::F64, ScalarType::F32) => self.registers.map1(id, a, |a| n.bits32(n.f64(a) as f32)),
            (from, to) if from.is_float() => self.registers.map1(id, a, |a| {
                let x = if from == ScalarType::F32 { f64::from(n.f32(a)) } else { n.f64(a) };
                match to {
                    ScalarType::I32 => u64::from(x as i32 as u32),
                    ScalarType::U32 => u64::from(x as u32),
                    ScalarType::I64 => x as i64 as u64,
                    _ => x as u64,
                }
            }),
            (from, ScalarType::F32) if from.is_signed() => {
                self.registers.map1(id, a, |a| bits32(signed(from, a) as f32))
            }
            (_, ScalarType::F32) => self.registers.map1(id, a, |a| bits32(a as f32)),
            (from, ScalarType::F64) if from.is_signed() => {
                self.registers.map1(id, a, |a| (signed(from, a) as f64).to_bits())
            }
            (_, ScalarType::F64) => self.registers.map1(id, a, |a| (a as f64).to_bits()),
            (from, to) if from.is_signed() => self.registers.map1(id, a, |a| narrow(to, signed(from, a) as u64)),
            (_, to) => self.registers.map1(id, a, |a| narrow(to, a)),
        }
    }
}
