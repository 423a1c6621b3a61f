//! Chosen elements of the product of two dense matrices: those of a sparse pattern.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::{as_contiguous, fill_with};
use dml_compute::primitives::loops::turns_allowed;
use dml_compute::primitives::work::multiply_adds;
use dml_compute::scalar::Scalar as Number;
use dml_compute::sparse::compressed_mm::widest;
use dml_compute::sparse::sampled_mm::{SampledProduct, SampledProductArguments};
use dml_compute::view::View;
use dml_compute::view::layout::index_type;
use dml_kernel::{DType, dense};

operators! {
    // Element `e` of the result is the product of row `rows[e]` of `a` and row `columns[e]` of `b`.
    sampled_mm(rows, columns, a, b) {
        "torch_dml::sampled_mm(Tensor rows, Tensor columns, Tensor a, Tensor b) -> Tensor",
    }
}

/// `rows` and `columns` (`[entries]`) are of one integer dtype, `a` (`[.., k]`) and `b` (`[.., k]`)
/// of one other. Sums are those of the compute dtype, in order; an index without a row is reported.
fn sampled_mm(call: &mut Call, rows: &View, columns: &View, a: &View, b: &View) -> Result<()> {
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
