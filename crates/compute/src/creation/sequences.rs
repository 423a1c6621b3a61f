//! Evenly spaced numbers, and their powers.

use crate::context::Context;
use crate::dtype::accumulator;
use crate::error::Result;
use crate::primitives::kernel::{InDType, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::view::View;
use crate::view::layout::index_type;
use dml_engine::interface::{Each, I64, Index};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Builder, DType, ScalarType, Value, math};
use smallvec::smallvec;

/// A function of an element's index and of a list of numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// Numbers: `start, step`.
    Arange,
    /// Numbers: `start, end, step`, the middle index and the last one. Counted from the nearer end,
    /// so that both ends are exact.
    Linspace,
    /// Numbers: `start`, the length and the last index. The point on the line, exact and then
    /// truncated: a floating-point fraction may fall short of an integer.
    IntegerLinspace,
    /// Numbers: those of linspace for the exponents, and the base.
    Logspace,
}

impl Sequence {
    /// Number of numbers.
    fn numbers(self) -> usize {
        match self {
            Sequence::Arange => 2,
            Sequence::Linspace => 5,
            Sequence::IntegerLinspace => 3,
            Sequence::Logspace => 6,
        }
    }

    /// The dtype of the numbers, in which a tensor of dtype `out` is computed.
    fn dtype(self, out: DType) -> DType {
        match self {
            // Powers of integers must be exact before they are truncated, which needs f64.
            Sequence::Logspace if !out.is_float() => DType::F64,
            _ => accumulator(out),
        }
    }

    fn value<'b>(self, i: Value<'b>, v: &[Value<'b>]) -> Value<'b> {
        let i = i.cast(v[0].scalar());
        match self {
            Sequence::Arange => v[0] + v[1] * i,
            Sequence::Linspace => symmetric_linspace(i, v),
            Sequence::IntegerLinspace => (v[0] * v[2] + v[1] * i) / v[2],
            Sequence::Logspace => math::pow(v[5], symmetric_linspace(i, v)),
        }
    }
}

fn symmetric_linspace<'b>(i: Value<'b>, v: &[Value<'b>]) -> Value<'b> {
    i.lt(v[3]).select(v[0] + v[2] * i, v[4].eq(0).select(v[0], v[1] - v[2] * (v[4] - i)))
}

/// Writes a sequence to a row, which may have any stride and is not empty. `numbers` are as in
/// [`Sequence`].
pub fn write(cx: &Context, sequence: Sequence, numbers: &[Number], row: &View) -> Result<()> {
    let numel = row.numel();
    let spec = Spec { sequence, out: row.dtype, index: index_type(numel) };
    let arguments = Arguments { out: row, numbers: numbers.into(), numel, stride: row.strides[0] };
    cx.run_threads(&spec, &arguments, numel as u64)
}

/// Specialisation: everything that changes the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    sequence: Sequence,
    out: DType,
    index: ScalarType,
}

parameters! {
    Spec as s => Arguments, Parameters {
        out: Output = s.out,
        numbers: Each<InDType> = smallvec![s.sequence.dtype(s.out); s.sequence.numbers()],
        numel: Index = s.index,
        stride: I64,
    }
}

impl KernelSpec for Spec {
    fn name(&self) -> &'static str {
        match self.sequence {
            Sequence::Arange => "arange",
            Sequence::Linspace => "linspace",
            Sequence::IntegerLinspace => "linspace_integer",
            Sequence::Logspace => "logspace",
        }
    }

    fn write<'b>(&self, b: &'b Builder, p: Parameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            p.out.store(i.cast(ScalarType::I64) * p.stride, self.sequence.value(i, &p.numbers));
        });
    }
}

/// Returns a one-dimensional tensor for `out`: `out` itself if it is a row, otherwise a new one.
pub fn as_row(cx: &Context, out: &View) -> Result<View> {
    if out.dim() == 1 {
        return Ok(out.clone());
    }
    if out.is_contiguous() {
        return Ok(out.as_strided(&[out.numel()], &[1], 0));
    }
    cx.empty(out.dtype, &[out.numel()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for (sequence, out) in [
            (Sequence::Arange, DType::F16),
            (Sequence::Arange, DType::I32),
            (Sequence::Linspace, DType::F64),
            (Sequence::IntegerLinspace, DType::U8),
            (Sequence::Logspace, DType::F32),
            (Sequence::Logspace, DType::I64),
        ] {
            for index in [ScalarType::U32, ScalarType::U64] {
                crate::primitives::validate::accepted(&Spec { sequence, out, index }.build());
            }
        }
    }
}
