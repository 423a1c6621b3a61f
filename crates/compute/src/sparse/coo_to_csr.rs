//! Coordinates (COO) to compressed rows (CSR): the beginning of each row instead of each element's
//! row.

use crate::context::Context;
use crate::error::Result;
use crate::movement::copy::{as_contiguous, device_copy};
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key::partition_point;
use crate::view::{View, layout, overlap};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Converts the row indices of at least one element.
pub fn convert(cx: &Context, rows: &View, out: &View) -> Result<()> {
    let rows = as_contiguous(cx, rows)?;
    let apart = out.is_contiguous() && !overlap::ranges_overlap(out, &rows);
    let dense = if apart { out.clone() } else { cx.empty(out.dtype, &out.sizes)? };
    let count = dense.numel();
    let spec = CooToCsr { rows: rows.dtype, out: out.dtype, index: layout::index_type(count.max(rows.numel())) };
    let arguments = CooToCsrArguments { rows: &rows, out: &dense, count, elements: rows.numel() as u32 };
    cx.run_threads(&spec, &arguments, count as u64)?;
    if dense.data != out.data {
        device_copy(cx, &dense, out)?;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CooToCsr {
    rows: DType,
    out: DType,
    index: ScalarType,
}

parameters! {
    CooToCsr as s => CooToCsrArguments, CooToCsrParameters {
        rows: Input = s.rows,
        out: Output = s.out,
        /// Elements of the result.
        count: Index = s.index,
        /// Elements of the tensor.
        elements: U32,
    }
}

impl KernelSpec for CooToCsr {
    fn name(&self) -> &'static str {
        "coo_to_csr"
    }

    fn write<'b>(&self, b: &'b Builder, p: CooToCsrParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.count), || {
            let row = i.cast(ScalarType::I64);
            let before = |at| p.rows.load(at).cast(ScalarType::I64).lt(row);
            p.out.store(i, partition_point(p.elements, |at| before(at.cast(self.index))));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for rows in [DType::U8, DType::I16, DType::I32, DType::I64] {
            for (out, index) in [(DType::I64, ScalarType::U32), (DType::I32, ScalarType::U64)] {
                accepted(&CooToCsr { rows, out, index }.build());
            }
        }
    }
}
