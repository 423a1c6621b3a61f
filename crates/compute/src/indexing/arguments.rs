//! What the operators of this folder do with their arguments.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::fill_with;
use crate::scalar::Scalar as Number;
use crate::view::{Dims, View};
use dml_kernel::DType;

/// Whether a kernel finds places through this dtype.
pub fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64)
}

/// A 0-dim tensor that holds a number.
pub fn number_tensor(cx: &Context, dtype: DType, x: Number) -> Result<View> {
    let t = cx.empty(dtype, &[])?;
    fill_with(cx, &t, x)?;
    Ok(t)
}

/// A 0-dim tensor as a row of one.
pub fn at_least_1d(t: &View) -> View {
    if t.dim() == 0 { t.as_strided(&[1], &[1], 0) } else { t.clone() }
}

/// The operator's name without its namespace and overload.
pub fn short(cx: &Context) -> &'static str {
    let name = cx.name.strip_prefix("aten::").unwrap_or(cx.name);
    name.split('.').next().unwrap_or(name)
}

/// Strides with those along `dim` left to an index tensor.
pub fn without(strides: &[i64], dim: usize) -> Dims {
    strides.iter().enumerate().map(|(d, &s)| if d == dim { 0 } else { s }).collect()
}
