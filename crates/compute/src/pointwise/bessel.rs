//! Bessel functions and the Airy function.

use crate::functions;
use crate::pointwise::rule::Rule;
use dml_kernel::math::special;
use dml_kernel::{Value, math};

/// `sin(x) / x`, by its series near zero.
fn spherical(x: Value<'_>) -> Value<'_> {
    let t = x * x;
    let series =
        [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    let near = series.iter().rev().fold(x.like(0.0), |sum, &c| sum * t + c);
    let far = math::sin(x) / x;
    x.is_inf().select(x.like(0.0), x.abs().lt(0.5).select(near, far))
}

functions! {
    /// The modified Bessel function of the first kind, of order 0.
    I0 = "i0"(x).heavy().rule(Rule::Float) => special::i0(x);
    /// [`I0`] times `e^-|x|`.
    I0E = "special_i0e"(x).heavy().rule(Rule::Float) => special::i0e(x);
    /// The modified Bessel function of the first kind, of order 1.
    I1 = "special_i1"(x).heavy().rule(Rule::Float) => special::i1(x);
    /// [`I1`] times `e^-|x|`.
    I1E = "special_i1e"(x).heavy().rule(Rule::Float) => special::i1e(x);
    /// [`I0`], of floats of 32 bits or more.
    MODIFIED_BESSEL_I0 = "special_modified_bessel_i0"(x).heavy().rule(Rule::Float) => special::i0(x);
    /// [`I1`], of floats of 32 bits or more.
    MODIFIED_BESSEL_I1 = "special_modified_bessel_i1"(x).heavy().rule(Rule::Float) => special::i1(x);
    /// The modified Bessel function of the second kind, of order 0.
    MODIFIED_BESSEL_K0 = "special_modified_bessel_k0"(x).heavy().rule(Rule::Float) => special::k0(x);
    /// The modified Bessel function of the second kind, of order 1.
    MODIFIED_BESSEL_K1 = "special_modified_bessel_k1"(x).heavy().rule(Rule::Float) => special::k1(x);
    /// [`MODIFIED_BESSEL_K0`] times `e^x`.
    SCALED_MODIFIED_BESSEL_K0 = "special_scaled_modified_bessel_k0"(x).heavy().rule(Rule::Float) => special::k0e(x);
    /// [`MODIFIED_BESSEL_K1`] times `e^x`.
    SCALED_MODIFIED_BESSEL_K1 = "special_scaled_modified_bessel_k1"(x).heavy().rule(Rule::Float) => special::k1e(x);
    /// The Bessel function of the first kind, of order 0.
    BESSEL_J0 = "special_bessel_j0"(x).heavy().rule(Rule::Float) => special::j0(x);
    /// The Bessel function of the first kind, of order 1.
    BESSEL_J1 = "special_bessel_j1"(x).heavy().rule(Rule::Float) => special::j1(x);
    /// The Bessel function of the second kind, of order 0.
    BESSEL_Y0 = "special_bessel_y0"(x).heavy().rule(Rule::Float) => special::y0(x);
    /// The Bessel function of the second kind, of order 1.
    BESSEL_Y1 = "special_bessel_y1"(x).heavy().rule(Rule::Float) => special::y1(x);
    /// The spherical Bessel function of order 0, `sin(x) / x`.
    SPHERICAL_BESSEL_J0 = "special_spherical_bessel_j0"(x).heavy().rule(Rule::Float) => spherical(x);
    /// The Airy function.
    AIRY_AI = "special_airy_ai"(x).heavy().rule(Rule::Float) => special::airy_ai(x);
}
