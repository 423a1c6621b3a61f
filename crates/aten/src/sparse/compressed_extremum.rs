//! The largest or smallest products of compressed rows (CSR) and a dense matrix, where
//! [`compressed_mm`](super::compressed_mm) adds them up.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::movement::copy::as_contiguous;
use dml_compute::primitives::segments;
use dml_compute::primitives::work::multiply_adds;
use dml_compute::sparse::compressed_extremum::{Extremum, ExtremumArguments};
use dml_compute::view::View;
use dml_compute::view::layout::index_type;
use dml_kernel::DType;
use dml_kernel::dense::groups;

operators! {
    // Of the products `values[e] * dense[indices[e], c]` of row `r`, `e` from `offsets[r]` to
    // `offsets[r + 1]`, the extreme one and its `e`; of a row without any 0, and the number of all
    // entries.
    compressed_extremum(offsets, indices, values, dense, largest) {
        "torch_dml::compressed_extremum(Tensor offsets, Tensor indices, Tensor values, Tensor dense, bool largest) -> (Tensor, Tensor)",
    }
}

/// `offsets` (`[rows + 1]`) and `indices` (`[entries]`) are of one integer dtype, `values`
/// (`[entries]`) and `dense` (`[.., n]`) floats of one dtype; the places are int64. Of equal
/// products the first counts, of NaN, which is both largest and smallest, the last.
fn compressed_extremum(
    call: &mut Call,
    offsets: &View,
    indices: &View,
    values: &View,
    dense: &View,
    largest: bool,
) -> Result<()> {
    let dtype = dense.dtype;
    let (entries, rows) = (indices.numel(), offsets.numel() - 1);
    let index = matches!(offsets.dtype, DType::I32 | DType::I64) && indices.dtype == offsets.dtype;
    let shaped = offsets.dim() == 1 && indices.dim() == 1 && dense.dim() == 2 && rows >= 0;
    let weights = dtype.is_float() && values.dtype == dtype && values.sizes == indices.sizes;
    check!(
        index && shaped && weights,
        Runtime,
        "{}: offsets {}, indices {}, values {} and dense {} do not fit each other",
        call.name,
        offsets.describe(),
        indices.describe(),
        values.describe(),
        dense.describe()
    );
    let sizes = [rows, dense.sizes[1]];
    let (out, places) = (call.empty(dtype, &sizes)?, call.empty(DType::I64, &sizes)?);
    if out.numel() > 0 {
        let (offsets, indices) = (&as_contiguous(call, offsets)?, &as_contiguous(call, indices)?);
        let (values, dense) = (&as_contiguous(call, values)?, &as_contiguous(call, dense)?);
        let index = index_type(out.numel().max(dense.numel()).max(entries));
        let mut continued = false;
        for part in segments::parts(call, entries.max(1)) {
            let spec = Extremum { offsets: offsets.dtype, dtype, largest, continued, index };
            let taken = if dense.numel() == 0 { 0 } else { entries };
            let arguments = ExtremumArguments {
                offsets,
                indices,
                values,
                dense,
                out: &out,
                places: &places,
                extent: [rows, sizes[1], dense.sizes[0], taken],
                part,
                fault: call.fault_of_index(),
            };
            let operations = multiply_adds(dtype, (entries * sizes[1]) as u64);
            call.run_heavy(&spec, &arguments, groups(out.numel() as u64), operations)?;
            continued = true;
        }
    }
    call.ret(out);
    call.ret(places);
    Ok(())
}
