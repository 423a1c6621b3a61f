//! The three passes of a convolution, and the gradient of its bias: which way each of them goes.
//!
//! Tensors are dense, of either memory order.

use super::geometry::Geometry;
use super::{depthwise, products, winograd};
use crate::movement::copy;
use crate::operator::call::{Call, Scalar};
use crate::operator::error::Result;
use crate::tensor::{Dims, Tensor};
use winograd::Pass;

/// The outer side from the inner: a convolution.
pub fn forward(
    call: &Call,
    g: &Geometry,
    inner: &Tensor,
    weight: &Tensor,
    out: &Tensor,
    bias: Option<&Tensor>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if g.inner.0 * taps(g) == 0 {
        return fill(call, out, bias);
    }
    if depthwise::applies(call, g, inner, out) {
        return depthwise::forward(call, g, inner, weight, out, bias);
    }
    if winograd::applies(call, g, inner.dtype, Pass::Forward) {
        return winograd::forward(call, g, inner, weight, out, bias);
    }
    products::forward(g, inner, weight, out, bias).run(call)
}

/// The inner side from the outer: a convolution's gradient of its input, and a transposed convolution.
pub fn backward_data(
    call: &Call,
    g: &Geometry,
    outer: &Tensor,
    weight: &Tensor,
    out: &Tensor,
    bias: Option<&Tensor>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if g.outer.0 * taps(g) == 0 {
        return fill(call, out, bias);
    }
    if depthwise::applies(call, g, out, outer) {
        return depthwise::backward_data(call, g, outer, weight, out, bias);
    }
    if winograd::applies(call, g, outer.dtype, Pass::Data) {
        return winograd::backward_data(call, g, outer, weight, out, bias);
    }
    products::backward_data(g, outer, weight, out, bias).run(call)
}

/// The weight's gradient.
pub fn backward_weight(call: &Call, g: &Geometry, inner: &Tensor, outer: &Tensor, out: &Tensor) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if outer.numel() == 0 {
        return fill(call, out, None);
    }
    if depthwise::applies(call, g, inner, outer) {
        return depthwise::backward_weight(call, g, inner, outer, out);
    }
    if winograd::applies(call, g, inner.dtype, Pass::Weight) {
        return winograd::backward_weight(call, g, inner, outer, out);
    }
    products::backward_weight(g, inner, outer, out).run(call)
}

/// The bias's gradient: sums over images and pixels.
pub fn backward_bias(call: &Call, grad: &Tensor, out: &Tensor) -> Result<()> {
    if grad.numel() == 0 {
        return fill(call, out, None);
    }
    let ones = call.empty(grad.dtype, &[1])?;
    copy::fill_with(call, &ones, Scalar::Int(1))?;
    products::backward_bias(grad, &ones, out).run(call)
}

/// Places of the window.
fn taps(g: &Geometry) -> i64 {
    g.kernel.iter().product()
}

/// Sums over nothing: zeros, or the bias.
fn fill(call: &Call, out: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    let Some(bias) = bias else { return copy::fill_with(call, out, Scalar::Int(0)) };
    let mut strides = Dims::from_elem(0, out.dim());
    strides[1] = bias.strides[0];
    copy::device_copy(call, &bias.as_strided(&out.sizes, &strides, 0), out)
}
