//! Moving the elements under a mask. The number of those selected is read back: it is a size.

use super::mask::{Count, Visit};
use crate::movement::copy::{apart, as_contiguous, device_copy};
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::tensor::{Tensor, overlap};
use crate::{check, operators};
use dml_kernel::DType;

operators! {
    masked_select(self, mask, out) {
        "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
        "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)",
    }
    masked_scatter(self, mask, source) {
        "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    }
}

fn masked_select(call: &mut Call, t: &Tensor, mask: &Tensor, out: Out) -> Result<()> {
    let out = out.given();
    check!(mask.dtype == DType::Bool, Runtime, "masked_select: expected BoolTensor for mask");
    if let Some(out) = out {
        let given = out.dtype;
        check!(given == t.dtype, Runtime, "masked_select(): self and result must have the same scalar type");
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
        count.visit(call, Visit::Select { from: &t, row: &row }, total)?;
        if row.data != out.data {
            device_copy(call, &row, &out)?;
        }
    }
    call.ret(out);
    Ok(())
}

fn masked_scatter(call: &mut Call, t: &Tensor, mask: &Tensor, source: &Tensor) -> Result<()> {
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
    check!(
        sizes == t.sizes,
        Runtime,
        "output with shape {:?} doesn't match the broadcast shape {:?}",
        t.sizes.as_slice(),
        sizes.as_slice()
    );
    overlap::check_internal(t)?;
    if t.numel() > 0 {
        let mask = apart(call, t, &mask.expand(&sizes))?;
        let source = apart(call, t, &as_contiguous(call, source)?)?;
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
        count.visit(call, Visit::Scatter { row: &source, to: t }, source.numel())?;
    }
    call.ret(t.clone());
    Ok(())
}

/// A number under a mask that broadcasts to `t`: no count is needed.
pub fn fill_under_mask(call: &Call, t: &Tensor, mask: Tensor, value: Input) -> Result<()> {
    let inputs = [Input::Tensor(t.clone()), Input::Tensor(mask), value];
    kernel::run(call, "masked_fill", &[t], &inputs, t.dtype, |_, v| vec![v[1].ne(0).select(v[2], v[0])])
}
