//! The set elements of a mask: counting them, and actions on them in order.
//!
//! Each workgroup counts the set elements of its block, a scan adds up the counts, and each
//! workgroup processes its set elements with the scanned count as their first index.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::view::layout::{Layout, LayoutParameter, LayoutParams, LayoutSpec};
use crate::view::{Dims, View};
use dml_engine::interface::{I64, ReadRange, U32, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::{GROUP, linear_id};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Adjacent elements of one invocation.
const ELEMENTS_PER_INVOCATION: u32 = 8;

/// The set elements of a mask, counted by block.
pub struct Count<'t> {
    mask: &'t View,
    blocks: u64,
    /// Number of set elements before each block, and in total.
    before: View,
}

impl<'t> Count<'t> {
    /// Counts the set elements of `mask`.
    pub fn new(cx: &Context, mask: &'t View) -> Result<Count<'t>> {
        let n = mask.numel();
        check!(n < i64::from(i32::MAX), TooLarge, "{}: a mask of {n} elements is too large for dml", cx.name);
        let blocks = (n as u64).div_ceil(u64::from(GROUP * ELEMENTS_PER_INVOCATION));
        let before = cx.empty(DType::U32, &[blocks as i64 + 1])?;
        let layout = Layout::row_major(&mask.sizes, &[&mask.strides]);
        let spec = CountSpec { mask: mask.dtype, only: blocks == 1, layout: layout.spec() };
        let arguments = CountArguments { before: &before, mask, n: n as u32, layout: &layout };
        cx.run_threads(&spec, &arguments, blocks * u64::from(GROUP))?;
        if blocks > 1 {
            prefix_sum::exclusive(cx, &before, blocks as i64)?;
        }
        Ok(Count { mask, blocks, before })
    }

    /// Waits for the number of set elements.
    pub fn total(&self, cx: &Context) -> Result<i64> {
        let mut bytes = [0u8; 4];
        cx.download(self.before.data + 4 * self.blocks, &mut bytes)?;
        Ok(i64::from(u32::from_le_bytes(bytes)))
    }

    /// Applies an action to the first `limit` set elements.
    pub fn apply(&self, cx: &Context, action: MaskAction, limit: i64) -> Result<()> {
        let (kind, output, read) = match action {
            MaskAction::Coordinates { out } => (Kind::Coordinates, out, None),
            MaskAction::Select { from, row } => (Kind::Select, row, Some(from)),
            MaskAction::Scatter { row, to } => (Kind::Scatter, to, Some(row)),
        };
        let mut strides: SmallVec<[&[i64]; 2]> = smallvec![self.mask.strides.as_slice()];
        match action {
            MaskAction::Coordinates { .. } => {}
            MaskAction::Select { from: tensor, .. } | MaskAction::Scatter { to: tensor, .. } => {
                strides.push(&tensor.strides)
            }
        }
        let layout = if kind == Kind::Coordinates {
            // Each dimension is a column of the result, so none may be merged.
            let reverse = |d: &[i64]| d.iter().rev().copied().collect::<Dims>();
            let index = Layout::row_major(&self.mask.sizes, &strides).index;
            Layout { sizes: reverse(&self.mask.sizes), strides: smallvec![reverse(&self.mask.strides)], index }
        } else {
            Layout::row_major(&self.mask.sizes, &strides)
        };
        let bits_dtype = output.dtype.bits();
        let spec = MaskActionSpec { kind, mask: self.mask.dtype, bits_dtype, layout: layout.spec() };
        let arguments = MaskActionArguments {
            output: output.range(),
            read: read.map(View::range),
            steps: (kind == Kind::Coordinates).then(|| [output.strides[0], output.strides[1]]),
            mask: self.mask,
            before: &self.before,
            n: self.mask.numel() as u32,
            limit: limit.min(i64::from(u32::MAX)) as u32,
            layout: &layout,
        };
        cx.run_threads(&spec, &arguments, self.blocks * u64::from(GROUP))
    }
}

/// What is done with the set elements. The `r`-th is counted in row-major order.
#[derive(Copy, Clone)]
pub enum MaskAction<'t> {
    /// The coordinates of the `r`-th element are row `r` of the result (int64).
    Coordinates {
        /// `[count, rank]`
        out: &'t View,
    },
    /// Compaction: the element of `from`, which has the mask's sizes, becomes element `r` of `row`.
    Select {
        /// The source; read.
        from: &'t View,
        /// The compacted elements; written, contiguous.
        row: &'t View,
    },
    /// Expansion: the element of `to`, which has the mask's sizes, becomes element `r` of `row`.
    Scatter {
        /// The compacted elements; read, contiguous.
        row: &'t View,
        /// The destination; written.
        to: &'t View,
    },
}

/// The kind of a [`MaskAction`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Coordinates,
    Select,
    Scatter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountSpec {
    mask: DType,
    /// There is one block, so its counts need no scan.
    only: bool,
    layout: LayoutSpec,
}

parameters! {
    CountSpec as s => CountArguments, CountParameters {
        before: Output = DType::U32,
        mask: Input = s.mask,
        n: U32,
        layout: LayoutParameter = s.layout,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MaskActionSpec {
    kind: Kind,
    mask: DType,
    bits_dtype: DType,
    /// Offsets in the mask, and in the tensor with the mask's sizes.
    layout: LayoutSpec,
}

parameters! {
    MaskActionSpec as s => MaskActionArguments, MaskActionParameters {
        output: WriteRange = s.bits_dtype,
        read: Option<ReadRange> = (s.kind != Kind::Coordinates).then_some(s.bits_dtype),
        /// Strides of the coordinates' rows and columns.
        steps: Option<[I64; 2]> = (s.kind == Kind::Coordinates).then_some(()),
        mask: Input = s.mask,
        before: Input = DType::U32,
        n: U32,
        limit: U32,
        layout: LayoutParameter = s.layout,
    }
}

/// This invocation's elements: loads their flags, and passes each element's position and offsets
/// on.
fn flags<'b>(
    b: &'b Builder,
    mask: Pointer<'b>,
    params: &LayoutParams<'b>,
    n: Value<'b>,
    index: ScalarType,
) -> Vec<(Value<'b>, Value<'b>, Vec<Value<'b>>)> {
    let first = linear_id(b, ScalarType::U32) * ELEMENTS_PER_INVOCATION;
    (0..ELEMENTS_PER_INVOCATION)
        .map(|k| {
            let i = first + k;
            let offsets = params.offsets(b, i.cast(index));
            let flag = b.var(b.u32(0));
            b.if_(i.lt(n), || flag.set(mask.load(offsets[0]).cast(ScalarType::Bool).cast(ScalarType::U32)));
            (i, flag.get(), offsets)
        })
        .collect()
}

fn block_of(b: &Builder) -> Value<'_> {
    b.group_id(0) + b.group_id(1) * b.group_count(0)
}

impl KernelSpec for CountSpec {
    fn name(&self) -> &'static str {
        "mask_count"
    }

    fn write<'b>(&self, b: &'b Builder, p: CountParameters<'b>) {
        let sum = flags(b, p.mask, &p.layout, p.n, self.layout.index)
            .into_iter()
            .fold(b.u32(0), |sum, (_, flag, _)| sum + flag);
        let (_, total) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), sum);
        let block = block_of(b);
        b.if_(b.local_id(0).eq(0) & (block * (GROUP * ELEMENTS_PER_INVOCATION)).lt(p.n), || {
            if self.only {
                p.before.store(0, 0);
                p.before.store(1, total);
            } else {
                p.before.store(block, total);
            }
        });
    }
}

impl KernelSpec for MaskActionSpec {
    fn name(&self) -> &'static str {
        "mask_visit"
    }

    fn write<'b>(&self, b: &'b Builder, p: MaskActionParameters<'b>) {
        let (index, rank) = (self.layout.index, self.layout.rank as usize);
        let elements = flags(b, p.mask, &p.layout, p.n, index);
        let sum = elements.iter().fold(b.u32(0), |sum, (_, flag, _)| sum + *flag);
        let (inclusive, _) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), sum);
        let block = block_of(b);
        b.if_((block * (GROUP * ELEMENTS_PER_INVOCATION)).lt(p.n), || {
            let mut r = p.before.load(block) + inclusive - sum;
            for (i, flag, offsets) in &elements {
                b.if_(flag.ne(0) & r.lt(p.limit), || {
                    let position = r.cast(index);
                    match (self.kind, p.read, p.steps) {
                        (Kind::Select, Some(from), _) => p.output.store(position, from.load(offsets[1])),
                        (Kind::Scatter, Some(row), _) => p.output.store(offsets[1], row.load(position)),
                        (_, _, Some([row_step, column_step])) => {
                            let mut rest = i.cast(index);
                            let row = r.cast(ScalarType::I64) * row_step;
                            for d in 0..rank {
                                let quotient = rest / p.layout.size(d);
                                let column = row + column_step * (rank - 1 - d) as i64;
                                p.output.store(column, rest - quotient * p.layout.size(d));
                                rest = quotient;
                            }
                        }
                        _ => {}
                    }
                });
                r = r + *flag;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in
            [(DType::Bool, ScalarType::U32), (DType::F16, ScalarType::U64), (DType::F64, ScalarType::U32)]
        {
            let layout = |rank, operands| LayoutSpec { rank, operands, index };
            accepted(&CountSpec { mask: dtype, only: dtype == DType::Bool, layout: layout(2, 1) }.build());
            for (kind, mask, bits_dtype, layout) in [
                (Kind::Coordinates, dtype, DType::I64.bits(), layout(3, 1)),
                (Kind::Select, DType::Bool, dtype.bits(), layout(0, 2)),
                (Kind::Scatter, DType::Bool, dtype.bits(), layout(1, 2)),
            ] {
                accepted(&MaskActionSpec { kind, mask, bits_dtype, layout }.build());
            }
        }
    }
}
