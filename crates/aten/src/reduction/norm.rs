//! The operators of vector norms.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::promote::promote_types;
use crate::{check, operators};
use dml_compute::reduction::axes::Axes;
use dml_compute::reduction::norm::norms;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    vector_norm(self, ord, dim, keepdim, dtype, out).complex(Complex::Run(complex::reduction::norm)) {
        "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::linalg_vector_norm.out(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    }
    norm(self, p, dim, keepdim, dtype = None, out).complex(Complex::Run(complex::reduction::norm)) {
        "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
        "aten::norm.out(Tensor self, Scalar? p, int[1] dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
        "aten::norm.dtype_out(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn vector_norm(
    call: &mut Call,
    input: &View,
    p: f64,
    dims: Option<&[i64]>,
    keep: bool,
    dtype: Option<DType>,
    out: Out,
) -> Result<()> {
    let dtype = norm_dtype(input, dtype)?;
    let axes = crate::reduction::axes::axes_of(call, dims, input.dim(), keep)?;
    run(call, input, p, axes, dtype, out)
}

/// The dtype of a norm, checked.
fn norm_dtype(input: &View, dtype: Option<DType>) -> Result<DType> {
    check_float(input.dtype)?;
    let named = dtype.unwrap_or(input.dtype);
    check!(named.is_float(), Dtype, "linalg.vector_norm: dtype should be floating point or complex, but got {named}");
    Ok(named)
}

/// Checks the arguments of `linalg_vector_norm`; returns the dtype of its result.
///
/// # Errors
/// The CPU's.
pub fn check_norm(input: &View, p: f64, dtype: Option<DType>, axes: Axes) -> Result<DType> {
    let dtype = norm_dtype(input, dtype)?;
    check_range(input, p, axes, dtype)?;
    Ok(dtype)
}

fn check_float(dtype: DType) -> Result<()> {
    check!(
        dtype.is_float(),
        Dtype,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype}"
    );
    Ok(())
}

fn norm(
    call: &mut Call,
    input: &View,
    p: Option<f64>,
    dims: &[i64],
    keep: bool,
    dtype: Option<DType>,
    out: Out,
) -> Result<()> {
    let named = dtype.unwrap_or(input.dtype);
    check!(
        named.is_float(),
        Dtype,
        "norm(): {} dtype should be either floating point or complex. Got {named} instead.",
        if dtype.is_some() { "the desired output" } else { "input" }
    );
    let axes = crate::reduction::axes::axes_of(call, Some(dims), input.dim(), keep)?;
    check_float(input.dtype)?;
    run(call, input, p.unwrap_or(2.0), axes, named, out)
}

/// Checks that the requested dtype of a norm is not narrower than the input's.
pub fn check_no_narrowing(input: DType, dtype: DType) -> Result<()> {
    check!(
        promote_types(input, dtype) == dtype,
        Runtime,
        "linalg.vector_norm: the dtype of the input ({input}) should be convertible without narrowing to the specified dtype \
         ({dtype})"
    );
    Ok(())
}

/// Both dtypes have to be floats.
fn check_range(input: &View, p: f64, axes: Axes, dtype: DType) -> Result<()> {
    check_no_narrowing(input.dtype, dtype)?;
    if p < 0.0 || p == f64::INFINITY {
        for (d, &n) in input.sizes.iter().enumerate() {
            check!(
                n != 0 || !axes.reduces(d),
                Runtime,
                "linalg.vector_norm cannot compute the {p} norm on an empty tensor because the operation does not have an identity"
            );
        }
    }
    Ok(())
}

/// Both dtypes have to be floats.
fn run(call: &mut Call, input: &View, p: f64, axes: Axes, dtype: DType, out: Out) -> Result<()> {
    check_range(input, p, axes, dtype)?;
    let out = structured::result(call, out.given(), dtype, &axes.sizes(&input.sizes))?;
    norms(call, p, input, &out, axes)?;
    call.ret(out);
    Ok(())
}
