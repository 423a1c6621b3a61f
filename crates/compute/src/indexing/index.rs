//! `x[indices]` and `x[indices] = values`, with integers, masks and `None`. (Slices are views that
//! PyTorch takes by itself.)

use crate::context::Context;
use crate::error::Result;
use crate::indexing::functions::INDEX_PUT;
use crate::movement::copy::{cast, device_copy, fill_with};
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

pub fn is_mask(t: &View) -> bool {
    matches!(t.dtype, DType::Bool | DType::U8)
}

/// No index tensor at all: the whole tensor is meant.
pub fn put_everywhere(cx: &Context, t: &View, values: &View, number: Option<Number>, accumulate: bool) -> Result<()> {
    if !accumulate {
        return match number {
            Some(x) => fill_with(cx, t, x),
            None => device_copy(cx, values, t),
        };
    }
    let values = match number {
        Some(x) => Input::Number(x, t.dtype),
        None => Input::Tensor(cast(cx, values, t.dtype)?),
    };
    let inputs = [Input::Tensor(t.clone()), values];
    kernel::run(cx, &INDEX_PUT, &[t], &inputs, t.dtype)
}
