//! Rotation and repetition of elements, and sums over overlapping windows.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::multi_copy::{self, Region};
use crate::view::layout::{self, Layout, LayoutParameter, LayoutSpec};
use crate::view::{Dims, View};
use dml_engine::interface::{Index, U32, U64};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Allocates a result of `t`'s sizes, and of its strides if it is dense.
pub fn like(cx: &Context, t: &View) -> Result<View> {
    cx.empty_strided(t.dtype, &t.sizes, &layout::preserved_strides(t))
}

/// Copies `src` to `dst` rotated: the copy is divided in two along each rotated dimension.
pub fn rotate(cx: &Context, src: View, dst: View, shifts: &[(usize, i64)]) -> Result<()> {
    let dtype = src.dtype;
    let mut parts = vec![(src, dst)];
    for &(d, shift) in shifts {
        parts = parts
            .into_iter()
            .flat_map(|(src, dst)| {
                let n = src.sizes[d];
                let shift = shift.rem_euclid(n.max(1));
                [
                    (src.narrow(d, 0, n - shift), dst.narrow(d, shift, n - shift)),
                    (src.narrow(d, n - shift, shift), dst.narrow(d, 0, shift)),
                ]
            })
            .filter(|(src, _)| src.numel() > 0)
            .collect();
    }
    let parts: Vec<Region> = parts.into_iter().map(|(src, dst)| Region::whole(dst, src)).collect();
    multi_copy::copy(cx, dtype, &parts)
}

/// Writes, for each element of `out` (`[total]`, int32 or int64, contiguous), the last index that
/// begins at or before it. `starts` are `[n + 1]`, int64, contiguous: the start of each index, and
/// the total. With `refusals` the kernel reports a negative number of repeats with the first error,
/// and a total other than the size of `out` with the second.
pub fn repeat(cx: &Context, starts: &View, refusals: Option<[&'static str; 2]>, out: &View) -> Result<()> {
    let (total, n) = (out.numel(), starts.numel() - 1);
    let threads = if refusals.is_some() { total.max(n) } else { total } as u64;
    if threads == 0 {
        return Ok(());
    }
    let [negative, other_size] = match refusals {
        Some(refusals) => refusals.map(|message| Some(cx.fault_of_value(message))),
        None => [None; 2],
    };
    let arguments = RepeatArguments { out, starts, total: total as u64, n: n as u32, negative, other_size };
    cx.run_threads(&Repeat { dtype: out.dtype, checked: refusals.is_some() }, &arguments, threads)
}

/// Writes to each element of `out` the sum of `grad` over the windows of `size` elements along
/// `dim` that contain it, one window every `step` elements. `grad` has the windows in place of
/// dimension `dim`, and the elements of a window as a last dimension; its strides may be any. `out`
/// has at least one dimension and is not empty.
pub fn unfold_backward(cx: &Context, grad: &View, dim: usize, size: i64, step: i64, out: &View) -> Result<()> {
    let rank = out.dim();
    let along = |d: usize| i64::from(d == dim);
    let positions: Dims = (0..rank).map(along).collect();
    let rest: Dims = (0..rank).map(|d| if d == dim { 0 } else { grad.strides[d] }).collect();
    let mut layout = Layout::row_major(&out.sizes, &[&out.strides, &rest, &positions]);
    if grad.range().end - grad.range().start >= layout::MAX_INDEX_32 as u64 {
        layout.index = ScalarType::U64;
    }
    let spec = UnfoldBackward { dtype: grad.dtype, layout: layout.spec() };
    let arguments = UnfoldArguments {
        out,
        grad,
        n: out.numel(),
        windows: grad.sizes[dim],
        size,
        step,
        window_stride: grad.strides[dim],
        stride: grad.strides[rank],
        layout: &layout,
    };
    cx.run_threads(&spec, &arguments, out.numel() as u64)
}

/// Writes the last index that begins at or before each position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Repeat {
    dtype: DType,
    /// Whether the repeats are checked.
    checked: bool,
}

parameters! {
    Repeat as s => RepeatArguments, RepeatParameters {
        out: Output = s.dtype,
        starts: Input = DType::I64,
        total: U64,
        n: U32,
        negative: Option<Fault> = s.checked.then_some(()),
        other_size: Option<Fault> = s.checked.then_some(()),
    }
}

impl KernelSpec for Repeat {
    fn name(&self) -> &'static str {
        "repeat_interleave"
    }

    fn write<'b>(&self, b: &'b Builder, p: RepeatParameters<'b>) {
        let RepeatParameters { out, starts, total, n, negative, other_size } = p;
        let i = linear_id(b, ScalarType::U64);
        if let (Some(negative), Some(other_size)) = (negative, other_size) {
            b.if_(i.lt(n.cast(ScalarType::U64)), || {
                b.if_(starts.load(i + 1).lt(starts.load(i)), || negative.report_value());
            });
            b.if_(i.eq(0) & starts.load(n).ne(total.cast(ScalarType::I64)), || other_size.report_value());
        }
        b.if_(i.lt(total), || {
            let position = i.cast(ScalarType::I64);
            let (low, high) = (b.var(b.u32(0)), b.var(n));
            b.while_(
                || (low.get() + 1).lt(high.get()),
                || {
                    let middle = (low.get() + high.get()) >> 1;
                    let before = starts.load(middle).le(position);
                    low.set(before.select(middle, low.get()));
                    high.set(before.select(high.get(), middle));
                },
            );
            out.store(i, low.get());
        });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UnfoldBackward {
    dtype: DType,
    /// Layout of the result, of the gradient without its windows, and of positions along the
    /// dimension.
    layout: LayoutSpec,
}

parameters! {
    UnfoldBackward as s => UnfoldArguments, UnfoldParameters {
        out: Output = s.dtype,
        grad: Input = s.dtype,
        n: Index = s.layout.index,
        windows: Index = s.layout.index,
        /// Number of elements of a window.
        size: Index = s.layout.index,
        /// Distance between windows, in elements of the result.
        step: Index = s.layout.index,
        /// Stride between windows in the gradient.
        window_stride: Index = s.layout.index,
        /// Stride within a window of the gradient.
        stride: Index = s.layout.index,
        layout: LayoutParameter = s.layout,
    }
}

impl KernelSpec for UnfoldBackward {
    fn name(&self) -> &'static str {
        "unfold_backward"
    }

    fn write<'b>(&self, b: &'b Builder, p: UnfoldParameters<'b>) {
        let index = self.layout.index;
        let i = linear_id(b, index);
        b.if_(i.lt(p.n), || {
            let at = p.layout.offsets(b, i);
            let position = at[2];
            // Window w contains the positions from w * step to w * step + size - 1.
            let first = b.var(b.int(index, 0));
            b.if_(position.ge(p.size), || first.set((position - p.size) / p.step + 1));
            let end = (position / p.step + 1).min(p.windows);
            let scalar = if self.dtype == DType::Bool { ScalarType::I32 } else { self.dtype.compute() };
            let sum = b.var(b.constant_of(scalar, 0.0));
            b.for_(first.get(), end, 1, |w| {
                let from = at[1] + w * p.window_stride + (position - w * p.step) * p.stride;
                sum.set(sum.get() + p.grad.load(from).cast(scalar));
            });
            p.out.store(at[0], sum.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        accepted(&Repeat { dtype: DType::I32, checked: false }.build());
        accepted(&Repeat { dtype: DType::I64, checked: true }.build());
        for (dtype, rank, index) in [(DType::BF16, 3, ScalarType::U32), (DType::F64, 1, ScalarType::U64)] {
            accepted(&UnfoldBackward { dtype, layout: LayoutSpec { rank, operands: 3, index } }.build());
        }
    }
}
