//! The upper and the lower triangle of matrices: triu and tril.

use crate::complex::parts;
use crate::context::Context;
use crate::error::Result;
use crate::primitives::kernel::KernelSpec;
use crate::view::layout::{self, Layout, LayoutParameter, LayoutSpec};
use crate::view::{Dims, View};
use dml_engine::interface::{I64, Index, ReadRange, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType};

/// The triangle of a matrix that is copied.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// The diagonal and what is above.
    Upper,
    /// The diagonal and what is below.
    Lower,
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    half: Half,
    /// The unsigned integer dtype of the elements' width: elements are copied as bits.
    bits: DType,
    layout: LayoutSpec,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: WriteRange = s.bits,
        input: ReadRange = s.bits,
        numel: Index = s.layout.index,
        diagonal: I64,
        layout: LayoutParameter = s.layout,
    }
}

/// Copies a triangle of the matrices `t` to `out`, and writes zeros elsewhere. `out` has the sizes
/// of `t`, and may be `t` itself. There is at least one element.
pub fn copy_half(cx: &Context, t: &View, out: &View, diagonal: i64, half: Half) -> Result<()> {
    if t.dtype == DType::C128 {
        // No integer dtype is as wide as the elements.
        return parts(t).iter().zip(&parts(out)).try_for_each(|(t, out)| copy_half(cx, t, out, diagonal, half));
    }
    // The last two dimensions are not merged, fastest first; the others are a batch in row-major
    // order.
    let wide = t.numel() >= layout::MAX_INDEX_32 || Layout::new(&[out, t]).index == ScalarType::U64;
    let index = if wide { ScalarType::I64 } else { ScalarType::I32 };
    let sizes: Dims = t.sizes.iter().rev().copied().collect();
    let strides = [out, t].map(|t| t.strides.iter().rev().copied().collect::<Dims>()).into_iter().collect();
    let layout = Layout { sizes, strides, index };
    let spec = Spec { half, bits: t.dtype.bits(), layout: layout.spec() };
    let arguments = Arguments { out: out.range(), input: t.range(), numel: t.numel(), diagonal, layout: &layout };
    cx.run_threads(&spec, &arguments, t.numel() as u64)
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        "triangle"
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, self.layout.index);
        b.if_(i.lt(p.numel), || {
            let offsets = p.layout.offsets(b, i);
            let column = i % p.layout.size(0);
            let row = i / p.layout.size(0) % p.layout.size(1);
            let distance = column.cast(ScalarType::I64) - row.cast(ScalarType::I64);
            let keep = match self.half {
                Half::Upper => distance.ge(p.diagonal),
                Half::Lower => distance.le(p.diagonal),
            };
            let value = p.input.load(offsets[1]);
            p.out.store(offsets[0], keep.select(value, 0));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for half in [Half::Upper, Half::Lower] {
            for (bits, rank, index) in [(DType::U8, 2, ScalarType::I32), (DType::U64, 4, ScalarType::I64)] {
                let layout = LayoutSpec { rank, operands: 2, index };
                crate::primitives::validate::accepted(&Spec { half, bits, layout }.build());
            }
        }
    }
}
