//! Elementwise functions of normalisation.

use crate::functions;
use crate::normalization::renorm::factor;
use crate::normalization::terms::{minus, pick, plus, times};
use dml_kernel::math;

functions! {
    /// The update of running mean and variance by a batch's mean and variance:
    /// `keep * running + momentum * batch`. The batch's variance is multiplied by a correction.
    UPDATE_STATISTICS = "update_statistics"(mean, var, new_mean, new_var, keep, momentum, correction) => {
        [mean * keep + new_mean * momentum, var * keep + new_var * correction * momentum]
    };
    /// `(x - mean) * scale * weight + bias`, with those operands whose flags are set.
    NORMALIZE = "normalize"(..v | o) => {
        let term = |i| pick(v, &o.flags, i);
        let centred = minus(v[0], term(1));
        plus(times(times(centred, term(2)), term(3)), term(4))
    };
    /// `(g * weight - (total + y * product) * share) * scale` with `y = (x - mean) * scale`, with
    /// those operands (g, x, mean, scale, weight, total, product) whose flags are set. The last
    /// flag: the weight is one number for all elements, and is not a factor of the sums.
    NORMALIZE_BACKWARD = "normalize_backward"(..v | o) => {
        let term = |i| pick(v, &o.flags, i);
        let share = v[v.len() - 1];
        let (inner, outer) = if o.flags[7] { (None, term(4)) } else { (term(4), None) };
        let normal = times(minus(v[1], term(2)), term(3));
        let mut mean = term(5);
        if let Some(product) = term(6) {
            mean = Some(plus(normal * product, mean));
        }
        let centred = minus(times(v[0], inner), mean.map(|m| m * share));
        times(times(centred, term(3)), outer)
    };
    /// `1 / sqrt(variance + eps)`
    INVERSE_DEVIATION = "inverse_deviation"(variance, eps) => math::rsqrt(variance + eps);
    /// `v * (g / norm)`
    WEIGHT_NORM = "weight_norm"(v, g, norm) => v * (g / norm);
    /// The gradient of `g`.
    WEIGHT_NORM_BACKWARD_G = "weight_norm_backward_g"(product, norm) => product / norm;
    /// The gradient of `v`.
    WEIGHT_NORM_BACKWARD_V = "weight_norm_backward_v"(grad, x, g, norm, product) => {
        g / norm * (grad - x * (product / (norm * norm)))
    };
    /// An element of a slice that is scaled down if the slice's norm is above the limit.
    RENORM = "renorm"(x, norm, limit) => x * factor(norm, limit);
    /// From the sums of a gradient and of its product with the input: the means of the gradient and
    /// of its product with the normalised input.
    GRADIENT_MEANS = "gradient_means"(sum, product, scale, count) => {
        [sum / count, product * scale / count]
    };
}
