//! Operators that move or fill elements by mask. The number of set elements is read back if it is a
//! size of the result.

use crate::indexing::arguments::warn_if_expanded;
use crate::indexing::fill_value::check_value;
use crate::movement::copies::{checked_copy, without_overlap};
use crate::operator::argument::{Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::pointwise::operator::input;
use crate::tensor::overlap;
use crate::{check, operators};
use dml_compute::indexing::mask::{Count, MaskAction};
use dml_compute::indexing::masked::fill_under_mask;
use dml_compute::movement::copy::as_contiguous;
use dml_compute::pointwise::kernel::Input;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    masked_select(self, mask, out).complex(Complex::Run(complex::run_as_bits)).float8(float8::run_as_bits) {
        "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
        "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)",
    }
    masked_fill(self, mask, value, out).complex(Complex::Run(complex::movement::masked_fill)) {
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
        "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
        "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    }
    masked_scatter(self, mask, source).complex(Complex::Run(complex::run_as_bits)) {
        "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    }
}

fn masked_select(call: &mut Call, t: &View, mask: &View, out: Out) -> Result<()> {
    let out = out.given();
    check!(mask.dtype == DType::Bool, Runtime, "masked_select: expected BoolTensor for mask");
    if let Some(out) = out {
        let given = out.dtype;
        check!(given == t.dtype, Runtime, "masked_select(): self and result must have the same scalar type");
        overlap::check_internal(out)?;
    }
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    let (t, mask) = (t.expand(&sizes), mask.expand(&sizes));
    if mask.numel() == 0 {
        let out = call.result(out, t.dtype, &[0])?;
        call.ret(out);
        return Ok(());
    }
    let count = Count::new(call, &mask)?;
    let total = count.total(call)?;
    let out = call.result(out, t.dtype, &[total])?;
    overlap::check_none(&out, &[&t, &mask])?;
    if total > 0 {
        let row = if out.is_contiguous() { out.clone() } else { call.empty(t.dtype, &[total])? };
        count.apply(call, MaskAction::Select { from: &t, row: &row }, total)?;
        if row.data != out.data {
            checked_copy(call, &row, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn masked_scatter(call: &mut Call, t: &View, mask: &View, source: &View) -> Result<()> {
    check!(
        t.dtype == source.dtype,
        Runtime,
        "masked_scatter: expected self and source to have same dtypes but got {} and {}",
        t.dtype,
        source.dtype
    );
    check!(
        mask.dtype == DType::Bool,
        Runtime,
        "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype
    );
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    structured::check_shape(&t.sizes, &sizes)?;
    overlap::check_internal(t)?;
    if t.numel() > 0 {
        let mask = without_overlap(call, t, &mask.expand(&sizes))?;
        let source = without_overlap(call, t, &as_contiguous(call, source)?)?;
        let count = Count::new(call, &mask)?;
        if source.numel() < mask.numel() {
            let total = count.total(call)?;
            check!(
                total <= source.numel(),
                Runtime,
                "Number of elements of source < number of ones in mask ({} < {total})",
                source.numel()
            );
        }
        count.apply(call, MaskAction::Scatter { row: &source, to: t }, source.numel())?;
    }
    call.ret(t.clone());
    Ok(())
}

/// A new result is contiguous. The value is converted as on the CPU, which refuses numbers out of
/// range.
fn masked_fill(call: &mut Call, t: &View, mask: &View, value: TensorOrScalar, out: Out) -> Result<()> {
    check!(
        mask.dtype == DType::Bool,
        Runtime,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype
    );
    let value = match value {
        TensorOrScalar::Scalar(s) => Input::Number(s, t.dtype),
        TensorOrScalar::Tensor(value) => {
            check!(
                value.dim() == 0,
                Runtime,
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                value.dim()
            );
            input(call, &value)?
        }
    };
    check_value(call, &value, t.dtype)?;
    let sizes = call.broadcast(&t.sizes, &mask.sizes)?;
    let (from, out) = match out {
        Out::New => (t.expand(&sizes), call.empty(t.dtype, &sizes)?),
        _ => {
            structured::check_shape(&t.sizes, &sizes)?;
            warn_if_expanded(call, t, "masked_fill_");
            overlap::check_partial(t, [mask])?;
            (t.clone(), t.clone())
        }
    };
    fill_under_mask(call, &from, mask.expand(&sizes), value, &out)?;
    call.ret(out);
    Ok(())
}
