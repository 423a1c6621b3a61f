//! Elementwise functions of complex numbers.

use crate::complex::comparison::{is_true, same};
use crate::normalization::renorm::factor;
use crate::{complex_functions, functions};
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::{ScalarType, Value, math};

/// `sin(pi z) / (pi z)`, 1 of 0.
fn sinc(z: Complex<'_>) -> Complex<'_> {
    let angle = z.times(z.re.like(std::f64::consts::PI));
    Complex::select(z.is_zero(), z.like(1.0), complex::div(complex::sin(angle), angle))
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
    ASIN = "complex_asin"(z) => complex::asin(z);
    /// The inverse of the cosine.
    ACOS = "complex_acos"(z) => complex::acos(z);
    /// The inverse of the tangent.
    ATAN = "complex_atan"(z) => complex::atan(z);
    /// The inverse of the hyperbolic sine.
    ASINH = "complex_asinh"(z) => complex::asinh(z);
    /// The inverse of the hyperbolic cosine.
    ACOSH = "complex_acosh"(z) => complex::acosh(z);
    /// The inverse of the hyperbolic tangent.
    ATANH = "complex_atanh"(z) => complex::atanh(z);
    /// `z / |z|`, 0 of 0.
    SGN = "complex_sgn"(z) => complex::sgn(z);
    /// `-z`
    NEG = "complex_neg"(z) => z.negated();
    /// The conjugate.
    CONJ = "complex_conj"(z) => z.conjugate();
    /// `z / (1 + e^-z)`
    SILU = "complex_silu"(z) => {
        complex::div(z, complex::add(z.like(1.0), complex::exp(z.negated())))
    };
    /// `sin(pi z) / (pi z)`, 1 of 0.
    SINC = "complex_sinc"(z) => sinc(z);
    /// The absolute value.
    ABS = "complex_abs"(z) => complex::abs(z);
    /// The angle.
    ANGLE = "complex_angle"(z) => complex::angle(z);
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
    SCALE = "complex_scale"(z, factor) => complex::mul(factor, z);
    /// `beta * z + alpha * w`
    SCALE_ADD = "complex_scale_add"(z, w, beta, alpha) => {
        complex::add(complex::mul(beta, z), complex::mul(alpha, w))
    };
    /// `z ^ exponent`
    POW = "complex_pow"(z, exponent) => complex::pow(z, exponent);
    /// A power to 0.
    POW_0 = "complex_pow_0"(z, _exponent) => z.like(1.0);
    /// A power to 1.
    POW_1 = "complex_pow_1"(z, _exponent) => z;
    /// A power to 2.
    POW_2 = "complex_pow_2"(z, _exponent) => complex::mul(z, z);
    /// A power to 3.
    POW_3 = "complex_pow_3"(z, _exponent) => complex::mul(complex::mul(z, z), z);
    /// A power to 1/2.
    POW_HALF = "complex_pow_half"(z, _exponent) => complex::sqrt(z);
    /// A power to -1/2.
    POW_MINUS_HALF = "complex_pow_minus_half"(z, _exponent) => complex::rsqrt(z);
    /// A power to -1.
    POW_MINUS_1 = "complex_pow_minus_1"(z, _exponent) => complex::reciprocal(z);
    /// A power to -2.
    POW_MINUS_2 = "complex_pow_minus_2"(z, _exponent) => complex::reciprocal(complex::mul(z, z));
    /// A power of 1.
    POW_OF_1 = "complex_pow_of_1"(_base, exponent) => exponent.like(1.0);
    /// `t + value * z * w`
    ADDCMUL = "complex_addcmul"(t, z, w, value) => {
        complex::add(t, complex::mul(complex::mul(value, z), w))
    };
    /// `t + value * z / w`
    ADDCDIV = "complex_addcdiv"(t, z, w, value) => {
        complex::add(t, complex::div(complex::mul(value, z), w))
    };
    /// `x + weight * (end - x)`, from the nearer end.
    LERP = "complex_lerp"(x, end, weight) => {
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
    /// The gradient times the conjugate of the hyperbolic tangent's derivative, of its value.
    TANH_BACKWARD = "complex_tanh_backward"(grad, y) => {
        let derivative = complex::sub(y.like(1.0), complex::mul(y, y));
        complex::mul(grad, derivative.conjugate())
    };
    /// The gradient times the conjugate of the sigmoid's derivative, of its value.
    SIGMOID_BACKWARD = "complex_sigmoid_backward"(grad, y) => {
        let derivative = complex::mul(complex::sub(y.like(1.0), y), y);
        complex::mul(grad, derivative.conjugate())
    };
    /// `z == w`
    EQ = "complex_eq"(z, w) => same(z, w);
    /// `z != w`
    NE = "complex_ne"(z, w) => !same(z, w);
    /// Whether both are not 0.
    LOGICAL_AND = "complex_and"(z, w) => is_true(z) & is_true(w);
    /// Whether one is not 0.
    LOGICAL_OR = "complex_or"(z, w) => is_true(z) | is_true(w);
    /// Whether one of the two alone is not 0.
    LOGICAL_XOR = "complex_xor"(z, w) => is_true(z) ^ is_true(w);
    /// Whether it is 0.
    LOGICAL_NOT = "complex_not"(z) => !is_true(z);
    /// Whether it is not 0.
    TRUTH = "complex_truth"(z) => is_true(z);
    /// Whether a part is NaN.
    ISNAN = "complex_isnan"(z) => z.is_nan();
    /// Whether a part is infinite.
    ISINF = "complex_isinf"(z) => z.is_inf();
    /// `z` where the condition is not 0, else `w`.
    WHERE = "complex_where"(condition, z, w) => Complex::select(is_true(condition), z, w);
    /// `z`, and `value` where the mask is not 0.
    MASKED_FILL = "complex_masked_fill"(z, mask, value) => {
        Complex::select(mask.re.ne(0), value, z)
    };
    /// `p * q - r * s`, an element of a cross product.
    CROSS = "complex_cross"(p, q, r, s) => complex::sub(complex::mul(p, q), complex::mul(r, s));
    /// A slice of a norm, scaled down to a limit.
    RENORM = "complex_renorm"(z, norm, limit) => z.times(factor(norm.re, limit.re));
}

functions! {
    /// The parts of a complex number, of two reals.
    JOIN = "complex_join"(re, im) => [re, im];
    /// The parts of a complex number, of magnitude and angle.
    POLAR = "complex_polar"(size, angle) => [size * math::cos(angle), size * math::sin(angle)];
    /// The parts of a number for all elements.
    FILL = "complex_fill"(re, im) => [re, im];
    /// The parts of `base` to a complex power.
    LOGSPACE = "complex_logspace"(re, im, base) => {
        complex::pow(Complex::real(base), Complex::new(re, im))
    };
    /// The block of a complex number in a real matrix, row by row.
    BLOCKS = "complex_blocks"(re, im) => [re, im, -im, re];
    /// [`BLOCKS`] of the conjugate.
    BLOCKS_CONJ = "complex_blocks_conj"(re, im) => [re, -im, im, re];
    /// The variance of a complex number, of those of its parts.
    VAR = "complex_var"(re, im) => re + im;
    /// The deviation of a complex number, of the variances of its parts.
    STD = "complex_std"(re, im) => math::sqrt(re + im);
    /// A real or complex number in another dtype, by its parts.
    CAST = "complex_cast"(..v) => copied(v, false, false);
    /// The negative of [`CAST`].
    COPY_NEG = "complex_copy_neg"(..v) => copied(v, true, false);
    /// The conjugate of [`CAST`].
    COPY_CONJ = "complex_copy_conj"(..v) => copied(v, false, true);
    /// The negative conjugate of [`CAST`].
    COPY_NEG_CONJ = "complex_copy_neg_conj"(..v) => copied(v, true, true);
}

/// The parts of a copy. Of a bool, whether any part of the number is not 0.
fn copied<'b>(v: &[Value<'b>], negated: bool, conjugated: bool) -> Vec<Value<'b>> {
    if v[0].scalar() == ScalarType::Bool {
        return vec![v[1..].iter().fold(v[0], |any, &part| any | part)];
    }
    let z = v.get(1).map_or_else(|| Complex::real(v[0]), |&im| Complex::new(v[0], im));
    let z = if conjugated { z.conjugate() } else { z };
    let z = if negated && v[0].scalar().is_float() { z.negated() } else { z };
    z.parts()
}
