//! The operators sum, nansum, mean, prod, count_nonzero.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::{check, operators};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::sum::{Kind, count_into, fold_sum};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    sum(self, dim = None, keepdim = false, dtype, out; Kind::Sum).complex(complex::SUM) {
        "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        hot "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    sum(self, dim, keepdim, dtype, out; Kind::NanSum).complex(complex::NAN_SUM) {
        "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::nansum.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    sum(self, dim = None, keepdim = false, dtype, out; Kind::Mean).complex(complex::MEAN) {
        hot "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        hot "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    prod(self, dim = None, keepdim = false, dtype, out).complex(complex::PRODUCT) {
        "aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::prod.int_out(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    trace(self).complex(Complex::Run(complex::by_parts)) {
        "aten::trace(Tensor self) -> Tensor",
    }
    count_nonzero_of_dim(self, dim).complex(Complex::Run(complex::of_truth)) {
        "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor",
    }
    count_nonzero(self, dim).complex(Complex::Run(complex::of_truth)) {
        "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    }
}

fn prod(call: &mut Call, input: &View, dim: Option<i64>, keep: bool, dtype: Option<DType>, out: Out) -> Result<()> {
    sum(call, input, Some(dim.as_slice()), keep, dtype, out, Kind::Prod)
}

fn sum(
    call: &mut Call,
    input: &View,
    dims: Option<&[i64]>,
    keep: bool,
    dtype: Option<DType>,
    out: Out,
    kind: Kind,
) -> Result<()> {
    let axes = crate::reduction::axes::axes_of(call, dims, input.dim(), keep)?;
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

/// The sum of the diagonal.
fn trace(call: &mut Call, input: &View) -> Result<()> {
    check!(input.dim() == 2, Runtime, "trace: expected a matrix, but got tensor with dim {}", input.dim());
    check!(input.dtype != DType::Bool, NotImplemented, "\"trace\" not implemented for 'Bool'");
    let diagonal = input.as_strided(&[input.sizes[0].min(input.sizes[1])], &[input.strides[0] + input.strides[1]], 0);
    let dtype = if input.dtype.is_float() { input.dtype } else { DType::I64 };
    let out = call.empty(dtype, &[])?;
    fold_sum(call, Kind::Sum, &diagonal, &out, Axes::all(false), dtype)?;
    call.ret(out);
    Ok(())
}

fn count_nonzero_of_dim(call: &mut Call, input: &View, dim: Option<i64>) -> Result<()> {
    count_nonzero(call, input, dim.as_slice())
}

fn count_nonzero(call: &mut Call, input: &View, dims: &[i64]) -> Result<()> {
    let axes = crate::reduction::axes::axes_of(call, Some(dims), input.dim(), false)?;
    let out = call.empty(DType::I64, &axes.sizes(&input.sizes))?;
    count_into(call, input, &out, axes)?;
    call.ret(out);
    Ok(())
}
