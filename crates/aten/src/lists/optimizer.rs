//! Fused optimizer steps: one launch reads and writes all parameters and their states.

use crate::operator::argument::{TensorOrScalar, Tensors};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::operator;
use crate::{check, operators};
use dml_compute::lists::multi_tensor;
use dml_compute::lists::multi_tensor::batch::Row;
use dml_compute::lists::optimizer::{Decay, decayed, row, skip_where, unscale};
use dml_compute::pointwise::kernel::{Input, Variant};
use dml_compute::pointwise::ternary::interpolate;
use dml_compute::scalar::Scalar as Number;
use dml_compute::view::View;
use dml_kernel::math::comparison::maximum;
use dml_kernel::{DType, math};
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

/// What every parameter shares: `found`, the learning rate (a number or a 0-dim tensor), and numbers.
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
    let variant = Variant::options([amsgrad, found.is_some(), of_parameter, decays]);
    // The bias corrections are 1 - beta^step: by the logarithm, which loses no digits where beta is close to 1.
    let sign = if maximize { -1.0 } else { 1.0 };
    let numbers = [1.0 - beta1, beta2, 1.0 - beta2, beta1.ln(), beta2.ln(), weight_decay, eps, sign];
    let shared = shared(call, found, rate, &numbers)?;
    let rows: Vec<Row> = (0..count)
        .map(|i| match largest.get(i) {
            None => row(&[params[i], averages[i], squares[i]], grads[i], &[steps[i]]),
            Some(largest) => row(&[params[i], averages[i], squares[i], largest], grads[i], &[steps[i]]),
        })
        .collect();
    Ok(multi_tensor::run_variant(call, "fused_adam", variant, &rows, &shared, &|_, v| {
        let [mut p, grad, average, square] = [v[0], v[1], v[2], v[3]];
        let rest = &v[4 + usize::from(amsgrad)..];
        let (step, rate, numbers) = (rest[0], rest[1 + usize::from(found.is_some())], &rest[rest.len() - 8..]);
        let mut grad = grad * numbers[7];
        match (decays, of_parameter) {
            (false, _) => {}
            (true, true) => p = p * (1.0 - rate * numbers[5]),
            (true, false) => grad = decayed(grad, numbers[5], p),
        }
        let new_average = interpolate(average, grad, numbers[0]);
        let new_square = square * numbers[1] + numbers[2] * grad * grad;
        // Before the first step nothing is corrected by 0, also where beta is 0 and its logarithm infinite.
        let correction = |log| step.eq(0).select(step.like(0.0), -math::expm1(step * log));
        let (correction1, correction2) = (correction(numbers[3]), correction(numbers[4]));
        let most = if amsgrad { maximum(v[4], new_square) } else { new_square };
        let spread = math::sqrt(most) / math::sqrt(correction2) + numbers[6];
        let mut results = vec![p - rate / correction1 * new_average / spread, new_average, new_square];
        if amsgrad {
            results.push(most);
        }
        if found.is_some() {
            skip_where(rest[1], &mut results, v);
        }
        results
    })?)
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
    let variant = Variant::options([found.is_some(), decays]);
    Ok(multi_tensor::run_variant(call, "fused_adagrad", variant, &rows, &shared, &|_, v| {
        let [p, grad, sum, step] = [v[0], v[1], v[2], v[3]];
        let (rate, numbers) = (v[v.len() - 5], &v[v.len() - 4..]);
        let grad = grad * numbers[3];
        let grad = if decays { decayed(grad, numbers[1], p) } else { grad };
        let rate = rate / (1.0 + (step - 1.0) * numbers[0]);
        let new_sum = sum + grad * grad;
        let mut results = vec![p - rate * grad / (math::sqrt(new_sum) + numbers[2]), new_sum];
        if found.is_some() {
            skip_where(v[4], &mut results, v);
        }
        results
    })?)
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
    let variant = Variant::options([with_momentum, nesterov, first_step, found.is_some(), decays]);
    let sign = if maximize { -1.0 } else { 1.0 };
    let shared = shared(call, found, rate, &[weight_decay, momentum, 1.0 - dampening, sign])?;
    let rows: Vec<Row> = (0..count)
        .map(|i| match buffers.get(i) {
            None => row(&[params[i]], grads[i], &[]),
            Some(buffer) => row(&[params[i], buffer], grads[i], &[]),
        })
        .collect();
    Ok(multi_tensor::run_variant(call, "fused_sgd", variant, &rows, &shared, &|_, v| {
        let (p, rate, numbers) = (v[0], v[v.len() - 5], &v[v.len() - 4..]);
        let grad = v[1] * numbers[3];
        let grad = if decays { decayed(grad, numbers[0], p) } else { grad };
        let mut results = Vec::new();
        if with_momentum {
            let buffer = if first_step { grad } else { numbers[1] * v[2] + numbers[2] * grad };
            let step = if nesterov { grad + numbers[1] * buffer } else { buffer };
            results.extend([p - rate * step, buffer]);
        } else {
            results.push(p - rate * grad);
        }
        if found.is_some() {
            skip_where(v[2 + usize::from(with_momentum)], &mut results, v);
        }
        results
    })?)
}
