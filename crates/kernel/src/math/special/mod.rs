//! Special functions, built from the elementary ones, with one implementation for both float types:
//! only the lengths of polynomials differ. The errors are a few ulp (docs/reference/numerics.md);
//! near the zeros of an oscillating function, a few ulp of the amplitude.

use super::{Binary, Unary};
use crate::builder::Value;

mod airy;
mod bessel;
mod error;
mod gamma;
mod incomplete_gamma;
mod polynomial;
mod sample_gradient;
mod sum;
#[rustfmt::skip]
mod tables;
mod zeta;

pub use sum::{flipped_by, product, sum};
pub(super) use sum::{two_product, two_sum};

macro_rules! functions {
    (
        $list:ident: $function:ty;
        $($(#[$doc:meta])* $module:ident::$name:ident($($x:ident),*);)*
    ) => {
        $($(#[$doc])*
        pub fn $name<'b>($($x: Value<'b>),*) -> Value<'b> {
            let arguments = [$($x),*];
            arguments[0].builder().function(stringify!($name), &arguments, || $module::$name($($x),*))
        })*

        /// The functions with one, two and three arguments, by name.
        pub const $list: &[(&str, $function)] = &[$((stringify!($name), $name)),*];
    };
}

functions! {
    UNARY: Unary;
    /// Logarithm of the absolute value of the gamma function.
    gamma::lgamma(x);
    /// Derivative of the logarithm of the gamma function.
    gamma::digamma(x);
    /// Inverse of the error function.
    error::erfinv(x);
    /// `erfc(x) e^(x^2)`
    error::erfcx(x);
    /// Inverse of the normal distribution's function.
    error::ndtri(x);
    /// Modified Bessel function of the first kind of order 0.
    bessel::i0(x);
    /// `i0(x) e^-|x|`
    bessel::i0e(x);
    /// Modified Bessel function of the first kind of order 1.
    bessel::i1(x);
    /// `i1(x) e^-|x|`
    bessel::i1e(x);
    /// Bessel function of the first kind of order 0.
    bessel::j0(x);
    /// Bessel function of the first kind of order 1.
    bessel::j1(x);
    /// Bessel function of the second kind of order 0.
    bessel::y0(x);
    /// Bessel function of the second kind of order 1.
    bessel::y1(x);
    /// Modified Bessel function of the second kind of order 0.
    bessel::k0(x);
    /// `k0(x) e^x`
    bessel::k0e(x);
    /// Modified Bessel function of the second kind of order 1.
    bessel::k1(x);
    /// `k1(x) e^x`
    bessel::k1e(x);
    /// The Airy function Ai.
    airy::airy_ai(x);
}

functions! {
    BINARY: Binary;
    /// The Hurwitz zeta function: the sum of `(q + k)^-s` over k from 0.
    zeta::zeta(s, q);
    /// Regularised lower incomplete gamma function.
    incomplete_gamma::igamma(a, x);
    /// Regularised upper incomplete gamma function.
    incomplete_gamma::igammac(a, x);
}

/// `-(dP/da) / p` of the gamma distribution of shape `a` and scale 1 at `x`: the derivative of a
/// sample with respect to the shape. As on the CPU, zero unless `x` is positive.
pub fn gamma_sample_gradient<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let write = || sample_gradient::gamma_sample_gradient(a, x);
    a.builder().function("gamma_sample_gradient", &[a, x], write)
}

/// `-(dI/da) / p / (1 - x)` of the beta distribution of `a` and `total - a`, with constant
/// `total - a`, at `x`. As on the CPU, zero unless `x` is positive.
pub fn beta_sample_gradient<'b>(x: Value<'b>, a: Value<'b>, total: Value<'b>) -> Value<'b> {
    let write = || sample_gradient::beta_sample_gradient(x, a, total);
    x.builder().function("beta_sample_gradient", &[x, a, total], write)
}

/// `a * b + c`, rounded once or nearly so, as by a fused multiply-add, on every adapter.
pub fn fused<'b>(a: Value<'b>, b: Value<'b>, c: Value<'b>) -> Value<'b> {
    a.builder().function("fused", &[a, b, c], || sum::fused(a, b, c))
}

/// The absolute value of `x`, by its bits: subnormal numbers are kept.
pub fn magnitude(x: Value<'_>) -> Value<'_> {
    x.builder().function("magnitude", &[x], || sum::magnitude(x))
}
