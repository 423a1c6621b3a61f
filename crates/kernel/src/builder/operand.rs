//! Operands of expressions: values, and Rust numbers.

use super::{Builder, Value};
use crate::types::ScalarType;

/// An operand of an expression: a value, or a Rust number, which takes the other operand's type.
pub trait Operand<'b> {
    /// The operand as a value of type `like`.
    fn value(self, b: &'b Builder, like: ScalarType) -> Value<'b>;
}

impl<'b> Operand<'b> for Value<'b> {
    fn value(self, _: &'b Builder, _: ScalarType) -> Value<'b> {
        self
    }
}

macro_rules! number_operand {
    ($($number:ty: $int:expr),*) => {
        $(impl<'b> Operand<'b> for $number {
            fn value(self, b: &'b Builder, like: ScalarType) -> Value<'b> {
                match like {
                    ScalarType::Bool => b.bool(self != (0 as $number)),
                    s if s.is_float() => b.float(s, self as f64),
                    s => b.int(s, $int(self)),
                }
            }
        })*
    };
}

number_operand!(
    f64: |x| x as i64 as u64,
    f32: |x| x as i64 as u64,
    i32: |x| x as i64 as u64,
    u32: |x| x as u64,
    i64: |x| x as u64,
    u64: |x| x
);

impl<'b> Operand<'b> for bool {
    fn value(self, b: &'b Builder, _: ScalarType) -> Value<'b> {
        b.bool(self)
    }
}
