//! Elementary functions that give the same bits on every driver, for f32 and f64 values.
//!
//! Vulkan guarantees correct rounding for addition, subtraction and multiplication only. Everything
//! here is built from these three (never contracted), integer operations and comparisons. Worst
//! errors: docs/reference/numerics.md.

use crate::builder::Value;
use crate::types::ScalarType;

pub mod comparison;
pub mod complex;
pub mod conversion;
pub mod double;
pub mod functions;
pub mod ordinary;
pub mod single;
pub mod special;

/// A function of one argument.
pub type Unary = for<'b> fn(Value<'b>) -> Value<'b>;
/// A function of two arguments.
pub type Binary = for<'b> fn(Value<'b>, Value<'b>) -> Value<'b>;
/// A function of three arguments.
pub type Ternary = for<'b> fn(Value<'b>, Value<'b>, Value<'b>) -> Value<'b>;

macro_rules! functions {
    ($list:ident: $function:ty; $($(#[$doc:meta])* $name:ident($x:ident $(, $y:ident)?);)*) => {
        $($(#[$doc])*
        pub fn $name<'b>($x: Value<'b> $(, $y: Value<'b>)?) -> Value<'b> {
            let name = functions::text_name(stringify!($name));
            $x.builder().function(name, &[$x $(, $y)?], || match $x.scalar() {
                ScalarType::F32 => single::$name($x $(, $y)?),
                ScalarType::F64 => double::$name($x $(, $y)?),
                other => unreachable!("{name} of {other:?}"),
            })
        })*

        /// The functions with one and with two arguments, by name.
        pub const $list: &[(&str, $function)] = &[$((stringify!($name), $name)),*];
    };
}

functions! {
    UNARY: Unary;
    /// `1 / x`
    reciprocal(x);
    /// Square root.
    sqrt(x);
    /// `1 / sqrt(x)`
    rsqrt(x);
    /// `e^x`
    exp(x);
    /// `2^x`
    exp2(x);
    /// `e^x - 1`
    expm1(x);
    /// Natural logarithm.
    log(x);
    /// `log(1 + x)`
    log1p(x);
    /// Logarithm to base 2.
    log2(x);
    /// Logarithm to base 10.
    log10(x);
    /// Sine of an angle in radians.
    sin(x);
    /// Cosine.
    cos(x);
    /// Tangent.
    tan(x);
    /// Inverse sine.
    asin(x);
    /// Inverse cosine.
    acos(x);
    /// Inverse tangent.
    atan(x);
    /// Hyperbolic sine.
    sinh(x);
    /// Hyperbolic cosine.
    cosh(x);
    /// Hyperbolic tangent.
    tanh(x);
    /// `1 / (1 + e^-x)`
    sigmoid(x);
    /// Error function.
    erf(x);
    /// `1 - erf(x)`
    erfc(x);
}

functions! {
    BINARY: Binary;
    /// `x * y`, with subnormal numbers on every adapter.
    mul(x, y);
    /// `x / y`
    div(x, y);
    /// Angle of the point `(y, x)`; the first argument is y.
    atan2(y, x);
    /// `x^y`, with C's special cases.
    pow(x, y);
    /// Remainder of `x / y` with the sign of `x`, exact (C's fmod).
    fmod(x, y);
}
