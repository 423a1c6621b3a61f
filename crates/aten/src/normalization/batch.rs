//! Batch normalisation: over every dimension except the channels.

use crate::normalization::channels::{check_channels, non_channel_axes};
use crate::normalization::statistics::parameter_dtype;
use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::{Error, Result};
use crate::operator::structured;
use crate::{check, group, operators};
use dml_compute::dtype::accumulator;
use dml_compute::movement::copy::cast;
use dml_compute::normalization::channels::{like, of_channels};
use dml_compute::normalization::statistics::{batch_moments, inverse_deviation, update};
use dml_compute::normalization::sums::Products;
use dml_compute::normalization::terms::{NormalizationTerms, Sums};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    forward({Operands}, training, momentum, eps, outs) {
        hot "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "aten::native_batch_norm.out(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
        "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "aten::_native_batch_norm_legit.out(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps, *, Tensor(d!) out, Tensor(e!) save_mean, Tensor(f!) save_invstd) -> (Tensor(d!), Tensor(e!), Tensor(f!))",
        "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        "aten::_native_batch_norm_legit.no_stats_out(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    }
    with_update({Operands}, momentum, eps, outs) {
        "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        "aten::_batch_norm_with_update.out(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps, *, Tensor(d!) out, Tensor(e!) save_mean, Tensor(f!) save_invstd, Tensor(g!) reserve) -> (Tensor(d!), Tensor(e!), Tensor(f!), Tensor(g!))",
    }
    update_stats({Operands}, momentum) {
        "aten::batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, Tensor)",
    }
    backward(grad_out, {Operands}, save_mean, save_invstd, train, eps, output_mask) {
        hot "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    }
    // `save_var` is the inverse deviation too, and there is no reserve.
    backward(grad_out, {Operands}, save_mean, save_var, update, eps, output_mask) {
        "aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)",
    }
}

group! {
    /// An input with its parameters and running statistics.
    struct Operands<'t> {
        input: &'t View,
        weight: Option<&'t View> = None,
        bias: Option<&'t View> = None,
        running_mean: Option<&'t View> = None,
        running_var: Option<&'t View> = None,
    }
}

/// An input with its parameters and running statistics, checked.
struct Batch<'t> {
    input: &'t View,
    weight: Option<&'t View>,
    bias: Option<&'t View>,
    running: Option<[&'t View; 2]>,
    /// The dtype of statistics and of the gradients of parameters.
    dtype: DType,
    channels: i64,
}

impl<'t> Batch<'t> {
    fn new(call: &Call, operands: Operands<'t>, saved: [Option<&'t View>; 2]) -> Result<Batch<'t>> {
        let Operands { input, weight, bias, running_mean, running_var } = operands;
        call.wrap_dim(1, input.dim())?;
        check!(input.dtype.is_float(), NotImplemented, "\"batch_norm\" not implemented for '{}'", input.dtype);
        let channels = input.sizes[1];
        let all = [weight, bias, running_mean, running_var, saved[0], saved[1]];
        for (name, row) in ["weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd"].iter().zip(all)
        {
            check_channels(name, row, channels)?;
        }
        let dtype = parameter_dtype(input, &all)?;
        let running = match [running_mean, running_var] {
            [Some(mean), Some(var)] => Some([mean, var]),
            [None, None] => None,
            _ => return Err(refused("running_mean and running_var must both be given, or neither")),
        };
        Ok(Batch { input, weight, bias, running, dtype, channels })
    }

    /// Number of elements of a channel.
    fn count(&self) -> i64 {
        self.input.numel() / self.channels.max(1)
    }

    fn row(&self, call: &Call, dtype: DType) -> Result<View> {
        Ok(call.empty(dtype, &[self.channels])?)
    }

    fn view(&self, row: &View) -> View {
        of_channels(row, self.input)
    }

    fn terms(&self, mean: &View, scale: &View) -> NormalizationTerms {
        NormalizationTerms {
            mean: Some(self.view(mean)),
            scale: Some(self.view(scale)),
            weight: self.weight.map(|t| self.view(t)),
            bias: self.bias.map(|t| self.view(t)),
        }
    }

    /// Computes mean and inverse deviation of the batch, and updates running statistics.
    fn statistics(&self, call: &Call, eps: f64, momentum: f64, mean: &View, scale: &View) -> Result<()> {
        let input = self.input;
        check!(
            input.numel() != 0,
            Runtime,
            "input tensor must have at least one element, but got input_sizes = {:?}",
            input.sizes.as_slice()
        );
        let axes = non_channel_axes(call, input.dim())?;
        let Some(running) = self.running else { return Ok(batch_moments(call, input, axes, eps, &[mean, scale])?) };
        let variance = self.row(call, accumulator(input.dtype))?;
        batch_moments(call, input, axes, eps, &[mean, scale, &variance])?;
        let n = self.count() as f64;
        Ok(update(call, running, [mean, &variance], momentum, n / (n - 1.0))?)
    }

    /// Mean and inverse deviation of the running statistics.
    fn running_statistics(&self, call: &Call, eps: f64) -> Result<(View, View)> {
        let Some([mean, var]) = self.running else {
            return Err(refused("running_mean and running_var must be given when training=False"));
        };
        let scale = self.row(call, accumulator(var.dtype))?;
        inverse_deviation(call, var, eps, &scale)?;
        Ok((mean.clone(), scale))
    }
}

fn refused(what: &str) -> Error {
    Error::Runtime(format!("batch_norm: {what}"))
}

/// The reserve is empty.
fn with_update(call: &mut Call, operands: Operands, momentum: f64, eps: f64, outs: Outs) -> Result<()> {
    let reserve = outs.as_ref().map(|outs| outs[3].clone());
    forward(call, operands, true, momentum, eps, outs)?;
    let reserve = match reserve {
        Some(given) => given,
        None => call.empty(DType::U8, &[0])?,
    };
    call.ret(reserve);
    Ok(())
}

fn forward(call: &mut Call, operands: Operands, training: bool, momentum: f64, eps: f64, outs: Outs) -> Result<()> {
    let batch = Batch::new(call, operands, [None; 2])?;
    let input = batch.input;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let result = match given(0) {
        given @ Some(_) => structured::result(call, given, input.dtype, &input.sizes)?,
        None => like(call, input)?,
    };
    let row = |i: usize| structured::result(call, given(i), batch.dtype, &[batch.channels]);
    let none = |i: usize| given(i).map_or_else(|| call.empty(batch.dtype, &[0]), |t| Ok(t.clone()));
    let (saved, terms) = if training {
        let (mean, scale) = (row(1)?, row(2)?);
        batch.statistics(call, eps, momentum, &mean, &scale)?;
        let terms = batch.terms(&mean, &scale);
        ([mean, scale], terms)
    } else {
        let (mean, scale) = batch.running_statistics(call, eps)?;
        ([none(1)?, none(2)?], batch.terms(&mean, &scale))
    };
    terms.normalize(call, batch.input, &result)?;
    call.ret(result);
    for t in saved {
        call.ret(t);
    }
    Ok(())
}

/// Returns mean and variance of the batch.
fn update_stats(call: &mut Call, operands: Operands, momentum: f64) -> Result<()> {
    let batch = Batch::new(call, operands, [None; 2])?;
    let [mean, scale, variance] = [batch.dtype; 3].map(|dtype| batch.row(call, dtype));
    let (mean, scale, variance) = (mean?, scale?, variance?);
    check!(
        batch.input.numel() != 0,
        Runtime,
        "input tensor must have at least one element, but got input_sizes = {:?}",
        batch.input.sizes.as_slice()
    );
    let axes = non_channel_axes(call, batch.input.dim())?;
    batch_moments(call, batch.input, axes, 0.0, &[&mean, &scale, &variance])?;
    if let Some(running) = batch.running {
        let n = batch.count() as f64;
        update(call, running, [&mean, &variance], momentum, n / (n - 1.0))?;
    }
    call.ret(mean);
    call.ret(variance);
    Ok(())
}

fn backward(
    call: &mut Call,
    grad: &View,
    operands: Operands,
    saved_mean: Option<&View>,
    saved_scale: Option<&View>,
    train: bool,
    eps: f64,
    mask: &[u8],
) -> Result<()> {
    let saved = if train { [saved_mean, saved_scale] } else { [None; 2] };
    let batch = Batch::new(call, operands, saved)?;
    let input = batch.input;
    check!(
        grad.sizes == input.sizes,
        Runtime,
        "{}: expected a gradient of shape {:?}, got {:?}",
        call.name,
        input.sizes.as_slice(),
        grad.sizes.as_slice()
    );
    let (mean, scale) = match (train, saved) {
        (true, [Some(mean), Some(scale)]) => (mean.clone(), scale.clone()),
        (true, _) => return Err(refused("save_mean and save_invstd must be given when train=True")),
        _ => batch.running_statistics(call, eps)?,
    };
    let terms = batch.terms(&mean, &scale);
    let wants = |i: usize| mask.get(i).is_some_and(|&m| m != 0);
    let mut sums = None;
    if wants(1) || wants(2) || wants(0) && train {
        let dtype = accumulator(input.dtype);
        let (product, total) = (batch.row(call, dtype)?, batch.row(call, dtype)?);
        let (mean, scale) = (terms.mean.as_ref(), terms.scale.as_ref());
        let products = Products { grad, x: input, mean, scale, weight: None };
        products.sum(call, non_channel_axes(call, input.dim())?, &[&product, &total])?;
        sums = Some([product, total]);
    }
    let mut of_input = None;
    if wants(0) {
        let result = like(call, input)?;
        match (&sums, train) {
            (Some([product, total]), true) => {
                let (total, product) = (Some(batch.view(total)), Some(batch.view(product)));
                let sums = Sums { total, product, count: batch.count(), weighted_after: true };
                terms.gradient(call, grad, input, &sums, &result)?;
            }
            // Statistics that do not depend on the input are constants of the gradient.
            _ => NormalizationTerms { mean: None, bias: None, ..terms }.normalize(call, grad, &result)?,
        }
        of_input = Some(result);
    }
    let [of_weight, of_bias] = match &sums {
        Some(sums) => sums.each_ref().map(|t| Some(cast(call, t, batch.dtype))),
        None => [None, None],
    };
    let of_weight = of_weight.filter(|_| wants(1)).transpose()?;
    let of_bias = of_bias.filter(|_| wants(2)).transpose()?;
    for t in [of_input, of_weight, of_bias] {
        call.ret_optional(t);
    }
    Ok(())
}
