//! Addition, subtraction and multiplication of tensors.

use crate::functions;
use crate::pointwise::complex;
use crate::pointwise::rule::Rule;
use crate::pointwise::unary::negated;
use dml_kernel::{Value, math};

/// A sum; of bools, their disjunction.
pub fn sum<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    if x.scalar() == dml_kernel::ScalarType::Bool { x | y } else { x + y }
}

/// A product; of bools, their conjunction.
pub fn product<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    if x.scalar() == dml_kernel::ScalarType::Bool { x & y } else { x * y }
}

/// [`product`] that other arithmetic goes on with: of floats it is not 0 where an adapter flushes
/// subnormal numbers.
pub fn exact_product<'b>(x: Value<'b>, y: Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { math::mul(x, y) } else { product(x, y) }
}

/// `x * y + c`; the product may be beyond the range where the sum is not. Of integers modulo their
/// width, of bools logic.
pub fn multiply_add<'b>(x: Value<'b>, y: Value<'b>, c: Value<'b>) -> Value<'b> {
    let product = exact_product(x, y);
    let plain = sum(c, product);
    if !x.scalar().is_float() {
        return plain;
    }
    // A quarter of both then, of which the product is no infinity that could meet another one.
    let quarter = x * 0.25 * y;
    let bounded = quarter.is_inf().select((!c.is_finite()).select(c, quarter), c * 0.25 + quarter);
    let sum = (product.is_inf() & !x.is_inf() & !y.is_inf()).select(4.0 * bounded, plain);
    // A product that vanishes still has a sign.
    (product.is_zero() & c.is_zero() & !x.is_zero() & !y.is_zero()).select(product, sum)
}

functions! {
    /// `x + y`; of bools, their disjunction.
    ADD = "add"(x, y).of_complex(&complex::ADD) => sum(x, y);
    /// `x + alpha * y`
    ADD_ALPHA = "add_alpha"(x, y, alpha).of_complex(&complex::ADD_ALPHA) => multiply_add(y, alpha, x);
    /// `x + alpha * y` of a list of tensors and one tensor of one element.
    FOREACH_ADD_TENSOR = "foreach_add_tensor"(x, y, alpha) => multiply_add(y, alpha, x);
    /// `x - y`
    SUB = "sub"(x, y).of_complex(&complex::SUB) => x - y;
    /// `x - alpha * y`
    SUB_ALPHA = "sub_alpha"(x, y, alpha).of_complex(&complex::SUB_ALPHA) => multiply_add(y, negated(alpha), x);
    /// `y - alpha * x`, of `y` and `x`.
    RSUB = "rsub"(y, x, alpha).rule(Rule::Exact) => multiply_add(x, negated(alpha), y);
    /// `x * y`; of bools, their conjunction.
    MUL = "mul"(x, y).of_complex(&complex::MUL) => product(x, y);
    /// `x * y` of floats; the result of a matrix product times a number.
    SCALE = "scale"(x, factor) => x * factor;
    /// `(x + bias) * factor`
    ADD_SCALE = "add_scale"(x, bias, factor) => (x + bias) * factor;
    /// `beta * t + alpha * x * y`
    ADDR = "addr"(t, x, y, beta, alpha).of_complex(&complex::ADDR) => {
        sum(product(beta, t), exact_product(exact_product(alpha, x), y))
    };
    /// [`ADDR`] where beta is 0.
    ADDR_0 = "addr_0"(x, y, _beta, alpha) => exact_product(exact_product(alpha, x), y);
    /// The element itself.
    IDENTITY = "identity"(x) => x;
}
