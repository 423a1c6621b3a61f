//! Maxima and minima, and their positions. NaN is both larger and smaller than every number; the
//! first of equal elements wins.

use crate::context::Context;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce::reduce;
use crate::view::View;
use dml_kernel::math::comparison::{equal, less};
use dml_kernel::{Builder, DType, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// The kind of extremum.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// The maximum.
    Max,
    /// The minimum.
    Min,
}

impl Extreme {
    /// Whether `x` comes before `y`; false when equal.
    fn precedes<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        let better = match self {
            Extreme::Max => less(y, x),
            Extreme::Min => less(x, y),
        };
        if x.scalar().is_float() { better | (x.is_nan() & !y.is_nan()) } else { better }
    }

    /// The better of two values; the first of equal ones, as zeros of both signs are.
    fn pick<'b>(self, x: Value<'b>, y: Value<'b>) -> Value<'b> {
        self.precedes(y, x).select(y, x)
    }

    /// The value that no other value is worse than.
    fn worst(self, b: &Builder, dtype: DType) -> Value<'_> {
        let scalar = compute(dtype);
        let max = self == Extreme::Max;
        // It is the result if there are no elements, and must be representable.
        let bits = 8 * dtype.bytes() as u32;
        match scalar {
            s if s.is_float() => b.float(s, if max { f64::NEG_INFINITY } else { f64::INFINITY }),
            ScalarType::I32 if !dtype.is_signed_integer() => b.i32(if max { 0 } else { i32::MAX >> (31 - bits) }),
            ScalarType::I32 => b.i32(if max { i32::MIN >> (32 - bits) } else { i32::MAX >> (32 - bits) }),
            ScalarType::U32 if dtype == DType::Bool => b.u32(u32::from(!max)),
            ScalarType::I64 => b.int(scalar, if max { i64::MIN } else { i64::MAX } as u64),
            s => b.int(s, if max { 0 } else { u64::MAX }),
        }
    }
}

/// The type in which elements are compared; bools as numbers.
fn compute(dtype: DType) -> ScalarType {
    if dtype == DType::Bool { ScalarType::U32 } else { dtype.compute() }
}

/// The element without its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementOnly {
    /// The kind of extremum.
    pub extreme: Extreme,
    /// The dtype of the input.
    pub dtype: DType,
}

impl Fold for ElementOnly {
    fn name(&self) -> &'static str {
        if self.extreme == Extreme::Max { "amax" } else { "amin" }
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![compute(self.dtype)]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![self.extreme.worst(s.b, self.dtype)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(compute(self.dtype))]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![self.extreme.pick(x[0], y[0])]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// Minimum and maximum in one pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Both {
    dtype: DType,
}

impl Fold for Both {
    fn name(&self) -> &'static str {
        "aminmax"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![compute(self.dtype); 2]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![Extreme::Min.worst(s.b, self.dtype), Extreme::Max.worst(s.b, self.dtype)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        smallvec![elements[0].cast(compute(self.dtype)); 2]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![Extreme::Min.pick(x[0], y[0]), Extreme::Max.pick(x[1], y[1])]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        Values::from_slice(x)
    }
}

/// The results of a fold with positions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExtremumOutput {
    /// The position, int64.
    Index,
    /// The element, and its position.
    ValueAndIndex,
}

/// The element and its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementAndIndex {
    /// The kind of extremum.
    pub extreme: Extreme,
    /// The dtype of the input.
    pub dtype: DType,
    /// The results.
    pub yields: ExtremumOutput,
    /// NaN is worse than every number, instead of better.
    pub nan_is_worst: bool,
}

impl Fold for ElementAndIndex {
    fn name(&self) -> &'static str {
        if self.extreme == Extreme::Max { "argmax" } else { "argmin" }
    }

    fn accumulators(&self, index: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![compute(self.dtype), index]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![self.extreme.worst(s.b, self.dtype), s.b.int(s.index, u64::MAX)]
    }

    fn map<'b>(&self, s: &FoldScope<'b>, elements: &[Value<'b>], at: Value<'b>) -> Values<'b> {
        let x = elements[0].cast(compute(self.dtype));
        let replaced = self.nan_is_worst && x.scalar().is_float();
        smallvec![if replaced { x.is_nan().select(self.extreme.worst(s.b, self.dtype), x) } else { x }, at]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        let same = equal(x[0], y[0]) | (x[0].is_nan() & y[0].is_nan());
        let first = self.extreme.precedes(x[0], y[0]) | (same & x[1].lt(y[1]));
        smallvec![first.select(x[0], y[0]), first.select(x[1], y[1])]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        let index = x[1].cast(ScalarType::I64);
        match self.yields {
            ExtremumOutput::Index => smallvec![index],
            ExtremumOutput::ValueAndIndex => smallvec![x[0], index],
        }
    }

    fn ordered(&self) -> bool {
        true
    }
}

/// Writes the results of a fold, which is [`ElementOnly`] or [`ElementAndIndex`], over `axes`.
pub fn run(cx: &Context, fold: &impl Fold, input: &View, outs: &[&View], axes: Axes) -> Result<()> {
    reduce(cx, fold, &Reduction { inputs: &[input], outs, axes, tables: &[], numbers: &[] })
}

/// Writes the minimum and the maximum.
pub fn both(cx: &Context, input: &View, outs: [&View; 2], axes: Axes) -> Result<()> {
    run(cx, &Both { dtype: input.dtype }, input, &outs, axes)
}

/// Writes the position of the maximum, the first of equal ones.
pub fn index_of_first_maximum(cx: &Context, input: &View, out: &View, axes: Axes) -> Result<()> {
    run(
        cx,
        &ElementAndIndex {
            extreme: Extreme::Max,
            dtype: input.dtype,
            yields: ExtremumOutput::Index,
            nan_is_worst: false,
        },
        input,
        &[out],
        axes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for extreme in [Extreme::Max, Extreme::Min] {
            for dtype in [DType::F32, DType::F64, DType::I64, DType::U8, DType::Bool] {
                validate(&ElementOnly { extreme, dtype }, &[dtype], &[dtype], &[]);
                validate(
                    &ElementAndIndex {
                        extreme,
                        dtype,
                        yields: ExtremumOutput::ValueAndIndex,
                        nan_is_worst: extreme == Extreme::Min,
                    },
                    &[dtype],
                    &[dtype, DType::I64],
                    &[],
                );
            }
        }
        validate(&Both { dtype: DType::F16 }, &[DType::F16], &[DType::F16; 2], &[]);
    }
}
