//! Reading through an index tensor with one index for each element.

use crate::context::Context;
use crate::error::Result;
use crate::indexing::arguments::without;
use crate::primitives::indexed_access::{self, Action, IndexIteration, Selector};
use crate::view::{Dims, View};

/// Reads, for each element of `index`, the element of `t` that it selects along `dim`, at the
/// index's own position in the other dimensions. `out` has the index's sizes. An index out of range
/// is reported.
pub fn gather(cx: &Context, t: &View, dim: usize, index: &View, out: &View) -> Result<()> {
    if index.numel() == 0 {
        return Ok(());
    }
    let selectors = [Selector { size: t.sizes[dim], stride: t.strides[dim], dim, index: index.clone() }];
    let strides = without(&t.strides, dim);
    let iteration =
        IndexIteration { sizes: &index.sizes, base: t, strides: &strides, selectors: &selectors, negative: false };
    indexed_access::run(cx, &iteration, &Action::Read(out))
}

/// Reads the elements of `t` (contiguous) with the row-major positions `index`, counted from the
/// end if negative. `out` has the index's sizes. An index out of range is reported.
pub fn take(cx: &Context, t: &View, index: &View, out: &View) -> Result<()> {
    let selectors = [Selector { index: index.clone(), size: t.numel(), stride: 1, dim: 0 }];
    let own = Dims::from_elem(0, index.dim());
    let iteration =
        IndexIteration { sizes: &index.sizes, base: t, strides: &own, selectors: &selectors, negative: true };
    indexed_access::run(cx, &iteration, &Action::Read(out))
}
