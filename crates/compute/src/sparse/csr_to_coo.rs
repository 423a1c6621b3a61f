//! Compressed rows (CSR) to coordinates (COO): each element's row instead of the beginning of each
//! row.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::{as_contiguous, device_copy};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key::partition_point;
use crate::view::{View, layout, overlap};
use dml_engine::interface::{Each, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};
use smallvec::smallvec;

/// Converts a tensor with at least one row and one element.
pub fn convert(cx: &Context, crow: &View, col: &View, out: &View, transpose: bool) -> Result<()> {
    let (crow, col) = (as_contiguous(cx, crow)?, as_contiguous(cx, col)?);
    let apart = out.is_contiguous() && !overlap::ranges_overlap(out, &crow) && !overlap::ranges_overlap(out, &col);
    let dense = if apart { out.clone() } else { cx.empty(out.dtype, &out.sizes)? };
    let batch = crow.dim() - 1;
    let index = layout::index_type(dense.numel().max(crow.numel()));
    let spec = CsrToCoo { crow: crow.dtype, col: col.dtype, out: out.dtype, index, batch, transpose };
    let count = col.numel();
    let arguments = CsrToCooArguments {
        crow: &crow,
        col: &col,
        out: &dense,
        count,
        nnz: col.size(-1),
        rows: (crow.size(-1) - 1) as u32,
        batches: crow.sizes[..batch].iter().copied().collect(),
    };
    cx.run_threads(&spec, &arguments, count as u64)?;
    if dense.data != out.data {
        device_copy(cx, &dense, out)?;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CsrToCoo {
    crow: DType,
    col: DType,
    out: DType,
    index: ScalarType,
    /// Number of batch dimensions.
    batch: usize,
    /// Columns come before rows.
    transpose: bool,
}

parameters! {
    CsrToCoo as s => CsrToCooArguments, CsrToCooParameters {
        crow: Input = s.crow,
        col: Input = s.col,
        out: Output = s.out,
        /// Number of elements of all batches.
        count: Index = s.index,
        /// Number of elements of each batch.
        nnz: Index = s.index,
        rows: U32,
        /// Sizes of the batch dimensions.
        batches: Each<Index> = smallvec![s.index; s.batch],
    }
}

impl KernelSpec for CsrToCoo {
    fn name(&self) -> &'static str {
        "csr_to_coo"
    }

    fn write<'b>(&self, b: &'b Builder, p: CsrToCooParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.count), || {
            let batch = i / p.nnz;
            let at = (i % p.nnz).cast(ScalarType::I64);
            let first = batch * (p.rows + 1).cast(self.index);
            // The row of an element is the number of rows that end at or before it. Elements after
            // the end of all rows belong to the last row.
            let ends = |row| p.crow.load(first + row + 1).cast(ScalarType::I64);
            let row = partition_point(p.rows, |row| ends(row.cast(self.index)).le(at)).min(p.rows - 1);
            let mut rest = batch;
            for (d, &size) in p.batches.iter().enumerate().rev() {
                p.out.store(i + p.count * d as u32, rest % size);
                rest = rest / size;
            }
            let (row_at, col_at) = if self.transpose { (1, 0) } else { (0, 1) };
            p.out.store(i + p.count * (self.batch + row_at) as u32, row);
            p.out.store(i + p.count * (self.batch + col_at) as u32, p.col.load(i));
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
            [(DType::U8, ScalarType::U32), (DType::I32, ScalarType::U64), (DType::I64, ScalarType::U32)]
        {
            for (col, out, batch, transpose) in [(dtype, DType::I64, 0, false), (DType::F32, DType::I32, 3, true)] {
                accepted(&CsrToCoo { crow: dtype, col, out, index, batch, transpose }.build());
            }
        }
    }
}
