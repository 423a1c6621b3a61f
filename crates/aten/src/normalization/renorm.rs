//! `renorm`: slices whose norm is above a limit are scaled down to it.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::dtype::accumulator;
use dml_compute::normalization::renorm::limited;
use dml_compute::reduction::norm::norms;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::{Dims, View};

// PyTorch composes the functional and in-place forms of this one.
operators! {
    renorm(self, p, dim, maxnorm, out).complex(Complex::Run(complex::reduction::renorm)) {
        "aten::renorm.out(Tensor self, Scalar p, int dim, Scalar maxnorm, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn renorm(call: &mut Call, x: &View, p: f64, dim: i64, limit: Number, out: Out) -> Result<()> {
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
    let axes = crate::reduction::axes::axes_listed(call, &others, x.dim(), true)?;
    let norm = call.empty(accumulator(x.dtype), &axes.sizes(&x.sizes))?;
    norms(call, p, x, &norm, axes)?;
    limited(call, x, norm, limit, &out)?;
    call.ret(out);
    Ok(())
}
