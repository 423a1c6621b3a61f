//! Non-maximum suppression: of boxes that overlap by more than a threshold, only the one with the
//! best score stays.
//!
//! Boxes are processed in blocks, in descending order of scores. For each block, the overlaps of
//! all pairs become a bit matrix, from which one workgroup finds, 32 boxes at a time, which boxes
//! stay. These boxes suppress boxes of the later blocks, all of which compare with them in
//! parallel. The workspace has the size of one block, and the host waits only for the number of
//! boxes that stay.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_engine::interface::U32;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value, Var};

/// Words of a row of a block's bit matrix, and invocations of the workgroup that reads it.
const WORDS: u32 = 32;

/// Boxes of a block.
const BLOCK: u32 = 32 * WORDS;

/// Whether boxes stay (u32, not 0 if one does), for those of `boxes` (`[n, 4]`, contiguous) that
/// `order` lists, by descending score.
pub fn suppress(cx: &Context, boxes: &View, order: &View, threshold: f64) -> Result<View> {
    let (n, number) = (order.sizes[0] as u32, accumulator(boxes.dtype));
    let sorted = cx.empty(number, &[i64::from(n), 4])?;
    let keep = cx.empty(DType::U32, &[i64::from(n)])?;
    let arguments = SortArguments { sorted: &sorted, keep: &keep, boxes, order, n };
    cx.run_threads(&SortSpec { dtype: boxes.dtype }, &arguments, u64::from(n))?;

    let threshold = Number::Double(if number == DType::F64 { threshold } else { below(threshold) });
    let overlaps = cx.empty(DType::U32, &[i64::from(n.min(BLOCK)), i64::from(WORDS)])?;
    let stays = cx.empty(DType::U32, &[i64::from(WORDS)])?;
    for first in (0..n).step_by(BLOCK as usize) {
        let size = BLOCK.min(n - first);
        let arguments = OverlapArguments { overlaps: &overlaps, boxes: &sorted, first, size, threshold };
        cx.run_threads(&OverlapSpec { number }, &arguments, u64::from(size * WORDS))?;
        let arguments = ResolveArguments { keep: &keep, stays: &stays, overlaps: &overlaps, first, size };
        cx.run(&ResolveSpec, &arguments, [1, 1, 1])?;
        let next = first + size;
        if next < n {
            let arguments = SuppressArguments { keep: &keep, stays: &stays, boxes: &sorted, first, next, n, threshold };
            cx.run_threads(&SuppressSpec { number }, &arguments, u64::from(n - next))?;
        }
    }
    Ok(keep)
}

/// The largest f32 not above `x`, so that comparing f32 numbers with either gives the same.
fn below(x: f64) -> f64 {
    let near = x as f32;
    f64::from(if f64::from(near) > x { near.next_down() } else { near })
}

/// Copies boxes in the order of their scores, in the dtype in which overlaps are computed, and
/// marks all of them as staying.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SortSpec {
    dtype: DType,
}

parameters! {
    SortSpec as s => SortArguments, SortParameters {
        sorted: Output = accumulator(s.dtype),
        keep: Output = DType::U32,
        boxes: Input = s.dtype,
        order: Input = DType::I64,
        n: U32,
    }
}

impl KernelSpec for SortSpec {
    fn name(&self) -> &'static str {
        "nms_sort"
    }

    fn write<'b>(&self, b: &'b Builder, p: SortParameters<'b>) {
        let i = linear_id(b, ScalarType::U32);
        b.if_(i.lt(p.n), || {
            let from = p.order.load(i).cast(ScalarType::U64) * 4;
            for side in 0..4u32 {
                p.sorted.store(i.cast(ScalarType::U64) * 4 + side, p.boxes.load(from + side));
            }
            p.keep.store(i, 1);
        });
    }
}

/// Computes the overlaps of a block's boxes: bit `j % 32` of word `j / 32` of row `i`, for `j > i`.
/// Words left of the diagonal are not written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OverlapSpec {
    number: DType,
}

parameters! {
    OverlapSpec as s => OverlapArguments, OverlapParameters {
        overlaps: Output = DType::U32,
        boxes: Input = s.number,
        first: U32,
        /// Number of boxes of this block.
        size: U32,
        threshold: InDType = s.number,
    }
}

impl KernelSpec for OverlapSpec {
    fn name(&self) -> &'static str {
        "nms_overlaps"
    }

    fn write<'b>(&self, b: &'b Builder, p: OverlapParameters<'b>) {
        let thread = linear_id(b, ScalarType::U32);
        let (row, column) = (thread / WORDS, (thread % WORDS) * 32);
        b.if_(row.lt(p.size) & column.lt(p.size) & (column + 31).ge(row), || {
            let this = corners(p.boxes, p.first + row);
            let word = b.var(b.u32(0));
            b.for_(0u32, b.u32(32), 1, |bit| {
                let other = column + bit;
                b.if_(other.gt(row) & other.lt(p.size), || {
                    let overlap = is_overlap(b, &this, &corners(p.boxes, p.first + other), p.threshold);
                    word.set(word.get() | (overlap.cast(ScalarType::U32) << bit));
                });
            });
            p.overlaps.store(thread, word.get());
        });
    }
}

/// Finds which boxes of a block stay, of those that no earlier block has suppressed: in order, each
/// one that stays suppresses those that overlap with it. An invocation has 32 boxes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ResolveSpec;

parameters! {
    ResolveSpec as s => ResolveArguments, ResolveParameters {
        keep: Output = DType::U32,
        stays: Output = DType::U32,
        overlaps: Input = DType::U32,
        first: U32,
        size: U32,
    }
}

impl KernelSpec for ResolveSpec {
    fn name(&self) -> &'static str {
        "nms_resolve"
    }

    fn workgroup(&self) -> [u32; 3] {
        [WORDS, 1, 1]
    }

    fn write<'b>(&self, b: &'b Builder, p: ResolveParameters<'b>) {
        let me = b.local_id(0);
        let (rows, shared_candidates) = (b.shared(ScalarType::U32, 1, 32), b.shared(ScalarType::U32, 1, 1));
        let candidates = b.var(b.u32(0));
        let mine = |bit: Value<'b>, body: &dyn Fn(Value<'b>)| {
            let box_ = me * 32 + bit;
            b.if_(box_.lt(p.size), || body(p.first + box_));
        };
        b.for_(0u32, b.u32(32), 1, |bit| {
            mine(bit, &|at| candidates.set(candidates.get() | (p.keep.load(at).min(1) << bit)));
        });
        b.for_(0u32, (p.size + 31) / 32, 1, |word| {
            let row = word * 32 + me;
            b.if_(row.lt(p.size), || rows.store(me, p.overlaps.load(row * WORDS + word)));
            b.if_(me.eq(word), || shared_candidates.store(0, candidates.get()));
            b.barrier();
            // Every invocation finds which of the 32 boxes of this word stay, and lets them
            // suppress its own boxes.
            let stay = b.var(shared_candidates.load(0));
            b.for_(0u32, b.u32(32), 1, |bit| {
                let now = stay.get();
                b.if_(((now >> bit) & 1).ne(0), || stay.set(now & !rows.load(bit)));
            });
            b.if_else(
                me.gt(word) & (me * 32).lt(p.size),
                || {
                    let left = b.var(stay.get());
                    b.while_(
                        || left.get().ne(0),
                        || {
                            let bit = next_bit(left);
                            candidates.set(candidates.get() & !p.overlaps.load((word * 32 + bit) * WORDS + me));
                        },
                    );
                },
                || b.if_(me.eq(word), || candidates.set(stay.get())),
            );
            b.barrier();
        });
        p.stays.store(me, candidates.get());
        b.for_(0u32, b.u32(32), 1, |bit| {
            mine(bit, &|at| p.keep.store(at, (candidates.get() >> bit) & 1));
        });
    }
}

/// Suppresses boxes of later blocks that overlap with boxes of this block that stay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SuppressSpec {
    number: DType,
}

parameters! {
    SuppressSpec as s => SuppressArguments, SuppressParameters {
        keep: Output = DType::U32,
        stays: Input = DType::U32,
        boxes: Input = s.number,
        first: U32,
        /// The first box after the block.
        next: U32,
        n: U32,
        threshold: InDType = s.number,
    }
}

impl KernelSpec for SuppressSpec {
    fn name(&self) -> &'static str {
        "nms_suppress"
    }

    fn write<'b>(&self, b: &'b Builder, p: SuppressParameters<'b>) {
        let me = p.next + linear_id(b, ScalarType::U32);
        let stays = b.var(b.bool(false));
        b.if_(me.lt(p.n), || stays.set(p.keep.load(me).ne(0)));
        b.if_(stays.get(), || {
            let mine = corners(p.boxes, me);
            let word = b.var(b.u32(0));
            b.while_(
                || stays.get() & word.get().lt(WORDS),
                || {
                    let left = b.var(p.stays.load(word.get()));
                    b.while_(
                        || stays.get() & left.get().ne(0),
                        || {
                            let bit = next_bit(left);
                            let better = corners(p.boxes, p.first + word.get() * 32 + bit);
                            stays.set(!is_overlap(b, &better, &mine, p.threshold));
                        },
                    );
                    word.set(word.get() + 1);
                },
            );
            b.if_(!stays.get(), || p.keep.store(me, 0));
        });
    }
}

/// Removes the highest bit of a word, and returns its index. The index is valid even for 0: Mesa
/// 26's lavapipe runs a loop's body once with no active invocation, and accesses memory there.
fn next_bit<'b>(left: Var<'b>) -> Value<'b> {
    let bit = left.get().highest_bit() & 31;
    left.set(left.get() ^ (bit.like(1.0) << bit));
    bit
}

/// Left, top, right and bottom of box `i`.
fn corners<'b>(boxes: Pointer<'b>, i: Value<'b>) -> [Value<'b>; 4] {
    let corners = boxes.load_chunk(i.cast(ScalarType::U64), 4);
    [corners[0], corners[1], corners[2], corners[3]]
}

/// Whether the intersection over union of two boxes is above `threshold`. The order of operands is
/// that of the CPU, which matters for NaN: the comparisons let `x` win, the box with the better
/// score.
fn is_overlap<'b>(b: &'b Builder, x: &[Value<'b>; 4], y: &[Value<'b>; 4], threshold: Value<'b>) -> Value<'b> {
    let (left, top) = (y[0].max(x[0]), y[1].max(x[1]));
    let (right, bottom) = (y[2].min(x[2]), y[3].min(x[3]));
    let zero = left.like(0.0);
    let intersection = (right - left).max(zero) * (bottom - top).max(zero);
    let over = b.var(b.bool(false));
    // Most boxes do not intersect, and the division is most of the work.
    b.if_(!intersection.is_zero() | threshold.lt(0.0), || {
        let area = |c: &[Value<'b>; 4]| (c[2] - c[0]) * (c[3] - c[1]);
        over.set((intersection / (area(x) + area(y) - intersection)).gt(threshold));
    });
    over.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::F16, DType::F32, DType::F64] {
            let number = accumulator(dtype);
            accepted(&SortSpec { dtype }.build());
            accepted(&OverlapSpec { number }.build());
            accepted(&SuppressSpec { number }.build());
        }
        accepted(&ResolveSpec.build());
    }

    #[test]
    fn thresholds_round_down() {
        for x in [0.5, 0.3, 0.7, -0.1, 1.0, 0.0] {
            let y = below(x);
            assert!(y <= x && f64::from((y as f32).next_up()) > x, "{x}: {y}");
        }
    }
}
