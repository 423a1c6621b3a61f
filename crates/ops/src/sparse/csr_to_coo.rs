//! Compressed rows (CSR) to coordinates (COO): each element's row instead of where each row begins.

use crate::movement::copy::{as_contiguous, device_copy, fill_with};
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key::partition_point;
use crate::tensor::{Tensor, layout, overlap};
use crate::{check, operators};
use dml_engine::interface::{Each, Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};
use smallvec::smallvec;

operators! {
    csr_to_coo(crow_indices, col_indices, out_int32, transpose, out) {
        "aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False) -> Tensor",
        "aten::_convert_indices_from_csr_to_coo.out(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool transpose=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `crow` is `[batch.., rows + 1]`, `col` is `[batch.., nnz]`; the result is `[batch dimensions + 2, batches * nnz]`, a coordinate a row.
fn csr_to_coo(call: &mut Call, crow: &Tensor, col: &Tensor, int32: bool, transpose: bool, out: Out) -> Result<()> {
    check!(
        crow.dim() == col.dim(),
        Runtime,
        "crow_indices and col_indices are supposed to have the same dimensionality, but got {} and {} dimensional \
         tensors, respectively.",
        crow.dim(),
        col.dim()
    );
    check!(crow.dim() > 0, Index, "Dimension specified as -1 but tensor has no dimensions");
    let dtype = if int32 { DType::I32 } else { DType::I64 };
    let (batch, count) = (crow.dim() - 1, col.numel());
    let out = structured::result(call, out.given(), dtype, &[crow.dim() as i64 + 1, count])?;
    overlap::check_internal(&out)?;
    let (rows, nnz) = (crow.size(-1) - 1, col.size(-1));
    if rows <= 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else if nnz > 0 {
        let integral = !crow.dtype.is_float() && crow.dtype != DType::Bool;
        let name = "convert_indices_from_csr_to_coo_cpu";
        check!(integral, NotImplemented, "\"{name}\" not implemented for '{}'", crow.dtype);
        check!(rows < i64::from(i32::MAX), NotImplemented, "{}: {rows} rows are too many for dml", call.name);
        let batches: i64 = crow.sizes[..batch].iter().product();
        check!(
            count == batches * nnz,
            Runtime,
            "The size of tensor a ({count}) must match the size of tensor b ({}) at non-singleton dimension 1",
            batches * nnz
        );
        if count > 0 {
            convert(call, crow, col, &out, transpose)?;
        }
    }
    call.ret(out);
    Ok(())
}

/// Of at least one row and one element.
fn convert(call: &Call, crow: &Tensor, col: &Tensor, out: &Tensor, transpose: bool) -> Result<()> {
    let (crow, col) = (as_contiguous(call, crow)?, as_contiguous(call, col)?);
    let apart = out.is_contiguous() && !overlap::touches(out, &crow) && !overlap::touches(out, &col);
    let dense = if apart { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
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
    call.run_threads(&spec, &arguments, count as u64)?;
    if dense.data != out.data {
        device_copy(call, &dense, out)?;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CsrToCoo {
    crow: DType,
    col: DType,
    out: DType,
    index: ScalarType,
    /// Dimensions of the batch.
    batch: usize,
    /// Columns come before rows.
    transpose: bool,
}

parameters! {
    CsrToCoo as s => CsrToCooArguments, CsrToCooParameters {
        crow: Input = s.crow,
        col: Input = s.col,
        out: Output = s.out,
        /// Elements of all batches.
        count: Index = s.index,
        /// Elements of one.
        nnz: Index = s.index,
        rows: U32,
        /// The batch's sizes.
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
            // The row of an element is the number of rows that end at or before it. What no row holds counts to the last.
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
