//! Which order of memory a convolution multiplies in: the one its tensors have, or channels last by
//! way of copies.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::error::Result;
use crate::matmul::operand::{UNIT, WIDE};
use crate::matmul::self_test::usable;
use crate::view::View;
use dml_engine::AdapterKind;
use dml_kernel::DType;

/// Whether channels are the fastest in memory.
pub fn is_last(t: &View) -> bool {
    t.strides[1] == 1 && t.strides[t.dim() - 1] != 1
}

/// Multiplications from which the copies, two launches, are worth their while on a GPU.
const LARGE: i64 = 1 << 26;

/// Whether operands of `dtype` whose channels are not the fastest in memory are first copied so
/// that they are.
///
/// A window's elements lie apart in memory where pixels are the fastest, and every one is found and
/// loaded by itself. Where channels are, a load takes several of them, and a step along k keeps to
/// one place of the window. Windows of one pixel need no copy if loads of several pixels fit.
pub fn by_channels(cx: &Context, g: &Geometry, dtype: DType) -> Result<bool> {
    let software = cx.device.info().kind == AdapterKind::Software;
    let wide = match usable(cx, dtype)? {
        Some(_) => i64::from(UNIT),
        None if dtype == DType::F32 && !software => i64::from(WIDE),
        None => return Ok(false),
    };
    let pixels: i64 = g.outer.1.iter().product();
    let taps: i64 = g.kernel.iter().product();
    let products = [g.inner.0, g.outer.0, taps, pixels].into_iter().fold(g.batch, i64::saturating_mul);
    let whole = |n: i64| n % wide == 0;
    Ok(g.groups == 1
        && whole(g.inner.0)
        && whole(g.outer.0)
        && (software || products >= LARGE)
        && !(g.is_pointwise() && whole(pixels)))
}
