//! The memory order in which a convolution is computed: its tensors' order, or channels last after
//! a copy.

use crate::context::Context;
use crate::convolution::geometry::Geometry;
use crate::error::Result;
use crate::matmul::operand::{VECTOR, VECTOR_16_BIT};
use crate::matmul::self_test::usable_units;
use crate::view::View;
use dml_engine::AdapterKind;
use dml_kernel::DType;

/// Whether channels are the innermost dimension in memory.
pub fn is_last(t: &View) -> bool {
    t.strides[1] == 1 && t.strides[t.dim() - 1] != 1
}

/// Minimum number of multiplications on a GPU for which the copies, two launches, pay off.
const MIN_MULTIPLICATIONS: i64 = 1 << 26;

/// Whether operands of `dtype` in channels-first order are first copied to channels-last order.
///
/// In channels-first order the elements of a window are not adjacent, and the address of each is
/// computed separately. In channels-last order a load takes several channels, and a step along k
/// stays at one tap of the window. Windows of one pixel need no copy if loads of several pixels are
/// possible.
pub fn by_channels(cx: &Context, g: &Geometry, dtype: DType) -> Result<bool> {
    let software = cx.device.info().kind == AdapterKind::Software;
    let wide = match usable_units(cx, dtype)? {
        Some(_) => i64::from(VECTOR_16_BIT),
        None if dtype == DType::F32 && !software => i64::from(VECTOR),
        None => return Ok(false),
    };
    let pixels: i64 = g.outer.1.iter().product();
    let taps: i64 = g.kernel.iter().product();
    let products = [g.inner.0, g.outer.0, taps, pixels].into_iter().fold(g.batch, i64::saturating_mul);
    let whole = |n: i64| n % wide == 0;
    Ok(g.groups == 1
        && whole(g.inner.0)
        && whole(g.outer.0)
        && (software || products >= MIN_MULTIPLICATIONS)
        && !(g.is_pointwise() && whole(pixels)))
}
