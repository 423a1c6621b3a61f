//! Fused optimizer steps: one launch reads and writes all parameters and their states.

use crate::operator::argument::{TensorOrScalar, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator;
use crate::{check, operators};
use dml_compute::lists::functions::{FUSED_ADAGRAD, FUSED_ADAM, FUSED_SGD};
use dml_compute::lists::multi_tensor;
use dml_compute::lists::multi_tensor::batch::Row;
use dml_compute::lists::optimizer::{Decay, row, unscale};
use dml_compute::pointwise::kernel::Input;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::DType;
use smallvec::SmallVec;

operators! {
    adagrad(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf) {
        "aten::_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        "aten::_fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps, *, Tensor lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
    adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf; Decay::Gradient) {
        "aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        "aten::_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
    adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf; Decay::Parameter) {
        "aten::_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        "aten::_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
    sgd(self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf) {
        "aten::_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        "aten::_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
}

/// Checks that a list has as many tensors as there are parameters.
fn check_count(call: &Call, count: usize, list: &[&View]) -> Result<()> {
    check!(
        list.len() == count,
        Runtime,
        "{}: lists of {count} and {} tensors where the same number is expected",
        call.name,
        list.len()
    );
    Ok(())
}

/// Checks that gradients and states match the parameters one by one, in shape and dtype.
fn check_lists(call: &Call, params: &[&View], lists: &[&[&View]]) -> Result<()> {
    for list in lists {
        check_count(call, params.len(), list)?;
        for (param, other) in params.iter().zip(list.iter()) {
            let (shape, dtype) = (&param.sizes, param.dtype);
            check!(
                other.sizes == *shape,
                Runtime,
                "{}: expected the parameter's shape {shape:?} but found {:?}",
                call.name,
                other.sizes
            );
            check!(other.dtype == dtype, Runtime, "expected scalar type {dtype} but found {}", other.dtype);
        }
    }
    Ok(())
}

/// What every parameter shares: `found`, the learning rate (a number or a 0-dim tensor), and
/// numbers.
fn shared(call: &Call, found: Option<&View>, rate: TensorOrScalar, numbers: &[f64]) -> Result<SmallVec<[Input; 12]>> {
    let mut all: SmallVec<[Input; 12]> = found.map(|t| Input::Tensor(t.clone())).into_iter().collect();
    // Each kernel takes a number in the dtype of its parameters.
    let number = |n| Input::Number(n, DType::F64);
    all.push(match rate {
        TensorOrScalar::Tensor(t) => operator::input(call, &t)?,
        TensorOrScalar::Scalar(n) => number(n),
    });
    all.extend(numbers.iter().map(|&x| number(Number::Double(x))));
    Ok(all)
}

#[allow(clippy::too_many_arguments)]
fn adam(
    call: &mut Call,
    params: Tensors,
    grads: Tensors,
    averages: Tensors,
    squares: Tensors,
    largest: Tensors,
    steps: Tensors,
    rate: TensorOrScalar,
    beta1: f64,
    beta2: f64,
    weight_decay: f64,
    eps: f64,
    amsgrad: bool,
    maximize: bool,
    scale: Option<&View>,
    found: Option<&View>,
    decay: Decay,
) -> Result<()> {
    let count = params.len();
    let largest = if amsgrad { largest } else { Tensors::new() };
    check_lists(call, &params, &[&grads, &averages, &squares])?;
    check_lists(call, if amsgrad { &params } else { &[] }, &[&largest])?;
    check_count(call, count, &steps)?;
    unscale(call, &grads, scale)?;
    let of_parameter = decay == Decay::Parameter;
    let decays = weight_decay != 0.0;
    let step = FUSED_ADAM.with([amsgrad, found.is_some(), of_parameter, decays]);
    // The bias corrections are 1 - beta^step: by the logarithm, which loses no digits where beta is
    // close to 1.
    let sign = if maximize { -1.0 } else { 1.0 };
    let numbers = [1.0 - beta1, beta2, 1.0 - beta2, beta1.ln(), beta2.ln(), weight_decay, eps, sign];
    let shared = shared(call, found, rate, &numbers)?;
    let rows: Vec<Row> = (0..count)
        .map(|i| match largest.get(i) {
            None => row(&[params[i], averages[i], squares[i]], grads[i], &[steps[i]]),
            Some(largest) => row(&[params[i], averages[i], squares[i], largest], grads[i], &[steps[i]]),
        })
        .collect();
    Ok(multi_tensor::run(call, step, &rows, &shared)?)
}

#[allow(clippy::too_many_arguments)]
fn adagrad(
    call: &mut Call,
    params: Tensors,
    grads: Tensors,
    sums: Tensors,
    steps: Tensors,
    rate: TensorOrScalar,
    decay: f64,
    weight_decay: f64,
    eps: f64,
    maximize: bool,
    scale: Option<&View>,
    found: Option<&View>,
) -> Result<()> {
    let count = params.len();
    check_lists(call, &params, &[&grads, &sums])?;
    check_count(call, count, &steps)?;
    let sign = if maximize { -1.0 } else { 1.0 };
    unscale(call, &grads, scale)?;
    let shared = shared(call, found, rate, &[decay, weight_decay, eps, sign])?;
    let rows: Vec<Row> = (0..count).map(|i| row(&[params[i], sums[i]], grads[i], &[steps[i]])).collect();
    let decays = weight_decay != 0.0;
    let step = FUSED_ADAGRAD.with([found.is_some(), decays]);
    Ok(multi_tensor::run(call, step, &rows, &shared)?)
}

#[allow(clippy::too_many_arguments)]
fn sgd(
    call: &mut Call,
    params: Tensors,
    grads: Tensors,
    buffers: Tensors,
    weight_decay: f64,
    momentum: f64,
    rate: TensorOrScalar,
    dampening: f64,
    nesterov: bool,
    maximize: bool,
    first_step: bool,
    scale: Option<&View>,
    found: Option<&View>,
) -> Result<()> {
    let count = params.len();
    let with_momentum = momentum != 0.0;
    check_lists(call, &params, &[&grads])?;
    check!(
        with_momentum || buffers.is_empty(),
        Runtime,
        "{}: expected no momentum buffers where the momentum is 0",
        call.name
    );
    check_lists(call, if with_momentum { &params } else { &[] }, &[&buffers])?;
    unscale(call, &grads, scale)?;
    let decays = weight_decay != 0.0;
    let step = FUSED_SGD.with([with_momentum, nesterov, first_step, found.is_some(), decays]);
    let sign = if maximize { -1.0 } else { 1.0 };
    let shared = shared(call, found, rate, &[weight_decay, momentum, 1.0 - dampening, sign])?;
    let rows: Vec<Row> = (0..count)
        .map(|i| match buffers.get(i) {
            None => row(&[params[i]], grads[i], &[]),
            Some(buffer) => row(&[params[i], buffer], grads[i], &[]),
        })
        .collect();
    Ok(multi_tensor::run(call, step, &rows, &shared)?)
}
