//! The parts of a batch normalisation whose batch is spread over several devices (SyncBatchNorm).
//! Statistics are in the accumulator's dtype: float32 for half-precision inputs.

use crate::reduction::fold::{Fold, Scope, Values};
use crate::reduction::variance::Moments;
use dml_kernel::{ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Joins parts, each given by its mean, inverse deviation and count. `numbers[0]` is eps. Yields
/// the mean, the inverse deviation, and the variance of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gather(pub Moments);

impl Fold for Gather {
    fn name(&self) -> &'static str {
        "gather_statistics"
    }

    fn accumulators(&self, index: ScalarType) -> SmallVec<[ScalarType; 3]> {
        self.0.accumulators(index)
    }

    fn identity<'b>(&self, s: &Scope<'b>) -> Values<'b> {
        self.0.identity(s)
    }

    fn map<'b>(&self, s: &Scope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [mean, scale, count] = [0, 1, 2].map(|i| elements[i].cast(self.0.scalar));
        let variance: Value = 1.0 / (scale * scale) - s.numbers[0];
        smallvec![count, mean, mean.like(0.0), variance.max(0.0) * count]
    }

    fn combine<'b>(&self, s: &Scope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        self.0.combine(s, x, y)
    }

    fn project<'b>(&self, s: &Scope<'b>, x: &[Value<'b>]) -> Values<'b> {
        let scale = math::rsqrt(x[3] / x[0] + s.numbers[0]);
        smallvec![x[1], scale, x[3] / (x[0] - 1.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;
    use crate::reduction::variance::Results;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        let dtype = DType::F32;
        let fold = Gather(Moments { scalar: dtype.compute(), results: Results::Normalizer { infinite: true } });
        validate(&fold, &[dtype; 3], &[dtype; 3], &[dtype]);
    }
}
