//! Moving and filling the elements under a mask. The number of those selected is read back: it is a size.

use super::arguments::warn_if_expanded;
use super::fill_value::check_value;
use super::mask::{Count, Visit};
use crate::movement::copy::{apart, as_bits, as_contiguous, device_copy, fill_with};
use crate::operator::argument::{Out, TensorOrScalar};
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::pointwise::kernel::{self, Input};
use crate::pointwise::operator::input;
use crate::primitives::kernel::{Input as Read, KernelSpec, Output};
use crate::tensor::layout::{Layout, LayoutSpec, Walked};
use crate::tensor::{Tensor, overlap};
use crate::{check, operators};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType};

operators! {
    masked_select(self, mask, out) {
        "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
        "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)",
    }
    masked_fill(self, mask, value, out) {
        "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
        "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
        "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
        "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
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

/// A new result is contiguous. The value is converted as the CPU does, which refuses numbers that do not fit.
fn masked_fill(call: &mut Call, t: &Tensor, mask: &Tensor, value: TensorOrScalar, out: Out) -> Result<()> {
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
            check!(
                sizes == t.sizes,
                Runtime,
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                t.sizes.as_slice(),
                sizes.as_slice()
            );
            warn_if_expanded(call, t, "masked_fill_");
            overlap::check_partial(t, [mask])?;
            (t.clone(), t.clone())
        }
    };
    fill_under_mask(call, &from, mask.expand(&sizes), value, &out)?;
    call.ret(out);
    Ok(())
}

/// Writes `t` with a number under a mask of its sizes, to `out`, which may be `t`: no count is needed.
pub fn fill_under_mask(call: &Call, t: &Tensor, mask: Tensor, value: Input, out: &Tensor) -> Result<()> {
    if overlap::is_expanded(out) {
        return store_under_mask(call, out, &mask, value);
    }
    let inputs = [Input::Tensor(t.clone()), Input::Tensor(mask), value];
    kernel::run(call, "masked_fill", &[out], &inputs, t.dtype, |_, v| vec![v[1].ne(0).select(v[2], v[0])])
}

/// Several elements of an expanded tensor are one place, which is written if any of them is under the mask.
fn store_under_mask(call: &Call, t: &Tensor, mask: &Tensor, value: Input) -> Result<()> {
    let cell = call.empty(t.dtype, &[])?;
    match value {
        Input::Number(number, _) => fill_with(call, &cell, number)?,
        Input::Tensor(value) => device_copy(call, &value, &cell)?,
    }
    let layout = Layout::row_major(&t.sizes, &[&t.strides, &mask.strides]);
    let spec = StoreSpec { dtype: t.dtype.bits(), mask: mask.dtype, layout: layout.spec() };
    let n = t.numel();
    let arguments =
        StoreArguments { t: &as_bits(t, t).0, value: &as_bits(&cell, &cell).0, under: mask, n, layout: &layout };
    call.run_threads(&spec, &arguments, n as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StoreSpec {
    dtype: DType,
    mask: DType,
    layout: LayoutSpec,
}

parameters! {
    StoreSpec as s => StoreArguments, StoreParameters {
        t: Output = s.dtype,
        value: Read = s.dtype,
        under: Read = s.mask,
        n: Index = s.layout.index,
        layout: Walked = s.layout,
    }
}

impl KernelSpec for StoreSpec {
    fn name(&self) -> &'static str {
        "masked_store"
    }

    fn write<'b>(&self, b: &'b Builder, p: StoreParameters<'b>) {
        let i = linear_id(b, self.layout.index);
        b.if_(i.lt(p.n), || {
            let at = p.layout.offsets(b, i);
            b.if_(p.under.load(at[1]).ne(0), || p.t.store(at[0], p.value.load(b.int(self.layout.index, 0))));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;
    use dml_kernel::ScalarType;

    #[test]
    fn kernels_are_valid() {
        for (dtype, index) in [(DType::U8, ScalarType::U32), (DType::U64, ScalarType::U64)] {
            let layout = LayoutSpec { rank: 2, operands: 2, index };
            accepted(&StoreSpec { dtype, mask: DType::Bool, layout }.build());
        }
    }
}
