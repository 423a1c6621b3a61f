//! Fused optimizer steps: one launch reads and writes all parameters and their states.

use crate::operator::argument::{TensorOrScalar, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator;
use crate::{check, group, operators};
use dml_compute::lists::optimizer::{self, Decay, Shared};
use dml_compute::pointwise::kernel::Input;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    adagrad(self, grads, {Common}, {Adagrad}) {
        "aten::_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        "aten::_fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps, *, Tensor lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
    adam(self, grads, {Common}, {Adam}; Decay::Gradient) {
        hot "aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        hot "aten::_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
    adam(self, grads, {Common}, {Adam}; Decay::Parameter) {
        hot "aten::_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        hot "aten::_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
    sgd(self, grads, {Common}, {Sgd}) {
        hot "aten::_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
        hot "aten::_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
    }
}

group! {
    /// What every optimizer takes.
    struct Common<'a> {
        lr: TensorOrScalar<'a>,
        weight_decay: f64,
        maximize: bool,
        grad_scale: Option<&'a View>,
        found_inf: Option<&'a View>,
    }
}

group! {
    /// States and numbers of Adam and AdamW.
    struct Adam<'a> {
        exp_avgs: Tensors<'a>,
        exp_avg_sqs: Tensors<'a>,
        max_exp_avg_sqs: Tensors<'a>,
        state_steps: Tensors<'a>,
        beta1: f64,
        beta2: f64,
        eps: f64,
        amsgrad: bool,
    }
}

group! {
    /// States and numbers of Adagrad.
    struct Adagrad<'a> {
        state_sums: Tensors<'a>,
        state_steps: Tensors<'a>,
        lr_decay: f64,
        eps: f64,
    }
}

group! {
    /// States and numbers of SGD.
    struct Sgd<'a> {
        momentum_buffer_list: Tensors<'a>,
        momentum: f64,
        dampening: f64,
        nesterov: bool,
        is_first_step: bool,
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

/// What every parameter shares.
fn common_inputs<'a>(call: &Call, common: &Common<'a>) -> Result<Shared<'a>> {
    let rate = match &common.lr {
        TensorOrScalar::Tensor(t) => operator::input(call, t)?,
        // Each kernel takes a number in the dtype of its parameters.
        TensorOrScalar::Scalar(n) => Input::Number(*n, DType::F64),
    };
    let Common { weight_decay, maximize, grad_scale: scale, found_inf: found, .. } = *common;
    Ok(Shared { rate, weight_decay, maximize, scale, found })
}

fn adam(call: &mut Call, params: Tensors, grads: Tensors, common: Common, adam: Adam, decay: Decay) -> Result<()> {
    let Adam { exp_avgs: averages, exp_avg_sqs: squares, state_steps: steps, beta1, beta2, eps, amsgrad, .. } = adam;
    let largest = if amsgrad { adam.max_exp_avg_sqs } else { Tensors::new() };
    let count = params.len();
    check_lists(call, &params, &[&grads, &averages, &squares])?;
    check_lists(call, if amsgrad { &params } else { &[] }, &[&largest])?;
    check_count(call, count, &steps)?;
    let step = optimizer::Adam {
        params: &params,
        grads: &grads,
        averages: &averages,
        squares: &squares,
        largest: &largest,
        steps: &steps,
        betas: [beta1, beta2],
        eps,
        decay,
    };
    Ok(step.run(call, &common_inputs(call, &common)?)?)
}

fn adagrad(call: &mut Call, params: Tensors, grads: Tensors, common: Common, adagrad: Adagrad) -> Result<()> {
    let Adagrad { state_sums: sums, state_steps: steps, lr_decay, eps } = adagrad;
    let count = params.len();
    check_lists(call, &params, &[&grads, &sums])?;
    check_count(call, count, &steps)?;
    let step =
        optimizer::Adagrad { params: &params, grads: &grads, sums: &sums, steps: &steps, rate_decay: lr_decay, eps };
    Ok(step.run(call, &common_inputs(call, &common)?)?)
}

fn sgd(call: &mut Call, params: Tensors, grads: Tensors, common: Common, sgd: Sgd) -> Result<()> {
    let Sgd { momentum_buffer_list: buffers, momentum, dampening, nesterov, is_first_step: first_step } = sgd;
    let with_momentum = momentum != 0.0;
    check_lists(call, &params, &[&grads])?;
    check!(
        with_momentum || buffers.is_empty(),
        Runtime,
        "{}: expected no momentum buffers where the momentum is 0",
        call.name
    );
    check_lists(call, if with_momentum { &params } else { &[] }, &[&buffers])?;
    let step = optimizer::GradientDescent {
        params: &params,
        grads: &grads,
        buffers: &buffers,
        momentum,
        dampening,
        nesterov,
        first: first_step,
    };
    Ok(step.run(call, &common_inputs(call, &common)?)?)
}
