//! The functions in f64.
//!
//! Special values are recognised by bits: drivers need not distinguish NaN, infinities or subnormal
//! numbers in float comparisons. No result depends on whether subnormals are kept or flushed.
//! Division, square root and remainder are correctly rounded, including subnormal results.

mod division;
mod error_function;
mod exponential;
mod hyperbolic;
mod inverse_trigonometric;
mod logarithm;
mod multiplication;
mod parts;
mod power;
mod trigonometric;

pub use division::{div, fmod, reciprocal, rsqrt, sqrt};
pub(super) use error_function::erfc_scaled;
pub use error_function::{erf, erfc};
pub use exponential::{exp, exp2, expm1, sigmoid};
pub(super) use exponential::{exp_scaled, exp_times};
pub use hyperbolic::{cosh, sinh, tanh};
pub use inverse_trigonometric::{acos, asin, atan, atan2};
pub(super) use logarithm::log_sum;
pub use logarithm::{log, log1p, log2, log10};
pub use multiplication::mul;
pub(super) use parts::{lowered, product, sum, two_product};
pub use power::pow;
pub(super) use power::pow_scaled;
pub use trigonometric::{cos, sin, tan};
