//! The random numbers by which attention's dropout chooses, as a tensor: what a program needs to
//! repeat it.

use crate::attention::dropout::DROPPED_TOGETHER;
use crate::primitives::kernel::{KernelSpec, Output};
use crate::random::fill::words_of;
use crate::random::philox::{Source, unit};
use dml_engine::interface::Index;
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// An invocation draws for a few neighbouring keys, as attention does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    pub index: ScalarType,
}

parameters! {
    pub Spec as s => Arguments, Parameters {
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
