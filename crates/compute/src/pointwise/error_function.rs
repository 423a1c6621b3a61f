//! Relatives of the error function: its inverse, its scaled complement, and the normal
//! distribution's functions.

use crate::functions;
use crate::pointwise::rule::Rule;
use dml_kernel::{Value, math};
use math::special;

/// Logarithm of the normal distribution function: far left from [`special::erfcx`], which does not
/// vanish there.
fn log_ndtr(x: Value<'_>) -> Value<'_> {
    let t = x * std::f64::consts::FRAC_1_SQRT_2;
    let left = x.lt(-1.0);
    let result = x.builder().var(x);
    x.builder().if_else(
        left,
        || result.set(math::log(0.5 * special::erfcx(-t)) - t * t),
        || result.set(math::log1p(-0.5 * math::erfc(t))),
    );
    result.get()
}

functions! {
    /// The inverse of the error function.
    ERFINV = "erfinv"(x).heavy().rule(Rule::Float) => special::erfinv(x);
    /// The scaled complement of the error function, `e^(x²) erfc(x)`.
    ERFCX = "erfcx"(x).heavy().rule(Rule::Float) => special::erfcx(x);
    /// The inverse of the normal distribution function.
    NDTRI = "ndtri"(x).heavy().rule(Rule::Float) => special::ndtri(x);
    /// The logarithm of the normal distribution function.
    LOG_NDTR = "log_ndtr"(x).heavy().rule(Rule::Float) => log_ndtr(x);
}
