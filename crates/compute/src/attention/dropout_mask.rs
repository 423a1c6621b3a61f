//! The random numbers of attention's dropout, as a tensor: for programs that reproduce the dropout.

use crate::attention::dropout::KEYS_PER_RANDOM_BLOCK;
use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::fill::words_of;
use crate::random::philox::{Source, unit};
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::Index;
use dml_engine::{RandomSource, parameters};
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// Fills `mask` (`[batch, heads, queries, keys]`, float32, contiguous, not empty) with numbers in
/// (0, 1]. Attention with the same seed and offset keeps a weight if its number is greater than the
/// dropout probability.
pub fn fill(cx: &Context, mask: &View, seed: u64, offset: u64) -> Result<()> {
    let keys = mask.size(-1);
    let each = i64::from(KEYS_PER_RANDOM_BLOCK);
    let blocks = mask.numel() / keys * ((keys + each - 1) / each);
    let source = RandomSource::Known { seed, counter: offset };
    let spec = Spec { index: index_type(mask.numel().max(blocks)) };
    cx.run_threads(&spec, &Arguments { mask, source, keys, blocks }, blocks as u64)
}

/// An invocation draws the numbers of a few adjacent keys, as attention does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        mask: Output = DType::F32,
        source: Source = false,
        keys: Index = s.index,
        /// Number of blocks of random words.
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
            let each = (p.keys + (KEYS_PER_RANDOM_BLOCK - 1)) / KEYS_PER_RANDOM_BLOCK;
            let (line, key) = (block / each, block % each * KEYS_PER_RANDOM_BLOCK);
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
