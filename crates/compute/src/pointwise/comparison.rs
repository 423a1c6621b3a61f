//! Comparisons, logic and bit operations of two operands, minimum and maximum.

use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{Operand, Variant, run_variant};
use crate::view::View;
use dml_kernel::Value;
use dml_kernel::math::comparison as math;

/// The family of `eq`, and its body.
pub const EQUAL: (&str, for<'b> fn(Value<'b>, Value<'b>) -> Value<'b>) = ("eq", math::equal);

/// Writes where the elements of two tensors of one shape and dtype are equal, as `eq` does.
pub fn equal(cx: &Context, a: &View, b: &View, flags: &View) -> Result<()> {
    let (family, body) = EQUAL;
    let operands = [Operand::Tensor(a), Operand::Tensor(b)];
    run_variant(cx, family, Variant::One, &[flags], &operands, a.dtype, &|_, v| vec![body(v[0], v[1])])
}
