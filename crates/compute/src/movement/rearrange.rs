//! Elements in another order: flip, roll, channel_shuffle, repeat_interleave; the gradient of
//! unfold.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::multi_copy::{self, Region};
use crate::view::View;
use crate::view::layout::{self, LayoutSpec, Walked};
use dml_engine::interface::{Index, U32, U64};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The tensor to return: of `t`'s sizes, and of its strides if it is dense.
pub fn like(cx: &Context, t: &View) -> Result<View> {
    cx.empty_strided(t.dtype, &t.sizes, &layout::preserved_strides(t))
}

/// Copies `src` to `dst` rotated: each dimension splits what is to be copied in two.
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

/// The last index that begins at or before each place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repeat {
    pub dtype: DType,
    /// Whether the repeats are looked at.
    pub checked: bool,
}

parameters! {
    pub Repeat as s => RepeatArguments, RepeatParameters {
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
            let place = i.cast(ScalarType::I64);
            let (low, high) = (b.var(b.u32(0)), b.var(n));
            b.while_(
                || (low.get() + 1).lt(high.get()),
                || {
                    let middle = (low.get() + high.get()) >> 1;
                    let before = starts.load(middle).le(place);
                    low.set(before.select(middle, low.get()));
                    high.set(before.select(high.get(), middle));
                },
            );
            out.store(i, low.get());
        });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnfoldBackward {
    pub dtype: DType,
    /// Of the result, of the gradient but for its windows, and of places along the dimension.
    pub layout: LayoutSpec,
}

parameters! {
    pub UnfoldBackward as s => UnfoldArguments, UnfoldParameters {
        out: Output = s.dtype,
        grad: Input = s.dtype,
        n: Index = s.layout.index,
        windows: Index = s.layout.index,
        /// Elements of a window.
        size: Index = s.layout.index,
        /// From one window to the next, in elements of the result.
        step: Index = s.layout.index,
        /// From one window to the next in the gradient.
        window_stride: Index = s.layout.index,
        /// Within a window of the gradient.
        stride: Index = s.layout.index,
        layout: Walked = s.layout,
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
            let place = at[2];
            // Window w shows the places from w * step to w * step + size - 1.
            let first = b.var(b.int(index, 0));
            b.if_(place.ge(p.size), || first.set((place - p.size) / p.step + 1));
            let end = (place / p.step + 1).min(p.windows);
            let scalar = if self.dtype == DType::Bool { ScalarType::I32 } else { self.dtype.compute() };
            let sum = b.var(b.constant_of(scalar, 0.0));
            b.for_(first.get(), end, 1, |w| {
                let from = at[1] + w * p.window_stride + (place - w * p.step) * p.stride;
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
