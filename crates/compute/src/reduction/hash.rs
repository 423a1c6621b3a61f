//! A hash of tensors: the exclusive or of all elements' bits, as 64-bit numbers.

use crate::context::Context;
use crate::error::Result;
use crate::reduction::axes::Axes;
use crate::reduction::fold::{Fold, FoldScope, Reduction, Values};
use crate::reduction::reduce;
use crate::view::View;
use dml_kernel::{DType, ScalarType, Value};
use smallvec::{SmallVec, smallvec};

/// The exclusive or over `axes` of the elements' bits: of floats as float64, of integers as int64.
/// `out` is uint64.
pub fn hash(cx: &Context, input: &View, axes: Axes, out: &View) -> Result<()> {
    let fold = Xor { dtype: input.dtype };
    reduce(cx, &fold, &Reduction { inputs: &[input], outs: &[out], axes, tables: &[], numbers: &[] })
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Xor {
    dtype: DType,
}

impl Fold for Xor {
    fn name(&self) -> &'static str {
        "hash_tensor"
    }

    fn accumulators(&self, _: ScalarType) -> SmallVec<[ScalarType; 3]> {
        smallvec![ScalarType::U64]
    }

    fn identity<'b>(&self, s: &FoldScope<'b>) -> Values<'b> {
        smallvec![s.b.int(ScalarType::U64, 0)]
    }

    fn map<'b>(&self, _: &FoldScope<'b>, elements: &[Value<'b>], _: Value<'b>) -> Values<'b> {
        let x = elements[0];
        smallvec![match x.scalar() {
            ScalarType::F32 => f64_bits(x),
            ScalarType::F64 => x.bitcast(ScalarType::U64),
            ScalarType::U64 => x,
            _ => x.cast(ScalarType::I64).bitcast(ScalarType::U64),
        }]
    }

    fn combine<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>], y: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0] ^ y[0]]
    }

    fn project<'b>(&self, _: &FoldScope<'b>, x: &[Value<'b>]) -> Values<'b> {
        smallvec![x[0]]
    }
}

/// The bits of an f32 converted to f64, by integer operations, so that adapters without f64 have
/// them too.
fn f64_bits(x: Value<'_>) -> Value<'_> {
    let bits = x.bitcast(ScalarType::U32);
    let magnitude = bits & 0x7fff_ffffu32;
    let wide = magnitude.cast(ScalarType::U64) << 29;
    let normal = wide + (896u64 << 52);
    let special = wide | 0x7ff0_0000_0000_0000u64;
    // A subnormal with the highest bit `h` is 1.x times 2^(h - 149).
    let highest = magnitude.max(1).highest_bit();
    let mantissa = magnitude.cast(ScalarType::U64) << (52u64 - highest.cast(ScalarType::U64));
    let subnormal = mantissa + ((highest + 873).cast(ScalarType::U64) << 52);
    let small = magnitude.eq(0).select(subnormal.like(0.0), subnormal);
    let size = magnitude.ge(0x7f80_0000u32).select(special, magnitude.lt(0x0080_0000u32).select(small, normal));
    size | ((bits >> 31).cast(ScalarType::U64) << 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduction::kernel::validate;

    #[test]
    fn kernels_are_valid() {
        for dtype in [DType::Bool, DType::F16, DType::I16, DType::F64] {
            validate(&Xor { dtype }, &[dtype], &[DType::U64], &[]);
        }
    }
}
