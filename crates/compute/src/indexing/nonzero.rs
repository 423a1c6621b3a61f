//! Positions of nonzero elements. Their number is read back, since it is a size.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::mask::{Count, MaskAction};
use crate::view::{Dims, View};
use dml_kernel::DType;

/// Column-major, as on the CPU.
pub fn strides(count: i64) -> Dims {
    Dims::from_slice(&[1, count])
}

/// Returns the coordinates of all nonzero elements, `[count, rank]`, in row-major order. Waits for
/// the count.
pub fn coordinates(cx: &Context, mask: &View) -> Result<View> {
    if mask.numel() == 0 {
        return cx.empty_strided(DType::I64, &[0, mask.dim() as i64], &strides(0));
    }
    let count = Count::new(cx, mask)?;
    let total = count.total(cx)?;
    let out = cx.empty_strided(DType::I64, &[total, mask.dim() as i64], &strides(total))?;
    write_coordinates(cx, &count, &out)?;
    Ok(out)
}

/// Writes the coordinates of the elements selected by a mask, in row-major order:
/// `[count, dimensions of the mask]`, int64, of any strides.
pub fn write_coordinates(cx: &Context, count: &Count, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    count.apply(cx, MaskAction::Coordinates { out }, out.sizes[0])
}
