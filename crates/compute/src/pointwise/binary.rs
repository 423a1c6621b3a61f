//! Functions of two tensors beside arithmetic: angles, lengths, logarithms, signs, bits.

use crate::functions;
use crate::pointwise::complex;
use crate::pointwise::rule::Rule;
use dml_kernel::math::comparison::{equal, less, maximum};
use dml_kernel::math::{self, special};
use dml_kernel::{ScalarType, Value};

/// `x * log`, the logarithm of `y`; 0 where `x` is 0 unless `y` is NaN.
fn times_log<'b>(x: Value<'b>, y: Value<'b>, log: Value<'b>) -> Value<'b> {
    y.is_nan().select(y, x.is_zero().select(x.like(0.0), math::mul(x, log)))
}

/// The magnitude of one float with the sign bit of another.
pub fn copysign<'b>(magnitude: Value<'b>, sign: Value<'b>) -> Value<'b> {
    let bits = magnitude.scalar().unsigned();
    let top = magnitude.builder().int(bits, 1 << (8 * bits.bytes() - 1));
    ((magnitude.bitcast(bits) & !top) | (sign.bitcast(bits) & top)).bitcast(magnitude.scalar())
}

fn larger_and_distance<'b>(x: Value<'b>, y: Value<'b>) -> (Value<'b>, Value<'b>) {
    (maximum(x, y), (x - y).abs())
}

/// Greatest common divisor, by Euclid.
fn divisor<'b>(a: Value<'b>, b: Value<'b>) -> Value<'b> {
    let builder = a.builder();
    let (x, y) = (builder.var(a.abs()), builder.var(b.abs()));
    builder.while_(
        || y.get().ne(0),
        || {
            let (now, next) = (x.get(), y.get());
            x.set(next);
            y.set(now - next * (now / next));
        },
    );
    x.get()
}

functions! {
    /// The angle of the point `(y, x)` in the plane.
    ATAN2 = "atan2"(x, y).rule(Rule::Float) => math::atan2(x, y);
    /// `sqrt(x² + y²)`, scaled by the larger one, so that squares do not overflow. An infinity wins
    /// over NaN.
    HYPOT = "hypot"(x, y) => {
        let (a, b) = (special::magnitude(x), special::magnitude(y));
        // By their bits, which are in the order of the numbers.
        let bits = a.scalar().unsigned();
        let first = a.bitcast(bits).gt(b.bitcast(bits));
        let (large, small) = (first.select(a, b), first.select(b, a));
        let ratio = small / large;
        let length = special::product(large, math::sqrt(1.0 + ratio * ratio));
        let length = large.is_zero().select(small, length);
        (a.is_inf() | b.is_inf()).select(a.like(f64::INFINITY), length)
    };
    /// `x * log(y)`, 0 where `x` is 0 unless `y` is NaN.
    XLOGY = "xlogy"(x, y).rule(Rule::Float) => times_log(x, y, math::log(y));
    /// `x * log(1 + y)`, 0 where `x` is 0 unless `y` is NaN.
    XLOG1PY = "xlog1py"(x, y).rule(Rule::Float) => times_log(x, y, math::log1p(y));
    /// The magnitude of `x` with the sign of `y`.
    COPYSIGN = "copysign"(x, y).rule(Rule::Float) => copysign(x, y);
    /// 0 below zero, 1 above, `values` at zero.
    HEAVISIDE = "heaviside"(x, values) => {
        if x.scalar() == ScalarType::Bool {
            x | values
        } else {
            let zero = x.like(0.0);
            equal(x, zero).select(values, less(zero, x).select(x.like(1.0), 0))
        }
    };
    /// `log(e^x + e^y)`
    LOGADDEXP = "logaddexp"(x, y).of_complex(&complex::LOGADDEXP) => {
        let (m, d) = larger_and_distance(x, y);
        (x.is_inf() & x.eq(y)).select(x, m + math::log1p(math::exp(-d)))
    };
    /// `log2(2^x + 2^y)`
    LOGADDEXP2 = "logaddexp2"(x, y) => {
        let (m, d) = larger_and_distance(x, y);
        let log2 = math::log1p(math::exp2(-d)) * std::f64::consts::LOG2_E;
        (x.is_inf() & x.eq(y)).select(x, m + log2)
    };
    /// The greatest common divisor.
    GCD = "gcd"(x, y).integers() => divisor(x, y);
    /// The least common multiple.
    LCM = "lcm"(x, y).integers() => {
        let g = divisor(x, y);
        let part = x / g.eq(0).select(g.like(1.0), g);
        g.eq(0).select(g, (part * y).abs())
    };
    /// `x << y`; shifts by less than 0 or by the width and more give 0.
    SHIFT_LEFT = "shift_left"(x, y).integers() => {
        let width = 8 * x.scalar().bytes();
        (y.lt(0) | y.ge(width)).select(x.like(0.0), x << (y & (width - 1)))
    };
    /// `x >> y`; shifts by less than 0 or by the width and more give the sign.
    SHIFT_RIGHT = "shift_right"(x, y).integers() => {
        let width = 8 * x.scalar().bytes();
        let distance = (y.lt(0) | y.ge(width)).select(y.like(f64::from(width - 1)), y);
        x >> distance
    };
}
