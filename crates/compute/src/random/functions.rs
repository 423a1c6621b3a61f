//! Elementwise functions of random numbers.

use crate::functions;
use crate::random::distributions::STD;
use crate::random::dropout::masked;

functions! {
    /// `x * mask * scale`; the first product is rounded to the option's dtype.
    APPLY_MASK = "apply_mask"(x, mask, scale | o) => masked(o.dtype, x, mask, scale);
    /// A standard normal sample with another mean and deviation.
    NORMAL_OF = "normal_of"(noise, mean, std).guarded(&STD) => noise * std + mean;
    /// A gamma sample as a part of a total, within the limits.
    DIRICHLET = "dirichlet"(x, total, least, most) => (x / total).max(least).min(most);
    /// A probability by a random number: the largest ones are drawn.
    MULTINOMIAL_SCORE = "multinomial_score"(p, noise) => p / noise;
}
