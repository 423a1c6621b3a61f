//! The product of a matrix of compressed rows (CSR) and a dense matrix: each row of the result is a
//! weighted sum of rows of the dense matrix, added up in the order of the row's entries, so that
//! the result is deterministic.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::fault::{Fault, Reporter};
use crate::movement::copy::as_contiguous;
use crate::primitives::cost::multiply_adds;
use crate::primitives::kernel::{InDType, Input, KernelSpec, Output};
use crate::primitives::segments;
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::{groups, linear_id};
use dml_kernel::{Builder, DType, Pointer, ScalarType, Value};

/// Entries of a row whose rows of the dense matrix are loaded before the first is added, so that
/// the latencies of loads overlap.
const LOADS_IN_FLIGHT: u32 = 4;

/// Writes the product to `out`, which is not empty.
pub fn multiply(
    cx: &Context,
    [offsets, indices]: [&View; 2],
    values: Option<&View>,
    dense: &View,
    addend: Option<&View>,
    [beta, alpha]: [Number; 2],
    out: &View,
) -> Result<()> {
    let (dtype, n) = (out.dtype, out.sizes[1]);
    let (offsets, indices) = (&as_contiguous(cx, offsets)?, &as_contiguous(cx, indices)?);
    let values = values.map(|t| as_contiguous(cx, t)).transpose()?;
    let dense = &as_contiguous(cx, dense)?;
    let mut before = addend.map(|t| as_contiguous(cx, t)).transpose()?;
    let addresses = [dense.data, out.data, before.as_ref().map_or(0, |t| t.data)];
    let wide = widest(dtype, n, &addresses);
    let index = index_type(out.numel().max(dense.numel()).max(indices.numel()));
    let mut beta = beta;
    // If entries are processed in several launches, each adds to the result of the previous one.
    let entries = if dense.numel() == 0 { 0 } else { indices.numel() };
    for part in segments::parts(cx, entries.max(1)) {
        let spec = RowProduct {
            offsets: offsets.dtype,
            dtype,
            weighted: values.is_some(),
            added: before.is_some(),
            wide,
            index,
        };
        let arguments = RowProductArguments {
            offsets,
            indices,
            values: values.as_ref(),
            dense,
            addend: before.as_ref(),
            out,
            scale: [beta, alpha],
            extent: [out.sizes[0], n / i64::from(wide), dense.sizes[0], entries],
            part,
            fault: cx.fault_of_index(),
        };
        let operations = multiply_adds(dtype, (entries * n) as u64);
        cx.run_with_cost(&spec, &arguments, groups((out.numel() / i64::from(wide)) as u64), operations)?;
        (before, beta) = (Some(out.clone()), Number::Int(1));
    }
    Ok(())
}

/// Vector width, at most 16 bytes, for rows of `n` elements.
pub fn widest(dtype: DType, n: i64, addresses: &[u64]) -> u32 {
    let fits = |&wide: &u32| {
        let bytes = u64::from(wide) * dtype.bytes();
        n % i64::from(wide) == 0 && addresses.iter().all(|at| at % bytes == 0)
    };
    [8, 4, 2].into_iter().filter(|&wide| u64::from(wide) * dtype.bytes() <= 16).find(fits).unwrap_or(1)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RowProduct {
    offsets: DType,
    dtype: DType,
    weighted: bool,
    added: bool,
    /// Adjacent elements of an invocation in a row (vector width).
    wide: u32,
    index: ScalarType,
}

parameters! {
    RowProduct as s => RowProductArguments, RowProductParameters {
        offsets: Input = s.offsets,
        indices: Input = s.offsets,
        values: Option<Input> = s.weighted.then_some(s.dtype),
        dense: Input = s.dtype,
        addend: Option<Input> = s.added.then_some(s.dtype),
        out: Output = s.dtype,
        /// Beta and alpha.
        scale: [InDType; 2] = accumulator(s.dtype),
        /// Rows of the result, vectors of a row, rows of the dense matrix, entries.
        extent: [Index; 4] = s.index,
        /// For each row, the number of entries before those of this launch, and the maximum number
        /// for this launch.
        part: [U32; 2],
        fault: Fault,
    }
}

impl KernelSpec for RowProduct {
    fn name(&self) -> &'static str {
        "compressed_mm"
    }

    fn write<'b>(&self, b: &'b Builder, p: RowProductParameters<'b>) {
        let [rows, chunks, height, entries] = p.extent;
        let at = linear_id(b, self.index);
        let row = at / chunks;
        b.if_(row.lt(rows), || {
            let chunk = at - row * chunks;
            let scalar = self.dtype.compute();
            let [first, end] = bounds(p.offsets, row, entries, p.part, self.index);
            let sums: Vec<_> = (0..self.wide).map(|_| b.var(b.constant_of(scalar, 0.0))).collect();
            let take = |from: Value<'b>, count: u32| {
                let loaded: Vec<_> = (0..count)
                    .map(|i| {
                        let entry = from + i;
                        let given = p.indices.load(entry);
                        let there = is_below(b, given, height, &p.fault);
                        let row = there.select(given.cast(self.index), b.int(self.index, 0));
                        (p.values.map(|v| v.load(entry)), p.dense.load_chunk(row * chunks + chunk, self.wide))
                    })
                    .collect();
                for (weight, elements) in loaded {
                    for (sum, x) in sums.iter().zip(elements) {
                        sum.set(match weight {
                            Some(w) => multiply_add(w, x, sum.get()),
                            None => sum.get() + x,
                        });
                    }
                }
            };
            let whole = first + (end - first) / LOADS_IN_FLIGHT * LOADS_IN_FLIGHT;
            b.for_(first, whole, LOADS_IN_FLIGHT, |entry| take(entry, LOADS_IN_FLIGHT));
            b.for_(whole, end, 1, |entry| take(entry, 1));
            let [beta, alpha] = p.scale.map(|x| x.cast(scalar));
            let mut results: Vec<_> = sums.iter().map(|sum| alpha * sum.get()).collect();
            if let Some(addend) = p.addend {
                for (result, x) in results.iter_mut().zip(addend.load_chunk(at, self.wide)) {
                    *result = *result + beta * x;
                }
            }
            p.out.store_chunk(at, &results);
        });
    }
}

/// The range of a row's entries in one launch, clamped to `entries`.
pub fn bounds<'b>(
    offsets: Pointer<'b>,
    row: Value<'b>,
    entries: Value<'b>,
    [skipped, most]: [Value<'b>; 2],
    index: ScalarType,
) -> [Value<'b>; 2] {
    let bound = |i: Value<'b>| {
        let x = offsets.load(i).cast(ScalarType::I64);
        let limit = entries.cast(ScalarType::I64);
        x.max(x.like(0.0)).min(limit).cast(index)
    };
    let (begin, end) = (bound(row), bound(row + 1));
    let end = end.max(begin);
    let first = begin + skipped.cast(index).min(end - begin);
    [first, first + most.cast(index).min(end - first)]
}

/// Whether an index is below `height`; an index out of range is reported.
pub fn is_below<'b>(b: &'b Builder, given: Value<'b>, height: Value<'b>, fault: &Reporter<'b>) -> Value<'b> {
    let index = given.cast(ScalarType::I64);
    let there = index.ge(0) & index.lt(height.cast(ScalarType::I64));
    b.if_(!there, || fault.report(given, height, 0));
    there
}

/// `x * y + z`.
pub fn multiply_add<'b>(x: Value<'b>, y: Value<'b>, z: Value<'b>) -> Value<'b> {
    if x.scalar().is_float() { x.fma(y, z) } else { x * y + z }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (dtype, offsets, wide) in [
            (DType::F32, DType::I64, 4),
            (DType::F32, DType::I32, 1),
            (DType::F16, DType::I64, 8),
            (DType::BF16, DType::I32, 2),
            (DType::F64, DType::I64, 2),
            (DType::I64, DType::I64, 1),
            (DType::U8, DType::I32, 4),
        ] {
            for (weighted, added, index) in [(true, false, ScalarType::U32), (false, true, ScalarType::U64)] {
                accepted(&RowProduct { offsets, dtype, weighted, added, wide, index }.build());
            }
        }
    }

    #[test]
    fn chunks_are_whole_and_aligned() {
        assert_eq!(widest(DType::F32, 64, &[0, 16]), 4);
        assert_eq!(widest(DType::F16, 64, &[0, 16]), 8);
        assert_eq!(widest(DType::F32, 6, &[0]), 2);
        assert_eq!(widest(DType::F32, 7, &[0]), 1);
        assert_eq!(widest(DType::F64, 8, &[8]), 1);
    }
}
