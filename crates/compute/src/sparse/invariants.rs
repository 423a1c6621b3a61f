//! The invariants of compressed indices (CSR, CSC, BSR, BSC).

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::{fill_with, read_numbers};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::segments;
use crate::scalar::Scalar;
use crate::sparse::compressed_mm::bounds;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// What holds of compressed indices, in the order in which a violation is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// Each index is at least 0 and below the size of its dimension.
    IndexBounds,
    /// Each batch's first offset is 0.
    FirstOffset,
    /// Each batch's last offset is the number of its entries.
    LastOffset,
    /// Offsets do not decrease, and no row has more entries than its dimension has places.
    RowLength,
    /// The indices of a row increase.
    Order,
}

impl Invariant {
    const ALL: [Invariant; 5] = [Self::IndexBounds, Self::FirstOffset, Self::LastOffset, Self::RowLength, Self::Order];
}

/// Returns the first violated invariant of `offsets` (`[batch.., rows + 1]`) and `indices`
/// (`[batch.., entries]`), contiguous int32 or int64 of one dtype, with indices into a dimension of
/// `size`. Waits for the device.
pub fn violated(cx: &Context, offsets: &View, indices: &View, size: i64) -> Result<Option<Invariant>> {
    let flags = cx.empty(DType::I32, &[Invariant::ALL.len() as i64])?;
    fill_with(cx, &flags, Scalar::Int(0))?;
    let (rows, entries) = (offsets.size(-1) - 1, indices.size(-1));
    let offset_rows = offsets.numel() - offsets.numel() / (rows + 1);
    let threads = offset_rows.max(indices.numel());
    let index = index_type(offsets.numel().max(indices.numel()));
    for part in segments::parts(cx, entries.max(1)) {
        let spec = Invariants { dtype: offsets.dtype, index };
        let extent = [offset_rows, rows.max(1), entries, indices.numel()];
        let arguments = InvariantsArguments { offsets, indices, flags: &flags, extent, size, part };
        cx.run_threads(&spec, &arguments, threads as u64)?;
    }
    let flags: Vec<Scalar> = read_numbers(cx, &flags)?;
    Ok(Invariant::ALL.into_iter().zip(flags).find(|(_, flag)| flag.to_i64() != 0).map(|(invariant, _)| invariant))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Invariants {
    dtype: DType,
    index: ScalarType,
}

parameters! {
    Invariants as s => InvariantsArguments, InvariantsParameters {
        offsets: Input = s.dtype,
        indices: Input = s.dtype,
        /// 1 for each invariant that is violated.
        flags: Output = DType::I32,
        /// Number of rows of all batches and of each, and of entries of each batch and of all.
        extent: [Index; 4] = s.index,
        /// Size of the dimension of the indices.
        size: Index = ScalarType::I64,
        /// For each row, the number of entries before those of this launch, and the maximum number
        /// in this launch.
        part: [U32; 2],
    }
}

/// Each invocation checks one entry and one row.
impl KernelSpec for Invariants {
    fn name(&self) -> &'static str {
        "compressed_invariants"
    }

    fn write<'b>(&self, b: &'b Builder, p: InvariantsParameters<'b>) {
        let [all_rows, rows, entries, all_entries] = p.extent;
        let i = linear_id(b, self.index);
        let flag = |violated, invariant: Invariant| {
            b.if_(violated, || p.flags.store(b.u32(invariant as u32), b.constant_of(ScalarType::I32, 1.0)));
        };
        let index = |entry| p.indices.load(entry).cast(ScalarType::I64);
        b.if_(i.lt(all_entries), || {
            let given = index(i);
            flag(given.lt(0) | given.ge(p.size), Invariant::IndexBounds);
        });
        b.if_(i.lt(all_rows), || {
            let batch = i / rows;
            let row = i - batch * rows;
            let offset = |at| p.offsets.load(i + batch + at).cast(ScalarType::I64);
            let (begin, end) = (offset(0), offset(1));
            flag(row.eq(0) & begin.ne(0), Invariant::FirstOffset);
            flag((row + 1).eq(rows) & end.ne(entries.cast(ScalarType::I64)), Invariant::LastOffset);
            let length = end - begin;
            flag(length.lt(0) | length.gt(p.size), Invariant::RowLength);
            let of_batch = batch * entries;
            let [first, end] = bounds(p.offsets, i + batch, entries, p.part, self.index);
            b.for_(first, end, 1, |entry| {
                let follows = entry.cast(ScalarType::I64).gt(begin) & entry.gt(0);
                b.if_(follows, || {
                    let at = of_batch + entry;
                    flag(index(at).le(index(at - 1)), Invariant::Order);
                });
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::I32, DType::I64] {
            for index in [ScalarType::U32, ScalarType::U64] {
                accepted(&Invariants { dtype, index }.build());
            }
        }
    }
}
