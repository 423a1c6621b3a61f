//! any and all.

use crate::context::Context;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::view::View;
use dml_kernel::{ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// Which elements have to be true (nonzero).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// At least one.
    Any,
    /// All.
    All,
}

/// Whether any or all elements are true, over `axes`. `out` is bool, or uint8 of 0 and 1.
pub fn quantify(cx: &Context, quantifier: Quantifier, input: &View, axes: Axes, out: &View) -> Result<()> {
    reduce(cx, &quantifier, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers: &[] })
}

impl Fold for Quantifier {
    fn name(&self) -> &'static str {
        if *self == Quantifier::Any { "any" } else { "all" }
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![ScalarType::U32]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.u32(u32::from(*self == Quantifier::All))]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(ScalarType::Bool).cast(ScalarType::U32)]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![if *self == Quantifier::Any { x[0] | y[0] } else { x[0] & y[0] }]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;
    use dml_kernel::DType;

    #[test]
    fn kernels_are_valid() {
        validate(&Quantifier::Any, &[DType::F16], &[DType::Bool], &[]);
        validate(&Quantifier::All, &[DType::Bool], &[DType::U8], &[]);
    }
}
