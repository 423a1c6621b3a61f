//! Elementwise functions of random numbers.

use crate::functions;
use crate::random::distributions::STD;
use crate::random::dropout::masked;

functions! {
    /// `x * mask * scale`; the first product is rounded to the option's dtype.
    APPLY_MASK = "apply_mask"(x, mask, scale | o) => masked(o.dtype, x, mask, scale);
    /// A standard normal sample, shifted and scaled to a mean and a standard deviation.
    NORMAL_OF = "normal_of"(noise, mean, std).guarded(&STD) => noise * std + mean;
    /// A gamma sample divided by a total, and clamped.
    DIRICHLET = "dirichlet"(x, total, least, most) => (x / total).max(least).min(most);
    /// The score of a class for multinomial sampling, from its probability and exponential noise:
    /// the classes with the largest scores are drawn.
    MULTINOMIAL_SCORE = "multinomial_score"(p, noise) => p / noise;
}
