//! Functions of one tensor composed of the math library's: inverse hyperbolic, logit, entropy,
//! sinc, and replacements of what is not a number.

use crate::functions;
use crate::pointwise::binary::copysign;
use crate::pointwise::complex;
use crate::pointwise::rule::Rule;
use crate::pointwise::unary::negated;
use dml_kernel::math::comparison::less;
use dml_kernel::{DType, Value, math};

/// Beyond it, `x^2 + 1` is `x^2` and may overflow.
const SQUARE_DOMINATES: f64 = 1e8;

/// `log(|x| + sqrt(x^2 + 1))` with the sign of x, by log1p for small x.
fn asinh(x: Value<'_>) -> Value<'_> {
    let a = x.abs();
    let near = math::log1p(a + a * a / (1.0 + math::sqrt(a * a + 1.0)));
    let far = math::log(a) + std::f64::consts::LN_2;
    copysign(a.gt(SQUARE_DOMINATES).select(far, near), x)
}

/// The inverse of the hyperbolic cosine, NaN left of 1.
pub fn acosh(x: Value<'_>) -> Value<'_> {
    let t = x - 1.0;
    let near = math::log1p(t + math::sqrt(t * (t + 2.0)));
    let far = math::log(x) + std::f64::consts::LN_2;
    x.lt(1).select(x.like(f64::NAN), x.gt(SQUARE_DOMINATES).select(far, near))
}

fn atanh(x: Value<'_>) -> Value<'_> {
    let a = x.abs();
    copysign(0.5 * math::log1p(2.0 * a / (1.0 - a)), x)
}

fn sinc(x: Value<'_>) -> Value<'_> {
    let angle = x * std::f64::consts::PI;
    angle.is_zero().select(x.like(1.0), math::sin(angle) / angle)
}

fn entr(x: Value<'_>) -> Value<'_> {
    let inside = x.is_zero().select(x.like(0.0), math::mul(negated(x), math::log(x)));
    x.is_below_zero().select(x.like(f64::NEG_INFINITY), inside)
}

/// Largest finite number of a dtype.
pub fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

functions! {
    /// The inverse of the hyperbolic sine.
    ASINH = "asinh"(x).rule(Rule::Float).of_complex(&complex::ASINH) => asinh(x);
    /// The inverse of the hyperbolic cosine, NaN left of 1.
    ACOSH = "acosh"(x).rule(Rule::Float).of_complex(&complex::ACOSH) => acosh(x);
    /// The inverse of the hyperbolic tangent.
    ATANH = "atanh"(x).rule(Rule::Float).of_complex(&complex::ATANH) => atanh(x);
    /// `sin(pi x) / (pi x)`, 1 at 0.
    SINC = "sinc"(x).rule(Rule::Float).of_complex(&complex::SINC) => sinc(x);
    /// `-x log(x)`, 0 at 0, minus infinity below.
    ENTR = "entr"(x).rule(Rule::Float) => entr(x);
    /// `log(x / (1 - x))`
    LOGIT = "logit"(x).rule(Rule::Float) => math::log(x / (1.0 - x));
    /// [`LOGIT`] of `x` held within `low` and `high`.
    LOGIT_EPS = "logit_eps"(x, low, high).rule(Rule::Float) => {
        let x = less(x, low).select(low, less(high, x).select(high, x));
        math::log(x / (1.0 - x))
    };
    /// The gradient of [`LOGIT_EPS`]; `outside` beyond the limits.
    LOGIT_BACKWARD = "logit_backward"(grad, x, low, high, outside) => {
        (less(x, low) | less(high, x)).select(outside, grad / math::mul(x, 1.0 - x))
    };
    /// `x` with numbers in place of NaN, infinity and minus infinity.
    NAN_TO_NUM = "nan_to_num"(x, nan, positive, negative) => {
        let infinite = x.gt(0).select(positive, negative);
        x.is_nan().select(nan, x.is_inf().select(infinite, x))
    };
    /// `x` rounded to digits behind the point: `ten` to their number.
    ROUND_UP = "round_up"(x, ten).rule(Rule::Exact) => (x * ten).round() / ten;
    /// `x` rounded to digits in front of the point: `ten` to their number.
    ROUND_DOWN = "round_down"(x, ten).rule(Rule::Exact) => (x / ten).round() * ten;
}
