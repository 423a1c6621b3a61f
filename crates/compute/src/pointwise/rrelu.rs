//! Leaky relu with a random slope for each negative element.

use crate::functions;
use dml_kernel::math::comparison::{less, less_equal};

functions! {
    /// `x` above 0, else `x * slope`: the mean of what training computes.
    RRELU = "rrelu"(x, slope) => less(x.like(0.0), x).select(x, x * slope);
    /// The result in training, and each element's slope: the noise where it is negative, else 1.
    RRELU_NOISE = "rrelu_noise"(x, noise) => {
        let negative = less_equal(x, x.like(0.0));
        [negative.select(x * noise, x), negative.select(noise, noise.like(1.0))]
    };
}
