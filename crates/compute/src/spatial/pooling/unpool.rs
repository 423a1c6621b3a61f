//! max_unpool2d and max_unpool3d: elements are written back to the positions where max pooling
//! found them.
//!
//! Several elements may have the same position. The last one in row-major order wins: a first pass
//! writes the index of the last element for every position, a second one gathers the elements.

use crate::context::Context;
use crate::error::Result;
use crate::fault::Fault;
use crate::movement::copy::fill_with;
use crate::primitives::kernel::{Input, KernelSpec, Output};
use crate::scalar::Scalar as Number;
use crate::spatial::geometry::{Coordinates, ImageStrides, PerAxis, index_type};
use crate::view::View;
use dml_engine::interface::{I64, Index, ReadRange, WriteRange};
use dml_engine::parameters;
use dml_kernel::dense::linear_id;
use dml_kernel::{Atomic, Builder, DType, ScalarType};

/// Writes each element of `input` (`[batch, channels, ..]`) to its position in the image, given by
/// `indices` (int64, of its shape), and zeros to the other positions of `out`
/// (`[batch, channels, ..]`).
pub fn run(cx: &Context, input: &View, indices: &View, out: &View) -> Result<()> {
    let (n, rank) = (input.numel(), input.dim() - 2);
    check!(n < i64::from(u32::MAX), TooLarge, "{}: {n} elements are more than dml can number", cx.name);
    if n == 0 {
        return fill_with(cx, out, Number::Int(0));
    }
    let numbers = cx.empty(DType::U32, &[out.numel().max(1)])?;
    fill_with(cx, &numbers, Number::Int(0))?;
    let index = index_type(&[input, indices, out]);
    let arguments = NumbersArguments {
        numbers: &numbers,
        indices,
        fault: cx.fault_of_index(),
        numel: n,
        channels: input.sizes[1],
        image: out.sizes[2..].iter().product(),
        size: &input.sizes[2..],
        strides: indices,
    };
    cx.run_threads(&NumberElements { index, rank }, &arguments, n as u64)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let arguments = FetchArguments {
        out: out.range(),
        input: input.range(),
        numbers: &numbers,
        numel: out.numel(),
        channels: out.sizes[1],
        size: &input.sizes[2..],
        output: &out.sizes[2..],
        in_strides: input,
        out_strides: out,
    };
    cx.run_threads(&GatherElements { dtype: out.dtype.bits(), index, rank }, &arguments, out.numel() as u64)
}

/// Specialisation of the kernel that writes indices: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NumberElements {
    index: ScalarType,
    rank: usize,
}

parameters! {
    NumberElements as s => NumbersArguments, NumbersParameters {
        numbers: Output = DType::U32,
        indices: Input = DType::I64,
        fault: Fault,
        numel: Index = s.index,
        channels: Index = s.index,
        /// Number of positions of an image of the result.
        image: I64,
        size: PerAxis = s.rank,
        strides: ImageStrides = (s.index, s.rank),
    }
}

/// For each position, one more than the row-major index of its last element.
impl KernelSpec for NumberElements {
    fn name(&self) -> &'static str {
        "max_unpool_numbers"
    }

    fn write<'b>(&self, b: &'b Builder, p: NumbersParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let at = Coordinates::new(i, p.channels, &p.size, false);
            let position = p.indices.load(p.strides.element(&at));
            b.if_else(
                position.ge(0) & position.lt(p.image),
                || {
                    let plane = (at.batch * p.channels + at.channel).cast(ScalarType::I64);
                    p.numbers.atomic(Atomic::Max, plane * p.image + position, i.cast(ScalarType::U32) + 1);
                },
                || p.fault.report(position, p.image, 0u32),
            );
        });
    }
}

/// Specialisation of the kernel that gathers elements: everything that changes its code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GatherElements {
    /// Elements as bits: they are only copied.
    dtype: DType,
    index: ScalarType,
    rank: usize,
}

parameters! {
    GatherElements as s => FetchArguments, FetchParameters {
        out: WriteRange = s.dtype,
        input: ReadRange = s.dtype,
        numbers: Input = DType::U32,
        numel: Index = s.index,
        channels: Index = s.index,
        size: PerAxis = s.rank,
        output: PerAxis = s.rank,
        in_strides: ImageStrides = (s.index, s.rank),
        out_strides: ImageStrides = (s.index, s.rank),
    }
}

/// Gathers elements by index; positions without an element get 0.
impl KernelSpec for GatherElements {
    fn name(&self) -> &'static str {
        "max_unpool"
    }

    fn write<'b>(&self, b: &'b Builder, p: FetchParameters<'b>) {
        let i = linear_id(b, self.index);
        b.if_(i.lt(p.numel), || {
            let number = p.numbers.load(i);
            let value = b.var(b.constant_of(self.dtype.compute(), 0.0));
            b.if_(number.gt(0), || {
                let from = Coordinates::new((number - 1).cast(self.index), p.channels, &p.size, false);
                value.set(p.input.load(p.in_strides.element(&from)));
            });
            p.out.store(p.out_strides.element(&Coordinates::new(i, p.channels, &p.output, false)), value.get());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::validate::accepted;

    #[test]
    fn kernels_are_valid() {
        for (index, rank) in [(ScalarType::U32, 2), (ScalarType::U64, 3)] {
            accepted(&NumberElements { index, rank }.build());
            accepted(&GatherElements { dtype: DType::U16, index, rank }.build());
        }
    }
}
