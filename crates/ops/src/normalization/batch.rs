//! Batch normalisation: over every dimension but that of channels.

use super::sums::Products;
use super::{Sums, Terms, all_but_channels, check_channels, moments, of_channels, parameter_dtype, ret_if};
use crate::check;
use crate::movement::copy::cast;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::{Error, Result};
use crate::operator::{Operator, op};
use crate::pointwise::kernel::{self, Input};
use crate::tensor::Tensor;
use crate::tensor::memory_format::{self, is_channels_last};
use crate::tensor::promote::accumulator;
use dml_kernel::{DType, math};
use smallvec::SmallVec;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::native_batch_norm", |c| native(c, None)),
    op("aten::native_batch_norm.out", |c| native(c, Some(8))),
    op("aten::_native_batch_norm_legit", |c| native(c, None)),
    op("aten::_native_batch_norm_legit.out", |c| native(c, Some(8))),
    op("aten::_native_batch_norm_legit.no_stats", |c| no_stats(c, None)),
    op("aten::_native_batch_norm_legit.no_stats_out", |c| no_stats(c, Some(6))),
    op("aten::_batch_norm_with_update", |c| with_update(c, None)),
    op("aten::_batch_norm_with_update.out", |c| with_update(c, Some(7))),
    op("aten::batch_norm_update_stats", update_stats),
    op("aten::native_batch_norm_backward", native_backward),
    op("aten::batch_norm_backward", backward_with_reserve),
];

/// An input with its parameters and running statistics, checked.
struct Batch<'t> {
    input: &'t Tensor,
    weight: Option<&'t Tensor>,
    bias: Option<&'t Tensor>,
    running: Option<[&'t Tensor; 2]>,
    /// Of statistics and of the gradients of parameters.
    dtype: DType,
    channels: i64,
}

impl<'t> Batch<'t> {
    fn new(
        call: &Call,
        input: &'t Tensor,
        parameters: [Option<&'t Tensor>; 2],
        running: [Option<&'t Tensor>; 2],
        saved: [Option<&'t Tensor>; 2],
    ) -> Result<Batch<'t>> {
        call.wrap_dim(1, input.dim())?;
        check!(input.dtype.is_float(), NotImplemented, "\"batch_norm\" not implemented for '{}'", input.dtype);
        let channels = input.sizes[1];
        let [weight, bias] = parameters;
        let all = [weight, bias, running[0], running[1], saved[0], saved[1]];
        for (name, row) in ["weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd"].iter().zip(all)
        {
            check_channels(name, row, channels)?;
        }
        let dtype = parameter_dtype(input, &all)?;
        let running = match running {
            [Some(mean), Some(var)] => Some([mean, var]),
            [None, None] => None,
            _ => return Err(refused("running_mean and running_var must both be given, or neither")),
        };
        Ok(Batch { input, weight, bias, running, dtype, channels })
    }

    /// Elements of a channel.
    fn count(&self) -> i64 {
        self.input.numel() / self.channels.max(1)
    }

    fn row(&self, call: &Call, dtype: DType) -> Result<Tensor> {
        call.empty(dtype, &[self.channels])
    }

    /// A result of the input's shape and memory format.
    fn result(&self, call: &Call) -> Result<Tensor> {
        let strides = memory_format::strides(&self.input.sizes, is_channels_last(self.input));
        call.empty_strided(self.input.dtype, &self.input.sizes, &strides)
    }

    fn view(&self, row: &Tensor) -> Tensor {
        of_channels(row, self.input)
    }

    fn terms(&self, mean: &Tensor, scale: &Tensor) -> Terms {
        Terms {
            mean: Some(self.view(mean)),
            scale: Some(self.view(scale)),
            weight: self.weight.map(|t| self.view(t)),
            bias: self.bias.map(|t| self.view(t)),
        }
    }

    /// Mean and inverse deviation of the batch, and running statistics brought up to date.
    fn statistics(&self, call: &Call, eps: f64, momentum: f64, mean: &Tensor, scale: &Tensor) -> Result<()> {
        let input = self.input;
        check!(
            input.numel() != 0,
            Runtime,
            "input tensor must have at least one element, but got input_sizes = {:?}",
            input.sizes.as_slice()
        );
        let axes = all_but_channels(call, input.dim())?;
        let Some(running) = self.running else { return moments(call, input, axes, eps, &[mean, scale]) };
        let variance = self.row(call, accumulator(input.dtype))?;
        moments(call, input, axes, eps, &[mean, scale, &variance])?;
        let n = self.count() as f64;
        update(call, running, [mean, &variance], momentum, n / (n - 1.0))
    }

    /// Mean and inverse deviation of the running statistics.
    fn remembered(&self, call: &Call, eps: f64) -> Result<(Tensor, Tensor)> {
        let Some([mean, var]) = self.running else {
            return Err(refused("running_mean and running_var must be given when training=False"));
        };
        let dtype = accumulator(var.dtype);
        let scale = self.row(call, dtype)?;
        let inputs = [Input::Tensor(var.clone()), Input::Number(Number::Double(eps), dtype)];
        kernel::run(call, "inverse_deviation", 0, &[&scale], &inputs, dtype, |_, v| vec![math::rsqrt(v[0] + v[1])])?;
        Ok((mean.clone(), scale))
    }
}

fn refused(what: &str) -> Error {
    Error::Runtime(format!("batch_norm: {what}"))
}

/// `running = (1 - momentum) * running + momentum * of the batch`, the variance corrected by a factor.
pub fn update(call: &Call, running: [&Tensor; 2], batch: [&Tensor; 2], momentum: f64, correction: f64) -> Result<()> {
    let dtype = accumulator(running[0].dtype);
    let mut inputs: SmallVec<[Input; 7]> = running.iter().chain(&batch).map(|&t| Input::Tensor(t.clone())).collect();
    let numbers = [1.0 - momentum, momentum, correction];
    inputs.extend(numbers.map(|x| Input::Number(Number::Double(x), dtype)));
    kernel::run(call, "update_statistics", 0, &running, &inputs, dtype, |_, v| {
        vec![v[0] * v[4] + v[2] * v[5], v[1] * v[4] + v[3] * v[6] * v[5]]
    })
}

/// `native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps[, 3 outs])`
fn native(call: &mut Call, out: Option<usize>) -> Result<()> {
    let running = [call.opt_tensor(3)?, call.opt_tensor(4)?];
    forward(call, running, call.flag(5)?, call.double(6)?, call.double(7)?, out)
}

/// `_native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps[, 3 outs])`
fn no_stats(call: &mut Call, out: Option<usize>) -> Result<()> {
    forward(call, [None; 2], call.flag(3)?, call.double(4)?, call.double(5)?, out)
}

/// `_batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps[, 4 outs])`; nothing is kept in
/// reserve.
fn with_update(call: &mut Call, out: Option<usize>) -> Result<()> {
    let running = [call.opt_tensor(3)?, call.opt_tensor(4)?];
    forward(call, running, true, call.double(5)?, call.double(6)?, out)?;
    let reserve = match out {
        Some(i) => call.tensor(i + 3)?.clone(),
        None => call.empty(DType::U8, &[0])?,
    };
    call.ret(reserve);
    Ok(())
}

fn forward(
    call: &mut Call,
    running: [Option<&Tensor>; 2],
    training: bool,
    momentum: f64,
    eps: f64,
    out: Option<usize>,
) -> Result<()> {
    let batch = Batch::new(call, call.tensor(0)?, [call.opt_tensor(1)?, call.opt_tensor(2)?], running, [None; 2])?;
    let result = match out {
        Some(_) => call.out(out, batch.input.dtype, &batch.input.sizes)?,
        None => batch.result(call)?,
    };
    let (saved, terms) = if training {
        let saved = [1, 2].map(|i| call.out(out.map(|at| at + i), batch.dtype, &[batch.channels]));
        let [mean, scale] = saved;
        let (mean, scale) = (mean?, scale?);
        batch.statistics(call, eps, momentum, &mean, &scale)?;
        let terms = batch.terms(&mean, &scale);
        ([mean, scale], terms)
    } else {
        let (mean, scale) = batch.remembered(call, eps)?;
        let saved = match out {
            Some(i) => [call.tensor(i + 1)?.clone(), call.tensor(i + 2)?.clone()],
            None => [call.empty(batch.dtype, &[0])?, call.empty(batch.dtype, &[0])?],
        };
        (saved, batch.terms(&mean, &scale))
    };
    terms.normalize(call, batch.input, &result)?;
    call.ret(result);
    for t in saved {
        call.ret(t);
    }
    Ok(())
}

/// `batch_norm_update_stats(input, running_mean, running_var, momentum) -> (mean, variance)`
fn update_stats(call: &mut Call) -> Result<()> {
    let running = [call.opt_tensor(1)?, call.opt_tensor(2)?];
    let batch = Batch::new(call, call.tensor(0)?, [None; 2], running, [None; 2])?;
    let [mean, scale, variance] = [batch.dtype; 3].map(|dtype| batch.row(call, dtype));
    let (mean, scale, variance) = (mean?, scale?, variance?);
    check!(
        batch.input.numel() != 0,
        Runtime,
        "input tensor must have at least one element, but got input_sizes = {:?}",
        batch.input.sizes.as_slice()
    );
    let axes = all_but_channels(call, batch.input.dim())?;
    moments(call, batch.input, axes, 0.0, &[&mean, &scale, &variance])?;
    if let Some(running) = batch.running {
        let n = batch.count() as f64;
        update(call, running, [&mean, &variance], call.double(3)?, n / (n - 1.0))?;
    }
    call.ret(mean);
    call.ret(variance);
    Ok(())
}

/// `native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
/// output_mask)`
fn native_backward(call: &mut Call) -> Result<()> {
    backward(call)
}

/// `batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask,
/// reserve)`: `save_var` is the inverse deviation, and nothing is in reserve.
fn backward_with_reserve(call: &mut Call) -> Result<()> {
    backward(call)
}

fn backward(call: &mut Call) -> Result<()> {
    let (grad, input) = (call.tensor(0)?, call.tensor(1)?);
    let running = [call.opt_tensor(3)?, call.opt_tensor(4)?];
    let (train, eps, mask) = (call.flag(7)?, call.double(8)?, call.flags(9)?);
    let saved = if train { [call.opt_tensor(5)?, call.opt_tensor(6)?] } else { [None; 2] };
    let batch = Batch::new(call, input, [call.opt_tensor(2)?, None], running, saved)?;
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
        _ => batch.remembered(call, eps)?,
    };
    let terms = batch.terms(&mean, &scale);
    let wants = |i: usize| mask.get(i).is_some_and(|&m| m != 0);
    let mut sums = None;
    if wants(1) || wants(2) || wants(0) && train {
        let dtype = accumulator(input.dtype);
        let (product, total) = (batch.row(call, dtype)?, batch.row(call, dtype)?);
        let (mean, scale) = (terms.mean.as_ref(), terms.scale.as_ref());
        let products = Products { grad, x: input, mean, scale, weight: None };
        products.sum(call, all_but_channels(call, input.dim())?, &[&product, &total])?;
        sums = Some([product, total]);
    }
    let mut of_input = None;
    if wants(0) {
        let result = batch.result(call)?;
        match (&sums, train) {
            (Some([product, total]), true) => {
                let (total, product) = (Some(batch.view(total)), Some(batch.view(product)));
                let sums = Sums { total, product, count: batch.count(), weighted_after: true };
                terms.gradient(call, grad, input, &sums, &result)?;
            }
            // Statistics that do not depend on the input only scale.
            _ => Terms { mean: None, bias: None, ..terms }.normalize(call, grad, &result)?,
        }
        of_input = Some(result);
    }
    let [of_weight, of_bias] = match &sums {
        Some(sums) => sums.each_ref().map(|t| Some(cast(call, t, batch.dtype))),
        None => [None, None],
    };
    let of_weight = of_weight.filter(|_| wants(1)).transpose()?;
    let of_bias = of_bias.filter(|_| wants(2)).transpose()?;
    ret_if(call, of_input);
    ret_if(call, of_weight);
    ret_if(call, of_bias);
    Ok(())
}
