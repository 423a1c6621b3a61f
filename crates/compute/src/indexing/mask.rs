//! The elements of a mask that are set: counting and visiting them in order.
//!
//! Each workgroup counts its block of elements, the counts are summed up, and each workgroup visits
//! its elements from its sum on.

use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::prefix_sum;
use crate::view::layout::{Layout, LayoutParams, LayoutSpec, Walked};
use crate::view::{Dims, View};
use dml_engine::interface::{I64, ReadRange, U32, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::{GROUP, linear_id};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Neighbouring elements of one invocation.
const EACH: u32 = 8;

/// The elements of a mask, counted block by block.
pub struct Count<'t> {
    mask: &'t View,
    blocks: u64,
    /// How many are set before each block, and in all.
    before: View,
}

impl<'t> Count<'t> {
    /// Counts the elements of `mask` that are set.
    pub fn new(cx: &Context, mask: &'t View) -> Result<Count<'t>> {
        let n = mask.numel();
        check!(n < i64::from(i32::MAX), TooLarge, "{}: a mask of {n} elements is too large for dml", cx.name);
        let blocks = (n as u64).div_ceil(u64::from(GROUP * EACH));
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

    /// Waits for the number of elements that are set.
    pub fn total(&self, cx: &Context) -> Result<i64> {
        let mut bytes = [0u8; 4];
        cx.download(self.before.data + 4 * self.blocks, &mut bytes)?;
        Ok(i64::from(u32::from_le_bytes(bytes)))
    }

    /// Visits the elements that are set, the first `limit` of them.
    pub fn visit(&self, cx: &Context, visit: Visit, limit: i64) -> Result<()> {
        let (kind, written, read) = match visit {
            Visit::Coordinates { out } => (Kind::Coordinates, out, None),
            Visit::Select { from, row } => (Kind::Select, row, Some(from)),
            Visit::Scatter { row, to } => (Kind::Scatter, to, Some(row)),
        };
        let mut strides: SmallVec<[&[i64]; 2]> = smallvec![self.mask.strides.as_slice()];
        match visit {
            Visit::Coordinates { .. } => {}
            Visit::Select { from: walked, .. } | Visit::Scatter { to: walked, .. } => strides.push(&walked.strides),
        }
        let layout = if kind == Kind::Coordinates {
            // Each dimension is a column of the result: none may be merged.
            let reverse = |d: &[i64]| d.iter().rev().copied().collect::<Dims>();
            let index = Layout::row_major(&self.mask.sizes, &strides).index;
            Layout { sizes: reverse(&self.mask.sizes), strides: smallvec![reverse(&self.mask.strides)], index }
        } else {
            Layout::row_major(&self.mask.sizes, &strides)
        };
        let moved = written.dtype.bits();
        let spec = VisitSpec { kind, mask: self.mask.dtype, moved, layout: layout.spec() };
        let arguments = VisitArguments {
            written: written.range(),
            read: read.map(View::range),
            steps: (kind == Kind::Coordinates).then(|| [written.strides[0], written.strides[1]]),
            mask: self.mask,
            before: &self.before,
            n: self.mask.numel() as u32,
            limit: limit.min(i64::from(u32::MAX)) as u32,
            layout: &layout,
        };
        cx.run_threads(&spec, &arguments, self.blocks * u64::from(GROUP))
    }
}

/// What is done with the elements that are set; the `r`-th of them in row-major order.
#[derive(Copy, Clone)]
pub enum Visit<'t> {
    /// Its coordinates are row `r` of the result (int64).
    Coordinates {
        /// `[count, rank]`
        out: &'t View,
    },
    /// The element of `from`, of the mask's sizes, goes to place `r` of a row.
    Select {
        /// Is read.
        from: &'t View,
        /// Is written; contiguous.
        row: &'t View,
    },
    /// The element of `to`, of the mask's sizes, gets element `r` of a row.
    Scatter {
        /// Is read; contiguous.
        row: &'t View,
        /// Is written.
        to: &'t View,
    },
}

/// A [`Visit`] without its tensors.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Coordinates,
    Select,
    Scatter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CountSpec {
    mask: DType,
    /// There is one block: the sums are known at once.
    only: bool,
    layout: LayoutSpec,
}

parameters! {
    CountSpec as s => CountArguments, CountParameters {
        before: Output = DType::U32,
        mask: Input = s.mask,
        n: U32,
        layout: Walked = s.layout,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct VisitSpec {
    kind: Kind,
    mask: DType,
    moved: DType,
    /// Of the mask, and of the tensor of its sizes.
    layout: LayoutSpec,
}

parameters! {
    VisitSpec as s => VisitArguments, VisitParameters {
        written: WriteRange = s.moved,
        read: Option<ReadRange> = (s.kind != Kind::Coordinates).then_some(s.moved),
        /// Strides of the coordinates.
        steps: Option<[I64; 2]> = (s.kind == Kind::Coordinates).then_some(()),
        mask: Input = s.mask,
        before: Input = DType::U32,
        n: U32,
        limit: U32,
        layout: Walked = s.layout,
    }
}

/// This invocation's elements: loads their flags, given the position and the offsets of each.
fn flags<'b>(
    b: &'b Builder,
    mask: Pointer<'b>,
    params: &LayoutParams<'b>,
    n: Value<'b>,
    index: ScalarType,
) -> Vec<(Value<'b>, Value<'b>, Vec<Value<'b>>)> {
    let first = linear_id(b, ScalarType::U32) * EACH;
    (0..EACH)
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
        b.if_(b.local_id(0).eq(0) & (block * (GROUP * EACH)).lt(p.n), || {
            if self.only {
                p.before.store(0, 0);
                p.before.store(1, total);
            } else {
                p.before.store(block, total);
            }
        });
    }
}

impl KernelSpec for VisitSpec {
    fn name(&self) -> &'static str {
        "mask_visit"
    }

    fn write<'b>(&self, b: &'b Builder, p: VisitParameters<'b>) {
        let (index, rank) = (self.layout.index, self.layout.rank as usize);
        let elements = flags(b, p.mask, &p.layout, p.n, index);
        let sum = elements.iter().fold(b.u32(0), |sum, (_, flag, _)| sum + *flag);
        let (inclusive, _) = prefix_sum::workgroup(b, prefix_sum::scratch(b, ScalarType::U32), sum);
        let block = block_of(b);
        b.if_((block * (GROUP * EACH)).lt(p.n), || {
            let mut r = p.before.load(block) + inclusive - sum;
            for (i, flag, offsets) in &elements {
                b.if_(flag.ne(0) & r.lt(p.limit), || {
                    let place = r.cast(index);
                    match (self.kind, p.read, p.steps) {
                        (Kind::Select, Some(from), _) => p.written.store(place, from.load(offsets[1])),
                        (Kind::Scatter, Some(row), _) => p.written.store(offsets[1], row.load(place)),
                        (_, _, Some([row_step, column_step])) => {
                            let mut rest = i.cast(index);
                            let row = r.cast(ScalarType::I64) * row_step;
                            for d in 0..rank {
                                let quotient = rest / p.layout.size(d);
                                let column = row + column_step * (rank - 1 - d) as i64;
                                p.written.store(column, rest - quotient * p.layout.size(d));
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
            for (kind, mask, moved, layout) in [
                (Kind::Coordinates, dtype, DType::I64.bits(), layout(3, 1)),
                (Kind::Select, DType::Bool, dtype.bits(), layout(0, 2)),
                (Kind::Scatter, DType::Bool, dtype.bits(), layout(1, 2)),
            ] {
                accepted(&VisitSpec { kind, mask, moved, layout }.build());
            }
        }
    }
}
