//! Bessel functions and the Airy function.

use dml_kernel::{Value, math};

/// `sin(x) / x`, by its series near zero.
pub fn spherical(x: Value<'_>) -> Value<'_> {
    let t = x * x;
    let series =
        [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    let near = series.iter().rev().fold(x.like(0.0), |sum, &c| sum * t + c);
    let far = math::sin(x) / x;
    x.is_inf().select(x.like(0.0), x.abs().lt(0.5).select(near, far))
}
