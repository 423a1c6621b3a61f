//! Elementary functions of one tensor.

use crate::functions;
use crate::pointwise::complex;
use crate::pointwise::rule::{Dtypes, Rule};
use dml_kernel::float8::Format;
use dml_kernel::{DType, ScalarType, Value, math};

/// `-x`; of a float by its sign bit, which keeps subnormal numbers.
pub(super) fn negated(x: Value<'_>) -> Value<'_> {
    if x.scalar().is_float() { math::special::flipped_by(x, x.like(-1.0)) } else { -x }
}

/// Absolute value; of a bool, itself.
fn abs(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::Bool => x,
        s if s.is_float() => math::special::magnitude(x),
        _ => x.abs(),
    }
}

/// -1, 0 or 1; NaN yields 0 as on CPU.
pub fn sign(x: Value<'_>) -> Value<'_> {
    if x.scalar() == ScalarType::Bool {
        return x;
    }
    let (above, below) =
        if x.scalar().is_float() { (x.is_above_zero(), x.is_below_zero()) } else { (x.gt(0), x.lt(0)) };
    below.select(x.like(-1.0), above.select(x.like(1.0), 0))
}

/// Angle of a real number in the complex plane: pi left of zero, 0 elsewhere, NaN of NaN.
fn angle(x: Value<'_>) -> Value<'_> {
    x.is_nan().select(x, x.lt(0).select(x.like(std::f64::consts::PI), 0))
}

/// Rounding of a float; an integer is its own.
fn rounded<'b>(x: Value<'b>, how: impl Fn(Value<'b>) -> Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { how(x) } else { x }
}

/// Whether the sign bit is set, that of -0 and NaN included.
fn sign_bit(x: Value<'_>) -> Value<'_> {
    match x.scalar() {
        ScalarType::Bool => x.builder().bool(false),
        ScalarType::F32 => x.bitcast(ScalarType::I32).lt(0),
        ScalarType::F64 => x.bitcast(ScalarType::I64).lt(0),
        _ => x.lt(0),
    }
}

fn abs_float8(bits: Value<'_>, dtype: DType) -> Value<'_> {
    let last_negative = Format::of(dtype).map_or(0, Format::last_negative);
    let negative = bits.gt(0x80) & bits.le(last_negative);
    negative.select(bits - 0x80, bits)
}

functions! {
    /// `e^x`.
    EXP = "exp"(x).rule(Rule::Float).of_complex(&complex::EXP) => math::exp(x);
    /// `2^x`.
    EXP2 = "exp2"(x).rule(Rule::Float).of_complex(&complex::EXP2) => math::exp2(x);
    /// `e^x - 1`, exact near 0.
    EXPM1 = "expm1"(x).rule(Rule::Float).of_complex(&complex::EXPM1) => math::expm1(x);
    /// The natural logarithm.
    LOG = "log"(x).rule(Rule::Float).of_complex(&complex::LOG) => math::log(x);
    /// `log(1 + x)`, exact near 0.
    LOG1P = "log1p"(x).rule(Rule::Float).of_complex(&complex::LOG1P) => math::log1p(x);
    /// The logarithm to base 2.
    LOG2 = "log2"(x).rule(Rule::Float).of_complex(&complex::LOG2) => math::log2(x);
    /// The logarithm to base 10.
    LOG10 = "log10"(x).rule(Rule::Float).of_complex(&complex::LOG10) => math::log10(x);
    /// The square root.
    SQRT = "sqrt"(x).rule(Rule::Float).of_complex(&complex::SQRT) => math::sqrt(x);
    /// `1 / sqrt(x)`.
    RSQRT = "rsqrt"(x).rule(Rule::Float).of_complex(&complex::RSQRT) => math::rsqrt(x);
    /// `1 / x`.
    RECIPROCAL = "reciprocal"(x).rule(Rule::Float).of_complex(&complex::RECIPROCAL) => math::reciprocal(x);
    /// The sine.
    SIN = "sin"(x).rule(Rule::Float).of_complex(&complex::SIN) => math::sin(x);
    /// The cosine.
    COS = "cos"(x).rule(Rule::Float).of_complex(&complex::COS) => math::cos(x);
    /// The tangent.
    TAN = "tan"(x).rule(Rule::Float).of_complex(&complex::TAN) => math::tan(x);
    /// The inverse of the sine.
    ASIN = "asin"(x).rule(Rule::Float).of_complex(&complex::ASIN) => math::asin(x);
    /// The inverse of the cosine.
    ACOS = "acos"(x).rule(Rule::Float).of_complex(&complex::ACOS) => math::acos(x);
    /// The inverse of the tangent.
    ATAN = "atan"(x).rule(Rule::Float).of_complex(&complex::ATAN) => math::atan(x);
    /// The hyperbolic sine.
    SINH = "sinh"(x).rule(Rule::Float).of_complex(&complex::SINH) => math::sinh(x);
    /// The hyperbolic cosine.
    COSH = "cosh"(x).rule(Rule::Float).of_complex(&complex::COSH) => math::cosh(x);
    /// The hyperbolic tangent.
    TANH = "tanh"(x).rule(Rule::Float).of_complex(&complex::TANH) => math::tanh(x);
    /// `1 / (1 + e^-x)`.
    SIGMOID = "sigmoid"(x).rule(Rule::Float).of_complex(&complex::SIGMOID) => math::sigmoid(x);
    /// The error function.
    ERF = "erf"(x).rule(Rule::Float) => math::erf(x);
    /// `1 - erf(x)`.
    ERFC = "erfc"(x).rule(Rule::Float) => math::erfc(x);
    /// The absolute value; of a bool, itself.
    ABS = "abs"(x).rule(Rule::Exact).takes(Dtypes::Number).of_complex(&complex::ABS) => abs(x);
    /// The bits of a float of 8 bits, of the option's dtype, without the sign; zero and NaN keep
    /// it, as on the CPU.
    ABS_FLOAT8 = "abs_float8"(bits | o).integers() => abs_float8(bits, o.dtype);
    /// -1, 0 or 1; NaN yields 0 as on CPU.
    SIGN = "sign"(x).rule(Rule::Exact) => sign(x);
    /// [`SIGN`], which of complex numbers is another function.
    SGN = "sgn"(x).rule(Rule::Exact).of_complex(&complex::SGN) => sign(x);
    /// `x` rounded down; an integer is its own.
    FLOOR = "floor"(x).rule(Rule::Exact).takes(Dtypes::Number) => rounded(x, Value::floor);
    /// `x` rounded up; an integer is its own.
    CEIL = "ceil"(x).rule(Rule::Exact).takes(Dtypes::Number) => rounded(x, Value::ceil);
    /// `x` rounded towards 0; an integer is its own.
    TRUNC = "trunc"(x).rule(Rule::Exact).takes(Dtypes::Number) => rounded(x, Value::trunc);
    /// `x` rounded to the nearest integer, halves to the even one; an integer is its own.
    ROUND = "round"(x).rule(Rule::Exact).takes(Dtypes::Number) => rounded(x, Value::round);
    /// `x - trunc(x)`
    FRAC = "frac"(x).rule(Rule::Exact).takes(Dtypes::Float) => x - x.trunc();
    /// Whether it is 0.
    LOGICAL_NOT = "logical_not"(x).rule(Rule::Bool).of_complex(&complex::LOGICAL_NOT) => !x.cast(ScalarType::Bool);
    /// `!x`
    BITWISE_NOT = "bitwise_not"(x).integers().rule(Rule::Exact).takes(Dtypes::Integral) => !x;
    /// Whether it is infinity.
    ISPOSINF = "isposinf"(x).rule(Rule::Bool) => x.is_inf() & x.gt(0);
    /// Whether it is minus infinity.
    ISNEGINF = "isneginf"(x).rule(Rule::Bool) => x.is_inf() & x.lt(0);
    /// Whether the sign bit is set, that of -0 and NaN included.
    SIGNBIT = "signbit"(x).rule(Rule::Bool) => sign_bit(x);
    /// `-x`; of a float by its sign bit, which keeps subnormal numbers.
    NEG = "neg"(x).rule(Rule::Exact).takes(Dtypes::Signed).of_complex(&complex::NEG) => negated(x);
    /// The conjugate, which of a real number is the number itself.
    CONJ_PHYSICAL = "conj_physical"(x).rule(Rule::Exact).of_complex(&complex::CONJ) => x;
    /// The angle of a real number in the complex plane: pi left of zero, 0 elsewhere, NaN of NaN.
    ANGLE = "angle"(x).rule(Rule::Float).of_complex(&complex::ANGLE) => angle(x);
    /// Whether it is NaN.
    ISNAN = "isnan"(x).rule(Rule::Bool).of_complex(&complex::ISNAN) => x.is_nan();
    /// Whether it is an infinity.
    ISINF = "isinf"(x).rule(Rule::Bool).of_complex(&complex::ISINF) => x.is_inf();
}
