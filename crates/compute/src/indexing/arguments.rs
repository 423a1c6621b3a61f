//! Helpers for the arguments of this folder's operators.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::scalar::Scalar as Number;
use crate::view::{Dims, View};
use dml_kernel::DType;

/// Whether kernels accept indices of this dtype.
pub fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64)
}

/// Returns a 0-dim tensor with a number.
pub fn number_tensor(cx: &Context, dtype: DType, x: Number) -> Result<View> {
    let t = cx.empty(dtype, &[])?;
    fill_with(cx, &t, x)?;
    Ok(t)
}

/// Returns a 0-dim tensor as a vector of one element, others unchanged.
pub fn at_least_1d(t: &View) -> View {
    if t.dim() == 0 { t.as_strided(&[1], &[1], 0) } else { t.clone() }
}

/// Strides, with 0 along `dim`, whose offset an index tensor gives.
pub fn without(strides: &[i64], dim: usize) -> Dims {
    strides.iter().enumerate().map(|(d, &s)| if d == dim { 0 } else { s }).collect()
}
