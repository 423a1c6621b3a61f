//! The random numbers by which attention's dropout chooses, as a tensor: what a program needs to repeat it.

use super::dropout::DROPPED_TOGETHER;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::fill::words_of;
use crate::random::philox::{Source, unit};
use crate::tensor::Tensor;
use crate::tensor::layout::index_type;
use crate::{check, operators};
use dml_engine::interface::Index;
use dml_engine::{RandomSource, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

operators! {
    fill(self, seed, offset) {
        "aten::_fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) -> Tensor(a!)",
    }
}

/// Fills `[batch, heads, queries, keys]` with numbers in (0, 1]. Attention that was given this seed and offset back keeps a weight
/// where its number is above the share that is dropped.
fn fill(call: &mut Call, mask: &Tensor, seed: i64, offset: i64) -> Result<()> {
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

/// An invocation draws for a few neighbouring keys, as attention does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        mask: Output = DType::F32,
        source: Source = false,
        keys: Index = s.index,
        /// Blocks of random words.
        blocks: Index = s.index,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "dropout_mask"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let block = linear_id(b, self.index);
        b.if_(block.lt(p.blocks), || {
            let each = (p.keys + (DROPPED_TOGETHER - 1)) / DROPPED_TOGETHER;
            let (line, key) = (block / each, block % each * DROPPED_TOGETHER);
            for (i, u) in unit(words_of(p.source, block), DType::F32).into_iter().enumerate() {
                let key = key + i as u32;
                b.if_(key.lt(p.keys), || p.mask.store(line * p.keys + key, 1.0 - u));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for index in [ScalarType::U32, ScalarType::U64] {
            accepted(&Spec { index }.build());
        }
    }
}
