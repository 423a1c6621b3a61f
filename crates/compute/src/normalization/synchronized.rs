//! The parts of a batch normalisation whose batch is distributed over several devices
//! (SyncBatchNorm). Statistics are in the accumulator's dtype: float32 for half-precision inputs.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::functions::GRADIENT_MEANS;
use crate::pointwise::arithmetic::MUL;
use crate::pointwise::kernel::{self, Input};
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::reduction::variance::{Moments, Results};
use crate::scalar::Scalar as Number;
use crate::view::View;
use dml_kernel::{ScalarType, Value, math};
use smallvec::{SmallVec, smallvec};

/// Combines the statistics of parts: `parts` are their means, inverse deviations and counts, each
/// `[parts, channels]`. Writes the mean, the inverse deviation and the sample variance,
/// `[channels]` each, in the accumulator's dtype.
pub fn gather(cx: &Context, parts: [&View; 3], eps: f64, outs: [&View; 3]) -> Result<()> {
    let dtype = accumulator(parts[0].dtype);
    let fold = Gather(Moments { scalar: dtype.compute(), results: Results::Normalizer { infinite: true } });
    let axes = Axes::of_dims(&[0], 2, false);
    let numbers = [(dtype, Number::Double(eps))];
    reduce(cx, &fold, &Reduction { inputs: &parts, outs: &outs, axes, tables: &[], numbers: &numbers })
}

/// The gradient of the weight: `product * scale`, `[channels]` each, where `product` is the sum of
/// the gradient times the centred input, in the accumulator's dtype.
pub fn weight_gradient(cx: &Context, product: &View, scale: &View, out: &View) -> Result<()> {
    let inputs = [product, scale].map(|t| Input::Tensor(t.clone()));
    kernel::run(cx, &MUL, &[out], &inputs, product.dtype)
}

/// Means over all parts of the gradient and of its product with the normalised input, `[channels]`
/// each: `sum / count` and `product * scale / count`. `sums` are the sum, the product with the
/// centred input, the inverse deviation and the count (without dimensions).
pub fn gradient_means(cx: &Context, sums: [&View; 4], means: [&View; 2]) -> Result<()> {
    let inputs = sums.map(|t| Input::Tensor(t.clone()));
    kernel::run(cx, &GRADIENT_MEANS, &means, &inputs, means[0].dtype)
}

/// Combines parts, each given by its mean, inverse deviation and count. `numbers[0]` is eps.
/// Results: the mean, the inverse deviation, and the sample variance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Gather(Moments);

impl Fold for Gather {
    fn name(&self) -> &'static str {
        "gather_statistics"
    }

    fn accumulators(&self, index: ScalarType) -> SmallVec<[ScalarType; 3]> {
        self.0.accumulators(index)
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        self.0.identity(s)
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let [mean, scale, count] = [0, 1, 2].map(|i| elements[i].cast(self.0.scalar));
        let variance: Value = 1.0 / (scale * scale) - s.numbers[0];
        smallvec![count, mean, mean.like(0.0), variance.max(0.0) * count]
    }

    fn combine<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        self.0.combine(s, x, y)
    }

    fn project<'b>(&self, s: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
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
