//! `renorm`: slices whose norm is above a limit are scaled down to it.

use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::kernel::{self, Input};
use crate::reduction::Axes;
use crate::reduction::norm::norms;
use crate::tensor::promote::accumulator;
use crate::tensor::{Dims, Tensor, overlap};
use crate::{check, operators};
use dml_kernel::Value;

// The functional and in-place forms are PyTorch's, made of this one.
operators! {
    renorm(self, p, dim, maxnorm, out) {
        "aten::renorm.out(Tensor self, Scalar p, int dim, Scalar maxnorm, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// What a slice of this norm is multiplied by; the small number is PyTorch's.
pub fn factor<'b>(norm: Value<'b>, limit: Value<'b>) -> Value<'b> {
    norm.gt(limit).select(limit / (norm + 1e-7), 1.0)
}

fn renorm(call: &mut Call, x: &Tensor, p: f64, dim: i64, limit: Number, out: Out) -> Result<()> {
    check!(p > 0.0, Runtime, "renorm: non-positive-norm not supported");
    check!(limit.to_f64() >= 0.0, Runtime, "renorm: expected maxnorm to be >= 0 but got {}", limit.to_f64());
    check!(x.dim() > 1, Runtime, "renorm: input needs at least 2 dimensions, got {} dimensions", x.dim());
    structured::check_given(out.given(), x.dtype)?;
    let kept = call.wrap_dim(dim, x.dim())? as i64;
    check!(
        x.dtype.is_float(),
        Dtype,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
        x.dtype
    );
    let out = call.result(out.given(), x.dtype, &x.sizes)?;
    overlap::check_partial(&out, [x])?;
    let others: Dims = (0..x.dim() as i64).filter(|&d| d != kept).collect();
    let axes = Axes::listed(call, &others, x.dim(), true)?;
    let dtype = accumulator(x.dtype);
    let norm = call.empty(dtype, &axes.sizes(&x.sizes))?;
    norms(call, p, x, &norm, axes)?;
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(norm), Input::Number(limit, dtype)];
    kernel::run(call, "renorm", &[&out], &inputs, dtype, |_, v| vec![v[0] * factor(v[1], v[2])])?;
    call.ret(out);
    Ok(())
}
