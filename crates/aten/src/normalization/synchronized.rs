//! The parts of a batch normalisation whose batch is distributed over several devices
//! (SyncBatchNorm). Statistics are in the accumulator's dtype: float32 for half-precision inputs.

use crate::movement::copies::checked_copy;
use crate::normalization::channels::{check_channels, non_channel_axes};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::{check, group, operators};
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy::{cast, fill_with};
use dml_compute::normalization::channels::{like, of_channels};
use dml_compute::normalization::statistics::{batch_moments, update};
use dml_compute::normalization::sums::Products;
use dml_compute::normalization::synchronized::{self, gradient_means, weight_gradient as gradient_of_weight};
use dml_compute::normalization::terms::{NormalizationTerms, Sums};
use dml_compute::reduction::sum::total;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;

operators! {
    stats(input, eps) {
        "aten::batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)",
    }
    elemt(input, weight, bias, mean, invstd, out) {
        "aten::batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps) -> Tensor",
        "aten::batch_norm_elemt.out(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, float eps, *, Tensor(a!) out) -> Tensor(a!)",
    }
    gather_stats(mean, invstd, running_mean, running_var, momentum, eps, count) {
        "aten::batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, float momentum, float eps, int count) -> (Tensor, Tensor)",
    }
    gather(mean, invstd, running_mean, running_var, momentum, eps, counts) {
        "aten::batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var, float momentum, float eps, Tensor counts) -> (Tensor, Tensor)",
    }
    backward_reduce(grad_out, input, mean, invstd, weight, {Wanted}) {
        "aten::batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, bool input_g, bool weight_g, bool bias_g) -> (Tensor, Tensor, Tensor, Tensor)",
    }
    backward_elemt(grad_out, input, {Rows}, sum_dy, sum_dy_xmu, count) {
        "aten::batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, Tensor sum_dy, Tensor sum_dy_xmu, Tensor count) -> Tensor",
    }
}

group! {
    /// The gradients that are wanted.
    struct Wanted {
        input_g: bool,
        weight_g: bool,
        bias_g: bool,
    }
}

group! {
    /// What an input is normalised by, one number per channel.
    struct Rows<'a> {
        mean: Option<&'a View>,
        invstd: &'a View,
        weight: Option<&'a View>,
    }
}

/// Checks that an input is of floats and has channels.
fn check_input(call: &Call, t: &View) -> Result<()> {
    call.wrap_dim(1, t.dim())?;
    check!(t.dtype.is_float(), NotImplemented, "\"{}\" not implemented for '{}'", &call.name[6..], t.dtype);
    Ok(())
}

/// A vector with one number per channel of `like`, as a view of its shape.
fn row(call: &Call, t: Option<&View>, like: &View) -> Result<Option<View>> {
    check_channels(call.name, t, like.sizes[1])?;
    Ok(t.map(|t| of_channels(t, like)))
}

/// Mean and inverse deviation of this device's part.
fn stats(call: &mut Call, input: &View, eps: f64) -> Result<()> {
    check_input(call, input)?;
    let dtype = accumulator(input.dtype);
    let (mean, scale) = (call.empty(dtype, &[input.sizes[1]])?, call.empty(dtype, &[input.sizes[1]])?);
    batch_moments(call, input, non_channel_axes(call, input.dim())?, eps, &[&mean, &scale])?;
    call.ret(mean);
    call.ret(scale);
    Ok(())
}

fn elemt(
    call: &mut Call,
    input: &View,
    weight: Option<&View>,
    bias: Option<&View>,
    mean: Option<&View>,
    scale: Option<&View>,
    out: Out,
) -> Result<()> {
    check_input(call, input)?;
    let terms = NormalizationTerms {
        mean: row(call, mean, input)?,
        scale: row(call, scale, input)?,
        weight: row(call, weight, input)?,
        bias: row(call, bias, input)?,
    };
    let out = match out.given() {
        Some(out) => call.result(Some(out), input.dtype, &input.sizes)?,
        None => like(call, input)?,
    };
    terms.normalize(call, input, &out)?;
    call.ret(out);
    Ok(())
}

/// Every part has the same number of elements.
fn gather_stats(
    call: &mut Call,
    mean: &View,
    scale: &View,
    running_mean: Option<&View>,
    running_var: Option<&View>,
    momentum: f64,
    eps: f64,
    count: Number,
) -> Result<()> {
    let counts = call.empty(mean.dtype, &[1])?;
    fill_with(call, &counts, count)?;
    let parts = mean.sizes.first().copied().unwrap_or(1);
    let counts = counts.as_strided(&[parts], &[0], 0);
    gather(call, mean, scale, running_mean, running_var, momentum, eps, &counts)
}

/// Mean and inverse deviation of all parts, whose numbers of elements are `counts`.
fn gather(
    call: &mut Call,
    mean: &View,
    scale: &View,
    running_mean: Option<&View>,
    running_var: Option<&View>,
    momentum: f64,
    eps: f64,
    counts: &View,
) -> Result<()> {
    check!(
        mean.dim() == 2
            && mean.sizes == scale.sizes
            && mean.dtype == scale.dtype
            && mean.dtype.is_float()
            && counts.dim() == 1
            && counts.sizes[0] == mean.sizes[0],
        Runtime,
        "{}: expected mean and invstd of shape [parts, channels] and as many counts, got {}, {}, {}",
        call.name,
        mean.describe(),
        scale.describe(),
        counts.describe()
    );
    let channels = mean.sizes[1];
    let running = match [running_mean, running_var] {
        [Some(mean), Some(var)] => Some([mean, var]),
        [None, None] => None,
        _ => return Err(Error::Runtime(format!("{}: running statistics must both be given, or neither", call.name))),
    };
    for t in running.iter().flatten() {
        check_channels("running statistics", Some(t), channels)?;
    }
    let dtype = accumulator(mean.dtype);
    let counts = counts.as_strided(&mean.sizes, &[counts.strides[0], 0], 0);
    let new = || call.empty(dtype, &[channels]);
    let outs = [new()?, new()?, new()?];
    synchronized::gather(call, [mean, scale, &counts], eps, outs.each_ref())?;
    let [mean, scale, variance] = outs;
    if let Some(running) = running {
        update(call, running, [&mean, &variance], momentum, 1.0)?;
    }
    call.ret(mean);
    call.ret(scale);
    Ok(())
}

/// The sums of the gradient and of its product with the centred input, and the gradients of weight
/// and bias, of this device's part.
fn backward_reduce(
    call: &mut Call,
    grad: &View,
    x: &View,
    mean: Option<&View>,
    scale: &View,
    weight: Option<&View>,
    wanted: Wanted,
) -> Result<()> {
    check_input(call, x)?;
    check!(
        grad.sizes == x.sizes,
        Runtime,
        "{}: the gradient {} is not of the input's shape {}",
        call.name,
        grad.describe(),
        x.describe()
    );
    let mean = row(call, mean, x)?;
    check_channels(call.name, Some(scale), x.sizes[1])?;
    let parameter = weight.map_or(scale.dtype, |w| w.dtype);
    let dtype = accumulator(x.dtype);
    let (product, total) = (call.empty(dtype, &[x.sizes[1]])?, call.empty(dtype, &[x.sizes[1]])?);
    let products = Products { grad, x, mean: mean.as_ref(), scale: None, weight: None };
    products.sum(call, non_channel_axes(call, x.dim())?, &[&product, &total])?;
    let (mut weight_gradient, mut bias_gradient) = (None, None);
    if wanted.weight_g {
        let out = call.empty(parameter, &[x.sizes[1]])?;
        gradient_of_weight(call, &product, scale, &out)?;
        weight_gradient = Some(out);
    }
    if wanted.bias_g {
        // A separate tensor from the sum, which the caller modifies.
        let out = call.empty(parameter, &[x.sizes[1]])?;
        checked_copy(call, &total, &out)?;
        bias_gradient = Some(out);
    }
    let sums = if wanted.input_g { [Some(total), Some(product)] } else { [None, None] };
    for t in sums.into_iter().chain([weight_gradient, bias_gradient]) {
        call.ret_optional(t);
    }
    Ok(())
}

/// The input's gradient, given the sums and counts of all devices.
fn backward_elemt(
    call: &mut Call,
    grad: &View,
    x: &View,
    rows: Rows,
    sum: &View,
    product: &View,
    counts: &View,
) -> Result<()> {
    let Rows { mean, invstd: scale, weight } = rows;
    check_input(call, x)?;
    check!(
        grad.sizes == x.sizes,
        Runtime,
        "{}: the gradient {} is not of the input's shape {}",
        call.name,
        grad.describe(),
        x.describe()
    );
    let terms = NormalizationTerms {
        mean: row(call, mean, x)?,
        scale: row(call, Some(scale), x)?,
        weight: row(call, weight, x)?,
        bias: None,
    };
    check_channels(call.name, Some(sum), x.sizes[1])?;
    check_channels(call.name, Some(product), x.sizes[1])?;
    let dtype = accumulator(x.dtype);
    let count = call.empty(dtype, &[])?;
    total(call, &cast(call, counts, dtype)?, &count)?;
    // Means of the gradient and of its product with the normalised input.
    let (mean_gradient, mean_product) = (call.empty(dtype, &[x.sizes[1]])?, call.empty(dtype, &[x.sizes[1]])?);
    gradient_means(call, [sum, product, scale, &count], [&mean_gradient, &mean_product])?;
    let sums = Sums {
        total: Some(of_channels(&mean_gradient, x)),
        product: Some(of_channels(&mean_product, x)),
        count: 1,
        weighted_after: true,
    };
    let out = like(call, x)?;
    terms.gradient(call, grad, x, &sums, &out)?;
    call.ret(out);
    Ok(())
}
