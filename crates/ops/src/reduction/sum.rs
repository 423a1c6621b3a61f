//! sum, nansum, mean, prod, count_nonzero.

use super::axes::Axes;
use super::fold::{Fold, Reduction, Scope, Values};
use super::reduce::reduce;
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::Tensor;
use crate::tensor::promote::accumulator;
use crate::{check, operators};
use dml_kernel::{DType, ScalarType, Value, convert};
use smallvec::{SmallVec, smallvec};

operators! {
    sum(self, dim = None, keepdim = false, dtype, out; Kind::Sum) {
        "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    sum(self, dim, keepdim, dtype, out; Kind::NanSum) {
        "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::nansum.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    sum(self, dim = None, keepdim = false, dtype, out; Kind::Mean) {
        "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    prod(self, dim = None, keepdim = false, dtype, out) {
        "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::prod.int_out(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    trace(self) {
        "aten::trace(Tensor self) -> Tensor",
    }
    count_nonzero_of_dim(self, dim) {
        "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
    }
    count_nonzero(self, dim) {
        "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    NanSum,
    Mean,
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

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        let one = if self.kind == Kind::Prod { 1.0 } else { 0.0 };
        smallvec![s.b.constant_of(accumulator(self.dtype).compute(), one)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0];
        let x = if self.kind == Kind::NanSum { x.is_nan().select(x.like(0.0), x) } else { x };
        // The CPU rounds the elements of a half's mean to float32 only.
        let half = matches!(self.dtype, DType::F16 | DType::BF16);
        let dtype = if self.kind == Kind::Mean && half { DType::F32 } else { self.dtype };
        let x = if dtype == self.input { x } else { convert(x, dtype) };
        smallvec![x.cast(accumulator(self.dtype).compute())]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.kind == Kind::Prod { x[0] * y[0] } else { x[0] + y[0] }]
    }

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![if self.kind == Kind::Mean { x[0] / s.numbers[0] } else { x[0] }]
    }
}

fn prod(call: &mut Call, input: &Tensor, dim: Option<i64>, keep: bool, dtype: Option<DType>, out: Out) -> Result<()> {
    sum(call, input, Some(dim.as_slice()), keep, dtype, out, Kind::Prod)
}

fn sum(
    call: &mut Call,
    input: &Tensor,
    dims: Option<&[i64]>,
    keep: bool,
    dtype: Option<DType>,
    out: Out,
    kind: Kind,
) -> Result<()> {
    let axes = Axes::of(call, dims, input.dim(), keep)?;
    if let Some(dtype) = dtype {
        structured::check_given(out.given(), dtype)?;
    }
    let (given, inferred) = (dtype, dtype.unwrap_or(input.dtype));
    let wanted = out.given().map(|t| t.dtype).or(dtype);
    let dtype = match wanted {
        Some(d) => d,
        None if kind == Kind::Mean || input.dtype.is_float() => input.dtype,
        None => DType::I64,
    };
    if kind == Kind::Mean {
        check!(
            dtype.is_float() && inferred.is_float(),
            Dtype,
            "mean(): could not infer output dtype. {} dtype must be either a floating point or complex dtype. Got: \
             {inferred}",
            if given.is_some() { "Optional" } else { "Input" }
        );
    }
    let counts = kind != Kind::NanSum || dtype.is_float() || !input.dtype.is_float() || input.numel() == 0;
    check!(counts, NotImplemented, "\"nansum_cpu\" not implemented for '{dtype}'");
    let out = call.result(out.given(), dtype, &axes.sizes(&input.sizes))?;
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
    let count = [(accumulator(dtype), Number::Int(axes.extent(&input.sizes)))];
    let numbers = if kind == Kind::Mean { &count[..] } else { &[] };
    reduce(call, &fold, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers })
}

/// A new tensor with the sums of `input` along `axes`, of its dtype.
pub fn add_up(call: &Call, input: &Tensor, axes: Axes) -> Result<Tensor> {
    let out = call.empty(input.dtype, &axes.sizes(&input.sizes))?;
    add_up_into(call, input, &out, axes)?;
    Ok(out)
}

/// The sums of `input` along `axes` into a tensor that may be of another dtype: they are rounded once.
pub fn add_up_into(call: &Call, input: &Tensor, out: &Tensor, axes: Axes) -> Result<()> {
    fold_sum(call, Kind::Sum, input, out, axes, input.dtype)
}

/// The sum of the diagonal.
fn trace(call: &mut Call, input: &Tensor) -> Result<()> {
    check!(input.dim() == 2, Runtime, "trace: expected a matrix, but got tensor with dim {}", input.dim());
    check!(input.dtype != DType::Bool, NotImplemented, "\"trace\" not implemented for 'Bool'");
    let diagonal = input.as_strided(&[input.sizes[0].min(input.sizes[1])], &[input.strides[0] + input.strides[1]], 0);
    let dtype = if input.dtype.is_float() { input.dtype } else { DType::I64 };
    let out = call.empty(dtype, &[])?;
    fold_sum(call, Kind::Sum, &diagonal, &out, Axes::all(false), dtype)?;
    call.ret(out);
    Ok(())
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

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.int(ScalarType::I64, 0)]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(ScalarType::Bool).cast(ScalarType::I64)]
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

fn count_nonzero_of_dim(call: &mut Call, input: &Tensor, dim: Option<i64>) -> Result<()> {
    count_nonzero(call, input, dim.as_slice())
}

fn count_nonzero(call: &mut Call, input: &Tensor, dims: &[i64]) -> Result<()> {
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
