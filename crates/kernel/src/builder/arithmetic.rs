//! Arithmetic: methods and operators of values.

use super::{Operand, Value};
use crate::ir::{Binary, Inst, Unary};

impl<'b> Value<'b> {
    pub(super) fn unary(self, op: Unary) -> Value<'b> {
        self.b.def(self.ty, Inst::Unary(op, self.id))
    }

    pub(super) fn binary(self, op: Binary, other: impl Operand<'b>) -> Value<'b> {
        let other = self.with(other);
        self.b.def(self.ty, Inst::Binary(op, self.id, other.id))
    }

    /// Absolute value; the smallest integer is unchanged.
    pub fn abs(self) -> Value<'b> {
        if self.scalar().is_float() {
            return self.unary(Unary::Abs);
        }
        self.b.function("abs", &[self], || self.lt(0).select(-self, self))
    }

    /// The largest integer that is not above the value.
    pub fn floor(self) -> Value<'b> {
        self.unary(Unary::Floor)
    }

    /// The smallest integer that is not below the value.
    pub fn ceil(self) -> Value<'b> {
        self.unary(Unary::Ceil)
    }

    /// The integer part, rounded toward zero.
    pub fn trunc(self) -> Value<'b> {
        self.unary(Unary::Trunc)
    }

    /// The nearest integer, halves to even.
    pub fn round(self) -> Value<'b> {
        self.unary(Unary::Round)
    }

    /// The number of set bits of an integer.
    pub fn count_ones(self) -> Value<'b> {
        self.unary(Unary::CountOneBits)
    }

    /// Index of the highest set bit of a u32; all ones for 0.
    pub fn highest_bit(self) -> Value<'b> {
        self.unary(Unary::HighestBit)
    }

    /// `2^x` of an f32 by the adapter's instruction, with different bits on different adapters: see
    /// [`Unary::FastExp2`].
    pub fn fast_exp2(self) -> Value<'b> {
        self.unary(Unary::FastExp2)
    }

    /// High half of the 64-bit product of two u32.
    pub fn mul_high(self, other: impl Operand<'b>) -> Value<'b> {
        self.binary(Binary::MulHigh, other)
    }

    /// `self * m + a`; the driver chooses whether it is fused. For inner products only.
    pub fn fma(self, m: Value<'b>, a: Value<'b>) -> Value<'b> {
        self.b.def(self.ty, Inst::Fma(self.id, m.id, a.id))
    }
}

impl<'b> std::ops::Neg for Value<'b> {
    type Output = Value<'b>;
    fn neg(self) -> Value<'b> {
        self.unary(Unary::Neg)
    }
}

impl<'b> std::ops::Not for Value<'b> {
    type Output = Value<'b>;
    fn not(self) -> Value<'b> {
        self.unary(Unary::Not)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $body:expr) => {
        impl<'b, R: Operand<'b>> std::ops::$trait<R> for Value<'b> {
            type Output = Value<'b>;
            fn $method(self, other: R) -> Value<'b> {
                let other = self.with(other);
                $body(self, other)
            }
        }
        operator!(@reverse $trait, $method, f64, f32, i32, u32, i64, u64);
    };
    (@reverse $trait:ident, $method:ident, $($number:ty),*) => {
        $(impl<'b> std::ops::$trait<Value<'b>> for $number {
            type Output = Value<'b>;
            fn $method(self, other: Value<'b>) -> Value<'b> {
                std::ops::$trait::$method(self.value(other.b, other.scalar()), other)
            }
        })*
    };
}

operator!(Add, add, |a: Value<'b>, b| a.binary(Binary::Add, b));
operator!(Sub, sub, |a: Value<'b>, b| a.binary(Binary::Sub, b));
operator!(Mul, mul, |a: Value<'b>, b| a.binary(Binary::Mul, b));
operator!(Div, div, |a: Value<'b>, b| {
    if a.scalar().is_float() { crate::math::div(a, b) } else { a.binary(Binary::Div, b) }
});
operator!(Rem, rem, |a: Value<'b>, b| a.binary(Binary::Rem, b));
operator!(BitAnd, bitand, |a: Value<'b>, b| a.binary(Binary::And, b));
operator!(BitOr, bitor, |a: Value<'b>, b| a.binary(Binary::Or, b));
operator!(BitXor, bitxor, |a: Value<'b>, b| a.binary(Binary::Xor, b));
operator!(Shl, shl, |a: Value<'b>, b| a.binary(Binary::Shl, b));
operator!(Shr, shr, |a: Value<'b>, b| a.binary(Binary::Shr, b));
