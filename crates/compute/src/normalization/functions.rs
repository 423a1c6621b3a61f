//! Elementwise functions of normalisation.

use crate::functions;
use crate::normalization::renorm::factor;
use crate::normalization::terms::{minus, pick, plus, times};
use dml_kernel::math;

functions! {
    /// Running mean and variance with those of a batch: `keep * running + momentum * of the batch`,
    /// the variance corrected by a factor.
    UPDATE_STATISTICS = "update_statistics"(mean, var, new_mean, new_var, keep, momentum, correction) => {
        [mean * keep + new_mean * momentum, var * keep + new_var * correction * momentum]
    };
    /// `(x - mean) * scale * weight + bias`, of the terms whose flags are set.
    NORMALIZE = "normalize"(..v | o) => {
        let term = |i| pick(v, &o.flags, i);
        let centred = minus(v[0], term(1));
        plus(times(times(centred, term(2)), term(3)), term(4))
    };
    /// `(g * weight - (total + y * product) * share) * scale` with `y = (x - mean) * scale`, of the
    /// terms (g, x, mean, scale, weight, total, product) whose flags are set. The last flag: the
    /// weight is one number for all elements, and the sums are without it.
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
    /// A slice of a norm, scaled down to a limit.
    RENORM = "renorm"(x, norm, limit) => x * factor(norm, limit);
    /// Means of a gradient and of its product with the normalised input, of their sums.
    GRADIENT_MEANS = "gradient_means"(sum, product, scale, count) => {
        [sum / count, product * scale / count]
    };
}
