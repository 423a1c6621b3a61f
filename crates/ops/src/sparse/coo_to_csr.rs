//! Coordinates (COO) to compressed rows (CSR): where each row begins instead of each element's row.

use crate::movement::copy::{as_contiguous, device_copy, fill_with};
use crate::operator::argument::Out;
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::sorting::key::partition_point;
use crate::tensor::{Tensor, layout, overlap};
use crate::{check, operators};
use dml_engine::interface::{Index, U32};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    coo_to_csr(self, size, out_int32, out) {
        "aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
        "aten::_convert_indices_from_coo_to_csr.out(Tensor self, int size, *, bool out_int32=False, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// `rows` holds the row of each element, in ascending order; the result is `[size + 1]`: how many elements come before each of
/// `size` rows, and how many there are before row `size`.
fn coo_to_csr(call: &mut Call, rows: &Tensor, size: i64, int32: bool, out: Out) -> Result<()> {
    check!(rows.dim() <= 1, Runtime, "Input is supposed to be a vector, but got {} dimensional tensor.", rows.dim());
    check!(size >= -1, Runtime, "Trying to create tensor with negative dimension {0}: [{0}]", size.saturating_add(1));
    let dtype = if int32 { DType::I32 } else { DType::I64 };
    let out = structured::result(call, out.given(), dtype, &[size + 1])?;
    overlap::check_internal(&out)?;
    if rows.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else {
        let integral = !rows.dtype.is_float() && rows.dtype != DType::Bool;
        let name = "convert_indices_from_coo_to_csr_cpu";
        check!(integral, NotImplemented, "\"{name}\" not implemented for '{}'", rows.dtype);
        let most = i64::from(i32::MAX);
        check!(rows.numel() < most, NotImplemented, "{}: {} elements are too many for dml", call.name, rows.numel());
        if out.numel() > 0 {
            convert(call, rows, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

/// Of at least one element.
fn convert(call: &Call, rows: &Tensor, out: &Tensor) -> Result<()> {
    let rows = as_contiguous(call, rows)?;
    let apart = out.is_contiguous() && !overlap::touches(out, &rows);
    let dense = if apart { out.clone() } else { call.empty(out.dtype, &out.sizes)? };
    let count = dense.numel();
    let spec = CooToCsr { rows: rows.dtype, out: out.dtype, index: layout::index_type(count.max(rows.numel())) };
    let arguments = CooToCsrArguments { rows: &rows, out: &dense, count, elements: rows.numel() as u32 };
    call.run_threads(&spec, &arguments, count as u64)?;
    if dense.data != out.data {
        device_copy(call, &dense, out)?;
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
