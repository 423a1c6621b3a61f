//! `renorm`: slices whose norm is above a limit are scaled down to it.

use crate::check;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operator::{Operator, op};
use crate::pointwise::kernel::{self, Input};
use crate::reduction::Axes;
use crate::reduction::norm::norms;
use crate::tensor::Dims;
use crate::tensor::promote::accumulator;
use dml_kernel::Value;

/// This family's overloads. (The functional and in-place forms are PyTorch's, made of this one.)
pub const OPERATORS: &[Operator] = &[op("aten::renorm.out", renorm)];

/// What a slice of this norm is multiplied by; the small number is PyTorch's.
pub fn factor<'b>(norm: Value<'b>, limit: Value<'b>) -> Value<'b> {
    norm.gt(limit).select(limit / (norm + 1e-7), 1.0)
}

/// `renorm.out(self, p, dim, maxnorm, out)`
fn renorm(call: &mut Call) -> Result<()> {
    let x = call.tensor(0)?;
    let (p, limit) = (call.scalar(1)?, call.scalar(3)?);
    check!(p.to_f64() > 0.0, Runtime, "renorm: non-positive-norm not supported");
    check!(limit.to_f64() >= 0.0, Runtime, "renorm: expected maxnorm to be >= 0 but got {}", limit.to_f64());
    check!(x.dim() > 1, Runtime, "renorm: input needs at least 2 dimensions, got {} dimensions", x.dim());
    let kept = call.wrap_dim(call.int(2)?, x.dim())? as i64;
    check!(
        x.dtype.is_float(),
        Dtype,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
        x.dtype
    );
    let out = structured::out(call, Some(4), x.dtype, &x.sizes)?;
    let others: Dims = (0..x.dim() as i64).filter(|&d| d != kept).collect();
    let axes = Axes::listed(call, &others, x.dim(), true)?;
    let dtype = accumulator(x.dtype);
    let norm = call.empty(dtype, &axes.sizes(&x.sizes))?;
    norms(call, p.to_f64(), x, &norm, axes)?;
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(norm), Input::Number(limit, dtype)];
    kernel::run(call, "renorm", 0, &[&out], &inputs, dtype, |_, v| vec![v[0] * factor(v[1], v[2])])?;
    call.ret(out);
    Ok(())
}
