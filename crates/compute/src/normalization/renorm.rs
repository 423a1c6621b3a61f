//! `renorm`: slices whose norm is above a limit are scaled down to it.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::functions::RENORM;
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::Value;

/// `out = x`, with every slice whose norm is above `limit` scaled down to it. `norm` has the rank
/// of `x` with size 1 in every dimension of a slice, in the accumulator's dtype.
pub fn limited(cx: &Context, x: &View, norm: View, limit: Number, out: &View) -> Result<()> {
    let dtype = accumulator(x.dtype);
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(norm), Input::Number(limit, dtype)];
    kernel::run(cx, &RENORM, &[out], &inputs, dtype)
}

/// The factor of a slice with this norm. The small addend keeps the scaled norm below the limit.
pub(crate) fn factor<'b>(norm: Value<'b>, limit: Value<'b>) -> Value<'b> {
    norm.gt(limit).select(limit / (norm + 1e-7), 1.0)
}
