//! The random numbers by which attention's dropout chooses, as a tensor: what a program needs to
//! repeat it.

use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::{check, operators};
use dml_compute::attention::dropout::DROPPED_TOGETHER;
use dml_compute::attention::dropout_mask::{Arguments, Spec};
use dml_compute::view::View;
use dml_compute::view::layout::index_type;
use dml_engine::RandomSource;
use dml_kernel::DType;

operators! {
    fill(self, seed, offset) {
        "aten::_fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) -> Tensor(a!)",
    }
}

/// Fills `[batch, heads, queries, keys]` with numbers in (0, 1]. Attention that was given this seed
/// and offset back keeps a weight where its number is above the share that is dropped.
fn fill(call: &mut Call, mask: &View, seed: i64, offset: i64) -> Result<()> {
    check!(mask.is_contiguous(), Runtime, "{}: expected a contiguous tensor", call.name);
    check!(mask.dtype == DType::F32, Runtime, "{}: expected a tensor of float32, got {}", call.name, mask.dtype);
    check!(mask.dim() == 4, Runtime, "{}: expected 4 dimensions, got {}", call.name, mask.describe());
    if mask.numel() > 0 {
        let keys = mask.size(-1);
        let each = i64::from(DROPPED_TOGETHER);
        let blocks = mask.numel() / keys * ((keys + each - 1) / each);
        let source = RandomSource::Known { seed: seed as u64, counter: offset as u64 };
        let spec = Spec { index: index_type(mask.numel().max(blocks)) };
        call.run_threads(&spec, &Arguments { mask, source, keys, blocks }, blocks as u64)?;
    }
    call.ret(mask.clone());
    Ok(())
}
