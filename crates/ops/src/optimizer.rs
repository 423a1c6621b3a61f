//! Fused optimizer steps: one launch a parameter reads and writes the parameter and its state.

use crate::call::{Call, Scalar as Number};
use crate::check;
use crate::error::Result;
use crate::pointwise::{self, Input};
use crate::table::{Operator, op};
use crate::tensor::Tensor;
use dml_kernel::math;
use smallvec::SmallVec;

/// This family's overloads.
pub const OPERATORS: &[Operator] = &[
    op("aten::_fused_adagrad_", adagrad),
    op("aten::_fused_adagrad_.tensor_lr", adagrad),
    op("aten::_fused_adam_", |c| adam(c, Decay::Gradient)),
    op("aten::_fused_adam_.tensor_lr", |c| adam(c, Decay::Gradient)),
    op("aten::_fused_adamw_", |c| adam(c, Decay::Parameter)),
    op("aten::_fused_adamw_.tensor_lr", |c| adam(c, Decay::Parameter)),
    op("aten::_fused_sgd_", sgd),
    op("aten::_fused_sgd_.tensor_lr", sgd),
];

/// What the weight decay changes.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Decay {
    /// The gradient, as in Adam.
    Gradient,
    /// The parameter itself, as in AdamW.
    Parameter,
}

/// A list argument that matches the parameters one by one.
fn matching<'a>(call: &Call<'a>, i: usize, count: usize) -> Result<SmallVec<[&'a Tensor; 8]>> {
    let list = call.tensors(i)?;
    check!(
        list.len() == count,
        Runtime,
        "{}: lists of {count} and {} tensors where the same number is expected",
        call.name,
        list.len()
    );
    Ok(list)
}

/// The learning rate at `i`, a number or a 0-dim tensor.
fn rate(call: &Call, i: usize, p: &Tensor) -> Result<Input> {
    match &call.args[i] {
        crate::Arg::Tensor(_) => pointwise::input(call, i),
        _ => Ok(Input::Number(call.scalar(i)?, p.dtype)),
    }
}

/// Divides the gradients by the loss scale, in place as on CPU.
fn unscale(call: &Call, grads: &[&Tensor], scale: Option<&Tensor>) -> Result<()> {
    let Some(scale) = scale else { return Ok(()) };
    for grad in grads {
        let inputs = [Input::Tensor((*grad).clone()), Input::Tensor(scale.clone())];
        pointwise::run(call, "div", 0, &[grad], &inputs, grad.dtype, |_, v| vec![v[0] / v[1]])?;
    }
    Ok(())
}

/// `_fused_adam_(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,
/// amsgrad, maximize, grad_scale, found_inf)`
fn adam(call: &mut Call, decay: Decay) -> Result<()> {
    let params = call.tensors(0)?;
    let count = params.len();
    let [grads, averages, squares] = [matching(call, 1, count)?, matching(call, 2, count)?, matching(call, 3, count)?];
    let (amsgrad, maximize) = (call.flag(11)?, call.flag(12)?);
    let largest = if amsgrad { matching(call, 4, count)? } else { SmallVec::new() };
    let steps = matching(call, 5, count)?;
    let (beta1, beta2, weight_decay, eps) = (call.double(7)?, call.double(8)?, call.double(9)?, call.double(10)?);
    let found = call.opt_tensor(14)?;
    unscale(call, &grads, call.opt_tensor(13)?)?;
    let of_parameter = decay == Decay::Parameter;
    let variant = u32::from(amsgrad) | u32::from(found.is_some()) << 1 | u32::from(of_parameter) << 2;
    for i in 0..count {
        let (p, dtype) = (params[i], params[i].dtype);
        let mut outs: SmallVec<[&Tensor; 4]> = SmallVec::from_slice(&[p, averages[i], squares[i]]);
        if amsgrad {
            outs.push(largest[i]);
        }
        let mut inputs: SmallVec<[Input; 16]> = SmallVec::new();
        for t in [p, grads[i], averages[i], squares[i], steps[i]] {
            inputs.push(Input::Tensor(t.clone()));
        }
        inputs.extend(largest.get(i).map(|t| Input::Tensor((*t).clone())));
        inputs.extend(found.map(|t| Input::Tensor(t.clone())));
        inputs.push(rate(call, 6, p)?);
        let first = inputs.len();
        // The bias corrections are 1 - beta^step: by the logarithm, which loses no digits where beta is close to 1.
        let sign = if maximize { -1.0 } else { 1.0 };
        for x in [1.0 - beta1, beta2, 1.0 - beta2, beta1.ln(), beta2.ln(), weight_decay, eps, sign] {
            inputs.push(Input::Number(Number::Double(x), dtype));
        }
        pointwise::run(call, "fused_adam", variant, &outs, &inputs, dtype, |_, v| {
            let [mut p, mut grad, average, square, step] = [v[0], v[1] * v[first + 7], v[2], v[3], v[4]];
            let (old, rate) = (p, v[first - 1]);
            let numbers = &v[first..];
            if of_parameter {
                p = p - rate * numbers[5] * p;
            } else {
                grad = grad + numbers[5] * p;
            }
            let new_average = average + numbers[0] * (grad - average);
            let new_square = square * numbers[1] + numbers[2] * grad * grad;
            let correction1 = -math::expm1(step * numbers[3]);
            let correction2 = -math::expm1(step * numbers[4]);
            let mut results = Vec::new();
            let most = if amsgrad { crate::comparison::maximum(v[5], new_square) } else { new_square };
            let spread = math::sqrt(most) / math::sqrt(correction2) + numbers[6];
            results.push(p - rate / correction1 * new_average / spread);
            results.extend([new_average, new_square]);
            if amsgrad {
                results.push(most);
            }
            if found.is_some() {
                let skip = v[first - 2].ne(0);
                let before = [Some(old), Some(average), Some(square), amsgrad.then(|| v[5])];
                for (result, before) in results.iter_mut().zip(before.into_iter().flatten()) {
                    *result = skip.select(before, *result);
                }
            }
            results
        })?;
    }
    Ok(())
}

/// `_fused_adagrad_(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale,
/// found_inf)`
fn adagrad(call: &mut Call) -> Result<()> {
    let params = call.tensors(0)?;
    let count = params.len();
    let [grads, sums, steps] = [matching(call, 1, count)?, matching(call, 2, count)?, matching(call, 3, count)?];
    let (decay, weight_decay, eps) = (call.double(5)?, call.double(6)?, call.double(7)?);
    let sign = if call.flag(8)? { -1.0 } else { 1.0 };
    let found = call.opt_tensor(10)?;
    unscale(call, &grads, call.opt_tensor(9)?)?;
    for i in 0..count {
        let (p, dtype) = (params[i], params[i].dtype);
        let mut inputs: SmallVec<[Input; 12]> =
            [p, grads[i], sums[i], steps[i]].into_iter().map(|t| Input::Tensor(t.clone())).collect();
        inputs.extend(found.map(|t| Input::Tensor(t.clone())));
        inputs.push(rate(call, 4, p)?);
        let first = inputs.len();
        for x in [decay, weight_decay, eps, sign] {
            inputs.push(Input::Number(Number::Double(x), dtype));
        }
        let variant = u32::from(found.is_some());
        pointwise::run(call, "fused_adagrad", variant, &[p, sums[i]], &inputs, dtype, |_, v| {
            let ([p, grad, sum, step], rate, numbers) = ([v[0], v[1], v[2], v[3]], v[first - 1], &v[first..]);
            let grad = grad * numbers[3] + numbers[1] * p;
            let rate = rate / (1.0 + (step - 1.0) * numbers[0]);
            let new_sum = sum + grad * grad;
            let new = p - rate * grad / (math::sqrt(new_sum) + numbers[2]);
            match found {
                None => vec![new, new_sum],
                Some(_) => {
                    let skip = v[first - 2].ne(0);
                    vec![skip.select(p, new), skip.select(sum, new_sum)]
                }
            }
        })?;
    }
    Ok(())
}

/// `_fused_sgd_(self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize,
/// is_first_step, grad_scale, found_inf)`
fn sgd(call: &mut Call) -> Result<()> {
    let params = call.tensors(0)?;
    let count = params.len();
    let grads = matching(call, 1, count)?;
    let (weight_decay, momentum, dampening) = (call.double(3)?, call.double(4)?, call.double(6)?);
    let (nesterov, maximize, first_step) = (call.flag(7)?, call.flag(8)?, call.flag(9)?);
    let with_momentum = momentum != 0.0;
    let buffers = if with_momentum { matching(call, 2, count)? } else { SmallVec::new() };
    let found = call.opt_tensor(11)?;
    unscale(call, &grads, call.opt_tensor(10)?)?;
    let variant = u32::from(with_momentum)
        | u32::from(nesterov) << 1
        | u32::from(first_step) << 2
        | u32::from(found.is_some()) << 3;
    for i in 0..count {
        let (p, dtype) = (params[i], params[i].dtype);
        let mut outs: SmallVec<[&Tensor; 2]> = SmallVec::from_slice(&[p]);
        outs.extend(buffers.get(i).copied());
        let mut inputs: SmallVec<[Input; 12]> =
            SmallVec::from_vec(vec![Input::Tensor(p.clone()), Input::Tensor(grads[i].clone())]);
        inputs.extend(buffers.get(i).map(|t| Input::Tensor((*t).clone())));
        inputs.extend(found.map(|t| Input::Tensor(t.clone())));
        inputs.push(rate(call, 5, p)?);
        let first = inputs.len();
        let sign = if maximize { -1.0 } else { 1.0 };
        for x in [weight_decay, momentum, 1.0 - dampening, sign] {
            inputs.push(Input::Number(Number::Double(x), dtype));
        }
        pointwise::run(call, "fused_sgd", variant, &outs, &inputs, dtype, |_, v| {
            let (p, rate, numbers) = (v[0], v[first - 1], &v[first..]);
            let grad = v[1] * numbers[3] + numbers[0] * p;
            let mut results = Vec::new();
            if with_momentum {
                let buffer = if first_step { grad } else { numbers[1] * v[2] + numbers[2] * grad };
                let step = if nesterov { grad + numbers[1] * buffer } else { buffer };
                results.extend([p - rate * step, buffer]);
            } else {
                results.push(p - rate * grad);
            }
            if found.is_some() {
                let skip = v[first - 2].ne(0);
                for (result, &before) in results.iter_mut().zip(&[v[0], v[2]]) {
                    *result = skip.select(before, *result);
                }
            }
            results
        })?;
    }
    Ok(())
}
