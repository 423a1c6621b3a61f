//! Batch normalisation, with running statistics, and its gradients.
//!
//! The reserved tensors are the mean and the variance of the batch, as on TensorFlow's CPU, so that
//! either device computes the gradient of the other's result. A third one is not needed.

use crate::c_api::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Call, Operator};
use crate::operators::common::dtypes::HALF_FLOATS;
use crate::operators::common::window::Format;
use crate::require;
use dml_compute::movement::copy;
use dml_compute::normalization::channels::of_channels;
use dml_compute::normalization::statistics::{batch_moments, inverse_deviation};
use dml_compute::normalization::sums::Products;
use dml_compute::normalization::terms::{NormalizationTerms, Sums};
use dml_compute::pointwise::activation::{RELU, THRESHOLD_BACKWARD};
use dml_compute::pointwise::arithmetic;
use dml_compute::pointwise::kernel::{self, Input};
use dml_compute::reduction::axes::Axes;
use dml_compute::{Scalar, View};
use dml_kernel::DType;

dml_compute::functions! {
    /// The next running mean and variance, of which the batch's have a share; its variance is
    /// corrected.
    RUNNING_STATISTICS = "running_statistics"(old_mean, old_variance, mean, variance, kept, share, correction) => {
        [old_mean * kept + mean * share, old_variance * kept + variance * correction * share]
    };
}

/// What an operator's attributes say of its normalisation.
#[derive(Copy, Clone)]
struct Normalization {
    format: Format,
    epsilon: f64,
    /// The share of the batch in the running statistics.
    share: f64,
    is_training: bool,
    /// The result has a third reserved tensor.
    third: bool,
    /// Negative results become 0.
    relu: bool,
    /// A tensor is added to the result, before negative ones become 0.
    side: bool,
}

impl Normalization {
    fn new(attributes: &Attributes, third: bool) -> Result<Self> {
        let float = |name: &str, default: f64| -> Result<f64> {
            if attributes.has(name)? { Ok(f64::from(attributes.float(name)?)) } else { Ok(default) }
        };
        let (mut relu, mut side) = (false, false);
        if attributes.has("activation_mode")? {
            relu = match attributes.string("activation_mode")?.as_str() {
                "Identity" => false,
                "Relu" => true,
                other => return Err(Error::Unimplemented(format!("activation mode {other}"))),
            };
            side = attributes.int("num_side_inputs")? > 0;
        }
        Ok(Self {
            format: Format::of(attributes)?,
            epsilon: float("epsilon", 1e-4)?,
            share: float("exponential_avg_factor", 1.0)?,
            is_training: attributes.bool("is_training")?,
            third,
            relu,
            side,
        })
    }

    /// Input 0 or 1, images of 4 or 5 dimensions, as `[batch, channels, ..]`.
    fn images(&self, call: &Call, input: usize) -> Result<View> {
        let t = call.input(input)?;
        require!(matches!(t.dim(), 4 | 5), "input must be 4 or 5-dimensional: {:?}", t.sizes);
        Ok(self.format.image(&t))
    }
}

/// A vector of an input, with one number for each of so many channels.
fn vector(call: &Call, input: usize, name: &str, channels: i64) -> Result<View> {
    let t = call.input(input)?;
    require!(
        t.sizes.as_slice() == [channels],
        "{name} must be 1-dimensional and have as many elements as x has channels, {channels}: {:?}",
        t.sizes
    );
    Ok(t)
}

/// All dimensions but the channels.
fn not_channels(x: &View) -> Axes {
    let mask = (0..x.dim()).filter(|&d| d != 1).fold(0, |mask, d| mask | 1 << d);
    Axes { mask, keep: false }
}

/// Mean and variance of the batch, and `1 / sqrt(variance + epsilon)`.
struct Statistics {
    mean: View,
    scale: View,
}

/// The vectors of the result `1`, the mean, and `2`, the variance, from the running ones and the
/// batch's; and the reserved ones, the batch's. Without training all are the running ones.
fn statistics(call: &Call, n: &Normalization, x: &View) -> Result<Statistics> {
    let cx = call.cx();
    let channels = x.sizes[1];
    let shape = [channels];
    let running = |input: usize, name: &str| -> Result<Option<View>> {
        let t = call.input(input)?;
        // Without a share of them their values are not used, and they may be empty.
        if n.is_training && n.share == 1.0 { Ok(None) } else { vector(call, input, name, channels).map(|_| Some(t)) }
    };
    let running = [running(3, "mean")?, running(4, "variance")?];
    let outs = [call.output(1, &shape)?, call.output(2, &shape)?];
    let reserved = [call.output(3, &shape)?, call.output(4, &shape)?];
    let scale = cx.empty(DType::F32, &shape)?;
    if let (false, [Some(mean), Some(variance)]) = (n.is_training, &running) {
        for (from, to) in [(mean, &outs[0]), (variance, &outs[1]), (mean, &reserved[0]), (variance, &reserved[1])] {
            copy::device_copy(&cx, from, to)?;
        }
        inverse_deviation(&cx, variance, n.epsilon, &scale)?;
        return Ok(Statistics { mean: mean.clone(), scale });
    }
    if x.numel() == 0 {
        for t in outs.iter() {
            copy::fill_with(&cx, t, Scalar::Double(f64::NAN))?;
        }
        for t in reserved.iter() {
            copy::fill_with(&cx, t, Scalar::Int(0))?;
        }
        copy::fill_with(&cx, &scale, Scalar::Int(0))?;
        return Ok(Statistics { mean: reserved[0].clone(), scale });
    }
    let [mean, variance] = &reserved;
    batch_moments(&cx, x, not_channels(x), n.epsilon, &[mean, &scale, variance])?;
    let count = (x.numel() / channels) as f64;
    let number = |x: f64| Input::Number(Scalar::Double(x), DType::F32);
    let old = running.map(|t| t.map_or(number(0.0), Input::Tensor));
    let batch = [mean, variance].map(|t| Input::Tensor(t.clone()));
    let shares = [1.0 - n.share, n.share, count / (count - 1.0).max(1.0)].map(number);
    let operands: Vec<Input> = old.into_iter().chain(batch).chain(shares).collect();
    kernel::run(&cx, &RUNNING_STATISTICS, &[&outs[0], &outs[1]], &operands, DType::F32)?;
    Ok(Statistics { mean: mean.clone(), scale })
}

/// `FusedBatchNorm` and the like.
fn forward(call: &Call, n: &Normalization) -> Result<()> {
    let cx = call.cx();
    let x = n.images(call, 0)?;
    let channels = x.sizes[1];
    let [weight, bias] = [vector(call, 1, "scale", channels)?, vector(call, 2, "offset", channels)?];
    let y = call.output(0, &call.sizes(0)?)?;
    let side = if n.side { Some(call.input(5)?) } else { None };
    if let Some(side) = &side {
        require!(side.sizes == y.sizes, "side_input must have the shape of x: {:?} vs {:?}", side.sizes, y.sizes);
    }
    let Statistics { mean, scale } = statistics(call, n, &x)?;
    if n.third {
        copy::fill_with(&cx, &call.output(5, &[])?, Scalar::Int(0))?;
    }
    let of = |t: &View| Some(of_channels(t, &x));
    let terms = NormalizationTerms { mean: of(&mean), scale: of(&scale), weight: of(&weight), bias: of(&bias) };
    terms.normalize(&cx, &x, &n.format.image(&y))?;
    if let Some(side) = side {
        let operands = [y.clone(), side].map(Input::Tensor);
        kernel::run(&cx, &arithmetic::ADD, &[&y], &operands, y.dtype)?;
    }
    if n.relu {
        kernel::run(&cx, &RELU, &[&y], &[Input::Tensor(y.clone())], y.dtype)?;
    }
    Ok(())
}

/// `FusedBatchNormGrad` and the like: of the input 1, given the result's gradient 0.
fn gradient(call: &Call, n: &Normalization) -> Result<()> {
    let cx = call.cx();
    let x = n.images(call, 1)?;
    let channels = x.sizes[1];
    let weight = vector(call, 2, "scale", channels)?;
    let [mean, variance] = [vector(call, 3, "saved mean", channels)?, vector(call, 4, "saved variance", channels)?];
    let sizes = call.sizes(1)?;
    require!(
        call.sizes(0)? == sizes,
        "x and y_backprop must have the same shape, but x has shape {sizes:?} and y_backprop {:?}",
        call.sizes(0)?
    );
    let mut grad = call.input(0)?;
    if n.relu {
        let y = call.input(7)?;
        require!(y.sizes == sizes, "y must have the shape of x: {:?} vs {sizes:?}", y.sizes);
        // What the activation let pass; also the gradient of the tensor that was added.
        let passed = if n.side { call.output(5, &sizes)? } else { cx.empty(grad.dtype, &sizes)? };
        let threshold = Input::Number(Scalar::Int(0), grad.dtype);
        let operands = [Input::Tensor(y), Input::Tensor(grad.clone()), threshold];
        kernel::run(&cx, &THRESHOLD_BACKWARD, &[&passed], &operands, grad.dtype)?;
        grad = passed;
    } else if n.side {
        call.pass_on(0, 5, &sizes)?;
    }
    let grad = n.format.image(&grad);
    let out = call.output(0, &sizes)?;
    let [of_scale, of_offset] = [call.output(1, &[channels])?, call.output(2, &[channels])?];
    for i in [3, 4] {
        copy::fill_with(&cx, &call.output(i, &[])?, Scalar::Int(0))?;
    }
    if x.numel() == 0 {
        copy::fill_with(&cx, &of_scale, Scalar::Int(0))?;
        return Ok(copy::fill_with(&cx, &of_offset, Scalar::Int(0))?);
    }
    let scale = cx.empty(DType::F32, &[channels])?;
    inverse_deviation(&cx, &variance, n.epsilon, &scale)?;
    let of = |t: &View| Some(of_channels(t, &x));
    let terms = NormalizationTerms { mean: of(&mean), scale: of(&scale), weight: of(&weight), bias: None };
    let products =
        Products { grad: &grad, x: &x, mean: terms.mean.as_ref(), scale: terms.scale.as_ref(), weight: None };
    products.sum(&cx, not_channels(&x), &[&of_scale, &of_offset])?;
    let result = n.format.image(&out);
    if n.is_training {
        let count = x.numel() / channels;
        let sums = Sums { total: of(&of_offset), product: of(&of_scale), count, weighted_after: true };
        return Ok(terms.gradient(&cx, &grad, &x, &sums, &result)?);
    }
    // Statistics that do not depend on the input are constants.
    Ok(NormalizationTerms { mean: None, bias: None, ..terms }.normalize(&cx, &grad, &result)?)
}

/// An operator whose parameters are float32.
fn operator(name: &'static str, third: bool, compute: fn(&Call, &Normalization) -> Result<()>) -> Operator {
    Operator::new(name, move |attributes: &Attributes| {
        let n = Normalization::new(attributes, third)?;
        Ok(move |call: &Call| compute(call, &n))
    })
}

/// The operators of this file.
pub fn operators() -> Vec<Operator> {
    let float: &[DType] = &[DType::F32];
    let of_both = |operator: Operator| operator.of("T", HALF_FLOATS).of("U", float);
    vec![
        operator("FusedBatchNorm", false, forward).of("T", float),
        of_both(operator("FusedBatchNormV2", false, forward)),
        of_both(operator("FusedBatchNormV3", true, forward)),
        of_both(operator("_FusedBatchNormEx", true, forward)),
        operator("FusedBatchNormGrad", false, gradient).of("T", float),
        of_both(operator("FusedBatchNormGradV2", false, gradient)),
        of_both(operator("FusedBatchNormGradV3", false, gradient)),
        of_both(operator("_FusedBatchNormGradEx", false, gradient)),
    ]
}
