//! Vector norms.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::math::comparison::less;
use dml_kernel::{Builder, DType, ScalarType, Value, convert, math};
use smallvec::{SmallVec, smallvec};

/// The order of a norm.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Number of elements that are not 0.
    Count,
    /// Sum of magnitudes.
    One,
    /// Square root of the sum of squares.
    Two,
    /// Largest magnitude.
    Largest,
    /// Smallest magnitude.
    Smallest,
    /// `(sum |x|^p)^(1/p)`
    General,
}

impl Order {
    /// The order `p`.
    pub fn of(p: f64) -> Order {
        match p {
            0.0 => Order::Count,
            1.0 => Order::One,
            2.0 => Order::Two,
            f64::INFINITY => Order::Largest,
            f64::NEG_INFINITY => Order::Smallest,
            _ => Order::General,
        }
    }

    /// The identity of [`join`](Self::join).
    pub fn identity(self, b: &Builder, scalar: ScalarType) -> Value<'_> {
        b.float(scalar, if self == Order::Smallest { f64::INFINITY } else { 0.0 })
    }

    /// The contribution of an element; `p` is used for [`Order::General`] only.
    pub fn term<'b>(self, x: Value<'b>, p: Value<'b>) -> Value<'b> {
        match self {
            Order::Count => x.cast(ScalarType::Bool).cast(x.scalar()),
            Order::Two => x * x,
            Order::General => math::pow(x.abs(), p),
            _ => x.abs(),
        }
    }

    /// `magnitude` if `lone` (there is a single element, which is its own norm) and the order is 2,
    /// where powers may be out of range; otherwise `power`. Not for [`Order::General`].
    pub fn of_lone<'b>(self, lone: Value<'b>, magnitude: Value<'b>, power: Value<'b>) -> Value<'b> {
        if self == Order::Two { lone.select(magnitude, power) } else { power }
    }

    /// Combines two contributions.
    pub fn join<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        match self {
            Order::Largest => (less(y, x) | x.is_nan()).select(x, y),
            Order::Smallest => (less(x, y) | x.is_nan()).select(x, y),
            _ => x + y,
        }
    }

    /// The norm from the combined contributions.
    pub fn project<'b>(self, x: Value<'b>, p: Value<'b>) -> Value<'b> {
        match self {
            Order::Two => math::sqrt(x),
            Order::General => math::pow(x, 1.0 / p),
            _ => x,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Norm {
    order: Order,
    input: DType,
    dtype: DType,
}

impl Norm {
    fn scalar(&self) -> ScalarType {
        accumulator(self.dtype).compute()
    }

    /// The number p, if it is passed.
    fn power<'b>(&self, s: &FoldScope<'b>, like: Value<'b>) -> Value<'b> {
        s.numbers.first().copied().unwrap_or(like)
    }
}

impl Fold for Norm {
    fn name(&self) -> &'static str {
        "vector_norm"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar()]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![self.order.identity(s.b, self.scalar())]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0];
        let x = if self.dtype == self.input { x } else { convert(x, self.dtype) };
        let x = x.cast(self.scalar());
        smallvec![self.order.term(x, self.power(s, x))]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![self.order.join(x[0], y[0])]
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![self.order.project(x[0], self.power(s, x[0]))]
    }
}

/// Norms of order `p` over some dimensions of a float tensor.
pub fn norms(cx: &Context, p: f64, input: &View, out: &View, axes: Axes) -> Result<()> {
    // The norm of a single element is its magnitude; its powers could be out of range.
    let lone = input.sizes.iter().enumerate().all(|(d, &n)| n == 1 || !axes.reduces(d));
    let order = if lone && p != 0.0 { Order::One } else { Order::of(p) };
    let fold = Norm { order, input: input.dtype, dtype: out.dtype };
    let power = [(accumulator(out.dtype), Number::Double(p))];
    let numbers = if order == Order::General { &power[..] } else { &[] };
    reduce(cx, &fold, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for p in [0.0, 1.0, 2.0, 3.5, f64::INFINITY, f64::NEG_INFINITY] {
            let fold = Norm { order: Order::of(p), input: DType::F32, dtype: DType::F32 };
            validate(&fold, &[DType::F32], &[DType::F32], &[DType::F32]);
        }
    }
}
