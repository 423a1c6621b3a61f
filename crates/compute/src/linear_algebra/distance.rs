//! Distances between all pairs of rows in any norm, and their gradients.
//!
//! Each is a reduction over views in which the rows of one side, or the columns, are repeated.
//! Differences are computed before squaring, so that rows that are close together lose no digits.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Rows of two sides, both `[.., rows of the first, rows of the second, columns]`, each expanded
/// over the other's rows, of one floating dtype.
pub struct Pair<'t> {
    /// The rows of the first side.
    pub first: &'t View,
    /// The rows of the second side.
    pub second: &'t View,
}

impl Pair<'_> {
    /// Writes the `p`-norm of the difference of each pair of rows:
    /// `[.., rows of the first, rows of the second]`.
    pub fn distances(&self, cx: &Context, p: f64, out: &View) -> Result<()> {
        let dtype = accumulator(self.first.dtype);
        let fold = Distance { order: Order::of(p), scalar: dtype.compute() };
        let axes = Axes::of_dims(&[-1], self.first.dim(), false);
        let inputs = [self.first, self.second];
        let numbers = power(dtype, p);
        reduce(cx, &fold, &Reduction { inputs: &inputs, outs: &[out], axes, tables: &[], numbers: &numbers })
    }

    /// Writes the gradient of the first rows, `[.., rows of the first, columns]`. `distance` and
    /// its gradient `grad` are expanded to the shape of the rows.
    pub fn gradient(&self, cx: &Context, p: f64, grad: &View, distance: &View, out: &View) -> Result<()> {
        let dtype = accumulator(self.first.dtype);
        let fold = Gradient { order: Order::of(p), scalar: dtype.compute() };
        let axes = Axes::of_dims(&[-2], self.first.dim(), false);
        let inputs = [grad, self.first, self.second, distance];
        let numbers = power(dtype, p);
        reduce(cx, &fold, &Reduction { inputs: &inputs, outs: &[out], axes, tables: &[], numbers: &numbers })
    }
}

/// The order of the norm.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Order {
    Zero,
    One,
    Two,
    Infinity,
    General,
}

impl Order {
    fn of(p: f64) -> Order {
        match p {
            0.0 => Order::Zero,
            1.0 => Order::One,
            2.0 => Order::Two,
            f64::INFINITY => Order::Infinity,
            _ => Order::General,
        }
    }
}

/// Norm of the difference of two rows; `numbers[0]` is p.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Distance {
    order: Order,
    scalar: ScalarType,
}

impl Fold for Distance {
    fn name(&self) -> &'static str {
        "distance"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0)]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let size = (elements[0].cast(self.scalar) - elements[1].cast(self.scalar)).abs();
        smallvec![match self.order {
            Order::Zero => (size.is_nan() | size.eq(0.0)).select(size, 1.0),
            Order::Two => size * size,
            Order::General => math::pow(size, s.numbers[0]),
            Order::One | Order::Infinity => size,
        }]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let (x, y) = (x[0], y[0]);
        smallvec![if self.order == Order::Infinity { (x.gt(y) | x.is_nan()).select(x, y) } else { x + y }]
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![match self.order {
            Order::Two => math::sqrt(x[0]),
            Order::General => math::pow(x[0], 1.0 / s.numbers[0]),
            _ => x[0],
        }]
    }
}

/// Sums the gradient over the rows of the other side: inputs are the gradient, both rows and the
/// distance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gradient {
    order: Order,
    scalar: ScalarType,
}

impl Fold for Gradient {
    fn name(&self) -> &'static str {
        "distance_backward"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0)]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [grad, x, y, distance] = [0, 1, 2, 3].map(|i| elements[i].cast(self.scalar));
        let difference = x - y;
        let size = difference.abs();
        let zero = grad.like(0.0);
        let signed = difference.gt(0.0).select(grad, difference.lt(0.0).select(-grad, zero));
        smallvec![match self.order {
            Order::Zero => zero,
            Order::One => signed,
            Order::Two => distance.eq(0.0).select(zero, grad * difference / distance),
            // An infinite difference cannot be distinguished from an infinite distance: NaN, as on
            // the CPU.
            Order::Infinity =>
                (size - distance).is_nan().select(size - distance, size.eq(distance).select(signed, zero)),
            Order::General => {
                let power: Value = s.numbers[0] - 1.0;
                let slope = signed * math::pow(size, power) / math::pow(distance, power);
                // The derivative is 0 for equal rows, and where a power below 1 has none.
                let flat = distance.eq(0.0) | size.eq(0.0) & power.lt(0.0);
                flat.select(zero, slope)
            }
        }]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// The parameters of the folds: the order itself, if the code uses it.
fn power(dtype: DType, p: f64) -> SmallVec<[(DType, Number); 1]> {
    match Order::of(p) {
        Order::General => smallvec![(dtype, Number::Double(p))],
        _ => SmallVec::new(),
    }
}

/// Copies between a symmetric matrix (whose diagonal is 0) and a vector of its elements above the
/// diagonal.
pub fn pairs(cx: &Context, square: &View, row: &View, n: i64, to_row: bool) -> Result<()> {
    let spec = Pairs { dtype: square.dtype, to_row, index: index_type(n * n) };
    let (read, written) = if to_row { (square, row) } else { (row, square) };
    cx.run_threads(&spec, &PairArguments { read, written, n }, (n * n) as u64)
}

/// Specialisation of [`pairs`]: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pairs {
    dtype: DType,
    to_row: bool,
    index: ScalarType,
}

parameters! {
    Pairs as s => PairArguments, PairParameters {
        written: Output = s.dtype,
        read: Input = s.dtype,
        n: Index = s.index,
    }
}

impl KernelSpec for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn write<'b>(&self, b: &'b Builder, PairParameters { written, read, n }: PairParameters<'b>) {
        let at = linear_id(b, self.index);
        let i = at / n;
        let j = at - i * n;
        b.if_(i.lt(n), || {
            let (low, high) = (i.min(j), i.max(j));
            // Rows before `low` have n - 1, n - 2, .. pairs.
            let pair = low * (2 * n - low - 1) / 2 + high - low - 1;
            if self.to_row {
                b.if_(i.lt(j), || written.store(pair, read.load(at)));
            } else {
                let value = b.var(b.float(self.dtype.compute(), 0.0));
                b.if_(i.ne(j), || value.set(read.load(pair)));
                written.store(at, value.get());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for p in [0.0, 1.0, 2.0, 3.5, f64::INFINITY] {
            for dtype in [DType::F32, DType::F64] {
                let (order, scalar) = (Order::of(p), dtype.compute());
                let numbers: Vec<DType> = power(dtype, p).iter().map(|n| n.0).collect();
                validate(&Distance { order, scalar }, &[dtype; 2], &[dtype], &numbers);
                validate(&Gradient { order, scalar }, &[dtype; 4], &[dtype], &numbers);
            }
        }
        for (to_row, index) in [(true, ScalarType::U32), (false, ScalarType::U64)] {
            accepted(&Pairs { dtype: DType::F16, to_row, index }.build());
        }
    }
}
