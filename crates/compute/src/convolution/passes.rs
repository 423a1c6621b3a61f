//! The three passes of a convolution and the gradient of its bias: the choice of the algorithm.
//!
//! Tensors are dense, in either memory order; weights may be in others (see [`products`]). Padding
//! is what is before the first pixel: what is after the last follows from the sizes of both sides.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::convolution::{depthwise, products, winograd};
use crate::error::Result;
use crate::movement::copy;
use crate::pointwise::expr::Expr;
use crate::pointwise::kernel;
use crate::scalar::Scalar;
use crate::view::{Dims, View};
use dml_engine::Verdict;
use winograd::Pass;

/// Computes the outer side from the inner side: a convolution.
pub fn forward(cx: &Context, g: &Geometry, inner: &View, weight: &View, out: &View, bias: Option<&View>) -> Result<()> {
    forward_then(cx, g, inner, weight, out, bias, None)
}

/// [`forward`], and an expression of the result and of tensors of its shape. Where the result is a
/// matrix product that is computed before the result is stored.
pub fn forward_then(
    cx: &Context,
    g: &Geometry,
    inner: &View,
    weight: &View,
    out: &View,
    bias: Option<&View>,
    then: Option<(Expr, &[View])>,
) -> Result<()> {
    let finish = |cx: &Context| then.map_or(Ok(()), |(expr, tensors)| kernel::run_over(cx, expr, out, tensors));
    if out.numel() == 0 {
        return Ok(());
    }
    if g.inner.0 * taps(g) == 0 {
        fill(cx, out, bias)?;
        return finish(cx);
    }
    let by_windows = |cx: &Context| depthwise::forward(cx, g, inner, weight, out, bias);
    if depthwise::is_supported(cx, g, inner, out) && cx.run_if_accepted(Verdict::Unoptimised, by_windows)? {
        return finish(cx);
    }
    let transformed = |cx: &Context| winograd::forward(cx, g, inner, weight, out, bias);
    if winograd::is_supported(cx, g, inner.dtype, Pass::Forward)
        && cx.run_if_accepted(Verdict::Optimised, transformed)?
    {
        return finish(cx);
    }
    let mut product = products::forward(g, inner, weight, out, bias);
    product.finish.then = then.and_then(|(expr, tensors)| products::epilogue(g, out, expr, tensors));
    let is_finished = product.finish.then.is_some();
    product.run(cx)?;
    if is_finished { Ok(()) } else { finish(cx) }
}

/// Computes the inner side from the outer side: the gradient of a convolution's input, and a
/// transposed convolution.
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
    let by_windows = |cx: &Context| depthwise::backward_data(cx, g, outer, weight, out, bias);
    if depthwise::is_supported(cx, g, out, outer) && cx.run_if_accepted(Verdict::Unoptimised, by_windows)? {
        return Ok(());
    }
    let transformed = |cx: &Context| winograd::backward_data(cx, g, outer, weight, out, bias);
    if winograd::is_supported(cx, g, outer.dtype, Pass::Data) && cx.run_if_accepted(Verdict::Optimised, transformed)? {
        return Ok(());
    }
    products::backward_data(g, outer, weight, out, bias).run(cx)
}

/// Computes the gradient of the weight.
pub fn backward_weight(cx: &Context, g: &Geometry, inner: &View, outer: &View, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if outer.numel() == 0 {
        return fill(cx, out, None);
    }
    let by_windows = |cx: &Context| depthwise::backward_weight(cx, g, inner, outer, out);
    if depthwise::is_supported(cx, g, inner, outer) && cx.run_if_accepted(Verdict::Unoptimised, by_windows)? {
        return Ok(());
    }
    let transformed = |cx: &Context| winograd::backward_weight(cx, g, inner, outer, out);
    if winograd::is_supported(cx, g, inner.dtype, Pass::Weight)
        && cx.run_if_accepted(Verdict::Optimised, transformed)?
    {
        return Ok(());
    }
    products::backward_weight(g, inner, outer, out).run(cx)
}

/// Computes the gradient of the bias: sums over images and pixels.
pub fn backward_bias(cx: &Context, grad: &View, out: &View) -> Result<()> {
    if grad.numel() == 0 {
        return fill(cx, out, None);
    }
    let ones = cx.empty(grad.dtype, &[1])?;
    copy::fill_with(cx, &ones, Scalar::Int(1))?;
    products::backward_bias(grad, &ones, out).run(cx)
}

/// Number of taps of the window.
fn taps(g: &Geometry) -> i64 {
    g.kernel.iter().product()
}

/// Fills the result of sums without terms: zeros, or the bias.
fn fill(cx: &Context, out: &View, bias: Option<&View>) -> Result<()> {
    let Some(bias) = bias else { return copy::fill_with(cx, out, Scalar::Int(0)) };
    let mut strides = Dims::from_elem(0, out.dim());
    strides[1] = bias.strides[0];
    copy::device_copy(cx, &bias.as_strided(&out.sizes, &strides, 0), out)
}
