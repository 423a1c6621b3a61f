//! Sums of the gradient over elements that are normalised together, or that share a parameter.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::normalization::terms::{minus, pick, presence, times};
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::view::View;
use dml_kernel::{ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// The terms of the sums: `t = grad * weight` and `t * (x - mean) * scale`, without absent factors.
/// Views of one shape.
pub struct Products<'t> {
    /// The gradient of the result.
    pub grad: &'t View,
    /// The input.
    pub x: &'t View,
    /// The input's mean.
    pub mean: Option<&'t View>,
    /// The inverse of the input's deviation.
    pub scale: Option<&'t View>,
    /// The weight of the normalised input.
    pub weight: Option<&'t View>,
}

/// Accumulates the products, then the terms `t`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fields {
    scalar: ScalarType,
    /// The terms that are present.
    presence: [bool; 8],
}

impl Fold for Fields {
    fn name(&self) -> &'static str {
        "normalize_sums"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![self.scalar; 2]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.float(self.scalar, 0.0); 2]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let term = |i| pick(elements, &self.presence, i).map(|x| x.cast(self.scalar));
        let [grad, x] = [elements[0], elements[1]].map(|x| x.cast(self.scalar));
        let weighted = times(grad, term(4));
        smallvec![weighted * times(minus(x, term(2)), term(3)), weighted]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] + y[0], x[1] + y[1]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0], x[1]]
    }
}

impl Products<'_> {
    /// Sums over some dimensions: of the products and, for a second result, of the terms `t`.
    pub fn sum(&self, cx: &Context, axes: Axes, outs: &[&View]) -> Result<()> {
        let terms = [Some(self.grad), Some(self.x), self.mean, self.scale, self.weight];
        let inputs: SmallVec<[&View; 5]> = terms.into_iter().flatten().collect();
        let fold = Fields { scalar: accumulator(self.x.dtype).compute(), presence: presence(&terms) };
        reduce(cx, &fold, &Reduction { inputs: &inputs, outs, axes, tables: &[], numbers: &[] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        for (dtype, wide) in [(DType::F16, DType::F32), (DType::F64, DType::F64)] {
            let fold = |presence| Fields { scalar: wide.compute(), presence };
            validate(&fold([true; 8]), &[dtype, dtype, wide, wide, wide], &[wide; 2], &[]);
            validate(&fold(std::array::from_fn(|i| i < 3)), &[dtype, dtype, wide], &[wide; 1], &[]);
        }
    }
}
