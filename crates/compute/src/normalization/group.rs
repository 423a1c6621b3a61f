//! Group normalisation: over the channels of a group and all positions, for each element of the
//! batch (Y. Wu and K. He, "Group normalization", ECCV 2018).

use crate::normalization::terms::times;
use crate::reduction::fold::{Fold, Scope, Values};
use dml_kernel::{ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Sums of two inputs, weighted by a third if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weighted {
    pub scalar: ScalarType,
    pub weighted: bool,
}

impl Fold for Weighted {
    fn name(&self) -> &'static str {
        "weighted_sums"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar; 2]
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); 2]
    }

    fn map<'b>(&self, _: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let weight = self.weighted.then(|| elements[2].cast(self.scalar));
        elements[..2].iter().map(|&x| times(x, weight)).collect()
    }

    fn combine<'b>(&self, _: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0], x[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        let dtype = DType::F32;
        validate(&Weighted { scalar: dtype.compute(), weighted: true }, &[dtype; 3], &[dtype; 2], &[]);
        validate(&Weighted { scalar: dtype.compute(), weighted: false }, &[dtype; 2], &[dtype; 2], &[]);
    }
}
