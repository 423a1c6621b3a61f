//! Products of tensors: their result, what is added to them, and the `Problem` that they are.

use crate::context::Context;
use crate::scalar::Scalar;
use crate::view::{Dims, View};
use dml_kernel::DType;

/// The dtype in which an operand is multiplied: its own, or what autocast has float32 rounded to.
pub fn multiplied_in(cx: &Context, operand: &View) -> DType {
    let rounded = (operand.dtype == DType::F32).then(|| cx.environment.product_dtype()).flatten();
    rounded.unwrap_or(operand.dtype)
}

/// What is added to a product: `alpha * a @ b + beta * tensor`.
#[derive(Copy, Clone, Debug)]
pub struct Added<'t> {
    /// It broadcasts to the result's shape.
    pub tensor: &'t View,
    /// Its factor. What 0 would multiply is not read.
    pub beta: Scalar,
    /// The product's factor.
    pub alpha: Scalar,
}

/// What is added to a product, expanded to its shape, and its factor.
pub type Addend = Option<(View, Scalar)>;

/// Whether a factor is 0 in this dtype: what it would multiply is then not read, and its NaNs not
/// seen.
pub fn is_zero(dtype: DType, factor: Scalar) -> bool {
    if dtype.is_integer() { factor.to_i64() == 0 } else { factor.to_f64() == 0.0 }
}

/// Sizes or strides of the last three dimensions, with `fill` for those that are missing.
pub fn last<const N: usize>(dims: &Dims, fill: i64) -> [i64; N] {
    std::array::from_fn(|i| (dims.len() + i).checked_sub(N).map_or(fill, |d| dims[d]))
}
