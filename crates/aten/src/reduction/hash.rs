//! hash_tensor: the exclusive or of all elements' bits, as 64-bit numbers.

use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::reduction::hash;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    hash(self, dim, keepdim, mode, out) {
        "aten::hash_tensor.out(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0, Tensor(a!) out) -> Tensor(a!)",
    }
}

fn hash(call: &mut Call, input: &View, dim: &[i64], keep: bool, mode: i64, out: Out) -> Result<()> {
    if let Some(given) = out.given() {
        let dtype = given.dtype;
        check!(dtype == DType::U64, Runtime, "Expected result to be of dtype uint64, but got {dtype}");
    }
    let axes = crate::reduction::axes::axes_of(call, Some(dim), input.dim(), keep)?;
    check!(mode == 0, Runtime, "Unsupported hash mode: {mode}");
    let out = call.result(out.given(), DType::U64, &axes.sizes(&input.sizes))?;
    hash::hash(call, input, axes, &out)?;
    call.ret(out);
    Ok(())
}
