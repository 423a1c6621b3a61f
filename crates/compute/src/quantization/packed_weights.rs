//! Products of floats with scaled weights of 8 or 4 bits.
//!
//! Few rows are multiplied by the packed weights directly; for more, weights are first dequantised
//! to the floats' dtype, for matrix units.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::gemv::MAX_ROWS;
use crate::matmul::operand::Source;
use crate::matmul::problem::Problem;
use crate::matmul::product::multiply_into;
use crate::movement::copy::cast;
use crate::pointwise::arithmetic::MUL;
use crate::pointwise::kernel::{self, Input};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::DType;

/// `out = (x @ w^T) * scales` of `x` (`[m, k]`), `w` (`[n, k]`, int8) and `scales` (`[n]`); `x` and
/// `w` are contiguous. Sums are scaled in float32, before they are rounded to the dtype of `out`
/// (`[m, n]`).
pub fn multiply_by_columns(cx: &Context, x: &View, w: &View, scales: &View, out: &View) -> Result<()> {
    let (m, n) = (x.sizes[0], w.sizes[0]);
    let sums = cx.empty(DType::F32, &[m, n])?;
    // A product with few columns exchanges its operands, and is then computed in the dtype of the
    // first: so both have to be floats.
    let as_it_lies = m <= MAX_ROWS && m <= n;
    let weights = if as_it_lies { w.clone() } else { cast(cx, w, x.dtype)? };
    multiply_rows(cx, x, &weights, None, &sums)?;
    let inputs = [Input::Tensor(sums), Input::Tensor(scales.clone())];
    kernel::run(cx, &MUL, &[out], &inputs, DType::F32)
}

/// `out = x @ w^T + bias` of `x` (`[m, k]`) and `w` (`[n, k]`), both contiguous, and a vector of
/// `n` numbers.
pub(super) fn multiply_rows(cx: &Context, x: &View, w: &View, bias: Option<&View>, out: &View) -> Result<()> {
    let ([m, k], n) = ([x.sizes[0], x.sizes[1]], w.sizes[0]);
    let addend = bias.map(|row| (row.expand(&[m, n]), Number::Int(1)));
    multiply_into(cx, out, [x, w], Number::Int(1), addend, k, |finish| {
        let a = Source::strided(x, [m, k], [k, 1], 0);
        let b = Source::strided(w, [n, k], [k, 1], 0);
        Ok(Problem { size: [1, m, n, k], a, b, finish })
    })?;
    Ok(())
}

/// Whether floats have at most 32 bits.
pub const fn is_narrow_or_single(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}
