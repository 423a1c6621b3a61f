//! Operands that are contiguous along k, but whose rows are not aligned to vector loads: they are
//! copied so that rows are aligned.
//!
//! An odd k is for example the size of a vocabulary, in the gradient of a language model's last
//! layer. Loads of single elements take a third of such a product's time on an H100, and the copy
//! less than a tenth.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::dispatch::matrix_units_of_terms;
use crate::matmul::operand::{Source, vector_width};
use crate::movement::copy;
use crate::scalar::Scalar;
use crate::view::View;
use dml_kernel::DType;

/// Minimum number of uses of every element for which the copy costs clearly less than that many
/// loads of single elements.
const MIN_REUSE: i64 = 512;

/// The shortest k for which that was measured.
const MIN_K: i64 = 512;

/// The operand of `batch` matrices of `outer x k` elements with these strides, for a product that
/// uses every element `uses` times and in this dtype. It is a padded copy if that is faster.
pub fn source(
    cx: &Context,
    t: &View,
    [batch, outer, k]: [i64; 3],
    [apart, row, step]: [i64; 3],
    uses: i64,
    dtype: DType,
) -> Result<Source> {
    let apart = if batch == 1 { 0 } else { apart };
    let plain = Source::strided(t, [outer, k], [row, step], apart).with_rounding(dtype);
    // Vectors of four bytes are still gathered as single bytes.
    let whole = if t.dtype == DType::I8 { plain.has_vector_loads([outer, k]) } else { plain.access.wide };
    let worthwhile = (t.dtype.is_float() || t.dtype == DType::I8)
        && step == 1
        && uses >= MIN_REUSE
        && outer >= MIN_REUSE
        && k >= MIN_K;
    // If float32 is split into terms, the terms are written with aligned rows anyway.
    if whole
        || !worthwhile
        || (dtype == DType::F32 && matrix_units_of_terms(cx, cx.environment.policy().matmul_precision())?.is_some())
    {
        return Ok(plain);
    }
    let (count, length) =
        (if apart == 0 { 1 } else { batch }, (k as u64).next_multiple_of(vector_width(dtype).into()) as i64);
    // If memory for the copy is not available, the product is only slower.
    let Ok(copied) = cx.empty(dtype, &[count, outer, length]) else { return Ok(plain) };
    if length > k {
        copy::fill_with(cx, &copied.narrow(2, k, length - k), Scalar::Int(0))?;
    }
    copy::device_copy(cx, &t.as_strided(&[count, outer, k], &[apart, row, step], 0), &copied.narrow(2, 0, k))?;
    Ok(Source::padded(&copied, [outer, length], if count == 1 { 0 } else { outer * length }))
}
