//! The three passes of a convolution, and the gradient of its bias: which way each of them goes.
//!
//! Tensors are dense, of either memory order.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::{depthwise, products, winograd};
use crate::error::Result;
use crate::movement::copy;
use crate::scalar::Scalar;
use crate::view::{Dims, View};
use winograd::Pass;

/// The outer side from the inner: a convolution.
pub fn forward(cx: &Context, g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if g.inner.0 * taps(g) == 0 {
        return fill(cx, out, bias);
    }
    if depthwise::applies(cx, g, inner, out) {
        return depthwise::forward(cx, g, inner, weight, out, bias);
    }
    if winograd::applies(cx, g, inner.dtype, Pass::Forward) {
        return winograd::forward(cx, g, inner, weight, out, bias);
    }
    products::forward(g, inner, weight, out, bias).run(cx)
}

/// The inner side from the outer: a convolution's gradient of its input, and a transposed
/// convolution.
pub fn backward_data(
    cx: &Context,
    g: &Geometry,
    outer: &View,
    weight: &View,
    out: &View,
    bias: Option<&View>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if g.outer.0 * taps(g) == 0 {
        return fill(cx, out, bias);
    }
    if depthwise::applies(cx, g, out, outer) {
        return depthwise::backward_data(cx, g, outer, weight, out, bias);
    }
    if winograd::applies(cx, g, outer.dtype, Pass::Data) {
        return winograd::backward_data(cx, g, outer, weight, out, bias);
    }
    products::backward_data(g, outer, weight, out, bias).run(cx)
}

/// The weight's gradient.
pub fn backward_weight(cx: &Context, g: &Geometry, inner: &View, outer: &View, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if outer.numel() == 0 {
        return fill(cx, out, None);
    }
    if depthwise::applies(cx, g, inner, outer) {
        return depthwise::backward_weight(cx, g, inner, outer, out);
    }
    if winograd::applies(cx, g, inner.dtype, Pass::Weight) {
        return winograd::backward_weight(cx, g, inner, outer, out);
    }
    products::backward_weight(g, inner, outer, out).run(cx)
}

/// The bias's gradient: sums over images and pixels.
pub fn backward_bias(cx: &Context, grad: &View, out: &View) -> Result<()> {
    if grad.numel() == 0 {
        return fill(cx, out, None);
    }
    let ones = cx.empty(grad.dtype, &[1])?;
    copy::fill_with(cx, &ones, Scalar::Int(1))?;
    products::backward_bias(grad, &ones, out).run(cx)
}

/// Places of the window.
fn taps(g: &Geometry) -> i64 {
    g.kernel.iter().product()
}

/// Sums over nothing: zeros, or the bias.
fn fill(cx: &Context, out: &View, bias: Option<&View>) -> Result<()> {
    let Some(bias) = bias else { return copy::fill_with(cx, out, Scalar::Int(0)) };
    let mut strides = Dims::from_elem(0, out.dim());
    strides[1] = bias.strides[0];
    copy::device_copy(cx, &bias.as_strided(&out.sizes, &strides, 0), out)
}
