//! Elementwise functions of optimizer steps on lists of tensors.

use crate::functions;
use crate::lists::optimizer::{decayed, skip_where};
use crate::pointwise::ternary::interpolate;
use dml_kernel::math;
use dml_kernel::math::comparison::maximum;

functions! {
    /// A step of Adam. Results: parameter, first moment, second moment (and its maximum, flag 0).
    /// Operands: parameter, gradient, the moments, then the step, `found_inf` (flag 1), the
    /// learning rate and eight numbers. Flag 2: the weight decay is applied to the parameter. Flag
    /// 3: there is a weight decay.
    FUSED_ADAM = "fused_adam"(..v | o) => {
        let [amsgrad, found, of_parameter, decays, ..] = o.flags;
        let [mut p, grad, average, square] = [v[0], v[1], v[2], v[3]];
        let rest = &v[4 + usize::from(amsgrad)..];
        let (step, rate, numbers) = (rest[0], rest[1 + usize::from(found)], &rest[rest.len() - 8..]);
        let mut grad = grad * numbers[7];
        match (decays, of_parameter) {
            (false, _) => {}
            (true, true) => p = p * (1.0 - rate * numbers[5]),
            (true, false) => grad = decayed(grad, numbers[5], p),
        }
        let new_average = interpolate(average, grad, numbers[0]);
        let new_square = square * numbers[1] + numbers[2] * grad * grad;
        // At step 0 the bias correction is 0, even if beta is 0 and its logarithm infinite.
        let correction = |log| step.eq(0).select(step.like(0.0), -math::expm1(step * log));
        let (correction1, correction2) = (correction(numbers[3]), correction(numbers[4]));
        let most = if amsgrad { maximum(v[4], new_square) } else { new_square };
        let spread = math::sqrt(most) / math::sqrt(correction2) + numbers[6];
        let mut results = vec![p - rate / correction1 * new_average / spread, new_average, new_square];
        if amsgrad {
            results.push(most);
        }
        if found {
            skip_where(rest[1], &mut results, v);
        }
        results
    };
    /// A step of Adagrad. Results: parameter and sum of squares. Operands: parameter, gradient, sum
    /// and step, then `found_inf` (flag 0), the learning rate and four numbers. Flag 1: there is a
    /// weight decay.
    FUSED_ADAGRAD = "fused_adagrad"(..v | o) => {
        let [found, decays, ..] = o.flags;
        let [p, grad, sum, step] = [v[0], v[1], v[2], v[3]];
        let (rate, numbers) = (v[v.len() - 5], &v[v.len() - 4..]);
        let grad = grad * numbers[3];
        let grad = if decays { decayed(grad, numbers[1], p) } else { grad };
        let rate = rate / (1.0 + (step - 1.0) * numbers[0]);
        let new_sum = sum + grad * grad;
        let mut results = vec![p - rate * grad / (math::sqrt(new_sum) + numbers[2]), new_sum];
        if found {
            skip_where(v[4], &mut results, v);
        }
        results
    };
    /// A step of SGD. Results: the parameter (and its momentum buffer, flag 0). Operands:
    /// parameter, gradient and buffer, then `found_inf` (flag 3), the learning rate and four
    /// numbers. Flag 1: Nesterov momentum. Flag 2: the first step, which initialises the buffer.
    /// Flag 4: there is a weight decay.
    FUSED_SGD = "fused_sgd"(..v | o) => {
        let [with_momentum, nesterov, first_step, found, decays, ..] = o.flags;
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
        if found {
            skip_where(v[2 + usize::from(with_momentum)], &mut results, v);
        }
        results
    };
}
