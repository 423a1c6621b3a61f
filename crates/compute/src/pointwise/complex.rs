//! Functions of complex numbers, which those of real ones of the same names refer to.

use crate::complex_functions;
use crate::pointwise::rule::Rule;
use dml_kernel::math::comparison;
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{ScalarType, Value};

/// `sin(pi z) / (pi z)`, 1 at 0.
fn sinc(z: Complex<'_>) -> Complex<'_> {
    let angle = z.times(z.re.like(std::f64::consts::PI));
    Complex::select(z.is_zero(), z.like(1.0), complex::div(complex::sin(angle), angle))
}

fn same<'b>(a: Complex<'b>, b: Complex<'b>) -> Value<'b> {
    comparison::equal(a.re, b.re) & comparison::equal(a.im, b.im)
}

fn is_true(z: Complex<'_>) -> Value<'_> {
    z.re.cast(ScalarType::Bool) | z.im.cast(ScalarType::Bool)
}

complex_functions! {
    /// `e^z`.
    EXP = "complex_exp"(z) => complex::exp(z);
    /// `2^z`.
    EXP2 = "complex_exp2"(z) => complex::exp2(z);
    /// `e^z - 1`.
    EXPM1 = "complex_expm1"(z) => complex::expm1(z);
    /// The natural logarithm.
    LOG = "complex_log"(z) => complex::log(z);
    /// `log(1 + z)`.
    LOG1P = "complex_log1p"(z) => complex::log1p(z);
    /// The logarithm to base 2.
    LOG2 = "complex_log2"(z) => complex::log2(z);
    /// The logarithm to base 10.
    LOG10 = "complex_log10"(z) => complex::log10(z);
    /// The square root.
    SQRT = "complex_sqrt"(z) => complex::sqrt(z);
    /// `1 / sqrt(z)`.
    RSQRT = "complex_rsqrt"(z) => complex::rsqrt(z);
    /// `1 / z`.
    RECIPROCAL = "complex_reciprocal"(z) => complex::reciprocal(z);
    /// `1 / (1 + e^-z)`.
    SIGMOID = "complex_sigmoid"(z) => complex::sigmoid(z);
    /// The sine.
    SIN = "complex_sin"(z) => complex::sin(z);
    /// The cosine.
    COS = "complex_cos"(z) => complex::cos(z);
    /// The tangent.
    TAN = "complex_tan"(z) => complex::tan(z);
    /// The hyperbolic sine.
    SINH = "complex_sinh"(z) => complex::sinh(z);
    /// The hyperbolic cosine.
    COSH = "complex_cosh"(z) => complex::cosh(z);
    /// The hyperbolic tangent.
    TANH = "complex_tanh"(z) => complex::tanh(z);
    /// The inverse of the sine.
    ASIN = "complex_asin"(z).heavy() => complex::asin(z);
    /// The inverse of the cosine.
    ACOS = "complex_acos"(z).heavy() => complex::acos(z);
    /// The inverse of the tangent.
    ATAN = "complex_atan"(z) => complex::atan(z);
    /// The inverse of the hyperbolic sine.
    ASINH = "complex_asinh"(z).heavy() => complex::asinh(z);
    /// The inverse of the hyperbolic cosine.
    ACOSH = "complex_acosh"(z).heavy() => complex::acosh(z);
    /// The inverse of the hyperbolic tangent.
    ATANH = "complex_atanh"(z) => complex::atanh(z);
    /// `z / |z|`, 0 at 0.
    SGN = "complex_sgn"(z).rule(Rule::Exact) => complex::sgn(z);
    /// `-z`
    NEG = "complex_neg"(z).rule(Rule::Exact) => z.negated();
    /// The conjugate.
    CONJ = "complex_conj"(z).rule(Rule::Exact) => z.conjugate();
    /// `z / (1 + e^-z)`
    SILU = "complex_silu"(z) => {
        complex::div(z, complex::add(z.like(1.0), complex::exp(z.negated())))
    };
    /// `sin(pi z) / (pi z)`, 1 at 0.
    SINC = "complex_sinc"(z) => sinc(z);
    /// The absolute value.
    ABS = "complex_abs"(z).rule(Rule::Real) => complex::abs(z);
    /// The angle.
    ANGLE = "complex_angle"(z).rule(Rule::Real) => complex::angle(z);
    /// `z + w`
    ADD = "complex_add"(z, w) => complex::add(z, w);
    /// `z + alpha * w`
    ADD_ALPHA = "complex_add_alpha"(z, w, alpha) => complex::add(z, complex::mul(alpha, w));
    /// `z - w`
    SUB = "complex_sub"(z, w) => complex::sub(z, w);
    /// `z - alpha * w`
    SUB_ALPHA = "complex_sub_alpha"(z, w, alpha) => complex::sub(z, complex::mul(alpha, w));
    /// `z * w`
    MUL = "complex_mul"(z, w) => complex::mul(z, w);
    /// `z / w`
    DIV = "complex_div"(z, w) => complex::div(z, w);
    /// `factor * z`
    SCALE = "complex_scale"(z, factor).rule(Rule::Exact) => complex::mul(factor, z);
    /// `beta * z + alpha * w`
    SCALE_ADD = "complex_scale_add"(z, w, beta, alpha).rule(Rule::Exact) => {
        complex::add(complex::mul(beta, z), complex::mul(alpha, w))
    };
    /// `z ^ exponent`
    POW = "complex_pow"(z, exponent) => complex::pow(z, exponent);
    /// `z ^ 0`
    POW_0 = "complex_pow_0"(z, _exponent) => z.like(1.0);
    /// `z ^ 1`
    POW_1 = "complex_pow_1"(z, _exponent) => z;
    /// `z ^ 2`
    POW_2 = "complex_pow_2"(z, _exponent) => complex::mul(z, z);
    /// `z ^ 3`
    POW_3 = "complex_pow_3"(z, _exponent) => complex::mul(complex::mul(z, z), z);
    /// `z ^ (1/2)`
    POW_HALF = "complex_pow_half"(z, _exponent) => complex::sqrt(z);
    /// `z ^ (-1/2)`
    POW_MINUS_HALF = "complex_pow_minus_half"(z, _exponent) => complex::rsqrt(z);
    /// `z ^ -1`
    POW_MINUS_1 = "complex_pow_minus_1"(z, _exponent) => complex::reciprocal(z);
    /// `z ^ -2`
    POW_MINUS_2 = "complex_pow_minus_2"(z, _exponent) => complex::reciprocal(complex::mul(z, z));
    /// `1 ^ exponent`
    POW_OF_1 = "complex_pow_of_1"(_base, exponent) => exponent.like(1.0);
    /// `t + value * z * w`
    ADDCMUL = "complex_addcmul"(t, z, w, value) => {
        complex::add(t, complex::mul(complex::mul(value, z), w))
    };
    /// `t + value * z / w`
    ADDCDIV = "complex_addcdiv"(t, z, w, value) => {
        complex::add(t, complex::div(complex::mul(value, z), w))
    };
    /// `x + weight * (end - x)`, computed from the end that is nearer.
    LERP = "complex_lerp"(x, end, weight).rule(Rule::Exact) => {
        let step = complex::sub(end, x);
        let from_start = complex::add(x, complex::mul(weight, step));
        let from_end = complex::sub(end, complex::mul(step, complex::sub(x.like(1.0), weight)));
        let near = (weight.re * weight.re + weight.im * weight.im).lt(0.25);
        Complex::select(near, from_start, from_end)
    };
    /// `beta * t + alpha * z * w`
    ADDR = "complex_addr"(t, z, w, beta, alpha) => {
        complex::add(complex::mul(beta, t), complex::mul(complex::mul(alpha, z), w))
    };
    /// [`ADDR`] where beta is 0.
    ADDR_0 = "complex_addr_0"(_t, z, w, _beta, alpha) => complex::mul(complex::mul(alpha, z), w);
    /// `log(e^z + e^w)`
    LOGADDEXP = "complex_logaddexp"(z, w) => complex::logaddexp(z, w);
    /// The gradient of tanh from its result `y`: `grad * conj(1 - y^2)`.
    TANH_BACKWARD = "complex_tanh_backward"(grad, y) => {
        let derivative = complex::sub(y.like(1.0), complex::mul(y, y));
        complex::mul(grad, derivative.conjugate())
    };
    /// The gradient of the sigmoid from its result `y`: `grad * conj((1 - y) * y)`.
    SIGMOID_BACKWARD = "complex_sigmoid_backward"(grad, y) => {
        let derivative = complex::mul(complex::sub(y.like(1.0), y), y);
        complex::mul(grad, derivative.conjugate())
    };
    /// `z == w`
    EQ = "complex_eq"(z, w).rule(Rule::Bool) => same(z, w);
    /// `z != w`
    NE = "complex_ne"(z, w).rule(Rule::Bool) => !same(z, w);
    /// Whether both operands are not 0.
    LOGICAL_AND = "complex_and"(z, w).rule(Rule::Bool) => is_true(z) & is_true(w);
    /// Whether at least one operand is not 0.
    LOGICAL_OR = "complex_or"(z, w).rule(Rule::Bool) => is_true(z) | is_true(w);
    /// Whether exactly one operand is not 0.
    LOGICAL_XOR = "complex_xor"(z, w).rule(Rule::Bool) => is_true(z) ^ is_true(w);
    /// Whether the operand is 0.
    LOGICAL_NOT = "complex_not"(z).rule(Rule::Bool) => !is_true(z);
    /// Whether the operand is not 0.
    TRUTH = "complex_truth"(z).rule(Rule::Bool) => is_true(z);
    /// Whether a part of the operand is NaN.
    ISNAN = "complex_isnan"(z).rule(Rule::Bool) => z.is_nan();
    /// Whether a part of the operand is infinite.
    ISINF = "complex_isinf"(z).rule(Rule::Bool) => z.is_inf();
    /// `z` where the condition is not 0, else `w`.
    WHERE = "complex_where"(condition, z, w).rule(Rule::Exact) => Complex::select(is_true(condition), z, w);
    /// `z`, or `value` where the mask is not 0.
    MASKED_FILL = "complex_masked_fill"(z, mask, value) => {
        Complex::select(mask.re.ne(0), value, z)
    };
    /// `p * q - r * s`, an element of a cross product.
    CROSS = "complex_cross"(p, q, r, s) => complex::sub(complex::mul(p, q), complex::mul(r, s));
}
