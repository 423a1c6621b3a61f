//! softmax over the elements that a mask leaves.

use crate::attention::functions::MASKED;
use crate::context::Context;
use crate::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar as Number;
use crate::view::View;

/// Returns a new contiguous tensor: `value` where the mask is true, `x` elsewhere.
pub fn masked(cx: &Context, x: &View, mask: &View, value: f64) -> Result<View> {
    let out = cx.empty(x.dtype, &x.sizes)?;
    let inputs = [Input::Tensor(x.clone()), Input::Tensor(mask.clone()), Input::Number(Number::Double(value), x.dtype)];
    kernel::run(cx, &MASKED, &[&out], &inputs, x.dtype)?;
    Ok(out)
}
