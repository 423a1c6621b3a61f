//! The cross product of vectors of three elements along a dimension.

use crate::context::Context;
use crate::error::Result;
use crate::linear_algebra::functions::CROSS;
use crate::movement::copy::device_copy;
use crate::pointwise::kernel::{self, Input};
use crate::view::View;
use crate::view::overlap::ranges_overlap;
use smallvec::SmallVec;

/// Writes the cross products of `x` and `y`, which broadcast to `out` and have its dtype; `dim` has
/// length 3 in each. `out` may overlap them.
pub fn cross(cx: &Context, x: &View, y: &View, dim: usize, out: &View) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let apart =
        if ranges_overlap(out, x) || ranges_overlap(out, y) { Some(cx.empty(out.dtype, &out.sizes)?) } else { None };
    let target = apart.as_ref().unwrap_or(out);
    let parts = |t: &View| [0, 1, 2].map(|i| t.narrow(dim, i, 1));
    let outs = parts(target);
    let operands = [parts(&x.expand(&out.sizes)), parts(&y.expand(&out.sizes))];
    let inputs: SmallVec<[Input; 6]> = operands.into_iter().flatten().map(Input::Tensor).collect();
    kernel::run(cx, &CROSS, &outs.each_ref(), &inputs, out.dtype)?;
    apart.map_or(Ok(()), |result| device_copy(cx, &result, out))
}
