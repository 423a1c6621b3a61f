//! Chosen elements of the product of two dense matrices: those of a sparse pattern.

use super::compressed_mm::{is_below, multiply_add, widest};
use crate::movement::copy::{as_contiguous, fill_with};
use crate::operator::call::{Call, Scalar as Number};
use crate::operator::error::Result;
use crate::operator::fault::Fault;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::primitives::loops::turns_allowed;
use crate::primitives::work::multiply_adds;
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::{check, operators};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::{self, linear_id};
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    // Element `e` of the result is the product of row `rows[e]` of `a` and row `columns[e]` of `b`.
    sampled_mm(rows, columns, a, b) {
        "torch_dml::sampled_mm(Tensor rows, Tensor columns, Tensor a, Tensor b) -> Tensor",
    }
}

/// `rows` and `columns` (`[entries]`) are of one integer dtype, `a` (`[.., k]`) and `b` (`[.., k]`) of one other. Sums are those of
/// the compute dtype, in order; an index without a row is reported.
fn sampled_mm(call: &mut Call, rows: &Tensor, columns: &Tensor, a: &Tensor, b: &Tensor) -> Result<()> {
    let index = matches!(rows.dtype, DType::I32 | DType::I64) && columns.dtype == rows.dtype;
    let shaped = rows.dim() == 1 && columns.sizes == rows.sizes && a.dim() == 2 && b.dim() == 2;
    let entries = rows.numel();
    check!(
        index && shaped && a.sizes[1] == b.sizes[1] && a.dtype == b.dtype && a.dtype != DType::Bool,
        Runtime,
        "{}: rows {}, columns {}, a {} and b {} do not fit each other",
        call.name,
        rows.describe(),
        columns.describe(),
        a.describe(),
        b.describe()
    );
    let out = call.empty(a.dtype, &[entries])?;
    if a.numel() == 0 || b.numel() == 0 {
        fill_with(call, &out, Number::Int(0))?;
    } else if entries > 0 {
        let [rows, columns, a, b] = [rows, columns, a, b].map(|t| as_contiguous(call, t));
        let (rows, columns, a, b) = (&rows?, &columns?, &a?, &b?);
        let wide = widest(a.dtype, a.sizes[1], &[a.data, b.data]);
        let chunks = a.sizes[1] / i64::from(wide);
        let fits = turns_allowed(call).is_none_or(|allowed| chunks <= allowed);
        check!(fits, NotImplemented, "{}: rows of {} elements on a software adapter", call.name, a.sizes[1]);
        let index = index_type(a.numel().max(b.numel()).max(entries));
        let spec = SampledProduct { indices: rows.dtype, dtype: a.dtype, wide, index };
        let extent = [entries, chunks, a.sizes[0], b.sizes[0]];
        let arguments =
            SampledProductArguments { rows, columns, a, b, out: &out, extent, fault: call.fault_of_index() };
        let operations = multiply_adds(a.dtype, (entries * a.sizes[1]) as u64);
        call.run_heavy(&spec, &arguments, dense::groups(entries as u64), operations)?;
    }
    call.ret(out);
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SampledProduct {
    indices: DType,
    dtype: DType,
    /// Elements that are loaded at once.
    wide: u32,
    index: ScalarType,
}

parameters! {
    SampledProduct as s => SampledProductArguments, SampledProductParameters {
        rows: Input = s.indices,
        columns: Input = s.indices,
        a: Input = s.dtype,
        b: Input = s.dtype,
        out: Output = s.dtype,
        /// Entries, chunks of a row, rows of `a` and of `b`.
        extent: [Index; 4] = s.index,
        fault: Fault,
    }
}

impl KernelSpec for SampledProduct {
    fn name(&self) -> &'static str {
        "sampled_mm"
    }

    fn write<'b>(&self, b: &'b Builder, p: SampledProductParameters<'b>) {
        let [entries, chunks, ..] = p.extent;
        let at = linear_id(b, self.index);
        b.if_(at.lt(entries), || {
            let (row, column) = (p.rows.load(at), p.columns.load(at));
            let row_known = is_below(b, row, p.extent[2], &p.fault);
            let column_known = is_below(b, column, p.extent[3], &p.fault);
            b.if_(row_known & column_known, || {
                let first = |i: dml_kernel::Value<'b>| i.cast(self.index) * chunks;
                let (row, column) = (first(row), first(column));
                let sum = b.var(b.constant_of(self.dtype.compute(), 0.0));
                b.for_(b.int(self.index, 0), chunks, 1, |chunk| {
                    let left = p.a.load_chunk(row + chunk, self.wide);
                    let right = p.b.load_chunk(column + chunk, self.wide);
                    for (x, y) in left.into_iter().zip(right) {
                        sum.set(multiply_add(x, y, sum.get()));
                    }
                });
                p.out.store(at, sum.get());
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
        for (dtype, indices, wide, index) in [
            (DType::F32, DType::I64, 4, ScalarType::U32),
            (DType::F64, DType::I32, 1, ScalarType::U64),
            (DType::F16, DType::I64, 8, ScalarType::U32),
            (DType::BF16, DType::I64, 1, ScalarType::U32),
            (DType::I32, DType::I64, 2, ScalarType::U32),
        ] {
            accepted(&SampledProduct { indices, dtype, wide, index }.build());
        }
    }
}
