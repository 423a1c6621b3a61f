//! Reductions of complex tensors. Norms are computed from magnitudes, variances as the sum of the
//! parts' variances, and products by halves. Sums and means are computed by parts.

use crate::complex::copy::device_copy;
use crate::context::Context;
use crate::error::Result;
use crate::view::View;
use smallvec::SmallVec;

/// The strides of a result without the reduced dimension, which it has, with size 1, if `keep` is
/// set.
pub fn squeezed(result: &View, keep: bool, along: usize, rank: usize) -> SmallVec<[i64; 6]> {
    let all = result.strides.iter().enumerate();
    let some: SmallVec<[i64; 6]> = all.filter(|&(d, _)| !(keep && d == along)).map(|(_, &s)| s).collect();
    some.into_iter().take(rank).collect()
}

/// A contiguous copy, which may be overwritten.
pub fn working_copy(cx: &Context, t: &View) -> Result<View> {
    let copy = cx.empty(t.dtype, &t.sizes)?;
    device_copy(cx, t, &copy)?;
    Ok(copy)
}
