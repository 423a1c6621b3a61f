//! Reductions of complex tensors: norms are those of the magnitudes, variances the sums of the
//! parts' variances, and products are made by halves. Sums and means go by parts.

use crate::complex::copy::device_copy;
use crate::context::Context;
use crate::error::Result;
use crate::view::View;
use smallvec::SmallVec;

/// The strides of a result without the dimension that is kept with size 1.
pub fn squeezed(result: &View, keep: bool, along: usize, rank: usize) -> SmallVec<[i64; 6]> {
    let all = result.strides.iter().enumerate();
    let some: SmallVec<[i64; 6]> = all.filter(|&(d, _)| !(keep && d == along)).map(|(_, &s)| s).collect();
    some.into_iter().take(rank).collect()
}

/// A contiguous copy to compute in.
pub fn working_copy(cx: &Context, t: &View) -> Result<View> {
    let copy = cx.empty(t.dtype, &t.sizes)?;
    device_copy(cx, t, &copy)?;
    Ok(copy)
}
