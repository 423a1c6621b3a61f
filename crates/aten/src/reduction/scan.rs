//! Cumulative sums, products, extrema and log-sum-exps along a dimension.
//!
//! A workgroup processes its rows in tiles. Within a tile every invocation folds a few adjacent
//! elements, the invocations of a row scan their totals in shared memory (Hillis and Steele, "Data
//! parallel algorithms", 1986), and the row's total is carried to the next tile. The order depends
//! on shapes only.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::reduction::scan::{Operation, run};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    cumulate(self, dim, dtype, out; Operation::Sum).complex(complex::SUM) {
        "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        "aten::cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    }
    cumulate(self, dim, dtype, out; Operation::Product).complex(complex::RUNNING_PRODUCT) {
        "aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
        "aten::cumprod.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    }
    log_sum_exp(self, dim, out).complex(Complex::Run(complex::log_cumsum_exp)) {
        "aten::_logcumsumexp(Tensor self, int dim) -> Tensor",
        "aten::_logcumsumexp.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)",
    }
    extremum(self, values, indices, dim; Operation::Max) {
        "aten::_cummax_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()",
    }
    extremum(self, values, indices, dim; Operation::Min) {
        "aten::_cummin_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()",
    }
}

fn cumulate(
    call: &mut Call,
    input: &View,
    dim: i64,
    dtype: Option<DType>,
    out: Out,
    operation: Operation,
) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    let out = match out.given() {
        None => {
            let dtype = dtype.unwrap_or(if input.dtype.is_float() { input.dtype } else { DType::I64 });
            call.empty(dtype, &input.sizes)?
        }
        given @ Some(t) => structured::result(call, given, dtype.unwrap_or(t.dtype), &input.sizes)?,
    };
    let name = if operation == Operation::Sum { "cumsum" } else { "cumprod" };
    overlap::check_partial(&out, [input])?;
    // A 0-dim tensor is copied.
    let computes = out.dim() > 0 && out.numel() > 0;
    check!(out.dtype != DType::Bool || !computes, NotImplemented, "\"{name}_out_cpu\" not implemented for 'Bool'");
    run(call, operation, input, out.dtype, dim, &[&out])?;
    call.ret(out);
    Ok(())
}

fn log_sum_exp(call: &mut Call, input: &View, dim: i64, out: Out) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    check!(input.dtype.is_float(), NotImplemented, "\"logcumsumexp_out_cpu\" not implemented for '{}'", input.dtype);
    let out = call.result(out.given(), input.dtype, &input.sizes)?;
    overlap::check_partial(&out, [input])?;
    run(call, Operation::LogSumExp, input, input.dtype, dim, &[&out])?;
    call.ret(out);
    Ok(())
}

fn extremum(
    call: &mut Call,
    input: &View,
    values: &View,
    indices: &View,
    dim: i64,
    operation: Operation,
) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    Ok(run(call, operation, input, input.dtype, dim, &[values, indices])?)
}
