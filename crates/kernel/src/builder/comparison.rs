//! Comparisons, and the choice by a bool.

use super::{Operand, Value};
use crate::ir::{Binary, Compare, Inst};
use crate::types::{ScalarType, Type};

impl<'b> Value<'b> {
    fn compare(self, op: Compare, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        if self.scalar() == ScalarType::Bool {
            match op {
                Compare::Eq | Compare::Ne => {}
                Compare::Lt => return !self & other,
                Compare::Le => return !self | other,
                Compare::Gt => return self & !other,
                Compare::Ge => return self | !other,
            }
        }
        self.b.def(Type::scalar(ScalarType::Bool), Inst::Compare(op, self.id, other.id))
    }

    /// `self == other`
    pub fn eq(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Eq, other)
    }

    /// `self != other`; true for NaN.
    pub fn ne(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Ne, other)
    }

    /// `self < other`; false is less than true.
    pub fn lt(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Lt, other)
    }

    /// `self <= other`
    pub fn le(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Le, other)
    }

    /// `self > other`
    pub fn gt(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Gt, other)
    }

    /// `self >= other`
    pub fn ge(self, other: impl Operand<'b>) -> Value<'b> {
        self.compare(Compare::Ge, other)
    }

    /// For a bool: `a` where true, `b` elsewhere. Both are evaluated.
    pub fn select(self, a: Value<'b>, b: impl Operand<'b>) -> Value<'b> {
        let b = a.with(b);
        // Drivers replace a selection between constants such as -1.0 and 0.0 by arithmetic, and
        // lose the sign of zero. So the bits are selected.
        if let (Some(x), Some(y)) = (a.constant_bits(), b.constant_bits()) {
            let bits = self.b.def(Type::scalar(x.scalar()), Inst::Select(self.id, x.id, y.id));
            return bits.bitcast(a.ty.scalar);
        }
        self.b.def(a.ty, Inst::Select(self.id, a.id, b.id))
    }

    /// The bits of a float constant, as a constant.
    fn constant_bits(self) -> Option<Value<'b>> {
        let Inst::ConstFloat(bits) = self.b.state.borrow().kernel.values[self.id as usize].inst else {
            return None;
        };
        Some(self.b.int(self.scalar().unsigned(), bits))
    }

    /// The smaller of two values; `other` if `self` is NaN.
    pub fn min(self, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        if !self.scalar().is_float() {
            return self.binary(Binary::Min, other);
        }
        self.b.function("min", &[self, other], || self.lt(other).select(self, other))
    }

    /// The larger of two values; `other` if `self` is NaN.
    pub fn max(self, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        if !self.scalar().is_float() {
            return self.binary(Binary::Max, other);
        }
        self.b.function("max", &[self, other], || self.gt(other).select(self, other))
    }

    /// The larger of two f32; either operand if one is NaN. Cheaper than [`max`](Self::max).
    pub fn larger(self, other: Value<'b>) -> Value<'b> {
        self.b.def(self.ty, Inst::Larger(self.id, other.id))
    }
}
