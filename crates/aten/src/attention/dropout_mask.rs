//! The random numbers of attention's dropout, as a tensor: for programs that reproduce the dropout.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::attention::dropout_mask;
use dml_compute::view::View;
use dml_kernel::DType;

operators! {
    fill(self, seed, offset) {
        "aten::_fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) -> Tensor(a!)",
    }
}

/// Fills `[batch, heads, queries, keys]` with numbers in (0, 1]. Attention with the same seed and
/// offset keeps a weight if its number is greater than the dropout probability.
fn fill(call: &mut Call, mask: &View, seed: i64, offset: i64) -> Result<()> {
    check!(mask.is_contiguous(), Runtime, "{}: expected a contiguous tensor", call.name);
    check!(mask.dtype == DType::F32, Runtime, "{}: expected a tensor of float32, got {}", call.name, mask.dtype);
    check!(mask.dim() == 4, Runtime, "{}: expected 4 dimensions, got {}", call.name, mask.describe());
    if mask.numel() > 0 {
        dropout_mask::fill(call, mask, seed as u64, offset as u64)?;
    }
    call.ret(mask.clone());
    Ok(())
}
