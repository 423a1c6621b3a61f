//! The upper and the lower triangle of matrices: triu and tril.

use crate::complex::parts;
use crate::operator::argument::Out;
use crate::operator::call::Call;
use crate::operator::error::Result;
use crate::operator::structured;
use crate::primitives::kernel::KernelSpec;
use crate::tensor::layout::{self, Layout, LayoutSpec, Walked};
use crate::tensor::{Dims, Tensor, overlap};
use crate::{check, operators};
use dml_engine::{
    interface::{I64, Index, ReadRange, WriteRange},
    parameters,
};
use dml_kernel::{Builder, DType, ScalarType, dense::linear_id};

operators! {
    triangle(self, diagonal, out; Half::Upper) {
        "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
        "aten::triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
        "aten::triu.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    }
    triangle(self, diagonal, out; Half::Lower) {
        "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
        "aten::tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
        "aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    }
}

/// What is kept of a matrix.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// From the diagonal up.
    Upper,
    /// From the diagonal down.
    Lower,
}

/// Everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    half: Half,
    /// Unsigned integers of the elements' width: elements are copied as bits.
    bits: DType,
    layout: LayoutSpec,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: WriteRange = s.bits,
        input: ReadRange = s.bits,
        numel: Index = s.layout.index,
        diagonal: I64,
        layout: Walked = s.layout,
    }
}

fn triangle(call: &mut Call, t: &Tensor, diagonal: i64, out: Out, half: Half) -> Result<()> {
    check!(
        t.dim() >= 2,
        Runtime,
        "{}: input tensor must have at least 2 dimensions",
        if half == Half::Upper { "triu" } else { "tril" }
    );
    let out = match out {
        Out::InPlace(t) => {
            overlap::check_internal(t)?;
            t.clone()
        }
        _ => structured::result(call, out.given(), t.dtype, &t.sizes)?,
    };
    if t.numel() > 0 {
        copy_half(call, t, &out, diagonal, half)?;
    }
    call.ret(out);
    Ok(())
}

/// Writes that half of the matrices `t` to `out`, which has their sizes and may be `t` itself, and zeros elsewhere. There is at
/// least one element.
pub fn copy_half(call: &Call, t: &Tensor, out: &Tensor, diagonal: i64, half: Half) -> Result<()> {
    if t.dtype == DType::C128 {
        // No integer is as wide.
        return parts(t).iter().zip(&parts(out)).try_for_each(|(t, out)| copy_half(call, t, out, diagonal, half));
    }
    // The last two dimensions stay apart, fastest first; the rest is walked as a batch in row-major order.
    let wide = t.numel() >= layout::SHORT || Layout::new(&[out, t]).index == ScalarType::U64;
    let index = if wide { ScalarType::I64 } else { ScalarType::I32 };
    let sizes: Dims = t.sizes.iter().rev().copied().collect();
    let strides = [out, t].map(|t| t.strides.iter().rev().copied().collect::<Dims>()).into_iter().collect();
    let layout = Layout { sizes, strides, index };
    let spec = Spec { half, bits: t.dtype.bits(), layout: layout.spec() };
    let arguments = Arguments { out: out.range(), input: t.range(), numel: t.numel(), diagonal, layout: &layout };
    call.run_threads(&spec, &arguments, t.numel() as u64)
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
