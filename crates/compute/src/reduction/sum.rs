//! Sums, means and products of elements, and the number of nonzero elements.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce::reduce;
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{DType, ScalarType, Value, convert};
use smallvec::{SmallVec, smallvec};

/// The operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Sum.
    Sum,
    /// Sum with NaN as 0.
    NanSum,
    /// Mean.
    Mean,
    /// Product.
    Prod,
}

/// Adds or multiplies elements converted to `dtype`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Accumulate {
    kind: Kind,
    input: DType,
    dtype: DType,
}

impl Fold for Accumulate {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Sum => "sum",
            Kind::NanSum => "nansum",
            Kind::Mean => "mean",
            Kind::Prod => "prod",
        }
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![accumulator(self.dtype).compute()]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        let one = if self.kind == Kind::Prod { 1.0 } else { 0.0 };
        smallvec![s.b.constant_of(accumulator(self.dtype).compute(), one)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0];
        let x = if self.kind == Kind::NanSum { x.is_nan().select(x.like(0.0), x) } else { x };
        // Elements of a 16-bit mean are rounded only to float32.
        let half = matches!(self.dtype, DType::F16 | DType::BF16);
        let dtype = if self.kind == Kind::Mean && half { DType::F32 } else { self.dtype };
        let x = if dtype == self.input { x } else { convert(x, dtype) };
        smallvec![x.cast(accumulator(self.dtype).compute())]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.kind == Kind::Prod { x[0] * y[0] } else { x[0] + y[0] }]
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.kind == Kind::Mean { x[0] / s.numbers[0] } else { x[0] }]
    }
}

/// Writes the sum of all elements to a 0-dim tensor.
pub fn total(cx: &Context, input: &View, out: &View) -> Result<()> {
    fold_sum(cx, Kind::Sum, input, out, Axes::all(false), input.dtype)
}

/// Writes the mean of all elements to a 0-dim tensor.
pub fn mean(cx: &Context, input: &View, out: &View) -> Result<()> {
    fold_sum(cx, Kind::Mean, input, out, Axes::all(false), input.dtype)
}

/// Reduces elements over `axes`, converted to `dtype` first. The result is rounded to the dtype of
/// `out` once.
pub fn fold_sum(cx: &Context, kind: Kind, input: &View, out: &View, axes: Axes, dtype: DType) -> Result<()> {
    let fold = Accumulate { kind, input: input.dtype, dtype };
    let count = [(accumulator(dtype), Number::Int(axes.extent(&input.sizes)))];
    let numbers = if kind == Kind::Mean { &count[..] } else { &[] };
    reduce(cx, &fold, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers })
}

/// Returns a new tensor with the sums of `input` along `axes`, of its dtype.
pub fn sum_new(cx: &Context, input: &View, axes: Axes) -> Result<View> {
    let out = cx.empty(input.dtype, &axes.sizes(&input.sizes))?;
    sum_into(cx, input, &out, axes)?;
    Ok(out)
}

/// Writes the sums of `input` along `axes` to a tensor that may have another dtype: they are
/// rounded once.
pub fn sum_into(cx: &Context, input: &View, out: &View, axes: Axes) -> Result<()> {
    fold_sum(cx, Kind::Sum, input, out, axes, input.dtype)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountNonzero;

impl Fold for CountNonzero {
    fn name(&self) -> &'static str {
        "count_nonzero"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![ScalarType::I64]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.int(ScalarType::I64, 0)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(ScalarType::Bool).cast(ScalarType::I64)]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// Writes the number of nonzero elements.
pub fn count_into(cx: &Context, input: &View, out: &View, axes: Axes) -> Result<()> {
    reduce(cx, &CountNonzero, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers: &[] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for kind in [Kind::Sum, Kind::NanSum, Kind::Prod] {
            for (input, dtype) in [(DType::F16, DType::F32), (DType::U8, DType::I64), (DType::F64, DType::F64)] {
                validate(&Accumulate { kind, input, dtype }, &[input], &[dtype], &[]);
            }
        }
        let dtype = DType::BF16;
        validate(&Accumulate { kind: Kind::Mean, input: dtype, dtype }, &[dtype], &[dtype], &[DType::F32]);
    }
}
