//! The parts of a batch normalisation whose batch is spread over several devices (SyncBatchNorm). Statistics are in the
//! accumulator's dtype: float32 for half-precision inputs.

use super::batch::update;
use super::sums::Products;
use super::{Sums, Terms, all_but_channels, check_channels, moments, of_channels};
use crate::check;
use crate::movement::copy::cast;
use crate::operator::call::{Call, Ret, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, op};
use crate::pointwise::kernel::{self, Input};
use crate::reduction::variance::{Moments, Results};
use crate::reduction::{Axes, Fold, Reduction, Scope, Values, reduce};
use crate::tensor::Tensor;
use crate::tensor::memory_format::{self, is_channels_last};
use crate::tensor::promote::accumulator;
use dml_kernel::{Scalar, Value, math};
use smallvec::{SmallVec, smallvec};

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::batch_norm_stats", stats),
    op("aten::batch_norm_elemt", |c| elemt(c, None)),
    op("aten::batch_norm_elemt.out", |c| elemt(c, Some(6))),
    op("aten::batch_norm_gather_stats", gather_stats),
    op("aten::batch_norm_gather_stats_with_counts", gather_stats_with_counts),
    op("aten::batch_norm_backward_reduce", backward_reduce),
    op("aten::batch_norm_backward_elemt", backward_elemt),
];

/// Argument `i`: a floating-point input with channels.
fn input<'t>(call: &Call<'t>, i: usize) -> Result<&'t Tensor> {
    let t = call.tensor(i)?;
    call.wrap_dim(1, t.dim())?;
    check!(t.dtype.is_float(), NotImplemented, "\"{}\" not implemented for '{}'", &call.name[6..], t.dtype);
    Ok(t)
}

/// Argument `i`: a row of one number a channel of `like`, as a view of its shape.
fn row(call: &Call, i: usize, like: &Tensor) -> Result<Option<Tensor>> {
    let t = call.opt_tensor(i)?;
    check_channels(call.name, t, like.sizes[1])?;
    Ok(t.map(|t| of_channels(t, like)))
}

/// `batch_norm_stats(input, eps) -> (mean, invstd)` of this device's part
fn stats(call: &mut Call) -> Result<()> {
    let (input, eps) = (input(call, 0)?, call.double(1)?);
    let dtype = accumulator(input.dtype);
    let (mean, scale) = (call.empty(dtype, &[input.sizes[1]])?, call.empty(dtype, &[input.sizes[1]])?);
    moments(call, input, all_but_channels(call, input.dim())?, eps, &[&mean, &scale])?;
    call.ret(mean);
    call.ret(scale);
    Ok(())
}

/// `batch_norm_elemt(input, weight, bias, mean, invstd, eps[, out])`
fn elemt(call: &mut Call, out: Option<usize>) -> Result<()> {
    let input = input(call, 0)?;
    let terms = Terms {
        mean: row(call, 3, input)?,
        scale: row(call, 4, input)?,
        weight: row(call, 1, input)?,
        bias: row(call, 2, input)?,
    };
    let out = match out {
        Some(_) => call.out(out, input.dtype, &input.sizes)?,
        None => like(call, input)?,
    };
    terms.normalize(call, input, &out)?;
    call.ret(out);
    Ok(())
}

fn like(call: &Call, input: &Tensor) -> Result<Tensor> {
    let strides = memory_format::strides(&input.sizes, is_channels_last(input));
    call.empty_strided(input.dtype, &input.sizes, &strides)
}

/// Joins parts, each given by its mean, inverse deviation and count. `numbers[0]` is eps. Yields the mean, the inverse
/// deviation, and the variance of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gather(Moments);

impl Fold for Gather {
    fn name(&self) -> &'static str {
        "gather_statistics"
    }

    fn accumulators(&self, index: Scalar) -> SmallVec<[Scalar; 3]> {
        self.0.accumulators(index)
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        self.0.identity(s)
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [mean, scale, count] = [0, 1, 2].map(|i| elements[i].cast(self.0.scalar));
        let variance: Value = 1.0 / (scale * scale) - s.numbers[0];
        smallvec![count, mean, mean.like(0.0), variance.max(0.0) * count]
    }

    fn combine<'b>(&self, s: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        self.0.combine(s, x, y)
    }

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        let scale = math::rsqrt(x[3] / x[0] + s.numbers[0]);
        smallvec![x[1], scale, x[3] / (x[0] - 1.0)]
    }
}

/// `batch_norm_gather_stats(input, mean, invstd, running_mean, running_var, momentum, eps, count)`: every part has as
/// many elements.
fn gather_stats(call: &mut Call) -> Result<()> {
    let dtype = call.tensor(1)?.dtype;
    let count = call.scalar(7)?;
    let counts = call.empty(dtype, &[1])?;
    crate::movement::copy::fill_with(call, &counts, count)?;
    let parts = call.tensor(1)?.sizes.first().copied().unwrap_or(1);
    gather(call, &counts.as_strided(&[parts], &[0], 0))
}

/// `batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)`
fn gather_stats_with_counts(call: &mut Call) -> Result<()> {
    let counts = call.tensor(7)?.clone();
    gather(call, &counts)
}

fn gather(call: &mut Call, counts: &Tensor) -> Result<()> {
    let (mean, scale) = (call.tensor(1)?, call.tensor(2)?);
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
    let (momentum, eps) = (call.double(5)?, call.double(6)?);
    let running = match [call.opt_tensor(3)?, call.opt_tensor(4)?] {
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
    let fold = Gather(Moments { scalar: dtype.compute(), results: Results::Normalizer });
    let axes = Axes::listed(call, &[0], 2, false)?;
    let numbers = [(dtype, Number::Double(eps))];
    let inputs = [mean, scale, &counts];
    reduce(call, &fold, &Reduction { inputs: &inputs, outs: &outs.each_ref(), axes, tables: &[], numbers: &numbers })?;
    let [mean, scale, variance] = outs;
    if let Some(running) = running {
        update(call, running, [&mean, &variance], momentum, 1.0)?;
    }
    call.ret(mean);
    call.ret(scale);
    Ok(())
}

/// `batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g)
/// -> (sum_dy, sum_dy_xmu, grad_weight, grad_bias)` of this device's part
fn backward_reduce(call: &mut Call) -> Result<()> {
    let (grad, x) = (call.tensor(0)?, input(call, 1)?);
    check!(
        grad.sizes == x.sizes,
        Runtime,
        "{}: the gradient {} is not of the input's shape {}",
        call.name,
        grad.describe(),
        x.describe()
    );
    let mean = row(call, 2, x)?;
    row(call, 3, x)?;
    let scale = call.tensor(3)?;
    let parameter = call.opt_tensor(4)?.map_or(scale.dtype, |w| w.dtype);
    let (of_input, of_weight, of_bias) = (call.flag(5)?, call.flag(6)?, call.flag(7)?);
    let dtype = accumulator(x.dtype);
    let (product, total) = (call.empty(dtype, &[x.sizes[1]])?, call.empty(dtype, &[x.sizes[1]])?);
    let products = Products { grad, x, mean: mean.as_ref(), scale: None, weight: None };
    products.sum(call, all_but_channels(call, x.dim())?, &[&product, &total])?;
    let mut rest = [Ret::None, Ret::None];
    if of_weight {
        let out = call.empty(parameter, &[x.sizes[1]])?;
        let inputs = [Input::Tensor(product.clone()), Input::Tensor(scale.clone())];
        kernel::run(call, "mul", 0, &[&out], &inputs, dtype, |_, v| vec![v[0] * v[1]])?;
        rest[0] = Ret::Tensor(out);
    }
    if of_bias {
        // Not the same tensor as the sum, which the caller changes.
        let out = call.empty(parameter, &[x.sizes[1]])?;
        crate::movement::copy::device_copy(call, &total, &out)?;
        rest[1] = Ret::Tensor(out);
    }
    for t in [total, product] {
        call.ret_value(if of_input { Ret::Tensor(t) } else { Ret::None });
    }
    for r in rest {
        call.ret_value(r);
    }
    Ok(())
}

/// `batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count)`: the input's gradient,
/// given the sums and counts of all devices
fn backward_elemt(call: &mut Call) -> Result<()> {
    let (grad, x) = (call.tensor(0)?, input(call, 1)?);
    check!(
        grad.sizes == x.sizes,
        Runtime,
        "{}: the gradient {} is not of the input's shape {}",
        call.name,
        grad.describe(),
        x.describe()
    );
    let terms = Terms { mean: row(call, 2, x)?, scale: row(call, 3, x)?, weight: row(call, 4, x)?, bias: None };
    row(call, 5, x)?;
    row(call, 6, x)?;
    let dtype = accumulator(x.dtype);
    let counts = cast(call, call.tensor(7)?, dtype)?;
    let count = call.empty(dtype, &[])?;
    crate::reduction::sum::total(call, &counts, &count)?;
    // Means of the gradient and of its product with the normalised input.
    let (total, product) = (call.empty(dtype, &[x.sizes[1]])?, call.empty(dtype, &[x.sizes[1]])?);
    let inputs = [call.tensor(5)?, call.tensor(6)?, call.tensor(3)?, &count].map(|t| Input::Tensor(t.clone()));
    kernel::run(call, "gradient_means", 0, &[&total, &product], &inputs, dtype, |_, v| {
        vec![v[0] / v[3], v[1] * v[2] / v[3]]
    })?;
    let sums = Sums {
        total: Some(of_channels(&total, x)),
        product: Some(of_channels(&product, x)),
        count: 1,
        weighted_after: true,
    };
    let out = like(call, x)?;
    terms.gradient(call, grad, x, &sums, &out)?;
    call.ret(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::validate;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        let dtype = DType::F32;
        let fold = Gather(Moments { scalar: dtype.compute(), results: Results::Normalizer });
        validate(&fold, &[dtype; 3], &[dtype; 3], &[dtype]);
    }
}
