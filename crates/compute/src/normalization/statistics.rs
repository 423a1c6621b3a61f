//! Statistics of an input, and running statistics.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::functions::{INVERSE_DEVIATION, UPDATE_STATISTICS};
use crate::pointwise::kernel::{self, Input};
use crate::reduction::axes::Axes;
use crate::reduction::fold::Reduction;
use crate::reduction::reduce;
use crate::reduction::variance::{Moments, Results};
use crate::scalar::Scalar as Number;
use crate::view::View;
use smallvec::SmallVec;

/// Writes mean, `1 / sqrt(variance + eps)` and variance over some dimensions to the given tensors,
/// in this order.
pub fn moments(cx: &Context, input: &View, axes: Axes, eps: f64, outs: &[&View]) -> Result<()> {
    moments_of(cx, input, axes, eps, outs, false)
}

/// [`moments`] of a batch whose mean updates running statistics: an infinite element makes it
/// infinite.
pub fn batch_moments(cx: &Context, input: &View, axes: Axes, eps: f64, outs: &[&View]) -> Result<()> {
    moments_of(cx, input, axes, eps, outs, true)
}

fn moments_of(cx: &Context, input: &View, axes: Axes, eps: f64, outs: &[&View], infinite: bool) -> Result<()> {
    let dtype = accumulator(input.dtype);
    let fold = Moments { scalar: dtype.compute(), results: Results::Normalizer { infinite } };
    let numbers = &[(dtype, Number::Double(eps))][..];
    reduce(cx, &fold, &Reduction { inputs: &[input], outs, axes, tables: &[], numbers })
}

/// `running = (1 - momentum) * running + momentum * batch`; the variance is multiplied by the
/// correction.
pub fn update(cx: &Context, running: [&View; 2], batch: [&View; 2], momentum: f64, correction: f64) -> Result<()> {
    let dtype = accumulator(running[0].dtype);
    let mut inputs: SmallVec<[Input; 7]> = running.iter().chain(&batch).map(|&t| Input::Tensor(t.clone())).collect();
    let numbers = [1.0 - momentum, momentum, correction];
    inputs.extend(numbers.map(|x| Input::Number(Number::Double(x), dtype)));
    kernel::run(cx, &UPDATE_STATISTICS, &running, &inputs, dtype)
}

/// `out = 1 / sqrt(variance + eps)`, one number per channel. `out` is in the accumulator's dtype of
/// `variance`.
pub fn inverse_deviation(cx: &Context, variance: &View, eps: f64, out: &View) -> Result<()> {
    let dtype = accumulator(variance.dtype);
    let inputs = [Input::Tensor(variance.clone()), Input::Number(Number::Double(eps), dtype)];
    kernel::run(cx, &INVERSE_DEVIATION, &[out], &inputs, dtype)
}
