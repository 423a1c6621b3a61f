//! Operands that are contiguous along k, and whose rows do not begin at whole loads: copied to
//! where they do.
//!
//! An odd k is that of a vocabulary: the gradient of a language model's last layer. Loads of single
//! elements take a third of such a product's time on an H100, and the copy less than a tenth.

use crate::context::Context;
use crate::error::Result;
use crate::matmul::dispatch::units_of_terms;
use crate::matmul::operand::{Source, unit};
use crate::movement::copy;
use crate::scalar::Scalar;
use crate::view::View;
use dml_kernel::DType;

/// Uses of every element from which on copying it costs clearly less than loading it alone as
/// often.
const USES: i64 = 512;

/// The shortest k for which that was measured to hold.
const SHORTEST: i64 = 512;

/// The operand of `batch` matrices of `outer x k` elements at these strides, of which a product
/// uses every element `uses` times and in this dtype.
pub fn source(
    cx: &Context,
    t: &View,
    [batch, outer, k]: [i64; 3],
    [apart, row, step]: [i64; 3],
    uses: i64,
    dtype: DType,
) -> Result<Source> {
    let apart = if batch == 1 { 0 } else { apart };
    let plain = Source::strided(t, [outer, k], [row, step], apart).rounded(dtype);
    // Single bytes are gathered even where four of them are loaded at a time.
    let whole = if t.dtype == DType::I8 { plain.is_in_units([outer, k]) } else { plain.access.wide };
    let worthwhile =
        (t.dtype.is_float() || t.dtype == DType::I8) && step == 1 && uses >= USES && outer >= USES && k >= SHORTEST;
    // Where float32 becomes terms, these are what begins at whole loads.
    if whole || !worthwhile || (dtype == DType::F32 && units_of_terms(cx, cx.environment.matmul_precision())?.is_some())
    {
        return Ok(plain);
    }
    let (count, length) = (if apart == 0 { 1 } else { batch }, (k as u64).next_multiple_of(unit(dtype).into()) as i64);
    // Without the memory for it the product is only slower.
    let Ok(copied) = cx.empty(dtype, &[count, outer, length]) else { return Ok(plain) };
    if length > k {
        copy::fill_with(cx, &copied.narrow(2, k, length - k), Scalar::Int(0))?;
    }
    copy::device_copy(cx, &t.as_strided(&[count, outer, k], &[apart, row, step], 0), &copied.narrow(2, 0, k))?;
    Ok(Source::padded(&copied, [outer, length], if count == 1 { 0 } else { outer * length }))
}
