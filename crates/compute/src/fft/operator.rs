//! The transforms that PyTorch asks of a device. Strides of results are those of the CPU's.

use crate::context::Context;
use crate::error::Result;
use crate::fft::lines::{Lines, Load, Store};
use crate::view::{Dims, View};
use smallvec::SmallVec;

pub type Axes = SmallVec<[usize; 6]>;

/// Transforms along every one of these dimensions, the last first, and scales the results. `from`
/// may be `to`.
pub fn along_each(cx: &Context, from: &View, to: &View, axes: &[usize], inverse: bool, scale: f64) -> Result<()> {
    for (i, &dim) in axes.iter().enumerate().rev() {
        let source = if i + 1 == axes.len() { from } else { to };
        let lines = Lines::along(dim, to.sizes[dim], (source, Load::Complex), (to, Store::Complex));
        Lines { inverse, scale: if i == 0 { scale } else { 1.0 }, ..lines }.transform(cx)?;
    }
    Ok(())
}

/// The first `count` dimensions by their strides, the widest first; then the others.
pub fn sorted(axes: &[usize], strides: &[i64], count: usize) -> Axes {
    let mut axes = Axes::from_slice(axes);
    axes[..count].sort_by_key(|&d| std::cmp::Reverse(strides[d]));
    axes
}

/// How the CPU lays out results of these sizes: densely, the transformed dimensions innermost, the
/// others in the order of the input's strides.
pub fn strides(t: &View, axes: &[usize], sizes: &[i64]) -> Dims {
    let others: Axes = (0..t.dim()).filter(|d| !axes.contains(d)).collect();
    let outer = sorted(&others, &t.strides, others.len());
    let mut strides = Dims::from_elem(0, t.dim());
    let mut step = 1;
    for &d in outer.iter().chain(axes).rev() {
        strides[d] = step;
        step *= sizes[d];
    }
    strides
}
