//! The operator mode: the most frequent element along a dimension; of several the smallest one. NaN
//! does not equal NaN.

use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::sorting::rank::reduced;
use crate::{check, operators};
use dml_compute::primitives::row_operands::Operands;
use dml_compute::sorting::mode::most_frequent;
use dml_compute::sorting::sort::{by_rows, emit};
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    mode(self, dim, keepdim, outs) {
        "aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "aten::mode.values(Tensor self, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
}

fn mode(call: &mut Call, input: &View, dim: i64, keep: bool, outs: Outs) -> Result<()> {
    if let Some([values, indices]) = outs.as_deref() {
        for (name, out, dtype) in [("values", values, input.dtype), ("indices", indices, DType::I64)] {
            check!(
                out.dtype == dtype,
                Runtime,
                "expected scalar type '{dtype}' but got '{}' for {name} output",
                out.dtype
            );
        }
    }
    let dim = call.wrap_dim(dim, input.dim())?;
    let n = input.sizes.get(dim).copied().unwrap_or(1);
    check!(n != 0, Index, "mode(): Expected reduction dim {dim} to have non-zero size.");
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let [values, value_rows] = reduced(call, given(0), input.dtype, input, dim, keep)?;
    let [indices, index_rows] = reduced(call, given(1), DType::I64, input, dim, keep)?;
    if values.numel() > 0 {
        let o = Operands::new(input, dim, &value_rows, &index_rows);
        let (elements, order) = by_rows(call, input, dim, false)?;
        let positions = most_frequent(call, &elements, &order, &o)?;
        emit(call, &o, &positions, 1)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}
