//! Comparisons, logic and bit operations of two operands, minimum and maximum.

use crate::context::Context;
use crate::error::Result;
use crate::functions;
use crate::pointwise::complex;
use crate::pointwise::kernel::{Operand, run_operands};
use crate::pointwise::rule::Rule;
use crate::view::View;
use dml_kernel::ScalarType::Bool;
use dml_kernel::math::comparison::{equal as same, less, less_equal, maximum, minimum};

functions! {
    /// `x == y`
    EQ = "eq"(x, y).rule(Rule::Bool).of_complex(&complex::EQ) => same(x, y);
    /// `x != y`
    NE = "ne"(x, y).rule(Rule::Bool).of_complex(&complex::NE) => !same(x, y);
    /// `x < y`
    LT = "lt"(x, y).rule(Rule::Bool) => less(x, y);
    /// `x <= y`
    LE = "le"(x, y).rule(Rule::Bool) => less_equal(x, y);
    /// `x > y`
    GT = "gt"(x, y).rule(Rule::Bool) => less(y, x);
    /// `x >= y`
    GE = "ge"(x, y).rule(Rule::Bool) => less_equal(y, x);
    /// Whether both are not 0.
    LOGICAL_AND = "logical_and"(x, y).rule(Rule::Bool).of_complex(&complex::LOGICAL_AND) => x.cast(Bool) & y.cast(Bool);
    /// Whether one is not 0.
    LOGICAL_OR = "logical_or"(x, y).rule(Rule::Bool).of_complex(&complex::LOGICAL_OR) => x.cast(Bool) | y.cast(Bool);
    /// Whether one of the two alone is not 0.
    LOGICAL_XOR = "logical_xor"(x, y).rule(Rule::Bool).of_complex(&complex::LOGICAL_XOR) => x.cast(Bool) ^ y.cast(Bool);
    /// `x & y`
    BITWISE_AND = "bitwise_and"(x, y).integers() => x & y;
    /// `x | y`
    BITWISE_OR = "bitwise_or"(x, y).integers() => x | y;
    /// `x ^ y`
    BITWISE_XOR = "bitwise_xor"(x, y).integers() => x ^ y;
    /// The larger one; NaN if one is.
    MAXIMUM = "maximum"(x, y) => maximum(x, y);
    /// The smaller one; NaN if one is.
    MINIMUM = "minimum"(x, y) => minimum(x, y);
    /// The larger one; NaN if both are.
    FMAX = "fmax"(x, y) => x.is_nan().select(y, y.is_nan().select(x, maximum(x, y)));
    /// The smaller one; NaN if both are.
    FMIN = "fmin"(x, y) => x.is_nan().select(y, y.is_nan().select(x, minimum(x, y)));
}

/// Writes where the elements of two tensors of one shape and dtype are equal, as `eq` does.
pub fn equal(cx: &Context, a: &View, b: &View, flags: &View) -> Result<()> {
    let operands = [Operand::Tensor(a), Operand::Tensor(b)];
    run_operands(cx, (&EQ).into(), &[flags], &operands, a.dtype)
}
