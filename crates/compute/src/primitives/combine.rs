//! The operations that combine contributions to one element.

use dml_kernel::{Builder, ScalarType, Value, Var};

/// The operation that combines contributions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The last one.
    Last,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Maximum; NaN if any is NaN.
    Max,
    /// Minimum; NaN if any is NaN.
    Min,
    /// Sum divided by the number of contributions (integers round down).
    Mean,
}

impl Combine {
    /// The identity element.
    pub fn identity(self, b: &Builder, scalar: ScalarType) -> Value<'_> {
        let max = self == Combine::Max;
        match self {
            Combine::Mul => b.constant_of(scalar, 1.0),
            Combine::Max | Combine::Min => match scalar {
                s if s.is_float() => b.float(s, if max { f64::NEG_INFINITY } else { f64::INFINITY }),
                ScalarType::I32 => b.i32(if max { i32::MIN } else { i32::MAX }),
                ScalarType::I64 => b.int(scalar, if max { i64::MIN } else { i64::MAX } as u64),
                s => b.int(s, if max { 0 } else { u64::MAX }),
            },
            _ => b.constant_of(scalar, 0.0),
        }
    }

    /// Combines two contributions, in this order.
    pub fn apply<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        match self {
            Combine::Last => y,
            Combine::Add | Combine::Mean => x + y,
            Combine::Mul => x * y,
            Combine::Max => (x.is_nan() | x.gt(y)).select(x, y),
            Combine::Min => (x.is_nan() | x.lt(y)).select(x, y),
        }
    }

    /// The result of combining `count` contributions.
    pub fn result<'b>(self, sum: Var<'b>, count: Var<'b>) -> Value<'b> {
        let sum = sum.get();
        if self != Combine::Mean {
            return sum;
        }
        let count = count.get().cast(sum.scalar());
        let quotient = sum / count;
        if sum.scalar().is_float() {
            return quotient;
        }
        let down = sum.lt(0) & (quotient * count).ne(sum);
        down.select(quotient - 1, quotient)
    }
}
