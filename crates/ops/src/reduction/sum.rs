//! sum, nansum, mean, prod, count_nonzero.

use super::{Axes, Fold, Reduction, Scope, Values, reduce, sum_type};
use crate::check;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::{DType, Scalar, Value, convert};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::sum", |c| {
        let dtype = c.opt_dtype(1)?;
        sum(c, Kind::Sum, Axes::all(false), dtype, None)
    }),
    op("aten::sum.dim_IntList", |c| of_dims(c, Kind::Sum, None)),
    op("aten::sum.IntList_out", |c| of_dims(c, Kind::Sum, Some(4))),
    op("aten::nansum", |c| of_dims(c, Kind::NanSum, None)),
    op("aten::nansum.out", |c| of_dims(c, Kind::NanSum, Some(4))),
    op("aten::mean", |c| {
        let dtype = c.opt_dtype(1)?;
        sum(c, Kind::Mean, Axes::all(false), dtype, None)
    }),
    op("aten::mean.dim", |c| of_dims(c, Kind::Mean, None)),
    op("aten::mean.out", |c| of_dims(c, Kind::Mean, Some(4))),
    op("aten::prod", |c| {
        let dtype = c.opt_dtype(1)?;
        sum(c, Kind::Prod, Axes::all(false), dtype, None)
    }),
    op("aten::prod.dim_int", |c| prod_of_dim(c, None)),
    op("aten::prod.int_out", |c| prod_of_dim(c, Some(4))),
    op("aten::trace", trace),
    op("aten::count_nonzero", |c| {
        let dim = c.opt_scalar(1)?.map(Number::to_i64);
        count_nonzero(c, dim.as_slice())
    }),
    op("aten::count_nonzero.dim_IntList", |c| {
        let dims = c.ints(1)?;
        count_nonzero(c, dims)
    }),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Sum,
    NanSum,
    Mean,
    Prod,
}

/// Adds or multiplies elements converted to `dtype`.
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

    fn variant(&self) -> u32 {
        self.dtype as u32
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![sum_type(self.dtype)]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        let one = if self.kind == Kind::Prod { 1.0 } else { 0.0 };
        smallvec![s.b.constant_of(sum_type(self.dtype), one)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0];
        let x = if self.kind == Kind::NanSum { x.is_nan().select(x.like(0.0), x) } else { x };
        let x = if self.dtype == self.input { x } else { convert(x, self.dtype) };
        smallvec![x.cast(sum_type(self.dtype))]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.kind == Kind::Prod { x[0] * y[0] } else { x[0] + y[0] }]
    }

    fn finish<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.kind == Kind::Mean { x[0] / s.numbers[0] } else { x[0] }]
    }
}

/// `(self, dim, keepdim, dtype[, out])`
fn of_dims(call: &mut Call, kind: Kind, out: Option<usize>) -> Result<()> {
    let axes = Axes::of(call, call.opt_ints(1)?, call.tensor(0)?.dim(), call.flag(2)?)?;
    let dtype = call.opt_dtype(3)?;
    sum(call, kind, axes, dtype, out)
}

/// `prod(self, dim, keepdim, dtype[, out])`
fn prod_of_dim(call: &mut Call, out: Option<usize>) -> Result<()> {
    let axes = Axes::listed(call, &[call.int(1)?], call.tensor(0)?.dim(), call.flag(2)?)?;
    let dtype = call.opt_dtype(3)?;
    sum(call, Kind::Prod, axes, dtype, out)
}

fn sum(call: &mut Call, kind: Kind, axes: Axes, dtype: Option<DType>, out: Option<usize>) -> Result<()> {
    let input = call.tensor(0)?;
    let wanted = match out {
        Some(i) => {
            if let Some(dtype) = dtype {
                structured::check_dtype(call, Some(i), dtype)?;
            }
            Some(call.tensor(i)?.dtype)
        }
        None => dtype,
    };
    let dtype = match wanted {
        Some(d) => d,
        None if kind == Kind::Mean || input.dtype.is_float() => input.dtype,
        None => DType::I64,
    };
    if kind == Kind::Mean {
        check!(
            dtype.is_float(),
            Dtype,
            "mean(): could not infer output dtype. {} dtype must be either a floating point or complex dtype. Got: {dtype}",
            if wanted.is_some() { "Optional" } else { "Input" }
        );
    }
    let out = call.out(out, dtype, &axes.sizes(&input.sizes))?;
    fold_sum(call, kind, input, &out, axes, dtype)?;
    call.ret(out);
    Ok(())
}

/// The sum of all elements, into a 0-dim tensor.
pub fn total(call: &Call, input: &Tensor, out: &Tensor) -> Result<()> {
    fold_sum(call, Kind::Sum, input, out, Axes::all(false), input.dtype)
}

/// The mean of all elements, into a 0-dim tensor.
pub fn mean(call: &Call, input: &Tensor, out: &Tensor) -> Result<()> {
    fold_sum(call, Kind::Mean, input, out, Axes::all(false), input.dtype)
}

fn fold_sum(call: &Call, kind: Kind, input: &Tensor, out: &Tensor, axes: Axes, dtype: DType) -> Result<()> {
    let fold = Accumulate { kind, input: input.dtype, dtype };
    let count = [(accumulator_dtype(dtype), Number::Int(axes.extent(&input.sizes)))];
    let numbers = if kind == Kind::Mean { &count[..] } else { &[] };
    reduce(call, &fold, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers })
}

/// A new tensor with the sums of `input` along `axes`, of its dtype.
pub fn add_up(call: &Call, input: &Tensor, axes: Axes) -> Result<Tensor> {
    let out = call.empty(input.dtype, &axes.sizes(&input.sizes))?;
    fold_sum(call, Kind::Sum, input, &out, axes, input.dtype)?;
    Ok(out)
}

/// `trace(self)`: the sum of the diagonal
fn trace(call: &mut Call) -> Result<()> {
    let input = call.tensor(0)?;
    check!(input.dim() == 2, Runtime, "trace: expected a matrix, but got tensor with dim {}", input.dim());
    check!(input.dtype != DType::Bool, NotImplemented, "\"trace\" not implemented for 'Bool'");
    let diagonal = input.as_strided(&[input.sizes[0].min(input.sizes[1])], &[input.strides[0] + input.strides[1]], 0);
    let dtype = if input.dtype.is_float() { input.dtype } else { DType::I64 };
    let out = call.empty(dtype, &[])?;
    fold_sum(call, Kind::Sum, &diagonal, &out, Axes::all(false), dtype)?;
    call.ret(out);
    Ok(())
}

/// The dtype of numbers beside a sum of `dtype`.
pub fn accumulator_dtype(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

struct CountNonzero;

impl Fold for CountNonzero {
    fn name(&self) -> &'static str {
        "count_nonzero"
    }

    fn accumulators(&self, _: Scalar) -> SmallVec<[Scalar; 3]> {
        smallvec![Scalar::I64]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.int(Scalar::I64, 0)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(Scalar::Bool).cast(Scalar::I64)]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn finish<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// `count_nonzero(self, dim)`
fn count_nonzero(call: &mut Call, dims: &[i64]) -> Result<()> {
    let input = call.tensor(0)?;
    let axes = Axes::of(call, Some(dims), input.dim(), false)?;
    let out = call.empty(DType::I64, &axes.sizes(&input.sizes))?;
    count_into(call, input, &out, axes)?;
    call.ret(out);
    Ok(())
}

/// Writes how many elements are not zero.
pub fn count_into(call: &Call, input: &Tensor, out: &Tensor, axes: Axes) -> Result<()> {
    reduce(call, &CountNonzero, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers: &[] })
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
