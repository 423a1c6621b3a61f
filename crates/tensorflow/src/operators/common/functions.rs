//! Elementwise functions that TensorFlow defines, or defines otherwise than other frameworks.

use dml_compute::{complex_functions, functions};
use dml_kernel::math::comparison::{less, maximum, minimum};
use dml_kernel::math::complex::{self, Complex};
use dml_kernel::math::{self, special};
use dml_kernel::{DType, ScalarType, Value};

/// Selu's factor of negative numbers, and of all.
const SELU: [f64; 2] = [1.673_263_242_354_377_2, 1.050_700_987_355_480_5];

/// `y` where the factor `x` is not 0, else 0.
fn unless_zero<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    x.is_zero().select(y.like(0.0), y)
}

/// [`unless_zero`] of complex numbers.
fn unless_complex_zero<'b>(z: Complex<'b>, y: Complex<'b>) -> Complex<'b> {
    Complex::select(z.is_zero(), y.like(0.0), y)
}

/// `1 / x`; of integers 0 except of 1 and -1.
fn inverse(x: Value<'_>) -> Value<'_> {
    if x.scalar().is_float() {
        return math::reciprocal(x);
    }
    let is_unit = if x.scalar().is_signed() { x.eq(1) | x.eq(-1) } else { x.eq(1) };
    is_unit.select(x, 0)
}

/// A distance of a shift within the bits of a dtype.
fn distance(y: Value<'_>, dtype: DType) -> Value<'_> {
    let last = y.like(f64::from(8 * dtype.bytes() as u32 - 1));
    let below = if y.scalar().is_signed() { y.lt(0).select(y.like(0.0), y) } else { y };
    below.gt(last).select(last, below)
}

/// The number of ones among the bits of a dtype.
fn ones(x: Value<'_>, dtype: DType) -> Value<'_> {
    let wide = x.scalar().unsigned();
    let bits = x.bitcast(wide);
    let width = 8 * dtype.bytes();
    let narrow = width < 8 * u64::from(wide.bytes());
    let bits = if narrow { bits & x.builder().int(wide, (1 << width) - 1) } else { bits };
    if wide == ScalarType::U64 {
        let low = bits.cast(ScalarType::U32).count_ones();
        return (low + (bits >> 32).cast(ScalarType::U32).count_ones()).cast(x.scalar());
    }
    bits.count_ones().cast(x.scalar())
}

/// The polygamma function of order `n`, NaN unless that is a natural number.
fn polygamma<'b>(n: Value<'b>, x: Value<'b>) -> Value<'b> {
    let odd = (n * 0.5).floor().ne(n * 0.5);
    let factorial = math::exp(special::lgamma(n + 1.0));
    let derivative = factorial * special::zeta(n + 1.0, x);
    let signed = odd.select(derivative, -derivative);
    let natural = n.floor().eq(n) & n.ge(0.0);
    natural.select(n.eq(0.0).select(special::digamma(x), signed), n.like(f64::NAN))
}

/// The derivative of the regularised incomplete gamma function by `a`: the density at `x`, times
/// how a sample moves with `a`.
fn incomplete_gamma_gradient<'b>(a: Value<'b>, x: Value<'b>) -> Value<'b> {
    let density = math::exp((a - 1.0) * math::log(x) - x - special::lgamma(a));
    let inside = -(special::gamma_sample_gradient(a, x) * density);
    let outside = (a.le(0.0) | x.lt(0.0)).select(x.like(f64::NAN), x.like(0.0));
    (a.gt(0.0) & x.gt(0.0)).select(inside, outside)
}

/// The most steps of a continued fraction.
const STEPS: f64 = 1000.0;

/// The regularised incomplete beta function, for f64: the continued fraction, by the method of
/// W. Lentz, "Generating Bessel functions in Mie scattering calculations using continued
/// fractions", 1976. It converges fast left of the mean; right of it `1 - I(b, a, 1 - x)` is used.
fn incomplete_beta<'b>(a: Value<'b>, b: Value<'b>, x: Value<'b>) -> Value<'b> {
    let builder = x.builder();
    let turned = x.gt((a + 1.0) / (a + b + 2.0));
    let (p, q) = (turned.select(b, a), turned.select(a, b));
    let (y, rest) = (turned.select(1.0 - x, x), turned.select(math::log(x), math::log1p(-x)));
    let log = turned.select(math::log1p(-x), math::log(x));
    let beta = special::lgamma(p) + special::lgamma(q) - special::lgamma(p + q);
    let front = math::exp(p * log + q * rest - beta) / p;
    let held = |x: Value<'b>| x.abs().lt(1e-300).select(x.like(1e-300), x);
    let d = builder.var(1.0 / held(1.0 - (p + q) * y / (p + 1.0)));
    let (c, fraction) = (builder.var(x.like(1.0)), builder.var(d.get()));
    let (step, change) = (builder.var(x.like(1.0)), builder.var(x.like(2.0)));
    builder.while_(
        || step.get().lt(STEPS) & (change.get() - 1.0).abs().gt(1e-15),
        || {
            let m = step.get();
            let twice = p + 2.0 * m;
            let even = m * (q - m) * y / ((twice - 1.0) * twice);
            let odd = -((p + m) * (p + q + m) * y / (twice * (twice + 1.0)));
            for term in [even, odd] {
                d.set(1.0 / held(1.0 + term * d.get()));
                c.set(held(1.0 + term / c.get()));
                change.set(d.get() * c.get());
                fraction.set(fraction.get() * change.get());
            }
            step.set(m + 1.0);
        },
    );
    let inside = front * fraction.get();
    let inside = turned.select(1.0 - inside, inside);
    let ends = x.le(0.0).select(x.like(0.0), x.ge(1.0).select(x.like(1.0), inside));
    let valid = a.gt(0.0) & b.gt(0.0) & x.ge(0.0) & x.le(1.0);
    valid.select(ends, x.like(f64::NAN))
}

/// The magnitude with its low mantissa bits cleared that a conversion to a float would round.
fn truncated(x: Value<'_>, to: DType) -> Value<'_> {
    let digits = |dtype| match dtype {
        DType::F64 => 52,
        DType::F32 => 23,
        DType::F16 => 10,
        DType::BF16 => 7,
        DType::F8E4M3FN => 3,
        _ => 2,
    };
    let from = if x.scalar() == ScalarType::F64 { DType::F64 } else { DType::F32 };
    if digits(to) >= digits(from) {
        return x;
    }
    let bits = x.scalar().unsigned();
    let low = (1u64 << (digits(from) - digits(to))) - 1;
    let mask = if bits == ScalarType::U64 { !low } else { !low & 0xffff_ffff };
    // NaN stays NaN.
    x.is_nan().select(x, (x.bitcast(bits) & x.builder().int(bits, mask)).bitcast(x.scalar()))
}

functions! {
    /// `x²`
    SQUARE = "tf_square"(x).of_complex(&COMPLEX_SQUARE) => x * x;
    /// `(x - y)²`; of complex numbers the square of the distance.
    SQUARED_DIFFERENCE = "tf_squared_difference"(x, y).of_complex(&COMPLEX_SQUARED_DIFFERENCE) => {
        let difference = x - y;
        difference * difference
    };
    /// `1 / x`; of integers 0 except of 1 and -1.
    RECIPROCAL = "tf_reciprocal"(x).of_complex(&COMPLEX_RECIPROCAL) => inverse(x);
    /// `floor(x / y)` of floats.
    FLOOR_DIV = "tf_floor_div"(x, y) => (x / y).floor();
    /// `trunc(x / y)` of floats.
    TRUNCATE_DIV = "tf_truncate_div"(x, y) => (x / y).trunc();
    /// `x / y`, 0 where `y` is 0.
    DIV_NO_NAN = "tf_div_no_nan"(x, y).of_complex(&COMPLEX_DIV_NO_NAN) => unless_zero(y, x / y);
    /// `x * y`, 0 where `y` is 0.
    MUL_NO_NAN = "tf_mul_no_nan"(x, y).of_complex(&COMPLEX_MUL_NO_NAN) => unless_zero(y, x * y);
    /// `x / y`, 0 where `x` is 0.
    XDIVY = "tf_xdivy"(x, y).of_complex(&COMPLEX_XDIVY) => unless_zero(x, x / y);
    /// `x * log(y)`, 0 where `x` is 0.
    XLOGY = "tf_xlogy"(x, y).of_complex(&COMPLEX_XLOGY) => unless_zero(x, math::mul(x, math::log(y)));
    /// `x * log(1 + y)`, 0 where `x` is 0.
    XLOG1PY = "tf_xlog1py"(x, y).of_complex(&COMPLEX_XLOG1PY) => unless_zero(x, math::mul(x, math::log1p(y)));
    /// Whether two numbers are less than `tolerance` apart.
    APPROXIMATE_EQUAL = "tf_approximate_equal"(x, y, tolerance) => less((x - y).abs(), tolerance);
    /// Whether it is neither infinite nor NaN.
    IS_FINITE = "tf_is_finite"(x) => x.is_finite();
    /// `x << y`, the distance held within the bits of the option's dtype.
    LEFT_SHIFT = "tf_left_shift"(x, y | o).integers() => x << distance(y, o.dtype);
    /// `x >> y`, the distance held within the bits of the option's dtype.
    RIGHT_SHIFT = "tf_right_shift"(x, y | o).integers() => x >> distance(y, o.dtype);
    /// The number of ones among the bits of the option's dtype.
    POPULATION_COUNT = "tf_population_count"(x | o).integers() => ones(x, o.dtype);
    /// `x` held within `low` and `high`.
    CLIP = "tf_clip"(x, low, high) => minimum(maximum(x, low), high);
    /// `x` for a conversion to the option's dtype that rounds towards 0.
    TRUNCATED = "tf_truncated"(x | o) => truncated(x, o.dtype);
    /// `x` held within 0 and 6; NaN passes.
    RELU6 = "tf_relu6"(x) => {
        let zero = x.like(0.0);
        let positive = less(x, zero).select(zero, x);
        less(x.like(6.0), positive).select(x.like(6.0), positive)
    };
    /// `grad` where `x` is above 0.
    RELU_GRAD = "tf_relu_grad"(grad, x) => less(x.like(0.0), x).select(grad, grad.like(0.0));
    /// `grad` where `x` is between 0 and 6.
    RELU6_GRAD = "tf_relu6_grad"(grad, x) => {
        (less(x.like(0.0), x) & less(x, x.like(6.0))).select(grad, grad.like(0.0))
    };
    /// `grad` where `x` is above 0, else `grad * slope`.
    LEAKY_RELU_GRAD = "tf_leaky_relu_grad"(grad, x, slope) => {
        less(x.like(0.0), x).select(grad, grad * slope)
    };
    /// `e^x - 1` below 0.
    ELU = "tf_elu"(x) => less(x, x.like(0.0)).select(math::expm1(x), x);
    /// The gradient of [`ELU`], of its result.
    ELU_GRAD = "tf_elu_grad"(grad, y) => less(y, y.like(0.0)).select((y + 1.0) * grad, grad);
    /// A scaled [`ELU`] whose results keep mean 0 and variance 1.
    SELU_OF = "tf_selu"(x) => {
        less(x, x.like(0.0)).select(math::expm1(x) * (SELU[0] * SELU[1]), x * SELU[1])
    };
    /// The gradient of [`SELU_OF`], of its result.
    SELU_GRAD = "tf_selu_grad"(grad, y) => {
        less(y, y.like(0.0)).select(grad * (y + SELU[0] * SELU[1]), grad * SELU[1])
    };
    /// `log(1 + e^x)`
    SOFTPLUS = "tf_softplus"(x) => {
        let zero = x.like(0.0);
        let positive = less(x, zero).select(zero, x);
        positive + math::log1p(math::exp(-x.abs()))
    };
    /// The gradient of [`SOFTPLUS`].
    SOFTPLUS_GRAD = "tf_softplus_grad"(grad, x) => grad * math::sigmoid(x);
    /// `x / (1 + |x|)`
    SOFTSIGN = "tf_softsign"(x) => x / (1.0 + x.abs());
    /// The gradient of [`SOFTSIGN`].
    SOFTSIGN_GRAD = "tf_softsign_grad"(grad, x) => {
        let length = 1.0 + x.abs();
        grad / (length * length)
    };
    /// The gradient of the reciprocal, of its result `y`.
    RECIPROCAL_GRAD = "tf_reciprocal_grad"(y, grad).of_complex(&COMPLEX_RECIPROCAL_GRAD) => -(grad * y) * y;
    /// The gradient of the square root, of its result `y`.
    SQRT_GRAD = "tf_sqrt_grad"(y, grad).of_complex(&COMPLEX_SQRT_GRAD) => grad * 0.5 / y;
    /// The gradient of the square root's reciprocal, of its result `y`.
    RSQRT_GRAD = "tf_rsqrt_grad"(y, grad).of_complex(&COMPLEX_RSQRT_GRAD) => grad * -0.5 * y * (y * y);
    /// The gradient of the hyperbolic tangent, of its result `y`.
    TANH_GRAD = "tf_tanh_grad"(y, grad).of_complex(&COMPLEX_TANH_GRAD) => grad * (1.0 - y * y);
    /// The gradient of the sigmoid, of its result `y`.
    SIGMOID_GRAD = "tf_sigmoid_grad"(y, grad).of_complex(&COMPLEX_SIGMOID_GRAD) => grad * y * (1.0 - y);
    /// The polygamma function of order `n`, NaN unless that is a natural number.
    POLYGAMMA = "tf_polygamma"(n, x).heavy() => polygamma(n, x);
    /// The derivative of the regularised incomplete gamma function by `a`.
    IGAMMA_GRAD_A = "tf_igamma_grad_a"(a, x).heavy() => incomplete_gamma_gradient(a, x);
    /// The regularised incomplete beta function, for f64.
    BETAINC = "tf_betainc"(a, b, x).heavy() => incomplete_beta(a, b, x);
    /// What a label adds to the cross-entropy of logits, and the logit's gradient; of the logit's
    /// logarithm of probability.
    CROSS_ENTROPY = "tf_cross_entropy"(log, label) => [-(label * log), math::exp(log) - label];
    /// The factor of dropout, of noise of `[0, 1)`: `factor` for the share `keep`, else 0.
    DROPOUT_FACTOR = "tf_dropout_factor"(noise, keep, factor) => less(noise, keep).select(factor, noise.like(0.0));
    /// The number of the bin of this width that `x` is in, held within 0 and `last`.
    BIN = "tf_bin"(x, low, width, last) => minimum(maximum(((x - low) / width).floor(), x.like(0.0)), last);
    /// Whether it is infinite or NaN.
    IS_NOT_FINITE = "tf_is_not_finite"(x) => x.is_nan() | x.is_inf();
    /// Whether it is NaN.
    IS_NAN = "tf_is_nan"(x) => x.is_nan();
    /// Whether it is infinite and not below 0.
    IS_POSITIVE_INFINITY = "tf_is_positive_infinity"(x) => x.is_inf() & x.gt(0.0);
    /// Whether it is infinite and below 0.
    IS_NEGATIVE_INFINITY = "tf_is_negative_infinity"(x) => x.is_inf() & x.lt(0.0);
    /// Half a number.
    HALF = "tf_half"(x) => x * 0.5;
}

complex_functions! {
    /// See [`SQUARE`].
    COMPLEX_SQUARE = "tf_complex_square"(z) => complex::mul(z, z);
    /// See [`SQUARED_DIFFERENCE`].
    COMPLEX_SQUARED_DIFFERENCE = "tf_complex_squared_difference"(z, w) => {
        let d = complex::sub(z, w);
        Complex::real(d.re * d.re + d.im * d.im)
    };
    /// See [`RECIPROCAL`].
    COMPLEX_RECIPROCAL = "tf_complex_reciprocal"(z) => complex::reciprocal(z);
    /// See [`DIV_NO_NAN`].
    COMPLEX_DIV_NO_NAN = "tf_complex_div_no_nan"(z, w) => unless_complex_zero(w, complex::div(z, w));
    /// See [`MUL_NO_NAN`].
    COMPLEX_MUL_NO_NAN = "tf_complex_mul_no_nan"(z, w) => unless_complex_zero(w, complex::mul(z, w));
    /// See [`XDIVY`].
    COMPLEX_XDIVY = "tf_complex_xdivy"(z, w) => unless_complex_zero(z, complex::div(z, w));
    /// See [`XLOGY`].
    COMPLEX_XLOGY = "tf_complex_xlogy"(z, w) => unless_complex_zero(z, complex::mul(z, complex::log(w)));
    /// See [`XLOG1PY`].
    COMPLEX_XLOG1PY = "tf_complex_xlog1py"(z, w) => unless_complex_zero(z, complex::mul(z, complex::log1p(w)));
    /// See [`RECIPROCAL_GRAD`].
    COMPLEX_RECIPROCAL_GRAD = "tf_complex_reciprocal_grad"(y, grad) => {
        let y = y.conjugate();
        complex::mul(complex::mul(grad, y), y).negated()
    };
    /// See [`SQRT_GRAD`].
    COMPLEX_SQRT_GRAD = "tf_complex_sqrt_grad"(y, grad) => {
        complex::div(grad.times(grad.re.like(0.5)), y.conjugate())
    };
    /// See [`RSQRT_GRAD`].
    COMPLEX_RSQRT_GRAD = "tf_complex_rsqrt_grad"(y, grad) => {
        let y = y.conjugate();
        complex::mul(complex::mul(grad.times(grad.re.like(-0.5)), y), complex::mul(y, y))
    };
    /// See [`TANH_GRAD`]. The caller has conjugated `y`.
    COMPLEX_TANH_GRAD = "tf_complex_tanh_grad"(y, grad) => {
        complex::mul(grad, complex::sub(y.like(1.0), complex::mul(y, y)))
    };
    /// See [`SIGMOID_GRAD`]. The caller has conjugated `y`.
    COMPLEX_SIGMOID_GRAD = "tf_complex_sigmoid_grad"(y, grad) => {
        complex::mul(grad, complex::mul(y, complex::sub(y.like(1.0), y)))
    };
    /// The real part.
    REAL = "tf_real"(z) => z.re;
    /// The imaginary part.
    IMAG = "tf_imag"(z) => z.im;
}
