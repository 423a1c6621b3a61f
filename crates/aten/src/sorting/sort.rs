//! The operators of sorting along a dimension. Always stable: NaN is the largest, and equal
//! elements keep their order.

use crate::operator::argument::Outs;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::operators;
use crate::tensor::overlap;
use dml_compute::movement::copy::separate;
use dml_compute::primitives::row_operands::Operands;
use dml_compute::sorting::sort::sort_into;
use dml_compute::view::View;
use dml_compute::view::layout::preserved_strides;
use dml_kernel::DType;

operators! {
    sort(self, dim, descending, outs) {
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
        "aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    }
}

fn sort(call: &mut Call, input: &View, dim: i64, descending: bool, outs: Outs) -> Result<()> {
    let dim = call.wrap_dim(dim, input.dim())?;
    let given = |i: usize| outs.as_ref().map(|outs| outs[i]);
    let strides = || preserved_strides(input);
    let values = structured::result_strided(call, given(0), input.dtype, &input.sizes, strides)?;
    let indices = structured::result_strided(call, given(1), DType::I64, &input.sizes, strides)?;
    for t in [&values, &indices] {
        overlap::check_partial(t, [input])?;
    }
    if input.numel() > 0 {
        // The values are read again after their positions are known.
        let input = separate(call, &values, input)?;
        sort_into(call, &Operands::new(&input, dim, &values, &indices), descending)?;
    }
    call.ret(values);
    call.ret(indices);
    Ok(())
}
