//! Transforms along several dimensions.

use crate::context::Context;
use crate::error::Result;
use crate::fft::lines::{Lines, Load, Store};
use crate::view::{Dims, View};
use smallvec::SmallVec;

/// The transformed dimensions.
pub type Axes = SmallVec<[usize; 6]>;

/// Transforms along every one of these dimensions, the last first, and scales the results. `from`
/// may be `to`.
pub fn transform_axes(cx: &Context, from: &View, to: &View, axes: &[usize], inverse: bool, scale: f64) -> Result<()> {
    for (i, &dim) in axes.iter().enumerate().rev() {
        let source = if i + 1 == axes.len() { from } else { to };
        let lines = Lines::along(dim, to.sizes[dim], (source, Load::Complex), (to, Store::Complex));
        Lines { inverse, scale: if i == 0 { scale } else { 1.0 }, ..lines }.transform(cx)?;
    }
    Ok(())
}

/// Transforms real numbers along `axes`, the last of which becomes complex: half of it if
/// `onesided`, or all of it. Scales the results.
pub fn real_to_complex(cx: &Context, t: &View, out: &View, axes: &[usize], onesided: bool, scale: f64) -> Result<()> {
    let Some((&last, others)) = axes.split_last() else { return Ok(()) };
    let store = if onesided { Store::HalfSpectrum } else { Store::FullSpectrum };
    let lines = Lines::along(last, t.sizes[last], (t, Load::Real), (out, store));
    Lines { scale: if others.is_empty() { scale } else { 1.0 }, ..lines }.transform(cx)?;
    transform_axes(cx, out, out, others, false, scale)
}

/// Transforms half a spectrum along `others` and then `last`, back to real numbers, and scales
/// them.
pub fn complex_to_real(
    cx: &Context,
    t: &View,
    out: &View,
    (others, last): (&[usize], usize),
    scale: f64,
) -> Result<()> {
    let inner = if others.is_empty() {
        None
    } else {
        let inner = cx.empty_strided(t.dtype, &t.sizes, &strides(&t.sizes, &t.strides, others))?;
        transform_axes(cx, t, &inner, others, true, 1.0)?;
        Some(inner)
    };
    let spectrum = inner.as_ref().unwrap_or(t);
    let lines = Lines::along(last, out.sizes[last], (spectrum, Load::HalfSpectrum), (out, Store::Real));
    Lines { inverse: true, scale, ..lines }.transform(cx)
}

/// Sorts the first `count` dimensions by stride, the largest first; the others follow.
pub fn sorted(axes: &[usize], strides: &[i64], count: usize) -> Axes {
    let mut axes = Axes::from_slice(axes);
    axes[..count].sort_by_key(|&d| std::cmp::Reverse(strides[d]));
    axes
}

/// Strides of results with these sizes for operands with these strides: dense, with the transformed
/// dimensions innermost and the others in the order of the operand's strides.
pub fn strides(sizes: &[i64], operand: &[i64], axes: &[usize]) -> Dims {
    let others: Axes = (0..sizes.len()).filter(|d| !axes.contains(d)).collect();
    let outer = sorted(&others, operand, others.len());
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut step = 1;
    for &d in outer.iter().chain(axes).rev() {
        strides[d] = step;
        step *= sizes[d];
    }
    strides
}
