//! Weight normalisation: `w = v * g / |v|` (T. Salimans and D. Kingma, "Weight normalization",
//! NeurIPS 2016). The norm is over every dimension except one.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::functions::{WEIGHT_NORM, WEIGHT_NORM_BACKWARD_G, WEIGHT_NORM_BACKWARD_V};
use crate::pointwise::kernel::{self, Input};
use crate::view::View;

/// `out = v * (g / norm)`. `v` and `out` have one shape and dtype; `g` and `norm` have its rank,
/// with size 1 in every dimension of the norm.
pub fn scaled(cx: &Context, v: &View, g: &View, norm: &View, out: &View) -> Result<()> {
    let inputs = [v, g, norm].map(|t| Input::Tensor(t.clone()));
    kernel::run(cx, &WEIGHT_NORM, &[out], &inputs, accumulator(v.dtype))
}

/// The gradient of `g`, of its shape: `product / norm`, where `product` is the sum of `grad * v`
/// over the dimensions of the norm, in the accumulator's dtype.
pub fn gradient_of_g(cx: &Context, product: &View, norm: &View, out: &View) -> Result<()> {
    let inputs = [product, norm].map(|t| Input::Tensor(t.clone()));
    let dtype = accumulator(out.dtype);
    kernel::run(cx, &WEIGHT_NORM_BACKWARD_G, &[out], &inputs, dtype)
}

/// The gradient of `v`, of its shape: `g / norm * (grad - v * product / norm^2)`, with the
/// `product` of [`gradient_of_g`].
pub fn gradient_of_v(
    cx: &Context,
    grad: &View,
    v: &View,
    g: &View,
    norm: &View,
    product: &View,
    out: &View,
) -> Result<()> {
    let inputs = [grad, v, g, norm, product].map(|t| Input::Tensor(t.clone()));
    kernel::run(cx, &WEIGHT_NORM_BACKWARD_V, &[out], &inputs, accumulator(v.dtype))
}
