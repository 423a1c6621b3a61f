//! Group normalisation: over the channels of a group and all positions, for each element of the
//! batch (Y. Wu and K. He, "Group normalization", ECCV 2018).

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::terms::times;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::view::View;
use dml_kernel::{ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Sums of two tensors of one shape over `axes`, with each element multiplied by its `weight`, if
/// given: `outs = [sum(x[0] * weight), sum(x[1] * weight)]`. Inputs and results are in an
/// accumulator's dtype.
pub fn weighted_sums(cx: &Context, x: [&View; 2], weight: Option<&View>, axes: Axes, outs: [&View; 2]) -> Result<()> {
    let fold = Weighted { scalar: accumulator(x[0].dtype).compute(), weighted: weight.is_some() };
    let inputs: SmallVec<[&View; 3]> = x.into_iter().chain(weight).collect();
    reduce(cx, &fold, &Reduction { inputs: &inputs, outs: &outs, axes, tables: &[], numbers: &[] })
}

/// Sums of two inputs, weighted by an optional third.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Weighted {
    scalar: ScalarType,
    weighted: bool,
}

impl Fold for Weighted {
    fn name(&self) -> &'static str {
        "weighted_sums"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar; 2]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); 2]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let weight = self.weighted.then(|| elements[2].cast(self.scalar));
        elements[..2].iter().map(|&x| times(x, weight)).collect()
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
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
